"""Buy scores for preference pairs and rated outputs from a judge, and measure the effect of the order of two outputs.

Either the judge sees each output alone, with the same checklist for both outputs of a pair. Or it sees both outputs and
says for each test which does better (``pairwise``), in one order or in both (``swap``). Both orders show whether the
judge's choice depends on the order.
"""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from ...agents.pairwise import AS_IT_IS, SWAPPED, PairEvaluator, ordered_examples, pair_id, pairwise_prompt
from ...evaluation.evaluate import EvaluationJob, prepare
from ...evaluation.evaluation_result import Evaluation
from ...evaluation.scoring import Scale, complete_mean, mean_score, worth
from ...models.base import Model
from ...models.progress import Watcher
from ...models.session import ModelOptions
from ...prompts.checklist import Checklist, refuse_computed
from ...prompts.errors import InputError
from ...prompts.examples import Example, named_document, without_answers
from ...prompts.field_map import FieldMap, check_field_map, numbered_id
from ...prompts.formatting import count
from ...prompts.human_feedback import Labels, is_missing, known_ratings, parse_labels
from ...prompts.mapping.table import proposes_mapping
from ...prompts.preferences import KNOWN_FIELDS, SIDES, Preference, preference_of, with_our_names
from ...prompts.prompt import Prompt
from ...prompts.raters import rater_columns
from ...prompts.rows import source_rows
from ...prompts.verdicts import Verdict
from .score_tables import (
    PreferenceScores,
    RatingScores,
    context_name,
    name_of,
    on_scale,
    preference_scores,
    rated_dimension,
    rating_scores,
)

logger = logging.getLogger(__name__)

TEXTS = ("id", "input", "output_a", "output_b", "prompt", "chosen", "rejected")


@dataclass(frozen=True)
class OrderEffect:
    """Effect of the order of the outputs on one test, or on all."""

    mean_p_first: float | None
    """Mean probability that the output shown first is called the better one; 0.5 without bias where every pair is shown
    in both orders. None where there is no choice."""
    both_orders: int
    """Comparisons that were made in both orders."""
    depend: int
    """Comparisons with different winners in the two orders. No winner (0.5) in only one order counts as different."""

    @property
    def share(self) -> float | None:
        """Share of the comparisons whose winner depends on the order; None where none was made in both orders."""
        return self.depend / self.both_orders if self.both_orders else None

    def to_dict(self) -> dict[str, Any]:
        """The fields in ``weights.json``."""
        return {
            "mean_p_first": self.mean_p_first,
            "both_orders": self.both_orders,
            "depend_on_order": self.depend,
            "share_depends": self.share,
        }


@dataclass(frozen=True)
class PositionBias:
    """Effect of the order of the outputs, over all tests and by test."""

    swapped: bool
    """Whether the pairs were shown in both orders."""
    overall: OrderEffect
    """Over all comparisons of all tests."""
    by_test: Mapping[str, OrderEffect]
    by_pair: OrderEffect
    """Over pairs; the mean over all tests decides the winner of a pair."""

    def to_dict(self) -> dict[str, Any]:
        """The fields in ``weights.json``."""
        reason = None if self.overall.both_orders else _no_share(self)
        tests = {test: effect.to_dict() for test, effect in self.by_test.items()}
        pairs = self.by_pair.to_dict()
        return {"swapped": self.swapped, **self.overall.to_dict(), "reason": reason, "pairs": pairs, "tests": tests}

    def sentences(self) -> list[str]:
        """Describe the effect of the order of the outputs."""
        effect = self.overall
        if effect.mean_p_first is None:
            return [f"Nothing can be said about position bias: {_no_share(self)}."]
        first = f"The output shown first is called the better one with a mean probability of {effect.mean_p_first:.2f}"
        pairs = f"{self.by_pair.depend} of {self.by_pair.both_orders}"
        if effect.share is None:
            return [f"{first}. Whether the order decides is not known: {_no_share(self)}."]
        return [
            f"{first} (0.50 without position bias); in {effect.share:.0%} of the {effect.both_orders} comparisons made "
            f"in both orders the winner depends on the order, and so it does in {pairs} pairs by the mean over all "
            "tests. Scores are the means of both orders."
        ]


def position_bias(
    pairs: Sequence[str], checklist: Checklist, p_first: Mapping[tuple[str, str], float | None], *, swap: bool
) -> PositionBias:
    """Compare the choices made in both orders. ``p_first`` maps the id of a pair in one order and a test to the
    probability that the output shown first is called the better one; None where no answer came."""
    orders = (AS_IT_IS, SWAPPED) if swap else (AS_IT_IS,)
    tests = _ids(checklist)
    by_test = {test: [[p_first[pair_id(pair, order), test] for order in orders] for pair in pairs] for test in tests}
    by_pair = [
        [complete_mean([p_first[pair_id(pair, order), test] for test in tests]) for order in orders] for pair in pairs
    ]
    everything = [choices for comparisons in by_test.values() for choices in comparisons]
    effects = {test: _effect(comparisons) for test, comparisons in by_test.items()}
    return PositionBias(swap, _effect(everything), effects, _effect(by_pair))


def _effect(comparisons: Iterable[Sequence[float | None]]) -> OrderEffect:
    """Return the effect over comparisons: P(first) with output a first and, if made, with output b first."""
    comparisons = list(comparisons)
    both_orders = [(p[0], p[1]) for p in comparisons if len(p) == 2 and p[0] is not None and p[1] is not None]
    depend = sum(_winner(as_it_is) != _winner(1.0 - swapped) for as_it_is, swapped in both_orders)
    mean = (
        mean_score(p for pair in both_orders for p in pair)
        if both_orders
        else mean_score(p for each in comparisons for p in each)
    )
    return OrderEffect(mean, len(both_orders), depend)


def _winner(p_a: float) -> str | None:
    return "a" if p_a > 0.5 else "b" if p_a < 0.5 else None


def _no_share(bias: PositionBias) -> str:
    return "no comparison has an answer in both orders" if bias.swapped else "--swap shows each pair in both orders"


@dataclass(frozen=True)
class PairsJob:
    """Checked preference pairs that are to be judged."""

    pairs: Sequence[Preference]
    asked: EvaluationJob
    """The evaluation of the outputs, each alone or both of a pair at once."""
    pairwise: bool
    swap: bool

    @property
    def unscored(self) -> PreferenceScores:
        """The pairs before they are judged, with one test that scores all outputs alike."""
        return _pair_scores(self.pairs, ["unscored"], lambda *_: 0.0)

    def run(self, watcher: Watcher | None = None) -> tuple[PreferenceScores, Evaluation, PositionBias | None]:
        """Judge all pairs, in both orders with ``swap``. The position bias is None unless ``pairwise``. Raises as
        :func:`~askance.evaluation.evaluate.evaluate`."""
        found, questions, soft = self.asked.run(watcher), self.asked.checklist, self.asked.settings.soft
        if not self.pairwise:
            return separate_scores(self.pairs, questions, found.verdicts, soft=soft), found, None
        p_first = cells(found.verdicts, questions, soft=soft)
        bias = position_bias([pair.id for pair in self.pairs], questions, p_first, swap=self.swap)
        return pairwise_scores(self.pairs, questions, p_first, swap=self.swap), found, bias


def prepare_pairs(
    path: str | Path,
    *,
    checklist: str | Path | Checklist,
    model: str | Model,
    prompt: str | Path | Prompt | None = None,
    pairwise: bool = False,
    swap: bool = False,
    **options: Any,
) -> PairsJob:
    """Read pairs to judge. A score is P(yes) or the expected score of an output, or the answer with ``scores="hard"``.

    A question that looks for a fault (``good: no``) scores 1 minus that; ``pairwise`` refuses such questions. With
    ``pairwise`` the judge sees both outputs (in both orders with ``swap``). Output a then scores the probability that
    it is called the better one, and output b 1 minus this. A pair with a missing verdict is left out and counted.
    ``options`` are those of :func:`~askance.evaluation.evaluate.evaluate`; ``limit`` counts pairs. Raises InputError,
    which names the file, line and field of the first problem."""
    seed = options.get("seed", ModelOptions.model_fields["seed"].default)
    renamed, labels = options.pop("pair_field", {}), options.get("labels")
    pairs = load_pairs(path, limit=options.pop("limit", None), seed=seed, fields=renamed, labels=labels)
    if not pairwise:
        examples = [example for pair in pairs for example in separate_examples(pair)]
        return PairsJob(pairs, prepare(examples, checklist, model, prompt, options), pairwise, swap)
    examples = [example for pair in pairs for example in ordered_examples(pair, swap=swap)]
    both = pairwise_prompt() if prompt is None else prompt
    job = prepare(examples, checklist, model, both, options, PairEvaluator)
    refuse_computed(job.checklist, "With --pairwise the judge says which output does better")
    if fault := next(iter(job.checklist.faults), None):
        raise InputError(
            f"With --pairwise the judge says which output does better on a question, which is open to doubt where yes "
            f"is a fault ('{fault}' has good: no). Leave out --pairwise, or reword it so that yes is good."
        )
    return PairsJob(pairs, job, pairwise, swap)


@dataclass(frozen=True)
class RatingsJob:
    """Checked rated outputs that are to be judged."""

    examples: Sequence[Example]
    rated: str
    """The human dimension that is the rating."""
    asked: EvaluationJob
    """The evaluation of the outputs that have a rating, without their ratings; other outputs are not judged."""
    human_scale: Scale | None = None
    """The worst and the best rating; None where nobody named them."""

    @property
    def unscored(self) -> RatingScores:
        """The outputs before they are judged, with one test that scores all outputs alike."""
        return self._scores(["unscored"], lambda *_: 0.0)

    def run(self, watcher: Watcher | None = None) -> tuple[RatingScores, Evaluation]:
        """Judge all outputs. Raises as :func:`~askance.evaluation.evaluate.evaluate`."""
        found, questions = self.asked.run(watcher), self.asked.checklist
        table = cells(found.verdicts, questions, soft=self.asked.settings.soft)
        return self._scores(_ids(questions), lambda *key: table.get(key)), found

    def _scores(self, tests: Sequence[str], score: Callable[[str, str], float | None]) -> RatingScores:
        return rating_scores(
            [example.id for example in self.examples],
            tests,
            [[score(example.id, test) for test in tests] for example in self.examples],
            on_scale(
                [each.human_score(self.rated) for each in self.examples],
                [(f"Example '{each.id}'", known_ratings(each.human.get(self.rated, ()))) for each in self.examples],
                self.human_scale,
            ),
            groups=[
                context_name(each.metadata.get("group"), named_document(each.metadata), each.input, each.id)
                for each in self.examples
            ],
            raters=rater_columns(self.examples, self.rated),
        )


def prepare_ratings(
    path: str | Path,
    *,
    checklist: str | Path | Checklist,
    model: str | Model,
    prompt: str | Path | Prompt | None = None,
    dimension: str | None = None,
    human_scale: Scale | None = None,
    **options: Any,
) -> RatingsJob:
    """Read rated outputs to judge. ``dimension`` is the human dimension to take as the rating (by default the only one,
    or ``overall``), and ``human_scale`` the worst and the best score on it. An output without a rating is not judged.
    Raises InputError for bad data, and where people rated several dimensions and none is named."""
    job = prepare(path, checklist, model, prompt, options)
    kept = [without_answers(example, job.checklist) for example in job.examples]
    rated = rated_dimension((example.human for example in kept), dimension, str(path))
    asked = [each.model_copy(update={"human": {}}) for each in job.examples if each.human_score(rated) is not None]
    return RatingsJob(job.examples, rated, replace(job, examples=asked), human_scale)


@proposes_mapping(pairs=True)
def load_pairs(
    source: Any,
    *,
    limit: int | None = None,
    seed: int = 42,
    fields: FieldMap | None = None,
    labels: Labels | None = None,
) -> list[Preference]:
    """Read preference pairs whose outputs are to be judged, from a file, the Hugging Face hub, a data frame, or rows.

    A row has ``id``, ``input``, ``output_a``, ``output_b`` and ``preferred``; or ``chosen`` and ``rejected`` with a
    ``prompt``. In the second form an ``id`` is not needed, and the seed decides which output is shown as a
    (:func:`~askance.prompts.preferences.preference_of`). ``fields`` renames columns; ``labels`` are further words for
    the preferred output, e.g. ``{"a": ["left"]}``. Raises InputError, which names the file, line and field of the first
    problem."""
    pairs: list[Preference] = []
    seen: dict[str, str] = {}
    unnamed: Counter[str] = Counter()
    fields, labels = fields or {}, parse_labels(labels or {})
    check_field_map(fields, KNOWN_FIELDS)
    texts = {*TEXTS, *(str(column) for ours, column in fields.items() if ours in TEXTS)}
    for place, row in islice(_one_rejected_each(source_rows(source, texts, say=logger.warning)), limit):
        if not isinstance(row, Mapping):
            raise InputError(f"{place}: a mapping from field to value is needed, not {type(row).__name__}.")
        row = with_our_names(row, fields, labels)
        pair = preference_of(row, place, seed=seed)
        if is_missing(row.get("id")):  # the same texts may be there more than once
            name = numbered_id(pair.id, unnamed)
            if name != pair.id:
                pair = preference_of({**row, "id": name}, place, seed=seed)
        if pair.id in seen:
            raise InputError(f"{place}: the id '{pair.id}' was used before, in {seen[pair.id].rpartition(', ')[2]}.")
        seen[pair.id] = place
        pairs.append(pair)
    if not pairs:
        raise InputError(f"{name_of(source)}: there are no pairs in it.")
    if unnamed:
        logger.warning("A hash of the texts is the id of %s, which had none.", count(unnamed.total(), "pair"))
    return pairs


def _one_rejected_each(rows: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Yield the rows. A row whose ``rejected`` is a list (best of n) becomes one row for each rejected text."""
    for place, row in rows:
        rejected_texts = row.get("rejected") if isinstance(row, Mapping) else None
        if (
            not isinstance(rejected_texts, (list, tuple))
            or not rejected_texts
            or not all(isinstance(each, str) for each in rejected_texts)
        ):
            yield place, row
            continue
        for number, other in enumerate(rejected_texts, 1):
            name = {} if is_missing(row.get("id")) else {"id": f"{row['id']}#{number}"}
            yield place, {**row, "rejected": other, **name}


def holds_pairs(source: Any, fields: FieldMap | None = None) -> bool:
    """Whether the first row of a file, a data frame or rows is a pair of outputs. False for standard input and
    iterators, which are not read. Raises InputError where the source cannot be read."""
    if str(source) == "-" or isinstance(source, Iterator):
        return False
    _, row = next(iter(source_rows(source)), ("", None))
    if not isinstance(row, Mapping):
        return False
    names = {*row, *(ours for ours, column in (fields or {}).items() if column in row)}
    return names >= set(SIDES) or names >= {"output_a", "output_b"}


def separate_examples(pair: Preference) -> list[Example]:
    """Return both outputs of a pair as examples, each to be judged alone."""
    return [
        Example(id=f"{pair.id}/{side}", input=pair.input, output=output)
        for side, output in (("a", pair.output_a), ("b", pair.output_b))
    ]


def separate_scores(
    pairs: Sequence[Preference], questions: Checklist, verdicts: Iterable[Verdict], *, soft: bool
) -> PreferenceScores:
    """Return the scores of pairs from the verdicts on :func:`separate_examples`."""
    table = cells(verdicts, questions, soft=soft)
    return _pair_scores(pairs, _ids(questions), lambda pair, test, side: table[f"{pair}/{side}", test])


def pairwise_scores(
    pairs: Sequence[Preference], questions: Checklist, p_first: Mapping[tuple[str, str], float | None], *, swap: bool
) -> PreferenceScores:
    """Return the scores of pairs from the choices in each order; for ``p_first`` and ``swap`` see
    :func:`position_bias`."""

    def score(pair: str, test: str, side: str) -> float | None:
        orders = [(p_first[pair_id(pair, AS_IT_IS), test], side == "a")]
        orders += [(p_first[pair_id(pair, SWAPPED), test], side == "b")] if swap else []
        return complete_mean([p if first or p is None else 1.0 - p for p, first in orders])

    return _pair_scores(pairs, _ids(questions), score)


def cells(
    verdicts: Iterable[Verdict], questions: Checklist | None = None, *, soft: bool
) -> dict[tuple[str, str], float | None]:
    """Map each example and test to the worth of its verdicts, averaged over replicates; None where one is missing.
    Without ``questions``, yes is the good answer to every question."""
    value = worth(questions, soft=soft)
    found: dict[tuple[str, str], list[float | None]] = defaultdict(list)
    for verdict in verdicts:
        found[verdict.example, verdict.question].append(value(verdict))
    return {key: complete_mean(values) for key, values in found.items()}


def _ids(questions: Checklist) -> list[str]:
    return [question.id for question in questions.questions]


def context_of(pair: Preference) -> str:
    """Name the context of a pair (:func:`~.score_tables.context_name`). Pairs of one context are never divided."""
    return context_name(pair.group, pair.document, pair.input, pair.id)


def _pair_scores(
    pairs: Sequence[Preference], tests: Sequence[str], score: Callable[[str, str, str], float | None]
) -> PreferenceScores:
    return preference_scores(
        [pair.id for pair in pairs],
        tests,
        [[score(pair.id, test, "a") for test in tests] for pair in pairs],
        [[score(pair.id, test, "b") for test in tests] for pair in pairs],
        [pair.preferred for pair in pairs],
        groups=[context_of(pair) for pair in pairs],
        sections=[pair.section for pair in pairs],
        datasets=[pair.dataset for pair in pairs],
    )
