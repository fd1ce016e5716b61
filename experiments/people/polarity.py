"""Whether it helps to ask for the fault: the same three things asked both ways, held against people's scores.

Run ``python -m askance.experiments.people.polarity --people DIR --model MODEL`` (some 720 verdicts on long texts a data
set). The data are not part of this project: ``DIR`` holds their files. Both ways are asked of the same outputs; figures are
Spearman with people, intervals are drawn by whole documents, and the share of yes says how readily the judge agrees.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from ...evaluation.evaluate import evaluate
from ...models.base import Model
from ...prompts.checklist import Checklist, load_checklist
from ...prompts.examples import Example
from ...stats.correlation import Column, correlate, statistic_dict
from ...stats.differences import difference_dict, paired_difference
from ...stats.resampling import Resampling, Vector
from ..command_line import RESULTS, machine, says_errors, write_result
from ..measured.learned_questions import MODEL, PEOPLE, people_examples

RESULT = RESULTS / "polarity.json"
FAULT = "_fault"
"""How the id of a question that looks for the fault ends; before it stands the id of the one that looks for its good side."""


def asked_both_ways(
    examples: Sequence[Example], pairs: Checklist, prompt: Path, model: str | Model, **options: Any
) -> dict[str, Any]:
    """Figures of each pair of questions, and of the means of all that look for the good and of all that look for the fault.

    Args:
        examples: Outputs with people's scores on the dimension of the questions.
        pairs: Questions ``x`` and ``x_fault``, in pairs.
        prompt: The judge's prompt.
        model: The judge.
        options: Settings of ``evaluate``.
    """
    found = evaluate(examples, checklist=pairs, prompt=prompt, model=model, explain="never", **options)
    place = {each.id: number for number, each in enumerate(examples)}
    said = {each.id: np.full(len(examples), np.nan) for each in pairs.questions}
    for verdict in found.verdicts:
        if verdict.p_yes is not None:
            said[verdict.question][place[verdict.example]] = verdict.p_yes
    worth = {
        each.id: each.p_good(1.0) * said[each.id] + each.p_good(0.0) * (1 - said[each.id]) for each in pairs.questions
    }
    people = [fmean(each.human[pairs.questions[0].dimension]) for each in examples]
    resampling = Resampling(groups=[str(each.metadata["document"]) for each in examples])

    def row(good: Vector, fault: Vector) -> dict[str, Any]:
        good_column, fault_column, both = (_column(each) for each in (good, fault, (good + fault) / 2))
        return {
            "good": _figure(good_column, people, resampling),
            "fault": _figure(fault_column, people, resampling),
            "both": _figure(both, people, resampling),
            "fault_less_good": difference_dict(paired_difference(good_column, fault_column, people, resampling)),
        }

    names = [each.id for each in pairs.questions if not each.id.endswith(FAULT)]
    return {
        "examples": len(examples),
        "documents": len({str(each.metadata["document"]) for each in examples}),
        "pairs": {
            name: {
                "asked": [pairs.question(name).text, pairs.question(f"{name}{FAULT}").text],
                "share_of_yes": [round(float(np.nanmean(said[each] > 0.5)), 3) for each in (name, f"{name}{FAULT}")],
                **row(worth[name], worth[f"{name}{FAULT}"]),
            }
            for name in names
        },
        "all": row(*(np.mean([worth[f"{name}{end}"] for name in names], axis=0) for end in ("", FAULT))),
        "calls": found.budget.calls,
        "tokens": found.budget.tokens,
    }


def _column(values: Vector) -> list[float | None]:
    return [None if value != value else float(value) for value in values]


def _figure(scores: Column, people: Column, resampling: Resampling) -> dict[str, Any]:
    return statistic_dict(correlate(scores, people, resampling).spearman)


@says_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Ask both ways; figures of other data sets and models in the result file stay."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", choices=list(PEOPLE), default=list(PEOPLE))
    parser.add_argument("--people", type=Path, required=True, help="directory of the files with people's scores")
    parser.add_argument("--model", default=MODEL)
    parser.add_argument("--examples", type=int, default=120, help="how many, from the first on")
    parser.add_argument("--output", type=Path, default=RESULT)
    given = parser.parse_args(arguments)
    for data in given.data:
        folder, examples = PEOPLE[data].folder, people_examples(data, given.people, given.examples)
        row = asked_both_ways(examples, load_checklist(folder / "pairs.yaml"), folder / "prompt.md", given.model)
        known = json.loads(given.output.read_text()) if given.output.is_file() else {"models": {}}
        known["models"].setdefault(given.model, {})[data] = row
        command = f"python -m {__spec__.name} --people DIR --model {given.model}"
        write_result(given.output, {"command": command, "machine": machine(), "models": known["models"]})
        print(data, {name: row["all"][name] for name in ("good", "fault", "both")}, flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
