"""A prompt as text: its hash, placeholders and protected parts, the edits it allows, and how an example is put in.

A judge's prompt shows the output; a generator's prompt, P_G (BinEval §3.4), may not.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from itertools import accumulate
from pathlib import Path
from typing import Any

from .checklist import TEXTS, Sees
from .conversations.chat import images_of, seen_of, sent_after, with_images
from .errors import InputError, did_you_mean
from .examples import Example
from .formats.binding import UNBOUND, Binding, ReadsExamples, binding_of, refuse_unused
from .formats.detection import form_in, form_of
from .formats.form import COLUMN, FIELDS, GIVEN, FormRecord, PromptForm, form_of_record
from .formats.form import Framing as Framing
from .formats.plain_text import (
    OTHER_TEXTS,
    answer_format,
    is_marked_well,
    orders_json,
    orders_yes_or_no,
    without_other_texts,
)
from .formats.variables import as_written
from .lessons import Edit
from .rows import column
from .shown_examples import Shows, shown_text
from .templates import FencedText, render, template
from .text import BRACES, fence, fill, placeholders_of, texts_end_at
from .text_files import path_of

logger = logging.getLogger(__name__)

PLACEHOLDERS = FIELDS
OURS = frozenset(PLACEHOLDERS)
GENERATOR_PLACEHOLDERS = ("input", "context")

_NOT_FOR_A_GENERATOR = {
    "output": "the output is what the generator is to write",
    "question": "questions are put to the judge, not to the generator",
    "reference": "a generator that is shown the reference answer has nothing left to do",
}

_PROTECTED = re.compile(r"<!-- protect -->(.*?)<!-- /protect -->", re.DOTALL)


class EditRefusedError(ValueError):
    """An edit may not be applied; the message is the reason."""


@dataclass(frozen=True)
class Prompt:
    """An evaluator's or generator's prompt."""

    text: str
    shown: Shows | None = None
    """Chooses the judged examples that a judge sees before each output; they are not part of the text."""
    form: PromptForm | None = None
    """The file that the prompt came from, and the meaning of its variables; None: plain text with our placeholders."""

    @classmethod
    def of_messages(cls, messages: Iterable[Mapping[str, Any]]) -> Prompt:
        """Make a prompt of chat messages (``role``, ``content``), with variables as in a file of messages. Raises
        InputError as :meth:`of_file`."""
        return cls.of_file(json.dumps(list(messages), ensure_ascii=False, indent=2), ".json", "the prompt")

    @classmethod
    def of_file(cls, text: str, suffix: str, name: str) -> Prompt:
        """Make a prompt from the text of its file, with unbound variables. Raises InputError if it cannot be read."""
        form = form_of(text, name, suffix, FIELDS[:4])
        return cls(form.text, form=form)

    @cached_property
    def hash(self) -> str:
        """First 16 hexadecimal digits of a SHA-256. It covers the text, the shown examples if any, and the meaning of
        the variables if they are not our own placeholders."""
        identity = self.text if self.shown is None else f"{self.text}\0{self.shown.record.model_dump_json()}"
        if self.foreign is not None:
            identity += f"\0{self.foreign.identity}"
        return sha256(identity.encode()).hexdigest()[:16]

    @cached_property
    def placeholders(self) -> list[str]:
        """The fields that the variables stand for, by our names, in order, each once; a column is ``metadata.NAME``.

        In plain text, a placeholder is a name in single braces; ``{{name}}`` is not one.
        """
        return list(dict.fromkeys(self._placeholders))

    @cached_property
    def protected(self) -> list[str]:
        """Texts that no edit may touch: those between ``<!-- protect -->`` and ``<!-- /protect -->``, in order, then
        the :attr:`fixed` spans."""
        return [*_PROTECTED.findall(self.text), *(self.text[start:end] for start, end in self.fixed)]

    @cached_property
    def fixed(self) -> list[tuple[int, int]]:
        """Spans (start, end) that no edit may touch; empty for plain text. See :meth:`PromptForm.fixed`."""
        return [] if self.foreign is None else self.foreign.fixed(self.text)

    @property
    def foreign(self) -> PromptForm | None:
        """The form of a prompt that is not plain text with our own placeholders; None for plain text."""
        return None if self.form is None or self.form.is_plain else self.form

    @cached_property
    def file_text(self) -> str:
        """The content of the prompt's file, in its original format."""
        return self.text if self.form is None else self.form.written(self.text)

    @property
    def suffix(self) -> str:
        """The suffix of the prompt's file."""
        return ".md" if self.form is None else self.form.suffix

    def as_written(self, text: str, kept: Collection[str] = PLACEHOLDERS) -> str:
        """Escape a text for the syntax of this prompt; names of ``kept`` in braces stay placeholders."""
        if self.foreign is None:
            return as_written(text, "braces", kept)
        return as_written(text, self.foreign.syntax, list(self.foreign.variables) if kept else [])

    @cached_property
    def answer_format(self) -> list[str]:
        """Sentences that say how to answer (both "yes" and "no", or JSON)."""
        return answer_format(self.text)

    @cached_property
    def asks_yes_or_no(self) -> bool:
        """Whether the text before ``{question}`` already says literally to answer yes or no.

        False for a prompt that says anywhere to answer in JSON.
        """
        parts = self.around_question
        return parts is not None and not orders_json(self.text) and orders_yes_or_no(parts[0])

    def asks_for(self, yes: str, no: str) -> bool:
        """Whether the text before ``{question}`` already says to answer with these words. False if the prompt mentions
        JSON."""
        parts, either = self.around_question, rf"(?:{re.escape(yes)}|{re.escape(no)})"
        asked = rf"(?<!\w){either}\W+(?:\w+\W+)?{either}(?!\w)"
        return bool(parts and re.search(asked, parts[0], re.IGNORECASE) and not re.search(r"\bJSON\b", self.text))

    @cached_property
    def around_question(self) -> tuple[str, str] | None:
        """The text before and after ``{question}``; None without that placeholder."""
        if self.foreign is not None:
            return self.foreign.around_question(self.text)
        place = next((match for match in BRACES.finditer(self.text) if match[2] == "question"), None)
        return None if place is None else (self.text[: place.start()], self.text[place.end() :])

    @cached_property
    def of_output_alone(self) -> Prompt:
        """The prompt without the paragraphs that show the input, the context or the reference.

        In a paragraph that also shows the output or the question, only the lines that show the other texts are removed.
        If both stand in one line, the prompt stays unchanged. A heading (``News:``, ``# News``, ``**News**``) is
        removed with the text below it, and so are the tags around that text.
        """
        if self.foreign is not None:
            shows_others = not OTHER_TEXTS.isdisjoint(self.placeholders) and not self.foreign.output_alone
            return replace(self, form=replace(self.foreign, output_alone=True)) if shows_others else self
        left = without_other_texts(self.text)
        return self if left == self.text else replace(self, text=left)

    def shows(self, name: str) -> bool:
        """Whether the prompt shows a judge this text of an example; a prompt without placeholders shows all texts."""
        return name in self.placeholders or not OURS.intersection(self.placeholders)

    def can_show_less_of(self, examples: Iterable[Example]) -> bool:
        """Whether a judge sees more of the examples than their outputs, and could see the outputs alone."""
        shows_more = not OURS.intersection(self.placeholders) or self.of_output_alone is not self
        return shows_more and any(each.has_more_than_output for each in examples)

    @property
    def _placeholders(self) -> list[str]:
        if self.form is None:
            return placeholders_of(self.text)
        return [self.form.means(name) for name in self.form.variables_in(self.text)]

    def check(self, name: str = "the prompt") -> Prompt:
        """Return this prompt if a judge can use it. Raises InputError if it is empty, has an unknown placeholder or an
        unclosed protected part, or has placeholders but does not show the output."""
        self.check_text(PLACEHOLDERS, name)
        if OURS.intersection(self.placeholders) and "output" not in self.placeholders:
            raise InputError(f"{name}: the prompt has placeholders but no {{output}}, so nothing would be judged.")
        if self._placeholders.count("question") > 1:
            raise InputError(f"{name}: {{question}} may occur once; it stands there more often.")
        if self.form is not None:
            self.form.check_order(name, judges=True)
        return self

    def check_text(self, known: Sequence[str], name: str) -> None:
        """Raise InputError if the prompt is empty, has a placeholder that is not ``known``, or an unclosed protected
        part."""
        if not self.text.strip():
            raise InputError(f"{name}: the prompt is empty.")
        for placeholder in self.placeholders:
            if placeholder not in known and not placeholder.startswith((COLUMN, GIVEN)):
                listed = ", ".join("{" + each + "}" for each in known)
                raise InputError(
                    f"{name}: '{{{placeholder}}}' is not a known placeholder (known: {listed})."
                    f"{did_you_mean(placeholder, known)} Write {{{{{placeholder}}}}} for the literal text."
                )
        if not is_marked_well(self.text):
            raise InputError(f"{name}: a '<!-- protect -->' has no '<!-- /protect -->' (or the other way round).")

    def apply(self, edit: Edit) -> Prompt:
        """Replace ``edit.old`` by ``edit.new``. Raises EditRefusedError if ``old`` does not occur exactly once, nothing
        would change or be left, a placeholder would be added or lost, a protected part or the answer format would be
        changed, or the file would lose its form (a line between messages, its syntax)."""
        start = self.text.find(edit.old)
        if start == -1:
            raise EditRefusedError("the text to replace does not occur in the prompt")
        if start != self.text.rfind(edit.old):
            raise EditRefusedError("the text to replace occurs more than once in the prompt")
        changed = replace(self, text=self.text[:start] + edit.new + self.text[start + len(edit.old) :])
        if self.form is not None and (problem := self.form.problem_of(changed.text)):
            raise EditRefusedError(problem)
        if changed.text == self.text:
            raise EditRefusedError("it changes nothing")
        if not changed.text.strip():
            raise EditRefusedError("nothing would be left of the prompt")
        if sorted(changed._placeholders) != sorted(self._placeholders):
            raise EditRefusedError("it adds or removes a placeholder")
        if changed.protected != self.protected or (is_marked_well(self.text) and not is_marked_well(changed.text)):
            raise EditRefusedError("it touches a protected part")
        lost = [sentence for sentence in self.answer_format if sentence not in changed.text]
        if lost:
            raise EditRefusedError(f"it changes the answer format ({lost[0]!r})")
        return changed


def check_length(prompt: Prompt, max_chars: int | None) -> Prompt:
    """Return the prompt. Raises EditRefusedError if it is longer than ``max_chars``."""
    if max_chars is not None and len(prompt.text) > max_chars:
        raise EditRefusedError(f"the prompt would have {len(prompt.text)} characters, more than {max_chars}")
    return prompt


def load_prompt(source: str | Path | Prompt, binding: Binding = UNBOUND) -> Prompt:
    """Read and check a judge's prompt file, or check a :class:`Prompt`. ``binding`` says what its variables may stand
    for. Raises InputError if the file cannot be read or the prompt cannot be used."""
    prompt, name = read_prompt(source, binding)
    return prompt.check(name)


def bound_prompts(
    prompts: Sequence[str | Path | Prompt], examples: Sequence[Example] | None, settings: ReadsExamples | None
) -> list[Prompt]:
    """Load judges' prompts and bind their variables to the examples; ``examples`` is None before they are there. Raises
    InputError if a file cannot be read, a prompt cannot be used, or no prompt has a variable that the settings name."""
    binding = binding_of(examples, settings)
    found = [load_prompt(each, binding) for each in prompts]
    refuse_unused(binding.given, [(each.form, each.placeholders) for each in found])
    return found


def kept_prompt(file_text: str, record: FormRecord | None, where: str) -> Prompt:
    """Make a prompt from its file and the record of its form; without a record, the file is the prompt's text. Raises
    InputError if the file does not match the record."""
    if record is None:
        return Prompt(file_text)
    form = form_of_record(file_text, record, where)
    return Prompt(form.text, form=form)


def read_prompt(source: str | Path | Prompt, binding: Binding) -> tuple[Prompt, str]:
    """Return a prompt, not yet checked, and its name in errors. Raises InputError if the file cannot be read, or a
    variable stands for nothing."""
    if isinstance(source, Prompt):
        form = source.form
        if form is None and (binding.given or not (binding.asks or binding.writes)):  # no earlier run has either
            form = form_of(source.text, "the prompt", "", FIELDS if binding.asks else FIELDS[:4])
            source = replace(source, text=form.text)
        if form is not None:  # the meanings that the user gives now win over the detected ones
            binding = replace(binding, given={**form.variables, **binding.given})
            source = _bound(replace(source, form=form), "the prompt", binding)
        return source, "the prompt"
    return _told(*form_in(path_of(source, "prompt"), FIELDS if binding.asks else FIELDS[:4]), binding)


def own_prompt(source: str | Path | Prompt) -> tuple[Prompt, str]:
    """Return a prompt that asks its own question, with unbound variables, and its name in errors. Raises InputError if
    its file cannot be read."""
    if isinstance(source, Prompt):
        return source, "the prompt"
    form, name = form_in(path_of(source, "prompt"), FIELDS[:4])
    return Prompt(form.text, form=None if form.is_plain else form), name


def parse_prompt(text: str, suffix: str, name: str, binding: Binding, named: str | None = None) -> Prompt:
    """Make a prompt from the text of a file, not yet checked; ``name`` is used in errors, ``named`` is a predictor of a
    DSPy program. Raises InputError if the text cannot be read, or a variable stands for nothing."""
    return _told(form_of(text, name, suffix, FIELDS if binding.asks else FIELDS[:4], named), name, binding)[0]


def _told(form: PromptForm, name: str, binding: Binding) -> tuple[Prompt, str]:
    """Bind the prompt of a detected form and log the form. Returns the prompt and the name of its file."""
    prompt = _bound(Prompt(form.text, form=form), name, binding)
    if prompt.foreign is not None:
        logger.warning("%s: %s.", name, prompt.foreign.said)
    return prompt, name


def _bound(prompt: Prompt, name: str, binding: Binding) -> Prompt:
    """Bind the prompt's variables. Drop the form if it is plain and the text equals the file byte for byte."""
    assert prompt.form is not None
    form = binding.bound(prompt.form, prompt.text, name)
    prompt = replace(prompt, form=None if form.is_plain and form.source == prompt.text else form)
    if form.syntax == "jinja" and binding.examples is not None:
        for example in binding.examples:  # a template may fail for one of them alone
            (generator_messages if binding.writes else frame)(prompt, example)
    return prompt


def frame(prompt: Prompt, example: Example, sees: Sees = "all") -> Framing:
    """Lay out one example for judging. All its questions share the text before the question, so that it is cached.

    If a question ``sees`` the output alone, its last reply or its calls of tools, nothing else of the example is shown.
    For a question that is answered with a quote, the prompt is left out too, because it says to answer yes or no. For a
    question about the output and one other text, only these two are shown, without the prompt; the caller has cut both
    to their related sentences.

    A prompt without placeholders is the system message, and the fenced example follows in the user message. Any other
    prompt is the user message, with the fenced texts put in. Shown cases stand at the end of the system message, or
    else before everything, so that fixed cases belong to a beginning that all outputs share.
    """
    if sees == "quote":
        return quoting(example.output or "")
    if sees in TEXTS:
        return beside(example, sees)
    cases = "" if prompt.shown is None else shown_text(prompt.shown.cases_for(example), sees)
    texts = {
        "input": example.input,
        "context": example.context or "",
        "output": seen_of(example.output or "", example.input, sees),
        "reference": example.reference or "",
    }
    if sees != "all" or (prompt.form is not None and prompt.form.output_alone):
        prompt, texts = prompt.of_output_alone, {name: text if name == "output" else "" for name, text in texts.items()}
    if not prompt.placeholders or prompt.foreign is not None:
        shown = [name for name in ("context", "input", "reference") if texts[name]]
        shown += ["output"] if example.output is not None else []
        images = tuple(image for name in shown for image in images_of(texts[name]))
        parts = [f"{name.capitalize()}:\n{fence(texts[name])}\n" for name in shown]
        if prompt.foreign is not None:
            laid = prompt.foreign.for_judging(prompt.text, example, texts, "\n".join(parts) + "\n", cases)
            seen = [name for name in shown if name in prompt.placeholders] if "output" in prompt.placeholders else shown
            return replace(laid, images=tuple(each for name in seen for each in images_of(texts[name])))
        system = "\n\n".join(part for part in (fill(prompt.text, {}), cases) if part)
        ends = tuple(accumulate((len(part) + 1 for part in parts), initial=0))
        return Framing(system=system, before="\n".join(parts) + "\n", after="", ends=ends, images=images)
    start = f"{cases}\n\n" if cases else ""
    fenced = {name: fence(texts[name]) for name in prompt.placeholders if name in texts}
    before, after = prompt.around_question or (prompt.text + "\n\n", "")
    ends = tuple(len(start) + place for place in texts_end_at(before, fenced))
    images = tuple(image for name in fenced for image in images_of(texts[name]))
    before, after = start + fill(before, fenced), fill(after, fenced)
    return Framing(system=None, before=before, after=after, ends=ends, images=images)


_LAMP = "Dear Mr Ross, thank you for your order. The red lamp is on its way."
_SHOP = "Our shop in Leeds is closed for repairs, we are sorry to say."
QUOTED_CASES = (
    (_LAMP, "Does the text name a colour?", "red"),
    (_LAMP, "Does the text say that somebody is angry?", "none"),
    (_SHOP, "Does the text apologise?", "we are sorry"),
    (_SHOP, "Does the text name a price?", "none"),
)
"""Cases (text, question, answer) that show a judge how to answer with a quote, or with ``none``."""


def quoting(output: str) -> Framing:
    """Lay out an output for a question that is answered with a quote: example cases, then the output."""
    turns = tuple((f"{_quoted(text)}Question: {question}", answer) for text, question, answer in QUOTED_CASES)
    before = _quoted(output)
    return Framing(render("quote", format=template("answer_quote")), before, "", (0, len(before)), turns)


def beside(example: Example, sees: Sees) -> Framing:
    """Lay out an output for a question about its relation to the text that it ``sees``; that text comes first."""
    texts = {sees.capitalize(): getattr(example, sees) or "", "Output": example.output or ""}
    parts = [f"{name}:\n{fence(text)}\n\n" for name, text in texts.items()]
    ends = tuple(accumulate(map(len, parts), initial=0))
    return Framing(template("beside"), "".join(parts), "", ends)


def _quoted(text: str) -> str:
    return f"Text:\n{fence(text)}\n\n"


def load_generator_prompt(source: str | Path | Prompt, binding: Binding = UNBOUND) -> Prompt:
    """Read and check a generator's prompt file, or check a :class:`Prompt`.

    ``binding`` says what its variables may stand for. Raises InputError if the file cannot be read, or the prompt is
    empty, has an unknown placeholder, one that is not for a generator, or an unclosed protected part, or shows the
    context but not the input.
    """
    prompt, name = read_prompt(source, replace(binding, asks=False, writes=True))
    if not prompt.text.strip():
        raise InputError(
            f"{name}: the prompt is empty, so there is nothing to improve. To start from nothing, write one line that "
            "says no more than the input does, such as: Follow the instructions."
        )
    for placeholder, reason in _NOT_FOR_A_GENERATOR.items():
        if placeholder in prompt.placeholders:
            shown, literal_text = f"{{{placeholder}}}", f"; write {{{{{placeholder}}}}} for the literal text"
            if prompt.form is not None:
                shown, literal_text = prompt.form.spelled_for(placeholder), ""
            raise InputError(
                f"{name}: {shown} cannot stand in a generator's prompt, because {reason}. It may have "
                f"{{input}} and {{context}}{literal_text}."
            )
    prompt.check_text(GENERATOR_PLACEHOLDERS, name)
    if prompt.form is not None:
        prompt.form.check_order(name, judges=False)
    if "context" in prompt.placeholders and "input" not in prompt.placeholders:
        raise InputError(
            f"{name}: the prompt has {{context}} but no {{input}}, so the generator would not see its input."
        )
    return prompt


def render_example(example: Example) -> FencedText:
    """Return all texts of an example, each fenced, as a judge sees them."""
    return FencedText(frame(Prompt(""), example).before.strip())


def generator_messages(prompt: Prompt, example: Example) -> list[tuple[str, str]]:
    """Return the messages, as (role, content), that ask a generator for an output.

    Input and context are not fenced: a judge has to look at them, but a generator has to follow them. A prompt without
    placeholders is the system message, and the user message is the context, if any, and then the input. If the input is
    a conversation, its messages replace the user message, and the context stands before the user's last one. A prompt
    with placeholders is the user message, with both texts put in; a conversation is put in as a transcript. The
    reference, human scores and an existing output are never shown.
    """
    context = example.context or ""
    if prompt.foreign is not None:
        return prompt.foreign.for_writing(prompt.text, example)
    if prompt.placeholders:
        texts = {"input": example.input, "context": context}
        images = [image for name in prompt.placeholders if name in texts for image in images_of(texts[name])]
        return [("user", with_images(fill(prompt.text, texts), images))]
    return sent_after(fill(prompt.text, {}), context, example.input)


SHOWN = ("context", "input", "reference")
"""Texts that a neutral prompt shows before the output, in this order."""


def default_prompt(examples: Sequence[Example]) -> Prompt:
    """Return a neutral prompt that shows the texts that the examples have, then says how to judge, then asks.

    The example comes before the guidance. All prompt versions then share the example as their prefix, which a prompt
    cache keeps, and a small model reads the guidance just before the question.
    """
    return prompt_showing([name for name in SHOWN if any(column(examples, name))])


def prompt_showing(fields: Collection[str]) -> Prompt:
    """Return the neutral prompt for examples that have these fields and an output."""
    shown = [name for name in SHOWN if name in fields]
    parts = [f"{name.capitalize()}:\n{{{name}}}" for name in (*shown, "output")]
    return Prompt("\n\n".join([*parts, template("evaluator"), "{question}"]) + "\n")
