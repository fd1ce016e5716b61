"""A causal base: LoRA on a tiny model for what training has to keep, and on the smallest embedded one for its GGUF file."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from askance.evaluation.evaluate import evaluate
from askance.evaluation.judge_file import load_judge
from askance.models.embedded.download import pulled
from askance.models.embedded.registry import MODELS
from askance.models.trained.bases import find_base
from askance.models.trained.scorer_file import read_scorer
from askance.prompts.checklist import Checklist
from askance.prompts.errors import InputError, MissingExtraError
from askance.prompts.prompt import Prompt
from askance.training import trainer
from askance.training.scorer_folder import TrainResult
from askance.training.train import train

from ..said import naming
from .conftest import CHECKLIST, made, p_yes, random_llama, said

torch: Any = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("peft")

PROMPT = Prompt("{output} {question}")
SMALL: dict[str, Any] = {
    "longest": 60,
    "learning_rate": 2e-2,
    "lora_rank": 8,
    "batch_size": 16,
    "epochs": 3,
    "resamples": 100,
    "patience": 9,
    "checklist": CHECKLIST,
    "prompt": PROMPT,
}
TEMPLATE = "{% for each in messages %}{{ each['role'] }} {{ each['content'] }} {% endfor %}assistant"


@pytest.fixture(scope="session")
def tiny_causal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llama of two layers with random numbers, whose tokens are words."""
    return random_llama(tmp_path_factory.mktemp("causal"), TEMPLATE, longest=64)


@pytest.fixture(scope="module")
def trained(tiny_causal: Path, tmp_path_factory: pytest.TempPathFactory) -> TrainResult:
    examples = made(160, to_a_document=2)
    place = tmp_path_factory.mktemp("trained") / "scorer"
    return train(examples, output=place, base=str(tiny_causal), verdicts=said(examples), **SMALL | {"epochs": 3})


def test_lora_learns_the_teacher_and_people(trained: TrainResult) -> None:
    test = trained.data["test"]
    assert test["verdicts"]["pearson"] > 0.8 and test["people"]["scorer"]["spearman"] > 0.8
    assert "rationales" not in trained.data and "rationales" not in trained.data["options"]
    place = Path(trained.data["scorer"])
    assert {each.name for each in place.iterdir()} == {
        "adapter_model.safetensors",
        "adapter_config.json",
        "judge.yaml",
        "prompt.md",
        "scorer.json",
        "train.json",
    }
    assert (place / "prompt.md").read_text() == PROMPT.text
    assert read_scorer(place).kind == "causal" and "own words" in trained.data["calibration"]["reason"]


def test_it_is_asked_as_a_judge_is_and_reads_the_prompt(trained: TrainResult, tmp_path: Path) -> None:
    examples = made(40)
    place = trained.data["scorer"]
    found = evaluate(examples, model=place, checklist=CHECKLIST, prompt=PROMPT, no_cache=True)
    right = [
        (each.p_yes > 0.5) == (p_yes(each.question, examples[int(each.example[1:])].output or "") > 0.5)
        for each in found.verdicts
    ]
    assert sum(right) / len(right) > 0.9
    as_judge = load_judge(place).evaluate(examples, no_cache=True)
    assert [each.p_yes for each in as_judge.verdicts] == [each.p_yes for each in found.verdicts]
    alone = evaluate(examples[:1], model=place, checklist=CHECKLIST, prompt=PROMPT, no_cache=True)
    assert [each.p_yes for each in alone.verdicts] == pytest.approx(
        [each.p_yes for each in found.verdicts[:2]], abs=2e-6
    )
    other = evaluate(
        examples[:1], model=place, checklist=CHECKLIST, prompt=Prompt("red {output} {question}"), no_cache=True
    )
    assert other.verdicts[0].p_yes != alone.verdicts[0].p_yes


@pytest.mark.parametrize("weights", [(1, 0, 0), (0, 1, 0), (0, 0, 1)])
def test_each_loss_alone_learns_by_lora(tiny_causal: Path, tmp_path: Path, weights: Any) -> None:
    examples = made(80, to_a_document=4)
    found = train(
        examples, output=tmp_path / "s", base=str(tiny_causal), **SMALL | {"loss_weights": weights, "epochs": 2}
    )
    first, *others = [each["loss"] for each in found.data["curve"]["validation"]]
    assert min(others) < 0.9 * first


def test_cross_entropy_makes_it_say_yes_or_no_at_all(tiny_causal: Path, tmp_path: Path) -> None:
    from askance.models.trained.network import open_network
    from askance.training.mixture import asked_with

    examples = made(80, to_a_document=2)
    given = SMALL | {"loss_weights": (1, 0, 0), "epochs": 2}
    train(examples, output=tmp_path / "s", base=str(tiny_causal), verdicts=said(examples), **given)
    text = asked_with(PROMPT)(CHECKLIST.questions[0], examples[0])
    assert float(open_network(tmp_path / "s", read_scorer(tmp_path / "s")).levels([text]).exp().sum()) > 0.9


def test_what_was_broken_off_goes_on_to_the_same_matrices(
    tiny_causal: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    examples = made(60, to_a_document=2)
    given = {"base": str(tiny_causal)} | SMALL | {"epochs": 1}
    train(examples, output=tmp_path / "whole", **given)
    step = trainer.Trainer._step

    def stopping(self: Any, batch: Any, number: int) -> None:
        if number == 2:
            raise KeyboardInterrupt
        step(self, batch, number)

    with monkeypatch.context() as patch:
        patch.setattr(trainer, "EVERY", 0.0)
        patch.setattr(trainer.Trainer, "_step", stopping)
        with pytest.raises(KeyboardInterrupt):
            train(examples, output=tmp_path / "parts", **given)
    kept = torch.load(tmp_path / "parts/checkpoints/checkpoint.pt", weights_only=True)
    assert kept["place"]["batch"] == 2 and all("lora" in name for name in kept["network"])
    train(examples, output=tmp_path / "parts", **given)
    whole, parts = (json.loads((tmp_path / each / "train.json").read_text()) for each in ("whole", "parts"))
    assert parts["curve"]["training"] == whole["curve"]["training"] and parts["test"] == whole["test"]
    one, other = (tmp_path / each / "adapter_model.safetensors" for each in ("whole", "parts"))
    assert one.read_bytes() == other.read_bytes()


# --- score levels, precision and devices (LMUnit §3.3, §4.1.1) ---


@pytest.fixture(scope="session")
def counting(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llama whose tokenizer writes every digit as a token, so that 10 is two."""
    folder = random_llama(tmp_path_factory.mktemp("counting"), TEMPLATE, further=[*"0123456789"], longest=128)
    file = folder / "tokenizer.json"
    tokenizer = json.loads(file.read_text())
    digits = {"type": "Digits", "individual_digits": True}
    tokenizer["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [tokenizer["pre_tokenizer"], digits]}
    file.write_text(json.dumps(tokenizer))
    return folder


LEVELS: dict[str, Any] = SMALL | {"longest": 120, "levels": 7}


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_score_from_0_to_6_is_learned_saved_and_read_as_the_expected_level(
    counting: Path, tmp_path: Path, precision: str
) -> None:
    from askance.models.trained.network import open_network
    from askance.training.mixture import asked_with

    examples, place = made(120, to_a_document=2), tmp_path / "s"
    given = LEVELS | {"precision": precision, "output": place, "base": str(counting)}
    found = train(examples, verdicts=said(examples), **given)
    assert found.data["test"]["verdicts"]["pearson"] > 0.8
    file = read_scorer(place)
    assert (file.levels, file.precision) == (7, None if precision == "float32" else precision)
    asked = evaluate(examples[:4], model=str(place), checklist=CHECKLIST, prompt=PROMPT, no_cache=True)
    network: Any = open_network(place, file)
    assert network._model.get_base_model().dtype == getattr(torch, precision)
    assert all(each.dtype == torch.float32 for each in network.parameters())
    text_of = asked_with(PROMPT)
    levels = network.levels([text_of(question, each) for each in examples[:4] for question in CHECKLIST.questions])
    assert levels.shape == (8, 7)
    shares = levels.exp() / levels.exp().sum(-1, keepdim=True)
    expected = (shares * torch.arange(7)).sum(-1) / 6
    assert [each.p_yes for each in asked.verdicts] == pytest.approx(expected.tolist(), abs=2e-2)
    assert float(levels.exp().sum(-1).min()) > 0.8, "cross-entropy makes it say a number at all"


def test_a_level_that_is_two_tokens_is_refused_by_name(counting: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=naming("--levels 11", str(counting), "level 10", "['1', '0']")):
        train(made(40), output=tmp_path / "s", base=str(counting), **LEVELS | {"levels": 11})


def test_a_number_is_asked_for_in_the_last_turn_alone() -> None:
    from askance.models.trained.scored_text import ScoredText, after_rationale, asked_for_level

    text = ScoredText("nice", "good", messages=(("system", "Judge."), ("user", "nice? yes or no")))
    assert asked_for_level(text, 2) == text.messages
    for each in (text, after_rationale(text, "why")):
        *before, (role, content) = asked_for_level(each, 7)
        assert before == list(each.messages[:-1]) and role == "user"
        assert content.startswith(each.messages[-1][1]) and "from 0 to 6" in content


def test_accelerate_spreads_a_base_over_several_devices(
    tiny_causal: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    transformers: Any = pytest.importorskip("transformers")
    load, asked = transformers.AutoModelForCausalLM.from_pretrained, []

    def loading(place: str, **given: Any) -> Any:
        asked.append(given["device_map"])
        return load(place, **given | {"device_map": {"": "cpu"}})  # the device that there is

    monkeypatch.setattr(transformers.AutoModelForCausalLM, "from_pretrained", loading)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    examples = made(40, to_a_document=2)
    found = train(examples, output=tmp_path / "s", base=str(tiny_causal), **SMALL | {"epochs": 1})
    evaluate(examples[:2], model=found.data["scorer"], checklist=CHECKLIST, prompt=PROMPT, no_cache=True)
    assert {*asked} == {"auto"} and len(asked) == 2


def test_a_base_that_changed_is_another_one(trained: TrainResult, tiny_causal: Path, tmp_path: Path) -> None:
    base, place = tmp_path / "base", tmp_path / "scorer"
    for here, there in ((tiny_causal, base), (Path(trained.data["scorer"]), place)):
        there.mkdir()
        for each in here.iterdir():
            (there / each.name).write_bytes(each.read_bytes())
    read_scorer(place).model_copy(update={"base": str(base)}).write(place)
    asked: dict[str, Any] = {"model": str(place), "checklist": CHECKLIST, "prompt": PROMPT, "no_cache": True}
    assert evaluate(made(2), **asked).coverage.share == 1
    weights = base / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-4] + b"\0\0\0\0")
    with pytest.raises(InputError, match=naming("other weights")):
        evaluate(made(2), **asked)


def test_what_does_not_go_with_a_base_is_refused(tiny_causal: Path, tiny_base: Path, tmp_path: Path) -> None:
    def go(base: Path | str, **given: Any) -> TrainResult:
        return train(made(40), output=tmp_path / "s", base=str(base), **SMALL | {"prompt": None} | given)

    with pytest.raises(InputError, match=naming("--levels 7", "level 0", "[UNK]")):
        go(tiny_causal, levels=7)
    with pytest.raises(InputError, match=naming("--gguf", "--levels 7")):
        go(tiny_causal, levels=7, gguf=True)
    with pytest.raises(InputError, match="reads no prompt"):
        go(tiny_base, prompt=PROMPT)
    with pytest.raises(InputError, match=naming("no GGUF file")):
        go(tiny_causal, gguf=True)
    with pytest.raises(InputError, match=naming("64 tokens")):
        go(tiny_causal, longest=65)
    with pytest.raises(InputError, match=r"no file .*nothing\.gguf"):
        go(tmp_path / "nothing.gguf")
    bare = tmp_path / "bare"
    bare.mkdir()
    for each in tiny_causal.iterdir():
        if each.name != "chat_template.jinja":
            (bare / each.name).write_bytes(each.read_bytes())
    with pytest.raises(InputError, match=naming("no chat template")):
        go(bare)


def test_the_kind_of_a_base_is_read_from_its_configuration(tiny_causal: Path, tiny_base: Path) -> None:
    assert find_base(str(tiny_causal)).is_causal and not find_base(str(tiny_base)).is_causal


def test_without_peft_its_gguf_file_is_named(
    trained: TrainResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "scorer"
    place.mkdir()
    for each in Path(trained.data["scorer"]).iterdir():
        (place / each.name).write_bytes(each.read_bytes())
    monkeypatch.setitem(sys.modules, "peft", None)
    asked: dict[str, Any] = {"model": str(place), "checklist": CHECKLIST, "prompt": PROMPT, "no_cache": True}
    with pytest.raises(MissingExtraError, match=r"askance\[train\]'$"):
        evaluate(made(2), **asked)
    (place / "model.gguf").touch()
    with pytest.raises(InputError, match=naming("its GGUF file", "--model local/")):
        evaluate(made(2), **asked)


def test_what_is_too_long_keeps_its_beginning_and_its_end(tiny_causal: Path) -> None:
    from askance.models.trained.network import start_network

    network: Any = start_network(find_base(str(tiny_causal)), levels=2, longest=16, seed=0, rank=2)
    assert network._cut(list(range(100)), 16) == [0, 1, 2, 3, *range(88, 100)]
    assert network._cut(list(range(16)), 16) == list(range(16))


SMOLLM = pulled(next(each for each in MODELS if each.name == "smollm2-135m-instruct"))
"""Looked for before a test moves the cache."""
ONE = Checklist(questions=CHECKLIST.questions[:1])


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The smallest embedded model after two steps, and its GGUF file."""
    pytest.importorskip("gguf")
    if SMOLLM is None:
        pytest.skip("askance models pull smollm2-135m-instruct")
    examples = made(18)
    place = tmp_path_factory.mktemp("exported") / "scorer"
    given = SMALL | {"checklist": ONE, "batch_size": 8, "epochs": 1, "learning_rate": 2e-3}
    first = train(examples, output=place, base=str(SMOLLM), **given)
    assert not (place / "model.gguf").exists()
    again = train(examples, output=place, base=str(SMOLLM), gguf=True, **given)
    assert again.data == first.data
    return place


def test_the_embedded_server_says_what_the_scorer_says(exported: Path) -> None:
    pytest.importorskip("xllamacpp")
    examples = made(6)
    asked: dict[str, Any] = {"checklist": ONE, "prompt": PROMPT, "no_cache": True}
    scorer, server, base = (
        [each.p_yes for each in evaluate(examples, model=model, **asked).verdicts]
        for model in (str(exported), f"local/{exported / 'model.gguf'}", f"local/{SMOLLM}")
    )
    assert server == pytest.approx(scorer, abs=0.01)
    assert max(abs(one - other) for one, other in zip(server, base, strict=True)) > 0.1


def test_only_what_was_trained_differs_in_the_new_file(exported: Path) -> None:
    gguf = pytest.importorskip("gguf")
    old, new = gguf.GGUFReader(SMOLLM), gguf.GGUFReader(exported / "model.gguf")
    for name, field in old.fields.items():
        if not name.startswith("GGUF."):
            assert new.fields[name].contents() == field.contents(), name
    differ = {
        one.name.split(".")[-2]
        for one, other in zip(old.tensors, new.tensors, strict=True)
        if one.tensor_type != other.tensor_type
    }
    assert differ == {"token_embd", "attn_q", "attn_k", "attn_v", "attn_output", "ffn_up", "ffn_gate", "ffn_down"}
    same = [
        (one, other)
        for one, other in zip(old.tensors, new.tensors, strict=True)
        if one.tensor_type == other.tensor_type
    ]
    assert all((one.data == other.data).all() for one, other in same)
