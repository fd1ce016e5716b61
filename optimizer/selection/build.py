"""From answers and ratings to the finished selection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...agents.requests import each_format, question_block
from ...evaluation.options import SelectOptions
from ...models.budget import Budget, estimate_tokens
from ...prompts.checklist import Checklist, Sees
from ...prompts.errors import CoverageError
from ...prompts.examples import documents, human_dimensions
from ...prompts.formatting import Figure
from ...prompts.prompt import frame
from ...stats.correlation import Correlations, correlate, spearman
from ...stats.differences import Difference, paired_difference
from ...stats.resampling import Resampling
from .analysis import (
    Analysis,
    Curve,
    SampleTables,
    analyse,
    answers_from_ratings,
    answers_from_verdicts,
    compare_sets,
    conditional_table,
    equal_groups,
    human_scores,
    judged_ratings,
)
from .convergence import ranking_convergence
from .information import Floats, one_hot
from .inputs import Bought, Inputs
from .selected import Prefix, QuestionReport, Selection

_RESAMPLES = 1000
"""Behind the intervals of correlations with people."""


def build_selection(
    inputs: Inputs, bought: Bought, settings: SelectOptions, models: Mapping[str, str], budget: Budget
) -> Selection:
    """Choose the questions and put together what is known of them.

    Raises:
        CoverageError: There is no answer or no rating at all, so there is nothing to choose by.
    """
    tables, source = gather(inputs, bought, settings)
    rated = tables.codes >= 0
    if not rated.any() or np.isnan(tables.answers[rated][:, :, 0]).all():
        why = f" The first problem: {bought.problems[0]}" if bought.problems else ""
        raise CoverageError(f"No example has both an answer and a rating, so no question can be chosen.{why}")
    tokens = question_tokens(bought.candidates)
    costs = tokens if settings.per_token else None
    k = min(settings.k, len(bought.candidates.questions))
    found = analyse(
        tables,
        k,
        correction=settings.correction,
        costs=costs,
        halves=settings.halves,
        seed=settings.seed,
    )
    method = settings.choice
    why = "it was asked for" if method == "top" else compare_sets(found.curves, k)
    chosen = [bought.candidates.questions[place] for place in found.curves[method].order[:k]]
    questions = tuple(each.model_copy(update={"weight": 1.0}) for each in chosen)
    checklist = Checklist(task=inputs.task, questions=questions, answers=bought.candidates.answers)
    agreement = _agreement(tables, found.curves[method].order[:k], settings.seed)
    agrees = bool(agreement) and Figure.of(agreement["all"].spearman).side == 1
    shared = _shared_tokens(inputs, bought.candidates)
    curves = {
        name: _prefixes(curve, bought.candidates, tables, tokens, shared, settings, agrees=agrees)
        for name, curve in found.curves.items()
    }
    convergence = ranking_convergence(
        tables.answers,
        tables.ratings,
        k=k,
        resamples=settings.ranking_resamples,
        seed=settings.seed,
        correction=settings.correction,
        conditional=tables.conditional,
        costs=costs,
    )
    return Selection(
        checklist=checklist,
        candidates=bought.candidates,
        k=k,
        method=method,
        why=why,
        questions=_question_reports(bought, found, tables, tokens, {each.id for each in chosen}),
        curves=curves,
        convergence=convergence,
        pool=bought.pool,
        examples=len(inputs.examples),
        sample=tuple(example.id for example in inputs.examples),
        rated=int(rated.sum()),
        rating_source=source,
        rating_counts=_rating_counts(tables, bought),
        coverage=bought.coverage,
        problems=bought.problems,
        agreement=agreement,
        settings=settings.model_dump(mode="json"),
        models=models,
        budget=budget,
    )


def gather(inputs: Inputs, bought: Bought, settings: SelectOptions) -> tuple[SampleTables, str]:
    """The tables, and in words where the ratings come from."""
    examples, candidates = inputs.examples, bought.candidates
    if settings.answer_levels == 2:
        answers, scores = answers_from_verdicts(bought.verdicts, examples, candidates, settings.answers)
    else:
        hard = settings.answers == "hard"
        answers, scores = answers_from_ratings(bought.degrees, examples, candidates, settings.answer_levels, hard=hard)
    people = name = None
    if human_dimensions(examples):
        name, people = human_scores(examples, settings.rating_dimension, settings.human_scale)
    if inputs.by_people:
        assert people is not None
        codes = equal_groups(people, settings.rating_levels)
        ratings = one_hot(codes, int(codes.max(initial=0)) + 1)
        source = f"people: {name}, in {ratings.shape[1]} groups, as equal in size as ties allow"
    else:
        ratings, expected = judged_ratings(bought.ratings, settings.rating_levels)
        codes = equal_groups(expected, settings.rating_levels)
        ways = sorted({str(each.source) for each in bought.ratings if each.source})
        source = f"the judge, 1 to {settings.rating_levels}, from {' and '.join(ways) or 'nothing'}"
    given = conditional_table(bought.given, examples, candidates, settings.rating_levels) if bought.given else None
    return SampleTables(answers, scores, ratings, codes, people, given, documents(examples)), source


def question_tokens(candidates: Checklist) -> Floats:
    """About how many tokens each question adds to a request, with the sentence that says how to answer."""
    form = each_format(explained=False)
    return np.array([estimate_tokens(f"{question_block(each)}\n{form}") for each in candidates.questions], dtype=float)


def _shared_tokens(inputs: Inputs, candidates: Checklist) -> dict[Sees, float]:
    """Tokens of what comes before and after a question, on average over the sample, by what questions see."""
    found: dict[Sees, float] = {}
    for sees in dict.fromkeys(each.sees for each in candidates.questions):
        framings = [frame(inputs.prompt, example, sees) for example in inputs.examples]
        texts = [f"{each.prefix}{each.after}" for each in framings]
        found[sees] = float(np.mean([estimate_tokens(text) for text in texts]))
    return found


def _prefixes(
    curve: Curve,
    candidates: Checklist,
    tables: SampleTables,
    tokens: Floats,
    shared: Mapping[Sees, float],
    settings: SelectOptions,
    *,
    agrees: bool,
) -> list[Prefix]:
    order = list(curve.order)
    views = [candidates.questions[place].sees for place in order]
    alone = settings.mode != "batched"  # else those that see the same are one call
    around = [shared[sees] if alone or sees not in views[:place] else 0.0 for place, sees in enumerate(views)]
    cost = np.cumsum(tokens[order] + np.array(around))
    most = np.nanmax(curve.held_out) if not np.isnan(curve.held_out).all() else np.nan
    every = curve.correlation[-1]
    against = _less_all(tables, order, settings.seed)
    return [
        Prefix(
            k=place + 1,
            question=candidates.questions[question].id,
            gain=_number(curve.gains[place]),
            information=float(curve.information[place]),
            held_out=_number(curve.held_out[place]),
            information_share=_number(max(curve.held_out[place], 0.0) / most) if most > 0 else None,
            correlation=_number(curve.correlation[place]),
            correlation_share=_number(curve.correlation[place] / every) if agrees and every > 0 else None,
            spearman=against[place][0],
            less_all=against[place][1],
            cost_share=float(cost[place] / cost[-1]),
            per_combination=float(curve.per_combination[place]),
        )
        for place, question in enumerate(order)
    ]


def _less_all(tables: SampleTables, order: Sequence[int], seed: int) -> list[tuple[float | None, Difference | None]]:
    """Spearman with people of the first 1, 2, ... questions on the whole sample, and how that differs from all."""
    if tables.human is None:
        return [(None, None)] * len(order)
    means = np.cumsum(tables.scores[:, list(order)], axis=1) / np.arange(1, len(order) + 1)
    resampling = Resampling(tables.groups, _RESAMPLES, seed=seed)
    return [
        (spearman(part, tables.human).value, paired_difference(means[:, -1], part, tables.human, resampling))
        for part in means.T
    ]


def _question_reports(
    bought: Bought, found: Analysis, tables: SampleTables, tokens: Floats, kept: set[str]
) -> list[QuestionReport]:
    info = found.information
    ranks = {
        method: {place: rank for rank, place in enumerate(curve.order, 1)} for method, curve in found.curves.items()
    }
    present = ~np.isnan(tables.scores)
    reports = []
    for place, question in enumerate(bought.candidates.questions):
        answered = tables.scores[present[:, place], place]
        reports.append(
            QuestionReport(
                id=question.id,
                text=question.text,
                dimension=question.dimension,
                kept=question.id in kept,
                eig=_number(info.plugin[place]),
                bias=_number(info.bias[place]),
                bits=_number(info.bits[place]),
                tokens=int(tokens[place]),
                bits_per_token=_number(info.bits[place] / tokens[place]),
                examples=int(info.examples[place]),
                missing=int((~present[:, place]).sum()),
                mean_score=float(answered.mean()) if len(answered) else None,
                rank_top=ranks["top"][place],
                rank_joint=ranks["joint"][place],
                good=question.good,
            )
        )
    return reports


def _rating_counts(tables: SampleTables, bought: Bought) -> dict[str, int]:
    counts = {f"group {code + 1}": int((tables.codes == code).sum()) for code in range(int(tables.codes.max()) + 1)}
    for rating in bought.ratings:
        if rating.status != "ok":
            counts[rating.status] = counts.get(rating.status, 0) + 1
    return counts


def _agreement(tables: SampleTables, chosen: Sequence[int], seed: int) -> dict[str, Correlations]:
    if tables.human is None:
        return {}
    sets: dict[str, list[Any]] = {"chosen": list(chosen), "all": list(range(tables.scores.shape[1]))}
    return {
        name: correlate(
            tables.scores[:, places].mean(axis=1),
            tables.human,
            Resampling(tables.groups, _RESAMPLES, seed=seed),
        )
        for name, places in sets.items()
    }


def _number(value: Any) -> float | None:
    """A number, or None where it is undefined."""
    return None if np.isnan(value) else float(value)
