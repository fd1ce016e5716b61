"""One output at a time: it is judged as a data set is, by many threads and loops at once, and never scored on a failure."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import pickle
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import askance
from askance.evaluation import open_judge
from askance.evaluation.kept_judge import KeptJudge, MadeBy
from askance.memory.embedders import shown_by
from askance.models import gateway
from askance.models.base import ModelError, Request
from askance.prompts.errors import AskanceError, BudgetExceededError, CoverageError, InputError
from askance.prompts.prompt import Prompt
from askance.prompts.shown_examples import RememberedCase, ShownExamples
from askance.testing import Reply, ScriptedModel, StandInServer
from tests.bridges.conftest import (
    PLAIN,
    ROWS,
    calibration,
    kept,
    quoting,
    read_beside,
    serve,
    share,
    with_logprobs,
    without_alternatives,
    words,
)
from tests.said import naming, says
from tests.thinkers import Thinker

__all__ = ["serve"]
pytestmark = pytest.mark.usefixtures("sandbox")


def chance(request: Request) -> float:
    """P(yes) by a hash of what is asked."""
    return 0.02 + 0.96 * (sum(map(ord, str(request.messages))) % 97) / 97


def judge(**settings: Any) -> KeptJudge:
    """A judge of two dimensions, whose model is a double that it is opened with."""
    questions = (
        askance.Question(id="right", text="Is it right?", dimension="facts", weight=3),
        askance.Question(id="brief", text="Is it brief?", dimension="style"),
        askance.Question(id="rude", text="Is it rude?", dimension="style", good="no"),
    )
    return KeptJudge(
        model="scripted/model",
        prompt=Prompt("Judge the output."),
        checklist=askance.Checklist(questions=questions),
        settings=settings,
    )


def threads() -> set[str]:
    return {each.name for each in threading.enumerate() if each.name.startswith("askance")}


def explaining(body: Mapping[str, Any]) -> str:
    return json.dumps({"explanation": "It says so.", "answer": "yes" if share(body) > 0.5 else "no"})


KINDS: dict[str, tuple[Callable[[Mapping[str, Any]], Any], dict[str, Any]]] = {
    "log-probabilities": (with_logprobs, {}),
    "no alternatives": (without_alternatives, {}),
    "words alone": (words, {}),
    "hard": (with_logprobs, {"settings": {"p_yes": "hard"}}),
    "scores from answers": (with_logprobs, {"settings": {"scores": "hard"}}),
    "in one call": (Thinker(0, answer=json.dumps(dict.fromkeys("1234", "yes"))), {"settings": {"mode": "batched"}}),
    "stated": (Thinker(0), {"settings": {"p_yes": "stated", "mode": "each"}}),
    "sampled": (with_logprobs, {"settings": {"repeat": 2}}),
    "thinks": (Thinker(40, logprobs=True), {"settings": {"mode": "each"}}),
    "thinks, in one call": (Thinker(40), {"settings": {"mode": "auto"}}),
    "quotes": (quoting, {"quoted": ("facts",)}),
    "sees the output alone": (with_logprobs, {"alone": ("rude",)}),
    "explains always": (explaining, {"settings": {"explain": "always"}}),
    "thresholds": (with_logprobs, {"calibration": calibration("thresholds", PLAIN)}),
    "platt": (with_logprobs, {"calibration": calibration("platt", PLAIN)}),
    "read beside others": (with_logprobs, {"calibration": read_beside(PLAIN)}),
    "threshold of a dimension": (with_logprobs, {"threshold": 0.5, "threshold_of": ("tone",)}),
    "threshold": (words, {"threshold": 0.5}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_score_of_one_output_is_that_of_evaluate(kind: str, serve: Any, tmp_path: Path) -> None:
    script, parts = KINDS[kind]
    serve(script)
    kept(**parts).save(tmp_path / "judge.yaml")
    read = askance.load_judge(tmp_path / "judge.yaml")
    found = read.evaluate(ROWS, no_cache=True)
    assert found.coverage.answered
    passed = {} if found.passing is None else found.passing.passed
    with read as asked:
        for row, score in zip(ROWS, found.scores, strict=True):
            one = asked.score(row)
            assert (one.example, one.overall, one.dimensions) == (score.example, score.overall, score.dimensions)
            assert one.passed is passed.get(row["id"])
            assert list(one.verdicts) == [each for each in found.verdicts if each.example == row["id"]]


OWN_WORDS = """
schema: askance.judge/1
model: scripted/model
prompt: "Rate the answer from 1 to 5: {output}"
settings:
  reads: score 1-5
"""
WITH_CHECKS = """
schema: askance.judge/1
model: scripted/model
prompt: Judge.
checklist:
  questions:
    - id: right
      text: Is it right?
  checks:
    - id: short
      kind: length
      value: at most 4 words
    - id: known
      kind: checker
      value: checks.py:known
"""


@pytest.mark.parametrize(
    ("text", "script"),
    [(OWN_WORDS, lambda request: f"Score: {1 + len(str(request.messages)) % 5}"), (WITH_CHECKS, chance)],
)
def test_judges_in_own_words_and_with_checks_score_as_evaluate_does(
    text: str, script: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("judge.yaml").write_text(text)
    Path("checks.py").write_text("def known(example):\n    return 1 / ('S' not in example.output) == 1\n")
    read, model = askance.load_judge("judge.yaml"), ScriptedModel(script)
    found = read.evaluate(ROWS, model=model, no_cache=True)
    with read.open(model=model) as asked:
        ones = [asked.score(row) for row in ROWS]
    assert [(each.overall, each.dimensions) for each in ones] == [
        (each.overall, each.dimensions) for each in found.scores
    ]
    assert [verdict for each in ones for verdict in each.verdicts] == list(found.verdicts)
    if "checks" in text:
        assert ones[2].overall is None and says(ones[2].missing, "The check", "division by zero")


def test_a_judge_that_is_weighed_anew_scores_as_evaluate_does(serve: Any, tmp_path: Path) -> None:
    serve(with_logprobs)
    weights = tmp_path / "weights.json"
    weights.write_text(json.dumps({"facts": 1, "rude": 5, "short": 0, "idle": 2}))
    found = kept().evaluate(ROWS, weights=str(weights))
    with kept().open(weights=str(weights)) as asked:
        assert [asked.score(row).overall for row in ROWS] == [each.overall for each in found.scores]


def test_a_judge_is_shown_the_examples_that_are_nearest_to_each_output(serve: Any) -> None:
    server = serve(with_logprobs)
    cases = tuple(
        RememberedCase(id=f"c{k}", input=text, output=text, verdicts={"truth": "accepted"}, reason="So.")
        for k, text in enumerate(("Ada wrote it.", "No hi here.", "Nobody said it."))
    )
    shown = shown_by(ShownExamples(mode="retrieved", at_once=1, embedder="words", cases=cases))
    judges = [kept(prompt=replace(PLAIN, shown=shown)) for _ in range(2)]
    found = judges[0].evaluate(ROWS, no_cache=True)
    asked = [body["messages"] for body in server.bodies]
    with judges[1] as one:
        # the same id for another text, as in a service that names no output
        scores = [one.score({**row, "id": "output"}).overall for row in ROWS]
    assert scores == [each.overall for each in found.scores]
    assert sorted(map(str, asked)) == sorted(str(body["messages"]) for body in server.bodies[len(asked) :])


def test_an_output_is_given_as_an_example_a_mapping_or_its_texts() -> None:
    texts = {"input": "Who?", "output": "Ada."}
    with judge().open(model=ScriptedModel(chance)) as asked:
        by_text = asked.score(**texts)
        by_row = asked.score(texts)
        by_example = asked.score(askance.Example(id=by_row.example, **texts))
        named = asked.score({"id": 7, **texts})
    assert by_text == by_row == by_example
    assert named.example == "7" and named.overall == by_text.overall
    assert by_text.overall == pytest.approx(
        (3 * by_text.verdicts[0].p_yes + by_text.verdicts[1].p_yes + 1 - by_text.verdicts[2].p_yes) / 5
    )


def test_a_prompt_with_columns_is_filled_from_each_output(tmp_path: Path) -> None:
    (tmp_path / "prompt.md").write_text("You judge for {{company}}.\n{{output}}\n{{question}}")
    with_columns = replace(judge(), prompt=askance.load_prompt(tmp_path / "prompt.md"))
    row, whole, single = (
        {"input": "Who?", "output": "Ada.", "company": "Acme"},
        ScriptedModel(chance),
        ScriptedModel(chance),
    )
    with_columns.evaluate([row], model=whole, no_cache=True)
    with with_columns.open(model=single) as asked:
        asked.score(row)
    assert "Acme" in str(single.requests[0].messages)
    assert {each.key for each in single.requests} == {each.key for each in whole.requests}


def test_columns_of_other_names_are_mapped_as_everywhere() -> None:
    with judge().open(model=ScriptedModel(chance), field={"input": "question", "output": "answer"}) as asked:
        assert asked.score(question="Who?", answer="Ada.").overall == asked.score(
            {"id": "x", "question": "Who?", "answer": "Ada."}
        ).overall  # fmt: skip


@pytest.mark.parametrize(
    ("given", "facts"),
    [
        ({}, ("output",)),
        ({"input": "Who?"}, ("output",)),
        ({"output": "Ada."}, ("input",)),
        ({"input": "Who?", "output": None}, ("output",)),
        ({"input": "Who?", "output": "Ada.", "human": {"overall": "unheard of"}}, ("overall",)),
    ],
)
def test_whatever_is_no_output_is_refused_and_nothing_is_bought(given: dict[str, Any], facts: tuple[str, ...]) -> None:
    model = ScriptedModel(chance)
    with judge().open(model=model) as asked, pytest.raises(InputError, match=naming(*facts)):
        asked.score(**given)
    assert not model.requests


def test_an_example_and_texts_beside_it_are_refused_and_so_is_something_else() -> None:
    with judge().open(model=ScriptedModel(chance)) as asked:
        with pytest.raises(InputError, match=naming("output")):
            asked.score({"input": "a", "output": "b"}, output="c")
        with pytest.raises(InputError, match=naming("mapping")):
            asked.score("an output")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "setting",
    [
        {"by": "topic"},
        {"pass_mark": 0.5},
        {"stop_within": 0.1},
        {"own_questions": True},
        {"limit": 3},
        {"fail_under": 1},
    ],
)
def test_a_setting_of_a_whole_data_set_is_refused(setting: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=naming(*setting)):
        judge().open(model=ScriptedModel(chance), **setting)


def test_a_call_that_fails_leaves_no_score_and_says_why_and_is_asked_again() -> None:
    fails = True

    def answer(request: Request) -> Reply:
        if fails and "Is it brief?" in str(request.messages):
            return ModelError("too long", status=400)
        return 0.9

    with judge().open(model=ScriptedModel(answer), retries=0) as asked:
        asked.score(input="a", output="an answer before")  # the endpoint is up
        found = asked.score(input="a", output="b")
        assert found.overall is None and found.passed is None and found.against == ()
        assert found.dimensions == {"facts": pytest.approx(0.9, abs=1e-3), "style": None}
        assert (found.coverage.asked, found.coverage.answered, found.coverage.api_errors) == (3, 2, 1)
        assert says(found.missing, "Is it brief?", "too long")
        with pytest.raises(CoverageError, match="too long"):
            found.require_coverage()
        row = found.to_dict()
        assert row["overall"] is None and row["pass"] is None and row["coverage"]["answered"] == 2
        assert json.loads(json.dumps(row)) == row
        fails = False
        assert asked.score(input="a", output="b").require_coverage().overall is not None


def test_an_endpoint_that_refuses_all_is_an_error_and_the_next_output_is_judged_when_it_is_back() -> None:
    down = True

    def answer(_: Request) -> Reply:
        return ModelError("wrong key", status=401, fatal=True) if down else 0.9

    with judge().open(model=ScriptedModel(answer), retries=0) as asked:
        for number in range(15):
            with pytest.raises(ModelError, match="wrong key"):
                asked.score(input="a", output=f"{number}")
        down = False
        assert asked.score(input="a", output="b").overall is not None


def test_a_cap_is_an_error() -> None:
    with judge().open(model=ScriptedModel(chance), call_budget=4) as asked:
        asked.score(input="a", output="b")
        with pytest.raises(BudgetExceededError):
            asked.score(input="a", output="c")


def test_reasons_are_bought_where_they_are_asked_for_and_stand_with_their_question() -> None:
    def answer(request: Request) -> Reply:
        return "It says Rome." if "decides" in str(request.messages) else 0.1

    model = ScriptedModel(answer)
    with judge().open(model=model) as asked:
        plain = asked.score(input="a", output="b")
        calls = len(model.requests)
        told = asked.score(input="a", output="b", explained=True)
    assert plain.against == ("Is it right?", "Is it brief?") and {each.explanation for each in plain.verdicts} == {None}
    assert told.against == ("Is it right? It says Rome.", "Is it brief? It says Rome.")
    assert [each.explanation for each in told.verdicts] == ["It says Rome.", "It says Rome.", None]
    assert calls == 3 and len(model.requests) == 5
    assert told.overall == plain.overall


def test_many_threads_and_event_loops_ask_one_judge_at_once_and_pay_once() -> None:
    model = ScriptedModel(chance, delay=0.002)

    async def some(asked: open_judge.OpenJudge) -> list[float | None]:
        return [each.overall for each in await asyncio.gather(*(asked.ascore(row(k)) for k in range(20)))]

    def row(k: int) -> dict[str, str]:
        return {"input": "a", "output": f"output {k}"}

    with judge().open(model=model) as asked, ThreadPoolExecutor(12) as pool:
        loops = [pool.submit(lambda: asyncio.run(some(asked))) for _ in range(4)]
        alone = list(pool.map(lambda k: asked.score(row(k % 20)).overall, range(80)))
        by_loop = [each.result() for each in loops]
    assert alone == alone[:20] * 4 and all(each == alone[:20] for each in by_loop)
    assert len(set(alone)) > 5
    assert len(model.requests) == len({request.key for request in model.requests}) == 60


async def test_the_callers_loop_goes_on_and_a_cancelled_call_is_not_waited_for() -> None:
    model = ScriptedModel(chance, delay=0.2)
    with judge().open(model=model) as asked:
        call = asyncio.create_task(asked.ascore(input="a", output="b"))
        beats = 0
        while not call.done():
            await asyncio.sleep(0.01)
            beats += 1
        assert beats > 5 and (await call).overall is not None
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await asked.ascore(input="a", output="c")
        assert (await asked.ascore(input="a", output="d")).overall is not None


def test_equal_outputs_are_not_paid_twice_no_file_is_made_and_the_oldest_answers_go(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    before = set(tmp_path.rglob("*"))
    monkeypatch.setattr(open_judge, "KEPT", 6)
    model = ScriptedModel(chance)
    with judge().open(model=model) as asked:
        for output, calls in (("a", 3), ("b", 6), ("a", 6), ("b", 6), ("c", 9), ("b", 9), ("a", 12)):
            asked.score(input="in", output=output)
            assert len(model.requests) == calls, output
    assert set(tmp_path.rglob("*")) == before


def test_a_judge_that_has_asked_very_often_still_pays_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway, "AHEAD", 4)
    model = ScriptedModel(chance)
    with judge().open(model=model) as asked:
        for number in (*range(5), *range(5)):
            asked.score(input="in", output=f"{number}")
    assert len(model.requests) == 15


def test_answers_are_kept_in_the_store_that_is_named_and_shared_with_evaluate(tmp_path: Path) -> None:
    with StandInServer(with_logprobs) as server:
        asks = {"api_base": server.url, "store": str(tmp_path / "answers.db")}
        found = kept().evaluate(ROWS, **asks)
        calls = len(server.bodies)
        with kept().open(**asks) as asked:
            assert [asked.score(row).overall for row in ROWS] == [each.overall for each in found.scores]
        assert len(server.bodies) == calls


def test_a_closed_judge_says_so_and_a_kept_one_opens_again(serve: Any) -> None:
    serve(with_logprobs)
    asked = kept().open()
    asked.score(ROWS[0])
    asked.close()
    asked.close()
    with pytest.raises(AskanceError, match=naming("closed")):
        asked.score(ROWS[0])
    own = kept()
    with own:
        first = own.score(ROWS[0])
    assert threads() == set()
    assert own.score(ROWS[0]) == first
    own.close()
    assert threads() == set()


def test_a_judge_that_is_let_go_closes_itself(serve: Any) -> None:
    serve(with_logprobs)
    assert kept().score(ROWS[0]).overall is not None
    gc.collect()
    until = time.monotonic() + 5
    while threads() and time.monotonic() < until:
        time.sleep(0.01)
    assert threads() == set()


def test_a_judge_may_be_let_go_on_its_own_loop(serve: Any) -> None:
    serve(with_logprobs)
    opened = kept().open()._open()

    async def let_go() -> None:  # as where the collector finds it there
        open_judge._let_go(opened)

    with suppress(AskanceError):  # what is under way is cancelled
        opened.loop.run(let_go())
    until = time.monotonic() + 5
    while threads() and time.monotonic() < until:
        time.sleep(0.01)
    assert threads() == set()


def test_a_judge_in_use_can_be_copied_pickled_and_compared(serve: Any) -> None:
    serve(with_logprobs)
    with kept() as one:
        one.score(ROWS[0])
        assert pickle.loads(pickle.dumps(one)) == one == replace(one)


def test_a_judge_in_use_says_how_it_differs_from_the_one_that_was_kept(caplog: pytest.LogCaptureFixture) -> None:
    with judge().open(model=ScriptedModel(chance, name="scripted/other")):
        assert says(caplog.text, "scripted/other", "scripted/model")


def test_where_p_yes_of_a_thinking_judge_came_from_is_kept_for_the_first_output(serve: Any) -> None:
    serve(Thinker(40, logprobs=True))
    for source in ("logprob", "stated"):
        made = MadeBy(mode="align", finish_reason="x", p_yes_from=source)
        with kept(made_by=made, settings={"p_yes": "auto"}) as asked:
            assert {each.p_yes_from for each in asked.score(ROWS[0]).verdicts} == {source}


PROGRAM = """
import os, sys, threading
from askance import load_judge
judge = load_judge("judge.yaml")
row = {"input": "Who?", "output": "Ada."}
"""


def run(code: str, folder: Path, server: StandInServer) -> str:
    kept().save(folder / "judge.yaml")
    environment = {**os.environ, "OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "none", "PYTHONWARNINGS": "default"}
    command = [sys.executable, "-c", PROGRAM + textwrap.dedent(code)]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def test_a_program_that_never_closes_its_judge_ends_at_once_without_a_warning(tmp_path: Path) -> None:
    with StandInServer(with_logprobs) as server:
        assert float(run("print(judge.score(row).overall)", tmp_path, server)) > 0
        assert "score" in run(
            """
            import asyncio
            async def main():
                print("score", (await judge.ascore(row)).overall)
            asyncio.run(main())
            """,
            tmp_path,
            server,
        )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_process_asks_over_connections_of_its_own(tmp_path: Path) -> None:
    code = """
        import warnings
        first = judge.score(row).overall
        warnings.simplefilter("ignore")  # later Pythons warn of any fork beside threads
        child = os.fork()
        if not child:
            there = [each.name for each in threading.enumerate()]
            again = judge.score({**row, "output": "Another."}).overall
            judge.close()
            print(judge.score(row).overall == first and again is not None and there == ["MainThread"], flush=True)
            sys.exit(0)
        _, status = os.waitpid(child, 0)
        print(status, judge.score(row).overall == first)
    """
    with StandInServer(with_logprobs) as server:
        assert run(code, tmp_path, server).split() == ["True", "0", "True"]


def test_scoring_takes_little_time_of_our_own() -> None:
    """Some 1 ms a call on a machine that does nothing else; the bound is for one that does."""
    times = []
    with judge().open(model=ScriptedModel(chance)) as asked:
        asked.score(input="a", output="the first")
        for number in range(100):
            since = time.perf_counter()
            asked.score(input="a" * 2000, output=f"{number}")
            times.append(time.perf_counter() - since)
    assert sorted(times)[50] < 0.005
