"""Results as tables on standard output."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Literal

from rich import box
from rich.console import Console
from rich.table import Table

from ..evaluation.scoring import yes_rates
from ..memory.run_directory import FINISH_SENTENCES
from ..models.budget import spending_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..evaluation.evaluate import Agreement, Evaluation
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
    result = done.result
    reason = result["finish_reason"]
    out.print(f"\nThe run ended because {FINISH_SENTENCES[reason]}.", soft_wrap=True)
    out.print(f"{_measured(result)}, 95% intervals:")
    table = table_of("split", "n", "at the start", "accepted", "difference")
    for split in ("validation", "test"):
        first, best = result["baseline"][split], result["best"][split]
        gain = _gain((result["gain"] or {}).get(split), result)
        table.add_row(split, "" if first is None else str(first["n"]), _measure(first), _measure(best), gain)
    out.print(table)
    lessons = {lesson["id"]: lesson for lesson in result["lessons"]}
    if result["finish_reason"] != "calibrated" and not result["accepted_edits"]:
        out.print(f"No edit passed the gate: {_why_none(result)}. The prompt stays as it was.", soft_wrap=True)
    for tried in result["accepted_edits"]:
        out.print(f"\nAccepted: {tried['reason']}", soft_wrap=True)
        for edit in tried["edits"]:
            _edit(out, edit, lessons)
    for pruned in result["pruned_edits"]:
        verb = "Taken out again" if pruned["removed"] else "Kept"
        names = ", ".join(pruned["edit"]["lessons"])
        out.print(f"{verb}: {names}: {pruned['reason']}", style="dim", markup=False, soft_wrap=True)
    for tried in result["rejected_edits"]:
        names = ", ".join(name for edit in tried["edits"] for name in edit["lessons"]) or "new questions"
        out.print(f"Rejected: {names}: {tried['reason']}", style="dim", markup=False, soft_wrap=True)
    _lessons(out, lessons.values())
    if "calibration" in result:
        _calibration(out, result["calibration"])
    out.print(f"\n{spending_of(result)}; coverage {result['coverage']:.1%}", soft_wrap=True)
    out.print(f"Prompt: {done.directory / 'prompt.md'}", markup=False, soft_wrap=True)


def _why_none(result: Mapping[str, Any]) -> str:
    """What became of the lessons of a run that accepted no edit."""
    count = len(result["rejected_edits"])
    if count:
        return f"{count} candidate{'s were' if count > 1 else ' was'} tried and rejected"
    failed = sum("failed its trial" in (lesson["reason"] or "") for lesson in result["lessons"])
    if failed:
        lessons = "1 lesson failed its trial" if failed == 1 else f"{failed} lessons failed their trial"
        return f"{lessons} on the development examples, before validation was paid for"
    return "no candidate was proposed"


def _measured(result: Mapping[str, Any]) -> str:
    """What the numbers of a run are."""
    if result["yardstick"] != "Spearman":
        return str(result["yardstick"]).capitalize()
    return f"Spearman with {'people' if result['reference'] == 'human' else 'the source'}"


def _lessons(out: Console, lessons: Iterable[Mapping[str, Any]]) -> None:
    """What was learnt; apart from it what no prompt can carry."""
    kinds = {"promptable": "Lessons drawn from the disagreements:", "computational": "The prompt cannot fix these:"}
    for kind, heading in kinds.items():
        mine = [lesson for lesson in lessons if lesson["kind"] == kind]
        if mine:
            out.print(f"\n{heading}")
        for lesson in mine:
            said = lesson["status"] if kind == "promptable" else lesson["kind_reason"]
            support = f"{said}, support {len(lesson['evidence'])}"
            out.print(f"  {lesson['id']} ({support}): {lesson['text']}", markup=False, soft_wrap=True)
            if lesson["status"] in ("rejected", "retired") and lesson["reason"]:
                out.print(f"      {lesson['reason']}", style="dim", markup=False, soft_wrap=True)


def _calibration(out: Console, calibration: Mapping[str, Any]) -> None:
    """What thresholds and Platt scaling alone would have done, on the test examples."""
    best, baseline = calibration["best"], calibration["baseline"]
    out.print("\nWithout an edit, calibrated on the development examples (test examples):")
    table = table_of("prompt", "reading", "Spearman", "mean error", "drift")
    sides = {"start": baseline} if best == baseline else {"start": baseline, "accepted": best}
    for name, side in sides.items():
        for reading in ("uncalibrated", "thresholds", "platt"):
            row = side[reading]
            errors = [row["errors"][each] for each in ("mean_absolute", "drift")]
            shown = ["undefined" if value is None else f"{value:+.3f}" for value in errors]
            table.add_row(name, reading, _measure(row), shown[0].lstrip("+"), shown[1])
    out.print(table)


def _edit(out: Console, edit: Mapping[str, Any], lessons: Mapping[str, Mapping[str, Any]]) -> None:
    added = edit["new"].replace(edit["old"], "").strip() if edit["old"] in edit["new"] else None
    if added is not None:
        out.print(f"  + {added}", style="green", markup=False, soft_wrap=True)
    else:
        out.print(f"  - {edit['old']}", style="red", markup=False, soft_wrap=True)
        out.print(f"  + {edit['new']}", style="green", markup=False, soft_wrap=True)
    for name in edit["lessons"]:
        lesson = lessons[name]
        seen = f"{len(lesson['evidence'])} disagreement(s): {', '.join(lesson['evidence'])}"
        out.print(f"      lesson {name}: {lesson['text']} From {seen}", markup=False, soft_wrap=True)


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


def _measure(row: Mapping[str, Any] | None) -> str:
    if row is None:
        return "not looked at"
    value = row.get("mean", row["spearman"])
    if value is None:
        return f"undefined: {row['reason']}"
    interval = f" [{row['low']:.2f}, {row['high']:.2f}]" if row["low"] is not None else ""
    return f"{value:.3f}{interval}"


def _gain(row: Mapping[str, Any] | None, result: Mapping[str, Any]) -> str:
    if row is None:
        return "" if result["accepted_edits"] else "the same prompt"
    if row["value"] is None:
        return f"undefined: {row['reason']}"
    interval = f" [{row['low']:+.2f}, {row['high']:+.2f}]" if row["low"] is not None else ""
    return f"{row['value']:+.3f}{interval}"


def table_of(*columns: str) -> Table:
    """An empty table with these columns; the first is never wrapped."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for number, column in enumerate(columns):
        table.add_column(column, overflow="fold", no_wrap=number == 0)
    return table
