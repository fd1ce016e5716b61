"""What labels teach without a language model: logistic regression on the words, or on an embedding, of an output.

Run ``python -m askance.experiments.measured.text_baseline`` (two minutes; scikit-learn and the extra ``memory``). It learns from the 90 development
and validation outputs of the runs of ``learned_questions``, their labels alone, and is tested where those runs were: on their 60 outputs of test, and on the 150 that
came later. How much it shrinks is chosen by six folds of the 90.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...memory.embedders import embedder
from ...prompts.examples import Example, load_examples
from ..command_line import RESULTS, says_errors, write_result
from .learned_questions import DATA, MORE
from .peers.beside import label_of, task_of
from .peers.runs import figures

RESULT = RESULTS / "text_baseline.json"
FOLDS, SEEDS = 6, (0, 1, 2)
PENALTIES = [0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0]
"""Inverse strengths of the ridge penalty that are tried."""
Features = Callable[[Sequence[str]], Any]
"""Texts to a matrix, one row a text."""


def word_features(learned_from: Sequence[str]) -> Features:
    """Weights of words and pairs of words (TF-IDF), of those in ``learned_from``."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True).fit(learned_from)
    return lambda texts: words.transform(texts)


def embedded_features(learned_from: Sequence[str]) -> Features:
    """MiniLM's embedding of the whole text."""
    return embedder().embed


READINGS: dict[str, Callable[[Sequence[str]], Features]] = {"words": word_features, "embedding": embedded_features}


def classified(data: str, seed: int, reading: str) -> dict[str, Any]:
    """Learn from one run's development and validation; Spearman and area under the curve on both tests, with intervals."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV

    task = task_of(data, seed)
    texts, labels = _texts(task.learn), [label_of(each) for each in task.learn]
    features = READINGS[reading](texts)
    search = GridSearchCV(LogisticRegression(max_iter=2000), {"C": PENALTIES}, cv=FOLDS, scoring="roc_auc")
    search.fit(features(texts), labels)

    def tested(examples: Sequence[Example]) -> dict[str, Any]:
        said = search.decision_function(features(_texts(examples)))
        wanted = {each.id: label_of(each) for each in examples}
        return figures(dict(zip(wanted, map(float, said), strict=True)), wanted)

    return {
        "data": data,
        "seed": seed,
        "reading": reading,
        "test": tested(task.test),
        "later": tested(load_examples(DATA[data] / MORE)),
    }


def _texts(examples: Sequence[Example]) -> list[str]:
    return [each.output or "" for each in examples]


@says_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Learn and test on every data set, write what was found."""
    parser = argparse.ArgumentParser(prog=f"python -m {__spec__.name}", description=__doc__)
    rated = [name for name, folder in DATA.items() if (folder / MORE).is_file()]
    parser.add_argument("--data", nargs="*", choices=rated, default=rated)
    parser.add_argument("--output", type=Path, default=RESULT)
    given = parser.parse_args(arguments)
    rows = [classified(data, seed, reading) for data in given.data for seed in SEEDS for reading in READINGS]
    means = {
        reading: {
            part: float(np.mean([row[part]["spearman"]["value"] for row in rows if row["reading"] == reading]))
            for part in ("test", "later")
        }
        for reading in READINGS
    }
    write_result(given.output, {"command": f"python -m {__spec__.name}", "mean_spearman": means, "rows": rows})
    for row in rows:
        print(row["data"], row["seed"], row["reading"], *(row[part]["spearman"] for part in ("test", "later")))
    print(means)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
