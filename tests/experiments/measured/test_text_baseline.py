"""A classifier of the words, beside learned judges."""

from __future__ import annotations

import json

import pytest

from askance.experiments.measured.text_baseline import RESULT, classified


def test_the_words_of_the_front_desk_say_what_the_stored_result_says() -> None:
    stored = next(row for row in json.loads(RESULT.read_text())["rows"] if row["data"] == "front_desk")
    found = classified("front_desk", 0, "words")
    assert (stored["seed"], stored["reading"]) == (0, "words")
    for part, count in (("test", 60), ("later", 150)):
        assert found[part]["n"] == count
        assert found[part]["spearman"]["value"] == pytest.approx(stored[part]["spearman"]["value"], abs=0.02)
    assert found["later"]["spearman"]["low"] > 0.1
