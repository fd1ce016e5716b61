"""A judge to be exported, servers that answer it, and what askance itself says."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any

import pytest

import askance
from askance.bridges.exports import export_judge
from askance.evaluation.calibration import Calibration, QuestionCalibration
from askance.evaluation.kept_judge import KeptJudge
from askance.prompts.checklist import Checklist, ComputedCheck, Question
from askance.prompts.prompt import Prompt
from askance.testing import StandInServer, completion

QUESTIONS = (
    Question(id="facts", text="Are the facts right?", dimension="truth", weight=3.0, violation="A wrong year."),
    Question(id="rude", text="Is it rude?", dimension="tone", good="no"),
    Question(id="short", text="Is it {short}?", dimension="tone", weight=0.5, rubric="One sentence."),
    Question(id="idle", text="Is it blue?", dimension="tone", weight=0.0),
)
CHECKS = (
    ComputedCheck(id="words", kind="length", value="at most 5 words", dimension="tone", weight=2.0),
    ComputedCheck(id="braces", kind="matches", value=r"\{\w+\}", good="no"),
    ComputedCheck(id="opening", kind="begins", value="Ada", weight=0.0),
)
PLAIN = Prompt("You are a strict judge of {{braces}}.")
FILLED = Prompt("Asked: {input}\nKnown: {context}\n{output}\n\n{question}\nBe strict.")
SAYS = Prompt("Look at {output}. Answer yes or no.\n{question}")
TAGGED = Prompt(
    "Be strict.\n\n<page>\n{context}\n</page>\n\n# Reply\n\n{output}\n\n{question}\n\n# Written for\n\n{input}"
)
ONE_LINE = Prompt("Does {output} go with {input}? {question}")
ASKED_OF = Prompt("Answer yes or no of this page:\n{context}\n\nReply: {output}\n\n{question}")
"""It says how to answer where it shows the page, and nowhere else."""
ROWS = [
    {"id": "1", "input": "Who wrote it?", "output": "Ada wrote it in 1843.", "context": "A page about Ada."},
    {"id": "2", "input": "Say <hi>.", "output": "No {output} here, nor 是 — good day."},
    {"id": "3", "input": "Again, who?", "output": "Somebody else, surely."},
]


AGENT = [
    {
        "id": "4",
        "input": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Who is this?"},
                    {"type": "image_url", "image_url": {"url": "https://x.test/a.png"}},
                ],
            }
        ],
        "output": [
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"id": "c", "function": {"name": "look", "arguments": "{}"}}],
            },
            {"role": "tool", "tool_call_id": "c", "content": "Ada"},
            {"role": "assistant", "content": "It is Ada."},
        ],
        "context": ["A page about Ada.", "Another."],
    },
    {"id": "5", "input": {"question": "Who?", "shop": 7}, "output": "Ada."},
]
"""Conversations, lists and objects in place of texts."""


def share(body: Mapping[str, Any], scale: int = 97) -> float:
    text = json.dumps(body["messages"], sort_keys=True) + str(body.get("seed"))
    return (sum(map(ord, text)) % scale) / scale


def with_logprobs(body: Mapping[str, Any]) -> Any:
    return 0.02 + 0.96 * share(body)


def without_alternatives(body: Mapping[str, Any]) -> Any:
    """A server that sends the log-probabilities of what was said, and no others."""
    token = {"token": words(body), "logprob": -0.1, "top_logprobs": []}
    return 200, {"choices": [{"message": {"content": token["token"]}, "logprobs": {"content": [token]}}]}


def thinking(body: Mapping[str, Any]) -> Any:
    """A server whose model thinks in two tokens before it answers, in the text or beside it."""
    status, found = 200, completion(body, with_logprobs(body))
    message = found["choices"][0]["message"]
    top = [{"token": token, "logprob": -0.7} for token in ("No", "Yes")]
    thought = [{"token": token, "logprob": -0.7, "top_logprobs": top} for token in ("<think>No", "</think>")]
    found["choices"][0]["logprobs"]["content"][:0] = thought
    if share(body, 5) < 0.5:
        message["reasoning_content"] = "No"
    else:
        message["content"] = f"<think>No</think>\n\n{message['content']}"
    return status, found


def words(body: Mapping[str, Any]) -> Any:
    """A server without log-probabilities, which now and then has to be asked again."""
    if share(body, 5) < 0.2 and len(body["messages"]) < 3:
        return "Perhaps."
    return "Yes, it is." if share(body) > 0.5 else "No."


def quoting(body: Mapping[str, Any]) -> Any:
    """A server that quotes where it is asked to, and now and then what is not there."""
    if "Copy from the text" not in body["messages"][0]["content"]:
        return with_logprobs(body)
    quote, p = ("Somebody", "Ada", "“", "No")[int(4 * share(body, 13))], 0.02 + 0.96 * share(body)
    pairs = [(quote, p), ("none", 0.7 * (1 - p)), (" None", 0.3 * (1 - p))]
    top = [{"token": token, "logprob": round(math.log(each), 4)} for token, each in pairs]
    first = max(top, key=lambda each: each["logprob"])
    token = {**first, "top_logprobs": top}
    return 200, {"choices": [{"message": {"content": first["token"]}, "logprobs": {"content": [token]}}]}


def quoting_words(body: Mapping[str, Any]) -> Any:
    """The same without log-probabilities."""
    if "Copy from the text" not in body["messages"][0]["content"]:
        return words(body)
    return ("Somebody else", "ada", "None.", "No.", '"No', "Yes", "no idea")[int(7 * share(body))]


def calibration(method: Any, prompt: Prompt, checks: Sequence[ComputedCheck] = ()) -> Calibration:
    fit = {"threshold": 0.4} if method == "thresholds" else {"slope": 1.7, "shift": -0.3}
    fits = {
        each.id: QuestionCalibration(good=each.good, n=9, correlation=None, **fit) for each in (*QUESTIONS, *checks)
    }
    if method == "thresholds":
        fits = {name: each.model_copy(update={"correlation": 0.5}) for name, each in fits.items()}
    return Calibration(method=method, model="openai/judge", prompt=prompt.hash, target="human", n=9, questions=fits)


def read_beside(prompt: Prompt, checks: Sequence[ComputedCheck] = ()) -> Calibration:
    """One whose questions are read beside all others, in another order than they are asked in."""
    numbers = {"idle": (0.7, 0.2, 1.9), "short": (1.3, -0.4, None), "facts": (0.9, 0.1, 0.8), "rude": (1.6, 0.3, 0.5)}
    numbers |= {each.id: (0.1 * place, -0.1, 0.3) for place, each in enumerate(checks, 1)}
    good = {each.id: each.good for each in (*QUESTIONS, *checks)}
    fits = {
        name: QuestionCalibration(good=good[name], n=9, slope=slope, shift=shift, lean=lean)
        for name, (slope, shift, lean) in numbers.items()
    }
    return Calibration(method="accepted", model="openai/judge", prompt=prompt.hash, target="human", n=9, questions=fits)


def kept(
    prompt: Prompt = PLAIN,
    alone: Collection[str] = (),
    quoted: Collection[str] = (),
    last: Collection[str] = (),
    call: Collection[str] = (),
    checks: Sequence[ComputedCheck] = (),
    **more: Any,
) -> KeptJudge:
    """A judge; it is shown the output alone where it is asked the questions that are named, also where it quotes."""
    sees = dict.fromkeys(alone, "output") | dict.fromkeys(quoted, "quote")
    sees |= dict.fromkeys(last, "last") | dict.fromkeys(call, "call")
    questions = tuple(each.model_copy(update={"sees": sees.get(each.id, "all")}) for each in QUESTIONS)
    checklist = Checklist(task="Answer.", questions=(*questions, *checks))
    return KeptJudge(model="openai/judge", prompt=prompt, checklist=checklist, **more)


def as_module(judge: KeptJudge, to: str = "python") -> ModuleType:
    module = ModuleType("exported")
    module.__file__ = f"{to}.py"
    exec(compile(export_judge(judge, to).text, f"{to}.py", "exec"), module.__dict__)
    return module


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Any], StandInServer]]:
    servers: list[StandInServer] = []

    def start(script: Any) -> StandInServer:
        server = StandInServer(script)
        servers.append(server.__enter__())
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        monkeypatch.delenv("JUDGE_MODEL", raising=False)
        return server

    yield start
    for server in servers:
        server.__exit__(None, None, None)


def texts(row: Mapping[str, Any]) -> dict[str, str]:
    return {name: row[name] for name in ("input", "output", "context") if name in row}


def ours(
    judge: KeptJudge, server: StandInServer, rows: Sequence[Mapping[str, Any]] = ROWS
) -> tuple[askance.Evaluation, set[str]]:
    how: dict[str, Any] = {} if judge.settings.get("reads") else {"explain": "never"}
    found = judge.evaluate(rows, api_base=server.url, no_cache=True, resamples=100, **how)
    bodies = {json.dumps(each, sort_keys=True) for each in server.bodies}
    server.bodies.clear()
    return found, bodies
