"""Figures of a run: scores by dimension, each question's share of yes, and which questions go together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter

from markupsafe import Markup

from ..memory.records import MeasureRecord
from ..prompts.formatting import Figure
from ..prompts.verdicts import Verdict
from ..stats.differences import Difference
from ..stats.phi import PhiMatrix, Relatedness, phi_matrix, relatedness
from .charts import Scale, histogram, tallest_bar
from .page import Section
from .run_data import RunData


@dataclass(frozen=True)
class ScoreRow:
    """Figures of one dimension on one split."""

    name: str
    whole: bool
    before: MeasureRecord
    after: MeasureRecord | None
    """None if the accepted prompt is the starting prompt."""
    gain: Difference | None


@dataclass(frozen=True)
class SplitScores:
    """Figures of all dimensions on one split."""

    split: str
    size: int | None
    rows: Sequence[ScoreRow]
    missing: str | None

    @property
    def correlations(self) -> Section:
        """Table of all correlations of a judge."""
        sides = [
            (row.name, side, found)
            for row in self.rows
            for side, found in (("starting", row.before), ("new", row.after))
            if found
        ]
        rows = [
            {"dimension": name, "judge": side, "n": found.n}
            | {kind: Figure(getattr(found, kind)) for kind in ("spearman", "kendall", "pearson")}
            for name, side, found in sides
        ]
        return Section(self.split, f"All correlations on {self.split}", rows)


def scores(data: RunData) -> tuple[list[SplitScores], Scale]:
    """Return the figures of the starting and the accepted prompt on test and validation, and one axis for all."""
    changed = data.result.changed
    made = []
    for split, before, after, gain in reversed(data.result.splits):
        rows = []
        if before:
            names = list(before.dimensions)
            whole = names[0] if len(names) == 1 else "All dimensions (criteria)"
            rows.append(ScoreRow(whole, True, before, after if changed else None, gain))
            for name in names if len(names) > 1 and before.optimised is None else ():
                now = after.dimensions[name] if changed and after else None
                rows.append(ScoreRow(name, False, before.dimensions[name], now, None))
        reason = None if before else data.result.baseline.reason or "it was not judged."
        made.append(SplitScores(split, data.split_size(split), rows, reason))
    ends = [
        end
        for each in made
        for row in each.rows
        for side in (row.before, row.after)
        if side
        for end in (side.shown.low, side.shown.high, side.value)
    ]
    return made, Scale.over(ends)


SHOWN_QUESTIONS = 60
"""Most questions shown. If there are more, those furthest from the wanted answers are shown."""
MAPPED_QUESTIONS = 40
"""Most questions in the heat map."""


@dataclass(frozen=True)
class QuestionRow:
    """One question; or one dimension, if examples have questions of their own."""

    number: int
    name: str
    text: str
    dimension: str
    before: float | None
    """Mean P(yes) of the starting version on the split of :class:`Parity`."""
    after: float | None
    wanted: float | None
    """Mean wanted P(yes) over the same examples."""
    yes_before: float | None
    """Share of yes on the test examples."""
    yes_after: float | None

    @property
    def gap(self) -> float:
        """Distance of the last version's mean P(yes) from the wanted mean; 0 if one of them is not known."""
        last = self.before if self.after is None else self.after
        return 0.0 if last is None or self.wanted is None else abs(last - self.wanted)


@dataclass(frozen=True)
class Parity:
    """All questions: their answers beside the wanted answers."""

    split: str
    """``test``, or ``development`` if the wanted answers are known only there."""
    rows: Sequence[QuestionRow]
    left_out: int
    of_their_own: bool
    """Whether examples have questions of their own. Each row is then a dimension."""

    @property
    def has_wanted(self) -> bool:
        """Whether the wanted answer to any question is known."""
        return any(row.wanted is not None for row in self.rows)


def parity(data: RunData) -> Parity | None:
    """Compare each question's mean P(yes) with the wanted mean. None if the run kept no verdicts."""
    kept = data.kept
    if not kept.of(kept.first, "test") and not kept.of(kept.first, "development"):
        return None
    split = _split_with_wanted(data)
    has_own = has_own_questions(data)

    def group(verdict: Verdict) -> str:
        return data.question(verdict.example, verdict.question)[1] if has_own else verdict.question

    def means(version: int, split: str, value: Callable[[Verdict], float | None]) -> dict[str, float]:
        return _means((group(each), value(each)) for each in kept.of(version, split))

    p_yes, answer = attrgetter("p_yes"), attrgetter("answer")

    def wish(verdict: Verdict) -> float | None:
        return None if verdict.p_yes is None else kept.wanted.get((verdict.example, verdict.question))

    before, yes_before = means(kept.first, split, p_yes), means(kept.first, "test", answer)
    after, yes_after = {}, {}
    if kept.changed:
        after, yes_after = means(kept.best, split, p_yes), means(kept.best, "test", answer)
    wanted = means(kept.best if kept.of(kept.best, split) else kept.first, split, wish)
    beside = {question: found for (_, question), found in reversed([*kept.questions.items()])}
    known = {name: ("", name) for name in (*before, *after)} if has_own else beside | data.shared_questions
    names = dict.fromkeys([*([] if has_own else data.shared_questions), *before, *after])
    rows = []
    for place, name in enumerate((each for each in names if each in before or each in after), 1):
        text, dimension = known.get(name, (name, ""))
        means_of_it = (each.get(name) for each in (before, after, wanted, yes_before, yes_after))
        rows.append(QuestionRow(place, name, text, dimension, *means_of_it))
    shown = rows
    if len(rows) > SHOWN_QUESTIONS:
        far = {row.number for row in sorted(rows, key=lambda row: -row.gap)[:SHOWN_QUESTIONS]}
        shown = [row for row in rows if row.number in far]
    return Parity(split, shown, len(rows) - len(shown), has_own)


def has_own_questions(data: RunData) -> bool:
    """Whether one id stands for different questions on different examples."""
    texts: dict[str, str] = {}
    return any(texts.setdefault(name, text) != text for (_, name), (text, _) in data.kept.questions.items())


@dataclass(frozen=True)
class Together:
    """How alike questions are answered (phi)."""

    matrix: PhiMatrix
    found: Relatedness
    left_out: int


def together(data: RunData) -> Together | None:
    """Return phi of every pair of questions on the last version's test answers. None if there is no pair of shared
    questions."""
    verdicts = data.kept.of(data.kept.best, "test") or data.kept.of(data.kept.first, "test")
    if not verdicts or has_own_questions(data):
        return None
    import numpy as np

    names = list(dict.fromkeys(each.question for each in verdicts))
    order = [name for name in data.shared_questions if name in names]
    names = order or names
    if len(names) < 2:
        return None
    replicates = sorted({each.replicate for each in verdicts})
    places = {name: place for place, name in enumerate(dict.fromkeys(each.example for each in verdicts))}
    columns = {name: place for place, name in enumerate(names)}
    answers = np.full((len(places) * len(replicates), len(names)), np.nan)
    for each in verdicts:
        if each.answer is not None and each.question in columns:
            row = places[each.example] * len(replicates) + replicates.index(each.replicate)
            answers[row, columns[each.question]] = each.answer
    matrix = phi_matrix(names, answers, len(replicates))
    shown = matrix.only(names[:MAPPED_QUESTIONS])
    return Together(shown, relatedness(matrix), len(names) - len(shown.questions))


def _split_with_wanted(data: RunData) -> str:
    """Return the split on which the wanted answers of at least half of the verdicts are known, ``test`` before
    ``development``. If there is none: ``test`` if it has verdicts, else ``development``."""
    for split in ("test", "development"):
        verdicts = data.kept.of(data.kept.first, split)
        known = sum((each.example, each.question) in data.kept.wanted for each in verdicts)
        if verdicts and known >= len(verdicts) / 2:
            return split
    return "test" if data.kept.of(data.kept.first, "test") else "development"


def _means(values: Iterable[tuple[str, float | None]]) -> dict[str, float]:
    """Return the mean of the known values, by name."""
    known: dict[str, list[float]] = {}
    for name, value in values:
        if value is not None:
            known.setdefault(name, []).append(value)
    return {name: sum(mine) / len(mine) for name, mine in known.items()}


@dataclass(frozen=True)
class Spread:
    """Distribution of the test examples' scores by one judge, or by people."""

    name: str
    kind: str
    mean: float
    n: int
    drawing: Markup


def spreads(data: RunData) -> list[Spread]:
    """Return the distributions of the wanted scores and of both versions' scores, on the same examples."""
    whole = [
        each
        for each in data.kept.scored
        if each.before is not None
        and (each.after is not None or not data.kept.changed)
        and (each.wanted is not None or not data.is_judge)
    ]
    if not whole:
        return []
    reference = data.result.whose[0].upper() + data.result.whose[1:]
    columns = [
        (reference, "people", [each.wanted for each in whole]),
        (f"Starting {data.result.thing}", "before", [each.before for each in whole]),
        (f"New {data.result.thing}", "after", [each.after for each in whole]),
    ]
    known = [(name, kind, [value for value in values if value is not None]) for name, kind, values in columns]
    known = [each for each in known if each[2]]
    tallest = tallest_bar([values for _, _, values in known])
    return [
        Spread(name, kind, sum(values) / len(values), len(values), histogram(values, kind, tallest))
        for name, kind, values in known
    ]
