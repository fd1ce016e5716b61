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
from typing import Any

import numpy as np

from ...evaluation.evaluate import evaluate
from ...evaluation.scoring import yes_rates
from ...evaluation.verdict_table import tabulate
from ...models.base import Model
from ...prompts.checklist import Checklist, load_checklist
from ...prompts.examples import Example, documents
from ...prompts.rows import column
from ...stats.correlation import correlate, statistic_dict
from ...stats.differences import difference_dict, paired_difference
from ...stats.resampling import Resampling, Vector
from ..command_line import RESULTS, machine, says_errors, write_result
from ..datasets.registry import load_rated
from ..measured.learned_questions import ASKED, MODEL, PEOPLE

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
    table = tabulate(examples, pairs, found.verdicts).scores(soft=True)
    worth = dict(zip((each.id for each in pairs.questions), table.T, strict=True))
    yes = yes_rates(found.verdicts)
    people = [each.human_score(pairs.questions[0].dimension) for each in examples]
    resampling = Resampling(documents(examples))

    def row(good: Vector, fault: Vector) -> dict[str, Any]:
        asked = {"good": good, "fault": fault, "both": (good + fault) / 2}
        figures = {way: statistic_dict(correlate(each, people, resampling).spearman) for way, each in asked.items()}
        return {**figures, "fault_less_good": difference_dict(paired_difference(good, fault, people, resampling))}

    names = [each.id for each in pairs.questions if not each.id.endswith(FAULT)]
    return {
        "examples": len(examples),
        "documents": len(set(documents(examples) or column(examples, "id"))),
        "pairs": {
            name: {
                "asked": [pairs.question(name).text, pairs.question(f"{name}{FAULT}").text],
                "share_of_yes": [round(yes[each], 3) for each in (name, f"{name}{FAULT}")],
                **row(worth[name], worth[f"{name}{FAULT}"]),
            }
            for name in names
        },
        "all": row(*(np.mean([worth[f"{name}{end}"] for name in names], axis=0) for end in ("", FAULT))),
        "calls": found.budget.calls,
        "tokens": found.budget.tokens,
    }


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
        folder, examples = ASKED / data, load_rated(data, given.people / PEOPLE[data])[: given.examples]
        row = asked_both_ways(examples, load_checklist(folder / "pairs.yaml"), folder / "prompt.md", given.model)
        known = json.loads(given.output.read_text()) if given.output.is_file() else {"models": {}}
        known["models"].setdefault(given.model, {})[data] = row
        command = f"python -m {__spec__.name} --people DIR --model {given.model}"
        write_result(given.output, {"command": command, "machine": machine(), "models": known["models"]})
        print(data, {name: row["all"][name] for name in ("good", "fault", "both")}, flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
