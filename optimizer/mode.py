"""What a mode brings to the loop: a signal, a yardstick and a list of steps.

A step proposes changes of the best version so far and sends each through the acceptance test. The loop asks the steps of
a round in order and knows no kind of them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, NamedTuple, Protocol, cast

from ..agents.buying import Estimate
from ..memory.result_file import FinishReason
from ..models.gateway import Gateway
from ..models.resolve import Models
from ..prompts.errors import InputError
from .acceptance import Acceptance
from .contest import Contest, WritesQuestions
from .job import Job, SplitExamples
from .options import LoopOptions
from .run_context import RunContext
from .signals import Signal
from .subject import Draft, Observation, Outcome, Subject, Version
from .trial import Screening
from .yardsticks import Yardstick


@dataclass(frozen=True)
class LoopRound:
    """One pass of the loop over its steps."""

    best: Version
    """The best version before this round."""
    number: int
    """From 1; 0 before the first round and at the end."""
    contest: Contest
    """Runs the acceptance test."""
    outcome: Outcome
    """The run so far. Steps add to its lists."""

    @property
    def seen(self) -> Observation:
        """The best version on the development examples. Steps before the first round and at the end cannot read it."""
        return self.outcome.seen[self.best.number]


class Turn(NamedTuple):
    """The result of one step in one round."""

    best: Version
    """The version that the step got accepted, or the best one before it."""
    stop: FinishReason | None = None
    """Why the run ends, unless a later step of the round gains something or has more to try."""


class Step(Protocol):
    """One way to improve the best version."""

    async def take(self, now: LoopRound) -> Turn | None:
        """Try to improve the best version. Returns None where the step does not apply to it.

        Raises:
            BudgetExceededError: A cap was reached. The last accepted version stands.
            ModelError: An endpoint refuses every call.
        """
        ...


@dataclass(frozen=True)
class SetUp:
    """The parts of one run, as its mode puts them together."""

    start: Draft
    subject: Subject
    signal: Signal
    yardstick: Yardstick
    acceptance: Acceptance
    steps: tuple[Step, ...] = ()
    """Taken in this order in every round. A round ends with the first step that gains something."""
    first: tuple[Step, ...] = ()
    """Taken once, before the first round."""
    last: tuple[Step, ...] = ()
    """Taken once, after the last round."""
    agreed: FinishReason = "converged"
    """Why the run ends where the signal finds no disagreement."""
    without_rounds: FinishReason = "max_iterations"
    """Why the run ends where there are no steps for a round."""
    writes_questions: WritesQuestions | None = None
    """Writes the questions anew from a changed prompt. None where they stay."""
    screening: Screening | None = None
    """Judges a candidate on a part of the questions. None where they cannot be asked one by one."""
    at_the_test: Callable[[], Awaitable[Yardstick]] | None = None
    """Makes the yardstick of the test examples, where it needs more than that of validation."""
    bought_facts: tuple[Callable[[Yardstick, Outcome, Mapping[int, Observation]], Awaitable[dict[str, Any]]], ...] = ()
    """Parts of ``result.json`` that may cost calls, from the yardstick and the versions on the test examples by number."""
    free_facts: tuple[Callable[[Yardstick, Outcome, Mapping[int, Observation]], dict[str, Any]], ...] = ()
    """Parts of ``result.json`` that cost nothing. They are also written where a budget ended the run before the test."""
    known_facts: Mapping[str, Any] = field(default_factory=dict)
    """Parts of ``result.json`` that are known from the start."""


class Mode(Protocol):
    """One way to use the loop; a module with these names is one."""

    options: type[LoopOptions]
    models: tuple[str, ...]
    """Names of its model arguments."""
    prompts: tuple[str, ...]
    """Names of the prompts kept in the run directory."""
    settings: tuple[str, ...]
    """Names of its further text inputs."""

    needs_checklist: bool

    def strata(self, job: Job) -> list[float | None] | None:
        """A number for each example that is spread evenly over the splits."""
        ...

    async def set_up(self, context: RunContext) -> SetUp:
        """Buy what is needed before the loop, and make its parts."""
        ...

    def estimate(self, job: Job, splits: SplitExamples, models: Models, gateway: Gateway) -> Estimate:
        """What judging all splits once with the starting prompt would take."""
        ...


MODES = ("migrate", "align", "tune")
"""Commands, each with a module of its name in ``modes/``."""


def mode_of(command: str) -> Mode:
    """The mode of a command.

    Raises:
        InputError: There is none of that name.
    """
    if command not in MODES:
        raise InputError(f"a run of '{command}', which this askance does not know.")
    return cast(Mode, import_module(f".modes.{command}", __package__).MODE)
