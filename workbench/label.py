"""``label``: people label outputs on a page that is served on this machine only."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard, Unpack

from aiohttp import web

from ..evaluation.kept_judge import KeptJudge
from ..labelling.desk import RaterCount
from ..labelling.label_figures import agreement_line
from ..labelling.label_options import LabelOptions
from ..labelling.label_session import LabelSession, label_steps, open_session, outputs_of_run
from ..labelling.labels_file import MOST_COMMENT, Entry
from ..labelling.local_server import guarded_application, new_token, page_files, serve
from ..labelling.next_output import load_opinions
from ..memory.run_directory import OUTPUTS_FILE
from ..models.event_loops import awaited, run_sync
from ..prompts.checklist import Checklist
from ..prompts.errors import InputError
from ..prompts.examples import Example, load_examples
from ..prompts.rows import is_on_hub
from ..prompts.tables import file_and_sheet
from ..setting_types import LabelSettings
from ..settings import parse_options
from .examples_runs import FileExamples, add_examples

MOST_BYTES = 8 * MOST_COMMENT


def label_application(token: str, session: LabelSession) -> web.Application:
    """Make the application with the page Examples for one file to label, below a token."""
    app = guarded_application(token, MOST_BYTES)
    add_examples(app, FileExamples(session))
    app.router.add_get("/{token}/{file:[a-z.]*}", page_files(__package__ or "", {"": "examples.html"}))
    return app


@dataclass(frozen=True)
class Labelled(RaterCount):
    """The result of a session of labelling; the rater's counts include earlier sessions."""

    output: Path
    labels: Path
    """File with the labels of each rater."""
    rater: str
    added: int
    """Outputs labelled in this session."""
    outputs: int
    more: int
    """Number of labels that the acceptance test still needs; ``enough`` says it in words."""
    enough: str
    agreement: str | None
    steps: tuple[str, ...] = ()
    """Steps of the label, from worst to best; empty if the label is pass or fail."""

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON for ``--json``."""
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
    """Serve the page until Ctrl-C (SIGINT) or SIGTERM. Every label is on the disk as soon as the page says so. Raises
    InputError if the data, a judge or a setting is wrong, or if ``output`` exists and ``label`` did not make it. Raises
    AskanceError if another process is labelling into ``output``, the port is taken, or nothing can be written.

    Args:
        data: The data to label, which are never written to. The directory of a run of ``tune`` means its outputs.
        output: File for the labelled data (JSONL), which ``align`` reads; default: ``DATA-labelled.jsonl`` beside the
            data. For a run: ``outputs-labelled.jsonl`` in its directory, from which ``tune`` goes on. A file beside it
            with the suffix ``.labels.jsonl`` has the labels of each rater, from which a later call goes on.
        judge: Runs, ``judge.yaml`` files or files of verdicts. They decide what is asked first; the agreement of the
            first judge is shown.
        checklist: Questions that may be answered one by one; a judge brings its own.
        ready: Called with the address and the order, once the page is there; default: they are printed.
        options: Settings of :class:`~askance.labelling.label_options.LabelOptions`.
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
    label_steps(examples, settings)  # before the judges are read, which takes longer
    questions, opinions = load_opinions(judges, checklist, asked, settings.dimension)
    session = open_session(examples, _target(data, output), settings, questions, opinions)
    before = session.desk.said.standing(settings.rater).values()
    token, announcer = new_token(), ready or _print
    order = session.order
    app = label_application(token, session)
    try:
        run_sync(serve(app, token, settings.port, lambda address: announcer(address, order)))
    finally:
        session.file.close()
    return _labelled(session, before)


def _labelled(session: LabelSession, before: Collection[Entry]) -> Labelled:
    """Return the result of a session. ``before`` are the rater's entries from earlier sessions."""
    session.write()
    desk = session.desk
    figures = session.figures()
    return Labelled(
        **vars(desk.count()),
        output=session.target,
        labels=session.file.path,
        rater=desk.rater,
        steps=() if desk.steps is None else desk.steps.names,
        added=sum(each.kind == "label" and each not in before for each in desk.said.standing(desk.rater).values()),
        outputs=len(desk.asked),
        more=figures["enough"]["more"],
        enough=f"{figures['enough']['sentence'][:1].upper()}{figures['enough']['sentence'][1:]}.",
        agreement=agreement_line(figures["agreement"]),
    )


alabel = awaited(label)


def is_run(data: object) -> TypeGuard[str | Path]:
    """Whether the data are the directory of a run."""
    return isinstance(data, (str, Path)) and Path(data).is_dir()


def _target(data: Any, output: str | Path | None) -> Path:
    """Return the file for the labelled data. Raises InputError if it is missing or wrong."""
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


def _print(address: str, order: str) -> None:
    print(f"Label at {address} ({order}); Ctrl-C ends it.")  # noqa: T201
