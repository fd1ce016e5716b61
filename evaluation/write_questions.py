"""``questions``: write a checklist for a task (BinEval §3.1)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Unpack

from ..agents.question_writer import QuestionWriter
from ..memory.embedders import DEFAULT_EMBEDDER, embedder
from ..models.event_loops import awaited, run_sync
from ..models.named import ModelLike, named_models
from ..models.progress import watching
from ..models.session import session
from ..prompts.errors import InputError
from ..setting_types import WriterSettings
from ..settings import parse_options
from .options import WriterOptions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..models.base import AnswerStore
    from ..models.progress import Watcher
    from ..prompts.checklist import Checklist

logger = logging.getLogger(__name__)


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

    A requirement about which no reply can be used is left out, with a warning that names it.

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
            same = embedder(settings.embedder or DEFAULT_EMBEDDER)
            writer = QuestionWriter(gateway, models.get(asked), same, seed=settings.seed)
            return await writer.write(
                task,
                dimensions,
                most_requirements=settings.max_requirements,
                on_progress=watcher.phase,
                on_lost=logger.warning,
            )

    with watching(watcher, progress) as shown, settings.open_store() as store:
        return run_sync(write(store, shown))


awrite_questions = awaited(write_questions)
