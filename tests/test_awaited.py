"""Functions that are awaited: the caller's event loop goes on, and whatever ends the call comes through."""

from __future__ import annotations

import asyncio
import inspect
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest

import askance
from askance.models.base import Request
from askance.models.event_loops import awaited
from askance.prompts.errors import InputError
from askance.testing import ScriptedModel
from tests.said import says

pytestmark = pytest.mark.usefixtures("sandbox")

QUESTIONS = askance.Checklist(questions=tuple(askance.Question(id=f"q{k}", text=f"Is it {k}?") for k in range(5)))
WHO: ContextVar[str] = ContextVar("who", default="nobody")


def rows(n: int) -> list[dict[str, Any]]:
    return [{"id": f"e{k}", "input": f"in {k}", "output": f"out {k}", "human": {"overall": k % 7}} for k in range(n)]


@contextmanager
def heartbeat(every: float = 0.01) -> Iterator[list[float]]:
    """The seconds from one beat of the running loop to the next."""
    gaps: list[float] = []

    async def beat() -> None:
        last = time.perf_counter()
        while True:
            await asyncio.sleep(every)
            now = time.perf_counter()
            gaps.append(now - last)
            last = now

    task = asyncio.get_running_loop().create_task(beat())
    try:
        yield gaps
    finally:
        task.cancel()


async def test_the_callers_loop_goes_on_while_500_examples_are_judged_and_measured() -> None:
    from askance import aevaluate

    model = ScriptedModel(lambda request: 0.9 if "out 1" in request.messages[-1][1] else 0.2)
    with heartbeat() as gaps:
        found = await aevaluate(rows(500), checklist=QUESTIONS, model=model)
    assert found.coverage.answered == 2500 and found.agreement
    assert len(gaps) > 5
    assert sorted(gaps)[-1] < 0.25  # some 20 ms on a machine that does nothing else
    assert sorted(gaps)[len(gaps) // 2] < 0.05


@pytest.mark.parametrize("name", [each for each in askance.__all__ if f"a{each}" in askance.__all__])
def test_each_function_that_asks_models_has_its_awaited_form_with_the_same_arguments(name: str) -> None:
    plain, other = getattr(askance, name), getattr(askance, f"a{name}")
    assert inspect.iscoroutinefunction(other) and not inspect.iscoroutinefunction(plain)
    assert inspect.signature(other) == inspect.signature(plain)
    assert other.__name__ == f"a{name}" and other.__module__ == plain.__module__
    assert inspect.cleandoc(plain.__doc__) in other.__doc__


def test_whatever_takes_a_watcher_or_a_model_can_be_awaited() -> None:
    asks = {"watcher", "model", "say", "ready"}
    there = {name for name in askance.__all__ if inspect.isfunction(getattr(askance, name))}
    asking = {name for name in there if asks & inspect.signature(getattr(askance, name)).parameters.keys()}
    assert asking >= {"evaluate", "align", "resume", "train", "label", "check_model"}
    assert {name for name in asking if f"a{name}" not in there and not name.startswith("a")} == set()


async def test_two_at_once_in_one_loop_share_a_store_and_buy_each_answer_once() -> None:
    models = [ScriptedModel(lambda _: 0.9, name="world/judge", delay=0.001) for _ in range(2)]
    for each in models:
        each.answers_stay_in_the_run = False
    found = await asyncio.gather(
        *(askance.aevaluate(rows(60), checklist=QUESTIONS, model=each, store="shared.db") for each in models)
    )
    keys = [request.key for each in models for request in each.requests]
    assert len(keys) == len(set(keys)) == 300
    assert found[0].to_dict()["scores"] == found[1].to_dict()["scores"]
    assert sum(each.budget.calls for each in found) == 300


async def test_the_models_and_callbacks_see_the_callers_context_and_errors_come_out_as_they_are() -> None:
    seen: list[tuple[str, bool]] = []

    def answer(request: Request) -> float:
        seen.append((WHO.get(), threading.current_thread() is threading.main_thread()))
        return 0.9

    WHO.set("me")
    await askance.aevaluate(rows(2), checklist=QUESTIONS, model=ScriptedModel(answer))
    assert set(seen) == {("me", False)}
    with pytest.raises(InputError) as wrong:
        await askance.aevaluate(rows(2), checklist=QUESTIONS, model=ScriptedModel(answer), limits=3)  # type: ignore[call-arg]
    assert says(wrong.value, "limits")


async def test_a_cancelled_call_stops_asking_keeps_what_was_bought_and_closes_its_store(tmp_path: Path) -> None:
    model = ScriptedModel(lambda _: 0.9, delay=0.01, slots=2)
    call = asyncio.create_task(
        askance.aevaluate(rows(500), checklist=QUESTIONS, model=model, store=tmp_path / "answers.db")
    )
    while len(model.requests) < 20:
        await asyncio.sleep(0.01)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    asked = len(model.requests)
    await asyncio.sleep(0.05)
    assert len(model.requests) == asked < 500
    assert not [each for each in threading.enumerate() if each.name == "askance"]
    assert not (tmp_path / "answers.db-wal").exists()  # closed
    again = ScriptedModel(lambda _: 0.9)
    found = await askance.aevaluate(rows(500), checklist=QUESTIONS, model=again, store=tmp_path / "answers.db")
    assert found.budget.calls == len(again.requests) <= 2500 - asked + 2


async def test_a_call_that_is_cancelled_before_it_asks_asks_nothing() -> None:
    model = ScriptedModel(lambda _: 0.9)
    call = asyncio.create_task(askance.aevaluate(rows(500), checklist=QUESTIONS, model=model))
    await asyncio.sleep(0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert model.requests == []


async def test_a_time_limit_ends_a_call() -> None:
    model = ScriptedModel(lambda _: 0.9, delay=0.05, slots=1)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3):
            await askance.aevaluate(rows(500), checklist=QUESTIONS, model=model)
    assert len(model.requests) < 50


async def test_a_run_can_be_awaited_cancelled_and_resumed(tmp_path: Path) -> None:
    told: list[object] = []
    slow = ScriptedModel(lambda _: 0.9, delay=0.02, slots=2)
    data = rows(60)
    call = asyncio.create_task(
        askance.aalign(data, checklist=QUESTIONS, model=slow, run=tmp_path / "run", callbacks=[told.append])
    )
    while len(slow.requests) < 10:
        await asyncio.sleep(0.01)
    call.cancel()
    with suppress(asyncio.CancelledError):
        await call
    assert told and not (tmp_path / "run" / "result.json").exists()
    quick = ScriptedModel(lambda _: 0.9)
    result = await askance.aalign(data, checklist=QUESTIONS, model=quick, run=tmp_path / "run")
    assert result.directory == tmp_path / "run" and (tmp_path / "run" / "result.json").exists()
    keys = [request.key for request in (*slow.requests, *quick.requests)]
    assert len(keys) - len(set(keys)) <= 2  # the calls under way when it was cancelled


async def test_work_of_another_thread_inside_a_call_is_cancelled_with_it() -> None:
    """A checker that calls askance again from a thread that has its context."""
    began = threading.Event()

    def inner() -> None:
        began.set()
        askance.evaluate(rows(400), checklist=QUESTIONS, model=ScriptedModel(lambda _: 0.9, delay=0.05, slots=1))

    async def outer() -> None:
        await asyncio.to_thread(inner)

    def whole() -> None:
        from askance.models.event_loops import run_sync

        run_sync(outer())

    call = asyncio.create_task(awaited(whole)())
    while not began.is_set():
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.1)
    call.cancel()
    since = time.monotonic()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert time.monotonic() - since < 5


def test_ctrl_c_ends_a_call_that_is_awaited_and_leaves_a_store_that_can_be_used(tmp_path: Path) -> None:
    code = """
        import asyncio, askance
        from askance.testing import ScriptedModel
        rows = [{"id": f"e{k}", "input": "in", "output": f"out {k}"} for k in range(500)]
        one = askance.Checklist(questions=(askance.Question(id="q", text="Is it?"),))
        def answer(request):
            print("asked", flush=True)
            return 0.9
        async def main():
            model = ScriptedModel(answer, delay=0.02, slots=2)
            await askance.aevaluate(rows, checklist=one, model=model, store="kept.db")
        asyncio.run(main())
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as process:
        assert process.stdout is not None
        for _ in range(10):
            process.stdout.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert process.returncode != 0 and "KeyboardInterrupt" in err
    assert out.count("asked") < 50 and "never awaited" not in err and "Exception ignored" not in err
    assert not (tmp_path / "kept.db-wal").exists()
