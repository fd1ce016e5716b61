"""A judge whose prompt is improved.

What a run says of a judge beside its correlation: what calibration alone would have done, and how it drifted.

What the modes that improve a judge have in common.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...agents.batch_notes import BatchNoteTaker
from ...agents.evaluator import Evaluator
from ...agents.note_taker import NoteTaker
from ...agents.notes import NoteTaking
from ...evaluation.scoring import coverage, dimension_errors, human_targets, score_examples, yes_rates
from ..screening import Screening
from ..subject import Draft, Observation, Pair
from .calibrations import compare_calibrations

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ...agents.judging import Judging
    from ...agents.notes import TakesNotes
    from ...evaluation.scoring import Coverage
    from ...models.base import Model
    from ...models.gateway import Gateway
    from ...prompts.checklist import Checklist
    from ...prompts.examples import Example
    from ...prompts.verdicts import Verdict
    from ..job import Job
    from ..options import LoopOptions
    from ..subject import Outcome, Subject, Version
    from ..yardsticks import CorrelationYardstick
    from .bench import Bench


class JudgeSubject:
    """An evaluator model; the draft's prompt is what it judges with."""

    def __init__(
        self,
        gateway: Gateway,
        model: Model,
        judging: Judging,
        *,
        role: str,
        soft: bool,
        tally: Callable[[Coverage], None],
    ) -> None:
        """``role`` is its ledger; ``tally`` is told the coverage of everything that was judged."""
        self._gateway = gateway
        self._model = model
        self._judging = judging
        self._role = role
        self._soft = soft
        self._tally = tally

    def evaluator(self, draft: Draft) -> Evaluator:
        """The judge with a draft's prompt and questions."""
        return Evaluator(
            self._gateway,
            self._model,
            draft.prompt,
            _questions(draft),
            self._judging,
            role=self._role,
            tally=lambda verdicts: self._tally(coverage(verdicts)),
        )

    async def observe(
        self, draft: Draft, examples: Sequence[Example], on_done: Callable[[int, int], None] | None = None
    ) -> Observation:
        """Judge the examples' outputs."""
        verdicts = await self.evaluator(draft).judge(examples, on_done)
        scores = score_examples(examples, _questions(draft), verdicts, soft=self._soft)
        return Observation(examples, verdicts, scores, draft.checklist)

    async def probe(self, draft: Draft, pairs: Sequence[Pair], seen: Observation) -> dict[Pair, Verdict]:
        """Ask single questions about single examples; all questions, where they are asked together."""
        by_id = {example.id: example for example in seen.examples}
        asked: dict[str | None, list[str]] = {}
        for example, question in dict.fromkeys(pairs):
            asked.setdefault(None if self._judging.mode == "batched" else question, []).append(example)
        found: dict[Pair, Verdict] = {}
        for together, examples in asked.items():
            questions = _questions(draft) if together is None else only(_questions(draft), together)
            judge = self.evaluator(Draft(draft.prompt, questions))
            for verdict in await judge.judge([by_id[each] for each in dict.fromkeys(examples)]):
                if verdict.replicate == 0:
                    found[verdict.example, verdict.question] = verdict
        return {pair: found[pair] for pair in pairs if pair in found}


def only(checklist: Checklist, question: str) -> Checklist:
    """The checklist with this question alone."""
    one = checklist.question(question).model_copy(update={"weight": 1.0})
    return checklist.model_copy(update={"questions": (one,)})


def _questions(draft: Draft) -> Checklist:
    assert draft.checklist is not None, "a judge answers a checklist"
    return draft.checklist


async def judge_extras(
    bench: Bench,
    subject: Subject,
    yardstick: CorrelationYardstick,
    outcome: Outcome,
    tests: Mapping[int, Observation],
) -> dict[str, Any]:
    """Calibration and drift of the first and the best version, measured on the test examples.

    Thresholds and Platt scaling are fitted on the development examples; verdicts on those that are not there yet are
    bought. ``calibration-platt.json`` and ``calibration-thresholds.json`` of the best version are kept.

    Raises:
        BudgetExceededError: A cap was reached.
    """
    sides: dict[str, Version] = {"baseline": outcome.baseline, "best": outcome.best}
    calibration: dict[str, Any] = {}
    drift: dict[str, Any] = {}
    for side, version in sides.items():
        if version.number not in outcome.seen:
            bench.events.phase("judging the development examples, to calibrate")
            outcome.seen[version.number] = await subject.observe(
                version.draft, bench.splits.development, bench.events.advance
            )
        held_out = tests[version.number]
        assert version.draft.checklist is not None, "a judge answers a checklist"
        compared = compare_calibrations(
            outcome.seen[version.number].verdicts,
            held_out.verdicts,
            development=bench.splits.development,
            held_out=bench.splits.test,
            checklist=version.draft.checklist,
            yardstick=yardstick,
            soft=bench.job.options.soft,
        )
        calibration[side] = compared.to_dict()
        drift[side] = {
            "mean_errors": {
                name: each.drift for name, each in dimension_errors(held_out.scores, yardstick.targets).items()
            },
            "yes_rates": yes_rates(held_out.verdicts),
        }
    for figures in (compared.thresholds, compared.platt):
        if figures.calibration is not None:
            name = f"calibration-{figures.calibration.method}.json"
            bench.run.write(name, figures.calibration.to_json())
    return {"calibration": calibration, "drift": drift}


def judge_subject(bench: Bench, model: Model, role: str) -> JudgeSubject:
    """The judge that is improved; ``role`` is its ledger."""
    options = bench.job.options
    return JudgeSubject(bench.gateway, model, options.judging, role=role, soft=options.soft, tally=bench.count)


def judge_screening(bench: Bench, subject: JudgeSubject) -> Screening | None:
    """Judges candidates on a part of the questions first; None where one call answers all questions."""
    options = bench.job.options
    return None if options.judging.mode == "batched" else Screening(subject, bench.memory, soft=options.soft)


def judge_note_taker(bench: Bench, model: Model) -> TakesNotes:
    """Who takes notes on a judge's disagreements: ours, or one that was compiled with DSPy.

    Raises:
        InputError: The compiled one cannot be read.
        MissingExtraError: It needs DSPy, which is not installed.
    """
    job, options = bench.job, bench.job.options
    assert job.checklist is not None, "a judge needs a checklist"
    taker = bench.helper("note_taker", model)
    task, seed, program = job.checklist.task, options.seed, options.note_taker_program
    if program is None:
        return NoteTaker(bench.gateway, taker, task, seed=seed, settings=note_taking(options))
    from ...agents.dspy.note_taker import CompiledNoteTaker

    return CompiledNoteTaker(bench.gateway, taker, task, program, seed=seed)


def batch_note_taker(bench: Bench, model: Model) -> BatchNoteTaker:
    """Who takes notes on several of a judge's disagreements at once."""
    job, options = bench.job, bench.job.options
    assert job.checklist is not None, "a judge needs a checklist"
    taker = bench.helper("note_taker", model)
    return BatchNoteTaker(bench.gateway, taker, job.checklist.task, seed=options.seed, settings=note_taking(options))


def note_taking(options: LoopOptions) -> NoteTaking:
    """How notes are taken."""
    return NoteTaking(samples=options.note_samples, contrast=options.contrast, critique=options.critique)


def strata_of_people(job: Job) -> list[float | None]:
    """The human score of every example, to be spread evenly over the splits.

    Raises:
        InputError: The checklist asks about no dimension that people rated.
    """
    assert job.checklist is not None, "a judge needs a checklist"
    targets = human_targets(job.examples, job.checklist, job.options.human_scale)
    return [targets.overall(example.id) for example in job.examples]
