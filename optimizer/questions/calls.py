"""What learning questions takes, before anything is bought: the most there can be, and what such runs took."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import ceil

from ...agents.comment_questions import MOST_QUESTIONS, MOST_REMARKS, remarks
from ...evaluation.scoring import Targets
from ...prompts.examples import Example
from ...prompts.human_feedback import one_line
from .choice import OWN_CASES
from .finder import ENOUGH_FOR_ONE
from .learner import FOLDS
from .proposers import BESIDE_EACH, DESCRIBED, KINDS_FOR_ONE, READ_FOR_ONE
from .racing import FEWEST_REJECTED, SCREENED, STEPS, left_after, places, sides_by_dimension
from .together import GROUP
from .ways import COMPARED, COMPARED_ON

WIDER, CANDIDATES, CASES, ABLE = 1.3, 2.5, 9.0, 0.5
"""Calls for more general questions after each reading of a comment, different candidates that come of a comment, first examples
that each is tried on, and the share of the candidates that are raced. A simulated model makes 1.2 to 1.7 candidates of a comment,
a real one of 1.5B made 4.9: the third lies between them."""
PART_ASKED, JUDGED = 1.5, 0.5
"""Where candidates are asked in groups: calls for one in units of its share of the group's, as others of the group may not be wanted at the
time; and the share of the examples that the judge of a fold is asked of, accepted ones and those that test."""
SHARED = 1.5
"""Verdicts that the folds of a cross-fitted run ask for together, for each that one race on all examples would."""


def calls_at_most(
    halves: Sequence[Sequence[Example]],
    test: int,
    *,
    most: int,
    rounds: int,
    dimensions: int,
    waiting: int,
    asked: int,
    grouped: bool = False,
    views: int = 1,
) -> int:
    """Calls beyond which learning cannot go.

    Args:
        halves: The examples that questions are learned from: two are cross-fitted, one is tested on others.
        test: Examples on which the questions that are kept are judged besides.
        most: Questions that may join.
        rounds: How often comments are read.
        dimensions: Rated dimensions.
        waiting: Candidates of earlier runs.
        asked: Calls for one question on one example; of all questions of a group or a judge, where they are ``grouped``.
        grouped: Whether several questions are a call: a learned judge is then asked anew.
        views: In how many ways a question may be asked: with everything in view, of the output alone, for a quote.
    """
    of_remark = MOST_QUESTIONS * (1 + MOST_QUESTIONS)  # questions, and more general ones beside each
    every = sum(map(len, halves))
    writing, candidates = 0.0, 0.0
    for examples in halves:
        read = min(len(_comments(examples)), READ_FOR_ONE * most * rounds)
        alone, beside = read * (1 + MOST_REMARKS), read * BESIDE_EACH
        writing += (alone + beside) * (1 + MOST_QUESTIONS) + min(2 * DESCRIBED, len(examples)) * dimensions
        candidates += (alone + beside) * of_remark + KINDS_FOR_ONE * most * dimensions + waiting
    first = min(SCREENED * dimensions + max(SCREENED, OWN_CASES), every)
    race = candidates * first + _raced(min(candidates, places(len(halves), most)), every, most, dimensions)
    races, once = _judges(halves), _compared(candidates, every, views, dimensions)
    judged = asked * races * every if grouped else 0
    return ceil(writing + asked * min(once + races * race, views * candidates * every)) + asked * most * test + judged


def usual_calls(
    halves: Sequence[Sequence[Example]],
    test: int,
    targets: Targets,
    *,
    most: int,
    rounds: int,
    asked: int,
    grouped: bool = False,
    views: int = 1,
    before: Collection[tuple[str, str]] = (),
) -> float | None:
    """Calls that learning takes as a rule; None where no comment is read, as nobody can tell then.

    Args:
        halves: As of :func:`calls_at_most`, and so are ``test``, ``most``, ``rounds``, ``asked`` and ``views``.
        test: Examples on which the questions that are kept are judged besides.
        targets: Say which examples are rejected: comments on others are not read.
        most: Questions that may join.
        rounds: How often comments are read; where once, alone and not beside outputs.
        asked: Calls for one question on one example.
        before: Example id and text of comments that an earlier run has read.
    """
    texts: set[str] = set()
    beside, described, rejected, every = 0, 0, 0, sum(map(len, halves))
    for examples in halves:
        sides = sides_by_dimension(examples, targets)
        poor = {name for both in sides.values() for name in both[1]}
        rejected += len(poor)
        told: dict[str, list[str]] = {}
        for example in examples:
            for text in {one_line(each.text) for each in example.comment} if example.id in poor else ():
                told.setdefault(text, []).append(example.id)
        new = [text for text, names in told.items() if any((name, text) not in before for name in names)]
        read = new[: READ_FOR_ONE * most * rounds]
        texts.update(read)  # what the other half says in the same words is not asked again
        beside += sum(min(len(told[text]), BESIDE_EACH) for text in read) if rounds > 1 else 0
        if CANDIDATES * len(read) < ENOUGH_FOR_ONE * most:
            described += sum(min(len(side), DESCRIBED) for both in sides.values() for side in both)
    if not texts:
        return None
    candidates = CANDIDATES * len(texts)
    race = _raced(min(ABLE * candidates, places(len(halves), most)), every, most, 1, rejected / every)
    shared = 1.0 if len(halves) == 1 else SHARED
    compared = _compared(candidates, every, views - 1, 1, rejected / every)
    verdicts = min(CASES * candidates + compared + shared * race, views * candidates * every)
    verdicts += min(most, len(texts)) * test
    of_verdict = asked * PART_ASKED / GROUP if grouped else asked
    judged = JUDGED * asked * _judges(halves) * every if grouped else 0.0
    return (
        (sum(len(remarks(text)) for text in texts) + beside) * (1 + WIDER) + described + of_verdict * verdicts + judged
    )


def _judges(halves: Sequence[Sequence[Example]]) -> int:
    """Judges that are learned: one to keep, and one for each fold."""
    return 1 if len(halves) == 1 else 1 + FOLDS * len(halves)


def _compared(candidates: float, examples: int, views: int, dimensions: int, rejected: float = 1.0) -> float:
    """Verdicts by which so many ways to ask are compared, that share of the examples being rejected on each dimension."""
    poor = max(FEWEST_REJECTED, ceil(COMPARED_ON * rejected * examples))
    fine = max(SCREENED, ceil(COMPARED_ON * (1 - rejected) * examples))
    return views * min(COMPARED, candidates) * min(examples, dimensions * (fine + poor) + OWN_CASES)


def _raced(candidates: float, examples: int, most: int, dimensions: int, rejected: float = 1.0) -> float:
    """Verdicts of a race: of so many candidates, where that share of the examples is rejected on each dimension."""
    verdicts, before = 0.0, min(examples, SCREENED * dimensions)  # these were judged before the race
    for step, (share, *_) in enumerate(STEPS):
        poor = max(FEWEST_REJECTED, ceil(share * rejected * examples))
        so_far = min(examples, dimensions * (SCREENED + poor))
        verdicts += candidates * (so_far - before)
        candidates, before = min(candidates, left_after(step, most)), so_far
    return verdicts + candidates * (examples - before)


def _comments(examples: Sequence[Example]) -> set[str]:
    return {one_line(each.text) for example in examples for each in example.comment}
