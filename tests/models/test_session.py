from __future__ import annotations

import pytest

from askance.models import session as sessions
from askance.models.session import ModelOptions, session


async def test_many_calls_that_wait_are_one_line_and_none_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    clock = {"now": 1000.0}
    monkeypatch.setattr(sessions, "monotonic", lambda: clock["now"])
    async with session(ModelOptions(), None, said.append) as (_, gateway):
        wait = gateway.on_wait
        assert wait is not None
        for _ in range(40):
            wait("m: HTTP 429: busy.", 2.0)
        assert said == ["m: HTTP 429: busy. Asking again in 2.0 s."]
        clock["now"] += sessions.WAITS_EVERY
        wait("m: HTTP 503.", 1.0)
        wait("m: HTTP 503.", 1.0)
        assert said[1:] == ["m: HTTP 503. Asking again in 1.0 s. Since the last such line 39 other calls had to wait."]
    assert said[2:] == ["1 further call had to be made again."]
