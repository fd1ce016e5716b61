"""An exported judge asks what askance asks and comes to the same scores."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

import askance
from askance.bridges.exports import TOOLS, export_judge
from askance.commands.exchange.export import command as export_command
from askance.evaluation.kept_judge import KeptJudge
from askance.models.named import NamedModel
from askance.prompts.checklist import Checklist
from askance.prompts.errors import InputError
from askance.prompts.prompt import Prompt
from askance.testing import FaultyServer
from tests.thinkers import Thinker

from .conftest import (
    ASKED_OF,
    FILLED,
    ONE_LINE,
    PLAIN,
    QUESTIONS,
    ROWS,
    SAYS,
    TAGGED,
    as_module,
    calibration,
    kept,
    ours,
    quoting,
    quoting_words,
    read_beside,
    texts,
    thinking,
    with_logprobs,
    without_alternatives,
    words,
)

JUDGES = {
    "plain": (kept(), with_logprobs),
    "filled": (kept(FILLED, threshold=0.5), with_logprobs),
    "says itself": (kept(SAYS), with_logprobs),
    "hard scores": (kept(settings={"scores": "hard"}), with_logprobs),
    "without log-probabilities": (kept(), words),
    "log-probabilities without alternatives": (kept(), without_alternatives),
    "thinking": (kept(settings={"mode": "each", "p_yes": "logprob"}), thinking),
    "sampled": (kept(settings={"samples": 3, "repeat": 2}), words),
    "sampled, at a temperature of its own": (kept(settings={"samples": 3, "temperature": 0.4}), words),
    "repeated": (kept(settings={"repeat": 2, "temperature": 0.7, "seed": 7}), with_logprobs),
    "platt": (
        kept(calibration=calibration("platt", PLAIN), threshold=0.4, threshold_of=("truth", "tone")),
        with_logprobs,
    ),
    "thresholds": (kept(calibration=calibration("thresholds", PLAIN), settings={"repeat": 2}), with_logprobs),
    "read beside": (kept(calibration=read_beside(PLAIN), threshold=0.5), with_logprobs),
    "read beside, repeated": (kept(calibration=read_beside(PLAIN), settings={"repeat": 3}), with_logprobs),
    "read beside, hard scores": (kept(calibration=read_beside(PLAIN), settings={"scores": "hard"}), with_logprobs),
    "read beside, without log-probabilities": (kept(calibration=read_beside(PLAIN)), words),
    "read beside, sampled": (kept(calibration=read_beside(PLAIN), settings={"samples": 3, "repeat": 2}), words),
    "output alone": (kept(PLAIN, ["rude", "idle"]), with_logprobs),
    "output alone, filled": (kept(FILLED, ["rude", "short"]), with_logprobs),
    "output alone, in tags": (kept(TAGGED, ["facts", "short"]), with_logprobs),
    "output alone, in one line": (kept(ONE_LINE, ["rude"]), with_logprobs),
    "output alone, says itself": (kept(SAYS, ["facts", "rude"]), with_logprobs),
    "output alone, says itself elsewhere": (kept(ASKED_OF, ["rude", "short"]), with_logprobs),
    "output alone, every question": (kept(FILLED, [each.id for each in QUESTIONS]), words),
    "output alone, read beside": (
        kept(TAGGED, ["facts", "rude"], calibration=read_beside(TAGGED), settings={"repeat": 2}),
        with_logprobs,
    ),
    "quoted": (kept(FILLED, ["rude"], ["facts", "short"]), quoting),
    "quoted, every question": (kept(PLAIN, quoted=[each.id for each in QUESTIONS]), quoting),
    "quoted, read beside": (kept(PLAIN, quoted=["short", "idle"], calibration=read_beside(PLAIN)), quoting),
    "quoted, without log-probabilities": (kept(TAGGED, quoted=["facts", "rude", "idle"]), quoting_words),
    "quoted, sampled": (kept(PLAIN, quoted=["facts", "rude"], settings={"samples": 3, "repeat": 2}), quoting_words),
}


@pytest.mark.parametrize("name", JUDGES)
def test_an_exported_judge_sends_the_same_requests_and_comes_to_the_same_scores(name: str, serve: Any) -> None:
    judge, script = JUDGES[name]
    server = serve(script)
    here, bodies = ours(judge, server)
    module = as_module(judge)
    for row, score in zip(ROWS, here.scores, strict=True):
        there = module.judge(**texts(row))
        assert there["score"] == pytest.approx(score.overall, abs=1e-12)
        assert there["dimensions"] == pytest.approx(dict(score.dimensions), abs=1e-12)
        said = [each for each in here.verdicts if each.example == row["id"] and each.replicate == 0]
        if judge.settings.get("repeat", 1) == 1:
            assert [each["answer"] for each in there["verdicts"]] == [each.answer for each in said]
            assert [each["p_yes"] for each in there["verdicts"]] == pytest.approx(
                [each.p_yes for each in said], abs=1e-9
            )
        if judge.threshold is not None:
            values = [score.dimensions.get(each, score.overall) for each in judge.threshold_of]
            assert there["passed"] is (sum(values) / len(values) >= judge.threshold)
    sent = {json.dumps(each, sort_keys=True) for each in server.bodies}
    if name == "thinking":  # which call was the first to show it, and so had no room yet, is not the same
        sent, bodies = ({json.dumps({**json.loads(each), "max_tokens": 0}) for each in both} for both in (sent, bodies))
    assert sent == bodies


@pytest.mark.parametrize("logprobs", [True, False])
@pytest.mark.parametrize("where", ["beside", "tags", "template"])
def test_an_exported_judge_gives_a_model_that_thinks_room(serve: Any, where: str, logprobs: bool) -> None:
    server = serve(Thinker(300, where=where, logprobs=logprobs))
    module = as_module(kept())
    found = module.judge(**texts(ROWS[0]))
    assert all(each["answer"] is True for each in found["verdicts"])
    p_yes = 0.9 if logprobs else 1.0
    assert [each["p_yes"] for each in found["verdicts"]] == pytest.approx([p_yes] * len(QUESTIONS), abs=1e-3)
    rooms = [body["max_tokens"] for body in server.bodies]
    assert max(rooms) < 2_010
    assert rooms[-1] > 2_000


def test_an_exported_judge_sends_what_its_named_model_says(serve: Any) -> None:
    server = serve(Thinker(10))
    named = NamedModel(
        model="openai/gpt-x",
        api_base=server.url,
        thinking="low",
        extra_body={"top_k": 1, "x": "${Y}"},
        headers={"A": "${B}"},
    )
    module = as_module(replace(kept(), model="mine", named=named))
    module.judge(**texts(ROWS[0]))
    assert {body["model"] for body in server.bodies} == {"gpt-x"}
    assert {body["reasoning_effort"] for body in server.bodies} == {"low"}
    assert {body["top_k"] for body in server.bodies} == {1}
    assert all("x" not in body for body in server.bodies)


def test_what_a_question_leans_on_the_others_changes_its_score(serve: Any) -> None:
    whole = read_beside(PLAIN)
    alone = {name: fit.model_copy(update={"lean": None}) for name, fit in whole.questions.items()}
    serve(with_logprobs)
    scores = [
        as_module(kept(calibration=each)).judge(**texts(ROWS[0]))["score"]
        for each in (whole, whole.model_copy(update={"questions": alone}))
    ]
    assert abs(scores[0] - scores[1]) > 0.01


def test_a_question_of_the_output_alone_is_told_nothing_else(serve: Any) -> None:
    server = serve(with_logprobs)
    for prompt in (PLAIN, FILLED, TAGGED, ONE_LINE):
        as_module(kept(prompt, ["rude"])).judge(**texts(ROWS[0]))
        asked = [json.dumps(each["messages"]) for each in server.bodies]
        (rude,) = {each for each in asked if "Is it rude?" in each}
        assert ROWS[0]["output"] in rude and "Who wrote" not in rude and "A page" not in rude
        assert all("Who wrote" in each for each in asked if "Are the facts" in each)
        server.bodies.clear()


def test_a_prompt_of_the_output_alone_is_in_the_file_where_a_question_needs_it() -> None:
    assert list(as_module(kept(FILLED)).JUDGE["prompts"]) == ["all"]
    prompts = as_module(kept(FILLED, ["rude"])).JUDGE["prompts"]
    assert prompts == {"all": FILLED.text, "output": FILLED.of_output_alone.text}


def test_what_is_said_before_a_quote_is_in_the_file_where_a_question_needs_it() -> None:
    assert as_module(kept(FILLED)).JUDGE["quoting"] == []
    judge = as_module(kept(FILLED, quoted=[each.id for each in QUESTIONS])).JUDGE
    assert judge["prompts"] == {} and [role for role, _ in judge["quoting"]] == ["system", *["user", "assistant"] * 4]


def test_a_judge_that_quotes_is_no_grader(tmp_path: Path) -> None:
    kept(quoted=["rude"]).save(tmp_path / "judge.yaml")
    with pytest.raises(InputError, match="answered with a quote, and OpenAI's graders know only labels"):
        export_judge(tmp_path / "judge.yaml", "openai-grader")


def test_a_judge_is_exported_from_its_file_as_it_is(tmp_path: Path) -> None:
    judge = kept(alone=["rude"], calibration=read_beside(PLAIN))
    judge.save(tmp_path / "judge.yaml")
    assert export_judge(tmp_path / "judge.yaml", "python") == export_judge(judge, "python")


def test_a_judge_whose_questions_are_read_beside_one_that_is_gone_is_refused(tmp_path: Path) -> None:
    judge = replace(kept(calibration=read_beside(PLAIN)), checklist=Checklist(questions=QUESTIONS[:3]))
    with pytest.raises(InputError, match=r"This judge, field 'calibration'.*beside those to 'idle'"):
        export_judge(judge, "python")
    judge.save(tmp_path / "judge.yaml")
    with pytest.raises(InputError, match=r"judge\.yaml, field 'calibration'.*beside those to 'idle'"):
        askance.load_judge(tmp_path / "judge.yaml")


def test_a_verdict_that_cannot_be_had_is_an_error_and_no_score(serve: Any) -> None:
    module = as_module(kept())
    serve(lambda body: "I would rather not say.")
    with pytest.raises(module.JudgeError, match="neither yes nor no"):
        module.judge(output="x")
    serve(lambda body: (401, '{"error": {"message": "wrong key"}}'))
    with pytest.raises(module.JudgeError, match="HTTP 401"):
        module.judge(output="x")


def test_of_a_server_that_gives_fewer_alternatives_fewer_are_asked_for(serve: Any) -> None:
    asked = []

    def script(body: Any) -> Any:
        asked.append(body["top_logprobs"])
        too_many = '{"error": {"message": "Invalid top_logprobs value, the valid range of top_logprobs is [0, 5]"}}'
        return (400, too_many) if body["top_logprobs"] > 5 else 0.9

    serve(script)
    judged = as_module(kept()).judge(output="x")
    assert asked[0] == 20 and {*asked[1:]} == {5}
    assert all(each["p_yes"] == pytest.approx(0.9, abs=1e-3) for each in judged["verdicts"])


@pytest.mark.parametrize(
    ("said", "status", "wrong"),
    [
        ("top_logprobs exceeds the limit of 19", 400, lambda body: body.get("top_logprobs", 0) > 19),
        ("`temperature` must be strictly positive", 422, lambda body: body.get("temperature") == 0),
        ("This server requires --enable-logprobs", 501, lambda body: "logprobs" in body),
        ("'max_tokens' is not supported. Use 'max_completion_tokens'.", 400, lambda body: "max_tokens" in body),
    ],
)
def test_an_exported_judge_learns_what_a_server_refuses_as_askance_does(
    said: str, status: int, wrong: Any, serve: Any
) -> None:
    refused = []

    def script(body: Any) -> Any:
        if wrong(body):
            refused.append(body)
            return status, json.dumps({"error": {"message": said}})
        return with_logprobs(body)

    serve(script)
    judged = as_module(kept()).judge(output="x")
    assert len(judged["verdicts"]) == len(QUESTIONS)
    assert len(refused) == 1, "once for all questions"


def test_an_exported_judge_asks_through_the_proxy_of_the_environment(
    serve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(with_logprobs)
    monkeypatch.setenv("ALL_PROXY", os.environ["OPENAI_BASE_URL"].removesuffix("/v1"))
    for name in ("http_proxy", "HTTP_PROXY", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://judge.example.invalid/v1")
    assert len(as_module(kept()).judge(output="x")["verdicts"]) == len(QUESTIONS)
    monkeypatch.setenv("OPENAI_BASE_URL", os.environ["ALL_PROXY"] + "/v1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    assert len(as_module(kept()).judge(output="y")["verdicts"]) == len(QUESTIONS), "this machine itself needs none"


@pytest.mark.parametrize("message", [{"content": "<think>"}, {"content": None, "reasoning_content": "Yes"}])
def test_the_first_word_of_the_thinking_is_no_verdict(message: Any, serve: Any) -> None:
    top = [{"token": "Yes", "logprob": -0.1}]
    logprobs = {"content": [{"token": "Yes", "logprob": -0.1, "top_logprobs": top}]}
    serve(lambda body: (200, {"choices": [{"message": message, "logprobs": logprobs}]}))
    module = as_module(kept())
    with pytest.raises(module.JudgeError, match="in what it thinks"):
        module.judge(output="x")


@pytest.mark.parametrize("status", [400, 403, 422])
def test_what_a_server_refuses_by_name_is_left_out(status: int, serve: Any) -> None:
    def script(body: Mapping[str, Any]) -> Any:
        for name in ("max_tokens", "temperature"):
            if name in body:
                return status, json.dumps({"error": {"message": f"Unsupported parameter: {name}"}})
        return with_logprobs(body)

    server = serve(script)
    assert 0 <= as_module(kept()).judge(output="x")["score"] <= 1
    assert server.bodies[-1]["max_completion_tokens"] == 1


def test_a_text_that_is_too_long_changes_nothing_of_what_is_asked_next(serve: Any) -> None:
    said = json.dumps({"error": {"message": "max_tokens is too large: your request has 9000 tokens, more than 4096."}})
    server = serve(lambda body: (400, said) if "too long" in body["messages"][-1]["content"] else with_logprobs(body))
    module = as_module(kept())
    module.judge(output="short")
    asked = [{name: value for name, value in server.bodies[-1].items() if name != "messages"}]
    with pytest.raises(module.JudgeError, match="9000 tokens"):
        module.judge(output="too long")
    module.judge(output="short")
    asked += [{name: value for name, value in each.items() if name != "messages"} for each in server.bodies]
    assert all(each == asked[0] for each in asked)


def test_a_reply_that_breaks_off_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    module = as_module(kept())
    monkeypatch.setattr(module, "time", SimpleNamespace(sleep=lambda seconds: None))
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with FaultyServer(with_logprobs, share=0.3, kinds=("half a body",)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        scores = [module.judge(**texts(row))["score"] for row in ROWS]
        server.share = 0.0
        assert scores == [module.judge(**texts(row))["score"] for row in ROWS]
    assert server.made["half a body"]


@pytest.mark.parametrize(
    ("more", "what"),
    [({"settings": {"mode": "batched"}}, "mode batched"), ({"settings": {"explain": "always"}}, "explain always")],
)
def test_what_a_file_cannot_do_is_said(more: dict[str, Any], what: str) -> None:
    with pytest.raises(InputError, match=what):
        export_judge(kept(**more), "python")


@pytest.mark.parametrize("to", [each for each in TOOLS if each != "openai-grader"])
def test_no_name_of_a_file_is_used_twice(to: str) -> None:
    """The file is put together from others, each of which has names of its own."""
    body = ast.parse(export_judge(kept(threshold=0.5), to).text).body
    names = [node.name for node in body if isinstance(node, (ast.FunctionDef, ast.ClassDef))]
    names += [
        each.id for node in body if isinstance(node, ast.Assign) for each in node.targets if isinstance(each, ast.Name)
    ]
    assert len(names) > 40 and [name for name in names if names.count(name) > 1] == []


def test_an_unknown_tool_and_a_calibrated_grader_are_refused() -> None:
    with pytest.raises(InputError, match=r"no such tool.*promptfoo"):
        export_judge(kept(), "promptfo")
    with pytest.raises(InputError, match="labels"):
        export_judge(kept(calibration=calibration("platt", PLAIN)), "openai-grader")


def test_a_judge_on_another_provider_says_where_its_model_has_to_be_served() -> None:
    local = kept()
    made = export_judge(KeptJudge("local//home/me/weights.gguf", local.prompt, local.checklist), "python")
    assert "serves it" in made.notices[0]
    assert "'model': 'weights'" in made.text and "/home/me" not in made.text


def test_a_grader_asks_every_question_and_weighs_the_good_answers() -> None:
    made = json.loads(export_judge(kept(FILLED), "openai-grader").text)
    assert [each["passing_labels"] for each in made["graders"].values()] == [["yes"], ["no"], ["yes"], ["yes"]]
    assert made["calculate_output"] == "(3 * q1 + 1 * q2 + 0.5 * q3) / 4.5"
    asked = made["graders"]["q3"]["input"][0]["content"]
    assert "{{sample.output_text}}" in asked and "Is it {short}?" in asked and "{output}" not in asked


@pytest.mark.parametrize("prompt", [PLAIN, FILLED, TAGGED, ONE_LINE])
def test_a_grader_asks_of_the_output_alone_what_the_judge_asks_of_it_alone(prompt: Prompt) -> None:
    made = json.loads(export_judge(kept(prompt, ["rude"]), "openai-grader").text)
    facts, rude = (json.dumps(made["graders"][name]["input"]) for name in ("q1", "q2"))
    assert "{{item.input}}" in facts and "{{sample.output_text}}" in facts
    assert "{{item." not in rude and "{{sample.output_text}}" in rude and "Is it rude?" in rude


@pytest.mark.parametrize("to", TOOLS)
def test_every_export_is_written_by_the_command(to: str, askance_command: Any, sandbox: Path) -> None:
    kept(threshold=0.5).save(sandbox / "judge.yaml")
    done = askance_command("export", "judge.yaml", "--to", to, "-o", "out/file.py")
    assert done.returncode == 0, done.stderr
    text = (sandbox / "out" / "file.py").read_text(encoding="utf-8")
    if to == "openai-grader":
        json.loads(text)
    else:
        compile(text, to, "exec")
    assert askance_command("export", "judge.yaml", "--to", to).stdout == text


@pytest.mark.parametrize("to", [each for each in TOOLS if each != "openai-grader"])
@pytest.mark.parametrize("name", ["judge", "judge.txt", "judge.json"])
def test_a_name_by_which_the_tool_would_not_know_the_file_is_refused(to: str, name: str, sandbox: Path) -> None:
    kept(threshold=0.5).save(sandbox / "judge.yaml")
    done = CliRunner().invoke(export_command, ["judge.yaml", "--to", to, "-o", name])
    assert isinstance(done.exception, InputError) and "name it .py" in str(done.exception)
    assert not (sandbox / name).exists()


@pytest.mark.parametrize(
    ("to", "name", "said"),
    [
        ("python", "my-judge.py", "call it my_judge.py for that"),
        ("mlflow", "2nd.py", "call it mlflow_judge.py for that"),
        ("python", "my_judge.py", None),
        ("promptfoo", "my-judge.py", None),
    ],
)
def test_a_name_that_python_cannot_import_is_told(to: str, name: str, said: str | None, sandbox: Path) -> None:
    kept(threshold=0.5).save(sandbox / "judge.yaml")
    done = CliRunner().invoke(export_command, ["judge.yaml", "--to", to, "-o", name])
    assert done.exception is None and f"{name} is written" in " ".join(done.output.split())
    assert ("cannot import" in done.output) is (said is not None)
    assert (said or "is written") in " ".join(done.output.split())


def test_the_file_judges_a_data_set_from_the_shell(serve: Any, tmp_path: Path) -> None:
    serve(with_logprobs)
    (tmp_path / "judge.py").write_text(export_judge(kept(), "python").text, encoding="utf-8")
    lines = [json.dumps(row) + "\n" for row in ROWS]
    (tmp_path / "data.jsonl").write_text("".join(lines), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-I", "judge.py", "data.jsonl"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == ["1", "2", "3"]
    for row in ('{"input": "x"}', '{"input": "x", "output": null}'):
        (tmp_path / "data.jsonl").write_text(f"{row}\n", encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-I", "judge.py", "data.jsonl"], cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 2 and "data.jsonl, line 1" in done.stderr
    (tmp_path / "data.jsonl").unlink()
    done = subprocess.run(
        [sys.executable, "-I", "judge.py", "data.jsonl"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 2 and done.stderr == "data.jsonl: No such file or directory\n"


@pytest.mark.parametrize(("to", "how"), [("promptfoo", "config: {threshold: 0.5}"), ("deepeval", "(threshold=0.5)")])
def test_a_tool_that_needs_a_threshold_is_said_to_need_one(to: str, how: str) -> None:
    (notice,) = export_judge(kept(), to).notices
    assert "no threshold" in notice and how in notice
    assert export_judge(kept(threshold=0.5), to).notices == ()
