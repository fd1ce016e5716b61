"""What the judges that rate have in common: one question a dimension, worded by a template."""

from __future__ import annotations

from dataclasses import replace

from ...prompts.checklist import Checklist, Question
from ...prompts.prompt import Prompt
from ...prompts.templates import render
from .numbers import NumberEvaluator
from .protocol import Setup
from .questionnaire import Questionnaire


def rating_checklist(setup: Setup, template: str) -> Checklist:
    """One question for each dimension, from a template with the variables task, dimension and description."""
    questions = [
        Question(
            id=f"{template}_{each.dimension}",
            text=render(
                template, task=setup.task, dimension=each.dimension.replace("_", " "), description=each.description
            ),
            dimension=each.dimension,
        )
        for each in setup.criteria
    ]
    return Checklist(task=setup.task, questions=tuple(questions))


def number_judge(
    name: str,
    setup: Setup,
    template: str,
    *,
    layout: Prompt,
    thinking: int | None = None,
    seed: int | None = None,
    temperature: float | None = None,
) -> Questionnaire:
    """A judge that says a number for each dimension."""
    options = setup.options
    judging = options.judging
    judging = replace(
        judging,
        seed=judging.seed if seed is None else seed,
        temperature=judging.temperature if temperature is None else temperature,
    )
    evaluator = NumberEvaluator(
        setup.gateway,
        setup.model,
        layout,
        rating_checklist(setup, template),
        judging,
        role=name,
        points=options.points,
        thinking=thinking,
    )
    return Questionnaire(name, evaluator, setup.dimensions, options.repeat, thinking=thinking is not None)
