"""The models, store, memory, splits and events that the parts of one run share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ..agents.agent import ParseError
from ..evaluation.scoring import Coverage, coverage
from ..memory.embedders import DEFAULT_EMBEDDER, Embedder, embedder
from ..memory.lesson_memory import LessonMemory
from ..memory.records import CriterionRecord
from ..memory.run_directory import RunDirectory
from ..models.base import CallError, Model
from ..models.gateway import Gateway
from ..models.resolve import Models
from ..prompts.lessons import Lesson
from ..prompts.verdicts import Verdict
from ..settings import MODEL, settings_naming
from .events import Teller
from .job import Job, SplitExamples
from .remembering import Remembering
from .subject import Version


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
    """Of everything that was judged so far."""

    def __post_init__(self) -> None:
        """Make the memory of the run, with the lessons of an earlier one and of a lesson memory where the job has them."""
        self.embedder: Embedder = embedder(self.job.options.embedder or DEFAULT_EMBEDDER)
        self.memory = LessonMemory(self.embedder)
        for lesson in self.job.earlier.remembered.lessons if self.job.earlier else ():
            self.memory.add(lesson)
        self.remembering = Remembering.of(self.job, self.run, self.events)
        if self.remembering is not None:
            self.remembering.recall(self.memory)

    def resolve_names(self) -> None:
        """Look up every model that is named, so that an unknown one shows before anything is bought.

        Raises:
            InputError: There is no model of that name.
        """
        options = self.job.options
        named = [getattr(options, role) for role in settings_naming(MODEL, type(options))]
        for model in (*self.job.models.values(), *filter(None, named)):
            self.models.get(model)

    def model(self, argument: str) -> Model:
        """The model given as this argument.

        Raises:
            InputError: There is no model of that name.
        """
        return self.models.get(self.job.models[argument])

    def helper(self, role: str, default: Model) -> Model:
        """The model of a role that has a setting of its own, else the default.

        Raises:
            InputError: There is no model of that name.
        """
        name = getattr(self.job.options, role)
        return self.models.get(name) if name else default

    @property
    def max_prompt_chars(self) -> int:
        """Longest prompt that a run may make."""
        return self.job.options.max_prompt_chars or 2 * len(self.job.prompt.text) + 1500

    def keep_lessons(
        self,
        best: Version,
        questions: Sequence[CriterionRecord],
        iteration: int,
        *,
        ended: bool = False,
    ) -> None:
        """Write down what was learned so far, in the run and in its lesson memory.

        ``ended`` says that the ``questions`` are those of ``result.json``, with their worth.

        Raises:
            InputError: The lesson memory was damaged meanwhile.
            AskanceError: A file cannot be written.
        """
        write = ended or not self.events.journal.replaying
        lessons = self.memory.learned
        if write:
            self.run.save_lessons(lessons)
        if self.remembering is not None:
            self.remembering.keep(lessons, best, questions, iteration, write=write)

    def recalled(self, best: Version) -> list[Lesson]:
        """Lessons of the lesson memory that are to be tried, once in a run."""
        if self.remembering is None:
            return []
        return self.remembering.to_try(self.memory, best.prompt.text)

    async def forget_replies(self, errors: Iterable[CallError]) -> None:
        """Drop the replies that could not be used, so that they are asked for again when the run is resumed."""
        await self.gateway.forget([key for each in errors if isinstance(each, ParseError) for key in each.keys])

    def count(self, verdicts: Sequence[Verdict]) -> None:
        """Add to the coverage."""
        self.coverage += coverage(verdicts)
