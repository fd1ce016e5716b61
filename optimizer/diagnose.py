"""``diagnose``: which questions of a checklist are worth asking (BinEval §5.6)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..prompts.errors import InputError
from ..prompts.examples import load_examples
from .diagnose_options import DiagnoseOptions
from .diagnostics import diagnose_verdicts
from .evaluate import evaluate, load_inputs
from .given_verdicts import given_verdicts
from .options import parse_options

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..models.base import Model
    from ..prompts.checklist import Checklist
    from ..prompts.examples import Example
    from ..prompts.prompt import Prompt
    from ..prompts.verdicts import Verdict
    from .diagnosis import Diagnosis
    from .progress import Watcher


def diagnose(
    data: str | Path | Iterable[Example | Mapping[str, Any]],
    *,
    checklist: str | Path | Checklist,
    model: str | Model | None = None,
    prompt: str | Path | Prompt | None = None,
    verdicts: str | Path | Iterable[Verdict] | None = None,
    cache: str | Path | None = None,
    no_cache: bool = False,
    watcher: Watcher | None = None,
    progress: bool | None = None,
    **options: Any,
) -> Diagnosis:
    """Say what a judge's verdicts tell about each question of a checklist.

    The verdicts are those given, or they are bought as by :func:`~askance.optimizer.evaluate.evaluate`.

    Args:
        data: JSONL or CSV file, or rows.
        checklist: YAML or JSON file, or a checklist.
        model: ``provider/model``, or an object that can be asked. Where verdicts are given it picks those of this
            model.
        prompt: File or prompt; askance's own neutral one by default. Where verdicts are given it picks those made
            with this prompt.
        verdicts: File as ``askance evaluate -o`` writes it, or verdicts; then nothing is bought.
        cache: Where answers are kept; ``verdicts.db`` in the user's cache directory by default.
        no_cache: Reuse no answer of an earlier command, and keep none for a later one.
        watcher: Told how the work goes on.
        progress: Show how the work goes on; by default in notebooks only.
        options: Settings of :class:`~askance.optimizer.diagnose_options.DiagnoseOptions`.

    Raises:
        InputError: Bad data, checklist, prompt, model name, verdicts or setting.
        BudgetExceededError: A cap was reached; the answers so far are kept.
        AskanceError: The endpoint is down or refuses every call.
    """
    settings = parse_options(DiagnoseOptions, options)
    if verdicts is not None:
        return _of_given(data, checklist, model, prompt, verdicts, settings)
    if model is None:
        raise InputError("Diagnosing needs a model to ask, or verdicts that are there already.")
    examples, questions, text = load_inputs(data, checklist, prompt, settings)
    found = evaluate(
        [example.model_copy(update={"human": {}}) for example in examples],  # nothing is correlated there
        checklist=questions,
        model=model,
        prompt=text,
        cache=cache,
        no_cache=no_cache,
        watcher=watcher,
        progress=progress,
        **settings.model_dump(exclude={"pairs", "field", "limit", "weights"}),
    )
    done = diagnose_verdicts(examples, questions, found.verdicts, pairs=settings.pairs)
    return replace(done, budget=found.budget)


def _of_given(
    data: str | Path | Iterable[Example | Mapping[str, Any]],
    checklist: str | Path | Checklist,
    model: str | Model | None,
    prompt: str | Path | Prompt | None,
    verdicts: str | Path | Iterable[Verdict],
    settings: DiagnoseOptions,
) -> Diagnosis:
    """From verdicts that are there: those on the examples that ``limit`` leaves, by one judge."""
    whole = load_examples(data, fields=settings.field)
    examples, questions, _ = load_inputs(whole, checklist, None, settings.model_copy(update={"field": {}}))
    given = given_verdicts(verdicts, whole, questions, model, prompt)
    if len(examples) < len(whole):
        ids = {example.id for example in examples}
        given = [verdict for verdict in given if verdict.example in ids]
    return diagnose_verdicts(examples, questions, given, pairs=settings.pairs)
