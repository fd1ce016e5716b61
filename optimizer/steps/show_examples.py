"""The step that shows the judge examples that people judged.

Fixed examples are chosen from development: accepted and rejected outputs, near the boundary between the two, and unlike
each other. Retrieved examples are the nearest of all remembered ones (METHOD part 4). First a few development examples
that are not shown tell whether showing helps at all. Then the acceptance test decides, as on any candidate.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from ...evaluation.calibration_fit import FITS
from ...evaluation.scoring import ExampleScore, Targets, mean_score
from ...memory.embedders import Embedder, NearestExamples, embedded
from ...memory.records import ShowingRecord
from ...prompts.checklist import Question
from ...prompts.examples import Example, answered_questions, named_document
from ...prompts.human_feedback import WHOLE, told
from ...prompts.shown_examples import MOST_REASON, FixedExamples, RememberedCase, ShownExamples, Shows, cut
from ..acceptance import Yardstick
from ..events import Teller
from ..mode import LoopRound, Turn
from ..signals import Signal
from ..subject import Draft, Observation, Outcome, Subject

CLEAR = 2 / 3
"""Least wanted score of an accepted output. Up to 1 minus this score an output is rejected; between, it is left out."""
SCREENED = 16
"""Most development examples of the first try, at most half of them accepted and half rejected. None of them is
shown."""
FEWEST_SCREENED = 8
"""Fewest such examples. With fewer nothing is shown, because nobody could tell whether it helps."""
SHORTLIST = 3
"""Cases near the boundary per shown case. From these, cases unlike each other are chosen."""
MOST_REMEMBERED = 200
"""Most cases to retrieve from, those near the boundary first."""

ShowMode = Literal["fixed", "retrieved"]


@dataclass
class ShowExamples:
    """Chooses examples, tries them on development, and sends them to the acceptance test. Each way is tried once."""

    subject: Subject
    signal: Signal
    targets: Targets
    yardstick: Yardstick
    development: Sequence[Example]
    embedder: Embedder
    events: Teller
    at_once: int
    """Cases that are shown with one output."""
    modes: Sequence[ShowMode]
    """The ways of showing, tried in this order until one is accepted; they share the acceptance test's level."""
    soft: bool
    alone: bool = True
    """Whether this is the only step. If not, a calibrated judge is left to the other steps."""
    shown: list[ShowingRecord] = field(default_factory=list, init=False)
    """The records of ``examples`` in ``result.json``, one for each way."""

    async def take(self, now: LoopRound) -> Turn | None:
        """Try each way of showing. A judge that is shown examples already stays unchanged."""
        best, seen, contest = now.best, now.seen, now.contest
        if best.draft.calibration is not None and not self.alone:
            return None
        if self.shown or best.prompt.shown is not None:
            return Turn(best, "examples_tried")
        cases = self._cases(best.draft, seen)
        for look, mode in enumerate(self.modes, 1):
            shows = self._shows(mode, cases)
            name, why = f"{mode} examples", "the run ended before it was decided"
            self.shown.append(ShowingRecord(mode=mode, name=name, sources=(), accepted=False, reason=why))
            if shows is None:
                self._note(reason=self._too_few(cases))
                continue
            self._note(name=shows.record.name, sources=tuple(each.id for each in shows.record.cases))
            self.events.phase(f"iteration {now.number}: trying {shows.record.name} on development examples")
            draft, problem = await self._tried(best.draft, shows, seen)
            if draft is None:
                self._note(reason=problem)
                self.events.say(f"showing the judge {shows.record.name}: {problem}")
                continue
            look_of = (look, len(self.modes))
            winner = await contest.challenge(best, (), now.number, draft, look=look_of, shows=shows.record.name)
            self._note(accepted=winner is not best, reason=contest.tried[-1].reason)
            if winner is not best:
                return Turn(winner)
        return Turn(best, "examples_tried")

    def facts(self, yardstick: Yardstick, outcome: Outcome, tests: Mapping[int, Observation]) -> dict[str, Any]:
        """Return ``examples`` of ``result.json``."""
        return {"examples": self.shown} if self.shown else {}

    def _note(self, **known: Any) -> None:
        self.shown[-1] = self.shown[-1].model_copy(update=known)

    def _shows(self, mode: ShowMode, cases: Sequence[RememberedCase]) -> Shows | None:
        """Return the examples to show in this way; None where too few are known."""
        chosen = self._fixed(cases) if mode == "fixed" else list(cases[:MOST_REMEMBERED])
        sides = {each.is_accepted for each in chosen}
        if len(sides) < 2 or len(self._screened(chosen if mode == "fixed" else ())) < FEWEST_SCREENED:
            return None
        if mode == "fixed":
            return FixedExamples(ShownExamples(mode=mode, at_once=len(chosen), cases=tuple(chosen)))
        record = ShownExamples(mode=mode, at_once=self.at_once, embedder=self.embedder.name, cases=tuple(chosen))
        return NearestExamples(record, self.embedder)

    def _too_few(self, cases: Sequence[RememberedCase]) -> str:
        fine = sum(each.is_accepted for each in cases)
        return (
            f"too few development examples are clearly accepted ({fine}) or rejected ({len(cases) - fine}) to show "
            f"some and try them on {FEWEST_SCREENED} others"
        )

    async def _tried(self, before: Draft, shows: Shows, seen: Observation) -> tuple[Draft | None, str | None]:
        """Return the judge with these examples, or the reason not to send it to the acceptance test."""
        draft = replace(before, prompt=replace(before.prompt, shown=shows), calibration=None)
        examples = self._screened(shows.record.cases if shows.record.mode == "fixed" else ())
        if before.calibration is None:
            scores = list((await self.subject.observe(draft, examples, self.events.advance)).scores)
        else:  # the calibration was fitted for the prompt without these examples, so it is fitted anew
            observation = await self.subject.observe(draft, self.development, self.events.advance)
            fit = FITS[before.calibration.method]
            fitted = fit(observation.verdicts, self.development, draft.questions, self.targets)
            draft = replace(draft, calibration=fitted)
            read = {each.example: each for each in draft.scores(self.development, observation.verdicts, soft=self.soft)}
            scores = [read[each.id] for each in examples]
        known = {each.example: each for each in seen.scores}
        gain = self.yardstick.difference([known[each.id] for each in examples], scores, examples)
        basis = f"on {len(examples)} development examples"
        if gain.value is None:
            return None, f"the gain {basis} is undefined: {gain.reason}"
        if gain.value <= 0:
            return None, f"no gain {basis} ({self.yardstick.name} {gain.value:+.3f})"
        return draft, None

    def _screened(self, shown: Sequence[RememberedCase]) -> list[Example]:
        """Return at most :data:`SCREENED` development examples that are not shown: at most half of this number with a
        wanted score of .5 or more, and half below. Empty if there is no example on one side."""
        hidden = {each.id for each in shown}
        candidates: dict[bool, list[str]] = {True: [], False: []}
        for each in self.development:
            wanted = self.targets.overall(each.id)
            if wanted is not None and each.id not in hidden:
                candidates[wanted >= 0.5].append(each.id)
        if not all(candidates.values()):
            return []
        chosen = {name for side in candidates.values() for name in side[: SCREENED // 2]}
        return [each for each in self.development if each.id in chosen]

    def _cases(self, draft: Draft, seen: Observation) -> list[RememberedCase]:
        """Return the cases with a clear verdict of people, nearest to the judge's boundary first."""
        scores = {each.example: each for each in seen.scores}
        found = [case for each in self.development if (case := self._case(draft, each)) is not None]
        distances = _distances(found, scores, self.targets)
        return sorted((each for each in found if each.id in distances), key=lambda each: distances[each.id])

    def _case(self, draft: Draft, example: Example) -> RememberedCase | None:
        """Make the case of an example; None where people's verdict is not clear."""
        wanted = self.targets.wanted[example.id]
        sides = {name: _side(wanted.get(name)) for name in self.targets.dimensions}
        clear = {name: fine for name, fine in sides.items() if fine is not None}
        if not clear:
            return None
        about = {*self.targets.dimensions, *(each.id for each in draft.questions.questions), WHOLE, None}
        reason = told([each.text for each in example.comment if each.about in about], MOST_REASON)
        given, context, output = cut(example)
        return RememberedCase(
            id=example.id,
            document=named_document(example.metadata),
            input=given,
            context=context,
            output=output,
            verdicts={name: "accepted" if fine else "rejected" for name, fine in clear.items()},
            reason=reason or None,
            answers=known_answers(draft, example, self.signal, self.targets),
        )

    def _fixed(self, cases: Sequence[RememberedCase]) -> list[RememberedCase]:
        """Choose rejected and accepted cases in turn, near the boundary and unlike each other; rejected cases with a
        reason come first."""
        sides = [[each for each in cases if each.is_accepted is fine] for fine in (False, True)]
        if not all(sides):
            return []
        sides[0].sort(key=lambda each: each.reason is None)
        listed = [each for side in sides for each in side]
        vectors = self.embedder.embed([embedded((each.input, each.context, each.output)) for each in listed])
        place = {each.id: number for number, each in enumerate(listed)}
        chosen: list[RememberedCase] = []
        for turn in range(self.at_once):
            side = sides[turn % 2]
            candidates = [each for each in side[: SHORTLIST * ((self.at_once + 1) // 2)] if each not in chosen]
            if not candidates:
                continue
            rows = vectors[[place[each.id] for each in chosen]] if chosen else vectors[:0]
            likeness = [float(np.max(rows @ vectors[place[each.id]], initial=-1.0)) for each in candidates]
            chosen.append(candidates[int(np.argmin(np.round(likeness, 6)))])
        return chosen


def known_answers(draft: Draft, example: Example, signal: Signal, targets: Targets) -> dict[str, Literal["yes", "no"]]:
    """Return the right answers to the draft's questions that people's labels tell, by the text of the question.

    A person's answer to the question itself comes first. Else, if people accepted the output, the answer is the good
    one, and unknown if a comment names the question. If people rejected the output, the bad answer is known only if the
    question was learned from this output, is named by a comment, or was the only one about its dimension at the start.
    """
    given = answered_questions([example], draft.questions)
    dimension_counts = Counter(
        _rated(each, targets) for each in draft.questions.questions if each.id not in draft.origins
    )
    named = {each.about for each in example.comment}
    found: dict[str, Literal["yes", "no"]] = {}
    for question in draft.questions.questions:
        if question.id in given:
            yes = _side(example.human_answer(question.id))
        else:
            fine = _side(signal.reference(draft, example.id, question.id))
            is_named = question.id in named and question.id not in draft.questions.dimensions
            is_alone = question.id not in draft.origins and dimension_counts[_rated(question, targets)] == 1
            if fine is None or (fine and is_named):
                continue
            if not fine and not (is_named or is_alone or question.id in draft.origins):
                continue
            yes = fine if question.good == "yes" else not fine
        if yes is not None:
            found[question.text] = "yes" if yes else "no"
    return found


def _rated(question: Question, targets: Targets) -> str:
    return question.dimension if question.dimension in targets.dimensions else WHOLE


def _side(value: float | None) -> bool | None:
    """Whether a wanted score, or people's mean answer, is clearly high; None where it is neither high nor low."""
    if value is None or not 0 <= value <= 1 or 1 - CLEAR < value < CLEAR:
        return None
    return value >= CLEAR


def _distances(
    cases: Sequence[RememberedCase], scores: Mapping[str, ExampleScore], targets: Targets
) -> dict[str, float]:
    """Return the distance of the judge's score of each case from the middle between accepted and rejected cases."""
    known = {each.id: score for each in cases if (score := targets.score(scores[each.id])) is not None}
    means = [
        mean_score(known[each.id] for each in cases if each.id in known and each.is_accepted is fine)
        for fine in (True, False)
    ]
    middle = mean_score(means) or 0.0
    return {name: abs(score - middle) for name, score in known.items()}
