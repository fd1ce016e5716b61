"""Programs that write outputs: functions, commands and addresses, asked like models."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from askance.agents.generator import Generated, Generator
from askance.memory.verdict_store import VerdictStore
from askance.models.gateway import Gateway, RetryPolicy
from askance.models.programs import Program, is_program, load_program, output_in, stands_for_program, writer_of
from askance.models.resolve import Models
from askance.prompts.errors import InputError
from askance.prompts.examples import Example
from askance.prompts.prompt import Prompt
from askance.testing import ScriptedModel

EXAMPLES = [Example(id=f"e{n}", input=f"item {n}", reference="secret", human={"overall": 1}) for n in range(3)]


async def written(program: Program, examples: list[Example] = EXAMPLES, store: Any = None) -> list[Generated]:
    gateway = Gateway(store, retry=RetryPolicy(2, first=0.01))
    try:
        return await Generator(gateway, program, Prompt("Write."), prompt_name="writer").generate(examples)
    finally:
        await program.close()


def file(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


# --- functions ----------------------------------------------------------------------------------------------------


async def test_a_function_is_given_the_example_without_its_answers_and_the_prompts_by_name() -> None:
    seen = []

    def write(example: Example, prompts: dict[str, str]) -> str:
        seen.append((example, prompts))
        return f"{prompts['writer']} {example.input}"

    found = await written(load_program(write))
    assert [each.example.output for each in found] == ["Write. item 0", "Write. item 1", "Write. item 2"]
    example, prompts = next(each for each in seen if each[0].id == "e0")
    assert (example.input, example.reference, example.human) == ("item 0", None, {}) and prompts == {"writer": "Write."}


async def test_an_async_function_is_awaited_and_messages_become_the_transcript_that_a_judge_reads() -> None:
    async def chat(example: Example, prompts: dict[str, str]) -> list[dict[str, str]]:
        await asyncio.sleep(0)
        return [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": f"About {example.input}"}]

    (found, *_) = await written(load_program(chat))
    assert found.example.output == "User: Hi\n\nAssistant: About item 0"


async def test_a_function_that_raises_leaves_that_example_without_an_output_and_says_where(tmp_path: Path) -> None:
    path = file(
        tmp_path,
        "raises_on_one.py",
        "def write(example, prompts):\n    if example.id == 'e1':\n        raise LookupError('gone')\n    return 'x'\n",
    )
    found = await written(load_program(f"{path}:write"))
    assert [each.example.output for each in found] == ["x", None, "x"]
    assert found[1].error is not None and "LookupError: gone" in found[1].error and "line 3" in found[1].error


@pytest.mark.parametrize("returned", [None, "", "  \n", [], {}, {1, 2}, float("nan"), object()])
async def test_what_is_no_output_is_none(returned: Any) -> None:
    found = await written(load_program(lambda example, prompts: returned), EXAMPLES[:1])
    assert found[0].example.output is None and found[0].error


async def test_nothing_is_run_twice_until_the_functions_file_or_the_prompt_changes(tmp_path: Path) -> None:
    path, store = (
        file(tmp_path, "counted.py", "def write(example, prompts):\n    return 'one'\n"),
        VerdictStore(tmp_path / "v.db"),
    )
    with store:
        calls = []
        program = load_program(f"{path}:write")
        program._function = lambda example, prompts: calls.append(example.id) or "x"  # type: ignore[attr-defined]
        await written(program, store=store)
        await written(program, store=store)
        assert sorted(calls) == ["e0", "e1", "e2"]
        path.write_text("# another\ndef write(example, prompts):\n    return 'two'\n")
        found = await written(load_program(f"{path}:write"), store=store)
        assert [each.example.output for each in found] == ["two"] * 3


def test_a_version_of_ones_own_takes_the_place_of_the_hash(tmp_path: Path) -> None:
    path = file(tmp_path, "versioned.py", "def write(example, prompts):\n    return 'one'\n")
    first, own = load_program(f"{path}:write"), load_program(f"{path}:write", version="3")
    path.write_text(path.read_text() + "# changed\n")
    assert load_program(f"{path}:write").identity != first.identity
    assert load_program(f"{path}:write", version="3").identity == own.identity


def test_a_run_goes_on_with_no_other_version(tmp_path: Path) -> None:
    path = file(tmp_path, "taken_up.py", "def write(example, prompts):\n    return 'one'\n")
    how: dict[str, Any] = {"version": None, "timeout": 1.0}
    begun = writer_of(f"{path}:write", **how)
    assert writer_of(f"{path}:write", **how, begun_with=begun.version).identity == begun.identity
    path.write_text("def write(example, prompts):\n    return 'two'\n")
    with pytest.raises(InputError, match=r"changed.*began"):
        writer_of(f"{path}:write", **how, begun_with=begun.version)


async def test_plain_functions_run_side_by_side_and_end_in_time() -> None:
    together = threading.Barrier(3, timeout=5)

    def write(example: Example, prompts: dict[str, str]) -> str:
        together.wait()
        return "x"

    assert [each.example.output for each in await written(load_program(write))] == ["x"] * 3
    found = await written(load_program(lambda example, prompts: time.sleep(30), timeout=0.05), EXAMPLES[:1])
    assert found[0].error is not None and "0.05 s" in found[0].error


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("nowhere.py:write", "there is no file nowhere.py"),
        ("json:nothing", "has nothing called 'nothing'"),
        ("json:loads", "it is called with an example and the prompts by name"),
        ("json:decoder", "not a function"),
        ("command:no-such-program x", "there is no program 'no-such-program'"),
        ("command:", "there is no program ''"),
        ('command:python "x', "No closing quotation"),
        ("url:ftp://host/x", "begins with http"),
        ("url:http://me:secret@host/x", "no user's name, password"),
    ],
)
def test_a_program_that_is_not_there_is_refused_before_anything_is_asked(source: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        load_program(source)
    assert said in str(caught.value) and "secret" not in str(caught.value)


def test_names_of_programs_and_of_models_are_told_apart() -> None:
    programs = [
        "app.py:write",
        "src/app.py:App.write",
        "package.module:function",
        "command:python app.py",
        "url:http://x",
    ]
    models = ["openai/gpt-5", "ollama/llama3:8b", "local/x.gguf", "openai/gpt-5.py", "anthropic/a:b", "my-judge"]
    assert all(map(is_program, programs)) and not any(map(is_program, models))
    assert not stands_for_program(ScriptedModel(["x"])) and stands_for_program(lambda example, prompts: "")


# --- commands -----------------------------------------------------------------------------------------------------

COMMAND = """
import json, sys
given = json.load(sys.stdin)
print("noise", file=sys.stderr)
if given["example"]["id"] == "e1":
    print("the last line", file=sys.stderr)
    sys.exit(3)
if given["example"]["id"] == "e2":
    sys.exit(0)
print(json.dumps(given))
"""


async def test_a_command_reads_json_and_its_output_is_what_it_prints(tmp_path: Path) -> None:
    file(tmp_path, "cmd.py", COMMAND)
    program = load_program(f"command:{sys.executable} cmd.py", folder=tmp_path)
    ok, failed, empty = await written(program)
    assert json.loads(str(ok.example.output)) == {
        "example": {"id": "e0", "input": "item 0", "metadata": {}},
        "prompts": {"writer": "Write."},
    }
    assert failed.error is not None and failed.error.endswith("exit status 3: the last line")
    assert empty.error is not None and empty.error.endswith("noise")
    before = program.version
    file(tmp_path, "cmd.py", COMMAND + "# changed\n")
    assert load_program(f"command:{sys.executable} cmd.py", folder=tmp_path).version != before


async def test_a_command_that_takes_too_long_is_ended_with_all_that_it_began(tmp_path: Path) -> None:
    file(tmp_path, "slow.sh", "sleep 30 & echo $! > child.pid; wait\n")
    program = load_program("command:sh slow.sh", timeout=0.5, folder=tmp_path)
    (found,) = await written(program, EXAMPLES[:1])
    assert found.error is not None and "0.5 s" in found.error
    child = Path("/proc") / (tmp_path / "child.pid").read_text().strip()
    for _ in range(50):
        if not child.exists() or "zombie" in (child / "status").read_text():
            return
        await asyncio.sleep(0.05)
    raise AssertionError("what the command began goes on")


# --- addresses ----------------------------------------------------------------------------------------------------


class Answering(BaseHTTPRequestHandler):
    """Answers by the id of the example: JSON, a text, or an error."""

    failures = 0

    def do_POST(self) -> None:
        given = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        name = given["example"]["id"]
        status, kind, body = 200, "application/json", json.dumps({"output": given["prompts"]["writer"]})
        if name == "e1":
            kind, body = "text/plain; charset=utf-8", "a plain text"
        if name == "e2":
            status, kind, body = 400, "text/plain", "no such item"
        if name == "busy" and Answering.failures < 1:
            Answering.failures += 1
            status, body = 503, "busy"
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def address() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"url:http://127.0.0.1:{server.server_port}/write"
    server.shutdown()
    server.server_close()


async def test_an_address_answers_with_json_or_a_text_and_is_asked_again_where_it_is_busy(address: str) -> None:
    Answering.failures = 0
    ok, plain, failed = await written(load_program(address))
    assert (ok.example.output, plain.example.output) == ("Write.", "a plain text")
    assert failed.error is not None and failed.error.endswith("answered HTTP 400: no such item")
    busy = await written(load_program(address), [Example(id="busy", input="x")])
    assert busy[0].example.output == "Write." and Answering.failures == 1


def test_an_answer_holds_its_output_as_json() -> None:
    assert output_in(json.dumps(["a", {"b": 1}])) == ["a", {"b": 1}]


async def test_a_program_is_no_judge() -> None:
    async with Models() as models:
        with pytest.raises(InputError, match="--generator"):
            models.get("app.py:write")


async def test_a_command_that_fails_without_a_word_is_said_to_have_said_nothing(tmp_path: Path) -> None:
    file(tmp_path, "cmd.py", "import sys\nsys.exit(2)\n")
    failed, *_ = await written(load_program(f"command:{sys.executable} cmd.py", folder=tmp_path))
    assert failed.error is not None and failed.error.endswith("exit status 2: it said nothing")
