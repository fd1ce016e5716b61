"""Questions that a person made of comments: the run that goes on tries them, whatever was read before."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import askance
from askance.memory.by_hand import WANTED_FILE, WantedQuestion, add_wanted, question_of, read_wanted
from askance.memory.journal import read_events
from askance.prompts.errors import InputError
from tests.said import says

from .conftest import DEAF, RULES, MuteDesk, of_questions

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
TIME = "2026-01-01T00:00:00+00:00"
PRICE, ASKED = RULES["price"]


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose note-taker made no question of the comments on prices."""
    run = tmp_path_factory.mktemp("wanted") / "first"
    MuteDesk(120).align(run, learn_from="development")
    return run


@pytest.fixture
def run(first: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(first, tmp_path / "first"))


def wanted(run: Path, text: str, part: str = "development") -> WantedQuestion:
    """The question, made of the comments on prices in one part of the examples."""
    split = next(each for each in read_events(run / "journal.jsonl") if each["event"] == "split")
    named = tuple(row["id"] for row in MuteDesk(120).rows if row.get("comment") == PRICE and row["id"] in split[part])
    return WantedQuestion(comment=PRICE, text=text, dimension="overall", examples=named, by="anna", time=TIME)


def go_on(run: Path, new: Path) -> askance.RunResult:
    desk = MuteDesk(120)
    settings = {"embedder": "words", "resamples": 400, "update": "questions", "learn_from": "development"}
    return askance.align(desk.rows, from_run=run, model=desk.model(), run=new, **of_questions(settings))


def test_the_next_run_tries_what_a_person_wants_on_the_same_examples_and_asks_it_where_it_is_worth_it(
    run: Path, tmp_path: Path
) -> None:
    assert ASKED not in {each.text for each in go_on(run, tmp_path / "without").record.questions}
    add_wanted(run, wanted(run, ASKED))
    done = go_on(run, tmp_path / "with").record
    tried = next(each for each in done.questions if each.text == ASKED)
    assert tried.joined and tried.comments == (PRICE,) and tried.sources
    assert ASKED in {each.text for each in askance.load_judge(tmp_path / "with").checklist.questions}


def test_one_that_was_dropped_is_tried_again_and_is_told_with_its_reason(run: Path, tmp_path: Path) -> None:
    add_wanted(run, wanted(run, DEAF))
    done = go_on(run, tmp_path / "second").record
    tried = next(each for each in done.questions if each.text == DEAF)
    assert not tried.joined and tried.reason
    third = go_on(tmp_path / "second", tmp_path / "third").record
    assert DEAF not in {each.text for each in third.questions}, "it was tried, and is not wanted again"


def test_the_last_word_stands_and_what_was_taken_back_is_not_tried(run: Path, tmp_path: Path) -> None:
    add_wanted(run, wanted(run, DEAF))
    add_wanted(run, wanted(run, ASKED))
    assert [each.text for each in read_wanted(run).values()] == [ASKED]
    add_wanted(run, wanted(run, ASKED).model_copy(update={"text": ""}))
    assert read_wanted(run) == {}
    assert ASKED not in {each.text for each in go_on(run, tmp_path / "second").record.questions}


def test_a_damaged_file_is_named_with_its_line_and_nothing_is_added(run: Path, tmp_path: Path) -> None:
    add_wanted(run, wanted(run, ASKED))
    with (run / WANTED_FILE).open("a") as file:
        file.write('{"comment": "x"}\n')
    for act in (lambda: add_wanted(run, wanted(run, ASKED)), lambda: go_on(run, tmp_path / "second")):
        with pytest.raises(InputError) as caught:
            act()
        assert says(str(caught.value), WANTED_FILE, "line 2")
    assert len((run / WANTED_FILE).read_text().splitlines()) == 2


def test_a_comment_becomes_a_question_that_yes_or_no_answers() -> None:
    assert question_of("Is it  too long?") == "Is it too long?"
    assert question_of("Too long.\nFar too long.").endswith("“Too long. Far too long.”?")
    assert question_of("Why so long?").startswith("Would a reader")
    assert len(question_of("Much too long. " * 200)) < 400
    with pytest.raises(ValueError, match="yes or no"):
        WantedQuestion(comment="c", text="Too long.", dimension="overall", examples=("e1",), by="anna", time=TIME)
