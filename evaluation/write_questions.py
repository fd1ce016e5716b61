"""``questions``: write a checklist for a task (BinEval §3.1), or from a judge's prompt (``--from``).

A checklist from a prompt is compared with that judge's scores and with people's, before anything is replaced.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from ..agents.question_writer import QuestionWriter, TakenApart
from ..memory.embedders import DEFAULT_EMBEDDER, embedder
from ..models.event_loops import awaited, run_sync
from ..models.named import ModelLike, named_models
from ..models.progress import watching
from ..models.session import session
from ..prompts.checklist import Checklist
from ..prompts.errors import InputError, did_you_mean
from ..prompts.examples import Example, documents, human_dimensions, load_examples
from ..prompts.prompt import Prompt, own_prompt
from ..setting_types import WriterSettings
from ..settings import parse_options, refuse_idle
from ..stats.correlation import correlate
from ..stats.resampling import Resampling, Statistic
from .evaluate import prepare, unrated
from .options import WriterOptions
from .own_judge import found_reads
from .scoring import human_targets

if TYPE_CHECKING:
    from ..models.base import AnswerStore, Model
    from ..models.gateway import Gateway
    from ..models.progress import Watcher
    from ..prompts.verdicts import Verdict
    from .evaluation_result import Evaluation

logger = logging.getLogger(__name__)
Scores = Sequence[float | None]


def write_questions(
    task: str,
    *,
    model: ModelLike,
    dimensions: Sequence[str] = (),
    watcher: Watcher | None = None,
    progress: bool | None = None,
    **options: Unpack[WriterSettings],
) -> Checklist:
    """Have a model write a checklist: requirements first, then atomic questions with violation examples.

    A requirement without a usable reply is left out, with a warning that names it.

    Args:
        task: What the generator is asked to do.
        model: ``provider/model``, or an object that can be asked.
        dimensions: Allowed dimensions; proposed by the model where there are none.
        watcher: Told how the work goes on.
        progress: Show how the work goes on; by default in notebooks only.
        options: Settings of :class:`~askance.evaluation.options.WriterOptions`, among them ``store`` and ``no_cache``.

    Raises:
        InputError: The task is empty, or a bad setting or model name.
        ParseError: The model's replies cannot be used.
        AskanceError: The endpoint is down, a budget is used up, or the model wrote no questions.
    """
    asked, given = named_models(options, model)
    settings = parse_options(WriterOptions, given)
    if not task.strip():
        raise InputError("The task is empty; write down what the generator is asked to do.")

    async def write(store: AnswerStore, watcher: Watcher) -> Checklist:
        async with session(settings, store) as (models, gateway):
            watcher.watch(gateway.budget)
            return await _writer(gateway, models.get(asked), settings, watcher).write(task, dimensions)

    with watching(watcher, progress) as shown, settings.open_store() as store:
        return run_sync(write(store, shown))


awrite_questions = awaited(write_questions)


@dataclass(frozen=True)
class Nearness:
    """Rank correlations (Spearman, with 95 % intervals) with the scores of the old judge, and with people's."""

    name: str
    """A question's id, ``checklist`` for its score, or ``old judge``."""
    n: int
    """Examples with a score."""
    judge: Statistic | None
    people: Statistic | None
    """Correlation with people; None if they rated nothing."""


@dataclass(frozen=True)
class RubricQuestions:
    """The checklist that a judge's prompt was taken apart into, and its comparison with the old judge."""

    checklist: Checklist
    left: tuple[str, ...]
    """Parts of the prompt that no question comes from."""
    rows: tuple[Nearness, ...] = ()
    """The checklist, each of its questions, and the old judge; empty without data."""
    missing: int = 0
    """Number of missing verdicts of both judges together."""


def questions_from(
    prompt: str | Path | Prompt,
    *,
    model: ModelLike,
    data: str | Path | Iterable[Example | Mapping[str, Any]] | None = None,
    dimensions: Sequence[str] = (),
    watcher: Watcher | None = None,
    progress: bool | None = None,
    **options: Unpack[WriterSettings],
) -> RubricQuestions:
    """Take a judge's prompt apart into a checklist: its clauses' criteria first, then questions about each.

    With ``data`` the old judge and the checklist score the same outputs. Both are compared, also with people.

    Args:
        prompt: The judge's prompt, as a file or a prompt.
        model: Writes the questions, and judges where there is data.
        data: Outputs to compare on, as files or rows.
        dimensions: Allowed dimensions; proposed by the model where there are none.
        watcher: Told how the work goes on.
        progress: Show how the work goes on; by default in notebooks only.
        options: Settings of :class:`~askance.evaluation.options.WriterOptions`, among them ``reads``.

    Raises:
        InputError: The prompt, the data or a setting cannot be used, or nothing says how the judge's replies are read.
        ParseError: The model's replies cannot be used.
        AskanceError: The endpoint is down, a budget is used up, or the model wrote no questions.
    """
    asked, given = named_models(options, model)
    settings = parse_options(WriterOptions, given)
    refuse_idle(settings, data=data)
    judge_prompt, name = own_prompt(prompt)
    if not judge_prompt.text.strip():
        raise InputError(f"{name}: the prompt is empty, so there is nothing to take apart.")
    examples: Sequence[Example] | None = None
    scores: Scores | None = None
    if data is not None:  # refused before anything is bought
        examples = load_examples(data, fields=settings.field, limit=settings.limit)
        scores = _in_column(examples, settings.judge_scores)
        if scores is None:
            settings = settings.model_copy(update={"reads": settings.reads or found_reads(prompt)})
            prepare(unrated(examples), None, asked, prompt, _asked_so(settings))

    async def write(store: AnswerStore, watcher: Watcher) -> TakenApart:
        async with session(settings, store) as (models, gateway):
            watcher.watch(gateway.budget)
            return await _writer(gateway, models.get(asked), settings, watcher).take_apart(judge_prompt, dimensions)

    with watching(watcher, progress) as shown:
        with settings.open_store() as store:
            taken = run_sync(write(store, shown))
        if examples is None:
            return RubricQuestions(*taken)
        missing = 0
        if scores is None:
            old = prepare(unrated(examples), None, asked, prompt, _asked_so(settings)).run(shown)
            scores, missing = [each.overall for each in old.scores], old.coverage.asked - old.coverage.answered
        new = prepare(unrated(examples), taken.checklist, asked, None, _judging(settings)).run(shown)
    missing += new.coverage.asked - new.coverage.answered
    return RubricQuestions(*taken, _compared(examples, taken.checklist, scores, new, settings), missing)


aquestions_from = awaited(questions_from)


def _writer(gateway: Gateway, model: Model, settings: WriterOptions, watcher: Watcher) -> QuestionWriter:
    return QuestionWriter(
        gateway,
        model,
        embedder(settings.embedder or DEFAULT_EMBEDDER),
        seed=settings.seed,
        most_requirements=settings.max_requirements,
        on_progress=watcher.phase,
        on_lost=logger.warning,
    )


def _judging(settings: WriterOptions) -> dict[str, Any]:
    """Return the settings of both judges: those of the writer that ``evaluate`` has too."""
    names = settings.model_fields_set - {
        "max_requirements",
        "embedder",
        "reads",
        "reply_tokens",
        "limit",
        "field",
        "judge_scores",
    }
    return {name: getattr(settings, name) for name in names}


def _asked_so(settings: WriterOptions) -> dict[str, Any]:
    return _judging(settings) | {"reads": settings.reads, "reply_tokens": settings.reply_tokens}


def _in_column(examples: Sequence[Example], name: str | None) -> Scores | None:
    """Return the old judge's scores from a column. InputError if there is no such column, or a value is no number."""
    if name is None:
        return None
    values = [each.metadata.get(name) for each in examples]
    if not any(value is not None for value in values):
        known = list(dict.fromkeys(column for each in examples for column in each.metadata))
        raise InputError(f"judge_scores: no example has a column '{name}'.{did_you_mean(name, known)}")
    for example, value in zip(examples, values, strict=True):
        if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float))):
            raise InputError(
                f"judge_scores: example '{example.id}': a number is needed in '{name}', not {value!r:.40}."
            )
    return [None if value is None else float(value) for value in values]


def _compared(
    examples: Sequence[Example], checklist: Checklist, judge: Scores, new: Evaluation, settings: WriterOptions
) -> tuple[Nearness, ...]:
    """Return the nearness of the checklist, of its questions, and of the old judge."""
    sampling = Resampling(documents(examples), seed=settings.seed)
    people = _people(examples, settings)

    def near(name: str, scores: Scores, beside: Scores | None) -> Nearness:
        found = [None if each is None else correlate(scores, each, sampling).spearman for each in (beside, people)]
        return Nearness(name, sum(each is not None for each in scores), *found)

    by_question: dict[str, dict[str, Verdict]] = {}
    for verdict in new.verdicts:
        by_question.setdefault(verdict.question, {})[verdict.example] = verdict
    rows = [near("checklist", [each.overall for each in new.scores], judge)]
    for question in checklist.questions:
        mine = [by_question[question.id].get(each.id) for each in examples]
        rows.append(near(question.id, [None if each is None else question.p_good(each.p_yes) for each in mine], judge))
    return (*rows, near("old judge", judge, None))


def _people(examples: Sequence[Example], settings: WriterOptions) -> Scores | None:
    """Return people's scores in [0, 1]: overall, else the mean of all dimensions; None if they rated nothing."""
    rated = human_dimensions(examples)
    if not rated:
        return None
    wanted = ["overall"] if "overall" in rated else rated
    asked = Checklist.model_validate({"questions": [{"id": each, "text": each, "dimension": each} for each in wanted]})
    targets = human_targets(examples, asked, settings.human_scale)
    return [targets.overall(each.id) for each in examples]
