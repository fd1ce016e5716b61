"""A user's own checker, ``--checker module:function``: pass or fail with a reason, from code instead of a judge.

The function is found by its name and called with each example; what goes wrong in it is said with its line.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol

from ...prompts.errors import AskanceError, InputError, did_you_mean
from ...prompts.text import sendable
from ...prompts.verdicts import Verdict

if TYPE_CHECKING:
    from ...prompts.examples import Example

    class Written(Protocol):
        """An example with its output; :class:`askance.agents.generator.Generated` is one."""

        @property
        def example(self) -> Example:
            """``output`` is None where generating failed."""

        @property
        def error(self) -> str | None:
            """Why there is no output."""


def find_function(source: str, began_in: Path = Path()) -> Any:
    """Import what ``package.module:function`` or ``path/to/file.py:function`` names.

    The current directory, or the file's, is put on the import path and stays there, so that what the function imports
    when it runs is found as well. What is in ``began_in`` goes before what is in the current directory.

    Raises:
        InputError: There is no such module, file or name in it, or importing it fails.
    """
    where = f"--checker {source}"
    module_name, colon, path = source.rpartition(":")
    if not colon or not module_name or not all(part.isidentifier() for part in path.split(".")):
        raise InputError(f"{where}: write it as module:function or file.py:function, e.g. checks.py:follows_rules.")
    is_file = module_name.endswith(".py") or "/" in module_name or "\\" in module_name
    module = (_from_file if is_file else _from_name)(module_name, where, began_in)
    found: Any = module
    for part in path.split("."):
        if not hasattr(found, part):
            names = [name for name in dir(found) if not name.startswith("_") and callable(getattr(found, name, None))]
            raise InputError(f"{where}: '{module_name}' has nothing called '{path}'.{did_you_mean(part, names)}")
        found = getattr(found, part)
    return found


def _from_name(name: str, where: str, began_in: Path) -> ModuleType:
    for folder in (Path.cwd(), began_in.absolute()):
        _importable(folder)
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


def _importable(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def _imported(load: Callable[[], ModuleType], name: str, where: str) -> ModuleType:
    try:
        return load()
    except AskanceError:
        raise
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(f"{error.name}.")):
            raise InputError(
                f"{where}: there is no module '{error.name}', neither in the current directory nor installed."
            ) from None
        raise InputError(f"{where}: it imports '{error.name}', which is not installed.") from error
    except (Exception, SystemExit) as error:
        line = error.lineno if isinstance(error, SyntaxError) else traceback.extract_tb(error.__traceback__)[-1].lineno
        said = error.msg if isinstance(error, SyntaxError) else error
        raise InputError(f"{where}: importing it fails with {type(error).__name__}: {said} (line {line}).") from error


@dataclass(frozen=True)
class Check:
    """One thing that was checked about an output."""

    name: str
    """Name of the check, unique among the checks of one example and the same on every example."""
    passed: bool
    reason: str | None = None
    """In words, what was wanted and what was found. Note-takers read it, so it is best given where a check fails."""


CheckFunction = Callable[["Example"], bool | Check | Iterable[Check]]
"""Takes an example whose ``output`` is the text to check."""


@dataclass(frozen=True)
class Checker:
    """A user's function with the name it is known by."""

    name: str
    """``module:function``, as the user wrote it."""
    function: CheckFunction

    @property
    def model(self) -> str:
        """The name in verdicts, in the place of a model's."""
        return f"checker:{self.name}"

    @property
    def whole(self) -> str:
        """The name of a check that is about the whole output: the function's own."""
        return self.name.rpartition(":")[2]


def load_checker(source: str | CheckFunction | Checker, began_in: Path = Path()) -> Checker:
    """Find a checker: ``package.module:function``, ``path/to/file.py:function``, or the function itself.

    The current directory is put on the import path, as ``python -m`` does, or else the file's directory. A name is
    looked for first in ``began_in``, the directory that it was given in.

    Raises:
        InputError: There is no such module, file or function, importing it fails, or what is found cannot be called
            with one example.
    """
    if isinstance(source, Checker):
        return source
    if isinstance(source, str):
        name, function = source, find_function(source, began_in)
    else:
        function = source
        module = getattr(source, "__module__", None) or type(source).__module__
        name = f"{module}:{getattr(source, '__qualname__', type(source).__qualname__)}"
    _must_take_an_example(name, function)
    return Checker(name, function)


def run_checker(checker: Checker, generated: Sequence[Written], prompt: str) -> list[Verdict]:
    """Check every output; one verdict per check, in the order of the examples and of each one's checks.

    A plain True or False counts as one check with the function's name. Where generating failed, or the function raised
    an error, there is one verdict of that name with status ``api_error`` and no answer: a failure is never a score.
    The function gets a copy of each example, which it may change. ``prompt`` is the hash of the generator's prompt.

    Raises:
        InputError: The function returned something else than True, False, a :class:`Check` or several, or two checks
            of one example have one name.
    """
    verdicts = []
    for each in generated:
        if each.example.output is None:
            reason = each.error or "there is no output to check"
            verdicts.append(_failed(checker, each.example, prompt, f"not generated: {reason}"))
            continue
        try:
            returned = checker.function(each.example.model_copy(deep=True))
            checks = returned if isinstance(returned, (bool, Check)) else _all_of(returned)
        except AskanceError:
            raise
        except (Exception, SystemExit) as error:
            verdicts.append(_failed(checker, each.example, prompt, _what_happened(error, checker)))
            continue
        by, name = (checker.model, prompt), each.example.id
        verdicts += [
            Verdict(name, check.name, *by, check.passed, float(check.passed), "hard", check.reason or None)
            for check in _validated(checks, checker, each.example)
        ]
    return verdicts


def _all_of(returned: object) -> object:
    """Run a generator function to its end, so that its errors are the function's own."""
    return list(returned) if isinstance(returned, Iterable) and not isinstance(returned, (str, bytes)) else returned


def _validated(returned: object, checker: Checker, example: Example) -> list[Check]:
    where = f"The checker {checker.name}, on the example '{example.id}', "
    if isinstance(returned, bool):
        return [Check(checker.whole, returned)]
    checks = [returned] if isinstance(returned, Check) else returned
    if not isinstance(checks, list):
        hint = " Does every branch return something?" if returned is None else ""
        raise InputError(f"{where}returned {_kind(returned)}; it must return True or False, a Check, or several.{hint}")
    if not checks:
        raise InputError(f"{where}returned no checks; an output of which nothing is checked has no score.")
    names: set[str] = set()
    for check in checks:
        if not isinstance(check, Check):
            raise InputError(f"{where}returned {_kind(check)} among its checks; each must be a Check.")
        if not isinstance(check.name, str) or not check.name.strip():
            raise InputError(f"{where}returned a Check whose name is {check.name!r}; a text is needed.")
        try:
            sendable(check.name)
        except ValueError as error:
            raise InputError(f"{where}returned a Check whose name is {check.name!r}: {error}.") from None
        if not isinstance(check.passed, bool):
            raise InputError(
                f"{where}returned a Check '{check.name}' whose 'passed' is {_kind(check.passed)}; put it into "
                "bool(...)."
            )
        if check.reason is not None and not isinstance(check.reason, str):
            raise InputError(
                f"{where}returned a Check '{check.name}' whose reason is {_kind(check.reason)}, not a text."
            )
        if check.name in names:
            raise InputError(f"{where}returned two checks named '{check.name}'; give each a name of its own.")
        names.add(check.name)
    return checks


def _kind(value: object) -> str:
    if value is None:
        return "None"
    kind = type(value)
    return f"a value of type {kind.__name__ if kind.__module__ == 'builtins' else f'{kind.__module__}.{kind.__name__}'}"


def _failed(checker: Checker, example: Example, prompt: str, error: str) -> Verdict:
    return Verdict(example.id, checker.whole, checker.model, prompt, None, status="api_error", error=error)


def _what_happened(error: BaseException, checker: Checker) -> str:
    """Type and message of an error, and the line of the user's function in which it came up."""
    frames = traceback.extract_tb(error.__traceback__)
    try:
        file = inspect.getsourcefile(inspect.unwrap(checker.function)) or ""
    except TypeError:
        file = ""
    place = next((frame for frame in reversed(frames) if frame.filename == file), frames[-1])
    message = " ".join(str(error).split())
    said = f"{type(error).__name__}: {message}" if message else type(error).__name__
    return f"{said} (in {checker.name}, line {place.lineno})"


def _must_take_an_example(name: str, function: Any) -> None:
    if not callable(function):
        raise InputError(f"--checker {name}: this is {_kind(function)}, not a function that takes an example.")
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise InputError(f"--checker {name}: this is an async function; a plain function is needed.")
    try:
        inspect.signature(function).bind(None)
    except TypeError as error:
        raise InputError(f"--checker {name}: it is called with one example alone, which fails ({error}).") from None
    except ValueError:
        return  # a builtin that does not say what it takes
