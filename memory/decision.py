"""Advice in words: whether to adopt a run's prompt or judge, from the test difference and its interval alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ..models.budget import CAPS
from ..prompts.formatting import MOST_LISTED, count, interval, missing_share, names_text, number, signed

if TYPE_CHECKING:
    from .records import CriterionRecord
    from .result_file import RunRecord

Choice = Literal["adopt", "keep", "undecided"]
"""Advice at the top of a page about a prompt, judge, scorer or other result. On some pages it sets only the tone."""

FEW = 30
"""A report warns of few examples (in a run: test examples) below this number."""
TOO_FEW = 10
"""A bootstrap interval decides nothing with fewer test examples."""
ENOUGH = 0.5
"""Smallest share of the test examples with a score from both prompts for which the test decides."""
FULL = 0.95
"""Coverage below which a headline warns of missing verdicts, and a page about verdicts has the tone ``undecided``."""
UNDECIDED_ADVICE = "Until more test examples settle it, the starting {} is the safer choice."


CALIBRATIONS = {"thresholds": "a threshold for each question", "platt": "Platt scaling"}
"""Names of the calibrations, in words."""


@dataclass(frozen=True)
class Advice:
    """The first lines of a report."""

    choice: Choice
    headline: str
    why: str
    cautions: tuple[str, ...]
    """Facts that a reader must know before acting on the advice."""

    @property
    def sentence(self) -> str:
        """Headline and reason in one text."""
        return f"{self.headline}. {self.why}"


def decide(result: RunRecord, test_size: int | None = None) -> Advice:
    """Advise ``adopt`` if the 95 % interval of the difference on test lies above zero, ``keep`` if it lies below.

    The advice is ``undecided`` if the interval contains zero or is missing. It is also ``undecided`` with fewer than
    ``TOO_FEW`` examples, or with a smaller share than ``ENOUGH`` of the ``test_size`` test examples. Without an
    accepted candidate it is ``keep``.
    """
    choice, headline, why = _choose(result, test_size)
    return Advice(choice, headline, f"{_what_was_learned(result)}{why}", tuple(_cautions(result, test_size)))


def measured_name(result: RunRecord) -> str:
    """Return the metric's name in words that fit into "its … is 0.1 higher"."""
    if not result.is_judge:
        return "mean score"
    what = "Spearman correlation" if result.yardstick == "Spearman" else result.yardstick
    return f"{what} with {result.whose}'s scores"


def _what_was_learned(result: RunRecord) -> str:
    asked = sum(not each.is_measure for each in result.learned)
    computed = len(result.learned) - asked
    if not result.learned and result.revised_questions:
        return " ".join([*(each.sentence for each in result.revised_questions), ""])
    if not result.learned:
        return f"The new judge is shown {result.shown.name} that people judged. " if result.shown else ""
    same = ", and its prompt is what it was" if result.same_prompt else ""
    parts = [f"asks {count(asked, 'question')} more, learned from people's comments"] if asked else []
    parts += [f"has {count(computed, 'measure')} more, chosen by people's scores"] if computed else []
    return f"The new judge {' and '.join(parts)}{same}. "


def _choose(result: RunRecord, test_size: int | None) -> tuple[Choice, str, str]:
    if result.finish_reason == "calibrated":
        return "keep", "The prompt is unchanged: only a calibration was fitted", _calibration_found(result)
    if not result.changed:
        return "keep", f"Keep the starting {result.thing}", _nothing_accepted(result)
    gain, thing, advice = result.gain.test, result.thing, UNDECIDED_ADVICE.format(result.thing)
    if gain is None:
        reason = result.best.reason or "the test examples were not judged"
        return (
            "undecided",
            "Undecided: not tested",
            f"The new {thing} passed on validation, but {reason.rstrip('.')}. Validation alone is no proof: it was "
            f"chosen because it looked good there. Until the test is judged, the starting {thing} is the safer choice; "
            "askance resume with a larger budget goes on from here.",
        )
    sample = f"On {count(gain.n, 'test example')} that no earlier step had looked at"
    figure = measured_name(result)
    if gain.value is None or gain.low is None or gain.high is None:
        return (
            "undecided",
            "Undecided: the difference cannot be measured",
            f"{sample}, the difference in {figure} is undefined ({gain.reason or 'no interval'}). {advice}",
        )
    if gain.n < max(TOO_FEW, ENOUGH * (test_size or 0)):
        noun_phrase = f"of {count(test_size, 'test example')}" if test_size else "test examples"
        return (
            "undecided",
            "Undecided: too few test examples",
            f"Only {gain.n} {noun_phrase} have a score from both {thing}s. The difference on them is "
            f"{signed(gain.value)}, but so few say little about the rest. {advice}",
        )
    size = f"{sample}, its {figure} is {number(abs(gain.value))}"
    span = f"The 95 % interval of the difference, {interval(gain.low, gain.high)},"
    if gain.low > 0:
        return (
            "adopt",
            f"Adopt the new {thing}{_but(result)}",
            f"{size} higher than the starting {thing}'s. {span} is all above zero.",
        )
    if gain.high < 0:
        return (
            "keep",
            f"Keep the starting {thing}",
            f"{size} lower than the starting {thing}'s. {span} is all below zero: what passed on validation did not "
            "hold on new examples.",
        )
    way = "higher" if gain.value > 0 else "lower"
    measured = f"{size} {way} than the starting {thing}'s" if gain.value else f"{sample}, {figure} is unchanged"
    return (
        "undecided",
        "Undecided: the test does not settle it",
        f"{measured}, but that may be chance. {span} has zero in it: the new {thing} may be better or worse. {advice}",
    )


def _nothing_accepted(result: RunRecord) -> str:
    why = result.why_unchanged
    return f"Nothing was gained: {why}, so the {result.thing} is what it was before. {finish_sentence(result)}"


def _calibration_found(result: RunRecord) -> str:
    """Describe the gain of each calibration on test."""
    figures = result.calibration.get("baseline")
    if figures is None:
        return f"Its worth was not measured. {finish_sentence(result)}"
    gains = []
    for name, label in CALIBRATIONS.items():
        gain = figures[name].gain
        if gain and gain.value is not None and gain.low is not None:
            gains.append(f"{signed(gain.value)} with {label} (95 % interval {interval(gain.low, gain.high)})")
    if not gains:
        return f"Its worth on the test examples is undefined. {finish_sentence(result)}"
    return (
        f"On the test examples the {measured_name(result)} changes by {', and by '.join(gains)}. The calibration files "
        "are in the run's directory; askance evaluate takes one with --calibration."
    )


def _but(result: RunRecord) -> str:
    """Return the headline's warnings about a version that is better on the whole. The cautions say more."""
    harmful = [each.id for each in result.learned if (it := each.worth.test) and it.high is not None and it.high < 0]
    warnings = [f"measured lower on {', '.join(fallen)}"] if (fallen := list(_fallen(result))) else []
    warnings += [f"worse with {', '.join(harmful)} than without"] if harmful else []
    warnings += ["its own agreement with people is not shown"] if _own_is_unclear(result) else []
    warnings += ["calibration alone does as well"] if _calibration_is_enough(result) else []
    warnings += [f"{missing_share(result.coverage)} of the verdicts are missing"] if result.coverage < FULL else []
    return f" (caution: {'; '.join(warnings)})" if warnings else ""


def _own_is_unclear(result: RunRecord) -> bool:
    """Whether a new judge's own correlation on test is not clearly above zero."""
    test = result.best.test
    return bool(result.changed and result.is_judge and test and test.low is not None and test.low <= 0)


def _calibration_is_enough(result: RunRecord) -> list[str]:
    """Return a caution if calibrating the starting prompt, which costs no call, does as well as the new prompt."""
    calibrated, test = result.calibration.get("baseline"), result.best.test
    if not (result.changed and calibrated and test and test.spearman is not None):
        return []
    known = {label: value for name, label in CALIBRATIONS.items() if (value := calibrated[name].spearman) is not None}
    best = max(known, key=lambda label: known[label], default=None)
    if best is None or known[best] < test.spearman:
        return []
    return [
        f"Calibration alone does as well: with {best}, the starting {result.thing} reaches a Spearman of "
        f"{number(known[best])} on test, the new {result.thing} {number(test.spearman)}. It needs nothing new "
        "(--calibrate)."
    ]


def finish_sentence(result: RunRecord) -> str:
    """Return a sentence on why the run ended."""
    return f"The run ended because {result.why_it_ended}."


def _cautions(result: RunRecord, test_size: int | None) -> list[str]:
    cautions = [] if result.certificate is None else [f"In place of the source: {result.certificate.reason}"]
    gain, test = result.gain.test, result.best.test
    if result.changed and result.reference == "source":
        cautions.append(
            "The yardstick is the source judge, not people: the data were compared with the source's scores. Whether "
            f"people agree more with the new {result.thing} was not measured."
        )
    if gain and test_size is not None and 0 < gain.n < test_size:
        cautions.append(
            f"Of {count(test_size, 'test example')}, {gain.n} have a score from both {result.thing}s; the others may "
            "differ."
        )
    if gain and result.changed and 0 < gain.n < FEW:
        cautions.append(f"There are few test examples ({gain.n}), so the interval is wide and may shift with new data.")
    undefined = [side for side in (result.baseline.test, test) if side and side.value is None]
    if undefined and gain and gain.value is not None:
        cautions.append(
            f"For one of the two {result.thing}s the {measured_name(result)} on test is undefined "
            f"({undefined[0].reason}). A judge "
            "that gives all examples the same score ranks nothing; it is counted as zero in the difference."
        )
    if test and _own_is_unclear(result):
        cautions.append(
            f"The new {result.thing}'s own correlation on test is not clearly above zero ({number(test.spearman)}, "
            f"{interval(test.low, test.high)})."
        )
    if result.reworded:
        cautions.append(
            f"{count(len(result.reworded), 'question')} {'is' if len(result.reworded) == 1 else 'are'} asked in other "
            "words: judge.yaml holds them, the prompt alone does not."
        )
    cautions += _calibration_is_enough(result)
    if changes := [f"{name} ({change})" for name, change in _fallen(result).items()]:
        fallen = names_text(changes, MOST_LISTED)
        cautions.append(f"It measured lower on {fallen}: look at the dimensions below before adopting it.")
    if result.changed and result.learned and (harmful := _may_harm(result)):
        names = names_text([question.id for question in harmful], MOST_LISTED)
        cautions.append(
            f"Measured lower with than without, on test: {names}. Read these questions before adopting the judge."
        )
    if result.coverage < 1:
        cautions.append(
            f"Of the verdicts, {missing_share(result.coverage)} are missing; an example with a missing verdict has "
            "no score and is left out."
        )
    if result.finish_reason in CAPS:
        cautions.append("A budget ended the run; more might have been found with more calls.")
    return cautions


def _may_harm(result: RunRecord) -> list[CriterionRecord]:
    """Return the learned questions that lower the judge's figure on test."""
    worths = [(question, question.worth.test) for question in result.learned]
    return [question for question, worth in worths if worth and worth.value is not None and worth.value < 0]


def _fallen(result: RunRecord) -> dict[str, str]:
    """Map each dimension that fell on test to its change as text. Empty if there is a single dimension."""
    before, after = result.baseline.test, result.best.test
    if not (result.changed and before and after) or len(after.dimensions) < 2:
        return {}
    fallen = {}
    for name, now in after.dimensions.items():
        was = before.dimensions.get(name)
        if was and was.value is not None and now.value is not None and now.value < was.value:
            fallen[name] = signed(now.value - was.value)
    return fallen
