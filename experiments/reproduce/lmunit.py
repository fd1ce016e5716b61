"""The LMUnit paper's tables for prompted judges, on preference pairs or on human-rated examples.

    python -m askance.experiments.reproduce.lmunit scores llmbar --data llmbar_natural.jsonl --limit 30
    python -m askance.experiments.reproduce.lmunit weights reward_bench --model openai/gpt-4.1-mini

scores    Tables 1, 9 and 12: expected against greedy scores, and P(yes) and yes/no
weights   Tables 14 and 15, upper half: one test, equal weights, learned weights, learned weights by section
query     Table 15, lower half: tests that a model writes for each input
rubric    Table 10: the question alone, with a rubric, with a reference answer
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...optimizer.weights.evidence import Floats, PairFold, codes_of, margins_to_credits, single_split
from ...optimizer.weights.heldout import ACCURACY_RESAMPLES, HeldOutTrial, interval, resample_shares, try_learner
from ...optimizer.weights.judged_pairs import cells, separate_examples, separate_scores
from ...optimizer.weights.learner_choice import Pooling, find_learner
from ...optimizer.weights.score_tables import PreferenceScores
from ...prompts.checklist import Checklist, load_checklist
from ...prompts.errors import InputError
from ...prompts.examples import Example
from ...prompts.formatting import number_text
from ...prompts.preferences import Preference
from ...prompts.verdicts import Verdict
from ..command_line import says_errors, write_result
from ..datasets import PAIRS, RATED, UNIT_TESTED, load_rated
from ..datasets.rated import DIMENSIONS, SCORE
from .common import CHECKLISTS, add_common, endpoint_options
from .unit_tests import (
    KINDS,
    SCALE,
    TESTS_PER_INPUT,
    JudgeAccess,
    Kind,
    Metric,
    TestForm,
    calls_needed,
    direct_row,
    judge,
    judge_access,
    load_sections,
    own_forms,
    variants,
    write_tests,
)

COLUMNS = ("FLASK", "BiGGen-Bench", "InfoBench", "RewardBench", "LFQA")
PAPER: dict[str, dict[str, Any]] = {
    "scores": {
        "table": "12: a trained LMUnit of 70B; FLASK and BiGGen-Bench are Pearson, the others accuracies",
        "weighted": dict(zip(COLUMNS, (0.7203, 0.6769, 0.8900, 0.9156, 0.7615), strict=True)),
        "not weighted": dict(zip(COLUMNS, (0.6939, 0.6580, 0.8662, 0.7024, 0.6846), strict=True)),
        "Table 1": {
            "GPT-4o": dict(zip(COLUMNS, (0.69, 0.65, 0.928, 0.846, 0.7654), strict=True)),
            "Claude-3.5 Sonnet": dict(zip(COLUMNS, (0.6725, 0.6183, 0.9158, 0.8423, 0.7724), strict=True)),
            "LMUnit 8B": dict(zip(COLUMNS, (0.6002, 0.6446, 0.9126, 0.8323, 0.7154), strict=True)),
        },
        "Table 9": {
            "LMUnit Llama 3.3 70B": dict(zip(COLUMNS, (0.7309, 0.6779, 0.8943, 0.9022, 0.7615), strict=True)),
            "LMUnit Qwen 2.5 72B": dict(zip(COLUMNS, (0.7385, 0.6956, 0.8867, 0.9113, 0.7385), strict=True)),
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
DECAY = 0.8
"""Weight of each query-level test, relative to the one before it (LMUnit, Table 15)."""
Row = dict[str, Any]


@says_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Run one table."""
    given = _parser().parse_args(arguments)
    run(given, given.model)
    return 0


def run(given: argparse.Namespace, model: Any) -> dict[str, Any] | None:
    """Judge and write the table; with ``--dry-run`` print the number of calls and return None. Raises InputError for
    bad data or settings, and AskanceError if the endpoint is down or a cap was reached."""
    by = judge_access(model, scale=tuple(given.scale), store=given.cache, **endpoint_options(given))
    figures = _rated(given, by) if given.dataset in RATED else _pairs(given, by)
    if figures is None:
        return None
    name = model if isinstance(model, str) else model.name
    result = {"table": given.table, "dataset": given.dataset, "model": name, "paper": PAPER[given.table], **figures}
    write_result(given.output, result)
    print(as_text(result), file=sys.stderr)
    return result


def as_text(result: Mapping[str, Any]) -> str:
    """Return the rows as a few lines of text."""
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
    figures = head | {"rows": scores_table(scores_by_kind, first, given.seed)}
    if {"expected", "said"} <= scores_by_kind.keys():
        figures["expected_less_said"] = gain(scores_by_kind["expected"], scores_by_kind["said"], given.seed)
    return figures | budget.to_dict()


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
    if given.dataset in UNIT_TESTED and not given.checklist:
        forms = own_forms(given.dataset, examples, with_all=given.table == "scores")
        tests: Any = "one of its own for each example"
    else:
        checklist = load_checklist(given.checklist or str(CHECKLISTS / f"{given.dataset}.yaml"))
        shared = variants(checklist, given.dataset) if given.table == "rubric" else {"": checklist}
        forms, tests = {name: [(examples, form)] for name, form in shared.items()}, _shown(checklist)
    kinds: list[Kind] = [given.kind] if given.table == "rubric" else list(given.kinds)
    ways = [(name, TestForm(some, test, kind)) for name in forms for kind in kinds for some, test in forms[name]]
    if _only_counted(given, [form for _, form in ways], by):
        return None
    judged, budget = judge([form for _, form in ways], by)
    found: dict[tuple[str, Kind], tuple[Checklist, list[Verdict]]] = {}
    for (name, form), verdicts in zip(ways, judged, strict=True):
        found.setdefault((name, form.kind), (form.checklist, []))[1].extend(verdicts)
    metric: Metric = "accuracy" if given.dataset == "infobench" else "pearson"
    dimensions = DIMENSIONS.get(given.dataset, (SCORE,))
    rows = [
        direct_row(name or KINDS[kind], TestForm(examples, test, kind), verdicts, dimensions, given.seed, metric)
        for (name, kind), (test, verdicts) in found.items()
    ]
    head = {"of": "rated examples", "n": len(examples), "metric": metric, "tests": tests}
    return head | {"rows": rows, **budget.to_dict()}


def _only_counted(given: argparse.Namespace, asked: Sequence[TestForm], by: JudgeAccess) -> bool:
    if given.dry_run:
        print(f"{calls_needed(asked, by)} calls")
    return bool(given.dry_run)


def _shown(checklist: Checklist) -> list[dict[str, str]]:
    return [{"id": each.id, "text": each.text} for each in checklist.questions]


# --- rows: the share of pairs in the right order, section by section, with intervals ---


def scores_table(scores: Mapping[str, PreferenceScores], first_test: str, seed: int) -> list[Row]:
    """Return Table 12: for each kind of score, all tests with equal weights, and ``first_test`` alone, which stands for
    the paper's single test. ``scores`` maps each kind to scores of the same tests. Only pairs with scores of every kind
    are compared."""
    common = set.intersection(*({*each.ids} for each in scores.values())) if scores else set()
    rows = []
    for kind, prefs in scores.items():
        differences, keep = _decided(prefs, common)
        groups = [prefs.groups[row] for row in keep]
        sections = [prefs.sections[row] or "all" for row in keep]
        single = differences[:, prefs.tests.index(first_test)]
        named = KINDS.get(kind, kind)  # type: ignore[call-overload]
        for label, margins in ((f"all {len(prefs.tests)} tests", differences.mean(axis=1)), (first_test, single)):
            row = _row(f"{named}: {label}", margins_to_credits(margins), sections, groups, seed)
            rows.append(row | {"kind": kind, "tests": label, "left_out": len(prefs.left_out)})
    return rows


def _decided(prefs: PreferenceScores, among: set[str]) -> tuple[Floats, list[int]]:
    """Return the score differences of the decided pairs ``among`` these ids, and their rows."""
    pairs = prefs.differences()
    rows = [row for row, name in enumerate(prefs.ids) if name in among and not pairs.is_tie[row]]
    return pairs.differences[rows], rows


def gain(better: PreferenceScores, than: PreferenceScores, seed: int) -> Row:
    """Return the difference in accuracy of two kinds of score with equal weights, on the same pairs."""
    both = [_decided(prefs, {*better.ids} & {*than.ids}) for prefs in (better, than)]
    credits = [margins_to_credits(differences.mean(axis=1)) for differences, _ in both]
    groups = [better.groups[row] for row in both[0][1]]
    if not groups:
        return {"value": None, "reason": "no decided pair has both kinds of score"}
    shares = resample_shares(np.column_stack(credits), codes_of(groups), ACCURACY_RESAMPLES, seed)
    low, high = interval(shares[:, :1] - shares[:, 1:])
    value = float(credits[0].mean() - credits[1].mean())
    return {"value": value, "low": float(low[0]), "high": float(high[0]), "n": len(credits[0])}


def weights_table(
    prefs: PreferenceScores, first_test: str, learners: Sequence[str], *, splits: int, seed: int
) -> list[Row]:
    """Return Table 14 and the upper half of Table 15: single test, equal and learned weights, on held-out halves.

    The paper learns with ``bayes``, which takes minutes a fit, and learns each section apart. Other learners use the
    same pairs. Quick learners are also run with pooled weights, which draw a small section towards the whole.
    ``first_test`` stands for the paper's single test. ``splits`` is the number of random halves, the first by ``seed``;
    a row is about the held-out pairs of all halves. Raises InputError for an unknown learner, and for too few pairs to
    hold out half of them.
    """
    pairs = prefs.differences()
    halves = [each for number in range(splits) for each in single_split(pairs.groups, 0.5, seed + number)]
    tested = np.concatenate([half.test[~pairs.is_tie[half.test]] for half in halves])
    groups = [prefs.groups[row] for row in tested]
    sections = [prefs.sections[row] or "all" for row in tested]
    single = margins_to_credits(pairs.differences[tested, prefs.tests.index(first_test)])
    uniform = try_learner(find_learner("uniform"), pairs, halves, pooling="none", seed=seed).credits
    assert uniform is not None, "equal weights need no pairs"
    rows = [
        _row(f"single test ({first_test})", single, sections, groups, seed),
        _row("unweighted tests", uniform, sections, groups, seed),
    ]
    parts = len(set(prefs.sections))
    for name in learners:
        whole = try_learner(find_learner(name), pairs, halves, pooling="none", seed=seed)
        rows.append(_learned(f"learned weights, {name}", whole, sections, groups, seed))
        if parts > 1:
            rows += _by_section(prefs, name, halves, sections, groups, seed)
    return rows


def _by_section(
    prefs: PreferenceScores, name: str, halves: list[PairFold], sections: list[str], groups: list[str], seed: int
) -> list[Row]:
    pairs = prefs.differences("section")
    count = len(prefs.section_names("section"))
    ways: tuple[tuple[Pooling, str], ...] = (("none", "apart"),)
    if find_learner(name).quick:
        ways = (*ways, ("partial", "pooled"))
    rows = []
    for pooling, word in ways:
        trial = try_learner(find_learner(name), pairs, halves, sections=count, pooling=pooling, seed=seed)
        rows.append(_learned(f"learned weights by section ({word}), {name}", trial, sections, groups, seed))
    return rows


def query_table(
    pairs: Sequence[Preference],
    tests: Mapping[str, Checklist],
    cells: Mapping[tuple[str, str], float | None],
    seed: int,
) -> tuple[list[Row], list[str]]:
    """Return the lower half of Table 15, for tests written for each input: the first test, equal and decaying weights.

    ``tests`` maps a pair's id to its tests; ``cells`` maps example (``PAIR/a``, ``PAIR/b``) and test to a score. Return
    the rows, and the ids of decided pairs that were left out.
    """
    techniques: tuple[tuple[str, float | None], ...] = (
        ("single test (the first)", None),
        ("unweighted tests", 1.0),
        (f"decaying weights, {DECAY}^n", DECAY),
    )
    kept, left_out, margins = [], [], []
    for pair in pairs:
        if pair.preferred == "tie":
            continue
        ids = [question.id for question in tests[pair.id].questions] if pair.id in tests else []
        sides = [[cells.get((f"{pair.id}/{side}", test)) for test in ids] for side in ("a", "b")]
        if not ids or any(score is None for side in sides for score in side):
            left_out.append(pair.id)
            continue
        difference = np.array(sides[0], dtype=float) - np.array(sides[1], dtype=float)
        margins.append([_weighed(difference, base) * (1 if pair.preferred == "a" else -1) for _, base in techniques])
        kept.append(pair)
    if not kept:
        return [{"technique": name, "all": _nothing(), "sections": {}} for name, _ in techniques], left_out
    credits = margins_to_credits(np.array(margins))
    sections = [pair.section or "all" for pair in kept]
    groups = [pair.group or pair.input for pair in kept]
    rows = [_row(name, credits[:, at], sections, groups, seed) for at, (name, _) in enumerate(techniques)]
    return rows, left_out


def _weighed(difference: Floats, base: float | None) -> float:
    if base is None:
        return float(difference[0])
    weights = base ** np.arange(len(difference))
    return float(difference @ weights / weights.sum())


def _learned(name: str, trial: HeldOutTrial, sections: Sequence[str], groups: Sequence[str], seed: int) -> Row:
    if trial.credits is None:
        return {"technique": name, "all": {"accuracy": None, "reason": trial.failure}, "sections": {}}
    return _row(name, trial.credits, sections, groups, seed)


def _row(name: str, credits: Floats, sections: Sequence[str], groups: Sequence[str], seed: int) -> Row:
    """Return a technique's accuracy on all pairs and in each section, and the sections' mean, as in the paper."""
    by_section = {}
    for section in dict.fromkeys(sections):
        rows = [place for place, each in enumerate(sections) if each == section]
        by_section[section] = _cell(credits[rows], [groups[place] for place in rows], seed)
    every = _cell(credits, groups, seed)
    row: Row = {"technique": name, "all": every, "sections": by_section}
    if len(by_section) > 1:
        row["mean_of_sections"] = float(np.mean([cell["accuracy"] for cell in by_section.values()]))
    return row


def _cell(credits: Floats, groups: Sequence[str], seed: int) -> Row:
    if not len(credits):
        return _nothing()
    low, high = interval(resample_shares(credits[:, None], codes_of(groups), ACCURACY_RESAMPLES, seed))
    return {
        "accuracy": float(credits.mean()),
        "low": float(low[0]),
        "high": float(high[0]),
        "n": len(credits),
        "right": int((credits == 1.0).sum()),
        "ties": int((credits == 0.5).sum()),
        "wrong": int((credits == 0.0).sum()),
    }


def _nothing() -> Row:
    return {"accuracy": None, "reason": "no decided pair has all its scores"}


# --- the command line ---


def _kinds(text: str) -> list[Kind]:
    kinds = [kind.strip() for kind in text.split(",")]
    for kind in kinds:
        if kind not in KINDS:
            raise argparse.ArgumentTypeError(f"there is no kind '{kind}' (there are: {', '.join(KINDS)})")
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
    made.add_argument(
        "--scale",
        nargs=2,
        type=int,
        default=SCALE,
        metavar=("LOW", "HIGH"),
        help="of expected and likeliest scores; default: 0 6, the paper's",
    )
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
