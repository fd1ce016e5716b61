"""The EIG paper's Figure 4(b): how the information of each question and their ranking settle as examples are added.

    python -m askance.experiments.reproduce.eig_convergence topical_chat --data tc_usr_data.json -o convergence.json

The questions come from a checklist, answered by the model (or in a file of verdicts); the ratings are people's. With
--no-model each question is "is the published score on this dimension above this quantile?", so nothing is asked.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...evaluation.evaluate import evaluate
from ...optimizer.selection.analysis import answers_from_verdicts, equal_groups
from ...optimizer.selection.information import Floats, one_hot, pooled_information, ranking_convergence
from ...optimizer.selection.inputs import human_scores
from ...prompts.checklist import load_checklist
from ...prompts.errors import InputError
from ...prompts.examples import Example
from ...prompts.verdicts import read_verdicts
from ..command_line import says_errors, write_result
from ..datasets import load_rated
from ..datasets.rated import DIMENSIONS
from .common import CHECKLISTS, add_common, endpoint_options, published

LEVELS = 5
"""Groups of people's ratings."""
QUANTILES = (0.2, 0.4, 0.6, 0.8)
STEPS = 12
FEWEST = 10


@says_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Compute and write."""
    given = _parser().parse_args(arguments)
    run(given, given.model)
    return 0


def run(given: argparse.Namespace, model: Any) -> dict[str, Any]:
    """The bits of each question for growing m, and the agreement of the rankings with the full one. Raises InputError
    for bad data, verdicts or settings, and AskanceError where the endpoint is down, or a cap was reached."""
    examples = load_rated(given.dataset, given.data)[: given.limit]
    if given.no_model:
        questions, answers = _thresholds(given, examples)
    else:
        questions, answers = _judged(given, examples, model)
    name, ratings = human_scores(examples)
    codes = equal_groups(ratings, LEVELS)
    levels = one_hot(codes, int(codes.max()) + 1)
    result = {
        "dataset": given.dataset,
        "examples": len(examples),
        "ratings": name,
        "information": information_over(answers, levels, questions, given.seed),
        "convergence": ranking_convergence(answers, levels, k=min(given.k, len(questions)), seed=given.seed).to_dict(),
    }
    write_result(given.output, result)
    return result


def information_over(answers: Floats, ratings: Floats, questions: Sequence[str], seed: int) -> dict[str, Any]:
    """Bits of each question on the first m examples of one random order, for growing m; None where undefined."""
    order = np.random.default_rng(seed).permutation(len(answers))
    first = min(FEWEST, len(answers))
    sizes = sorted({round(float(m)) for m in np.geomspace(first, len(answers), STEPS)})
    bits = [pooled_information(answers[order[:m]], ratings[order[:m]], seed=seed).bits for m in sizes]
    by_question = {
        name: [None if np.isnan(each[place]) else float(each[place]) for each in bits]
        for place, name in enumerate(questions)
    }
    return {"m": sizes, "bits": by_question}


def _judged(given: argparse.Namespace, examples: Sequence[Example], model: Any) -> tuple[list[str], Floats]:
    checklist = load_checklist(given.checklist or str(CHECKLISTS / f"{given.dataset}.yaml"))
    ids = [question.id for question in checklist.questions]
    if given.verdicts is not None:
        names = {example.id for example in examples}
        verdicts: Any = [each for each in read_verdicts(given.verdicts, questions=ids) if each.example in names]
        if not verdicts:
            raise InputError(f"{given.verdicts}: no verdict in it is about an example of the data.")
    else:
        plain = [example.model_copy(update={"human": {}}) for example in examples]
        verdicts = evaluate(plain, checklist=checklist, model=model, **endpoint_options(given)).verdicts
    return ids, answers_from_verdicts(verdicts, examples, checklist, "hard")[0]


def _thresholds(given: argparse.Namespace, examples: Sequence[Example]) -> tuple[list[str], Floats]:
    dimensions = DIMENSIONS[given.dataset]
    columns: dict[str, Any] = {}
    for scores in published(examples, dimensions).values():
        for dimension in dimensions:
            column = np.array([scores.get(each.id, {}).get(dimension, np.nan) for each in examples], dtype=float)
            for quantile in QUANTILES if not np.isnan(column).any() else ():
                columns[f"{dimension} > {quantile:.0%}"] = column > np.quantile(column, quantile)
    varied = {name: column for name, column in columns.items() if 0 < column.mean() < 1}
    if not varied:
        raise InputError(
            f"{given.data or given.dataset}: there are no published scores in it for every example. "
            "Leave out --no-model."
        )
    return list(varied), one_hot(np.stack(list(varied.values()), axis=1).astype(np.int64), 2)


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="python -m askance.experiments.reproduce.eig_convergence",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("dataset", choices=list(DIMENSIONS))
    made.add_argument("--data", help="the file; without one: from the Hugging Face hub")
    made.add_argument("--checklist", help="the questions; default: a short checklist of ours")
    made.add_argument("--verdicts", type=Path, help="answers of `askance evaluate -o`; nothing is asked")
    made.add_argument("--no-model", action="store_true", help="thresholds of published scores as questions")
    made.add_argument("-k", type=int, default=5, help="size of the questionnaire")
    made.add_argument("--limit", type=int, help="only the first so many examples")
    add_common(made)
    return made


if __name__ == "__main__":
    raise SystemExit(main())
