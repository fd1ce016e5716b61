"""Progress of a call from Python: in the cell of a notebook, on standard error where it is asked for, else nowhere."""

from __future__ import annotations

import asyncio
import inspect
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import askance
from askance.models import progress
from askance.models.base import Answer
from askance.models.budget import Budget
from askance.models.progress import Counting, Lines, Notebook, Silent, duration, in_notebook, watching
from askance.optimizer.events import StartMeasured
from askance.prompts.errors import InputError
from askance.testing import ScriptedModel
from tests.said import naming, says

pytestmark = pytest.mark.usefixtures("sandbox")
EVIL = "<img src=x onerror=alert(1)>"


class Cell:
    """What a notebook's cell shows: one list of states for every place in it."""

    def __init__(self) -> None:
        self.places: list[list[dict[str, str]]] = []

    def display(self, bundle: dict[str, str], *, raw: bool, display_id: bool) -> Any:
        assert raw and display_id
        states = [bundle]
        self.places.append(states)

        def update(bundle: dict[str, str], *, raw: bool) -> None:
            assert raw
            states.append(bundle)

        return SimpleNamespace(update=update)

    @property
    def plain(self) -> list[str]:
        (states,) = self.places
        return [state["text/plain"] for state in states]

    @property
    def html(self) -> str:
        return "\n".join(state["text/html"] for states in self.places for state in states)


@pytest.fixture
def cell(monkeypatch: pytest.MonkeyPatch) -> Cell:
    """This process is a Jupyter kernel."""
    shown = Cell()
    ipython: Any = ModuleType("IPython")
    ipython.get_ipython = lambda: SimpleNamespace(kernel=object())
    ipython.display = ModuleType("IPython.display")
    ipython.display.display = shown.display
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", ipython.display)
    return shown


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Time passes when it is told to."""
    now = [1000.0]
    fake = SimpleNamespace(monotonic=lambda: now[0])
    monkeypatch.setattr(progress, "time", fake)
    monkeypatch.setattr(progress, "time", fake)

    def passes(seconds: float) -> None:
        now[0] += seconds

    return passes


def evaluated(world: Any, **options: Any) -> askance.Evaluation:
    model = world.model(f"world/{EVIL}")
    return askance.evaluate(
        world.rows, checklist=world.checklist, model=model, prompt=world.prompt, no_cache=True, resamples=200, **options
    )


def test_a_script_is_silent_unless_it_asks(world: Any, capfd: pytest.CaptureFixture[str]) -> None:
    evaluated(world)
    evaluated(world, progress=False)
    assert capfd.readouterr() == ("", "")
    evaluated(world, progress=True)
    out, err = capfd.readouterr()
    assert out == "" and f"asking world/{EVIL} …\n" in err


def test_a_terminal_with_ipython_is_no_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    assert not in_notebook()
    assert "IPython" not in sys.modules
    for shell in (None, SimpleNamespace()):
        monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda shell=shell: shell))
        assert not in_notebook()


def test_a_notebook_shows_progress_in_one_place_and_ends_with_what_it_took(world: Any, cell: Cell) -> None:
    evaluated(world)
    assert cell.plain[0].startswith(f"asking world/{EVIL} · 0 of 80 · 0 calls")
    assert re.fullmatch(r"askance: done in \d+ s: 80 calls( \(\+\d+ reused\))?, \d+k? tokens", cell.plain[-1])
    assert "<progress" not in cell.places[0][-1]["text/html"]


def test_the_same_within_a_running_event_loop(world: Any, cell: Cell) -> None:
    async def in_a_cell() -> None:
        evaluated(world)

    asyncio.run(in_a_cell())
    assert cell.plain[-1].startswith("askance: done in ")


def test_what_a_cell_shows_is_escaped(world: Any, cell: Cell) -> None:
    evaluated(world)
    assert "<img" not in cell.html and "&lt;img src=x" in cell.html
    shown = Notebook()
    shown.say(EVIL)
    shown.end("done")
    assert "<img" not in cell.html


def test_what_a_cell_shows_can_be_sent_to_it(cell: Cell) -> None:
    shown = Notebook()
    shown.say("The endpoint said: busy \ud800 now\x1b[31m.")
    shown.phase("asking \udfff")
    shown.end("stopped")
    assert not any(b"\x1b" in each.encode() for each in (*cell.plain, cell.html))


def test_no_progress_where_it_is_switched_off_or_somebody_else_watches(world: Any, cell: Cell) -> None:
    evaluated(world, progress=False)
    evaluated(world, watcher=Silent())
    assert cell.places == []
    with pytest.raises(InputError, match=naming("watcher=", "progress=True")):
        evaluated(world, watcher=Silent(), progress=True)


def test_a_run_shows_iteration_phase_calls_and_the_validation_score(world: Any, tmp_path: Path, cell: Cell) -> None:
    done = world.migrate(tmp_path / "run")
    said = "\n".join(cell.plain)
    assert says(said, "iteration 1", "development examples")
    start = done.result["baseline"]["validation"]["spearman"]
    best = done.result["best"]["validation"]["spearman"]
    assert f"validation {start:.3f}, " in said
    assert f"validation {best:.3f} (+{best - start:.3f}), " in cell.plain[-1]
    assert "iteration 1, validation" in said and "calls" in said
    last = cell.places[0][-1]["text/html"]
    assert last.startswith("<div><details><summary>askance: done in ") and "accepted: " in last


@pytest.mark.parametrize("name", ["select", "weigh", "compare", "diagnose"])
def test_the_other_calls_show_progress_in_one_place_too(name: str, tmp_path: Path, cell: Cell) -> None:
    rows: list[dict[str, Any]] = [
        {"id": f"e{n}", "input": f"In {n}.", "output": f"<{n}>", "human": {"quality": 1 + n % 5}} for n in range(20)
    ]
    questions = [askance.Question(id=name, text=f"Is it {name}?", dimension="quality") for name in ("right", "short")]
    checklist = askance.Checklist(task="Do.", questions=questions)
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_text(
        "".join(
            f'{{"id": "p{n}", "input": "{n}", "output_a": "a{n}", "output_b": "b", "preferred": "{"ab"[n % 2]}"}}\n'
            for n in range(12)
        )
    )
    judge = ScriptedModel(lambda request: 0.1 + (sum(map(ord, request.messages[-1][1])) % 8) / 10)
    common: dict[str, Any] = {"model": judge, "no_cache": True}
    calls: dict[str, Callable[[], object]] = {
        "select": lambda: askance.select(
            rows, candidates=checklist, k=1, embedder="words", halves=2, ranking_resamples=2, **common
        ),
        "weigh": lambda: askance.weigh(pairs, checklist=checklist, method="robust", **common),
        "compare": lambda: askance.compare(rows, judges=["binary"], checklist=checklist, resamples=200, **common),
        "diagnose": lambda: askance.diagnose(rows, checklist=checklist, **common),
    }
    calls[name]()
    assert any("asking scripted/model" in text for text in cell.plain)
    assert cell.plain[-1].startswith("askance: done in ")


def test_every_call_that_can_be_watched_can_show_progress() -> None:
    watched = {
        name: inspect.signature(each).parameters
        for name in askance.__all__
        if inspect.isfunction(each := getattr(askance, name)) and "watcher" in inspect.signature(each).parameters
    }
    assert {"evaluate", "migrate", "align", "tune", "resume", "select", "weigh", "compare", "diagnose"} <= set(watched)
    assert [name for name, parameters in watched.items() if "progress" not in parameters] == []


def test_what_fails_leaves_where_it_stopped(cell: Cell, world: Any) -> None:
    model = ScriptedModel(lambda request: RuntimeError("gone") if len(model.requests) > 30 else 0.5, slots=1)
    with pytest.raises(RuntimeError, match="gone"):
        askance.evaluate(world.rows, checklist=world.checklist, model=model, prompt=world.prompt, no_cache=True)
    assert re.match(r"askance: stopped after \d+ s while asking scripted/model \(30 of 80\): 30 calls", cell.plain[-1])


def test_fast_work_does_not_flood_the_notebook(cell: Cell, clock: Callable[[float], None]) -> None:
    shown = Notebook()
    shown.phase("asking", 10_000)
    for done in range(1, 10_001):
        clock(1 / 1024)
        shown.advance(done, 10_000)
    assert 30 <= len(cell.plain) <= 42
    assert cell.plain[20].startswith("asking · 5,120 of 10,000, about 5 s left")


def test_only_the_latest_messages_are_shown_until_the_end(cell: Cell) -> None:
    shown = Notebook()
    for number in range(9):
        shown.say(f"message {number}.")
    assert "message 3." not in cell.places[0][-1]["text/html"] and "message 8." in cell.places[0][-1]["text/html"]
    shown.end("done")
    assert "message 0." in cell.places[0][-1]["text/html"]


def test_words_tell_money_reuse_time_and_the_validation_score(clock: Callable[[float], None]) -> None:
    words, budget = Counting(), Budget()
    assert (words.left, words.spent) == ("", "")
    words.watch(budget)
    budget.paid("judge", Answer("Yes", None, 12_000, 1, cost_usd=0.0123))
    budget.role("judge").cached_calls = 3
    words.on_event(StartMeasured(0.5, "Spearman"))
    assert words.spent == "validation 0.500, 1 calls (+3 reused), 12k tokens, $0.0123"
    words.phase("asking", 200)
    assert words.left == "0 of 200"
    clock(60)
    words.advance(50, 200)
    assert words.left == "50 of 200, about 3 min left"
    words.advance(200, 200)
    assert words.left == "200 of 200"
    words.advance(0, 100)  # the same outputs are read once more within one piece of work
    clock(10)
    words.advance(10, 100)
    assert words.left == "10 of 100, about 90 s left"
    assert [duration(each) for each in (0.2, 99, 100, 5900, 12_000)] == ["1 s", "99 s", "2 min", "98 min", "3 h 20 min"]


def test_outside_a_notebook_progress_is_plain_lines_where_standard_error_is_no_terminal() -> None:
    with watching(None, True) as shown:
        assert isinstance(shown, Lines)
    with watching(None, None) as shown:
        assert isinstance(shown, Silent)
