"""A learned question is shown as much of an example as helps the judge to answer it."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from click.testing import CliRunner

import askance
from askance.commands.report import command as report
from askance.commands.show_run import show_command as show
from askance.memory.records import CriterionRecord
from askance.optimizer.questions import choice
from askance.optimizer.questions.candidates import Standing
from askance.optimizer.questions.choice import Chooser
from askance.optimizer.questions.presentation import Compared, ways_left
from askance.prompts.checklist import Sees
from askance.prompts.prompt import Prompt
from tests.said import says
from tests.worlds import share

from .conftest import RULES, Desk

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


class Misled(Desk):
    """The judge answers one question in two by chance where it is asked in some ways."""

    def __init__(self, *ways: str) -> None:
        super().__init__(90)
        self.ways = ways
        self.quotes = "quote" not in ways

    def reply(self, messages: Sequence[tuple[str, str]]) -> str | float:
        answer, last = super().reply(messages), messages[-1][1]
        asked = any(question in last for _, question in RULES.values()) and "Reply [e" in last
        quoted = "Copy from the text" in messages[0][1]
        if asked and ("quote" if quoted else "all" if "Mail [e" in last else "output") in self.ways:
            return share("misled", *last.splitlines()[-3:])
        return answer


@pytest.mark.parametrize(
    ("misled", "sees"),
    [(("all", "quote"), "output"), (("output", "quote"), "all"), (("all", "output"), "quote")],
)
def test_it_is_asked_as_the_judge_answers_it_better(tmp_path: Path, misled: tuple[str, ...], sees: str) -> None:
    desk = Misled(*misled)
    done = desk.align(tmp_path / "run")
    learned = {row.text: row for row in done.record.learned}
    assert {question for _, question in RULES.values()} <= learned.keys()
    assert {row.sees for row in learned.values()} == {sees}
    judge = askance.load_judge(done.directory)
    assert judge.checklist.question("good").sees == "all", "nobody asked about that one"
    assert {judge.checklist.question(row.id).sees for row in learned.values()} == {sees}
    gain = done.record.gain.test
    assert gain is not None and gain.low is not None and gain.low > 0
    text = " ".join(CliRunner().invoke(show, [str(done.directory)]).output.split())
    assert ("of the output alone" in text, "with a quote" in text) == (sees == "output", sees == "quote")
    CliRunner().invoke(report, [str(done.directory)], catch_exceptions=False)
    page = (done.directory / "report.html").read_text(encoding="utf-8")
    told = ("is shown the output alone." in page, "answers with words of the output" in page)
    assert told == (sees == "output", sees == "quote")


class OneWay(Desk):
    """Counts who is asked in which way about which outputs."""

    def __init__(self) -> None:
        super().__init__(90)
        self.ways: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def reply(self, messages: Sequence[tuple[str, str]]) -> str | float:
        last = messages[-1][1]
        quoted = "Copy from the text" in messages[0][1]
        if quoted or "Reply [e" in last:
            way = "quote" if quoted else "all" if "Mail [e" in last else "output"
            self.ways[way].update(re.findall(r"Does the reply [^?]*[?]", last))
        return super().reply(messages)


def test_the_candidates_that_most_remarks_led_to_decide_once_for_all_folds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[list[int], list[int]]] = []
    first_look, told = Chooser.seen_as_helps, Compared.of

    async def looked(self: Chooser, best: Any, named: Mapping[str, CriterionRecord]) -> Any:
        def decided(found: Mapping[Sees, Mapping[str, Standing | None]]) -> Compared:
            (asked,) = {tuple(each) for each in found.values()}
            support = {name: len(each.sources) for name, each in named.items()}
            seen.append(([support[each] for each in asked], [support[each] for each in support.keys() - set(asked)]))
            return told(found)

        monkeypatch.setattr(Compared, "of", decided)
        return await first_look(self, best, named)

    monkeypatch.setattr(Chooser, "seen_as_helps", looked)
    monkeypatch.setattr(choice, "COMPARED", 2)
    desk = OneWay()
    done = desk.align(tmp_path / "run", probed_outputs=0)  # a probe repeats the input in the output
    assert len(seen) == 1, "the folds ask as the judge does that is kept"
    compared, others = seen[0]
    assert len(compared) == 2 and min(compared) >= max(others) and max(compared) > min(others)
    (taken,) = {row.sees for row in done.record.learned}
    assert {way: len(asked) for way, asked in desk.ways.items() if way != taken} == dict.fromkeys(
        {"all", "output", "quote"} - {taken}, 2
    ), "nobody else is asked in another way"


def test_where_the_prompt_shows_no_more_than_the_output_nothing_is_asked_twice(tmp_path: Path) -> None:
    desk, same = Desk(90), Desk(90)
    same.prompt = Prompt("Judge the reply.\n\nReply: {output}\n\n{question}")
    both, once = desk.align(tmp_path / "both"), same.align(tmp_path / "once")
    assert {row.sees for row in once.record.questions} == {"all"}
    assert once.record.calls < both.record.calls
    assert [row.text for row in once.record.learned] == [row.text for row in both.record.learned]


def test_all_questions_together_decide() -> None:
    def taken(**effects: list[float | None]) -> str:
        found = {
            way: {f"q{place}": Standing(2.0, each) for place, each in enumerate(several)}
            for way, several in effects.items()
        }
        return Compared.of(cast("Mapping[Sees, Mapping[str, Standing | None]]", found)).taken

    one, other = [0.1, -0.1, 0.4], [0.3, 0.1, 0.1]
    assert taken(all=one, output=other) == taken(all=other, output=one) == "output", "which is better is not clear"
    assert taken(all=[0.3, 0.3, 0.25], output=[0.1, 0.1, 0.1]) == "all", "all of them say so"
    assert taken(all=one, output=one) == "output", "where nothing can be told, less is read"
    assert taken(all=[0.1, 0.1, 0.2], quote=[0.3, 0.3, 0.0]) == "quote", "they say more on average"
    assert taken(all=[0.3, 0.3, 0.0], quote=[0.1, 0.1, 0.2]) == "all"
    assert taken(all=one, output=one, quote=one) == "output"
    assert taken(all=[None], output=[None], quote=[None]) == "output", "nothing speaks for a quote"
    assert taken(all=[None, 0.3], quote=[0.9, 0.2]) == "all", "only what is known in every way is compared"


def test_it_says_how_questions_are_asked_and_why() -> None:
    found = Compared.of({"all": {"a": Standing(2.0, 0.1), "b": None}, "quote": {"a": Standing(2.0, 0.25), "b": None}})
    assert says(found.sentence, 1, "everything in view +0.10", "a quote +0.25")
    few = Compared.of({"all": {"a": None}, "output": {"a": None}}).sentence
    assert says(few, "the output alone", "too few", "rejected outputs") and not says(few, "Mean effect")


def test_a_way_that_a_first_look_rules_out_is_not_looked_at_again() -> None:
    def left(**effects: list[float | None]) -> list[str]:
        found = {
            way: {f"q{place}": Standing(2.0, each) for place, each in enumerate(several)}
            for way, several in effects.items()
        }
        return [*ways_left(cast("Mapping[Sees, Mapping[str, Standing | None]]", found))]

    high, low, mixed = [0.4, 0.3, 0.35], [0.1, 0.05, 0.1], [0.6, 0.0, 0.4]
    assert left(all=low, output=high, quote=mixed) == ["output", "quote"], "less is read where it tells more"
    assert left(all=high, output=low, quote=mixed) == ["all", "quote"]
    assert left(all=[0.45, 0.2, 0.39], output=high, quote=low) == ["output"], "a quote is worse by a standard error"
    assert left(all=[0.3, 0.5, 0.36], output=high, quote=low) == ["all", "output", "quote"], "nothing is clear"
    assert left(all=low, output=low, quote=high) == ["quote"]
    assert left(all=[None], output=[None], quote=[None]) == ["all", "output", "quote"], "nothing is known"
