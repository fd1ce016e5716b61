"""Where a line belongs that is added to the prompts of a program: where it mends most of what failed.

A program may have several prompts, and a requirement does not say which of them it speaks of. So the line is tried in
each on development outputs that failed the requirement. The acceptance test on validation then sees one candidate
alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...evaluation.scoring import mean_score
from ...prompts.examples import Example
from ...prompts.formats.several import NamedPart, sections
from ...prompts.lessons import Lesson
from ..contest import edited
from ..events import Teller
from ..mode import LoopRound
from ..subject import Subject
from .edits import WrittenEdits, add_lines

TRIED_ON = 8
"""Outputs that failed a requirement on which its line is tried in each prompt."""


@dataclass(frozen=True)
class Placing:
    """Adds lines to a prompt, or each to one of several prompts."""

    subject: Subject
    """Writes and looks at outputs with a line in one of the prompts."""
    max_chars: int | None
    """Longest prompt that may come of it."""
    events: Teller

    async def add(self, now: LoopRound, lessons: Sequence[Lesson]) -> WrittenEdits:
        """Edits that add the lessons to the best version's prompt, as of :func:`~.edits.add_lines`."""
        prompt = now.best.prompt
        places = sections(prompt.text)
        if not places:
            return add_lines(prompt, lessons, self.max_chars, self.events)
        chosen = [await self._chosen(now, lesson, places) for lesson in lessons]
        written = WrittenEdits()
        for place in places:
            mine = [lesson for lesson, where in zip(lessons, chosen, strict=True) if where == place]
            some = add_lines(prompt, mine, self.max_chars, self.events, (place.start, place.end))
            written.edits += some.edits
            written.refused |= some.refused
        return written

    async def _chosen(self, now: LoopRound, lesson: Lesson, places: Sequence[NamedPart]) -> NamedPart:
        """The prompt in which a line mends most of the outputs that led to it; the last one where none tells more."""
        failed = {key.rpartition("/")[0] for key in lesson.evidence}
        examples = [each for each in now.seen.examples if each.id in failed][:TRIED_ON]
        if not examples:
            return places[-1]
        found = []
        for number, place in enumerate(places):
            mended, score = await self._mended(now, lesson, examples, place)
            found.append((mended, score, number))
        mended, _, number = max(found)
        told = ", ".join(f"'{place.name}' {some}" for place, (some, _, _) in zip(places, found, strict=True))
        self.events.say(
            f"{lesson.id} was tried in each prompt on {len(examples)} outputs that failed; mended are in {told}. It goes "
            f"into '{places[number].name}'"
        )
        return places[number]

    async def _mended(
        self, now: LoopRound, lesson: Lesson, examples: Sequence[Example], place: NamedPart
    ) -> tuple[int, float]:
        """Outputs that pass the requirement with the line in this prompt, and their mean score."""
        draft = now.best.draft
        tried = add_lines(draft.prompt, [lesson], self.max_chars, None, (place.start, place.end))
        if not tried.edits:
            return -1, 0.0
        seen = await self.subject.observe(edited(draft, tried.edits), examples)
        passed = [
            seen.polarity(each.example, each.question).is_good(each.answer)
            for each in seen.verdicts
            if each.question == lesson.requirement and not each.replicate
        ]
        return sum(each is True for each in passed), mean_score(each.overall for each in seen.scores) or 0.0
