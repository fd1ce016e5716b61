"""From ratings to the table: the statistics of :mod:`~askance.evaluation.compare.comparison`, EM_dim among them.

EM_dim (EIG paper §4.4) says whether a free-form judge looks at the same aspects when asked again. A model names the
aspects of the first evaluation, G, and then those of G that the second evaluation looks at too; EM_dim is their share,
k / |G|. In the paper the model says the share; here it names the aspects, and they are counted. The measure depends on
that model, so it compares judges and is no absolute figure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, ConfigDict, Field

from ...agents.agent import ParseError, ask_for
from ...agents.buying import Estimate, all_together
from ...models.base import ModelError
from ...prompts.examples import documents
from ...prompts.raters import rater_columns
from ...prompts.templates import render
from ...stats.agreement import cohen_kappa, kappa_self, leave_one_out, observed_agreement, to_points
from ...stats.correlation import METHODS, PerGroup, between_systems, correlate, per_group
from ...stats.differences import Difference, compare_distributions, holm, two_sided_difference
from ...stats.resampling import Resampling, Statistic, mean_with_interval
from ..raters.agreement import agreement_of_raters
from ..raters.comment_coverage import CommentCoverage, comment_coverage
from ..scoring import complete_mean, coverage, mean_score
from .comparison import LEVEL, AgainstFirst, Comparison, JudgeRow, OnDimension, WithPeople
from .costs import Costs, spent

if TYPE_CHECKING:
    from ...models.base import Model
    from ...models.budget import Budget
    from ...models.gateway import Gateway
    from ...prompts.examples import Example
    from ..options import CompareOptions
    from ..scoring import Targets
    from .protocol import JudgeOutput, JudgeScore, Named

MOST_ASPECTS = 8
TOKENS = 200
ROLE = "em_dim"
"""Name under which calls for EM_dim are booked; they are not part of a judge's cost."""
FREE = ("cot",)
"""Judges that say which aspects they look at."""
NAMELESS = ("direct", "poll")
"""Judges that say a number and nothing else. All others ask fixed questions."""

Name = Annotated[str, Field(min_length=1, max_length=60)]


class _Aspects(BaseModel):
    model_config = ConfigDict(extra="forbid")
    aspects: list[Name] = Field(max_length=MOST_ASPECTS)


class _Kept(BaseModel):
    model_config = ConfigDict(extra="forbid")
    kept: list[Name]


async def name_aspects(ratings: Sequence[JudgeScore], gateway: Gateway, model: Model, seed: int) -> Named:
    """Have a model name the aspects that the first two evaluations of each example look at.

    An example is passed over if it has no second evaluation, or the model gives no usable reply about it.
    """
    reasons = {(each.example, each.dimension, each.replicate): each.reasons for each in ratings if each.reasons}
    repeated = [(example, dimension) for example, dimension, replicate in reasons if replicate == 1]
    found: dict[tuple[str, str], float | None] = {}

    async def one(place: tuple[str, str]) -> None:
        first, second = reasons.get((*place, 0)), reasons[*place, 1]
        if first is None or second is None:
            return
        try:
            found[place] = await _share_kept(place[1], first, second, gateway, model, seed)
        except ParseError:
            return
        except ModelError as error:
            if error.fatal:
                raise

    await all_together(repeated, one, gateway.concurrency(model))
    return found


def estimate_naming(judges: Sequence[str], examples: int, dimensions: int, reasons: int) -> Estimate:
    """Estimate the most that :func:`name_aspects` buys: two calls for each example and dimension of a free-form judge.

    ``judges`` names a judge once for each of its models; ``reasons`` are the tokens of the longest evaluation.
    """
    calls = 2 * examples * dimensions * sum(name in FREE for name in judges)
    return Estimate(0, calls, 0, calls * (reasons + 2 * TOKENS))


async def _share_kept(
    dimension: str, first: str, second: str, gateway: Gateway, model: Model, seed: int
) -> float | None:
    """Return the share of the first evaluation's aspects that the second one has too; None if the first has none."""
    message = render(
        "drift_named", dimension=dimension.replace("_", " "), reasons=first.strip(), most=str(MOST_ASPECTS)
    )
    named = await ask_for(gateway, ROLE, model, [("user", message)], _Aspects, max_tokens=TOKENS, seed=seed)
    aspects = list(dict.fromkeys(named.aspects))
    if not aspects:
        return None

    def known(reply: _Kept) -> None:
        if strange := [each for each in reply.kept if each not in aspects]:
            raise ValueError(f"'{strange[0]}' is not one of the aspects above")

    shown = "\n".join(f"- {each}" for each in aspects)
    message = render("drift_kept", aspects=shown, reasons=second.strip())
    again = await ask_for(gateway, ROLE, model, [("user", message)], _Kept, max_tokens=TOKENS, seed=seed, check=known)
    return len(set(again.kept)) / len(aspects)


Columns = Mapping[str, Sequence[Sequence[float]]]
"""Scores by dimension: one column per repeat, on the common examples."""
SWAPS = 4
"""Each comparison gets at least this number of swaps, divided by the corrected level. So the smallest p-value is half
of that level, however many judges and dimensions there are."""


@dataclass(frozen=True)
class _Table:
    """The examples that a judge is compared on, with people's scores and the settings."""

    kept: Sequence[Example]
    targets: Targets | None
    options: CompareOptions

    @cached_property
    def resampling(self) -> Resampling:
        """Draws the examples, or their documents."""
        return Resampling(documents(self.kept), self.options.resamples, seed=self.options.seed)

    def wanted(self, dimension: str) -> list[float | None] | None:
        """People's scores on a dimension; None where nobody rated the examples."""
        people = self.targets
        return None if people is None else [people.wanted[each.id].get(dimension) for each in self.kept]


def compare_ratings(
    judged: Sequence[JudgeOutput],
    examples: Sequence[Example],
    targets: Targets | None,
    model: str,
    options: CompareOptions,
    budget: Budget,
) -> Comparison:
    """Put the judges side by side, and compare all with the first. ``targets`` are human scores, if there are any."""
    dimensions = tuple(dict.fromkeys(rating.dimension for rating in judged[0].ratings))
    complete = [_complete(each, examples) for each in judged]
    able = [each for each in complete if each]  # a judge without one example scored in full is left out
    common = set.intersection(*able) if able else set()
    table = _Table([example for example in examples if example.id in common], targets, options)
    left_out = tuple(each.name for each, mine in zip(judged, complete, strict=True) if table.kept and not common & mine)
    tables = [replace(table, kept=[]) if each.name in left_out else table for each in judged]
    sheets = [_columns(each, theirs, dimensions) for each, theirs in zip(judged, tables, strict=True)]
    human = {} if targets is None else {e.id: {d: targets.wanted[e.id].get(d) for d in dimensions} for e in examples}
    return Comparison(
        model=model,
        examples=len(examples),
        common=tuple(example.id for example in table.kept),
        dimensions=dimensions,
        points=options.points,
        tolerance=options.tolerance,
        repeat=options.repeat,
        temperature=options.temperature,
        rows=[_row(*each, len(examples)) for each in zip(judged, sheets, tables, strict=True)],
        among_people=_among_people(table, dimensions),
        differences=_differences(judged, sheets, table),
        ratings={each.name: each.ratings for each in judged},
        human=human,
        paid=spent(budget),
        cached_calls=budget.cached_calls,
        raters=agreement_of_raters(table.kept, dimensions, table.resampling) if table.kept else None,
        left_out=left_out,
    )


def _complete(judged: JudgeOutput, examples: Sequence[Example]) -> set[str]:
    """Return the ids of the examples without a missing score."""
    return {example.id for example in examples} - {each.example for each in judged.ratings if each.score is None}


def _columns(judged: JudgeOutput, table: _Table, dimensions: Sequence[str]) -> Columns:
    scores = {(rating.example, rating.dimension, rating.replicate): rating.score for rating in judged.ratings}
    columns: dict[str, list[list[float]]] = {}
    for dimension in dimensions:
        cells = [
            [scores[example.id, dimension, place] for example in table.kept] for place in range(table.options.repeat)
        ]
        columns[dimension] = [[score for score in column if score is not None] for column in cells]
    return columns


def _row(judged: JudgeOutput, sheet: Columns, table: _Table, examples: int) -> JudgeRow:
    found = {name: _on_dimension(judged, name, repeats, table) for name, repeats in sheet.items()}
    average: dict[str, float | None] = {}
    for name in METHODS:
        values = [None if each.people is None else getattr(each.people.pooled, name).value for each in found.values()]
        average[name] = complete_mean(values)
    ratings, each = examples * table.options.repeat, judged.rating
    dollars = None if each.cost_usd is None else each.cost_usd / ratings
    costs = Costs(judged.upfront, each.calls / ratings, each.tokens / ratings, dollars, examples)
    comments = _comments(judged, table)
    return JudgeRow(judged.entrant, coverage(judged.ratings), found, costs, average, judged.written, comments)


def _comments(judged: JudgeOutput, table: _Table) -> CommentCoverage | None:
    """Return the coverage of people's comments by a judge's first answers; None if it asks no yes/no questions."""
    first = (each for each in judged.ratings if each.replicate == 0 and each.finds_fault is not None)
    found = {each.example: bool(each.finds_fault) for each in first}
    if table.targets is None or not found:
        return None
    return comment_coverage(table.kept, found, table.targets, table.resampling)


def _on_dimension(
    judged: JudgeOutput, dimension: str, repeats: Sequence[Sequence[float]], table: _Table
) -> OnDimension:
    options, wanted = table.options, table.wanted(dimension)
    if options.repeat > 1:
        self_agreement = kappa_self([to_points(column, options.points) for column in repeats], table.resampling)
    else:
        self_agreement = Statistic(None, len(table.kept), None, None, "it judged once; --repeat 2 makes it judge again")
    people = None if wanted is None else _with_people(repeats[0], wanted, table)
    drift = _em_dim(judged, dimension, table) if options.em_dim else None
    return OnDimension(people, self_agreement, mean_score(repeats[0]), drift)


def _em_dim(judged: JudgeOutput, dimension: str, table: _Table) -> Statistic:
    """Return EM_dim over the common examples; 1 if the judge's questions are fixed, as each judging keeps them all."""
    if judged.entrant.judge in NAMELESS:
        return Statistic(None, 0, None, None, "it says a number and not what it looks at")
    shares: list[float | None] = [1.0] * len(table.kept)
    if judged.named is not None:
        shares = [judged.named.get((example.id, dimension)) for example in table.kept]
    return mean_with_interval(shares, table.resampling, "no first judging names a dimension")


def _with_people(scores: Sequence[float], wanted: Sequence[float | None], table: _Table) -> WithPeople:
    options, resampling = table.options, table.resampling
    groups, systems = resampling.groups, [example.system for example in table.kept]
    judge_points, human_points = (to_points(column, options.points) for column in (scores, wanted))
    by_document: dict[str, PerGroup] | None = None
    if groups:
        by_document = {name: per_group(scores, wanted, groups, name, resampling) for name in METHODS}
    return WithPeople(
        pooled=correlate(scores, wanted, resampling),
        per_document=by_document,
        per_system=between_systems(scores, wanted, systems, resampling),
        observed_agreement=observed_agreement(judge_points, human_points, resampling, tolerance=options.tolerance),
        qwk=cohen_kappa(judge_points, human_points, resampling, weights="quadratic"),
        distribution=compare_distributions(scores, wanted, resampling),
    )


def _among_people(table: _Table, dimensions: Sequence[str]) -> dict[str, dict[str, Statistic]]:
    """Return the agreement of people among themselves, where several rated the same examples."""
    found: dict[str, dict[str, Statistic]] = {}
    for dimension in dimensions:
        raters = list(rater_columns(table.kept, dimension).values())
        if len(raters) > 1:
            found[dimension] = {method: leave_one_out(raters, method, table.resampling) for method in METHODS}
    return found


def _differences(judged: Sequence[JudgeOutput], sheets: Sequence[Columns], table: _Table) -> list[AgainstFirst]:
    """Compare every other judge with the first on each dimension, with p-values adjusted for all comparisons."""
    least = ceil(SWAPS * sum(map(len, sheets[1:])) / LEVEL)
    resampling = replace(table.resampling, resamples=max(table.options.resamples, least))
    found: list[tuple[str, str, Difference]] = []
    for entry, sheet in zip(judged[1:], sheets[1:], strict=True):
        for dimension, repeats in sheet.items():
            if (wanted := table.wanted(dimension)) is None:
                return []
            nothing: list[float | None] = [None] * len(table.kept)  # of a judge that is left out
            first, other = sheets[0][dimension][0] or nothing, repeats[0] or nothing
            found.append((entry.name, dimension, two_sided_difference(first, other, wanted, resampling)))
    adjusted = holm([difference.p_value for _, _, difference in found])
    return [AgainstFirst(*entry, p) for entry, p in zip(found, adjusted, strict=True)]
