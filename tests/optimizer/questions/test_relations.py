"""A question about a relation is proposed as one, asked with what it needs in view, and not lost in the race."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import askance
from askance.agents.comment_questions import QuestionAgent
from askance.agents.measures import nearest
from askance.commands.report import command as report
from askance.commands.show_run import show_command as show
from askance.memory.records import CriterionRecord
from askance.optimizer.questions.candidates import standing
from askance.optimizer.questions.presentation import Groups
from askance.optimizer.questions.proposers import CommentProposer
from askance.optimizer.questions.racing import with_places
from tests.worlds import share

from .conftest import Desk

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

THINGS = ("linen", "masks", "pools", "exams", "gift cards", "ferries", "hedges", "parking", "choirs", "passports")
SAME = "Does the reply speak of the same thing as the question?"
ASKED = "Does the reply address the question asked?"


class HelpDesk(Desk):
    """Replies that are about another thing than the question; the judge sees that only beside the question.

    Most comments name the two things, so that a writer who is shown the output alone asks for a thing.
    """

    def __init__(self, size: int = 120) -> None:
        super().__init__(size)
        self.shown: list[str] = []
        """Messages in which a relation was asked for."""

    def thing(self, example: str) -> str:
        return THINGS[int(len(THINGS) * share("thing", example))]

    def told(self, example: str) -> str:
        """The thing that the reply is about."""
        others = [each for each in THINGS if each != self.thing(example)]
        return others[int(len(others) * share("told", example))] if self.broken(example) else self.thing(example)

    def broken(self, example: str) -> list[str]:
        return ["other"] if share("broken", example) < 0.4 else []

    @property
    def rows(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        for each in self.ids:
            thing = self.told(each)
            told = ("Thank you for writing.", f"We know much of {thing}.", f"Many ask us about {thing}.")
            row: dict[str, Any] = {
                "id": each,
                "input": f"Mail [{each}]: what do you know of {self.thing(each)}?",
                "output": " ".join([f"Reply [{each}].", *told, "It costs nothing.", "Come and see us.", "Good bye."]),
                "human": {"overall": "pass" if self.passed(each) else "fail"},
            }
            if not self.passed(each) and self.broken(each):
                often = share("words", each) < 0.2
                row["comment"] = "does not answer what was asked" if often else f"about {thing}, not {self.thing(each)}"
            rows.append(row)
        return rows

    def questions_for(self, comment: str) -> str:
        self.asked.append(comment)
        if "asked" in comment:
            return ASKED
        return "\n".join(f"Does the reply speak of {each}?" for each in THINGS if each in comment)

    def reply(self, messages: Sequence[tuple[str, str]]) -> str | float:
        last = messages[-1][1]
        if last.startswith("Text: ") and "\nInput: " in last:
            return f"{SAME} (input)"
        asked = SAME in last or ASKED in last
        if not asked and not re.search(
            r"Does the reply speak of [a-z ]+\?\s*(?:Answer|\Z)", last.splitlines()[-1] + last
        ):
            return super().reply(messages)
        example = re.findall(r"\[(e\d+)\]", last)
        if last.startswith(("Does the reply ", "Comment: ", "Text: ")) or not example:
            return super().reply(messages)
        if asked:
            self.shown.append(last)
            question = re.search(r"what do you know of ([a-z ]+)\?", last)
            noise = share("noise", example[0], last.splitlines()[-2:])
            if question is None:
                return 0.4 + 0.2 * noise
            return (0.75 if f"of {question[1]}." in last.replace(question[0], "") else 0.15) + 0.1 * noise
        thing = re.findall(r"Does the reply speak of ([a-z ]+)\?", last)[-1]
        told = re.sub(r"what do you know of [a-z ]+\?|Does the reply speak of [a-z ]+\?", "", last)
        return (0.85 if thing in told else 0.04) + 0.1 * share("noise", example[0], thing)


@pytest.fixture(autouse=True)
def by_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nearest sentences by their words: no embedder is needed."""
    monkeypatch.setattr(nearest, "can_embed", lambda: False)


def test_a_relation_that_people_speak_of_is_learned(tmp_path: Path) -> None:
    desk = HelpDesk()
    done = desk.align(tmp_path / "run")
    learned = {row.text: row for row in done.record.learned}
    assert {SAME, ASKED} & learned.keys()
    assert {row.sees for text, row in learned.items() if text in (SAME, ASKED)} == {"input"}
    gain = done.record.gain.test
    assert gain is not None and gain.low is not None and gain.low > 0.1
    judge = askance.load_judge(done.directory)
    assert {each.sees for each in judge.checklist.asked if each.text in (SAME, ASKED)} == {"input"}
    assert all("Come and see us." not in each for each in desk.shown), "no more is shown than the nearest sentences"
    covered = done.record.comment_coverage
    assert covered["value"] > 0.8 and covered["n"] > 8 and covered["gain"]["low"] > 0.2
    assert covered["chance"] < 0.6 and covered["start"]["gain"]["value"] < 0.2
    assert f"Of {covered['n']} comments" in " ".join(CliRunner().invoke(show, [str(done.directory)]).output.split())
    CliRunner().invoke(report, [str(done.directory)], catch_exceptions=False)
    page = (done.directory / "report.html").read_text(encoding="utf-8")
    assert f"Of {covered['n']} comments" in page and "nearest to each" in page


def test_asked_of_the_output_alone_it_is_not_learned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def none(*given: Any) -> dict[str, Any]:
        return {}

    monkeypatch.setattr(CommentProposer, "_read_relations", none)
    monkeypatch.setattr(QuestionAgent, "view_of", lambda self, question: "all")
    done = HelpDesk().align(tmp_path / "run")
    assert not {SAME, ASKED} & {row.text for row in done.record.learned}
    assert done.record.gain.test is None or not (done.record.gain.test.low or 0) > 0
    assert done.record.comment_coverage["value"] is None and "no criterion" in done.record.comment_coverage["reason"]


def test_a_relation_has_places_of_its_own_in_the_race() -> None:
    ranked = [f"t{place}" for place in range(9)] + ["r0", "r1", "r2", "r3"]
    relations = {"r0", "r1", "r2", "r3"}
    assert with_places(ranked, 6, relations) == ["t0", "t1", "t2", "t3", "r0", "r1"]
    assert with_places(ranked, 6, ()) == ranked[:6], "without relations the best stay"
    assert with_places(["r0", *ranked[:9], "r1"], 3, {"r0", "r1"}) == ["r0", "t0", "t1"]
    best = ["r0", "r1", "r2", "t0", "t1", "t2"]
    assert with_places(best, 3, relations) == ["r0", "r1", "r2"]
    assert with_places(best, 3, relations, more=False) == ["r0", "t0", "t1"], "at first they are seen on other outputs"
    assert with_places(["t0", "r0", "r1", "r2"], 3, relations, more=False) == ["t0", "r0", "r1"], (
        "no place is left free"
    )


def test_where_its_own_cases_say_little_all_rejected_outputs_say_which_answer_is_good() -> None:
    fine = {f"f{place}": place % 5 - 2.0 for place in range(20)}
    poor = {f"p{place}": place % 5 - 0.5 for place in range(20)} | {"own": 0.1}
    how = ({**fine, **poor}, ["own"], fine, poor)
    topic, relation = standing(*how), standing(*how, is_relation=True)
    assert topic is not None and topic.problem is not None and "its own case" in topic.problem
    assert relation is not None and relation.problem is None and not relation.was_said
    assert relation.good == "no" and relation.effect is not None and relation.effect > 0.1


def test_candidates_of_one_call_see_the_same_part_of_an_example() -> None:
    groups = Groups()
    named = {
        f"q{place}": CriterionRecord.of(
            f"Does it {place}?", "d", "comment", sees="input" if place % 3 == 0 else "quote"
        )
        for place in range(20)
    }
    found = groups.holding(named, {})
    assert all(len({each.sees for each in group.values()}) == 1 for group in found)
    assert {name for group in found for name in group} == named.keys()
    output = {name: each if each.is_relation else each.but(sees="output") for name, each in named.items()}
    again = groups.holding(output, {})
    assert [group.keys() for group in again] == [group.keys() for group in found]
    assert {each.sees for group in again for each in group.values()} == {"input", "output"}
