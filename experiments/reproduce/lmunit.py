"""The LMUnit paper's tables that prompted judges can run, on preference pairs or on human-rated examples.

    python -m askance.experiments.reproduce.lmunit scores llmbar --data llmbar_natural.jsonl --limit 30
    python -m askance.experiments.reproduce.lmunit weights reward_bench --model openai/gpt-4.1-mini

scores   Table 12 (and the pairwise columns of Table 1): expected against greedy scores, and P(yes) and yes/no beside
them weights  Tables 14 and 15, upper half: one test, equal weights, learned weights, learned weights by section query
Table 15, lower half: tests that a model writes for each input rubric   Table 10: the question alone, with a rubric,
with a reference answer
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...optimizer.weights import PreferenceScores
from ...optimizer.weights.judged_pairs import cells, separate_examples, separate_scores
from ...prompts.checklist import Checklist, load_checklist
from ...prompts.errors import InputError
from ...prompts.examples import Example
from ...prompts.formatting import number_text
from ...prompts.preferences import Preference
from ..command_line import says_errors, write_result
from ..datasets import PAIRS, RATED, load_rated
from ..datasets.rated import DIMENSIONS
from .common import CHECKLISTS, add_common, endpoint_options
from .lmunit_tables import gain, query_table, scores_table, weights_table
from .unit_tests import (
    KINDS,
    TESTS_PER_INPUT,
    JudgeAccess,
    Kind,
    TestForm,
    calls_needed,
    direct_row,
    judge,
    judge_access,
    load_sections,
    variants,
    write_tests,
)

PAPER: dict[str, dict[str, Any]] = {
    "scores": {
        "table": "12: a trained LMUnit of 70B; RewardBench and LFQA are accuracies, FLASK and BiGGen-Bench Pearson",
        "weighted": {"RewardBench": 0.9156, "LFQA": 0.7615, "FLASK": 0.7203, "BiGGen-Bench": 0.6769},
        "not weighted": {"RewardBench": 0.7024, "LFQA": 0.6846, "FLASK": 0.6939, "BiGGen-Bench": 0.6580},
        "prompted, Table 1": {
            "GPT-4o": {"RewardBench": 0.846, "LFQA": 0.7654},
            "Claude-3.5 Sonnet": {"RewardBench": 0.8423, "LFQA": 0.7724},
        },
    },
    "weights": {
        "table": "14 and 15: a trained LMUnit of 70B on RewardBench, mean of its four sections, held-out half",
        "single test": 0.916,
        "unweighted tests": 0.910,
        "dataset-level learned weights": 0.922,
        "section-level learned weights": 0.934,
        "Table 14, RewardBench: unweighted, Bayesian optimisation": {
            "LMUnit": [0.9054, 0.9345],
            "prometheus-bgb-8x7b-v2.0": [0.7638, 0.7979],
            "prometheus-8x7b-v2.0": [0.8049, 0.8906],
        },
    },
    "query": {
        "table": "15: tests by Claude 3.5 Sonnet, judged by a trained LMUnit of 70B, mean of RewardBench's sections",
        "single test": 0.848,
        "unweighted tests": 0.818,
        "decaying weights": 0.833,
    },
    "rubric": {
        "table": "10: a trained LMUnit, Pearson x 100 on FLASK and BiGGen-Bench",
        "LMUnit 8B": {"question": [58.35, 56.47], "rubric": [58.20, 61.56], "reference": [58.37, 63.07]},
        "LMUnit 8B, rubric and reference": [60.02, 64.46],
        "LMUnit 70B": {"question": [67.20, 61.01], "rubric": [65.76, 66.39], "reference": [70.01, 65.61]},
        "LMUnit 70B, rubric and reference": [72.03, 67.69],
    },
}
"""Figures of the paper."""


@says_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Run one table."""
    given = _parser().parse_args(arguments)
    run(given, given.model)
    return 0


def run(given: argparse.Namespace, model: Any) -> dict[str, Any] | None:
    """Judge and write the table; only the number of calls with ``--dry-run``, and then nothing is returned.

    Args:
        given: What :func:`main` read.
        model: ``provider/model``, or an object that can be asked.

    Raises:
        InputError: Bad data, checklist, model name or setting.
        AskanceError: The data cannot be had, the endpoint is down, or a cap was reached.
    """
    by = judge_access(model, store=given.cache, **endpoint_options(given))
    found = _rated(given, by) if given.dataset in RATED else _pairs(given, by)
    if found is None:
        return None
    name = model if isinstance(model, str) else model.name
    result = {"table": given.table, "dataset": given.dataset, "model": name, "paper": PAPER[given.table], **found}
    write_result(given.output, result)
    print(as_text(result), file=sys.stderr)
    return result


def as_text(result: Mapping[str, Any]) -> str:
    """The rows in a few lines."""
    lines = [f"{result['n']} {result['of']}, judged by {result['model']}"]
    for row in result["rows"]:
        cell = row["all"]
        value = cell.get("accuracy", cell.get("value"))
        said = cell["reason"] if value is None else number_text(value, cell["low"], cell["high"])
        lines.append(f"  {row['technique']}: {said}" + (f", {cell['ties']} ties" if cell.get("ties") else ""))
    return "\n".join(lines)


def _pairs(given: argparse.Namespace, by: JudgeAccess) -> dict[str, Any] | None:
    pairs = load_sections(given.dataset, given.data, limit=given.limit)
    checklist = load_checklist(given.checklist or "global")
    sides = [example for pair in pairs for example in separate_examples(pair)]
    head = {"of": "preference pairs", "n": len(pairs), "metric": "accuracy", "tests": _shown(checklist)}
    if given.table == "query":
        return _query(given, by, pairs, head)
    if given.table == "rubric":
        rows: list[dict[str, Any]] = []
        forms = variants(checklist, given.checklist or "global")
        asked = [TestForm(sides, form, given.kind) for form in forms.values()]
        if _only_counted(given, asked, by):
            return None
        judged, budget = judge(asked, by)
        for (name, form), verdicts in zip(forms.items(), judged, strict=True):
            scores = separate_scores(pairs, form, verdicts, soft=given.kind != "hard")
            table = scores_table({given.kind: scores}, form.questions[0].id, given.seed)
            rows.append(table[0] | {"technique": name})
        return head | {"kind": given.kind, "rows": rows, **budget.to_dict()}
    kinds: list[Kind] = list(given.kinds) if given.table == "scores" else [given.kind]
    asked = [TestForm(sides, checklist, kind) for kind in kinds]
    if _only_counted(given, asked, by):
        return None
    judged, budget = judge(asked, by)
    scores_by_kind: dict[str, PreferenceScores] = {
        kind: separate_scores(pairs, checklist, verdicts, soft=kind != "hard")
        for kind, verdicts in zip(kinds, judged, strict=True)
    }
    first = checklist.questions[0].id
    if given.table == "weights":
        rows = weights_table(
            scores_by_kind[given.kind], first, given.learner.split(","), splits=given.splits, seed=given.seed
        )
        return head | {"kind": given.kind, "splits": given.splits, "rows": rows, **budget.to_dict()}
    found = head | {"rows": scores_table(scores_by_kind, first, given.seed)}
    if {"expected", "said"} <= scores_by_kind.keys():
        found["expected_less_said"] = gain(scores_by_kind["expected"], scores_by_kind["said"], given.seed)
    return found | budget.to_dict()


def _query(
    given: argparse.Namespace, by: JudgeAccess, pairs: Sequence[Preference], head: Mapping[str, Any]
) -> dict[str, Any] | None:
    inputs = [Example(id=pair.id, input=pair.input, output=pair.output_a) for pair in pairs]
    if given.dry_run:
        most = 2 * TESTS_PER_INPUT * len(pairs)
        print(f"{len(pairs)} calls to write tests and at most {most} to judge")
        return None
    tests, failed = write_tests(inputs, by, given.writer or by.model)
    if not tests:
        raise InputError(f"The model wrote no tests for any input. The first problem: {failed[0]}")
    asked = [TestForm(separate_examples(pair), tests[pair.id], given.kind) for pair in pairs if pair.id in tests]
    judged, budget = judge(asked, by)
    verdicts = [verdict for each in judged for verdict in each]
    rows, left_out = query_table(pairs, tests, cells(verdicts, soft=given.kind != "hard"), given.seed)
    written = sum(len(each.questions) for each in tests.values())
    return {
        **head,
        "tests": f"{written / len(tests):.1f} for each input on average",
        "kind": given.kind,
        "without_tests": failed,
        "left_out": left_out,
        "rows": rows,
        **budget.to_dict(),
    }


def _rated(given: argparse.Namespace, by: JudgeAccess) -> dict[str, Any] | None:
    if given.table not in ("scores", "rubric"):
        raise InputError(
            f"The table '{given.table}' needs preference pairs ({', '.join(PAIRS)}); '{given.dataset}' holds ratings."
        )
    if len(given.data) > 1:
        raise InputError(f"{given.dataset} is read from one file; --data names {len(given.data)}.")
    examples = load_rated(given.dataset, given.data[0] if given.data else None)[: given.limit]
    name = given.checklist or str(CHECKLISTS / f"{given.dataset}.yaml")
    checklist = load_checklist(name)
    forms = variants(checklist, given.dataset) if given.table == "rubric" else {"": checklist}
    kinds: list[Kind] = [given.kind] if given.table == "rubric" else list(given.kinds)
    ways = [(form, kind) for form in forms for kind in kinds]
    asked = [TestForm(examples, forms[form], kind) for form, kind in ways]
    if _only_counted(given, asked, by):
        return None
    judged, budget = judge(asked, by)
    rows = [
        direct_row(form or KINDS[kind], each, verdicts, DIMENSIONS[given.dataset], given.seed)
        for (form, kind), each, verdicts in zip(ways, asked, judged, strict=True)
    ]
    head = {"of": "rated examples", "n": len(examples), "metric": "pearson", "tests": _shown(checklist)}
    return head | {"rows": rows, **budget.to_dict()}


def _only_counted(given: argparse.Namespace, asked: Sequence[TestForm], by: JudgeAccess) -> bool:
    if given.dry_run:
        print(f"{calls_needed(asked, by)} calls")
    return bool(given.dry_run)


def _shown(checklist: Checklist) -> list[dict[str, str]]:
    return [{"id": each.id, "text": each.text} for each in checklist.questions]


def _kinds(text: str) -> list[Kind]:
    kinds = [each.strip() for each in text.split(",")]
    for each in kinds:
        if each not in KINDS:
            raise argparse.ArgumentTypeError(f"there is no kind '{each}' (there are: {', '.join(KINDS)})")
    return kinds  # type: ignore[return-value]


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="python -m askance.experiments.reproduce.lmunit",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("table", choices=list(PAPER))
    made.add_argument("dataset", choices=[*PAIRS, *RATED])
    made.add_argument(
        "--data", nargs="+", default=[], help="file or files; several files of pairs are its sections; else the hub"
    )
    made.add_argument("--checklist", help="tests; default: the ready checklist `global`, or ours for rated data")
    made.add_argument("--limit", type=int, help="so many pairs, spread over the sections, or the first examples")
    made.add_argument("--kinds", type=_kinds, default=list(KINDS), help=f"of `scores`, with commas: {', '.join(KINDS)}")
    made.add_argument("--kind", choices=list(KINDS), default="expected", help="score of the other tables")
    made.add_argument(
        "--learner", default="robust", help="weight learners of `weights`, with commas; the paper's is bayes (minutes)"
    )
    made.add_argument("--splits", type=int, default=1, help="random halves of `weights`; the paper has one")
    made.add_argument("--writer", help="model that writes the tests of `query`; default: the judge")
    made.add_argument("--cache", type=Path, help="file in which answers are kept; default: that of `askance evaluate`")
    made.add_argument("--dry-run", action="store_true", help="only say how many calls are needed")
    add_common(made)
    return made


if __name__ == "__main__":
    raise SystemExit(main())
