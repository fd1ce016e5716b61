"""The file of a project's settings, from the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from askance.testing import StandInServer

from .said import says

pytestmark = pytest.mark.usefixtures("sandbox")


def test_a_config_file_sets_everything_with_paths_relative_to_itself(
    cli: Any, inputs: list[str], server: StandInServer, sandbox: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = {
        "data": "data.jsonl",
        "checklist": "checklist.yaml",
        "prompt": "prompt.md",
        "source-prompt": "source.md",
        "source": "openai/source",
        "target": "openai/target",
        "api-base": server.url,
        "run": "../runs/one",
        "embedder": "words",
        "update": "edits",
        "max_iterations": 3,
        "split": [0.3, 0.3, 0.4],
        "model": "openai/target",
    }
    (sandbox / "files" / "c.yaml").write_text(yaml.safe_dump(config))
    (sandbox / "elsewhere").mkdir()
    monkeypatch.chdir(sandbox / "elsewhere")
    done = cli("migrate", "--config", "../files/c.yaml", "--max-iterations", "1", "--json", "--quiet")
    assert done.code == 0
    kept = yaml.safe_load((sandbox / "runs" / "one" / "config.yaml").read_text())["config"]
    assert kept["max_iterations"] == 1, "the command line wins"
    assert json.loads(done.out)["iterations"] == 1


def test_an_unknown_setting_in_a_config_file_gets_a_hint(cli: Any, inputs: list[str]) -> None:
    Path("c.yaml").write_text("max_iteration: 3\n")
    done = cli("migrate", *inputs, "--run", "run", "--config", "c.yaml")
    assert done.code == 2
    assert says(done.err, "c.yaml", "max_iteration", "max_iterations")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("limit: ten", "c.yaml: limit: must be a valid integer"),
        ("limit: true", "c.yaml: limit: must be a number, not true"),
        ("human_scale: 5", "c.yaml: human_scale: must be a list, not 5."),
        ("field: output=summary", "c.yaml: field: must be a mapping, not output=summary."),
        ("disagreement_threshold: much", "c.yaml: disagreement_threshold: must be a valid number"),
    ],
)
def test_a_wrong_value_in_a_config_file_names_the_file(cli: Any, inputs: list[str], line: str, said: str) -> None:
    Path("c.yaml").write_text(line + "\n")
    done = cli("align", *inputs[:3], "--model", "openai/m", "--run", "run", "--config", "c.yaml")
    assert done.code == 2
    assert said in done.err


def test_an_address_at_which_no_model_is_asked_is_refused_and_in_a_projects_file_passed_over(
    cli: Any, inputs: list[str], server: StandInServer
) -> None:
    asked = ["evaluate", inputs[0], "--checklist", inputs[2], "--dry-run"]
    done = cli(*asked, "--model", "anthropic/claude", "--api-base", server.url)
    assert done.code == 2
    assert says(done.err, "--api-base", "anthropic/claude", "openai/NAME")
    assert server.url not in done.err, "an address may hold a password"
    Path("c.yaml").write_text(f"api_base: {server.url}\n")
    assert "api-base" not in cli(*asked, "--model", "anthropic/claude", "--config", "c.yaml").err
    both = ["align", inputs[0], "--checklist", inputs[2], "--run", "run", "--dry-run", "--api-base", server.url]
    assert "api-base" not in cli(*both, "--model", "openai/target", "--note-taker", "anthropic/claude").err
    assert "--api-base: only" in cli(*both, "--model", "local/x", "--note-taker", "anthropic/claude").err
