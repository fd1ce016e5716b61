"""A judge that thinks before it answers, from its first verdict to its export; nothing is asked twice."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import askance
from askance.bridges.exports import export_judge
from askance.prompts.checklist import Checklist, Question
from askance.prompts.errors import InputError
from askance.prompts.prompt import Prompt
from askance.testing import StandInServer

from .said import says

REPLIES = json.loads((Path(__file__).parent / "data" / "thought_replies.json").read_text(encoding="utf-8"))["replies"]
"""What the embedded 1.5B model thought and answered, behind a template that opens ``<think>``."""
THOUGHT_OF = tuple(
    Question(id=name, text=text, sees="output")
    for name, text in (
        ("advice", "Does the summary give advice?"),
        ("who", "Does the summary say who said so?"),
        ("date", "Does the summary give a date?"),
    )
)
THOUGHT_PROMPT = Prompt(
    "You judge summaries of news items. Before you answer you think about each question: which words of the summary matter "
    "for it, and what they mean.\n\nSummary: {output}\n\n{question}"
)
NAMES = re.compile(r"^\[(\w+)\] Question", re.MULTILINE)
WORDS = ("short", "rude", "clear")
QUESTIONS = tuple(Question(id=name, text=f"Is it {name}?", good="no" if name == "rude" else "yes") for name in WORDS)


def recorded(body: Mapping[str, Any]) -> Any:
    """The recorded reply to a request, as the server sent it."""
    asked = body["messages"][-1]["content"]
    wanted = "all questions" if NAMES.search(asked) else "a word"
    found = next(
        each for each in REPLIES if each["output"] in asked and (each["asked"] == wanted or body["messages"][1:])
    )
    content = [
        {"token": token, "logprob": logprob, "top_logprobs": [{"token": each, "logprob": p} for each, p in top]}
        for token, logprob, top in ([*each, []][:3] for each in found["tokens"])
    ]
    message = {"role": "assistant", "content": found["content"]}
    choice = {"index": 0, "finish_reason": "stop", "message": message, "logprobs": {"content": content}}
    return 200, {"object": "chat.completion", "choices": [choice], "usage": found["usage"]}


def thinking(body: Mapping[str, Any]) -> Any:
    """A server whose model thinks, gives no log-probabilities, and states the probability that it is asked for."""
    asked = body["messages"][-1]["content"]
    output = re.search(r"output (\d+)", body["messages"][0]["content"] + asked)
    assert output is not None
    p_of = {name: (17 * int(output[1]) + 29 * place) % 101 for place, name in enumerate(WORDS)}
    stated = {name: {"answer": "yes" if p >= 50 else "no", "probability": p} for name, p in p_of.items()}
    names = NAMES.findall(asked)
    text = json.dumps({name: stated[name] for name in names}) if names else "Yes"
    usage = {
        "prompt_tokens": 50,
        "completion_tokens": 150 + len(text) // 4,
        "completion_tokens_details": {"reasoning_tokens": 150},
    }
    message = {"role": "assistant", "content": text, "reasoning_content": "It is not so simple. No, or yes?"}
    return 200, {"choices": [{"index": 0, "finish_reason": "stop", "message": message}], "usage": usage}


@pytest.fixture
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")


def test_verdicts_of_the_embedded_model_come_from_after_its_thinking(no_key: None) -> None:
    """Its thinking holds answers of its own, yes, no and whole JSON objects: none of these is read."""
    outputs = list(dict.fromkeys(each["output"] for each in REPLIES))
    rows = [{"id": f"{place}", "input": "", "output": output} for place, output in enumerate(outputs)]
    with StandInServer(recorded) as server:
        found = askance.evaluate(
            rows,
            checklist=Checklist(questions=THOUGHT_OF),
            model="openai/thinker",
            prompt=THOUGHT_PROMPT,
            api_base=server.url,
            no_cache=True,
            explain="never",
        )
        calls = len(server.bodies)
    assert {(each.status, each.p_yes_from) for each in found.verdicts} == {("ok", "logprob")}
    for verdict in found.verdicts:
        reply = next(
            each for each in REPLIES if each["output"] == outputs[int(verdict.example)] and each["asked"] != "a word"
        )
        assert min(len(each["tokens"]) for each in REPLIES) > 100
        answers = json.loads(reply["content"].partition("</think>")[2])
        assert verdict.answer is (answers[verdict.question]["answer"] == "yes")
        assert verdict.p_yes == pytest.approx(_p_at(reply, verdict.question), abs=1e-3)
    assert len({round(each.p_yes or 0, 3) for each in found.verdicts}) > 10
    assert calls == len(rows) + 1  # the first one showed that it thinks


def _p_at(reply: Mapping[str, Any], question: str) -> float:
    """P(yes) at the answer to a question after the thinking, found by hand."""
    tokens = reply["tokens"]
    text = "".join(token for token, *_ in tokens)
    place = text.index('"answer": "', text.rindex(f'"{question}":')) + len('"answer": "')
    for token, _, *top in tokens:
        place -= len(token)
        if place < 0:
            yes = sum(math.exp(p) for word, p in top[0] if word.strip(' "').lower() == "yes")
            no = sum(math.exp(p) for word, p in top[0] if word.strip(' "').lower() == "no")
            return yes / (yes + no)
    raise AssertionError("the answer is in the text")


def rows(count: int, start: int = 0) -> list[dict[str, Any]]:
    """Outputs, passed where they are short and not rude."""
    return [
        {
            "id": f"e{place}",
            "input": "A question",
            "output": f"output {place}",
            "human": {"overall": (17 * place) % 101 >= 50},
            "metadata": {"document": f"d{place}"},
        }
        for place in range(start, start + count)
    ]


def test_a_judge_that_thinks_is_kept_loaded_exported_and_asked_again_for_nothing(
    no_key: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, store = tmp_path / "run", tmp_path / "answers.db"
    checklist, prompt = Checklist(questions=QUESTIONS), Prompt("You are a strict judge.")
    with StandInServer(thinking) as server:
        given = {"api_base": server.url, "store": str(store), "explain": "never"}
        result = askance.align(
            rows(40), checklist=checklist, model="openai/thinker", prompt=prompt, run=run, calibrate=True, **given
        )
        assert result.finish_reason
        judge = askance.load_judge(run)
        assert (judge.settings["mode"], judge.settings["p_yes"]) == ("batched", "auto")
        assert "p_yes_from: stated" in (run / "judge.yaml").read_text(encoding="utf-8")
        there = len(server.bodies)
        assert there == 40 + 1  # a call an output, and the one that showed that it thinks
        again = judge.evaluate(rows(40), **given)
        kept = askance.load_judge(run / "judge.yaml").evaluate(rows(40), **given)
        assert len(server.bodies) == there
        assert {each.p_yes_from for each in again.verdicts} == {"stated"}
        assert [each.p_yes for each in again.verdicts] == [each.p_yes for each in kept.verdicts]
        elsewhere = askance.load_judge(run / "judge.yaml").evaluate(
            rows(5), api_base=server.url, no_cache=True, explain="never"
        )
        assert len(server.bodies) == there + 5  # it is known to think: the file says so
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        module = ModuleType("exported")
        exec(compile(export_judge(run, "python").text, "judge.py", "exec"), module.__dict__)
        for row, score in zip(rows(5), elsewhere.scores, strict=True):
            found = module.judge(input=row["input"], output=row["output"])
            assert found["score"] == pytest.approx(score.overall)
            said = [each for each in elsewhere.verdicts if each.example == row["id"]]
            assert [each["p_yes"] for each in found["verdicts"]] == pytest.approx([each.p_yes for each in said])
        assert len(server.bodies) == there + 10


def test_an_exported_judge_asks_alone_what_a_reply_leaves_out_and_reads_no_contradiction(
    no_key: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replies = iter(
        [
            '{"short": {"answer": "yes", "probability": 90}, "rude": {"answer": "no", "probability": 80}}',
            '{"answer": "no", "probability": 10}',
            '{"answer": "no", "probability": 70}',
            '{"answer": "yes", "probability": 70}',
        ]
    )
    judge = askance.KeptJudge(
        model="openai/thinker",
        prompt=Prompt("You are a strict judge."),
        checklist=Checklist(questions=QUESTIONS),
        settings={"mode": "batched", "p_yes": "stated"},
    )
    with StandInServer(lambda body: next(replies)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        module = ModuleType("exported")
        exec(compile(export_judge(judge, "python").text, "judge.py", "exec"), module.__dict__)
        found = module.judge(input="A question", output="output 1")
        asked_again = server.bodies[-1]["messages"][-1]["content"]
    assert [each["p_yes"] for each in found["verdicts"]] == [0.9, 0.1, 0.7]
    assert says(asked_again, "yes is 70")


def test_a_judge_with_several_answers_a_call_and_no_numbers_is_not_exported() -> None:
    judge = askance.KeptJudge(
        model="openai/judge",
        prompt=Prompt("You are a strict judge."),
        checklist=Checklist(questions=QUESTIONS),
        settings={"mode": "batched"},
    )
    with pytest.raises(InputError, match="mode batched"):
        export_judge(judge, "python")
