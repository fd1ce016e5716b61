"""A judge whose prompt is improved: what ``migrate`` and ``align`` have in common.

Beside the judge's correlation a run says what calibration alone would have done, and its bias.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from ...agents.evaluator import Evaluator
from ...agents.judging import Judging
from ...agents.note_takers import BatchNoteTaker, NoteTaker
from ...agents.notes import NoteTaking, TakesNotes
from ...evaluation.pass_fail import pass_labels
from ...evaluation.scoring import Targets, dimension_errors, human_targets, yes_rates
from ...models.base import Model
from ...models.gateway import Gateway
from ...prompts.checklist import Checklist
from ...prompts.errors import InputError
from ...prompts.examples import Example
from ...prompts.verdicts import Verdict
from ..job import Job
from ..options import LoopOptions
from ..signals import Signal
from ..subject import Draft, Observation, Outcome, Pair, Subject, Version, by_pair
from ..trial import Screening
from ..yardsticks import BiasGuard, CorrelationYardstick, Metric
from .bench import Bench
from .calibrations import CalibrationComparison, compare_calibrations
from .mode import SetUp


@dataclass(frozen=True)
class JudgeSubject:
    """An evaluator model; the draft's prompt is what it judges with."""

    gateway: Gateway
    model: Model
    judging: Judging
    role: str
    """Its ledger."""
    soft: bool
    tally: Callable[[Sequence[Verdict]], None]
    """Shown all verdicts."""

    def evaluator(self, draft: Draft) -> Evaluator:
        """The judge with a draft's prompt and questions."""
        return Evaluator(
            self.gateway,
            self.model,
            draft.prompt,
            draft.questions,
            replace(self.judging, mode=draft.mode or self.judging.mode),
            role=self.role,
            tally=self.tally,
        )

    def once(self) -> JudgeSubject:
        """The same judge asked once, for where the first replicate alone is read."""
        return replace(self, judging=replace(self.judging, repeat=1))

    async def observe(
        self, draft: Draft, examples: Sequence[Example], on_done: Callable[[int, int], None] | None = None
    ) -> Observation:
        """Judge the examples' outputs."""
        verdicts = await self.evaluator(draft).judge(examples, on_done)
        scores = draft.scores(examples, verdicts, soft=self.soft)
        return Observation(examples, verdicts, scores, draft.checklist)

    async def probe(self, draft: Draft, pairs: Sequence[Pair], seen: Observation) -> dict[Pair, Verdict]:
        """Ask single questions about single examples; all questions, where they are asked together."""
        by_id = {example.id: example for example in seen.examples}
        asked: dict[str | None, list[str]] = {}
        mode = draft.mode or ("batched" if self.judging.mode == "batched" else "each")
        for example, question in dict.fromkeys(pairs):
            asked.setdefault(None if mode == "batched" else question, []).append(example)
        found: dict[Pair, Verdict] = {}
        for together, examples in asked.items():
            questions = draft.questions if together is None else only(draft.questions, together)
            judge = self.once().evaluator(Draft(draft.prompt, questions, mode=mode))
            found |= by_pair(await judge.judge([by_id[each] for each in dict.fromkeys(examples)]))
        return {pair: found[pair] for pair in pairs if pair in found}


def only(checklist: Checklist, question: str) -> Checklist:
    """The checklist with this question alone."""
    one = checklist.question(question).model_copy(update={"weight": 1.0})
    return checklist.model_copy(update={"questions": (one,)})


async def judge_extras(
    bench: Bench,
    subject: Subject,
    yardstick: CorrelationYardstick,
    outcome: Outcome,
    tests: Mapping[int, Observation],
) -> dict[str, Any]:
    """Calibration and drift of the first and the best version, measured on the test examples.

    Thresholds and Platt scaling are fitted on the development examples; verdicts on those that are not there yet are
    bought. ``calibration-platt.json`` and ``calibration-thresholds.json`` of the best version are kept; where it has
    learned questions, its verdicts are read by a calibration already, and that is kept as ``calibration-accepted.json``.

    Raises:
        BudgetExceededError: A cap was reached.
    """
    # calibrations are compared by it, whatever the acceptance test compares
    yardstick = replace(yardstick, metric="spearman")
    best = outcome.best
    sides: dict[str, Version] = {"baseline": outcome.baseline, "best": best}
    compared: dict[str, CalibrationComparison] = {}
    drift: dict[str, Any] = {}
    for side, version in sides.items():
        if version.number not in outcome.seen:
            bench.events.phase("judging the development examples, to calibrate")
            outcome.seen[version.number] = await subject.observe(
                version.draft, bench.splits.development, bench.events.advance
            )
        held_out = tests[version.number]
        if version.draft.calibration is None:
            compared[side] = compare_calibrations(
                outcome.seen[version.number].verdicts,
                held_out.verdicts,
                development=bench.splits.development,
                held_out=bench.splits.test,
                checklist=version.draft.questions,
                yardstick=yardstick,
                soft=bench.job.options.soft,
            )
        drift[side] = {
            "mean_errors": {
                name: each.bias for name, each in dimension_errors(held_out.scores, yardstick.targets).items()
            },
            "yes_rates": yes_rates(held_out.verdicts),
        }
    if best.draft.calibration is not None:
        bench.run.write(f"calibration-{best.draft.calibration.method}.json", best.draft.calibration.to_json())
    else:
        for figures in (compared["best"].thresholds, compared["best"].platt):
            if figures.calibration is not None:
                name = f"calibration-{figures.calibration.method}.json"
                bench.run.write(name, figures.calibration.to_json())
    return {"calibration": {side: each.to_dict() for side, each in compared.items()}, "drift": drift}


def judge_subject(bench: Bench, model: Model, role: str) -> JudgeSubject:
    """The judge that is improved; ``role`` is its ledger."""
    options = bench.job.options
    return JudgeSubject(bench.gateway, model, options.judging, role, options.soft, bench.count)


def judge_set_up(
    bench: Bench, subject: JudgeSubject, signal: Signal, targets: Targets, helper: Model, metric: Metric = "spearman"
) -> SetUp:
    """What the loop is given to improve a judge.

    Args:
        bench: With the judge's checklist.
        subject: The judge.
        signal: What it is held against.
        targets: What its held-out scores are correlated with.
        helper: Takes the roles that have no model of their own.
        metric: What the acceptance test compares.

    Raises:
        InputError: A compiled note-taker cannot be read.
        MissingExtraError: It needs DSPy, which is not installed.
    """
    job, options = bench.job, bench.job.options
    ranks = CorrelationYardstick(targets, resamples=options.resamples, seed=options.seed)
    yardstick = replace(ranks, metric=metric, labels=pass_labels(job.examples, targets))
    taker, task = bench.helper("note_taker", helper), job.questions.task
    notes: dict[str, Any] = {"seed": options.seed, "settings": note_taking(options)}
    return SetUp(
        start=Draft(job.prompt, job.questions),
        subject=subject,
        signal=signal,
        yardstick=yardstick,
        guard=BiasGuard(ranks, options.max_bias),
        note_taker=_compiled(bench, taker) or NoteTaker(bench.gateway, taker, task, **notes),
        helper=helper,
        batches=BatchNoteTaker(bench.gateway, taker, task, **notes),
        screening=None if options.judging.mode == "batched" else Screening(subject, bench.memory, soft=options.soft),
        extras=partial(judge_extras, bench, subject),
        facts={"reference": targets.kind},
        classify=not options.paper,
    )


async def asked_as_it_thinks(bench: Bench, subject: JudgeSubject, set_up: SetUp) -> SetUp:
    """The set-up, with a judge that is asked all questions on an output in one call where its model thinks and the
    settings leave
    that open. The first answers tell whether it thinks.

    Raises:
        BudgetExceededError: A cap was reached.
        ModelError: The endpoint refuses every call or is down.
    """
    if bench.job.options.mode != "auto" or subject.judging.score_scale is not None:
        return set_up
    if (
        not bench.splits.validation
    ):  # the loop is another's (GEPA), and buys when it asks; the evaluator then finds it out
        return set_up
    await subject.evaluator(set_up.start).settle(bench.splits.development)
    if not bench.gateway.thinkers.get(subject.model.identity):
        return set_up
    return replace(set_up, start=replace(set_up.start, mode="batched"), screening=None)


def _compiled(bench: Bench, model: Model) -> TakesNotes | None:
    """A note-taker that was compiled with DSPy, where one is given."""
    options = bench.job.options
    if options.note_taker_program is None:
        return None
    from ...agents.dspy.note_taker import CompiledNoteTaker

    there = bench.run.began_in / options.note_taker_program
    program = there if there.is_file() else Path(options.note_taker_program)
    return CompiledNoteTaker(bench.gateway, model, bench.job.questions.task, program, seed=options.seed)


def note_taking(options: LoopOptions) -> NoteTaking:
    """How notes are taken."""
    return NoteTaking(samples=options.note_samples, contrast=options.contrast, critique=options.critique)


def strata_of_people(job: Job) -> list[float | None]:
    """The human score of every example, to be spread evenly over the splits.

    Raises:
        InputError: The checklist asks about no dimension that people rated, or it is not known on what scale they did.
    """
    targets = human_targets(job.examples, job.questions, job.options.human_scale)
    if said := targets.without_scale():
        raise InputError(said)
    return [targets.overall(example.id) for example in job.examples]
