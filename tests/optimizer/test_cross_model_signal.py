"""The signal of ``migrate``: where two judges differ, and when that is little enough."""

from __future__ import annotations

import random
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
from tests.said import says

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


def signal(source: list[Verdict], *, margin: float = 0.3, tolerance: float | None = 0.02) -> CrossModelSignal:
    """With a tolerance it stops as the papers' loop does."""
    return CrossModelSignal(judge(), source, EXAMPLES, None, margin=margin, tolerance=tolerance)


def hard(rows: list[Verdict]) -> list[Verdict]:
    """The same answers of a judge that gives no probabilities."""
    return [replace(each, p_yes=float(bool(each.answer)), p_yes_from="hard") for each in rows]


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
    soft, by_answer = signal(source, tolerance=0.4), replace(signal(source, tolerance=0.3), soft=False)
    assert soft.agrees(seen(target)) and not by_answer.agrees(seen(target))
    assert {each.key for each in soft.disagreements(DRAFT, seen(target))} == {"x/a", "x/b", "y/b", "z/b"}
    assert {each.key for each in by_answer.disagreements(DRAFT, seen(target))} == {"x/a"}


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
    soft, by_answer = (
        CrossModelSignal(judge(), source, EXAMPLES, None, margin=0.3, tolerance=0.05, soft=soft)
        for soft in (True, False)
    )
    assert soft.agrees(seen(target)) and not by_answer.agrees(seen(target))
    assert by_answer.agrees(seen(source))


# --- probabilities that come from different things ------------------------------------------------------------------


def test_a_soft_judge_and_a_hard_one_that_answer_alike_do_not_disagree() -> None:
    unsure = verdicts(x_a=0.66, y_a=0.34, z_a=0.51, x_b=0.9, y_b=0.1, z_b=0.66)
    assert signal(hard(unsure)).disagreements(DRAFT, seen(unsure)) == []
    assert signal(unsure).disagreements(DRAFT, seen(hard(unsure))) == []
    assert {each.key for each in signal(verdicts()).disagreements(DRAFT, seen(unsure))} == {"y/a", "x/b", "y/b"}


@pytest.mark.parametrize("theirs", ["hard", "sampled", "stated"])
def test_their_other_answers_are_disagreements_with_the_probabilities_that_were_given(theirs: str) -> None:
    source = [replace(each, p_yes_from=theirs) for each in verdicts(x_a=0.1, y_a=0.95)]
    [found] = signal(source).disagreements(DRAFT, seen(verdicts(x_a=0.66, y_a=0.55)))
    assert (found.key, found.target, found.reference) == ("x/a", True, False)
    assert (found.target_p_yes, found.reference_p_yes) == (0.66, 0.1)


def test_gaps_beside_a_hard_judge_are_of_the_answers() -> None:
    """The target says yes to all; the source's no counts by how often it says it, not by how sure the target is."""
    source, target = hard(verdicts(x_a=0.1)), verdicts(x_a=0.55, y_a=0.99, z_a=0.99)
    [found] = signal(source).disagreements(DRAFT, seen(target))
    assert found.gap == pytest.approx(1 - 1 / 3)


def test_only_the_pairs_that_differ_in_what_they_come_from_are_compared_by_their_answers_and_it_is_said_once() -> None:
    said: list[str] = []
    source = verdicts(x_a=0.99, y_a=0.99)
    source[2:4] = hard(source[2:4])  # those on y
    held = replace(signal(source), say=said.append)
    for _ in range(2):
        found = held.disagreements(DRAFT, seen(verdicts(x_a=0.6, y_a=0.6)))
        assert [each.key for each in found] == ["x/a"], "on y both say yes"
    [told] = said
    assert says(told, "logprob", "target", "hard", "source", "2 verdicts", "answers alone")
    held.disagreements(DRAFT, seen(hard(verdicts())))
    assert len(said) == 2, "another difference is said, too"


def test_the_papers_means_are_of_the_answers_where_the_probabilities_come_from_different_things() -> None:
    soft = verdicts(x_a=0.7, y_a=0.7, z_a=0.7, x_b=0.3, y_b=0.3, z_b=0.3)
    assert signal(hard(soft)).agrees(seen(soft)) and signal(soft).agrees(seen(hard(soft)))
    assert not signal(hard(soft)).agrees(seen(verdicts(x_a=0.4, y_a=0.7, z_a=0.7, x_b=0.3, y_b=0.3, z_b=0.3)))


def test_what_a_verdict_can_be_held_against_is_said_by_where_its_probability_comes_from() -> None:
    held = signal(verdicts(x_a=0.7))
    soft, one = verdicts(x_a=0.9)[0], hard(verdicts(x_a=0.9))[0]
    assert held.is_like(soft) and not held.is_like(one)


# --- when there is agreement enough ---------------------------------------------------------------------------------


def test_judges_whose_verdicts_are_all_swapped_do_not_agree_though_their_means_do() -> None:
    source, target = verdicts(x_a=0.1, y_a=0.9, z_a=0.5), verdicts(x_a=0.9, y_a=0.1, z_a=0.5)
    assert signal(source).agrees(seen(target)), "the papers compare means"
    assert not signal(source, tolerance=None).agrees(seen(target))


def test_the_same_answers_agree_however_sure() -> None:
    held = signal(verdicts(x_a=0.1, y_a=0.9), tolerance=None)
    assert held.agrees(seen(verdicts(x_a=0.4, y_a=0.6)))
    assert held.agrees(seen(hard(verdicts(x_a=0.4, y_a=0.6))))


def test_judges_agree_when_on_every_question_few_enough_examples_have_another_answer() -> None:
    source = verdicts(x_a=0.1, y_a=0.1, x_b=0.1)
    one_each = seen(verdicts(x_a=0.9, y_a=0.1, x_b=0.9))
    two_of_one = seen(verdicts(x_a=0.9, y_a=0.9, x_b=0.1))
    held = signal(source, tolerance=None)
    assert not held.agrees(one_each) and not held.agrees(two_of_one)
    a_third = replace(held, differing=0.34)
    assert a_third.agrees(one_each) and not a_third.agrees(two_of_one)
    assert replace(held, differing=1 / 3).agrees(one_each), "at most the share, not less"


def test_the_answers_of_a_question_asked_the_other_way_round_are_turned_before_they_are_compared() -> None:
    fault = CHECKLIST.question("a").model_copy(update={"text": "Not A?", "good": "no"})
    checklist = CHECKLIST.model_copy(update={"questions": (fault, CHECKLIST.questions[1])})
    source = verdicts(x_a=0.1, y_a=0.9, z_a=0.8)
    same = turned(source, "a")
    held = signal(source, tolerance=None)
    assert held.agrees(Observation(EXAMPLES, same, score_examples(EXAMPLES, checklist, same), checklist))
    assert not held.agrees(Observation(EXAMPLES, source, score_examples(EXAMPLES, checklist, source), checklist))


def test_a_question_without_any_pair_of_answers_is_no_agreement_and_replicates_are_no_further_evidence() -> None:
    source = verdicts(x_b=None, y_b=None, z_b=None)
    assert not signal(source, tolerance=None).agrees(seen(verdicts()))
    again = [replace(each, replicate=1, answer=not each.answer, p_yes=1 - (each.p_yes or 0)) for each in verdicts()]
    held = signal(verdicts(), tolerance=None)
    assert held.agrees(seen([*verdicts(), *again]))
    assert held.disagreements(DRAFT, seen([*verdicts(x_a=0.4), *again])) == held.disagreements(
        DRAFT, seen(verdicts(x_a=0.4))
    )
    alike = [replace(each, replicate=1) for each in verdicts()]
    third = replace(held, differing=0.34)
    assert not third.agrees(seen([*verdicts(x_a=0.4, y_a=0.4), *alike])), "two of three differ, whatever is said again"


# --- against the rules as they are written --------------------------------------------------------------------------


def test_on_any_two_judges_the_disagreements_are_those_of_the_rules() -> None:
    """Other answers, or probabilities a margin apart; the gap is what is left without each judge's mean; replicates say nothing."""
    draw, compared = random.Random(2), 0
    for _ in range(80):
        margin = draw.choice([0.25, 0.5])
        one, other = (
            verdicts(
                **{
                    f"{name}_{each}": draw.choice([None, *(n / 16 for n in range(17))])
                    for name in "xyz"
                    for each in "ab"
                }
            )
            for _ in range(2)
        )
        again = [replace(each, replicate=1, p_yes=draw.random(), answer=draw.random() < 0.5) for each in other]
        soft = draw.random() < 0.7
        held = replace(signal(one, margin=margin), soft=soft)
        found = held.disagreements(DRAFT, seen(draw.sample([*other, *again], k=12)))
        expected: dict[str, float] = {}
        said = {(each.example, each.question): each.p_yes for each in one}
        for question in "ab":
            pairs = {
                each.example: (each.p_yes, said[each.example, question])
                for each in other
                if each.question == question and each.p_yes is not None and said[each.example, question] is not None
            }
            for name, (mine, theirs) in pairs.items():
                apart = mine - theirs  # type: ignore[operator]
                if (mine >= 0.5) != (theirs >= 0.5) or (soft and abs(apart) >= margin):  # type: ignore[operator]
                    level = sum(a - b for a, b in pairs.values()) / len(pairs)  # type: ignore[operator]
                    expected[f"{name}/{question}"] = abs(apart) - level * (1 if apart > 0 else -1)
        assert {each.key: each.gap for each in found} == pytest.approx(expected)
        for each in found:
            compared += 1
            assert each.target is (each.target_p_yes > each.reference_p_yes) is not each.reference  # type: ignore[operator]
        for question in "ab":
            gaps = [each.gap for each in found if each.question == question]
            assert gaps == sorted(gaps, reverse=True)
    assert compared > 100


@pytest.mark.parametrize(("same", "replicated", "agrees"), [(3, False, True), (2, False, False), (2, True, False)])
def test_what_is_answered_again_makes_no_judge_agree(same: int, replicated: bool, agrees: bool) -> None:
    source = verdicts(x_a=0.9, y_a=0.9, z_a=0.9)
    target = verdicts(x_a=0.9, y_a=0.9, z_a=0.9 if same == 3 else 0.1)
    again = [replace(each, replicate=1) for each in source] if replicated else []
    held = signal(source, tolerance=None)
    assert replace(held, differing=0.3).agrees(seen([*target, *again])) is agrees
    assert held.reference(DRAFT, "x", "a") == 0.9 and held.reference(DRAFT, "nobody", "a") is None
