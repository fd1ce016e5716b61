"""Splits are exact, reproducible anywhere, balanced in human score, and keep documents whole."""

from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from askance.optimizer.splits import (
    Split,
    fewest_examples,
    own_split,
    split,
    spread_order,
    unused_split,
    with_own_split,
)
from askance.prompts.errors import InputError
from askance.prompts.examples import Example
from tests.said import naming, says


def names(n: int) -> list[str]:
    return [f"item-{k}" for k in range(n)]


def parts(found: Split) -> tuple[tuple[str, ...], ...]:
    return found.development, found.validation, found.test


def sizes(found: Split) -> list[int]:
    return [len(part) for part in parts(found)]


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(12, 150),
    seed=st.integers(0, 100),
    shares=st.sampled_from([(0.3, 0.3, 0.4), (1 / 3, 1 / 3, 1 / 3), (0.25, 0.25, 0.5)]),
    stratified=st.booleans(),
)
def test_every_id_is_in_one_part_in_input_order_and_sizes_are_exact(
    n: int, seed: int, shares: tuple, stratified: bool
) -> None:
    ids = names(n)
    strata = [float(k % 7) for k in range(n)] if stratified else None
    found = split(ids, shares=shares, seed=seed, strata=strata)
    assert sorted(itertools.chain(*parts(found))) == sorted(ids)
    for part, share in zip(parts(found), shares, strict=True):
        assert abs(len(part) - share * n) < 1
        assert list(part) == [name for name in ids if name in part]


def test_the_split_is_the_same_on_every_platform_and_version() -> None:
    found = split(names(10))
    assert found.development == ("item-0", "item-3", "item-4")
    assert found.validation == ("item-7", "item-8", "item-9")
    assert found.test == ("item-1", "item-2", "item-5", "item-6")


def test_another_seed_gives_another_split() -> None:
    assert split(names(40), seed=1) != split(names(40), seed=2)


def test_membership_does_not_depend_on_the_order_of_the_file() -> None:
    ids = names(50)
    shuffled = random.Random(0).sample(ids, k=50)
    scores = {name: float(position % 5) for position, name in enumerate(ids)}
    for strata in (None, scores):
        straight, mixed = (
            split(order, strata=None if strata is None else [strata[name] for name in order])
            for order in (ids, shuffled)
        )
        assert [set(part) for part in parts(straight)] == [set(part) for part in parts(mixed)]


def test_one_more_example_moves_at_most_one_other_across_each_cut() -> None:
    before = split(names(100))
    after = split([*names(100), "new"])
    moved = sum(len(set(old) - set(new)) for old, new in zip(parts(before), parts(after), strict=True))
    assert moved <= 2


def test_each_part_covers_the_same_range_of_human_scores() -> None:
    rng = np.random.default_rng(0)
    for seed in range(20):
        scores = dict(zip(names(60), rng.normal(size=60), strict=True))
        found = split(list(scores), strata=list(scores.values()), seed=seed)
        means = [np.mean([scores[name] for name in part]) for part in parts(found)]
        assert max(means) - min(means) < 0.4  # unstratified: about 0.6 on average, up to 1.5
        lowest_ten = sorted(scores, key=scores.__getitem__)[:10]
        assert [len(set(lowest_ten) & set(part)) for part in parts(found)] == [3, 3, 4]


def test_examples_without_a_score_are_dealt_out_among_themselves() -> None:
    strata: list[float | None] = [float(k) for k in range(20)] + [None, float("nan")] * 10
    found = split(names(40), strata=strata)
    unknown = set(names(40)[20:])
    assert [len(set(part) & unknown) for part in parts(found)] == [6, 6, 8]


def test_documents_never_straddle_parts() -> None:
    ids = names(90)
    documents = [f"doc-{k % 17}" for k in range(90)]
    for strata in (None, [float(k % 5) for k in range(90)]):
        found = split(ids, groups=documents, strata=strata)
        held = [{documents[ids.index(name)] for name in part} for part in parts(found)]
        assert held[0].isdisjoint(held[1] | held[2]) and held[1].isdisjoint(held[2])
        assert sizes(found) == pytest.approx([27, 27, 36], abs=6)


def test_too_few_examples_say_how_many_are_needed() -> None:
    with pytest.raises(InputError, match=naming("8 examples", "9 examples")):
        split(names(8))
    assert sizes(split(names(9))) == [3, 3, 3]
    with pytest.raises(InputError, match=naming("20 examples", "27 examples")):
        split(names(20), shares=(0.1, 0.1, 0.8))
    assert min(sizes(split(names(27), shares=(0.1, 0.1, 0.8)))) == 3


def test_one_dominant_document_is_an_error_that_names_the_part() -> None:
    with pytest.raises(InputError, match=naming("part", 30, "groups")):
        split(names(30), groups=["big"] * 28 + ["small", "other"])


@pytest.mark.parametrize("shares", [(0.3, 0.3, 0.3), (0.5, 0.5, 0.0), (0.5, 0.5), (1.2, -0.4, 0.2)])
def test_shares_that_are_not_three_positive_parts_of_one_are_refused(shares: tuple) -> None:
    with pytest.raises(InputError, match="sum to 1"):
        split(names(50), shares=shares)


@settings(max_examples=40, deadline=None)
@given(old=st.integers(20, 60), new=st.integers(0, 90), stratified=st.booleans(), seed=st.integers(0, 20))
def test_what_has_a_part_keeps_it_and_the_rest_makes_up_the_shares(
    old: int, new: int, stratified: bool, seed: int
) -> None:
    ids, shares = names(old + new), (0.3, 0.3, 0.4)
    strata = [float(k % 7) for k in range(old + new)] if stratified else None
    first = split(ids[:old], shares=(0.2, 0.5, 0.3), seed=seed)
    kept = {name: part for part in ("development", "validation", "test") for name in getattr(first, part)}
    found = split(ids, shares=shares, seed=seed, strata=strata, kept=kept)
    assert sorted(itertools.chain(*parts(found))) == sorted(ids)
    for part, share, before in zip(parts(found), shares, parts(first), strict=True):
        assert set(before) <= set(part)
        over = len(before) > share * (old + new)
        assert len(part) == len(before) if over else len(part) < share * (old + new) + 1
    if all(len(before) <= share * (old + new) for share, before in zip(shares, parts(first), strict=True)):
        assert all(abs(len(part) - share * (old + new)) < 1 for part, share in zip(parts(found), shares, strict=True))


def test_a_split_of_ones_own_in_other_words_is_not_passed_over() -> None:
    """With "train" in place of "development" the test examples were divided anew, and learned from."""

    def examples(*named: object) -> list[Example]:
        rows = enumerate(named * 3)
        return [Example(id=f"e{n}", input="in", metadata={} if part is None else {"split": part}) for n, part in rows]

    found = own_split(examples("development", "validation", "test"))
    assert found is not None and found.test == ("e2", "e5", "e8")
    with pytest.raises(InputError, match=naming("e0", "metadata.split", "train", "development", "validation", "test")):
        own_split(examples("train", "validation", "test"))
    assert own_split(examples("train")) is None  # a column of where the examples came from
    assert own_split(examples("development", "validation", "test", None)) is None
    said = unused_split(examples("development", "validation", "test", None))
    assert says(said, "3 of 12", "e3", "metadata.split")
    assert unused_split(examples("development", "validation", "test")) is unused_split(examples("train", None)) is None


def test_a_score_that_is_no_number_is_no_score() -> None:
    """Wherever it stands, alone or beside others of its document."""
    draw = random.Random(4)
    for seed in range(30):
        n = draw.choice([30, 45])
        strata: list[float | None] = [float(draw.randrange(9)) for _ in range(n)]
        gone = draw.sample(range(n), k=draw.randint(1, n // 2))
        none, nan = (
            [value if place in gone else each for place, each in enumerate(strata)] for value in (None, math.nan)
        )
        for documents in (None, [f"doc-{place % 11}" for place in range(n)]):
            mine = split(names(n), strata=nan, groups=documents, seed=seed)
            assert mine == split(names(n), strata=none, groups=documents, seed=seed)


def test_a_document_counts_with_the_mean_of_the_scores_that_it_has() -> None:
    """Documents of three stand where one example with their mean would."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        means = {f"doc-{place}": float(value) for place, value in enumerate(rng.permutation(40))}
        ids = [f"{name}/{member}" for name in means for member in range(3)]
        documents = [name.split("/")[0] for name in ids]
        apart = (-20.0, 5.0, 15.0)
        offsets = {
            f"{name}/{member}": apart[(member + place) % 3] for place, name in enumerate(means) for member in range(3)
        }
        strata: list[float | None] = [
            means[document] + offsets[name] for name, document in zip(ids, documents, strict=True)
        ]
        whole = split(ids, strata=strata, groups=documents, seed=seed)
        single = split(list(means), strata=list(means.values()), seed=seed, shares=(0.3, 0.3, 0.4))
        for part, alone in zip(parts(whole), parts(single), strict=True):
            assert {name.split("/")[0] for name in part} == set(alone)


@pytest.mark.parametrize("groups", [False, True])
def test_any_first_part_of_the_spread_order_is_a_fair_sample_that_does_not_depend_on_the_file(groups: bool) -> None:
    ids = names(200)
    documents = [f"doc-{place // 4}" for place in range(200)] if groups else None
    halves = []
    for seed in range(40):
        order = spread_order(ids, seed=seed, groups=documents)
        assert sorted(order) == list(range(200))
        halves.append(sum(place < 100 for place in order[:60]) / 60)
        if documents is not None:
            held = [documents[place] for place in order]
            assert held[::4] == held[1::4] == held[2::4] == held[3::4] and len(set(held[::4])) == 50
            assert all(order[place] < order[place + 1] for place in range(0, 200, 4)), "they keep their order"
        back = spread_order(ids[::-1], seed=seed, groups=None if documents is None else documents[::-1])
        same = [ids[::-1][place] for place in back] if not groups else [documents[::-1][place] for place in back]  # type: ignore[index]
        assert same == ([ids[place] for place in order] if not groups else [documents[place] for place in order])  # type: ignore[index]
    assert np.mean(halves) == pytest.approx(0.5, abs=0.04) and len(set(halves)) > 5


def test_a_split_that_is_written_to_the_examples_is_read_back() -> None:
    examples = [Example(id=name, input="in", metadata={"page": place}) for place, name in enumerate(names(12))]
    found = split(names(12))
    written = with_own_split(examples, found)
    assert own_split(written) == found and [each.metadata["page"] for each in written] == list(range(12))
    assert unused_split(written) is None and own_split(examples) is None
    with pytest.raises(InputError, match=naming(2, "development", 3)):
        own_split([each for each in written if each.id not in found.development[2:]])


@pytest.mark.parametrize(("shares", "fewest"), [((0.3, 0.3, 0.4), 9), ((0.2, 0.3, 0.5), 13), ((0.1, 0.1, 0.8), 27)])
def test_the_fewest_examples_give_each_part_three_and_one_less_does_not(shares: tuple, fewest: int) -> None:
    assert fewest_examples(shares) == fewest
    assert min(sizes(split(names(fewest), shares=shares))) == 3
    with pytest.raises(InputError, match=naming(fewest - 1, fewest)):
        split(names(fewest - 1), shares=shares)


@pytest.mark.parametrize(("smallest", "can"), [(2, False), (3, True)])
def test_documents_that_leave_a_part_with_two_examples_are_refused_and_three_are_enough(
    smallest: int, can: bool
) -> None:
    documents = ["one"] * 14 + ["two"] * (16 - smallest) + ["small"] * smallest
    found = []
    for seed in range(30):
        try:
            found.append(sorted(sizes(split(names(30), groups=documents, seed=seed))))
        except InputError:
            continue
    assert bool(found) is can and all(each[0] == smallest for each in found)


@pytest.mark.parametrize("size", [2, 4, 5, 6, 8])
def test_cuts_between_documents_lie_within_half_a_document_of_the_shares(size: int) -> None:
    for many in range(11, 24):
        n = size * many
        found = split(names(n), groups=[f"doc-{place // size}" for place in range(n)], seed=many)
        first, second, _ = sizes(found)
        assert abs(first - 0.3 * n) <= size / 2 + 1 and abs(first + second - 0.6 * n) <= size / 2 + 1
