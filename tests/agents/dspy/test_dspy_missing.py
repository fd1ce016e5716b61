from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

from askance.prompts.errors import MissingExtraError


@pytest.mark.parametrize("name", ["agents.dspy.lm", "agents.dspy.signatures", "bridges.dspy_metric"])
def test_without_dspy_the_error_names_the_extra(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dspy", None)
    for known in [each for each in sys.modules if each.startswith("askance.") and "dspy" in each]:
        monkeypatch.delitem(sys.modules, known)
    with pytest.raises(MissingExtraError, match=r"pip install 'askance\[dspy\]'"):
        importlib.import_module(f"askance.{name}")


def test_the_note_taker_and_the_loop_load_no_dspy() -> None:
    program = "import sys, askance.agents.note_takers, askance.evaluation.evaluate; print('dspy' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "False"
