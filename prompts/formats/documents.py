"""The messages of a prompt file, in our own formats and in those of other tools.

The tools are promptfoo, LangSmith, Langfuse, MLflow and DSPy. Each reader finds the messages in the value of a file, or
returns None if the file has another format.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..errors import InputError, did_you_mean
from .spelling import Place, Text
from .variables import SyntaxName, double_or_jinja

AS_MESSAGES = {"input": "messages"}
"""Marks a prompt's last message: an input that is a conversation is sent as its messages, the other text after it."""
ROLES = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "model": "assistant",
}
"""Role in a file to the role that is sent to models."""


@dataclass(frozen=True)
class MessageText:
    """The text of a message, or of a part of it."""

    role: str
    """The role that is sent to models: system, user or assistant."""
    text: str
    place: Place | None = None
    """The place of the text in the file; None if it does not stand there literally, or several messages share it."""
    goes_on: bool = False
    """Whether the text belongs to the same message as the text before it."""
    is_literal: bool = False
    """Whether braces in the text are only text."""
    as_messages: bool = False
    """Whether an input that is a conversation is sent message by message, not as a transcript in place of its
    variable."""


@dataclass(frozen=True)
class Found:
    """The messages of a file."""

    format: str
    """The name of the file's format."""
    parts: tuple[MessageText, ...]
    syntax: SyntaxName | None = None
    """The syntax of the variables, if the file names it."""
    is_text: bool = False
    """Whether the prompt is one text outside any message: it may be sent as the system message, before the example."""
    given: Mapping[str, str] = field(default_factory=dict)
    """Variable to the text that the file itself gives it."""
    elsewhere: str | None = None
    """Another file that holds the prompt."""


def message(role: object, content: object, where: str) -> list[MessageText]:
    """Return the parts of one message. Raises InputError if its role or content cannot be used."""
    known = ROLES.get(str(role).lower())
    if known is None:
        raise InputError(
            f"{where}, field 'role': {str(role)!r} cannot be used; a prompt has messages of the roles system, user and "
            f"assistant.{did_you_mean(str(role), ROLES)}"
        )
    if isinstance(content, Text):
        return [MessageText(known, content, content.place)]
    if isinstance(content, list) and content:
        found = []
        for number, each in enumerate(content, 1):
            text = each.get("text") if isinstance(each, Mapping) else each
            if not isinstance(text, Text):
                raise InputError(
                    f"{where}, field 'content', part {number}: a text is needed; a prompt has no other parts."
                )
            found.append(MessageText(known, text, text.place, goes_on=number > 1))
        return found
    raise InputError(f"{where}, field 'content': a text is needed, not {kind_of(content)}.")


def kind_of(value: object) -> str:
    """Describe a value for errors."""
    if value is None:
        return "nothing"
    return "an object" if isinstance(value, Mapping) else "an empty list" if value == [] else f"{value!r:.40}"


def message_list(messages: Any, where: str) -> tuple[MessageText, ...]:
    """Return the texts of a list of messages. A text that YAML aliases share gets no place, so no edit may touch it."""
    parts: list[MessageText] = []
    for number, entry in enumerate(messages, 1):
        place = f"{where}, message {number}"
        if not isinstance(entry, Mapping) or "role" not in entry:
            raise InputError(f"{place}: a message has the fields 'role' and 'content'.")
        found = message(entry["role"], entry.get("content"), place)
        as_messages = AS_MESSAGES.items() <= entry.items()
        parts += [replace(part, as_messages=True) for part in found] if as_messages else found
    places = [part.place for part in parts]
    return tuple(part if places.count(part.place) == 1 else replace(part, place=None) for part in parts)


def are_messages(value: Any) -> bool:
    """Whether a value is a list with a message in it."""
    return isinstance(value, list) and any(isinstance(each, Mapping) and "role" in each for each in value)


def messages_of(document: Any, where: str) -> Found | None:
    """Read a list of messages, an object with a list under ``messages``, or texts by their roles; None for others."""
    if are_messages(document):
        return Found("messages", message_list(document, where))
    if isinstance(document, Mapping) and are_messages(document.get("messages")):
        return Found("messages", message_list(document["messages"], f"{where}, field 'messages'"))
    if isinstance(document, Mapping) and {"system", "user"} & document.keys():
        parts: list[MessageText] = []
        for role, text in document.items():  # others, such as a model, are no messages
            if role in ("system", "user", "assistant"):
                if not isinstance(text, Text):
                    raise InputError(f"{where}, field '{role}': a text is needed, not {kind_of(text)}.")
                parts += message(role, text, where)
        return Found("messages", tuple(parts))
    return None


def one_text(format_: str, text: Text, syntax: SyntaxName | None = None) -> Found:
    """Make the result for a prompt that is one text."""
    return Found(format_, (MessageText("user", text, text.place),), syntax, is_text=True)


def find_messages(document: Any, where: str, named: str | None = None) -> Found | None:
    """Find the messages in a file's value; None if its format is not known. ``named`` is a predictor of a DSPy program.
    Raises InputError, which names message and field, if a message cannot be used."""
    found = dspy_program(document, where, named)
    if found is None and named is not None:
        raise InputError(f"{where}: '{named}' names a predictor, and this is no program of DSPy.")
    for read in READERS:
        found = found or read(document, where)
    if found is not None and found.elsewhere is None and not any(part.place for part in found.parts):
        raise InputError(f"{where}: there is no message with a text in it.")
    return found


def langfuse_prompt(document: Any, where: str) -> Found | None:
    """Read a prompt of Langfuse: its type is chat or text, its variables have double braces."""
    if not isinstance(document, Mapping) or document.get("type") not in ("chat", "text") or "prompt" not in document:
        return None
    prompt, place = document["prompt"], f"{where}, field 'prompt'"
    if isinstance(prompt, Text):
        return one_text("Langfuse", prompt, "double")
    if not isinstance(prompt, list):
        raise InputError(f"{place}: a text or a list of messages is needed, not {kind_of(prompt)}.")
    for number, each in enumerate(prompt, 1):
        if isinstance(each, Mapping) and each.get("type") == "placeholder":
            raise _no_messages(f"{place}, message {number}", str(each.get("name")))
    return Found("Langfuse", message_list(prompt, place), "double")


def mlflow_prompt(document: Any, where: str) -> Found | None:
    """Read a prompt of MLflow's registry: a template with variables in double braces, beside its name or version."""
    if not isinstance(document, Mapping) or "template" not in document or not {"name", "version"} & document.keys():
        return None
    template, place = document["template"], f"{where}, field 'template'"
    if isinstance(template, Text):
        return one_text("MLflow", template, double_or_jinja([template]))
    if not isinstance(template, list):
        raise InputError(f"{place}: a text or a list of messages is needed, not {kind_of(template)}.")
    parts = message_list(template, place)
    return Found("MLflow", parts, double_or_jinja([part.text for part in parts]))


def promptfoo_config(document: Any, where: str) -> Found | None:
    """Read the only prompt of a promptfooconfig: a text, or the name of a file."""
    if not isinstance(document, Mapping) or "prompts" not in document:
        return None
    if not {"providers", "targets", "tests", "description", "defaultTest"} & document.keys():
        return None
    prompts = document["prompts"]
    candidates = prompts if isinstance(prompts, list) else [prompts]
    if len(candidates) != 1:
        raise InputError(
            f"{where}, field 'prompts': there are {len(candidates)} prompts. Give the file of the one that is meant, "
            "or leave one in a copy of the configuration."
        )
    prompt = candidates[0]
    if isinstance(prompt, Mapping):
        prompt = prompt.get("raw") or prompt.get("id")
    if not isinstance(prompt, Text):
        raise InputError(f"{where}, field 'prompts': a text or file://NAME is needed, not {kind_of(prompt)}.")
    if prompt.startswith("file://"):
        return Found("promptfoo", (), elsewhere=prompt.removeprefix("file://"))
    if prompt.lstrip()[:1] in ("[", "{") and '"role"' in prompt:
        raise InputError(
            f"{where}, field 'prompts': the messages stand as JSON within a text. Put them into a file of their own "
            "(file://chat.json)."
        )
    return one_text("promptfoo", prompt, double_or_jinja([prompt]))


_LANGCHAIN = {
    "SystemMessagePromptTemplate": "system",
    "HumanMessagePromptTemplate": "user",
    "AIMessagePromptTemplate": "assistant",
    "ChatMessagePromptTemplate": "",
    "SystemMessage": "system",
    "HumanMessage": "user",
    "AIMessage": "assistant",
}
"""LangChain's classes of messages, with their roles; a chat message names its own role."""
_FORMATS: dict[str, SyntaxName] = {"f-string": "f-string", "mustache": "double", "jinja2": "jinja"}


def langsmith_prompt(document: Any, where: str) -> Found | None:
    """Read a prompt of LangSmith's hub: a serialised LangChain template, alone or under ``manifest``."""
    if isinstance(document, Mapping) and isinstance(document.get("manifest"), Mapping):
        document = document["manifest"]
    if not isinstance(document, Mapping) or "lc" not in document or not isinstance(document.get("kwargs"), Mapping):
        return None
    name, kwargs = _class_of(document), document["kwargs"]
    if name == "RunnableSequence":
        return langsmith_prompt(kwargs.get("first"), where)
    templates: list[Mapping[str, Any]] = []
    if name == "PromptTemplate":
        parts, is_text = _of_template(document, "user", where, templates), True
    elif isinstance(kwargs.get("messages"), list):
        parts, is_text = [], False
        for number, entry in enumerate(kwargs["messages"], 1):
            parts += _of_message(entry, f"{where}, message {number}", templates)
    else:
        raise InputError(f"{where}: a {name} of LangChain cannot be used; a chat prompt or a prompt template can.")
    formats = {str(entry.get("template_format", "f-string")) for entry in templates} or {"f-string"}
    if len(formats) > 1 or not formats <= _FORMATS.keys():
        listed = ", ".join(sorted(formats))
        raise InputError(f"{where}: one template_format is needed of {', '.join(_FORMATS)}, not {listed}.")
    given: dict[str, str] = {}
    for entry in (kwargs, *templates):
        given |= {key: str(value) for key, value in (entry.get("partial_variables") or {}).items()}
    return Found("LangSmith", tuple(parts), _FORMATS[formats.pop()], is_text=is_text, given=given)


def _class_of(document: Mapping[str, Any]) -> str:
    names = document.get("id")
    return str(names[-1]) if isinstance(names, list) and names else "thing without an id"


def _of_message(each: Any, where: str, templates: list[Mapping[str, Any]]) -> list[MessageText]:
    """Return the parts of a message, and add the templates that they come from to ``templates``."""
    if not isinstance(each, Mapping) or not isinstance(each.get("kwargs"), Mapping):
        raise InputError(f"{where}: a message of LangChain is needed, not {kind_of(each)}.")
    name, kwargs = _class_of(each), each["kwargs"]
    if name == "MessagesPlaceholder":
        if kwargs.get("optional"):
            return []
        raise _no_messages(where, str(kwargs.get("variable_name")))
    if name not in _LANGCHAIN:
        raise InputError(f"{where}: a {name} cannot be used.{did_you_mean(name, _LANGCHAIN)}")
    role = _LANGCHAIN[name] or str(kwargs.get("role"))
    if isinstance(kwargs.get("content"), Text):  # a fixed message without variables
        text = kwargs["content"]
        return [MessageText(role, text, text.place, is_literal=True)]
    prompt = kwargs.get("prompt")
    found: list[MessageText] = []
    for template in prompt if isinstance(prompt, list) else [prompt]:
        found += _of_template(template, role, where, templates, goes_on=bool(found))
    return found


def _of_template(
    template: Any, role: str, where: str, templates: list[Mapping[str, Any]], *, goes_on: bool = False
) -> list[MessageText]:
    kwargs = template.get("kwargs") if isinstance(template, Mapping) else None
    text = kwargs.get("template") if isinstance(kwargs, Mapping) else None
    if not isinstance(kwargs, Mapping) or not isinstance(text, Text):
        raise InputError(f"{where}, field 'prompt.kwargs.template': a text is needed, not {kind_of(text)}.")
    templates.append(kwargs)
    return [MessageText(role, text, text.place, goes_on)]


def _no_messages(where: str, name: str) -> InputError:
    return InputError(
        f"{where}: the placeholder '{name}' stands for messages, which are put in for no variable. Take it out of the file."
    )


def dspy_program(document: Any, where: str, named: str | None) -> Found | None:
    """Read a predictor of a DSPy program that was saved as JSON.

    Its instructions become the system message, its demonstrations become cases, and its last field is the output.
    """
    if not isinstance(document, Mapping):
        return None
    known = {str(name): each for name, each in document.items() if _is_predictor(each)}
    if _is_predictor(document):
        known = {"self": document}
    if not known:
        return None
    if named is None and len(known) > 1:
        example = next(iter(known))
        raise InputError(
            f"{where}: the program has several predictors ({', '.join(known)}). Name one behind the file: "
            f"{where}#{example}"
        )
    if named is not None and named not in known:
        raise InputError(f"{where}: the program has no predictor '{named}'.{did_you_mean(named, known)}")
    predictor = known[named or next(iter(known))]
    instructions = predictor["signature"]["instructions"]
    fields = [_field_of(each, where) for each in predictor["signature"].get("fields") or []]
    if len(fields) < 2:
        raise InputError(f"{where}, field 'signature.fields': an input and an output are needed.")
    inputs = [(name, prefix) for name, prefix in fields[:-1] if name not in ("reasoning", "rationale")]
    output = fields[-1][0]
    parts = [MessageText("system", instructions, instructions.place, is_literal=True)]
    for demo in predictor.get("demos") or []:
        if isinstance(demo, Mapping) and output in demo:
            shown = "\n".join(f"{prefix} {demo[name]}" for name, prefix in inputs if name in demo)
            parts += [MessageText("user", shown, is_literal=True)]
            parts += [MessageText("assistant", str(demo[output]), is_literal=True)]
    asked = "\n".join(f"{prefix} {{{{{name}}}}}" for name, prefix in inputs)
    return Found("DSPy", (*parts, MessageText("user", asked)), "double")


def _is_predictor(value: Any) -> bool:
    signature = value.get("signature") if isinstance(value, Mapping) else None
    return isinstance(signature, Mapping) and isinstance(signature.get("instructions"), Text)


def _field_of(each: Any, where: str) -> tuple[str, str]:
    """Return the name and the prefix of a field. If the saved program lacks the name, the prefix makes it."""
    prefix = each.get("prefix") if isinstance(each, Mapping) else None
    if not isinstance(prefix, str):
        raise InputError(f"{where}, field 'signature.fields': a field has a prefix, not {kind_of(prefix)}.")
    said = each.get("description")
    if isinstance(said, str) and said.startswith("${") and said.endswith("}"):
        return said[2:-1], prefix
    return "_".join(prefix.rstrip(": ").lower().split()), prefix


READERS: Iterable[Callable[[Any, str], Found | None]] = (
    langfuse_prompt,
    mlflow_prompt,
    langsmith_prompt,
    promptfoo_config,
    messages_of,
)
