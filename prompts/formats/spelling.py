"""Texts of a JSON, YAML or text file with their places, and the replacement of such a text.

Outside a replaced text, no character of the file changes. Inside, the unchanged parts keep their spelling: escapes,
quotes, folded lines, line ends. Every replacement is read again as a check. If a scalar cannot spell the new text in
its own style (a line break between single quotes), this scalar is written between double quotes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from difflib import SequenceMatcher
from json import scanner
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any, Literal, NamedTuple, cast

import yaml

from ..errors import InputError
from ..text_files import YamlReader, once_each, read_yaml_with

Style = Literal["file", '"', "'", "plain", "|", ">"]
Kind = Literal["json", "yaml"]


class Place(NamedTuple):
    """The place of a text in its file, including its quotes or block header."""

    start: int
    end: int
    style: Style


class Text(str):
    """A text with its place in the file."""

    place: Place

    def __new__(cls, value: str, place: Place) -> Text:
        """Make a text at a place."""
        made = super().__new__(cls, value)
        made.place = place
        return made


class _Unit(NamedTuple):
    """The smallest part of a text with a spelling of its own: a character, an escape or a folded line end."""

    value: str
    start: int
    end: int


class _Decoder(json.JSONDecoder):
    """Reads every string, except keys, as a :class:`Text` with its place."""

    def __init__(self) -> None:
        super().__init__(object_pairs_hook=once_each)
        plain: Callable[..., tuple[str, int]] = scanstring

        def parse(text: str, start: int, strict: bool = True) -> tuple[Text, int]:
            value, end = plain(text, start, strict)
            return Text(value, Place(start - 1, end, '"')), end

        self.parse_string = parse
        self.scan_once = scanner.py_make_scanner(self)  # type: ignore[attr-defined]  # the one in C calls no method of ours


class _Placed(YamlReader):
    """Reads every text, except keys, as a :class:`Text` with its place."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Construct a mapping whose keys are plain texts."""
        return {
            str(key) if isinstance(key, Text) else key: each
            for key, each in super().construct_mapping(node, deep).items()
        }


def _placed(_: yaml.SafeLoader, node: yaml.ScalarNode) -> Text:
    return Text(node.value, Place(node.start_mark.index, node.end_mark.index, cast("Style", node.style or "plain")))


_Placed.add_constructor("tag:yaml.org,2002:str", _placed)


def read_document(source: str, kind: Kind, where: str) -> Any:
    """Read a JSON or YAML file into a value in which every text is a :class:`Text`. Raises InputError, with line and
    column, if it is not valid."""
    shift = source.startswith("\ufeff")
    if kind == "yaml":
        found = read_yaml_with(source[shift:], where, "prompt", _Placed)
    else:
        try:
            found = _Decoder().decode(source[shift:])
        except json.JSONDecodeError as error:
            raise InputError(
                f"{where}, line {error.lineno}, column {error.colno}: not valid JSON ({error.msg})."
            ) from None
        except (ValueError, RecursionError) as error:
            raise InputError(f"{where}: not valid JSON ({error}).") from None
    return _shifted(found) if shift else found


def _shifted(value: Any) -> Any:
    """Move all places in a value by one, because a byte order mark stands before them."""
    if isinstance(value, Text):
        start, end, style = value.place
        return Text(value, Place(start + 1, end + 1, style))
    if isinstance(value, dict):
        return {name: _shifted(each) for name, each in value.items()}
    return [_shifted(each) for each in value] if isinstance(value, list) else value


def whole_file(source: str) -> Text:
    """Return the text of a plain text file, without byte order mark and with line ends as ``\\n``."""
    start = int(source.startswith("\ufeff"))
    text = source[start:].replace("\r\n", "\n").replace("\r", "\n")
    return Text(text, Place(start, len(source), "file"))


# --- a text replaced -------------------------------------------------------------------------------------------------


def replaced(source: str, old: Any, new: Mapping[Place, str], read: Callable[[str], Any]) -> str:
    """Return the file with the texts at some places replaced. Raises InputError if a new text cannot be written there.

    ``old`` is the file's value, as ``read`` returns it. ``read`` also reads the file again after each replacement, to
    check it.
    """
    texts = {each.place: each for each in _texts(old)}
    for place in sorted(new, reverse=True):  # from the end: places before it stay where they are
        wanted = _with_text(old, place, new[place])
        for spelled in _spellings(source, texts[place], new[place]):
            changed = source[: place.start] + spelled + source[place.end :]
            try:
                found = read(changed)
            except InputError:
                continue
            if found == wanted:
                source, old = changed, wanted
                break
        else:
            raise InputError(f"The file cannot be written with this text in it: {new[place]!r:.80}")
    return source


def _texts(value: Any) -> Iterator[Text]:
    if isinstance(value, Text):
        yield value
    elif isinstance(value, (dict, list)):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts(each)


def _with_text(value: Any, place: Place, new: str) -> Any:
    if isinstance(value, Text):
        return Text(new, place) if value.place == place else value
    if isinstance(value, dict):
        return {name: _with_text(each, place, new) for name, each in value.items()}
    return [_with_text(each, place, new) for each in value] if isinstance(value, list) else value


def _spellings(source: str, text: Text, new: str) -> Iterator[str]:
    """Yield spellings of a new text in place of an old one; the one that is most like the old comes first."""
    place = text.place
    written = source[place.start : place.end]
    newline = "\r\n" if source.count("\r\n") * 2 > source.count("\n") else "\n"
    units = list(_units(written, place.style))
    if "".join(unit.value for unit in units) == text:
        spelled = _spliced(written, units, new, place.style, newline)
        if spelled is not None:
            yield spelled
    if place.style in ("|", ">") and (block := _as_block(written, new, newline)):
        yield block
    if place.style != "file":
        yield _quoted(new, ascii_only=place.style == '"' and written.isascii() and "\\u" in written)
        if place.style in ("|", ">"):  # what follows a block is on a line of its own
            ending = written[len(written.rstrip()) :]
            yield _quoted(new, ascii_only=False) + (ending or newline)


_ESCAPES = r"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u.{4}|\\x..|\\U.{8}|\\\r?\n[ \t]*|\\."
_FOLD = r"[ \t]*\r?\n(?:[ \t]*\r?\n)*[ \t]*"
_PARTS = {
    "file": re.compile(r"\r\n|.", re.DOTALL),
    '"': re.compile(rf"{_ESCAPES}|{_FOLD}|.", re.DOTALL),
    "'": re.compile(rf"''|{_FOLD}|.", re.DOTALL),
    "plain": re.compile(rf"{_FOLD}|.", re.DOTALL),
}
_YAML_ESCAPES = {
    "0": "\0",
    "a": "\a",
    "e": "\x1b",
    "v": "\v",
    " ": " ",
    "_": "\xa0",
    "N": "\x85",
    "L": "\u2028",
    "P": "\u2029",
}


def _units(written: str, style: Style) -> Iterator[_Unit]:
    """Yield the units of a text as written, in order. The caller must check that together they make the text."""
    if style in ("|", ">"):
        yield from _block_units(written, folded=style == ">")
        return
    edge = 1 if style in ('"', "'") else 0
    for found in _PARTS[style].finditer(written, edge, len(written) - edge):
        yield _Unit(_value(found[0], style), found.start(), found.end())


def _value(part: str, style: Style) -> str:
    if style == "file":
        return "\n" if part in ("\r\n", "\r") else part
    if "\n" in part:
        if part.startswith("\\"):
            return ""
        return "\n" * (part.count("\n") - 1) or " "
    if style == "'" and part == "''":
        return "'"
    if style == '"' and part.startswith("\\"):
        if part[1] in _YAML_ESCAPES:
            return _YAML_ESCAPES[part[1]]
        if part[1] in "xU":
            return chr(int(part[2:], 16))
        return str(json.loads(f'"{part}"')) if part[1] in '"\\/bfnrtu' else part[1]
    return part


def _block_units(written: str, *, folded: bool) -> Iterator[_Unit]:
    """Yield the units of a block scalar: one per character (the first of a line with the indentation) or line end."""
    header, *lines = re.findall(r"[^\n]*\n|[^\n]+", written)
    indent = _indent_of(header, lines)
    keeps, strips = "+" in header, "-" in header
    offset = len(header)
    last = max((place for place, line in enumerate(lines) if line.strip()), default=-1)
    breaks = 0
    for place, line in enumerate(lines):
        body = line.rstrip("\r\n")
        text = body[indent:] if body.strip() or len(body) > indent else ""
        start = offset
        for position, sign in enumerate(text):
            end = offset + indent + position + 1
            yield _Unit(sign, start, end)
            start = end
        end_of_line = offset + len(line)
        offset = end_of_line
        if place > last or (place == last and strips) or not line.endswith("\n"):
            if keeps and place > last and line.endswith("\n"):
                yield _Unit("\n", start, end_of_line)
            continue
        if not folded or place == last:
            yield _Unit("\n", start, end_of_line)
            continue
        breaks = breaks + 1 if not text else 0
        following = lines[place + 1].strip() if place + 1 < len(lines) else ""
        yield _Unit("\n" if not text else " " if following else "", start, end_of_line)


def _indent_of(header: str, lines: list[str]) -> int:
    first = next((line for line in lines if line.strip()), "")
    return len(first) - len(first.lstrip(" "))


def _spliced(written: str, units: list[_Unit], new: str, style: Style, newline: str) -> str | None:
    """Respell only the parts of a written text that change; None if this style cannot spell them."""
    old = "".join(unit.value for unit in units)
    starts: list[int] = []  # the unit that each character belongs to
    for number, unit in enumerate(units):
        starts += [number] * len(unit.value)
    made, end = [], len(written) - (style in ('"', "'"))
    if style in ("|", ">"):
        end = units[-1].end if units else len(written)
    place = units[0].start if units else end
    made.append(written[:place])
    for old_start, old_end, text in _changes(old, new):
        first = starts[old_start] if old_start < len(old) else len(units)
        last = starts[old_end - 1] + 1 if old_end > old_start else first
        lead = "".join(unit.value for unit in units[first : starts[old_start] if old_start < len(old) else first])
        start = units[first].start if first < len(units) else end
        stop = units[last].start if last < len(units) else end
        spelled = _encoded(
            lead + text, style, written, newline, at_line_start=old_start == 0 or old[old_start - 1] == "\n"
        )
        if spelled is None or start < place:
            return None
        made += [written[place:start], spelled]
        place = stop
    return "".join([*made, written[place:]])


def _changes(old: str, new: str) -> Iterator[tuple[int, int, str]]:
    """Yield the changes (start, end, new text) from one text to another, line by line, without equal ends."""
    lines, revised = (re.findall(r"[^\n]*\n|[^\n]+", text) for text in (old, new))
    starts, new_starts = [0], [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    for line in revised:
        new_starts.append(new_starts[-1] + len(line))
    for kind, first, last, new_first, new_last in SequenceMatcher(None, lines, revised, autojunk=False).get_opcodes():
        if kind == "equal":
            continue
        start, end, text = starts[first], starts[last], new[new_starts[new_first] : new_starts[new_last]]
        while start < end and text and old[start] == text[0]:
            start, text = start + 1, text[1:]
        while end > start and text and old[end - 1] == text[-1]:
            end, text = end - 1, text[:-1]
        yield start, end, text


def _encoded(text: str, style: Style, written: str, newline: str, *, at_line_start: bool) -> str | None:
    """Spell a part of a text in a style; None if the style has no spelling for it."""
    if style == "file":
        return text.replace("\n", newline)
    if style == '"':
        return _quoted(text, ascii_only=written.isascii() and "\\u" in written)[1:-1]
    if style in ("'", "plain"):
        return None if "\n" in text else text.replace("'", "''") if style == "'" else text
    header, *lines = re.findall(r"[^\n]*\n|[^\n]+", written)
    indent = " " * _indent_of(header, lines)
    parts = text.split("\n")
    broken = newline * 2 if style == ">" else newline
    made = broken.join(part if place == 0 or not part else indent + part for place, part in enumerate(parts))
    return indent + made if at_line_start and parts[0] else made


_UNSAFE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


def _quoted(text: str, *, ascii_only: bool) -> str:
    """Spell a text between double quotes, so that JSON and YAML both read it."""
    if ascii_only and max(text, default="") < "\U00010000":  # JSON escapes higher characters as two, YAML does not
        return json.dumps(text)
    return _UNSAFE.sub(lambda sign: f"\\u{ord(sign[0]):04x}", json.dumps(text, ensure_ascii=False))


def _as_block(written: str, new: str, newline: str) -> str | None:
    """Spell a text as a block scalar with the old indentation, and with the header that the text needs."""
    header, *lines = re.findall(r"[^\n]*\n|[^\n]+", written)
    body = new.rstrip("\n")
    if not body or new[0] in " \n":
        return None
    indent, ending = " " * _indent_of(header, lines), len(new) - len(body)
    mark = re.sub(r"^[|>]\d*[-+]?\d*", "|" + ("-", "", "+")[min(ending, 2)], header.rstrip("\r\n"))
    blank = re.search(r"\n((?:[ \t]*\r?\n)*)\Z", written)
    after = newline * (ending - 1) if ending > 1 else "" if blank is None else blank[1]
    inside = newline.join(indent + line if line else "" for line in body.split("\n"))
    return f"{mark}{newline}{inside}{newline if written.endswith(chr(10)) else ''}{after}"
