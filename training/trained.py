"""The result of a training: ``train.json``, and how it is shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..evaluation.shown import Shown, View, correlation_figures
from ..prompts.formatting import Figure, count, number

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..evaluation.shown import Rows

SCHEMA = "askance.train/1"
RESULT_FILE = "train.json"
WITHOUT_DPO = "without_dpo"
_OTHERS = {
    "people_alone": "scorer from people alone",
    "with_verdicts": "scorer with the verdicts",
    WITHOUT_DPO: "scorer before DPO",
}
"""A scorer that was not kept, by its name in the figures on test."""
_WHOSE = {"teacher": "its teacher's", "base": "its base's"} | {
    name: f"that of the {each}" for name, each in _OTHERS.items()
}


@dataclass(frozen=True, repr=False)
class TrainResult(Shown):
    """A trained scorer with what it is worth on test."""

    data: Mapping[str, Any]
    """As in ``train.json``."""

    def to_dict(self) -> dict[str, Any]:
        """The same."""
        return dict(self.data)

    @property
    def kept_share(self) -> float | None:
        """Of the teacher's Spearman correlation with people, on test; None unless the whole interval of that is above 0."""
        people = self.data["test"].get("people", {})
        ours, theirs = (people.get(name, {}) for name in ("scorer", "teacher"))
        if ours.get("spearman") is None or (theirs.get("low") or 0) <= 0:
            return None
        return float(ours["spearman"] / theirs["spearman"])

    def _view(self) -> View:
        data = self.data
        curve, units = data["curve"], data["mixture"]["units"]
        title = f"{data['scorer']}, trained from {data['base']} on {units['training']} examples and pairs"
        tables = {"test": self._rows, "mixture": lambda: data["mixture"]["rows"], "curve": lambda: curve["validation"]}
        captions = {"test": "On test", "curve": "Losses on validation"}
        if dpo := data.get("rationales", {}).get("dpo"):
            tables["dpo"] = lambda: dpo["validation"]
            captions["dpo"] = "Losses on validation with DPO"
        return View(title, list(self._lines()), tables, captions=captions)

    def _lines(self) -> Iterator[str]:
        data = self.data
        curve, took, cost = data["curve"], data["speed"], data["price"]
        ended = ", ended early" if curve["stopped_early"] else ""
        yield f"The weights of epoch {curve['best_epoch']} did best on validation{ended}."
        if not curve["best_epoch"]:
            yield "Training gained nothing on validation: this scorer is no better than what it began with."
        for each in data["remarks"]:
            yield f"Note: {each}."
        if (made := data["mixture"].get("contrasts")) is not None:
            yield (
                f"Of {made['pairs']} pairs of outputs that {made['writer']} wrote, {made['kept']} are ordered by {made['judge']} as "
                f"they were meant and were learned from ({made['unusable']} of {made['outputs']} outputs could not be used, "
                f"{made['repeated']} were there already)."
            )
        if (trust := data.get("trust")) is not None:
            figures = {"with": number(trust["both"]), "without": number(trust["people"])}
            did, way, other = (
                ("left out", "without", "with") if trust["kept"] == "people" else ("learned from", "with", "without")
            )
            yield (
                f"Its teacher's verdicts were {did}: {way} them it agrees with people on {trust['n']} outputs of validation by "
                f"{figures[way]}, and by {figures[other]} {other} them (Spearman)."
            )
        for name, found in data["test"].get("beyond", {}).items():
            if found["value"] is not None:
                yield f"Its rank correlation with people less {_WHOSE[name]}: {Figure.of(found, '+.3f')}."
        if self.kept_share is not None:
            yield f"It keeps {self.kept_share:.0%} of its teacher's rank correlation with people."
        yield from rationales_said(data)
        if "preferences" in data["test"]:
            right = Figure.of(data["test"]["preferences"], ".1%")
            yield f"Of the decided pairs of test it prefers the right output in {right}, where it says the same of both counting half."
        fit = data["calibration"]
        if fit["n"]:
            after, before = (fit[name]["calibration_error"] for name in ("after", "before"))
            earlier = "" if "reason" in fit else f"; {before:.3f} before calibration"
            yield f"P(yes) is off the wanted one by {after:.3f} in its bins (expected calibration error{earlier})."
        yield f"A verdict takes {took['cpu_ms']:.1f} ms of the processor in batches, {took['cpu_ms_alone']:.1f} ms alone."
        for name, what in (("break_even_money", "money"), ("break_even_time", "time")):
            if cost[name]["verdicts"] is not None:
                yield f"It has saved the {what} of its training after {cost[name]['verdicts']:,} verdicts."

    def _rows(self) -> Rows:
        test = self.data["test"]
        rows: list[dict[str, Any]] = []
        for name, found in test.get("people", {}).items():
            rows += _rows_of(f"{_OTHERS.get(name, name)} with people", found)
        if "verdicts" in test:
            found = test["verdicts"]
            rows.append({"what": "P(yes) with the wanted", "on": "all", "n": found["n"], **correlation_figures(found)})
        if (reasons := self.data.get("rationales")) is not None:
            rows += _rows_otherwise(reasons)
        if "teacher" in test:
            rows += _rows_of("scorer with teacher", test["teacher"])
            if "base" in test:
                rows += _rows_of("base with teacher", test["base"])
            for question, found in test["teacher"]["questions"].items():
                rows.append(
                    {"what": "scorer with teacher", "on": question, "n": found["n"], **correlation_figures(found)}
                )
        return rows


def dpo_left_out(reasons: Mapping[str, Any]) -> str:
    """That nothing was learned from rationales that were drawn, and why; of ``rationales`` in ``train.json``."""
    return f"DPO on rationales was left out: {reasons['reason']}"


def rationales_said(data: Mapping[str, Any]) -> Iterator[str]:
    """What became of the rationales, in sentences; nothing where there are none."""
    people_alone = data.get("trust", {}).get("kept") == "people"
    learned = [row for row in data["mixture"]["rows"] if not (people_alone and row["source"] == "verdicts")]
    if given := sum(row["training"] for row in learned if row["kind"] == "rationale"):
        yield f"It learned from {count(given, 'rationale')} that judges and people gave."
    if (found := data.get("rationales")) is None:
        return
    writer = "the scorer" if found["from"] == "scorer" else found["from"]
    yield (
        f"Of {count(found['drawn'], 'rationale')} that {writer} wrote about {count(found['cases'], 'question')} on outputs, "
        f"{found['right']} ended in the right score and {found['wrong']} in the wrong one ({found['unusable']} were empty or cut off); "
        f"that made {count(found['pairs'], 'pair')}, on {found['cases_with_pairs']} of them."
    )
    if found["dpo"] is None:
        yield f"Note: {dpo_left_out(found)}."
    else:
        did = "better" if found["kept"] == "after" else "no worse"
        yield f"On validation the weights {found['kept']} DPO did {did} and are kept."
    ways = {"rationale": "with", "word": "without"}
    yield f"It answers {ways[found['answers_with']]} a rationale; on test both ways are measured."


def _rows_otherwise(reasons: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The scorer's figures as it answers the other way."""
    way = "without a rationale" if reasons["answers_with"] == "rationale" else "with a rationale"
    found = reasons["otherwise"]
    if "people" in found:
        yield from _rows_of(f"scorer {way}, with people", found["people"]["scorer"])
    if "verdicts" in found:
        row = found["verdicts"]
        yield {"what": f"P(yes) {way}, with the wanted", "on": "all", "n": row["n"], **correlation_figures(row)}
    if "teacher" in found:
        yield from _rows_of(f"scorer {way}, with teacher", found["teacher"])


def _rows_of(what: str, found: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """One row over all dimensions, and one for each where there are several."""
    several = found["dimensions"] if len(found["dimensions"]) > 1 else {}
    for name, row in {"all": found, **several}.items():
        yield {"what": what, "on": name, "n": row["n"], **correlation_figures(row)}
