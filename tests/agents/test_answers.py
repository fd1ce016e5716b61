"""What was said is the answer: with its probability, with room for what stands before it, in the words that were given."""

from __future__ import annotations

import json
from hashlib import sha256
from math import exp, log
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askance.agents.evaluator import Evaluator
from askance.agents.judging import Judging
from askance.agents.replies import ENGLISH, Reading
from askance.agents.requests import BatchedAsking, EachAsking, each_format
from askance.memory.verdict_store import VerdictStore
from askance.models.base import Answer, Request
from askance.models.gateway import Gateway
from askance.models.replies.yes_no import ROOM
from askance.prompts.checklist import Checklist, Question
from askance.prompts.errors import InputError
from askance.prompts.examples import Example
from askance.prompts.prompt import Prompt
from askance.testing import ScriptedModel
from tests.said import naming, says

from .conftest import EXAMPLES, HARD, LOGPROB, PROMPT, QUESTIONS, Lab

QUESTION = Question(id="a", text="A?")
EXAMPLE = Example(id="e", input="in", output="out")
WORDS = ["Yes", " yes", "YES", "No", " no", "**", "The", "Sí", "Nein", "Y", "Absolutely", '"', "\n"]
LIKELY = st.lists(
    st.tuples(st.sampled_from(WORDS), st.floats(-8, 0)), min_size=1, max_size=6, unique_by=lambda pair: pair[0]
)
SAID = {"Yes": True, " yes": True, "YES": True, "Sí": True, "No": False, " no": False, "Nein": False}


def read(asking: EachAsking | BatchedAsking, answer: Answer) -> dict[str, Reading]:
    """What the answer to the first ask says; nothing where it cannot be read."""
    try:
        return asking.read(next(iter(asking.asks("identity", EXAMPLE, 0, 0))), answer)
    except ValueError:
        return {}


def share_of_yes(likely: list[tuple[str, float]]) -> float | None:
    masses = [sum(exp(p) for word, p in likely if SAID.get(word) is side) for side in (True, False)]
    return masses[0] / sum(masses) if sum(masses) else None


@given(LIKELY, st.data())
def test_an_answer_is_p_yes_of_at_least_a_half_wherever_p_yes_is_known(
    likely: list[tuple[str, float]], data: st.DataObject
) -> None:
    """Also where a token was drawn that is not the likeliest; and there is none where what was said is neither yes nor no."""
    said = data.draw(st.sampled_from([word for word, _ in likely]))
    alternatives = tuple(likely)
    each = EachAsking(PROMPT, (QUESTION,), False, True, 0.0, None)
    found = read(each, Answer(said, ((said, alternatives),)))
    if said not in SAID:
        assert found == {}
    word = said.strip()
    parts = (('{"', ()), ("answer", ()), ('": "', ()), (word, alternatives), ('", "explanation": "E"}', ()))
    explained = EachAsking(PROMPT, (QUESTION,), True, True, 0.0, None)
    found_explained = read(explained, Answer("".join(part for part, _ in parts), parts))
    parts = (('{"', ()), ("a", ()), ('": "', ()), (word, alternatives), ('"}', ()))
    batched = BatchedAsking(PROMPT, (QUESTION,), False, True, 0.0, None)
    found_batched = read(batched, Answer("".join(part for part, _ in parts), parts))
    for reading in [each for found in (found, found_explained, found_batched) for each in found.values()]:
        assert said in SAID and reading.p_yes is not None
        assert reading.answer is (reading.p_yes >= 0.5)
    if said in ("Yes", "No") and not {"Y", "Sí", "Nein"}.intersection(dict(likely)):
        assert found["a"].p_yes == found_explained["a"].p_yes == pytest.approx(share_of_yes(likely))


@pytest.mark.parametrize(("said", "p_yes"), [("yes", 0.3), ("no", 0.7)])
def test_an_explained_answer_is_that_of_its_probability(said: str, p_yes: float) -> None:
    both = (("yes", log(p_yes)), ("no", log(1 - p_yes)))
    parts = (('{"answer": "', ()), (said, both), ('", "explanation": "E"}', ()))
    asking = EachAsking(PROMPT, (QUESTION,), True, True, 0.0, None)
    reading = read(asking, Answer("".join(part for part, _ in parts), parts))["a"]
    assert (reading.answer, reading.p_yes) == (p_yes >= 0.5, pytest.approx(p_yes))


KEYS = {
    (False, False): "825a01f03cbd44c5",
    (False, True): "ae41aac26bc75cd0",
    (True, False): "1d83cb9fff32ccce",
    (True, True): "139c47e217a408d5",
}


@pytest.mark.parametrize(("explained", "logprobs"), KEYS)
@pytest.mark.parametrize("answers", [None, ENGLISH])
def test_what_is_asked_in_english_keeps_its_keys(explained: bool, logprobs: bool, answers: Any) -> None:
    """Else every stored answer would be bought again."""
    questions = (
        Question(id="a", text="A?", rubric="R"),
        Question(id="b", text="Stimmt alles im Text?"),
        Question(id="c", text="C?", sees="quote"),
    )
    how = (Prompt("Judge."), questions, explained, logprobs, 0.0, 42)
    askings = (EachAsking(*how, answers), BatchedAsking(*how, answers))
    keys = [
        ask.key for asking in askings for replicate in (0, 1) for ask in asking.asks("identity", EXAMPLE, 0, replicate)
    ]
    assert sha256(b"".join(keys)).hexdigest()[:16] == KEYS[explained, logprobs]


def bold(request: Request) -> Answer:
    """A model that writes its answer in bold, as far as it may."""
    pieces = (("**", (("**", log(0.8)), ("No", log(0.12)))), ("Yes", (("Yes", log(0.9)), ("No", log(0.1)))), ("**", ()))
    some = pieces[: request.parameters.max_tokens]
    text = "".join(piece for piece, _ in some)
    return Answer(text, some, finish="stop" if len(some) == len(pieces) else "length")


def lined(request: Request) -> Answer:
    """A model without log-probabilities that begins with a line break."""
    return Answer("\n\n", finish="length") if request.parameters.max_tokens == 1 else Answer("\n\nYes")


async def test_a_model_that_begins_with_a_mark_is_asked_for_more_tokens_from_then_on() -> None:
    lab = Lab(bold, slots=1)
    verdicts = await lab.judge(Judging())
    assert [each.p_yes for each in verdicts] == pytest.approx([0.9] * 12)
    assert [each.parameters.max_tokens for each in lab.model.requests] == [1, *[ROOM] * 12]
    await lab.judge(Judging())
    assert len(lab.model.requests) == 13


async def test_the_next_command_buys_none_of_it_again() -> None:
    lab = Lab(bold)
    await lab.judge(LOGPROB)
    again = Lab(bold, store=lab.store)
    estimate = again.evaluator(LOGPROB).estimate(EXAMPLES)
    assert (estimate.calls, estimate.stored) == (0, 12)
    assert [each.p_yes for each in await again.judge(LOGPROB)] == pytest.approx([0.9] * 12)
    assert again.calls == 0


async def test_a_model_that_says_its_answer_at_once_is_asked_for_one_token() -> None:
    lab = Lab(lambda request: 0.7)
    await lab.judge(Judging())
    assert {each.parameters.max_tokens for each in lab.model.requests} == {1}


@pytest.mark.parametrize("judging", [Judging(), HARD])
async def test_a_line_break_before_the_answer_is_not_taken_for_thinking(judging: Judging) -> None:
    verdicts = await Lab(lined).judge(judging)
    assert {(each.status, each.answer, each.p_yes_from) for each in verdicts} == {("ok", True, "hard")}


async def test_what_says_nothing_in_all_its_room_is_no_answer_and_is_not_kept() -> None:
    lab = Lab(lambda request: Answer("**", (("**", (("**", log(0.8)), ("No", log(0.2)))),), finish="length"))
    assert {each.status for each in await lab.judge(LOGPROB)} == {"parse_error"}
    assert len(lab.store) == 0


async def test_given_words_are_asked_for_read_and_told_again() -> None:
    checklist = Checklist(questions=QUESTIONS, answers=("ja", "nein"))
    model = ScriptedModel(lambda request: "Nein." if len(request.messages) > 2 else "Yes")
    evaluator = Evaluator(Gateway(), model, PROMPT, checklist, HARD)
    assert {each.answer for each in await evaluator.judge(EXAMPLES[:1])} == {False}
    assert says(model.requests[0].messages[-1][1].splitlines()[-1], "ja", "nein")
    assert says(model.requests[-1].messages[-1][1], "ja", "nein")


@pytest.mark.parametrize("mode", ["each", "batched"])
async def test_given_words_are_those_of_the_schema_and_of_a_reply_in_json(mode: Any) -> None:
    def script(request: Request) -> str:
        schema = json.dumps(request.parameters.schema)
        assert '"enum": ["ja", "nein"]' in schema and "yes" not in schema
        assert '"ja" or "nein"' in request.messages[-1][1]
        if mode == "each":
            return json.dumps({"answer": "nein", "explanation": "E"})
        return json.dumps({each.id: {"answer": "nein", "explanation": "E"} for each in QUESTIONS})

    judging = Judging(mode=mode, p_yes="hard", explain="always", answer_words=("ja", "nein"))
    verdicts = await Lab(script).judge(judging)
    assert {(each.answer, each.explanation) for each in verdicts} == {(False, "E")}


async def test_the_setting_goes_before_the_checklist() -> None:
    checklist = Checklist(questions=QUESTIONS, answers=("oui", "non"))
    judging = Judging(p_yes="hard", answer_words=("ja", "nein"))
    model = ScriptedModel(lambda request: "ja")
    evaluator = Evaluator(Gateway(), model, PROMPT, checklist, judging)
    assert {each.answer for each in await evaluator.judge(EXAMPLES[:1])} == {True}


async def test_a_reason_is_asked_for_after_the_given_word() -> None:
    checklist = Checklist(questions=QUESTIONS[:1], answers=("ja", "nein"))
    model = ScriptedModel(lambda request: "Darum." if len(request.messages) > 2 else "nein")
    evaluator = Evaluator(Gateway(), model, PROMPT, checklist, HARD)
    verdicts = await evaluator.judge(EXAMPLES[:1])
    await evaluator.explain(verdicts, EXAMPLES[:1])
    assert ("assistant", "nein") in model.requests[-1].messages


def test_words_the_wrong_way_round_are_refused_before_anything_is_asked() -> None:
    with pytest.raises(InputError, match=naming("yes", "comes first")):
        Evaluator(Gateway(), ScriptedModel([]), PROMPT, Checklist(questions=QUESTIONS, answers=("nein", "ja")), HARD)


def test_a_prompt_that_asks_for_the_given_words_is_not_told_again() -> None:
    prompt = Prompt("Antworte mit ja oder nein.\n\n{output}\n\n{question}")
    asking = EachAsking(prompt, (QUESTION,), False, True, 0.0, None, ("ja", "nein"))
    assert [ask.rest for ask in asking.asks("identity", EXAMPLE, 0, 0)] == ["A?"]
    other = EachAsking(prompt, (QUESTION,), False, True, 0.0, None, ("oui", "non"))
    (line,) = [ask.rest.splitlines()[-1] for ask in other.asks("identity", EXAMPLE, 0, 0)]
    assert line == each_format(explained=False, answers=("oui", "non")) and says(line, "oui", "non")


async def test_of_a_batched_reply_that_was_cut_off_the_missing_questions_are_asked_alone() -> None:
    def script(request: Request) -> Answer | str:
        if request.parameters.schema is None:
            return "no"
        first = next(iter(request.parameters.schema["properties"]))
        return Answer(f'{{"{first}": "yes", "q', finish="length")

    lab = Lab(script, store=VerdictStore(":memory:"))
    verdicts = await lab.judge(Judging(mode="batched", p_yes="hard"), EXAMPLES[:1])
    assert sorted(str(each.answer) for each in verdicts) == ["False", "False", "True"]
    assert lab.calls == 3
