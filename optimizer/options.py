"""Settings: one name each in the configuration file, on the command line and in Python."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, Field, field_validator, model_validator

from ..evaluation.options import ASKING, LEAST_COVERAGE, JudgeOptions, ScoreOptions, Where, WritingOptions
from ..evaluation.own_judge import OwnWords
from ..models.writing import Vary
from ..prompts.verdicts import Side
from ..settings import FileName, Heading, Idle, ModelName, where, without

_LOOP = ("trial", "prune", "max_notes", "max_lessons", "max_prompt_chars", "patience")
_EDITS = ("notes", "deduplicator", "updater", *_LOOP)
_NO_EDIT = "the prompt is not edited, so nobody draws lessons (update auto, edits or rewrite)"


class LoopOptions(JudgeOptions, Where):
    """Settings of the improvement loop, whatever is improved."""

    min_coverage: Annotated[float, Heading.DATA.at(9)] = Field(
        LEAST_COVERAGE,
        ge=0,
        le=1,
        description="Smallest share of verdicts that must be there: on less nothing is accepted, and the exit code is "
        "4.",
    )
    note_taker: Annotated[ModelName, Heading.ROLES] = Field(
        None, description="Model that draws lessons from disagreements."
    )
    deduplicator: Annotated[ModelName, Heading.ROLES] = Field(
        None, description="Model that keeps the lessons free of repeats."
    )
    updater: Annotated[ModelName, Heading.ROLES] = Field(None, description="Model that turns lessons into edits.")
    split: Annotated[tuple[float, float, float], Heading.DATA.at(8)] = Field(
        (0.3, 0.3, 0.4), description="Shares of development, validation and test examples."
    )
    max_iterations: Annotated[int, Heading.ENDS.at(-2)] = Field(5, ge=1, description="Iterations at most.")
    max_lessons: Annotated[int, Heading.ENDS] = Field(
        10, ge=1, description="Lessons that may be written into the prompt at most."
    )
    max_notes: Annotated[int, Heading.LESSONS] = Field(
        8, ge=1, description="Disagreements read by the note-taker in one iteration."
    )
    max_prompt_chars: Annotated[int | None, Heading.ENDS] = Field(
        None, ge=1, description="Longest prompt; default: twice the starting prompt and 1,500 more."
    )
    notes: Annotated[Literal["each", "batched"], Heading.LESSONS] = Field(
        "each", description="One note a disagreement; with --paper, one call for several examples."
    )
    update: Annotated[Literal["auto", "edits", "rewrite", "questions", "examples"], Heading.CHANGED] = Field(
        "auto",
        description="What is changed. auto: whatever the mode knows; edits: the prompt, one edit a lesson; rewrite: "
        "the prompt, all lessons at once; questions: the checklist alone; examples: judged ones that the judge is "
        "shown.",
    )
    max_questions: Annotated[int, Heading.CHANGED.at(3)] = Field(
        12, ge=1, description="Questions that may join the checklist in one iteration at most."
    )
    trial: Annotated[bool, Heading.ACCEPTED.at(1)] = Field(
        True, description="Try every lesson on its own evidence and on controls first."
    )
    racing: Annotated[bool, Heading.ACCEPTED.at(1)] = Field(
        True,
        description="Judge a candidate in steps, its lessons' own questions first; drop it once it is clearly worse, "
        "or late without a gain.",
    )
    prune: Annotated[bool, Heading.ACCEPTED.at(1)] = Field(
        True, description="At the end take out edits without which validation is no worse."
    )
    alpha: Annotated[float, Heading.ACCEPTED] = Field(
        0.1, gt=0, lt=1, description="Level of the paired test that a new version must pass on validation."
    )
    max_bias: Annotated[float, Heading.ACCEPTED] = Field(
        0.15,
        gt=0,
        description="How much the bias (mean score less the wanted mean) may grow without better ranking; a "
        "generator: how far a pass rate may fall.",
    )
    patience: Annotated[int, Heading.ENDS.at(-1)] = Field(
        2, ge=1, description="Iterations without an accepted edit before the run ends."
    )
    paper: Annotated[bool, Heading.ACCEPTED.at(2)] = Field(
        False,
        description="The papers' loop, for comparison: Algorithm 1 as in App. B, without trial, test or pruning.",
    )
    resamples: Annotated[int, Heading.SCORES.at(9)] = Field(
        2000, ge=100, description="Bootstrap resamples of tests and intervals."
    )
    embedder: Annotated[str | None, Heading.ROLES.at(1)] = Field(
        None, description="Embedding model of the lesson memory."
    )
    memory: Annotated[FileName, Heading.LESSONS] = Field(
        None, description="Directory of a lesson memory: what it holds is tried, and what is learned is added to it."
    )

    idle: ClassVar[tuple[Idle, ...]] = (
        Idle(
            ("alpha", "max_bias", "patience"),
            where(paper=True),
            "the papers' loop goes on until the held-out figure falls, without a test",
        ),
        Idle(
            ("trial", "racing", "prune", "max_notes"),
            where(paper=True),
            "the papers' loop reads every disagreement, writes down free lessons and tries none of them",
        ),
        Idle(("memory",), where(paper=True), "the papers' loop forgets its lessons with every iteration"),
    )

    as_in_the_papers: ClassVar[dict[str, object]] = {"notes": "batched", "update": "rewrite"}
    """Values that ``paper`` sets unless they are given."""

    @model_validator(mode="before")
    @classmethod
    def _as_in_the_papers(cls, values: Any) -> Any:
        if not isinstance(values, dict) or not values.get("paper"):
            return values
        if values.get("update", "rewrite") not in ("edits", "rewrite"):
            raise ValueError("update: the papers' loop changes the prompt: rewrite (App. B) or edits (Algorithm 1)")
        return cls.as_in_the_papers | values

    @model_validator(mode="after")
    def _shares_add_up(self) -> LoopOptions:
        if min(self.split) <= 0 or abs(sum(self.split) - 1) > 1e-6:
            raise ValueError("split: three shares above 0 that add up to 1 are needed, e.g. 0.3 0.3 0.4")
        if self.notes == "batched" and not self.paper:
            raise ValueError("notes: only the papers' loop (paper) reads several examples in one call; take each")
        return self

    @property
    def edits_prompt(self) -> bool:
        """Whether the prompt is edited, so that there are edits to try and to take out again."""
        return self.update in ("auto", "edits", "rewrite")


CAPPED = {"call_budget": "calls", "token_budget": "tokens", "cost_budget": "cost_usd"}
"""Caps, with the figure of a result that counts against each."""


def left_of_caps(options: LoopOptions | WeighOptions, spent: Mapping[str, float | None]) -> dict[str, Any]:
    """Return the caps that are set, less the calls, tokens and money that were spent: a cap holds for all parts."""
    caps = {name: cap for name in CAPPED if (cap := getattr(options, name)) is not None}
    return {name: max(cap - (spent[CAPPED[name]] or 0), 0) for name, cap in caps.items()}


class CertificateOptions(BaseModel):
    """Settings of the certificate of a migration."""

    max_loss: Annotated[float, Heading.ACCEPTED.at(3)] = Field(
        0.05,
        gt=0,
        lt=1,
        description="Largest loss beside the old model, on a scale from 0 to 1, with which the certificate says adopt.",
    )
    certificate_level: Annotated[float, Heading.ACCEPTED.at(3)] = Field(
        0.05, gt=0, lt=0.5, description="Chance of error of the certificate, for each target; one-sided."
    )


class MigrateOptions(OwnWords, LoopOptions, CertificateOptions):
    """Settings of ``migrate``."""

    update: Annotated[Literal["auto", "edits", "rewrite", "questions"], Heading.CHANGED] = Field(
        "auto",
        description="What is changed. auto: all of these; edits: the prompt, one edit a lesson; rewrite: the prompt, "
        "all lessons at once; questions: the wording of the questions alone.",
    )
    writer: Annotated[ModelName, Heading.ROLES] = Field(
        None, description="Model that words the questions anew for the target."
    )
    roles: Annotated[Literal["cross", "self"], Heading.ROLES.at(-1)] = Field(
        "cross", description="Who takes the roles that have no model of their own: the source, or the target."
    )
    reference: Annotated[Literal["auto", "human", "source"], Heading.ACCEPTED.at(-1)] = Field(
        "auto", description="What held-out scores are correlated with; auto: human scores where there are some."
    )
    margin: Annotated[float, Heading.LESSONS.at(-1)] = Field(
        0.3, gt=0, le=1, description="Difference in probability from which judges disagree although both say the same."
    )
    differing: Annotated[float, Heading.ENDS] = Field(
        0.0,
        ge=0,
        lt=1,
        description="Stop when on every question at most this share of the development examples has another answer.",
    )
    judge_scores: Annotated[str | None, Heading.DATA.at(2)] = Field(
        None,
        description="With --source recorded: column of DATA with what the old judge said. A number is its score; an "
        "object (question id: yes, no or a probability) is its verdicts.",
    )
    judge_scale: Annotated[tuple[float, float] | None, Heading.DATA.at(2)] = Field(
        None,
        description="With --source recorded: worst and best score of the old judge; default: 0 1, or the scale of "
        "--reads.",
    )
    tolerance: Annotated[float, Heading.ENDS] = Field(
        0.02,
        ge=0,
        description="With --paper: stop when mean scores of target and source differ by less on every dimension "
        "(criterion).",
    )

    as_in_the_papers: ClassVar[dict[str, object]] = {
        **LoopOptions.as_in_the_papers,
        "mode": "each",
        "scores": "hard",
        "explain": "always",
    }

    idle: ClassVar[tuple[Idle, ...]] = (
        Idle((*_EDITS, "note_taker", "margin", "differing", "tolerance"), where(update="questions"), _NO_EDIT),
        Idle(
            ("tolerance",),
            where(paper=False),
            "means may agree where no verdict does; answers are compared (differing)",
        ),
        Idle(("differing",), where(paper=True), "the papers' loop compares mean scores (tolerance)"),
        Idle(
            ("margin",), where(scores="hard"), "scores come from the answers, whatever their probability (scores hard)"
        ),
        Idle(("writer",), where(update=("edits", "rewrite")), "no question is worded anew (update auto or questions)"),
        Idle(("max_questions",), lambda _: True, "questions are worded anew, and none is added"),
        Idle(
            ("judge_scores", "judge_scale"),
            lambda given: given.get("source") not in (None, "recorded"),
            "the source is a model, which is asked (--source recorded)",
        ),
        Idle(("judge_scale",), where(judge_scores=None), "no scores of an old judge are read (--judge-scores)"),
    )

    @field_validator("judge_scale")
    @classmethod
    def _two_ends(cls, scale: tuple[float, float] | None) -> tuple[float, float] | None:
        if scale is not None and scale[0] == scale[1]:
            raise ValueError("the worst and the best score must differ")
        return scale

    @property
    def words_questions(self) -> bool:
        """Whether the questions are worded anew, before anything else."""
        return self.update in ("auto", "questions")


class AlignOptions(OwnWords, LoopOptions):
    """Settings of ``align``."""

    optimise_for: Annotated[Literal["spearman", "kendall", "auc", "kappa"], Heading.ACCEPTED.at(-1)] = Field(
        "spearman",
        description="What a new version must be better at on validation; auc (area under the curve) and kappa (at each "
        "version's best threshold) where labels are pass or fail.",
    )

    combine: Annotated[Literal["auto", "mean", "majority", "model"], Heading.DATA.at(5)] = Field(
        "auto",
        description="How labels of several raters become one, on development and validation (test keeps the mean); "
        "model: of the raters' errors; auto: what best predicts a rater left out.",
    )
    disagreement_threshold: Annotated[float, Heading.LESSONS.at(-1)] = Field(
        0.3, gt=0, lt=1, description="Distance from the human score, in [0, 1], from which the judge disagrees."
    )
    writer: Annotated[ModelName, Heading.ROLES] = Field(None, description="Model that writes the questions anew.")
    regenerate_questions: Annotated[bool, Heading.CHANGED.at(4)] = Field(
        False,
        description="Write the questions anew from every changed prompt; the acceptance test decides on the two "
        "together, and on the prompt alone where it refuses them. --dry-run takes the questions to be as many as "
        "before.",
    )
    learn_from: Annotated[Literal["both", "development"], Heading.CHANGED.at(2)] = Field(
        "both",
        description="Examples that questions are learned from: development and validation, each tested on the other; "
        "or development alone, tested on validation, for a third fewer calls.",
    )
    keep_questions: Annotated[bool, Heading.CHANGED.at(3)] = Field(
        False,
        description="Keep every question of the checklist as it is: none is left out or turned round for what it says "
        "of the examples.",
    )
    measures: Annotated[Literal["relations", "all", "none"], Heading.CHOSEN] = Field(
        "relations",
        description="Measures that may join the judge beside questions, without a call: how the output relates to its "
        "input, context and reference; all: its form, too; none.",
    )
    measure: Annotated[tuple[str, ...], Heading.CHOSEN] = Field(
        (),
        description="A further measure that may join, as nearest_sentence(input), words, package.module:function or "
        "file.py:function; may be repeated.",
    )
    probed_outputs: Annotated[int, Heading.CHANGED.at(3)] = Field(
        6,
        ge=0,
        description="Development outputs that a learned judge is asked of once more, padded, flattered, stuffed with its "
        "questions' words and with their input repeated: what they gain is told; 0: none.",
    )
    shown_examples: Annotated[int, Heading.CHANGED.at(4)] = Field(
        4, ge=2, le=20, description="Judged examples that the judge is shown with one output at most."
    )
    calibrate: Annotated[bool, Heading.CHANGED.at(1)] = Field(
        False, description="Change no prompt: only fit thresholds and Platt scaling, and say what they are worth."
    )

    as_in_the_papers: ClassVar[dict[str, object]] = {
        **LoopOptions.as_in_the_papers,
        "mode": "each",
        "combine": "mean",
        "scores": "hard",
        "explain": "always",
        "regenerate_questions": True,
    }

    idle: ClassVar[tuple[Idle, ...]] = (
        Idle(
            (
                *("paper", "update", "note_taker", *_EDITS, "max_questions", "learn_from", "regenerate_questions"),
                *("keep_questions", "measures", "measure", "probed_outputs", "shown_examples"),
            ),
            where(calibrate=True),
            "nothing is improved, only calibrated (calibrate)",
        ),
        Idle((*_EDITS, "regenerate_questions"), where(update=("questions", "examples")), _NO_EDIT),
        Idle(
            ("max_questions", "learn_from", "keep_questions", "measures", "measure", "probed_outputs"),
            where(update=("edits", "rewrite", "examples")),
            "no question is learned (update auto or questions)",
        ),
        Idle(
            ("shown_examples",),
            where(update=("edits", "rewrite", "questions")),
            "the judge is shown no examples (update auto or examples)",
        ),
        Idle(("note_taker",), where(update="examples"), _NO_EDIT),
        Idle(
            ("writer",),
            where(regenerate_questions=False, paper=False),
            "no question is written anew (regenerate_questions)",
        ),
    )


class TuneOptions(LoopOptions, WritingOptions):
    """Settings of ``tune``."""

    update: Annotated[Literal["auto", "edits", "rewrite"], Heading.CHANGED] = Field(
        "auto",
        description="How the prompt is changed. auto, edits: one edit a lesson; rewrite: all lessons at once.",
    )
    writer: Annotated[ModelName, Heading.ROLES] = Field(
        None, description="Model that writes each example's own questions."
    )
    own_questions: Annotated[bool, Heading.CHANGED.at(1)] = Field(
        False, description="Have questions written for each example, from its input."
    )
    score_as: Annotated[Literal["all", "mean"], Heading.CHANGED.at(1)] = Field(
        "mean", description="An output's score: 1 only if it passes everything, or the share that it passes."
    )
    lessons_from: Annotated[Side, Heading.LESSONS.at(-1)] = Field(
        "both",
        description="Whose failures teach: the judge's, those that code finds (a checker, checks, measures), or both.",
    )
    decide_by: Annotated[Side, Heading.ACCEPTED.at(-1)] = Field(
        "both", description="Whose verdicts make the score that a new version must raise."
    )
    plain_first: Annotated[bool, Heading.CHANGED.at(1)] = Field(
        True, description="Try what fails, stated in its own words as one line each, before any lesson is drawn."
    )
    additions: Annotated[bool, Heading.CHANGED.at(1)] = Field(
        True,
        description="Try settings (a JSON schema, a grammar, room) and texts after the input (failed rules, the form to "
        "be filled in, an example) before the rounds.",
    )
    vary: Annotated[Vary, Heading.CHANGED.at(1)] = Field(
        default_factory=dict,
        description="Try other values of a setting, e.g. thinking=low,off, temperature=0.5 or system_as=user.",
    )

    idle: ClassVar[tuple[Idle, ...]] = (
        Idle(("plain_first",), where(paper=True), "the papers' loop draws lessons from all that fails"),
        Idle(("additions", "vary"), where(paper=True), "the papers' loop edits the prompt alone"),
        Idle(("vary",), where(additions=False), "nothing is tried beside edits (additions)"),
        Idle(("max_questions",), lambda _: True, "the generator's prompt is improved, and no checklist"),
        Idle(("human_scale",), lambda _: True, "no human score is compared with anything"),
        Idle(
            ("mode", "explain", "p_yes", "samples", "temperature", "repeat", "scores", "score_scale"),
            without("judge"),
            "no judge is asked (--judge)",
        ),
        Idle(("lessons_from", "decide_by"), without("judge"), "no judge is asked (--judge)"),
        Idle(("weights",), without("checklist"), "there is no checklist whose questions it could weigh (--checklist)"),
        Idle(("writer",), where(own_questions=False), "no question is written for an example (own_questions)"),
    )


class WriterMigrationOptions(TuneOptions, CertificateOptions):
    """Settings of ``migrate`` for a prompt that writes; each target is tuned with them."""

    max_requirements: Annotated[int, Heading.CHANGED.at(1)] = Field(
        25, ge=1, description="Clauses of the prompt that questions are written for at most."
    )

    idle: ClassVar[tuple[Idle, ...]] = (
        Idle(
            ("own_questions", "writer", "weights"),
            lambda _: True,
            "the requirements of a migration are the same for all outputs",
        ),
        Idle(("lessons_from", "decide_by"), lambda _: True, "every requirement of a migration teaches and decides"),
        Idle(("paper",), lambda _: True, "the papers move no prompt that writes"),
        Idle(("max_requirements",), without("judge"), "no question is written, as nobody answers it (--judge)"),
    )


UNUSED = ("weights", "scale")
"""Settings of ``evaluate`` that learning weights has no use for."""


class WeighOptions(ScoreOptions):
    """Settings of ``weigh``: how weights are learned, and how outputs without scores are judged."""

    method: str = Field("auto", description="Learner; auto chooses by cross-validation.")
    level: Literal["global", "dataset", "section"] = Field(
        "global", description="One set of weights, or one for each data set or section."
    )
    pooling: Annotated[Literal["partial", "none"], Heading.WEIGHED] = Field(
        "partial", description="Whether small data sets and sections lean on the whole."
    )
    rating_dimension: Annotated[str | None, Heading.DATA.at(6)] = Field(
        None, description="Human dimension (criterion) that is the rating; default: the only one, or overall."
    )
    pair_share: Annotated[float, Heading.WEIGHED] = Field(
        0.5, ge=0, le=1, description="Share of the pairs in what is maximised, where ratings are given too."
    )
    pairwise: bool = Field(False, description="Show the judge both outputs of a pair: which does better on each test?")
    resamples: Annotated[int, Heading.SCORES.at(9)] = Field(
        200, ge=1, description="Bootstrap resamples of the weights; unless given, fewer or none where they take long."
    )
    swap: Annotated[bool, Heading.WEIGHED] = Field(
        False, description="Show them in both orders, take the mean, and report the position bias."
    )

    idle: ClassVar[tuple[Idle, ...]] = (
        Idle(UNUSED, lambda _: True, "learning weights has no use for it"),
        Idle(("pooling",), where(level="global"), "one set of weights leans on nothing (level dataset or section)"),
        Idle(("rating_dimension", "human_scale"), without("ratings"), "there are no ratings (--ratings)"),
        Idle(("pair_share",), without("ratings"), "there are no ratings beside the pairs (--ratings)"),
        Idle(("pair_share",), without("data"), "there are no pairs beside the ratings"),
        Idle(("scores", "score_scale"), where(pairwise=True), "which output does better is no score (pairwise)"),
        Idle(
            ("mode", *ASKING, "scores", "score_scale", "calibration", "min_coverage"),
            without("model"),
            "the scores are there, and no judge is asked (--model)",
        ),
    )

    @property
    def for_judging(self) -> dict[str, Any]:
        """The given settings that :func:`~askance.evaluation.evaluate.evaluate` takes."""
        names = set(ScoreOptions.model_fields).difference(UNUSED, ("resamples", "human_scale"))
        return {name: getattr(self, name) for name in names & self.model_fields_set}

    @property
    def asked_resamples(self) -> int | None:
        """The number of resamples, where it was given; learners have defaults of their own."""
        return self.resamples if "resamples" in self.model_fields_set else None
