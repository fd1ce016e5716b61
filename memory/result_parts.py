"""The parts of ``result.json``: versions and their figures, questions, edits, lessons, and what was bought."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from ..prompts.checklist import Sees, marked
from ..prompts.lessons import Edit, Lesson
from ..prompts.shown_examples import ShownExamples
from ..prompts.verdicts import Provenance


class ResultPart(BaseModel):
    """A record of the file; a field that is not known here is kept."""

    model_config = ConfigDict(frozen=True, extra="allow")

    def to_dict(self) -> dict[str, Any]:
        """As it stands in the file."""
        return self.model_dump(mode="json", exclude_unset=True)


class GainRecord(ResultPart):
    """How much better one version is than another, with its 95 % interval."""

    value: float | None
    n: int
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    reason: str | None = None
    """Why there is no value or no interval."""


class StatisticRecord(ResultPart):
    """A figure with its 95 % interval."""

    value: float | None
    n: int
    low: float | None = None
    high: float | None = None
    reason: str | None = None


class MeasureRecord(ResultPart):
    """The figures of one version on one split: a judge's correlations, or a generator's mean score."""

    spearman: float | None = None
    kendall: float | None = None
    pearson: float | None = None
    n: int
    low: float | None = None
    high: float | None = None
    mean: float | None = None
    """Of a generator, whose correlations are undefined."""
    reason: str | None = None
    dimensions: dict[str, MeasureRecord] = {}
    optimised: StatisticRecord | None = None
    """The metric that the run was to raise, where it is another one."""
    accuracy: StatisticRecord | None = None
    """This and those below where people's labels are pass or fail, at the version's threshold."""
    true_positive_rate: StatisticRecord | None = None
    true_negative_rate: StatisticRecord | None = None
    kappa: StatisticRecord | None = None
    auc: StatisticRecord | None = None
    confusion: dict[str, int] = {}

    @property
    def value(self) -> float | None:
        """What the run is measured by: the mean score, Spearman's correlation, or another metric."""
        return self.shown.value

    @property
    def shown(self) -> StatisticRecord:
        """The same with its interval."""
        if self.optimised is not None:
            return self.optimised
        value = self.spearman if self.mean is None else self.mean
        return StatisticRecord(value=value, n=self.n, low=self.low, high=self.high, reason=self.reason)


class ErrorsRecord(ResultPart):
    """How far scores are from the wanted ones."""

    mean_absolute: float | None
    drift: float | None
    n: int
    reason: str | None = None


class CalibratedRecord(MeasureRecord):
    """The figures of one way to read the same verdicts."""

    errors: ErrorsRecord
    gain: GainRecord | None = None
    """Beyond the verdicts as they are; None for those themselves."""


class BiasRecord(ResultPart):
    """Mean score less the wanted mean by dimension, and the share of yes by question."""

    mean_errors: dict[str, float | None]
    yes_rates: dict[str, float] = {}


class QuestionRecord(ResultPart):
    """A question that was written anew."""

    id: str
    text: str
    dimension: str = ""
    good: str = "yes"
    weight: float = 1.0

    @property
    def criterion(self) -> str:
        """The text, and that yes is a fault where it is one."""
        return marked(self.text, self.good)


class ChecklistRecord(ResultPart):
    """The checklist of a version, where it is not the one that the run began with."""

    task: str = ""
    questions: tuple[QuestionRecord, ...] = ()


class ThresholdRecord(ResultPart):
    """A score, in [0, 1], from which on an output passes."""

    value: float
    fitted_on: str | None
    """``development``; None where it is 0.5, for a ``reason``."""
    n: int = 0
    of: tuple[str, ...] = ("overall",)
    """The dimensions of whose scores the mean is held against it."""
    reason: str | None = None


class SideRecord(ResultPart):
    """The first or the best version."""

    prompt: str
    hash: str | None = None
    validation: MeasureRecord | None = None
    test: MeasureRecord | None = None
    reason: str | None = None
    """Why there is no test."""
    checklist: ChecklistRecord | None = None
    read_by: dict[str, Any] | None = None
    """The calibration that its verdicts are read by, where it has one."""
    examples: ShownExamples | None = None
    """The judged examples that it is shown, where it is."""
    threshold: ThresholdRecord | None = None
    """The score from which on an output passes, where people's labels are pass or fail."""
    origins: dict[str, dict[str, Any]] = {}
    """Where the questions that the run found came from, by id."""
    mode: Literal["each", "batched"] | None = None
    """How several questions are put to it, where the run found that out."""
    p_yes_from: Provenance | None = None
    """Where P(yes) comes from, of a judge that thinks and where the run found that out."""


class BothWaysRecord(ResultPart):
    """What a judge answered when it was asked questions together, beside its answers to the same questions alone."""

    mode: Literal["each", "batched"]
    same: int
    answers: int
    sentence: str


NOT_ACCEPTED = "not accepted: "
"""How the reason of a question begins that the acceptance test refused."""


class WorthRecord(ResultPart):
    """The gain of the accepted judge over the same judge without one question."""

    validation: GainRecord | None = None
    test: GainRecord | None = None

    @property
    def last(self) -> tuple[str, GainRecord] | None:
        """The split and the gain on it: on test, else on validation."""
        found = {"test": self.test, "validation": self.validation}
        return next(((split, gain) for split, gain in found.items() if gain is not None), None)


class LearnedRecord(ResultPart):
    """A question that was proposed, and what became of it."""

    id: str
    text: str
    good: str | None = None
    """The answer that speaks for the output; None where that was not found out."""
    dimension: str = ""
    sources: tuple[str, ...] = ()
    """Examples that it comes from."""
    parts: tuple[str, ...] = ()
    """Of one that comes from no comment, ``development`` and ``validation`` as far as their outputs led to it."""
    comments: tuple[str, ...] = ()
    sees: Sees = "all"
    """What the judge is shown when it is asked."""
    joined: bool
    """Whether the accepted judge asks it."""
    reason: str | None = None
    """Why not."""
    may_return: bool = False
    """Whether nothing but the acceptance test or a lack of room kept it out, so that new evidence may bring it back."""
    effect: float | None = None
    """How much more it speaks against rejected outputs that it does not come from than against accepted ones."""
    iteration: int = 1
    worth: WorthRecord = WorthRecord()

    @property
    def origin(self) -> str:
        """``comment``, ``contrast``, or ``memory`` where an earlier run had learned it; ``from`` in the file."""
        return str((self.model_extra or {}).get("from", "comment"))

    @property
    def criterion(self) -> str:
        """The text, and that yes is a fault where it is one."""
        return marked(self.text, self.good or "yes")

    @property
    def was_tried(self) -> bool:
        """Whether it came as far as the acceptance test."""
        return self.joined or (self.reason or "").startswith(NOT_ACCEPTED)


class RevisedRecord(ResultPart):
    """A question of the start that people's scores speak against, or too little for."""

    id: str
    text: str
    good: Literal["yes", "no"]
    """The good answer from now on; of one that is asked no more what it was."""
    what: Literal["flipped", "dropped"]

    @property
    def sentence(self) -> str:
        """What became of it, and why."""
        now = (
            "is asked no more, as it told too little of what people reject"
            if self.what == "dropped"
            else f"is turned round: {self.good} is now the good answer, as it spoke for outputs that people reject"
        )
        return f"The question '{self.id}' ({self.text}) {now}."


class ReadRecord(ResultPart):
    """What questions were looked for in: a run that goes on from this one does not read it again."""

    comments: tuple[tuple[str, str], ...] = ()
    """Example id and text."""
    contrasted: tuple[str, ...] = ()
    """Dimensions whose rejected outputs were held against accepted ones, or need not be, as comments said enough."""


class EditRecord(Edit):
    """An edit of a candidate."""

    model_config = ConfigDict(extra="allow")

    @property
    def key(self) -> tuple[str, str, tuple[str, ...]]:
        """By this an edit is known again."""
        return self.old, self.new, self.lessons


class TriedRecord(ResultPart):
    """A candidate that went through the acceptance test."""

    edits: tuple[EditRecord, ...]
    reason: str
    gain: GainRecord | None = None
    iteration: int
    judged: int | None = None
    """Validation examples that were judged before the decision."""
    shows: str | None = None
    """The examples that it shows the judge, in words; None where these are not what is new."""

    @property
    def lessons(self) -> list[str]:
        """Ids of the lessons behind its edits."""
        return [lesson for edit in self.edits for lesson in edit.lessons]


class ShowingRecord(ResultPart):
    """A way of showing the judge examples that was tried."""

    mode: str
    name: str
    """As in "4 fixed examples"."""
    sources: tuple[str, ...] = ()
    """Ids of the development examples that are shown, or retrieved from."""
    accepted: bool
    reason: str


class PrunedRecord(ResultPart):
    """An accepted edit whose removal was tried at the end."""

    edit: EditRecord
    removed: bool
    reason: str
    gain: GainRecord | None = None
    """Of the prompt without it."""


class WordingRecord(ResultPart):
    """One wording of a question; ``correlation`` is its rank correlation with the source on ``n`` examples."""

    text: str
    good: str = "yes"
    correlation: float | None = None
    n: int = 0
    dropped: str | None = None
    sees: Sees = "all"

    @property
    def criterion(self) -> str:
        """The text, and that yes is a fault where it is one, and that it is asked of the output alone where it is."""
        return marked(self.text, self.good, self.sees)


class ChangedQuestionRecord(ResultPart):
    """A question of the start that the accepted judge asks otherwise, or no more; with its polarity and what is seen,
    where these matter."""

    id: str
    old: str
    new: str | None
    """None where it is asked no more."""


class QuestionWordingsRecord(ResultPart):
    """A question of which other wordings were tried."""

    question: str
    before: WordingRecord
    after: WordingRecord | None = None
    """What replaced it, or would have, had the acceptance test taken it."""
    reason: str
    gain: float | None = None
    bias: float | None = None
    tried: tuple[WordingRecord, ...] = ()
    accepted: bool = False


class ParityRecord(ResultPart):
    """How far a judge says what its reference says: shares of same answers, kappa, rank correlation of P(good)."""

    same: StatisticRecord
    kappa: StatisticRecord
    spearman: StatisticRecord
    gain: GainRecord | None = None
    """Of ``same`` over the first version's."""
    questions: dict[str, ParityRecord] = {}


class LessonRecord(Lesson):
    """A lesson as it stood when the run ended."""

    model_config = ConfigDict(extra="allow")


class GainsRecord(ResultPart):
    """What the best version gained over the first; None where nothing was accepted, or the split was not judged."""

    validation: GainRecord | None = None
    test: GainRecord | None = None


class PassRatesRecord(ResultPart):
    """How many outputs pass a requirement, in [0, 1], over the examples on which both sides are known."""

    before: float | None
    after: float | None
    n: int
    gain: GainRecord | None = None


class InstructionRecord(ResultPart):
    """What an accepted instruction did to a requirement that it is about."""

    lesson: str
    text: str
    requirement: str
    """Id of the question, or name of the check."""
    asked: str
    """Its words."""
    validation: PassRatesRecord | None = None
    test: PassRatesRecord | None = None


class RoleRecord(ResultPart):
    """What one role of the run bought."""

    calls: int = 0
    cached_calls: int = 0
    retries: int = 0
    failures: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float | None = 0.0
    unpriced_calls: int = 0
