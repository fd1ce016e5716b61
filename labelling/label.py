"""``label``: a page on this machine on which people label outputs."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

from ..evaluation.kept_judge import KeptJudge
from ..prompts.checklist import Checklist, Question
from ..prompts.errors import AskanceError, InputError, as_typed
from ..prompts.examples import Example, human_dimensions, load_examples
from ..prompts.human_feedback import are_labels
from ..prompts.rows import is_on_hub
from ..prompts.tables import file_and_sheet
from ..prompts.text_files import write_whole
from ..setting_types import LabelSettings
from ..settings import parse_options
from .desk import Desk, RaterCount
from .figures import agreement, agreement_line, enough_for
from .labels_file import LabelsFile, known_entries
from .opinions import Opinions, load_opinions
from .options import LabelOptions
from .order import Queue
from .server import LOOPBACK, Said, application, new_token

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Labelled(RaterCount):
    """What a session of labelling came to; the rater's counts are those of earlier sessions, too."""

    output: Path
    """The labelled data."""
    labels: Path
    """What each rater said."""
    rater: str
    added: int
    """Outputs labelled in this session."""
    outputs: int
    """That there are to label."""
    more: int
    """Labels that the acceptance test still needs, see ``enough``."""
    enough: str
    agreement: str | None

    def to_dict(self) -> dict[str, Any]:
        """For ``--json``."""
        return {name: str(each) if isinstance(each, Path) else each for name, each in vars(self).items()}


def label(
    data: str | Path | Iterable[Example | Mapping[str, Any]],
    output: str | Path | None = None,
    *,
    judge: str | Path | KeptJudge | Sequence[str | Path | KeptJudge] = (),
    checklist: str | Path | Checklist | None = None,
    ready: Callable[[str, str], None] | None = None,
    **options: Unpack[LabelSettings],
) -> Labelled:
    """Serve the page until Ctrl-C (SIGINT) or SIGTERM; every label is on the disk as soon as the page says so.

    Args:
        data: What is to be labelled; it is never written to.
        output: The labelled data (JSONL), as ``align`` reads them; default: ``DATA-labelled.jsonl`` beside the data. What
            each rater said is in ``OUTPUT.labels.jsonl``, from which a later call goes on.
        judge: Runs, ``judge.yaml`` files or files of verdicts: what is asked first, and whose agreement is shown.
        checklist: Questions that may be answered one by one; a judge brings its own.
        ready: Told the address and the order, once the page is there; default: they are printed.
        options: Settings of :class:`~askance.labelling.options.LabelOptions`.

    Raises:
        InputError: The data, a judge or a setting is wrong, or ``output`` is there and was not made by this.
        AskanceError: Another process is labelling into ``output``, the port is taken, or nothing can be written.
    """
    settings = parse_options(LabelOptions, options)
    judges = [judge] if isinstance(judge, (str, Path, KeptJudge)) else list(judge)
    examples = load_examples(
        data, fields=settings.field, labels=settings.labels, label_scale=settings.label_scale, need_output=False
    )
    asked = [each for each in examples if each.output is not None]
    if not asked:
        raise InputError("No example has an output, so there is nothing to label.")
    _check_ratings(examples, settings.dimension)
    questions, opinions = load_opinions(judges, checklist, asked, settings.dimension)
    if questions is not None:
        _check_dimension(examples, questions, settings.dimension)
    queue = Queue(settings.order, asked, opinions, settings.seed)
    target = _target(data, output)
    file = LabelsFile(target.with_suffix(".labels.jsonl"))
    if target.exists() and not file.path.exists():
        raise InputError(f"{target}: this file is there, and labelling did not make it. Choose another -o.")
    said = file.open()
    try:
        entries = known_entries(file.path, said, asked)
        desk = Desk(
            examples, entries, file, queue, settings.rater, settings.dimension, _single(questions, settings.dimension)
        )
        before = desk.said.standing(settings.rater).values()
        session = _Session(desk, target, lambda: _figures(desk, opinions, settings.gain))
        try:
            asyncio.run(session.serve(settings.port, queue.sentence, ready or _print))
        finally:
            if entries or file.path.exists():
                write_whole(target, desk.to_jsonl())
        count, needed = desk.count(), enough_for(desk, opinions, settings.gain)
        return Labelled(
            **vars(count),
            output=target,
            labels=file.path,
            rater=settings.rater,
            added=sum(
                each.kind == "label" and each not in before for each in desk.said.standing(settings.rater).values()
            ),
            outputs=len(asked),
            more=needed.more,
            enough=f"{needed.sentence[:1].upper()}{needed.sentence[1:]}.",
            agreement=agreement_line(agreement(desk, opinions)),
        )
    finally:
        file.close()


class _Session:
    """The page while it is served."""

    def __init__(self, desk: Desk, target: Path, figures: Callable[[], dict[str, Any]]) -> None:
        self._desk, self._target, self._figures = desk, target, figures
        self._changed, self._stop = asyncio.Event(), asyncio.Event()

    async def serve(self, port: int, order: str, ready: Callable[[str, str], None]) -> None:
        """Serve until somebody ends it."""
        from aiohttp import web

        token = new_token()
        runner = web.AppRunner(application(token, self._say), access_log=None, shutdown_timeout=1)
        await runner.setup()
        try:
            try:
                await web.TCPSite(runner, LOOPBACK, port).start()
            except OSError as error:
                raise AskanceError(
                    f"The page cannot be served on port {port} ({error.strerror}). Try another --port."
                ) from None
            loop = asyncio.get_running_loop()
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                with suppress(ValueError, RuntimeError, NotImplementedError):  # not in the main thread
                    loop.add_signal_handler(number, self._stop.set)
            keeping = asyncio.create_task(self._keep())
            ready(f"http://{LOOPBACK}:{runner.addresses[0][1]}/{token}/", order)
            await self._stop.wait()
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)
        finally:
            await runner.cleanup()

    async def _keep(self) -> None:
        """Write the labelled data after changes; those that come while it is written are written next."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                await asyncio.to_thread(write_whole, self._target, self._desk.to_jsonl())
            except AskanceError as error:
                logger.error("%s", error)

    def _say(self, action: str, said: Said | None) -> dict[str, Any]:
        """Do what the page asks for, and say what it is to show."""
        desk = self._desk
        if action == "undo":
            desk.undo()
        elif said is not None:
            desk.save(said.example, said.human, said.comment, kind=action)
        if action == "draft":
            return {}
        if action != "state":
            self._changed.set()
        return {
            "item": desk.item(),
            "rater": desk.rater,
            "dimension": desk.dimension,
            "questions": [{"id": each.id, "text": each.text} for each in desk.questions],
            "count": vars(desk.count()),
            "outputs": len(desk.asked),
            "can_undo": desk.can_undo,
            **self._figures(),
        }


def _figures(desk: Desk, opinions: Opinions | None, gain: float) -> dict[str, Any]:
    needed = enough_for(desk, opinions, gain)
    return {
        "enough": {"more": needed.more, "sentence": needed.sentence, "assumed": needed.assumed},
        "agreement": agreement(desk, opinions),
    }


def _target(data: Any, output: str | Path | None) -> Path:
    """Where the labelled data go."""
    file = Path(data) if isinstance(data, (str, Path)) and not is_on_hub(data) else None
    if output is not None:
        target = Path(output)
    elif file is not None:
        whole = Path(file_and_sheet(file)[0])
        target = whole.with_name(f"{whole.stem}-labelled.jsonl")
    else:
        raise InputError("Name the file that the labelled data go to (-o FILE.jsonl).")
    if target.suffix != ".jsonl":
        raise InputError(f"{target}: the labelled data are JSONL; name a file that ends in .jsonl.")
    if file is not None and target.resolve() == file.resolve():
        raise InputError(f"{target}: the data themselves are never written to; name another file with -o.")
    if file is not None and (labels := file.with_suffix(".labels.jsonl")).is_file():
        raise InputError(
            f"{data}: this was made by labelling other data, and its labels are in {labels}. "
            f"To go on, name the data that it was made of, with -o {data}."
        )
    return target


def _check_ratings(examples: Sequence[Example], dimension: str) -> None:
    """Refuse to mix labels with scores on a scale."""
    for each in examples:
        ratings = each.human.get(dimension, ())
        if ratings and not are_labels([*ratings, True]):
            raise InputError(
                f"Example '{each.id}', field 'human.{dimension}': {max(ratings):g} is a score on a scale, and what is "
                "labelled is pass or fail. Name another dimension with --dimension."
            )


def _check_dimension(examples: Sequence[Example], checklist: Checklist, dimension: str) -> None:
    """Refuse to label on the whole where other commands would go by another dimension, that people rated before."""
    rated = [each for each in human_dimensions(examples, checklist) if each in checklist.dimensions]
    if rated and dimension not in checklist.dimensions:
        raise InputError(
            f"People rated {', '.join(rated)} in these data, and the checklist asks about that, so other commands would not "
            f"read labels on '{dimension}'. Name the dimension: --dimension {as_typed(rated[0])}."
        )


def _single(checklist: Checklist | None, dimension: str) -> list[Question]:
    """The questions that can be answered one by one: a name that is a dimension too means the dimension."""
    if checklist is None:
        return []
    return [each for each in checklist.questions if each.id not in (*checklist.dimensions, "overall", dimension)]


def _print(address: str, order: str) -> None:
    print(f"Label at {address} ({order}); Ctrl-C ends it.")  # noqa: T201
