from __future__ import annotations

import pytest

from askance.evaluation.options import EvaluateOptions
from askance.models import session as sessions
from askance.models.session import ModelOptions, session
from askance.prompts.errors import BudgetExceededError
from tests.said import says


async def test_many_calls_that_wait_are_one_line_and_none_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    clock = {"now": 1000.0}
    monkeypatch.setattr(sessions, "monotonic", lambda: clock["now"])
    async with session(ModelOptions(), None, said.append) as (_, gateway):
        wait = gateway.on_wait
        assert wait is not None
        for _ in range(40):
            wait("m: HTTP 429: busy.", 2.0)
        assert len(said) == 1 and says(said[0], "m: HTTP 429: busy.", "2.0 s")
        clock["now"] += sessions.WAITS_EVERY
        wait("m: HTTP 503.", 1.0)
        wait("m: HTTP 503.", 1.0)
        assert len(said) == 2 and says(said[1], "m: HTTP 503.", "1.0 s", "39 other calls")
    assert len(said) == 3 and says(said[2], "1 further call")


@pytest.mark.parametrize(("no_cache", "is_run"), [(False, False), (True, False), (True, True)])
async def test_a_cap_says_that_answers_are_stored_only_where_they_are(no_cache: bool, is_run: bool) -> None:
    options = EvaluateOptions(no_cache=no_cache, call_budget=0)
    async with session(options, None, stored_answers_are_ours=is_run) as (_, gateway):
        with pytest.raises(BudgetExceededError) as caught:
            gateway.budget.reserve(1)
    kept = "an answer that is stored is not bought again" in str(caught.value)
    assert kept is (not no_cache or is_run)
    assert says(caught.value, "--no-cache") is not kept
