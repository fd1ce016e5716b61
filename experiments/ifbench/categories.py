"""BinEval's Tables 3 and 4 of a finished run on IFBench: strict accuracy of the test part, and by category.

python -m askance.experiments.ifbench.categories RUN
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ...prompts.errors import InputError
from ...prompts.verdicts import Verdict, read_verdicts
from ..command_line import says_errors, write_result

PAPER = {"strict": (34.6, 38.0), "format": (52.0, 69.0), "count": (63.0, 31.0)}
"""Per cent before and after self-update, as far as the paper's text has them (§5.4.2, A.2.4)."""


def by_category(verdicts: Iterable[Verdict]) -> dict[str, Any]:
    """Strict accuracy of one prompt's outputs, in shares.

    A category is the text before the colon of a constraint's type (count, words, format, ratio, sentence, repeat,
    custom). An output passes where all of its constraints are met. A category counts constraints, as an output may have
    several of different ones. Unchecked constraints are counted apart and are in neither.

    Returns:
        ``strict`` (outputs), ``categories`` and ``constraints`` (by type), each a share with its number, and
        ``unchecked``, the number of outputs without a verdict on all of their constraints.
    """
    outputs: dict[str, list[bool | None]] = {}
    categories: dict[str, list[bool]] = {}
    types: dict[str, list[bool]] = {}
    for verdict in verdicts:
        outputs.setdefault(verdict.example, []).append(verdict.answer)
        if verdict.answer is not None:
            constraint = verdict.question.partition("#")[0]
            categories.setdefault(constraint.partition(":")[0], []).append(verdict.answer)
            types.setdefault(constraint, []).append(verdict.answer)
    checked = [all(answers) for answers in outputs.values() if None not in answers]
    return {
        "strict": _share(checked),
        "categories": {name: _share(answers) for name, answers in sorted(categories.items())},
        "constraints": {name: _share(answers) for name, answers in sorted(types.items())},
        "unchecked": len(outputs) - len(checked),
    }


def of_run(run: Path) -> dict[str, Any]:
    """Accuracy on the test part for each judged version of the prompt, the start first. Raises InputError where the run
    has no verdicts on test outputs, or they are not about IFBench's constraints."""
    files = sorted((run / "verdicts").glob("[0-9][0-9][0-9]-test.jsonl"))
    if not files:
        raise InputError(f"{run}: no verdicts on test outputs are there; a finished run of askance tune has them.")
    by_version = {}
    for file in files:
        verdicts = read_verdicts(file)
        if strange := [
            verdict.question for verdict in verdicts if verdict.answer is not None and ":" not in verdict.question
        ]:
            raise InputError(f"{file}: '{strange[0]}' is no constraint of IFBench; give a run with its checker.")
        by_version[f"version {int(file.name[:3])}"] = by_category(verdicts)
    return by_version


def _share(answers: Sequence[bool]) -> dict[str, Any]:
    return {"share": sum(answers) / len(answers) if answers else None, "n": len(answers)}


@says_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Write the tables of one run as JSON."""
    parser = argparse.ArgumentParser(prog="python -m askance.experiments.ifbench.categories", description=__doc__)
    parser.add_argument("run", type=Path, help="run directory of askance tune with IFBench's checker")
    parser.add_argument("-o", "--output", type=Path, help="JSON file; default: standard output")
    given = parser.parse_args(arguments)
    write_result(given.output, {"paper, per cent before and after": PAPER, "versions": of_run(given.run)})
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
