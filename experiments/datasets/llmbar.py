"""LLMBar (Zeng et al. 2024): pairs of which one follows its instruction and the other only looks as if it did.

Read are the authors' ``dataset.json`` of one part (``input``, ``output_1``, ``output_2``, ``label``), the data set on
the hub, and askance's own format.
"""

from __future__ import annotations

from ...prompts.errors import InputError
from ...prompts.preferences import Preference
from .records import own_pair, pair
from .sources import Hub, Row, Source, rows_of

PARTS = ("Natural", "Adversarial_Neighbor", "Adversarial_GPTInst", "Adversarial_GPTOut", "Adversarial_Manual")
_FILE = "the authors' dataset.json of one part, with input, output_1, output_2, label"


def load(source: Source = None, *, part: str = "Natural") -> list[Preference]:
    """The pairs, in the order of the file; ``part`` names them and says which one is taken from the hub."""
    hub = Hub("princeton-nlp/LLMBar", part, "LLMBar", _FILE)
    return [_pair(row, number, part) for number, row in enumerate(rows_of(source, hub))]


def _pair(row: Row, number: int, part: str) -> Preference:
    if not row.has("output_1", "output_2", "label"):
        return own_pair(row)
    label = row["label"]
    if label not in (1, 2):
        raise InputError(f"{row.where}: the label is {label!r}; it says which output is better, 1 or 2.")
    return pair(
        row,
        id=f"llmbar-{part}-{number}",
        input=row.text("input"),
        output_a=row.text("output_1"),
        output_b=row.text("output_2"),
        preferred="a" if label == 1 else "b",
        section=part,
        dataset="LLMBar",
    )
