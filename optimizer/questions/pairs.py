"""Questions learned from pairs of outputs of which people liked one better (METHOD.md, part 7).

The effect of a question is the mean of good(chosen) - good(rejected) over pairs, where good is P(the answer that speaks
for the output). The sign of the effect gives the polarity. Weights are Bradley-Terry weights on the same differences,
mixed with equal weights; cross-validation decides how far. A judge is better if it tells more held-out pairs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...evaluation.calibration import logit, sigmoid
from ...evaluation.measures.fitting import Worth
from ...evaluation.scoring import ExampleScore, mean_score
from ...memory.records import CriterionRecord
from ...prompts.checklist import ComputedMeasure, Question
from ...prompts.examples import Example, document_of
from ...prompts.preferences import Preference
from ...stats.differences import Difference, mean_difference
from ...stats.resampling import Resampling, Vector
from ..subject import Draft, Observation
from ..weights.evidence import PairDifferences, codes_of
from ..weights.judged_pairs import context_of
from ..weights.learner_choice import Auto
from ..weights.learners import LearningFailedError, Logistic, Robust
from .candidates import CONTRAST_NOISE, FEWEST_OTHERS, LEAST_NOISE, SAID_NOISE, Asked, Standing, yes_logits
from .choice import Chooser, Chosen, Widened
from .racing import Sides

PAIR_OF = "preference_pair"
"""Key in an output's metadata that holds the id of its pair."""
PREFERRED = "overall"
"""Name of the score that people's choice gives an output: 1 for the chosen output, 0 for the rejected one."""
_FEWEST_WEIGHED = 8
"""Fewest pairs from which weights are learned; with fewer pairs the draft keeps its weights."""


@dataclass(frozen=True)
class Decided:
    """A pair in which people preferred one output, by example ids."""

    chosen: str
    rejected: str
    prompt: str
    """Pairs of one prompt are never divided."""


def examples_of_pairs(pairs: Iterable[Preference]) -> list[Example]:
    """Return both outputs of every pair as examples, with people's choice as a label.

    The outputs of one prompt are one document, so that no fold divides them. A tie has no labels. All comments of a
    pair are put on its rejected output: praise of the chosen output says what the rejected one lacks.
    """
    found = []
    for pair in pairs:
        prompt = context_of(pair)
        for side, output in (("a", pair.output_a), ("b", pair.output_b)):
            is_chosen = pair.preferred == side
            row: dict[str, Any] = {"id": f"{pair.id}/{side}", "input": pair.input, "output": output}
            row["metadata"] = {**pair.metadata, "document": prompt, PAIR_OF: pair.id}
            if pair.preferred != "tie":
                row["human"] = {PREFERRED: float(is_chosen)}
                row |= {"comment": list(pair.comments)} if pair.comments and not is_chosen else {}
            found.append(Example.model_validate(row))
    return found


def are_pairs(examples: Sequence[Example]) -> bool:
    """Whether all examples are outputs of pairs."""
    return bool(examples) and all(PAIR_OF in each.metadata for each in examples)


def decided_pairs(examples: Iterable[Example]) -> list[Decided]:
    """Return the pairs with both outputs among the examples and a preference, in the order of the examples."""
    sides: dict[str, dict[float, Example]] = defaultdict(dict)
    for each in examples:
        if (label := each.human_score(PREFERRED)) is not None:
            sides[each.metadata[PAIR_OF]][label] = each
    whole = (both for both in sides.values() if len(both) == 2)
    return [Decided(both[1.0].id, both[0.0].id, document_of(both[1.0])) for both in whole]


@dataclass(frozen=True)
class PairYardstick:
    """The share of pairs that a judge tells. A pair counts 1 if the chosen output scores higher, 0.5 for a tie."""

    pairs: Sequence[Decided]
    """All pairs of the run; only pairs with scores are measured."""
    resamples: int
    seed: int
    name = "share of pairs told"

    def value(self, scores: Sequence[ExampleScore]) -> float | None:
        """Return the share over the pairs that have scores."""
        return mean_score(_told(self._among(scores), scores))

    def measure(self, scores: Sequence[ExampleScore], examples: Sequence[Example]) -> dict[str, Any]:
        """Return the share with an interval by prompt. Correlations, which are for single outputs, are None."""
        pairs = self._among(scores)
        told = _told(pairs, scores)
        found = self._gain([None if each is None else 0.0 for each in told], told, pairs)
        reason = found.reason or "pairs are told or not; there is nothing to correlate with"
        interval = {"n": found.n, "low": found.low, "high": found.high}
        return {**dict.fromkeys(("spearman", "kendall", "pearson")), **interval, "mean": found.value, "reason": reason}

    def difference(
        self, before: Sequence[ExampleScore], after: Sequence[ExampleScore], examples: Sequence[Example]
    ) -> Difference:
        """Return the paired difference of the shares; prompts are swapped and resampled whole."""
        pairs = self._among(after)
        return self._gain(_told(pairs, before), _told(pairs, after), pairs)

    def _among(self, scores: Sequence[ExampleScore]) -> list[Decided]:
        known = {each.example for each in scores}
        return [each for each in self.pairs if each.chosen in known and each.rejected in known]

    def _gain(
        self, before: Sequence[float | None], after: Sequence[float | None], pairs: Sequence[Decided]
    ) -> Difference:
        prompts = [each.prompt for each in pairs]
        return mean_difference(before, after, Resampling(prompts, self.resamples, seed=self.seed))


def _told(pairs: Sequence[Decided], scores: Iterable[ExampleScore]) -> list[float | None]:
    """Return the judge's credit on each pair: 1, 0.5 for equal scores, or 0; None where a score is missing."""
    by_id = {each.example: each.overall for each in scores}
    both = ((by_id.get(each.chosen), by_id.get(each.rejected)) for each in pairs)
    return [None if a is None or b is None else 1.0 if a > b else 0.5 if a == b else 0.0 for a, b in both]


def pair_effect(differences: Vector, prompts: Sequence[str]) -> tuple[float, float]:
    """Return the mean of the differences, shape (pairs,), and its standard error by prompt."""
    mean = float(differences.mean())
    residuals: dict[str, float] = defaultdict(float)
    for prompt, value in zip(prompts, differences - mean, strict=True):
        residuals[prompt] += float(value)
    groups = len(residuals)
    error = np.sqrt(sum(each**2 for each in residuals.values()) * groups / max(groups - 1, 1)) / len(differences)
    return mean, float(error)


@dataclass(frozen=True)
class StandingOfPairs(Standing):
    """Evidence for a question from pairs; the sign of the mean difference gives the polarity."""

    @property
    def problem(self) -> str | None:
        """Why the question may not join: its effect has fewer standard errors than its origin needs."""
        needed = SAID_NOISE if self.support else CONTRAST_NOISE
        assert self.effect is not None, "there are pairs"
        return None if self.effect >= needed * self.noise else "it tells pairs no more than by chance"

    @property
    def is_chance(self) -> bool:
        """Whether the question tells pairs no more than by chance."""
        return self.problem is not None


@dataclass(frozen=True)
class AskedOfPairs(Asked):
    """Answers to a question of the start as differences over pairs."""

    differences: tuple[float, ...] = ()
    """P(yes) of the chosen output minus P(yes) of the rejected one, by pair."""
    prompts: tuple[str, ...] = ()

    def strength(self, *, turned: bool = False) -> float:
        """Return the effect on pairs in standard errors; ``turned``: with the other answer as the good one."""
        mean, noise = pair_effect(np.array(self.differences), self.prompts)
        return (1.0 if self.question.is_fault is turned else -1.0) * mean / max(noise, LEAST_NOISE)


@dataclass
class PairChooser(Chooser):
    """Chooses among candidates by pairs; both outputs of a pair are always judged together."""

    soft: bool = True
    """Whether scores come from P(yes); else from the answers."""
    seed: int = 42

    def _asked_on(self, part: Collection[str], own: Iterable[CriterionRecord] = ()) -> set[str]:
        """Return the part and the sources of ``own``, each with the other output of its pair."""
        wanted = {*part, *(source for candidate in own for source in candidate.sources)}
        whole = ({pair.chosen, pair.rejected} for pair in decided_pairs(self.examples))
        return wanted.union(*(both for both in whole if both & wanted))

    def _standing(
        self, name: str, candidate: CriterionRecord, logits: Mapping[str, Mapping[str, float]], sides: Sides
    ) -> Standing | None:
        """Return the evidence from all pairs except the one whose comment led to the question; None with fewer than
        :data:`~.candidates.FEWEST_OTHERS` pairs."""
        told = next(iter(candidate.sources), None)
        others = [each for each in decided_pairs(self.examples) if told not in (each.chosen, each.rejected)]
        found, prompts = self._differences(logits.get(name, {}), others)
        if len(found) < FEWEST_OTHERS:
            return None
        mean, noise = pair_effect(found, prompts)
        spread = float(found.std()) or LEAST_NOISE
        return StandingOfPairs(-mean / spread, abs(mean), noise, support=len(candidate.sources))

    def _asked(self, question: Question, table: Mapping[str, float], sides: Sides) -> Asked:
        plain = super()._asked(question, table, sides)
        found, prompts = self._differences(table, decided_pairs(self.examples))
        if len(found) < FEWEST_OTHERS:
            return Asked(question, (), ())
        return AskedOfPairs(
            question, plain.rejected, plain.fine, differences=tuple(found.tolist()), prompts=tuple(prompts)
        )

    @staticmethod
    def _differences(table: Mapping[str, float], pairs: Iterable[Decided]) -> tuple[Vector, list[str]]:
        """Return P(yes) of chosen minus rejected outputs where both have an answer, and the prompts of these pairs."""
        both = [each for each in pairs if each.chosen in table and each.rejected in table]
        sides = (np.array([table[getattr(each, side)] for each in both]) for side in ("chosen", "rejected"))
        chosen, rejected = (sigmoid(each) for each in sides)
        return chosen - rejected, [each.prompt for each in both]

    def _worth(self) -> Worth:
        """Return the effect of a measure: its mean difference over pairs, chosen minus rejected, with the error by
        prompt."""
        pairs = decided_pairs(self.examples)
        prompts = [each.prompt for each in pairs]

        def found(shares: Mapping[str, float]) -> tuple[float, float]:
            return pair_effect(np.array([shares[each.chosen] - shares[each.rejected] for each in pairs]), prompts)

        return found

    def drafts(self, best: Draft, chosen: Chosen, seen: Observation) -> Widened:
        """Return the judge with the chosen questions and measures; the pairs weigh all criteria together."""
        found = super().drafts(best, chosen, seen)
        if found.whole is best:
            return found
        shares = {
            each.measure.id: {
                name: float(logit(np.array([each.measure.share(value)]))[0])
                for name, value in self.table.values[each.key].items()
            }
            for each in chosen.measured
        }
        tables = {**yes_logits(seen.verdicts), **chosen.logits, **shares}
        whole = self._weighed(found.whole, tables)
        return Widened(whole, whole if found.lean is found.whole else self._weighed(found.lean, tables), found.idle)

    def _weighed(self, draft: Draft, tables: Mapping[str, Mapping[str, float]]) -> Draft:
        """Return the draft with weights of mean 1, learned from the pairs that have all answers. It is unchanged if
        there are fewer than 2 criteria or :data:`_FEWEST_WEIGHED` such pairs, or nothing can be learned from these."""
        asked = [each for each in draft.questions.questions if each.id in tables]
        pairs = [
            each
            for each in decided_pairs(self.examples)
            if all(each.chosen in tables[one.id] and each.rejected in tables[one.id] for one in asked)
        ]
        if len(asked) < 2 or len(pairs) < _FEWEST_WEIGHED:
            return draft
        good: Callable[[Question, str], float] = lambda one, example: self._good(one, tables[one.id][example])  # noqa: E731
        rows = [[good(one, each.chosen) - good(one, each.rejected) for one in asked] for each in pairs]
        codes = codes_of([each.prompt for each in pairs])
        size = len(pairs)
        data = PairDifferences(np.array(rows), np.zeros(size, bool), codes, np.zeros(size, codes.dtype), np.ones(size))
        try:
            learned = Auto(learners=(Robust(), Logistic())).learn(data, seed=self.seed) * len(asked)
        except LearningFailedError:
            return draft
        weights = dict(zip((each.id for each in asked), learned.round(3).tolist(), strict=True))
        questions = tuple(
            each.model_copy(update={"weight": weights.get(each.id, each.weight)}) for each in draft.questions.questions
        )
        checklist = draft.questions.model_copy(update={"questions": questions, "section_weights": {}})
        return replace(draft, checklist=checklist)

    def _good(self, question: Question, logit: float) -> float:
        """Return P(the good answer), or 1 or 0 for whether the good answer was given."""
        good = -logit if question.is_fault else logit
        is_soft = self.soft or isinstance(question, ComputedMeasure)  # a measure has no answer
        return float(sigmoid(np.array([good]))[0]) if is_soft else float(good >= 0)

    async def read(self, best: Draft, *drafts: Draft) -> list[Draft]:
        """Return the drafts unchanged: two outputs for one prompt are compared, so no scale has to be fitted."""
        return list(drafts)
