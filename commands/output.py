"""What the commands write: results as tables or JSON, progress, and whether enough verdicts are there."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

import click
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..evaluation.pass_fail import NAMES, confusion_text, form_of, require_at_least
from ..evaluation.progress import Counting, showing
from ..evaluation.scoring import Coverage
from ..evaluation.shown import Shown, cell_text, columns
from ..memory.result_file import CROSSED, RunRecord
from ..memory.result_parts import EditRecord, LessonRecord, MeasureRecord, ParityRecord
from ..memory.run_directory import JUDGE_FILE
from ..prompts.errors import CoverageError
from ..prompts.rows import column
from ..prompts.tables import PARQUET_SUFFIXES, parquet_package, suffix_of
from ..prompts.text import shorten, visible
from ..prompts.verdicts import Verdict, save_verdicts
from ..prompts.words import Figure, percent
from . import terminal
from .learned import learned_questions, shown_examples
from .terminal import echo

if TYPE_CHECKING:
    from ..agents.buying import Estimate
    from ..evaluation.diagnosis import Diagnosis
    from ..evaluation.evaluation import Evaluation
    from ..evaluation.shown import Rows
    from ..optimizer.runner import RunResult


_ESCAPED = {code: f"\\u{code:04x}" for code in (*range(0x7F, 0xA0), 0x2028, 0x2029)}
"""What may stand in JSON as it is, and a terminal or a program that reads lines may not take for text."""


def dump_json(value: Any) -> str:
    """A result as the text of a file."""
    return json.dumps(value, ensure_ascii=False, indent=2).translate(_ESCAPED) + "\n"


def echo_json(value: Any) -> None:
    """Print a value as JSON."""
    click.echo(dump_json(value), nl=False)


def echo_estimate(estimate: Estimate, *, as_json: bool) -> None:
    """Print what judging would take."""
    if as_json:
        echo_json(asdict(estimate))
        return
    echo(
        f"{estimate.verdicts} verdicts: {estimate.calls} API calls, {estimate.stored} answers already there; "
        f"{estimate.size}. Nothing was bought."
    )


def console(quiet: bool) -> AbstractContextManager[Counting]:
    """Somebody who watches a command, fit for what standard error is."""
    return showing(not quiet)


def check_output(output: str | None) -> None:
    """See, before anything is bought, that verdicts can be written to such a file.

    Raises:
        MissingExtraError: Parquet needs ``pyarrow``.
    """
    if output is not None and suffix_of(output) in PARQUET_SUFFIXES:
        parquet_package()


def tell_judged(
    found: Evaluation | Diagnosis, output: str | None, *, as_json: bool, least: float, fail_under: float | None = None
) -> None:
    """Write the verdicts, print the result, and check the coverage, then ``--fail-under``.

    Raises:
        AskanceError: The verdicts cannot be written, or the pass rate is below ``fail_under``.
        CoverageError: As :func:`check_coverage`.
    """
    if output:
        save_verdicts(output, found.verdicts)
    if as_json:
        echo_json(found.to_dict())
    else:
        show(found)
        if found.budget is not None:
            echo(found.budget.sentence)
        if output:
            echo(f"{len(found.verdicts)} verdicts are in {output}.", err=True)
    check_coverage(found.verdicts, found.coverage, least)
    if fail_under is not None:
        sys.stdout.flush()
        require_at_least(found.to_dict(), fail_under)


def hush(context: click.Context, parameter: click.Parameter, quiet: bool) -> bool:
    """Behind ``--quiet``: while the command lasts, askance logs errors and no warnings."""
    if quiet:
        logger = logging.getLogger(__name__.partition(".")[0])
        context.call_on_close(partial(logger.setLevel, logger.level))
        logger.setLevel(logging.ERROR)
    return quiet


def check_coverage(verdicts: Iterable[Verdict], seen: Coverage, least: float) -> None:
    """Name the errors on standard error.

    Raises:
        CoverageError: Less than ``least`` of the verdicts are there, or none at all.
    """
    tell_errors(column(verdicts, "error"))
    require_share(seen.share, least, f"Only {seen.share:.1%} of the verdicts are there")
    if not seen.answered:
        sys.stdout.flush()
        raise CoverageError("Not one question was answered, so there is no result.")


def tell_errors(errors: Iterable[str | None]) -> None:
    """Name the first errors on standard error, each once, and say how many others there are."""
    different = list(dict.fromkeys(error for error in errors if error))
    for error in different[:3]:
        echo(f"askance: {error}", err=True)
    if others := len(different[3:]):
        echo(f"askance: and {others} other {'error' if others == 1 else 'errors'}.", err=True)


def require_share(share: float, least: float, lacking: str) -> None:
    """Check that enough is there; ``lacking`` says what share of what.

    Raises:
        CoverageError: ``share`` is less than ``least``, the ``--min-coverage``.
    """
    if share < least:
        sys.stdout.flush()
        raise CoverageError(
            f"{lacking}, less than --min-coverage {least:.1%}. Run the command again to ask for the missing ones."
        )


LONGEST = 40
"""Characters of a cell up to which the first column is not wrapped."""


def show(found: Shown) -> None:
    """A result on standard output: its title, its tables, and its sentences last, where they are read."""
    out, view = terminal.console(), found.view()
    out.print(view.title, soft_wrap=True)
    for name, rows in view.shown_tables().items():
        out.print(f"\n{view.caption(name)}", soft_wrap=True)
        print_rows(rows)
    for line in view.lines:
        out.print(line, soft_wrap=True)


def print_rows(rows: Rows) -> None:
    """A table on standard output, and below it why figures of it are undefined; those with one reason in one line."""
    out, names = terminal.console(), columns(rows)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in names:
        is_long = any(len(cell_text(row.get(name))) > LONGEST for row in rows)
        table.add_column(
            Text(visible(name.replace("_", " "))), overflow="fold", no_wrap=name == names[0] and not is_long
        )
    reasons: dict[str, list[str]] = {}
    for row in rows:
        table.add_row(*(Text(visible(cell_text(row.get(name)))) for name in names))
        for name, cell in row.items():
            if isinstance(cell, Figure) and cell.value is None and cell.reason:
                reasons.setdefault(cell.reason, []).append(f"{row[names[0]]}, {name.replace('_', ' ')}")
    if out.measure(table, options=out.options.update(max_width=1000)).maximum > out.width:
        table.collapse_padding, table.show_edge = True, False
        if any(" " in cell_text(row.get(names[0])) for row in rows):
            table.columns[0].no_wrap = False
    out.print(table)
    for reason, where in reasons.items():
        out.print(f"Undefined ({'; '.join(where)}): {reason}.", style="dim", soft_wrap=True)


def run_summary(done: RunResult) -> None:
    """What a run came to: what was learned, the figures, whether anything was accepted, the edits and their lessons."""
    out = terminal.console()
    result = done.record
    learned_questions(out, result)
    shown_examples(out, result)
    _pass_fail(out, result)
    out.print(f"\nThe run ended because {result.why_it_ended}.", soft_wrap=True)
    out.print(f"{_measured(result)}, 95% intervals:")
    rows: list[dict[str, Any]] = []
    for split, before, after, gain in result.splits:
        row = {"split": split, "n": before and before.n, "at the start": _measure(before), "accepted": _measure(after)}
        same = None if result.changed else f"the same {result.thing}"
        rows.append(row | {"difference": Figure.of(gain, "+.3f") if gain else same})
    print_rows(rows)
    if result.crossed:
        out.print(CROSSED, style="dim", soft_wrap=True)
    lessons = {lesson.id: lesson for lesson in result.lessons}
    if result.finish_reason != "calibrated" and not result.changed:
        why = result.why_unchanged
        out.print(f"Nothing was accepted: {why}. The {result.thing} stays as it was.", soft_wrap=True)
    elif result.changed and result.same_prompt:
        new = ["the questions and how they are read"] if result.best.checklist else []
        new += ["the examples that it is shown"] if result.shown else []
        out.print(f"The prompt stays as it was; {' and '.join(new)} are new.")
    for tried in result.accepted_edits:
        which = "" if tried.edits else f"{result.name_of(tried)}: "
        out.print(f"\nAccepted: {which}{tried.reason}", soft_wrap=True)
        for edit in tried.edits:
            _edit(out, edit, lessons)
    if result.instructions:
        _instructions(out, result)
    for pruned in result.pruned_edits:
        verb = "Taken out again" if pruned.removed else "Kept"
        names = ", ".join(pruned.edit.lessons)
        out.print(f"{verb}: {names}: {pruned.reason}", style="dim", soft_wrap=True)
    for tried in result.rejected_edits:
        out.print(f"Rejected: {result.name_of(tried)}: {tried.reason}", style="dim", soft_wrap=True)
    for worded in result.reworded:
        assert worded.after is not None, "an accepted wording is one"
        out.print(f"\nWorded anew ({worded.question}): {worded.reason}", soft_wrap=True)
        out.print(f"  - {worded.before.criterion}", style="red", soft_wrap=True)
        out.print(f"  + {worded.after.criterion}", style="green", soft_wrap=True)
    for split, sides in result.parity.items():
        _parity(out, split, sides)
    _lessons(out, result.lessons)
    if result.calibration:
        _calibration(out, result)
    out.print(f"\n{result.spending}; coverage {result.coverage:.1%}", soft_wrap=True)
    judge = done.directory / JUDGE_FILE
    if not (judge.is_file() and (result.best.examples or (result.changed and result.same_prompt))):
        out.print(f"Prompt: {done.directory / 'prompt.md'}", soft_wrap=True)
    if judge.is_file():
        out.print(f"Judge: {judge}, for askance evaluate DATA --judge {done.directory}", soft_wrap=True)


def _parity(out: Console, split: str, sides: Mapping[str, ParityRecord]) -> None:
    """How often the judge says what the source says, question by question."""
    before, after = sides["baseline"], sides["best"]
    out.print(f"\nThe same verdicts as the source, on {split} (share; kappa):")
    named = {"all questions": (before, after)}
    named |= {name: (was, after.questions[name]) for name, was in before.questions.items()}
    print_rows(
        [
            {
                "question": name,
                "n": was.same.n,
                "at the start": Figure.of(was.same),
                "accepted": Figure.of(now.same),
                "kappa at the start": Figure.of(was.kappa),
                "kappa accepted": Figure.of(now.kappa),
            }
            for name, (was, now) in named.items()
        ]
    )


def _pass_fail(out: Console, result: RunRecord) -> None:
    """Agreement, error rates and kappa where people's labels are pass or fail."""
    if result.pass_fail is None:
        return
    split, found = result.pass_fail
    out.print(
        f"\nPass or fail, on {split}, n = {found[0].measured.n}, 95% intervals; the threshold is from development:"
    )
    rows: list[dict[str, Any]] = [
        {"figure": label} | {each.name: Figure.of(getattr(each.measured, name), form_of(name)) for each in found}
        for name, label in NAMES.items()
    ]
    rows.append({"figure": "threshold"} | {each.name: Figure(each.threshold.value, form=".3g") for each in found})
    print_rows(rows)
    for each in found:
        why = f"; the threshold is not fitted: {each.threshold.reason}" if each.threshold.reason else ""
        said = f"{each.name}: {confusion_text(each.measured.confusion)}{why}"
        out.print(said, style="dim", soft_wrap=True)


def _measured(result: RunRecord) -> str:
    """What the numbers of a run are."""
    return result.yardstick.capitalize() if result.mode == "tune" else f"{result.yardstick} with {result.whose}"


def _lessons(out: Console, lessons: Sequence[LessonRecord]) -> None:
    """What was learnt; apart from it what no prompt can carry."""
    kinds = {"promptable": "Lessons drawn from the disagreements:", "computational": "The prompt cannot fix these:"}
    for kind, heading in kinds.items():
        mine = [lesson for lesson in lessons if lesson.kind == kind]
        if mine:
            out.print(f"\n{heading}")
        for lesson in mine:
            said = lesson.status if lesson.promptable else lesson.kind_reason
            seen = f"support {lesson.support}" if lesson.support else "from the memory"
            text = f"  {lesson.id} ({said}, {seen}): {lesson.text}"
            out.print(text, soft_wrap=True)
            if lesson.is_closed and lesson.reason:
                out.print(f"      {lesson.reason}", style="dim", soft_wrap=True)


def _calibration(out: Console, result: RunRecord) -> None:
    """What thresholds and Platt scaling alone would have done, on the test examples."""
    baseline = result.calibration["baseline"]
    best = result.calibration.get("best", baseline)
    what = "The starting judge alone" if result.thing == "judge" else "Without an edit"
    out.print(f"\n{what}, calibrated on the development examples (test examples):")
    sides = {"start": baseline} if best == baseline else {"start": baseline, "accepted": best}
    rows = [
        {result.thing: name, "reading": reading, "Spearman": _measure(row)}
        | {"MAE": Figure(row.errors.mean_absolute), "bias": Figure(row.errors.drift, form="+.3f")}
        for name, side in sides.items()
        for reading, row in side.items()
    ]
    print_rows(rows)
    if result.best.read_by is not None:
        out.print(READ_ALREADY, style="dim", soft_wrap=True)


READ_ALREADY = "The accepted judge is calibrated already: it is read against accepted outputs."


def _edit(out: Console, edit: EditRecord, lessons: Mapping[str, LessonRecord]) -> None:
    added = edit.new.replace(edit.old, "").strip() if edit.old in edit.new else None
    if added is not None:
        out.print(f"  + {added}", style="green", soft_wrap=True)
    else:
        out.print(f"  - {edit.old}", style="red", soft_wrap=True)
        if edit.new.strip():
            out.print(f"  + {edit.new}", style="green", soft_wrap=True)
    for name in edit.lessons:
        lesson = lessons[name]
        seen = f"{lesson.support} disagreement(s): {', '.join(lesson.evidence)}" if lesson.evidence else "the memory."
        out.print(f"      lesson {name}: {lesson.text} From {seen}", soft_wrap=True)


def _instructions(out: Console, result: RunRecord) -> None:
    """What each accepted instruction did to the outputs that pass its requirement."""
    out.print("\nOutputs that pass what each instruction is about, at the start and with the accepted prompt:")
    rows: list[dict[str, Any]] = []
    for each in result.instructions:
        row: dict[str, Any] = {"lesson": each.lesson, "instruction": shorten(each.text, 60)}
        for split, rates in (("validation", each.validation), ("test", each.test)):
            row[split] = (
                "not judged" if rates is None else f"{percent(rates.before)} → {percent(rates.after)}, n = {rates.n}"
            )
        rows.append(row)
    print_rows(rows)


def _measure(row: MeasureRecord | None) -> Figure | str:
    return "not looked at" if row is None else Figure.of(row.shown)
