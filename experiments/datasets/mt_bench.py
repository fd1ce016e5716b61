"""MT-Bench human judgements (Zheng et al. 2023): which of two models' conversations a person liked better.

Read are the data set on the hub (split ``human``), a file with the same columns, and askance's own format.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...prompts.errors import InputError
from ...prompts.preferences import Preference
from .records import chat, own_pair, pair
from .sources import Hub, Row, Source, rows_of

HUB = Hub(
    "lmsys/mt_bench_human_judgments",
    "human",
    file="JSON or JSONL with question_id, model_a, model_b, winner, judge, conversation_a, conversation_b, turn",
)
_WINNERS = {"model_a": "a", "model_b": "b", "tie": "tie", "tie (inconsistent)": "tie", "tie (bothbad)": "tie"}


def load(source: Source = None) -> list[Preference]:
    """The pairs, one a judgement, in the order of the file.

    The input is what the user asked; a judgement of the second turn is about both replies of a model, with the
    user's second question between them. Judgements of one question are one group (``metadata.group``).
    """
    return [_pair(row, number) for number, row in enumerate(rows_of(source, HUB))]


def _pair(row: Row, number: int) -> Preference:
    if not row.has("conversation_a", "conversation_b", "winner"):
        return own_pair(row)
    winner = str(row["winner"])
    if winner not in _WINNERS:
        raise InputError(f"{row.where}: the winner is '{winner}'; known are {', '.join(_WINNERS)}.")
    turn = int(row["turn"])
    a, b = (_turns(row, side, turn) for side in ("conversation_a", "conversation_b"))
    return pair(
        row,
        id=f"mt-bench-{number}",
        input=str(a[0]["content"]),
        output_a=_output(a),
        output_b=_output(b),
        preferred=_WINNERS[winner],
        section=f"turn {turn}",
        dataset="MT-Bench",
        metadata={
            "group": f"question {row['question_id']}",
            "model_a": row["model_a"],
            "model_b": row["model_b"],
            "judge": row["judge"],
        },
    )


def _turns(row: Row, side: str, turn: int) -> list[Any]:
    """The messages of the first ``turn`` turns, user and model in turn."""
    messages = row.items(side)[: 2 * turn]
    roles = [each.get("role") if isinstance(each, Mapping) else None for each in messages]
    if len(messages) < 2 * turn or roles != ["user", "assistant"] * turn:
        raise InputError(f"{row.where}: '{side}' needs user and assistant in turn, {turn} time(s).")
    return messages


def _output(messages: list[Any]) -> str:
    return str(messages[1]["content"]) if len(messages) == 2 else chat(messages[1:])
