"""Scores from verdicts (BinEval §3.2), and the wanted scores of people or of the source judge (``Targets``) beside
them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, overload

import numpy as np
from numpy.typing import NDArray

from ..prompts.errors import InputError, did_you_mean
from ..prompts.examples import answered_questions, documents, human_dimensions, mean_rating
from ..prompts.formatting import coverage_text
from ..prompts.human_feedback import are_labels, known_ratings
from ..prompts.mapping.proposal import scores_left
from ..prompts.rows import column
from ..prompts.verdicts import Status, VerdictColumns
from ..stats.correlation import correlate, correlations_dict
from ..stats.resampling import Resampling

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from ..prompts.checklist import Checklist
    from ..prompts.examples import Example, Ratings
    from ..prompts.verdicts import Verdict


WHOLE, ALL = "overall", "all questions"
AT_ONCE = 2**16
"""Verdicts added up at once: the indices of a million would take as much memory as the verdicts."""


@dataclass(frozen=True, slots=True)
class ExampleScore:
    """The scores of one example, in [0, 1]. None where a verdict is missing: part of a checklist is no score."""

    example: str
    overall: float | None
    dimensions: Mapping[str, float | None]


class TabledScores(Sequence[ExampleScore]):
    """Scores in columns. A score is made when it is asked for: 16 bytes an example with one dimension, not 300."""

    def __init__(self, examples: Sequence[str], dimensions: Sequence[str], values: NDArray[np.float64]) -> None:
        """``values`` has shape (1 + dimensions, examples): overall scores, then each dimension's; NaN where there is
        none."""
        self._examples, self._dimensions, self._values = examples, dimensions, values

    def __len__(self) -> int:
        return len(self._examples)

    def __iter__(self) -> Iterator[ExampleScore]:
        for name, overall, *dimensions in zip(self._examples, *(memoryview(row) for row in self._values), strict=True):
            known = [None if value != value else value for value in dimensions]
            scores = dict(zip(self._dimensions, known, strict=True))
            yield ExampleScore(name, None if overall != overall else overall, scores)

    @overload
    def __getitem__(self, place: int) -> ExampleScore: ...
    @overload
    def __getitem__(self, place: slice) -> list[ExampleScore]: ...
    def __getitem__(self, place: int | slice) -> ExampleScore | list[ExampleScore]:
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        overall, *dimensions = [None if value != value else value for value in self._values[:, place].tolist()]
        return ExampleScore(self._examples[place], overall, dict(zip(self._dimensions, dimensions, strict=True)))

    def on(self, dimensions: Sequence[str]) -> NDArray[np.float64]:
        """Return each example's mean score over dimensions, one of which may be ``overall``; shape (examples,). NaN if
        a score is missing, as in :func:`score_on`."""
        known = {name: row for row, name in enumerate(self._dimensions, 1)}
        rows = [known.get(name, 0 if name == WHOLE else None) for name in dimensions]
        if not rows or None in rows:
            return np.full(len(self), np.nan)
        mean: NDArray[np.float64] = self._values[[row for row in rows if row is not None]].mean(axis=0)
        return mean

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        return len(self) == len(other) and all(mine == theirs for mine, theirs in zip(self, other, strict=True))

    def __repr__(self) -> str:
        return f"<scores of {len(self)} examples>"


@dataclass(frozen=True, slots=True)
class Coverage:
    """Number of verdicts that were asked for, and how many are there or failed."""

    asked: int
    answered: int
    abstained: int
    parse_errors: int
    api_errors: int
    not_asked: int = 0
    """Verdicts that were not asked for because they could not matter; not among ``asked``."""

    @property
    def share(self) -> float:
        """Answered / asked, in [0, 1]; 1 where nothing was asked."""
        return self.answered / self.asked if self.asked else 1.0

    def to_dict(self) -> dict[str, float]:
        """Return the counts as in results, without ``not_asked``, which few results have."""
        counts = ("asked", "answered", "abstained", "parse_errors", "api_errors")
        return {name: getattr(self, name) for name in counts} | {"share": self.share}

    def __add__(self, other: Coverage) -> Coverage:
        return Coverage(*(getattr(self, name) + getattr(other, name) for name in self.__slots__))


def coverage_line(seen: Mapping[str, Any]) -> str:
    """Return coverage in words, from a result file, with the missing verdicts and their reasons in brackets."""
    kinds = {"abstained": "abstained", "parse_errors": "not readable", "api_errors": "failed"}
    missing = ", ".join(f"{seen[name]} {what}" for name, what in kinds.items() if seen[name])
    there = f"coverage {seen['answered']}/{seen['asked']} verdicts = {coverage_text(seen['share'])}"
    return f"{there} ({missing})" if missing else there


class HasStatus(Protocol):
    """A verdict, or another answer that was asked for and may be missing."""

    @property
    def status(self) -> Status:
        """Whether the answer is there, and if not, why."""


def coverage(verdicts: Iterable[HasStatus]) -> Coverage:
    """Count verdicts by status."""
    counts = Counter(column(verdicts, "status"))
    return Coverage(sum(counts.values()), counts["ok"], counts["abstained"], counts["parse_error"], counts["api_error"])


def worth(checklist: Checklist | None, *, soft: bool) -> Callable[[Verdict], float | None]:
    """Return the function that gives a verdict's worth: P(good) (soft), or 1 for the good answer and 0 for the other.

    The worth is None without an answer. Without a checklist, and for a question that is not in it, yes is good.
    """
    faults = {} if checklist is None else checklist.faults

    def value(verdict: Verdict) -> float | None:
        said = verdict.score(soft=soft)
        fault = faults.get(verdict.question)
        return said if fault is None else fault.p_good(said)

    return value


def score_examples(
    examples: Sequence[Example], checklist: Checklist, verdicts: Iterable[Verdict], *, soft: bool = True
) -> Sequence[ExampleScore]:
    """Score every example with the weighted mean of its verdicts' worth, S = Σ w f / Σ w (BinEval §3.2).

    f is 1 for the answer that speaks for the output: yes, or no if a question looks for a fault (``good: no``).
    Replicates of a question are averaged first. A dimension with a missing verdict has no score, and then the example
    has none overall. The weights are those of the example's section, where the checklist has some for it.
    """
    return scores_of_worth(examples, checklist, question_worth(examples, checklist, verdicts, soft=soft))


def scores_of_worth(examples: Sequence[Example], checklist: Checklist, means: NDArray[np.float64]) -> TabledScores:
    """Score every example, as :func:`score_examples` does, from the result of :func:`question_worth`.

    ``means`` has shape (examples, questions), with the questions in the order of the checklist.
    """
    places = {question.id: place for place, question in enumerate(checklist.questions)}
    sections: list[str | None] = [None, *checklist.section_weights]
    tables = {section: _weights_by_dimension(checklist, section) for section in sections}
    names = scored_dimensions(checklist)
    mine = [checklist.section_of(each) for each in column(examples, "metadata")] if len(tables) > 1 else None
    found = np.full((1 + len(names), len(examples)), np.nan)
    for section, (weights, by_dimension) in tables.items():
        rows = slice(None) if mine is None else np.array([each == section for each in mine], dtype=bool)
        for row, wanted in enumerate([weights, *(by_dimension.get(name, {}) for name in names)]):
            found[row, rows] = _weighted(means[rows], {places[each]: weight for each, weight in wanted.items()})
    return TabledScores(list(column(examples, "id")), names, found)


def scored_dimensions(checklist: Checklist) -> list[str]:
    """Return the dimensions that have a score: those with a question of weight above 0, in a section or elsewhere."""
    tables = [_weights_by_dimension(checklist, section)[1] for section in (None, *checklist.section_weights)]
    return [name for name in checklist.dimensions if any(name in table for table in tables)]


def question_worth(
    examples: Sequence[Example], checklist: Checklist, verdicts: Iterable[Verdict], *, soft: bool
) -> NDArray[np.float64]:
    """Return the mean worth of each question's answers, shape (examples, questions); NaN if an answer is missing."""
    verdicts = VerdictColumns.of(verdicts)
    shape = (len(examples), len(checklist.questions))
    rows = verdicts.places("example", column(examples, "id"))
    columns = verdicts.places("question", [question.id for question in checklist.questions])
    if (unknown := np.flatnonzero(rows < 0)).size:
        raise KeyError(verdicts[int(unknown[0])].example)
    values, faults = verdicts.said(soft=soft), np.array([each.is_fault for each in checklist.questions], dtype=bool)
    total, count = np.zeros(shape), np.zeros(shape, dtype=np.int32)
    for start in range(0, len(verdicts), AT_ONCE):
        asked = start + np.flatnonzero(columns[start : start + AT_ONCE] >= 0)
        cells = rows[asked] * shape[1] + columns[asked]
        good = np.where(faults[columns[asked]], 1.0 - values[asked], values[asked])
        np.add.at(total.ravel(), cells, good)  # in the order of the verdicts
        np.add.at(count.ravel(), cells, 1)
    total[count == 0] = np.nan
    total /= np.maximum(count, 1)
    return total


def to_scale(score: float | None, low: float, high: float) -> float | None:
    """Map a score from [0, 1] to [low, high]: S·(high - low) + low."""
    return None if score is None else score * (high - low) + low


def whole_name(dimensions: Iterable[str]) -> str:
    """Return the name of the score over all questions: ``overall``, or ``all questions`` if one of several dimensions
    is called ``overall``."""
    names = set(dimensions)
    return ALL if WHOLE in names and len(names) > 1 else WHOLE


def whole_of(means: Mapping[str, float | None]) -> float | None:
    """Return the mean over all questions from the means of a result."""
    return means[ALL if ALL in means else WHOLE]


def mean_score(values: Iterable[float | None]) -> float | None:
    """Return the mean of the scores that are there; None if there are none."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def yes_rates(verdicts: Iterable[Verdict]) -> dict[str, float]:
    """Share of yes among the answers to each question; questions without an answer are left out."""
    columns = VerdictColumns.of(verdicts)
    answers = columns.numbers("answer")
    questions, answers = columns.numbers("question")[answers >= 0], answers[answers >= 0]
    asked, yes = np.bincount(questions), np.bincount(questions, weights=answers)
    in_order = sorted(np.flatnonzero(asked).tolist(), key=lambda number: int((questions == number).argmax()))
    return {str(columns.names[number]): float(yes[number] / asked[number]) for number in in_order}


def complete_mean(values: Sequence[float | None]) -> float | None:
    """Return the mean of the values; None if one is missing or there are none: part of a whole is no score."""
    if len(values) == 1:
        return values[0]
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None


def _weights_by_dimension(
    checklist: Checklist, section: str | None
) -> tuple[dict[str, float], dict[str, dict[str, float]]]:
    """Return the weights above 0 by question, all and by dimension, in a section (None: elsewhere)."""
    given = checklist.weights(section)
    weights = {question: weight for question, weight in given.items() if weight > 0}
    by_dimension: dict[str, dict[str, float]] = {}
    for question in checklist.questions:
        if question.id in weights:
            by_dimension.setdefault(question.dimension, {})[question.id] = weights[question.id]
    return weights, by_dimension


def _weighted(means: NDArray[np.float64], weights: Mapping[int, float]) -> NDArray[np.float64]:
    """Return each example's weighted mean; NaN if an answer is missing. ``weights`` are by column of ``means``."""
    total, weight_sum = np.zeros(len(means)), 0.0
    for question, weight in weights.items():
        total += means[:, question] * weight
        weight_sum += weight
    return total / weight_sum if weight_sum else np.full(len(means), np.nan)


@dataclass(frozen=True)
class TargetCorrelations:
    """The correlation of one prompt version with the targets on one split."""

    overall: Mapping[str, Any]
    dimensions: Mapping[str, Mapping[str, Any]]

    def to_dict(self) -> dict[str, Any]:
        """Return the figures for ``result.json``."""
        return {**self.overall, "dimensions": {name: dict(values) for name, values in self.dimensions.items()}}


def measure(
    scores: Sequence[ExampleScore], targets: Targets, examples: Sequence[Example], *, resamples: int, seed: int
) -> TargetCorrelations:
    """Correlate scores with targets, over all dimensions and on each, with intervals; documents are resampled whole."""
    resampling = Resampling(documents(examples), resamples, seed=seed)

    def one(values: list[float | None], wanted: list[float | None]) -> dict[str, Any]:
        return correlations_dict(correlate(values, wanted, resampling))

    overall = one([targets.score(each) for each in scores], [targets.overall(each.example) for each in scores])
    if len(targets.dimensions) == 1:  # the mean of one is that one
        return TargetCorrelations(overall, {targets.dimensions[0]: overall})
    dimensions = {
        name: one(
            [targets.dimension_score(each, name) for each in scores],
            [targets.wanted[each.example].get(name) for each in scores],
        )
        for name in targets.dimensions
    }
    return TargetCorrelations(overall, dimensions)


Scale = tuple[float, float]
"""Lowest and highest score."""


@dataclass(frozen=True, slots=True)
class ScoreErrors:
    """Distance of scores from the wanted ones, over the examples that have both."""

    mean_absolute: float | None
    """Mean of |score - wanted|, in [0, 1]."""
    bias: float | None
    """Mean score minus mean wanted score, in [-1, 1]; negative is too severe."""
    n: int
    """Number of examples with both scores."""
    reason: str | None = None
    """Why the errors are undefined; None if they are defined."""

    def to_dict(self) -> dict[str, Any]:
        """Return the row for ``result.json``."""
        row: dict[str, Any] = {"mean_absolute": self.mean_absolute, "drift": self.bias, "n": self.n}
        return row | {"reason": self.reason} if self.reason else row


def overall_errors(scores: Sequence[ExampleScore], targets: Targets) -> ScoreErrors:
    """Errors of the score over all wanted dimensions."""
    return _errors((targets.score(each), targets.overall(each.example)) for each in scores)


def dimension_errors(scores: Sequence[ExampleScore], targets: Targets) -> dict[str, ScoreErrors]:
    """Errors of the scores on each wanted dimension."""
    return {
        name: _errors((targets.dimension_score(each, name), targets.wanted[each.example].get(name)) for each in scores)
        for name in targets.dimensions
    }


def _errors(pairs: Iterable[tuple[float | None, float | None]]) -> ScoreErrors:
    errors = [score - wanted for score, wanted in pairs if score is not None and wanted is not None]
    reason = None if errors else "no example has both a score and a wanted score"
    return ScoreErrors(mean_score(map(abs, errors)), mean_score(errors), len(errors), reason)


@dataclass(frozen=True)
class Targets:
    """A wanted score in [0, 1] for each example and dimension."""

    kind: str
    """``human`` or ``source``."""
    dimensions: tuple[str, ...]
    wanted: Mapping[str, Mapping[str, float | None]]
    """Wanted score by example id and dimension; None if there is none."""
    combined: frozenset[str] = frozenset()
    """Ids of the examples whose raters were combined by another rule than the mean."""

    def without_scale(self) -> str | None:
        """Return a warning about rated dimensions without any wanted score; None if there are none."""
        names = [each for each in self.dimensions if all(row.get(each) is None for row in self.wanted.values())]
        if not names:
            return None
        return (
            f"All human scores on {', '.join(names)} are the same, so that the scale they are on is not known and "
            "nothing is held beside them; name its ends with --human-scale, such as --human-scale 1 5."
        )

    def overall(self, example: str) -> float | None:
        """Return an example's mean wanted score over the dimensions; None if one is missing."""
        return complete_mean([self.wanted[example].get(dimension) for dimension in self.dimensions])

    def score(self, scores: ExampleScore) -> float | None:
        """Return the judge's counterpart of :meth:`overall`: its mean score over the same dimensions."""
        return score_on(scores, self.dimensions)

    def dimension_score(self, scores: ExampleScore, dimension: str) -> float | None:
        """Return the judge's score on one dimension; ``overall`` is the score over all questions."""
        return _of(scores, dimension)


def human_targets(
    examples: Sequence[Example],
    checklist: Checklist,
    scale: Scale | None = None,
    combined: Mapping[str, Mapping[str, float]] | None = None,
) -> Targets:
    """Map human scores to [0, 1], on the dimensions that people rated and the checklist scores.

    A rated dimension ``overall`` belongs to the score over all questions. People's answers to single questions are not
    scores of a dimension. Labels are always on the scale from 0 to 1, whatever ``scale`` says. Without a ``scale``, a
    dimension whose scores are all the same gives no wanted score. ``combined`` (dimension to example id to rating)
    replaces the mean of an example's raters. Raises InputError if the checklist asks about no dimension that people
    rated, or a score is outside the scale.
    """
    rated = human_dimensions(examples, checklist)
    asked = scored_dimensions(checklist)
    dimensions = tuple(each for each in rated if each in asked)
    if not dimensions and "overall" in rated:
        dimensions = ("overall",)
    if not dimensions:
        names = ", ".join(asked)
        if not rated and (answered := answered_questions(examples, checklist)):
            raise InputError(
                f"People answered single questions ({', '.join(answered)}) and rated no dimension; the checklist asks "
                f"about {names}. Give examples a score or label on one of these, or on 'overall'."
            )
        if not rated:
            like = f'"human": {{"{asked[0]}": 4}}'
            raise InputError(
                f"No example has a human score. Give each its own as {like}; the checklist asks about {names}."
                f"{scores_left(column(examples, 'metadata'))}"
            )
        if unweighed := [each for each in rated if each in checklist.dimensions]:
            raise InputError(
                f"Every question on {' and '.join(unweighed)}, which people rated, weighs 0, so there is no score to "
                f"compare with theirs. Give one a weight, or people's scores on what else is asked about: {names}."
            )
        raise InputError(nothing_in_common(asked, rated))
    bounds = {dimension: _scale(examples, dimension, scale) for dimension in dimensions}
    wanted: dict[str, Mapping[str, float | None]] = {}
    replacements = combined or {}
    # shared by examples: a few grades make few different rows
    distinct_rows: dict[tuple[float | None, ...], Mapping[str, float | None]] = {}
    for name, human in zip(column(examples, "id"), column(examples, "human"), strict=True):
        scores = tuple(
            [_unit(name, human, each, bounds[each], replacements.get(each, {}).get(name)) for each in dimensions]
        )
        wanted[name] = distinct_rows.setdefault(scores, dict(zip(dimensions, scores, strict=True)))
    taken = frozenset(name for each in dimensions for name in replacements.get(each, ()))
    return Targets("human", dimensions, wanted, taken)


def nothing_in_common(asked: Sequence[str], rated: Sequence[str]) -> str:
    """Say that people rated other dimensions than a checklist asks about, and what would help."""
    guess = next((hint for each in asked if (hint := did_you_mean(each, rated))), "")
    return (
        f"The checklist's dimensions ({', '.join(asked)}) and the rated ones ({', '.join(rated)}) have none in common, "
        "so there is nothing to correlate with. Say what the questions are about, in the checklist, with one that "
        f"people rated: dimension: {rated[0]}.{guess}"
    )


def source_targets(checklist: Checklist, scores: Sequence[ExampleScore]) -> Targets:
    """Return the source judge's own scores as targets."""
    dimensions = tuple(scored_dimensions(checklist))
    return Targets("source", dimensions, {each.example: dict(each.dimensions) for each in scores})


def _scale(examples: Sequence[Example], dimension: str, given: Scale | None) -> Scale | None:
    """Return the ends of the scale that a dimension's scores are on; None if they are unknown."""
    ratings = [rating for human in column(examples, "human") for rating in known_ratings(human.get(dimension, ()))]
    if are_labels(ratings):
        return 0.0, 1.0
    if given is not None:
        return given
    low, high = min(ratings), max(ratings)
    return (low, high) if low < high else None


def _unit(
    example: str, human: Mapping[str, Ratings], dimension: str, scale: Scale | None, combined: float | None
) -> float | None:
    score = mean_rating(human, dimension) if combined is None else combined
    if score is None or scale is None:
        return None
    low, high = scale
    for rating in known_ratings(human[dimension]):
        if not min(scale) <= rating <= max(scale):
            raise InputError(
                f"Example '{example}': the human score {rating:g} on '{dimension}' is outside the scale "
                f"{low:g} to {high:g} (--human-scale)."
            )
    return (score - low) / (high - low) + 0.0  # never -0.0


def score_on(scores: ExampleScore, dimensions: Sequence[str]) -> float | None:
    """Return the mean score over dimensions, one of which may be ``overall``; None if one is missing."""
    return complete_mean([_of(scores, dimension) for dimension in dimensions])


def _of(scores: ExampleScore, dimension: str) -> float | None:
    if dimension in scores.dimensions:
        return scores.dimensions[dimension]
    return scores.overall if dimension == "overall" else None
