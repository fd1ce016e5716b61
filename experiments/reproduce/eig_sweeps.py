"""The EIG paper's sweeps: size k, proposing and judging models, kinds of answers, and ways to fill questionnaires.

    python -m askance.experiments.reproduce.eig_sweeps k topical_chat --data tc_usr_data.json -o k.json

``k`` (Appendix A.4): κ_self and agreement with people by the number of questions. ``grid`` (Table 8): both figures for
each pair of a proposing and estimating model with a judging model. ``levels`` (Appendix A.2): stability of the ranking
of questions with yes/no answers and with scales. ``filling`` (Figure 10): one call an answer, compared with all answers
on an example in one reply. ``convergence`` (Figure 4(b)): how each question's information and the ranking settle as
examples are added, with people's ratings. With --verdicts or --no-model it asks no model. With --no-model each question
is "is the published score on this dimension above this quantile?".
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...evaluation.compare.compare import compare
from ...evaluation.evaluate import evaluate
from ...optimizer.selection.analysis import answers_from_verdicts, equal_groups
from ...optimizer.selection.information import Floats, one_hot, pooled_information, ranking_convergence
from ...optimizer.selection.inputs import human_scores
from ...optimizer.selection.select import select
from ...optimizer.selection.selected import Selection
from ...prompts.checklist import Checklist, load_checklist
from ...prompts.errors import InputError
from ...prompts.examples import Example
from ...prompts.verdicts import read_verdicts
from ...stats.correlation import kendall
from ..command_line import says_errors, write_result
from ..datasets import load_rated
from ..datasets.rated import DIMENSIONS
from .common import CHECKLISTS, add_common, endpoint_options, published

Row = dict[str, Any]
GROUPS = 5
"""Number of groups of people's ratings."""
QUANTILES = (0.2, 0.4, 0.6, 0.8)
STEPS, FEWEST = 12, 10
"""How many sample sizes m are measured, and the smallest."""
PAPER: Mapping[str, Any] = {
    "k": "Appendix A.4: κ_self is level up to five questions and falls beyond, agreement rises and falls; k = 5",
    "grid": "Table 8, GPT-4.1 judges: κ_self .7786 and agreement .6810 where it proposes, .7695 to .7804 and .6728 to "
    ".6806 where five others do",
    "levels": "Appendix A.2: more options give less stable rankings; yes/no answers the most stable",
    "filling": "Figure 10: all answers and the overall score in one reply",
    "convergence": "Figure 4(b): the information of each question by the number of examples",
}
"""Figures of the paper."""


@says_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Run one sweep."""
    given = _parser().parse_args(arguments)
    run(given, {})
    return 0


def run(given: argparse.Namespace, models: Mapping[str, Any], **more: Any) -> Row:
    """Run the sweep and write it; ``models`` maps names to model objects, if any. Raises InputError for bad data,
    candidates or settings, and AskanceError if the endpoint is down or a cap was reached."""
    examples = rated_as_a_whole(load_rated(given.dataset, given.data)[: given.limit])

    def by(name: str) -> Any:
        return models.get(name, name)

    rows = SWEEPS[given.sweep](given, examples, by, endpoint_options(given) | more)
    result = {"sweep": given.sweep, "dataset": given.dataset, "examples": len(examples), "paper": PAPER[given.sweep]}
    write_result(given.output, result | {"rows": rows})
    return result | {"rows": rows}


def rated_as_a_whole(examples: Sequence[Example]) -> list[Example]:
    """Return the rated examples with one overall score: the mean over the dimensions that people rated."""
    _, scores = human_scores(examples)
    return [
        example.model_copy(update={"human": {"overall": (float(score),)}})
        for example, score in zip(examples, scores, strict=True)
        if score == score  # NaN is not equal to itself
    ]


def sweep_k(
    given: argparse.Namespace, examples: Sequence[Example], by: Callable[[str], Any], options: Row
) -> list[Row]:
    """Return a row for each size and judge. As in the paper, questions are ranked one by one, by their information."""
    chosen = _chosen(given, examples, by(given.model), options, candidates=_candidates(given), k=1)
    order = [each.id for each in sorted(chosen.questions, key=lambda each: each.rank_top)]
    rows = []
    for k in given.sizes:
        if k > len(order):
            raise InputError(f"--sizes {k}: there are only {len(order)} candidates.")
        rows += _agreement(given, examples, by(given.model), options, _first(chosen.candidates, order[:k]), {"k": k})
    return rows


def sweep_models(
    given: argparse.Namespace, examples: Sequence[Example], by: Callable[[str], Any], options: Row
) -> list[Row]:
    """Return a row for each proposing model, judging model and judge."""
    rows = []
    for proposer in given.proposers:
        chosen = _chosen(given, examples, by(proposer), options, k=given.k)
        for judge in given.evaluators or [given.model]:
            about = {"proposer": proposer, "model": judge}
            rows += _agreement(given, examples, by(judge), options, chosen.checklist, about)
    return rows


def sweep_levels(
    given: argparse.Namespace, examples: Sequence[Example], by: Callable[[str], Any], options: Row
) -> list[Row]:
    """Return a row for each number of answers: bits, and Kendall's tau of the ranking from m examples with the full
    ranking."""
    rows = []
    for levels in given.levels:
        more = {"candidates": _candidates(given), "answer_levels": levels, "k": given.k}
        found = _chosen(given, examples, by(given.model), options, **more)
        bits = [each.bits for each in found.questions if each.bits is not None]
        steps = [{"m": each.m, "tau": each.tau} for each in found.convergence.steps]
        spread = float(np.ptp(bits)) if bits else None
        rows.append({"levels": levels, "bits": _mean(bits), "spread": spread, "calls": _calls(found), "ranking": steps})
    return rows


def sweep_filling(
    given: argparse.Namespace, examples: Sequence[Example], by: Callable[[str], Any], options: Row
) -> list[Row]:
    """Return a row for each way to fill; ``tau`` and ``same`` compare the second way with the first."""
    ways = ("apart", "together")
    chosen = {
        way: _chosen(given, examples, by(given.model), options, candidates=_candidates(given), filling=way, k=given.k)
        for way in ways
    }
    return filling_rows(chosen["apart"], chosen["together"])


def filling_rows(apart: Selection, together: Selection) -> list[Row]:
    """Return calls and bits of both ways, Spearman of the kept questions with people, and likeness of the rankings.

    ``tau`` is Kendall's tau of the two rankings of all candidates; ``same`` is the share of kept questions in common.
    """
    first, second = ([each.bits or 0.0 for each in found.questions] for found in (apart, together))
    kept = [{each.id for each in found.checklist.questions} for found in (apart, together)]
    likeness = {"tau": kendall(first, second).value, "same": len(kept[0] & kept[1]) / len(kept[0])}
    return [
        {
            "filling": way,
            "calls": _calls(found),
            "bits": _mean(bits),
            "spearman": found.agreement["chosen"].spearman.value if found.agreement else None,
            "kept": sorted(each.id for each in found.checklist.questions),
            **(likeness if way == "together" else {}),
        }
        for way, found, bits in (("apart", apart, first), ("together", together, second))
    ]


def sweep_convergence(
    given: argparse.Namespace, examples: Sequence[Example], by: Callable[[str], Any], options: Row
) -> list[Row]:
    """Return one row: bits of each question for growing m, and the agreement of the rankings with the full ranking."""
    if given.no_model:
        questions, answers = _thresholds(given, examples)
    else:
        questions, answers = _judged(given, examples, by(given.model), options)
    codes = equal_groups(human_scores(examples)[1], GROUPS)
    levels = one_hot(codes, int(codes.max()) + 1)
    settled = ranking_convergence(answers, levels, k=min(given.k, len(questions)), seed=given.seed)
    information = information_over(answers, levels, questions, given.seed)
    return [{"information": information, "convergence": settled.to_dict()}]


def information_over(answers: Floats, ratings: Floats, questions: Sequence[str], seed: int) -> dict[str, Any]:
    """Return the bits of each question on the first m examples of one random order, for growing m; None: undefined."""
    order = np.random.default_rng(seed).permutation(len(answers))
    first = min(FEWEST, len(answers))
    sizes = sorted({round(float(m)) for m in np.geomspace(first, len(answers), STEPS)})
    bits = [pooled_information(answers[order[:m]], ratings[order[:m]], seed=seed).bits for m in sizes]
    by_question = {
        name: [None if np.isnan(each[place]) else float(each[place]) for each in bits]
        for place, name in enumerate(questions)
    }
    return {"m": sizes, "bits": by_question}


def _judged(
    given: argparse.Namespace, examples: Sequence[Example], model: Any, options: Row
) -> tuple[list[str], Floats]:
    checklist = _candidates(given)
    ids = [question.id for question in checklist.questions]
    if given.verdicts is not None:
        names = {example.id for example in examples}
        verdicts: Any = [each for each in read_verdicts(given.verdicts, questions=ids) if each.example in names]
        if not verdicts:
            raise InputError(f"{given.verdicts}: no verdict in it is about an example of the data.")
    else:
        plain = [example.model_copy(update={"human": {}}) for example in examples]
        verdicts = evaluate(plain, checklist=checklist, model=model, **options).verdicts
    return ids, answers_from_verdicts(verdicts, examples, checklist, "hard")[0]


def _thresholds(given: argparse.Namespace, examples: Sequence[Example]) -> tuple[list[str], Floats]:
    dimensions = DIMENSIONS[given.dataset]
    columns: dict[str, Any] = {}
    for scores in published(examples, dimensions).values():
        for dimension in dimensions:
            column = np.array([scores.get(each.id, {}).get(dimension, np.nan) for each in examples], dtype=float)
            for quantile in QUANTILES if not np.isnan(column).any() else ():
                columns[f"{dimension} > {quantile:.0%}"] = column > np.quantile(column, quantile)
    varied_columns = {name: column for name, column in columns.items() if 0 < column.mean() < 1}
    if not varied_columns:
        raise InputError(
            f"{given.data or given.dataset}: there are no published scores in it for every example. "
            "Leave out --no-model."
        )
    return list(varied_columns), one_hot(np.stack(list(varied_columns.values()), axis=1).astype(np.int64), 2)


SWEEPS: Mapping[str, Callable[..., list[Row]]] = {
    "k": sweep_k,
    "grid": sweep_models,
    "levels": sweep_levels,
    "filling": sweep_filling,
    "convergence": sweep_convergence,
}


def _chosen(given: argparse.Namespace, examples: Sequence[Example], model: Any, options: Row, **more: Any) -> Selection:
    """Choose questions one by one by the judge's own ratings, as in the paper."""
    how = {"choice": "top", "rated_by": "judge", "sample": max(len(examples), 4)}
    return select(examples, model=model, progress=False, **options | how | more)


def _agreement(
    given: argparse.Namespace, examples: Sequence[Example], model: Any, options: Row, checklist: Checklist, about: Row
) -> list[Row]:
    """Return a row for each judge: κ_self and agreement with people, both with intervals, and the cost."""
    found = compare(
        examples,
        model=model,
        judges=given.judges,
        checklist=checklist,
        dimensions=["overall"],
        repeat=2,
        temperature=given.temperature,
        resamples=given.resamples,
        progress=False,
        **options,
    ).to_dict()
    rows = []
    for row in found["judges"]:
        on = row["dimensions"]["overall"]
        figures = {name: on.get(name) for name in ("kappa_self", "observed_agreement")}
        questions = [each.id for each in checklist.questions]
        rows.append(about | {"judge": row["kind"], **figures, "cost": row["cost"], "questions": questions})
    return rows


def _first(candidates: Checklist, ids: Sequence[str]) -> Checklist:
    questions = tuple(candidates.question(each).model_copy(update={"weight": 1.0}) for each in ids)
    return Checklist(task=candidates.task, questions=questions, answers=candidates.answers)


def _candidates(given: argparse.Namespace) -> Checklist:
    return load_checklist(given.checklist or str(CHECKLISTS / f"{given.dataset}.yaml"))


def _calls(found: Selection) -> int:
    return found.budget.calls + found.budget.cached_calls


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None


def _whole_numbers(text: str) -> list[int]:
    return [int(each) for each in text.split(",")]


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="python -m askance.experiments.reproduce.eig_sweeps",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    names: Callable[[str], list[str]] = lambda text: text.split(",")  # noqa: E731
    made.add_argument("sweep", choices=list(SWEEPS))
    made.add_argument("dataset", choices=list(DIMENSIONS))
    made.add_argument("--data", help="the file; without one: from the Hugging Face hub")
    made.add_argument("--checklist", help="candidates; default: a short checklist of ours")
    made.add_argument("--verdicts", type=Path, help="of `convergence`: answers of `askance evaluate -o`")
    made.add_argument("--no-model", action="store_true", help="of `convergence`: thresholds of published scores")
    made.add_argument("--sizes", type=_whole_numbers, default=[1, 2, 3, 5], help="numbers of questions, with commas")
    made.add_argument("--levels", type=_whole_numbers, default=[2, 3, 5], help="numbers of answers, with commas")
    made.add_argument("--judges", type=names, default=["binary", "questionnaire", "filled"], help="with commas")
    made.add_argument("--proposers", type=names, default=[], help="models of `grid` that propose, with commas")
    made.add_argument("--evaluators", type=names, default=[], help="models of `grid` that judge; default: --model")
    made.add_argument("-k", type=int, default=5, help="size of the questionnaire")
    made.add_argument("--limit", type=int, help="only the first so many examples")
    made.add_argument("--temperature", type=float, default=1.0)
    made.add_argument("--resamples", type=int, default=2000)
    add_common(made)
    return made


if __name__ == "__main__":
    raise SystemExit(main())
