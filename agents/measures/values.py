"""Values of measures on examples. Each value is computed once and kept."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...memory.embedders import DEFAULT_EMBEDDER
from ...models.base import Answer
from ...models.functions import find_function, function_version, kind_of, must_take_an_example, what_happened
from ...prompts.checklist import ComputedMeasure
from ...prompts.conversations.chat import at_last_user, reply_text
from ...prompts.criteria.measures import SIMILAR, Against
from ...prompts.errors import AskanceError, InputError
from ...prompts.messages import StructuredText, content_text, fields_of
from .similarity import SIMILARITIES, kept_vectors
from .words import BETWEEN, OF_FORM, PARTS

if TYPE_CHECKING:
    from ...models.base import AnswerStore
    from ...prompts.examples import Example

VERSION = "1"
"""Version of askance's own measures. It must change when any of them gives another number for the same texts."""
AT_ONCE = 200
"""Number of examples whose texts are embedded together."""
Value = float | str
"""A measure's number, or the reason why there is none."""


def values_of(
    measures: Sequence[ComputedMeasure], examples: Sequence[Example], store: AnswerStore | None = None
) -> dict[str, dict[str, Value]]:
    """Return the values of measures by measure id and example id. A missing value is a text with the reason.

    The ``store`` keeps the values; stored values are not computed again. Raises InputError if a function is not known,
    or returns something else than a number, and MissingExtraError if a similarity needs an embedder that is not
    installed.
    """
    # a user's function may read anything, e.g. files, so its values are never taken from the store
    keys = {(each.id, one.id): _key(each, one) for each in measures if not each.names_function for one in examples}
    kept = {} if store is None else store.get_many(list(set(keys.values())))
    found: dict[str, dict[str, Value]] = {each.id: {} for each in measures}
    for start in range(0, len(examples), AT_ONCE):
        block = examples[start : start + AT_ONCE]
        new = [(each, one) for each in measures for one in block if keys.get((each.id, one.id)) not in kept]
        _embed(new)
        for each, one in new:
            found[each.id][one.id] = value = _value(each, one)
            if store is not None and not each.names_function and not isinstance(value, str):
                store.put(keys[each.id, one.id], Answer(repr(value), finish="computed"))
    for (measure, example), key in keys.items():
        if key in kept:
            found[measure][example] = float(kept[key].text)
    return found


def make_measure_ready(measure: ComputedMeasure) -> None:
    """Load the function or the embedder of a measure. Errors are those of :func:`values_of`."""
    if measure.names_function:
        _function(measure)
    elif measure.name in SIMILAR:
        kept_vectors()


def version_of_measure(measure: ComputedMeasure) -> str | None:
    """Return the version of the code behind a measure; None if a function's file is not known."""
    if measure.names_function:
        return function_version(measure.name, measure.folder)
    return f"{VERSION} {DEFAULT_EMBEDDER}" if measure.name in SIMILAR else VERSION


def text_of(example: Example, against: Against) -> str:
    """Return the text of an example with which the output is compared; the last message if it is a conversation."""
    if against != "input":
        return reply_text(getattr(example, against) or "")
    messages = at_last_user(example.input)[0] if isinstance(example.input, StructuredText) else []
    last = fields_of(messages[-1]) if messages else None
    return (content_text(last[1].get("content")) if last else "") or example.input


def part_that_decides(measure: ComputedMeasure, example: Example) -> str | None:
    """Return the part of an output that decides a measure's number; None if the whole output does.

    For similarities of sentences this is the nearest or the least supported sentence; for ``longest_copy``, the copy;
    for names and numbers, the first sentence with one that the text lacks. Raises MissingExtraError if a similarity
    needs an embedder that is not installed.
    """
    output = reply_text(example.output or "")
    if measure.names_function or measure.against is None or not output.strip():
        return None
    text = text_of(example, measure.against)
    if measure.name in SIMILAR:
        found = SIMILARITIES[measure.name][0](output, text, kept_vectors())
        return None if found is None else found[1]
    return PARTS[measure.name](output, text) if measure.name in PARTS else None


def _value(measure: ComputedMeasure, example: Example) -> Value:
    if measure.names_function:
        return _own_value(measure, example)
    output = reply_text(example.output or "")
    if measure.against is None:
        found = OF_FORM[measure.name](output)
        return "the output has no words" if found is None else found
    text = text_of(example, measure.against)
    if not text.strip():
        return f"the example has no {measure.against} to hold the output against"
    if measure.name in SIMILAR:
        similar = SIMILARITIES[measure.name][0](output, text, kept_vectors())
        found = None if similar is None else similar[0]
    else:
        found = BETWEEN[measure.name](output, text)
    return f"the output or the {measure.against} has no words" if found is None else found


def _own_value(measure: ComputedMeasure, example: Example) -> Value:
    function = _function(measure)
    try:
        found = function(example.model_copy(deep=True))
    except AskanceError:
        raise
    except (Exception, SystemExit) as error:
        return what_happened(error, measure.name, function)
    if found is None:
        return f"{measure.name} gives no number for it"
    is_number = isinstance(found, (int, float)) and not isinstance(found, bool)
    if not is_number or not math.isfinite(found):
        given = str(found) if is_number else kind_of(found)
        raise InputError(
            f"The measure {measure.name}, on the example '{example.id}', returned {given}; it must return a number, or "
            "None where there is none."
        )
    return float(found)


def _embed(new: Iterable[tuple[ComputedMeasure, Example]]) -> None:
    """Embed, in batches, the texts that the similarities of these pairs need."""
    texts: list[str] = []
    for measure, example in new:
        if measure.name in SIMILAR and measure.against is not None:
            _, of_output, of_text = SIMILARITIES[measure.name]
            texts += of_output(reply_text(example.output or ""))
            texts += of_text(text_of(example, measure.against))
    if texts:
        kept_vectors().learn(texts)


def _function(measure: ComputedMeasure) -> Any:
    return own_function(measure.name, measure.folder, f"measure '{measure.id}':")


def own_function(source: str, folder: Path, where: str) -> Any:
    """Find a user's function of one example by its name; a changed file is read again. Raises InputError, which begins
    with ``where``, if there is no such function."""
    name = source.rpartition(":")[0]
    file = next((each for each in (folder / name, Path(name)) if each.is_file()), None)
    return _found(source, folder, where, None if file is None else file.stat().st_mtime_ns)


@lru_cache(maxsize=64)
def _found(source: str, folder: Path, where: str, _: int | None) -> Any:
    function = find_function(source, where, folder)
    must_take_an_example(f"{where} {source}", function)
    return function


def _key(measure: ComputedMeasure, example: Example) -> bytes:
    """Return the store's key of a value: a hash of the measure, its version, and the texts that it reads."""
    texts = [example.output or "", text_of(example, measure.against) if measure.against else ""]
    parts = ["measure", measure.name, version_of_measure(measure) or "", *texts]
    return sha256(json.dumps(parts).encode()).digest()
