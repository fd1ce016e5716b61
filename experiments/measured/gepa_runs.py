"""A finished run of ours as GEPA's task, and GEPA's search on it: its own defaults and its own reflection prompt.

Where a verdict is missing GEPA is given 0 here, as its adapter protocol asks, and that is counted (``unscored``); no
figure that is reported is made from these zeros.
"""

from __future__ import annotations

import logging
import sqlite3
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ...bridges.gepa_adapter import COMPONENT, import_gepa
from ...evaluation.progress import Silent
from ...memory.run_directory import RunDirectory
from ...models.session import background_session
from ...optimizer.events import Teller
from ...optimizer.job import NOT_IN_FINGERPRINT, Job, split_examples
from ...optimizer.modes.bench import Bench
from ...optimizer.modes.mode import mode_of
from ...optimizer.runner import read_job
from ...optimizer.subject import Draft
from ...prompts.checklist import Checklist
from ...prompts.errors import BudgetExceededError, InputError
from ...prompts.prompt import Prompt

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from ...bridges.gepa_adapter import AskanceAdapter
    from ...bridges.gepa_parts import ReflectionModel
    from ...models.base import Model
    from ...models.session import BackgroundLoop
    from ...optimizer.modes.mode import SetUp
    from ...optimizer.subject import Observation
    from ...prompts.examples import Example


logger = logging.getLogger(__name__)

MINIBATCH = 3
"""Examples that GEPA reflects on at once, by default."""
REACHED = (*NOT_IN_FINGERPRINT, "api_base")
"""Settings that say how the model is reached; all others are those of the run."""


@dataclass(frozen=True)
class Ours:
    """A run's job, with what measures it and the means to go on asking its model."""

    job: Job
    result: Mapping[str, Any]
    set_up: SetUp
    bench: Bench
    loop: BackgroundLoop
    model: Model
    """What the run improves the prompt of."""
    calls_per_rollout: float
    """Calls that one example takes."""

    @property
    def test_calls(self) -> int:
        """Calls that our run made on the test examples, with its first and its best prompt."""
        prompts = {self.result[side]["hash"] for side in ("baseline", "best")}
        return round(len(prompts) * len(self.bench.splits.test) * self.calls_per_rollout)

    @property
    def best(self) -> Draft:
        """The prompt that our run came to, with its questions."""
        side = self.result["best"]
        own = side.get("checklist")
        return Draft(Prompt(side["prompt"]), Checklist.model_validate(own) if own else self.set_up.start.checklist)

    def observe(self, draft: Draft, split: str) -> Observation:
        """What a draft does on a split; answers that are there are not bought again."""
        return self.loop.run(self.set_up.subject.observe(draft, getattr(self.bench.splits, split)))


@contextmanager
def open_again(directory: Path, command: str, model: str | Model | None, **options: Any) -> Iterator[Ours]:
    """Open a finished run; what is bought from now on is kept beside it, in ``DIRECTORY-gepa``.

    Answers of the run are taken over. Each counts as a call where it is first used, as if it had been bought.

    Args:
        directory: Of the run.
        command: What the run must be: ``align`` or ``tune``.
        model: Another way to reach the run's model; the run's own name by default.
        options: Those of :data:`REACHED`.

    Raises:
        InputError: There is no such run, or it is not finished.
        AskanceError: Another process is at work in the directory beside.
    """
    ours = RunDirectory(directory)
    config = ours.read_config()["config"]
    result = ours.read_result().to_dict() if ours.finished else None
    if config["command"] != command:
        raise InputError(f"{directory}: a run of '{config['command']}'; this task needs one of '{command}'.")
    if result is None or result["best"]["test"] is None:
        raise InputError(f"{directory}: the run has not come to a test figure. First: askance resume {directory}")
    job = _job(ours, model, options)
    mode, beside = mode_of(command), RunDirectory(directory.with_name(f"{directory.name}-gepa"))
    with beside.lock():
        _take_over(directory / "verdicts.db", beside.path / "verdicts.db")
        with (
            beside.store() as store,
            background_session(job.options, store, stored_answers_are_ours=True) as (loop, models, gateway),
        ):
            splits = split_examples(job, mode.strata(job))
            bench = Bench(job, splits, models, gateway, beside, Teller(beside.journal(), Silent()))
            needed = mode.estimate(job, splits, models, gateway)
            each = (needed.calls + needed.stored) / len(job.examples)
            set_up = loop.run(mode.set_up(bench))
            yield Ours(job, result, set_up, bench, loop, bench.model(mode.models[0]), each)


def _job(run: RunDirectory, model: str | Model | None, options: Mapping[str, Any]) -> Job:
    given = {name: value for name, value in options.items() if value is not None and name in REACHED}
    # What only our loop needs is left out: lessons are not remembered here.
    job = read_job(run, given | {"embedder": "words", "note_taker_program": None})
    if model is None:
        return job
    return replace(job, models={**job.models, mode_of(job.command).models[0]: model})


def _take_over(source: Path, target: Path) -> None:
    """Copy the answers of our run, once."""
    if target.exists() or not source.exists():
        return
    with closing(sqlite3.connect(source)) as there, closing(sqlite3.connect(target)) as here:
        there.backup(here)


@dataclass(frozen=True)
class Limits:
    """Where a search ends."""

    calls: int
    """No iteration begins after so many calls; one that has begun is finished, as GEPA's own limit has it."""
    hard_calls: int
    """No call is made after so many."""
    rollouts: int
    """GEPA's ``max_metric_calls``."""


def search(
    start: str,
    development: Sequence[Example],
    validation: Sequence[Example],
    adapter: AskanceAdapter,
    reflection: ReflectionModel,
    limits: Limits,
) -> tuple[str, dict[str, Any]]:
    """Run ``gepa.optimize``; everything that is not given here is as GEPA has it.

    Returns:
        The candidate with the best mean on validation, as GEPA picks it, and the figures of the search.

    Raises:
        MissingExtraError: GEPA is not installed.
        AskanceError: An endpoint is down or refuses every call.
    """
    gepa = import_gepa("gepa")
    budget, shared = reflection.gateway.budget, adapter.search

    def enough(state: Any) -> bool:
        return shared.error is not None or budget.calls >= limits.calls

    budget.max_calls = limits.hard_calls
    try:
        result = gepa.optimize(
            {COMPONENT: start},
            trainset=list(development),
            valset=list(validation),
            adapter=adapter,
            reflection_lm=reflection,
            max_metric_calls=limits.rollouts,
            stop_callbacks=enough,
            logger=_Log(),
            seed=reflection.seed,
            raise_on_exception=False,  # one that ends the search is in `shared`, and what was found is kept
        )
    finally:
        budget.max_calls = None
    if shared.error is not None and not isinstance(shared.error, BudgetExceededError):
        raise shared.error
    return result.best_candidate[COMPONENT], {
        "metric": adapter.metric.name,
        "finish_reason": "calls" if budget.calls >= limits.calls else "max_metric_calls",
        "limits": vars(limits),
        "calls": budget.calls,
        "tokens": budget.tokens,
        "reused": budget.cached_calls,
        **vars(shared.counts),
        "accepted_candidates": len(result.candidates) - 1,
        "best_candidate": result.best_idx,
        "own_validation_scores": list(result.val_aggregate_scores),
    }


class _Log:
    """GEPA's log goes where ours goes."""

    def log(self, message: str) -> None:
        logger.info("%s", message)
