"""Which wording counts as better, and which only seems to be."""

from __future__ import annotations

import math

import numpy as np
import pytest

from askance.memory.records import Wording, WordingTried
from askance.optimizer.steps.word_questions import (
    Trying,
    better_half,
    in_turns,
    largest_by_chance,
    nothing_to_tell,
    rungs,
    unanswered,
)
from askance.prompts.checklist import Question
from askance.prompts.verdicts import Verdict
from askance.stats.resampling import Resampling

ASKED = Question(id="q", text="Is it good?")
FAULT = Question(id="q", text="Is it bad?", good="no")
RESAMPLING = Resampling(resamples=400, seed=3)


def source(**answers: bool | None) -> dict[str, Verdict]:
    return {
        name: Verdict(name, "q", "m", "p", answer, None if answer is None else 0.9 if answer else 0.1)
        for name, answer in answers.items()
    }


def columns(seed: int, n: int, *strengths: float) -> tuple[dict[str, float], list[dict[str, float | None]]]:
    """The wanted P(good), and P(yes) to wordings that correlate with it as strongly as told (below 0: the opposite)."""
    random = np.random.default_rng(seed)
    wanted = random.normal(size=n)
    names = [f"e{place}" for place in range(n)]

    def answers(strength: float) -> dict[str, float | None]:
        values = strength * wanted + math.sqrt(1 - strength**2) * random.normal(size=n)
        return dict(zip(names, (1 / (1 + np.exp(-values))).tolist(), strict=True))

    return dict(zip(names, (1 / (1 + np.exp(-wanted))).tolist(), strict=True)), [answers(each) for each in strengths]


def test_the_sources_yes_and_no_take_turns_and_what_it_did_not_answer_is_left_out() -> None:
    found = in_turns(["a", "b", "c", "d", "e", "f"], source(a=True, b=True, c=True, d=False, e=None))
    assert found == ["a", "d", "b", "c"]


def test_the_looks_are_at_12_and_24_and_at_the_end() -> None:
    assert rungs(30) == [12, 24, 30]
    assert rungs(24) == [12, 24]
    assert rungs(9) == [9]


def test_verdicts_that_are_all_alike_tell_nothing() -> None:
    assert "answers yes on all 2" in str(nothing_to_tell(source(a=True, b=True, c=None)))
    assert "no development example" in str(nothing_to_tell(source(a=None)))
    assert nothing_to_tell(source(a=True, b=False)) is None


@pytest.mark.parametrize("number", [1, 9, 18])
def test_the_largest_of_as_many_normals_stays_below_in_four_of_five_cases(number: int) -> None:
    drawn = np.random.default_rng(1).normal(size=(20_000, number)).max(axis=1)
    assert np.mean(drawn < largest_by_chance(number)) == pytest.approx(0.8, abs=0.01)


@pytest.mark.parametrize("question", [ASKED, FAULT])
def test_the_data_say_which_answer_is_good(question: Question) -> None:
    wanted, (merit, fault) = columns(1, 40, 0.8, -0.8)
    trying = Trying(question, wanted)
    assert trying.other(Wording("merit"), merit).good == "yes"
    assert trying.other(Wording("fault"), fault).good == "no"
    assert (trying.other(Wording("fault"), fault).correlation or 0) > 0.5


@pytest.mark.parametrize("question", [ASKED, FAULT])
@pytest.mark.parametrize("way", [1, -1])
def test_a_wording_that_is_far_better_is_chosen_with_its_good_answer(question: Question, way: int) -> None:
    wanted, (own, other) = columns(2, 40, 0.0, 0.9 * way)
    found = Trying(question, wanted).choose(own, {Wording("Is it so?"): other}, (), RESAMPLING)
    assert found.after is not None and found.after.text == "Is it so?"
    assert found.after.good == ("yes" if way > 0 else "no")
    assert found.turned is (found.after.good != question.good)
    assert found.of(question).id == "q" and found.of(question).text == "Is it so?"
    assert found.gain is not None and found.bias is not None and found.gain > found.bias > 0


def test_the_sources_own_wording_may_be_turned_round() -> None:
    wanted, (own,) = columns(3, 40, -0.8)
    found = Trying(ASKED, wanted).choose(own, {}, (), RESAMPLING)
    assert found.after is not None
    assert (found.after.text, found.after.good, found.turned) == (ASKED.text, "no", True)


def test_it_is_not_turned_round_where_that_is_unsure() -> None:
    n = 12
    wanted = {f"e{place}": place / n for place in range(n)}
    own: dict[str, float | None] = {name: 1 - p for name, p in wanted.items()}
    shaky = dict(zip(wanted, [0.5, 0.9, 0.3, 0.6, 0.8, 0.1, 0.7, 0.35, 0.65, 0.2, 0.55, 0.45], strict=True))
    trying = Trying(FAULT, wanted)
    best = trying.other(Wording("Is it so?"), shaky)
    assert best.good == "no", "as it was"
    own_as_merit = Trying(ASKED, wanted).choose(own, {Wording("Is it so?"): shaky}, (), RESAMPLING)
    assert own_as_merit.after is not None and own_as_merit.after.text == ASKED.text, (
        "that it means the opposite is clear"
    )
    weak = Trying(ASKED, wanted).choose(shaky, {}, (), RESAMPLING)
    assert weak.after is None
    assert "by chance" in weak.reason or "unsure" in weak.reason


def test_a_small_gain_is_no_gain_and_the_more_were_tried_the_more_is_asked_for() -> None:
    wanted, (own, other) = columns(5, 40, 0.55, 0.75)
    trying = Trying(ASKED, wanted)
    one = trying.choose(own, {Wording("Is it so?"): other}, (), RESAMPLING)
    many = trying.choose(
        own,
        {Wording("Is it so?"): other},
        [WordingTried(text=f"{n}", correlation=0.1, n=12, dropped="worse") for n in range(30)],
        RESAMPLING,
    )
    assert one.gain == many.gain
    assert one.bias is not None and many.bias is not None and many.bias > one.bias
    assert many.after is None and "by chance" in many.reason


def test_of_wordings_that_are_no_better_few_are_chosen() -> None:
    chosen = 0
    for seed in range(150):
        wanted, (own, *others) = columns(100 + seed, 30, *[0.4] * 9)
        named = {Wording(f"Is it {n}?"): answers for n, answers in enumerate(others)}
        chosen += Trying(ASKED, wanted).choose(own, named, (), Resampling(resamples=100, seed=seed)).after is not None
    assert chosen <= 24, "best of eight, none better: 8 % and some"


def test_of_wordings_of_which_one_is_much_better_most_are_chosen() -> None:
    chosen = 0
    for seed in range(60):
        wanted, (own, best, *others) = columns(400 + seed, 30, 0.1, 0.85, *[0.2] * 7)
        named = {Wording("best"): best} | {Wording(f"Is it {n}?"): answers for n, answers in enumerate(others)}
        found = Trying(ASKED, wanted).choose(own, named, (), Resampling(resamples=100, seed=seed))
        chosen += found.after is not None and found.after.text == "best"
    assert chosen >= 45


def test_missing_answers_are_left_out_and_too_many_are_too_many() -> None:
    wanted, (own,) = columns(6, 20, 0.7)
    own["e0"] = None
    assert Trying(ASKED, wanted).own(own).n == 19
    assert not unanswered(own)
    assert unanswered({**own, "e1": None, "e2": None})


def test_the_better_half_has_the_odd_one_and_an_undefined_correlation_is_none() -> None:
    tried = [WordingTried(text=name, correlation=value) for name, value in (("a", None), ("b", 0.4), ("c", 0.6))]
    assert better_half(tried) == {Wording("b"), Wording("c")}


def test_a_target_that_answers_every_wording_alike_keeps_the_question() -> None:
    wanted, (own,) = columns(7, 20, 0.5)
    found = Trying(ASKED, wanted).choose(own, {Wording("Is it so?"): dict.fromkeys(own, 0.9)}, (), RESAMPLING)
    assert found.after is None
    assert "alike" in found.reason


def test_a_wording_is_turned_round_by_documents_and_not_by_how_often_each_is_there() -> None:
    """Eleven documents say only so much, though each of their examples is there six times."""
    n = 11
    levels = [place / n for place in range(n)]
    turned = [place / n for place in (7, 2, 5, 8, 10, 9, 3, 6, 4, 0, 1)]
    wanted = {f"e{place}-{copy}": levels[place] for place in range(n) for copy in range(6)}
    own: dict[str, float | None] = {f"e{place}-{copy}": turned[place] for place in range(n) for copy in range(6)}
    documents = [place for place in range(n) for _ in range(6)]
    for groups, clear in ((None, True), (documents, False)):
        best = Trying(ASKED, wanted).other(Wording(ASKED.text), own)
        assert best.good == "no"
        assert Trying(ASKED, wanted)._is_clear(best, own, groups) is clear
