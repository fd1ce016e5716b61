"""Measures beside a scorer: it learns the questions, code computes the measures, and the judge has both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from askance.evaluation.judge_file import parse_judge
from askance.prompts.checklist import Checklist, ComputedCheck, ComputedMeasure
from askance.prompts.errors import InputError
from askance.prompts.examples import Example
from askance.prompts.prompt import Prompt
from askance.prompts.verdicts import Verdict, VerdictColumns
from askance.training.measured import figures_with_measures, with_measures
from askance.training.scorer_folder import TrainResult, scorer_judge
from askance.training.train import _load_teacher, asked_of
from tests.said import naming, says

from .conftest import CHECKLIST, made, options, said

OLD = ComputedMeasure.model_validate(
    {"id": "known", "measure": "words_found(input)", "dimension": "quality", "weight": 3}
)
BOTH = CHECKLIST.model_copy(update={"questions": (*CHECKLIST.questions, OLD)})


def shrugs(examples: Sequence[Example]) -> VerdictColumns:
    """A scorer that says nothing of the outputs."""
    return VerdictColumns(
        Verdict(each.id, question.id, "scorer", "", True, 0.5, "logprob")
        for each in examples
        for question in CHECKLIST.questions
    )


def copied(examples: Sequence[Example]) -> list[Example]:
    """Outputs that people like where they have the input's words."""
    return [
        each.model_copy(update={"output": each.input if place % 2 else each.output, "human": {"quality": (place % 2,)}})
        for place, each in enumerate(examples)
    ]


def test_the_scorer_learns_the_questions_alone_and_the_teachers_measures_are_left_out() -> None:
    data = made()
    measured = Verdict("e0", "known", None, "0", None, 0.4, "computed", value=0.4, version="1")
    verdicts = VerdictColumns.of([*said(data), measured])
    judged = asked_of(BOTH, None)
    assert judged == BOTH and judged.asked_alone == CHECKLIST
    taught = _load_teacher(verdicts, data, judged, None)
    assert taught is not None and list(taught) == list(said(data))
    with pytest.raises(InputError, match=naming("known")):
        _load_teacher(verdicts, data, CHECKLIST, None)


def test_the_judge_beside_the_scorer_has_its_measures_and_is_measured_with_them() -> None:
    examples = copied(made(80))

    def both(some: Sequence[Example]) -> VerdictColumns:
        return with_measures(shrugs(some), BOTH, some)

    prompt = Prompt("{output} {question}")
    judge = scorer_judge(both, BOTH, prompt, examples[:40], examples[40:], options())
    kept = parse_judge(judge.to_yaml(), "judge.yaml")
    assert kept.checklist == BOTH
    assert kept.figures is not None and (kept.figures.test.spearman or 0) > 0.8
    found = figures_with_measures(both(examples), examples, BOTH, options())
    assert found["spearman"] > 0.8 and found["n"] == 80
    assert with_measures(shrugs(examples), CHECKLIST, examples) == shrugs(examples)


def test_the_result_says_both_figures() -> None:
    figure = {"spearman": 0.5, "kendall": 0.4, "pearson": 0.5, "low": 0.4, "high": 0.6, "n": 40, "dimensions": {}}
    data: dict[str, Any] = {
        "scorer": "s", "base": "b", "remarks": [], "curve": {"best_epoch": 1, "stopped_early": False, "validation": []},
        "mixture": {"units": {"training": 1}, "rows": []}, "calibration": {"n": 0},
        "speed": {"cpu_ms": 1.0, "cpu_ms_alone": 1.0},
        "price": {"break_even_money": {"verdicts": None}, "break_even_time": {"verdicts": None}},
        "test": {"people": {"scorer": figure}, "with_measures": {**figure, "spearman": 0.75, "low": 0.7, "high": 0.8}},
    }  # fmt: skip
    view = TrainResult(data)._view()
    assert any(says(line, "0.750", "0.500") for line in view.lines)
    assert len(view.tables["test"]()) == 2


def test_checks_and_measures_alone_are_refused() -> None:
    check = ComputedCheck(id="short", kind="length", value="at most 4 words")
    with pytest.raises(InputError, match=naming("short")):
        asked_of(BOTH.model_copy(update={"questions": (*BOTH.questions, check)}), None)
    with pytest.raises(InputError, match=naming("questions")):
        asked_of(Checklist(questions=(OLD,)), None)
