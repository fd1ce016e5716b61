"""Spearman's correlation of each measure with what people said, on three sets of their verdicts, and the time it takes.

Run ``python -m tests.measured.measures --data FOLDER`` (some three minutes on two cores). FOLDER holds
``feedbackqa_uk.jsonl``, ``defacto_train.jsonl`` and ``qags_cnndm.jsonl``. Of FeedbackQA there are also two halves
without a page in common. The seconds are those of one processor.

``--sentences 100`` measures only the time instead: 100 examples of ten sentences of the CNN articles, no sentence twice.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from time import process_time
from typing import Any

from askance.agents.measures.similarity import sentences_of
from askance.agents.measures.values import values_of
from askance.experiments.command_line import RESULTS, says_errors, write_result
from askance.prompts.checklist import ComputedMeasure
from askance.prompts.criteria.measures import FORMS, RELATIONS, SIMILAR
from askance.prompts.errors import InputError
from askance.prompts.examples import Example, document_of, load_examples, mean_rating
from askance.stats.correlation import spearman

RESULT = RESULTS / "measures.json"
SETS = ("feedbackqa_uk", "defacto_train", "qags_cnndm")
NAMES = (*(f"{name}(input)" for name in RELATIONS), *FORMS)


def measure(name: str) -> ComputedMeasure:
    """The measure, with a range that is not looked at."""
    return ComputedMeasure.model_validate({"id": name, "measure": name, "range": [0, 1]})


def halves(examples: Sequence[Example]) -> tuple[set[str], set[str]]:
    """Ids of the examples in two halves, each page in one of them."""
    pages = sorted({document_of(each) for each in examples})
    first = set(pages[::2])
    mine = {each.id for each in examples if document_of(each) in first}
    return mine, {each.id for each in examples} - mine


def correlations(examples: Sequence[Example], names: Sequence[str] = NAMES) -> dict[str, Any]:
    """Spearman's correlation with the mean rating by measure, of all examples and of the halves, with the seconds."""
    [dimension] = {name for each in examples for name in each.human}
    wanted = {each.id: mean_rating(each.human, dimension) for each in examples}
    began, parts = process_time(), [set(wanted), *halves(examples)]
    values = values_of([measure(name) for name in names], examples)
    seconds = process_time() - began

    def figure(name: str, ids: set[str]) -> float | None:
        known = {each: value for each, value in values[name].items() if each in ids and not isinstance(value, str)}
        return spearman(list(known.values()), [wanted[each] for each in known]).value

    return {
        "n": len(examples),
        "processor_seconds": round(seconds, 1),
        "spearman": {name: [figure(name, each) for each in parts] for name in names},
    }


def of_ten_sentences(examples: Sequence[Example], count: int) -> list[Example]:
    """Examples of ten sentences, seven in the input and three in the output; no sentence is in two of them."""
    every = list(dict.fromkeys(each for example in examples for each in sentences_of(example.input)))
    if len(every) < 10 * count:
        raise InputError(f"--sentences {count}: the articles have {len(every)} sentences, and {10 * count} are needed.")
    tens = [every[10 * place : 10 * place + 10] for place in range(count)]
    return [
        Example(id=f"e{place}", input=" ".join(ten[:7]), output=" ".join(ten[7:])) for place, ten in enumerate(tens)
    ]


def time_taken(examples: Sequence[Example]) -> dict[str, float]:
    """Seconds of one processor for the measures of words alone, and for those that the embedder computes.

    The embedder is loaded before, and no vector is kept from an earlier run.
    """
    values_of([measure("similarity(input)")], [Example(id="first", input="One.", output="Two.")])
    words = [each for each in NAMES if each.partition("(")[0] not in SIMILAR]
    found = {}
    for name, some in (("words", words), ("embedder", [each for each in NAMES if each not in words])):
        began = process_time()
        values_of([measure(each) for each in some], examples)
        found[name] = process_time() - began
    return found


@says_errors
def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("-o", "--output", type=Path, default=RESULT)
    parser.add_argument("--sentences", type=int, metavar="N", help="measure the time of N examples of ten sentences")
    given = parser.parse_args(arguments)
    if given.sentences:
        articles = list(load_examples(given.data / "qags_cnndm.jsonl"))
        for name, seconds in time_taken(of_ten_sentences(articles, given.sentences)).items():
            print(f"{name}: {seconds:.2f} s of one processor for {given.sentences} examples of ten sentences")
        return
    found = {name: correlations(list(load_examples(given.data / f"{name}.jsonl"))) for name in SETS}
    for name, row in found.items():
        print(f"{name}: {row['n']} examples, {row['processor_seconds']} s of one processor")
        for each, [whole, *both] in row["spearman"].items():
            parts = " ".join("undefined" if part is None else f"{part:+.2f}" for part in both)
            print(f"  {each:28}{'undefined' if whole is None else f'{whole:+.2f}'}   halves {parts}")
    write_result(given.output, found)


if __name__ == "__main__":
    main()
