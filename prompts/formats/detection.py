"""Detection of the form of a prompt's file, by its suffix and its content."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import Path

from ..errors import InputError, like_named
from ..text import sendable
from ..text_files import read_text
from .documents import Found, find_messages, one_text
from .form import FIELDS, MARK, PromptForm
from .spelling import Kind, read_document, whole_file
from .variables import check_syntax, syntax_of

_DOCUMENTS: dict[str, Kind] = {".json": "json", ".yaml": "yaml", ".yml": "yaml"}


def form_in(path: Path, ours: Sequence[str]) -> tuple[PromptForm, str]:
    """Return the form of a prompt file, and the name of the file, as a configuration may name another file."""
    named = None
    if "#" in path.name and not path.exists():  # a predictor of a program, named behind its file
        path, named = path.with_name(path.name.rpartition("#")[0]), path.name.rpartition("#")[2]
    try:
        text = read_text(path, as_it_is=True)
    except FileNotFoundError:
        hint = " A prompt's text itself is given as askance.Prompt(text)." if "{" in str(path) else like_named(path)
        raise InputError(f"{path}: there is no such prompt file.{hint}") from None
    form = form_of(text, str(path), path.suffix, ours, named)
    if form.found.elsewhere is None:
        return form, str(path)
    there = path.parent / form.found.elsewhere
    if there.resolve() == path.resolve():
        raise InputError(f"{path}: it names itself as the file of its prompt.")
    return form_in(there, ours)


def form_of(
    source: str, name: str, suffix: str, ours: Collection[str] = FIELDS, named: str | None = None
) -> PromptForm:
    """Detect the form of a file; its variables are not bound yet. ``ours`` are our own placeholders.

    The suffix says whether a file is JSON or YAML. With any other suffix, a file is JSON if all of it is JSON, or YAML
    if it has a known format: a text that only looks like YAML ("Note: be kind") is a text. Raises InputError if the
    file is JSON or YAML of no known format, or a template that does not parse.
    """
    read = _document_of(source, name, suffix, named)
    if read is None and named is not None:
        raise InputError(f"{name}: '{named}' names a predictor, and this is no program of DSPy.")
    if read is None:
        whole = whole_file(source)
        return PromptForm(source, None, one_text("text", whole), syntax_of(whole, ours, name))
    kind, found = read
    texts = [part.text for part in found.parts if not part.is_literal]
    syntax = found.syntax or syntax_of("\n".join(texts), ours, name)
    for number, part in enumerate(found.parts, 1):
        place = name if len(found.parts) == 1 else f"{name}, message {number}"
        try:
            sendable(part.text)
        except ValueError as error:
            raise InputError(f"{place}: {error}.") from None
        if MARK.search(part.text):
            raise InputError(f"{place}: the text has '<!-- message' in it, which stands between messages.")
        if not part.is_literal:
            check_syntax(part.text, syntax, place)
    return PromptForm(source, kind, found, syntax, named=named)


_YAML_MESSAGES = re.compile(
    r"(?:[ \t]*(?:#[^\n]*)?\r?\n|---\s*\n)*(?:- *)?[\"']?(?:role|content|messages|prompts)[\"']?[ \t]*:"
)
_KNOWN = (
    "a list of messages (role and content), an object with 'messages' or with 'system' and 'user', or a prompt of promptfoo, LangSmith, Langfuse, "
    "MLflow or DSPy"
)


def _document_of(source: str, name: str, suffix: str, named: str | None) -> tuple[Kind, Found] | None:
    """Return the kind and the messages of a JSON or YAML file; None if the file is a text."""
    kind = _DOCUMENTS.get(suffix.lower())
    if kind is None:
        return _hidden_document(source, name, named)
    document = read_document(source, kind, name)
    if not isinstance(document, (dict, list)):
        return None
    found = find_messages(document, name, named)
    if found is None:
        raise InputError(f"{name}: no prompt that askance knows; as JSON or YAML a prompt is {_KNOWN}.")
    return kind, found


def _hidden_document(source: str, name: str, named: str | None) -> tuple[Kind, Found] | None:
    """Return the kind and the messages of a JSON or YAML file that has another suffix; None if it is a text."""
    text = source.lstrip("\ufeff").strip()
    if text[:1] + text[-1:] in ("{}", "[]"):
        try:
            document = read_document(source, "json", name)
        except InputError:
            if '"role"' in text and '"content"' in text:
                raise
        else:
            if isinstance(document, (dict, list)):
                return _document_of(source, name, ".json", named)
    if _YAML_MESSAGES.match(text):
        try:
            document = read_document(source, "yaml", name)
        except InputError:
            if re.search(r"^- *role *: *\w+ *$", text, re.MULTILINE):
                raise
            return None
        found = find_messages(document, name, named) if isinstance(document, (dict, list)) else None
        return None if found is None else ("yaml", found)
    return None
