"""Preferences as ``chosen`` and ``rejected``: texts, chat messages, transcripts, and where the better one stands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from askance.optimizer.weights.judged_pairs import load_pairs
from askance.optimizer.weights.score_tables import load_preferences
from askance.prompts.errors import InputError
from askance.prompts.preferences import Preference, preference_of
from tests.said import naming, says


def of(seed: int = 42, **row: Any) -> Preference:
    return preference_of({"id": "p"} | row, "here", seed=seed)


def better(pair: Preference) -> str:
    return {"a": pair.output_a, "b": pair.output_b}[pair.preferred]


def worse(pair: Preference) -> str:
    return {"a": pair.output_b, "b": pair.output_a}[pair.preferred]


def message(role: str, content: Any) -> dict[str, Any]:
    return {"role": role, "content": content}


def test_texts_with_a_prompt() -> None:
    pair = of(prompt="Sky?", chosen="Blue.", rejected="Green.", section="colours", score_chosen=9)
    assert (pair.input, better(pair), worse(pair), pair.section) == ("Sky?", "Blue.", "Green.", "colours")
    assert of(input="Sky?", chosen="Blue.", rejected="Green.") == of(prompt="Sky?", chosen="Blue.", rejected="Green.")


def test_the_place_says_nothing_and_stays_the_same() -> None:
    rows = [{"id": str(number), "prompt": "Sky?", "chosen": "Blue.", "rejected": "Green."} for number in range(200)]
    first = [pair.preferred for pair in load_pairs(rows)]
    assert 70 < first.count("a") < 130
    assert [pair.preferred for pair in load_pairs(rows)] == first
    assert [pair.preferred for pair in load_pairs(rows[::-1])] == first[::-1]
    assert [pair.preferred for pair in load_pairs(rows, seed=7)] != first
    assert all(better(pair) == "Blue." for pair in load_pairs(rows))


def test_messages_after_a_prompt_of_messages() -> None:
    pair = of(
        prompt=[message("system", "Be brief."), message("user", "Sky?")],
        chosen=[message("assistant", "Blue.")],
        rejected=[message("assistant", [{"type": "text", "text": "Green."}])],
    )
    assert (pair.input, better(pair), worse(pair)) == ("System: Be brief.\n\nUser: Sky?", "Blue.", "Green.")


def test_conversations_that_begin_alike_have_their_beginning_as_the_input() -> None:
    asked = [message("user", "Hi"), message("assistant", "Hello"), message("user", "Sky?")]
    pair = of(chosen=[*asked, message("assistant", "Blue.")], rejected=[*asked, message("assistant", "Green.")])
    assert pair.input == "User: Hi\n\nAssistant: Hello\n\nUser: Sky?"
    assert (better(pair), worse(pair)) == ("Blue.", "Green.")


def test_a_prompt_that_is_also_the_first_message_is_there_once() -> None:
    both = {side: [message("user", "Sky?"), message("assistant", text)] for side, text in SIDES.items()}
    assert of(prompt="Sky?", **both).input == "Sky?"
    assert of(prompt="Be brief.", **both).input == "User: Be brief.\n\nUser: Sky?"


SIDES = {"chosen": "Blue.", "rejected": "Green."}


def test_transcripts_are_divided_at_the_last_answer_that_they_share() -> None:
    start = "\n\nHuman: Hi\n\nAssistant: Hello\n\nHuman: Sky?\n\nAssistant:"
    pair = of(chosen=f"{start} Blue.", rejected=f"{start} Green.")
    assert pair.input == "Human: Hi\n\nAssistant: Hello\n\nHuman: Sky?"
    assert (better(pair), worse(pair)) == ("Blue.", "Green.")
    assert of(chosen="\n\nHuman: Sky?\n\nAssistant: A", rejected="\n\nHuman: Sky?\n\nAssistant: B").input == "Sky?"


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"chosen": "x", "prompt": "p"}, "the field 'rejected' is missing"),
        ({"chosen": "x", "rejected": "y"}, "the field 'prompt' is missing"),
        ({**SIDES, "prompt": "p", "input": "q"}, "the input is given twice"),
        ({**SIDES, "prompt": "p", "preferred": "a"}, "or 'preferred', not both"),
        ({"chosen": 3, "rejected": "y", "prompt": "p"}, "field 'chosen': a text or a list of chat messages"),
        (
            {"chosen": [message("assistant", "x")], "rejected": [message("assistant", "y")]},
            "do not begin with the same",
        ),
        ({"chosen": "\n\nHuman: a", "rejected": "\n\nHuman: b"}, "do not begin with the same conversation"),
        ({**SIDES, "prompt": "half \ud83d"}, "field 'input': half a surrogate pair at character 6"),
        (
            {"input": "x", "output_a": "half \ud83d", "output_b": "y", "preferred": "a"},
            "field 'output_a': half a surrogate pair at character 6",
        ),
    ],
)
def test_what_is_no_pair_is_refused(row: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match="here") as caught:
        of(**row)
    assert said in str(caught.value)


def test_pairs_without_ids_are_called_after_their_texts(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    row = {"prompt": "Sky?", **SIDES}
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in (row, row, row | {"prompt": "Sea?"})))
    names = [pair.id for pair in load_pairs(path)]
    assert names[0].startswith("pair-") and names[1] == f"{names[0]}-2" and len(set(names)) == 3
    assert [pair.id for pair in load_pairs(path)] == names
    assert says(caplog.messages[0], "3 pairs", "id")


def test_pairs_come_from_csv_and_data_frames_too(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame([{"id": 1, "prompt": "Sky?", **SIDES, "section": None}])
    frame.to_csv(tmp_path / "pairs.csv", index=False)
    assert load_pairs(tmp_path / "pairs.csv") == load_pairs(frame)
    assert load_pairs(frame)[0].id == "1"


def test_outputs_without_scores_are_told_what_scores_them() -> None:
    with pytest.raises(InputError, match=naming("--checklist", "--model")):
        load_preferences([{"id": "1", "prompt": "Sky?", **SIDES}])
