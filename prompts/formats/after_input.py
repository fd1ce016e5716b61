"""Adds a text to a prompt after the input: the last words that a generator reads before it writes.

A model follows words there that it overlooks in the system message. Measured with a 0.5B model: with the same words
after the input, outputs kept .12 more of the requirements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..conversations.chat import chat_of
from ..errors import InputError
from ..examples import Example
from ..prompt import EditRefusedError, Prompt, load_generator_prompt
from ..rows import column
from ..text import fill, literal
from .binding import Binding
from .documents import AS_MESSAGES
from .form import PromptForm
from .several import sections
from .variables import SyntaxName, literally


def after_input(prompt: Prompt, text: str, examples: Sequence[Example]) -> Prompt:
    """Add a text after the input of a prompt; the prompt's own text and its format stay as they are.

    A prompt whose variables show the input gets the text at its end. Any other prompt becomes messages: the old prompt
    as the system message, and a user message with context, input and text, as the generator is asked now. Braces in
    the text are only text. ``examples`` tell whether there is a context, and whether inputs are conversations. Raises
    EditRefusedError, whose message is the reason, if the format cannot hold the text.
    """
    if sections(prompt.text):
        raise EditRefusedError("a program's prompts say themselves where the input stands")
    added, form = None, prompt.foreign
    if "input" in prompt.placeholders:
        plain = replace(prompt, text=_at_end(prompt.text, literal(text)))
        added = plain if form is None else _in_last_message(prompt, form, text)
    made = _as_messages(prompt, text, examples) if added is None else added
    if made.form is not None and (problem := made.form.problem_of(made.text)):
        raise EditRefusedError(problem)
    kept = made.protected[: len(prompt.protected)] == prompt.protected
    if added is not None and (made.placeholders != prompt.placeholders or not kept):
        raise EditRefusedError("it adds a placeholder or touches a protected part")
    return made


def _at_end(prompt: str, text: str) -> str:
    """Add the text as the last paragraph, but before a last line that announces the output ("Summary:")."""
    body = prompt.rstrip()
    before, _, label = body.rpartition("\n")
    if label.endswith(":") and "{" not in label and "-->" not in label and "{" in before:
        return f"{before.rstrip()}\n\n{text}\n\n{label}{prompt[len(body) :]}"
    return f"{body}\n\n{text}{prompt[len(body) :]}"


def _in_last_message(prompt: Prompt, form: PromptForm, text: str) -> Prompt:
    last, written = form.parts[-1], form.texts(prompt.text)[-1]
    if last.place is None:
        raise EditRefusedError("its last message stands nowhere in its file as such")
    new = _at_end(written, text if last.is_literal else _literally(text, form.syntax))
    return replace(prompt, text=prompt.text[: len(prompt.text) - len(written)] + new)


def _as_messages(prompt: Prompt, text: str, examples: Sequence[Example]) -> Prompt:
    """Turn the prompt into messages, with a user message that shows the context and the input explicitly."""
    form, means = prompt.foreign, {}
    syntax: SyntaxName = "braces"
    messages: list[dict[str, Any]] = [{"role": "system", "content": prompt.text}]
    if form is not None:
        if form.found.format not in ("text", "messages") or any(part.is_literal for part in form.parts):
            raise EditRefusedError(
                f"a prompt of {form.found.format} that does not show the input has no place after it"
            )
        roles = ["system"] if form.found.is_text else [part.role for part in form.parts]
        texts = zip(roles, form.texts(prompt.text), strict=True)
        messages = [{"role": role, "content": each} for role, each in texts]
        syntax, means = form.syntax, dict(form.variables)
        if {"input", "context"} & means.keys():
            raise EditRefusedError("its variable 'input' or 'context' stands for something else")
    contexts = [bool(each) for each in column(examples, "context")]
    shown = {"input": "input"}
    if any(contexts) and "context" not in means.values():
        shown["context"] = "context"
        if not all(contexts) and syntax == "braces" and not means:  # only Jinja can say "if there is one"
            syntax, messages[0]["content"] = "jinja", _literally(fill(prompt.text, {}), "jinja")
        elif not all(contexts) and syntax != "jinja":
            raise EditRefusedError("some examples have a context and some have none, which its syntax cannot say")
    asked = _spelled("input", syntax)
    if "context" in shown:
        context = f"{_spelled('context', syntax)}\n\n"
        asked = (context if all(contexts) else f"{{% if context %}}{context}{{% endif %}}") + asked
    last = {"role": "user", "content": f"{asked}\n\n{_literally(text, syntax)}"}
    if any(chat_of(each) for each in column(examples, "input")):
        last |= AS_MESSAGES
    try:
        made = Prompt.of_messages([*messages, last])
        return load_generator_prompt(made, Binding(examples, {**means, **shown}))
    except InputError as error:
        raise EditRefusedError(str(error)) from None


def _spelled(name: str, syntax: SyntaxName) -> str:
    return f"{{{name}}}" if syntax in ("braces", "f-string") else f"{{{{ {name} }}}}"


def _literally(text: str, syntax: SyntaxName) -> str:
    try:
        return literally(text, syntax)
    except ValueError as error:
        raise EditRefusedError(str(error)) from None
