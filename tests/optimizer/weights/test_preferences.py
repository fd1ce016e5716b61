from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from askance.optimizer.weights.score_tables import load_preferences, preference_scores
from askance.prompts.errors import InputError
from tests.said import naming


def line(number: int, **fields: Any) -> dict[str, Any]:
    return {
        "id": f"p{number}",
        "preferred": "a",
        "scores_a": {"clear": 1.0, "true": 0.5},
        "scores_b": {"clear": 0.25, "true": 0.5},
    } | fields


def write(folder: Path, *rows: dict[str, Any]) -> Path:
    path = folder / "prefs.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


def test_scores_and_preferences_become_differences_towards_the_preferred_output(tmp_path: Path) -> None:
    prefs = load_preferences(write(tmp_path, line(1), line(2, preferred="b"), line(3, preferred="tie")))
    assert prefs.tests == ("clear", "true")
    pairs = prefs.differences()
    assert pairs.differences.tolist() == [[0.75, 0.0], [-0.75, 0.0], [0.75, 0.0]]
    assert pairs.is_tie.tolist() == [False, False, True]


def test_a_pair_with_a_missing_score_is_left_out_and_counted_by_test(tmp_path: Path) -> None:
    rows = [
        line(1),
        line(2, scores_a={"clear": None, "true": 1}),
        line(3, scores_b={"clear": 0.5}),
        line(4, scores_a={"clear": None}),
    ]
    prefs = load_preferences(write(tmp_path, *rows))
    assert prefs.ids == ("p1",)
    assert [pair.id for pair in prefs.left_out] == ["p2", "p3", "p4"]
    assert prefs.missing_by_test == {"clear": 2, "true": 2}


def test_a_test_that_appears_late_is_missing_in_earlier_pairs(tmp_path: Path) -> None:
    late = {"clear": 1, "true": 0, "short": 1}
    prefs = load_preferences(write(tmp_path, line(1), line(2, scores_a=late, scores_b=late)))
    assert prefs.tests == ("clear", "true", "short")
    assert prefs.ids == ("p2",)
    assert prefs.missing_by_test == {"short": 1}


def test_booleans_count_as_one_and_zero(tmp_path: Path) -> None:
    prefs = load_preferences(write(tmp_path, line(1, scores_a={"q": True}, scores_b={"q": False})))
    assert prefs.differences().differences.tolist() == [[1.0]]


def test_pairs_with_the_same_input_share_a_group_unless_one_is_named(tmp_path: Path) -> None:
    rows = [
        line(1, input="x"),
        line(2, input="x"),
        line(3, input="y"),
        line(4, input="x", metadata={"group": "g"}),
        line(5),
    ]
    groups = load_preferences(write(tmp_path, *rows)).differences().groups
    assert groups.tolist() == [0, 0, 1, 2, 3]


@pytest.mark.parametrize("beside", [True, False])
def test_pairs_of_one_document_share_a_group_unless_one_is_named(tmp_path: Path, beside: bool) -> None:
    def of(name: object) -> dict[str, Any]:
        return {"document": name} if beside else {"metadata": {"document": name}}

    rows = [
        line(1, input="x", **of("d")),
        line(2, input="y", **of("d")),
        line(3, input="y", **of(0)),
        line(4, input="z", **of(None)),
        line(5, input="z", **of("")),
        line(6, input="z", group="g", **of("d")),
    ]
    groups = load_preferences(write(tmp_path, *rows)).differences().groups
    assert groups.tolist() == [0, 0, 1, 2, 2, 3]


def test_sections_are_named_with_their_data_set(tmp_path: Path) -> None:
    rows = [
        line(1, section="chat", dataset="bench"),
        line(2, metadata={"section": "code", "dataset": "bench"}),
        line(3, section="chat", dataset="bench"),
    ]
    prefs = load_preferences(write(tmp_path, *rows))
    assert prefs.section_names("section") == ("bench/chat", "bench/code")
    assert prefs.differences("section").sections.tolist() == [0, 1, 0]
    assert prefs.section_names("dataset") == ("bench",)


def test_asking_for_sections_that_no_pair_names_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=naming("no pair", "'section'")):
        load_preferences(write(tmp_path, line(1))).differences("section")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"preferred": "first"}, r"line 2: field 'preferred': 'first' is not"),
        (
            {"scores_a": {"clear": 1.5, "true": 0}},
            r"line 2, field 'scores_a.clear': 1.5 is not a number in \[0, 1\]",
        ),
        ({"scores_b": {"clear": "high", "true": 0}}, r"line 2, field 'scores_b.clear': 'high'"),
        ({"scores_a": {"clear": float("nan"), "true": 0}}, r"line 2, field 'scores_a.clear': nan"),
        ({"scores_b": {"clear": 10**400, "true": 0}}, r"line 2, field 'scores_b.clear': 1000\d+ is not a number"),
        ({"scores_b": [1, 0]}, r"line 2, field 'scores_b': an object"),
        ({"preferred": ["a"]}, r"line 2: field 'preferred': \['a'\] is not"),
        ({"id": "p1"}, r"line 2: the id 'p1' was used before, in line 1"),
        ({"group": ["g"]}, r"line 2, field 'group': a text is needed"),
    ],
)
def test_errors_name_the_file_line_and_field(tmp_path: Path, fields: dict[str, Any], message: str) -> None:
    path = write(tmp_path, line(1), line(2, **fields))
    with pytest.raises(InputError, match=message) as caught:
        load_preferences(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("field", ["preferred", "scores_a", "scores_b"])
def test_a_missing_field_is_named(tmp_path: Path, field: str) -> None:
    row = line(1)
    del row[field]
    with pytest.raises(InputError, match=f"line 1: the field '{field}' is missing"):
        load_preferences(write(tmp_path, row))


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=naming("prefs.jsonl", "no pairs")):
        load_preferences(write(tmp_path))


def test_tables_in_memory_take_none_as_missing() -> None:
    prefs = preference_scores(["1", "2"], ["q"], [[1.0], [None]], [[0.0], [0.5]], ["a", "b"])
    assert prefs.ids == ("1",)
    assert prefs.missing_by_test == {"q": 1}
