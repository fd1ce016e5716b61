"""Questions written anew from a changed prompt: the two are one candidate."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from askance.agents.question_writer import QuestionWriter
from askance.evaluation.scoring import ExampleScore
from askance.memory.embedders import embedder
from askance.memory.run_directory import RunDirectory
from askance.models.base import ModelError, Request
from askance.models.budget import Budget
from askance.models.gateway import Gateway, RetryPolicy
from askance.models.progress import Silent
from askance.optimizer.acceptance import MeanYardstick, PairedAcceptance
from askance.optimizer.contest import ANEW, Contest
from askance.optimizer.events import Teller
from askance.optimizer.questions.again import QuestionsAgain, keep_known
from askance.optimizer.subject import Draft, Observation, Pair, Version
from askance.prompts.checklist import Checklist, Question
from askance.prompts.errors import BudgetExceededError
from askance.prompts.examples import Example
from askance.prompts.lessons import Edit
from askance.prompts.prompt import Prompt
from askance.prompts.verdicts import Verdict
from askance.testing import Reply, ScriptedModel
from tests.said import says

EXAMPLES = [Example(id=f"e{n}", input="i") for n in range(12)]
OLD = Checklist(
    task="Judge letters.",
    questions=[
        Question(id="d-1", text="Is the letter kind?", dimension="d", weight=2.0, violation="Rude."),
        Question(id="d-2", text="Is the letter short?", dimension="d"),
    ],
)


class Told(Silent):
    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)


NEW_RULE = "Rude letters fail."
EDIT = Edit(old="Judge letters well.", new=f"Judge letters well.\n{NEW_RULE}", lessons=("L1",))


class Judge:
    """Worth more the more questions there are, unless one is about length; a changed prompt alone is worth ``alone``."""

    alone = 0.0

    def __init__(self) -> None:
        self.asked: list[Checklist] = []

    async def observe(
        self, draft: Draft, examples: Sequence[Example], on_done: Callable[[int, int], None] | None = None
    ) -> Observation:
        assert draft.checklist is not None
        self.asked.append(draft.checklist)
        texts = [each.text for each in draft.checklist.questions]
        value = 0.0 if "Is the letter long?" in texts else 0.1 * len(texts)
        if draft.checklist == OLD and NEW_RULE in draft.prompt.text:
            value += self.alone
        return Observation(examples, [], [ExampleScore(each.id, value, {"d": value}) for each in examples])

    async def probe(self, draft: Draft, pairs: Sequence[Pair], seen: Observation) -> dict[Pair, Verdict]:
        raise AssertionError("questions are not tried on pairs")


class Desk:
    def __init__(self, folder: Path, script: Callable[[Request], Reply], budget: Budget | None = None) -> None:
        self.told = Told()
        self.judge = Judge()
        run = RunDirectory(folder)
        events = Teller(run.journal(), self.told)
        gate = PairedAcceptance(MeanYardstick(resamples=100, seed=1), EXAMPLES, level=0.1)
        gateway = Gateway(None, budget, retry=RetryPolicy(1))
        again = QuestionsAgain(QuestionWriter(gateway, ScriptedModel(script), embedder("words")), ["d"], events)
        how = {"racing": True, "bisect": True, "max_prompt_chars": None, "again": again}
        self.contest = Contest(self.judge, gate, EXAMPLES, run, events, **how)

    async def challenge(self) -> tuple[Version, Version]:
        start = await self.contest.start(Draft(Prompt("Judge letters well."), OLD))
        self.judge.asked.clear()
        return start, await self.contest.settle(start, [EDIT], 1)


def writes(*texts: str) -> Callable[[Request], Reply]:
    """A writer that reads one requirement and makes these questions of it."""

    def script(request: Request) -> Reply:
        assert request.parameters.schema is not None
        if "requirements" in request.parameters.schema["properties"]:
            assert NEW_RULE in request.messages[1][1], "they are written from the updated prompt"
            return json.dumps({"requirements": ["The letter is good."]})
        return json.dumps({"questions": [{"text": text, "violation": "It is not so."} for text in texts]})

    return script


@pytest.mark.parametrize("alone", [0.0, -0.1, 0.05])
async def test_prompt_and_questions_are_accepted_together_whatever_the_prompt_alone_is_worth(
    tmp_path: Path, alone: float
) -> None:
    desk = Desk(tmp_path, writes("Is the letter kind?", "Is the letter signed?", "Does the letter greet?"))
    desk.judge.alone = alone
    start, winner = await desk.challenge()
    assert winner.number == 1
    assert winner.prompt.text == f"{start.prompt.text}\n{NEW_RULE}"
    assert winner.edits == (EDIT,)
    assert winner.draft.checklist is not None
    assert [each.text for each in winner.draft.checklist.questions] == [
        "Is the letter kind?",
        "Is the letter signed?",
        "Does the letter greet?",
    ]
    assert desk.contest.accepted is winner
    assert [(each.accepted, each.reason.endswith(ANEW)) for each in desk.contest.tried] == [(True, True)]


async def test_where_the_new_questions_spoil_it_the_prompt_alone_is_tried_and_the_two_share_the_level(
    tmp_path: Path,
) -> None:
    desk = Desk(tmp_path, writes("Is the letter long?"))
    desk.judge.alone = 0.1
    _, winner = await desk.challenge()
    assert winner.edits == (EDIT,)
    assert winner.draft.checklist == OLD
    assert [(each.accepted, each.reason.endswith(ANEW)) for each in desk.contest.tried] == [
        (False, True),
        (True, False),
    ]
    assert desk.contest._look == (2, 2)


async def test_edits_that_have_no_place_in_the_pair_are_not_lost(tmp_path: Path) -> None:
    first, other = EDIT.model_copy(update={"new": NEW_RULE}), EDIT.model_copy(update={"new": "Be quick."})
    desk = Desk(tmp_path, writes("Is the letter kind?", "Is the letter signed?", "Does the letter greet?"))
    start = await desk.contest.start(Draft(Prompt("Judge letters well."), OLD))
    winner = await desk.contest.settle(start, [first, other], 1)
    assert winner.edits == (first,)
    assert "cannot be applied" in desk.contest.untried[other.old, other.new]


async def test_a_question_that_stays_is_the_same_so_that_its_verdicts_are_not_bought_again(tmp_path: Path) -> None:
    desk = Desk(tmp_path, writes("Is the letter signed?", "Is the letter kind?", "Does the letter greet?"))
    _, winner = await desk.challenge()
    assert winner.draft.checklist is not None
    assert winner.draft.checklist.question("d-1") == OLD.question("d-1")
    assert {each.id for each in winner.draft.checklist.questions}.isdisjoint({"d-2"}), "its id is not given away"


async def test_new_questions_are_put_to_the_judge_as_it_was_found_to_answer_best(tmp_path: Path) -> None:
    desk = Desk(tmp_path, writes("Is the letter kind?", "Is the letter signed?", "Does the letter greet?"))
    start = await desk.contest.start(Draft(Prompt("Judge letters well."), OLD, mode="batched"))
    winner = await desk.contest.settle(start, [EDIT], 1)
    assert winner is not start and winner.draft.mode == "batched"


async def test_questions_that_the_gate_refuses_change_nothing(tmp_path: Path) -> None:
    desk = Desk(tmp_path, writes("Is the letter long?"))
    start, winner = await desk.challenge()
    assert winner is start
    assert desk.contest.accepted is None


async def test_the_same_questions_are_not_judged_again(tmp_path: Path) -> None:
    desk = Desk(tmp_path, writes("Is the letter kind?", "Is the letter short?"))
    start, winner = await desk.challenge()
    assert winner is start
    assert [checklist == OLD for checklist in desk.judge.asked] == [True], "the prompt alone, once"


@pytest.mark.parametrize("reply", ["I would rather not.", ModelError("down"), json.dumps({"requirements": [" "]})])
async def test_questions_that_cannot_be_had_leave_the_old_ones_and_are_told(tmp_path: Path, reply: Reply) -> None:
    desk = Desk(tmp_path, lambda request: reply)
    start, winner = await desk.challenge()
    assert winner is start
    assert says(desk.told.said[0], "the questions stay")


@pytest.mark.parametrize("what", ["key", "budget"])
async def test_what_ends_the_run_ends_it_here_too(tmp_path: Path, what: str) -> None:
    budget = Budget(call_budget=0) if what == "budget" else None
    desk = Desk(tmp_path, lambda request: ModelError("wrong key", fatal=True), budget)
    with pytest.raises(BudgetExceededError if what == "budget" else ModelError):
        await desk.challenge()


def test_new_questions_get_ids_that_no_other_has_and_repeats_are_left_out() -> None:
    def question(name: str, text: str) -> Question:
        return Question(id=name, text=text, dimension="d")

    written = [
        question("d-1", "Is the letter short?"),
        question("d-2", "Is the letter signed?"),
        question("d-3", "Is the letter short?"),
        question("d-4", "Is the letter signed?"),
    ]
    new = keep_known(OLD, Checklist.model_construct(task="Else.", questions=tuple(written)))
    assert [(each.id, each.text) for each in new.questions] == [
        ("d-2", "Is the letter short?"),
        ("d-2-2", "Is the letter signed?"),
    ]
    assert new.task == OLD.task


def test_sections_have_weights_for_the_new_questions_and_for_these_alone() -> None:
    old = OLD.model_copy(update={"section_weights": {"s": {each.id: 3.0 for each in OLD.questions}}})
    written = Question(id="d-9", text="Is the letter signed?", dimension="d")
    new = keep_known(old, Checklist(questions=(old.questions[0], written)))
    assert new.section_weights == {"s": {old.questions[0].id: 3.0, "d-9": 1.0}}
    assert Checklist.model_validate(new.model_dump()) == new
