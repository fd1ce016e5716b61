"""Provenance of a judge, as a graph: disagreement → lesson → edit → version, and comment → question → version.

The graph is read from a run directory, finished or not. Nodes are named ``kind:name`` (``disagreement:e7/facts``,
``lesson:L3``, ``edit:2``, ``version:4``) and have ``kind`` among their attributes; so have edges. Attributes:

- **disagreement**: ``example``, ``question``, ``question_text``, ``iteration``, both sides' answers
  (``target``, ``reference``: booleans; ``target_p_yes``, ``reference_p_yes`` in [0, 1]; ``target_says``,
  ``reference_says``: their reasons), ``gap``, ``version`` (the best version at that time), and the example's
  ``input``, ``context`` and ``output`` as far as the run's inputs have them. For a generator, ``output`` is the text
  that this version wrote, if it was kept. ``no_note`` says why no lesson could be drawn.
- **lesson**: ``text``, ``direction``, ``class`` (``promptable`` or ``computational``), ``class_reason``, ``status``,
  ``reason``, ``support``. If no note-taker wrote the lesson, ``requirement`` is the question or check that it states,
  and ``stated_by`` says how (``words``, ``model`` or ``quotation``). ``recalled`` is true for a lesson from a lesson
  memory. A note that repeats a known lesson has the status ``absorbed``. ``no_edit`` says why no edit for the lesson
  passed the guards.
- **edit**: ``number``, ``old``, ``new``, ``iteration``, ``status`` (``accepted``, ``rejected``, ``failed its trial``,
  ``taken out again``, ``not tried``), ``reason``; its ``trial``; its ``pruning``.
- **version**: ``number``, ``prompt``, ``prompt_hash``, ``edits`` (numbers of all its edits), ``accepted``,
  ``reason``, validation ``gain`` over its parent, ``judged`` (validation examples), ``iteration``.
- **comment**: ``text``, and ``examples``: those sources of its questions that have this comment in the run's inputs.
- **question**: ``text``, ``criterion`` (the text, marked "yes = fault" if yes is a fault), ``good`` (the answer that
  speaks for the output), ``origin`` (``comment``, ``contrast``, ``memory``, or ``start`` for the run's first
  questions), ``sources`` (examples), ``effect``, ``iteration``, ``status`` (``accepted``, ``rejected``, ``set
  aside``, ``waiting``), ``reason`` (why it did not join), and ``worth`` by split for a question that joined a
  finished run.

Edges: ``proposed`` (comment → question), ``asked`` (question → version with it in the acceptance test),
``evidence`` (disagreement → lesson), ``duplicate`` and ``merge`` (note → the lesson that absorbed it), ``written``
(lesson → edit, with the lesson's words and evidence at that time), ``applied`` and ``taken out`` (edit → version),
``parent`` (version → the version made from it).

The graph can be written to a file for other programs: JSON, or GraphML.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from ..prompts.checklist import Checklist
from ..prompts.errors import InputError
from ..prompts.examples import Example
from ..prompts.lessons import Edit
from ..prompts.prompt import EditRefusedError
from ..prompts.rows import validate_row
from ..prompts.tables import read_rows
from ..prompts.text_files import write_whole
from ..stats.differences import difference_dict
from .journal import read_events
from .records import CriterionRecord
from .run_directory import RunDirectory

if TYPE_CHECKING:
    import networkx as nx


Row = dict[str, Any]


def build_graph(run: str | Path) -> nx.DiGraph:
    """Build the graph of a run.

    The graph's own attributes: ``run`` (name of the directory), ``mode``, the models that the mode has (e.g. ``target``
    and ``source``), ``best`` (number of the version that a user would get), ``finished``. A finished run also has
    ``finish_reason``, ``yardstick`` and ``gain`` (of the best version over the start, on ``validation`` and ``test``).
    Raises InputError if there is no run in the directory, or if a file of the run is damaged.
    """
    directory = RunDirectory(run)
    config = directory.read_config()["config"]
    events = read_events(directory.path / "journal.jsonl")
    builder = _Builder(directory, config)
    part = "the start"
    try:
        for number, event in enumerate(events, 1):
            part = f"event {number} ('{event.get('event')}')"
            builder.add(event)
        part = "what the events say together"
        return builder.finish()
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{directory.path / 'journal.jsonl'}: {part} is not as this askance writes it ({error})."
        ) from None


class _Written(BaseModel):
    """A row of ``outputs.jsonl``."""

    version: int
    example: str
    output: str | None


class _Builder:
    """Builder of the graph from the journal's events, one after the other."""

    def __init__(self, directory: RunDirectory, config: Mapping[str, Any]) -> None:
        import networkx as nx

        self._directory = directory
        about = {name: config[name] for name in ("target", "source", "model", "generator", "judge") if config.get(name)}
        self._graph = nx.DiGraph(run=directory.path.resolve().name, mode=config.get("command"), **about)
        self._edits: dict[tuple[str, str], int] = {}
        self._latest: dict[str, int] = {}
        """Number of the latest edit by lesson."""
        self._in_prompt: list[int] = []
        """Numbers of the edits in the best version."""
        self._pruning_tried: set[int] = set()
        self._best = 0
        self._iteration = 0
        self._comments: dict[str, str] = {}
        """Node of each comment, by its text."""
        self._start = directory.read_start()
        self._add_version(0, self._start.text, None, edits=[], accepted=True, reason="the starting prompt")

    def _node(self, kind: str, name: str | int, **attributes: Any) -> str:
        self._graph.add_node(f"{kind}:{name}", kind=kind, **attributes)
        return f"{kind}:{name}"

    def add(self, event: Row) -> None:
        """Add an event to the graph. Events of kinds without an ``_on_…`` method do not concern provenance."""
        getattr(self, f"_on_{event.get('event')}", lambda _: None)(event)

    def _on_disagreements(self, event: Row) -> None:
        self._iteration = event["iteration"]
        for row in event["read"]:
            then = {"iteration": self._iteration, "version": self._best}
            self._node("disagreement", f"{row['example']}/{row['question']}", **then, **row)

    def _on_reasons(self, event: Row) -> None:
        for side in ("target", "reference"):
            for key, text in event[side].items():
                self._node("disagreement", key, **{f"{side}_says": text})

    def _on_no_note(self, event: Row) -> None:
        self._node("disagreement", event["disagreement"], no_note=event["reason"])

    def _on_lesson(self, event: Row) -> None:
        evidence = list(event["evidence"])
        note = self._node(
            "lesson", event["id"], text=event["text"], evidence=evidence, status="new", support=len(evidence)
        )
        for key in evidence:
            self._graph.add_edge(self._node("disagreement", key), note, kind="evidence")
        if event["kept_as"] == event["id"]:
            return
        kept = self._node("lesson", event["kept_as"], text=event["kept_text"])
        row = self._graph.nodes[kept]
        # a lesson from an earlier run has no evidence yet
        row["evidence"] = list(dict.fromkeys([*row.get("evidence", ()), *evidence]))
        row["support"] = len(row["evidence"])
        what = "it says the same as" if event["relation"] == "duplicate" else "it was merged into"
        self._node("lesson", event["id"], status="absorbed", reason=f"{what} {event['kept_as']}")
        self._graph.add_edge(note, kept, kind=event["relation"])

    def _on_requirement(self, event: Row) -> None:
        """Add a requirement that became a lesson. Its failures were counted, but no note-taker read them."""
        row = event["lesson"]
        lesson, question = self._set_lesson(row | {"stated_by": event["by"]}), row["requirement"]
        for key in row["evidence"]:
            example = key.removesuffix(f"/{question}")
            row_of_failure = {"example": example, "question": question, "iteration": self._iteration}
            failure = self._node("disagreement", key, **row_of_failure)
            self._graph.nodes[failure].setdefault("version", self._best)
            self._graph.add_edge(failure, lesson, kind="evidence")

    def _on_learned(self, event: Row) -> None:
        self._set_lesson(event["lesson"])

    def _on_recalled(self, event: Row) -> None:
        """Add a tried lesson from the lesson memory. Its evidence is in the runs that it comes from."""
        self._set_lesson(event["lesson"] | {"recalled": True})

    def _set_lesson(self, row: Row) -> str:
        known = {name: row.get(name) for name in ("text", "direction", "dimension", "status", "reason")}
        known |= {name: row[name] for name in ("requirement", "stated_by", "recalled") if row.get(name)}
        known |= {"class": row.get("kind", "promptable"), "class_reason": row.get("kind_reason")}
        evidence = list(row["evidence"])
        return self._node("lesson", row["id"], evidence=evidence, support=len(evidence), **known)

    def _on_retired(self, event: Row) -> None:
        self._node("lesson", event["id"], status="retired", reason=event["reason"])

    def _on_no_edit(self, event: Row) -> None:
        for lesson in event["lessons"]:
            self._node("lesson", lesson, no_edit=event["reason"])

    def _on_edit(self, event: Row) -> None:
        """Add an edit. An edit that is proposed again with more evidence keeps its node."""
        key = (event["old"], event["new"])
        number = self._edits.setdefault(key, len(self._edits) + 1)
        edit = self._node("edit", number, number=number, old=event["old"], new=event["new"], iteration=self._iteration)
        self._graph.nodes[edit].setdefault("status", "not tried")
        for lesson in event["lessons"]:
            self._latest[lesson] = number
            row = self._graph.nodes[self._node("lesson", lesson)]
            then = {"text": row.get("text"), "evidence": list(row.get("evidence", ()))}
            self._graph.add_edge(f"lesson:{lesson}", edit, kind="written", **then)

    def _on_trial(self, event: Row) -> None:
        for number in self._those(event["lessons"]):
            result = event["result"]
            self._node("edit", number, trial=result)
            if not result["passed"]:
                self._node("edit", number, status="failed its trial", reason=result["reason"])

    def _on_decision(self, event: Row) -> None:
        number, parent = _version(event["version"]), _version(event["parent"])
        edits = self._those(event["lessons"])
        measured = {name: event.get(name) for name in ("accepted", "reason", "gain", "judged", "iteration")}
        every = [*self._graph.nodes[f"version:{parent}"]["edits"], *edits]
        text, new_questions = self._text(number, parent, edits), not edits and not event.get("shows")
        self._add_version(number, text, parent, edits=every, new_questions=new_questions, **measured)
        for edit in edits:
            self._graph.add_edge(f"edit:{edit}", f"version:{number}", kind="applied")
            status = "accepted" if event["accepted"] else "rejected"
            self._node("edit", edit, status=status, reason=event["reason"])
        if event["accepted"]:
            self._best = number
            self._in_prompt += edits
        if new_questions:
            self._decide_questions(number, event)

    def _on_question(self, event: Row) -> None:
        question = CriterionRecord.model_validate(event)
        known = {
            name: getattr(question, name) for name in ("text", "criterion", "good", "origin", "effect", "iteration")
        }
        status = {"status": "set aside" if question.reason else "waiting", "reason": question.reason}
        node = self._node("question", question.id, **known, sources=list(question.sources), **status)
        for text in question.comments:
            number = len(self._comments) + 1
            if text not in self._comments:
                self._comments[text] = self._node("comment", number, text=text, examples=[])
            self._graph.add_edge(self._comments[text], node, kind="proposed")

    def _decide_questions(self, version: int, event: Row) -> None:
        """Set the status of the questions that waited for the acceptance test."""
        for node, row in self._graph.nodes(data=True):
            if row["kind"] == "question" and row["status"] == "waiting":
                taken = event["accepted"]
                row |= {"status": "accepted" if taken else "rejected"}
                row |= {"reason": None if taken else f"not accepted: {event['reason']}"}
                self._graph.add_edge(node, f"version:{version}", kind="asked")

    def _on_pruning(self, event: Row) -> None:
        lessons = {f"lesson:{lesson}" for lesson in event["lessons"]}
        candidates = [edit for edit in reversed(self._in_prompt) if edit not in self._pruning_tried]
        # the same edit may have been proposed for another lesson too, so exact matches come first
        candidates.sort(key=lambda edit: set(self._graph.pred[f"edit:{edit}"]) != lessons)
        edit = next(number for number in candidates if lessons <= set(self._graph.pred[f"edit:{number}"]))
        self._pruning_tried.add(edit)
        outcome = {name: event[name] for name in ("removed", "reason", "gain")}
        self._node("edit", edit, pruning=outcome)
        number = _version(event["version"])
        if number != self._best:  # otherwise the edit could not be taken out, and no version was tried
            remaining = [other for other in self._in_prompt if other != edit]
            measured = {"accepted": event["removed"], "reason": event["reason"], "gain": event["gain"]}
            self._add_version(number, self._text(number, 0, remaining), self._best, edits=remaining, **measured)
            self._graph.add_edge(f"edit:{edit}", f"version:{number}", kind="taken out")
        if event["removed"]:
            self._best = number
            self._in_prompt.remove(edit)
            self._node("edit", edit, status="taken out again", reason=event["reason"])

    def _on_finished(self, event: Row) -> None:
        self._best = event["best"]

    def _those(self, lessons: Sequence[str]) -> list[int]:
        return list(dict.fromkeys(self._latest[lesson] for lesson in lessons))

    def _text(self, number: int, parent: int, edits: Sequence[int]) -> str:
        """Return a version's prompt: the result of its edits, or the only file with its number if that differs."""
        # several files have the same number if a resumed run took another way than its first attempt
        texts = [each.text for each in self._directory.read_versions(number, self._start)]
        expected = replace(self._start, text=self._graph.nodes[f"version:{parent}"]["prompt"])
        with suppress(EditRefusedError):
            for edit in edits:
                expected = expected.apply(edit_of(self._graph, edit))
            if expected.text in texts or len(texts) != 1:
                return expected.text
        if len(texts) == 1:
            return texts[0]
        raise InputError(f"{self._directory.path / 'prompts'}: version {number} is missing.")

    def _add_version(self, number: int, text: str, parent: int | None, **attributes: Any) -> None:
        files = self._directory.version_files(number)
        name = files[0].stem.partition("-")[2] if len(files) == 1 else replace(self._start, text=text).hash
        node = self._node("version", number, number=number, prompt=text, prompt_hash=name, **attributes)
        if parent is not None:
            self._graph.add_edge(f"version:{parent}", node, kind="parent")

    def finish(self) -> nx.DiGraph:
        """Add facts from the other files of the run, and return the graph."""
        graph, directory = self._graph, self._directory
        graph.graph |= {"best": self._best, "finished": directory.finished}
        questions: dict[str, str] = {}
        if directory.finished:
            result = directory.read_result()
            about = {"finish_reason": result.finish_reason, "yardstick": result.yardstick}
            graph.graph |= about | {"gain": result.gain.to_dict()}
            if result.best.checklist:
                questions = {question.id: question.criterion for question in result.best.checklist.questions}
        kept = directory.path / "lessons.jsonl"
        for _, row in read_rows(kept) if kept.is_file() else ():
            if f"lesson:{row.get('id')}" in graph:
                self._set_lesson(row)
        examples, checklist, _ = directory.read_inputs()
        questions |= {question.id: question.criterion for question in checklist.questions} if checklist else {}
        by_id = {example.id: example for example in examples}
        written = self._written() if graph.graph["mode"] == "tune" else None
        self._add_questions(checklist, by_id)
        for _, row in graph.nodes(data=True):
            if row["kind"] != "disagreement":
                continue
            row["question_text"] = questions.get(row.get("question", ""))
            example = by_id.get(row.get("example", ""))
            if example is not None:
                output = example.output if written is None else written.get((row.get("version"), example.id))
                texts = {"input": example.input, "context": example.context, "output": output}
                row.update({name: str(text) for name, text in texts.items() if text})
        return graph

    def _written(self) -> dict[tuple[int, str], str | None]:
        """Return the kept outputs of a generator by version and example."""
        kept = self._directory.path / "verdicts" / "outputs.jsonl"
        numbered = read_rows(kept) if kept.is_file() else ()
        rows = [validate_row(_Written, row, f"{kept}, line {number}") for number, row in numbered]
        return {(each.version, each.example): each.output for each in rows}

    def _add_questions(self, checklist: Checklist | None, examples: Mapping[str, Example]) -> None:
        """Add the worth of learned questions, the examples of their comments, and the questions of the start."""
        graph = self._graph
        if self._directory.finished:
            for learned in self._directory.read_result().questions:
                if f"question:{learned.id}" in graph:
                    worth = {split: difference_dict(gain) for split, gain in learned.worth if gain}
                    graph.nodes[f"question:{learned.id}"].update(worth=worth)
        for text, comment in self._comments.items():
            named = dict.fromkeys(name for question in graph[comment] for name in graph.nodes[question]["sources"])
            comments = {
                name: [" ".join(comment_there.text.split()) for comment_there in examples[name].comment]
                for name in named
                if name in examples
            }
            graph.nodes[comment]["examples"] = [name for name, texts in comments.items() if text in texts]
        for question in checklist.questions if checklist else ():
            about = {"text": question.text, "criterion": question.criterion, "good": question.good, "origin": "start"}
            self._node("question", question.id, **about, status="accepted")


def _version(given: Any) -> int:
    """Return the number of a version. Raises TypeError if the value is not an int (a bool is not accepted)."""
    if type(given) is not int:
        raise TypeError(f"{given!r} is no version")
    return given


def edit_of(graph: nx.DiGraph, number: int) -> Edit:
    """Return an edit of the graph, without its lessons."""
    row = graph.nodes[f"edit:{number}"]
    return Edit(old=row["old"], new=row["new"])


def linked(graph: nx.DiGraph, node: str, kind: str) -> list[str]:
    """Return the nodes with an edge of this kind to a node."""
    return [here for here in graph.pred[node] if graph.edges[here, node]["kind"] == kind]


_NOT_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def save_json(graph: nx.DiGraph, file: str | Path) -> None:
    """Write the graph as JSON in networkx's node-link form.

    An object with ``directed`` (true), ``multigraph`` (false), ``graph`` (the graph's attributes), ``nodes`` (objects
    with ``id`` and the attributes) and ``edges`` (objects with ``source``, ``target`` and the attributes).
    ``networkx.node_link_graph(data, edges="edges")`` reads it. Raises AskanceError if the file cannot be written."""
    import networkx as nx

    data = nx.node_link_data(graph, edges="edges")
    write_whole(file, json.dumps(data, ensure_ascii=False, indent=2, allow_nan=False) + "\n")


def save_graphml(graph: nx.DiGraph, file: str | Path) -> None:
    """Write the graph as GraphML, for Gephi, yEd and the like.

    GraphML has only single values: a value inside an object is named by its path (``gain.low``), a list becomes JSON,
    and None is left out. Control characters, which XML forbids, become U+FFFD. Raises AskanceError if the file cannot
    be written."""
    import networkx as nx

    flat = nx.DiGraph(**_flat(graph.graph))
    flat.add_nodes_from((name, _flat(row)) for name, row in graph.nodes(data=True))
    flat.add_edges_from((here, there, _flat(row)) for here, there, row in graph.edges(data=True))
    write_whole(file, "\n".join(nx.generate_graphml(flat, named_key_ids=True)) + "\n")


def _flat(row: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Flatten a row to single values, named by their path."""
    flat: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{before}{name}.")
        elif isinstance(value, (list, tuple)):
            flat[before + name] = _NOT_IN_XML.sub("\ufffd", json.dumps(value, ensure_ascii=False))
        elif isinstance(value, str):
            flat[before + name] = _NOT_IN_XML.sub("\ufffd", value)
        elif isinstance(value, int) and not isinstance(value, bool) and before:
            flat[before + name] = float(value)  # a name needs one type: a measure may be 0 here and 0.1 elsewhere
        elif value is not None:
            flat[before + name] = value
    return flat
