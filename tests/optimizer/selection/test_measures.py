"""Measures in ``select``: free candidates, beside questions that cost calls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from askance import select
from askance.optimizer.selection.select import prepare
from askance.prompts.checklist import (
    Checklist,
    ComputedCheck,
    ComputedMeasure,
    Question,
    dump_checklist,
    load_checklist,
)
from askance.prompts.errors import InputError
from askance.testing import ScriptedModel
from tests.said import naming
from tests.worlds import share

pytestmark = pytest.mark.usefixtures("sandbox")
FAST: dict[str, Any] = {"halves": 2, "embedder": "words", "ranking_resamples": 2, "no_cache": True}
QUESTION = Question(id="good", text="Is the answer good?")
KNOWN = ComputedMeasure(id="known", measure="covered(input)")


def rows(size: int = 60) -> list[dict[str, Any]]:
    """Outputs that people like the more, the more of the question they have."""
    found = []
    for number in range(size):
        words = [f"word{number}{place}" for place in range(6)]
        kept = int(7 * share("kept", number))
        output = " ".join([*words[:kept], "and", "so", "on"])
        found.append({"id": f"e{number}", "input": " ".join(words), "output": output, "human": {"overall": kept}})
    return found


def judge() -> ScriptedModel:
    return ScriptedModel(lambda request: 0.3 + 0.4 * share(request.messages[-1][1]), name="judge")


def test_a_measure_among_the_candidates_is_chosen_for_what_it_tells_and_costs_nothing() -> None:
    model = judge()
    candidates = Checklist(task="Answer.", questions=(QUESTION, KNOWN))
    found = select(rows(), model=model, candidates=candidates, k=1, **FAST)
    assert [each.id for each in found.checklist.questions] == ["known"]
    assert len(model.requests) == 60  # one question; the measure none
    told = {each.id: each for each in found.questions}
    assert told["known"].bits is not None and told["known"].bits > 0.5 > (told["good"].bits or 0.0)
    assert told["known"].tokens == 0 and told["known"].bits_per_token is None
    assert found.curves["joint"][0].cost_share == 0.0


@pytest.mark.parametrize("how", [{"answers": "hard"}, {"answers": "split"}, {"per_token": True}])
def test_it_is_chosen_whatever_an_answer_counts_for(how: dict[str, Any]) -> None:
    candidates = Checklist(task="Answer.", questions=(QUESTION, KNOWN))
    found = select(rows(), model=judge(), candidates=candidates, k=1, **FAST, **how)
    assert [each.id for each in found.checklist.questions] == ["known"]


def test_relations_are_offered_with_a_range_of_the_sample_and_the_checklist_keeps_it(tmp_path: Path) -> None:
    candidates = Checklist(task="Answer.", questions=(QUESTION,))
    found = select(rows(), model=judge(), candidates=candidates, k=1, measures="relations", **FAST)
    (taken,) = found.checklist.measures
    assert taken.range is not None and taken.range[0] < taken.range[1]
    (tmp_path / "checklist.yaml").write_text(dump_checklist(found.checklist))
    assert load_checklist(tmp_path / "checklist.yaml").measures == found.checklist.measures
    assert {each.id for each in found.questions} > {"good", "covered-input", "words_found-input"}
    alone = select(rows(), model=judge(), candidates=candidates, k=1, **FAST)
    assert {each.id for each in alone.questions} == {"good"}


def test_the_estimate_counts_the_questions_alone() -> None:
    candidates = Checklist(task="Answer.", questions=(QUESTION, KNOWN))
    with_it, without = (
        prepare(rows(), judge(), each, None, "", (), {**FAST, "k": 1}).estimate()
        for each in (candidates, Checklist(task="Answer.", questions=(QUESTION,)))
    )
    assert with_it.calls == without.calls == 60


def test_what_has_no_use_for_measures_says_so() -> None:
    measured = Checklist(task="Answer.", questions=(QUESTION, KNOWN))
    for given in ({"answer_levels": 3}, {"estimate": "per-example", "rated_by": "judge"}):
        with pytest.raises(InputError, match=naming("known")):
            prepare(rows(), judge(), measured, None, "", (), {**FAST, "k": 1, **given})
        plain = Checklist(task="Answer.", questions=(QUESTION,))
        with pytest.raises(InputError, match=naming("measures")):
            prepare(rows(), judge(), plain, None, "", (), {**FAST, "k": 1, "measures": "all", **given})
    check = ComputedCheck(id="short", kind="length", value="at most 4 words")
    with pytest.raises(InputError, match=naming("short")):
        prepare(rows(), judge(), Checklist(questions=(QUESTION, check)), None, "", (), {**FAST, "k": 1})
