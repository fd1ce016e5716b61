"""The records of a run: versions, figures, questions, edits, lessons and purchases, as ``result.json`` holds them."""

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
    """A record in ``result.json``. Unknown fields, as a later version may write them, are kept."""

    model_config = ConfigDict(frozen=True, extra="allow", populate_by_name=True, serialize_by_alias=True)

    def to_dict(self) -> dict[str, Any]:
        """Return the record as a JSON object, with the fields of the file."""
        return self.model_dump(mode="json", exclude_unset=True)


Figure = Annotated[Statistic, PlainSerializer(statistic_dict)]
"""A figure with its 95 % interval."""
Gain = Annotated[Difference, PlainSerializer(difference_dict)]
"""Gain of one version over another. The file has its 95 % interval and not its standard error."""


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
    """The run's metric, if it is another one than Spearman's correlation or the mean score."""
    accuracy: Figure | None = None
    """Share of the examples that the judge and people label alike, at the version's threshold.

    This figure and those below exist only if labels are pass or fail.
    """
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
    """Distance of the judge's scores from the wanted scores, by people or by the source."""

    mean_absolute: float | None
    drift: float | None
    n: int
    reason: str | None = None


class CalibratedRecord(MeasureRecord):
    """Figures of the same verdicts, read with one calibration."""

    errors: ErrorsRecord
    gain: Gain | None = None
    """Gain over the uncalibrated verdicts; None for the uncalibrated verdicts."""


class BiasRecord(ResultPart):
    """Mean score minus the wanted mean (by people or by the source) by dimension, and share of yes by question."""

    mean_errors: dict[str, float | None]
    yes_rates: dict[str, float] = {}


class CertifiedRecord(ResultPart):
    """Decision of a migration's certificate. ``certificate.json`` holds the figures behind it."""

    decision: Literal["adopt", "not_yet", "undecided"]
    reason: str
    """One sentence."""

    @property
    def word(self) -> Literal["adopt", "keep", "undecided"]:
        """The decision in the words of ``judge.yaml``: ``keep`` (the old version) stands for ``not_yet``."""
        return "keep" if self.decision == "not_yet" else self.decision


class QuestionRecord(ResultPart):
    """A question of a version's checklist."""

    id: str
    text: str
    dimension: str = ""
    good: str = "yes"
    weight: float = 1.0
    pays_for_repeating: float | None = None
    """Gain in P(good) of outputs that repeat their input, if a probe found a clear gain."""

    @property
    def criterion(self) -> str:
        """The question's text, marked if yes is a fault."""
        return marked(self.text, self.good)


class ChecklistRecord(ResultPart):
    """The checklist of a version, if it differs from the run's first checklist."""

    task: str = ""
    questions: tuple[QuestionRecord, ...] = ()


class ThresholdRecord(ResultPart):
    """Lowest score, in [0, 1], with which an output passes."""

    value: float
    fitted_on: str | None
    """``development``; None if the threshold is the default 0.5 (``reason`` says why)."""
    n: int = 0
    of: tuple[str, ...] = ("overall",)
    """Dimensions whose mean score is compared with the threshold."""
    reason: str | None = None


class KeptFormRecord(FormRecord):
    """Form of a version's prompt that is not plain text, with the name of its file."""

    file: str


class _LaterWriting(PromptSettings):
    """Writing settings from a file of a later askance; unknown fields are kept."""

    model_config = ConfigDict(extra="allow")


class SideRecord(ResultPart):
    """The first or the best version of a run."""

    prompt: str
    form: KeptFormRecord | None = None
    hash: str | None = None
    validation: MeasureRecord | None = None
    test: MeasureRecord | None = None
    without_measures: MeasureRecord | None = None
    """Figures on test of the same judge without its measures, if it has measures."""
    reason: str | None = None
    """Why the test split was not judged."""
    checklist: ChecklistRecord | None = None
    read_by: dict[str, Any] | None = None
    """Calibration of the judge's verdicts, if it has one."""
    examples: ShownExamples | None = None
    """Judged examples that the judge is shown, if any."""
    threshold: ThresholdRecord | None = None
    """Lowest score with which an output passes, if people's labels are pass or fail."""
    steps: dict[str, Any] | None = None
    """Steps of the rating, if people rated one dimension on a scale of a few steps.

    Keys: ``values``, ``thresholds`` between them, and for ``test`` and ``validation`` the agreement of the judge's
    steps with people's (``evaluation/raters/steps.py``).
    """
    origins: dict[str, dict[str, Any]] = {}
    """Origins of the questions that the run found, by id."""
    mode: Literal["each", "batched"] | None = None
    """Mode of asking several questions, if the run chose it."""
    writing: PromptSettings | _LaterWriting | None = None
    """The generator's own writing settings, if they differ from the run's."""
    p_yes_from: Provenance | None = None
    """Source of P(yes) of a judge that thinks, if the run chose it."""


class BothWaysRecord(ResultPart):
    """Agreement between a judge's answers in one call for all questions and in one call for each question."""

    mode: Literal["each", "batched"]
    same: int
    answers: int
    sentence: str


NOT_ACCEPTED = "not accepted: "
"""First words of the reason for a question that the acceptance test refused."""


class WorthRecord(ResultPart):
    """The gain of the accepted judge over the same judge without one question."""

    validation: Gain | None = None
    test: Gain | None = None

    @property
    def last(self) -> tuple[str, Difference] | None:
        """The gain on test if there is one, else on validation, with the split's name; None without any gain."""
        found = {"test": self.test, "validation": self.validation}
        return next(((split, gain) for split, gain in found.items() if gain is not None), None)


class Origin(ResultPart):
    """Origin of a question."""

    origin: str = Field(
        min_length=1, validation_alias=AliasChoices("from", "kind", "origin"), serialization_alias="from"
    )
    """Kind of origin. Files call the field ``from``.

    ``start``: the run's first checklist. ``clause``: a clause of a judge's prompt. Or the way in which a run found the
    question: ``comment``, ``contrast``, ``memory`` (learned in an earlier run), ``reworded``, ``flipped`` (the other
    answer is good now).
    """
    sources: tuple[str, ...] = ()
    """Ids of the examples that led to the question."""
    comments: tuple[str, ...] = ()
    """Comments on these examples that led to it."""


class Fate(Origin):
    """Origin of a question, and its fate in a run."""

    joined: bool
    """Whether the run's judge asks the question."""
    reason: str | None = Field(default=None, validation_alias=AliasChoices("reason", "problem"))
    """Why the question did not join the judge. The journal calls the field ``problem``."""
    worth: WorthRecord = WorthRecord()


class CriterionRecord(Fate):
    """A proposed question: its text, its origin, its figures on the examples, its fate.

    The loop makes a record with :meth:`of` and fills in the other fields later. Events and ``result.json`` hold it.
    """

    id: str = ""
    """Id in the checklist; empty until the question is asked."""
    text: str
    good: GoodAnswer | None = None
    """The answer that speaks for the output; None if it is not known."""
    dimension: str = ""
    origin: str = Field("comment", validation_alias=AliasChoices("from", "kind", "origin"), serialization_alias="from")
    parts: tuple[str, ...] = ()
    """Splits whose outputs led to a question that comes from no comment: ``development``, ``validation``."""
    sees: Sees = "all"
    """Part of an example that the judge is shown with the question."""
    joined: bool = False
    may_return: bool = False
    """Whether new evidence may bring the question back: only the acceptance test or lack of room kept it out."""
    effect: float | None = None
    """Mean badness of rejected outputs, without its sources, minus that of accepted outputs; in [-1, 1]."""
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
        """Make the record of a question that was not judged yet."""
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
        """Copy the record with new values of some fields."""
        return self.model_copy(update=fields)

    def with_sources_of(self, other: CriterionRecord) -> CriterionRecord:
        """Add the sources and comments of another record of the same question."""
        sources = tuple(dict.fromkeys([*self.sources, *other.sources]))
        return self.but(sources=sources, comments=tuple(dict.fromkeys([*self.comments, *other.comments])))

    def as_one_with(self, other: CriterionRecord) -> CriterionRecord:
        """Join two records of the same question, before it is asked. The result is a relation if either of them is."""
        return self.with_sources_of(other).but(sees=self.sees if self.is_relation else other.sees)

    @property
    def is_relation(self) -> bool:
        """Whether the question compares the output with another text of the example."""
        return self.sees in TEXTS

    @property
    def is_measure(self) -> bool:
        """Whether the criterion is a measure, which code computes, and not a proposed question."""
        return self.origin == "measure"

    @property
    def criterion(self) -> str:
        """The text, marked if yes is a fault or if a low number of a measure is good."""
        if self.is_measure:
            return f"{self.text} (low is good)" if self.good == "no" else self.text
        return marked(self.text, self.good or "yes")

    @property
    def problem(self) -> str | None:
        """The ``reason`` under its name in the journal, which is written before the acceptance test."""
        return self.reason

    @property
    def was_tried(self) -> bool:
        """Whether the question went through the acceptance test."""
        return self.joined or (self.reason or "").startswith(NOT_ACCEPTED)


class RevisedRecord(ResultPart):
    """A question of the start that was turned round or dropped, because people's scores do not support it."""

    id: str
    text: str
    good: Literal["yes", "no"]
    """The good answer after the revision; for a dropped question, its last good answer."""
    what: Literal["flipped", "dropped"]

    @property
    def sentence(self) -> str:
        """A sentence on the question's fate, with the reason."""
        fate = (
            "is asked no more, as it said too little about rejected outputs"
            if self.what == "dropped"
            else f"is turned round: {self.good} is now the good answer, as it spoke for outputs that people reject"
        )
        return f"The question '{self.id}' ({self.text}) {fate}."


class ReadRecord(ResultPart):
    """Evidence that was already searched for questions. A run that continues this one does not read it again."""

    comments: tuple[tuple[str, str], ...] = ()
    """Each comment as example id and text."""
    contrasted: tuple[str, ...] = ()
    """Dimensions whose rejected outputs were compared with accepted outputs, or whose comments said enough."""


class _LaterEdit(Edit):
    """An edit from a file of a later askance; unknown fields are kept."""

    model_config = ConfigDict(extra="allow")


class TriedRecord(ResultPart):
    """A candidate that went through the acceptance test."""

    edits: tuple[Edit | _LaterEdit, ...]
    accepted: bool = Field(default=False, exclude=True)
    """Whether the candidate was accepted. The file holds accepted and refused candidates in separate lists instead."""
    reason: str
    gain: Gain | None = None
    iteration: int
    judged: int | None = None
    """Validation examples that were judged before the decision."""
    shows: str | None = None
    """The new examples for the judge, or the addition to a writing prompt, in words; None without either."""

    @property
    def lessons(self) -> list[str]:
        """Ids of the lessons behind its edits."""
        return [lesson for edit in self.edits for lesson in edit.lessons]


class ShowingRecord(ResultPart):
    """A tried way to show the judge examples."""

    mode: str
    name: str
    """Name in words, e.g. "4 fixed examples"."""
    sources: tuple[str, ...] = ()
    """Ids of the development examples that are shown, or from which the shown examples are retrieved."""
    accepted: bool
    reason: str


class AddedLineRecord(ResultPart):
    """A tried addition (line after the input, form or setting), with its requirement and the failures behind it."""

    text: str
    requirement: str
    failures: tuple[str, ...] = ()
    """Ids of development examples whose output failed the requirement."""


class AdditionRecord(ResultPart):
    """Trial of an addition to a prompt that writes, measured with and without it on the same development examples."""

    kind: str
    """``schema``, ``grammar``, ``rules``, ``form``, ``example``, or the name of a setting."""
    said: str
    """The addition in words."""
    beside: tuple[str, ...] = ()
    """Kinds of the earlier additions that stayed in place."""
    text: str | None = None
    """The line after the input; None for a setting."""
    settings: dict[str, Any] = {}
    """Settings, with their names in ``writing.yaml``."""
    lines: tuple[AddedLineRecord, ...] = ()
    sources: tuple[str, ...] = ()
    """Ids of the examples whose output is shown."""
    before: float | None = None
    """Mean score without it, in [0, 1]."""
    after: float | None = None
    """Mean score with it, in [0, 1]; None if it was not measured."""
    n: int = 0
    """Number of examples behind both means."""
    kept: bool = False
    """Whether the search went on with the addition."""
    reason: str
    accepted: bool = False
    """Whether the accepted version has the addition."""

    @property
    def sentence(self) -> str:
        """The outcome in one line, e.g. ``rules + schema: better on development (0.61 -> 0.92)``."""
        name = " + ".join([*self.beside, self.kind])
        figures = "" if self.after is None else f" ({self.before or 0.0:.2f} -> {self.after:.2f})"
        return f"{name}: {self.reason}{figures}"


class PrunedRecord(ResultPart):
    """An accepted edit whose removal was tried at the end of the run."""

    edit: Edit | _LaterEdit
    removed: bool
    reason: str
    gain: Gain | None = None
    """Gain of the prompt without the edit over the prompt with it."""

    @property
    def lessons(self) -> tuple[str, ...]:
        """Ids of the lessons behind the edit."""
        return self.edit.lessons


class Wording(NamedTuple):
    """Words of a question, with the part of the example that the judge sees."""

    text: str
    sees: Sees = "all"


class WordingTried(ResultPart):
    """A tried wording of a question, with its figures on the development examples."""

    text: str
    good: GoodAnswer = "yes"
    """The answer that speaks for the output. For a newly written wording, the data decide it."""
    correlation: float | None = None
    """Spearman's correlation of its P(good) with the source judge's, on ``n`` examples; None if undefined."""
    n: int = 0
    dropped: str | None = None
    """Why the wording was not judged on all examples; None if it was."""
    sees: Sees = "all"

    @classmethod
    def of(cls, question: Question) -> WordingTried:
        """Make the record of a question's present wording, before it is tried."""
        return cls(text=question.text, good=question.good, sees=question.sees)

    @property
    def wording(self) -> Wording:
        """The words, with the part of the example that the judge sees."""
        return Wording(self.text, self.sees)

    @property
    def criterion(self) -> str:
        """The text with its polarity and what the judge sees."""
        return marked(self.text, self.good, self.sees)


class ChangedQuestionRecord(ResultPart):
    """A question of the start that the accepted judge asks in other words, or no longer asks. The texts are marked with
    unusual polarity and with what the judge sees."""

    id: str
    old: str
    new: str | None
    """None if the question is no longer asked."""


class QuestionWordings(ResultPart):
    """A question with its tried wordings, and the wording that is proposed for the target."""

    question: str
    """The question's id, which all wordings keep."""
    before: WordingTried
    """The source's own wording, tried on the target."""
    after: WordingTried | None = None
    """The proposed new wording; ``accepted`` says whether it replaced the old one. None without a proposal."""
    reason: str
    """Why the wording is replaced, or why it stays."""
    gain: float | None = None
    """Gain of the best wording's correlation over that of the source's wording, on all development examples."""
    bias: float | None = None
    """Gain that the best of so many wordings would show by chance if none were better."""
    tried: tuple[WordingTried, ...] = ()
    accepted: bool = False
    """Whether the acceptance test took the wording."""

    @property
    def turned(self) -> bool:
        """Whether the good answer has changed."""
        return self.after is not None and self.after.good != self.before.good

    def of(self, question: Question) -> Question:
        """Return the question in the proposed wording: another text, and perhaps another good answer."""
        if self.after is None:
            return question
        return question.model_copy(update={**self.after.wording._asdict(), "good": self.after.good})

    @property
    def sentence(self) -> str:
        """A sentence for people on the outcome on development."""
        if self.after is None:
            return f"question {self.question} stays as it is: {self.reason}"
        asked = marked(f"'{self.after.text}'", self.after.good, self.after.sees)
        return f"question {self.question} is to be asked as {asked}: {self.reason}"


class ParityRecord(ResultPart):
    """Agreement of a judge with its reference judge: share of same answers, kappa, rank correlation of P(good)."""

    same: Figure
    kappa: Figure
    spearman: Figure
    gain: Gain | None = None
    """Gain of ``same`` over the first version."""
    score_difference: Gain | None = None
    """Mean score minus the reference's mean score, for judges that state scores of their own."""
    questions: dict[str, ParityRecord] = {}


class LessonRecord(Lesson):
    """A lesson at the end of the run; unknown fields are kept."""

    model_config = ConfigDict(extra="allow")


class GainsRecord(ResultPart):
    """Gain of the best version over the first; None if nothing was accepted, or if the split was not judged."""

    validation: Gain | None = None
    test: Gain | None = None
    without_measures: Gain | None = None
    """Gain on test of the best version without its measures, if it has measures."""


ExploitWay = Literal["padded", "flattered", "stuffed", "repeated"]
"""Way to change an output without making it better.

``padded``: empty sentences are added; ``flattered``: praise; ``stuffed``: claims that answer the judge's questions;
``repeated``: the input is repeated at the end.
"""


class ExploitRecord(ResultPart):
    """Gain that the accepted judge gives to outputs that were changed in one way without being better."""

    way: ExploitWay
    gain: Gain
    """Gain in score, in [-1, 1]."""
    criteria: dict[str, float] = {}
    """Gain in P(good) by question and measure, in [-1, 1]."""


class PerOutputRecord(ResultPart):
    """Average use of tokens and money for one output."""

    tokens: float
    cost_usd: float | None
    """US dollars; None if the price is not known."""


class PassRatesRecord(ResultPart):
    """Share of outputs that pass a requirement, in [0, 1], on the ``n`` examples with a verdict before and after."""

    before: float | None
    after: float | None
    n: int
    gain: Gain | None = None


class InstructionRecord(ResultPart):
    """Effect of an accepted instruction on a requirement that it is about."""

    lesson: str
    text: str
    requirement: str
    """Id of the question, or name of the check."""
    asked: str
    """Words of the question or check."""
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
