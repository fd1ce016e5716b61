"""``result.json``: what a run came to. It is written from these records and read into them, and by nothing else.

A field that a file lacks has its default, so that runs of older versions can still be shown; fields that are not known
here are kept. Dimensions, lessons and versions are named as in the rest of the run's directory.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict

from ..models.budget import count, spending_of
from ..prompts.checklist import marked
from ..prompts.lessons import Edit, Lesson
from ..prompts.shown import ShownExamples

FinishReason = Literal[
    "converged",
    "nothing_fails",
    "calibrated",
    "questions_worded",
    "examples_tried",
    "no_disagreements",
    "no_evidence",
    "no_new_evidence",
    "no_gain",
    "max_iterations",
    "max_lessons",
    "max_calls",
    "max_tokens",
    "max_cost",
]
"""Why the loop ended; a closed list."""

FINISH_SENTENCES: dict[str, str] = {
    "converged": "what is improved agrees with its reference as well as was asked for",
    "nothing_fails": "no question and no check fails on the development examples",
    "calibrated": "nothing but a calibration was asked for (--calibrate)",
    "questions_worded": "nothing but the questions was to change (--update questions)",
    "examples_tried": "nothing but examples to show was to be tried (--update examples)",
    "no_disagreements": "no disagreement is left to learn from",
    "no_evidence": "nothing is left to read that questions could come from",
    "no_new_evidence": "no comment and no disagreement says what the run that it goes on from had not learned or tried",
    "no_gain": "nothing was accepted for as many iterations as --patience allows",
    "max_iterations": "the number of iterations is used up (--max-iterations)",
    "max_lessons": "the prompt holds as many lessons as it may (--max-lessons)",
    "max_calls": "the budget of calls is used up (--max-calls)",
    "max_tokens": "the budget of tokens is used up (--max-tokens)",
    "max_cost": "the budget of money is used up (--max-cost)",
}


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="allow")

    def to_dict(self) -> dict[str, Any]:
        """As it stands in the file."""
        return self.model_dump(mode="json", exclude_unset=True)


class GainRecord(_Record):
    """How much better one version is than another, with its 95 % interval."""

    value: float | None
    n: int
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    reason: str | None = None
    """Why there is no value or no interval."""


class StatisticRecord(_Record):
    """A figure with its 95 % interval."""

    value: float | None
    n: int
    low: float | None = None
    high: float | None = None
    reason: str | None = None


class MeasureRecord(_Record):
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


class ErrorsRecord(_Record):
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


class DriftRecord(_Record):
    """Mean score less the wanted mean by dimension, and the share of yes by question."""

    mean_errors: dict[str, float | None]
    yes_rates: dict[str, float] = {}


class QuestionRecord(_Record):
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


class ChecklistRecord(_Record):
    """The checklist of a version, where it is not the one that the run began with."""

    task: str = ""
    questions: tuple[QuestionRecord, ...] = ()


class ThresholdRecord(_Record):
    """A score, in [0, 1], from which on an output passes."""

    value: float
    fitted_on: str | None
    """``development``; None where it is 0.5, for a ``reason``."""
    n: int = 0
    of: tuple[str, ...] = ("overall",)
    """The dimensions of whose scores the mean is held against it."""
    reason: str | None = None


class SideRecord(_Record):
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


NOT_ACCEPTED = "not accepted: "
"""How the reason of a question begins that the gate refused."""


class WorthRecord(_Record):
    """The gain of the accepted judge over the same judge without one question."""

    validation: GainRecord | None = None
    test: GainRecord | None = None

    @property
    def last(self) -> tuple[str, GainRecord] | None:
        """The split and the gain on it: on test, else on validation."""
        found = {"test": self.test, "validation": self.validation}
        return next(((split, gain) for split, gain in found.items() if gain is not None), None)


class LearnedRecord(_Record):
    """A question that was proposed, and what became of it."""

    id: str
    text: str
    good: str | None = None
    """The answer that speaks for the output; None where that was not found out."""
    dimension: str = ""
    sources: tuple[str, ...] = ()
    """Examples that it comes from."""
    comments: tuple[str, ...] = ()
    joined: bool
    """Whether the accepted judge asks it."""
    reason: str | None = None
    """Why not."""
    may_return: bool = False
    """Whether nothing but the gate or a lack of room kept it out, so that new evidence may bring it back."""
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
        """Whether it came as far as the gate."""
        return self.joined or (self.reason or "").startswith(NOT_ACCEPTED)


class ReadRecord(_Record):
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


class TriedRecord(_Record):
    """A candidate that went through the gate."""

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


class ShowingRecord(_Record):
    """A way of showing the judge examples that was tried."""

    mode: str
    name: str
    """As in "4 fixed examples"."""
    sources: tuple[str, ...] = ()
    """Ids of the development examples that are shown, or retrieved from."""
    accepted: bool
    reason: str


class PrunedRecord(_Record):
    """An accepted edit whose removal was tried at the end."""

    edit: EditRecord
    removed: bool
    reason: str
    gain: GainRecord | None = None
    """Of the prompt without it."""


class WordingRecord(_Record):
    """One wording of a question; ``correlation`` is its rank correlation with the source on ``n`` examples."""

    text: str
    good: str = "yes"
    correlation: float | None = None
    n: int = 0
    dropped: str | None = None

    @property
    def criterion(self) -> str:
        """The text, and that yes is a fault where it is one."""
        return marked(self.text, self.good)


class QuestionWordingsRecord(_Record):
    """A question of which other wordings were tried."""

    question: str
    before: WordingRecord
    after: WordingRecord | None = None
    """What replaced it, or would have, had the gate taken it."""
    reason: str
    gain: float | None = None
    bias: float | None = None
    tried: tuple[WordingRecord, ...] = ()
    accepted: bool = False


class ParityRecord(_Record):
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


class GainsRecord(_Record):
    """What the best version gained over the first; None where nothing was accepted, or the split was not judged."""

    validation: GainRecord | None = None
    test: GainRecord | None = None


class PassRatesRecord(_Record):
    """How many outputs pass a requirement, in [0, 1], over the examples on which both sides are known."""

    before: float | None
    after: float | None
    n: int
    gain: GainRecord | None = None


class InstructionRecord(_Record):
    """What an accepted instruction did to a requirement that it is about."""

    lesson: str
    text: str
    requirement: str
    """Id of the question, or name of the check."""
    asked: str
    """Its words."""
    validation: PassRatesRecord | None = None
    test: PassRatesRecord | None = None


class RoleRecord(_Record):
    """What one role of the run bought."""

    calls: int = 0
    cached_calls: int = 0
    retries: int = 0
    failures: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float = 0.0
    unpriced_calls: int = 0


CROSSED = (
    "Crossed: the validation examples judged with what development taught, and the development examples with what "
    "validation taught, in ranks within each half. The new judge has learned from both."
)
"""Said where figures are cross-fitted."""


class OnSplit(NamedTuple):
    """What was measured on one split."""

    split: str
    before: MeasureRecord | None
    after: MeasureRecord | None
    gain: GainRecord | None


class PassFailSide(NamedTuple):
    """A version's figures where people's labels are pass or fail."""

    name: str
    threshold: ThresholdRecord
    measured: MeasureRecord


class RunRecord(_Record):
    """All of ``result.json``."""

    mode: str
    finish_reason: str
    iterations: int
    reference: str | None = None
    """``human`` or ``source``: whose scores a judge's were correlated with."""
    yardstick: str = "Spearman"
    baseline: SideRecord
    best: SideRecord
    crossed: bool = False
    """Whether validation has taught the best version too. Figures under ``validation`` are then of the development and the
    validation examples, each half judged by what was learned from the other, in ranks within its half."""
    gain: GainsRecord = GainsRecord()
    accepted_edits: tuple[TriedRecord, ...]
    rejected_edits: tuple[TriedRecord, ...]
    pruned_edits: tuple[PrunedRecord, ...] = ()
    wordings: tuple[QuestionWordingsRecord, ...] = ()
    lessons: tuple[LessonRecord, ...]
    questions: tuple[LearnedRecord, ...] = ()
    """Those that were proposed; those that joined first."""
    why_no_questions: str | None = None
    """Why none was proposed, where the run was to learn questions."""
    examples: tuple[ShowingRecord, ...] = ()
    """What became of showing the judge examples, where that was tried."""
    instructions: tuple[InstructionRecord, ...] = ()
    """Of a generator: each instruction in the best prompt with its effect."""
    read: ReadRecord = ReadRecord()
    calls: int
    cached_calls: int
    tokens: int
    cost_usd: float | None
    """None where the price of a call is not known."""
    unpriced_calls: int = 0
    roles: dict[str, RoleRecord] = {}
    coverage: float
    min_coverage: float = 0.0
    missing: dict[str, int] = {}
    """Verdicts without an answer, by their status."""
    test_looked_at: bool | None = None
    earlier_test_looks: int = 0
    """How often the test examples were judged before the run was made longer."""
    calibration: dict[str, dict[str, CalibratedRecord]] = {}
    """By side (``baseline``, ``best``) and reading (``uncalibrated``, ``thresholds``, ``platt``)."""
    drift: dict[str, DriftRecord] = {}
    """By side."""
    parity: dict[str, dict[str, ParityRecord]] = {}
    """With the source's verdicts, by split and side."""

    @property
    def reworded(self) -> tuple[QuestionWordingsRecord, ...]:
        """The questions that the accepted judge is asked in other words."""
        return tuple(each for each in self.wordings if each.accepted)

    @property
    def changed(self) -> bool:
        """Whether a candidate was accepted."""
        return bool(self.accepted_edits)

    @property
    def learned(self) -> list[LearnedRecord]:
        """The questions that the accepted judge has learned."""
        return [each for each in self.questions if each.joined]

    @property
    def shown(self) -> ShownExamples | None:
        """The judged examples that the accepted judge is shown and the first one was not."""
        return None if self.best.examples == self.baseline.examples else self.best.examples

    @property
    def not_shown(self) -> list[ShowingRecord]:
        """The ways of showing examples that did not come as far as the gate."""
        at_gate = {each.shows for each in (*self.accepted_edits, *self.rejected_edits)}
        return [each for each in self.examples if not each.accepted and each.name not in at_gate]

    @property
    def not_learned(self) -> list[LearnedRecord]:
        """The questions that were proposed and did not join."""
        return [each for each in self.questions if not each.joined]

    @property
    def thing(self) -> str:
        """What a user takes away, or keeps: a ``judge`` where questions or examples are new, or else a ``prompt``."""
        if self.changed:
            return "judge" if self.learned or self.best.checklist or self.best.examples else "prompt"
        tried = self.questions or self.finish_reason in ("no_evidence", "examples_tried")
        return "judge" if tried or self.best.examples else "prompt"

    @property
    def same_prompt(self) -> bool:
        """Whether the accepted version has the prompt of the first."""
        return self.baseline.prompt == self.best.prompt

    def questions_of(self, tried: TriedRecord) -> list[LearnedRecord]:
        """The learned questions that a candidate brought to the gate; none where it is one of edits."""
        if tried.edits or tried.shows:
            return []
        return [each for each in self.questions if each.was_tried and each.iteration == tried.iteration]

    def name_of(self, tried: TriedRecord) -> str:
        """What a candidate is known by: its lessons, or its questions."""
        asked = ", ".join(each.id for each in self.questions_of(tried))
        return ", ".join(tried.lessons) or tried.shows or (f"questions {asked}" if asked else "new questions")

    @property
    def why_unchanged(self) -> str:
        """What became of all that was proposed, where nothing was accepted; without a full stop."""
        tried, failed, questions = len(self.rejected_edits), self.failed_trials, len(self.questions)
        said = []
        if tried:
            said.append(
                f"{count(tried, 'candidate')} {'was' if tried == 1 else 'were'} tried on validation and none passed"
            )
        went = sum(each.was_tried for each in self.questions)
        if questions and not went:
            proposed = f"{count(questions, 'question')} {'was' if questions == 1 else 'were'} proposed"
            said.append(f"{proposed} and none withstood the development examples")
        elif went and not tried:
            said.append(f"the run ended before the gate could decide on {count(went, 'question')}")
        if failed and not tried:
            lessons = (
                f"{count(failed, 'lesson')} failed {'its' if failed == 1 else 'their'} trial on development examples"
            )
            said.append(f"{lessons}, so none came to validation")
        if said:
            return "; ".join(said)
        if self.examples:
            said.append("; ".join(f"{each.name}: {each.reason}" for each in self.examples))
            return said[0]
        if self.thing == "judge" and self.why_no_questions:
            return f"no question was proposed, as {self.why_no_questions}"
        return "no candidate came as far as being tried"

    @property
    def splits(self) -> tuple[OnSplit, OnSplit]:
        """The first and the best version side by side, on validation and on test."""
        return (
            OnSplit(
                "crossed" if self.crossed else "validation",
                self.baseline.validation,
                self.best.validation,
                self.gain.validation,
            ),
            OnSplit("test", self.baseline.test, self.best.test, self.gain.test),
        )

    @property
    def pass_fail(self) -> tuple[str, list[PassFailSide]] | None:
        """The split, test or else validation, and the first and, where it is another, the best version on it."""
        sides = {"at the start": self.baseline, **({"accepted": self.best} if self.changed else {})}
        for split in ("test", "validation"):
            found = [
                PassFailSide(name, side.threshold, row)
                for name, side in sides.items()
                if side.threshold and (row := getattr(side, split)) and row.accuracy
            ]
            if len(found) == len(sides):
                return split, found
        return None

    @property
    def why_it_ended(self) -> str:
        """The reason in words, as in "It ended because …"."""
        return FINISH_SENTENCES.get(self.finish_reason, self.finish_reason)

    @property
    def whose(self) -> str:
        """Whose scores a judge's were correlated with."""
        return "people" if self.reference == "human" else "the source"

    @property
    def failed_trials(self) -> int:
        """Lessons that failed their trial."""
        return sum("failed its trial" in (lesson.reason or "") for lesson in self.lessons)

    @property
    def spending(self) -> str:
        """What was bought, for people."""
        return spending_of(vars(self))
