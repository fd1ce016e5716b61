"""A report of whatever a command left behind: a run, weights, a selection, a comparison or verdicts."""

from __future__ import annotations

from pathlib import Path

from ..memory.run_directory import RunDirectory
from ..prompts.errors import InputError
from .report import write_report
from .report_judging import render_judging
from .report_kinds import KNOWN, Result, recognise, results_in
from .report_of_comparison import render_comparison
from .report_of_judging_json import read_diagnosis, read_evaluation
from .report_of_selection import render_selection
from .report_of_verdicts import Beside, read_judging
from .report_of_weights import render_weights


def write_report_of(path: str | Path, output: str | Path | None = None, beside: Beside | None = None) -> Path:
    """Write one HTML file about what a command left behind; returns where it is.

    Args:
        path: A run's directory, a result file, or a directory with one result in it.
        output: The file; default: beside the input with the same stem, and ``report.html`` in a run's directory. It
            is replaced whole or not at all.
        beside: What verdicts are about; the other kinds need nothing.

    Raises:
        InputError: There is nothing that a report can be written of, or a file is damaged.
        AskanceError: The file cannot be written.
    """
    place = Path(path)
    if place.is_dir():
        if (place / "config.yaml").exists() or (place / "journal.jsonl").exists():
            return write_report(place, output)
        result = _only_result(place)
    else:
        result = recognise(place)
    if result.kind == "run":
        return write_report(result.path.parent, output)
    file = Path(output) if output is not None else result.path.with_suffix(".html")
    text = render_result(result, beside or Beside())
    RunDirectory(file.parent).write(file.name, text)
    return file


def render_result(result: Result, beside: Beside) -> str:
    """The report of a recognised file as HTML.

    Raises:
        InputError: The file is damaged, or was written by another version.
    """
    from jinja2 import UndefinedError

    data, name = result.data, result.path.name
    if result.kind == "verdicts":
        return render_judging(read_judging(result.path, beside))
    try:
        match result.kind:
            case "weights":
                return render_weights(data, name)
            case "selection":
                return render_selection(data, name)
            case "comparison":
                return render_comparison(data, name)
            case "evaluation":
                return render_judging(read_evaluation(data, name))
            case _:
                return render_judging(read_diagnosis(data, name))
    except (KeyError, TypeError, AttributeError, IndexError, StopIteration, ValueError, UndefinedError) as error:
        raise InputError(
            f"{result.path}: damaged, or written by another version of askance: it does not hold what a {result.kind} "
            f"should ({type(error).__name__}: {error})."
        ) from None


def _only_result(directory: Path) -> Result:
    found = results_in(directory)
    if not found:
        raise InputError(f"{directory}: there is no run and no result in it. A report is written of: {KNOWN}.")
    if len(found) > 1:
        names = ", ".join(each.path.name for each in found)
        raise InputError(f"{directory}: there are several results in it ({names}); name the one that you mean.")
    return found[0]
