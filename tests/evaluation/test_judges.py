"""Each judge: what it asks, how it reads the answers, and what it does with answers that cannot be read."""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from askance.evaluation.compare.checkeval import MOST_NEW, CheckEval
from askance.evaluation.compare.criteria import criteria_for
from askance.evaluation.compare.judges import JUDGES, check_names
from askance.evaluation.compare.numbers import said_number
from askance.evaluation.compare.protocol import JudgeScore, Meter, Setup, layout_of
from askance.evaluation.options import CompareOptions
from askance.memory.verdict_store import VerdictStore
from askance.models.base import Answer, ModelError, Request
from askance.models.budget import Budget
from askance.models.gateway import Gateway
from askance.models.structured import ParseError
from askance.prompts.checklist import Checklist, Question
from askance.prompts.default import default_prompt
from askance.prompts.errors import BudgetExceededError, InputError
from askance.prompts.examples import Example
from askance.prompts.prompt import Prompt
from askance.testing import Reply, ScriptedModel

EXAMPLES = [Example(id=f"e{n}", input=f"Document {n}.", output=f"Summary {n}.") for n in range(4)]
CHECKLIST = Checklist(
    task="Summarise the document",
    questions=(
        Question(id="facts", text="Are the facts right?", dimension="consistency", weight=3),
        Question(id="names", text="Are the names right?", dimension="consistency"),
        Question(id="words", text="Are the words right?", dimension="fluency"),
    ),
)
NEEDS_NO_CHECKLIST = ("unieval", "geval", "direct", "cot", "poll")
STEPS = json.dumps({"steps": ["Read the document.", "Compare  every\nclaim."]})


WRITTEN = {
    "leave out": ["Are  the dates right?", "are the facts right?", "Is the place right?", "Are the sums right?"],
    "one detail": ["Are the sums right?", "Are the first names right?"],
}
"""What is written on seeing the seeds, by a word of what is asked for; two of them are there already."""


def schema_reply(request: Request) -> str:
    """What is said where a schema is given."""
    fields = request.parameters.schema["properties"]  # type: ignore[index]
    if "steps" in fields:
        return STEPS
    if "dropped" in fields:
        return json.dumps({"dropped": [{"number": 1, "why": "repeats"}, {"number": 4, "why": "elsewhere"}]})
    return json.dumps({"questions": next(new for word, new in WRITTEN.items() if word in asked(request))})


def asked(request: Request) -> str:
    return request.messages[-1][1]


def distribution(masses: dict[str, float], *, text: str | None = None) -> Answer:
    alternatives = tuple((token, math.log(mass)) for token, mass in masses.items())
    said = text or max(masses, key=lambda token: masses[token])
    return Answer(said, ((said, alternatives),), 10, 1)


def obliging(request: Request) -> Reply:
    """Answers whatever is asked, well."""
    text = asked(request)
    if request.parameters.schema is not None:
        return schema_reply(request)
    if "Score: " in text:
        return "It is good.\nScore: 4"
    if request.parameters.top_logprobs and "number from" in text:
        return distribution({"4": 0.6, "5": 0.4})
    if "number from" in text:
        return "4"
    return 0.75


def setup(
    script: Callable[[Request], Reply] | Sequence[Reply] = obliging,
    *,
    dimensions: Sequence[str] = ("consistency",),
    store: VerdictStore | None = None,
    prompt: Prompt | None = None,
    checklist: Checklist | None = CHECKLIST,
    budget: Budget | None = None,
    **options: Any,
) -> tuple[Setup, ScriptedModel]:
    model = ScriptedModel(script, slots=1)
    text = prompt or default_prompt(EXAMPLES)
    made = Setup(
        gateway=Meter(Gateway(VerdictStore(":memory:") if store is None else store, budget)),
        model=model,
        prompt=text,
        layout=layout_of(text, EXAMPLES),
        task="Summarise the document",
        criteria=criteria_for(dimensions),
        options=CompareOptions(**options),
        checklist=checklist,
    )
    return made, model


def rate(name: str, given: Setup, examples: Sequence[Example] = EXAMPLES) -> list[JudgeScore]:
    async def run() -> list[JudgeScore]:
        judge = JUDGES[name](given)
        await judge.prepare()
        return await judge.rate(examples)

    return asyncio.run(run())


@pytest.mark.parametrize("name", JUDGES)
def test_every_judge_gives_one_score_in_the_unit_interval_per_example_replicate_and_dimension(name: str) -> None:
    given, _ = setup(dimensions=("consistency", "fluency"), repeat=2)
    ratings = rate(name, given)
    expected = [(e.id, r, d) for e in EXAMPLES for r in range(2) for d in ("consistency", "fluency")]
    assert [(each.example, each.replicate, each.dimension) for each in ratings] == expected
    assert all(each.status == "ok" and each.score is not None and 0 <= each.score <= 1 for each in ratings)


@pytest.mark.parametrize("name", JUDGES)
def test_an_answer_that_cannot_be_read_is_asked_once_again_and_then_a_status_not_a_score(name: str) -> None:
    def script(request: Request) -> Reply:
        if request.parameters.schema is not None:
            return schema_reply(request)
        if "Summary 1." in asked(request) or any("Summary 1." in text for _, text in request.messages):
            return Answer(
                "Well, it depends.", ((" Well", (("Well", -0.01),)),) if request.parameters.top_logprobs else None
            )
        return obliging(request)

    given, _ = setup(script)
    ratings = {each.example: each for each in rate(name, given)}
    assert ratings["e1"].score is None
    assert ratings["e1"].status == "parse_error"
    assert ratings["e1"].error
    assert all(ratings[name].score is not None for name in ("e0", "e2", "e3"))


@pytest.mark.parametrize("name", JUDGES)
def test_a_call_that_fails_is_a_status_and_is_asked_again_by_the_next_run(name: str) -> None:
    store = VerdictStore(":memory:")

    def failing(request: Request) -> Reply:
        if any("Summary 2." in text for _, text in request.messages):
            return ModelError("HTTP 400: no")
        return obliging(request)

    given, _ = setup(failing, store=store)
    ratings = {each.example: each for each in rate(name, given)}
    assert (ratings["e2"].score, ratings["e2"].status) == (None, "api_error")
    again, model = setup(obliging, store=store)
    assert all(each.score is not None for each in rate(name, again))
    assert model.requests
    assert all("Summary 2." in asked(request) for request in model.requests), "the others come from the store"


@pytest.mark.parametrize("name", JUDGES)
def test_a_second_run_buys_nothing_and_costs_the_same(name: str) -> None:
    store = VerdictStore(":memory:")
    first, _ = setup(store=store)
    ratings = rate(name, first)
    second, model = setup(store=store)
    assert rate(name, second) == ratings
    assert not model.requests
    assert (second.gateway.budget.calls, second.gateway.budget.tokens) == (
        first.gateway.budget.calls,
        first.gateway.budget.tokens,
    )


@pytest.mark.parametrize("name", JUDGES)
def test_the_estimate_is_what_is_bought_and_nothing_when_all_is_there(name: str) -> None:
    store = VerdictStore(":memory:")
    given, model = setup(store=store)
    before = asyncio.run(JUDGES[name](given).estimate(EXAMPLES))
    assert not model.requests
    rate(name, given)
    if name == "checkeval":  # how many questions it will have is not known before they are written
        assert before.calls == 3 + (2 + 2 * MOST_NEW) * len(EXAMPLES)
        assert before.calls > len(model.requests) == 3 + 5 * len(EXAMPLES)
    else:
        assert before.calls == len(model.requests)
    after = asyncio.run(JUDGES[name](given).estimate(EXAMPLES))
    assert after.calls == 0


@pytest.mark.parametrize("name", JUDGES)
def test_all_judges_put_the_example_first_in_the_same_words(name: str) -> None:
    prompt = Prompt("Article:\n{input}\n\nSummary:\n{output}\n\nYou are a careful evaluator.\n\n{question}\n")
    given, model = setup(prompt=prompt)
    rate(name, given, EXAMPLES[:1])
    about = [asked(request) for request in model.requests if "Summary 0." in asked(request)]
    assert about
    shown = about[0][: about[0].index("</", about[0].index("Summary 0."))]
    assert re.match(r"Article:\n<\w+>\n", shown)
    assert all(text.startswith(shown) for text in about)
    assert all(len(request.messages) == 1 for request in model.requests)


@pytest.mark.parametrize("name", JUDGES)
def test_a_cap_ends_a_judge_and_is_not_passed(name: str) -> None:
    given, model = setup(budget=Budget(max_calls=2))
    with pytest.raises(BudgetExceededError):
        rate(name, given)
    assert len(model.requests) == 2


@pytest.mark.parametrize("name", sorted(set(JUDGES) - set(NEEDS_NO_CHECKLIST)))
def test_a_judge_that_needs_questions_says_so_and_names_a_dimension_without_one(name: str) -> None:
    for wrong, said in (
        ({"checklist": None}, "--checklist"),
        (
            {"dimensions": ("consistency", "relevance")},
            r"no question on 'relevance' .*consistency, fluency.*--dimension",
        ),
    ):
        with pytest.raises(InputError, match=said):
            JUDGES[name](setup(**wrong)[0])


@pytest.mark.parametrize("name", NEEDS_NO_CHECKLIST)
def test_a_judge_that_needs_no_checklist_does_without(name: str) -> None:
    given, _ = setup(checklist=None)
    assert all(each.score is not None for each in rate(name, given))


def p_of(request: Request) -> Reply:
    text = asked(request)
    return 0.9 if "facts" in text else 0.4 if "names" in text else 0.2


def test_binary_is_the_weighted_mean_of_p_yes_and_hard_where_asked() -> None:
    soft = rate("binary", setup(p_of)[0])
    hard = rate("binary", setup(p_of, scores="hard")[0])
    assert soft[0].score == pytest.approx((3 * 0.9 + 0.4) / 4, abs=1e-4)
    assert hard[0].score == pytest.approx(3 / 4)


def test_binary_asks_only_the_questions_on_the_dimensions_that_are_compared() -> None:
    given, model = setup(p_of)
    rate("binary", given)
    assert not any("words" in asked(request) for request in model.requests)


def test_overall_without_questions_of_its_own_is_scored_over_all() -> None:
    (rating,) = rate("binary", setup(p_of, dimensions=("overall",))[0], EXAMPLES[:1])
    assert rating.score == pytest.approx((3 * 0.9 + 0.4 + 0.2) / 5, abs=1e-4)


def test_checkeval_asks_its_seeds_and_what_is_written_from_them_and_passes_its_filter() -> None:
    given, model = setup(dimensions=("consistency",))
    judge = CheckEval(given)

    async def run() -> list[JudgeScore]:
        await judge.prepare()
        return await judge.rate(EXAMPLES[:1])

    (rating,) = asyncio.run(run())
    writing = [asked(request) for request in model.requests if request.parameters.schema is not None]
    assert len(writing) == 3
    assert all("1. Are the facts right?\n2. Are the names right?\n" in text for text in writing)
    assert "3. Are the dates right?\n4. Is the place right?\n5. Are the sums right?\n6. Are the first" in writing[2]
    texts = [each.text for each in judge.written]
    assert texts == ["Are the dates right?", "Are the sums right?", "Are the first names right?"], "seeds stay"
    assert len(model.requests) == 3 + 2 + 3
    assert rating.score == 1.0, "hard answers"


def test_checkeval_with_nothing_new_is_its_seeds_and_is_not_filtered() -> None:
    def script(request: Request) -> Reply:
        return json.dumps({"questions": ["ARE the facts right?"]}) if request.parameters.schema else p_of(request)

    given, model = setup(script)
    assert rate("checkeval", given)[0].score == 0.5
    assert sum(request.parameters.schema is not None for request in model.requests) == 2


def test_checkeval_whose_questions_cannot_be_read_is_no_judge() -> None:
    with pytest.raises(ParseError):
        rate("checkeval", setup(lambda request: "no" if request.parameters.schema else 0.5)[0])

    def beyond(request: Request) -> Reply:
        return schema_reply(request).replace('"number": 4', '"number": 40') if request.parameters.schema else 0.5

    with pytest.raises(ParseError, match="there is no question 40"):
        rate("checkeval", setup(beyond)[0])


def test_checkeval_seeds_is_the_share_of_yes_and_buys_nothing_beside_binary() -> None:
    store = VerdictStore(":memory:")
    rate("binary", setup(p_of, store=store)[0])
    given, model = setup(p_of, store=store)
    assert rate("checkeval_seeds", given)[0].score == 0.5
    assert not model.requests
    assert given.gateway.budget.calls == 8, "what it would have cost by itself"


def test_unieval_asks_one_boolean_question_a_dimension() -> None:
    given, model = setup(lambda request: 0.3, dimensions=("coherence", "wit"))
    ratings = rate("unieval", given, EXAMPLES[:1])
    assert [each.score for each in ratings] == [pytest.approx(0.3, abs=1e-3)] * 2
    assert "Is the output coherent" in asked(model.requests[0])
    assert "Is the wit of the output good?" in asked(model.requests[1])


def test_the_users_words_take_the_place_of_ours() -> None:
    (criterion,) = criteria_for(["coherence"], "It must rhyme. ")
    assert criterion.description == "It must rhyme"
    assert criterion.question == "Is the output good as to its coherence: It must rhyme?"


def test_random_k_draws_by_seed_and_ids_alone() -> None:
    many = [Question(id=f"q{n}", text=f"Question {n}?", dimension="consistency") for n in range(20)]

    def drawn(questions: list[Question], **options: Any) -> set[str]:
        given, _ = setup(**options)
        pool = Checklist(questions=tuple(questions))
        judge = JUDGES["random_k"](replace(given, candidates=pool))
        return {question.id for question in judge.evaluator.checklist.questions}  # type: ignore[attr-defined]

    assert len(drawn(many)) == 5
    assert drawn(many) == drawn(many[::-1])
    assert drawn(many) != drawn(many, seed=7)
    assert len(drawn(many, k=50)) == 20


def test_random_k_draws_k_in_all_and_some_of_each_dimension() -> None:
    dimensions = ("coherence", "consistency", "fluency", "relevance")
    many = [Question(id=f"{name}{n}", text=f"{name} {n}?", dimension=name) for n in range(9) for name in dimensions]
    given, _ = setup(k=6)
    given = replace(given, candidates=Checklist(questions=tuple(many)), criteria=criteria_for(dimensions))
    drawn = JUDGES["random_k"](given).evaluator.checklist.questions  # type: ignore[attr-defined]
    assert len(drawn) == 6
    assert sorted(Counter(each.dimension for each in drawn).values()) == [1, 1, 2, 2]
    with pytest.raises(InputError, match=r"draws 3 questions in all, and each of the 4 dimensions needs one"):
        JUDGES["random_k"](replace(given, options=given.options.model_copy(update={"k": 3})))


def test_all_candidates_asks_the_candidates_and_not_the_checklist() -> None:
    given, model = setup(lambda request: 0.5)
    pool = Checklist(questions=(Question(id="c", text="A candidate?", dimension="consistency"),))
    rate("all_candidates", replace(given, candidates=pool))
    assert all("A candidate?" in asked(request) for request in model.requests)


def test_direct_reads_the_number_it_is_told() -> None:
    ratings = rate("direct", setup(["1", "2", " **5**.", "Score: 3/5"])[0])
    assert [each.score for each in ratings] == [0, 0.25, 1, 0.5]


def test_direct_is_told_the_task_and_what_the_dimension_means() -> None:
    given, model = setup()
    rate("direct", given, EXAMPLES[:1])
    text = asked(model.requests[0])
    assert "Summarise the document" in text
    assert "every statement of the output is supported by the input" in text
    assert "from 1 to 5" in text
    assert model.requests[0].parameters.top_logprobs == 0


@pytest.mark.parametrize("text", ["4 or 5", "four", "0", "6", "4/10", "", "I give it 4 because it is good."])
def test_a_number_that_is_not_clear_is_none(text: str) -> None:
    with pytest.raises(ValueError, match=r"no score|no whole number"):
        said_number(Answer(text), 1, 5, at_end=False)


def test_cot_takes_the_last_score_it_says() -> None:
    assert said_number(Answer("A Score: 2 would be harsh.\nScore: 4/5"), 1, 5, at_end=True) == 4
    assert said_number(Answer("**Score:** 3"), 1, 5, at_end=True) == 3
    assert said_number(Answer("Score: 4.0."), 1, 5, at_end=True) == 4
    for unclear in (
        "It is good, 4 of 5.",
        "Score: 2 at first.\nScore: 3.5",
        "Score: 3 or 4",
        "Score: 3-4",
        "score: 2 to 3",
    ):
        with pytest.raises(ValueError, match="has no score where it is due"):
            said_number(Answer(unclear), 1, 5, at_end=True)
    with pytest.raises(ValueError, match="cut off before its score"):
        said_number(Answer("It is", finish="length"), 1, 5, at_end=True)


def test_cot_may_think_for_as_long_as_it_is_allowed_to() -> None:
    given, model = setup(cot_tokens=77)
    rate("cot", given, EXAMPLES[:1])
    assert model.requests[0].parameters.max_tokens == 77


def test_geval_writes_its_steps_once_a_dimension_and_rates_by_the_expected_number() -> None:
    given, model = setup(dimensions=("consistency", "fluency"))
    ratings = rate("geval", given)
    assert ratings[0].score == pytest.approx((0.6 * 3 + 0.4 * 4) / 4)
    writing = [request for request in model.requests if request.parameters.schema is not None]
    assert len(writing) == 2
    assert len(model.requests) == 2 + 2 * len(EXAMPLES)
    assert "1. Read the document.\n2. Compare every claim." in asked(model.requests[-1])


def test_unit_tests_rate_each_question_and_weigh_the_ratings() -> None:
    def script(request: Request) -> Reply:
        return distribution({"5": 1.0} if "facts" in asked(request) else {"1": 0.5, "3": 0.5})

    (rating,) = rate("unit_tests", setup(script)[0], EXAMPLES[:1])
    assert rating.score == pytest.approx((3 * 1.0 + 0.25) / 4)


@pytest.mark.parametrize("name", ["geval", "unit_tests"])
def test_without_log_probabilities_the_numbers_that_are_said_are_taken(name: str) -> None:
    def script(request: Request) -> Reply:
        return STEPS if request.parameters.schema is not None else "2"

    ratings = rate(name, setup(script)[0])
    assert {each.score for each in ratings} == {0.25}


def test_without_log_probabilities_geval_takes_the_mean_of_samples() -> None:
    said = iter("1234" * 4)

    def script(request: Request) -> Reply:
        return STEPS if request.parameters.schema is not None else next(said)

    given, model = setup(script, p_yes="sampled", samples=4, repeat=2)
    ratings = rate("geval", given, EXAMPLES[:1])
    assert [each.score for each in ratings] == [pytest.approx(1.5 / 4)] * 2
    rated = [request for request in model.requests if request.parameters.schema is None]
    assert len({request.key for request in rated}) == 8
    assert {request.parameters.temperature for request in rated} == {1.0}


def test_an_endpoint_that_is_down_is_not_taken_for_one_without_log_probabilities() -> None:
    with pytest.raises(ModelError, match="refused"):
        rate("unit_tests", setup(lambda request: ModelError("refused", fatal=True))[0])


def test_a_panel_of_one_model_differs_in_its_seeds_and_decides_by_majority() -> None:
    votes = {1042: "2", 2042: "4", 3042: "4"}
    given, model = setup(lambda request: votes[request.parameters.seed or 0])
    assert [each.score for each in rate("poll", given)] == [0.75] * 4
    assert {request.parameters.temperature for request in model.requests} == {1.0}
    mean, _ = setup(lambda request: votes[request.parameters.seed or 0], panel_vote="mean")
    assert rate("poll", mean)[0].score == pytest.approx((0.25 + 0.75 + 0.75) / 3)


def test_a_tied_vote_is_the_mean_of_the_tied_numbers() -> None:
    votes = {1042: "1", 2042: "2", 3042: "5"}
    given, _ = setup(lambda request: votes[request.parameters.seed or 0])
    assert rate("poll", given)[0].score == pytest.approx(5 / 12)


def test_a_panel_may_differ_in_its_wording() -> None:
    given, model = setup(panel_by="prompts")
    rate("poll", given, EXAMPLES[:1])
    assert len({asked(request) for request in model.requests}) == 3
    assert {request.parameters.temperature for request in model.requests} == {0.0}
    with pytest.raises(InputError, match="there are 3 wordings"):
        JUDGES["poll"](setup(panel_by="prompts", panel_size=4)[0])


def test_a_panel_of_models_asks_each_once_and_a_missing_vote_is_no_score() -> None:
    given, own = setup()
    good = ScriptedModel(lambda request: "5", name="a/good", slots=1)
    bad = ScriptedModel(lambda request: "no idea", name="a/bad", slots=1)
    ratings = rate("poll", replace(given, panel=(good, bad)))
    assert {(each.score, each.status) for each in ratings} == {(None, "parse_error")}
    assert len(good.requests) == len(EXAMPLES)
    assert not own.requests


def test_a_prompt_with_guidance_before_the_example_is_not_shared() -> None:
    ours = layout_of(default_prompt(EXAMPLES), EXAMPLES)
    assert layout_of(Prompt("You judge summaries. " * 5 + "{input} {output} {question}"), EXAMPLES) == ours
    assert layout_of(Prompt("Judge."), EXAMPLES) == ours
    assert layout_of(Prompt("{question}\n{input}\n{output}"), EXAMPLES) == ours
    assert ours.text == "Input:\n{input}\n\nOutput:\n{output}\n\n{question}\n"


def test_the_meter_counts_an_answer_once_and_the_common_ledger_what_was_paid() -> None:
    common = Gateway(VerdictStore(":memory:"))
    given, _ = setup()
    for expected_paid in (8, 8):
        meter = Meter(common)
        rate("binary", replace(given, gateway=meter))
        assert meter.budget.calls == 8
        assert common.budget.calls == expected_paid
    assert common.budget.cached_calls >= 8


def test_names_are_checked() -> None:
    assert check_names(["binary", " random-k"]) == ["binary", "random_k"]
    with pytest.raises(InputError, match=r"no judge 'gevall'.*Did you mean 'geval'"):
        check_names(["gevall"])
    with pytest.raises(InputError, match="named twice"):
        check_names(["direct", "direct"])
    with pytest.raises(InputError, match="at least one"):
        check_names([])


def test_the_ten_point_scale_is_read_by_every_judge_of_numbers() -> None:
    said = rate("direct", setup(["10", "1", "Score: 7/10", "10/10"], points=10)[0])
    assert [each.score for each in said] == [1.0, 0.0, pytest.approx(6 / 9), 1.0]
    assert CompareOptions(points=10).tolerance == 2
