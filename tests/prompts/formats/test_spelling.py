"""A text is replaced in its file: outside it no byte changes, and read again the file differs in that text alone."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from askance.prompts.errors import InputError
from askance.prompts.formats.spelling import Kind, Text, read_document, replaced, whole_file

JSON = r"""
{
  "messages" : [
    {"role": "system", "content": "Be kind.\nSay \"please\" \u00e9 \/ \ud83d\ude00\ttab"},
	{"content":"Frage: {{question}} – ü\\n", "role":"user", "weight": 1.50, "seen": null },
    { "role": "user", "content": [ {"type": "text", "text": ""} ] }
  ],   "extra": {"content": "Be kind.\nSay \"please\""}
}
"""
YAML = """\
# A prompt of ours.   (kept)
%(start)s
  - role: system   # the first
    content: |
      Be kind.

      Say please.   
        - indented
      # no comment

  # between
  - role: 'user'
    content: >-
      Folded text
      goes on here

      and ends.
  - role: assistant
    content: 'It''s yes.
      And more.'
  - {role: user, content: "Tell \\
      me \\u00e9 \\"now\\"

      or never", n: 010}
  - role: user
    content: plain words
      over two lines   # a remark
  - role: user
    content: |+
      keep


  - role: user
    content: &again |-
        no end
  - role: user
    content: |2-
       indented first
      then not
"""
EDITS = (
    "{} And more.",
    "First. {}",
    "{}\n- A bullet.",
    "{}\n\nA paragraph: with # signs\n",
    "\n{}",
    "  {}  ",
    "'quoted' \"text\" \\ of {{x}} – é 😀 \x85 \u2028",
    "",
    "- yes",
    "no: 1",
    "a\tb",
)


def texts(value: Any) -> Iterator[Text]:
    if isinstance(value, Text):
        yield value
    elif isinstance(value, (dict, list)):
        for each in value.values() if isinstance(value, dict) else value:
            yield from texts(each)


def plain(value: Any) -> Any:
    """The value with plain texts."""
    return json.loads(json.dumps(value))


def files() -> list[tuple[Kind, str]]:
    made: list[tuple[Kind, str]] = [("json", JSON)]
    made += [("yaml", YAML % {"start": "messages:"})]
    made += [(kind, text.replace("\n", "\r\n")) for kind, text in made]
    return [*made, *((kind, f"\ufeff{text}") for kind, text in made)]


@pytest.mark.parametrize(("kind", "source"), files())
def test_a_text_replaced_leaves_every_byte_outside_it(kind: Kind, source: str) -> None:
    before = read_document(source, kind, "f")
    found = list(texts(before))
    assert len(found) > 5
    for text in found:
        for edit in EDITS:
            new = edit.format(text)
            after = replaced(source, before, {text.place: new}, lambda each: read_document(each, kind, "f"))
            end = len(source) - text.place.end
            assert after[: text.place.start] == source[: text.place.start]
            assert end == 0 or after[-end:] == source[-end:]
            assert [str(each) for each in texts(read_document(after, kind, "f"))] == [
                new if each.place == text.place else str(each) for each in found
            ]


@pytest.mark.parametrize(("kind", "source"), [("json", JSON), ("yaml", YAML % {"start": "messages:"})])
def test_the_file_is_read_as_its_own_library_reads_it(kind: Kind, source: str) -> None:
    theirs = json.loads(source) if kind == "json" else yaml.safe_load(source)
    assert plain(read_document(source, kind, "f")) == json.loads(json.dumps(theirs))


@pytest.mark.parametrize(("kind", "source"), files())
def test_all_texts_replaced_at_once_are_what_was_wanted(kind: Kind, source: str) -> None:
    before, draw = read_document(source, kind, "f"), random.Random(4)
    new = {each.place: draw.choice(EDITS).format(each) for each in texts(before)}
    after = replaced(source, before, new, lambda each: read_document(each, kind, "f"))
    assert [str(each) for each in texts(read_document(after, kind, "f"))] == [new[each.place] for each in texts(before)]


def test_what_stays_of_a_text_keeps_its_spelling() -> None:
    source = r'{"content": "Be \u006bind \/ fair.\nSay please."}'
    before = read_document(source, "json", "f")
    new = {before["content"].place: "Be kind / fair.\nSay thanks."}
    assert replaced(source, before, new, lambda each: read_document(each, "json", "f")) == source.replace(
        "please", "thanks"
    )


def test_a_block_scalar_stays_one_and_a_quoted_line_stays_in_its_quotes() -> None:
    source = "a: |\n  One.\n  Two.\nb: 'it''s one'\nc: bare words\n"
    before = read_document(source, "yaml", "f")

    def changed(name: str, new: str) -> str:
        return replaced(source, before, {before[name].place: new}, lambda each: read_document(each, "yaml", "f"))

    assert changed("a", "One.\nTwo.\n- Three.\n") == source.replace("  Two.\n", "  Two.\n  - Three.\n")
    assert changed("b", "it's two") == source.replace("one'", "two'")
    assert changed("b", "it's\ntwo") == source.replace("'it''s one'", '"it\'s\\ntwo"')
    assert changed("c", "bare: words") == source.replace("bare words", '"bare: words"')


def test_a_text_file_keeps_its_line_ends_and_its_mark() -> None:
    source = "\ufeffOne.\r\nTwo.\r\n"
    text = whole_file(source)
    assert text == "One.\nTwo.\n"
    changed = replaced(source, text, {text.place: "One.\n- More.\nTwo.\n"}, whole_file)
    assert changed == "\ufeffOne.\r\n- More.\r\nTwo.\r\n"


@pytest.mark.parametrize(
    ("kind", "source", "said"),
    [
        ("json", '{"a": 1,}', "line 1, column 9"),
        ("json", '{"a": 1, "a": 2}', "'a' stands twice"),
        ("yaml", "a: [1\nb: 2", "line 2"),
        ("yaml", "a: 1\na: 2", "'a' stands here twice"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_with_its_place(kind: Kind, source: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_document(source, kind, "f")
