"""Agreement of judges with people and with the old judge, example by example."""

from __future__ import annotations

import math

from askance.evaluation.pass_fail import PassLabels
from askance.evaluation.scoring import ExampleScore, Targets
from askance.optimizer.migration.judge_certificate import AgreementMeasure, SeenJudge
from askance.optimizer.subject import Observation
from askance.prompts.checklist import Checklist, Question
from askance.prompts.examples import Example
from askance.prompts.verdicts import Verdict

ASKED = Checklist(
    questions=(Question(id="a", text="A?"), Question(id="b", text="B?"), Question(id="c", text="C?", weight=0))
)


def seen(scores: list[float], answers: str = "", checklist: Checklist = ASKED) -> Observation:
    examples = [Example(id=f"e{n}", input="i") for n in range(len(scores))]
    verdicts = [
        Verdict(example.id, question.id, "m", "p", {"y": True, "n": False}.get(answer), 0.5, "hard")
        for example, row in zip(examples, answers.split(), strict=False)
        for question, answer in zip(checklist.asked, row, strict=True)
    ]
    scored = [ExampleScore(each.id, score, {"overall": score}) for each, score in zip(examples, scores, strict=True)]
    return Observation(examples, verdicts, scored, checklist)


def judge(scores: list[float], answers: str = "", checklist: Checklist = ASKED) -> SeenJudge:
    return SeenJudge(seen(scores, answers, checklist), seen(scores, answers, checklist))


def people(*wanted: float | None) -> Targets:
    return Targets("human", ("overall",), {f"e{n}": {"overall": each} for n, each in enumerate(wanted)})


def test_agreement_with_scores_is_one_less_the_distance() -> None:
    measure = AgreementMeasure(people(1.0, 0.25, None))
    rates = measure.table(judge([0.75, 0.75, 0.1]), judge([1, 1, 1])).rates()
    assert rates == [0.75, 0.5, None], "nothing is known of an example that nobody scored"


def test_labels_are_agreed_with_at_each_judges_own_threshold() -> None:
    n, high, low = 12, [0.9] * 6, [0.7] * 6
    labels = PassLabels({f"e{each}": float(each < 6) for each in range(n)})
    measure = AgreementMeasure(people(*[1.0] * 6, *[0.0] * 6), labels)
    lenient = judge([*high, *low])
    assert measure.table(lenient, lenient).rates() == [1.0] * n, "its threshold lies between .7 and .9"
    assert measure.table(judge([*low, *high]), lenient).rates() != [1.0] * n


def test_without_labels_the_answers_are_held_against_the_old_judges() -> None:
    old, new = judge([1, 1], "yyy nny"), judge([1, 1], "yny nny")
    measure = AgreementMeasure(Targets("source", ("overall",), {}), old=ASKED)
    table = measure.table(new, old)
    assert table.requirements == ("a", "b"), "a question that does not count is left out"
    assert table.rates() == [0.5, 1.0]
    assert measure.table(old, old).rates() == [1.0, 1.0]


def test_a_question_that_is_asked_the_other_way_round_has_the_same_answer_where_the_good_one_is_the_same() -> None:
    turned = ASKED.model_copy(update={"questions": (Question(id="a", text="Not A?", good="no"), *ASKED.asked[1:])})
    measure = AgreementMeasure(Targets("source", ("overall",), {}), old=ASKED)
    assert measure.table(judge([1], "nyy", turned), judge([1], "yyy")).rates() == [1.0]


def test_a_verdict_that_is_missing_on_either_side_says_nothing() -> None:
    measure = AgreementMeasure(Targets("source", ("overall",), {}), old=ASKED)
    table = measure.table(judge([1], "-yy"), judge([1], "yyy"))
    assert math.isnan(table.passed[0, 0])
    assert table.rates() == [1.0]
