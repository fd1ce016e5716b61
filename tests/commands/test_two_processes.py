"""Two processes at the same work: no answer is paid twice, and no file is a mixture."""

from __future__ import annotations

import json
import os
import stat
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from askance.prompts.errors import AskanceError
from askance.prompts.text_files import write_whole
from askance.testing import StandInServer
from tests.conftest import judge_at

from ..said import says


def test_two_processes_on_one_store_pay_for_each_answer_once(askance_command: Any, world: Any, sandbox: Path) -> None:
    data, *checklist = world.write(sandbox / "files")[:3]

    def slowly(body: dict[str, Any]) -> float:
        time.sleep(0.03)
        return float(world.serve(body))

    with StandInServer(slowly) as server:
        judge = judge_at(server.url, 16)
        both = [askance_command.start("evaluate", data, *checklist, *judge, "-o", "verdicts.jsonl") for _ in range(2)]
        done = [askance_command.finish(each) for each in both]
        bodies = [json.dumps(body, sort_keys=True) for body in server.bodies]
    assert [each.returncode for each in done] == [0, 0], done[0].stderr + done[1].stderr
    assert len(bodies) == len(set(bodies)), "an answer was bought twice"
    found = [json.loads(each.stdout) for each in done]
    assert found[0]["scores"] == found[1]["scores"]
    assert sum(each["calls"] for each in found) == len(bodies)
    assert says(done[0].stderr + done[1].stderr, "Another process", "same answers")


def test_a_file_that_several_write_at_once_is_that_of_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow disk: each write is only finished when the others have begun theirs."""
    file, began = tmp_path / "out.jsonl", threading.Barrier(4)
    monkeypatch.setattr("os.fsync", lambda _: began.wait(timeout=10))
    texts = [f"{letter * 5}\n" * (1000 + 10 * place) for place, letter in enumerate("abcd")]
    writers = [threading.Thread(target=write_whole, args=(file, text)) for text in texts]
    for each in writers:
        each.start()
    for each in writers:
        each.join()
    assert file.read_text() in texts
    assert [each.name for each in tmp_path.iterdir()] == ["out.jsonl"]


def test_a_link_stays_and_what_it_points_to_is_written(tmp_path: Path) -> None:
    (tmp_path / "real.txt").write_text("before")
    (tmp_path / "link.txt").symlink_to("real.txt")
    write_whole(tmp_path / "link.txt", "after")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "after"
    (tmp_path / "itself").symlink_to("itself")
    with pytest.raises(AskanceError, match="itself: cannot be written"):
        write_whole(tmp_path / "itself", "text")
    assert (tmp_path / "itself").is_symlink()


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    write_whole(pipe, "text")
    reader.join(10)
    assert got == [b"text"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="there is no full device")
def test_a_full_device_is_a_sentence_and_is_not_replaced(tmp_path: Path) -> None:
    link = tmp_path / "full"  # so that no mistake here costs the machine its device
    link.symlink_to("/dev/full")
    with pytest.raises(AskanceError, match="full: cannot be written"):
        write_whole(link, "text")
    assert link.is_symlink()
    assert link.is_char_device()
