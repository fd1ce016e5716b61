"""BinEval's Algorithm 1, run whole so that its calls can be counted: no split, no cap, no early stopping.

It is the loop of ``--paper`` (:mod:`askance.optimizer.paper`) as Algorithm 1 has it: notes example by example, one edit a lesson,
every lesson kept, and every version stands. In every round every judge answers every question on every example, with its
explanation in the same call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...evaluation.progress import Silent
from ...evaluation.scoring import ExampleScore
from ...memory.run_directory import RunDirectory
from ...memory.verdict_store import VerdictStore
from ...models.event_loops import run_sync
from ...models.session import session
from ...optimizer.acceptance import Decision, HeldOutAcceptance
from ...optimizer.events import Teller
from ...optimizer.job import Job, SplitExamples
from ...optimizer.modes.bench import Bench
from ...optimizer.modes.mode import mode_of
from ...optimizer.paper import PaperLoop

ROUNDS = 5
"""Iterations (App. B)."""
ALGORITHM_1: dict[str, Any] = {
    "paper": True,
    "notes": "each",
    "update": "edits",
    "max_lessons": 1_000_000,
    "max_iterations": ROUNDS,
}
"""The settings of a job to count."""


@dataclass(frozen=True)
class EveryVersionStands(HeldOutAcceptance):
    """Algorithm 1 has no early stopping: P(t) follows on P(t-1), whatever it is worth."""

    def decide(self, best: Sequence[ExampleScore], candidate: Sequence[ExampleScore]) -> Decision:
        """Keep it."""
        return Decision(True, "Algorithm 1 keeps every version", None)


def count_calls(job: Job, run: RunDirectory) -> int:
    """The calls that the algorithm takes on all examples of a job; what it comes to is thrown away.

    Answers that were bought in an earlier round are not counted again, as in a run of askance.

    Args:
        job: Of ``align`` or ``migrate``, with the settings of ``ALGORITHM_1``.
        run: An empty directory that the answers are kept in.

    Raises:
        AskanceError: A model cannot be reached.
    """
    run.open(job.config, job.examples, job.checklist, job.prompts, None, None)
    with run.store() as store:
        return run_sync(_run(job, run, store))


async def _run(job: Job, run: RunDirectory, store: VerdictStore) -> int:
    events = Teller(run.journal(), Silent(), [])
    async with session(job.options, store, events.say, stored_answers_are_ours=True) as (models, gateway):
        bench = Bench(job, SplitExamples(job.examples, job.examples, ()), models, gateway, run, events)
        set_up = await mode_of(job.command).set_up(bench)
        loop = PaperLoop(bench, set_up)
        loop.contest.acceptance = EveryVersionStands(set_up.yardstick, job.examples)
        await loop.improve(set_up.start)
        return gateway.budget.calls
