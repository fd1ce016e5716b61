"""Errors that a user can act on. Every message is a sentence: what was wrong, where, and what to do."""

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
        """Pickle the error even if its constructor takes more than the message: it may come from another machine."""
        return _with_args, (type(self), self.args), vars(self)


def _with_args(kind: type[AskanceError], args: tuple[Any, ...]) -> AskanceError:
    return kind.__new__(kind, *args)


class InputError(AskanceError):
    """Bad input or usage; the message names the file, line and field if there is one."""

    exit_code = 2


class MissingExtraError(AskanceError):
    """A package that is installed separately, as an extra, is missing."""

    exit_code = 2

    def __init__(self, extra: str, package: str, hint: str = "", *, what: str = "This") -> None:
        super().__init__(
            f"{what} needs the package {package}, which is not installed. Install it with: "
            f"pip install 'askance[{extra}]'{hint}"
        )


def import_optional(module: str, extra: str, package: str, hint: str = "") -> Any:
    """Import a module of a package that comes with an extra. Raises MissingExtraError if the package is not installed.
    An import that fails inside the package raises its own error."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != module.partition(".")[0]:
            raise
        raise MissingExtraError(extra, package, hint) from None


class BudgetExceededError(AskanceError):
    """A cap on calls, tokens or money was reached; the answers bought so far are kept."""

    exit_code = 3

    def __init__(self, limit: str, message: str) -> None:
        super().__init__(message)
        self.limit = limit
        """Which cap: ``max_calls``, ``max_tokens`` or ``max_cost``."""


class UnapprovedError(AskanceError):
    """Nobody has agreed to the sentences that would enter a prompt. The message holds them; nothing was written."""

    def __init__(self, message: str, *, what: str = "") -> None:
        """``what`` names the thing to agree to, if there are several."""
        super().__init__(message)
        self.what = what


class CoverageError(AskanceError):
    """Too many verdicts are missing for the result to be used."""

    exit_code = 4


def as_typed(path: object) -> str:
    """Return a path as a shell takes it: a path with a blank in it is quoted."""
    return shlex.quote(str(path))


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return `` Did you mean 'x'?`` for the closest known name, or one that begins so; else an empty text."""
    spellings = {each.lower(): each for each in known}
    close = get_close_matches(name.lower(), spellings, n=1, cutoff=0.6)
    if not close and len(name) > 2:
        close = [each for each in spellings if each.startswith(name.lower())][:1]
    return f" Did you mean '{spellings[close[0]]}'?" if close else ""


def like_named(path: str | Path) -> str:
    """Return `` Did you mean 'x'?`` for the closest name beside a missing file, else an empty text."""
    missing = Path(path)
    try:
        # a directory that exists but lacks the wanted file must not be proposed for itself
        beside = [each.name for each in missing.parent.iterdir() if each.name != missing.name]
    except OSError:
        return ""
    return did_you_mean(missing.name, beside)


@contextmanager
def shown_from(path: object, what: str) -> Iterator[None]:
    """Blame the file for errors that come up while the content of one of askance's own files is shown. Raises
    InputError, which names the file, with the original error as its cause."""
    try:
        yield
    except (TypeError, ValueError, AttributeError, LookupError, ArithmeticError, RecursionError) as error:
        raise InputError(
            f"{path}: damaged, or written by another version of askance: a value in {what} is none that can stand "
            f"there ({str(error)[:100] or type(error).__name__})."
        ) from error


def not_text(path: str | Path, encoding: str = "utf-8-sig", hint: str = "") -> InputError:
    """Return the error for a file that cannot be decoded. It names the first line with a wrong byte, then ``hint``."""
    decoder = codecs.getincrementaldecoder(encoding)()
    line = 1
    with Path(path).open("rb") as file:
        if file.read(4) == b"PK\x03\x04":
            return InputError(
                f"{path}: this is a zip archive, as Excel files are; give an Excel file a name that ends in .xlsx."
            )
        file.seek(0)
        while chunk := file.read(1 << 16):
            state = decoder.getstate()
            try:
                line += decoder.decode(chunk).count("\n")
            except UnicodeDecodeError:
                decoder.setstate(state)
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
"""Message of the YAML reader to advice; both mistakes are common in files of questions."""


def not_yaml(name: object, error: Exception) -> InputError:
    """Return the error for a YAML reader that failed with ``error``: the line and the problem, without the excerpt."""
    mark = getattr(error, "problem_mark", None)
    line = f", line {mark.line + 1}" if mark else ""
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "unreadable"
    hint = next((hint for sign, hint in _YAML_HINTS.items() if sign in problem), "")
    return InputError(f"{name}{line}: not valid YAML ({problem}).{hint}")
