from __future__ import annotations

from pathlib import Path

import pytest

from askance.prompts.errors import InputError
from askance.prompts.examples import Example
from askance.prompts.prompt import Prompt, generator_messages, load_generator_prompt
from tests.said import naming, says

EXAMPLE = Example(id="a", input="Name {three} rivers.", context="A map.", reference="SECRET", output="OLD")


def refusal(text: str) -> str:
    with pytest.raises(InputError) as caught:
        load_generator_prompt(Prompt(text))
    return str(caught.value)


def test_one_line_is_a_prompt_and_comes_back_byte_for_byte(tmp_path: Path) -> None:
    path = tmp_path / "p.md"
    path.write_text("Follow the instructions.\n", encoding="utf-8")
    assert load_generator_prompt(path).text == "Follow the instructions.\n"


@pytest.mark.parametrize("text", ["", " \n\t\n"])
def test_an_empty_prompt_is_refused_and_a_neutral_line_is_offered(text: str) -> None:
    message = refusal(text)
    assert says(message, "empty")
    assert "Follow the instructions." in message


@pytest.mark.parametrize(
    ("placeholder", "why"), [("output", "is to write"), ("question", "the judge"), ("reference", "reference answer")]
)
def test_what_a_generator_must_not_see_is_refused_with_the_reason_and_the_way_out(placeholder: str, why: str) -> None:
    message = refusal(f"Do {{input}} with {{{placeholder}}}.")
    assert why in message
    assert "{{" + placeholder + "}}" in message


def test_an_unknown_placeholder_gets_a_hint_among_those_of_a_generator() -> None:
    message = refusal("Do {inptu}.")
    assert "(known: {input}, {context})" in message
    assert "Did you mean 'input'?" in message


def test_placeholders_without_the_input_are_refused() -> None:
    assert "no {input}" in refusal("Read {context} and answer.")


def test_an_unclosed_protected_part_is_refused() -> None:
    assert "protect" in refusal("Do it. <!-- protect --> Always.")


def test_an_unreadable_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=naming("nothing.md")):
        load_generator_prompt(tmp_path / "nothing.md")
    (tmp_path / "bad.md").write_bytes(b"\xff\xfe\xfa")
    with pytest.raises(InputError, match=r"bad\.md, line 1: not UTF-8"):
        load_generator_prompt(tmp_path / "bad.md")


def test_without_placeholders_the_prompt_is_the_system_message_and_the_input_stands_bare() -> None:
    assert generator_messages(Prompt("Write {{plain}} text."), EXAMPLE) == [
        ("system", "Write {plain} text."),
        ("user", "A map.\n\nName {three} rivers."),
    ]


def test_without_a_context_the_user_message_is_the_input_alone() -> None:
    assert generator_messages(Prompt("Go."), Example(id="b", input=" x\n"))[1] == ("user", " x\n")


def test_with_placeholders_the_prompt_is_the_user_message_and_inserted_braces_stay() -> None:
    messages = generator_messages(Prompt("Map: {context}\nTask: {input} {{end}}"), EXAMPLE)
    assert messages == [("user", "Map: A map.\nTask: Name {three} rivers. {end}")]


@pytest.mark.parametrize("text", ["Go.", "{context} {input}"])
def test_neither_the_reference_nor_an_old_output_reaches_the_generator(text: str) -> None:
    shown = "\n".join(content for _, content in generator_messages(Prompt(text), EXAMPLE))
    assert "SECRET" not in shown
    assert "OLD" not in shown
