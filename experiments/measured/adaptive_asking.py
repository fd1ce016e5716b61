"""How many questions need not be asked, and how far scores are then off: the same verdicts, asked one after another.

Run ``python -m askance.experiments.measured.adaptive_asking`` (seconds). Verdicts are replayed, none is bought, in the order of
the checklist. A simulated judge answers ten questions about 400 outputs, each P(yes) a noisy reading of one quality.
With ``--summeval FOLDER`` also the first expert's thresholded scores as 16 yes/no answers about 600 summaries; with
``--data``, ``--checklist`` and ``--verdicts`` any verdicts of ``askance evaluate -o``.

For each rule: the share of verdicts that were not asked for, the largest error a score may have (the bound that is
reported with it) and the largest and mean that it has, and how many pass marks come out differently (none can).
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from ...agents.evaluator import Evaluator
from ...evaluation.adaptive import evaluate_adaptively
from ...evaluation.scoring import score_examples
from ...evaluation.verdict_table import given_verdicts
from ...optimizer.selection.information import Floats
from ...prompts.checklist import Checklist, Question, load_checklist
from ...prompts.examples import Example, load_examples
from ...prompts.verdicts import Verdict
from ...stats.correlation import spearman
from ..command_line import RESULTS, says_errors, write_result
from .eig_selection import summeval

RESULT = RESULTS / "adaptive_asking.json"
RULES: tuple[dict[str, float], ...] = (
    {"stop_within": 0.05},
    {"stop_within": 0.1},
    {"stop_within": 0.2},
    {"pass_mark": 0.5},
    {"pass_mark": 0.8},
)


class Replay:
    """Stands in for an evaluator and gives the verdicts that are there."""

    def __init__(self, checklist: Checklist, verdicts: Sequence[Verdict]) -> None:
        """``verdicts`` answer every question of the checklist about every example."""
        self.checklist = checklist
        self.model = None
        self._verdicts: dict[tuple[str, str], list[Verdict]] = {}
        for verdict in verdicts:
            self._verdicts.setdefault((verdict.example, verdict.question), []).append(verdict)

    async def judge(self, examples: Sequence[Example]) -> list[Verdict]:
        """The verdicts on the questions of the present checklist."""
        asked = ((example.id, question.id) for example in examples for question in self.checklist.questions)
        return [verdict for key in asked for verdict in self._verdicts[key]]


def measure(examples: Sequence[Example], checklist: Checklist, verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """What each rule saves and costs."""
    whole = [each.overall for each in score_examples(examples, checklist, verdicts)]
    replay = cast(Evaluator, Replay(checklist, verdicts))
    return {
        "examples": len(examples),
        "questions": len(checklist.questions),
        "rules": [_rule(replay, examples, whole, rule) for rule in RULES],
    }


def _rule(
    replay: Evaluator, examples: Sequence[Example], whole: Sequence[float | None], rule: Mapping[str, float]
) -> dict[str, Any]:
    cuts = [rule["pass_mark"]] if "pass_mark" in rule else []
    found = asyncio.run(evaluate_adaptively(replay, examples, tolerance=rule.get("stop_within"), cuts=cuts))
    pairs = [
        (told.score, full)
        for told, full in zip(found.scores, whole, strict=True)
        if told.score is not None and full is not None
    ]
    told, full = np.array(pairs).T
    off = np.abs(told - full)
    rank = spearman(told, full)
    return {
        **rule,
        "not_asked": round(found.not_asked / (found.asked + found.not_asked), 4),
        "bound": None if found.largest_error is None else round(found.largest_error, 4),
        "largest_error": round(float(off.max()), 4),
        "mean_error": round(float(off.mean()), 4),
        "spearman_with_all": None if rank.value is None else round(rank.value, 4),
        **({"other_side": int(((told >= cuts[0]) != (full >= cuts[0])).sum())} if cuts else {}),
    }


def simulated(outputs: int = 400, questions: int = 10, seed: int = 0) -> Floats:
    """P(yes) of a judge whose questions all read one quality with noise; shape (outputs, questions)."""
    rng = np.random.default_rng(seed)
    quality = rng.normal(0.5, 1.5, (outputs, 1))
    log_odds = quality + rng.normal(0, 1, questions) + rng.normal(0, 1.5, (outputs, questions))
    p_yes: Floats = 1 / (1 + np.exp(-log_odds))
    return p_yes


def as_verdicts(p_yes: Floats) -> tuple[list[Example], Checklist, list[Verdict]]:
    """A table of P(yes), shape (examples, questions), as examples, a checklist of equal weights and verdicts."""
    checklist = Checklist(questions=tuple(Question(id=f"q{n}", text=f"{n}?") for n in range(p_yes.shape[1])))
    examples = [Example(id=f"e{n}", input="", output="") for n in range(len(p_yes))]
    verdicts = [
        Verdict(f"e{row}", f"q{column}", "simulated", "", bool(p > 0.5), float(p), "hard")
        for (row, column), p in np.ndenumerate(p_yes)
    ]
    return examples, checklist, verdicts


@says_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and write the result file."""
    parser = argparse.ArgumentParser(prog="python -m askance.experiments.measured.adaptive_asking", description=__doc__)
    parser.add_argument("--summeval", type=Path, help="folder with summeval_6systems.jsonl")
    parser.add_argument("--data", help="examples that the verdicts are about")
    parser.add_argument("--checklist", help="questions that the verdicts answer")
    parser.add_argument("--verdicts", help="verdicts file")
    parser.add_argument("-o", "--output", type=Path, default=RESULT)
    options = parser.parse_args(arguments)
    given = [options.data, options.checklist, options.verdicts]
    if any(given) and not all(given):
        parser.error("--data, --checklist and --verdicts go together.")
    found = {"simulated": measure(*as_verdicts(simulated()))}
    if options.summeval:
        found["summeval_first_expert"] = measure(*as_verdicts(summeval(options.summeval).scores))
    if options.verdicts:
        found[Path(options.verdicts).name] = measure(*_given(options.data, options.checklist, options.verdicts))
    for name, each in found.items():
        for rule in each["rules"]:
            print(f"{name}: {rule}")
    write_result(
        options.output,
        {
            "command": f"python -m askance.experiments.measured.adaptive_asking{' --summeval FOLDER' if options.summeval else ''}",
            "data": found,
        },
    )
    return 0


def _given(data: str, checklist: str, verdicts: str) -> tuple[list[Example], Checklist, list[Verdict]]:
    every, questions = load_examples(data), load_checklist(checklist)
    there = given_verdicts(verdicts, every, questions)
    judged = {verdict.example for verdict in there}
    return [example for example in every if example.id in judged], questions, there


if __name__ == "__main__":
    sys.exit(main())
