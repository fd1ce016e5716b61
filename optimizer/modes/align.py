"""``align``: bring a judge nearer to people's scores (BinEval App. B)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...agents.buying import Estimate
from ...agents.evaluator import Evaluator
from ...agents.question_writer import QuestionWriter
from ...evaluation.calibration_fit import FITS
from ...evaluation.evaluate import load_inputs
from ...evaluation.pass_fail import pass_labels
from ...evaluation.scoring import Targets, human_targets
from ...models.base import Model
from ...models.gateway import Gateway
from ...models.resolve import Models
from ...prompts.checklist import Checklist
from ...prompts.errors import InputError
from ...prompts.examples import Example, human_dimensions
from ...prompts.human_feedback import stray_comments_said
from ...prompts.prompt import Prompt
from ...settings import parse_options
from ..job import Job, SplitExamples, split_examples
from ..options import AlignOptions
from ..questions.again import QuestionsAgain
from ..questions.together import asked_at_the_start, mode_for
from ..show_examples import ShowExamples, ShowMode
from ..signals import HumanSignal
from ..subject import Draft
from .bench import Bench
from .earlier import Earlier, earlier_run
from .judge import JudgeSubject, asked_as_it_thinks, judge_set_up, judge_subject, strata_of_people
from .learning import learner
from .mode import SetUp

logger = logging.getLogger(__name__)


def prepare(
    data: str | Path | Iterable[Example | Mapping[str, Any]],
    checklist: str | Path | Checklist | None,
    model: str | Model | None,
    prompt: str | Path | Prompt | None,
    options: Mapping[str, Any],
    from_run: str | Path | None = None,
) -> Job:
    """Load and check the inputs; ``from_run`` takes the place of checklist, prompt and, where none is given, model.

    Raises:
        InputError: Names the file, line and field at fault.
    """
    earlier = None if from_run is None else earlier_run(from_run)
    if earlier is not None:
        checklist, model, prompt, options = _of_the_judge(earlier, checklist, model, prompt, options)
    if checklist is None or model is None:
        missing = "checklist" if checklist is None else "model"
        raise InputError(f"A {missing} is needed (or an earlier run to go on from, which brings its own).")
    settings = parse_options(AlignOptions, dict(options))
    if earlier is not None:
        _check_calibrated(earlier, settings)
    examples, questions, text = load_inputs(data, checklist, prompt, settings)
    job = Job("align", examples, questions, {"prompt": text}, {"model": model}, settings, earlier=earlier)
    strata = strata_of_people(job)  # refuses data without human scores before anything is opened
    if settings.optimise_for in ("auc", "kappa"):
        targets = human_targets(examples, questions, settings.human_scale)
        if pass_labels(examples, targets) is None:
            raise InputError(
                f"optimise_for {settings.optimise_for}: people's labels must be pass or fail (or true and false, 1 and 0) on "
                f"{', '.join(targets.dimensions)}; with scores on a scale take spearman or kendall."
            )
    if earlier is not None:
        split_examples(job, strata)
    stray = stray_comments_said({each.id: each.comment for each in examples}, questions, human_dimensions(examples))
    if stray is not None:
        logger.warning("%s", stray)
    return job


def _of_the_judge(
    earlier: Earlier,
    checklist: str | Path | Checklist | None,
    model: str | Model | None,
    prompt: str | Path | Prompt | None,
    options: Mapping[str, Any],
) -> tuple[Checklist, str | Model, Prompt, dict[str, Any]]:
    """What the judge of an earlier run brings; what is used otherwise than it was measured is logged."""
    judge = earlier.judge
    options = {name: value for name, value in options.items() if (name, value) != ("mode", "auto")}  # it was found out
    for name, part in (("checklist", checklist), ("prompt", prompt)):
        if part is not None:
            raise InputError(f"The judge of the earlier run brings its own {name}; leave out the {name}, or the run.")
    judge.say_what_differs(model, options, calibration="fitted anew on the development examples")
    return judge.checklist, judge.model if model is None else model, judge.prompt, judge.with_options(options)


def _check_calibrated(earlier: Earlier, options: AlignOptions) -> None:
    """Refuse what a calibrated judge cannot be improved by."""
    if earlier.judge.calibration is None:
        return
    asked = "calibrate" if options.calibrate else "update" if options.update in ("edits", "rewrite") else None
    if asked is not None:
        given = "" if asked == "calibrate" else f" {options.update}"
        raise InputError(
            f"{asked}{given}: the verdicts of the earlier run's judge are read by a calibration, which belongs to its "
            "prompt; it can learn further questions (update auto or questions) or be shown examples (update examples)."
        )


class Align:
    """The mode: a judge's prompt, held against people."""

    options = AlignOptions
    models = ("model",)
    prompts = ("prompt",)
    settings = ()
    needs_checklist = True

    def strata(self, job: Job) -> list[float | None] | None:
        """The human scores."""
        return strata_of_people(job)

    async def set_up(self, bench: Bench) -> SetUp:
        """Nothing is bought before the loop, as people have judged already, but where the judge has questions enough to see
        whether they can be asked together."""
        job, options = bench.job, bench.job.options_as(AlignOptions)
        model = bench.model("model")
        targets = human_targets(job.examples, job.questions, options.human_scale)
        subject = judge_subject(bench, model, "model")
        judge = subject.evaluator if options.explain != "never" else None
        signal = HumanSignal(
            targets, bench.splits.development, judge, threshold=options.disagreement_threshold, by_score=options.paper
        )
        set_up = replace(
            judge_set_up(bench, subject, signal, targets, model, options.optimise_for), improve=not options.calibrate
        )
        if job.earlier is not None:
            set_up = replace(set_up, start=await _start(bench, job.earlier, subject, targets))
        set_up = await asked_as_it_thinks(bench, subject, set_up)
        if mode_for(options, model, bench.gateway) == "auto":
            found = await asked_at_the_start(subject, set_up.start, bench.splits.development, bench.events)
            if found is not None:
                screening = None if found.mode == "batched" else set_up.screening
                start = replace(set_up.start, mode=found.mode)
                set_up = replace(set_up, start=start, both_ways=found, screening=screening)
        if options.update in ("auto", "questions"):
            set_up = replace(set_up, learner=learner(bench, subject, targets, model))
        if options.update in ("auto", "examples"):
            modes: Sequence[ShowMode] = ("fixed",) if options.update == "auto" else ("fixed", "retrieved")
            set_up = replace(
                set_up,
                examples=ShowExamples(
                    subject,
                    signal,
                    targets,
                    set_up.yardstick,
                    bench.splits.development,
                    bench.embedder,
                    bench.events,
                    options.shown_examples,
                    modes,
                    options.soft,
                ),
            )
        if not options.regenerate_questions:
            return set_up
        writer = QuestionWriter(bench.gateway, bench.helper("writer", model), bench.embedder, seed=options.seed)
        return replace(set_up, questions_again=QuestionsAgain(writer, job.questions.dimensions, bench.events))

    def estimate(self, job: Job, splits: SplitExamples, models: Models, gateway: Gateway) -> Estimate:
        """The judge on everything."""
        judge = models.get(job.models["model"])
        return Evaluator(gateway, judge, job.prompt, job.questions, job.options.judging).estimate(job.examples)


async def _start(bench: Bench, earlier: Earlier, subject: JudgeSubject, targets: Targets) -> Draft:
    """The judge of the earlier run; with another model it is calibrated anew."""
    job, judge, development = bench.job, earlier.judge, bench.splits.development
    origins = {name: each for name, each in judge.origins.items() if each.kind != "start"}
    draft = Draft(job.prompt, job.questions, origins=origins)
    if judge.calibration is None:
        return draft
    if job.is_same_judge:
        return replace(draft, calibration=judge.calibration)
    bench.events.phase("judging the development examples, to calibrate the other model")
    seen = await subject.observe(draft, development, bench.events.advance)
    fit = FITS[judge.calibration.method]
    return replace(draft, calibration=fit(seen.verdicts, development, draft.questions, targets))


MODE = Align()
