"""What a run improves: a prompt that can be tried on examples. A judge's prompt is one, a generator's another."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ..evaluation.scoring import ExampleScore
    from ..prompts.checklist import Checklist, Question
    from ..prompts.examples import Example
    from ..prompts.prompt import Prompt
    from ..prompts.verdicts import Verdict

Pair = tuple[str, str]
"""Example id and question id."""


@dataclass(frozen=True)
class Draft:
    """A prompt and the questions that go with it."""

    prompt: Prompt
    checklist: Checklist | None = None
    """None where every example has questions of its own."""


@dataclass(frozen=True)
class Observation:
    """What a draft did on some examples."""

    examples: Sequence[Example]
    """With the outputs that were judged."""
    verdicts: Sequence[Verdict]
    scores: Sequence[ExampleScore]
    """In the order of the examples."""
    checklist: Checklist | None = None
    own_checklists: Mapping[str, Checklist] = field(default_factory=dict)
    """The questions of those examples that have their own, by example id."""

    def question(self, example: str, question: str) -> Question:
        """The question that a verdict answers.

        Raises:
            KeyError: There is none.
        """
        checklist = self.own_checklists.get(example, self.checklist)
        if checklist is None:
            raise KeyError(f"the example '{example}' has no questions")
        return checklist.question(question)


class Subject(Protocol):
    """What is improved."""

    async def observe(
        self, draft: Draft, examples: Sequence[Example], on_done: Callable[[int, int], None] | None = None
    ) -> Observation:
        """Use the draft on examples; answers that are in the store are not bought again.

        Raises:
            BudgetExceededError: A cap was reached.
            ModelError: An endpoint refuses every call or is down.
        """
        ...

    async def probe(self, draft: Draft, pairs: Sequence[Pair], seen: Observation) -> dict[Pair, Verdict]:
        """Verdicts with the draft on some (example, question) pairs alone, for the trial of a lesson.

        Args:
            draft: The draft to be tried.
            pairs: What is asked.
            seen: What the draft before it did on the same examples.
        """
        ...
