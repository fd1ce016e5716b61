from __future__ import annotations

import json
from math import inf, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from askance.models.base import TokenProbabilities
from askance.models.replies.answer_words import (
    expected_number,
    expected_score,
    score_masses,
    worth_keeping,
)
from askance.models.replies.yes_no import p_yes_at, p_yes_of_field, read_yes_no, spelling, yes_no_mass


@pytest.mark.parametrize(
    ("token", "value"),
    [
        (token, True)
        for token in ["yes", "Yes", " YES", "▁yes", "Ġyes", "**Yes**", '"yes', "yes.", "True", "是", "yes\n"]
    ]
    + [(token, False) for token in ["no", " No", "NO!", "▁no", "'no'", "false", "否", "(no)"]]
    + [(token, None) for token in ["", " ", "yesterday", "not", "none", "ye", "y", "n", "maybe", "yes/no", "\ud800"]],
)
def test_all_spellings_are_known_and_nothing_else(token: str, value: bool | None) -> None:
    assert spelling(token) is value


def test_the_mass_of_all_spellings_is_merged() -> None:
    alternatives = [("yes", log(0.2)), (" Yes", log(0.2)), ("No", log(0.1)), ("The", log(0.5)), ("NO", -inf)]
    assert yes_no_mass(alternatives) == pytest.approx((0.4, 0.1))
    assert p_yes_at(alternatives) == pytest.approx(0.8)


def test_without_any_mass_there_is_no_probability() -> None:
    assert p_yes_at([("The", log(0.9))]) is None
    assert p_yes_at([]) is None
    assert p_yes_at([("yes", -inf), ("no", -inf)]) is None
    assert p_yes_at([("yes", -0.1)]) == 1.0


@pytest.mark.parametrize("begun", ["Y", " y", "YE", "▁Y"])
def test_a_yes_of_several_tokens_is_not_left_out(begun: str) -> None:
    """As YES is where the vocabulary has NO: what was said would count for nothing, and what was not for all."""
    assert p_yes_at([(begun, log(0.78)), ("NO", log(0.18))]) is None
    assert p_yes_at([("NO", log(0.6)), (begun, log(0.4))]) is None
    assert p_yes_at([("NO", log(0.3)), ("Yes", log(0.6)), (begun, log(0.001))]) == pytest.approx(2 / 3)


def test_the_beginning_of_a_yes_is_kept_with_an_answer() -> None:
    others = [(each, log(0.15)) for each in "abcde"]
    alternatives = [*others, ("Y", log(0.1)), ("NO", log(0.1))]
    assert worth_keeping(alternatives) == alternatives


PAIRS = st.lists(
    st.tuples(st.sampled_from(["yes", " Yes", "no", "No", "the", "a", "b", "c", "d", "e", "f"]), st.floats(-20, 0)),
    max_size=20,
    unique_by=lambda pair: pair[0],
).map(lambda pairs: sorted(pairs, key=lambda pair: -pair[1]))


@given(PAIRS)
def test_what_is_worth_keeping_gives_the_very_same_probability(pairs: list[tuple[str, float]]) -> None:
    kept = worth_keeping(pairs)
    assert yes_no_mass(kept) == yes_no_mass(pairs)
    assert p_yes_at(kept) == p_yes_at(pairs)
    p_yes = p_yes_at(pairs)
    assert p_yes is None or 0 <= p_yes <= 1


def tokens(*pieces: str, p: float = 0.25) -> list[TokenProbabilities]:
    """Pieces of an answer; those that spell yes or no carry P(yes) = p, counted up by 0.01 from one to the next."""
    found: list[TokenProbabilities] = []
    for piece in pieces:
        if spelling(piece) is None:
            found.append((piece, ((piece, -0.1),)))
        else:
            found.append((piece, (("yes", log(p)), ("no", log(1 - p)))))
            p += 0.01
    return found


@pytest.mark.parametrize(
    ("pieces", "field", "p_yes"),
    [
        (['{"', "answer", '":', ' "', "no", '",', ' "explanation": "x"}'], "answer", 0.25),
        (['{"answer"', ': "no', '"}'], "answer", 0.25),
        (["```json\n", "{\n", '  "answer": ', "true", "\n}\n```"], "answer", 0.25),
        (['{"q1": "', "yes", '", "q2": "', "no", '"}'], "q2", 0.26),
        (['{"q1": {"answer": "', "yes", '", "explanation": "q2: no"}, "q2": {"answer": "', "no", '"}}'], "q2", 0.26),
        (['{"q2": {"explanation": "\\"q2\\": \\"', "yes", '\\"", "answer": "', "no", '"}}'], "q2", 0.26),
        (['{"q1": {"answer": "', "yes", '"}, "answer": {"answer": "', "no", '"}}'], "answer", 0.26),
        (['{"q": "', "yes", '", "q": "', "no", '"}'], "q", 0.26),
        (['{"caf\\u00e9 \\"1\\"": "', "yes", '"}'], 'café "1"', 0.25),
        (['{"a.b*": "', "no", '"}'], "a.b*", 0.25),
        (['{"list": [{"q": "', "yes", '"}], "q": "', "no", '"}'], "q", 0.26),
        (['{"q": "maybe"}'], "q", None),
        (['{"other": "', "no", '"}'], "q", None),
        (["the ", '"q": "', "no", '"'], "q", None),
        ([], "q", None),
        (['{"q"'], "q", None),
        (['{"q": ""}'], "q", None),
    ],
)
def test_the_probability_of_a_field_is_read_at_its_own_value(
    pieces: list[str], field: str, p_yes: float | None
) -> None:
    found = p_yes_of_field(tokens(*pieces), field)
    assert found == (None if p_yes is None else pytest.approx(p_yes))


NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)


@given(st.dictionaries(NAMES, st.booleans(), min_size=1, max_size=4), st.booleans(), st.booleans(), st.booleans())
def test_every_field_of_a_batched_answer_is_found(
    answers: dict[str, bool], explained: bool, ascii_only: bool, spaced: bool
) -> None:
    words = {name: ["no", "yes"][value] for name, value in answers.items()}
    values: dict[str, object] = dict(words)
    if explained:
        values = {name: {"answer": word, "explanation": 'the "yes": {no'} for name, word in words.items()}
    text = json.dumps(values, ensure_ascii=ascii_only, indent=1 if spaced else None)
    found = [(character, (("yes", -1.0 - place), ("no", -1.0))) for place, character in enumerate(text)]
    for name, word in words.items():
        p_yes = p_yes_of_field(found, name)
        assert p_yes is not None
        place = round(-log(p_yes / (1 - p_yes))) if p_yes > 1e-12 else None
        assert place is None or text[place:].startswith(word)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Yes", True),
        (" yes.", True),
        ("**No**, because", False),
        ("No, yes would be wrong", False),
        ("yes it is", True),
        ("Yes and no.", None),
        ("yes or no", None),
        ("No / Yes", None),
        ("yes/no", None),
        ("The answer is yes", None),
        ("not sure", None),
        ("", None),
        ("...", None),
    ],
)
def test_a_short_reply_must_begin_with_its_answer(text: str, said: bool | None) -> None:
    assert read_yes_no(text) is said


@pytest.mark.parametrize(
    ("token", "value"),
    [(token, 4) for token in ["4", " 4", "**4**", "4.", "▁4", "Ġ4", '"4', "(4)", "4\n", ": 4"]]
    + [(token, None) for token in ["", " ", "42", "-4", ".4", "4.5", "4th", "four", "1/4", "٤", "½", "#4", "4-"]],
)
def test_a_digit_is_one_digit_and_nothing_else(token: str, value: int | None) -> None:
    assert score_masses([(token, 0.0)], 0, 9) == [float(number == value) for number in range(10)]


def test_the_masses_of_a_scale_merge_spellings_and_leave_out_what_is_beside_it() -> None:
    alternatives = [("4", log(0.3)), (" 4", log(0.1)), ("5", log(0.2)), ("0", log(0.1)), ("The", log(0.2))]
    assert score_masses(alternatives, 1, 5) == pytest.approx([0, 0, 0, 0.4, 0.2])
    assert score_masses(alternatives, 0, 6) == pytest.approx([0.1, 0, 0, 0, 0.4, 0.2, 0])
    assert score_masses([], 1, 2) == [0.0, 0.0]


MASSES = st.lists(st.floats(0, 1), min_size=2, max_size=10).filter(lambda masses: sum(masses) > 1e-6)


@given(MASSES, st.integers(0, 5))
def test_the_expected_score_is_the_mean_of_the_scale_mapped_to_0_and_1(masses: list[float], low: int) -> None:
    numbers = np.arange(low, low + len(masses))
    mean = float(np.average(numbers, weights=masses))
    found = expected_score(masses)
    assert 0 <= found <= 1
    assert found == pytest.approx((mean - low) / (len(masses) - 1))


def test_the_ends_of_the_scale_are_0_and_1() -> None:
    assert expected_score([0.3, 0, 0, 0, 0]) == 0
    assert expected_score([0, 0, 0, 0, 0.3]) == 1
    assert expected_score([0.1, 0, 0.1]) == pytest.approx(0.5)


def test_the_first_word_is_not_a_blank_or_a_mark() -> None:
    tokens = [("▁", ()), ("**", (("**", -0.1),)), ("4", (("4", -0.2),)), ("5", ())]
    assert expected_number(tokens, 1, 5) == 0.75
    assert expected_number([("\n", ())], 1, 5) is None
    assert expected_number([], 1, 5) is None


DIGITS = st.lists(
    st.tuples(st.sampled_from([*"0123456789", " 4", "the", "a", "b", "c", "d", "e", "f"]), st.floats(-20, 0)),
    max_size=20,
    unique_by=lambda pair: pair[0],
).map(lambda pairs: sorted(pairs, key=lambda pair: -pair[1]))


@given(DIGITS)
def test_what_is_worth_keeping_gives_the_very_same_scores(pairs: list[tuple[str, float]]) -> None:
    assert score_masses(worth_keeping(pairs), 0, 9) == score_masses(pairs, 0, 9)


def test_a_number_in_a_json_answer_is_found() -> None:
    pieces = ['{"', "score", '": ', "4", ', "explanation": "', "5", '"}']
    found = [(piece, ((piece, -0.5), ("x", -1.0))) for piece in pieces]
    assert expected_number(found, 0, 8, "score") == 0.5
    assert expected_number(found, 0, 8, "other") is None
