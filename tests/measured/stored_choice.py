"""The worth of the choice among questions, on stored answers and without a call, to try another rule.

Run ``python -m tests.measured.stored_choice`` for the mean cross-fitted area under the curve of each file
in ``results/stored_answers`` by today's code, over several partitions into six folds. A file has what the judge said in
a run to the questions that were raced to the end, of the development and validation outputs. The test stays out, so
that a rule is chosen without it. The files were made by this script in commit 835b0ae (``--keep``).

Only the last choice is seen: which of those questions join, which answer is good, how they weigh and are read. A rule
that has other questions raced takes a run.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np

from askance.evaluation.calibration import sigmoid
from askance.evaluation.scoring import ExampleScore, Targets
from askance.experiments.command_line import RESULTS, says_errors
from askance.memory.journal import Journal
from askance.memory.records import CriterionRecord
from askance.models.progress import Silent
from askance.optimizer.events import Teller
from askance.optimizer.questions.choice import Chooser
from askance.optimizer.questions.learner import FOLDS, taught_by_others
from askance.optimizer.subject import Draft, Observation, Pair
from askance.prompts.checklist import load_checklist
from askance.prompts.examples import Example
from askance.prompts.prompt import load_prompt
from askance.prompts.verdicts import Verdict
from askance.stats.pass_fail import area_under_curve
from askance.stats.resampling import Resampling

from .learned_questions import DATA, examples_of

STORED = RESULTS / "stored_answers"
PARTITIONS = 8
MOST = 12
"""Questions that may join, as by default."""
NOT_RESAMPLED = Resampling(resamples=1)


@dataclass(frozen=True)
class Stored:
    """A judge's answers in a run."""

    name: str
    folder: Path
    """The folder of prompt and checklist."""
    examples: list[Example]
    """Development, then validation."""
    candidates: dict[str, CriterionRecord]
    logits: dict[str, dict[str, float]]
    """Log-odds of yes by question and example; the question of the start is among them."""


def read_stored(path: Path) -> Stored:
    """A file of answers, with the examples that they are about."""
    row = json.loads(path.read_text(encoding="utf-8"))
    _, every = examples_of(row["data"], None, more=True)
    by_id = {each.id: each for each in every}

    def table(column: Sequence[float | None]) -> dict[str, float]:
        return {name: value for name, value in zip(row["examples"], column, strict=True) if value is not None}

    candidates = {
        each["id"]: CriterionRecord.of(
            each["text"], "overall", each["from"], each["sources"], each["comments"], row["sees"]
        )
        for each in row["candidates"]
    }
    logits = {each["id"]: table(each["logits"]) for each in row["candidates"]}
    logits |= {name: table(column) for name, column in row["start"].items()}
    return Stored(path.stem, DATA[row["data"]], [by_id[each] for each in row["examples"]], candidates, logits)


@dataclass
class StoredJudge:
    """A subject that says what is stored, and nothing to what is not."""

    logits: Mapping[str, Mapping[str, float]]

    async def observe(
        self, draft: Draft, examples: Sequence[Example], on_done: Callable[[int, int], None] | None = None
    ) -> Observation:
        """The stored answers."""
        asked = [each.id for each in draft.questions.questions]
        verdicts = [self._said(draft, example.id, question) for example in examples for question in asked]
        return Observation(examples, verdicts, draft.scores(examples, verdicts, soft=True), draft.checklist)

    async def probe(self, draft: Draft, pairs: Sequence[Pair], seen: Observation) -> dict[Pair, Verdict]:
        """The stored answers to single questions."""
        return {pair: self._said(draft, *pair) for pair in pairs}

    def _said(self, draft: Draft, example: str, question: str) -> Verdict:
        told = self.logits[question].get(example)
        if told is None:
            return Verdict(example, question, "stored", draft.prompt.hash, None, status="abstained", error="not asked")
        p_yes = float(sigmoid(np.array([told]))[0])
        return Verdict(example, question, "stored", draft.prompt.hash, p_yes >= 0.5, p_yes, "logprob")


async def crossed_areas(stored: Stored, partition: int) -> tuple[float, float, float]:
    """Return mean areas under the curve before and after learning, and the mean number of questions that join."""
    examples, judge = stored.examples, StoredJudge(stored.logits)
    wanted = {each.id: {"overall": each.human_score("overall")} for each in examples}
    targets = Targets("human", ("overall",), wanted)
    best = Draft(load_prompt(stored.folder / "prompt.md"), load_checklist(stored.folder / "checklist.yaml"))
    before, after, joined = [], [], []
    with tempfile.TemporaryDirectory() as place:
        told = Teller(Journal(Path(place) / "journal.jsonl"), Silent())
        for tested in folds(examples, partition):
            ids = {each.id for each in tested}
            seen = await judge.observe(best, [each for each in examples if each.id not in ids])
            chooser = Chooser(judge, targets, seen.examples, told, MOST, parts=2, told=False)
            named = taught_by_others(tested, stored.candidates, {})
            new = chooser.drafts(best, await chooser.choose(best, named, seen, 1), seen)
            (lean,) = await chooser.read(best, new.lean)
            said = [(await judge.observe(each, tested)).scores for each in (best, lean)]
            before.append(_area(said[0], targets))
            after.append(_area(said[1], targets))
            joined.append(len(lean.questions.questions))
    return fmean(before), fmean(after), fmean(joined)


def folds(examples: Sequence[Example], partition: int) -> list[list[Example]]:
    """Twice ``FOLDS`` parts, drawn anew for each partition, with as many accepted outputs in each."""
    drawn = np.random.default_rng(partition).permutation(len(examples))
    ranked = sorted((examples[place] for place in drawn), key=lambda each: each.human_score("overall") or 0.0)
    return [ranked[place :: 2 * FOLDS] for place in range(2 * FOLDS)]


def _area(scores: Sequence[ExampleScore], targets: Targets) -> float:
    known = [(each.overall, targets.overall(each.example)) for each in scores]
    found = area_under_curve([score for score, _ in known], [label for _, label in known], NOT_RESAMPLED).value
    assert found is not None, "a fold has accepted and rejected outputs"
    return found


def measured(path: Path, partitions: int) -> dict[str, Any]:
    """A line of what is printed."""
    stored = read_stored(path)
    rows = [asyncio.run(crossed_areas(stored, partition)) for partition in range(partitions)]
    before, after, joined = zip(*rows, strict=True)
    noise = stdev(after) / len(rows) ** 0.5 if len(rows) > 1 else 0.0
    return {
        "name": stored.name,
        "start": round(fmean(before), 3),
        "learned": round(fmean(after), 3),
        "standard_error": round(noise, 3),
        "questions": round(fmean(joined), 1),
    }


@says_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Print a line for each file."""
    parser = argparse.ArgumentParser(prog="python -m tests.measured.stored_choice", description=__doc__)
    parser.add_argument("--partitions", type=int, default=PARTITIONS)
    parser.add_argument("--directory", type=Path, default=STORED, help="of the files")
    given = parser.parse_args(arguments)
    for path in sorted(given.directory.glob("*.json")):
        print(json.dumps(measured(path, given.partitions)), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
