"""The improvement loop in a world with known truth, beside the papers' loop and without each of its guards.

Run ``python -m tests.measured.simulated_world`` (some forty minutes of processor time; ``--seeds 5 --arms
align paper`` is a small one). Judges, people and helpers are simulated (:class:`askance.testing.SimulatedWorld`): the
judge has six errors that the right guidance cures, the note-taker is wrong in 30 % of the cases and some of its rules
do harm. What is true of a judge is measured on a fresh population that no run sees.

Where people comment (``COMMENTED``), two thirds of the outputs below people's mean have a comment, a fifth of the
comments say nothing, a tenth speak of something else, and 5 % of the scores are on the wrong side, as in the made-up
data of ``learned_questions.py``. One question in three that is made of a comment is usable; the judge tells with it
what has the thing with an area under the curve of .79 to .996, and nothing with the others (.4 to .6): the odds of
METHOD part 4. Of the noise in its answers a fifth is common to all questions on an output and two fifths to those about
one thing, which was not measured. Shown an output, the model names each of its things in one case of three. All of
these are parameters of the world. In the first world a judge that finds its faults with such questions is hardly better
(the noise of twelve kinds), so a second one was made after that was seen, nearer to METHOD part 4: few house rules,
pass or fail, rules in the prompt mostly overlooked (``UNSEEN``). It was not changed after its results.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np

from askance.agents.requests import EachAsking
from askance.evaluation.calibration import Calibration, logit
from askance.evaluation.judge_file import load_judge
from askance.experiments.command_line import RESULTS, write_result
from askance.memory.run_directory import RunDirectory
from askance.models.base import Answer, Request
from askance.models.progress import Silent
from askance.optimizer.events import Event, VersionDecided
from askance.optimizer.job import Job
from askance.optimizer.loop import run_job
from askance.optimizer.modes import align, migrate
from askance.prompts.checklist import Checklist
from askance.prompts.examples import Example
from askance.prompts.prompt import Prompt
from askance.stats.correlation import spearman
from askance.stats.resampling import Vector
from askance.testing import SimulatedJudge, SimulatedWorld
from askance.testing.simulated_judge import JudgeRequest, read_request

RESULT = RESULTS / "simulated_world.json"
SEEDS = 100
FIRST_SEED = 1_000
"""Seeds below were used to choose the settings."""
NOISE = {"curable": False}
LABELLED = {"wrong_labels": 0.05}
COMMENTED = {**LABELLED, "comment_share": 2 / 3}
USELESS = {**COMMENTED, "comment_vague": 1.0}
"""Comments are there, and none says anything."""
NOTHING = {**USELESS, **NOISE, "question_usable": 0.0, "question_seen": 0.0}
"""Neither comments nor rules nor what outputs do leads to anything."""
UNSEEN = {"kinds": 1, "blind": 4, "punished": 0, "fault_rate": 0.15, "pass_fail": True, "heeded": 0.23}
"""Four house rules that the judge knows nothing of and overlooks in a prompt; what breaks one fails."""
LEARNING = {"update": "auto", "measures": "none"}
"""The made-up texts give their truth away to measures, so that questions alone learn."""
POPULATION = 1_500
"""Fresh examples on which the true correlation of a judge is measured."""
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


ARMS: dict[str, Arm] = {
    "align": Arm(),
    "paper": Arm(options={"paper": True}),
    "paper, a note an example and an edit a lesson": Arm(options={"paper": True, "notes": "each", "update": "edits"}),
    "no trial": Arm(options={"trial": False}, seeds=40),
    "no racing": Arm(options={"racing": False}, seeds=40),
    "no pruning": Arm(options={"prune": False}, seeds=40),
    "any gain passes": Arm(options={"alpha": 0.999, "max_bias": 2.0}, seeds=40),
    "no trial, any gain passes": Arm(options={"trial": False, "alpha": 0.999, "max_bias": 2.0}, seeds=40),
    "patience 1": Arm(options={"patience": 1}),
    "24 notes a round": Arm(options={"max_notes": 24}, seeds=40),
    "300 examples": Arm(world={"size": 300}, seeds=20),
    "pure noise": Arm(world=NOISE),
    "pure noise, paper": Arm(options={"paper": True}, world=NOISE),
    "pure noise, any gain passes": Arm(options={"alpha": 0.999, "max_bias": 2.0}, world=NOISE, seeds=40),
    "edits, comments": Arm(world=COMMENTED),
    "auto, comments": Arm(options=LEARNING, world=COMMENTED),
    "auto, no comments": Arm(options=LEARNING, world=LABELLED),
    "auto, useless comments": Arm(options=LEARNING, world=USELESS),
    "auto, nothing to learn": Arm(options=LEARNING, world=NOTHING),
    "house rules: edits": Arm(world={**COMMENTED, **UNSEEN}),
    "house rules: auto": Arm(options=LEARNING, world={**COMMENTED, **UNSEEN}),
    "house rules: auto, one call a question": Arm(
        options={**LEARNING, "mode": "each"}, world={**COMMENTED, **UNSEEN}, seeds=40
    ),
    "house rules: auto, no comments": Arm(options=LEARNING, world={**LABELLED, **UNSEEN}),
    "house rules: auto, useless comments": Arm(options=LEARNING, world={**USELESS, **UNSEEN}),
    "house rules: auto, nothing to learn": Arm(options=LEARNING, world={**UNSEEN, **NOTHING}),
    "house rules: auto, no shared noise": Arm(
        options=LEARNING, world={**COMMENTED, **UNSEEN, "shared_noise": (0.0, 0.4)}, seeds=40
    ),
    "house rules: auto, 300 examples": Arm(options=LEARNING, world={**COMMENTED, **UNSEEN, "size": 300}, seeds=40),
    "wrong guidance": Arm(world={"misguided": 3}, seeds=40),
    "migrate": Arm("migrate", seeds=40),
    "migrate, paper": Arm("migrate", options={"paper": True}, seeds=40),
}


@dataclass(frozen=True)
class Run:
    """The outcome of a run."""

    seed: int
    errors: int
    """The starting judge's number of errors."""
    fixed: int
    made: int
    """Signs that it misjudges at the end and did not at the start."""
    start: float
    """True Spearman with people of the starting prompt, on the population."""
    end: float
    best_possible: float
    """True Spearman with the right rule for every error, in the first wording."""
    test_start: float | None
    test_end: float | None
    changed: bool
    chars: int
    """Characters that the prompt grew by."""
    questions: int
    """Number of learned questions."""
    accepted: int
    falsely: int
    """Accepted prompts that are truly no better than the version before, and a final judge no better than the start."""
    tried: int
    iterations: int
    finish: str
    calls: int
    test_calls: int
    """Calls that the untouched test took."""
    cpu_s: float
    phases: Mapping[str, int]
    """Calls by phase; those that an earlier phase had bought are not among them."""


class PhaseCalls(Silent):
    """Counts the calls of a judge by the phase of the run that they were made in; numbers in its name are "#"."""

    def __init__(self, judge: SimulatedJudge) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()
        self._now, answer = "start", judge.answer

        async def counted(request: Request) -> Answer:
            self.counts[self._now] += 1
            return await answer(request)

        judge.answer = counted  # type: ignore[method-assign]

    def phase(self, text: str, total: int | None = None) -> None:
        """Begin a phase."""
        super().phase(text, total)
        self._now = re.sub(r"\d+", "#", text)


class Truth:
    """The population of a world."""

    def __init__(self, world: SimulatedWorld, size: int = POPULATION) -> None:
        """Draw fresh examples, which no run sees."""
        self._world = world
        self._judge = SimulatedJudge(world)
        rows = world.make_rows(size, "fresh")
        self._human = [row["human"]["quality"] for row in rows]
        self._cases = [(row["id"], world.signs(row["id"])) for row in rows]
        self._shown = Example(**{name: rows[0][name] for name in ("id", "input", "output")})
        self._known: dict[tuple[str, str], float] = {}
        self._answers: dict[str, Vector] = {}

    def spearman(
        self, prompt: str, checklist: Checklist | None = None, calibration: Calibration | None = None
    ) -> float:
        """The correlation of a judge's scores with people's, over the whole population.

        Args:
            prompt: What it judges with. checklist: What it is asked; the world's own by default. calibration: What its
                verdicts are read by, of the method ``accepted``; None where they are taken as they are.

        Raises:
            ValueError: The judge gives all examples one score.
        """
        checklist = checklist or self._world.checklist
        key = prompt, f"{checklist.questions}{calibration}"
        if key not in self._known:
            asking = EachAsking(Prompt(prompt), checklist.questions, False, True, 0.0, 0)
            asks = asking.asks(self._judge.identity, self._shown, 0, 0)
            said = {
                question.id: self._told(read_request(ask.request()))
                for question, ask in zip(checklist.questions, asks, strict=True)
            }
            odds = {name: logit(values) for name, values in said.items()}
            scores = np.zeros(len(self._cases))
            for question in checklist.questions:
                plain = 1.0 - said[question.id] if question.is_fault else said[question.id]
                scores += question.weight * (plain if calibration is None else calibration.p_good(question.id, odds))
            found = spearman(scores.tolist(), self._human).value
            if found is None:
                raise ValueError("the judge gives every example the same score")
            self._known[key] = found
        return self._known[key]

    def _told(self, asked: JudgeRequest) -> Vector:
        """Return the judge's answers about every example."""
        key = f"{asked.topic} {asked.told}"
        if key not in self._answers:
            about = (replace(asked, example=example, signs=signs) for example, signs in self._cases)
            self._answers[key] = np.array([self._judge.p_yes(each) for each in about])
        return self._answers[key]


def run_once(arm: Arm, seed: int) -> Run:
    """Run the loop in a world of its own, in a directory that is gone afterwards."""
    world = SimulatedWorld(seed=seed, **arm.world)
    truth = Truth(world)
    heeding = truth if world.heeded == 1.0 else Truth(replace(world, heeded=1.0))
    events: list[Event] = []
    began = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        judge_of_run = SimulatedJudge(world)
        job, watcher = _job(arm, world, judge_of_run), PhaseCalls(judge_of_run)
        result = run_job(job, RunDirectory(Path(folder)), watcher, [events.append]).require_coverage()
        seconds = time.process_time() - began
        tests = [file.read_text(encoding="utf-8").splitlines() for file in Path(folder).glob("verdicts/*-test.jsonl")]
        texts = {int(file.name[:3]): file.read_text(encoding="utf-8") for file in Path(folder).glob("prompts/*.md")}
        judge = load_judge(folder)
        batched = judge.settings["mode"] == "batched"
        test_calls = sum(len({json.loads(row)["example"] for row in rows} if batched else rows) for rows in tests)
    decided = [each for each in events if isinstance(each, VersionDecided)]
    accepted = [each for each in decided if each.tried.accepted]
    found = result.result
    learned = sum(each.origin != "start" for each in judge.origins.values())
    cured = world.cured_prompt.text
    start, end = (
        truth.spearman(world.prompt.text),
        truth.spearman(judge.prompt.text, judge.checklist, judge.calibration),
    )
    of_prompts = sum(
        truth.spearman(texts[each.version]) <= truth.spearman(texts[each.parent])
        for each in accepted
        if each.tried.lessons
    )
    return Run(
        seed=seed,
        errors=len(world.errors),
        fixed=len(world.errors) - len(world.errors_in(result.prompt)),
        made=len(world.misjudged(result.prompt) - set(world.errors)),
        start=start,
        end=end,
        best_possible=heeding.spearman(cured),
        test_start=found["baseline"]["test"]["spearman"],
        test_end=found["best"]["test"]["spearman"],
        changed=result.prompt != world.prompt.text or learned > 0,
        chars=len(result.prompt) - len(world.prompt.text),
        questions=learned,
        accepted=len(accepted),
        falsely=of_prompts + (learned > 0 and end <= start),
        tried=len(decided),
        iterations=found["iterations"],
        finish=result.finish_reason,
        calls=found["calls"],
        test_calls=test_calls,
        cpu_s=seconds,
        phases=watcher.counts,
    )


def _job(arm: Arm, world: SimulatedWorld, judge: SimulatedJudge) -> Job:
    shared = {"embedder": "words", "resamples": RESAMPLES, "seed": world.seed}
    if not arm.options.get("paper"):
        shared["update"] = "edits"
    settings: dict[str, Any] = {**shared, **arm.options}
    prompt = world.prompt
    if arm.mode == "migrate":
        source = SimulatedJudge(world, perfect=True)
        return migrate.prepare(world.rows, world.checklist, source, judge, prompt, None, settings)
    return align.prepare(world.rows, world.checklist, judge, prompt, settings)


def summarise(runs: Sequence[Run]) -> dict[str, Any]:
    """Summarise the runs of one arm.

    Raises:
        ValueError: There are no runs.
    """
    if not runs:
        raise ValueError("there are no runs to summarise")
    gains = [run.end - run.start for run in runs]
    accepted = sum(run.accepted for run in runs)
    return {
        "runs": len(runs),
        "share_of_errors_fixed": _ratio(sum(run.fixed for run in runs), sum(run.errors for run in runs)),
        "new_errors_per_run": fmean(run.made for run in runs),
        "prompt_changed": sum(run.changed for run in runs),
        "truly_below_start": sum(gain < 0 for gain in gains),
        f"truly_below_start_by_{WORSE}": sum(gain < -WORSE for gain in gains),
        "below_start_on_own_test": sum(_below(run) for run in runs),
        "start": fmean(run.start for run in runs),
        "mean_gain": _interval(gains),
        "possible_gain": fmean(run.best_possible - run.start for run in runs),
        "captured": _captured(gains, [run.best_possible - run.start for run in runs]),
        "questions": fmean(run.questions for run in runs),
        "mean_gain_on_own_test": _interval(
            [run.test_end - run.test_start for run in runs if run.test_end is not None and run.test_start is not None]
        ),
        "worst_gain": min(gains),
        "accepted": accepted,
        "falsely_accepted": sum(run.falsely for run in runs),
        "share_falsely_accepted": _ratio(sum(run.falsely for run in runs), accepted),
        "candidates_per_run": fmean(run.tried for run in runs),
        "iterations": fmean(run.iterations for run in runs),
        "calls": fmean(run.calls for run in runs),
        "test_calls": fmean(run.test_calls for run in runs),
        "calls_by_phase": {
            name: count / len(runs)
            for name, count in sum((Counter(run.phases) for run in runs), Counter()).most_common()
        },
        "chars_added": fmean(run.chars for run in runs),
        "chars_added_median": median(run.chars for run in runs),
        "finish": {reason: sum(run.finish == reason for run in runs) for reason in sorted({r.finish for r in runs})},
        "cpu_s": fmean(run.cpu_s for run in runs),
    }


def measure(names: Sequence[str], seeds: int, first: int = FIRST_SEED) -> Iterator[tuple[str, dict[str, Any]]]:
    """Run the arms, each on the same worlds, and summarise them one after the other."""
    for name in names:
        arm = ARMS[name]
        began = time.perf_counter()
        numbers = range(first, first + min(seeds, arm.seeds or seeds))
        runs = [run_once(arm, seed) for seed in numbers]
        row = summarise(runs) | {"arm": asdict(arm), "gains": [round(run.end - run.start, 4) for run in runs]}
        print(f"{name}: {time.perf_counter() - began:.0f} s\n{line(name, row)}", flush=True)
        yield name, row


def line(name: str, row: Mapping[str, Any]) -> str:
    """One arm as a row of the table in the documentation."""
    gain = row["mean_gain"]
    falsely = f"{row['falsely_accepted']} of {row['accepted']}"
    captured = row["captured"]
    cells = [
        name,
        "–" if captured is None else f"{captured['share']:.0%} ({captured['low']:.0%} to {captured['high']:.0%})",
        f"{row['questions']:.1f}",
        f"{gain['mean']:+.3f} ({gain['low']:+.3f} to {gain['high']:+.3f})",
        f"{row['truly_below_start']} of {row['runs']}",
        f"{row['below_start_on_own_test']}",
        falsely,
        f"{row['calls']:,.0f}",
        f"{row['test_calls']:,.0f}",
        f"{row['chars_added']:.0f}",
    ]
    return f"| {' | '.join(cells)} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the arms and keep what they came to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=SEEDS, help="worlds an arm")
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--arms", nargs="+", default=list(ARMS), choices=list(ARMS), metavar="ARM")
    parser.add_argument("-o", "--output", type=Path, default=RESULT)
    given = parser.parse_args(arguments)
    command = f"python -m tests.measured.simulated_world --seeds {given.seeds} --first-seed {given.first_seed}"
    if list(given.arms) != list(ARMS):
        command += " --arms " + " ".join(f"'{name}'" for name in given.arms)
    header = {
        "command": command,
        "seeds": [given.first_seed, given.first_seed + given.seeds - 1],
        "population": POPULATION,
        "resamples": RESAMPLES,
    }
    found: dict[str, Any] = {}
    for name, row in measure(given.arms, given.seeds, given.first_seed):
        found[name] = row
        write_result(given.output, header | {"arms": found})


def _below(run: Run) -> bool:
    return run.test_end is not None and run.test_start is not None and run.test_end < run.test_start


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _captured(gains: Sequence[float], possible: Sequence[float], resamples: int = 2_000) -> dict[str, float] | None:
    """Return the captured share of the possible gain with a 95 % interval; None if less than .01 is possible."""
    if fmean(possible) < WORSE:
        return None
    chance = np.random.default_rng(0)
    drawn = chance.integers(0, len(gains), (resamples, len(gains)))
    shares = np.asarray(gains)[drawn].mean(axis=1) / np.asarray(possible)[drawn].mean(axis=1)
    low, high = np.quantile(shares, [0.025, 0.975])
    return {"share": fmean(gains) / fmean(possible), "low": float(low), "high": float(high)}


def _interval(values: Sequence[float], resamples: int = 2_000) -> dict[str, float]:
    """The mean with its 95 % bootstrap interval over the seeds."""
    chance = np.random.default_rng(0)
    data = np.asarray(values, dtype=float)
    means = data[chance.integers(0, len(data), (resamples, len(data)))].mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return {"mean": float(data.mean()), "low": float(low), "high": float(high)}


if __name__ == "__main__":
    main()
