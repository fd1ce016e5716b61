from __future__ import annotations

import json
from math import inf, log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askance.models.base import TokenProbabilities
from askance.models.probabilities import (
    p_yes_at,
    p_yes_of_field,
    read_yes_no,
    spelling,
    worth_keeping,
    yes_no_mass,
)


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
    assert p_yes_at([("yes", log(0.05))], least_mass=0.1) is None
    assert p_yes_at([("yes", -0.1)]) == 1.0


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
