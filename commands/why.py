"""Where a sentence of a prompt comes from, in plain text; and the whole graph as a file."""

from __future__ import annotations

import shutil
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..memory.provenance import build_graph, save_graphml, save_json
from ..memory.why import SAYS, why
from ..models.budget import count
from ..prompts.errors import InputError
from ..prompts.text import excerpt, shorten
from ..prompts.words import Figure
from .output import echo_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..memory.why import Case, EditStory, LessonStory, Measured, Why

MOST_CASES = 3
"""Disagreements that are shown of each lesson; the others are counted."""
MOST_NAMES = 8
"""Further disagreements that are named."""
MOST_CHARS = 200
"""Characters of an example's text that are shown."""
GRAPH_FORMATS = {".json": save_json, ".graphml": save_graphml}


def write_graph(run: str, file: str) -> None:
    """Write the graph of a run in the format that the file's ending names.

    Raises:
        InputError: The ending names none, or there is no run.
        AskanceError: The file cannot be written.
    """
    save = GRAPH_FORMATS.get(Path(file).suffix.lower())
    if save is None:
        raise InputError(f"--graph {file}: the name must end in .json (node-link data) or .graphml.")
    graph = build_graph(run)
    save(graph, file)
    counts: dict[str, int] = {}
    for _, row in graph.nodes(data=True):
        counts[row["kind"]] = counts.get(row["kind"], 0) + 1
    listed = ", ".join(count(many, kind) for kind, many in counts.items())
    click.echo(f"{file}: {listed}")


def tell_why(run: str, sentence: str, *, as_json: bool) -> None:
    """Answer where a sentence of the prompt comes from.

    Raises:
        InputError: There is no run, or nothing in it says the sentence.
    """
    graph = build_graph(run)
    found = why(graph, graph.nodes[f"version:{graph.graph['best']}"]["prompt"], sentence)
    if as_json:
        echo_json(found.to_dict())
        return
    _Teller(found, graph.graph).tell()


class _Teller:
    """Says an answer, line by line."""

    def __init__(self, found: Why, about: dict[str, Any]) -> None:
        self._found = found
        self._about = about
        self._told: set[str] = set()
        """Lessons that were told of in full."""

    def tell(self) -> None:
        """All of it."""
        found = self._found
        so_far = "" if self._about["finished"] else " so far (the run is not finished)"
        if found.found == "not in the prompt":
            _say(f"The accepted prompt{so_far} does not say this, but it was learnt:")
        elif found.found == "nearest":
            _say(f"The accepted prompt{so_far} does not say exactly this; the nearest to it:")
        stories = {each.number: each for each in found.edits}
        for passage in found.passages:
            _say(f"Line {passage.line} of the accepted prompt{so_far} (version {found.version}):")
            _say(passage.text, 2)
            _say(_past(passage.in_start, passage.edits))
        for story in stories.values():
            click.echo()
            self._edit(story)
        for lesson in found.lessons:
            click.echo()
            _say(f"No edit was written for lesson {lesson.id}.")
            self._lesson(lesson, 0, ())
        self._whole_run()

    def _edit(self, story: EditStory) -> None:
        _say(f"Edit {story.number}, iteration {story.iteration}: {_outcome(story)}")
        self._change(story)
        near = [each for each in story.lessons if each.said >= SAYS] or list(story.lessons[:1])
        told = [story.reason, *(each.reason for each in story.measured)]
        for lesson in near:
            self._lesson(lesson, 2, told)
        others = [each.id for each in story.lessons if each not in near]
        if others:
            _say(f"It was written from lessons {', '.join(others)} too, which say other things.", 2)
        if story.trial:
            trial = story.trial
            verb = "passed" if trial["passed"] else "failed"
            said = f"{trial['turned']} of {trial['evidence']} of its disagreements turned, "
            _say(f"Trial, {verb}: {said}{trial['harmed']} of {trial['controls']} controls harmed", 2)
        for measured in story.measured:
            _say(_gate(measured), 2)
        if story.pruning:
            verb = "taken out again" if story.pruning["removed"] else "not taken out"
            _say(f"Pruning, {verb}: {story.pruning['reason']}{_interval(story.pruning['gain'])}", 2)

    def _change(self, story: EditStory) -> None:
        """The words that went and came."""
        old, new = story.old.splitlines(), story.new.splitlines()
        added = {line.strip() for line in new if line not in old}
        if added <= {each.text for each in self._found.passages} and set(old) <= set(new):
            return  # what it added is what was asked about
        for line in old:
            if line not in new:
                _say(f"- {line}", 2)
        for line in new:
            if line not in old:
                _say(f"+ {line}", 2)

    def _lesson(self, lesson: LessonStory, indent: int, told: Sequence[str | None]) -> None:
        """``told`` are reasons that another line gives."""
        what = ", ".join(filter(None, [lesson.direction, f"support {lesson.support}", lesson.status]))
        _say(f"Lesson {lesson.id} ({what}): {lesson.text}", indent)
        if lesson.id in self._told:
            _say("Its disagreements are listed above.", indent + 2)
            return
        self._told.add(lesson.id)
        if lesson.reason and lesson.status != "applied" and lesson.reason not in told:
            _say(f"{(lesson.status or 'because').capitalize()}: {lesson.reason}", indent + 2)
        earlier = [each for each in lesson.cases if not each.later]
        for case in earlier[:MOST_CASES]:
            self._case(case, indent + 2)
        left = len(earlier) - MOST_CASES
        if left > 0:
            _say(f"and {left} more: {_names(earlier[MOST_CASES:])}", indent + 2)
        later = [each for each in lesson.cases if each.later]
        if later:
            _say(f"It came up again later on {_names(later)}.", indent + 2)

    def _case(self, case: Case, indent: int) -> None:
        question = f': "{case.question_text}"' if case.question_text else ""
        _say(f"From {case.key}{question}", indent)
        texts = {"input": case.input, "context": case.context, "output": case.output}
        for name, text in texts.items():
            if text:
                _say(f"{name}: {' '.join(excerpt(text, case.output or '', MOST_CHARS).split())}", indent + 2)
        for line in self._answers(case):
            _say(line, indent + 2)

    def _answers(self, case: Case) -> list[str]:
        """What each side said; which sides there are, the mode decides."""
        about, mode = self._about, self._about.get("mode")
        if mode == "tune":  # what fails should not, and the reason is that of the judge or checker
            return [f"judged: {_answer(case.target, case.target_p_yes, case.reference_says)}"]
        mine = _answer(case.target, case.target_p_yes, case.target_says)
        if mode == "align":
            theirs = case.reference_says or f"people: {_answer(case.reference, case.reference_p_yes, None)}"
            return [f"the judge, {about.get('model')}: {mine}", theirs]
        theirs = _answer(case.reference, case.reference_p_yes, case.reference_says)
        return [f"the target, {about.get('target')}: {mine}", f"the source, {about.get('source')}: {theirs}"]

    def _whole_run(self) -> None:
        gains = {split: gain for split, gain in self._found.gain.items() if gain and gain["value"] is not None}
        if gains and (self._found.edits or self._found.lessons):
            click.echo()
            said = "; ".join(f"{split} {gain['value']:+.3f}{_interval(gain)}" for split, gain in gains.items())
            _say(f"The whole run, start to accepted prompt ({self._about.get('yardstick') or 'gain'}): {said}")


def _names(cases: Sequence[Case]) -> str:
    more = f" and {len(cases) - MOST_NAMES} more" if len(cases) > MOST_NAMES else ""
    return ", ".join(each.key for each in cases[:MOST_NAMES]) + more


def _past(in_start: bool, edits: Sequence[int]) -> str:
    names = " and then ".join(f"edit {each}" for each in edits)
    if not edits:
        return "It stood in the starting prompt, and no edit has changed it."
    if in_start:
        return f"The starting prompt had it in other words; {names} changed it."
    first, *more = edits
    return f"It was not in the starting prompt: edit {first} brought it in" + (
        f", and {' and '.join(f'edit {each}' for each in more)} changed it." if more else "."
    )


def _outcome(story: EditStory) -> str:
    """Its status; the reason where no line further down gives it."""
    return story.status if not story.reason or story.measured or story.trial else f"{story.status} ({story.reason})"


def _gate(measured: Measured) -> str:
    verb = "accepted" if measured.accepted else "rejected"
    others = ", ".join(map(str, measured.with_edits))
    together = f", together with edit{'s' if len(measured.with_edits) > 1 else ''} {others}" if others else ""
    return f"Gate, version {measured.version} {verb}{together}: {measured.reason}{_interval(measured.gain)}"


def _interval(gain: dict[str, Any] | None) -> str:
    span = Figure.of(gain, "+.3f").span("-") if gain else None
    return f", 95% interval [{', '.join(span)}]" if span else ""


def _answer(yes: bool | None, p_yes: float | None, says: str | None) -> str:
    if p_yes is not None:
        answer = f"{'yes' if p_yes >= 0.5 else 'no'}, P(yes) {p_yes:.2f}"
    elif yes is not None:
        answer = f"towards {'yes' if yes else 'no'}"
    else:
        answer = "not known"
    return f"{answer}. {shorten(' '.join(says.split()), MOST_CHARS)}" if says else answer


def _say(text: str, indent: int = 0) -> None:
    """One paragraph, folded to the width of the terminal."""
    width = max(40, min(shutil.get_terminal_size((100, 24)).columns, 100))
    folded = textwrap.fill(
        text,
        width,
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent + 2),
        break_long_words=False,
        break_on_hyphens=False,
    )
    click.echo(folded)
