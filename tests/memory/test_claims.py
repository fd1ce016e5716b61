"""What a store promises those that share it, in SQLite and in PostgreSQL alike."""

from __future__ import annotations

import asyncio
import os
import random
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from askance.memory import claims
from askance.memory.verdict_store import VerdictStore, open_store
from askance.models import gateway as gateways
from askance.models.base import Answer, ModelError, Parameters, Request, make_request
from askance.models.gateway import Gateway, RetryPolicy
from askance.prompts.errors import AskanceError
from askance.testing import ScriptedModel

KEY = b"k" * 32
Sql = Callable[[str], list[tuple[Any, ...]]]


def request(text: str = "x") -> Request:
    return make_request("scripted/model", [("user", text)], Parameters(4))


def test_what_is_claimed_is_free_again_when_it_is_let_go(place: str) -> None:
    with open_store(place) as mine, open_store(place) as other:
        assert mine.claim(KEY) and mine.claim(KEY)
        assert not other.claim(KEY)
        other.let_go([KEY])
        assert not other.claim(KEY), "it was not its own to let go"
        mine.let_go([KEY])
        assert other.claim(KEY) and not mine.claim(KEY)


def test_an_answer_that_is_kept_is_no_longer_claimed(place: str, claims_sql: Sql) -> None:
    with open_store(place) as mine, open_store(place) as other:
        assert mine.claim(KEY)
        mine.put(KEY, Answer("yes"))
        assert claims_sql("SELECT count(*) FROM {claims}") == [(0,)]
        assert other.get_many([KEY])[KEY].text == "yes"


def test_a_store_that_is_closed_lets_go_of_what_it_had_claimed(place: str) -> None:
    with open_store(place) as mine:
        assert mine.claim(KEY) and mine.claim(b"other")
    with open_store(place) as other:
        assert other.claim(KEY) and other.claim(b"other")


def test_the_claim_of_a_process_that_was_killed_holds_nobody_up(place: str, claims_sql: Sql) -> None:
    code = (
        "import os; from askance.memory.verdict_store import open_store\n"
        f"assert open_store({place!r}).claim({KEY!r}); os.kill(os.getpid(), 9)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == -9
    assert claims_sql("SELECT count(*) FROM {claims}") == [(1,)]
    with open_store(place) as store:
        assert store.claim(KEY)


@pytest.mark.parametrize("owner", ["elsewhere/1", "elsewhere/1/2", "no owner at all", "/"])
def test_the_claim_of_who_cannot_be_asked_holds_no_longer_than_its_lease(
    place: str, owner: str, claims_sql: Sql
) -> None:
    with open_store(place) as store, open_store(place) as gone:
        assert gone.claim(KEY)
        claims_sql(f"UPDATE {{claims}} SET owner = '{owner}'")
        assert not store.claim(KEY)
        claims_sql(f"UPDATE {{claims}} SET until = {{now}} + {0.95 * claims.LEASE} * {{second}}")
        assert not store.claim(KEY)
        claims_sql("UPDATE {claims} SET until = {now} - 0.001 * {second}")
        assert store.claim(KEY)


def test_a_claim_that_a_wrong_clock_made_long_is_not_waited_for(place: str, claims_sql: Sql) -> None:
    with open_store(place) as store, open_store(place) as other:
        assert other.claim(KEY)
        claims_sql(f"UPDATE {{claims}} SET owner = 'elsewhere/1/2', until = {{now}} + {3 * claims.LEASE} * {{second}}")
        assert store.claim(KEY)


def test_the_claim_of_a_process_that_runs_outlives_a_clock_that_jumps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wall, steady = time.time(), time.monotonic()
    with open_store(tmp_path / "v.db") as store, open_store(tmp_path / "v.db") as other:
        assert other.claim(KEY)
        for jump in (3600, -3600):
            monkeypatch.setattr(claims.time, "time", lambda jump=jump: wall + jump)
            assert not store.claim(KEY)
        other.renew([KEY])
        monkeypatch.setattr(claims.time, "time", lambda: wall + 3600)
        assert not store.claim(KEY)
        monkeypatch.setattr(claims.time, "monotonic", lambda: steady + 100)
        assert store.claim(KEY), "it has not been renewed for too long"


def test_only_its_own_claims_are_renewed(place: str, claims_sql: Sql) -> None:
    with open_store(place) as mine, open_store(place) as other:
        assert mine.claim(KEY) and other.claim(b"other") and mine.claim(b"bought by now")
        claims_sql("UPDATE {claims} SET until = {now} + 1 * {second}")
        mine.renew([KEY, b"other"])
        long = f"SELECT key FROM {{claims}} WHERE until > {{now}} + {claims.LEASE / 2} * {{second}}"
        assert [bytes(key) for (key,) in claims_sql(long)] == [KEY]


def test_a_file_of_ones_own_claims_nothing(tmp_path: Path) -> None:
    with VerdictStore(tmp_path / "a.db", is_ours=True) as mine, VerdictStore(tmp_path / "a.db") as other:
        assert mine.claim(KEY) and other.claim(KEY)


def test_runs_with_files_of_their_own_claim_in_the_store_that_they_share(place: str, tmp_path: Path) -> None:
    shared = claims_place(place)
    with (
        VerdictStore(tmp_path / "a" / "v.db", shared=shared, is_ours=True) as a,
        VerdictStore(tmp_path / "b" / "v.db", shared=shared, is_ours=True) as b,
    ):
        assert a.claim(KEY) and not b.claim(KEY)
        a.put(KEY, Answer("yes", None, 3, 1, None))
        assert b.claim(KEY)
        assert b.get_many([KEY]) == {KEY: Answer("yes", None, 3, 1, None)}
        assert (set(a.brought), set(b.brought)) == (set(), {KEY})


def claims_place(place: str) -> Any:
    from askance.memory.verdict_store import place_of

    return place_of(place)


# --- leases of two processes ----------------------------------------------------------------------------------------

ELSEWHERE = "elsewhere/1/2"


def claims_of(path: Path, machine: str | None = None) -> claims.Claims:
    """The claims in a file, as a process has them; on a ``machine`` of its own nobody can say whether it still runs."""
    db = sqlite3.connect(path, isolation_level=None)
    db.executescript(claims.SCHEMA)
    made = claims.Claims(db)
    if machine is not None:
        made.claimant.machine = machine
    return made


class Clock:
    """Both clocks of a machine, which stand still until they are moved."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.wall, self.steady = 1.7e9, 500.0
        made = SimpleNamespace(time=lambda: self.wall, monotonic=lambda: self.steady)
        monkeypatch.setattr(claims, "time", made)

    def passes(self, seconds: float) -> None:
        self.wall += seconds
        self.steady += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.mark.parametrize("seed", range(4))
def test_whatever_two_machines_do_a_claim_has_one_owner_until_its_lease_ends(
    seed: int, tmp_path: Path, clock: Clock
) -> None:
    """Every step is held against a table of owners and leases that is kept by hand."""
    draw = random.Random(seed)
    processes = {name: claims_of(tmp_path / "v.db", name) for name in ("one", "two", "three")}
    keys = [b"a", b"b"]
    held: dict[bytes, tuple[str, float]] = {}
    refused = taken_over = 0
    for _ in range(300):
        name, key = draw.choice(list(processes)), draw.choice(keys)
        match draw.choice(["take", "take", "renew", "let go", "wait"]):
            case "take":
                owner, until = held.get(key, (name, 0.0))
                may = owner == name or until < clock.wall
                assert processes[name].claim(key) is may
                refused += not may
                taken_over += may and owner != name
                if may:
                    held[key] = name, clock.wall + claims.LEASE
            case "renew":
                processes[name].renew(keys)
                held |= {each: (name, clock.wall + claims.LEASE) for each in keys if held.get(each, ("",))[0] == name}
            case "let go":
                processes[name].let_go([key])
                held = {each: at for each, at in held.items() if (each, at[0]) != (key, name)}
            case "wait":
                clock.passes(draw.choice([1.0, claims.LEASE / 2, claims.LEASE + 0.01]))
    assert refused > 10 and taken_over > 3


class Interrupted:
    """A database in which something happens between the look at a claim's holder and the attempt to take it."""

    def __init__(self, db: sqlite3.Connection, between: Callable[[], object]) -> None:
        self._db, self._between = db, between

    def execute(self, sql: str, values: Any = ()) -> Any:
        found = self._db.execute(sql, values)
        if not sql.startswith("SELECT"):
            return found
        row = found.fetchone()
        self._between()
        return SimpleNamespace(fetchone=lambda: row)


@pytest.mark.parametrize("between", ["nothing", "renewed", "taken by another", "taken and let go", "let go"])
def test_a_claim_that_changes_while_it_is_looked_at_has_one_owner(between: str, tmp_path: Path, clock: Clock) -> None:
    holder, other = claims_of(tmp_path / "v.db", "holder"), claims_of(tmp_path / "v.db", "other")
    taker = claims_of(tmp_path / "v.db", "taker")
    assert holder.claim(KEY)
    clock.passes(claims.LEASE + 1)

    def happens() -> None:
        if between == "renewed":
            holder.renew([KEY])
        elif between.startswith("taken"):
            assert other.claim(KEY)
        if between.endswith("let go"):
            holder.let_go([KEY])
            other.let_go([KEY])

    taker._db = Interrupted(taker._db, happens)  # type: ignore[assignment]
    taken = taker.claim(KEY)
    assert taken is (between in ("nothing", "taken and let go", "let go"))
    owners = [each.claimant.name for each in (holder, other, taker) if each.claim(KEY)]
    assert owners == [{"renewed": holder, "taken by another": other}.get(between, taker).claimant.name]


def test_of_processes_that_take_the_same_claims_at_once_one_has_each(tmp_path: Path) -> None:
    path, keys = tmp_path / "v.db", [bytes([number]) for number in range(60)]
    claims_of(path)
    done = [tmp_path / str(number) for number in range(3)]
    start = time.time() + 0.2
    children = []
    for mine in done:
        if (child := os.fork()) == 0:
            code = 1
            try:
                own = claims_of(path)
                own._db.execute("PRAGMA busy_timeout = 20000")
                time.sleep(max(0.0, start - time.time()))
                mine.with_suffix(".part").write_bytes(b"".join(key for key in keys if own.claim(key)))
                mine.with_suffix(".part").rename(mine)
                for _ in range(2000):  # one that has ended would lose its claims to the others
                    if all(each.exists() for each in done):
                        break
                    time.sleep(0.01)
                code = 0
            finally:
                os._exit(code)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0, 0]
    got = [each.read_bytes() for each in done]
    assert sorted(b"".join(got)) == list(range(60))


def test_a_process_that_runs_has_time_to_renew_after_a_lapse_and_again_after_each_renewal(
    tmp_path: Path, clock: Clock
) -> None:
    """Its machine may have slept: it renews as soon as it wakes up, which takes it no longer than one interval."""
    mine, other = claims_of(tmp_path / "v.db"), claims_of(tmp_path / "v.db")
    assert other.claim(KEY)
    for _ in range(3):
        clock.passes(claims.LEASE + 1)
        assert not mine.claim(KEY), "it is seen for the first time"
        clock.passes(gateways.RENEWS_EVERY * 1.2)
        assert not mine.claim(KEY)
        other.renew([KEY])
        assert not mine.claim(KEY)
    clock.passes(claims.LEASE + 1)
    assert not mine.claim(KEY)
    clock.passes(gateways.RENEWS_EVERY * 1.6)
    assert mine.claim(KEY) and not other.claim(KEY)


def test_a_lease_is_renewed_several_times_before_it_would_end() -> None:
    assert 0 < gateways.RENEWS_EVERY <= claims.LEASE / 3


@pytest.mark.parametrize("lease", [-1.0, 0.0, 1.0, claims.LEASE, 2 * claims.LEASE, 2 * claims.LEASE + 1, 1e9])
def test_a_claim_of_another_machine_holds_from_now_to_two_leases_ahead(
    lease: float, tmp_path: Path, clock: Clock
) -> None:
    mine = claims_of(tmp_path / "v.db")
    mine._db.execute("INSERT INTO claims VALUES (?, ?, ?)", (KEY, ELSEWHERE, clock.wall + lease))
    assert mine.claim(KEY) is not (0 <= lease <= 2 * claims.LEASE)


def test_who_lets_go_of_all_lets_go_of_its_own(place: str) -> None:
    with open_store(place) as stays:
        with open_store(place) as goes:
            assert stays.claim(b"stays") and goes.claim(b"goes")
        with open_store(place) as third:
            assert third.claim(b"goes") and not third.claim(b"stays")


def test_a_process_of_somebody_else_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    mine = claims.Claimant()
    monkeypatch.setattr(os, "kill", refuse)
    assert mine.is_there(f"{mine.machine}/1/17") and not mine.has_ended(f"{mine.machine}/1/17")
    for unknown in ("elsewhere/1/17", f"{mine.machine}x/1/17", "17", ""):
        assert not mine.is_there(unknown) and not mine.has_ended(unknown)


def test_a_run_with_a_file_of_its_own_renews_and_lets_go_in_the_store_that_it_shares(
    place: str, tmp_path: Path, claims_sql: Sql
) -> None:
    with (
        VerdictStore(tmp_path / "a" / "v.db", shared=claims_place(place), is_ours=True) as run,
        open_store(place) as other,
    ):
        assert run.claim(KEY) and run.claim(b"two")
        claims_sql("UPDATE {claims} SET until = {now} + 1 * {second}")
        run.renew([KEY])
        long = f"SELECT key FROM {{claims}} WHERE until > {{now}} + {claims.LEASE / 2} * {{second}}"
        assert [bytes(key) for (key,) in claims_sql(long)] == [KEY]
        run.let_go([KEY])
        assert other.claim(KEY) and not other.claim(b"two")
        run.put(b"two", Answer("yes"))
        assert other.get_many([b"two"])[b"two"].text == "yes" and other.claim(b"two")
        run.forget([b"two"])
        assert other.get_many([b"two"]) == {} == run.get_many([b"two"])


# --- through the gateway --------------------------------------------------------------------------------------------


async def test_one_of_four_buys_and_the_others_have_its_answer(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateways, "BETWEEN_LOOKS", (0.01, 0.05))
    model = ScriptedModel(lambda _: "a", delay=0.2)
    stores = [open_store(place) for _ in range(4)]
    opened = [Gateway(store) for store in stores]
    answers = await asyncio.gather(*(each.ask("judge", model, request(text)) for each in opened for text in "xyz"))
    for store in stores:
        store.close()
    assert len(model.requests) == 3 and {answer.text for answer in answers} == {"a"}
    assert sum(each.budget.calls for each in opened) == 3
    assert sum(each.budget.cached_calls for each in opened) == 9


async def test_a_purchase_that_fails_or_is_cancelled_is_made_by_who_waits(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateways, "BETWEEN_LOOKS", (0.01, 0.05))
    with open_store(place) as one, open_store(place) as two:
        for how in ("fails", "is cancelled"):
            slow = ScriptedModel([ModelError("HTTP 400")], delay=0.1 if how == "fails" else 60.0)
            first = asyncio.ensure_future(Gateway(one, retry=RetryPolicy(1)).ask("judge", slow, request(how)))
            await asyncio.sleep(0.02)
            second = asyncio.ensure_future(Gateway(two).ask("judge", ScriptedModel(["mine"]), request(how)))
            await asyncio.sleep(0.02)
            assert not second.done()
            if how == "is cancelled":
                first.cancel()
            assert (await asyncio.wait_for(second, 20)).text == "mine"
            with pytest.raises((ModelError, asyncio.CancelledError)):
                await first


async def test_what_is_bought_slowly_stays_claimed(
    place: str, claims_sql: Sql, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateways, "RENEWS_EVERY", 0.02)
    with open_store(place) as one, open_store(place) as two:
        model, slow = ScriptedModel(["a"]), ScriptedModel(["a"], delay=0.6)
        buying = asyncio.ensure_future(Gateway(one).ask("judge", slow, request()))
        await asyncio.sleep(0.02)
        claims_sql("UPDATE {claims} SET until = {now} + 0.05 * {second}")
        await asyncio.sleep(0.2)
        assert not buying.done() and not two.claim(request().key), "it would have lapsed"
        waiting = Gateway(two)
        assert (await waiting.ask("judge", model, request())).text == "a"
        await buying
        assert model.requests == [] and (waiting.budget.calls, waiting.budget.cached_calls) == (0, 1)


async def test_an_answer_that_cannot_be_kept_is_not_claimed_for_ever(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_store(place) as one, open_store(place) as two:

        def full(*_: object) -> None:
            raise AskanceError("the disk is full")

        monkeypatch.setattr(one, "put", full)
        with pytest.raises(AskanceError, match="disk is full"):
            await Gateway(one).ask("judge", ScriptedModel(["a"]), request())
        assert two.claim(request().key)


def test_the_number_of_a_process_says_nothing_on_another_machine() -> None:
    mine = claims.Claimant()
    gone = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True)
    process = gone.stdout.strip()
    assert mine.has_ended(f"{mine.machine}/1/{process}")
    assert not mine.has_ended(f"{mine.machine}x/1/{process}")
    assert not mine.has_ended(f"{mine.machine}/1/{os.getpid()}")
    assert claims.Claimant().name != mine.name
