"""The report of verdicts, as ``evaluate -o`` and ``diagnose -o`` write them, with data and checklist where given."""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..evaluation.diagnose import diagnose_verdicts
from ..evaluation.scoring import complete_mean, human_targets, mean_score, measure, score_examples
from ..prompts.checklist import Checklist, Question, load_checklist
from ..prompts.errors import InputError
from ..prompts.examples import Example, human_dimensions, load_examples
from ..prompts.verdicts import read_verdicts
from .examples import FIELDS
from .judged_file import JudgedFile
from .page import clipped, json_data, packed, packed_places, probability_byte, thousandth
from .result_page import Section, failures

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from markupsafe import Markup

    from ..evaluation.scoring import ExampleScore, Targets
    from ..prompts.field_map import FieldMap
    from ..prompts.labels import Labels
    from ..prompts.verdicts import Verdict

TEXT_BUDGET = 3_000_000
"""Characters of texts and explanations in a page; the examples that need looking at most get theirs first."""
SAID = 300
"""Characters of one explanation."""
RESAMPLES, SEED = 1000, 42


@dataclass(frozen=True)
class Beside:
    """Files that say what the verdicts are about."""

    data: str | Path | None = None
    checklist: str | Path | None = None
    fields: FieldMap | None = None
    """Renames columns of the data."""
    human_scale: tuple[float, float] | None = None
    model: str | None = None
    """Whose verdicts, where a file holds those of several."""
    labels: Labels | None = None
    """Further words that people's labels are in."""


@dataclass(frozen=True)
class _Read:
    verdicts: Sequence[Verdict]
    examples: Sequence[Example]
    checklist: Checklist
    scores: Sequence[ExampleScore]
    targets: Targets | None
    lacking: Sequence[str]
    has_texts: bool


def read_judging(path: Path, beside: Beside) -> JudgedFile:
    """What a file of verdicts says.

    Raises:
        InputError: A file is damaged, the files do not belong together, or the verdicts are by several judges.
    """
    read = _read(path, beside)
    found = diagnose_verdicts(read.examples, read.checklist, read.verdicts)
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
    answered = {each.question for each in read.verdicts}
    nos = [(str(place), f"a no to {clipped(texts[name])}") for name, place in names.items() if name in answered]
    missing = [("missing", "with a missing verdict")] if found.coverage.share < 1 else []
    p_yes: dict[str, list[float]] = {}
    for each in read.verdicts:
        if each.p_yes is not None:
            p_yes.setdefault(each.question, []).append(each.p_yes)
    note = "The lowest scores first; an example with a missing verdict has no score and stands last."
    if targets is not None:
        note = "Those furthest from people's first; \"less people's\" is below zero where the judge is more severe."
    data = found.to_dict() | {
        "scale": (0.0, 1.0),
        "means": {whole: mean_score(each.overall for each in read.scores), **means},
        "yes_rates": {},
        "agreement": {name: {"pooled": each} for name, each in agreement.items()},
        "scores": [
            {"example": each.example, "overall": each.overall if targets is None else targets.score(each)}
            for each in read.scores
        ],
    }
    return JudgedFile(
        "evaluate",
        path.name,
        data,
        read.lacking,
        texts,
        {name: mean_score(values) for name, values in p_yes.items()},
        found.phi,
        [] if targets is None else [targets.overall(each.example) for each in read.scores],
        failures(each.to_dict() for each in read.verdicts),
        Section("examples", "Example by example", note=note, explorer=_table(read, names), only=[*missing, *nos][:200]),
    )


def _read(path: Path, beside: Beside) -> _Read:
    lacking = []
    checklist = None if beside.checklist is None else load_checklist(beside.checklist)
    known = None if checklist is None else [each.id for each in checklist.questions]
    data = None
    if beside.data is not None:
        data = load_examples(beside.data, fields=beside.fields, need_output=False, labels=beside.labels)
    ids = None if data is None else {each.id: None for each in data}
    verdicts = read_verdicts(path, examples=ids, questions=known)
    if beside.model is not None:
        models = sorted({each.model for each in verdicts})
        verdicts = [each for each in verdicts if each.model == beside.model]
        if not verdicts:
            raise InputError(
                f"{path}: no verdict is by the model {beside.model}; there are some by {', '.join(models)}."
            )
    judges = sorted({each.model for each in verdicts})
    if len(judges) > 1:
        raise InputError(f"{path}: the verdicts are by several models ({', '.join(judges)}); choose one with --model.")
    asked = list(dict.fromkeys(each.example for each in verdicts))
    if data is None:
        lacking.append("--data shows each example's texts and, with human scores, how far people agree")
        examples = [Example(id=each, input="") for each in asked]
    else:
        judged = set(asked)
        examples = [each for each in data if each.id in judged]
    if checklist is None:
        lacking.append("--checklist shows the questions' texts, dimensions and weights")
        names = dict.fromkeys(each.question for each in verdicts)
        checklist = Checklist(questions=tuple(Question(id=each, text=each) for each in names))
    targets = None
    if human_dimensions(examples, checklist):
        try:
            targets = human_targets(examples, checklist, beside.human_scale)
        except InputError as error:
            lacking.append(f"people's scores are not used: {error}")
            examples = [each.model_copy(update={"human": {}}) for each in examples]
    scores = score_examples(examples, checklist, verdicts)
    return _Read(verdicts, examples, checklist, scores, targets, lacking, data is not None)


def _table(read: _Read, names: Mapping[str, int]) -> Markup:
    """All examples for the page's table: scores, verdicts in a byte each, and texts as far as there is room."""
    answers: dict[str, dict[int, list[Verdict]]] = {each.id: {} for each in read.examples}
    for verdict in read.verdicts:
        answers[verdict.example].setdefault(names[verdict.question], []).append(verdict)
    counts, asked, first = array("I"), array("I"), array("B")
    for example in read.examples:
        mine = answers[example.id]
        counts.append(len(mine))
        for place, verdicts in sorted(mine.items()):
            asked.append(place)
            first.append(probability_byte(complete_mean([each.p_yes for each in verdicts])))
    targets = read.targets
    ours = [each.overall if targets is None else targets.score(each) for each in read.scores]
    wanted = [None if targets is None else targets.overall(each.example) for each in read.scores]
    off = [None if a is None or b is None else a - b for a, b in zip(ours, wanted, strict=True)]
    urgency = [abs(each) if each is not None else None for each in off] if targets else ours
    gone = [sum(each.answer is None for said in answers[e.id].values() for each in said) for e in read.examples]
    texts, said = _texts(read, answers, urgency, gone)
    columns = [["Example", "ids"], ["Score", "score"]]
    columns += [["People", "wanted"], ["Less people's", "off"]] if targets else []
    rows: dict[str, Any] = {
        "ids": [each.id for each in read.examples],
        "columns": columns,
        "sorted": "urgency",
        "down": targets is not None,
        "signed": ["off"],
        "score": [thousandth(each) for each in ours],
        **({"wanted": [thousandth(e) for e in wanted], "off": [thousandth(e) for e in off]} if targets else {}),
        "urgency": [thousandth(each) for each in urgency],
        "questions": [[each.criterion, each.id] for each in read.checklist.questions],
        "counts": packed(counts),
        "asked": packed_places(asked, len(names)),
        "first": packed(first),
        "texts": texts,
        "said": said,
        "elsewhere": "Its texts are in the data." if read.has_texts else "",
    }
    return json_data(rows)


def _texts(
    read: _Read,
    answers: Mapping[str, Mapping[int, Sequence[Verdict]]],
    urgency: Sequence[float | None],
    gone: Sequence[int],
) -> tuple[dict[str, list[list[str]]], dict[str, dict[str, str]]]:
    """Texts and explanations of the examples that need looking at most, until the page has enough."""
    far = read.targets is not None
    order = sorted(
        range(len(read.examples)),
        key=lambda place: (not gone[place], (-1 if far else 1) * (urgency[place] or 0.0), place),
    )
    texts: dict[str, list[list[str]]] = {}
    said: dict[str, dict[str, str]] = {}
    left = TEXT_BUDGET
    for place in order:
        if left <= 0:
            break
        example = read.examples[place]
        if read.has_texts:
            found = [(field, getattr(example, field)) for field in FIELDS]
            texts[example.id] = [[field.capitalize(), clipped(text)] for field, text in found if text]
            left -= sum(len(text) for _, text in texts[example.id])
        why = {
            str(question): (verdicts[0].error or verdicts[0].explanation or "")[:SAID]
            for question, verdicts in answers[example.id].items()
        }
        why = {question: text for question, text in why.items() if text}
        if why:
            said[example.id] = why
            left -= sum(map(len, why.values()))
        left -= 20
    return texts, said
