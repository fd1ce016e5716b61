"""A question that a person words: what it takes, asked on development, on validation by a second click alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from askance.evaluation.judge_file import load_judge
from askance.prompts.errors import AskanceError, InputError
from askance.testing import StandInServer
from askance.workbench.asked_questions import ASKED_FOLDER, NewWording
from askance.workbench.saved_judges import ValidationLooks
from askance.workbench.workbench import AskedJudge, AskedWording, AskPage, Workbench

from ..said import says
from .conftest import FURTHER

RUN = "team/aligned"


def desk_of(page: Workbench) -> AskPage:
    return AskPage(page)


def asking(text: str = FURTHER, **fields: Any) -> AskedWording:
    return AskedWording(run=RUN, wording=NewWording.model_validate({"text": text, **fields}))


def turned_on(page: Workbench, on: dict[str, bool], validation: bool = False) -> AskedJudge:
    """The table as it is, with some questions on or off."""
    edit = page.judge_of(RUN, "judge.yaml")[0].start
    rows = [each.model_copy(update={"on": on.get(each.id, each.on)}) for each in edit.questions]
    return AskedJudge(run=RUN, edit=edit.model_copy(update={"questions": tuple(rows)}), validation=validation)


def test_a_question_that_is_worded_anew_is_asked_on_development_and_is_a_row_like_the_others(
    asked_runs: Path, served: tuple[Path, StandInServer]
) -> None:
    page, server = Workbench(asked_runs, "anna"), served[1]
    desk = desk_of(page)
    before = page.judge(RUN, "judge.yaml")
    asked_before = len(server.bodies)
    told = desk.estimate(asking(instead_of="facts"))
    many = before["development"]["examples"]
    assert says(told["said"], f"{many} calls") and len(server.bodies) == asked_before
    assert desk.ask(asking(instead_of="facts")) == {"id": "facts_2", "instead_of": "facts"}
    assert len(server.bodies) - asked_before >= many  # and no call for another question, nor on validation
    assert all(FURTHER in str(body) for body in server.bodies[asked_before:])
    assert says(desk.estimate(asking("x", instead_of="facts"))["said"], f"{many} calls")
    now = page.judge(RUN, "judge.yaml")
    row = next(each for each in now["questions"] if each["id"] == "facts_2")
    assert (row["text"], row["dimension"], row["from"]) == (FURTHER, "quality", "reworded")
    assert row["agreement"]["value"] > 0.3 and row["worth"]["low"] is not None
    assert now["development"] == before["development"]  # it is off until somebody turns it on
    figures = page.figures(turned_on(page, {"facts": False, "facts_2": True}))
    assert says(figures["what"][0], "facts", "facts_2") and figures["development"]["n"] == many
    assert figures["development"]["now"]["spearman"]["value"] != figures["development"]["before"]["spearman"]["value"]


def test_validation_is_asked_by_a_second_click_and_counts_as_a_look(
    asked_runs: Path, served: tuple[Path, StandInServer]
) -> None:
    page, server = Workbench(asked_runs, "anna"), served[1]
    desk = desk_of(page)
    desk.ask(asking(good="yes"))
    [name] = [each["id"] for each in page.judge(RUN, "judge.yaml")["questions"] if each["from"] == "added"]
    edited = turned_on(page, {name: True}, validation=True)
    asked_before = len(server.bodies)
    shown = page.figures(edited)
    assert shown["looks"] == 0 and shown["validation"]["unasked"] == [name] and "now" not in shown["validation"]
    with pytest.raises(InputError, match=name):
        page.test(edited)
    told = desk.estimate_validation(edited)
    assert says(told["said"], f"{shown['validation']['examples']} calls") and len(server.bodies) == asked_before
    assert desk.ask_validation(edited) == {"look": 1}
    shown = page.figures(turned_on(page, {name: True}, validation=True))
    assert shown["looks"] == 1 and shown["validation"]["now"]["spearman"]["value"] is not None
    with pytest.raises(InputError, match="was asked"):
        desk.ask_validation(edited)
    saved = page.save(turned_on(page, {name: True}))
    judge = load_judge(asked_runs / RUN / saved["file"])
    assert judge.checklist.questions[-1].text == FURTHER and judge.origins[name].origin == "added"
    assert says(judge.history[0].what[0], "added", name) and not judge.history[0].shaped_on_validation
    later = Workbench(asked_runs, "ben").judge(RUN, saved["file"])  # where it is a question like any other
    assert next(each for each in later["questions"] if each["id"] == name)["agreement"]["value"] is not None
    assert ValidationLooks(asked_runs / RUN).judges() == [judge.hash]


def test_a_partial_answer_is_no_score_and_a_model_that_cannot_be_reached_loses_nothing(asked_runs: Path) -> None:
    page = Workbench(asked_runs, "anna")
    desk, before = desk_of(page), page.judge(RUN, "judge.yaml")
    with pytest.raises(AskanceError) as partial:
        desk.ask(asking("Is it written in the language of the moon?"))
    assert says(str(partial.value), "Nothing is shown") and not (asked_runs / RUN / ASKED_FOLDER).exists()
    file = asked_runs / RUN / "config.yaml"
    config = yaml.safe_load(file.read_text())
    config["config"]["api_base"] = "http://127.0.0.1:9/v1"
    file.write_text(yaml.safe_dump(config))
    with pytest.raises(AskanceError) as nobody:
        desk.ask(asking())
    assert "127.0.0.1:9" in str(nobody.value)
    assert page.judge(RUN, "judge.yaml") == before


@pytest.mark.parametrize(
    ("wording", "said"),
    [
        ({"text": "Are the facts right?", "instead_of": "facts"}, "same"),
        ({"text": "Is it?", "instead_of": "nothing"}, "no question"),
        ({"text": "Is it?", "dimension": "style"}, "about quality"),
    ],
)
def test_a_question_that_cannot_be_asked_is_refused(asked_runs: Path, wording: dict[str, Any], said: str) -> None:
    desk = desk_of(Workbench(asked_runs, "anna"))
    for act in (desk.estimate, desk.ask):
        with pytest.raises(InputError, match=said):
            act(asking(**wording))


def test_a_model_of_this_process_alone_is_an_error_that_names_it(runs: Path) -> None:
    with pytest.raises(AskanceError, match="world"):
        desk_of(Workbench(runs, "anna")).estimate(asking())


def test_two_questions_at_once_get_a_file_each(asked_runs: Path) -> None:
    page = Workbench(asked_runs, "anna")
    desk = desk_of(page)
    assert [desk.ask(asking(instead_of=each))["id"] for each in ("facts", "facts", "words")] == [
        *("facts_2", "facts_3", "words_2")
    ]
    bench = page.judge_of(RUN, "judge.yaml")[0]
    assert not np.isnan(bench.parts["development"].all_worth).any()
    (asked_runs / RUN / ASKED_FOLDER / "2-question.jsonl").write_text("{}\n")
    with pytest.raises(InputError, match="2-question"):
        Workbench(asked_runs, "anna").judge(RUN, "judge.yaml")
