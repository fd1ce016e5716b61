"""The server that other tools are asked from: answers under way go on side by side, and what it does not know it refuses."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from askance.experiments.measured.peers import openvino_server
from askance.experiments.measured.peers.openvino_server import Batched
from askance.prompts.errors import InputError

RUNNING, FINISHED = "running", "finished"


class Handle:
    """An answer that takes as many steps as its prompt has words, or as it may have tokens."""

    def __init__(self, words: list[str], settings: Any) -> None:
        self.words, self.settings, self.written = words, settings, 0

    @property
    def left(self) -> int:
        return min(len(self.words), self.settings.max_new_tokens) - self.written

    def get_status(self) -> str:
        return RUNNING if self.left else FINISHED

    def read_all(self) -> list[Any]:
        whole = self.written == len(self.words)
        return [SimpleNamespace(generated_ids=self.words[: self.written], finish_reason="stop" if whole else "length")]


class Pipeline:
    """In OpenVINO's place: writes every prompt again, a word in each step."""

    def __init__(self, *_: Any) -> None:
        self.handles: list[Handle] = []
        self.under_way: list[int] = []

    def get_tokenizer(self) -> Any:
        def encode(text: str) -> Any:
            return SimpleNamespace(input_ids=SimpleNamespace(shape=(1, len(text.split()))))

        def template(messages: list[dict[str, str]], add_generation_prompt: bool) -> str:
            assert add_generation_prompt
            return messages[-1]["content"]

        return SimpleNamespace(apply_chat_template=template, encode=encode, decode=" ".join)

    def add_request(self, number: int, prompt: str, settings: Any) -> Handle:
        self.handles.append(Handle(prompt.split(), settings))
        return self.handles[-1]

    def step(self) -> None:
        running = [each for each in self.handles if each.left]
        self.under_way.append(len(running))
        for each in running:
            if each.words[each.written] == "fail":
                raise RuntimeError("the model broke")
            each.written += 1


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Batched:
    genai = SimpleNamespace(
        SchedulerConfig=SimpleNamespace,
        GenerationConfig=SimpleNamespace,
        StructuredOutputConfig=lambda json_schema: json.loads(json_schema),
        ContinuousBatchingPipeline=Pipeline,
        GenerationStatus=SimpleNamespace(RUNNING=RUNNING),
        GenerationFinishReason=SimpleNamespace(STOP="stop"),
    )
    monkeypatch.setattr(openvino_server, "import_optional", lambda *_: genai)
    return Batched(Path("model.gguf"))


def request(text: str, **more: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}], "max_tokens": 50, "seed": 0, "temperature": 0, **more}


def pipeline(model: Batched) -> Pipeline:
    return model._pipeline


async def both(model: Batched, *requests: dict[str, Any]) -> list[dict[str, Any]]:
    return await asyncio.gather(*(model.answer(each) for each in requests))


def test_answers_under_way_go_on_side_by_side_and_each_is_its_own(model: Batched) -> None:
    long, short = " ".join(f"word{n}" for n in range(40)), "good"
    first, second = asyncio.run(both(model, request(long), request(short)))
    assert first["choices"][0]["message"]["content"] == long and second["choices"][0]["message"]["content"] == short
    assert first["usage"] == {"prompt_tokens": 40, "completion_tokens": 40, "total_tokens": 80}
    assert max(pipeline(model).under_way) == 2
    assert first["id"] != second["id"], "MLflow's gateway reads it"


def test_an_answer_that_runs_to_its_limit_says_so(model: Batched) -> None:
    (found,) = asyncio.run(both(model, request("one two three", max_tokens=2)))
    assert found["choices"][0]["finish_reason"] == "length" and found["usage"]["completion_tokens"] == 2


def test_it_samples_as_it_is_told_and_else_as_llama_cpp_does(model: Batched) -> None:
    asyncio.run(both(model, request("a", temperature=None), request("a"), request("a", temperature=0.3, top_p=1.0)))
    usual, likeliest, told = (each.settings for each in pipeline(model).handles)
    assert (usual.do_sample, usual.temperature, usual.top_k, usual.top_p, usual.min_p) == (True, 0.8, 40, 0.95, 0.05)
    assert not hasattr(likeliest, "do_sample")
    assert (told.temperature, told.top_p, told.top_k) == (0.3, 1.0, 40)


def test_an_answer_in_a_form_is_held_to_its_schema(model: Batched) -> None:
    schema = {"type": "object", "properties": {"result": {"type": "boolean"}}}
    form = {"type": "json_schema", "json_schema": {"name": "verdict", "schema": schema}}
    asyncio.run(both(model, request("a", response_format=form), request("a", response_format={"type": "json_object"})))
    held, free = (each.settings.structured_output_config for each in pipeline(model).handles)
    assert held == schema and free == {"type": "object"}


@pytest.mark.parametrize(
    ("more", "named"),
    [({"n": 2, "stop": ["."]}, "n, stop"), ({"response_format": {"type": "grammar"}}, "grammar")],
)
def test_what_it_does_not_know_is_refused_by_name(model: Batched, more: dict[str, Any], named: str) -> None:
    with pytest.raises(InputError, match=named):
        asyncio.run(model.answer(request("a", **more)))


def test_a_model_that_breaks_fails_every_answer_under_way(model: Batched) -> None:
    async def run() -> list[Any]:
        asked = (model.answer(request(text)) for text in ("one two three four fail", "fail"))
        return await asyncio.wait_for(asyncio.gather(*asked, return_exceptions=True), 10)

    assert [str(each) for each in asyncio.run(run())] == ["the model broke"] * 2
