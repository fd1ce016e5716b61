from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from email.utils import formatdate

import pytest

from askance.models import budget as limits
from askance.models.base import Answer, ModelError, Parameters, Request, make_request
from askance.models.budget import PerMinute
from askance.models.gateway import Gateway, RetryPolicy
from askance.models.refusals import quota_used_up, read_wait, wait_asked_for
from askance.testing import Reply, ScriptedModel
from tests.said import naming

GEMINI = '{"error": {"code": 429, "message": "You exceeded your current quota, please check your plan and billing details.", "status": "RESOURCE_EXHAUSTED", "details": [{"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": "Generate%s-FreeTier"}]}, {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "17s"}]}}'


def request(text: str = "x") -> Request:
    return make_request("scripted/model", [("user", text)], Parameters(4))


def busy(after: float | None = None) -> ModelError:
    return ModelError("HTTP 429: slow down", retry=True, retry_after=after, status=429)


# --- how long an endpoint asks to wait ----------------------------------------------------------------------------


def test_a_wait_is_seconds_a_duration_a_time_or_a_date() -> None:
    now = 1_764_400_000.0
    iso = "2025-11-29T07:07:10Z"  # half a minute later
    for text, seconds in {
        "2.5": 2.5,
        "-1": 0,
        "6ms": 0.006,
        "1m30s": 90,
        "1h2m": 3720,
        "17s": 17,
        "2 minutes": 120,
        f"{now + 30:.0f}": 30,
        f"{(now + 30) * 1000:.0f}": 30,
        formatdate(now + 100, usegmt=True): 100,
        formatdate(0, usegmt=True): 0,
        iso: 30,
    }.items():
        assert read_wait(text, now) == pytest.approx(seconds, abs=1e-3), text
    for nothing in (None, "", "soon", "inf", "nan", "Mon, 99 Xxx 2026", "5 apples"):
        assert read_wait(nothing) is None, nothing


def test_a_time_to_wait_for_counts_from_the_clock_that_it_is_of() -> None:
    wrong = time.time() + 40 * 86_400
    said, until = (formatdate(wrong + seconds, usegmt=True) for seconds in (0, 30))
    assert wait_asked_for({"Retry-After": until, "Date": said}) == 30
    assert wait_asked_for({"Retry-After": f"{int(wrong) + 30}", "Date": said}) == pytest.approx(30, abs=1)
    assert wait_asked_for({"Retry-After": "7", "Date": said}) == 7


@pytest.mark.parametrize(
    ("headers", "said", "seconds"),
    [
        ({"retry-after-ms": "1500", "retry-after": "2"}, "", 1.5),
        ({"Retry-After": "1m30s"}, "", 90),
        ({"x-ratelimit-reset-requests": "1m4s", "x-ratelimit-reset-tokens": "6ms"}, "", 0.006),
        (
            {
                "x-ratelimit-reset-requests": "1m4s",
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-tokens": "6ms",
                "x-ratelimit-remaining-tokens": "12",
            },
            "",
            64,
        ),
        ({}, GEMINI % "RequestsPerMinute", 17),
        ({}, "Rate limit reached for gpt-4o on tokens per min (TPM). Please try again in 1m2.5s. Visit", 62.5),
        ({}, "Rate limit reached. Please try again in 6ms.", 0.006),
        ({}, "Please retry after 59 seconds.", 59),
        ({}, "Please retry in 17.25s.", 17.25),
        ({}, "slow down", None),
        ({"Retry-After": "soon"}, "", None),
    ],
)
def test_the_wish_to_wait_is_found_in_headers_and_words(
    headers: dict[str, str], said: str, seconds: float | None
) -> None:
    assert wait_asked_for(headers, said) == (seconds if seconds is None else pytest.approx(seconds))


def test_the_end_of_a_limit_may_be_in_the_reply_as_openrouter_sends_it() -> None:
    until = int((time.time() + 40) * 1000)
    said = f'{{"error": {{"code": 429, "metadata": {{"headers": {{"X-RateLimit-Reset": "{until}"}}}}}}}}'
    assert wait_asked_for({}, said) == pytest.approx(40, abs=2)


# --- a quota that is used up --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (
            429,
            '{"error": {"message": "You exceeded your current quota, please check your plan", "code": "insufficient_quota"}}',
        ),
        (429, "You exceeded your current quota, please check your plan and billing details."),
        (400, '{"error": {"message": "Billing hard limit has been reached", "code": "billing_hard_limit_reached"}}'),
        (400, "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing"),
        (429, GEMINI % "RequestsPerDayPerProjectPerModel"),
        (403, "Your team has either used all available credits or reached its monthly spending limit."),
        (429, "Rate limit exceeded: free-models-per-day. Add 10 credits to unlock 1000 free model requests per day"),
    ],
)
def test_a_quota_that_is_used_up_is_told_from_a_limit(status: int, said: str) -> None:
    assert "used up" in (quota_used_up(status, said) or "")


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (429, GEMINI % "RequestsPerMinutePerProjectPerModel"),
        (429, "Rate limit reached for m on requests per day (RPD): Limit 200. Please try again in 7m12s."),
        (429, "Resource has been exhausted (e.g. check quota). RESOURCE_EXHAUSTED"),
        (400, "no such model"),
    ],
)
def test_a_limit_that_passes_is_no_quota_that_is_used_up(status: int, said: str) -> None:
    assert quota_used_up(status, said) is None


# --- an endpoint that refuses calls because of its limits ---------------------------------------------------------


class Clock:
    """Time that passes only while one sleeps."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        self._sleep: Callable[..., object] = asyncio.sleep
        for module in ("askance.models.gateway", "askance.models.budget"):
            monkeypatch.setattr(f"{module}.monotonic", lambda: self.now)
            monkeypatch.setattr(f"{module}.asyncio.sleep", self.sleep)

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        await self._sleep(0)  # type: ignore[misc]


@pytest.mark.parametrize("retries", [0, 5])
async def test_an_endpoint_that_names_a_time_is_waited_for_however_often(
    retries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    model = ScriptedModel([*[busy(20.0)] * 60, "Yes"])
    gateway = Gateway(retry=RetryPolicy(retries + 1))
    assert (await gateway.ask("judge", model, request())).text == "Yes"
    assert 1200 < clock.now - 1000 < 1300, "twenty minutes, where five without any answer end a run"
    assert gateway.budget.role("judge").failures == 0


async def test_one_that_has_answered_is_waited_for_without_a_time_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    Clock(monkeypatch)
    gateway, model = Gateway(), ScriptedModel(["Yes", *[busy()] * 40, "No"])
    await gateway.ask("judge", model, request("a"))
    assert (await gateway.ask("judge", model, request("b"))).text == "No"


async def test_an_hour_of_refusals_ends_the_run_and_is_not_said_to_be_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    with pytest.raises(ModelError, match=r"limits for 6\d minutes") as caught:
        await Gateway().ask("judge", ScriptedModel(lambda _: busy(50.0)), request())
    assert caught.value.fatal
    assert 3600 < clock.now - 1000 < 3800


async def test_a_wait_of_many_hours_ends_the_run_at_once() -> None:
    model = ScriptedModel([busy(18_000.0)])
    with pytest.raises(ModelError, match=naming("5.0 hours")) as caught:
        await Gateway().ask("judge", model, request())
    assert caught.value.fatal


async def test_without_retries_and_without_a_time_it_is_the_endpoints_own_error() -> None:
    with pytest.raises(ModelError, match=r"^HTTP 429: slow down$") as caught:
        await Gateway(retry=RetryPolicy(1)).ask("judge", ScriptedModel([busy()]), request())
    assert not caught.value.fatal


async def test_limits_between_failures_are_not_taken_for_an_endpoint_that_is_down(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Clock(monkeypatch)
    lost = ModelError("no answer within 120 s.", retry=True)
    script: list[Reply] = [busy(60.0)] * 8 + [lost] + [busy(60.0)] * 8 + [lost, "Yes"]
    assert (await Gateway().ask("judge", ScriptedModel(script), request())).text == "Yes"


# --- limits per minute --------------------------------------------------------------------------------------------


async def test_all_roles_share_the_calls_per_minute_of_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, begun = Clock(monkeypatch), []

    class Limited(ScriptedModel):
        requests_per_minute = 3

        async def answer(self, request: Request) -> Answer:
            begun.append(clock.now)
            return Answer("Yes")

    gateway, model = Gateway(), Limited([])
    for number in range(8):
        await gateway.ask(("judge", "generator")[number % 2], model, request(str(number)))
    assert begun == [1000.0] * 3 + [1060.0] * 3 + [1120.0] * 2


async def test_tokens_per_minute_are_what_calls_took(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    per_minute, begun = PerMinute(tokens=100), []
    for asked, spent in [(60, 20), (60, 60), (30, 30), (500, 500), (10, 10)]:
        took = await per_minute.turn(asked)
        begun.append(clock.now - 1000)
        took(spent)
    assert begun == pytest.approx([0, 0, 60, 120, 180]), "20, with 60 set aside; 500 are a minute of their own"


async def test_no_slot_is_held_while_a_limit_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MINUTE", 0.2)

    class Limited(ScriptedModel):
        requests_per_minute = 1

    gateway, model = Gateway(max_concurrency=1), Limited(lambda _: "Yes")
    first, second = (asyncio.ensure_future(gateway.ask("judge", model, request(each))) for each in "ab")
    await asyncio.sleep(0.05)
    assert first.done() and not second.done()
    assert not gateway._lines[model.identity].slot.locked()
    assert (await second).text == "Yes"
