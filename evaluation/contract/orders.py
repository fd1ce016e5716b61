"""Orders for a writer whose outputs fail a check: an order in plain words, tighter than the check."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from ...agents.generator import instruction_of
from ...prompts.checklist import ComputedCheck
from ...prompts.criteria.kinds import OF_SCHEMAS, said_of
from ...prompts.text import copied_words
from .schemas import schema_said
from .sent_schemas import cut_lengths, limit_of_words
from .wording import TIGHTER, tightened

COPIED = 10
"""So many words in a row, the same as in the input, are copied."""
OWN_WORDS = "in words of your own; do not copy"
_AT_END = re.compile(r"[\s,;.]+$")


def order_of(check: ComputedCheck, failed: Sequence[tuple[str, str]] = ()) -> str | None:
    """The order that a check comes to: a clause's own words with tighter limits, else words for its kind.

    ``failed`` are inputs and the outputs for them that fail the check: where most of these copy the input, and the
    check is about a length, the order says not to. None where only a model can word it.
    """
    told = _words(check)
    if told is None:
        return None
    told = _AT_END.sub("", told)
    if _is_length(check) and 2 * sum(_copies(*pair) for pair in failed) > len(failed):
        told = f"{told}, {OWN_WORDS}"
    return f"{told[:1].upper()}{told[1:]}."


def _words(check: ComputedCheck) -> str | None:
    value = check.value or ""
    if check.kind in OF_SCHEMAS:
        schema = json.loads(value)
        if ends := cut_lengths(schema):
            kept = [f"{json.dumps(key, ensure_ascii=False)} below {int(TIGHTER * most)}" for key, most in ends.items()]
            return f"Keep every text short and finish it; characters: {', '.join(kept)}"
        if check.clause is not None and "\n" not in check.clause:
            return tightened(check.clause)
        keys = list(schema.get("properties", {}))
        named = ", ".join(json.dumps(key, ensure_ascii=False) for key in keys)
        return f"Write JSON with these keys and no others: {named}" if keys else f"Write JSON: {schema_said(schema)}"
    if check.clause is not None and "\n" not in check.clause:
        return tightened(check.clause)
    match check.kind:
        case "json":
            return "Write the JSON alone: no code fence, and no text before or after it"
        case "begins":
            return f'Begin with exactly this: "{value.strip()}"'
        case "ends":
            return f'End with exactly this: "{value.strip()}"'
        case "length":
            return tightened(f"Write {value}")
        case "checker":
            return None
        case _:
            quotes_it = check.kind in ("matches", "language") and check.text == said_of(check.kind, value)
            return None if quotes_it else instruction_of(check.text, is_fault=check.is_fault)


def _is_length(check: ComputedCheck) -> bool:
    if check.kind == "length":
        return True
    return check.kind in OF_SCHEMAS and limit_of_words(check.value or "") is not None


def _copies(given: str, output: str) -> bool:
    return copied_words(output, [given], run=COPIED) is not None
