"""The form of a prompt: the file that it came from, how its variables are written and what they stand for.

A prompt of several messages is one text with a line before each message, ``<!-- message 1: system -->``. Edits act on
that text. Written back, each message's text goes to its own place in the file.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from jinja2 import TemplateError

from ..conversations.chat import images_of, sent_after, with_images
from ..errors import InputError
from ..examples import Example
from ..json_documents import at
from ..text import fence
from .documents import Found, MessageText, find_messages
from .spelling import Kind, Place, read_document, replaced, whole_file
from .variables import SYNTAXES, SyntaxName, check_syntax, filled, fixed_in, syntax_of, variables_in

FIELDS = ("input", "context", "output", "reference", "question")
"""Fields of ours that a variable may stand for, and the question that a judge is asked."""
COLUMN = "metadata."
"""Comes before the name of a column, where a variable stands for one."""

_MARK = re.compile(r"<!-- message \d+: (?:system|user|assistant) -->")
_DOCUMENTS: dict[str, Kind] = {".json": "json", ".yaml": "yaml", ".yml": "yaml"}
SUFFIXES: dict[SyntaxName, str] = {"braces": ".md", "f-string": ".txt", "double": ".jinja", "jinja": ".jinja"}
"""The suffix under which a text is kept that is no JSON or YAML."""


@dataclass(frozen=True)
class PromptForm:
    """The form of a prompt that is no plain text of ours."""

    source: str
    """The file as it was read, byte order mark and line ends included."""
    kind: Kind | None
    """None: the file is one text."""
    found: Found = field(compare=False)
    syntax: SyntaxName
    variables: Mapping[str, str] = field(default_factory=dict)
    """Each variable's field of an example, ``question``, or ``metadata.COLUMN``."""
    output_alone: bool = False
    """Whether nothing else of an example is shown."""
    named: str | None = None
    """The predictor of a program that has several."""

    @property
    def format(self) -> str:
        """The format in words, e.g. ``messages in YAML``."""
        return self.found.format

    @property
    def said(self) -> str:
        """The format, the syntax and the meaning of each variable that is not called after its field, in one line."""
        taken = [f"{self.spelled(name)} is {_in_words(ours)}" for name, ours in self.variables.items() if name != ours]
        syntax = SYNTAXES[self.syntax] if self.variables else "no variables"
        return f"{self.format}, {syntax}{': ' if taken else ''}{', '.join(taken)}"

    @property
    def identity(self) -> str:
        """All that what is asked depends on beside the text."""
        literal = [number for number, part in enumerate(self.parts) if part.is_literal]
        return repr((self.syntax, sorted(self.variables.items()), literal or ""))

    @property
    def is_plain(self) -> bool:
        """Whether it is a text with our own placeholders, of which only line ends or a byte order mark are to be kept."""
        own = all(name == ours and not ours.startswith(COLUMN) for name, ours in self.variables.items())
        return self.kind is None and self.syntax == "braces" and own

    @property
    def parts(self) -> tuple[MessageText, ...]:
        """The texts of the file's messages, in order."""
        return self.found.parts

    @property
    def suffix(self) -> str:
        """The suffix of a file in this form."""
        return SUFFIXES[self.syntax] if self.kind is None else f".{self.kind}"

    @cached_property
    def text(self) -> str:
        """The text of the file as edits see it."""
        return "".join(f"{mark}{part.text}" for mark, part in zip(self._marks, self.parts, strict=True))

    @cached_property
    def _marks(self) -> list[str]:
        """The line before each text; none where there is one text alone."""
        if len(self.parts) == 1:
            return [""]
        lines = [f"<!-- message {number}: {part.role} -->\n" for number, part in enumerate(self.parts, 1)]
        return [line if place == 0 else f"\n{line}" for place, line in enumerate(lines)]

    def split(self, text: str) -> list[str] | None:
        """The texts of the messages; None where a line between two of them is not as it was."""
        found: list[str] = []
        if not text.startswith(self._marks[0]):
            return None
        rest = text[len(self._marks[0]) :]
        for mark in self._marks[1:]:
            before, there, rest = rest.partition(mark)
            if not there:
                return None
            found.append(before)
        found.append(rest)
        return None if any(_MARK.search(each) for each in found) else found

    def texts(self, text: str) -> list[str]:
        """The texts of the messages of a prompt of this form."""
        found = self.split(text)
        assert found is not None, "an edit leaves the lines between messages as they are"
        return found

    def fixed(self, text: str) -> list[tuple[int, int]]:
        """Spans (start, end) of a text that no edit may touch.

        They are the lines between messages, the messages that show cases (an assistant's, and a user's before one of
        these), and in the others variables and Jinja's tags.
        """
        spans, at = [], 0
        for place, (mark, part) in enumerate(zip(self._marks, self.texts(text), strict=True)):
            if mark:
                spans.append((at, at + len(mark)))
            at += len(mark)
            if not self._is_edited(place):
                spans.append((at, at + len(part)))
            else:
                spans += [(at + start, at + end) for start, end in fixed_in(part, self.syntax)]
            at += len(part)
        return spans

    def _is_edited(self, place: int) -> bool:
        part, later = self.parts[place], self.parts[place + 1 :]
        if part.place is None or part.is_literal or part.role == "assistant":
            return False
        return part.role == "system" or all(each.role != "assistant" for each in later)

    def problem_of(self, text: str) -> str | None:
        """Why a text is none of this form any more; None where it is one."""
        if self.split(text) is None:
            return "it touches the line between two messages"
        try:
            self.variables_in(text)
        except TemplateError:
            return "the prompt would be no Jinja template any more"
        return None

    def around_question(self, text: str) -> tuple[str, str] | None:
        """The text before and after the variable that stands for the question; None where none does."""
        for name, means in self.variables.items():
            spelled = re.search(rf"\{{+\s*{re.escape(name)}\s*\}}+", text) if means == "question" else None
            if spelled is not None:
                return text[: spelled.start()], text[spelled.end() :]
        return None

    def variables_in(self, text: str) -> list[str]:
        """Names of the variables, as they are written, each as often as it is there."""
        parts = zip(self.parts, self.texts(text), strict=True)
        return [name for part, each in parts if not part.is_literal for name in variables_in(each, self.syntax)]

    def means(self, name: str) -> str:
        """The field of ours that a variable stands for, or ``metadata.COLUMN``."""
        return self.variables.get(name, name)

    def spelled(self, name: str) -> str:
        """A variable as it is written in this form."""
        return f"{{{name}}}" if self.syntax in ("braces", "f-string") else f"{{{{{name}}}}}"

    def written(self, text: str) -> str:
        """The file with the text of this prompt in it.

        Raises:
            InputError: The file cannot hold it.
        """
        new = {
            part.place: each
            for part, each in zip(self.parts, self.texts(text), strict=True)
            if part.place is not None and part.text != each
        }
        if not new:
            return self.source
        old = whole_file(self.source) if self.kind is None else self._read(self.source)
        return replaced(self.source, old, new, whole_file if self.kind is None else self._read)

    def _read(self, source: str) -> Any:
        assert self.kind is not None
        return read_document(source, self.kind, "the prompt")

    def messages(self, text: str, values: Mapping[str, Any]) -> list[tuple[str, str]]:
        """The messages, as (role, content), with values put in by the names of the variables.

        Raises:
            ValueError: Jinja cannot render one.
        """
        made: list[tuple[str, str]] = []
        for part, each in zip(self.parts, self.texts(text), strict=True):
            content = each if part.is_literal else filled(each, self.syntax, values)
            if part.goes_on and made:
                content = f"{made.pop()[1]}\n{content}"
            made.append((part.role, content))
        return made

    def values(self, example: Example, ours: Mapping[str, Any]) -> dict[str, Any]:
        """The value of each variable: one of ``ours``, or of a column; empty where an example has none."""
        found = {}
        for name, means in self.variables.items():
            value = at(example.metadata, means.removeprefix(COLUMN)) if means.startswith(COLUMN) else ours.get(means)
            found[name] = "" if value is None else value
        return found

    def for_writing(self, text: str, example: Example) -> list[tuple[str, str]]:
        """The conversation in which a generator is asked for an output; see ``generator_messages``."""
        ours = {"input": example.input, "context": example.context or ""}
        made = self._rendered(text, example, self.values(example, ours))
        shown = {*self.variables.values()}
        images = [image for name in ("context", "input") if name in shown for image in images_of(ours[name])]
        if "input" in shown:
            return [*made[:-1], (made[-1][0], with_images(made[-1][1], images))]
        left = example.context if example.context and "context" not in shown else ""
        begins = self.kind is None or made[0][0] == "system"
        (_, system), *asked = sent_after(made[0][1] if begins else "", left, example.input)
        return [*([("system", system.lstrip("\n"))] if system else []), *made[begins:], *asked]

    def filled(self, text: str, example: Example, ours: Mapping[str, str]) -> list[tuple[str, str]]:
        """The messages with the texts of an example as they are; see ``judge_messages``."""
        return self._rendered(text, example, self.values(example, ours))

    def for_judging(self, text: str, example: Example, texts: Mapping[str, str], shown: str) -> Laid:
        """An example laid out for a judge; see ``frame``.

        Args:
            text: The prompt's.
            example: What is judged.
            texts: The texts of the example that the judge may see, by field.
            shown: What follows the system message where no variable stands for a text of the example.
        """
        ours = {name: fence(each) if each or name == "output" else "" for name, each in texts.items()}
        values = self.values(example, ours | {"question": _QUESTION})
        for name, means in self.variables.items():
            if means.startswith(COLUMN) and isinstance(values[name], str) and "\n" in values[name]:
                values[name] = fence(values[name])  # one line may stand within a sentence
        made = self._rendered(text, example, values)
        if not {"output", "question"} & {*self.variables.values()}:
            made = [("system", made[0][1]) if self.kind is None else made[0], *made[1:], ("user", shown)]
        system = [content for role, content in made if role == "system"]
        turns = made[len(system) : -1]
        before, _, after = made[-1][1].partition(_QUESTION)
        if any(_QUESTION in content for _, content in made[:-1]) or _QUESTION in after:
            raise InputError("The question of a judge stands once, in the last message of its prompt.")
        if "question" not in self.variables.values() and made[-1][1] is not shown:
            before += "\n\n"
        pairs = tuple((turns[place][1], turns[place + 1][1]) for place in range(0, len(turns) - 1, 2))
        return Laid("\n\n".join(system) if system else None, pairs, before, after)

    def _rendered(self, text: str, example: Example, values: Mapping[str, Any]) -> list[tuple[str, str]]:
        try:
            return self.messages(text, values)
        except ValueError as error:
            raise InputError(f"The prompt, with the example '{example.id}': {error}") from None

    def check_order(self, where: str, *, judges: bool) -> None:
        """Raise InputError where the messages are in an order that nobody can be asked in."""
        roles = [part.role for part in self.parts if not part.goes_on]
        if self.kind is None:
            return
        shows = (
            bool({"output", "question"} & {*self.variables.values()}) if judges else "input" in self.variables.values()
        )
        if shows and roles[-1] != "user":
            raise InputError(f"{where}: the last message must be a user's, which the model answers.")
        if not shows and roles[-1] == "user":
            wanted = self.spelled("output" if judges else "input")
            raise InputError(
                f"{where}: no variable stands for the {'output' if judges else 'input'}. Write {wanted} into the user's "
                "message, or say which variable it is: --variable NAME="
                f"{'output' if judges else 'input'}"
            )
        if judges:
            asked = [role for role in roles if role != "system"]
            turns = asked[:-1] if shows else asked
            if roles[: len(roles) - len(asked)] != ["system"] * (len(roles) - len(asked)) or any(
                role != ("assistant" if place % 2 else "user") for place, role in enumerate(turns)
            ):
                raise InputError(
                    f"{where}: a judge's messages are the system's first, then cases of user and assistant in turn, then a "
                    "user's message."
                )


def plain_form(text: str) -> PromptForm:
    """The form of a text with our own placeholders, of which one is to stand for something else."""
    return PromptForm(text, None, Found("text", (MessageText("user", text, Place(0, len(text), "file")),)), "braces")


class Laid(NamedTuple):
    """An example laid out for a judge."""

    system: str | None
    turns: tuple[tuple[str, str], ...]
    before: str
    after: str


_QUESTION = "\ue000question\ue000"
"""Holds the place of the question while values are put in."""


def _in_words(means: str) -> str:
    return f"the column '{means.removeprefix(COLUMN)}'" if means.startswith(COLUMN) else f"the {means}"


def form_of(
    source: str, name: str, suffix: str, ours: Collection[str] = FIELDS, named: str | None = None
) -> PromptForm:
    """The form of a file, whose variables are not bound yet; ``ours`` are placeholders of our own.

    A file is JSON or YAML by its suffix. Another file is it where all of it is JSON, or YAML of a known format: a text
    that only looks like YAML ("Note: be kind") is a text.

    Raises:
        InputError: It is JSON or YAML of no known format, or a template that does not parse.
    """
    read = _document_of(source, name, suffix, named)
    if read is None:
        whole = whole_file(source)
        return PromptForm(
            source, None, Found("text", (MessageText("user", whole, whole.place),)), syntax_of(whole, ours, name)
        )
    kind, found = read
    texts = [part.text for part in found.parts if not part.is_literal]
    syntax = found.syntax or syntax_of("\n".join(texts), ours, name)
    for number, part in enumerate(found.parts, 1):
        where = name if len(found.parts) == 1 else f"{name}, message {number}"
        if _MARK.search(part.text):
            raise InputError(f"{where}: the text has '<!-- message' in it, which stands between messages.")
        if not part.is_literal:
            check_syntax(part.text, syntax, where)
    return PromptForm(source, kind, found, syntax, named=named)


_YAML_MESSAGES = re.compile(
    r"(?:[ \t]*(?:#[^\n]*)?\r?\n|---\s*\n)*(?:- *)?[\"']?(?:role|content|messages|prompts)[\"']?[ \t]*:"
)
_KNOWN = (
    "a list of messages (role and content), an object with 'messages', or a prompt of promptfoo, LangSmith, Langfuse, "
    "MLflow or DSPy"
)


def _document_of(source: str, name: str, suffix: str, named: str | None) -> tuple[Kind, Found] | None:
    """The messages of a JSON or YAML file; None where it is a text."""
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
    """The messages of a file whose suffix does not say that it is JSON or YAML."""
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
