"""Several prompts of one program as one text: edits, versions and diffs see them together, the program gets each by
name.

A protected line stands before each: ``<!-- protect --><!-- prompt: NAME --><!-- /protect -->``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ..errors import InputError, like_named
from ..prompt import Prompt, load_generator_prompt
from ..text_files import read_text
from .binding import Binding

_MARK = re.compile(r"^<!-- protect --><!-- prompt: (?P<name>[^\n]+?) --><!-- /protect -->\n", re.MULTILINE)


class NamedPart(NamedTuple):
    """One of several prompts, and where it stands in their common text."""

    name: str
    start: int
    end: int


def sections(text: str) -> list[NamedPart]:
    """The prompts in a common text, in order; none where it is the text of one prompt."""
    marks = list(_MARK.finditer(text))
    if not marks or marks[0].start():
        return []
    ends = [*(each.start() for each in marks[1:]), len(text)]
    return [NamedPart(each["name"], each.end(), end - 1) for each, end in zip(marks, ends, strict=True)]


def by_name(text: str) -> dict[str, str]:
    """The text of each prompt, as it was given, by its name; none where it is the text of one prompt."""
    return {each.name: text[each.start : each.end] for each in sections(text)}


def joined(texts: Mapping[str, str]) -> str:
    """The common text of several prompts, which :func:`by_name` takes apart."""
    return "".join(
        f"<!-- protect --><!-- prompt: {name} --><!-- /protect -->\n{text}\n" for name, text in texts.items()
    )


PromptsOfProgram = str | Path | Prompt | Mapping[str, str | Path | Prompt] | Sequence[str | Path]
"""One prompt, or several: by name, or as files."""


def program_prompt(given: PromptsOfProgram) -> tuple[Prompt, str]:
    """The prompt or prompts of a program as one, and the name of a single one (else empty).

    They are taken as they stand: the program itself says what its variables are. Raises InputError where a file cannot
    be read, a prompt is empty, or two have one name.
    """
    if isinstance(given, Mapping):  # a text is the prompt itself, as nothing else has a name of its own
        texts = {name: each if isinstance(each, str) else _read(each) for name, each in given.items()}
    elif isinstance(given, (str, Path, Prompt)):
        texts = {prompt_name(given): _read(given)}
    else:
        texts = {}
        for each in given:
            if (name := prompt_name(each)) in texts:
                raise InputError(
                    f"{each}: another prompt is called '{name}' too; a program gets each by its file's name."
                )
            texts[name] = _read(each)
    if not texts:
        raise InputError("prompt: no prompt is given.")
    for name, text in texts.items():
        if not text.strip() or _MARK.search(text) or not re.fullmatch(r"[^\n]*[^\s-][^\n]*", name) or "-->" in name:
            why = "it is empty" if not text.strip() else "its name or a line of it is of the kind that parts prompts"
            raise InputError(f"prompt '{name}': {why}, so it cannot be used.")
    if len(texts) == 1:
        [(name, text)] = texts.items()
        return Prompt(text), name
    return Prompt(joined(texts)), ""


def generator_prompt(given: PromptsOfProgram, binding: Binding, *, is_program: bool) -> tuple[Prompt, str]:
    """The prompt of a generator and, of a program that has one alone, its name. Raises InputError as
    :func:`program_prompt` and :func:`~askance.prompts.prompt.load_generator_prompt`, or where a model has several."""
    if is_program:
        return program_prompt(given)
    if not isinstance(given, (str, Path, Prompt)):
        if len(given) != 1 or isinstance(given, Mapping):
            raise InputError("prompt: a model has one prompt; several are for a generator that is a program.")
        given = given[0]
    return load_generator_prompt(given, binding), ""


def prompt_name(prompt: object) -> str:
    """The name by which a program is handed a prompt: its file's, without the suffix; ``prompt`` where it has none."""
    return Path(prompt).stem if isinstance(prompt, (str, Path)) else "prompt"


def _read(prompt: str | Path | Prompt) -> str:
    """The text of a prompt, byte for byte as its file has it."""
    if isinstance(prompt, Prompt):
        return prompt.text
    try:
        return read_text(prompt, as_it_is=True)
    except FileNotFoundError:
        raise InputError(f"{prompt}: there is no such prompt file.{like_named(Path(prompt))}") from None
