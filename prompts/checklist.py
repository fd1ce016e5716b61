"""The checklist: atomic yes/no questions by dimension, in a file that people can edit."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from textwrap import indent
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from .criteria.kinds import read_schema, with_its_file, with_schemas
from .criteria.measures import ComputedMeasure as ComputedMeasure
from .criteria.question import CHECKS as CHECKS
from .criteria.question import FAULT as FAULT
from .criteria.question import SEEN as SEEN
from .criteria.question import TEXTS as TEXTS
from .criteria.question import YES_IS_GOOD as YES_IS_GOOD
from .criteria.question import Computed as Computed
from .criteria.question import ComputedCheck as ComputedCheck
from .criteria.question import GoodAnswer as GoodAnswer
from .criteria.question import Polar as Polar
from .criteria.question import Question as Question
from .criteria.question import Sees as Sees
from .criteria.question import Weight as Weight
from .criteria.question import marked as marked
from .criteria.wording import asks_yes_or_no
from .errors import InputError, did_you_mean, like_named
from .rows import validate_row
from .text import shorten
from .text_files import BareWord, OneLine, dump_texts, once_each, read_text, read_texts, read_yaml

logger = logging.getLogger(__name__)
READY = ("global",)
"""Checklists that come with askance: ``prompts/checklists/NAME.yaml``."""
ID_WORDS = 6
"""Number of a question's first words that make its id, if it has none."""
_ONE_WORD = re.compile(r"""[^\s"'`*_.,:;!?()\[\]{}<>/|\\#$]{1,40}""")


def _two_words(value: Any) -> Any:
    given = value.split(",") if isinstance(value, str) else value
    words = (
        [each.strip() if isinstance(each, str) else "" for each in given] if isinstance(given, (list, tuple)) else []
    )
    if len(words) != 2 or not all(re.search(r"\w", each) and _ONE_WORD.fullmatch(each) for each in words):
        raise ValueError("two words are needed, the one for yes and the one for no, e.g. ja, nein")
    if words[0].lower() == words[1].lower():
        raise ValueError(f"the words for yes and no must differ, and both are '{words[0]}'")
    return words


AnswerPair = Annotated[tuple[str, str], BeforeValidator(_two_words)]
"""The words for yes and no that a judge answers with."""


class Checklist(BaseModel):
    """Criteria of one task, grouped by dimension: questions that a model answers, and checks and measures that code
    computes.

    :attr:`questions` holds all criteria; :attr:`asked`, :attr:`checks` and :attr:`measures` hold the three kinds.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", serialize_by_alias=True)

    task: str = ""
    asked: tuple[Question, ...] = Field(alias="questions")
    """The questions that a model answers."""
    checks: tuple[ComputedCheck, ...] = Field(default=(), exclude_if=lambda checks: not checks)
    """The criteria that code decides."""
    measures: tuple[ComputedMeasure, ...] = Field(default=(), exclude_if=lambda measures: not measures)
    """The criteria that code computes as a number."""
    section_weights: dict[str, dict[str, Weight]] = Field(default_factory=dict)
    """Section (or data set) to the weight of every question there, in place of the questions' own weights."""
    answers: AnswerPair | None = Field(default=None, exclude_if=lambda answers: answers is None)
    """The words for yes and no that the judge is told to answer with; None: yes and no."""

    @model_validator(mode="before")
    @classmethod
    def _by_kind(cls, data: Any) -> Any:
        """Move checks and measures out of the caller's questions. Beside these, there need be no questions."""
        if isinstance(data, dict) and (data.get("checks") or data.get("measures")) and "questions" not in data:
            return {**data, "questions": ()}
        questions = data.get("questions") if isinstance(data, dict) else None
        if not isinstance(questions, (list, tuple)) or not any(isinstance(each, Computed) for each in questions):
            return data
        kinds = _split(questions)
        computed = {name: (*data.get(name, ()), *kinds[name]) for name in ("checks", "measures")}
        return {**data, "questions": kinds["asked"], **computed}

    @field_validator("asked")
    @classmethod
    def _ids_are_unique(cls, questions: tuple[Question, ...]) -> tuple[Question, ...]:
        _refuse_twice(questions, "question", set())
        return questions

    @field_validator("asked", mode="before")
    @classmethod
    def _plain_questions(cls, questions: Any) -> Any:
        """Give an id, made of its first words, to each question that is a plain text."""
        if isinstance(questions, dict) and all(isinstance(question, str) for question in questions.values()):
            return [{"id": name, "text": text} for name, text in questions.items()]
        if not isinstance(questions, (list, tuple)) or not any(isinstance(question, str) for question in questions):
            return questions
        taken = {
            question.get("id") if isinstance(question, dict) else getattr(question, "id", None)
            for question in questions
        }
        found = []
        for question in questions:
            if isinstance(question, str) and question.strip():
                name = words = "_".join(re.findall(r"\w+", question.casefold())[:ID_WORDS]) or "question"
                number = 1
                while name in taken:
                    number += 1
                    name = f"{words}_{number}"
                taken.add(name)
                found.append({"id": name, "text": question})
            else:
                found.append(question)
        return found

    @model_validator(mode="after")
    def _some_criterion(self) -> Checklist:
        if not self.questions:
            raise ValueError("field 'questions': there must be at least 1")
        _refuse_twice(self.checks, "check", {each.id for each in self.asked})
        _refuse_twice(self.measures, "measure", {each.id for each in (*self.asked, *self.checks)})
        if not any(question.weight > 0 for question in self.questions):
            raise ValueError("every weight is 0, so there is no score")
        return self

    @model_validator(mode="after")
    def _sections_weigh_every_question(self) -> Checklist:
        ids = [question.id for question in self.questions]
        for section, weights in self.section_weights.items():
            for missing in (each for each in ids if each not in weights):
                raise ValueError(f"section_weights.{section}: there is no weight for the question '{missing}'")
            for unknown in (each for each in weights if each not in ids):
                hint = did_you_mean(unknown, ids)
                raise ValueError(f"section_weights.{section}: there is no question '{unknown}'.{hint}")
            if not any(weights.values()):
                raise ValueError(f"section_weights.{section}: every weight is 0, so there is no score")
        return self

    @property
    def questions(self) -> tuple[Question, ...]:
        """All criteria: the questions that are asked, then the checks, then the measures."""
        return (*self.asked, *self.checks, *self.measures) if self.computed else self.asked

    @property
    def computed(self) -> tuple[ComputedCheck | ComputedMeasure, ...]:
        """The criteria that code computes: the checks, then the measures."""
        return (*self.checks, *self.measures)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return the checklist with some fields changed; ``questions`` may hold criteria of all kinds."""
        if update is not None and "questions" in update:
            others = {name: value for name, value in update.items() if name != "questions"}
            update = {**others, **_split(update["questions"])}
        return super().model_copy(update=update, deep=deep)

    @property
    def asked_alone(self) -> Checklist | None:
        """The checklist with only the questions that a model answers; None if none of them has a weight."""
        return self.of(self.asked)

    def of(self, criteria: Sequence[Question]) -> Checklist | None:
        """Return the checklist with only these criteria, also in its sections; None if none of them has a weight."""
        ids = {each.id for each in criteria}
        if len(ids) == len(self.questions):
            return self
        if not any(each.weight > 0 for each in criteria):
            return None
        sections = {
            name: {each: weight for each, weight in weights.items() if each in ids}
            for name, weights in self.section_weights.items()
        }
        return self.model_copy(update={"questions": criteria, "section_weights": sections})

    @property
    def dimensions(self) -> list[str]:
        """Dimensions in order of first appearance."""
        return list(dict.fromkeys(question.dimension for question in self.questions))

    @property
    def faults(self) -> dict[str, Question]:
        """The questions whose yes speaks against the output, by id."""
        return {question.id: question for question in self.questions if question.is_fault}

    def question(self, question_id: str) -> Question:
        """Return the question with this id. Raises KeyError if there is none."""
        found = next((each for each in self.questions if each.id == question_id), None)
        if found is None:
            raise KeyError(f"the checklist has no question '{question_id}'")
        return found

    def section_of(self, metadata: Mapping[str, Any]) -> str | None:
        """Return the section whose weights an example uses, by its ``section`` and ``dataset``; None without one.

        The name ``DATASET/SECTION`` is tried first, then the section, then the data set.
        """
        if not self.section_weights:
            return None
        section, dataset = metadata.get("section"), metadata.get("dataset")
        both = [] if section is None or dataset is None else [f"{dataset}/{section}"]
        names = [*both, *(str(name) for name in (section, dataset) if name is not None)]
        return next((name for name in names if name in self.section_weights), None)

    def weights(self, section: str | None = None) -> dict[str, float]:
        """Return the weight of every question in a section; None stands for examples without a section."""
        if section is not None:
            return self.section_weights[section]
        return {question.id: question.weight for question in self.questions}


def _split(criteria: Iterable[Question]) -> dict[str, tuple[Question, ...]]:
    """Divide criteria by kind; each kind keeps its order."""
    criteria = tuple(criteria)
    return {
        "asked": tuple(each for each in criteria if not isinstance(each, Computed)),
        "checks": tuple(each for each in criteria if isinstance(each, ComputedCheck)),
        "measures": tuple(each for each in criteria if isinstance(each, ComputedMeasure)),
    }


def _refuse_twice(criteria: Sequence[Question], what: str, seen: set[str]) -> None:
    for number, each in enumerate(criteria, 1):
        if each.id in seen:
            raise ValueError(f"the id '{each.id}' is used again by {what} {number}")
        seen.add(each.id)


def load_checklist(path: str | Path | Checklist, *, remarks: bool = True) -> Checklist:
    """Read a checklist from YAML or JSON, or a ready one by its name; a :class:`Checklist` is only checked.

    A name that is not a file is looked up among the ready checklists (``READY``). ``remarks``: whether to warn of
    questions that yes or no does not answer; off for a run's own copy of a file that was read before. Raises
    InputError, which names the file and the wrong question or line.
    """
    if isinstance(path, Checklist):
        return asking(path, "checklist")
    if not isinstance(path, (str, Path)):
        raise InputError(
            f"checklist: a file, the name of a ready one or a Checklist is needed, not {type(path).__name__}."
        )
    path = Path(path)
    if is_ready(path):
        return parse_checklist(files(__package__).joinpath("checklists", f"{path}.yaml").read_text("utf-8"), str(path))
    try:
        text = read_text(path)
    except FileNotFoundError:
        raise InputError(
            f"{path}: there is no such checklist file, and no ready checklist of that name (ready: "
            f"{', '.join(READY)}).{did_you_mean(str(path), READY) or like_named(path)}"
        ) from None
    checklist = asking(parse_checklist(text, str(path)), str(path))
    if remarks and (said := _no_questions_said(checklist)):
        logger.warning("%s: %s", path, said)
    return found_in(checklist, path.parent.absolute())


def _no_questions_said(checklist: Checklist) -> str | None:
    """Return a sentence on the questions that yes or no does not answer; None if there are none."""
    found = [(number, each) for number, each in enumerate(checklist.asked, 1) if not asks_yes_or_no(each.text)]
    if not found:
        return None
    number, first = found[0]
    named = f"entry {number} of 'questions' ('{first.id}') is no yes/no question: \"{shorten(first.text, 80)}\""
    if others := [each.id for _, each in found[1:]]:
        listed = ", ".join(f"'{each}'" for each in others[:3])
        named += f" Nor {'are' if len(others) > 1 else 'is'} {listed}{' …' if len(others) > 3 else ''}."
    return f"{named} Yes or no is answered all the same. Ask for one property, as in: Is the reply helpful?"


def found_in(checklist: Checklist, folder: Path) -> Checklist:
    """Return the checklist; its checks and measures look for their functions in ``folder`` first."""
    if not checklist.computed:
        return checklist
    computed = tuple(each.found_in(folder) for each in checklist.computed)
    return checklist.model_copy(update={"questions": (*checklist.asked, *computed)})


SCHEMA_CHECK = "schema"
"""Id of the check that is made of a separate schema (``--schema``)."""


def with_schema(checklist: Checklist | None, schema: str | Path | Mapping[str, Any] | None) -> Checklist | None:
    """Return the checklist with a check that outputs follow a JSON schema, given as a file or an object; unchanged
    without a schema. Raises InputError if the file does not exist, it is not a JSON schema, or the checklist has a
    criterion with the id :data:`SCHEMA_CHECK`."""
    if schema is None:
        return checklist
    is_file = isinstance(schema, (str, Path))
    place = str(schema) if is_file else "schema"
    text = read_schema(Path(schema)) if isinstance(schema, (str, Path)) else json.dumps(schema, ensure_ascii=False)
    check = validate_row(ComputedCheck, {"id": SCHEMA_CHECK, "kind": "schema", "value": text}, place)
    if checklist is None:
        return Checklist(questions=(), checks=(check,))
    if any(each.id == SCHEMA_CHECK for each in checklist.questions):
        raise InputError(
            f"{place}: the checklist has a criterion with the id '{SCHEMA_CHECK}' already; give that another id, or "
            "leave the schema out."
        )
    sections = {name: {**weights, SCHEMA_CHECK: 1.0} for name, weights in checklist.section_weights.items()}
    return checklist.model_copy(update={"questions": (*checklist.questions, check), "section_weights": sections})


def refuse_computed(
    checklist: Checklist, what: str, kinds: Sequence[Literal["checks", "measures"]] = ("checks", "measures")
) -> Checklist:
    """Return the checklist if it has no checks and no measures. Raises InputError, which names them, if it has some;
    ``what``, the beginning of the message, says who cannot use them."""
    for kind in kinds:
        if names := ", ".join(each.id for each in getattr(checklist, kind)):
            raise InputError(f"{what}, and the checklist has {kind} ({names}): leave them out of it here.")
    return checklist


def asking(checklist: Checklist, name: str) -> Checklist:
    """Return the checklist if no question is blank; ``name`` is used in errors. Raises InputError if one is blank."""
    for number, question in enumerate(checklist.questions, 1):
        if not question.text.strip():
            raise InputError(
                f"{name}: entry {number} of 'questions': field 'text': a question is needed, not a blank text; write "
                f"it, or take '{question.id}' out."
            )
    return checklist


def is_ready(path: str | Path) -> bool:
    """Whether this is the name of a ready checklist and not of a file."""
    return str(path) in READY and not Path(path).is_file()


def parse_checklist(text: str, name: str) -> Checklist:
    """Read a checklist from the text of a YAML or JSON file; ``name`` is used in errors. Raises InputError if the text
    is not a checklist."""
    data = _parse_json(text, name)
    if not data:
        data = read_texts(text, name, "checklist")
        if isinstance(data, dict) and data.get("checks"):
            data["checks"] = with_schemas(data["checks"], read_yaml(text, name, "checklist")["checks"])
    if isinstance(data, list) and data:
        data = {"questions": data}
    if not isinstance(data, dict):
        raise InputError(f"{name}: a checklist has the keys 'task' and 'questions'; this file has neither.")
    if isinstance(data.get("checks"), list):
        data = {**data, "checks": [with_its_file(each, name) for each in data["checks"]]}
    return validate_row(Checklist, data, name)


def _parse_json(text: str, name: str) -> Any:
    """Read a JSON text; None if it is not JSON. The YAML reader would read most of JSON, but not tabs."""
    try:
        return json.loads(text, object_pairs_hook=once_each)
    except (json.JSONDecodeError, RecursionError):
        return None
    except ValueError as error:
        raise InputError(f"{name}: {error}.") from None


def dump_checklist(checklist: Checklist) -> str:
    """Write a checklist as YAML with one block per question; defaults are left out."""
    answers = {} if checklist.answers is None else {"answers": list(checklist.answers)}
    blocks = [dump_texts({"task": checklist.task, **answers})]

    def add(fields: dict[str, Any]) -> None:
        blocks.append(indent(dump_texts([fields]), "  ", lambda line: line != "\n") + "\n")

    blocks += ["questions:\n"] if checklist.asked else []
    for question in checklist.asked:
        fields = question.model_dump(exclude_none=True)
        if fields["weight"] == 1:
            del fields["weight"]
        if question.is_fault:
            first = {"id": question.id, "text": question.text, "good": ""}  # in this order
            fields = first | fields | {"good": BareWord("no")}
        add(fields)
    for name, computed in (("checks", checklist.checks), ("measures", checklist.measures)):
        blocks += [f"{name}:\n"] if computed else []
        for each in computed:
            fields = {name: OneLine(value) if isinstance(value, list) else value for name, value in each.stated.items()}
            if fields.get("good") in ("yes", "no"):
                fields |= {"good": BareWord(fields["good"])}
            add(fields)
    if checklist.section_weights:
        blocks.append(dump_texts({"section_weights": checklist.section_weights}))
    return blocks[0] + "\n" + "".join(blocks[1:])
