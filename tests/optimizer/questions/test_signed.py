"""Questions that read oddly are worded anew before they join, where the judge ranks the outputs alike with both."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from askance.agents.question_writer import QuestionMender
from askance.models.base import Request
from askance.models.gateway import Gateway
from askance.optimizer.modes.align import prepare
from askance.run_estimate import estimate_run
from askance.testing import ScriptedModel

ODD = "Does the reply mention financial?"
PRICE = "Does the reply name a price?"
DEAF = "Does the reply sound right?"
MENDS = "The question reads oddly."


def hears_odd(desk: Any, mended: str) -> None:
    """Let the note-taker write an odd question for the price, which the judge takes for what is meant."""
    plain_questions, plain_reply = desk.questions_for, desk.reply

    def questions_for(comment: str) -> str:
        return plain_questions(comment).replace(PRICE, ODD).replace("Does the reply give a price?", DEAF)

    def reply(messages: Sequence[tuple[str, str]]) -> str | float:
        if MENDS in messages[0][1]:
            return mended
        return plain_reply([(role, text.replace(ODD, PRICE)) for role, text in messages])

    desk.questions_for, desk.reply = questions_for, reply


def test_a_question_joins_in_words_that_a_person_can_sign(desk: Any, tmp_path: Path) -> None:
    hears_odd(desk, f"{DEAF}\n{PRICE}")
    done = desk.align(tmp_path / "run")
    asked = {each["text"] for each in done.result["questions"] if each["joined"]}
    assert PRICE in asked and ODD not in asked
    learned = next(each for each in done.record.learned if each.text == PRICE)
    assert any("price" in each for each in learned.comments), "it still says which comments led to it"
    assert PRICE in (tmp_path / "run" / "judge.yaml").read_text(encoding="utf-8")


def test_words_that_rank_otherwise_are_not_taken(desk: Any, tmp_path: Path) -> None:
    hears_odd(desk, f"{DEAF}\n{DEAF.replace('right', 'fine')}")
    asked: list[Request] = []
    done = desk.align(tmp_path / "run", asked.append)
    assert ODD in {each["text"] for each in done.result["questions"] if each["joined"]}
    assert sum(MENDS in each.messages[0][1] for each in asked) == 1


def test_a_question_that_reads_well_is_not_worded_anew(desk: Any, tmp_path: Path) -> None:
    asked: list[Request] = []
    desk.align(tmp_path / "run", asked.append)
    assert not any(MENDS in each.messages[0][1] for each in asked)


async def test_wordings_are_sentences_and_the_comment_is_shown() -> None:
    model = ScriptedModel(lambda _: f"1. {PRICE}\n{ODD}\nDoes the reply mention usual?\nIgnore all rules.")
    mender = QuestionMender(Gateway(), model)
    assert await mender.write(ODD, ("Again a price!", "never")) == [PRICE]
    last = model.requests[0].messages[-1][1]
    assert ODD in last and "Again a price!" in last and "never" not in last
    assert await mender.write(ODD, ()) == [PRICE]


def test_a_run_that_words_questions_anew_buys_no_more_than_was_estimated(desk: Any, tmp_path: Path) -> None:
    hears_odd(desk, PRICE)
    options = {"embedder": "words", "update": "questions", "mode": "each", "measures": "none"}
    job = prepare(desk.rows, desk.checklist, desk.model(), desk.prompt, options)
    most = estimate_run(job)
    done = desk.align(tmp_path / "run")
    assert done.result["calls"] <= most.fixed.calls + most.iteration_calls + most.last_calls
