"""A judge that is asked about one output at a time: by a service or another tool, from any thread or event loop."""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from collections.abc import Coroutine, Iterable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakSet, finalize

from ..memory.verdict_store import SharedStore, VerdictStore
from ..models.event_loops import BackgroundLoop
from ..models.session import background_session
from ..prompts.errors import AskanceError, CoverageError, InputError
from ..prompts.examples import Example, load_examples
from .options import EvaluateOptions
from .scoring import Coverage, ExampleScore, coverage, score_examples

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..agents.evaluator import Evaluator
    from ..models.base import Answer
    from ..prompts.checklist import Checklist
    from ..prompts.verdicts import Verdict
    from .calibration import Calibration
    from .evaluate import EvaluationJob
    from .pass_fail import PassThreshold

KEPT = 10_000
"""Answers that a judge without a store keeps in memory, some 3 MB."""
_OF_MANY = ("own_questions", "stop_within", "pass_mark", "by", "fail_under", "scale", "limit", "min_coverage")
"""Settings that only make sense for a whole data set."""


@dataclass(frozen=True, slots=True)
class Judged(ExampleScore):
    """A judge's score of one output, in [0, 1], with the verdicts that it is made of.

    ``overall`` is None where a verdict is missing, and so is the score of that verdict's dimension: part of a checklist
    is no score.
    """

    verdicts: tuple[Verdict, ...]
    """One verdict per question (and replicate), with its explanation if one was bought."""
    passed: bool | None
    """Whether the score reaches the judge's threshold; None without a score, or where the judge has no threshold."""
    against: tuple[str, ...]
    """Questions whose answers speak against the output, each with its reason if there is one."""
    coverage: Coverage
    """Number of verdicts, and how the missing ones failed."""
    missing: str | None
    """Why there is no score; None where there is one."""

    def require_coverage(self) -> Judged:
        """Return this result if it has a score.

        Raises:
            CoverageError: A verdict is missing; says which and why.
        """
        if self.missing is not None:
            raise CoverageError(self.missing)
        return self

    def to_dict(self) -> dict[str, Any]:
        """Return the result, with the names of ``evaluate --json`` and of its verdicts."""
        return {
            "example": self.example,
            "overall": self.overall,
            "dimensions": dict(self.dimensions),
            "pass": self.passed,
            "coverage": self.coverage.to_dict(),
            "missing": self.missing,
            "against": list(self.against),
            "verdicts": [each.to_dict() for each in self.verdicts],
        }


async def judge_one(
    evaluator: Evaluator,
    example: Example,
    *,
    soft: bool,
    calibration: Calibration | None = None,
    threshold: PassThreshold | None = None,
    explained: bool = False,
) -> Judged:
    """Judge one output; with ``explained`` buy the reasons of answers that speak against it.

    Raises:
        AskanceError: A cap was reached, or the endpoint is down or refuses every call.
    """
    checklist = evaluator.checklist
    verdicts: Sequence[Verdict] = await evaluator.judge([example])
    if calibration is not None:
        verdicts = calibration.apply(verdicts)
    seen = coverage(verdicts)
    if explained and seen.answered == seen.asked:
        reasons = await evaluator.explain(speak_against(checklist, verdicts), [example])
        verdicts = [replace(each, explanation=reasons.get(_key(each)) or each.explanation) for each in verdicts]
    score = score_examples([example], checklist, verdicts, soft=soft)[0]
    return Judged(
        score.example,
        score.overall,
        score.dimensions,
        verdicts=tuple(verdicts),
        passed=None if threshold is None else threshold.passes(score),
        against=() if score.overall is None else tuple(failing_questions(checklist, verdicts)),
        coverage=seen,
        missing=_missing(checklist, verdicts) if score.overall is None else None,
    )


def failing_questions(checklist: Checklist, verdicts: Iterable[Verdict]) -> list[str]:
    """Return the text of every question whose answer speaks against the output, once, with the reason if there is one.

    That answer is no, or yes if the question looks for a fault; the text then says so.
    """
    failed: dict[str, str] = {}
    for verdict in speak_against(checklist, verdicts):
        text = checklist.question(verdict.question).criterion
        failed.setdefault(verdict.question, f"{text} {verdict.explanation}" if verdict.explanation else text)
    return list(failed.values())


def speak_against(checklist: Checklist, verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Return the verdicts that speak against their output: no, or yes if the question looks for a fault."""
    faults = checklist.faults
    return [each for each in verdicts if each.answer is (each.question in faults)]


def _key(verdict: Verdict) -> tuple[str, str]:
    return verdict.example, verdict.question


def _missing(checklist: Checklist, verdicts: Iterable[Verdict]) -> str:
    """Name the first missing verdict on an output, and say why it is missing."""
    failed = next(each for each in verdicts if each.status != "ok")
    question = checklist.question(failed.question).text
    return (
        f"{failed.model or 'The check'} gave no verdict on '{question}' ({failed.error or failed.status}), so this output has no "
        "score. Run it again: what was bought is kept, and only what is missing is asked for."
    )


class _RecentAnswers(VerdictStore):
    """Store of the last answers, in this process alone. Answers in a run's store are reused too."""

    def __init__(self, beside: Path | None) -> None:
        super().__init__(":memory:", beside, is_ours=True)
        self._recent: deque[bytes] = deque()

    def put(self, key: bytes, answer: Answer) -> None:
        """Keep an answer, and drop the oldest one if there are too many."""
        super().put(key, answer)
        self._recent.append(key)
        if len(self._recent) > KEPT:
            self.forget([self._recent.popleft()])


class _Opened(NamedTuple):
    """All that is open while a judge is asked."""

    loop: BackgroundLoop
    evaluator: Evaluator
    open: ExitStack


_JUDGES: WeakSet[OpenJudge] = WeakSet()
_LEFT: list[_Opened] = []
"""Open judges that a forked process inherited: loops without their thread, and connections and files of its parent,
which it must neither use nor close."""


class OpenJudge:
    """A judge that many threads and event loops ask about one output at a time; it opens with the first output.

    It is made by :meth:`~askance.evaluation.kept_judge.KeptJudge.open`. A process that is forked asks over connections
    of its own. Answers are remembered, so that equal outputs are not paid twice.
    """

    def __init__(self, job: EvaluationJob, *, keeps: bool) -> None:
        """``job``: the judge, without examples. ``keeps``: keep answers in the store of its settings, and not just the
        last ones in this process. Raises InputError if a setting only makes sense for a whole data set."""
        for name in _OF_MANY:
            if getattr(job.settings, name) != EvaluateOptions.model_fields[name].default:
                raise InputError(f"{name}: this is about a whole data set, and one output is judged at a time.")
        self._job = job
        self._keeps = keeps
        self._lock = threading.Lock()
        self._is_closed = False
        self._opened: _Opened | None = None
        self._end: finalize[..., OpenJudge] | None = None
        _JUDGES.add(self)

    def score(
        self, example: Example | Mapping[str, Any] | None = None, /, *, explained: bool = False, **texts: Any
    ) -> Judged:
        """Judge one output: an example, a mapping, or its texts by name (``input=…, output=…``).

        A failed call raises nothing if other outputs may be judged: the result then has no score, and says why.
        ``explained`` buys the reason of each answer that speaks against the output, in a further call.

        Raises:
            InputError: There is no output, a field is wrong, or model or store cannot be used.
            ModelError: The endpoint is down or refuses every call.
            BudgetExceededError: A cap was reached.
            AskanceError: The judge is closed.
        """
        opened = self._open()
        return opened.loop.run(self._judging(opened.evaluator, example, texts, explained))

    async def ascore(
        self, example: Example | Mapping[str, Any] | None = None, /, *, explained: bool = False, **texts: Any
    ) -> Judged:
        """Like :meth:`score`, for use in an event loop, which is not blocked."""
        opened = self._opened
        if opened is None:
            opened = await asyncio.to_thread(self._open)
        return await opened.loop.wait_for(self._judging(opened.evaluator, example, texts, explained))

    def close(self) -> None:
        """Wait for the calls under way, which are paid for, then close connections and store for good."""
        with self._lock:
            self._is_closed, opened = True, self._opened
            self._opened = None
            if self._end is not None:
                self._end.detach()
        if opened is not None:
            opened.open.close()

    def __enter__(self) -> OpenJudge:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _judging(
        self,
        evaluator: Evaluator,
        example: Example | Mapping[str, Any] | None,
        texts: Mapping[str, Any],
        explained: bool,
    ) -> Coroutine[Any, Any, Judged]:
        """Return the work on one output. It does not refer to this judge, which may be garbage-collected meanwhile."""
        if example is None and not texts:
            raise InputError("There is no output to judge: give an example, or its texts (input=…, output=…).")
        if example is not None and texts:
            raise InputError(f"An example is given, and '{next(iter(texts))}' beside it; give one of the two.")
        settings = self._job.settings
        [read] = load_examples(
            [texts if example is None else example],
            fields=settings.field,
            labels=settings.labels,
            label_scale=settings.label_scale,
            remarks=False,
        )
        return judge_one(
            evaluator,
            read,
            soft=settings.soft,
            calibration=self._job.read_with,
            threshold=self._job.pass_threshold(),
            explained=explained,
        )

    def _open(self) -> _Opened:
        with self._lock:
            if self._is_closed:
                raise AskanceError("This judge is closed; open it again, or ask it before.")
            if self._opened is None:
                self._opened = self._now_open()
                self._end = finalize(self, _let_go, self._opened)
            return self._opened

    def _now_open(self) -> _Opened:
        with ExitStack() as stack:
            store = stack.enter_context(self._store())
            loop, models, gateway = stack.enter_context(background_session(self._job.settings, store))
            return _Opened(loop, self._job.asking(models, gateway), stack.pop_all())

    def _store(self) -> SharedStore:
        settings, answers = self._job.settings, self._job.answers
        if settings.no_cache or not self._keeps:
            return _RecentAnswers(None if settings.no_cache else answers)
        return settings.open_store(beside=answers)

    def _forked(self) -> None:
        """Begin anew in a forked process, whose parent had this judge open."""
        self._lock = threading.Lock()
        if self._end is not None:
            self._end.detach()
        if self._opened is not None:
            _LEFT.append(self._opened)
        self._opened = self._end = None


def _let_go(opened: _Opened) -> None:
    """Close a judge that nobody closed: it was garbage-collected, or Python ends."""
    if opened.loop.is_own_thread:  # where the last reference went: a loop cannot wait for itself
        threading.Thread(target=_let_go, args=(opened,), daemon=True).start()
        return
    with suppress(RuntimeError):  # Python is ending: there may be no loop left to close things on
        opened.open.__exit__(SystemExit, SystemExit(), None)  # an error cancels the calls under way


def _all_forked() -> None:
    for each in list(_JUDGES):
        each._forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_all_forked)
