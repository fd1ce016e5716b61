"""The history of a question in words: its comments, what the examples said of it, the acceptance test, its worth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..optimizer.run_result import FOUND
from ..prompts.formatting import MOST_LISTED, Figure, names_text
from ..prompts.human_feedback import one_line
from ..prompts.text import shorten

if TYPE_CHECKING:
    from ..evaluation.measures.told import MeasuredCase
    from ..memory.why import QuestionStory

MOST_CHARS = 200
"""Characters of a part of an output that are shown."""


def question_lines(story: QuestionStory, cases: Sequence[MeasuredCase] = ()) -> Iterator[tuple[int, str]]:
    """The history of a question in paragraphs with indents; ``cases`` are outputs that a measure speaks against."""
    yield 0, f"{story.criterion} [{story.id}]"
    if story.origin == "start":
        yield 0, "It stood in the checklist that the run began with."
        return
    fate = {"accepted": "Learned", "waiting": "Not decided yet"}.get(story.status, f"Not learned: {story.reason}")
    yield 0, f"{fate}. It was proposed in iteration {story.iteration}."
    if found := FOUND.get(story.origin):
        yield 2, f"It comes from {found}"
    for comment in story.comments:
        on = f", on {names_text(comment.examples, MOST_LISTED)}" if comment.examples else ""
        yield 2, f"From the comment “{comment.text}”{on}"
    if story.good is not None and story.origin == "measure":
        yield 2, f"Examples that teach: a {'low' if story.good == 'no' else 'high'} number speaks for an output"
    elif story.good is not None:
        nearer, means = ("yes", "a fault") if story.good == "no" else ("no", "good")
        yield 2, f"Development examples: those outputs are nearer to {nearer} than accepted ones, so yes is {means}"
    if story.effect is not None:
        yield (
            2,
            f"Against other rejected outputs it speaks {story.effect:+.2f} more than against accepted ones (1 at most)",
        )
    for version in story.measured:
        verb = "accepted" if version.accepted else "rejected"
        others = f", together with {', '.join(version.together)}" if version.together else ""
        tried = f"Acceptance test, version {version.version} {verb}{others}"
        yield 2, f"{tried}: {version.reason}{interval_of(version.gain)}"
    for split, gain in story.worth.items():
        yield 2, f"Worth on {split}, over the judge without it: {Figure.of(gain, '+.3f')}, n = {gain['n']}"
    for case in cases:
        said = f": “{shorten(one_line(case.part), MOST_CHARS)}”" if case.part else ""
        yield 2, f"{case.example}: {case.told}{said}"


def interval_of(gain: Mapping[str, Any] | None) -> str:
    """The interval of a gain, as it goes on after its reason; nothing where there is none."""
    span = Figure.of(gain, "+.3f").span("-") if gain else None
    return f", 95% interval [{', '.join(span)}]" if span else ""
