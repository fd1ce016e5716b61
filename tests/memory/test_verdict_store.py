from __future__ import annotations

import sqlite3
import subprocess
import sys
import tempfile
import textwrap
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from askance.memory.verdict_store import SCHEMA_VERSION, VerdictStore
from askance.models.base import Answer
from askance.prompts.errors import AskanceError, InputError

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

        with pytest.raises(AskanceError, match=r"the disk is full.*run the command again"):
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
    assert f"The {len(found)} answers that could be read are kept" in caplog.text
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
