"""What the judge is shown when it is asked a candidate: everything, the output alone, or the output with a quote asked for."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ...prompts.checklist import Sees
from ...prompts.formatting import signed
from ...stats.resampling import Vector
from .candidates import Standing

COMPARED, COMPARED_ON = 8, 1 / 3
"""Candidates that are asked in every way, to see which helps the judge: those that most remarks led to, as several cases say more
than one; on three data sets eight decided as twelve had, and fit one reading side by side. And the share of the accepted and of the rejected
examples that each is asked of; of eight accepted ones, ways that are level on all looked apart by a third."""
CLEARLY_WORSE = 2.0
"""Standard errors by which effects have to be smaller, with less in view, for everything to be shown."""
_DONE: dict[Sees, str] = {
    "all": "asked with everything in view",
    "output": "asked of the output alone",
    "quote": "answered with a quote",
}


@dataclass(frozen=True)
class Compared:
    """How far rejected outputs stand out from accepted ones where some candidates are asked in several ways."""

    taken: Sees
    effects: Mapping[Sees, float]
    """Mean effect of the candidates by way, 0 of one that could not join; empty where there are too few rejected outputs."""
    candidates: int
    """Those that have an effect in every way."""

    @classmethod
    def of(cls, found: Mapping[Sees, Mapping[str, Standing | None]]) -> Compared:
        """By what is said of the same candidates and outputs in each way, the simplest one first.

        Of one candidate some outputs say next to nothing, of all together they say whether this judge is helped or misled
        by what the output was made from. Where that is not clear, less is shown. A quote has to say more on
        average than what is taken else; neither way is the simpler one.
        """
        known = [
            [each.worth for each in several if each is not None and each.effect is not None]
            for several in zip(*(standings.values() for standings in found.values()), strict=True)
        ]
        table = np.array([row for row in known if len(row) == len(found)])
        effects: dict[Sees, Vector] = dict(zip(found, table.T, strict=True)) if len(table) else {}
        taken: Sees = "output" if "output" in found else "all"
        if taken in effects and "all" in effects and _is_clearly_less(effects[taken] - effects["all"]):
            taken = "all"
        if "quote" in effects and float(np.mean(effects["quote"] - effects[taken])) > 0:
            taken = "quote"
        return cls(taken, {way: float(np.mean(each)) for way, each in effects.items()}, len(table))

    @property
    def sentence(self) -> str:
        """What was found, and what is done."""
        done = f"Questions are {_DONE[self.taken]}"
        if not self.effects:
            return f"{done}: there are too few rejected outputs to see what tells more."
        told = ", ".join(f"{_DONE[way].partition(' ')[2]} {signed(effect)}" for way, effect in self.effects.items())
        return f"{done}. Mean effect of {self.candidates} of them: {told}."


def _is_clearly_less(gains: Vector) -> bool:
    noise = float(np.std(gains, ddof=1)) / math.sqrt(len(gains)) if len(gains) > 1 else 0.0
    return float(np.mean(gains)) + CLEARLY_WORSE * noise < 0
