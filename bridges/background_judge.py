"""A judge that another tool calls with one output at a time, from whatever thread or event loop it has."""

from __future__ import annotations

import atexit
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from threading import Lock

from ..agents.evaluator import Evaluator
from ..evaluation.judge_file import JudgeParts
from ..evaluation.options import JudgeOptions, Where
from ..evaluation.regression import failing_questions, missing_verdict, speak_against
from ..evaluation.scoring import ExampleScore, score_examples
from ..models.event_loops import BackgroundLoop
from ..models.session import background_session
from ..prompts.checklist import Checklist
from ..prompts.errors import CoverageError
from ..prompts.examples import Example
from ..prompts.prompt import Prompt
from ..prompts.verdicts import Verdict


class BackgroundOptions(JudgeOptions, Where):
    """Settings of a judge that another tool calls."""


@dataclass(frozen=True)
class Judged:
    """The judge's verdicts on one output."""

    verdicts: tuple[Verdict, ...]
    score: ExampleScore
    failed: tuple[str, ...]
    """The questions that speak against the output, each with its reason where there is one."""
    missing: CoverageError | None
    """The error that names a missing verdict; there is no score then."""


class BackgroundJudge:
    """Asks a judge on an event loop of askance's own, which is opened with the first output."""

    def __init__(self, used: JudgeParts, prompt: Prompt, checklist: Checklist, settings: BackgroundOptions) -> None:
        self._used = used
        self._prompt = prompt
        self._checklist = checklist
        self._settings = settings
        self._opening = Lock()
        self._opened: tuple[BackgroundLoop, Evaluator] | None = None

    def judge(self, example: Example) -> Judged:
        """Judge one output, from any thread but that of the judge's own loop; several threads may ask at once.
        Raises InputError where the model or the store cannot be used, and AskanceError where a cap was reached, or the
        endpoint is down or refuses every call."""
        with self._opening:
            loop, evaluator = self._opened or self._open()
        verdicts, reasons = loop.run(self._ask(evaluator, example))
        score = score_examples([example], self._checklist, verdicts, soft=self._settings.soft)[0]
        missing = missing_verdict(self._checklist, verdicts) if score.overall is None else None
        failed = () if missing else tuple(failing_questions(self._checklist, verdicts, reasons))
        return Judged(tuple(verdicts), score, failed, missing)

    async def _ask(
        self, evaluator: Evaluator, example: Example
    ) -> tuple[Sequence[Verdict], dict[tuple[str, str], str]]:
        verdicts: Sequence[Verdict] = await evaluator.judge([example])
        if self._used.calibration is not None:
            verdicts = self._used.calibration.apply(verdicts)
        if self._settings.explain == "never" or any(each.answer is None for each in verdicts):
            return verdicts, {}
        against = speak_against(self._checklist, verdicts)
        return verdicts, await evaluator.explain(against, [example])

    def _open(self) -> tuple[BackgroundLoop, Evaluator]:
        """Open store, gateway and loop; all are closed when Python ends."""
        with ExitStack() as stack:
            store = stack.enter_context(self._settings.open_store(beside=self._used.answers))
            loop, models, gateway = stack.enter_context(background_session(self._settings, store))
            asked, how = models.get(self._used.model), self._settings.judging
            self._opened = loop, Evaluator(gateway, asked, self._prompt, self._checklist, how)
            opened = stack.pop_all()

        def close() -> None:
            with suppress(RuntimeError):  # Python is ending: there may be no loop left to close things on
                opened.__exit__(SystemExit, SystemExit(), None)  # an error cancels the calls under way

        atexit.register(close)
        return self._opened
