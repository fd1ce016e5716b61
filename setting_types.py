"""Types of the settings that functions take by keyword, e.g. ``evaluate(…, limit=10)``, for type checkers and editors.

Made by ``make settings``, ``NAMESettings`` of the record ``NAMEOptions``. It says what each setting does (``--help``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict

from .models.named import NamedModel


class ModelSettings(TypedDict, total=False):
    api_base: str | None
    engine: Literal["direct", "batch", "ray"]
    workers: int | None
    timeout: float
    retries: int
    models: Mapping[str, NamedModel | Mapping[str, Any] | str]
    max_concurrency: int
    call_budget: int | None
    token_budget: int | None
    cost_budget: float | None
    seed: int


class WhereSettings(TypedDict, total=False):
    store: Path | str | None
    no_cache: bool


class GatewaySettings(ModelSettings, WhereSettings, total=False): ...


class OwnFormSettings(TypedDict, total=False):
    reads: str | None
    reply_tokens: int


class WriterSettings(OwnFormSettings, GatewaySettings, total=False):
    max_requirements: int
    embedder: str | None
    field: Mapping[str, str | Sequence[str]]
    judge_scores: str | None
    human_scale: Sequence[float] | None
    limit: int | None


class WritingSettings(TypedDict, total=False):
    max_output_tokens: int
    generator_temperature: float
    generator_version: str | None
    replay: bool


class GenerateSettings(GatewaySettings, WritingSettings, total=False):
    min_coverage: float
    field: Mapping[str, str | Sequence[str]]
    variable: Mapping[str, str]
    limit: int | None


class OwnWordsSettings(OwnFormSettings, total=False): ...


class JudgeSettings(ModelSettings, total=False):
    mode: Literal["auto", "each", "batched"]
    explain: Literal["always", "needed", "never"]
    p_yes: Literal["auto", "logprob", "stated", "sampled", "hard"]
    samples: int
    temperature: float
    answer_words: Sequence[str] | None
    repeat: int
    scores: Literal["soft", "hard", "expected"]
    score_scale: Sequence[int]
    weights: str | Path | None
    human_scale: Sequence[float] | None
    labels: Mapping[str, Sequence[str]]
    label_scale: Sequence[str] | None
    min_coverage: float
    field: Mapping[str, str | Sequence[str]]
    limit: int | None
    variable: Mapping[str, str]


class ScoreSettings(JudgeSettings, WhereSettings, total=False):
    scale: Sequence[float]
    calibration: str | Path | None
    resamples: int


class PassSettings(ScoreSettings, total=False):
    pass_threshold: float | None
    fail_under: float | None


class EvaluateSettings(OwnWordsSettings, PassSettings, total=False):
    stop_within: float | None
    pass_mark: float | None
    by: str | None
    by_rater: bool
    own_questions: bool
    writer: str | NamedModel | None
    own_decay: float


class RegressionSettings(OwnWordsSettings, PassSettings, total=False):
    dimension: str | None
    criterion: str | None
    tolerance: float


class OwnBesideSettings(OwnFormSettings, total=False):
    own_prompt: str | Path | None


class CompareSettings(OwnBesideSettings, ScoreSettings, total=False):
    points: int
    agreement_tolerance: int | None
    k: int
    embedder: str | None
    panel_size: int
    panel_by: Literal["seeds", "prompts"]
    panel_vote: Literal["majority", "mean"]
    em_dim: bool
    cot_tokens: int


class DiagnoseSettings(OwnWordsSettings, JudgeSettings, WhereSettings, total=False):
    pairs: int


class SelectSettings(JudgeSettings, WhereSettings, total=False):
    k: int
    choice: Literal["joint", "top"]
    sample: int
    sampling: Literal["uniform", "clustered"]
    clusters: int
    max_candidates: int
    max_rounds: int
    same_question: float
    measures: Literal["relations", "all", "none"]
    measure: Sequence[str]
    answer_levels: Literal[2, 3, 5, 10]
    answers: Literal["soft", "hard", "split"]
    rated_by: Literal["auto", "people", "judge"]
    rating_dimension: str | None
    rating_criterion: str | None
    rating_levels: int
    estimate: Literal["pooled", "per-example"]
    filling: Literal["apart", "together"]
    per_token: bool
    halves: int
    ranking_resamples: int
    embedder: str | None


class WeighSettings(ScoreSettings, total=False):
    method: str
    level: Literal["global", "dataset", "section"]
    pooling: Literal["partial", "none"]
    rating_dimension: str | None
    rating_criterion: str | None
    pair_share: float
    pairwise: bool
    swap: bool


class LoopSettings(JudgeSettings, WhereSettings, total=False):
    note_taker: str | NamedModel | None
    deduplicator: str | NamedModel | None
    updater: str | NamedModel | None
    split: Sequence[float]
    max_iterations: int
    max_lessons: int
    max_notes: int
    max_prompt_chars: int | None
    notes: Literal["each", "batched"]
    update: Literal["auto", "edits", "rewrite", "questions", "examples"]
    max_questions: int
    trial: bool
    racing: bool
    prune: bool
    alpha: float
    max_bias: float
    patience: int
    paper: bool
    resamples: int
    embedder: str | None
    memory: str | Path | None


class CertificateSettings(TypedDict, total=False):
    max_loss: float
    certificate_level: float


class MigrateSettings(OwnWordsSettings, LoopSettings, CertificateSettings, total=False):
    writer: str | NamedModel | None
    roles: Literal["cross", "self"]
    reference: Literal["auto", "human", "source"]
    margin: float
    differing: float
    judge_scores: str | None
    judge_scale: Sequence[float] | None
    tolerance: float


class AlignSettings(OwnWordsSettings, LoopSettings, total=False):
    optimise_for: Literal["spearman", "kendall", "auc", "kappa"]
    combine: Literal["auto", "mean", "majority", "model"]
    disagreement_threshold: float
    writer: str | NamedModel | None
    regenerate_questions: bool
    learn_from: Literal["both", "development"]
    keep_questions: bool
    measures: Literal["relations", "all", "none"]
    measure: Sequence[str]
    probed_outputs: int
    shown_examples: int
    calibrate: bool


class TuneSettings(LoopSettings, WritingSettings, total=False):
    writer: str | NamedModel | None
    own_questions: bool
    score_as: Literal["all", "mean"]
    lessons_from: Literal["judge", "checker", "both"]
    decide_by: Literal["judge", "checker", "both"]
    plain_first: bool
    additions: bool
    vary: Mapping[str, Sequence[Any]]


class WriterMigrationSettings(TuneSettings, CertificateSettings, total=False):
    max_requirements: int


class TrainSettings(GatewaySettings, total=False):
    epochs: int
    batch_size: int
    learning_rate: float | None
    lora_rank: int
    loss_weights: Sequence[float]
    levels: int
    longest: int
    patience: int
    rating_pairs: bool
    trust_verdicts: bool
    contrasts: int
    contrast_grades: int
    rationales: int
    given_rationales: bool
    rationale_tokens: int
    rationales_from: Literal["scorer", "writer", "refined", "harmonized"]
    answer_with: Literal["rationale", "word"]
    nll_weight: float
    precision: Literal["float32", "bfloat16"]
    gguf: bool
    onnx: bool
    split: Sequence[float]
    human_scale: Sequence[float] | None
    teacher_price: float | None
    teacher_seconds: float | None
    machine_price: float
    resamples: int
    field: Mapping[str, str | Sequence[str]]
    variable: Mapping[str, str]
    labels: Mapping[str, Sequence[str]]
    label_scale: Sequence[str] | None
    limit: int | None


class LabelSettings(TypedDict, total=False):
    rater: str
    dimension: str
    criterion: str
    order: Literal["auto", "informative", "disagreement", "uncertain", "untested", "spread", "random", "file"]
    gain: float
    port: int
    seed: int
    field: Mapping[str, str | Sequence[str]]
    labels: Mapping[str, Sequence[str]]
    label_scale: Sequence[str] | None
    human_scale: Sequence[float] | None


class MigrationSettings(MigrateSettings, WriterMigrationSettings, total=False):
    """Settings of a migration, whether its prompt judges or writes."""


class ResumeSettings(TypedDict, total=False):
    """Settings that may change when a run is resumed."""

    call_budget: int | None
    cost_budget: float | None
    engine: Literal["direct", "batch", "ray"]
    max_concurrency: int
    max_iterations: int
    no_cache: bool
    retries: int
    store: Path | str | None
    timeout: float
    token_budget: int | None
    workers: int | None
