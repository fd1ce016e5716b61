"""What the choice among questions is worth, on the answers of finished runs and without a call: to see what another rule would do.

Run ``python -m askance.experiments.measured.stored_choice`` for the mean cross-fitted area under the curve of each file in
``results/stored_answers`` by today's code, over several partitions into six folds. ``--keep RUN --data NAME --seed N`` makes such a file of
a finished run of :mod:`~askance.experiments.measured.learned_questions`: what the judge said to the questions that were raced to the end, of
the development and validation outputs. The test stays out, so that a rule is chosen without it.

Only the last choice is seen: which of those questions join, which answer is good, how they weigh and are read. A rule that has other questions
raced takes a run.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sqlite3
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any
from unittest.mock import patch

import numpy as np

from ...evaluation.calibration import sigmoid
from ...evaluation.progress import Silent
from ...evaluation.scoring import ExampleScore, Targets
from ...memory.journal import Journal
from ...memory.run_directory import RunDirectory
from ...optimizer.events import Teller
from ...optimizer.job import split_examples
from ...optimizer.modes import align
from ...optimizer.modes.judge import strata_of_people
from ...optimizer.questions.candidates import Candidate, yes_logits
from ...optimizer.questions.choice import Chooser
from ...optimizer.questions.learner import FOLDS, taught_by_others
from ...optimizer.runner import run_job
from ...optimizer.subject import Draft, Observation, Pair
from ...prompts.checklist import load_checklist
from ...prompts.examples import Example
from ...prompts.prompt import load_prompt
from ...prompts.verdicts import Verdict
from ...stats.pass_fail import area_under_curve
from ...stats.resampling import Resampling
from ..command_line import RESULTS, says_errors
from .learned_questions import DATA, MODEL, SETTINGS, examples_of

STORED = RESULTS / "stored_answers"
PARTITIONS = 8
MOST = 12
"""Questions that may join, as by default."""
NOT_RESAMPLED = Resampling(resamples=1)


@dataclass(frozen=True)
class Stored:
    """What a judge said in a run."""

    name: str
    folder: Path
    """Of prompt and checklist."""
    examples: list[Example]
    """Development, then validation."""
    candidates: dict[str, Candidate]
    logits: dict[str, dict[str, float]]
    """Log-odds of yes by question and example; the question of the start is among them."""


def kept(run: Path, data: str, seed: int, model: str) -> dict[str, Any]:
    """What a finished run asked to the end, as a file has it: it is gone through once more on its stored answers.

    Raises:
        BudgetExceededError: An answer is not there, as code or model are others than those of the run.
    """
    folder, examples = examples_of(data, None, more=True)
    chosen = SETTINGS | {"seed": seed, "no_cache": True}
    named: dict[str, Candidate] = {}
    """All candidates of the run, in the way that they are asked."""
    asked: dict[str, dict[str, float]] = {}
    start: dict[str, dict[str, float]] = {}
    judge, choose = Chooser._judge, Chooser.choose

    async def judging(self: Chooser, best: Draft, asks: Any) -> dict[str, dict[str, float]]:
        found = await judge(self, best, asks)
        shown = {name: each for some, _ in asks for name, each in some.items()}
        for name, each in found.items():
            if name in named and shown[name].sees == named[name].sees:
                asked.setdefault(name, {}).update(each)
        return found

    async def choosing(self: Chooser, best: Draft, some: Mapping[str, Candidate], seen: Observation, n: int) -> Any:
        if not named:  # the first choice is among all of them, the others are those of the folds
            named.update(some)
        for name, each in yes_logits(seen.verdicts).items():
            start.setdefault(name, {}).update(each)
        return await choose(self, best, some, seen, n)

    with tempfile.TemporaryDirectory() as place:
        with (
            closing(sqlite3.connect(run / "verdicts.db")) as store,
            closing(sqlite3.connect(f"{place}/verdicts.db")) as copy,
        ):
            store.backup(copy)
        job = align.prepare(
            examples, folder / "checklist.yaml", model, folder / "prompt.md", chosen | {"call_budget": 0}
        )
        with patch.object(Chooser, "_judge", judging), patch.object(Chooser, "choose", choosing):
            run_job(job, RunDirectory(place), Silent())
    parts = split_examples(job, strata_of_people(job))
    ids = [each.id for each in (*parts.development, *parts.validation)]

    def column(answers: Mapping[str, float]) -> list[float | None]:
        return [round(answers[each], 2) if each in answers else None for each in ids]

    rows = [
        {
            "id": name,
            "text": named[name].text,
            "from": named[name].kind,
            "sources": named[name].sources,
            "comments": named[name].comments,
            "logits": column(answers),
        }
        for name, answers in asked.items()
        if len(answers) >= len(ids) / 2
    ]
    return {
        "command": f"python -m askance.experiments.measured.stored_choice --keep RUN --data {data} --seed {seed}",
        "model": model,
        "data": data,
        "seed": seed,
        "sees": next(iter(named.values())).sees if named else "all",
        "examples": ids,
        "start": {name: column(answers) for name, answers in start.items()},
        "candidates": rows,
    }


def read_stored(path: Path) -> Stored:
    """A file of answers, with the examples that they are about."""
    row = json.loads(path.read_text(encoding="utf-8"))
    _, every = examples_of(row["data"], None, more=True)
    by_id = {each.id: each for each in every}

    def table(column: Sequence[float | None]) -> dict[str, float]:
        return {name: value for name, value in zip(row["examples"], column, strict=True) if value is not None}

    candidates = {
        each["id"]: Candidate(
            each["text"], "overall", each["from"], tuple(each["sources"]), tuple(each["comments"]), row["sees"]
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
    """Area under the curve of the start and of what the others teach, means over the folds, and questions that join; one partition."""
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
    """Print a line for each file, or make one."""
    parser = argparse.ArgumentParser(prog="python -m askance.experiments.measured.stored_choice", description=__doc__)
    parser.add_argument("--keep", type=Path, help="a finished run, to make a file of")
    parser.add_argument("--data", choices=list(DATA), help="its data")
    parser.add_argument("--seed", type=int, default=0, help="its seed")
    parser.add_argument("--model", default=MODEL.replace("local/", "openvino/"), help="its model")
    parser.add_argument("--partitions", type=int, default=PARTITIONS)
    parser.add_argument("--directory", type=Path, default=STORED, help="of the files")
    given = parser.parse_args(arguments)
    if given.keep is not None:
        if given.data is None:
            parser.error("--keep needs --data")
        given.directory.mkdir(parents=True, exist_ok=True)
        found = kept(given.keep, given.data, given.seed, given.model)
        path = given.directory / f"{given.data}_{given.seed}.json"
        rows = found.pop("candidates")
        lines = ",\n".join(json.dumps(each, ensure_ascii=False) for each in rows)
        head = json.dumps(found, ensure_ascii=False)[:-1]
        path.write_text(f'{head}, "candidates": [\n{lines}\n]}}\n', encoding="utf-8")
        print(path)
        return 0
    for path in sorted(given.directory.glob("*.json")):
        print(json.dumps(measured(path, given.partitions)), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
