"""What the commands that make or continue a run have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..experiments.report import write_report
from ..prompts.errors import BudgetExceededError
from .output import echo_json
from .tables import run_summary

if TYPE_CHECKING:
    from ..optimizer.migrate import RunResult


def finish(done: RunResult, *, as_json: bool) -> None:
    """Print the result.

    Raises:
        CoverageError: Too many verdicts are missing.
        BudgetExceededError: A budget ended the run; its result so far was printed and is kept.
    """
    write_report(done.directory)
    if as_json:
        echo_json(done.result)
    else:
        run_summary(done)
    done.require_coverage()
    if done.finish_reason in ("max_calls", "max_tokens", "max_cost"):
        option = "--" + done.finish_reason.replace("_", "-")
        raise BudgetExceededError(
            done.finish_reason,
            f"A budget ended the run; the best prompt so far is kept. To go on: askance resume {done.directory} "
            f"{option} MORE",
        )
