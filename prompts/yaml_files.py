"""YAML that others wrote: an error names file and line whatever is in it, and reading takes bounded time and memory."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import yaml

from .errors import InputError, not_yaml

MOST_NODES = 1_000_000
"""Values that a file may stand for, each counted as often as an alias repeats it."""

_TRUTH = re.compile("^(?:true|True|TRUE|false|False|FALSE)$")


class _Reader(yaml.SafeLoader):
    """Says on which line a value cannot be, and which key stands twice; true and false alone are no texts.

    YAML 1.1 takes yes, no, on and off for true and false too. Here they are words: of answers, or of a setting.
    """

    yaml_implicit_resolvers: dict[str, Any] = {  # noqa: RUF012 -- as in the base class
        first: [(tag, _TRUTH if tag == "tag:yaml.org,2002:bool" else pattern) for tag, pattern in resolvers]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """The value of a node."""
        try:
            return super().construct_object(node, deep)
        except (ValueError, TypeError, AttributeError, OverflowError) as error:
            said = str(error).partition(";")[0] if isinstance(error, ValueError) else "it is none of its kind"
            raise yaml.constructor.ConstructorError(problem=f"a value: {said}", problem_mark=node.start_mark) from None

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """A mapping; a key that stands in it twice is an error, because the first value would be lost."""
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in seen:
                raise yaml.constructor.ConstructorError(
                    problem=f"'{key.value}' stands here twice", problem_mark=key.start_mark
                )
            seen.add(str(key.value))
        return super().construct_mapping(node, deep)


class _Texts(_Reader):
    """Takes every scalar as text but null, so that an id of 010 or 1.10 and a violation of "no" stay as written."""

    yaml_implicit_resolvers: dict[str, Any] = {  # noqa: RUF012 -- as in the base class
        first: [(tag, pattern) for tag, pattern in resolvers if tag == "tag:yaml.org,2002:null"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """The value of a node, which no tag makes a date, bytes, a set or pairs."""
        kind = str(node.tag).removeprefix("tag:yaml.org,2002:")
        if kind in ("binary", "omap", "pairs", "set", "timestamp"):
            raise yaml.constructor.ConstructorError(
                problem=f"a value: '!!{kind}' makes no text, list or mapping", problem_mark=node.start_mark
            )
        return super().construct_object(node, deep)


def read_yaml(text: str, name: object, what: str) -> Any:
    """What YAML holds.

    Raises:
        InputError: It is no YAML, nested too deeply, holds itself, or stands for more values than any file needs;
            ``name`` is the file and ``what`` the kind of it.
    """
    return _read(text, name, what, _Reader)


def read_texts(text: str, name: object, what: str) -> Any:
    """Like :func:`read_yaml`, with every value but null as the text that it is."""
    return _read(text, name, what, _Texts)


def _read(text: str, name: object, what: str, kind: type[_Reader]) -> Any:
    try:
        reader = kind(text)
        node = reader.get_single_node()
        if node is None:
            return None
        if _size(node) > MOST_NODES:
            raise InputError(f"{name}: its aliases repeat more than {MOST_NODES:,} values, too many for a {what}.")
        return reader.construct_document(node)
    except yaml.YAMLError as error:
        raise not_yaml(name, error) from None
    except RecursionError:
        raise InputError(f"{name}: nested too deeply to be a {what}.") from None


def _size(root: yaml.Node) -> int:
    """How many values a node stands for, aliases written out."""
    inside: set[int] = set()

    @cache
    def size(node: yaml.Node) -> int:
        if not isinstance(node, yaml.CollectionNode):
            return 1
        if id(node) in inside:
            raise yaml.constructor.ConstructorError(problem="it holds itself", problem_mark=node.start_mark)
        inside.add(id(node))
        parts = [part for each in node.value for part in (each if isinstance(each, tuple) else (each,))]
        found = 1 + sum(map(size, parts))
        inside.discard(id(node))
        return found

    return size(root)
