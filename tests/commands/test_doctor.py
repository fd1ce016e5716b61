"""What ``askance doctor`` looks at, and what it prints."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web

from askance.commands.doctor import (
    Checked,
    _server,
    check_embedded,
    check_files,
    check_models,
    check_packages,
    check_store,
    declared_requirements,
    models_of_config,
)
from askance.memory.verdict_store import VerdictStore
from askance.models.base import Answer
from askance.models.embedded.registry import RegisteredModel
from askance.models.files import remember_identity
from askance.testing import StandInServer

from ..said import says

pytestmark = pytest.mark.usefixtures("sandbox")


def test_what_is_declared_is_what_pip_knows() -> None:
    declared = declared_requirements()
    assert declared is not None
    assert {"pydantic", "numpy", "click"} <= {each.name for each in declared[""]}
    assert {"local", "memory", "providers", "notebook", "inspect"} <= set(declared)


def test_a_missing_extra_has_its_command_and_is_not_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(name: str) -> str:
        if name == "xllamacpp":
            raise metadata.PackageNotFoundError(name)
        return {"litellm": "1.82.7"}.get(name, "9999")

    monkeypatch.setattr("askance.commands.doctor.metadata.version", version)
    lines = {each.name: each for each in check_packages()}
    assert lines["local"].state == "missing" and lines["local"].do == "pip install 'askance[local]'"
    assert not lines["local"].fails
    assert lines["providers"].state == "broken" and "litellm 1.82.7 is installed" in lines["providers"].said
    assert lines["askance"].fails and says(lines["askance"].said, "click 9999", "<9,>=8.1")
    assert "all" not in lines and "dev" not in lines


def test_models_are_resolved_and_no_key_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    names = ["openai/judge", "local/nothing", "local/smollm", "nonsense", "openai/judge"]
    lines = check_models(names, api_base="http://127.0.0.1:1/v1", connect=False)
    states = {each.name: each for each in lines}
    assert len(lines) == 4
    assert states["openai/judge"].state == "ok" and states["openai/judge"].said == "OPENAI_API_KEY is set"
    assert says(states["local/nothing"].said, "No embedded model", "'nothing'") and states["local/nothing"].fails
    assert "Did you mean 'smollm2-135m-instruct'?" in states["local/smollm"].said
    assert "Write provider/model" in states["nonsense"].said
    assert "secret" not in "".join(str(each.to_dict()) for each in lines)


def test_a_server_that_is_not_there_is_broken() -> None:
    lines = check_models(["openai/judge"], api_base="http://127.0.0.1:1/v1")
    assert lines[-1].fails and "does not answer" in lines[-1].said


def test_a_password_in_the_servers_address_is_refused_and_not_shown() -> None:
    [line] = check_models(["openai/judge"], api_base="http://user:secret@127.0.0.1:1/v1")
    assert line.fails and says(line.said, "no user's name", "password", "query")
    assert "secret" not in str(line.to_dict())


@pytest.mark.parametrize(
    ("status", "body", "states", "said"),
    [
        (200, {"data": [{"id": "judge-1"}, {"id": "other"}]}, ["ok", "missing"], "Did you mean 'judge-1'"),
        (200, {"data": [{"id": "judge"}]}, ["ok"], "lists 1 models"),
        (401, {}, ["broken"], "refuses the key (HTTP 401)"),
        (404, {}, ["ok"], "does not say which models it has"),
        (503, {"error": {"message": "Loading model"}}, ["broken"], "fails (HTTP 503)"),
        (200, ["what"], ["ok"], "does not say which models it has"),
    ],
)
async def test_what_a_server_says_about_its_models(status: int, body: Any, states: list[str], said: str) -> None:
    async def models(request: web.Request) -> web.Response:
        return web.json_response(body, status=status)

    app = web.Application()
    app.router.add_get("/v1/models", models)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        lines = await _server(f"http://127.0.0.1:{runner.addresses[0][1]}/v1", ["judge"])
    finally:
        await runner.cleanup()
    assert [each.state for each in lines] == states
    assert said in " ".join(each.said for each in lines)
    assert [each.fails for each in lines] == [state == "broken" for state in states]


def test_an_address_without_v1_is_told_how_it_ends() -> None:
    with StandInServer(lambda body: 0.5) as server:
        [_, there] = check_models(["openai/judge"], api_base=server.url)
        [_, short] = check_models(["openai/judge"], api_base=server.url.removesuffix("/v1"))
    assert there.do is None and "ends with /v1" in (short.do or "")


def test_the_models_of_a_configuration_are_found_once_each() -> None:
    values = {"source": "a/b", "target": "c/d", "updater": "a/b", "panel": ["e/f"], "max_iterations": 3, "writer": None}
    assert models_of_config(values) == ["a/b", "c/d", "e/f"]
    assert models_of_config({"model": ["a/b", "c/d"], "panel": "c/d, e/f"}) == ["a/b", "c/d", "e/f"]


def test_the_store_is_read_and_damage_is_told(tmp_path: Path) -> None:
    path = tmp_path / "verdicts.db"
    assert check_store(path).state == "ok" and not path.exists()
    with VerdictStore(path) as store:
        store.put(b"k", Answer("yes"))
    assert check_store(path).state == "ok" and "1 answers" in check_store(path).said
    path.write_bytes(b"no database" * 1000)
    broken = check_store(path)
    assert broken.fails and "cannot be read" in broken.said and broken.do


def test_a_store_of_a_newer_askance_is_told(tmp_path: Path) -> None:
    path = tmp_path / "verdicts.db"
    VerdictStore(path).close()
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version=99")
    assert check_store(path).do == "update askance"


def test_an_embedded_model_is_checked_by_size_and_known_hash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASKANCE_CACHE", str(tmp_path))
    data = b"weights"
    model = RegisteredModel("m", "m.gguf", len(data), hashlib.sha256(data).hexdigest(), "MIT", "", ())

    def check() -> Checked:
        return check_embedded(model, tmp_path)

    assert check().state == "missing" and "askance models pull m" in str(check().do)
    file = tmp_path / "models" / "m.gguf"
    file.parent.mkdir()
    file.write_bytes(data)
    assert check().state == "ok" and says(check().said, "is used")
    remember_identity(file, model.sha256)
    assert says(check().said, "size", "hash", "right")
    remember_identity(file, "0" * 64)
    assert check().state == "broken"
    file.write_bytes(b"short")
    assert check().state == "broken" and "5 bytes" in check().said


def test_a_folder_that_cannot_be_written_is_broken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert all(not each.fails for each in check_files())
    assert not (tmp_path / "cache").exists(), "nothing is made"

    def full(**_: Any) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("askance.commands.doctor.tempfile.TemporaryFile", full)
    broken = [each for each in check_files() if each.fails]
    assert [each.name for each in broken] == ["cache", "here"] and "Read-only file system" in broken[0].said


def test_doctor_without_a_model_says_how_to_name_one(cli: Any) -> None:
    _, out, _ = cli("doctor")
    assert says(out, "No model")
    assert "embedded models" in out and "verdict cache" in out


def test_doctor_takes_the_models_of_a_configuration_and_fails_on_one_that_cannot_work(cli: Any, sandbox: Path) -> None:
    config = {"target": "openai/judge", "source": "local/no-such-model", "api_base": "http://127.0.0.1:1/v1"}
    (sandbox / "c.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    code, out, _ = cli("doctor", "--config", "c.yaml", "--offline", "--json")
    found = json.loads(out)
    states = {each["name"]: each["state"] for each in found["checked"] if each["area"] == "models"}
    assert states == {"local/no-such-model": "broken", "openai/judge": "ok"}
    assert code == 1 and found["ok"] is False
    code, out, _ = cli("doctor", "--config", "c.yaml", "--model", "openai/judge")
    assert code == 1 and "does not answer" in out and says(out, "not working")


def test_doctor_shows_no_key(cli: Any, sandbox: Path) -> None:
    (sandbox / ".env").write_text("OPENAI_API_KEY=sk-very-secret\n", encoding="utf-8")
    try:
        _, out, _ = cli("doctor", "--model", "openai/judge", "--offline")
    finally:
        os.environ.pop("OPENAI_API_KEY", None)
    assert "OPENAI_API_KEY is set" in out and "secret" not in out
