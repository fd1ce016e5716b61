"""``migrate``: move an evaluator prompt to another model (BinEval §3.3, Algorithm 1)."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ..agents.deduplicator import Deduplicator
from ..agents.evaluator import Evaluator
from ..agents.note_taker import NoteTaker
from ..agents.updater import Updater
from ..memory.embedders import DEFAULT_EMBEDDER, embedder
from ..memory.lesson_memory import LessonMemory
from ..memory.run_directory import RunDirectory
from ..prompts.errors import BudgetExceededError, CoverageError, InputError
from .acceptance import PairedCorrelationGate
from .job import NOT_IN_FINGERPRINT, Job, SplitExamples, prepare, split_examples
from .lessons import LessonDesk
from .loop import Loop, Parts
from .options import LoopOptions, parse_options
from .progress import Silent
from .run_result import build_result, prompt_diff
from .scoring import Coverage, coverage, score_examples
from .session import run_sync, session
from .signals import CrossModelSignal
from .targets import Targets, human_targets, source_targets

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ..memory.journal import Journal
    from ..memory.verdict_store import VerdictStore
    from ..models.base import Model
    from ..models.gateway import Gateway
    from ..models.resolve import Models
    from ..prompts.checklist import Checklist
    from ..prompts.examples import Example
    from ..prompts.prompt import Prompt
    from ..prompts.verdicts import Verdict
    from .progress import Watcher
    from .results import FinishReason, Outcome
    from .scoring import ExampleScore


@dataclass(frozen=True)
class RunResult:
    """The result of a run: the prompt, and everything in ``result.json``."""

    directory: Path
    prompt: str
    """The accepted prompt; the starting prompt where nothing was accepted."""
    result: Mapping[str, Any]

    @property
    def finish_reason(self) -> str:
        """Why the run ended."""
        return str(self.result["finish_reason"])

    def require_coverage(self) -> RunResult:
        """Return this result if it has ``min_coverage``.

        Raises:
            CoverageError: It has not.
        """
        seen, least = self.result["coverage"], self.result["min_coverage"]
        if seen < least:
            raise CoverageError(
                f"Only {seen:.1%} of the verdicts are there, less than --min-coverage {least:.1%}. The result so far "
                f"is in {self.directory}; resuming the run asks for the missing ones again."
            )
        return self


def migrate(
    data: str | Path | Iterable[Example | Mapping[str, Any]],
    *,
    checklist: str | Path | Checklist,
    source: str | Model,
    target: str | Model,
    run: str | Path,
    prompt: str | Path | Prompt | None = None,
    source_prompt: str | Path | Prompt | None = None,
    watcher: Watcher | None = None,
    **options: Any,
) -> RunResult:
    """Improve the target's evaluator prompt until it judges like the source, as far as held-out data confirms it.

    Args:
        data: JSONL or CSV file, or rows; with human scores the held-out correlation is with those.
        checklist: YAML or JSON file, or a checklist.
        source: The judge to be matched: ``provider/model``, or an object that can be asked.
        target: The judge whose prompt is improved.
        run: Directory of the run; the same command on it goes on where it stopped.
        prompt: The target's starting prompt; askance's own neutral one by default.
        source_prompt: The source's prompt; by default the same as ``prompt``.
        watcher: Told how the work goes on.
        options: Settings of :class:`~askance.optimizer.options.LoopOptions`.

    Raises:
        InputError: Bad data, checklist, prompt, model name or setting, or another run in the directory.
        CoverageError: Fewer verdicts than ``min_coverage``; the result is written all the same.
        AskanceError: An endpoint is down, or the disk is full. The run can be resumed.
    """
    job = prepare(data, checklist, source, target, prompt, source_prompt, options)
    return run_job(job, RunDirectory(run), watcher or Silent()).require_coverage()


def run_job(job: Job, run: RunDirectory, watcher: Watcher) -> RunResult:
    """Run a job in its directory, or go on with it; the result is returned whatever its coverage.

    Raises:
        AskanceError: As :func:`migrate`.
    """
    with run.lock():
        run.open(job.config, job.examples, job.checklist, {"prompt": job.prompt, "source_prompt": job.source_prompt})
        with run.store() as store:
            try:
                return run_sync(_migrate(job, run, store, watcher))
            except BudgetExceededError as error:
                option = "--" + error.limit.replace("_", "-")
                raise BudgetExceededError(
                    error.limit,
                    f"{error} It ended before the starting prompt was measured, so there is no result yet. To go on: "
                    f"askance resume {run.path} {option} MORE",
                ) from None


def resume(run: str | Path, watcher: Watcher | None = None, **options: Any) -> RunResult:
    """Go on with the run in a directory; one that is finished is read, not repeated.

    Only what a run may cost can be changed: ``max_calls``, ``max_tokens``, ``max_cost``, ``max_concurrency``,
    ``timeout`` and ``retries``.

    Raises:
        InputError: There is no run, or a setting that cannot be changed was given.
        AskanceError: As :func:`migrate`.
    """
    directory = RunDirectory(run)
    config = dict(directory.read_config()["config"])
    for name in options:
        if name not in NOT_IN_FINGERPRINT:
            raise InputError(f"'{name}' cannot be changed when a run is resumed; start another run for that.")
    command, source, target = config.pop("command", None), config.pop("source", None), config.pop("target", None)
    if command != "migrate":
        raise InputError(f"{run}: a run of '{command}', which this askance does not know.")
    examples, checklist, prompts = directory.read_inputs()
    for name in ("prompt", "source_prompt"):
        if name not in prompts:
            raise InputError(f"{run}/inputs/{name}.md is missing, so the run cannot be resumed.")
    settings = parse_options(LoopOptions, config | dict(options), f"{run}/config.yaml")
    job = Job(examples, checklist, prompts["prompt"], prompts["source_prompt"], source, target, settings)
    return run_job(job, directory, watcher or Silent())


async def _migrate(job: Job, run: RunDirectory, store: VerdictStore, watcher: Watcher) -> RunResult:
    options = job.options
    parts = split_examples(job)
    journal = run.journal()
    journal.write(
        "split",
        development=[each.id for each in parts.development],
        validation=[each.id for each in parts.validation],
        test=[each.id for each in parts.test],
    )
    async with session(options, store, stored_answers_are_ours=True) as (models, gateway):
        watcher.watch(gateway.budget)
        gateway.on_wait = lambda text, seconds: watcher.say(f"{text} Asking again in {seconds:.1f} s.")
        migration = Migration(job, parts, models, gateway, run, journal, watcher)
        return await migration.run()


class Migration:
    """One migration while it runs: makes the loop's parts, lets it run, looks at the test once."""

    def __init__(
        self,
        job: Job,
        parts: SplitExamples,
        models: Models,
        gateway: Gateway,
        run: RunDirectory,
        journal: Journal,
        watcher: Watcher,
    ) -> None:
        """Names are resolved here, so an unknown model shows before anything is bought."""
        self._job = job
        self._parts = parts
        self._gateway = gateway
        self._run = run
        self._journal = journal
        self._watcher = watcher
        self._coverage = Coverage(0, 0, 0, 0, 0)
        source, target = models.get(job.source), models.get(job.target)
        self._target = target
        self._source = Evaluator(
            gateway, source, job.source_prompt, job.checklist, job.options.judging, role="source", tally=self._count
        )
        default = source if job.options.roles == "cross" else target
        named = (job.options.note_taker, job.options.deduplicator, job.options.updater)
        self._note_taker, self._deduplicator, self._updater = (models.get(name) if name else default for name in named)
        self._memory = LessonMemory(embedder(job.options.embedder or DEFAULT_EMBEDDER))

    async def run(self) -> RunResult:
        """Everything from the first verdict to ``result.json``."""
        job, parts = self._job, self._parts
        source_examples = parts.development
        if job.wants_source_targets:  # its verdicts on the test examples are bought at the end, like the target's
            source_examples = [*parts.development, *parts.validation]
        self._watcher.say(
            f"{len(parts.development)} development, {len(parts.validation)} validation and {len(parts.test)} test "
            f"examples, {len(job.checklist.questions)} questions each"
        )
        self._watcher.phase(f"the source judges {len(source_examples)} examples")
        source_verdicts = await self._source.judge(source_examples, self._watcher.advance)
        targets = self._targets(source_examples, source_verdicts)
        loop = Loop(self._loop_parts(source_verdicts, targets), job.options)
        outcome = await loop.improve(job.prompt)
        return await self._finish(outcome, targets)

    def _evaluator(self, prompt: Prompt) -> Evaluator:
        return Evaluator(
            self._gateway,
            self._target,
            prompt,
            self._job.checklist,
            self._job.options.judging,
            role="target",
            tally=self._count,
        )

    def _count(self, verdicts: Sequence[Verdict]) -> None:
        self._coverage += coverage(verdicts)

    def _targets(self, examples: Sequence[Example], source_verdicts: Sequence[Verdict]) -> Targets:
        job = self._job
        if job.wants_source_targets:
            return source_targets(job.checklist, self._scores(examples, source_verdicts))
        return human_targets(job.examples, job.checklist, job.options.human_scale)

    def _scores(self, examples: Sequence[Example], verdicts: Sequence[Verdict]) -> list[ExampleScore]:
        return score_examples(examples, self._job.checklist, verdicts, soft=self._job.options.scores == "soft")

    def _loop_parts(self, source_verdicts: Sequence[Verdict], targets: Targets) -> Parts:
        job, options, parts = self._job, self._job.options, self._parts
        max_prompt_chars = options.max_prompt_chars or 2 * len(job.prompt.text) + 1500
        development = {example.id for example in parts.development}
        return Parts(
            signal=CrossModelSignal(
                self._source,
                [each for each in source_verdicts if each.example in development],
                parts.development,
                margin=options.margin,
                tolerance=options.tolerance,
            ),
            gate=PairedCorrelationGate(
                targets,
                parts.validation,
                level=options.accept_level,
                resamples=options.resamples,
                seed=options.seed,
            ),
            desk=LessonDesk(
                NoteTaker(self._gateway, self._note_taker, job.checklist.task, seed=options.seed),
                Deduplicator(self._gateway, self._deduplicator, seed=options.seed),
                self._memory,
                job.checklist,
                {example.id: example for example in parts.development},
                self._journal,
                self._watcher,
            ),
            updater=Updater(
                self._gateway,
                self._updater,
                max_prompt_chars=max_prompt_chars,
                seed=options.seed,
            ),
            evaluator=self._evaluator,
            checklist=job.checklist,
            development=parts.development,
            validation=parts.validation,
            run=self._run,
            journal=self._journal,
            watcher=self._watcher,
            max_prompt_chars=max_prompt_chars,
        )

    async def _finish(self, outcome: Outcome, targets: Targets) -> RunResult:
        """Look at the test once, then write the result. Snapshots come last, ``result.json`` at the very end."""
        tests: dict[int, list[ExampleScore]] = {}
        why_not = None
        self._journal.write("test", versions=[outcome.baseline.number, outcome.best.number])
        try:
            targets, tests = await self._look_at_test(outcome, targets)
        except BudgetExceededError as error:
            why_not = f"the test was not judged: {error}"
            outcome = replace(outcome, finish_reason=cast("FinishReason", error.limit))
        result = build_result(
            job=self._job,
            splits=self._parts,
            outcome=outcome,
            targets=targets,
            tests=tests,
            why_no_test=why_not,
            lessons=self._memory.lessons,
            budget=self._gateway.budget,
            seen=self._coverage,
        )
        self._run.write("prompt.md", outcome.best.prompt.text)
        self._run.write("changes.diff", prompt_diff(outcome.baseline.prompt, outcome.best.prompt))
        self._run.save_lessons(self._memory.lessons)
        self._journal.write("finished", reason=outcome.finish_reason, best=outcome.best.number)
        self._run.write("result.json", json.dumps(result, ensure_ascii=False, indent=2) + "\n")
        return RunResult(self._run.path, outcome.best.prompt.text, result)

    async def _look_at_test(self, outcome: Outcome, targets: Targets) -> tuple[Targets, dict[int, list[ExampleScore]]]:
        """Targets for the test examples too, and the scores on them of the first and the best version."""
        test = self._parts.test
        if self._job.wants_source_targets:
            self._watcher.phase(f"the source judges {len(test)} test examples")
            wanted = self._targets(test, await self._source.judge(test, self._watcher.advance)).wanted
            targets = replace(targets, wanted={**targets.wanted, **wanted})
        scores = {}
        for version in {outcome.baseline.number: outcome.baseline, outcome.best.number: outcome.best}.values():
            name = "the starting prompt" if version is outcome.baseline else "the accepted prompt"
            self._watcher.phase(f"looking at the test examples, once, with {name}")
            verdicts = await self._evaluator(version.prompt).judge(test, self._watcher.advance)
            scores[version.number] = self._scores(test, verdicts)
        return targets, scores
