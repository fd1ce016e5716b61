from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askance.prompts.errors import InputError
from askance.prompts.examples import Example
from askance.prompts.lessons import Edit
from askance.prompts.prompt import EditRefusedError, Prompt, frame, load_prompt, prompt_showing
from askance.prompts.text import fence, fill
from tests.said import naming, says

EXAMPLE = Example(id="a", input="in {output} {question} {{input}}", output="out {input} {nothing}")


def refusal(text: str) -> str:
    with pytest.raises(InputError) as caught:
        Prompt(text).check("p.md")
    return str(caught.value)


# --- placeholders -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("{input} and {output} and {input}", ["input", "output"]),
        ("{{input}}", []),
        ('{"answer": "yes"}', []),
        ('{"text": {output}}', ["output"]),
        ('{"a": {"b": {output}}}', ["output"]),
        ("{ input } {} {1} {a b}", []),
        ("{{output} {input}}", ["output", "input"]),
    ],
)
def test_placeholders_are_names_in_single_braces(text: str, names: list[str]) -> None:
    assert Prompt(text).placeholders == names


@given(st.text(alphabet="{}ab\n", max_size=30))
def test_what_counts_as_a_placeholder_is_what_gets_filled(text: str) -> None:
    filled: list[str] = []

    class Values(dict[str, str]):
        def __missing__(self, name: str) -> str:
            filled.append(name)
            return ""

    fill(text, Values())
    assert list(dict.fromkeys(filled)) == Prompt(text).placeholders


def test_an_unknown_placeholder_is_refused_with_a_hint_and_the_way_out() -> None:
    message = refusal("Judge {ouput}.")
    assert says(message, "p.md", "{ouput}", "placeholder")
    assert "Did you mean 'output'?" in message
    assert "{{ouput}}" in message
    assert Prompt("Judge {output}, not {{ouput}}.").check()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (" \n", "empty"),
        ("{input} alone", "nothing would be judged"),
        ("{output} {question} {question}", "may occur once"),
        ("<!-- protect --> open", "has no '<!-- /protect -->'"),
        ("<!-- /protect --> turned round <!-- protect -->", "or the other way round"),
        ("<!-- protect --> <!-- protect --> a <!-- /protect --> <!-- /protect -->", "has no"),
    ],
)
def test_a_prompt_that_cannot_be_used_is_refused(text: str, said: str) -> None:
    assert said in refusal(text)


def test_an_escaped_question_does_not_count_as_one() -> None:
    prompt = Prompt("Say {{question}} of {output}: {question}!").check()
    framing = frame(prompt, EXAMPLE)
    assert framing.before == f"Say {{question}} of {fence(EXAMPLE.output or '')}: "
    assert framing.after == "!"


# --- framing ------------------------------------------------------------------------------------------------------


def test_values_that_hold_placeholders_are_never_filled_again() -> None:
    framing = frame(Prompt("{input}|{output}|{question}|{context}"), EXAMPLE)
    assert framing.before == f"{fence(EXAMPLE.input)}|{fence(EXAMPLE.output or '')}|"
    assert framing.after == f"|{fence('')}"
    assert framing.system is None


def test_a_prompt_without_placeholders_is_the_system_message_and_the_example_follows() -> None:
    framing = frame(Prompt("Judge {{it}}."), EXAMPLE)
    assert framing.system == "Judge {it}."
    assert framing.before == f"Input:\n{fence(EXAMPLE.input)}\n\nOutput:\n{fence(EXAMPLE.output or '')}\n\n"


def test_context_and_reference_are_shown_where_there_are_some() -> None:
    example = Example(id="a", input="i", output="o", context="c", reference="r")
    shown = frame(Prompt("p"), example).before
    assert [shown.index(fence(text)) for text in "ciro"] == sorted(shown.index(fence(text)) for text in "ciro")


def test_an_empty_output_is_still_shown_as_one() -> None:
    assert f"Output:\n{fence('')}" in frame(Prompt("p"), Example(id="a", input="i", output="")).before


def test_without_a_place_for_the_question_it_comes_last() -> None:
    framing = frame(Prompt("Look: {output}"), EXAMPLE)
    assert (framing.before, framing.after) == (f"Look: {fence(EXAMPLE.output or '')}\n\n", "")


# --- edits --------------------------------------------------------------------------------------------------------


PROMPT = Prompt(
    "You judge {output}.\nBe fair.\n<!-- protect -->\nThe law.\n<!-- /protect -->\nBe kind. Answer with yes or no."
)


def edit(old: str, new: str, prompt: Prompt = PROMPT) -> str:
    return prompt.apply(Edit(old=old, new=new)).text


def test_an_edit_changes_its_one_place() -> None:
    assert edit("Be fair.", "Be fair and strict.") == PROMPT.text.replace("Be fair.", "Be fair and strict.")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("not there", "x", "does not occur"),
        ("Be ", "x", "more than once"),
        ("Be fair.", "Be fair.", "changes nothing"),
        ("{output}", "it", "placeholder"),
        ("Be fair.", "Be fair to {input}.", "placeholder"),
        ("{output}", "{{output}}", "placeholder"),
        ("The law.", "No law.", "protected"),
        ("law", "claw", "protected"),
        ("<!-- protect -->\n", "", "protected"),
        ("Be fair.", "<!-- protect --> Be fair.", "protected"),
        ("Be fair.", "<!-- protect -->x<!-- /protect --> Be fair.", "protected"),
        ("Answer with yes or no.", "Answer as you like.", "answer format"),
        ("yes or no", "yes or maybe", "answer format"),
    ],
)
def test_an_edit_that_would_do_harm_is_refused(old: str, new: str, said: str) -> None:
    with pytest.raises(EditRefusedError, match=said):
        edit(old, new)


def test_overlapping_occurrences_count() -> None:
    with pytest.raises(EditRefusedError, match="more than once"):
        edit("aa", "b", Prompt("aaa"))


def test_a_prompt_is_not_edited_away() -> None:
    with pytest.raises(EditRefusedError, match=naming("nothing", "left")):
        edit("Be fair.", " ", Prompt("Be fair."))


@given(st.text("ab{}\n", max_size=20), st.text("ab{}\n", min_size=1, max_size=4), st.text("ab{}\n", max_size=4))
def test_an_edit_either_is_refused_or_changes_exactly_one_place(text: str, old: str, new: str) -> None:
    prompt = Prompt(text)
    try:
        changed = prompt.apply(Edit(old=old, new=new))
    except EditRefusedError:
        return
    places = [place for place in range(len(text)) if text.startswith(old, place)]
    assert len(places) == 1
    assert changed.text == text[: places[0]] + new + text[places[0] + len(old) :]
    assert changed.placeholders == prompt.placeholders or sorted(changed.placeholders) == sorted(prompt.placeholders)


def test_sentences_that_say_how_to_answer_are_found() -> None:
    text = "The answer matters. Reply with No or YES! Then stop\nReturn a json object. Say yes or no. Output no novels."
    assert Prompt(text).answer_format == ["Reply with No or YES! Then stop", "Return a json object"]


SHOWN = "\n\nReply: {output}\n\n"


@pytest.mark.parametrize(
    "text",
    [
        f"Answer the question about the reply with one word: yes or no.{SHOWN}{{question}}",
        f'Reply "No" or "Yes".{SHOWN}{{question}} Think first.',
        f"Output YES/NO{SHOWN}{{{{question}}}} {{question}}",
    ],
)
def test_a_prompt_may_say_itself_to_answer_yes_or_no(text: str) -> None:
    assert Prompt(text).asks_yes_or_no


@pytest.mark.parametrize(
    "text",
    [
        f"Judge the reply.{SHOWN}{{question}}",
        f"Judge.{SHOWN}{{question}} Answer with one word: yes or no.",
        f"Answer with one word: yes or no.{SHOWN}",
        f"Answer yes or no.{SHOWN}{{{{question}}}}",
        f"Answer yes or no, as a JSON string.{SHOWN}{{question}}",
        f"Answer yes or no.{SHOWN}{{question}} Return JSON.",
        f"Where the reply should answer yes, there is no excuse.{SHOWN}{{question}}",
        f"A customer says yes or no.{SHOWN}{{question}}",
    ],
)
def test_a_prompt_that_does_not_say_so_before_the_question_is_told_how_to_answer(text: str) -> None:
    assert not Prompt(text).asks_yes_or_no


def test_the_default_prompt_leaves_it_to_each_question() -> None:
    assert not prompt_showing(["context", "input", "reference"]).asks_yes_or_no


def test_a_very_long_line_is_read_in_no_time() -> None:
    start = time.perf_counter()
    assert Prompt("the output and the answer " * 4000).answer_format == []
    assert time.perf_counter() - start < 0.5


def test_the_hash_is_that_of_the_text() -> None:
    assert Prompt("a").hash == "ca978112ca1bbdca"
    assert Prompt("a").hash != Prompt("a ").hash


# --- files --------------------------------------------------------------------------------------------------------


def test_a_prompt_file_is_read_without_its_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "p.md").write_bytes(b"\xef\xbb\xbfJudge.\n")
    prompt = load_prompt(tmp_path / "p.md")
    assert (prompt.text, prompt.hash) == ("Judge.\n", Prompt("Judge.\n").hash)
    assert prompt.file_text.encode() == b"\xef\xbb\xbfJudge.\n", "which stays in the file"


def test_a_prompt_file_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes("é".encode("latin-1"))
    (tmp_path / "bad").write_text("{inptu}")
    for name, said in [("nowhere", "no such prompt"), ("latin", "UTF-8"), (".", "cannot be read"), ("bad", "'input'")]:
        with pytest.raises(InputError, match=said):
            load_prompt(tmp_path / name)


@pytest.mark.parametrize(
    "text", ["{{so}} Mail: {input}\nReply: {output}\nWeigh it well. {question}", "Judge {output} by {input}", ""]
)
def test_it_is_known_where_prompts_on_other_examples_part(text: str) -> None:
    example, other = (Example(id=str(n), input=f"mail {n}", output=f"{n} reply") for n in (1, 2))
    framing, beside = (frame(Prompt(text), each) for each in (example, other))
    same = framing.before[: framing.ends[0]]
    assert beside.before.startswith(same) and framing.ends[0] == beside.ends[0]
    assert len(framing.ends) == 3 and framing.before != beside.before
    assert not any(each.input in same or str(each.output) in same for each in (example, other))
    for end, shown in zip(framing.ends[1:], ("output", "input") if "by" in text else ("input", "output"), strict=True):
        assert getattr(example, shown) in framing.before[:end]
