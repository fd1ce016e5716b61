"""An exported judge asks what askance asks and comes to the same scores, also in the tool that it is for."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

import askance
from askance.bridges.exports import ADAPTERS, TOOLS, export_judge
from askance.commands.exchange.export import command as export_command
from askance.evaluation.calibration import Calibration, QuestionCalibration
from askance.evaluation.kept_judge import KeptJudge
from askance.prompts.checklist import Checklist, Question
from askance.prompts.errors import InputError
from askance.prompts.messages import text_of
from askance.prompts.prompt import Prompt
from askance.testing import StandInServer, completion

PROMPTFOO = os.environ.get("ASKANCE_TEST_PROMPTFOO") or shutil.which("promptfoo")

QUESTIONS = (
    Question(id="facts", text="Are the facts right?", dimension="truth", weight=3.0, violation="A wrong year."),
    Question(id="rude", text="Is it rude?", dimension="tone", good="no"),
    Question(id="short", text="Is it {short}?", dimension="tone", weight=0.5, rubric="One sentence."),
    Question(id="idle", text="Is it blue?", dimension="tone", weight=0.0),
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


def calibration(method: Any, prompt: Prompt) -> Calibration:
    fit = {"threshold": 0.4} if method == "thresholds" else {"slope": 1.7, "shift": -0.3}
    fits = {each.id: QuestionCalibration(good=each.good, n=9, correlation=None, **fit) for each in QUESTIONS}
    if method == "thresholds":
        fits = {name: each.model_copy(update={"correlation": 0.5}) for name, each in fits.items()}
    return Calibration(method=method, model="openai/judge", prompt=prompt.hash, target="human", n=9, questions=fits)


def read_beside(prompt: Prompt) -> Calibration:
    """One whose questions are read beside all others, in another order than they are asked in."""
    numbers = {"idle": (0.7, 0.2, 1.9), "short": (1.3, -0.4, None), "facts": (0.9, 0.1, 0.8), "rude": (1.6, 0.3, 0.5)}
    good = {each.id: each.good for each in QUESTIONS}
    fits = {
        name: QuestionCalibration(good=good[name], n=9, slope=slope, shift=shift, lean=lean)
        for name, (slope, shift, lean) in numbers.items()
    }
    return Calibration(method="accepted", model="openai/judge", prompt=prompt.hash, target="human", n=9, questions=fits)


def kept(prompt: Prompt = PLAIN, alone: Collection[str] = (), **more: Any) -> KeptJudge:
    """A judge; it is shown the output alone where it is asked the questions that are named."""
    questions = tuple(each.model_copy(update={"sees": "output"}) if each.id in alone else each for each in QUESTIONS)
    checklist = Checklist(task="Answer.", questions=questions)
    return KeptJudge(model="openai/judge", prompt=prompt, checklist=checklist, **more)


def as_module(judge: KeptJudge, to: str = "python") -> ModuleType:
    module = ModuleType("exported")
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


def ours(judge: KeptJudge, server: StandInServer) -> tuple[askance.Evaluation, set[str]]:
    found = judge.evaluate(ROWS, api_base=server.url, no_cache=True, explain="never", resamples=100)
    bodies = {json.dumps(each, sort_keys=True) for each in server.bodies}
    server.bodies.clear()
    return found, bodies


JUDGES = {
    "plain": (kept(), with_logprobs),
    "filled": (kept(FILLED, threshold=0.5), with_logprobs),
    "says itself": (kept(SAYS), with_logprobs),
    "hard scores": (kept(settings={"scores": "hard"}), with_logprobs),
    "without log-probabilities": (kept(), words),
    "log-probabilities without alternatives": (kept(), without_alternatives),
    "thinking": (kept(), thinking),
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
    assert {json.dumps(each, sort_keys=True) for each in server.bodies} == bodies


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


@pytest.mark.parametrize("message", [{"content": "<think>"}, {"content": None, "reasoning_content": "Yes"}])
def test_the_first_word_of_the_thinking_is_no_verdict(message: Any, serve: Any) -> None:
    top = [{"token": "Yes", "logprob": -0.1}]
    logprobs = {"content": [{"token": "Yes", "logprob": -0.1, "top_logprobs": top}]}
    serve(lambda body: (200, {"choices": [{"message": message, "logprobs": logprobs}]}))
    module = as_module(kept())
    with pytest.raises(module.JudgeError, match="in what it thinks"):
        module.judge(output="x")


def test_what_a_server_refuses_by_name_is_left_out(serve: Any) -> None:
    def script(body: Mapping[str, Any]) -> Any:
        for name in ("max_tokens", "temperature"):
            if name in body:
                return 400, json.dumps({"error": {"message": f"Unsupported parameter: {name}"}})
        return with_logprobs(body)

    server = serve(script)
    assert 0 <= as_module(kept()).judge(output="x")["score"] <= 1
    assert server.bodies[-1]["max_completion_tokens"] == 1


@pytest.mark.parametrize(
    ("more", "what"),
    [({"settings": {"mode": "batched"}}, "mode batched"), ({"settings": {"explain": "always"}}, "explain always")],
)
def test_what_a_file_cannot_do_is_said(more: dict[str, Any], what: str) -> None:
    with pytest.raises(InputError, match=what):
        export_judge(kept(**more), "python")


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


# --- in the tools themselves ---------------------------------------------------------------------------------------


def test_promptfoo_s_result_says_what_the_judge_says(serve: Any) -> None:
    judge = kept(threshold=0.5)
    server = serve(with_logprobs)
    module = as_module(judge, "promptfoo")
    context = {"vars": {"question": "Who wrote it?", "context": ROWS[0]["context"]}, "config": {"input": "question"}}
    found, said = module.get_assert(ROWS[0]["output"], context), module.judge(**texts(ROWS[0]))
    assert (found["score"], found["pass"]) == (said["score"], said["passed"])
    assert (
        found["pass"]
        is not module.get_assert(
            ROWS[0]["output"],
            context | {"config": {"input": "question", "threshold": 0.0 if not said["passed"] else 1.0}},
        )["pass"]
    )
    with pytest.raises(module.JudgeError, match="no output"):
        module.get_assert(None, context)
    bought = len(server.bodies)
    with pytest.raises(RuntimeError, match="no threshold"):
        as_module(kept(), "promptfoo").get_assert("x", {"prompt": "Say x.", "vars": {}})
    assert len(server.bodies) == bought, "verdicts are bought that nothing can be said from"


def test_a_threshold_in_promptfoo_s_config_is_reached_by_a_score_that_is_below_by_rounding_alone(serve: Any) -> None:
    weights = {"a": 0.1, "b": 0.7, "c": 0.2}
    asked = tuple(Question(id=name, text=f"{name}?", weight=weight) for name, weight in weights.items())
    judge = KeptJudge(model="openai/judge", prompt=PLAIN, checklist=Checklist(task="t", questions=asked))
    serve(lambda body: float("c?" not in str(body["messages"])))
    found = as_module(judge, "promptfoo").get_assert("x", {"vars": {"input": "i"}, "config": {"threshold": 0.8}})
    assert found["score"] < 0.8 and found["pass"]


@pytest.mark.parametrize("to", ["promptfoo", "deepeval", "mlflow"])
def test_values_that_are_no_texts_are_shown_as_askance_reads_them_in_traces(to: str, serve: Any) -> None:
    server = serve(with_logprobs)
    module = ModuleType("exported")
    without_the_tool = export_judge(kept(FILLED, threshold=0.5), to).text.partition(ADAPTERS[to])[0]
    exec(compile(without_the_tool, f"{to}.py", "exec"), module.__dict__)
    asked = {"mail": "Wo ist Paket 7, Größe 3?"}
    talk = [{"role": "user", "content": "Und?"}, {"role": "assistant", "content": "Hier."}]
    values: dict[str, Any] = {
        "input": asked,
        "output": {"stars": 3, "note": "schön"},
        "context": talk,
        "reference": 0.5,
    }
    module.judge_of_values(**values)
    said = server.bodies[-1]["messages"][-1]["content"]
    shown = {name: text_of(value) for name, value in values.items() if name in ("input", "output", "context")}
    assert all(f">\n{each}\n</" in said for each in shown.values())
    assert shown["input"] == asked["mail"]
    for nothing in (None, {}, []):
        with pytest.raises(module.JudgeError, match="no output"):
            module.judge_of_values(**values | {"output": nothing})


@pytest.mark.skipif(
    PROMPTFOO is None, reason="promptfoo is not installed: make test-promptfoo, or ASKANCE_TEST_PROMPTFOO=PATH"
)
def test_promptfoo_itself_gives_the_judge_s_scores(serve: Any, tmp_path: Path) -> None:
    assert PROMPTFOO is not None
    server = serve(lambda body: "I would rather not say." if "Nobody." in str(body) else with_logprobs(body))
    judge = kept(FILLED, threshold=0.3)
    (tmp_path / "promptfoo_judge.py").write_text(export_judge(judge, "promptfoo").text, encoding="utf-8")
    check = {"type": "python", "value": "file://promptfoo_judge.py"}
    tests = [{"vars": {"answer": row["output"], **texts(row)}, "assert": [check]} for row in ROWS]
    named = check | {"config": {"input": "question", "threshold": 1.0}}
    first = {"answer": ROWS[0]["output"], "question": ROWS[0]["input"], "context": ROWS[0]["context"]}
    tests += [{"vars": first, "assert": [named]}, {"vars": {"answer": "Nobody.", "input": "Who?"}, "assert": [check]}]
    config = {"prompts": ["{{answer}}"], "providers": ["echo"], "tests": tests}
    (tmp_path / "promptfooconfig.json").write_text(json.dumps(config), encoding="utf-8")
    names = ("PROMPTFOO_DISABLE_TELEMETRY", "PROMPTFOO_DISABLE_UPDATE", "PROMPTFOO_DISABLE_REMOTE_GENERATION")
    kept_apart = {"PROMPTFOO_CONFIG_DIR": str(tmp_path / "home"), "PROMPTFOO_PYTHON": sys.executable}
    command = [PROMPTFOO, "eval", "-c", "promptfooconfig.json", "--no-cache", "-o", "out.json"]
    environment = os.environ | dict.fromkeys(names, "1") | kept_apart
    subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, timeout=300)
    results = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))["results"]["results"]
    assert len(results) == len(tests)
    *judged, strict, silent = sorted(results, key=lambda each: each["testIdx"])
    here, _ = ours(judge, server)
    assert [each["score"] for each in judged] == pytest.approx([each.overall for each in here.scores])
    assert [each["success"] for each in judged] == [(each.overall or 0) >= 0.3 for each in here.scores]
    for each, score in zip(judged, here.scores, strict=True):
        assert each["namedScores"] == pytest.approx(dict(score.dimensions))
        _, *parts = each["gradingResult"]["componentResults"]
        assert [one["reason"] for one in parts] == [question.text for question in QUESTIONS], (
            "each question is shown with its answer"
        )
    assert strict["score"] == pytest.approx(here.scores[0].overall) and not strict["success"], "its config counts"
    assert not silent["success"] and "neither yes nor no" in silent["error"], "a verdict that is missing is said"


def test_inspect_scores_as_the_judge_does(serve: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inspect_ai = pytest.importorskip("inspect_ai")
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ModelOutput, get_model
    from inspect_ai.solver import solver

    monkeypatch.setenv("INSPECT_TRACE_FILE", str(tmp_path / "trace.log"))
    serve(with_logprobs)
    module = as_module(kept(), "inspect")
    outputs = {row["id"]: row["output"] for row in ROWS}

    @solver
    def write() -> Any:
        """Writes the outputs without a model: the mock model counts tokens with a file from the network."""

        async def solve(state: Any, generate: Any) -> Any:
            state.output = ModelOutput.from_content("mockllm/model", outputs[str(state.sample_id)])
            return state

        return solve

    samples = [Sample(id=row["id"], input=row["input"], metadata={"page": row.get("context", "")}) for row in ROWS]
    task = inspect_ai.Task(dataset=samples, solver=write(), scorer=module.askance_judge(context="page"))
    model = get_model("mockllm/model")
    (log,) = inspect_ai.eval(task, model=model, display="none", log_dir=str(tmp_path / "logs"), max_samples=1)
    assert log.status == "success", log.error
    for sample, row in zip(log.samples, ROWS, strict=True):
        assert sample.scores["askance_judge"].value == pytest.approx(module.judge(**texts(row))["score"])
    with pytest.raises(module.JudgeError, match="no output"):
        asyncio.run(module.askance_judge()(SimpleNamespace(output=ModelOutput()), None))


def test_deepeval_measures_as_the_judge_does(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEEPEVAL_TELEMETRY_OPT_OUT", "YES")
    pytest.importorskip("deepeval")
    from deepeval import evaluate
    from deepeval.test_case import LLMTestCase

    serve(with_logprobs)
    module = as_module(kept(threshold=0.6, threshold_of=("tone",)), "deepeval")
    cases = [
        LLMTestCase(
            input=row["input"], actual_output=row["output"], context=[row["context"]] if "context" in row else None
        )
        for row in ROWS
    ]
    found = evaluate(cases, [module.AskanceJudge()])
    for result, row in zip(sorted(found.test_results, key=lambda each: each.index), ROWS, strict=True):
        said = module.judge(**texts(row))
        assert result.metrics_data[0].score == pytest.approx(said["score"])
        assert result.success is said["passed"]
    assert not all(each.success for each in found.test_results if each.metrics_data[0].score >= 0.6), (
        "one dimension decides"
    )
    with pytest.raises(module.JudgeError, match="no output"):
        module.AskanceJudge().measure(LLMTestCase(input="x", actual_output=None))
    with pytest.raises(RuntimeError, match="no threshold"):
        as_module(kept(), "deepeval").AskanceJudge()


def test_mlflow_scores_as_the_judge_does(serve: Any, tmp_path: Path) -> None:
    pytest.importorskip("mlflow.genai", exc_type=ImportError)
    serve(with_logprobs)
    module = as_module(kept(threshold=0.5), "mlflow")
    found = module.askance_judge(inputs=texts(ROWS[0]), outputs=ROWS[0]["output"])
    said = module.judge(**texts(ROWS[0]))
    with pytest.raises(module.JudgeError, match="no output"):
        module.askance_judge(inputs="x", outputs=None)
    assert {each.name: each.value for each in found} == {
        "askance": said["score"],
        "askance/passed": said["passed"],
        **{f"askance/{name}": each for name, each in said["dimensions"].items()},
    }
