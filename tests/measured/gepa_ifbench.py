"""GEPA beside a run of ``tune`` on IFBench: same generator, rows, splits, starting prompt, official checkers and calls.

Make the run first (``experiments/ifbench/README.md`` says how to write its rows). GEPA, with its own defaults, then buys
as many outputs as the run did outside the test::

    askance tune part-1.jsonl --generator local/qwen2.5-coder-0.5b-instruct --prompt prompt.md --max-iterations 1 \
        --checker askance.experiments.ifbench.run:strict --max-output-tokens 200 --store store.db --run RUN
    python -m tests.measured.gepa_ifbench RUN store.db
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from statistics import fmean
from typing import Any

from askance.bridges.gepa_adapter import generator_adapter
from askance.experiments.command_line import RESULTS, machine, write_result
from askance.memory.run_directory import RunDirectory
from askance.prompts.errors import import_optional
from askance.stats.differences import difference_dict, mean_difference

RESULT = RESULTS / "gepa_beside_ifbench_2.json"
CHECKER = "askance.experiments.ifbench.run:strict"


def compare(run: Path, store: Path) -> dict[str, Any]:
    """Let GEPA do what a finished run of ``tune`` did; each share is of test outputs that pass the official checks."""
    result = json.loads((run / "result.json").read_text(encoding="utf-8"))
    config = RunDirectory(run).read_config()["config"]
    start, ours = (_passed(run, version_) for version_ in (min, max))
    bought = result["calls"] - len(start) - (len(ours) if result["best"] != result["baseline"] else 0)
    with generator_adapter(
        run / "inputs" / "examples.jsonl",
        generator=config["generator"],
        prompt=run / "inputs" / "prompt.md",
        checker=CHECKER,
        max_output_tokens=config["max_output_tokens"],
        store=store,
    ) as adapter:
        found = import_optional("gepa", "gepa", "gepa").optimize(
            adapter.seed_candidate,
            trainset=adapter.splits.development,
            valset=adapter.splits.validation,
            adapter=adapter,
            reflection_lm=adapter.reflection(config["generator"]),
            max_metric_calls=bought,
            stop_callbacks=adapter.stopped,
        )
        scores = adapter.evaluate(adapter.splits.test, found.best_candidate).scores
        theirs = {each.id: score for each, score in zip(adapter.splits.test, scores, strict=True)}
        prompt = adapter.prompt(found.best_candidate).text
    return {
        "command": f"python -m tests.measured.gepa_ifbench {run.name} {store.name}",
        **machine(gepa_version=version("gepa")),
        "generator": config["generator"],
        "outputs": bought,
        "n": len(start),
        "start": fmean(start.values()),
        "ours": fmean(ours.values()),
        "gepa": fmean(theirs.values()),
        "ours_minus_start": _difference(ours, start),
        "gepa_minus_start": _difference(theirs, start),
        "ours_minus_gepa": _difference(ours, theirs),
        "our_validation": {side: result[side]["validation"]["mean"] for side in ("baseline", "best")},
        "gepa_validation": [float(each) for each in found.val_aggregate_scores],
        "our_prompt": result["best"]["prompt"],
        "gepa_prompt": prompt,
    }


def _passed(run: Path, pick: Any) -> dict[str, float]:
    """The share of checks passed by each test output of the first version, or of the last."""
    file = pick((run / "verdicts").glob("[0-9]*-test.jsonl"))
    passed: dict[str, list[bool]] = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        verdict = json.loads(line)
        passed.setdefault(verdict["example"], []).append(verdict["answer"])
    return {name: fmean(map(float, each)) for name, each in passed.items()}


def _difference(one: dict[str, float], other: dict[str, float]) -> dict[str, Any] | None:
    both = [name for name in one if name in other]
    return difference_dict(mean_difference([other[each] for each in both], [one[each] for each in both]))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run GEPA and keep what both came to."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("store", type=Path, help="store of the run; what GEPA buys goes there, too")
    parser.add_argument("-o", "--output", type=Path, default=RESULT)
    given = parser.parse_args(arguments)
    write_result(given.output, compare(given.run, given.store))


if __name__ == "__main__":
    main()
