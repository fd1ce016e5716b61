"""An encoder that reads an output once for all questions on it."""

from __future__ import annotations

from pathlib import Path

import pytest

from askance.models.trained.bases import find_base
from askance.models.trained.network import Network, SharedEncoder, open_network, start_network
from askance.models.trained.scored_text import ScoredText, rows_of
from askance.models.trained.scorer_file import ScorerFile, read_scorer
from askance.training.train import train

from .conftest import CHECKLIST, SMALL, WORDS, made, said

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

QUESTIONS = ("nice", "damaged", *(f"{one} {other}" for one in WORDS[:6] for other in WORDS[6:]))
OUTPUTS = ("red good old", "blue broken warm soft slow fast", "good " * 20)


@pytest.fixture(scope="module")
def network(tiny_base: Path) -> Network:
    found = start_network(find_base(str(tiny_base)), levels=3, longest=16, seed=0, rank=1)
    assert found.kind == "shared-encoder"
    return found


def test_what_is_said_to_a_question_does_not_depend_on_what_else_is_asked(network: Network) -> None:
    texts = [ScoredText(asked, output, "tall 7") for asked in QUESTIONS for output in OUTPUTS]
    together = network.levels(texts).detach()
    assert together.shape == (3 * 38, 3) and len({*map(tuple, together.tolist())}) == 3 * 38
    assert torch.allclose(together.exp().sum(-1), torch.ones(3 * 38))
    alone = torch.cat([network.levels([each]).detach() for each in texts])
    assert float((together - alone).abs().max()) < 1e-5
    assert torch.allclose(network.levels(texts[::-1]).detach().flip(0), together, atol=1e-5)


def test_what_an_output_was_made_from_is_told_apart_from_it_and_each_question_from_the_others(tiny_base: Path) -> None:
    found = SharedEncoder.start(find_base(str(tiny_base)), levels=2, longest=16, seed=0, precision=None)
    texts = [ScoredText(asked, "red good", given) for given in ("tall 7", "") for asked in ("nice", "damaged")]
    with_input, without = rows_of(texts, found._cut)
    assert with_input.types == [0, 0, 0, 0, 1, 1, 1, *6 * [1]]
    assert with_input.parts == [*7 * [0], 1, 1, 1, 2, 2, 2]
    assert with_input.positions == [*range(7), 0, 1, 2, 0, 1, 2]
    assert (with_input.places, without.places) == ([0, 1], [2, 3])
    assert len(with_input.tokens) == 13 and with_input.tokens[:4] == without.tokens[:4]


def test_an_output_is_cut_and_no_question_is(network: Network) -> None:
    long = "red " * 40
    assert network.tokens([ScoredText("nice", "red good", "tall"), ScoredText("nice", long)]) == [6, 43]
    first, *others = network.levels(
        [
            ScoredText("nice", long),
            ScoredText("nice", long + "good"),
            ScoredText("damaged", long),
            ScoredText("nice", "blue " + long),
        ]
    ).detach()
    same, other_question, other_output = ((first - each).abs().max() for each in others)
    assert same < 1e-6 and other_question > 1e-3 and other_output > 1e-3


def test_a_question_on_the_output_alone_reads_no_more_of_the_example(network: Network) -> None:
    alone, whole = ScoredText("nice", "red good"), ScoredText("nice", "red good", "tall 7")
    other = ScoredText("nice", "red good", "small 9")
    said_alone, said_whole, said_other = network.levels([alone, whole, other]).detach()
    assert torch.allclose(said_alone, network.levels([alone]).detach()[0], atol=1e-6)
    assert (said_whole - said_other).abs().max() > 1e-3


def test_a_base_that_cannot_be_told_what_each_token_sees_reads_each_question_apart(
    tiny_base: Path, tmp_path: Path
) -> None:
    config = transformers.DistilBertConfig(
        vocab_size=256, dim=32, n_layers=1, n_heads=4, hidden_dim=64, max_position_embeddings=64, initializer_range=0.3
    )
    torch.manual_seed(0)
    transformers.DistilBertForSequenceClassification(config).save_pretrained(tmp_path / "base")
    transformers.AutoTokenizer.from_pretrained(tiny_base).save_pretrained(tmp_path / "base")
    examples = made(60)
    place, base = tmp_path / "s", str(tmp_path / "base")
    found = train(examples, checklist=CHECKLIST, output=place, base=base, verdicts=said(examples), **SMALL)
    assert read_scorer(place).kind == open_network(place, read_scorer(place)).kind == "cross-encoder"
    assert found.data["curve"]["best_epoch"] > 0


def test_a_scorer_that_was_trained_to_read_questions_apart_still_does(tiny_base: Path) -> None:
    file = ScorerFile(kind="cross-encoder", base=str(tiny_base), levels=2, longest=16, weights="0" * 64)
    text = [ScoredText("nice", "red good", "tall")]
    apart, shared = (
        open_network(tiny_base, file.model_copy(update={"kind": kind})) for kind in ("cross-encoder", "shared-encoder")
    )
    assert (apart.kind, shared.kind) == ("cross-encoder", "shared-encoder")
    assert (apart.levels(text) - shared.levels(text)).detach().abs().max() > 1e-3
    assert apart.tokens(text) == [7]
