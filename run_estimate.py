"""Estimate of a run before it begins: calls that are certain, calls at most, and the calls, tokens and dollars of a
typical run, from measured runs (``docs/results/learning.md``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import ceil
from operator import add
from pathlib import Path
from typing import Any

from .agents.buying import Estimate
from .agents.comment_questions import MOST_QUESTIONS, MOST_REMARKS
from .agents.judging import MOST_TOGETHER
from .agents.note_takers import MOST_LESSONS
from .agents.question_writer import MOST_CALLS
from .memory.verdict_store import Place, VerdictStore
from .models.event_loops import run_sync
from .models.session import session
from .optimizer.contest import most_tries
from .optimizer.job import Job, SplitExamples, model_name, split_examples
from .optimizer.mode import mode_of
from .optimizer.modes.migrate import without_source
from .optimizer.options import AlignOptions, MigrateOptions, TuneOptions
from .optimizer.questions.choice import MOST_TRIED
from .optimizer.questions.exploits import WAYS
from .optimizer.questions.learner import FOLDS
from .optimizer.questions.presentation import BOTH_WAYS, GROUP, examples_to_ask_of, mode_for
from .optimizer.questions.proposers import BESIDE_EACH, DESCRIBED, KINDS_FOR_ONE, READ_FOR_ONE
from .optimizer.steps.edits import TRIED_ON
from .optimizer.steps.lessons import BATCH, CONTROLS, EVIDENCE
from .optimizer.steps.word_questions import most_calls
from .prompts.examples import Example, human_dimensions
from .prompts.formats.several import sections
from .prompts.human_feedback import one_line

Range = tuple[float, float]


@dataclass(frozen=True)
class PriceClass:
    """US dollars for a million tokens sent to a model, and for a million tokens that the model writes."""

    name: str
    sent: float
    written: float

    def of(self, tokens: float, written: float) -> float:
        """Return the dollars for ``tokens``; ``written`` is the share of them that the model writes."""
        return tokens * ((1 - written) * self.sent + written * self.written) / 1e6


PRICE_CLASSES = (PriceClass("small", 0.15, 0.60), PriceClass("middle", 1, 4), PriceClass("large", 3, 15))
"""Rounded list prices of hosted models in three sizes."""
PRICES_AS_OF = "May 2026"


@dataclass(frozen=True)
class TypicalRun:
    """Calls and tokens that a run typically takes if nothing is stored yet."""

    calls: Range
    tokens: Range
    written: float
    """Share of the tokens that models write."""
    basis: str

    def times(self, calls: float, tokens: float) -> TypicalRun:
        """Scale the figures of measured runs, which are per call and token of a yardstick, to a yardstick's calls and
        tokens."""
        (low, high), (least, most) = self.calls, self.tokens
        return TypicalRun((calls * low, calls * high), (tokens * least, tokens * most), self.written, self.basis)

    def __add__(self, other: TypicalRun) -> TypicalRun:
        calls = (self.calls[0] + other.calls[0], self.calls[1] + other.calls[1])
        tokens = (self.tokens[0] + other.tokens[0], self.tokens[1] + other.tokens[1])
        return TypicalRun(calls, tokens, self.written, self.basis)

    def dollars(self, price: PriceClass) -> Range:
        """Return the lowest and highest dollars at a price."""
        low, high = self.tokens
        return price.of(low, self.written), price.of(high, self.written)

    def record(self) -> dict[str, Any]:
        """Return the figures for ``--json``."""
        calls, tokens = [[_rounded(each) for each in ends] for ends in (self.calls, self.tokens)]
        cost = {each.name: self.dollars(each) for each in PRICE_CLASSES}
        return {"calls": calls, "tokens": tokens, "cost_usd": cost, "basis": self.basis}


# Measured runs, per call and token of a yardstick. If questions are learned, the yardstick is one call an example;
# otherwise it is judging, or writing, all outputs with the starting prompt.
EACH = TypicalRun(
    (30, 80), (30, 120), 0.02, "one question a call: 36 of 44 measured runs on 150 or 300 outputs, a third commented"
)
TOGETHER = TypicalRun(
    (7.5, 10), (30, 37), 0.2, "up to eight questions a call: simulated runs on 150 outputs, two thirds commented"
)
UNCOMMENTED = TypicalRun(
    (4.5, 16), (4.5, 24), 0.02, "one question a call: all twelve measured runs on 150 outputs without comments"
)
JUDGE_EDITS = TypicalRun(
    (1.2, 1.5), (1.2, 1.5), 0.02, "edits of a judge's prompt: all five measured runs on 60 or 120 examples"
)
WRITER_EDITS = TypicalRun(
    (1.3, 1.9), (1.3, 1.9), 0.4, "edits of a generator's prompt: all three measured runs on 40 or 70 examples"
)
MOVED = TypicalRun((2.3, 2.5), (1.8, 2.4), 0.4, "held to checks alone, one iteration: both measured runs on 114 inputs")


@dataclass(frozen=True)
class RunEstimate:
    """The calls of a run, as far as they can be known in advance: certain calls, and calls at most."""

    fixed: Estimate
    """Judging all splits once with the starting prompt, and the reference's verdicts; stored answers are not bought."""
    wording_calls: int
    """Most calls for wording the questions anew and trying the new checklist; 0 if the questions stay."""
    iteration_calls: int
    """Most calls of one iteration: every edit is tried alone and every helper is asked twice."""
    last_calls: int
    """Calls for the test and, to calibrate, for development with the accepted prompt; plus the most calls for steps
    that happen once: learning questions, pruning, and stating failures in their own words."""
    typical: tuple[TypicalRun, ...] = ()
    """Figures of measured runs of this kind, scaled to these examples."""

    def __add__(self, other: RunEstimate) -> RunEstimate:
        return RunEstimate(
            self.fixed + other.fixed,
            self.wording_calls + other.wording_calls,
            self.iteration_calls + other.iteration_calls,
            self.last_calls + other.last_calls,
            together(self.typical, other.typical),
        )

    def most(self, iterations: int) -> int:
        """Return the most calls that a run with so many iterations can take."""
        return self.fixed.calls + self.wording_calls + iterations * self.iteration_calls + self.last_calls


def estimate_runs(jobs: Sequence[Job]) -> RunEstimate:
    """Estimate several runs together. They share the source's answers, which only the first run buys."""
    first, *others = jobs
    return reduce(add, [estimate_run(first), *(estimate_run(without_source(job)) for job in others)])


def estimate_run(job: Job) -> RunEstimate:
    """Estimate the calls of a job without buying anything. Raises InputError for an unknown model."""
    mode = mode_of(job.command)
    splits = split_examples(job, mode.strata(job))
    options = job.options

    async def judging(
        there: Path | None, shared: Place | None, splits: SplitExamples = splits
    ) -> tuple[Estimate, bool]:
        with VerdictStore(":memory:", there, shared, is_ours=True) as store:
            async with session(options, store) as (models, gateway):
                finds_out = (
                    isinstance(options, AlignOptions)
                    and mode_for(options, models.get(job.models["model"]), gateway) == "auto"
                )
                return mode.estimate(job, splits, models, gateway), finds_out

    there = job.earlier.answers if job.earlier and not options.no_cache else None
    shared = options.shared if job.may_share else None
    shared = None if isinstance(shared, Path) and not shared.exists() else shared
    whole, finds_out = run_sync(judging(None, None))
    typical = typical_runs(job, whole)
    fixed = whole if there is None and shared is None else run_sync(judging(there, shared))[0]
    if isinstance(options, AlignOptions) and options.calibrate:
        return RunEstimate(fixed, 0, 0, 0)
    dearest = whole
    if isinstance(options, TuneOptions) and options.decide_by == "checker":  # the judge sees only development
        dearest = run_sync(judging(None, None, replace(splits, development=job.examples)))[0]
    example_calls = ceil((dearest.calls + dearest.stored) / len(job.examples))  # calls an example, rounded up
    questions = 0
    if isinstance(options, AlignOptions) and options.regenerate_questions:
        questions = 2 * MOST_CALLS + len(splits.validation) * example_calls  # written, with re-asks, and tried
    ends = (len(splits.test) + len(splits.development)) * example_calls
    if options.paper:
        return RunEstimate(fixed, 0, _papers_iteration(job, splits, example_calls) + questions, ends, typical)
    words = 0
    if isinstance(options, MigrateOptions) and options.words_questions and job.checklist is not None:
        words = most_calls(len(job.checklist.asked), len(splits.development), job.views)
        words += len(splits.validation) * example_calls
    only_words = isinstance(options, MigrateOptions) and options.update == "questions"
    iteration = 0 if only_words else _iteration(job, splits, example_calls) + questions
    learning = _all_learning(job, splits, example_calls, finds_out=finds_out)
    ends += _once(job, splits, example_calls, questions) + learning
    return RunEstimate(fixed, words, iteration, ends, typical)


def _iteration(job: Job, splits: SplitExamples, a_version: int) -> int:
    """Return the most calls of one iteration, without writing questions anew; ``a_version``: calls an example."""
    options, development = job.options, len(splits.development)
    notes = min(options.max_notes, development * max(1, a_version))
    edits = min(notes, options.max_lessons)
    explanations = 0 if options.explain == "never" else 2 * notes
    trials = edits * (EVIDENCE + CONTROLS) * (1 if job.is_judge else a_version) if options.trial else 0
    # notes, kinds of faults, repeats, classes, three opposites among lessons and three in the prompt, edits;
    # each with one re-ask
    helpers = 2 * 11 * notes
    placed = options.max_lessons * len(sections(job.prompt.text)) * TRIED_ON  # 0 for a single prompt
    judged = development + placed + most_tries(edits) * len(splits.validation)
    return judged * a_version + explanations + helpers + trials


def _papers_iteration(job: Job, splits: SplitExamples, a_version: int) -> int:
    """Return the most calls of one iteration of the papers' loop: every example is disputed on every question."""
    options, development = job.options, len(splits.development)
    batches = ceil(development / BATCH) if options.notes == "batched" else development
    updates = 1 if options.update == "rewrite" else options.max_lessons
    reasons = 0 if options.explain == "never" else 2 * development * a_version
    helpers = 2 * (batches + MOST_LESSONS * development + updates)
    return (development + len(splits.validation)) * a_version + reasons + helpers


def _once(job: Job, splits: SplitExamples, a_version: int, questions: int) -> int:
    """Return the most calls for pruning, and for stating failures or remembered lessons as plain lines."""
    options, one_version = job.options, len(splits.validation) * a_version
    pruning = options.max_lessons * one_version if options.prune and options.edits_prompt else 0
    states = (isinstance(options, TuneOptions) and options.plain_first) or options.memory is not None
    lines = most_tries(options.max_lessons) * one_version + 2 * options.max_lessons + questions if states else 0
    return pruning + lines


def _all_learning(job: Job, splits: SplitExamples, a_version: int, *, finds_out: bool) -> int:
    """Return the most calls for learning questions. With ``finds_out`` the run first finds out whether questions can be
    asked together: the dearer way counts, plus the calls to find out."""
    options, development = job.options, len(splits.development)
    learning = _learning(job, splits, a_version, grouped=options.mode == "batched")
    if not finds_out:
        return learning
    most_together = _learning(job, splits, a_version, grouped=True)
    asked_both_ways = options.repeat * examples_to_ask_of(len(job.questions.asked), development)
    by_candidates = BOTH_WAYS // GROUP * (development + len(splits.validation)) if learning else 0
    return max(learning, most_together) + (asked_both_ways or by_candidates)


def _learning(job: Job, splits: SplitExamples, a_version: int, *, grouped: bool) -> int:
    """Return the most calls for learning questions; ``grouped``: whether one call asks several questions."""
    options = job.options
    if not isinstance(options, AlignOptions) or options.update not in ("auto", "questions"):
        return 0
    asked = a_version if options.mode == "batched" else ceil(a_version / max(1, len(job.questions.asked)))
    # the learned judge is probed with its old questions and the most new questions that may join
    learned = a_version + asked * (ceil(options.max_questions / MOST_TOGETHER) if grouped else options.max_questions)
    probing = min(options.probed_outputs, len(splits.development)) * (1 + len(WAYS)) * learned
    halves = [splits.development, splits.validation]
    taught = halves if options.learn_from == "both" else halves[:1]
    tests = len(splits.test) + (0 if len(taught) == len(halves) else len(splits.validation))
    remembered = options.max_questions if options.memory is not None else 0
    return probing + calls_at_most(
        taught,
        tests,
        most=options.max_questions,
        rounds=options.max_iterations,
        dimensions=len(human_dimensions(job.examples)),
        waiting=remembered + (len(job.earlier.remembered.waiting) if job.earlier else 0),
        asked=asked,
        grouped=grouped,
        views=job.views + (not grouped),  # a quote is a call of its own
        rich=options.note_taker is not None and options.note_taker != model_name(job.models["model"]),
    )


def calls_at_most(
    halves: Sequence[Sequence[Example]],
    test: int,
    *,
    most: int,
    rounds: int,
    dimensions: int,
    waiting: int,
    asked: int,
    grouped: bool = False,
    views: int = 1,
    rich: bool = False,
) -> int:
    """Return the most calls that learning questions can take. ``halves`` are the examples that teach: two halves are
    cross-fitted, a single one is tested on ``test`` others. ``asked``: calls for one question on one example or, if
    ``grouped``, for all questions of a group or judge. ``waiting``: candidates of earlier runs. ``views``: ways to ask
    (with everything in view, about the output alone, for a quote). ``rich``: whether the writer is also asked for
    questions with a definition."""
    remark_questions = MOST_QUESTIONS * (1 + MOST_QUESTIONS)  # questions of a comment, and more general ones for each
    example_count = sum(map(len, halves))
    writing, candidates = 0.0, 0.0
    for examples in halves:
        comments = {one_line(each.text) for example in examples for each in example.comment}
        read = min(len(comments), READ_FOR_ONE * most * rounds)
        solo_readings, paired_readings = read * (1 + MOST_REMARKS), read * BESIDE_EACH
        # each comment is read once more with the whole example; those questions are not made more general
        writing += (
            (solo_readings + paired_readings) * (1 + MOST_QUESTIONS)
            + read * (1 + rich)
            + min(2 * DESCRIBED, len(examples)) * dimensions
        )
        candidates += (
            (solo_readings + paired_readings) * remark_questions
            + read * (MOST_QUESTIONS + rich)
            + KINDS_FOR_ONE * most * dimensions
            + waiting
        )
    # every candidate is asked of every example in every way; a grouped judge is asked anew for each fold
    judges = 1 if len(halves) == 1 else 1 + FOLDS * len(halves)
    mended = 0 if grouped else most * (1 + MOST_TRIED * asked * example_count)
    judged = asked * judges * example_count if grouped else 0
    return ceil(writing + asked * views * candidates * example_count) + asked * most * test + judged + mended


def typical_runs(job: Job, whole: Estimate) -> tuple[TypicalRun, ...]:
    """Return typical figures of a run, one entry for each way in which the judge may be asked. ``whole`` is the
    estimate of judging all examples with the starting prompt, with nothing stored. Empty for the papers' loop and for a
    run that only calibrates."""
    options, calls = job.options, whole.calls + whole.stored
    # The papers' loop was not measured. A run that only calibrates takes just the judging in ``whole``.
    if options.paper or not whole.calls or (isinstance(options, AlignOptions) and options.calibrate):
        return ()
    tokens = whole.tokens / whole.calls  # of one call
    if not isinstance(options, AlignOptions) or options.update not in ("auto", "questions"):
        edits = JUDGE_EDITS if job.is_judge else WRITER_EDITS
        return (edits.times(calls, calls * tokens),)
    examples = len(job.examples)
    if not any(each.comment for each in job.examples):
        return (UNCOMMENTED.times(examples, examples * tokens),)
    ways = {"each": [EACH], "batched": [TOGETHER]}.get(options.mode, [EACH, TOGETHER])
    return tuple(way.times(examples, examples * tokens) for way in ways)


def typical_lines(runs: Sequence[TypicalRun]) -> list[str]:
    """Return sentences about typical runs."""
    lines = []
    for run in runs:
        record = run.record()
        calls, tokens = ["{:,} to {:,}".format(*record[name]) for name in ("calls", "tokens")]
        cost = ", ".join(
            "${:,.2f} to ${:,.2f} with a ".format(*run.dollars(price))
            + f"{price.name} model (${price.sent:g} in, ${price.written:g} out)"
            for price in PRICE_CLASSES
        )
        lines.append(f"Typically {calls} calls with {tokens} tokens ({run.basis}): {cost}.")
    return [*lines, f"Prices in brackets: a million tokens, {PRICES_AS_OF}."] if lines else []


def typical_record(runs: Sequence[TypicalRun]) -> dict[str, Any]:
    """Return typical runs and the prices of the classes, for ``--json``."""
    prices = {each.name: {"sent": each.sent, "written": each.written} for each in PRICE_CLASSES}
    return {"typical": [each.record() for each in runs], "prices_usd": {"as_of": PRICES_AS_OF, **prices}}


def _rounded(value: float) -> int:
    """Round to two significant figures, since no more are known."""
    return int(float(f"{value:.2g}"))


def together(first: Sequence[TypicalRun], others: Sequence[TypicalRun]) -> tuple[TypicalRun, ...]:
    """Add the typical runs with the same basis, if several runs are made at once."""
    sums = {each.basis: each for each in first}
    for each in others:
        sums[each.basis] = sums[each.basis] + each if each.basis in sums else each
    return tuple(sums.values())
