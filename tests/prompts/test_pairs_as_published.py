"""Pairs under the names of published sets, and with names and words of one's own."""

from __future__ import annotations

from typing import Any

import pytest

from askance.optimizer.weights.judged_pairs import load_pairs
from askance.optimizer.weights.score_tables import load_preferences
from askance.prompts.errors import InputError
from tests.said import says

A, B = "At nine.", "It depends."
PAIR = {"input": "When?", "output_a": A, "output_b": B}


def sides(*given: Any, **named: Any) -> list[str]:
    return [each.preferred for each in load_pairs([PAIR | {"preferred": value} for value in given], **named)]


@pytest.mark.parametrize(
    "row",
    [
        {"input": "When?", "output_1": A, "output_2": B, "label": 1},  # LLMBar
        {"instruction": "When?", "input": "", "response1": A, "response2": B, "label": 1},  # PandaLM
        {"question": "When?", "response_A": A, "response_B": B, "label": "A>B"},  # JudgeBench
        {"instruction": "When?", "output_1": A, "output_2": B, "preference": 1.0, "generator_1": "x"},  # AlpacaEval
        {"prompt": "When?", "response_a": A, "response_b": B, "winner": "model_a", "model_a": "x", "model_b": "y"},
        {"prompt": "When?", "response_a": A, "response_b": B, "winner": "X", "model_a": "x", "model_b": "y"},
        {"question": "When?", "answer_a": A, "answer_b": B, "BetterAnswer": "Answer A"},
        {  # MT-Bench
            "model_a": "x",
            "model_b": "y",
            "winner": "model_a",
            "conversation_a": [{"role": "user", "content": "When?"}, {"role": "assistant", "content": A}],
            "conversation_b": [{"role": "user", "content": "When?"}, {"role": "assistant", "content": B}],
        },
    ],
)
def test_names_of_published_pairs_are_known(row: dict[str, Any]) -> None:
    [pair] = load_pairs([row])
    assert (pair.input, pair.output_a, pair.output_b, pair.preferred) == ("When?", A, B, "a")
    assert pair.id == load_pairs([PAIR | {"preferred": "a"}])[0].id


@pytest.mark.parametrize(
    ("side", "words"),
    [
        (
            "a",
            [
                "a",
                "A",
                1,
                1.0,
                "1",
                "model_a",
                "Response A",
                "output_1",
                "A>B",
                "A>>B",
                "[[A>B]]",
                "B<A",
                "assistant_a",
            ],
        ),
        ("b", ["b", "B", 2, "2.0", "Model_B", "answer b", "B>A", "[[B>>A]]", "A<B", "response2"]),
        ("tie", ["tie", "Tie", "tie (bothbad)", 1.5, "1.5", "A=B", "B = A", "[[A=B]]", "both", "draw"]),
    ],
)
def test_usual_ways_to_say_which_is_better(side: str, words: list[Any]) -> None:
    assert sides(*words) == [side] * len(words)


@pytest.mark.parametrize("value", [0, 3, "c", "A>A", True, "better", "", None, ["a"]])
def test_what_is_not_known_is_refused(value: Any) -> None:
    with pytest.raises(InputError) as caught:
        sides(value)
    assert says(str(caught.value), "row 1", "preferred")


def test_columns_and_words_of_ones_own() -> None:
    row = {"ask": {"text": "When?"}, "left": A, "right": B, "choice": "L"}
    fields = {"input": "ask.text", "output_a": "left", "output_b": "right", "preferred": "choice"}
    labels = {"a": ["L"], "b": ["R"], "tie": ["?"]}
    found = load_pairs([row, row | {"choice": "r"}, row | {"choice": "?"}], fields=fields, labels=labels)
    assert [(each.input, each.output_a, each.preferred) for each in found] == [
        ("When?", A, each) for each in ("a", "b", "tie")
    ]
    assert sides(0, 1, labels={"a": ["0"], "b": ["1"]}) == ["a", "b"]


def test_our_own_names_win() -> None:
    [pair] = load_pairs([PAIR | {"id": 7, "preferred": "b", "label": 1, "response_a": "x", "instruction": "y"}])
    assert (pair.id, pair.input, pair.output_a, pair.preferred) == ("7", "When?", A, "b")


def test_pairs_without_ids_are_called_after_their_texts(caplog: pytest.LogCaptureFixture) -> None:
    pairs = [PAIR | {"preferred": "a"}, PAIR | {"preferred": "a"}, PAIR | {"preferred": "a", "id": "NA"}]
    first, second, third = (each.id for each in load_pairs(pairs))
    assert [second, third] == [f"{first}-2", f"{first}-3"] and caplog.text.count("had none") == 1


def test_texts_of_pairs_that_are_no_strings() -> None:
    [pair] = load_pairs([{"input": ["x", "y"], "output_a": 4, "output_b": {"a": 1, "b": 2}, "preferred": "b"}])
    assert (pair.input, pair.output_a, pair.output_b) == ("x\n\ny", "4", '{\n  "a": 1,\n  "b": 2\n}')


def test_scored_pairs_take_the_same() -> None:
    rows = [
        {"scores_a": {"t": 1}, "scores_b": {"t": 0}, "winner": "A"},
        {"scores_a": {"t": 0}, "scores_b": {"t": 1}, "winner": "right"},
    ]
    found = load_preferences(rows, labels={"b": ("right",)})
    assert found.preferred.tolist() == [1, -1] and len(set(found.ids)) == 2


def test_a_message_without_content_is_named_by_its_number() -> None:
    said = [{"role": "user", "content": "Hi."}, {"role": "assistant"}]
    with pytest.raises(InputError) as caught:
        load_pairs([{"prompt": "x", "chosen": said, "rejected": "b"}])
    assert says(str(caught.value), "row 1", "'chosen'", "message 2", "content")
