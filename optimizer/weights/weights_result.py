"""The result of learning: records, the content of ``weights.json``, sentences, and tables of that file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ...evaluation.raters.agreement_view import ceiling_lines
from ...evaluation.view import View
from ...prompts.formatting import Figure
from .evidence import Floats
from .score_tables import Level

if TYPE_CHECKING:
    from ...evaluation.view import Rows

SCHEMA = "askance.weights/1"
Conclusion = Literal["better", "worse", "cannot tell", "same", "undefined"]


@dataclass(frozen=True)
class RankOfTest:
    """Rank of one test among all tests by weight."""

    rank: int
    """1 is the heaviest; equal weights share the better rank."""
    low: int
    """Best rank in the interval."""
    high: int
    """Worst rank in the interval."""
    first_share: float
    """Share of resamples in which this test is the heaviest (equally heavy tests share)."""


@dataclass(frozen=True)
class Stability:
    """How far the ranking of tests by weight survives resampling."""

    ranks: tuple[RankOfTest, ...]
    """One for each test, in the order of the tests."""
    kendall: float | None
    """Mean Kendall tau-b between the ranking and the rankings of the resamples; None where a ranking is all ties."""
    reason: str | None = None
    """Why ``kendall`` is None."""


@dataclass(frozen=True)
class Power:
    """How many pairs would tell a difference from uniform weights (two-sided 5 % test, 80 % power)."""

    learner: str
    """Learner whose difference from uniform weights is meant."""
    observed: int | None
    """Pairs needed in all for the difference observed; None when there is none."""
    one_point: int | None
    """Pairs needed in all for a difference of one percentage point."""
    more: int | None
    """Pairs needed beyond the present ones for the difference observed; 0 when there are enough."""
    reason: str | None = None
    """Why a number is None."""


@dataclass(frozen=True)
class LearnerScore:
    """Figures of one learner on the held-out pairs or rated outputs; None, with a reason, where undefined."""

    name: str
    accuracy: float | None = None
    """Share of the decided pairs in the right order, a score tie counting half; None for ratings."""
    spearman: float | None = None
    """Correlation within the held-out part of each fold, averaged over folds whose ratings differ; None for pairs."""
    low: float | None = None
    high: float | None = None
    right: int | None = None
    score_ties: int | None = None
    wrong: int | None = None
    kendall: float | None = None
    difference: float | None = None
    """Accuracy or Spearman minus that of uniform weights on the same data."""
    difference_low: float | None = None
    difference_high: float | None = None
    pair_accuracy: float | None = None
    """Accuracy on held-out decided pairs beside ratings; None when there are no such pairs."""
    seconds: float | None = None
    """Mean processor time for learning once, choices included."""
    weights: tuple[float, ...] | None = None
    """Mean of the overall weights over the splits, sum 1."""
    reason: str | None = None
    """Why there are no numbers, or no interval."""

    @property
    def reached(self) -> float | None:
        """Accuracy or Spearman's correlation."""
        return self.accuracy if self.spearman is None else self.spearman


@dataclass(frozen=True)
class PairCounts:
    """Counts of the pairs: read, left out, decided, tied."""

    read: int
    left_out: int
    """Pairs without some score; never filled in."""
    missing_by_test: dict[str, int]
    decided: int
    data_ties: int
    """Pairs that people called a tie. They have no right order and count in no accuracy."""
    data_ties_tied_by_score: int
    """Data ties whose two scores tie as well, under the final weights."""
    mean_margin_data_ties: float | None
    """Mean absolute margin of the data ties under the final weights; None when there are none."""
    mean_margin_decided: float
    groups: int
    held_out: int


@dataclass(frozen=True)
class RatingCounts:
    """Counts of the rated outputs, and of the pairs beside them."""

    outputs: int
    without_order: int
    """Outputs held out in folds whose ratings are all the same: they have no right order and are in no correlation."""
    pairs: int
    left_out: int
    pairs_decided: int
    """Pairs in which people preferred one output."""
    pairs_left_out: int
    """Pairs without some score; never filled in."""
    pair_share: float
    """Share of the pairs in the objective; 0 for ratings alone."""


@dataclass(frozen=True, eq=False)
class SectionWeights:
    """The weights of one section or data set."""

    name: str
    decided: int
    weights: Floats
    low: Floats | None
    high: Floats | None


@dataclass(frozen=True, eq=False)
class WeighResult:
    """Learned weights, how sure they are, and whether they beat uniform weights."""

    method: str
    learner: str
    """The learner that the method settled on, e.g. ``robust (25% uniform)``."""
    reason: str
    """Why the method settled on this learner; empty when there was nothing to choose."""
    level: Level
    tests: tuple[str, ...]
    weights: Floats
    """Shape (tests,), sum 1, learned from everything."""
    low: Floats | None
    high: Floats | None
    no_interval: str | None
    """Why there are no intervals for the weights."""
    sections: tuple[SectionWeights, ...]
    stability: Stability | None
    learners: tuple[LearnerScore, ...]
    verdict: Conclusion
    """Whether the method beats uniform weights on held-out data beyond noise."""
    power: Power | None
    """None where weights were learned from ratings."""
    counts: PairCounts | RatingCounts
    folds: int
    """Number of splits. 1: one part was held out; more: everything was held out once."""
    resamples: int
    failed_resamples: int
    confidence: float
    seed: int
    raters: Mapping[str, Any] = field(default_factory=dict)
    """Agreement between raters and the ceiling, as ``rater_agreement`` in a result; only for several raters."""

    @property
    def held_out(self) -> LearnerScore:
        """The held-out score of the method itself."""
        return next(score for score in self.learners if score.name == self.method)

    @property
    def uniform(self) -> LearnerScore:
        """The held-out score of uniform weights."""
        return next(score for score in self.learners if score.name == "uniform")


def weights_report(result: WeighResult) -> dict[str, Any]:
    """Return the content of ``weights.json``, in JSON types. An undefined number is None, with a reason beside it."""
    head = {
        "schema": SCHEMA,
        "weights": _named(result.tests, result.weights),
        "conclusion": sentences(result),
        "beats_uniform": result.verdict,
        "method": result.method,
        "learner": result.learner,
        "intervals": _intervals(result.tests, result.low, result.high),
        "intervals_reason": result.no_interval,
        "learners": [_learner(result, score) for score in result.learners],
    }
    beside = {"rater_agreement": dict(result.raters)} if result.raters else {}
    tail = {**beside, "resamples": result.resamples, "confidence": result.confidence, "seed": result.seed}
    if isinstance(result.counts, RatingCounts):
        return head | asdict(result.counts) | tail
    return {
        **head,
        "learner_reason": result.reason,
        "level": result.level,
        "sections": {section.name: _section(result.tests, section) for section in result.sections},
        "ranking": _ranking(result),
        "held_out": _learner(result, result.held_out),
        "power": None if result.power is None else asdict(result.power),
        "pairs": asdict(result.counts),
        "folds": result.folds,
        "failed_resamples": result.failed_resamples,
        **tail,
    }


def sentences(result: WeighResult) -> list[str]:
    """Say whether the weights beat uniform ones, and what was counted."""
    counts = result.counts
    if isinstance(counts, RatingCounts):
        findings = [_verdict(result, counts.outputs - counts.without_order)]
        if result.learner == "uniform" != result.method:
            findings.append("The weights given are uniform: learning is not worth it on these ratings.")
        findings += [f"{line}." for line in ceiling_lines(result.raters)]
        return findings + _counted_ratings(counts)
    findings = [_verdict(result, counts.held_out)]
    if result.uniform.high is not None and result.uniform.high < 0.5 and (result.held_out.low or 0.0) <= 0.5:
        findings.append(
            "Uniform weights do worse than a coin, beyond noise, and learned ones are not shown to do better than it. "
            "See whether the pairs are turned round, so that `preferred` names what people rejected, or whether the "
            "tests score what is bad."
        )
    is_uniform = result.learner == "uniform"
    learned_sections = sum(np.ptp(section.weights) > 0 for section in result.sections) if is_uniform else 0
    if is_uniform and not learned_sections and result.method != "uniform":
        findings.append("The weights given are uniform: learning is not worth it on these pairs.")
    if learned_sections:
        findings.append(
            f"The overall weights are uniform; {learned_sections} of {len(result.sections)} {result.level}s have "
            "learned weights of their own."
        )
    if result.reason:
        findings.append(f"Chosen by cross-validation: {result.reason}.")
    findings += _power(result)
    findings += [] if learned_sections else [_heaviest(result)]
    findings += _counted_pairs(counts, result.held_out)
    findings += [f"The learner {score.name} gave nothing: {score.reason}" for score in result.learners if score.reason]
    return findings


_VERDICTS = {
    "better": "The learned weights beat uniform weights beyond noise.",
    "worse": "The learned weights are worse than uniform ones beyond noise; use uniform weights.",
    "cannot tell": "This is within noise: learned weights are not shown to beat uniform weights.",
}


def _verdict(result: WeighResult, held_out: int) -> str:
    score, uniform = result.held_out, result.uniform
    is_rated = isinstance(result.counts, RatingCounts)
    things = f"{held_out} held-out {'outputs' if is_rated else 'pairs'}"
    if result.method == "uniform" and not is_rated:
        return f"Uniform weights put {uniform.accuracy:.1%} of {things} in the right order."
    if score.reached is None or uniform.reached is None or score.difference is None:
        why = score.reason if score.reached is None else uniform.reason
        return f"Nothing can be said about {result.method} on {things}: {why}"
    if is_rated:
        facts = f"On {things} the score by {result.method} reaches a Spearman correlation of {score.spearman:.3f} with "
        facts += f"the ratings, uniform weights {uniform.spearman:.3f}"
    else:
        facts = f"On {things} {result.method} puts {score.accuracy:.1%} in the right order, "
        facts += f"uniform weights {uniform.accuracy:.1%}"
    if result.verdict == "same":
        every = "every output" if is_rated else "every pair"
        return f"{facts}: they order {every} alike, so learning weights bought nothing."
    gain = f"{score.difference:+.3f}" if is_rated else f"{100 * score.difference:+.1f} points"
    if score.difference_low is None or score.difference_high is None:
        return f"{facts}: a difference of {gain}, and whether that is noise is not known: {score.reason}."
    ends = (score.difference_low, score.difference_high)
    low, high = (f"{end:+.3f}" if is_rated else f"{100 * end:+.1f}" for end in ends)
    return (
        f"{facts}: a difference of {gain} ({result.confidence:.0%} interval {low} to {high}). "
        f"{_VERDICTS[result.verdict]}"
    )


def _power(result: WeighResult) -> list[str]:
    power = result.power
    if power is None or result.verdict in ("better", "worse") or power.one_point is None:
        return []
    small = f"a difference of one point would take about {power.one_point:,} decided pairs in all (80% power)"
    if power.observed is None:
        return [f"How many pairs would tell: {small}."]
    if power.more == 0:
        return [f"The pairs would suffice to tell a difference of the size seen with {power.learner}; {small}."]
    return [
        f"To tell a difference of the size seen with {power.learner} about {power.more:,} more decided pairs are "
        f"needed; {small}."
    ]


def _heaviest(result: WeighResult) -> str:
    if len(result.tests) == 1:
        return "There is one test, which has the whole weight."
    if np.ptp(result.weights) == 0:
        return f"All {len(result.tests)} tests have the same weight."
    order = sorted(range(len(result.tests)), key=lambda test: -result.weights[test])[:3]
    parts = []
    for test in order:
        span = (
            "" if result.low is None or result.high is None else f" ({result.low[test]:.2f} to {result.high[test]:.2f})"
        )
        parts.append(f"{result.tests[test]} {result.weights[test]:.2f}{span}")
    sentence = f"Heaviest tests (weights sum to 1): {', '.join(parts)}."
    if result.stability and result.stability.kendall is not None:
        agreement = f"Kendall {result.stability.kendall:.2f}"
        sentence += f" The ranking of the tests agrees with that of resamples at {agreement}."
    return sentence


def _counted_pairs(counts: PairCounts, score: LearnerScore) -> list[str]:
    findings = []
    if score.score_ties:
        where = "one held-out pair" if score.score_ties == 1 else f"{score.score_ties} held-out pairs"
        findings.append(f"In {where} the two scores tie; a tie counts as half right.")
    if counts.data_ties:
        pairs = "one pair" if counts.data_ties == 1 else f"{counts.data_ties} pairs"
        findings.append(
            f"People called {pairs} a tie, which has no right order and is in no accuracy (the scores tie in "
            f"{counts.data_ties_tied_by_score} of {counts.data_ties})."
        )
    if counts.left_out:
        worst = max(counts.missing_by_test, key=lambda test: counts.missing_by_test[test])
        findings.append(
            f"{counts.left_out} of {counts.read} pairs were left out because scores are missing "
            f"(most often {worst}, {counts.missing_by_test[worst]} times); nothing was filled in."
        )
    return findings


def _counted_ratings(counts: RatingCounts) -> list[str]:
    findings = []
    if counts.without_order:
        findings.append(
            f"{counts.without_order} outputs have no right order, as all that were held out with them are rated the "
            "same; they are in no correlation."
        )
    if counts.left_out:
        findings.append(f"{counts.left_out} outputs were left out because a score or the rating is missing.")
    read = counts.pairs + counts.pairs_left_out
    if counts.pairs_left_out:
        findings.append(
            f"{counts.pairs_left_out} of {read} pairs were left out because scores are missing; nothing was filled in."
        )
    if read and not counts.pairs_decided:
        findings.append(
            "In no pair with all scores did people prefer one output, so the weights are of the ratings alone."
        )
    return findings


def _named(tests: tuple[str, ...], values: Floats | tuple[float, ...]) -> dict[str, float]:
    return {test: float(value) for test, value in zip(tests, values, strict=True)}


def _intervals(tests: tuple[str, ...], low: Floats | None, high: Floats | None) -> dict[str, Any] | None:
    if low is None or high is None:
        return None
    return {
        test: {"low": float(lowest), "high": float(highest)}
        for test, lowest, highest in zip(tests, low, high, strict=True)
    }


def _section(tests: tuple[str, ...], section: SectionWeights) -> dict[str, Any]:
    return {
        "weights": _named(tests, section.weights),
        "intervals": _intervals(tests, section.low, section.high),
        "decided": section.decided,
    }


def _ranking(result: WeighResult) -> dict[str, Any]:
    if result.stability is None:
        return {"tests": None, "kendall": None, "reason": result.no_interval}
    ranks = zip(result.tests, result.stability.ranks, strict=True)
    return {
        "tests": {test: asdict(rank) for test, rank in ranks},
        "kendall": result.stability.kendall,
        "reason": result.stability.reason,
    }


_OF_PAIRS = ("accuracy", "low", "high", "right", "score_ties", "wrong", "seconds", "weights")
_OF_RATINGS = ("spearman", "low", "high", "kendall", "pair_accuracy")
_OF_BOTH = ("difference", "difference_low", "difference_high", "reason")


def _learner(result: WeighResult, score: LearnerScore) -> dict[str, Any]:
    own = _OF_RATINGS if isinstance(result.counts, RatingCounts) else _OF_PAIRS
    fields = {name: getattr(score, name) for name in ("name", *own, *_OF_BOTH)}
    if score.weights is not None and own is _OF_PAIRS:
        fields["weights"] = _named(result.tests, score.weights)
    return fields


def weights_view(data: Mapping[str, Any]) -> View:
    """Make tables and sentences from the content of ``weights.json``."""
    sections, ends = data.get("sections") or {}, data["intervals"] or {}
    ranks = (data.get("ranking") or {}).get("tests") or {}
    bias = data.get("position_bias")
    tables: dict[str, Callable[[], Rows]] = {
        "weights": lambda: [
            {"test": test, "weight": Figure.of({"value": weight, **ends.get(test, {})})}
            | {"place": Figure.of(ranks[test], ".0f", "rank") if test in ranks else None}
            | {name: _section_figure(section, test) for name, section in sections.items()}
            for test, weight in data["weights"].items()
        ],
        "learners": lambda: [_learner_row(each, data) for each in sorted(data["learners"], key=_best_first)],
        "sections": lambda: [{"section": name, "pairs": each["decided"]} for name, each in sections.items()],
        "order": lambda: [_order_row(*each) for each in ([*bias["tests"].items(), ("all", bias)] if bias else [])],
    }
    captions = {
        "weights": "the weights; they sum to 1, and each section that has its own has a column",
        "learners": f"the learners on the same {held_out(data)}; {data['method']} is used; differences are from "
        "uniform weights",
        "sections": "the sections, with their decided pairs; one with few leans on the others",
        "order": "does the order of the outputs decide?; mean probability that the output shown first is called the "
        "better one, 0.500 being no bias",
    }
    return View(f"{len(data['weights'])} tests", data["conclusion"], tables, tuple(captions), captions=captions)


def held_out(data: Mapping[str, Any]) -> str:
    """The data that learners are compared on, in words."""
    if "held_out" in data:
        return f"{data['pairs']['held_out']:,} held-out pairs"
    return f"{data['outputs'] - data.get('without_order', 0):,} held-out outputs"


def _section_figure(section: Mapping[str, Any], test: str) -> Figure:
    return Figure.of({"value": section["weights"][test], **(section["intervals"] or {}).get(test, {})})


def _best_first(row: Mapping[str, Any]) -> float:
    reached = row.get("accuracy", row.get("spearman"))
    return 2.0 if reached is None else -reached


def _learner_row(row: Mapping[str, Any], data: Mapping[str, Any]) -> dict[str, Any]:
    of_pairs = "held_out" in data
    form, main = (".1%", "accuracy") if of_pairs else (".3f", "spearman")
    gain = {"value": row["difference"], "low": row["difference_low"], "high": row["difference_high"]}
    return {
        "name": row["name"],
        main: Figure.of(row, form, main),
        "difference": None if row["name"] == "uniform" else Figure.of(gain, f"+{form}"),
        "kendall": None if row.get("kendall") is None else Figure(row["kendall"]),
        "pairs right": None if row.get("pair_accuracy") is None else Figure(row["pair_accuracy"], form=".1%"),
        **{name: row.get(name) for name in ("right", "wrong")},
        "tied": row.get("score_ties") or None,
        "seconds": row.get("seconds"),
    }


def _order_row(test: str, each: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "test": test,
        "first preferred": Figure(each["mean_p_first"]),
        "in both orders": each["both_orders"],
        "order decides": Figure(each["share_depends"], form=".1%"),
    }
