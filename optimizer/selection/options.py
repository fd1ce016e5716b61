"""Settings of ``select``."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from ..options import JudgeOptions


class SelectOptions(JudgeOptions):
    """How candidates are proposed, answered and chosen."""

    k: int = Field(5, ge=1, description="Questions to keep.")
    choice: Literal["joint", "top"] = Field(
        "joint",
        description="joint: the k that tell most together; top: the k best one by one, as in the paper.",
    )
    sample: int = Field(200, ge=4, description="Examples that the candidates are answered on.")
    sampling: Literal["uniform", "clustered"] = Field(
        "uniform", description="Draw examples evenly, or from clusters of like ones in proportion to their size."
    )
    clusters: int = Field(8, ge=2, description="Clusters, where sampling is clustered.")
    writer: str | None = Field(None, description="Model that proposes candidates; default: the judge.")
    max_candidates: int = Field(40, ge=2, description="Candidates proposed at most.")
    max_rounds: int = Field(12, ge=1, description="Rounds of proposing at most.")
    quiet_rounds: int = Field(2, ge=1, description="Rounds in a row with at most one new question that end proposing.")
    shown: int = Field(3, ge=1, description="Examples that the proposing model is shown in one round.")
    per_round: int = Field(8, ge=1, le=20, description="Questions proposed in one round at most.")
    same_question: float = Field(
        0.9, gt=0, le=1, description="Cosine similarity from which a proposed question counts as there already."
    )
    answer_levels: Literal[2, 3, 5] = Field(2, description="Answers: yes/no, or a scale of 3 or 5 steps.")
    answers: Literal["soft", "hard", "split"] = Field(
        "soft",
        description="P(yes) as a probability, the yes/no answer, or above/below the question's own median P(yes), for "
        "a judge that says yes to nearly everything.",
    )
    rated_by: Literal["auto", "people", "judge"] = Field(
        "auto", description="Where overall ratings come from; auto: people, where they rated half of the sample."
    )
    rating_dimension: str | None = Field(
        None, description="Human dimension to be told; default: 'overall', else the mean of all."
    )
    rating_levels: int = Field(5, ge=2, le=9, description="Levels of the rating.")
    estimate: Literal["pooled", "per-example"] = Field(
        "pooled",
        description="EIG from the joint table over examples, or from ratings given each answer, which takes a call "
        "for every example, question and answer more.",
    )
    correction: Literal["shuffle", "miller-madow", "none"] = Field(
        "shuffle", description="Of the small-sample bias of information."
    )
    per_token: bool = Field(False, description="Choose by information per token of the question.")
    halves: int = Field(5, ge=1, description="Random halvings of the sample behind held-out figures.")
    ranking_resamples: int = Field(60, ge=2, description="Resamples behind the stability of the ranking, at each size.")
    embedder: str | None = Field(None, description="Embedding model that finds repeated questions and clusters.")

    @model_validator(mode="after")
    def _fit_together(self) -> SelectOptions:
        if self.weights is not None:
            raise ValueError("weights: chosen questions all weigh 1; learn weights for them afterwards (askance weigh)")
        if self.scores != "soft":
            raise ValueError("scores: a selection has answers instead (soft, hard, split)")
        if self.answer_levels > 2 and self.answers == "split":
            raise ValueError("answers: split is for yes/no answers (answer_levels 2)")
        if self.estimate == "per-example":
            if self.answer_levels > 2 or self.answers == "split":
                raise ValueError("estimate: per-example is for yes/no answers, soft or hard")
            if self.rated_by == "people":
                raise ValueError(
                    "rated_by: the estimate per example needs the judge's ratings; people rated no output given an answer"
                )
        return self
