"""The judge ``measures``: measures alone, without a call, chosen, fitted and weighed on the other folds of the rows."""

from __future__ import annotations

from collections.abc import Sequence

from ...agents.buying import NOTHING, Estimate
from ...prompts.errors import InputError
from ...prompts.examples import Example
from ..measures.fitting import MeasureTable, documents_of, folds_of
from .protocol import JudgeScore, Setup


class MeasuresAlone:
    """Scores each example by the measures that people's scores on the other folds choose.

    An example's score is the weighted mean of its measures' shares of good. Where no measure stands out on the other
    folds, it is the mean score there.
    """

    name = "measures"

    def __init__(self, setup: Setup) -> None:
        """Raises InputError where people rated none of the dimensions."""
        if setup.targets is None:
            raise InputError("The judge 'measures' is fitted to people's scores, and the data have none.")
        self._setup, self._targets = setup, setup.targets
        self._scores: dict[tuple[str, str], float] = {}

    async def prepare(self) -> None:
        """Compute the measures, and choose and fit them fold by fold; nothing is bought."""
        examples, targets = self._setup.examples, self._targets
        table, documents = MeasureTable.of(examples, store=self._setup.gateway.store), documents_of(examples)
        parts = dict(zip(documents, folds_of(list(documents.values())), strict=True))
        for dimension in self._setup.dimensions:
            for part in set(parts.values()):
                known = ((name, targets.wanted[name].get(dimension)) for name in documents if parts[name] != part)
                taught = {name: value for name, value in known if value is not None}
                measures = table.choose(taught, documents, dimension).weighed
                usual = sum(taught.values()) / len(taught) if taught else 0.5
                for name in (name for name in documents if parts[name] == part):
                    shares = [each.weight * each.p_good(each.share(table.values[each.id][name])) for each in measures]
                    total = sum(each.weight for each in measures)
                    self._scores[name, dimension] = sum(shares) / total if total else usual

    async def rate(self, examples: Sequence[Example]) -> list[JudgeScore]:
        """The scores; all replicates are the same."""
        return [
            JudgeScore(each.id, dimension, self._scores[each.id, dimension], replicate=replicate)
            for each in examples
            for replicate in range(self._setup.options.repeat)
            for dimension in self._setup.dimensions
        ]

    async def estimate(self, examples: Sequence[Example]) -> Estimate:
        """Nothing is bought."""
        return NOTHING
