"""Results as tables on standard output."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Literal

from rich import box
from rich.console import Console
from rich.table import Table

from ..evaluation.scoring import yes_rates

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ..evaluation.evaluate import Agreement, Evaluation
    from ..memory.result_file import (
        CalibratedRecord,
        EditRecord,
        GainRecord,
        LessonRecord,
        MeasureRecord,
        RunRecord,
    )
    from ..optimizer.runner import RunResult
    from ..stats.differences import Difference
    from ..stats.resampling import Statistic


def evaluation_tables(found: Evaluation) -> None:
    """Coverage, mean scores, yes-rates and correlations of an evaluation."""
    out = Console(highlight=False)
    seen = found.coverage
    missing = [
        f"{count} {what}"
        for count, what in (
            (seen.abstained, "abstained"),
            (seen.parse_errors, "not readable"),
            (seen.api_errors, "failed"),
        )
        if count
    ]
    what = f" ({', '.join(missing)})" if missing else ""
    out.print(f"{found.model}: coverage {seen.answered}/{seen.asked} verdicts = {seen.share:.1%}{what}", soft_wrap=True)
    if found.asking is not None:
        out.print(_left_out(found), soft_wrap=True)
    low, high = found.scale
    scores = table_of("dimension", f"mean score ({low:g} to {high:g})")
    for name, value in found.means().items():
        scores.add_row(name, "undefined" if value is None else f"{value:.3f}")
    out.print(scores)
    asked = Counter(verdict.question for verdict in found.verdicts)
    rates = table_of("question", *(["asked"] if found.asking else []), "share of yes")
    for question, rate in yes_rates(found.verdicts).items():
        rates.add_row(question, *([str(asked[question])] if found.asking else []), f"{rate:.1%}")
    out.print(rates)
    if found.agreement:
        out.print(_agreement_table(found))
        for reason in _undefined(found.agreement):
            out.print(f"undefined: {reason}", soft_wrap=True)
    out.print(found.budget.sentence)


def _left_out(found: Evaluation) -> str:
    """How many verdicts were not asked for, and how far off scores can be."""
    seen = found.coverage
    share = seen.not_asked / (seen.asked + seen.not_asked)
    text = f"Not asked, as it could not matter: {seen.not_asked} verdicts ({share:.1%} of all)."
    if found.largest_error is None:
        return text
    return f"{text} No score is further than {found.largest_error:.3f} from that of all questions."


def run_summary(done: RunResult) -> None:
    """What a run came to: the gain, whether to adopt the prompt, the edits and the lessons behind them."""
    out = Console(highlight=False)
    result = done.record
    out.print(f"\nThe run ended because {result.why_it_ended}.", soft_wrap=True)
    out.print(f"{_measured(result)}, 95% intervals:")
    table = table_of("split", "n", "at the start", "accepted", "difference")
    for split, before, after, gain in result.splits:
        said = _gain(gain) if gain else "" if result.changed else "the same prompt"
        table.add_row(split, "" if before is None else str(before.n), _measure(before), _measure(after), said)
    out.print(table)
    lessons = {lesson.id: lesson for lesson in result.lessons}
    if result.finish_reason != "calibrated" and not result.changed:
        out.print(f"No edit passed the gate: {_why_none(result)}. The prompt stays as it was.", soft_wrap=True)
    for tried in result.accepted_edits:
        out.print(f"\nAccepted: {tried.reason}", soft_wrap=True)
        for edit in tried.edits:
            _edit(out, edit, lessons)
    for pruned in result.pruned_edits:
        verb = "Taken out again" if pruned.removed else "Kept"
        names = ", ".join(pruned.edit.lessons)
        out.print(f"{verb}: {names}: {pruned.reason}", style="dim", markup=False, soft_wrap=True)
    for tried in result.rejected_edits:
        names = ", ".join(tried.lessons) or "new questions"
        out.print(f"Rejected: {names}: {tried.reason}", style="dim", markup=False, soft_wrap=True)
    _lessons(out, result.lessons)
    if result.calibration:
        _calibration(out, result.calibration)
    out.print(f"\n{result.spending}; coverage {result.coverage:.1%}", soft_wrap=True)
    out.print(f"Prompt: {done.directory / 'prompt.md'}", markup=False, soft_wrap=True)


def _why_none(result: RunRecord) -> str:
    """What became of the lessons of a run that accepted no edit."""
    count, failed = len(result.rejected_edits), result.failed_trials
    if count:
        return f"{count} candidate{'s were' if count > 1 else ' was'} tried and rejected"
    if failed:
        lessons = "1 lesson failed its trial" if failed == 1 else f"{failed} lessons failed their trial"
        return f"{lessons} on the development examples, before validation was paid for"
    return "no candidate was proposed"


def _measured(result: RunRecord) -> str:
    """What the numbers of a run are."""
    return f"Spearman with {result.whose}" if result.yardstick == "Spearman" else result.yardstick.capitalize()


def _lessons(out: Console, lessons: Sequence[LessonRecord]) -> None:
    """What was learnt; apart from it what no prompt can carry."""
    kinds = {"promptable": "Lessons drawn from the disagreements:", "computational": "The prompt cannot fix these:"}
    for kind, heading in kinds.items():
        mine = [lesson for lesson in lessons if lesson.kind == kind]
        if mine:
            out.print(f"\n{heading}")
        for lesson in mine:
            said = lesson.status if lesson.promptable else lesson.kind_reason
            text = f"  {lesson.id} ({said}, support {lesson.support}): {lesson.text}"
            out.print(text, markup=False, soft_wrap=True)
            if lesson.is_closed and lesson.reason:
                out.print(f"      {lesson.reason}", style="dim", markup=False, soft_wrap=True)


def _calibration(out: Console, calibration: Mapping[str, Mapping[str, CalibratedRecord]]) -> None:
    """What thresholds and Platt scaling alone would have done, on the test examples."""
    best, baseline = calibration["best"], calibration["baseline"]
    out.print("\nWithout an edit, calibrated on the development examples (test examples):")
    table = table_of("prompt", "reading", "Spearman", "mean error", "drift")
    sides = {"start": baseline} if best == baseline else {"start": baseline, "accepted": best}
    for name, side in sides.items():
        for reading, row in side.items():
            errors = (row.errors.mean_absolute, row.errors.drift)
            shown = ["undefined" if value is None else f"{value:+.3f}" for value in errors]
            table.add_row(name, reading, _measure(row), shown[0].lstrip("+"), shown[1])
    out.print(table)


def _edit(out: Console, edit: EditRecord, lessons: Mapping[str, LessonRecord]) -> None:
    added = edit.new.replace(edit.old, "").strip() if edit.old in edit.new else None
    if added is not None:
        out.print(f"  + {added}", style="green", markup=False, soft_wrap=True)
    else:
        out.print(f"  - {edit.old}", style="red", markup=False, soft_wrap=True)
        out.print(f"  + {edit.new}", style="green", markup=False, soft_wrap=True)
    for name in edit.lessons:
        lesson = lessons[name]
        seen = f"{lesson.support} disagreement(s): {', '.join(lesson.evidence)}"
        out.print(f"      lesson {name}: {lesson.text} From {seen}", markup=False, soft_wrap=True)


def _agreement_table(found: Evaluation) -> Table:
    table = table_of("agreement with people", "n", "Spearman", "Kendall", "Pearson")
    for each in found.agreement:
        pooled = each.pooled
        table.add_row(
            each.dimension,
            str(pooled.spearman.n),
            _brief(pooled.spearman),
            _brief(pooled.kendall),
            _brief(pooled.pearson),
        )
        if each.per_document is not None:
            average = each.per_document.average
            name = f"  per document ({each.per_document.used} used, {each.per_document.undefined} undefined)"
            table.add_row(name, str(average.n), _brief(average), "", "")
        if each.per_system is not None:
            system = each.per_system
            row = (_brief(system.spearman), _brief(system.kendall), _brief(system.pearson))
            table.add_row("  per system", str(system.spearman.n), *row)
    return table


def _brief(found: Statistic) -> str:
    """A statistic for a narrow column; why it is undefined stands under the table."""
    return "undefined" if found.value is None else statistic_text(found)


def _undefined(agreement: Iterable[Agreement]) -> list[str]:
    """Why statistics are undefined, each reason once."""
    found: list[Statistic] = []
    for each in agreement:
        for correlations in (each.pooled, each.per_system):
            if correlations is not None:
                found += [correlations.spearman, correlations.kendall, correlations.pearson]
        if each.per_document is not None:
            found.append(each.per_document.average)
    return list(dict.fromkeys(each.reason for each in found if each.value is None and each.reason))


def statistic_text(found: Statistic) -> str:
    """A statistic with its interval, or why it is undefined."""
    return _with_interval(found, "")


def difference_text(found: Difference) -> str:
    """A difference with its interval, or why it is undefined."""
    return _with_interval(found, "+")


def _with_interval(found: Statistic | Difference, sign: Literal["", "+"]) -> str:
    if found.value is None:
        return f"undefined: {found.reason}"
    if found.low is None or found.high is None:
        return f"{found.value:{sign}.3f}"
    return f"{found.value:{sign}.3f} [{found.low:{sign}.2f}, {found.high:{sign}.2f}]"


def _measure(row: MeasureRecord | None) -> str:
    if row is None:
        return "not looked at"
    if row.value is None:
        return f"undefined: {row.reason}"
    interval = "" if row.low is None else f" [{row.low:.2f}, {row.high:.2f}]"
    return f"{row.value:.3f}{interval}"


def _gain(gain: GainRecord) -> str:
    if gain.value is None:
        return f"undefined: {gain.reason}"
    interval = "" if gain.low is None else f" [{gain.low:+.2f}, {gain.high:+.2f}]"
    return f"{gain.value:+.3f}{interval}"


def table_of(*columns: str) -> Table:
    """An empty table with these columns; the first is never wrapped."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for number, column in enumerate(columns):
        table.add_column(column, overflow="fold", no_wrap=number == 0)
    return table
