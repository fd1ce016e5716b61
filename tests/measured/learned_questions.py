"""The gain of a judge that learns questions from reviewers' comments, or from labels alone.

Run ``python -m tests.measured.learned_questions --data release_notes --seed 0`` (the embedded 1.5B model
judges and writes; some ten minutes a run on two cores). Each run is ``align --update questions --max-iterations 3``
from one neutral question; ``--arm without`` leaves the comments out, and people's scores (``--data qags --people DIR``)
have none; ``--more`` takes 300 outputs in place of 150. Every run adds its line to the result file.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from askance.experiments.command_line import RESULTS, says_errors, write_result
from askance.experiments.datasets import load_rated
from askance.memory.result_file import RunRecord
from askance.memory.run_directory import RunDirectory
from askance.models.progress import Silent
from askance.optimizer.loop import run_job
from askance.optimizer.modes import align
from askance.prompts.errors import InputError
from askance.prompts.examples import Example, load_examples

MADE_UP = RESULTS.parent / "made_up"
DATA = {
    "workshop": Path(str(files("askance.prompts") / "demo" / "align")),
    **{name: MADE_UP / name for name in ("release_notes", "front_desk", "news_summaries", "guest_reviews")},
}

PEOPLE = {"qags": "qags_cnndm.jsonl", "topical_chat": "topical_chat.jsonl", "summeval": "summeval_6systems.jsonl"}
"""Files with people's scores, which are not part of this project."""
ASKED = RESULTS.parent / "people"
"""Prompt and checklist of each of them in a folder of its name: one neutral question on one dimension."""
RESULT = RESULTS / "learned_questions.json"
MODEL = "local/qwen2.5-coder-1.5b-instruct"
SETTINGS: dict[str, Any] = {"update": "questions", "max_iterations": 3, "explain": "never"}
ARMS = ("with", "without")
EXAMPLES = 150
"""Outputs of a run: as many as ``examples.jsonl`` has."""
MORE = "more_examples.jsonl"
"""A file beside ``examples.jsonl`` with as many more outputs of the same kind."""


def examples_of(data: str, people: Path | None, *, more: bool) -> tuple[Path, list[Example]]:
    """The folder of prompt and checklist, and the outputs.

    Raises:
        InputError: People's scores are asked for and nobody says where they are, or more outputs where there are none.
    """
    if data in PEOPLE:
        if people is None:
            raise InputError(f"--data {data} needs --people DIR, the directory of {PEOPLE[data]}.")
        return ASKED / data, load_rated(data, people / PEOPLE[data])[: 2 * EXAMPLES if more else EXAMPLES]
    examples = list(load_examples(DATA[data] / "examples.jsonl"))
    if more:
        examples += load_examples(DATA[data] / MORE)
    return DATA[data], examples


def one_run(
    data: str,
    seed: int,
    arm: str,
    model: str,
    directory: Path,
    settings: dict[str, Any],
    people: Path | None = None,
    *,
    more: bool = False,
) -> dict[str, Any]:
    """One run, as a line of the result."""
    folder, examples = examples_of(data, people, more=more)
    if arm == "without":
        examples = [each.model_copy(update={"comment": ()}) for each in examples]
    chosen = SETTINGS | settings | {"seed": seed, "no_cache": True}  # calls are counted
    job = align.prepare(examples, folder / "checklist.yaml", model, folder / "prompt.md", chosen)
    began = time.monotonic()
    done = run_job(job, RunDirectory(directory), Silent())
    minutes = (time.monotonic() - began) / 60
    return line(done.record) | {
        "data": data,
        "seed": seed,
        "arm": arm,
        "outputs": len(examples),
        "model": model,
        "settings": settings,
        "minutes": round(minutes, 1),
    }


def line(record: RunRecord) -> dict[str, Any]:
    """Summarise a run in one row."""
    first, best, gain = record.baseline.test, record.best.test, record.gain

    def figures(measure: Any) -> dict[str, Any] | None:
        return measure and {name: _short(getattr(measure, name)) for name in ("spearman", "low", "high", "n")}

    def area(measure: Any) -> float | None:
        return None if measure is None or measure.auc is None else _short(measure.auc.value)

    def difference(found: Any) -> dict[str, Any] | None:
        return found and {name: _short(getattr(found, name)) for name in ("value", "low", "high", "p_value", "n")}

    return {
        "changed": record.changed,
        "start": figures(first),
        "accepted": figures(best),
        "area_under_curve": {"start": area(first), "accepted": area(best)},
        "gain_validation": difference(gain.validation),
        "gain_test": difference(gain.test),
        "questions": [
            {
                "text": each.criterion,
                "sees": each.sees,
                "comments": list(each.comments),
                "effect": _short(each.effect),
                "worth_on_test": difference(each.worth.test),
            }
            for each in record.learned
        ],
        "proposed": len(record.questions),
        "refused": [each.reason for each in record.rejected_edits],
        "calls": record.calls,
        "tokens": record.tokens,
    }


def _short(value: Any) -> Any:
    return round(value, 4) if isinstance(value, float) else value


@says_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is asked for; lines of other runs in the result file stay."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", choices=[*DATA, *PEOPLE], default=list(DATA))
    parser.add_argument("--people", type=Path, help="directory of the files with people's scores, for those data sets")
    parser.add_argument("--seed", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--arm", nargs="+", choices=ARMS, default=list(ARMS))
    parser.add_argument("--more", action="store_true", help=f"twice as many outputs, those of {MORE} too")
    parser.add_argument("--model", default=MODEL)
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE", help="other settings of align")
    parser.add_argument(
        "--runs", type=Path, required=True, help="directory of the runs; one that is there is gone on with"
    )
    parser.add_argument("--output", type=Path, default=RESULT)
    given = parser.parse_args(arguments)
    settings = {name: json.loads(value) for name, _, value in (each.partition("=") for each in given.set)}
    for arm in given.arm:
        for seed in given.seed:
            for data in given.data:
                extra = "".join(f"-{name}-{value}" for name, value in sorted(settings.items())) + "-more" * given.more
                place = given.runs / f"{data}-{seed}-{arm}{extra}"
                row = one_run(data, seed, arm, given.model, place, settings, given.people, more=given.more)
                known = json.loads(given.output.read_text()) if given.output.is_file() else {"runs": []}
                same = ("data", "seed", "arm", "outputs", "model", "settings")
                others = [each for each in known["runs"] if any(each[name] != row[name] for name in same)]
                command = f"python -m {__spec__.name} --runs DIR"
                write_result(given.output, {"command": command, "runs": [*others, row]})
                print(f"{data} {seed} {arm}: {row['start']} {row['accepted']} {row['gain_test']}", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
