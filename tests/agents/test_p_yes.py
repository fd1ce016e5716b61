"""Where the probability of yes comes from: log-probabilities, samples, or the answer itself."""

from __future__ import annotations

import json
from math import log
from pathlib import Path

import pytest

from askance.agents.evaluator import Evaluator
from askance.agents.judging import Judging
from askance.memory.verdict_store import VerdictStore
from askance.models.base import Answer, ModelError, Request
from askance.models.gateway import Gateway
from askance.prompts.checklist import Checklist
from askance.testing import Reply, ScriptedModel, as_answer
from tests.said import says

from .conftest import (
    CHECKLIST,
    EXAMPLES,
    PROMPT,
    QUESTIONS,
    QUICK,
    Lab,
    asked,
    by_logprob,
)


async def test_auto_takes_log_probabilities_where_there_are_some() -> None:
    lab = Lab(by_logprob)
    verdicts = await lab.judge(Judging())
    assert {verdict.p_yes_from for verdict in verdicts} == {"logprob"}
    assert lab.calls == 12


@pytest.mark.parametrize(("samples", "wanted", "calls"), [(1, "hard", 3), (2, "sampled", 6)])
async def test_auto_takes_what_it_can_get_otherwise(samples: int, wanted: str, calls: int) -> None:
    lab = Lab(lambda request: "Yes")
    verdicts = await lab.judge(Judging(samples=samples), EXAMPLES[:1])
    assert {verdict.p_yes_from for verdict in verdicts} == {wanted}
    assert lab.calls == calls + 1


async def test_provenance_is_settled_once_and_never_switched() -> None:
    """From the second answer on the endpoint gives no log-probabilities: these verdicts fail, and say why."""
    lab = Lab([0.9, *["Yes"] * 4], slots=1)
    verdicts = await lab.judge(Judging(), EXAMPLES[:1])
    assert [each.status for each in verdicts] == ["ok", "api_error", "api_error"]
    assert "without log-probabilities" in (verdicts[1].error or "")
    lab.model = ScriptedModel(lambda request: 0.9)
    later = await lab.evaluator(Judging()).judge(EXAMPLES[1:2])
    assert {each.p_yes_from for each in later} == {"logprob"}


async def test_provenance_that_is_hard_stays_hard_when_log_probabilities_turn_up() -> None:
    lab = Lab(lambda request: "Yes")
    await lab.judge(Judging(), EXAMPLES[:1])
    lab.model = ScriptedModel(lambda request: as_answer("No", request))
    verdicts = await lab.judge(Judging(), EXAMPLES[1:2])
    assert {(each.p_yes_from, each.answer) for each in verdicts} == {("hard", False)}


async def test_an_empty_first_reply_settles_nothing() -> None:
    """Else one empty reply would make a whole evaluation hard, for ever."""
    replies = iter([Answer(""), Answer("\n")])
    model = ScriptedModel(lambda request: next(replies, None) or by_logprob(request))
    store, said = VerdictStore(":memory:"), []
    for _ in "12":
        gateway = Gateway(store, retry=QUICK)
        gateway.on_notice = said.append
        verdicts = await Evaluator(gateway, model, PROMPT, CHECKLIST).judge(EXAMPLES)
        assert {each.p_yes_from for each in verdicts} == {"logprob"}
        assert all(each.status == "ok" for each in verdicts)
    assert len(store) == len(verdicts)
    assert said == []


async def test_an_endpoint_without_log_probabilities_is_named_once() -> None:
    gateway, said = Gateway(), []
    gateway.on_notice = said.append
    for _ in "12":
        await Evaluator(gateway, ScriptedModel(lambda _: "yes"), PROMPT, CHECKLIST).judge(EXAMPLES)
    (notice,) = said
    assert says(notice, "scripted/model", "no log-probabilities", 1, 0)


async def test_an_answer_that_lacks_its_log_probabilities_is_asked_for_again() -> None:
    """What comes without them now and then is not kept, so that it is asked for again on resume too."""
    flaky = {"left": 3}

    def script(request: Request) -> Reply:
        if len(model.requests) > 1 and flaky["left"]:
            flaky["left"] -= 1
            return "Yes"
        return by_logprob(request)

    model, store = ScriptedModel(script, slots=1), VerdictStore(":memory:")
    first = await Evaluator(Gateway(store), model, PROMPT, CHECKLIST).judge(EXAMPLES)
    assert [each.status for each in first].count("api_error") == 1
    second = await Evaluator(Gateway(store), model, PROMPT, CHECKLIST).judge(EXAMPLES)
    assert [each.status for each in second] == ["ok"] * 12
    assert {each.p_yes_from for each in second} == {"logprob"}


async def test_what_an_earlier_version_kept_of_an_empty_reply_is_asked_again(tmp_path: Path) -> None:
    store = VerdictStore(tmp_path / "verdicts.db")
    healthy = ScriptedModel(by_logprob)
    await Evaluator(Gateway(), healthy, PROMPT, CHECKLIST).judge(EXAMPLES)
    for request in healthy.requests[::2]:
        store.put(request.key, Answer(""))
    verdicts = await Evaluator(Gateway(store), healthy, PROMPT, CHECKLIST).judge(EXAMPLES)
    assert [each.status for each in verdicts] == ["ok"] * 12
    assert len(store) == 12


async def test_a_first_example_that_cannot_be_judged_does_not_end_the_run() -> None:
    def script(request: Request) -> Reply:
        return ModelError("too long") if asked(request)[0] == "e0" else by_logprob(request)

    verdicts = await Lab(script).judge(Judging())
    assert [each.status for each in verdicts] == ["api_error"] * 3 + ["ok"] * 9
    assert verdicts[0].error == "too long"


async def test_samples_are_counted_and_differ_in_their_seed() -> None:
    words = iter(["yes", "no", "yes", "yes"])
    lab = Lab(lambda request: next(words), slots=1)
    one = Checklist(questions=QUESTIONS[:1])
    judging = Judging(p_yes="sampled", samples=4, sample_temperature=0.7, seed=5)
    [verdict] = await lab.evaluator(judging, one).judge(EXAMPLES[:1])
    assert (verdict.answer, verdict.p_yes, verdict.p_yes_from, verdict.replicate) == (True, 0.75, "sampled", 0)
    assert [request.parameters.seed for request in lab.model.requests] == [5, 6, 7, 8]
    assert {request.parameters.temperature for request in lab.model.requests} == {0.7}


async def test_a_sample_that_fails_fails_the_verdict() -> None:
    lab = Lab(["yes", "perhaps", "perhaps", "yes"], slots=1)
    one = Checklist(questions=QUESTIONS[:1])
    [verdict] = await lab.evaluator(Judging(p_yes="sampled", samples=3), one).judge(EXAMPLES[:1])
    assert (verdict.status, verdict.answer, verdict.p_yes) == ("parse_error", None, None)


async def test_the_explanation_of_samples_is_that_of_one_that_says_the_same() -> None:
    replies = [json.dumps({"answer": word, "explanation": f"why {word}"}) for word in ("no", "yes", "yes")]
    lab = Lab(replies, slots=1)
    one = Checklist(questions=QUESTIONS[:1])
    [verdict] = await lab.evaluator(Judging(p_yes="sampled", samples=3, explain="always"), one).judge(EXAMPLES[:1])
    assert (verdict.answer, verdict.explanation) == (True, "why yes")


@pytest.mark.parametrize("likely", [{"Y": 0.78, "NO": 0.2}, {"NO": 0.6, "Y": 0.4}])
async def test_a_yes_whose_beginning_alone_is_a_token_is_asked_for_again(likely: dict[str, float]) -> None:
    def script(request: Request) -> Reply:
        if len(request.messages) > 2:
            return 0.9
        return Answer(next(iter(likely)), ((next(iter(likely)), tuple((each, log(p)) for each, p in likely.items())),))

    lab = Lab(script)
    one = Checklist(questions=QUESTIONS[:1])
    [verdict] = await lab.evaluator(checklist=one).judge(EXAMPLES[:1])
    assert (verdict.status, verdict.answer, verdict.p_yes) == ("ok", True, pytest.approx(0.9, abs=1e-3))
    assert says(lab.model.requests[-1].messages[-1][1], "beginning of", "yes", "likely")


async def test_replicates_are_asked_separately_and_numbered() -> None:
    lab = Lab(by_logprob)
    verdicts = await lab.judge(Judging(p_yes="logprob", repeat=3), EXAMPLES[:2])
    assert lab.calls == 18
    assert [each.replicate for each in verdicts] == [0, 0, 0, 1, 1, 1, 2, 2, 2] * 2
    assert [each.example for each in verdicts] == ["e0"] * 9 + ["e1"] * 9
    assert {request.parameters.seed for request in lab.model.requests} == {42, 43, 44}


async def test_replicates_of_samples_are_kept_apart() -> None:
    words = iter(["yes", "yes", "no", "no"])
    one = Checklist(questions=QUESTIONS[:1])
    evaluator = Lab(lambda request: next(words), slots=1).evaluator(Judging(p_yes="sampled", samples=2, repeat=2), one)
    assert [(each.p_yes, each.replicate) for each in await evaluator.judge(EXAMPLES[:1])] == [(1.0, 0), (0.0, 1)]
