"""Draw the pictures of ``docs/results/index.md`` from ``experiments/results``, as SVG::

python -m tests.measured.pictures
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parents[2]
PLACE = ROOT / "docs" / "results" / "pictures"
LEFT, WIDTH, RIGHT, ROW, TOP = 250, 380, 120, 24, 14
"""Pixels: labels, axis, figures, a row, above the first row."""


class Row(NamedTuple):
    """A figure with its 95 % interval; a row without a figure is a heading."""

    label: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    ours: bool = True
    """False draws in grey, e.g. a start or another tool."""


def results(name: str) -> Any:
    """Return a file of ``experiments/results``."""
    return json.loads((ROOT / "experiments" / "results" / f"{name}.json").read_text(encoding="utf-8"))


def number(value: float) -> str:
    """Return ``.42``, with a true minus."""
    return f"{value:.2f}".replace("0.", ".", 1).replace("-", "−")


def drawn(rows: Iterable[Row], title: str) -> str:
    """Return intervals one below the other on a common axis, as SVG."""
    rows = list(rows)
    ends = [end for row in rows for end in (row.value, row.low, row.high) if end is not None]
    low, high = min(0.0, *ends), max(ends)
    step = next(each for each in (0.1, 0.2, 0.25, 0.5) if (high - low) / each <= 6)
    low, high = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
    height = TOP + ROW * len(rows) + 26

    def at(value: float) -> str:
        return f"{LEFT + WIDTH * (value - low) / (high - low):.1f}"

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + RIGHT} {height}" '
        f'font-family="sans-serif" font-size="12" role="img" aria-label="{escape(title)}">',
        f'<rect width="{LEFT + WIDTH + RIGHT}" height="{height}" fill="#fff"/>',
    ]
    for count in range(round((high - low) / step) + 1):
        tick = low + count * step
        colour = "#678" if abs(tick) < 1e-9 else "#e3e8ec"
        bottom = TOP + ROW * len(rows)
        lines.append(f'<path d="M{at(tick)} {TOP}V{bottom}" stroke="{colour}"/>')
        lines.append(
            f'<text x="{at(tick)}" y="{bottom + 16}" text-anchor="middle" fill="#567">{number(tick + 0.0)}</text>'
        )
    for place, row in enumerate(rows):
        y = TOP + ROW * place + ROW // 2
        weight = ' font-weight="bold"' if row.value is None else ""
        lines.append(
            f'<text x="{LEFT - 10}" y="{y + 4}" text-anchor="end" fill="#123"{weight}>{escape(row.label)}</text>'
        )
        if row.value is None:
            continue
        colour = "#1c6ea4" if row.ours else "#8a949c"
        if row.low is not None and row.high is not None:
            lines.append(f'<path d="M{at(row.low)} {y}H{at(row.high)}" stroke="{colour}" stroke-width="2"/>')
            said = f"{number(row.value)} [{number(row.low)}, {number(row.high)}]"
        else:
            said = number(row.value)
        lines.append(f'<circle cx="{at(row.value)}" cy="{y}" r="4" fill="{colour}"/>')
        lines.append(f'<text x="{LEFT + WIDTH + 8}" y="{y + 4}" fill="#123">{said}</text>')
    return "\n".join([*lines, "</svg>\n"])


def _of(label: str, found: Any, ours: bool = True, value: str = "value") -> Row:
    return Row(label, found[value], found["low"], found["high"], ours)


def gains() -> list[Row]:
    """Gains of Spearman on test, from comments and without."""
    with_comments, without = results("pooled_gain"), results("pooled_gain_without_comments")
    refused, accepted = results("learned_questions_unseen")["runs"]
    later = {run["run"]: run["gain"]["spearman"] for run in results("fresh_outputs")["runs"]}
    names = {name: name.replace("_", " ") for name in ("release_notes", "front_desk", "news_summaries")}
    return [
        Row("from comments"),
        *(_of(f"{said}, 3 runs", with_comments["data"][name], value="mean_gain") for name, said in names.items()),
        _of("all nine runs", with_comments["all"], value="mean_gain"),
        Row("data written after the method"),
        _of("seed 1", accepted["gain_test"]),
        _of("seed 0: refused", refused["refused_judge_on_test"]["gain"], ours=False),
        Row("150 later outputs"),
        *(_of(run.removesuffix("-with").replace("_", " ").replace("-", " "), gain) for run, gain in later.items()),
        Row("without comments"),
        _of("all nine runs", without["all"], value="mean_gain"),
    ]


def simulated() -> list[Row]:
    """Share of the possible gain in simulated worlds."""
    arms = results("simulated_auto")["arms"]
    parts = results("ablations")["parts"]
    said = {
        "everything": "everything in place",
        "idle questions of the start stay": "idle questions stay",
        "comments are read alone": "comments read without outputs",
        "two folds that test each other": "two folds in place of six",
        "verdicts are taken as they are": "answers read as they are",
        "validation alone decides and teaches nothing": "without cross-fitting",
        "yes is always the good answer": "without polarity",
    }
    return [
        Row("100 and 40 worlds"),
        _of("align", arms["house rules: auto"]["captured"], value="share"),
        _of("align --mode each", arms["house rules: auto, one call a question"]["captured"], value="share"),
        Row("16 worlds, --mode each"),
        *(
            _of(words, parts[name]["captured"], ours=name == "everything", value="share")
            for name, words in said.items()
        ),
    ]


def tools() -> list[Row]:
    """Spearman on test of judges that learned from the same comments."""
    rows = results("beside_peers")["rows"]
    return [_of(row["title"].partition(", q")[0], row["test"]["spearman"], row["peer"] == "askance") for row in rows]


def generator() -> list[Row]:
    """Mean pass of a generator's prompt on test."""
    rows = []
    for run in results("plain_lines")["runs"]:
        if run["arm"] == "plain lines":
            start, best = run["test"]["baseline"], run["test"]["best"]
            rows += [
                Row(f"seed {run['seed']}"),
                _of("before", start, ours=False, value="mean"),
                _of("with five plain lines", best, value="mean"),
            ]
    return rows


def scorer() -> list[Row]:
    """Spearman with people on 210 test outputs of a scorer and its teacher."""
    found = results("distilled_unlabelled")
    people = found["test"]["people"]
    other = found["another_seed"]["test"]["people"]["scorer"]
    return [
        _of("the judge, 1,380 ms a verdict", people["teacher"], ours=False, value="spearman"),
        _of("scorer, 7 ms", people["scorer"], value="spearman"),
        _of("scorer, another seed", other, value="spearman"),
        _of("scorer from 66 labels alone", found["people_alone"]["test"]["scorer"], value="spearman"),
        _of("base before training", people["base"], ours=False, value="spearman"),
    ]


PICTURES: dict[str, tuple[Callable[[], list[Row]], str]] = {
    "gains": (gains, "Gain of Spearman with people on test, 95 % intervals"),
    "simulated": (simulated, "Share of the possible gain in simulated worlds, 95 % intervals"),
    "tools": (tools, "Spearman on 60 test outputs after learning from the same comments, 95 % intervals"),
    "generator": (generator, "Mean pass of a generator's outputs on test, 95 % intervals"),
    "scorer": (scorer, "Spearman with people on 210 test outputs, 95 % intervals"),
}


def main() -> None:
    """Write all pictures."""
    PLACE.mkdir(exist_ok=True)
    for name, (rows, title) in PICTURES.items():
        PLACE.joinpath(f"{name}.svg").write_text(drawn(rows(), title), encoding="utf-8")


if __name__ == "__main__":
    main()
