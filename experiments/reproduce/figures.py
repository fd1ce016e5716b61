"""The papers' pictures from results: violins, scatters, growth of the pool, convergence of the EIG.

    python -m askance.experiments.reproduce.figures qags.json selection.json --figures pictures

Read are the JSON results of the commands here and of ``askance select``. No model is asked. Every picture is written as
PNG and as SVG. Cost and quality of judges and the phi of questions are drawn by ``askance report``.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...prompts.errors import InputError
from ..command_line import says_errors
from .charts import (
    convergence,
    growth,
    save,
    scatter_against_people,
    score_table,
    style,
    violins_by_dimension,
    violins_by_system,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_FEWEST_SYSTEMS = 2


def pictures(result: Mapping[str, Any]) -> Iterator[tuple[str, Figure]]:
    """Every picture that a result has the numbers for, with its name; to be used within ``style()``."""
    name = str(result.get("dataset", "data"))
    if result.get("human"):
        data = score_table(result)
        yield f"{name}_violins_by_dimension", violins_by_dimension(data)
        if len(data.by_system(data.human)) >= _FEWEST_SYSTEMS:
            yield f"{name}_violins_by_system", violins_by_system(data)
        for dimension in data.dimensions if data.judges else ():
            yield f"{name}_scatter_{dimension}", scatter_against_people(data, dimension)
    if result.get("convergence"):
        yield f"{name}_eig_convergence", convergence(result)
    if result.get("pool"):
        yield f"{name}_pool_growth", growth(result["pool"], name)


def draw(result: Mapping[str, Any], directory: Path) -> list[Path]:
    """Draw what a result has the numbers for; the files that were written.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    with style():
        return [path for name, figure in pictures(result) for path in save(figure, directory, _file_name(name))]


def draw_into(directory: Path | None, result: Mapping[str, Any]) -> None:
    """Draw if a directory is named, and name the written files on standard error."""
    if directory is not None:
        for path in draw(result, directory):
            print(path, file=sys.stderr)


def read_result(path: Path) -> dict[str, Any]:
    """Read a result to draw; one without a name gets the name of its file.

    Raises:
        InputError: The file is missing, or holds no result.
    """
    if path.suffix == ".jsonl":
        raise InputError(f"{path}: verdicts are drawn by askance report {path}.")
    try:
        result = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read as JSON ({error}).") from None
    if not isinstance(result, dict):
        raise InputError(f"{path}: a result is one JSON object.")
    return {"dataset": path.stem, **result}


@says_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Draw from files."""
    parser = argparse.ArgumentParser(
        prog="python -m askance.experiments.reproduce.figures",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("results", nargs="+", type=Path, help="JSON results and selections")
    parser.add_argument("--figures", type=Path, required=True, metavar="DIR", help="where the pictures go")
    given = parser.parse_args(arguments)
    for path in given.results:
        written = draw(read_result(path), given.figures)
        if not written:
            raise InputError(f"{path}: there is nothing in it that a picture is known for.")
        for each in written:
            print(each)
    return 0


def _file_name(name: str) -> str:
    return re.sub(r"[^\w.-]+", "_", name)


if __name__ == "__main__":
    raise SystemExit(main())
