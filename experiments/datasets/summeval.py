"""SummEval (Fabbri et al. 2021): CNN/DM summaries of 16 systems, rated 1 to 5 by experts on four dimensions.

Read are the authors' ``model_annotations.aligned.paired.jsonl`` (every expert's rating is kept), UniEval's
``summeval.json``, ``mteb/summeval`` of the hub (means of the experts; systems are numbered) and askance's own format.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from ...prompts.errors import InputError
from ...prompts.examples import Example
from .records import example, own_example, ratings_of, scores_of
from .sources import Hub, Row, Source, rows_of

DIMENSIONS = ("coherence", "consistency", "fluency", "relevance")
HUB = Hub("mteb/summeval", "test", file="the authors' model_annotations.aligned.paired.jsonl")
PER_SYSTEM = 10
"""Development examples of each system (BinEval App. B)."""


def load(source: Source = None) -> list[Example]:
    """The examples, in the order of the file."""
    return [each for row in rows_of(source, HUB) for each in _examples(row)]


def split(examples: Sequence[Example], *, seed: int = 42) -> tuple[list[Example], list[Example]]:
    """Development and test as in BinEval (App. B): 10 examples of each system at random, the rest is the test.

    With all 16 systems that is 160 and 1,440. The paper does not say which generator its seed 42 belongs to, so the
    same numbers do not mean the same examples.

    Raises:
        InputError: An example names no system, or a system has no more than 10 examples.
    """
    by_system: dict[str, list[Example]] = {}
    for each in examples:
        if each.system is None:
            raise InputError(f"Example '{each.id}' names no system; SummEval is divided by system.")
        by_system.setdefault(each.system, []).append(each)
    chosen: set[str] = set()
    chance = random.Random(seed)
    for system in sorted(by_system):
        members = sorted(each.id for each in by_system[system])
        if len(members) <= PER_SYSTEM:
            raise InputError(
                f"System '{system}' has {len(members)} examples; more than {PER_SYSTEM} are needed to take {PER_SYSTEM} "
                "for development."
            )
        chosen.update(chance.sample(members, PER_SYSTEM))
    return [each for each in examples if each.id in chosen], [each for each in examples if each.id not in chosen]


def _examples(row: Row) -> Iterator[Example]:
    if row.has("machine_summaries"):
        yield from _of_one_document(row)
    elif row.has("expert_annotations", "decoded"):
        document = row.text("text") if row.has("text") else row.text("source")
        experts = row.items("expert_annotations")
        human = {dimension: ratings_of(row, experts, dimension) for dimension in DIMENSIONS}
        system, name = row.text("model_id"), row.text("id")
        yield example(row, f"{name}/{system}", document, row.text("decoded"), human, system=system, document=name)
    elif row.has("system_output"):
        name = str(row["doc_id"])
        system = str(row["system_id"])
        human = scores_of(row, "scores", DIMENSIONS)
        yield example(
            row, f"{name}/{system}", row.text("source"), row.text("system_output"), human, system=system, document=name
        )
    else:
        yield own_example(row, DIMENSIONS)


def _of_one_document(row: Row) -> Iterator[Example]:
    summaries = row.items("machine_summaries")
    columns = {dimension: row.items(dimension) for dimension in DIMENSIONS}
    for dimension, column in columns.items():
        if len(column) != len(summaries):
            raise InputError(f"{row.where}: {len(column)} ratings of {dimension} for {len(summaries)} summaries.")
    name = str(row["id"])
    for number, summary in enumerate(summaries):
        human = {dimension: [column[number]] for dimension, column in columns.items()}
        system = f"system-{number:02d}"
        yield example(row, f"{name}/{system}", row.text("text"), summary, human, system=system, document=name)
