from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from askance.memory.verdict_store import VerdictStore
from askance.models.base import Answer, ModelError, Request
from askance.models.budget import Budget
from askance.models.event_loops import BackgroundLoop
from askance.models.gateway import Gateway, RetryPolicy
from askance.prompts.errors import AskanceError, BudgetExceededError
from askance.testing import Reply, ScriptedModel

dspy = pytest.importorskip("dspy", reason="needs the extra: pip install 'askance[dspy]'")

from askance.agents.dspy.lm import GatewayLM, Stopped, cause_of  # noqa: E402
from tests.said import naming  # noqa: E402

pytestmark = pytest.mark.filterwarnings("error::DeprecationWarning")


def chat(answer: str) -> str:
    return f"[[ ## answer ## ]]\n{answer}\n\n[[ ## completed ## ]]"


@pytest.fixture
def loop() -> Iterator[BackgroundLoop]:
    loop = BackgroundLoop()
    yield loop
    loop.close()


class Bench:
    """A model whose answers are numbered, and a gateway with a store."""

    def __init__(self, loop: BackgroundLoop | None, script: Any = None, **options: Any) -> None:
        self.model = ScriptedModel(script or (lambda _: chat(str(len(self.model.requests)))))
        options.setdefault("budget", Budget())
        self.gateway = Gateway(VerdictStore(":memory:"), retry=RetryPolicy(2, 0.0), **options)
        self.lm = GatewayLM(self.gateway, self.model, role="solver", loop=loop)
        self.program = dspy.Predict("question -> answer")

    @property
    def ledger(self) -> Any:
        return self.gateway.budget.role("solver")

    def ask(self, question: str = "Who?", **config: Any) -> Any:
        with dspy.context(lm=self.lm, track_usage=True):
            return self.program(question=question, config=config)


def test_a_call_is_booked_under_its_role_and_bought_once(loop: BackgroundLoop) -> None:
    bench = Bench(loop)
    first = bench.ask()
    again = bench.ask()
    assert (first.answer, again.answer) == ("1", "1")
    assert (bench.ledger.calls, bench.ledger.cached_calls) == (1, 1)
    usage = first.get_lm_usage()["scripted/model"]
    assert usage["prompt_tokens"] == bench.ledger.prompt_tokens > 0
    assert usage["completion_tokens"] == bench.ledger.completion_tokens > 0
    assert again.get_lm_usage()["scripted/model"]["total_tokens"] == 0


def test_messages_and_settings_arrive_as_they_are(loop: BackgroundLoop) -> None:
    bench = Bench(loop, lambda _: '{"answer": "it"}')
    bench.lm.kwargs["seed"] = 7
    bench.program.demos = [{"question": "What?", "answer": "that"}]
    with dspy.context(lm=bench.lm, adapter=dspy.JSONAdapter()):
        assert bench.program(question="Who?", config={"max_tokens": 44}).answer == "it"
    request = bench.model.requests[0]
    assert [role for role, _ in request.messages] == ["system", "user", "assistant", "user"]
    assert "Who?" in request.messages[-1][1]
    assert (request.parameters.max_tokens, request.parameters.temperature, request.parameters.seed) == (44, 0.0, 7)
    assert request.parameters.schema is not None and list(request.parameters.schema["properties"]) == ["answer"]


def test_rollouts_and_generations_are_answers_of_their_own_and_kept(loop: BackgroundLoop) -> None:
    bench = Bench(loop)
    rollouts = [bench.ask(rollout_id=number, temperature=1.0).answer for number in (1, 2, 1)]
    assert rollouts == ["1", "2", "1"]
    copied = bench.lm.copy(rollout_id=3, temperature=1.0)
    with dspy.context(lm=copied):
        assert [bench.program(question="Who?").answer for _ in range(2)] == ["3", "3"]
    assert bench.ask(n=3).completions.answer == ["4", "5", "6"]
    assert bench.ask(n=3).completions.answer == ["4", "5", "6"]
    assert bench.ledger.calls == 6


@pytest.mark.filterwarnings("ignore:rollout_id has no effect")
def test_at_temperature_0_rollouts_are_one_answer(loop: BackgroundLoop) -> None:
    bench = Bench(loop)
    assert [bench.ask(rollout_id=number).answer for number in (1, 2)] == ["1", "1"]


async def test_a_program_is_awaited_on_the_loop_of_its_gateway() -> None:
    bench = Bench(None)
    with dspy.context(lm=bench.lm):
        assert (await bench.program.acall(question="Who?")).answer == "1"
        with pytest.raises(Stopped, match="acall"):
            bench.program(question="Who else?")


async def test_a_program_is_called_or_awaited_from_another_running_loop(loop: BackgroundLoop) -> None:
    bench = Bench(loop)
    with dspy.context(lm=bench.lm):
        assert bench.program(question="Who?").answer == "1"
        assert (await bench.program.acall(question="Who?")).answer == "1"


def test_a_used_up_budget_ends_an_evaluation_instead_of_scoring_0(loop: BackgroundLoop) -> None:
    bench = Bench(loop, budget=Budget(call_budget=2))
    examples = [dspy.Example(question=str(number), answer="1").with_inputs("question") for number in range(6)]
    for threads in (1, 3):
        evaluation = dspy.Evaluate(devset=examples, metric=lambda *_: 1.0, num_threads=threads)
        with dspy.context(lm=bench.lm), pytest.raises(Stopped) as stop:
            evaluation(bench.program)
        assert isinstance(stop.value.error, BudgetExceededError)
    assert bench.ledger.calls == 2


def test_a_failed_call_is_tried_again_by_the_gateway_alone(loop: BackgroundLoop) -> None:
    replies: list[Reply] = [ModelError("busy", retry=True), chat("well")]
    bench = Bench(loop, replies)
    assert bench.ask().answer == "well"
    failing = Bench(loop, lambda _: ModelError("busy", retry=True, status=503))
    with pytest.raises(dspy.utils.exceptions.LMProviderError, match="busy") as error:
        failing.ask()
    assert len(failing.model.requests) == 2
    assert isinstance(cause_of(error.value), ModelError)


def test_a_wrong_key_ends_the_program(loop: BackgroundLoop) -> None:
    bench = Bench(loop, lambda _: ModelError("the key is wrong", fatal=True))
    with pytest.raises(Stopped, match="the key is wrong"):
        bench.ask()


def test_an_answer_that_was_cut_off_is_no_answer(loop: BackgroundLoop) -> None:
    def cut(request: Request) -> Answer:
        return Answer(chat("half of"), finish="length")

    with pytest.raises(dspy.utils.exceptions.LMProviderError, match=naming("cut off", "max_tokens=1000")):
        Bench(loop, cut).ask()


@pytest.mark.parametrize("setting", [{"stop": ["x"]}, {"top_p": 0.5}, {"logprobs": True}])
def test_a_setting_that_the_gateway_does_not_know_is_refused(loop: BackgroundLoop, setting: dict[str, Any]) -> None:
    bench = Bench(loop)
    with pytest.raises(dspy.utils.exceptions.LMUnsupportedFeatureError, match=next(iter(setting))):
        bench.ask(**setting)
    assert bench.model.requests == []


def test_a_copied_program_shares_the_gateway(loop: BackgroundLoop) -> None:
    bench = Bench(loop)
    bench.program.lm = bench.lm
    copied = copy.deepcopy(bench.program)
    assert copied(question="Who?").answer == bench.program(question="Who?").answer == "1"


def test_a_name_that_dspy_has_rules_for_is_only_a_name(loop: BackgroundLoop) -> None:
    model = ScriptedModel(lambda _: chat("fine"), name="openai/gpt-5")
    with dspy.context(lm=GatewayLM(Gateway(), model, loop=loop, max_tokens=50)):
        assert dspy.Predict("question -> answer")(question="Who?").answer == "fine"


def test_a_closed_gateway_says_so() -> None:
    loop = BackgroundLoop()
    bench = Bench(loop)
    loop.close()
    loop.close()
    with pytest.raises(Stopped, match="closed"):
        bench.ask()
    assert isinstance(cause_of(Stopped(AskanceError("x"))), AskanceError) and cause_of(ValueError("y")) is None
