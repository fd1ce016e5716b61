"""An earlier run as the start of another one: its judge or its prompt, its lessons, and the inputs it read and tried.

All this is copied into the inputs of the new run, which then no longer needs the earlier one.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict

from ..evaluation.judge_file import load_judge, parse_judge
from ..evaluation.kept_judge import KeptJudge
from ..memory.by_hand import read_wanted
from ..memory.journal import has_ended, read_events
from ..memory.records import CriterionRecord
from ..memory.result_file import RunRecord
from ..memory.run_directory import JUDGE_FILE, RunDirectory
from ..models.budget import CAPS
from ..prompts.errors import InputError, as_typed
from ..prompts.examples import Example, document_of, load_examples
from ..prompts.human_feedback import one_line
from ..prompts.lessons import Lesson
from ..prompts.rows import validate_row
from ..prompts.text_files import read_object, read_text
from .splits import PARTS, Part

EARLIER_FILE = "earlier.json"
"""File in ``inputs/`` with the :class:`Remembered` inputs."""
PEOPLE_FILE = "people.jsonl"
"""File in ``inputs/`` of a run of ``tune``: outputs of earlier rounds, with people's labels and comments."""
STILL_KNOWN = {"text", "dimension", "origin", "sources", "parts", "comments", "sees"}
"""Fields of a question that hold beyond the run that proposed it."""


class KnownExample(BaseModel):
    """An example of an earlier run."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    part: Part
    document: str
    content: str
    """Hash of its texts: input, context, output and reference."""
    people: str
    """Hash of people's scores, without comments."""


class Remembered(BaseModel):
    """Inputs that earlier runs read and tried, as in ``inputs/earlier.json``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    examples: dict[str, KnownExample]
    """Examples by id."""
    comments: tuple[tuple[str, str], ...] = ()
    """Example id and text of the comments that were read."""
    contrasted: tuple[str, ...] = ()
    """Dimensions on which rejected and accepted outputs were compared."""
    dropped: dict[str, str] = {}
    """Origins of questions that are not worth asking, by text. The judge cannot answer them, or another question gives
    the same verdicts."""
    waiting: tuple[CriterionRecord, ...] = ()
    """Questions that the acceptance test refused, or that had no room. With further examples they may be accepted."""
    wanted: tuple[CriterionRecord, ...] = ()
    """Questions that a person made from a comment after the run. They are tried whatever the earlier run saw."""
    disputed: tuple[tuple[str, str], ...] = ()
    """Example and question ids of this judge's disagreements that were read."""
    lessons: tuple[Lesson, ...] = ()


@dataclass(frozen=True)
class EarlierRun:
    """A finished run that another run goes on from."""

    remembered: Remembered
    answers: Path | None = None
    """Store of the earlier run; None where its answers were copied already."""

    goes_on_from: ClassVar[str]
    """Name of the part that the new run begins with: judge or prompt."""

    def files(self) -> dict[str, str]:
        """Files for the new run's inputs, by name."""
        remembered = self.remembered.model_dump(mode="json", exclude_defaults=True)
        return {EARLIER_FILE: json.dumps(remembered, ensure_ascii=False, indent=1) + "\n"}

    def parts(self, examples: Sequence[Example]) -> dict[str, Part]:
        """Return the part of each known example, by id. An example is known by its id, its texts or its document. If
        several parts fit a text or document, test counts before validation, and validation before development."""
        known = self.remembered.examples.values()
        by_content, by_document = (
            {getattr(example, name): example.part for part in PARTS for example in known if example.part == part}
            for name in ("content", "document")
        )
        found: dict[str, Part] = {}
        for example in examples:
            before = self.remembered.examples.get(example.id)
            part = before.part if before is not None else by_content.get(_content(example))
            if part is not None:
                found[example.id] = part
                by_document.setdefault(document_of(example), part)
        beside = {
            example.id: by_document[document_of(example)] for example in examples if document_of(example) in by_document
        }
        return {**beside, **found}

    def unchanged(self, examples: Iterable[Example], *, people: bool = True) -> set[str]:
        """Return the ids of known examples whose texts are unchanged; with ``people``, also people's scores."""
        return {
            each.id
            for each in examples
            if (known := self.remembered.examples.get(each.id)) is not None
            and known.content == _content(each)
            and (known.people == _people(each) or not people)
        }

    def comments_read(self, examples: Iterable[Example]) -> set[tuple[str, str]]:
        """Return example id and text of the comments that were read, on examples with unchanged texts."""
        same = self.unchanged(examples, people=False)
        return {each for each in self.remembered.comments if each[0] in same}

    def contrasted(self, development: Collection[Example]) -> tuple[str, ...]:
        """Return dimensions on which outputs need not be compared again; none if an example is new or changed."""
        return self.remembered.contrasted if len(self.unchanged(development)) == len(development) else ()

    def disputed(self, examples: Iterable[Example]) -> set[str]:
        """Return the keys of the disagreements that were read, on unchanged examples."""
        same = self.unchanged(examples)
        return {f"{example}/{question}" for example, question in self.remembered.disputed if example in same}

    def waiting(self, seen: Collection[Example], *, same_judge: bool) -> tuple[CriterionRecord, ...]:
        """Return questions to try: those that a person wants, and those that wait for new evidence. The latter are left
        out if the same judge saw the same examples."""
        if same_judge and len(self.unchanged(seen)) == len(seen):
            return self.remembered.wanted
        return (*self.remembered.wanted, *self.remembered.waiting)

    def said(self, examples: Sequence[Example]) -> str:
        """Return a sentence about the examples that are taken over."""
        known = self.parts(examples)
        missing = len(self.remembered.examples.keys() - {each.id for each in examples})
        left = f"; {missing} of its examples are not among them" if missing else ""
        return (
            f"going on from the {self.goes_on_from} of an earlier run: {len(known)} examples keep their part, "
            f"{len(examples) - len(known)} are new{left}"
        )


@dataclass(frozen=True, kw_only=True)
class Earlier(EarlierRun):
    """A finished run whose judge another run improves."""

    judge: KeptJudge
    goes_on_from = "judge"

    def files(self) -> dict[str, str]:
        """Return the files for the new run's inputs, by name."""
        return {JUDGE_FILE: self.judge.to_yaml(), **super().files()}


@dataclass(frozen=True, kw_only=True)
class EarlierRound(EarlierRun):
    """A finished run of ``tune`` whose prompt another run improves by people's labels and comments on its outputs."""

    people: tuple[Example, ...]
    """Outputs of all earlier rounds that people labelled or commented on, the oldest first."""
    goes_on_from = "prompt"

    def files(self) -> dict[str, str]:
        """Files for the new run's inputs, by name."""
        rows = (each.model_dump(exclude_defaults=True) for each in self.people)
        lines = (json.dumps(row, ensure_ascii=False, default=str) + "\n" for row in rows)
        return {PEOPLE_FILE: "".join(lines), **super().files()}


def earlier_run(path: str | Path) -> Earlier:
    """Read the finished run in a directory, or the run of a ``judge.yaml``. Raises InputError if there is no run, it is
    not finished (or not finished since it was made longer), it improved no judge, or one of its files is damaged."""
    path = Path(path)
    judge = load_judge(path)
    directory = RunDirectory(path if path.is_dir() else path.parent)
    if not directory.config_file.is_file():
        raise InputError(
            f"{path}: this judge is without its run, so nobody knows which examples it was chosen and tested on. Name "
            "the directory of the run."
        )
    result = directory.read_result()
    before = read_earlier(directory)
    remembered, events = _remembered(directory, result, before)
    refused = [each for each in result.questions if not each.joined]
    wanted = _wanted(remembered.wanted, directory, result, judge)
    dropped = remembered.dropped | {each.text: each.origin for each in refused if not each.may_return}
    updates = {
        "comments": tuple(dict.fromkeys([*remembered.comments, *_comments(result)])),
        "contrasted": result.read.contrasted,
        "dropped": {text: origin for text, origin in dropped.items() if text not in {each.text for each in wanted}},
        "wanted": wanted,
        "waiting": _waiting(remembered.waiting, result, judge),
        "disputed": _disputed(events, remembered.disputed),
    }
    return Earlier(remembered.model_copy(update=updates), judge.answers, judge=judge)


def earlier_round(directory: RunDirectory, people: Sequence[Example]) -> EarlierRound:
    """Read the finished run of ``tune`` in a directory; ``people`` are its outputs with labels or comments. Raises
    InputError where the run is not finished, or damaged."""
    before = read_earlier(directory)
    remembered, _ = _remembered(directory, directory.read_result(), before)
    store = directory.path / "verdicts.db"
    older = before.people if isinstance(before, EarlierRound) else ()
    said = {each.id: each for each in (*older, *people)}
    return EarlierRound(remembered, store if store.is_file() else None, people=tuple(said.values()))


def _remembered(
    directory: RunDirectory, result: RunRecord, before: EarlierRun | None
) -> tuple[Remembered, list[dict[str, Any]]]:
    """Return the examples with their parts and the lessons of a finished run and earlier ones; and the run's events."""
    examples, _, _ = directory.read_inputs()
    events = read_events(directory.path / "journal.jsonl")
    if events and not has_ended(events):
        raise InputError(
            f"{directory.path}: this run was made longer or taken up again, and is not finished since. Go on with it: "
            f"askance resume {as_typed(directory.path)}"
        )
    remembered = Remembered(examples={}) if before is None else before.remembered
    parts = _parts(directory.path, events)
    known = {
        each.id: KnownExample(
            part=parts[each.id], document=document_of(each), content=_content(each), people=_people(each)
        )
        for each in examples
        if each.id in parts
    }
    lessons = [each.model_dump(include={*Lesson.model_fields}) for each in result.lessons]
    both = {"examples": {**remembered.examples, **known}, "lessons": tuple(map(Lesson.model_validate, lessons))}
    return remembered.model_copy(update=both), events


def read_earlier(directory: RunDirectory) -> EarlierRun | None:
    """Return the earlier run that the run in a directory began from, or None. Raises InputError where a file is missing
    or damaged."""
    inputs = directory.path / "inputs"
    if not (inputs / EARLIER_FILE).is_file():
        return None
    remembered = validate_row(Remembered, read_object(inputs / EARLIER_FILE, "record"), str(inputs / EARLIER_FILE))
    file = inputs / JUDGE_FILE
    if (inputs / PEOPLE_FILE).is_file():
        return EarlierRound(remembered, people=tuple(load_examples(inputs / PEOPLE_FILE, remarks=False)))
    try:
        return Earlier(remembered, judge=parse_judge(read_text(file), str(file)))
    except FileNotFoundError:
        raise InputError(f"{file}: the judge that the run began with is not there.") from None


def _parts(run: Path, events: Sequence[Mapping[str, Any]]) -> dict[str, Part]:
    for event in events:
        if event["event"] == "split":
            return {name: part for part in PARTS for name in event.get(part, ())}
    raise InputError(f"{run / 'journal.jsonl'}: damaged; it does not say which examples were tested on.")


def _comments(result: RunRecord) -> list[tuple[str, str]]:
    """Return the comments that the run read, as pairs of example id and text. For runs of an older version, which have
    no list of them, return the sources and comments of the questions."""
    if "read" in result.model_fields_set:
        return list(result.read.comments)
    return [
        (example, one_line(comment))
        for each in result.questions
        for example in each.sources
        for comment in each.comments
    ]


def _waiting(before: Sequence[CriterionRecord], result: RunRecord, judge: KeptJudge) -> tuple[CriterionRecord, ...]:
    """Return the questions that still wait, with those that this run could not use, without those that it dropped."""
    found = {each.text: each for each in before}
    for each in result.questions:
        found.pop(each.text, None)
        if not each.joined and each.may_return:
            found[each.text] = CriterionRecord.model_validate(each.model_dump(include=STILL_KNOWN))
    asked = {each.text for each in judge.checklist.questions}
    return tuple(each for text, each in found.items() if text not in asked)


def _wanted(
    before: Sequence[CriterionRecord], directory: RunDirectory, result: RunRecord, judge: KeptJudge
) -> tuple[CriterionRecord, ...]:
    """Return questions that a person wants and the judge does not ask. Questions from before the run are included only
    if the run did not try them, e.g. because a budget ended it."""
    tried = {each.text for each in result.questions}
    asked = {each.text for each in judge.checklist.questions}
    found = [each for each in before if each.text not in tried]
    found += [each.candidate for each in read_wanted(directory.path).values()]
    return tuple({each.text: each for each in found if each.text not in asked}.values())


def _disputed(events: Sequence[Mapping[str, Any]], before: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Return the disagreements that were read with the final prompt and questions of the run."""
    # a round ended by a budget or a failing note-taker does not count, because its lessons were not all tried
    cut = ("notes_failed", *CAPS)
    ended = [each["iteration"] for each in events if each["event"] == "stopped" and each["reason"] in cut]
    unread = {each["disagreement"] for each in events if each["event"] == "no_note" and each.get("unread")}
    read = dict.fromkeys(before)
    for event in events:
        if (event["event"] == "decision" and event["accepted"]) or (event["event"] == "pruning" and event["removed"]):
            read = {}
        elif event["event"] == "disagreements" and event["iteration"] not in ended:
            read |= {(each["example"], each["question"]): None for each in event["read"]}
    return tuple(pair for pair in read if "/".join(pair) not in unread)


def _content(example: Example) -> str:
    reference = [] if example.reference is None else [example.reference]
    return _hash([example.input, example.context, example.output, *reference])


def _people(example: Example) -> str:
    return _hash(sorted(example.human.items()))


def _hash(value: Any) -> str:
    return sha256(json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")).hexdigest()[:32]
