"""Instructions for a writer whose outputs fail checks: a form to fill in, a grammar, and orders in plain words.

Forms and orders are tighter than the checks. Some checks say where a line stands and what is in it ("The last line is
…"). The outputs that pass these checks show whether there are other lines between them.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from ...agents.generator import instruction_of
from ...prompts.checklist import ComputedCheck, Question
from ...prompts.criteria.kinds import OF_SCHEMAS, said_of
from ...prompts.criteria.patterns import LengthBand
from ...prompts.text import copied_words
from .clauses import BOLD_LINE, REST_OF_LINE, line_pattern
from .schemas import LETTERS, cut_lengths, limit_of_words, passes, schema_said
from .wording import TIGHTER, tightened

MOST_LINES = 12
"""Most lines of free text if no check sets a number."""
MOST_SHOWN = 5
"""Most points that a form shows one by one."""
MOST_WORDS = 60
"""Most words of one line if no check sets a number."""
ENOUGH = 0.9
"""Share of the greatest number of words for which a grammar has room: a check may count more words than blanks."""
_PLACES = (1, 2, 3, 4, -1)
_HERE, _END = "\ue000", '"\\n"'
_SAYS = re.compile(r"Does the output say (.+)\?")
Mark = Literal["", "- ", "1. "]


@dataclass(frozen=True)
class FormLine:
    """A line of a form, or several lines alike."""

    begins: str = ""
    """Text that the line begins with; the whole line if nothing is to be filled in."""
    holds: str | None = None
    """Words for the part that is to be filled in; None if there is no such part."""
    ends: str = ""
    least: int = 1
    most: int = 1

    @property
    def places(self) -> int:
        """Number of places that are filled in separately; several lines of free text are one place."""
        if self.holds is None or not self.begins:
            return int(self.holds is not None)
        return self.most if self.most <= MOST_SHOWN else max(self.least, 2)

    @property
    def is_numbered(self) -> bool:
        """Whether each of the lines begins with its number."""
        return self.begins == "1. "


@dataclass(frozen=True)
class TextForm:
    """The lines of a text that has a fixed form."""

    lines: tuple[FormLine, ...]
    most_words: int | None = None
    """Most words of the whole text; None without a limit."""
    without: str = ""
    """Signs that must not stand in a filled-in text."""
    saying: tuple[str, ...] = ()
    """Words that must stand somewhere; the first place to be filled in asks for them."""

    @property
    def text(self) -> str:
        """The form as a writer gets it: places in angle brackets, and a limit of words that is tighter than needed."""
        words = self._words_a_line(TIGHTER)
        limit = "" if self.most_words is None else f", at most {words} words"
        named = "".join(f', with the word "{each}"' for each in self.saying)
        first = next((line for line in self.lines if line.holds is not None), None)
        shown = []
        for line in self.lines:
            asks = f"{line.holds}{named if line is first else ''}{limit}"
            for number in range(1, line.places + 1):
                begins = f"{number}. " if line.is_numbered else line.begins
                asks = asks if number == 1 else f"another {line.holds}{limit}"  # else all of them say the same
                shown.append(f"{begins}<{asks}>{line.ends}")
            shown += [line.begins] * (line.holds is None)
        return "\n".join(shown)

    @property
    def grammar(self) -> str:
        """A GBNF grammar of the texts that have this form."""
        *before, final = self.lines
        parts = [_times(f"{_one(line)} {_END}", line.least, line.most) for line in before]
        parts.append(_one(final))
        if final.most > 1:  # a line end between the last lines, and none after them
            parts.append(_times(f"{_END} {_one(final)}", final.least - 1, final.most - 1))
        # so many characters and not words: a writer at the end of its words would go on without blanks
        limit = LETTERS * self._words_a_line(ENOUGH) - 1
        excluded = _in_class(f"`{self.without}")
        marks = "".join(each for each in ".?!" if each not in self.without)
        return "\n".join(
            [
                f"root ::= {' '.join(parts)}",
                # one sentence: a full stop within it is that of a number or an abbreviation
                f"words ::= [^ .?!\\n\\t{excluded}] sign{{0,{limit}}} [{marks}]?",
                f'sign ::= [^.?!\\n\\t{excluded}] | "." [^ .?!\\n\\t{excluded}]',
                # a line that is no heading and no point of a list
                f"first ::= [^ \\n\\t#•{excluded.removesuffix('-')}-] [^\\n\\t{excluded}]{{0,{limit}}}",
            ]
        )

    def _words_a_line(self, share: float) -> int:
        """Return the number of words of one place, if the text may have a ``share`` of its greatest number."""
        if self.most_words is None:
            return MOST_WORDS
        fixed = sum(len(f"{line.begins} {line.ends}".split()) for line in self.lines if line.holds is None)
        places = sum(line.places for line in self.lines)
        return max(3, (math.floor(share * self.most_words) - fixed) // max(places, 1))


def form_of(criteria: Sequence[Question], outputs: Sequence[str] = ()) -> TextForm | None:
    """Return the form that checks ask for; None if none of them says what a line is.

    ``outputs`` are example texts. Those that pass the checks show which other lines there are.
    """
    checks = [each for each in criteria if isinstance(each, ComputedCheck) and each.weight and not each.is_fault]
    placed = {place: line for check in checks for place, line in _placed(check, outputs)}
    points = next((line for check in checks if (line := _points(check)) is not None), None)
    heads = next((names for check in checks if (names := _headings(check))), [])
    if not placed and points is None and not heads:
        return None
    shaped = [each for each in checks if shapes(each)]
    kept = [text for text in outputs if all(passes(each, text) for each in shaped)]
    first = [placed[place] for place in _PLACES[:-1] if place in placed]
    last = [placed[-1]] if -1 in placed else []
    body = [line for name in heads for line in (FormLine(f"## {name}"), FormLine("", "text", most=MOST_LINES))]
    before, after = _free_lines(kept, first, last, points)
    if points is not None:
        body += [*before, points, *after]
    elif not heads:
        body += before or ([] if kept else [FormLine("", "text", most=MOST_LINES)])
    bands = [LengthBand.of(each.value or "") for each in checks if each.kind == "length"]
    most = min((each.most for each in bands if each.unit == "word" and each.most), default=None)
    never = [each.value or "" for each in criteria if isinstance(each, ComputedCheck) and each.is_fault]
    signs = "".join(each.removeprefix("\\") for each in never if re.fullmatch(r"\\?[^\w\s]", each))
    marks = "*" if any("**" in line.begins for line in placed.values()) else ""
    saying = tuple(found[1] for each in checks if (found := _SAYS.fullmatch(each.text)))
    return TextForm((*first, *body, *last), most, f"{marks}{signs}", saying)


def in_form(check: ComputedCheck) -> bool:
    """Return whether a form expresses a check, so that the check need not be said again."""
    return shapes(check) or check.kind == "length" or _SAYS.fullmatch(check.text) is not None


def shapes(check: ComputedCheck) -> bool:
    """Return whether a check fixes lines, which a grammar can enforce."""
    return bool([*_placed(check)] or _points(check) or _headings(check))


def _placed(check: ComputedCheck, outputs: Sequence[str] = ()) -> Iterator[tuple[int, FormLine]]:
    """Yield the lines that a check fixes, each with its place: from 1, or -1 for the last one."""
    value = (check.value or "").strip()
    if check.kind == "begins":
        *whole, rest = value.splitlines()
        yield from enumerate([FormLine(each) for each in whole], 1)
        is_whole = _is_whole(check, [text.strip().removeprefix(value)[:1] for text in outputs if value in text])
        yield len(whole) + 1, FormLine(rest) if is_whole else FormLine(f"{rest} ", "text")
    elif check.kind == "ends":
        is_whole = _is_whole(check, [text.strip().removesuffix(value)[-1:] for text in outputs if value in text])
        yield -1, FormLine(value) if is_whole else FormLine("", "text", f" {value}")
    elif check.kind == "matches":
        for place in _PLACES:
            ahead, _, behind = line_pattern(place, _HERE).partition(_HERE)
            if value.startswith(ahead) and value.endswith(behind) and len(value) > len(ahead) + len(behind):
                if (line := _line(value[len(ahead) : len(value) - len(behind)], check.clause or "")) is not None:
                    yield place, line
                return


def _is_whole(check: ComputedCheck, beside: Sequence[str]) -> bool:
    """Return whether a fixed beginning or end is a line of its own; ``beside`` are the signs next to it in outputs."""
    if beside:
        return 2 * sum(each in ("", "\n") for each in beside) > len(beside)
    value = (check.value or "").strip()
    return " line" in (check.clause or "") or (value[:1].isupper() and not value.endswith(" of"))


def _line(inner: str, clause: str) -> FormLine | None:
    """Return the line that a pattern describes; None for other patterns."""
    if inner == BOLD_LINE:
        return FormLine("**", _holds(clause), "**")
    beginning = inner.removesuffix(REST_OF_LINE)
    text = re.sub(r"\\(.)", r"\1", beginning)
    if re.escape(text) != beginning:
        return None
    return FormLine(text) if beginning == inner else FormLine(f"{text} ", "text")


def _holds(clause: str) -> str:
    """Return a clause's words for what a line holds: ``one sentence`` for ``The last line is one sentence in bold``."""
    said = re.sub(r"^.*?\b(?:line|zeile)\b\s*(?:is|must be|should be|ist)?:?\s*", "", clause, flags=re.IGNORECASE)
    said = re.sub(r"\([^)]*\)", " ", said)
    said = re.sub(r"\b(?:all )?in bold(?: type| text)?\b", " ", said, flags=re.IGNORECASE)
    return " ".join(said.split()).strip(" .,;:") or "text"


def _points(check: ComputedCheck) -> FormLine | None:
    """Return the points of a list that a check wants, as a line; None if it wants none."""
    value = check.value or ""
    count = re.search(r"\{(\d+),(\d*)\}\\Z$", value)
    beginning = re.match(r"\(\?ms\)\\A\(\?:\(\?!\^\\s\*(.+?)\)\.\)\*", value)
    if check.kind != "matches":
        return None
    if count and beginning:
        mark = "- " if beginning[1] == "[-*•] " else re.sub(r"\\(.)", r"\1", beginning[1])
        low = max(1, int(count[1]))
        return FormLine(mark if mark.endswith(" ") else f"{mark} ", "point", "", low, int(count[2] or low + 3))
    marks: dict[str, Mark] = {"bullets": "- ", "numbered_list": "1. "}
    return FormLine(marks[check.id], "point", "", 1, MOST_LINES) if check.id in marks else None


def _headings(check: ComputedCheck) -> list[str]:
    """Return the headings that a check wants, in their order."""
    found = re.findall(r"\(\?=\[\\s\\S\]\*\^\\W\*(.+?)\\W\*\$\)", check.value or "") if check.kind == "matches" else []
    return [re.sub(r"\\(.)", r"\1", each) for each in found]


def _free_lines(
    kept: Sequence[str], first: Sequence[FormLine], last: Sequence[FormLine], points: FormLine | None
) -> tuple[list[FormLine], list[FormLine]]:
    """Return lines of free text before and after the points, on each side only if most outputs have some there."""
    sizes: list[tuple[int, int]] = []
    for text in kept:
        lines = [line for line in text.strip().splitlines() if line.strip()]
        lines = lines[len(first) : len(lines) - len(last)]
        is_point = [points is not None and _is_point(line, points) for line in lines]
        runs = [(key, sum(1 for _ in group)) for key, group in groupby(is_point)]
        ahead = runs[0][1] if runs and not runs[0][0] else 0
        behind = runs[-1][1] if len(runs) > 1 and not runs[-1][0] else 0
        sizes.append((ahead, behind))
    found = []
    for side in zip(*sizes, strict=True) if sizes else ():
        there = sorted(size for size in side if size)
        usual = 2 * len(there) > len(side)
        found.append([FormLine("", "text", most=max(there))] if usual else [])
    return (found[0], found[1]) if found else ([], [])


def _is_point(line: str, points: FormLine) -> bool:
    if points.is_numbered:
        return re.match(r"\s*\d+[.)] ", line) is not None
    marks = ("- ", "* ", "• ") if points.begins == "- " else (points.begins,)
    return line.lstrip().startswith(marks)


def _one(line: FormLine) -> str:
    """Write one line of a form in a grammar."""
    beginning = '[0-9]+ ". "' if line.is_numbered else json.dumps(line.begins, ensure_ascii=False)
    return (
        beginning
        if line.holds is None
        else f"{beginning} {'words' if line.begins else 'first'} {json.dumps(line.ends, ensure_ascii=False)}"
    )


def _times(one: str, least: int, most: int) -> str:
    if (least, most) == (1, 1):
        return one
    return f"({one}){{{least},{most}}}"


def _in_class(signs: str) -> str:
    """Write signs for the end of a class of characters, with the hyphen last, where it makes no range."""
    listed = sorted(dict.fromkeys(signs), key=lambda each: each == "-")
    return "".join(f"\\{each}" if each in "\\[]" else each for each in listed)


COPIED = 10
"""Words in a row, the same as in the input, that count as copied."""
OWN_WORDS = "in words of your own; do not copy"
_AT_END = re.compile(r"[\s,;.]+$")


def order_of(check: ComputedCheck, failed: Sequence[tuple[str, str]] = ()) -> str | None:
    """Put a check into words as an order: its clause with tighter limits, else words for its kind.

    ``failed`` are pairs of an input and its output that fails the check. If most of these outputs copy the input, and
    the check is about a length, the order forbids copying. None if only a model can word the order.
    """
    order = _words(check)
    if order is None:
        return None
    order = _AT_END.sub("", order)
    if _is_length(check) and 2 * sum(_copies(*pair) for pair in failed) > len(failed):
        order = f"{order}, {OWN_WORDS}"
    return f"{order[:1].upper()}{order[1:]}."


def _words(check: ComputedCheck) -> str | None:
    value = check.value or ""
    if check.kind in OF_SCHEMAS:
        schema = json.loads(value)
        if ends := cut_lengths(schema):
            kept = [f"{json.dumps(key, ensure_ascii=False)} below {int(TIGHTER * most)}" for key, most in ends.items()]
            return f"Keep every text short and finish it; characters: {', '.join(kept)}"
        if check.clause is not None and "\n" not in check.clause:
            return tightened(check.clause)
        keys = list(schema.get("properties", {}))
        named = ", ".join(json.dumps(key, ensure_ascii=False) for key in keys)
        return f"Write JSON with these keys and no others: {named}" if keys else f"Write JSON: {schema_said(schema)}"
    if check.clause is not None and "\n" not in check.clause:
        return tightened(check.clause)
    match check.kind:
        case "json":
            return "Write the JSON alone: no code fence, and no text before or after it"
        case "begins":
            return f'Begin with exactly this: "{value.strip()}"'
        case "ends":
            return f'End with exactly this: "{value.strip()}"'
        case "length":
            return tightened(f"Write {value}")
        case "checker":
            return None
        case _:
            quotes_it = check.kind in ("matches", "language") and check.text == said_of(check.kind, value)
            return None if quotes_it else instruction_of(check.text, is_fault=check.is_fault)


def _is_length(check: ComputedCheck) -> bool:
    if check.kind == "length":
        return True
    return check.kind in OF_SCHEMAS and limit_of_words(check.value or "") is not None


def _copies(given: str, output: str) -> bool:
    return copied_words(output, [given], run=COPIED) is not None
