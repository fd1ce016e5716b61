"""The loop with people: ``tune`` writes, people say what they think of it, ``tune --from`` goes on with that."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import askance
from askance.cli import cli
from askance.labelling.label_session import outputs_of_run
from askance.memory.run_directory import RunDirectory
from askance.models.base import Answer, Request
from askance.models.budget import CAPS
from askance.models.progress import watching
from askance.optimizer.loop import read_job, run_job
from askance.optimizer.rounds import prepare_round
from askance.prompts.checklist import Checklist, Question
from askance.prompts.errors import BudgetExceededError, InputError
from askance.prompts.prompt import Prompt
from tests.doubles import Heeding, WritersJudge, WritersWorld
from tests.said import naming, says

COMMENTS = {"thanks": "It does not thank the reader.", "blame": "It blames the reader!", "next_step": "And what next?"}
START = Checklist(
    task="Answer the request.",
    questions=(Question(id="deadline", text="Does the reply name a deadline?", dimension="content"),),
)
HOW: dict[str, Any] = {"resamples": 200, "explain": "never", "max_iterations": 2, "embedder": "words"}


class Counted:
    """A model that remembers what it was asked."""

    def __init__(self, model: Any) -> None:
        self.model, self.asked = model, Counter[bytes]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)

    async def answer(self, request: Request) -> Answer:
        self.asked[request.key] += 1
        answer: Answer = await self.model.answer(request)
        return answer


class Desk:
    """A world of writers, its models, and people who want some of its rules kept."""

    def __init__(self, place: Path, size: int = 150) -> None:
        self.world = WritersWorld(size=size)
        half = Heeding(unsaid=0.5)
        self.writer = Counted(self.world.writer("old", thanks=half, blame=half, next_step=half, deadline=half))
        self.judge = Counted(WritersJudge(self.world))
        self.place = place

    def begin(self, **further: Any) -> askance.RunResult:
        rows = [{"id": row["id"], "input": row["input"]} for row in self.world.rows]
        how = {"prompt": Prompt("Answer the request."), "checklist": START, **HOW, **further}
        return askance.tune(rows, generator=self.writer, judge=self.judge, run=self.place / "one", **how)

    def label(self, run: str, wanted: Sequence[str] = ("thanks", "blame"), most: int | None = None) -> Path:
        """Write the file that ``askance label`` leaves: people fail an output that breaks a rule they want, and say which."""
        file, lines = self.place / run / "outputs-labelled.jsonl", []
        for each in outputs_of_run(self.place / run)[:most]:
            broken = [name for name in wanted if name not in self.world.kept(each.output or "")]
            said = {"human": {"overall": not broken}, **({"comment": COMMENTS[broken[0]]} if broken else {})}
            lines.append(json.dumps({**each.model_dump(exclude_defaults=True), **said}) + "\n")
        file.write_text("".join(lines), encoding="utf-8")
        return file

    def go_on(self, run: str, new: str, **further: Any) -> askance.RunResult:
        models = {"generator": self.writer, "judge": self.judge}
        return askance.tune(from_run=self.place / run, run=self.place / new, **{**models, **further})

    def kept(self, run: str) -> dict[str, float]:
        """The share of a run's outputs that keep each rule."""
        outputs = [self.world.kept(each.output or "") for each in outputs_of_run(self.place / run)]
        return {rule.id: sum(rule.id in each for each in outputs) / len(outputs) for rule in self.world.rules}


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    found = Desk(tmp_path)
    found.begin()
    return found


def test_every_output_of_a_run_can_be_labelled(desk: Desk) -> None:
    outputs = outputs_of_run(desk.place / "one")
    assert sorted(each.id for each in outputs) == [row["id"] for row in desk.world.rows]
    rows = [json.loads(line) for line in (desk.place / "one/outputs.jsonl").read_text().splitlines()]
    assert {*rows[0]} == {"id", "input", "output", "version"} and len({row["version"] for row in rows}) == 1
    assert {each.metadata["version"] for each in outputs} == {rows[0]["version"]}


def test_three_rounds_keep_ever_more_of_what_people_want(desk: Desk) -> None:
    first = desk.kept("one")
    desk.label("one")
    desk.go_on("one", "two")
    second = desk.kept("two")
    desk.label("two", ("thanks", "blame", "next_step"))
    desk.go_on("two", "three")
    third = desk.kept("three")
    assert max(first["thanks"], first["blame"], first["next_step"]) < 0.6
    assert min(second["thanks"], second["blame"]) > 0.85 and second["next_step"] < 0.6
    assert min(third["thanks"], third["blame"], third["next_step"]) > 0.85
    asked = {each.text for each in askance.load_judge(desk.place / "three/judge").checklist.questions}
    assert asked >= {rule.criterion.text for rule in desk.world.rules if rule.id in COMMENTS}
    assert asked >= {each.text for each in START.questions}  # a requirement stays, whatever the labels say of it
    people = (desk.place / "three/inputs/people.jsonl").read_text().splitlines()
    assert len(people) == 300 and len({json.loads(row)["id"] for row in people}) == 300


def test_only_what_is_new_is_paid_for(desk: Desk) -> None:
    desk.label("one")
    done = desk.go_on("one", "two")
    assert max(desk.writer.asked.values()) == 1 and max(desk.judge.asked.values()) == 1
    assert done.result["cached_calls"] > 0
    before = sum(desk.writer.asked.values()) + sum(desk.judge.asked.values())
    again = desk.go_on("one", "two")
    assert sum(desk.writer.asked.values()) + sum(desk.judge.asked.values()) == before
    assert again.result == done.result


def test_nothing_that_is_tested_on_teaches_judge_or_prompt(desk: Desk) -> None:
    desk.label("one")
    desk.go_on("one", "two")

    def parts(run: str) -> dict[str, str]:
        lines = (desk.place / run / "journal.jsonl").read_text().splitlines()
        event = next(row for row in map(json.loads, lines) if row["event"] == "split")
        return {name: part for part in ("development", "validation", "test") for name in event[part]}

    inputs, judged = parts("one"), parts("two/judge")
    assert parts("two") == inputs
    assert {name.partition("@")[0]: part for name, part in judged.items()} == inputs


def test_the_words_reach_the_note_taker_although_the_judge_cannot_learn(desk: Desk) -> None:
    desk.label("one", most=5)
    found = prepare_round(None, desk.place / "one", desk.writer, desk.judge, {})
    assert found.learning is None and found.why_not is not None and says(found.why_not, "5 outputs", "3")
    assert 0 < sum(bool(each.comment) for each in found.job.examples) <= 5
    done = desk.go_on("one", "two")
    assert not (desk.place / "two/judge").exists()
    assert done.result["baseline"]["prompt"] == (desk.place / "one/prompt.md").read_text()


def test_a_run_whose_judge_was_learning_when_it_was_killed_says_how_to_go_on(desk: Desk) -> None:
    desk.label("one")
    with pytest.raises(BudgetExceededError, match="same command") as error:
        desk.go_on("one", "two", call_budget=40)
    assert error.value.limit in CAPS
    with pytest.raises(InputError, match=naming("two", "askance tune", "--from RUN")):
        askance.resume(desk.place / "two")
    done = desk.go_on("one", "two")
    assert done.result["coverage"] == 1 and max(desk.judge.asked.values()) == 1


def test_a_round_is_resumed_without_the_run_that_it_came_from(desk: Desk) -> None:
    desk.label("one")
    done = desk.go_on("one", "two")
    (desk.place / "two/result.json").unlink()
    shutil.rmtree(desk.place / "one")
    shutil.rmtree(desk.place / "two/judge")
    job = read_job(RunDirectory(desk.place / "two"), {}, {"generator": desk.writer, "judge": desk.judge})
    before = sum(desk.judge.asked.values())
    with watching(None, False) as watcher:
        assert run_job(job, RunDirectory(desk.place / "two"), watcher).result == done.result
    assert sum(desk.judge.asked.values()) == before


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda file: file.unlink(), ("askance label",)),
        (lambda file: file.write_text('{"id": "x", "input": "a", "output": "b", "comment": "c"}\n'), ("'x'", "no example")),
        (lambda file: file.write_text('{"id": "r0001", "input": "a", "output": "b"}\n'), ("no output",)),
        (lambda file: file.write_text('{"id": "r0001", "input"\n'), ("outputs-labelled.jsonl", "line 1")),
    ],
)  # fmt: skip
def test_words_that_are_not_there_or_broken_are_named(desk: Desk, spoil: Any, said: tuple[str, ...]) -> None:
    spoil(desk.label("one"))
    with pytest.raises(InputError, match=naming(*said)):
        desk.go_on("one", "two")
    assert not (desk.place / "two").exists()


@pytest.mark.parametrize("name", ["prompt", "checklist", "checker"])
def test_a_part_that_the_run_brings_is_refused(desk: Desk, name: str) -> None:
    with pytest.raises(InputError, match=naming(name, "from_run")):
        desk.go_on("one", "two", **{name: "x"})


def test_labels_that_changed_since_are_another_run(desk: Desk) -> None:
    desk.label("one")
    desk.go_on("one", "two")
    desk.label("one", ("blame",))
    with pytest.raises(InputError, match=naming("other data")):
        desk.go_on("one", "two")


def test_further_inputs_join_and_the_others_keep_their_part(desk: Desk) -> None:
    desk.label("one")
    more = [*desk.world.rows, *desk.world.make_rows(30, "s")]
    found = prepare_round(
        [{"id": row["id"], "input": row["input"]} for row in more], desk.place / "one", None, None, {}
    )
    assert found.job.earlier is not None and len(found.job.earlier.parts(found.job.examples)) == 150
    assert len(found.job.examples) == 180 and found.learning is not None and len(found.learning.examples) == 150


def test_an_estimate_of_a_round_needs_no_directory_and_makes_none(desk: Desk) -> None:
    desk.label("one")
    before = sorted(each.name for each in desk.place.iterdir())
    given = ["tune", "--from", str(desk.place / "one"), "--generator", "openai/g", "--judge", "openai/j"]
    given += ["--api-base", "http://127.0.0.1:9/v1"]
    done = CliRunner().invoke(cli, [*given, "--dry-run", "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["calls"] > 0
    assert sorted(each.name for each in desk.place.iterdir()) == before
    refused = CliRunner().invoke(cli, given)
    assert isinstance(refused.exception, InputError) and says(refused.exception, "--run")
