"""Errors a user can act on. Every message is a sentence: what was wrong, where, what to do."""

from __future__ import annotations

import codecs
import shlex
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any


class AskanceError(Exception):
    """The run failed; the message says why and how to go on."""

    exit_code = 1

    def __reduce__(self) -> tuple[Any, ...]:
        """As it is, also where it is made of more than its message: it may come from a process on another machine."""
        return _with_args, (type(self), self.args), vars(self)


def _with_args(kind: type[AskanceError], args: tuple[Any, ...]) -> AskanceError:
    return kind.__new__(kind, *args)


class InputError(AskanceError):
    """Bad input or usage: names the file, line and field where there is one."""

    exit_code = 2


class MissingExtraError(AskanceError):
    """A part of askance that is installed separately is not there."""

    exit_code = 2

    def __init__(self, extra: str, package: str, hint: str = "", *, what: str = "This") -> None:
        super().__init__(
            f"{what} needs the package {package}, which is not installed. Install it with: "
            f"pip install 'askance[{extra}]'{hint}"
        )


def import_optional(module: str, extra: str, package: str, hint: str = "") -> Any:
    """A module of a package that comes with an extra. Raises MissingExtraError where the package is not installed, and
    the error of an import within it where that fails."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != module.partition(".")[0]:
            raise
        raise MissingExtraError(extra, package, hint) from None


class BudgetExceededError(AskanceError):
    """A cap on calls, tokens or money was reached; what was bought so far is kept."""

    exit_code = 3

    def __init__(self, limit: str, message: str) -> None:
        super().__init__(message)
        self.limit = limit
        """Which cap: ``max_calls``, ``max_tokens`` or ``max_cost``."""


class UnapprovedError(AskanceError):
    """Sentences would enter a prompt that nobody has agreed to. They are in the message; nothing was written."""

    def __init__(self, message: str, *, what: str = "") -> None:
        """``what`` names the thing to agree to, where there are several."""
        super().__init__(message)
        self.what = what


class CoverageError(AskanceError):
    """Too many verdicts are missing for the result to be used."""

    exit_code = 4


def as_typed(path: object) -> str:
    """A path as a command line takes it: one with a blank in it is quoted."""
    return shlex.quote(str(path))


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return `` Did you mean 'x'?`` for the closest known name, or one that begins so, or an empty string."""
    by_lower_case = {each.lower(): each for each in known}
    close = get_close_matches(name.lower(), by_lower_case, n=1, cutoff=0.6)
    if not close and len(name) > 2:
        close = [each for each in by_lower_case if each.startswith(name.lower())][:1]
    return f" Did you mean '{by_lower_case[close[0]]}'?" if close else ""


def like_named(path: str | Path) -> str:
    """Return `` Did you mean 'x'?`` for the file beside a missing one whose name is closest, or an empty string.

    A directory that is there, and lacks what was looked for in it, is not proposed for itself.
    """
    missing = Path(path)
    try:
        beside = [each.name for each in missing.parent.iterdir() if each.name != missing.name]
    except OSError:
        return ""
    return did_you_mean(missing.name, beside)


@contextmanager
def shown_from(path: object, what: str) -> Iterator[None]:
    """While what a file of askance's own holds is shown: a value that cannot be there is the file's mistake. Raises
    InputError, which names the file, with the error that it comes from as its cause."""
    try:
        yield
    except (TypeError, ValueError, AttributeError, LookupError, ArithmeticError, RecursionError) as error:
        raise InputError(
            f"{path}: damaged, or written by another version of askance: a value in {what} is none that can stand "
            f"there ({str(error)[:100] or type(error).__name__})."
        ) from error


def not_text(path: str | Path, encoding: str = "utf-8-sig", hint: str = "") -> InputError:
    """The error for a file that cannot be decoded: its first line with a wrong byte, then ``hint``."""
    decoder = codecs.getincrementaldecoder(encoding)()
    line = 1
    with Path(path).open("rb") as file:
        if file.read(4) == b"PK\x03\x04":
            return InputError(
                f"{path}: this is a zip archive, as Excel files are; give an Excel file a name that ends in .xlsx."
            )
        file.seek(0)
        while chunk := file.read(1 << 16):
            before = decoder.getstate()
            try:
                line += decoder.decode(chunk).count("\n")
            except UnicodeDecodeError:
                decoder.setstate(before)
                for byte in chunk:
                    try:
                        line += decoder.decode(bytes([byte])).count("\n")
                    except UnicodeDecodeError:
                        break
                break
    kind = encoding.upper().removesuffix("-SIG")
    return InputError(
        f"{path}, line {line}: not {kind} text; there is a byte in it that cannot be. Save the file as UTF-8.{hint}"
    )


_YAML_HINTS = {
    "but got '?'": " Put a text with a question mark in quotes where it stands between braces or brackets.",
    "mapping values are not allowed": " Put a text with a colon and a blank in it in quotes.",
}
"""Advice by what the reader says; both are usual where questions are written."""


def not_yaml(name: object, error: Exception) -> InputError:
    """The error where a YAML reader failed with ``error``: the line and the problem, without a drawing."""
    mark = getattr(error, "problem_mark", None)
    line = f", line {mark.line + 1}" if mark else ""
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "unreadable"
    hint = next((hint for sign, hint in _YAML_HINTS.items() if sign in problem), "")
    return InputError(f"{name}{line}: not valid YAML ({problem}).{hint}")
