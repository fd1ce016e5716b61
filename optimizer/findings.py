"""What in a diagnosis is worth acting on, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from .diagnosis import Diagnosis, Finding, FindingKind, QuestionDiagnosis

if TYPE_CHECKING:
    from ..stats.phi import Pair

STILL = 0.01
"""P(yes) that varies by less over the examples moves no score that anybody would look at."""
ALIKE = 0.8
"""From this phi on two questions are answered alike; BinEval §5.6 calls .79 inherently related."""
OPPOSED = -0.5
"""Up to this phi two questions contradict each other, although yes is the good answer to both."""
UNSTABLE = 0.1
"""Share of changed answers from which a question is called unstable."""
LOW_COVERAGE = 0.95
"""Share of answers below which a question is named."""
FEW = 30
"""With fewer examples it is said that there are few."""
_MOST = 8


def findings(found: Diagnosis) -> tuple[Finding, ...]:
    """Everything worth acting on, the most serious first; empty where there is nothing."""
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
    if those:
        yield _finding(
            "against_people",
            those,
            f"{_of(those, found)} {_verb(those, 'runs', 'run')} against people (a yes goes with a lower human score, "
            f"beyond chance): rephrase so that yes is good, or drop: {_listed(those)}.",
        )


def _constant(found: Diagnosis) -> Iterator[Finding]:
    constant = [question for question in found.questions if question.yes_rate is not None and not question.varies]
    still = [question for question in constant if question.p_yes_spread is None or question.p_yes_spread < STILL]
    if still:
        yield _finding(
            "never_varies",
            still,
            f"{_of(still, found)} never {_verb(still, 'varies', 'vary')} over {found.examples} examples: "
            f"{_verb(still, 'it costs', 'they cost')} calls and {_verb(still, 'tells', 'tell')} nothing: "
            f"{_listed(still)}.",
        )
    soft = [question for question in constant if question not in still]
    if soft:
        yield _finding(
            "varies_in_p_yes_only",
            soft,
            f"{_of(soft, found)} {_verb(soft, 'is', 'are')} answered alike every time, but P(yes) differs from example "
            f"to example: {_verb(soft, 'it counts', 'they count')} in soft scores only: {_listed(soft)}.",
        )


def _pairs(found: Diagnosis) -> Iterator[Finding]:
    ranked = found.phi.pairs()
    alike = [pair for pair in ranked if pair.phi >= ALIKE]
    if alike:
        one = len(alike) == 1
        yield Finding(
            "alike",
            _members(alike),
            f"{len(alike)} pair{'' if one else 's'} of questions {'is' if one else 'are'} answered nearly alike, so one "
            f"of {'the two' if one else 'each two'} would do: {_named(alike)}.",
        )
    opposed = [pair for pair in reversed(ranked) if pair.phi <= OPPOSED]
    if opposed:
        one = len(opposed) == 1
        yield Finding(
            "opposed",
            _members(opposed),
            f"{len(opposed)} pair{'' if one else 's'} of questions contradict{'s' if one else ''} each other (a yes to "
            f"one goes with a no to the other): see whether yes is good in both: {_named(opposed)}.",
        )


def _unstable(found: Diagnosis) -> Iterator[Finding]:
    those = [question for question in found.questions if question.flips is not None and question.flips >= UNSTABLE]
    if those:
        shares = ", ".join(f"{question.id} ({question.flips:.0%})" for question in those[:_MOST])
        yield _finding(
            "unstable",
            those,
            f"{_of(those, found)} {_verb(those, 'is', 'are')} answered differently when asked again in {UNSTABLE:.0%} "
            f"or more of the repeats: {shares}{_more(those)}.",
        )


def _missing(found: Diagnosis) -> Iterator[Finding]:
    low = [each for each in found.questions if each.coverage.asked and each.coverage.share < LOW_COVERAGE]
    if low:
        shares = ", ".join(f"{question.id} ({question.coverage.share:.0%})" for question in low[:_MOST])
        yield _finding(
            "coverage",
            low,
            f"{_of(low, found)} {_verb(low, 'was', 'were')} often not answered; an example without an answer has no "
            f"score: {shares}{_more(low)}.",
        )
    unasked = [question for question in found.questions if question.unasked]
    if unasked:
        shares = ", ".join(f"{question.id} ({question.unasked})" for question in unasked[:_MOST])
        yield _finding(
            "unasked",
            unasked,
            f"{_of(unasked, found)} {_verb(unasked, 'has', 'have')} no verdict at all on some of the {found.examples} "
            f"examples: {shares}{_more(unasked)}.",
        )


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


def _finding(kind: FindingKind, questions: Sequence[QuestionDiagnosis], text: str) -> Finding:
    return Finding(kind, tuple(question.id for question in questions), text)


def _of(those: Sequence[QuestionDiagnosis], found: Diagnosis) -> str:
    return f"{len(those)} of {len(found.questions)} questions"


def _verb(those: Sequence[QuestionDiagnosis], one: str, several: str) -> str:
    return one if len(those) == 1 else several


def _listed(those: Sequence[QuestionDiagnosis]) -> str:
    return ", ".join(question.id for question in those[:_MOST]) + _more(those)


def _named(pairs: Sequence[Pair]) -> str:
    shown = ", ".join(f"{pair.first} and {pair.second} (phi {pair.phi:.2f})" for pair in pairs[:_MOST])
    return shown + _more(pairs)


def _members(pairs: Sequence[Pair]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for pair in pairs for name in (pair.first, pair.second)))


def _more(those: Sequence[object]) -> str:
    return f" and {len(those) - _MOST} more" if len(those) > _MOST else ""
