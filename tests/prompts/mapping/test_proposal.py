"""Mappings proposed from the names and values of columns, without a published form."""

from __future__ import annotations

from typing import Any

import pytest

from askance import load_examples
from askance.optimizer.weights.judged_pairs import load_pairs
from askance.prompts.errors import InputError
from askance.prompts.json_documents import at
from askance.prompts.mapping.columns import columns_in
from askance.prompts.mapping.proposal import ProposedMapping, propose

ASKED = ("Where is my parcel now?", "Can I have my money back?", "Is the shop open today?")
SAID = ("It comes on Monday.", "Yes, you get all of it.", "It is open until noon.")


def proposed(**columns: Any) -> ProposedMapping:
    """The mapping for three rows with a question, an answer and further columns."""
    rows = [
        {"question": asked, "answer": said, **{name: values[place] for name, values in columns.items()}}
        for place, (asked, said) in enumerate(zip(ASKED, SAID, strict=True))
    ]
    return propose(columns_in(rows))


def fields(**columns: Any) -> dict[str, Any]:
    found = dict(proposed(**columns).fields)
    assert (found.pop("input"), found.pop("output")) == ("question", "answer")
    return found


@pytest.mark.parametrize(
    ("name", "values", "ours"),
    [
        ("rating", (4, 5, 2), "human.overall"),
        ("tone_rating", (4, 5, 2), "human.tone"),
        ("Helpfulness", ("4/5", "5/5", "2/5"), "human.helpfulness"),
        ("human_label", ("pass", "fail", "pass"), "human.overall"),
        ("correct", (True, False, True), "human.correct"),
        ("Remark", ("Too long for this.", None, "Names no day at all."), "comment"),
        ("expected_answer", ("On Monday.", "No, not all.", "Yes."), "reference"),
        ("contexts", (["a b"], ["c d"], ["e f"]), "context"),
        ("ticket_id", ("t1", "t2", "t3"), "id"),
    ],
)
def test_a_column_is_known_by_its_name_and_values(name: str, values: Any, ours: str) -> None:
    assert fields(**{name: values}) == {ours: name}


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("llm_judge_score", (4, 5, 2)),
        ("latency", (1, 2, 3)),
        ("year", (2020, 2021, 2022)),
        ("faithfulness", (0.8333, 0.1234, 0.5)),
        ("fluency/score", (4, 5, 2)),
        ("is_archived", (True, False, True)),
        ("region", ("north", "south", "north")),
    ],
)
def test_what_no_person_gave_stays_metadata(name: str, values: Any) -> None:
    assert fields(**{name: values}) == {}


def test_raters_are_the_columns_with_labels_whose_names_say_nothing() -> None:
    assert fields(anna=("Pass", "Fail", "Pass"), ben=("Pass", "Pass", "Fail")) == {"human.overall": ("anna", "ben")}


def test_words_of_labels_are_explained_where_their_meaning_is_known() -> None:
    found = proposed(verdict=("hallucinated", "grounded", "grounded"))
    assert found.labels == {"good": ("grounded",), "bad": ("hallucinated",)}
    assert proposed(rating=("Excellent", "Bad", "Could be improved")).label_scale == (
        *("Bad", "Could be improved", "Excellent"),
    )
    unknown = proposed(verdict=("blue", "green", "blue"))
    assert unknown.labels == {} and "human.overall" not in unknown.fields
    assert "--field human.overall=verdict --labels good=WORD,bad=WORD" in unknown.notes[0]


def test_a_scale_is_proposed_where_the_numbers_fill_it_in_part_only() -> None:
    assert proposed(rating=(3, 5, 4)).human_scale == (1, 5)
    assert proposed(rating=(1, 5, 4)).human_scale is None
    assert proposed(rating=("3/5", "2/5", "4/5")).human_scale == (1, 5)
    assert proposed(rating=(2, 3, 4)).human_scale is None


def test_an_id_that_repeats_is_a_document_and_the_other_the_id() -> None:
    found = proposed(id=("a", "a", "b"), row_id=(1, 2, 3))
    assert dict(found.fields) == {
        "id": "row_id",
        "input": "question",
        "output": "answer",
        "metadata.document": "id",
    }


def test_columns_without_known_names_are_taken_by_their_place() -> None:
    rows = [
        {
            "wann": "2026-01-05 10:00",
            "wer": "Anna Smith",
            "frage": asked,
            "antwort": said,
            "wo": "https://example.org/a",
        }
        for asked, said in zip(ASKED, SAID, strict=True)
    ]
    assert dict(propose(columns_in(rows)).fields) == {"input": "frage", "output": "antwort"}


def test_a_file_of_our_own_needs_no_mapping() -> None:
    rows = [
        {"id": str(place), "input": "x y", "output": "u v", "human": {"tone": 3, "b7": True}, "metadata": {"score": 3}}
        for place in range(3)
    ]
    assert propose(columns_in(rows)).options() == []


def test_paths_go_through_lists() -> None:
    row = {"turns": [{"who": "a", "says": [1, 2]}, {"who": "b.c", "says": [3]}, {"who": "a", "says": None}]}
    assert at(row, "turns.*.says") == [1, 2, 3]
    assert at(row, "turns.who=a.says") == [1, 2] and at(row, "turns.who=b.c.says") == [3]
    assert at(row, "turns.:-1.who") == ["a", "b.c"] and at(row, "turns.-1.who") == "a"
    assert at(row, "turns.who=z.says") is None and at(row, "turns.7") is None


def test_an_error_gives_what_the_given_options_lack() -> None:
    rows = [{"q": "x", "question": asked, "answer": said} for asked, said in zip(ASKED, SAID, strict=True)]
    with pytest.raises(InputError, match=r"This would read it: --field output=answer$"):
        load_examples(rows, fields={"input": "question"})
    with pytest.raises(InputError, match=r"outputs.*evaluate"):
        load_pairs(rows)
    with pytest.raises(InputError, match=r"tie=WORD\.$"):  # somebody says that they are pairs
        load_pairs(
            [{"question": "x", "here": "y", "there": "z", "best": "L"}],
            fields={"output_a": "here", "output_b": "there", "preferred": "best"},
        )
    with pytest.raises(InputError, match=r"pairs.*weigh"):
        load_examples([{"prompt": "x", "chosen": "y", "rejected": "z"}])


def test_an_error_that_no_mapping_mends_gives_none() -> None:
    with pytest.raises(InputError) as caught:
        load_examples([{"id": 1, "input": "x", "output": "y"}, {"id": 1, "input": "z", "output": "u"}, {"id": 2}])
    assert "would read" not in str(caught.value)


def test_left_and_right_are_the_outputs_of_a_pair() -> None:
    rows = [
        {"question": asked, "left": said, "right": f"Not {said}", "winner": "tie"}
        for asked, said in zip(ASKED, SAID, strict=True)
    ]
    found = propose(columns_in(rows))
    assert found.pairs and found.fields == {"output_a": "left", "output_b": "right"}
