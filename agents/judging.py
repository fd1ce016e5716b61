""":class:`Judging`: the settings for asking an evaluator and reading its answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from ..models.replies.own_scores import Reads
from ..prompts.errors import InputError
from ..prompts.verdicts import Provenance

REPLY_TOKENS = 1000
"""Most tokens of a reply of a judge in people's own words, so that a reason fits in."""
MOST_TOGETHER = 20
"""Most questions in one call to a model that thinks."""


class Form(NamedTuple):
    """The parts that a reply is asked for."""

    explained: bool
    logprobs: bool
    stated: bool
    """Whether each answer has a stated probability."""
    by_number: bool
    """Whether P(yes) is the stated probability."""
    together: bool
    """Whether all questions on an output share one call."""
    most: int | None
    """Most questions in such a call."""


@dataclass(frozen=True)
class Judging:
    """Settings of an evaluator, the same for every prompt version of a run."""

    mode: Literal["auto", "each", "batched"] = "each"
    """``each``: one call per question. ``batched``: one call per output. ``auto``: ``batched`` if the model thinks."""
    explain: Literal["always", "needed", "never"] = "needed"
    p_yes: Literal["auto", "logprob", "stated", "sampled", "hard"] = "auto"
    samples: int = 1
    """Answers per question from which P(yes) is counted if log-probabilities are missing; 1 gives hard answers."""
    sample_temperature: float = 1.0
    temperature: float = 0.0
    repeat: int = 1
    seed: int = 42
    answer_words: tuple[str, str] | None = None
    """Words for yes and no that judges answer with, instead of the checklist's words or English."""
    score_scale: tuple[int, int] | None = None
    """Lowest and highest number, from 0 to 10, if P(yes) is an expected score; None: judges say yes or no."""
    reads: Reads | None = None
    """Rule for reading the reply of a judge in people's own words, whose prompt is sent with the example and nothing
    else; None: the judge answers the questions of a checklist."""
    reply_tokens: int = REPLY_TOKENS
    """Most tokens of a reply of such a judge."""

    def __post_init__(self) -> None:
        """Raise InputError if the scale is not valid, or if it does not go with the other settings."""
        if self.score_scale is None:
            return
        low, high = self.score_scale
        if not 0 <= low < high <= 10:
            raise InputError(
                f"The score scale {low} to {high} is none: two whole numbers from 0 to 10, the lower first."
            )
        if high == 10 and (low > 1 or self.explain != "never"):
            raise InputError(
                "A score scale up to 10 begins at 0 or 1 and takes answers without explanations (--explain never)."
            )
        if self.mode == "batched":
            raise InputError("Expected scores take one call a question: leave out --mode batched.")
        if self.p_yes not in ("auto", "logprob"):
            raise InputError(
                f"Expected scores are read from log-probabilities, so they do not go with --p-yes {self.p_yes}: leave "
                "that out, or choose --scores soft or hard."
            )

    def without_logprobs(self, *, thinks: bool) -> Provenance:
        """Return the source of P(yes) if log-probabilities are missing or tell nothing."""
        # The stated number of a model costs no further call, and lost least in simulated worlds
        # (docs/results/asking.md). Samples cost calls, so they are drawn only if the user asks for them.
        return "sampled" if self.samples > 1 else "stated" if thinks else "hard"

    def form(self, provenance: Provenance, questions: int, *, thinks: bool) -> Form:
        """Return the parts of a reply for a source of P(yes).

        With ``p_yes`` ``auto``, a model that thinks is asked for log-probabilities and for a stated probability. The
        first replies decide which of the two is read, and need not be bought again.
        """
        asks_both = thinks and self.p_yes == "auto" and provenance in ("logprob", "stated")
        stated = provenance == "stated"
        return Form(
            explained=self.explain == "always",
            logprobs=asks_both or provenance == "logprob",
            stated=asks_both or stated,
            by_number=stated,
            together=self.mode == "batched" or (self.mode == "auto" and thinks and questions > 1),
            most=MOST_TOGETHER if thinks else None,
        )

    def draws(self, provenance: Provenance) -> int:
        """Return the number of answers that make one verdict."""
        return self.samples if provenance == "sampled" else 1

    def temperature_of(self, provenance: Provenance) -> float:
        """Return the temperature of the answers."""
        return self.sample_temperature if provenance == "sampled" else self.temperature


DEFAULT = Judging()
"""One call per question, answered with yes or no."""
