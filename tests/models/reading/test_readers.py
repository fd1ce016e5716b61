"""What is read here and what is not; with weights on this machine, that keeping what was read changes nothing."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
from collections.abc import Callable
from functools import partial
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from askance.agents.evaluator import Evaluator
from askance.commands.doctor import check_models
from askance.commands.models import check_model
from askance.models.base import Answer, ModelError, Parameters, Request, make_request
from askance.models.files import sha256_of_file
from askance.models.gateway import Gateway
from askance.models.reading import consistency, onnx_reader, openvino_reader
from askance.models.reading.consistency import ALONE
from askance.models.reading.reading_model import (
    BLOCK,
    CONTEXT,
    OPENING,
    STEP,
    TEXT,
    TOGETHER,
    Reader,
    ReadingModel,
    blocks,
)
from askance.models.replies.yes_no import p_yes_at
from askance.models.resolve import Models
from askance.prompts.checklist import Checklist, Question
from askance.prompts.errors import AskanceError, InputError, MissingExtraError
from askance.prompts.examples import Example
from askance.prompts.prompt import Framing, Prompt, frame
from tests.said import naming, says

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from askance.models.base import Message

VERDICT = Parameters(1, 0.0, 42, 20)
VOCABULARY = (" yes", "No", "perhaps")


class Writer:
    """Stands in for llama.cpp."""

    name, identity = "local/m", "local:0"

    def __init__(self) -> None:
        self.asked: list[Request] = []

    async def answer(self, request: Request) -> Answer:
        self.asked.append(request)
        return Answer("written")


class Words:
    """Reads words in place of tokens; likes yes the better, the more words there are."""

    def tokens(self, messages: Sequence[Message], framing: Framing | None) -> tuple[list[int], list[int]]:
        return [0] * len(messages[-1][1].split()), [] if framing is None else [len(framing.before.split())]

    def next_token(self, tokens: Sequence[int], ends: Sequence[int]) -> NDArray[np.float32]:
        logits = np.array([len(tokens), 1.0, max(ends, default=0)], np.float32)
        return logits - np.float32(np.log(np.exp(logits).sum()))

    def text(self, token: int) -> str:
        return VOCABULARY[token]

    def forget(self) -> None:
        pass


class Abreast(Words):
    """Reads several side by side; the first time it waits, where it is told to."""

    rows = 1

    def __init__(self, wait: Event | None = None) -> None:
        self.beside: list[int] = []
        """How many prompts were read side by side."""
        self.wait, self.begun = wait, Event()

    def next_token(self, tokens: Sequence[int], ends: Sequence[int]) -> NDArray[np.float32]:
        self.begun.set()
        assert self.wait is None or self.wait.wait(10)
        return super().next_token(tokens, ends)

    def next_tokens(self, prompts: Sequence[Sequence[int]], ends: Sequence[int]) -> list[NDArray[np.float32]]:
        self.beside.append(len(prompts))
        return [self.next_token(each, ends) for each in prompts]


LOADS: dict[str, Callable[[str, Path, str], Reader]] = {
    "onnx": onnx_reader.load_reader,
    "openvino": openvino_reader.load_reader,
}
PACKAGES = {"onnx": ("onnxruntime", "onnx", "gguf"), "openvino": ("openvino", "openvino_genai")}


def model_with(reader: Reader, writer: Writer) -> ReadingModel:
    return ReadingModel("openvino/m", "openvino:0", writer, lambda: reader)


def asking(text: str, parameters: Parameters = VERDICT, framing: Framing | None = None) -> Request:
    return make_request("openvino:0", [("user", text)], parameters, framing=framing)


async def test_a_verdict_is_read_and_has_its_probabilities() -> None:
    writer = Writer()
    model = model_with(Words(), writer)
    answer = await model.answer(asking("a b c d", framing=Framing(None, "a b", "")))
    assert (answer.text, answer.prompt_tokens, answer.completion_tokens, answer.cost_usd) == (" yes", 4, 1, 0.0)
    assert answer.logprobs is not None
    assert p_yes_at(answer.logprobs[0][1]) == pytest.approx(np.exp(4) / (np.exp(4) + np.exp(1)), abs=1e-4)
    assert not writer.asked
    await model.close()


@pytest.mark.parametrize(
    ("ends", "kept"),
    [
        ([], []),
        ([0], []),
        ([50, 62, 90, 92], [50, 92]),  # a mail of 12 tokens, and two after the reply
        ([OPENING - 1, OPENING + 20], [OPENING + 20]),
        (
            [50, 50 + TEXT, 60 + TEXT + OPENING],
            [50, 50 + TEXT, 60 + TEXT + OPENING],
        ),  # an article, for its next summary
        ([2 * BLOCK + 1], [BLOCK, 2 * BLOCK, 2 * BLOCK + 1]),
    ],
)
def test_what_is_worth_a_block_of_its_own(ends: list[int], kept: list[int]) -> None:
    assert blocks(ends) == kept


@pytest.mark.parametrize(
    "parameters", [Parameters(200), Parameters(1, 0.7, 42, 20), Parameters(1, schema={"type": "object"})]
)
async def test_what_is_no_verdict_is_written_by_the_other(parameters: Parameters) -> None:
    writer = Writer()
    model = model_with(Words(), writer)
    assert (await model.answer(asking("a b", parameters))).text == "written"
    assert len(writer.asked) == 1
    await model.close()


async def test_questions_on_one_output_are_read_side_by_side() -> None:
    reader, output = Abreast(), "one two " * OPENING
    model = ReadingModel("openvino/m", "0", Writer(), lambda: reader, beside=True)
    framing, other = Framing(None, output, ""), Framing(None, f"{output} three ", "")
    short, long = ["q"] * (TOGETHER + 1), ["q " * (STEP + 1)] * 2
    asked = [asking(framing.before + each, framing=framing) for each in (*short, *long)]
    asked += [asking(other.before + "q", framing=other), asking("alone")]
    answers = await asyncio.gather(*map(model.answer, asked))
    assert reader.beside == [TOGETHER, 1, len(long), 1]
    single = [await model.answer(each) for each in asked]
    assert single == answers and {each.prompt_tokens for each in answers} == {33, 41, 34, 1}
    await model.close()


async def test_one_who_asks_no_longer_leaves_the_others_waiting_for_their_own() -> None:
    reader = Abreast(Event())
    model = ReadingModel("openvino/m", "0", Writer(), lambda: reader, beside=True)
    first = asyncio.create_task(model.answer(asking("a b")))
    await asyncio.to_thread(reader.begun.wait, 10)
    gone, left = (asyncio.create_task(model.answer(asking(text))) for text in ("a", "a b c"))
    await asyncio.sleep(0)
    gone.cancel()
    assert reader.wait is not None
    reader.wait.set()
    assert (await first).prompt_tokens == 2 and (await left).prompt_tokens == 3
    with pytest.raises(asyncio.CancelledError):
        await gone
    await model.close()


async def test_what_cannot_be_read_fails_alone_and_what_cannot_be_loaded_fails_for_all() -> None:
    model = ReadingModel("openvino/m", "0", Writer(), Abreast, beside=True)
    texts = ("a " * CONTEXT, "a b")
    long, short = await asyncio.gather(*(model.answer(asking(each)) for each in texts), return_exceptions=True)
    assert isinstance(long, ModelError) and long.status == 413 and isinstance(short, Answer)
    await model.close()

    def load() -> Reader:
        raise InputError("no such model")

    model = ReadingModel("openvino/m", "0", Writer(), load, beside=True)
    found = await asyncio.gather(*(model.answer(asking(each)) for each in texts), return_exceptions=True)
    assert [str(each) for each in found] == ["no such model"] * 2
    await model.close()


class Marks(Words):
    """Begins its answer to one prompt with a mark, and all others with yes."""

    def tokens(self, messages: Sequence[Message], framing: Framing | None) -> tuple[list[int], list[int]]:
        return [int("text 0" in messages[-1][1])], []

    def next_token(self, tokens: Sequence[int], ends: Sequence[int]) -> NDArray[np.float32]:
        return np.log(np.array([0.1, 0.1, 0.8] if tokens[0] else [0.8, 0.1, 0.1], np.float32))

    def text(self, token: int) -> str:
        return ("Yes", "No", "**")[token]


async def test_an_answer_that_needs_more_tokens_leaves_the_others_to_the_reader() -> None:
    class Bold(Writer):
        async def answer(self, request: Request) -> Answer:
            self.asked.append(request)
            said = (("**", (("**", -0.1),)), ("No", (("No", -0.1), ("Yes", -2.4))), ("**", (("**", -0.1),)))
            return Answer("**No**", said)

    writer = Bold()
    model = model_with(Marks(), writer)
    checklist = Checklist(questions=(Question(id="q", text="Is it so?"),))
    evaluator = Evaluator(Gateway(max_concurrency=1), model, Prompt("{output} {question}"), checklist)
    examples = [Example(id=str(number), input="i", output=f"text {number}") for number in range(4)]
    verdicts = await evaluator.judge(examples)
    assert [verdict.answer for verdict in verdicts] == [False, True, True, True]
    assert len(writer.asked) == 1
    await model.close()


@pytest.mark.parametrize("place", ["template", "first token"])
async def test_a_model_that_thinks_ends_the_command_and_is_sent_to_local(place: str) -> None:
    class Thinker(Words):
        def tokens(self, messages: Sequence[Message], framing: Framing | None) -> tuple[list[int], list[int]]:
            return [1, 0, 0] if place == "template" else [1, 1, 1], []

        def next_token(self, tokens: Sequence[int], ends: Sequence[int]) -> NDArray[np.float32]:
            return np.log(np.array([0.1, 0.9] if place == "template" else [0.9, 0.1], np.float32))

        def text(self, token: int) -> str:
            return ("<think>\n", "Yes")[token]

    model = model_with(Thinker(), Writer())
    with pytest.raises(ModelError, match=naming("openvino/m", "local/")) as error:
        await model.answer(asking("a b"))
    assert error.value.fatal
    await model.close()


async def test_a_prompt_without_room_is_refused_and_not_cut() -> None:
    model = model_with(Words(), Writer())
    with pytest.raises(ModelError, match=naming("openvino/m", f"{CONTEXT} tokens", f"for {CONTEXT}")) as error:
        await model.answer(asking("a " * CONTEXT))
    assert error.value.status == 413, "the gateway takes it for the example's fault, not the model's"
    await model.close()


@pytest.mark.parametrize("provider", LOADS)
async def test_without_its_packages_the_extra_is_named(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr("askance.prompts.errors.import_module", missing)
    model = ReadingModel("m", "0", Writer(), partial(LOADS[provider], "m", Path("m.gguf"), "0"))
    with pytest.raises(MissingExtraError, match=rf"pip install 'askance\[{provider}\]'"):
        await model.answer(asking("a"))
    await model.close()


@pytest.mark.parametrize(("provider", "identity"), [("openvino", "openvino-3:"), ("onnx", "onnx-3:")])
async def test_names_are_those_of_local_models(
    provider: str, identity: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASKANCE_CACHE", str(tmp_path))
    async with Models() as models:
        with pytest.raises(InputError, match="askance models pull smollm2-135m-instruct"):
            models.get(f"{provider}/smollm2-135m-instruct")
        path = tmp_path / "own.gguf"
        path.write_bytes(b"GGUF")
        assert models.get(f"{provider}/{path}").identity == identity + sha256_of_file(path)


@pytest.fixture(scope="module", params=list(LOADS))
def provider(request: pytest.FixtureRequest) -> str:
    """Each that is installed."""
    if missing := [each for each in PACKAGES[request.param] if importlib.util.find_spec(each) is None]:
        pytest.skip(f"needs {', '.join(missing)}: askance[{request.param}]")
    return str(request.param)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache for what is made of the weights, which takes longer than all that is asked."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def file(weights: Path, made: Path, own_cache: None, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Weights, made ready once for all tests of this file."""
    monkeypatch.setenv("ASKANCE_CACHE", str(made))
    return weights


def test_a_file_that_it_cannot_read_leaves_nothing_behind(
    provider: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASKANCE_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "own.gguf"
    path.write_bytes(b"GGUF and no more")
    with pytest.raises(InputError, match=naming(f"{provider}/own", "own.gguf", "local/")):
        LOADS[provider](f"{provider}/own", path, "0")
    assert not list((tmp_path / "cache" / provider).iterdir())


async def test_what_is_kept_of_an_example_changes_no_verdict(provider: str, file: Path) -> None:
    head = "Answer the question about the reply with yes or no. " * 9
    examples = [f"{head}\n\nReply: the bicycle number {n} will be ready on Monday.\n\n" for n in range(3)]
    requests = [
        asking(example + question, framing=Framing(None, example, "", (len(head),)))
        for example in examples
        for question in ("Is a day named?", "Is it rude?")
    ]
    answers = {}
    for order in (requests, requests[::-1]):
        model = ReadingModel("m", "0", Writer(), partial(LOADS[provider], "m", file, sha256_of_file(file)))
        for request in order:
            answer = await model.answer(request)
            assert answers.setdefault(request.key, answer) == answer
            assert answer.prompt_tokens > 2 * TEXT
        assert (await model.answer(order[0])) == answers[order[0].key]
        await model.close()
    async with Models() as models:  # llama.cpp, with the same weights
        local = models.get(f"local/{file}")
        theirs = await local.answer(make_request(local.identity, requests[0].messages, VERDICT))
    ours = answers[requests[0].key]
    assert ours.prompt_tokens == theirs.prompt_tokens
    assert ours.logprobs is not None and theirs.logprobs is not None
    assert {token for token, _ in theirs.logprobs[0][1][:3]} <= {token for token, _ in ours.logprobs[0][1][:5]}


@pytest.mark.slow
def test_with_a_system_message_too_it_is_known_what_prompts_share(provider: str, file: Path) -> None:
    reader = LOADS[provider]("m", file, sha256_of_file(file))
    prompt = Prompt("Judge with care.")
    assert not prompt.placeholders
    read = []
    for text, question in (("a bell", "Is it short?"), ("a bell", "Is it rude?"), ("two bells", "Is it short?")):
        framing = frame(prompt, Example(id="1", input="a ring of something", output=text))
        system = framing.system or ""
        read.append(reader.tokens([("system", system), ("user", framing.before + question)], framing))
    (first, ends), (second, _), (third, _) = read
    assert first[: ends[-1]] == second[: ends[-1]] and first[ends[-1] :] != second[ends[-1] :]
    assert first[: ends[1]] == third[: ends[1]] and ends[0] < ends[1] < ends[-1]


async def test_what_is_asked_beside_it_changes_no_verdict(provider: str, file: Path) -> None:
    replies = [f"{'Reply: the bicycle will be ready, says Ann. ' * 4}Call number {n}.\n\n" for n in range(3)]
    asked = ["Is a day named?", "Is it rude?", "Does it say who will call, and when, and on which number?"]
    asked += [
        f"{'Read it once more. ' * more}Is there a {word} in it?" for more in (3, 6) for word in ("bus", "cat", "dog")
    ]
    framed = [(each, Framing(None, each, "")) for each in replies]
    requests = [asking(reply + each, framing=framing) for reply, framing in framed for each in asked]
    found = []
    for beside in (1, 3, len(requests)):
        async with Models() as models:
            model = models.get(f"{provider}/{file}")
            several = [requests[start : start + beside] for start in range(0, len(requests), beside)]
            found.append([said for some in several for said in await asyncio.gather(*map(model.answer, some))])
    assert all(each == found[0] for each in found)
    assert all(each.logprobs is not None for each in found[0])


async def test_a_prompt_that_is_read_in_blocks_gets_the_answer_of_the_whole(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if missing := [each for each in PACKAGES["openvino"] if importlib.util.find_spec(each) is None]:
        pytest.skip(f"needs {', '.join(missing)}: askance[openvino]")
    # rounding to 8 bits depends on how many tokens are read at once, so that blocks are told from the whole without it
    exact = "single precision without 8-bit steps"
    monkeypatch.setattr(openvino_reader, "PRECISIONS", {exact: openvino_reader.PRECISIONS[exact]})
    monkeypatch.setattr(openvino_reader, "CONSISTENCY", "exact.json")  # another choice than that of the other tests
    monkeypatch.setattr(consistency, "ROWS", (ALONE,))
    reply = f"{'Reply: the bicycle will be ready, says Ann. ' * 4}\n\n"
    shared = asking(f"{reply}Is a day named?", framing=Framing(None, reply, ""))
    async with Models() as models:
        model = models.get(f"openvino/{file}")
        parts, whole = [await model.answer(each) for each in (shared, asking(shared.messages[-1][1]))]
    assert parts.logprobs is not None and whole.logprobs is not None
    assert dict(whole.logprobs[0][1][:3]) == pytest.approx(dict(parts.logprobs[0][1][:3]), abs=0.01)


def test_the_settings_that_a_reader_needs_here_are_kept_and_told(provider: str, file: Path) -> None:
    LOADS[provider]("m", file, sha256_of_file(file))
    [line] = check_models([f"{provider}/{file}"])
    assert line.state == "ok" and says(line.said, "s a verdict")
    found = check_model(f"{provider}/{file}", no_cache=True)
    assert found.reads and found.reads in line.said
    assert ("this processor", found.reads) in found.rows


def test_openvino_says_that_there_is_no_room_before_it_makes_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for package in PACKAGES["openvino"]:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    monkeypatch.setenv("ASKANCE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=1e9))
    path = tmp_path / "m.gguf"
    with path.open("wb") as file:
        file.truncate(1_100_000_000)
    with pytest.raises(AskanceError, match=naming("1.3 GB", "1.0 GB", "room")):
        openvino_reader.load_reader("openvino/m", path, "0")
    assert not list((tmp_path / "cache" / "openvino").iterdir())
