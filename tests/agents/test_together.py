from __future__ import annotations

import asyncio

import pytest

from askance.agents.buying import all_together
from askance.prompts.errors import BudgetExceededError


async def test_every_item_is_done_once() -> None:
    done: list[int] = []

    async def do(item: int) -> None:
        await asyncio.sleep(0)
        done.append(item)

    await all_together(range(20), do, 3)
    assert sorted(done) == list(range(20))


async def test_after_the_budget_no_item_is_begun_but_those_under_way_end() -> None:
    begun: list[int] = []
    ended: list[int] = []

    async def do(item: int) -> None:
        begun.append(item)
        await asyncio.sleep(0.01 * item)
        if item == 1:
            raise BudgetExceededError("max_calls", "used up")
        ended.append(item)

    with pytest.raises(BudgetExceededError, match="used up"):
        await all_together([1, 3, 2, 4, 5], do, 3)
    assert begun == [1, 3, 2]
    assert ended == [2, 3]


async def test_another_error_ends_the_others_at_once() -> None:
    ended: list[int] = []

    async def do(item: int) -> None:
        if item == 0:
            raise KeyError(item)
        await asyncio.sleep(5)
        ended.append(item)

    with pytest.raises(KeyError):
        await asyncio.wait_for(all_together([1, 0, 2], do, 3), 1)
    assert ended == []
