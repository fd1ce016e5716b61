"""``certificate.json``: for each target of a migration, whether it may take the old model's place, with the figures."""

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
"""Folder of a migration that has a run for each target."""
CertificateDecision = Literal["adopt", "not_yet", "undecided"]


class _Kept(BaseModel):
    model_config = ConfigDict(frozen=True, serialize_by_alias=True, populate_by_name=True, allow_inf_nan=False)


class ShareRecord(_Kept):
    """A mean or a share, with its 95 % interval."""

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0
    """Outputs that it is of."""


class SidesRecord(_Kept):
    """A figure of the old outputs, of the target with the old prompt, and of the target with the new one, on test."""

    old: ShareRecord
    before: ShareRecord | None = None
    """None where the target's start was not looked at on test."""
    after: ShareRecord


class KeptRequirement(_Kept):
    """A requirement that outputs are held to."""

    id: str
    text: str
    origin: RequirementOrigin | None = Field(default=None, alias="from")
    support: float | None = None
    """Share of the old development outputs that keep it."""
    is_check: bool = False
    """Whether code decides the requirement."""
    enforced: bool = True
    """Whether the requirement counts; otherwise it is only shown."""
    clause: str | None = None
    """Words of the prompt that ask for it."""


class RequirementRates(_Kept):
    """The share of the test outputs that keep one requirement."""

    requirement: str
    old: float | None
    before: float | None = None
    after: float | None
    n: int
    """Outputs with a verdict on both sides."""


class ContentRecord(_Kept):
    """A measure of the outputs' content on test, which code computes and which decides nothing."""

    measure: str
    """Name of the measure, e.g. ``covered(input)``."""
    text: str
    """The measure in words."""
    higher_is_better: bool
    old: ShareRecord
    after: ShareRecord
    difference: ShareRecord
    """After minus old, paired by example."""

    @property
    def is_worse(self) -> bool:
        """Whether the interval of the difference lies on the bad side."""
        end = self.difference.high if self.higher_is_better else self.difference.low
        return end is not None and (end < 0 if self.higher_is_better else end > 0)


class TargetRecord(_Kept):
    """One target: its figures on test and what follows from them."""

    model: str
    settings: dict[str, Any] = {}
    """Settings of the model beside its prompt: schema, temperature, thinking, longest output, …"""
    decision: CertificateDecision
    reason: str
    """One sentence."""
    needed: int | None = None
    """Outputs that would decide, where the decision is ``undecided`` and more could."""
    prompt: str
    """Path of the new prompt in the run's directory."""
    pass_rate: SidesRecord
    """Mean share of the requirements that an output keeps."""
    contract: SidesRecord | None = None
    """Share of the outputs that keep every check (Wilson's interval); None where there is no check."""
    questions: SidesRecord | None = None
    """Mean share of the questions alone that an output passes; None where there are none."""
    difference: ShareRecord
    """Pass rate after minus old, paired by example; ``low`` and ``high`` are one-sided limits at the level."""
    by_requirement: tuple[RequirementRates, ...] = ()
    worst: tuple[str, ...] = ()
    """Requirements that are proved worse by more than the margin, the worst first."""
    regressions: tuple[str, ...] = ()
    """Test examples whose new output fails a requirement that the old one keeps."""
    gains: tuple[str, ...] = ()
    """Test examples whose new output keeps a requirement that the old one fails."""
    second: ShareRecord | None = None
    """The difference by the verdicts of the second judge."""
    preferred: ShareRecord | None = None
    """Share of the test inputs whose new output is preferred to the old one, ties counted as half."""
    content: tuple[ContentRecord, ...] = ()
    """Measures of old and new outputs against their input and context."""
    price_per_output: float | None = None
    """US dollars; None where the price is not known."""
    seconds_per_output: float | None = None
    tokens_per_output: float | None = None


class PowerRecord(_Kept):
    """The loss that the test could rule out in 8 of 10 cases where there is none."""

    examples: int
    """Test examples."""
    deviation: float
    """Standard deviation of the paired difference."""
    assumed: bool
    """Whether the deviation was assumed, and not measured on development."""
    loss: float
    """Smallest loss that is ruled out."""
    needed: int
    """Examples that rule out ``max_loss``."""
    needed_most: int | None = None
    """Examples needed if the deviation is as large as its measurement leaves open (95 %, one-sided). None where the
    deviation was assumed."""


class VerifiedTarget(_Kept):
    """One target of a later look."""

    decision: CertificateDecision
    reason: str
    difference: ShareRecord
    pass_rate: ShareRecord


class VerificationRecord(_Kept):
    """A later look: the targets wrote the test inputs anew."""

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
    """Meaning of agreement, in words, for judges. Pass rates of the targets are then mean agreement, from 0 to 1."""
    judge: str | None = None
    judge_agreement: ShareRecord | None = None
    """The judge's own agreement with people's labels, where there are some."""
    second_judge: str | None = None
    requirements: tuple[KeptRequirement, ...] = ()
    targets: dict[str, TargetRecord]
    power: tuple[PowerRecord, ...] = ()
    """The assumed one first, then by target as measured on development."""
    looks: int = 1
    """Times that the test examples were looked at."""
    verified: tuple[VerificationRecord, ...] = ()
    calls: int | None = None
    """Answers that the whole migration took, bought or reused from its own stores."""
    tokens: int | None = None
    cost_usd: float | None = None
    """None where a price is not known."""
    unpriced_calls: int = 0
    known_usd: float = 0.0
    """Money of the calls whose price is known, where ``cost_usd`` is None."""

    def save(self, run: Path) -> None:
        """Write it into a run's directory. Raises AskanceError where it cannot be written."""
        text = json.dumps(self.model_dump(mode="json"), ensure_ascii=False, indent=2)
        write_whole(run / CERTIFICATE_FILE, text + "\n")


def read_certificate(run: Path) -> CertificateRecord:
    """The certificate of a migration's directory. Raises InputError where there is none, or it is damaged."""
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
    """The folder of a target in ``targets/``: its name with ``/`` as ``__``."""
    return name.replace("/", "__")


def is_migration(run: Path) -> bool:
    """Whether a directory is the root of a migration with a run for each target.

    A judge that moves to one target has its certificate beside the result of its run.
    """
    is_a_run = (run / "result.json").exists()
    return not is_a_run and ((run / CERTIFICATE_FILE).is_file() or (run / TARGETS).is_dir())
