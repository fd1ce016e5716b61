"""Why a sentence is in a prompt, or a question in a checklist: its origin and its measured effect.

A sentence leads to the edits that wrote it, to their lessons and to the disagreements behind them. A question leads to
its comments, its effect on the examples, its acceptance test and its worth.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from ..prompts.errors import InputError
from ..prompts.formatting import names_text
from ..prompts.prompt import EditRefusedError, Prompt
from ..prompts.text import sentences
from .provenance import edit_of, linked

if TYPE_CHECKING:
    import networkx as nx
    from _typeshed import DataclassInstance

Row = dict[str, Any]
Story = TypeVar("Story", bound="DataclassInstance")
Found = Literal["in the prompt", "nearest", "not in the prompt"]
"""``nearest``: the prompt has nearly this sentence. ``not in the prompt``: only a lesson or an edit has it."""

SAME_RATIO = 0.6
"""Smallest share of common words with which a sentence counts as a revision of another sentence."""
KEPT = 0.7
"""Smallest share of the old words with which a longer sentence counts as the old sentence with an addition."""
LEAST_WORDS = 4
"""Fewest words of an old sentence for ``KEPT``: the words of a shorter sentence are in many sentences by chance."""
CLOSE = 0.75
"""Smallest share of common words with which the nearest sentence is explained instead."""
WORTH_NAMING = 0.3
"""Smallest share of common words with which the error message suggests a sentence."""
SAYS = 0.6
"""Smallest share of a lesson's words with which a sentence counts as saying the lesson."""


@dataclass(frozen=True)
class Passage:
    """A sentence of a prompt, with its history."""

    line: int
    """Line number, from 1."""
    text: str
    in_start: bool = False
    """Whether the sentence, or an earlier form of it, was in the starting prompt."""
    edits: tuple[int, ...] = ()
    """Numbers of the edits that wrote or changed the sentence, in order."""


@dataclass(frozen=True)
class CaseStory:
    """A disagreement behind a lesson. Fields that the run directory lacks are None."""

    key: str
    """``example/question``."""
    example: str | None
    question: str | None
    question_text: str | None
    input: str | None
    context: str | None
    output: str | None
    target: bool | None
    """Answer of the judge that is improved."""
    reference: bool | None
    """Answer that this judge should have given."""
    target_p_yes: float | None
    reference_p_yes: float | None
    target_says: str | None
    reference_says: str | None
    later: bool
    """Whether the case was found after the edit was written, when a later note repeated the lesson."""


@dataclass(frozen=True)
class LessonStory:
    """A lesson behind an edit."""

    id: str
    text: str
    """Words of the lesson at the time of the edit."""
    said: float
    """Share of the lesson's words that are in the sentence asked about, in [0, 1]. It ranks several lessons."""
    direction: str | None
    status: str | None
    reason: str | None
    support: int | None
    requirement: str | None
    """Question or check that the lesson states in its own words; None if a note-taker wrote the lesson."""
    recalled: bool
    """Whether the lesson came from a lesson memory and was tried before any note was taken."""
    cases: tuple[CaseStory, ...]


@dataclass(frozen=True)
class VersionStory:
    """A version that had the edit and went through the acceptance test."""

    version: int
    accepted: bool
    reason: str
    gain: Row | None
    """Gain over the version before it on validation: ``value`` with ``low``, ``high`` and ``p_value``."""
    judged: int | None
    with_edits: tuple[int, ...]
    """Other edits that were tried together with this one and share the gain."""


@dataclass(frozen=True)
class EditStory:
    """An edit with all facts about it."""

    number: int
    iteration: int | None
    old: str
    new: str
    status: str
    reason: str | None
    trial: Row | None
    """``turned`` of ``evidence`` disagreements, ``harmed`` of ``controls``; None without a trial of lessons."""
    measured: tuple[VersionStory, ...]
    pruning: Row | None
    """``removed``, ``reason``, and ``gain`` of the prompt without the edit; None if its removal was not tried."""
    lessons: tuple[LessonStory, ...]


@dataclass(frozen=True)
class Why:
    """The answer to where a sentence comes from."""

    sentence: str
    found: Found
    version: int
    """Version whose prompt was asked about."""
    passages: tuple[Passage, ...]
    """Sentences of the prompt that contain the asked sentence or, for ``nearest``, nearly say it."""
    edits: tuple[EditStory, ...]
    """Edits that the passages come from, or that would have added the sentence."""
    lessons: tuple[LessonStory, ...]
    """Lessons that contain the sentence and never led to an edit."""
    gain: Row
    """Gain of the whole run on ``validation`` and ``test``; empty while the run is not finished."""

    def to_dict(self) -> Row:
        """Return the answer as a JSON object."""
        return asdict(self)


def why(graph: nx.DiGraph, prompt: str, sentence: str) -> Why:
    """Explain where a sentence of a prompt comes from.

    Words are compared, in order. Case, punctuation, bullets and line breaks do not matter, and a part of a sentence is
    enough. Raises InputError if the prompt is not a version of the run, or if neither the prompt nor a lesson says
    anything like the sentence.
    """
    wanted = words_of(sentence)
    if not wanted:
        raise InputError("There is no word in the sentence to be looked for.")
    versions = [
        row["number"] for _, row in graph.nodes(data=True) if row["kind"] == "version" and row["prompt"] == prompt
    ]
    if not versions:
        raise InputError("This prompt is none of the versions of the run.")
    best, gain = graph.graph["best"], graph.graph.get("gain", {})
    version = best if best in versions else versions[-1]
    passages = blame(graph, version)
    place: Found = "in the prompt"
    holding = _holding(passages, wanted)
    if not holding:
        edits, lessons = _elsewhere(graph, wanted, sentence)
        if edits or lessons:
            return Why(sentence, "not in the prompt", version, (), edits, lessons, gain)
        place, holding = "nearest", [_nearest(passages, wanted, sentence)]
    numbers = dict.fromkeys(number for passage in holding for number in passage.edits)
    text = " ".join(passage.text for passage in holding)
    stories = tuple(_edit_story(graph, number, text) for number in numbers)
    return Why(sentence, place, version, tuple(holding), stories, (), gain)


def _nearest(passages: Sequence[Passage], wanted: Sequence[str], sentence: str) -> Passage:
    """Return the prompt's sentence that is nearest to the asked one. Raises InputError, which names similar sentences,
    if none is close enough."""
    ranked = sorted(passages, key=lambda passage: -_likeness(wanted, passage.text))
    if ranked and _likeness(wanted, ranked[0].text) >= CLOSE:
        return ranked[0]
    meant = [passage for passage in ranked[:3] if _likeness(wanted, passage.text) >= WORTH_NAMING]
    listed = "; ".join(f"line {passage.line}, {passage.text!r}" for passage in meant)
    hint = f" Did you mean: {listed}?" if meant else ""
    raise InputError(f"Neither the prompt nor a lesson of this run says {sentence!r}.{hint}")


def blame(graph: nx.DiGraph, version: int) -> list[Passage]:
    """Return the sentences of a version's prompt, each with the edits that made it.

    The edits of the version are applied to the starting prompt one after the other, as ``git blame`` goes through
    commits. If they do not give the version's prompt, each difference from the parent version is attributed to all new
    edits of the version.
    """
    node = f"version:{version}"
    row = graph.nodes[node]
    prompt = Prompt(graph.nodes["version:0"]["prompt"])
    passages = [replace(passage, in_start=True) for passage in split_passages(prompt.text)]
    try:
        for number in row["edits"]:
            prompt = prompt.apply(edit_of(graph, number))
            passages = _changed(passages, split_passages(prompt.text), (number,))
    except EditRefusedError:
        pass
    if prompt.text == row["prompt"]:
        return passages
    parent = graph.nodes[linked(graph, node, "parent")[0]]
    new = tuple(number for number in row["edits"] if number not in parent["edits"])
    passages = _changed(blame(graph, parent["number"]), split_passages(row["prompt"]), new)
    return [
        replace(passage, edits=tuple(number for number in passage.edits if number in row["edits"]))
        for passage in passages
    ]


def words_of(text: str) -> list[str]:
    """Return the words in lower case, without punctuation and bullets."""
    return re.findall(r"\w+", text.casefold())


def split_passages(text: str) -> list[Passage]:
    """Split a prompt into its sentences, line by line. A bare bullet or number stays with the text after it."""
    passages = []
    for number, line in enumerate(text.splitlines(), 1):
        mark = ""
        for part in sentences(line):
            said = f"{mark} {part}".strip()
            mark = "" if re.search(r"[^\W\d_]", part) else said
            if not mark:
                passages.append(Passage(number, said))
        if mark:
            passages.append(Passage(number, mark))
    return passages


def _changed(before: Sequence[Passage], after: Sequence[Passage], edits: tuple[int, ...]) -> list[Passage]:
    """Return the new sentences with the history of the old ones. New or revised sentences get the ``edits`` added.

    An unchanged sentence keeps its history. The remaining sentences are paired by likeness: a pair is a sentence and
    its revision.
    """
    past: dict[int, Passage] = {}
    unmatched = list(before)
    for place, new in enumerate(after):
        same = next((passage for passage in unmatched if passage.text == new.text), None)
        if same is not None:
            unmatched.remove(same)
            past[place] = same
    likeness = [
        (_alike(old.text, new.text), -place, -old_place)
        for place, new in enumerate(after)
        if place not in past
        for old_place, old in enumerate(unmatched)
    ]
    taken: set[int] = set()
    for alike, place, old_place in sorted(likeness, reverse=True):
        if alike and -place not in past and old_place not in taken:
            past[-place] = unmatched[-old_place]
            taken.add(old_place)
    passages = []
    for place, new in enumerate(after):
        old = past.get(place, Passage(0, ""))
        more = () if old.text == new.text else edits
        passages.append(replace(new, in_start=old.in_start, edits=old.edits + more))
    return passages


def _alike(old: str, new: str) -> float:
    """Return the likeness of a sentence to its possible revision, in [0, 1]; 0 if it cannot be a revision."""
    mine, theirs = words_of(old), words_of(new)
    matcher = SequenceMatcher(None, mine, theirs, autojunk=False)
    ratio = matcher.ratio()
    kept = sum(block.size for block in matcher.get_matching_blocks()) / len(mine) if len(mine) >= LEAST_WORDS else 0
    return ratio if ratio >= SAME_RATIO or kept >= KEPT else 0.0


def _likeness(wanted: Sequence[str], text: str) -> float:
    return SequenceMatcher(None, wanted, words_of(text), autojunk=False).ratio()


def _holding(passages: Sequence[Passage], wanted: Sequence[str]) -> list[Passage]:
    """Return the sentences that the words run through, for every occurrence of the words."""
    words = [(word, place) for place, each in enumerate(passages) for word in words_of(each.text)]
    places: set[int] = set()
    for start in range(len(words) - len(wanted) + 1):
        window = words[start : start + len(wanted)]
        if [word for word, _ in window] == list(wanted):
            places |= {place for _, place in window}
    return [passages[place] for place in sorted(places)]


def _elsewhere(
    graph: nx.DiGraph, wanted: Sequence[str], sentence: str
) -> tuple[tuple[EditStory, ...], tuple[LessonStory, ...]]:
    """Return the edits that would have added the words, and the lessons with these words that never led to an edit."""
    edits, lessons = [], []
    for node, row in graph.nodes(data=True):
        text = {"edit": row.get("new"), "lesson": row.get("text")}.get(row["kind"]) or ""
        if not _holding(split_passages(text), wanted):
            continue
        if row["kind"] == "edit":
            edits.append(_edit_story(graph, row["number"], sentence))
        elif row.get("status") != "absorbed" and not any(
            graph.edges[node, there]["kind"] == "written" for there in graph[node]
        ):
            lessons.append(_lesson_story(graph, node, text, None, sentence))
    return tuple(edits), tuple(lessons)


def _story(kind: type[Story], row: Mapping[str, Any], **more: Any) -> Story:
    """Make a record from the attributes of a node and further fields. Missing attributes become None."""
    return kind(**{field.name: row.get(field.name) for field in fields(kind)} | more)


def _edit_story(graph: nx.DiGraph, number: int, text: str) -> EditStory:
    node = f"edit:{number}"
    lessons = []
    for lesson in linked(graph, node, "written"):
        then = graph.edges[lesson, node]
        lessons.append(_lesson_story(graph, lesson, then["text"], then["evidence"], text))
    measured = []
    for version in graph[node]:
        if graph.edges[node, version]["kind"] == "applied":
            others = tuple(graph.nodes[each]["number"] for each in linked(graph, version, "applied") if each != node)
            row = graph.nodes[version]
            measured.append(_story(VersionStory, row, version=row["number"], with_edits=others))
    lessons.sort(key=lambda story: -story.said)
    return _story(EditStory, graph.nodes[node], measured=tuple(measured), lessons=tuple(lessons))


def _lesson_story(graph: nx.DiGraph, node: str, text: str, then: Sequence[str] | None, said_in: str) -> LessonStory:
    """Make a lesson's story. ``then`` is the evidence at the time of the edit; None without an edit."""
    row = graph.nodes[node]
    lesson_words, passage_words = set(words_of(text)), set(words_of(said_in))
    cases = []
    for key in dict.fromkeys([*(then or ()), *row.get("evidence", [])]):
        case = graph.nodes.get(f"disagreement:{key}", {})
        cases.append(_story(CaseStory, case, key=key, later=then is not None and key not in then))
    return _story(
        LessonStory,
        row,
        id=node.removeprefix("lesson:"),
        text=text,
        said=len(lesson_words & passage_words) / len(lesson_words) if lesson_words else 0.0,
        reason=row.get("reason") or row.get("no_edit") or row.get("class_reason"),
        recalled=bool(row.get("recalled")),
        cases=tuple(cases),
    )


MOST_LISTED = 20
"""Most questions that an error message names."""


@dataclass(frozen=True)
class CommentStory:
    """A comment that led to a question."""

    text: str
    examples: tuple[str, ...]
    """Examples that have this comment, among the sources of its questions."""


@dataclass(frozen=True)
class AcceptanceStory:
    """A version with the question that went through the acceptance test."""

    version: int
    accepted: bool
    reason: str
    gain: Row | None
    """Gain over the version before it, on validation."""
    together: tuple[str, ...]
    """Other questions that were tried together with this one and share the gain."""


@dataclass(frozen=True)
class QuestionStory:
    """The history of a question."""

    id: str
    criterion: str
    """Text of the question, marked if yes is a fault."""
    good: str | None
    """The answer that speaks for the output; None if it is not known."""
    origin: str
    """``comment``, ``contrast`` or ``memory``; ``start`` for the run's first questions."""
    iteration: int | None
    status: Literal["accepted", "rejected", "set aside", "waiting"]
    reason: str | None
    """Why the question did not join; None if it joined."""
    comments: tuple[CommentStory, ...] = ()
    sources: tuple[str, ...] = ()
    """Examples that led to the question."""
    effect: float | None = None
    """Mean badness of rejected outputs, without its sources, minus that of accepted outputs; in [-1, 1]."""
    measured: tuple[AcceptanceStory, ...] = ()
    worth: Row = field(default_factory=dict)
    """Gain of the accepted judge over the same judge without the question, by split."""

    def to_dict(self) -> Row:
        """Return the history as a JSON object."""
        return asdict(self)


def find_question(graph: nx.DiGraph, asked: str) -> str | None:
    """Return the id of the question that ``asked`` means; None if no question fits. ``asked`` is the id. For a question
    that the run proposed, it may also be the beginning of the id, or neighbouring words of the text. Raises InputError
    if several fit."""
    if f"question:{asked}" in graph:
        return asked
    known, wanted = _proposed(graph), " ".join(words_of(asked))
    matches = [name for name in known if asked and name.startswith(asked)]
    matches = matches or [
        name for name, text in known.items() if wanted and f" {wanted} " in f" {' '.join(words_of(text))} "
    ]
    if len(matches) > 1:
        listed = names_text(matches, MOST_LISTED)
        raise InputError(f"{asked!r} may be one of these questions: {listed}. Give the whole id.")
    return matches[0] if matches else None


def _proposed(graph: nx.DiGraph) -> dict[str, str]:
    """Return the texts of the questions that the run proposed, by id."""
    rows = {node.removeprefix("question:"): row for node, row in graph.nodes(data=True) if row["kind"] == "question"}
    return {name: row["text"] for name, row in rows.items() if row["origin"] != "start"}


def why_question(graph: nx.DiGraph, question: str) -> QuestionStory:
    """Return the history of a question."""
    node = f"question:{question}"
    row = graph.nodes[node]
    measured = []
    for there in graph[node]:
        others = tuple(each.removeprefix("question:") for each in linked(graph, there, "asked") if each != node)
        version = graph.nodes[there]
        measured.append(_story(AcceptanceStory, version, version=version["number"], together=others))
    return _story(
        QuestionStory,
        row,
        id=question,
        comments=tuple(_story(CommentStory, graph.nodes[comment]) for comment in linked(graph, node, "proposed")),
        sources=tuple(row.get("sources", ())),
        measured=tuple(measured),
        worth={split: gain for split, gain in row.get("worth", {}).items() if gain},
    )


def reason_for(graph: nx.DiGraph, sentence: str) -> Why | QuestionStory:
    """Return the history of a proposed question, named by its id or words, or of a sentence of the prompt. Raises
    InputError if nothing contains the sentence, or if several questions fit."""
    if graph.nodes.get(f"question:{sentence}", {}).get("origin", "start") != "start":
        return why_question(graph, sentence)
    try:
        found = why(graph, graph.nodes[f"version:{graph.graph['best']}"]["prompt"], sentence)
        if found.found == "in the prompt":
            return found
    except InputError as error:
        question = find_question(graph, sentence)
        if question is None:
            known = names_text([*_proposed(graph)], MOST_LISTED)
            raise InputError(f"{error}{f' Questions that were proposed: {known}.' if known else ''}") from None
        return why_question(graph, question)
    question = find_question(graph, sentence)
    return found if question is None else why_question(graph, question)
