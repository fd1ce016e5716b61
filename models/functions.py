"""A user's functions, found by name: ``package.module:function`` or ``path/to/file.py:function``.

An error in such a function is reported with its line.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any

from ..prompts.errors import AskanceError, InputError, did_you_mean


def find_function(source: str, option: str, began_in: Path = Path()) -> Any:
    """Import the function ``package.module:function`` or ``path/to/file.py:function``, which is looked for in
    ``began_in`` first. ``option`` is for error messages. For a module, ``began_in`` and the current directory are put
    on the import path; for a file, its folder. They stay there, because the function may import later. Raises
    InputError if there is no such function, or importing it fails."""
    place = f"{option} {source}"
    module_name, colon, path = source.rpartition(":")
    if not colon or not module_name or not all(part.isidentifier() for part in path.split(".")):
        raise InputError(f"{place}: write it as module:function or file.py:function, e.g. checks.py:follows_rules.")
    is_file = module_name.endswith(".py") or "/" in module_name or "\\" in module_name
    module = (_from_file if is_file else _from_name)(module_name, place, began_in)
    value: Any = module
    for part in path.split("."):
        if not hasattr(value, part):
            names = [name for name in dir(value) if not name.startswith("_") and callable(getattr(value, name, None))]
            raise InputError(f"{place}: '{module_name}' has nothing called '{path}'.{did_you_mean(part, names)}")
        value = getattr(value, part)
    return value


def function_version(source: str, began_in: Path = Path()) -> str | None:
    """Return a hash of the file with a function (named as for :func:`find_function`); None if no file is found. The
    function is not imported. Other files that it uses are not part of the hash."""
    name = source.rpartition(":")[0]
    file = next((path for path in (began_in / name, Path(name)) if path.is_file()), None)
    if file is None and all(part.isidentifier() for part in name.split(".")):
        _importable(Path.cwd(), began_in.absolute())
        try:
            spec = importlib.util.find_spec(name)
        except (ImportError, ValueError):
            spec = None
        file = Path(spec.origin) if spec is not None and spec.has_location and spec.origin else None
    try:
        return None if file is None else sha256(file.read_bytes()).hexdigest()[:16]
    except OSError:
        return None


def _from_name(name: str, where: str, began_in: Path) -> ModuleType:
    _importable(Path.cwd(), began_in.absolute())
    importlib.invalidate_caches()
    return _imported(lambda: importlib.import_module(name), name, where)


def _from_file(given: str, where: str, began_in: Path) -> ModuleType:
    path = next((each for each in (began_in / given, Path(given)) if each.is_file()), None)
    if path is None:
        raise InputError(f"{where}: there is no file {given}.")
    path = path.resolve()
    name = f"askance_user_{path.stem}_{sha256(str(path).encode()).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise InputError(f"{where}: {path} is no Python file; its name must end in .py.")
    _importable(path.parent)
    module = importlib.util.module_from_spec(spec)
    loader = spec.loader

    def run() -> ModuleType:
        sys.modules[name] = module  # dataclasses and pickle look a class's module up there
        try:
            loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
        return module

    return _imported(run, path.stem, where)


def _importable(*folders: Path) -> None:
    for folder in folders:
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))


def _imported(load: Callable[[], ModuleType], name: str, where: str) -> ModuleType:
    try:
        return load()
    except AskanceError:
        raise
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(f"{error.name}.")):
            problem = f"there is no module '{error.name}', neither in the current directory nor installed."
            raise InputError(f"{where}: {problem}") from None
        raise InputError(f"{where}: it imports '{error.name}', which is not installed.") from error
    except (Exception, SystemExit) as error:
        line = error.lineno if isinstance(error, SyntaxError) else traceback.extract_tb(error.__traceback__)[-1].lineno
        said = error.msg if isinstance(error, SyntaxError) else error
        raise InputError(f"{where}: importing it fails with {type(error).__name__}: {said} (line {line}).") from error


def must_take_an_example(where: str, function: Any) -> None:
    """Raise InputError for a function that cannot be called with one example."""
    if not callable(function):
        raise InputError(f"{where}: this is {kind_of(function)}, not a function that takes an example.")
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise InputError(f"{where}: this is an async function; a plain function is needed.")
    try:
        inspect.signature(function).bind(None)
    except TypeError as error:
        raise InputError(f"{where}: it is called with one example alone, which fails ({error}).") from None
    except ValueError:
        return  # a builtin without a signature


def kind_of(value: object) -> str:
    """Describe the type of a value in words, with its module unless the type is built in."""
    if value is None:
        return "None"
    kind = type(value)
    return f"a value of type {kind.__name__ if kind.__module__ == 'builtins' else f'{kind.__module__}.{kind.__name__}'}"


def what_happened(error: BaseException, name: str, function: Any) -> str:
    """Describe an error: its type, its message, and the line in the user's function that raised it."""
    frames = traceback.extract_tb(error.__traceback__)
    try:
        file = inspect.getsourcefile(inspect.unwrap(function)) or ""
    except TypeError:
        file = ""
    place = next((frame for frame in reversed(frames) if frame.filename == file), frames[-1])
    message = " ".join(str(error).split())
    said = f"{type(error).__name__}: {message}" if message else type(error).__name__
    return f"{said} (in {name}, line {place.lineno})"
