"""A DSPy program as a model that a run can ask: its answers are kept, counted and repeated like all others."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from hashlib import sha256
from inspect import Parameter, signature
from typing import Any

from ..agents.dspy.lm import Stopped, cause_of, dspy
from ..models.base import Answer, ModelError, Request
from ..optimizer.modes.checker import Check
from ..prompts.errors import AskanceError, InputError
from ..prompts.examples import Example
from ..prompts.prompt import Prompt, generator_messages
from .dspy_metric import output_text


@dataclass(frozen=True)
class _Traced:
    """A prediction, and what a metric of five arguments is shown besides."""

    prediction: Any = None
    further: tuple[Any, ...] = ()
    """The trace, the predictor's name and its part of the trace."""


class ProgramModel:
    """A program as a model: asked with instructions and an example's inputs, it answers with a record of its run.

    The record, as JSON: ``output`` is the text that is judged, ``checks`` what the metric says, by example.
    """

    answers_stay_in_the_run = True
    """A change of the program's own code does not show in its identity."""

    def __init__(
        self,
        student: Any,
        predictor: str,
        examples: Sequence[tuple[Example, Any]],
        output: str | None,
        metric: PassMetric | None,
        pool: ThreadPoolExecutor,
        slots: int,
    ) -> None:
        """``examples`` are ours with those of DSPy; the settings that DSPy has now hold in all threads."""
        self._student = student
        self._predictor = predictor
        self._output = output
        self._metric = metric
        self._pool = pool
        self._programs: dict[str, Any] = {}
        self._context = copy_context()
        self._asked: dict[str, list[tuple[str, Any]]] = {}
        for ours, theirs in examples:
            same = self._asked.setdefault(_message(ours), [])
            if same and same[0][1].inputs() != theirs.inputs():
                raise InputError(
                    f"The examples '{same[0][0]}' and '{ours.id}' have different inputs that read the same; say which "
                    "field tells them apart with input='…', or turn their values into texts."
                )
            same.append((ours.id, theirs))
        self.slots = slots
        self.name = f"dspy/{type(student).__name__}.{predictor}-{self._digest()}"
        self.identity = self.name

    async def answer(self, request: Request) -> Answer:
        """Run the program once, in a thread.

        Raises:
            ModelError: It failed; no score is made of that.
        """
        (_, instructions), (_, message) = request.messages
        work = self._context.copy().run
        return await asyncio.get_running_loop().run_in_executor(self._pool, work, self._run, instructions, message)

    def shown(self, example: Example) -> Example:
        """An example whose output is a record, as it is judged."""
        record = json.loads(example.output or "")
        known = example.metadata | {"dspy_check": record["checks"].get(example.id)}
        return example.model_copy(update={"output": record["output"], "metadata": known})

    def checker(self) -> Callable[[Example], Check] | None:
        """What the metric said of an example, as a checker that goes by the metric's name; None without a metric."""
        if self._metric is None:
            return None

        def said(example: Example) -> Check:
            return Check(**example.metadata["dspy_check"])

        said.__module__, _, said.__qualname__ = self._metric.source.partition(":")
        return said

    def with_instructions(self, instructions: str) -> Any:
        """A copy of the program in which the predictor has these instructions."""
        program = self._student.deepcopy()
        predictor = dict(program.named_predictors())[self._predictor]
        predictor.signature = predictor.signature.with_instructions(instructions)
        return program

    def _run(self, instructions: str, message: str) -> Answer:
        if instructions not in self._programs:
            self._programs[instructions] = self.with_instructions(instructions)
        program, examples = self._programs[instructions], self._asked[message]
        with dspy.track_usage() as usage:
            text, unread, traced = self._predicted(program, examples[0][1].inputs())
            checks = {name: self._checked(each, unread, traced) for name, each in examples}
        tokens = usage.get_total_tokens().values()
        sent, written = (sum(each.get(name) or 0 for each in tokens) for name in ("prompt_tokens", "completion_tokens"))
        record = json.dumps({"output": text, "checks": checks}, ensure_ascii=False)
        return Answer(record, None, sent, written, None)  # what the program's LM costs is not known here

    def _predicted(self, program: Any, inputs: Any) -> tuple[str, str | None, _Traced]:
        """The text that is judged; why it could not be read, where it could not; what the metric is shown."""
        trace: list[Any] = []
        try:
            with dspy.context(trace=trace):
                prediction = program(**inputs)
        except dspy.utils.exceptions.AdapterParseError as error:  # what the LM wrote is there: this is no failed call
            fields = ", ".join(error.signature.output_fields)
            return str(error.lm_response), f"The reply could not be read; its fields must be: {fields}.", _Traced()
        except (Exception, Stopped) as error:
            raise _failure(error, "the program") from error
        if not isinstance(prediction, dspy.Prediction):
            raise InputError(f"The program returned {prediction!r:.80}; it must return a dspy.Prediction.")
        predictor = dict(program.named_predictors())[self._predictor]
        own = [each for each in trace if each[0] is predictor]
        return output_text(prediction, self._output), None, _Traced(prediction, (trace, self._predictor, own))

    def _checked(self, example: Any, unread: str | None, traced: _Traced) -> dict[str, Any] | None:
        if self._metric is None:
            return None
        if unread is not None:
            return self._metric.failed(unread)
        try:
            return self._metric.check(example, traced)
        except (Exception, Stopped) as error:
            raise _failure(error, "the metric") from error

    def _digest(self) -> str:
        """What predictions depend on besides the instructions and the inputs, as far as it can be seen."""
        plain = self.with_instructions("").named_predictors()
        parts = [(name, each.signature.dump_state(), [_plain(demo) for demo in each.demos]) for name, each in plain]
        lms = [each.lm or dspy.settings.lm for _, each in plain]
        if None in lms:
            raise InputError("The program has no LM to ask: call dspy.configure(lm=dspy.LM('…')) before compile.")
        asked = [(lm.model, {key: value for key, value in lm.kwargs.items() if key != "api_key"}) for lm in lms]
        how = [type(dspy.settings.adapter).__name__, self._output, self._metric and self._metric.settings]
        return sha256(json.dumps([parts, asked, how], sort_keys=True, default=_plain).encode()).hexdigest()[:8]


class PassMetric:
    """A DSPy metric that passes or fails."""

    def __init__(self, function: Callable[..., Any], threshold: float) -> None:
        kind = type(function)
        name = getattr(function, "__qualname__", kind.__qualname__)
        self.source = f"{getattr(function, '__module__', kind.__module__)}:{name}"
        self.settings = (self.source, threshold)
        self._name = name.rpartition(".")[2]
        self._function = function
        self._threshold = threshold
        kinds = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD, Parameter.VAR_POSITIONAL)
        taken = [each.kind for each in signature(function).parameters.values() if each.kind in kinds]
        self._five = len(taken) >= 5 or Parameter.VAR_POSITIONAL in taken

    def check(self, example: Any, traced: _Traced) -> dict[str, Any]:
        """What it says of one prediction, as the fields of a :class:`~askance.optimizer.modes.checker.Check`.

        Raises:
            InputError: It returned something else than a number, True or False.
        """
        found = self._function(example, traced.prediction, *(traced.further if self._five else ()))
        score, reason = found, None
        if isinstance(found, dspy.Prediction):
            score, reason = found.get("score"), found.get("feedback")
        score = score.item() if hasattr(score, "item") else score  # numpy's numbers
        if not isinstance(score, (bool, int, float)) or math.isnan(score):
            raise InputError(f"The metric {self.source} returned {found!r}; it must return a number or True or False.")
        passed = score if isinstance(score, bool) else score >= self._threshold
        reason = reason or f"The metric gave {float(score):g}; {self._threshold:g} is wanted."
        return {"name": self._name, "passed": passed, "reason": None if passed else str(reason)}

    def failed(self, why: str) -> dict[str, Any]:
        """The check of a reply of which there is no prediction."""
        return {"name": self._name, "passed": False, "reason": why}


def _message(example: Example) -> str:
    return generator_messages(Prompt("-"), example)[-1][1]


def _failure(error: BaseException, what: str) -> AskanceError:
    """Ours for what a program or a metric raised: a failed call, of which no score is made."""
    if (ours := cause_of(error)) is not None:
        return ours
    known = dspy.utils.exceptions
    hopeless = (known.LMAuthError, known.LMBillingError, known.LMConfigurationError, known.LMUnsupportedModelError)
    text = f"{what} failed: {type(error).__name__}: {' '.join(str(error).split())}"
    return ModelError(text, fatal=isinstance(error, hopeless), status=getattr(error, "status", None))


def _plain(value: Any) -> Any:
    """Something that JSON can hold, and that is the same in every process."""
    if hasattr(value, "items"):
        return {str(key): each for key, each in value.items()}
    return value.model_dump(mode="json") if hasattr(value, "model_dump") else type(value).__qualname__
