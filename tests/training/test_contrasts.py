"""Outputs that a model writes to tell apart: which are asked for, which are thrown away, and what is learned from the rest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from askance.models.base import ModelError, Request
from askance.prompts.errors import AskanceError, BudgetExceededError, InputError
from askance.testing import Reply, ScriptedModel
from askance.training.contrasts import chosen_cases
from askance.training.mixture import PARTS, divided
from askance.training.train import prepare
from askance.training.trained import TrainResult

from .conftest import CHECKLIST, SMALL, made, options, p_yes, said

pytestmark = pytest.mark.usefixtures("sandbox")
EXAMPLES = made(40, to_a_document=2)


class Nobody:
    """A watcher that nothing is told."""

    def watch(self, budget: Any) -> None: ...
    def phase(self, text: str, total: int | None = None) -> None: ...
    def advance(self, done: int, total: int) -> None: ...
    def say(self, text: str) -> None: ...


def asked(request: Request) -> str:
    return "\n".join(text for _, text in request.messages)


def write(request: Request) -> Reply:
    """Outputs that have the word the question is about the more the higher the score; some are useless."""
    text = asked(request)
    word = "good" if "Question: nice" in text else "broken"
    given = text.split("The input:")[1].split("An output for it:")[0]
    number = next(int(each) for each in given.split() if each.isdigit())
    if number % 5 == 0:
        return "I would rather not."
    low, middle, high = f"slow {number}", f"slow old {number}", f"slow {word} {number}"
    if number % 5 == 1:
        low, high = high, low
    if number % 5 == 2:
        middle = low.upper() + "!"
    return json.dumps({"score_1": low, "score_3": middle, "score_5": high})


def see(request: Request) -> Reply:
    """What the teacher would say; something is a little nearer to yes where it is old."""
    text = asked(request)
    word = "good" if "Question: nice" in text else "broken"
    output = next(line for line in reversed(text.splitlines()) if line.startswith("slow"))
    return p_yes(word, output) + (0.3 if "old" in output else 0.0)


def job(writer: Any, judge: Any, **given: Any) -> Any:
    settings = {**SMALL, "contrasts": 20, **given}
    return prepare(EXAMPLES, CHECKLIST, "s", "b", said(EXAMPLES), None, None, writer, judge, settings, Nobody())


def test_what_the_judge_does_not_order_as_wanted_is_dropped() -> None:
    writer, judge = ScriptedModel(write), ScriptedModel(see, name="scripted/judge")
    found = job(writer, judge)
    items = [each for part in PARTS for each in found.mixture.part(part) if each.source == "synthetic"]
    for each in items:
        better, worse = each.left[0].text.output, each.right[0].text.output
        word = {"good": "good", "broken": "broken"}[each.about]
        seen = [p_yes(word, text) + 0.3 * ("old" in text) for text in (worse, better)]
        assert seen[1] - seen[0] >= 0.1 and each.target == 1.0 and len(each.left) == len(each.right) == 1
    counted = found.contrasts
    assert counted["asked"] == 20 and counted["kept"] == len(items) > 10
    assert counted["unusable"] > 0 and counted["repeated"] > 0 and counted["not_ordered_by_judge"] > 0
    assert counted["outputs"] == 3 * (20 - counted["unusable"])
    assert counted["pairs"] == counted["kept"] + counted["not_ordered_by_judge"]
    assert (counted["writer"], counted["judge"]) == ("scripted/model", "scripted/judge")


def test_nothing_is_written_about_validation_and_test() -> None:
    writer = ScriptedModel(write)
    found = job(writer, ScriptedModel(see, name="scripted/judge"))
    of_training = {each.input for each in EXAMPLES if found.mixture.part_of[each.id] == "training"}
    others = {each.input for each in EXAMPLES} - of_training
    assert others
    assert not [text for request in writer.requests for text in others if f"\n{text}\n" in asked(request)]
    assert {found.mixture.part_of[each.unit] for each in found.mixture.training if each.source == "synthetic"} == {
        "training"
    }
    assert not [each for part in PARTS[1:] for each in found.mixture.part(part) if each.source == "synthetic"]


def test_every_question_is_taken_about_as_often_and_no_case_twice() -> None:
    _, part_of, _ = divided(EXAMPLES, [], None, options())
    cases = chosen_cases(EXAMPLES, CHECKLIST, part_of, 21, 1)
    assert [each.question.id for each in cases].count("good") in (10, 11)
    assert len({(each.question.id, each.example.id) for each in cases}) == 21
    assert cases != chosen_cases(EXAMPLES, CHECKLIST, part_of, 21, 2)
    with pytest.raises(InputError, match=r"--contrasts 999: the training part has \d+ outputs"):
        chosen_cases(EXAMPLES, CHECKLIST, part_of, 999, 1)


def test_an_output_that_is_there_already_is_no_contrast() -> None:
    def copy(request: Request) -> Reply:
        output = asked(request).split("An output for it:")[1].split("Question:")[0].strip().splitlines()[1]
        return json.dumps({"score_1": output, "score_5": f"slow {output}"})

    found = job(ScriptedModel(copy), ScriptedModel(see, name="scripted/judge"), contrasts=6, contrast_grades=2)
    assert (found.contrasts["repeated"], found.contrasts["pairs"], found.contrasts["kept"]) == (6, 0, 0)


def test_what_was_bought_is_not_bought_again_and_the_data_are_the_same() -> None:
    class Kept(ScriptedModel):
        answers_stay_in_the_run = False

    writers, judges = ([Kept(script, name=name) for _ in "12"] for script, name in ((write, "w"), (see, "j")))
    first, again = (job(writer, judge) for writer, judge in zip(writers, judges, strict=True))
    assert writers[0].requests and judges[0].requests
    assert not writers[1].requests and not judges[1].requests
    assert first.fingerprint == again.fingerprint
    with pytest.raises(BudgetExceededError):
        job(Kept(write, name="other"), judges[0], max_calls=3)


def test_a_call_that_failed_stops_it_as_nobody_knows_what_would_have_been_kept() -> None:
    def down(request: Request) -> Reply:
        return ModelError("it is busy") if judge.requests[5:] else see(request)

    judge = ScriptedModel(down, name="scripted/judge")
    with pytest.raises(AskanceError, match=r"calls on '.*' failed, the first with: it is busy"):
        job(ScriptedModel(write), judge, retries=0)


def test_settings_that_do_not_fit_together_are_refused() -> None:
    writer = ScriptedModel(write)
    with pytest.raises(InputError, match="give both, or neither"):
        job(writer, None, contrasts=0)
    with pytest.raises(InputError, match="give both, or neither"):
        job(None, None)
    with pytest.raises(InputError, match="leave it out"):
        job(None, "openai/x", contrasts=0)
    with pytest.raises(InputError, match="the preference loss has no weight"):
        job(writer, None, loss_weights=(1, 1, 0))
    with pytest.raises(InputError, match=r"max_calls: no model is asked where nothing is written"):
        job(None, None, contrasts=0, max_calls=3)
    with pytest.raises(InputError, match=r"teacher of --verdicts; --judge-model names another judge"):
        job(writer, None)


def test_a_scorer_learns_from_them_and_its_record_says_how_many(tiny_base: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from askance.training.train import train

    found: TrainResult = train(
        EXAMPLES,
        checklist=CHECKLIST,
        output=tmp_path / "s",
        base=str(tiny_base),
        writer=ScriptedModel(write),
        judge_model=ScriptedModel(see, name="scripted/judge"),
        contrasts=20,
        **SMALL | {"epochs": 2},
    )
    record = json.loads((tmp_path / "s/train.json").read_text())["mixture"]
    assert record["contrasts"] == found.data["mixture"]["contrasts"]
    synthetic = [row for row in record["rows"] if row["source"] == "synthetic"]
    assert sum(row["training"] for row in synthetic) == record["contrasts"]["kept"] > 0
    assert not any(row["validation"] + row["test"] for row in synthetic)
