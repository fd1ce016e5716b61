"""What the outputs that a question comes from say of it, and what all others do."""

from __future__ import annotations

import pytest

from askance.optimizer.questions.candidates import Candidate, Standing, agreeing, standing, weighed

FINE = [f"f{place}" for place in range(20)]
POOR = [f"p{place}" for place in range(20)]


def said(*rejected: float) -> dict[str, float]:
    """Log-odds of yes: accepted outputs are one deviation around 0, of rejected ones the first are as given, the others at -3."""
    fine = {name: (place % 5 - 2) * 0.7 for place, name in enumerate(FINE)}
    return fine | {name: (*rejected, *[-3.0] * len(POOR))[place] for place, name in enumerate(POOR)}


def test_sources_that_agree_say_which_answer_is_the_good_one() -> None:
    found = standing(said(3.0, 4.0), POOR[:2], FINE, POOR)
    assert found is not None and found.was_said and found.good == "no" and found.support == 2
    assert found.effect is not None and found.effect < 0 and found.problem is not None and found.worth == 0
    lacking = standing(said(), POOR[:2], FINE, POOR)
    assert lacking is not None and lacking.was_said and lacking.good == "yes" and lacking.problem is None
    assert lacking.effect is not None and lacking.worth == lacking.effect > 0.5


def test_where_some_have_the_thing_and_others_lack_it_all_rejected_outputs_decide() -> None:
    found = standing(said(3.0, -3.0), POOR[:2], FINE, POOR)
    assert found is not None and not found.was_said and found.good == "yes" and found.problem is None
    assert found.effect is not None and found.effect > 0.5 and abs(found.stands_out) > 2
    other = standing({name: -value for name, value in said(3.0, -3.0).items()}, POOR[:2], FINE, POOR)
    assert other is not None and other.good == "no" and other.effect == found.effect


def test_one_that_stands_out_far_does_not_outvote_the_others() -> None:
    logits, sources = said(40.0), POOR[:6]
    assert sum(logits[each] for each in sources) > 0
    found = standing(logits, sources, FINE, POOR)
    assert found is not None and found.good == "yes" and found.problem is None


def test_what_nobody_can_say_yet_goes_on_and_does_not_join() -> None:
    few = standing(said(3.0, -3.0), POOR[:2], FINE, POOR[:7])
    assert few is not None and few.effect is None and few.problem is None and few.is_chance and few.worth == 0
    one = standing(said(3.0), POOR[:1], FINE, POOR[:2])
    assert one is not None and one.effect is None and one.problem is None and not one.is_chance
    unclear = standing(said(0.1, -0.1), POOR[:2], FINE, POOR)
    assert unclear is not None and unclear.was_said and unclear.problem is not None, "neither says anything"


def test_what_stands_out_on_several_outputs_promises_more() -> None:
    one, two = (standing(said(3.0, 3.0), POOR[:several], FINE, POOR[:2]) for several in (1, 2))
    mixed = standing(said(3.0, -3.0), POOR[:2], FINE, POOR[:2])
    assert one is not None and two is not None and mixed is not None
    assert one.rank < two.rank and abs(mixed.promise - two.promise) < 0.5


def test_a_question_names_the_comments_that_speak_of_what_it_finds_wrong() -> None:
    sources = ("p0", "p1", "p2", "p3")
    asked = Candidate(
        "Is there a number?", "overall", "comment", sources, ("no dose!", "where to ring?", "meh", "of another")
    )
    remarks = {"p0": ["no dose!", "meh"], "p1": ["where to ring?", "meh"]}
    logits = {name: value for name, value in said(3.0, -3.0, 2.0).items() if name != "p3"}
    lacking = agreeing(asked, "yes", logits, FINE, remarks)
    assert lacking.sources == ("p1", "p3"), "nothing is known of p3"
    assert lacking.comments == ("where to ring?", "meh", "of another")
    having = agreeing(asked, "no", logits, FINE, remarks)
    assert having.sources == ("p0", "p2", "p3") and having.comments == ("no dose!", "meh", "of another")
    nothing = agreeing(asked, "no", logits | {"p2": 0.2}, FINE, remarks)
    assert nothing.sources == ("p0", "p3"), "p2 is as accepted ones are"
    none = agreeing(Candidate(asked.text, "overall", "comment", ("p1",), ("meh",)), "no", logits, FINE, remarks)
    assert none.sources == ("p1",) and none.comments == ("meh",)


def test_a_source_without_an_answer_is_not_all_that_is_left_of_what_says_something() -> None:
    asked = Candidate(
        "Is there a number?", "overall", "comment", ("p0", "p1", "p2"), ("no dose!", "where to ring?", "meh")
    )
    logits = {name: -value for name, value in said(0.0, 1.3, -0.4).items() if name != "p0"}
    found = standing(logits, asked.sources, FINE, POOR)
    assert found is not None and not found.was_said and found.good == "no" and not found.is_chance
    left = agreeing(asked, found.good, logits, FINE, {})
    assert left == asked and standing(logits, left.sources, FINE, POOR) is not None


def test_a_question_that_stands_out_on_accepted_outputs_too_weighs_less() -> None:
    steady, restless, unknown = Standing(3.0, 0.1, 0.02), Standing(3.0, 0.1, 0.06), Standing(3.0, None)
    weights = weighed({"steady": steady, "restless": restless, "unknown": unknown}, 2.0)
    assert weights["steady"] / weights["restless"] == pytest.approx((0.06**2 + 0.02**2) / (2 * 0.02**2), abs=0.01)
    assert (weights["steady"] + weights["restless"]) / 2 == pytest.approx(2.0, abs=0.001) == weights["unknown"]
    assert weighed({"one": steady}, 1.0) == {"one": 1.0} == weighed({"one": Standing(3.0, -0.1, 0.02)}, 1.0)
