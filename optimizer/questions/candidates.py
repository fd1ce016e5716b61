"""Questions that may join a checklist: their words, their sources, and the evidence for them."""

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
"""Deviations at which an output counts as half bad in a question's effect, and log-odds per deviation. Gentler than in
a score, because an effect is a mean over many outputs. With the score's slope effects chose worse (63 % of the possible
gain in place of 66, 15 worlds)."""
CONTRAST_NOISE = 1.5
"""Least effect, in standard errors, of a question without sources, or whose sources do not tell its good answer."""
SAID_NOISE = 1.0
"""Least effect on all examples, in standard errors, of a question that came from a comment. Lower than for other
questions, because a person asked for it; not 0, because a question from one comment may find no other output."""
TURNED_NOISE = 3.0
"""Least effect, in standard errors, of a question of the start once it is turned round. High, because its author said
which answer is good, and every question of the start is tested."""
LEAST_SOURCE = 0.5
"""Least distance, in deviations, of a question's sources from accepted outputs; below, it does not find its sources."""
MOST_OF_ONE = 2.0
"""Most deviations that count for one source when several sources decide which answer is the good one."""
FEWEST_OTHERS, FEWEST_OTHERS_ALONE = 3, 8
"""Fewest other rejected outputs for a question's effect; the second number where they also decide which answer is the
good one."""
LEAST_NOISE = 1e-9
"""Standard error that is assumed where all answers are the same."""
SAME_VERDICTS = 0.9
"""Rank correlation of the verdicts above which two questions are one."""
ALIKE_VERDICTS = 0.7
"""Rank correlation above which the weaker of two new questions stays out, because it takes the place of a question that
finds other outputs. Below, two questions about one thing err on different outputs, so both together err less."""
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
    """Distance of the question's sources from accepted outputs, in deviations of log-odds of yes; below 0 where the
    sources lack something. Without sources, the distance of all rejected outputs."""
    effect: float | None
    """Mean badness of rejected outputs without its first source, minus the mean badness of accepted ones, in [-1, 1];
    None where there are too few outputs."""
    noise: float = 0.0
    """Standard error of the effect."""
    was_said: bool = True
    """Whether the question's sources tell which answer is the good one; else all rejected outputs decide."""
    support: int = 1
    """Number of outputs that the question comes from."""

    @property
    def good(self) -> GoodAnswer:
        """The good answer: ``no`` where the question's sources, which are rejected, have the thing asked about."""
        return "no" if self.stands_out > 0 else "yes"

    @property
    def problem(self) -> str | None:
        """Why the question may not join; None where it may."""
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
        """The effect of a question that may join; 0 where it may not, or the effect is unknown."""
        return 0.0 if self.effect is None or self.problem is not None else self.effect

    @property
    def is_hopeless(self) -> bool:
        """Whether the effect is negative by more than a standard error. Further outputs would not save the question."""
        return self.effect is not None and self.effect < -self.noise

    @property
    def is_chance(self) -> bool:
        """Whether the effect on rejected outputs other than the first source is within noise. An unknown effect counts
        as noise only if the sources do not tell the good answer."""
        return not self.was_said if self.effect is None else self.effect < SAID_NOISE * self.noise

    @property
    def rank(self) -> tuple[float, float]:
        """Sort key: effect, then promise."""
        return (0.0 if self.effect is None else self.effect), self.promise

    @property
    def promise(self) -> float:
        """Distance of the sources from accepted outputs. It counts more with more sources, as a mean of several outputs
        is surer."""
        return abs(self.stands_out) * math.sqrt(self.support)


def yes_logits(verdicts: Iterable[Verdict]) -> dict[str, dict[str, float]]:
    """Return the log-odds of yes by question and example, where every replicate was answered."""
    table: dict[str, dict[str, float]] = {}
    for (example, question), values in replicates(verdicts).items():
        mean = complete_mean(values)
        if mean is not None:
            table.setdefault(question, {})[example] = float(logit(np.array([mean]))[0])
    return table


def badness(values: Vector, fine: Vector) -> Vector:
    """Return how far each output stands out upwards from accepted outputs, in [0, 1], shape (n,). ``values`` are
    log-odds that something is wrong, shape (n,); ``fine`` those of accepted outputs, shape (m,), m > 1."""
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
        logits: Log-odds of yes by example.
        sources: Rejected outputs that the question comes from. They tell which answer is the good one, unless some have
            the thing and others lack it: several comments can lead to the same words for opposite reasons. The first
            source is left out of the effect, because the question was made of its comment. Further sources count like
            all other rejected outputs.
        fine: Accepted outputs.
        rejected: Rejected outputs.
        is_relation: Whether the question is about a relation. A relation stands out a little on many outputs. So where
            its sources do not tell the good answer, all rejected outputs decide.
        documents: The document of each example. Outputs of the same document are compared with each other, because a
            question about the topic of a document tells documents apart and finds nothing in the next one.
    """
    fine_names = [each for each in fine if each in logits]
    accepted = np.array([logits[each] for each in fine_names])
    first_source = next((each for each in sources if each in logits), None)
    source_logits = np.array([logits[each] for each in sources or rejected if each in logits])
    if len(accepted) < FEWEST_OTHERS or not len(source_logits):
        return None
    centre, spread = centre_and_spread(accepted)
    deviations = (source_logits - centre) / spread
    stands_out, distance = float(deviations.mean()), float(np.sqrt((deviations**2).mean()))
    agreed = float(deviations.clip(-MOST_OF_ONE, MOST_OF_ONE).mean())
    is_mixed = (
        len(source_logits) > 1 and distance >= LEAST_SOURCE and (abs(agreed) < LEAST_SOURCE or agreed * stands_out < 0)
    )
    is_faint = is_relation and abs(stands_out) < LEAST_SOURCE
    was_said, support = bool(sources) and not (is_mixed or is_faint), len(source_logits) if sources else 1
    other_names = [each for each in rejected if each in logits and each != first_source]
    other_logits = np.array([logits[each] for each in other_names])
    groups = ([documents.get(each, each) for each in other_names], [documents.get(each, each) for each in fine_names])
    if len(other_logits) < (FEWEST_OTHERS if was_said else FEWEST_OTHERS_ALONE):
        return Standing(distance if is_mixed else stands_out, None, was_said=was_said, support=support)
    if was_said:
        effect, noise = _effect(other_logits, accepted, groups, 1.0 if stands_out > 0 else -1.0)
        return Standing(stands_out, effect, noise, support=support)
    sign = max((1.0, -1.0), key=lambda each: _effect(other_logits, accepted, groups, each)[0])
    effect, noise = _effect(other_logits, accepted, groups, sign)
    return Standing(sign * (distance if is_mixed else abs(stands_out)), effect, noise, was_said=False, support=support)


def agreeing(
    candidate: CriterionRecord,
    good: GoodAnswer,
    logits: Mapping[str, float],
    fine: Collection[str],
    remarks: Mapping[str, Collection[str]],
) -> CriterionRecord:
    """Drop the sources of a candidate that do not stand out on its side, with their comments, if others are left.

    For candidates whose sources do not tell one good answer (:attr:`Standing.was_said`): "doses by mail!" and "no
    number to ring" may lead to the same question.
    """
    centre, spread = centre_and_spread(np.array([logits[each] for each in fine if each in logits]))
    least = LEAST_SOURCE * spread
    bad = {
        each: logits[each] - centre if good == "no" else centre - logits[each]
        for each in candidate.sources
        if each in logits
    }
    kept_sources = tuple(each for each in candidate.sources if bad.get(each, least) >= least)
    if not any(each in bad for each in kept_sources):
        return candidate
    out = [each for each in candidate.sources if each not in kept_sources]
    kept, gone = ({text for name in some for text in remarks.get(name, ())} for some in (kept_sources, out))
    comments = tuple(text for text in candidate.comments if text in kept or text not in gone)
    return candidate.but(sources=kept_sources, comments=comments)


@dataclass(frozen=True)
class Asked:
    """Answers to a question of the start, on outputs that people judged."""

    question: Question
    rejected: Sequence[float]
    """Log-odds of yes on rejected outputs."""
    fine: Sequence[float]
    """Log-odds of yes on accepted outputs."""
    documents: tuple[Sequence[str], Sequence[str]] | None = None
    """The document of each rejected output and of each accepted one; None: every output has its own document."""

    @property
    def is_enough(self) -> bool:
        """Whether there are enough outputs on both sides to measure an effect."""
        return min(len(self.rejected), len(self.fine)) >= FEWEST_OTHERS

    def strength(self, *, turned: bool = False) -> float:
        """Return the effect in standard errors; ``turned``: with the other answer as the good one."""
        sign = 1.0 if self.question.is_fault is not turned else -1.0
        groups = self.documents or (range(len(self.rejected)), range(-len(self.fine), 0))
        effect, noise = _effect(np.array(self.rejected), np.array(self.fine), groups, sign)
        return effect / max(noise, LEAST_NOISE)


def _effect(
    others: Vector, accepted: Vector, documents: tuple[Sequence[Hashable], Sequence[Hashable]], sign: float
) -> tuple[float, float]:
    """Return how much worse rejected outputs look than accepted ones, and the standard error. ``sign`` is 1 where yes
    is bad, else -1."""
    bad, base = badness(sign * others, sign * accepted), badness(sign * accepted, sign * accepted)
    effect, noise = grouped_difference(bad, base, *documents)
    # scores compare outputs of different documents, so differences between documents are noise too
    across = np.sqrt(bad.var(ddof=1) / len(bad) + base.var(ddof=1) / len(base))
    return effect, max(noise, float(across))


def fates_of(asked: Mapping[str, Asked], joined: Collection[str]) -> dict[str, Fate]:
    """Decide the fate of the questions of the start. It costs no call, because their verdicts are known.

    A question is ``dropped`` if its effect is below -1 standard error. It is ``flipped`` instead if its effect with the
    other polarity is above :data:`TURNED_NOISE` standard errors. A question is ``idle`` if new questions joined its
    dimension and its own effect is less than new questions need, :data:`SAID_NOISE`. This last effect is shrunk towards
    the mean effect of the author's other questions: it is the mean of a normal posterior, and the threshold is scaled
    by the posterior's deviation.
    """
    fates: dict[str, Fate] = dict.fromkeys(asked, "stays")
    spoken = {name: each.strength() for name, each in asked.items() if each.is_enough}
    for name, strength in spoken.items():
        beside = [other for each, other in spoken.items() if each != name]
        own_weight = (len(beside) + 1) / (2 * len(beside) + 1)  # v / (1 + v), where the prior's variance v is 1 + 1/k
        believed = own_weight * strength + (1 - own_weight) * (mean_score(beside) or 0.0)
        if strength < -1.0:
            fates[name] = "flipped" if asked[name].strength(turned=True) > TURNED_NOISE else "dropped"
        elif asked[name].question.dimension in joined and believed < SAID_NOISE * math.sqrt(own_weight):
            fates[name] = "idle"
    return fates


def weighed(found: Mapping[str, Standing], mean: float) -> dict[str, float]:
    """Return weights with this mean for questions that join: the effect of each divided by its variance.

    This is Fisher's linear discriminant ("The use of multiple measurements in taxonomic problems", Annals of Eugenics
    7, 1936) for independent questions. Without it, a question that stands out on many accepted outputs would drown the
    others. A question whose effect is unknown or not above 0 has the ``mean`` weight.
    """
    raw = {
        name: fisher_weight(each.effect, each.noise)
        for name, each in found.items()
        if each.effect is not None and each.effect > 0
    }
    usual = mean_score(raw.values()) or 1.0
    return {name: round(mean * raw.get(name, usual) / usual, 3) for name in found}


def id_for(text: str, taken: Collection[str]) -> str:
    """Make a short id from the words of a question, e.g. ``name-a-price``, that is not taken."""
    words = [each for each in re.findall(r"[^\W_]+", text.lower())[1:] if each not in _FILLER]
    return free_id("-".join(words[1:5] or words) or "question", taken)  # the first word is what an output is called


def free_id(wanted: str, taken: Collection[str]) -> str:
    """Return the wanted id, or if it is taken the first free one with a number behind it."""
    name, number = wanted, 2
    while name in taken:
        name, number = f"{wanted}-{number}", number + 1
    return name


def as_question(candidate: CriterionRecord, name: str, good: GoodAnswer, weight: float = 1.0) -> Question:
    """Make a question of a checklist from a candidate."""
    text, dimension, sees = candidate.text, candidate.dimension, candidate.sees
    return Question(id=name, text=text, dimension=dimension, good=good, weight=weight, sees=sees)


def turned(question: Question) -> Question:
    """Turn a question round: the other answer is the good one."""
    return question.model_copy(update={"good": "yes" if question.is_fault else "no"})


def unite(candidates: Sequence[CriterionRecord], near: Mapping[int, int]) -> list[CriterionRecord]:
    """Join candidates with the same meaning: the first one stays, with the sources of all.

    ``near`` maps the place of a candidate to the place of an earlier candidate that asks the same.
    """
    kept: dict[int, CriterionRecord] = {}
    for place, candidate in enumerate(candidates):
        first = near.get(place, place)
        kept[first] = kept[first].as_one_with(candidate) if first in kept else candidate
    return list(kept.values())
