"""``askance label`` as it is used: Ctrl-C, kill, a second process, and what is wrong with files and options."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import askance
from askance.commands.label import _tell
from askance.labelling.next_output import SIGNALS
from askance.prompts.errors import InputError
from askance.workbench.label import Labelled

from ..said import naming, says
from .conftest import examples


class Labelling:
    """The command in a process of its own."""

    def __init__(self, command: Any, *arguments: str | Path) -> None:
        self._command = command
        self.process = command.start("label", *arguments)
        assert self.process.stderr is not None
        found = re.search(r"http://127\.0\.0\.1:\d+/[\w-]{32}/", self.process.stderr.readline())
        assert found
        self.address = found[0]
        self.order = self.process.stderr.readline()

    def send(self, action: str, **said: Any) -> Any:
        request = urllib.request.Request(f"{self.address}api/{action}")
        if action not in ("state", "progress"):
            request = urllib.request.Request(
                f"{self.address}api/{action}", json.dumps(said).encode(), {"Content-Type": "application/json"}
            )
        with urllib.request.urlopen(request, timeout=20) as answer:
            return json.load(answer)

    def label(self, passed: bool = True, comment: str = "") -> str:
        item = self.send("state")["item"]
        self.send("label", example=item["id"], human={"overall": passed}, comment=comment)
        return str(item["id"])

    def end(self, how: signal.Signals = signal.SIGINT) -> subprocess.CompletedProcess[str]:
        self.process.send_signal(how)
        done = self._command.finish(self.process)
        assert isinstance(done, subprocess.CompletedProcess)
        return done


@pytest.fixture
def begin(askance_command: Any) -> Iterator[Any]:
    begun: list[Labelling] = []

    def start(*arguments: str | Path) -> Labelling:
        begun.append(Labelling(askance_command, *arguments))
        return begun[-1]

    yield start
    for each in begun:
        if each.process.poll() is None:
            each.process.kill()
            each.process.communicate()


def test_ctrl_c_ends_with_everything_saved_and_says_what_to_run_next(begin: Any, place: Path) -> None:
    data = place / "data.jsonl"
    before = data.read_bytes()
    one = begin(data, "--rater", "anna")
    said = {one.label(True): (True,), one.label(False, "No refunds."): (False,)}
    done = one.end()
    assert done.returncode == 0
    assert says(done.stdout, "2 of 30", "anna", "2 of them", "1 pass", "1 fail", "1 with")
    assert says(done.stdout, "more labels")
    assert f"Next: askance align {place / 'data-labelled.jsonl'} --checklist CHECKLIST" in done.stdout
    found = {each.id: each for each in askance.load_examples(place / "data-labelled.jsonl")}
    assert {name: each.human["overall"] for name, each in found.items() if each.human} == said
    assert data.read_bytes() == before
    kept = {name: each.model_copy(update={"human": {}, "comment": ()}) for name, each in found.items()}
    assert list(kept.values()) == askance.load_examples(data)
    assert found["e00"].metadata == {"shop": "north"}


def test_a_kill_loses_nothing_and_the_next_call_goes_on(begin: Any, place: Path) -> None:
    one = begin(place / "data.jsonl")
    said = [one.label(), one.label(False)]
    assert one.end(signal.SIGKILL).returncode == -signal.SIGKILL
    two = begin(place / "data.jsonl")
    state = two.send("state")
    assert (state["count"]["passed"], state["count"]["failed"], state["can_undo"]) == (1, 1, True)
    assert state["item"]["id"] not in said
    two.label()
    done = two.end(signal.SIGTERM)
    assert says(done.stdout, "3 of 30", "me", "1 of them")
    found = {each.id for each in askance.load_examples(place / "data-labelled.jsonl") if each.human}
    assert found > set(said) and len(found) == 3


def test_what_was_taken_back_of_an_earlier_session_is_not_taken_from_the_labels_of_this_one(
    begin: Any, place: Path
) -> None:
    one = begin(place / "data.jsonl", "--order", "file")
    said = [one.label() for _ in range(2)]
    one.end()
    two = begin(place / "data.jsonl", "--order", "file")
    two.send("undo")
    assert says(two.end().stdout, "1 of 30", "me", "0 of them")
    three = begin(place / "data.jsonl", "--order", "file")
    three.send("undo")
    three.send("label", example=said[0], human={"overall": False})
    assert says(three.end().stdout, "1 of 30", "me", "1 of them", "0 pass", "1 fail")


def test_labels_of_two_files_with_a_number_sign_in_their_names_are_kept_apart(begin: Any, place: Path) -> None:
    for name in ("Team #1", "Team #2"):
        one = begin((place / "data.jsonl").rename(place / f"{name}.jsonl"))
        one.label()
        one.end()
        (place / f"{name}.jsonl").rename(place / "data.jsonl")
    assert {each.name for each in place.glob("Team*-labelled.jsonl")} == {
        "Team #1-labelled.jsonl",
        "Team #2-labelled.jsonl",
    }


def test_raters_are_kept_apart_and_a_second_process_is_refused(begin: Any, place: Path, askance_command: Any) -> None:
    one = begin(place / "data.jsonl", "--rater", "anna", "--order", "file", "-o", place / "out.jsonl")
    hers = one.label(True, "Fine by me.")
    second = askance_command("label", place / "data.jsonl", "--rater", "ben", "-o", place / "out.jsonl")
    assert second.returncode == 1
    assert says(second.stderr, "another process", "labelling")
    one.end()
    two = begin(place / "data.jsonl", "--rater", "ben", "--order", "file", "-o", place / "out.jsonl", "--json")
    assert two.send("state")["item"]["id"] != hers
    two.send("label", example=hers, human={"overall": False}, comment="Not by me.")
    told = json.loads(two.end().stdout)
    assert (told["rater"], told["labelled"], told["added"], told["failed"]) == ("ben", 1, 1, 1)
    found = askance.load_examples(place / "out.jsonl")[0]
    assert found.human == {"overall": (True, False)}
    assert [each.text for each in found.comment] == ["Fine by me.", "Not by me."]
    rows = [json.loads(line) for line in (place / "out.labels.jsonl").read_text().splitlines()]
    assert [(row["rater"], row["human"]) for row in rows] == [("anna", {"overall": True}), ("ben", {"overall": False})]


def test_judges_decide_the_order_and_their_agreement_is_shown(begin: Any, place: Path) -> None:
    one = begin(place / "data.jsonl", "--judge", "one.jsonl", "--judge", "two.jsonl", "--checklist", "checklist.json")
    state = one.send("state")
    assert [each["id"] for each in state["questions"]] == ["promises", "answers"]
    assert state["item"]["why"] in SIGNALS.values()
    assert one.send("progress")["agreement"] is None
    for _ in range(3):
        one.label()
    found = one.send("progress")["agreement"]
    assert (found["judge"], found["figures"]["all"]["n"], found["figures"]["random"]["n"]) == ("m/one", 3, 1)
    done = one.end()
    assert says(done.stdout, "m/one", "agrees")
    assert all(each in one.order for each in SIGNALS.values()) and says(one.order, "every third")


def test_align_is_to_go_on_from_a_judge_that_has_its_run_and_from_no_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scorer, run = tmp_path / "scorer", tmp_path / "run"
    for folder in (scorer, run):
        folder.mkdir()
        (folder / "judge.yaml").touch()
    (run / "config.yaml").touch()
    counts = {"labelled": 2, "passed": 1, "failed": 1, "answers": 0, "comments": 0, "skipped": 0}
    files = {"output": Path("out.jsonl"), "labels": Path("out.labels.jsonl")}
    done = Labelled(**counts, **files, rater="me", added=2, outputs=2, more=0, enough="", agreement=None)
    judges = [(scorer,), (scorer / "judge.yaml",), (scorer, run), (run / "judge.yaml",), (run / "verdicts.jsonl",)]
    for each in judges:
        _tell(done, tuple(map(str, each)), None)
    said = [line for line in capsys.readouterr().out.splitlines() if line.startswith("Next:")]
    usual = "--checklist CHECKLIST --model MODEL"
    hows = [usual, usual, f"--from {run}", f"--from {run / 'judge.yaml'}", usual]
    assert said == [f"Next: askance align out.jsonl {how} --run RUN" for how in hows]


def test_what_was_labelled_is_what_align_reads(begin: Any, place: Path, cli: Any, sandbox: Path) -> None:
    one = begin(place / "data.jsonl", "--checklist", "checklist.json")
    for at in range(20):
        one.label(at % 2 == 0, "" if at % 2 == 0 else f"It promises thing {at}.")
    one.end()
    align = ["align", "data-labelled.jsonl", "--checklist", "checklist.json", "--model", "openai/m", "--run", "run"]
    code, out, err = cli(*align, "--api-base", "http://127.0.0.1:9/v1", "--dry-run", "--embedder", "words")
    assert code == 0, err
    assert "calls" in out


def test_a_row_without_an_output_is_left_out_of_the_labelled_data_as_of_a_table(begin: Any, tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("id,input,output\na,Q,Yes.\nb,Q,\n", encoding="utf-8")
    session = begin(tmp_path / "data.csv")
    session.label()
    session.end()
    labelled = tmp_path / "data-labelled.jsonl"
    assert [json.loads(line)["output"] for line in labelled.read_text("utf-8").splitlines()] == ["Yes.", None]
    assert [each.id for each in askance.load_examples(labelled)] == ["a"]


def test_nothing_said_leaves_no_labelled_data(begin: Any, place: Path) -> None:
    done = begin(place / "data.jsonl").end()
    assert (done.returncode, done.stdout) == (0, "Nothing was labelled.\n")
    assert not (place / "data-labelled.jsonl").exists()


def test_texts_of_the_data_are_no_markup_in_the_terminal(begin: Any, place: Path) -> None:
    one = begin(place / "data.jsonl", "--rater", "[red]anna")
    one.label()
    assert "labelled by [red]anna" in one.end().stdout


def test_a_port_that_is_taken_is_said(begin: Any, place: Path, askance_command: Any) -> None:
    port = re.findall(r":(\d+)/", begin(place / "data.jsonl").address)[0]
    done = askance_command("label", place / "data.jsonl", "-o", place / "other.jsonl", "--port", port)
    assert done.returncode == 1
    assert says(done.stderr, port, "served")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["absent.jsonl"], "there is no such file"),
        ([], "DATA is needed"),
        (["bare.jsonl"], "nothing to label"),
        (["scores.jsonl"], "'e00', field 'human.overall': 4 is a score on a scale.*--dimension"),
        (["rated.jsonl", "--checklist", "dimension.yaml"], "--dimension 'tone of voice'"),
        (["data.jsonl", "-o", "data.jsonl"], "never written to"),
        (["data.jsonl", "-o", "out.csv"], "ends in .jsonl"),
        (["data.jsonl", "-o", "one.jsonl"], "labelling did not make it"),
        (["made.jsonl"], "name the data that it was made of"),
        (["data.jsonl", "--rater", " "], "rater: a name in plain signs"),
        (["data.jsonl", "--rater", "a\x1b[2J"], "rater: a name in plain signs"),
        (["data.jsonl", "--gain", "2"], "gain"),
        (["data.jsonl", "--gain", "1e-200"], "gain"),
        (["data.jsonl", "--order", "uncertain"], "a judge's verdicts are needed"),
        (["data.jsonl", "--judge", "one.jsonl"], "a checklist is needed"),
        (["data.jsonl", "--checklist", "absent.yaml"], "absent.yaml"),
        (["data.jsonl", "-o", "damaged.jsonl"], r"damaged.labels.jsonl, line 2: not valid JSON"),
    ],
    ids=lambda each: None,
)
def test_bad_input_is_a_sentence_and_exit_code_2(
    arguments: list[str], said: str, place: Path, sandbox: Path, cli: Any
) -> None:
    rows = [each.model_dump(exclude_defaults=True) for each in examples(2)]
    files = {
        "bare": [{**rows[0], "output": None}],
        "scores": [{**rows[0], "human": {"overall": 4}}],
        "rated": [{**rows[0], "human": {"tone of voice": True}}],
        "made": rows,
    }
    for name, lines in files.items():
        (place / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in lines))
    (place / "made.labels.jsonl").write_text("")
    entry = {"example": "e00", "rater": "a", "texts": "", "time": "", "why": "file"}
    (place / "damaged.labels.jsonl").write_text(json.dumps(entry) + "\n{{{\n")
    (place / "dimension.yaml").write_text("questions:\n- id: kind\n  text: Is it kind?\n  dimension: tone of voice\n")
    code, out, err = cli("label", *arguments)
    assert (code, out) == (2, "")
    assert re.search(said, err), err


def test_labels_that_are_of_other_data_are_refused_and_not_held(place: Path) -> None:
    entry = {"example": "elsewhere", "rater": "a", "texts": "", "time": "", "why": "file"}
    (place / "data-labelled.labels.jsonl").write_text(json.dumps(entry) + "\n")
    refused = []
    for _ in range(2):  # as in a notebook, which keeps the last error and all that belongs to it
        with pytest.raises(InputError, match=naming("none", "labels", "data")) as found:
            askance.label(place / "data.jsonl")
        refused.append(found)
