"""Judges side by side on a small world in which the right answers are known."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from askance.evaluation.compare.compare import compare, prepare
from askance.evaluation.compare.comparison import LEVEL, Comparison, comparison_view
from askance.evaluation.compare.costs import Costs, Spent
from askance.evaluation.compare.judges import JUDGES
from askance.evaluation.compare.protocol import Entrant, JudgeOutput, JudgeScore
from askance.evaluation.compare.statistics import compare_ratings
from askance.evaluation.options import CompareOptions
from askance.evaluation.scoring import Targets
from askance.models.base import Answer, ModelError, Request
from askance.models.budget import Budget
from askance.prompts.checklist import Checklist, Question
from askance.prompts.errors import BudgetExceededError, InputError
from askance.prompts.examples import Example
from askance.report.comparison_page import render_comparison
from askance.stats.correlation import METHODS, kendall, spearman
from askance.stats.differences import paired_difference
from askance.stats.resampling import Resampling
from askance.testing import Reply, ScriptedModel
from tests.said import says

SIZE = 24
CHECKLIST = Checklist(
    task="Summarise",
    questions=(
        Question(id="a", text="Is it right?", dimension="quality"),
        Question(id="b", text="Is it whole?", dimension="quality"),
    ),
)
OPTIONS: dict[str, Any] = {"resamples": 200, "no_cache": True}


def rows(size: int = SIZE, **more: Any) -> list[dict[str, Any]]:
    return [
        {"id": f"e{n}", "input": f"In {n}.", "output": f"<{n}>", "human": {"quality": 1 + n % 5}} | more
        for n in range(size)
    ]


def number_of(request: Request) -> int:
    return int(re.findall(r"<(\d+)>", request.messages[0][1])[0])


def world(request: Request) -> Reply:
    """``binary`` ranks perfectly, ``direct`` backwards, ``geval`` says the same of all."""
    if request.parameters.schema is not None:
        replies = {"questions": ["Is it in time?"], "dropped": [], "steps": ["Look."]}
        (wanted,) = request.parameters.schema["properties"]
        return json.dumps({wanted: replies[wanted]})
    text = request.messages[-1][1]
    good = number_of(request) % 5
    if "Score: " in text:
        return Answer(f"So so.\nScore: {1 + good}", None, 100, 5)
    if "number from" in text and request.parameters.top_logprobs:
        return Answer("3", (("3", (("3", math.log(0.9)),)),), 100, 1)
    if "number from" in text:
        return Answer(str(5 - good), None, 100, 1)
    return Answer("Yes", (("Yes", (("Yes", math.log(0.1 + 0.2 * good)), ("No", math.log(0.9 - 0.2 * good)))),), 100, 1)


def run(judges: Sequence[str], script: Any = world, data: Any = None, **more: Any) -> tuple[Comparison, ScriptedModel]:
    model = ScriptedModel(script, slots=1)
    given = OPTIONS | {"checklist": CHECKLIST} | more
    return compare(rows() if data is None else data, model=model, judges=judges, **given), model


def test_it_says_how_many_comments_on_rejected_outputs_a_judge_of_questions_sees() -> None:
    """``binary`` says no of outputs rated 1 and 2, two in five; they have a comment."""
    data = [row | ({"comment": "no"} if place % 5 < 2 else {}) for place, row in enumerate(rows(40))]
    found, _ = run(["binary", "direct"], data=data)
    row, other = found.to_dict()["judges"]
    covered = row["comment_coverage"]
    assert (covered["value"], covered["n"], covered["chance"]) == (1.0, 16, pytest.approx(0.4))
    assert covered["gain"]["value"] == pytest.approx(0.6) and covered["gain"]["low"] > 0.3
    assert "comment_coverage" not in other, "a number names no fault"
    table = comparison_view(found.to_dict(ratings=True)).tables["judges"]()
    assert [str(each["comments seen"]) for each in table] == ["100.0%", "None"]
    assert "comments seen" in render_comparison(found.to_dict(ratings=True), "comparison.json").lower()
    without, _ = run(["binary"])
    assert "comments seen" not in comparison_view(without.to_dict(ratings=True)).tables["judges"]()[0]


def test_the_table_says_who_ranks_as_people_do_and_who_does_not() -> None:
    found, _ = run(["binary", "direct", "geval"])
    by_name = {row.name: row.dimensions["quality"].people for row in found.rows}
    pooled = {name: people.pooled.spearman for name, people in by_name.items() if people}
    assert pooled["binary"].value == pytest.approx(1)
    assert pooled["direct"].value == pytest.approx(-1)
    assert pooled["geval"].value is None
    assert "constant" in (pooled["geval"].reason or "")
    assert {each.n for each in pooled.values()} == {SIZE}
    assert found.rows[0].average["spearman"] == pytest.approx(1)
    assert found.rows[2].average["spearman"] is None


def test_agreement_on_points_and_spread_are_counted_by_hand() -> None:
    found, _ = run(["direct"])
    people = found.rows[0].dimensions["quality"].people
    assert people is not None
    # people say 1..5 and the judge 5..1: they differ by 4, 2, 0, 2, 4
    share = sum(1 for n in range(SIZE) if n % 5 == 2) / SIZE
    assert people.observed_agreement.value == pytest.approx(share)
    assert people.qwk.value is not None
    assert people.qwk.value < 0
    assert people.distribution.distance.value == pytest.approx(0, abs=0.05)
    wide, _ = run(["direct"], agreement_tolerance=2)
    assert wide.rows[0].dimensions["quality"].people.observed_agreement.value == pytest.approx(  # type: ignore[union-attr]
        sum(1 for n in range(SIZE) if n % 5 in (1, 2, 3)) / SIZE
    )


def test_the_tolerance_is_one_of_five_points_and_two_of_nine_or_ten_where_the_paper_has_it() -> None:
    assert CompareOptions().tolerance == 1
    assert CompareOptions(points=9, agreement_tolerance=2).tolerance == 2


def test_differences_are_paired_against_the_first_two_sided_and_corrected() -> None:
    found, _ = run(["binary", "direct", "unieval"])
    first, second = found.differences
    assert (first.judge, first.difference.value) == ("direct", pytest.approx(-2))
    assert first.difference.p_value is not None
    assert first.difference.p_value < 0.02, "being worse is evidence as well"
    assert first.p_adjusted == pytest.approx(2 * first.difference.p_value)
    assert second.difference.value == pytest.approx(0)
    assert second.difference.p_value == 1


def test_however_few_resamples_a_clear_difference_is_not_lost_in_the_correction_for_many() -> None:
    found, _ = run(["binary", "direct", "unieval", "cot"], resamples=100)
    assert len(found.differences) == 3
    assert found.differences[0].p_adjusted is not None
    assert found.differences[0].p_adjusted <= LEVEL


def test_a_judge_whose_scores_are_constant_has_no_difference_and_does_not_count_as_a_test() -> None:
    found, _ = run(["binary", "geval", "direct"])
    constant, direct = found.differences
    assert constant.difference.value is None
    assert constant.p_adjusted is None
    assert direct.p_adjusted == direct.difference.p_value


def failing(request: Request) -> Reply:
    text = request.messages[0][1]
    if "number from" in text and number_of(request) in (3, 4):
        return Answer("I cannot say.", None, 100, 4)
    return world(request)


def test_all_statistics_are_on_the_examples_that_every_judge_scored() -> None:
    found, _ = run(["binary", "direct"], failing)
    assert found.examples == SIZE
    assert len(found.common) == SIZE - 2
    assert not {"e3", "e4"} & set(found.common)
    assert [row.coverage.share for row in found.rows] == [1.0, (SIZE - 2) / SIZE]
    assert found.rows[1].coverage.parse_errors == 2
    assert {row.dimensions["quality"].people.pooled.spearman.n for row in found.rows} == {SIZE - 2}  # type: ignore[union-attr]


def test_a_judge_that_scores_nothing_is_left_out_and_takes_no_example_from_the_others() -> None:
    found = by_hand({"a": [0.1, 0.2, 0.3, 0.5], "dead": [None] * 4, "b": [0.2, 0.1, 0.4, 0.3]}, [0, 0.25, 0.5, 1])
    assert found.left_out == ("dead",)
    assert found.common == ("0", "1", "2", "3")
    a, dead, _ = (row.dimensions["d"].people for row in found.rows)
    assert a is not None and dead is not None
    assert a.pooled.spearman.value == pytest.approx(1)
    assert dead.pooled.spearman.value is None and dead.pooled.spearman.reason
    assert [each.difference.value for each in found.differences] == [None, pytest.approx(-0.4)]
    kept = found.to_dict(ratings=True)
    assert kept["left_out"] == ["dead"]
    assert says(render_comparison(kept, "compared"), "but dead")
    first_dead = by_hand({"dead": [None] * 4, "a": [0.1, 0.2, 0.3, 0.5]}, [0, 0.25, 0.5, 1])
    assert first_dead.rows[1].dimensions["d"].people.pooled.spearman.n == 4  # type: ignore[union-attr]
    assert first_dead.differences[0].difference.value is None


@pytest.mark.parametrize(
    ("upfront", "each", "said"),
    [
        (100, 10, "as dear"),
        (100, 5, "always"),
        (0, 5, "always"),
        (105, 5, "always"),  # as dear for the first example and cheaper for two
        (106, 5, "from 2 examples on"),
        (1100, 9.5, "from 2,000 examples on"),
        (1100, 10, "never"),
        (200, 11, "never"),
        (0, 10, "always"),
        (95, 15, "never"),  # as dear for the first example and dearer for two
        (94, 15, "up to 1 example"),
        (0, 15, "up to 19 examples"),
    ],
)
def test_in_words_a_judge_is_cheaper_always_from_up_to_or_never(upfront: int, each: float, said: str) -> None:
    first, other = ((100, 10.0), (upfront, each))
    costs = [Costs(Spent(1, up, 0.0), 1, per, 0.0, 1) for up, per in (first, other)]
    assert costs[1].cheaper_than(costs[0]) == said


def test_a_failure_of_the_very_first_call_costs_one_example_and_not_the_run() -> None:
    def script(request: Request) -> Reply:
        return ModelError("HTTP 400: no") if number_of(request) == 0 else world(request)

    found, _ = run(["binary", "unieval"], script)
    assert len(found.common) == SIZE - 1
    assert found.rows[0].coverage.api_errors == 1


def test_costs_are_those_of_each_judge_by_itself_with_what_is_paid_once_apart() -> None:
    found, model = run(["binary", "geval", "direct", "checkeval_seeds"])
    costs = {row.name: row.costs for row in found.rows}
    assert (costs["binary"].calls, costs["geval"].calls, costs["direct"].calls) == (2, 1, 1)
    assert costs["checkeval_seeds"].calls == 2, "although it was bought with binary"
    assert costs["binary"].tokens == 202
    assert costs["geval"].upfront.calls == 1
    steps = costs["geval"].upfront.tokens
    assert costs["geval"].amortised_tokens == pytest.approx(101 + steps / SIZE)
    assert costs["geval"].equivalent_examples == pytest.approx(steps / 101)
    assert costs["geval"].break_even(costs["binary"]) == max(1, math.ceil(steps / 101))
    assert found.paid.calls == len(model.requests) == 4 * SIZE + 1


def test_the_questions_that_a_judge_wrote_are_kept_shown_and_paid_once() -> None:
    found, _ = run(["binary", "checkeval"])
    (first, second) = found.to_dict(ratings=True)["judges"]
    assert first["questions"] == []
    assert [each["text"] for each in second["questions"]] == ["Is it in time?"] * len(found.dimensions)
    assert second["cost"]["upfront"]["calls"] == 3 * len(found.dimensions)
    shown = comparison_view(found.to_dict()).tables["questions"]()
    assert [(each["judge"], each["text"]) for each in shown] == [("checkeval", "Is it in time?")]


def test_repeats_serve_kappa_and_cost_is_still_by_the_example() -> None:
    said = iter(range(10**6))

    def script(request: Request) -> Reply:
        if request.parameters.seed == 43:
            return str(1 + number_of(request) % 5)
        return str(1 + (number_of(request) + next(said)) % 5)

    found, _ = run(["direct"], script, repeat=2)
    row = found.rows[0].dimensions["quality"]
    assert row.kappa_self.value is not None
    assert abs(row.kappa_self.value) < 0.5
    assert found.rows[0].costs.calls == 1
    assert found.rows[0].coverage.asked == 2 * SIZE
    steady, _ = run(["binary"], repeat=2)
    assert steady.rows[0].dimensions["quality"].kappa_self.value == pytest.approx(1)
    once, _ = run(["binary"])
    assert "--repeat 2" in (once.rows[0].dimensions["quality"].kappa_self.reason or "")


def test_every_judge_judges_an_example_before_the_next_one_is_begun() -> None:
    _, model = run(["binary", "unieval", "direct"])
    order = [number_of(request) for request in model.requests]
    assert order == sorted(order)


def test_documents_and_systems_are_looked_at_where_they_are() -> None:
    data = [row | {"system": f"S{n % 3}", "document": f"d{n // 6}"} for n, row in enumerate(rows())]
    found, _ = run(["binary"], data=data)
    people = found.rows[0].dimensions["quality"].people
    assert people is not None
    assert people.per_document is not None
    assert {name: each.used for name, each in people.per_document.items()} == dict.fromkeys(METHODS, 4)
    scores = [each.score for each in found.ratings["binary"]]
    human = [row["human"]["quality"] for row in data]
    inside = [kendall(scores[start : start + 6], human[start : start + 6]).value for start in range(0, SIZE, 6)]
    assert people.per_document["kendall"].average.value == pytest.approx(sum(inside) / 4)
    assert people.per_system is not None
    assert people.per_system.spearman.n == 3
    row = found.to_dict()["judges"][0]["dimensions"]["quality"]
    assert set(row["per_document"]) == {*METHODS, "documents", "undefined"}
    assert set(METHODS) <= set(row["per_system"])


def test_where_several_people_rated_their_own_agreement_stands_beside() -> None:
    data = [row | {"human": {"quality": [1 + n % 5, 1 + (n + n % 2) % 5]}} for n, row in enumerate(rows())]
    found, _ = run(["binary"], data=data)
    pairs = [row["human"]["quality"] for row in data]
    expected = spearman([a for a, _ in pairs], [b for _, b in pairs]).value
    assert found.among_people["quality"]["spearman"].value == pytest.approx(expected)
    assert "quality" in found.to_dict()["among_people"]


def test_without_human_scores_there_is_still_coverage_and_cost() -> None:
    data = [{name: value for name, value in row.items() if name != "human"} for row in rows()]
    found, _ = run(["binary", "direct"], data=data)
    assert found.dimensions == ("quality",)
    assert found.rows[0].dimensions["quality"].people is None
    assert not found.differences
    assert found.to_dict()["judges"][0]["cost"]["per_example"]["calls"] == 2


def test_without_a_checklist_the_dimensions_are_those_people_rated() -> None:
    data = [row | {"human": {"quality": 1 + n % 5, "wit": 1 + n % 3}} for n, row in enumerate(rows())]
    found, _ = run(["direct"], data=data, checklist=None)
    assert found.dimensions == ("quality", "wit")
    one, _ = run(["direct"], data=data, checklist=None, dimensions=["wit"])
    assert one.dimensions == ("wit",)
    with pytest.raises(InputError, match=r"no dimension 'wits'.*Did you mean 'wit'"):
        run(["direct"], data=data, checklist=None, dimensions=["wits"])


def test_criteria_reach_the_judges_that_rate() -> None:
    _, model = run(["direct"], criteria="It must rhyme.")
    assert "It must rhyme" in model.requests[0].messages[0][1]


def test_a_second_run_costs_nothing_and_comes_to_the_same(tmp_path: Path) -> None:
    given = {"no_cache": False, "store": tmp_path / "v.db"}
    names = list(JUDGES)
    first, _ = run(names, **given)
    second, model = run(names, **given)
    assert not model.requests
    assert second.paid == Spent(0, 0, 0.0)
    ours, theirs = first.to_dict(ratings=True), second.to_dict(ratings=True)
    for name in ("calls", "cached_calls", "tokens"):
        del ours[name], theirs[name]
    assert ours == theirs


def test_a_dry_run_buys_nothing_and_says_what_each_judge_would_take(tmp_path: Path) -> None:
    model = ScriptedModel(world)
    options = {"store": tmp_path / "v.db", "resamples": 200}
    job = prepare(rows(), model, ["binary", "geval"], CHECKLIST, None, None, None, (), (), options)
    found = job.estimate()
    assert not model.requests
    assert {name: each.calls for name, each in found.items()} == {"binary": 2 * SIZE, "geval": SIZE + 1}
    job.run()
    assert [each.calls for each in job.estimate().values()] == [0, 0]


def test_a_cap_holds_over_all_judges() -> None:
    with pytest.raises(BudgetExceededError):
        run(["binary", "direct"], call_budget=10)


def test_the_result_is_json_without_numbers_that_are_none() -> None:
    found, _ = run(["binary", "geval"], failing)
    text = json.dumps(found.to_dict(ratings=True), allow_nan=False)
    data = json.loads(text)
    assert data["compared_on"] == SIZE - 2
    assert data["judges"][1]["dimensions"]["quality"]["pooled"]["spearman"]["reason"]
    assert len(data["ratings"]["binary"]) == SIZE
    assert data["human"]["e4"] == {"quality": 1.0}


def by_hand(scores: Mapping[str, Sequence[float | None]], human: Sequence[float]) -> Comparison:
    examples = [Example(id=str(n), input="", output="") for n in range(len(human))]
    judged = [
        JudgeOutput(
            Entrant(name, name, "m"),
            [JudgeScore(str(n), "d", v, "ok" if v is not None else "abstained") for n, v in enumerate(column)],
            Spent(0, 0, 0),
            Spent(1, 10, 0.5),
        )
        for name, column in scores.items()
    ]
    targets = Targets("human", ("d",), {str(n): {"d": value} for n, value in enumerate(human)})
    return compare_ratings(judged, examples, targets, "m", CompareOptions(resamples=200), Budget())


def test_where_no_example_is_scored_by_all_everything_is_undefined_with_a_reason() -> None:
    found = by_hand({"a": [0.1, None, 0.3, None], "b": [None, 0.2, None, 0.4]}, [0, 0.25, 0.5, 1])
    assert found.common == ()
    row = found.rows[0].dimensions["d"]
    assert row.mean is None
    assert row.people is not None
    for each in (
        row.people.pooled.spearman,
        row.people.observed_agreement,
        row.people.qwk,
        row.people.distribution.distance,
    ):
        assert each.value is None
        assert each.reason
    assert found.rows[0].coverage.abstained == 2
    json.dumps(found.to_dict(ratings=True), allow_nan=False)


def test_bad_names_and_settings_are_refused_before_anything_is_bought() -> None:
    model = ScriptedModel(world)
    for given, words in (
        ({"judges": ["binery"]}, "Did you mean 'binary'"),
        ({"judges": []}, "at least one judge"),
        ({"judges": ["binary"], "pointes": 5}, "Did you mean 'points'"),
        ({"judges": ["binary"], "points": 11}, "points"),
        ({"judges": ["direct", "checkeval"]}, "--checklist"),
    ):
        with pytest.raises(InputError, match=words):
            compare(rows(), model=model, no_cache=True, **given)  # type: ignore[arg-type]
    assert not model.requests


def copies(times: int) -> Comparison:
    """Three judges on forty documents, each example ``times`` in its document; three raters, two dimensions."""
    rng = np.random.default_rng(3)
    truth = rng.random((40, 2))
    noise = {name: spread * rng.normal(size=(2, 40, 2)) for name, spread in (("a", 0.3), ("b", 0.15), ("c", 0.5))}
    ratings = [tuple(np.clip(np.round(5 * each + rng.normal(size=3)), 0, 5)) for each in truth[:, 0]]
    places = [(place, f"e{place}-{copy}") for place in range(40) for copy in range(times)]
    examples = [
        Example(id=name, input="", output="", human={"d": ratings[place]}, metadata={"document": f"d{place}"})
        for place, name in places
    ]
    judged = [
        JudgeOutput(
            Entrant(name, name, "m"),
            [
                JudgeScore(
                    each, dimension, float(np.clip(truth[place] + off[again, place], 0, 1)[side]), "ok", replicate=again
                )
                for again in range(2)
                for place, each in places
                for side, dimension in enumerate(("d", "t"))
            ],
            Spent(0, 0, 0),
            Spent(1, 10, 0.5),
        )
        for name, off in noise.items()
    ]
    wanted = {each: {"d": truth[place, 0], "t": truth[place, 1]} for place, each in places}
    targets = Targets("human", ("d", "t"), wanted)
    options = CompareOptions(resamples=100, repeat=2, temperature=0.5)
    return compare_ratings(judged, examples, targets, "m", options, Budget())


def intervals(data: Any, at: str = "") -> dict[str, float]:
    """Every number of a comparison that has a value, a low or a high end, or a p-value."""
    found: dict[str, float] = {}
    if isinstance(data, Mapping):
        for name, each in data.items():
            if name in (
                "value",
                "low",
                "high",
                "p_value",
                "p_adjusted",
                "spearman",
                "kendall",
                "pearson",
            ) and isinstance(each, float):
                found[f"{at}.{name}"] = each
            else:
                found |= intervals(each, f"{at}.{name}")
    elif isinstance(data, list):
        for place, each in enumerate(data):
            found |= intervals(each, f"{at}.{place}")
    return found


def test_each_example_five_times_in_its_document_changes_no_figure_of_a_comparison() -> None:
    once, again = (intervals(copies(times).to_dict()) for times in (1, 5))
    # one example of a document has no order, and alpha corrects for the number of ratings
    without = {name for name in once if "per_document" in name or "alpha" in name}
    before = {name: each for name, each in once.items() if name not in without}
    after = {name: each for name, each in again.items() if name in before}
    assert (
        len(before) > 60 and any("differences" in name for name in before) and any("among" in name for name in before)
    )
    assert after == pytest.approx(before, abs=1e-9)


def test_the_second_judge_is_compared_with_the_first_and_each_dimension_with_its_own() -> None:
    found = copies(1)
    value = {
        (row.name, name): each.people.pooled.spearman.value  # type: ignore[union-attr]
        for row in found.rows
        for name, each in row.dimensions.items()
    }
    assert {(each.judge, each.dimension) for each in found.differences} == {(j, d) for j in "bc" for d in "dt"}
    for each in found.differences:
        assert each.difference.value == pytest.approx(value[each.judge, each.dimension] - value["a", each.dimension])  # type: ignore[operator]
        assert each.p_adjusted is not None and each.difference.p_value is not None
        assert each.p_adjusted >= each.difference.p_value > 0
    alone = next(each.difference.p_value for each in found.differences if each.judge == "c" and each.dimension == "t")
    one_sided = paired_difference(
        *(
            [each.score for each in found.ratings[name] if each.dimension == "t" and each.replicate == 0]
            for name in "ca"
        ),
        [
            found.human[each.example]["t"]
            for each in found.ratings["a"]
            if each.dimension == "t" and each.replicate == 0
        ],
        Resampling([f"{n}" for n in range(40)], 2000),
    ).p_value
    assert alone == pytest.approx(2 * min(one_sided, 1 - one_sided), abs=0.05)  # type: ignore[operator, type-var]
