from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from contextlib import closing, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from askance.memory import verdict_store
from askance.memory.answer_rows import COLUMNS
from askance.memory.salvage import is_cut_off, salvage
from askance.memory.verdict_store import SCHEMA_VERSION, VerdictStore
from askance.models.base import Answer
from askance.prompts.errors import AskanceError, InputError
from tests.said import naming, says

PLAIN = Answer("Yes", None, 10, 1, 0.25, "stop")
WITH_LOGPROBS = Answer("No", (("No", (("No", -0.1054), (" Yes", -2.3026))), (".", ((".", -0.5),))), 3, 2)


def key(number: int) -> bytes:
    return number.to_bytes(32, "big")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store" / "verdicts.db"


@pytest.mark.parametrize(
    "answer",
    [
        PLAIN,
        WITH_LOGPROBS,
        Answer("是的 — é\n\x00", ((" 是", ((" 是", -0.1), ("否", -9.0))),)),
        Answer("half a pair \ud83d", (("\ud83d", (("\ud83d", -0.1),)),), finish="length"),
        Answer("Yes", finish="length", completion_tokens=131, reasoning_tokens=130),
        Answer("Yes", finish="a word of its own thought=no number"),
    ],
)
def test_an_answer_comes_back_as_it_was_put_in(path: Path, answer: Answer) -> None:
    with VerdictStore(path) as store:
        store.put(key(1), answer)
        assert store.get(key(1)) == answer
    with VerdictStore(path) as store:
        assert store.get(key(1)) == answer


def test_an_answer_that_is_not_there_is_none(path: Path) -> None:
    with VerdictStore(path) as store:
        store.put(key(1), PLAIN)
        assert store.get(key(2)) is None
        assert store.get_many([]) == {}


def test_more_answers_than_fit_one_query_are_found(path: Path) -> None:
    with VerdictStore(path) as store:
        for number in range(1203):
            store.put(key(number), Answer(str(number)))
        found = store.get_many([key(number) for number in range(1300)])
        assert len(found) == len(store) == 1203
        assert found[key(777)].text == "777"


def test_the_first_answer_to_a_request_stays(path: Path) -> None:
    with VerdictStore(path) as store:
        store.put(key(1), PLAIN)
        store.put(key(1), Answer("another"))
        assert store.get(key(1)) == PLAIN


def test_an_answer_survives_a_process_that_is_killed_right_after(path: Path) -> None:
    program = textwrap.dedent(f"""
        import os, signal
        from askance.memory.verdict_store import VerdictStore
        from askance.models.base import Answer
        store = VerdictStore({str(path)!r})
        for number in range(20):
            store.put(number.to_bytes(32, "big"), Answer(str(number)))
        os.kill(os.getpid(), signal.SIGKILL)
    """)
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == -9
    with VerdictStore(path) as store:
        assert len(store) == 20


def test_two_processes_may_use_one_store(path: Path) -> None:
    with VerdictStore(path) as one, VerdictStore(path) as other:
        one.put(key(1), PLAIN)
        assert other.get(key(1)) == PLAIN
        other.put(key(2), WITH_LOGPROBS)
        assert one.get(key(2)) == WITH_LOGPROBS


def test_a_store_in_memory_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with VerdictStore(":memory:") as store:
        store.put(key(1), PLAIN)
        assert store.get(key(1)) == PLAIN
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_store_is_refused_and_left_alone(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"something else entirely, and longer than a header " * 50)
    before = path.read_bytes()
    with pytest.raises(InputError, match=r"verdicts\.db.*Move it away"):
        VerdictStore(path)
    assert path.read_bytes() == before


def test_a_damaged_page_is_a_sentence_when_it_is_read(path: Path) -> None:
    with VerdictStore(path) as store:
        for number in range(2000):
            store.put(key(number), WITH_LOGPROBS)
    data = bytearray(path.read_bytes())
    data[8192:] = b"\xff" * (len(data) - 8192)
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"verdicts\.db"), VerdictStore(path) as store:
        store.get_many([key(number) for number in range(2000)])


def test_a_store_of_a_newer_askance_is_refused(path: Path) -> None:
    VerdictStore(path).close()
    db = sqlite3.connect(path)
    db.execute(f"PRAGMA user_version={SCHEMA_VERSION + 1}")
    db.close()
    with pytest.raises(InputError, match="newer askance"):
        VerdictStore(path)


def test_a_folder_that_cannot_be_made_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(AskanceError, match="cannot be written"):
        VerdictStore(tmp_path / "file" / "verdicts.db")


def test_a_full_disk_is_a_sentence_and_keeps_what_was_there(path: Path) -> None:
    with VerdictStore(path) as store:
        store.put(key(1), PLAIN)
        pages = store._db.execute("PRAGMA page_count").fetchone()[0]
        store._db.execute(f"PRAGMA max_page_count={pages + 2}")

        def fill() -> None:
            for number in range(2, 400):
                store.put(key(number), Answer("x" * 500))

        with pytest.raises(AskanceError, match=naming("disk is full", "kept")):
            fill()
        assert store.get(key(1)) == PLAIN


def test_answers_that_are_brought_are_known_and_the_other_store_is_only_read(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    with VerdictStore(other) as store:
        store.put(key(1), PLAIN)
        store.put(key(2), WITH_LOGPROBS)
    before = other.read_bytes()
    with VerdictStore(path) as store:
        assert store.brought == frozenset()
        store.put(key(1), Answer("mine"))
        for _ in range(2):
            store.bring(other)
        assert store.get_many([key(1), key(2)]) == {key(1): Answer("mine"), key(2): WITH_LOGPROBS}
    with VerdictStore(path) as store:
        assert store.brought == {key(2)}
        store.forget([key(2)])
        store.put(key(2), PLAIN)
        assert store.brought == frozenset()
    assert other.read_bytes() == before and sorted(each.name for each in tmp_path.iterdir()) == ["other.db", "store"]


def test_a_damaged_store_brings_nothing(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    other.write_bytes(b"no store at all" * 100)
    with VerdictStore(path) as store:
        with pytest.raises(InputError, match=r"other\.db.*damaged"):
            store.bring(other)
        assert len(store) == 0 and store.brought == frozenset()


def test_an_empty_answer_of_an_earlier_version_is_as_if_it_were_not_there(tmp_path: Path) -> None:
    old, path = tmp_path / "old.db", tmp_path / "verdicts.db"
    for file in (old, path):
        with VerdictStore(file) as store:
            store.put(key(1), Answer(" \n\u00a0"))
            store.put(key(2), PLAIN)
    with VerdictStore(path, old) as store:
        assert store.get_many([key(1), key(2)]) == {key(2): PLAIN}
        store.put(key(1), WITH_LOGPROBS)
        assert store.get(key(1)) == WITH_LOGPROBS
        store.put(key(1), PLAIN)
        assert store.get(key(1)) == WITH_LOGPROBS, "an answer that is one is never replaced"
    with VerdictStore(tmp_path / "new.db") as store:
        store.bring(old)
        assert store.brought == {key(2)}


def hashed(number: int) -> bytes:
    return sha256(str(number).encode()).digest()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("whole") / "verdicts.db"
    with VerdictStore(file) as store:
        for number in range(2000):
            store.put(hashed(number), Answer(f"Yes {number} " + "because " * 20))
    return file


@settings(max_examples=12, deadline=None)
@example(share=0.125)
@example(share=0.736931746969146)
@given(share=st.floats(0, 1))
def test_a_store_cut_off_anywhere_opens_with_what_is_left_or_says_that_it_is_none(whole: Path, share: float) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "verdicts.db"
        path.write_bytes(whole.read_bytes()[: int(share * whole.stat().st_size)])
        if share < 0.2:  # not one answer may be left
            with suppress(InputError), VerdictStore(path) as store:
                assert len(store) < 600
            return
        store = VerdictStore(path)
        with store:
            found = store.get_many([hashed(number) for number in range(2000)])
            assert all(each.text.endswith("because " * 20) for each in found.values())
            assert (
                len(found) == len(store) >= (share - 0.1) ** 2 * 2000
            )  # a page that is there may hang on one that is not
            store.put(hashed(-1), PLAIN)
            assert store.get(hashed(-1)) == PLAIN


def test_a_truncated_store_is_salvaged_and_kept_and_said(whole: Path, path: Path, caplog: Any) -> None:
    path.parent.mkdir()
    half = whole.read_bytes()[: whole.stat().st_size // 2]
    path.write_bytes(half)
    with VerdictStore(path) as store:
        found = store.get_many([hashed(number) for number in range(2000)])
        assert 400 < len(found) < 1200
        assert all(
            found.get(hashed(n), Answer(f"Yes {n} " + "because " * 20)).text.startswith(f"Yes {n} ")
            for n in range(2000)
        )
    assert path.with_name("verdicts.db.damaged").read_bytes() == half
    assert says(caplog.text, len(found), "answers", "kept")
    assert [each.name for each in path.parent.iterdir() if "salvaged" in each.name] == []
    caplog.clear()
    with VerdictStore(path) as store:
        assert len(store) == len(found)
    assert caplog.text == ""


def test_a_store_with_a_hole_keeps_what_is_on_both_sides(whole: Path, path: Path) -> None:
    path.parent.mkdir()
    data = whole.read_bytes()
    path.write_bytes(data[:8192] + bytes(4096) + data[12288:-4096])
    with VerdictStore(path) as store:
        assert 1800 < len(store) < 2000


# --- lost and torn pages --------------------------------------------------------------------------------------------

PAGE = 4096


def salvaged(path: Path) -> bool:
    return salvage(path, verdict_store._SCHEMA, COLUMNS, SCHEMA_VERSION)


def kept_in(path: Path) -> dict[bytes, Answer]:
    with VerdictStore(path) as store:
        return {row[0]: store.get_many([row[0]])[row[0]] for row in store._db.execute("SELECT key FROM answers")}


def original(number: int) -> Answer:
    return Answer(f"Yes {number} " + "because " * 20)


@pytest.fixture(scope="module")
def leaves(whole: Path) -> dict[int, set[int]]:
    """By page, the answers on it, looked for in the bytes of the file; only pages on which no others hang."""
    data, found = whole.read_bytes(), {}
    for place in range(PAGE, len(data), PAGE):
        if data[place] == 10:  # a leaf of an index, in SQLite's file format
            numbers = {number for number in range(2000) if hashed(number) in data[place : place + PAGE]}
            if numbers:
                found[place] = numbers
    assert len(found) > 80
    return found


@pytest.mark.parametrize("with_what", [b"\0", b"\xff", b"yes\n"], ids=["zeros", "ones", "words"])
@pytest.mark.parametrize("which", [0, 7, -1])
def test_all_rows_are_salvaged_but_those_on_the_lost_page(
    which: int, with_what: bytes, whole: Path, leaves: dict[int, set[int]], path: Path
) -> None:
    place = sorted(leaves)[which]
    path.parent.mkdir()
    data = bytearray(whole.read_bytes())
    data[place : place + PAGE] = (with_what * PAGE)[:PAGE]
    path.write_bytes(data)
    assert salvaged(path)
    assert kept_in(path) == {hashed(n): original(n) for n in range(2000) if n not in leaves[place]}
    assert path.with_name("verdicts.db.damaged").read_bytes() == data


def test_of_a_store_with_many_lost_pages_no_other_row_comes_out(
    whole: Path, leaves: dict[int, set[int]], path: Path
) -> None:
    lost = sorted(leaves)[3:60:4]
    path.parent.mkdir()
    data = bytearray(whole.read_bytes())
    for place in lost:
        data[place : place + PAGE] = bytes(PAGE)
    path.write_bytes(data)
    assert salvaged(path)
    found, gone = kept_in(path), set().union(*(leaves[place] for place in lost))
    assert found.items() <= {hashed(n): original(n) for n in range(2000) if n not in gone}.items()
    assert len(found) > 0.8 * (2000 - len(gone))


@pytest.mark.parametrize("answer", [Answer("Yes", None, 10, 1, 0.123456, ""), Answer("No", WITH_LOGPROBS.logprobs)])
def test_a_page_that_was_torn_anywhere_gives_no_row_with_zeros_in_it(
    path: Path, tmp_path: Path, answer: Answer
) -> None:
    """What a page lacks SQLite reads as zeros: half a price, or half a text, would be a row."""
    with VerdictStore(tmp_path / "made.db") as store:
        for number in range(150):
            store.put(hashed(number), answer)
    data = (tmp_path / "made.db").read_bytes()
    assert len(data) % PAGE == 0
    path.parent.mkdir()
    some = 0
    for short in (1, 2, 3, 5, 8, 13, 40, 100, 2000, PAGE - 1, PAGE + 3, 2 * PAGE + 9):
        path.write_bytes(data[:-short])
        if salvaged(path):
            found = kept_in(path)
            assert set(found.values()) <= {answer} and found.keys() <= {hashed(number) for number in range(150)}
            some += len(found) > 20
    assert some > 5


def test_answers_that_lost_what_they_hold_are_no_answers(path: Path) -> None:
    bad = {"text": "Yes\0\0", "finish": "st\0\0", "logprobs": '[["Yes",["Yes"', "other": '{"a": 1}', "number": "7"}
    with VerdictStore(path) as store:
        for number, (what, value) in enumerate([*bad.items(), ("nothing", "")]):
            store.put(key(number), WITH_LOGPROBS)
            column = what if what in ("text", "finish") else "logprobs"
            if what != "nothing":
                store._db.execute(f"UPDATE answers SET {column} = ? WHERE key = ?", (value, key(number)))
    assert salvaged(path)
    assert kept_in(path) == {key(len(bad)): WITH_LOGPROBS}


@pytest.mark.parametrize("first", [b"\x00", b"\x7f", b"\xfe", b"\xff"])
def test_every_key_is_salvaged_whatever_it_begins_with(first: bytes, path: Path) -> None:
    keys = [first + bytes([last]) * 31 for last in (0, 1, 255)]
    with VerdictStore(path) as store:
        for each in keys:
            store.put(each, PLAIN)
    assert salvaged(path)
    assert kept_in(path) == dict.fromkeys(keys, PLAIN)


def test_what_is_in_the_log_alone_is_salvaged_too(path: Path, tmp_path: Path) -> None:
    path.parent.mkdir()
    with VerdictStore(tmp_path / "open.db") as store:
        for number in range(50):
            store.put(key(number), PLAIN)
        for end in ("", "-wal"):
            shutil.copyfile(tmp_path / f"open.db{end}", path.with_name(path.name + end))
    assert salvaged(path)
    assert kept_in(path) == {key(number): PLAIN for number in range(50)}
    assert path.with_name("verdicts.db.damaged-wal").exists() and not path.with_name("verdicts.db-wal").exists()


def test_what_was_brought_stays_known_as_brought(path: Path, tmp_path: Path) -> None:
    with VerdictStore(tmp_path / "other.db") as other:
        other.put(key(1), PLAIN)
    with VerdictStore(path) as store:
        store.put(key(2), PLAIN)
        store.bring(tmp_path / "other.db")
    assert salvaged(path)
    with VerdictStore(path) as store:
        assert store.brought == {key(1)} and len(store) == 2


def test_each_damaged_file_is_kept_under_a_name_of_its_own(path: Path) -> None:
    for number in range(3):
        with VerdictStore(path) as store:
            store.put(key(number), PLAIN)
        before = path.read_bytes()
        assert salvaged(path)
        aside = path.with_name("verdicts.db.damaged" + f"-{number + 1}" * (number > 0))
        assert aside.read_bytes() == before
    assert len([*path.parent.iterdir()]) == 4


def test_a_store_without_one_answer_that_can_be_read_is_left_alone(path: Path) -> None:
    with VerdictStore(path) as store:
        store.learn("m", verdict_store.ThinkingFacts(1))
    before = path.read_bytes()
    assert not salvaged(path)
    assert path.read_bytes() == before and [each.name for each in path.parent.iterdir()] == ["verdicts.db"]


@pytest.mark.parametrize("size", [512, 4096, 65536])
def test_a_file_is_cut_off_where_a_page_or_a_part_of_one_is_missing(size: int, tmp_path: Path) -> None:
    path = tmp_path / "v.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA page_size={size}")
        db.executescript(verdict_store._SCHEMA)
        db.execute(f"PRAGMA user_version={SCHEMA_VERSION}")
    with VerdictStore(path) as store:
        for number in range(20):
            store.put(key(number), Answer("x" * 3000))
    data = path.read_bytes()
    assert len(data) % size == 0 and not is_cut_off(path)
    for left in (len(data) - 1, len(data) - size, 100):
        path.write_bytes(data[:left])
        assert is_cut_off(path)
    path.write_bytes(data + bytes(10))
    assert not is_cut_off(path) and not is_cut_off(tmp_path / "nowhere.db")
    path.write_bytes(data)
    assert salvaged(path) and len(kept_in(path)) == 20


# --- stores of others -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "version"),
    [
        ("CREATE TABLE moz_places (id INTEGER PRIMARY KEY, url TEXT); INSERT INTO moz_places VALUES (1, 'x');", 0),
        ("CREATE TABLE moz_places (id INTEGER PRIMARY KEY, url TEXT);", SCHEMA_VERSION),
        ("CREATE TABLE answers (id INTEGER PRIMARY KEY, text TEXT); INSERT INTO answers VALUES (1, 'x');", 0),
        ("CREATE TABLE answers (key BLOB PRIMARY KEY, text TEXT);", SCHEMA_VERSION),
        (verdict_store._SCHEMA, SCHEMA_VERSION + 1),
        (verdict_store._SCHEMA + "INSERT INTO answers VALUES (x'01', 'Yes', NULL, 1, 1, 0.1, 'stop');", 99),
        ("CREATE TABLE verdicts (a TEXT);", 7),
    ],
)
def test_a_database_of_another_program_or_version_is_refused_and_not_one_byte_of_it_changes(
    schema: str, version: int, path: Path
) -> None:
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as db:
        db.executescript(schema)
        db.execute(f"PRAGMA user_version={version}")
    before = path.read_bytes()
    with pytest.raises(InputError, match=naming("verdicts.db")):
        VerdictStore(path)
    assert path.read_bytes() == before
    assert [each.name for each in path.parent.iterdir()] == ["verdicts.db"], "and nothing beside it"


@pytest.mark.parametrize("made", range(4))
def test_a_store_whose_making_was_interrupted_is_made_to_its_end(made: int, path: Path) -> None:
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as db:
        for statement in verdict_store._SCHEMA.split(";")[:made]:
            db.execute(statement)
    with VerdictStore(path) as store:
        store.put(key(1), PLAIN)
        assert store.get(key(1)) == PLAIN


# --- copies of rows -------------------------------------------------------------------------------------------------


class Interrupt(BaseException):
    """Somebody ends the program."""


@pytest.mark.parametrize("kind", [Interrupt, sqlite3.DatabaseError("malformed"), ValueError("defect")])
def test_a_copy_that_breaks_off_is_undone_and_the_store_goes_on(
    kind: Any, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with VerdictStore(tmp_path / "other.db") as other:
        for number in range(20):
            other.put(key(number), PLAIN)
    whole_copy = verdict_store._ReadOnly.all_rows

    def breaks_off(self: Any) -> Iterator[Any]:
        for number, row in enumerate(whole_copy(self)):
            if number == 15:
                raise kind
            yield row

    with VerdictStore(path) as store, VerdictStore(path) as another:
        store.put(key(99), PLAIN)
        monkeypatch.setattr(verdict_store._ReadOnly, "all_rows", breaks_off)
        with pytest.raises((Interrupt, InputError, ValueError)):
            store.bring(tmp_path / "other.db")
        assert len(store) == 1 and store.brought == frozenset()
        another._db.execute("PRAGMA busy_timeout = 100")
        another.put(key(98), PLAIN)  # no half of a copy holds the file
        store.put(key(97), PLAIN)
        assert another.get(key(97)) == PLAIN == store.get(key(98))
        monkeypatch.undo()
        store.bring(tmp_path / "other.db")
        assert len(store) == 23 and store.brought == {key(number) for number in range(20)}


def test_a_store_that_is_damaged_in_its_middle_brings_nothing(
    whole: Path, leaves: Any, path: Path, tmp_path: Path
) -> None:
    data, place = bytearray(whole.read_bytes()), sorted(leaves)[50]
    data[place : place + PAGE] = b"\xff" * PAGE
    (tmp_path / "other.db").write_bytes(data)
    with VerdictStore(path) as store:
        with pytest.raises(InputError, match=naming("other.db")):
            store.bring(tmp_path / "other.db")
        assert len(store) == 0 and store.brought == frozenset()
        store.put(key(1), PLAIN)
    with VerdictStore(path) as store:
        assert store.get(key(1)) == PLAIN and len(store) == 1


def test_what_a_shared_store_has_is_copied_once_and_what_is_here_already_is_not_brought(
    path: Path, tmp_path: Path
) -> None:
    shared = tmp_path / "shared.db"
    with VerdictStore(shared) as store:
        for number in (1, 2, 3):
            store.put(key(number), WITH_LOGPROBS)
    with VerdictStore(path, shared=shared, is_ours=True) as run:
        run.put(key(1), PLAIN)
        run.put(key(4), PLAIN)
        wanted = {key(1): PLAIN, key(2): WITH_LOGPROBS, key(4): PLAIN}
        for _ in "12":
            assert run.get_many([key(number) for number in (1, 2, 4, 5)]) == wanted
        assert run.brought == {key(2)} and len(run) == 3
    with VerdictStore(shared) as store:
        assert store.get(key(1)) == WITH_LOGPROBS and store.get(key(4)) == PLAIN
    with VerdictStore(path) as alone:
        assert alone.brought == {key(2)} and alone.get_many([*wanted]) == wanted


@pytest.mark.parametrize("count", [1, 499, 500, 501, 1000, 1001])
def test_every_answer_is_found_however_many_are_asked_for(count: int, whole: Path) -> None:
    with VerdictStore(whole, is_ours=True) as store:
        wanted = [hashed(number) for number in range(count)]
        assert {*store.get_many([*wanted, hashed(-1)])} == {*wanted}
