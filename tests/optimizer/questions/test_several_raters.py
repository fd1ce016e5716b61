"""A run of ``align`` on labels of several raters: their agreement, the ceiling, and the rule that combines them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import askance
from askance.evaluation.raters.agreement_view import BETWEEN, PERFECT
from askance.prompts.errors import InputError
from tests.optimizer.questions.conftest import Desk
from tests.worlds import share

pytestmark = pytest.mark.usefixtures("sandbox")
CARELESS = {"ann": 0.02, "bob": 0.02, "cat": 0.02, "dan": 0.48, "eve": 0.48, "fay": 0.48}


def by_raters(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Labels by raters who are wrong in these shares; the comment is the first rater's."""
    found = []
    for row in rows:
        right = row["human"]["overall"] == "pass"
        said = {
            name: {"human": {"overall": right != (share(name, row["id"]) < wrong)}} for name, wrong in CARELESS.items()
        }
        if "comment" in row:
            said["ann"]["comment"] = row["comment"]
        found.append({**{name: row[name] for name in ("id", "input", "output")}, "raters": said})
    return found


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> askance.RunResult:
    desk = Desk(240)
    return desk.align(tmp_path_factory.mktemp("run") / "run", rows=by_raters(desk.rows))


def test_careless_raters_are_found_on_development_and_test_keeps_the_mean(done: askance.RunResult) -> None:
    row = done.result["rater_agreement"]["overall"]
    assert row["combined"]["rule"] == "model"
    assert row["combined"]["left_out"]["model"]["value"] > row["combined"]["left_out"]["mean"]["value"]
    assert {each["rater"] for each in row["raters"]} == set(CARELESS)
    alone = askance.rater_agreement(by_raters(Desk(240).rows), resamples=400)
    assert alone.to_dict()["rater_agreement"]["overall"]["one_rater"] == row["one_rater"]  # of all, by nobody's rule


def test_the_ceiling_stands_beside_the_figures_of_the_run(done: askance.RunResult) -> None:
    row = done.result["rater_agreement"]["overall"]
    figures = done.view().tables["figures"]()
    assert {each[PERFECT].value for each in figures} == {row["ceiling"]["value"]}
    assert {each[BETWEEN].value for each in figures} == {row["one_rater"]["value"]}
    told = "\n".join(done.view().lines)
    assert PERFECT in told and "combined by model" in told
    page = (done.directory / "report.html").read_text(encoding="utf-8").casefold()
    assert PERFECT in page and BETWEEN in page


def test_questions_are_learned_from_the_comments_of_raters(done: askance.RunResult) -> None:
    assert done.record.learned


def test_a_rule_that_is_asked_for_is_taken(tmp_path: Path) -> None:
    desk = Desk(60)
    done = desk.align(tmp_path / "run", rows=by_raters(desk.rows), combine="majority", calibrate=True, update="auto")
    how = done.result["rater_agreement"]["overall"]["combined"]
    assert (how["rule"], how["reason"]) == ("majority", "asked for")


def test_a_model_of_raters_needs_steps(tmp_path: Path) -> None:
    desk = Desk(60)
    rows = by_raters(desk.rows)
    for k, row in enumerate(rows):
        row["raters"] = {name: {"human": {"overall": 3 * k + n}} for n, name in enumerate(("ann", "bob"))}
    with pytest.raises(InputError, match="combine model"):
        desk.align(tmp_path / "run", rows=rows, combine="model")


def test_one_rater_leaves_no_trace(tmp_path: Path) -> None:
    done = Desk(60).align(tmp_path / "run", calibrate=True, update="auto")
    assert "rater_agreement" not in done.result
    assert PERFECT not in done.view().tables["figures"]()[0]
