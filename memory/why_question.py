"""Why a judge asks a question: the comments that it comes from, what the examples said of it, the acceptance test, its worth."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from ..prompts.errors import InputError
from .provenance import linked
from .why import words_of

if TYPE_CHECKING:
    import networkx as nx

Row = dict[str, Any]
MOST_LISTED = 20
"""Questions that an error names."""


@dataclass(frozen=True)
class CommentStory:
    """A comment that a question was made of."""

    text: str
    examples: tuple[str, ...]
    """Those of the question's examples that it was written of."""


@dataclass(frozen=True)
class AcceptanceStory:
    """A version with the question that went through the acceptance test."""

    version: int
    accepted: bool
    reason: str
    gain: Row | None
    """Over the version before it, on validation."""
    together: tuple[str, ...]
    """Other questions that were tried with it, so that the gain is theirs too."""


@dataclass(frozen=True)
class QuestionStory:
    """All that is known of a question."""

    id: str
    criterion: str
    """Its text, and that yes is a fault where it is one."""
    good: str | None
    """The answer that speaks for the output; None where that was not found out."""
    origin: str
    """``comment``, ``contrast`` or ``memory``; ``start`` where the run began with it."""
    iteration: int | None
    status: Literal["accepted", "rejected", "set aside", "waiting"]
    reason: str | None
    """Why it did not join; None where it did."""
    comments: tuple[CommentStory, ...] = ()
    sources: tuple[str, ...] = ()
    """Examples that it comes from."""
    effect: float | None = None
    """How much more it speaks against other rejected outputs than against accepted ones, in [-1, 1]."""
    measured: tuple[AcceptanceStory, ...] = ()
    worth: Row = field(default_factory=dict)
    """By split: what the accepted judge gains by it, over the same judge without it."""

    def to_dict(self) -> Row:
        """As JSON."""
        return asdict(self)


def find_question(graph: nx.DiGraph, asked: str) -> str | None:
    """The id of the question that is meant; None where none is.

    Any question may be named by its id, one that was proposed in the run also by the beginning of its id or by words that
    follow each other in its text.

    Raises:
        InputError: Several are meant.
    """
    if f"question:{asked}" in graph:
        return asked
    known, wanted = _proposed(graph), " ".join(words_of(asked))
    found = [name for name in known if asked and name.startswith(asked)]
    found = found or [
        name for name, text in known.items() if wanted and f" {wanted} " in f" {' '.join(words_of(text))} "
    ]
    if len(found) > 1:
        raise InputError(f"{asked!r} may be one of these questions: {_listed(found)}. Give the whole id.")
    return found[0] if found else None


def learned_ids(graph: nx.DiGraph) -> str:
    """Ids of the questions that were proposed in the run, in a sentence; empty where there are none."""
    return _listed([*_proposed(graph)])


def _proposed(graph: nx.DiGraph) -> dict[str, str]:
    """Texts by id."""
    rows = {node.removeprefix("question:"): row for node, row in graph.nodes(data=True) if row["kind"] == "question"}
    return {name: row["text"] for name, row in rows.items() if row["origin"] != "start"}


def _listed(names: list[str]) -> str:
    more = len(names) - MOST_LISTED
    return ", ".join(names[:MOST_LISTED]) + (f" and {more} more" if more > 0 else "")


def why_question(graph: nx.DiGraph, question: str) -> QuestionStory:
    """The history of a question.

    Args:
        graph: As :func:`askance.memory.provenance.build_graph` makes it.
        question: Its id; must be in the graph.
    """
    node = f"question:{question}"
    row = graph.nodes[node]
    measured = []
    for there in graph[node]:
        version = graph.nodes[there]
        others = tuple(each.removeprefix("question:") for each in linked(graph, there, "asked") if each != node)
        measured.append(
            AcceptanceStory(version["number"], version["accepted"], version["reason"], version["gain"], others)
        )
    return QuestionStory(
        question,
        row["criterion"],
        row["good"],
        row["origin"],
        row.get("iteration"),
        row["status"],
        row.get("reason"),
        tuple(
            CommentStory(graph.nodes[each]["text"], tuple(graph.nodes[each]["examples"]))
            for each in linked(graph, node, "proposed")
        ),
        tuple(row.get("sources", ())),
        row.get("effect"),
        tuple(measured),
        {split: gain for split, gain in row.get("worth", {}).items() if gain},
    )
