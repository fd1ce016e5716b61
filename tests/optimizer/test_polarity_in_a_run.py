"""A question that looks for a fault takes part in a run as the same question after the merit would."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askance.agents.note_takers import Case
from askance.bridges.gepa_parts import NearnessToPeople, OwnScore
from askance.evaluation.scoring import Targets, score_examples
from askance.memory.journal import read_events
from askance.optimizer.modes.generator import FailureSignal
from askance.optimizer.signals import HumanSignal
from askance.optimizer.steps.lessons import LessonTrial, shift
from askance.optimizer.subject import Draft, Observation
from askance.prompts.checklist import Checklist, Question
from askance.prompts.examples import Example
from askance.prompts.lessons import Disagreement, Lesson
from askance.prompts.prompt import Prompt
from askance.prompts.verdicts import Verdict
from tests.said import says

PROMPT = Prompt("Judge.")
MERIT = Question(id="q", text="Is it polite?")
FAULT = Question(id="q", text="Is it rude?", good="no")
EXACT = st.integers(0, 64).map(lambda number: number / 64)


def verdict(question: Question, example: str, p_good: float) -> Verdict:
    """What a judge says of a question who takes the output for so good."""
    return Verdict(example, "q", "m", "p", question.is_good(p_good >= 0.5), question.p_good(p_good), "logprob")


def observed(question: Question, p_good: Sequence[float]) -> tuple[Draft, Observation]:
    checklist = Checklist(questions=[question])
    examples = [Example(id=f"e{n}", input="i", output="word " * n) for n in range(len(p_good))]
    verdicts = [verdict(question, f"e{n}", p) for n, p in enumerate(p_good)]
    scores = score_examples(examples, checklist, verdicts)
    return Draft(PROMPT, checklist), Observation(examples, verdicts, scores, checklist)


def disagreements(question: Question, pairs: Sequence[tuple[float, float]]) -> list[Disagreement]:
    draft, seen = observed(question, [p for p, _ in pairs])
    targets = Targets("human", ("overall",), {f"e{n}": {"overall": wanted} for n, (_, wanted) in enumerate(pairs)})
    signal = HumanSignal(targets, seen.examples, None, threshold=0.3)
    return signal.disagreements(draft, seen)


@given(st.lists(st.tuples(EXACT, EXACT), min_size=1, max_size=12))
def test_people_and_judge_differ_on_the_same_examples(pairs: list[tuple[float, float]]) -> None:
    merits, faults = disagreements(MERIT, pairs), disagreements(FAULT, pairs)
    for one, other in zip(merits, faults, strict=True):
        assert (one.key, one.gap) == (other.key, other.gap)
        assert (one.target, one.reference) == (other.reference, other.target), "a kind judge says no to a fault"
        assert other.target_p_yes == 1 - one.target_p_yes
        assert other.reference_p_yes == 1 - one.reference_p_yes


async def test_people_are_quoted_with_their_score_and_not_with_the_wanted_yes() -> None:
    draft, seen = observed(FAULT, [0.9])
    signal = HumanSignal(Targets("human", ("overall",), {"e0": {"overall": 0.25}}), seen.examples, None, threshold=0.3)
    (found,) = signal.disagreements(draft, seen)
    assert (found.target, found.reference_p_yes) == (False, 0.75)
    reasons = await signal.reasons(draft, seen, [found])
    assert reasons.theirs.keys() == {"e0/q"} and says(reasons.theirs["e0/q"], "score of overall", "0.25", 0, 1)


@given(EXACT, EXACT, EXACT)
def test_a_trial_sees_the_same_move(before: float, after: float, wanted: float) -> None:
    moves = [shift(verdict(q, "e", before), verdict(q, "e", after), wanted, q) for q in (MERIT, FAULT)]
    assert moves[0] == pytest.approx(moves[1])


@pytest.mark.parametrize("direction", ["stricter", "more lenient"])
async def test_a_trial_takes_the_same_controls(direction: Any) -> None:
    wanted = {"e0": 0.0, "e1": 1.0, "e2": 0.9, "e3": 0.1, "e4": 0.5}

    class Signal:
        def reference(self, draft: Draft, example: str, question: str) -> float:
            return wanted[example]

        def is_like(self, verdict: Verdict) -> bool:
            return True

    class Subject:
        def __init__(self, question: Question) -> None:
            self.question, self.asked = question, []

        async def probe(self, draft: Draft, pairs: Any, seen: Observation) -> Any:
            self.asked = pairs
            return {pair: verdict(self.question, pair[0], 0.3) for pair in pairs}

    lesson = Lesson(id="L1", text="Look.", direction=direction, dimension="overall", evidence=("e0/q",))
    results, asked = [], []
    for question in (MERIT, FAULT):
        draft, seen = observed(question, [0.9, 0.95, 0.8, 0.05, 0.45])
        subject: Any = Subject(question)
        signal: Any = Signal()
        results.append(await LessonTrial(subject, signal).run(draft, draft, [lesson], seen))
        asked.append(subject.asked)
    assert asked[0] == asked[1]
    assert {pair[0] for pair in asked[0][1:]} == ({"e1", "e2"} if direction == "stricter" else {"e3"})
    assert replace(results[0], evidence_shift=None, control_shift=None) == replace(
        results[1], evidence_shift=None, control_shift=None
    )
    assert results[0].evidence_shift == pytest.approx(results[1].evidence_shift)


def test_a_generator_fails_a_fault_question_with_yes() -> None:
    draft, seen = observed(FAULT, [0.9, 0.25])
    signal = FailureSignal(None)
    (found,) = signal.disagreements(draft, seen)
    assert (found.key, found.target, found.reference) == ("e1/q", True, False)
    assert (found.target_p_yes, found.reference_p_yes, found.gap) == (0.75, 0.0, 0.75)
    assert signal.reference(draft, "e1", "q") == 1.0
    assert not signal.agrees(seen)
    assert signal.agrees(observed(FAULT, [0.9, 0.8])[1])
    assert not signal.agrees(observed(MERIT, [0.9, 0.25])[1])


@pytest.mark.parametrize(
    ("question", "target", "direction", "opening"),
    [
        (MERIT, True, "stricter", "Answer no if the output"),
        (MERIT, False, "more lenient", "Answer yes even if the output"),
        (FAULT, False, "stricter", "Asked about a fault, answer yes if the output"),
        (FAULT, True, "more lenient", "Asked about a fault, answer no even if the output"),
    ],
)
def test_a_rule_orders_the_right_answer(question: Question, target: bool, direction: str, opening: str) -> None:
    disagreement = Disagreement(example="e", question="q", target=target, reference=not target, gap=1)
    case = Case(disagreement, Example(id="e", input="i", output="o"), question)
    assert (case.direction.name, case.direction.opening) == (direction, opening)
    right = "yes" if disagreement.reference else "no"
    assert case.direction.answers == (right, "no" if right == "yes" else "yes")
    assert right in case.direction.field.split("_")


def as_faults(world: Any, faults: Collection[str], texts: Mapping[str, str]) -> None:
    """Some of a world's questions look for a fault from now on: every answer and every rule is turned round."""
    reply = world.reply
    old, new = ("answer_no_if", "answer_yes_even_if"), ("answer_yes_if", "answer_no_even_if")

    def is_fault(messages: Any) -> bool:
        everything = "\n".join(content for _, content in messages)
        return any(texts[name] in everything for name in faults)

    def turned(messages: Any, schema: Any) -> Any:
        fields = dict((schema or {}).get("properties", {}))
        if fault_fields := [name for name in new if name in fields]:
            was = old[new.index(fault_fields[0])]
            said = json.loads(reply(messages, {"properties": {was: {}}}))
            return json.dumps({fault_fields[0] if name == was else name: text for name, text in said.items()})
        said = reply(messages, schema)
        if isinstance(said, float) and is_fault(messages):
            return 1 - said
        if "explanation" in fields and is_fault(messages):
            answer = json.loads(said)
            return json.dumps(answer | {"answer": "no" if answer["answer"] == "yes" else "yes"})
        return said

    world.reply = turned
    world.checklist = world.checklist.model_copy(
        update={
            "questions": tuple(
                each.model_copy(update={"good": "no"}) if each.id in faults else each
                for each in world.checklist.questions
            )
        }
    )


@pytest.mark.parametrize("trial", [False, True])
def test_an_alignment_decides_alike_whichever_way_its_questions_ask(
    make_world: Any, tmp_path: Path, trial: bool
) -> None:
    merits, faults = make_world(), make_world()
    ids = [question.id for question in merits.checklist.questions]
    texts = {question.id: question.text for question in merits.checklist.questions}
    as_faults(faults, ids, texts)
    one = merits.align(tmp_path / "merits", trial=trial, prune=True).result
    other = faults.align(tmp_path / "faults", trial=trial, prune=True).result
    assert one["accepted_edits"], "something is learned"
    assert one["finish_reason"] == other["finish_reason"]
    assert decisions(tmp_path / "merits") == decisions(tmp_path / "faults")
    for side in ("baseline", "best"):
        for split in ("validation", "test"):
            assert near(one[side][split]) == near(other[side][split])
        for method in ("uncalibrated", "thresholds", "platt"):
            before, after = (each["calibration"][side][method] for each in (one, other))
            assert near(before["spearman"]) == near(after["spearman"])
    lessons = [
        [(each["direction"], each["evidence"], each["status"]) for each in run["lessons"]] for run in (one, other)
    ]
    assert lessons[0] == lessons[1]
    assert (tmp_path / "faults" / "inputs" / "checklist.yaml").read_text().count("good: no") == len(ids)
    assert "good" not in (tmp_path / "merits" / "inputs" / "checklist.yaml").read_text()
    assert "yes = fault" in (tmp_path / "faults" / "report.html").read_text()
    assert "yes = fault" not in (tmp_path / "merits" / "report.html").read_text()
    assert says(other["best"]["prompt"], "about a fault", "answer yes") and says(one["best"]["prompt"], "Answer no if")


def test_a_fault_takes_part_beside_a_merit(make_world: Any, tmp_path: Path) -> None:
    merits, mixed = make_world(), make_world()
    texts = {question.id: question.text for question in merits.checklist.questions}
    as_faults(mixed, ["facts"], texts)
    one = merits.align(tmp_path / "merits", trial=True).result
    other = mixed.align(tmp_path / "mixed", trial=True).result
    for split in ("validation", "test"):
        assert near(one["baseline"][split]) == near(other["baseline"][split])
    assert other["best"]["test"]["spearman"] > other["baseline"]["test"]["spearman"] + 0.2
    rules = {
        (key.split("/")[1], each["text"].split(" if ")[0]) for each in other["lessons"] for key in each["evidence"]
    }
    assert any(name == "facts" and says(opening, "about a fault", "answer yes") for name, opening in rules)
    assert ("words", "Answer no") in rules
    assert not any(name == "facts" and "a fault" not in opening for name, opening in rules)


def decisions(run: Path) -> list[Any]:
    rows = read_events(run / "journal.jsonl")
    return [(each["accepted"], near(each["gain"])) for each in rows if each["event"] == "decision"]


def near(value: Any) -> Any:
    """Without the digits in which equal numbers may differ."""
    if isinstance(value, dict):
        return {name: near(each) for name, each in value.items() if name != "prompt"}
    return round(value, 5) if isinstance(value, float) else value


def test_gepa_reads_a_yes_to_a_fault_as_a_failure() -> None:
    _, seen = observed(FAULT, [0.25, 0.75])
    failed, passed = (OwnScore().record(seen, place, {})["Feedback"] for place in (0, 1))
    assert failed == "- Is it rude? (yes = fault): FAILED"
    assert passed == "- Is it rude? (yes = fault): passed"
    people = Targets("human", ("overall",), {"e0": {"overall": 1.0}, "e1": {"overall": 0.0}})
    record = NearnessToPeople(people).record(seen, 0, {})
    assert record["Generated Outputs"] == {"Is it rude? (yes = fault)": "yes, P(yes) = 0.75"}
    assert "too strict: more in its favour was wanted" in record["Feedback"]
    assert "too lenient: more against the output" in NearnessToPeople(people).record(seen, 1, {})["Feedback"]
