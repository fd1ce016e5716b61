"""A mode of the loop: what is improved, what it is held against, and how that is measured. One file each."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Protocol, cast

from ...agents.buying import Estimate
from ...agents.note_takers import BatchNoteTaker
from ...agents.notes import TakesNotes
from ...memory.result_file import FinishReason
from ...models.base import Model
from ...models.gateway import Gateway
from ...models.resolve import Models
from ...prompts.errors import InputError
from ..job import Job, SplitExamples
from ..options import LoopOptions
from ..phrasings.step import WordQuestions
from ..questions.again import QuestionsAgain
from ..questions.learner import QuestionLearner
from ..questions.together import AskedBothWays
from ..show_examples import ShowExamples
from ..signals import Signal
from ..subject import Draft, Observation, Outcome, Subject
from ..trial import Screening
from ..yardsticks import Guard, Yardstick
from .bench import Bench
from .plain_lines import PlainLines


@dataclass(frozen=True)
class SetUp:
    """What a mode brings to the loop."""

    start: Draft
    subject: Subject
    signal: Signal
    yardstick: Yardstick
    guard: Guard
    note_taker: TakesNotes
    helper: Model
    """Takes the roles that have no model of their own."""
    batches: BatchNoteTaker | None = None
    plain_lines: PlainLines | None = None
    """States what fails in its own words, before notes are taken; None where only a note-taker is asked."""
    classify: bool = False
    """Whether lessons are asked for that no prompt can carry."""
    agreed: FinishReason = "converged"
    questions_first: WordQuestions | None = None
    """Words the questions anew before the first iteration."""
    edits: bool = True
    """Whether the prompt is edited at all."""
    questions_again: QuestionsAgain | None = None
    learner: QuestionLearner | None = None
    """Learns questions before the prompt is edited; None where the checklist is to stay."""
    examples: ShowExamples | None = None
    """Shows the judge examples where no question was learned; None where none are to be shown."""
    at_the_test: Callable[[], Awaitable[Yardstick]] | None = None
    """Makes the yardstick of the test examples, where it needs more than that of validation."""
    extras: Callable[[Yardstick, Outcome, Mapping[int, Observation]], Awaitable[dict[str, Any]]] | None = None
    """Further parts of ``result.json``, from the yardstick and the observations of the test, bought at the very end."""
    failed_before_first: bool = False
    """Whether what failed in an earlier iteration too is read before what fails for the first time."""
    effects: bool = False
    """Whether questions are requirements on outputs, so that each instruction has an effect on those it is about."""
    screening: Screening | None = None
    """Judges a candidate on a part of the questions; None where they cannot be asked one by one."""
    both_ways: AskedBothWays | None = None
    """How the judge answers its questions together, where that was found out before the loop."""
    improve: bool = True
    """Whether the prompt is to be improved; False where only its measures are wanted."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Further parts of ``result.json`` that are known from the start."""


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

    async def set_up(self, bench: Bench) -> SetUp:
        """Buy what is needed before the loop, and make its parts."""
        ...

    def estimate(self, job: Job, splits: SplitExamples, models: Models, gateway: Gateway) -> Estimate:
        """What judging all splits once with the starting prompt would take."""
        ...


MODES = ("migrate", "align", "tune")
"""Commands, each with a module of its name."""


def mode_of(command: str) -> Mode:
    """The mode of a command.

    Raises:
        InputError: There is none of that name.
    """
    if command not in MODES:
        raise InputError(f"a run of '{command}', which this askance does not know.")
    return cast(Mode, import_module(f".{command}", __package__).MODE)
