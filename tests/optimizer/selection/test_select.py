"""Selection from end to end, in Python."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from askance import select
from askance.models.base import Answer, ModelError
from askance.optimizer.selection.analysis import shared_tokens
from askance.optimizer.selection.select import prepare
from askance.optimizer.selection.selected import Selection
from askance.prompts.errors import BudgetExceededError, CoverageError, InputError
from askance.prompts.examples import Example
from askance.testing import ScriptedModel
from tests.said import naming, says
from tests.worlds import share

pytestmark = pytest.mark.usefixtures("sandbox")
NO_IDEA = Answer("no idea", (("no", (("no", -0.1),)), ("idea", (("idea", -0.1),))))
FAST: dict[str, Any] = {"halves": 2, "k": 4, "embedder": "words", "ranking_resamples": 2}


def choose(facts: Any, model: Any = None, *, human: bool = False, **options: Any) -> Selection:
    given = {"candidates": facts.candidates, "no_cache": True} | FAST | options
    return select(facts.rows(human=human), model=model or facts.model(), **given)


def test_answers_to_candidates_are_no_rating_of_the_whole(facts: Any) -> None:
    rows = facts.rows(human=True)
    first = facts.candidates.questions[0].id
    assert first not in facts.candidates.dimensions
    answered = [row | {"human": row["human"] | {first: "yes"}} for row in rows]
    model = facts.model()
    plain, told = (prepare(given, model, facts.candidates, None, "", (), FAST) for given in (rows, answered))
    assert [each.human for each in told.inputs.examples] == [each.human for each in plain.inputs.examples]


def test_one_question_about_each_fact_is_kept_with_weight_1(facts: Any) -> None:
    found = choose(facts, choice="joint")
    assert sorted(question.dimension for question in found.checklist.questions) == ["clear", "polite", "short", "true"]
    assert all(question.weight == 1 for question in found.checklist.questions)
    assert found.checklist.task == "Answer the letter."
    curve = found.curves["joint"]
    assert [each.k for each in curve] == list(range(1, 9))
    assert curve[3].information_share == pytest.approx(1.0, abs=0.25)
    assert 0 < curve[0].information_share < curve[1].information_share < curve[3].information_share
    assert curve[3].cost_share == pytest.approx(0.5, abs=0.02)
    assert curve[7].cost_share == 1.0
    assert curve[0].correlation is None, "nobody gave human scores"


def test_people_are_used_where_they_rated_and_the_correlation_is_reported(facts: Any) -> None:
    model = facts.model()
    found = choose(facts, model, human=True)
    assert not any("on the whole" in request.messages[-1][1] for request in model.requests)
    assert says(found.rating_source, "people", "overall", "5 groups")
    curve = found.curves[found.method]
    assert curve[-1].correlation_share == pytest.approx(1.0)
    assert curve[0].correlation < curve[3].correlation
    assert found.agreement["all"].spearman.value > 0.8
    share = curve[3].correlation_share
    assert share is not None and says("\n".join(found.sentences()), "4 questions keep", "correlation of all 8")
    assert any(f"{100 * share:.0f}%" in each or f"{share:.0%}" in each for each in found.sentences())


def test_where_no_candidates_agree_with_people_no_share_of_that_is_said(facts: Any) -> None:
    rows = [row | {"human": {"overall": share("noise 2", row["id"])}} for row in facts.rows()]
    found = select(rows, model=facts.model(), candidates=facts.candidates, no_cache=True, **FAST)
    every = found.agreement["all"].spearman
    assert every.value > 0 > every.low
    assert found.curves["joint"][-1].correlation > 0, "a share could be computed"
    assert {each.correlation_share for curve in found.curves.values() for each in curve} == {None}
    said = " ".join(found.sentences())
    assert "% of the correlation" not in said
    assert says(said, "all 8 candidates", "not clearly", f"{every.value:.3f}")


def test_weights_that_differ_are_set_aside_and_that_is_said(facts: Any) -> None:
    said = "The weights of the candidates were set aside, here and in the checklist that is kept: every question counts the same."
    assert said not in choose(facts, human=True).sentences(), "all weigh 2"
    first, *others = facts.candidates.questions
    facts.candidates = facts.candidates.model_copy(
        update={"questions": (first.model_copy(update={"weight": 5.0}), *others)}
    )
    found = choose(facts, human=True)
    assert said in found.sentences() and all(each.weight == 1 for each in found.checklist.questions)


def test_the_judge_can_be_asked_although_people_rated(facts: Any) -> None:
    found = choose(facts, human=True, rated_by="judge")
    assert says(found.rating_source, "the judge", "1 to 5", "logprob")
    assert found.curves["joint"][0].correlation is not None, "people are what it is compared with"


def test_everything_is_in_the_report_and_is_json(facts: Any) -> None:
    report = json.loads(json.dumps(choose(facts).to_dict(), allow_nan=False))
    assert set(report) >= {"kept", "questions", "curves", "convergence", "pool", "ratings", "coverage", "settings"}
    assert report["settings"]["seed"] == 42
    assert report["roles"]["evaluator"]["calls"] == 80 * 8
    assert report["roles"]["rater"]["calls"] == 80
    assert len(report["sample"]["ids"]) == 80
    question = report["questions"][0]
    assert question["bits"] == pytest.approx(question["eig"] - question["bias"])
    assert question["bits_per_token"] == pytest.approx(question["bits"] / question["tokens"])


def test_that_no_question_tells_anything_by_itself_is_no_word_on_all_together(facts: Any) -> None:
    found = choose(facts)
    assert not any("by itself" in each for each in found.sentences())
    flat = [replace(each, bits=-0.001) for each in found.questions]
    together = found.curves[found.method][found.k - 1].held_out
    assert together > 0
    said = " ".join(replace(found, questions=flat).sentences())
    assert says(said, f"{together:.3f} bits", "held-out halves", "may be chance") and "do not rely" not in said
    curve = [replace(each, held_out=-0.01) for each in found.curves[found.method]]
    said = " ".join(replace(found, questions=flat, curves={found.method: curve}).sentences())
    assert says(said, "No candidate", "beyond chance", "do not rely")


def test_the_same_seed_gives_the_same_selection(facts: Any) -> None:
    assert choose(facts).to_dict() == choose(facts).to_dict()


def test_missing_answers_and_ratings_are_left_out_and_counted(facts: Any) -> None:
    def script(request: Any) -> Any:
        text = request.messages[-1][1]
        if "e003" in text and "clear (way 1)" in text:
            return ModelError("down")
        if "e005" in text and "on the whole" in text:
            return NO_IDEA
        return facts.reply(request)

    found = choose(facts, facts.model(script), retries=0)
    reports = {each.id: each for each in found.questions}
    assert (reports["clear-1"].examples, reports["clear-1"].missing) == (78, 1)
    assert (reports["true-2"].examples, reports["true-2"].missing) == (79, 0)
    assert found.rated == 79
    assert found.rating_counts["parse_error"] == 1
    assert found.coverage.api_errors == 1
    assert says("\n".join(found.sentences()), "1 of 640 answers", "missing")
    assert says("\n".join(found.sentences()), "1 examples", "no rating")
    assert len(found.problems) == 2


def test_no_rating_at_all_is_an_error_and_no_checklist(facts: Any) -> None:
    def script(request: Any) -> Any:
        return NO_IDEA if "on the whole" in request.messages[-1][1] else facts.reply(request)

    with pytest.raises(CoverageError, match=naming("no question", "no idea")):
        choose(facts, facts.model(script))


@pytest.mark.parametrize("levels", [3, 5, 10])
def test_answers_on_a_scale(facts: Any, levels: int) -> None:
    found = choose(facts, answer_levels=levels, choice="joint")
    assert sorted(question.dimension for question in found.checklist.questions) == ["clear", "polite", "short", "true"]


def test_one_reply_fills_the_questionnaire_and_the_rating(facts: Any) -> None:
    model = facts.model()
    found = choose(facts, model, filling="together", choice="joint")
    assert len(model.requests) == 80, "a call an example"
    shown = model.requests[0].messages[-1][1]
    assert all(f"[{each.id}] Question: {each.text}" in shown for each in facts.candidates.questions)
    assert '"overall_rating"' in shown and "from 1 (very poor) to 5 (excellent)" in shown
    assert list(model.requests[0].parameters.schema["properties"])[-1] == "overall_rating", "after the answers"
    assert sorted(question.dimension for question in found.checklist.questions) == ["clear", "polite", "short", "true"]
    assert says(found.rating_source, "the judge", "1 to 5", "logprob")
    apart = choose(facts, choice="joint")
    assert [each.id for each in found.questions if each.kept] == [each.id for each in apart.questions if each.kept]
    assert found.coverage.answered == apart.coverage.answered == 80 * 8
    assert found.rating_counts == apart.rating_counts


def test_rounds_of_filling_are_averaged_and_the_estimate_is_exact(facts: Any) -> None:
    model = facts.model()
    rounds: dict[str, Any] = {"filling": "together", "repeat": 2, "temperature": 1.0, "p_yes": "hard", "sample": 20}
    job = prepare(facts.rows(), model, facts.candidates, None, "", (), FAST | rounds | {"no_cache": True})
    assert job.estimate().calls == 40
    found = choose(facts, model, **rounds)
    assert len(model.requests) == 40 and {request.parameters.temperature for request in model.requests} == {1.0}
    assert says(found.rating_source, "sampled")


def test_a_reply_without_a_rating_is_asked_for_again_and_then_missing(facts: Any) -> None:
    def script(request: Any) -> Any:
        reply = facts.fill(request)
        if "[e005]" not in request.messages[0][1]:
            return reply
        return reply._replace(text=reply.text.replace("overall_rating", "score"))

    model = facts.model(script)
    found = choose(facts, model, filling="together", retries=0)
    assert len(model.requests) == 81, "one is asked again"
    assert found.rated == 79 and found.rating_counts["parse_error"] == 1
    assert says("\n".join(found.problems), "overall_rating", "whole number", "1 to 5")


def test_filling_together_takes_questions_that_see_the_same(facts: Any) -> None:
    first, *others = facts.candidates.questions
    alone = first.model_copy(update={"sees": "output"})
    facts.candidates = facts.candidates.model_copy(update={"questions": (alone, *others)})
    model = facts.model()
    with pytest.raises(InputError, match=naming("see the same", "all", "output")):
        choose(facts, model, filling="together")
    assert not model.requests


def test_a_judge_that_always_says_yes_is_told_apart_by_its_median(facts: Any) -> None:
    def script(request: Any) -> Any:
        reply = facts.reply(request)
        return 0.97 + 0.02 * reply if isinstance(reply, float) else reply

    hard = choose(facts, facts.model(script), answers="hard")
    assert all(each.bits == pytest.approx(0, abs=1e-9) for each in hard.questions)
    assert any("--answers split" in each for each in hard.sentences())
    assert says("\n".join(hard.sentences()), "do not rely")
    split = choose(facts, facts.model(script), answers="split", choice="joint")
    assert {question.dimension for question in split.checklist.questions} == {"clear", "polite", "short", "true"}
    assert says("\n".join(split.sentences()), "same answer everywhere")
    assert not any("--answers split" in each for each in split.sentences()), "they are split"


def test_the_estimate_example_by_example_asks_for_ratings_given_answers(facts: Any) -> None:
    model = facts.model()
    found = choose(facts, model, estimate="per-example", sample=20)
    assert len(model.requests) == 20 * 8 + 20 + 20 * 8 * 2
    assert all(each.bias == 0 for each in found.questions)
    assert all(each.examples == 20 for each in found.questions)


def test_candidates_are_proposed_by_a_model_of_their_own(facts: Any) -> None:
    judge, writer = facts.model(), facts.model(name="facts/writer")
    found = choose(facts, judge, candidates=None, writer=writer, same_question=1.0, task="Answer the letter.")
    assert found.models == {"judge": "facts/judge", "writer": "facts/writer"}
    assert found.pool is not None and found.pool.settled
    assert len(found.candidates.questions) == 8
    assert all(request.parameters.schema is not None for request in writer.requests)
    assert not any(request.parameters.schema is not None for request in judge.requests)
    assert says("\n".join(found.sentences()), "5 rounds", "until hardly anything")


def test_information_per_token_prefers_the_short_question(facts: Any) -> None:
    long = [
        question.model_copy(update={"text": question.text + " Think about it for a good while." * 6})
        if question.id.endswith("-1")
        else question
        for question in facts.candidates.questions
    ]
    candidates = facts.candidates.model_copy(update={"questions": tuple(long)})
    found = choose(facts, candidates=candidates, per_token=True, choice="joint")
    assert {question.id for question in found.checklist.questions} == {
        f"{fact}-2" for fact in ("clear", "short", "polite", "true")
    }


def test_a_question_asked_of_the_output_alone_costs_no_more_than_that(facts: Any) -> None:
    short = {each.id for each in facts.candidates.questions if each.id.endswith("-1")}
    questions = tuple(
        each.model_copy(update={"sees": "output"}) if each.id in short else each for each in facts.candidates.questions
    )
    candidates = facts.candidates.model_copy(update={"questions": questions})
    rows = [
        row | {"input": row["input"] + " and so on" * 400, "output": f"Reply [{row['id']}]."} for row in facts.rows()
    ]
    inputs = prepare(rows, facts.model(), candidates, None, "", (), FAST).inputs
    shared = shared_tokens(inputs, candidates)
    assert shared["output"] < shared["all"] / 5
    found = select(rows, model=facts.model(), candidates=candidates, **FAST | {"choice": "joint", "no_cache": True})
    curve = found.curves["joint"]
    until = [0.0, *(each.cost_share for each in curve)]
    costs = {each.question: after - before for each, before, after in zip(curve, until, until[1:], strict=False)}
    assert max(costs[name] for name in short) < min(costs[name] for name in costs.keys() - short) / 4
    assert sum(costs.values()) == pytest.approx(1.0)


def test_it_is_paid_once_and_goes_on_after_a_cap(facts: Any) -> None:
    model = facts.model()
    with pytest.raises(BudgetExceededError):
        choose(facts, model, no_cache=False, call_budget=100)
    assert len(model.requests) == 100
    choose(facts, model, no_cache=False)
    assert len(model.requests) == 80 * 9
    choose(facts, model, no_cache=False, k=2, choice="top", answers="hard")
    assert len(model.requests) == 80 * 9


def test_the_estimate_is_exact_with_candidates_and_a_bound_without(facts: Any) -> None:
    model = facts.model()
    rows = facts.rows()
    job = prepare(rows, model, facts.candidates, None, "", (), FAST)
    exact = job.estimate()
    assert (exact.calls, exact.verdicts, job.exact) == (80 * 9, 80 * 8, True)
    job = prepare(rows, model, None, None, "", (), {"max_candidates": 10, "max_rounds": 6, **FAST})
    most = job.estimate()
    assert not job.exact
    assert model.requests == []
    found = choose(facts, model, candidates=None, max_candidates=10, max_rounds=6, same_question=1.0)
    assert found.budget.calls <= most.calls
    assert found.budget.tokens <= most.tokens


def test_a_clustered_sample(facts: Any) -> None:
    found = choose(facts, sample=40, sampling="clustered", clusters=3)
    assert found.examples == len(set(found.sample)) == 40


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 9}, "there are only 8 candidates"),
        ({"rated_by": "people"}, "no example has human scores"),
        ({"weights": "w.json"}, "chosen questions all weigh 1"),
        ({"answer_levels": 4}, "answer_levels"),
        ({"answer_levels": 3, "answers": "split"}, "split is for yes/no answers"),
        ({"estimate": "per-example", "rated_by": "people"}, "needs the judge's ratings"),
        ({"filling": "together", "rated_by": "people"}, "judge's own rating"),
        ({"filling": "together", "answer_levels": 3}, "yes/no answers and one rating"),
        ({"candidates": None, "max_candidates": 3}, "--max-candidates 3 would leave too few"),
        ({"smaple": 10}, "Did you mean 'sample'?"),
    ],
)
def test_what_does_not_fit_is_said_before_a_call(facts: Any, options: dict[str, Any], message: str) -> None:
    model = facts.model()
    with pytest.raises(InputError, match=message.replace("?", r"\?")):
        choose(facts, model, **options)
    assert isinstance(model, ScriptedModel) and not model.requests


def test_examples_of_one_document_stay_together(facts: Any) -> None:
    rows = [
        Example(**row, metadata={"document": f"d{place // 10}"}) for place, row in enumerate(facts.rows(human=True))
    ]
    found = select(rows, model=facts.model(), candidates=facts.candidates, no_cache=True, **FAST)
    assert found.curves["joint"][0].held_out is not None
