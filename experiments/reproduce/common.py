"""Shared parts of the commands: options, data with its checklist, scores published with it, and scorers to train."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...evaluation.compare.compare import compare
from ...evaluation.evaluate import evaluate
from ...evaluation.scoring import human_targets
from ...evaluation.verdict_table import tabulate
from ...models.base import Model
from ...prompts.checklist import Checklist, load_checklist
from ...prompts.errors import BudgetExceededError, CoverageError
from ...prompts.examples import Example, documents
from ...prompts.verdicts import Verdict
from ...stats.correlation import correlate, statistic_dict
from ...stats.phi import phi_matrix, relatedness
from ...stats.resampling import Resampling
from ...training.train import train
from ..command_line import write_result
from ..datasets import load_rated
from ..datasets.rated import DIMENSIONS, split_summeval

CHECKLISTS = Path(__file__).parent / "checklists"
PUBLISHED = "unieval"
"""Metadata field of some files, with the scores published by UniEval's authors."""
Further = Callable[[Mapping[str, Any]], dict[str, Any]]
COMPARED = ("temperature", "repeat", "resamples", "limit")
"""Options that are passed to the comparison."""
_LONG = ("ratings", "human", "common", "systems", "documents", "published")
"""Fields that are written to a file, but not to standard output."""


def add_common(parser: argparse.ArgumentParser) -> None:
    """Add the options of every command: seed, output, model, and its server, limits and budgets."""
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("-o", "--output", type=Path, help="JSON file; default: standard output")
    parser.add_argument("--model", default="local/qwen2.5-coder-1.5b-instruct", help="provider/model")
    parser.add_argument("--api-base", help="address of an OpenAI-compatible server, for openai/NAME")
    parser.add_argument("--max-concurrency", type=int, default=16, help="calls at once; 1 for a small server")
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds that one call may take")
    parser.add_argument("--call-budget", type=int, help="cap on bought calls")
    parser.add_argument("--cost-budget", type=float, help="US dollars")


def endpoint_options(given: argparse.Namespace, *more: str) -> dict[str, Any]:
    """Return the options of the endpoint, the seed and ``more`` as settings, without those that were not given."""
    names = ("api_base", "seed", "max_concurrency", "timeout", "call_budget", "cost_budget", *more)
    return {name: value for name in names if (value := getattr(given, name)) is not None}


def parser(doc: str, judges: str, *, temperature: float, repeat: int) -> argparse.ArgumentParser:
    """Return a parser with the options of every command that compares judges."""
    made = argparse.ArgumentParser(description=doc, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    made.add_argument("dataset", choices=list(DIMENSIONS))
    made.add_argument("--data", help="the file, as its authors publish it; without one: from the Hugging Face hub")
    made.add_argument("--part", choices=["all", "development", "test"], default="all", help="SummEval's split")
    made.add_argument(
        "--checklist", help="default: a short one of ours; `askance questions` writes one as the paper does"
    )
    made.add_argument("--judge", default=judges, type=lambda text: text.split(","), help="judges, with commas")
    made.add_argument("--limit", type=int, help="only the first so many examples")
    made.add_argument("--temperature", type=float, default=temperature)
    made.add_argument("--repeat", type=int, default=repeat)
    made.add_argument("--resamples", type=int, default=2000)
    made.add_argument(
        "--no-model", action="store_true", help="ask none: people's scores, and published ones that the file carries"
    )
    add_common(made)
    return made


def run(
    given: argparse.Namespace,
    paper: Mapping[str, Any],
    *,
    model: Any = None,
    further: Further | None = None,
    **more: Any,
) -> dict[str, Any]:
    """Judge and compare, and add the paper's figures and the published scores; ``further`` computes more from the
    comparison.

    Raises InputError for bad data or settings, AskanceError if the data cannot be loaded, the endpoint is down or a cap
    was reached, and CoverageError if the judges have no scored example in common; the result is written all the same.
    """
    examples = load_rated(given.dataset, given.data)
    if given.part != "all":
        development, test = split_summeval(examples, seed=given.seed)
        examples = development if given.part == "development" else test
    dimensions = DIMENSIONS[given.dataset]
    result = {
        "dataset": given.dataset,
        "part": given.part,
        "paper": paper,
        "published_unieval": published_scores(examples, dimensions, given.seed),
        "published": published(examples, dimensions),
        "documents": dict(zip([each.id for each in examples], documents(examples) or [], strict=False)),
        "systems": {example.id: example.system for example in examples if example.system is not None},
    }
    if given.no_model:
        result |= _people_only(given, examples)
    else:
        result |= _judged(given, examples, model or given.model, more)
        result |= further(result) if further is not None else {}
    short = {name: value for name, value in result.items() if name not in _LONG}
    write_result(given.output, short if given.output is None else result)
    if not result["common"]:
        raise CoverageError("There is no example that every judge scored, so there is nothing to compare.")
    return result


def _judged(
    given: argparse.Namespace, examples: Sequence[Example], model: Any, more: Mapping[str, Any]
) -> dict[str, Any]:
    comparison = compare(
        examples,
        model=model,
        judges=given.judge,
        checklist=_checklist(given),
        dimensions=DIMENSIONS[given.dataset],
        **endpoint_options(given, *COMPARED),
        **more,
    )
    result = comparison.to_dict(ratings=True)
    if "binary" in given.judge and not more.get("no_cache"):
        result |= _phi(given, examples, model, more)
    return result


def _checklist(given: argparse.Namespace) -> str:
    return given.checklist or str(CHECKLISTS / f"{given.dataset}.yaml")


def _phi(given: argparse.Namespace, examples: Sequence[Example], model: Any, more: Mapping[str, Any]) -> dict[str, Any]:
    """Return phi of the judge `binary`, question by question, from the comparison's answers in the store."""
    checklist = load_checklist(_checklist(given))
    options = endpoint_options(given, *COMPARED) | {"call_budget": 0}
    options.pop("cost_budget", None)
    try:
        evaluation = evaluate(examples, checklist=checklist, model=model, **options, **more)
    except BudgetExceededError:
        return {"phi": None, "phi_reason": "some answers are missing, and none is bought for this"}
    return {"phi": phi_by_dimension(examples, evaluation.verdicts, checklist)}


def _people_only(given: argparse.Namespace, examples: Sequence[Example]) -> dict[str, Any]:
    dimensions = DIMENSIONS[given.dataset]
    kept = list(examples)[: given.limit]
    targets = human_targets(kept, load_checklist(CHECKLISTS / f"{given.dataset}.yaml"))
    return {
        "dimensions": list(dimensions),
        "common": [example.id for example in kept],
        "human": {name: dict(each) for name, each in targets.wanted.items()},
        "ratings": {},
    }


def published(examples: Sequence[Example], dimensions: Sequence[str]) -> dict[str, Any]:
    """Return the UniEval scores of a file by example and dimension; nothing if the file has none."""
    scores_by_example = {
        example.id: {name: scores[name] for name in dimensions if scores.get(name) is not None}
        for example in examples
        if (scores := example.metadata.get(PUBLISHED))
    }
    return {"UniEval (T5)": scores_by_example} if scores_by_example else {}


def published_scores(examples: Sequence[Example], dimensions: Sequence[str], seed: int = 42) -> dict[str, Any]:
    """Return the correlations of a file's UniEval scores with people: a check of the statistics without a model."""
    by_dimension = {}
    for dimension in dimensions:
        scores = [(example.metadata.get(PUBLISHED) or {}).get(dimension) for example in examples]
        if any(score is not None for score in scores):
            human = [example.human_score(dimension) for example in examples]
            correlations = correlate(scores, human, Resampling(documents(examples), seed=seed))
            by_dimension[dimension] = {
                name: statistic_dict(getattr(correlations, name)) for name in ("spearman", "kendall", "pearson")
            }
    return by_dimension


def phi_by_dimension(examples: Sequence[Example], verdicts: Sequence[Verdict], checklist: Checklist) -> dict[str, Any]:
    """Return by dimension: yes-rates, phi of each pair of questions (None: undefined), mean phi, weak pairs' share."""
    ids = [question.id for question in checklist.questions]
    answers = tabulate(examples, checklist, verdicts).answers.reshape(-1, len(ids))
    columns = {question: place for place, question in enumerate(ids)}
    matrix = phi_matrix(ids, answers)
    by_dimension = {}
    for name in checklist.dimensions:
        questions = [question.id for question in checklist.questions if question.dimension == name]
        part = matrix.only(questions)
        related = relatedness(part)
        rates: Mapping[str, float | None] = {question: _rate(answers[:, columns[question]]) for question in questions}
        by_dimension[name] = {
            "questions": questions,
            "yes_rates": rates,
            "values": [[None if value != value else value for value in row] for row in part.values.tolist()],
            "mean": related.mean,
            "weak_share": related.weak_share,
            "reason": related.reason,
        }
    return by_dimension


def _rate(column: Any) -> float | None:
    known = column[~np.isnan(column)]
    return float(known.mean()) if len(known) else None


# --- scorers trained for the tables of LMUnit's losses ---

ARMS = {
    "cross-entropy": (1.0, 0.0, 0.0),
    "squared error": (0.0, 1.0, 0.0),
    "preference": (0.0, 0.0, 1.0),
    "all three": (1.0, 1.0, 1.0),
}
ALL = "all three"


def train_scorer(
    given: argparse.Namespace,
    examples: Sequence[Example],
    checklist: Checklist,
    folder: Path,
    seed: int,
    weights: tuple[float, float, float],
    verdicts: Any = None,
    pairs: Any = None,
    author: Model | None = None,
) -> Any:
    """Train a scorer with these loss weights; an ``author`` writes and judges contrasts for the preference loss."""
    names = ("epochs", "batch_size", "learning_rate", "longest", "levels", "precision", "patience", "resamples")
    settings = {name: getattr(given, name) for name in names}
    if author is not None and weights[2]:
        settings |= {"writer": author, "judge_model": author, "contrasts": given.contrasts, "no_cache": True}
    return train(
        examples,
        checklist=checklist,
        output=folder,
        base=given.base,
        verdicts=verdicts,
        preferences=pairs,
        seed=seed,
        loss_weights=weights,
        trust_verdicts=True,  # the experiments compare scorers with and without verdicts themselves
        **settings,
    )


def training_of(found: Mapping[str, Any]) -> dict[str, Any]:
    """Summarise the cost of a training and its losses on validation."""
    curve, items = found["curve"], Counter[str]()
    for row in found["mixture"]["rows"]:
        items[row["kind"]] += row["training"]
    return {
        "training_items": dict(items),
        "cpu_seconds": curve["cpu_seconds"],
        "cpu_ms_a_verdict": found["speed"]["cpu_ms"],
        "mean_tokens": found["speed"]["mean_tokens"],
        "cut_share": found["cut"]["share"],
        "best_epoch": curve["best_epoch"],
        "validation": [each["loss"] for each in curve["validation"]],
    }


def by_document(examples: Sequence[Example]) -> Resampling:
    """Return a resampling that draws whole documents, each with all of its outputs."""
    return Resampling([each.metadata["document"] for each in examples])
