"""Questions that a person worded on the page Judge: the run's judge answers them, and they are kept beside the run.

Once the judge has answered a question on development, ``asked/`` in the run's directory keeps the question and its
verdicts. Verdicts on validation are bought in a separate step. If too few answers come, only the store keeps them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from ..evaluation.evaluate import EvaluationJob
from ..evaluation.kept_judge import KeptJudge, QuestionOrigin
from ..evaluation.options import LEAST_COVERAGE
from ..evaluation.scoring import coverage, coverage_line
from ..memory.run_directory import RunDirectory
from ..prompts.checklist import Checklist, Question
from ..prompts.criteria.question import GoodAnswer
from ..prompts.errors import AskanceError, InputError
from ..prompts.examples import Example
from ..prompts.rows import validate_row
from ..prompts.tables import read_rows
from ..prompts.text_files import write_whole
from ..prompts.verdicts import Verdict, dump_verdicts, read_verdicts
from .found_runs import saving

Split = Literal["development", "validation"]
ASKED_FOLDER = "asked"
MOST_LETTERS = 2_000
RETRIES = 2
"""Further attempts after a failed call. Fewer than in a run, because a person waits for the answer."""
NO_EXAMPLES = (
    "This judge is here without a run, so there are no examples: nothing is measured, and nothing can be asked."
)


class AskedQuestion(BaseModel):
    """A question that a person worded, as its file keeps it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    number: int = Field(ge=1)
    """Number in the names of the question's files."""
    question: Question
    instead_of: str | None = None
    """Id of the question that this one rewords; None for an additional question."""
    before: str | None = None
    """Text of the reworded question."""
    model: str
    prompt: str
    """Hash of the prompt that the question was asked with. Its verdicts do not count for another prompt."""
    by: str
    time: str

    @property
    def origin(self) -> QuestionOrigin:
        """Origin of the question, for ``judge.yaml``."""
        row = {"from": "reworded", "text": self.before} if self.instead_of else {"from": "added"}
        return QuestionOrigin.model_validate(row)

    @property
    def said(self) -> str:
        """The change of the judge in words, for its history."""
        if self.instead_of:
            return f"worded '{self.instead_of}' anew as '{self.question.id}': {self.question.text}"
        return f"added '{self.question.id}': {self.question.text}"


class NewWording(BaseModel):
    """A question as a person words it."""

    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)

    text: str = Field(min_length=1, max_length=MOST_LETTERS)
    instead_of: str | None = None
    dimension: str | None = None
    """Dimension of an additional question; a reworded question keeps its own."""
    good: GoodAnswer = "yes"


def asked_questions(run: Path) -> list[AskedQuestion]:
    """Read the questions that people worded for a run, in order of number. Raises InputError if a file is damaged."""
    files = sorted((run / ASKED_FOLDER).glob("[0-9]*-question.jsonl"), key=lambda file: int(file.name.split("-")[0]))
    return [validate_row(AskedQuestion, row, str(file)) for file in files for _, row in read_rows(file)]


def asked_of(judge: KeptJudge, asked: Sequence[AskedQuestion]) -> list[AskedQuestion]:
    """Select the questions that this judge's model was asked with its prompt and that are not in its checklist."""
    ids = {each.id for each in judge.checklist.questions}
    return [
        each
        for each in asked
        if (each.model, each.prompt) == (judge.model, judge.prompt.hash) and each.question.id not in ids
    ]


def asked_verdicts(run: Path, judge: KeptJudge) -> Iterator[Verdict]:
    """Read a judge's verdicts on the questions that people worded."""
    for each in asked_questions(run):
        if (each.model, each.prompt) == (judge.model, judge.prompt.hash):
            for file in sorted((run / ASKED_FOLDER).glob(f"{each.number}-*.jsonl")):
                if not file.name.endswith("-question.jsonl"):
                    yield from read_verdicts(file)


def cannot_ask(judge: KeptJudge) -> str | None:
    """Say why a judge cannot be asked a further question; None if it can."""
    if judge.settings.get("reads") is not None:
        return "This judge answers in its own words, so no question can be asked of it."
    if judge.calibration is not None:
        return "The judge's calibration was fitted for its own questions, so no other one can be asked."
    return None


def worded(judge: KeptJudge, wording: NewWording, taken: Collection[str]) -> Question:
    """Make a question of a wording, with a new id. Raises InputError if this judge cannot ask the question."""
    known = {each.id: each for each in judge.checklist.asked}
    if why := cannot_ask(judge):
        raise InputError(why)
    if wording.instead_of is not None:
        if (before := known.get(wording.instead_of)) is None:
            raise InputError(f"The judge asks no question '{wording.instead_of}' that could be worded anew.")
        if before.text.strip() == wording.text:
            raise InputError("The wording is the same as before.")
        name, question = before.id, before.model_copy(update={"text": wording.text})
    else:
        if wording.dimension is not None and wording.dimension not in judge.checklist.dimensions:
            raise InputError(f"The judge's questions are about {', '.join(judge.checklist.dimensions)}.")
        made = Checklist.model_validate({"questions": [wording.text]}).asked[0]
        dimension = wording.dimension or judge.checklist.dimensions[0]
        name, question = made.id, made.model_copy(update={"dimension": dimension, "good": wording.good})
    number, found = 1, name
    while found in taken or found in known:
        number += 1
        found = f"{name}_{number}"
    return question.model_copy(update={"id": found})


def asking_job(
    judge: KeptJudge, run: Path, questions: Sequence[Question], examples: Sequence[Example]
) -> EvaluationJob:
    """Make the job that asks the questions, with the run's model, prompt, settings, address and stored answers. If the
    judge gets its questions together, its own questions are asked again, too; their answers stay as they were."""
    alone = judge.settings.get("mode", "each") == "each"
    asked = [*(() if alone else judge.checklist.questions), *questions]
    asking_judge = replace(
        judge,
        checklist=judge.checklist.model_copy(update={"questions": asked}),
        threshold=None,
        steps=None,
        figures=None,
        decision=None,
        edited=False,
    )
    address = RunDirectory(run).read_config()["config"].get("api_base")
    return asking_judge.prepare(examples, None, {"retries": RETRIES} | ({"api_base": address} if address else {}))


def ask(judge: KeptJudge, run: Path, questions: Sequence[Question], examples: Sequence[Example]) -> list[Verdict]:
    """Return the judge's verdicts on the questions. Raises InputError if the model or a setting is wrong, and
    AskanceError if the model cannot be reached or too few verdicts came; the store keeps the answers that came."""
    found = asking_job(judge, run, questions, examples).run(progress=False)
    ids = {each.id for each in questions}
    verdicts = [each for each in found.verdicts if each.question in ids]
    seen, least = coverage(verdicts), RunDirectory(run).read_config()["config"].get("min_coverage", LEAST_COVERAGE)
    if seen.share < least or not seen.answered:
        why = next((each.error for each in verdicts if each.error), "no reason was given")
        raise AskanceError(
            f"Too few answers came: {coverage_line(seen.to_dict())}; {why}. Nothing is shown of them. Ask again: what "
            "came is not paid twice."
        )
    return verdicts


def keep_question(
    run: Path, judge: KeptJudge, question: Question, wording: NewWording, verdicts: Sequence[Verdict], by: str
) -> None:
    """Keep a question with its verdicts on development."""
    before = {each.id: each.text for each in judge.checklist.questions}
    folder = run / ASKED_FOLDER
    with saving(folder, ".lock"):
        number = 1 + max((each.number for each in asked_questions(run)), default=0)
        record = AskedQuestion(
            number=number,
            question=question,
            instead_of=wording.instead_of,
            before=before.get(wording.instead_of or ""),
            model=judge.model,
            prompt=judge.prompt.hash,
            by=by,
            time=datetime.now(UTC).isoformat(timespec="seconds"),
        )
        keep_verdicts(run, record, "development", verdicts)
        # The question's own file comes last, so that a question is there with its verdicts or not at all.
        write_whole(folder / f"{number}-question.jsonl", record.model_dump_json() + "\n")


def keep_verdicts(run: Path, asked: AskedQuestion, split: Split, verdicts: Sequence[Verdict]) -> None:
    """Keep the verdicts on one question. Raises AskanceError if they cannot be written."""
    mine = [each for each in verdicts if each.question == asked.question.id]
    write_whole(run / ASKED_FOLDER / f"{asked.number}-{split}.jsonl", dump_verdicts(mine))
