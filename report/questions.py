"""Question by question: how often each is answered yes, how near that is to what was wanted, and which go together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..evaluation.scoring import yes_rates
from ..stats.phi import phi_matrix, relatedness
from .charts import histogram, tallest_bar
from .scores import CALIBRATIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from ..memory.result_file import CalibratedRecord
    from ..prompts.verdicts import Verdict
    from ..stats.phi import PhiMatrix, Relatedness
    from .run_data import RunData

    Group = Callable[[Verdict], str]

    from markupsafe import Markup


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
    """Mean P(yes) of the starting prompt on the split of :class:`Parity`."""
    after: float | None
    wanted: float | None
    """Mean of what it should have been, over the same examples."""
    yes_before: float | None
    """Share of yes on the test examples."""
    yes_after: float | None

    @property
    def gap(self) -> float:
        """How far the last prompt is from what was wanted; 0 where that is not known."""
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

    before = _means(kept.of(kept.first, split), group)
    after = _means(kept.of(kept.best, split), group) if kept.best != kept.first else {}
    wanted = _wanted(data, split, group)
    rates = [_rates(kept.of(version, "test"), group if own else None) for version in (kept.first, kept.best)]
    names = list(dict.fromkeys([*([] if own else data.shared_questions), *before, *after]))
    rows: list[QuestionRow] = []
    for name in (each for each in names if each in before or each in after):
        text, dimension = ("", name) if own else data.shared_questions.get(name, _any_text(data, name))
        changed = kept.best != kept.first
        rows.append(
            QuestionRow(
                len(rows) + 1,
                name,
                text,
                dimension,
                before.get(name),
                after.get(name),
                wanted.get(name),
                rates[0].get(name),
                rates[1].get(name) if changed else None,
            )
        )
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
    """Phi of every pair of questions, on the test answers of the last prompt; None where there are no two to compare."""
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


def _means(verdicts: Iterable[Verdict], group: Group) -> dict[str, float]:
    sums: dict[str, list[float]] = {}
    for each in verdicts:
        if each.p_yes is not None:
            total = sums.setdefault(group(each), [0.0, 0.0])
            total[0] += each.p_yes
            total[1] += 1
    return {name: total / n for name, (total, n) in sums.items()}


def _wanted(data: RunData, split: str, group: Group) -> dict[str, float]:
    kept = data.kept
    last = kept.of(kept.best, split) or kept.of(kept.first, split)
    sums: dict[str, list[float]] = {}
    for each in last:
        value = kept.wanted.get((each.example, each.question))
        if value is not None and each.p_yes is not None:
            sums.setdefault(group(each), []).append(value)
    return {name: sum(values) / len(values) for name, values in sums.items()}


def _rates(verdicts: Sequence[Verdict], group: Group | None) -> Mapping[str, float]:
    if group is None:
        return yes_rates(verdicts)
    counts: dict[str, list[int]] = {}
    for each in verdicts:
        if each.answer is not None:
            count = counts.setdefault(group(each), [0, 0])
            count[0] += each.answer
            count[1] += 1
    return {name: yes / n for name, (yes, n) in counts.items()}


def _any_text(data: RunData, name: str) -> tuple[str, str]:
    """Text and dimension of a question that stands beside each example, the same for all."""
    return next((found for (_, question), found in data.kept.questions.items() if question == name), (name, ""))


@dataclass(frozen=True)
class Spread:
    """The scores of the test examples by one judge, or by people."""

    name: str
    kind: str
    mean: float
    n: int
    drawing: Markup


def spreads(data: RunData) -> list[Spread]:
    """The distributions of the wanted scores, of the starting and of the new prompt, on the same examples."""
    changed = data.kept.best != data.kept.first
    whole = [
        each
        for each in data.kept.scored
        if each.before is not None
        and (each.after is not None or not changed)
        and (each.wanted is not None or not data.is_judge)
    ]
    if not whole:
        return []
    reference = data.result.whose[0].upper() + data.result.whose[1:]
    columns = [
        (reference, "people", [each.wanted for each in whole]),
        ("Starting prompt", "before", [each.before for each in whole]),
        ("New prompt", "after", [each.after for each in whole]),
    ]
    known = [(name, kind, [value for value in values if value is not None]) for name, kind, values in columns]
    known = [each for each in known if each[2]]
    tallest = tallest_bar([values for _, _, values in known])
    return [
        Spread(name, kind, sum(values) / len(values), len(values), histogram(values, kind, tallest))
        for name, kind, values in known
    ]


@dataclass(frozen=True)
class Severity:
    """A dimension's mean score less the wanted mean, on test."""

    dimension: str
    before: float | None
    after: float | None


def severity(data: RunData) -> list[Severity]:
    """How much too high or too low the scores are on average; empty where that was not measured."""
    drift = data.result.drift
    if "baseline" not in drift or "best" not in drift:
        return []
    after = drift["best"].mean_errors if data.result.changed else {}
    return [Severity(name, value, after.get(name)) for name, value in drift["baseline"].mean_errors.items()]


@dataclass(frozen=True)
class Calibrated:
    """One way to read the verdicts of one prompt."""

    prompt: str
    reading: str
    measure: CalibratedRecord


def calibrations(data: RunData) -> Sequence[Calibrated]:
    """The verdicts as they are, with thresholds, and Platt-scaled; of the starting and of the new prompt."""
    found = data.result.calibration
    sides = [("starting", "baseline"), *([("new", "best")] if data.result.changed else [])]
    return [
        Calibrated(prompt, label, found[side][name])
        for prompt, side in sides
        if side in found
        for name, label in {"uncalibrated": "as they are", **CALIBRATIONS}.items()
    ]
