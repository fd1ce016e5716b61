"""What makes a small note-taker useful, measured: lessons that pass the guards, and then their trial, per call spent.

Run ``python -m askance.experiments.measured.note_taking DATA --checklist C --prompt P --verdicts V.jsonl --model M``. The verdicts
are those of ``askance evaluate DATA --checklist C --prompt P --model M -o V.jsonl``; the note-taker is the same model. Every
variant takes notes of the same disagreements with people; a call that a variant shares with another counts for both. A
shift is a change of log-odds towards people, as a mean over lessons: on a lesson's own evidence, on controls, elsewhere.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from ...agents.batch_notes import MOST_RULES, BatchNoteTaker
from ...agents.judging import Judging
from ...agents.note_taker import NoteTaker
from ...agents.notes import Case, NoteTaking
from ...agents.updater import Proposal, make_edit, split_parts
from ...evaluation.scoring import Targets, human_targets, mean_score, score_examples
from ...memory.verdict_store import VerdictStore
from ...models.base import CallError, Model
from ...models.gateway import Gateway
from ...models.resolve import Models
from ...optimizer.lessons import find_contrast
from ...optimizer.modes.judge import JudgeSubject
from ...optimizer.signals import HumanSignal
from ...optimizer.subject import Draft, Observation
from ...optimizer.trial import LessonTrial, TrialResult
from ...prompts.checklist import Checklist, Question, load_checklist
from ...prompts.errors import InputError
from ...prompts.examples import Example, load_examples
from ...prompts.lessons import Disagreement, Lesson
from ...prompts.prompt import Prompt, load_prompt
from ...prompts.verdicts import Verdict, read_verdicts
from ..command_line import RESULTS, says_errors, write_result

RESULT = RESULTS / "note_taking.json"
VARIANTS: Mapping[str, NoteTaking] = {
    "plain": NoteTaking(kinds=False),
    "kinds": NoteTaking(),
    "kinds, quote chosen": NoteTaking(choose_quote=True),
    "kinds, contrast": NoteTaking(contrast=True),
    "kinds, critique": NoteTaking(critique=True),
    "kinds, 3 samples": NoteTaking(samples=3),
    "everything": NoteTaking(samples=3, contrast=True, critique=True, choose_quote=True),
}
BATCHES = "batches"
BATCH = 4
NOTES_SHARE = 0.6
"""Of the time that is allowed; what is left is for the trials."""
THRESHOLD = 0.3
"""P(yes) minus people's score, mapped to [0, 1], from which a verdict is a disagreement (BinEval App. B)."""


@dataclass(frozen=True)
class Tried:
    """What a lesson did to the verdicts."""

    own: TrialResult
    """On its own evidence and on controls: the trial that decides in the loop."""
    elsewhere: TrialResult
    """On disagreements of the same questions that it was not drawn from; there are no controls."""


TryLesson = Callable[[Lesson], Awaitable[Tried]]


@dataclass(frozen=True)
class JudgedExamples:
    """A judge's verdicts on examples that people scored."""

    examples: Sequence[Example]
    checklist: Checklist
    prompt: Prompt
    verdicts: Sequence[Verdict]

    def targets(self) -> Targets:
        """People's scores of these examples.

        Raises:
            InputError: The checklist asks about no dimension that people rated.
        """
        return human_targets(self.examples, self.checklist)

    def observation(self) -> Observation:
        """The verdicts as the loop sees them."""
        scores = score_examples(self.examples, self.checklist, self.verdicts)
        return Observation(self.examples, self.verdicts, scores, self.checklist)

    def signal(self) -> HumanSignal:
        """People's scores as what the verdicts are held against."""
        return HumanSignal(self.targets(), self.examples, None, threshold=THRESHOLD)


def find_cases(judged: JudgedExamples, most: int) -> list[Case]:
    """The widest disagreements in which the judge was too lenient, questions taking turns, one an example.

    Raises:
        InputError: The verdicts were given with another prompt, or there is no disagreement.
    """
    strange = {each.prompt for each in judged.verdicts} - {judged.prompt.hash}
    if strange:
        raise InputError(
            f"The verdicts were given with the prompt {', '.join(sorted(strange))}, not with {judged.prompt.hash}. "
            "Give the prompt that they were given with."
        )
    draft, seen, signal = Draft(judged.prompt, judged.checklist), judged.observation(), judged.signal()
    reference = partial(signal.reference, draft)
    by_id = {example.id: example for example in judged.examples}
    groups: dict[str, list[Disagreement]] = {}
    for verdict in judged.verdicts:
        wanted = reference(verdict.example, verdict.question)
        if verdict.replicate or verdict.p_yes is None or wanted is None:
            continue
        question = judged.checklist.question(verdict.question)
        if question.p_good(verdict.p_yes) - wanted > THRESHOLD:
            groups.setdefault(verdict.question, []).append(_too_lenient(question, verdict, wanted))
    queues = [iter(sorted(group, key=lambda found: (-found.gap, found.key))) for group in groups.values()]
    cases: dict[str, Case] = {}
    while queues and len(cases) < most:
        queue = queues.pop(0)
        each = next((found for found in queue if found.example not in cases), None)
        if each is not None:
            question, contrast = judged.checklist.question(each.question), find_contrast(each, seen, reference)
            cases[each.example] = Case(each, by_id[each.example], question, contrast=contrast)
            queues.append(queue)
    if not cases:
        raise InputError(
            f"On no verdict is P(the good answer) more than {THRESHOLD} above people's score: nothing to take notes of."
        )
    return list(cases.values())


def _too_lenient(question: Question, verdict: Verdict, wanted: float) -> Disagreement:
    return Disagreement(
        example=verdict.example,
        question=verdict.question,
        target=question.is_good(True),
        reference=question.is_good(False),
        gap=question.p_good(verdict.p_yes or 0.0) - wanted,
        target_p_yes=verdict.p_yes,
        reference_p_yes=question.p_good(wanted),
    )


def with_lesson(prompt: Prompt, lesson: Lesson) -> Prompt:
    """The prompt with the lesson on a line of its own after its last part, without a call.

    Raises:
        InputError: All of the prompt is protected.
    """
    parts = split_parts(prompt.text)
    if not parts:
        raise InputError("All of the prompt is protected, so no lesson can be tried in it.")
    proposal = Proposal(part=len(parts), action="add", text=lesson.text)
    return prompt.apply(make_edit(prompt.text, parts[-1], proposal, lesson.id))


def lesson_trial(
    gateway: Gateway,
    judge: Model,
    judged: JudgedExamples,
    cases: Sequence[Case],
    *,
    evidence: int,
    controls: int,
) -> TryLesson:
    """How a lesson earns its place here: tried in the prompt, on its evidence and controls, and on the other cases."""
    subject = JudgeSubject(gateway, judge, Judging(), role="trial", soft=True, tally=lambda _: None)
    trial = LessonTrial(subject, judged.signal(), evidence=evidence, controls=controls)
    others = LessonTrial(subject, judged.signal(), evidence=len(cases), controls=0)
    disputed = [case.disagreement for case in cases]
    seen = judged.observation()
    before = Draft(judged.prompt, judged.checklist)

    async def try_lesson(lesson: Lesson) -> Tried:
        after = Draft(with_lesson(judged.prompt, lesson), judged.checklist)
        own = await trial.run(before, after, [lesson], seen)
        asked = {each.question for each in disputed if each.key in lesson.evidence}
        rest = tuple(each.key for each in disputed if each.question in asked and each.key not in lesson.evidence)
        return Tried(own, await others.run(before, after, [lesson.model_copy(update={"evidence": rest})], seen))

    return try_lesson


@dataclass
class Tally:
    """What one variant came to."""

    cases: int = 0
    calls: int = 0
    lessons: list[Lesson] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)

    def merged(self) -> list[Lesson]:
        """One lesson a text, with the evidence of all that say it, best supported first."""
        by_text: dict[str, Lesson] = {}
        for lesson in self.lessons:
            known = by_text.get(lesson.text, lesson)
            evidence = tuple(dict.fromkeys([*known.evidence, *lesson.evidence]))
            by_text[lesson.text] = known.model_copy(update={"evidence": evidence})
        return sorted(by_text.values(), key=lambda lesson: -lesson.support)


class Measurement:
    """All variants on the same cases, case by case, so that all have seen as much whenever time is up."""

    def __init__(
        self, gateway: Gateway, model: Model, judged: JudgedExamples, *, seed: int, batches: bool = True
    ) -> None:
        """``batches``: notes are taken in batches too."""
        task = judged.checklist.task
        self._gateway = gateway
        self._judged = judged
        self._takers = {
            name: NoteTaker(gateway, model, task, seed=seed, settings=settings) for name, settings in VARIANTS.items()
        }
        self._batches = BatchNoteTaker(gateway, model, task, seed=seed) if batches else None
        self.tallies = {name: Tally() for name in [*VARIANTS, *([BATCHES] if batches else [])]}

    async def take_notes(self, cases: Sequence[Case], time_is_up: Callable[[], bool]) -> None:
        """Have notes taken of the cases, until they or the time are used up."""
        seen = 0
        for case in cases:
            if time_is_up():
                break
            seen += 1
            for name, taker in self._takers.items():
                await self._one(name, taker, case, seen)
        for start in range(0, seen, BATCH):
            await self._batch(cases[start : min(start + BATCH, seen)])

    async def _one(self, name: str, taker: NoteTaker, case: Case, number: int) -> None:
        async def take() -> list[Lesson]:
            return [await taker.take_note(case, f"L{number}")]

        await self._counted(name, 1, take)

    async def _batch(self, cases: Sequence[Case]) -> None:
        """Cases on one question are read together."""
        if self._batches is None:
            return
        for question in self._judged.checklist.questions:
            group = [case for case in cases if case.question.id == question.id]
            if group:
                ids = [f"B{number}" for number in range(MOST_RULES)]
                await self._counted(BATCHES, len(group), partial(self._batches.take_notes, group, ids))

    async def _counted(self, name: str, cases: int, take: Callable[[], Any]) -> None:
        tally = self.tallies[name]
        before = self._spent()
        try:
            tally.lessons += await take()
        except CallError as error:
            if error.fatal:
                raise
            tally.refusals.append(str(error))
        tally.cases += cases
        tally.calls += self._spent() - before

    def _spent(self) -> int:
        """Calls of the note-taker, those that another variant had paid for included."""
        ledger = self._gateway.budget.role("note_taker")
        return ledger.calls + ledger.cached_calls


async def try_all(
    tallies: Mapping[str, Tally], try_lesson: TryLesson, time_is_up: Callable[[], bool]
) -> dict[tuple[str, tuple[str, ...]], Tried]:
    """Try the lessons of all variants, taking turns; the same lesson on the same evidence is tried once."""
    queues = [tally.merged() for tally in tallies.values()]
    found: dict[tuple[str, tuple[str, ...]], Tried] = {}
    for turn in range(max(map(len, queues), default=0)):
        for queue in queues:
            if turn < len(queue) and not time_is_up() and _key(queue[turn]) not in found:
                found[_key(queue[turn])] = await try_lesson(queue[turn])
    return found


def _key(lesson: Lesson) -> tuple[str, tuple[str, ...]]:
    return lesson.text, lesson.evidence


def summary(tally: Tally, trials: Mapping[tuple[str, tuple[str, ...]], Tried]) -> dict[str, Any]:
    """The figures of one variant; shares are None where there is nothing to take a share of."""
    lessons = tally.merged()
    tried = [trials[_key(lesson)] for lesson in lessons if _key(lesson) in trials]
    passed = sum(each.own.passed for each in tried)
    return {
        "disagreements": tally.cases,
        "calls": tally.calls,
        "notes_that_pass_the_guards": len(tally.lessons),
        "share_that_pass_the_guards": _share(len(tally.lessons), tally.cases),
        "distinct_lessons": len(lessons),
        "tried": len(tried),
        "passed_their_trial": passed,
        "share_that_pass_their_trial": _share(passed, len(tried)),
        "passed_per_100_calls": _share(100 * passed, tally.calls) if len(tried) == len(lessons) else None,
        "shift_of_own_evidence": _mean([each.own.evidence_shift for each in tried]),
        "shift_of_controls": _mean([each.own.control_shift for each in tried]),
        "shift_elsewhere": _mean([each.elsewhere.evidence_shift for each in tried]),
        "lessons": [
            {
                "text": lesson.text,
                "evidence": list(lesson.evidence),
                "trial": asdict(trials[_key(lesson)]) if _key(lesson) in trials else None,
            }
            for lesson in lessons
        ],
        "refused": len(tally.refusals),
    }


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 3) if whole else None


def _mean(shifts: Sequence[float | None]) -> float | None:
    """Mean change of log-odds of the lessons that were tried; every lesson counts the same."""
    mean = mean_score(shifts)
    return None if mean is None else round(mean, 3)


async def measure(
    measurement: Measurement, cases: Sequence[Case], try_lesson: TryLesson | None, *, seconds: float | None
) -> dict[str, Any]:
    """Take notes, try the lessons, count. ``try_lesson`` None: no trials. ``seconds`` None: as long as it takes."""
    start = time.monotonic()

    def later_than(share: float) -> Callable[[], bool]:
        return lambda: seconds is not None and time.monotonic() - start > share * seconds

    await measurement.take_notes(cases, later_than(NOTES_SHARE if try_lesson else 1.0))
    trials = await try_all(measurement.tallies, try_lesson, later_than(1.0)) if try_lesson else {}
    return {
        "disagreements": [case.disagreement.model_dump() for case in cases],
        "minutes": round((time.monotonic() - start) / 60, 1),
        "variants": {name: summary(tally, trials) for name, tally in measurement.tallies.items()},
    }


def as_text(result: Mapping[str, Any]) -> str:
    """One line a variant."""
    lines = [f"{'variant':22} notes  pass  distinct  tried  earned  calls  own    controls  elsewhere"]
    for name, row in result["variants"].items():
        shifts = [row[name] for name in ("shift_of_own_evidence", "shift_of_controls", "shift_elsewhere")]
        said = "  ".join("   -  " if each is None else f"{each:+6.2f}" for each in shifts)
        lines.append(
            f"{name:22} {row['disagreements']:5} {row['notes_that_pass_the_guards']:5} {row['distinct_lessons']:9} "
            f"{row['tried']:6} {row['passed_their_trial']:7} {row['calls']:6}  {said}"
        )
    return "\n".join(lines)


@says_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, write the result file."""
    parser = argparse.ArgumentParser(prog="python -m askance.experiments.measured.note_taking", description=__doc__)
    parser.add_argument("data", type=Path, help="examples with human scores, e.g. qags_cnndm.jsonl")
    parser.add_argument("--checklist", type=Path, required=True)
    parser.add_argument("--prompt", type=Path, required=True, help="the prompt that the verdicts were given with")
    parser.add_argument("--verdicts", type=Path, required=True, help="verdicts of the judge, from evaluate -o")
    parser.add_argument("--model", required=True, help="the judge, which takes the notes too, as provider/model")
    parser.add_argument("--api-base", help="address of an OpenAI-compatible server, for openai/NAME")
    parser.add_argument("--store", type=Path, help="keeps the answers, so that a second run goes on with them")
    parser.add_argument("--disagreements", type=int, default=8, help="how many notes each variant takes")
    parser.add_argument("--evidence", type=int, default=2, help="disagreements on which a lesson is tried at most")
    parser.add_argument("--controls", type=int, default=3, help="agreements on which a lesson is tried at most")
    parser.add_argument("--minutes", type=float, help="begin nothing new after so many minutes")
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("-o", "--output", type=Path, default=RESULT)
    given = parser.parse_args(arguments)
    result = {"command": _command(given), "model": given.model, **asyncio.run(_run(given))}
    write_result(given.output, result)
    print(as_text(result))
    return 0


async def _run(given: argparse.Namespace) -> dict[str, Any]:
    checklist = load_checklist(given.checklist)
    verdicts = read_verdicts(given.verdicts, questions=[question.id for question in checklist.questions])
    ids = {verdict.example for verdict in verdicts}
    examples = [example for example in load_examples(given.data) if example.id in ids]
    judged = JudgedExamples(examples, checklist, load_prompt(given.prompt), verdicts)
    cases = find_cases(judged, given.disagreements)
    with VerdictStore(given.store or ":memory:") as store:
        async with Models(api_base=given.api_base, timeout=600) as models:
            gateway, model = Gateway(store, max_concurrency=1), models.get(given.model)
            trial = lesson_trial(gateway, model, judged, cases, evidence=given.evidence, controls=given.controls)
            measurement = Measurement(gateway, model, judged, seed=given.seed)
            seconds = None if given.minutes is None else 60 * given.minutes
            return await measure(measurement, cases, trial, seconds=seconds)


def _command(given: argparse.Namespace) -> str:
    """The command without addresses and folders, which are somebody's own."""
    parts = ["python -m askance.experiments.measured.note_taking", given.data.name]
    parts += [f"--{name} {getattr(given, name).name}" for name in ("checklist", "prompt", "verdicts")]
    parts += ["--model MODEL", f"--disagreements {given.disagreements}", f"--evidence {given.evidence}"]
    parts += [f"--controls {given.controls}", f"--seed {given.seed}"]
    return " ".join([*parts, *([f"--minutes {given.minutes:g}"] if given.minutes is not None else [])])


if __name__ == "__main__":
    sys.exit(main())
