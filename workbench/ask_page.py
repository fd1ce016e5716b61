"""Questions asked from the page Judge: what it takes, then on development, and on validation by a second click."""

from __future__ import annotations

from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from aiohttp import web
from pydantic import BaseModel, ConfigDict

from ..agents.buying import Estimate
from ..labelling.local_server import add_act
from ..memory.run_directory import JUDGE_FILE
from ..prompts.checklist import Question
from ..prompts.errors import InputError
from .asked_questions import (
    NO_EXAMPLES,
    AskedQuestion,
    NewWording,
    ask,
    asked_questions,
    asking_job,
    keep_question,
    keep_verdicts,
    worded,
)
from .saved_judges import ValidationLooks

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..evaluation.kept_judge import KeptJudge
    from .judge_bench import JudgeBench, Split

    Edited = tuple[JudgeBench, Path, KeptJudge, tuple[str, ...]]


class AskedWording(BaseModel):
    """A message of the page: a question for a judge."""

    model_config = ConfigDict(extra="forbid")

    run: str
    file: str = JUDGE_FILE
    wording: NewWording


class AskPage:
    """Asks a judge's model further questions; one at a time, as two windows would pay twice."""

    def __init__(
        self, judge_of: Callable[[str, str], tuple[JudgeBench, Path]], edited: Callable[[Any], Edited], by: str
    ) -> None:
        """``judge_of`` gives a judge by its run and file, ``edited`` one with a person's edits."""
        self._judge_of, self._edited, self._by, self._lock = judge_of, edited, by, Lock()

    def estimate(self, asked: AskedWording) -> dict[str, Any]:
        """What asking the question on development takes; nothing is bought."""
        bench, folder, question = self._worded(asked)
        return _estimated(bench, folder, [question], "development")

    def ask(self, asked: AskedWording) -> dict[str, Any]:
        """Ask it there, and keep it with its verdicts."""
        with self._lock:
            bench, folder, question = self._worded(asked)
            verdicts = ask(bench.judge, folder, [question], bench.parts["development"].examples)
            keep_question(folder, bench.judge, question, asked.wording, verdicts, self._by)
        return {"id": question.id, "instead_of": asked.wording.instead_of}

    def estimate_validation(self, asked: BaseModel) -> dict[str, Any]:
        """What asking on validation takes, of the questions that are on and were not asked there."""
        bench, folder, waiting, _ = self._waiting(asked)
        return _estimated(bench, folder, [each.question for each in waiting], "validation")

    def ask_validation(self, asked: BaseModel) -> dict[str, Any]:
        """Ask them there; that is a look at validation, which is counted before anything is shown."""
        with self._lock:
            bench, folder, waiting, (changed, what) = self._waiting(asked)
            questions = [each.question for each in waiting]
            verdicts = ask(bench.judge, folder, questions, bench.parts["validation"].examples)
            look = ValidationLooks(folder).add(changed.hash, what) if what else 0
            for each in waiting:
                keep_verdicts(folder, each, "validation", verdicts)
        return {"look": look}

    def _worded(self, asked: AskedWording) -> tuple[JudgeBench, Path, Question]:
        bench, folder = self._judge_of(asked.run, asked.file)
        if not bench.parts["development"].examples:
            raise InputError(NO_EXAMPLES)
        taken = {each.question.id for each in asked_questions(folder)}
        return bench, folder, worded(bench.judge, asked.wording, taken)

    def _waiting(
        self, asked: BaseModel
    ) -> tuple[JudgeBench, Path, list[AskedQuestion], tuple[KeptJudge, tuple[str, ...]]]:
        bench, folder, changed, what = self._edited(asked)
        ids = bench.unasked(changed, "validation")
        waiting = [each for each in asked_questions(folder) if each.question.id in ids]
        if not waiting:
            raise InputError("Every question that is on was asked on validation.")
        return bench, folder, waiting, (changed, what)


def _estimated(bench: JudgeBench, folder: Path, questions: list[Question], split: Split) -> dict[str, Any]:
    found = asking_job(bench.judge, folder, questions, bench.parts[split].examples).estimate()
    return {"said": _said(found), "split": split, "ids": [each.id for each in questions]}


def _said(found: Estimate) -> str:
    there = f"; {found.stored:,} answers are there already" if found.stored else ""
    return f"{found.calls:,} calls ({found.size}){there}"


def add_ask(app: web.Application, page: AskPage, judge: type[BaseModel]) -> None:
    """Answer to the page; ``judge`` is the record of its messages about an edited judge."""
    add_act(app, "ask/estimate", AskedWording, page.estimate)
    add_act(app, "ask/development", AskedWording, page.ask)
    add_act(app, "ask/validation-estimate", judge, page.estimate_validation)
    add_act(app, "ask/validation", judge, page.ask_validation)
