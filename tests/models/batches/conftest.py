"""A gateway whose model asks a stand-in server in batches."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from askance.models.base import Answer, ModelError, Parameters, Request, make_request
from askance.models.batches.batch_model import BatchModel, Pace
from askance.models.budget import Budget, Price
from askance.models.direct import DirectModel
from askance.models.files import cache_directory
from askance.models.gateway import Gateway, RetryPolicy
from askance.testing import ServerReply, StandInServer

JUDGED = Parameters(5, 0.0, 7, 5)
PRICE = Price(0.001, 0.01)
IDENTITY = "openai:here:m"
QUICK = Pace(still=0.04, first=0.01, longest=0.02)
Outcome = Answer | BaseException


def script(body: Mapping[str, Any]) -> ServerReply:
    return random.Random(json.dumps(body["messages"])).random()


def requests(count: int, start: int = 0, parameters: Parameters = JUDGED) -> list[Request]:
    return [make_request(IDENTITY, [("user", f"text {each}")], parameters) for each in range(start, start + count)]


class Asked:
    """A gateway with a model that asks in batches, and what it said."""

    def __init__(self, url: str, *, budget: Budget | None = None, attempts: int = 3, store: Any = None) -> None:
        self.said: list[str] = []
        retry = RetryPolicy(attempts, first=0.01, longest=0.02)
        self.model = BatchModel(
            "openai/m",
            "m",
            url,
            identity=IDENTITY,
            price=PRICE,
            retry=retry,
            say=self.said.append,
            on_wait=lambda why, seconds: self.said.append(why),
            pace=QUICK,
        )
        self.gateway = Gateway(store, budget, retry=retry)

    async def all(self, asked: list[Request]) -> list[Outcome]:
        calls = [self.gateway.ask("evaluator", self.model, each) for each in asked]
        return await asyncio.gather(*calls, return_exceptions=True)


@asynccontextmanager
async def asking(server: StandInServer, **how: Any) -> AsyncIterator[Asked]:
    asked = Asked(server.url, **how)
    try:
        yield asked
    finally:
        await asked.model.close()


def direct(url: str) -> DirectModel:
    return DirectModel("openai/m", "m", url, identity=IDENTITY, price=PRICE)


def records() -> list[Path]:
    return sorted((cache_directory() / "batches").glob("*"))


def answers(found: list[Outcome]) -> list[Answer]:
    assert all(isinstance(each, Answer) for each in found), found
    return [each for each in found if isinstance(each, Answer)]


def error_of(found: Outcome) -> ModelError:
    assert isinstance(found, ModelError), found
    return found
