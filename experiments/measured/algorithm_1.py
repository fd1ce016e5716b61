"""BinEval's Algorithm 1, run whole so that its calls can be counted: no split, no cap, no trial, no gate.

In every round every judge answers every question on every example, with its explanation in the same call; every
disagreement is read by the note-taker, every note compared with the memory, and every lesson written into the prompt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...agents.deduplicator import Deduplicator
from ...agents.updater import Updater
from ...evaluation.progress import Silent
from ...models.session import run_sync, session
from ...optimizer.edits import EditByEdit, bundle
from ...optimizer.events import Teller
from ...optimizer.job import SplitExamples
from ...optimizer.lessons import LessonDesk
from ...optimizer.modes.bench import Bench
from ...optimizer.modes.mode import mode_of

if TYPE_CHECKING:
    from ...memory.run_directory import RunDirectory
    from ...memory.verdict_store import VerdictStore
    from ...optimizer.job import Job

ROUNDS = 5
"""Iterations (App. B)."""


def count_calls(job: Job, run: RunDirectory) -> int:
    """The calls that the algorithm takes on all examples of a job; what it comes to is thrown away.

    Answers that were bought in an earlier round are not counted again, as in a run of askance.

    Args:
        job: Of ``align`` or ``migrate``; should be set to explain always.
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
        helper = bench.helper("deduplicator", set_up.helper)
        comparing = Deduplicator(gateway, helper, seed=job.options.seed)
        desk = LessonDesk(set_up.note_taker, comparing, bench.memory, events, set_up.signal)
        updater = Updater(gateway, bench.helper("updater", set_up.helper), max_prompt_chars=None, seed=job.options.seed)
        writer = EditByEdit(updater, events)
        draft, texts = set_up.start, [text for each in job.examples for text in (each.input, each.output or "")]
        for _ in range(ROUNDS):
            seen = await set_up.subject.observe(draft, job.examples)
            found = set_up.signal.disagreements(draft, seen)
            if set_up.signal.agrees(seen) or not found:
                break
            reasons = await set_up.signal.reasons(draft, seen, found)
            lessons = await desk.learn(draft, seen, found, reasons)
            new = [each for each in lessons if each.text not in draft.prompt.text]
            edits = (await writer.write(draft.prompt, new, texts)).edits
            prompt = draft.prompt
            for edit in bundle(prompt, edits):
                prompt = prompt.apply(edit)
            draft = type(draft)(prompt, draft.checklist)
        return gateway.budget.calls
