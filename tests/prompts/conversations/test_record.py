"""Texts that came as messages, lists or objects stay so beside the text."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from askance.agents.requests import illustrated
from askance.prompts.conversations.record import packed
from askance.prompts.examples import Example, ExampleTable, load_examples
from askance.prompts.messages import StructuredText, as_text

TURNS = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}]
GIVEN: dict[str, Any] = {"id": "a", "input": TURNS, "output": {"label": "x", "score": 1}, "context": ["One.", "Two."]}


@pytest.mark.parametrize("load", [lambda: Example(**GIVEN), lambda: load_examples([GIVEN])[0]])
def test_an_example_holds_both(load: Any) -> None:
    example = load()
    for name, passages in (("input", False), ("output", False), ("context", True)):
        text = getattr(example, name)
        assert isinstance(text, StructuredText) and text.original == GIVEN[name]
        assert text == as_text(GIVEN[name], passages=passages)


def test_what_is_written_is_what_came_and_reads_as_the_same(tmp_path: Path) -> None:
    example = Example(**GIVEN)
    assert example.model_dump(exclude_defaults=True) == GIVEN
    assert json.loads(example.model_dump_json(exclude_defaults=True)) == GIVEN
    path = tmp_path / "a.jsonl"
    path.write_text(example.model_dump_json(exclude_defaults=True))
    read = load_examples(path)[0]
    assert read == example and read.model_dump() == example.model_dump()


def test_a_table_gives_back_what_it_took() -> None:
    plain = Example(id="b", input="Hi.", output="Hello.")
    table = ExampleTable([Example(**GIVEN), plain, Example(**GIVEN | {"id": "c", "comment": "Short."})])
    assert next(each.model_dump() for each in table) == Example(**GIVEN).model_dump()
    assert [getattr(each, "original", None) for each in table.column("input")] == [TURNS, None, TURNS]
    assert table.has_structure and not ExampleTable([plain]).has_structure and type(table[1].input) is str


def test_plain_texts_are_packed_as_they_are() -> None:
    texts = ("a", None, "b", None)
    assert packed(texts) is texts


def test_another_text_in_its_place_is_plain() -> None:
    changed = Example(**GIVEN).model_copy(update={"output": "new"})
    assert changed.model_dump()["output"] == "new" and changed.model_dump()["input"] == TURNS


def test_an_example_goes_to_another_process_whole() -> None:
    read = pickle.loads(pickle.dumps(Example(**GIVEN)))
    assert read.input.original == TURNS and read.model_dump() == Example(**GIVEN).model_dump()


def test_the_examples_with_images_are_found_without_looking_at_plain_ones() -> None:
    part = {"type": "image_url", "image_url": {"url": "https://x.test/a.png"}}
    shown = Example(id="b", input="Hi.", context=[part])
    assert [each.id for each in illustrated(ExampleTable([Example(**GIVEN), shown]))] == ["b"]
    assert [each.id for each in illustrated([Example(**GIVEN), shown])] == ["b"]

    class Plain(ExampleTable):
        def __getitem__(self, place: Any) -> Any:
            raise AssertionError("a plain example was made")

    assert list(illustrated(Plain([Example(id="a", input="b")]))) == []
