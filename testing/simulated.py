"""A world with known truth, to see what an improvement loop does where one can look behind the curtain.

Outputs have faults and harmless things; each shows by a sign. People's scores are the true quality plus a rater's
noise. A judge of this world has *errors*: kinds of faults that it does not see and kinds of harmless things that it
punishes. An error disappears when its prompt holds the right guidance, in one of several wordings. Guidance may also
do harm: excuse a fault, punish what is harmless, lead a question astray, or only buy severity. And a prompt that grows
past a capacity makes the judge noisy.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from math import exp
from statistics import NormalDist, fmean
from typing import Any

from ..prompts.checklist import Checklist, Question
from ..prompts.prompt import Prompt
from .simulated_texts import TOPICS, Guidance, Kind, Topic, read_guidance

DIMENSION = "quality"
SHIFT = 1.5
"""Log-odds by which an order to be severe or lenient moves every answer."""
BLUR = 0.6
"""What is left of the difference between good and bad after such an order."""
_NORMAL = NormalDist()


@dataclass(frozen=True)
class SimulatedWorld:
    """Examples, checklist, prompt and judges; every answer follows from the request's text and the seed.

    Example:
        >>> world = SimulatedWorld(size=40, seed=1)
        >>> sign = world.errors[0]
        >>> world.errors_in(world.prompt) == set(world.errors)
        True
        >>> sign in world.errors_in(world.prompt.text + world.right_rule(sign))
        False
    """

    size: int = 150
    """Examples with human scores."""
    seed: int = 0
    blind: int = 4
    """Kinds of faults that the judge does not see, of 12."""
    punished: int = 2
    """Kinds of harmless things that it takes for faults, of 4."""
    curable: bool = True
    """Whether the right guidance helps; where not, no edit can, and all that changes is noise."""
    fault_rate: float = 0.45
    """Share of (example, question) pairs with a fault."""
    harmless_rate: float = 0.35
    """Share of the other pairs with something that only looks like one."""
    leniency: float = 0.7
    """Log-odds of yes that the judge adds to everything."""
    sharpness: float = 1.5
    """Log-odds, in either direction, of what it sees."""
    judge_noise: float = 1.0
    """Standard deviation, in log-odds, of what it adds to a question on an example whatever the prompt."""
    wobble: float = 0.4
    """The same for noise that is another one with every wording of the prompt."""
    capacity: int = 900
    """Characters of prompt and question that the judge can keep in mind."""
    crowding: float = 3.0
    """Log-odds of further noise for every 1,000 characters beyond."""
    rater_noise: float = 0.5
    """Standard deviation of people's scores, which are from 1 to 5, around the true quality."""
    note_taker_wrong: float = 0.3
    """Share of the notes that are wrong: a truism, a harmful rule, or a rule for another question, a third each."""
    deduplicator_wrong: float = 0.05
    """Share of the repeats that are taken for new."""
    updater_wrong: float = 0.1
    """Share of the edits that are bad: half lose what the lesson speaks of, half add an order to be severe."""

    def __post_init__(self) -> None:
        """Check the parameters.

        Raises:
            ValueError: There are not so many kinds of faults, or of harmless things.
        """
        faults, harmless = len(_signs(faults=True)), len(_signs(faults=False))
        if not 0 <= self.blind <= faults or not 0 <= self.punished <= harmless:
            raise ValueError(
                f"blind must be from 0 to {faults} and punished from 0 to {harmless}; they are {self.blind} and "
                f"{self.punished}"
            )

    @cached_property
    def checklist(self) -> Checklist:
        """One question a topic, all of one dimension."""
        questions = tuple(Question(id=topic.id, text=topic.question, dimension=DIMENSION) for topic in TOPICS)
        return Checklist(task="Summarise the article.", questions=questions)

    @cached_property
    def prompt(self) -> Prompt:
        """The judge's starting prompt, without guidance."""
        return Prompt(
            "You are a careful judge of summaries.\nRead the article first, then its summary, and judge the summary "
            "alone.\nAnswer each question for itself."
        )

    @cached_property
    def errors(self) -> tuple[str, ...]:
        """Signs that the judge misjudges without guidance: faults that it does not see, then what it punishes."""
        chance = random.Random(f"errors/{self.seed}")
        blind = chance.sample(_signs(faults=True), self.blind)
        return (*blind, *chance.sample(_signs(faults=False), self.punished))

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """The examples, as the modes of askance take them."""
        return self.make_rows(self.size)

    def make_rows(self, count: int, prefix: str = "e") -> list[dict[str, Any]]:
        """Examples with ids that begin with ``prefix``; another prefix makes fresh ones of the same population."""
        return [self._row(f"{prefix}{number:04d}") for number in range(count)]

    def signs(self, example: str) -> tuple[str, ...]:
        """What the output of an example has, at most one sign a question."""
        found = []
        for topic in TOPICS:
            faulty = self.share("faulty", example, topic.id) < self.fault_rate
            kinds = topic.of(faults=faulty)
            if faulty or self.share("harmless", example, topic.id) < self.harmless_rate:
                found.append(kinds[int(len(kinds) * self.share("kind", example, topic.id))].sign)
        return tuple(found)

    def truth(self, example: str) -> dict[str, bool]:
        """The right answers, by question."""
        there = set(self.signs(example))
        return {topic.id: not any(kind.sign in there for kind in topic.of(faults=True)) for topic in TOPICS}

    def quality(self, example: str) -> float:
        """The true score of an example: the share of right answers that are yes, in [0, 1]."""
        return fmean(self.truth(example).values())

    def right_rule(self, sign: str, wording: int = 0) -> str:
        """The sentence that cures an error; ``wording`` chooses among the paraphrases."""
        kind = next(kind for topic in TOPICS for kind in topic.kinds if kind.sign == sign)
        phrase = kind.phrases[wording % len(kind.phrases)]
        opening = "Answer no if the output has" if kind.is_fault else "Answer yes even if the output has"
        return f"\n- {opening} {phrase}."

    def misjudged(self, prompt: str | Prompt) -> set[str]:
        """All signs that a judge with this prompt misjudges: its own errors, and those that the guidance makes."""
        guidance = read_guidance(prompt.text if isinstance(prompt, Prompt) else prompt)
        kinds = [kind for topic in TOPICS for kind in topic.kinds]
        return {kind.sign for kind in kinds if self._takes_for_fault(kind, guidance) != kind.is_fault}

    def errors_in(self, prompt: str | Prompt) -> set[str]:
        """Those of its own errors that are left with this prompt."""
        return self.misjudged(prompt) & set(self.errors)

    def p_yes(self, example: str, signs: Iterable[str], topic: Topic, told: str, *, perfect: bool = False) -> float:
        """What a judge answers.

        Args:
            example: Id of the example.
            signs: What its output shows.
            topic: What is asked.
            told: All that the judge is told besides the example: prompt and question. Its length counts.
            perfect: Whether it has no errors to begin with.

        Returns:
            P(yes), between 0 and 1.
        """
        guidance = read_guidance(told)
        there = frozenset(signs)
        fault = any(self._takes_for_fault(kind, guidance, perfect) for kind in topic.kinds if kind.sign in there)
        if topic.id in guidance.distracted:
            fault = self.share("astray", example, topic.id) < 0.5
        cue = self.sharpness * BLUR**guidance.blur * (-1 if fault else 1)
        crowded = self.crowding * max(0, len(told) - self.capacity) / 1000
        noise = self.judge_noise * self._gauss("judge", perfect, example, topic.id)
        noise += (self.wobble + crowded) * self._gauss("wobble", perfect, example, topic.id, told)
        return 1 / (1 + exp(-(self.leniency + SHIFT * guidance.shift + cue + noise)))

    def share(self, *parts: object) -> float:
        """A number in (0, 1) that depends on the parts and the seed alone."""
        digest = sha256("\n".join(map(str, (self.seed, *parts))).encode()).digest()
        return (int.from_bytes(digest[:6], "big") + 0.5) / 2**48

    def _gauss(self, *parts: object) -> float:
        return _NORMAL.inv_cdf(self.share(*parts))

    def _takes_for_fault(self, kind: Kind, guidance: Guidance, perfect: bool = False) -> bool:
        """Whether the judge answers no because of it. Guidance that calls it both is as good as none."""
        wrong = not perfect and kind.sign in self.errors
        said = (kind.sign in guidance.faults) - (kind.sign in guidance.harmless)
        if said and not (wrong and not self.curable):
            return said > 0
        return kind.is_fault != wrong

    def _row(self, example: str) -> dict[str, Any]:
        score = 1 + 4 * self.quality(example) + self.rater_noise * self._gauss("rater", example)
        return {
            "id": example,
            "input": f"Article [{example}].",
            "output": f"Summary [{example}]: {' '.join(self.signs(example)) or 'plain'}.",
            "human": {DIMENSION: round(score, 2)},
        }


def _signs(*, faults: bool) -> list[str]:
    return [kind.sign for topic in TOPICS for kind in topic.of(faults=faults)]
