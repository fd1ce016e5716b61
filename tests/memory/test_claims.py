from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from askance.memory import claims
from askance.memory.verdict_store import VerdictStore

KEY = b"k" * 32


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "verdicts.db"


def claimed_by(path: Path, owner: str) -> None:
    """As if another process had claimed the key."""
    with VerdictStore(path) as store:
        assert store.claim(KEY)
        store._db.execute("UPDATE claims SET owner = ?", (owner,))


def test_what_is_claimed_is_free_again_when_it_is_let_go(path: Path) -> None:
    with VerdictStore(path) as mine, VerdictStore(path) as other:
        other._claims._host = "elsewhere"
        assert mine.claim(KEY) and mine.claim(KEY)
        assert not other.claim(KEY)
        other.let_go([KEY])
        assert not other.claim(KEY), "it was not its own to let go"
        mine.let_go([KEY])
        assert other.claim(KEY) and not mine.claim(KEY)


def test_the_claim_of_a_process_that_has_ended_holds_nobody_up(path: Path) -> None:
    code = f"from askance.memory.verdict_store import VerdictStore; assert VerdictStore({str(path)!r}).claim({KEY!r})"
    subprocess.run([sys.executable, "-c", code], check=True)
    with VerdictStore(path) as store:
        assert store._db.execute("SELECT count(*) FROM claims").fetchone()[0] == 1
        assert store.claim(KEY)


@pytest.mark.parametrize("owner", ["elsewhere/1", "no owner at all"])
def test_the_claim_of_who_cannot_be_asked_holds_for_a_while(
    path: Path, owner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    claimed_by(path, owner)
    with VerdictStore(path) as store:
        assert not store.claim(KEY)
        now = claims.time.time()
        monkeypatch.setattr(claims.time, "time", lambda: now + claims.LEASE + 1)
        assert store.claim(KEY)
