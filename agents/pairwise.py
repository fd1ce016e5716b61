"""Pairwise judging: for each test the judge sees both outputs and says which of the two does better.

It is the evaluator with another way to ask. An example is one order of a pair, and a verdict's ``answer`` is whether
the output shown first does better, its ``p_yes`` how likely that is (P(1) / (P(1) + P(2)) from log-probabilities, where
the endpoint gives them).
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
    """The id of one order of a pair, as verdicts name it."""
    return f"{pair}/{order}"


def ordered_examples(pair: Preference, *, swap: bool) -> list[Example]:
    """The examples that a judge is shown of a pair: output a first and, with ``swap``, output b first as well."""
    shown_as = [(AS_IT_IS, pair.output_a, pair.output_b)]
    shown_as += [(SWAPPED, pair.output_b, pair.output_a)] if swap else []
    return [
        Example(id=pair_id(pair.id, order), input=pair.input, output=first, metadata={_SECOND: second})
        for order, first, second in shown_as
    ]


def pairwise_prompt() -> Prompt:
    """askance's own prompt for comparing two outputs."""
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
        """One number."""
        return template("answer_first_or_second")

    @cached_property
    def _parameters(self) -> Parameters:
        return Parameters(TOKENS, self.temperature, self.seed, TOP_LOGPROBS if self.logprobs else 0)

    def read(self, ask: Ask, answer: Answer) -> dict[str, Reading]:
        """Whether the output shown first does better."""
        return {ask.questions[0].id: read_better(answer, logprobs=self.logprobs)}

    def _seen(self, example: Example, sees: Sees) -> Example:
        """All of it: both outputs are compared as they are."""
        return example

    def _frame(self, example: Example, sees: Sees) -> Framing:
        """The texts first, then the prompt, then the question: all that the questions share comes first."""
        texts = [("Input", example.input)] if sees in ("all", "input") else []
        texts += [(sees.capitalize(), getattr(example, sees) or "")] if sees in ("context", "reference") else []
        outputs = [seen_of(each, example.input, sees) for each in (example.output or "", example.metadata[_SECOND])]
        texts += [(f"Output {number}", each) for number, each in enumerate(outputs, 1)]
        parts = [f"{name}:\n{fence(text)}\n\n" for name, text in texts]
        return Framing(None, "".join([*parts, fill(self.prompt.text, {}).rstrip("\n"), "\n\n"]), "")


class PairEvaluator(Evaluator):
    """An evaluator that compares; its examples come from :func:`ordered_examples`."""

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
