"""The measurement of plain lines, with a writer that does what its prompt says and no more."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from askance.experiments.measured.plain_lines import ARMS, DATA, checks, run_once
from askance.models.base import Request
from askance.prompts.examples import Example, load_examples
from askance.testing import ScriptedModel

FULL = "Dear traveller, thank you. On which date? Call 555 0134. Your harbour desk"


def write(request: Request) -> str:
    fields = (request.parameters.schema or {}).get("properties", {})
    if "line" in fields:
        return json.dumps({"line": "Ask the traveller for the date of the crossing."})
    if fields:
        return json.dumps(dict.fromkeys(fields, "nothing at all"))
    told = request.messages[0][1]
    parts = {"Dear traveller": "Dear traveller,", "Thank the": "thank you.", "for the date": "On which date?"}
    parts |= {"555": "Call 555 0134.", "harbour desk": "Your harbour desk"}
    return " ".join(["Yes.", *(said for words, said in parts.items() if words in told)]).removeprefix(
        "Yes. " if "Dear" in told else ""
    )


def passed(reply: str) -> dict[str, bool]:
    return {each.name: each.passed for each in checks(Example(id="e", input="i", output=reply))}


def test_the_checks_are_the_rules() -> None:
    assert all(passed(FULL).values())
    assert len(passed(FULL)) == 6
    assert [name for name, found in passed("Yes, it costs 5!").items() if found] == []
    assert not passed(f"Hello. {FULL} of old.")["Does the reply end with the words Your harbour desk?"]


def test_the_data_is_there() -> None:
    examples = load_examples(DATA / "messages.jsonl", need_output=False)
    assert len({each.input for each in examples}) == 40


@pytest.mark.parametrize("arm", [ARMS[0], ARMS[2]])
def test_a_run_says_what_was_gained_and_by_which_line(tmp_path: Path, arm: str) -> None:
    row = run_once(arm, 1, tmp_path / "run", model=ScriptedModel(write, name="ferry/writer"))
    if arm == "notes only":
        assert not row["instructions"]
        assert row["test"]["gain"] is None
        return
    assert row["test"]["baseline"]["mean"] == pytest.approx(1 / 6)
    assert row["test"]["best"]["mean"] == 1.0
    assert {each["requirement"] for each in row["instructions"]} == passed(FULL).keys() - {
        "Is the reply free of exclamation marks?"
    }
    assert all((each["test"]["before"], each["test"]["after"]) == (0.0, 1.0) for each in row["instructions"])
    assert {each["version"] for each in row["replies"]} == {0, 1}
