"""The made-up outputs and people's, as many as are asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from askance.prompts.errors import InputError
from tests.measured.learned_questions import MADE_UP, MORE, examples_of

SETS = sorted(each.parent.name for each in MADE_UP.glob(f"*/{MORE}"))


@pytest.mark.parametrize("data", SETS)
def test_more_outputs_are_others_of_the_same_kind(data: str) -> None:
    folder, whole = examples_of(data, None, more=True)
    first, more = whole[:150], whole[150:]
    assert examples_of(data, None, more=False) == (folder, first) and len(more) == 150
    assert len({each.id for each in whole}) == len({each.output for each in whole}) == 300
    faults = [{fault for each in part for fault in each.metadata["faults"]} for part in (first, more)]
    assert faults[0] == faults[1] and len(faults[0]) == 4
    for part in (first, more):
        assert 58 <= sum(each.human_score("overall") == 0 for each in part) <= 65
        wrong = [each for each in part if bool(each.metadata["faults"]) == bool(each.human_score("overall"))]
        assert len(wrong) == 8


def test_where_peoples_scores_are_has_to_be_said() -> None:
    assert len(SETS) == 4
    with pytest.raises(InputError, match="--data qags needs --people DIR"):
        examples_of("qags", None, more=False)
    with pytest.raises(InputError):
        examples_of("qags", Path("nowhere"), more=False)
