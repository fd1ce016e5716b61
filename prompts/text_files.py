"""Files that hold one text, JSON object or YAML, and files that are written whole.

YAML may come from others: an error always names file and line, and reading takes bounded time and memory.
"""

from __future__ import annotations

import errno
import filecmp
import json
import math
import os
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

import yaml

from .errors import AskanceError, InputError, like_named, not_text, not_yaml

DEVICES = Path("/dev")

PARTIAL = ".part"
"""Suffix of a file that is being written; the numbers of process and thread stand before it."""


def path_of(given: Any, name: str) -> Path:
    """Make a path of a value given from Python. Raises InputError if it is not one; ``name`` says what it is for."""
    try:
        return Path(given)
    except TypeError:
        raise InputError(f"{name}: a path is needed, not {type(given).__name__}.") from None


def write_whole(path: str | Path, text: str | Iterable[str]) -> None:
    """Write a text, whole or in parts, by :func:`whole_file`; the parts are never joined in memory. Raises AskanceError
    if the file could not be written; the old file is then unchanged."""
    with whole_file(path) as out:
        for part in [text] if isinstance(text, str) else text:
            out.write(part.encode("utf-8", "backslashreplace"))  # half a surrogate pair, in JSON, becomes its escape


def remove_partial(folder: Path) -> None:
    """Remove the partial files that killed processes left in a folder. No other process may write there now."""
    for left in folder.rglob(f"*.[0-9]*-[0-9]*{PARTIAL}"):
        if f".{os.getpid()}-" not in left.name:  # another thread of this process may still write it
            with suppress(OSError):
                left.unlink()


@contextmanager
def whole_file(path: str | Path) -> Iterator[BinaryIO]:
    """Write a file whole or not at all, byte for byte; a file with the same content is not touched.

    If several processes write the file at once, the last one wins. A link is kept, and its target is written. A device
    or a pipe, such as ``/dev/stdout``, is written to and never replaced. Raises AskanceError if the file could not be
    written; the old file is then unchanged.
    """
    file = Path(path)
    try:
        is_stream = file.parent == DEVICES or (file.exists() and not (file.is_file() or file.is_dir()))
        file = file.resolve(strict=False) if file.is_symlink() and not is_stream else file
    except (OSError, RuntimeError) as error:  # a link to itself is a RuntimeError
        raise AskanceError(f"{file}: cannot be written ({getattr(error, 'strerror', error)}).") from None
    if is_stream:
        try:
            with file.open("wb") as out:
                yield out
        except OSError as error:
            raise AskanceError(f"{file}: cannot be written ({error.strerror}).") from None
        return
    partial = file.with_name(f"{file.name}.{os.getpid()}-{threading.get_ident()}{PARTIAL}")  # others may write it, too
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with partial.open("wb") as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
        if file.is_file() and filecmp.cmp(partial, file, shallow=False):
            partial.unlink()
        else:
            partial.replace(file)
    except BaseException as error:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        if not isinstance(error, OSError):
            raise
        raise AskanceError(
            f"{file}: cannot be written ({error.strerror}). What was there before is kept; mend this and run the "
            "command again."
        ) from None


def append_line(file: Path, row: Mapping[str, Any]) -> None:
    """Append a row as a line of JSON; when this returns, the line is on the disk. Raises OSError if it could not be
    written; the file is then unchanged."""
    line = (json.dumps(row, ensure_ascii=False) + "\n").encode()
    with file.open("ab", buffering=0) as out:
        size = out.seek(0, os.SEEK_END)
        try:
            if out.write(line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(out.fileno())
        except OSError:
            with suppress(OSError):
                os.truncate(file, size)
            raise


def read_text(path: str | Path, *, as_it_is: bool = False) -> str:
    """Read a file in UTF-8, with or without a byte order mark; ``as_it_is`` keeps the mark and the line ends. Raises
    FileNotFoundError if the file is missing, because the caller knows what was wanted, and InputError, with the line,
    if it cannot be read."""
    try:
        if as_it_is:
            return Path(path).read_bytes().decode()
        return Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise not_text(path) from None
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:  # a NUL in the path is a ValueError
        raise InputError(f"{path}: cannot be read ({getattr(error, 'strerror', None) or error}).") from None


def read_object(path: str | Path, what: str) -> dict[str, Any]:
    """Read a file that holds one JSON object; ``what`` names it in errors, e.g. ``calibration``. Raises InputError if
    the file is missing, cannot be read, or holds something else."""
    try:
        data = json.loads(read_text(path))
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such {what}.{like_named(path)}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not valid JSON ({error}).") from None
    if not isinstance(data, dict):
        raise InputError(f"{path}: not a {what} of askance: an object is needed.")
    return data


def once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object of JSON. Raises ValueError if a key occurs twice, because the first value would be lost."""
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"'{next(key for key in keys if keys.count(key) > 1)}' stands twice in one object")
    return found


# --- YAML -----------------------------------------------------------------------------------------------------------

MOST_NODES = 1_000_000
"""Maximum number of values in a YAML file, each counted as often as an alias repeats it."""

_TRUTH = re.compile("^(?:true|True|TRUE|false|False|FALSE)$")


class YamlReader(yaml.SafeLoader):
    """Reads YAML; errors name the line of a bad value or of a repeated key. Only true and false are truth values.

    YAML 1.1 also takes yes, no, on and off for true and false. Here they stay words: answers, or values of a setting.
    """

    yaml_implicit_resolvers: dict[str, Any] = {  # noqa: RUF012 -- as in the base class
        first: [(tag, _TRUTH if tag == "tag:yaml.org,2002:bool" else pattern) for tag, pattern in resolvers]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """Return the value of a node."""
        try:
            return super().construct_object(node, deep)
        except (ValueError, TypeError, AttributeError, OverflowError) as error:
            said = str(error).partition(";")[0] if isinstance(error, ValueError) else "it is none of its kind"
            raise yaml.constructor.ConstructorError(problem=f"a value: {said}", problem_mark=node.start_mark) from None

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Return a mapping; a key that occurs twice is an error, because the first value would be lost."""
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in seen:
                raise yaml.constructor.ConstructorError(
                    problem=f"'{key.value}' stands here twice", problem_mark=key.start_mark
                )
            seen.add(str(key.value))
        return super().construct_mapping(node, deep)


class _Texts(YamlReader):
    """Reads every scalar except null as text, so that an id of 010 or 1.10 and a violation of "no" stay as written."""

    yaml_implicit_resolvers: dict[str, Any] = {  # noqa: RUF012 -- as in the base class
        first: [(tag, pattern) for tag, pattern in resolvers if tag == "tag:yaml.org,2002:null"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """Return the value of a node; a tag that would make a date, bytes, a set or pairs is an error."""
        kind = str(node.tag).removeprefix("tag:yaml.org,2002:")
        if kind in ("binary", "omap", "pairs", "set", "timestamp"):
            raise yaml.constructor.ConstructorError(
                problem=f"a value: '!!{kind}' makes no text, list or mapping", problem_mark=node.start_mark
            )
        return super().construct_object(node, deep)


def read_yaml(text: str, name: object, what: str) -> Any:
    """Read YAML; ``name`` is the file and ``what`` its kind, for errors. Raises InputError if the text is not YAML, is
    nested too deeply, contains itself, or has more values than any file needs."""
    return read_yaml_with(text, name, what, YamlReader)


def read_texts(text: str, name: object, what: str) -> Any:
    """Read YAML like :func:`read_yaml`, but with every value except null as text."""
    return read_yaml_with(text, name, what, _Texts)


def read_yaml_with(text: str, name: object, what: str, kind: type[YamlReader]) -> Any:
    """Read YAML with the reader ``kind``. Raises as :func:`read_yaml`."""
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
    """Count the values of a node, with aliases written out."""
    ancestors: set[int] = set()

    @cache
    def size(node: yaml.Node) -> int:
        if not isinstance(node, yaml.CollectionNode):
            return 1
        if id(node) in ancestors:
            raise yaml.constructor.ConstructorError(problem="it holds itself", problem_mark=node.start_mark)
        ancestors.add(id(node))
        parts = [part for each in node.value for part in (each if isinstance(each, tuple) else (each,))]
        found = 1 + sum(map(size, parts))
        ancestors.discard(id(node))
        return found

    return size(root)


_BREAK = re.compile(r"[\n\r\x85\u2028\u2029]")
_BLOCK = re.compile(r"\S(?:[^\r\x85\u2028\u2029]*[^\s])?\n?")
"""Texts that can be written as a YAML block. Other texts have line breaks that YAML changes unless they are escaped."""


def dump_texts(value: Any) -> str:
    """Write YAML in the order given, with texts of several lines as blocks; :func:`read_texts` reads it."""
    return yaml.dump(value, Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=math.inf)


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as blocks."""

    def represent_str(self, data: str) -> yaml.ScalarNode:
        """Write a text plain if that is safe, as a block if it has several lines, else quoted."""
        style = None if not _BREAK.search(data) else "|" if _BLOCK.fullmatch(data) else '"'
        return self.represent_scalar("tag:yaml.org,2002:str", data, style=style)


class BareWord(str):
    """A word such as no, written without quotes although YAML takes it for false: we read all its scalars as text."""

    __slots__ = ()


class OneLine(list[Any]):
    """A list that is written on one line."""


_Dumper.add_representer(str, _Dumper.represent_str)
_Dumper.add_representer(BareWord, lambda dumper, word: dumper.represent_scalar("tag:yaml.org,2002:bool", str(word)))
_Dumper.add_representer(
    OneLine, lambda dumper, items: dumper.represent_sequence("tag:yaml.org,2002:seq", items, flow_style=True)
)
