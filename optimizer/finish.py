"""The end of a run: one look at the test, then the prompt, its diff, the verdicts and ``result.json`` are written."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from ..agents.requests import question_block
from ..evaluation.judge_file import JUDGES, judge_of_run
from ..evaluation.pass_fail import figures_of, fitted_dict, pass_labels, threshold_for
from ..evaluation.raters.steps import figures_of_steps, fitted_steps, steps_of_people
from ..evaluation.scoring import ExampleScore
from ..memory.certificate_file import CertificateRecord
from ..memory.decision import decide
from ..memory.records import ChangedQuestionRecord
from ..memory.result_file import FinishReason, RunRecord
from ..memory.run_directory import JUDGE_FILE, OUTPUTS_FILE, RunDirectory
from ..models.writing import WRITING_FILE
from ..prompts.checklist import Checklist, dump_checklist, marked
from ..prompts.errors import BudgetExceededError, InputError, UnapprovedError
from ..prompts.examples import Example, documents
from ..prompts.formats.form import MARK
from ..prompts.formats.several import by_name
from ..prompts.text import prompt_diff
from ..stats.differences import difference_dict
from ..stats.resampling import Resampling
from .acceptance import CorrelationYardstick, Yardstick
from .events import RunFinished, RunWritten, TestOpened
from .mode import RunContext, SetUp
from .run_result import RunResult
from .signals import Signal
from .subject import Draft, Observation, Outcome, Version


async def finish(
    context: RunContext, set_up: SetUp, outcome: Outcome, report: Callable[[Path], object] | None, *, ask_first: bool
) -> RunResult:
    """Look at the test once, then write the result; ``result.json`` and the report come last. Raises UnapprovedError if
    ``ask_first`` is set and the accepted version has lines that the start does not have. Raises AskanceError where an
    endpoint is down, or the disk is full."""
    run, events = context.run, context.events
    tests: dict[int, Observation] = {}
    extras: dict[str, Any] = {}
    why_not = None
    yardstick = set_up.yardstick
    try:
        if (
            outcome.finish_reason == "notes_failed" and set_up.needs_notes
        ):  # the test may be looked at only once, and this run is to be resumed
            why_not = "the test was not judged, as no disagreement could be read and the run is to go on"
        else:
            events.emit(TestOpened([outcome.baseline.number, outcome.best.number]))
            if set_up.at_the_test is not None:
                yardstick = await set_up.at_the_test()
            tests = await _look_at_test(context, set_up, outcome)
            for buy in set_up.bought_facts:
                extras |= await buy(yardstick, outcome, tests)
    except BudgetExceededError as error:
        why_not = f"the test was not judged: {error}"
        outcome = replace(outcome, finish_reason=cast("FinishReason", error.limit))
    for fact in set_up.free_facts:
        extras |= fact(yardstick, outcome, tests)
    extras |= _changed(context, outcome)
    certificate: CertificateRecord | None = extras.pop("certificate", None)
    if certificate is not None:
        (certified,) = certificate.targets.values()
        extras["certificate"] = {"decision": certified.decision, "reason": certified.reason}
    result = _build_result(context, set_up, outcome, yardstick, tests, why_not, extras)
    new = _entering(outcome.baseline.draft, outcome.best.draft)
    if new and not _is_written(run, result):
        shown = "\n".join(["These lines are new in what was accepted:", *(f"  + {line}" for line in new)])
        if ask_first:
            raise UnapprovedError(shown)
        events.say(shown)
    run.write(f"prompt{outcome.best.prompt.suffix}", outcome.best.prompt.file_text)
    for name, text in by_name(outcome.best.prompt.text).items():
        run.write(f"program/{name}.md", text)
    writing = outcome.best.draft.writing
    run.write_or_remove(WRITING_FILE, writing.to_yaml() if writing is not None and writing.stated else None)
    run.write("changes.diff", prompt_diff(outcome.baseline.prompt.text, outcome.best.prompt.text))
    context.keep_lessons(outcome.best, extras.get("questions", ()), outcome.iterations, ended=True)
    _keep_verdicts(context, outcome, tests, set_up.signal, yardstick)
    if result.mode in JUDGES:
        kept = judge_of_run(result, context.job.config, context.job.questions)
        run.write(JUDGE_FILE, kept.to_yaml())
        run.write("checklist.yaml", dump_checklist(kept.checklist))
    events.emit(RunFinished(outcome.finish_reason, outcome.best.number))
    if certificate is not None:
        certificate.model_copy(update={"looks": 1 + earlier_looks(run)}).save(run.path)
    run.save_result(result)
    if report is not None:
        report(run.path)
    events.tell(RunWritten(run.path))
    return RunResult(run.path, result)


async def _look_at_test(context: RunContext, set_up: SetUp, outcome: Outcome) -> dict[int, Observation]:
    tests: dict[int, Observation] = {}
    # the best version first: if it also asks the starting questions, their answers are not bought again
    for version in {outcome.best.number: outcome.best, outcome.baseline.number: outcome.baseline}.values():
        thing = "prompt" if version.draft.checklist is outcome.baseline.draft.checklist else "judge"
        name = "the starting prompt" if version is outcome.baseline else f"the accepted {thing}"
        context.events.phase(f"looking at the test examples, once, with {name}")
        tests[version.number] = await set_up.subject.observe(version.draft, context.splits.test, context.events.advance)
    return tests


def _changed(context: RunContext, outcome: Outcome) -> dict[str, Any]:
    found: dict[str, Any] = {}
    changed = outcome.best.draft.checklist
    if changed is not None and context.job.checklist is not None:
        found["changed_questions"] = _changed_questions(context.job.checklist, changed)
    if looks := earlier_looks(context.run):
        found["earlier_test_looks"] = looks
    return found


def earlier_looks(run: RunDirectory) -> int:
    """Return how often the test examples were judged before the run was made longer."""
    return int(run.read_config().get("earlier_test_looks", 0))


def _is_written(run: RunDirectory, result: RunRecord) -> bool:
    """Whether an earlier process has written the same prompt and checklist."""
    try:
        before = run.read_result().best
    except InputError:
        return False
    return (before.prompt, before.checklist) == (result.best.prompt, result.best.checklist)


def _build_result(
    context: RunContext,
    set_up: SetUp,
    outcome: Outcome,
    yardstick: Yardstick,
    tests: Mapping[int, Observation],
    why_no_test: str | None,
    extras: Mapping[str, Any],
) -> RunRecord:
    """Build the result of a run; ``extras`` are the parts that not every run has."""
    first, best, splits = outcome.baseline, outcome.best, context.splits
    budget, seen = context.gateway.budget, context.coverage
    tested = {number: observed.scores for number, observed in tests.items()}
    steps, pass_fail = _fitted_sides(context, outcome, yardstick, tested)

    def without_measures(version: Version) -> Sequence[ExampleScore] | None:
        """Return the version's scores on test by its questions alone; None if it has no measure or was not tested."""
        if version.number not in tests or not (measured := measures_of(version.draft)):
            return None
        verdicts, soft = tests[version.number].verdicts, context.job.options.soft
        return version.draft.scores_without(measured, splits.test, verdicts, soft=soft)

    question_scores = without_measures(best)
    held_out: dict[int, Sequence[ExampleScore]]
    held_out, examples = {first.number: first.scores, best.number: best.scores}, splits.validation
    if best.crossed is not None:
        by, examples = best.crossed.ranked(), best.crossed.examples
        held_out = {first.number: by.before, best.number: by.after}

    def side(version: Version) -> dict[str, Any]:
        draft = version.draft
        row: dict[str, Any] = {"prompt": draft.prompt.text, "hash": draft.hash}
        if draft.prompt.form is not None:
            row["form"] = draft.prompt.form.record.model_dump() | {"file": draft.prompt.file_text}
        row["validation"] = yardstick.measure(held_out[version.number], examples)
        if version.number in tested:
            row["test"] = yardstick.measure(tested[version.number], splits.test)
            if (scores := without_measures(version)) is not None:
                row["without_measures"] = yardstick.measure(scores, splits.test)
        else:
            row |= {"test": None, "reason": why_no_test}
        if version.number in steps:
            row["steps"] = steps[version.number]
        for split, figures in pass_fail.get(version.number, {}).items():
            row[split] = figures if split == "threshold" else {**row[split], **figures}
        judge = getattr(set_up.subject, "model", None)
        if judge is not None and context.gateway.thinkers.get(judge.identity):
            row["p_yes_from"] = context.gateway.provenance.get(judge.identity)
        return row | _beside_the_prompt(draft, set_up.start)

    def gain(scores: Mapping[int, Sequence[ExampleScore]], examples: Sequence[Example]) -> dict[str, Any] | None:
        if best.number == first.number or best.number not in scores:
            return None
        return difference_dict(yardstick.difference(scores[first.number], scores[best.number], examples))

    row = {
        "mode": context.job.command,
        "finish_reason": outcome.finish_reason,
        "iterations": outcome.iterations,
        **set_up.known_facts,
        "yardstick": yardstick.name,
        "baseline": side(first),
        "best": side(best),
        **({"crossed": True} if best.crossed is not None else {}),
        "gain": {
            "validation": gain(held_out, examples),
            "test": gain(tested, splits.test),
            **(
                {}
                if question_scores is None
                else {"without_measures": gain({**tested, best.number: question_scores}, splits.test)}
            ),
        },
        "accepted_edits": [each for each in outcome.tried if each.accepted],
        "rejected_edits": [each for each in outcome.tried if not each.accepted],
        "pruned_edits": outcome.pruned,
        **({"wordings": [each.model_dump() for each in outcome.wordings]} if outcome.wordings else {}),
        "lessons": [lesson.model_dump(mode="json") for lesson in context.memory.learned],
        **budget.to_dict(),
        **({} if budget.cost_usd is None else {"cost_usd": round(budget.cost_usd, 9)}),  # as that of each role
        "roles": {name: ledger.to_dict() for name, ledger in sorted(budget.roles.items())},
        "coverage": seen.share,
        "min_coverage": context.job.options.min_coverage,
        "missing": {"abstained": seen.abstained, "parse_error": seen.parse_errors, "api_error": seen.api_errors},
        "test_looked_at": bool(tests),
        **extras,
    }
    record = RunRecord.model_validate(row)
    advice = decide(record, len(splits.test))
    return record.model_copy(update={"decision": advice.choice, "decision_reason": advice.sentence})


def measures_of(draft: Draft) -> set[str]:
    """Return the ids of a draft's measures."""
    return set() if draft.checklist is None else {each.id for each in draft.checklist.measures}


def _beside_the_prompt(draft: Draft, start: Draft) -> dict[str, Any]:
    """Return the parts of a version's row that only some drafts have: changed questions, a calibration, and so on."""
    row: dict[str, Any] = {}
    if draft.checklist is not start.checklist:
        row["checklist"] = draft.checklist.model_dump(mode="json") if draft.checklist else None
    if draft.calibration is not None:
        row["read_by"] = draft.calibration.model_dump(mode="json", exclude_none=True)
    if draft.prompt.shown is not None:
        row["examples"] = draft.prompt.shown.record.model_dump(mode="json", exclude_defaults=True)
    if draft.mode is not None:
        row["mode"] = draft.mode
    if draft.writing is not None:
        row["writing"] = draft.writing.stated
    if draft.origins:
        row["origins"] = {name: each.model_dump(mode="json", by_alias=True) for name, each in draft.origins.items()}
    return row


def _changed_questions(start: Checklist, now: Checklist) -> list[ChangedQuestionRecord]:
    new = {each.id: marked(each.text, each.good, each.sees) for each in now.questions}
    old = {each.id: marked(each.text, each.good, each.sees) for each in start.questions}
    both = [(name, said, new.get(name)) for name, said in old.items()]
    return [ChangedQuestionRecord(id=name, old=was, new=said) for name, was, said in both if was != said]


def _fitted_sides(
    context: RunContext, outcome: Outcome, yardstick: Yardstick, tests: Mapping[int, Sequence[ExampleScore]]
) -> tuple[dict[int, dict[str, Any]], dict[int, dict[str, Any]]]:
    """Return figures of the first and the best version, by number, at thresholds that are fitted on development.

    The first dictionary has thresholds between the steps of people's ratings, the second between pass and fail. Each is
    empty if people did not label in this way, or the subject is no judge.
    """
    steps: dict[int, dict[str, Any]] = {}
    pass_fail: dict[int, dict[str, Any]] = {}
    if not isinstance(yardstick, CorrelationYardstick):
        return steps, pass_fail
    targets, splits, job = yardstick.targets, context.splits, context.job
    values, labels = steps_of_people(job.examples, targets, job.options.human_scale), pass_labels(job.examples, targets)
    resampling_options = {"resamples": yardstick.resamples, "seed": yardstick.seed}
    for version in (outcome.baseline, outcome.best):
        number = version.number
        if number not in outcome.seen:
            continue
        parts = {} if outcome.best.crossed else {"validation": (version.scores, splits.validation)}
        parts |= {"test": (tests[number], splits.test)} if number in tests else {}
        taught = outcome.seen[number].scores, splits.development, targets
        if values:
            kept, steps[number] = fitted_steps(*taught, values)
            for split, (scores, examples) in parts.items():
                sampling = Resampling(documents(examples), **resampling_options)
                steps[number][split] = figures_of_steps(scores, targets, kept, sampling)
        if labels is not None:
            fitted = threshold_for(*taught, labels)
            pass_fail[number] = {"threshold": fitted_dict(fitted) | {"of": list(targets.dimensions)}}
            for split, (scores, examples) in parts.items():
                pass_fail[number][split] = figures_of(
                    scores, examples, targets, labels, fitted.value, **resampling_options
                )
    return steps, pass_fail


def _entering(start: Draft, accepted: Draft) -> list[str]:
    """Return the lines of an accepted version's prompt, settings and questions that the start does not have."""
    known = set(start.prompt.text.splitlines())
    lines = [line for line in accepted.prompt.text.splitlines() if line.strip() and line not in known]
    lines = [line for line in lines if not MARK.fullmatch(line)]
    if accepted.writing is not None and accepted.writing != start.writing:
        lines.append(f"{WRITING_FILE}: {accepted.writing.said}")
    if accepted.checklist is not None:
        before = () if start.checklist is None else start.checklist.questions
        asked = {line for each in before for line in question_block(each).splitlines()}
        now = (line for each in accepted.checklist.questions for line in question_block(each).splitlines())
        lines += [line for line in now if line not in asked]
    # a terminal would obey control characters instead of showing them
    return ["".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in line) for line in lines]


def _keep_verdicts(
    context: RunContext, outcome: Outcome, tests: Mapping[int, Observation], signal: Signal, yardstick: Yardstick
) -> None:
    """Write ``verdicts/`` in the run's directory; nothing is bought for it.

    ``NNN-development.jsonl``, ``NNN-validation.jsonl`` and ``NNN-test.jsonl`` hold the verdicts of version NNN.
    ``scores.jsonl`` holds score and wanted score of each test example, by version. ``reference.jsonl`` holds the
    wanted P(yes) of each example and question; if a question was turned round, for the best version's question.
    ``outputs.jsonl`` holds a generator's outputs by version, and ``questions.jsonl`` the examples' own questions.
    """
    run, versions = context.run, {each.number: each for each in (outcome.baseline, outcome.best)}
    wanted: dict[tuple[str, str], float] = {}
    asked = outcome.best.draft.checklist
    shared = {} if asked is None else {question.id: question for question in asked.questions}
    # files of an earlier result of this run, before it was resumed; files that are not written again are removed
    stale_files = {file.stem: file for file in (run.path / "verdicts").glob("[0-9]*-*.jsonl")}
    for number, version in versions.items():
        if version.verdicts:
            stale_files.pop(name := f"{number:03d}-validation", None)
            run.save_verdicts(name, version.verdicts)
        for split, seen in (("development", outcome.seen.get(number)), ("test", tests.get(number))):
            if seen is None:
                continue
            stale_files.pop(name := f"{number:03d}-{split}", None)
            run.save_verdicts(name, seen.verdicts)
            for each in seen.verdicts:
                value = signal.reference(version.draft, each.example, each.question)
                if value is not None:
                    same = None if each.example in seen.own_checklists else shared.get(each.question)
                    question = same or seen.polarity(each.example, each.question)
                    wanted[each.example, each.question] = question.p_good(value)
    for file in stale_files.values():
        file.unlink()
    observations = [*outcome.seen.items(), *tests.items()]
    _write(run, "reference", ({"example": pair[0], "question": pair[1], "p_yes": p} for pair, p in wanted.items()))
    _write(run, "scores", (row for number, seen in tests.items() for row in _scores(number, seen, yardstick)))
    if not context.job.is_judge:
        rows = ((number, each) for number, seen in observations for each in seen.examples)
        _write(
            run, "outputs", ({"version": number, "example": each.id, "output": each.output} for number, each in rows)
        )
        best, every_best = outcome.best, (outcome.seen.get(outcome.best.number), tests.get(outcome.best.number))
        written = [outcome.best.outputs, *(seen.examples for seen in every_best if seen is not None)]
        run.write(OUTPUTS_FILE, "".join(_output_rows(written, best.draft.hash)))
    _write(run, "questions", _own_questions(context.job.checklist, [seen for _, seen in observations]))


def _scores(version: int, seen: Observation, yardstick: Yardstick) -> Iterable[dict[str, Any]]:
    """Yield each example's score over the measured dimensions and the wanted score, in [0, 1]."""
    targets = yardstick.targets if isinstance(yardstick, CorrelationYardstick) else None
    for each in seen.scores:
        score = targets.score(each) if targets else each.overall
        wanted = targets.overall(each.example) if targets else None
        yield {"version": version, "example": each.example, "score": score, "wanted": wanted}


def _output_rows(written: Iterable[Sequence[Example]], version: str) -> Iterator[str]:
    """Yield the lines of ``outputs.jsonl``: the accepted prompt's outputs on validation, development and test."""
    for examples in written:
        for example in examples:
            row = example.model_dump(mode="json", include={"id", "input", "output"}, exclude_none=True)
            yield json.dumps({**row, "version": version}, ensure_ascii=False) + "\n"


def _own_questions(common: Checklist | None, every: Iterable[Observation]) -> list[dict[str, Any]]:
    known = {question.id for question in common.questions} if common else set()
    questions = {
        (name, question.id): question
        for seen in every
        for name, checklist in seen.own_checklists.items()
        for question in checklist.questions
        if question.id not in known
    }
    return [
        {"example": name, "id": question.id, "text": question.text, "dimension": question.dimension}
        for (name, _), question in questions.items()
    ]


def _write(run: RunDirectory, name: str, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write one object per line; without objects the file is removed."""
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
    if lines:
        run.write(f"verdicts/{name}.jsonl", "".join(lines))
    else:
        (run.path / "verdicts" / f"{name}.jsonl").unlink(missing_ok=True)
