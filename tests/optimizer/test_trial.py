"""A lesson earns its place: what it does to its own evidence, against what it does to everything else."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import pytest

from askance.evaluation.scoring import score_examples
from askance.optimizer.signals import Reasons
from askance.optimizer.steps.lessons import LessonTrial, evidence_keys, log_odds, shift, verdict_of_trial
from askance.optimizer.subject import Draft, Observation, Pair, TrialResult
from askance.prompts.checklist import Checklist, Question
from askance.prompts.examples import Example
from askance.prompts.lessons import Disagreement, Lesson
from askance.prompts.prompt import Prompt
from askance.prompts.verdicts import Verdict
from tests.said import says

CHECKLIST = Checklist(questions=[Question(id=name, text=f"{name}?", dimension="d") for name in "pq"])
BEFORE, AFTER = Draft(Prompt("Judge."), CHECKLIST), Draft(Prompt("Judge well."), CHECKLIST)


def verdict(pair: Pair, p_yes: float | None) -> Verdict:
    answer = None if p_yes is None else p_yes >= 0.5
    status = "ok" if p_yes is not None else "parse_error"
    return Verdict(*pair, "m", "p", answer, p_yes, "logprob", status=status)


class World:
    """Before, wanted and after of every pair; keeps which pairs were asked about."""

    def __init__(self, before: dict[Pair, float | None], wanted: dict[Pair, float | None]) -> None:
        self.before = before
        self.wanted = wanted
        self.after: Callable[[Pair, float], float | None] = lambda pair, p_yes: p_yes
        self.asked: list[Pair] = []
        self.like = True

    # what is improved
    async def observe(self, draft: Draft, examples: Sequence[Example], on_done: object = None) -> Observation:
        raise AssertionError("a trial judges pairs, not examples")

    async def probe(self, draft: Draft, pairs: Sequence[Pair], seen: Observation) -> dict[Pair, Verdict]:
        assert draft is AFTER
        self.asked = list(pairs)
        return {pair: verdict(pair, self.after(pair, self.before[pair] or 0.0)) for pair in pairs}

    # what it is held against
    def agrees(self, seen: Observation) -> bool:
        return False

    def disagreements(self, draft: Draft, seen: Observation) -> list[Disagreement]:
        return []

    def reference(self, draft: Draft, example: str, question: str) -> float | None:
        return self.wanted.get((example, question))

    def is_like(self, verdict: Verdict) -> bool:
        return self.like

    async def reasons(self, draft: Draft, seen: Observation, disagreements: Sequence[Disagreement]) -> Reasons:
        return Reasons()

    async def try_out(self, *evidence: str, most: int = 4, direction: str = "stricter") -> TrialResult:
        examples = [Example(id=name, input="i", output="o") for name in dict.fromkeys(name for name, _ in self.before)]
        verdicts = [verdict(pair, p_yes) for pair, p_yes in self.before.items()]
        seen = Observation(examples, verdicts, score_examples(examples, CHECKLIST, verdicts), CHECKLIST)
        trial = LessonTrial(self, self, evidence=most, controls=most)
        directions = ["stricter", "more lenient"] if direction == "both" else [direction]
        lessons = [lesson("L1", *evidence).model_copy(update={"direction": each}) for each in directions]
        return await trial.run(BEFORE, AFTER, lessons, seen)


def lesson(name: str, *evidence: str) -> Lesson:
    return Lesson(id=name, text="Answer no.", direction="stricter", dimension="d", evidence=evidence)


def too_mild(n: int = 3, controls: int = 3, *, hard: bool = False) -> World:
    """``n`` wrong yes, and as many right yes and right no as ``controls``; other pairs are on another question."""
    yes, no = (1.0, 0.0) if hard else (0.9, 0.1)
    bad = {(f"bad{k}", "q"): yes for k in range(n)}
    good = {(f"good{k}", "q"): yes for k in range(controls)}
    poor = {(f"poor{k}", "q"): no for k in range(controls)}
    other = {("good0", "p"): yes}
    wanted = dict.fromkeys(bad, no) | dict.fromkeys(good | other, yes) | dict.fromkeys(poor, no)
    return World(bad | good | poor | other, wanted)


async def test_a_rule_that_turns_its_evidence_and_leaves_the_controls_alone_passes() -> None:
    world = too_mild()
    world.after = lambda pair, p_yes: 0.2 if pair[0].startswith("bad") else p_yes
    result = await world.try_out("bad0/q", "bad1/q", "bad2/q")
    assert (result.passed, result.turned, result.evidence) == (True, 3, 3)
    assert (result.harmed, result.controls) == (0, 3)


async def test_a_rule_that_only_makes_the_judge_severer_fails() -> None:
    world = too_mild()
    world.after = lambda pair, p_yes: p_yes / 3
    result = await world.try_out("bad0/q", "bad1/q", "bad2/q")
    assert (result.turned, result.harmed, result.controls) == (3, 3, 3)
    assert not result.passed
    assert says(result.reason, "failed", "3 of 3 disagreements", "3 of 3 controls")


async def test_a_rule_that_does_nothing_fails() -> None:
    result = await too_mild().try_out("bad0/q", "bad1/q")
    assert (result.passed, result.turned, result.harmed) == (False, 0, 0)


async def test_a_rule_whose_evidence_moves_the_wrong_way_fails() -> None:
    world = too_mild()
    world.after = lambda pair, p_yes: 0.99 if pair[0].startswith("bad") else p_yes
    assert (await world.try_out("bad0/q")).turned == 0


@pytest.mark.parametrize(("moved", "turned"), [(0.86, 0), (0.84, 1)])
async def test_an_answer_need_not_flip_but_it_must_move(moved: float, turned: int) -> None:
    world = too_mild()
    world.after = lambda pair, p_yes: moved if pair == ("bad0", "q") else p_yes
    assert (await world.try_out("bad0/q")).turned == turned


async def test_hard_answers_count_where_they_flip() -> None:
    world = too_mild(hard=True)
    world.after = lambda pair, p_yes: 0.0 if pair[0] in ("bad0", "bad1", "good1") else p_yes
    result = await world.try_out("bad0/q", "bad1/q", "bad2/q")
    assert (result.passed, result.turned, result.harmed) == (True, 2, 1)


async def test_a_missing_answer_is_left_out_on_either_side() -> None:
    world = too_mild()
    world.after = lambda pair, p_yes: {"bad0": 0.1, "bad1": None, "good0": None}.get(pair[0], p_yes)
    result = await world.try_out("bad0/q", "bad1/q")
    assert (result.passed, result.turned, result.evidence, result.harmed, result.controls) == (True, 1, 1, 0, 2)


async def test_a_rule_with_which_no_control_is_answered_fails() -> None:
    world = too_mild()
    world.after = lambda pair, p_yes: 0.1 if pair[0] == "bad0" else None
    result = await world.try_out("bad0/q")
    assert not result.passed
    assert "none of 3 controls was answered" in result.reason


async def test_a_rule_with_which_none_of_its_evidence_is_answered_fails_and_nothing_speaks_for_it() -> None:
    world = too_mild()
    world.after = lambda pair, p_yes: None if pair[0] == "bad0" else p_yes
    result = await world.try_out("bad0/q")
    assert says(result.reason, "failed", "none of 1", "disagreements")
    assert (result.passed, result.evidence, result.controls, result.selectivity) == (False, 0, 3, 0.0)


async def test_what_was_not_answered_before_is_no_control() -> None:
    world = too_mild(controls=1)
    world.before["good0", "q"] = None
    await world.try_out("bad0/q")
    assert ("good0", "q") not in world.asked


async def test_controls_are_where_the_rule_can_do_harm_on_the_same_question_the_surest_first() -> None:
    world = too_mild(controls=5)
    world.before |= {("good4", "q"): 0.95, ("good1", "q"): 0.8}
    world.wanted["good4", "q"] = 0.95
    await world.try_out("bad0/q", "bad1/q")
    assert world.asked[:2] == [("bad0", "q"), ("bad1", "q")]
    assert set(world.asked[2:]) == {(name, "q") for name in ("good0", "good2", "good3", "good4")}


async def test_a_lenient_rule_is_tried_where_both_sides_say_no() -> None:
    world = too_mild()
    await world.try_out("bad0/q", direction="more lenient")
    assert {name[:4] for name, _ in world.asked[1:]} == {"poor"}


async def test_lessons_of_both_directions_are_tried_on_yes_and_no_in_turns() -> None:
    world = too_mild()
    await world.try_out("bad0/q", direction="both")
    assert [name[:4] for name, _ in world.asked[1:]] == ["good", "poor", "good", "poor"]


async def test_where_both_sides_agree_on_one_answer_alone_that_side_gives_the_controls() -> None:
    world = too_mild()
    world.wanted |= {(f"good{k}", "q"): None for k in range(3)}
    await world.try_out("bad0/q")
    assert {name[:4] for name, _ in world.asked[1:]} == {"poor"}


async def test_an_example_on_which_the_sides_are_apart_is_no_control() -> None:
    world = too_mild(controls=2)
    world.before["good0", "q"] = 0.6
    await world.try_out("bad0/q")
    assert ("good0", "q") not in world.asked
    assert ("good1", "q") in world.asked


async def test_where_probabilities_cannot_be_compared_the_same_answer_makes_a_control() -> None:
    world = too_mild(controls=2)
    world.before["good0", "q"] = 0.6
    world.like = False
    await world.try_out("bad0/q")
    assert {("good0", "q"), ("good1", "q")} <= set(world.asked)


async def test_no_more_is_asked_about_than_was_allowed() -> None:
    world = too_mild(n=6, controls=6)
    await world.try_out(*(f"bad{k}/q" for k in range(6)), most=2)
    assert len(world.asked) == 4


def test_evidence_of_several_lessons_takes_turns_and_comes_once() -> None:
    assert evidence_keys([lesson("L1", "a/q", "b/q"), lesson("L2", "b/q", "c/q", "d/q")]) == [
        "a/q",
        "b/q",
        "c/q",
        "d/q",
    ]
    assert evidence_keys([]) == []


def test_where_there_are_no_controls_a_turned_disagreement_is_enough() -> None:
    assert verdict_of_trial(1, 4, 0, 0).passed
    assert not verdict_of_trial(0, 4, 0, 0).passed
    assert not verdict_of_trial(0, 0, 0, 0).passed


@pytest.mark.parametrize(
    ("turned", "evidence", "harmed", "controls", "passed"),
    [(2, 4, 1, 4, True), (1, 4, 1, 4, False), (4, 4, 3, 4, True), (1, 1, 4, 4, False), (1, 4, 0, 4, True)],
)
def test_a_smaller_share_of_the_controls_than_of_the_evidence_may_move(
    turned: int, evidence: int, harmed: int, controls: int, passed: bool
) -> None:
    assert verdict_of_trial(turned, evidence, harmed, controls).passed is passed


def test_the_shift_is_towards_the_wanted_side_and_finite_at_certainty() -> None:
    up = shift(verdict(("e", "q"), 0.2), verdict(("e", "q"), 0.6), 0.9)
    assert up == pytest.approx(log_odds(0.6) - log_odds(0.2))
    down = shift(verdict(("e", "q"), 1.0), verdict(("e", "q"), 0.0), 0.0)
    assert down == pytest.approx(2 * log_odds(0.98))
    # what people gave lies below what the judge said, though both say yes
    assert (shift(verdict(("e", "q"), 0.95), verdict(("e", "q"), 0.8), 0.6) or 0) > 0
    assert shift(verdict(("e", "q"), 0.9), None, 0.0) is None


def test_where_probabilities_cannot_be_compared_towards_means_towards_the_wanted_answer() -> None:
    """A hard yes is 1 and the source's yes is .7: a judge that says no now has moved away from it."""
    before, after = verdict(("e", "q"), 1.0), verdict(("e", "q"), 0.0)
    assert (shift(before, after, 0.7, is_like=False) or 0) < 0 < (shift(before, after, 0.7, is_like=True) or 0)
    assert (shift(before, after, 0.3, is_like=False) or 0) > 0
    assert shift(verdict(("e", "q"), 0.9), verdict(("e", "q"), 0.1), None) is None


@pytest.mark.parametrize(("moved", "harmed"), [(0.95, 0), (0.9, 0), (0.86, 0), (0.84, 1), (0.8, 1), (0.3, 1)])
@pytest.mark.parametrize("direction", ["stricter", "more lenient"])
async def test_a_control_is_harmed_from_the_same_move_on_from_which_a_disagreement_is_turned(
    moved: float, harmed: int, direction: str
) -> None:
    world = too_mild()
    control, value = (("good1", "q"), moved) if direction == "stricter" else (("poor1", "q"), 1 - moved)
    world.after = lambda pair, p_yes: value if pair == control else p_yes
    result = await world.try_out("bad0/q", direction=direction)
    assert (result.turned, result.harmed, result.controls) == (0, harmed, 3)
    was = 0.9 if direction == "stricter" else 0.1
    change = log_odds(value) - log_odds(was)
    assert result.control_shift == pytest.approx((change if direction == "stricter" else -change) / 3)
    assert result.evidence_shift == 0.0 and result.selectivity == pytest.approx(-harmed / 3)


async def test_shares_and_shifts_are_of_what_was_answered() -> None:
    world = too_mild(n=4, controls=4)
    after = {"bad0": 0.1, "bad1": 0.2, "bad2": 0.95, "bad3": None, "good0": 0.5, "good1": 0.99, "good2": 0.2}
    world.after = lambda pair, p_yes: after.get(pair[0], p_yes)
    found = await world.try_out("bad0/q", "bad1/q", "bad2/q", "bad3/q")
    assert (found.turned, found.evidence, found.harmed, found.controls) == (2, 3, 2, 4)
    was = log_odds(0.9)
    assert found.evidence_shift == pytest.approx(sum(was - log_odds(each) for each in (0.1, 0.2, 0.95)) / 3)
    assert found.control_shift == pytest.approx(sum(log_odds(each) - was for each in (0.5, 0.98, 0.2, 0.9)) / 4)
    assert found.selectivity == pytest.approx(2 / 3 - 2 / 4) and found.passed


@pytest.mark.parametrize("good", ["yes", "no"])
def test_a_shift_is_counted_in_odds_of_the_good_answer_towards_the_side_on_which_the_wanted_one_lies(good: str) -> None:
    """The other way round for a question that looks for a fault: there P(yes) has to fall for P(good) to rise."""
    question = Question(id="q", text="Q?", good=good)  # type: ignore[arg-type]

    def asked(p_good: float) -> Verdict:
        return verdict(("e", "q"), p_good if good == "yes" else 1 - p_good)

    grid = [0.0, 0.06, 0.3, 0.45, 0.6, 0.9, 1.0]
    for before, after, wanted in itertools.product(grid, grid, grid):
        change = math.log(min(max(after, 0.02), 0.98) / (1 - min(max(after, 0.02), 0.98))) - math.log(
            min(max(before, 0.02), 0.98) / (1 - min(max(before, 0.02), 0.98))
        )
        near = abs(before - wanted) <= 0.25 and (before >= 0.5) == (wanted >= 0.5)
        up = wanted >= 0.5 if near else wanted > before
        assert shift(asked(before), asked(after), wanted, question) == pytest.approx(change if up else -change), (
            f"from {before} to {after}, {wanted} wanted"
        )
