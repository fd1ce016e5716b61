"""The lesson memory of a run: a run takes lessons from it, and adds its own.

When it begins, the run copies the memory's content. So a resumed run has the same result, even if the memory has
changed since.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from ..memory.lesson_memory import LessonMemory
from ..memory.memory_contents import (
    Entry,
    MemoryContents,
    QuestionInRun,
    RefusedEdit,
    RememberedLesson,
    RememberedQuestion,
    RemovedEntry,
    remembered_lesson,
    state_of,
)
from ..memory.memory_directory import MEMORY_FILE, MemoryDirectory, facts_of_run, read_memory
from ..memory.records import CriterionRecord
from ..memory.run_directory import RunDirectory
from ..prompts.checklist import CHECKS, Checklist
from ..prompts.errors import InputError, as_typed
from ..prompts.formatting import count
from ..prompts.lessons import Edit, Lesson
from .events import Teller
from .job import Job
from .subject import Draft, Version

TRIED_FOR_ONE = 2
"""Questions of a memory that are tried, per question that may join in a round."""


def memory_for(job: Job, run: RunDirectory | None, *, make: bool = True) -> MemoryContents | None:
    """Read the memory's content as it was when a job's run began, from the run's own copy if there is one.

    ``run`` is None for an estimate without a run. Without ``make`` no new memory is made. Raises InputError where the
    memory is no directory, or is damaged. Raises AskanceError where it cannot be written."""
    if job.options.memory is None:
        return None
    if run is not None and run.config_file.is_file():
        copy = run.path / "inputs" / MEMORY_FILE
        return read_memory(copy) if copy.is_file() else None
    path = Path(job.options.memory)
    if run is not None and path.resolve() == run.path.resolve():
        raise InputError(f"{path}: the memory and the run need a directory each.")
    return MemoryDirectory.create(path).touch() if make else MemoryDirectory.foresee(path)


@dataclass
class Remembering:
    """The lesson memory as one run uses it."""

    path: Path
    loaded: MemoryContents
    run: RunDirectory
    checklist: Checklist | None
    about: str
    """``judge`` or ``generator``."""
    events: Teller
    checked: bool = False
    """Whether a checker also looks at the outputs, so that lessons about checks are useful."""
    _since: dict[str, int] = field(default_factory=dict, init=False)
    """First iteration of each lesson, by id."""
    _tried: bool = field(default=False, init=False)
    _refused: dict[str, list[RefusedEdit]] = field(default_factory=dict, init=False)
    """Edits that this run refused for good, by lesson."""

    @classmethod
    def of(cls, job: Job, run: RunDirectory, events: Teller) -> Remembering | None:
        """Return the memory of a job; None where it has none."""
        if job.options.memory is None or job.memory is None:
            return None
        about = "judge" if job.is_judge else "generator"
        checked = bool(job.checker)
        return cls(run.memory(Path(job.options.memory)), job.memory, run, job.checklist, about, events, checked)

    def recall(self, memory: LessonMemory) -> None:
        """Add the remembered lessons, all untried, and those that people removed to ``memory``.

        Their evidence is left out, because it is about other examples. A lesson that ``memory`` knows word for word
        from an earlier run is not added again. A lesson that it knows in words that were changed or removed since is
        forgotten.
        """
        earlier = {lesson.id: lesson for lesson in memory.lessons}
        known = {(lesson.text, lesson.direction, lesson.dimension) for lesson in earlier.values()}
        for lesson in self._lessons():
            if (lesson.text, lesson.direction, lesson.dimension) not in known:
                if earlier.pop(lesson.id, None):
                    memory.forget(lesson.id)
                said = lesson.model_dump(include={"id", "text", "direction", "dimension", "kind", "kind_reason"})
                memory.recall(Lesson(**said, evidence=(), requirement=self._requirement(lesson)))
        for removal in self.loaded.removed:
            if removal.key[0] == "question" or removal.key[1] != self.about:
                continue
            for old in list(earlier.values()):
                if old.id == removal.id or (
                    old.text in removal.texts and (old.direction, old.dimension) == removal.key[2:]
                ):
                    memory.forget(earlier.pop(old.id).id)
            common_fields = {
                "direction": removal.key[2],
                "dimension": removal.key[3],
                "requirement": self._requirement(removal),
            }
            for number, text in enumerate(removal.texts, 1):
                name = removal.id if number == 1 else f"{removal.id}/{number}"
                row = {"id": name, "text": text, "status": "removed", "evidence": (), **common_fields}
                memory.recall(Lesson.model_validate(row))

    def to_try(self, memory: LessonMemory, prompt: str) -> list[Lesson]:
        """Return lessons that were accepted when last tried, those that helped most runs first; only once in a run.
        Lessons that state a requirement are left to the step that states failing requirements."""
        if self._tried:
            return []
        self._tried = True
        asked = None if self.checklist is None else [*self.checklist.dimensions, *([CHECKS] if self.checked else [])]
        helped = [each for each in self._lessons() if each.helped and (asked is None or each.dimension in asked)]
        helped.sort(key=lambda each: -sum(one.status == "applied" for one in each.runs))
        known = {each.id: each for each in memory.lessons if memory.is_recalled(each)}
        lessons = [known[each.id] for each in helped if each.id in known]
        return [each for each in lessons if each.promptable and not each.requirement and each.text not in prompt]

    def candidates(self, most: int) -> list[CriterionRecord]:
        """Return questions to try, those that the last run kept first; ``most`` may join in a round. They have no
        sources among the examples, so their effect on all rejected examples decides."""
        if self.checklist is None:
            return []
        dimensions = self.checklist.dimensions
        best = sorted(self.loaded.questions, key=lambda each: each.joined, reverse=True)[: TRIED_FOR_ONE * most]
        return [
            CriterionRecord.of(
                each.text,
                each.dimension if each.dimension in dimensions else dimensions[0],
                "memory",
                comments=tuple(dict.fromkeys(text for one in each.runs for text in one.comments)),
            )
            for each in best
        ]

    def refused_before(self, draft: Draft, edit: Edit) -> str | None:
        """Return why an earlier run with the same models refused this edit of this draft for good; None where none did.
        With another model, prompt or checklist the same edit may help, so such runs do not count."""
        state = self._state(draft)
        for entry in self._lessons():
            for run in entry.runs:
                if run.command != self._facts["command"] or run.models != self._facts["models"]:
                    continue
                for each in run.refused:
                    if (each.before, each.old, each.new) == (state, edit.old, edit.new):
                        return f"no edit: {run.run} refused the same one of the same prompt ({each.reason})"
        return None

    def refuse(self, draft: Draft, edit: Edit, reason: str) -> None:
        """Remember, for each lesson of an edit, that the edit of this draft was refused for good."""
        found = RefusedEdit(before=self._state(draft), old=edit.old, new=edit.new, reason=reason)
        for name in edit.lessons:
            mine = self._refused.setdefault(name, [])
            if found not in mine:
                mine.append(found)

    @cached_property
    def _facts(self) -> dict[str, Any]:
        return facts_of_run(self.run)

    def _state(self, draft: Draft) -> str:
        asked = () if draft.checklist is None else draft.checklist.questions
        return state_of(draft.prompt.text, [each.criterion for each in asked])

    @property
    def removed_questions(self) -> list[str]:
        """Texts of the questions that people removed."""
        return [text for each in self.loaded.removed if each.key[0] == "question" for text in each.texts]

    def keep(
        self,
        lessons: Sequence[Lesson],
        best: Version,
        learned: Sequence[CriterionRecord],
        iteration: int,
        *,
        write: bool,
    ) -> None:
        """Add the run's lessons and questions so far to the memory; adding them again changes nothing. ``write`` is
        False while the run only repeats an earlier process. Raises InputError where the memory was damaged meanwhile,
        and AskanceError where it cannot be written."""
        for each in lessons:
            self._since.setdefault(each.id, iteration)
        if not write:
            return
        if not self.path.is_dir():
            self.events.say(
                f"the memory {self.path} is not there any more, so what was learned is in the run alone. Put it back "
                f"and resume the run to add it: askance resume {as_typed(self.run.path)}"
            )
            return
        facts = self._facts
        found: list[Entry] = [
            remembered_lesson(
                facts,
                each,
                iteration=self._since[each.id],
                questions=self._asked,
                edits=best.edits,
                refused=self._refused.get(each.id, ()),
            )
            for each in lessons
        ]
        found += [_question(facts, each, best) for each in learned if not each.is_measure]
        texts = {each.id: each.text for each in self.loaded.lessons}
        before, after = MemoryDirectory(self.path).add(facts["fingerprint"], found, texts)
        if more := len(after.entries) - len(before.entries):
            held = f"{count(len(after.lessons), 'lesson')} and {count(len(after.questions), 'question')}"
            self.events.say(f"{more} added to the memory {self.path}, which now holds {held}")

    def _lessons(self) -> list[RememberedLesson]:
        return [each for each in self.loaded.lessons if each.about == self.about]

    def _requirement(self, entry: RememberedLesson | RemovedEntry) -> str | None:
        """Return the id of the question or check that a lesson states, if this run has it with the same words."""
        same = self._asked.get(entry.requirement or "") == entry.requirement_text
        return entry.requirement if same else None

    @property
    def _asked(self) -> dict[str, str]:
        return {each.id: each.text for each in self.checklist.questions} if self.checklist else {}


def _question(facts: Mapping[str, Any], found: CriterionRecord, best: Version) -> RememberedQuestion:
    joined = found.id in best.draft.origins
    refused = found.reason is None or found.was_tried
    reason = None if joined else "the acceptance test did not accept it" if refused else found.reason
    kept = {name: getattr(found, name) for name in ("origin", "sources", "comments", "worth", "iteration")}
    record = QuestionInRun.model_validate({**facts, **kept, "name": found.id, "joined": joined, "reason": reason})
    return RememberedQuestion(
        id="", text=found.text, dimension=found.dimension, good=found.good or "yes", runs=(record,)
    )
