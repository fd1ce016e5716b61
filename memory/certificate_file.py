"""``certificate.json``: for each target of a migration, whether it may replace the old model, with the figures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from ..prompts.criteria.question import RequirementOrigin
from ..prompts.errors import InputError, as_typed
from ..prompts.rows import validate_row
from ..prompts.text_files import read_text, write_whole

CERTIFICATE_FILE = "certificate.json"
REQUIREMENTS_FILE = "requirements.yaml"
TARGETS = "targets"
"""Folder of a migration that holds a run for each target."""
CertificateDecision = Literal["adopt", "not_yet", "undecided"]


class _Kept(BaseModel):
    model_config = ConfigDict(frozen=True, serialize_by_alias=True, populate_by_name=True, allow_inf_nan=False)


class ShareRecord(_Kept):
    """A mean or a share, with its 95 % interval."""

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0
    """Number of outputs behind the figure."""


class SidesRecord(_Kept):
    """One figure on test for three sides: the old outputs, and the target with the old and with the new prompt."""

    old: ShareRecord
    """Figure of the old outputs."""
    before: ShareRecord | None = None
    """Figure of the target with the old prompt; None if that was not judged on test."""
    after: ShareRecord
    """Figure of the target with the new prompt."""


class KeptRequirement(_Kept):
    """A requirement for the outputs."""

    id: str
    text: str
    origin: RequirementOrigin | None = Field(default=None, alias="from")
    support: float | None = None
    """Share of the old development outputs that keep the requirement."""
    is_check: bool = False
    """Whether code checks the requirement."""
    enforced: bool = True
    """Whether the requirement counts in the decision; otherwise it is only shown."""
    clause: str | None = None
    """Words of the prompt that ask for the requirement."""


class RequirementRates(_Kept):
    """Shares of the test outputs that keep one requirement, for the three sides of :class:`SidesRecord`."""

    requirement: str
    old: float | None
    before: float | None = None
    after: float | None
    n: int
    """Number of outputs with a verdict on both sides."""


class ContentRecord(_Kept):
    """A computed measure of the outputs' content on test. It plays no part in the decision."""

    measure: str
    """Name of the measure, e.g. ``covered(input)``."""
    text: str
    """The measure in words."""
    higher_is_better: bool
    old: ShareRecord
    after: ShareRecord
    difference: ShareRecord
    """``after`` minus ``old``, paired by example."""

    @property
    def is_worse(self) -> bool:
        """Whether the interval of the difference lies on the bad side."""
        end = self.difference.high if self.higher_is_better else self.difference.low
        return end is not None and (end < 0 if self.higher_is_better else end > 0)


class TargetRecord(_Kept):
    """A target's figures on test, and the decision that follows from them."""

    model: str
    settings: dict[str, Any] = {}
    """Settings of the model besides its prompt: schema, temperature, thinking, longest output, …"""
    decision: CertificateDecision
    reason: str
    """One sentence."""
    needed: int | None = None
    """Number of test outputs that would decide; None unless ``undecided`` and more outputs could decide."""
    prompt: str
    """Path of the new prompt in the run's directory."""
    pass_rate: SidesRecord
    """Mean share of the requirements that an output keeps."""
    contract: SidesRecord | None = None
    """Share of the outputs that keep every check (Wilson's interval); None if there is no check."""
    questions: SidesRecord | None = None
    """Mean share of the questions, without the checks, that an output passes; None if there are no questions."""
    difference: ShareRecord
    """New pass rate minus old pass rate, paired by example; ``low`` and ``high`` are one-sided limits at the level."""
    by_requirement: tuple[RequirementRates, ...] = ()
    worst: tuple[str, ...] = ()
    """Requirements that are proved worse by more than ``max_loss``, the worst first."""
    regressions: tuple[str, ...] = ()
    """Test examples whose new output fails a requirement that the old one keeps."""
    gains: tuple[str, ...] = ()
    """Test examples whose new output keeps a requirement that the old one fails."""
    second: ShareRecord | None = None
    """Difference by the verdicts of the second judge."""
    preferred: ShareRecord | None = None
    """Share of the test inputs whose new output is preferred to the old one, ties counted as half."""
    content: tuple[ContentRecord, ...] = ()
    """Measures of old and new outputs against their input and context."""
    price_per_output: float | None = None
    """US dollars; None if the price is not known."""
    seconds_per_output: float | None = None
    tokens_per_output: float | None = None


class PowerRecord(_Kept):
    """Power of the test: the loss that it rules out in 8 of 10 cases if there is no loss."""

    examples: int
    """Number of test examples."""
    deviation: float
    """Standard deviation of the paired difference."""
    assumed: bool
    """Whether the deviation was assumed, and not measured on development."""
    loss: float
    """Smallest loss that is ruled out."""
    needed: int
    """Number of examples that would rule out a loss of ``max_loss``."""
    needed_most: int | None = None
    """Examples needed at the deviation's upper limit (95 %, one-sided); None if the deviation was assumed."""


class VerifiedTarget(_Kept):
    """A target's figures in a later verification."""

    decision: CertificateDecision
    reason: str
    difference: ShareRecord
    pass_rate: ShareRecord


class VerificationRecord(_Kept):
    """A later verification, in which the targets wrote new outputs for the test inputs."""

    time: str
    """ISO 8601, UTC."""
    targets: dict[str, VerifiedTarget]


class CertificateRecord(_Kept):
    """The whole of ``certificate.json``."""

    kind: Literal["generator", "judge"]
    source: str
    """Name of the old model, or ``recorded``."""
    max_loss: float
    level: float
    measure: str | None = None
    """Meaning of agreement in words, if the targets are judges. Their pass rates are then mean agreement, in [0, 1]."""
    judge: str | None = None
    judge_agreement: ShareRecord | None = None
    """The judge's own agreement with people's labels, if there are labels."""
    second_judge: str | None = None
    requirements: tuple[KeptRequirement, ...] = ()
    targets: dict[str, TargetRecord]
    power: tuple[PowerRecord, ...] = ()
    """First the power with the assumed deviation, then for each target with the deviation measured on development."""
    looks: int = 1
    """Number of times that the test examples were judged."""
    verified: tuple[VerificationRecord, ...] = ()
    calls: int | None = None
    """Number of answers that the whole migration used, bought or reused from its own stores."""
    tokens: int | None = None
    cost_usd: float | None = None
    """US dollars; None if any price is not known."""
    unpriced_calls: int = 0
    known_usd: float = 0.0
    """US dollars of the calls with a known price, if ``cost_usd`` is None."""

    def save(self, run: Path) -> None:
        """Write the certificate into a run's directory. Raises AskanceError if it cannot be written."""
        text = json.dumps(self.model_dump(mode="json"), ensure_ascii=False, indent=2)
        write_whole(run / CERTIFICATE_FILE, text + "\n")


def read_certificate(run: Path) -> CertificateRecord:
    """Read the certificate of a migration's directory. Raises InputError if it is missing or damaged."""
    file = run / CERTIFICATE_FILE
    try:
        data = json.loads(read_text(file))
    except FileNotFoundError:
        if is_migration(run):
            raise InputError(
                f"{run}: this migration is not finished. Go on with it: askance resume {as_typed(run)}"
            ) from None
        raise InputError(f"{run}: there is no certificate here ({CERTIFICATE_FILE}).") from None
    except (OSError, ValueError, RecursionError):
        raise InputError(f"{file}: damaged.") from None
    return validate_row(CertificateRecord, data, f"{file}: damaged, or not written by askance")


def target_folder(name: str) -> str:
    """Return the name of a target's folder in ``targets/``: the target's name with ``__`` for ``/``."""
    return name.replace("/", "__")


def is_migration(run: Path) -> bool:
    """Return whether a directory is the root of a migration with a run for each target."""
    # A judge that moves to one target has its certificate beside the result of its run.
    is_a_run = (run / "result.json").exists()
    return not is_a_run and ((run / CERTIFICATE_FILE).is_file() or (run / TARGETS).is_dir())
