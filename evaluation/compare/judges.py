"""Judges by name. What builds one says which paper it is from.

All raise InputError where the checklist or the candidates that they need are missing or leave a dimension out.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from itertools import islice, zip_longest
from types import MappingProxyType

from ...prompts.errors import InputError, did_you_mean
from . import checkeval, geval, poll
from .criteria import boolean_checklist
from .numbers import ExpectedNumbers, number_judge
from .protocol import Judge, Setup
from .questionnaire import Questionnaire, candidate_pool, needed_checklist, yes_no


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


def checkeval_seeds(setup: Setup) -> Questionnaire:
    """``checkeval_seeds``: CheckEval without its own questions: the checklist's, hard answers, the share of yes (Lee et al. 2025).

    It asks what ``binary`` asks, so beside it it buys nothing; the difference is what is made of the answers: no
    probabilities and no weights.
    """
    seeds = checkeval.evenly_weighted(needed_checklist(setup, "checkeval_seeds"))
    return yes_no("checkeval_seeds", setup, seeds, soft=False)


def unit_tests(setup: Setup) -> ExpectedNumbers:
    """``unit_tests``: each question is a unit test, scored by the expected value over 1 to 5 (LMUnit §3)."""
    return ExpectedNumbers("unit_tests", setup, setup.prompt, needed_checklist(setup, "unit_tests"))


def random_k(setup: Setup) -> Questionnaire:
    """``random_k``: k candidate questions in all, drawn at random, in turn from each dimension (EIG paper §4.5).

    The draw depends on the seed and the questions' ids alone, not on their order in the file.

    Raises:
        InputError: k is smaller than the number of dimensions, each of which needs a question, or was given and is larger than the pool.
    """
    pool = candidate_pool(setup, "random_k")
    options = setup.options
    dimensions = sorted({each.dimension for each in pool.questions if each.weight > 0})
    random.Random(options.seed).shuffle(dimensions)  # which has one question more
    dimensions.sort(key=lambda each: each not in setup.dimensions)  # others count for the overall score only
    if options.k < (needed := len(set(dimensions) & set(setup.dimensions))):
        raise InputError(
            f"k: random_k draws {options.k} questions in all, and each of the {needed} dimensions needs one. Give a larger "
            "k, or compare fewer dimensions with --dimension."
        )
    there = sum(each.weight > 0 for each in pool.questions)
    if options.k > there and "k" in options.model_fields_set:
        raise InputError(
            f"k: random_k draws {options.k} questions in all, and there are only {there} to draw from. Choose a smaller k."
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


JUDGES: Mapping[str, Callable[[Setup], Judge]] = MappingProxyType(
    {
        "binary": binary,
        "unieval": unieval,
        "geval": geval.GEval,
        "direct": direct,
        "cot": cot,
        "poll": poll.build,
        "checkeval": checkeval.CheckEval,
        "checkeval_seeds": checkeval_seeds,
        "unit_tests": unit_tests,
        "random_k": random_k,
        "all_candidates": all_candidates,
    }
)
"""What builds a judge from what all are given."""
OWN_WORDS = ("geval", "direct", "cot", "poll")
"""Judges that ask in words of their own: of the prompts they take only how the first one lays an example out."""

POOLED = ("random_k", "all_candidates")
"""Judges that ask the candidates."""


def check_names(names: str | Sequence[str]) -> list[str]:
    """The names, or a text with commas between them, as they are in the registry; hyphens are taken as underscores.

    Raises:
        InputError: One is not known or stands there twice, or there are none.
    """
    found: list[str] = []
    for name in names.split(",") if isinstance(names, str) else names:
        known = name.strip().replace("-", "_")
        if known not in JUDGES:
            raise InputError(
                f"There is no judge '{name.strip()}' (there are: {', '.join(JUDGES)}).{did_you_mean(known, JUDGES)}"
            )
        if known in found:
            raise InputError(f"The judge '{known}' is named twice.")
        found.append(known)
    if not found:
        raise InputError(f"Name at least one judge: {', '.join(JUDGES)}.")
    return found
