"""A run's result: what is written to ``result.json``, the diff of the prompt, and the verdicts of the first and the best
version; and what there is to see of it, in a notebook and as data frames.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..agents.asking import question_block
from ..evaluation.pass_fail import figures_of, fitted_dict, pass_labels, threshold_for
from ..evaluation.scoring import ExampleScore
from ..evaluation.shown import View
from ..memory.result_file import RunRecord
from ..memory.result_parts import GainRecord, LearnedRecord, MeasureRecord, TriedRecord
from ..memory.run_directory import RunDirectory
from ..models.budget import RoleLedger, count
from ..prompts.text import shorten
from ..prompts.words import Figure, number_text
from ..stats.differences import difference_dict
from .events import QUOTED
from .modes.bench import Bench
from .modes.mode import SetUp
from .signals import Signal
from .subject import Draft, Observation, Outcome, Version
from .yardsticks import CorrelationYardstick, Yardstick


def build_result(
    bench: Bench,
    set_up: SetUp,
    outcome: Outcome,
    yardstick: Yardstick,
    tests: Mapping[int, Sequence[ExampleScore]],
    why_no_test: str | None,
    extras: Mapping[str, Any],
    pass_fail: Mapping[int, Mapping[str, Any]],
) -> RunRecord:
    """The result of a run, as others rely on it.

    ``tests`` are scores on the test examples by version number, ``extras`` what the mode measured besides, ``pass_fail``
    what :func:`pass_fail_sides` gives.
    """
    first, best, splits, budget, seen = (
        outcome.baseline,
        outcome.best,
        bench.splits,
        bench.gateway.budget,
        bench.coverage,
    )

    held_out, examples = {first.number: first.scores, best.number: best.scores}, splits.validation
    if best.crossed is not None:
        by, examples = best.crossed.ranked(), best.crossed.examples
        held_out = {first.number: by.before, best.number: by.after}

    def side(version: Version) -> dict[str, Any]:
        row: dict[str, Any] = {"prompt": version.prompt.text, "hash": version.prompt.hash}
        row["validation"] = yardstick.measure(held_out[version.number], examples)
        if version.number in tests:
            row["test"] = yardstick.measure(tests[version.number], splits.test)
        else:
            row["test"] = None
            row["reason"] = why_no_test
        for split, figures in pass_fail.get(version.number, {}).items():
            row[split] = figures if split == "threshold" else {**row[split], **figures}
        if version.draft.checklist is not set_up.start.checklist:
            row["checklist"] = version.draft.checklist.model_dump(mode="json") if version.draft.checklist else None
        if version.draft.calibration is not None:
            row["read_by"] = version.draft.calibration.model_dump(mode="json", exclude_none=True)
        if version.prompt.shown is not None:
            row["examples"] = version.prompt.shown.record.model_dump(mode="json", exclude_defaults=True)
        if version.draft.mode is not None:
            row["mode"] = version.draft.mode
        if version.draft.origins:
            row["origins"] = {
                name: each.model_dump(mode="json", by_alias=True) for name, each in version.draft.origins.items()
            }
        return row

    changed = best.number != first.number
    on_validation = None
    if changed:
        on_validation = yardstick.difference(held_out[first.number], held_out[best.number], examples)
    on_test = (
        yardstick.difference(tests[first.number], tests[best.number], splits.test)
        if changed and best.number in tests
        else None
    )
    row = {
        "mode": bench.job.command,
        "finish_reason": outcome.finish_reason,
        "iterations": outcome.iterations,
        **set_up.facts,
        "yardstick": yardstick.name,
        "baseline": side(first),
        "best": side(best),
        **({"crossed": True} if best.crossed is not None else {}),
        "gain": {"validation": difference_dict(on_validation), "test": difference_dict(on_test)},
        "accepted_edits": [each.to_dict() for each in outcome.tried if each.accepted],
        "rejected_edits": [each.to_dict() for each in outcome.tried if not each.accepted],
        "pruned_edits": [each.to_dict() for each in outcome.pruned],
        **({"wordings": [each.to_dict() for each in outcome.wordings]} if outcome.wordings else {}),
        "lessons": [lesson.model_dump(mode="json") for lesson in bench.memory.learned],
        **budget.to_dict(),
        **({} if budget.cost_usd is None else {"cost_usd": _money(budget.cost_usd)}),
        "roles": {name: _ledger(ledger) for name, ledger in sorted(budget.roles.items())},
        "coverage": seen.share,
        "min_coverage": bench.job.options.min_coverage,
        "missing": {"abstained": seen.abstained, "parse_error": seen.parse_errors, "api_error": seen.api_errors},
        "test_looked_at": bool(tests),
        **extras,
    }
    return RunRecord.model_validate(row)


def pass_fail_sides(
    bench: Bench, outcome: Outcome, yardstick: Yardstick, tests: Mapping[int, Sequence[ExampleScore]]
) -> dict[int, dict[str, Any]]:
    """Thresholds and figures of the first and the best version where people's labels are pass or fail, by number.

    Each has a ``threshold``, fitted on the development examples as far as the version was seen there, and the figures at it
    on ``validation`` and ``test``. Empty where labels are no such ones, or the subject is no judge.
    """
    if not isinstance(yardstick, CorrelationYardstick):
        return {}
    targets, splits = yardstick.targets, bench.splits
    labels = pass_labels(bench.job.examples, targets)
    if labels is None:
        return {}
    sides: dict[int, dict[str, Any]] = {}
    for version in (outcome.baseline, outcome.best):
        if version.number not in outcome.seen:
            continue
        fitted = threshold_for(outcome.seen[version.number].scores, targets, labels)
        sides[version.number] = {"threshold": fitted_dict(fitted) | {"of": list(targets.dimensions)}}
        for split, scores, examples in (
            ("validation", version.scores, splits.validation),
            ("test", tests.get(version.number), splits.test),
        ):
            if scores is not None and not (split == "validation" and outcome.best.crossed):
                how = {"resamples": yardstick.resamples, "seed": yardstick.seed}
                figures = figures_of(scores, examples, targets, labels, fitted.value, **how)
                sides[version.number][split] = figures
    return sides


def _ledger(ledger: RoleLedger) -> dict[str, Any]:
    row = vars(ledger) | {"cost_usd": _money(ledger.cost_usd)}
    return row if ledger.unpriced_calls else {name: value for name, value in row.items() if name != "unpriced_calls"}


def _money(dollars: float) -> float:
    """Rounded, so that the order in which the answers came does not show in the last digits of their sum."""
    return round(dollars, 9)


def entering(start: Draft, accepted: Draft) -> list[str]:
    """Every line that an accepted version's prompt and questions have beyond the starting ones, as it stands there.

    Signs that a terminal would follow in place of showing them are shown as U+FFFD.
    """
    known = set(start.prompt.text.splitlines())
    lines = [line for line in accepted.prompt.text.splitlines() if line.strip() and line not in known]
    if accepted.checklist is not None:
        before = () if start.checklist is None else start.checklist.questions
        asked = {line for each in before for line in question_block(each).splitlines()}
        now = (line for each in accepted.checklist.questions for line in question_block(each).splitlines())
        lines += [line for line in now if line not in asked]
    return ["".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in line) for line in lines]


def keep_verdicts(
    bench: Bench, outcome: Outcome, tests: Mapping[int, Observation], signal: Signal, yardstick: Yardstick
) -> None:
    """Write ``verdicts/`` in the run's directory; nothing is bought for it.

    Args:
        bench: Its run directory is written to.
        outcome: The versions, and what they did on the development examples.
        tests: What they did on the test examples, by version number; empty where the test was not judged.
        signal: What the verdicts should have been, as far as it knows.
        yardstick: What the test was measured with.

    P(yes) of ``reference.jsonl`` is that of the best version's question, where a question was turned round.

    ``NNN-test.jsonl`` and ``NNN-development.jsonl`` hold the verdicts of version NNN, ``scores.jsonl`` the score of
    each test example by version with the wanted one, ``reference.jsonl`` the wanted P(yes) of each example and
    question, ``outputs.jsonl`` what a generator wrote, by version, and ``questions.jsonl`` the questions that only
    one example has.

    Raises:
        AskanceError: The disk is full.
    """
    wanted: dict[tuple[str, str], float] = {}
    versions = {version.number: version for version in (outcome.baseline, outcome.best)}
    asked = outcome.best.draft.checklist
    shared = {} if asked is None else {question.id: question for question in asked.questions}
    for number, version in versions.items():
        for split, seen in (("development", outcome.seen.get(number)), ("test", tests.get(number))):
            if seen is None:
                continue
            bench.run.save_verdicts(f"{number:03d}-{split}", seen.verdicts)
            for each in seen.verdicts:
                value = signal.reference(version.draft, each.example, each.question)
                if value is not None:
                    same = None if each.example in seen.own_checklists else shared.get(each.question)
                    question = same or seen.polarity(each.example, each.question)
                    wanted[each.example, each.question] = question.p_good(value)
    rows = [{"example": pair[0], "question": pair[1], "p_yes": value} for pair, value in wanted.items()]
    _write(bench.run, "reference", rows)
    _write(bench.run, "scores", [row for number, seen in tests.items() for row in _scores(number, seen, yardstick)])
    every = [*outcome.seen.items(), *tests.items()]
    given = {example.id: example.output for example in bench.job.examples}
    _write(
        bench.run,
        "outputs",
        [
            {"version": number, "example": example.id, "output": example.output}
            for number, seen in every
            for example in seen.examples
            if example.output != given[example.id]
        ],
    )
    known = {question.id for question in bench.job.checklist.questions} if bench.job.checklist else set()
    own = {
        (name, question.id): question
        for _, seen in every
        for name, checklist in seen.own_checklists.items()
        for question in checklist.questions
        if question.id not in known
    }
    _write(
        bench.run,
        "questions",
        [
            {"example": name, "id": question.id, "text": question.text, "dimension": question.dimension}
            for (name, _), question in own.items()
        ],
    )


def _scores(version: int, seen: Observation, yardstick: Yardstick) -> Iterable[dict[str, Any]]:
    """Each example's score on the dimensions that were measured, and the wanted one, in [0, 1]."""
    targets = yardstick.targets if isinstance(yardstick, CorrelationYardstick) else None
    for each in seen.scores:
        yield {
            "version": version,
            "example": each.example,
            "score": targets.score(each) if targets else each.overall,
            "wanted": targets.overall(each.example) if targets else None,
        }


def _write(run: RunDirectory, name: str, rows: Iterable[Mapping[str, Any]]) -> None:
    """One object a line; no file where there are none."""
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
    if lines:
        run.write(f"verdicts/{name}.jsonl", "".join(lines))


def run_view(directory: Path, result: RunRecord) -> View:
    """What was learned, the measures, the edits and the lessons of ``result.json``."""
    measured = [("at the start", each.split, each.before) for each in result.splits]
    measured += [("accepted", each.split, each.after) for each in result.splits]
    scores = [
        _score(version, split, dimension, row)
        for version, split, whole in measured
        if whole is not None
        for dimension, row in {"overall": whole, **whole.dimensions}.items()
    ]
    accepted, rejected = result.accepted_edits, result.rejected_edits
    edits = [_edits(row, True) for row in accepted] + [_edits(row, False) for row in rejected]
    lessons = [
        lesson.model_dump(include={"id", "text", "direction", "dimension", "status", "reason"})
        | {"support": lesson.support}
        for lesson in result.lessons
    ]
    questions = [_question(each) for each in result.questions]
    asked = _asked(result)
    report = directory / "report.html"
    gains = [_gain(result.yardstick, each.split, each.gain) for each in result.splits if each.gain]
    counted = f"{count(len(accepted), 'candidate')} accepted, {len(rejected)} rejected"
    lines = [
        *asked,
        *([result.asked_both_ways.sentence] if result.asked_both_ways else []),
        f"It ended because {result.why_it_ended}.",
        f"{counted}; {count(len(lessons), 'lesson')}.",
        *gains,
        f"{result.spending}; coverage {result.coverage:.1%}",
        *([f"The whole story: {report}"] if report.is_file() else []),
    ]
    overall = [row for row in scores if row["dimension"] == "overall"]
    tables = {
        "scores": lambda: scores,
        "edits": lambda: edits,
        "lessons": lambda: lessons,
        "questions": lambda: questions,
        "learned": lambda: [_learned(each) for each in result.learned],
        "overall": lambda: overall,
    }
    gain = gains[-1] if gains else "Nothing was accepted"
    shown = ("learned", "overall", "edits")
    return View(f"{result.mode} in {directory}", lines, tables, shown, f"{gain}; {counted}.")


def _asked(result: RunRecord) -> list[str]:
    """What became of questions from comments, in a sentence; none where the run was not to learn any."""
    revised = [each.sentence for each in result.revised_questions]
    return [*revised, *_learning(result)]


def _learning(result: RunRecord) -> list[str]:
    """The same of new questions."""
    learned, proposed = result.learned, len(result.questions)
    if result.shown is not None and not learned:
        return [f"The judge is now shown {result.shown.name} that people judged: what to keep is the judge."]
    if learned:
        same = " Its prompt is what it was: what to keep is the judge." if result.same_prompt else ""
        listed = ", ".join(each.id for each in learned)
        return [
            f"The judge has learned {count(len(learned), 'question')} from comments, of {proposed}: {listed}.{same}"
        ]
    if proposed:
        return [f"No question was learned from comments: of {count(proposed, 'question')} none joined the judge."]
    return [f"No question was learned, as {result.why_no_questions}."] if result.why_no_questions else []


def _learned(row: LearnedRecord) -> dict[str, Any]:
    """A question that joined, as people are to see it."""
    split, worth = row.worth.last or (None, None)
    said = shorten(" ".join(row.comments[0].split()), QUOTED) if row.comments else None
    return {
        "question": row.criterion,
        "worth": worth and Figure.of(worth, "+.3f"),
        "on": split,
        "examples": len(row.sources),
        "comment": said,
    }


def _question(row: LearnedRecord) -> dict[str, Any]:
    """``worth`` with its interval is that on ``split``: test, or where that was not judged, validation."""
    split, worth = row.worth.last or (None, None)
    return {
        "id": row.id,
        "text": row.text,
        "good": row.good,
        "joined": row.joined,
        "worth": worth and worth.value,
        "low": worth and worth.low,
        "high": worth and worth.high,
        "split": split,
        "n": worth and worth.n,
        "effect": row.effect,
        "comments": list(row.comments),
        "examples": list(row.sources),
        "reason": row.reason,
    }


def _score(version: str, split: str, dimension: str, row: MeasureRecord) -> dict[str, Any]:
    names = ("spearman", "kendall", "pearson", "mean", "n", "low", "high", "reason")
    return {"version": version, "split": split, "dimension": dimension} | {name: getattr(row, name) for name in names}


def _edits(row: TriedRecord, accepted: bool) -> dict[str, Any]:
    return {
        "accepted": accepted,
        "iteration": row.iteration,
        "lessons": row.lessons,
        "gain": row.gain and row.gain.value,
        "low": row.gain and row.gain.low,
        "high": row.gain and row.gain.high,
        "judged": row.judged,
        "reason": row.reason,
    }


def _gain(yardstick: str, split: str, gain: GainRecord) -> str:
    said = number_text(gain.value, gain.low, gain.high)
    return f"Gain on {split} ({yardstick}): {said}{f' ({gain.reason})' if gain.reason else ''}"
