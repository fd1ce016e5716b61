"""Labelling while a page is served: raters share a desk; each label is saved at once, the labelled data soon after."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import Annotated, Any

from pydantic import AfterValidator, Field, StrictBool, StrictFloat, StrictInt

from ..memory.run_directory import OUTPUTS_FILE, RunDirectory
from ..prompts.checklist import Checklist, Question
from ..prompts.errors import AskanceError, InputError, as_typed
from ..prompts.examples import Example, human_dimensions
from ..prompts.human_feedback import are_labels, known_ratings
from ..prompts.messages import told
from ..prompts.tables import read_rows
from ..prompts.text_files import write_whole
from .desk import Desk
from .label_figures import agreement, enough_for
from .label_options import LabelOptions, LabelSteps, plain_name
from .labels_file import MOST_COMMENT, Entry, LabelsFile, known_entries, with_numbers
from .local_server import PageMessage
from .next_output import Opinions, Queue

logger = logging.getLogger(__name__)


RaterName = Annotated[str, AfterValidator(plain_name), Field(max_length=80)]
"""The name of a rater in a message of the page."""


class Labeller(PageMessage):
    """A message of the page that names the rater, and the run whose outputs are labelled."""

    run: str = ""
    rater: RaterName | None = None
    """The rater; None for the rater that the page was opened for."""


class Said(Labeller):
    """A message of the page with a rater's label and comment on an output."""

    example: str
    human: dict[str, StrictBool | StrictFloat | StrictInt] = Field(default_factory=dict)
    comment: str = Field("", max_length=MOST_COMMENT)


class LabelSession:
    """One file of labels while a page is served; its methods may be called from any thread."""

    def __init__(
        self, desk: Desk, file: LabelsFile, target: Path, opinions: Opinions | None, gain: float, order: str = ""
    ) -> None:
        """``target`` is the file for the labelled data; ``file`` is open. ``opinions`` are the judges', for the
        figures; ``order`` describes the order of the outputs in words."""
        self.desk, self.file, self.target, self.opinions, self.gain = desk, file, target, opinions, gain
        self.lock = Lock()
        """Held while the desk is changed or read."""
        self.order = order
        """The order in which outputs are shown, in words."""
        self._seats = {desk.rater: desk}
        self._changed = file.path.exists()
        self.alone = False
        """Whether only the rater of the desk may label here."""
        self.problem: str | None = None
        """Why the last writing of the labelled data failed; the labels themselves are safe. None after a success."""

    def seat(self, rater: str | None) -> Desk:
        """Return the desk of this rater, by default of the rater that it was opened for. Raises InputError if other
        raters may not label here."""
        name = self.desk.rater if rater is None else rater
        if self.alone and name != self.desk.rater:
            raise InputError(f"rater: {self.desk.rater} alone labels here; another one begins with --rater.")
        return self._seats.setdefault(name, self.desk.seat(name))

    def say(self, action: str, said: Labeller) -> dict[str, Any]:
        """Do a rater's action: ``label``, ``draft``, ``skip``, ``undo``, or ``state`` to only look. Returns the new
        state for the page; empty for a draft. Raises as :meth:`seat` and :meth:`.Desk.save`."""
        with self.lock:
            desk = self.seat(said.rater)
            if action == "undo":
                desk.undo()
            elif isinstance(said, Said):
                desk.save(said.example, said.human, said.comment, kind=action)
            if action == "draft":
                return {}
            self._changed |= action != "state"
            return self._state(desk)

    def _state(self, desk: Desk) -> dict[str, Any]:
        return {
            "item": desk.item(),
            **self.about(desk),
            "count": vars(desk.count()),
            "outputs": len(desk.asked),
            "can_undo": desk.can_undo,
            "problem": self.problem,
        }

    def about(self, desk: Desk) -> dict[str, Any]:
        """Return the rater, and the dimension, steps and questions that are labelled."""
        steps = [] if desk.steps is None else [*map(list, zip(desk.steps.names, desk.steps.values, strict=True))]
        questions = [{"id": each.id, "text": each.text} for each in desk.questions]
        return {"rater": desk.rater, "dimension": desk.dimension, "steps": steps, "questions": questions}

    def figures(self) -> dict[str, Any]:
        """Return how many labels are missing, and the judge's agreement with people."""
        with self.lock:
            desk = self.desk.as_now()
        needed = enough_for(desk, self.opinions, self.gain)
        return {
            "enough": {"more": needed.more, "sentence": needed.sentence, "assumed": needed.assumed},
            "agreement": agreement(desk, self.opinions),
        }

    def write(self) -> None:
        """Write the labelled data if labels have changed. Raises AskanceError if that fails; the next call tries
        again."""
        with self.lock:
            if not self._changed:
                return
            text, self._changed = self.desk.to_jsonl(), False
        try:
            write_whole(self.target, text)
            self.problem = None
        except AskanceError as error:
            self._changed, self.problem = True, str(error)
            raise


def open_session(
    examples: Sequence[Example],
    target: Path,
    settings: LabelOptions,
    checklist: Checklist | None,
    opinions: Opinions | None,
) -> LabelSession:
    """Open the labels file beside ``target`` and begin a session; the caller closes the session's ``file``. Raises
    InputError if the labels do not fit the data, or labelling did not make ``target``, and AskanceError if another
    process has the labels file, or it cannot be written."""
    steps = label_steps(examples, settings)
    if checklist is not None:
        _check_dimension(examples, checklist, settings.dimension)
    asked = [each for each in examples if each.output is not None]
    queue = Queue(settings.order, asked, opinions, settings.seed)
    file = LabelsFile(target.with_suffix(".labels.jsonl"))
    if target.exists() and not file.path.exists():
        raise InputError(f"{target}: this file is there, and labelling did not make it. Choose another -o.")
    said = file.open()
    try:
        entries = known_entries(file.path, with_numbers(file.path, said, steps), asked)
        _check_entries(file.path, entries, settings.dimension, steps)
        questions = _single(checklist, settings.dimension)
        desk = Desk(examples, entries, file, queue, settings.rater, settings.dimension, questions, steps)
        desk.to_jsonl()  # fills the cache of rows, so that later calls are quick
    except BaseException:
        file.close()
        raise
    return LabelSession(desk, file, target, opinions, settings.gain, queue.sentence)


def outputs_of_run(run: Path) -> list[Example]:
    """Read the outputs of the run in a directory, with the prompt's ``version`` in their metadata. Labels and comments
    of the run's data are left out, because they are about other outputs. Raises InputError if the run wrote no outputs,
    or a file is damaged."""
    directory = RunDirectory(run)
    command, file = directory.read_config()["config"].get("command"), run / OUTPUTS_FILE
    if not file.is_file():
        why = "it is not finished" if command == "tune" else f"a run of {command} writes none"
        raise InputError(f"{run}: there are no outputs of this run to be labelled, as {why}.")
    known = {each.id: each for each in directory.read_inputs()[0]}
    found = []
    for line, row in read_rows(file):
        if row.get("id") not in known or "version" not in row:
            raise InputError(f"{file}, line {line}: not a row of this run; not written by askance, or damaged.")
        if row.get("output") is not None:
            example = known[row["id"]]
            metadata = {**example.metadata, "version": row["version"]}
            new = {"output": told(row["output"]), "human": {}, "comment": (), "metadata": metadata}
            found.append(example.model_copy(update=new))
    return found


def label_steps(examples: Sequence[Example], settings: LabelOptions) -> LabelSteps | None:
    """Return the steps of the label; None for pass or fail. Raises InputError if a rating in the data is none of the
    steps, or is a score on a scale although the label is pass or fail."""
    steps = LabelSteps.of(settings.human_scale, settings.label_scale)
    rated = [(example, known_ratings(example.human.get(settings.dimension, ()))) for example in examples]
    labels = are_labels(rating for _, ratings in rated for rating in ratings)
    if steps is not None and labels and settings.human_scale is None:
        return None  # the words belong to another dimension
    for example, ratings in rated:
        odd = [rating for rating in ratings if isinstance(rating, bool) or rating not in steps.values] if steps else []
        if odd:
            given = ("pass" if odd[0] else "fail") if isinstance(odd[0], bool) else f"{odd[0]:g}"
            raise InputError(
                f"Example '{example.id}', field 'human.{settings.dimension}': {given} is no step of "
                f"{', '.join(steps.names if steps else ())}. Name another dimension with --dimension."
            )
        if ratings and steps is None and not are_labels([*ratings, True]):
            raise InputError(
                f"Example '{example.id}', field 'human.{settings.dimension}': {max(ratings):g} is a score on a scale, "
                "and what is labelled is pass or fail. Say which steps there are (--human-scale 1 5), or name another "
                "dimension with --dimension."
            )
    return steps


def _check_entries(path: Path, entries: Sequence[Entry], dimension: str, steps: LabelSteps | None) -> None:
    """Raise InputError if earlier labels are pass or fail and the new ones would be steps, or the reverse."""
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
    """Raise InputError if people rated dimensions of the checklist and the checklist lacks ``dimension``: other
    commands would not read the new labels."""
    rated = [each for each in human_dimensions(examples, checklist) if each in checklist.dimensions]
    if rated and dimension not in checklist.dimensions:
        raise InputError(
            f"People rated {', '.join(rated)} in these data, and the checklist asks about that, so other commands "
            f"would not read labels on '{dimension}'. Name the dimension: --dimension {as_typed(rated[0])}."
        )


def _single(checklist: Checklist | None, dimension: str) -> list[Question]:
    """Return the questions that can be answered one by one; an id that is also a dimension means the dimension."""
    if checklist is None:
        return []
    return [each for each in checklist.asked if each.id not in (*checklist.dimensions, "overall", dimension)]
