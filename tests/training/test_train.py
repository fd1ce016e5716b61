"""A scorer trained for real, on a network so small that it takes seconds: saved, loaded, asked, gone on with."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from askance.evaluation.evaluate import evaluate
from askance.models.trained.scorer_file import read_scorer
from askance.prompts.checklist import dump_checklist
from askance.prompts.errors import AskanceError, InputError
from askance.prompts.verdicts import save_verdicts
from askance.training import train as training
from askance.training.measured import calibration_error, price
from askance.training.train import train
from askance.training.trained import TrainResult
from askance.training.trainer import schedule

from .conftest import CHECKLIST, made, options, p_yes, said

pytest.importorskip("torch")
pytest.importorskip("transformers")

SMALL = options().model_dump(exclude_unset=True)


@pytest.fixture(scope="module")
def trained(tiny_base: Path, tmp_path_factory: pytest.TempPathFactory) -> TrainResult:
    examples = made(240, to_a_document=2)
    place = tmp_path_factory.mktemp("trained") / "scorer"
    return train(examples, checklist=CHECKLIST, output=place, base=str(tiny_base), verdicts=said(examples), **SMALL)


def test_all_losses_together_learn_the_teacher_and_people(trained: TrainResult) -> None:
    test = trained.data["test"]
    assert test["examples"] >= 30
    assert test["teacher"]["spearman"] > 0.8
    assert test["people"]["scorer"]["spearman"] > 0.8
    assert test["people"]["teacher"]["spearman"] == pytest.approx(1)
    assert trained.kept_share is not None and trained.kept_share > 0.8
    first, *_, last = trained.data["curve"]["validation"]
    assert {"cross_entropy", "squared_error", "preference", "loss", "epoch"} == {*first}
    assert last["loss"] < first["loss"]


def test_a_scorer_is_a_model_wherever_one_is_named(trained: TrainResult, tmp_path: Path) -> None:
    place = trained.data["scorer"]
    examples = made(80)
    found = evaluate(examples, model=place, checklist=CHECKLIST, cache=tmp_path / "v.db")
    assert found.coverage.share == 1 and found.budget.calls == 160
    right = [
        (each.p_yes > 0.5) == (p_yes(each.question, examples[int(each.example[1:])].output or "") > 0.5)
        for each in found.verdicts
    ]
    assert sum(right) / len(right) > 0.9
    again = evaluate(examples, model=place, checklist=CHECKLIST, cache=tmp_path / "v.db")
    assert again.budget.calls == 0 and again.verdicts == found.verdicts
    alone = evaluate(examples[:1], model=place, checklist=CHECKLIST, no_cache=True)
    assert [each.p_yes for each in alone.verdicts] == pytest.approx(
        [each.p_yes for each in found.verdicts[:2]], abs=2e-6
    )
    hard = evaluate(examples[:3], model=place, checklist=CHECKLIST, no_cache=True, p_yes="hard")
    assert [each.answer for each in hard.verdicts] == [each.answer for each in found.verdicts[:6]]


@pytest.mark.parametrize("given", [{"mode": "batched"}, {"explain": "always"}, {"scores": "expected"}])
def test_a_scorer_is_asked_for_nothing_but_yes_or_no(trained: TrainResult, given: dict[str, Any]) -> None:
    with pytest.raises(AskanceError, match="single yes-or-no questions"):
        evaluate(made(3), model=trained.data["scorer"], checklist=CHECKLIST, no_cache=True, **given)


def test_other_weights_are_another_model(trained: TrainResult, tmp_path: Path) -> None:
    place = Path(trained.data["scorer"])
    file = read_scorer(place)
    assert file.identity != file.model_copy(update={"weights": "0" * 64}).identity
    assert file.identity != file.model_copy(update={"slope": 2.0}).identity
    copy = tmp_path / "copy"
    copy.mkdir()
    for each in place.iterdir():
        (copy / each.name).write_bytes(each.read_bytes())
    weights = copy / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-4] + b"\0\0\0\0")
    with pytest.raises(InputError, match=r"not those that scorer\.json is about"):
        evaluate(made(2), model=str(copy), checklist=CHECKLIST, no_cache=True)
    weights.unlink()
    with pytest.raises(InputError, match="the scorer's weights are not there"):
        evaluate(made(2), model=str(copy), checklist=CHECKLIST, no_cache=True)


@pytest.mark.parametrize("weights", [(1, 0, 0), (0, 1, 0), (0, 0, 1)])
@pytest.mark.parametrize("levels", [2, 7])
def test_each_loss_alone_learns(tiny_base: Path, tmp_path: Path, weights: Any, levels: int) -> None:
    examples = made(240, to_a_document=2)
    given = SMALL | {"loss_weights": weights, "levels": levels, "epochs": 4}
    found = train(
        examples, checklist=CHECKLIST, output=tmp_path / "s", base=str(tiny_base), verdicts=said(examples), **given
    )
    assert found.data["test"]["people"]["scorer"]["spearman"] > 0.5


def test_the_same_command_twice_looks_at_test_once(trained: TrainResult, tiny_base: Path) -> None:
    examples = made(240, to_a_document=2)
    place = Path(trained.data["scorer"])
    before = (place / "train.json").stat().st_mtime_ns
    given: dict[str, Any] = {
        "checklist": CHECKLIST,
        "output": place,
        "base": str(tiny_base),
        "verdicts": said(examples),
    }
    again = train(examples, **given, **SMALL)
    assert (
        again.data == json.loads((place / "train.json").read_text())
        and (place / "train.json").stat().st_mtime_ns == before
    )
    with pytest.raises(InputError, match="a scorer of other data or settings"):
        train(examples, **given, **SMALL | {"seed": 1})


def test_a_training_that_was_killed_goes_on_to_the_same_weights(tiny_base: Path, tmp_path: Path) -> None:
    examples = made(120, to_a_document=2)
    (tmp_path / "data.jsonl").write_text(
        "".join(each.model_dump_json(exclude_defaults=True) + "\n" for each in examples)
    )
    (tmp_path / "c.yaml").write_text(dump_checklist(CHECKLIST))
    save_verdicts(tmp_path / "v.jsonl", said(examples))
    arguments = [
        *("data.jsonl", "--checklist", "c.yaml", "--verdicts", "v.jsonl", "--base", str(tiny_base), "--longest", "32"),
        *("--learning-rate", "0.005", "--epochs", "4", "--batch-size", "8", "--patience", "9"),
    ]
    program = (
        "import sys; from askance.training import trainer; trainer.EVERY = 0\n"
        "from askance.cli import main; main(['train', *sys.argv[1:]])"
    )

    def start(place: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", program, *arguments, "-o", place]
        return subprocess.Popen(command, cwd=tmp_path, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    assert start("whole").wait() == 0
    killed = 0
    while killed < 2:
        process = start("parts")
        file, seen = tmp_path / "parts/checkpoints/checkpoint.pt", None
        before = file.stat().st_mtime_ns if file.is_file() else None
        while process.poll() is None and (seen is None or seen == before):
            time.sleep(0.002)
            seen = file.stat().st_mtime_ns if file.is_file() else None
        assert process.poll() is None, process.communicate()
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        killed += 1
    assert not (tmp_path / "parts/train.json").exists()
    last = start("parts")
    _, said_ = last.communicate()
    assert last.returncode == 0, said_
    assert "Going on from the checkpoint" in said_
    assert (tmp_path / "parts/model.safetensors").read_bytes() == (tmp_path / "whole/model.safetensors").read_bytes()
    whole, parts = (json.loads((tmp_path / each / "train.json").read_text()) for each in ("whole", "parts"))
    assert parts["test"] == whole["test"] and parts["curve"]["training"] == whole["curve"]["training"]
    assert not (tmp_path / "parts/checkpoints").exists()


def test_training_ends_where_validation_gains_nothing(tiny_base: Path, tmp_path: Path) -> None:
    examples = made(60)
    given = SMALL | {"learning_rate": 1e-9, "epochs": 8, "patience": 1}
    found = train(examples, checklist=CHECKLIST, output=tmp_path / "s", base=str(tiny_base), **given)
    curve = found.data["curve"]
    assert curve["stopped_early"] or curve["best_epoch"] == 8
    assert len(curve["validation"]) <= 9


def test_what_cannot_be_trained_is_said(tiny_base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def go(**given: Any) -> TrainResult:
        place = given.pop("output", tmp_path / "s")
        base = given.pop("base", str(tiny_base))
        return train(made(40), checklist=CHECKLIST, output=place, base=base, **SMALL | given)

    with pytest.raises(InputError, match="there is no such folder"):
        go(base="./nowhere")
    with pytest.raises(InputError, match=r"no config\.json"):
        go(base=str(tmp_path))
    with pytest.raises(InputError, match="reads 64 tokens at most"):
        go(longest=65)
    with pytest.raises(InputError, match="loss_weights"):
        go(loss_weights=(0, 0, 0))
    (tmp_path / "other").mkdir()
    (tmp_path / "other/precious.txt").write_text("x")
    with pytest.raises(InputError, match="something else here"):
        go(output=tmp_path / "other")
    monkeypatch.setattr(training, "ROOM", 1e12)
    with pytest.raises(AskanceError, match="GB on this disk"):
        go()


def test_texts_that_are_cut_are_said_with_their_share(tiny_base: Path, tmp_path: Path) -> None:
    long = [
        each.model_copy(update={"input": f"{each.input} " + "old " * (40 if int(each.id[1:]) < 10 else 0)})
        for each in made(40)
    ]
    found = train(long, checklist=CHECKLIST, output=tmp_path / "s", base=str(tiny_base), **SMALL | {"epochs": 1})
    assert found.data["cut"]["share"] == pytest.approx(0.25)
    assert any("25.0% of the texts are longer than the 32 tokens" in each for each in found.data["remarks"])


def test_a_full_disk_stops_with_what_to_do(tiny_base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    def full(*_: Any) -> None:
        raise RuntimeError("[enforce fail at inline_container.cc:603] . unexpected pos 64 vs 0")

    monkeypatch.setattr(torch, "save", full)
    with pytest.raises(AskanceError, match=r"best\.pt: cannot be written .* run the same command again"):
        train(made(40), checklist=CHECKLIST, output=tmp_path / "s", base=str(tiny_base), **SMALL)


def test_verdicts_of_two_judges_are_refused(tiny_base: Path, tmp_path: Path) -> None:
    from dataclasses import replace

    examples = made(40)
    two = [*said(examples), *(replace(each, model="openai/other", replicate=1) for each in said(examples))]
    with pytest.raises(InputError, match=r"of 2 judges .*openai/other, openai/teacher"):
        train(examples, checklist=CHECKLIST, output=tmp_path / "s", base=str(tiny_base), verdicts=two)


def test_the_schedule_rises_and_falls() -> None:
    rates = [schedule(step, 100) for step in range(100)]
    assert rates[0] == pytest.approx(0.1) and rates[9] == 1 and rates[10] == 1
    assert rates[10:] == sorted(rates[10:], reverse=True) and rates[99] < 0.001


def test_calibration_error_and_break_even() -> None:
    import numpy as np

    assert calibration_error(np.array([0.05, 0.05, 0.95, 0.95]), np.array([0.0, 0.5, 1.0, 1.0])) == pytest.approx(0.125)
    found = price(3600.0, 36.0, options(teacher_price=0.001, machine_price=1.0, teacher_seconds=0.02))
    assert found["break_even_money"]["verdicts"] == 1011  # 1 dollar over .001 - .036 / 3600
    assert found["break_even_time"]["reason"] == "a verdict of the teacher takes no more"
    assert "--teacher-price" in price(1.0, 1.0, options())["break_even_money"]["reason"]
