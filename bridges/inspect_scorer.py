"""A checklist as a scorer for Inspect AI: the judge's score, the questions that failed, every verdict as metadata."""

from __future__ import annotations

import importlib
from functools import partial
from pathlib import Path
from typing import Any, Literal

from ..evaluation.judge_file import judge_of_parts
from ..evaluation.kept_judge import KeptJudge
from ..evaluation.open_judge import Judged, OpenJudge
from ..models.named import ModelLike, named_models
from ..prompts.checklist import Checklist
from ..prompts.errors import CoverageError, InputError, import_optional
from ..prompts.examples import Example
from ..prompts.prompt import Prompt
from .export_adapters import turns_of

inspect_scorer: Any = import_optional("inspect_ai.scorer", "inspect", "inspect-ai")


@inspect_scorer.scorer(metrics=[inspect_scorer.mean(), inspect_scorer.stderr()])  # type: ignore[untyped-decorator]
def checklist_scorer(
    checklist: str | Path | Checklist | None = None,
    model: ModelLike | None = None,
    *,
    prompt: str | Path | Prompt | None = None,
    judge: str | Path | KeptJudge | None = None,
    reference: bool = False,
    context: str | None = None,
    on_missing: Literal["error", "unscored"] = "error",
    **options: Any,
) -> Any:
    """Score the outputs of a model under test with a checklist, in [0, 1].

    askance asks the judge, not Inspect. The answers are stored, capped and repeated like all others.

    Args:
        checklist: File or checklist; Inspect can rebuild the scorer from a log only with a file.
        model: The judge, as ``provider/model`` of askance.
        prompt: The judge's prompt; default: askance's own neutral prompt.
        judge: A run's directory or a ``judge.yaml``, in place of all three; ``model`` may name another model.
        reference: Whether the judge is shown the sample's target as a reference.
        context: Field of the sample's metadata that the judge is shown as context.
        on_missing: Treatment of a sample without an output, or with a missing verdict; it never gets a score.
            ``error`` raises an error, for which Inspect's ``fail_on_error`` and ``retry_on_error`` hold. ``unscored``
            leaves the sample unscored, so that no metric counts it.
        options: Settings of :class:`~askance.evaluation.options.EvaluateOptions` that also apply to a single sample,
            e.g. ``api_base``, ``call_budget``, ``store`` or ``no_cache``.

    Raises:
        InputError: The checklist, the prompt or a setting cannot be used.
    """
    asked, settings = named_models(options, model)
    used = judge_of_parts(judge, checklist, asked, prompt)
    if on_missing not in ("error", "unscored"):
        raise InputError(f"on_missing is '{on_missing}'; it can be error or unscored.")
    shown = ["input", *(["reference"] if reference else []), *(["context"] if context is not None else [])]
    job = used.job(settings, shown)
    whole = any(question.sees in ("last", "call") for question in job.checklist.questions)
    ask = partial(OpenJudge(job, keeps=True).score, explained=job.settings.explain != "never")

    async def score(state: Any, target: Any) -> Any:
        if not (state.output.choices or state.output.completion):  # a limit came before the model's first reply
            nothing = CoverageError(f"Sample {state.sample_id}: there is no output, so it has no score.")
            if on_missing == "error":
                raise nothing
            return inspect_scorer.Score.unscored(reason="no_response", explanation=str(nothing))
        example = _example(state, target, reference, context, whole=whole)
        anyio: Any = importlib.import_module("anyio")  # comes with Inspect, and serves both of its backends
        judged: Judged = await anyio.to_thread.run_sync(ask, example)
        metadata = {
            "verdicts": [verdict.to_dict() for verdict in judged.verdicts],
            "dimensions": dict(judged.dimensions),
        }
        if judged.missing is not None:
            if on_missing == "error":
                judged.require_coverage()
            return inspect_scorer.Score.unscored(reason="grader_failed", explanation=judged.missing, metadata=metadata)
        said = "\n".join(f"- {statement}" for statement in judged.against)
        no, yes = ("against it", "in its favour") if job.checklist.faults else ("no", "yes")
        explanation = f"Answered {no}:\n{said}" if judged.against else f"Every question was answered {yes}."
        answer = state.output.completion
        return inspect_scorer.Score(value=judged.overall, answer=answer, explanation=explanation, metadata=metadata)

    return score


def _example(state: Any, target: Any, reference: bool, context: str | None, *, whole: bool) -> Example:
    """Return the texts of a sample for the judge; the output is the ``whole`` conversation, or the last reply."""
    output = turns_of(state) if whole else state.output.completion
    fields: dict[str, Any] = {"id": str(state.sample_id), "input": state.input_text, "output": output}
    if reference:
        fields["reference"] = target.text
    if context is not None:
        if context not in state.metadata:
            raise InputError(f"Sample {state.sample_id}: its metadata has no field '{context}' to show as context.")
        fields["context"] = str(state.metadata[context])
    return Example(**fields)
