from __future__ import annotations

import pytest

from askance.agents.evaluator import Evaluator
from askance.models.base import ModelError, Request
from askance.models.gateway import Gateway
from askance.optimizer.signals import CrossModelSignal, explanations, take_turns
from askance.prompts.checklist import Checklist, Question
from askance.prompts.examples import Example
from askance.prompts.lessons import Disagreement
from askance.prompts.prompt import Prompt
from askance.prompts.verdicts import Verdict
from askance.testing import Reply, ScriptedModel

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
    return CrossModelSignal(judge(), source, EXAMPLES, margin=margin, tolerance=tolerance)


def test_different_answers_are_a_disagreement_however_small_the_gap() -> None:
    [found] = signal(verdicts(x_a=0.49)).disagreements(verdicts(x_a=0.51))
    assert (found.key, found.target, found.reference) == ("x/a", True, False)
    assert (found.target_p_yes, found.reference_p_yes) == (0.51, 0.49)


def test_the_gap_leaves_out_how_mild_the_target_is_in_general() -> None:
    source = verdicts(x_a=0.1, y_a=0.3, z_a=0.8)
    found = {each.key: each.gap for each in signal(source).disagreements(verdicts(x_a=0.9, y_a=0.9, z_a=0.9))}
    assert found == {"x/a": pytest.approx(0.8 - 0.5), "y/a": pytest.approx(0.6 - 0.5)}


def test_the_same_answer_is_a_disagreement_from_the_margin_on() -> None:
    assert signal(verdicts(x_a=0.6)).disagreements(verdicts(x_a=0.85)) == []
    [found] = signal(verdicts(x_a=0.6)).disagreements(verdicts(x_a=0.95))
    assert (found.target, found.reference) == (True, False), "the target is too sure of yes"
    [found] = signal(verdicts(x_a=0.95)).disagreements(verdicts(x_a=0.55))
    assert (found.target, found.reference) == (False, True)


def test_an_answer_that_is_missing_on_either_side_is_no_disagreement() -> None:
    assert signal(verdicts(x_a=None)).disagreements(verdicts(x_a=0.9)) == []
    assert signal(verdicts(x_a=0.1)).disagreements(verdicts(x_a=None)) == []


def test_the_widest_gap_comes_first_and_questions_take_turns() -> None:
    source = verdicts(x_a=0.4, y_a=0.1, z_a=0.2, z_b=0.3)
    target = verdicts(x_a=0.9, y_a=0.9, z_a=0.9, z_b=0.9)
    assert [each.key for each in signal(source).disagreements(target)] == ["y/a", "z/b", "z/a", "x/a"]


def test_judges_agree_when_every_dimension_is_within_the_tolerance() -> None:
    source = verdicts(x_a=0.2, y_a=0.8)
    assert signal(source).agrees(verdicts(x_a=0.8, y_a=0.2)), "the paper compares means"
    assert not signal(source).agrees(verdicts(x_a=0.3, y_a=0.8))
    assert signal(source, tolerance=0.05).agrees(verdicts(x_a=0.3, y_a=0.8))
    assert not signal(source).agrees(verdicts(x_a=0.2, y_a=0.8, z_b=0.9))


def test_a_target_that_scores_higher_does_not_agree() -> None:
    assert not signal(verdicts(x_a=0.2)).agrees(verdicts(x_a=0.9))


def test_judges_without_any_answer_do_not_agree() -> None:
    nothing = verdicts(x_a=None, y_a=None, z_a=None)
    assert not signal(nothing).agrees(nothing)


def test_turns_are_taken_until_all_had_theirs() -> None:
    def group(name: str, n: int) -> list[Disagreement]:
        return [Disagreement(example=str(i), question=name, target=True, reference=False, gap=0) for i in range(n)]

    assert [each.key for each in take_turns([group("a", 3), [], group("b", 1)])] == ["0/a", "0/b", "1/a", "2/a"]
    assert take_turns([]) == []


async def test_an_explanation_that_cannot_be_had_is_left_out() -> None:
    def script(request: Request) -> Reply:
        return ModelError("down") if "out y" in request.messages[1][1] else "Because."

    found = await explanations(judge(script), verdicts()[:4], EXAMPLES)
    assert found == {"x/a": "Because.", "x/b": "Because."}


async def test_an_explanation_that_can_never_be_had_ends_the_run() -> None:
    with pytest.raises(ModelError, match="wrong key"):
        await explanations(judge(lambda request: ModelError("wrong key", fatal=True)), verdicts()[:1], EXAMPLES)
