"""Agents that write lessons into a prompt: the updater and the rewriter.

The updater makes one exact edit per lesson (BinEval §3.3, step 4); the rewriter takes all lessons in one call (App. B).
Both must pass the same guards before a verdict is bought (:func:`check_edit`). No placeholder, protected part or answer
format may get lost. Most of the prompt's words must be kept, but a part that orders the opposite of a lesson may be
corrected or taken out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import zip_longest
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from ..models.base import Model
from ..models.gateway import Gateway
from ..prompts.lessons import Edit, Lesson, foreign_order
from ..prompts.prompt import Prompt, check_length
from ..prompts.templates import render, template
from ..prompts.text import copied_words
from .agent import Agent, ParseError
from .rules import content_stems

_RATES = re.compile(r"\b(?:rate|rates|rating|score|scores|grade|scale)\b", re.IGNORECASE)
_RANGE = re.compile(r"\b\d+(?:\s*(?:to|-|\N{EN DASH}|and|through|out of)\s*|/)\d+\b", re.IGNORECASE)
_JSON = re.compile(r"\bJSON\b", re.IGNORECASE)


def check_edit(prompt: Prompt, edit: Edit, max_chars: int | None, examples: Sequence[str]) -> None:
    """Check an edit of a prompt. Raises ValueError, with a message for the model, if the edit fails a guard.

    An edit fails if it cannot be applied; if it makes the prompt too long; if it changes or moves the answer format, a
    scale or a placeholder; if it orders another answer format; if it gives an order that is forbidden in lessons; or if
    it copies from ``examples``, which are texts of development.
    """
    changed = check_length(prompt.apply(edit), max_chars)
    if changed.placeholders != prompt.placeholders:
        raise ValueError("it moves a placeholder")
    altered = [each for each in prompt.answer_format if each not in changed.answer_format]
    if altered:
        raise ValueError(f"it changes the answer format ({altered[0]!r})")
    if _scales(prompt.text) != _scales(changed.text):
        raise ValueError("it changes the scale, or brings in another")
    if any(_JSON.search(each) for each in changed.answer_format if each not in prompt.answer_format):
        raise ValueError("it orders another answer format")
    written = "\n".join(line for line in edit.new.splitlines() if line not in edit.old)
    if order := foreign_order(written, prompt.text):
        raise ValueError(order)
    copied = copied_words(edit.new.replace(edit.old, ""), examples, allowed=prompt.text)
    if copied:
        raise ValueError(f'the edit copies an example ("{copied}")')


def _scales(text: str) -> list[str]:
    """Return the ranges of numbers in sentences about rating, in order."""
    return [
        " ".join(found.lower().split())
        for sentence in re.split(r"[.\n]", text)
        if _RATES.search(sentence)
        for found in _RANGE.findall(sentence)
    ]


LONG_LINE = 160
"""Lines with more characters are split into sentences."""
_PLACEHOLDER_LINE = re.compile(r"\{[A-Za-z_]\w*\}")
LEAST_KEPT = 0.7
"""Smallest share of a part's words that a replacement must keep."""
LEAST_SAID = 0.6
"""Smallest share of a lesson's words that the edit must contain."""
_BULLET = re.compile(r"[ \t]*([-*•]|\d+[.)])[ \t]+")


class Proposal(BaseModel):
    """A proposed change: the part of the prompt, and its new text or an addition."""

    part: int = Field(ge=1)
    action: Literal["add", "replace"]
    text: str = Field(min_length=5, max_length=800)


class Correction(BaseModel):
    """The correction or deletion of a part that orders the opposite of the lesson."""

    model_config = ConfigDict(title="correction of the prompt")

    part: int = Field(ge=1)
    action: Literal["correct", "delete"]
    text: str = Field(max_length=800)


class EditAgent(Agent):
    """A model that proposes edits of a prompt."""

    role = "updater"

    def __init__(
        self,
        gateway: Gateway,
        model: Model,
        *,
        max_prompt_chars: int | None = None,
        seed: int | None = None,
        free: bool = False,
    ) -> None:
        """``max_prompt_chars``: longer prompts are refused. ``free``: edits need not keep the old words or say all of
        the lesson, as in the papers."""
        super().__init__(gateway, model, seed=seed)
        self._max_prompt_chars = max_prompt_chars
        self._least_kept = 0.0 if free else LEAST_KEPT
        self._least_said = 0.0 if free else LEAST_SAID


class Updater(EditAgent):
    """A model that names a part of the prompt and its revision.

    The model gives the number of a line or sentence. So the old text of an edit is exact, and no copying error of the
    model can spoil it.
    """

    async def propose(
        self, prompt: Prompt, lesson: Lesson, examples: Sequence[str] = (), opposed: Sequence[int] = ()
    ) -> Edit:
        """Turn a lesson into an edit that passes the guards. Raises ParseError, with the reason, if the model's second
        proposal is refused too.

        Nothing may be copied from ``examples``, which are texts of development. ``opposed`` are the positions, from 0,
        of the parts (:func:`split_parts`) that order the opposite of the lesson. One of them is then corrected or taken
        out.
        """
        spans = split_parts(prompt)
        if not spans:
            raise ParseError("The prompt has no part that may be edited: all of it is protected.")
        parts = [prompt.text[start:end] for start, end in spans]
        numbered = "\n".join(f"[{number}] {part}" for number, part in enumerate(parts, 1))
        variables = {"parts": numbered, "lesson": lesson.text}
        named = ", ".join(str(place + 1) for place in sorted(opposed))

        def edit_of(proposal: Proposal | Correction, least_said: float) -> Edit:
            if proposal.action != "delete" and shared_words(lesson.text, proposal.text) < least_said:
                raise ValueError(f'"text" does not say the lesson in full: {lesson.text}')
            edit = make_edit(prompt, spans[proposal.part - 1], proposal, lesson.id)
            check_edit(prompt, edit, self._max_prompt_chars, examples)
            return edit

        def corrects(correction: Correction) -> Edit:
            if correction.part - 1 not in opposed:
                raise ValueError(f'"part" must be one of these: {named}')
            return edit_of(correction, LEAST_SAID)

        def passes_guards(proposal: Proposal) -> Edit:
            if proposal.part > len(spans):
                raise ValueError(f'"part" must be a number from 1 to {len(spans)}')
            if prompt.as_written(" ".join(proposal.text.split()).lstrip("-*• ")) in prompt.text:
                raise ValueError("the prompt already says this, word for word")
            kept = shared_words(parts[proposal.part - 1], proposal.text)
            if proposal.action == "replace" and kept < self._least_kept:
                raise ValueError('a replacement must keep what the part says; use "add" to put the lesson after it')
            return edit_of(proposal, self._least_said)

        if opposed:
            case = render("updater_correct_case", **variables, opposed=named)
            return corrects(
                await self._ask(template("updater_correct"), case, Correction, max_tokens=400, check=corrects)
            )
        case = render("updater_case", **variables)
        return passes_guards(await self._ask(template("updater"), case, Proposal, max_tokens=400, check=passes_guards))


def split_parts(prompt: Prompt) -> list[tuple[int, int]]:
    """Return the spans (start, end) of a prompt's editable parts: lines, and the sentences of long lines.

    Left out are blank lines, protected lines, lines that are only a variable, a label line above such a line, loops of
    Jinja, lines between messages, messages that show a case, and everything from the question on, so that the question
    stays last.
    """
    text, spans, protected, position = prompt.text, list[tuple[int, int]](), False, 0
    stop = len(text) + 1 if prompt.around_question is None else len(prompt.around_question[0])
    lines = re.findall(r"[^\n]*\n|[^\n]+", text)
    for line, following in zip_longest(lines, lines[1:], fillvalue=""):
        if position <= stop < position + len(line):
            break
        protected = protected or "<!-- protect -->" in line
        after = position + len(line)
        label = line.rstrip().endswith(":") and _shows_alone(prompt, after, following)
        shows = label or _shows_alone(prompt, position, line)
        if not protected and not shows and line.strip():
            long = len(line) > LONG_LINE
            for sentence in re.finditer(r"\S.*?(?:[.!?](?=\s)|\s*$)" if long else r"\S.*\S|\S", line):
                spans.append((position + sentence.start(), position + len(line[: sentence.end()].rstrip())))
        protected = protected and "<!-- /protect -->" not in line
        position += len(line)
    return spans


def _shows_alone(prompt: Prompt, start: int, line: str) -> bool:
    """Return whether a line has nothing to edit: it is only a variable, or part of a fixed span of the prompt."""
    if not prompt.fixed:
        return bool(_PLACEHOLDER_LINE.fullmatch(line.strip()))
    end, remainder = start + len(line.rstrip("\n")), line
    for first, last in reversed(prompt.fixed):
        if first < end and last > start:
            if "\n" in prompt.text[first:last]:
                return True
            remainder = remainder[: first - start] + remainder[last - start :]
    return len(remainder) < len(line) and not re.search(r"\w", remainder)


def last_instruction(prompt: Prompt, within: tuple[int, int] | None = None) -> tuple[int, int] | None:
    """Return the span of the part after which further instructions belong; None if no part may be edited.

    It is the last bullet, else the last part that does not end with a colon ("Summary:"). In a prompt of several
    messages it is in the system message, or else in the last message that may be edited. ``within`` limits it to a span
    of the text.
    """
    text, spans = prompt.text, split_parts(prompt)
    home = None if prompt.form is None else prompt.form.home(text)
    if within is not None:
        spans = [span for span in spans if within[0] <= span[0] and span[1] <= within[1]]
    elif home is not None:
        spans = [span for span in spans if home[0] <= span[0] < home[1]] or spans
    bullets = [span for span in spans if _BULLET.match(text, text.rfind("\n", 0, span[0]) + 1)]
    plain = [span for span in spans if not text[slice(*span)].endswith(":")]
    return next((each[-1] for each in (bullets, plain, spans) if each), None)


def make_edit(prompt: Prompt, span: tuple[int, int], proposal: Proposal | Correction, lesson: str) -> Edit:
    """Turn a proposal into an exact edit. ``old`` is extended, line by line, until it occurs only once.

    A deleted part takes its line with it, or the white space on one side if more text is on the line.
    """
    text, (start, end) = prompt.text, span
    line_start = text.rfind("\n", 0, start) + 1
    bullet = _BULLET.match(text, line_start)
    revised = prompt.as_written(" ".join(proposal.text.split()))
    if proposal.action == "delete":
        start, end, revised = *_whole_line(text, start, end), ""
    elif proposal.action == "add":
        line_end = text.find("\n", end)
        end = line_end if line_end != -1 else len(text.rstrip())
        mark = bullet[0] if bullet and not bullet[1][0].isdigit() else "- "
        revised = f"{text[line_start:end]}\n{mark}{_without_bullet(revised)}"
        start = line_start
    elif bullet and bullet.start(1) == start:
        revised = bullet[0].lstrip() + _without_bullet(revised)
    first, last = start, end
    while text.find(text[first:last]) != text.rfind(text[first:last]):
        if first > 0:
            first = text.rfind("\n", 0, first - 1) + 1 if first > 1 else 0
        else:
            line_end = text.find("\n", last + 1)
            last = line_end if line_end != -1 else len(text)
    return Edit(old=text[first:last], new=text[first:start] + revised + text[end:last], lessons=(lesson,))


def _whole_line(text: str, start: int, end: int) -> tuple[int, int]:
    """Extend the span of a deleted part to its line, or to the white space on one side."""
    line_start, line_end = text.rfind("\n", 0, start) + 1, text.find("\n", end)
    line_end = len(text) if line_end == -1 else line_end
    before, after = text[line_start:start], text[end:line_end]
    if not after.strip() and (not before.strip() or _BULLET.fullmatch(before)):
        return (line_start, line_end + 1) if line_end < len(text) else (max(line_start - 1, 0), line_end)
    if before.strip() and not _BULLET.fullmatch(before):
        return line_start + len(before.rstrip()), end
    return start, end + len(after) - len(after.lstrip())


def _without_bullet(line: str) -> str:
    return _BULLET.sub("", line, count=1) if _BULLET.match(line) else line


def shared_words(wanted: str, text: str) -> float:
    """Return the share of the words of ``wanted`` that occur in ``text``, in [0, 1]."""
    words = re.findall(r"\w+", wanted.lower())
    there = set(re.findall(r"\w+", text.lower()))
    return sum(word in there for word in words) / len(words) if words else 1.0


class Rewritten(BaseModel):
    """The whole prompt, rewritten."""

    model_config = ConfigDict(title="prompt")

    prompt: str = Field(min_length=1)


class Rewriter(EditAgent):
    """A model that writes lessons into a prompt in one call."""

    async def propose(
        self, prompt: Prompt, lessons: Sequence[Lesson], examples: Sequence[str] = (), opposed: Sequence[int] = ()
    ) -> Edit:
        """Rewrite the prompt so that it says the lessons. The edit covers the lines from the first to the last change.

        Raises ParseError, with the reason, if the model's second rewrite is refused too. The arguments are those of
        :meth:`Updater.propose`; ``opposed`` parts need not be kept.
        """
        parts = [prompt.text[start:end] for start, end in split_parts(prompt)]
        wrong = [parts[place] for place in sorted(opposed)]
        remainder = prompt.text
        for part in wrong:
            remainder = remainder.replace(part, "", 1)

        def passes_guards(reply: Rewritten) -> Edit:
            text = prompt.as_written(reply.prompt.strip())
            if shared_words(remainder, text) < self._least_kept:
                raise ValueError("the rewritten prompt drops too much of what the prompt said")
            unsaid = [lesson.text for lesson in lessons if self._least_said and not is_said(lesson.text, text)]
            if unsaid:
                raise ValueError(f"it does not say this lesson in full: {unsaid[0]}")
            edit = whole_edit(prompt.text, text, [lesson.id for lesson in lessons])
            check_edit(prompt, edit, self._max_prompt_chars, examples)
            return edit

        listed = "\n".join(f"- {lesson.text}" for lesson in lessons)
        case = render("rewriter_case", prompt=prompt.text, lessons=listed)
        if wrong:
            case += "\n\n" + render("rewriter_opposed", opposed="\n".join(wrong))
        most = len(prompt.text.encode(errors="surrogatepass")) // 2 + 200 * len(lessons) + 200
        reply = await self._ask(template("rewriter"), case, Rewritten, max_tokens=most, check=passes_guards)
        return passes_guards(reply)


def is_said(lesson: str, prompt: str) -> bool:
    """Return whether a line of the prompt has most words of a lesson, and most of its content words.

    The lines are tested one by one, because all lines together contain most words of any lesson.
    """
    telling = content_stems(lesson)
    for line in prompt.splitlines():
        shared = len(telling & content_stems(line)) / len(telling) if telling else 1.0
        if min(shared, shared_words(lesson, line)) >= LEAST_SAID:
            return True
    return False


def whole_edit(old: str, new: str, lessons: Sequence[str]) -> Edit:
    """Return the change from one text to another as one exact edit of whole lines. White space at the ends is kept."""
    before = old[: len(old) - len(old.lstrip())]
    after = old[len(old.rstrip()) :]
    lines, revised = old.splitlines(keepends=True), (before + new + after).splitlines(keepends=True)
    first = 0
    while first < min(len(lines), len(revised)) and lines[first] == revised[first]:
        first += 1
    last = 0
    while last < min(len(lines), len(revised)) - first and lines[-1 - last] == revised[-1 - last]:
        last += 1
    while True:
        mine = "".join(lines[first : len(lines) - last])
        if mine and old.find(mine) == old.rfind(mine):
            return Edit(old=mine, new="".join(revised[first : len(revised) - last]), lessons=tuple(lessons))
        if first > 0:
            first -= 1
        elif last > 0:
            last -= 1
        else:
            return Edit(old=old, new="".join(revised), lessons=tuple(lessons))
