"""The page Examples without a browser: filters, shut splits, blind raters, and labels that are never lost."""

from __future__ import annotations

import errno
import json
import re
import signal
import time
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest

from askance.evaluation.judge_file import load_judge
from askance.evaluation.kept_judge import KeptJudge
from askance.labelling.label_options import LabelOptions
from askance.labelling.label_session import Labeller, Said, open_session
from askance.memory.run_directory import RunDirectory
from askance.prompts.checklist import Checklist, Question
from askance.prompts.errors import AskanceError, InputError
from askance.prompts.examples import Example, load_examples
from askance.prompts.prompt import Prompt
from askance.prompts.verdicts import Verdict, VerdictColumns, read_verdicts
from askance.workbench.examples_runs import RUN_LABELS, OpenedLook, RunExamples, splits_of
from askance.workbench.examples_table import UNSURE, AskedExamples, ExamplesTable, judge_columns
from askance.workbench.judge_bench import BenchPart, JudgeBench, load_bench
from askance.workbench.judge_edits import JudgeEdit
from askance.workbench.workbench import AskedJudge, Workbench

from ..doubles.machine_speed import machine_slowness
from ..said import says

RUN = "team/aligned"


def room_of(page: Workbench) -> RunExamples:
    return RunExamples(page.by, page.folder, page.bench)


@pytest.fixture
def room(runs: Path) -> Any:
    """The runs' examples; files are let go at the end."""
    found = room_of(Workbench(runs, "anna"))
    yield found
    for each in found.sessions():
        each.file.close()


def ids(room: RunExamples, **asked: Any) -> list[str]:
    return [each["id"] for each in room.listed(AskedExamples(run=RUN, **asked))["rows"]]


def say(room: RunExamples, example: str, rater: str = "anna", passed: bool = True, comment: str = "") -> dict[str, Any]:
    session = room.table(RUN).session
    assert session is not None
    return session.say("label", Said(run=RUN, rater=rater, example=example, human={"quality": passed}, comment=comment))


def one(room: RunExamples, example: str, **asked: Any) -> dict[str, Any]:
    return room.one(AskedExamples(run=RUN, id=example, **asked))


def test_each_filter_has_the_examples_that_its_name_says(room: RunExamples, runs: Path) -> None:
    bench = load_bench(runs / RUN)
    part, state = bench.parts["development"], bench.kept["development"]
    names, verdicts = (
        [each.id for each in part.examples],
        read_verdicts(sorted((runs / RUN / "verdicts").glob("*-development.jsonl"))[-1]),
    )
    wrong = {name for name, said, wanted in zip(names, state.passed, part.of_people, strict=True) if said != wanted}
    assert set(ids(room, disagree=True)) == wrong and 0 < len(wrong) < len(names)
    near = {name for name, score in zip(names, state.decided, strict=True) if abs(score - bench.threshold) <= UNSURE}
    assert set(ids(room, unsure=True)) == near
    scores = dict(zip(names, state.decided, strict=True))
    assert sorted(near, key=lambda each: abs(scores[each] - bench.threshold)) == ids(room, unsure=True)
    yes = {each.example for each in verdicts if each.question == "facts" and each.answer}
    assert set(ids(room, yes="facts")) == yes
    assert set(ids(room, yes="facts", disagree=True)) == yes & wrong
    told = room.listed(AskedExamples(run=RUN, id=ids(room, disagree=True)[1], disagree=True))
    assert (told["place"], told["previous"], told["counts"]["disagree"]) == (1, ids(room, disagree=True)[0], len(wrong))
    assert len(ids(room, split="test")) == told["splits"]["test"] > 0


def test_an_example_is_shown_with_every_verdict_and_what_people_said(room: RunExamples, runs: Path) -> None:
    verdicts = read_verdicts(sorted((runs / RUN / "verdicts").glob("*-development.jsonl"))[-1])
    name = verdicts[0].example
    found = one(room, name)
    mine = {each.question: each for each in verdicts if each.example == name}
    assert {each["id"]: (each["answer"], each["p_yes"]) for each in found["verdicts"]} == {
        question: (each.answer, each.p_yes) for question, each in mine.items()
    }
    example = next(each for each in RunDirectory(runs / RUN).read_inputs()[0] if each.id == name)
    assert found["item"]["output"] == example.output
    assert found["people"] == [{"rater": "people", "human": {"quality": example.human["quality"][0]}}]
    with pytest.raises(InputError, match="'nobody'"):
        one(room, "nobody")


def test_test_examples_are_shut_for_good_and_validation_until_a_look_is_counted(room: RunExamples, runs: Path) -> None:
    splits = splits_of(runs / RUN)
    for split in ("test", "validation"):
        mine = [name for name, each in splits.items() if each == split]
        for name in mine:
            found = one(room, name)
            assert (found["judge"], found["verdicts"]) == (None, []) and says(found["shut"], split, "shut")
        for asked in ({"disagree": True}, {"unsure": True}, {"yes": "facts"}, {"since": f"{RUN}/judge.yaml"}):
            assert not set(ids(room, **asked)) & set(mine)
    assert room.open_validation(OpenedLook(run=RUN, file="judge.yaml")) == {"looks": 1}
    first = next(name for name, each in splits.items() if each == "validation")
    assert len(one(room, first)["verdicts"]) == 2 and one(room, first)["shut"] is None
    assert one(room, next(name for name, each in splits.items() if each == "test"))["verdicts"] == []

    page, start = Workbench(runs, "anna"), JudgeEdit.of(load_judge(runs / RUN), 0.77)
    page.save(AskedJudge(run=RUN, edit=start))
    assert load_judge(runs / RUN / "judge-1.yaml").history[0].shaped_on_validation


def test_raters_are_blind_to_each_other_until_they_have_labelled(room: RunExamples) -> None:
    name, other = ids(room)[:2]
    say(room, name, "ben", False, "No.")
    before = one(room, name)
    assert before["hidden"] == 1 and "ben" not in json.dumps(before)
    assert name not in ids(room, raters=True)
    disagree = ids(room, disagree=True)
    assert one(room, name, blind=True)["people"] == [] and one(room, name, blind=True)["judge"] is None
    say(room, name, "anna", True)
    after = one(room, name, blind=True)
    assert {"rater": "ben", "human": {"quality": False}} in after["people"] and after["hidden"] == 0
    assert ("No.", "ben") in [(each["text"], each["rater"]) for each in after["comments"]]
    assert name in ids(room, raters=True)
    assert set(disagree) ^ set(ids(room, disagree=True)) <= {name}  # it counts once it may be seen
    assert one(room, other)["hidden"] == 0


def test_labels_are_in_the_labels_format_and_the_labelled_data_are_read_by_other_commands(
    room: RunExamples, runs: Path
) -> None:
    name, before = ids(room)[0], {each.id: each for each in RunDirectory(runs / RUN).read_inputs()[0]}
    say(room, name, "anna", False, "Wrong place.")
    session = room.table(RUN).session
    session.write()
    found = {each.id: each for each in load_examples(runs / RUN / RUN_LABELS)}
    assert found[name].human["quality"] == (*before[name].human["quality"], False)
    assert [each.text for each in found[name].comment] == ["Wrong place."]
    assert {each: found[each] for each in found if each != name} == {
        each: before[each] for each in before if each != name
    }
    row = json.loads((runs / RUN / "examples-labelled.labels.jsonl").read_text())
    assert (row["example"], row["rater"], row["human"]) == (name, "anna", {"quality": False})


def test_windows_that_label_at_once_lose_nothing(room: RunExamples, runs: Path) -> None:
    names = ids(room)[:40]

    def window(rater: str, mine: list[str]) -> None:
        for each in mine:
            say(room, each, rater, comment=f"by {rater}")

    threads = [Thread(target=window, args=each) for each in (("anna", names), ("anna", names[::-1]), ("ben", names))]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    rows = [json.loads(line) for line in (runs / RUN / "examples-labelled.labels.jsonl").read_text().splitlines()]
    assert sorted((each["example"], each["rater"]) for each in rows) == sorted(
        [(name, rater) for name in names for rater in ("anna", "anna", "ben")]
    )
    room.table(RUN).session.write()
    found = {each.id: each for each in load_examples(runs / RUN / RUN_LABELS)}
    assert all(found[name].raters[:2] == ("anna", "ben") for name in names)


def test_another_process_that_labels_there_leaves_the_page_to_be_looked_at(room: RunExamples, runs: Path) -> None:
    say(room, ids(room)[0])
    second = room_of(Workbench(runs, "ben"))
    told = second.listed(AskedExamples(run=RUN))
    assert told["labelling"] is None and says(told["why_shut"], "another process") and len(told["rows"]) == 100
    assert second.listed(AskedExamples(run=RUN, disagree=True))["total"] > 0


def test_a_full_disk_is_said_and_what_was_there_stays(room: RunExamples, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = ids(room)[:2]
    say(room, first)

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        with pytest.raises(AskanceError, match="No space left"):
            say(room, second)
    session = room.table(RUN).session
    assert session.say("state", Labeller(run=RUN))["count"]["labelled"] == 1
    with monkeypatch.context() as patch:
        patch.setattr(
            "askance.labelling.label_session.write_whole", lambda *_: (_ for _ in ()).throw(AskanceError("full"))
        )
        with pytest.raises(AskanceError):
            session.write()
        assert session.say("state", Labeller(run=RUN))["problem"] == "full"
    session.write()
    assert session.say("state", Labeller(run=RUN))["problem"] is None and session.target.exists()


def test_a_kill_loses_nothing_and_a_damaged_line_is_named(askance_command: Any, runs: Path) -> None:
    import urllib.request

    process = askance_command.start("ui", runs, "--by", "anna")
    address = re.search(r"http://127\.0\.0\.1:\d+/[\w-]{32}/", process.stdout.readline())[0]
    name = next(name for name, each in splits_of(runs / RUN).items() if each == "test")
    body = json.dumps({"run": RUN, "example": name, "human": {"quality": True}, "comment": "Good."}).encode()
    request = urllib.request.Request(f"{address}api/label", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert json.load(answer)["count"]["labelled"] == 1
    process.send_signal(signal.SIGKILL)
    askance_command.finish(process)
    room = room_of(Workbench(runs, "anna"))
    found = one(room, name)
    assert (found["item"]["human"], found["item"]["comment"]) == ({"quality": True}, "Good.")
    for each in room.sessions():
        each.file.close()
    with (runs / RUN / "examples-labelled.labels.jsonl").open("a") as file:
        file.write("{}\n")
    assert says(room_of(Workbench(runs, "anna")).listed(AskedExamples(run=RUN))["why_shut"], "line 2")


def test_changed_since_has_what_another_judge_said_otherwise(room: RunExamples, runs: Path) -> None:
    edit = JudgeEdit.of(load_judge(runs / RUN), 0.95)
    Workbench(runs, "anna").save(AskedJudge(run=RUN, edit=edit))
    asked = {"file": "judge-1.yaml", "since": f"{RUN}/judge.yaml"}
    changed = ids(room, **asked)
    before, after = (load_bench(runs / RUN, file).kept["development"].passed for file in ("judge.yaml", "judge-1.yaml"))
    names = [each.id for each in load_bench(runs / RUN).parts["development"].examples]
    moved = {names[at] for at in np.flatnonzero(before != after)}
    assert changed == [each for each in ids(room, split="development") if each in moved]
    sides = one(room, changed[0], **asked)["judge"]
    assert sides["passes"] is False and sides["before"]["passes"] is True
    with pytest.raises(InputError, match="no judge"):
        ids(room, since=f"{RUN}/judge-7.yaml")


def test_changed_since_the_start_has_the_answers_that_the_run_changed(room: RunExamples, runs: Path) -> None:
    first, last = (
        {(each.example, each.question): each.answer for each in read_verdicts(file)}
        for file in (lambda found: (found[0], found[-1]))(sorted((runs / RUN / "verdicts").glob("*-development.jsonl")))
    )
    turned = {name for name, question in first if first[name, question] != last[name, question]}
    found = set(ids(room, since=f"{RUN}/start", split="development"))
    assert turned and turned <= found
    shown = one(room, min(turned), since=f"{RUN}/start")
    assert any(each["answer"] != each["before"]["answer"] for each in shown["verdicts"])


def test_labels_of_the_page_count_for_the_judge(room: RunExamples, runs: Path) -> None:
    page = Workbench(runs, "anna")
    before = page.judge(RUN, "judge.yaml")["development"]["now"]["confusion"]
    names = ids(room, disagree=True, split="development")
    for name in names:
        for rater in ("anna", "ben"):  # two against the one of the data
            say(room, name, rater, passed=one(room, name)["judge"]["passes"])
    room.table(RUN).session.write()
    told = page.judge(RUN, "judge.yaml")
    after = told["development"]["now"]["confusion"]
    assert any(says(each, "Examples", "count") for each in told["warnings"])
    wrong = ("false_positive", "false_negative")
    assert sum(before[each] for each in wrong) == len(names) and not any(after[each] for each in wrong)


def test_why_says_where_a_question_comes_from(room: RunExamples) -> None:
    assert any(says(text, "began with") for _, text in room.why(RUN, "facts")["lines"])
    with pytest.raises(InputError, match="'nothing'"):
        room.why(RUN, "nothing")


def test_ten_thousand_examples_are_filtered_shown_and_labelled_within_a_fifth_of_a_second(tmp_path: Path) -> None:
    many, asked, rng = 10_000, 20, np.random.default_rng(0)
    questions = tuple(Question(id=f"q{number}", text=f"Is it {number}?") for number in range(asked))
    judge = KeptJudge("m", Prompt("Judge."), Checklist(questions=questions), threshold=0.5)
    examples = [Example(id=f"e{n}", input="in", output=f"out {n}", human={"overall": n % 3 == 0}) for n in range(many)]
    labels = np.array([float(n % 3 == 0) for n in range(many)])
    worth = np.clip(0.25 * labels[:, None] + rng.random((many, asked)) * 0.75, 0, 1)
    verdicts = VerdictColumns(
        Verdict(f"e{n}", f"q{q}", "m", judge.prompt.hash, bool(worth[n, q] > 0.5), float(worth[n, q]), "logprob")
        for n in range(many)
        for q in range(asked)
    )
    part = BenchPart(examples, verdicts, worth, ("overall",), labels, labels, None)
    columns = judge_columns(JudgeBench(judge, {"development": part}), examples, frozenset({"development"}))
    session = open_session(examples, tmp_path / "x.jsonl", LabelOptions(), judge.checklist, columns.opinions)
    table = ExamplesTable(examples, dict.fromkeys((each.id for each in examples), "development"), session)
    took: dict[str, list[float]] = {}

    def timed(name: str, do: Any) -> Any:
        began = time.thread_time()
        found = do()
        took.setdefault(name, []).append(time.thread_time() - began)
        return found

    session.desk.to_jsonl()
    for n in range(40):
        timed("label", lambda n=n: session.say("label", Said(example=f"e{n}", human={"overall": n % 2 == 0})))
    wanted = AskedExamples(disagree=True, raters=False, unsure=True, yes="q3", id="e5000")
    for _ in range(3):
        assert timed("list", lambda: table.listed(wanted, columns, columns))["counts"]["yes"] > 0
        assert len(timed("one", lambda: table.one(wanted, columns, columns))["verdicts"]) == asked
        session.say("label", Said(example="e7", human={"overall": True}))
        timed("write", session.desk.to_jsonl)
        timed("figures", session.figures)
    session.file.close()
    # figures come later than the page, which waits for none of them
    slowness = machine_slowness()
    most = dict.fromkeys(took, 0.2 * slowness) | {"figures": 2.0 * slowness}
    assert {name: min(each) for name, each in took.items() if min(each) > most[name]} == {}
