"""Settings of judging and measuring: one name each in the configuration file, on the command line and in Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, Field, field_validator, model_validator

from ..agents.judging import Judging
from ..memory.verdict_store import Place, SharedStore, VerdictStore, open_store, place_of, store_path
from ..models.programs import stands_for_program
from ..models.session import ModelOptions
from ..prompts.checklist import AnswerPair
from ..prompts.formats.binding import Variables
from ..prompts.human_feedback import LabelScale, LabelWords
from ..prompts.text_files import path_of
from ..settings import FILE, FileName, Heading, Idle, ModelName, beside, where, without
from .own_judge import OwnBeside, OwnForm, OwnWords


class Where(BaseModel):
    """Where answers are kept. No result depends on it, so no record of the settings holds it."""

    store: Annotated[Place | None, FILE, Heading.BUDGET.at(1)] = Field(
        None,
        exclude=True,
        description="Where answers are kept: a file, or postgresql://NAME@HOST/DATABASE; default: ASKANCE_STORE, else "
        "verdicts.db in the user's cache directory.",
    )
    no_cache: Annotated[bool, Heading.BUDGET.at(1)] = Field(
        False, exclude=True, description="Reuse no answer of an earlier command, and keep none for a later one."
    )

    idle: ClassVar[tuple[Idle, ...]] = (
        Idle(("store",), where(no_cache=True), "no store is used where no answer is kept (no_cache)"),
    )

    @field_validator("store", mode="before")
    @classmethod
    def _place(cls, given: Any) -> Any:
        if isinstance(given, (str, Path)):
            return place_of(given)
        return given if given is None or isinstance(given, Place) else path_of(given, "store")

    def open_store(self, *, to_estimate: bool = False, beside: Path | None = None) -> SharedStore:
        """Open the store, also with the answers of the store ``beside``; with ``to_estimate`` no file is made.

        Raises InputError if the file is no store or is from a newer askance, if the address is not valid, or if the
        database refuses. Raises AskanceError if the disk is full, the folder cannot be written, or the database is not
        there.
        """
        place = store_path(self.store)
        if to_estimate and not self.no_cache and isinstance(place, Path) and not place.exists():
            return VerdictStore(":memory:", beside, is_ours=True)
        return open_store(self.store, no_cache=self.no_cache, beside=beside)

    @property
    def shared(self) -> Place | None:
        """The store that all commands share; None if nothing is shared."""
        return None if self.no_cache else store_path(self.store)


class GatewayOptions(ModelOptions, Where):
    """How models are reached, what may be spent, and where answers are kept."""


LEAST_COVERAGE = 0.95
"""Default of the smallest share of verdicts that must be there."""


class JudgeOptions(ModelOptions):
    """How judges are asked and how their answers become scores."""

    mode: Annotated[Literal["auto", "each", "batched"], Heading.ASKED] = Field(
        "auto",
        description="One call a question, or one call an output; auto: one call an output where the model thinks (20 "
        "questions at most), in align also where the judge answers questions together as it answers them alone (never "
        "an embedded one, whose calls cost nothing).",
    )
    explain: Annotated[Literal["always", "needed", "never"], Heading.ASKED] = Field(
        "needed", description="Buy explanations with every verdict, where they are read, or never."
    )
    p_yes: Annotated[Literal["auto", "logprob", "stated", "sampled", "hard"], Heading.ASKED] = Field(
        "auto",
        description="Where the probability of yes comes from; stated: each answer comes with a number from 0 to 100; "
        "auto: log-probabilities, else of a model that thinks the number, else samples, else the answer itself.",
    )
    samples: Annotated[int, Heading.ASKED] = Field(
        1, ge=1, description="Answers per question where the probability is counted from samples."
    )
    temperature: Annotated[float, Heading.ASKED] = Field(
        0.0, ge=0, description="Temperature of the judges; samples are drawn at 1 where it is not given."
    )
    answer_words: Annotated[AnswerPair | None, Heading.ASKED] = Field(
        None,
        description="Words for yes and no that judges answer with, e.g. ja,nein; default: the checklist's answers, "
        "else yes and no, read in the language of the prompt too.",
    )
    repeat: Annotated[int, Heading.ASKED] = Field(1, ge=1, description="Replicates of every verdict.")
    scores: Annotated[Literal["soft", "hard", "expected"], Heading.SCORES] = Field(
        "soft",
        description="Score from probabilities of yes, from the yes/no answers, or the expected number on "
        "--score-scale.",
    )
    score_scale: Annotated[tuple[int, int], Heading.SCORES] = Field(
        (1, 5), description="Lowest and highest number that the judge gives, for --scores expected."
    )
    weights: Annotated[FileName, Heading.SCORES] = Field(
        None, description="Weights file of `askance weigh`; replaces the checklist's weights."
    )
    human_scale: Annotated[tuple[float, float] | None, Heading.DATA.at(3)] = Field(
        None,
        description="Worst and best human score, 5 1 where lower is better; default: the lowest and highest observed.",
    )
    labels: Annotated[LabelWords, Heading.DATA.at(2)] = Field(
        default_factory=dict, description="Further words that people's labels are in, e.g. good=fine,bad=poor."
    )
    label_scale: Annotated[LabelScale, Heading.DATA.at(4)] = Field(
        None, description="Words that people's labels are in, from worst to best, which count as 1, 2 and so on."
    )
    min_coverage: Annotated[float, Heading.DATA.at(9)] = Field(
        LEAST_COVERAGE,
        ge=0,
        le=1,
        description="Smallest share of verdicts that must be there; below it the exit code is 4, and all that came is "
        "written.",
    )
    field: Annotated[dict[str, str | tuple[str, ...]], Heading.DATA.at(1)] = Field(
        default_factory=dict,
        description="Rename a column: our_name=column; of human scores and comments several, one a rater: "
        "human.overall=anna,ben.",
    )
    limit: Annotated[int | None, Heading.DATA.at(7)] = Field(None, ge=1, description="Use only the first N examples.")
    variable: Annotated[Variables, Heading.DATA.at(8)] = Field(
        default_factory=dict,
        description="What a variable of a prompt stands for: variable=FIELD, e.g. question=input, or variable=COLUMN; may "
        "be given several times.",
    )

    idle: ClassVar[tuple[Idle, ...]] = (
        Idle(("p_yes", "samples"), where(scores="expected"), "expected scores are read from log-probabilities"),
        Idle(
            ("samples",),
            where(p_yes=("logprob", "stated", "hard")),
            "answers are sampled with p_yes auto or sampled alone",
        ),
        Idle(("answer_words",), where(scores="expected"), "expected scores are read from numbers"),
    )
    """Settings without use beside others."""

    @model_validator(mode="after")
    def _scale_ascends(self) -> JudgeOptions:
        if self.human_scale and self.human_scale[0] == self.human_scale[1]:
            raise ValueError("human_scale: the worst and the best score must differ")
        if self.p_yes == "sampled" and self.samples < 2:
            raise ValueError("p_yes sampled needs samples of 2 or more")
        if self.scores != "expected" and self.score_scale != (1, 5):
            raise ValueError("score_scale belongs to expected scores (scores: expected)")
        return self

    @property
    def soft(self) -> bool:
        """Whether scores come from p_yes (P(yes), or an expected score), not from the answers."""
        return self.scores != "hard"

    def asked_so(self, judging: Judging) -> Judging:
        """Return ``judging``, with the record's own form of replies if it has one (:class:`.own_judge.OwnWords`)."""
        return judging

    @property
    def judging(self) -> Judging:
        """The settings that an evaluator needs."""
        judging = Judging(
            mode=self.mode,
            explain=self.explain,
            p_yes=self.p_yes,
            samples=self.samples,
            temperature=self.temperature,
            sample_temperature=self.temperature or Judging.sample_temperature,
            repeat=self.repeat,
            seed=self.seed,
            answer_words=self.answer_words,
            score_scale=self.score_scale if self.scores == "expected" else None,
        )
        return self.asked_so(judging)


class ScoreOptions(JudgeOptions, Where):
    """Settings of ``evaluate``."""

    scale: Annotated[tuple[float, float], Heading.SCORES.at(3)] = Field(
        (0.0, 1.0), description="Interval that scores are mapped to."
    )
    calibration: Annotated[FileName, Heading.SCORES.at(2)] = Field(
        None, description="Calibration file of a run; applied to the verdicts of the judge that it was fitted for."
    )
    resamples: Annotated[int, Heading.SCORES.at(9)] = Field(
        2000, ge=100, description="Bootstrap resamples of the intervals."
    )

    @model_validator(mode="after")
    def _scale_has_two_ends(self) -> ScoreOptions:
        if self.scale[0] == self.scale[1]:
            raise ValueError("scale: its two ends must differ")
        return self


class WriterOptions(OwnForm, GatewayOptions):
    """Settings of ``questions``, also for reading an old judge's replies and people's scores beside them."""

    max_requirements: int = Field(12, ge=1, le=50, description="Requirements read from the task at most.")
    embedder: Annotated[str | None, Heading.ROLES.at(1)] = Field(
        None, description="Embedding model that finds repeated questions and clusters."
    )
    field: Annotated[dict[str, str | tuple[str, ...]], Heading.DATA.at(1)] = Field(
        default_factory=dict, description="Rename a column of --data: our_name=column."
    )
    judge_scores: Annotated[str | None, Heading.DATA.at(2)] = Field(
        None, description="Column of --data with the old judge's scores, which are then not bought."
    )
    human_scale: Annotated[tuple[float, float] | None, Heading.DATA.at(3)] = Field(
        None, description="Worst and best human score; default: the lowest and highest observed."
    )
    limit: Annotated[int | None, Heading.DATA.at(7)] = Field(None, ge=1, description="Use only the first N examples.")

    idle: ClassVar[tuple[Idle, ...]] = (
        Idle(
            (*OwnForm.model_fields, "field", "judge_scores", "human_scale", "limit"),
            without("data"),
            "there are no outputs to compare the checklist with its prompt on (--from PROMPT --data FILE)",
        ),
    )


def _written_by(*, a_program: bool) -> Callable[[Mapping[str, Any]], bool]:
    """Return a condition: the writer of the outputs is known, and is a program (or, without ``a_program``, a model)."""

    def holds(settings: Mapping[str, Any]) -> bool:
        writer = settings.get("generator")
        return writer is not None and stands_for_program(writer) == a_program

    return holds


class WritingOptions(BaseModel):
    """How outputs are written."""

    max_output_tokens: Annotated[int, Heading.WRITES] = Field(
        1024, ge=1, description="Longest output of the generator, in tokens."
    )
    generator_temperature: Annotated[float, Heading.WRITES] = Field(
        0.0, ge=0, description="Temperature of the generator."
    )
    generator_version: Annotated[str | None, Heading.WRITES] = Field(
        None,
        min_length=1,
        description="Version of a generator that is a program: another one is asked anew. Default: a hash of the "
        "function's file, or of the files that a command names.",
    )
    replay: Annotated[bool, Heading.WRITES] = Field(
        False,
        description="Give the generator the tools of each example (metadata.tools); a call gets the recorded result of "
        "the same call in the old output, or of the nearest one. No tool is run.",
    )

    idle: ClassVar[tuple[Idle, ...]] = (
        Idle(("generator_version",), _written_by(a_program=False), "the generator is a model, and no program"),
        Idle(
            ("max_output_tokens", "generator_temperature", "replay"),
            _written_by(a_program=True),
            "the generator is a program, which says how it writes itself",
        ),
    )


class GenerateOptions(GatewayOptions, WritingOptions):
    """Settings of ``generate``."""

    min_coverage: Annotated[float, Heading.DATA.at(9)] = Field(
        LEAST_COVERAGE, ge=0, le=1, description="Smallest share of the outputs that must be there."
    )
    field: Annotated[dict[str, str | tuple[str, ...]], Heading.DATA.at(1)] = Field(
        default_factory=dict, description="Rename a column: our_name=column."
    )
    variable: Annotated[Variables, Heading.DATA.at(8)] = Field(
        default_factory=dict,
        description="What a variable of the prompt stands for: variable=FIELD, e.g. question=input, or variable=COLUMN.",
    )
    limit: Annotated[int | None, Heading.DATA.at(7)] = Field(None, ge=1, description="Use only the first N examples.")


class PassOptions(ScoreOptions):
    """Threshold from which an output passes, and the least pass rate."""

    pass_threshold: Annotated[float | None, Heading.SCORES.at(4)] = Field(
        None,
        ge=0,
        le=1,
        description="Score (in [0, 1]) from which on an output passes; default: the judge's own, else 0.5 where "
        "people's labels are pass or fail.",
    )
    fail_under: Annotated[float | None, Heading.SCORES.at(6)] = Field(
        None,
        ge=0,
        le=1,
        description="Fail (exit code 1) where the pass rate is below this; without a pass threshold, the mean score.",
    )


class EvaluateOptions(OwnWords, PassOptions):
    """How a data set is judged, and when no further question is asked about an example."""

    stop_within: Annotated[float | None, Heading.SCORES.at(7)] = Field(
        None,
        ge=0,
        le=1,
        description="Stop asking about an example when its score is known to be within this (in [0, 1]) of what all "
        "questions would give.",
    )
    pass_mark: Annotated[float | None, Heading.SCORES.at(5)] = Field(
        None,
        ge=0,
        le=1,
        description="Stop asking about an example when it is settled whether its score (in [0, 1]) reaches this.",
    )
    by: Annotated[str | None, Heading.SCORES.at(8)] = Field(
        None, description="Give the figures of each value of this metadata field, too."
    )
    by_rater: Annotated[bool, Heading.SCORES.at(8)] = Field(
        False, description="Say whether the judge agrees with one rater more than with another, too."
    )
    own_questions: Annotated[bool, Heading.CHANGED.at(1)] = Field(
        False, description="Have questions written for each example, from its input."
    )
    writer: Annotated[ModelName, Heading.ROLES] = Field(
        None, description="Model that writes each example's own questions; default: the judge."
    )
    own_decay: Annotated[float, Heading.SCORES.at(1)] = Field(
        1.0,
        gt=0,
        le=1,
        description="Weight of each of an example's own questions, as a multiple of that of the one before (LMUnit: "
        "0.8).",
    )

    idle: ClassVar[tuple[Idle, ...]] = (
        Idle(
            ("writer", "own_decay"), where(own_questions=False), "no question is written for an example (own_questions)"
        ),
        Idle(
            ("weights", "calibration"),
            where(own_questions=True),
            "it is for the questions of a checklist, and each example has its own (own_questions)",
        ),
    )

    @classmethod
    def of(cls, settings: JudgeOptions) -> EvaluateOptions:
        """Return the settings of another command that ``evaluate`` has too."""
        shared = type(settings).model_fields.keys() & cls.model_fields.keys()
        return cls(**{name: getattr(settings, name) for name in shared})

    @property
    def adaptive(self) -> bool:
        """Whether questions may be left out."""
        return self.stop_within is not None or self.pass_mark is not None

    @model_validator(mode="after")
    def _one_by_one(self) -> EvaluateOptions:
        if self.adaptive:
            name = "stop_within" if self.stop_within is not None else "pass_mark"
            if self.own_questions:
                raise ValueError(f"{name}: an example's own questions are all asked; leave out own_questions, or that")
            if self.mode == "batched":
                raise ValueError(f"{name}: questions are then asked one after another (mode each)")
            if self.pass_threshold is not None:
                raise ValueError(
                    f"pass_threshold: with {name} a score is not exact; pass_mark {self.pass_threshold:g} is"
                )
            if self.stop_within is not None and self.pass_mark is not None:
                raise ValueError("stop_within: it may end before pass_mark is settled; leave one of them out")
            if self.calibration is not None:
                raise ValueError(f"{name}: a calibration moves scores after they were asked for; leave one of them out")
        return self


class RegressionOptions(OwnWords, PassOptions):
    """Settings of a check against a baseline."""

    dimension: str | None = Field(
        None, description="Compare this dimension's (criterion's) scores; default: the overall ones."
    )
    tolerance: float = Field(
        0.0, ge=0, le=1, description="A drop of the mean up to this, in [0, 1], is never called one."
    )
    min_coverage: float = Field(1.0, ge=0, le=1, description="Smallest share of the verdicts that must be there.")


def _lacks_judge(judge: str) -> Callable[[Mapping[str, Any]], bool]:
    """Return a condition: the judges are known, as names or in one text, and this one is not among them."""

    def holds(settings: Mapping[str, Any]) -> bool:
        named = settings.get("judges") or ()
        names = named.split(",") if isinstance(named, str) else named
        return bool(names) and judge not in [str(each).strip().replace("-", "_") for each in names or ()]

    return holds


class CompareOptions(OwnBeside, ScoreOptions):
    """Settings of ``compare``; those of ``evaluate`` hold for the judges that ask yes/no questions."""

    points: Annotated[int, Heading.COMPARED.at(3)] = Field(
        5,
        ge=2,
        le=10,
        description="Rating judges rate from 1 to this, where numbers are read from probabilities 0 to 9 for 10; agreement "
        "and kappas are counted on this scale.",
    )
    agreement_tolerance: Annotated[int | None, Heading.COMPARED.at(3)] = Field(
        None, ge=0, description="Points that scores may differ by and still agree; default: a fifth of the scale."
    )
    k: Annotated[int, Heading.COMPARED.at(1)] = Field(
        5, ge=1, description="Questions that random_k draws in all, in turn from each dimension."
    )
    embedder: Annotated[str | None, Heading.ROLES.at(1)] = Field(
        None, description="Embedding model by which auto_rubric tells questions apart."
    )
    panel_size: Annotated[int, Heading.COMPARED.at(2)] = Field(
        3, ge=2, description="Members of poll where no models are named with --panel."
    )
    panel_by: Annotated[Literal["seeds", "prompts"], Heading.COMPARED.at(2)] = Field(
        "seeds", description="What members of the same model differ in: the seed, or the wording of the prompt."
    )
    panel_vote: Annotated[Literal["majority", "mean"], Heading.COMPARED.at(2)] = Field(
        "majority", description="How a panel decides: the score most members give (mean of tied ones), or the mean."
    )
    em_dim: Annotated[bool, Heading.COMPARED.at(4)] = Field(
        False,
        description="Measure dimension drift: the share of aspects that a judge looks at again (needs --repeat 2; two "
        "calls an example for cot).",
    )
    cot_tokens: Annotated[int, Heading.COMPARED.at(4)] = Field(
        300, ge=20, description="Longest answer of cot, in tokens."
    )

    idle: ClassVar[tuple[Idle, ...]] = (
        Idle(("scale", "calibration"), lambda _: True, "judges are compared in [0, 1], as their answers are"),
        Idle(("k",), _lacks_judge("random_k"), "only the judge random_k draws questions"),
        Idle(("embedder",), _lacks_judge("auto_rubric"), "only the judge auto_rubric embeds questions"),
        Idle(("panel_size", "panel_by", "panel_vote"), _lacks_judge("poll"), "only the judge poll has a panel"),
        Idle(tuple(OwnBeside.model_fields), _lacks_judge("own"), "only the judge own is asked in your own words"),
        Idle(("cot_tokens",), _lacks_judge("cot"), "only the judge cot thinks aloud"),
    )

    @model_validator(mode="after")
    def _drift_needs_a_second_time(self) -> CompareOptions:
        if self.em_dim and self.repeat < 2:
            raise ValueError("em_dim: whether a judge looks at the same again takes a second judging (repeat 2)")
        return self

    @property
    def tolerance(self) -> int:
        """Points of the scale that count as agreement: 1 on 5 points, 2 on 10 (EIG paper §4.1)."""
        return max(self.points // 5, 0) if self.agreement_tolerance is None else self.agreement_tolerance


ASKING = ("explain", "p_yes", "samples", "temperature", "answer_words", "repeat")
"""Settings of judges that are not asked, because their verdicts or scores are given."""
_ASKED = "the verdicts are there, and no judge is asked (verdicts)"


class DiagnoseOptions(OwnWords, JudgeOptions, Where):
    """Settings of ``diagnose``; how verdicts are bought is as in ``evaluate``."""

    pairs: int = Field(5, ge=0, description="Pairs of questions to name as the least related and the most alike.")

    idle: ClassVar[tuple[Idle, ...]] = (
        Idle(("weights",), lambda _: True, "questions are looked at one by one, and no score is made of them"),
        Idle(
            ("human_scale",),
            lambda given: not given["human_scale"] or given["human_scale"][0] <= given["human_scale"][1],
            "people's scores are compared by their ranks",
        ),
        Idle(
            ("scores",),
            where(scores=("soft", "hard")),
            "P(yes) and the yes/no answers are both looked at; leave it out, or ask for numbers (scores expected)",
        ),
        Idle(("mode", "scores", *ASKING), beside("verdicts"), _ASKED),
    )


class SelectOptions(JudgeOptions, Where):
    """How candidates are proposed, answered and chosen."""

    k: Annotated[int, Heading.COMPARED.at(1)] = Field(5, ge=1, description="Questions to keep.")
    choice: Annotated[Literal["joint", "top"], Heading.CHOSEN] = Field(
        "joint", description="joint: the k most informative together; top: the k best one by one, as in the paper."
    )
    sample: Annotated[int, Heading.CHOSEN] = Field(
        200, ge=4, description="Examples that the candidates are answered on."
    )
    sampling: Annotated[Literal["uniform", "clustered"], Heading.CHOSEN] = Field(
        "uniform", description="Draw examples evenly, or from clusters of like ones in proportion to their size."
    )
    clusters: Annotated[int, Heading.CHOSEN] = Field(8, ge=2, description="Clusters, where sampling is clustered.")
    writer: Annotated[ModelName, Heading.ROLES] = Field(
        None, description="Model that proposes candidates; default: the judge."
    )
    max_candidates: Annotated[int, Heading.PROPOSED] = Field(40, ge=2, description="Candidates proposed at most.")
    max_rounds: Annotated[int, Heading.PROPOSED] = Field(12, ge=1, description="Rounds of proposing at most.")
    same_question: Annotated[float, Heading.PROPOSED] = Field(
        0.9, gt=0, le=1, description="Cosine similarity from which a proposed question counts as there already."
    )
    measures: Annotated[Literal["relations", "all", "none"], Heading.CHOSEN] = Field(
        "none",
        description="Measures that are candidates, too, without a call: how the output relates to its input, context and "
        "reference; all: its form, too; none.",
    )
    measure: Annotated[tuple[str, ...], Heading.CHOSEN] = Field(
        (),
        description="A further measure that is a candidate, as nearest_sentence(input), words, package.module:function or "
        "file.py:function; may be repeated.",
    )
    answer_levels: Annotated[Literal[2, 3, 5, 10], Heading.CHOSEN] = Field(
        2, description="Answers: yes/no, or a scale of 3, 5 or 10 steps."
    )
    answers: Annotated[Literal["soft", "hard", "split"], Heading.CHOSEN] = Field(
        "soft",
        description="The probability of yes, the yes/no answer, or above/below the question's own median probability, "
        "for a judge that says yes to nearly everything.",
    )
    rated_by: Annotated[Literal["auto", "people", "judge"], Heading.DATA.at(4)] = Field(
        "auto", description="Where overall ratings come from; auto: people, where they rated half of the sample."
    )
    rating_dimension: Annotated[str | None, Heading.DATA.at(6)] = Field(
        None, description="Human dimension (criterion) to be told; default: 'overall', else the mean of all."
    )
    rating_levels: Annotated[int, Heading.DATA.at(5)] = Field(5, ge=2, le=10, description="Levels of the rating.")
    estimate: Annotated[Literal["pooled", "per-example"], Heading.CHOSEN] = Field(
        "pooled",
        description="EIG from the joint table over examples, or from ratings given each answer, which takes a call "
        "for every example, question and answer more.",
    )
    filling: Annotated[Literal["apart", "together"], Heading.DATA.at(5)] = Field(
        "apart",
        description="Answers and the judge's rating in a call each, or together: all of an example in one reply, as in "
        "the paper's simulations (EIG Figure 10).",
    )
    per_token: Annotated[bool, Heading.CHOSEN] = Field(
        False, description="Choose by information per token of the question."
    )
    halves: Annotated[int, Heading.CHOSEN] = Field(
        5, ge=1, description="Random halvings of the sample behind held-out figures."
    )
    ranking_resamples: Annotated[int, Heading.CHOSEN] = Field(
        60, ge=2, description="Resamples behind the stability of the ranking, at each size."
    )
    embedder: Annotated[str | None, Heading.ROLES.at(1)] = Field(
        None, description="Embedding model that finds repeated questions and clusters."
    )

    idle: ClassVar[tuple[Idle, ...]] = (
        Idle(
            ("writer", "max_candidates", "max_rounds", "same_question"),
            beside("candidates"),
            "no question is proposed where candidates are given",
        ),
        Idle(ASKING, beside("verdicts"), _ASKED),
        Idle(("measures", "measure"), beside("verdicts"), "the verdicts are on the candidates (verdicts)"),
        Idle(
            ("mode", "explain", "repeat"),
            where(answer_levels=(3, 5, 10)),
            "an answer on a scale is one call, given once and without an explanation (answer_levels 2)",
        ),
        Idle(("filling",), beside("verdicts"), _ASKED),
        Idle(("mode",), where(filling="together"), "one reply has all answers (filling together)"),
        Idle(
            ("sample", "sampling", "clusters"),
            beside("verdicts"),
            "all examples that the verdicts are about are the sample (verdicts)",
        ),
        Idle(("clusters",), where(sampling="uniform"), "only clustered sampling has clusters (sampling clustered)"),
    )

    @model_validator(mode="after")
    def _fit_together(self) -> SelectOptions:
        if self.weights is not None:
            raise ValueError("weights: chosen questions all weigh 1; learn weights for them afterwards (askance weigh)")
        if self.scores != "soft":
            raise ValueError("scores: a selection has answers instead (soft, hard, split)")
        if self.answer_levels > 2 and self.answers == "split":
            raise ValueError("answers: split is for yes/no answers (answer_levels 2)")
        if self.filling == "together":
            if self.answer_levels > 2 or self.estimate == "per-example":
                raise ValueError(
                    "filling: one reply has yes/no answers and one rating (answer_levels 2, estimate pooled)"
                )
            if self.rated_by == "people":
                raise ValueError("rated_by: the reply has the judge's own rating (filling together)")
        if self.estimate == "per-example":
            if self.answer_levels > 2 or self.answers == "split":
                raise ValueError("estimate: per-example is for yes/no answers, soft or hard")
            if self.rated_by == "people":
                raise ValueError(
                    "rated_by: the estimate per example needs the judge's ratings; people rated no output given an "
                    "answer"
                )
        return self
