"""Question by question: how often each is answered yes, how near that is to what was wanted, and which go together; which
answers a migrated judge has in common with its source, and how each question was worded anew."""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING

from ..memory.decision import CALIBRATIONS
from ..stats.phi import phi_matrix, relatedness
from .charts import histogram, tallest_bar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from markupsafe import Markup

    from ..memory.records import CalibratedRecord, ParityRecord, QuestionWordings
    from ..prompts.verdicts import Verdict
    from ..stats.phi import PhiMatrix, Relatedness
    from .run_data import RunData


SHOWN_QUESTIONS = 60
"""Questions shown; of more than these, the ones that are furthest from what was wanted."""
MAPPED_QUESTIONS = 40
"""Questions in the heat map."""


@dataclass(frozen=True)
class QuestionRow:
    """One question, or where examples have questions of their own, one dimension of them."""

    number: int
    name: str
    text: str
    dimension: str
    before: float | None
    """Mean P(yes) of the starting version on the split of :class:`Parity`."""
    after: float | None
    wanted: float | None
    """Mean of what it should have been, over the same examples."""
    yes_before: float | None
    """Share of yes on the test examples."""
    yes_after: float | None

    @property
    def gap(self) -> float:
        """How far the last version is from what was wanted; 0 where that is not known."""
        last = self.before if self.after is None else self.after
        return 0.0 if last is None or self.wanted is None else abs(last - self.wanted)


@dataclass(frozen=True)
class Parity:
    """All questions."""

    split: str
    """``test``, or ``development`` where only there it is known what was wanted."""
    rows: Sequence[QuestionRow]
    left_out: int
    of_their_own: bool
    """Whether examples have questions of their own, so that dimensions stand in for them."""

    @property
    def has_wanted(self) -> bool:
        """Whether anybody knows what the answers should have been."""
        return any(row.wanted is not None for row in self.rows)


def parity(data: RunData) -> Parity | None:
    """Mean P(yes) of each question against what was wanted; None where the run kept no verdicts."""
    kept = data.kept
    if not kept.of(kept.first, "test") and not kept.of(kept.first, "development"):
        return None
    split = _split_with_wanted(data)
    own = has_own_questions(data)

    def group(verdict: Verdict) -> str:
        return data.question(verdict.example, verdict.question)[1] if own else verdict.question

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
    known = {name: ("", name) for name in (*before, *after)} if own else beside | data.shared_questions
    names = dict.fromkeys([*([] if own else data.shared_questions), *before, *after])
    rows = []
    for number, name in enumerate((each for each in names if each in before or each in after), 1):
        text, dimension = known.get(name, (name, ""))
        means_of_it = (each.get(name) for each in (before, after, wanted, yes_before, yes_after))
        rows.append(QuestionRow(number, name, text, dimension, *means_of_it))
    shown = rows
    if len(rows) > SHOWN_QUESTIONS:
        far = {row.number for row in sorted(rows, key=lambda row: -row.gap)[:SHOWN_QUESTIONS]}
        shown = [row for row in rows if row.number in far]
    return Parity(split, shown, len(rows) - len(shown), own)


def has_own_questions(data: RunData) -> bool:
    """Whether one id stands for different questions on different examples."""
    texts: dict[str, str] = {}
    return any(texts.setdefault(name, text) != text for (_, name), (text, _) in data.kept.questions.items())


@dataclass(frozen=True)
class Together:
    """Which questions are answered alike."""

    matrix: PhiMatrix
    found: Relatedness
    left_out: int


def together(data: RunData) -> Together | None:
    """Phi of every pair of questions, on the test answers of the last version; None where there are no two to compare."""
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
    """The test examples, unless only of the development examples it is known what was wanted."""
    for split in ("test", "development"):
        verdicts = data.kept.of(data.kept.first, split)
        known = sum((each.example, each.question) in data.kept.wanted for each in verdicts)
        if verdicts and known >= len(verdicts) / 2:
            return split
    return "test" if data.kept.of(data.kept.first, "test") else "development"


def _means(values: Iterable[tuple[str, float | None]]) -> dict[str, float]:
    """The mean of the known values by name."""
    known: dict[str, list[float]] = {}
    for name, value in values:
        if value is not None:
            known.setdefault(name, []).append(value)
    return {name: sum(mine) / len(mine) for name, mine in known.items()}


@dataclass(frozen=True)
class Spread:
    """The scores of the test examples by one judge, or by people."""

    name: str
    kind: str
    mean: float
    n: int
    drawing: Markup


def spreads(data: RunData) -> list[Spread]:
    """The distributions of the wanted scores, of the starting and of the new version, on the same examples."""
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


@dataclass(frozen=True)
class Bias:
    """A dimension's mean score less the wanted mean, on test."""

    dimension: str
    before: float | None
    after: float | None


def biases(data: RunData) -> list[Bias]:
    """How much too high or too low the scores are on average; empty where that was not measured."""
    drift = data.result.drift
    if "baseline" not in drift or "best" not in drift:
        return []
    after = drift["best"].mean_errors if data.result.changed else {}
    return [Bias(name, value, after.get(name)) for name, value in drift["baseline"].mean_errors.items()]


@dataclass(frozen=True)
class Calibrated:
    """One way to read the verdicts of one version."""

    side: str
    """``starting`` or ``new``."""
    reading: str
    measure: CalibratedRecord


def calibrations(data: RunData) -> Sequence[Calibrated]:
    """The verdicts as they are, with thresholds, and Platt-scaled; of both versions."""
    found = data.result.calibration
    sides = [("starting", "baseline"), *([("new", "best")] if data.result.changed else [])]
    return [
        Calibrated(which, label, found[side][name])
        for which, side in sides
        if side in found
        for name, label in {"uncalibrated": "as they are", **CALIBRATIONS}.items()
    ]


@dataclass(frozen=True)
class SameVerdictsRow:
    """One question, or all of them."""

    name: str
    text: str
    """As the accepted judge is asked it; empty for all questions together."""
    before: ParityRecord
    after: ParityRecord


@dataclass(frozen=True)
class SameVerdicts:
    """With the source, on one split."""

    split: str
    rows: Sequence[SameVerdictsRow]


def same_verdicts(data: RunData) -> list[SameVerdicts]:
    """Test first; empty where the source's verdicts on held-out examples were not bought."""
    made = []
    for split in ("test", "validation"):
        sides = data.result.parity.get(split)
        if sides is None or not {"baseline", "best"} <= sides.keys():
            continue
        before, after = sides["baseline"], sides["best"]
        rows = [SameVerdictsRow("All questions", "", before, after)]
        rows += [
            SameVerdictsRow(name, data.shared_questions.get(name, (name, ""))[0], was, after.questions[name])
            for name, was in before.questions.items()
            if name in after.questions
        ]
        made.append(SameVerdicts(split, rows))
    return made


def wordings(data: RunData) -> Sequence[QuestionWordings]:
    """What became of each question, those that are asked in other words first."""
    return sorted(data.result.wordings, key=lambda each: not each.accepted)
