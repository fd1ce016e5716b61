"""A world with known truth, to test what an improvement loop does when the right answers are known.

Outputs have faults and harmless things; each shows by a sign. People's scores are the true quality plus a rater's
noise. A judge of this world has *errors*: kinds of faults that it does not see and kinds of harmless things that it
punishes. An error disappears when the judge's prompt holds the right guidance, in one of several wordings. Guidance may
also do harm: excuse a fault, punish a harmless thing, lead a question astray, or only shift the bias. And a prompt that
is longer than a capacity makes the judge noisy.

People may also comment on outputs, and the judge may be asked further questions, each about one thing. With these
questions it finds faults that it overlooks otherwise, as well as a small model does (METHOD part 4). If
``comment_share`` is 0, nobody comments.
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
from .simulated_texts import KINDS, TOPICS, VAGUE, AskedThing, Guidance, Kind, Topic, comment_of, read_guidance

DIMENSION = "quality"
SHIFT = 1.5
"""Log-odds by which an order to be severe or lenient moves every answer."""
BLUR = 0.6
"""Factor by which such an order reduces the judge's difference between good and bad."""
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
    kinds: int = 3
    """Number of kinds of faults that occur for each question, from 1 to 3."""
    blind: int = 4
    """Number of kinds of faults that the judge does not see, among those that occur."""
    punished: int = 2
    """Number of kinds of harmless things, of 4, that the judge takes for faults."""
    misguided: int = 0
    """Number of unseen kinds of faults that the starting prompt calls fine; guidance is useless beside that line."""
    curable: bool = True
    """Whether the right guidance helps. If not, no edit helps, and only noise changes."""
    heeded: float = 1.0
    """Share of the errors against which guidance helps; the judge overlooks rules about the others."""
    fault_rate: float = 0.45
    """Share of (example, question) pairs with a fault."""
    harmless_rate: float = 0.35
    """Share of the other pairs with a thing that only looks like a fault."""
    leniency: float = 0.7
    """Log-odds of yes that the judge adds to everything."""
    sharpness: float = 1.5
    """Log-odds by which the judge's verdict on the signs moves its answer: down for a fault, up without one."""
    judge_noise: float = 1.0
    """Standard deviation, in log-odds, of the judge's own noise for a question on an example, with any prompt."""
    wobble: float = 0.4
    """Standard deviation, in log-odds, of noise that changes with every wording of the prompt."""
    capacity: int = 900
    """Characters of prompt and question that the judge can keep in mind."""
    crowding: float = 3.0
    """Log-odds of further noise for every 1,000 characters beyond the capacity."""
    rater_noise: float = 0.5
    """Standard deviation of people's scores, which are from 1 to 5, around the true quality."""
    note_taker_wrong: float = 0.3
    """Share of the notes that are wrong: a truism, a harmful rule, or a rule for another question, a third each."""
    deduplicator_wrong: float = 0.05
    """Share of the repeated lessons that are taken for new."""
    updater_wrong: float = 0.1
    """Share of the edits that are bad: half lose the lesson's subject, half add an order to be severe."""
    pass_fail: bool = False
    """Whether people pass outputs without a fault and fail the others, instead of giving scores."""
    wrong_labels: float = 0.0
    """Share of the examples with the wrong label, or with 6 minus the right score."""
    comment_share: float = 0.0
    """Share of outputs with a comment, among the outputs that people fail or score below their mean."""
    comment_vague: float = 0.2
    """Share of the comments without content."""
    comment_elsewhere: float = 0.1
    """Share of the comments about a thing that the output does not have, or that is harmless."""
    question_usable: float = 1 / 3
    """Share of the questions from a comment that name the comment's subject; the judge misunderstands the others."""
    question_seen: float = 1 / 3
    """Share of an output's things that a model names when it is shown the output."""
    usable_area: tuple[float, float] = (0.79, 0.996)
    """Range of the area under the curve of a usable question for its subject; drawn evenly."""
    spoilt_area: tuple[float, float] = (0.4, 0.6)
    """Range of the area under the curve of a misunderstood question for the intended subject; drawn evenly."""
    question_bias: float = 1.0
    """Standard deviation, in log-odds, between further questions in how readily the judge says yes."""
    shared_noise: tuple[float, float] = (0.2, 0.4)
    """Shares of the noise in answers to further questions that are common to all questions on an output, and to all
    questions about one thing."""

    def __post_init__(self) -> None:
        """Check the parameters. Raises ValueError if ``kinds``, ``misguided``, ``blind``, ``punished`` or
        ``shared_noise`` is out of range."""
        if not 1 <= self.kinds <= max(len(topic.of(faults=True)) for topic in TOPICS):
            raise ValueError(f"kinds must be from 1 to 3; they are {self.kinds}")
        if not 0 <= self.misguided <= self.blind:
            raise ValueError(f"misguided must be from 0 to blind, {self.blind}; it is {self.misguided}")
        faults, harmless = len(self._faults), len(_signs(faults=False))
        if not 0 <= self.blind <= faults or not 0 <= self.punished <= harmless:
            raise ValueError(
                f"blind must be from 0 to {faults} and punished from 0 to {harmless}; they are {self.blind} and "
                f"{self.punished}"
            )
        if min(self.shared_noise) < 0 or sum(self.shared_noise) > 1:
            raise ValueError(f"shared_noise must be two shares of at most 1 together; they are {self.shared_noise}")

    @cached_property
    def checklist(self) -> Checklist:
        """The checklist: one question for each topic, all of one dimension."""
        questions = tuple(Question(id=topic.id, text=topic.question, dimension=DIMENSION) for topic in TOPICS)
        return Checklist(task="Summarise the article.", questions=questions)

    @cached_property
    def prompt(self) -> Prompt:
        """The judge's starting prompt, without guidance, unless it is ``misguided``."""
        return Prompt(self._sound_prompt + "".join(map(self._wrong_rule, self.errors[: self.misguided])))

    @property
    def cured_prompt(self) -> Prompt:
        """The prompt without its wrong lines, and with the right guidance against every error."""
        return Prompt(self._sound_prompt + "".join(map(self.right_rule, self.errors)))

    @property
    def _sound_prompt(self) -> str:
        return (
            "You are a careful judge of summaries.\nRead the article first, then its summary, and judge the summary "
            "alone.\nAnswer each question for itself."
        )

    def _wrong_rule(self, sign: str) -> str:
        return self.right_rule(sign).replace("Answer no if", "Answer yes even if")

    @cached_property
    def errors(self) -> tuple[str, ...]:
        """Signs that the judge misjudges without guidance: faults that it does not see, then harmless things that it
        punishes."""
        chance = random.Random(f"errors/{self.seed}")
        blind = chance.sample(self._faults, self.blind)
        return (*blind, *chance.sample(_signs(faults=False), self.punished))

    @property
    def _faults(self) -> list[str]:
        """The signs of the faults that occur."""
        return [kind.sign for topic in TOPICS for kind in topic.of(faults=True)[: self.kinds]]

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """The examples, in the form of askance's data rows."""
        return self.make_rows(self.size)

    def make_rows(self, count: int, prefix: str = "e") -> list[dict[str, Any]]:
        """Make examples with ids that begin with ``prefix``. Another prefix gives new ones of the same population."""
        return [self._row(f"{prefix}{number:04d}") for number in range(count)]

    def signs(self, example: str) -> tuple[str, ...]:
        """Return the signs of an example's output, at most one for each question."""
        signs = []
        for topic in TOPICS:
            faulty = self.share("faulty", example, topic.id) < self.fault_rate
            kinds = topic.of(faults=faulty)[: self.kinds]
            if faulty or self.share("harmless", example, topic.id) < self.harmless_rate:
                signs.append(kinds[int(len(kinds) * self.share("kind", example, topic.id))].sign)
        return tuple(signs)

    def truth(self, example: str) -> dict[str, bool]:
        """Return the right answers of an example, by question id."""
        there = set(self.signs(example))
        return {topic.id: not any(kind.sign in there for kind in topic.of(faults=True)) for topic in TOPICS}

    def quality(self, example: str) -> float:
        """Return the true score of an example: the share of right answers that are yes, in [0, 1]."""
        return fmean(self.truth(example).values())

    def right_rule(self, sign: str, wording: int = 0) -> str:
        """Return the sentence that cures an error; ``wording`` chooses among the paraphrases."""
        kind = next(kind for kind in KINDS if kind.sign == sign)
        phrase = kind.phrases[wording % len(kind.phrases)]
        opening = "Answer no if the output has" if kind.is_fault else "Answer yes even if the output has"
        return f"\n- {opening} {phrase}."

    def misjudged(self, prompt: str | Prompt) -> set[str]:
        """Return all signs that a judge with this prompt misjudges: its own errors, and errors that guidance causes."""
        guidance = read_guidance(prompt.text if isinstance(prompt, Prompt) else prompt)
        return {kind.sign for kind in KINDS if self._takes_for_fault(kind, guidance) != kind.is_fault}

    def errors_in(self, prompt: str | Prompt) -> set[str]:
        """Return the judge's own errors that are left with this prompt."""
        return self.misjudged(prompt) & set(self.errors)

    def p_yes(self, example: str, signs: Iterable[str], topic: Topic, told: str, *, perfect: bool = False) -> float:
        """Return P(yes) for a starting question. ``told`` is the judge's text without the example's texts: prompt and
        question; its length counts. A ``perfect`` judge has no errors to begin with."""
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

    def p_there(self, example: str, signs: Iterable[str], asked: AskedThing, told: str) -> float:
        """Return P(yes), between 0 and 1, for a further question about one thing.

        The noise depends on the prompt only beyond the judge's capacity. Questions on one output share a part of the
        noise, and questions about one thing share another part. ``told`` is the judge's text without the example's
        texts; its length counts.
        """
        low, high = self.usable_area if asked.usable else self.spoilt_area
        area = low + (high - low) * self.share("area", asked.text)
        distance = 2**0.5 * _NORMAL.inv_cdf(area)  # two normals of one spread
        is_present = asked.kind is not None and asked.kind.sign in frozenset(signs)
        of_all, of_kind = self.shared_noise
        name = asked.kind.sign if asked.kind is not None and asked.usable else asked.text
        noise = of_all**0.5 * self._gauss("whole", example) + of_kind**0.5 * self._gauss("kind", example, name)
        noise += (1 - of_all - of_kind) ** 0.5 * self._gauss("asked", example, asked.text)
        crowded = self.crowding * max(0, len(told) - self.capacity) / 1000
        noise += crowded * self._gauss("wobble", example, asked.text, told)
        bias = self.question_bias * self._gauss("bias", asked.text)
        return 1 / (1 + exp(-(bias + distance * is_present + noise)))

    def share(self, *parts: object) -> float:
        """Return a number in (0, 1) that depends only on the parts and the seed."""
        digest = sha256("\n".join(map(str, (self.seed, *parts))).encode()).digest()
        return (int.from_bytes(digest[:6], "big") + 0.5) / 2**48

    def _gauss(self, *parts: object) -> float:
        return _NORMAL.inv_cdf(self.share(*parts))

    def _takes_for_fault(self, kind: Kind, guidance: Guidance, perfect: bool = False) -> bool:
        """Whether the judge answers no because of a thing. Guidance that calls it both fault and harmless is
        ignored."""
        wrong = not perfect and kind.sign in self.errors
        said = (kind.sign in guidance.faults) - (kind.sign in guidance.harmless)
        overlooked = wrong and (not self.curable or self.share("heeded", kind.sign) >= self.heeded)
        if said and not overlooked:
            return said > 0
        return kind.is_fault != wrong

    def _row(self, example: str) -> dict[str, Any]:
        quality = self.quality(example)
        score = 1 + 4 * quality + self.rater_noise * self._gauss("rater", example)
        if self.pass_fail:
            score = 5.0 if quality == 1 else 1.0
        if self.share("mislabelled", example) < self.wrong_labels:
            score = 6 - score
        row = {
            "id": example,
            "input": f"Article [{example}].",
            "output": f"Summary [{example}]: {' '.join(self.signs(example)) or 'plain'}.",
            "human": {DIMENSION: score > 3 if self.pass_fail else round(score, 2)},
        }
        comment = self._comment(example) if score < (3 if self.pass_fail else 5 - 4 * self.fault_rate) else None
        return row if comment is None else row | {"comment": comment}

    def _comment(self, example: str) -> str | None:
        """Return a comment on an output that people failed or scored below their mean; None if nobody comments."""
        if self.share("commented", example) >= self.comment_share:
            return None
        chance = random.Random(f"comment/{self.seed}/{example}")
        kinds = [kind for kind in KINDS if not kind.is_fault or kind.sign in self._faults]
        faults = [kind for kind in kinds if kind.is_fault and kind.sign in self.signs(example)]
        way = chance.random()
        if way < self.comment_vague:
            return chance.choice(VAGUE)
        if way < self.comment_vague + self.comment_elsewhere or not faults:
            return comment_of(chance.choice([kind for kind in kinds if kind not in faults]), chance)
        return comment_of(chance.choice(faults), chance)


def _signs(*, faults: bool) -> list[str]:
    return [kind.sign for kind in KINDS if kind.is_fault == faults]
