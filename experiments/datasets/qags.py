"""QAGS (Wang et al. 2020): summaries of CNN/DM (235) and XSum (239), rated for factual consistency.

Read are the authors' ``mturk_cnndm.jsonl`` and ``mturk_xsum.jsonl``, UniEval's ``qags_cnndm.json`` and
``qags_xsum.json``, and askance's own format.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...prompts.errors import InputError
from ...prompts.examples import Example
from .records import example, own_example, scores_of
from .sources import Elsewhere, Row, Source, rows_of

DIMENSIONS = ("consistency",)
HOME = Elsewhere("QAGS", "mturk_cnndm.jsonl or mturk_xsum.jsonl")


def load(source: Source = None) -> list[Example]:
    """The examples, in the order of the file.

    From the authors' files the score of a summary is the mean over its sentences of what most of the three workers
    said, as QAGS computes it.
    """
    return [_example(row, number) for number, row in enumerate(rows_of(source, HOME))]


def _example(row: Row, number: int) -> Example:
    if row.has("article", "summary_sentences"):
        sentences = row.items("summary_sentences")
        if not sentences:
            raise InputError(f"{row.where}: the summary has no sentences.")
        summary = " ".join(str(each["sentence"]).strip() for each in sentences)
        votes = [_supported(row, each) for each in sentences]
        human = {"consistency": [sum(votes) / len(votes)]}
        return example(row, f"qags-{number}", row.text("article"), summary, human)
    if row.has("system_output"):
        human = scores_of(row, "scores", DIMENSIONS)
        return example(row, f"qags-{number}", row.text("source"), row.text("system_output"), human)
    return own_example(row, DIMENSIONS)


def _supported(row: Row, sentence: Mapping[str, Any]) -> bool:
    """Whether most workers found a sentence supported."""
    said = [str(each.get("response", "")).strip().lower() for each in sentence.get("responses", ())]
    if not said or set(said) - {"yes", "no"}:
        raise InputError(f"{row.where}: each sentence needs responses of yes or no.")
    return 2 * said.count("yes") > len(said)
