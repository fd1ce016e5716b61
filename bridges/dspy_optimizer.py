"""A DSPy optimiser with askance's loop: small edits to one predictor's instructions, kept if held-out examples improve.

``AskanceTune(...).compile(program, trainset=..., valset=...)`` is a run of ``tune`` whose generator is the program.
Failures on the training examples become lessons and edits. A paired test on validation decides. The test part is used
once. The run's directory is like any other (``askance report``, ``askance show``). Its store has the predictions.
"""

from __future__ import annotations

import asyncio
import json
import math
import random
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from hashlib import sha256
from inspect import Parameter, signature
from pathlib import Path
from typing import Any

from ..agents.checks import Check
from ..agents.dspy.lm import Stopped, cause_of, dspy
from ..models.base import Answer, ModelError, Request
from ..models.named import ModelLike, named_models
from ..optimizer.splits import SMALLEST_PART
from ..prompts.checklist import Checklist
from ..prompts.errors import AskanceError, InputError, did_you_mean
from ..prompts.examples import Example, load_examples
from ..prompts.prompt import Prompt, generator_messages
from ..prompts.text import fill, literal
from ..runs import tune
from .dspy_metric import FIELDS, input_texts, output_text

ROLES = ("note_taker", "deduplicator", "updater")
NOT_OURS = {
    "max_output_tokens": "set max_tokens on the program's LM",
    "generator_temperature": "set the temperature on the program's LM",
    "field": "name the fields with input='…', output='…'",
    "limit": "give the sets as they are to be used",
    "cost_budget": "the price of the program's own calls is not known here; cap with call_budget or token_budget",
}
"""Settings of ``tune`` that have no meaning for a program, and what to do instead."""


class AskanceTune(dspy.teleprompt.Teleprompter):  # type: ignore[misc]
    """Improves the instructions of one predictor of a program."""

    def __init__(
        self,
        *,
        run: str | Path,
        judge: ModelLike | None = None,
        checklist: str | Path | Checklist | None = None,
        metric: Callable[..., Any] | None = None,
        metric_threshold: float = 1.0,
        predictor: str | None = None,
        num_threads: int | None = None,
        **options: Any,
    ) -> None:
        """Take the settings; no model is asked yet.

        Args:
            run: Directory of the run. The same ``compile`` continues an interrupted run. Changes of the program's own
                code are not noticed: choose another directory then.
            judge: Model in askance (``provider/model``) that answers the questions, takes notes and writes the edits.
            checklist: Questions about every output.
            metric: A DSPy metric, with three arguments or, to give feedback, with GEPA's five. Its result
                counts as pass or fail.
            metric_threshold: Lowest score that passes.
            predictor: Name of the predictor, as in ``named_predictors()``; not needed if there is only one. To improve
                several predictors, compile the returned program again with another name and run.
            num_threads: Examples that the program works on at once; default: DSPy's setting.
            options: ``output``, ``input``, ``context`` and ``reference``, as in
                :class:`~askance.bridges.dspy_metric.ShownFields`; ``judge_prompt``, ``watcher`` and ``callbacks``, as
                in :func:`askance.tune`; settings of :class:`~askance.optimizer.options.TuneOptions`, e.g.
                ``call_budget``, for which one run of the program counts as one call.

        Raises:
            InputError: There is neither a checklist nor a metric, or a setting has no meaning for a program.
        """
        super().__init__()
        for name, instead in NOT_OURS.items():
            if name in options:
                raise InputError(f"'{name}' says nothing to a DSPy program: {instead}.")
        judge, options = named_models(options, judge)
        self._fields = {name: options.pop(name, None) for name in FIELDS}
        asks = checklist is not None or bool(options.get("own_questions"))
        if not asks and metric is None:
            raise InputError("Nothing says how good a prediction is: give a judge with a checklist, or a metric.")
        if not asks and (missing := [role for role in ROLES if role not in options]):
            if not isinstance(judge, str):
                raise InputError(
                    f"A metric alone takes no notes: give judge='provider/model', or name {', '.join(missing)}."
                )
            options = options | dict.fromkeys(missing, judge)  # with a metric alone it only takes notes and writes
        callbacks = tuple(options.get("callbacks", ()))
        self._settings = options | {"callbacks": callbacks, "run": run, "checklist": checklist}
        self._settings["judge"] = judge if asks else None
        self._metric = PassMetric(metric, metric_threshold) if metric else None
        self._predictor = predictor
        self._threads = num_threads

    def compile(self, student: Any, *, trainset: Any, valset: Any = None, testset: Any = None) -> Any:
        """Return a copy of the program with better instructions, or with the same instructions if nothing was gained.

        Its ``askance_run`` is the :class:`~askance.RunResult`: the gain on the test with its interval, edits, lessons.

        Args:
            student: The program; it is not changed.
            trainset: Examples to learn from. Without a ``valset`` they are divided in three (``split``).
            valset: Examples that decide. Without a ``testset`` half of them are kept for the final figure.
            testset: Examples for the final figure, used once.

        Raises:
            InputError: Too few examples, no such predictor or field, no LM, or another run in the directory.
            CoverageError: Fewer verdicts than ``min_coverage``.
            AskanceError: The judge's or the program's endpoint is down or refuses. ``compile`` can be repeated.
        """
        name, predictor = _chosen(student, self._predictor)
        examples = _parts(trainset, valset, testset, int(self._settings.get("seed", 42)))
        rows = load_examples(
            (_row(number, part, example, self._fields) for number, (part, example) in enumerate(examples, 1)),
            need_output=False,
        )
        threads = self._threads or dspy.settings.num_threads
        with ThreadPoolExecutor(threads, "askance-dspy") as pool:
            shown = list(zip(rows, (example for _, example in examples), strict=True))
            program = ProgramModel(student, name, shown, self._fields["output"], self._metric, pool, threads)
            start = Prompt(literal(predictor.signature.instructions))
            result = tune(rows, generator=program, prompt=start, checker=program.checker(), **self._settings)
        done = program.with_instructions(fill(result.prompt, {}))
        done.askance_run = result
        return done


def _chosen(student: Any, name: str | None) -> tuple[str, Any]:
    known = dict(student.named_predictors())
    if name is None and len(known) == 1:
        return next(iter(known.items()))
    listed = ", ".join(f"'{each}'" for each in known) or "none"
    if name is None:
        how = "say which is to be improved with predictor='…', and compile again for the next one"
        raise InputError(f"The program has several predictors or none ({listed}): {how}.")
    if name not in known:
        raise InputError(f"The program has no predictor '{name}', but these: {listed}.{did_you_mean(name, known)}")
    return name, known[name]


def _parts(trainset: Any, valset: Any, testset: Any, seed: int) -> list[tuple[str | None, Any]]:
    """Return each example with its split, or with None if askance divides them."""
    if valset is None:
        if testset is not None:
            raise InputError("There is a testset but no valset; give both, or neither.")
        return [(None, example) for example in trainset]
    if testset is None:
        valset = random.Random(seed).sample(list(valset), len(valset))
        valset, testset = valset[: len(valset) // 2], valset[len(valset) // 2 :]
        if len(valset) < SMALLEST_PART:
            need = f"at least {2 * SMALLEST_PART} are needed, as half of them are kept for the final figure"
            raise InputError(f"The valset has {len(valset) + len(testset)} examples; {need}. Or give a testset.")
    parts = {"development": trainset, "validation": valset, "test": testset}
    return [(name, example) for name, part in parts.items() for example in part]


def _row(number: int, part: str | None, example: Any, fields: Mapping[str, str | None]) -> dict[str, Any]:
    try:
        texts = input_texts(example, fields)
    except ValueError as error:  # DSPy's own sentence: the inputs have not been set
        raise InputError(f"Example {number}: {error}") from None
    return {**texts, "id": f"{part or 'example'}-{number:04d}", "metadata": {"split": part} if part else {}}


# --- the program as a model that a run can ask --------------------------------------------------------------------


@dataclass(frozen=True)
class _Traced:
    """A prediction, and the further arguments of a metric with five arguments."""

    prediction: Any = None
    further: tuple[Any, ...] = ()
    """The trace, the predictor's name and its part of the trace."""


class ProgramModel:
    """A program as a model: it takes instructions and an example's inputs, and answers with a record of its run.

    The record is JSON: ``output`` is the text to judge, ``checks`` has the metric's results by example.
    """

    answers_stay_in_the_run = True
    """Answers are not shared between runs: the model's identity does not change with the program's own code."""

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
        """Take ``examples``, pairs of askance's and DSPy's example. DSPy's current settings hold in all threads."""
        self._student = student
        self._predictor = predictor
        self._output = output
        self._metric = metric
        self._pool = pool
        self._programs: dict[str, Any] = {}
        self._context = copy_context()
        self._asked: dict[str, list[tuple[str, Any]]] = {}
        for example, dspy_example in examples:
            entries = self._asked.setdefault(_message(example), [])
            if entries and entries[0][1].inputs() != dspy_example.inputs():
                raise InputError(
                    f"The examples '{entries[0][0]}' and '{example.id}' have different inputs that read the same; say "
                    "which field tells them apart with input='…', or turn their values into texts."
                )
            entries.append((example.id, dspy_example))
        self.slots = slots
        self.name = f"dspy/{type(student).__name__}.{predictor}-{self._digest()}"
        self.identity = self.name

    async def answer(self, request: Request) -> Answer:
        """Run the program once, in a thread. Raises ModelError if the program fails: a failure gets no score."""
        (_, instructions), (_, message) = request.messages
        work = self._context.copy().run
        return await asyncio.get_running_loop().run_in_executor(self._pool, work, self._run, instructions, message)

    def shown(self, example: Example) -> Example:
        """Return the example to judge: its output, a record, is replaced by the record's text."""
        record = json.loads(example.output or "")
        known = example.metadata | {"dspy_check": record["checks"].get(example.id)}
        return example.model_copy(update={"output": record["output"], "metadata": known})

    def checker(self) -> Callable[[Example], Check] | None:
        """Return the metric's results as a checker with the metric's name; None without a metric."""
        if self._metric is None:
            return None

        def said(example: Example) -> Check:
            return Check(**example.metadata["dspy_check"])

        said.__module__, _, said.__qualname__ = self._metric.source.partition(":")
        return said

    def with_instructions(self, instructions: str) -> Any:
        """Return a copy of the program whose predictor has these instructions."""
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
        return Answer(record, None, sent, written, None)  # the cost of the program's LM is not known here

    def _predicted(self, program: Any, inputs: Any) -> tuple[str, str | None, _Traced]:
        """Return the text to judge, a reason if the reply could not be read (else None), and the metric's arguments."""
        trace: list[Any] = []
        try:
            with dspy.context(trace=trace):
                prediction = program(**inputs)
        except dspy.utils.exceptions.AdapterParseError as error:  # the LM did reply, so this is no failed call
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
        """Return a hash of everything visible that predictions depend on, apart from instructions and inputs."""
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
        """Return the metric's result on one prediction, as the fields of a :class:`~askance.agents.checks.Check`.

        Raises InputError if the metric returns something else than a number, True or False.
        """
        result = self._function(example, traced.prediction, *(traced.further if self._five else ()))
        score, reason = result, None
        if isinstance(result, dspy.Prediction):
            score, reason = result.get("score"), result.get("feedback")
        score = score.item() if hasattr(score, "item") else score  # numpy's numbers
        if not isinstance(score, (bool, int, float)) or math.isnan(score):
            raise InputError(f"The metric {self.source} returned {result!r}; it must return a number or True or False.")
        passed = score if isinstance(score, bool) else score >= self._threshold
        reason = reason or f"The metric gave {float(score):g}; {self._threshold:g} is wanted."
        return {"name": self._name, "passed": passed, "reason": None if passed else str(reason)}

    def failed(self, why: str) -> dict[str, Any]:
        """Return the failed check of a reply without a prediction."""
        return {"name": self._name, "passed": False, "reason": why}


def _message(example: Example) -> str:
    return generator_messages(Prompt("-"), example)[-1][1]


def _failure(error: BaseException, what: str) -> AskanceError:
    """Convert an error of a program or a metric into askance's: a failed call, which gets no score."""
    if (ours := cause_of(error)) is not None:
        return ours
    known = dspy.utils.exceptions
    hopeless = (known.LMAuthError, known.LMBillingError, known.LMConfigurationError, known.LMUnsupportedModelError)
    text = f"{what} failed: {type(error).__name__}: {' '.join(str(error).split())}"
    return ModelError(text, fatal=isinstance(error, hopeless), status=getattr(error, "status", None))


def _plain(value: Any) -> Any:
    """Return a value for JSON that is the same in every process."""
    if hasattr(value, "items"):
        return {str(key): each for key, each in value.items()}
    return value.model_dump(mode="json") if hasattr(value, "model_dump") else type(value).__qualname__
