"""The report of ``weigh``: whether learned weights beat uniform ones, the weights, and the learners side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ..models.budget import count
from ..prompts.words import number, percent, signed
from .first_screen import FirstScreen, Tile, unknown
from .page import render_page
from .scores import Scale

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_HEADLINES: dict[str, tuple[Literal["adopt", "keep", "undecided"], str]] = {
    "better": ("adopt", "The learned weights beat uniform ones"),
    "worse": ("keep", "Keep uniform weights: the learned ones are worse"),
    "cannot tell": ("undecided", "Learned weights are not shown to beat uniform ones"),
    "same": ("keep", "Learning weights changed nothing"),
    "undefined": ("undecided", "Nothing can be said about the learned weights"),
}


@dataclass(frozen=True)
class WeightOfTest:
    """One test's share of the score."""

    test: str
    value: float
    low: float | None
    high: float | None
    rank: Mapping[str, Any] | None
    """``rank``, ``low``, ``high`` and ``first_share``; None where the ranking was not resampled."""


@dataclass(frozen=True)
class Learner:
    """A way to set weights, on the held-out data."""

    name: str
    reached: Mapping[str, Any]
    """``value``, ``low`` and ``high`` of what it reaches."""
    gain: Mapping[str, Any]
    """The same of its difference from uniform weights; of pairs in percentage points."""
    detail: str
    failed: str | None
    chosen: bool


@dataclass(frozen=True)
class WeightsPage:
    """What the page shows."""

    screen: FirstScreen
    weights: Sequence[WeightOfTest]
    uniform: float
    """The weight that every test would have."""
    weight_scale: Scale
    no_interval: str | None
    learners: Sequence[Learner]
    reached_scale: Scale
    gain_scale: Scale
    of_pairs: bool
    """Whether pairs are put in order (else outputs are ranked)."""
    held_out: str
    sections: Mapping[str, Mapping[str, Any]]
    bias: Mapping[str, Any] | None
    counted: Sequence[tuple[str, str]]
    settings: Sequence[tuple[str, str]]


def render_weights(data: Mapping[str, Any], name: str) -> str:
    """The page of a ``weights.json``.

    Args:
        data: Its content.
        name: Of the file.
    """
    return render_page("report_of_weights.html.j2", ("report_table.js", "report_sort.js"), page=_page(data, name))


def _page(data: Mapping[str, Any], name: str) -> WeightsPage:
    of_pairs = "held_out" in data
    learners = [_learner(each, data, of_pairs) for each in data["learners"]]
    learners.sort(key=lambda each: (each.reached["value"] is None, -(each.reached["value"] or 0.0)))
    intervals = data["intervals"] or {}
    ranks = (data.get("ranking") or {}).get("tests") or {}
    weights = [
        WeightOfTest(
            test, value, intervals.get(test, {}).get("low"), intervals.get(test, {}).get("high"), ranks.get(test)
        )
        for test, value in data["weights"].items()
    ]
    weights.sort(key=lambda each: -each.value)
    gains = [end for each in learners for end in each.gain.values()]
    reached = [end for each in learners for end in each.reached.values() if end is not None]
    return WeightsPage(
        screen=_screen(data, name, learners, of_pairs, Scale.over(gains)),
        weights=weights,
        uniform=1 / len(weights),
        weight_scale=Scale.over([end for each in weights for end in (each.value, each.low, each.high)]),
        no_interval=None if intervals else data.get("intervals_reason") or "no resample could be learned from",
        learners=learners,
        reached_scale=Scale.around(reached),
        gain_scale=Scale.over(gains),
        of_pairs=of_pairs,
        held_out=_held_out(data, of_pairs),
        sections=data.get("sections") or {},
        bias=data.get("position_bias"),
        counted=_counted(data, of_pairs),
        settings=_settings(data),
    )


def _learner(row: Mapping[str, Any], data: Mapping[str, Any], of_pairs: bool) -> Learner:
    value = row["accuracy" if of_pairs else "spearman"]
    detail = ""
    if of_pairs and value is not None:
        ties = f", {row['score_ties']} tied" if row["score_ties"] else ""
        detail = f"{row['right']} right, {row['wrong']} wrong{ties}"
    elif row.get("kendall") is not None:
        pairs = f", {percent(row['pair_accuracy'])} of pairs" if row["pair_accuracy"] is not None else ""
        detail = f"Kendall {number(row['kendall'])}{pairs}"
    ends = (row["difference"], row["difference_low"], row["difference_high"])
    factor = 100 if of_pairs else 1
    gain = [None if end is None else factor * end for end in ends]
    return Learner(
        row["name"],
        {"value": value, "low": row["low"], "high": row["high"]},
        dict(zip(("value", "low", "high"), gain, strict=True)),
        detail,
        row["reason"],
        row["name"] == data["method"],
    )


def _screen(
    data: Mapping[str, Any], name: str, learners: Sequence[Learner], of_pairs: bool, scale: Scale
) -> FirstScreen:
    choice, headline = _HEADLINES[data["beats_uniform"]]
    if data["method"] == "uniform":
        choice, headline = "keep", "Uniform weights, nothing learned"
    said = list(data["conclusion"])
    lead = said[:1] if of_pairs else said[:2]
    mine = next(each for each in learners if each.chosen)
    uniform = next((each for each in learners if each.name == "uniform"), mine)
    main = "Right order beyond uniform weights" if of_pairs else "Spearman beyond uniform weights"
    if mine.gain["value"] is None:
        first = unknown(main, mine.failed or "undefined")
    else:
        digits = 1 if of_pairs else 3
        low, high = mine.gain["low"], mine.gain["high"]
        span = "no interval" if low is None or high is None else f"{signed(low, digits)} to {signed(high, digits)}"
        sub = f"{percent(data['confidence'])} interval {span}, {_held_out(data, of_pairs)}"
        unit = "points" if of_pairs else ""
        first = Tile(main, signed(mine.gain["value"], digits), sub, unit=unit, gain=mine.gain, scale=scale)
    return FirstScreen(
        "weigh",
        name,
        choice,
        headline,
        " ".join(lead),
        [first, _reached(mine, uniform, of_pairs), _more(data), _size(data, of_pairs)],
        said[len(lead) :],
        "What else was found",
    )


def _reached(mine: Learner, uniform: Learner, of_pairs: bool) -> Tile:
    label = "In the right order" if of_pairs else "Spearman with the ratings"
    if mine.reached["value"] is None:
        return unknown(label, mine.failed or "undefined")

    def form(value: float) -> str:
        return f"{100 * value:.1f}" if of_pairs else number(value, 3)

    before = None if mine is uniform or uniform.reached["value"] is None else form(uniform.reached["value"])
    low, high = mine.reached["low"], mine.reached["high"]
    span = "" if low is None or high is None else f"{form(low)} to {form(high)}"
    sub = "uniform, then learned" if before else "uniform weights"
    return Tile(label, form(mine.reached["value"]), f"{sub}; {span}" if span else sub, before, "%" if of_pairs else "")


def _more(data: Mapping[str, Any]) -> Tile:
    label = "More pairs needed"
    power = data.get("power")
    if power is None:
        return unknown(label, "counted for pairs only; this was learned from ratings")
    if power["more"] is None:
        return unknown(label, power["reason"] or "there is no difference to tell")
    one = f"; a difference of one point takes {power['one_point']:,} in all" if power["one_point"] else ""
    return Tile(label, f"{power['more']:,}", f"to tell a difference of the size seen with {power['learner']}{one}")


def _size(data: Mapping[str, Any], of_pairs: bool) -> Tile:
    tests = count(len(data["weights"]), "test")
    if of_pairs:
        pairs = data["pairs"]
        return Tile(
            "Learned from", f"{pairs['decided']:,}", f"{tests}; {count(pairs['groups'], 'group')}", unit="pairs"
        )
    more = f", {count(data['pairs'], 'pair')}" if data["pairs"] else ""
    return Tile("Learned from", f"{data['outputs']:,}", f"{tests}{more}", unit="rated outputs")


def _held_out(data: Mapping[str, Any], of_pairs: bool) -> str:
    return f"{data['pairs']['held_out']:,} held-out pairs" if of_pairs else f"{data['outputs']:,} held-out outputs"


def _counted(data: Mapping[str, Any], of_pairs: bool) -> list[tuple[str, str]]:
    """What became of the pairs or outputs."""
    if not of_pairs:
        return [
            ("Rated outputs", f"{data['outputs']:,}"),
            ("Left out, a score or the rating missing", f"{data['left_out']:,}"),
            ("Preference pairs beside them", f"{data['pairs']:,}"),
        ]
    pairs = data["pairs"]
    rows = [
        ("Read", f"{pairs['read']:,}"),
        ("Left out, a score missing", f"{pairs['left_out']:,}"),
        ("Decided by people", f"{pairs['decided']:,}"),
        ("Called a tie; in no accuracy", f"{pairs['data_ties']:,}"),
        ("Groups, never divided", f"{pairs['groups']:,}"),
        ("Held out, decided", f"{pairs['held_out']:,}"),
    ]
    missing = sorted(pairs["missing_by_test"].items(), key=lambda each: -each[1])[:5]
    return rows + [(f"Missing: {test}", f"{times:,}") for test, times in missing]


def _settings(data: Mapping[str, Any]) -> list[tuple[str, str]]:
    names = ("method", "learner", "level", "pair_share", "folds", "resamples", "failed_resamples", "confidence", "seed")
    return [(name.replace("_", " "), str(data[name])) for name in names if name in data]
