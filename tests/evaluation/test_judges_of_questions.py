"""Judges that ask yes/no questions: the checklist's, written ones, drawn ones."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from askance.agents.agent import ParseError
from askance.evaluation.compare.judges import JUDGES
from askance.evaluation.compare.protocol import JudgeScore, criteria_for
from askance.evaluation.compare.two_steps import CheckEval
from askance.memory.verdict_store import VerdictStore
from askance.models.base import Request
from askance.prompts.checklist import Checklist, Question
from askance.prompts.errors import InputError
from askance.testing import Reply
from tests.said import naming, says

from .conftest import (
    CHECKLIST,
    EXAMPLES,
    asked,
    p_of,
    rate,
    schema_reply,
    setup,
)


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


def test_overall_that_lacks_an_answer_elsewhere_says_so_beside_a_question_of_its_own_that_weighs_nothing() -> None:
    own = Question(id="whole", text="Is the whole right?", dimension="overall", weight=0)
    checklist = CHECKLIST.model_copy(update={"questions": (*CHECKLIST.questions, own)})

    def script(request: Request) -> Reply:
        return "what?" if "names" in asked(request) else 0.9

    (rating,) = rate("binary", setup(script, dimensions=("overall",), checklist=checklist)[0], EXAMPLES[:1])
    assert rating.score is None and rating.status != "ok" and rating.error


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

    with pytest.raises(ParseError, match=naming("question 40")):
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
    for place, each in enumerate(given.criteria):
        assert each.question in asked(model.requests[place])
    assert "coherent" in given.criteria[0].question and "wit" in given.criteria[1].question


def test_the_users_words_take_the_place_of_ours() -> None:
    (criterion,) = criteria_for(["coherence"], "It must rhyme. ")
    assert criterion.description == "It must rhyme"
    assert says(criterion.question, "coherence", "It must rhyme?")


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
    assert len(drawn(many, k=20)) == 20
    assert len(drawn(many[:3])) == 3, "the default is no more than there are"
    with pytest.raises(InputError, match=naming("21 questions", "only 20")):
        drawn(many, k=21)


def test_random_k_draws_k_in_all_and_some_of_each_dimension() -> None:
    dimensions = ("coherence", "consistency", "fluency", "relevance")
    many = [Question(id=f"{name}{n}", text=f"{name} {n}?", dimension=name) for n in range(9) for name in dimensions]
    given, _ = setup(k=6)
    given = replace(given, candidates=Checklist(questions=tuple(many)), criteria=criteria_for(dimensions))
    drawn = JUDGES["random_k"](given).evaluator.checklist.questions  # type: ignore[attr-defined]
    assert len(drawn) == 6
    assert sorted(Counter(each.dimension for each in drawn).values()) == [1, 1, 2, 2]
    with pytest.raises(InputError, match=naming("3 questions", "4 dimensions")):
        JUDGES["random_k"](replace(given, options=given.options.model_copy(update={"k": 3})))


def test_auto_rubric_leaves_what_repeats_another_and_counts_all_alike() -> None:
    texts = [
        "Does it greet the reader?",
        "Does it greet the reader?",
        "Are all figures right?",
        "Does it end politely?",
    ]
    pool = [
        Question(id=f"q{place}", text=text, dimension="consistency", weight=place + 1.0)
        for place, text in enumerate(texts)
    ]
    given, _ = setup(embedder="words")
    judge = JUDGES["auto_rubric"](replace(given, candidates=Checklist(questions=tuple(pool))))
    kept = judge.evaluator.checklist.questions  # type: ignore[attr-defined]
    assert [each.id for each in kept] == ["q0", "q2", "q3"]
    assert {each.weight for each in kept} == {1.0}


def test_all_candidates_asks_the_candidates_and_not_the_checklist() -> None:
    given, model = setup(lambda request: 0.5)
    pool = Checklist(questions=(Question(id="c", text="A candidate?", dimension="consistency"),))
    rate("all_candidates", replace(given, candidates=pool))
    assert all("A candidate?" in asked(request) for request in model.requests)
