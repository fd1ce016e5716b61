from __future__ import annotations

import asyncio
import importlib.util
import json
import logging
import os
import signal
import subprocess
import sys
import textwrap
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from askance.models.embedded.servers import EmbeddedServer, EmbeddedServerPool, ServerSettings, TwoSlots
from askance.prompts.errors import AskanceError, InputError, MissingExtraError
from tests.said import naming, says

CHILD = "import sys, time; from askance.models.embedded.server_process import run\n"
SERVES = CHILD + "run(lambda: (None, 'http://127.0.0.1:1'))"


def child(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def make_server(tmp_path: Path, code: str, seconds: float = 20.0) -> EmbeddedServer:
    settings = ServerSettings(ready_seconds=seconds)
    return EmbeddedServer(tmp_path / "m.gguf", settings, log_directory=tmp_path / "logs", command=child(code))


def is_alive(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{process_id}/stat")
    return not (stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z")


def ended_within(process_id: int, seconds: float) -> bool:
    until = time.monotonic() + seconds
    while is_alive(process_id):
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


@pytest.mark.asyncio
async def test_a_server_has_an_address_from_start_to_stop_and_leaves_nothing(tmp_path: Path) -> None:
    server = make_server(tmp_path, SERVES)
    await server.start()
    process_id = server.process_id
    assert server.base_url == "http://127.0.0.1:1/v1" and server.is_running and process_id is not None
    await server.stop()
    assert not is_alive(process_id) and not server.is_running
    assert list((tmp_path / "logs").iterdir()) == []
    with pytest.raises(AskanceError, match="not running"):
        _ = server.base_url


@pytest.mark.asyncio
async def test_a_stop_does_not_wait_for_answers_still_being_given(tmp_path: Path) -> None:
    slow_to_let_go = textwrap.dedent("""
        class Server:
            def __del__(self):
                time.sleep(60)
        run(lambda: (Server(), 'http://127.0.0.1:1'))
    """)
    server = make_server(tmp_path, CHILD + slow_to_let_go)
    await server.start()
    before = time.monotonic()
    await server.stop()
    assert time.monotonic() - before < 2.0


@pytest.mark.asyncio
async def test_what_a_child_prints_goes_to_the_log_and_not_to_the_terminal(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    noisy = CHILD + "import os; run(lambda: (os.write(1, b'noise\\n'), 'http://127.0.0.1:1'))"
    server = make_server(tmp_path, noisy)
    await server.start()
    assert server.last_log_lines().startswith(" It said: noise (log: ")
    await server.stop()
    assert capfd.readouterr() == ("", "")


@pytest.mark.asyncio
async def test_a_cache_that_cannot_be_written_keeps_no_model_from_being_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "logs").touch()  # no directory
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    server = make_server(tmp_path, SERVES)
    await server.start()
    assert len(os.listdir(tmp_path)) == 2
    await server.stop()
    assert os.listdir(tmp_path) == ["logs"]


@pytest.mark.asyncio
async def test_the_log_of_a_server_that_died_is_there_after_it_was_started_again(tmp_path: Path) -> None:
    server = make_server(
        tmp_path, CHILD + "import os; run(lambda: (os.write(2, b'out of memory'), 'http://127.0.0.1:1'))"
    )
    await server.start()
    await _kill(server)
    said = server.last_log_lines()
    await server.stop()
    await server.start()
    await server.stop()
    (log,) = (tmp_path / "logs").iterdir()
    assert log.read_text() == "out of memory" and f"out of memory (log: {log})" in said


@pytest.mark.asyncio
async def test_a_model_that_does_not_load_is_reported_with_the_reason_and_the_last_lines(
    tmp_path: Path,
) -> None:
    fails = CHILD + textwrap.dedent("""
        def load():
            print('0.00.001 E tensor data is missing', file=sys.stderr)
            raise RuntimeError('bad model.')
        run(load)
    """)
    server = make_server(tmp_path, fails)
    with pytest.raises(AskanceError, match=r"m\.gguf: bad model\. It said: tensor data is missing \(log:"):
        await server.start()
    assert not server.is_running and server.process_id is None


@pytest.mark.asyncio
async def test_a_child_that_crashes_while_loading_is_a_sentence(tmp_path: Path) -> None:
    server = make_server(tmp_path, CHILD + "import os; run(os.abort)")
    with pytest.raises(AskanceError, match=naming("load", "without a word")):
        await server.start()


@pytest.mark.asyncio
async def test_a_model_that_takes_too_long_is_given_up_and_its_process_ended(tmp_path: Path) -> None:
    server = make_server(tmp_path, CHILD + "run(lambda: time.sleep(60))", seconds=0.6)
    before = time.monotonic()
    starting = asyncio.create_task(server.start())
    await asyncio.sleep(0.2)
    process_id = server.process_id
    with pytest.raises(AskanceError, match=naming("0.6 s", "smaller model")):
        await starting
    assert process_id is not None and not is_alive(process_id)
    assert time.monotonic() - before < 5


@pytest.mark.asyncio
async def test_a_cancelled_start_leaves_no_process(tmp_path: Path) -> None:
    server = make_server(tmp_path, CHILD + "run(lambda: time.sleep(60))")
    starting = asyncio.create_task(server.start())
    await asyncio.sleep(0.3)
    process_id = server.process_id
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert process_id is not None and not is_alive(process_id)


@pytest.mark.parametrize("phase", ["serving", "loading"])
def test_a_child_ends_when_its_parent_is_killed(tmp_path: Path, phase: str) -> None:
    if phase == "loading" and sys.platform != "linux":
        pytest.skip("only Linux ends a child that is still loading")
    mark = tmp_path / "loading"
    loading = CHILD + f"run(lambda: (open({str(mark)!r}, 'w').close(), time.sleep(60)))"
    parent_code = textwrap.dedent(f"""
        import asyncio, sys
        from pathlib import Path
        from askance.models.embedded.servers import EmbeddedServer
        code = {(SERVES if phase == "serving" else loading)!r}
        server = EmbeddedServer(Path("m"), log_directory=Path({str(tmp_path)!r}),
                                command=[sys.executable, "-c", code])
        async def main():
            starting = asyncio.create_task(server.start())
            await asyncio.sleep(0.05)
            if {phase == "serving"}:
                await starting
            print(server.process_id, flush=True)
            await asyncio.sleep(60)
        asyncio.run(main())
    """)
    parent = subprocess.Popen(child(parent_code), stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    process_id = int(parent.stdout.readline())
    if phase == "loading":
        until = time.monotonic() + 10
        while not mark.exists() and time.monotonic() < until:
            time.sleep(0.02)
    assert is_alive(process_id)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    assert ended_within(process_id, 2.0)


@pytest.mark.asyncio
async def test_an_interrupt_in_the_terminal_does_not_reach_the_child(tmp_path: Path) -> None:
    server = make_server(tmp_path, SERVES)
    await server.start()
    assert server.process_id is not None
    assert os.getpgid(server.process_id) != os.getpgid(0)
    os.kill(server.process_id, signal.SIGINT)
    await asyncio.sleep(0.1)
    assert server.is_running
    await server.stop()


class _FakePool(EmbeddedServerPool):
    """A pool whose children serve nothing."""

    def __init__(self, tmp_path: Path, code: str = SERVES) -> None:
        super().__init__(log_directory=tmp_path / "logs")
        self.code = code
        self.made: list[EmbeddedServer] = []

    def _make_server(self, path: Path) -> EmbeddedServer:
        server = EmbeddedServer(path, self.settings, log_directory=self._log_directory, command=child(self.code))
        self.made.append(server)
        return server


@pytest.mark.asyncio
async def test_roles_that_use_one_file_share_one_process(tmp_path: Path) -> None:
    (tmp_path / "link.gguf").symlink_to(tmp_path / "m.gguf")
    pool = _FakePool(tmp_path)
    async with pool:
        paths = [tmp_path / "m.gguf", tmp_path / "." / "m.gguf", tmp_path / "link.gguf"]
        urls = await asyncio.gather(*(pool.url_for(path) for path in paths))
        assert len(set(urls)) == 1 and len(pool.made) == 1
        await pool.url_for(tmp_path / "other.gguf")
        assert len(pool.made) == 2
        process_ids = [server.process_id for server in pool.made]
    assert all(process_id is not None and not is_alive(process_id) for process_id in process_ids)


@pytest.mark.asyncio
async def test_a_server_that_died_is_started_again_once_and_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "m.gguf"
    pool = _FakePool(tmp_path)
    async with pool:
        await pool.url_for(path)
        first = await _kill(pool.made[0])
        with caplog.at_level(logging.WARNING):
            await asyncio.gather(pool.url_for(path), pool.url_for(path))
        assert pool.made[0].process_id != first and pool.made[0].is_running
        assert caplog.text.count("started again") == 1 and says(caplog.text, "signal 9")
        await _kill(pool.made[0])
        with pytest.raises(AskanceError, match=naming("signal 9", "second time")):
            await pool.url_for(path)


async def _kill(server: EmbeddedServer) -> int:
    process_id = server.process_id
    assert process_id is not None
    os.kill(process_id, signal.SIGKILL)
    while server.is_running:
        await asyncio.sleep(0.01)
    return process_id


@pytest.mark.asyncio
async def test_a_file_that_is_no_gguf_is_an_input_error(tmp_path: Path) -> None:
    (tmp_path / "text.gguf").write_text("once upon a time")
    with pytest.raises(InputError, match=naming("GGUF")):
        await EmbeddedServer(tmp_path / "text.gguf").start()
    with pytest.raises(InputError, match="cannot be read: No such file"):
        await EmbeddedServer(tmp_path / "gone.gguf").start()


@pytest.mark.asyncio
async def test_a_missing_xllamacpp_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "m.gguf").write_bytes(b"GGUF")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"xllamacpp.*askance\[local\]"):
        await EmbeddedServer(tmp_path / "m.gguf").start()


needs_llama = pytest.mark.skipif(importlib.util.find_spec("xllamacpp") is None, reason="needs xllamacpp")


def _ask(url: str, **body: Any) -> tuple[int, dict[str, Any]]:
    request = urllib.request.Request(
        f"{url}/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


@needs_llama
@pytest.mark.asyncio
async def test_a_real_model_answers_with_log_probabilities_and_says_when_a_prompt_is_too_long(
    tmp_path: Path, weights: Path
) -> None:
    async with EmbeddedServerPool(ServerSettings(context=256, threads=1), log_directory=tmp_path) as pool:
        url = await pool.url_for(weights)
        question = [{"role": "user", "content": "Is water wet? Answer yes or no."}]
        status, reply = await asyncio.to_thread(
            _ask, url, messages=question, max_tokens=1, logprobs=True, top_logprobs=5
        )
        assert status == 200
        assert len(reply["choices"][0]["logprobs"]["content"][0]["top_logprobs"]) == 5
        long = [{"role": "user", "content": "word " * 400}]
        status, reply = await asyncio.to_thread(_ask, url, messages=long, max_tokens=1)
        assert status == 400 and reply["error"]["type"] == "exceed_context_size_error"
        assert reply["error"]["n_ctx"] == 256 and reply["error"]["n_prompt_tokens"] > 400


@needs_llama
@pytest.mark.asyncio
async def test_a_real_model_reads_an_example_once_whatever_was_read_since(tmp_path: Path, weights: Path) -> None:
    head = "Answer the question about the reply to a customer with one word, yes or no. " * 2
    replies = ["We are open.", "Bring it on Monday.", "That is our mistake.", "No.", "We are closed on Sunday."]
    examples = [f"{head}Reply: {reply} Question: " for reply in replies]
    settings = ServerSettings(context=256, threads=1)
    async with EmbeddedServerPool(settings, log_directory=tmp_path) as pool:
        url, slots = await pool.url_for(weights), TwoSlots()

        async def tokens_read(example: str, question: str) -> int:
            slot = slots.slot_for(example)
            named = {} if slot is None else {"id_slot": slot}
            message = {"role": "user", "content": example + question}
            status, reply = await asyncio.to_thread(_ask, url, messages=[message], max_tokens=1, **named)
            assert status == 200
            return int(reply["timings"]["prompt_n"])

        alone = [await tokens_read(examples[0], question) for question in ("Polite?", "Is it short?", "Late?")]
        for each in examples[1:]:
            await tokens_read(each, "Polite?")
        again = [await tokens_read(each, question) for each in examples for question in ("Is it warm?", "Late?")]
    most = max(alone[1:])
    assert alone[0] > 2 * most
    assert max(again) <= most


@needs_llama
@pytest.mark.asyncio
async def test_a_real_model_cut_short_is_refused_with_what_llama_said(tmp_path: Path, weights: Path) -> None:
    cut = tmp_path / "cut.gguf"
    with weights.open("rb") as file:
        cut.write_bytes(file.read(20_000_000))
    with pytest.raises(AskanceError, match=r"could not load .*cut\.gguf.*corrupted or incomplete"):
        await EmbeddedServer(cut, log_directory=tmp_path / "logs").start()
