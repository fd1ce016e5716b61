"""Output of the commands: results as tables or JSON, and checks that enough verdicts are there."""

from __future__ import annotations

import json
import logging
import os
import re
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Literal

import click
from rich import box
from rich.table import Table
from rich.text import Text

from ..agents.buying import Estimate
from ..evaluation.evaluation_result import Evaluation
from ..evaluation.findings import Diagnosis
from ..evaluation.pass_fail import require_at_least
from ..evaluation.scoring import Coverage
from ..evaluation.view import Rows, Shown, cell_text, columns
from ..prompts.csv_tables import CSV_SUFFIXES
from ..prompts.errors import CoverageError, InputError
from ..prompts.formatting import Figure, coverage_text
from ..prompts.rows import column
from ..prompts.tables import EXCEL_SUFFIXES, PARQUET_SUFFIXES, file_and_sheet, parquet_package, suffix_of
from ..prompts.text import visible
from ..prompts.verdicts import Verdict, save_verdicts
from . import terminal
from .terminal import echo

_ESCAPED = {code: f"\\u{code:04x}" for code in (*range(0x7F, 0xA0), 0x2028, 0x2029, *range(0xD800, 0xE000))}
"""Escapes for characters that are valid in JSON, but that a terminal or a program that reads lines may not treat as
text. Halves of surrogate pairs are escaped, too, because they cannot be written."""


def dump_json(value: Any) -> str:
    """Return a result as JSON, as the text of a file."""
    return json.dumps(value, ensure_ascii=False, indent=2).translate(_ESCAPED) + "\n"


def echo_json(value: Any) -> None:
    """Print a value as JSON."""
    click.echo(dump_json(value), nl=False)


def echo_estimate(estimate: Estimate, *, as_json: bool) -> None:
    """Print an estimate of the calls that judging would take."""
    if as_json:
        echo_json(asdict(estimate))
        return
    echo(
        f"{estimate.verdicts} verdicts: {estimate.calls} API calls, {estimate.stored} answers already there; "
        f"{estimate.size}. Nothing was bought."
    )


def check_output(
    output: str | None, *, writes: Literal["verdicts", "examples"] | None = None, option: str = "-o"
) -> None:
    """Check, before anything is bought, that a result can be written to the file that ``option`` names. ``writes`` is
    the kind of a result whose format depends on the file's suffix. Raises InputError if the file cannot be written,
    MissingExtraError if Parquet needs ``pyarrow``."""
    if output is None:
        return
    if os.path.isdir(output):
        raise InputError(f"{output}: this is a folder, and one file is written. Name a file with {option}.")
    above = next(each for each in Path(output).absolute().parents if os.path.exists(each))
    if not os.path.isdir(above):
        raise InputError(f"{output}: cannot be written, as {above} is no folder. Name another file with {option}.")
    if writes is None:
        return
    if writes == "examples" and suffix_of(output) in (*CSV_SUFFIXES, *EXCEL_SUFFIXES, *PARQUET_SUFFIXES):
        raise InputError(f"{output}: examples are written as JSONL; name it .jsonl.")
    if suffix_of(output) in (*CSV_SUFFIXES, *EXCEL_SUFFIXES):
        raise InputError(f"{output}: verdicts are written as JSONL or Parquet; name it .jsonl or .parquet.")
    if suffix_of(output) in PARQUET_SUFFIXES:
        parquet_package()


OWN = re.compile(
    r"(config\.yaml|inputs|journal\.jsonl|verdicts\.db|verdicts|prompts|prompt\.(md|txt|jinja|json|yaml)|"
    r"changes\.diff|judge\.yaml|certificate\.json|outputs\.jsonl|targets|(checklist|requirements)\.yaml|"
    r"(lessons|memory|rationales)\.jsonl|calibration-\w+\.json|"
    r"(result|scorer|train|(adapter_)?config|tokenizer\w*)\.json|"
    r"(adapter_)?model\.(safetensors|gguf|onnx)|checkpoints)(/|$)"
)
"""Paths that belong to a run, judge, lesson memory or scorer, within its folder. Other files there may be replaced."""


def check_apart(output: str | Path | None, read: Mapping[str, Any], option: str = "-o") -> None:
    """Check that the result file, named by ``option``, does not replace a file that the command reads. ``read`` maps
    each option or argument to its file, its files, or the folder of a run, judge or scorer; other values are ignored.
    Raises InputError."""
    if output is None or not os.path.isfile(place := os.path.realpath(output)):
        return  # realpath also works if a folder on the way does not exist yet
    for name, value in read.items():
        for path in value if isinstance(value, (list, tuple)) else [value]:
            with suppress(OSError, TypeError, ValueError):
                if Path(place).samefile(file_and_sheet(path)[0]):
                    role = "this is what"
                elif OWN.match(Path(place).relative_to(Path(path).resolve()).as_posix()):
                    role = "this belongs to what"
                else:
                    continue
                raise InputError(
                    f"{output}: {role} '{name}' names, and what is read is never written to. Name another file with "
                    f"{option}."
                )


def tell_judged(
    found: Evaluation | Diagnosis,
    output: str | None,
    *,
    as_json: bool,
    quiet: bool,
    least: float,
    fail_under: float | None = None,
) -> None:
    """Write the verdicts, print the result, and check the coverage, then ``--fail-under``. Raises the errors of these
    checks."""
    if output:
        save_verdicts(output, found.verdicts)
    if as_json:
        echo_json(found.to_dict())
    else:
        show(found)
        if found.budget is not None:
            echo(found.budget.sentence)
        if output and not quiet:
            echo(f"{len(found.verdicts)} verdicts are in {output}.", err=True)
    check_coverage(found.verdicts, found.coverage, least)
    if fail_under is not None:
        sys.stdout.flush()
        require_at_least(found.to_dict(), fail_under)


def hush(context: click.Context, parameter: click.Parameter, quiet: bool) -> bool:
    """Apply ``--quiet``: while the command runs, askance logs only errors."""
    if quiet:
        logger = logging.getLogger(__name__.partition(".")[0])
        context.call_on_close(partial(logger.setLevel, logger.level))
        logger.setLevel(logging.ERROR)
    return quiet


def check_coverage(verdicts: Sequence[Verdict], seen: Coverage, least: float) -> None:
    """Print the first errors. Raises CoverageError if the share of verdicts is below ``least``, or if there is none."""
    first: dict[str, str] = {}
    for example, question, error in zip(
        *(column(verdicts, name) for name in ("example", "question", "error")), strict=True
    ):
        if error:
            first.setdefault(error, f"example '{example}', question '{question}': {error}")
    tell_errors(first.values())
    require_share(seen.share, least, f"Only {coverage_text(seen.share)} of the verdicts are there")
    if not seen.answered:
        sys.stdout.flush()
        raise CoverageError("Not one question was answered, so there is no result.")


def tell_errors(errors: Iterable[str | None]) -> None:
    """Print the first three different errors on standard error, and the number of the others."""
    different = list(dict.fromkeys(error for error in errors if error))
    for error in different[:3]:
        echo(f"askance: {error}", err=True)
    if others := len(different[3:]):
        echo(f"askance: and {others} other {'error' if others == 1 else 'errors'}.", err=True)


def require_share(share: float, least: float, lacking: str) -> None:
    """Raise CoverageError if ``share`` is less than ``least``, the ``--min-coverage``. ``lacking`` is the beginning of
    the message, which names the share."""
    if share < least:
        sys.stdout.flush()
        raise CoverageError(
            f"{lacking}, less than --min-coverage {least:.1%}. Run the command again to ask for the missing ones."
        )


LONGEST = 40
"""Most characters of a cell that counts as short: short cells of a first column are not wrapped."""
WIDEST = 100
"""Most characters in a line of a paragraph."""
STYLES = {"-": "red", "+": "green"}
"""Colours of cells with removed or added text, by column."""


def show(found: Shown) -> None:
    """Print a result on standard output: its title, its tables, and last its sentences, so that they are read."""
    console, view = terminal.console(), found.view()
    console.print(view.title, soft_wrap=True)
    for name, rows in view.shown_tables().items():
        console.print(f"\n{view.caption(name)}", soft_wrap=True)
        most_rows = view.most.get(name, len(rows))
        (_print_listed if name in view.listed else print_rows)(rows[:most_rows])
        if len(rows) > most_rows:
            console.print(f"and {len(rows) - most_rows:,} more; --json has all", style="dim", soft_wrap=True)
        for note in view.notes.get(name, ()):
            console.print(note, style="dim", soft_wrap=True)
    if view.lines and view.listed:
        console.print()
    for line in view.lines:
        console.print(line, soft_wrap=True)


def folded(text: str, indent: int, width: int) -> str:
    """Wrap a paragraph for a terminal. Lines after the first have two more spaces of indent."""
    return textwrap.fill(
        text,
        max(40, min(width, WIDEST)),
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent + 2),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _print_listed(rows: Rows) -> None:
    """Print each row as a paragraph: the first cell, then removed and added texts, then the other cells with names."""
    console = terminal.console()
    for row in rows:
        (_, head), *details = ((name, cell_text(cell)) for name, cell in row.items())
        console.print(folded(head, 2, console.width), soft_wrap=True)
        for name in STYLES:
            if text := dict(details).get(name):
                console.print(textwrap.indent(f"{name} {text}", " " * 6), style=STYLES[name], soft_wrap=True)
        cells = [f"{name}: {text}" for name, text in details if text and name not in STYLES]
        short = [cell for cell in cells if len(cell) <= LONGEST]
        for said in filter(None, ["; ".join(short), *(cell for cell in cells if cell not in short)]):
            console.print(folded(said, 6, console.width), style="dim", soft_wrap=True)


NARROWEST = 8
"""Fewest characters per column on average. A table with more columns than fit is printed in parts."""


def print_rows(rows: Rows) -> None:
    """Print a table. Lines below it name the figures that are undefined or have no interval, one line per reason."""
    console, names = terminal.console(), columns(rows)
    first, other_names, most_columns = names[:1], names[1:], max(1, console.width // NARROWEST - 1)
    for start in range(0, len(other_names) or 1, most_columns):
        if start:
            console.print()
        _print_columns(rows, [*first, *other_names[start : start + most_columns]])
    reasons: dict[tuple[str, str], dict[str, None]] = {}
    for row in rows:
        for name, cell in row.items():
            if isinstance(cell, Figure) and cell.span() is None and cell.reason:
                missing = "Undefined" if cell.value is None else "No interval"
                place = f"{row[names[0]]}, {name.replace('_', ' ')}"
                reasons.setdefault((missing, cell.reason.removeprefix("no interval: ")), {})[place] = None
    for (missing, reason), places in reasons.items():
        console.print(f"{missing} ({'; '.join(places)}): {reason}.", style="dim", soft_wrap=True)


def _print_columns(rows: Rows, names: Sequence[str]) -> None:
    console = terminal.console()
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in names:
        is_long = any(len(cell_text(row.get(name))) > LONGEST for row in rows)
        table.add_column(
            Text(visible(name.replace("_", " "))), overflow="fold", no_wrap=name == names[0] and not is_long
        )
    for row in rows:
        table.add_row(*(Text(visible(cell_text(row.get(name)))) for name in names))
    if console.measure(table, options=console.options.update(max_width=1000)).maximum > console.width:
        table.collapse_padding, table.show_edge = True, False
        words = [
            min(NARROWEST + 2, max(map(len, visible(each.replace("_", " ")).split()), default=0)) for each in names[1:]
        ]
        room = console.width - sum(words) - 3 * len(words)
        first = max((len(cell_text(row.get(names[0]))) for row in rows), default=0)
        if 2 * NARROWEST <= room < first:  # break a long name rather than the word of a heading
            for column, width in zip(table.columns[1:], words, strict=True):
                column.min_width = width
        if room < first or any(" " in cell_text(row.get(names[0])) for row in rows):
            table.columns[0].no_wrap = False
    console.print(table)
