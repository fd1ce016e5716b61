"""The report of verdicts that ``evaluate -o`` or ``diagnose -o`` wrote, with data and checklist if they are given."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from ..agents.example_questions import DIMENSION
from ..evaluation.diagnose import diagnose_verdicts
from ..evaluation.evaluate import score_by_own
from ..evaluation.evaluation_result import MadeRows
from ..evaluation.options import ScoreOptions
from ..evaluation.scoring import (
    ExampleScore,
    Targets,
    coverage,
    human_targets,
    mean_score,
    measure,
    score_examples,
    whole_name,
)
from ..prompts.checklist import Checklist, Question, load_checklist
from ..prompts.errors import InputError
from ..prompts.examples import Example, ExampleTable, human_dimensions, load_examples
from ..prompts.rows import column
from ..prompts.verdicts import VerdictColumns, read_verdicts
from .judged_page import JudgedFile
from .page import HALF, MISSING, PictureRoom, Section, clipped, failures, json_data, packed, packed_places, thousandth
from .run_data import FIELDS

TEXT_BUDGET = 3_000_000
"""Most characters of texts and explanations in a page. The most urgent examples get theirs first."""
SAID = 300
"""Most characters of one explanation."""
RESAMPLES, SEED = 1000, 42


@dataclass(frozen=True)
class Beside:
    """Files that say what the verdicts are about."""

    data: str | Path | None = None
    checklist: str | Path | None = None
    model: str | None = None
    """The model whose verdicts are used, if a file holds verdicts of several models."""
    settings: ScoreOptions = field(default_factory=lambda: ScoreOptions.model_validate({}))
    """Settings for reading the data: ``field``, ``human_scale``, ``labels``, ``label_scale``."""


@dataclass(frozen=True)
class _Read:
    verdicts: VerdictColumns
    examples: ExampleTable
    checklist: Checklist
    scores: Sequence[ExampleScore]
    targets: Targets | None
    lacking: Sequence[str]
    has_texts: bool
    own: Mapping[str, Checklist] | None = None
    """Questions by example id, if each example has questions of its own. The checklist then only names their places."""

    @cached_property
    def ours(self) -> list[float | None]:
        """The judge's score of each example: on the dimensions that people rated, or overall if they rated none."""
        targets = self.targets
        return [each.overall if targets is None else targets.score(each) for each in self.scores]

    @cached_property
    def wanted(self) -> list[float | None]:
        """People's score of each example; None for an example without one."""
        targets = self.targets
        return [None if targets is None else targets.overall(name) for name in column(self.examples, "id")]


def read_judging(path: Path, beside: Beside) -> JudgedFile:
    """Read a file of verdicts. Raises InputError if a file is damaged, the files do not belong together, or the
    verdicts are by several judges."""
    read = _read(path, beside)
    checklists = read.own
    found = None if checklists is not None else diagnose_verdicts(read.examples, read.checklist, read.verdicts)
    seen = coverage(read.verdicts) if found is None else found.coverage
    names = {each.id: place for place, each in enumerate(read.checklist.questions)}
    texts = {each.id: each.criterion for each in read.checklist.questions}
    whole, targets = "overall", read.targets
    agreement: dict[str, Mapping[str, Any]] = {}
    if targets is not None:
        measured = measure(read.scores, targets, read.examples, resamples=RESAMPLES, seed=SEED)
        agreement = dict(measured.dimensions)
        agreement |= {whole: measured.overall} if len(agreement) > 1 and whole not in agreement else {}
    dimensions = list(read.scores[0].dimensions) if len(read.checklist.dimensions) > 1 else []
    means = {name: mean_score(each.dimensions[name] for each in read.scores) for name in dimensions}
    means = {whole_name(dimensions): mean_score(each.overall for each in read.scores), **means}
    verdicts, ids = read.verdicts, list(column(read.examples, "id"))
    answered = set(column(verdicts, "question"))
    nos = [(str(place), f"a no to {clipped(texts[name])}") for name, place in names.items() if name in answered]
    missing = [("missing", "with a missing verdict")] if seen.share < 1 else []
    note = "The lowest scores first; an example with a missing verdict has no score and stands last."
    if targets is not None:
        note = "Those furthest from people's first; \"less people's\" is below zero where the judge is more severe."
    data: dict[str, Any] = {} if found is None else found.to_dict()
    if checklists is not None:
        texts, asked = {}, {name: [each.text for each in checklist.questions] for name, checklist in checklists.items()}
        judge = {"model": verdicts[0].model, "prompt": verdicts[0].prompt}
        data |= {**judge, "coverage": seen.to_dict(), "own_questions": asked}
    data |= {
        "scale": (0.0, 1.0),
        "means": means,
        "yes_rates": {},
        "agreement": {name: {"pooled": each} for name, each in agreement.items()},
        "scores": MadeRows(len(ids), lambda place: {"example": ids[place], "overall": read.ours[place]}),
    }
    return JudgedFile(
        "evaluate",
        path.name,
        data,
        read.lacking,
        texts,
        _mean_p_yes(verdicts, names),
        None if found is None else found.phi,
        [] if targets is None else read.wanted,
        failures(verdicts[place].to_dict() for place in np.flatnonzero(verdicts.numbers("status")).tolist()),
        Section("examples", "Example by example", note=note, explorer=_table(read, names), only=[*missing, *nos][:200]),
    )


def _mean_p_yes(verdicts: VerdictColumns, names: Mapping[str, int]) -> dict[str, float]:
    """Return the mean P(yes) of each question that has one."""
    p_yes, places = verdicts.numbers("p_yes"), verdicts.places("question", names)
    there = ~np.isnan(p_yes)
    count = np.bincount(places[there], minlength=len(names))
    total = np.bincount(places[there], weights=p_yes[there], minlength=len(names))
    return {name: float(total[place] / count[place]) for name, place in names.items() if count[place]}


def _read(path: Path, beside: Beside) -> _Read:
    lacking: list[str] = []
    reading = beside.settings
    checklist = None if beside.checklist is None else load_checklist(beside.checklist)
    known = None if checklist is None else [each.id for each in checklist.questions]
    data = None
    if beside.data is not None:
        how: dict[str, Any] = {"labels": reading.labels, "label_scale": reading.label_scale}
        data = load_examples(beside.data, fields=reading.field, need_output=False, **how)
    ids = None if data is None else dict.fromkeys(column(data, "id"))
    verdicts = read_verdicts(path, examples=ids, questions=known)
    if beside.model is not None:
        models, verdicts = verdicts.models, verdicts.by(beside.model)
        if not verdicts:
            raise InputError(
                f"{path}: no verdict is by the model {beside.model}; there are some by {', '.join(models)}."
            )
    judges = verdicts.models
    if len(judges) > 1:
        raise InputError(f"{path}: the verdicts are by several models ({', '.join(judges)}); choose one with --model.")
    asked = dict.fromkeys(column(verdicts, "example"))
    if data is None:
        lacking.append("--data shows each example's texts and, with human scores, how far people agree")
        examples = ExampleTable(Example(id=each, input="") for each in asked)
    else:
        examples = data.only(place for place, name in enumerate(column(data, "id")) if name in asked)
    checklists = _own(verdicts) if verdicts.are_own else None
    if checklists is not None:
        names = dict.fromkeys(column(verdicts, "question"))
        places = (Question(id=each, text=f"question {each} of its own", dimension=DIMENSION) for each in names)
        checklist = Checklist(questions=tuple(places))
    elif checklist is None:
        lacking.append("--checklist shows the questions' texts, dimensions and weights")
        names = dict.fromkeys(column(verdicts, "question"))
        checklist = Checklist(questions=tuple(Question(id=each, text=each) for each in names))
    targets = None
    if human_dimensions(examples, checklist):
        try:
            targets = human_targets(examples, checklist, reading.human_scale)
        except InputError as error:
            lacking.append(f"people's scores are not used: {error}")
            examples = ExampleTable(each.model_copy(update={"human": {}}) for each in examples)
    if checklists is None:
        scores = score_examples(examples, checklist, verdicts)
    else:
        scores = score_by_own(examples, checklists, verdicts, soft=True)
    return _Read(verdicts, examples, checklist, scores, targets, lacking, data is not None, checklists)


def _own(verdicts: VerdictColumns) -> dict[str, Checklist]:
    """Return each example's own questions, by example id. Examples without questions are left out."""
    found: dict[str, dict[str, Question]] = {}
    for each in verdicts:
        if each.asked is not None:
            question = Question(id=each.question, text=each.asked, dimension=DIMENSION)
            found.setdefault(each.example, {})[each.question] = question
    return {name: Checklist(questions=tuple(questions.values())) for name, questions in found.items()}


def _table(read: _Read, names: Mapping[str, int]) -> Markup:
    """Return all examples for the page's table: scores, one byte per verdict, and texts as far as there is room."""
    verdicts = read.verdicts
    ids = list(column(read.examples, "id"))
    places = verdicts.places("example", ids)
    cells = places * len(names) + verdicts.places("question", names)
    targets = read.targets
    scores, wanted = read.ours, read.wanted
    differences = [None if a is None or b is None else a - b for a, b in zip(scores, wanted, strict=True)]
    urgency = [abs(each) if each is not None else None for each in differences] if targets else scores
    gone = np.bincount(places[verdicts.numbers("answer") < 0], minlength=len(read.examples)).tolist()
    texts, explanations = _texts(read, _reasons(verdicts, cells, len(names)), urgency, gone)
    columns = [["Example", "ids"], ["Score", "score"]]
    columns += [["People", "wanted"], ["Less people's", "off"]] if targets else []
    rows: dict[str, Any] = {
        "ids": ids,
        "columns": columns,
        "sorted": "urgency",
        "down": targets is not None,
        "signed": ["off"],
        "score": [thousandth(each) for each in scores],
        **({"wanted": [thousandth(e) for e in wanted], "off": [thousandth(e) for e in differences]} if targets else {}),
        "urgency": [thousandth(each) for each in urgency],
        "questions": [[each.criterion, each.id] for each in read.checklist.questions],
        **_answers(cells, verdicts.numbers("p_yes"), verdicts.numbers("answer"), len(ids), len(names)),
        "texts": texts,
        "said": explanations,
        "elsewhere": "Its texts are in the data." if read.has_texts else "",
    }
    return json_data(rows)


def _answers(
    cells: NDArray[np.integer[Any]], p_yes: NDArray[np.float64], said: NDArray[Any], examples: int, questions: int
) -> dict[str, str]:
    """Pack each example's questions and their mean verdicts, one byte per verdict (:func:`~.page.probability_byte`)."""
    count = np.bincount(cells, minlength=examples * questions)
    filled_cells = np.flatnonzero(count)
    means = np.bincount(cells, weights=p_yes)[filled_cells] / count[filled_cells]
    is_no = (means < 0.5) | (
        (means == 0.5) & (np.bincount(cells, weights=said == 0)[filled_cells] == count[filled_cells])
    )
    nearest = np.rint(200 * np.clip(means, 0.0, 1.0))
    nearest = np.where(is_no, np.minimum(nearest, HALF - 1), nearest)
    first = np.where(np.isnan(means), MISSING, nearest).astype(np.uint8)
    counts = np.count_nonzero(count.reshape(examples, questions), axis=1)
    return {
        "counts": packed(array("I", counts.astype(np.uint32).tobytes())),
        "asked": packed_places(array("I", (filled_cells % questions).astype(np.uint32).tobytes()), questions),
        "first": packed(array("B", first.tobytes())),
    }


def _reasons(verdicts: VerdictColumns, cells: NDArray[np.intp], questions: int) -> dict[int, dict[str, str]]:
    """Return reasons for answers, or for missing answers, by place of the example, then of the question."""
    if not (verdicts.are_own or verdicts.explained):
        return {}
    _, firsts = np.unique(cells, return_index=True)
    found: dict[int, dict[str, str]] = {}
    places = np.sort(firsts) if verdicts.are_own else np.intersect1d(firsts, verdicts.explained)
    for place in places.tolist():
        said = verdicts[place]
        if text := " ".join(filter(None, (said.asked, said.error or said.explanation)))[:SAID]:
            example, question = divmod(int(cells[place]), questions)
            found.setdefault(example, {})[str(question)] = text
    return found


def _texts(
    read: _Read,
    reasons: Mapping[int, Mapping[str, str]],
    urgency: Sequence[float | None],
    gone: Sequence[int],
) -> tuple[dict[str, list[list[Any]]], dict[str, dict[str, str]]]:
    """Return texts and explanations of the most urgent examples, until :data:`TEXT_BUDGET` is used up."""
    far = read.targets is not None
    order = sorted(
        range(len(read.examples)),
        key=lambda place: (not gone[place], (-1 if far else 1) * (urgency[place] or 0.0), place),
    )
    texts: dict[str, list[list[Any]]] = {}
    explanations: dict[str, dict[str, str]] = {}
    room, pictures = TEXT_BUDGET, PictureRoom()
    for place in order:
        if room <= 0:
            break
        example = read.examples[place]
        if read.has_texts:
            found = [(name, getattr(example, name)) for name in FIELDS]
            texts[example.id] = [
                [name.capitalize(), clipped(text), *pictures.beside(text)] for name, text in found if text
            ]
            room -= sum(len(text) for _, text, *_ in texts[example.id])
        why = dict(reasons.get(place, {}))
        if why:
            explanations[example.id] = why
            room -= sum(map(len, why.values()))
        room -= 20
    return texts, explanations
