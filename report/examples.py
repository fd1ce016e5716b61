"""The test examples one by one: scores before and after, answers that turned, and the data that the page sorts."""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .page import clipped, json_data, packed, packed_places, probability_byte, thousandth
from .run_data import worst_first

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from markupsafe import Markup

    from ..prompts.verdicts import Verdict
    from .run_data import Pair, RunData, Scored

SHOWN_WORSE = 8
"""Examples that got worse which the page shows in full without a script."""
LEAST = 50
"""Change of a score, in thousandths as in the table, from which an example is called better or worse."""
FIELDS = ("context", "input", "reference", "output")


@dataclass(frozen=True)
class Answered:
    """One question on one example, before and after."""

    question: str
    text: str
    before: Verdict | None
    after: Verdict | None

    @property
    def turned(self) -> bool:
        """Whether the answer is another than before."""
        if self.before is None or self.after is None or self.before.answer is None or self.after.answer is None:
            return False
        return self.before.answer != self.after.answer


@dataclass(frozen=True)
class ExampleView:
    """An example that got worse."""

    scored: Scored
    answers: Sequence[Answered]
    outputs: tuple[str | None, str | None] | None
    """What a generator wrote with the starting and with the new prompt."""


@dataclass(frozen=True)
class Changes:
    """What the new prompt changed on the test examples."""

    nearer: int
    further: int
    same: int
    to_yes: int
    to_no: int
    away: int | None
    """Answers that turned away from what was wanted; None where that is not known of single answers."""
    worse: Sequence[ExampleView]


def changes(data: RunData) -> Changes | None:
    """What the new prompt changed; None where nothing changed or nothing was kept."""
    kept = data.kept
    moved = [change for each in kept.scored if (change := thousandth(each.better)) is not None]
    if not kept.changed or not moved:
        return None
    before, after = kept.answers(kept.first), kept.answers(kept.best)
    turned = [
        (pair, now.answer)
        for pair, now in after.items()
        if now.answer is not None
        and (was := before.get(pair)) is not None
        and was.answer is not None
        and was.answer != now.answer
    ]
    known = [(answer, kept.wanted[pair]) for pair, answer in turned if pair in kept.wanted]
    asked = _by_example([*before, *after])

    def view(each: Scored) -> ExampleView:
        answers = [
            Answered(pair[1], data.question(*pair)[0], before.get(pair), after.get(pair))
            for pair in asked.get(each.example, ())
        ]
        outputs = [kept.outputs.get((version, each.example)) for version in (kept.first, kept.best)]
        return ExampleView(each, answers, (outputs[0], outputs[1]) if any(outputs) else None)

    worse = [each for each in worst_first(kept.scored) if (thousandth(each.better) or 0) <= -LEAST]
    return Changes(
        nearer=sum(each >= LEAST for each in moved),
        further=len(worse),
        same=sum(abs(each) < LEAST for each in moved),
        to_yes=sum(answer for _, answer in turned),
        to_no=sum(not answer for _, answer in turned),
        away=sum(answer != (wanted >= 0.5) for answer, wanted in known) if known else None,
        worse=[view(each) for each in worse[:SHOWN_WORSE]],
    )


def example_data(data: RunData) -> Markup | None:
    """All test examples as JSON for the page's table, the verdicts packed into a byte each; None without any."""
    kept = data.kept
    if not kept.scored:
        return None
    before, after = kept.answers(kept.first), kept.answers(kept.best) if kept.changed else {}
    texts: dict[tuple[str, str], int] = {}
    pairs = _by_example([*before, *after])
    counts, asked, first, last = array("I"), array("I"), array("B"), array("B")
    for each in kept.scored:
        mine = pairs.get(each.example, [])
        counts.append(len(mine))
        for pair in mine:
            label = (data.question(*pair)[0], pair[1])
            asked.append(texts.setdefault(label, len(texts)))
            first.append(_byte(before.get(pair)))
            last.append(_byte(after.get(pair)))
    rows: dict[str, Any] = {
        "ids": [each.example for each in kept.scored],
        "before": [thousandth(each.before) for each in kept.scored],
        "after": [thousandth(each.after) for each in kept.scored],
        "wanted": [thousandth(each.wanted) for each in kept.scored],
        "better": [thousandth(each.better) for each in kept.scored],
        "questions": list(texts),
        "texts": {each.example: _texts(data, each.example) for each in kept.scored if each.example in data.examples},
        "judged": {"mode": data.result.mode, "changed": kept.changed},
        "counts": packed(counts),
        "asked": packed_places(asked, len(texts)),
        "first": packed(first),
        "last": packed(last),
    }
    return json_data(rows)


def _texts(data: RunData, example: str) -> list[list[str]]:
    """Label and text of what is known of an example."""
    row: Mapping[str, Any] = data.examples[example]
    kept = data.kept
    # an output in a generator's data is an earlier one, which nobody judged here
    fields = FIELDS if data.is_judge else FIELDS[:-1]
    found = [[field.capitalize(), str(row[field])] for field in fields if row.get(field)]
    for version, label in ((kept.first, "Output before"), (kept.best, "Output after")):
        written = kept.outputs.get((version, example))
        if written and not (label == "Output after" and not kept.changed):
            found.append([label, written])
    return [[label, clipped(text)] for label, text in found]


def _by_example(pairs: Iterable[Pair]) -> dict[str, list[Pair]]:
    """The questions that each example was asked, each once."""
    found: dict[str, list[Pair]] = {}
    for pair in dict.fromkeys(pairs):
        found.setdefault(pair[0], []).append(pair)
    return found


def _byte(verdict: Verdict | None) -> int:
    return probability_byte(None, None) if verdict is None else probability_byte(verdict.p_yes, verdict.answer)
