"""A scorer trained for real, on a network so small that it takes seconds: saved, loaded, asked, gone on with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from askance.evaluation.evaluate import evaluate
from askance.models.trained.network import open_network
from askance.models.trained.scored_text import ScoredText, scored_text
from askance.models.trained.scorer_file import ScorerFile, read_scorer
from askance.prompts.checklist import Checklist
from askance.prompts.errors import AskanceError, InputError
from askance.prompts.preferences import Preference
from askance.prompts.verdicts import save_verdicts
from askance.stats.pass_fail import rate
from askance.training import trainer
from askance.training.measured import ScorerReader, calibration_error, figures_on_test, price
from askance.training.mixture import PARTS, preference_items
from askance.training.scorer_folder import TrainResult
from askance.training.train import train
from askance.training.trainer import schedule

from ..said import naming, says
from .conftest import CHECKLIST, SMALL, made, options, p_yes, said

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")


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
    assert test["verdicts"]["n"] == 2 * test["examples"] and test["verdicts"]["pearson"] > 0.9
    assert {row["on"] for row in trained.view().shown_tables()["test"]} == {"all", "good", "broken"}
    assert test["people"]["teacher"]["spearman"] == pytest.approx(1)
    assert trained.kept_share is not None and trained.kept_share > 0.8
    first, *_, last = trained.data["curve"]["validation"]
    assert {"cross_entropy", "squared_error", "preference", "loss", "epoch"} == {*first}
    assert last["loss"] < first["loss"]


def test_a_scorer_is_a_model_wherever_one_is_named(trained: TrainResult, tmp_path: Path) -> None:
    place = trained.data["scorer"]
    examples = made(80)
    found = evaluate(examples, model=place, checklist=CHECKLIST, store=tmp_path / "v.db")
    assert found.coverage.share == 1 and found.budget.calls == 160
    right = [
        (each.p_yes > 0.5) == (p_yes(each.question, examples[int(each.example[1:])].output or "") > 0.5)
        for each in found.verdicts
    ]
    assert sum(right) / len(right) > 0.9
    again = evaluate(examples, model=place, checklist=CHECKLIST, store=tmp_path / "v.db")
    assert again.budget.calls == 0 and again.verdicts == found.verdicts
    alone = evaluate(examples[:1], model=place, checklist=CHECKLIST, no_cache=True)
    assert [each.p_yes for each in alone.verdicts] == pytest.approx(
        [each.p_yes for each in found.verdicts[:2]], abs=2e-6
    )
    hard = evaluate(examples[:3], model=place, checklist=CHECKLIST, no_cache=True, p_yes="hard")
    assert [each.answer for each in hard.verdicts] == [each.answer for each in found.verdicts[:6]]


@pytest.mark.parametrize("given", [{"mode": "batched"}, {"explain": "always"}, {"scores": "expected"}])
def test_a_scorer_is_asked_for_nothing_but_yes_or_no(trained: TrainResult, given: dict[str, Any]) -> None:
    with pytest.raises(AskanceError, match=naming("yes-or-no questions")):
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
    with pytest.raises(InputError, match=naming("do not belong", "scorer.json")):
        evaluate(made(2), model=str(copy), checklist=CHECKLIST, no_cache=True)
    weights.unlink()
    with pytest.raises(InputError, match=naming("scorer's weights")):
        evaluate(made(2), model=str(copy), checklist=CHECKLIST, no_cache=True)


@pytest.mark.parametrize("weights", [(1, 0, 0), (0, 1, 0), (0, 0, 1)])
@pytest.mark.parametrize("levels", [2, 7])
def test_each_loss_alone_learns(tiny_base: Path, tmp_path: Path, weights: Any, levels: int) -> None:
    examples = made(480, to_a_document=4)
    given = SMALL | {"loss_weights": weights, "levels": levels}
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
    counted = train(examples, **given, **SMALL, teacher_seconds=1.0)
    assert counted.data["price"]["break_even_time"]["verdicts"] > 0 and counted.data["test"] == again.data["test"]
    with pytest.raises(InputError, match=naming("other data", "settings")):
        train(examples, **given, **SMALL | {"seed": 1})


def test_other_questions_are_another_scorer_though_no_label_is_other(tiny_base: Path, tmp_path: Path) -> None:
    """Of verdicts alone neither polarity nor weight is learned from, and both are in the judge beside the scorer."""
    unrated = [each.model_copy(update={"human": {}}) for each in made(40)]
    given: dict[str, Any] = {"base": str(tiny_base), "output": tmp_path / "s", "verdicts": said(unrated)}
    given |= SMALL | {"epochs": 1}
    train(unrated, checklist=CHECKLIST, **given)
    first, second = CHECKLIST.questions
    for other in ({"good": "yes"}, {"weight": 3.0}):
        changed = Checklist(questions=(first, second.model_copy(update=other)))
        with pytest.raises(InputError, match=naming("other data", "settings")):
            train(unrated, checklist=changed, **given)
    train(unrated, checklist=CHECKLIST, **given)


def test_verdicts_may_be_on_more_examples_than_a_limit_leaves(tiny_base: Path, tmp_path: Path) -> None:
    examples = made(60)
    save_verdicts(tmp_path / "v.jsonl", said(examples))
    given: dict[str, Any] = {"checklist": CHECKLIST, "base": str(tiny_base), "verdicts": tmp_path / "v.jsonl"}
    found = train(examples, output=tmp_path / "s", limit=40, **given, **SMALL | {"epochs": 1}).data["mixture"]
    verdicts = [row for row in found["rows"] if row["source"] == "verdicts"]
    assert sum(found["units"].values()) == 40
    assert [sum(row[part] for part in PARTS) for row in verdicts] == [40, 40]


def test_a_training_that_was_broken_off_goes_on_to_the_same_weights(
    tiny_base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is kept but what is on the disk: after a step, between two checkpoints, and before that of an epoch's end."""
    examples = made(120, to_a_document=2)
    given: dict[str, Any] = {"checklist": CHECKLIST, "base": str(tiny_base), "verdicts": said(examples)}
    given |= SMALL | {"epochs": 3}
    train(examples, output=tmp_path / "whole", **given)
    step, write, steps = trainer.Trainer._step, trainer.Trainer._write, []

    for every, stop in ((0.0, 3), (1e9, 9), (0.0, 14)):

        def stopping(self: Any, batch: Any, number: int, stop: int = stop) -> None:
            if number == stop:
                raise KeyboardInterrupt
            steps.append(number)
            step(self, batch, number)

        with monkeypatch.context() as patch:
            patch.setattr(trainer, "EVERY", every)
            patch.setattr(trainer.Trainer, "_step", stopping)
            with pytest.raises(KeyboardInterrupt):
                train(examples, output=tmp_path / "parts", **given)

    def unwritten(self: Any) -> None:
        if self._place.batch == 0:
            raise KeyboardInterrupt
        write(self)

    with monkeypatch.context() as patch:
        patch.setattr(trainer.Trainer, "_write", unwritten)
        with pytest.raises(KeyboardInterrupt):
            train(examples, output=tmp_path / "parts", **given)
    assert steps[:4] == [0, 1, 2, 3] and max(steps) == 13  # the first part's steps were not made again
    assert not (tmp_path / "parts/train.json").exists()
    train(examples, output=tmp_path / "parts", **given)
    whole, parts = (json.loads((tmp_path / each / "train.json").read_text()) for each in ("whole", "parts"))
    assert parts["curve"]["training"] == whole["curve"]["training"] and parts["test"] == whole["test"]
    assert (tmp_path / "parts/model.safetensors").read_bytes() == (tmp_path / "whole/model.safetensors").read_bytes()
    assert not (tmp_path / "parts/checkpoints").exists()


def test_a_checkpoint_of_other_settings_or_a_damaged_one_is_refused(
    tiny_base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, Any] = {"checklist": CHECKLIST, "base": str(tiny_base), "output": tmp_path / "s"} | SMALL
    with monkeypatch.context() as patch:
        patch.setattr(trainer, "EVERY", 0.0)
        patch.setattr(trainer.Trainer, "_validate", lambda self, epoch: 1 / 0 if epoch else None)
        with pytest.raises(ZeroDivisionError):
            train(made(40), **given)
    with pytest.raises(InputError, match=naming("other settings", "broken off")):
        train(made(40), **given | {"seed": 7})
    checkpoint = tmp_path / "s/checkpoints/checkpoint.pt"
    checkpoint.write_bytes(checkpoint.read_bytes()[:2000])
    with pytest.raises(InputError, match=r"checkpoint\.pt: damaged"):
        train(made(40), **given)


def test_training_ends_where_validation_gains_nothing(tiny_base: Path, tmp_path: Path) -> None:
    examples = made(60)
    given = SMALL | {"learning_rate": 1e-9, "patience": 1}
    found = train(examples, checklist=CHECKLIST, output=tmp_path / "s", base=str(tiny_base), **given)
    curve = found.data["curve"]
    assert curve["stopped_early"] or curve["best_epoch"] == 8
    assert len(curve["validation"]) <= 9


def test_what_cannot_be_trained_is_said(tiny_base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def go(**given: Any) -> TrainResult:
        place = given.pop("output", tmp_path / "s")
        base = given.pop("base", str(tiny_base))
        return train(made(40), checklist=CHECKLIST, output=place, base=base, **SMALL | given)

    with pytest.raises(InputError, match=naming("no such folder")):
        go(base="./nowhere")
    with pytest.raises(InputError, match=r"no config\.json"):
        go(base=str(tmp_path))
    with pytest.raises(InputError, match=naming("64 tokens")):
        go(longest=65)
    with pytest.raises(InputError, match="loss_weights"):
        go(loss_weights=(0, 0, 0))
    (tmp_path / "other").mkdir()
    (tmp_path / "other/precious.txt").write_text("x")
    with pytest.raises(InputError, match="something else here"):
        go(output=tmp_path / "other")
    monkeypatch.setattr(trainer, "ROOM", 1e12)
    with pytest.raises(AskanceError, match=naming("this disk")):
        go()


def test_an_encoder_trained_in_bfloat16_reads_so(tiny_base: Path, tmp_path: Path) -> None:
    examples = made(60)
    given = SMALL | {"epochs": 1, "precision": "bfloat16"}
    place = tmp_path / "s"
    train(examples, checklist=CHECKLIST, output=place, base=str(tiny_base), verdicts=said(examples), **given)
    file = read_scorer(place)
    assert file.precision == "bfloat16"
    assert file.identity != file.model_copy(update={"precision": None}).identity
    texts = [scored_text(question, each) for each in examples[:20] for question in CHECKLIST.questions]
    network = open_network(place, file)
    together = network.levels(texts)
    alone = torch.cat([network.levels([each]) for each in texts])
    assert float((together - alone).abs().max()) < 0.01
    whole = open_network(place, file.model_copy(update={"precision": None})).levels(texts)
    assert 0 < float((whole - together).abs().max()) < 0.05


def test_texts_that_are_cut_are_said_with_their_share(tiny_base: Path, tmp_path: Path) -> None:
    long = [
        each.model_copy(update={"input": f"{each.input} " + "old " * (40 if int(each.id[1:]) < 10 else 0)})
        for each in made(40)
    ]
    found = train(long, checklist=CHECKLIST, output=tmp_path / "s", base=str(tiny_base), **SMALL | {"epochs": 1})
    assert found.data["cut"]["share"] == pytest.approx(0.25)
    assert any(says(each, "25.0%", "32 tokens") for each in found.data["remarks"])


def test_a_full_disk_stops_with_what_to_do(tiny_base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    def full(*_: Any) -> None:
        raise RuntimeError("[enforce fail at inline_container.cc:603] . unexpected pos 64 vs 0")

    monkeypatch.setattr(torch, "save", full)
    with pytest.raises(AskanceError, match=naming("best.pt", "same command again")):
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
    assert says(found["break_even_time"]["reason"], "teacher", "no more")
    assert "--teacher-price" in price(1.0, 1.0, options())["break_even_money"]["reason"]


@pytest.mark.parametrize("preferred", ["a", "b"])
def test_a_pair_of_which_it_says_the_same_is_half_right_whichever_output_is_preferred(preferred: Any) -> None:
    class Says:
        """Sees that an output is good, and nothing else, to the sixth place."""

        def levels(self, texts: list[ScoredText]) -> Any:
            return torch.tensor(
                [[0.4, 0.6 + 1e-8 * len(each.output) + 0.2 * (each.output == "good")] for each in texts]
            ).log()

    outputs = {"a": ("good", "old"), "b": ("old", "good")}[preferred]
    made_pairs = [
        Preference(id=f"p{n}", input="", output_a="red", output_b="blue", preferred=preferred) for n in range(3)
    ]
    made_pairs.append(Preference(id="p", input="", output_a=outputs[0], output_b=outputs[1], preferred=preferred))
    one = Checklist(questions=CHECKLIST.questions[:1])
    file = ScorerFile(kind="shared-encoder", base="b", levels=2, longest=32, weights="0" * 64)
    items = preference_items(made_pairs, one)
    found = figures_on_test(ScorerReader(Says()), file, [], items, one, None, {}, options())  # type: ignore[arg-type]
    assert found["preferences"]["value"] == (3 * 0.5 + 1) / 4
    five = [pair.model_copy(update={"id": f"{pair.id}/{n}"}) for pair in made_pairs for n in range(5)]
    group_of = {pair.id: pair.id.partition("/")[0] for pair in five}
    items = preference_items(five, one)
    again = figures_on_test(ScorerReader(Says()), file, [], items, one, None, {}, options(), group_of)["preferences"]  # type: ignore[arg-type]
    alone = rate([0.5, 0.5, 0.5, 1.0] * 5)
    assert again["n"] == 20 and again["value"] == found["preferences"]["value"]
    assert again["high"] - again["low"] > (alone.high or 0) - (alone.low or 0), "copies of a pair make nothing surer"


def test_people_say_how_far_the_scorer_is_ahead_of_its_base_and_its_teacher(trained: TrainResult) -> None:
    test = trained.data["test"]
    assert {*test["people"]} == {"scorer", "teacher", "base", "people_alone"}
    assert {*test["beyond"]} == {"teacher", "base", "people_alone"}
    for name, found in test["beyond"].items():
        apart = test["people"]["scorer"]["spearman"] - test["people"][name]["spearman"]
        assert found["value"] == pytest.approx(apart) and found["low"] <= found["value"] <= found["high"]
    assert test["people"]["base"]["spearman"] < 0.6 < test["people"]["scorer"]["spearman"]
    assert test["base"]["n"] == test["teacher"]["n"]
    whats = [row["what"] for row in trained.view().shown_tables()["test"]]
    assert {"base with people", "base with teacher"} <= {*whats}


def test_the_bins_of_calibration_make_up_its_error(trained: TrainResult) -> None:
    fit = trained.data["calibration"]
    for name in ("before", "after"):
        bins = fit[name]["bins"]
        assert sum(each["n"] for each in bins) == fit["n"]
        assert all(each["bin"] / 10 <= each["said"] <= each["bin"] / 10 + 0.1 for each in bins)
        error = sum(each["n"] * abs(each["said"] - each["wanted"]) for each in bins) / fit["n"]
        assert fit[name]["calibration_error"] == pytest.approx(error)
