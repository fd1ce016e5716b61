"""A text added after the input: the model sees what it saw, and then the text, whatever the prompt's format."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from askance.prompts.conversations.chat import system_in_user
from askance.prompts.examples import Example
from askance.prompts.formats.after_input import after_input
from askance.prompts.formats.binding import Binding
from askance.prompts.formats.several import joined
from askance.prompts.messages import told
from askance.prompts.prompt import EditRefusedError, Prompt, generator_messages, load_generator_prompt

TEXT = 'Fill in: {"name": {name}, "n": {{n}}}\nAnd 100 % {input}.'
MILD = 'Fill in: {"name": {name}, "n": {{n}}}\nAnd 100 %.'
PLAIN = Example(id="a", input="How {are} you?")
WITH_CONTEXT = Example(id="b", input="And now?", context="Some {context}.")
PICTURE = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
TALK: Any = [
    {"role": "system", "content": "Be short."},
    {"role": "user", "content": "Hello"},
    {"role": "assistant", "content": "Hi."},
    {"role": "user", "content": [{"type": "text", "text": "What is this?"}, PICTURE]},
]


def example(value: Any, **more: Any) -> Example:
    return Example(id="c", input=told(value), **more)


def loaded(text: str, suffix: str, folder: Path, examples: Sequence[Example]) -> Prompt:
    file = folder / f"prompt{suffix}"
    file.write_bytes(text.encode())
    return load_generator_prompt(file, Binding(examples))


def same(one: Prompt, other: Prompt) -> bool:
    return (one.text, one.file_text, one.hash) == (other.text, other.file_text, other.hash)


def in_words(messages: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(role, str(content)) for role, content in messages]


FORMS = {
    "plain with placeholders": ("Write about {input}.\n", ".md"),
    "protected end": ("Write.\n{input}\n<!-- protect -->\nBe kind.\n<!-- /protect -->\n", ".md"),
    "f-string": ('Write about {question}, as {{"x": 1}}.', ".txt"),
    "jinja": ("{% if 1 %}Write about {{ input }}{% endif %}", ".jinja"),
    "messages": (
        json.dumps([{"role": "system", "content": "Write."}, {"role": "user", "content": "{input}!"}]),
        ".json",
    ),
    "yaml": ("messages:\n- role: system\n  content: Write.\n- role: user\n  content: |\n    {input}\n", ".yaml"),
    "Langfuse": (json.dumps({"type": "chat", "prompt": [{"role": "user", "content": "Do {{input}}"}]}), ".json"),
}


@pytest.mark.parametrize("name", FORMS)
def test_a_prompt_that_shows_the_input_has_the_text_at_its_end(name: str, tmp_path: Path) -> None:
    text = {"Langfuse": "No {input} here, only { and } and 50 %.", "jinja": MILD}.get(name, TEXT)
    before = loaded(*FORMS[name], tmp_path, [PLAIN])
    after = after_input(before, text, [PLAIN])
    *first, (role, content) = in_words(generator_messages(before, PLAIN))
    assert in_words(generator_messages(after, PLAIN)) == [
        *first,
        (role, f"{content.rstrip()}\n\n{text}{content[len(content.rstrip()) :]}"),
    ]
    assert after.protected[: len(before.protected)] == before.protected
    assert same(loaded(after.file_text, after.suffix, tmp_path, [PLAIN]), after)
    twice = after_input(after, "Now.", [PLAIN])
    assert in_words(generator_messages(twice, PLAIN))[-1][1].rstrip().endswith(f"{text}\n\nNow.")


PLAIN_SYSTEM = 'Be {"kind": 1} and {{x}}.\nNever {{input}}.\n'


@pytest.mark.parametrize(
    "examples",
    [
        [PLAIN],
        [WITH_CONTEXT],
        [PLAIN, WITH_CONTEXT],
        [example(TALK)],
        [example(TALK, context="A hint.")],
        [PLAIN, example(TALK[1:], context="A hint.")],
        [example(TALK[:3])],
        [example(TALK[:2])],
    ],
    ids=["input", "context", "some contexts", "talk", "talk and context", "mixed", "reply last", "one message"],
)
def test_plain_system_text_becomes_messages_that_say_the_same(examples: list[Example], tmp_path: Path) -> None:
    some = len({each.context for each in examples}) > 1  # which Jinja alone can say
    before, text = Prompt(PLAIN_SYSTEM.replace("{{input}}", "" if some else "{{input}}")), MILD if some else TEXT
    after = after_input(before, text, examples)
    again = loaded(after.file_text, after.suffix, tmp_path, examples)
    assert after.suffix == ".json"
    assert same(again, after)
    for each in examples:
        was, now = generator_messages(before, each), generator_messages(after, each)
        asked = was[-1][0] == "user"
        assert now[: len(was) - asked] == was[: len(was) - asked]
        if asked:
            assert str(now[-1][1]) in (f"{was[-1][1]}\n\n{text}", f"{was[-1][1]}\n{text}")
        else:
            assert now[-1] == ("user", text)
        pictures = [getattr(content, "original", {}).get("content", []) for _, content in (was[-1], now[-1])]
        assert [part for part in pictures[0] if part in pictures[1]] == pictures[0] or not asked


def test_a_last_line_that_announces_the_output_stays_the_last() -> None:
    prompt = after_input(Prompt("Sum up:\n{input}\n\nSummary:\n"), "In one line.", [PLAIN])
    assert prompt.text == "Sum up:\n{input}\n\nIn one line.\n\nSummary:\n"
    assert after_input(Prompt("Text: {input}"), "Go.", [PLAIN]).text == "Text: {input}\n\nGo."


def test_messages_that_do_not_show_the_input_get_a_users_message(tmp_path: Path) -> None:
    text = '[{"role": "system", "content": "Write for {{team}}."}]'
    examples = [Example(id="a", input="Hello", metadata={"team": "blue"})]
    before = loaded(text, ".json", tmp_path, examples)
    after = after_input(before, "Be brief.", examples)
    assert generator_messages(before, examples[0]) == [("system", "Write for blue."), ("user", "Hello")]
    assert generator_messages(after, examples[0]) == [("system", "Write for blue."), ("user", "Hello\n\nBe brief.")]
    assert same(loaded(after.file_text, after.suffix, tmp_path, examples), after)


REFUSED = {
    "several": Prompt(joined({"plan": "Plan.", "write": "Write."})),
    "named otherwise": Prompt('[{"role": "system", "content": "{{context}} and {{ input }}"}]'),
}


def test_what_cannot_take_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(EditRefusedError, match="program"):
        after_input(REFUSED["several"], "Go.", [PLAIN])
    doubled = loaded("Write about {{input}}.", ".md", tmp_path, [PLAIN])
    with pytest.raises(EditRefusedError, match="double braces"):
        after_input(doubled, "Say {{x}}.", [PLAIN])
    exported = json.dumps({"type": "text", "prompt": "Be kind."})
    with pytest.raises(EditRefusedError, match="Langfuse"):
        after_input(loaded(exported, ".json", tmp_path, [PLAIN]), "Go.", [PLAIN])


def test_the_system_text_can_stand_at_the_head_of_the_users_turn() -> None:
    asked = generator_messages(Prompt("Be kind."), PLAIN)
    assert system_in_user(asked) == [("user", "Be kind.\n\nHow {are} you?")]
    (_, first), *others = system_in_user(generator_messages(Prompt("Be kind."), example(TALK)))
    assert first == "Be kind.\n\nBe short.\n\nHello"
    assert [role for role, _ in others] == ["assistant", "user"]
    only = system_in_user(generator_messages(Prompt("Be kind."), example(TALK[3:])))
    assert only[0][1].original["content"] == [{"type": "text", "text": "Be kind."}, *TALK[3]["content"]]
