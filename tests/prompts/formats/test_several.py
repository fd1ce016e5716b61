"""Several prompts of a program: one text for edits and versions, each prompt byte for byte for the program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askance.prompts.errors import InputError
from askance.prompts.formats.several import by_name, joined, program_prompt, sections
from askance.prompts.lessons import Edit
from askance.prompts.prompt import EditRefusedError, Prompt


@given(st.dictionaries(st.sampled_from(["plan", "answer", "a b", "x.y"]), st.text(min_size=1), min_size=2))
def test_each_prompt_comes_out_as_it_went_in(texts: dict[str, str]) -> None:
    text = joined(texts)
    if "<!-- protect --><!-- prompt:" not in "".join(texts.values()):
        assert by_name(text) == texts
        assert [text[each.start : each.end] for each in sections(text)] == list(texts.values())


def test_a_single_prompt_is_taken_as_it_stands_with_the_name_of_its_file(tmp_path: Path) -> None:
    path = tmp_path / "writer.md"
    path.write_bytes(b"Write of {company}: {{ x }} {% if y %}\r\n")
    prompt, name = program_prompt(path)
    assert (prompt.text, name) == ("Write of {company}: {{ x }} {% if y %}\r\n", "writer") and by_name(
        prompt.text
    ) == {}


def test_prompts_come_as_files_or_by_name(tmp_path: Path) -> None:
    for name in ("plan", "answer"):
        (tmp_path / f"{name}.md").write_text(f"{name}!")
    files, _ = program_prompt([tmp_path / "plan.md", tmp_path / "answer.md"])
    named, _ = program_prompt({"plan": "plan!", "answer": Prompt("answer!")})
    assert files.text == named.text and by_name(files.text) == {"plan": "plan!", "answer": "answer!"}


def test_no_edit_touches_the_line_between_two_prompts() -> None:
    prompt = Prompt(joined({"plan": "One.", "answer": "Two."}))
    changed = prompt.apply(Edit(old="Two.", new="Two.\n- Three.", lessons=("L1",)))
    assert by_name(changed.text) == {"plan": "One.", "answer": "Two.\n- Three."}
    with pytest.raises(EditRefusedError):
        prompt.apply(Edit(old="prompt: answer", new="prompt: other", lessons=("L1",)))


@pytest.mark.parametrize(
    ("prompts", "said"),
    [
        ({}, "no prompt is given"),
        ({"a": "  ", "b": "x"}, "prompt 'a': it is empty"),
        ({"a-->": "x", "b": "x"}, "so it cannot be used"),
        ({"a": joined({"c": "x", "d": "y"}), "b": "x"}, "so it cannot be used"),
        (["nowhere.md", "b.md"], "nowhere.md: there is no such prompt file"),
    ],
)
def test_prompts_that_cannot_be_told_apart_are_refused(prompts: Any, said: str) -> None:
    with pytest.raises(InputError) as caught:
        program_prompt(prompts)
    assert said in str(caught.value)


def test_two_files_of_one_name_are_refused(tmp_path: Path) -> None:
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "plan.md").write_text("Plan.")
    with pytest.raises(InputError, match="is called 'plan' too"):
        program_prompt([tmp_path / "x" / "plan.md", tmp_path / "y" / "plan.md"])
