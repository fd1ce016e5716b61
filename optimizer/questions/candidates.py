"""Questions that may join a checklist: what they ask, what they come from, and what the evidence says of them."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ...evaluation.calibration import logit, replicates, sigmoid
from ...evaluation.calibration_fit import centre_and_spread
from ...evaluation.measures.fitting import fisher_weight
from ...evaluation.scoring import complete_mean, mean_score
from ...memory.records import CriterionRecord
from ...prompts.checklist import GoodAnswer, Question
from ...prompts.verdicts import Verdict
from ...stats.random_effects import grouped_difference
from ...stats.resampling import Vector

Fate = Literal["stays", "flipped", "dropped", "idle"]

HALF_BAD, SLOPE = 1.75, 1.5
"""Deviations at which an output counts as half bad in a question's effect, and log-odds for each: gentler than in a
score, as an effect is a mean over many outputs. As sharp as there, effects chose worse (63 % of the possible gain in
place of 66, 15 worlds)."""
CONTRAST_NOISE = 1.5
"""Standard errors by which a question that nobody asked for has to speak against rejected outputs."""
SAID_NOISE = 1.0
"""Standard errors by which a question that came from a comment has to speak against rejected outputs, on all examples.
Fewer than for other questions, because a person asked for it; not none, because one remark may find nothing else."""
TURNED_NOISE = 3.0
"""Standard errors by which a question of the start has to speak against rejected outputs once it is turned round:
its author said which answer is good, and every one is looked at."""
LEAST_SOURCE = 0.5
"""Deviations by which the outputs that a question comes from stand out from accepted ones, or it does not find them."""
MOST_OF_ONE = 2.0
"""Deviations that one of several outputs says at most of which answer is the good one."""
FEWEST_OTHERS, FEWEST_OTHERS_ALONE = 3, 8
"""Rejected outputs besides its own from which a question's effect is taken; the second where they also say which
answer is the good one."""
LEAST_NOISE = 1e-9
"""Standard error where all answers are the same."""
SAME_VERDICTS = 0.9
"""Rank correlation of the verdicts from which two questions are one."""
ALIKE_VERDICTS = 0.7
"""Rank correlation from which the weaker of two new questions stays out: it takes the place of one that finds
others. Below, two questions about one thing err on different outputs, and both together err less than either."""
NO_DOCUMENTS: Mapping[str, str] = {}
"""Every example is a document of its own."""
_FILLER = frozenset(
    [
        "does",
        "do",
        "is",
        "are",
        "has",
        "have",
        "the",
        "a",
        "an",
        "any",
        "some",
        "this",
        "that",
        "it",
        "to",
        "of",
        "for",
        "in",
        "on",
        "with",
        "and",
        "or",
        "be",
    ]
)


@dataclass(frozen=True)
class Standing:
    """Evidence for a question from the verdicts on some examples."""

    stands_out: float
    """How far its sources, or without any all rejected outputs, are above the accepted ones, in deviations of
    log-odds of yes; below 0 where they lack something."""
    effect: float | None
    """Mean badness of rejected outputs but for its first source, less that of accepted ones, in [-1, 1]; None where
    there are too few."""
    noise: float = 0.0
    """Standard error of the effect."""
    was_said: bool = True
    """Whether the outputs that it comes from say which answer is the good one; else all rejected ones have to."""
    support: int = 1
    """Outputs that it comes from."""

    @property
    def good(self) -> GoodAnswer:
        """The good answer: ``no`` where the rejected outputs that it comes from have the thing."""
        return "no" if self.stands_out > 0 else "yes"

    @property
    def problem(self) -> str | None:
        """Why it may not join, if so."""
        if not self.was_said:
            if self.effect is None:
                return None  # nothing is known yet
            if self.effect < CONTRAST_NOISE * self.noise:
                return "rejected outputs differ no more from accepted ones in this than by chance"
            return None
        if not abs(self.stands_out) >= LEAST_SOURCE:
            return f"the judge's answer to it does not tell its own case from accepted ones ({self.stands_out:+.1f} sd)"
        if self.effect is not None and self.effect <= 0:
            return f"it speaks no more against other rejected outputs than against accepted ones ({self.effect:+.2f})"
        return None

    @property
    def worth(self) -> float:
        """Its effect as far as is known, where it may join; else 0."""
        return 0.0 if self.effect is None or self.problem is not None else self.effect

    @property
    def is_hopeless(self) -> bool:
        """Whether other rejected outputs speak against it by more than a standard error.

        More accepted outputs would not save it then.
        """
        return self.effect is not None and self.effect < -self.noise

    @property
    def is_chance(self) -> bool:
        """Whether rejected outputs that it does not come from say too little for it."""
        return not self.was_said if self.effect is None else self.effect < SAID_NOISE * self.noise

    @property
    def rank(self) -> tuple[float, float]:
        """Sort key: effect, then promise. A mean of several outputs that stands out says more than a single one."""
        return (0.0 if self.effect is None else self.effect), self.promise

    @property
    def promise(self) -> float:
        """How far its sources stand out, the more of them the surer."""
        return abs(self.stands_out) * math.sqrt(self.support)


def yes_logits(verdicts: Iterable[Verdict]) -> dict[str, dict[str, float]]:
    """The log-odds of yes by question and example, where every replicate was answered."""
    table: dict[str, dict[str, float]] = {}
    for (example, question), values in replicates(verdicts).items():
        mean = complete_mean(values)
        if mean is not None:
            table.setdefault(question, {})[example] = float(logit(np.array([mean]))[0])
    return table


def badness(values: Vector, fine: Vector) -> Vector:
    """How much each of some outputs stands out upwards from accepted ones, in [0, 1]. ``values`` are log-odds that
    something is wrong, shape (n,); ``fine`` are those of accepted outputs, shape (m,), m > 1."""
    centre, spread = centre_and_spread(fine)
    return sigmoid(SLOPE * ((values - centre) / spread - HALF_BAD))


def standing(
    logits: Mapping[str, float],
    sources: Collection[str],
    fine: Collection[str],
    rejected: Collection[str],
    *,
    is_relation: bool = False,
    documents: Mapping[str, str] = NO_DOCUMENTS,
) -> Standing | None:
    """Judge a question by its answers; None where its sources or accepted outputs have too few answers.

    Args:
        sources: The rejected outputs that it comes from. They say which answer is the good one, unless some have the
            thing and others lack it: several remarks can lead to the same words for opposite reasons. The first,
            whose remark it was made of, says nothing else, further ones were rejected for the same reason and count
            as all others do.
        is_relation: Whether the question is about a relation. It stands out a little on many outputs, so where its
            sources do not tell its good answer, all rejected outputs do.
        documents: The document of each example. Where a document has several outputs, they are compared with each
            other: a question about what the document is about tells documents apart, and nothing on the next one.
    """
    of_fine = [each for each in fine if each in logits]
    accepted = np.array([logits[each] for each in of_fine])
    told = next((each for each in sources if each in logits), None)
    own = np.array([logits[each] for each in sources or rejected if each in logits])
    if len(accepted) < FEWEST_OTHERS or not len(own):
        return None
    centre, spread = centre_and_spread(accepted)
    deviations = (own - centre) / spread
    stands_out, apart = float(deviations.mean()), float(np.sqrt((deviations**2).mean()))
    agreed = float(deviations.clip(-MOST_OF_ONE, MOST_OF_ONE).mean())
    is_mixed = len(own) > 1 and apart >= LEAST_SOURCE and (abs(agreed) < LEAST_SOURCE or agreed * stands_out < 0)
    is_faint = is_relation and abs(stands_out) < LEAST_SOURCE
    was_said, support = bool(sources) and not (is_mixed or is_faint), len(own) if sources else 1
    of_others = [each for each in rejected if each in logits and each != told]
    others = np.array([logits[each] for each in of_others])
    groups = ([documents.get(each, each) for each in of_others], [documents.get(each, each) for each in of_fine])
    if len(others) < (FEWEST_OTHERS if was_said else FEWEST_OTHERS_ALONE):
        return Standing(apart if is_mixed else stands_out, None, was_said=was_said, support=support)
    if was_said:
        effect, noise = _effect(others, accepted, groups, 1.0 if stands_out > 0 else -1.0)
        return Standing(stands_out, effect, noise, support=support)
    sign = max((1.0, -1.0), key=lambda each: _effect(others, accepted, groups, each)[0])
    effect, noise = _effect(others, accepted, groups, sign)
    return Standing(sign * (apart if is_mixed else abs(stands_out)), effect, noise, was_said=False, support=support)


def agreeing(
    candidate: CriterionRecord,
    good: GoodAnswer,
    logits: Mapping[str, float],
    fine: Collection[str],
    remarks: Mapping[str, Collection[str]],
) -> CriterionRecord:
    """Drop the sources of a candidate that do not stand out on its side, with their comments, where others are left.

    The same words come of "doses by mail!" and of "no number to ring". The sources of ``candidate`` do not all say the
    same (:attr:`Standing.was_said`).
    """
    centre, spread = centre_and_spread(np.array([logits[each] for each in fine if each in logits]))
    least = LEAST_SOURCE * spread
    bad = {
        each: logits[each] - centre if good == "no" else centre - logits[each]
        for each in candidate.sources
        if each in logits
    }
    left = tuple(each for each in candidate.sources if bad.get(each, least) >= least)
    if not any(each in bad for each in left):
        return candidate
    out = [each for each in candidate.sources if each not in left]
    kept, gone = ({text for name in some for text in remarks.get(name, ())} for some in (left, out))
    comments = tuple(text for text in candidate.comments if text in kept or text not in gone)
    return candidate.but(sources=left, comments=comments)


@dataclass(frozen=True)
class Asked:
    """Answers to a question that is asked already, on outputs that people judged."""

    question: Question
    rejected: Sequence[float]
    """Log-odds of yes on them."""
    fine: Sequence[float]
    """Log-odds of yes on accepted outputs."""
    documents: tuple[Sequence[str], Sequence[str]] | None = None
    """The document of each rejected output and of each accepted one; None: every output is one of its own."""

    @property
    def is_enough(self) -> bool:
        """Whether there are outputs enough to say anything."""
        return min(len(self.rejected), len(self.fine)) >= FEWEST_OTHERS

    def strength(self, *, turned: bool = False) -> float:
        """Standard errors by which it speaks against rejected outputs, or would with the other answer as the good
        one."""
        sign = 1.0 if self.question.is_fault is not turned else -1.0
        groups = self.documents or (range(len(self.rejected)), range(-len(self.fine), 0))
        effect, noise = _effect(np.array(self.rejected), np.array(self.fine), groups, sign)
        return effect / max(noise, LEAST_NOISE)


def _effect(
    others: Vector, accepted: Vector, documents: tuple[Sequence[Hashable], Sequence[Hashable]], sign: float
) -> tuple[float, float]:
    """How much worse rejected outputs look than accepted ones, and its standard error; ``sign`` 1 where yes is bad."""
    bad, base = badness(sign * others, sign * accepted), badness(sign * accepted, sign * accepted)
    effect, noise = grouped_difference(bad, base, *documents)
    # scores rank outputs of different documents: what differs between documents is noise there
    across = np.sqrt(bad.var(ddof=1) / len(bad) + base.var(ddof=1) / len(base))
    return effect, max(noise, float(across))


def fates_of(asked: Mapping[str, Asked], joined: Collection[str]) -> dict[str, Fate]:
    """Decide what becomes of the questions that are asked already. It costs no call, as their verdicts are there.

    One is ``dropped`` where it looks better on rejected outputs than on accepted ones, by more than a standard
    error, and ``flipped`` where its other polarity moreover speaks against rejected outputs by :data:`TURNED_NOISE`
    of them. Where others join its dimension it is ``idle`` if it speaks against rejected outputs by less than they
    have to, :data:`SAID_NOISE`. Here its author's other questions vouch for it: by how many standard errors they
    speak, on average, is what one would expect of it, give or take one (mean and deviation of the normal posterior).
    """
    fates: dict[str, Fate] = dict.fromkeys(asked, "stays")
    spoken = {name: each.strength() for name, each in asked.items() if each.is_enough}
    for name, strength in spoken.items():
        beside = [other for each, other in spoken.items() if each != name]
        own = (len(beside) + 1) / (2 * len(beside) + 1)  # v / (1 + v), where the prior's variance v is 1 + 1/k
        believed = own * strength + (1 - own) * (mean_score(beside) or 0.0)
        if strength < -1.0:
            fates[name] = "flipped" if asked[name].strength(turned=True) > TURNED_NOISE else "dropped"
        elif asked[name].question.dimension in joined and believed < SAID_NOISE * math.sqrt(own):
            fates[name] = "idle"
    return fates


def weighed(found: Mapping[str, Standing], mean: float) -> dict[str, float]:
    """Weights of questions that join, of this mean: the effect of each over its variance.

    It is the linear discriminant of Fisher ("The use of multiple measurements in taxonomic problems", Annals of
    Eugenics 7, 1936) with the questions taken for independent. A question that stands out on many accepted outputs
    would drown the others. A question without an effect has the ``mean`` weight.
    """
    raw = {
        name: fisher_weight(each.effect, each.noise)
        for name, each in found.items()
        if each.effect is not None and each.effect > 0
    }
    usual = mean_score(raw.values()) or 1.0
    return {name: round(mean * raw.get(name, usual) / usual, 3) for name in found}


def id_for(text: str, taken: Collection[str]) -> str:
    """A short id made from the words of a question, e.g. ``name-a-price``; unlike all that are taken."""
    words = [each for each in re.findall(r"[^\W_]+", text.lower())[1:] if each not in _FILLER]
    return free_id("-".join(words[1:5] or words) or "question", taken)  # the first word is what an output is called


def free_id(wanted: str, taken: Collection[str]) -> str:
    """The id, or the first with a number behind it that is not taken."""
    name, number = wanted, 2
    while name in taken:
        name, number = f"{wanted}-{number}", number + 1
    return name


def as_question(candidate: CriterionRecord, name: str, good: GoodAnswer, weight: float = 1.0) -> Question:
    """The candidate as a question of a checklist."""
    text, dimension, sees = candidate.text, candidate.dimension, candidate.sees
    return Question(id=name, text=text, dimension=dimension, good=good, weight=weight, sees=sees)


def turned(question: Question) -> Question:
    """Turn a question round: the other answer is the good one."""
    return question.model_copy(update={"good": "yes" if question.is_fault else "no"})


def unite(candidates: Sequence[CriterionRecord], near: Mapping[int, int]) -> list[CriterionRecord]:
    """Candidates with the same meaning as one, the first of them, with the sources of all.

    ``near`` gives, by place, the place of an earlier candidate that asks the same.
    """
    kept: dict[int, CriterionRecord] = {}
    for place, candidate in enumerate(candidates):
        first = near.get(place, place)
        kept[first] = kept[first].as_one_with(candidate) if first in kept else candidate
    return list(kept.values())
