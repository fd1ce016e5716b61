"""GEPA beside a run of ours: same model, data, splits, starting prompt, metric and number of calls.

Run ``python -m askance.experiments.measured.gepa_beside qags --ours RUN_DIR [RUN_DIR ...]`` on finished runs of ``align``, or
``ifbench`` on finished runs of ``tune``. Everything is read from the run's directory: examples, split, seed, prompt,
checklist, checker, model, and how many calls it made before it looked at the test, after which GEPA begins no further
iteration. GEPA (its defaults, its reflection prompt, reflection on the same model) learns from our development examples
and selects on our validation examples. Answers are kept in ``RUN_DIR-gepa``: a search that was stopped goes on there.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...bridges.gepa_adapter import AskanceAdapter
from ...bridges.gepa_parts import ReflectionModel, ReflectionSettings, Search, cut_out_guidance, metric_for
from ...optimizer.job import model_name
from ...optimizer.subject import Draft
from ...prompts.errors import InputError
from ...prompts.words import Figure, number_text
from ...stats.differences import difference_dict
from ..command_line import RESULTS, says_errors, write_result
from .gepa_runs import MINIBATCH, Limits, Ours, open_again, search

if TYPE_CHECKING:
    from ...models.base import Model
    from ...optimizer.subject import Observation

COMMANDS = {"qags": "align", "ifbench": "tune"}
"""Task to the command that made our run."""
SPLITS = ("validation", "test")


def compare(
    task: str,
    directory: Path,
    *,
    model: str | Model | None = None,
    reflecting: ReflectionSettings | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Let GEPA do what a run of ours did, and measure both.

    Args:
        task: ``qags`` (or any judge that was held against people) or ``ifbench`` (or any generator).
        directory: Our finished run.
        model: Another way to reach the run's model.
        reflecting: How the reflection is asked.
        options: How the model is reached: ``api_base``, ``max_concurrency``, ``timeout``, ``retries``.

    Raises:
        InputError: The run is of another kind or not finished, or its prompt has nothing to improve.
        MissingExtraError: GEPA is not installed.
        AskanceError: An endpoint is down; the same call goes on where this one ended.
    """
    with open_again(directory, COMMANDS[task], model, **options) as ours:
        start = ours.set_up.start
        frame, guidance = cut_out_guidance(start.prompt)
        settings, shared = reflecting or ReflectionSettings(), Search(ours.loop)
        metric = metric_for(ours.set_up.yardstick)
        splits = ours.bench.splits
        development, validation = (
            [each for each in part if metric.knows(each.id)] for part in (splits.development, splits.validation)
        )
        adapter = AskanceAdapter(
            subject=ours.set_up.subject,
            checklist=start.checklist,
            frame=frame,
            metric=metric,
            search=shared,
            missing_as_zero=True,
        )
        reflection = ReflectionModel(ours.bench.gateway, ours.model, settings, ours.job.options.seed, shared)
        limits = _limits(ours, len(validation))
        evolved, found = search(guidance, development, validation, adapter, reflection, limits)
        drafts = {"start": start, "gepa": Draft(frame.prompt(evolved), start.checklist), "ours": ours.best}
        seen: dict[str, dict[str, Observation]] = {}
        budget = ours.bench.gateway.budget
        taken: dict[str, Any] = {"calls_before_test": budget.calls}
        for name, draft in drafts.items():
            seen[name] = {split: ours.observe(draft, split) for split in SPLITS}
            if name == "gepa":  # a run of ours has looked at its start and its best prompt by then, too
                taken |= {"calls": budget.calls, "tokens": budget.tokens}
        report = _report(task, directory, ours, drafts, seen)
        report["gepa"] |= taken
        return report | {
            "gepa_search": found,
            "reflection": vars(settings),
            "coverage": ours.bench.coverage.share,
        }


def _limits(ours: Ours, validation: int) -> Limits:
    """As many calls as our run made before it looked at the test.

    Rollouts that cost nothing, because they were run before, are not held against GEPA; twice the rollouts that those
    calls pay for is where a search ends that buys nothing any more.
    """
    calls = ours.result["calls"] - ours.test_calls
    iteration = round((2 * MINIBATCH + validation) * ours.calls_per_rollout) + 2
    return Limits(calls, calls + iteration, max(1, round(2 * calls / ours.calls_per_rollout)))


def _report(
    task: str,
    directory: Path,
    ours: Ours,
    drafts: Mapping[str, Draft],
    seen: Mapping[str, Mapping[str, Observation]],
) -> dict[str, Any]:
    yardstick, result = ours.set_up.yardstick, ours.result

    def difference(before: str, after: str) -> dict[str, Any]:
        return {
            split: difference_dict(
                yardstick.difference(
                    seen[before][split].scores, seen[after][split].scores, getattr(ours.bench.splits, split)
                )
            )
            for split in SPLITS
        }

    def side(name: str) -> dict[str, Any]:
        examples = ours.bench.splits
        row = {split: yardstick.measure(seen[name][split].scores, getattr(examples, split)) for split in SPLITS}
        return _with_gap(row, yardstick.name) | _prompt(drafts[name].prompt.text)

    from_run = {split: result["best"][split] for split in SPLITS}
    return {
        "task": task,
        "run": directory.name,
        "model": model_name(ours.model),
        "seed": ours.job.options.seed,
        "yardstick": yardstick.name,
        "examples": {each: len(getattr(ours.bench.splits, each)) for each in ("development", *SPLITS)},
        "gepa_version": version("gepa"),
        "calls_per_rollout": ours.calls_per_rollout,
        "start": side("start"),
        "ours": _with_gap(from_run, yardstick.name)
        | _prompt(result["best"]["prompt"])
        | {
            "gain": result["gain"],
            "calls": result["calls"],
            "calls_before_test": result["calls"] - ours.test_calls,
            "tokens": result["tokens"],
            "finish_reason": result["finish_reason"],
        },
        "gepa": side("gepa") | {"gain": difference("start", "gepa")},
        "gepa_minus_ours": difference("ours", "gepa"),
        "start_as_in_our_run": _figure(side("start")["test"], yardstick.name)
        == _figure(result["baseline"]["test"], yardstick.name),
    }


def _with_gap(row: Mapping[str, Any], yardstick: str) -> dict[str, Any]:
    """The figures of both splits, and how much better the one is on which the prompt was chosen."""
    chosen, held_out = (_figure(row[split], yardstick) for split in SPLITS)
    gap = None if chosen is None or held_out is None else chosen - held_out
    return {**row, "validation_minus_test": gap}


def _prompt(text: str) -> dict[str, Any]:
    return {"prompt": text, "prompt_chars": len(text)}


def _figure(row: Mapping[str, Any], yardstick: str) -> float | None:
    value: float | None = row["spearman" if yardstick == "Spearman" else "mean"]
    return value


def as_text(results: Sequence[Mapping[str, Any]]) -> str:
    """Lay the figures out as one table."""
    names = ("validation", "test [95%]", "gain on test [95%]", "val-test", "calls", "tokens", "chars")
    lines = [f"{'run':<22}{'':<7}" + "".join(f"{name:>{width}}" for name, width in zip(names, _WIDTHS, strict=True))]
    for result in results:
        found = result["gepa_search"]
        for name in ("start", "ours", "gepa"):
            row = result[name]
            figures = [_figure(row[split], result["yardstick"]) for split in SPLITS]
            gain = (row.get("gain") or {}).get("test")
            cells = (
                number_text(figures[0]),
                number_text(figures[1], row["test"]["low"], row["test"]["high"]),
                str(Figure.of(gain, "+.3f")) if gain else "",
                str(Figure(row["validation_minus_test"], form="+.3f")),
                row.get("calls", ""),
                row.get("tokens", ""),
                row["prompt_chars"],
            )
            first = f"{result['run']:<22}" if name == "start" else " " * 22
            laid_out = (f"{cell:>{width}}" for cell, width in zip(cells, _WIDTHS, strict=True))
            lines.append(f"{first}{name:<7}" + "".join(laid_out))
        apart = result["gepa_minus_ours"]["test"]
        lines.append(f"  GEPA - ours on test: {Figure.of(apart, '+.3f')}")
        lines.append(
            f"  GEPA: {found['reflections']} reflections ({found['failed_reflections']} failed), "
            f"{found['accepted_candidates']} candidates accepted, {found['rollouts']} rollouts "
            f"({found['unscored']} without a score, counted as 0), ended by {found['finish_reason']}"
        )
    return "\n".join(lines)


_WIDTHS = (12, 24, 26, 10, 8, 10, 8)


@says_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Let GEPA run, print the table, write the result."""
    parser = argparse.ArgumentParser(prog="python -m askance.experiments.measured.gepa_beside", description=__doc__)
    parser.add_argument("task", choices=COMMANDS)
    parser.add_argument("--ours", type=Path, nargs="+", required=True, metavar="RUN_DIR", help="finished runs of ours")
    parser.add_argument("--model", help="another way to reach the runs' model; default: as in the run")
    parser.add_argument("--api-base", help="default: as in the run")
    parser.add_argument("--max-concurrency", type=int)
    parser.add_argument("--timeout", type=float, help="seconds that one call may take")
    parser.add_argument("--retries", type=int)
    parser.add_argument("--reflection-temperature", type=float, default=ReflectionSettings.temperature)
    parser.add_argument("--reflection-max-tokens", type=int, default=ReflectionSettings.max_tokens)
    parser.add_argument("-o", "--output", type=Path, help="default: results/gepa_beside_TASK.json")
    options = parser.parse_args(arguments)
    logging.basicConfig(format="%(message)s", level=logging.INFO)
    reflecting = ReflectionSettings(options.reflection_temperature, options.reflection_max_tokens)
    reached = {name: getattr(options, name) for name in ("api_base", "max_concurrency", "timeout", "retries")}
    results = []
    for directory in options.ours:
        if not directory.is_dir():
            raise InputError(f"{directory}: there is no such run directory.")
        results.append(compare(options.task, directory, model=options.model, reflecting=reflecting, **reached))
    output = options.output or RESULTS / f"gepa_beside_{options.task}.json"
    write_result(output, {"task": options.task, "runs": results})
    print(as_text(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
