"""A part of a data set that a small machine can judge: all examples of some shorter documents, with a split.

``python -m askance.experiments.measured.document_subset DATA -o OUT --documents 20 --skip 10 --dimension coherence --seed 1``
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from ...optimizer.job import split, with_own_split
from ...prompts.errors import InputError
from ...prompts.examples import Example, load_examples
from ..command_line import says_errors


def shorter_documents(examples: Sequence[Example], *, documents: int, skip: int = 0) -> list[Example]:
    """All examples of so many documents, in the order of the documents' length; the ``skip`` shortest are left out.

    Examples of one document stand side by side, so that a prompt cache reads the document once.
    """
    lengths: dict[str, int] = {}
    for example in examples:
        lengths.setdefault(_document(example), len(example.input))
    chosen = sorted(lengths, key=lambda name: lengths[name])[skip : skip + documents]
    return [example for name in chosen for example in examples if _document(example) == name]


def with_split(
    examples: Sequence[Example], dimension: str, *, shares: tuple[float, float, float] = (0.25, 0.4, 0.35), seed: int
) -> list[Example]:
    """The examples with their part as ``metadata.split``; documents stay together, scores spread evenly.

    The split is then no setting of a run, so that runs on several splits share their answers.

    Raises:
        InputError: Too few examples, or one without a human score on the dimension.
    """
    for example in examples:
        if dimension not in example.human:
            raise InputError(f"Example '{example.id}' has no human score on '{dimension}'.")
    parts = split(
        [example.id for example in examples],
        shares=shares,
        seed=seed,
        strata=[example.human_score(dimension) for example in examples],
        groups=[_document(example) for example in examples],
    )
    kept = [
        example.model_copy(
            update={"human": {dimension: example.human[dimension]}, "metadata": {"document": _document(example)}}
        )
        for example in examples
    ]
    return with_own_split(kept, parts)


def _document(example: Example) -> str:
    return str(example.metadata.get("document", example.id))


@says_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Write the part as an examples file."""
    parser = argparse.ArgumentParser(prog="python -m askance.experiments.measured.document_subset", description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--documents", type=int, default=20)
    parser.add_argument("--skip", type=int, default=0, help="shortest documents to leave out")
    parser.add_argument("--dimension", required=True, help="the human score to keep")
    parser.add_argument("--seed", type=int, default=1, help="of the split")
    options = parser.parse_args(arguments)
    examples = shorter_documents(load_examples(options.data), documents=options.documents, skip=options.skip)
    chosen = with_split(examples, options.dimension, seed=options.seed)
    rows = [each.model_dump(exclude_defaults=True) for each in chosen]
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    options.output.write_text(lines, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
