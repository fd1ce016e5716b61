"""The part of an example that a question about a relation is asked of."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from askance.agents.evaluator import Evaluator
from askance.agents.measures import nearest
from askance.agents.measures.nearest import NEAREST, SHOWN, in_view, texts_of_all
from askance.agents.requests import EachAsking
from askance.memory.verdict_store import VerdictStore
from askance.models.budget import Budget
from askance.models.gateway import Gateway
from askance.prompts.checklist import Checklist, Question
from askance.prompts.errors import InputError
from askance.prompts.examples import Example
from askance.prompts.prompt import Prompt
from askance.testing import ScriptedModel
from tests.said import naming

ASKED = "How do I wash a linen mask?"
ANSWER = (
    "Masks are sold in shops. They cost two pounds. Linen is made of flax. Wash a linen mask at sixty degrees. "
    "Write to us. We answer soon."
)
PROMPT = Prompt("Judge.\n\nInput: {input}\n\nOutput: {output}\n\n{question}")


def question(sees: str = "input", id: str = "same") -> Question:
    return Question.model_validate({"id": id, "text": "Does the answer speak of the same thing?", "sees": sees})


@pytest.fixture(autouse=True)
def without_embedder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearest, "can_embed", lambda: False)
    nearest._say_once.cache_clear()


def test_a_question_is_shown_whole_with_the_nearest_sentences_of_the_answer() -> None:
    output, text = nearest.nearest(ANSWER, ASKED, by_words=True)
    assert text == ASKED
    assert output == "… Linen is made of flax. Wash a linen mask at sixty degrees. …"


def test_a_summary_is_shown_with_the_nearest_sentences_of_its_source() -> None:
    article = " ".join(f"In town number{place} the mill number{place} was sold." for place in range(30))
    output, text = nearest.nearest("The mill number7 was sold. The mill number9 was not.", article, by_words=True)
    assert output == "The mill number7 was sold. The mill number9 was not."
    assert "number7" in text and "number9" in text and len(nearest.sentences_of(text)) <= 2 * NEAREST + 3


def test_of_two_long_texts_the_least_supported_sentences_are_shown() -> None:
    output = " ".join(f"The ferry number{place} sails." for place in range(20)) + " Cats sing."
    text = " ".join(f"The ferry number{place} sails." for place in range(30))
    shown, beside = nearest.nearest(output, text, by_words=True)
    assert "Cats sing." in shown
    assert len([each for each in nearest.sentences_of(shown) if "…" not in each]) <= SHOWN + 1
    assert len(beside) < len(text)


def test_a_text_without_a_word_comes_back_whole() -> None:
    assert nearest.nearest("…", ASKED, by_words=True) == ("…", ASKED)


def test_any_other_view_is_the_whole_example() -> None:
    example = Example(id="e", input=ASKED, output=ANSWER)
    assert in_view(example, "all") is example and in_view(example, "output") is example


def test_that_words_take_the_place_of_the_embedder_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    example = Example(id="e", input=ASKED, output=ANSWER)
    with caplog.at_level(logging.WARNING):
        in_view(example, "input")
        in_view(example, "input")
    assert len([each for each in caplog.messages if "memory" in each]) == 1


def test_the_judge_is_shown_the_two_texts_and_neither_the_prompt_nor_anything_else() -> None:
    example = Example(id="e", input=ASKED, context="Flax grows in Belgium.", output=ANSWER)
    (ask,) = EachAsking(PROMPT, (question(),), False, True, 0.0, None).asks("m", example, 0, 0)
    (_, orders), (_, asked) = ask.messages
    assert "Judge." not in orders + asked and "Belgium" not in asked and "two pounds" not in asked
    assert ASKED in asked and "Wash a linen mask" in asked and asked.endswith("yes or no.")
    assert ask.example is example and ask.request().about == (question(), in_view(example, "input"))


async def test_the_view_is_part_of_the_verdicts_key(tmp_path: Path) -> None:
    model, store = ScriptedModel(lambda request: 0.8), VerdictStore(tmp_path / "verdicts.db")
    for sees, calls in (("all", 1), ("input", 2), ("input", 2), ("output", 3)):
        checklist = Checklist(task="", questions=[question(sees)])
        evaluator = Evaluator(Gateway(store, Budget()), model, PROMPT, checklist)
        (verdict,) = await evaluator.judge([Example(id="e", input=ASKED, output=ANSWER)])
        assert verdict.answer and len(model.requests) == calls


async def test_an_example_without_the_text_is_refused_by_its_name() -> None:
    model = ScriptedModel(lambda request: 0.8)
    checklist = Checklist(task="", questions=[question("context", id="sourced")])
    evaluator = Evaluator(Gateway(None, Budget()), model, PROMPT, checklist)
    examples = [Example(id="a", input="x", context="y", output="z"), Example(id="b", input="x", output="z")]
    with pytest.raises(InputError, match=naming("sourced", "context", "b")):
        await evaluator.judge(examples)
    with pytest.raises(InputError, match=naming("sourced", "context", "b")):
        evaluator.estimate(examples)
    assert not model.requests
    assert texts_of_all(examples) == ["input"]
