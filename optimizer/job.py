"""A run's inputs, checked, and how its examples are divided."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..prompts.errors import InputError
from ..prompts.examples import documents
from .splits import SMALLEST_PART, Split, split, spread_order

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..models.base import Model
    from ..prompts.checklist import Checklist
    from ..prompts.examples import Example
    from ..prompts.prompt import Prompt
    from .options import LoopOptions

NOT_IN_FINGERPRINT = ("max_calls", "max_tokens", "max_cost", "max_concurrency", "timeout", "retries")
"""Settings that may change when a run is resumed: they change what it may cost, not what it comes to."""


@dataclass(frozen=True)
class Job:
    """The inputs of a run, checked."""

    command: str
    """Which mode: ``migrate``, ``align`` or ``tune``."""
    examples: Sequence[Example]
    checklist: Checklist | None
    prompts: Mapping[str, Prompt]
    """``prompt`` is the one that is improved."""
    models: Mapping[str, str | Model]
    """By the name of the argument, e.g. ``source``."""
    options: LoopOptions
    settings: Mapping[str, str] = field(default_factory=dict)
    """Further inputs of the mode that are texts, e.g. the name of a checker."""
    objects: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """What was given as an object instead of by its name, by the name of the setting; found by that name when a run is
    resumed from its directory."""

    @property
    def prompt(self) -> Prompt:
        """The prompt that is improved."""
        return self.prompts["prompt"]

    @property
    def config(self) -> dict[str, Any]:
        """Settings that the result depends on, as kept in ``config.yaml``."""
        options = self.options.model_dump(mode="json", exclude=set(NOT_IN_FINGERPRINT))
        models = {role: model_name(model) for role, model in self.models.items()}
        return {"command": self.command, **models, **self.settings, **options}


@dataclass(frozen=True)
class SplitExamples:
    """The examples of each split."""

    development: Sequence[Example]
    validation: Sequence[Example]
    """In an order in which any first part is a fair sample: candidates are dropped on such parts."""
    test: Sequence[Example]


def split_examples(job: Job, strata: Sequence[float | None] | None) -> SplitExamples:
    """Divide the examples; those of one document stay together.

    Where every example's ``metadata.split`` is ``development``, ``validation`` or ``test``, that is the split.

    Args:
        job: Its examples, shares and seed.
        strata: A number for each example that is spread evenly over the splits, e.g. the human score.

    Raises:
        InputError: Too few examples for the shares.
    """
    parts = own_split(job.examples) or split(
        [example.id for example in job.examples],
        shares=job.options.split,
        seed=job.options.seed,
        strata=strata,
        groups=documents(job.examples),
    )

    def those(ids: Sequence[str]) -> list[Example]:
        wanted = set(ids)
        return [example for example in job.examples if example.id in wanted]

    validation = those(parts.validation)
    order = spread_order([each.id for each in validation], seed=job.options.seed, groups=documents(validation))
    return SplitExamples(those(parts.development), [validation[place] for place in order], those(parts.test))


def own_split(examples: Sequence[Example]) -> Split | None:
    """The split that the examples bring along in ``metadata.split``; None where not all of them name a part of it.

    Raises:
        InputError: A part has fewer than three examples.
    """
    parts: dict[str, list[str]] = {"development": [], "validation": [], "test": []}
    for example in examples:
        part = example.metadata.get("split")
        if not isinstance(part, str) or part not in parts:
            return None
        parts[part].append(example.id)
    for name, ids in parts.items():
        if len(ids) < SMALLEST_PART:
            raise InputError(
                f"metadata.split names {len(ids)} {name} examples; at least {SMALLEST_PART} are needed in each part."
            )
    return Split(tuple(parts["development"]), tuple(parts["validation"]), tuple(parts["test"]))


def with_own_split(examples: Sequence[Example], parts: Split) -> list[Example]:
    """The examples with the part that each is in as ``metadata.split``: what :func:`own_split` reads."""
    names = {name: part for part in ("development", "validation", "test") for name in getattr(parts, part)}
    return [
        example.model_copy(update={"metadata": {**example.metadata, "split": names[example.id]}})
        for example in examples
    ]


def model_name(model: str | Model) -> str:
    """The name of a model that is given by name or as an object."""
    return model if isinstance(model, str) else model.name
