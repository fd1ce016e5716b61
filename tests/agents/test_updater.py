from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askance.agents.agent import ParseError
from askance.agents.rules import LENIENT, STRICTER
from askance.agents.updater import Proposal, Updater, last_instruction, make_edit, split_parts
from askance.models.gateway import Gateway
from askance.prompts.formats.binding import Binding
from askance.prompts.lessons import Edit, Lesson
from askance.prompts.prompt import EditRefusedError, Prompt, parse_prompt
from askance.testing import ScriptedModel
from tests.said import naming, says

LESSON = Lesson(id="L1", text="Answer no if a date is wrong.", direction="stricter", dimension="d", evidence=("e/q",))
PROMPT = Prompt(
    "You judge summaries.\n\n- Be fair.\n- Be kind.\n\n<!-- protect -->\nThe law.\n<!-- /protect -->\nBe fair.\n"
)


def proposal(part: int, text: str, action: str = "add") -> str:
    return json.dumps({"part": part, "action": action, "text": text})


async def propose(*replies: str, prompt: Prompt = PROMPT, **options: Any) -> tuple[Edit, ScriptedModel]:
    model = ScriptedModel(replies)
    examples = options.pop("examples", ())
    return await Updater(Gateway(), model, **options).propose(prompt, LESSON, examples), model


def parts(text: str) -> list[str]:
    return [text[start:end] for start, end in split_parts(Prompt(text))]


# --- parts --------------------------------------------------------------------------------------------------------


def test_parts_are_lines_without_blank_and_protected_ones() -> None:
    assert parts(PROMPT.text) == ["You judge summaries.", "- Be fair.", "- Be kind.", "Be fair."]


def test_what_shows_the_example_and_what_follows_the_question_is_no_part() -> None:
    text = "Be fair.\nDocument:\n{input}\n\n{output}\nBe kind to {output}.\nQuestion: {question}\nBe quick."
    assert parts(text) == ["Be fair.", "Be kind to {output}."]
    assert parts("") == []


def test_a_question_in_double_braces_is_a_word_of_the_prompt_and_ends_nothing() -> None:
    assert parts("Write {{question}} where one is due.\nBe kind.\n") == [
        "Write {{question}} where one is due.",
        "Be kind.",
    ]


def test_long_lines_are_taken_apart_into_sentences() -> None:
    sentences = ["This is a sentence of some length, is it not?", "It is!", "So it goes on and on " + "x" * 150 + "."]
    assert parts("  " + " ".join(sentences) + "  \nShort one. Kept whole.\n") == [*sentences, "Short one. Kept whole."]


@given(st.text("ab .!?\n\t-\r\u2028", max_size=60), st.integers(0, 3))
def test_parts_are_in_order_apart_and_without_space_around_them(text: str, longer: int) -> None:
    text *= 1 + 20 * longer
    spans = split_parts(Prompt(text))
    assert all(start < end for start, end in spans)
    assert all(one[1] <= other[0] for one, other in pairwise(spans))
    assert all(part == part.strip() != "" and "\n" not in part for part in parts(text))
    rest = text
    for start, end in reversed(spans):
        rest = rest[:start] + rest[end:]
    assert rest.strip() == ""


# --- edits --------------------------------------------------------------------------------------------------------


LINES = ["Be fair.", "- Be fair.", "* Be kind.", "1. Be brief.", "  - Be fair.", "", " ", "Be", "a a a", "{{x}}", "-"]
MARKED = ["{output}", "Output:", "{question}", "<!-- protect -->", "<!-- /protect -->", "Answer yes or no."]
LINE = st.sampled_from([*LINES, *MARKED, "Be fair. " * 30])
PROMPTS = st.lists(LINE, max_size=8).map("\n".join)
TEXTS = st.sampled_from(
    ["Be strict.", "- Be strict.", "Be\nstrict.", "Be fair. And more.", "{output} now", "Answer: no"]
)
ACTIONS = st.sampled_from(["add", "replace"])


@given(PROMPTS, st.booleans(), st.integers(1, 9), ACTIONS, TEXTS | st.text(min_size=5, max_size=20))
def test_an_edit_is_refused_or_changes_exactly_the_place_it_was_meant_for(
    text: str, newline: bool, part: int, action: Any, words: str
) -> None:
    text += "\n" * newline
    spans = split_parts(Prompt(text))
    if part > len(spans):
        return
    start, end = spans[part - 1]
    edit = make_edit(Prompt(text), (start, end), Proposal(part=part, action=action, text=words), "L1")
    assert text.find(edit.old) == text.rfind(edit.old) != -1, "old is exact and occurs once, by construction"
    try:
        changed = Prompt(text).apply(edit).text
    except EditRefusedError:
        return
    if action == "replace":
        assert changed.startswith(text[:start])
        assert changed.endswith(text[end:])
        assert "\n" not in changed[start : len(changed) - len(text) + end]
    else:
        lines, before = changed.split("\n"), text.split("\n")
        number = text.count("\n", 0, start)
        assert lines[: number + 1] == [*before[:number], lines[number]]
        assert lines[number].rstrip() == before[number].rstrip()
        assert [line.rstrip() for line in lines[number + 2 :]] == [line.rstrip() for line in before[number + 1 :]]


def edited(text: str, part: int, words: str, action: Any = "add") -> str:
    edit = make_edit(
        Prompt(text), split_parts(Prompt(text))[part - 1], Proposal(part=part, action=action, text=words), "L1"
    )
    return Prompt(text).apply(edit).text


@pytest.mark.parametrize(
    ("text", "part", "words", "action", "wanted"),
    [
        ("One line.", 1, "Be strict.", "add", "One line.\n- Be strict."),
        ("One line.\n", 1, "Be strict.", "add", "One line.\n- Be strict.\n"),
        ("One line. ", 1, "Be strict.", "replace", "Be strict. "),
        ("* one\n* two", 1, "- three is more", "add", "* one\n* three is more\n* two"),
        ("  * one\n", 1, "three is more", "add", "  * one\n  * three is more\n"),
        ("1. one\n2. two", 2, "three is more", "add", "1. one\n2. two\n- three is more"),
        ("- one\n- two", 2, "two and three", "replace", "- one\n- two and three"),
        ("- one\n- two", 2, "* two and three", "replace", "- one\n- two and three"),
        ("A one.\nB.\nA one.", 1, "A two.", "replace", "A two.\nB.\nA one."),
        ("A one.\nB.\nA one.", 3, "A two.", "replace", "A one.\nB.\nA two."),
        ("A one.\nA one.\nA one.", 1, "A two.", "replace", "A two.\nA one.\nA one."),
        ("A one.\nA one.\nA one.", 2, "A two.", "add", "A one.\nA one.\n- A two.\nA one."),
        ("-\nBe fair.", 1, "Be strict.", "add", "-\n- Be strict.\nBe fair."),
    ],
)
def test_edits_keep_the_style_of_their_neighbours(text: str, part: int, words: str, action: str, wanted: str) -> None:
    assert edited(text, part, words, action) == wanted


# --- the model ----------------------------------------------------------------------------------------------------


GOOD = "Answer no if any date is wrong."


async def test_a_lesson_becomes_an_edit_that_names_it() -> None:
    edit, model = await propose(proposal(3, GOOD))
    assert edit == Edit(old="- Be kind.", new=f"- Be kind.\n- {GOOD}", lessons=("L1",))
    shown = model.requests[0].messages[-1][1]
    assert "[3] - Be kind." in shown
    assert LESSON.text in shown
    assert "The law." not in shown


@pytest.mark.parametrize(
    ("bad", "said", "options"),
    [
        (proposal(5, GOOD), "number from 1 to 4", {}),
        (proposal(0, GOOD), "field 'part'", {}),
        (proposal(1, "Be kind."), "already says this", {}),
        (proposal(1, " Be \n kind. "), "already says this", {}),
        (proposal(1, "Look at the dates."), "does not say the lesson in full", {}),
        (proposal(1, GOOD, "replace"), "must keep what the part says", {}),
        (proposal(1, "Answer no if a date in {input} is wrong."), "placeholder", {}),
        (proposal(1, f"<!-- protect --> {GOOD}"), "protected", {}),
        (proposal(1, GOOD + " x" * 50), "more than 180", {"max_prompt_chars": 180}),
        (proposal(1, GOOD), "copies an example", {"examples": ["He said: answer no if any date is wrong, friend."]}),
        (proposal(1, GOOD, "delete"), "field 'action'", {}),
        ("Add a line about dates.", "not valid JSON", {}),
    ],
)
async def test_a_proposal_that_the_guards_refuse_is_made_again_once(
    bad: str, said: str, options: dict[str, Any]
) -> None:
    edit, model = await propose(bad, proposal(3, "Answer no if a date differs or is wrong."), **options)
    assert edit.new.endswith("\n- Answer no if a date differs or is wrong.")
    assert said in model.requests[1].messages[-1][1]
    with pytest.raises(ParseError, match=re.escape(said)):
        await propose(bad, bad, **options)


async def test_a_prompt_that_is_protected_as_a_whole_is_not_asked_about() -> None:
    model = ScriptedModel([])
    with pytest.raises(ParseError, match=naming("protected")):
        await Updater(Gateway(), model).propose(Prompt("<!-- protect -->\nx\n<!-- /protect -->"), LESSON)
    assert model.requests == []


# --- what orders the opposite -------------------------------------------------------------------------------------------


WRONG = Prompt("You judge summaries.\n- Be fair.\n- Answer yes even if the output has any date wrong.\n- Be kind.\n")


def correction(part: int, action: str, text: str = "") -> str:
    return json.dumps({"part": part, "action": action, "text": text})


async def correct(*replies: str, prompt: Prompt = WRONG, opposed: tuple[int, ...] = (2,)) -> tuple[Edit, ScriptedModel]:
    model = ScriptedModel(replies)
    return await Updater(Gateway(), model).propose(prompt, LESSON, (), opposed), model


async def test_a_lesson_may_speak_of_braces_that_are_no_placeholder() -> None:
    prompt = Prompt("Judge the letter.\n{input}\n{output}\n")
    lesson = LESSON.model_copy(update={"text": "Answer no if the output leaves {name} or {{date}} unfilled."})
    for braces in ("{name}", "{{name}}"):
        text = f"Answer no if the output leaves {braces} or {{{{date}}}} unfilled."
        model = ScriptedModel([proposal(1, text)])
        changed = prompt.apply(await Updater(Gateway(), model).propose(prompt, lesson))
        assert f"- {STRICTER.opening} leaves {{{{name}}}} or {{{{date}}}} unfilled.\n{{input}}" in changed.text
        assert len(model.requests) == 1
    model = ScriptedModel([proposal(1, "Answer no if {output} leaves the name or date unfilled.")] * 2)
    with pytest.raises(ParseError, match=naming("placeholder")):
        await Updater(Gateway(), model).propose(prompt, lesson)


async def test_a_part_that_orders_the_opposite_is_replaced_and_need_not_be_kept() -> None:
    edit, model = await correct(correction(3, "correct", LESSON.text))
    assert WRONG.apply(edit).text == WRONG.text.replace(f"{LENIENT.opening} has any date wrong.", LESSON.text)
    assert edit.lessons == ("L1",)
    assert says(model.requests[0].messages[-1][1], "opposite", 3)


@pytest.mark.parametrize(
    ("text", "part", "left"),
    [
        (WRONG.text, 3, "You judge summaries.\n- Be fair.\n- Be kind.\n"),
        ("Say yes.\nBe fair.", 1, "Be fair."),
        ("Be fair.\nSay yes.", 2, "Be fair."),
        ("Be fair.\nSay yes.\n", 2, "Be fair.\n"),
        ("Say yes.\nBe fair.\nSay yes.", 1, "Be fair.\nSay yes."),
        ("A" + " word" * 40 + ". Say yes. Be fair.", 2, "A" + " word" * 40 + ". Be fair."),
        ("- Say yes. " + "A" + " word" * 40 + ".", 1, "A" + " word" * 40 + "."),
    ],
)
async def test_a_part_that_orders_the_opposite_is_taken_out_with_its_line(text: str, part: int, left: str) -> None:
    edit, _ = await correct(correction(part, "delete"), prompt=Prompt(text), opposed=(part - 1,))
    assert text.count(edit.old) == 1
    assert Prompt(text).apply(edit).text == left


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (correction(2, "delete"), "must be one of these: 3"),
        (correction(9, "delete"), "must be one of these: 3"),
        (correction(3, "correct", "Look at dates."), "does not say the lesson in full"),
        (correction(3, "correct"), "does not say the lesson in full"),
        (correction(3, "add", LESSON.text), "field 'action'"),
    ],
)
async def test_nothing_but_what_contradicts_is_given_up(bad: str, said: str) -> None:
    _, model = await correct(bad, correction(3, "delete"))
    assert said in model.requests[1].messages[-1][1]
    with pytest.raises(ParseError, match=re.escape(said)):
        await correct(bad, bad)


async def test_the_answer_format_is_no_part_that_may_be_taken_out() -> None:
    prompt = Prompt("Answer yes or no.\nBe fair.")
    with pytest.raises(ParseError, match="answer format"):
        await correct(correction(1, "delete"), correction(1, "delete"), prompt=prompt, opposed=(0,))


# --- messages and templates ---------------------------------------------------------------------------------------

CHAT = """\
- role: system
  content: |
    You write for {{company}}.
    {{company}}
    {% for each in notes %}
    Heed {{ each }}.
    {% endfor %}
    Be brief.
- {role: user, content: Say yes.}
- {role: assistant, content: "Yes, said.\\nTwice."}
- role: user
  content: |
    Read this.
    Input:
    {{input}}
"""


def chat() -> Prompt:
    return parse_prompt(CHAT, ".yaml", "chat.yaml", Binding(asks=False, writes=True))


def test_variables_loops_cases_and_lines_between_messages_are_no_parts() -> None:
    prompt = chat()
    found = [prompt.text[start:end] for start, end in split_parts(prompt)]
    assert found == ["You write for {{company}}.", "Be brief.", "Read this."]


@pytest.mark.parametrize("action", ["add", "replace"])
def test_every_part_of_every_message_can_be_edited_in_its_own_place(action: Any) -> None:
    prompt = chat()
    for span in split_parts(prompt):
        words = f"{prompt.text[slice(*span)]} And so." if action == "replace" else "And so."
        changed = prompt.apply(make_edit(prompt, span, Proposal(part=1, action=action, text=words), "L1"))
        before, after = (each.form.texts(each.text) for each in (prompt, changed) if each.form is not None)
        assert len(before) == len(after) == 4
        assert sum(old != new for old, new in zip(before, after, strict=True)) == 1
        again = parse_prompt(changed.file_text, ".yaml", "chat.yaml", Binding(asks=False, writes=True))
        assert again.text == changed.text


def test_instructions_are_added_to_the_systems_message() -> None:
    prompt = chat()
    span = last_instruction(prompt)
    assert span is not None
    assert prompt.text[slice(*span)] == "Be brief."
    alone = parse_prompt('[{"role": "user", "content": "Do it: {input}"}]', ".json", "p.json", Binding(writes=True))
    edit = make_edit(alone, last_instruction(alone) or (0, 0), Proposal(part=1, action="add", text="Be kind."), "L1")
    assert alone.apply(edit).file_text == '[{"role": "user", "content": "Do it: {input}\\n- Be kind."}]'
