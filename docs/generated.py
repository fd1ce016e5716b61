"""Parts of the reference that MkDocs makes from the code when it builds the pages: a hook, see ``mkdocs.yml``.

A page holds markers. ``<!-- settings -->`` becomes every option of every command, ``<!-- names -->`` the public Python
names, ``<!-- events -->`` the events of a run, and ``<!-- fields: MODULE.CLASS -->`` the fields of a record and of the
records in it.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections import defaultdict
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any, ClassVar, get_origin, get_type_hints

import click

MARKER = re.compile(r"^<!-- (settings|names|events|fields: [\w. ]+) -->$", re.MULTILINE)
_ROLE = re.compile(r":\w+:`~?(?:[\w.]*\.)?(\w+)`")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Fill in the markers of a page. MkDocs calls this."""
    return MARKER.sub(lambda found: filled(found[1]), markdown)


def on_page_content(html: str, **_: Any) -> str:
    """Write names in docstrings without their Sphinx role and module. MkDocs calls this."""
    return re.sub(r":\w+:<code>~?(?:[\w.]*\.)?(\w+)</code>", r"<code>\1</code>", html)


def filled(marker: str) -> str:
    """Return the Markdown that a marker stands for. Raises ImportError or AttributeError where it names no class."""
    if marker == "settings":
        return _settings()
    if marker == "names":
        return _names()
    if marker == "events":
        return _events()
    known: set[type] = set()
    return "\n\n".join(_records([_class(name) for name in marker.removeprefix("fields: ").split()], known))


def _class(name: str) -> type:
    module, _, inner = name.rpartition(".")
    found = getattr(import_module(f"askance.{module}"), inner)
    assert isinstance(found, type)
    return found


def _table(titles: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = list(titles)
    lines = [head, ["---"] * len(head), *([_cell(each) for each in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(text: str) -> str:
    return re.sub(r"\s+", " ", _ROLE.sub(r"`\1`", text)).replace("|", "\\|").replace("<", "&lt;").strip()


def _records(classes: Iterable[type], known: set[type]) -> Iterator[str]:
    """Yield a table for each record, then for the records that its fields hold; each record once."""
    inner: list[type] = []
    for each in classes:
        if each in known:
            continue
        known.add(each)
        rows = [(f"`{name}`", f"`{kind}`", text) for name, kind, text in _fields(each, inner)]
        said = inspect.cleandoc(each.__doc__ or "").partition("\n\n")[0]
        yield f"**{each.__name__.lstrip('_')}**. {_cell(said)}\n\n{_table(('field', 'type', ''), rows)}"
    if inner:
        yield from _records(inner, known)


def _fields(record: type, inner: list[type]) -> Iterator[tuple[str, str, str]]:
    """Yield name, type and text of each field that a file has; records that a type names are added to ``inner``."""
    described = getattr(record, "model_fields", {})
    for name, annotation, said, module in _annotated(record):
        info = described.get(name)
        is_ours = name.startswith("_") or annotation.startswith("ClassVar") or name == "model_config"
        if is_ours or (info is not None and info.exclude is True):
            continue
        for word in re.findall(r"[A-Z]\w+", annotation):
            found = getattr(module, word, None)
            if isinstance(found, type) and found.__module__.startswith("askance.") and _has_fields(found):
                inner.append(found)
        alias = getattr(info, "alias", None)
        yield alias or name, annotation, said or getattr(info, "description", None) or ""


def _has_fields(record: type) -> bool:
    return hasattr(record, "model_fields") or hasattr(record, "__dataclass_fields__") or hasattr(record, "_fields")


def _annotated(record: type) -> Iterator[tuple[str, str, str, Any]]:
    """Yield name, annotation, docstring and module of each annotated name of a class and of its own bases."""
    for each in reversed(record.__mro__):
        if not each.__module__.startswith("askance."):
            continue
        module = import_module(each.__module__)
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(each))).body
        assert isinstance(tree, ast.ClassDef)
        for node, after in zip(tree.body, [*tree.body[1:], None], strict=True):
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                is_text = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
                said = str(after.value.value) if is_text else ""  # type: ignore[union-attr]
                yield node.target.id, _plain(node.annotation), inspect.cleandoc(said), module


def _plain(annotation: ast.expr) -> str:
    """Return the annotation as text, without what ``Annotated`` adds for the command line."""
    if isinstance(annotation, ast.Subscript) and ast.unparse(annotation.value) == "Annotated":
        assert isinstance(annotation.slice, ast.Tuple)
        return _plain(annotation.slice.elts[0])
    return ast.unparse(annotation)


def _events() -> str:
    from askance.optimizer import events

    kinds = [each for each in vars(events).values() if inspect.isclass(each) and issubclass(each, events.Event)]
    rows = []
    for each in kinds:
        if each is not events.Event:
            hints = get_type_hints(each)
            names = [name for name in each.__dataclass_fields__ if get_origin(hints[name]) is not ClassVar]
            fields = each.told or names
            said = inspect.cleandoc(each.__doc__ or "")
            rows.append((f"`{each.kind}`", f"`{each.__name__}`", ", ".join(f"`{name}`" for name in fields), said))
    return _table(("event", "Python", "fields", ""), rows)


def _names() -> str:
    import askance

    found = {name: getattr(askance, name) for name in askance.__all__ if not name.startswith("_")}
    awaited = {name for name in found if name.startswith("a") and name[1:] in found}
    classes = [name for name, each in found.items() if inspect.isclass(each)]
    functions = [name for name in found if name not in classes and name not in awaited]
    functions_in_order = [f"::: askance.{name}" for name in sorted(functions)]
    classes_in_order = [f"::: askance.{name}" for name in sorted(classes)]
    return "\n\n".join(["## Functions", *functions_in_order, "## Classes", *classes_in_order])


def _settings() -> str:
    from askance.commands.command_options import NO_SETTINGS, RECORDS
    from askance.settings import Heading, headings

    under = {name: where for record in RECORDS for name, where in headings(record).items()} | NO_SETTINGS
    rows: dict[str, dict[tuple[str, str], list[str]]] = defaultdict(lambda: defaultdict(list))
    for command_name, command in _commands():
        for option in command.params:
            if isinstance(option, click.Option) and not option.hidden:
                heading = under[option.name or ""].heading.value if option.name in under else "Other"
                flags = ", ".join(f"`{each}`" for each in [*option.opts, *option.secondary_opts])
                rows[heading][flags, option.help or ""].append(command_name)
    parts = []
    commands = {heading: {name for names in rows[heading].values() for name in names} for heading in rows}
    groups = sorted((each.value for each in Heading if each.value in rows), key=lambda each: -len(commands[each]))
    last = [Heading.OUTPUT.value, "Other"]
    for heading in [*(each for each in groups if each not in last), *last]:
        table = [(flags, said, ", ".join(names)) for (flags, said), names in rows[heading].items()]
        parts.append(f"## {heading}\n\n{_table(('option', 'what it does', 'commands'), table)}")
    return "\n\n".join(parts)


def _commands() -> Iterator[tuple[str, click.Command]]:
    from askance.cli import cli

    with click.Context(cli) as context:
        for name in cli.list_commands(context):
            command = cli.get_command(context, name)
            assert command is not None
            yield name, command
