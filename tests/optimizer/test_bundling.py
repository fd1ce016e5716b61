"""Which edits fit into one prompt."""

from __future__ import annotations

import pytest

from askance.optimizer.contest import bundle
from askance.prompts.lessons import Edit
from askance.prompts.prompt import EditRefusedError, Prompt, check_length

PROMPT = Prompt("One. Two.")


def test_edits_that_fit_are_bundled_in_their_order() -> None:
    edits = [Edit(old="Two.", new="Two.\nThree."), Edit(old="One.", new="1."), Edit(old="One.", new="I.")]
    assert bundle(PROMPT, edits) == tuple(edits[:2])


def test_a_bundle_stays_within_the_length() -> None:
    edits = [
        Edit(old="Two.", new="Two.\n" + "x" * 10),
        Edit(old="One.", new="One.\n" + "y" * 10),
        Edit(old="One.", new="1"),
    ]
    assert bundle(PROMPT, edits, 25) == (edits[0], edits[2])


def test_a_prompt_that_is_too_long_is_refused() -> None:
    assert check_length(PROMPT, 9) is PROMPT
    assert check_length(PROMPT, None) is PROMPT
    with pytest.raises(EditRefusedError, match="9 characters, more than 8"):
        check_length(PROMPT, 8)
