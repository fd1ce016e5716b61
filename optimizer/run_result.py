"""What is written to ``result.json``, and the diff of the prompt."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any

from .bootstrap import paired_difference
from .results import Version, difference_dict, documents, measure

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..models.budget import Budget, RoleLedger
    from ..prompts.examples import Example
    from ..prompts.lessons import Lesson
    from ..prompts.prompt import Prompt
    from .job import Job, SplitExamples
    from .results import Outcome
    from .scoring import Coverage, ExampleScore
    from .targets import Targets


def build_result(
    *,
    job: Job,
    splits: SplitExamples,
    outcome: Outcome,
    targets: Targets,
    tests: Mapping[int, Sequence[ExampleScore]],
    why_no_test: str | None,
    lessons: Sequence[Lesson],
    budget: Budget,
    seen: Coverage,
) -> dict[str, Any]:
    """The result of a run, as others rely on it. ``tests`` are scores on the test examples by version number."""
    options = job.options
    first, best = outcome.baseline, outcome.best
    validation, test = splits.validation, splits.test

    def side(version: Version) -> dict[str, Any]:
        on_validation = measure(version.scores, targets, validation, resamples=options.resamples, seed=options.seed)
        row: dict[str, Any] = {"prompt": version.prompt.text, "hash": version.prompt.hash}
        row["validation"] = on_validation.to_dict()
        if version.number in tests:
            row["test"] = measure(
                tests[version.number], targets, test, resamples=options.resamples, seed=options.seed
            ).to_dict()
        else:
            row["test"] = None
            row["reason"] = why_no_test
        return row

    def gain(a: Sequence[ExampleScore], b: Sequence[ExampleScore], examples: Sequence[Example]) -> Any:
        return difference_dict(
            paired_difference(
                [targets.score(each) for each in a],
                [targets.score(each) for each in b],
                [targets.overall(each.example) for each in a],
                groups=documents(examples),
                undefined_as_zero=True,
                resamples=options.resamples,
                seed=options.seed,
            )
        )

    changed = best.number != first.number
    return {
        "mode": "migrate",
        "finish_reason": outcome.finish_reason,
        "iterations": outcome.iterations,
        "reference": targets.kind,
        "baseline": side(first),
        "best": side(best),
        "gain": {
            "validation": gain(first.scores, best.scores, validation) if changed else None,
            "test": gain(tests[first.number], tests[best.number], test) if changed and tests else None,
        },
        "accepted_edits": [each.to_dict() for each in outcome.tried if each.accepted],
        "rejected_edits": [each.to_dict() for each in outcome.tried if not each.accepted],
        "lessons": [lesson.model_dump(mode="json") for lesson in lessons],
        "calls": budget.calls,
        "cached_calls": budget.cached_calls,
        "tokens": budget.tokens,
        "cost_usd": _money(budget.cost_usd),
        "roles": {name: _ledger(ledger) for name, ledger in sorted(budget.roles.items())},
        "coverage": seen.share,
        "min_coverage": options.min_coverage,
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
