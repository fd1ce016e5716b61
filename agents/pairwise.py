"""Pairwise judging: for each test, the judge sees both outputs and says which of them does better.

This is the evaluator with another way to ask. An example is one order of a pair. A verdict's ``answer`` says whether
the output shown first does better. Its ``p_yes`` is the probability of this: P(1) / (P(1) + P(2)) if the endpoint
gives log-probabilities.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ..models.base import Answer, Parameters
from ..prompts.checklist import Question, Sees
from ..prompts.conversations.chat import seen_of
from ..prompts.errors import InputError
from ..prompts.examples import Example
from ..prompts.preferences import Preference
from ..prompts.prompt import Framing, Prompt
from ..prompts.templates import template
from ..prompts.text import fence, fill
from ..prompts.verdicts import Provenance
from .evaluator import Evaluator
from .replies import Reading, read_better
from .requests import TOKENS, TOP_LOGPROBS, Ask, OneByOne

AS_IT_IS, SWAPPED = "ab", "ba"
"""The orders of a pair: output a first, or output b first."""
_SECOND = "second output"


def pair_id(pair: str, order: str) -> str:
    """Return the id of one order of a pair, as in verdicts."""
    return f"{pair}/{order}"


def ordered_examples(pair: Preference, *, swap: bool) -> list[Example]:
    """Return the examples for a pair: one with output a first and, with ``swap``, one with output b first."""
    orders = [(AS_IT_IS, pair.output_a, pair.output_b)]
    orders += [(SWAPPED, pair.output_b, pair.output_a)] if swap else []
    return [
        Example(id=pair_id(pair.id, order), input=pair.input, output=first, metadata={_SECOND: second})
        for order, first, second in orders
    ]


def pairwise_prompt() -> Prompt:
    """Return askance's own prompt for comparing two outputs."""
    return Prompt(template("pairwise"))


@dataclass(frozen=True)
class PairAsking(OneByOne):
    """One call for each order of a pair and each test, answered with the number of the better output."""

    prompt: Prompt
    questions: tuple[Question, ...]
    logprobs: bool
    temperature: float
    seed: int | None

    @cached_property
    def form(self) -> str:
        """The sentence that asks for the number of the better output."""
        return template("answer_first_or_second")

    @cached_property
    def _parameters(self) -> Parameters:
        return Parameters(TOKENS, self.temperature, self.seed, TOP_LOGPROBS if self.logprobs else 0)

    def read(self, ask: Ask, answer: Answer) -> dict[str, Reading]:
        """Read whether the output shown first does better."""
        return {ask.questions[0].id: read_better(answer, logprobs=self.logprobs)}

    def _seen(self, example: Example, sees: Sees) -> Example:
        """Return the whole example; :meth:`_frame` selects the part that the judge sees."""
        return example

    def _frame(self, example: Example, sees: Sees) -> Framing:
        """Write the texts, then the prompt. The question comes last, so that all questions share the same beginning."""
        texts = [("Input", example.input)] if sees in ("all", "input") else []
        texts += [(sees.capitalize(), getattr(example, sees) or "")] if sees in ("context", "reference") else []
        outputs = [seen_of(each, example.input, sees) for each in (example.output or "", example.metadata[_SECOND])]
        texts += [(f"Output {number}", each) for number, each in enumerate(outputs, 1)]
        parts = [f"{name}:\n{fence(text)}\n\n" for name, text in texts]
        return Framing(None, "".join([*parts, fill(self.prompt.text, {}).rstrip("\n"), "\n\n"]), "")


class PairEvaluator(Evaluator):
    """An evaluator that compares two outputs. Its examples come from :func:`ordered_examples`."""

    states = False

    def _asking(self, provenance: Provenance) -> PairAsking:
        judging = self.judging
        if (
            judging.mode == "batched"
            or provenance == "stated"
            or judging.explain == "always"
            or judging.score_scale is not None
        ):
            raise InputError(
                "Comparing two outputs takes one call a test, answered with the better one: leave out --mode batched, "
                "--p-yes stated, --explain always and --scores expected."
            )
        if self.prompt.placeholders or (self.prompt.form is not None and not self.prompt.form.is_plain):
            raise InputError(
                "A prompt for comparing two outputs is a plain text without placeholders: the input and both outputs "
                "are put before it. Take them out of the prompt, or give none."
            )
        temperature, logprobs = judging.temperature_of(provenance), provenance == "logprob"
        return PairAsking(self.prompt, self.checklist.asked, logprobs, temperature, judging.seed)
