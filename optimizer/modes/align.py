"""``align``: bring a judge nearer to people's scores (BinEval App. B)."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from ...agents.buying import Estimate
from ...agents.comment_questions import (
    BesideReader,
    CommentReader,
    Generaliser,
    KindReader,
    RelationReader,
    RichReader,
    looks_at,
    noun_of,
    recurring_names,
)
from ...agents.evaluator import Evaluator
from ...agents.measures.nearest import texts_of_all
from ...agents.measures.values import make_measure_ready
from ...agents.question_writer import QuestionMender, QuestionWriter
from ...evaluation.calibration_fit import FITS
from ...evaluation.evaluate import load_inputs
from ...evaluation.measures.fitting import MeasureTable, measure_named
from ...evaluation.own_judge import improved_in_own_words, judge_asked
from ...evaluation.pass_fail import pass_labels
from ...evaluation.raters.comment_coverage import comment_coverage, covered_criteria, faults_found
from ...evaluation.scoring import Targets, human_targets
from ...memory.records import CriterionRecord
from ...memory.run_directory import CANDIDATES_FILE
from ...models.base import Model
from ...models.gateway import Gateway
from ...models.resolve import Models
from ...prompts.checklist import Checklist, dump_checklist
from ...prompts.criteria.question import Against
from ...prompts.errors import InputError
from ...prompts.examples import Example, documents, human_dimensions
from ...prompts.human_feedback import stray_comments_said
from ...prompts.prompt import Prompt
from ...settings import parse_options
from ...stats.resampling import Resampling
from ..acceptance import Yardstick, acceptance_of
from ..earlier import Earlier, earlier_run
from ..job import Job, SplitExamples, split_examples
from ..mode import RunContext, SetUp
from ..options import AlignOptions
from ..questions.again import QuestionsAgain
from ..questions.candidates import as_question
from ..questions.choice import NO_MEASURES, Chooser
from ..questions.exploits import exploit_facts
from ..questions.learner import QuestionLearner, learning_facts
from ..questions.pairs import PairChooser, PairYardstick, are_pairs, decided_pairs, examples_of_pairs
from ..questions.presentation import asked_at_the_start, mode_for
from ..questions.proposers import CommentProposer, Finder, KindProposer
from ..signals import HumanSignal
from ..steps.show_examples import ShowExamples, ShowMode
from ..subject import Draft, Observation, Outcome, Version
from ..weights.judged_pairs import holds_pairs, load_pairs
from .judge import JudgeSubject, asked_as_it_thinks, judge_set_up, raters_of, strata_of_people

logger = logging.getLogger(__name__)

NOTHING_LEARNED: Mapping[str, Any] = {
    "value": None,
    "n": 0,
    "low": None,
    "high": None,
    "reason": "no criterion was learned",
}


def prepare(
    data: str | Path | Iterable[Example | Mapping[str, Any]],
    checklist: str | Path | Checklist | None,
    model: str | Model | None,
    prompt: str | Path | Prompt | None,
    options: Mapping[str, Any],
    from_run: str | Path | None = None,
) -> Job:
    """Load and check the inputs. ``from_run`` replaces checklist and prompt, and the model if none is given. Raises
    InputError, which names the file, line and field at fault."""
    earlier = None if from_run is None else earlier_run(from_run)
    if earlier is not None:
        checklist, model, prompt, options = _of_the_judge(earlier, checklist, model, prompt, options)
    if not isinstance(data, (str, Path)):
        data = list(data)
    if pairs := holds_pairs(data, dict(options).get("field")):
        options = {"update": "questions"} | dict(options)
    settings = parse_options(AlignOptions, dict(options))
    if pairs:
        data, settings = _of_pairs(data, settings)
    if model is None or (checklist is None and prompt is None):
        missing = "model" if model is None and checklist is not None else "checklist"
        raise InputError(f"A {missing} is needed (or an earlier run to go on from, which brings its own).")
    if checklist is None or earlier is None:
        checklist, settings = judge_asked(checklist, prompt, settings)
    settings = improved_in_own_words(settings)
    if earlier is not None:
        _check_calibrated(earlier, settings)
    for name in settings.measure:
        make_measure_ready(measure_named(name))
    examples, questions, text = load_inputs(data, checklist, prompt, settings)
    job = Job("align", examples, questions, {"prompt": text}, {"model": model}, settings, earlier=earlier)
    strata = strata_of_people(job)  # refuses data without human scores before anything is opened
    if settings.optimise_for in ("auc", "kappa"):
        targets = human_targets(examples, questions, settings.human_scale)
        if pass_labels(examples, targets) is None:
            raise InputError(
                f"optimise_for {settings.optimise_for}: people's labels must be pass or fail (or true and false, 1 and "
                f"0) on {', '.join(targets.dimensions)}; with scores on a scale take spearman or kendall."
            )
    if earlier is not None:
        split_examples(job, strata)
    stray = stray_comments_said({each.id: each.comment for each in examples}, questions, human_dimensions(examples))
    if stray is not None:
        logger.warning("%s", stray)
    return job


def _of_pairs(data: Any, settings: AlignOptions) -> tuple[list[Example], AlignOptions]:
    """Return both outputs of every pair as examples, and the settings without those for reading pairs. Raises
    InputError."""
    for name, usual in (
        ("update", "questions"),
        ("optimise_for", "spearman"),
        ("calibrate", False),
    ):
        if getattr(settings, name) != usual:
            raise InputError(f"{name}: from pairs questions are learned, so that more pairs are told; leave it out.")
    how: dict[str, Any] = {"fields": settings.field, "labels": settings.labels, "seed": settings.seed}
    pairs = load_pairs(data, limit=settings.limit, **how)
    if all(each.preferred == "tie" for each in pairs):
        raise InputError("In none of the pairs did people prefer one output.")
    read: dict[str, Any] = {"field": {}, "labels": {}, "limit": None}
    return examples_of_pairs(pairs), settings.model_copy(update=read)


def _of_the_judge(
    earlier: Earlier,
    checklist: str | Path | Checklist | None,
    model: str | Model | None,
    prompt: str | Path | Prompt | None,
    options: Mapping[str, Any],
) -> tuple[Checklist, str | Model, Prompt, dict[str, Any]]:
    """Return the earlier judge's checklist, model, prompt and settings. Uses other than the measured one are logged.
    Raises InputError if a checklist or prompt is given, too."""
    judge = earlier.judge
    # the earlier run has found out the mode
    options = {name: value for name, value in options.items() if (name, value) != ("mode", "auto")}
    for name, part in (("checklist", checklist), ("prompt", prompt)):
        if part is not None:
            raise InputError(f"The judge of the earlier run brings its own {name}; leave out the {name}, or the run.")
    judge.say_what_differs(model, options, calibration="fitted anew on the development examples")
    return judge.checklist, judge.model if model is None else model, judge.prompt, judge.with_options(options)


def _check_calibrated(earlier: Earlier, options: AlignOptions) -> None:
    """Raise InputError for settings that cannot improve a calibrated judge."""
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
    """The mode that improves a judge by people's scores."""

    options = AlignOptions
    models = ("model",)
    prompts = ("prompt",)
    settings = ()
    needs_checklist = True

    def strata(self, job: Job) -> list[float | None] | None:
        """Return the human scores."""
        return strata_of_people(job)

    async def set_up(self, context: RunContext) -> SetUp:
        """Make the parts of the loop. Calls are bought only to calibrate another model, and to see how questions can be
        asked."""
        job, options = context.job, context.job.options_as(AlignOptions)
        model = context.model("model")
        combined, raters = raters_of(context, options.combine)
        targets = human_targets(job.examples, job.questions, options.human_scale, combined)
        subject = JudgeSubject.of(context, model, "model")
        judge = subject.evaluator if options.explain != "never" else None
        how: dict[str, Any] = {"by_score": options.paper, "of_scores": options.reads is not None}
        signal = HumanSignal(
            targets, context.splits.development, judge, threshold=options.disagreement_threshold, **how
        )
        questions_again = None
        pairs = decided_pairs(job.examples) if are_pairs(job.examples) else None
        if options.regenerate_questions:
            writes = context.helper("writer", model)
            writer = QuestionWriter(context.gateway, writes, context.embedder, seed=options.seed)
            questions_again = QuestionsAgain(writer, job.questions.dimensions, context.events)
        set_up = judge_set_up(context, subject, signal, targets, model, options.optimise_for, questions_again)
        set_up = replace(set_up, known_facts={**set_up.known_facts, **raters})
        if pairs is not None:
            told = PairYardstick(pairs, options.resamples, options.seed)
            accepts = acceptance_of(options, told, context.splits.validation, None)
            set_up = replace(set_up, yardstick=told, acceptance=accepts, bought_facts=())
        if job.earlier_judge is not None:
            set_up = replace(set_up, start=await _start(context, job.earlier_judge, subject, targets))
        set_up = await asked_as_it_thinks(context, subject, set_up)
        if mode_for(options, model, context.gateway) == "auto":
            found = await asked_at_the_start(subject, set_up.start, context.splits.development, context.events)
            if found is not None:
                screening = None if found.mode == "batched" else set_up.screening
                known = {**set_up.known_facts, "asked_both_ways": found}
                start = replace(set_up.start, mode=found.mode)
                set_up = replace(set_up, start=start, known_facts=known, screening=screening)
        steps, free = set_up.steps, set_up.free_facts
        if pairs is None:
            free = (*free, partial(_coverage_facts, context, targets))
        if options.update in ("auto", "examples"):
            examples = _examples_step(context, subject, signal, targets, set_up.yardstick)
            steps, free = (examples, *steps), (*free, examples.facts)
        if options.update in ("auto", "questions"):
            learns = learner(context, subject, targets, model)
            steps, free = (learns, *steps), (partial(learning_facts, learns, context), *free)
            # the probe's outputs are made up, so their verdicts do not count in the coverage
            probe = partial(exploit_facts, context, replace(subject, tally=lambda _: None), targets)
            set_up = replace(set_up, bought_facts=(*set_up.bought_facts, probe))
            if pairs is not None:
                free = (*free, partial(_keep_candidates, context, learns))
        set_up = replace(set_up, steps=steps, free_facts=free)
        return replace(set_up, steps=(), last=(), without_rounds="calibrated") if options.calibrate else set_up

    def estimate(self, job: Job, splits: SplitExamples, models: Models, gateway: Gateway) -> Estimate:
        """Estimate the judge's price on all examples."""
        judge = models.get(job.models["model"])
        return Evaluator(gateway, judge, job.prompt, job.questions, job.options.judging).estimate(job.examples)


def _keep_candidates(context: RunContext, learns: QuestionLearner, *_: object) -> dict[str, Any]:
    """Write all questions proposed from pairs as a checklist, e.g. for ``compare --candidates``."""
    asked = tuple(as_question(each, each.id, each.good or "yes") for each in learns.learned)
    text = dump_checklist(Checklist(task=context.job.questions.task, questions=asked)) if asked else None
    context.run.write_or_remove(CANDIDATES_FILE, text)
    return {}


def _coverage_facts(
    context: RunContext, targets: Targets, yardstick: Yardstick, outcome: Outcome, tests: Mapping[int, Observation]
) -> dict[str, Any]:
    """Make ``comment_coverage``: the comments on rejected test outputs that the learned criteria find, and those that
    the start finds. Empty if the test was not looked at, or no such output has a comment."""
    options, examples = context.job.options, context.splits.test
    resampling = Resampling(documents(examples), options.resamples, seed=options.seed)

    def seen(version: Version, ids: Collection[str] | None) -> dict[str, Any] | None:
        draft, criteria = version.draft, covered_criteria(version.draft.questions.questions, ids)
        if version.number not in tests or not criteria:
            return None
        verdicts = draft.own(tests[version.number].verdicts)
        read = verdicts if draft.calibration is None else draft.calibration.apply(verdicts)
        found = comment_coverage(examples, faults_found(read, criteria), targets, resampling, len(criteria))
        return None if found is None else found.to_dict()

    start = seen(outcome.baseline, None)
    if start is None:
        return {}
    learned = seen(outcome.best, outcome.best.draft.origins.keys()) or NOTHING_LEARNED
    return {"comment_coverage": {**learned, "start": start}}


def _examples_step(
    context: RunContext, subject: JudgeSubject, signal: HumanSignal, targets: Targets, yardstick: Yardstick
) -> ShowExamples:
    """Return the step that shows the judge examples. Beside other steps it tries only fixed examples."""
    options = context.job.options_as(AlignOptions)
    is_alone = options.update == "examples"
    modes: Sequence[ShowMode] = ("fixed", "retrieved") if is_alone else ("fixed",)
    means = context.splits.development, context.embedder, context.events
    return ShowExamples(
        *(subject, signal, targets, yardstick, *means), options.shown_examples, modes, options.soft, is_alone
    )


async def _start(context: RunContext, earlier: Earlier, subject: JudgeSubject, targets: Targets) -> Draft:
    """Return the judge of the earlier run as the start. Another model is calibrated anew."""
    job, judge, development = context.job, earlier.judge, context.splits.development
    origins = {name: each for name, each in judge.origins.items() if each.origin != "start"}
    draft = Draft(job.prompt, job.questions, origins=origins)
    if judge.calibration is None:
        return draft
    if job.is_same_judge:
        return replace(draft, calibration=judge.calibration)
    context.events.phase("judging the development examples, to calibrate the other model")
    seen = await subject.observe(draft, development, context.events.advance)
    fit = FITS[judge.calibration.method]
    return replace(draft, calibration=fit(seen.verdicts, development, draft.questions, targets))


def learner(context: RunContext, subject: JudgeSubject, targets: Targets, helper: Model) -> QuestionLearner:
    """Return the step that learns questions from people's comments."""
    splits, options, events, earlier = context.splits, context.job.options, context.events, context.job.earlier
    aligning = context.job.options_as(AlignOptions)
    mode, crossed = mode_for(aligning, subject.model, context.gateway), aligning.learn_from == "both"
    finder, mirror = (
        _finder(context, subject, targets, helper, part, mode) for part in (splits.development, splits.validation)
    )
    mirror.beside = finder
    examples, same_judge = [*splits.development, *splits.validation], context.job.is_same_judge
    waiting = earlier.waiting(examples, same_judge=same_judge) if earlier is not None else ()
    for side_finder, part, name in (
        (finder, splits.development, "development"),
        (mirror, splits.validation, "validation"),
    ):
        side_finder.waiting = _of(part, name, waiting)
        if earlier is not None and same_judge:
            side_finder.dropped = earlier.remembered.dropped
        if context.remembering is not None:
            of_memory = context.remembering.candidates(options.max_questions)
            texts, noun = _texts_beside(context.job), noun_of(context.job.questions)
            # a memory does not keep what a question looks at
            seen = [one.but(sees=looks_at(one.text, texts, noun)) for one in of_memory]
            side_finder.waiting = [*side_finder.waiting, *seen]
            side_finder.removed = context.remembering.removed_questions
    table = _measures(context, aligning)
    joint_chooser = _chooser(context, subject, targets, examples, mode, parts=2)
    for chooser in (finder.chooser, mirror.chooser, joint_chooser):
        chooser.table = table
    mender = QuestionMender(context.gateway, context.helper("note_taker", helper), seed=options.seed)
    return QuestionLearner(subject, finder, mirror, joint_chooser, events, options.soft, crossed, mender)


def _measures(context: RunContext, options: AlignOptions) -> MeasureTable:
    """Compute the measures that may join, on all examples. No label is looked at."""
    if options.calibrate:
        return NO_MEASURES
    embeds, folder = options.embedder != "words", context.run.began_in
    how: dict[str, Any] = {"embeds": embeds, "folder": folder, "store": context.gateway.store}
    return MeasureTable.of(list(context.job.examples), options.measures, options.measure, **how)


def _finder(
    context: RunContext,
    subject: JudgeSubject,
    targets: Targets,
    helper: Model,
    examples: Sequence[Example],
    mode: Literal["auto", "each", "batched"],
) -> Finder:
    job, options, events = context.job, context.job.options, context.events
    taker, noun, most = context.helper("note_taker", helper), noun_of(job.questions), options.max_questions
    writer, workers, earlier = (context.gateway, taker, noun), context.gateway.concurrency(taker), job.earlier
    read, contrasted = (earlier.comments_read(examples), earlier.contrasted(examples)) if earlier else ((), ())
    texts = _texts_beside(job)
    recurring = recurring_names(said.text for each in examples for said in each.comment)
    reader_options: dict[str, Any] = {"seed": options.seed, "recurring": recurring}
    has_more_rounds = options.max_iterations > 1
    # people name another model as writer because it is stronger
    is_another = taker.identity != context.model("model").identity
    comments = CommentProposer(
        CommentReader(*writer, **reader_options, texts=texts),
        BesideReader(*writer, **reader_options) if has_more_rounds else None,
        Generaliser(*writer, **reader_options),
        examples,
        context.embedder,
        events,
        most,
        workers,
        read,
        RelationReader(*writer, **reader_options, texts=texts) if has_more_rounds and texts else None,
        texts,
        RichReader(*writer, **reader_options, texts=texts) if has_more_rounds and is_another else None,
    )
    kinds = KindProposer(KindReader(*writer, seed=options.seed), examples, targets, events, most, workers, contrasted)
    chooser = _chooser(context, subject, targets, examples, mode)
    return Finder(chooser, context.embedder, events, options.max_iterations, (comments, kinds))


def _texts_beside(job: Job) -> list[Against]:
    """Return the texts that questions may compare an output with: all examples have them, and the judge sees them."""
    return [each for each in texts_of_all(job.examples) if job.prompt.shows(each)]


def _chooser(
    context: RunContext,
    subject: JudgeSubject,
    targets: Targets,
    examples: Sequence[Example],
    mode: Literal["auto", "each", "batched"],
    parts: int = 1,
) -> Chooser:
    options = context.job.options_as(AlignOptions)
    chooser_options: dict[str, Any] = {"parts": parts, "mode": mode, "keeps_start": options.keep_questions}
    means = subject, targets, examples, context.events, options.max_questions
    if are_pairs(context.job.examples):
        return PairChooser(*means, **chooser_options, soft=options.soft, seed=options.seed)
    return Chooser(*means, **chooser_options)


def _of(examples: Sequence[Example], part: str, waiting: Sequence[CriterionRecord]) -> list[CriterionRecord]:
    """Return an earlier run's questions as candidates of one part, with their sources among its examples. Questions
    that come only from other examples are left out, because this part will test them."""
    known = {each.id for each in examples}
    found = [(each, tuple(source for source in each.sources if source in known)) for each in waiting]
    return [
        CriterionRecord.of(each.text, each.dimension, each.origin, sources, each.comments, each.sees)
        for each, sources in found
        if sources or part in each.parts or not (each.sources or each.parts)
    ]


MODE = Align()
