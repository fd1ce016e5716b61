"""What a person is told of a run that learns questions: terminal, notebook, history of a question, report, watch."""

from __future__ import annotations

import json
from bisect import bisect_left
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from syrupy.assertion import SnapshotAssertion

import askance
from askance.commands.report import command as report
from askance.commands.show_run import show_command as show
from askance.memory.provenance import build_graph
from askance.optimizer.events import sentence_of
from askance.optimizer.following import LEARNING, RunProgress
from askance.report.run_data import read_run
from askance.report.run_page import iterations
from tests.said import says

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


def in_full(run: Path, *arguments: Any) -> str:
    """What the command says, line by line, of a run that is called RUN."""
    done = shown(run, *arguments)
    assert done.exit_code == 0, done.output
    return "\n".join(line.rstrip() for line in done.output.replace(str(run), "RUN").splitlines())


def test_what_the_terminal_says_of_a_run_that_learned_questions(
    learned: askance.RunResult, snapshot: SnapshotAssertion
) -> None:
    assert in_full(learned.directory) == snapshot


def test_what_the_terminal_says_of_a_run_whose_questions_were_refused(
    refused: askance.RunResult, snapshot: SnapshotAssertion
) -> None:
    assert in_full(refused.directory) == snapshot


def test_what_the_report_says_was_learned(learned: askance.RunResult, snapshot: SnapshotAssertion) -> None:
    part = page_of(learned.directory).text.partition(" What was learned ")[2].partition(" How the scores rank ")[0]
    assert part.replace(". ", ".\n") == snapshot


def test_the_terminal_says_what_was_learned_before_any_figure(learned: askance.RunResult) -> None:
    text = said(learned.directory)
    row = learned.record.learned[0]
    worth = row.worth.test
    assert worth is not None and says(text, f"{worth.value:+.3f} [{worth.low:+.2f}, {worth.high:+.2f}]", "n = 48")
    places = [
        text.index(each) for each in (row.text, f"[{row.id}]", RULES["price"][0], "[give-price]", "Spearman with")
    ]
    assert places == sorted(places) and places[0] < text.index("%")
    assert "Prompt:" not in text and text.endswith(f"--judge {learned.directory}")


def test_the_terminal_fits_80_columns_but_for_sentences_that_stand_alone(learned: askance.RunResult) -> None:
    lines = shown(learned.directory).output.splitlines()
    assert all(len(line) <= 80 for line in lines if line.startswith(" ") or "crossed  " in line)
    assert any(line.startswith("crossed") and line.rstrip().endswith("]") for line in lines), "no figure is broken"


@pytest.mark.parametrize(
    ("world", "facts"),
    [
        (Desk(comments=False), ("no example", "a comment")),
        (Praised(), ("none of", "comments", "rejected development example")),
        (Unread(), ("all 3", "comments", "rejected development examples")),
        (Late(), ("all 4", "comments", "rejected validation examples")),
        (Deaf(), ("1 question", "none withstood")),
        (Failed(), ("people like", "alike", "comments")),
    ],
)
def test_where_nothing_was_learned_it_says_why(world: Desk, facts: tuple[str, ...], tmp_path: Path) -> None:
    run = tmp_path / "run"
    why = world.align(run).record.why_unchanged
    text, page = said(run), page_of(run)
    assert says(why, *facts) and f"Nothing was accepted: {why}" in text and f"Nothing: {why}" in page.text
    assert "No edit" not in text and "edit" not in page.text.partition("Each question")[0]
    assert "Keep the starting judge" in page.text


def test_questions_that_the_gate_refused_are_a_rejected_candidate(refused: askance.RunResult) -> None:
    page = page_of(refused.directory)
    [tried] = refused.record.rejected_edits
    assert says(tried.reason, "within noise", "0.0001") and not refused.record.accepted_edits
    assert [each.was_tried for each in refused.record.questions] == [True] * 3 + [False] * 2
    assert "Keep the starting judge" in page.text and says(page.text, "5 questions proposed")
    assert "Iteration 1: questions name-price, promise-date, thank-customer" in page.text
    (row,) = iterations(read_run(refused.directory), [])
    assert (row.proposed, row.withstood, row.found) == (5, 3, None)


def test_a_run_that_ended_on_the_way_says_so(tmp_path: Path) -> None:
    ended_at = cache(lambda cap: Desk().align(tmp_path / f"run-{cap}", call_budget=cap))
    caps = range(600, 1000, 5)
    done = ended_at(caps[bisect_left(caps, True, key=lambda cap: bool(ended_at(cap).record.questions))])
    assert not done.record.rejected_edits
    text = said(done.directory)
    assert says(text, "Nothing was accepted", "acceptance test", "3 questions.") and not done.record.learned
    untested = Desk().align(tmp_path / "other", call_budget=750)
    assert untested.record.learned and untested.record.best.test is None
    assert says(said(tmp_path / "other"), "worth", "not measured")
    assert "Undecided: not tested" in page_of(tmp_path / "other").text


def test_a_notebook_has_the_questions_as_a_table(learned: askance.RunResult) -> None:
    rows = learned.view().tables["questions"]()
    assert [row["id"] for row in rows if row["joined"]] == list(NAMES)
    assert (
        rows[0]["good"] == "no" and rows[0]["split"] == "test" and rows[0]["low"] < rows[0]["worth"] < rows[0]["high"]
    )
    assert says(str(learned), "3 questions", 5, *NAMES)
    assert RULES["price"][0] in learned._repr_html_()


def test_what_why_says_of_a_question_that_was_learned(learned: askance.RunResult, snapshot: SnapshotAssertion) -> None:
    assert in_full(learned.directory, "--why", "name-price") == snapshot


@pytest.mark.parametrize("asked", ["name-price", "name", "name a price"])
def test_why_tells_the_history_of_a_question(learned: askance.RunResult, asked: str) -> None:
    text, row = said(learned.directory, "--why", asked), learned.record.learned[0]
    assert text.startswith(row.text) and says(text, "[name-price]", "Learned.", f"“{RULES['price'][0]}”", *row.sources)
    assert row.effect is not None and row.worth.test is not None and row.worth.test.value is not None
    assert says(text, f"{row.effect:+.2f}", "version 1 accepted", *NAMES[1:], f"{row.worth.test.value:+.3f}", "a fault")


def test_why_as_json_of_a_question_and_of_one_that_is_no_good(learned: askance.RunResult) -> None:
    found = json.loads(shown(learned.directory, "--why", "give-price", "--json").output)
    assert (found["status"], found["measured"], found["worth"]) == ("set aside", [], {})
    assert says(found["reason"], "same verdicts", "name-price")
    assert json.loads(shown(learned.directory, "--json").output)["questions"][0]["worth"]["test"]["n"] == 48
    assert says(said(learned.directory, "--why", "good"), "[good]", "the checklist", "began with")


def test_what_nobody_says_names_the_questions(learned: askance.RunResult) -> None:
    done = shown(learned.directory, "--why", "xyzzy")
    assert done.exit_code != 0
    assert says(done.exception, "Questions", "name-price", "give-price", "sound-right")
    assert says(shown(learned.directory, "--why", "price").exception, "one of", "name-price", "give-price")


def test_the_graph_has_comments_and_questions(learned: askance.RunResult) -> None:
    graph = build_graph(learned.directory)
    assert graph.edges["comment:1", "question:name-price"]["kind"] == "proposed"
    assert graph.edges["question:name-price", "version:1"]["kind"] == "asked"
    assert not list(graph["question:give-price"])


def test_the_report_begins_with_what_was_learned(learned: askance.RunResult) -> None:
    page = page_of(learned.directory)
    assert "Adopt the new judge" in page.text and "Adopt the new prompt" not in page.text
    order = [page.text.index(each) for each in ("What was learned", RULES["price"][1], "Spearman's correlation")]
    assert order == sorted(order)
    for said_of in (
        "yes is a fault",
        "weight 1.06",
        "weight 0.93",
        "weight 1.02",
        RULES["date"][0],
        "2 questions proposed",
        "e001 , e032",
    ):
        assert said_of in page.text, said_of
    assert {f"question-{name}" for name in NAMES} <= set(page.ids)
    assert len(page.ids) == len(set(page.ids)) and set(page.links) <= set(page.ids)
    assert says(page.text, "not in", "a calibration", "its own", "judge.yaml")
    assert "starting prompt" not in page.text.partition("Settings")[0]


def test_rounds_in_which_questions_were_tried_are_in_the_table(learned: askance.RunResult) -> None:
    data = read_run(learned.directory)
    (row,) = iterations(data, [])
    assert (row.number, row.proposed, row.withstood, row.found) == (1, 5, 3, None)
    table = page_of(learned.directory).text.partition("Questions proposed ")[2].split()
    assert table[table.index("1") :][:4] == ["1", "5", "3", "1"]


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
    assert says(told[1], "name-price goes", RULES["price"][1], "7 examples")
    assert says(told[2], "give-price", "set aside", "same verdicts", "name-price")
    assert says(progress.line(), "5 questions", 3, "1 accepted", "0 rejected")
    del progress.events[1:]
    assert progress.doing == LEARNING
