"""``diagnose``: which questions of a checklist are worth asking, whoever the judge was (BinEval §5.6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import NDArray

from ..models.event_loops import awaited
from ..models.named import ModelLike, named_models
from ..prompts.checklist import load_checklist
from ..prompts.errors import InputError
from ..prompts.examples import answered_questions, documents, human_dimensions, load_examples, mean_rating
from ..prompts.human_feedback import are_labels, known_ratings
from ..prompts.rows import column
from ..setting_types import DiagnoseSettings
from ..settings import parse_options, refuse_idle
from ..stats.closed_forms import TestedSpearman, spearman_intervals
from ..stats.differences import holm
from ..stats.phi import PhiMatrix, phi_matrix, relatedness
from ..stats.resampling import Statistic
from .evaluate import EvaluationJob, load_inputs, unrated
from .findings import Diagnosis, GroupDiagnosis, QuestionDiagnosis, by_likeness, findings
from .options import DiagnoseOptions, EvaluateOptions
from .own_judge import judge_asked
from .verdict_table import Cells, VerdictTable, given_verdicts, only_judge, tabulate

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from ..models.base import Model
    from ..models.progress import Watcher
    from ..prompts.checklist import Checklist
    from ..prompts.examples import Example
    from ..prompts.prompt import Prompt
    from ..prompts.verdicts import Verdict


def diagnose_verdicts(
    examples: Sequence[Example],
    checklist: Checklist,
    verdicts: Sequence[Verdict],
    *,
    pairs: int = 5,
    human_scale: tuple[float, float] | None = None,
) -> Diagnosis:
    """Return yes-rates, relatedness, agreement with people, test-retest flips and coverage of every question.

    Yes-rates and phi count every replicate; correlations with people take an example's mean over replicates. Intervals
    treat examples of one document (``metadata.document``) as belonging together. ``pairs`` is how many pairs of
    questions to name as the least related and the most alike. ``human_scale`` is the worst and the best human score.
    Raises InputError if there are no verdicts, they are by several judges or about unknown examples or questions, or a
    verdict is there twice.
    """
    model, prompt = only_judge(verdicts)
    table = tabulate(examples, checklist, verdicts)
    ids = [question.id for question in checklist.questions]
    phi = phi_matrix(ids, table.answers.reshape(-1, len(ids)), table.answers.shape[1])
    questions = _questions(examples, checklist, table, human_scale)
    groups = [
        _group(name, [each for each in questions if each.dimension == name], phi) for name in checklist.dimensions
    ]
    by_phi = by_likeness(phi.pairs(), checklist.faults)
    home = {question.id: question.dimension for question in questions}
    inner_pairs = [pair for pair in by_phi if home[pair.first] == home[pair.second]]
    found = Diagnosis(
        model,
        prompt,
        len(examples),
        table.answers.shape[1],
        tuple(questions),
        tuple(groups),
        _group("all questions", questions, phi),
        phi,
        tuple(sorted(inner_pairs, key=lambda pair: abs(pair.phi))[:pairs]),
        tuple(by_phi[:pairs]),
        verdicts=verdicts,
    )
    return replace(found, findings=findings(found))


def _questions(
    examples: Sequence[Example], checklist: Checklist, table: VerdictTable, human_scale: tuple[float, float] | None
) -> list[QuestionDiagnosis]:
    soft = table.scores(soft=True)
    rated = _rated_dimensions(examples, checklist)
    turned = set(checklist.faults).intersection(answered_questions(examples, checklist))
    human_tests = [
        _with_people(examples, rated, turned, scores, human_scale) for scores in (soft, table.scores(soft=False))
    ]
    adjusted = holm([tested.p_against for tested in human_tests[0]])
    answered = table.answered
    answers, yes = answered.sum(axis=0), np.nansum(table.answers, axis=(0, 1))
    spreads = _spreads(soft)
    flips = _flips(np.nansum(table.answers, axis=1), answered)
    found = []
    for place, question in enumerate(checklist.questions):
        found.append(
            QuestionDiagnosis(
                id=question.id,
                dimension=question.dimension,
                coverage=table.coverage(place),
                unasked=int(np.count_nonzero(table.asked[:, place] == 0)),
                yes_rate=float(yes[place] / answers[place]) if answers[place] else None,
                p_yes_spread=spreads[place],
                human_dimension=rated[place],
                human_p_yes=human_tests[0][place].statistic,
                human_answer=human_tests[1][place].statistic,
                p_against_people=adjusted[place],
                flips=flips[place],
                retested_examples=int(np.count_nonzero(answered[:, place] > 1)),
                good=question.good,
            )
        )
    return found


def _rated_dimensions(examples: Sequence[Example], checklist: Checklist) -> list[str | None]:
    """Return for each question the rated dimension that it is compared with, or its own id if people answered it."""
    rated, answered = set(human_dimensions(examples, checklist)), set(answered_questions(examples, checklist))
    whole = "overall" if "overall" in rated else None
    return [
        question.id if question.id in answered else question.dimension if question.dimension in rated else whole
        for question in checklist.questions
    ]


def _with_people(
    examples: Sequence[Example],
    rated: Sequence[str | None],
    turned: Collection[str],
    scores: Cells,
    scale: tuple[float, float] | None,
) -> list[TestedSpearman]:
    """Correlate scores with people's; ``turned`` are questions that look for a fault and that people answered."""
    unrated = TestedSpearman(Statistic(None, 0, None, None, "people did not rate its dimension"), None)
    found = [unrated] * len(rated)
    groups = documents(examples)
    for dimension in {each for each in rated if each is not None}:
        places = [place for place, each in enumerate(rated) if each == dimension]
        human = [mean_rating(each, dimension) for each in column(examples, "human")]
        if dimension in turned:
            human = [None if each is None else 1 - each for each in human]
        elif (
            scale
            and scale[0] > scale[1]
            and not are_labels(
                rating for each in column(examples, "human") for rating in known_ratings(each.get(dimension, ()))
            )
        ):
            human = [None if each is None else -each for each in human]
        tested = spearman_intervals(scores[:, places], human, groups=groups)
        for place, each in zip(places, tested, strict=True):
            found[place] = each
    return found


def _spreads(soft: Cells) -> list[float | None]:
    known = np.count_nonzero(~np.isnan(soft), axis=0)
    low = np.where(np.isnan(soft), np.inf, soft).min(axis=0)
    high = np.where(np.isnan(soft), -np.inf, soft).max(axis=0)
    return [float(high[place] - low[place]) if count > 1 else None for place, count in enumerate(known)]


def _flips(yes: Cells, answered: NDArray[np.int64]) -> list[float | None]:
    """Return the share of all pairs of answers to the same example that differ."""
    differing = (yes * (answered - yes)).sum(axis=0)
    pairs = (answered * (answered - 1) / 2).sum(axis=0)
    return [float(some / all_) if all_ else None for some, all_ in zip(differing, pairs, strict=True)]


def _group(name: str, questions: Sequence[QuestionDiagnosis], phi: PhiMatrix) -> GroupDiagnosis:
    ids = tuple(question.id for question in questions)
    part = phi.only(ids)
    by_size = sorted(part.pairs(), key=lambda pair: abs(pair.phi))
    rates = [question.yes_rate for question in questions if question.yes_rate is not None]
    return GroupDiagnosis(
        name,
        ids,
        sum(question.varies for question in questions),
        min(rates, default=None),
        max(rates, default=None),
        relatedness(part),
        by_size[0] if by_size else None,
        by_size[-1] if by_size else None,
    )


def diagnose(
    data: str | Path | Iterable[Example | Mapping[str, Any]],
    *,
    checklist: str | Path | Checklist | None = None,
    model: ModelLike | None = None,
    prompt: str | Path | Prompt | None = None,
    verdicts: str | Path | Iterable[Verdict] | None = None,
    watcher: Watcher | None = None,
    progress: bool | None = None,
    **options: Unpack[DiagnoseSettings],
) -> Diagnosis:
    """Say what a judge's verdicts tell about each question of a checklist.

    The verdicts are given, or they are bought as by :func:`~askance.evaluation.evaluate.evaluate`.

    Args:
        data: JSONL or CSV file, or rows.
        checklist: YAML or JSON file, or a checklist; none for a judge in people's own words (``reads``).
        model: ``provider/model``, or an object that can be asked. With given verdicts: only those of this model count.
        prompt: File or prompt; askance's own neutral one by default. With given verdicts: only those made with this
            prompt count.
        verdicts: File as ``askance evaluate -o`` writes it, or verdicts; then nothing is bought.
        watcher: Told how the work goes on.
        progress: Show how the work goes on; by default in notebooks only.
        options: Settings of :class:`~askance.evaluation.options.DiagnoseOptions`, among them ``store`` and
            ``no_cache``.

    Raises:
        InputError: Bad data, checklist, prompt, model name, verdicts or setting.
        BudgetExceededError: A cap was reached; the answers so far are kept.
        AskanceError: The endpoint is down or refuses every call.
    """
    asked, given = named_models(options, model)
    settings = parse_options(DiagnoseOptions, given)
    if verdicts is not None:
        refuse_idle(settings, verdicts=verdicts)
        checklist, settings = judge_asked(checklist, prompt, settings)
        return _of_given(data, checklist, asked, prompt, verdicts, settings)
    if asked is None:
        raise InputError("Diagnosing needs a model to ask, or verdicts that are there already.")
    job = prepare(data, checklist, asked, prompt, given)
    found = replace(job, examples=unrated(job.examples)).run(watcher, progress)
    done = diagnose_verdicts(
        job.examples, job.checklist, found.verdicts, pairs=settings.pairs, human_scale=settings.human_scale
    )
    return replace(done, budget=found.budget)


adiagnose = awaited(diagnose)


def prepare(
    data: str | Path | Iterable[Example | Mapping[str, Any]],
    checklist: str | Path | Checklist | None,
    model: str | Model,
    prompt: str | Path | Prompt | None,
    options: Mapping[str, Any],
) -> EvaluationJob:
    """Prepare the evaluation that a diagnosis buys. InputError names the file, line and field at fault."""
    questions, settings = judge_asked(checklist, prompt, parse_options(DiagnoseOptions, options))
    return EvaluationJob(*load_inputs(data, questions, prompt, settings), model, EvaluateOptions.of(settings))


def _of_given(
    data: str | Path | Iterable[Example | Mapping[str, Any]],
    checklist: str | Path | Checklist,
    model: str | Model | None,
    prompt: str | Path | Prompt | None,
    verdicts: str | Path | Iterable[Verdict],
    settings: DiagnoseOptions,
) -> Diagnosis:
    """Diagnose given verdicts of one judge, on the examples that ``limit`` leaves."""
    whole = load_examples(data, fields=settings.field, labels=settings.labels, label_scale=settings.label_scale)
    examples = whole[: settings.limit]
    questions = load_checklist(checklist)
    given = given_verdicts(verdicts, whole, questions, model, prompt, settings)
    if len(examples) < len(whole):
        given = given.only(given.places("example", column(examples, "id")) >= 0)
    return diagnose_verdicts(examples, questions, given, pairs=settings.pairs, human_scale=settings.human_scale)
