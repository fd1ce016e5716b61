from __future__ import annotations

import asyncio
import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest

import askance
from askance.evaluation.evaluate import prepare
from askance.models.base import ModelError, Request
from askance.prompts.checklist import Checklist, Question, dump_checklist
from askance.prompts.errors import BudgetExceededError, InputError
from askance.prompts.verdicts import save_verdicts
from askance.report.verdicts_page import Beside, read_judging
from askance.testing import Reply, ScriptedModel
from tests.said import naming, says

pytestmark = pytest.mark.usefixtures("sandbox")


def rows(n: int = 8, **more: Any) -> list[dict[str, Any]]:
    return [{"id": f"e{k}", "input": f"in {k}", "output": f"out {k}", **more} for k in range(n)]


def checklist(*texts: str) -> Checklist:
    return Checklist(questions=tuple(Question(id=f"q{k}", text=text) for k, text in enumerate(texts or ("A?", "B?"))))


def by_output(request: Request) -> Reply:
    """P(yes) rises with the number of the output."""
    told = request.messages[-1][1]
    number = int(told.split("out ")[1].split()[0])
    return 0.1 + 0.08 * number


def judge(script: Any = by_output, **options: Any) -> ScriptedModel:
    return ScriptedModel(script, name="world/judge", **options)


def test_every_question_is_asked_of_every_example() -> None:
    model = judge()
    found = askance.evaluate(rows(), checklist=checklist(), model=model)
    assert len(model.requests) == found.budget.calls == 16
    assert [(each.example, each.question) for each in found.verdicts] == [
        (f"e{k}", f"q{q}") for k in range(8) for q in range(2)
    ]
    assert found.coverage.share == 1
    assert found.scores[3].overall == pytest.approx(0.34, abs=1e-3)
    assert found.means()["overall"] == pytest.approx(0.38, abs=1e-3)


def test_scores_and_means_are_on_the_scale_asked_for() -> None:
    found = askance.evaluate(rows(), checklist=checklist(), model=judge(), scale=(1, 5))
    assert found.means()["overall"] == pytest.approx(1 + 4 * 0.38, abs=1e-2)
    assert found.to_dict()["scores"][0]["overall"] == pytest.approx(1.4, abs=1e-2)


def test_slices_are_of_any_value_that_metadata_have() -> None:
    kinds = [True, 2, ["a"], date(2026, 1, 2), Path("a/b"), b"c", "d", None]
    given = [row | {"kind": kind} for row, kind in zip(rows(), kinds, strict=True)]
    found = askance.evaluate(given, checklist=checklist(), model=judge(), by="kind").to_dict()["by"]["slices"]
    assert [each["value"] for each in found] == ["true", "2", '["a"]', "2026-01-02", "a/b", "b'c'", "d", "(none)"]


@pytest.mark.parametrize("field", ["n", "score"])
def test_slices_keep_their_names_where_the_field_is_called_as_a_figure_is(field: str) -> None:
    given = [row | {field: "half"} for row in rows()]
    found = askance.evaluate(given, checklist=checklist(), model=judge(), by=field)
    [row] = found.view().shown_tables()["slices"]
    assert (row[f"metadata.{field}"], row["n"], str(row["score"])[:4]) == ("half", len(given), "0.38")


def test_a_second_run_makes_no_call_and_comes_to_the_same() -> None:
    first = askance.evaluate(rows(), checklist=checklist(), model=judge())
    model = judge()
    second = askance.evaluate(rows(), checklist=checklist(), model=model)
    assert model.requests == []
    assert second.budget.cached_calls >= 16
    assert second.verdicts == first.verdicts


def test_a_changed_question_buys_only_that_question() -> None:
    askance.evaluate(rows(), checklist=checklist("A?", "B?"), model=judge())
    model = judge()
    askance.evaluate(rows(), checklist=checklist("A?", "Changed?"), model=model)
    assert len(model.requests) == 8
    assert all("Changed?" in request.messages[-1][1] for request in model.requests)


def test_a_further_example_buys_only_that_example() -> None:
    askance.evaluate(rows(8), checklist=checklist(), model=judge())
    model = judge()
    askance.evaluate(rows(9), checklist=checklist(), model=model)
    assert len(model.requests) == 2


def test_without_a_cache_nothing_is_reused_and_nothing_kept(sandbox: Path) -> None:
    for _ in range(2):
        model = judge()
        askance.evaluate(rows(), checklist=checklist(), model=model, no_cache=True)
        assert len(model.requests) == 16
    assert not (sandbox / "cache").exists()


def test_what_failed_is_asked_again_and_nothing_else() -> None:
    def script(request: Request) -> Reply:
        return ModelError("down") if "out 3" in request.messages[-1][1] else by_output(request)

    first = askance.evaluate(rows(), checklist=checklist(), model=judge(script))
    assert first.coverage.api_errors == 2
    assert first.scores[3].overall is None
    model = judge()
    second = askance.evaluate(rows(), checklist=checklist(), model=model)
    assert len(model.requests) == 2
    assert second.coverage.share == 1


@pytest.mark.parametrize("options", [{}, {"repeat": 3}, {"limit": 3}, {"explain": "always", "p_yes": "hard"}])
def test_the_estimate_is_exact(options: dict[str, Any]) -> None:
    def script(request: Request) -> Reply:
        return json.dumps({"answer": "yes", "explanation": "So."}) if request.parameters.schema else 0.7

    model = judge(script)
    job = prepare(rows(), checklist(), model, None, options)
    estimate = job.estimate()
    assert model.requests == []
    found = job.run()
    assert estimate.calls == len(model.requests)
    assert estimate.verdicts == len(found.verdicts)
    assert estimate.stored == 0
    again = job.estimate()
    assert (again.calls, again.stored) == (0, estimate.calls)


def test_the_estimate_counts_what_is_there_already_and_makes_no_file(sandbox: Path) -> None:
    prepare(rows(), checklist(), judge(), None, {}).estimate()
    assert not (sandbox / "cache").exists()
    askance.evaluate(rows(3), checklist=checklist(), model=judge())
    estimate = prepare(rows(8), checklist(), judge(), None, {}).estimate()
    assert (estimate.calls, estimate.stored) == (10, 6)


def test_a_budget_ends_the_evaluation_and_keeps_the_answers() -> None:
    with pytest.raises(BudgetExceededError) as error:
        askance.evaluate(rows(), checklist=checklist(), model=judge(slots=1), call_budget=5)
    assert error.value.limit == "max_calls"
    model = judge()
    askance.evaluate(rows(), checklist=checklist(), model=model)
    assert len(model.requests) == 11


def test_agreement_with_people_is_measured_where_there_are_scores() -> None:
    rated = [row | {"human": {"overall": k // 2}, "system": f"s{k % 3}"} for k, row in enumerate(rows())]
    found = askance.evaluate(rated, checklist=checklist(), model=judge())
    [agreement] = found.agreement
    assert agreement.dimension == "overall"
    assert agreement.pooled.spearman.value == pytest.approx(0.976, abs=1e-3)
    assert agreement.per_document is None
    assert agreement.per_system is not None
    assert askance.evaluate(rows(), checklist=checklist(), model=judge()).agreement == []


def test_examples_that_share_documents_are_measured_per_document() -> None:
    rated = [row | {"human": {"overall": k}, "metadata": {"document": f"d{k % 2}"}} for k, row in enumerate(rows(12))]
    [agreement] = askance.evaluate(rated, checklist=checklist(), model=judge()).agreement
    assert agreement.per_document is not None
    assert agreement.per_document.average.value == pytest.approx(1)


def test_constant_scores_have_no_correlation_and_say_why() -> None:
    rated = [row | {"human": {"overall": k}} for k, row in enumerate(rows())]
    [agreement] = askance.evaluate(rated, checklist=checklist(), model=judge(lambda request: 0.9)).agreement
    assert agreement.pooled.spearman.value is None
    assert agreement.pooled.spearman.reason


def test_the_dictionary_is_json() -> None:
    rated = [row | {"human": {"overall": k}} for k, row in enumerate(rows())]
    found = askance.evaluate(rated, checklist=checklist(), model=judge(lambda request: "Hm."), p_yes="hard")
    text = json.dumps(found.to_dict(), allow_nan=False)
    assert json.loads(text)["coverage"]["share"] == 0


def test_fields_are_renamed_and_rows_limited() -> None:
    data = [{"name": k, "text": "in", "summary": f"out {k}", "score": k} for k in range(5)]
    fields = {"id": "name", "input": "text", "output": "summary", "human.overall": "score"}
    found = askance.evaluate(data, checklist=checklist(), model=judge(), field=fields, limit=4)
    assert [each.example for each in found.scores] == ["0", "1", "2", "3"]
    assert found.agreement[0].pooled.spearman.value == pytest.approx(1)


def test_an_evaluation_runs_inside_a_running_event_loop() -> None:
    async def notebook() -> Any:
        return askance.evaluate(rows(), checklist=checklist(), model=judge())

    assert asyncio.run(notebook()).coverage.answered == 16


def test_an_error_inside_a_running_event_loop_is_the_same_error() -> None:
    async def notebook() -> None:
        askance.evaluate(rows(), checklist=checklist(), model=judge(lambda request: ModelError("no key", fatal=True)))

    with pytest.raises(ModelError, match="no key"):
        asyncio.run(notebook())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": "nonsense"}, "'nonsense' is no model name"),
        ({"data": []}, "there are no examples"),
        ({"data": rows(1) * 2}, "the id 'e0' was used before"),
        ({"prompt": "nowhere.md"}, "no such prompt file"),
        ({"prompt": "Mind {input} and {output}. {question}"}, "itself is given as askance.Prompt(text)"),
        ({"checklist": "nowhere.yaml"}, "no such checklist"),
        ({"repeats": 3}, "Did you mean 'repeat'?"),
    ],
)
def test_bad_input_is_a_sentence(change: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"data": rows(), "checklist": checklist(), "model": judge()} | change
    with pytest.raises(InputError) as error:
        askance.evaluate(**arguments)
    assert message in str(error.value)


def four(**weights: float) -> Checklist:
    return Checklist(
        questions=tuple(
            Question(id=f"q{k}", text=f"{k}?", dimension="ab"[k // 2], weight=weights.get(f"q{k}", 1.0))
            for k in range(4)
        )
    )


def test_questions_that_cannot_change_a_score_by_more_than_is_allowed_are_not_asked() -> None:
    whole = askance.evaluate(rows(), checklist=four(), model=judge(), no_cache=True)
    model = judge()
    found = askance.evaluate(rows(), checklist=four(), model=model, no_cache=True, stop_within=0.25)
    assert len(model.requests) == len(found.verdicts) == 8 * 2, "two of four questions decide all but half of the score"
    assert (found.coverage.asked, found.coverage.not_asked, found.coverage.share) == (16, 16, 1.0)
    assert found.largest_error == pytest.approx(0.25)
    rows_out = found.to_dict()["scores"]
    for row, full in zip(rows_out, whole.scores, strict=True):
        assert row["low"] <= full.overall <= row["high"]
        assert abs(row["overall"] - full.overall) <= 0.25
        assert (row["asked"], row["ended"]) == (2, "tolerance")
    assert found.to_dict()["coverage"]["not_asked"] == 16
    assert "not_asked" not in whole.to_dict()["coverage"]
    assert set(rows_out[0]["dimensions"]) == {"a"}, "nothing is said of a dimension that was not asked about"
    assert set(found.means()) == {"a", "overall"}


def test_a_dimension_called_overall_that_was_left_out_is_not_taken_for_the_score_over_all_questions() -> None:
    heavy = Question(id="q0", text="0?", dimension="tone", weight=9.0)
    two = Checklist(questions=(heavy, Question(id="q1", text="1?", dimension="overall")))
    data = [row | {"human": {"overall": k, "tone": k % 2}} for k, row in enumerate(rows())]
    found = askance.evaluate(data, checklist=two, model=judge(), no_cache=True, stop_within=0.1)
    assert {verdict.question for verdict in found.verdicts} == {"q0"}
    assert {each.dimension: each.pooled.spearman.n for each in found.agreement} == {"overall": 0, "tone": 8}
    means = found.means()
    assert means["overall"] is None and means["all questions"] is not None


def test_on_a_scale_whose_best_is_its_lowest_end_the_range_ascends_and_no_error_is_negative() -> None:
    given = {"checklist": four(), "model": judge(), "no_cache": True, "stop_within": 0.25}
    grades, plain = (askance.evaluate(rows(), scale=scale, **given) for scale in ((6, 1), (0, 1)))
    assert grades.largest_error == pytest.approx(5 * 0.25)
    assert "further than 1.250 from" in str(grades)
    for row, same in zip(grades.to_dict()["scores"], plain.to_dict()["scores"], strict=True):
        assert row["low"] <= row["overall"] <= row["high"]
        assert (row["low"], row["high"]) == pytest.approx((6 - 5 * same["high"], 6 - 5 * same["low"]))


def test_the_heaviest_question_is_asked_first() -> None:
    found = askance.evaluate(rows(), checklist=four(q3=6.0), model=judge(), no_cache=True, stop_within=0.2)
    assert {verdict.question for verdict in found.verdicts} == {"q3"}


def test_at_a_pass_mark_only_examples_near_it_are_asked_everything() -> None:
    whole = askance.evaluate(rows(), checklist=four(), model=judge(), no_cache=True)
    found = askance.evaluate(rows(), checklist=four(), model=judge(), no_cache=True, pass_mark=0.55, scale=(0, 10))
    assert 0 < found.coverage.not_asked < 32
    asked = {each["example"]: each["asked"] for each in found.to_dict()["scores"]}
    assert len(set(asked.values())) > 1
    for row, full in zip(found.to_dict()["scores"], whole.scores, strict=True):
        assert (row["overall"] >= 5.5) == (full.overall >= 0.55)
        assert row["low"] <= 10 * full.overall + 1e-9 and 10 * full.overall <= row["high"] + 1e-9


def test_a_failed_answer_is_told_apart_from_one_that_was_not_asked_for() -> None:
    def script(request: Request) -> Reply:
        text = request.messages[-1][1]
        return ModelError("down") if "out 3" in text and "0?" in text else by_output(request)

    found = askance.evaluate(rows(), checklist=four(), model=judge(script), no_cache=True, stop_within=0.25, retries=0)
    assert (found.coverage.asked, found.coverage.api_errors, found.coverage.not_asked) == (15, 1, 17)
    row = found.to_dict()["scores"][3]
    assert (row["overall"], row["ended"], row["low"], row["high"]) == (None, "missing", 0.0, 1.0)
    assert set(row["dimensions"]) == {"a"}
    assert row["dimensions"]["a"] is None


def test_the_only_dimension_has_the_score_told_and_is_compared_with_people() -> None:
    data = [row | {"human": {"quality": k}} for k, row in enumerate(rows())]
    one = Checklist(questions=tuple(Question(id=f"q{k}", text="A?", dimension="quality") for k in range(4)))
    found = askance.evaluate(data, checklist=one, model=judge(), no_cache=True, stop_within=0.25)
    assert found.agreement[0].pooled.spearman.n == 8
    assert found.agreement[0].pooled.spearman.value == pytest.approx(1)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"stop_within": 2.0}, "stop_within"),
        ({"stop_within": 0.1, "mode": "batched"}, "one after another"),
        ({"pass_mark": 0.5, "stop_within": 0.2}, "stop_within: it may end before pass_mark is settled"),
        ({"pass_mark": 0.5, "calibration": "c.json"}, "pass_mark: a calibration moves scores"),
    ],
)
def test_what_does_not_go_with_leaving_out_questions_is_said(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        askance.evaluate(rows(), checklist=four(), model=judge(), no_cache=True, **given)


MIXED = Checklist(
    questions=(
        Question(id="good", text="A?"),
        Question(id="kind", text="B?", dimension="tone"),
        Question(id="short", text="C?", dimension="tone"),
    )
)


def mixed_judge() -> ScriptedModel:
    return judge(lambda request: 0.9 if "A?" in request.messages[-1][1] else 0.3)


def test_the_mean_of_a_dimension_called_overall_is_its_own_beside_that_over_all_questions() -> None:
    found = askance.evaluate(rows(), checklist=MIXED, model=mixed_judge())
    wanted = {"overall": 0.9, "tone": 0.3, "all questions": 0.5}
    assert found.means() == pytest.approx(wanted, abs=1e-3)
    assert {row["dimension"]: row["mean"] for row in found.view().tables["means"]()} == found.means()
    assert found.view().tables["scores"]()[0] == pytest.approx({"example": "e0"} | wanted, abs=1e-3)
    assert says("\n".join(found.view().lines), "mean score 0.500", "0 to 1")


def test_a_threshold_is_held_against_the_score_over_all_questions() -> None:
    found = askance.evaluate(rows(), checklist=MIXED, model=mixed_judge(), pass_threshold=0.6)
    assert found.passing is not None and found.passing.pass_rate.value == 0


def test_the_page_of_verdicts_gives_the_same_means(sandbox: Path) -> None:
    found = askance.evaluate(rows(), checklist=MIXED, model=mixed_judge())
    save_verdicts("verdicts.jsonl", found.verdicts)
    Path("checklist.yaml").write_text(dump_checklist(MIXED), encoding="utf-8")
    read = read_judging(Path("verdicts.jsonl"), Beside(checklist="checklist.yaml"))
    assert read.data["means"] == pytest.approx(found.means())


def test_each_example_five_times_in_its_document_changes_no_figure_of_evaluate() -> None:
    """Forty documents of two examples that are judged alike, rated on two dimensions, and labelled on one of them."""
    figures = []
    asked = Checklist(
        questions=(
            Question(id="a", text="Is it warm?", dimension="tone"),
            Question(id="b", text="Is it right?", dimension="facts"),
        )
    )

    def says(request: Request) -> Reply:
        told = request.messages[-1][1]
        number = int(told.split("out ")[1].split()[0])
        return 0.05 + 0.9 * (number * (7 if "warm" in told else 11) % 40) / 40

    for human in ("tone", "labels"):
        for times in (1, 5):
            given = [
                {
                    "id": f"e{place}-{copy}",
                    "input": f"in {place}",
                    "output": f"out {place // 2} {'again ' * copy}",
                    "human": {"tone": place // 2 * 7 % 40 % 5, "facts": place // 2 % 3}
                    if human == "tone"
                    else {"tone": place // 2 * 7 % 40 > 15 + 10 * (place // 2 % 3)},
                    "metadata": {"document": f"d{place // 2}", "kind": "kp"[place // 2 % 2]},
                }
                for place in range(80)
                for copy in range(times)
            ]
            found = askance.evaluate(
                given, checklist=asked, model=judge(says), resamples=100, by="kind", pass_threshold=0.5
            ).to_dict()
            figures.append(_flat({name: found[name] for name in found if name not in ("scores", "verdicts", "budget")}))
    for once, again in (figures[:2], figures[2:]):
        ends = {name: value for name, value in once.items() if name.split(".")[-1] in ENDS}
        assert len(ends) > 25 and {name: again[name] for name in ends} == pytest.approx(ends, abs=1e-9)
    assert any("people_pass_rate" in name for name in figures[2])


ENDS = ("value", "low", "high", "spearman", "kendall", "pearson")


def _flat(row: Any, at: str = "") -> dict[str, float]:
    if isinstance(row, dict | list):
        pairs = row.items() if isinstance(row, dict) else enumerate(row)
        return {key: value for name, each in pairs for key, value in _flat(each, f"{at}.{name}").items()}
    return {at: row} if isinstance(row, float) else {}


def test_a_question_about_calls_that_no_output_has_is_said_and_asked(caplog: pytest.LogCaptureFixture) -> None:
    asked = Checklist(questions=(Question(id="called", text="Is the tool called once?", sees="call"),))
    model = judge(lambda _: 0.5)
    askance.evaluate(rows(2), checklist=asked, model=model)
    assert says(caplog.text, "'called'", "no output", "No tool")
    assert "No tool" in model.requests[0].messages[-1][1]
    caplog.clear()
    call = {"role": "assistant", "tool_calls": [{"function": {"name": "look", "arguments": "{}"}}]}
    askance.evaluate(
        [*rows(1), {"id": "c", "input": "in", "output": [call]}], checklist=asked, model=judge(lambda _: 0.5)
    )
    assert "no output" not in caplog.text


def test_a_dry_run_reads_the_calibration_too(tmp_path: Path) -> None:
    file = tmp_path / "calibration.json"
    file.write_text("{", encoding="utf-8")
    job = prepare(rows(), checklist(), judge(), None, {"calibration": str(file)})
    with pytest.raises(InputError, match=naming("calibration.json")):
        job.estimate()
