"""What is written to ``result.json``, and the diff of the prompt."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any

from ..stats.differences import difference_dict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..evaluation.scoring import ExampleScore
    from ..models.budget import RoleLedger
    from ..prompts.prompt import Prompt
    from .bench import Bench
    from .mode import SetUp
    from .results import Outcome, Version
    from .yardsticks import Yardstick


def build_result(
    bench: Bench,
    set_up: SetUp,
    outcome: Outcome,
    yardstick: Yardstick,
    tests: Mapping[int, Sequence[ExampleScore]],
    why_no_test: str | None,
) -> dict[str, Any]:
    """The result of a run, as others rely on it. ``tests`` are scores on the test examples by version number."""
    first, best, splits, budget, seen = (
        outcome.baseline,
        outcome.best,
        bench.splits,
        bench.gateway.budget,
        bench.coverage,
    )

    def side(version: Version) -> dict[str, Any]:
        row: dict[str, Any] = {"prompt": version.prompt.text, "hash": version.prompt.hash}
        row["validation"] = yardstick.measure(version.scores, splits.validation)
        if version.number in tests:
            row["test"] = yardstick.measure(tests[version.number], splits.test)
        else:
            row["test"] = None
            row["reason"] = why_no_test
        if version.draft.checklist is not set_up.start.checklist:
            row["checklist"] = version.draft.checklist.model_dump(mode="json") if version.draft.checklist else None
        return row

    changed = best.number != first.number
    on_validation = yardstick.difference(first.scores, best.scores, splits.validation) if changed else None
    on_test = (
        yardstick.difference(tests[first.number], tests[best.number], splits.test)
        if changed and best.number in tests
        else None
    )
    return {
        "mode": bench.job.command,
        "finish_reason": outcome.finish_reason,
        "iterations": outcome.iterations,
        **set_up.facts,
        "yardstick": yardstick.name,
        "baseline": side(first),
        "best": side(best),
        "gain": {"validation": difference_dict(on_validation), "test": difference_dict(on_test)},
        "accepted_edits": [each.to_dict() for each in outcome.tried if each.accepted],
        "rejected_edits": [each.to_dict() for each in outcome.tried if not each.accepted],
        "pruned_edits": [each.to_dict() for each in outcome.pruned],
        "lessons": [lesson.model_dump(mode="json") for lesson in bench.memory.lessons],
        **budget.to_dict(),
        "cost_usd": _money(budget.cost_usd),
        "roles": {name: _ledger(ledger) for name, ledger in sorted(budget.roles.items())},
        "coverage": seen.share,
        "min_coverage": bench.job.options.min_coverage,
        "missing": {"abstained": seen.abstained, "parse_error": seen.parse_errors, "api_error": seen.api_errors},
        "test_looked_at": bool(tests),
    }


def _ledger(ledger: RoleLedger) -> dict[str, Any]:
    return vars(ledger) | {"cost_usd": _money(ledger.cost_usd)}


def _money(dollars: float) -> float:
    """Rounded, so that the order in which the answers came does not show in the last digits of their sum."""
    return round(dollars, 9)


def prompt_diff(before: Prompt, after: Prompt) -> str:
    """Unified diff of two prompts; empty where they are the same."""
    lines = difflib.unified_diff(
        before.text.splitlines(keepends=True), after.text.splitlines(keepends=True), "before", "after"
    )
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
