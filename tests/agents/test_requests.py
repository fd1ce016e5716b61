from __future__ import annotations

import json
from math import log
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from askance.agents.replies import Reading
from askance.agents.requests import (
    Ask,
    Asking,
    BatchedAsking,
    EachAsking,
    batched_schema,
    each_format,
    question_block,
    shuffled,
)
from askance.models.base import Answer, make_request
from askance.prompts.checklist import Question
from askance.prompts.examples import Example
from askance.prompts.prompt import Prompt
from askance.prompts.templates import render
from askance.prompts.text import fence
from tests.said import says

PROMPTS = ["Judge.", "{output}", "Look at {output}. {question} Now!", "{input} {{x}} {output}\n{question}"]
TEXT = st.text(max_size=20)
QUESTIONS = (
    Question(id="a", text="A?", rubric="R", reference="Ref", violation="V"),
    Question(id="b", text="B?"),
    Question(id='c "ü"', text="C?"),
)


def asks(asking: Asking, example: Example, replicate: int = 0) -> list[Ask]:
    return list(asking.asks("identity", example, 0, replicate))


def each(prompt: str = "Judge.", *, explained: bool = False, logprobs: bool = True) -> EachAsking:
    return EachAsking(Prompt(prompt), QUESTIONS, explained, logprobs, 0.0, 42)


def batched(prompt: str = "Judge.", *, explained: bool = False, logprobs: bool = False) -> BatchedAsking:
    return BatchedAsking(Prompt(prompt), QUESTIONS, explained, logprobs, 0.0, 42)


@given(st.sampled_from(PROMPTS), TEXT, TEXT, st.booleans(), st.integers(0, 2))
def test_a_key_is_that_of_the_request_that_is_sent(
    prompt: str, input_: str, output: str, explained: bool, replicate: int
) -> None:
    example = Example.model_construct(
        id="e", input=input_, output=output, context=None, reference=None, system=None, metadata={}, human={}
    )
    for asking in (each(prompt, explained=explained), batched(prompt, explained=explained)):
        found = asks(asking, example, replicate)
        for ask in found:
            request = ask.request()
            made = make_request("identity", request.messages, request.parameters, replicate)
            assert request.key == made.key
        assert len({ask.key for ask in found}) == len(found)


def test_what_comes_before_the_question_is_shared_and_the_judged_text_is_fenced() -> None:
    example = Example(id="e", input="in", output="Question: is it?\nAnswer with one word: yes")
    found = asks(each(), example)
    texts = [ask.messages[-1][1] for ask in found]
    start = found[0].framing.before
    assert all(text.startswith(start) for text in texts)
    assert fence(example.output or "") in start
    assert texts[1] == f"{start}Question: B?\n{each_format(explained=False)}"


SHORT = "Answer the question about the reply with one word: yes or no.\n\nReply: {output}\n\n{question}"


def rests(asking: Asking) -> list[str]:
    return [ask.rest for ask in asks(asking, Example(id="e", input="in", output="out"))]


def test_a_prompt_that_says_how_to_answer_is_not_told_again() -> None:
    full = "Question: A?\nRubric: R\nReference answer: Ref\nA violation would be: V"
    assert rests(each(SHORT)) == [full, "B?", "C?"]
    assert rests(each(SHORT, logprobs=False)) == [full, "B?", "C?"]
    assert rests(each("Judge {output}. {question}"))[1] == f"Question: B?\n{each_format(explained=False)}"


def test_an_explanation_is_asked_for_whatever_the_prompt_says() -> None:
    asking = each(SHORT, explained=True)
    assert rests(asking)[1] == f"Question: B?\n{asking.form}"


def test_asking_again_says_how_to_answer_even_where_the_prompt_does() -> None:
    asking = each(SHORT)
    ask = asks(asking, Example(id="e", input="in", output="out"))[1]
    again = ask.again("identity", Answer("Hm"), "it is neither", asking.form)
    assert says(again.messages[-1][1], each_format(explained=False))
    assert again.prefix == ask.request().prefix and ask.messages[-1][1].startswith(again.prefix.strip())


def test_all_requests_on_an_example_have_one_prefix_and_other_examples_another() -> None:
    examples = [Example(id=name, input="in", output=name) for name in "xy"]
    for asking in (each(), each(SHORT), batched()):
        prefixes = [{ask.request().prefix for ask in asks(asking, example)} for example in examples]
        assert [len(found) for found in prefixes] == [1, 1] and prefixes[0] != prefixes[1]


MIXED = tuple(
    Question(id=name, text=f"{name.upper()}?", sees="output" if name in "bde" else "all") for name in "abcdef"
)
LONG = "Answer the question with one word: yes or no.\n\nAsked: {input}\n\nReply: {output}\n\n{question}"
OF_INPUT = "Answer yes or no of this:\n{input}\n\nReply: {output}\n\n{question}"
"""It says how to answer where it shows the input, and nowhere else."""


@pytest.mark.parametrize("prompt", ["Judge.", "{input}\n\n{output}", LONG, "Does {output} go with {input}? {question}"])
def test_each_question_is_shown_what_it_sees_and_stands_at_its_own_place(prompt: str) -> None:
    asking = EachAsking(Prompt(prompt), MIXED, False, True, 0.0, 42)
    found = list(asking.asks("identity", Example(id="e", input="asked so", output="out"), 10, 0))
    assert {ask.index: ask.questions for ask in found} == {place: (each,) for place, each in enumerate(MIXED, 10)}
    for ask in found:
        text = str(ask.messages)
        assert ("asked so" in text) == (ask.questions[0].sees == "all") and "out" in text
        assert ask.questions[0].text in text
        assert ask.key == make_request("identity", ask.messages, ask.parameters, 0).key


def test_questions_that_see_the_same_are_asked_one_after_the_other_and_share_what_comes_before() -> None:
    found = asks(EachAsking(Prompt("Judge."), MIXED, False, True, 0.0, 42), Example(id="e", input="in", output="out"))
    assert [ask.questions[0].id for ask in found] == list("acfbde")
    prefixes = [ask.request().prefix for ask in found]
    assert len(set(prefixes)) == 2 and len(set(prefixes[:3])) == 1


def test_a_question_is_told_how_to_answer_where_the_prompt_of_the_output_alone_does_not_say_it() -> None:
    example = Example(id="e", input="in", output="out")
    for prompt, told in ((LONG, "B?"), (OF_INPUT, "Question: B?\nAnswer with one word: yes or no.")):
        rest = {
            ask.questions[0].id: ask.rest for ask in asks(EachAsking(Prompt(prompt), MIXED, False, True, 0, 1), example)
        }
        assert (rest["a"], rest["b"]) == ("A?", told)


def test_one_call_is_made_for_each_run_of_questions_that_see_the_same() -> None:
    asking = BatchedAsking(Prompt("Judge."), MIXED, False, False, 0.0, 42)
    found = list(asking.asks("identity", Example(id="e", input="asked so", output="out"), 10, 0))
    assert [(ask.index, [each.id for each in ask.questions]) for ask in found] == [
        (10, ["a"]),
        (11, ["b"]),
        (12, ["c"]),
        (13, ["d", "e"]),
        (15, ["f"]),
    ]
    for ask in found:
        text = ask.messages[-1][1]
        assert ("asked so" in text) == (ask.questions[0].sees == "all")
        assert all((f"[{each.id}]" in text) == (each in ask.questions) for each in MIXED)
        assert ask.parameters.schema == batched_schema(shuffled(ask.questions, 42, "e", 0), explained=False)
    alone = asks(asking.alone("d"), Example(id="e", input="asked so", output="out"))
    assert [ask.questions for ask in alone] == [(MIXED[3],)] and "asked so" not in str(alone[0].messages)


def test_a_question_shows_all_that_it_has() -> None:
    block = question_block(QUESTIONS[0]).splitlines()
    assert [line.rpartition(": ")[2] for line in block] == ["A?", "R", "Ref", "V"]
    assert len({line.rpartition(": ")[0] for line in block}) == 4, "each is said to be what it is"
    assert question_block(QUESTIONS[1]) == "Question: B?"


def test_braces_in_a_question_are_only_text() -> None:
    question = Question(id="a", text="Does it say {output}?")
    asking = EachAsking(Prompt("{output} {question}"), (question,), False, True, 0.0, None)
    [ask] = asks(asking, Example(id="e", input="i", output="o"))
    assert "Does it say {output}?" in ask.messages[0][1]


def test_the_order_depends_on_seed_example_and_replicate_alone() -> None:
    many = [Question(id=str(number), text="x") for number in range(20)]
    assert shuffled(many, 1, "e", 0) == shuffled(many, 1, "e", 0)
    orders = [shuffled(many, *key) for key in [(1, "e", 0), (2, "e", 0), (1, "f", 0), (1, "e", 1)]]
    assert all(sorted(order, key=many.index) == many for order in orders)
    assert len({tuple(question.id for question in order) for order in orders}) == 4


def test_a_batched_schema_allows_the_ids_and_nothing_else() -> None:
    schema = batched_schema(QUESTIONS, explained=False)
    assert schema["required"] == list(schema["properties"]) == ["a", "b", 'c "ü"']
    assert schema["additionalProperties"] is False


def test_a_batched_answer_has_room_for_long_ids() -> None:
    long = tuple(Question(id=f"{number}-" + "x" * 200, text="?") for number in range(5))
    asking = BatchedAsking(Prompt("p"), long, False, False, 0.0, 42)
    [ask] = asks(asking, Example(id="e", input="i", output="o"))
    text = json.dumps({question.id: "yes" for question in long})
    assert ask.parameters.max_tokens > len(text) / 2


def test_a_batched_answer_is_read_by_id_and_what_is_unusable_is_missing() -> None:
    [ask] = asks(batched(), Example(id="e", input="i", output="o"))
    text = json.dumps({"b": "NO", 'c "ü"': {"answer": "unknown", "explanation": "E"}, "a": "both", "z": "yes"})
    assert batched().read(ask, Answer(text)) == {"b": Reading(False, None), 'c "ü"': Reading(None, None, "E")}


@pytest.mark.parametrize("text", ["[]", '"yes"', "yes", "{}", '{"z": "yes"}', "Sure: {}", "[" * 100_000])
def test_a_batched_answer_of_no_use_is_refused(text: str) -> None:
    [ask] = asks(batched(), Example(id="e", input="i", output="o"))
    with pytest.raises(ValueError, match=r"JSON|usable"):
        batched().read(ask, Answer(text))


@pytest.mark.parametrize(
    ("mode", "text"),
    [
        (each(explained=True), '{"answer": "ye'),
        (each(explained=True), '{"answer": "no'),
        (each(explained=True), '{"explanation": "yes", "ans'),
        (batched(), '{"a": "no'),
        (batched(), '{"a": '),
    ],
)
def test_an_answer_that_was_cut_off_within_its_word_is_refused(mode: Asking, text: str) -> None:
    ask = asks(mode, Example(id="e", input="i", output="o"))[0]
    with pytest.raises(ValueError, match="cut off"):
        mode.read(ask, Answer(text, finish="length"))


def test_answers_that_were_whole_before_a_cut_count_and_the_others_are_missing() -> None:
    ask = asks(each(explained=True, logprobs=False), Example(id="e", input="i", output="o"))[0]
    cut = Answer('{"answer": "yes", "explanation": "It is lon', finish="length")
    assert each(explained=True, logprobs=False).read(ask, cut) == {"a": Reading(True, None)}
    [ask] = asks(batched(explained=True), Example(id="e", input="i", output="o"))
    text = '{"a": {"answer": "no", "explanation": "E"}, "b": {"answer": "yes", "expl'
    assert batched(explained=True).read(ask, Answer(text, finish="length")) == {
        "a": Reading(False, None, "E"),
        "b": Reading(True, None),
    }


def test_asking_again_shows_the_answer_the_problem_and_the_form() -> None:
    mode = each(logprobs=False)
    ask = asks(mode, Example(id="e", input="i", output="o"))[0]
    request = ask.again("identity", Answer("{Hm}"), "'{Hm}' is neither", mode.form)
    assert request.messages[:-2] == tuple(ask.messages)
    assert request.messages[-2] == ("assistant", "{Hm}")
    assert request.messages[-1][1] == render("answer_again", problem="'{Hm}' is neither", format=mode.form)
    assert says(request.messages[-1][1], "'{Hm}' is neither", mode.form)
    assert ask.again("identity", Answer(""), "p", mode.form).messages[-2][1]


def test_replicates_have_seeds_of_their_own() -> None:
    example = Example(id="e", input="i", output="o")
    for mode in (each(), batched()):
        assert [asks(mode, example, number)[0].parameters.seed for number in range(3)] == [42, 43, 44]
    unseeded = EachAsking(Prompt("p"), QUESTIONS, False, True, 0.0, None)
    assert asks(unseeded, example, 2)[0].parameters.seed is None


# --- answer and probability -----------------------------------------------------------------------------------------

HERE = Example(id="e", input="i", output="The fair opens on Monday.")
LIKELY = st.floats(0.001, 0.999)
WORD = st.sampled_from(["yes", "no"])


def either(said: str, p_yes: float, yes: str = "yes", no: str = "no") -> tuple[str, tuple[tuple[str, float], ...]]:
    """The token that was drawn, which need not be the likelier one, with the probabilities of both."""
    return said, ((yes, log(p_yes)), (no, log(1 - p_yes)))


def in_fields(values: dict[str, tuple[str, float]], *, single: bool, explained: bool) -> Answer:
    """A JSON answer, token by token; each value is the word that was drawn and its P(yes)."""
    tokens: list[tuple[str, tuple[tuple[str, float], ...]]] = [] if single else [("{", ())]
    for number, (name, (said, p_yes)) in enumerate(values.items()):
        whole = single or explained
        opening = ", " * (number > 0) + (f"{json.dumps(name)}: " * (not single)) + ('{"answer": "' if whole else '"')
        closing = '"' + ', "explanation": "E"' * explained + "}" * whole
        tokens += [(opening, ()), either(said, p_yes), (closing, ())]
    tokens += [] if single else [("}", ())]
    return Answer("".join(token for token, _ in tokens), tuple(tokens))


@settings(max_examples=60)
@given(WORD, LIKELY)
@example("yes", 0.5)
@example("no", 0.5)
@example("no", 0.5000001)
@example("yes", 0.4999999)
def test_one_answer_is_the_likelier_one_whichever_was_drawn(said: str, p_yes: float) -> None:
    wanted = pytest.approx(p_yes, rel=1e-6)
    in_a_word = Answer(said, (either(said, p_yes),))
    in_words = Answer(f"{said}, it is", (either(said, p_yes), (", it is", ())))
    for asking, answer in (
        (each(), in_a_word),
        (each(), in_words),
        (each(explained=True), in_fields({"answer": (said, p_yes)}, single=True, explained=True)),
    ):
        [ask, *_] = asks(asking, HERE)
        [(question, read)] = asking.read(ask, answer).items()
        assert question == "a" and read.p_yes == wanted
        assert read.answer is (read.p_yes >= 0.5)


@settings(max_examples=60)
@given(st.lists(st.tuples(WORD, LIKELY), min_size=3, max_size=3), st.booleans(), st.permutations(QUESTIONS))
def test_each_answer_of_several_is_its_own_likelier_one(
    values: list[tuple[str, float]], explained: bool, order: list[Question]
) -> None:
    asking = batched(explained=explained, logprobs=True)
    [ask] = asks(asking, HERE)
    given_to = {question.id: value for question, value in zip(order, values, strict=True)}
    readings = asking.read(ask, in_fields(given_to, single=False, explained=explained))
    assert readings.keys() == given_to.keys()
    for name, (_, p_yes) in given_to.items():
        assert readings[name].p_yes == pytest.approx(p_yes, rel=1e-6)
        assert readings[name].answer is (readings[name].p_yes >= 0.5)
        assert readings[name].explanation == ("E" if explained else None)


@settings(max_examples=60)
@given(st.sampled_from(["Monday", "none"]), LIKELY, st.booleans(), st.booleans())
@example("none", 0.5, False, False)
def test_a_quote_is_a_yes_where_none_is_the_less_likely(
    drawn: str, p_yes: float, together: bool, explained: bool
) -> None:
    quotes = (Question(id="q", text="Does it name a day?", sees="quote"),)
    asking: Asking = EachAsking(Prompt("p"), quotes, explained, True, 0.0, 42)
    if together:
        asking = BatchedAsking(Prompt("p"), quotes, explained, True, 0.0, 42)
    [ask] = asks(asking, HERE)
    read = asking.read(ask, Answer(drawn, (either(drawn, p_yes, "Monday", "none"),)))["q"]
    assert read.p_yes == pytest.approx(p_yes, rel=1e-6)
    assert read.answer is (read.p_yes >= 0.5)


@settings(max_examples=100)
@given(WORD, st.integers(0, 100), st.booleans())
@example("yes", 49, True)
@example("no", 51, False)
def test_a_stated_probability_that_contradicts_its_answer_is_no_verdict(said: str, number: int, together: bool) -> None:
    """50 goes with either answer; all others go with one."""
    value = {"answer": said, "probability": number}
    goes = number == 50 or (number > 50) == (said == "yes")
    if together:
        many = BatchedAsking(Prompt("p"), QUESTIONS, False, False, 0.0, 42, None, True, True)
        [ask] = asks(many, HERE)
        other = {"answer": "yes", "probability": 90}
        readings = many.read(ask, Answer(json.dumps({"a": value, "b": other})))
        assert readings["b"] == Reading(True, 0.9) and ("a" in readings) is goes
    else:
        one = EachAsking(Prompt("p"), QUESTIONS[:1], False, False, 0.0, 42, None, True, True)
        [ask] = asks(one, HERE)
        try:
            readings = one.read(ask, Answer(json.dumps(value)))
        except ValueError:
            assert not goes
            return
    if goes:
        assert readings["a"] == Reading(said == "yes", number / 100)


@pytest.mark.parametrize("text", ["No", "no.", "None", "“none”"])
@pytest.mark.parametrize("output", ["No dogs, said the mayor. None came.", "Dogs."])
def test_a_no_is_no_quote_though_the_output_has_the_word(text: str, output: str) -> None:
    asking = EachAsking(Prompt("p"), (Question(id="q", text="?", sees="quote"),), False, False, 0.0, 42)
    [ask] = asks(asking, HERE.model_copy(update={"output": output}))
    assert asking.read(ask, Answer(text)) == {"q": Reading(False, None)}


@given(st.lists(st.sampled_from(["all", "output", "quote"]), min_size=1, max_size=8), st.integers(0, 3))
def test_every_question_is_asked_once_and_its_verdict_has_its_own_place(sees: list[Any], replicate: int) -> None:
    questions = tuple(Question(id=f"q{number}", text=f"Q{number}?", sees=one) for number, one in enumerate(sees))
    for asking in (
        EachAsking(Prompt("p"), questions, False, True, 0.0, 42),
        BatchedAsking(Prompt("p"), questions, False, False, 0.0, 42),
        BatchedAsking(Prompt("p"), questions, False, False, 0.0, 42, most=2),
    ):
        places = {}
        for ask in asking.asks("identity", HERE, 10, replicate):
            places |= {ask.index + offset: question for offset, question in enumerate(ask.questions)}
            assert ask.parameters.seed == 42 + replicate and ask.replicate == replicate
            assert len({question.sees for question in ask.questions}) == 1
        assert places == dict(enumerate(questions, 10))
