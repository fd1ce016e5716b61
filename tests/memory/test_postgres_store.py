"""Answers in a real PostgreSQL: cut connections, a server that goes away, several processes, addresses with passwords."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from askance.memory import postgres_store
from askance.memory.postgres_store import PostgresAddress, PostgresStore
from askance.memory.verdict_store import VerdictStore, open_store
from askance.models import gateway as gateways
from askance.models.base import Answer, Parameters, Request, StoreAwayError, ThinkingFacts, make_request
from askance.models.gateway import Gateway
from askance.prompts.errors import AskanceError, InputError
from askance.testing import ScriptedModel, StandInServer
from tests.conftest import judge_at
from tests.said import naming, says

ANSWER_TABLE, CLAIMS = "askance_answers", "askance_claims"

pytest.importorskip("psycopg", reason="psycopg is not installed: make test-postgres")

SURE = (("Yes", (("Yes", -0.01), (" no", -4.6))), ("\n", (("\n", -0.5),)))
ANSWERS = [
    Answer("Yes", SURE, 120, 1, 0.0001, "stop"),
    Answer("ja – 是\0 zero, half \ud83d of a pair", None, 3, 2, None, "length"),
    Answer("Yes", None, 3, 131, None, "stop", 130),
    Answer("", (("\ud83d\0", (("\ud83d\0", 0.0),)),)),
]


@pytest.fixture
def address(cluster: Any) -> str:
    return str(cluster.new_database())


def request(text: str) -> Request:
    return make_request("scripted/model", [("user", text)], Parameters(4))


def key(number: int) -> bytes:
    return number.to_bytes(32, "big")


def test_an_answer_comes_back_as_it_was_kept_and_as_sqlite_keeps_it(address: str, tmp_path: Path) -> None:
    kept = {key(number): answer for number, answer in enumerate(ANSWERS)}
    with PostgresStore(PostgresAddress(address)) as store:
        for name, answer in kept.items():
            store.put(name, answer)
            store.put(name, Answer("another one"))
        assert store.get_many([*kept, key(99)]) == kept and len(store) == len(kept)
    with VerdictStore(tmp_path / "v.db", shared=PostgresAddress(address)) as copy:
        assert copy.get_many(list(kept)) == kept
    with VerdictStore(tmp_path / "v.db") as copy, VerdictStore(tmp_path / "direct.db") as direct:
        for name, answer in kept.items():
            direct.put(name, answer)
        assert copy.rows(list(kept)) == direct.rows(list(kept)) and len(copy.brought) == len(kept)


def test_what_is_forgotten_is_gone(address: str) -> None:
    with PostgresStore(PostgresAddress(address)) as store:
        store.forget([key(0)])
        store.put(key(1), ANSWERS[0])
        store.forget([key(1), key(2)])
        assert store.get_many([key(1)]) == {} and len(store) == 0


def test_answers_of_a_store_beside_it_are_reused_and_nothing_is_written_there(address: str, tmp_path: Path) -> None:
    with VerdictStore(tmp_path / "run.db") as run:
        run.put(key(1), ANSWERS[0])
    before = (tmp_path / "run.db").read_bytes()
    with open_store(address, beside=tmp_path / "run.db") as store:
        store.put(key(2), ANSWERS[1])
        assert set(store.get_many([key(1), key(2)])) == {key(1), key(2)}
    assert (tmp_path / "run.db").read_bytes() == before


def test_looking_makes_no_table(address: str, cluster: Any) -> None:
    with open_store(address) as store, open_store(address) as writer:
        assert store.get_many([key(1)]) == {} and len(store) == 0
        assert cluster.sql(f"SELECT to_regclass('{ANSWER_TABLE}')", address) == [(None,)]
        writer.put(key(1), ANSWERS[0])
        assert store.get_many([key(1)]) == {key(1): ANSWERS[0]}


def test_of_what_is_claimed_put_and_forgotten_nothing_stays(address: str, cluster: Any) -> None:
    keys = [key(number) for number in range(100)]
    with open_store(address) as store:
        for each in keys:
            assert store.claim(each) and not store.get_many([each])
            store.put(each, ANSWERS[0])
        assert set(store.get_many(keys)) == set(keys)
        store.forget(keys)
    assert cluster.sql(f"SELECT count(*) FROM {ANSWER_TABLE}", address) == [(0,)]


def test_many_that_begin_one_store_at_once_all_do(address: str) -> None:
    opened = [open_store(address) for _ in range(8)]
    problems: list[BaseException] = []

    def begin(number: int) -> None:
        try:
            opened[number].put(key(number), ANSWERS[0])
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=begin, args=(number,)) for number in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert problems == [] and len(opened[0]) == 8
    for store in opened:
        store.close()


def test_tables_of_a_newer_askance_are_left_alone(address: str, cluster: Any) -> None:
    with open_store(address) as store:
        store.put(key(1), ANSWERS[0])
    cluster.sql("UPDATE askance_store SET version = 99", address)
    with pytest.raises(InputError, match=r"newer askance \(schema 99\)"):
        open_store(address)


# --- what is cut ----------------------------------------------------------------------------------------------------


def test_a_cut_connection_is_made_anew_unseen(address: str, cluster: Any) -> None:
    with open_store(address) as store, open_store(address) as other:
        assert store.claim(key(1))
        for number in range(3):
            assert cluster.cut_connections() >= 1
            assert store.claim(key(1)) and not other.claim(key(1)), "the claim outlives the connection"
            cluster.cut_connections()
            store.put(key(10 + number), ANSWERS[0])
            cluster.cut_connections()
            assert key(10 + number) in store.get_many([key(10 + number)])
        cluster.cut_connections()
    assert cluster.sql(f"SELECT count(*) FROM {CLAIMS}", address) == [(0,)], "closing let go of it"


@pytest.mark.parametrize("cut", [2, 3])
def test_connections_may_be_cut_as_soon_as_they_are_made(
    cut: int, address: str, cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_store(address) as store:
        store.put(key(1), ANSWERS[0])
        connect, made = store._connect, []

        def connect_and_be_cut() -> None:
            connect()
            made.append(None)
            if len(made) <= cut:
                cluster.cut_connections()

        monkeypatch.setattr(store, "_connect", connect_and_be_cut)
        cluster.cut_connections()
        if cut == 2:
            assert key(1) in store.get_many([key(1)])
        else:
            with pytest.raises(StoreAwayError, match="broke off"):
                store.get_many([key(1)])
            assert key(1) in store.get_many([key(1)]), "the same can be said again"


def test_an_answer_that_is_there_is_not_claimed_again_by_a_thread_that_connects_anew(
    address: str, cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with PostgresStore(PostgresAddress(address)) as store:
        write, others = store._write, []

        def cut_afterwards(work: Callable[[Any], Any]) -> Any:
            found = write(work)
            cluster.cut_connections()
            others.append(threading.Thread(target=store.get_many, args=([key(2)],)))
            others[-1].start()
            others[-1].join(0.5)
            return found

        assert store.claim(key(1))
        monkeypatch.setattr(store, "_write", cut_afterwards)
        store.put(key(1), Answer("Yes"))
        others[0].join()
        assert cluster.sql("SELECT count(*) FROM askance_claims", address) == [(0,)]
        assert [*store.get_many([key(1)])] == [key(1)]


def test_what_a_crash_took_is_written_again_by_the_store_that_had_put_it(address: str, cluster: Any) -> None:
    with open_store(address) as store, open_store(address) as other:
        store.put(key(0), ANSWERS[0])
        store.forget([key(0)])
        with cluster.lost_in_a_crash():
            store.put(key(1), ANSWERS[1])
            assert store.claim(key(2)) and store.claim(key(3))
            store.let_go([key(3)])
        with pytest.raises(StoreAwayError):
            store.get_many([key(1)])
        cluster.start()
        time.sleep(1.0)  # it is not knocked at again and again
        assert other.get_many([key(1)]) == {}, "the crash took it"
        assert store.get_many([key(0), key(1)]) == {key(1): ANSWERS[1]} == other.get_many([key(0), key(1)])
        assert not other.claim(key(2)) and other.claim(key(3))


@pytest.mark.parametrize("how", ["fast", "immediate"])
async def test_answers_and_claims_outlive_a_restart_and_nobody_buys_twice(
    how: str, address: str, cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateways, "BETWEEN_LOOKS", (0.05, 0.1))
    bought: Counter[str] = Counter()
    said: list[str] = []

    async def buy(store: Any, texts: list[str]) -> list[str]:
        def reply(asked: Request) -> str:
            bought[asked.messages[0][1]] += 1
            return f"of {asked.messages[0][1]}"

        gateway = Gateway(store, max_concurrency=4)
        gateway.on_notice = said.append
        model = ScriptedModel(reply, delay=0.3, slots=4)
        return [each.text for each in await asyncio.gather(*(gateway.ask("judge", model, request(t)) for t in texts))]

    texts = [str(number) for number in range(24)]
    with open_store(address) as one, open_store(address) as two:
        work = asyncio.gather(buy(one, texts), buy(two, texts[::-1]))
        await asyncio.sleep(0.5)
        await asyncio.to_thread(cluster.stop, how)
        await asyncio.sleep(1.0)
        assert not work.done()
        await asyncio.to_thread(cluster.start)
        first, second = await asyncio.wait_for(work, 120)
    assert first == second[::-1] == [f"of {text}" for text in texts]
    assert set(bought.values()) == {1}, bought
    away = [each for each in said if each.startswith("The store: postgresql://askance@")]
    assert len(away) == 2 and all(says(each, "waited for") for each in away), "each says it once"
    with open_store(address) as store:
        assert len(store) == len(texts)


async def test_a_store_that_stays_away_ends_the_run_and_says_so(
    address: str, cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateways, "STORE_PATIENCE", 1.0)
    with open_store(address) as store:
        gateway = Gateway(store)
        await gateway.ask("judge", ScriptedModel(["a"]), request("before"))
        cluster.stop()
        try:
            with pytest.raises(StoreAwayError):
                store.get_many([key(1)])
            with pytest.raises(AskanceError, match=naming("stops", "kept")) as ended:
                await asyncio.wait_for(gateway.ask("judge", ScriptedModel(["b"]), request("after")), 60)
            assert not isinstance(ended.value, StoreAwayError)
            with pytest.raises(AskanceError, match="cannot be reached") as refused:
                open_store(address)
            assert refused.value.exit_code == 1
        finally:
            cluster.start()
    with open_store(address) as store:
        assert len(store) == 1


async def test_a_store_whose_server_restarts_is_opened_when_it_is_back(
    address: str, cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_store, "_OPENING", 60.0)
    cluster.stop()
    opening = asyncio.create_task(asyncio.to_thread(open_store, address))
    await asyncio.sleep(0.5)
    is_waiting = not opening.done()
    await asyncio.to_thread(cluster.start)
    with await asyncio.wait_for(opening, 60) as store:
        assert is_waiting and len(store) == 0


# --- processes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("processes", [2, 4])
def test_processes_on_one_store_whose_connections_are_cut_pay_for_each_answer_once(
    processes: int, address: str, cluster: Any, askance_command: Any, world: Any, sandbox: Path
) -> None:
    data, *checklist = world.write(sandbox / "files")[:3]

    def slowly(body: dict[str, Any]) -> float:
        time.sleep(0.1)
        return float(world.serve(body))

    with StandInServer(slowly) as server:
        judge = judge_at(server.url, 24)
        command = ("evaluate", data, *checklist, *judge, "--store", address)
        running = [askance_command.start(*command) for _ in range(processes)]
        cuts = 0
        while len(server.bodies) < 40 and any(each.poll() is None for each in running):
            time.sleep(0.2)
            cuts += cluster.cut_connections()
        done = [askance_command.finish(each) for each in running]
        bodies = Counter(json.dumps(body, sort_keys=True) for body in server.bodies)
    assert [each.returncode for each in done] == [0] * processes, [each.stderr for each in done]
    found = [json.loads(each.stdout) for each in done]
    assert cuts >= processes and set(bodies.values()) == {1}, "an answer was bought twice"
    assert all(each["scores"] == found[0]["scores"] for each in found)
    assert sum(each["calls"] for each in found) == len(bodies) == len(open_store(address))
    assert cluster.sql(f"SELECT count(*) FROM {CLAIMS}", address) == [(0,)]


def test_what_a_killed_process_was_buying_is_bought_by_the_other(
    address: str, askance_command: Any, world: Any, sandbox: Path
) -> None:
    data, *checklist = world.write(sandbox / "files")[:3]
    killed = threading.Event()

    def slowly(body: dict[str, Any]) -> float:
        if not killed.is_set():
            killed.wait(30)
        return float(world.serve(body))

    with StandInServer(slowly) as server:
        judge = judge_at(server.url, 8)
        command = ("evaluate", data, *checklist, *judge, "--store", address)
        victim = askance_command.start(*command)
        until = time.monotonic() + 60
        while not server.bodies and time.monotonic() < until:
            time.sleep(0.05)
        other = askance_command.start(*command)
        os.kill(victim.pid, signal.SIGKILL)
        victim.communicate()
        killed.set()
        done = askance_command.finish(other)
        bodies = Counter(json.dumps(body, sort_keys=True) for body in server.bodies)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["calls"] == len(bodies)
    assert sum(bodies.values()) - len(bodies) <= 4, "only what was in flight is bought again"


def test_two_runs_on_one_store_pay_for_each_answer_once_and_are_resumed_without_it(
    address: str, askance_command: Any, world: Any, sandbox: Path
) -> None:
    data, *checklist = world.write(sandbox / "files")[:3]
    with StandInServer(world.serve) as server:
        judge = ["--model", "openai/judge", "--api-base", server.url, "--calibrate", "--embedder", "words", "--json"]
        command = ["align", data, *checklist, *judge, "--store", address, "--run"]
        running = [askance_command.start(*command, name) for name in ("one", "two")]
        done = [askance_command.finish(each) for each in running]
        bodies = Counter(json.dumps(body, sort_keys=True) for body in server.bodies)
        assert [each.returncode for each in done] == [0, 0], done[0].stderr + done[1].stderr
        results = [json.loads((sandbox / name / "result.json").read_text()) for name in ("one", "two")]
        again = askance_command("resume", "one", "--json")
        assert again.returncode == 0, again.stderr
        assert len(server.bodies) == bodies.total(), "its own file has all that it asked"
    assert set(bodies.values()) == {1}, "an answer was bought twice"
    assert results[0]["calibration"] == results[1]["calibration"] and results[0]["best"] == results[1]["best"]
    assert sum(each["calls"] for each in results) == len(bodies)
    for name in ("one", "two"):
        for file in (sandbox / name).rglob("*"):
            assert file.is_dir() or b"postgresql" not in file.read_bytes(), f"{file} holds the address"


# --- addresses and passwords ----------------------------------------------------------------------------------------


@pytest.fixture
def guarded(cluster: Any, address: str) -> Callable[[str], str]:
    """The address of a user whose password is ``s3cret/@:?#%``."""
    cluster.sql(
        "DO $$ BEGIN IF to_regrole('guarded') IS NULL THEN CREATE ROLE guarded LOGIN PASSWORD 's3cret/@:?#%'; END IF; END $$"
    )
    name = address.partition("@/")[2].partition("?")[0]
    return lambda password: f"postgresql://guarded{password}@/{name}?host={cluster.folder}"


def test_a_password_is_never_said(guarded: Callable[[str], str], address: str, cluster: Any) -> None:
    right = guarded(":s3cret%2F%40%3A%3F%23%25")
    assert "s3cret" not in f"{PostgresAddress(right)} {PostgresAddress(right)!r}"
    with open_store(right) as store:
        with pytest.raises(AskanceError, match=naming("the user")) as told:
            store.put(key(1), ANSWERS[0])
        assert "s3cret" not in str(told.value) and "guarded@" in str(told.value)
    cluster.sql("GRANT CREATE ON SCHEMA public TO guarded", address)
    with open_store(right) as store:
        store.put(key(1), ANSWERS[0])
    with pytest.raises(InputError, match="password authentication failed") as told:
        open_store(guarded(":wr0ng"))
    assert "wr0ng" not in str(told.value)


def test_the_password_may_be_in_the_environment(guarded: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="no password supplied"):
        open_store(guarded(""))
    monkeypatch.setenv("PGPASSWORD", "s3cret/@:?#%")
    open_store(guarded("")).close()
    monkeypatch.setenv("ASKANCE_STORE", guarded(""))
    store = open_store()
    assert isinstance(store, PostgresStore)
    store.close()


@pytest.mark.parametrize(
    "wrong",
    [
        "postgresql://me:s3cret/x@host/db",
        "postgresql://me:5432/s3cret@host/db",
        "postgresql://me:%zzs3cret@host/db",
        "postgresql://me@host/db?pasword=s3cret",
        "postgresql:/me:s3cret@host/db",
        "mysql://me:s3cret@host/db",
    ],
)
def test_what_is_no_address_is_refused_without_saying_it(
    wrong: str, cli: Callable[..., Any], world: Any, sandbox: Path
) -> None:
    data, *checklist = world.write(sandbox / "files")[:3]
    (sandbox / "askance.yaml").write_text(f"store: '{wrong}'\n", encoding="utf-8")
    for given in (["--store", wrong], ["--config", "askance.yaml"]):
        ran = cli(
            "evaluate", data, *checklist, "--model", "openai/judge", "--api-base", "http://127.0.0.1:9/v1", *given
        )
        assert ran.code == 2 and "store " in ran.err and "s3cret" not in ran.err + ran.out
    assert not [each for each in sandbox.iterdir() if "sql" in each.name]


def test_what_was_learned_of_a_model_is_shared_and_added_up(address: str) -> None:
    with PostgresStore(PostgresAddress(address)) as one, PostgresStore(PostgresAddress(address)) as other:
        assert one.learned("m") is None
        one.learn("m", ThinkingFacts(2_000, 1, 300))
        other.learn("m", ThinkingFacts(8_000, 2, 600))
        one.learn("m", ThinkingFacts(2_000, 1, 0))
        assert one.learned("m") == other.learned("m") == ThinkingFacts(8_000, 4, 900)
        assert other.learned("another") is None
