from __future__ import annotations

import logging
import time
import traceback

import pytest

from askance.models.base import ModelError
from askance.models.direct import (
    DirectModel,
    check_address,
    default_base_url,
    shown_address,
)
from askance.models.session import ModelOptions
from askance.prompts.errors import InputError
from askance.testing import StandInServer

from .conftest import KEY, Script, ask, make

OPENAI = "https://api.openai.com/v1"


def everything_said(error: BaseException) -> str:
    """All that a log or a debugger shows of an error: its chain, and the values in it."""
    texts = []
    seen: list[BaseException] = []
    todo: list[BaseException | None] = [error]
    while todo:
        each = todo.pop()
        if each is None or each in seen:
            continue
        seen.append(each)
        texts += [str(each), repr(each), repr(each.args), repr(vars(each)), *traceback.format_exception(each)]
        todo += [each.__cause__, each.__context__]
    return "\n".join(texts)


@pytest.mark.parametrize(
    "script",
    [
        lambda body: (401, {"error": {"message": f"Incorrect API key provided: {KEY}"}}),
        lambda body: (400, f"headers were Bearer {KEY}"),
        lambda body: (500, "x" * 290 + KEY),
        lambda body: (200, "x" * 190 + KEY),
        lambda body: (200, {"error": KEY}),
        lambda body: time.sleep(0.3) or "late",
    ],
)
async def test_no_error_holds_the_key(script: Script, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with StandInServer(script) as server:
        model = make(server.url, timeout=0.2)
        with pytest.raises(ModelError) as caught:
            await ask(model)
        await model.close()
    said = everything_said(caught.value) + repr(model) + str(model) + caplog.text
    assert KEY not in said
    assert KEY[:12] not in said


async def test_a_key_that_is_a_letter_leaves_the_words_of_an_error_as_they_are() -> None:
    """Who needs no key gives a server any."""
    with StandInServer(
        lambda body: (400, {"error": {"message": "max_tokens exceeds 5; the key x is wrong"}})
    ) as server:
        model = DirectModel("openai/m", "m", server.url, identity="i", api_key="x")
        with pytest.raises(ModelError, match=r"max_tokens exceeds 5; the key \[key\] is wrong"):
            await ask(model)
        await model.close()


async def test_no_connection_error_holds_the_key() -> None:
    for url in ("http://127.0.0.1:1/v1", "http://", "http://no-such-host.invalid/v1"):
        model = make(url, timeout=2)
        with pytest.raises(ModelError) as caught:
            await ask(model)
        await model.close()
        assert KEY not in everything_said(caught.value)


def test_an_address_is_shown_without_what_may_be_a_secret() -> None:
    assert shown_address("https://user:pass@host:8000/v1?key=abc#x") == "https://host:8000/v1"
    assert shown_address("http://host/v1") == "http://host/v1"
    assert shown_address("http://[x]/v1") == "http://[x]/v1"
    for address in (
        "http://me:se/cret@host/v1",
        "http://me:se?cret@host/v1",
        "http://me:se#cret@host",
        "http://h?k=se@cret",
    ):
        assert "se" not in shown_address(address) and "cret" not in shown_address(address), address


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("http://me:secret@host/v1", "holds no user's name, password or query"),
        ("http://secret@host/v1", "holds no user's name"),
        ("http://host/v1?key=secret", "holds no user's name"),
        ("http://me:secret@[x]/v1", "no usable address"),
        ("http://me:se/secret@host/v1", "no usable address"),
        ("http://[x]/v1", r"--api-base http://\[x\]/v1: this is no usable address"),
        ("http://host:99999/v1", "no usable address"),
        ("http:///v1", "no usable address"),
        ("http://a b/v1", "no usable address"),
        ("localhost:8000", "begins with http"),
        ("ftp://me:secret@host", "begins with http"),
    ],
)
def test_an_address_that_cannot_be_kept_or_used_is_refused_and_no_password_shown(address: str, said: str) -> None:
    for refuse in (check_address, lambda given: ModelOptions(api_base=given)):
        with pytest.raises(InputError, match=said) as caught:
            refuse(address)
        assert "secret" not in everything_said(caught.value)


@pytest.mark.parametrize(
    "address", ["http://127.0.0.1:8000/v1", "https://[::1]:8000/v1", "https://host.example/a-b/v1/"]
)
def test_an_address_that_can_be_used_is_given_back(address: str) -> None:
    assert check_address(address) == address


def test_the_base_url_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://here/v1")
    assert default_base_url() == "http://here/v1"
    monkeypatch.setenv("OPENAI_BASE_URL", "")
    assert default_base_url() == OPENAI
