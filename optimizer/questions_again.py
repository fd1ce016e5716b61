"""Questions written anew from an updated prompt (BinEval App. B); the gate decides on them as on any edit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..models.base import CallError
from ..prompts.checklist import Checklist
from ..prompts.errors import AskanceError, BudgetExceededError
from .subject import Draft

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..agents.question_writer import QuestionWriter
    from ..prompts.checklist import Question
    from .contest import Contest
    from .results import Version
    from .telling import Events


class QuestionsAgain:
    """Proposes a new checklist for an accepted prompt."""

    def __init__(self, writer: QuestionWriter, dimensions: Sequence[str], events: Events) -> None:
        """``dimensions`` are those that people rated."""
        self._writer = writer
        self._dimensions = dimensions
        self._events = events

    async def challenge(self, version: Version, contest: Contest, iteration: int) -> Version:
        """Write questions from the version's prompt; returns the version with them where the gate takes them.

        A question that is there already keeps its id and weight, so that its verdicts are not bought again.

        Raises:
            BudgetExceededError: A cap was reached; ``version`` stands.
            ModelError: An endpoint refuses every call.
        """
        old = version.draft.checklist
        assert old is not None, "questions are written anew where there are some"
        self._events.phase(f"iteration {iteration}: writing the questions anew")
        try:
            written = await self._writer.write(version.prompt.text, self._dimensions)
        except BudgetExceededError:
            raise
        except AskanceError as error:
            if isinstance(error, CallError) and error.fatal:
                raise
            self._events.say(f"the questions stay as they are: {error}")
            return version
        new = keep_known(old, written)
        if new == old:
            return version
        return await contest.challenge(version, (), iteration, Draft(version.prompt, new))


def keep_known(old: Checklist, written: Checklist) -> Checklist:
    """The new questions; one that asks the same as an old one is the old one, and new ids repeat none.

    In the sections of the old checklist a new question has its own weight.
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
        name, number = question.id, 2
        while name in taken:
            name, number = f"{question.id}-{number}", number + 1
        taken.add(name)
        questions.append(question.model_copy(update={"id": name}))
    sections = {
        section: {question.id: weights.get(question.id, question.weight) for question in questions}
        for section, weights in old.section_weights.items()
    }
    return old.model_copy(update={"questions": tuple(questions), "section_weights": sections})
