"""Several prompts of one program as one text. Edits, versions and diffs see the text; the program gets each prompt by
its name.

A protected line stands before each prompt: ``<!-- protect --><!-- prompt: NAME --><!-- /protect -->``.
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
    """One of several prompts, and its place in the common text."""

    name: str
    start: int
    end: int


def sections(text: str) -> list[NamedPart]:
    """Return the prompts in a common text, in order; empty if the text is a single prompt."""
    marks = list(_MARK.finditer(text))
    if not marks or marks[0].start():
        return []
    ends = [*(each.start() for each in marks[1:]), len(text)]
    return [NamedPart(each["name"], each.end(), end - 1) for each, end in zip(marks, ends, strict=True)]


def by_name(text: str) -> dict[str, str]:
    """Return the text of each prompt by its name; empty if the text is a single prompt."""
    return {each.name: text[each.start : each.end] for each in sections(text)}


def joined(texts: Mapping[str, str]) -> str:
    """Join several prompts in one common text; :func:`by_name` splits it again."""
    return "".join(
        f"<!-- protect --><!-- prompt: {name} --><!-- /protect -->\n{text}\n" for name, text in texts.items()
    )


PromptsOfProgram = str | Path | Prompt | Mapping[str, str | Path | Prompt] | Sequence[str | Path]
"""One prompt, or several: as a mapping from name to prompt, or as files."""


def program_prompt(given: PromptsOfProgram) -> tuple[Prompt, str]:
    """Return the prompt or prompts of a program as one, and the name of a single prompt (else empty).

    The texts are taken as they stand, because the program itself knows its variables. Raises InputError if a file
    cannot be read, a prompt is empty, or two prompts have the same name.
    """
    if isinstance(given, Mapping):  # the keys are the names, so a text is the prompt itself, not a path
        texts = {name: source if isinstance(source, str) else _read(source) for name, source in given.items()}
    elif isinstance(given, (str, Path, Prompt)):
        texts = {prompt_name(given): _read(given)}
    else:
        texts = {}
        for source in given:
            if (name := prompt_name(source)) in texts:
                raise InputError(
                    f"{source}: another prompt is called '{name}' too; a program gets each by its file's name."
                )
            texts[name] = _read(source)
    if not texts:
        raise InputError("prompt: no prompt is given.")
    for name, text in texts.items():
        if not text.strip() or _MARK.search(text) or not re.fullmatch(r"[^\n]*[^\s-][^\n]*", name) or "-->" in name:
            reason = "it is empty" if not text.strip() else "its name or a line of it is of the kind that parts prompts"
            raise InputError(f"prompt '{name}': {reason}, so it cannot be used.")
    if len(texts) == 1:
        [(name, text)] = texts.items()
        return Prompt(text), name
    return Prompt(joined(texts)), ""


def generator_prompt(given: PromptsOfProgram, binding: Binding, *, is_program: bool) -> tuple[Prompt, str]:
    """Return the prompt of a generator, and its name if the generator is a program with one prompt (else empty). Raises
    InputError as :func:`program_prompt` and :func:`~askance.prompts.prompt.load_generator_prompt`, or if a model has
    several prompts."""
    if is_program:
        return program_prompt(given)
    if not isinstance(given, (str, Path, Prompt)):
        if len(given) != 1 or isinstance(given, Mapping):
            raise InputError("prompt: a model has one prompt; several are for a generator that is a program.")
        given = given[0]
    return load_generator_prompt(given, binding), ""


def prompt_name(prompt: object) -> str:
    """Return the name by which a program gets a prompt: its file's name without the suffix, else ``prompt``."""
    return Path(prompt).stem if isinstance(prompt, (str, Path)) else "prompt"


def _read(prompt: str | Path | Prompt) -> str:
    """Return the text of a prompt, byte for byte as in its file."""
    if isinstance(prompt, Prompt):
        return prompt.text
    try:
        return read_text(prompt, as_it_is=True)
    except FileNotFoundError:
        raise InputError(f"{prompt}: there is no such prompt file.{like_named(Path(prompt))}") from None
