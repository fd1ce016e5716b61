"""A checklist as a metric for DSPy programs: the judge's score, and the questions that failed as feedback.

:func:`open_gateway` gives DSPy's programs and metrics one store, with common caps and one ledger.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, TypedDict, Unpack

from ..agents.dspy.lm import GatewayLM, Stopped, dspy
from ..agents.evaluator import Evaluator
from ..agents.judging import Judging
from ..evaluation.calibration import Calibration
from ..evaluation.judge_file import judge_of_parts
from ..evaluation.kept_judge import KeptJudge
from ..evaluation.open_judge import Judged, judge_one
from ..evaluation.options import GatewayOptions
from ..models.base import Model
from ..models.budget import Budget
from ..models.event_loops import BackgroundLoop
from ..models.gateway import Gateway
from ..models.named import ModelLike
from ..models.resolve import Models
from ..models.session import background_session
from ..prompts.checklist import Checklist
from ..prompts.errors import AskanceError, InputError, did_you_mean
from ..prompts.examples import Example
from ..prompts.prompt import Prompt
from ..settings import parse_options


@dataclass(eq=False, repr=False)
class ChecklistMetric:
    """Scores the predictions of a DSPy program, in [0, 1]; made by :func:`checklist_metric`."""

    opened: OpenGateway
    evaluator: Evaluator
    fields: Mapping[str, str | None]
    """Map of our fields to fields of the DSPy example and, for ``output``, of its prediction."""
    soft: bool
    explain: bool
    calibration: Calibration | None

    def __call__(
        self, example: Any, pred: Any, trace: Any = None, pred_name: str | None = None, pred_trace: Any = None
    ) -> Any:
        """Return the score of one prediction; with ``pred_name``, as GEPA calls it, a Prediction of ``score`` and
        ``feedback``. Raises Stopped, with the error in it, for a missing verdict, at a cap, or if the judge cannot be
        asked."""
        try:
            explained = self.explain and pred_name is not None
            ask = partial(judge_one, soft=self.soft, calibration=self.calibration, explained=explained)
            work = ask(self.evaluator, self._example(example, pred))
            judged = self.opened.loop.run(work).require_coverage()
            if pred_name is None:
                return judged.overall
            return dspy.Prediction(score=judged.overall, feedback=self._feedback(judged))
        except AskanceError as error:
            raise Stopped(error) from error

    def _example(self, example: Any, pred: Any) -> Example:
        texts: dict[str, Any] = {
            **input_texts(example, self.fields),
            "output": output_text(pred, self.fields.get("output")),
        }
        name = sha256(repr(sorted(texts.items())).encode("utf-8", "surrogatepass")).hexdigest()[:16]
        return Example(id=name, **texts)

    def _feedback(self, judged: Judged) -> str:
        no, yes = ("against it", "in its favour") if self.evaluator.checklist.faults else ("no", "yes")
        if not judged.against:
            return f"Score {judged.overall:.2f}: every question was answered {yes}."
        lines = [f"- {each}" for each in judged.against]
        return "\n".join([f"Score {judged.overall:.2f}. These questions about the output were answered {no}:", *lines])


class ShownFields(TypedDict, total=False):
    """The fields of a DSPy example and its prediction that the judge is shown: our field to theirs."""

    output: str | None
    """Field of the prediction to judge; not needed if the prediction has only one."""
    input: str | None
    """Field of the example to show as the input; default: all input fields."""
    context: str | None
    """Field of the example to show as context, if any."""
    reference: str | None
    """Field of the example to show as a reference output, if any."""


FIELDS = tuple(ShownFields.__annotations__)


def checklist_metric(
    checklist: str | Path | Checklist | None,
    model: ModelLike | None,
    opened: OpenGateway,
    *,
    prompt: str | Path | Prompt | None = None,
    judge: str | Path | KeptJudge | None = None,
    judging: Judging | None = None,
    soft: bool | None = None,
    role: str = "evaluator",
    **fields: Unpack[ShownFields],
) -> ChecklistMetric:
    """Return a metric ``(example, pred, trace=None) -> float`` for DSPy's evaluators and optimisers, including GEPA.

    Args:
        checklist: File or checklist.
        model: The judge, ``provider/model`` or a model.
        opened: An open gateway, whose store, caps and ledger are used.
        prompt: The judge's prompt; default: askance's own neutral prompt.
        judge: A run's directory or a ``judge.yaml``, in place of checklist (None), model (None, or another) and prompt.
        judging: How the judge is asked; default: a kept judge's settings. ``explain="never"`` leaves the reasons out of
            the feedback.
        soft: Whether scores come from P(yes) or, if False, from the yes/no answers; default: the judge's setting.
        role: Role in the ledger that the calls are booked under.
        fields: ``output``, ``input``, ``context`` and ``reference``, as in :class:`ShownFields`.

    Raises:
        InputError: The checklist, the prompt, the model's name or a setting's name cannot be used.
    """
    if unknown := sorted(fields.keys() - set(FIELDS)):
        raise InputError(f"There is no setting '{unknown[0]}'.{did_you_mean(unknown[0], FIELDS)}")
    used = judge_of_parts(judge, checklist, None if model is None else opened.model(model), prompt)
    named: Mapping[str, Any] = fields
    shown = ["input", *(name for name in FIELDS if named.get(name) is not None)]
    job = used.job({}, shown)
    judging = judging or (Judging() if judge is None else job.settings.judging)
    evaluator = replace(job.asking(opened.models, opened.gateway), judging=judging, role=role)
    return ChecklistMetric(
        opened,
        evaluator,
        named,
        soft=job.settings.soft if soft is None else soft,
        explain=judging.explain != "never",
        calibration=job.read_with,
    )


def input_texts(example: Any, fields: Mapping[str, str | None]) -> dict[str, str]:
    """Return the texts of a DSPy example for a judge: all its input fields as the input, or the named fields.
    Raises InputError if the example has no field with such a name."""
    inputs = example.inputs().toDict()
    whole = "\n\n".join(f"{name}:\n{value}" for name, value in inputs.items())
    texts = {"input": str(next(iter(inputs.values()))) if len(inputs) == 1 else whole}
    for field, name in fields.items():
        if name is not None and field != "output":
            text = _field(example, name, "example", field)
            if field == "input" or example[name] is not None:
                texts[field] = text
    return texts


def output_text(pred: Any, field: str | None) -> str:
    """Return the text of a prediction for a judge: the named field, or the only one.
    Raises InputError if there is no such field, or if several fields are possible."""
    if field is not None:
        return _field(pred, field, "prediction", "output")
    texts = {name: value for name, value in pred.toDict().items() if name != "reasoning"}
    if len(texts) != 1:
        named = ", ".join(f"'{name}'" for name in texts) or "none"
        raise InputError(f"The prediction has several fields or none ({named}); say which to judge with output='…'.")
    return str(next(iter(texts.values())))


def _field(source: Any, name: str, what: str, ours: str) -> str:
    if name not in source:
        raise InputError(f"The {what} has no field '{name}', which the judge is to be shown as the {ours}.")
    return str(source[name])


@dataclass(eq=False, repr=False)
class OpenGateway:
    """One gateway, with its store, caps and ledger, for all models that DSPy programs and metrics ask.

    Made by :func:`open_gateway`.
    """

    gateway: Gateway
    models: Models
    loop: BackgroundLoop

    @property
    def budget(self) -> Budget:
        """Calls, tokens and money of each role so far."""
        return self.gateway.budget

    def model(self, model: ModelLike) -> Model:
        """Return the model with this name or record."""
        return self.models.get(model)

    def lm(self, model: ModelLike, *, role: str = "dspy", **options: Any) -> GatewayLM:
        """Return a language model for ``dspy.context(lm=…)`` or ``dspy.configure(lm=…)``, booked under ``role``.

        ``options`` go to :class:`~askance.agents.dspy.lm.GatewayLM`, e.g. ``max_tokens``. Raises InputError for an
        unknown model.
        """
        return GatewayLM(self.gateway, self.model(model), role=role, loop=self.loop, **options)


@contextmanager
def open_gateway(**options: Any) -> Iterator[OpenGateway]:
    """Open a gateway for the time of a ``with`` block.

    DSPy counts an exception in a program or a metric as a score of 0 and goes on. An error that must not count, such as
    a reached cap, ends the block instead and is raised here. The answers so far are kept.

    Args:
        options: Settings of :class:`~askance.evaluation.options.GatewayOptions`, e.g. ``api_base``, ``call_budget``,
            ``store`` or ``no_cache``.

    Raises:
        InputError: A setting or the store cannot be used.
        BudgetExceededError: A cap was reached.
        ModelError: The endpoint refuses every call, or is down.
        CoverageError: A verdict for a metric is missing.
    """
    settings = parse_options(GatewayOptions, options)
    with settings.open_store() as store:
        stopped: Stopped | None = None
        with background_session(settings, store) as (loop, models, gateway):
            try:
                yield OpenGateway(gateway, models, loop)
            except Stopped as stop:  # caught here so that the session ends normally and waits for running calls
                stopped = stop
        if stopped is not None:
            raise stopped.error from None
