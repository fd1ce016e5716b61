from __future__ import annotations

import tracemalloc

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from askance.memory.embedders import NeighbourIndex, greedy_unique


def unit(count: int, dimension: int = 16, seed: int = 0) -> np.ndarray:
    rows = np.random.default_rng(seed).normal(size=(count, dimension)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def clustered(count: int, seed: int = 0) -> np.ndarray:
    """Rows in clumps, so that many pairs are near each other."""
    centres = unit(max(1, count // 4), seed=seed)
    generator = np.random.default_rng(seed + 1)
    rows = centres[generator.integers(len(centres), size=count)] + 0.1 * unit(count, seed=seed + 2)
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def filled(rows: np.ndarray) -> NeighbourIndex:
    index = NeighbourIndex(rows.shape[1])
    for i, row in enumerate(rows):
        index.add(f"L{i}", row)
    return index


class TestNeighbourIndex:
    def test_search_equals_brute_force(self):
        rows, queries = clustered(300), clustered(20, seed=9)
        index = filled(rows)
        for query in queries:
            cosines = rows @ query
            expected = [i for i in np.argsort(-cosines)[:7] if cosines[i] >= 0.4]
            found = index.search(query, k=7, at_least=0.4)
            assert found == [f"L{i}" for i in expected]

    def test_an_entry_finds_itself_even_at_cosine_one(self):
        rows = unit(50, dimension=384)
        index = filled(rows)
        for i, row in enumerate(rows):
            assert index.search(row, k=3, at_least=1.0) == [f"L{i}"]

    def test_equally_near_entries_come_in_the_order_of_adding(self):
        index = filled(np.repeat(unit(1), 5, axis=0))
        assert index.search(unit(1)[0], k=5) == ["L0", "L1", "L2", "L3", "L4"]

    def test_it_grows_and_k_may_exceed_its_size(self):
        index = NeighbourIndex(2)
        assert index.search(np.array([1, 0], dtype=np.float32), k=3) == []
        for id, vector in (("east", [1, 0]), ("north", [0, 1]), ("west", [-1, 0])):
            index.add(id, np.array(vector))
        found = index.search(np.array([1, 0], dtype=np.float32), k=10)
        assert found == ["east", "north", "west"]

    def test_nothing_near_enough_gives_an_empty_list(self):
        index = filled(np.eye(3, dtype=np.float32))
        assert index.search(np.array([-1, 0, 0], dtype=np.float32), k=3, at_least=0.1) == []

    def test_a_removed_entry_is_gone_and_the_others_keep_their_ids(self):
        rows = unit(6)
        index = filled(rows)
        index.remove("L1")
        index.remove("L4")
        for i in (0, 2, 3, 5):
            assert index.search(rows[i], k=1) == [f"L{i}"]
        index.add("L1", rows[4])
        assert index.search(rows[4], k=1) == ["L1"]

    def test_those_that_do_not_fit_make_room_for_others(self):
        rows = clustered(300)
        index = filled(rows)
        found = index.search(rows[0], k=5, fits=lambda id: int(id[1:]) % 9 == 0)
        nearest = [i for i in np.argsort(-(rows @ rows[0])) if i % 9 == 0]
        assert found == [f"L{i}" for i in nearest[:5]]


def unique_one_by_one(rows: np.ndarray, threshold: float) -> list[int]:
    kept: list[int] = []
    for i in range(len(rows)):
        if all(float(rows[i] @ rows[j]) < threshold for j in kept):
            kept.append(i)
    return kept


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 60), st.sampled_from([0.0, 0.3, 0.8, 0.97]), st.integers(0, 5))
def test_the_rows_kept_are_those_of_the_plain_loop(count, threshold, seed):
    rows = clustered(count, seed) if count else np.zeros((0, 16), dtype=np.float32)
    assert greedy_unique(rows, threshold) == unique_one_by_one(rows, threshold)


def test_identical_rows_are_duplicates_at_cosine_one():
    rows = np.repeat(unit(7, dimension=384), 3, axis=0)
    assert greedy_unique(rows, 1.0) == list(range(0, 21, 3))


def test_a_row_near_only_to_a_dropped_row_is_kept():
    angles = np.radians([0, 20, 40])
    rows = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    assert greedy_unique(rows, float(np.cos(np.radians(25)))) == [0, 2]


def test_memory_stays_far_below_the_full_matrix():
    rows = unit(3000, dimension=16)
    tracemalloc.start()
    greedy_unique(rows, 0.999)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3000 * 3000 * 4 / 10
