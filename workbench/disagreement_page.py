"""Answers to the page Disagreements: groups, their outputs, comments as candidate questions, and further labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any, Literal

import numpy as np
from aiohttp import web
from pydantic import Field

from ..labelling.desk import Desk
from ..labelling.label_figures import enough_for
from ..labelling.label_options import LabelOptions, LabelSteps
from ..labelling.labels_file import LabelsFile
from ..labelling.local_server import PageMessage, add_act, add_read
from ..labelling.next_output import WORDS, Queue, load_opinions
from ..memory.by_hand import WantedQuestion, add_wanted, question_of, read_wanted
from ..memory.result_file import RunRecord
from ..memory.run_directory import RunDirectory
from ..optimizer.options import AlignOptions
from ..prompts.checklist import Checklist
from ..prompts.errors import InputError, as_typed
from ..prompts.examples import Example
from ..prompts.messages import told
from ..prompts.rows import validate_row
from ..settings import parse_options
from .disagreement_groups import PARTS, UNSEEN, CommentGroup, ComparedOutput, GroupedOutputs, outputs_of
from .judge_bench import JudgeBench, Split
from .saved_judges import ValidationLooks

AT_ONCE = 20
"""Most outputs, or comments of a group, that are sent at once."""
MOST_SHOWN = 4_000
"""Most characters that are sent of each text of an output."""
MOST_NEXT = 20
"""Most listed outputs to label next."""
MOST_GROUPS = 200
"""Most listed groups of comments."""
NOT_TEST = "The test examples stay shut, and so do the comments on them."


Validation = Literal["no", "shut", "open"]
"""``no`` if the run does not learn from validation. If it does, ``open`` means that a look at validation was counted,
so that validation is shown; ``shut`` means that none was counted yet."""


class AskedComment(PageMessage):
    """A message of the page: make a comment a candidate question, or take that back."""

    run: str
    comment: str = Field(min_length=1)
    text: str | None = None
    """Text of the question; empty takes the question back. None words the question from the comment."""


@dataclass
class _Opened:
    """A run with the data that the page needs."""

    bench: JudgeBench
    folder: Path
    result: RunRecord
    config: Mapping[str, Any]
    splits: Sequence[Split]
    validation: Validation
    found: GroupedOutputs
    labels: dict[str, Any] | None = None
    """The answer about further labels, once somebody asked for it."""

    @property
    def examples(self) -> list[Example]:
        return [example for split in self.splits for example in self.bench.parts[split].examples]

    @property
    def dimensions(self) -> tuple[str, ...]:
        """Dimensions that people rated."""
        return self.bench.parts["development"].dimensions

    def tried(self, comments: Sequence[str]) -> list[dict[str, Any]]:
        """Return the fates of the questions that the run made of these comments, first the questions that joined its
        judge."""
        texts = {*comments}
        rows = [each for each in self.result.questions if texts & {*each.comments}]
        rows.sort(key=lambda each: not each.joined)
        return [{"text": each.text, "joined": each.joined, "reason": each.reason} for each in rows]


@dataclass
class DisagreementPage:
    """The page Disagreements. Its methods may be called from any thread; those that answer requests return JSON."""

    bench_of: Callable[[str], tuple[JudgeBench, Path]]
    """Returns the bench of a run's judge, and the run's directory, by the run's name."""
    by: str
    _kept: dict[Path, _Opened] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def add_to(self, app: web.Application) -> None:
        """Have an application answer the page's requests."""
        add_read(app, "disagreements", self.disagreements, ("run",))
        add_read(app, "comment_groups", self.comment_groups, ("run",))
        add_read(app, "disagreement_outputs", self.outputs, ("run", "group", "start"))
        add_read(app, "disagreement_labels", self.labels, ("run",))
        add_act(app, "want", AskedComment, self.want)

    def disagreements(self, run: str) -> dict[str, Any]:
        """Return how often the judge and people differ, and on which questions."""
        opened = self._open(run)
        found, parts = opened.found, [opened.bench.parts[each] for each in opened.splits]
        return {
            "run": run,
            "model": opened.bench.judge.asked,
            "splits": list(opened.splits),
            "validation": opened.validation,
            "outputs": len(found.outputs),
            "compared": sum(each.people is not None and each.score is not None for each in found.outputs),
            "lenient": sum(each.off == "lenient" for each in found.outputs),
            "strict": sum(each.off == "strict" for each in found.outputs),
            "differ": len(found.group("all")),
            "reason": next((each.reason for each in parts if each.reason is not None), None),
            "distance": None if parts[0].labels is not None else _distance(opened.config),
            "comments": len(found.by_comment),
            "questions": self._questions(opened),
            "wanted": self._wanted(opened),
            "parts": dict(PARTS),
            "next_run": f"askance align DATA --from {as_typed(opened.folder)} --run NEW_RUN",
            "test": NOT_TEST,
        }

    def comment_groups(self, run: str) -> dict[str, Any]:
        """Return groups of similar comments. The first call is slow, because it makes the groups."""
        opened = self._open(run)
        with self._lock:
            groups = opened.found.comment_groups
        rows = [self._group(opened, each) for each in [*groups.values()][:MOST_GROUPS]]
        return {"groups": rows, "more": len(groups) - len(rows), "said": opened.found.said}

    def outputs(self, run: str, group: str, start: str) -> dict[str, Any]:
        """Return some outputs of a group, from the place ``start`` on."""
        opened = self._open(run)
        if group.startswith("comment:"):
            self.comment_groups(run)
        places, begin = opened.found.group(group), int(start) if start.isdecimal() else 0
        rows = [self._output(opened.found.outputs[each], opened) for each in places[begin : begin + AT_ONCE]]
        return {"group": group, "start": begin, "count": len(places), "at_once": AT_ONCE, "outputs": rows}

    def want(self, asked: AskedComment) -> dict[str, Any]:
        """Keep a comment as a candidate question of the next run, or take that back."""
        opened = self._open(asked.run)
        places = opened.found.by_comment.get(asked.comment)
        if places is None:
            raise InputError("There is no such comment on the outputs that the run learned from.")
        text = question_of(asked.comment) if asked.text is None else asked.text.strip()
        checklist = opened.bench.judge.checklist
        if text in {each.text for each in checklist.questions}:
            raise InputError("The judge asks this question already.")
        first = opened.found.outputs[places[0]].example
        row = {
            "comment": asked.comment,
            "text": text,
            "dimension": _dimension(asked.comment, first, checklist, opened.dimensions),
            "examples": [opened.found.outputs[place].example.id for place in places],
            "by": self.by,
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        add_wanted(opened.folder, validate_row(WantedQuestion, row, "This question"))
        return {"wanted": self._wanted(opened)}

    def labels(self, run: str) -> dict[str, Any]:
        """Return the number of missing labels, and the outputs to label next, in the order of ``askance label``."""
        opened = self._open(run)
        if opened.labels is None:
            opened.labels = self._further_labels(opened)
        return opened.labels

    def _further_labels(self, opened: _Opened) -> dict[str, Any]:
        examples, rated = opened.examples, opened.dimensions
        dimension = rated[0] if len(rated) == 1 else "overall"
        _, opinions = load_opinions([opened.folder], None, examples, dimension)
        options, scale = parse_options(LabelOptions, {}), opened.bench.judge.settings.get("human_scale")
        queue = Queue("auto", examples, opinions, options.seed)
        steps = LabelSteps.of(scale, None) if opened.bench.parts["development"].labels is None else None
        file = LabelsFile(opened.folder / "labels.jsonl")  # nothing is written: the desk only counts
        desk = Desk(examples, (), file, queue, self.by, dimension, (), steps)
        needed, labelled = enough_for(desk, opinions, options.gain), desk.labelled
        unlabelled = np.flatnonzero(~labelled)
        return {
            "labelled": int(labelled.sum()),
            "unlabelled": len(unlabelled),
            "more": needed.more,
            "sentence": f"{needed.sentence[:1].upper()}{needed.sentence[1:]}.",
            "assumed": needed.assumed,
            "order": queue.sentence,
            "command": f"askance label DATA --judge {as_typed(opened.folder)}",
            "next": _next(queue, examples, labelled, unlabelled),
        }

    def _open(self, run: str) -> _Opened:
        bench, folder = self.bench_of(run)
        with self._lock:
            kept = self._kept.get(folder)
            directory = RunDirectory(folder)
            config = directory.read_config()["config"] if kept is None or kept.bench is not bench else kept.config
            validation = _validation(bench, folder, config)
            if kept is None or kept.bench is not bench or kept.validation != validation:
                result = directory.read_result()
                splits: list[Split] = ["development", "validation"] if validation == "open" else ["development"]
                outputs = [*outputs_of(bench, splits, _distance(config))]
                found = GroupedOutputs(outputs, bench.judge.checklist.questions, str(config.get("embedder", "words")))
                kept = _Opened(bench, folder, result, config, splits, validation, found)
                self._kept.clear()  # one run is looked at at a time; its examples are the bench's own
                self._kept[folder] = kept
        return kept

    def _questions(self, opened: _Opened) -> list[dict[str, Any]]:
        """Return the groups by question, those with most outputs first."""
        found, rows = opened.found, []
        known = {question.id: question for question in opened.bench.judge.checklist.questions}
        for name, places in found.by_question.items():
            question = known.get(name)
            parts = [] if question is None else [found.outputs[place].parts[name] for place in places]
            counts: dict[str, Any] = {part: parts.count(part) for part in PARTS}
            rows.append(
                {
                    "id": name,
                    "text": "No question saw what people reject" if question is None else question.text,
                    "dimension": "" if question is None else question.dimension,
                    "good": "" if question is None else question.good,
                    "unseen": name == UNSEEN,
                    "count": len(places),
                    **counts,
                }
            )
        return sorted(rows, key=lambda row: -row["count"])

    def _wanted(self, opened: _Opened) -> list[dict[str, Any]]:
        return [each.model_dump(mode="json") for each in read_wanted(opened.folder).values()]

    def _group(self, opened: _Opened, group: CommentGroup) -> dict[str, Any]:
        outputs = [opened.found.outputs[place] for place in group.outputs]
        return {
            "id": group.id,
            "text": group.comments[0],
            "comments": [
                {"text": text, "count": len(opened.found.by_comment[text])} for text in group.comments[:AT_ONCE]
            ],
            "more": max(0, len(group.comments) - AT_ONCE),
            "outputs": len(outputs),
            "differ": sum(each.differs for each in outputs),
            "tried": opened.tried(group.comments),
        }

    def _output(self, each: ComparedOutput, opened: _Opened) -> dict[str, Any]:
        example = each.example
        return {
            "id": example.id,
            "split": each.split,
            "score": None if each.score is None else round(each.score, 3),
            "passes": each.passes,
            "people": None if each.people is None else round(each.people, 3),
            "off": each.off,
            "parts": [{"id": name, "part": part} for name, part in each.parts.items()],
            "comments": each.comments,
            **{name: _shown(getattr(example, name)) for name in ("input", "context", "output")},
        }


def _validation(bench: JudgeBench, folder: Path, config: Mapping[str, Any]) -> Validation:
    """Say whether validation is shown. A look at it must be counted first (:class:`.ValidationLooks`)."""
    if config.get("learn_from") != "both":
        return "no"
    return "open" if bench.judge.hash in ValidationLooks(folder).judges() else "shut"


def _distance(config: Mapping[str, Any]) -> float:
    usual: float = AlignOptions.model_fields["disagreement_threshold"].default
    return float(config.get("disagreement_threshold") or usual)


def _shown(text: Any) -> str | None:
    if text is None:
        return None
    said = str(told(text))
    return said if len(said) <= MOST_SHOWN else f"{said[:MOST_SHOWN]} …"


def _dimension(comment: str, example: Example, checklist: Checklist, rated: Sequence[str]) -> str:
    """Return the dimension of a comment: its own, that of its question, else one that people rated, else the first."""
    about = next((each.about for each in example.comment if " ".join(each.text.split()) == comment), None)
    of_question = {each.id: each.dimension for each in checklist.questions}
    named = [about or "", of_question.get(about or "", ""), *rated]
    return next((each for each in named if each in checklist.dimensions), checklist.dimensions[0])


def _next(queue: Queue, examples: Sequence[Example], labelled: Any, left: Any) -> list[dict[str, Any]]:
    """Return the next outputs to label, in order, as if each output got its label before the next is chosen."""
    asked: dict[Any, int] = {}
    labelled = labelled.copy()
    rows: list[dict[str, Any]] = []
    while len(left) and len(rows) < MOST_NEXT:
        place, why = queue.pick(left, labelled, asked)
        asked[why] = asked.get(why, 0) + 1
        labelled[place], left = True, left[left != place]
        rows.append({"id": examples[place].id, "why": WORDS[why], "output": _shown(examples[place].output)})
    return rows
