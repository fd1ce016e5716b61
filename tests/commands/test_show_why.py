"""``askance show --why`` and ``--graph``."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

from askance.memory.why import QuestionStory
from askance.models.base import Request
from askance.report.run_lessons import question_lines

from ..said import says

RULE = "Answer no if the output gives a wrong name."


class Crash(BaseException):
    """The process is gone."""


@pytest.fixture
def show(cli: Any) -> Any:
    return partial(cli, "show")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("show") / "run"


@pytest.fixture
def run(shared: Path, make_world: Any) -> str:
    """One finished run for all tests: showing changes nothing."""
    if not shared.exists():
        make_world(80).migrate(shared, trial=True, prune=True)
    return str(shared)


def test_why_tells_lesson_evidence_and_effect(show: Any, run: str) -> None:
    result = json.loads((Path(run) / "result.json").read_text(encoding="utf-8"))
    (lesson,) = (each for each in result["lessons"] if each["text"] == RULE)
    candidate = next(each for each in result["accepted_edits"] if RULE in str(each["edits"]))
    done = show(run, "--why", "gives a wrong name")
    text = " ".join(done.out.split())
    assert done.code == 0
    assert f": - {RULE} It was not" in text
    support = len(lesson["evidence"])
    assert f"Lesson {lesson['id']} (stricter, support {support}, {lesson['status']}): {RULE}" in text
    key = lesson["evidence"][0]
    example = key.partition("/")[0]
    assert f'From {key}: "Are the ' in text and f"input: Document [{example}]. output: Summary [{example}]." in text
    assert (
        "the target, world/target: yes, probability of yes 0." in text
        and "the source, world/source: no, probability of yes 0." in text
    )
    assert says(text, "passed", "1 of 1", "0 of 4 controls")
    assert "accepted, together with edit" in text and candidate["reason"] in text
    gain = candidate["gain"]
    assert f"95% interval [{gain['low']:+.2f}, {gain['high']:+.2f}]" in text
    test = result["gain"]["test"]["value"]
    assert "Pruning, " in text and f"; test {test:+.3f}, 95% interval" in text
    assert max(map(len, done.out.splitlines())) <= 100


def test_why_of_the_start_and_of_what_was_learnt_in_vain(show: Any, run: str) -> None:
    start = show(run, "--why", "careful judge").out
    assert says(start, "starting prompt", "no edit")
    vain = " ".join(show(run, "--why", "is written in a plain style").out.split())
    assert says(vain, "not say this", "learnt")
    assert "failed its trial" in vain and "a plain style." in vain
    assert "listed above." in vain


def test_why_as_json_is_the_whole_record(show: Any, run: str) -> None:
    found = json.loads(show(run, "--why", RULE, "--json").out)
    assert found["found"] == "in the prompt"
    (edit,) = found["edits"]
    assert edit["lessons"][0]["cases"][0]["target"] is True and edit["measured"][0]["gain"]["p_value"] < 0.2


def test_what_nobody_says_is_bad_input(show: Any, run: str) -> None:
    done = show(run, "--why", "yes if the output is short")
    assert (done.code, done.out) == (2, "") and "Did you mean: line" in done.err


@pytest.mark.parametrize("name", ["graph.json", "GRAPH.GraphML"])
def test_the_graph_is_written_in_the_format_of_its_ending(show: Any, run: str, tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    done = show(run, "--graph", str(file))
    assert (done.code, done.err) == (0, "")
    if name.endswith("json"):
        graph = nx.node_link_graph(json.loads(file.read_text(encoding="utf-8")), edges="edges")
    else:
        graph = nx.read_graphml(file)
    kinds = [row["kind"] for _, row in graph.nodes(data=True)]
    assert f"{kinds.count('edit')} edits" in done.out and f"{kinds.count('lesson')} lessons" in done.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--graph", "graph.gexf"], "--graph graph.gexf: the name must end in .json (node-link data) or .graphml."),
        (["--graph", "graph.json", "--diff"], "--diff, --why and --graph do not go together."),
        (["--graph", "graph.json", "--json"], "--json does not go with --graph."),
        (["--diff", "--json"], "--json does not go with --diff."),
        (["--why", ""], "There is no word in the sentence"),
    ],
)
def test_wrong_usage_is_a_sentence(show: Any, run: str, arguments: list[str], said: str) -> None:
    done = show(run, *arguments)
    assert done.code == 2 and said in done.err


def test_why_and_graph_work_before_a_run_is_finished(show: Any, world: Any, tmp_path: Path) -> None:
    asked = 0

    def crash(request: Request) -> None:
        nonlocal asked
        asked += 1
        if asked > 230:
            raise Crash

    with pytest.raises(Crash):
        world.migrate(tmp_path / "run", before=crash)
    done = show(str(tmp_path / "run"), "--why", "careful judge")
    assert done.code == 0 and says(done.out, "so far", "not finished", "version")
    assert show(str(tmp_path / "run"), "--graph", str(tmp_path / "graph.json")).code == 0
    assert show(str(tmp_path / "run")).code == 2


def test_a_sentence_that_an_earlier_run_learned_is_said_to_be_from_the_memory(
    show: Any, make_letters: Any, tmp_path: Path
) -> None:
    letters = make_letters()
    for name in ("first", "second"):
        letters.tune(tmp_path / name, memory=str(tmp_path / "memory"))
    told = [
        " ".join(show(str(tmp_path / name), "--why", "Open with words").out.split()) for name in ("first", "second")
    ]
    said = "Open with words of welcome. It was in the lesson memory, and was tried before a note was taken."
    assert [said in each for each in told] == [False, True]
    found = json.loads(show(str(tmp_path / "second"), "--why", "Open with words", "--json").out)
    assert [each["recalled"] for each in found["edits"][0]["lessons"]] == [True]


@pytest.mark.parametrize(
    ("origin", "said"),
    [
        ("memory", "It comes from the lesson memory"),
        ("contrast", "It comes from what rejected outputs do and accepted ones do not"),
    ],
)
def test_a_question_that_comes_from_no_comment_of_the_run_says_where_from(origin: str, said: str) -> None:
    story = QuestionStory("polite", "Is it polite?", "yes", origin, 1, "accepted", None)
    assert (2, said) in list(question_lines(story))
    of_a_comment = QuestionStory("polite", "Is it polite?", "yes", "comment", 1, "accepted", None)
    assert not any("It comes" in text for _, text in question_lines(of_a_comment))
