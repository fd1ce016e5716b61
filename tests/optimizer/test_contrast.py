from __future__ import annotations

from askance.optimizer.steps.lessons import find_contrast
from askance.optimizer.subject import Observation
from askance.prompts.examples import Example
from askance.prompts.lessons import Disagreement
from askance.prompts.verdicts import Verdict

EXAMPLES = [
    Example(id=name, input="x", output="word " * length)
    for name, length in zip("abcdef", (5, 9, 4, 5, 5, 5), strict=True)
]
WANTED = {"a": 0.0, "b": 1.0, "c": 1.0, "d": 0.6, "e": 0.0, "f": None}


def verdict(example: str, p_yes: float | None, *, question: str = "q", replicate: int = 0) -> Verdict:
    answer = None if p_yes is None else p_yes >= 0.5
    return Verdict(example, question, "m", "p", answer, p_yes, "logprob", replicate=replicate)


def reference(example: str, question: str) -> float | None:
    return WANTED[example]


def find(*verdicts: Verdict, target: bool = True, answer: bool | None = None, like: bool = True) -> str | None:
    disagreement = Disagreement(example="a", question="q", target=target, reference=not target, gap=0.5)
    seen = Observation(EXAMPLES, verdicts, [])
    found = find_contrast(disagreement, seen, reference, answer=answer, is_like=lambda verdict: like)
    return found and found.id


def test_it_is_the_agreement_on_the_same_answer_whose_output_is_nearest_in_length() -> None:
    assert find(verdict("a", 0.9), verdict("b", 0.9), verdict("c", 0.8)) == "c"


def test_an_unsure_or_another_answer_is_no_agreement() -> None:
    assert find(verdict("b", 0.7)) is None, "too far from the reference"
    assert find(verdict("d", 0.45)) is None, "near, but the answer is no"
    assert find(verdict("e", 0.1)) is None, "both say no, and the target wrongly said yes"
    assert find(verdict("f", 0.9)) is None, "the reference does not say"
    assert find(verdict("b", None)) is None


def test_where_probabilities_cannot_be_compared_the_same_answer_is_agreement() -> None:
    assert find(verdict("b", 0.7), like=False) == "b"
    assert find(verdict("d", 0.45), verdict("e", 0.1), like=False) is None, (
        "the answers differ, or are not the wanted one"
    )


def test_only_first_verdicts_on_the_same_question_count() -> None:
    assert find(verdict("b", 0.9, question="other"), verdict("c", 0.9, replicate=1)) is None


def test_a_judge_that_was_too_strict_is_shown_a_no_and_a_generator_what_passes() -> None:
    verdicts = (verdict("b", 0.9), verdict("e", 0.1))
    assert find(*verdicts, target=False) == "e"
    assert find(*verdicts, target=False, answer=True) == "b"
