"""An OpenAI-compatible server for the embedded model that answers several calls at once, by OpenVINO's continuous batching.

Run ``python -m askance.experiments.measured.peers.openvino_server --port 8000`` and name ``http://127.0.0.1:8000/v1`` to
:mod:`~askance.experiments.measured.peers.beside`. Tools that write long answers, eight at a time, wait a third as long as for the embedded server,
which reads faster than it writes and is made for one call after the other.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from ....models.embedded.download import pull
from ....models.embedded.registry import RegisteredModel, resolve
from ....prompts.errors import InputError, import_optional
from ...command_line import says_errors
from ..learned_questions import MODEL

AT_ONCE = 8
"""Calls under way at most, as many as MLflow's optimizers make."""
CACHE_GB = 4
DEFAULTS = {"temperature": 0.8, "top_k": 40, "top_p": 0.95, "min_p": 0.05}
"""How answers are sampled where a request does not say: as llama.cpp's server does, which the other tools were asked from."""
KNOWN = {*DEFAULTS, "model", "messages", "seed", "max_tokens", "max_completion_tokens", "response_format"}
"""What a request may hold. Anything else is refused, as an answer that leaves it out would be to another question."""


class Batched:
    """A model that goes on with all its answers at once, a token each in turn."""

    def __init__(self, path: Path) -> None:
        """Load the model.

        Args:
            path: Its GGUF file.
        """
        self._genai = import_optional("openvino_genai", "openvino", "openvino-genai")
        scheduler = self._genai.SchedulerConfig()
        scheduler.cache_size, scheduler.max_num_seqs, scheduler.enable_prefix_caching = CACHE_GB, AT_ONCE, True
        self._pipeline = self._genai.ContinuousBatchingPipeline(
            str(path), scheduler, "CPU", {"KV_CACHE_PRECISION": "bf16"}, {}
        )
        self._tokenizer = self._pipeline.get_tokenizer()
        self._numbers = itertools.count()
        self._under_way: list[tuple[Any, int, Future[dict[str, Any]]]] = []
        self._changed = threading.Condition()
        threading.Thread(target=self._run, daemon=True).start()

    async def answer(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The whole answer to a chat request.

        Raises:
            InputError: The request holds what this server does not know.
        """
        settings = self._settings(body)
        prompt = self._tokenizer.apply_chat_template(list(body["messages"]), add_generation_prompt=True)
        length = self._tokenizer.encode(prompt).input_ids.shape[1]
        done: Future[dict[str, Any]] = Future()
        with self._changed:
            handle = self._pipeline.add_request(next(self._numbers), prompt, settings)
            self._under_way.append((handle, length, done))
            self._changed.notify()
        return await asyncio.wrap_future(done)

    def _settings(self, body: Mapping[str, Any]) -> Any:
        unknown = sorted(name for name in body if name not in KNOWN and body[name] is not None)
        if unknown:
            raise InputError(f"This server does not know {', '.join(unknown)}.")
        given = {name: value for name, value in body.items() if value is not None}
        settings = self._genai.GenerationConfig()
        settings.max_new_tokens = given.get("max_tokens") or given["max_completion_tokens"]
        settings.rng_seed = given["seed"]
        if (temperature := given.get("temperature", DEFAULTS["temperature"])) > 0:
            settings.do_sample, settings.temperature = True, temperature
            for name in ("top_k", "top_p", "min_p"):
                setattr(settings, name, given.get(name, DEFAULTS[name]))
        form = given.get("response_format", {"type": "text"})
        if form["type"] in ("json_schema", "json_object"):
            schema = json.dumps(form["json_schema"]["schema"] if form["type"] == "json_schema" else {"type": "object"})
            settings.structured_output_config = self._genai.StructuredOutputConfig(json_schema=schema)
        elif form["type"] != "text":
            raise InputError(f"This server does not know answers of type {form['type']}.")
        return settings

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._under_way)
                try:
                    self._pipeline.step()
                except RuntimeError as error:
                    for _, _, done in self._under_way:
                        done.set_exception(error)
                    return
                left = []
                for handle, length, done in self._under_way:
                    if handle.get_status() == self._genai.GenerationStatus.RUNNING:
                        left.append((handle, length, done))
                    else:
                        done.set_result(self._whole(handle.read_all()[0], length))
                self._under_way = left

    def _whole(self, output: Any, length: int) -> dict[str, Any]:
        ended = output.finish_reason == self._genai.GenerationFinishReason.STOP
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": self._tokenizer.decode(output.generated_ids)},
            "finish_reason": "stop" if ended else "length",
        }
        written = len(output.generated_ids)
        usage = {"prompt_tokens": length, "completion_tokens": written, "total_tokens": length + written}
        about = {"id": f"chatcmpl-{next(self._numbers)}", "object": "chat.completion", "created": int(time.time())}
        return {**about, "choices": [choice], "usage": usage}


async def serve(model: Batched, port: int) -> None:
    """Answer on the loopback interface until this is cancelled."""
    from aiohttp import web

    async def chat(http: Any) -> Any:
        body = await http.json()
        try:
            found = await model.answer(body)
        except InputError as error:
            return web.json_response({"error": {"message": str(error)}}, status=400)
        return web.json_response(found | {"model": body.get("model", "")})

    app = web.Application(client_max_size=64 * 2**20)
    app.router.add_post("/v1/chat/completions", chat)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", port).start()
        await asyncio.Event().wait()
    finally:
        await runner.cleanup()


@says_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Load the model and answer until Ctrl-C."""
    parser = argparse.ArgumentParser(
        prog="python -m askance.experiments.measured.peers.openvino_server", description=__doc__
    )
    parser.add_argument("--model", default=MODEL)
    parser.add_argument("--port", type=int, default=8000)
    given = parser.parse_args(arguments)
    registered = resolve(given.model.partition("/")[2])
    asyncio.run(serve(Batched(pull(registered) if isinstance(registered, RegisteredModel) else registered), given.port))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
