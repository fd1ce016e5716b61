"""Commands share one store, and a run can still be moved: what was asked once is not bought again by anybody."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import askance
from askance.memory.verdict_store import VerdictStore, store_path
from askance.models.base import Answer
from askance.prompts.errors import InputError
from askance.testing import StandInServer
from tests.worlds import useful


class Shop:
    """One judge behind a server, used by several commands."""

    def __init__(self, world: Any, server: StandInServer, folder: Path) -> None:
        self.world, self.server, self.folder = world, server, folder

    def evaluate(self, **options: Any) -> askance.Evaluation:
        given = {"checklist": self.world.checklist, "model": "openai/judge", "prompt": self.world.prompt}
        return askance.evaluate(self.world.rows, **given, api_base=self.server.url, explain="never", **options)

    def align(self, name: str, **options: Any) -> askance.RunResult:
        given = {"checklist": self.world.checklist, "model": "openai/judge", "prompt": self.world.prompt}
        options = useful(self.world.options | options)
        return askance.align(self.world.rows, **given, api_base=self.server.url, run=self.folder / name, **options)

    @property
    def asked(self) -> list[str]:
        return [json.dumps(each, sort_keys=True) for each in self.server.bodies]


@pytest.fixture
def shop(world: Any, tmp_path: Path) -> Iterator[Shop]:
    with StandInServer(world.serve) as server:
        yield Shop(world, server, tmp_path)


def test_evaluate_align_and_calibrate_ask_each_request_once(shop: Shop) -> None:
    first = shop.evaluate()
    shop.align("run")
    shop.align("calibrated", calibrate=True)
    again = shop.evaluate()
    assert len(shop.asked) == len(set(shop.asked)) > len(first.verdicts)
    assert again.budget.calls == 0 and again.budget.cached_calls >= len(first.verdicts)


def test_a_run_says_what_it_had_from_others_and_comes_to_the_same(shop: Shop) -> None:
    bought = shop.align("bought").result
    asked = len(shop.asked)
    had = shop.align("had").result
    assert len(shop.asked) == asked
    assert (had["calls"], had["tokens"]) == (0, 0)
    assert had["cached_calls"] == bought["calls"] + bought["cached_calls"]
    counted = {"calls", "cached_calls", "tokens", "roles", "cost_usd", "known_usd", "unpriced_calls"}
    assert {k: v for k, v in had.items() if k not in counted} == {k: v for k, v in bought.items() if k not in counted}
    (shop.folder / "had" / "result.json").unlink()
    assert shop.align("had").result == had, "what was had from others is not taken for bought when the run is repeated"


def test_two_runs_at_once_ask_each_request_once(shop: Shop) -> None:
    with ThreadPoolExecutor(2) as both:
        one, two = both.map(shop.align, ["one", "two"])
    assert len(shop.asked) == len(set(shop.asked)) == one.result["calls"] + two.result["calls"]
    for name in ("baseline", "best", "accepted_edits", "lessons"):
        assert one.result[name] == two.result[name]


def test_the_store_can_be_named(shop: Shop) -> None:
    there = shop.folder / "team.db"
    shop.evaluate(store=there)
    asked = len(shop.asked)
    assert shop.evaluate(store=str(there)).budget.calls == 0
    shop.align("run", store=there, max_iterations=1)
    with VerdictStore(there) as store:
        assert len(store) == len(shop.asked) > asked
    askance.resume(shop.folder / "run", store=there)
    assert not store_path().exists()


def test_a_run_on_another_machine_has_all_its_answers_with_it(shop: Shop) -> None:
    shop.evaluate()
    before = shop.align("run").result
    asked = len(shop.asked)
    store_path().unlink()
    shutil.move(shop.folder / "run", shop.folder / "elsewhere")
    (shop.folder / "elsewhere" / "result.json").unlink()
    assert askance.resume(shop.folder / "elsewhere").result == before
    assert len(shop.asked) == asked


def test_with_no_cache_a_run_neither_takes_nor_gives_also_when_it_is_resumed(shop: Shop) -> None:
    shop.evaluate()
    asked, stored = len(shop.asked), len(VerdictStore(store_path()))
    capped = shop.align("apart", no_cache=True, call_budget=asked + 10)
    assert capped.finish_reason == "max_calls"
    assert len(shop.asked) == 2 * asked + 10
    done = askance.resume(shop.folder / "apart")
    assert done.result["calls"] == len(shop.asked) - asked
    assert len(VerdictStore(store_path())) == stored


def test_answers_that_cost_nothing_do_not_count_against_a_budget(shop: Shop) -> None:
    whole = shop.align("whole").result
    assert shop.align("again", call_budget=0).result["finish_reason"] == whole["finish_reason"] != "max_calls"


def test_what_a_script_says_is_shared_with_nobody(world: Any, tmp_path: Path) -> None:
    calls = world.align(tmp_path / "one").result["calls"]
    assert world.align(tmp_path / "two").result["calls"] == calls
    assert not store_path().exists()


def test_dry_run_counts_only_what_is_not_there_yet(shop: Shop) -> None:
    from askance.optimizer.modes import align
    from askance.run_estimate import estimate_run

    settings = shop.world.options | {"api_base": shop.server.url}
    job = align.prepare(shop.world.rows, shop.world.checklist, "openai/judge", shop.world.prompt, settings)
    assert estimate_run(job).fixed.calls == 2 * len(shop.world.ids)
    assert not store_path().exists()
    shop.evaluate()
    assert estimate_run(job).fixed.calls == 0


# --- the store alone -----------------------------------------------------------------------------------------------


def key(number: int) -> bytes:
    return number.to_bytes(32, "big")


def test_an_answer_of_the_shared_store_is_copied_and_known_as_brought(tmp_path: Path) -> None:
    shared, own = tmp_path / "shared.db", tmp_path / "run" / "verdicts.db"
    many = 1203
    with VerdictStore(shared) as store:
        for number in range(many):
            store.put(key(number), Answer(str(number)))
    with VerdictStore(own, shared=shared) as store:
        assert len(store.get_many([key(number) for number in range(many + 5)])) == many
        store.put(key(many), Answer("new"))
        assert len(store.brought) == many and key(many) not in store.brought
    with VerdictStore(own) as store, VerdictStore(shared) as other:
        assert len(store) == len(other) == many + 1
        assert len(store.brought) == many, "also when it is opened again"


def test_an_answer_of_no_use_is_forgotten_everywhere(tmp_path: Path) -> None:
    with VerdictStore(tmp_path / "shared.db") as shared:
        shared.put(key(1), Answer("?"))
        with VerdictStore(tmp_path / "own.db", shared=tmp_path / "shared.db") as own:
            assert own.get(key(1)) is not None
            own.forget([key(1)])
            assert own.get(key(1)) is None and key(1) not in own.brought
        assert shared.get(key(1)) is None


def test_two_stores_write_to_one_shared_store_at_once(tmp_path: Path) -> None:
    shared = tmp_path / "shared.db"
    with VerdictStore(tmp_path / "a.db", shared=shared) as a, VerdictStore(tmp_path / "b.db", shared=shared) as b:
        for number in range(50):
            (a if number % 2 else b).put(key(number), Answer(str(number)))
        assert all(store.get(key(number)) for number in range(50) for store in (a, b))
        assert len(a.brought) == len(b.brought) == 25


def test_a_shared_store_that_cannot_be_used_says_how_to_go_without(tmp_path: Path) -> None:
    (tmp_path / "shared.db").write_text("no database, but long enough to be looked at as one", encoding="utf-8")
    with pytest.raises(InputError, match=r"shared\.db.*ASKANCE_CACHE.*--no-cache"):
        VerdictStore(tmp_path / "own.db", shared=tmp_path / "shared.db")
