from __future__ import annotations

import errno
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from askance.models.base import Parameters, make_request
from askance.models.files import sha256_of_file
from askance.models.resolve import Models
from askance.prompts.errors import AskanceError, InputError, MissingExtraError
from askance.testing import ScriptedModel, StandInServer
from tests.said import naming, says

NAME = "qwen2.5-coder-1.5b-instruct"


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ASKANCE_CACHE", str(tmp_path / "cache"))
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def refusal(name: Any, **options: Any) -> str:
    with pytest.raises(AskanceError) as caught:
        Models(**options).get(name)
    assert caught.value.exit_code == 2
    return str(caught.value)


@pytest.mark.parametrize("name", ["gpt-4o", "openai/", "/x", "", "/", "x" * 300])
def test_a_name_without_provider_or_model_is_refused_with_an_example(name: str) -> None:
    assert says(refusal(name), f"'{name}'", "provider/model")


def test_a_folder_is_a_trained_scorer_or_refused_with_what_is_wrong_in_it(tmp_path: Path) -> None:
    place = tmp_path / "scorer"
    place.mkdir()
    assert says(refusal(str(place)), "no trained scorer")
    file = place / "scorer.json"
    row: dict[str, Any] = {"schema": "askance.scorer/1", "kind": "cross-encoder", "base": "minilm", "levels": 2}
    row |= {"longest": 128, "weights": "0" * 64}
    file.write_text(json.dumps(row | {"levels": 1}))
    assert f"{file}: field 'levels'" in refusal(str(place))
    file.write_text(json.dumps(row))
    assert says(refusal(str(place)), "model.safetensors", "weights")
    (place / "model.safetensors").touch()
    scorer = Models().get(f"{place}/")
    assert scorer.identity.startswith("scorer:")
    assert says(refusal(str(place), batches=lambda: None), "--engine batch")
    file.write_text(json.dumps(row | {"shift": 0.5}))
    assert Models().get(str(place)).identity != scorer.identity


@pytest.mark.parametrize("model", [["openai/a", "openai/b"], None, Path("scorer")])
def test_what_is_neither_a_name_nor_a_model_is_refused(model: Any) -> None:
    assert says(refusal(model), "an object", type(model).__name__)


async def test_a_name_is_one_model_and_a_model_is_itself() -> None:
    async with Models(api_base="http://127.0.0.1:1/v1") as models:
        assert models.get("openai/a") is models.get("openai/a")
        assert models.get("openai/a") is not models.get("openai/b")
        own = ScriptedModel([])
        assert models.get(own) is own


def test_identity_tells_models_and_endpoints_apart_but_not_a_slash_at_the_end() -> None:
    def identity(base: str, name: str) -> str:
        return Models(api_base=base).get(name).identity

    assert identity("http://a/v1", "openai/m") == identity("http://a/v1/", "openai/m")
    assert len({identity("http://a/v1", "openai/m"), identity("http://b/v1", "openai/m")}) == 2
    assert len({identity("http://a/v1", "openai/m"), identity("http://a/v1", "openai/org/m")}) == 2


async def test_a_model_name_may_hold_slashes_and_the_key_goes_along(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", " sk-123456 \n")
    with StandInServer(lambda body: "x") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        async with Models() as models:
            model = models.get("openai/org/m:free")
            await model.answer(make_request(model.identity, [("user", "x")], Parameters(1)))
    assert server.bodies[0]["model"] == "org/m:free"
    assert server.headers[0]["Authorization"] == "Bearer sk-123456"


def test_openai_itself_needs_a_key_and_another_server_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    assert says(refusal("openai/gpt-4o"), "OPENAI_API_KEY")
    monkeypatch.setenv("OPENAI_API_KEY", "")
    assert says(refusal("openai/gpt-4o"), "OPENAI_API_KEY")
    assert Models(api_base="http://127.0.0.1:1/v1").get("openai/gpt-4o").name == "openai/gpt-4o"


def test_a_key_that_cannot_be_sent_is_refused_without_being_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1\nsk-2")
    message = refusal("openai/gpt-4o")
    assert "line break" in message
    assert "sk-" not in message


def test_an_address_without_a_scheme_is_refused() -> None:
    assert says(refusal("openai/m", api_base="localhost:8000/v1"), "http://", "https://")


def test_an_embedded_model_that_is_not_there_is_refused_with_the_command() -> None:
    message = refusal("local/qwen2.5-coder-1.5b-instruct")
    assert says(message, "this machine", "1.1 GB")
    assert says(message, "models pull", NAME)


def test_an_unknown_embedded_model_gets_a_hint() -> None:
    assert says(refusal(f"local/{NAME[:-1]}"), "Did you mean", f"'{NAME}'")


@pytest.mark.parametrize("name", ["nowhere.gguf", "~nobody-of-this-name/m.gguf", f"{'x' * 300}.gguf"])
def test_a_file_that_is_not_there_is_said(name: str) -> None:
    assert says(refusal(f"local/{name}"), "no file", name)


def test_a_file_that_cannot_be_read_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_: Path) -> str:
        raise PermissionError(errno.EACCES, "Permission denied")

    (tmp_path / "m.gguf").write_bytes(b"GGUF")
    monkeypatch.setattr("askance.models.resolve.file_identity", refused)
    assert f"The model file {tmp_path}/m.gguf cannot be read: Permission denied." in refusal(f"local/{tmp_path}/m.gguf")


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a name is text")
def test_a_file_whose_name_is_no_text_has_an_identity(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"m\xff.gguf")
    path.write_bytes(b"GGUF")
    assert Models().get(f"local/{path}").identity == f"local:{sha256_of_file(path)}"


def test_a_gguf_file_is_a_model_by_its_content(tmp_path: Path) -> None:
    for name in ("a.gguf", "b.gguf"):
        (tmp_path / name).write_bytes(b"GGUF" + b"\0" * 32)
    (tmp_path / "c.gguf").write_bytes(b"GGUF" + b"\1" * 32)
    models = Models()
    identities = [models.get(f"local/{tmp_path}/{name}.gguf").identity for name in "abc"]
    assert identities[0] == identities[1] != identities[2]


def test_other_providers_need_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "litellm", None)
    message = refusal("anthropic/claude-sonnet-4-5")
    assert "askance[providers]" in message
    assert "Did you mean" not in message


@pytest.mark.parametrize(("name", "meant"), [("opnai/gpt-4o", "openai"), ("Local/qwen3-4b", "local")])
def test_a_provider_written_wrong_gets_a_hint(monkeypatch: pytest.MonkeyPatch, name: str, meant: str) -> None:
    monkeypatch.setitem(sys.modules, "litellm", None)
    with pytest.raises(MissingExtraError, match=f"Did you mean '{meant}'"):
        Models().get(name)


async def test_connections_are_closed_with_the_models() -> None:
    with StandInServer(lambda body: "x") as server:
        async with Models(api_base=server.url) as models:
            model = models.get("openai/m")
            await model.answer(make_request(model.identity, [("user", "x")], Parameters(1)))
            session: Any = vars(model)["_session"]
        assert session.closed


async def test_a_cap_on_money_is_refused_where_the_price_is_not_known() -> None:
    async with Models(api_base="http://127.0.0.1:9/v1", need_prices=True) as models:
        with pytest.raises(InputError, match=naming("--cost-budget")):
            models.get("openai/own-judge")
