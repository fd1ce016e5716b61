"""Questions of a lesson memory: candidates where nobody wrote comments, and gone where people removed them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import askance
from askance.memory.memory_directory import MemoryDirectory
from askance.memory.provenance import build_graph
from askance.memory.records import CriterionRecord
from askance.memory.why import why_question
from askance.optimizer.questions.proposers import Finder
from tests.said import says

from .conftest import RULES, Desk

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The memory of a run that has learned three questions from comments."""
    home = tmp_path_factory.mktemp("learned")
    Desk(120).align(home / "run", memory=str(home / "memory"))
    return home / "memory"


@pytest.fixture
def memory(learned: Path, tmp_path: Path) -> Path:
    file = tmp_path / "memory" / "memory.jsonl"
    file.parent.mkdir()
    file.write_bytes((learned / "memory.jsonl").read_bytes())
    return file.parent


@pytest.fixture
def silent() -> Desk:
    """Other examples, and nobody says why."""
    desk = Desk(120, comments=False)
    desk.ids = [f"e{number:03d}" for number in range(500, 620)]
    return desk


def held(memory: Path) -> Any:
    return {each.text: each for each in askance.load_memory(memory).read().questions}


def test_questions_are_kept_with_their_comments_and_what_they_were_worth(learned: Path) -> None:
    found = held(learned)
    assert set(found) == {question for _, question in RULES.values()}
    price = found["Does the reply name a price?"]
    (run,) = price.runs
    assert (price.good, run.origin, run.comments) == ("no", "comment", (RULES["price"][0],))
    assert run.sources and run.worth.test is not None and run.worth.test.value is not None


def test_a_run_without_comments_learns_the_questions_of_the_memory(silent: Desk, memory: Path, tmp_path: Path) -> None:
    alone = silent.align(tmp_path / "alone").record
    assert not alone.learned and alone.finish_reason == "no_evidence"
    done = silent.align(tmp_path / "run", memory=str(memory))
    joined = {each.text for each in done.record.learned}
    assert len(joined) >= 2 and joined <= set(held(memory))
    gain = done.record.gain.test
    assert gain is not None and gain.low is not None and gain.low > 0
    assert {each.origin for each in done.record.learned} == {"memory"}
    assert {each.origin for each in askance.load_judge(done.directory).origins.values()} == {"memory"}
    assert [each.what for each in done.record.revised_questions] == ["dropped"], "that of the start tells nothing"
    for text, entry in held(memory).items():
        assert [each.joined for each in entry.runs] == [True, text in joined]
    name = done.record.learned[0].id
    assert why_question(build_graph(done.directory), name).origin == "memory"
    assert says((done.directory / "report.html").read_text(encoding="utf-8"), "the lesson memory")


def test_a_removed_question_is_asked_no_more_in_near_words_either(
    memory: Path, tmp_path: Path, make_desk: type[Desk]
) -> None:
    gone = held(memory)["Does the reply promise a date?"]
    MemoryDirectory(memory).remove(gone.id)
    desk = make_desk(120)
    done = desk.align(tmp_path / "run", memory=str(memory)).record
    assert gone.text not in {each.text for each in done.questions} | set(held(memory))
    assert {each.text for each in done.learned} <= set(held(memory))


def test_words_near_to_what_was_removed_are_left_out_and_that_is_said(tmp_path: Path) -> None:
    from askance.memory.embedders import embedder
    from askance.memory.journal import Journal
    from askance.models.progress import Silent
    from askance.optimizer.events import Teller

    nothing: Any = None
    said: list[str] = []

    class Told(Silent):
        def say(self, text: str) -> None:
            said.append(text)

    events = Teller(Journal(tmp_path / "journal.jsonl"), Told())
    learner = Finder(nothing, embedder("words"), events, 3)
    learner.removed = ["Does the reply promise a date?"]
    texts = ("Does the reply, promise a date?", "Does the reply name a price?")
    left = learner._without_removed([CriterionRecord.of(text, "overall", "comment", ()) for text in texts])
    assert [each.text for each in left] == [texts[1]]
    assert len(said) == 1 and says(said[0], "people removed", "memory", texts[0])
