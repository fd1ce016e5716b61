"""A mode: it gets the context of a run, and brings a signal, a yardstick and a list of steps to the loop.

A step proposes changes of the best version so far and sends each through the acceptance test. The loop calls the steps
of a round in order and does not depend on their kinds.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, NamedTuple, Protocol, cast

from ..agents.agent import ParseError
from ..agents.buying import Estimate
from ..agents.generator import sends_images
from ..agents.requests import illustrated, shows_images
from ..evaluation.scoring import Coverage, coverage
from ..memory.embedders import DEFAULT_EMBEDDER, Embedder, embedder
from ..memory.lesson_memory import LessonMemory
from ..memory.records import CriterionRecord
from ..memory.result_file import FinishReason
from ..memory.run_directory import RunDirectory
from ..models.base import CallError, Model, refuse_images
from ..models.gateway import Gateway
from ..models.resolve import Models
from ..prompts.errors import InputError
from ..prompts.verdicts import Verdict
from ..settings import MODEL, settings_naming
from .acceptance import Acceptance, Yardstick
from .contest import Contest, Screening, WritesQuestions
from .events import Teller
from .job import Job, SplitExamples
from .options import LoopOptions
from .remembering import Remembering
from .signals import Signal
from .subject import Draft, Observation, Outcome, Subject, Version


@dataclass
class RunContext:
    """A job with its splits, and the means to work on it."""

    job: Job
    splits: SplitExamples
    models: Models
    gateway: Gateway
    run: RunDirectory
    events: Teller
    coverage: Coverage = field(default_factory=lambda: Coverage(0, 0, 0, 0, 0))
    """Coverage of all verdicts so far."""

    def __post_init__(self) -> None:
        """Make the run's memory of lessons, with those of an earlier run and of a lesson memory."""
        self.embedder: Embedder = embedder(self.job.options.embedder or DEFAULT_EMBEDDER)
        self.memory = LessonMemory(self.embedder)
        for lesson in self.job.earlier.remembered.lessons if self.job.earlier else ():
            self.memory.add(lesson)
        self.remembering = Remembering.of(self.job, self.run, self.events)
        if self.remembering is not None:
            self.remembering.recall(self.memory)

    def resolve_names(self) -> None:
        """Look up all named models before anything is bought. Raises InputError where a model is not known, or would be
        shown images that it does not take."""
        options = self.job.options
        named = [getattr(options, role) for role in settings_naming(MODEL, type(options))]
        for model in (*self.job.models.values(), *filter(None, named)):
            self.models.get(model)
        for role, model in self.job.models.items():
            prompt = self.job.prompts.get(f"{role}_prompt", self.job.prompt)
            shows = sends_images if role == "generator" else shows_images
            seen = (each.id for each in illustrated(self.job.examples) if shows(prompt, each))
            refuse_images(self.models.get(model), seen)

    def model(self, argument: str) -> Model:
        """Return the model that was given as this argument."""
        return self.models.get(self.job.models[argument])

    def helper(self, role: str, default: Model) -> Model:
        """Return the model that the role's setting names, else the default."""
        name = getattr(self.job.options, role)
        return self.models.get(name) if name else default

    @property
    def max_prompt_chars(self) -> int:
        """Most characters of a prompt that the run may make."""
        return self.job.options.max_prompt_chars or 2 * len(self.job.prompt.text) + 1500

    def keep_lessons(
        self, best: Version, questions: Sequence[CriterionRecord], iteration: int, *, ended: bool = False
    ) -> None:
        """Write the lessons so far to the run, and lessons and ``questions`` to its lesson memory.

        Nothing is written while the run only repeats an earlier process, except with ``ended``: then the ``questions``
        are those of the result.
        """
        write = ended or not self.events.journal.replaying
        lessons = self.memory.learned
        if write:
            self.run.save_lessons(lessons)
        if self.remembering is not None:
            self.remembering.keep(lessons, best, questions, iteration, write=write)

    async def forget_replies(self, errors: Iterable[CallError]) -> None:
        """Drop replies that could not be parsed, so that a resumed run asks for them again."""
        await self.gateway.forget([key for each in errors if isinstance(each, ParseError) for key in each.keys])

    def count(self, verdicts: Sequence[Verdict]) -> None:
        """Add verdicts to the coverage."""
        self.coverage += coverage(verdicts)


@dataclass(frozen=True)
class LoopRound:
    """One pass of the loop over its steps."""

    best: Version
    """The best version before this round."""
    number: int
    """Number of the round, from 1; 0 before the first round and at the end."""
    contest: Contest
    """Runs the acceptance test."""
    outcome: Outcome
    """The run so far. Steps add to its lists."""

    @property
    def seen(self) -> Observation:
        """Observation of the best version on development. Not available before the first round and at the end."""
        return self.outcome.seen[self.best.number]


class Turn(NamedTuple):
    """The result of one step in one round."""

    best: Version
    """The best version after the step."""
    stop: FinishReason | None = None
    """Reason to end the run. It counts unless a later step of the round gains something or has more to try."""


class Step(Protocol):
    """One way to improve the best version."""

    async def take(self, now: LoopRound) -> Turn | None:
        """Try to improve the best version. Returns None where the step does not apply to it. Raises BudgetExceededError
        where a cap was reached (the last accepted version stands), and ModelError where an endpoint refuses every call.
        """


@dataclass(frozen=True)
class SetUp:
    """The parts of one run, as its mode puts them together."""

    start: Draft
    subject: Subject
    signal: Signal
    yardstick: Yardstick
    acceptance: Acceptance
    steps: tuple[Step, ...] = ()
    """Steps of every round, in this order. A round ends with the first step that gains something."""
    first: tuple[Step, ...] = ()
    """Steps that are taken once, before the first round."""
    last: tuple[Step, ...] = ()
    """Steps that are taken once, after the last round."""
    agreed: FinishReason = "converged"
    """Finish reason if the signal finds that both sides agree."""
    without_rounds: FinishReason = "max_iterations"
    """Finish reason if there are no steps for a round."""
    needs_notes: bool = True
    """Whether the test is left closed if no note could be taken, so that the run can be resumed."""
    writes_questions: WritesQuestions | None = None
    """Writes the questions anew from a changed prompt; None: they stay."""
    screening: Screening | None = None
    """Judges a candidate on a part of the questions; None where they cannot be asked one by one."""
    at_the_test: Callable[[], Awaitable[Yardstick]] | None = None
    """Makes the yardstick of the test examples, if it needs more than the yardstick of validation has."""
    bought_facts: tuple[Callable[[Yardstick, Outcome, Mapping[int, Observation]], Awaitable[dict[str, Any]]], ...] = ()
    """Parts of ``result.json`` that may cost calls. The last argument has the observations on the test, by version."""
    free_facts: tuple[Callable[[Yardstick, Outcome, Mapping[int, Observation]], dict[str, Any]], ...] = ()
    """Parts of ``result.json`` that cost nothing. They are written even if a budget ended the run before the test."""
    known_facts: Mapping[str, Any] = field(default_factory=dict)
    """Parts of ``result.json`` that are known from the start."""


class Mode(Protocol):
    """One way to use the loop, e.g. ``align``."""

    options: type[LoopOptions]
    models: tuple[str, ...]
    """Names of its model arguments."""
    prompts: tuple[str, ...]
    """Names of the prompts kept in the run directory."""
    settings: tuple[str, ...]
    """Names of its further text inputs."""

    needs_checklist: bool

    def strata(self, job: Job) -> list[float | None] | None:
        """Return a number for each example, which the splits spread evenly; None: nothing is known to spread."""

    async def set_up(self, context: RunContext) -> SetUp:
        """Make the parts of the loop, and buy the verdicts that they need."""

    def estimate(self, job: Job, splits: SplitExamples, models: Models, gateway: Gateway) -> Estimate:
        """Estimate the price of judging all splits once with the starting prompt."""


MODES = ("migrate", "align", "tune")
"""Commands, each with a module of its name in ``modes/``."""


def mode_of(command: str) -> Mode:
    """Return the mode of a command. Raises InputError for an unknown command."""
    if command not in MODES:
        raise InputError(f"a run of '{command}', which this askance does not know.")
    return cast(Mode, import_module(f".modes.{command}", __package__).MODE)
