"""The report of a run: one HTML file that opens anywhere, asks no network, and works without JavaScript.

Everything is rendered here, from the run directory alone; the script only adds comfort.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..evaluation.raters.comment_coverage import coverage_said
from ..memory.decision import decide, finish_sentence, measured_name
from ..memory.result_file import CROSSED
from ..optimizer.mode import mode_of
from ..optimizer.run_result import people_lines, run_view
from ..prompts.errors import shown_from
from ..prompts.formatting import count, missing_share
from ..prompts.text_files import write_whole
from ..settings import MODEL, flag, settings_naming
from .charts import Scale, heat_map
from .page import UNANSWERED, Section, duration, file_name, public_text, render_page
from .run_candidates import ShownCandidate, candidates, marked_prompt
from .run_data import RunData, changes, example_data, read_run
from .run_figures import parity, scores, spreads, together
from .run_lessons import STATUSES, lessons, what_was_learned

SCRIPTS = ("report_lessons.js", "report_table.js", "report_sort.js", "report_examples.js")


def write_report(run: str | Path, output: str | Path | None = None) -> Path:
    """Write the report of a finished run to ``output``, by default ``report.html`` in the run's directory. An existing
    file is replaced whole or not at all. Raises InputError if there is no finished run or a file is damaged,
    AskanceError if the report cannot be written."""
    directory = Path(run)
    file = Path(output) if output is not None else directory / "report.html"
    with shown_from(directory, "the files of this run"):
        text = render_report(read_run(directory))
    write_whole(file, text)
    return file


def render_report(data: RunData) -> str:
    """Render the report as HTML."""
    tried = candidates(data)
    rounds = iterations(data, tried)
    splits, score_scale = scores(data)
    times = [str(event["time"]) for event in data.events if "time" in event]
    return render_page(
        "report.html.j2",
        SCRIPTS,
        data=data,
        result=data.result,
        thing=data.result.thing,
        learned=what_was_learned(data),
        who=who(data),
        decision=decide(data.result, data.split_size("test")),
        finish=finish_sentence(data.result),
        reference=f"{data.result.whose}'s scores",
        measured=measured_name(data.result),
        people_lines=[*people_lines(data.result)],
        coverage_line=coverage_said(data.result.comment_coverage) if data.result.comment_coverage else "",
        crossed=CROSSED,
        unit=data.result.yardstick,
        case="disagreement" if data.is_judge else "failure",
        missing_share=missing_share(data.result.coverage),
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
        **_measures(data),
    )


def _measures(data: RunData) -> dict[str, Any]:
    """Return the template's variables on single questions and examples, as far as the run kept the data."""
    questions, likeness = parity(data), together(data)
    numbers = {row.name: row.number for row in questions.rows} if questions else {}
    drawn = None
    if likeness and likeness.found.pairs and all(name in numbers for name in likeness.matrix.questions):
        drawn = heat_map(likeness.matrix, [numbers[name] for name in likeness.matrix.questions])
    return {
        "parity": questions,
        "alike": likeness,
        "heat": drawn,
        "spreads": spreads(data),
        "sections": (sections := tables(data)),
        "same_verdicts": [each for name, each in sections.items() if name.startswith("same_verdicts") and each.rows],
        "wordings": sorted(data.result.wordings, key=lambda each: not each.accepted),
        "changes": changes(data),
        "example_data": example_data(data),
    }


MOST_ROWS = {"not_learned": 200, "shown_examples": 20, "contradictions": 50}
"""Most rows on the page, by table of the View. All rows are in the run's files."""


def tables(data: RunData) -> dict[str, Section]:
    """Return the tables of the run's View that the page shows, by name. Some have no rows."""
    view = run_view(data.result, Path(data.name))
    sections = {}
    for name in (*(view.shown or ()), "bias", "cost"):
        rows = view.tables[name]()[: MOST_ROWS.get(name)]
        if name.startswith("same_verdicts"):
            rows = [{**row, "question": _asked(data, row["question"])} for row in rows]
        rows = [  # a number stays beside its unit
            {key: cell.replace(" %", "\u00a0%") if isinstance(cell, str) else cell for key, cell in row.items()}
            for row in rows
        ]
        title, _, _ = view.caption(name).partition("; ")
        note = " ".join(f"{each}." for each in view.notes.get(name, ()))
        sections[name] = Section(name, title, rows, note, ())
    return sections


def _asked(data: RunData, question: str) -> str:
    """Return the text of a question with its id."""
    text, _ = data.shared_questions.get(question, (question, ""))
    return text if text == question else f"{text} [{question}]"


def _ends(data: RunData, tried: list[ShownCandidate]) -> list[float | None]:
    """List the ends of all intervals of differences, so that the whole report draws them on one axis."""
    gains = [*(each.gain for each in tried), *(each.gain for each in data.result.splits)]
    return [end for gain in gains if gain for end in (gain.low, gain.high, gain.value)]


def settings(data: RunData) -> list[tuple[str, str, bool]]:
    """List the settings that the result depends on as (name, value, whether it was set for this run). Models, inputs
    and values other than the default count as set."""
    defaults = _defaults(data)
    mode = mode_of(data.result.mode)
    always = {*mode.models, *mode.settings, *settings_naming(MODEL, mode.options)}
    return [
        (name, public_text(name, value), name in always or (name in defaults and value != defaults[name]))
        for name, value in data.config.items()
        if value not in (None, {})
    ]


IN_INPUTS = ("field", "limit", "labels")
"""Settings for reading data. The repeating command leaves them out, because a run keeps its examples as read."""


def repeat_command(data: RunData) -> str:
    """Return the command that repeats the run, to be given in the run's directory."""
    mode = mode_of(data.result.mode)
    lines = [["askance", data.result.mode, "inputs/examples.jsonl"]]
    lines += [["--checklist", "inputs/checklist.yaml"]] if data.checklist else []
    lines += [
        [f"--{name}", public_text(name, data.config[name])]
        for name in (*mode.models, *mode.settings)
        if data.config.get(name)
    ]
    prompts = [*mode.prompts, *(["judge_prompt"] if data.config.get("judge") else [])]
    lines += [[flag(name), f"inputs/{name}.md"] for name in prompts]
    defaults = _defaults(data)
    for name, value in data.config.items():
        if name in defaults and value != defaults[name] and value is not None and name not in IN_INPUTS:
            option = flag(name)
            if isinstance(value, bool):
                lines.append([option if value else f"--no-{option.removeprefix('--')}"])
            else:
                several = value if isinstance(value, (list, tuple)) else [value]
                lines.append([option, *(public_text(name, each) for each in several)])
    return " \\\n  ".join(shlex.join(line) for line in [*lines, ["--run", "../again"]])


def _defaults(data: RunData) -> dict[str, Any]:
    """Return the default settings of the run's mode."""
    options = mode_of(data.result.mode).options
    return options.model_validate({}).model_dump(mode="json")


@dataclass(frozen=True)
class Iteration:
    """One round of the loop."""

    number: int
    proposed: int
    withstood: int
    """Proposed questions that went to the acceptance test, because the development examples spoke for them."""
    found: int | None
    """Disagreements found; None if the round did not look for any, because its questions sufficed."""
    stated: int
    """Requirements that were stated in their own words."""
    read: int
    """Failures that a note-taker read; 0 if the requirements' own words gained something."""
    notes: int
    new_lessons: int
    trials: int
    """Lessons that were tried on their own disagreements."""
    passed: int
    tried: Sequence[ShownCandidate]

    @property
    def outcome(self) -> str:
        """Outcome of the round in a few words."""
        accepted = sum(each.accepted for each in self.tried)
        if accepted:
            return f"{count(accepted, 'candidate')} accepted"
        if self.tried:
            return "nothing accepted"
        if self.found is None:
            return "no question withstood the development examples"
        if self.trials and not self.passed:
            return "no lesson passed its trial"
        return "no candidate" if self.read or self.stated else "nothing left to read"


def iterations(data: RunData, tried: Sequence[ShownCandidate]) -> list[Iteration]:
    """Read from the journal the rounds of the loop in which something was found, proposed or tried."""
    rounds: dict[int, dict[str, list[dict[str, Any]]]] = {}
    iteration = 0
    for event in data.events:
        kind = str(event.get("event"))
        if kind in ("disagreements", "question", "decision") and event.get("iteration"):
            iteration = event["iteration"]
        if iteration and kind in ("disagreements", "question", "decision", "lesson", "trial", "reasons", "requirement"):
            rounds.setdefault(iteration, {}).setdefault(kind, []).append(event)
    return [_iteration(number, events, tried) for number, events in rounds.items()]


def _iteration(number: int, events: Mapping[str, list[dict[str, Any]]], tried: Sequence[ShownCandidate]) -> Iteration:
    found, questions, notes, trials, stated = (
        events.get(name, []) for name in ("disagreements", "question", "lesson", "trial", "requirement")
    )
    were_read = not stated or "reasons" in events
    return Iteration(
        number=number,
        proposed=len(questions),
        withstood=sum(each["problem"] is None for each in questions),
        found=sum(each["found"] for each in found) if found else None,
        stated=len(stated),
        read=sum(len(each["read"]) for each in found) if were_read else 0,
        notes=len(notes),
        new_lessons=sum(note["relation"] == "new" for note in notes),
        trials=len(trials),
        passed=sum(trial["result"]["passed"] for trial in trials),
        tried=[each for each in tried if each.iteration == number],
    )


def missing(data: RunData, rounds: Sequence[Iteration]) -> list[str]:
    """Return sentences on missing data and the reasons. A report leaves nothing out silently."""
    result = data.result
    sentences = []
    noun = "correlation" if data.is_judge else "mean score"
    gone = [count(result.missing[name], noun) for name, noun in UNANSWERED.items() if result.missing.get(name)]
    if gone:
        sentences.append(f"Verdicts: {', '.join(gone)}. None of them was counted as a yes or a no.")
    for split, before, after, _ in reversed(result.splits):
        size = data.split_size(split)
        accepted = [("accepted", after, result.best)] if result.changed else []
        for label, measure, side in [("starting", before, result.baseline), *accepted]:
            subject = f"{split.capitalize()}, {label} {result.thing}"
            if measure is None:
                sentences.append(f"{subject}: {side.reason or 'not judged'}.")
                continue
            if size is not None and measure.n < size:
                sides = " on both sides" if data.is_judge else ""
                sentences.append(f"{subject}: {size - measure.n} of {count(size, 'example')} have no score{sides}.")
            sentences += [
                f"{subject}, {name}: the {noun} is undefined ({values.reason or 'no reason given'})."
                for name, values in {"all dimensions": measure, **measure.dimensions}.items()
                if values.value is None
            ]
    sentences += _lost(data, rounds)
    failures = sum(ledger.failures for ledger in result.roles.values())
    if failures:
        sentences.append(f"Over all roles, {count(failures, 'call')} failed for good, after all retries.")
    return sentences


def _lost(data: RunData, rounds: Sequence[Iteration]) -> list[str]:
    """Report the disagreements without a note and the lessons without an edit, with the reasons."""
    sentences = []
    failed = data.of("no_note")
    told = failed or data.of("learned")  # journals of older runs do not tell
    lost = len(failed) if told else sum(each.read - each.notes for each in rounds)
    if lost > 0:
        why = f" ({_reasons(failed)})" if failed else ""
        sentences.append(f"From {count(lost, 'disagreement')} no usable note could be drawn{why}.")
    refused = data.of("no_edit")
    if refused:
        sentences.append(f"For {count(len(refused), 'lesson')} no edit could be made ({_reasons(refused)}).")
    return sentences


def _reasons(events: Sequence[Mapping[str, Any]]) -> str:
    """Name the three most frequent reasons, the commonest first."""
    counted = Counter(" ".join(str(event["reason"]).split())[:200] for event in events)
    shown = [f"{reason}, {n} times" if n > 1 else reason for reason, n in counted.most_common(3)]
    return "; ".join(shown) + ("; and others" if len(counted) > 3 else "")


def why_unexplained(data: RunData) -> str | None:
    """Say why the run has no explanations; None if it has some."""
    if any(event["target"] or event["reference"] for event in data.of("reasons")):
        return None
    if data.config.get("explain") == "never":
        return "Explanations were not bought (explain: never)."
    return "This run's journal holds no explanations of the judges."


@dataclass(frozen=True)
class Who:
    """The model whose prompt was improved, and the side that it was compared with."""

    mine: str
    mine_role: str
    """``the judge`` or ``the generator``."""
    theirs: str
    """The model on the other side; empty for people."""
    theirs_role: str
    """``the source``, ``people``, ``the judge`` or ``the checker``."""


def who(data: RunData) -> Who:
    """Return the two sides of a run."""
    config = data.config
    if data.is_judge:
        mine = str(config.get("target") or config.get("model") or "")
        source = str(config.get("source") or "")
        return Who(mine, "the judge", source, "the source" if source else "people")
    judge, checker = str(config.get("judge") or ""), str(config.get("checker") or "")
    return Who(
        str(config.get("generator") or ""),
        "the generator",
        judge or file_name(checker),
        "the judge" if judge else "the checker",
    )
