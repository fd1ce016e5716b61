"""What a run has learned from people's comments, for a terminal: the questions, whose words they are, and their worth."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..prompts.checklist import ALONE, QUOTED
from ..prompts.formatting import Figure, count
from ..prompts.human_feedback import one_line
from ..prompts.text import shorten

if TYPE_CHECKING:
    from rich.console import Console

    from ..memory.result_file import RunRecord
    from ..memory.result_parts import LearnedRecord
    from ..memory.why_question import QuestionStory

FOUND = {"memory": "from the lesson memory", "contrast": "from what rejected outputs do and accepted ones do not"}
"""How a question was found that comes from no comment of this run, by its origin."""
MOST_SET_ASIDE = 5
"""Questions that did not join which are shown; the others are counted."""
MOST_SHOWN = 6
"""Examples shown to the judge that are quoted."""
MOST_NAMES = 3
"""Examples that are named."""
MOST_QUOTED = 100
"""Characters of a comment, an output or a reason."""
MOST_ON = 8
"""Examples of a comment that are named in a question's history."""


def quoted(text: str) -> str:
    """What somebody wrote, in one line and in quotation marks, shortened."""
    return f"“{shorten(one_line(text), MOST_QUOTED)}”"


def learned_questions(out: Console, result: RunRecord) -> None:
    """The questions that joined, those that did not with the reasons, or why none was proposed."""

    def tell(text: str, indent: int, style: str | None = None) -> None:
        out.print(folded(text, indent, out.width), style=style, soft_wrap=True)

    if result.learned:
        out.print(f"\nThe judge has learned {count(len(result.learned), 'question')} from comments:")
        for each in result.learned:
            tell(f"{each.criterion} [{each.id}]", 2)
            tell(f"worth {worth_text(each)}", 6)
            tell(origin_text(each), 6)
        tell(f"Worth is what the judge gains over itself without the question ({result.yardstick}).", 0, "dim")
    for revised in result.revised_questions:
        tell(revised.sentence, 0)
    left = result.not_learned
    if left:
        out.print("\nProposed, and not learned:", style="dim")
    for each in left[:MOST_SET_ASIDE]:
        why = "it went to the acceptance test, see below" if each.was_tried and result.rejected_edits else each.reason
        tell(f"{each.criterion} [{each.id}]: {why}", 2, "dim")
    if more := len(left[MOST_SET_ASIDE:]):
        tell(f"and {more} more; all of them are in result.json and report.html", 2, "dim")
    if result.why_no_questions and (result.changed or result.thing == "prompt"):
        out.print()
        tell(f"No question was learned, as {result.why_no_questions}.", 0, "dim")


def shown_examples(out: Console, result: RunRecord) -> None:
    """The judged examples that the judge is shown from now on, and why others are not."""
    if (shown := result.shown) is not None:
        out.print(f"\nThe judge is now shown {shown.name} that people judged:")
        for each in shown.cases[:MOST_SHOWN]:
            said = ", ".join(dict.fromkeys(each.verdicts.values()))
            why = f", because {quoted(each.reason)}" if each.reason else ""
            text = f"{said} [{each.id}]: {quoted(each.output)}{why}"
            out.print(folded(text, 2, out.width), soft_wrap=True)
        if (more := len(shown.cases) - MOST_SHOWN) > 0:
            out.print(f"  and {more} more; all of them are in judge.yaml", style="dim")
    for left in result.not_shown:
        text = f"Not shown: {left.name}: {left.reason}"
        out.print(folded(text, 0, out.width), style="dim", soft_wrap=True)


def worth_text(each: LearnedRecord) -> str:
    """What a question that joined was worth on test, or else on validation."""
    last = each.worth.last
    return "was not measured" if last is None else f"{Figure.of(last[1], '+.3f')} on {last[0]}, n = {last[1].n}"


def origin_text(each: LearnedRecord) -> str:
    """Whose comments a question comes from, the first one quoted; or how else it was found."""
    said = {"output": f"; asked {ALONE}", "quote": f"; {QUOTED}"}
    return _from(each) + said.get(each.sees, "")


def _from(each: LearnedRecord) -> str:
    said = [quoted(text) for text in each.comments[:1]]
    others = len(each.comments) - 1
    said += [count(others, "more comment")] if others > 0 else []
    if not each.sources:
        return FOUND.get(each.origin, "") + (f"; there from {' and '.join(said)}" if said else "")
    on = f"{count(len(each.sources), 'example')} ({named(each.sources, MOST_NAMES)})"
    return f"from {' and '.join(said)}, on {on}" if said else f"from {on}"


def named(examples: Sequence[str], most: int) -> str:
    """The first examples by id, and how many there are more."""
    more = len(examples) - most
    return ", ".join(examples[:most]) + (f" and {more} more" if more > 0 else "")


def folded(text: str, indent: int, width: int) -> str:
    """A paragraph on lines of a terminal; those after the first are set two further in."""
    return textwrap.fill(
        text,
        max(40, min(width, 100)),
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent + 2),
        break_long_words=False,
        break_on_hyphens=False,
    )


def question_lines(story: QuestionStory) -> Iterator[tuple[int, str]]:
    """The history of a question, as paragraphs with their indents: comments, development examples, acceptance test, worth."""
    yield 0, f"{story.criterion} [{story.id}]"
    if story.origin == "start":
        yield 0, "It stood in the checklist that the run began with."
        return
    fate = {"accepted": "Learned", "waiting": "Not decided yet"}.get(story.status, f"Not learned: {story.reason}")
    yield 0, f"{fate}. It was proposed in iteration {story.iteration}."
    if found := FOUND.get(story.origin):
        yield 2, f"It comes {found}"
    for comment in story.comments:
        on = f", on {named(comment.examples, MOST_ON)}" if comment.examples else ""
        yield 2, f"From the comment “{comment.text}”{on}"
    if story.good is not None:
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


def interval_of(gain: Mapping[str, Any] | None) -> str:
    """The interval of a gain, as it goes on after its reason; nothing where there is none."""
    span = Figure.of(gain, "+.3f").span("-") if gain else None
    return f", 95% interval [{', '.join(span)}]" if span else ""
