""":class:`Judging`: the settings by which an evaluator is asked and its answers are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from ..models.replies.own_scores import Reads
from ..prompts.errors import InputError
from ..prompts.verdicts import Provenance

REPLY_TOKENS = 1000
"""Tokens of a reply in people's own words at most: room for its reason."""
MOST_TOGETHER = 20
"""Questions of one call at most, to a model that thinks."""


class Form(NamedTuple):
    """Contents that one reply is asked for."""

    explained: bool
    logprobs: bool
    stated: bool
    """Whether each answer comes with a probability."""
    by_number: bool
    """Whether P(yes) is that probability."""
    together: bool
    """Whether all questions on an output are one call."""
    most: int | None
    """Questions of that call at most."""


@dataclass(frozen=True)
class Judging:
    """How an evaluator judges; the same for every prompt version of a run."""

    mode: Literal["auto", "each", "batched"] = "each"
    """One call a question, or one call an output; auto: one call an output where the model thinks."""
    explain: Literal["always", "needed", "never"] = "needed"
    p_yes: Literal["auto", "logprob", "stated", "sampled", "hard"] = "auto"
    samples: int = 1
    """Answers per question from which p_yes is counted where log-probabilities are missing; 1 gives hard answers."""
    sample_temperature: float = 1.0
    temperature: float = 0.0
    repeat: int = 1
    seed: int = 42
    answer_words: tuple[str, str] | None = None
    """The words for yes and no that judges answer with, in place of the checklist's, or of English."""
    score_scale: tuple[int, int] | None = None
    """Lowest and highest number, in 0 to 10, where p_yes is an expected score; None: judges say yes or no."""
    reads: Reads | None = None
    """How the reply of a judge in people's own words is read, which is asked as its prompt stands; None: it answers
    the questions of a checklist."""
    reply_tokens: int = REPLY_TOKENS
    """Longest reply of such a judge, in tokens."""

    def __post_init__(self) -> None:
        """Check what goes together; raises InputError where the scale is none or gives no expected scores."""
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
        """Where p_yes comes from where log-probabilities tell nothing, or are not there."""
        # The number that a model states costs no further call, and lost least in simulated worlds
        # (docs/results/asking.md). Samples are drawn where somebody asks for them, and so pays for them.
        return "sampled" if self.samples > 1 else "stated" if thinks else "hard"

    def form(self, provenance: Provenance, questions: int, *, thinks: bool) -> Form:
        """Contents of a reply for a provenance of P(yes).

        A model that thinks, whose P(yes) may come from either, is asked for log-probabilities and for a number: which
        of the two is read is found out from the first replies, and none of these has to be bought again.
        """
        both = thinks and self.p_yes == "auto" and provenance in ("logprob", "stated")
        stated = provenance == "stated"
        return Form(
            explained=self.explain == "always",
            logprobs=both or provenance == "logprob",
            stated=both or stated,
            by_number=stated,
            together=self.mode == "batched" or (self.mode == "auto" and thinks and questions > 1),
            most=MOST_TOGETHER if thinks else None,
        )

    def draws(self, provenance: Provenance) -> int:
        """Answers that are asked for to make one verdict."""
        return self.samples if provenance == "sampled" else 1

    def temperature_of(self, provenance: Provenance) -> float:
        """The temperature at which they are asked for."""
        return self.sample_temperature if provenance == "sampled" else self.temperature


DEFAULT = Judging()
"""One call a question, answered with yes or no."""
