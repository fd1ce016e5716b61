"""Content of new outputs beside old ones, as code measures it."""

from __future__ import annotations

import pytest

from askance.memory.certificate_file import CertificateRecord, TargetRecord
from askance.optimizer.migration.certificate import content_lines, content_records, told
from askance.prompts.examples import Example

ARTICLE = "Anna Bell opened a bakery in Leeds in 1998. It sells rye bread and plum cake every day."
FAITHFUL = "Anna Bell opened a bakery in Leeds in 1998. It sells rye bread."
POOR = "Carl Winter sold a boat in Hull for 700 pounds."


def _examples(output: str, size: int = 12) -> list[Example]:
    return [Example(id=f"e{place}", input=f"{ARTICLE} Row {place}.", output=output) for place in range(size)]


@pytest.fixture(autouse=True)
def _by_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("askance.optimizer.migration.certificate.can_embed", lambda: False)


def test_names_and_numbers_that_the_input_lacks_are_counted_on_both_sides() -> None:
    found = {each.measure: each for each in content_records(_examples(FAITHFUL), _examples(POOR))}
    assert set(found) == {"covered(input)", "names_new(input)", "numbers_new(input)"}
    names = found["names_new(input)"]
    assert (names.old.value, names.after.value, names.difference.n) == (0, 2, 12)
    assert names.is_worse and found["covered(input)"].is_worse
    better = {each.measure: each for each in content_records(_examples(POOR), _examples(FAITHFUL))}
    assert not any(each.is_worse for each in better.values())


def test_poorer_words_are_said_beside_a_form_that_is_kept() -> None:
    content = content_records(_examples(FAITHFUL), _examples(POOR))
    share = {"value": 1.0, "low": 1.0, "high": 1.0, "n": 12}
    record = TargetRecord.model_validate(
        {
            "model": "new",
            "decision": "adopt",
            "reason": "Adopt: no worse.",
            "prompt": "targets/new/prompt.md",
            "pass_rate": {"old": share, "after": share},
            "difference": share,
            "content": content,
        }
    )
    [line] = content_lines("new", record)
    assert "names that the input lacks 0 before, 2 now" in line and "decides nothing" in line
    certificate = CertificateRecord(
        kind="generator", source="recorded", max_loss=0.05, level=0.05, targets={"new": record}
    )
    assert line in told(certificate)
    assert not [*content_lines("new", record.model_copy(update={"content": ()}))]


def test_an_example_without_one_of_the_outputs_is_left_out() -> None:
    old, new = _examples(FAITHFUL), _examples(POOR)[2:]
    [covered, *_] = content_records([old[0].model_copy(update={"output": None}), *old[1:]], new)
    assert covered.old.n == 10
    assert content_records(old, []) == ()
