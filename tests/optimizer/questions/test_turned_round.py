"""Questions of the start that speak for what people reject: turned round or left out, for the verdicts that are there."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import askance
from askance.optimizer.questions.candidates import Asked, fates_of
from askance.prompts.checklist import Checklist, Question
from askance.prompts.prompt import Prompt
from askance.testing import ScriptedModel
from tests.worlds import share

from .conftest import of_questions

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

HELPS = "Does the reply offer a refund?"
"""Its author takes a refund for a merit; people reject every reply with one."""
FRIENDLY = "Is the reply friendly?"
"""Says the same of all replies."""


def rows(count: int = 90) -> list[dict[str, Any]]:
    """Replies of which people reject those with a refund, without a word why."""
    made = []
    for number in range(count):
        name = f"e{number:03d}"
        text = f"[{name}] {'We refund it.' if share('refund', name) < 0.45 else 'We look into it.'}"
        made.append({"id": name, "input": "Mail.", "output": text, "human": {"overall": "refund" not in text}})
    return made


def judge(wrong: float = 0.0) -> ScriptedModel:
    """``wrong``: share of the replies that it takes for the opposite where it is shown no case."""

    def script(request: Any) -> str | float:
        cases, _, last = request.messages[-1][1].rpartition("the output that you are to judge.")
        if "\n[" not in f"\n{last}" and "[e" not in last:
            return "none"
        noise = 0.1 * share("noise", last)
        if HELPS in last:
            errs = not cases and share("wrong", re.findall(r"\[(e\d+)\]", last)[0]) < wrong
            return 0.85 + noise if ("refund it" in last) is not errs else 0.05 + noise
        return 0.8 + noise if FRIENDLY in last else "none"

    return ScriptedModel(script, name="desk/judge")


def align(run: Path, *questions: Question, wrong: float = 0.0, **options: Any) -> askance.RunResult:
    settings: dict[str, Any] = {"embedder": "words", "resamples": 400, "update": "questions", "explain": "never"}
    checklist = Checklist(task="Answer the customer.", questions=list(questions))
    return askance.align(
        rows(),
        checklist=checklist,
        model=judge(wrong),
        prompt=Prompt("Judge the reply.\n\nMail: {input}\n\nReply: {output}\n\n{question}"),
        run=run,
        **of_questions(settings | options),
    )


@pytest.mark.parametrize("learn_from", ["both", "development"])
def test_a_question_of_the_wrong_polarity_is_turned_round_without_a_further_verdict(
    tmp_path: Path, learn_from: str
) -> None:
    done = align(
        tmp_path / "run",
        Question(id="helps", text=HELPS),
        Question(id="friendly", text=FRIENDLY),
        learn_from=learn_from,
    )
    record = done.record
    assert [(each.id, each.good, each.what) for each in record.revised_questions] == [("helps", "no", "flipped")]
    gain = record.gain.test
    assert gain is not None and gain.low is not None and gain.low > 0
    assert done.record.roles["model"].calls == 90 * 2, "each question of the start once on each example"
    judge_file = askance.load_judge(done.directory)
    origin = judge_file.origins["helps"]
    assert (origin.origin, origin.good) == ("flipped", "yes")
    assert judge_file.origins["friendly"].origin == "start"
    assert "'helps' (Does the reply offer a refund?) is turned round" in str(done)
    assert "is turned round" in (done.directory / "report.html").read_text(encoding="utf-8")


def test_what_is_accepted_after_it_makes_validation_no_untouched_examples_again(tmp_path: Path) -> None:
    done = align(tmp_path / "run", Question(id="helps", text=HELPS), update="auto", wrong=0.2).record
    turned_round, shown = done.accepted_edits
    assert [each.what for each in done.revised_questions] == ["flipped"] and shown.shows == "4 fixed examples"
    assert done.crossed and done.gain.validation == turned_round.gain
    assert done.gain.validation is not None and done.gain.validation.n == 54


def test_one_that_is_right_stays_and_nothing_is_tried(tmp_path: Path) -> None:
    done = align(tmp_path / "run", Question(id="helps", text=HELPS, good="no"), Question(id="friendly", text=FRIENDLY))
    assert not done.record.changed and not done.record.rejected_edits
    assert "revised_questions" not in json.loads((done.directory / "result.json").read_text(encoding="utf-8"))


def test_with_keep_questions_none_is_turned_round(tmp_path: Path) -> None:
    done = align(
        tmp_path / "run", Question(id="helps", text=HELPS), Question(id="friendly", text=FRIENDLY), keep_questions=True
    )
    assert not done.record.changed and not done.record.revised_questions


PRAISE, FAULT = (Question(id="q", text="Is it?", good=good) for good in ("yes", "no"))
LOW, HIGH = [-2.0, -1.9, -2.1, -1.8, -2.2, -2.0], [2.0, 1.9, 2.1, 1.8, 2.2, 2.0]
FINE = [-1.0, -0.5, 0.0, 0.5, 1.0, -0.8, 0.8, 0.2]
MIXED = [-2.0, 2.0, -1.0, 1.0, 0.0, 0.5]


def fate(
    rejected: list[float], fine: list[float], question: Question = PRAISE, *, beside: int = 0, join: bool = False
) -> str:
    """What becomes of a question beside as many others that say what it should."""
    others = {f"other-{number}": Asked(PRAISE, LOW, HIGH) for number in range(beside)}
    joined = [question.dimension] if join else []
    return fates_of({"q": Asked(question, rejected, fine), **others}, joined)["q"]


def test_the_fate_of_a_question_needs_more_than_a_few_outputs_and_more_than_chance() -> None:
    assert fate(HIGH, LOW) == "flipped"
    assert fate(HIGH, LOW, FAULT) == "stays"
    assert fate(LOW, HIGH) == "stays"
    assert fate(HIGH[:2], LOW) == "stays", "two rejected outputs say nothing"
    assert fate(MIXED, MIXED[::-1]) == "stays"


def test_what_may_be_chance_turns_no_question_round() -> None:
    """Outputs on which an honest question is a little higher where people reject: each is looked at, and some are so."""
    rejected = [1.9, 2.2, 0.1, 2.0, -0.3, -0.4, 0.9, 2.4]
    assert fate(rejected, FINE) == "dropped"
    assert fate([3.0, 3.1, 2.9, 3.2, 2.8, 3.0], FINE) == "flipped"


def test_an_idle_question_is_left_out_where_others_join_and_no_other_of_its_author_vouches_for_it() -> None:
    assert fate(MIXED, MIXED[::-1], join=True) == "idle"
    assert fate(MIXED, MIXED[::-1], beside=3, join=True) == "stays", "its author's others tell what people reject"
    assert fate(HIGH, LOW, beside=3, join=True) == "flipped", "nobody vouches for what praises it"
    assert fate(LOW, HIGH, join=True) == "stays"
    assert fate([0.0] * 6, [0.0] * 6, join=True) == "idle", "the same answer to everything has no standard error"
    assert fate(HIGH[:2], LOW, join=True) == "stays", "two rejected outputs say nothing"


def test_a_question_is_idle_only_where_others_join_its_own_dimension() -> None:
    told = {"tone": Asked(Question(id="tone", text="Is it?", dimension="tone"), MIXED, MIXED[::-1])}
    assert fates_of(told, ["facts"]) == {"tone": "stays"}
    assert fates_of(told, ["facts", "tone"]) == {"tone": "idle"}
