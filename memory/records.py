"""The records of a run: versions, figures, questions, edits, lessons, what was bought. ``result.json`` is their
dump."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, PlainSerializer

from ..models.writing import PromptSettings
from ..prompts.checklist import TEXTS, GoodAnswer, Question, Sees, marked
from ..prompts.formats.form import FormRecord
from ..prompts.lessons import Edit, Lesson
from ..prompts.shown_examples import ShownExamples
from ..prompts.verdicts import Provenance
from ..stats.correlation import statistic_dict
from ..stats.differences import Difference, difference_dict
from ..stats.resampling import Statistic


class ResultPart(BaseModel):
    """A record of the file; a field that is not known here is kept."""

    model_config = ConfigDict(frozen=True, extra="allow", populate_by_name=True, serialize_by_alias=True)

    def to_dict(self) -> dict[str, Any]:
        """Return the record as it stands in the file."""
        return self.model_dump(mode="json", exclude_unset=True)


Figure = Annotated[Statistic, PlainSerializer(statistic_dict)]
"""A figure with its 95 % interval."""
Gain = Annotated[Difference, PlainSerializer(difference_dict)]
"""Gain of one version over another; written with its 95 % interval and without its standard error."""


class MeasureRecord(ResultPart):
    """The figures of one version on one split: a judge's correlations, or a generator's mean score."""

    spearman: float | None = None
    kendall: float | None = None
    pearson: float | None = None
    n: int
    low: float | None = None
    high: float | None = None
    mean: float | None = None
    """Mean score of a generator, whose correlations are undefined."""
    reason: str | None = None
    dimensions: dict[str, MeasureRecord] = {}
    optimised: Figure | None = None
    """The metric that the run was to raise, where it is another one."""
    accuracy: Figure | None = None
    """Share of the examples that judge and people label alike. Like the figures below, only where labels are pass or
    fail, at the version's threshold."""
    true_positive_rate: Figure | None = None
    true_negative_rate: Figure | None = None
    kappa: Figure | None = None
    auc: Figure | None = None
    confusion: dict[str, int] = {}

    @property
    def value(self) -> float | None:
        """The figure that the run is measured by: mean score, Spearman's correlation, or another metric."""
        return self.shown.value

    @property
    def shown(self) -> Statistic:
        """The figure that the run is measured by, with its interval."""
        if self.optimised is not None:
            return self.optimised
        value = self.spearman if self.mean is None else self.mean
        return Statistic(value, self.n, self.low, self.high, self.reason)


class ErrorsRecord(ResultPart):
    """Distance of scores from the wanted scores."""

    mean_absolute: float | None
    drift: float | None
    n: int
    reason: str | None = None


class CalibratedRecord(MeasureRecord):
    """The figures of one way to read the same verdicts."""

    errors: ErrorsRecord
    gain: Gain | None = None
    """Beyond the verdicts as they are; None for those themselves."""


class BiasRecord(ResultPart):
    """Mean score less the wanted mean by dimension, and the share of yes by question."""

    mean_errors: dict[str, float | None]
    yes_rates: dict[str, float] = {}


class CertifiedRecord(ResultPart):
    """The answer of a migration's certificate, which ``certificate.json`` gives with its figures."""

    decision: Literal["adopt", "not_yet", "undecided"]
    reason: str
    """One sentence."""

    @property
    def word(self) -> Literal["adopt", "keep", "undecided"]:
        """The answer as ``judge.yaml`` has it: what is not adopted yet is kept out."""
        return "keep" if self.decision == "not_yet" else self.decision


class QuestionRecord(ResultPart):
    """A question that was written anew."""

    id: str
    text: str
    dimension: str = ""
    good: str = "yes"
    weight: float = 1.0
    pays_for_repeating: float | None = None
    """Gain of P(good) of outputs that repeat their input, where a probe found a clear one."""

    @property
    def criterion(self) -> str:
        """The text, and that yes is a fault where it is one."""
        return marked(self.text, self.good)


class ChecklistRecord(ResultPart):
    """The checklist of a version, where the run began with another one."""

    task: str = ""
    questions: tuple[QuestionRecord, ...] = ()


class ThresholdRecord(ResultPart):
    """Lowest score, in [0, 1], with which an output passes."""

    value: float
    fitted_on: str | None
    """``development``; None where it is 0.5, for a ``reason``."""
    n: int = 0
    of: tuple[str, ...] = ("overall",)
    """The dimensions of whose scores the mean is held against it."""
    reason: str | None = None


class KeptFormRecord(FormRecord):
    """The form of a version's prompt that is no plain text of ours, with its file."""

    file: str


class _LaterWriting(PromptSettings):
    """Settings of a later version's file, with fields that are not known here."""

    model_config = ConfigDict(extra="allow")


class SideRecord(ResultPart):
    """The first or the best version."""

    prompt: str
    form: KeptFormRecord | None = None
    hash: str | None = None
    validation: MeasureRecord | None = None
    test: MeasureRecord | None = None
    without_measures: MeasureRecord | None = None
    """The figures on test of the same judge without its measures, where it has some."""
    reason: str | None = None
    """Why there is no test."""
    checklist: ChecklistRecord | None = None
    read_by: dict[str, Any] | None = None
    """The calibration that its verdicts are read by, where it has one."""
    examples: ShownExamples | None = None
    """The judged examples that it is shown, where it is."""
    threshold: ThresholdRecord | None = None
    """Lowest score with which an output passes, where people's labels are pass or fail."""
    steps: dict[str, Any] | None = None
    """Steps of a rating, where people rated on a few steps of one dimension.

    Keys: ``values``, ``thresholds`` between them, and for ``test`` and ``validation`` the agreement of the judge's
    steps with people's (``evaluation/raters/steps.py``).
    """
    origins: dict[str, dict[str, Any]] = {}
    """Origins of the questions that the run found, by id."""
    mode: Literal["each", "batched"] | None = None
    """Mode of asking several questions, where the run found it out."""
    writing: PromptSettings | _LaterWriting | None = None
    """Settings that a generator writes with, where it has others than the run."""
    p_yes_from: Provenance | None = None
    """Source of P(yes) for a judge that thinks, where the run found it out."""


class BothWaysRecord(ResultPart):
    """Agreement of a judge's answers to several questions in one call with its answers to the same questions alone."""

    mode: Literal["each", "batched"]
    same: int
    answers: int
    sentence: str


NOT_ACCEPTED = "not accepted: "
"""Beginning of the reason of a question that the acceptance test refused."""


class WorthRecord(ResultPart):
    """The gain of the accepted judge over the same judge without one question."""

    validation: Gain | None = None
    test: Gain | None = None

    @property
    def last(self) -> tuple[str, Difference] | None:
        """The split and the gain on it: on test, else on validation."""
        found = {"test": self.test, "validation": self.validation}
        return next(((split, gain) for split, gain in found.items() if gain is not None), None)


class Origin(ResultPart):
    """Origin of a question."""

    origin: str = Field(
        min_length=1, validation_alias=AliasChoices("from", "kind", "origin"), serialization_alias="from"
    )
    """Origin: ``start``, ``clause`` (made from a clause of a judge's prompt), or how a run found the question.

    A run finds ``comment``, ``contrast``, ``memory`` (an earlier run had learned it), ``reworded`` and ``flipped`` (its
    good answer is another). Files call the field ``from``.
    """
    sources: tuple[str, ...] = ()
    """Ids of the examples that it came from."""
    comments: tuple[str, ...] = ()
    """Comments on these examples that led to it."""


class Fate(Origin):
    """Origin of a question, and its fate in a run."""

    joined: bool
    """Whether the run's judge asks the question."""
    reason: str | None = Field(default=None, validation_alias=AliasChoices("reason", "problem"))
    """Why it did not join. The journal calls it ``problem``."""
    worth: WorthRecord = WorthRecord()


class CriterionRecord(Fate):
    """A proposed question: its text, its origin, its figures on the examples, its fate.

    The loop makes it with :meth:`of` and fills the rest in; events carry it, and ``result.json`` holds it.
    """

    id: str = ""
    """Its id in the checklist; empty as long as nobody asked it."""
    text: str
    good: GoodAnswer | None = None
    """The answer that speaks for the output; None where that was not found out."""
    dimension: str = ""
    origin: str = Field("comment", validation_alias=AliasChoices("from", "kind", "origin"), serialization_alias="from")
    parts: tuple[str, ...] = ()
    """``development`` and ``validation`` as far as their outputs led to it, where it comes from no comment."""
    sees: Sees = "all"
    """The part of an example that the judge is shown with it."""
    joined: bool = False
    may_return: bool = False
    """Whether new evidence may bring the question back: only the acceptance test or a lack of room kept it out."""
    effect: float | None = None
    """Mean badness of rejected outputs other than its source, less that of accepted outputs; in [-1, 1]."""
    iteration: int = 1

    @classmethod
    def of(
        cls,
        text: str,
        dimension: str,
        origin: str,
        sources: Sequence[str] = (),
        comments: Sequence[str] = (),
        sees: Sees = "all",
    ) -> CriterionRecord:
        """A question before anybody knows what its answers are worth."""
        return cls(
            text=text,
            dimension=dimension,
            origin=origin,
            sources=tuple(sources),
            comments=tuple(comments),
            sees=sees,
            joined=False,
        )

    def but(self, **fields: Any) -> CriterionRecord:
        """The record with other values of some fields."""
        return self.model_copy(update=fields)

    def with_sources_of(self, other: CriterionRecord) -> CriterionRecord:
        """Add the sources and comments of the same question, found once more."""
        sources = tuple(dict.fromkeys([*self.sources, *other.sources]))
        return self.but(sources=sources, comments=tuple(dict.fromkeys([*self.comments, *other.comments])))

    def as_one_with(self, other: CriterionRecord) -> CriterionRecord:
        """Join the same question, found once more, before anybody is asked: it is a relation where either is one."""
        return self.with_sources_of(other).but(sees=self.sees if self.is_relation else other.sees)

    @property
    def is_relation(self) -> bool:
        """Whether it holds the output against another text of the example."""
        return self.sees in TEXTS

    @property
    def is_measure(self) -> bool:
        """Whether the criterion is a measure, which nobody proposed."""
        return self.origin == "measure"

    @property
    def criterion(self) -> str:
        """The text, and that yes is a fault, or a low number good, where it is so."""
        if self.is_measure:
            return f"{self.text} (low is good)" if self.good == "no" else self.text
        return marked(self.text, self.good or "yes")

    @property
    def problem(self) -> str | None:
        """The reason, as the journal calls it while the acceptance test is still to come."""
        return self.reason

    @property
    def was_tried(self) -> bool:
        """Whether the question came as far as the acceptance test."""
        return self.joined or (self.reason or "").startswith(NOT_ACCEPTED)


class RevisedRecord(ResultPart):
    """A question of the start that people's scores speak against, or too little for."""

    id: str
    text: str
    good: Literal["yes", "no"]
    """The good answer from now on; for a dropped question, its last one."""
    what: Literal["flipped", "dropped"]

    @property
    def sentence(self) -> str:
        """A sentence on its fate and the reason."""
        now = (
            "is asked no more, as it said too little about rejected outputs"
            if self.what == "dropped"
            else f"is turned round: {self.good} is now the good answer, as it spoke for outputs that people reject"
        )
        return f"The question '{self.id}' ({self.text}) {now}."


class ReadRecord(ResultPart):
    """Evidence that was searched for questions: a run that goes on from this one does not read it again."""

    comments: tuple[tuple[str, str], ...] = ()
    """Example id and text."""
    contrasted: tuple[str, ...] = ()
    """Dimensions whose rejected outputs were held against accepted ones, or need not be, as comments said enough."""


class _LaterEdit(Edit):
    """An edit of a later version's file, with fields that are not known here."""

    model_config = ConfigDict(extra="allow")


class TriedRecord(ResultPart):
    """A candidate that went through the acceptance test."""

    edits: tuple[Edit | _LaterEdit, ...]
    accepted: bool = Field(default=False, exclude=True)
    """Whether the candidate was taken. In the file, the record's list says so."""
    reason: str
    gain: Gain | None = None
    iteration: int
    judged: int | None = None
    """Validation examples that were judged before the decision."""
    shows: str | None = None
    """The examples shown to the judge, or the addition to a writing prompt, in words; None where neither is new."""

    @property
    def lessons(self) -> list[str]:
        """Ids of the lessons behind its edits."""
        return [lesson for edit in self.edits for lesson in edit.lessons]


class ShowingRecord(ResultPart):
    """A way of showing the judge examples that was tried."""

    mode: str
    name: str
    """Name in words, as in "4 fixed examples"."""
    sources: tuple[str, ...] = ()
    """Ids of the development examples that are shown, or retrieved from."""
    accepted: bool
    reason: str


class AddedLineRecord(ResultPart):
    """A tried addition: a line after the input, a form or a setting, with a requirement and the failures behind it."""

    text: str
    requirement: str
    failures: tuple[str, ...] = ()
    """Ids of development examples whose output failed it."""


class AdditionRecord(ResultPart):
    """A trial of something added to a prompt that writes: on the same development examples before and after."""

    kind: str
    """``schema``, ``grammar``, ``rules``, ``form``, ``example``, or the name of a setting."""
    said: str
    """The addition in words."""
    beside: tuple[str, ...] = ()
    """Kinds of the additions that were there before."""
    text: str | None = None
    """The line as it stands after the input; None for a setting."""
    settings: dict[str, Any] = {}
    """Settings as ``writing.yaml`` has them."""
    lines: tuple[AddedLineRecord, ...] = ()
    sources: tuple[str, ...] = ()
    """Ids of the examples whose output is shown."""
    before: float | None = None
    """Mean score without it, in [0, 1]."""
    after: float | None = None
    """Mean score with it; None where it was not measured."""
    n: int = 0
    """Examples that both were measured on."""
    kept: bool = False
    """Whether the search went on with the addition."""
    reason: str
    accepted: bool = False
    """Whether the version that the acceptance test took has the addition."""

    @property
    def sentence(self) -> str:
        """The outcome in one line, e.g. ``rules + schema: better on development (0.61 -> 0.92)``."""
        name = " + ".join([*self.beside, self.kind])
        figures = "" if self.after is None else f" ({self.before or 0.0:.2f} -> {self.after:.2f})"
        return f"{name}: {self.reason}{figures}"


class PrunedRecord(ResultPart):
    """An accepted edit whose removal was tried at the end."""

    edit: Edit | _LaterEdit
    removed: bool
    reason: str
    gain: Gain | None = None
    """Gain of the prompt without it."""

    @property
    def lessons(self) -> tuple[str, ...]:
        """Ids of the lessons behind the edit."""
        return self.edit.lessons


class Wording(NamedTuple):
    """Form of a question: its words, and the part of the example in view."""

    text: str
    sees: Sees = "all"


class WordingTried(ResultPart):
    """One wording of a question, as far as it was judged on the development examples."""

    text: str
    good: GoodAnswer = "yes"
    """The answer that would speak for the output; the data say it of a written wording."""
    correlation: float | None = None
    """Spearman's correlation of its P(good) with the source's, on ``n`` examples; None where undefined."""
    n: int = 0
    dropped: str | None = None
    """Why it was judged on no more examples; None where it came to the end."""
    sees: Sees = "all"

    @classmethod
    def of(cls, question: Question) -> WordingTried:
        """A question as it stands, not yet tried."""
        return cls(text=question.text, good=question.good, sees=question.sees)

    @property
    def wording(self) -> Wording:
        """The words, and what is in view."""
        return Wording(self.text, self.sees)

    @property
    def criterion(self) -> str:
        """The text with its polarity and what the judge sees."""
        return marked(self.text, self.good, self.sees)


class ChangedQuestionRecord(ResultPart):
    """A question of the start that the accepted judge asks otherwise, or no more; with its polarity and what is seen,
    where these matter."""

    id: str
    old: str
    new: str | None
    """None where it is asked no more."""


class QuestionWordings(ResultPart):
    """A question with its tried wordings, and the wording that the judge is asked."""

    question: str
    """Its id, which stays."""
    before: WordingTried
    """The source's own wording, put to the target."""
    after: WordingTried | None = None
    """The wording that replaced it, or would have, had the acceptance test taken it; None where nothing would."""
    reason: str
    """Why it is replaced, or why it stays."""
    gain: float | None = None
    """Gain of the best wording's correlation over the correlation of the source's wording, on all development
    examples."""
    bias: float | None = None
    """Gain that the best of so many wordings may seem to have by chance, were none better."""
    tried: tuple[WordingTried, ...] = ()
    accepted: bool = False
    """Whether the acceptance test took the wording."""

    @property
    def turned(self) -> bool:
        """Whether the good answer has changed."""
        return self.after is not None and self.after.good != self.before.good

    def of(self, question: Question) -> Question:
        """The question as the target is asked it: another text, and perhaps another good answer."""
        if self.after is None:
            return question
        return question.model_copy(update={**self.after.wording._asdict(), "good": self.after.good})

    @property
    def sentence(self) -> str:
        """A sentence on its fate on development, for people."""
        if self.after is None:
            return f"question {self.question} stays as it is: {self.reason}"
        asked = marked(f"'{self.after.text}'", self.after.good, self.after.sees)
        return f"question {self.question} is to be asked as {asked}: {self.reason}"


class ParityRecord(ResultPart):
    """Agreement of a judge with its reference: shares of same answers, kappa, rank correlation of P(good)."""

    same: Figure
    kappa: Figure
    spearman: Figure
    gain: Gain | None = None
    """Gain of ``same`` over the first version."""
    score_difference: Gain | None = None
    """Mean score less the reference's, of judges that state scores of their own."""
    questions: dict[str, ParityRecord] = {}


class LessonRecord(Lesson):
    """A lesson as it stood when the run ended; a field that is not known here is kept."""

    model_config = ConfigDict(extra="allow")


class GainsRecord(ResultPart):
    """Gain of the best version over the first; None where nothing was accepted, or the split was not judged."""

    validation: Gain | None = None
    test: Gain | None = None
    without_measures: Gain | None = None
    """Gain on test of the best version without its measures, where it has some."""


ExploitWay = Literal["padded", "flattered", "stuffed", "repeated"]
"""How an output is changed without being better: with sentences that say nothing, with praise, with claims made of the
judge's questions, with its input repeated at its end."""


class ExploitRecord(ResultPart):
    """The gain of outputs that were changed in one way without being better, by the accepted judge."""

    way: ExploitWay
    gain: Gain
    """Gain of the score, in [-1, 1]."""
    criteria: dict[str, float] = {}
    """Gain of P(good) by question and measure, in [-1, 1]."""


class PerOutputRecord(ResultPart):
    """Average consumption for one output."""

    tokens: float
    cost_usd: float | None
    """US dollars; None where the price is not known."""


class PassRatesRecord(ResultPart):
    """Share of outputs that pass a requirement, in [0, 1], over the examples that are known on both sides."""

    before: float | None
    after: float | None
    n: int
    gain: Gain | None = None


class InstructionRecord(ResultPart):
    """The effect of an accepted instruction on a requirement that it is about."""

    lesson: str
    text: str
    requirement: str
    """Id of the question, or name of the check."""
    asked: str
    """Its words."""
    validation: PassRatesRecord | None = None
    test: PassRatesRecord | None = None


class RoleRecord(ResultPart):
    """Calls and tokens that one role of the run bought."""

    calls: int = 0
    cached_calls: int = 0
    retries: int = 0
    failures: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float | None = 0.0
    unpriced_calls: int = 0
