"""Values of measures: against a second counting, on texts that are long, missing or without spaces, and kept."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from askance.agents.checks import computed_verdicts, versions_of
from askance.agents.measures import similarity
from askance.agents.measures.similarity import KeptVectors
from askance.agents.measures.values import values_of
from askance.agents.measures.words import longest_copy, names_of, numbers_of, readability, repetition, words_of
from askance.memory.embedders import SharedWordsEmbedder
from askance.memory.verdict_store import VerdictStore
from askance.prompts.checklist import ComputedMeasure
from askance.prompts.criteria.measures import FORMS, RELATIONS
from askance.prompts.errors import InputError
from askance.prompts.examples import Example, load_examples
from tests.measured.measures import correlations, of_ten_sentences
from tests.said import naming

DATA = Path(__file__).resolve().parents[4] / "shared" / "data"


def measure(name: str, **more: object) -> ComputedMeasure:
    return ComputedMeasure.model_validate({"id": "m", "measure": name, **more})


def value(name: str, output: str, text: str = "", **more: object) -> float | str:
    example = Example(id="e", input=text, output=output)
    return values_of([measure(name, **{"range": [0, 9], **more})], [example])["m"]["e"]


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("words_found(input)", 5 / 8),
        ("word_pairs_found(input)", 4 / 7),
        ("covered(input)", 5 / 7),
        ("names_found(input)", 0.5),
        ("names_new(input)", 1.0),
        ("numbers_found(input)", 0.5),
        ("numbers_new(input)", 1.0),
        ("longest_copy(input)", 5 / 8),
        ("words", 8.0),
        ("sentences", 1.0),
        ("list_marks", 0.0),
        ("repetition", 0.0),
    ],
)
def test_words_are_counted_as_by_hand(name: str, wanted: float) -> None:
    assert value(name, "Now Anna paid 1000 euros to Berta, 3", "On Monday Anna paid 1000 euros to") == pytest.approx(
        wanted
    )


def test_a_script_without_spaces_is_split_into_pairs_of_characters() -> None:
    assert words_of("東京都 is big") == ("東京", "京都", "is", "big")
    assert value("words_found(input)", "東京都", "東京都民") == 1.0
    assert value("words_found(input)", "大阪府", "東京都民") == 0.0


def test_names_and_numbers_are_those_of_the_text() -> None:
    assert names_of("Police said that Anna Maier of NATO met Bo. Anna left.") == ("anna", "maier", "nato", "bo")
    assert numbers_of("1,000 of 2.5 and 1,5") == ("1000", "2.5", "1,5")
    assert value("list_marks", "Bring:\n- a cup\n2. a pen\nno-one") == 2.0


def test_form_measures_agree_with_their_definitions() -> None:
    assert repetition("a b a b a b") == pytest.approx(1 - 2 / 5)
    assert readability("One two three. Wonderful elephants.") == pytest.approx(5 / 2 + 100 * 2 / 5)
    assert longest_copy("x a b c y", "a b c d") == pytest.approx(3 / 5)


def test_similarities_are_cosines_of_the_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = KeptVectors(SharedWordsEmbedder())
    output, text = "The bus is late. Nobody knows why.", "Why is the bus late?"
    one, other = SharedWordsEmbedder().embed(["The bus is late.", "Nobody knows why."])
    [asked] = SharedWordsEmbedder().embed([text])
    found = [
        similarity.SIMILARITIES[name][0](output, text, vectors) for name in ("nearest_sentence", "least_supported")
    ]
    nearest, least = max(one @ asked, other @ asked), min(one @ asked, other @ asked)
    assert found == [
        (pytest.approx(nearest), "The bus is late."),
        (pytest.approx(least), "Nobody knows why."),
    ]
    mean = similarity.mean_supported(output, text, vectors)
    assert mean == (pytest.approx((one @ asked + other @ asked) / 2), None)


def test_each_text_is_embedded_once_and_a_long_one_in_pieces() -> None:
    class Counting(SharedWordsEmbedder):
        seen: ClassVar[list[str]] = []

        def embed(self, texts):  # type: ignore[no-untyped-def]
            self.seen += texts
            return super().embed(texts)

    vectors = KeptVectors(Counting())
    long = " ".join(f"Sentence {number} is about the bus." for number in range(200))
    for _ in range(2):
        assert np.isfinite((similarity.similarity(long, "the bus", vectors) or (np.nan,))[0])
    assert len(Counting.seen) == len(set(Counting.seen)) > 8
    assert max(len(each.split()) for each in Counting.seen) <= similarity.PIECE


def test_what_cannot_be_measured_is_no_score() -> None:
    example = Example(id="e", input="x", output="y")
    [verdict] = computed_verdicts([measure("words_found(context)")], [example], "p")
    assert (verdict.answer, verdict.p_yes, verdict.status) == (None, None, "api_error")
    assert "no context" in (verdict.error or "")
    assert isinstance(value("words_found(input)", "…", "y"), str)


def test_a_verdict_keeps_the_value_and_the_version() -> None:
    example = Example(id="e", input="x", output="one two three")
    [verdict] = computed_verdicts([measure("words", range=[0, 4], good="low")], [example], "p")
    assert (verdict.value, verdict.p_yes, verdict.answer, verdict.p_yes_from) == (3.0, 0.75, None, "computed")
    assert (verdict.model, verdict.version) == (None, "1")


def test_the_last_turn_of_a_conversation_is_measured() -> None:
    turns = [
        {"role": "user", "content": "Where is Bonn?"},
        {"role": "assistant", "content": "On the Rhine."},
        {"role": "user", "content": "And the bus?"},
    ]
    example = Example.model_validate({"id": "e", "input": turns, "output": [{"role": "assistant", "content": "bus"}]})
    assert values_of([measure("covered(input)")], [example])["m"]["e"] == pytest.approx(1 / 3)


def test_values_come_from_the_store_where_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    examples = [Example(id="e", input="a b", output="a c")]
    with VerdictStore(tmp_path / "v.db") as store:
        first = values_of([measure("words_found(input)")], examples, store)
        assert len(store) == 1
        monkeypatch.setattr("askance.agents.measures.values._value", lambda *_: pytest.fail("computed again"))
        assert values_of([measure("words_found(input)")], examples, store) == first == {"m": {"e": 0.5}}


def test_a_function_of_ones_own_gives_a_number_and_its_file_is_its_version(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text("def size(example):\n    return len(example.output)\n")
    own = measure("own.py:size", range=[0, 10]).found_in(tmp_path)
    example = Example(id="e", input="", output="12345")
    [verdict] = computed_verdicts([own], [example], "p")
    assert (verdict.value, verdict.p_yes) == (5.0, 0.5)
    before = versions_of([own])["m"]
    file.write_text("def size(example):\n    return 2\n")
    assert versions_of([own])["m"] != before
    assert computed_verdicts([own], [example], "p")[0].value == 2.0


@pytest.mark.parametrize(
    ("body", "said"),
    [("return 'x'", "it must return a number"), ("return True", "type bool"), ("return float('nan')", "returned nan")],
)
def test_a_function_that_gives_no_number_is_refused(tmp_path: Path, body: str, said: str) -> None:
    (tmp_path / "own.py").write_text(f"def size(example):\n    {body}\n")
    with pytest.raises(InputError, match=naming(said)):
        computed_verdicts([measure("own.py:size").found_in(tmp_path)], [Example(id="e", input="", output="x")], "p")


def test_a_function_that_fails_is_a_missing_verdict_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("def size(example):\n    return 1 / 0\n")
    own = measure("own.py:size").found_in(tmp_path)
    [verdict] = computed_verdicts([own], [Example(id="e", input="", output="x")], "p")
    assert verdict.status == "api_error" and "line 2" in (verdict.error or "")


def test_a_value_outside_its_range_ends_the_command(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("def size(example):\n    return 7\n")
    with pytest.raises(InputError, match="outside"):
        computed_verdicts([measure("own.py:size").found_in(tmp_path)], [Example(id="e", input="", output="x")], "p")


def test_all_measures_that_are_named_are_computed() -> None:
    example = Example(id="e", input="The bus to Bonn is late.", output="Anna waits for the bus to Bonn at 9.")
    for name in [*(f"{each}(input)" for each in RELATIONS), *FORMS]:
        assert isinstance(values_of([measure(name, range=[0, 9])], [example])["m"]["e"], float), name


@pytest.mark.skipif(not DATA.is_dir(), reason="the real data are not here")
def test_measures_correlate_with_people_as_was_published() -> None:
    defacto = correlations(list(load_examples(DATA / "defacto_train.jsonl")), ["names_new(input)"])["spearman"]
    qags = correlations(list(load_examples(DATA / "qags_cnndm.jsonl")), ["word_pairs_found(input)"])["spearman"]
    assert defacto["names_new(input)"][0] == pytest.approx(-0.35, abs=0.03)
    assert qags["word_pairs_found(input)"][0] == pytest.approx(0.62, abs=0.01)


def test_examples_of_ten_sentences_share_none() -> None:
    article = " ".join(f"The boat number {place} came in late." for place in range(25))
    first, second = of_ten_sentences([Example(id="a", input=article, output="x")], 2)
    texts = [each.input + " " + (each.output or "") for each in (first, second)]
    assert [len(similarity.sentences_of(text)) for text in texts] == [10, 10]
    assert not set(similarity.sentences_of(texts[0])) & set(similarity.sentences_of(texts[1]))
    with pytest.raises(InputError, match=naming("--sentences 3", 25, 30)):
        of_ten_sentences([Example(id="a", input=article, output="x")], 3)
