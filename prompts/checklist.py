"""The checklist: atomic yes/no questions by dimension, in a file people like to edit."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Annotated, Any, Literal, overload

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_serializer, model_validator

from .errors import InputError, did_you_mean, like_named
from .rows import validate_row
from .text_files import read_text, read_texts

if TYPE_CHECKING:
    from pydantic import SerializerFunctionWrapHandler

READY = ("global",)
"""Checklists that come with askance: ``prompts/checklists/NAME.yaml``."""


FAULT = "yes = fault"
"""How a question is marked, where questions are listed, to which yes speaks against the output."""
ID_WORDS = 6
"""Words of a question that make its id, where it has none."""
GoodAnswer = Literal["yes", "no"]
Sees = Literal["all", "output", "quote", "last", "call"]
"""Part of an example that a judge is shown with a question: everything that its prompt shows; the output alone; the
output alone, to quote what makes the answer yes; the last reply of a conversation; or its calls of tools."""
SEEN: dict[Sees, str] = {
    "output": "of the output alone",
    "quote": "answered with a quote",
    "last": "of the last reply",
    "call": "of the calls of tools",
}
"""How a question is marked, where questions are listed, that sees something else than everything."""
_WORDS = {"true": "yes", "false": "no"}


def _no_truth(value: Any) -> Any:
    if isinstance(value, bool):  # which would count as 1 or 0
        raise ValueError(f"a number is needed, not {json.dumps(value)}")
    return value


Weight = Annotated[float, BeforeValidator(_no_truth), Field(ge=0, allow_inf_nan=False)]
"""How much a question counts."""


_ONE_WORD = re.compile(r"""[^\s"'`*_.,:;!?()\[\]{}<>/|\\#$]{1,40}""")


def _two_words(value: Any) -> Any:
    words = value.split(",") if isinstance(value, str) else value
    if not isinstance(words, (list, tuple)) or not all(isinstance(each, str) for each in words):
        raise ValueError("two words are needed, the one for yes and the one for no, e.g. ja, nein")
    words = [each.strip() for each in words]
    if len(words) != 2 or not all(re.search(r"\w", each) and _ONE_WORD.fullmatch(each) for each in words):
        raise ValueError("two words are needed, the one for yes and the one for no, e.g. ja, nein")
    if words[0].lower() == words[1].lower():
        raise ValueError(f"the words for yes and no must differ, and both are '{words[0]}'")
    return words


AnswerPair = Annotated[tuple[str, str], BeforeValidator(_two_words)]
"""The words for yes and no that a judge answers with."""


def marked(text: str, good: str, sees: Sees = "all") -> str:
    """A question as it is listed: with what is not as usual, its good answer (it looks for a fault) or what it sees."""
    said = [*([FAULT] if good == "no" else []), *([SEEN[sees]] if sees in SEEN else [])]
    return f"{text} ({', '.join(said)})" if said else text


class Polar(BaseModel):
    """Which answer to a question speaks for the output, and what an answer is worth then."""

    model_config = ConfigDict(frozen=True)

    good: GoodAnswer = "yes"
    """``no`` for a question that looks for a fault. The model is asked the same either way."""

    @field_validator("good", mode="before")
    @classmethod
    def _in_any_case(cls, value: Any) -> Any:
        """Takes ``No``, and what YAML and JSON make of it, for ``no``."""
        word = str(value).strip().lower() if isinstance(value, (str, bool)) else ""
        word = _WORDS.get(word, word)
        if word not in ("yes", "no"):
            raise ValueError(
                f"it is yes or no, the answer that speaks for the output, not {json.dumps(value, default=str)}"
            )
        return word

    @model_serializer(mode="wrap")
    def _default_left_out(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Written only where it is ``no``, after everything else."""
        fields: dict[str, Any] = handler(self)
        good = fields.pop("good", "yes")
        return fields if good == "yes" else fields | {"good": good}

    @property
    def is_fault(self) -> bool:
        """Whether yes speaks against the output."""
        return self.good == "no"

    @overload
    def p_good(self, p_yes: float) -> float: ...
    @overload
    def p_good(self, p_yes: float | None) -> float | None: ...
    def p_good(self, p_yes: float | None) -> float | None:
        """P(the answer that speaks for the output), of P(yes); of a 1 or 0 for yes or no, whether it is that answer.

        None stays None. It is its own inverse: of a wanted P(good) it gives the wanted P(yes).
        """
        return p_yes if p_yes is None or not self.is_fault else 1.0 - p_yes

    @overload
    def is_good(self, answer: bool) -> bool: ...
    @overload
    def is_good(self, answer: bool | None) -> bool | None: ...
    def is_good(self, answer: bool | None) -> bool | None:
        """Whether an answer (True for yes) speaks for the output; None stays None. It is its own inverse."""
        return answer if answer is None else answer != self.is_fault


YES_IS_GOOD = Polar()


class Question(Polar):
    """An atomic yes/no question; "yes" means that the criterion is met (BinEval §3.1), or, beyond it, that a fault is
    there.

    Verdicts stay what the model said; what they are worth, :meth:`p_good` and :meth:`is_good` say.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, coerce_numbers_to_str=True)

    id: str = Field(min_length=1)
    text: str = Field(min_length=1)
    dimension: str = Field(default="overall", min_length=1)
    """What it is about; a file may call it ``criterion``."""
    violation: str | None = None
    """A short example of what the answer that speaks against an output looks like."""
    weight: Weight = 1.0
    rubric: str | None = None
    reference: str | None = None
    sees: Sees = Field(default="all", exclude_if=lambda sees: sees == "all")
    """``output`` for a question that is about the output alone: a small model mixes up what it was made from with it.

    ``quote`` for one that is answered with words of the output, or with none: P(yes) is 1 - P(none). The judge then
    looks for what is asked, where a small one says of a whole text what it is like. The evaluator's prompt is not
    shown.

    ``last`` for one about the last reply of an output that is a conversation; a plain output is its last reply.
    ``call`` for one about the calls of tools, with their arguments and results, and nothing else; an output without
    any is told as "No tool was called."
    """

    @property
    def shown(self) -> Sees:
        """What it sees where a score, a comparison or a reason is asked for in place of a quote: the output alone."""
        return "output" if self.sees == "quote" else self.sees

    @model_validator(mode="before")
    @classmethod
    def _criterion_is_dimension(cls, data: Any) -> Any:
        if not isinstance(data, dict) or "criterion" not in data:
            return data
        if "dimension" in data:
            raise ValueError("criterion is another name of dimension; give one of them")
        return {"dimension" if name == "criterion" else name: value for name, value in data.items()}

    @property
    def criterion(self) -> str:
        """The criterion for an output, in words: the text and, where yes is no praise, that it is none."""
        return marked(self.text, self.good)


class Checklist(BaseModel):
    """Questions about one task, grouped by their dimension."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    task: str = ""
    questions: tuple[Question, ...] = Field(min_length=1)
    section_weights: dict[str, dict[str, Weight]] = Field(default_factory=dict)
    """By section (or data set): the weight of every question there, in place of the questions' own."""
    answers: AnswerPair | None = Field(default=None, exclude_if=lambda answers: answers is None)
    """The words for yes and no that the judge is told to answer with; None: yes and no."""

    @field_validator("questions")
    @classmethod
    def _ids_are_unique(cls, questions: tuple[Question, ...]) -> tuple[Question, ...]:
        seen: set[str] = set()
        for number, question in enumerate(questions, 1):
            if question.id in seen:
                raise ValueError(f"the id '{question.id}' is used again by question {number}")
            seen.add(question.id)
        return questions

    @field_validator("questions", mode="before")
    @classmethod
    def _plain_questions(cls, questions: Any) -> Any:
        """Questions that are texts alone get ids made from their words."""
        if isinstance(questions, dict) and all(isinstance(each, str) for each in questions.values()):
            return [{"id": name, "text": text} for name, text in questions.items()]
        if not isinstance(questions, (list, tuple)) or not any(isinstance(each, str) for each in questions):
            return questions
        taken = {each.get("id") if isinstance(each, dict) else getattr(each, "id", None) for each in questions}
        found = []
        for each in questions:
            if isinstance(each, str) and each.strip():
                name = words = "_".join(re.findall(r"\w+", each.casefold())[:ID_WORDS]) or "question"
                number = 1
                while name in taken:
                    number += 1
                    name = f"{words}_{number}"
                taken.add(name)
                found.append({"id": name, "text": each})
            else:
                found.append(each)
        return found

    @model_validator(mode="after")
    def _some_weight(self) -> Checklist:
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
    def dimensions(self) -> list[str]:
        """Dimensions in order of first appearance."""
        return list(dict.fromkeys(question.dimension for question in self.questions))

    @property
    def faults(self) -> dict[str, Question]:
        """The questions, by id, to which yes speaks against the output."""
        return {question.id: question for question in self.questions if question.is_fault}

    def question(self, question_id: str) -> Question:
        """The question with this id.

        Raises:
            KeyError: There is none.
        """
        for question in self.questions:
            if question.id == question_id:
                return question
        raise KeyError(f"the checklist has no question '{question_id}'")

    def section_of(self, metadata: Mapping[str, Any]) -> str | None:
        """The section whose weights belong to an example, by its ``section`` and ``dataset``; None for the rest.

        The weights of a section of the example's data set (``DATASET/SECTION``) come first, then those of the section,
        then those of the data set.
        """
        if not self.section_weights:
            return None
        section, dataset = metadata.get("section"), metadata.get("dataset")
        both = [] if section is None or dataset is None else [f"{dataset}/{section}"]
        names = [*both, *(str(name) for name in (section, dataset) if name is not None)]
        return next((name for name in names if name in self.section_weights), None)

    def weights(self, section: str | None = None) -> dict[str, float]:
        """The weight of every question, in a section or, for None, elsewhere."""
        if section is not None:
            return self.section_weights[section]
        return {question.id: question.weight for question in self.questions}


_BREAK = re.compile(r"[\n\r\x85\u2028\u2029]")
_BLOCK = re.compile(r"\S(?:[^\r\x85\u2028\u2029]*[^\s])?\n?")
"""Texts that look well as a YAML block; others have line breaks that YAML changes unless they are escaped."""


def load_checklist(path: str | Path | Checklist) -> Checklist:
    """Read a checklist from YAML or JSON, or one of the ready ones by its name; one that is a checklist already stays.

    A name that is no file is looked for among the ready checklists (``READY``).

    Raises:
        InputError: Names the file and the question or line at fault.
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
    return asking(parse_checklist(text, str(path)), str(path))


def asking(checklist: Checklist, name: str) -> Checklist:
    """The checklist, where each of its questions asks something; ``name`` is used in errors.

    Raises:
        InputError: A question is blank.
    """
    for number, question in enumerate(checklist.questions, 1):
        if not question.text.strip():
            raise InputError(
                f"{name}: entry {number} of 'questions': field 'text': a question is needed, not a blank text; write "
                "it, or "
                f"take '{question.id}' out."
            )
    return checklist


def is_ready(path: str | Path) -> bool:
    """Whether this is the name of a ready checklist and of no file."""
    return str(path) in READY and not Path(path).is_file()


def parse_checklist(text: str, name: str) -> Checklist:
    """Read a checklist from the text of a YAML or JSON file; ``name`` is used in errors.

    Raises:
        InputError: The text is no checklist.
    """
    data = _parse_json(text, name) or read_texts(text, name, "checklist")
    if isinstance(data, list) and data:
        data = {"questions": data}
    if not isinstance(data, dict):
        raise InputError(f"{name}: a checklist has the keys 'task' and 'questions'; this file has neither.")
    return validate_row(Checklist, data, name)


def _parse_json(text: str, name: str) -> Any:
    """Read a JSON file; YAML reads most of JSON, but no tabs."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        """An object; a key that stands in it twice is an error, as in YAML, because the first value would be lost."""
        found = dict(pairs)
        if len(found) < len(pairs):
            keys = [key for key, _ in pairs]
            twice = next(key for key in keys if keys.count(key) > 1)
            raise InputError(f"{name}: '{twice}' stands twice in one object.")
        return found

    try:
        return json.loads(text, object_pairs_hook=once)
    except (ValueError, RecursionError):
        return None


def dump_checklist(checklist: Checklist) -> str:
    """Write a checklist as YAML with one block a question, defaults left out."""
    answers = {} if checklist.answers is None else {"answers": list(checklist.answers)}
    blocks = [dump_texts({"task": checklist.task, **answers}), "questions:\n"]
    for question in checklist.questions:
        fields = question.model_dump(exclude_none=True)
        if fields["weight"] == 1:
            del fields["weight"]
        if question.is_fault:
            fields = {"id": fields.pop("id"), "text": fields.pop("text"), "good": _Bare(fields.pop("good")), **fields}
        blocks.append(indent(dump_texts([fields]), "  ", lambda line: line != "\n") + "\n")
    if checklist.section_weights:
        blocks.append(dump_texts({"section_weights": checklist.section_weights}))
    return blocks[0] + "\n" + "".join(blocks[1:])


def dump_texts(value: Any) -> str:
    """YAML in the order given, with texts of several lines as blocks; :func:`~.yaml_files.read_texts` reads it."""
    return yaml.dump(value, Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=math.inf)


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as blocks."""

    def represent_str(self, data: str) -> yaml.ScalarNode:
        """Plain where that is safe, quoted where not."""
        style = None if not _BREAK.search(data) else "|" if _BLOCK.fullmatch(data) else '"'
        return self.represent_scalar("tag:yaml.org,2002:str", data, style=style)


class _Bare(str):
    """A word that is written without quotes, although YAML takes it for true or false: here all scalars are text."""

    __slots__ = ()


def _represent_bare(dumper: yaml.SafeDumper, word: _Bare) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:bool", str(word))


_Dumper.add_representer(str, _Dumper.represent_str)
_Dumper.add_representer(_Bare, _represent_bare)
