"""A user's type checker knows what askance exports and which settings a function takes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / ".venv" / "src"

pytest.importorskip("mypy")


def problems(code: str, folder: Path, kind: str = "error") -> list[str]:
    """Return what ``mypy --strict`` says of a user's file, one line an error, or a note."""
    file = folder / "user.py"
    file.write_text(code, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", str(ROOT / "pyproject.toml")]
    command += ["--cache-dir", str(SOURCES.parent / ".mypy"), str(file)]
    done = subprocess.run(command, cwd=SOURCES, env={"MYPYPATH": "."}, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return [line for line in done.stdout.splitlines() if f": {kind}: " in line]


def test_the_examples_of_the_readme_pass_a_strict_type_checker(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    assert problems("\n".join(blocks), tmp_path) == []


def test_public_names_are_exported_and_records_need_what_has_no_default_alone(tmp_path: Path) -> None:
    code = (
        "from askance import Checklist, Example, NamedModel, Prompt, Question, evaluate\n"
        'one = Checklist(questions=(Question(id="q", text="Is it so?"),))\n'
        'rows = [Example(id="1", input="i", output="o")]\n'
        'model = NamedModel(model="openai/m", thinking="low")\n'
        'print(evaluate(rows, checklist=one, model=model, prompt=Prompt("Judge."), split=None).means())\n'
    )
    (found,) = problems(code, tmp_path)  # evaluate has no setting "split"
    assert '"split"' in found


@pytest.mark.parametrize(
    ("setting", "named"), [('max_iterations="3"', "max_iterations"), ("max_iteration=3", "max_iteration")]
)
def test_a_setting_of_another_type_or_name_is_an_error(setting: str, named: str, tmp_path: Path) -> None:
    code = f'import askance\naskance.align("d", checklist="c", model="openai/m", run="r", {setting})\n'
    assert any(f'"{named}"' in each for each in problems(code, tmp_path))
    wrong = setting.split("=")[0].removesuffix("s") + "s=3"
    assert problems(code.replace(setting, wrong), tmp_path) == []


def test_what_is_awaited_has_the_settings_and_the_result_of_the_function_that_is_not(tmp_path: Path) -> None:
    code = (
        "import askance\n"
        "async def main() -> None:\n"
        '    found = await askance.aevaluate("d", checklist="c", model="openai/m", limit=3)\n'
        "    reveal_type(found)\n"
        '    kept = await askance.load_judge("run").aevaluate("d", limit=3)\n'
        "    reveal_type(kept)\n"
        '    one: askance.Judged = await askance.load_judge("run").ascore(input="i", output="o")\n'
        "    print(one.overall, one.passed, one.dimensions, one.verdicts[0].explanation)\n"
        '    await askance.aalign("d", checklist="c", model="openai/m", run="r", max_iteration=3)\n'
    )
    (found,) = problems(code, tmp_path)
    assert '"max_iteration"' in found
    told = [each for each in problems(code, tmp_path, "note") if "Revealed type" in each]
    assert len(told) == 2 and all("askance.evaluation.evaluation_result.Evaluation" in each for each in told)
