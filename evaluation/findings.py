"""What a diagnosis says in words: what is worth acting on, the most serious first, and what is only good to know."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from ..stats.phi import Pair
from .diagnosis import Diagnosis, Finding, FindingKind, QuestionDiagnosis

STILL = 0.01
"""P(yes) that varies by less over the examples moves no score that anybody would look at."""
ALIKE = 0.8
"""From this likeness on two questions are answered alike; BinEval §5.6 calls .79 inherently related."""
OPPOSED = -0.5
"""Up to this likeness two questions contradict each other: what speaks for an output in one speaks against it in the other."""
UNSTABLE = 0.1
"""Share of changed answers from which a question is called unstable."""
LOW_COVERAGE = 0.95
"""Share of answers below which a question is named."""
FEW = 30
"""With fewer examples it is said that there are few."""
_MOST = 8
"""Questions or pairs that a finding names."""


def findings(found: Diagnosis) -> tuple[Finding, ...]:
    """Everything worth acting on, the most serious first, then what is good to know; empty where there is nothing."""
    return (
        *_against_people(found),
        *_constant(found),
        *_pairs(found),
        *_unstable(found),
        *_missing(found),
        *_whole(found),
    )


def _against_people(found: Diagnosis) -> Iterator[Finding]:
    those = [question for question in found.questions if question.runs_against_people]
    text = (
        f"{_verb(those, 'runs', 'run')} against people (a yes goes with a lower human score, beyond chance): rephrase so "
        f"that yes is good, or drop: {_listed(those)}."
    )
    if any(question.good == "no" for question in those):
        text = (
            f"{_verb(those, 'runs', 'run')} against people (the answer called good goes with a lower human score, beyond "
            f"chance): change which answer is good, rephrase or drop: {_listed(those)}."
        )
    yield from _finding("against_people", those, found, text)


def _constant(found: Diagnosis) -> Iterator[Finding]:
    constant = [question for question in found.questions if question.yes_rate is not None and not question.varies]
    still = [question for question in constant if question.p_yes_spread is None or question.p_yes_spread < STILL]
    text = (
        f"never {_verb(still, 'varies', 'vary')} over {found.examples} examples: {_verb(still, 'it costs', 'they cost')} "
        f"calls and {_verb(still, 'tells', 'tell')} nothing: {_listed(still)}."
    )
    yield from _finding("never_varies", still, found, text)
    soft = [question for question in constant if question not in still]
    text = (
        f"{_verb(soft, 'is', 'are')} answered alike every time, but the probability of yes differs from example to example: "
        f"{_verb(soft, 'it counts', 'they count')} in soft scores only: {_listed(soft)}."
    )
    yield from _finding("varies_in_p_yes_only", soft, found, text)


def _pairs(found: Diagnosis) -> Iterator[Finding]:
    faults = {question.id for question in found.questions if question.good == "no"}
    ranked = by_likeness(found.phi.pairs(), faults)
    alike = [pair for pair in ranked if likeness(pair, faults) >= ALIKE]
    if alike:
        one = len(alike) == 1
        yield Finding(
            "alike",
            _members(alike),
            f"{len(alike)} pair{'' if one else 's'} of questions {'is' if one else 'are'} answered nearly alike"
            f"{_mirrored(alike, faults)}, so one of {'the two' if one else 'each two'} would do: {_named(alike)}.",
        )
    opposed = [pair for pair in reversed(ranked) if likeness(pair, faults) <= OPPOSED]
    if opposed:
        one = len(opposed) == 1
        how = "a yes to one goes with a no to the other): see whether yes is good in both"
        if faults.intersection(_members(opposed)):
            how = "what is good in one goes with what is bad in the other): see which answers are good"
        yield Finding(
            "opposed",
            _members(opposed),
            f"{len(opposed)} pair{'' if one else 's'} of questions contradict{'s' if one else ''} each other ({how}: "
            f"{_named(opposed)}.",
        )


def _mirrored(pairs: Sequence[Pair], faults: Collection[str]) -> str:
    """How a merit and a fault can be alike, where there are such."""
    mixed = any((pair.first in faults) != (pair.second in faults) for pair in pairs)
    return " (a merit's yes is as good as a fault's no)" if mixed else ""


def _unstable(found: Diagnosis) -> Iterator[Finding]:
    those = [question for question in found.questions if question.flips is not None and question.flips >= UNSTABLE]
    shares = _listed(those, lambda question: f"{question.flips:.0%}")
    text = f"{_verb(those, 'is', 'are')} answered differently when asked again in {UNSTABLE:.0%} or more of the repeats: {shares}."
    yield from _finding("unstable", those, found, text)


def _missing(found: Diagnosis) -> Iterator[Finding]:
    low = [each for each in found.questions if each.coverage.asked and each.coverage.share < LOW_COVERAGE]
    shares = _listed(low, lambda question: f"{question.coverage.share:.0%}")
    text = f"{_verb(low, 'was', 'were')} often not answered; an example without an answer has no score: {shares}."
    yield from _finding("coverage", low, found, text)
    unasked = [question for question in found.questions if question.unasked]
    shares = _listed(unasked, lambda question: f"{question.unasked}")
    text = f"{_verb(unasked, 'has', 'have')} no verdict at all on some of the {found.examples} examples: {shares}."
    yield from _finding("unasked", unasked, found, text)


def _whole(found: Diagnosis) -> Iterator[Finding]:
    effective, varying = found.together.related.effective, found.together.varying
    if effective is not None and varying > 1:
        yield Finding(
            "independent",
            found.together.questions,
            f"The {varying} questions that vary carry about as much as {effective:.1f} independent ones would.",
        )
    if found.examples < FEW:
        yield Finding(
            "few_examples",
            (),
            f"There are only {found.examples} examples: with more of them some of this may look different.",
        )


def _finding(kind: FindingKind, those: Sequence[QuestionDiagnosis], found: Diagnosis, text: str) -> Iterator[Finding]:
    """What is said of some questions, after how many they are; nothing where there are none."""
    if those:
        ids = tuple(question.id for question in those)
        yield Finding(kind, ids, f"{len(those)} of {len(found.questions)} questions {text}")


def _verb(those: Sequence[QuestionDiagnosis], one: str, several: str) -> str:
    return one if len(those) == 1 else several


def _listed(those: Sequence[QuestionDiagnosis], figure: Callable[[QuestionDiagnosis], str] | None = None) -> str:
    """The first of them, each with a figure where there is one, and how many more there are."""
    shown = [each.id if figure is None else f"{each.id} ({figure(each)})" for each in those[:_MOST]]
    return ", ".join(shown) + _more(those)


def _named(pairs: Sequence[Pair]) -> str:
    shown = ", ".join(f"{pair.first} and {pair.second} (phi {pair.phi:.2f})" for pair in pairs[:_MOST])
    return shown + _more(pairs)


def _members(pairs: Sequence[Pair]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for pair in pairs for name in (pair.first, pair.second)))


def _more(those: Sequence[object]) -> str:
    return f" and {len(those) - _MOST} more" if len(those) > _MOST else ""


def by_likeness(pairs: Iterable[Pair], faults: Collection[str]) -> list[Pair]:
    """Pairs, those that say most alike of an output first: likeness is phi, turned round between a merit and a fault.

    Args:
        pairs: With their phi over yes and no.
        faults: Ids of the questions to which yes speaks against the output.
    """
    return sorted(pairs, key=lambda pair: -likeness(pair, faults))


def likeness(pair: Pair, faults: Collection[str]) -> float:
    """Phi over whether the answers speak for the output, in [-1, 1]."""
    return pair.phi if (pair.first in faults) == (pair.second in faults) else -pair.phi
