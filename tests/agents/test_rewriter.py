"""All lessons in one call, held to the same guards as a small edit."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from askance.agents.agent import ParseError
from askance.agents.updater import Rewriter, whole_edit
from askance.models.gateway import Gateway
from askance.prompts.lessons import Edit, Lesson
from askance.prompts.prompt import Prompt
from askance.testing import ScriptedModel

TEXTS = ("Answer no if a date is wrong.", "Answer no if a name is missing.")
LESSONS = [
    Lesson(id=f"L{n}", text=text, direction="stricter", dimension="d", evidence=("e/q",))
    for n, text in enumerate(TEXTS, 1)
]
PROMPT = Prompt(
    "You judge summaries of news.\n<!-- protect -->\nThe law.\n<!-- /protect -->\nDocument: {input}\nSummary: {output}\n"
)
BOTH = PROMPT.text.replace("news.\n", f"news.\n{TEXTS[0]}\n{TEXTS[1]}\n")


async def rewrite(*replies: str, prompt: Prompt = PROMPT, **options: Any) -> tuple[Edit, ScriptedModel]:
    model = ScriptedModel([json.dumps({"prompt": reply}) for reply in replies])
    examples = options.pop("examples", ())
    return await Rewriter(Gateway(), model, **options).propose(prompt, LESSONS, examples), model


async def test_all_lessons_are_said_in_one_edit_that_is_only_what_changed() -> None:
    edit, model = await rewrite(BOTH)
    assert PROMPT.apply(edit).text == BOTH
    assert edit.lessons == ("L1", "L2")
    assert "{input}" not in edit.old
    assert "The law." not in edit.old
    assert len(model.requests) == 1
    assert all(text in model.requests[0].messages[1][1] for text in (*TEXTS, PROMPT.text))


async def test_a_prompt_in_a_script_of_a_token_a_letter_has_room_for_its_rewrite() -> None:
    prompt = Prompt("请仔细阅读这篇文章的摘要并判断它是否准确。\n" * 100)
    _, model = await rewrite(prompt.text + "\n".join(TEXTS), prompt=prompt)
    assert model.requests[0].parameters.max_tokens >= len(prompt.text) + 600


async def test_braces_of_a_lesson_that_are_no_placeholder_are_literal_text() -> None:
    edit, model = await rewrite(BOTH.replace(TEXTS[1], f"{TEXTS[1]} It may stand for {{name}}."))
    assert "It may stand for {{name}}." in edit.new
    assert len(model.requests) == 1


async def test_white_space_at_the_ends_of_the_prompt_is_kept() -> None:
    edit, _ = await rewrite(BOTH.strip())
    assert PROMPT.apply(edit).text == BOTH


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (BOTH.replace("{input}", "the document"), "placeholder"),
        (BOTH.replace("The law.", "The rule."), "protected part"),
        (BOTH.replace(TEXTS[1] + "\n", ""), "does not say this lesson in full: Answer no if a name is missing"),
        ("\n".join(TEXTS), "drops too much"),
        (BOTH.replace("news.", "news. The quick brown fox jumps over it."), "copies an example"),
        (BOTH + "x" * 300, "more than 400"),
        (PROMPT.text, "does not say this lesson"),
    ],
)
async def test_what_a_guard_refuses_is_told_once_and_then_mended(bad: str, why: str) -> None:
    options = {"max_prompt_chars": 400, "examples": ["Once the quick brown fox jumps over it all."]}
    edit, model = await rewrite(bad, BOTH, **options)
    assert PROMPT.apply(edit).text == BOTH
    assert why in model.requests[1].messages[-1][1]
    with pytest.raises(ParseError, match=why.split(":")[0]):
        await rewrite(bad, bad, **options)


async def test_words_of_an_example_that_the_prompt_had_before_are_not_copied_by_the_rewrite() -> None:
    prompt = Prompt("You judge summaries of news.\nThe quick brown fox jumps over it.\nBe fair and brief.")
    new = prompt.text.replace("news.", f"news.\n{TEXTS[0]}").replace("brief.", f"brief.\n{TEXTS[1]}")
    edit, _ = await rewrite(new, prompt=prompt, examples=["Once the quick brown fox jumps over it all."])
    assert prompt.apply(edit).text == new


@given(st.text("ab\n ", min_size=1, max_size=30), st.text("ab\n ", min_size=1, max_size=30))
def test_the_edit_makes_the_new_text_of_the_old_one(old: str, new: str) -> None:
    assume(old.strip())
    assume(new.strip())
    before, after = old[: len(old) - len(old.lstrip())], old[len(old.rstrip()) :]
    wanted = before + new.strip() + after
    edit = whole_edit(old, new.strip(), ["L1"])
    assert old.count(edit.old) >= 1
    assert old.find(edit.old) == old.rfind(edit.old)
    assert old.replace(edit.old, edit.new) == wanted


async def test_a_part_that_orders_the_opposite_may_go_and_no_other() -> None:
    wrong = "Answer yes even if any of the dates in it is not the one that the source itself has got."
    prompt = Prompt(f"You judge summaries.\n{wrong}\nBe fair.")
    new = "\n".join(["You judge summaries.", "Be fair.", *TEXTS])
    model = ScriptedModel([json.dumps({"prompt": new})])
    edit = await Rewriter(Gateway(), model).propose(prompt, LESSONS, (), [1])
    assert prompt.apply(edit).text == new
    assert wrong in model.requests[0].messages[1][1].split("order the opposite")[1]
    with pytest.raises(ParseError, match="drops too much"):
        await rewrite(new, new, prompt=prompt)
