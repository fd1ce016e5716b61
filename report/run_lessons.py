"""The lessons of a run with their disagreements, and its learned questions with their worth and their history."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..evaluation.measures.told import MeasuredCase, cases_by_measure
from ..memory.records import CriterionRecord, LessonRecord
from ..memory.why import QuestionStory
from ..optimizer.run_result import FOUND
from ..prompts.checklist import ComputedMeasure
from ..prompts.examples import Example
from ..prompts.formatting import MOST_LISTED, Figure, names_text
from ..prompts.human_feedback import one_line
from ..prompts.text import shorten
from ..stats.differences import Difference
from .charts import Scale
from .run_candidates import ShownCandidate
from .run_data import FIELDS, RunData

SHOWN_EXAMPLES = 12
"""Most examples shown in full for one lesson; further disagreements are only named."""
STATUSES = ("applied", "failed its trial", "rejected", "retired", "beyond the prompt", "not tried")
"""Fates of a lesson, in the order of the report."""


@dataclass(frozen=True)
class LessonView:
    """A lesson with its fate and its evidence."""

    number: int
    found: LessonRecord
    status: str
    reason: str | None
    notes: int
    """Number of notes that were joined in this lesson."""
    cases: Sequence[tuple[str, Sequence[ShownDisagreement]]]
    """Example id with the disagreements on it."""
    further: Sequence[str]
    """Keys of the disagreements that are not shown."""
    edit: int | None
    """Number of the accepted edit that carries the lesson."""
    asked: str | None = None
    """Text of the stated question. None for a check, whose name says it, and for a lesson that a note-taker drew."""
    recalled: bool = False
    """Whether the lesson came from a lesson memory and was tried before any note was taken."""
    trial: Mapping[str, Any] | None = None
    """The lesson's last trial on its own disagreements and on controls."""

    @property
    def reason_is_its_trial(self) -> bool:
        """Whether the reason already tells the result of the trial."""
        return self.status == "failed its trial"


def lessons(data: RunData, tried: Sequence[ShownCandidate]) -> list[LessonView]:
    """Return all lessons in the order of :data:`STATUSES`, those with most support first."""
    evidence = evidence_by_key(data)
    joined = [event["kept_as"] for event in data.of("lesson")]
    trials = {name: event["result"] for event in data.of("trial") for name in event["lessons"]}
    words = {each.id: each.criterion for each in data.checklist.questions} if data.checklist else {}
    recalled = {event["lesson"]["id"] for event in data.of("recalled")}
    made = []
    for number, row in enumerate(data.result.lessons, 1):
        status, reason, edit = _fate(row, tried)
        known = [evidence[key] for key in row.evidence if key in evidence]
        cases = group_by_example(known)
        shown = {each.key for _, group in cases[:SHOWN_EXAMPLES] for each in group}
        made.append(
            LessonView(
                number=number,
                found=row,
                status=status,
                reason=reason,
                notes=joined.count(row.id),
                cases=cases[:SHOWN_EXAMPLES],
                further=[key for key in row.evidence if key not in shown],
                edit=edit,
                asked=words.get(row.requirement or ""),
                recalled=row.id in recalled,
                trial=trials.get(row.id),
            )
        )
    return sorted(made, key=lambda each: (STATUSES.index(each.status), -each.found.support))


def _fate(row: LessonRecord, tried: Sequence[ShownCandidate]) -> tuple[str, str | None, int | None]:
    """Return a lesson's status, the reason, and the number of its accepted edit."""
    if not row.promptable:
        return "beyond the prompt", row.kind_reason, None
    # The candidates are asked before the written status, because a later merge changes that.
    refusal = None
    for candidate in tried:
        for edit in candidate.edits:
            if row.id not in edit.lessons:
                continue
            if candidate.accepted and edit.pruning and edit.pruning.removed:
                return "retired", f"taken out again at the end: {edit.pruning.reason}", edit.number
            if candidate.accepted:
                return "applied", candidate.reason, edit.number
            alone = len(candidate.edits) == 1
            refusal = candidate.reason if alone or refusal is None else refusal
    if row.status == "retired":
        return "retired", row.reason, None
    if refusal is not None:
        return "rejected", refusal, None
    if row.status == "rejected":
        reason = row.reason or ""
        if reason.startswith("failed its trial"):
            return "failed its trial", reason.removeprefix("failed its trial: "), None
        return "rejected", reason, None
    return "not tried", row.reason or "no edit was made of it before the run ended, or no room was left for it", None


@dataclass(frozen=True)
class ShownAnswer:
    """One side's answer in a disagreement."""

    yes: bool
    p_yes: float | None
    """None in the journals of older runs."""
    explanation: str | None

    @property
    def words(self) -> str:
        """``yes`` or ``no``; ``towards yes`` or ``towards no`` if P(yes) is not known."""
        answer = "yes" if self.yes else "no"
        return answer if self.p_yes is not None else f"towards {answer}"


@dataclass(frozen=True)
class ShownDisagreement:
    """One disagreement behind a lesson."""

    key: str
    example: str
    question: str
    question_text: str | None
    iteration: int | None
    target: ShownAnswer | None
    reference: ShownAnswer | None
    note: str | None
    """Text of this disagreement's own note, if the lesson was kept in other words."""
    output: str | None = None
    """The generator's output at that time; None if it was not kept, or if the run improves a judge."""

    @property
    def apart(self) -> float | None:
        """How far apart the two P(yes) are; None if one of them is not known."""
        if not (self.target and self.reference) or self.target.p_yes is None or self.reference.p_yes is None:
            return None
        return abs(self.target.p_yes - self.reference.p_yes)

    @property
    def same_side(self) -> bool:
        """Whether both sides gave the same answer and differ only in how sure they are."""
        return bool(self.target and self.reference and self.target.yes == self.reference.yes)


def evidence_by_key(data: RunData) -> dict[str, ShownDisagreement]:
    """Return every disagreement that was read, by its key ``example/question``."""
    events = data.of("reasons")
    target_reasons = {key: text for event in events for key, text in event.get("target", {}).items()}
    reference_reasons = {key: text for event in events for key, text in event.get("reference", {}).items()}
    notes = {
        key: event["text"]
        for event in data.of("lesson")
        if event["text"] != event.get("kept_text")
        for key in event["evidence"]
    }
    found = {}
    for event in data.of("disagreements"):
        for row in event.get("read", ()):
            key = f"{row['example']}/{row['question']}"
            found[key] = ShownDisagreement(
                key=key,
                example=row["example"],
                question=row["question"],
                question_text=data.question(row["example"], row["question"])[0],
                iteration=event.get("iteration"),
                target=_answer(row["target"], row.get("target_p_yes"), target_reasons.get(key)),
                reference=_answer(row["reference"], row.get("reference_p_yes"), reference_reasons.get(key)),
                note=notes.get(key),
                output=data.kept.outputs.get((version_at(data, event.get("iteration", 0)), row["example"])),
            )
    return found


def version_at(data: RunData, iteration: int) -> int:
    """Return the number of the best version when an iteration began."""
    accepted = [each for each in data.of("decision") if each["accepted"] and each.get("iteration", 0) < iteration]
    return int(accepted[-1]["version"]) if accepted else 0


def _answer(leaning: bool, p_yes: float | None, explanation: str | None) -> ShownAnswer:
    """Return one side's answer, from P(yes) if it is known, else from ``leaning``. A leaning is uncertain, because
    judges with the same answer can also disagree."""
    return ShownAnswer(leaning if p_yes is None else p_yes >= 0.5, p_yes, explanation or None)


def group_by_example(evidence: Sequence[ShownDisagreement]) -> list[tuple[str, list[ShownDisagreement]]]:
    """Group disagreements by example, in order of first appearance."""
    groups: dict[str, list[ShownDisagreement]] = {}
    for each in evidence:
        groups.setdefault(each.example, []).append(each)
    return list(groups.items())


MOST_CHARS = 200
"""Most characters that are shown of a part of an output."""
SHOWN_COMMENTS = 8
"""Most comments quoted for one question; the others are counted."""


@dataclass(frozen=True)
class LearnedQuestion:
    """A question that the accepted judge asks and the starting judge did not ask."""

    found: CriterionRecord
    weight: float | None
    """None if the run's checklist was not kept."""
    comments: Sequence[tuple[str, Sequence[str]]]
    """Comments behind the question, each with the ids of the question's examples that have it."""
    other_examples: Sequence[str]
    """Examples behind the question that have none of these comments in the run's inputs."""
    worth: Sequence[tuple[str, Difference]]
    """Gain over the same judge without the question, by split."""
    cases: Sequence[MeasuredCase] = ()
    """Test outputs that people did not pass, each with the part that decided the measure's number."""

    @property
    def more_comments(self) -> int:
        """Number of comments that are not quoted."""
        return max(0, len(self.comments) - SHOWN_COMMENTS)


@dataclass(frozen=True)
class WhatWasLearned:
    """The questions that joined the judge."""

    questions: Sequence[LearnedQuestion]
    scale: Scale
    """Axis on which the questions' worth is drawn."""


def what_was_learned(data: RunData) -> WhatWasLearned | None:
    """Return the learned questions. None if no question was proposed and the run improved a prompt or migrated; the
    page shows edits elsewhere."""
    result = data.result
    if not result.questions and (result.thing == "prompt" or result.mode == "migrate"):
        return None  # a migration words questions anew and learns none
    new = result.best.checklist
    weights = {each.id: each.weight for each in new.questions} if new else {}
    weights |= {each.id: each.weight for each in _measures(data)}
    cases = measured_cases(data)
    rows = [
        replace(_question(data, each, weights.get(each.id)), cases=cases.get(each.id, ())) for each in result.learned
    ]
    ends = [end for row in rows for _, gain in row.worth for end in (gain.low, gain.high, gain.value)]
    return WhatWasLearned(rows, Scale.over(ends))


def _measures(data: RunData) -> list[ComputedMeasure]:
    new = data.result.best.checklist
    written = (new.model_extra or {}).get("measures", ()) if new is not None else ()
    return [ComputedMeasure.model_validate(each) for each in written]


def measured_cases(data: RunData) -> dict[str, list[MeasuredCase]]:
    """Return the test outputs that people did not pass, by measure of the accepted judge. Empty if nobody rated
    outputs."""
    measures = _measures(data)
    wanted = {each.example: each.wanted for each in data.kept.scored if each.wanted is not None}
    if not measures or not wanted:
        return {}
    examples = {
        name: Example.model_validate({"id": name, **{each: row[each] for each in FIELDS if row.get(each)}})
        for name, row in data.examples.items()
        if row.get("output")
    }
    values: dict[str, dict[str, float]] = {}
    for (example, question), verdict in data.kept.answers(data.kept.best).items():
        if verdict.value is not None:
            values.setdefault(question, {})[example] = verdict.value
    return cases_by_measure(measures, examples, values, wanted)


def _question(data: RunData, found: CriterionRecord, weight: float | None) -> LearnedQuestion:
    said = {name: data.comments.get(name, ()) for name in found.sources}
    comments = [(text, [name for name, texts in said.items() if text in texts]) for text in found.comments]
    told = {name for _, names in comments for name in names}
    other_examples = [name for name in found.sources if name not in told]
    worth = [
        (split, gain) for split, gain in (("test", found.worth.test), ("validation", found.worth.validation)) if gain
    ]
    return LearnedQuestion(found, weight, comments, other_examples, worth)


def question_lines(story: QuestionStory, cases: Sequence[MeasuredCase] = ()) -> Iterator[tuple[int, str]]:
    """Yield the history of a question: paragraphs, each with its indent. ``cases`` are outputs that a measure marks
    down."""
    yield 0, f"{story.criterion} [{story.id}]"
    if story.origin == "start":
        yield 0, "It stood in the checklist that the run began with."
        return
    fate = {"accepted": "Learned", "waiting": "Not decided yet"}.get(story.status, f"Not learned: {story.reason}")
    yield 0, f"{fate}. It was proposed in iteration {story.iteration}."
    if found := FOUND.get(story.origin):
        yield 2, f"It comes from {found}"
    for comment in story.comments:
        on = f", on {names_text(comment.examples, MOST_LISTED)}" if comment.examples else ""
        yield 2, f"From the comment “{comment.text}”{on}"
    if story.good is not None and story.origin == "measure":
        yield 2, f"Examples that teach: a {'low' if story.good == 'no' else 'high'} number speaks for an output"
    elif story.good is not None:
        nearer, means = ("yes", "a fault") if story.good == "no" else ("no", "good")
        yield 2, f"Development examples: those outputs are nearer to {nearer} than accepted ones, so yes is {means}"
    if story.effect is not None:
        yield (
            2,
            f"Against other rejected outputs it speaks {story.effect:+.2f} more than against accepted ones (1 at most)",
        )
    for version in story.measured:
        verb = "accepted" if version.accepted else "rejected"
        others = f", together with {', '.join(version.together)}" if version.together else ""
        tried = f"Acceptance test, version {version.version} {verb}{others}"
        yield 2, f"{tried}: {version.reason}{interval_of(version.gain)}"
    for split, gain in story.worth.items():
        yield 2, f"Worth on {split}, over the judge without it: {Figure.of(gain, '+.3f')}, n = {gain['n']}"
    for case in cases:
        said = f": “{shorten(one_line(case.part), MOST_CHARS)}”" if case.part else ""
        yield 2, f"{case.example}: {case.told}{said}"


def interval_of(gain: Mapping[str, Any] | None) -> str:
    """Return the interval of a gain as text after its reason; empty if there is no interval."""
    span = Figure.of(gain, "+.3f").span("-") if gain else None
    return f", 95% interval [{', '.join(span)}]" if span else ""
