"""Every command that asks models, through a LiteLLM proxy that runs: `make test-proxy`."""

from __future__ import annotations

import os
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.doubles import VendorServer

from .test_providers import COMMANDS

PYTHON = os.environ.get("ASKANCE_TEST_LITELLM_PROXY", "")
KEY = "sk-master-0123456789abcdefghijklmnop"
CONFIGURATION = """
model_list:
  - model_name: judge
    litellm_params: {{model: azure/prod-judge, api_base: "{root}", api_key: none, api_version: 2025-04-01-preview}}
  - model_name: claude
    litellm_params: {{model: anthropic/claude-sonnet-4-5, api_base: "{root}", api_key: none}}
"""
pytestmark = pytest.mark.skipif(
    not PYTHON, reason="LiteLLM's proxy is not installed: make test-proxy, or ASKANCE_TEST_LITELLM_PROXY=its Python"
)


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, VendorServer]]:
    """The address of a proxy, and the stand-in for the vendors behind it."""
    folder = tmp_path_factory.mktemp("proxy")
    with VendorServer() as vendors, (folder / "log").open("w") as log:
        (folder / "config.yaml").write_text(CONFIGURATION.format(root=vendors.root), encoding="utf-8")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        command = [PYTHON, "-c", "from litellm import run_server; run_server()", "--config", folder / "config.yaml"]
        own = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_MASTER_KEY": KEY, "NO_DOCS": "True"}
        process = subprocess.Popen(
            [*command, "--host", "127.0.0.1", "--port", str(port)], env={**os.environ, **own}, stdout=log, stderr=log
        )
        try:
            _wait_for(f"http://127.0.0.1:{port}/health/liveliness", process, folder / "log")
            yield f"http://127.0.0.1:{port}/v1", vendors
        finally:
            process.terminate()
            process.wait(20)


def _wait_for(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(240):
        try:
            urllib.request.urlopen(url, timeout=2).close()
            return
        except OSError:
            assert process.poll() is None, log.read_text()
            time.sleep(0.5)
    raise AssertionError(f"the proxy did not start: {log.read_text()}")


@pytest.mark.parametrize("name", ["openai/claude", "openai/judge"])
@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_runs_through_a_proxy(
    command: str, name: str, proxy: tuple[str, VendorServer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, vendors = proxy
    monkeypatch.setenv("OPENAI_BASE_URL", url)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    COMMANDS[command](vendors, name, tmp_path / "run")
