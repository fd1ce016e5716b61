"""An alignment optimiser for MLflow: ``judge.align(traces, optimizer)`` runs askance's ``align``.

.. code-block:: python

    from askance.bridges import AskanceAlignmentOptimizer

    traces = mlflow.search_traces(return_type="list")
    aligned = judge.align(traces, AskanceAlignmentOptimizer(run="polite-run", call_budget=3000))
    mlflow.genai.evaluate(data=new_traces, scorers=[aligned])

The judge's instructions become the rubric of a first question. People's rationales lead to further questions, which
are kept if held-out traces confirm them.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, get_args

from ..agents.evaluator import REASON_TOKENS
from ..models.named import ModelLike, named_models
from ..optimizer.events import Callback
from ..optimizer.options import AlignOptions
from ..optimizer.splits import fewest_examples
from ..prompts.checklist import Checklist, Question
from ..prompts.errors import InputError
from ..prompts.human_feedback import Labels
from ..prompts.prompt import Prompt
from ..runs import align
from ..settings import parse_options
from .mlflow_judge import (
    SHOWN,
    AskanceJudge,
    ValueForm,
    as_text,
    meaning,
    mlflow_judges,
    texts_of,
    value_type_of,
    values_in,
)

logger = logging.getLogger(__name__)

NOT_OURS = {
    "field": "inputs, outputs and expectations are taken from the traces",
    "limit": "give the traces as they are to be used",
}
"""Settings of ``align`` that have no meaning for traces, and why."""
SERVED_BY_MLFLOW = ("databricks", "endpoints", "gateway", "typesafe")
"""Prefixes before ``:/`` of models served by MLflow or Databricks, which askance cannot reach."""
REPLIES = ("max_tokens", "max_completion_tokens")
"""Parameters of a judge that limit the length of a reply."""
WHERE = ("api_base", "store", "no_cache", "timeout", "retries", "max_concurrency")
"""Settings that are passed on to the aligned judge. The run stores how it asks; the run's caps end with the run."""
NOUNS = (
    *("answer", "article", "code", "description", "draft", "email", "explanation", "letter", "message", "note", "post"),
    *("reply", "report", "response", "review", "story", "summary", "text", "translation"),
)
"""Nouns for an application's outputs."""
_NOUN = re.compile(rf"\b({'|'.join(NOUNS)})\b", re.IGNORECASE)
_VARIABLE = re.compile(r"\{\{\s*(\w+)\s*\}\}")


class AskanceAlignmentOptimizer(mlflow_judges.AlignmentOptimizer):  # type: ignore[misc]
    """Aligns an MLflow judge with people's assessments, as far as held-out traces confirm it."""

    def __init__(
        self,
        *,
        run: str | Path,
        model: ModelLike | None = None,
        checklist: str | Path | Checklist | None = None,
        prompt: str | Path | Prompt | None = None,
        callbacks: Iterable[Callback] = (),
        **options: Any,
    ) -> None:
        """Take the settings; no model is asked yet.

        Args:
            run: Directory of the run. The same ``align`` continues an interrupted run and reads a finished one.
            model: Name in askance of the model that judges (``provider/model``), or a model object; default: the
                judge's own model (``openai:/gpt-4o-mini`` is ``openai/gpt-4o-mini``).
            checklist: Questions to start from; default: one question, with the judge's instructions as its rubric.
            prompt: The model's prompt; default: askance's own neutral prompt.
            callbacks: Functions called with every event of the run, e.g.
                :class:`~askance.bridges.mlflow_callback.MLflowCallback`.
            options: Settings of :class:`~askance.optimizer.options.AlignOptions`, e.g. ``call_budget``, ``api_base``,
                ``human_scale`` or ``labels``.

        Raises:
            InputError: There is no such setting, or it has no meaning for traces.
        """
        for name, reason in NOT_OURS.items():
            if name in options:
                raise InputError(f"'{name}' says nothing here: {reason}.")
        self._run = run
        self._model, self._options = named_models(options, model)
        self._settings = parse_options(AlignOptions, self._options)
        self._checklist, self._prompt, self._callbacks = checklist, prompt, tuple(callbacks)

    def align(self, judge: Any, traces: Sequence[Any]) -> AskanceJudge:
        """Return a judge in place of ``judge`` with questions, weights and threshold that fit people's assessments
        better.

        An assessment counts if its source is human and its name is the judge's. Several assessments of a trace count as
        several raters. For a judge that askance aligned before, the new run builds on the earlier one and needs
        another directory.

        Args:
            judge: Judge that reads the outputs, and perhaps inputs and expectations.
            traces: List from ``mlflow.search_traces(return_type="list")``. Traces without a person's assessment are
                left out and reported.

        Returns:
            The judge of the run, or the starting judge if nothing was gained. Its ``askance_run`` has the figures.

        Raises:
            InputError: Too few assessments, values of mixed kinds, variables that askance does not show, or another
                run in the directory.
            CoverageError: Fewer verdicts than ``min_coverage``.
            AskanceError: The endpoint is down or refuses. ``align`` can be repeated.
        """
        _check_variables(judge)
        earlier, earlier_form = (judge.directory, judge.form) if isinstance(judge, AskanceJudge) else (None, None)
        options = {name: value for name, value in self._options.items() if name != "labels"}
        options.setdefault("measures", "none")  # MLflow's judge has only instructions: no measure is added
        model = self._model
        if model is None:
            model, options = _model_of(judge, options)
            options = {**_parameters_of(judge, self._settings), **options}
        elif getattr(judge, "inference_params", None):
            logger.warning(
                "The inference_params of the judge '%s' are for its own model: the one that was given is asked "
                "without.",
                judge.name,
            )
        labels = self._settings.labels
        rows, values = _labelled(judge, traces, labels)
        needed = fewest_examples(self._settings.split)
        if earlier is None and len(rows) < needed:
            raise InputError(
                f"{len(rows)} of {len(traces)} traces can be learned from: they have an output and a human assessment "
                f"named '{judge.name}'. At least {needed} are needed, for development, validation and test."
            )
        form = ValueForm.of(values, value_type_of(judge), labels, self._settings.human_scale, earlier_form)
        starts = {"from_run": earlier} if earlier else {"checklist": self._start(judge, form), "prompt": self._prompt}
        result = align(rows, run=self._run, model=model, callbacks=self._callbacks, **starts, **options)
        if not result.result["accepted_edits"]:
            logger.warning("Nothing was gained beyond noise (%s): the judge is the starting one.", result.finish_reason)
        asked = {name: options[name] for name in WHERE if name in options}
        return AskanceJudge(judge, result, form, model, asked)

    def _start(self, judge: Any, form: ValueForm) -> str | Path | Checklist:
        """Return the questions to start from: the given ones, or one question with the instructions as rubric."""
        if self._checklist is not None:
            return self._checklist
        rubric = _VARIABLE.sub(lambda match: SHOWN[match[1]], str(judge.instructions)).strip()
        word = "yes" if form.good is True else form.good
        wanted = f'the verdict "{word}"' if form.scale is None else "a high rating"
        text = f"Does the {noun_in(str(judge.instructions))} deserve {wanted} by its rubric?"
        question = Question(id=judge.name, text=text, rubric=rubric)
        return Checklist(questions=(question,))


def noun_in(instructions: str) -> str:
    """Return the noun for an output in a judge's instructions: the noun of ``NOUNS`` nearest to ``{{ outputs }}``, or
    "output". Learned questions use the same noun.
    """
    places = [match.start() for match in _VARIABLE.finditer(instructions) if match[1] == "outputs"] or [0]
    nouns = [
        (min(abs(match.start() - place) for place in places), match[1].lower())
        for match in _NOUN.finditer(instructions)
    ]
    return min(nouns)[1] if nouns else "output"


def _check_variables(judge: Any) -> None:
    """Raise InputError for a judge that reads a variable unknown to askance, or no outputs."""
    fields = [each.name for each in judge.get_input_fields()]
    written = _VARIABLE.findall(str(judge.instructions))
    strange = [name for name in dict.fromkeys([*fields, *written]) if name not in SHOWN]
    if strange:
        raise InputError(
            f"The judge '{judge.name}' reads {', '.join('{{ ' + name + ' }}' for name in strange)}, which askance "
            f"cannot show a model; it knows {', '.join('{{ ' + name + ' }}' for name in SHOWN)}."
        )
    if "outputs" not in fields:
        raise InputError(f"The judge '{judge.name}' does not read {{{{ outputs }}}}, so there is nothing to judge.")


def _model_of(judge: Any, options: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return askance's name of a judge's model, and the options with the address of its server."""
    if isinstance(judge, AskanceJudge):
        return judge.model, options
    uri = str(getattr(judge, "model", None))
    provider, found, name = uri.partition(":/")
    if not found or not name.strip("/") or provider in SERVED_BY_MLFLOW:
        raise InputError(
            f"The judge '{judge.name}' asks {uri}, which askance cannot reach by that name; give the optimiser "
            "model='provider/model' (and api_base='http://...' for a server of your own)."
        )
    # These attributes are not public in MLflow. Without them askance could ask another endpoint than the judge does.
    if getattr(judge, "_extra_headers", None):
        raise InputError(
            f"The judge '{judge.name}' sends headers of its own, which askance does not; give the optimiser a model."
        )
    base = getattr(judge, "_base_url", None)
    return f"{provider}/{name.strip('/')}", {"api_base": base, **options} if base else options


def _parameters_of(judge: Any, settings: AlignOptions) -> dict[str, Any]:
    """Return the settings that correspond to a judge's ``inference_params``. Raises InputError if one has no
    counterpart."""
    settings_of_judge: dict[str, Any] = {}
    for name, value in (getattr(judge, "inference_params", None) or {}).items():
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if value is None or (name in ("n", "top_p") and value == 1):
            continue  # the default
        if name == "temperature" and number and value >= 0:
            settings_of_judge[name] = float(value)
        elif name == "seed" and isinstance(value, int) and number:
            settings_of_judge[name] = value
        elif name in REPLIES and number and settings.mode != "batched" and value >= REASON_TOKENS:
            settings_of_judge["mode"] = "each"  # a judge's reply is shorter then: yes or no, or a reason
        else:
            reason = (
                f"a judge that askance asks says yes or no and, where reasons are wanted, up to {REASON_TOKENS} "
                "tokens, or more in a batch"
                if name in REPLIES
                else "askance sets temperature and seed alone"
            )
            raise InputError(
                f"The judge '{judge.name}' has inference_params {name}={value!r}, which cannot hold: {reason}. Make "
                "the judge without it, or give the optimiser model='provider/model', which is asked without "
                "inference_params."
            )
    return settings_of_judge


def _labelled(judge: Any, traces: Sequence[Any], labels: Labels) -> tuple[list[dict[str, Any]], list[Any]]:
    """Return the assessed traces as rows of examples, oldest first, and all values that people gave."""
    fields = [field.name for field in judge.get_input_fields()]
    rows: list[dict[str, Any]] = []
    values: list[Any] = []
    omissions: Counter[str] = Counter()
    for trace in sorted(traces, key=_place):
        assessments = [assessment for assessment in trace.info.assessments or () if _is_peoples(assessment, judge)]
        ratings = [
            _value(assessment.feedback.value, trace, judge)
            for assessment in assessments
            if assessment.feedback.value is not None
        ]
        shown = values_in(trace)
        missing = next((name for name in fields if not as_text(shown[name])), None)
        if not ratings or missing is not None:
            omissions[f"without {missing}" if ratings else f"without a human assessment '{judge.name}'"] += 1
            continue
        values += ratings
        comments = [assessment.rationale for assessment in assessments if assessment.rationale]
        human = [meaning(rating, labels) if isinstance(rating, (bool, str)) else rating for rating in ratings]
        rows.append(
            {"id": trace.info.trace_id, **texts_of(fields, shown), "human": {"overall": human}, "comment": comments}
        )
    if omissions:
        said = "; ".join(f"{count} {reason}" for reason, count in omissions.items())
        logger.warning("Left out: %d of %d traces (%s).", omissions.total(), len(traces), said)
    _check_kinds(rows, judge)
    return rows, values


def _place(trace: Any) -> tuple[int, str]:
    """Return the sort key of a trace, its start and id, so that the same traces in any order are the same run."""
    if not hasattr(trace, "info") or not hasattr(trace, "data"):
        raise InputError(
            "A list of traces is needed, as mlflow.search_traces(return_type='list') gives, not of "
            f"{type(trace).__name__}."
        )
    return trace.info.request_time, trace.info.trace_id


def _is_peoples(assessment: Any, judge: Any) -> bool:
    """Whether a person gave the assessment under the judge's name. Names are compared as in MLflow's own optimisers."""
    return (
        assessment.feedback is not None
        and assessment.valid is not False
        and assessment.source.source_type == "HUMAN"
        and assessment.name.strip().lower() == judge.name.strip().lower()
    )


def _value(value: Any, trace: Any, judge: Any) -> Any:
    """Return a person's value as a label or a number."""
    if isinstance(value, bool):
        return value
    if not isinstance(value, (int, float, str)):
        raise InputError(
            f"Trace {trace.info.trace_id}: the human assessment '{judge.name}' is a {type(value).__name__}; askance "
            "learns from labels (true, false or a word) and numbers."
        )
    if value_type_of(judge) is bool and value in (0, 1):
        return bool(value)
    named = {str(each): each for each in get_args(value_type_of(judge))}
    return named.get(value, value) if isinstance(value, str) else value


def _check_kinds(rows: Sequence[dict[str, Any]], judge: Any) -> None:
    """Raise InputError for a mix of labels and numbers; the message names a trace of each."""
    kinds: dict[bool, tuple[str, Any]] = {}
    for row in rows:
        for each in row["human"]["overall"]:
            kinds.setdefault(isinstance(each, bool), (row["id"], each))
    if len(kinds) == 2:
        (label, word), (number, score) = kinds[True], kinds[False]
        raise InputError(
            f"The human assessments '{judge.name}' are of mixed kinds: trace {label} has a label ({word}), trace "
            f"{number} the number {score:g}. Give all traces labels, or all of them numbers."
        )
