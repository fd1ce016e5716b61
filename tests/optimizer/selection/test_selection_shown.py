"""A selection in a notebook."""

from __future__ import annotations

from typing import Any

import pytest

from askance import select
from tests.said import says

pytestmark = pytest.mark.usefixtures("sandbox")


def test_a_selection_shows_itself(facts: Any) -> None:
    found = select(
        facts.rows(),
        model=facts.model(),
        candidates=facts.candidates,
        no_cache=True,
        halves=2,
        k=4,
        embedder="words",
        ranking_resamples=2,
    )
    assert repr(found) == f"Selection: 4 of 8 questions\n  kept: {', '.join(found.order[:4])}"
    said = str(found)
    assert said.startswith("Selection: 4 of 8 questions\n") and says(
        said.splitlines()[1], "8 candidates", "80 examples"
    )
    html = found._repr_html_()
    assert all(question.id in html for question in found.checklist.questions)
    pytest.importorskip("pandas", reason="needs the extra: pip install 'askance[notebook]'")
    questions = found.to_pandas()
    assert list(questions["id"]) == list(found.order)
    assert list(questions[questions["kept"]]["id"]) == list(found.order[:4])
    assert list(found.to_pandas("curve")["k"]) == list(range(1, 9))


@pytest.mark.parametrize(("sample", "hint"), [(20, " (--sample)"), (200, "")])
def test_more_examples_are_advised_by_the_setting_where_there_are_more(facts: Any, sample: int, hint: str) -> None:
    settings = {"no_cache": True, "halves": 2, "embedder": "words", "ranking_resamples": 2, "sample": sample}
    said = str(select(facts.rows(), model=facts.model(), candidates=facts.candidates, **settings))
    assert says(said, "More examples") and ("(--sample)" in said) == bool(hint)
