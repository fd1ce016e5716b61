"""What the commands of experiments (``python -m askance.experiments...``) do alike."""

from __future__ import annotations

import sys
from functools import wraps
from typing import TYPE_CHECKING

from ..prompts.errors import AskanceError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def says_errors(main: Callable[[Sequence[str] | None], int]) -> Callable[..., int]:
    """A command that says on standard error what went wrong; its exit code is then the error's, or 1 of a file's."""

    @wraps(main)
    def command(arguments: Sequence[str] | None = None) -> int:
        try:
            return main(arguments)
        except AskanceError as error:
            print(error, file=sys.stderr)
            return error.exit_code
        except OSError as error:
            print(error, file=sys.stderr)
            return AskanceError.exit_code

    return command
