"""Variables of a prompt as people write them: ``{x}``, ``{{x}}``, or Jinja with its loops and conditions.

For each syntax: the variables of a text, the parts that no edit may touch, and how values are put in.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache, lru_cache
from string import Formatter
from typing import Any, Literal

from jinja2 import StrictUndefined, Template, TemplateError, TemplateSyntaxError, meta
from jinja2.sandbox import SandboxedEnvironment

from ..errors import InputError
from ..text import BRACES, fill, literal, literal_but, placeholders_of, shorten

SyntaxName = Literal["braces", "f-string", "double", "jinja"]
"""``braces``: ``{x}``, all other braces are text; ``f-string``: ``{x}``, all other braces are doubled; ``double``:
``{{x}}``."""
SYNTAXES: dict[SyntaxName, str] = {
    "braces": "variables in single braces",
    "f-string": "an f-string's variables",
    "double": "variables in double braces",
    "jinja": "a Jinja template",
}
"""Each syntax in words."""

_DOUBLE = re.compile(r"\{\{(\{)?&?\s*([A-Za-z_][\w.]*)\s*(?(1)\}\}\}|\}\})")
_FSTRING = re.compile(r"\{\{|\}\}|\{([A-Za-z_]\w*)\}|[{}]")
_TAG = re.compile(r"\{%-?\s*raw\s*-?%\}.*?\{%-?\s*endraw\s*-?%\}|\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}", re.DOTALL)
_STATEMENT = re.compile(r"\{%[-+]?\s*(\w+)")
_BLOCKS = frozenset(["for", "if", "macro", "call", "filter", "with", "autoescape", "block"])
_SECTION = re.compile(r"\{\{[#^/>!]")


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


@cache
def _environment() -> SandboxedEnvironment:
    return SandboxedEnvironment(undefined=StrictUndefined, keep_trailing_newline=True, finalize=_finalized)


@lru_cache(64)
def _template(text: str) -> Template:
    return _environment().from_string(text)


def _finalized(value: Any) -> Any:
    return value if isinstance(value, StrictUndefined) else _as_text(value)


def syntax_of(text: str, ours: Collection[str], where: str) -> SyntaxName:
    """Detect the syntax of a text.

    If the text has a placeholder of ``ours`` in single braces, ``{{x}}`` is an escape; else it is a variable. Raises
    InputError, with line and column, if the text mixes two syntaxes, or is not valid in the syntax that it seems to
    have.
    """
    single = [name for name in placeholders_of(text) if name in ours]
    if tag := re.search(r"\{%[-+]?\s*[a-z]+\b.*?%\}", text, re.DOTALL):
        if single:
            raise InputError(
                f"{where}, {_place(text, tag.start())}: '{shorten(tag[0], 40)}' is Jinja and {{{single[0]}}} is not. Write "
                f"{{{{ {single[0]} }}}} in a Jinja template."
            )
        return _checked_jinja(text, where)
    if single or "{{" not in text:
        is_ours = bool(single) and set(placeholders_of(text)) <= set(ours)
        return "braces" if is_ours or not _is_f_string(text) else "f-string"
    if section := _SECTION.search(text):
        raise InputError(
            f"{where}, {_place(text, section.start())}: a section of Mustache ('{section[0]}…') cannot be filled. Write it "
            "as a loop or condition of Jinja."
        )
    if "{{" not in _DOUBLE.sub("", text) and not re.search(r"\{#.*?#\}", text, re.DOTALL):
        return "double"
    try:
        return _checked_jinja(text, where)
    except InputError:
        if _is_f_string(text):
            return "f-string"
        raise


def double_or_jinja(texts: Iterable[str]) -> SyntaxName:
    """Return the syntax of texts with variables in double braces: Jinja if the braces hold more than a name."""
    text = "\n".join(texts)
    return "jinja" if "{%" in text or "{{" in _DOUBLE.sub("", text) else "double"


def check_syntax(text: str, syntax: SyntaxName, where: str) -> None:
    """Raise InputError, with line and column, if a text is not valid in the syntax that its file names."""
    if syntax == "jinja":
        _checked_jinja(text, where)
    elif syntax == "f-string":
        for found in _FSTRING.finditer(text):
            if found[0] in ("{", "}"):
                raise InputError(
                    f"{where}, {_place(text, found.start())}: a single '{found[0]}' that belongs to no variable; in an "
                    f"f-string it is written '{found[0] * 2}'."
                )
    elif syntax == "double" and (section := _SECTION.search(text)):
        raise InputError(
            f"{where}, {_place(text, section.start())}: a section of Mustache ('{section[0]}…') cannot be filled."
        )


def _is_f_string(text: str) -> bool:
    """Whether every brace of a text is doubled or belongs to a name, and there is at least one brace."""
    try:
        parts = list(Formatter().parse(text))
    except ValueError:
        return False
    named = [(name, spec, turned) for _, name, spec, turned in parts if name is not None]
    closed = "{" in text and text.count("{{") == text.count("}}")
    return closed and all(name.isidentifier() and not spec and not turned for name, spec, turned in named)


def _checked_jinja(text: str, where: str) -> Literal["jinja"]:
    try:
        _environment().parse(text)
    except TemplateSyntaxError as error:
        lines = text.split("\n")
        line, said = min(error.lineno, len(lines)), str(error.message).rstrip(".")
        raise InputError(
            f"{where}, line {line}, column {_column(lines[line - 1])}: no Jinja template: {said}. Text that is no "
            "template stands between {% raw %} and {% endraw %}."
        ) from None
    return "jinja"


def _column(line: str) -> int:
    """Return the column of the first tag of a line that does not parse by itself, else of the first tag."""
    tags = list(re.finditer(r"\{\{.*?(?:\}\}|$)|\{%.*?(?:%\}|$)", line))
    for tag in tags:
        try:
            _environment().parse(tag[0])
        except TemplateSyntaxError:
            return tag.start() + 1
    return tags[0].start() + 1 if tags else 1


def _place(text: str, position: int) -> str:
    line = text.count("\n", 0, position) + 1
    return f"line {line}, column {position - text.rfind(chr(10), 0, position)}"


def variables_in(text: str, syntax: SyntaxName) -> list[str]:
    """Return the names of the variables of a text, in order, each as often as it occurs."""
    if syntax in ("braces", "f-string"):
        return placeholders_of(text)
    if syntax == "double":
        return [found[2] for found in _DOUBLE.finditer(text)]
    free = meta.find_undeclared_variables(_environment().parse(text)) - _environment().globals.keys()
    tags = (tag[0] for tag in _TAG.finditer(text) if not tag[0].startswith("{#") and "endraw" not in tag[0])
    return [name for tag in tags for name in re.findall(r"(?<![\w.'\"])[A-Za-z_]\w*", tag) if name in free]


def fixed_in(text: str, syntax: SyntaxName) -> list[tuple[int, int]]:
    """Return the spans (start, end) that an edit may not touch: variables, and whole loops and conditions of Jinja."""
    if syntax in ("braces", "f-string"):
        return [found.span() for found in BRACES.finditer(text) if found[2]]
    if syntax == "double":
        return [found.span() for found in _DOUBLE.finditer(text)]
    return list(_outermost(text))


def _outermost(text: str) -> Iterator[tuple[int, int]]:
    open_blocks: list[int] = []
    for tag in _TAG.finditer(text):
        statement = _STATEMENT.match(tag[0])
        word = "" if statement is None or "endraw" in tag[0] else statement[1]
        if word in _BLOCKS or (word == "set" and "=" not in tag[0]):
            open_blocks.append(tag.start())
        elif word.startswith("end") and open_blocks:
            start = open_blocks.pop()
            if not open_blocks:
                yield start, tag.end()
        elif not open_blocks:
            yield tag.span()


def filled(text: str, syntax: SyntaxName, values: Mapping[str, Any]) -> str:
    """Put values into a text, in one pass: variables in a value are not filled. Raises KeyError if a variable has no
    value, and ValueError, with the reason, if Jinja cannot render the text."""
    if syntax == "braces":
        return fill(text, {name: _as_text(value) for name, value in values.items()})
    if syntax == "f-string":
        return _FSTRING.sub(lambda found: _as_text(values[found[1]]) if found[1] else found[0][0], text)
    if syntax == "double":
        return _DOUBLE.sub(lambda found: _as_text(values[found[2]]), text)
    try:
        return _template(text).render(values)
    except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError, AttributeError) as error:
        raise ValueError(f"Jinja cannot render it: {error}") from None


def in_our_braces(text: str, syntax: SyntaxName, means: Mapping[str, str], given: Mapping[str, str]) -> str:
    """Rewrite a text in our syntax: ``{name}`` for each variable, by its meaning; every other brace is text. ``given``
    holds the texts of variables that stand for a text. Raises ValueError for Jinja, which our syntax cannot express."""
    if syntax == "jinja":
        raise ValueError("its prompt is a Jinja template")
    names = list(means)
    # marks of a private character stand for the variables while all other braces are escaped
    marks = {name: f"\ue000{place}\ue000" for place, name in enumerate(names)}
    written = literal(filled(text, syntax, marks | dict(given)))
    return re.sub("\ue000(\\d+)\ue000", lambda mark: f"{{{means[names[int(mark[1])]]}}}", written)


def as_written(text: str, syntax: SyntaxName, kept: Collection[str]) -> str:
    """Escape a text for a prompt of this syntax, with only the names of ``kept`` as variables; braces may be doubled
    already. With double braces and Jinja nothing is escaped: an edit that adds a variable there is refused."""
    if syntax == "braces":
        return literal_but(text, kept) if kept else literal(text)
    if syntax != "f-string":
        return text
    return _FSTRING.sub(
        lambda found: found[0] if found[0] in ("{{", "}}") or found[1] in kept else _doubled(found[0]), text
    )


def literally(text: str, syntax: SyntaxName) -> str:
    """Escape a text for a prompt of this syntax, so that every brace is text. Raises ValueError if the syntax cannot
    spell it."""
    if syntax == "braces":
        return literal(text)
    if syntax == "f-string":
        return _doubled(text)
    if syntax == "jinja" and re.search(r"\{[{%#]", text):
        if re.search(r"\{%-?\s*endraw", text):
            raise ValueError("a Jinja template cannot say '{% endraw %}'")
        return f"{{% raw %}}{text}{{% endraw %}}"
    if syntax == "double" and "{{" in text:
        raise ValueError("a template with variables in double braces cannot say '{{'")
    return text


def _doubled(part: str) -> str:
    return part.replace("{", "{{").replace("}", "}}")
