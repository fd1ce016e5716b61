"""The race of candidates on more and more examples; candidates that fall behind are not asked about the rest.

Successive halving by rank (Jamieson and Talwalkar, "Non-stochastic best arm identification and hyperparameter
optimization", AISTATS 2016, section 3). Rejected outputs come first: an effect is measured on rejected outputs, and a
few accepted ones suffice for the centre and spread that it is held against.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from math import ceil

from ...evaluation.calibration_fit import FEWEST_ACCEPTED, least_accepted
from ...evaluation.measures.fitting import likeness
from ...evaluation.scoring import Targets, mean_score
from ...memory.records import CriterionRecord
from ...prompts.examples import Example
from .candidates import ALIKE_VERDICTS, SAME_VERDICTS

Sides = Mapping[str, tuple[list[str], list[str]]]
"""Accepted and rejected examples by dimension, the extremes first."""
Verdicts = Mapping[str, Mapping[str, float]]
"""Log-odds of yes by question and example."""

SCREENED = 8
"""Accepted examples that candidates are judged on first; also the number of rejected ones for candidates without
sources."""
RACED = 20
"""Least number of candidates in the race, for each part of the examples whose comments were read. Many, because a
candidate's own sources say little about which candidate is the best."""
STEPS = ((2 / 3, 2.5), (1.0, 2.0))
"""Share of the rejected examples that a step is judged on, and candidates left after it per question that may join."""
# With half of the rejected examples first, or fewer candidates left, good ones were lost (stored answers of real runs).
FEWEST_REJECTED = 6
"""Fewest rejected examples on which a candidate is judged before it may be dropped."""
FEW_REJECTED = 0.01
"""Share of the rejected examples that relations are judged on first; so small that it means :data:`FEWEST_REJECTED`."""
OF_RELATIONS = 1 / 3
"""Share of the places in a race that are kept for relations."""
OF_ONE = 2
"""Most questions from the same comment that join in one round; more would find the same outputs and take places."""
SHORTEST = 4
"""Fewest letters of a word that tells the topic of an output, and of the beginning that all forms of a word share."""
OF_ONE_OUTPUT = 0.05
"""Largest share of the other outputs that may have a word that tells the topic of one output."""
NO_ROOM = (
    "others promised more on the first examples",
    "others promised more on the development examples",
    "others from the same comment promised more",
    "it asks for what the output that it comes from alone is about, and the others came first",
)
"""Reasons for candidates that are not asked because better ones are."""


SAME_AS = "it gets the same verdicts as '{}'"
"""Reason for candidates with the same verdicts as another criterion."""
FEWEST_ALIKE = 8
"""Fewest answers of a candidate before it is compared with a measure."""


@dataclass
class Joining:
    """Candidates that join, the best first, and the reasons for the others."""

    kept: list[str] = field(default_factory=list)
    unused: dict[str, str] = field(default_factory=dict)
    twins: dict[str, str] = field(default_factory=dict)
    """The criterion with the same verdicts, by unused candidate."""


class SubjectMatter:
    """Topics of outputs: words that hardly any other output has.

    A question with such a word stands out on the output that it comes from and finds no other: "Does the summary say
    how the squirrel bit the cable?". On a few outputs it looks better than a question that finds the same fault
    elsewhere. All candidates are needed to tell topics. A word in questions from several outputs is no topic. The words
    that all questions begin with, and the word behind them, are no topic either: they say what an output does.
    """

    def __init__(self, outputs: Mapping[str, str], candidates: Collection[CriterionRecord]) -> None:
        self._outputs = len(outputs)
        self._holding: defaultdict[str, defaultdict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        for name, output in outputs.items():
            for word in set(_words(output)):
                self._holding[word[:SHORTEST]][word].add(name)
        asked = [_words(each.text) for each in candidates]
        self._opening = 1 + sum(1 for _ in takewhile(lambda words: len(set(words)) == 1, zip(*asked, strict=False)))
        self._asked_of: defaultdict[str, set[str]] = defaultdict(set)
        for words, each in zip(asked, candidates, strict=True):
            for word in words:
                self._asked_of[word].update(each.sources[:1])

    def is_of_one(self, candidate: CriterionRecord) -> bool:
        """Whether a question from one source asks only for that output's topic. Each alternative, divided by a comma or
        "or", has to name it."""
        if len(candidate.sources) != 1:
            return False
        first, *others = [_words(each) for each in _OR.split(candidate.text)]
        return all(self._tells(words, candidate.sources[0]) for words in (first[self._opening :], *others) if words)

    def _tells(self, words: Iterable[str], source: str) -> bool:
        """Whether one of the words tells the topic of the source."""
        most = 1 + OF_ONE_OUTPUT * (self._outputs - 1)
        of_one = (self._with(each) for each in words if len(self._asked_of[each]) < 2)
        return any(source in found and len(found) <= most for found in of_one)

    def _with(self, word: str) -> set[str]:
        """Return the outputs with the word or another form of it."""
        if len(word) < SHORTEST:
            return set()
        alike: Mapping[str, set[str]] = self._holding.get(word[:SHORTEST], {})
        return {name for each, names in alike.items() if _same(word, each) for name in names}


_OR = re.compile(r",|\bor\b", re.IGNORECASE)


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W\d_]+", text.casefold())


def _same(one: str, other: str) -> bool:
    """Whether two words are forms of one: they share the shorter word without its last letter, at least
    :data:`SHORTEST` letters, and their lengths differ by at most :data:`SHORTEST` letters."""
    shared = max(SHORTEST, min(len(one), len(other)) - 1)
    return one[:shared] == other[:shared] and abs(len(one) - len(other)) <= SHORTEST


def sides_by_dimension(examples: Sequence[Example], targets: Targets) -> dict[str, tuple[list[str], list[str]]]:
    """Return the accepted and the rejected examples by dimension, as :func:`sides_of` divides them; the extremes first.

    A dimension with too few accepted examples, or without a rejected one, is left out: nothing can be learned there.
    """
    found = {}
    for dimension in targets.dimensions:
        fine, poor = sides_on(dimension, examples, targets)
        if len(fine) >= FEWEST_ACCEPTED and poor:
            found[dimension] = fine, poor
    return found


def sides_on(dimension: str, examples: Sequence[Example], targets: Targets) -> tuple[list[str], list[str]]:
    """Return the accepted and rejected examples of one dimension, however few there are."""
    return sides_of({each.id: targets.wanted[each.id].get(dimension) for each in examples})


def sides_of(wanted: Mapping[str, float | None]) -> tuple[list[str], list[str]]:
    """Return the ids of accepted examples, whose wanted score is at least the mean, and of rejected ones, which are
    below. The extremes come first. Unrated examples are in neither."""
    known = {name: value for name, value in wanted.items() if value is not None}
    least = least_accepted(mean_score(known.values()) or 0.0)
    fine = sorted((each for each in known if known[each] >= least), key=lambda each: -known[each])
    poor = sorted((each for each in known if known[each] < least), key=lambda each: known[each])
    return fine, poor


def in_line(names: Sequence[str], named: Mapping[str, CriterionRecord], of_one: Collection[str]) -> list[str]:
    """Order candidates for places in the race. Candidates in ``of_one``, which ask for the topic of one output, come
    last."""
    others = _in_turn([name for name in names if name not in of_one], named)
    return others + _in_turn([name for name in names if name in of_one], named)


def _in_turn(names: Sequence[str], named: Mapping[str, CriterionRecord]) -> list[str]:
    """Order candidates in turns: first the best question of every comment, then the second best, and so on.

    A question from several comments has its turn at its best rank in any of them.
    """
    # turns are needed because on a few examples many questions look alike
    seen: dict[str, int] = {}
    turns: dict[str, int] = {}
    for name in names:
        remarks = named[name].comments or (name,)
        turns[name] = min(seen.get(each, 0) for each in remarks)
        seen |= {each: seen.get(each, 0) + 1 for each in remarks}
    return sorted(names, key=turns.__getitem__)


def places(parts: int, most: int) -> int:
    """Return the number of candidates in the race: ``parts`` of the examples were read, and ``most`` may join."""
    return max(parts * RACED, 2 * most)


def with_places(ranked: Sequence[str], room: int, relations: Collection[str], *, more: bool = True) -> list[str]:
    """Return the candidates that stay in the race, in their order.

    A question about a topic stands out much on few outputs, a relation a little on many. On the first examples topics
    look better. So relations compete with each other for :data:`OF_RELATIONS` of the places, and topics for the rest.

    Args:
        ranked: Candidates, the best first.
        room: How many may stay.
        relations: Candidates that are about a relation.
        more: Whether relations may win further places by their rank. False at the first look, where relations and
            topics are judged on different outputs.
    """
    relation_names, topic_names = ([name for name in ranked if (name in relations) is which] for which in (True, False))
    kept = min(len(relation_names), ceil(OF_RELATIONS * room))
    if more:
        kept = max(kept, sum(name in relations for name in ranked[:room]))
    kept = min(len(relation_names), max(kept, room - len(topic_names)))
    stay = {*relation_names[:kept], *topic_names[: room - kept]}
    return [name for name in ranked if name in stay]


def first_of(sides: Sides, rejected: float, accepted: float = 0.0) -> set[str]:
    """Return the examples that candidates are judged on first, by the shares of rejected and of accepted examples.

    There are at least :data:`SCREENED` accepted examples, and at least :data:`FEWEST_REJECTED` rejected ones unless
    their share is 0.
    """
    found: set[str] = set()
    for fine, poor in sides.values():
        found.update(fine[: max(SCREENED, ceil(accepted * len(fine)))])
        found.update(poor[: max(FEWEST_REJECTED, ceil(rejected * len(poor)))] if rejected else ())
    return found


def steps(sides: Sides, most: int) -> list[tuple[bool, set[str], int]]:
    """Return the steps of the race before the last one, which uses all examples.

    A step has whether all rejected examples are seen, the examples, and the number of candidates left after it.
    """
    return [(share == 1, first_of(sides, share), round(left * most)) for share, left in STEPS]


def as_measured(names: Sequence[str], logits: Verdicts, measures: Verdicts) -> dict[str, str]:
    """Map candidates to the measure that gives the same verdicts. These candidates need not be asked any further.

    Args:
        names: Candidates.
        logits: Log-odds of yes by candidate and example, as far as they were asked.
        measures: Values of the measures that join, by measure id and example.
    """
    found: dict[str, str] = {}
    for name in names:
        alike = {each: likeness(logits[name], values) for each, values in measures.items()}
        near = max(alike, key=alike.__getitem__, default="")
        if near and len(logits[name]) >= FEWEST_ALIKE and alike[near] > SAME_VERDICTS:
            found[name] = near
    return found


def joining(
    ranked: Sequence[str], logits: Verdicts, asked: Verdicts, *, room: int, remarks: Mapping[str, str | None]
) -> Joining:
    """Choose the candidates that join. A candidate with the same or much the same verdicts as a better one stays out.

    Use it only with answers on all examples: on a part, different verdicts may look the same, and it is unclear which
    of two candidates is better. At most ``room`` join, and at most :data:`OF_ONE` from one comment. ``remarks`` maps
    each candidate to the comment that it was made of.
    """
    found = Joining()
    for name in ranked:
        kept_likeness = {each: likeness(logits[name], logits[each]) for each in found.kept}
        all_likeness = kept_likeness | {each: likeness(logits[name], told) for each, told in asked.items()}
        nearest, twin = (max(some, key=some.__getitem__, default="") for some in (kept_likeness, all_likeness))
        siblings = sum(remarks[name] is not None and remarks[each] == remarks[name] for each in found.kept)
        if twin and all_likeness[twin] > SAME_VERDICTS:
            found.unused[name] = SAME_AS.format(twin)
            found.twins[name] = twin
        elif nearest and kept_likeness[nearest] > ALIKE_VERDICTS:
            found.unused[name] = f"it finds much the same as '{nearest}', which promises more"
        elif len(found.kept) >= room:
            found.unused[name] = NO_ROOM[1]
        elif siblings >= OF_ONE:
            found.unused[name] = NO_ROOM[2]
        else:
            found.kept.append(name)
    return found
