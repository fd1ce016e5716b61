"""Questions written anew from an updated prompt (BinEval App. B); the acceptance test decides on the two together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...agents.question_writer import QuestionWriter
from ...models.base import CallError
from ...prompts.checklist import Checklist, Question
from ...prompts.errors import AskanceError, BudgetExceededError
from ..events import Teller
from ..subject import Draft
from .candidates import free_id


@dataclass(frozen=True)
class QuestionsAgain:
    """Proposes a new checklist for a changed prompt."""

    writer: QuestionWriter
    dimensions: Sequence[str]
    """Dimensions that people rated."""
    events: Teller

    async def propose(self, draft: Draft, iteration: int) -> Draft | None:
        """Return the draft with questions written from its prompt; None where they are the same or the call failed.

        A question that the draft asks already keeps its id and weight, so that its verdicts are not bought again.
        Raises BudgetExceededError where a cap was reached, and CallError where every further call would fail too.
        """
        self.events.phase(f"iteration {iteration}: writing the questions anew")
        try:
            written = await self.writer.write(draft.prompt.text, self.dimensions)
        except BudgetExceededError:
            raise
        except AskanceError as error:
            if isinstance(error, CallError) and error.fatal:
                raise
            self.events.say(f"the questions stay as they are: {error}")
            return None
        new = keep_known(draft.questions, written)
        return None if new == draft.questions else replace(draft, checklist=new, calibration=None)


def keep_known(old: Checklist, written: Checklist) -> Checklist:
    """Replace the asked questions of a checklist by the written ones.

    A written question with the words of an old one becomes the old one. Other questions get ids that are free. In the
    sections of the old checklist a new question has its own weight.
    """
    known = {question.text: question for question in old.questions}
    taken = {question.id for question in old.questions}
    questions: list[Question] = []
    for question in written.questions:
        if question.text in {each.text for each in questions}:
            continue
        if question.text in known:
            questions.append(known[question.text])
            continue
        name = free_id(question.id, taken)
        taken.add(name)
        questions.append(question.model_copy(update={"id": name}))
    sections = {
        section: {each.id: weights.get(each.id, each.weight) for each in (*questions, *old.computed)}
        for section, weights in old.section_weights.items()
    }
    return old.model_copy(update={"asked": tuple(questions), "section_weights": sections})
