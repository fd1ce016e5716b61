"""Inputs of a selection: the sample, the pool of candidates, and answers that are given or were bought.

The sample is drawn evenly, or from clusters of similar examples in proportion to their size (EIG App. A.8). Candidates
are proposed from sampled examples until hardly any new question comes (EIG §3.2 and §4.3).
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...agents.question_writer import ProposedQuestion, QuestionProposer, name_questions
from ...agents.rating import Rating
from ...evaluation.measures.fitting import MeasureTable
from ...evaluation.options import SelectOptions
from ...evaluation.scoring import Coverage, coverage
from ...evaluation.verdict_table import given_verdicts
from ...memory.embedders import DEFAULT_EMBEDDER, ROUNDING, Embedder, embedder
from ...models.base import CallError, Model
from ...prompts.checklist import Checklist, ComputedMeasure, Question, load_checklist, refuse_computed
from ...prompts.errors import AskanceError, InputError, MissingExtraError, did_you_mean
from ...prompts.examples import Example, human_dimensions, load_examples, without_answers
from ...prompts.human_feedback import are_labels, known_ratings
from ...prompts.prompt import Prompt, bound_prompts, default_prompt
from ...prompts.verdicts import Verdict, VerdictColumns
from .information import Floats

logger = logging.getLogger(__name__)
QUIET, QUIET_ROUNDS = 1, 2
"""Most new questions in a quiet round, and quiet rounds in a row that end the proposing."""
EXAMPLES_PER_ROUND, QUESTIONS_PER_ROUND = 3, 8
"""Examples that the proposing model is shown in one round, and questions that it proposes at most."""
_UNUSABLE = 3
"""Rounds at the beginning without any usable reply after which proposing is given up."""


@dataclass(frozen=True)
class Round:
    """One round of proposing."""

    examples: tuple[str, ...]
    """Ids of the examples that were shown."""
    proposed: int
    new: int
    pool: int
    """Questions in the pool after the round."""
    error: str | None = None
    """Why the round brought nothing, where it failed."""


@dataclass(frozen=True)
class Pool:
    """The candidates, and the rounds in which they were proposed."""

    questions: tuple[Question, ...]
    growth: tuple[Round, ...]
    settled: bool
    """Whether proposing ended because hardly anything new came, and not at a limit."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as in ``selection.json``."""
        return {"settled": self.settled, "growth": [asdict(each) for each in self.growth]}


async def propose_pool(
    proposer: QuestionProposer,
    examples: Sequence[Example],
    embedder: Embedder,
    settings: SelectOptions,
    on_progress: Callable[[str], None] | None = None,
) -> Pool:
    """Have questions proposed from a few examples per round, until two rounds in a row bring hardly any new one, or
    ``max_rounds`` or ``max_candidates`` is reached.

    The model sees no scores. A question counts as a repeat if its cosine with a kept question reaches
    ``same_question``; this finds similar wording and close paraphrase. Raises AskanceError where no round brought a
    usable reply, a cap was reached, or the endpoint refuses every call.
    """
    batches = _batches(examples, EXAMPLES_PER_ROUND, settings.seed)
    kept: list[ProposedQuestion] = []
    vectors = np.zeros((0, 0), dtype=np.float32)
    growth: list[Round] = []
    quiet = 0
    while quiet < QUIET_ROUNDS and len(growth) < settings.max_rounds and len(kept) < settings.max_candidates:
        batch = next(batches)
        ids = tuple(example.id for example in batch)
        if on_progress:
            on_progress(f"proposing questions, round {len(growth) + 1}: {len(kept)} so far")
        try:
            proposals = await proposer.propose(batch, [each.text for each in kept])
        except CallError as error:
            if error.fatal:
                raise
            growth.append(Round(ids, 0, 0, len(kept), str(error)))
            if not kept and len(growth) == min(_UNUSABLE, settings.max_rounds):
                raise AskanceError(
                    f"No usable question came in {len(growth)} rounds, the last time because: {error} Use another "
                    "model for proposing (--writer), or bring candidates (--candidates)."
                ) from None
            continue
        before = len(kept)
        for proposal, vector in zip(proposals, embedder.embed([each.text for each in proposals]), strict=True):
            same = len(kept) and float((vectors @ vector).max()) >= settings.same_question - ROUNDING
            if not same and len(kept) < settings.max_candidates:
                kept.append(proposal)
                vectors = vector[None, :] if not len(vectors) else np.vstack([vectors, vector])
        new = len(kept) - before
        growth.append(Round(ids, len(proposals), new, len(kept)))
        quiet = quiet + 1 if new <= QUIET else 0
    if not kept:
        raise AskanceError("No usable question was proposed. Use another model (--writer), or bring --candidates.")
    return Pool(tuple(name_questions(kept)), tuple(growth), quiet >= QUIET_ROUNDS)


def _batches(examples: Sequence[Example], size: int, seed: int) -> Iterator[list[Example]]:
    """Yield ``size`` examples at a time in random order, over and over, in a new order each time."""
    rng = random.Random(seed)
    while True:
        order = rng.sample(examples, len(examples))
        for start in range(0, len(order), size):
            yield order[start : start + size]


LEAST_RATED = 0.5
"""Share of the sample that people must have rated for their scores to be used without being asked for."""


@dataclass(frozen=True)
class Inputs:
    """Checked inputs of a selection."""

    examples: list[Example]
    candidates: Checklist | None
    prompt: Prompt
    task: str
    dimensions: tuple[str, ...]
    by_people: bool
    """Whether the ratings come from people, not from the judge."""
    measures: tuple[ComputedMeasure, ...] = ()
    """Measures that are candidates beside questions. Where ``candidates`` is given, it has them too."""


@dataclass(frozen=True)
class Bought:
    """Answers and ratings as they were bought or given."""

    candidates: Checklist
    pool: Pool | None
    verdicts: Sequence[Verdict]
    """Yes/no answers; empty where answers are on a scale."""
    degrees: Sequence[Rating]
    """Answers on a scale."""
    ratings: Sequence[Rating]
    """Overall ratings by the judge; empty where people's are used."""
    given: Sequence[Rating]
    """Overall ratings, given each answer."""

    @property
    def coverage(self) -> Coverage:
        """Coverage of the answers."""
        return coverage([*self.verdicts, *self.degrees])

    @property
    def problems(self) -> list[str]:
        """Errors, each once."""
        errors = [verdict.error for verdict in self.verdicts]
        errors += [rating.error for rating in (*self.degrees, *self.ratings, *self.given)]
        return list(dict.fromkeys(error for error in errors if error))


def human_scores(
    examples: Sequence[Example], dimension: str | None = None, scale: tuple[float, float] | None = None
) -> tuple[str, Floats]:
    """Return the name of people's overall score, and the scores, shape (examples,), NaN where one is missing.

    The score is on ``dimension``, else on ``overall`` or the only dimension, else it is the mean of all dimensions,
    each mapped to [0, 1] (by ``scale`` or its observed ends). Raises InputError where nobody rated the dimension."""
    rated = human_dimensions(examples)
    if dimension is not None and dimension not in rated:
        have = ", ".join(rated) or "none"
        raise InputError(
            f"--rating-dimension {dimension}: no example has human scores on it (rated: {have})."
            f"{did_you_mean(dimension, rated)}"
        )
    scored_dimension = dimension or ("overall" if "overall" in rated else rated[0] if len(rated) == 1 else None)
    if scored_dimension is not None:
        are_words = are_labels(
            rating for example in examples for rating in known_ratings(example.human.get(scored_dimension, ()))
        )
        # on a scale whose best end is the lower one, the sign turns, so that higher is better
        return scored_dimension, _column(examples, scored_dimension) * (
            -1 if scale and scale[0] > scale[1] and not are_words else 1
        )
    parts = []
    for each in rated:
        column = _column(examples, each)
        low, high = scale or (float(np.nanmin(column)), float(np.nanmax(column)))
        if are_labels(rating for example in examples for rating in known_ratings(example.human.get(each, ()))):
            low, high = 0.0, 1.0
        parts.append((column - low) / (high - low if high != low else 1.0))
    mean: Floats = np.mean(parts, axis=0) if parts else np.full(len(examples), np.nan)
    return f"mean of {', '.join(rated)}", mean


def _column(examples: Sequence[Example], dimension: str) -> Floats:
    scores = [example.human_score(dimension) for example in examples]
    return np.array([np.nan if score is None else score for score in scores], dtype=np.float64)


def sample_uniform(size: int, wanted: int, seed: int) -> list[int]:
    """Draw ``wanted`` of ``size`` examples; return their positions, ascending. All are taken if there are no more."""
    if wanted >= size:
        return list(range(size))
    return sorted(np.random.default_rng(seed).choice(size, wanted, replace=False).tolist())


def sample_clustered(vectors: NDArray[np.float32], wanted: int, clusters: int, seed: int) -> list[int]:
    """Draw ``wanted`` examples from clusters of similar ones, in proportion to their size; return positions, ascending.

    Every cluster is drawn from if there are at least as many places as clusters. A row of ``vectors`` is an example.
    Raises MissingExtraError where scikit-learn is not installed."""
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
    """Cluster the rows by k-means; return clusters 0, 1, ..., shape (examples,). Raises MissingExtraError without
    scikit-learn."""
    try:
        sklearn = import_module("sklearn.cluster")
    except ModuleNotFoundError:
        raise MissingExtraError("selection", "scikit-learn") from None
    distinct = len(np.unique(vectors, axis=0))
    means: Any = sklearn.KMeans(min(clusters, distinct), n_init=3, random_state=seed)
    _, labels = np.unique(means.fit_predict(vectors), return_inverse=True)
    return labels.astype(np.int64)


def allocate(sizes: NDArray[np.int64], wanted: int) -> list[int]:
    """Give each cluster places in proportion to its size, by largest remainders; none gets more places than examples. A
    cluster without a place gets one from the cluster with the most places, as long as that has two."""
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


CHOOSES = "select chooses among questions and measures"
SPREAD = (0.05, 0.95)
"""Quantiles of an offered measure's values in the sample that stand for 0 and 1."""


def offered(
    examples: Sequence[Example], taken: Collection[str], settings: SelectOptions
) -> tuple[ComputedMeasure, ...]:
    """Return the measures that are candidates, without the ids in ``taken``. Each has a range from the values in the
    sample; no score is looked at. Raises as :meth:`~askance.evaluation.measures.fitting.MeasureTable.of`."""
    if settings.measures == "none" and not settings.measure:
        return ()
    embeds = settings.embedder != "words"
    table = MeasureTable.of(examples, settings.measures, settings.measure, embeds=embeds)
    if table.left_out is not None:
        logger.warning("%s", table.left_out)
    found = []
    for name, measure in table.without(taken).measures.items():
        values = np.array(list(table.values[name].values()))
        low, high = np.quantile(values, SPREAD)
        ends = (low, high) if low < high else (values.min(), values.max())
        found.append(measure.model_copy(update={"range": tuple(float(f"{end:.4g}") for end in ends)}))
    return tuple(found)


def candidates_in(source: str | Path | Checklist, settings: SelectOptions) -> Checklist:
    """Read candidates. Raises InputError for checks, and for measures if answers are on a scale or estimated per
    example."""
    found = refuse_computed(load_checklist(source, remarks=settings.answer_levels == 2), CHOOSES, ["checks"])
    if settings.answer_levels > 2 or settings.estimate == "per-example":
        refuse_computed(found, "Only among yes/no answers, pooled over examples, a measure is a candidate")
    return found


def load_select_inputs(
    data: str | Path | Iterable[Example | Mapping[str, Any]],
    candidates: str | Path | Checklist | None,
    prompt: str | Path | Prompt | None,
    task: str,
    dimensions: Sequence[str],
    settings: SelectOptions,
) -> Inputs:
    """Read and check all inputs, and draw the sample. InputError names the file, line and field at fault."""
    all_examples = list(
        load_examples(
            data, fields=settings.field, limit=settings.limit, labels=settings.labels, label_scale=settings.label_scale
        )
    )
    pool = None if candidates is None else candidates_in(candidates, settings)
    if (settings.measures != "none" or settings.measure) and (
        settings.answer_levels > 2 or settings.estimate == "per-example"
    ):
        raise InputError("measures: they are candidates among yes/no answers alone (answer_levels 2, estimate pooled).")
    if pool is not None:
        all_examples = [without_answers(each, pool) for each in all_examples]  # only overall scores count
    if pool is not None and len(pool.questions) < settings.k:
        raise InputError(
            f"-k {settings.k}: there are only {len(pool.questions)} candidates to choose from. Choose a smaller k, or "
            "bring more candidates."
        )
    if pool is None and settings.max_candidates < settings.k:
        raise InputError(
            f"-k {settings.k}: --max-candidates {settings.max_candidates} would leave too few to choose from."
        )
    examples = _sample(all_examples, settings)
    [text] = bound_prompts([default_prompt(all_examples) if prompt is None else prompt], all_examples, settings)
    by_people = _by_people(examples, settings)
    task_text = task or (pool.task if pool else "")
    measures = offered(examples, [each.id for each in pool.questions] if pool else (), settings)
    if pool is not None and measures:
        pool = pool.model_copy(update={"questions": (*pool.questions, *measures), "section_weights": {}})
    return Inputs(examples, pool, text, task_text, tuple(dimensions), by_people, measures)


def load_given(
    data: str | Path | Iterable[Example | Mapping[str, Any]],
    candidates: str | Path | Checklist | None,
    verdicts: str | Path | Iterable[Verdict],
    model: str | Model | None,
    prompt: str | Path | Prompt | None,
    task: str,
    settings: SelectOptions,
) -> tuple[Inputs, Bought, str]:
    """Read given verdicts for a selection in which people's scores are the ratings. Returns the inputs, the verdicts in
    the place of bought ones, and the name of the judge that gave them. Raises InputError, which names the file, line
    and field at fault, or says what is missing."""
    if candidates is None:
        raise InputError("--verdicts: name the checklist that they answer (--candidates).")
    if settings.answer_levels > 2 or settings.estimate == "per-example" or settings.rated_by == "judge":
        raise InputError("--verdicts: they are yes/no answers, and further ratings would have to be bought.")
    all_examples = load_examples(
        data, fields=settings.field, labels=settings.labels, label_scale=settings.label_scale, remarks=False
    )
    questions = candidates_in(candidates, settings)
    given = given_verdicts(verdicts, all_examples, questions, model, prompt, settings)
    judged = {verdict.example for verdict in given}
    known = [example for example in all_examples if example.id in judged][: settings.limit]
    kept = {example.id for example in known}
    given = VerdictColumns(verdict for verdict in given if verdict.example in kept)
    if len(judges := given.models) != 1:
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
    if settings.rated_by == "judge" or settings.estimate == "per-example" or settings.filling == "together":
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
