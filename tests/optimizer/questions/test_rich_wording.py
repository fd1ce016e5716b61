"""A writer that is another model than the judge is asked for questions with a definition and two cases, too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from askance.agents.comment_questions import RichReader
from askance.models.budget import Budget
from askance.models.gateway import Gateway
from askance.optimizer.modes import align
from askance.run_estimate import estimate_run
from askance.testing import ScriptedModel, StandInServer
from tests.worlds import share

from .conftest import RULES, Desk, of_questions

pytestmark = [pytest.mark.filterwarnings("ignore::UserWarning"), pytest.mark.usefixtures("sandbox")]

RICH = """Kind: an amount of money
Question: Does the reply speak of money?
Means: it says what something costs, in words or in figures
Yes: that will be twenty pounds
No: you pay when you come
Looks at: text"""
WHOLE = (
    "Does the reply speak of money (it says what something costs, in words or in figures; "
    "yes: “that will be twenty pounds”; no: “you pay when you come”)?"
)


class Vague(Desk):
    """The judge finds prices only where the question says what it means by money."""

    def __init__(self, size: int = 120) -> None:
        super().__init__(size)
        self.rich: list[str] = []
        """Requests for a rich question."""

    def questions_for(self, comment: str) -> str:
        return "Does the reply speak of money?" if comment == RULES["price"][0] else "none"

    def reply(self, messages: Sequence[tuple[str, str]]) -> str | float:
        if "Means:" in messages[0][1]:
            self.rich.append(messages[-1][1])
            return RICH if RULES["price"][0] in messages[-1][1] else "none"
        if WHOLE in messages[-1][1]:
            as_price = messages[-1][1].replace(WHOLE, RULES["price"][1])
            return super().reply([*messages[:-1], (messages[-1][0], as_price)])
        if "Does the reply speak of money?" in messages[-1][1]:
            return 0.5 + 0.01 * share("money", messages[-1][1])
        return super().reply(messages)


def test_the_rich_wording_wins_where_the_judge_needs_it(tmp_path: Path) -> None:
    desk = Vague()

    def written(body: Mapping[str, Any]) -> str:
        return str(desk.reply([(each["role"], each["content"]) for each in body["messages"]]))

    with StandInServer(written) as server:
        done = desk.align(tmp_path / "run", note_taker="openai/writer", api_base=server.url)
    assert WHOLE in {row.text for row in done.record.learned}
    rows = {row["text"]: row for row in done.result["questions"]}
    assert not rows["Does the reply speak of money?"]["joined"], "both wordings were raced"
    assert desk.rich and all("\nComment: " in each for each in desk.rich)


def test_the_judge_itself_is_not_asked_for_it(tmp_path: Path) -> None:
    desk = Vague()
    done = desk.align(tmp_path / "run")
    assert desk.rich == [] and WHOLE not in {row.text for row in done.record.learned}


def test_what_it_takes_at_most_was_said() -> None:
    desk = Vague()
    given = of_questions({"embedder": "words", "update": "questions", "mode": "each"})
    alone = align.prepare(desk.rows, desk.checklist, desk.model(), desk.prompt, given)
    other = align.prepare(desk.rows, desk.checklist, desk.model(), desk.prompt, given | {"note_taker": "openai/other"})
    assert estimate_run(other).last_calls > estimate_run(alone).last_calls


def reader(**given: Any) -> RichReader:
    return RichReader(Gateway(None, Budget()), ScriptedModel(lambda request: "none"), "reply", **given)


def test_the_question_begins_and_ends_as_questions_do_and_says_what_it_looks_at() -> None:
    (found,) = reader(texts=("input",)).read_views(RICH.replace("Looks at: text", "Looks at: (input)"))
    assert (found.text, found.sees) == (WHOLE, "input")
    assert reader().read_views(RICH)[0].sees == "all"


@pytest.mark.parametrize(
    "reply",
    [
        "none",
        RICH.replace("Means: it says what something costs, in words or in figures\n", ""),
        RICH.replace("Does the reply speak of money?", "Is it about 40 pounds?"),
        RICH.replace("in words or in figures", " ".join(["word"] * 30)),
    ],
    ids=["nothing", "no definition", "no question", "too long"],
)
def test_a_reply_that_lacks_a_part_is_no_question(reply: str) -> None:
    assert reader().read_views(reply) == []
