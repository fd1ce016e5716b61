"""``askance select`` with a server that answers from a script."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from askance.prompts.checklist import load_checklist
from askance.testing import StandInServer, completion

from ..said import says

pytestmark = pytest.mark.usefixtures("sandbox")
ODD, HALF, THIRD = "Is the number odd?", "Is it in the upper half?", "Is it divisible by three?"
TEXTS = (ODD, HALF, THIRD, "Is it a number?")


def truth(text: str, example: int) -> bool:
    return {ODD: example % 2 == 1, HALF: example >= 30, THIRD: example % 3 == 0}.get(text, True)


def rating(example: int) -> int:
    return 1 + truth(ODD, example) + 2 * truth(HALF, example)


def script(body: Mapping[str, Any]) -> Any:
    text = body["messages"][-1]["content"]
    if "response_format" in body:
        drafts = [{"text": each, "violation": "It is not.", "dimension": "number"} for each in TEXTS]
        return json.dumps({"questions": drafts})
    example = int(re.findall(r"number (\d+)", text)[0])
    if "on the whole" in text:
        said = str(rating(example))
        reply: Any = completion(body, said)
        top = [{"token": said, "logprob": math.log(0.9)}, {"token": "3", "logprob": math.log(0.05)}]
        if said == "3":
            top = [{"token": said, "logprob": math.log(0.95)}]
        reply["choices"][0]["logprobs"] = {
            "content": [{"token": said, "logprob": top[0]["logprob"], "top_logprobs": top}]
        }
        return 200, reply
    question = next(each for each in TEXTS if each in text)
    return 0.9 if truth(question, example) else 0.1


@pytest.fixture
def server() -> Iterator[StandInServer]:
    with StandInServer(script) as one:
        yield one


@pytest.fixture
def arguments(sandbox: Path, server: StandInServer) -> list[str]:
    rows = [{"id": f"e{n}", "input": "Name one.", "output": f"number {n}"} for n in range(60)]
    (sandbox / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    questions = [{"id": f"q{n}", "text": text, "dimension": "number"} for n, text in enumerate(TEXTS)]
    (sandbox / "candidates.yaml").write_text(yaml.safe_dump({"task": "Name a number.", "questions": questions}))
    return [
        "select",
        "data.jsonl",
        "--model",
        "openai/judge",
        "--api-base",
        server.url,
        "--halves",
        "2",
        "--ranking-resamples",
        "2",
    ]


def test_a_checklist_and_its_numbers_are_written(cli: Any, arguments: list[str]) -> None:
    done = cli(*arguments, "--candidates", "candidates.yaml", "-k", "2", "-o", "out/checklist.yaml")
    assert done.code == 0, done.err
    checklist = load_checklist("out/checklist.yaml")
    assert checklist.task == "Name a number."
    assert {question.text for question in checklist.questions} == {ODD, HALF}
    report = json.loads(Path("out/selection.json").read_text())
    assert report["kept"] == [question.id for question in checklist.questions]
    assert report["ratings"]["from"].split(", ") == ["the judge", "1 to 5", "from logprob"]
    assert report["calls"] == 60 * 5
    assert "2 questions keep" in done.out
    assert "of the cost." in done.out
    assert "kept" in done.out
    assert "out/selection.json" in done.err


def test_json_is_the_report_and_quiet_is_quiet(cli: Any, arguments: list[str]) -> None:
    done = cli(*arguments, "--candidates", "candidates.yaml", "-k", "2", "-o", "c.yaml", "--json", "--quiet")
    assert json.loads(done.out) == json.loads(Path("selection.json").read_text())
    assert done.err == ""


def test_candidates_are_proposed_where_none_are_brought(cli: Any, arguments: list[str], server: StandInServer) -> None:
    extra = ["--writer", "openai/writer", "--embedder", "words", "--dimension", "number", "-k", "2", "-o", "c.yaml"]
    done = cli(*arguments, *extra)
    assert done.code == 0, done.err
    report = json.loads(Path("selection.json").read_text())
    assert [each["new"] for each in report["pool"]["growth"]] == [4, 0, 0]
    assert report["models"] == {"judge": "openai/judge", "writer": "openai/writer"}
    assert {body["model"] for body in server.bodies} == {"judge", "writer"}
    assert {question.dimension for question in load_checklist("c.yaml").questions} == {"number"}


def test_a_writer_that_has_nothing_to_write_is_refused_with_and_without_a_dry_run(
    cli: Any, arguments: list[str], server: StandInServer
) -> None:
    given = [*arguments, "--candidates", "candidates.yaml", "--writer", "openai/w", "-k", "2", "-o", "c.yaml"]
    for done in (cli(*given), cli(*given, "--dry-run")):
        assert (done.code, done.out) == (2, "")
        assert says(done.err, "writer", "no question", "candidates")
    assert server.bodies == []


@pytest.mark.parametrize(
    "more", [["--candidates", "candidates.yaml"], [], ["--rated-by", "judge", "--max-rounds", "1"]]
)
def test_a_dry_run_says_what_it_costs_where_the_price_is_known(
    cli: Any, arguments: list[str], monkeypatch: pytest.MonkeyPatch, more: list[str]
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    done = cli("select", "data.jsonl", "--model", "openai/gpt-4o-mini", "-k", "2", *more, "--dry-run", "--json")
    found = json.loads(done.out)
    assert found["tokens"] * 0.15e-6 <= found["cost_usd"] <= found["tokens"] * 0.6e-6


def test_a_dry_run_buys_nothing_and_is_exact(cli: Any, arguments: list[str], server: StandInServer) -> None:
    given = [*arguments, "--candidates", "candidates.yaml", "-k", "2"]
    done = cli(*given, "--dry-run", "--json")
    assert json.loads(done.out)["calls"] == 60 * 5
    assert "Nothing was bought." in cli(*given, "--dry-run").out
    assert says(cli(*arguments, "--dry-run", "-k", "2").err, "the most")
    assert server.bodies == []
    cli(*given, "-o", "c.yaml")
    assert len(server.bodies) == 60 * 5
    cli(*given, "-o", "c.yaml")
    assert len(server.bodies) == 60 * 5, "paid once"


def test_a_cap_is_3_and_the_same_command_goes_on(cli: Any, arguments: list[str], server: StandInServer) -> None:
    given = [*arguments, "--candidates", "candidates.yaml", "-k", "2", "-o", "c.yaml"]
    assert cli(*given, "--call-budget", "50").code == 3
    assert len(server.bodies) == 50
    assert not Path("c.yaml").exists()
    assert cli(*given).code == 0
    assert len(server.bodies) == 60 * 5


def test_a_config_file_sets_it_with_paths_relative_to_itself(
    cli: Any, arguments: list[str], sandbox: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = {
        "data": "data.jsonl",
        "candidates": "candidates.yaml",
        "model": "openai/judge",
        "k": 2,
        "output": "c.yaml",
    }
    config |= {"api-base": arguments[5], "halves": 2, "ranking_resamples": 2, "scores": "hard"}
    (sandbox / "c.cfg.yaml").write_text(yaml.safe_dump(config))
    (sandbox / "elsewhere").mkdir()
    monkeypatch.chdir(sandbox / "elsewhere")
    done = cli("select", "--config", "../c.cfg.yaml", "--quiet")
    assert (done.code, done.err) == (0, "")
    assert len(load_checklist(sandbox / "c.yaml").questions) == 2


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["select"], "DATA is needed"),
        (["select", "d.jsonl"], "--model is needed"),
        (
            ["select", "data.jsonl", "--model", "openai/x", "--candidates", "candidates.yaml", "-o", "c"],
            "only 4 candidates",
        ),
        (["select", "data.jsonl", "--model", "openai/x", "-k", "2"], "--output is needed"),
        (["select", "nowhere.jsonl", "--model", "openai/x", "-o", "c.yaml"], "nowhere.jsonl"),
        (["select", "data.jsonl", "--model", "openai/x", "-o", "c", "--task", "nowhere.md"], "nowhere.md"),
        (["select", "data.jsonl", "--model", "openai/x", "--choice", "magic"], "'magic' is not one of"),
    ],
)
def test_wrong_usage_is_a_sentence_and_2(cli: Any, arguments: list[str], given: list[str], message: str) -> None:
    done = cli(*given)
    assert (done.code, done.out) == (2, "")
    assert message in " ".join(done.err.split())


def test_too_few_answers_are_4_and_the_result_is_written(cli: Any, arguments: list[str], sandbox: Path) -> None:
    def holes(body: Mapping[str, Any]) -> Any:
        text = body["messages"][-1]["content"]
        return (400, {"error": {"message": "too long"}}) if THIRD in text and "number 4" in text else script(body)

    with StandInServer(holes) as other:
        arguments[5] = other.url
        done = cli(*arguments, "--candidates", "candidates.yaml", "-k", "2", "-o", "c.yaml", "--min-coverage", "0.99")
    assert done.code == 4
    assert "too long" in done.err
    assert load_checklist("c.yaml")
    assert json.loads(Path("selection.json").read_text())["coverage"]["api_errors"] == 11


def test_verdicts_that_are_there_buy_nothing_and_every_k_is_held_against_the_whole(
    cli: Any, arguments: list[str], server: StandInServer
) -> None:
    rows = [json.loads(line) for line in Path("data.jsonl").read_text().splitlines()]
    for number, row in enumerate(rows):
        row["human"] = {"overall": rating(number)}
    Path("data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    judged = cli("evaluate", *arguments[1:6], "--checklist", "candidates.yaml", "-o", "verdicts.jsonl", "--limit", "50")
    assert judged.code == 0, judged.err
    bought = len(server.bodies)
    given = ["select", "data.jsonl", "--candidates", "candidates.yaml", "--verdicts", "verdicts.jsonl", "--halves", "2"]
    given += ["--ranking-resamples", "2", "-k", "2", "-o", "c.yaml"]
    dry = cli(*given, "--dry-run")
    assert says(dry.out, "0 verdicts", "0 API calls", "0 answers", "no tokens", "Nothing")
    assert not Path("c.yaml").exists() and not Path("selection.json").exists()
    done = cli(*given)
    assert done.code == 0, done.err
    assert len(server.bodies) == bought
    assert {question.text for question in load_checklist("c.yaml").questions} == {ODD, HALF}
    report = json.loads(Path("selection.json").read_text())
    assert (report["sample"]["examples"], report["calls"], report["models"]) == (50, 0, {"judge": "openai/judge"})
    curve = report["curves"]["joint"]
    assert [each["k"] for each in curve] == [1, 2, 3, 4]
    assert curve[1]["spearman"] > curve[3]["spearman"], "two questions tell all, the others are noise"
    assert curve[1]["less_all"]["value"] == pytest.approx(curve[1]["spearman"] - curve[3]["spearman"])
    assert curve[1]["less_all"]["low"] > 0
    assert curve[3]["less_all"]["value"] == 0
    assert curve[3]["cost_share"] == 1
    assert says(done.out, "exceeds", "all 4")
    assert "calls" in done.out and "2 questions keep" in done.out
    assert json.loads(cli(*given, "--json").out)["kept"] == report["kept"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--verdicts", "v.jsonl"], "name the checklist that they answer (--candidates)"),
        (["--verdicts", "v.jsonl", "--candidates", "candidates.yaml"], "the overall ratings have to be people's"),
        (["--verdicts", "v.jsonl", "--candidates", "candidates.yaml", "--answer-levels", "3"], "yes/no answers"),
        (["--verdicts", "v.jsonl", "--candidates", "candidates.yaml", "--rated-by", "judge"], "yes/no answers"),
        (["--verdicts", "v.jsonl", "--candidates", "candidates.yaml", "--model", "openai/y"], "by the model openai/y"),
        (["--verdicts", "v.jsonl", "--candidates", "candidates.yaml", "--sample", "20"], "sample: all examples"),
        (["--verdicts", "v.jsonl", "--candidates", "candidates.yaml", "--writer", "openai/w"], "writer: no question"),
    ],
)
def test_verdicts_that_do_not_do_are_a_sentence_and_2(
    cli: Any, arguments: list[str], given: list[str], message: str
) -> None:
    row = {"example": "e1", "question": "q0", "model": "openai/x", "prompt": "p", "answer": True, "status": "ok"}
    Path("v.jsonl").write_text("".join(json.dumps(row | {"example": f"e{n}"}) + "\n" for n in range(6)))
    done = cli("select", "data.jsonl", "-k", "2", "-o", "c.yaml", *given)
    assert (done.code, done.out) == (2, "")
    assert message in " ".join(done.err.split())
