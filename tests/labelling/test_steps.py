"""Ordinal labels: whole steps or words in place of pass and fail."""

from __future__ import annotations

import json
import urllib.error
from pathlib import Path
from typing import Any

import pytest

import askance
from askance.labelling.label_options import LabelOptions, LabelSteps, half
from askance.prompts.errors import InputError
from tests.said import naming

from .conftest import examples
from .test_label_command import Labelling

WORDS = LabelSteps.of(None, ["Bad", "Fair", "Good"])
FIVE = LabelSteps.of((1, 5), None)
DOWN = LabelSteps.of((5, 1), None)


def test_steps_are_words_or_whole_numbers_in_their_order() -> None:
    assert WORDS and WORDS.values == (1, 2, 3) and WORDS.value(" fair ") == 2 and WORDS.value("fine") is None
    assert FIVE and FIVE.names == ("1", "2", "3", "4", "5") and FIVE.value(4) == 4 and FIVE.value(4.5) is None
    assert FIVE.value(True) is None
    assert DOWN and DOWN.values == (5, 4, 3, 2, 1)
    assert LabelSteps.of(None, None) is None
    for scale in ((0, 1.5), (0, 100)):
        with pytest.raises(InputError):
            LabelSteps.of(scale, None)


@pytest.mark.parametrize(
    ("rating", "steps", "better"),
    [
        (1, None, True),
        (0, None, False),
        (0.5, None, None),
        (4, FIVE, True),
        (3, FIVE, None),
        (2.5, FIVE, False),
        (2, DOWN, True),
    ],
)
def test_the_better_half_of_the_steps(rating: float, steps: LabelSteps | None, better: bool | None) -> None:
    assert half(rating, steps) is better


def test_steps_are_kept_as_numbers_and_read_back(sit_down: Any, read_back: Any) -> None:
    desk = sit_down(examples(4), steps=FIVE)
    desk.save("e00", {"overall": 5, "promises": False}, "Good.")
    desk.save("e01", {"overall": 2}, "")
    sit_down(examples(4), "ben", steps=FIVE).save("e00", {"overall": 3}, "")
    desk = sit_down(examples(4), steps=FIVE)
    assert desk.people() == [1.0, 0.0, None, None]
    assert (desk.count().passed, desk.count().failed) == (1, 1)
    found = read_back(desk)
    assert found["e00"].human["overall"] == (5, 3) and found["e00"].raters == ("anna", "ben")
    assert found["e00"].human["promises"] == (False, None)
    assert found["e01"].human == {"overall": (2,)}


@pytest.mark.parametrize(("said", "steps"), [(6, FIVE), (True, FIVE), (4, None)])
def test_what_is_no_step_is_refused(sit_down: Any, said: Any, steps: Any) -> None:
    desk = sit_down(examples(2), steps=steps)
    with pytest.raises(InputError, match="overall"):
        desk.save("e00", {"overall": said}, "")
    assert desk.count().labelled == 0


def test_words_in_the_labels_are_read_in_their_order(sit_down: Any, tmp_path: Path) -> None:
    desk = sit_down(examples(2), steps=WORDS)
    desk.save("e00", {"overall": 1}, "")
    file = tmp_path / "out.labels.jsonl"
    row = json.loads(file.read_text())
    file.write_text(json.dumps({**row, "human": {"overall": "good"}}) + "\n")
    assert sit_down(examples(2), steps=WORDS).people() == [1.0, None]
    with pytest.raises(InputError, match=naming("entry 1", "human.overall", "good", "--label-scale")):
        sit_down(examples(2), steps=FIVE)


def test_two_kinds_of_steps_at_once_are_refused() -> None:
    with pytest.raises(ValueError, match="human_scale"):
        LabelOptions(human_scale=(1, 5), label_scale=("Bad", "Good"))


@pytest.fixture
def replies(sandbox: Path) -> Path:
    rows = [{"id": f"e{k}", "input": f"i{k}", "output": f"o{k}"} for k in range(3)]
    Path("replies.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return Path("replies.jsonl")


def test_a_session_in_words_and_what_comes_of_it(askance_command: Any, replies: Path) -> None:
    page = Labelling(askance_command, replies, "--label-scale", "Bad,Fair,Good")
    state = page.send("state")
    assert state["steps"] == [["Bad", 1], ["Fair", 2], ["Good", 3]]
    for value in (3, 1):
        item = page.send("state")["item"]["id"]
        page.send("label", example=item, human={"overall": value}, comment="")
    with pytest.raises(urllib.error.HTTPError) as refused:
        page.send("label", example=page.send("state")["item"]["id"], human={"overall": 9}, comment="")
    assert refused.value.code == 400
    refused.value.close()
    page.process.send_signal(2)
    out, _ = page.process.communicate(timeout=60)
    assert "better half" in out and "--human-scale 1 3" in out
    found = {each.id: each.human.get("overall") for each in askance.load_examples("replies-labelled.jsonl")}
    assert sorted(filter(None, found.values())) == [(1.0,), (3.0,)]
    again = askance_command("label", replies)
    assert again.returncode == 2 and "steps" in again.stderr and "overall" in again.stderr


def test_labels_in_the_data_are_not_mixed_with_steps(replies: Path) -> None:
    rows = [{"id": "a", "input": "i", "output": "o", "human": {"overall": "pass"}}]
    with pytest.raises(InputError, match=naming("'a'", "human.overall", "--dimension")):
        askance.label(rows, "out.jsonl", human_scale=(1, 5))
    rows[0]["human"] = {"overall": 4}
    with pytest.raises(InputError, match=naming("'a'", "4", "--human-scale 1 5")):
        askance.label(rows, "out.jsonl")
