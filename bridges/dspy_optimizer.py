"""A DSPy optimiser by askance's loop: small edits to one predictor's instructions, kept if held-out examples say so.

``AskanceTune(...).compile(program, trainset=..., valset=...)`` is a run of ``tune`` whose generator is the program:
failures on the training examples become lessons and edits, a paired test on validation decides, the test is looked at
once. The run's directory is like any other (``askance report``, ``askance show``), its store keeps what was predicted.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from ..agents.dspy.lm import dspy
from ..models.named import ModelLike, named_models
from ..optimizer.splits import SMALLEST_PART
from ..prompts.checklist import Checklist
from ..prompts.errors import InputError, did_you_mean
from ..prompts.examples import load_examples
from ..prompts.prompt import Prompt
from ..prompts.text import fill, literal
from ..runs import tune
from .dspy_metric import FIELDS, input_texts
from .dspy_program import PassMetric, ProgramModel

ROLES = ("note_taker", "deduplicator", "updater")
NOT_OURS = {
    "max_output_tokens": "set max_tokens on the program's LM",
    "generator_temperature": "set the temperature on the program's LM",
    "field": "name the fields with input='…', output='…'",
    "limit": "give the sets as they are to be used",
    "cost_budget": "the price of the program's own calls is not known here; cap with call_budget or token_budget",
}
"""Settings of ``tune`` that say nothing to a program, and what to do instead."""


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
        """Nothing is asked yet.

        Args:
            run: Directory of the run; the same ``compile`` on it goes on where it stopped. A change of the program's
                own code is not noticed: take another directory then.
            judge: askance's model (``provider/model``) that answers the questions, takes notes and writes the edits.
            checklist: Questions about every output.
            metric: A DSPy metric, with three arguments or, for its feedback, with GEPA's five. It passes or fails.
            metric_threshold: Score from which it passes.
            predictor: Name of the predictor, as in ``named_predictors()``; may be left out where there is one. Several
                are improved one after the other: compile what ``compile`` returned, with another name and run.
            num_threads: Examples that the program works on at once; DSPy's setting by default.
            options: ``output``, ``input``, ``context`` and ``reference``, as in
                :class:`~askance.bridges.dspy_metric.ShownFields`; ``judge_prompt``, ``watcher`` and ``callbacks``, as in
                :func:`askance.tune`; settings of :class:`~askance.optimizer.options.TuneOptions`, e.g. ``call_budget``,
                where one run of the program counts as one call.

        Raises:
            InputError: There is nothing to judge by, or a setting that says nothing to a program.
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
        if not asks:
            options = self._roles(judge, options)
        callbacks = tuple(options.get("callbacks", ()))
        self._settings = options | {"callbacks": callbacks, "run": run, "checklist": checklist}
        self._settings["judge"] = judge if asks else None
        self._metric = PassMetric(metric, metric_threshold) if metric else None
        self._predictor = predictor
        self._threads = num_threads

    def compile(self, student: Any, *, trainset: Any, valset: Any = None, testset: Any = None) -> Any:
        """A copy of the program with better instructions, or with the same where nothing was gained.

        Its ``askance_run`` is the :class:`~askance.RunResult`: the gain on the test with its interval, edits, lessons.

        Args:
            student: The program; it is left as it is.
            trainset: What is learned from. Without a ``valset`` it is divided in three (``split``).
            valset: What decides. Without a ``testset`` half of it is kept aside for the final figure.
            testset: What the final figure is measured on, once.

        Raises:
            InputError: Too few examples, no such predictor or field, no LM, or another run in the directory.
            CoverageError: Fewer verdicts than ``min_coverage``.
            AskanceError: The judge's or the program's endpoint is down or refuses. ``compile`` can be repeated.
        """
        name, predictor = _chosen(student, self._predictor)
        examples = _parts(trainset, valset, testset, int(self._settings.get("seed", 42)))
        rows = load_examples(
            (_row(number, part, each, self._fields) for number, (part, each) in enumerate(examples, 1)),
            need_output=False,
        )
        threads = self._threads or dspy.settings.num_threads
        with ThreadPoolExecutor(threads, "askance-dspy") as pool:
            shown = list(zip(rows, (each for _, each in examples), strict=True))
            program = ProgramModel(student, name, shown, self._fields["output"], self._metric, pool, threads)
            start = Prompt(literal(predictor.signature.instructions))
            result = tune(rows, generator=program, prompt=start, checker=program.checker(), **self._settings)
        done = program.with_instructions(fill(result.prompt, {}))
        done.askance_run = result
        return done

    @staticmethod
    def _roles(judge: object, options: dict[str, Any]) -> dict[str, Any]:
        """With a metric alone the judge only takes notes and writes; these roles go by name."""
        if missing := [role for role in ROLES if role not in options]:
            if not isinstance(judge, str):
                raise InputError(
                    f"A metric alone takes no notes: give judge='provider/model', or name {', '.join(missing)}."
                )
            return options | dict.fromkeys(missing, judge)
        return options


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
    """Each example with the split it is in; None where askance divides them."""
    if valset is None:
        if testset is not None:
            raise InputError("There is a testset but no valset; give both, or neither.")
        return [(None, each) for each in trainset]
    if testset is None:
        valset = random.Random(seed).sample(list(valset), len(valset))
        valset, testset = valset[: len(valset) // 2], valset[len(valset) // 2 :]
        if len(valset) < SMALLEST_PART:
            need = f"at least {2 * SMALLEST_PART} are needed, as half of them are kept for the final figure"
            raise InputError(f"The valset has {len(valset) + len(testset)} examples; {need}. Or give a testset.")
    parts = {"development": trainset, "validation": valset, "test": testset}
    return [(name, each) for name, part in parts.items() for each in part]


def _row(number: int, part: str | None, example: Any, fields: Mapping[str, str | None]) -> dict[str, Any]:
    try:
        texts = input_texts(example, fields)
    except ValueError as error:  # DSPy's own sentence: the inputs have not been set
        raise InputError(f"Example {number}: {error}") from None
    return {**texts, "id": f"{part or 'example'}-{number:04d}", "metadata": {"split": part} if part else {}}
