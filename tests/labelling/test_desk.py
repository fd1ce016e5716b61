"""The desk: what is asked, what is kept, and the labelled data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from askance.labelling.desk import Desk, majority
from askance.labelling.label_figures import MOST_POINTS, agreement, enough_for
from askance.labelling.labels_file import Entry, texts_of
from askance.labelling.next_output import JudgeOpinion, Opinions, load_opinions
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
    assert found["a"].raters == ("anna", "ben", "")
    assert found["a"].human == {
        "overall": (True, False, False),
        "tone": (None, None, 3),
        "promises": (False, None, None),
    }
    assert [(each.text, each.rater) for each in found["a"].comment] == [("Fine.\nReally.", "anna"), ("Old.", None)]
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
    from askance.labelling.label_figures import agreement_line

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


def said(example: Example, minute: int, passed: bool | None, **more: Any) -> Entry:
    """What Anna said of an output; only the order of the times counts."""
    human = {} if passed is None else {"overall": passed}
    row = {"rater": "anna", "time": f"2026-01-01T{minute // 60:02}:{minute % 60:02}", "why": "spread"}
    return Entry.model_validate(
        {"example": example.id, "texts": texts_of(example), **row, **more, "human": human | more.get("human", {})}
    )


def desk_of(data: list[Example], entries: list[Entry]) -> Desk:
    """A desk at which nothing is asked."""
    return Desk(data, entries, None, None, "anna", "overall", CHECKLIST.questions)  # type: ignore[arg-type]


def judge_of(scores: np.ndarray, answers: np.ndarray | None = None, threshold: float = 0.5) -> Opinions:
    both = np.tile((scores >= threshold)[:, np.newaxis], (1, 2)).astype(float) if answers is None else answers
    return Opinions(CHECKLIST, (JudgeOpinion("m/one", scores, threshold, both, both),))


def documents_of(times: int) -> tuple[Desk, Opinions]:
    """Fifteen documents of two examples that the judge judges alike, each example ``times`` in its document."""
    rng = np.random.default_rng(5)
    people, right = np.repeat(rng.random(15) < 0.6, 2), np.repeat(rng.random(15) < 0.7, 2)
    asked = np.repeat(rng.random(15) < 0.5, 2)
    data, entries, scores, answers = [], [], [], []
    for place in range(30):
        for copy in range(times):
            one = Example(id=f"e{place}-{copy}", input="i", output="o", metadata={"document": f"d{place // 2}"})
            why = "random" if place % 4 < 2 else "spread"
            human = {"promises": bool(asked[place])}
            entries.append(said(one, 8 * place + copy, bool(people[place]), why=why, human=human))
            data.append(one)
            scores.append(0.9 if people[place] == right[place] else 0.1)
            answers.append([float(right[place] != asked[place]), 1.0])
    return desk_of(data, entries), judge_of(np.array(scores), np.array(answers))


def test_each_example_five_times_in_its_document_changes_no_figure_of_the_desk() -> None:
    once, again = (agreement(*documents_of(times)) for times in (1, 5))
    assert once is not None and again is not None
    pairs = [(once["figures"][name], again["figures"][name]) for name in ("all", "random", "passed", "failed")]
    pairs += zip(once["questions"], again["questions"], strict=True)
    assert len(pairs) == 5
    for before, after in pairs:
        assert after["n"] == 5 * before["n"] and 0 < before["value"] < 1
        assert [after[key] for key in ("value", "low", "high")] == pytest.approx(
            [before[key] for key in ("value", "low", "high")]
        )
    assert again["curve"][-1][1:] == pytest.approx(once["curve"][-1][1:])
    for found in (once, again):
        every = found["figures"]["all"]
        assert found["curve"][-1] == pytest.approx([every[key] for key in ("n", "value", "low", "high")])


def test_the_curve_is_the_share_so_far_in_the_order_of_the_labels_and_ends_with_the_last() -> None:
    rng = np.random.default_rng(6)
    data = examples(450)
    people, order = rng.random(450) < 0.5, rng.permutation(450)
    entries = [said(data[place], minute, bool(people[place])) for minute, place in enumerate(order)]
    verdicts = rng.random(450) < 0.5
    found = agreement(desk_of(data, entries[::-1]), judge_of(verdicts.astype(float)))
    assert found is not None
    right = (people == verdicts)[order].astype(float)
    assert found["curve"][-1][0] == 450 and MOST_POINTS / 2 < len(found["curve"]) <= MOST_POINTS
    for n, share, low, high in found["curve"]:
        assert share == pytest.approx(right[:n].mean()) and low < share + 1e-9 and high > share - 1e-9


def test_the_figures_are_of_their_own_labels() -> None:
    """The judge passes 3 of 4 that people pass, and fails 1 of 3 that they fail; two have no score or no label."""
    data = examples(9)
    people = [True] * 4 + [False] * 3 + [True, None]
    scores = np.array([0.9, 0.5, 0.6, 0.49, 0.2, 0.7, 0.8, np.nan, 0.9])
    entries = [said(each, n, wanted) for n, (each, wanted) in enumerate(zip(data, people, strict=True)) if n < 8]
    found = agreement(desk_of(data, entries), judge_of(scores))
    assert found is not None
    told = {name: (row["value"], row["n"]) for name, row in found["figures"].items()}
    assert told == {"all": (4 / 7, 7), "passed": (3 / 4, 4), "failed": (pytest.approx(1 / 3), 3), "random": (None, 0)}


def test_a_skip_is_no_label_whatever_was_said_of_the_output_in_another_session(sit_down: Any) -> None:
    data = examples(2)
    sit_down(data).save("e00", {"overall": True}, "")
    sit_down(data, dimension="tone").save("e00", {}, "", kind="skip")
    desk = sit_down(data)
    assert desk.people() == [None, None] and not desk.labelled.any()
    assert desk.said_first() == [] and not desk.at_random().any()
    assert (desk.count().labelled, desk.count().skipped) == (0, 1)
    label_next(desk)
    assert desk.next()[0].id == "e00" and desk.next()[1] == "skipped"


def test_what_was_taken_back_or_is_only_begun_counts_for_nothing() -> None:
    data = examples(4)
    entries = [
        said(data[0], 1, True, why="random"),
        said(data[1], 2, False, why="random"),
        said(data[1], 3, None, kind="undo"),
        said(data[2], 4, True, kind="draft"),
        said(data[3], 5, None, comment="Good.", why="random"),
    ]
    desk = desk_of(data, entries)
    assert desk.people() == [1.0, None, None, None]
    assert desk.labelled.tolist() == desk.at_random().tolist() == [True, False, False, False]
    count = desk.count()
    assert (count.labelled, count.passed, count.failed, count.comments, count.answers) == (2, 1, 0, 1, 0)


@pytest.mark.parametrize("ratings", [(), (1,), (0,), (1, 0), (1, 1, 0), (0, 1, 0), (1, 0, 1, 0)])
def test_a_majority_is_more_than_half_of_the_raters(ratings: tuple[int, ...]) -> None:
    passed = sum(ratings)
    wanted = None if 2 * passed == len(ratings) else 2 * passed > len(ratings)
    assert majority(ratings) is wanted


@pytest.mark.parametrize("labels", [19, 20])
def test_the_judges_own_agreement_is_taken_from_twenty_labels_on(labels: int) -> None:
    data = examples(30)
    rng = np.random.default_rng(1)
    entries = [said(each, n, bool(n % 4)) for n, each in enumerate(data[:labels])]
    scores = np.array([0.2 * (n % 4 > 0) for n in range(30)]) + 0.6 * rng.random(30)
    found = enough_for(desk_of(data, entries), judge_of(scores), 0.1)
    people = np.array([float(n % 4 > 0) for n in range(labels)])
    from scipy.stats import spearmanr

    measured = round(float(spearmanr(scores[:labels], people)[0]), 2)
    assert measured != 0.3 and found.labelled == labels
    assert (found.start, found.pass_rate) == ((0.3, 0.5) if labels == 19 else (measured, 0.75))
