"""``label``: people's labels on a page of this machine, which a server for this machine alone hands out."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard, Unpack

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt

from ..evaluation.kept_judge import KeptJudge
from ..memory.run_directory import OUTPUTS_FILE
from ..models.event_loops import awaited, run_sync
from ..prompts.checklist import Checklist, Question
from ..prompts.errors import AskanceError, InputError, as_typed
from ..prompts.examples import Example, human_dimensions, load_examples
from ..prompts.human_feedback import are_labels, known_ratings
from ..prompts.rows import is_on_hub
from ..prompts.tables import file_and_sheet
from ..prompts.text_files import write_whole
from ..setting_types import LabelSettings
from ..settings import parse_options
from .desk import Desk, RaterCount
from .label_figures import agreement, agreement_line, enough_for
from .label_options import LabelOptions
from .labels_file import MOST_COMMENT, Entry, LabelsFile, known_entries, with_numbers
from .local_server import guarded_application, new_token, page_files, serve, told
from .next_output import Opinions, Queue, load_opinions
from .run_outputs import outputs_of_run
from .steps import LabelSteps

logger = logging.getLogger(__name__)

MOST_BYTES = 8 * MOST_COMMENT
PAGE = {"": "label.html", "label.js": "label.js", "label.css": "label.css"}


class Said(BaseModel):
    """A message of the page."""

    model_config = ConfigDict(extra="forbid")

    example: str
    human: dict[str, StrictBool | StrictFloat | StrictInt] = {}
    comment: str = Field("", max_length=MOST_COMMENT)


class Nothing(BaseModel):
    """A message that says nothing more; what it holds is not looked at."""


def application(token: str, say: Callable[[str, Said | None], dict[str, Any]]) -> web.Application:
    """The page and what it asks for.

    Args:
        token: First part of every path.
        say: Told what the rater does (``state``, ``label``, ``draft``, ``skip``, ``undo``) and, where it is about an
            output, what was said; gives the state that the page shows.
    """

    async def state(request: web.Request) -> web.StreamResponse:
        return web.json_response(say("state", None))

    async def act(request: web.Request) -> web.StreamResponse:
        action = request.match_info["action"]

        async def do(said: BaseModel) -> dict[str, Any]:
            return say(action, said if isinstance(said, Said) else None)

        return await told(request, Nothing if action == "undo" else Said, do)

    app = guarded_application(token, MOST_BYTES)
    app.router.add_get("/{token}/{file:(label[.](js|css))?}", page_files(__package__, PAGE))
    app.router.add_get("/{token}/api/state", state)
    app.router.add_post("/{token}/api/{action:label|draft|skip|undo}", act)
    return app


@dataclass(frozen=True)
class Labelled(RaterCount):
    """The result of a session of labelling; the rater's counts include earlier sessions."""

    output: Path
    labels: Path
    """The counts of each rater's labels."""
    rater: str
    added: int
    """Outputs labelled in this session."""
    outputs: int
    more: int
    """Labels that the acceptance test still needs, see ``enough``."""
    enough: str
    agreement: str | None
    steps: tuple[str, ...] = ()
    """Steps of the label, from worst to best; none where it is pass or fail."""

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
    """Serve the page until Ctrl-C (SIGINT) or SIGTERM; every label is on the disk as soon as the page says so. Raises
    InputError where the data, a judge or a setting is wrong, or ``output`` is there and was not made by this. Raises
    AskanceError where another process is labelling into ``output``, the port is taken, or nothing can be written.

    Args:
        data: What is to be labelled; it is never written to. The directory of a run of ``tune`` stands for its outputs.
        output: The labelled data (JSONL), as ``align`` reads them; default: ``DATA-labelled.jsonl`` beside the data. Of
            a run ``outputs-labelled.jsonl`` in its directory, which ``tune`` goes on from.
            What each rater said is in ``OUTPUT.labels.jsonl``, from which a later call goes on.
        judge: Runs, ``judge.yaml`` files or files of verdicts: what is asked first, and whose agreement is shown.
        checklist: Questions that may be answered one by one; a judge brings its own.
        ready: Told the address and the order, once the page is there; default: they are printed.
        options: Settings of :class:`~askance.labelling.options.LabelOptions`.
    """
    settings = parse_options(LabelOptions, options)
    judges = [judge] if isinstance(judge, (str, Path, KeptJudge)) else list(judge)
    examples: Sequence[Example]
    if is_run(data):
        examples, data = outputs_of_run(Path(data)), Path(data) / OUTPUTS_FILE
    else:
        reading: dict[str, Any] = {"labels": settings.labels, "label_scale": settings.label_scale}
        examples = load_examples(data, fields=settings.field, need_output=False, **reading)
    asked = [each for each in examples if each.output is not None]
    if not asked:
        raise InputError("No example has an output, so there is nothing to label.")
    steps = _steps(examples, settings)
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
        entries = known_entries(file.path, with_numbers(file.path, said, steps), asked)
        _check_entries(file.path, entries, settings.dimension, steps)
        desk = Desk(
            *(examples, entries, file, queue, settings.rater, settings.dimension),
            _single(questions, settings.dimension),
            steps,
        )
        before = desk.said.standing(settings.rater).values()
        session = _Session(desk, target, lambda: _figures(desk, opinions, settings.gain))
        try:
            run_sync(session.serve(settings.port, queue.sentence, ready or _print))
        finally:
            if entries or file.path.exists():
                write_whole(target, desk.to_jsonl())
        count, needed = desk.count(), enough_for(desk, opinions, settings.gain)
        return Labelled(
            **vars(count),
            output=target,
            labels=file.path,
            rater=settings.rater,
            steps=() if steps is None else steps.names,
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


alabel = awaited(label)


def is_run(data: object) -> TypeGuard[str | Path]:
    """Whether data are named by the directory of a run."""
    return isinstance(data, (str, Path)) and Path(data).is_dir()


class _Session:
    """The page while it is served."""

    def __init__(self, desk: Desk, target: Path, figures: Callable[[], dict[str, Any]]) -> None:
        self._desk, self._target, self._figures = desk, target, figures
        self._changed = asyncio.Event()

    async def serve(self, port: int, order: str, ready: Callable[[str, str], None]) -> None:
        """Serve until somebody ends it."""
        token = new_token()
        keeping = asyncio.create_task(self._keep())
        try:
            await serve(application(token, self._say), token, port, lambda address: ready(address, order))
        finally:
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)

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
            "steps": [] if desk.steps is None else [*map(list, zip(desk.steps.names, desk.steps.values, strict=True))],
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
    is_file = isinstance(data, (str, Path)) and not is_on_hub(data) and str(data) != "-"
    file = Path(data) if is_file else None
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


def _steps(examples: Sequence[Example], settings: LabelOptions) -> LabelSteps | None:
    """The steps of the label; None where it is pass or fail. Refuses to mix labels with scores on a scale."""
    steps = LabelSteps.of(settings.human_scale, settings.label_scale)
    rated = [(each, known_ratings(each.human.get(settings.dimension, ()))) for each in examples]
    labels = are_labels(rating for _, ratings in rated for rating in ratings)
    if steps is not None and labels and settings.human_scale is None:
        return None  # the words are those of another dimension
    for each, ratings in rated:
        odd = [rating for rating in ratings if isinstance(rating, bool) or rating not in steps.values] if steps else []
        if odd:
            given = ("pass" if odd[0] else "fail") if isinstance(odd[0], bool) else f"{odd[0]:g}"
            raise InputError(
                f"Example '{each.id}', field 'human.{settings.dimension}': {given} is no step of "
                f"{', '.join(steps.names if steps else ())}. Name another dimension with --dimension."
            )
        if ratings and steps is None and not are_labels([*ratings, True]):
            raise InputError(
                f"Example '{each.id}', field 'human.{settings.dimension}': {max(ratings):g} is a score on a scale, and "
                "what is labelled is pass or fail. Say which steps there are (--human-scale 1 5), or name another "
                "dimension with --dimension."
            )
    return steps


def _check_entries(path: Path, entries: Sequence[Entry], dimension: str, steps: LabelSteps | None) -> None:
    """Refuse to go on with steps where pass and fail were given before, or the other way round."""
    for each in entries:
        said = each.human.get(dimension)
        if said is not None and isinstance(said, bool) is (steps is not None):
            before = "pass or fail" if isinstance(said, bool) else f"steps, such as {said:g}"
            now = "pass or fail" if steps is None else ", ".join(steps.names)
            raise InputError(
                f"{path}: labels on '{dimension}' are {before}, and {now} would be given now. Choose another -o or "
                "--dimension."
            )


def _check_dimension(examples: Sequence[Example], checklist: Checklist, dimension: str) -> None:
    """Refuse to label on the whole where other commands would go by another dimension, that people rated before."""
    rated = [each for each in human_dimensions(examples, checklist) if each in checklist.dimensions]
    if rated and dimension not in checklist.dimensions:
        raise InputError(
            f"People rated {', '.join(rated)} in these data, and the checklist asks about that, so other commands "
            f"would not read labels on '{dimension}'. Name the dimension: --dimension {as_typed(rated[0])}."
        )


def _single(checklist: Checklist | None, dimension: str) -> list[Question]:
    """The questions that can be answered one by one: a name that is a dimension too means the dimension."""
    if checklist is None:
        return []
    return [each for each in checklist.asked if each.id not in (*checklist.dimensions, "overall", dimension)]


def _print(address: str, order: str) -> None:
    print(f"Label at {address} ({order}); Ctrl-C ends it.")  # noqa: T201
