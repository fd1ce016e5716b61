"""A judge of askance as an MLflow judge: it answers with people's labels or on people's scale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from ..evaluation.evaluate import ONE_BY_ONE
from ..evaluation.judge_file import load_judge
from ..evaluation.open_judge import OpenJudge
from ..evaluation.pass_fail import PassThreshold
from ..models.base import Model
from ..optimizer.run_result import RunResult
from ..prompts.errors import InputError, as_typed, import_optional
from ..prompts.examples import Example
from ..prompts.human_feedback import MEANINGS, SIDES, Labels
from ..prompts.messages import text_of
from ..stats.pass_fail import HALF

mlflow_judges: Any = import_optional(
    "mlflow.genai.judges.base", "mlflow", "mlflow-skinny", "Judges that can be aligned came with MLflow 3.4."
)
SHOWN = {"inputs": "the input", "outputs": "the output", "expectations": "the reference"}
"""Variables of MLflow's judges that askance knows, with their names in prompts."""


def as_text(value: Any) -> str:
    """Return inputs, outputs or expectations as a text for a judge, read as ``askance import`` reads traces. No value
    gives an empty text."""
    return str(value) if isinstance(value, (int, float)) else text_of(value) or ""


def texts_of(fields: Sequence[str], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the texts of an example, with only the variables that the judge reads."""
    shown = {name: as_text(values.get(name)) if name in fields else "" for name in SHOWN}
    return {"input": shown["inputs"], "output": shown["outputs"]} | (
        {"reference": shown["expectations"]} if shown["expectations"] else {}
    )


def value_type_of(judge: Any) -> Any:
    """Return the type of a judge's values; ``str`` before MLflow 3.6, where judges have no such field."""
    return getattr(judge, "feedback_value_type", str)


def values_in(trace: Any) -> dict[str, Any]:
    """Return inputs and outputs of a trace's root, and its expectations by name."""
    root = next((span for span in trace.data.spans if span.parent_id is None), None)
    expected = {each.name: each.expectation.value for each in trace.info.assessments or () if each.expectation}
    return {
        "inputs": None if root is None else root.inputs,
        "outputs": None if root is None else root.outputs,
        "expectations": expected or None,
    }


@dataclass(frozen=True)
class ValueForm:
    """The form of the judge's values in MLflow: one of two labels, or a number on a scale."""

    good: Any = True
    bad: Any = False
    scale: tuple[float, float] | None = None
    """Lowest and highest number; None if values are labels."""
    numbers: tuple[float, ...] = ()
    """The allowed numbers, if the type lists them."""
    whole: bool = False
    """Whether numbers are rounded to integers."""

    @classmethod
    def of(
        cls,
        given: Sequence[Any],
        kind: Any,
        labels: Labels,
        scale: tuple[float, float] | None,
        before: ValueForm | None = None,
    ) -> ValueForm:
        """Return the form of the values that people gave.

        Args:
            given: Labels or numbers, not both. The commonest label of each side is used.
            kind: The judge's ``feedback_value_type``.
            labels: Further words, as for :func:`~askance.prompts.human_feedback.parse_labels`.
            scale: Lowest and highest number; None takes the lowest and highest in ``given``.
            before: Form of the values in an earlier run. It provides the label of a side that nobody gave this time,
                and a scale from ``given`` covers its range too. It is returned if ``given`` is empty.

        Raises:
            InputError: A label is unknown, all labels are on one side, or all numbers are the same.
        """
        if before is not None and not given:
            return before
        named = get_args(kind) if get_origin(kind) is Literal else ()
        if any(isinstance(value, (bool, str)) for value in given):
            sides: dict[bool, list[Any]] = {True: [], False: []}
            for label in given:
                sides[meaning(label, labels)].append(label)
            words = {} if before is None or before.scale is not None else {True: before.good, False: before.bad}
            words |= {side: _word(side, named, values, kind, labels) for side, values in sides.items() if values}
            if len(words) == 1:
                raise InputError(
                    f"People gave no label but {next(iter(words.values()))!r}: there is nothing to tell apart."
                )
            return cls(words[True], words[False])
        seen = [*given, *((before and before.scale) or ())]
        low, high = scale or (min(seen), max(seen))
        if low == high:
            raise InputError(f"People gave no score but {low:g}: there is nothing to tell apart.")
        return cls(scale=(low, high), numbers=tuple(sorted(named)), whole=kind is int)

    def value(self, score: float, passes: bool) -> Any:
        """Return the value of an output with a score in [0, 1]."""
        if self.scale is None:
            return self.good if passes else self.bad
        number = self.scale[0] + score * (self.scale[1] - self.scale[0])
        if self.numbers:
            return min(self.numbers, key=lambda allowed: abs(allowed - number))
        return round(number) if self.whole else number


def meaning(value: Any, labels: Labels) -> bool:
    """Whether a label speaks for an output. Raises InputError for an unknown word."""
    if isinstance(value, bool):
        return value
    word = str(value).strip().casefold()
    side = next((SIDES.get(side) for side, words in labels.items() if word in words), MEANINGS.get(word))
    if side is None:
        raise InputError(
            f"'{value}' is no label that is known; say what people's words mean with "
            "labels={'good': [...], 'bad': [...]}."
        )
    return side


def _word(side: bool, named: Sequence[Any], seen: Sequence[Any], kind: Any, labels: Labels) -> Any:
    """Return the label for one side: from the judge's type, or else the label that people gave most often."""
    if kind is bool:
        return side
    own = [each for each in named if isinstance(each, (bool, str)) and meaning(each, labels) is side]
    return own[0] if own else max(dict.fromkeys(seen), key=list(seen).count)


class AskanceJudge(mlflow_judges.Judge):  # type: ignore[misc]
    """The judge of a finished run, for MLflow. Answers are stored, capped and repeated as everywhere in askance.

    Made by :class:`~askance.bridges.mlflow_alignment.AskanceAlignmentOptimizer`, and used by
    ``mlflow.genai.evaluate(data=..., scorers=[judge])``.
    """

    def __init__(
        self, original: Any, result: RunResult, form: ValueForm, model: str | Model, options: Mapping[str, Any]
    ) -> None:
        """Replace MLflow's judge ``original``, with the same name, variables and type of value.

        ``options`` are settings of :class:`~askance.evaluation.options.EvaluateOptions` that also apply to a single
        output, e.g. the address of the model's server.
        """
        super().__init__(name=original.name, description=original.description, aggregations=original.aggregations)
        kept = load_judge(result.directory)
        job = kept.prepare(ONE_BY_ONE, model, options)
        self._original, self._form, self._run = original, form, result
        self._fields = tuple(each.name for each in original.get_input_fields())
        self._source = kept.model
        self._checklist = job.checklist
        self._threshold = kept.pass_threshold(model, {}) or PassThreshold(HALF, "default")
        self._ask = partial(OpenJudge(job, keeps=True).score, explained=job.settings.explain != "never")

    @property
    def askance_run(self) -> RunResult:
        """The run that learned this judge, with its figures, edits and learned questions."""
        return self._run

    @property
    def directory(self) -> Path:
        """Directory of the run, for ``askance export`` and ``askance report``."""
        return self._run.directory

    @property
    def form(self) -> ValueForm:
        """Form of the judge's values."""
        return self._form

    @property
    def instructions(self) -> str:
        """The original judge's instructions, and every question that is asked about an output."""
        asked = "\n".join(f"- {each.criterion}" for each in self._checklist.questions)
        return f"{self._original.instructions}\n\nQuestions that are asked of each output:\n{asked}"

    @property
    def model(self) -> str:
        """Name of the judge's model in askance, ``provider/model``."""
        return self._source

    @property
    def feedback_value_type(self) -> Any:
        """Value type of the original judge."""
        return value_type_of(self._original)

    @property
    def kind(self) -> Any:
        """The kind CLASS, which MLflow does not take into its registry."""
        from mlflow.genai.scorers.base import ScorerKind

        return ScorerKind.CLASS

    def register(self, **options: Any) -> Any:
        """Raise InputError: MLflow's registry keeps only a judge's instructions. The message names other ways."""
        raise InputError(
            "MLflow's registry keeps instructions, and this judge is questions with weights and a threshold. Log its "
            "run with MLflowCallback, or write it as a file that stands alone: askance export "
            f"{as_typed(self.directory)} --to mlflow."
        )

    def get_input_fields(self) -> list[Any]:
        """Return the input fields of the original judge."""
        return list(self._original.get_input_fields())

    def __call__(
        self, *, inputs: Any = None, outputs: Any = None, expectations: dict[str, Any] | None = None, trace: Any = None
    ) -> Any:
        """Judge one output. Missing arguments are taken from the trace.

        Returns:
            MLflow's ``Feedback``: a label by the judge's threshold, or the score on people's scale. The rationale
            names the questions that speak against the output. The metadata have ``askance.score``, in [0, 1], and
            the scores by dimension.

        Raises:
            InputError: There is no output, or another variable that the judge reads is empty.
            CoverageError: A verdict is missing, so there is no score.
            AskanceError: A cap was reached, or the endpoint is down or refuses.
        """
        from mlflow.entities import AssessmentSource, Feedback

        given = {"inputs": inputs, "outputs": outputs, "expectations": expectations}
        in_trace = {} if trace is None else values_in(trace)
        values = {name: in_trace.get(name) if value is None else value for name, value in given.items()}
        for name in self._fields:
            if not as_text(values[name]):
                raise InputError(f"The judge '{self.name}' reads {name}, and there are none.")
        name = "output" if trace is None else str(trace.info.trace_id)
        judged = self._ask(Example(id=name, **texts_of(self._fields, values))).require_coverage()
        score, passes = self._threshold.score(judged), self._threshold.passes(judged)
        if score is None or passes is None:
            of = ", ".join(self._threshold.dimensions) or "all questions"
            raise InputError(f"The judge '{self.name}' has no score on {of}.")
        objections = "\n".join(f"- {statement}" for statement in judged.against)
        scores = {"score": judged.overall, **{f"score.{name}": value for name, value in judged.dimensions.items()}}
        return Feedback(
            name=self.name,
            value=self._form.value(score, passes),
            rationale=f"Against it:\n{objections}" if objections else "Every answer speaks for it.",
            source=AssessmentSource(source_type="LLM_JUDGE", source_id=self._source),
            metadata={f"askance.{name}": str(value) for name, value in scores.items() if value is not None},
        )
