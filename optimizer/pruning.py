"""What is tried with an accepted version besides further edits: it without each of its edits, or with other questions.

At the end edits are taken out one by one where validation does not get worse: the prompt stays short. Questions may be
written anew from an updated prompt (BinEval App. B); the gate decides on the two together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

from ..models.base import CallError
from ..prompts.checklist import Checklist
from ..prompts.errors import AskanceError, BudgetExceededError
from ..prompts.lessons import Edit
from ..prompts.prompt import EditRefusedError, Prompt
from .acceptance import Decision
from .events import EditPruned
from .subject import Draft, PrunedEdit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..agents.question_writer import QuestionWriter
    from ..evaluation.scoring import ExampleScore
    from ..prompts.checklist import Question
    from .contest import Contest
    from .events import Teller
    from .subject import Version
    from .yardsticks import Yardstick


async def prune(
    best: Version, baseline: Version, contest: Contest, yardstick: Yardstick, found: list[PrunedEdit]
) -> Version:
    """Try the prompt without each of its edits, the latest first, going on from what is left.

    An edit whose text a later one has changed cannot be taken out and stays. So does the last one: a prompt that
    passed the gate is not given up for the start, which it beat.

    Args:
        best: The version to be shortened.
        baseline: The start.
        contest: Judges the candidates.
        yardstick: Says what is no worse.
        found: What became of each edit is added here, so that it is known also where a budget ends the pruning.

    Returns:
        The shortest version found.

    Raises:
        BudgetExceededError: A cap was reached; the last version that the contest kept still stands.
    """
    validation = contest.validation

    def is_missed(before: Sequence[ExampleScore], after: Sequence[ExampleScore]) -> Decision | None:
        """Any loss on the first examples keeps an edit: a place in the prompt is cheaper than the other examples."""
        n = len(after)
        loss = yardstick.difference(before[:n], after, validation[:n])
        if loss.value is None or loss.value >= 0:
            return None
        said = f"{yardstick.name} {loss.value:+.3f} without it"
        return Decision(False, f"worse on the first {n} validation examples ({said})", loss)

    def note(version: int, pruned: PrunedEdit) -> None:
        found.append(pruned)
        contest.events.emit(EditPruned(version, pruned.edit.lessons, pruned.removed, pruned.reason, pruned.gain))

    for edit in reversed(best.edits):
        if len(best.edits) == 1:
            break
        left = tuple(each for each in best.edits if each is not edit)
        try:
            prompt = _without(edit, best.prompt, left, replace(baseline.prompt, shown=best.prompt.shown))
        except EditRefusedError as error:
            note(best.number, PrunedEdit(edit, False, f"it cannot be taken out: {error}", None))
            continue
        raced = await contest.race(best, replace(best.draft, prompt=prompt), left, [edit], is_missed)
        shorter, gain, reason = raced.version, raced.decision.gain, raced.decision.reason
        removed = False
        if shorter is not None:
            gain = yardstick.difference(best.scores, shorter.scores, validation)
            said = "undefined" if gain.value is None else f"{yardstick.name} {gain.value:+.3f} without it"
            removed = gain.value is not None and gain.value >= 0
            reason = f"validation is {'no worse' if removed else 'worse'} ({said})"
            if removed and (problem := contest.lacking(best, shorter)):
                removed, reason = False, f"{reason}, but {problem}"
        note(raced.number, PrunedEdit(edit, removed, reason, gain))
        if shorter is not None and removed:
            best = shorter
            contest.keep(best)
    return best


def _without(edit: Edit, prompt: Prompt, left: Sequence[Edit], start: Prompt) -> Prompt:
    """The other edits applied to the start again; where one of them stands on this one's text, this one undone.

    Raises:
        EditRefusedError: Neither can be done.
    """
    try:
        return reduce(Prompt.apply, left, start)
    except EditRefusedError:
        if not edit.new:
            raise
        return prompt.apply(Edit(old=edit.new, new=edit.old, lessons=edit.lessons))


@dataclass(frozen=True)
class QuestionsAgain:
    """Proposes a new checklist for a changed prompt."""

    writer: QuestionWriter
    dimensions: Sequence[str]
    """Those that people rated."""
    events: Teller

    async def propose(self, draft: Draft, iteration: int) -> Draft | None:
        """The draft with questions written from its prompt; None where they are the same, or cannot be had.

        A question that is there already keeps its id and weight, so that its verdicts are not bought again.

        Raises:
            BudgetExceededError: A cap was reached.
            ModelError: An endpoint refuses every call.
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
        return None if new == draft.questions else Draft(draft.prompt, new)


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
