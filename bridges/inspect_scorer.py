"""A checklist as a scorer for Inspect AI: the judge's score, the questions that failed, every verdict as metadata."""

from __future__ import annotations

import atexit
import importlib
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ..agents.evaluator import Evaluator
from ..evaluation.judge_file import JudgeParts, judge_of_parts
from ..evaluation.kept_judge import KeptJudge
from ..evaluation.options import JudgeOptions, Where, parse_options
from ..evaluation.regression import failing_questions, missing_verdict, speak_against
from ..evaluation.scoring import score_examples
from ..models.session import BackgroundLoop, background_session
from ..prompts.checklist import Checklist, load_checklist
from ..prompts.default import prompt_showing
from ..prompts.errors import InputError, import_optional
from ..prompts.examples import Example
from ..prompts.prompt import Prompt, load_prompt

if TYPE_CHECKING:
    from ..models.base import Model
    from ..prompts.verdicts import Verdict


inspect_scorer: Any = import_optional("inspect_ai.scorer", "inspect", "inspect-ai")


class ScorerOptions(JudgeOptions, Where):
    """Settings of a scorer."""


@inspect_scorer.scorer(metrics=[inspect_scorer.mean(), inspect_scorer.stderr()])  # type: ignore[untyped-decorator]
def checklist_scorer(
    checklist: str | Path | Checklist | None = None,
    model: str | Model | None = None,
    *,
    prompt: str | Path | Prompt | None = None,
    judge: str | Path | KeptJudge | None = None,
    reference: bool = False,
    context: str | None = None,
    on_missing: Literal["error", "unscored"] = "error",
    **options: Any,
) -> Any:
    """Score what a model under test wrote with a checklist, in [0, 1].

    The judge is asked by askance, not by Inspect: its answers are kept, capped and repeated like all others.

    Args:
        checklist: File or checklist; only with a file can Inspect make the scorer again from a log.
        model: The judge, as ``provider/model`` of askance.
        prompt: The judge's prompt; askance's own neutral one by default.
        judge: A run's directory or a ``judge.yaml``, in place of all three; ``model`` may name another model.
        reference: Whether the judge is shown the sample's target as a reference.
        context: Field of the sample's metadata that the judge is shown as context.
        on_missing: What becomes of a sample with a missing verdict: an error, which ``fail_on_error`` and
            ``retry_on_error`` of Inspect decide about, or an unscored sample, which no metric counts. Never a score.
        options: Settings of :class:`~askance.evaluation.options.JudgeOptions`, e.g. ``api_base`` or ``max_calls``, and
            of :class:`~askance.evaluation.options.Where` (``cache``, ``no_cache``).

    Raises:
        InputError: The checklist, the prompt or a setting cannot be used.
    """
    used = judge_of_parts(judge, checklist, model, prompt)
    settings = parse_options(ScorerOptions, used.with_options(options))
    if on_missing not in ("error", "unscored"):
        raise InputError(f"on_missing is '{on_missing}'; it can be error or unscored.")
    questions = load_checklist(used.checklist)
    shown = ["input", *(["reference"] if reference else []), *(["context"] if context is not None else [])]
    text = prompt_showing(shown) if used.prompt is None else load_prompt(used.prompt)
    asking = _Judge(used, text, questions, settings)

    async def score(state: Any, target: Any) -> Any:
        example = _example(state, target, reference, context)
        verdicts, reasons = await asking.judge(example)
        found = score_examples([example], questions, verdicts, soft=settings.soft)[0]
        metadata = {"verdicts": [each.to_dict() for each in verdicts], "dimensions": dict(found.dimensions)}
        if found.overall is None:
            error = missing_verdict(questions, verdicts)
            if on_missing == "error":
                raise error
            return inspect_scorer.Score.unscored(reason="grader_failed", explanation=str(error), metadata=metadata)
        failed = failing_questions(questions, verdicts, reasons)
        said = "\n".join(f"- {each}" for each in failed)
        no, yes = ("against it", "in its favour") if questions.faults else ("no", "yes")
        explanation = f"Answered {no}:\n{said}" if failed else f"Every question was answered {yes}."
        answer = state.output.completion
        return inspect_scorer.Score(value=found.overall, answer=answer, explanation=explanation, metadata=metadata)

    return score


class _Judge:
    """Asks the judge on an event loop of askance's own, whichever Inspect uses; opened with the first sample."""

    def __init__(self, used: JudgeParts, prompt: Prompt, checklist: Checklist, settings: ScorerOptions) -> None:
        self._used = used
        self._prompt = prompt
        self._checklist = checklist
        self._settings = settings
        self._loop: BackgroundLoop | None = None
        self._evaluator: Evaluator | None = None

    async def judge(self, example: Example) -> tuple[list[Verdict], dict[tuple[str, str], str]]:
        """The verdicts on one output, and the reasons of those that speak against it."""
        anyio: Any = importlib.import_module("anyio")  # comes with Inspect, and serves both of its backends
        if self._evaluator is None:
            self._open()
        assert self._loop is not None
        judged: tuple[list[Verdict], dict[tuple[str, str], str]]
        judged = await anyio.to_thread.run_sync(self._loop.run, self._ask(example))
        return judged

    async def _ask(self, example: Example) -> tuple[list[Verdict], dict[tuple[str, str], str]]:
        assert self._evaluator is not None
        verdicts = await self._evaluator.judge([example])
        if self._used.calibration is not None:
            verdicts = self._used.calibration.apply(verdicts)
        if self._settings.explain == "never" or any(each.answer is None for each in verdicts):
            return verdicts, {}
        against = speak_against(self._checklist, verdicts)
        return verdicts, await self._evaluator.explain(against, [example])

    def _open(self) -> None:
        """Open store, gateway and loop; all are closed when Python ends.

        Raises:
            InputError: The model or the store cannot be used.
        """
        with ExitStack() as stack:
            store = stack.enter_context(self._settings.store(beside=self._used.answers))
            self._loop, models, gateway = stack.enter_context(background_session(self._settings, store))
            asked, how = models.get(self._used.model), self._settings.judging
            self._evaluator = Evaluator(gateway, asked, self._prompt, self._checklist, how)
            opened = stack.pop_all()

        def close() -> None:
            with suppress(RuntimeError):  # Python is ending: there may be no loop left to close things on
                opened.__exit__(SystemExit, SystemExit(), None)  # an error cancels the calls under way

        atexit.register(close)


def _example(state: Any, target: Any, reference: bool, context: str | None) -> Example:
    """What the judge is shown of a sample.

    Raises:
        InputError: The sample's metadata has no such field.
    """
    fields: dict[str, Any] = {"id": str(state.sample_id), "input": state.input_text, "output": state.output.completion}
    if reference:
        fields["reference"] = target.text
    if context is not None:
        if context not in state.metadata:
            raise InputError(f"Sample {state.sample_id}: its metadata has no field '{context}' to show as context.")
        fields["context"] = str(state.metadata[context])
    return Example(**fields)
