"""From a sentence of a prompt back to the disagreements, and the graph of a run as files."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

from askance.memory.provenance import build_graph, save_graphml, save_json
from askance.memory.run_directory import RunDirectory
from askance.memory.why import Why, blame, split_passages, why, words_of
from askance.models.base import Request
from askance.prompts.checklist import Checklist, Question
from askance.prompts.errors import InputError
from askance.prompts.examples import Example
from askance.prompts.lessons import Edit
from askance.prompts.prompt import Prompt
from tests.said import naming

NOT_THERE = "not in the prompt"
JUDGE = "You are a careful judge."
START = f"{JUDGE}\nCompare names. Look at every number.\n"
GAIN = {"value": 0.12, "n": 30, "low": 0.02, "high": 0.21, "p_value": 0.01, "reason": None}


class Crash(BaseException):
    """The process is gone."""


# --- runs made by hand: one event after the other -------------------------------------------------------------------


class Made:
    """A run directory in which what happened is written down by the test."""

    def __init__(self, path: Path, start: str = START) -> None:
        self.run = RunDirectory(path)
        checklist = Checklist(task="t", questions=[Question(id="q", text="Is it right?", dimension="d")])
        examples = [Example(id=f"e{number}", input=f"Document {number}.", output="Said.\x0b") for number in range(9)]
        prompts = {"prompt": Prompt(start)}
        self.run.open({"command": "migrate", "target": "m/t", "source": "m/s"}, examples, checklist, prompts)
        self.journal = self.run.journal()
        self.prompts = {0: start}

    def disagree(self, *examples: str, iteration: int = 1) -> None:
        read = [
            {"example": each, "question": "q", "target": True, "reference": False, "gap": 1.0}
            | {"target_p_yes": 0.9, "reference_p_yes": 0.1}
            for each in examples
        ]
        self.journal.write("disagreements", iteration=iteration, found=len(read), verdicts=20, read=read)
        said = {f"{each}/q": f"{each} is fine." for each in examples}
        self.journal.write("reasons", target=said, reference={})

    def learn(self, lesson: str, text: str, *evidence: str, note: str | None = None, relation: str = "new") -> None:
        """``note`` is the id of the note where it went into a lesson that was there."""
        fresh = evidence[-1:] if note else evidence
        self.journal.write(
            "lesson", id=note or lesson, text=text, evidence=fresh, relation=relation, kept_as=lesson, kept_text=text
        )
        row = {"id": lesson, "text": text, "direction": "stricter", "dimension": "d", "evidence": evidence}
        self.journal.write("learned", lesson=row | {"status": "new", "reason": None})

    def edit(self, old: str, new: str, *lessons: str) -> None:
        self.journal.write("edit", old=old, new=new, lessons=lessons)

    def decide(self, version: int, parent: int, *edits: tuple[str, str, str], accepted: bool = True) -> None:
        """Edits as lesson, old text, new text."""
        prompt = Prompt(self.prompts[parent])
        for _, old, new in edits:
            prompt = prompt.apply(Edit(old=old, new=new))
        self.prompts[version] = prompt.text
        self.run.save_version(version, prompt)
        self.journal.write(
            "decision",
            version=version,
            parent=parent,
            lessons=[lesson for lesson, _, _ in edits],
            accepted=accepted,
            reason="better" if accepted else "not better",
            gain=GAIN,
            judged=30,
            iteration=version,
        )

    def step(
        self, version: int, *edits: tuple[str, str, str], accepted: bool = True, parent: int | None = None
    ) -> None:
        """Lessons, their edits and the decision; edits as lesson, old text, new text."""
        key = f"e{version}"
        self.disagree(key, iteration=version)
        for lesson, old, new in edits:
            self.learn(lesson, new, f"{key}/q")
            self.edit(old, new, lesson)
        self.decide(version, version - 1 if parent is None else parent, *edits, accepted=accepted)

    def graph(self) -> nx.DiGraph:
        return build_graph(self.run.path)

    def why(self, sentence: str) -> Why:
        graph = self.graph()
        return why(graph, graph.nodes[f"version:{graph.graph['best']}"]["prompt"], sentence)


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path / "run")


def past(found: Why) -> list[tuple[int, bool, tuple[int, ...]]]:
    return [(each.line, each.in_start, each.edits) for each in found.passages]


def test_a_sentence_of_the_start_has_no_edit_though_its_line_was_edited(made: Made) -> None:
    made.step(1, ("L1", "Look at every number.", "Look at every number twice."))
    assert past(made.why("compare names")) == [(2, True, ())]
    assert past(made.why("every number twice")) == [(2, True, (1,))]


def test_a_sentence_that_a_later_edit_changed_owes_its_words_to_both(made: Made) -> None:
    first, second = "- Answer no if a name is wrong.", "- Answer no if a name or a title is wrong."
    made.step(1, ("L1", "You are a careful judge.", f"You are a careful judge.\n{first}"))
    made.step(2, ("L2", first, second))
    found = made.why("a name or a title")
    assert past(found) == [(2, False, (1, 2))]
    assert [(each.number, each.measured[0].version) for each in found.edits] == [(1, 1), (2, 2)]
    assert [each.lessons[0].cases[0].example for each in found.edits] == ["e1", "e2"]


def test_words_may_run_over_lines_and_marks_do_not_count(made: Made) -> None:
    assert past(made.why("CAREFUL judge - compare 'names'")) == [(1, True, ()), (2, True, ())]


def test_edits_of_one_bundle_are_told_apart_and_the_gain_is_said_to_be_shared(made: Made) -> None:
    names, numbers = "- No if a name is wrong.", "- No if a number is wrong."
    end = "Compare names. Look at every number."
    made.step(
        1, ("L1", "You are a careful judge.", f"You are a careful judge.\n{names}"), ("L2", end, f"{end}\n{numbers}")
    )
    (story,) = made.why("no if a number is wrong").edits
    assert (story.number, story.measured[0].with_edits) == (2, (1,))
    assert story.measured[0].gain == GAIN


def test_a_rewrite_of_several_lessons_puts_first_the_one_that_the_sentence_says(made: Made) -> None:
    rule = "Answer no if a date is wrong."
    new = f"You are a careful judge.\nAnswer yes even if it is short.\n{rule}\n"
    made.disagree("e1", "e2")
    made.learn("L1", "Answer yes even if it is short.", "e1/q")
    made.learn("L2", rule, "e2/q")
    made.edit("You are a careful judge.\n", new, "L1", "L2")
    made.journal.write(
        "decision", version=1, parent=0, lessons=["L1", "L2"], accepted=True, reason="better", gain=GAIN, judged=9,
        iteration=1,
    )  # fmt: skip
    (story,) = made.why(rule).edits
    assert [lesson.id for lesson in story.lessons] == ["L2", "L1"]
    assert story.lessons[0].said == 1.0 > story.lessons[1].said
    assert past(made.why("careful judge")) == [(1, True, ())]


def test_an_edit_that_is_taken_out_gives_the_older_words_their_own_past_back(made: Made) -> None:
    rule, longer = "- No if a name is wrong.", "- No if a name is wrong, or a title."
    other = "Look at every number."
    made.step(1, ("L1", "You are a careful judge.", f"You are a careful judge.\n{rule}"))
    made.step(2, ("L2", other, f"{other} Look at every date."))
    made.step(3, ("L3", rule, longer))
    made.journal.write("pruning", version=4, lessons=["L3"], removed=True, reason="no worse", gain=GAIN)
    made.journal.write("pruning", version=5, lessons=["L2"], removed=False, reason="worse", gain=GAIN)
    graph = made.graph()
    assert graph.graph["best"] == 4 and graph.nodes["version:4"]["prompt"] == made.prompts[2]
    assert graph.nodes["version:5"]["accepted"] is False
    assert "every date" not in graph.nodes["version:5"]["prompt"]
    assert past(made.why("a name is wrong")) == [(2, False, (1,))]
    assert graph.edges["edit:3", "version:4"]["kind"] == "taken out"
    gone = made.why("or a title")
    assert gone.found == NOT_THERE
    assert [(each.number, each.status) for each in gone.edits] == [(3, "taken out again")]
    (kept,) = made.why("look at every date").edits
    assert kept.pruning == {"removed": False, "reason": "worse", "gain": GAIN}


def test_pruning_knows_an_edit_that_was_proposed_for_another_lesson_too(made: Made) -> None:
    made.disagree("e1", "e2")
    for lesson in ("L1", "L2"):
        made.learn(lesson, f"Answer no if {lesson}.", "e1/q")
        made.edit("Compare names.", "Compare every name.", lesson)
    made.decide(1, 0, ("L1", "Compare names.", "Compare every name."))
    made.journal.write("pruning", version=1, lessons=["L1"], removed=False, reason="it cannot be taken out", gain=None)
    assert build_graph(made.run.path).nodes["edit:1"]["pruning"]["removed"] is False


def test_pruning_knows_an_accepted_edit_from_a_later_one_of_the_same_lesson(made: Made) -> None:
    made.step(1, ("L1", "Look at every number.", "Look at every number. No if wrong."))
    made.step(2, ("L1", "Compare names.", "Compare names. No if false."), accepted=False)
    made.step(3, ("L3", "You are", "Now you are"), parent=1)
    made.journal.write("pruning", version=1, lessons=["L1"], removed=False, reason="it cannot be taken out", gain=None)
    graph = made.graph()
    assert "pruning" in graph.nodes["edit:1"] and "pruning" not in graph.nodes["edit:2"]
    assert graph.nodes["edit:2"]["status"] == "rejected"


def test_what_was_learnt_in_vain_is_answered_for(made: Made) -> None:
    made.step(1, ("L1", "Look at every number.", "Look at every number. Hate commas."), accepted=False)
    made.learn("L2", "Count all the words.", "e1/q")
    made.journal.write("no_edit", lessons=["L2"], reason="too long")
    found = made.why("hate commas")
    assert (found.found, found.passages) == (NOT_THERE, ())
    assert [(each.status, each.reason) for each in found.edits] == [("rejected", "not better")]
    (lesson,) = made.why("count all the words").lessons
    assert (lesson.id, lesson.reason) == ("L2", "too long")


def test_the_nearest_sentence_is_answered_for_or_asked_about(made: Made) -> None:
    near = made.why("You are a very careful judge")
    assert (near.found, past(near)) == ("nearest", [(1, True, ())])
    with pytest.raises(InputError, match=naming("Did you mean", "line 1", JUDGE)):
        made.why("be careful as a judge of texts")
    with pytest.raises(InputError, match=r"says 'nothing like it'\.$"):
        made.why("nothing like it")
    with pytest.raises(InputError, match="no word"):
        made.why("…")


def test_only_versions_of_the_run_are_answered_for(made: Made) -> None:
    with pytest.raises(InputError, match=naming("none", "versions")):
        why(made.graph(), "Another prompt.", "prompt")


def test_notes_that_say_the_same_hang_on_the_lesson_and_later_evidence_is_marked(made: Made) -> None:
    rule = "No if a name is wrong."
    made.disagree("e1", "e2")
    made.learn("L1", rule, "e1/q")
    made.learn("L1", rule, "e1/q", "e2/q", note="L2", relation="duplicate")
    made.edit("You are a careful judge.", f"You are a careful judge.\n- {rule}", "L1")
    made.decide(1, 0, ("L1", "You are a careful judge.", f"You are a careful judge.\n- {rule}"))
    made.disagree("e3", iteration=2)
    made.learn("L1", rule, "e1/q", "e2/q", "e3/q", note="L3", relation="merge")
    graph = made.graph()
    assert graph.edges["lesson:L2", "lesson:L1"]["kind"] == "duplicate"
    assert graph.edges["lesson:L3", "lesson:L1"]["kind"] == "merge"
    assert graph.nodes["lesson:L2"]["status"] == "absorbed" and graph.nodes["lesson:L1"]["support"] == 3
    evidence = {node for node in nx.ancestors(graph, "lesson:L1") if graph.nodes[node]["kind"] == "disagreement"}
    assert evidence == {"disagreement:e1/q", "disagreement:e2/q", "disagreement:e3/q"}
    (story,) = made.why(rule).edits
    cases = story.lessons[0].cases
    assert [(case.key, case.later) for case in cases] == [("e1/q", False), ("e2/q", False), ("e3/q", True)]
    assert (cases[0].input, cases[0].question_text) == ("Document 1.", "Is it right?")
    assert (cases[0].target_says, cases[0].reference_says) == ("e1 is fine.", None)


def test_a_version_left_over_from_another_way_is_not_taken_for_the_one_that_counts(made: Made) -> None:
    made.run.save_version(1, Prompt("Of a process that was killed and came to other answers.\n"))
    made.step(1, ("L1", "Look at every number.", "Look at every number twice."))
    assert made.graph().nodes["version:1"]["prompt"] == made.prompts[1]


def test_a_version_to_which_its_edits_do_not_lead_is_compared_with_the_one_before_it(made: Made) -> None:
    made.disagree("e1")
    made.learn("L1", "No if a name is wrong.", "e1/q")
    made.edit("words that are not there", "No if a name is wrong.", "L1")
    made.run.save_version(1, Prompt(START + "No if a name is wrong.\n"))
    made.journal.write(
        "decision",
        version=1,
        parent=0,
        lessons=["L1"],
        accepted=True,
        reason="better",
        gain=GAIN,
        judged=9,
        iteration=1,
    )
    assert past(made.why("a name is wrong")) == [(3, False, (1,))]
    assert past(made.why("look at every number")) == [(2, True, ())]


def test_questions_written_anew_are_a_version_with_the_same_prompt(made: Made) -> None:
    made.step(1, ("L1", "Look at every number.", "Look at every number twice."))
    made.decide(2, 1)
    graph = made.graph()
    assert graph.nodes["version:2"]["new_questions"] is True
    assert past(made.why("every number twice")) == [(2, True, (1,))]


def test_an_event_that_is_not_ours_is_a_sentence(made: Made) -> None:
    made.journal.write("disagreements", iteration=1)
    with pytest.raises(InputError, match=naming("journal.jsonl", "event 1", "disagreements")):
        made.graph()


def test_a_directory_without_a_run_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=naming("no run")):
        build_graph(tmp_path)


@pytest.mark.parametrize("save", [save_json, save_graphml])
def test_the_graph_can_be_read_back(made: Made, tmp_path: Path, save: Callable[..., None]) -> None:
    made.step(1, ("L1", "Look at every number.", "Look at every number \x0b\U0001f600 <&> twice."))
    graph = made.graph()
    file = tmp_path / "new" / "graph"
    save(graph, file)
    if save is save_json:
        again = nx.node_link_graph(json.loads(file.read_text(encoding="utf-8")), edges="edges")
        assert nx.utils.graphs_equal(again, graph)
        return
    again = nx.read_graphml(file)
    assert (set(again.nodes), set(again.edges)) == (set(graph.nodes), set(graph.edges))
    assert again.nodes["edit:1"]["new"] == "Look at every number \ufffd\U0001f600 <&> twice."
    assert again.nodes["version:1"]["gain.low"] == 0.02 and again.nodes["version:1"]["accepted"] is True
    assert again.graph["best"] == 1


def test_passages_have_all_the_words_of_a_prompt() -> None:
    text = "# Rules\n\n1. First. Then this!\n-\n- One; two\n\t* 3) three? Yes.\n{input}\n…"
    passages = split_passages(text)
    assert [word for each in passages for word in words_of(each.text)] == words_of(text)
    assert [each.text for each in passages if each.line == 3] == ["1. First.", "Then this!"]


# --- runs of the loop -----------------------------------------------------------------------------------------------


def test_every_edit_of_a_run_leads_back_to_the_evidence_of_its_lessons(make_world: Any, tmp_path: Path) -> None:
    done = make_world(80).migrate(tmp_path / "run", trial=True, prune=True)
    graph = build_graph(tmp_path / "run")
    assert graph.graph["finished"] and graph.graph["gain"] == done.result["gain"]
    assert nx.is_directed_acyclic_graph(graph)
    lessons = {each["id"]: each for each in done.result["lessons"]}
    assert done.result["accepted_edits"]
    for candidate in done.result["accepted_edits"]:
        for edit in candidate["edits"]:
            added = edit["new"].replace(edit["old"], "").strip()
            found = why(graph, done.prompt, added)
            assert found.found == "in the prompt" and not found.passages[0].in_start
            story = next(each for each in found.edits if each.new == edit["new"])
            assert story.status == "accepted" and story.trial is not None and story.trial["passed"]
            assert story.pruning is not None
            assert [each.id for each in story.lessons] == edit["lessons"]
            for lesson in story.lessons:
                assert [case.key for case in lesson.cases] == lessons[lesson.id]["evidence"]
                assert all(case.input and case.output and case.target_says for case in lesson.cases)
            assert any(each.accepted and each.gain["value"] > 0 for each in story.measured if each.gain)
    kinds = Counter(row["kind"] for _, row in graph.nodes(data=True))
    prompts = {row["prompt"] for _, row in graph.nodes(data=True) if row["kind"] == "version"}
    files = {file.read_bytes().decode() for file in (tmp_path / "run" / "prompts").glob("*.md")}
    assert prompts == files and kinds["edit"] >= 3
    failed = [row for _, row in graph.nodes(data=True) if row.get("status") == "failed its trial"]
    assert failed and all(not row["trial"]["passed"] for row in failed)


def test_blame_of_each_version_has_its_words_and_only_edits_that_it_has(make_world: Any, tmp_path: Path) -> None:
    make_world(60).migrate(tmp_path / "run", prune=True)
    graph = build_graph(tmp_path / "run")
    for _, row in list(graph.nodes(data=True)):
        if row["kind"] == "version":
            found = blame(graph, row["number"])
            assert [each.text for each in found] == [each.text for each in split_passages(row["prompt"])]
            for each in found:
                for number in each.edits:
                    new = graph.nodes[f"edit:{number}"]["new"]
                    assert set(words_of(each.text)) <= set(words_of(new)) and not each.in_start


@pytest.mark.parametrize("answers", [0, 60, 150, 250])
def test_a_run_that_was_killed_has_a_graph_of_what_it_came_to(world: Any, tmp_path: Path, answers: int) -> None:
    asked = 0

    def crash(request: Request) -> None:
        nonlocal asked
        asked += 1
        if asked > answers:
            raise Crash

    with pytest.raises(Crash):
        world.migrate(tmp_path / "run", before=crash)
    graph = build_graph(tmp_path / "run")
    assert graph.graph["finished"] is False and "gain" not in graph.graph
    best = graph.nodes[f"version:{graph.graph['best']}"]
    assert why(graph, best["prompt"], "careful judge").passages[0].in_start
    save_graphml(graph, tmp_path / "graph.graphml")


def test_a_failure_of_a_generator_stands_with_what_it_wrote_and_not_with_an_output_of_the_data(
    make_letters: Any, tmp_path: Path
) -> None:
    class Answered(make_letters):  # type: ignore[misc]
        @property
        def rows(self) -> list[dict[str, Any]]:
            return [row | {"output": "An earlier letter."} for row in super().rows]

    Answered().tune(tmp_path / "run")
    found = build_graph(tmp_path / "run")
    failures = [row for _, row in found.nodes(data=True) if row["kind"] == "disagreement"]
    assert failures
    for row in failures:
        assert row["output"].startswith(f"This is [{row['example']}]."), "what the version that failed wrote"
    (tmp_path / "run" / "result.json").unlink()
    outputs = tmp_path / "run" / "verdicts" / "outputs.jsonl"
    outputs.write_text('{"version": 0, "example": "e004", "output": 5}\n')
    with pytest.raises(InputError, match=r"outputs\.jsonl, line 1: field 'output'"):
        build_graph(tmp_path / "run")
    outputs.unlink()
    found = build_graph(tmp_path / "run")
    assert not any("output" in row for _, row in found.nodes(data=True)), "where it was not kept it is not made up"
