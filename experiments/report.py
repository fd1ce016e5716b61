"""The report of a run: one HTML file that opens anywhere, asks no network, and works without JavaScript.

Everything is rendered here, from the run directory alone; the script only adds comfort.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..memory.run_directory import RunDirectory
from .report_candidates import Candidate, candidates, marked_prompt
from .report_charts import course, course_chart, heat_map
from .report_data import read_run
from .report_decision import decide, finish_sentence, missing_share
from .report_examples import changes, example_data
from .report_extras import calibrations, severity, spreads
from .report_lessons import STATUSES, lessons
from .report_page import render_page
from .report_questions import parity, together
from .report_scores import Scale, measured_name, reference_name, scores
from .report_settings import repeat_command, settings
from .report_view import iterations, missing, who, why_unexplained
from .report_words import duration

if TYPE_CHECKING:
    from .report_data import RunData

SCRIPTS = ("report_lessons.js", "report_table.js", "report_examples.js")


def write_report(run: str | Path, output: str | Path | None = None) -> Path:
    """Write the report of a finished run; returns where it is.

    Args:
        run: The run's directory.
        output: The file; default: ``report.html`` in the run's directory. It is replaced whole or not at all.

    Raises:
        InputError: There is no run, it is not finished, or a file of it is damaged.
        AskanceError: The file cannot be written.
    """
    directory = Path(run)
    file = Path(output) if output is not None else directory / "report.html"
    text = render_report(read_run(directory))
    RunDirectory(file.parent).write(file.name, text)
    return file


def render_report(data: RunData) -> str:
    """The report as HTML."""
    tried = candidates(data)
    rounds = iterations(data, tried)
    splits, score_scale = scores(data)
    times = [str(event["time"]) for event in data.events if "time" in event]
    return render_page(
        "report.html.j2",
        SCRIPTS,
        data=data,
        result=data.result,
        who=who(data),
        decision=decide(data.result, data.split_size("test")),
        finish=finish_sentence(data.result),
        reference=reference_name(data.result),
        measured=measured_name(data.result),
        unit="Spearman" if data.is_judge else "mean score",
        case="disagreement" if data.is_judge else "failure",
        missing_share=missing_share(data.result["coverage"]),
        pieces=marked_prompt(data.result),
        tried=tried,
        rounds=rounds,
        lessons=lessons(data, tried),
        statuses=STATUSES,
        splits=splits,
        score_scale=score_scale,
        gain_scale=Scale.over(_ends(data, tried)),
        missing=missing(data, rounds),
        unexplained=why_unexplained(data),
        settings=settings(data),
        command=repeat_command(data),
        took=duration(*times[:1], *times[-1:]) if times else None,
        began=times[0][:10] if times else None,
        **_measures(data, tried),
    )


def _measures(data: RunData, tried: list[Candidate]) -> dict[str, Any]:
    """What is said of single questions and examples, as far as the run kept it."""
    points = course(data, tried)
    questions, alike = parity(data), together(data)
    numbers = {row.name: row.number for row in questions.rows} if questions else {}
    drawn = None
    if alike and alike.found.pairs and all(name in numbers for name in alike.matrix.questions):
        drawn = heat_map(alike.matrix, [numbers[name] for name in alike.matrix.questions])
    return {
        "course": course_chart(points, "Spearman" if data.is_judge else "Mean score") if len(points) > 1 else None,
        "parity": questions,
        "alike": alike,
        "heat": drawn,
        "spreads": spreads(data),
        "severity": severity(data),
        "calibrations": calibrations(data),
        "changes": changes(data),
        "example_data": example_data(data),
    }


def _ends(data: RunData, tried: list[Candidate]) -> list[float | None]:
    """Ends of all intervals of differences, so that the whole report draws them on one axis."""
    gains: list[Any] = [each.gain for each in tried] + list((data.result.get("gain") or {}).values())
    return [gain[end] for gain in gains if gain for end in ("low", "high", "value")]
