"""A direct model at a stand-in server that answers from a function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from askance.models.base import Answer, ModelError, Parameters, make_request
from askance.models.direct import (
    DirectModel,
)
from askance.testing import StandInServer

KEY = "sk-very-secret-0123456789"
FULL = Parameters(9, 0.0, 7, 5, {"type": "object"})
PLAIN = Parameters(9)
Script = Callable[[Mapping[str, Any]], Any]


def make(url: str, timeout: float = 5.0) -> DirectModel:
    return DirectModel("openai/m", "m", url, identity="i", api_key=KEY, timeout=timeout)


async def ask(model: DirectModel, parameters: Parameters = PLAIN) -> Answer:
    return await model.answer(make_request("i", [("system", "s"), ("user", "é\ud800")], parameters))


async def ask_server(script: Script, parameters: Parameters = PLAIN) -> tuple[Answer | ModelError, StandInServer]:
    with StandInServer(script) as server:
        model = make(server.url)
        try:
            return await ask(model, parameters), server
        except ModelError as error:
            return error, server
        finally:
            await model.close()


async def error_from(script: Script, parameters: Parameters = PLAIN) -> ModelError:
    found, _ = await ask_server(script, parameters)
    assert isinstance(found, ModelError)
    return found


def reply(**choice: Any) -> tuple[int, Any]:
    message = {"role": "assistant", "content": choice.pop("content", "Yes")}
    return 200, {"choices": [{"message": message} | choice], "usage": {"prompt_tokens": 3, "completion_tokens": 1}}
