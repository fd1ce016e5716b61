"""Shell completion, and hints for what is misspelt."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

pytestmark = pytest.mark.usefixtures("sandbox")


def complete(line: str) -> list[str]:
    """What bash would offer at the end of a line."""
    words = line.split(" ")
    more = {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1), "_ASKANCE_COMPLETE": "bash_complete"}
    command = [sys.executable, "-X", "importtime", "-m", "askance"]
    done = subprocess.run(command, env=os.environ | more, capture_output=True, text=True, check=True)
    complete.imported = done.stderr  # type: ignore[attr-defined]
    return done.stdout.splitlines()


def test_commands_are_completed_without_importing_them() -> None:
    assert complete("askance wat") == ["plain,watch"]
    assert "pydantic" not in complete.imported and "numpy" not in complete.imported  # type: ignore[attr-defined]
    assert complete("askance nonsense --x") == [""]


def test_options_models_and_files_are_completed() -> None:
    assert set(complete("askance evaluate --mod")) == {"plain,--mode", "plain,--model", "plain,--model-setting"}
    assert "plain,local/smollm2-135m-instruct" in complete("askance evaluate --model local/s")
    assert complete("askance evaluate --checklist che") == ["file,che"]
    assert complete("askance evaluate --mode ba") == ["plain,batched"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_each_shell_is_printed(cli: Any, shell: str) -> None:
    code, out, _ = cli("completion", shell)
    assert code == 0 and "_ASKANCE_COMPLETE" in out and "askance" in out


def test_an_option_that_is_misspelt_gets_a_hint(cli: Any) -> None:
    _, _, err = cli("evaluate", "--modle", "x")
    assert "--model" in err
    _, _, err = cli("wacth", "x")
    assert "Did you mean 'watch'?" in err
