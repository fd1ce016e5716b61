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

    A category is what stands before the colon of a constraint's type (count, words, format, ratio, sentence, repeat,
    custom). An output passes where all of its constraints are met; a category counts constraints, as an output may
    have several of different ones. What could not be checked is counted apart and is in neither.

    Returns:
        ``strict`` (outputs), ``categories`` and ``constraints`` (by type), each a share with its number, and
        ``unchecked``, the number of outputs without a verdict on all of their constraints.
    """
    outputs: dict[str, list[bool | None]] = {}
    categories: dict[str, list[bool]] = {}
    types: dict[str, list[bool]] = {}
    for each in verdicts:
        outputs.setdefault(each.example, []).append(each.answer)
        if each.answer is not None:
            constraint = each.question.partition("#")[0]
            categories.setdefault(constraint.partition(":")[0], []).append(each.answer)
            types.setdefault(constraint, []).append(each.answer)
    checked = [all(answers) for answers in outputs.values() if None not in answers]
    return {
        "strict": _share(checked),
        "categories": {name: _share(answers) for name, answers in sorted(categories.items())},
        "constraints": {name: _share(answers) for name, answers in sorted(types.items())},
        "unchecked": len(outputs) - len(checked),
    }


def of_run(run: Path) -> dict[str, Any]:
    """The test part under each version of the prompt that it was judged with, the start first. Raises InputError where
    the run has no verdicts on test outputs, or they are not of IFBench's constraints."""
    files = sorted((run / "verdicts").glob("[0-9][0-9][0-9]-test.jsonl"))
    if not files:
        raise InputError(f"{run}: no verdicts on test outputs are there; a finished run of askance tune has them.")
    found = {}
    for file in files:
        verdicts = read_verdicts(file)
        if strange := [each.question for each in verdicts if each.answer is not None and ":" not in each.question]:
            raise InputError(f"{file}: '{strange[0]}' is no constraint of IFBench; give a run with its checker.")
        found[f"version {int(file.name[:3])}"] = by_category(verdicts)
    return found


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
