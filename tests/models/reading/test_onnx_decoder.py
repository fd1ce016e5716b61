"""A network of 8-bit integers beside the same decoder in double precision, on files made here with random weights."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import shutil
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from askance.models.base import Parameters, make_request
from askance.models.reading import onnx_decoder, onnx_reader
from askance.models.reading.onnx_decoder import eight_bits
from askance.models.reading.onnx_reader import load_reader, made_ready
from askance.models.reading.reading_model import Reader
from askance.models.resolve import Models
from askance.prompts.errors import AskanceError, InputError
from tests.said import naming

gguf = pytest.importorskip("gguf", reason="needs gguf: askance[onnx]")
pytest.importorskip("onnx", reason="needs onnx: askance[onnx]")
pytest.importorskip("onnxruntime", reason="needs onnxruntime: askance[onnx]")

LAYERS, HEADS, KV, HEAD, WIDTH, HIDDEN = 2, 3, 1, 16, 48, 80
EPSILON, BASE = 1e-6, 10000.0
TEMPLATE = "{% for m in messages %}{{ m['role'] }}:{{ m['content'] }}\n{% endfor %}yes?"


def byte_tokens() -> list[str]:
    """The letters that stand for bytes in vocabularies of GPT-2's kind."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [each for each in range(256) if each not in shown]
    return [*(chr(each) for each in shown), *(chr(256 + place) for place in range(len(hidden)))]


def make_file(path: Path, kind: str, seed: int = 0, **fields: str) -> dict[str, np.ndarray[Any, Any]]:
    """A GGUF file with random weights, some channels of which are much larger than the others; the weights."""
    rng = np.random.default_rng(seed)
    tokens = [*byte_tokens(), "<|end|>", "zq"]
    made: dict[str, np.ndarray[Any, Any]] = {"token_embd.weight": rng.normal(size=(len(tokens), WIDTH))}
    made["token_embd.weight"][:, 5] *= 20
    made["output_norm.weight"] = rng.uniform(0.5, 2, WIDTH)
    if kind == "qwen2":
        made["output.weight"] = rng.normal(size=(len(tokens), WIDTH)) / 3
    for layer in range(LAYERS):
        shapes = {
            "attn_q": (HEADS * HEAD, WIDTH),
            "attn_k": (KV * HEAD, WIDTH),
            "attn_v": (KV * HEAD, WIDTH),
            "attn_output": (WIDTH, HEADS * HEAD),
            "ffn_gate": (HIDDEN, WIDTH),
            "ffn_up": (HIDDEN, WIDTH),
            "ffn_down": (WIDTH, HIDDEN),
        }
        for name, shape in shapes.items():
            made[f"blk.{layer}.{name}.weight"] = rng.normal(size=shape) / np.sqrt(shape[1])
            if kind == "qwen2" and name in ("attn_q", "attn_k", "attn_v"):
                made[f"blk.{layer}.{name}.bias"] = rng.normal(size=shape[0])
        for name in ("attn_norm", "ffn_norm"):
            made[f"blk.{layer}.{name}.weight"] = rng.uniform(0.5, 2, WIDTH)
    writer = gguf.GGUFWriter(path, fields.get("architecture", kind))
    writer.add_block_count(LAYERS)
    writer.add_embedding_length(WIDTH)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV)
    writer.add_layer_norm_rms_eps(EPSILON)
    writer.add_rope_freq_base(BASE)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(fields.get("pre", "qwen2"))
    writer.add_token_list(tokens)
    writer.add_token_types([3 if each == "<|end|>" else 1 for each in tokens])
    writer.add_token_merges([fields.get("merge", "z q")])
    writer.add_bos_token_id(256)
    writer.add_eos_token_id(256)
    writer.add_chat_template(fields.get("template", TEMPLATE))
    for name, value in made.items():
        writer.add_tensor(name, value.astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return made


def norm(x: Any, weight: Any) -> Any:
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + EPSILON) * weight


def in_double_precision(made: dict[str, np.ndarray[Any, Any]], tokens: list[int], interleaved: bool) -> Any:
    """Log-probabilities of the next token, as the decoder is defined."""

    def turned(x: Any) -> Any:
        angles = np.outer(np.arange(len(tokens)), BASE ** -(np.arange(0, HEAD, 2) / HEAD))[:, None]
        if interleaved:
            one, other = x[..., ::2], x[..., 1::2]
        else:
            one, other = x[..., : HEAD // 2], x[..., HEAD // 2 :]
        pair = one * np.cos(angles) - other * np.sin(angles), other * np.cos(angles) + one * np.sin(angles)
        return np.stack(pair, -1).reshape(x.shape) if interleaved else np.concatenate(pair, -1)

    x = made["token_embd.weight"][tokens]
    for layer in range(LAYERS):
        w = {name.removeprefix(f"blk.{layer}."): value for name, value in made.items()}
        seen = norm(x, w["attn_norm.weight"])
        q, k, v = (seen @ w[f"attn_{each}.weight"].T + w.get(f"attn_{each}.bias", 0) for each in "qkv")
        q, k, v = (each.reshape(len(tokens), -1, HEAD) for each in (q, k, v))
        q, k = turned(q), turned(k)
        scores = np.einsum("ihd,jd->hij", q, k[:, 0]) / np.sqrt(HEAD)
        scores = np.where(np.tri(len(tokens), dtype=bool), scores, -np.inf)
        share = np.exp(scores - scores.max(-1, keepdims=True))
        share /= share.sum(-1, keepdims=True)
        x = x + np.einsum("hij,jd->ihd", share, v[:, 0]).reshape(len(tokens), -1) @ w["attn_output.weight"].T
        seen = norm(x, w["ffn_norm.weight"])
        gate = seen @ w["ffn_gate.weight"].T
        x = x + (gate / (1 + np.exp(-gate)) * (seen @ w["ffn_up.weight"].T)) @ w["ffn_down.weight"].T
    logits = norm(x[-1], made["output_norm.weight"]) @ made.get("output.weight", made["token_embd.weight"]).T
    return logits - np.log(np.exp(logits - logits.max()).sum()) - logits.max()


def reader_of(path: Path) -> Reader:
    return load_reader("onnx/m", path, path.stem)


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASKANCE_CACHE", str(tmp_path / "cache"))


@pytest.mark.parametrize("kind", ["qwen2", "llama"])
def test_it_answers_as_the_decoder_in_double_precision(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"{kind}.gguf"
    made = make_file(path, kind)
    reader = reader_of(path)
    for text in ("Is it 12 or 3?", "Who said so, and when?"):
        tokens, ends = reader.tokens([("user", text)], None)
        assert ends == [] and bytes_of(tokens) == f"user:{text}\nyes?".encode()
        found, wanted = reader.next_token(tokens, []), in_double_precision(made, tokens, kind == "llama")
        assert np.exp(found).sum() == pytest.approx(1, abs=1e-4)
        assert np.corrcoef(found, wanted)[0, 1] > 0.995
        np.testing.assert_array_equal(reader.next_token(tokens, [7, 12]), reader.next_token(tokens, [7, 12]))  # kept
        assert np.corrcoef(reader.next_token(tokens, [7, 12]), wanted)[0, 1] > 0.995


def test_products_of_two_neighbours_stay_within_16_bits() -> None:
    rng = np.random.default_rng(0)
    weights = np.concatenate([rng.normal(size=(50, 64)), [[1.0] * 64, [-3.0, 0.0] * 32, [1.0, -1.0] * 32, [0.0] * 64]])
    whole, steps = eight_bits(weights.astype(np.float32))
    of_one_sign = [np.maximum(each, 0).sum(axis=-1) for each in (whole.reshape(54, 32, 2), -whole.reshape(54, 32, 2))]
    assert 255 * np.max(of_one_sign) < 2**15
    np.testing.assert_allclose(whole * steps[:, None], weights, atol=steps.max() / 2 * 1.001)
    assert whole[52].tolist() == [127, -127] * 32  # of two signs, each has all 8 bits


def bytes_of(tokens: list[int]) -> bytes:
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    values = [*shown, *(each for each in range(256) if each not in shown)]
    return bytes(values[each] for each in tokens)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"architecture": "gemma3"}, "a model of the kind gemma3"),
        ({"pre": "llama-bpe"}, "a vocabulary of the kind llama-bpe"),
        ({"template": ""}, "no chat template"),
        ({"merge": "z z"}, "a damaged vocabulary: .*"),
    ],
)
def test_what_it_does_not_read_is_said(tmp_path: Path, fields: dict[str, str], said: str) -> None:
    path = tmp_path / "other.gguf"
    make_file(path, "qwen2", **fields)
    with pytest.raises(InputError, match=rf"onnx/m: other\.gguf .*ONNX Runtime \({said}\).* local/"):
        made_ready("onnx/m", path, "0")
    assert not list((tmp_path / "cache" / "onnx").iterdir())


@pytest.mark.parametrize("kept", [4, 24, 100, 1_000, 5_000])
def test_a_file_that_was_cut_short_is_said(tmp_path: Path, kept: int) -> None:
    make_file(tmp_path / "m.gguf", "qwen2")
    whole = (tmp_path / "m.gguf").read_bytes()
    assert len(whole) > 5_000
    (tmp_path / "m.gguf").write_bytes(whole[:kept])
    with pytest.raises(InputError, match=naming("onnx/m", "m.gguf", "damaged", "cut short")):
        made_ready("onnx/m", tmp_path / "m.gguf", "0")


def test_a_template_that_is_none_is_said(tmp_path: Path) -> None:
    make_file(tmp_path / "m.gguf", "qwen2", template="{% for each in messages %}")
    with pytest.raises(InputError, match=r"onnx/m: m\.gguf .*\(Unexpected end of template"):
        made_ready("onnx/m", tmp_path / "m.gguf", "0")


def test_a_full_disk_is_said_and_is_no_fault_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    make_file(tmp_path / "m.gguf", "qwen2")
    monkeypatch.setattr(onnx_reader, "convert", full)
    with pytest.raises(AskanceError, match=naming("No space left on device", "room")) as error:
        made_ready("onnx/m", tmp_path / "m.gguf", "0")
    assert error.type is AskanceError and not list((tmp_path / "cache" / "onnx").iterdir())


def test_what_a_killed_process_was_making_is_dropped_a_day_later(tmp_path: Path) -> None:
    make_file(tmp_path / "m.gguf", "qwen2")
    for name, age in [("killed", 90_000), ("under-way", 3_000)]:
        part = tmp_path / "cache" / "onnx" / f".part-{name}"
        (part / "made").mkdir(parents=True)
        (part / "made" / "embeddings.npy").touch()
        os.utime(part, (time.time() - age,) * 2)
    made_ready("onnx/m", tmp_path / "m.gguf", "0")
    assert {each.name for each in (tmp_path / "cache" / "onnx").iterdir()} == {".part-under-way", "0-3"}


async def test_making_a_file_ready_ends_with_the_command_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is asked is cancelled by Ctrl-C, and the models are closed."""
    make_file(tmp_path / "m.gguf", "qwen2")
    begun, tensor = threading.Event(), onnx_decoder.GgufFile.tensor

    def slow(file: Any, *which: Any) -> Any:
        begun.set()
        time.sleep(0.05)
        return tensor(file, *which)

    monkeypatch.setattr(onnx_decoder.GgufFile, "tensor", slow)
    async with Models() as models:
        model = models.get(f"onnx/{tmp_path / 'm.gguf'}")
        asked = asyncio.create_task(model.answer(make_request(model.identity, [("user", "x")], Parameters(1))))
        await asyncio.to_thread(begun.wait)
        asked.cancel()
    assert asked.cancelled() and not list((tmp_path / "cache" / "onnx").iterdir())


def test_an_interrupt_while_a_file_is_made_ready_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_: Path, folder: Path, *__: object) -> None:
        (folder / "embeddings.npy").touch()
        raise KeyboardInterrupt

    monkeypatch.setattr(onnx_reader, "convert", interrupted)
    with pytest.raises(KeyboardInterrupt):
        made_ready("onnx/m", tmp_path / "m.gguf", "0")
    assert not list((tmp_path / "cache" / "onnx").iterdir())


def test_what_is_made_of_a_file_is_made_once(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    make_file(path, "llama")
    folder = made_ready("onnx/m", path, "0")
    about = json.loads((folder / "about.json").read_text())
    assert (about["layers"], about["heads"], about["kv_heads"], about["head"]) == (LAYERS, HEADS, KV, HEAD)
    path.unlink()
    assert made_ready("onnx/m", path, "0") == folder


@pytest.mark.parametrize("file", ["decoder.onnx", "head.onnx", "embeddings.npy", "tokenizer.json", "about.json"])
def test_what_is_damaged_is_said_and_can_be_made_anew(tmp_path: Path, file: str) -> None:
    make_file(tmp_path / "m.gguf", "llama")
    folder = made_ready("onnx/m", tmp_path / "m.gguf", "m")
    (folder / file).write_bytes((folder / file).read_bytes()[:50])
    with pytest.raises(InputError, match=naming("onnx/m", "ONNX Runtime", "m.gguf", f"Delete {folder}")):
        reader_of(tmp_path / "m.gguf")
    shutil.rmtree(folder)
    assert reader_of(tmp_path / "m.gguf")


def test_it_is_faster_where_the_processor_has_avx2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_reader, "PROCESSOR", tmp_path / "cpuinfo")
    assert not onnx_reader.reads_faster_here()
    (tmp_path / "cpuinfo").write_text("flags\t\t: fpu avx f16c\n")
    assert not onnx_reader.reads_faster_here()
    (tmp_path / "cpuinfo").write_text("flags\t\t: fpu avx f16c avx2\n")
    assert onnx_reader.reads_faster_here()
    monkeypatch.setitem(sys.modules, "gguf", None)
    assert not onnx_reader.reads_faster_here()
