"""A judge as what is improved: the whole of it for a version, single questions for the trial of a lesson."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from askance.agents.judging import Judging
from askance.evaluation.scoring import Coverage, coverage
from askance.models.base import Request
from askance.models.gateway import Gateway
from askance.optimizer.modes.judge import JudgeSubject, only
from askance.optimizer.subject import Draft
from askance.prompts.checklist import Checklist, Question
from askance.prompts.examples import Example
from askance.prompts.prompt import Prompt
from askance.prompts.verdicts import Verdict
from askance.testing import Reply, ScriptedModel

CHECKLIST = Checklist(
    questions=[
        Question(id=name, text=f"Is it {name}?", dimension="d", weight=weight)
        for name, weight in (("kind", 3.0), ("short", 1.0))
    ]
)
EXAMPLES = [Example(id=name, input=f"in {name}", output=f"[{name}]") for name in "xyz"]
DRAFT, BETTER = Draft(Prompt("Judge."), CHECKLIST), Draft(Prompt("Judge better."), CHECKLIST)


class Court:
    """A judge that finds everything kind and only ``x`` short; a better prompt makes it doubt."""

    def __init__(self, **judging: Any) -> None:
        self.seen: list[Coverage] = []
        self.model = ScriptedModel(self.answer)
        settings = Judging(**{"p_yes": "logprob"} | judging)
        self.subject = JudgeSubject(Gateway(), self.model, settings, "judge", soft=True, tally=self.tally)

    def tally(self, verdicts: Sequence[Verdict]) -> None:
        self.seen.append(coverage(verdicts))

    def answer(self, request: Request) -> Reply:
        text = "\n".join(content for _, content in request.messages)
        p_kind, p_short = 0.9 - 0.3 * ("better" in text), 0.8 if "[x]" in text else 0.2
        if not request.parameters.schema:
            return p_kind if "Is it kind?" in text else p_short
        answers = {"kind": p_kind >= 0.5, "short": p_short >= 0.5}
        properties = request.parameters.schema["properties"]
        return json.dumps(
            {name: "yes" if answers[list(answers)[place]] else "no" for place, name in enumerate(properties)}
        )


async def test_a_version_is_judged_on_every_question_and_scored_with_their_weights() -> None:
    court = Court()
    seen = await court.subject.observe(DRAFT, EXAMPLES)
    assert len(court.model.requests) == 6
    assert [score.overall for score in seen.scores] == pytest.approx([0.875, 0.725, 0.725], abs=1e-4)
    assert court.seen == [Coverage(6, 6, 0, 0, 0)]
    assert seen.question("x", "short") == CHECKLIST.question("short")


async def test_a_trial_asks_about_its_own_pairs_alone_with_the_new_prompt() -> None:
    court = Court()
    seen = await court.subject.observe(DRAFT, EXAMPLES)
    court.model.requests.clear()
    pairs = [("x", "kind"), ("y", "kind"), ("x", "short"), ("x", "kind")]
    found = await court.subject.probe(BETTER, pairs, seen)
    assert set(found) == set(pairs)
    assert len(court.model.requests) == 3
    assert all("Judge better." in request.messages[0][1] for request in court.model.requests)
    assert [round(found[pair].p_yes or 0, 2) for pair in pairs[:3]] == [0.6, 0.6, 0.8]


async def test_no_replicates_are_bought_for_a_trial_which_reads_the_first_alone() -> None:
    court = Court(repeat=3, temperature=1.0)
    seen = await court.subject.observe(DRAFT, EXAMPLES)
    assert len(court.model.requests) == 18
    court.model.requests.clear()
    found = await court.subject.probe(BETTER, [("x", "kind"), ("y", "kind")], seen)
    assert [each.replicate for each in found.values()] == [0, 0]
    assert len(court.model.requests) == 2


async def test_questions_that_are_asked_together_are_tried_together() -> None:
    """Else the company of the other questions would be taken for what the lesson does."""
    court = Court(mode="batched", p_yes="hard")
    seen = await court.subject.observe(DRAFT, EXAMPLES)
    assert len(court.model.requests) == 3
    court.model.requests.clear()
    found = await court.subject.probe(BETTER, [("x", "kind"), ("x", "short"), ("y", "short")], seen)
    assert set(found) == {("x", "kind"), ("x", "short"), ("y", "short")}
    assert len(court.model.requests) == 2
    assert all(
        "Is it kind?" in str(each.messages) and "Is it short?" in str(each.messages) for each in court.model.requests
    )


async def test_a_trial_reads_the_first_of_several_replicates() -> None:
    court = Court(repeat=2)
    seen = await court.subject.observe(DRAFT, EXAMPLES)
    found = await court.subject.probe(BETTER, [("x", "kind")], seen)
    assert found["x", "kind"].replicate == 0


def test_a_question_alone_counts_fully() -> None:
    alone = only(CHECKLIST, "kind")
    assert [(each.id, each.weight) for each in alone.questions] == [("kind", 1.0)]
