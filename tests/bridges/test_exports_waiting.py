"""An exported judge waits as long as a server asks, and stops where waiting is of no use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.said import naming

from .conftest import QUESTIONS, as_module, kept, with_logprobs


@pytest.mark.parametrize(
    ("headers", "said", "seconds"),
    [
        ({"Retry-After": "7"}, "slow down", 7),
        ({"Retry-After": "1m30s"}, "slow down", 90),
        ({"retry-after-ms": "250"}, "slow down", 0.25),
        ({"x-ratelimit-reset-requests": "6s", "x-ratelimit-remaining-requests": "0"}, "slow down", 6),
        ({}, "Please try again in 20s.", 20),
        ({"Retry-After": "86400"}, "slow down", 600),
        ({"Retry-After": "soon"}, "slow down", 0.5),
    ],
)
def test_an_exported_judge_waits_as_long_as_the_server_asks(
    headers: Mapping[str, str], said: str, seconds: float, serve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused: list[Any] = []

    def script(body: Mapping[str, Any]) -> Any:
        if not refused:
            refused.append(body)
            return 429, {"error": {"message": said}}, headers
        return with_logprobs(body)

    serve(script)
    module, waited = as_module(kept()), []
    monkeypatch.setattr(module.time, "sleep", waited.append)
    assert len(module.judge(output="x")["verdicts"]) == len(QUESTIONS)
    assert waited == [seconds]


def test_an_exported_judge_stops_at_once_where_the_quota_is_used_up(
    serve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve(lambda body: (429, {"error": {"code": "insufficient_quota", "message": "You have no credit."}}))
    module, waited = as_module(kept()), []
    monkeypatch.setattr(module.time, "sleep", waited.append)
    with pytest.raises(module.JudgeError, match=naming(429, "quota")):
        module.judge(output="x")
    assert not waited and len(server.bodies) <= len(QUESTIONS)
