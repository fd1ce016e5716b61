"""Compute the numbers behind a selection: tables of answers and ratings, orders of questions, and what they tell.

No model is asked. Missing values stay missing: NaN in a table of probabilities, -1 in a table of codes.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ...agents.rating import Rating
from ...agents.requests import each_format, question_block
from ...evaluation.options import SelectOptions
from ...evaluation.raters.agreement import agreement_of_raters
from ...evaluation.verdict_table import tabulate
from ...models.budget import estimate_tokens
from ...models.replies.answer_words import scale_of
from ...prompts.checklist import Checklist, Computed, Sees
from ...prompts.examples import Example, documents, human_dimensions
from ...prompts.prompt import frame
from ...prompts.verdicts import Verdict
from ...stats.correlation import Correlations, correlate, spearman
from ...stats.differences import Difference, paired_difference
from ...stats.resampling import Resampling, tied
from .information import Floats, Information, best_alone, information_of, one_hot, worth_alone
from .inputs import Bought, Inputs, human_scores
from .joint import Codes, HardAnswers, chained_information, joint_order, occupied

Kind = Literal["soft", "hard", "split"]
Method = Literal["joint", "top"]


def answers_from_verdicts(
    verdicts: Sequence[Verdict], examples: Sequence[Example], candidates: Checklist, kind: Kind
) -> tuple[Floats, Floats]:
    """Return yes/no answers p(a|q,I), (examples, questions, 2), and their scores in [0, 1], (examples, questions).

    The answer that speaks against the output comes first. Replicates are averaged; one missing replicate makes the
    answer missing (NaN). ``kind`` is ``soft``: P(good); ``hard``: the answer; ``split``: whether P(good) is above the
    question's median. A measure has no answer, so it is always split.
    """
    scores = tabulate(examples, candidates, verdicts).scores(soft=kind != "hard")
    answers = np.stack([1.0 - scores, scores], axis=2)
    for place, question in enumerate(candidates.questions):
        if kind == "split" or isinstance(question, Computed):
            answers[:, place] = one_hot(equal_groups(scores[:, place], 2), 2)
    return answers, scores


def answers_from_ratings(
    ratings: Sequence[Rating], examples: Sequence[Example], candidates: Checklist, levels: int, *, hard: bool
) -> tuple[Floats, Floats]:
    """Return answers on a scale, and scores, as :func:`answers_from_verdicts` does. The score is the expected level
    mapped to [0, 1]. The scale of a question that looks for a fault is reversed."""
    table = _by_question(ratings, examples, candidates, levels)
    if hard:
        missing = np.isnan(table[:, :, 0])
        table = one_hot(np.where(missing, -1, np.nan_to_num(table).argmax(axis=2)), levels)
    scores: Floats = table @ np.arange(levels) / (levels - 1)
    return table, scores


def _by_question(ratings: Sequence[Rating], examples: Sequence[Example], candidates: Checklist, *shape: int) -> Floats:
    """Return the rating distributions by example, question and, for ratings given an answer, answer; NaN where
    missing."""
    table = np.full((len(examples), len(candidates.questions), *shape), np.nan)
    rows = {example.id: row for row, example in enumerate(examples)}
    columns = {question.id: column for column, question in enumerate(candidates.questions)}
    for rating in ratings:
        if rating.distribution is not None and rating.question is not None:
            given = () if rating.given is None else (int(rating.given),)
            table[(rows[rating.example], columns[rating.question], *given)] = rating.distribution
    return good_last(table, candidates)


def good_last(table: Floats, candidates: Checklist) -> Floats:
    """Order the answers, axis 2 of (examples, questions, answers, ...), from against the output to in its favour."""
    faults = np.array([question.is_fault for question in candidates.questions], dtype=np.bool_)
    turned = table.copy()
    turned[:, faults] = table[:, faults, ::-1]
    return turned


def conditional_table(
    ratings: Sequence[Rating], examples: Sequence[Example], candidates: Checklist, levels: int
) -> Floats:
    """Return p(y|I,q,a), shape (examples, questions, 2, levels), NaN where missing. The answer that speaks against the
    output comes first."""
    return _by_question(ratings, examples, candidates, 2, levels)


def judged_ratings(ratings: Sequence[Rating], levels: int) -> tuple[Floats, Floats]:
    """Return p(y|I), shape (examples, levels), and the expected rating, shape (examples,); NaN where missing."""
    table = np.full((len(ratings), levels), np.nan)
    for row, rating in enumerate(ratings):
        if rating.distribution is not None:
            table[row] = rating.distribution
    return table, table @ np.arange(1, levels + 1)


def equal_groups(values: Floats, groups: int) -> Codes:
    """Cut ``values`` into at most ``groups`` groups of about equal size; return ascending codes, shape (values,).

    Equal values stay together, in the group that the middle of their ranks falls into. If there are no more distinct
    values than groups, each value is a group. A missing value (NaN) gets -1.
    """
    codes = np.full(len(values), -1, dtype=np.int64)
    has_value = ~np.isnan(values)
    if not has_value.any():
        return codes
    _, inverse, counts = np.unique(tied(values[has_value]), return_inverse=True, return_counts=True)
    if len(counts) <= groups:
        codes[has_value] = inverse
        return codes
    middle = (np.cumsum(counts) - counts / 2) / counts.sum()
    _, group = np.unique(np.minimum((middle * groups).astype(np.int64), groups - 1), return_inverse=True)
    codes[has_value] = group[inverse]
    return codes


def gather(inputs: Inputs, bought: Bought, settings: SelectOptions) -> tuple[SampleTables, str]:
    """Return the tables, and in words the source of the ratings."""
    examples, candidates = inputs.examples, bought.candidates
    if settings.answer_levels == 2:
        answers, scores = answers_from_verdicts(bought.verdicts, examples, candidates, settings.answers)
    else:
        hard = settings.answers == "hard"
        answers, scores = answers_from_ratings(bought.degrees, examples, candidates, settings.answer_levels, hard=hard)
    people = name = None
    if human_dimensions(examples):
        name, people = human_scores(examples, settings.rating_dimension, settings.human_scale)
    if inputs.by_people:
        assert people is not None
        codes = equal_groups(people, settings.rating_levels)
        ratings = one_hot(codes, int(codes.max(initial=0)) + 1)
        source = f"people: {name}, in {ratings.shape[1]} groups, as equal in size as ties allow"
    else:
        ratings, expected = judged_ratings(bought.ratings, settings.rating_levels)
        codes = equal_groups(expected, settings.rating_levels)
        ways = sorted({str(each.source) for each in bought.ratings if each.source})
        low, high = scale_of(settings.rating_levels)
        source = f"the judge, {low} to {high}, from {' and '.join(ways) or 'nothing'}"
    given = conditional_table(bought.given, examples, candidates, settings.rating_levels) if bought.given else None
    return SampleTables(answers, scores, ratings, codes, people, given, documents(examples)), source


def hard_answers(answers: Floats, ratings: Codes, levels: int) -> HardAnswers:
    """Return the likeliest answers as codes; of equally likely ones the higher code, as in a verdict at one half."""
    options = answers.shape[2]
    missing = np.isnan(answers[:, :, 0])
    highest = options - 1 - np.nan_to_num(answers)[:, :, ::-1].argmax(axis=2)
    return HardAnswers(np.where(missing, -1, highest).astype(np.int64), ratings, options, levels)


_RESAMPLES = 1000
"""Resamples behind the intervals of correlations with people."""


def question_tokens(candidates: Checklist) -> Floats:
    """Estimate the tokens that each question adds to a request, with the words on how to answer. A measure adds
    none."""
    form = each_format(explained=False)
    asked = (
        0 if isinstance(each, Computed) else estimate_tokens(f"{question_block(each)}\n{form}")
        for each in candidates.questions
    )
    return np.array(list(asked), dtype=float)


def shared_tokens(inputs: Inputs, candidates: Checklist) -> dict[Sees, float]:
    """Estimate the tokens of the text before and after a question, averaged over the sample, by what questions see."""
    found: dict[Sees, float] = {}
    for sees in dict.fromkeys(each.sees for each in candidates.asked):
        framings = [frame(inputs.prompt, example, sees) for example in inputs.examples]
        texts = [f"{each.prefix}{each.after}" for each in framings]
        found[sees] = float(np.mean([estimate_tokens(text) for text in texts]))
    return found


def less_all_questions(
    tables: SampleTables, order: Sequence[int], seed: int
) -> list[tuple[float | None, Difference | None]]:
    """Return Spearman with people for the first 1, 2, ... questions on the whole sample, and the difference from
    all."""
    if tables.human is None:
        return [(None, None)] * len(order)
    means = np.cumsum(tables.scores[:, list(order)], axis=1) / np.arange(1, len(order) + 1)
    resampling = Resampling(tables.groups, _RESAMPLES, seed=seed)
    return [
        (spearman(part, tables.human).value, paired_difference(means[:, -1], part, tables.human, resampling))
        for part in means.T
    ]


def agreement_with_people(tables: SampleTables, chosen: Sequence[int], seed: int) -> dict[str, Correlations]:
    """Return correlations with people of the chosen and of all questions, on the whole sample; empty without
    ratings."""
    if tables.human is None:
        return {}
    sets: dict[str, list[Any]] = {"chosen": list(chosen), "all": list(range(tables.scores.shape[1]))}
    return {
        name: correlate(
            tables.scores[:, places].mean(axis=1), tables.human, Resampling(tables.groups, _RESAMPLES, seed=seed)
        )
        for name, places in sets.items()
    }


def raters_of_sample(examples: Sequence[Example], settings: SelectOptions) -> dict[str, Any]:
    """Return the agreement between raters and the ceiling, for the human dimensions behind the overall rating; empty
    where each output has one rating."""
    rated = human_dimensions(examples)
    if not rated:
        return {}
    name, _ = human_scores(examples, settings.rating_dimension, settings.human_scale)
    wanted = [name] if name in rated else rated
    found = agreement_of_raters(examples, wanted, Resampling(documents(examples), _RESAMPLES, seed=settings.seed))
    return {} if found is None else found.by_dimension()


@dataclass(frozen=True, eq=False)
class SampleTables:
    """Answers and ratings of the sampled examples."""

    answers: Floats
    """p(a|q,I), (examples, questions, answers)."""
    scores: Floats
    """Worth of each answer in a score, in [0, 1], (examples, questions)."""
    ratings: Floats
    """p(y|I), (examples, levels)."""
    codes: Codes
    """Group code of each rating, (examples,), -1 where missing. Groups, at most one a level, are about equal in
    size."""
    human: Floats | None
    """Human scores that questionnaires are correlated with, (examples,); None where there are none."""
    conditional: Floats | None = None
    """p(y|I,q,a), (examples, questions, answers, levels), for the EIG example by example."""
    groups: Sequence[Hashable] | None = None
    """Document of each example, where some share one. Examples of one document stay in one half."""

    @property
    def hard(self) -> HardAnswers:
        """The likeliest answers with the group of the rating."""
        return hard_answers(self.answers, self.codes, max(self.ratings.shape[1], int(self.codes.max(initial=0)) + 1))


@dataclass(frozen=True, eq=False)
class Curve:
    """Figures of the first 1, 2, ... questions of one order; each array has shape (questions,)."""

    order: tuple[int, ...]
    gains: Floats
    """Bits by which each question was chosen."""
    information: Floats
    """Bits that the first k questions tell together, on the examples that chose them."""
    held_out: Floats
    """Bits on halves of the sample that did not choose the questions, averaged; NaN where a half is too small."""
    correlation: Floats
    """Spearman of the mean over k questions with people on the same halves, averaged; NaN where undefined."""
    per_combination: Floats
    """Examples per combination of answers that occurs."""


def analyse(
    tables: SampleTables,
    k: int,
    *,
    costs: Floats | None = None,
    halves: int = 5,
    seed: int = 42,
) -> tuple[Information, dict[Method, Curve]]:
    """Measure the questions, order them by both methods, and measure every prefix of both orders.

    The joint order is chosen for a questionnaire of ``k`` questions. With ``costs`` information per cost decides. Each
    half of every random halving chooses questions, which are then measured on the other half.
    """
    information = information_of(tables.answers, tables.ratings, tables.conditional, seed=seed)
    orders = question_orders(tables, information, costs, k)
    held_out_bits, correlations = held_out(tables, costs, halves, seed, k)
    data = tables.hard
    curves: dict[Method, Curve] = {
        method: Curve(
            tuple(order),
            gains,
            chained_information(data, order),
            held_out_bits[method],
            correlations[method],
            np.array(occupied(data, order)),
        )
        for method, (order, gains) in orders.items()
    }
    return information, curves


def compare_sets(curves: dict[Method, Curve], k: int) -> str:
    """Compare the k questions chosen together with the k best one by one, in words."""
    joint, top = curves["joint"], curves["top"]
    if set(joint.order[:k]) == set(top.order[:k]):
        return f"the {k} best one by one are the {k} that tell most together"
    held_out_bits = [curve.held_out[k - 1] for curve in (joint, top)]
    comparison = (
        f"together they tell {joint.information[k - 1]:.3f} bits on the sample, the {k} best one by one "
        f"{top.information[k - 1]:.3f}"
    )
    if np.isnan(held_out_bits).any():
        return f"{comparison} (it is too small to be halved)"
    return f"{comparison} (on held-out halves {held_out_bits[0]:.3f} and {held_out_bits[1]:.3f})"


def question_orders(
    tables: SampleTables, information: Information, costs: Floats | None, k: int
) -> dict[Method, tuple[list[int], Floats]]:
    """Return the questions' places in the order of each method, with the bits by which each was chosen."""
    worth = worth_alone(information.bits, costs)
    top = best_alone(worth)
    joint, gains = joint_order(tables.hard, worth, k, costs=costs)
    return {"joint": (joint, np.array(gains)), "top": (top, information.bits[top])}


def held_out(
    tables: SampleTables, costs: Floats | None, halves: int, seed: int, k: int
) -> tuple[dict[Method, Floats], dict[Method, Floats]]:
    """Return information and correlation of every prefix on the half that did not choose it, averaged over halvings."""
    questions = tables.answers.shape[1]
    bits: dict[Method, list[Floats]] = {"joint": [], "top": []}
    correlations: dict[Method, list[Floats]] = {"joint": [], "top": []}
    for chosen_on, looked_at in halvings(tables, halves, seed):
        choosing_half, measured_half = rows_of(tables, chosen_on), rows_of(tables, looked_at)
        if not (choosing_half.codes >= 0).any() or not (measured_half.codes >= 0).any():
            continue
        for method, (order, _) in question_orders(
            choosing_half,
            information_of(choosing_half.answers, choosing_half.ratings, choosing_half.conditional, seed=seed),
            costs,
            k,
        ).items():
            bits[method].append(chained_information(measured_half.hard, order))
            correlations[method].append(_correlations(measured_half, order))
    nothing = np.full(questions, np.nan)
    return (
        {method: np.mean(rows, axis=0) if rows else nothing for method, rows in bits.items()},
        {method: np.mean(rows, axis=0) if rows else nothing for method, rows in correlations.items()},
    )


def halvings(tables: SampleTables, halves: int, seed: int) -> list[tuple[NDArray[np.bool_], NDArray[np.bool_]]]:
    """Return each random halving, both ways round, as two masks. Examples of one document are never on both sides."""
    size = len(tables.codes)
    names = list(range(size)) if tables.groups is None else list(tables.groups)
    places = {name: place for place, name in enumerate(dict.fromkeys(names))}
    group = np.array([places[name] for name in names])
    rng = np.random.default_rng(seed)
    pairs = []
    for _ in range(halves):
        shuffled = rng.permutation(len(places))
        first = np.isin(group, shuffled[: len(places) // 2])
        pairs += [(first, ~first), (~first, first)]
    return pairs


def rows_of(tables: SampleTables, rows: NDArray[np.bool_]) -> SampleTables:
    """Return some of the examples, by a mask of shape (examples,)."""
    return SampleTables(
        tables.answers[rows],
        tables.scores[rows],
        tables.ratings[rows],
        tables.codes[rows],
        None if tables.human is None else tables.human[rows],
        None if tables.conditional is None else tables.conditional[rows],
    )


def _correlations(tables: SampleTables, order: Sequence[int]) -> Floats:
    """Return Spearman with people for the mean over the first 1, 2, ... questions; NaN where undefined."""
    if tables.human is None:
        return np.full(len(order), np.nan)
    sums = np.cumsum(tables.scores[:, list(order)], axis=1)
    values = [spearman(column, tables.human).value for column in sums.T]
    return np.array([np.nan if value is None else value for value in values])
