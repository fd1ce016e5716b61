"""What makes a small note-taker useful, measured: lessons that pass the guards, and then their trial, per call spent.

Run ``python -m askance.experiments.note_taking DATA --checklist C --prompt P --verdicts V.jsonl --model M``. The verdicts
are those of ``askance evaluate DATA --checklist C --prompt P --model M -o V.jsonl``; the note-taker is the same model. Every
variant takes notes of the same disagreements with people; a call that a variant shares with another counts for both. A
shift is a change of log-odds towards people, as a mean over lessons: on a lesson's own evidence, on controls, elsewhere.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from ..agents.batch_notes import MOST_RULES, BatchNoteTaker
from ..agents.note_taker import NoteTaker
from ..agents.notes import NoteTaking
from ..evaluation.scoring import mean_score
from ..memory.verdict_store import VerdictStore
from ..models.base import CallError, Model
from ..models.gateway import Gateway
from ..models.resolve import Models
from ..prompts.checklist import load_checklist
from ..prompts.examples import load_examples
from ..prompts.lessons import Lesson
from ..prompts.prompt import load_prompt
from ..prompts.verdicts import read_verdicts
from .command_line import says_errors
from .note_taking_cases import Case, Judged, Tried, TryLesson, find_cases, lesson_trial
from .results_file import RESULTS, write_result

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

    def __init__(self, gateway: Gateway, model: Model, judged: Judged, *, seed: int, batches: bool = True) -> None:
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
        question = self._judged.checklist.question(case.disagreement.question)

        async def take() -> list[Lesson]:
            contrast = case.contrast
            return [
                await taker.take_note(case.disagreement, case.example, question, {}, f"L{number}", contrast=contrast)
            ]

        await self._counted(name, 1, take)

    async def _batch(self, cases: Sequence[Case]) -> None:
        """Cases on one question are read together."""
        if self._batches is None:
            return
        for question in self._judged.checklist.questions:
            group = [case for case in cases if case.disagreement.question == question.id]
            if not group:
                continue
            examples = {case.example.id: case.example for case in group}
            disputed = [case.disagreement for case in group]
            ids = [f"B{number}" for number in range(MOST_RULES)]
            take = partial(self._batches.take_notes, disputed, examples, question, {}, ids)
            await self._counted(BATCHES, len(group), take)

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
    parser = argparse.ArgumentParser(prog="python -m askance.experiments.note_taking", description=__doc__)
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
    judged = Judged(examples, checklist, load_prompt(given.prompt), verdicts)
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
    parts = ["python -m askance.experiments.note_taking", given.data.name]
    parts += [f"--{name} {getattr(given, name).name}" for name in ("checklist", "prompt", "verdicts")]
    parts += ["--model MODEL", f"--disagreements {given.disagreements}", f"--evidence {given.evidence}"]
    parts += [f"--controls {given.controls}", f"--seed {given.seed}"]
    return " ".join([*parts, *([f"--minutes {given.minutes:g}"] if given.minutes is not None else [])])


if __name__ == "__main__":
    sys.exit(main())
