"""What GEPA is told of an example: a number, and what its reflection reads.

GEPA adds numbers up over examples, so a rank correlation cannot be its metric. For a judge the number is
1 - |score - human score|, both in [0, 1]; for a generator it is the output's own score, which is our metric too.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Protocol

from ..optimizer.modes.generator import CHECKS
from ..optimizer.yardsticks import CorrelationYardstick

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..evaluation.scoring import ExampleScore, Targets
    from ..optimizer.subject import Observation
    from ..optimizer.yardsticks import Yardstick
    from ..prompts.examples import Example
    from ..prompts.verdicts import Verdict

NONE: Mapping[str, str] = MappingProxyType({})


class Metric(Protocol):
    """The number of an example, and its record for the reflection."""

    name: str
    """What the number is."""
    explained: Literal["mine", "theirs"]
    """Which side of a signal's reasons are the judge's explanations."""

    def knows(self, example: str) -> bool:
        """Whether an example can have a number at all."""
        ...

    def value(self, scores: ExampleScore) -> float | None:
        """The number, in [0, 1]; None where a verdict is missing."""
        ...

    def record(self, seen: Observation, place: int, reasons: Mapping[str, str] = NONE) -> dict[str, Any]:
        """Inputs, outputs and feedback of one observed example, as GEPA's reflection prompt lays them out.

        ``reasons``: the judge's explanations by example/question.
        """
        ...


class NearnessToPeople:
    """For a judge: how near its score is to the human one."""

    name = "1 - |score - human score|"
    explained: Literal["mine", "theirs"] = "mine"

    def __init__(self, targets: Targets) -> None:
        """``targets`` are the human scores in [0, 1]."""
        self._targets = targets

    def knows(self, example: str) -> bool:
        """Whether there is a human score."""
        return self._targets.overall(example) is not None

    def value(self, scores: ExampleScore) -> float | None:
        """1 where judge and people give the same score, 0 where they are as far apart as can be."""
        score, wanted = self._targets.score(scores), self._targets.overall(scores.example)
        return None if score is None or wanted is None else 1 - abs(score - wanted)

    def record(self, seen: Observation, place: int, reasons: Mapping[str, str] = NONE) -> dict[str, Any]:
        """The example, the judge's answers with P(yes), and the human score."""
        example, scores = seen.examples[place], seen.scores[place]
        answers = {
            seen.question(example.id, each.question).text: _answer(each, _reason(each, reasons))
            for each in _verdicts(seen, example.id)
        }
        return {
            "Inputs": _texts(example, "context", "input", "output"),
            "Generated Outputs": answers,
            "Feedback": self._feedback(scores),
        }

    def _feedback(self, scores: ExampleScore) -> str:
        score, wanted = self._targets.score(scores), self._targets.overall(scores.example)
        if wanted is None or score is None:
            return "A question was not answered, so this example has no score and counts as 0."
        said = f"The mean P(yes) of these answers is {score:.2f}; people gave {wanted:.2f} (0 is worst, 1 is best)."
        if abs(score - wanted) < 0.005:
            return f"{said} The answers are right."
        way = "too lenient: more no was wanted" if score > wanted else "too strict: more yes was wanted"
        return f"{said} The answers are {abs(score - wanted):.2f} {way}."


class OwnScore:
    """For a generator: its output's score, and the reasons of what failed."""

    name = "score of the output"
    explained: Literal["mine", "theirs"] = "theirs"

    def knows(self, example: str) -> bool:
        """Every example can be written for and checked."""
        return True

    def value(self, scores: ExampleScore) -> float | None:
        """The score of the run's checker or judge."""
        return scores.overall

    def record(self, seen: Observation, place: int, reasons: Mapping[str, str] = NONE) -> dict[str, Any]:
        """The input, the output, and what the checks and the questions say."""
        example = seen.examples[place]
        lines = []
        for each in _verdicts(seen, example.id):
            said = {True: "passed", False: "FAILED", None: f"not checked ({each.error or each.status})"}[each.answer]
            reason = _reason(each, reasons)
            lines.append(f"- {_name(seen, each)}: {said}{f'. {reason}' if reason else ''}")
        return {
            "Inputs": _texts(example, "context", "input"),
            "Generated Outputs": example.output or "",
            "Feedback": "\n".join(lines),
        }


def metric_for(yardstick: Yardstick) -> NearnessToPeople | OwnScore:
    """The metric that belongs to what a run is measured by."""
    return NearnessToPeople(yardstick.targets) if isinstance(yardstick, CorrelationYardstick) else OwnScore()


def _verdicts(seen: Observation, example: str) -> list[Verdict]:
    return [each for each in seen.verdicts if each.example == example and each.replicate == 0]


def _reason(verdict: Verdict, reasons: Mapping[str, str]) -> str:
    return verdict.explanation or reasons.get(f"{verdict.example}/{verdict.question}", "")


def _name(seen: Observation, verdict: Verdict) -> str:
    """A check by its name, a question by its text."""
    question = seen.question(verdict.example, verdict.question)
    return verdict.question if question.dimension == CHECKS else question.text


def _answer(verdict: Verdict, reason: str) -> str:
    if verdict.answer is None:
        return f"no answer ({verdict.error or verdict.status})"
    said = "yes" if verdict.answer else "no"
    said = said if verdict.p_yes is None else f"{said}, P(yes) = {verdict.p_yes:.2f}"
    return f"{said}. {reason}" if reason else said


def _texts(example: Example, *names: str) -> dict[str, str]:
    return {name.capitalize(): text for name in names if (text := getattr(example, name))}
