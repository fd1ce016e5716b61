"""One run of the improvement loop in a simulated world, held against what is true there."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..agents.asking import EachAsking
from ..evaluation.progress import Silent
from ..memory.run_directory import RunDirectory
from ..optimizer.events import DisagreementsFound, Event, VersionDecided
from ..optimizer.modes import align, migrate
from ..optimizer.runner import RunResult, run_job
from ..prompts.examples import Example
from ..prompts.prompt import Prompt
from ..stats.correlation import spearman
from ..testing import SimulatedJudge, SimulatedWorld
from ..testing.simulated_judge import read_request
from ..testing.simulated_texts import TOPICS

POPULATION = 1_500
"""Fresh examples on which the true correlation of a prompt is measured."""
ROUNDS = 5
"""Iterations of the papers' loop (BinEval App. B)."""
KEPT = 10
"""Lessons that it keeps in each, every one of which is written into the prompt."""
RESAMPLES = 400
WORSE = 0.01
"""Loss of true Spearman from which a prompt is worse beyond what the size of the population leaves open."""


@dataclass(frozen=True)
class Arm:
    """A way to run the loop."""

    mode: str = "align"
    options: Mapping[str, Any] = field(default_factory=dict)
    world: Mapping[str, Any] = field(default_factory=dict)
    seeds: int | None = None
    """Seeds at most; None for all."""


@dataclass(frozen=True)
class Run:
    """What a run came to."""

    seed: int
    errors: int
    """Of the judge, at the start."""
    fixed: int
    made: int
    """Signs that it misjudges at the end and did not at the start."""
    start: float
    """True Spearman with people of the starting prompt, on the population."""
    end: float
    best_possible: float
    """The same with the right rule for every error, in the first wording."""
    test_start: float | None
    test_end: float | None
    changed: bool
    chars: int
    """Characters that the prompt grew by."""
    accepted: int
    falsely: int
    """Accepted candidates whose true Spearman is not above that of the version that they replaced."""
    tried: int
    iterations: int
    finish: str
    calls: int
    test_calls: int
    """Those of them that the untouched test took; Algorithm 1 has none."""
    exhaustive: int
    """Calls of Algorithm 1 in five rounds, by formula."""
    cpu_s: float


class Truth:
    """The population of a world."""

    def __init__(self, world: SimulatedWorld, size: int = POPULATION) -> None:
        """Draw it; its examples are none of those that a run sees."""
        self._world = world
        self._judge = SimulatedJudge(world)
        rows = world.make_rows(size, "fresh")
        self._human = [row["human"]["quality"] for row in rows]
        self._cases = [(row["id"], world.signs(row["id"])) for row in rows]
        self._shown = Example(**{name: rows[0][name] for name in ("id", "input", "output")})
        self._known: dict[str, float] = {}

    def spearman(self, prompt: str) -> float:
        """The correlation of the judge's scores with people's, over the whole population.

        Raises:
            ValueError: The judge gives all examples one score.
        """
        if prompt not in self._known:
            asking = EachAsking(Prompt(prompt), self._world.checklist.questions, False, True, 0.0, 0)
            told = [read_request(ask.request()).told for ask in asking.asks(self._judge.identity, self._shown, 0, 0)]
            scores = [
                sum(self._world.p_yes(example, signs, topic, text) for topic, text in zip(TOPICS, told, strict=True))
                for example, signs in self._cases
            ]
            found = spearman(scores, self._human).value
            if found is None:
                raise ValueError("the judge gives every example the same score")
            self._known[prompt] = found
        return self._known[prompt]


def run_once(arm: Arm, seed: int) -> Run:
    """Run the loop in a world of its own, in a directory that is gone afterwards."""
    world = SimulatedWorld(seed=seed, **arm.world)
    truth = Truth(world)
    events: list[Event] = []
    began = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        result = _run(arm, world, Path(folder), events)
        seconds = time.process_time() - began
        test_calls = sum(
            len(file.read_text(encoding="utf-8").splitlines()) for file in Path(folder).glob("verdicts/*-test.jsonl")
        )
        texts = {int(file.name[:3]): file.read_text(encoding="utf-8") for file in Path(folder).glob("prompts/*.md")}
    decided = [each for each in events if isinstance(each, VersionDecided)]
    accepted = [each for each in decided if each.accepted]
    found = result.result
    cured = world.prompt.text + "".join(map(world.right_rule, world.errors))
    return Run(
        seed=seed,
        errors=len(world.errors),
        fixed=len(world.errors) - len(world.errors_in(result.prompt)),
        made=len(world.misjudged(result.prompt) - set(world.errors)),
        start=truth.spearman(world.prompt.text),
        end=truth.spearman(result.prompt),
        best_possible=truth.spearman(cured),
        test_start=found["baseline"]["test"]["spearman"],
        test_end=found["best"]["test"]["spearman"],
        changed=result.prompt != world.prompt.text,
        chars=len(result.prompt) - len(world.prompt.text),
        accepted=len(accepted),
        falsely=sum(truth.spearman(texts[each.version]) <= truth.spearman(texts[each.parent]) for each in accepted),
        tried=len(decided),
        iterations=found["iterations"],
        finish=result.finish_reason,
        calls=found["calls"],
        test_calls=test_calls,
        exhaustive=exhaustive_calls(world, arm.mode, [each for each in events if isinstance(each, DisagreementsFound)]),
        cpu_s=seconds,
    )


def exhaustive_calls(world: SimulatedWorld, mode: str, found: Sequence[DisagreementsFound]) -> int:
    """Calls of the papers' Algorithm 1 in the same world, by formula.

    In each of five rounds every judge answers every question on every example, with its explanation in the same call;
    every disagreement is read by the note-taker, every note compared with the memory, and ten lessons are written into
    the prompt. Disagreements are counted as the run found them on its development examples, scaled to all examples;
    rounds that it did not go take the last count.
    """
    questions = len(world.checklist.questions)
    judges = 2 if mode == "migrate" else 1
    shares = [each.found / each.verdicts for each in found] or [0.0]
    shares += [shares[-1]] * (ROUNDS - len(shares))
    verdicts = world.size * questions
    return sum(judges * verdicts + 2 * round(share * verdicts) + KEPT for share in shares[:ROUNDS])


def _run(arm: Arm, world: SimulatedWorld, folder: Path, events: list[Event]) -> RunResult:
    settings: dict[str, Any] = {"embedder": "words", "resamples": RESAMPLES, "seed": world.seed, **arm.options}
    judge, prompt = SimulatedJudge(world), world.prompt
    if arm.mode == "migrate":
        source = SimulatedJudge(world, perfect=True)
        job = migrate.prepare(world.rows, world.checklist, source, judge, prompt, None, settings)
    else:
        job = align.prepare(world.rows, world.checklist, judge, prompt, settings)
    return run_job(job, RunDirectory(folder), Silent(), [events.append]).require_coverage()


__all__ = ["Arm", "Run", "Truth", "exhaustive_calls", "run_once"]
