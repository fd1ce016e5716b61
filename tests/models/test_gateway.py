from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from askance.memory.verdict_store import VerdictStore
from askance.models.base import Answer, EmptyAnswerError, ModelError, Parameters, Request, ThinkingFacts, make_request
from askance.models.budget import Budget
from askance.models.gateway import HOPELESS, Gateway, RetryPolicy
from askance.prompts.errors import AskanceError, BudgetExceededError
from askance.prompts.prompt import Framing
from askance.testing import Reply, ScriptedModel
from tests.said import naming, says

QUICK = RetryPolicy(attempts=3, first=0.001)


class Store:
    """Answers in memory, counting what is put in."""

    def __init__(self) -> None:
        self.answers: dict[bytes, Answer] = {}
        self.facts: dict[str, ThinkingFacts] = {}

    def get_many(self, keys: Sequence[bytes]) -> dict[bytes, Answer]:
        return {key: self.answers[key] for key in keys if key in self.answers}

    def put(self, key: bytes, answer: Answer) -> None:
        assert key not in self.answers, "bought twice"
        self.answers[key] = answer

    def claim(self, key: bytes) -> bool:
        return True

    def renew(self, keys: Sequence[bytes]) -> None:
        pass

    def let_go(self, keys: Sequence[bytes]) -> None:
        pass

    def learned(self, identity: str) -> ThinkingFacts | None:
        return self.facts.get(identity)

    def learn(self, identity: str, facts: ThinkingFacts) -> None:
        known = self.facts.get(identity)
        self.facts[identity] = facts if known is None else known.and_these(facts)


class FullStore(Store):
    def put(self, key: bytes, answer: Answer) -> None:
        raise AskanceError("the disk is full")


def request(text: str = "x", max_tokens: int = 4) -> Request:
    return make_request("scripted/model", [("user", text)], Parameters(max_tokens))


def busy(status: int = 429, after: float | None = None) -> ModelError:
    return ModelError(f"HTTP {status}", retry=True, retry_after=after, status=status)


async def outcomes(*works: object) -> list[object]:
    return await asyncio.gather(*works, return_exceptions=True)  # type: ignore[call-overload, no-any-return]


# --- store and single flight --------------------------------------------------------------------------------------


async def test_an_answer_is_bought_once_and_then_reused() -> None:
    model, gateway = ScriptedModel(["a"]), Gateway(Store())
    first = await gateway.ask("judge", model, request())
    assert await gateway.ask("judge", model, request()) == first
    assert (gateway.budget.calls, gateway.budget.cached_calls) == (1, 1)


async def test_without_a_store_each_ask_is_bought() -> None:
    model, gateway = ScriptedModel(["a", "b"]), Gateway()
    assert [(await gateway.ask("judge", model, request())).text for _ in "ab"] == ["a", "b"]


async def test_the_same_request_asked_at_once_is_bought_once() -> None:
    model, gateway = ScriptedModel(["a"], delay=0.01), Gateway(Store())
    answers = await outcomes(*(gateway.ask("judge", model, request()) for _ in range(5)))
    assert len(model.requests) == 1
    assert len(set(map(str, answers))) == 1
    assert (gateway.budget.calls, gateway.budget.cached_calls) == (1, 4)


async def test_one_that_was_not_in_the_store_when_looked_up_is_not_bought_again() -> None:
    model, gateway = ScriptedModel(["a"]), Gateway(Store())
    await gateway.buy("judge", model, request())
    await gateway.buy("judge", model, request())
    assert len(model.requests) == 1


async def test_who_waits_for_a_call_that_is_cancelled_buys_it() -> None:
    model, gateway = ScriptedModel(["lost", "a"], delay=0.02), Gateway(Store())
    first = asyncio.ensure_future(gateway.ask("judge", model, request()))
    second = asyncio.ensure_future(gateway.ask("judge", model, request()))
    await asyncio.sleep(0.005)
    first.cancel()
    assert (await second).text == "a"
    assert first.cancelled()


async def test_who_waits_and_is_cancelled_does_not_spoil_the_call() -> None:
    model, gateway = ScriptedModel(["a"], delay=0.02), Gateway(Store())
    first = asyncio.ensure_future(gateway.ask("judge", model, request()))
    await asyncio.sleep(0)
    second = asyncio.ensure_future(gateway.ask("judge", model, request()))
    await asyncio.sleep(0.005)
    second.cancel()
    assert (await first).text == "a"


async def test_a_defect_in_a_model_is_raised_as_it_is_to_everybody() -> None:
    model, gateway = ScriptedModel([KeyError("bug"), KeyError("bug")], delay=0.001), Gateway(Store())
    found = await outcomes(gateway.ask("judge", model, request()), gateway.ask("judge", model, request()))
    assert [type(each) for each in found] == [KeyError, KeyError]


async def test_nothing_failed_is_stored_and_it_is_asked_again() -> None:
    store = Store()
    model = ScriptedModel([ModelError("no"), "a"])
    gateway = Gateway(store, retry=QUICK)
    with pytest.raises(ModelError, match="no"):
        await gateway.ask("judge", model, request())
    assert store.answers == {}
    assert gateway.budget.role("judge").failures == 1
    assert (await gateway.ask("judge", model, request())).text == "a"


async def test_what_was_paid_is_booked_even_where_it_cannot_be_kept() -> None:
    gateway = Gateway(FullStore())
    with pytest.raises(AskanceError, match="disk is full"):
        await gateway.ask("judge", ScriptedModel(["a"]), request())
    assert gateway.budget.calls == 1


async def test_answers_that_the_run_paid_for_before_are_counted_once_as_paid(tmp_path: Path) -> None:
    with VerdictStore(tmp_path / "v.db") as store:
        paid = Gateway(store, stored_answers_are_ours=True)
        await paid.ask("judge", ScriptedModel([Answer("a", None, 10, 5, 0.5)]), request())
        resumed = Gateway(store, stored_answers_are_ours=True)
        for _ in range(3):
            await resumed.ask("judge", ScriptedModel([]), request())
    assert resumed.budget.role("judge") == paid.budget.role("judge").__class__(1, 2, 0, 0, 10, 5, 0.5)


async def test_answers_that_another_run_paid_for_are_reused_until_they_are_forgotten(tmp_path: Path) -> None:
    with VerdictStore(tmp_path / "v.db") as store:
        store.put(request().key, Answer("a", None, 10, 5, 0.5))
        gateway = Gateway(store, stored_answers_are_ours=True, brought=[request().key])
        await gateway.ask("judge", ScriptedModel([]), request())
        assert (gateway.budget.calls, gateway.budget.role("judge").cached_calls) == (0, 1)
        await gateway.forget([request().key])
        await gateway.ask("judge", ScriptedModel([Answer("b", None, 10, 5, 0.5)]), request())
        await gateway.ask("judge", ScriptedModel([]), request())
        assert (gateway.budget.calls, gateway.budget.role("judge").cached_calls) == (1, 2)


# --- claims: an answer that many processes want is bought by one ----------------------------------------------------


class Claiming(Store):
    """A store that several gateways share: who has claimed what, and each time that claims were renewed."""

    def __init__(self) -> None:
        super().__init__()
        self.owners: dict[bytes, object] = {}
        self.renewed: list[list[bytes]] = []

    def of(self, owner: object) -> Claimed:
        return Claimed(self, owner)


class Claimed(Store):
    """The store as one gateway opens it."""

    def __init__(self, shared: Claiming, owner: object) -> None:
        self.shared, self.answers, self.facts, self.owner = shared, shared.answers, shared.facts, owner

    def put(self, key: bytes, answer: Answer) -> None:
        assert self.shared.owners.get(key) == self.owner, "bought without a claim"
        super().put(key, answer)
        self.let_go([key])

    def claim(self, key: bytes) -> bool:
        return self.shared.owners.setdefault(key, self.owner) == self.owner

    def renew(self, keys: Sequence[bytes]) -> None:
        self.shared.renewed.append(sorted(keys))

    def let_go(self, keys: Sequence[bytes]) -> None:
        for key in keys:
            if self.shared.owners.get(key) == self.owner:
                del self.shared.owners[key]


async def test_claims_are_renewed_as_long_as_they_are_needed_and_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("askance.models.gateway.RENEWS_EVERY", 0.01)
    store = Claiming()
    gateway = Gateway(store.of("me"))
    short, long = ScriptedModel(["a"], delay=0.1), ScriptedModel(["b"], delay=0.3)
    key, other = request("short").key, request("long").key
    await asyncio.gather(gateway.ask("judge", short, request("short")), gateway.ask("judge", long, request("long")))
    assert len(store.renewed) >= 6, "again and again"
    assert store.renewed[0] == sorted([key, other]), "all that is under way"
    assert store.renewed[-1] == [other], "what is bought is let go"
    assert [each for each in store.renewed if each not in (sorted([key, other]), [other])] == []
    told = len(store.renewed)
    await asyncio.sleep(0.05)
    assert len(store.renewed) == told and store.owners == {}


async def test_a_renewal_that_fails_stops_neither_the_purchase_nor_the_next_renewal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("askance.models.gateway.RENEWS_EVERY", 0.01)
    tried: list[Sequence[bytes]] = []

    class Away(Store):
        def renew(self, keys: Sequence[bytes]) -> None:
            tried.append(keys)
            raise AskanceError("the store is away")

    answer = await Gateway(Away()).ask("judge", ScriptedModel(["a"], delay=0.15), request())
    assert answer.text == "a" and len(tried) > 2


@pytest.mark.parametrize("ends", ["fails", "is cancelled", "is a defect", "cannot be kept", "passes the cap"])
async def test_a_purchase_that_comes_to_nothing_leaves_no_claim(ends: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Claiming()
    mine = store.of("me")
    scripts: dict[str, list[Reply]] = {"fails": [ModelError("no")], "is a defect": [KeyError("bug")]}
    model = ScriptedModel(scripts.get(ends, ["a"]), delay=0.02)
    gateway = Gateway(mine, Budget(call_budget=0) if ends == "passes the cap" else None, retry=QUICK)
    if ends == "cannot be kept":
        monkeypatch.setattr(mine, "put", FullStore().put)
    buying = asyncio.ensure_future(gateway.ask("judge", model, request()))
    await asyncio.sleep(0.005)
    if ends == "is cancelled":
        buying.cancel()
    assert isinstance((await outcomes(buying))[0], BaseException)
    assert (store.owners, store.answers) == ({}, {})
    assert gateway.budget.calls == (ends == "cannot be kept"), "it is booked where it was paid for"


async def test_an_answer_that_another_process_puts_in_before_the_claim_is_not_paid_for() -> None:
    store = Claiming()

    class Late(Claimed):
        """Another process buys the answer between the look-up and the claim."""

        def claim(self, key: bytes) -> bool:
            store.answers[key] = Answer("theirs", None, 9, 9, 0.5)
            return super().claim(key)

    gateway, model = Gateway(Late(store, "me")), ScriptedModel(["mine"])
    assert (await gateway.ask("judge", model, request())).text == "theirs"
    assert model.requests == [] and store.owners == {}
    assert (gateway.budget.calls, gateway.budget.cached_calls, gateway.budget.tokens) == (0, 1, 0)


@pytest.mark.parametrize("seed", range(6))
async def test_whatever_fails_each_answer_is_paid_once_and_booked_once(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three processes ask the same things in any order, with failures in between; the books add up."""
    monkeypatch.setattr("askance.models.gateway.BETWEEN_LOOKS", (0.001, 0.002))
    draw, store, answered = random.Random(seed), Claiming(), 0

    def script(asked: Request) -> Reply:
        nonlocal answered
        if draw.random() < 0.3:
            return draw.choice([busy(503), ModelError("refused")])
        answered += 1
        return Answer(asked.messages[0][1], None, 7, 2, 0.25)

    gateways = [Gateway(store.of(number), retry=RetryPolicy(2, 0.0001)) for number in range(3)]
    model = ScriptedModel(script, delay=0.001)
    asked = [(gateway, str(number)) for gateway in gateways for number in range(8) for _ in "12"]
    draw.shuffle(asked)
    found = await outcomes(*(gateway.ask("judge", model, request(text)) for gateway, text in asked))
    got = [each.text for each in found if isinstance(each, Answer)]
    assert len(store.answers) == answered == sum(each.budget.calls for each in gateways) > 0
    assert sum(each.budget.cached_calls for each in gateways) == len(got) - answered
    assert sum(each.budget.tokens for each in gateways) == 9 * answered
    assert sum(each.budget.cost_usd or 0.0 for each in gateways) == pytest.approx(0.25 * answered)
    assert all(each.text == text for each, (_, text) in zip(found, asked, strict=True) if isinstance(each, Answer))
    assert store.owners == {} and any(isinstance(each, ModelError) for each in found)


# --- what is shared -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ours", [True, False])
async def test_an_answer_is_booked_once_whichever_way_it_is_looked_at(ours: bool) -> None:
    gateway, model = Gateway(Store(), stored_answers_are_ours=ours), ScriptedModel([Answer("a", None, 7, 2, 0.5)])
    await gateway.ask("judge", model, request())
    await gateway.ask("judge", model, request())
    await gateway.stored("judge", [request().key])
    await gateway.buy("judge", model, request())
    assert await gateway.has(request().key) and not await gateway.has(request("another").key)
    ledger = gateway.budget.role("judge")
    assert (ledger.calls, ledger.cached_calls, gateway.budget.tokens, gateway.budget.cost_usd) == (1, 3, 9, 0.5)


def same_model(reply: Reply = "a", **limits: int) -> ScriptedModel:
    """One model, as each role has it; the limits are those of its settings."""
    model = ScriptedModel(lambda _: reply, delay=0.005, slots=limits.pop("slots", 16))
    for name, limit in limits.items():
        setattr(model, name, limit)
    return model


async def test_roles_that_use_one_model_share_its_slots() -> None:
    under_way, most = 0, 0

    class Counting(ScriptedModel):
        async def answer(self, request: Request) -> Answer:
            nonlocal under_way, most
            under_way += 1
            most = max(most, under_way)
            await asyncio.sleep(0.002)
            under_way -= 1
            return Answer("a")

    gateway, models = Gateway(), [Counting([], slots=2), Counting([], slots=2)]
    await asyncio.gather(*(gateway.ask(f"role {n % 2}", models[n % 2], request(str(n))) for n in range(10)))
    assert most == 2


async def test_roles_that_use_one_model_share_its_calls_per_minute() -> None:
    gateway, models = Gateway(), [same_model(requests_per_minute=3) for _ in "ab"]
    for number in range(3):
        await asyncio.wait_for(gateway.ask("judge", models[number % 2], request(str(number))), 5)
    for model in models:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(gateway.ask("judge", model, request("one more")), 0.05)
    assert gateway.budget.calls == 3


async def test_tokens_that_an_answer_did_not_take_are_free_again_in_the_same_minute() -> None:
    model = same_model(Answer("a", None, 3, 2), tokens_per_minute=100)
    gateway = Gateway()
    for number in range(3):  # each may take 81, and takes 5
        await asyncio.wait_for(gateway.ask("judge", model, request(str(number), max_tokens=80)), 5)
    greedy = same_model(Answer("a", None, 60, 20), tokens_per_minute=100)
    gateway = Gateway()
    await asyncio.wait_for(gateway.ask("judge", greedy, request("x", max_tokens=20)), 5)
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(gateway.ask("judge", greedy, request("y", max_tokens=20)), 0.05)


@pytest.mark.parametrize("ends", ["fails", "is cancelled", "is a defect"])
async def test_what_was_set_aside_for_a_call_is_given_back_however_it_ends(ends: str) -> None:
    scripts: dict[str, list[Reply]] = {"fails": [ModelError("no"), "a"], "is a defect": [KeyError("bug"), "a"]}
    model = ScriptedModel(scripts.get(ends, ["lost", "a"]), delay=0.02)
    gateway = Gateway(retry=QUICK, budget=Budget(call_budget=1, token_budget=5, cost_budget=1.0))
    call = asyncio.ensure_future(gateway.ask("judge", model, request()))
    await asyncio.sleep(0.005)
    if ends == "is cancelled":
        call.cancel()
    assert isinstance((await outcomes(call))[0], BaseException)
    assert (await asyncio.wait_for(gateway.ask("judge", model, request()), 5)).text == "a"


# --- retries ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [408, 429, 500, 503])
async def test_a_call_that_may_succeed_is_tried_again(status: int) -> None:
    waits: list[float] = []
    gateway = Gateway(retry=QUICK)
    gateway.on_wait = lambda text, seconds: waits.append(seconds)
    model = ScriptedModel([busy(status), busy(status), "a"])
    assert (await gateway.ask("judge", model, request())).text == "a"
    assert len(waits) == gateway.budget.role("judge").retries == 2
    assert gateway.budget.calls == 1


@pytest.mark.parametrize(("error", "attempts"), [(busy(503), 3), (ModelError("HTTP 400"), 1)], ids=["passes", "stays"])
async def test_an_error_is_tried_again_to_the_last_attempt_unless_it_stays(error: ModelError, attempts: int) -> None:
    model, gateway = ScriptedModel([error] * 9), Gateway(retry=QUICK)
    with pytest.raises(ModelError, match=str(error)):
        await gateway.ask("judge", model, request())
    assert len(model.requests) == attempts


async def test_the_endpoints_wish_to_wait_is_honoured() -> None:
    model, gateway = ScriptedModel([busy(after=0.2), "a"]), Gateway(retry=QUICK)
    start = time.monotonic()
    await gateway.ask("judge", model, request())
    assert 0.2 <= time.monotonic() - start < 1


def test_waits_grow_with_jitter_up_to_a_limit() -> None:
    policy = RetryPolicy(first=1.0, longest=5.0)
    for attempt, longest in [(1, 1.0), (2, 2.0), (3, 4.0), (4, 5.0), (40, 5.0)]:
        waits = {policy.wait(attempt, None) for _ in range(50)}
        assert longest / 2 <= min(waits) <= max(waits) <= longest
        assert len(waits) > 1
    assert 4 <= policy.wait(1, 4.0) < 4.5
    assert 5 <= policy.wait(1, 3600.0) < 5.5
    assert policy.patience == 25
    assert policy.wait(5_000, None) <= 5.0, "2 to so high a power is no number"


async def test_what_is_waited_for_is_said_with_the_wish_that_is_not_granted() -> None:
    said: list[tuple[str, float]] = []
    model = ScriptedModel([busy(after=3600), "a"])
    gateway = Gateway(retry=RetryPolicy(attempts=2, first=0.001, longest=0.01))
    gateway.on_wait = lambda why, seconds: said.append((why, seconds))
    assert (await gateway.ask("judge", model, request())).text == "a"
    [(why, seconds)] = said
    assert says(why, "HTTP 429", "3,600 s")
    assert 0.01 <= seconds < 0.5


class Hanging:
    """Lets two minutes pass and then fails, but for the requests that it answers."""

    name = identity = "hanging/model"
    slots = 16

    def __init__(self, monkeypatch: pytest.MonkeyPatch, answers: Sequence[str] = ()) -> None:
        self.answers, self.asked, self.now = answers, 0, 1000.0
        monkeypatch.setattr("askance.models.gateway.monotonic", lambda: self.now)

    async def answer(self, asked: Request) -> Answer:
        self.asked += 1
        if asked.messages[0][1] in self.answers:
            return Answer("yes")
        self.now += 120
        raise ModelError("no answer within 120 s.", retry=True)


def patient() -> Gateway:
    """Waits next to nothing between attempts; its patience is five minutes."""
    policy = RetryPolicy(attempts=6, first=0.0001)
    assert policy.patience == 300
    return Gateway(retry=policy)


async def test_an_endpoint_that_never_answered_is_given_up_after_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    """It took sixty attempts one after another, which is two hours."""
    model, gateway = Hanging(monkeypatch), patient()
    with pytest.raises(ModelError, match=naming("hanging/model", "6 minutes", "120 s")) as caught:
        await gateway.ask("judge", model, request())
    assert caught.value.fatal
    assert model.asked == 3


async def test_one_request_that_hangs_is_given_up_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    model, gateway = Hanging(monkeypatch, answers=("a", "b")), patient()
    found = [(await outcomes(gateway.ask("judge", model, request(text))))[0] for text in ("a", "hangs", "b", "too")]
    assert all(says(each, "no answer", "120 s") and not says(each, "minutes") for each in found[1::2])
    assert not any(each.fatal for each in found[1::2])  # type: ignore[attr-defined]
    assert model.asked == 1 + 3 + 1 + 3
    with pytest.raises(ModelError, match="has not answered"):
        await gateway.ask("judge", model, request("and another"))


async def test_an_empty_answer_is_paid_not_kept_and_asked_for_again() -> None:
    model, store = ScriptedModel([Answer(" \n", prompt_tokens=7), "a"]), Store()
    gateway = Gateway(store, retry=QUICK)
    assert (await gateway.ask("judge", model, request())).text == "a"
    assert [each.text for each in store.answers.values()] == ["a"]
    assert (gateway.budget.calls, gateway.budget.role("judge").retries) == (2, 1)
    assert gateway.budget.tokens >= 7


@pytest.mark.parametrize(
    ("finish", "calls", "said"),
    [
        ("stop", 3, "empty"),
        ("length", 4, "cut off before its first word.*last step of its room, 32,000"),
        ("content_filter", 1, "filter"),
    ],
)
async def test_an_answer_that_stays_empty_is_an_error_that_says_why(finish: str, calls: int, said: str) -> None:
    model, store = ScriptedModel(lambda _: Answer("", finish=finish)), Store()
    with pytest.raises(ModelError, match=said):
        await Gateway(store, retry=QUICK).ask("judge", model, request())
    assert (len(model.requests), store.answers) == (calls, {})


async def test_a_prompt_that_silences_a_model_does_not_end_the_run_and_a_mute_endpoint_does() -> None:
    gateway, model = Gateway(retry=QUICK), ScriptedModel(lambda asked: "a" if asked.messages[0][1] == "speak" else "")
    await gateway.ask("judge", model, request("speak"))
    silent = await outcomes(*(gateway.ask("judge", model, request(str(number))) for number in range(2 * HOPELESS)))
    assert len(silent) == 2 * HOPELESS and {says(each, "scripted/model", "empty") for each in silent} == {True}
    mute = await outcomes(*(Gateway(retry=QUICK).ask("judge", model, request(str(number))) for number in range(2)))
    assert not any(each.fatal for each in mute)  # type: ignore[attr-defined]
    gateway = Gateway(retry=QUICK)
    mute = await outcomes(*(gateway.ask("judge", model, request(str(number))) for number in range(HOPELESS)))
    assert sum(each.fatal for each in mute) == 1  # type: ignore[attr-defined]


async def test_a_model_that_repeats_itself_is_asked_once() -> None:
    model = ScriptedModel(lambda _: "")
    model.repeats_itself = True  # type: ignore[attr-defined]
    with pytest.raises(EmptyAnswerError):
        await Gateway(retry=QUICK).ask("judge", model, request())
    assert len(model.requests) == 1


async def test_a_token_without_text_but_with_log_probabilities_is_an_answer() -> None:
    answer = Answer("", (("", (("Yes", -0.1), ("No", -2.4))),))
    assert await Gateway(retry=QUICK).ask("judge", ScriptedModel([answer]), request()) == answer


async def test_no_slot_is_held_while_waiting() -> None:
    order: list[str] = []

    def script(asked: Request) -> Reply:
        text = asked.messages[0][1]
        order.append(text)
        return busy(after=0.1) if order == ["first"] else "done"

    model, gateway = ScriptedModel(script, slots=1), Gateway(retry=QUICK)
    await asyncio.gather(*(gateway.ask("judge", model, request(text)) for text in ("first", "second")))
    assert order == ["first", "second", "first"]


async def test_no_more_calls_are_under_way_than_the_model_takes() -> None:
    under_way: list[int] = [0, 0]

    class Counting(ScriptedModel):
        async def answer(self, request: Request) -> Answer:
            under_way[0] += 1
            under_way[1] = max(under_way)
            await asyncio.sleep(0.001)
            under_way[0] -= 1
            return Answer("a")

    for slots, common, wanted in [(3, 16, 3), (16, 2, 2)]:
        under_way[:] = [0, 0]
        model, gateway = Counting([], slots=slots), Gateway(max_concurrency=common)
        await asyncio.gather(*(gateway.ask("judge", model, request(str(n))) for n in range(12)))
        assert under_way == [0, wanted]


async def test_an_endpoint_that_never_answers_ends_the_run() -> None:
    model, gateway = ScriptedModel(lambda request: ModelError("HTTP 400")), Gateway(retry=QUICK)
    errors = [await outcomes(gateway.ask("judge", model, request(str(n)))) for n in range(HOPELESS)]
    fatal = [error.fatal for [error] in errors if isinstance(error, ModelError)]
    assert fatal == [False] * (HOPELESS - 1) + [True]
    assert says(errors[-1][0], f"{HOPELESS} calls", "HTTP 400")
    assert "HTTP 400" in str(errors[-1][0])


async def test_an_example_that_is_refused_is_not_an_endpoint_that_is_down() -> None:
    """One that is too long for the model is refused with each of its questions."""
    model, gateway = ScriptedModel(lambda request: ModelError("too long", status=400)), Gateway(retry=QUICK)

    async def failures(example: int, questions: int) -> list[bool]:
        framing = Framing(None, f"Output {example}: ", "")
        asked = (replace(request(f"Output {example}: {number}"), framing=framing) for number in range(questions))
        errors = [(await outcomes(gateway.ask("judge", model, each)))[0] for each in asked]
        return [error.fatal for error in errors if isinstance(error, ModelError)]

    assert await failures(0, 2 * HOPELESS) == [False] * 2 * HOPELESS
    assert [await failures(number, 2) for number in range(1, HOPELESS - 1)] == [[False, False]] * (HOPELESS - 2)
    assert (await failures(HOPELESS, 1)) == [True], "so many examples are not all too long"


async def test_one_answer_in_between_gives_hope() -> None:
    replies: list[Reply] = [ModelError("no")] * (HOPELESS - 1)
    model, gateway = ScriptedModel([*replies, "a", *replies]), Gateway(retry=QUICK)
    errors = [await outcomes(gateway.ask("judge", model, request(str(n)))) for n in range(2 * HOPELESS - 1)]
    assert not any(error.fatal for [error] in errors if isinstance(error, ModelError))


async def test_refused_requests_are_not_a_row_where_the_answers_between_them_are_stored() -> None:
    store = Store()
    texts = [str(number) for number in range(2 * HOPELESS)]
    answering, first = ScriptedModel(lambda request: "a"), Gateway(store, retry=QUICK)
    await outcomes(*(first.ask("judge", answering, request(text)) for text in texts))
    refusing, gateway = ScriptedModel(lambda request: ModelError("HTTP 400")), Gateway(store, retry=QUICK)
    await gateway.stored("judge", [request(text).key for text in texts])
    errors = [await outcomes(gateway.ask("judge", refusing, request(f"new {text}"))) for text in texts]
    assert not any(error.fatal for [error] in errors if isinstance(error, ModelError))
    errors = [await outcomes(gateway.ask("judge", refusing, request(f"more {n}"))) for n in range(HOPELESS)]
    assert errors[-1][0].fatal, "one refusal for one stored answer, and no more"  # type: ignore[attr-defined]


async def test_replies_that_break_off_are_not_a_row_where_the_answers_between_them_are_stored() -> None:
    store, texts = Store(), [str(number) for number in range(2 * HOPELESS)]
    answering, first = ScriptedModel(lambda request: "a"), Gateway(store, retry=QUICK)
    await outcomes(*(first.ask("judge", answering, request(text)) for text in texts))
    breaking = ScriptedModel(lambda request: ModelError("it breaks off", retry=True, status=200))
    gateway = Gateway(store, retry=QUICK)
    await gateway.stored("judge", [request(text).key for text in texts])
    errors = [await outcomes(gateway.ask("judge", breaking, request(f"new {n}"))) for n in range(3 * HOPELESS)]
    fatal = [error.fatal for [error] in errors if isinstance(error, ModelError)]
    assert fatal == [False] * (3 * HOPELESS - 1) + [True], "one for one stored answer, and no more"


async def test_empty_replies_end_no_run_that_an_earlier_process_had_answers_in() -> None:
    store = Store()
    await Gateway(store, retry=QUICK).ask("judge", ScriptedModel(["a"]), request("old"))
    silent, gateway = ScriptedModel(lambda request: ""), Gateway(store, retry=QUICK)
    assert (await gateway.ask("judge", silent, request("old"))).text == "a"
    errors = [await outcomes(gateway.ask("judge", silent, request(str(n)))) for n in range(2 * HOPELESS)]
    assert not any(error.fatal for [error] in errors if isinstance(error, ModelError))
    dead = Gateway(retry=QUICK)
    errors = [await outcomes(dead.ask("judge", silent, request(str(n)))) for n in range(HOPELESS)]
    assert errors[-1][0].fatal, "one that never said anything is down"  # type: ignore[attr-defined]


# --- budget -------------------------------------------------------------------------------------------------------


async def test_the_cap_on_calls_is_exact_however_many_are_asked_at_once() -> None:
    model, gateway = ScriptedModel(lambda request: "a", delay=0.002), Gateway(budget=Budget(call_budget=7))
    found = await outcomes(*(gateway.ask("judge", model, request(str(n))) for n in range(30)))
    assert sum(isinstance(each, Answer) for each in found) == 7 == gateway.budget.calls == len(model.requests)
    assert {each.limit for each in found if isinstance(each, BudgetExceededError)} == {"max_calls"}


async def test_calls_that_fail_do_not_use_up_the_cap() -> None:
    model = ScriptedModel([busy(), ModelError("no"), "a", "b"], slots=1)
    gateway = Gateway(retry=QUICK, budget=Budget(call_budget=1))
    found = [(await outcomes(gateway.ask("judge", model, request(str(n)))))[0] for n in range(3)]
    assert [type(each) for each in found] == [ModelError, Answer, BudgetExceededError]


async def test_the_cap_on_tokens_is_never_passed_where_answers_keep_to_their_length() -> None:
    def script(asked: Request) -> Reply:
        return Answer("a", None, 1, asked.parameters.max_tokens)

    model, gateway = ScriptedModel(script, delay=0.001), Gateway(budget=Budget(token_budget=100))
    await outcomes(*(gateway.ask("judge", model, request(str(n), max_tokens=9)) for n in range(50)))
    assert gateway.budget.tokens == 100


async def test_the_cap_on_money_is_never_passed_where_prices_are_known() -> None:
    class Priced(ScriptedModel):
        def highest_cost(self, request: Request) -> float:
            return 0.25

    model = Priced(lambda request: Answer("a", cost_usd=0.25), delay=0.001)
    gateway = Gateway(budget=Budget(cost_budget=1.6))
    found = await outcomes(*(gateway.ask("judge", model, request(str(n))) for n in range(50)))
    assert gateway.budget.cost_usd == 1.5
    assert {each.limit for each in found if isinstance(each, BudgetExceededError)} == {"max_cost"}


async def test_a_cap_is_used_up_before_it_ends_a_run_though_calls_under_way_may_need_all_of_it() -> None:
    model = ScriptedModel(lambda request: Answer("a", None, 1, 1), delay=0.001)
    gateway = Gateway(budget=Budget(token_budget=130))
    found = await outcomes(*(gateway.ask("judge", model, request(str(n), max_tokens=50)) for n in range(60)))
    assert [isinstance(each, Answer) for each in found] == [True] * 40 + [False] * 20
    assert gateway.budget.tokens == 80, "of the last 50 none could be set aside for a call that may need 51"


async def test_what_is_stored_costs_nothing() -> None:
    gateway = Gateway(Store(), Budget(call_budget=1))
    model = ScriptedModel(["a"])
    for _ in range(3):
        assert (await gateway.ask("judge", model, request())).text == "a"


async def test_each_role_has_its_own_ledger() -> None:
    model, gateway = ScriptedModel(lambda request: Answer("a", None, 3, 2, 0.5)), Gateway()
    for role, count in [("judge", 2), ("writer", 1)]:
        for number in range(count):
            await gateway.ask(role, model, request(f"{role}{number}"))
    roles = gateway.budget.roles
    assert {name: (ledger.calls, ledger.prompt_tokens) for name, ledger in roles.items()} == (
        {"judge": (2, 6), "writer": (1, 3)}
    )
    assert gateway.budget.cost_usd == 1.5


async def test_a_model_is_known_to_think_from_its_first_reply_with_tokens_of_thinking() -> None:
    gateway = Gateway()
    model = ScriptedModel([Answer("Yes"), Answer("Yes", completion_tokens=9, reasoning_tokens=8)])
    await gateway.ask("judge", model, request("a"))
    assert not gateway.room.thinks(model)
    await gateway.ask("judge", model, request("b"))
    assert gateway.room.thinks(model)
