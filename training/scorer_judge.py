"""``judge.yaml`` beside a scorer: its checklist, threshold and figures, so that its folder is used as one thing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..evaluation.kept_judge import THIS_FOLDER, AcceptedOn, JudgeFigures, KeptJudge, MeasuredFigure
from ..evaluation.pass_fail import FIGURES, figures_of, pass_labels, threshold_for
from ..evaluation.scoring import human_targets, measure, score_examples
from ..prompts.examples import human_dimensions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..prompts.checklist import Checklist
    from ..prompts.examples import Example
    from ..prompts.prompt import Prompt
    from ..prompts.verdicts import VerdictColumns
    from .options import TrainOptions

DIGITS = 4


def scorer_judge(
    said: Callable[[Sequence[Example]], VerdictColumns],
    checklist: Checklist,
    prompt: Prompt,
    validation: Sequence[Example],
    test: Sequence[Example],
    options: TrainOptions,
) -> KeptJudge:
    """The scorer with its questions and, where people rated outputs, with its agreement with them.

    Where their labels are pass or fail it has the threshold, fitted on validation, from which on an output passes.

    Args:
        said: The scorer's verdicts, as it gives them where it is used.
        checklist: What it answers.
        prompt: What a causal base is asked with; an encoder does not read it.
        validation: Examples of validation.
        test: Of test.
        options: Scale, resamples and seed.
    """
    judge: dict[str, Any] = {"model": THIS_FOLDER, "prompt": prompt, "checklist": checklist}
    examples = [*validation, *test]
    if not human_dimensions(examples, checklist):
        return KeptJudge(**judge)
    people = human_targets(examples, checklist, options.human_scale)
    labels = pass_labels(examples, people)
    sampling = {"resamples": options.resamples, "seed": options.seed}
    parts = {"validation": validation, "test": test}
    scores = {name: score_examples(part, checklist, said(part)) for name, part in parts.items()}
    fitted = None if labels is None else threshold_for(scores["validation"], people, labels)
    if fitted is not None and fitted.n:
        judge |= {"threshold": fitted.value, "threshold_of": people.dimensions}
    figures = {}
    for name, part in parts.items():
        found = measure(scores[name], people, part, **sampling).overall
        agreed = {each: _short(found[each]) for each in ("spearman", "low", "high")}
        row: dict[str, Any] = agreed | {"n": found["n"], "reason": found.get("reason")}
        if labels is not None and "threshold" in judge:
            at_it = figures_of(scores[name], part, people, labels, judge["threshold"], **sampling)
            row |= {each: _figure(at_it[each]) for each in FIGURES}
        figures[name] = AcceptedOn(**row)
    return KeptJudge(**judge, figures=JudgeFigures(reference="human", **figures))


def _figure(row: dict[str, Any]) -> MeasuredFigure:
    short = {name: _short(row[name]) for name in ("value", "low", "high")}
    return MeasuredFigure(**short, n=row["n"], reason=row.get("reason"))


def _short(value: float | None) -> float | None:
    return None if value is None else round(value, DIGITS)
