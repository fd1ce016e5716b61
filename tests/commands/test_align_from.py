"""``askance align --from``: a run that goes on from the prompt, the lessons and the answers of an earlier one."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from askance.testing import StandInServer

from ..said import says
from .conftest import CommandLine

HOW = ["--embedder", "words", "--resamples", "200", "--alpha", "0.2", "--no-trial", "--no-prune"]


class Place(CommandLine):
    """A run of align on the first 30 of 40 examples, and the command line."""

    def align(self, *more: str) -> tuple[int, str, str]:
        return self("align", self.data, "--api-base", self.server.url, "--quiet", *HOW, *more)


@pytest.fixture
def place(world: Any, sandbox: Path, server: StandInServer, cli: Any) -> Place:
    data, _, checklist, *_ = world.write(sandbox / "files")
    here = Place(cli, server, data)
    start = ["--checklist", checklist, "--model", "openai/target", "--prompt", "files/prompt.md", "--limit", "30"]
    assert here.align(*start, "--max-iterations", "1", "--run", "run")[0] == 0
    return here


def result(run: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(run, "result.json").read_text(encoding="utf-8"))
    return found


def test_it_begins_with_the_prompt_and_the_lessons_and_reads_on(place: Place) -> None:
    asked = len(place.server.bodies)
    before = result("run")
    assert before["accepted_edits"] and before["lessons"]
    code, dry, _ = place.align("--from", "run", "--run", "more", "--dry-run", "--json")
    assert code == 0 and len(place.server.bodies) == asked and not Path("more").exists()
    assert json.loads(dry)["calls"] == 10 * 2
    code, _, _ = place.align("--from", "run", "--run", "more")
    assert code == 0
    after = result("more")
    assert after["baseline"]["prompt"] == before["best"]["prompt"]
    kept = {row["id"]: row for row in after["lessons"]}
    assert all(set(row["evidence"]) <= set(kept[row["id"]]["evidence"]) for row in before["lessons"])
    assert len(kept) == len(after["lessons"])
    bodies = [json.dumps(each, sort_keys=True) for each in place.server.bodies]
    assert not {*bodies[:asked]} & {*bodies[asked:]}
    code, out, _ = place("show", "more")
    assert code == 0 and "at the start" in out


def test_the_same_command_on_it_asks_nothing_and_counts_the_same(place: Place) -> None:
    place.align("--from", "run", "--run", "more")
    first, asked = result("more"), len(place.server.bodies)
    Path("more/result.json").unlink()
    shutil.rmtree("run")
    code, _, _ = place("resume", "more", "--quiet")
    assert code == 0 and len(place.server.bodies) == asked
    assert result("more") == first


@pytest.mark.parametrize("name", ["checklist", "prompt"])
def test_a_part_beside_it_is_a_usage_error(place: Place, name: str) -> None:
    code, _, err = place.align("--from", "run", "--run", "more", f"--{name}", "files/x")
    assert code == 2 and f"--from brings its own {name}; leave out --{name}, or --from." in err


def test_the_file_of_a_project_does_not_change_the_judge(place: Place, caplog: Any) -> None:
    kept = "checklist: nowhere.yaml\nmodel: openai/other\nmode: batched\nseed: 7\nmax_iterations: 1\nfrom_run: run\n"
    Path("askance.yaml").write_text(kept, encoding="utf-8")
    code, out, _ = place.align("--config", "askance.yaml", "--run", "more", "--dry-run", "--json")
    assert code == 0 and json.loads(out)["calls"] == 20
    assert "as it was kept" not in caplog.text


def test_a_run_that_was_made_longer_and_killed_is_not_gone_on_from_and_shown_as_what_it_came_to_before(
    place: Place,
) -> None:
    journal = Path("run/journal.jsonl")
    finished = journal.read_text(encoding="utf-8")
    _, out, err = place("show", "run")
    assert "disagreements: e0" in out and "(s)" not in out and "not finished since" not in err
    read = {"event": "disagreements", "iteration": 2, "found": 1, "verdicts": 18, "read": []}
    at = len(finished.splitlines()) - 3
    rows = [{"event": "diverged", "at": at, "from": "stopped"}, read]
    journal.write_text(finished + "".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    code, _, err = place.align("--from", "run", "--run", "more")
    assert code == 2 and says(err, "not finished", "askance resume run") and not Path("more").exists()
    code, out, err = place("show", "run")
    assert code == 0 and "(--max-iterations)" in out and says(err, "not finished", "askance resume run")
    assert place("resume", "run", "--quiet", "--max-iterations", "2")[0] == 0
    assert "not finished since" not in place("show", "run")[2]
    assert place.align("--from", "run", "--run", "more")[0] == 0


def test_what_cannot_be_gone_on_from_ends_with_2_and_is_named(place: Place, letters: Any, tmp_path: Path) -> None:
    asked = len(place.server.bodies)
    letters.tune(tmp_path / "tuned")
    code, _, err = place.align("--from", str(tmp_path / "tuned"), "--run", "more")
    assert code == 2 and "a run of tune improves no judge" in err
    code, _, err = place.align("--from", "nowhere", "--run", "more")
    assert code == 2 and says(err, "nowhere", "no such judge")
    code, _, err = place.align("--from", "run", "--run", "run")
    assert code == 2 and says(err, "another --run directory")
    file = Path("run/judge.yaml")
    file.write_text(file.read_text(encoding="utf-8").replace("  mode: each", "  mode: never"), encoding="utf-8")
    code, _, err = place.align("--from", "run", "--run", "more")
    assert code == 2 and "run/judge.yaml, field 'settings': mode: must be" in err
    assert len(place.server.bodies) == asked and not Path("more").exists()
