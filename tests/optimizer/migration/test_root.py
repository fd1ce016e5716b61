"""Whole migrations of prompts that write, on simulated writers whose compliance is known."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import askance
from askance.memory.certificate_file import read_certificate
from askance.models.base import Parameters, make_request
from askance.optimizer.migration.certificate import MigrationResult
from askance.optimizer.migration.inputs import prepare_writer
from askance.prompts.checklist import Checklist, dump_checklist, load_checklist
from askance.prompts.errors import InputError
from askance.testing import ServerReply, StandInServer
from tests.doubles import WritersJudge, WritersWorld

SMALL = {"max_iterations": 1, "split": (0.25, 0.25, 0.5), "explain": "never", "resamples": 200}


def moved(world: WritersWorld, run: Path, *targets: Any, **further: Any) -> MigrationResult:
    how: dict[str, Any] = {"judge": WritersJudge(world), "requirements": world.checklist, **SMALL, **further}
    found = askance.migrate(world.rows, prompt=world.prompt, source="recorded", target=targets, run=run, **how)
    assert isinstance(found, MigrationResult)
    return found


def test_each_target_gets_a_run_and_the_certificate_counts_what_its_outputs_keep(tmp_path: Path) -> None:
    world = WritersWorld(size=120, judge_wrong=0)
    targets = [world.writer("equal"), world.writer("worse")]
    found = moved(world, tmp_path / "run", *targets)
    assert [*found.certificate.targets] == ["simulated/equal", "simulated/worse"]
    written = map(json.loads, (tmp_path / "run/targets/simulated__worse/outputs.jsonl").read_text().splitlines())
    outputs = {row["id"]: row["output"] for row in written}
    test = [row["id"] for row in map(json.loads, (tmp_path / "run/inputs/examples.jsonl").read_text().splitlines())
            if row["metadata"]["split"] == "test"]  # fmt: skip
    kept = [len(world.kept(outputs[name])) / len(world.rules) for name in test]
    worse = found.certificate.targets["simulated/worse"]
    assert worse.pass_rate.after.value == pytest.approx(sum(kept) / len(kept))
    assert worse.difference.value == pytest.approx(worse.pass_rate.after.value - worse.pass_rate.old.value)  # type: ignore[operator]
    assert worse.decision == "not_yet"
    assert found.certificate.targets["simulated/equal"].decision != "not_yet"
    assert (tmp_path / "run/report.html").is_file()


def test_the_only_targets_prompt_stands_at_the_root_too(tmp_path: Path) -> None:
    world = WritersWorld(size=60)
    found = moved(world, tmp_path / "run", world.writer("equal"))
    prompt = found.certificate.targets["simulated/equal"].prompt
    assert (tmp_path / "run/prompt.md").read_text() == (tmp_path / "run" / prompt).read_text()


def test_going_on_with_a_finished_migration_buys_nothing_and_says_the_same(tmp_path: Path) -> None:
    world = WritersWorld(size=60)
    first = moved(world, tmp_path / "run", world.writer("weaker"))
    again = world.writer("weaker")
    second = moved(world, tmp_path / "run", again)
    assert again.calls == 0
    assert second.certificate == first.certificate


def test_requirements_need_somebody_who_agrees_and_nothing_is_bought_twice(tmp_path: Path) -> None:
    world, run = WritersWorld(size=60), tmp_path / "run"
    writer = world.writer("equal")
    with pytest.raises(InputError, match=r"requirements\.yaml"):
        moved(world, run, writer, requirements=None)
    assert not (run / "targets").exists()
    before = writer.calls
    proposed = load_checklist(run / "requirements.yaml")
    assert {"begins", "ends"} <= {each.id for each in proposed.checks}
    assert "clause" in {each.origin for each in proposed.checks} <= {"clause", "contract"}
    moved(world, run, writer, requirements=run / "requirements.yaml")
    development = 15
    assert before == development
    assert writer.calls >= 60


def test_other_requirements_than_the_agreed_ones_are_refused(tmp_path: Path) -> None:
    world = WritersWorld(size=60)
    moved(world, tmp_path / "run", world.writer("equal"))
    fewer = world.checklist.model_copy(update={"checks": world.checklist.checks[:1]})
    with pytest.raises(InputError, match="fixed"):
        moved(world, tmp_path / "run", world.writer("equal"), requirements=fewer)


def test_recorded_rows_need_an_output(tmp_path: Path) -> None:
    world = WritersWorld(size=60)
    rows = [*world.rows[:59], {**world.rows[59], "output": ""}]
    with pytest.raises(InputError, match="r0059"):
        askance.migrate(
            rows, prompt=world.prompt, source="recorded", target=world.writer("equal"), run=tmp_path / "r", yes=True
        )


def test_targets_must_have_names_of_their_own(tmp_path: Path) -> None:
    world = WritersWorld(size=60)
    with pytest.raises(InputError, match="simulated/equal"):
        moved(world, tmp_path / "run", world.writer("equal"), world.writer("equal"))


def test_a_model_may_write_the_old_outputs(tmp_path: Path) -> None:
    world, old = WritersWorld(size=60), WritersWorld(size=60).writer("old")
    rows = [{"id": row["id"], "input": row["input"]} for row in world.rows]
    how: dict[str, Any] = {"judge": WritersJudge(world), "requirements": world.checklist, **SMALL}
    found = askance.migrate(
        rows, prompt=world.prompt, source=old, target=world.writer("equal"), run=tmp_path / "run", **how
    )
    assert isinstance(found, MigrationResult)
    assert old.calls == 60
    assert found.certificate.source == "simulated/old"
    assert len((tmp_path / "run/outputs.jsonl").read_text().splitlines()) == 60


def test_a_second_judge_that_sees_a_loss_makes_adopt_undecided() -> None:
    from askance.optimizer.migration.certificate import guarded
    from askance.optimizer.migration.decision import MigrationDecision
    from askance.stats.noninferiority import mean_limits

    limits = mean_limits([0.0] * 80)
    adopt = MigrationDecision("adopt", "Adopt.", limits, ())
    not_yet = MigrationDecision("not_yet", "Not yet.", limits, ("a",))
    assert guarded(adopt, not_yet, "K").answer == "undecided"
    assert guarded(adopt, adopt, "K") is adopt
    assert guarded(not_yet, adopt, "K") is not_yet


class _Served:
    """A server of the writers and the judge of a world; the writer behind the name ``new`` can be exchanged."""

    def __init__(self, world: WritersWorld) -> None:
        self.world, self.judge, self.new = world, WritersJudge(world), world.writer("equal")
        self.down = False

    def __call__(self, body: Mapping[str, Any]) -> ServerReply:
        if self.down:
            return 401, {"error": {"message": "no such key"}}, {}
        messages = [(each["role"], each["content"]) for each in body["messages"]]
        if body["model"] == "new":
            return self.new.text(make_request("new", messages, Parameters(256)))
        if body.get("max_tokens", 1) > 20:
            schema = body.get("response_format", {}).get("json_schema", {}).get("schema", {})
            request = make_request("judge", messages, Parameters(200, schema=schema))
            return self.judge.helped(request, schema.get("properties", {})) or "none"
        return self.judge.p_asked(make_request("judge", messages, Parameters(1)))


@pytest.fixture
def served(tmp_path: Path) -> Any:
    world = WritersWorld(size=240, judge_wrong=0)
    data = tmp_path / "data.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in world.rows))
    (tmp_path / "writer.md").write_text(world.prompt.text)
    (tmp_path / "requirements.yaml").write_text(dump_checklist(world.checklist))
    served = _Served(world)
    with StandInServer(served) as server:
        yield served, server, tmp_path


def asked(where: Path, url: str, *further: str) -> list[str]:
    given = [str(where / "data.jsonl"), "--prompt", str(where / "writer.md"), "--source", "recorded"]
    given += ["--target", "openai/new", "--judge", "openai/judge", "--run", str(where / "run"), "--api-base", url]
    small = ["--max-iterations", "1", "--split", "0.1", "0.1", "0.8", "--explain", "never", "--max-loss", "0.08"]
    return ["migrate", *given, *small, "--no-cache", "--json", "--quiet", *further]


def test_a_certificate_is_verified_and_a_silent_change_of_the_model_is_seen(served: Any, cli: Any) -> None:
    script, server, where = served
    run = where / "run"
    done = cli(*asked(where, server.url, "--requirements", str(where / "requirements.yaml")))
    assert done.code == 0, done.err
    assert json.loads(done.out)["targets"]["openai/new"]["decision"] == "adopt"

    verify = ["migrate", "--verify", str(run), "--json", "--quiet"]
    still = cli(*verify)
    assert still.code == 0, still.err
    assert json.loads(still.out)["gate"]["holds"] is True

    script.new = script.world.writer("worse")
    changed = cli(*verify)
    assert changed.code == 1
    assert json.loads(changed.out)["gate"]["not_yet"] == ["openai/new"]
    assert read_certificate(run).looks == 3
    assert [each.targets["openai/new"].decision for each in read_certificate(run).verified] == ["adopt", "not_yet"]

    script.down = True
    down = cli(*verify)
    assert down.code == 4
    assert read_certificate(run).looks == 3


def test_without_yes_or_requirements_the_command_ends_with_2_and_keeps_what_it_bought(served: Any, cli: Any) -> None:
    _, server, where = served
    done = cli(*asked(where, server.url))
    assert done.code == 2
    assert "--yes" in done.err
    assert (where / "run/requirements.yaml").is_file()
    assert (where / "run/verdicts.db").is_file()


def test_a_prompt_without_variables_must_be_said_to_write_or_to_judge(served: Any, cli: Any) -> None:
    _, server, where = served
    (where / "writer.md").write_text("Answer the request.")
    done = cli(*asked(where, server.url))
    assert done.code == 2
    assert "--kind" in done.err


def test_settings_of_the_other_kind_are_refused(served: Any, cli: Any) -> None:
    _, server, where = served
    done = cli(*asked(where, server.url, "--margin", "0.2"))
    assert done.code == 2
    assert "--margin" in done.err


def test_the_directory_keeps_how_named_targets_are_reached(tmp_path: Path) -> None:
    world = WritersWorld(size=60)
    checks = {"checks": [each.model_dump() for each in world.checklist.checks]}
    named = {"models": {"new": {"model": "openai/new", "api_base": "http://127.0.0.1:9"}}}
    inputs = ("recorded", ["new"], None, None, None, Checklist.model_validate(checks), None, None)
    assert (
        prepare_writer(world.rows, world.prompt, *inputs, options=named)
        .config["models"]["new"]["api_base"]
        .endswith(":9")
    )
