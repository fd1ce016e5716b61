from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from askance.evaluation.scoring import (
    Coverage,
    ExampleScore,
    Targets,
    coverage,
    coverage_line,
    dimension_errors,
    mean_score,
    measure,
    overall_errors,
    score_examples,
    to_scale,
    yes_rates,
)
from askance.prompts.checklist import Checklist, Question
from askance.prompts.examples import Example
from askance.prompts.verdicts import Status, Verdict
from askance.stats.correlation import correlate, correlations_dict
from askance.stats.resampling import Resampling

EXAMPLES = [Example(id="x", input="i", output="o"), Example(id="y", input="i", output="o")]
CHECKLIST = Checklist(
    questions=(
        Question(id="a", text="A?", dimension="one", weight=3),
        Question(id="b", text="B?", dimension="one"),
        Question(id="c", text="C?", dimension="two"),
        Question(id="unweighted", text="D?", dimension="two", weight=0),
    )
)


def verdict(example: str, question: str, p_yes: float | None, replicate: int = 0, status: Status = "ok") -> Verdict:
    answer = None if p_yes is None else p_yes >= 0.5
    return Verdict(example, question, "m", "p", answer, p_yes, status=status, replicate=replicate)


def full(example: str, a: float, b: float, c: float) -> list[Verdict]:
    return [verdict(example, name, p) for name, p in (("a", a), ("b", b), ("c", c))]


def test_scores_are_weighted_means() -> None:
    x, _ = score_examples(EXAMPLES, CHECKLIST, full("x", 0.8, 0.4, 0.1) + full("y", 1, 1, 1))
    assert x.dimensions["one"] == pytest.approx((3 * 0.8 + 0.4) / 4)
    assert x.dimensions["two"] == pytest.approx(0.1)
    assert x.overall == pytest.approx((3 * 0.8 + 0.4 + 0.1) / 5)


def test_hard_scores_count_answers() -> None:
    x, y = score_examples(EXAMPLES, CHECKLIST, full("x", 0.8, 0.4, 0.1) + full("y", 0.6, 0.6, 0.6), soft=False)
    assert x.dimensions == {"one": 0.75, "two": 0.0}
    assert y.overall == 1


def test_a_missing_verdict_leaves_its_dimension_and_the_whole_without_a_score() -> None:
    verdicts = [verdict("x", "a", 0.8), verdict("x", "b", 0.4), verdict("x", "c", None, status="api_error")]
    x, y = score_examples(EXAMPLES, CHECKLIST, verdicts)
    assert x.dimensions["one"] == pytest.approx(0.7)
    assert x.dimensions["two"] is None
    assert x.overall is None
    assert (y.overall, set(y.dimensions.values())) == (None, {None})


def test_a_question_without_weight_may_be_missing() -> None:
    x, _ = score_examples(EXAMPLES, CHECKLIST, full("x", 1, 1, 1))
    assert x.overall == 1


def test_replicates_are_averaged_and_one_that_failed_is_missing() -> None:
    both = [*full("x", 1, 1, 0.2), verdict("x", "c", 0.6, replicate=1)]
    x, _ = score_examples(EXAMPLES, CHECKLIST, both)
    assert x.dimensions["two"] == pytest.approx(0.4)
    x, _ = score_examples(EXAMPLES, CHECKLIST, [*both, verdict("x", "c", None, 2, "parse_error")])
    assert x.dimensions["two"] is None


def test_the_affine_map_reaches_both_ends() -> None:
    assert [to_scale(value, 1, 5) for value in (0.0, 0.5, 1.0, None)] == [1, 3, 5, None]


def test_means_leave_missing_scores_out_and_are_none_where_all_are() -> None:
    assert mean_score([1.0, None, 0.0]) == 0.5
    assert mean_score([None]) is None
    assert mean_score([]) is None


def test_yes_rates_count_answers_only() -> None:
    verdicts = [verdict("x", "a", 0.9), verdict("y", "a", 0.1), verdict("x", "b", None, status="abstained")]
    assert yes_rates(verdicts) == {"a": 0.5}


def test_coverage_counts_by_status_and_adds_up() -> None:
    statuses: list[Status] = ["abstained", "parse_error", "api_error", "api_error"]
    seen = coverage([verdict("x", "a", 0.5), *(verdict("x", "a", None, status=each) for each in statuses)])
    assert (seen.asked, seen.answered, seen.abstained, seen.parse_errors, seen.api_errors) == (5, 1, 1, 1, 2)
    assert seen.share == 0.2
    assert (seen + seen).asked == 10
    assert Coverage(0, 0, 0, 0, 0).share == 1


def test_what_is_missing_of_many_verdicts_is_not_rounded_away() -> None:
    assert coverage_line(Coverage(5000, 4999, 0, 0, 1).to_dict()) == "coverage 4999/5000 verdicts = 99.9% (1 failed)"


def test_an_example_of_a_section_is_weighted_by_that_sections_weights() -> None:
    weights = {"code": {"a": 1.0, "b": 0.0, "c": 0.0, "unweighted": 1.0}}
    checklist = CHECKLIST.model_copy(update={"section_weights": weights})
    examples = [EXAMPLES[0], EXAMPLES[1].model_copy(update={"metadata": {"section": "code"}})]
    verdicts = [*full("x", 1, 0, 0.5), *full("y", 1, 0, 0.5), verdict("y", "unweighted", 0.2)]
    x, y = score_examples(examples, checklist, verdicts)
    assert (x.overall, x.dimensions) == (pytest.approx(0.7), {"one": 0.75, "two": 0.5})
    assert (y.overall, y.dimensions) == (pytest.approx(0.6), {"one": 1.0, "two": 0.2})


def test_a_dimension_without_weight_in_a_section_has_no_score_there() -> None:
    weights = {"code": {"a": 1.0, "b": 1.0, "c": 0.0, "unweighted": 0.0}}
    checklist = CHECKLIST.model_copy(update={"section_weights": weights})
    examples = [EXAMPLES[0], EXAMPLES[1].model_copy(update={"metadata": {"section": "code"}})]
    x, y = score_examples(examples, checklist, [*full("x", 1, 0, 0.5), *full("y", 1, 0, 0.5)])
    assert x.dimensions == {"one": 0.75, "two": 0.5}
    assert y.dimensions == {"one": 0.5, "two": None}
    assert y.overall == 0.5


def test_an_example_of_a_section_without_weights_gets_the_checklists_own() -> None:
    checklist = CHECKLIST.model_copy(update={"section_weights": {"code": dict.fromkeys("abc", 1.0)}})
    elsewhere = [example.model_copy(update={"metadata": {"section": "prose"}}) for example in EXAMPLES]
    verdicts = [*full("x", 1, 0, 0.5), *full("y", 0, 1, 1)]
    assert [each.overall for each in score_examples(elsewhere, checklist, verdicts)] == [
        each.overall for each in score_examples(EXAMPLES, CHECKLIST, verdicts)
    ]


# how scores correlate with what is wanted, and how far they are off


def judged(times: int = 1, documents: int = 40) -> tuple[list[ExampleScore], Targets, list[Example]]:
    """Scores on two dimensions of examples, each ``times`` in its document; the second dimension is judged well."""
    rng = np.random.default_rng(3)
    one, two = rng.random((2, documents))
    scores, wanted, examples = [], {}, []
    for place in range(documents):
        said = {"one": float(np.clip(one[place] + 0.5 * rng.normal(), 0, 1)), "two": two[place]}
        for copy in range(times):
            name = f"e{place}-{copy}"
            scores.append(ExampleScore(name, 0.5, said))
            wanted[name] = {"one": float(one[place]), "two": float(np.round(3 * two[place]) / 3)}
            examples.append(Example(id=name, input="i", output="o", metadata={"document": f"d{place}"}))
    return scores, Targets("human", ("one", "two"), wanted), examples


def without_n(row: dict[str, Any]) -> dict[str, Any]:
    return {name: without_n(each) if isinstance(each, dict) else each for name, each in row.items() if name != "n"}


def flat(row: dict[str, Any]) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, each in without_n(row).items():
        found |= (
            {f"{name}.{key}": value for key, value in flat(each).items()} if isinstance(each, dict) else {name: each}
        )
    return found


def test_each_example_five_times_in_its_document_changes_no_correlation_and_no_interval() -> None:
    once, again = (measure(*judged(times), resamples=200, seed=1).to_dict() for times in (1, 5))
    assert again["n"] == 5 * once["n"] and flat(again) == pytest.approx(flat(once), abs=1e-9)
    apart = [each.model_copy(update={"metadata": {}}) for each in judged(5)[2]]
    alone = measure(*judged(5)[:2], apart, resamples=200, seed=1).to_dict()
    assert alone["high"] - alone["low"] < 0.7 * (again["high"] - again["low"]), (
        "without documents they are more examples"
    )


def test_every_dimension_is_held_to_its_own_wanted_scores_and_the_whole_to_their_mean() -> None:
    scores, targets, examples = judged()
    found = measure(scores, targets, examples, resamples=100, seed=7).to_dict()
    sampling = Resampling(None, 100, seed=7)
    columns = {
        name: ([each.dimensions[name] for each in scores], [targets.wanted[each.example][name] for each in scores])
        for name in ("one", "two")
    }
    for name, (said, wanted) in columns.items():
        assert found["dimensions"][name] == correlations_dict(correlate(said, wanted, sampling))
    means = [np.mean([columns[name][side] for name in columns], axis=0) for side in (0, 1)]
    whole = correlations_dict(correlate(*means, sampling))
    assert {name: found[name] for name in whole} == pytest.approx(whole)
    assert found["dimensions"]["two"]["spearman"] > found["spearman"] > found["dimensions"]["one"]["spearman"]


def test_an_error_is_the_score_less_the_wanted_one_where_both_are_there() -> None:
    scores = [
        ExampleScore(f"e{n}", None, {"one": a, "two": b})
        for n, (a, b) in enumerate([(0.2, 0.5), (0.9, 0.5), (None, 0.1), (0.4, 0.5)])
    ]
    wanted = [{"one": 0.6, "two": 0.5}, {"one": 0.8, "two": 0.1}, {"one": 0.5, "two": 0.1}, {"one": None, "two": 0.9}]
    targets = Targets("human", ("one", "two"), {f"e{n}": each for n, each in enumerate(wanted)})
    by_name = dimension_errors(scores, targets)
    assert (by_name["one"].mean_absolute, by_name["one"].bias, by_name["one"].n) == pytest.approx((0.25, -0.15, 2))
    assert (by_name["two"].mean_absolute, by_name["two"].bias, by_name["two"].n) == pytest.approx((0.2, 0.0, 4))
    whole = overall_errors(scores, targets)
    assert (whole.mean_absolute, whole.bias, whole.n) == pytest.approx(((0.2 + 0.25) / 2, (-0.2 + 0.25) / 2, 2))
    nothing = overall_errors(scores[2:], targets)
    assert (nothing.mean_absolute, nothing.bias, nothing.n) == (None, None, 0) and nothing.reason


def test_a_fault_that_is_found_lowers_the_score_and_only_answers_count() -> None:
    checklist = CHECKLIST.model_copy(
        update={"questions": (Question(id="a", text="A?", dimension="one", good="no"), *CHECKLIST.questions[1:])}
    )
    x, _ = score_examples(EXAMPLES, checklist, full("x", 0.9, 0.9, 0.9))
    assert x.dimensions["one"] == pytest.approx((0.1 + 0.9) / 2)
    hard, _ = score_examples(EXAMPLES, checklist, full("x", 0.9, 0.9, 0.9), soft=False)
    assert hard.dimensions["one"] == 0.5 and hard.overall == pytest.approx(2 / 3)
