"""A run's inputs, checked, and what it would buy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..agents.evaluator import Estimate, Evaluator
from ..prompts.errors import InputError
from ..prompts.examples import Example, human_dimensions
from ..prompts.prompt import Prompt, load_prompt
from .evaluate import load_inputs
from .options import LoopOptions, parse_options
from .results import documents
from .session import run_sync, session
from .splits import split
from .targets import human_targets

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ..models.base import Model
    from ..prompts.checklist import Checklist

NOT_IN_FINGERPRINT = ("max_calls", "max_tokens", "max_cost", "max_concurrency", "timeout", "retries")
"""Settings that may change when a run is resumed: they change what it may cost, not what it comes to."""


@dataclass(frozen=True)
class Job:
    """The inputs of a run, checked."""

    examples: Sequence[Example]
    checklist: Checklist
    prompt: Prompt
    source_prompt: Prompt
    source: str | Model
    target: str | Model
    options: LoopOptions

    @property
    def wants_source_targets(self) -> bool:
        """Whether held-out scores are compared with the source's and not with people's."""
        if self.options.reference == "auto":
            return not human_dimensions(self.examples)
        return self.options.reference == "source"

    @property
    def config(self) -> dict[str, Any]:
        """Settings that the result depends on, as kept in ``config.yaml``."""
        options = self.options.model_dump(mode="json", exclude=set(NOT_IN_FINGERPRINT))
        return {"command": "migrate", "source": model_name(self.source), "target": model_name(self.target), **options}


def prepare(
    data: str | Path | Iterable[Example | Mapping[str, Any]],
    checklist: str | Path | Checklist,
    source: str | Model,
    target: str | Model,
    prompt: str | Path | Prompt | None,
    source_prompt: str | Path | Prompt | None,
    options: Mapping[str, Any],
) -> Job:
    """Load and check the inputs of a run.

    Raises:
        InputError: Names the file, line and field at fault.
    """
    settings = parse_options(LoopOptions, dict(options))
    examples, questions, text = load_inputs(data, checklist, prompt, settings)
    theirs = text if source_prompt is None else load_prompt(source_prompt)
    if model_name(source) == model_name(target) and theirs == text:
        raise InputError(
            "Source and target are the same model with the same prompt, so they cannot disagree. Name another model, "
            "or give the source a prompt of its own (--source-prompt)."
        )
    return Job(examples, questions, text, theirs, source, target, settings)


@dataclass(frozen=True)
class RunEstimate:
    """What a run would buy at least and at most, as far as that can be known before."""

    fixed: Estimate
    """Judging all splits once with the starting prompt, and the source's verdicts."""
    iteration_calls: int
    """Calls of one iteration at most, if every edit has to be tried alone and every helper be asked twice."""
    last_calls: int
    """Calls for the test examples with the accepted prompt, if there is one."""


def estimate_run(job: Job) -> RunEstimate:
    """What :func:`run_job` would buy; nothing is bought.

    Raises:
        InputError: A model is not known.
    """
    parts = split_examples(job)
    judged = job.examples if job.wants_source_targets else parts.development

    async def estimate() -> RunEstimate:
        async with session(job.options, None) as (models, gateway):
            source, target = models.get(job.source), models.get(job.target)
            judging = job.options.judging
            theirs = Evaluator(gateway, source, job.source_prompt, job.checklist, judging).estimate(judged)
            mine = Evaluator(gateway, target, job.prompt, job.checklist, judging).estimate(job.examples)
        notes = job.options.max_notes
        one_version = len(parts.validation) * len(job.checklist.questions) * job.options.repeat
        explanations = 0 if job.options.explain == "never" else 2 * notes
        again = len(parts.development) * len(job.checklist.questions) * job.options.repeat
        fixed = Estimate(
            theirs.verdicts + mine.verdicts,
            theirs.calls + mine.calls,
            theirs.stored + mine.stored,
            theirs.tokens + mine.tokens,
        )
        helpers = 2 * (notes + notes + notes)  # note-taker, deduplicator and updater, each with one re-ask
        iteration = again + explanations + helpers + (notes + 1) * one_version
        return RunEstimate(fixed, iteration, len(parts.test) * len(job.checklist.questions) * job.options.repeat)

    return run_sync(estimate())


@dataclass(frozen=True)
class SplitExamples:
    """The examples of each split, in the order of the data."""

    development: Sequence[Example]
    validation: Sequence[Example]
    test: Sequence[Example]


def split_examples(job: Job) -> SplitExamples:
    """Divide the examples; those of one document stay together, and human scores spread evenly.

    Raises:
        InputError: Too few examples for the shares.
    """
    human = None
    if not job.wants_source_targets:
        targets = human_targets(job.examples, job.checklist, job.options.human_scale)
        human = [targets.overall(example.id) for example in job.examples]
    parts = split(
        [example.id for example in job.examples],
        shares=job.options.split,
        seed=job.options.seed,
        strata=human,
        groups=documents(job.examples),
    )

    def those(ids: Sequence[str]) -> list[Example]:
        wanted = set(ids)
        return [example for example in job.examples if example.id in wanted]

    return SplitExamples(those(parts.development), those(parts.validation), those(parts.test))


def model_name(model: str | Model) -> str:
    """The name of a model that is given by name or as an object."""
    return model if isinstance(model, str) else model.name
