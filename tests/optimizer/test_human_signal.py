"""The signal of ``align``: where a judge and people differ, and which questions that is put down to."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace

import pytest
from scipy.stats import spearmanr

from askance.agents.evaluator import Evaluator
from askance.evaluation.kept_judge import QuestionOrigin
from askance.evaluation.scoring import Targets, score_examples
from askance.models.gateway import Gateway
from askance.optimizer.signals import HumanSignal
from askance.optimizer.subject import Draft, Observation
from askance.prompts.checklist import Checklist, Question
from askance.prompts.examples import Example
from askance.prompts.human_feedback import read_comments
from askance.prompts.lessons import Disagreement
from askance.prompts.prompt import Prompt
from askance.prompts.verdicts import Verdict
from askance.testing import ScriptedModel
from tests.said import says

Table = dict[str, dict[str, float | None]]


class Panel:
    """A judge's P(yes) by question and example, and people's scores by example."""

    def __init__(self, table: Table, wanted: dict[str, float | None], threshold: float = 0.3, rated: str = "d") -> None:
        checklist = Checklist(questions=[Question(id=name, text=f"{name}?", dimension="d") for name in table])
        self.draft = Draft(Prompt("Judge."), checklist)
        self.examples = [Example(id=name, input="in", output="out") for name in wanted]
        verdicts = [self.verdict(name, question, p) for question, row in table.items() for name, p in row.items()]
        scores = score_examples(self.examples, checklist, verdicts)
        self.seen = Observation(self.examples, verdicts, scores, checklist)
        self.targets = Targets("human", (rated,), {name: {rated: score} for name, score in wanted.items()})
        self.judge = Evaluator(Gateway(), ScriptedModel(lambda request: "I see."), self.draft.prompt, checklist)
        self.signal = HumanSignal(self.targets, self.examples, lambda draft: self.judge, threshold=threshold)

    def verdict(self, example: str, question: str, p_yes: float | None) -> Verdict:
        answer = None if p_yes is None else p_yes >= 0.5
        status = "ok" if p_yes is not None else "parse_error"
        return Verdict(example, question, "m", "p", answer, p_yes, "logprob", status=status)

    @property
    def found(self) -> list[Disagreement]:
        return self.signal.disagreements(self.draft, self.seen)

    @property
    def keys(self) -> list[str]:
        return [each.key for each in self.found]


def test_both_directions_are_found() -> None:
    panel = Panel({"q": {"mild": 0.9, "severe": 0.1, "right": 0.5}}, {"mild": 0.2, "severe": 0.8, "right": 0.5})
    found = {each.key: each for each in panel.found}
    assert set(found) == {"mild/q", "severe/q"}
    mild, severe = found["mild/q"], found["severe/q"]
    assert (mild.target, mild.reference, mild.target_p_yes, mild.reference_p_yes) == (True, False, 0.9, 0.2)
    assert (severe.target, severe.reference) == (False, True)
    assert mild.gap > 0
    assert severe.gap > 0


def test_a_score_within_the_threshold_is_no_disagreement() -> None:
    table, wanted = {"q": {"x": 0.75, "y": 0.5}}, {"x": 0.5, "y": 0.5}
    assert Panel(table, wanted, 0.3).keys == []
    assert Panel(table, wanted, 0.24).keys == ["x/q"]


def test_only_questions_that_are_off_in_the_same_direction_are_put_down_for_it() -> None:
    panel = Panel({"wrong": {"x": 0.9}, "right": {"x": 0.1}, "also": {"x": 0.95}}, {"x": 0.2})
    assert sorted(panel.keys) == ["x/also", "x/wrong"]


def test_questions_that_make_up_for_each_other_are_no_disagreement() -> None:
    assert Panel({"high": {"x": 0.9}, "low": {"x": 0.1}}, {"x": 0.5}).keys == []


def test_the_gap_leaves_out_how_mild_the_judge_is_in_general() -> None:
    panel = Panel({"q": {"x": 0.9, "y": 0.9, "z": 0.9}}, {"x": 0.1, "y": 0.4, "z": 0.9})
    assert {each.key: each.gap for each in panel.found} == {
        "x/q": pytest.approx(0.8 - 1.3 / 3),
        "y/q": pytest.approx(0.5 - 1.3 / 3),
    }


def test_the_widest_gap_comes_first_and_questions_take_turns() -> None:
    wanted = {"x": 0.3, "y": 0.1, "z": 0.9}
    panel = Panel({"p": dict.fromkeys(wanted, 0.9), "q": dict.fromkeys(wanted, 0.8)}, wanted)
    assert panel.keys == ["y/p", "y/q", "x/p", "x/q"]


def against(n: int = 10) -> Panel:
    """One question ranks against people, and another makes up for it; a third is only too mild on one example."""
    names = [f"e{k}" for k in range(n)]
    wanted = {name: k / (n - 1) for k, name in enumerate(names)}
    table: Table = {
        "good": {name: wanted[name] for name in names},
        "mild": {name: wanted[name] for name in names} | {"e0": 1.0},
        "against": {name: 0.5 + 0.45 * (0.5 - wanted[name]) for name in names},
    }
    return Panel(table, wanted)


def test_a_question_that_runs_against_people_comes_first_although_the_others_make_up_for_it() -> None:
    keys = against().keys
    assert keys[-1] == "e0/mild"
    assert {key.split("/")[1] for key in keys[:-1]} == {"against"}
    assert {"e8/against", "e9/against"} <= set(keys), "their scores as a whole are within the threshold"


def test_few_examples_say_nothing_about_a_ranking() -> None:
    assert "e6/against" not in against(7).keys


def test_an_example_without_a_score_on_either_side_is_left_out() -> None:
    panel = Panel({"q": {"x": None, "y": 0.9, "z": 0.9}}, {"x": 0.1, "y": None, "z": 0.1})
    assert panel.keys == ["z/q"]
    assert not panel.signal.agrees(panel.seen)
    assert panel.signal.reference(panel.draft, "y", "q") is None


def test_people_agree_where_every_score_is_within_the_threshold() -> None:
    near = Panel({"q": {"x": 0.9, "y": 0.2}}, {"x": 0.7, "y": 0.4})
    assert near.signal.agrees(near.seen)
    far = Panel({"q": {"x": 0.9, "y": 0.2}}, {"x": 0.7, "y": 0.6})
    assert not far.signal.agrees(far.seen)


def test_what_people_gave_is_the_reference_also_where_they_rated_the_whole() -> None:
    panel = Panel({"q": {"x": 0.9}}, {"x": 0.2}, rated="overall")
    assert panel.signal.reference(panel.draft, "x", "q") == 0.2
    assert panel.keys == ["x/q"]


async def test_the_note_taker_is_told_what_people_gave_and_what_the_judge_says() -> None:
    panel = Panel({"q": {"x": 0.9}}, {"x": 0.2})
    reasons = await panel.signal.reasons(panel.draft, panel.seen, panel.found)
    assert reasons.mine == {"x/q": "I see."}
    assert reasons.theirs.keys() == {"x/q"} and says(reasons.theirs["x/q"], "score of d", "0.20", 0, 1)


async def test_what_people_wrote_stands_in_the_place_of_their_score() -> None:
    panel = Panel({"q": {"x": 0.9, "y": 0.9}, "r": {"x": 0.9, "y": 0.9}}, {"x": 0.1, "y": 0.1})
    comment = ["Promises\na refund", {"q": "It is wrong!", "d": "Rude", "elsewhere": "Not this."}]
    panel.examples[0] = panel.examples[0].model_copy(update={"comment": read_comments(comment)})
    reasons = await panel.signal.reasons(panel.draft, panel.seen, panel.found)
    score = "people's mean score of d: 0.10, from 0 (worst) to 1 (best)"
    assert reasons.theirs == {
        "x/q": "It is wrong! Rude. Promises a refund",
        "x/r": "Rude. Promises a refund",
        "y/q": score,
        "y/r": score,
    }


async def test_comments_about_something_else_leave_the_score_where_it_is() -> None:
    panel = Panel({"q": {"x": 0.9}}, {"x": 0.2})
    panel.examples[0] = panel.examples[0].model_copy(update={"comment": read_comments({"elsewhere": "Not this."})})
    reasons = await panel.signal.reasons(panel.draft, panel.seen, panel.found)
    assert reasons.theirs.keys() == {"x/q"} and says(reasons.theirs["x/q"], "score of d", "0.20", 0, 1)


async def test_without_explanations_only_people_are_quoted() -> None:
    panel = Panel({"q": {"x": 0.9}}, {"x": 0.2})
    silent = HumanSignal(panel.targets, panel.examples, None, threshold=0.3)
    reasons = await silent.reasons(panel.draft, panel.seen, panel.found)
    assert (reasons.mine, list(reasons.theirs)) == ({}, ["x/q"])


def test_rejecting_an_output_is_the_answer_to_a_learned_question_only_where_it_came_from() -> None:
    checklist = Checklist(
        questions=[Question(id="start", text="Good?"), Question(id="price", text="Price?", good="no")]
    )
    origins = {"price": QuestionOrigin.model_validate({"from": "comment", "sources": ["e1"]})}
    draft = Draft(Prompt("Judge."), checklist, origins=origins)
    wanted = {"e0": {"overall": 0.0}, "e1": {"overall": 0.0}, "e2": {"overall": 1.0}}
    signal = HumanSignal(Targets("human", ("overall",), wanted), (), None, threshold=0.3)
    found = {name: signal.reference(draft, name, "price") for name in wanted}
    assert found == {"e0": None, "e1": 0.0, "e2": 1.0}
    assert [signal.reference(draft, name, "start") for name in wanted] == [0.0, 0.0, 1.0]


def test_what_a_judge_says_when_asked_again_is_no_further_disagreement() -> None:
    panel = Panel({"q": {"x": 0.9, "y": 0.5}}, {"x": 0.2, "y": 0.5})
    once = panel.found
    again = [replace(each, replicate=1, p_yes=0.1, answer=False) for each in panel.seen.verdicts]
    panel.seen = replace(panel.seen, verdicts=[*panel.seen.verdicts, *again])
    assert panel.found == once and [each.key for each in once] == ["x/q"]


# --- against the rules as they are written --------------------------------------------------------------------------


def by_hand(
    signal: HumanSignal, draft: Draft, seen: Observation, p_good: Mapping[tuple[str, str], float]
) -> tuple[dict[str, list[tuple[str, float]]], set[str]]:
    """Disputed examples by question with their gaps, widest first, from the docstring of the signal alone; and the questions
    that run against people."""
    scores = {each.example: each for each in seen.scores}
    found: dict[str, list[tuple[str, float]]] = {}
    contrary: set[str] = set()
    for question in draft.questions.questions:
        name = question.dimension if question.dimension in signal.targets.dimensions else "overall"
        rows = {
            example: (p, wanted)
            for (example, asked), p in p_good.items()
            if asked == question.id and (wanted := signal.targets.wanted[example].get(name)) is not None
        }
        if not rows:
            continue
        mine, theirs = zip(*rows.values(), strict=True)
        rho = spearmanr(mine, theirs)[0] if len(rows) >= 8 and len(set(mine)) > 1 and len(set(theirs)) > 1 else 0.0
        against = rho < 0 and not signal.by_score
        contrary |= {question.id} if against else set()
        level = sum(mine) / len(rows) - sum(theirs) / len(rows)
        disputed = []
        for example, (p, wanted) in rows.items():
            score = scores[example].overall if name == "overall" else scores[example].dimensions.get(name)
            whole = None if score is None else score - wanted
            is_off = whole is not None and abs(whole) > signal.threshold
            if signal.by_score:
                if is_off and (p >= 0.5) == (whole > 0):  # type: ignore[operator]
                    disputed.append((example, (whole - level) * (1 if whole > 0 else -1)))  # type: ignore[operator]
                continue
            same_way = is_off and (whole > 0) == (p > wanted)  # type: ignore[operator]
            if abs(p - wanted) > signal.threshold and (same_way or against) and (p >= 0.5) == (p > wanted):
                disputed.append((example, (p - wanted - level) * (1 if p > wanted else -1)))
        if disputed:
            found[question.id] = sorted(disputed, key=lambda each: -each[1])
    return found, contrary


@pytest.mark.parametrize("by_score", [False, True])
def test_on_any_panel_the_disagreements_are_those_of_the_rules(by_score: bool) -> None:
    """Several dimensions, questions that look for a fault, missing answers and scores, and what was asked again."""
    draw, compared = random.Random(11), 0
    for _ in range(60):
        questions = [
            Question(id=f"q{place}", text="Q?", dimension=draw.choice("abc"), good=draw.choice(["yes", "no"]))
            for place in range(draw.randint(1, 4))
        ]
        checklist = Checklist(questions=questions)
        rated = draw.choice([("a", "b"), ("a", "overall"), ("overall",)])
        names = [f"e{place}" for place in range(draw.choice([3, 7, 8, 9]))]
        wanted = {name: {each: None if draw.random() < 0.1 else draw.random() for each in rated} for name in names}
        rows: list[Verdict] = []
        p_good: dict[tuple[str, str], float] = {}
        for name in names:
            for question in questions:
                p = None if draw.random() < 0.1 else draw.random()
                answer = None if p is None else p >= 0.5
                status = "parse_error" if p is None else "ok"
                rows.append(Verdict(name, question.id, "m", "p", answer, p, "logprob", status=status))
                if p is not None:
                    p_good[name, question.id] = p if question.good == "yes" else 1 - p
        examples = [Example(id=name, input="in", output="out") for name in names]
        seen = Observation(examples, rows, score_examples(examples, checklist, rows), checklist)
        again = [
            replace(each, replicate=1, p_yes=draw.random(), answer=draw.random() < 0.5, status="ok") for each in rows
        ]
        seen = replace(seen, verdicts=draw.sample([*rows, *again], k=2 * len(rows)))
        draft = Draft(Prompt("Judge."), checklist)
        signal = HumanSignal(Targets("human", rated, wanted), examples, None, threshold=0.2, by_score=by_score)
        expected, contrary = by_hand(signal, draft, seen, p_good)
        found: dict[str, list[Disagreement]] = {}
        for each in signal.disagreements(draft, seen):
            found.setdefault(each.question, []).append(each)
        assert found.keys() == expected.keys()
        order = dict.fromkeys(
            each.question for each in seen.verdicts if each.replicate == 0 and (each.example, each.question) in p_good
        )
        turns = [
            name
            for some in (contrary, {*order} - contrary)
            for turn in range(len(names))
            for name in order
            if name in some and len(expected.get(name, ())) > turn
        ]
        assert [each.question for each in signal.disagreements(draft, seen)] == turns, (
            "those against people first, in turns"
        )
        for name, several in found.items():
            assert [each.gap for each in several] == pytest.approx([gap for _, gap in expected[name]])
            assert {each.example for each in several} == {example for example, _ in expected[name]}
            for each in several:
                compared += 1
                question = checklist.question(name)
                dimension = question.dimension if question.dimension in rated else "overall"
                goal, p = wanted[each.example][dimension], p_good[each.example, name]
                assert goal is not None
                assert each.reference_p_yes == pytest.approx(goal if question.good == "yes" else 1 - goal)
                assert each.target_p_yes == pytest.approx(p if question.good == "yes" else 1 - p)
                assert each.reference is not each.target
                assert by_score or each.target is ((p > goal) is (question.good == "yes"))
    assert compared > 100


@pytest.mark.parametrize(("threshold", "agrees"), [(0.25, True), (0.24, False)])
@pytest.mark.parametrize("off", [0.25, -0.25])
def test_a_judge_that_is_off_by_just_the_threshold_agrees_on_every_dimension(
    threshold: float, agrees: bool, off: float
) -> None:
    checklist = Checklist(questions=[Question(id=name, text="Q?", dimension=name) for name in "ab"])
    examples = [Example(id=name, input="in") for name in "xy"]
    rows = [Verdict(name, each, "m", "p", True, 0.5, "logprob") for name in "xy" for each in "ab"]
    seen = Observation(examples, rows, score_examples(examples, checklist, rows), checklist)
    wanted = {"x": {"a": 0.5, "b": 0.5}, "y": {"a": 0.5, "b": 0.5 - off}}
    signal = HumanSignal(Targets("human", ("a", "b"), wanted), examples, None, threshold=threshold)
    assert signal.agrees(seen) is agrees
    assert bool(signal.disagreements(Draft(Prompt("Judge."), checklist), seen)) is (not agrees and off > 0), (
        "a doubtful yes that is too low is no wrong no"
    )


def test_a_question_that_is_off_by_just_the_threshold_is_not_put_down_for_what_another_does() -> None:
    panel = Panel({"edge": {"x": 0.5}, "far": {"x": 1.0}}, {"x": 0.25}, threshold=0.25)
    assert panel.keys == ["x/far"]
    assert Panel({"edge": {"x": 0.5}, "far": {"x": 1.0}}, {"x": 0.25}, threshold=0.24).keys == ["x/edge", "x/far"]
