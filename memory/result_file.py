"""``result.json``: the result of a run. The file is written from these records and read into them.

A field that is missing in a file gets its default, so that runs of older versions can still be shown. Unknown fields
are kept. Dimensions, lessons and versions have the same names as in the rest of the run's directory.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from pydantic import Field, field_validator

from ..models.budget import price_said, spending_of
from ..prompts.formatting import count, missing_share
from ..prompts.shown_examples import ShownExamples
from ..stats.differences import Difference
from .records import (
    AdditionRecord,
    BiasRecord,
    BothWaysRecord,
    CalibratedRecord,
    CertifiedRecord,
    ChangedQuestionRecord,
    CriterionRecord,
    ExploitRecord,
    GainsRecord,
    InstructionRecord,
    LessonRecord,
    MeasureRecord,
    ParityRecord,
    PerOutputRecord,
    PrunedRecord,
    QuestionWordings,
    ReadRecord,
    ResultPart,
    RevisedRecord,
    RoleRecord,
    ShowingRecord,
    SideRecord,
    ThresholdRecord,
    TriedRecord,
)

FinishReason = Literal[
    "converged",
    "nothing_fails",
    "calibrated",
    "questions_worded",
    "examples_tried",
    "no_disagreements",
    "notes_failed",
    "no_evidence",
    "no_new_evidence",
    "no_gain",
    "no_edit",
    "figure_fell",
    "max_iterations",
    "max_lessons",
    "max_calls",
    "max_tokens",
    "max_cost",
]
"""Reasons why the loop ended."""

FINISH_SENTENCES: dict[str, str] = {
    "converged": "the agreement with the reference is as high as was asked for",
    "nothing_fails": "no question and no check fails on the development examples",
    "calibrated": "nothing but a calibration was asked for (--calibrate)",
    "questions_worded": "nothing but the questions was to change (--update questions)",
    "examples_tried": "nothing but examples to show was to be tried (--update examples)",
    "no_disagreements": "no disagreement is left to learn from among the verdicts that are there",
    "notes_failed": "no note could be taken on any disagreement; resume the run to read them",
    "no_evidence": "nothing is left to read that questions could come from",
    "no_new_evidence": "no comment and no disagreement holds anything that the earlier run had not learned or tried",
    "no_gain": "nothing was accepted for as many iterations as --patience allows",
    "no_edit": "no lesson could be written into the prompt (the papers' loop)",
    "figure_fell": "the held-out figure fell from one iteration to the next, or is missing (the papers' early stopping)",
    "max_iterations": "the number of iterations is used up (--max-iterations)",
    "max_lessons": "the prompt holds as many lessons as it may (--max-lessons)",
    "max_calls": "the budget of calls is used up (--call-budget)",
    "max_tokens": "the budget of tokens is used up (--token-budget)",
    "max_cost": "the budget of money is used up (--cost-budget)",
}


CROSSED = (
    "Crossed: each fold of the development and validation examples judged with what the others taught, in ranks within "
    "each fold. The new judge has learned from all."
)
"""Note beside cross-fitted figures."""


class OnSplit(NamedTuple):
    """Figures of both versions on one split."""

    split: str
    before: MeasureRecord | None
    after: MeasureRecord | None
    gain: Difference | None


class PassFailSide(NamedTuple):
    """Figures of one version if people's labels are pass or fail."""

    name: str
    threshold: ThresholdRecord
    measured: MeasureRecord


class RunRecord(ResultPart):
    """The whole of ``result.json``."""

    mode: str
    finish_reason: str
    iterations: int
    reference: str | None = None
    """Whose scores the judge's scores were correlated with: ``human`` or ``source``."""
    yardstick: str = "Spearman"
    decision: Literal["adopt", "keep", "undecided"] | None = None
    """Decision of the test on the version that validation accepted; None in runs of older versions."""
    decision_reason: str | None = None
    """Reason for the decision, in words; None without a decision."""
    baseline: SideRecord
    best: SideRecord
    crossed: bool = False
    """Whether the best version was learned from the validation examples too.

    Then the figures under ``validation`` are cross-fitted on the development and the validation examples: each half is
    judged by what was learned from the other half, in ranks within its half.
    """
    gain: GainsRecord = GainsRecord()
    accepted_edits: tuple[TriedRecord, ...]
    rejected_edits: tuple[TriedRecord, ...]
    pruned_edits: tuple[PrunedRecord, ...] = ()
    wordings: tuple[QuestionWordings, ...] = ()
    lessons: tuple[LessonRecord, ...]
    questions: tuple[CriterionRecord, ...] = ()
    """Proposed questions: first those that joined, then those refused by the acceptance test."""
    revised_questions: tuple[RevisedRecord, ...] = ()
    """Questions of the start that the accepted judge asks with the other good answer, or no longer asks."""
    changed_questions: tuple[ChangedQuestionRecord, ...] = ()
    """Questions of the start that the accepted judge asks in other words, or no longer asks."""
    why_no_questions: str | None = None
    """Why no question was proposed, in a run that should learn questions."""
    rater_agreement: dict[str, Any] = Field(default_factory=dict)
    """Agreement of several raters by dimension, the ceiling of a judge, and how the labels were combined.

    See ``evaluation/raters/agreement.py``.
    """
    comment_coverage: dict[str, Any] = Field(default_factory=dict)
    """Share of the comments on rejected test outputs in which a learned criterion finds a fault, beside chance
    (``evaluation/raters/comment_coverage.py``)."""
    asked_both_ways: BothWaysRecord | None = None
    """Chosen mode of asking several questions, with the reason; None if the run did not compare the modes."""
    examples: tuple[ShowingRecord, ...] = ()
    """Tried ways of showing examples to the judge."""
    additions: tuple[AdditionRecord, ...] = ()
    """Settings and texts after the input that were tried on development before the rounds, in the order of trial."""
    instructions: tuple[InstructionRecord, ...] = ()
    """Instructions in a generator's best prompt, each with its effect."""
    per_output: PerOutputRecord | None = None
    """Mean tokens and money for one test output of a generator's best version."""
    exploits: tuple[ExploitRecord, ...] = ()
    """Gains that the accepted judge gives to outputs that are not better; empty if the run did not probe for them."""
    read: ReadRecord = ReadRecord()
    calls: int
    cached_calls: int
    tokens: int
    cost_usd: float | None
    """US dollars; None if the price of any call is not known."""
    unpriced_calls: int = 0
    known_usd: float = 0.0
    """US dollars of the calls with a known price, if ``cost_usd`` is None."""
    roles: dict[str, RoleRecord] = Field(default_factory=dict)
    coverage: float
    min_coverage: float = 0.0
    missing: dict[str, int] = Field(default_factory=dict)
    """Number of verdicts without an answer, by status."""
    test_looked_at: bool | None = None
    earlier_test_looks: int = 0
    """Number of times that the test examples were judged before the run was extended."""
    calibration: dict[str, dict[str, CalibratedRecord]] = Field(default_factory=dict)
    """Calibrated figures by side (``baseline``, ``best``) and reading (``uncalibrated``, ``thresholds``, ``platt``)."""
    drift: dict[str, BiasRecord] = Field(default_factory=dict)
    """Drift by side (``baseline``, ``best``)."""
    parity: dict[str, dict[str, ParityRecord]] = Field(default_factory=dict)
    """Agreement with the source's verdicts, by split and side."""
    certificate: CertifiedRecord | None = None
    """Decision of a migration: whether the target may replace the old model."""

    @property
    def exploitable(self) -> list[str]:
        """Ids of the accepted judge's questions that pay for repeating the input."""
        asked = () if self.best.checklist is None else self.best.checklist.questions
        return [each.id for each in asked if each.pays_for_repeating is not None]

    @field_validator("accepted_edits")
    @classmethod
    def _say_that_they_are(cls, value: tuple[TriedRecord, ...]) -> tuple[TriedRecord, ...]:
        return tuple(edit.model_copy(update={"accepted": True}) for edit in value)

    @property
    def reworded(self) -> tuple[QuestionWordings, ...]:
        """The questions that the accepted judge asks in other words."""
        return tuple(each for each in self.wordings if each.accepted)

    @property
    def changed(self) -> bool:
        """Whether a candidate was accepted."""
        return bool(self.accepted_edits)

    @property
    def learned(self) -> list[CriterionRecord]:
        """The questions that the accepted judge has learned."""
        return [each for each in self.questions if each.joined]

    @property
    def shown(self) -> ShownExamples | None:
        """The judged examples that the accepted judge is shown; None if there are none, or those of the first judge."""
        return None if self.best.examples == self.baseline.examples else self.best.examples

    @property
    def not_shown(self) -> list[ShowingRecord]:
        """The ways of showing examples that did not reach the acceptance test."""
        at_gate = {each.shows for each in (*self.accepted_edits, *self.rejected_edits)}
        return [each for each in self.examples if not each.accepted and each.name not in at_gate]

    @property
    def not_learned(self) -> list[CriterionRecord]:
        """The questions that were proposed and did not join."""
        return [each for each in self.questions if not each.joined]

    @property
    def is_judge(self) -> bool:
        """Whether the run improved a judge, and not a generator."""
        return self.mode != "tune"

    @property
    def thing(self) -> str:
        """The result for the user: ``judge`` if questions or examples are new or were tried, else ``prompt``."""
        if self.changed:
            return "judge" if self.learned or self.best.checklist or self.best.examples else "prompt"
        unread = self.finish_reason == "max_iterations" and self.why_no_questions is not None and not self.lessons
        tried = self.questions or unread or self.finish_reason in ("no_evidence", "examples_tried")
        return "judge" if tried or self.best.examples else "prompt"

    @property
    def same_prompt(self) -> bool:
        """Whether the accepted version and the first version have the same prompt."""
        return self.baseline.prompt == self.best.prompt

    def questions_of(self, tried: TriedRecord) -> list[CriterionRecord]:
        """Return the questions that a candidate brought to the acceptance test; none if it has edits or examples."""
        if tried.edits or tried.shows:
            return []
        return [each for each in self.questions if each.was_tried and each.iteration == tried.iteration]

    def name_of(self, tried: TriedRecord) -> str:
        """Name a candidate by its lessons, its examples or its questions."""
        asked = ", ".join(each.id for each in self.questions_of(tried))
        return ", ".join(tried.lessons) or tried.shows or (f"questions {asked}" if asked else "a changed checklist")

    @property
    def why_unchanged(self) -> str:
        """Reason why no candidate was accepted; without a full stop."""
        tried, failed, questions = len(self.rejected_edits), self.failed_trials, len(self.questions)
        reasons = []
        if tried:
            reasons.append(
                f"{count(tried, 'candidate')} {'was' if tried == 1 else 'were'} tried on validation and none passed"
            )
        went = sum(question.was_tried for question in self.questions)
        if questions and not went:
            proposed = f"{count(questions, 'question')} {'was' if questions == 1 else 'were'} proposed"
            reasons.append(f"{proposed} and none withstood the development examples")
        elif went and not tried:
            reasons.append(f"the run ended before the acceptance test could decide on {count(went, 'question')}")
        if failed and not tried:
            lessons = (
                f"{count(failed, 'lesson')} failed {'its' if failed == 1 else 'their'} trial on development examples"
            )
            reasons.append(f"{lessons}, so none came to validation")
        if reasons:
            return "; ".join(reasons)
        if self.examples:
            return "; ".join(f"{showing.name}: {showing.reason}" for showing in self.examples)
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
        """The pass-fail figures of the first and, if another was accepted, the best version, with their split.

        The split is test, else validation. None if no split has these figures for each version.
        """
        sides = {"at the start": self.baseline, **({"accepted": self.best} if self.changed else {})}
        for split in ("test", "validation"):
            rows = [
                PassFailSide(name, side.threshold, row)
                for name, side in sides.items()
                if side.threshold and (row := getattr(side, split)) and row.accuracy
            ]
            if len(rows) == len(sides):
                return split, rows
        return None

    @property
    def why_it_ended(self) -> str:
        """The reason in words that continue "It ended because …", with a note if missing verdicts might change it."""
        said = FINISH_SENTENCES.get(self.finish_reason, self.finish_reason)
        if self.finish_reason not in ("no_disagreements", "no_evidence", "no_new_evidence") or self.coverage >= 1:
            return said
        return f"{said}; {missing_share(self.coverage)} of all verdicts are missing (failed calls, checks or answers)"

    @property
    def whose(self) -> str:
        """Source of the scores that the judge's scores were correlated with, in words."""
        return "people" if self.reference == "human" else "the source"

    @property
    def failed_trials(self) -> int:
        """Lessons that failed their trial."""
        return sum("failed its trial" in (lesson.reason or "") for lesson in self.lessons)

    @property
    def price_said(self) -> str:
        """Money, in words for people. If some calls have no price: the known part and the number of these calls."""
        return price_said(vars(self))

    @property
    def spending(self) -> str:
        """Calls, tokens and money, in words for people."""
        return spending_of(vars(self))
