"""``judge.yaml`` beside a scorer: its checklist, threshold and figures, so that its folder is used as one thing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..evaluation.judge_file import accepted_on
from ..evaluation.kept_judge import THIS_FOLDER, JudgeFigures, KeptJudge
from ..evaluation.pass_fail import figures_of, pass_labels, threshold_for
from ..evaluation.scoring import human_targets, measure, score_examples
from ..memory.records import MeasureRecord
from ..prompts.examples import human_dimensions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..prompts.checklist import Checklist
    from ..prompts.examples import Example
    from ..prompts.prompt import Prompt
    from ..prompts.verdicts import VerdictColumns
    from .options import TrainOptions


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
    figures: dict[str, Any] = {}
    for name, part in parts.items():
        row = dict(measure(scores[name], people, part, **sampling).overall)
        if labels is not None and "threshold" in judge:
            row |= figures_of(scores[name], part, people, labels, judge["threshold"], **sampling)
        figures[name] = accepted_on(MeasureRecord.model_validate(row))
    return KeptJudge(**judge).measured(JudgeFigures(reference="human", **figures))
