"""What each part of learning questions is worth: switched off one by one, in the simulated world (house rules, comments).

Run ``python -m askance.experiments.measured.ablations`` (some half an hour of processor time for 40 seeds). The world, and what
is true in it, are those of ``simulated_world.py``; every row is taken on the same seeds, so the difference to the
first row is paired.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from ...evaluation import calibration_fit
from ...optimizer.contest import Contest
from ...optimizer.questions import choice, learner, racing
from ...optimizer.questions.candidates import Standing
from ...optimizer.questions.choice import Chooser
from ...optimizer.questions.learner import QuestionLearner
from ...optimizer.questions.proposers import CommentProposer
from ..command_line import RESULTS, write_result
from .simulated_world import ARMS, FIRST_SEED, run_once, summarise

RESULT = RESULTS / "ablations.json"
SEEDS = 40
ARM = replace(ARMS["house rules: auto"], options={"update": "questions", "mode": "each"})
"""Questions alone: what happens to the prompt where none is learned is another matter."""
NEVER = 2.0
"""No rank correlation reaches it."""
MANY = 10_000


async def _not_beside(*_: Any) -> dict[Any, Any]:
    return {}


PARTS: dict[str, Callable[[], list[Any]]] = {
    "everything": list,
    "validation alone decides and teaches nothing": lambda: [
        patch.object(QuestionLearner, "crossed", property(lambda _: False, lambda *_: None))
    ],
    "two folds that test each other": lambda: [patch.object(learner, "FOLDS", 1)],
    "comments are read alone": lambda: [patch.object(CommentProposer, "_read_beside", _not_beside)],
    "yes is always the good answer": lambda: [patch.object(Standing, "good", property(lambda _: "yes"))],
    "all candidates are judged on all examples": lambda: [
        patch.object(racing, "RACED", MANY),
        patch.object(racing, "STEPS", ()),
    ],
    "all that are raced are judged on all examples": lambda: [patch.object(racing, "STEPS", ())],
    "questions with the same verdicts may join": lambda: [
        patch.object(racing, "SAME_VERDICTS", NEVER),
        patch.object(racing, "ALIKE_VERDICTS", NEVER),
    ],
    "a comment may fill all places": lambda: [patch.object(racing, "OF_ONE", MANY)],
    "no question is set aside for its effect": lambda: [
        patch.object(Standing, "problem", None),
        patch.object(Standing, "rank", (0.0, 0.0)),
    ],
    "each question is read alone": lambda: [patch.object(calibration_fit, "leaning", lambda *_: 0.0)],
    "what speaks for itself by less than a standard error may join": lambda: [
        patch.object(Standing, "is_chance", False)
    ],
    "answers are half bad at 1.75 deviations": lambda: [
        patch.object(calibration_fit, "OUTSTANDING", 1.75),
        patch.object(calibration_fit, "STEEPNESS", 1.5),
    ],
    "verdicts are taken as they are": lambda: [patch.object(choice, "fit_accepted", lambda *_: None)],
    "all questions of the start stay": lambda: [patch.object(Chooser, "_fates", lambda *_: {})],
    "idle questions of the start stay": lambda: [patch.object(Contest, "may_go_without", lambda *_: False)],
}
"""What is switched off, and how."""


def measure(part: str, seeds: Sequence[int]) -> dict[str, Any]:
    """The runs without one part."""
    with ExitStack() as stack:
        for each in PARTS[part]():
            stack.enter_context(each)
        runs = [run_once(ARM, seed) for seed in seeds]
    names = ("runs", "mean_gain", "captured", "truly_below_start", "worst_gain", "questions", "calls")
    row = summarise(runs)
    return {name: row[name] for name in names} | {"gains": [round(run.end - run.start, 4) for run in runs]}


def line(part: str, row: Mapping[str, Any]) -> str:
    """A row of the table in the documentation."""
    gain = row["mean_gain"]
    return (
        f"| {part} | {row['captured']['share']:.0%} | {gain['mean']:+.3f} ({gain['low']:+.3f} to {gain['high']:+.3f}) "
        f"| {row['truly_below_start']}, worst {row['worst_gain']:+.2f} | {row['questions']:.1f} | {row['calls']:,.0f} |"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Switch off what is asked for, and keep what it came to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=SEEDS, help="worlds a row")
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=list(PARTS), metavar="PART")
    parser.add_argument("-o", "--output", type=Path, default=RESULT)
    given = parser.parse_args(arguments)
    numbers = range(FIRST_SEED, FIRST_SEED + given.seeds)
    header = {
        "command": f"python -m {__spec__.name} --seeds {given.seeds}",
        "arm": asdict(ARM),
        "seeds": [numbers[0], numbers[-1]],
    }
    found: dict[str, Any] = {}
    for part in given.parts:
        found[part] = measure(part, numbers)
        print(line(part, found[part]), flush=True)
        write_result(given.output, header | {"parts": found})


if __name__ == "__main__":
    main()
