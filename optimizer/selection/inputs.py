"""What a selection starts from: the sample, the candidates, and answers that are there already or were bought.

The sample is drawn evenly, or from clusters of like examples in proportion (EIG App. A.8).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...agents.rating import Rating
from ...evaluation.options import SelectOptions
from ...evaluation.scoring import Coverage, coverage
from ...evaluation.verdict_table import given_verdicts
from ...memory.embedders import DEFAULT_EMBEDDER, embedder
from ...models.base import Model
from ...prompts.checklist import Checklist, load_checklist
from ...prompts.errors import InputError, MissingExtraError
from ...prompts.examples import Example, human_dimensions, load_examples, without_answers
from ...prompts.prompt import Prompt, default_prompt, load_prompt
from ...prompts.verdicts import Verdict, VerdictColumns
from .analysis import human_scores
from .pool import Pool

LEAST_RATED = 0.5
"""Share of the sample that people must have rated for their scores to be taken without being asked for."""


@dataclass(frozen=True)
class Inputs:
    """What a selection works on, checked."""

    examples: list[Example]
    """The sample."""
    candidates: Checklist | None
    prompt: Prompt
    task: str
    dimensions: tuple[str, ...]
    by_people: bool
    """Whether ratings are people's."""


@dataclass(frozen=True)
class Bought:
    """Answers and ratings, as they came."""

    candidates: Checklist
    pool: Pool | None
    verdicts: Sequence[Verdict]
    """Yes/no answers; none where answers are on a scale."""
    degrees: Sequence[Rating]
    """Answers on a scale."""
    ratings: Sequence[Rating]
    """Of the whole; none where people's are used."""
    given: Sequence[Rating]
    """Of the whole, given each answer."""

    @property
    def coverage(self) -> Coverage:
        """Of the answers."""
        return coverage([*self.verdicts, *self.degrees])

    @property
    def problems(self) -> list[str]:
        """Errors, each once."""
        errors = [verdict.error for verdict in self.verdicts]
        errors += [rating.error for rating in (*self.degrees, *self.ratings, *self.given)]
        return list(dict.fromkeys(error for error in errors if error))


def sample_uniform(size: int, wanted: int, seed: int) -> list[int]:
    """Positions of ``wanted`` of ``size`` examples, ascending; all of them where there are no more."""
    if wanted >= size:
        return list(range(size))
    return sorted(np.random.default_rng(seed).choice(size, wanted, replace=False).tolist())


def sample_clustered(vectors: NDArray[np.float32], wanted: int, clusters: int, seed: int) -> list[int]:
    """Positions of ``wanted`` examples, drawn from clusters of like ones in proportion to their size, ascending.

    Every cluster is drawn from where there are at least as many places as clusters.

    Args:
        vectors: One row per example, shape (examples, d).
        wanted: How many.
        clusters: How many clusters k-means looks for.
        seed: Of the clusters and the draw.

    Raises:
        MissingExtraError: scikit-learn is not installed.
    """
    if wanted >= len(vectors):
        return list(range(len(vectors)))
    labels = cluster(vectors, clusters, seed)
    places = allocate(np.bincount(labels), wanted)
    rng = np.random.default_rng(seed)
    chosen: list[int] = []
    for label, count in enumerate(places):
        chosen += rng.choice(np.flatnonzero(labels == label), count, replace=False).tolist()
    return sorted(chosen)


def cluster(vectors: NDArray[np.float32], clusters: int, seed: int) -> NDArray[np.int64]:
    """Cluster of each row by k-means, 0, 1, ..., shape (examples,).

    Raises:
        MissingExtraError: scikit-learn is not installed.
    """
    try:
        sklearn = import_module("sklearn.cluster")
    except ModuleNotFoundError:
        raise MissingExtraError("selection", "scikit-learn") from None
    distinct = len(np.unique(vectors, axis=0))
    means: Any = sklearn.KMeans(min(clusters, distinct), n_init=3, random_state=seed)
    _, labels = np.unique(means.fit_predict(vectors), return_inverse=True)
    return labels.astype(np.int64)


def allocate(sizes: NDArray[np.int64], wanted: int) -> list[int]:
    """Places for each cluster in proportion to its size, by largest remainders; none gets more than it has.

    A cluster with no place gets one from the cluster with most, as long as that has two.
    """
    exact = sizes * wanted / sizes.sum()
    places = np.floor(exact).astype(np.int64)
    for cluster_number in np.argsort(places - exact, kind="stable")[: wanted - int(places.sum())]:
        places[cluster_number] += 1
    for empty in np.flatnonzero((places == 0) & (sizes > 0)):
        most = int(places.argmax())
        if places[most] > 1:
            places[most] -= 1
            places[empty] = 1
    return [int(each) for each in places]


def load_select_inputs(
    data: str | Path | Iterable[Example | Mapping[str, Any]],
    candidates: str | Path | Checklist | None,
    prompt: str | Path | Prompt | None,
    task: str,
    dimensions: Sequence[str],
    settings: SelectOptions,
) -> Inputs:
    """Read and check everything, and draw the sample.

    Raises:
        InputError: Names the file, line and field at fault.
    """
    every = list(
        load_examples(
            data, fields=settings.field, limit=settings.limit, labels=settings.labels, label_scale=settings.label_scale
        )
    )
    pool = None if candidates is None else load_checklist(candidates)
    if pool is not None:
        every = [without_answers(each, pool) for each in every]  # what is told is the whole, not single questions
    if pool is not None and len(pool.questions) < settings.k:
        raise InputError(
            f"-k {settings.k}: there are only {len(pool.questions)} candidates to choose from. Choose a smaller k, or "
            "bring more candidates."
        )
    if pool is None and settings.max_candidates < settings.k:
        raise InputError(
            f"-k {settings.k}: --max-candidates {settings.max_candidates} would leave too few to choose from."
        )
    examples = _sample(every, settings)
    text = default_prompt(every) if prompt is None else load_prompt(prompt)
    by_people = _by_people(examples, settings)
    about = task or (pool.task if pool else "")
    return Inputs(examples, pool, text, about, tuple(dimensions), by_people)


def load_given(
    data: str | Path | Iterable[Example | Mapping[str, Any]],
    candidates: str | Path | Checklist | None,
    verdicts: str | Path | Iterable[Verdict],
    model: str | Model | None,
    prompt: str | Path | Prompt | None,
    task: str,
    settings: SelectOptions,
) -> tuple[Inputs, Bought, str]:
    """Read verdicts that are there, to be rated by people's scores.

    Returns:
        The inputs, the verdicts as if they had been bought, and the name of the judge that gave them.

    Raises:
        InputError: Names the file, line and field at fault, or says what is missing.
    """
    if candidates is None:
        raise InputError("--verdicts: name the checklist that they answer (--candidates).")
    if settings.answer_levels > 2 or settings.estimate == "per-example" or settings.rated_by == "judge":
        raise InputError("--verdicts: they are yes/no answers, and further ratings would have to be bought.")
    every = load_examples(
        data, fields=settings.field, labels=settings.labels, label_scale=settings.label_scale, remarks=False
    )
    questions = load_checklist(candidates)
    given = given_verdicts(verdicts, every, questions, model, prompt)
    judged = {verdict.example for verdict in given}
    known = [example for example in every if example.id in judged][: settings.limit]
    kept = {example.id for example in known}
    given = VerdictColumns(verdict for verdict in given if verdict.example in kept)
    if len(judges := sorted({verdict.model for verdict in given})) != 1:
        raise InputError(f"The verdicts are by {len(judges)} models ({', '.join(judges)}): name one with --model.")
    update = {"sample": max(len(known), 4), "sampling": "uniform", "field": {}, "limit": None}
    inputs = load_select_inputs(known, questions, prompt, task, (), settings.model_copy(update=update))
    if not inputs.by_people:
        raise InputError(
            "--verdicts: nothing is bought, so the overall ratings have to be people's, and fewer than half of the "
            "examples have a human score."
        )
    return inputs, Bought(questions, None, given, (), (), ()), judges[0]


def _sample(examples: list[Example], settings: SelectOptions) -> list[Example]:
    if settings.sampling == "uniform" or settings.sample >= len(examples):
        places = sample_uniform(len(examples), settings.sample, settings.seed)
    else:
        shown = [f"{each.input}\n{each.output or ''}".strip() or each.id for each in examples]
        vectors = embedder(settings.embedder or DEFAULT_EMBEDDER).embed(shown)
        places = sample_clustered(vectors, settings.sample, settings.clusters, settings.seed)
    return [examples[place] for place in places]


def _by_people(examples: Sequence[Example], settings: SelectOptions) -> bool:
    if settings.rated_by == "judge" or settings.estimate == "per-example":
        return False
    if not human_dimensions(examples):
        if settings.rated_by == "people":
            raise InputError(
                "--rated-by people: no example has human scores. Use --rated-by judge, or add a field 'human'."
            )
        return False
    _, scores = human_scores(examples, settings.rating_dimension, settings.human_scale)
    rated = int((scores == scores).sum())  # NaN is not equal to itself
    if settings.rated_by == "people":
        if not rated:
            raise InputError(
                "--rated-by people: no example has a score on every dimension; name one (--rating-dimension)."
            )
        return True
    return rated >= LEAST_RATED * len(examples)
