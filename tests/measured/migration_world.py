"""Whole migrations of prompts that write, in worlds whose truth is known.

Run ``python -m tests.measured.migration_world`` (hours of processor time; ``--seeds 3`` is a small one). The old model's
outputs are recorded; the targets are a weaker model that can be mended, one as good as the old one, and one that is
truly worse and cannot be mended (:class:`tests.doubles.WritersWorld`). What is true of a target is measured on fresh
inputs that no run sees: the chance that it keeps each rule, and its outputs judged without error.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

import askance
from askance.agents.checks import computed_verdicts
from askance.experiments.command_line import RESULTS, machine, write_result
from askance.memory.certificate_file import REQUIREMENTS_FILE, TARGETS, target_folder
from askance.optimizer.migration.certificate import MigrationResult
from askance.optimizer.migration.decision import PassChange, PassTable
from askance.prompts.checklist import Checklist, load_checklist
from askance.prompts.examples import Example
from askance.prompts.verdicts import Verdict
from askance.stats.pass_fail import rate
from askance.testing import ScriptedModel
from tests.doubles import WritersJudge, WritersWorld

RESULT = RESULTS / "migration_world.json"
SEEDS = 100
FIRST_SEED = 1_000
"""Seeds below were used while the loop was built."""
NAMES = ("weaker", "equal", "worse")
SIZE = 250
FRESH = 300
"""Inputs on which the truth is measured."""
MAX_LOSS = 0.05


@dataclass(frozen=True)
class Target:
    """One target of a migration, as it came out and as it is."""

    seed: int
    form: str
    name: str
    decision: str
    needed: int | None
    lost: float
    """Chance lost of keeping the rules with the old prompt, summed over the rules of the world."""
    left: float
    """The same with the new prompt."""
    start: float
    """True chance of keeping a rule with the old prompt, less the old model's; mean over the rules."""
    end: float
    difference: float
    """True difference of the pass rate over the requirements that the run found."""
    worst: float
    """The smallest true difference of one of them."""
    tested: float | None
    """The difference that the certificate has."""
    changed: bool
    requirements: int
    found: int
    """Rules of the world that a requirement is about."""
    writer_calls: int

    @property
    def is_worse(self) -> bool:
        """Whether it truly loses more than the margin, in the mean or in one requirement."""
        return self.difference < -MAX_LOSS or self.worst < -MAX_LOSS


class Truth:
    """Fresh inputs of a world, with the old model's outputs, and a judge that makes no error."""

    def __init__(self, world: WritersWorld, fresh: int) -> None:
        """Draw the inputs."""
        self.world = world
        self.rows = world.make_rows(fresh, "fresh")
        self._examples = [Example(**row) for row in self.rows]
        self._judge = WritersJudge(WritersWorld(form=world.form, seed=world.seed, judge_wrong=0.0))
        self._asks = world.writer("old").request
        self.old = self.chances("old", world.prompt)[0]

    def chances(self, name: str, prompt: str | Path | askance.Prompt) -> tuple[np.ndarray, list[Example]]:
        """The mean chance that a writer keeps each rule with a prompt and the settings beside it, and its outputs."""
        writer, found = self.world.writer(name), []

        def write(request: Any) -> str:
            found.append([*writer.chances(request).values()])
            return writer.text(request)

        model = ScriptedModel(write, name=writer.name)
        outputs = askance.generate(self.rows, generator=model, prompt=prompt, progress=False, no_cache=True)
        return np.mean(found, axis=0), [each.example for each in outputs.written]

    def difference(self, requirements: Checklist, new: Sequence[Example]) -> np.ndarray:
        """The true difference of each requirement that counts, new minus old."""
        counted = [each for each in requirements.questions if each.weight > 0]
        checklist = requirements.model_copy(update={"questions": tuple(counted)})
        ids = [each.id for each in self._examples]
        tables = [PassTable.of(ids, checklist, self._verdicts(checklist, side)) for side in (self._examples, new)]
        return np.nanmean(PassChange(*tables).changes, axis=0)

    def _verdicts(self, checklist: Checklist, outputs: Sequence[Example]) -> list[Verdict]:
        verdicts = computed_verdicts(checklist.checks, outputs, "prompt")
        for question in checklist.asked:
            for each in outputs:
                p_yes = self._judge.p_asked(self._asks(f"{each.output}\nQuestion: {question.text}"))
                verdicts.append(Verdict(each.id, question.id, "judge", "prompt", p_yes > 0.5, p_yes, "hard"))
        return verdicts


def run_once(seed: int, *, size: int = SIZE, fresh: int = FRESH, names: Sequence[str] = NAMES) -> list[Target]:
    """Migrate to all targets in a world of its own; replies in worlds of even numbers, facts as JSON in others."""
    world = WritersWorld(form="facts" if seed % 2 else "reply", size=size, seed=seed)
    writers = [world.writer(name) for name in names]
    truth = Truth(world, fresh)
    with tempfile.TemporaryDirectory() as folder:
        done = askance.migrate(
            world.rows,
            source="recorded",
            target=writers,
            judge=WritersJudge(world),
            prompt=world.prompt,
            yes=True,
            run=folder,
            embedder="words",
            resamples=200,
            seed=seed,
        )
        assert isinstance(done, MigrationResult)
        requirements = load_checklist(Path(folder) / REQUIREMENTS_FILE)
        found = []
        for name, writer in zip(names, writers, strict=True):
            record = done.certificate.targets[writer.name]
            [file] = (Path(folder) / TARGETS / target_folder(writer.name)).glob("prompt.*")
            begun, _ = truth.chances(name, world.prompt)
            ended, outputs = truth.chances(name, file)
            differences = truth.difference(requirements, outputs)
            found.append(
                Target(
                    seed=seed,
                    form=world.form,
                    name=name,
                    decision=record.decision,
                    needed=record.needed,
                    lost=float(np.maximum(0, truth.old - begun).sum()),
                    left=float(np.maximum(0, truth.old - ended).sum()),
                    start=float((begun - truth.old).mean()),
                    end=float((ended - truth.old).mean()),
                    difference=float(differences.mean()),
                    worst=float(differences.min()),
                    tested=record.difference.value,
                    changed=file.read_text(encoding="utf-8") != world.prompt.text or bool(record.settings),
                    requirements=len(differences),
                    found=_found(world, requirements),
                    writer_calls=writer.calls,
                )
            )
    return found


def _found(world: WritersWorld, requirements: Checklist) -> int:
    """Number of rules of the world that some requirement speaks of."""
    texts = [f"{each.text} {each.clause or ''}" for each in requirements.questions]
    return sum(any(rule.speaks_in(text) for text in texts) for rule in world.rules)


def summarise(targets: Sequence[Target]) -> dict[str, Any]:
    """The runs of one target. Raises ValueError where there are none."""
    if not targets:
        raise ValueError("there are no runs to summarise")
    adopted = [each for each in targets if each.decision == "adopt"]
    refused = [each for each in targets if each.decision == "not_yet"]
    lost = sum(each.lost for each in targets)
    return {
        "runs": len(targets),
        "regressions_mended": 1 - sum(each.left for each in targets) / lost if lost > 0 else None,
        "mean_start": fmean(each.start for each in targets),
        "mean_end": fmean(each.end for each in targets),
        "adopted": len(adopted),
        "not_yet": len(refused),
        "undecided": len(targets) - len(adopted) - len(refused),
        "truly_worse": sum(each.is_worse for each in targets),
        "adopted_though_the_mean_is_worse": sum(each.difference < -MAX_LOSS for each in adopted),
        "adopted_though_worse": sum(each.is_worse for each in adopted),
        "not_yet_though_no_worse": sum(not each.is_worse for each in refused),
        "share_adopted": asdict(rate([float(each.decision == "adopt") for each in targets])),
        "tested_minus_true": fmean((each.tested or 0.0) - each.difference for each in targets),
        "requirements": fmean(each.requirements for each in targets),
        "rules_found": fmean(each.found for each in targets),
        "writer_calls": fmean(each.writer_calls for each in targets),
        "changed": sum(each.changed for each in targets),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the migrations and keep what they came to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=SEEDS, help="worlds")
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("-o", "--output", type=Path, default=RESULT)
    given = parser.parse_args(arguments)
    targets: list[Target] = []
    for seed in range(given.first_seed, given.first_seed + given.seeds):
        began = time.process_time()
        targets += run_once(seed)
        for each in targets[-len(NAMES) :]:
            print(f"{seed} {time.process_time() - began:.0f} s {each}", flush=True)
        result: Mapping[str, Any] = {
            "command": f"python -m tests.measured.migration_world --seeds {given.seeds} --first-seed {given.first_seed}",
            **machine(),
            "rows": SIZE,
            "fresh": FRESH,
            "cpu_s": time.process_time(),
            "targets": {name: summarise([each for each in targets if each.name == name]) for name in NAMES},
            "runs": [asdict(each) for each in targets],
        }
        write_result(given.output, result)


if __name__ == "__main__":
    main()
