"""The form of a prompt: the file that it came from, the syntax of its variables and their meanings.

A prompt of several messages is one text with a line before each message, ``<!-- message 1: system -->``. Edits act on
that text. When the prompt is written back, each message's text goes to its own place in the file.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any

from jinja2 import TemplateError
from pydantic import BaseModel, ConfigDict

from ..conversations.chat import IMAGE_TOKENS, Part, chat_of, images_of, put_after, sent_after, with_images
from ..errors import InputError
from ..examples import Example
from ..json_documents import at
from ..messages import StructuredText
from ..text import fence, letters, literal
from .documents import Found, MessageText, find_messages, one_text
from .spelling import Kind, read_document, replaced, whole_file
from .variables import SYNTAXES, SyntaxName, filled, fixed_in, in_our_braces, syntax_of, variables_in

FIELDS = ("input", "context", "output", "reference", "question")
"""Our fields that a variable may stand for, and the question that a judge is asked."""
COLUMN = "metadata."
"""Prefix of the meaning of a variable that stands for a column."""
GIVEN = "text."
"""Prefix of the meaning of a variable that has its text from the file itself."""

MARK = re.compile(r"<!-- message \d+: (?:system|user|assistant) -->")
SUFFIXES: dict[SyntaxName, str] = {"braces": ".md", "f-string": ".txt", "double": ".jinja", "jinja": ".jinja"}
"""Suffix of a prompt file that is neither JSON nor YAML, by syntax."""


class FormRecord(BaseModel):
    """The data that is kept of a form beside the file itself."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Kind | None = None
    syntax: SyntaxName
    variables: dict[str, str] = {}
    named: str | None = None


@dataclass(frozen=True, slots=True)
class Framing:
    """The text around the question; it is the same for all questions on one example."""

    system: str | None
    before: str
    after: str
    ends: tuple[int, ...] = ()
    """Places in ``before`` up to which other examples may share it: the end of the fixed text, and of each text."""
    turns: tuple[tuple[str, str], ...] = ()
    """Questions and answers that come before the question, as cases of how to answer."""
    images: tuple[Part, ...] = ()
    """Images in the texts that are shown; they are sent before the texts."""
    messages: tuple[tuple[str, str], ...] = ()
    """Messages before the last one, as (role, content), for a prompt that is sent as it stands."""

    @property
    def prefix(self) -> str:
        """The beginning that every question on the example shares."""
        return "\n".join(self._parts)

    @property
    def length(self) -> int:
        """Length of the :attr:`prefix` and the images, in quarters of a token."""
        return sum(map(letters, self._parts)) + 4 * IMAGE_TOKENS * len(self.images)

    @property
    def _parts(self) -> list[str]:
        said = [content for _, content in self.messages]
        return [*said, self.system or "", *chain.from_iterable(self.turns), self.before]


@dataclass(frozen=True)
class PromptForm:
    """The form of a prompt: its file, the syntax of its variables, and what they stand for."""

    source: str
    """The content of the file as it was read, with byte order mark and line ends."""
    kind: Kind | None
    """JSON or YAML; None if the file is one text."""
    found: Found = field(compare=False)
    syntax: SyntaxName
    variables: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Variable to its meaning: a field of an example, ``question``, ``metadata.COLUMN``, or ``text.`` and a text."""
    is_checked: bool = field(default=True, compare=False)
    """Whether the columns are known to exist; if not, an example without one of them is refused."""
    output_alone: bool = False
    """Whether only the output of an example is shown."""
    named: str | None = None
    """The name of the predictor, for a DSPy program that has several."""

    @property
    def said(self) -> str:
        """One line: the format, the syntax, and the meaning of each variable whose name is not its field's."""
        taken = [f"{self.spelled(name)} is {_in_words(ours)}" for name, ours in self.variables.items() if name != ours]
        syntax = SYNTAXES[self.syntax] if self.variables else "no variables"
        kind = "" if self.kind is None else f" in {self.kind.upper()}"
        return f"{self.found.format}{kind}, {syntax}{': ' if taken else ''}{', '.join(taken)}"

    @property
    def record(self) -> FormRecord:
        """The data that is kept of the form beside the file."""
        return FormRecord(kind=self.kind, syntax=self.syntax, variables=dict(self.variables), named=self.named)

    @property
    def identity(self) -> str:
        """A key of everything, beside the text, that changes the messages that are sent."""
        literal = [number for number, part in enumerate(self.parts) if part.is_literal]
        alone = self.parts[0].role if len(self.parts) == 1 and not self.found.is_text else ""
        sent = ("as messages",) if self._sends_messages else ()
        return repr((self.syntax, sorted(self.variables.items()), literal, alone, *sent))

    @property
    def is_plain(self) -> bool:
        """Whether the file is one text with our own placeholders, so that only its line ends and byte order mark need
        the form."""
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
        """The text that edits act on: the texts of all messages, with the lines before them."""
        return "".join(f"{mark}{part.text}" for mark, part in zip(self._marks, self.parts, strict=True))

    @cached_property
    def _marks(self) -> list[str]:
        """The line before each text; empty if there is only one text."""
        if len(self.parts) == 1:
            return [""]
        lines = [f"<!-- message {number}: {part.role} -->\n" for number, part in enumerate(self.parts, 1)]
        return [line if place == 0 else f"\n{line}" for place, line in enumerate(lines)]

    def split(self, text: str) -> list[str] | None:
        """Split an edited text into the texts of the messages; None if a line between two messages was changed."""
        found: list[str] = []
        if not text.startswith(self._marks[0]):
            return None
        remainder = text[len(self._marks[0]) :]
        for mark in self._marks[1:]:
            before, there, remainder = remainder.partition(mark)
            if not there:
                return None
            found.append(before)
        found.append(remainder)
        return None if any(MARK.search(each) for each in found) else found

    def texts(self, text: str) -> list[str]:
        """Return the texts of the messages of a prompt in this form."""
        found = self.split(text)
        assert found is not None, "an edit leaves the lines between messages as they are"
        return found

    def fixed(self, text: str) -> list[tuple[int, int]]:
        """Return the spans (start, end) of a text that no edit may touch.

        These are the lines between messages, the messages that show cases (those of the assistant, and of the user
        before an assistant's), and the variables and Jinja tags in all other messages.
        """
        spans = []
        for place, (mark, start, end) in enumerate(self._places(text)):
            if mark < start:
                spans.append((mark, start))
            if not self._is_edited(place):
                spans.append((start, end))
            elif not self.parts[place].is_literal:
                spans += [(start + first, start + last) for first, last in fixed_in(text[start:end], self.syntax)]
        return spans

    def _places(self, text: str) -> list[tuple[int, int, int]]:
        """Return three places for each message: the start of its line, and the start and end of its text."""
        places, at = [], 0
        for mark, part in zip(self._marks, self.texts(text), strict=True):
            places.append((at, at + len(mark), at + len(mark) + len(part)))
            at = places[-1][2]
        return places

    def home(self, text: str) -> tuple[int, int] | None:
        """Return the span of the message that holds the instructions: the last system message, else the last message
        that may be edited. None if the file is one text or no message may be edited."""
        places = [place for place in range(len(self.parts)) if self._is_edited(place)]
        system = [place for place in places if self.parts[place].role == "system"]
        if self.kind is None or not places:
            return None
        return self._places(text)[(system or places)[-1]][1:]

    def _is_edited(self, place: int) -> bool:
        part, later = self.parts[place], self.parts[place + 1 :]
        if part.place is None or part.role == "assistant":
            return False
        return part.role == "system" or all(each.role != "assistant" for each in later)

    def problem_of(self, text: str) -> str | None:
        """Why an edited text no longer has this form; None if it has."""
        if (edited_texts := self.split(text)) is None:
            return "it touches the line between two messages"
        try:
            self.variables_in(text)
        except TemplateError:
            return "the prompt would be no Jinja template any more"
        if self.found.syntax is not None or self.is_plain:
            return None
        texts = [part.text for part in self.parts]
        for ours in (FIELDS, FIELDS[:4]):  # a judge's and a generator's
            if _syntax_of(texts, ours) == self.syntax != _syntax_of(edited_texts, ours):
                return f"the file would not be read as {SYNTAXES[self.syntax]} any more"
        return None

    def around_question(self, text: str) -> tuple[str, str] | None:
        """Return the text before and after the variable that stands for the question; None without such a variable."""
        for name, means in self.variables.items():
            spelled = re.search(rf"\{{+\s*{re.escape(name)}\s*\}}+", text) if means == "question" else None
            if spelled is not None:
                return text[: spelled.start()], text[spelled.end() :]
        return None

    def variables_in(self, text: str) -> list[str]:
        """Return the names of the variables as written in the file, each as often as it occurs."""
        parts = zip(self.parts, self.texts(text), strict=True)
        return [name for part, each in parts if not part.is_literal for name in variables_in(each, self.syntax)]

    def means(self, name: str) -> str:
        """Return the meaning of a variable, as in :attr:`variables`; a variable without one means its own name."""
        return self.variables.get(name, name)

    def spelled(self, name: str) -> str:
        """Return a variable as it is written in this form."""
        return f"{{{name}}}" if self.syntax in ("braces", "f-string") else f"{{{{{name}}}}}"

    def spelled_for(self, ours: str) -> str:
        """Return the variable that stands for one of our fields, as it is written."""
        return next((self.spelled(name) for name, means in self.variables.items() if means == ours), f"{{{ours}}}")

    def written(self, text: str) -> str:
        """Return the content of the file with this text in it. Raises InputError if the file cannot hold the text."""
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
        """Return the messages, as (role, content), with ``values`` put in for the variables. Raises ValueError if Jinja
        cannot render a message."""
        made: list[tuple[str, str]] = []
        for part, each in zip(self.parts, self.texts(text), strict=True):
            content = each if part.is_literal else filled(each, self.syntax, values)
            if part.goes_on and made:
                content = f"{made.pop()[1]}\n{content}"
            made.append((part.role, content))
        return made

    def values(self, example: Example, ours: Mapping[str, Any]) -> dict[str, Any]:
        """Return the value of each variable: from ``ours``, a column, or the file; empty if the example has no value.
        Raises InputError if the columns are not checked and the example lacks one."""
        found = {}
        for name, means in self.variables.items():
            if means.startswith(GIVEN):
                found[name] = means.removeprefix(GIVEN)
                continue
            column = means.removeprefix(COLUMN) if means.startswith(COLUMN) else None
            value = ours.get(means) if column is None else at(example.metadata, column)
            if value is None and column is not None and not self.is_checked:
                raise InputError(
                    f"The example '{example.id}' has no '{column}' in its metadata, which the prompt shows."
                )
            found[name] = "" if value is None else value
        return found

    def for_writing(self, text: str, example: Example) -> list[tuple[str, str]]:
        """Return the messages that ask a generator for an output; see ``generator_messages``."""
        ours = {"input": example.input, "context": example.context or ""}
        made = self.filled(text, example, ours)
        shown = {*self.variables.values()}
        images = [image for name in ("context", "input") if name in shown for image in images_of(ours[name])]
        if "input" in shown and self._sends_messages and chat_of(example.input):
            return self._with_conversation(text, example)
        if "input" in shown:
            return [*made[:-1], (made[-1][0], with_images(made[-1][1], images))]
        left = example.context if example.context and "context" not in shown else ""
        begins = self.found.is_text or made[0][0] == "system"
        (_, system), *asked = sent_after(made[0][1] if begins else "", left, example.input)
        return [*([("system", system.lstrip("\n"))] if system else []), *made[begins:], *asked]

    @property
    def _sends_messages(self) -> bool:
        return self.parts[-1].as_messages

    def _with_conversation(self, text: str, example: Example) -> list[tuple[str, str]]:
        """Return the prompt's messages, then those of the input. In the prompt's last message, the text before the
        input's variable goes before the user's last words, as a context does; the text after it goes to the end."""
        made = self.filled(text, example, {"input": _INPUT, "context": example.context or ""})
        before, _, after = made[-1][1].partition(_INPUT)
        context: str = before.strip()
        if context and images_of(example.context):
            context = StructuredText(context, getattr(example.context, "original", None))
        begins = made[0][0] == "system"
        (_, system), *asked = sent_after(made[0][1] if begins else "", context, example.input)
        sent = [*([("system", system.lstrip("\n"))] if system else []), *made[begins:-1], *asked]
        return put_after(sent, after.strip()) if after.strip() else sent

    def filled(self, text: str, example: Example, ours: Mapping[str, str]) -> list[tuple[str, str]]:
        """Return the messages with the texts of an example put in as they are; see ``judge_messages``."""
        return self._rendered(text, example, self.values(example, ours))

    def for_judging(self, text: str, example: Example, texts: Mapping[str, str], shown: str, cases: str) -> Framing:
        """Lay out an example for a judge; see ``frame``.

        Args:
            text: The prompt's text.
            example: The example whose output is judged.
            texts: The texts of the example that the judge may see, by field.
            shown: The user message, if no variable stands for the output or the question.
            cases: Judged examples, at the end of the system message or else first; may be empty.
        """
        ours = {name: fence(each) if each or name == "output" else "" for name, each in texts.items()}
        values = self.values(example, ours | {"question": _QUESTION})
        for name, means in self.variables.items():
            if means.startswith(COLUMN) and isinstance(values[name], str) and "\n" in values[name]:
                values[name] = fence(values[name])  # one line may stand within a sentence
        made = self._rendered(text, example, values)
        if not {"output", "question"} & {*self.variables.values()}:
            made = [("system", made[0][1]) if self.found.is_text else made[0], *made[1:], ("user", shown)]
        if made[-1][0] == "system":  # the system message shows the texts itself
            made = [*made, ("user", "")]
        system = [content for role, content in made if role == "system"]
        turns = made[len(system) : -1]
        if cases and system:
            system.append(cases)
        before, _, after = made[-1][1].partition(_QUESTION)
        if any(_QUESTION in content for _, content in made[:-1]) or _QUESTION in after:
            raise InputError("The question of a judge stands once, in the last message of its prompt.")
        if "question" not in self.variables.values() and made[-1][1] and made[-1][1] is not shown:
            before += "\n\n"
        if cases and not system:
            before = f"{cases}\n\n{before}"
        pairs = tuple((turns[place][1], turns[place + 1][1]) for place in range(0, len(turns) - 1, 2))
        return Framing("\n\n".join(system) if system else None, before, after, turns=pairs)

    def _rendered(self, text: str, example: Example, values: Mapping[str, Any]) -> list[tuple[str, str]]:
        try:
            return self.messages(text, values)
        except ValueError as error:
            raise InputError(f"The prompt, with the example '{example.id}': {error}") from None

    @property
    def columns(self) -> list[str]:
        """The columns that the prompt shows, each once."""
        named = [each for each in self.variables.values() if each.startswith(COLUMN)]
        return list(dict.fromkeys(each.removeprefix(COLUMN) for each in named))

    def exported(self, text: str) -> list[tuple[str, str]]:
        """Return the messages with our placeholders in single braces; ``{column_1}`` is the second of :attr:`columns`.
        A single text that shows no example becomes the system message. Raises InputError if the prompt needs Jinja."""
        given = {name: each.removeprefix(GIVEN) for name, each in self.variables.items() if each.startswith(GIVEN)}
        named = {f"{COLUMN}{path}": f"column_{place}" for place, path in enumerate(self.columns)}
        means = {name: named.get(each, each) for name, each in self.variables.items() if name not in given}
        try:
            contents = [
                literal(each) if part.is_literal else in_our_braces(each, self.syntax, means, given)
                for part, each in zip(self.parts, self.texts(text), strict=True)
            ]
        except ValueError as error:
            raise InputError(f"This judge cannot be exported: {error}.") from None
        if self.found.is_text and not {"output", "question"} & {*self.variables.values()}:
            return [("system", contents[0])]
        return [(part.role, each) for part, each in zip(self.parts, contents, strict=True)]

    def check_order(self, where: str, *, judges: bool) -> None:
        """Raise InputError if the messages are in an order in which no model can be asked."""
        roles = [part.role for part in self.parts if not part.goes_on]
        if self.found.is_text:
            return
        shows = bool(({"output", "question"} if judges else {"input"}) & {*self.variables.values()})
        if shows and roles[-1] != "user" and not (judges and roles[-1] == "system"):
            raise InputError(f"{where}: the last message must be a user's, which the model answers.")
        if not shows and roles[-1] == "user":
            wanted = "output" if judges else "input"
            raise InputError(
                f"{where}: no variable stands for the {wanted}. Write {self.spelled(wanted)} into the user's message, or "
                f"say which variable it is: --variable NAME={wanted}"
            )
        if judges:
            asked = [role for role in roles if role != "system"]
            turns = asked[:-1] if shows and roles[-1] == "user" else asked
            if roles[: len(roles) - len(asked)] != ["system"] * (len(roles) - len(asked)) or any(
                role != ("assistant" if place % 2 else "user") for place, role in enumerate(turns)
            ):
                raise InputError(
                    f"{where}: a judge's messages are the system's first, then cases of user and assistant in turn, then a "
                    "user's message."
                )


def form_of_record(source: str, record: FormRecord, where: str) -> PromptForm:
    """Make the form of a file from its record. Raises InputError if the file does not match the record."""
    if record.kind is None:
        whole = whole_file(source)
        found: Found | None = one_text("text", whole)
    else:
        found = find_messages(read_document(source, record.kind, where), where, record.named)
    if found is None:
        raise InputError(f"{where}: damaged, or not written by askance: there are no messages in it.")
    return PromptForm(source, record.kind, found, record.syntax, record.variables, named=record.named)


_INPUT = "\ue000input\ue000"
"""Holds the place of a conversation while values are put in."""
_QUESTION = "\ue000question\ue000"
"""Holds the place of the question while values are put in."""


def _syntax_of(texts: Sequence[str], ours: Collection[str]) -> SyntaxName | None:
    try:
        return syntax_of("\n".join(texts), ours, "")
    except InputError:
        return None


def _in_words(means: str) -> str:
    if means.startswith(GIVEN):
        return f"the text {means.removeprefix(GIVEN)!r:.40}"
    return f"the column '{means.removeprefix(COLUMN)}'" if means.startswith(COLUMN) else f"the {means}"
