"""Judges that a person changed: tested on validation, and saved as ``judge-1.yaml``, ``judge-2.yaml`` and so on.

The looks at validation that the person took are counted beside these files, one look for each changed judge.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..evaluation.kept_judge import KeptJudge
from ..memory.by_hand import JudgeChange
from ..memory.run_directory import JUDGE_FILE
from ..optimizer.acceptance import BiasGuard, CorrelationYardstick, PairedAcceptance, Scores
from ..optimizer.options import LoopOptions
from ..prompts.errors import AskanceError, InputError
from ..prompts.examples import Example
from ..prompts.tables import read_rows
from ..prompts.text_files import append_line
from ..stats.differences import Difference, difference_dict
from .found_runs import saving
from .judge_bench import JudgeBench

LOOKS_FILE = "validation-looks.jsonl"
"""File with the looks at validation, in the directory of the run; it only grows."""
SAVED = re.compile(r"judge-(\d+)\.yaml")
USUAL_LEVEL = 0.05
"""Level of the acceptance test if the run's settings have none."""


def judge_files(run: Path) -> list[str]:
    """Return the names of the judges' files in the directory of a run, the run's own first."""
    saved = [(int(found[1]), each.name) for each in run.glob("judge-*.yaml") if (found := SAVED.fullmatch(each.name))]
    return [JUDGE_FILE, *(name for _, name in sorted(saved))]


def save_changed_judge(
    run: Path, before: KeptJudge, changed: KeptJudge, what: Sequence[str], by: str, looked_at: Sequence[str]
) -> Path:
    """Save a changed judge as a new file and return its path; two windows may save at once. ``what`` are the changes
    for its history, one sentence each. ``looked_at`` are hashes of the changed judges whose validation was looked at
    (:class:`.ValidationLooks`). Raises InputError if nothing was changed, AskanceError if the file cannot be
    written."""
    if not what:
        raise InputError("Nothing is changed, so there is nothing to save.")
    change = JudgeChange(
        by=by,
        time=datetime.now(UTC).isoformat(timespec="seconds"),
        of=before.hash,
        what=tuple(what),
        looks=len(looked_at),
        shaped_on_validation=any(each != changed.hash for each in looked_at),
    )
    judge = replace(changed, history=(*before.history, change))
    with saving(run, ".judges.lock"):
        numbers = [int(found[1]) for each in judge_files(run) if (found := SAVED.fullmatch(each))]
        file = run / f"judge-{max(numbers, default=0) + 1}.yaml"
        judge.save(file)
    return file


class ValidationLooks:
    """The looks at one run's validation examples, in all windows and sessions."""

    def __init__(self, run: Path) -> None:
        self.file = run / LOOKS_FILE

    def judges(self) -> list[str]:
        """Return the hashes of the changed judges that were looked at, each once, in order. Raises InputError if the
        file is damaged."""
        if not self.file.is_file():
            return []
        rows = [(number, row) for number, row in read_rows(self.file)]
        if wrong := [number for number, row in rows if not isinstance(row.get("judge"), str)]:
            raise InputError(f"{self.file}, line {wrong[0]}: 'judge' is missing; damaged, or not written by askance.")
        return list(dict.fromkeys(row["judge"] for _, row in rows))

    def add(self, judge: str, what: Sequence[str]) -> int:
        """Count a look at a changed judge and return its number, from 1. A second look at the same judge keeps its
        number. Raises AskanceError if the look cannot be written: then validation must not be shown."""
        known = self.judges()
        if judge in known:
            return known.index(judge) + 1
        time = datetime.now(UTC).isoformat(timespec="seconds")
        try:
            append_line(self.file, {"judge": judge, "time": time, "what": list(what)})
        except OSError as error:
            raise AskanceError(
                f"{self.file}: cannot be written ({error.strerror}), so the look would not be counted, and validation "
                "stays shut."
            ) from None
        return self.judges().index(judge) + 1


@dataclass(frozen=True)
class MeasuredGain:
    """A yardstick whose difference was measured before: between two judges, each at its own threshold."""

    name: str
    gain: Difference

    def value(self, scores: Scores) -> float | None:
        """Return None: there is no figure for one judge alone."""
        return None

    def measure(self, scores: Scores, examples: Sequence[Example]) -> dict[str, Any]:
        """Return an empty dict: there are no figures for one judge alone."""
        return {}

    def difference(self, before: Scores, after: Scores, examples: Sequence[Example]) -> Difference:
        """Return the measured difference."""
        return self.gain


def acceptance_test(bench: JudgeBench, changed: KeptJudge, look: int, config: Mapping[str, Any]) -> dict[str, Any]:
    """Test on validation whether the changed judge is better; return the result as JSON for the page.

    Kappa at the judges' thresholds decides if people gave labels, else Spearman's correlation. ``look`` counts the
    looks at validation, from 1. Each look spends half of the level that is left, so all looks together accept no more
    by chance than one look would. The run's ``max_bias`` refuses a judge that only became severer or more lenient.
    """
    part = bench.parts["validation"]
    row = bench.figures("validation", changed)
    if part.reason is not None or part.targets is None:
        return {"accepted": False, "reason": part.reason, "look": look, "figures": row}
    before, after = bench.kept["validation"], bench.state(changed, "validation")
    gains = bench.differences(part, before, after, bench.known(part, before, after))
    name = "kappa" if "kappa" in gains else "spearman"
    level = float(config.get("alpha") or USUAL_LEVEL)
    limit = float(config.get("max_bias", LoopOptions.model_fields["max_bias"].default))
    # The guard reads no interval of the correlation, so nothing is resampled.
    guard = BiasGuard(CorrelationYardstick(part.targets, resamples=1, seed=0), limit)
    gain = MeasuredGain("kappa" if name == "kappa" else "Spearman", gains[name])
    test = PairedAcceptance(gain, part.examples, level, guard).at_look(look, look + 1)  # there may always be another
    decision = test.decide(*(bench.table(each, "validation") for each in (bench.judge, changed)))
    return {
        "accepted": decision.accepted,
        "reason": decision.reason,
        "level": test.level,
        "look": look,
        "gain": difference_dict(gains[name]),
        "figures": row,
    }
