"""The signal of ``tune``: what fails, in an order in which one bad output does not use up all notes."""

from __future__ import annotations

from dataclasses import replace

from askance.agents.evaluator import Evaluator
from askance.models.base import Request
from askance.models.gateway import Gateway
from askance.optimizer.modes.generator import FailureSignal
from askance.optimizer.subject import Draft, Observation
from askance.prompts.checklist import Checklist, Question
from askance.prompts.examples import Example
from askance.prompts.prompt import Prompt
from askance.prompts.verdicts import Verdict
from askance.testing import ScriptedModel

DRAFT = Draft(Prompt("Write."))
CHECKLIST = Checklist(questions=[Question(id=name, text=f"{name}?", dimension="d") for name in "abc"])


def verdict(key: str, p_yes: float | None, explanation: str | None = None, replicate: int = 0) -> Verdict:
    example, question = key.split("/")
    answer = None if p_yes is None else p_yes >= 0.5
    status = "ok" if p_yes is not None else "api_error"
    return Verdict(
        example, question, "m", "p", answer, p_yes, "logprob", explanation, status=status, replicate=replicate
    )


def seen(*verdicts: Verdict) -> Observation:
    names = dict.fromkeys(each.example for each in verdicts)
    return Observation([Example(id=name, input="in", output=f"out {name}") for name in names], verdicts, [], CHECKLIST)


def test_every_failure_is_one_and_the_clearest_are_read_first_examples_taking_turns() -> None:
    found = FailureSignal(None).disagreements(
        DRAFT,
        seen(verdict("x/a", 0.4), verdict("x/b", 0.1), verdict("x/c", 0.9), verdict("y/a", 0.3), verdict("z/a", 0.8)),
    )
    assert [each.key for each in found] == ["x/b", "y/a", "x/a"]
    assert {(each.target, each.reference, each.reference_p_yes) for each in found} == {(False, True, 1.0)}
    assert [each.gap for each in found] == [0.9, 0.7, 0.6]


def test_replicates_and_missing_answers_are_no_failures() -> None:
    assert FailureSignal(None).disagreements(DRAFT, seen(verdict("x/a", None), verdict("x/b", 0.1, replicate=1))) == []


def test_a_question_without_a_weight_fails_nothing_and_is_learned_nothing_from() -> None:
    idle = CHECKLIST.question("a").model_copy(update={"weight": 0.0})
    questions = tuple(idle if each.id == "a" else each for each in CHECKLIST.questions)
    found = seen(verdict("x/a", 0.1), verdict("x/b", 0.9), verdict("y/a", 0.1), verdict("y/b", 0.2))
    found = replace(found, checklist=CHECKLIST.model_copy(update={"questions": questions}))
    assert [each.key for each in FailureSignal(None).disagreements(DRAFT, found)] == ["y/b"]
    assert not FailureSignal(None).agrees(found)
    assert FailureSignal(None).agrees(replace(found, verdicts=found.verdicts[:3]))


def test_nothing_fails_only_where_everything_was_looked_at() -> None:
    signal = FailureSignal(None)
    assert signal.agrees(seen(verdict("x/a", 0.9), verdict("y/a", 0.51)))
    assert not signal.agrees(seen(verdict("x/a", 0.9), verdict("y/a", 0.49)))
    assert not signal.agrees(seen(verdict("x/a", 0.9), verdict("y/a", None)))
    assert not signal.agrees(seen())


def test_every_question_should_be_answered_yes() -> None:
    assert FailureSignal(None).reference(DRAFT, "x", "a") == 1.0


async def test_what_a_checker_said_is_read_and_the_judge_is_asked_for_the_rest() -> None:
    asked: list[Request] = []

    def script(request: Request) -> str:
        asked.append(request)
        return "It greets nobody."

    judge = Evaluator(Gateway(), ScriptedModel(script), Prompt("Judge."), CHECKLIST)
    signal = FailureSignal(lambda draft, example: judge if example == "y" else None)
    observed = seen(verdict("x/a", 0.0, "it has 3 words"), verdict("y/a", 0.1), verdict("z/a", 0.1))
    reasons = await signal.reasons(DRAFT, observed, signal.disagreements(DRAFT, observed))
    assert reasons.theirs == {"x/a": "it has 3 words", "y/a": "It greets nobody."}
    assert reasons.mine == {}
    assert len(asked) == 1


async def test_where_no_explanations_are_bought_the_checkers_words_are_still_read() -> None:
    observed = seen(verdict("x/a", 0.0, "it has 3 words"), verdict("y/a", 0.1))
    signal = FailureSignal(None)
    reasons = await signal.reasons(DRAFT, observed, signal.disagreements(DRAFT, observed))
    assert reasons.theirs == {"x/a": "it has 3 words"}


async def test_no_judge_is_asked_why_a_check_fails_that_gave_no_reason_beside_its_own_questions() -> None:
    judge = Evaluator(Gateway(), ScriptedModel(lambda _: "It greets nobody."), Prompt("Judge."), CHECKLIST)
    observed = seen(verdict("x/a", 0.1), verdict("x/short", 0.0))
    check = Question(id="short", text="Does the output pass the check 'short'?", dimension="checks")
    both = Checklist(questions=[*CHECKLIST.questions, check])
    observed = replace(observed, checklist=None, own_checklists={"x": both})
    signal = FailureSignal(lambda draft, example: judge)
    reasons = await signal.reasons(DRAFT, observed, signal.disagreements(DRAFT, observed))
    assert reasons.theirs == {"x/a": "It greets nobody."}
