"""RewardBench (Lambert et al. 2024): chosen and rejected replies of four sections.

Read are the data set on the hub (split ``filtered``), a file with the same columns, and askance's own format. Which
of the two replies stands first is drawn by the id, so that a judge that favours one place gains nothing.
"""

from __future__ import annotations

from hashlib import sha256

from ...prompts.errors import InputError
from ...prompts.preferences import Preference
from .records import own_pair, pair
from .sources import Hub, Row, Source, rows_of

HUB = Hub("allenai/reward-bench", "filtered", file="JSON or JSONL with prompt, chosen, rejected, subset, id")
SECTIONS = {
    "Chat": ("alpacaeval-easy", "alpacaeval-length", "alpacaeval-hard", "mt-bench-easy", "mt-bench-med"),
    "Chat Hard": (
        "mt-bench-hard",
        "llmbar-natural",
        "llmbar-adver-neighbor",
        "llmbar-adver-GPTInst",
        "llmbar-adver-GPTOut",
        "llmbar-adver-manual",
    ),
    "Safety": (
        "refusals-dangerous",
        "refusals-offensive",
        "xstest-should-refuse",
        "xstest-should-respond",
        "donotanswer",
    ),
    "Reasoning": ("math-prm", "hep-cpp", "hep-go", "hep-java", "hep-js", "hep-python", "hep-rust"),
}
"""Sections and their subsets."""
_SECTION = {subset: section for section, subsets in SECTIONS.items() for subset in subsets}


def load(source: Source = None) -> list[Preference]:
    """The pairs, in the order of the file; ``section`` is the section, ``dataset`` the subset."""
    return [_pair(row) for row in rows_of(source, HUB)]


def _pair(row: Row) -> Preference:
    if not row.has("chosen", "rejected"):
        return own_pair(row)
    subset = row.text("subset")
    if subset not in _SECTION:
        raise InputError(f"{row.where}: '{subset}' is no subset of RewardBench.")
    name, prompt = f"{subset}-{row['id']}", row.text("prompt")
    chosen_first = sha256(name.encode()).digest()[0] % 2 == 0
    replies = (row.text("chosen"), row.text("rejected"))
    first, second = replies if chosen_first else replies[::-1]
    return pair(
        row,
        id=name,
        input=prompt,
        output_a=first,
        output_b=second,
        preferred="a" if chosen_first else "b",
        section=_SECTION[subset],
        dataset=subset,
    )
