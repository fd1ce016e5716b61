"""``askance show`` and ``diff``: the result of a run, the origin of its sentences, and the changes between runs."""

from __future__ import annotations

import shlex
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from ..evaluation.compare.run_difference import run_difference
from ..evaluation.measures.told import MeasuredCase
from ..memory.certificate_file import TARGETS, is_migration, read_certificate, target_folder
from ..memory.journal import has_ended, read_events
from ..memory.provenance import build_graph, save_graphml, save_json
from ..memory.run_directory import RunDirectory
from ..memory.why import SAYS, CaseStory, EditStory, LessonStory, Passage, QuestionStory, Why, reason_for
from ..optimizer.migration.certificate import MigrationResult
from ..optimizer.run_result import RunResult
from ..prompts.errors import InputError, as_typed
from ..prompts.formatting import MOST_LISTED, count, names_text
from ..prompts.text import excerpt, shorten
from ..prompts.text_files import read_text
from ..report.run_data import read_run
from ..report.run_lessons import interval_of, measured_cases, question_lines
from .command_options import common_options
from .output import check_apart, check_output, echo_json, folded, show
from .terminal import echo

MOST_CASES = 3
"""Most disagreements that are shown for each lesson; the others are counted."""
MOST_CHARS = 200
"""Most characters that are shown of an example's text."""
GRAPH_FORMATS = {".json": save_json, ".graphml": save_graphml}


def write_graph(run: str, file: str) -> None:
    """Write the graph of a run in the format that the file's suffix names. Raises InputError for any other suffix."""
    save = GRAPH_FORMATS.get(Path(file).suffix.lower())
    if save is None:
        raise InputError(f"--graph {file}: the name must end in .json (node-link data) or .graphml.")
    check_output(file, option="--graph")
    check_apart(file, {"RUN": run}, option="--graph")
    graph = build_graph(run)
    save(graph, file)
    counts = Counter(kind for _, kind in graph.nodes(data="kind"))
    listed = ", ".join(count(many, kind) for kind, many in counts.items())
    echo(f"{file}: {listed}")


def tell_why(run: str, sentence: str, *, as_json: bool) -> None:
    """Print the origin of a sentence of the prompt, or of a question. Raises InputError if the run has no such text."""
    graph = build_graph(run)
    found = reason_for(graph, sentence)
    cases = _measured_cases(run, found) if isinstance(found, QuestionStory) else []
    if as_json:
        echo_json(found.to_dict() | ({"outputs": [asdict(each) for each in cases]} if cases else {}))
        return
    lines = question_lines(found, cases) if isinstance(found, QuestionStory) else _Telling(found, graph.graph).lines()
    width = shutil.get_terminal_size((100, 24)).columns
    for indent, text in lines:
        echo(folded(text, indent, width))


def _patch(file: Path) -> str:
    try:
        return read_text(file)
    except FileNotFoundError:
        raise InputError(f"{file}: there is no patch; a run that is not finished has none yet.") from None


Line = tuple[int, str]


class _Telling:
    """An answer about the origin of a sentence, as lines of text with indents."""

    def __init__(self, found: Why, about: dict[str, Any]) -> None:
        self._found = found
        self._about = about
        self._told: set[str] = set()
        """Ids of the lessons that were told in full."""

    def lines(self) -> Iterator[Line]:
        """Yield the lines of the whole answer."""
        found = self._found
        prompt = "accepted prompt" if self._about["finished"] else "accepted prompt so far (the run is not finished)"
        if found.found == "not in the prompt":
            yield 0, f"The {prompt} does not say this, but it was learnt:"
        elif found.found == "nearest":
            yield 0, f"The {prompt} does not say exactly this; the nearest to it:"
        for passage in found.passages:
            yield 0, f"Line {passage.line} of the {prompt} (version {found.version}):"
            yield 2, passage.text
            yield 0, _past(passage)
        for story in found.edits:
            yield 0, ""
            told_below = not story.reason or story.measured or story.trial
            outcome = story.status if told_below else f"{story.status} ({story.reason})"
            yield 0, f"Edit {story.number}, iteration {story.iteration}: {outcome}"
            yield from ((2, line) for line in self._change(story))
            yield from self._behind(story)
            yield from ((2, line) for line in _effect(story))
        for lesson in found.lessons:
            yield 0, ""
            yield 0, f"No edit was written for lesson {lesson.id}."
            yield from self._lesson(lesson, 0, ())
        gains = {split: gain for split, gain in found.gain.items() if gain and gain["value"] is not None}
        if gains and (found.edits or found.lessons):
            said = "; ".join(f"{split} {gain['value']:+.3f}{interval_of(gain)}" for split, gain in gains.items())
            yield 0, ""
            yield 0, f"The whole run, start to accepted prompt ({self._about.get('yardstick') or 'gain'}): {said}"

    def _change(self, story: EditStory) -> list[str]:
        """Return the removed and added lines; none if the edit only added the passages that the user asked about."""
        old, new = story.old.splitlines(), story.new.splitlines()
        gone, come = ([line for line in mine if line not in other] for mine, other in ((old, new), (new, old)))
        if not gone and {line.strip() for line in come} <= {each.text for each in self._found.passages}:
            return []
        return [f"- {line}" for line in gone] + [f"+ {line}" for line in come]

    def _behind(self, story: EditStory) -> Iterator[Line]:
        """Yield lines on the lessons that say the same as the sentence. The edit's other lessons are only named."""
        close_lessons = [each for each in story.lessons if each.said >= SAYS] or list(story.lessons[:1])
        reasons = [story.reason, *(each.reason for each in story.measured)]
        for lesson in close_lessons:
            yield from self._lesson(lesson, 2, reasons)
        others = [each.id for each in story.lessons if each not in close_lessons]
        if others:
            yield 2, f"It was written from lessons {', '.join(others)} too, which say other things."

    def _lesson(self, lesson: LessonStory, indent: int, told: Sequence[str | None]) -> Iterator[Line]:
        """Yield lines on one lesson. ``told`` are reasons that other lines give already."""
        what = ", ".join(filter(None, [lesson.direction, f"support {lesson.support}", lesson.status]))
        yield indent, f"Lesson {lesson.id} ({what}): {lesson.text}"
        if lesson.id in self._told:
            yield indent + 2, "Its disagreements are listed above."
            return
        self._told.add(lesson.id)
        if lesson.reason and lesson.status != "applied" and lesson.reason not in told:
            yield indent + 2, f"{(lesson.status or 'because').capitalize()}: {lesson.reason}"
        if lesson.recalled:
            yield indent + 2, "It was in the lesson memory, and was tried before a note was taken."
        if lesson.requirement:
            words = next((each.question_text for each in lesson.cases if each.question_text), None)
            asked = f'"{words}"' if words else lesson.requirement
            yield indent + 2, f"It states what failed in its own words, before a note was taken: {asked}"
        earlier_cases, later_cases = ([each for each in lesson.cases if each.later is late] for late in (False, True))
        for case in earlier_cases[:MOST_CASES]:
            yield indent + 2, f"From {case.key}" + (f': "{case.question_text}"' if case.question_text else "")
            yield from ((indent + 4, line) for line in [*_texts(case), *self._answers(case)])
        if earlier_cases[MOST_CASES:]:
            yield indent + 2, f"and {len(earlier_cases) - MOST_CASES} more: {_names(earlier_cases[MOST_CASES:])}"
        if later_cases:
            yield indent + 2, f"It came up again later on {_names(later_cases)}."

    def _answers(self, case: CaseStory) -> list[str]:
        """Return each side's answer. The run's mode decides which sides there are."""
        run_facts, mode = self._about, self._about.get("mode")
        if case.target is None:
            return ["it failed; it was counted and not read"]
        if mode == "tune":  # what fails should not, and the reason is that of the judge or checker
            return [f"judged: {_answer(case.target, case.target_p_yes, case.reference_says)}"]
        answer = _answer(case.target, case.target_p_yes, case.target_says)
        if mode == "align":
            other_answer = case.reference_says or f"people: {_answer(case.reference, case.reference_p_yes, None)}"
            return [f"the judge, {run_facts.get('model')}: {answer}", other_answer]
        other_answer = _answer(case.reference, case.reference_p_yes, case.reference_says)
        return [
            f"the target, {run_facts.get('target')}: {answer}",
            f"the source, {run_facts.get('source')}: {other_answer}",
        ]


def _effect(story: EditStory) -> Iterator[str]:
    """Yield the results of the edit's trial, acceptance tests and pruning."""
    if trial := story.trial:
        turned = f"{trial['turned']} of {trial['evidence']} of its disagreements fixed"
        harmed = f"{trial['harmed']} of {trial['controls']} controls regressed"
        yield f"Trial, {'passed' if trial['passed'] else 'failed'}: {turned}, {harmed}"
    for test in story.measured:
        verb = "accepted" if test.accepted else "rejected"
        others = ", ".join(map(str, test.with_edits))
        together = f", together with edit{'s' if len(test.with_edits) > 1 else ''} {others}" if others else ""
        yield f"Acceptance test, version {test.version} {verb}{together}: {test.reason}{interval_of(test.gain)}"
    if pruning := story.pruning:
        verb = "taken out again" if pruning["removed"] else "not taken out"
        yield f"Pruning, {verb}: {pruning['reason']}{interval_of(pruning['gain'])}"


def _texts(case: CaseStory) -> Iterator[str]:
    for name, text in (("input", case.input), ("context", case.context), ("output", case.output)):
        if text:
            yield f"{name}: {' '.join(excerpt(text, case.output or '', MOST_CHARS).split())}"


def _names(cases: Sequence[CaseStory]) -> str:
    return names_text([each.key for each in cases], MOST_LISTED)


def _past(passage: Passage) -> str:
    names = [f"edit {each}" for each in passage.edits]
    if not names:
        return "It stood in the starting prompt, and no edit has changed it."
    if passage.in_start:
        return f"The starting prompt had it in other words; {' and then '.join(names)} changed it."
    changed = f", and {' and '.join(names[1:])} changed it" if names[1:] else ""
    return f"It was not in the starting prompt: {names[0]} brought it in{changed}."


def _answer(yes: bool | None, p_yes: float | None, says: str | None) -> str:
    if p_yes is not None:
        answer = f"{'yes' if p_yes >= 0.5 else 'no'}, probability of yes {p_yes:.2f}"
    elif yes is not None:
        answer = f"towards {'yes' if yes else 'no'}"
    else:
        answer = "not known"
    return f"{answer}. {shorten(' '.join(says.split()), MOST_CHARS)}" if says else answer


def _measured_cases(run: str, story: QuestionStory) -> Sequence[MeasuredCase]:
    """Return the test outputs that people did not pass, with an accepted measure's findings; none for a question."""
    if story.origin != "measure" or story.status != "accepted" or not RunDirectory(run).finished:
        return []
    return measured_cases(read_run(Path(run))).get(story.id, [])


def show_migration(run: Path, *, as_json: bool, other: bool) -> None:
    """Print the certificate of a migration. Raises InputError if ``other`` options were given, which need one target's
    run."""
    certificate = read_certificate(run)
    if other:
        runs = ", ".join(as_typed(run / TARGETS / target_folder(name)) for name in certificate.targets)
        raise InputError(f"{run}: this is a migration; --diff, --why and --graph are about one target's run: {runs}")
    if as_json:
        echo_json(certificate.model_dump(mode="json"))
    else:
        show(MigrationResult(run, certificate))


@click.command(name="show")
@click.argument("run")
@click.option("--diff", is_flag=True, help="Print the changes of the prompt instead.")
@click.option(
    "--why",
    "sentence",
    metavar="SENTENCE|ID",
    help="Say where a sentence of the prompt, or a learned question (its id), comes from.",
)
@click.option(
    "--graph",
    "file",
    metavar="FILE",
    help="Write the graph from disagreements and comments to versions: .json or .graphml.",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print result.json, of a migration certificate.json; with --why the answer as JSON.",
)
def show_command(run: str, diff: bool, sentence: str | None, file: str | None, as_json: bool) -> None:
    """Show what the run or the migration in the directory RUN came to.

    --why and --graph also work while the run is not finished.
    """
    if (diff, sentence is not None, file is not None).count(True) > 1:
        raise click.UsageError("--diff, --why and --graph do not go together.")
    if as_json and (diff or file is not None):
        raise click.UsageError(f"--json does not go with {'--diff' if diff else '--graph'}.")
    if is_migration(Path(run)):
        show_migration(Path(run), as_json=as_json, other=diff or sentence is not None or file is not None)
        return
    if sentence is not None:
        tell_why(run, sentence, as_json=as_json)
        return
    if file is not None:
        write_graph(run, file)
        return
    directory = RunDirectory(run)
    directory.read_config()
    record = directory.read_result()
    done = RunResult(directory.path, record)
    if as_json:
        echo_json(done.result)
    elif diff:
        echo(_patch(Path(run) / "changes.diff"), nl=False)
        if record.same_prompt:
            known = "what did change is told by" if record.changed else "nothing was accepted, and why is told by"
            echo(f"The prompt is as it was; {known} askance show {shlex.quote(run)}.", err=True)
    else:
        show(done)
        if _went_on(directory):
            said = "This is the result from before the run was made longer or resumed; it has not finished since."
            echo(f"{said} Go on with it: askance resume {shlex.quote(run)}", err=True)


def _went_on(directory: RunDirectory) -> bool:
    """Whether the run went on after its result and has not finished again."""
    with suppress(InputError):  # the result can be shown without a readable journal
        events = read_events(directory.path / "journal.jsonl")
        return bool(events) and not has_ended(events)
    return False


@click.command(name="diff")
@click.argument("before", metavar="RUN")
@click.argument("after", metavar="[RUN]", required=False)
@click.option("--by", metavar="FIELD", help="A metadata field whose values are compared one by one.")
@click.option(
    "--patch", "only_patch", is_flag=True, help="Nothing but the change of the prompt, for the program patch."
)
@common_options
def diff_command(before: str, after: str | None, by: str | None, only_patch: bool, as_json: bool, quiet: bool) -> None:
    """Compare what two finished runs accepted, or a run's start with what it accepted: prompt, questions, scores.

    Nothing is asked of a model: scores are compared on the examples that were test examples of both.
    """
    if only_patch and as_json:
        raise click.UsageError("--patch and --json do not go together.")
    found = run_difference(before, after, by=by)
    if only_patch:
        click.echo(found.patch, nl=False)
    elif as_json:
        echo_json(found.to_dict())
    elif not quiet:
        show(found)
