"""Read a run directory for its page: the result, the journal's events, and the single examples."""

from __future__ import annotations

import logging
from array import array
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from markupsafe import Markup

from ..memory.journal import read_events
from ..memory.result_file import RunRecord
from ..memory.run_directory import JUDGE_FILE, RunDirectory
from ..prompts.checklist import Checklist, load_checklist
from ..prompts.errors import InputError
from ..prompts.human_feedback import one_line
from ..prompts.messages import told
from ..prompts.raters import comments_in
from ..prompts.tables import read_rows
from ..prompts.verdicts import Verdict, read_verdicts
from .page import PictureRoom, clipped, json_data, packed, packed_places, probability_byte, thousandth

logger = logging.getLogger(__name__)
SHOWN_TESTS = 300
"""Most test examples whose texts are in the report; those that got worse most are taken first."""

Event = dict[str, Any]


@dataclass(frozen=True)
class RunData:
    """A finished run as it lies on disk."""

    name: str
    """Name of the directory, without its path."""
    config: Mapping[str, Any]
    fingerprint: str
    result: RunRecord
    events: Sequence[Event]
    checklist: Checklist | None
    """None if each example has questions of its own, or if only a checker checks the outputs."""
    examples: Mapping[str, Mapping[str, Any]]
    """Input, output and other fields of the examples that may be shown, by id."""
    kept: Kept
    comments: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Comments on the examples that learned questions come from, by example id. Each comment is one line."""
    has_judge: bool = False
    """Whether the directory has a ``judge.yaml``. Older runs have none."""

    def of(self, kind: str) -> list[Event]:
        """Events of one kind, in order."""
        return [event for event in self.events if event.get("event") == kind]

    def split_size(self, split: str) -> int | None:
        """Return the number of examples in ``development``, ``validation`` or ``test``; ``crossed`` means the first two
        together. None if the journal has no split."""
        found = self.of("split")
        parts = ("development", "validation") if split == "crossed" else (split,)
        return sum(len(found[-1][part]) for part in parts) if found else None

    @property
    def is_judge(self) -> bool:
        """Whether the run improved a judge, and not a generator."""
        return self.result.is_judge

    def question(self, example: str, question: str) -> tuple[str, str]:
        """Return a question's text and dimension; its id stands for a text that was not kept."""
        own = self.kept.questions.get((example, question))
        return own or self.shared_questions.get(question, (question, ""))

    @cached_property
    def shared_questions(self) -> dict[str, tuple[str, str]]:
        """Text and dimension of the questions that are asked of every example, by id. A reworded question has both
        texts, because the starting judge answered the old one."""
        found = (
            {each.id: (each.criterion, each.dimension) for each in self.checklist.questions} if self.checklist else {}
        )
        if new := self.result.best.checklist:
            found |= {each.id: (each.criterion, each.dimension) for each in new.questions}
        for each in self.result.reworded:
            text, dimension = found[each.question]
            found[each.question] = f"{text} \N{EM DASH} at the start: {each.before.criterion}", dimension
        return found


def read_run(path: Path) -> RunData:
    """Read a finished run. Raises InputError if there is no run, it is not finished, or one of its files is damaged."""
    directory = RunDirectory(path)
    header = directory.read_config()
    result = directory.read_result()
    try:
        directory.read_lessons()
    except InputError as error:
        logger.warning("%s The page has the lessons that result.json holds.", error)
    events = read_events(path / "journal.jsonl")
    finished = [event for event in events if event.get("event") == "finished"]
    checklist = path / "inputs" / "checklist.yaml"
    asked = load_checklist(checklist, remarks=False) if checklist.exists() else None
    kept = read_kept(path, int(finished[-1].get("best", 0)) if finished else 0, _turned(result, asked))
    wanted = {
        row["example"] for event in events if event.get("event") == "disagreements" for row in event.get("read", ())
    }
    wanted.update(each.example for each in worst_first(kept.scored)[:SHOWN_TESTS])
    sources = {name for each in result.learned for name in each.sources}
    inputs = _examples(path / "inputs" / "examples.jsonl", wanted | sources)
    return RunData(
        name=path.resolve().name,
        config=header["config"],
        fingerprint=str(header["fingerprint"]),
        result=result,
        events=events,
        checklist=asked,
        examples={name: row for name, row in inputs.items() if name in wanted},
        kept=kept,
        comments={
            name: [one_line(each.text) for each in comments_in(row)] for name, row in inputs.items() if name in sources
        },
        has_judge=(path / JUDGE_FILE).is_file(),
    )


def _turned(result: RunRecord, start: Checklist | None) -> set[str]:
    """Return the ids of the questions whose good answer is another one in the best version."""
    new = result.best.checklist
    if new is None or start is None:
        return set()
    before = {each.id: each.good for each in start.questions}
    return {each.id for each in new.questions if before.get(each.id, each.good) != each.good}


def worst_first(scored: Sequence[Scored]) -> list[Scored]:
    """Sort test examples by their change: the largest loss first, examples without two scores last."""
    return sorted(scored, key=lambda each: (each.better is None, each.better or 0.0))


def _examples(path: Path, wanted: set[str]) -> dict[str, dict[str, Any]]:
    """The wanted examples, by id."""
    rows = (row for _, row in read_rows(path) if row.get("id") in wanted) if wanted else ()
    return {
        row["id"]: row | {name: told(row[name], passages=name == "context") for name in FIELDS if name in row}
        for row in rows
    }


Pair = tuple[str, str]
"""Example id and question id."""


@dataclass(frozen=True)
class Scored:
    """Scores of one test example."""

    example: str
    before: float | None
    after: float | None
    """None if a verdict is missing, or if the prompt did not change."""
    wanted: float | None
    """Score by people or by the source; None if the run improves a generator."""

    @property
    def better(self) -> float | None:
        """How much nearer the score came to the wanted score; without a wanted score, how much it rose."""
        if self.before is None or self.after is None:
            return None
        if self.wanted is None:
            return self.after - self.before
        return abs(self.before - self.wanted) - abs(self.after - self.wanted)


@dataclass(frozen=True)
class Kept:
    """Verdicts and outputs of the first and the best version; empty if the run did not keep them."""

    first: int = 0
    best: int = 0
    verdicts: Mapping[tuple[int, str], Sequence[Verdict]] = field(default_factory=dict)
    """Verdicts by version and split (``development`` or ``test``)."""
    wanted: Mapping[Pair, float] = field(default_factory=dict)
    """Wanted P(yes) where it is known."""
    outputs: Mapping[tuple[int, str], str | None] = field(default_factory=dict)
    questions: Mapping[Pair, tuple[str, str]] = field(default_factory=dict)
    """Text and dimension of questions that only one example has."""
    scored: Sequence[Scored] = ()

    @property
    def changed(self) -> bool:
        """Whether the best version differs from the first."""
        return self.best != self.first

    def answers(self, version: int, split: str = "test") -> dict[Pair, Verdict]:
        """Return a version's verdicts on a split, only the first replicate of each."""
        return {(each.example, each.question): each for each in self.of(version, split) if each.replicate == 0}

    def of(self, version: int, split: str) -> Sequence[Verdict]:
        """Return a version's verdicts on a split; empty if they were not kept."""
        return self.verdicts.get((version, split), ())


def read_kept(run: Path, best: int, turned: Collection[str] = ()) -> Kept:
    """Read the verdicts, outputs and scores that a run kept; empty if it kept none. The best version asks the
    ``turned`` questions the other way round, so the first version's verdicts on them are turned, too. Raises InputError
    if a file is damaged."""
    folder = run / "verdicts"
    if not folder.is_dir():
        return Kept(best=best)
    verdicts = {}
    for version in {0, best}:
        for split in ("development", "test"):
            file = folder / f"{version:03d}-{split}.jsonl"
            if file.exists() and file.stat().st_size:
                found = read_verdicts(file)
                verdicts[version, split] = (
                    [each.turned() if each.question in turned else each for each in found] if version != best else found
                )
    return Kept(
        0,
        best,
        verdicts,
        {(row["example"], row["question"]): row["p_yes"] for row in _rows(folder, "reference", "question", "p_yes")},
        {(row["version"], row["example"]): row["output"] for row in _rows(folder, "outputs", "version", "output")},
        {
            (row["example"], row["id"]): (row["text"], row["dimension"])
            for row in _rows(folder, "questions", "id", "text", "dimension")
        },
        _scored(_rows(folder, "scores", "version", "score", "wanted"), best),
    )


def _scored(rows: Sequence[Mapping[str, Any]], best: int) -> list[Scored]:
    after = {row["example"]: row["score"] for row in rows if row["version"] == best and best != 0}
    return [
        Scored(row["example"], row["score"], after.get(row["example"]), row["wanted"])
        for row in rows
        if row["version"] == 0
    ]


def _rows(folder: Path, name: str, *fields: str) -> list[dict[str, Any]]:
    file = folder / f"{name}.jsonl"
    if not file.exists():
        return []
    rows = [row for _, row in read_rows(file)]
    for row in rows:
        lacking = next((each for each in ("example", *fields) if each not in row), None)
        if lacking is not None:
            raise InputError(f"{file}: a row without '{lacking}'; not written by askance, or damaged.")
    return rows


SHOWN_WORSE = 8
"""Number of worsened examples that the page shows in full even without its script."""
LEAST = 50
"""Smallest change of a score, in thousandths as in the table, that counts as better or worse."""
FIELDS = ("context", "input", "reference", "output")


@dataclass(frozen=True)
class Answered:
    """One question on one example, before and after."""

    question: str
    text: str
    before: Verdict | None
    after: Verdict | None

    @property
    def turned(self) -> bool:
        """Whether the answer changed; False if one of the two is missing."""
        sides = {None if each is None else each.answer for each in (self.before, self.after)}
        return len(sides) == 2 and None not in sides


@dataclass(frozen=True)
class ExampleView:
    """An example that got worse."""

    scored: Scored
    answers: Sequence[Answered]
    outputs: tuple[str | None, str | None] | None
    """The generator's outputs with the starting and with the new prompt."""


@dataclass(frozen=True)
class Changes:
    """Changes on the test examples that the new prompt caused."""

    nearer: int
    further: int
    same: int
    to_yes: int
    to_no: int
    away: int | None
    """Answers that changed to the unwanted side; None if the wanted side of no changed answer is known."""
    worse: Sequence[ExampleView]


def changes(data: RunData) -> Changes | None:
    """Return the changes by the new prompt; None if the prompt did not change or no scores were kept."""
    kept = data.kept
    moved = [change for each in kept.scored if (change := thousandth(each.better)) is not None]
    if not kept.changed or not moved:
        return None
    before, after = kept.answers(kept.first), kept.answers(kept.best)
    answered = {
        pair: Answered(pair[1], data.question(*pair)[0], before.get(pair), after.get(pair))
        for pair in dict.fromkeys([*before, *after])
    }
    turned = [(pair, after[pair].answer) for pair, each in answered.items() if each.turned]
    known = [(answer, kept.wanted[pair]) for pair, answer in turned if pair in kept.wanted]
    asked = _by_example(answered)

    def view(each: Scored) -> ExampleView:
        outputs = [kept.outputs.get((version, each.example)) for version in (kept.first, kept.best)]
        answers = [answered[pair] for pair in asked.get(each.example, ())]
        return ExampleView(each, answers, (outputs[0], outputs[1]) if any(outputs) else None)

    worse = [each for each in worst_first(kept.scored) if (thousandth(each.better) or 0) <= -LEAST]
    return Changes(
        nearer=sum(each >= LEAST for each in moved),
        further=len(worse),
        same=sum(abs(each) < LEAST for each in moved),
        to_yes=sum(answer is True for _, answer in turned),
        to_no=sum(answer is False for _, answer in turned),
        away=sum(answer != (wanted >= 0.5) for answer, wanted in known) if known else None,
        worse=[view(each) for each in worse[:SHOWN_WORSE]],
    )


def example_data(data: RunData) -> Markup | None:
    """Return all test examples as JSON for the page's table, with one byte per verdict; None if there are none."""
    kept = data.kept
    if not kept.scored:
        return None
    before, after = kept.answers(kept.first), kept.answers(kept.best) if kept.changed else {}
    texts: dict[tuple[str, str], int] = {}
    pairs = _by_example([*before, *after])
    counts, asked, first, last = array("I"), array("I"), array("B"), array("B")
    for each in kept.scored:
        mine = pairs.get(each.example, [])
        counts.append(len(mine))
        for pair in mine:
            label = (data.question(*pair)[0], pair[1])
            asked.append(texts.setdefault(label, len(texts)))
            first.append(_byte(before.get(pair)))
            last.append(_byte(after.get(pair)))
    pictures = PictureRoom()
    rows: dict[str, Any] = {
        "ids": [each.example for each in kept.scored],
        "before": [thousandth(each.before) for each in kept.scored],
        "after": [thousandth(each.after) for each in kept.scored],
        "wanted": [thousandth(each.wanted) for each in kept.scored],
        "better": [thousandth(each.better) for each in kept.scored],
        "questions": list(texts),
        "texts": {
            each.example: _texts(data, each.example, pictures) for each in kept.scored if each.example in data.examples
        },
        "judged": {"mode": data.result.mode, "changed": kept.changed},
        "counts": packed(counts),
        "asked": packed_places(asked, len(texts)),
        "first": packed(first),
        "last": packed(last),
    }
    return json_data(rows)


def _texts(data: RunData, example: str, pictures: PictureRoom) -> list[list[Any]]:
    """List an example's texts, each with its label and its images."""
    row: Mapping[str, Any] = data.examples[example]
    kept = data.kept
    # an output in a generator's data is an earlier one, which nobody judged here
    fields = FIELDS if data.is_judge else FIELDS[:-1]
    found: list[list[Any]] = [[field.capitalize(), row[field]] for field in fields if row.get(field)]
    for version, label in ((kept.first, "Output before"), (kept.best, "Output after")):
        written = kept.outputs.get((version, example))
        if written and not (label == "Output after" and not kept.changed):
            found.append([label, written])
    return [[label, clipped(text), *pictures.beside(text)] for label, text in found]


def _by_example(pairs: Iterable[Pair]) -> dict[str, list[Pair]]:
    """Group pairs of example and question by example, each pair once."""
    found: dict[str, list[Pair]] = {}
    for pair in dict.fromkeys(pairs):
        found.setdefault(pair[0], []).append(pair)
    return found


def _byte(verdict: Verdict | None) -> int:
    return probability_byte(None, None) if verdict is None else probability_byte(verdict.p_yes, verdict.answer)
