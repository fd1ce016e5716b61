"""The subject of a run: a judge or generator whose prompt is tried on examples; and the records of these tries."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, Protocol

import numpy as np

from ..agents.generator import Generated
from ..evaluation.calibration import Calibration
from ..evaluation.kept_judge import QuestionOrigin
from ..evaluation.scoring import ExampleScore, score_examples
from ..memory.records import CriterionRecord, PrunedRecord, QuestionWordings, TriedRecord
from ..memory.result_file import FinishReason
from ..models.writing import PromptSettings, version_of
from ..prompts.checklist import YES_IS_GOOD, Checklist, Polar, Question
from ..prompts.examples import Example
from ..prompts.lessons import Edit
from ..prompts.prompt import Prompt
from ..prompts.verdicts import Side, Verdict
from ..stats.resampling import average_ranks

Pair = tuple[str, str]
"""Example id and question id."""


def by_pair(verdicts: Iterable[Verdict]) -> dict[Pair, Verdict]:
    """Return the first replicate's verdicts, by example and question."""
    return {(each.example, each.question): each for each in verdicts if each.replicate == 0}


@dataclass(frozen=True)
class Draft:
    """A prompt and the questions that go with it."""

    prompt: Prompt
    checklist: Checklist | None = None
    """The questions; None where every example has its own questions."""
    calibration: Calibration | None = None
    """Changes the verdicts before they are scored. It is fitted for this prompt and these questions."""
    origins: Mapping[str, QuestionOrigin] = field(default_factory=dict)
    """Origins of the questions that a run found, by id, without the questions of the start."""
    mode: Literal["each", "batched"] | None = None
    """How several questions are put to the judge, if the run found it out; None: as in the settings."""
    writing: PromptSettings | None = None
    """Settings that a generator writes with; None: the settings of the run."""

    @property
    def hash(self) -> str:
        """Identity of a generator's version: the hash of its prompt and its writing settings."""
        return version_of(self.prompt.hash, self.writing)

    def scores(self, examples: Sequence[Example], verdicts: Iterable[Verdict], *, soft: bool) -> Sequence[ExampleScore]:
        """Return the scores of examples from verdicts on all questions."""
        read = verdicts if self.calibration is None else self.calibration.apply(verdicts)
        return score_examples(examples, self.questions, read, soft=soft)

    def scores_without(
        self, left_out: Collection[str], examples: Sequence[Example], verdicts: Iterable[Verdict], *, soft: bool
    ) -> Sequence[ExampleScore]:
        """Return the scores from the same verdicts without those on some criteria; the others are calibrated as before.
        On a dimension without any criterion left, every output scores .5."""
        questions = tuple(each for each in self.questions.questions if each.id not in left_out)
        read = verdicts if self.calibration is None else self.calibration.apply(verdicts)
        sections = {
            section: {name: weight for name, weight in weights.items() if name not in left_out}
            for section, weights in self.questions.section_weights.items()
        }
        checklist = self.questions.model_copy(update={"questions": questions, "section_weights": sections})
        mine = [each for each in read if each.question not in left_out]
        scores = score_examples(examples, checklist, mine, soft=soft)
        if unasked := dict.fromkeys({*self.questions.dimensions} - {*checklist.dimensions}, 0.5):
            scores = [
                replace(each, overall=each.overall if questions else 0.5, dimensions={**each.dimensions, **unasked})
                for each in scores
            ]
        return scores

    def own(self, verdicts: Iterable[Verdict]) -> list[Verdict]:
        """Return the verdicts that answer questions of this draft."""
        ids = {each.id for each in self.questions.questions}
        return [each for each in verdicts if each.question in ids]

    @property
    def questions(self) -> Checklist:
        """The checklist of a judge, which always has one."""
        assert self.checklist is not None, "a judge answers a checklist"
        return self.checklist


@dataclass(frozen=True)
class WritingCost:
    """Cost of writing some outputs, or of judging them."""

    outputs: int
    tokens: int
    cost_usd: float | None
    """US dollars; None where a price is not known."""
    seconds: float
    """Seconds for the ``timed`` outputs only."""
    timed: int
    """Number of outputs that were bought in this process."""

    @classmethod
    def of(cls, generated: Sequence[Generated]) -> WritingCost:
        """Sum up the outputs without an error."""
        written = [each for each in generated if each.error is None]
        costs = [each.cost_usd for each in written]
        timed = [each.seconds for each in written if each.seconds is not None]
        cost = None if None in costs else sum(each for each in costs if each is not None)
        return cls(len(written), sum(each.tokens for each in written), cost, sum(timed), len(timed))


@dataclass(frozen=True)
class Observation:
    """Outputs, verdicts and scores of a draft on some examples."""

    examples: Sequence[Example]
    """The examples with the outputs that were judged."""
    verdicts: Sequence[Verdict]
    scores: Sequence[ExampleScore]
    """Scores in the order of the examples."""
    checklist: Checklist | None = None
    own_checklists: Mapping[str, Checklist] = field(default_factory=dict)
    """Questions of examples that have their own, by example id."""
    spent: WritingCost | None = None
    """Cost of the outputs or verdicts; None where it is unknown."""
    cut_off: frozenset[str] = frozenset()
    """Ids of examples whose output was cut off at its token limit."""
    lessons_from: Side = "both"
    """The side, judge or checker, whose verdicts lessons are drawn from."""

    def question(self, example: str, question: str) -> Question:
        """Return the question that a verdict answers. Raises KeyError where there is none."""
        checklist = self.own_checklists.get(example, self.checklist)
        if checklist is None:
            raise KeyError(f"the example '{example}' has no questions")
        return checklist.question(question)

    @cached_property
    def counted(self) -> list[Verdict]:
        """The verdicts that scores are made of, without those on questions of weight 0."""
        weights: dict[str, Mapping[str, float]] = {}
        for example in self.examples:
            if (checklist := self.own_checklists.get(example.id, self.checklist)) is not None:
                weights[example.id] = checklist.weights(checklist.section_of(example.metadata))
        return [each for each in self.verdicts if weights.get(each.example, {}).get(each.question, 1.0) > 0]

    @cached_property
    def teaching(self) -> list[Verdict]:
        """The counted verdicts that lessons are drawn from."""
        if self.lessons_from == "both":
            return self.counted
        return [each for each in self.counted if each.is_computed == (self.lessons_from == "checker")]

    def polarity(self, example: str, question: str) -> Polar:
        """Return which answer to a question speaks for the output; yes where no checklist is known."""
        return self.question(example, question) if self.checklist or self.own_checklists else YES_IS_GOOD


class Subject(Protocol):
    """The judge or generator that is improved."""

    async def observe(
        self, draft: Draft, examples: Sequence[Example], on_done: Callable[[int, int], None] | None = None
    ) -> Observation:
        """Use the draft on examples. Answers in the store are not bought again. Raises BudgetExceededError where a cap
        was reached, and ModelError where an endpoint refuses every call or is down."""

    async def probe(self, draft: Draft, pairs: Sequence[Pair], seen: Observation) -> dict[Pair, Verdict]:
        """Return the draft's verdicts on some (example, question) pairs only, for the trial of a lesson. ``seen`` is
        the observation of the draft before it on the same examples."""


@dataclass(frozen=True)
class CrossedFold:
    """Scores of one fold by the judge before learning and by a judge learned from the other folds."""

    examples: Sequence[Example]
    before: Sequence[ExampleScore]
    """Scores by the judge before learning, in the order of the examples."""
    after: Sequence[ExampleScore]
    """Scores by the learned judge."""
    lean: Sequence[ExampleScore]
    """Scores by the learned judge without idle questions of the start; the same as ``after`` if none is idle."""


@dataclass(frozen=True)
class Crossed:
    """Test of a way of learning: every fold is scored by a judge that was learned from other folds only."""

    folds: tuple[CrossedFold, ...]

    @property
    def examples(self) -> list[Example]:
        """The examples of all folds."""
        return [example for fold in self.folds for example in fold.examples]

    @property
    def before(self) -> list[ExampleScore]:
        """Scores by the judge before learning."""
        return [score for fold in self.folds for score in fold.before]

    @property
    def after(self) -> list[ExampleScore]:
        """Scores by the learned judges."""
        return [score for fold in self.folds for score in fold.after]

    def made_lean(self) -> Crossed:
        """Return folds that compare the learned judges with and without idle questions of the start."""
        return Crossed(tuple(replace(fold, before=fold.after, after=fold.lean) for fold in self.folds))

    def ranked(self) -> Crossed:
        """Replace every score by its rank in its fold, in (0, 1]. The judges of two folds have different scales."""
        return Crossed(
            tuple(replace(fold, before=ranked(fold.before), after=ranked(fold.after)) for fold in self.folds)
        )


def ranked(scores: Sequence[ExampleScore]) -> list[ExampleScore]:
    """Replace every score by the share of scores that are no higher (ties: mean rank), overall and by dimension."""
    names = dict.fromkeys(name for each in scores for name in each.dimensions)
    overall = _ranks([each.overall for each in scores])
    columns = {name: _ranks([each.dimensions.get(name) for each in scores]) for name in names}
    return [
        ExampleScore(each.example, overall[place], {name: columns[name][place] for name in each.dimensions})
        for place, each in enumerate(scores)
    ]


def _ranks(values: Sequence[float | None]) -> list[float | None]:
    known = [place for place, value in enumerate(values) if value is not None]
    ranks: list[float | None] = [None] * len(values)
    for place, rank in zip(known, average_ranks(np.array([values[each] for each in known])), strict=True):
        ranks[place] = float(rank) / len(known)
    return ranks


@dataclass(frozen=True)
class Version:
    """A draft with the edits that led to it and its scores on validation."""

    number: int
    draft: Draft
    scores: Sequence[ExampleScore]
    edits: tuple[Edit, ...] = ()
    parent: int | None = None
    verdicts: Sequence[Verdict] = ()
    """Verdicts on the examples of the scores."""
    outputs: Sequence[Example] = ()
    """The examples with the outputs that were judged; empty where a judge was asked some questions at a time."""
    crossed: Crossed | None = None
    """The cross-validated scores that decided, for a draft that also learned from validation, and for edits of it."""

    @property
    def prompt(self) -> Prompt:
        """The prompt of the draft."""
        return self.draft.prompt


@dataclass(frozen=True)
class TrialResult:
    """Effect of a lesson on its own disagreements, and on controls."""

    passed: bool
    reason: str
    turned: int
    """Disagreements that moved towards the reference, or whose answer turned."""
    evidence: int
    """Disagreements that were tried and answered."""
    harmed: int
    """Controls that moved away from the reference, or whose answer turned away."""
    controls: int
    """Controls that were tried and answered."""
    evidence_shift: float | None = None
    """Mean change of the disagreements' log-odds towards the reference; None where none was answered."""
    control_shift: float | None = None
    """Mean change of the controls' log-odds; below 0: away from the reference."""

    @property
    def selectivity(self) -> float:
        """Share of the disagreements that turned, minus the share of the controls that were harmed; in [-1, 1]."""
        return self.turned / max(self.evidence, 1) - self.harmed / max(self.controls, 1)


@dataclass
class Outcome:
    """Outcome of the loop, before the test is looked at."""

    baseline: Version
    best: Version
    finish_reason: FinishReason
    iterations: int
    tried: list[TriedRecord] = field(default_factory=list)
    pruned: list[PrunedRecord] = field(default_factory=list)
    wordings: list[QuestionWordings] = field(default_factory=list)
    """Wordings tried for each question, if questions were worded anew."""
    questions: list[CriterionRecord] = field(default_factory=list)
    """Every question that was proposed, with its fate."""
    seen: dict[int, Observation] = field(default_factory=dict)
    """Observations of versions on the development examples, by version number."""
