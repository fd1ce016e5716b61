"""A scorer that is asked without torch; the one in ``tests/data/onnx_scorer`` is written by ``tests/training/write_onnx_scorer.py``."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from askance.bridges.exports import export_judge
from askance.cli import main
from askance.evaluation.evaluate import evaluate
from askance.evaluation.judge_file import load_judge
from askance.evaluation.kept_judge import THIS_FOLDER, KeptJudge
from askance.evaluation.regression import check_regression
from askance.models.embedded.servers import available_threads
from askance.models.files import sha256_of_file
from askance.models.trained.scored_text import threads
from askance.models.trained.scorer_file import read_scorer
from askance.prompts.checklist import load_checklist
from askance.prompts.errors import AskanceError, InputError, MissingExtraError
from askance.prompts.prompt import Prompt
from tests.said import naming

pytest.importorskip("onnxruntime")
pytest.importorskip("tokenizers")

SCORER = Path(__file__).parents[1] / "data/onnx_scorer"
SAID = json.loads((SCORER / "said.json").read_text())
"""By torch: of each example the answers to both questions; of the last two what is read is cut off."""
ASK = """
import sys
from askance.cli import main
try:
    main(sys.argv[1:])
finally:
    print("LOADED", *sys.modules)
"""


def said(place: Path = SCORER, **given: Any) -> list[float | None]:
    options = {"data": SCORER / "examples.jsonl", "checklist": SCORER / "checklist.yaml", "no_cache": True} | given
    return [each.p_yes for each in evaluate(options.pop("data"), model=str(place), **options).verdicts]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return shutil.copytree(SCORER, tmp_path / "scorer")


def test_it_says_what_torch_says_and_torch_is_not_imported(tmp_path: Path) -> None:
    out = tmp_path / "verdicts.jsonl"
    command = ["evaluate", SCORER / "examples.jsonl", "--checklist", SCORER / "checklist.yaml", "--model", SCORER]
    done = subprocess.run(
        [sys.executable, "-c", ASK, *map(str, command), "--no-cache", "-o", str(out)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    loaded = set(done.stdout.rpartition("LOADED")[2].split())
    assert "onnxruntime" in loaded and not loaded & {"torch", "transformers"}
    assert [json.loads(line)["p_yes"] for line in out.read_text().splitlines()] == pytest.approx(SAID, abs=1e-5)


def test_what_it_says_to_one_does_not_depend_on_what_else_is_asked() -> None:
    lines = (SCORER / "examples.jsonl").read_text().splitlines()
    alone = [p for line in lines for p in said(data=[json.loads(line)])]
    assert alone == pytest.approx(SAID, abs=1e-5) and len(alone) == len(SAID) == 12


def test_it_is_the_same_model_as_the_one_that_torch_reads(copy: Path, tmp_path: Path) -> None:
    file = read_scorer(copy)
    assert file.onnx is not None and file.identity == file.model_copy(update={"onnx": None}).identity
    said(store=tmp_path / "v.db", no_cache=False)
    again = evaluate(
        SCORER / "examples.jsonl", model=str(copy), checklist=SCORER / "checklist.yaml", store=tmp_path / "v.db"
    )
    assert again.budget.calls == 0


def test_a_file_of_other_weights_or_a_damaged_one_is_refused(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, graph = read_scorer(copy), copy / "model.onnx"
    file.model_copy(update={"onnx": None}).write(copy)
    with pytest.raises(InputError, match=naming("model.onnx", "scorer.json")):
        said(copy)
    file.write(copy)
    graph.write_bytes(graph.read_bytes()[:-100])
    with pytest.raises(InputError, match=r"model\.onnx: damaged, or not"):
        said(copy)
    file.model_copy(update={"onnx": sha256_of_file(graph)}).write(copy)
    with pytest.raises(InputError, match=r"model\.onnx: cannot be read \("):
        said(copy)
    shutil.copy(SCORER / "model.onnx", copy)
    file.write(copy)
    (copy / "tokenizer.json").write_text("{}")
    with pytest.raises(InputError, match=r"tokenizer\.json: cannot be read \("):
        said(copy)
    (copy / "tokenizer.json").unlink()
    command = ["evaluate", SCORER / "examples.jsonl", "--checklist", SCORER / "checklist.yaml", "--model", copy]
    with pytest.raises(SystemExit) as left:
        main([*map(str, command), "--no-cache"])
    assert left.value.code == 2
    assert "tokenizer.json: cannot be read (" in capsys.readouterr().err


def test_what_has_to_be_installed_is_said(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingExtraError, match=r"askance\[scorer\]'$"):
        said(copy)
    (copy / "model.onnx").unlink()
    with pytest.raises(AskanceError, match=naming("weights")):
        said(copy)
    (copy / "model.safetensors").touch()
    empty = sha256_of_file(copy / "model.safetensors")
    file = read_scorer(copy).model_copy(update={"weights": empty})
    file.write(copy)
    with pytest.raises(InputError, match=naming("askance[train]", "--onnx", "model.onnx")):
        said(copy)
    file.model_copy(update={"kind": "cross-encoder"}).write(copy)
    with pytest.raises(MissingExtraError, match=r"askance\[train\]'$"):
        said(copy)


def test_threads_are_those_that_torch_would_take(monkeypatch: pytest.MonkeyPatch) -> None:
    for wanted, expected in (
        ("3", 3),
        ("", available_threads()),
        ("0", available_threads()),
        ("x", available_threads()),
    ):
        monkeypatch.setenv("OMP_NUM_THREADS", wanted)
        assert threads() == expected


def test_its_folder_is_a_judge_that_no_other_tool_can_ask(copy: Path) -> None:
    checklist = load_checklist(SCORER / "checklist.yaml")
    KeptJudge(THIS_FOLDER, Prompt("{input} {output} {question}"), checklist, threshold=0.5).save(copy)
    judge = load_judge(copy)
    assert judge.model == str(copy) and judge.checklist == checklist
    found = judge.evaluate(SCORER / "examples.jsonl", no_cache=True)
    assert [each.p_yes for each in found.verdicts] == said(copy)
    with pytest.raises(InputError, match=naming("trained scorer")):
        export_judge(copy, "python")


def test_a_baseline_knows_a_scorer_by_its_weights_and_not_by_its_folder(tmp_path: Path) -> None:
    checklist = load_checklist(SCORER / "checklist.yaml")
    for name in ("here", "there", "other"):
        shutil.copytree(SCORER, tmp_path / name)
        KeptJudge(THIS_FOLDER, Prompt("{input} {output} {question}"), checklist).save(tmp_path / name)
    other = tmp_path / "other" / "scorer.json"
    scorer = json.loads(other.read_text(encoding="utf-8"))
    other.write_text(json.dumps({**scorer, "shift": scorer["shift"] + 1.0}), encoding="utf-8")
    with_it: dict[str, Any] = {"data": SCORER / "examples.jsonl", "baseline": tmp_path / "base.json", "no_cache": True}
    check_regression(**with_it, judge=tmp_path / "here", update=True)
    assert not check_regression(**with_it, judge=tmp_path / "there").dropped
    with pytest.raises(InputError, match=naming("judge", "baseline")):
        check_regression(**with_it, judge=tmp_path / "other")
