"""The desk: what is asked, what is kept, and the labelled data."""

from __future__ import annotations

from typing import Any

import pytest

from askance.labelling.opinions import load_opinions
from askance.prompts.errors import InputError
from askance.prompts.examples import Example

from ..said import says
from .conftest import CHECKLIST, examples


def label_next(desk: Any, passed: bool = True, comment: str = "") -> str:
    example = desk.next()[0].id
    desk.save(example, {"overall": passed}, comment)
    return str(example)


def test_labels_answers_and_comments_stand_beside_what_was_there(sit_down: Any, read_back: Any) -> None:
    given = [
        Example(
            id="a", input="i", output="o", human={"overall": False, "tone": 3}, comment="Old.", metadata={"shop": 1}
        ),
        Example(id="b", input="i", output=None, metadata={"kept": True}),
        Example(id="c", input="i", output="o2"),
    ]
    sit_down(given).save("a", {"overall": True, "promises": False}, "  Fine.\nReally. ")
    desk = sit_down(given, "ben")
    desk.save("a", {"overall": False}, "")
    found = read_back(desk)
    assert found["a"].human == {"overall": (False, True, False), "tone": (3,), "promises": (False,)}
    assert [each.text for each in found["a"].comment] == ["Old.", "Fine.\nReally."]
    assert found["a"].metadata == {"shop": 1}
    assert (found["b"], found["c"]) == (given[1], given[2])


def test_a_rater_who_says_something_else_later_has_one_label(sit_down: Any, read_back: Any) -> None:
    desk = sit_down(examples(3))
    desk.save("e01", {"overall": True}, "Good.")
    desk.save("e01", {"overall": False}, "Not good.")
    assert read_back(desk)["e01"].human == {"overall": (False,)}
    assert [each.text for each in read_back(desk)["e01"].comment] == ["Not good."]


def test_another_dimension_is_labelled_later_without_losing_the_first(sit_down: Any, read_back: Any) -> None:
    desk = sit_down(examples(3))
    names = [label_next(desk, False, "Unkind.") for _ in range(3)]
    desk = sit_down(examples(3), dimension="tone")
    assert desk.item()["comment"] == "Unkind." and desk.item()["human"] == {}
    first = desk.next()[0].id
    desk.save(first, {"tone": True}, "Unkind.")
    second = desk.next()[0].id
    desk.save(second, {}, "", kind="skip")
    found = read_back(desk)
    assert found[first].human == {"overall": (False,), "tone": (True,)}
    assert all(found[name].human["overall"] == (False,) for name in names)
    assert all([each.text for each in found[name].comment] == ["Unkind."] for name in names)
    assert desk.next()[0].id not in (first, second)


def test_undo_gives_back_the_last_output_with_what_was_said_of_it(sit_down: Any, read_back: Any) -> None:
    desk = sit_down(examples(4))
    assert not desk.undo()
    first, second = label_next(desk), label_next(desk, False, "Why.")
    assert desk.undo()
    item = desk.item()
    assert (item["id"], item["human"], item["comment"]) == (second, {"overall": False}, "Why.")
    assert read_back(desk)[second].human == {}
    assert desk.undo()
    assert desk.item()["id"] == first
    assert desk.count().labelled == 0


def test_everything_is_there_again_after_a_kill(sit_down: Any, read_back: Any) -> None:
    desk = sit_down(examples(6))
    for passed in (True, False, True):
        label_next(desk, passed)
    desk.save(desk.next()[0].id, {"promises": True}, "half a tho", kind="draft")
    item, rows, count = desk.item(), desk.to_jsonl(), desk.count()
    desk = sit_down(examples(6))
    assert (desk.item(), desk.to_jsonl(), desk.count()) == (item, rows, count)
    assert (item["human"], item["comment"]) == ({"promises": True}, "half a tho")
    assert "half a tho" not in rows
    assert count.labelled == 3


def test_outputs_that_nobody_labelled_come_first_then_those_of_others_then_skipped_ones(sit_down: Any) -> None:
    anna = sit_down(examples(5))
    hers = [label_next(anna), label_next(anna)]
    ben = sit_down(examples(5), "ben")
    skipped = ben.next()[0].id
    ben.save(skipped, {}, "", kind="skip")
    seen = [label_next(ben) for _ in range(4)]
    assert set(seen[:2]).isdisjoint(hers)
    assert set(seen[2:]) == set(hers)
    assert (ben.next()[0].id, ben.next()[1]) == (skipped, "skipped")
    assert label_next(ben) == skipped
    assert ben.next() is None and ben.item() is None


def test_what_was_begun_of_a_skipped_output_is_there_when_it_comes_again(sit_down: Any, read_back: Any) -> None:
    desk = sit_down(examples(2))
    skipped = desk.next()[0].id
    desk.save(skipped, {"promises": True}, "Half a thou", kind="draft")
    desk.save(skipped, {}, "", kind="skip")
    desk.undo()
    assert desk.item()["id"] == skipped and desk.item()["comment"] == "Half a thou"
    desk.save(skipped, {}, "", kind="skip")
    assert read_back(desk)[skipped].comment == (), "a draft counts for nothing"
    label_next(desk)
    for again in (desk, sit_down(examples(2))):
        item = again.item()
        assert (item["id"], item["why"], item["comment"]) == (skipped, "skipped before", "Half a thou")
        assert item["human"] == {"promises": True}
    desk.save(skipped, {"overall": True}, "")
    assert desk.draft(skipped) is None


@pytest.mark.parametrize(
    ("example", "human", "said"),
    [
        ("nobody", {"overall": True}, "no output 'nobody'"),
        ("e00", {"tone": True}, "no question 'tone'"),
        ("e00", {}, "nothing to save"),
    ],
)
def test_what_cannot_be_saved_is_refused(sit_down: Any, example: str, human: dict[str, bool], said: str) -> None:
    desk = sit_down(examples(2))
    with pytest.raises(InputError, match=said):
        desk.save(example, human, " ")
    assert desk.count().labelled == 0


def test_the_majority_of_raters_counts_and_a_tie_is_no_label(sit_down: Any) -> None:
    data = [
        each.model_copy(update={"human": {"overall": (1.0,)}}) if each.id == "e02" else each for each in examples(3)
    ]
    for rater, passed in (("anna", True), ("ben", False)):
        desk = sit_down(data, rater)
        for name in ("e00", "e02"):
            desk.save(name, {"overall": passed}, "")
    assert desk.people() == [None, None, 1.0]
    assert desk.labelled.tolist() == [True, False, True]


def test_agreement_of_those_drawn_at_random_is_told_apart(place: Any, sit_down: Any) -> None:
    from askance.labelling.figures import agreement, agreement_line

    many = examples(30)
    _, opinions = load_opinions([place / "one.jsonl", place / "two.jsonl"], CHECKLIST, many, "overall")
    desk = sit_down(many, opinions=opinions)
    assert agreement(desk, opinions) is None
    verdict = dict(zip([each.id for each in many], opinions.judges[0].passed, strict=True))
    for _ in range(12):  # people say the opposite wherever the output was chosen
        example, why = desk.next()
        said = bool(verdict[example.id]) == (why == "random")
        desk.save(example.id, {"overall": said, "promises": False}, "")
    found = agreement(desk, opinions)
    assert found is not None
    assert (found["figures"]["random"]["value"], found["figures"]["random"]["n"]) == (1, 4)
    assert (found["figures"]["all"]["value"], found["figures"]["all"]["n"]) == (4 / 12, 12)
    assert found["figures"]["random"]["low"] < 0.6
    assert [point[0] for point in found["curve"]] == list(range(1, 13))
    assert found["curve"][-1][1] == 4 / 12
    column = opinions.judges[0].answers[[int(name[1:]) for name in desk.said_first()], 0]
    assert found["questions"][0]["value"] == pytest.approx(column.mean())
    assert says(agreement_line(found), 4, "at random")
