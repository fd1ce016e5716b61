from __future__ import annotations

import json
import sys
from collections import Counter

import numpy as np
import pytest

from askance.experiments.measured import dedup_quality
from askance.experiments.measured.dedup_quality import area_under_roc, largest_threshold, main, measure, read_pairs
from askance.memory.embedders import SharedWordsEmbedder


def test_the_shipped_pairs_hold_every_label_and_no_pair_twice():
    pairs = read_pairs()
    assert Counter(pair.label for pair in pairs) == {"duplicate": 48, "related": 45, "unrelated": 24}
    assert len({frozenset((pair.a, pair.b)) for pair in pairs}) == len(pairs)
    assert all(pair.a != pair.b for pair in pairs)


def test_area_under_roc_counts_ties_half():
    assert area_under_roc(np.array([0.9, 0.5]), np.array([0.5, 0.1])) == pytest.approx(3.5 / 4)


def test_the_largest_threshold_that_keeps_enough_is_chosen():
    cosines = np.array([0.91, 0.62, 0.33, 0.21])
    assert largest_threshold(cosines, 0.75) == 0.3
    assert largest_threshold(cosines, 1.0) == 0.2
    assert largest_threshold(np.array([-0.5, 0.9]), 0.95) is None


def test_a_model_that_sees_only_words_is_measured_as_such():
    row = measure(read_pairs(), SharedWordsEmbedder())
    recall = [line["recall"] for line in row["blocking"]]
    assert recall == sorted(recall, reverse=True)
    assert row["auc_duplicate_over_near_miss"] < 0.1
    assert row["threshold"] is None
    assert row["as_used"]["candidates_per_lesson"] <= dedup_quality.CANDIDATES


def test_the_command_writes_its_result_and_names_what_is_not_installed(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "wordllama", None)
    output = tmp_path / "deep" / "result.json"
    assert main(["--embedder", "words", "--embedder", "wordllama", "-o", str(output)]) == 0
    result = json.loads(output.read_text())
    assert list(result["embedders"]) == ["words"]
    assert "not installed" in result["left_out"]["wordllama"]
    assert "left out wordllama" in capsys.readouterr().out


def test_a_bad_pairs_file_is_reported_by_line(tmp_path, capsys):
    path = tmp_path / "pairs.jsonl"
    path.write_text('{"task": "t", "label": "same", "kind": "k", "a": "x", "b": "y"}\n')
    assert main(["--pairs", str(path)]) == 2
    assert "line 1" in capsys.readouterr().err
