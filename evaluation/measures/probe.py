"""Measures that a generator could please without writing better: by repeating what it was given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ...agents.checks import computed_verdicts
from ...agents.measures.values import text_of
from ...prompts.criteria.measures import TEXTS

if TYPE_CHECKING:
    from ...prompts.checklist import ComputedMeasure
    from ...prompts.examples import Example

PROBED = 40
"""Most examples that are probed: the reward for repeating differs little between examples."""
PAYS = 0.02
"""Mean gain of P(good) above which a measure rewards repeating."""


def repeating_gains(measures: Sequence[ComputedMeasure], examples: Sequence[Example]) -> Mapping[str, float]:
    """Return by measure the mean gain of P(good) when outputs repeat their input, context or reference at their end.

    The first :data:`PROBED` examples are used. The highest gain of the three texts counts. If an example has no output
    yet, the input of the next example is used as its output. Errors as in
    :func:`~askance.agents.checks.computed_verdicts`.
    """
    some = examples[:PROBED]
    written = [
        each if (each.output or "").strip() else each.model_copy(update={"output": beside.input})
        for each, beside in zip(some, [*some[1:], *some[:1]], strict=True)
    ]
    plain = _good(measures, written)
    gains = dict.fromkeys((each.id for each in measures), 0.0)
    for text in TEXTS:
        repeating = [with_text(each, given) for each in written if (given := text_of(each, text)).strip()]
        padded = _good(measures, repeating)
        for name in gains:
            found = [good - plain[key] for key, good in padded.items() if key[0] == name and key in plain]
            gains[name] = max(gains[name], sum(found) / len(found) if found else 0.0)
    return gains


def with_text(example: Example, text: str) -> Example:
    """Return the example with a text at the end of its output."""
    return example.model_copy(update={"output": f"{example.output}\n{text}"})


def paid_for(measures: Sequence[ComputedMeasure], examples: Sequence[Example]) -> dict[str, float]:
    """Return the gain of the measures that reward repeating, by their ids."""
    return {name: gain for name, gain in repeating_gains(measures, examples).items() if gain > PAYS}


def paid_for_said(gains: Mapping[str, float]) -> str:
    """Return the gains in words: ``nearest_sentence-input +.31``."""
    return ", ".join(f"{name} {gain:+.2f}" for name, gain in gains.items())


def _good(measures: Sequence[ComputedMeasure], examples: Sequence[Example]) -> dict[tuple[str, str], float]:
    """Return P(good) by measure and example, where it is defined."""
    named = {each.id: each for each in measures}
    verdicts = computed_verdicts(list(measures), examples, "")
    return {
        (each.question, each.example): named[each.question].p_good(each.p_yes)
        for each in verdicts
        if each.p_yes is not None
    }
