"""A run's checked inputs, and its examples divided into parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from ..memory.memory_contents import MemoryContents
from ..memory.result_file import RunRecord
from ..models.base import Model
from ..models.named import used_models
from ..prompts.checklist import Checklist
from ..prompts.errors import InputError
from ..prompts.examples import Example, documents
from ..prompts.prompt import Prompt
from ..settings import MODEL, settings_naming
from .earlier import Earlier, EarlierRun
from .options import CAPPED, LoopOptions, left_of_caps
from .splits import PARTS, own_split, split, spread_order

Options = TypeVar("Options", bound="LoopOptions")
WHERE = ("store", "no_cache")
"""Settings that say where answers are stored."""
NOT_IN_FINGERPRINT = (*CAPPED, "max_concurrency", "timeout", "retries", "engine", "workers")
"""Settings that may change when a run is resumed, because they change only its cost, not its result."""
CAN_GROW = ("max_iterations",)
"""Settings that may be larger when a run is resumed. The result is the same as if it had begun with this number."""
USED_UP = ("labels",)
"""Settings for reading the examples. They are not kept, because a run's own copy of the examples is read already."""


@dataclass(frozen=True)
class Job:
    """The checked inputs of a run."""

    command: str
    """The mode: ``migrate``, ``align`` or ``tune``."""
    examples: Sequence[Example]
    checklist: Checklist | None
    prompts: Mapping[str, Prompt]
    """Prompts by name; ``prompt`` is the one to improve."""
    models: Mapping[str, str | Model]
    """Models by the name of the argument, e.g. ``source``."""
    options: LoopOptions
    settings: Mapping[str, str] = field(default_factory=dict)
    """Further text inputs of the mode, e.g. the name of a checker."""
    objects: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """Settings given as objects instead of names. A resumed run finds them by their names."""
    earlier: EarlierRun | None = None
    """The earlier run whose judge or prompt is the start."""
    memory: MemoryContents | None = None
    """Content of the lesson memory when the run began; read when the run's directory is opened."""

    @property
    def is_judge(self) -> bool:
        """Whether the run improves a judge; else a generator."""
        return "generator" not in self.models

    @property
    def is_same_judge(self) -> bool:
        """Whether the model is the same as the judge's model in the earlier run."""
        before = self.earlier_judge
        return before is not None and before.judge.model == model_name(self.models["model"])

    @property
    def earlier_judge(self) -> Earlier | None:
        """The earlier run, if the run improves a judge; else None."""
        return self.earlier if isinstance(self.earlier, Earlier) else None

    @property
    def may_share(self) -> bool:
        """Whether the run and other commands may use each other's stored answers."""
        return not any(getattr(model, "answers_stay_in_the_run", False) for model in self.models.values())

    @property
    def prompt(self) -> Prompt:
        """The prompt to improve."""
        return self.prompts["prompt"]

    @property
    def checker(self) -> Any:
        """The checker of outputs, a function or its name; None where there is none."""
        return self.objects.get("checker") or self.settings.get("checker")

    @property
    def views(self) -> int:
        """Number of ways to ask a question: 2 if the output alone differs from everything in view, else 1."""
        return 1 + self.prompt.can_show_less_of(self.examples)

    def options_as(self, kind: type[Options]) -> Options:
        """Return the settings as those of one mode."""
        assert isinstance(self.options, kind), f"a run of {self.command} has its own settings"
        return self.options

    @property
    def questions(self) -> Checklist:
        """The checklist of a mode that needs one."""
        assert self.checklist is not None, "a judge needs a checklist"
        return self.checklist

    @property
    def config(self) -> dict[str, Any]:
        """Settings that the result depends on, as kept in ``config.yaml``."""
        options = self.options.model_dump(mode="json", exclude={*NOT_IN_FINGERPRINT, *USED_UP, "models"})
        models = {role: model_name(model) for role, model in self.models.items()}
        config = {"command": self.command, **models, **self.settings, **options}
        roles = (options[name] for name in settings_naming(MODEL, type(self.options)))
        named = used_models(self.options.models, [*models.values(), *roles])
        given = {name: each.model_dump(mode="json", exclude_defaults=True) for name, each in named.items()}
        return config | ({"models": given} if given else {})


@dataclass(frozen=True)
class SplitExamples:
    """The examples of each split."""

    development: Sequence[Example]
    validation: Sequence[Example]
    """In an order in which any first part is a fair sample, because candidates may be dropped after such a part."""
    test: Sequence[Example]


def split_examples(job: Job, strata: Sequence[float | None] | None) -> SplitExamples:
    """Divide the examples; examples of one document stay together.

    If every example's ``metadata.split`` names a part, this is the split. Examples of an earlier run keep their part.
    ``strata``, e.g. human scores, are spread evenly over the splits. Raises InputError if there are too few examples
    for the shares, or ``metadata.split`` names another part than the earlier run."""
    kept = job.earlier.parts(job.examples) if job.earlier else {}
    given_split = own_split(job.examples)
    for part in PARTS if given_split else ():
        for name in getattr(given_split, part):
            if kept.get(name, part) != part:
                raise InputError(
                    f"The example '{name}' is a {part} example by its metadata.split and was, or its document was, in "
                    f"{kept[name]} in the run that this one goes on from; what was tested on must not be learned from. "
                    "Correct it, or leave metadata.split out."
                )
    parts = given_split or split(
        [example.id for example in job.examples],
        shares=job.options.split,
        seed=job.options.seed,
        strata=strata,
        groups=documents(job.examples),
        kept=kept,
    )

    of_part = {name: part for part in PARTS for name in getattr(parts, part)}
    development, validation, test = ([each for each in job.examples if of_part[each.id] == part] for part in PARTS)
    order = spread_order([each.id for each in validation], seed=job.options.seed, groups=documents(validation))
    return SplitExamples(development, [validation[place] for place in order], test)


def with_rest(job: Job, *spent: RunRecord) -> Job:
    """Return the job with each cap reduced by the use of earlier runs."""
    used = {figure: sum(getattr(each, figure) or 0 for each in spent) for figure in CAPPED.values()}
    return replace(job, options=job.options.model_copy(update=left_of_caps(job.options, used)))


def model_name(model: str | Model) -> str:
    """Return the name of a model that is given by name or as an object."""
    return model if isinstance(model, str) else model.name
