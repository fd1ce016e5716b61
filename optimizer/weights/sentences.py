"""What was learned: as the content of a file, as sentences, and as tables of that file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from ...evaluation.shown import View
from ...prompts.words import Figure
from .from_ratings import RatingWeights
from .learned import LearnerScore, SectionWeights, WeighResult
from .pairs import Floats

if TYPE_CHECKING:
    from ...evaluation.shown import Rows

SCHEMA = "askance.weights/1"
_RATING_VERDICTS = {
    "better": "learned weights beat uniform weights beyond noise",
    "worse": "learned weights are worse than uniform ones beyond noise",
    "cannot tell": "within noise, so learned weights are not shown to beat uniform weights",
    "same": "both rank every output alike",
    "undefined": "nothing can be said",
}


def weights_report(result: WeighResult) -> dict[str, Any]:
    """The content of ``weights.json``: JSON types only, an undefined number being None with a reason beside
    it.
    """
    return {
        "schema": SCHEMA,
        "weights": _named(result.tests, result.weights),
        "conclusion": sentences(result),
        "beats_uniform": result.verdict,
        "method": result.method,
        "learner": result.learner,
        "learner_reason": result.reason,
        "level": result.level,
        "intervals": _intervals(result.tests, result.low, result.high),
        "intervals_reason": result.no_interval,
        "sections": {section.name: _section(result.tests, section) for section in result.sections},
        "ranking": _ranking(result),
        "held_out": _learner(result.tests, result.held_out),
        "learners": [_learner(result.tests, score) for score in result.learners],
        "power": asdict(result.power),
        "pairs": asdict(result.counts),
        "folds": result.folds,
        "resamples": result.resamples,
        "failed_resamples": result.failed_resamples,
        "confidence": result.confidence,
        "seed": result.seed,
    }


def sentences(result: WeighResult) -> list[str]:
    """What was found, in words: whether the weights beat uniform ones, how many pairs would tell, and what
    was counted.
    """
    said = [_verdict(result)]
    uniform = next(each for each in result.learners if each.name == "uniform")
    if uniform.high is not None and uniform.high < 0.5 and (result.held_out.low or 0.0) <= 0.5:
        said.append(
            "Uniform weights do worse than a coin, beyond noise, and learned ones are not shown to do better than it. See whether the "
            "pairs are turned round, so that `preferred` names what people rejected, or whether the tests score what is bad."
        )
    is_uniform = result.learner == "uniform"
    apart = sum(np.ptp(section.weights) > 0 for section in result.sections) if is_uniform else 0
    if is_uniform and not apart and result.method != "uniform":
        said.append("The weights given are uniform: learning is not worth it on these pairs.")
    if apart:
        said.append(
            f"The overall weights are uniform; {apart} of {len(result.sections)} {result.level}s have learned weights of their own."
        )
    if result.reason:
        said.append(f"Chosen by cross-validation: {result.reason}.")
    said += _power(result)
    said += [] if apart else [_heaviest(result)]
    said += _counted(result)
    said += [f"The learner {score.name} gave nothing: {score.failure}" for score in result.learners if score.failure]
    return said


def _verdict(result: WeighResult) -> str:
    score, level = result.held_out, f"{result.confidence:.0%}"
    uniform = next(each for each in result.learners if each.name == "uniform")
    if result.method == "uniform":
        share = f"{uniform.accuracy:.1%} of {result.counts.held_out} held-out pairs"
        return f"Uniform weights put {share} in the right order."
    if result.verdict == "undefined" or score.difference is None:
        return f"Nothing can be said about {result.method} on held-out pairs: {score.failure}"
    facts = (
        f"On {result.counts.held_out} held-out pairs {result.method} puts {score.accuracy:.1%} in the "
        "right order, uniform "
        f"weights {uniform.accuracy:.1%}"
    )
    if result.verdict == "same":
        return f"{facts}: they order every pair alike, so learning weights bought nothing."
    gain = (
        f"{facts}: a difference of {100 * score.difference:+.1f} points "
        f"({level} interval {_points(score.difference_low)} to {_points(score.difference_high)})."
    )
    return {
        "better": f"{gain} The learned weights beat uniform weights beyond noise.",
        "worse": f"{gain} The learned weights are worse than uniform ones beyond noise; use uniform weights.",
        "cannot tell": f"{gain} This is within noise: learned weights are not shown to beat uniform weights.",
    }[result.verdict]


def _points(share: float | None) -> str:
    return "undefined" if share is None else f"{100 * share:+.1f}"


def _power(result: WeighResult) -> list[str]:
    power = result.power
    if result.verdict in ("better", "worse") or power.one_point is None:
        return []
    small = f"a difference of one point would take about {power.one_point:,} decided pairs in all (80% power)"
    if power.observed is None:
        return [f"How many pairs would tell: {small}."]
    if power.more == 0:
        return [f"The pairs would suffice to tell a difference of the size seen with {power.learner}; {small}."]
    return [
        f"To tell a difference of the size seen with {power.learner} about {power.more:,} more decided "
        "pairs are "
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
    said = f"Heaviest tests (weights sum to 1): {', '.join(parts)}."
    if result.stability and result.stability.kendall is not None:
        agreement = f"Kendall {result.stability.kendall:.2f}"
        said += f" The ranking of the tests agrees with that of resamples at {agreement}."
    return said


def _counted(result: WeighResult) -> list[str]:
    counts, score = result.counts, result.held_out
    said = []
    if score.score_ties:
        where = "one held-out pair" if score.score_ties == 1 else f"{score.score_ties} held-out pairs"
        said.append(f"In {where} the two scores tie; a tie counts as half right.")
    if counts.data_ties:
        pairs = "one pair" if counts.data_ties == 1 else f"{counts.data_ties} pairs"
        said.append(
            f"People called {pairs} a tie, which has no right order and is in no accuracy (the scores tie in "
            f"{counts.data_ties_tied_by_score} of {counts.data_ties})."
        )
    if counts.left_out:
        worst = max(counts.missing_by_test, key=lambda test: counts.missing_by_test[test])
        said.append(
            f"{counts.left_out} of {counts.read} pairs were left out because scores are missing "
            f"(most often {worst}, {counts.missing_by_test[worst]} times); nothing was filled in."
        )
    return said


def rating_report(result: RatingWeights) -> dict[str, Any]:
    """The content of ``weights.json`` for weights learned from ratings: JSON types only."""
    fields = asdict(result)
    for name in ("tests", "weights", "low", "high", "no_interval", "verdict"):
        del fields[name]
    return {
        "schema": SCHEMA,
        "weights": _named(result.tests, result.weights),
        "conclusion": rating_sentences(result),
        "beats_uniform": result.verdict,
        "intervals": _intervals(result.tests, result.low, result.high),
        "intervals_reason": result.no_interval,
        **fields,
    }


def rating_sentences(result: RatingWeights) -> list[str]:
    """Whether weights learned from ratings rank held-out outputs better than uniform ones, in words."""
    score = next(each for each in result.learners if each.name == result.method)
    uniform = next(each for each in result.learners if each.name == "uniform")
    if score.spearman is None or score.difference is None or uniform.spearman is None:
        reason = score.reason if score.spearman is None else uniform.reason
        said = [f"Nothing can be said about {result.method} on held-out outputs: {reason}."]
    else:
        said = [
            f"On {result.outputs - result.without_order} held-out outputs the score by {result.method} reaches a Spearman "
            "correlation of "
            f"{score.spearman:.3f} with the ratings, uniform weights {uniform.spearman:.3f}."
        ]
        if score.difference_low is not None and score.difference_high is not None:
            said.append(
                f"The difference is {score.difference:+.3f} ({result.confidence:.0%} interval "
                f"{score.difference_low:+.3f} to {score.difference_high:+.3f}): "
                f"{_RATING_VERDICTS[result.verdict]}."
            )
        else:
            said.append(
                f"The difference is {score.difference:+.3f}, and whether that is noise is not known: {score.reason}."
            )
    if result.without_order:
        said.append(
            f"{result.without_order} outputs have no right order, as all that were held out with them are rated the same; they "
            "are in no correlation."
        )
    if result.learner == "uniform" != result.method:
        said.append("The weights given are uniform: learning is not worth it on these ratings.")
    if result.left_out:
        said.append(f"{result.left_out} outputs were left out because a score or the rating is missing.")
    if result.pairs_left_out:
        read = result.pairs + result.pairs_left_out
        said.append(
            f"{result.pairs_left_out} of {read} pairs were left out because scores are missing; nothing was filled in."
        )
    if result.pairs + result.pairs_left_out and not result.pairs_decided:
        said.append("In no pair with all scores did people prefer one output, so the weights are of the ratings alone.")
    return said


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


def _learner(tests: tuple[str, ...], score: LearnerScore) -> dict[str, Any]:
    fields = asdict(score)
    fields["weights"] = None if score.weights is None else _named(tests, score.weights)
    fields["reason"] = fields.pop("failure")
    return fields


def weights_view(data: Mapping[str, Any]) -> View:
    """What there is to see of learned weights.

    Args:
        data: The content of ``weights.json``.
    """
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
        "learners": f"the learners on the same {held_out(data)}; {data['method']} is used; differences are from uniform weights",
        "sections": "the sections, with their decided pairs; one with few leans on the others",
        "order": "does the order of the outputs decide?; mean probability that the output shown first is called the better one, 0.500 being no bias",
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
    """By what a learner reaches; one that gave nothing comes last."""
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
