"""Other tools beside ours: what they ask is counted at the server, what they leave out is no score, and stopped runs go
on."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from askance.evaluation.compare.run_difference import side_of_run
from askance.memory.run_directory import RunDirectory
from askance.prompts.errors import AskanceError, InputError
from askance.testing import StandInServer, completion
from tests.measured.peers import runs as peer_runs
from tests.measured.peers.beside import INSTRUCTIONS, PEERS, Task, settings_of, task_file, task_of
from tests.measured.peers.counting_server import MOST_TOKENS, CountingServer, busy_seconds
from tests.measured.peers.runs import (
    HERE,
    against_ours,
    difference,
    environment,
    figures,
    our_row,
    peer_row,
    peer_run,
)

from ..said import naming

SCRIPT = """
import json, sys, urllib.request
task = json.loads(open(sys.argv[1]).read())
def post(path, body=None):
    data = json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(task["server"] + path, data)) as answer:
        return json.load(answer)
def ask(text, **more):
    return post("/v1/chat/completions", {"messages": [{"role": "user", "content": text}], **more})
post("/phase/learn")
ask("write", temperature=0.7, max_tokens=9)
post("/v1/embeddings", {"input": ["one text", "another text"]})
post("/phase/test")
scores = {each["id"]: float(ask(each["output"])["choices"][0]["message"]["content"] == "good") for each in task["test"]}
if task["settings"].get("fails"):
    raise SystemExit("no more")
open(sys.argv[2], "w").write(json.dumps({"packages": {}, "scores": scores, "missing": {}, "learned": "all"}))
"""


@pytest.fixture(scope="module")
def task() -> Task:
    return task_of(0)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "fake_peer.py"
    path.write_text(SCRIPT)
    return path


def judge(body: Mapping[str, Any]) -> str:
    return "good" if "iPhone" in body["messages"][-1]["content"] else "bad"


def given(task: Task, method: str = "fake", **settings: Any) -> dict[str, Any]:
    return task_file(task, method, "mlflow", "judge", settings)


def test_a_peer_learns_from_development_and_validation_and_judges_the_test(task: Task) -> None:
    asked = given(task)
    learn, test = ({each["id"] for each in asked[part]} for part in ("learn", "test"))
    assert len(learn) == 90 and len(test) == 60 and not learn & test
    assert all(set(each) == {"id", "input", "output"} for each in asked["test"]), (
        "no label, no comment, no fault by name"
    )
    comments = [each["comment"] for each in asked["learn"] if each["comment"]]
    assert len(comments) == 30 and {each["passed"] for each in asked["learn"]} == {True, False}
    assert "faults" not in json.dumps(asked)


def run(script: Path, server: StandInServer, folder: Path, task: dict[str, Any]) -> dict[str, Any]:
    return peer_run(Path(sys.executable), script, server.url, folder, task, embeddings="words")


def test_calls_are_counted_at_the_server_by_what_they_are_for(task: Task, script: Path, tmp_path: Path) -> None:
    with StandInServer(judge) as server:
        found = run(script, server, tmp_path / "run", given(task))
    learn, test = found["counts"]["learn"], found["counts"]["test"]
    assert (learn["calls"], learn["embeddings"], test["calls"], test["embeddings"]) == (1, 2, 60, 0)
    assert len(server.bodies) == 61 and test["failed"] == 0
    prompts = sum(len(each["messages"][0]["content"]) // 4 for each in server.bodies[1:])
    assert test["tokens"] == prompts + test["answer_tokens"] and test["answer_tokens"] == 60
    assert found["scores"] == {each.id: float("iPhone" in str(each.output)) for each in task.test}


def test_what_a_request_leaves_open_is_settled_and_what_it_says_is_kept(
    task: Task, script: Path, tmp_path: Path
) -> None:
    with StandInServer(judge) as server:
        run(script, server, tmp_path / "run", given(task))
    learn, *tests = server.bodies
    assert (learn["temperature"], learn["max_tokens"]) == (0.7, 9)
    assert {(each["temperature"], each["max_tokens"]) for each in tests} == {(0, MOST_TOKENS)}


def test_a_run_that_failed_goes_on_from_its_calls_and_a_finished_one_is_read(
    task: Task, script: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    with StandInServer(judge) as server:
        script.write_text(SCRIPT.replace('task["settings"].get("fails")', "True"))
        with pytest.raises(AskanceError, match=r"fake_peer.py ended with code 1.*log\.txt"):
            run(script, server, folder, given(task))
        assert "no more" in (folder / "log.txt").read_text() and len(server.bodies) == 61
        script.write_text(SCRIPT)
        (folder / "dspy").mkdir()
        found = run(script, server, folder, given(task))
        assert len(server.bodies) == 61, "nothing is asked twice"
        assert not (folder / "dspy").exists(), "what DSPy answers from its own store is not counted"
        assert found["counts"]["test"]["calls"] == 60, "and everything is counted"
        script.write_text("raise SystemExit('not called')")
        assert run(script, server, folder, given(task)) == found
        with pytest.raises(InputError, match=naming("other data", "settings")):
            run(script, server, folder, given(task, more=1))


def test_a_refusal_is_passed_on_and_counted_and_asked_again(task: Task, tmp_path: Path) -> None:
    answers = iter([(500, {"error": {"message": "overloaded"}}), "good"])

    async def ask(upstream: str) -> tuple[list[int], dict[str, Any]]:
        from aiohttp import ClientSession

        async with CountingServer(upstream, tmp_path / "calls.jsonl") as server, ClientSession() as session:
            seen = []
            for _ in range(2):
                body = {"messages": [{"role": "user", "content": "?"}]}
                async with session.post(f"{server.url}/v1/chat/completions", json=body) as answer:
                    seen.append(answer.status)
            return seen, server.counted("learn")

    with StandInServer(lambda _: next(answers)) as server:
        statuses, counted = asyncio.run(ask(server.url))
    assert statuses == [500, 200] and (counted["calls"], counted["failed"]) == (2, 1)


def test_a_damaged_log_of_calls_is_named_with_its_line(tmp_path: Path) -> None:
    log = tmp_path / "calls.jsonl"
    log.write_text('{"phase": "test", "key": "a", "status": 200}\n{"phase"\n')
    with pytest.raises(InputError, match=r"calls\.jsonl, line 2"):
        CountingServer("http://127.0.0.1:1/v1", log)


def test_seconds_are_those_in_which_the_server_was_busy() -> None:
    assert busy_seconds([(5.0, 6.0), (0.0, 2.0), (1.0, 3.0), (1.5, 1.6)]) == pytest.approx(4.0)
    assert busy_seconds([]) == 0


LABELS = {f"n{each}": float(each % 2) for each in range(20)}
RIGHT: dict[str, float | None] = dict(LABELS)
ALIKE: dict[str, float | None] = dict.fromkeys(LABELS, 1.0)


def test_a_missing_verdict_is_no_score() -> None:
    some = RIGHT | {"n0": None, "n2": None}
    assert figures(some, LABELS)["n"] == 18 and difference(ALIKE, some, LABELS)["auc"]["n"] == 18


def test_a_judge_that_says_the_same_of_all_ranks_nothing() -> None:
    found = figures(ALIKE, LABELS)
    assert found["spearman"]["value"] is None and "reason" in found["spearman"] and found["auc"]["value"] == 0.5
    gain = difference(ALIKE, RIGHT, LABELS)
    assert gain["spearman"]["value"] == pytest.approx(1.0) and gain["auc"]["value"] == pytest.approx(0.5)
    assert gain["spearman"]["p_value"] < 0.01


def test_a_row_says_what_was_learned_and_what_it_cost_and_how_far_ours_is_ahead() -> None:
    start = {"scores": ALIKE, "counts": {"test": {"calls": 20}}}
    found = {
        "packages": {"mlflow": "3"},
        "scores": ALIKE,
        "missing": {},
        "counts": {"learn": {"calls": 7}},
        "learned": "Be strict.",
    }
    row = peer_row({"peer": "gepa", "settings": {"max_metric_calls": 9}}, start, found, LABELS)
    assert row["settings"] == {"max_metric_calls": 9} and row["learned"] == "Be strict."
    assert row["counts"] == {"learn": {"calls": 7}, "start": {"calls": 20}} and row["gain"]["auc"]["value"] == 0
    ours = {"scores": {name: 0.4 + label / 2 for name, label in LABELS.items()}, "as_pass_or_fail": {"threshold": 0.95}}
    ahead = against_ours(row, ours, LABELS)
    assert ahead["scores"]["auc"]["value"] == pytest.approx(0.5) and ahead["pass_or_fail"]["auc"]["value"] == 0


def test_a_run_on_other_data_is_not_held_against_the_peers(task: Task) -> None:
    released = Path(__file__).parents[1] / "data" / "released_run"
    with pytest.raises(InputError, match=naming("released_run", "test examples", "labels")):
        our_row(released, task.labels)


def test_our_row_is_what_the_run_says_of_itself(tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(Path(__file__).parents[1] / "data" / "released_run", run)
    side = side_of_run(RunDirectory(run), accepted=True)
    labels = {name: float(place % 2) for place, name in enumerate(side.scores)}
    lines = [json.loads(line) for line in (run / "verdicts" / "scores.jsonl").read_text().splitlines()]
    (run / "verdicts" / "scores.jsonl").write_text(
        "".join(json.dumps(each | {"wanted": labels[each["example"]]}) + "\n" for each in lines)
    )
    row, result = our_row(run, labels), RunDirectory(run).read_result()
    assert row["scores"] == side.scores and row["model"] == side.model
    assert row["counts"]["run"] == {"calls": result.calls, "tokens": result.tokens}
    assert row["test"] == figures(side.scores, labels)


@pytest.mark.parametrize("text", ["gepa.calls", "gepa=1", "grpo.calls=1", "gepa.calls=many"])
def test_a_setting_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"PEER\.NAME=VALUE"):
        settings_of([text])


def test_every_peer_has_an_environment_a_script_and_a_start() -> None:
    for peer in PEERS.values():
        assert (HERE / f"{peer.environment}_peer.py").is_file()
        assert peer.environment in peer_runs.PACKAGES and peer.environment in INSTRUCTIONS


def test_settings_are_given_by_peer() -> None:
    assert settings_of(["gepa.max_metric_calls=9", 'simba.simba_kwargs={"max_steps": 1}']) == {
        "gepa": {"max_metric_calls": 9},
        "simba": {"simba_kwargs": {"max_steps": 1}},
    }


def test_an_environment_that_cannot_be_made_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(peer_runs.PACKAGES, "mlflow", ("./there-is-no-such-folder",))
    with pytest.raises(AskanceError, match=naming("could not", "there-is-no-such-folder")):
        environment(tmp_path, "mlflow")


def peer_reply(body: Mapping[str, Any]) -> tuple[int, Any]:
    """An answer as a whole server gives it, with what MLflow reads besides the text."""
    return 200, {**completion(body, peer_text(body)), "id": "one", "created": 0, "model": "judge"}


def peer_text(body: Mapping[str, Any]) -> str:
    """A model that gives MLflow, GEPA and AutoChecklist the forms that they ask for."""
    text = "".join(str(each["content"]) for each in body["messages"])
    name = body.get("response_format", {}).get("json_schema", {}).get("name", "")
    if "guidelines" in name.lower():
        return json.dumps({"guidelines": [{"guideline_text": "It must say where.", "source_trace_ids": [0]}]})
    if name == "generated_questions":
        said = [
            {"question": f"Does it say {what}?", "source_feedback_indices": [0]} for what in ("where", "what to do")
        ]
        return json.dumps({"questions": said})
    if name == "tag_result":
        return json.dumps({"reasoning": "", "generally_applicable": True, "section_specific": "say where" in text})
    if name == "batch_scoring":
        return json.dumps({"answers": [{"question_index": 1, "answer": "YES" if "iPhone" in text else "NO"}]})
    return json.dumps({"result": "iPhone" in text.rpartition("outputs")[2], "rationale": "It says where, or not."})


@pytest.mark.skipif(find_spec("autochecklist") is None, reason="needs the package autochecklist")
def test_autochecklist_learns_its_questions_from_the_comments(task: Task, tmp_path: Path) -> None:
    asked = task_file(task, "autochecklist", "autochecklist", "judge", {})
    with StandInServer(peer_reply) as server:
        found = run(HERE / "autochecklist_peer.py", server, tmp_path / "run", asked)
    assert found["learned"] == ["Does it say where?"] and found["missing"] == {}
    assert (
        found["steps"]["comments"] == 30 and found["steps"]["written"] == 2 and found["counts"]["test"]["calls"] == 60
    )
    assert found["scores"] == {each.id: float("iPhone" in str(each.output) + each.input) for each in task.test}


@pytest.mark.slow
@pytest.mark.skipif(
    find_spec("mlflow") is None or find_spec("dspy") is None, reason="needs MLflow and DSPy: make test-bridges"
)
def test_memalign_learns_guidelines_and_shows_cases(task: Task, tmp_path: Path) -> None:
    with StandInServer(peer_reply) as server:
        found = run(HERE / "mlflow_peer.py", server, tmp_path / "run", given(task, "memalign"))
    assert "It must say where." in found["learned"] and INSTRUCTIONS["mlflow"] in found["learned"]
    assert found["missing"] == {} and found["counts"]["test"]["calls"] == 60 and found["counts"]["learn"]["calls"] == 2
    assert "Example Judgements (5)" in json.dumps(server.bodies[-1])
    assert set(found["scores"].values()) == {0.0, 1.0}
