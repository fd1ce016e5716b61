"""Judges by name, each with its paper. All raise InputError if the questions that they need are missing."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, zip_longest
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from ...agents.buying import NOTHING, Estimate
from ...memory.embedders import DEFAULT_EMBEDDER, embedder
from ...prompts.errors import InputError, did_you_mean
from ...prompts.examples import Example
from ..measures.fitting import MeasureTable, documents_of, folds_of
from .protocol import OWN, Judge, JudgeScore, NothingToPrepare, Setup, boolean_checklist
from .questionnaire import (
    ExpectedNumbers,
    Questionnaire,
    candidate_pool,
    covering,
    needed_checklist,
    number_judge,
    own_words,
    with_questions,
    yes_no,
)
from .two_steps import CheckEval, Filled, GEval, evenly_weighted, questionnaire

WORDINGS = ("rate_direct", "rate_direct_critic", "rate_direct_reader")
"""Templates of the members of a panel of one model, with ``--panel-by prompts``."""
SEED_STEP = 1000
"""Distance of the seeds of two members, so that their replicates never share a seed."""


@dataclass(frozen=True)
class Poll(NothingToPrepare):
    """A panel whose members rate as ``direct`` does. A missing vote leaves the panel without a score."""

    members: tuple[Questionnaire, ...]
    points: int
    vote: str
    """``majority`` or ``mean``."""
    name: str = "poll"

    async def rate(self, examples: Sequence[Example]) -> list[JudgeScore]:
        """Have every member rate every example, one member after the other."""
        votes = [await member.rate(examples) for member in self.members]
        return [self._decide(each) for each in zip(*votes, strict=True)]

    async def estimate(self, examples: Sequence[Example]) -> Estimate:
        """Estimate of what all members would buy."""
        return sum([await member.estimate(examples) for member in self.members], NOTHING)

    def _decide(self, votes: Sequence[JudgeScore]) -> JudgeScore:
        missing = next((vote for vote in votes if vote.score is None), None)
        if missing is not None:
            return missing
        scores = [vote.score for vote in votes if vote.score is not None]
        if self.vote == "majority":
            counts = Counter(round(score * (self.points - 1)) for score in scores)
            most = max(counts.values())
            winners = [number for number, count in counts.items() if count == most]
            decided = sum(winners) / len(winners) / (self.points - 1)
        else:
            decided = sum(scores) / len(scores)
        return replace(votes[0], score=decided)


def poll(setup: Setup) -> Poll:
    """``poll``: several models, or one several times, vote (PoLL, Verga et al. 2024; EIG paper App. A.9).

    Raises InputError if there are more members than wordings, with ``--panel-by prompts``.
    """
    options = setup.options
    if setup.panel:
        members = [number_judge("poll", replace(setup, model=model), WORDINGS[0]) for model in setup.panel]
    elif options.panel_by == "prompts":
        if options.panel_size > len(WORDINGS):
            raise InputError(
                f"--panel-size {options.panel_size}: there are {len(WORDINGS)} wordings; use fewer members, or "
                "--panel-by seeds."
            )
        members = [number_judge("poll", setup, wording) for wording in WORDINGS[: options.panel_size]]
    else:
        warm = replace(options.judging, temperature=options.temperature or options.judging.sample_temperature)
        seeds = [options.seed + place * SEED_STEP for place in range(1, options.panel_size + 1)]
        members = [number_judge("poll", setup, WORDINGS[0], replace(warm, seed=seed)) for seed in seeds]
    return Poll(tuple(members), options.points, options.panel_vote)


def binary(setup: Setup) -> Questionnaire:
    """``binary``: the checklist's atomic questions, scored from P(yes) or the answers (BinEval §3.2)."""
    return yes_no("binary", setup, needed_checklist(setup, "binary"), soft=setup.options.soft)


def unieval(setup: Setup) -> Questionnaire:
    """``unieval``: one Boolean question a dimension, the score being P(yes) (UniEval, Zhong et al. 2022)."""
    checklist = boolean_checklist(setup.task, setup.criteria)
    return yes_no("unieval", setup, checklist, soft=setup.options.soft)


def direct(setup: Setup) -> Questionnaire:
    """``direct``: the model is asked for a number, which is the score (LLM Direct of the EIG paper §4.1)."""
    return number_judge("direct", setup, "rate_direct")


def cot(setup: Setup) -> Questionnaire:
    """``cot``: the model thinks step by step and then says a number (LLM + CoT of the EIG paper §4.1)."""
    return number_judge("cot", setup, "rate_cot", thinking=setup.options.cot_tokens)


def own(setup: Setup) -> Questionnaire:
    """``own``: a judge in people's own words, whose prompt is asked as it stands; its score is read from its reply."""
    return own_words(setup)


def checkeval_seeds(setup: Setup) -> Questionnaire:
    """``checkeval_seeds``: CheckEval with the checklist's questions alone: the share of hard yes (Lee et al. 2025).

    It shares all answers with ``binary``, but uses no probabilities and no weights.
    """
    seeds = evenly_weighted(needed_checklist(setup, "checkeval_seeds"))
    return yes_no("checkeval_seeds", setup, seeds, soft=False)


def unit_tests(setup: Setup) -> ExpectedNumbers:
    """``unit_tests``: each question is a unit test, scored by the expected number (1 to 5 by default; LMUnit §3)."""
    return ExpectedNumbers("unit_tests", setup, setup.prompt, needed_checklist(setup, "unit_tests"))


def random_k(setup: Setup) -> Questionnaire:
    """``random_k``: k candidate questions in all, drawn at random, in turn from each dimension (EIG paper §4.5).

    The draw depends on the seed and the questions' ids alone, not on their order in the file. Raises InputError where k
    is smaller than the number of dimensions, or was given and is larger than the pool.
    """
    pool = candidate_pool(setup, "random_k")
    options = setup.options
    dimensions = sorted({each.dimension for each in pool.questions if each.weight > 0})
    random.Random(options.seed).shuffle(dimensions)  # decides which dimensions get one question more
    dimensions.sort(key=lambda each: each not in setup.dimensions)  # others count for the overall score only
    if options.k < (needed := len(set(dimensions) & set(setup.dimensions))):
        raise InputError(
            f"k: random_k draws {options.k} questions in all, and each of the {needed} dimensions needs one. Give a "
            "larger k, or compare fewer dimensions with --dimension."
        )
    there = sum(each.weight > 0 for each in pool.questions)
    if options.k > there and "k" in options.model_fields_set:
        raise InputError(
            f"k: random_k draws {options.k} questions in all, and there are only {there} to draw from. Choose a "
            "smaller k."
        )
    stacks = []
    for dimension in dimensions:
        ids = sorted(each.id for each in pool.questions if each.dimension == dimension and each.weight > 0)
        stacks.append(random.Random(f"{options.seed}/{dimension}").sample(ids, len(ids)))
    in_turn = (each for dealt in zip_longest(*stacks) for each in dealt if each is not None)
    drawn = set(islice(in_turn, options.k))
    kept = tuple(each for each in pool.questions if each.id in drawn)
    chosen = pool.model_copy(update={"questions": kept, "section_weights": {}})
    return yes_no("random_k", setup, chosen, soft=options.soft)


def all_candidates(setup: Setup) -> Questionnaire:
    """``all_candidates``: every candidate question, none selected (EIG paper §4.5)."""
    pool = candidate_pool(setup, "all_candidates")
    return yes_no("all_candidates", setup, pool, soft=setup.options.soft)


def auto_rubric(setup: Setup) -> Questionnaire:
    """``auto_rubric``: candidates from pairs, taken by how much each raises the coding rate of their embeddings.

    The choice ends if no other candidate raises the rate by :data:`LEAST_GAIN` (Auto-Rubric, Xie et al. 2025). What
    people preferred plays no part in the choice, and all questions count the same.
    """
    pool = candidate_pool(setup, "auto_rubric")
    asked = [each for each in pool.asked if each.weight > 0]
    vectors = embedder(setup.options.embedder or DEFAULT_EMBEDDER).embed([each.text for each in asked])
    taken = [asked[place] for place in sorted(spread_by_rate(vectors.astype(np.float64)))]
    chosen = covering(with_questions(pool, taken), setup, "auto_rubric")
    return yes_no("auto_rubric", setup, evenly_weighted(chosen), soft=setup.options.soft)


DISTORTION = 0.5
"""ε of the coding rate, as in later work on it."""
LEAST_GAIN = 0.01
"""Smallest gain, in nats, with which a question is taken."""


def coding_rate(vectors: NDArray[np.float64], distortion: float = DISTORTION) -> float:
    """Return the coding rate R(Z) = ½ log det(I + d / (n ε²) ZᵀZ) of ``vectors``, shape (n, d), in nats; 0 for none.

    The rate counts the nats that code the vectors up to a distortion of ε. A repeated vector does not raise it
    (Ma et al., "Segmentation of multivariate mixed data via lossy data coding and compression", PAMI 29, 2007, eq. 7).
    """
    n, d = vectors.shape
    if not n:
        return 0.0
    # ZZᵀ is (n, n) and gives the same determinant as ZᵀZ.
    gram = np.eye(n) + d / (n * distortion**2) * vectors @ vectors.T
    return float(np.linalg.slogdet(gram)[1]) / 2


def spread_by_rate(vectors: NDArray[np.float64]) -> list[int]:
    """Return places of vectors, shape (n, d), in the order in which each raises the rate most; the first of equals.

    The choice ends when no vector adds :data:`LEAST_GAIN`.
    """
    taken: list[int] = []
    rate = 0.0
    while len(taken) < len(vectors):
        candidates = [place for place in range(len(vectors)) if place not in taken]
        rates = [coding_rate(vectors[[*taken, place]]) for place in candidates]
        best = int(np.argmax(np.round(rates, 9)))
        if rates[best] - rate < LEAST_GAIN:
            break
        taken.append(candidates[best])
        rate = rates[best]
    return taken


class MeasuresAlone:
    """``measures``: a judge of measures alone, chosen and fitted by people's scores on the other folds.

    An example's score is the weighted mean of its measures' P(good). If no measure stands out on the other folds, the
    score is people's mean score there.
    """

    name = "measures"

    def __init__(self, setup: Setup) -> None:
        """Raises InputError where people rated none of the dimensions."""
        if setup.targets is None:
            raise InputError("The judge 'measures' is fitted to people's scores, and the data have none.")
        self._setup, self._targets = setup, setup.targets
        self._scores: dict[tuple[str, str], float] = {}

    async def prepare(self) -> None:
        """Compute the measures, and choose and fit them fold by fold; nothing is bought."""
        examples, targets = self._setup.examples, self._targets
        table, documents = MeasureTable.of(examples, store=self._setup.gateway.store), documents_of(examples)
        parts = dict(zip(documents, folds_of(list(documents.values())), strict=True))
        for dimension in self._setup.dimensions:
            for part in set(parts.values()):
                known = ((name, targets.wanted[name].get(dimension)) for name in documents if parts[name] != part)
                taught = {name: value for name, value in known if value is not None}
                measures = table.choose(taught, documents, dimension).weighed
                mean = sum(taught.values()) / len(taught) if taught else 0.5
                for name in (name for name in documents if parts[name] == part):
                    shares = [each.weight * each.p_good(each.share(table.values[each.id][name])) for each in measures]
                    total = sum(each.weight for each in measures)
                    self._scores[name, dimension] = sum(shares) / total if total else mean

    async def rate(self, examples: Sequence[Example]) -> list[JudgeScore]:
        """Return the scores; all replicates are the same."""
        return [
            JudgeScore(each.id, dimension, self._scores[each.id, dimension], replicate=replicate)
            for each in examples
            for replicate in range(self._setup.options.repeat)
            for dimension in self._setup.dimensions
        ]

    async def estimate(self, examples: Sequence[Example]) -> Estimate:
        """Nothing is bought."""
        return NOTHING


JUDGES: Mapping[str, Callable[[Setup], Judge]] = MappingProxyType(
    {
        "binary": binary,
        "unieval": unieval,
        "geval": GEval,
        "direct": direct,
        "cot": cot,
        "questionnaire": questionnaire,
        Filled.name: Filled,
        "poll": poll,
        "checkeval": CheckEval,
        "checkeval_seeds": checkeval_seeds,
        "unit_tests": unit_tests,
        "random_k": random_k,
        "all_candidates": all_candidates,
        "auto_rubric": auto_rubric,
    }
)
"""Builders of the judges, by name."""

KNOWN: Mapping[str, Callable[[Setup], Judge]] = MappingProxyType(
    {**JUDGES, OWN: own, MeasuresAlone.name: MeasuresAlone}
)
"""All judges by name: also ``own``, with a prompt of its own, and ``measures``, which asks no model."""

POOLED = ("random_k", "all_candidates", "auto_rubric")
"""Judges that ask the candidate questions."""


def check_names(names: str | Sequence[str]) -> list[str]:
    """Return the names of judges in a list or a text with commas. Raises InputError if one is unknown or named twice,
    or there is none."""
    found: list[str] = []
    for name in names.split(",") if isinstance(names, str) else names:
        known = name.strip().replace("-", "_")
        if known not in KNOWN:
            raise InputError(
                f"There is no judge '{name.strip()}' (there are: {', '.join(KNOWN)}).{did_you_mean(known, KNOWN)}"
            )
        if known in found:
            raise InputError(f"The judge '{known}' is named twice.")
        found.append(known)
    if not found:
        raise InputError(f"Name at least one judge: {', '.join(KNOWN)}.")
    return found
