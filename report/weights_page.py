"""The report of ``weigh``: whether learned weights beat uniform ones, the weights, and the learners side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..memory.decision import Choice
from ..optimizer.weights.weights_result import held_out, weights_view
from ..prompts.errors import as_typed
from ..prompts.formatting import Figure, count
from .page import FirstScreen, Section, Tile, render_result_page, settings_section, view_sections

_HEADLINES: dict[str, tuple[Choice, str]] = {
    "better": ("adopt", "The learned weights beat uniform ones"),
    "worse": ("keep", "Keep uniform weights: the learned ones are worse"),
    "cannot tell": ("undecided", "Learned weights are not shown to beat uniform ones"),
    "same": ("keep", "Learning weights changed nothing"),
    "undefined": ("undecided", "Nothing can be said about the learned weights"),
}
_SETTINGS = ("method", "learner", "level", "pair_share", "folds", "resamples", "failed_resamples", "confidence", "seed")


def render_weights(data: Mapping[str, Any], name: str) -> str:
    """The page of a ``weights.json``: of its content, and the file's name."""
    view = weights_view(data)
    heaviest = sorted(view.tables["weights"](), key=lambda row: -row["weight"].value)
    because = data.get("intervals_reason") or "no resample could be learned from"
    bias = data.get("position_bias") or {}
    missing = "" if data["intervals"] else f"There are no intervals: {because}. "
    uniform = f"{missing}With uniform weights each would have {1 / len(heaviest):.3f}."
    sections = view_sections(
        view,
        *("weights", "learners", "sections", "order"),
        weights={"rows": heaviest, "note": uniform, "drawn": ("weight",)},
        learners={
            "drawn": ("accuracy", "spearman", "difference"),
            "note": "All learners see the same data, so the interval of the difference decides, and not whether two "
            "intervals overlap. One whose interval has zero in it is not shown to be better or worse.",
        },
        order={"note": f"{bias.get('reason') or ''}".capitalize()},
    )
    use = f"askance evaluate DATA --checklist CHECKLIST --model MODEL --weights {as_typed(name)}"
    how = f"In place of the checklist's own; no model is asked anew: {use}"
    if data.get("scores") == "pairwise":
        how = (
            "They say which of two outputs is better, and are learned from comparisons of two; where each output is "
            "judged alone, as by evaluate, they are refused. Learn weights for that without --pairwise."
        )
    return render_result_page(
        _screen(data, name, {row["name"]: row for row in view.tables["learners"]()}),
        [
            *sections,
            Section("data", "What was counted", _counted(data)),
            settings_section({each: data[each] for each in _SETTINGS if each in data}),
            Section("use", "How to use the weights", note=how),
        ],
    )


def _screen(data: Mapping[str, Any], name: str, learners: Mapping[str, Mapping[str, Any]]) -> FirstScreen:
    choice, headline = _HEADLINES[data["beats_uniform"]]
    if data["method"] == "uniform":
        choice, headline = "keep", "Uniform weights, nothing learned"
    of_pairs = "held_out" in data
    what, label = ("accuracy", "In the right order") if of_pairs else ("spearman", "Spearman with the ratings")
    said = list(data["conclusion"])
    mine, uniform = learners[data["method"]], learners.get("uniform")
    gain = mine["difference"] or Figure(None, reason="uniform weights are the yardstick")
    power = data.get("power") or {"more": None, "reason": "counted for pairs only; this was learned from ratings"}
    more = "undefined" if power["more"] is None else f"{power['more']:,}"
    learned_from = f"{data['pairs']['decided']:,} pairs" if of_pairs else f"{data['outputs']:,} rated outputs"
    tiles = [
        Tile(f"{label} beyond uniform weights", gain, gain.reason or held_out(data)),
        Tile(label, mine[what], mine[what].reason or "uniform, then learned", uniform[what] if uniform else None),
        Tile(
            "More pairs needed",
            more,
            power["reason"] or f"to tell a difference of the size seen with {power['learner']}",
        ),
        Tile("Learned from", learned_from, count(len(data["weights"]), "test")),
    ]
    return FirstScreen("weigh", name, choice, headline, said[0], tiles, said[1:], heading="What else was found")


def _counted(data: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Counts of the pairs or outputs."""
    if "held_out" not in data:
        rows = {
            "Rated outputs": data["outputs"],
            "Left out, a score or the rating missing": data["left_out"],
            "Preference pairs beside them": data["pairs"],
            "Pairs left out, a score missing": data.get("pairs_left_out", 0),
        }
    else:
        pairs = data["pairs"]
        missing = sorted(pairs["missing_by_test"].items(), key=lambda each: -each[1])[:5]
        rows = {
            "Read": pairs["read"],
            "Left out, a score missing": pairs["left_out"],
            "Decided by people": pairs["decided"],
            "Called a tie; in no accuracy": pairs["data_ties"],
            "Groups, never divided": pairs["groups"],
            "Held out, decided": pairs["held_out"],
            **{f"Missing: {test}": times for test, times in missing},
        }
    return [{"data": name, "number": value} for name, value in rows.items()]
