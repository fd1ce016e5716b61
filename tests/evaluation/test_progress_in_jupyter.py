"""Progress in a real Jupyter kernel, whose event loop is running while the call is made."""

from __future__ import annotations

from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat", reason="needs: pip install nbclient ipykernel")
nbclient = pytest.importorskip("nbclient", reason="needs: pip install nbclient ipykernel")
pytest.importorskip("ipykernel", reason="needs: pip install nbclient ipykernel")
pytestmark = pytest.mark.usefixtures("sandbox")

CELLS = (
    """
import askance
from askance.testing import ScriptedModel

rows = [{"id": f"e{n}", "input": f"{n}", "output": "<b>"} for n in range(30)]
checklist = askance.Checklist(task="Do.", questions=[askance.Question(id="a", text="Is it right?")])
""",
    "askance.evaluate(rows, checklist=checklist, model=ScriptedModel(lambda _: 0.7, slots=1, delay=0.02), no_cache=True)",
    "askance.evaluate(rows, checklist=checklist, model=ScriptedModel(lambda _: 0.7), no_cache=True, progress=False)",
)


@pytest.mark.parametrize("call", ["askance.evaluate", "await askance.aevaluate"])
def test_a_cell_shows_progress_while_it_runs_and_the_result_after(call: str) -> None:
    heard: list[tuple[int, str, str]] = []

    class Client(nbclient.NotebookClient):  # type: ignore[misc, name-defined]
        def process_message(self, message: Any, cell: Any, index: int) -> Any:
            if message["msg_type"] in ("display_data", "update_display_data", "stream", "error"):
                heard.append((index, message["msg_type"], message["content"].get("data", {}).get("text/plain", "")))
            return super().process_message(message, cell, index)

    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(each.replace("askance.evaluate", call)) for each in CELLS]
    )
    Client(notebook, timeout=60, kernel_name="python3").execute()
    assert [kind for index, kind, _ in heard if index == 1][:2] == ["display_data", "update_display_data"]
    assert {index for index, _, _ in heard} == {1}
    assert any("about" in text and " of 30" in text for _, _, text in heard), "it is shown while the cell runs"
    progress, result = notebook.cells[1].outputs
    assert progress.data["text/plain"].startswith("askance: done in ")
    assert result.data["text/plain"].startswith("Evaluation: 30 examples by scripted/model\n  mean score 0.700")
    assert "<b>Evaluation</b>" in result.data["text/html"]
    assert [each.output_type for each in notebook.cells[2].outputs] == ["execute_result"]
