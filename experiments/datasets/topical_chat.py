"""Topical-Chat as rated for USR (Mehri and Eskenazi 2020): 60 contexts, 6 systems, replies rated on six qualities.

Read are the authors' ``tc_usr_data.json`` (every annotator's rating is kept), UniEval's ``topical_chat.json`` and
askance's own format. The four dimensions of UniEval and BinEval come first; the others are kept where they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any

from ...prompts.errors import InputError
from ...prompts.examples import Example
from .records import example, own_example, scores_of
from .sources import Elsewhere, Row, Source, rows_of

DIMENSIONS = ("naturalness", "coherence", "engagingness", "groundedness")
OTHERS = ("understandability", "overall")
HOME = Elsewhere("Topical-Chat", "tc_usr_data.json")
_USR = {
    "naturalness": "Natural",
    "coherence": "Maintains Context",
    "engagingness": "Engaging",
    "groundedness": "Uses Knowledge",
    "understandability": "Understandable",
    "overall": "Overall",
}
"""Our names and the authors' ones; their scales differ (1 to 3, 0 to 1, 1 to 5)."""


def load(source: Source = None) -> list[Example]:
    """The examples, in the order of the file. Replies to one context share ``metadata.document``."""
    return [each for number, row in enumerate(rows_of(source, HOME)) for each in _examples(row, number)]


def _examples(row: Row, number: int) -> Iterator[Example]:
    if row.has("responses"):
        for reply in row.items("responses"):
            yield _usr(row, reply, number)
    elif row.has("system_output"):
        human = scores_of(row, "scores", (*DIMENSIONS, *OTHERS))
        history, system = row.text("source"), str(row["system_id"])
        document = _document(history)
        yield example(
            row,
            f"{document}/{system}",
            history,
            row.text("system_output"),
            human,
            context=row.text("context"),
            system=system,
            document=document,
        )
    else:
        made = own_example(row, DIMENSIONS, keep=OTHERS)
        yield made.model_copy(update={"metadata": {"document": _document(made.input), **made.metadata}})


def _usr(row: Row, reply: Any, number: int) -> Example:
    if not isinstance(reply, Mapping) or not all(reply.get(name) for name in ("response", "model", *_USR.values())):
        raise InputError(f"{row.where}: each of 'responses' needs response, model, {', '.join(_USR.values())}.")
    human = {ours: reply[theirs] for ours, theirs in _USR.items()}
    return example(
        row,
        f"context-{number:02d}/{reply['model']}",
        row.text("context"),
        str(reply["response"]).strip(),
        human,
        context=row.text("fact"),
        system=str(reply["model"]),
        document=f"context-{number:02d}",
    )


def _document(history: str) -> str:
    return sha256(history.encode()).hexdigest()[:12]
