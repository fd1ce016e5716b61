"""What of the log-probabilities is kept gives the same P(yes) as all of them."""

from __future__ import annotations

import random
from typing import Any

import pytest

from askance.memory.verdict_store import VerdictStore
from askance.models.base import Answer
from askance.models.direct import read_logprobs
from askance.models.replies.yes_no import p_yes_at, p_yes_of_field, spelling

WORDS = [
    "Yes",
    " yes",
    "YES",
    '"yes',
    "是",
    "No",
    "no",
    " NO",
    "false",
    "The",
    "It",
    "<",
    "**",
    "Not",
    "Based",
    "A",
    "x",
]


def token(text: str, alternatives: list[tuple[str, float]]) -> dict[str, Any]:
    return {"token": text, "top_logprobs": [{"token": word, "logprob": value} for word, value in alternatives]}


def rounded(alternatives: list[tuple[str, float]]) -> list[tuple[str, float]]:
    return [(word, round(value, 4)) for word, value in alternatives]


@pytest.mark.parametrize("seed", range(20))
def test_p_yes_of_a_word_is_bit_for_bit_that_of_all_alternatives(seed: int) -> None:
    rng = random.Random(seed)
    alternatives = sorted(((word, -rng.expovariate(0.2)) for word in WORDS), key=lambda each: -each[1])
    kept = read_logprobs({"content": [token(alternatives[0][0], alternatives)]})
    assert kept is not None
    assert p_yes_at(kept[0][1]) == p_yes_at(rounded(alternatives))
    assert kept[0][1][:5] == tuple(rounded(alternatives[:5]))
    assert all(spelling(word) is not None for word, _ in kept[0][1][5:])


def test_very_unlikely_spellings_are_kept() -> None:
    alternatives = [("No", -1e-5), *((f"word {each}", -11.0 - each) for each in range(8)), ("Yes", -25.0)]
    kept = read_logprobs({"content": [token("No", alternatives)]})
    assert kept is not None
    assert p_yes_at(kept[0][1]) == pytest.approx(1.4e-11, rel=0.1)


def test_tokens_around_the_answer_keep_their_place_but_no_alternatives(tmp_path: Any) -> None:
    parts = ['{"', "answer", '":', ' "', "yes", '",', " ..."]
    content = [token(part, [(part, -0.1), ("other", -3.0)]) for part in parts]
    content[4] = token("yes", [("yes", -0.2), ("no", -1.8), ("maybe", -5.0)])
    kept = read_logprobs({"content": content})
    assert kept is not None
    assert [text for text, _ in kept] == parts
    assert [len(alternatives) for _, alternatives in kept] == [0, 0, 0, 0, 3, 0, 0]
    before = p_yes_of_field(kept, "answer")
    assert before == p_yes_at([("yes", -0.2), ("no", -1.8)])
    with VerdictStore(tmp_path / "v.db") as store:
        store.put(b"key", Answer("text", kept))
        again = store.get(b"key")
    assert again is not None
    assert again.logprobs == kept
    assert p_yes_of_field(again.logprobs or (), "answer") == before
