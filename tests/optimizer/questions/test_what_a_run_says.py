"""What a person is told of a run that learns questions: terminal, notebook, history of a question, report, watch."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import askance
from askance.commands.report import command as report
from askance.commands.show import command as show
from askance.memory.provenance import build_graph
from askance.optimizer.following import LEARNING, RunProgress, sentence_of
from askance.report.run import iterations
from askance.report.run_data import read_run

from .conftest import DEAF, RULES, Desk

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
NAMES = ("name-price", "promise-date", "thank-customer")


class Praised(Desk):
    """Comments are on accepted replies only."""

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [
            {name: value for name, value in row.items() if name != "comment" or row["human"]["overall"] == "pass"}
            for row in super().rows
        ]


class Failed(Desk):
    """People fail every reply."""

    def passed(self, example: str) -> bool:
        return False


class Unread(Desk):
    """The note-taker makes nothing of a comment."""

    def questions_for(self, comment: str) -> str:
        return "none"


class Deaf(Desk):
    """The note-taker writes a question that says nothing."""

    def questions_for(self, comment: str) -> str:
        return DEAF if comment != "meh" else "none"


class Late(Unread):
    """Comments are on validation examples only."""

    @property
    def rows(self) -> list[dict[str, Any]]:
        parts = ("development", "validation", "test")
        rows = [row | {"metadata": {"split": parts[place % 3]}} for place, row in enumerate(super().rows)]
        return [
            {name: value for name, value in row.items() if name != "comment" or row["metadata"]["split"] == parts[1]}
            for row in rows
        ]


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> askance.RunResult:
    return Desk().align(tmp_path_factory.mktemp("run") / "run")


@pytest.fixture(scope="module")
def refused(tmp_path_factory: pytest.TempPathFactory) -> askance.RunResult:
    return Desk().align(tmp_path_factory.mktemp("run") / "run", alpha=0.0001)


def shown(*arguments: Any) -> Result:
    return CliRunner().invoke(show, [str(each) for each in arguments], env={"COLUMNS": "80"})


def said(*arguments: Any) -> str:
    done = shown(*arguments)
    assert done.exit_code == 0, done.output
    return " ".join(done.output.split())


class _Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.parts: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self._open = ""
        self.feed(text)
        self.text = " ".join(" ".join(self.parts).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known, self._open = dict(attrs), tag
        self.ids += [known["id"] or ""] if "id" in known else []
        self.links += [(known["href"] or "")[1:]] if (known.get("href") or "").startswith("#") else []

    def handle_data(self, data: str) -> None:
        if self._open not in ("style", "script"):
            self.parts.append(data)


def page_of(run: Path) -> _Page:
    done = CliRunner().invoke(report, [str(run), "-o", str(run / "page.html")])
    assert done.exit_code == 0, done.output
    return _Page((run / "page.html").read_text(encoding="utf-8"))


def test_the_terminal_says_what_was_learned_before_any_figure(learned: askance.RunResult) -> None:
    text = said(learned.directory)
    assert text.startswith(
        "The judge has learned 3 questions from comments: Does the reply name a price? (yes = fault)"
    )
    worth = learned.record.learned[0].worth.test
    assert (
        worth is not None and f"worth {worth.value:+.3f} [{worth.low:+.2f}, {worth.high:+.2f}] on test, n = 48" in text
    )
    assert "from “Again a price! We never name a price.”, on 7 examples (e001, e032, e056 and 4 more)" in text
    assert "Does the reply give a price? (yes = fault) [give-price]: it gets the same verdicts as 'name-price'" in text
    assert text.index("Proposed, and not learned") < text.index("Spearman with people")
    assert "The prompt stays as it was; the questions and how they are read are new." in text
    assert (
        "Accepted: questions name-price, promise-date, thank-customer: better on examples that taught it nothing"
        in text
    )
    assert "Prompt:" not in text and text.endswith(f"--judge {learned.directory}")


def test_the_terminal_fits_80_columns_but_for_sentences_that_stand_alone(learned: askance.RunResult) -> None:
    lines = shown(learned.directory).output.splitlines()
    assert all(len(line) <= 80 for line in lines if line.startswith(" ") or "crossed  " in line)
    assert any(line.startswith("crossed") and line.rstrip().endswith("]") for line in lines), "no figure is broken"


@pytest.mark.parametrize(
    ("world", "why"),
    [
        (Desk(comments=False), "no question was proposed, as no example has a comment, and what the outputs do came"),
        (Praised(), "no question was proposed, as none of the comments is on a rejected development example"),
        (Unread(), "no question was proposed, as all 3 different comments on rejected development examples came to no"),
        (Late(), "no question was proposed, as all 4 different comments on rejected validation examples came to no"),
        (Deaf(), "1 question was proposed and none withstood the development examples"),
        (Failed(), "no question was proposed, as people like all development examples alike, and comments are read"),
    ],
)
def test_where_nothing_was_learned_it_says_why(world: Desk, why: str, tmp_path: Path) -> None:
    run = tmp_path / "run"
    world.align(run)
    text, page = said(run), page_of(run)
    assert f"Nothing was accepted: {why}" in text and "The judge stays as it was." in text
    assert "No edit" not in text and "edit" not in page.text.partition("Each question")[0]
    assert "Keep the starting judge" in page.text and f"Nothing: {why}" in page.text


def test_questions_that_the_gate_refused_are_a_rejected_candidate(refused: askance.RunResult) -> None:
    text, page = said(refused.directory), page_of(refused.directory)
    assert "Nothing was accepted: 1 candidate was tried on validation and none passed. The judge stays" in text
    assert "Rejected: questions name-price, promise-date, thank-customer: a gain within noise" in text
    assert "[name-price]: it went to the acceptance test, see below" in text
    assert [each.was_tried for each in refused.record.questions] == [True] * 3 + [False] * 2
    assert "Keep the starting judge" in page.text and "5 questions proposed and not taken" in page.text
    assert "Iteration 1: questions name-price, promise-date, thank-customer" in page.text
    (row,) = iterations(read_run(refused.directory), [])
    assert (row.proposed, row.withstood, row.found) == (5, 3, None)


def test_a_run_that_ended_on_the_way_says_so(tmp_path: Path) -> None:
    caps = (Desk().align(tmp_path / f"run-{cap}", call_budget=cap) for cap in range(600, 1000, 5))
    done = next(each for each in caps if each.record.questions)
    assert not done.record.rejected_edits
    text = said(done.directory)
    assert "Nothing was accepted: the run ended before the acceptance test could decide on 3 questions." in text
    untested = Desk().align(tmp_path / "other", call_budget=740)
    assert untested.record.learned and untested.record.best.test is None
    assert "worth was not measured" in said(tmp_path / "other")
    assert "Undecided: not tested" in page_of(tmp_path / "other").text


def test_a_notebook_has_the_questions_as_a_table(learned: askance.RunResult) -> None:
    rows = learned.view().tables["questions"]()
    assert [row["id"] for row in rows if row["joined"]] == list(NAMES)
    assert (
        rows[0]["good"] == "no" and rows[0]["split"] == "test" and rows[0]["low"] < rows[0]["worth"] < rows[0]["high"]
    )
    assert "The judge has learned 3 questions from comments, of 5: name-price, promise-date, thank-customer." in str(
        learned
    )
    assert RULES["price"][0] in learned._repr_html_()


@pytest.mark.parametrize("asked", ["name-price", "name", "name a price"])
def test_why_tells_the_history_of_a_question(learned: askance.RunResult, asked: str) -> None:
    text = said(learned.directory, "--why", asked)
    assert text.startswith("Does the reply name a price? (yes = fault) [name-price] Learned.")
    assert f"From the comment “{RULES['price'][0]}”, on e001, e032, e056, e067, e088" in text
    assert "those outputs are nearer to yes than accepted ones, so yes is a fault" in text
    row = learned.record.learned[0]
    assert row.effect is not None and f"it speaks {row.effect:+.2f} more than against accepted ones" in text
    assert (
        "Acceptance test, version 1 accepted, together with promise-date, thank-customer: better on examples that"
        in text
    )
    assert (
        row.worth.test is not None and f"Worth on test, over the judge without it: {row.worth.test.value:+.3f}" in text
    )


def test_why_as_json_of_a_question_and_of_one_that_is_no_good(learned: askance.RunResult) -> None:
    found = json.loads(shown(learned.directory, "--why", "give-price", "--json").output)
    assert (found["status"], found["measured"], found["worth"]) == ("set aside", [], {})
    assert found["reason"] == "it gets the same verdicts as 'name-price'"
    assert json.loads(shown(learned.directory, "--json").output)["questions"][0]["worth"]["test"]["n"] == 48
    assert "stood in the checklist that the run began with" in said(learned.directory, "--why", "good")


def test_what_nobody_says_names_the_questions(learned: askance.RunResult) -> None:
    done = shown(learned.directory, "--why", "xyzzy")
    assert done.exit_code != 0
    assert "Questions that were proposed: name-price, give-price" in str(done.exception)
    assert "may be one of these questions" in str(shown(learned.directory, "--why", "price").exception)


def test_the_graph_has_comments_and_questions(learned: askance.RunResult) -> None:
    graph = build_graph(learned.directory)
    assert graph.edges["comment:1", "question:name-price"]["kind"] == "proposed"
    assert graph.edges["question:name-price", "version:1"]["kind"] == "asked"
    assert not list(graph["question:give-price"])


def test_the_report_begins_with_what_was_learned(learned: askance.RunResult) -> None:
    page = page_of(learned.directory)
    assert "Adopt the new judge" in page.text and "Adopt the new prompt" not in page.text
    assert (
        "The new judge asks 3 questions more, learned from people's comments, and its prompt is what it was."
        in page.text
    )
    order = [
        page.text.index(each) for each in ("What was learned", "Does the reply name a price?", "Spearman's correlation")
    ]
    assert order == sorted(order)
    for said_of in (
        "yes is a fault",
        "weight 1.06",
        "weight 0.93",
        "weight 1.02",
        RULES["date"][0],
        "2 questions proposed and not taken",
        "e001 , e032",
    ):
        assert said_of in page.text, said_of
    assert {f"question-{name}" for name in NAMES} <= set(page.ids)
    assert len(page.ids) == len(set(page.ids)) and set(page.links) <= set(page.ids)
    assert "The new judge is not in this table, because it has a calibration of its own already" in page.text
    assert "starting prompt" not in page.text.partition("Settings")[0]


def test_rounds_in_which_questions_were_tried_are_in_the_table(learned: askance.RunResult) -> None:
    data = read_run(learned.directory)
    (row,) = iterations(data, [])
    assert (row.number, row.proposed, row.withstood, row.found) == (1, 5, 3, None)
    assert "Questions proposed To the acceptance test" in page_of(learned.directory).text


def test_comments_are_quoted_as_text(tmp_path: Path) -> None:
    desk = Desk()
    hostile = "</script><script>alert(1)</script> a price"
    rows = json.loads(json.dumps(desk.rows).replace(RULES["price"][0], hostile.replace('"', "")))
    desk.questions_for = lambda comment: Desk.questions_for(desk, comment.replace(hostile, RULES["price"][0]))  # type: ignore[method-assign]
    desk.align(tmp_path / "run", rows=rows)
    page = page_of(tmp_path / "run")
    assert hostile in page.text
    assert "<script>alert(1)" not in (tmp_path / "run" / "page.html").read_text(encoding="utf-8")


def test_watch_tells_questions_and_what_goes_on(learned: askance.RunResult) -> None:
    progress = RunProgress(learned.directory)
    rows = progress.look()
    told = [each for row in rows if (each := sentence_of(row))]
    assert told[1].startswith(
        "question name-price goes to the acceptance test: Does the reply name a price? (yes = fault) (from “Again"
    )
    assert "question give-price is set aside, as it gets the same verdicts as 'name-price'" in told[2]
    assert "5 questions proposed, 3 to the acceptance test · 1 accepted" in progress.line()
    del progress.events[1:]
    assert progress.doing == LEARNING
