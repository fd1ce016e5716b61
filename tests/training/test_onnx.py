"""What is exported says the same without torch, and reads the same tokens."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from askance.evaluation.evaluate import evaluate
from askance.models.trained.bases import find_base
from askance.models.trained.network import SharedEncoder, open_network
from askance.models.trained.scored_text import OnnxEncoder, ScoredText, rows_of
from askance.models.trained.scorer_file import read_scorer
from askance.prompts.errors import InputError, MissingExtraError
from askance.training.train import train

from ..said import naming
from .conftest import CHECKLIST, SMALL, WORDS, made, said

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

QUESTIONS = ("nice", "damaged", *(" ".join(WORDS[at:]) for at in range(12)), *WORDS[:8])
OUTPUTS = (*(f"{each} good" for each in WORDS), "", "red " * 40, "blue broken warm soft slow fast")
GIVEN = SMALL | {"longest": 16, "levels": 3, "epochs": 1, "checklist": CHECKLIST}


@pytest.fixture(scope="module")
def place(tiny_base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A scorer that was trained, and then written as ONNX by the same command with ``--onnx``."""
    examples = made(60)
    place = tmp_path_factory.mktemp("onnx") / "scorer"
    first = train(examples, output=place, base=str(tiny_base), verdicts=said(examples), **GIVEN)
    weights, identity = (place / "model.safetensors").read_bytes(), read_scorer(place).identity
    assert not (place / "model.onnx").exists() and read_scorer(place).onnx is None
    again = train(examples, output=place, base=str(tiny_base), verdicts=said(examples), onnx=True, **GIVEN)
    assert again.data == first.data and (place / "model.safetensors").read_bytes() == weights
    assert read_scorer(place).onnx is not None and read_scorer(place).identity == identity
    return place


def both(place: Path) -> tuple[SharedEncoder, OnnxEncoder]:
    """The scorer as torch reads it, and as ONNX Runtime does."""
    file = read_scorer(place)
    network = open_network(place, file)
    assert isinstance(network, SharedEncoder)
    return network, OnnxEncoder.open(place, file)


def test_levels_are_those_of_torch(place: Path) -> None:
    network, without = both(place)
    texts = [ScoredText(asked, output, given) for output in OUTPUTS for given in ("", "tall 7") for asked in QUESTIONS]
    assert len(QUESTIONS) > 16 and len(OUTPUTS) > 8  # more than are read together
    by_torch, found = network.levels(texts).numpy(), without.levels(texts)
    assert found.shape == by_torch.shape == (len(texts), 3)
    assert abs(found - by_torch).max() < 1e-5
    assert abs(found - without.levels(texts[::-1])[::-1]).max() < 1e-5
    assert abs(without.levels(texts[:1]) - by_torch[:1]).max() < 1e-5
    assert without.tokens(texts) == network.tokens(texts) and max(without.tokens(texts)) > without.longest
    assert without.tokens([]) == []


def test_tokens_are_those_of_torch(place: Path, tmp_path: Path) -> None:
    base = find_base("minilm")
    tokenizer: Any = pytest.importorskip("transformers").AutoTokenizer.from_pretrained(base.place)
    hard = (
        "",
        " ",
        "Naïve Ünïcode — 漢字 😀!",
        "a [SEP] b [MASK]",
        "x\n\ny\tz",
        "l" * 300,
        "word " * 60,
        "can't  won't",
    )
    texts = [ScoredText(asked, output, given) for asked in hard[2:] for output in hard for given in hard]
    network = SharedEncoder(open_network(place, read_scorer(place))._model, tokenizer, 16)
    without = OnnxEncoder(None, saved(tokenizer, tmp_path), 2, 16)
    assert rows_of(texts, without._cut) == rows_of(texts, network._cut)
    assert without.tokens(texts) == network.tokens(texts)


def saved(tokenizer: Any, folder: Path) -> Any:
    """As a scorer's folder has it, with what it was last told about cutting and filling up."""
    tokenizer(["a", "a b"], truncation="only_first", max_length=3, padding=True)
    tokenizer.save_pretrained(folder)
    return pytest.importorskip("tokenizers").Tokenizer.from_file(str(folder / "tokenizer.json"))


def test_torch_is_not_imported_where_it_is_installed_either(place: Path) -> None:
    program = f"""
import sys
from askance.evaluation.evaluate import evaluate
from askance.prompts.checklist import Checklist, Question
checklist = Checklist(questions=(Question(id="good", text="nice"),))
evaluate([{{"id": "1", "input": "tall 7", "output": "red good"}}], model={str(place)!r}, checklist=checklist, no_cache=True)
assert "onnxruntime" in sys.modules and not {{"torch", "transformers"}} & set(sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_answers_are_of_one_scorer_with_and_without_torch(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    examples, given = made(30), {"model": str(place), "checklist": CHECKLIST}
    without = evaluate(examples, no_cache=True, **given).verdicts
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "onnxruntime", None)
        by_torch = evaluate(examples, store=tmp_path / "v.db", **given).verdicts
    assert [each.p_yes for each in without] == pytest.approx([each.p_yes for each in by_torch], abs=1e-5)
    assert evaluate(examples, store=tmp_path / "v.db", **given).budget.calls == 0


def test_a_damaged_file_is_written_again(place: Path, tiny_base: Path) -> None:
    examples, file = made(60), place / "model.onnx"
    before, scorer = file.read_bytes(), (place / "scorer.json").read_bytes()
    file.write_bytes(before[:-10])
    train(examples, output=place, base=str(tiny_base), verdicts=said(examples), onnx=True, **GIVEN)
    assert file.read_bytes() == before and (place / "scorer.json").read_bytes() == scorer


def test_what_cannot_be_written_is_said_before_training(
    tiny_base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def go(**given: Any) -> None:
        train(made(40), output=tmp_path / "s", **GIVEN | {"base": str(tiny_base), "onnx": True} | given)

    with pytest.raises(InputError, match=naming("onnx", "float32")):
        go(precision="bfloat16")
    (tmp_path / "base").mkdir()
    (tmp_path / "base/config.json").write_text('{"model_type": "distilbert"}')
    with pytest.raises(InputError, match=naming("no encoder")):
        go(base=str(tmp_path / "base"))
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingExtraError, match="the package onnx"):
        go()
    assert not (tmp_path / "s").exists()
