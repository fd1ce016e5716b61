"""The signal of ``migrate``: where two judges differ, and when that is little enough."""

from __future__ import annotations

from dataclasses import replace

import pytest

from askance.agents.evaluator import Evaluator
from askance.evaluation.scoring import score_examples
from askance.models.base import Request
from askance.models.gateway import Gateway
from askance.optimizer.signals import CrossModelSignal
from askance.optimizer.subject import Draft, Observation
from askance.prompts.checklist import Checklist, Question
from askance.prompts.examples import Example
from askance.prompts.prompt import Prompt
from askance.prompts.verdicts import Verdict
from askance.testing import ScriptedModel

EXAMPLES = [Example(id=name, input=f"in {name}", output=f"out {name}") for name in ("x", "y", "z")]
CHECKLIST = Checklist(
    questions=(Question(id="a", text="A?", dimension="one"), Question(id="b", text="B?", dimension="two"))
)


def verdicts(**p_yes: float | None) -> list[Verdict]:
    """``x_a=0.9``: P(yes) of question a on example x; None is a failure, what is not given is 0.5."""
    rows = []
    for example in EXAMPLES:
        for question in "ab":
            p = p_yes.get(f"{example.id}_{question}", 0.5)
            status = "parse_error" if p is None else "ok"
            answer = None if p is None else p >= 0.5
            rows.append(Verdict(example.id, question, "m", "p", answer, p, "logprob", status=status))
    return rows


def judge(script: object = None) -> Evaluator:
    model = ScriptedModel(script or (lambda request: "Because."))  # type: ignore[arg-type]
    return Evaluator(Gateway(), model, Prompt("Judge."), CHECKLIST)


def signal(source: list[Verdict], *, margin: float = 0.3, tolerance: float = 0.02) -> CrossModelSignal:
    return CrossModelSignal(judge(), source, EXAMPLES, None, margin=margin, tolerance=tolerance)


def seen(target: list[Verdict]) -> Observation:
    return Observation(EXAMPLES, target, score_examples(EXAMPLES, CHECKLIST, target), CHECKLIST)


DRAFT = Draft(Prompt("Judge."), CHECKLIST)


def test_different_answers_are_a_disagreement_however_small_the_gap() -> None:
    [found] = signal(verdicts(x_a=0.49)).disagreements(DRAFT, seen(verdicts(x_a=0.51)))
    assert (found.key, found.target, found.reference) == ("x/a", True, False)
    assert (found.target_p_yes, found.reference_p_yes) == (0.51, 0.49)


def test_the_gap_leaves_out_how_mild_the_target_is_in_general() -> None:
    source = verdicts(x_a=0.1, y_a=0.3, z_a=0.8)
    found = {
        each.key: each.gap for each in signal(source).disagreements(DRAFT, seen(verdicts(x_a=0.9, y_a=0.9, z_a=0.9)))
    }
    assert found == {"x/a": pytest.approx(0.8 - 0.5), "y/a": pytest.approx(0.6 - 0.5)}


def test_the_same_answer_is_a_disagreement_from_the_margin_on() -> None:
    assert signal(verdicts(x_a=0.6)).disagreements(DRAFT, seen(verdicts(x_a=0.85))) == []
    [found] = signal(verdicts(x_a=0.6)).disagreements(DRAFT, seen(verdicts(x_a=0.95)))
    assert (found.target, found.reference) == (True, False), "the target is too sure of yes"
    [found] = signal(verdicts(x_a=0.95)).disagreements(DRAFT, seen(verdicts(x_a=0.55)))
    assert (found.target, found.reference) == (False, True)


def test_with_hard_scores_the_answers_alone_say_whether_judges_agree() -> None:
    """P(yes) is the same on average, and the target says yes where the source says no on half of the examples."""
    source = verdicts(x_a=0.4, y_a=0.6, z_a=0.5, x_b=0.9, y_b=0.9, z_b=0.9)
    target = verdicts(x_a=0.5, y_a=0.5, z_a=0.5, x_b=0.55, y_b=0.55, z_b=0.55)
    soft, hard = signal(source, tolerance=0.4), replace(signal(source, tolerance=0.3), soft=False)
    assert soft.agrees(seen(target)) and not hard.agrees(seen(target))
    assert {each.key for each in soft.disagreements(DRAFT, seen(target))} == {"x/a", "x/b", "y/b", "z/b"}
    assert {each.key for each in hard.disagreements(DRAFT, seen(target))} == {"x/a"}


def test_an_answer_that_is_missing_on_either_side_is_no_disagreement() -> None:
    assert signal(verdicts(x_a=None)).disagreements(DRAFT, seen(verdicts(x_a=0.9))) == []
    assert signal(verdicts(x_a=0.1)).disagreements(DRAFT, seen(verdicts(x_a=None))) == []


def test_the_widest_gap_comes_first_and_questions_take_turns() -> None:
    source = verdicts(x_a=0.4, y_a=0.1, z_a=0.2, z_b=0.3)
    target = verdicts(x_a=0.9, y_a=0.9, z_a=0.9, z_b=0.9)
    assert [each.key for each in signal(source).disagreements(DRAFT, seen(target))] == ["y/a", "z/b", "z/a", "x/a"]


def test_judges_agree_when_every_dimension_is_within_the_tolerance() -> None:
    source = verdicts(x_a=0.2, y_a=0.8)
    assert signal(source).agrees(seen(verdicts(x_a=0.8, y_a=0.2))), "the paper compares means"
    assert not signal(source).agrees(seen(verdicts(x_a=0.3, y_a=0.8)))
    assert signal(source, tolerance=0.05).agrees(seen(verdicts(x_a=0.3, y_a=0.8)))
    assert not signal(source).agrees(seen(verdicts(x_a=0.2, y_a=0.8, z_b=0.9)))


def test_a_target_that_scores_higher_does_not_agree() -> None:
    assert not signal(verdicts(x_a=0.2)).agrees(seen(verdicts(x_a=0.9)))


def test_judges_without_any_answer_do_not_agree() -> None:
    nothing = verdicts(x_a=None, y_a=None, z_a=None)
    assert not signal(nothing).agrees(seen(nothing))


def test_the_reference_is_what_the_source_said() -> None:
    source = signal(verdicts(x_a=0.2, y_a=None))
    assert source.reference(DRAFT, "x", "a") == 0.2
    assert source.reference(DRAFT, "y", "a") is None
    assert source.reference(DRAFT, "nobody", "a") is None


async def test_both_sides_give_their_reasons_for_these_disagreements_alone() -> None:
    def says(text: str) -> Evaluator:
        return judge(lambda request: text)

    source = CrossModelSignal(
        says("They say so."),
        verdicts(x_a=0.1, y_a=0.1),
        EXAMPLES,
        lambda draft: says("I say so."),
        margin=0.3,
        tolerance=0,
    )
    target = seen(verdicts(x_a=0.9, y_a=0.9))
    first = source.disagreements(DRAFT, target)[:1]
    reasons = await source.reasons(DRAFT, target, first)
    assert (reasons.mine, reasons.theirs) == ({"x/a": "I say so."}, {"x/a": "They say so."})


async def test_no_reason_is_bought_where_none_is_wanted() -> None:
    asked: list[Request] = []
    silent = CrossModelSignal(judge(asked.append), verdicts(x_a=0.1), EXAMPLES, None, margin=0.3, tolerance=0)
    target = seen(verdicts(x_a=0.9))
    reasons = await silent.reasons(DRAFT, target, silent.disagreements(DRAFT, target))
    assert (reasons.mine, reasons.theirs, asked) == ({}, {}, [])


def turned(rows: list[Verdict], question: str) -> list[Verdict]:
    return [each.turned() if each.question == question else each for each in rows]


def test_a_question_that_the_target_is_asked_the_other_way_round_differs_on_the_same_examples() -> None:
    fault = CHECKLIST.question("a").model_copy(update={"text": "Not A?", "good": "no"})
    checklist = CHECKLIST.model_copy(update={"questions": (fault, CHECKLIST.questions[1])})
    source = verdicts(x_a=0.1, y_a=0.3, z_a=0.8, x_b=0.9, y_b=0.2)
    target = verdicts(x_a=0.8, y_a=0.2, z_a=0.9, x_b=0.4, y_b=0.3)
    other = turned(target, "a")
    draft = Draft(Prompt("Judge."), checklist)
    observed = Observation(EXAMPLES, other, score_examples(EXAMPLES, checklist, other), checklist)
    held = signal(source)
    plain, new = held.disagreements(DRAFT, seen(target)), held.disagreements(draft, observed)
    assert [each.key for each in plain] == [each.key for each in new]
    for one, two in zip(plain, new, strict=True):
        assert one.gap == pytest.approx(two.gap)
        if one.question == "a":
            assert (two.target, two.reference) == (not one.target, not one.reference)
            assert two.target_p_yes == pytest.approx(1 - (one.target_p_yes or 0))
            assert two.reference_p_yes == pytest.approx(1 - (one.reference_p_yes or 0))
        else:
            assert one == two
    assert held.reference(draft, "x", "a") == held.reference(DRAFT, "x", "a") == 0.1
    same = turned(source, "a")
    assert held.agrees(Observation(EXAMPLES, same, score_examples(EXAMPLES, checklist, same), checklist))
    assert not held.agrees(observed)


def test_hard_scores_are_compared_hard() -> None:
    """P(yes) of .51 and .52 are near, and yes; of .51 and .49 they are near, and as scores 1 and 0."""
    source, target = verdicts(x_a=0.51, y_a=0.51, z_a=0.51), verdicts(x_a=0.49, y_a=0.49, z_a=0.49)
    soft, hard = (
        CrossModelSignal(judge(), source, EXAMPLES, None, margin=0.3, tolerance=0.05, soft=soft)
        for soft in (True, False)
    )
    assert soft.agrees(seen(target)) and not hard.agrees(seen(target))
    assert hard.agrees(seen(source))
