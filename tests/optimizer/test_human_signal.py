"""The signal of ``align``: where a judge and people differ, and which questions that is put down to."""

from __future__ import annotations

from dataclasses import replace

import pytest

from askance.agents.evaluator import Evaluator
from askance.evaluation.kept_judge import QuestionOrigin
from askance.evaluation.scoring import Targets, score_examples
from askance.models.gateway import Gateway
from askance.optimizer.signals import HumanSignal
from askance.optimizer.subject import Draft, Observation
from askance.prompts.checklist import Checklist, Question
from askance.prompts.comments import read_comments
from askance.prompts.examples import Example
from askance.prompts.lessons import Disagreement
from askance.prompts.prompt import Prompt
from askance.prompts.verdicts import Verdict
from askance.testing import ScriptedModel

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
    assert reasons.theirs == {"x/q": "people's mean score of d: 0.20, from 0 (worst) to 1 (best)"}


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
    assert reasons.theirs == {"x/q": "people's mean score of d: 0.20, from 0 (worst) to 1 (best)"}


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
