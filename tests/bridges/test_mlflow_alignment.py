"""MLflow's ``judge.align`` by askance: traces with people's assessments in, a judge of MLflow's out."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any, Literal

import pytest

import askance
from askance.optimizer.options import AlignOptions
from askance.prompts.checklist import load_checklist
from askance.prompts.errors import CoverageError, InputError
from askance.testing import StandInServer
from tests.optimizer.questions.conftest import RULES, Desk

pytest.importorskip(
    "mlflow.genai.judges.base", reason="needs the extra: pip install 'askance[mlflow]'", exc_type=ImportError
)

import mlflow
from mlflow.entities import AssessmentSource
from mlflow.genai.judges import make_judge

from askance.bridges.mlflow_alignment import AskanceAlignmentOptimizer, _parameters_of, noun_in
from askance.bridges.mlflow_judge import AskanceJudge, ValueForm
from tests.said import says

ASKS = "Look at {{ inputs }}. Would you send the reply {{ outputs }} to the customer?"
OPTIONS: dict[str, Any] = {"embedder": "words", "resamples": 200, "update": "questions", "mode": "each"}
ANNA = AssessmentSource("HUMAN", "anna")
ROWS = Desk(120).rows


@pytest.fixture(scope="module", autouse=True)
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One local store for all tests: making its tables takes a while."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
        patch.setenv("MLFLOW_ENABLE_ASYNC_TRACE_LOGGING", "false")
        patch.setenv("OPENAI_API_KEY", "none")
        patch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        folder = tmp_path_factory.mktemp("mlflow")
        patch.chdir(folder)
        mlflow.set_tracking_uri(f"sqlite:///{folder / 'mlflow.db'}")
        yield
        mlflow.set_tracking_uri(None)


@pytest.fixture(scope="module")
def server() -> Iterator[StandInServer]:
    """The desk's judge and note-taker behind an OpenAI-compatible endpoint; it says nothing of one reply."""
    desk = Desk()

    def script(body: Mapping[str, Any]) -> str | float:
        said = [(each["role"], each["content"]) for each in body["messages"]]
        if "what in the output decides" in said[-1][1]:
            return "These words decide."
        return "I would rather not say." if "[e777]" in "".join(text for _, text in said) else desk.reply(said)

    with StandInServer(script) as server:
        yield server


@mlflow.trace(name="answer")
def answer(mail: str, reply: str) -> dict[str, str]:
    """One call of the application, as it is traced."""
    return {"answer": reply}


@pytest.fixture(scope="module")
def traces(store: None) -> list[Any]:
    """Traces in MLflow, each assessed by a person, newest first as MLflow gives them; their ids, which decide who is
    in which part, are the same in each session."""
    mlflow.set_experiment("labelled")
    random.seed(0)
    for row in ROWS:
        answer(row["input"], row["output"])
        found = mlflow.get_last_active_trace_id()
        assert found is not None
        passed = row["human"]["overall"] == "pass"
        mlflow.log_feedback(trace_id=found, name="polite", value=passed, rationale=row.get("comment"), source=ANNA)
    return list(mlflow.search_traces(return_type="list"))


@pytest.fixture(scope="module")
def aligned(traces: list[Any], server: StandInServer, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("aligned")
    return judge(server).align(traces, AskanceAlignmentOptimizer(run=folder / "run", **OPTIONS))


def valued(traces: Sequence[Any], good: Any, bad: Any) -> list[Any]:
    """The traces with other values in place of true and false."""
    copies = deepcopy(list(traces))
    for each in copies:
        for one in each.info.assessments:
            one.feedback.value = good if one.feedback.value else bad
    return copies


def judge(server: StandInServer | None = None, kind: Any = bool, asks: str = ASKS, **more: Any) -> Any:
    url = None if server is None else server.url
    return make_judge("polite", asks, model="openai:/judge", feedback_value_type=kind, base_url=url, **more)


def of_run(aligned: Any) -> list[str]:
    return [each.text for each in askance.load_judge(aligned.directory).checklist.questions]


def values(traced: Any, kind: str) -> list[Any]:
    return [each for each in traced.info.assessments if each.name == "polite" and each.source.source_type == kind]


def test_comments_become_questions_of_a_judge_of_mlflow(aligned: Any) -> None:
    assert isinstance(aligned, AskanceJudge) and aligned.name == "polite" and aligned.feedback_value_type is bool
    assert [each.name for each in aligned.get_input_fields()] == ["inputs", "outputs"]
    kept = askance.load_judge(aligned.directory)
    (first,) = load_checklist(Path(aligned.directory) / "inputs" / "checklist.yaml").questions
    learned = [each for each in kept.checklist.questions if each.id != first.id]
    revised = aligned.askance_run.result["revised_questions"]
    assert [(each["id"], each["what"]) for each in revised] == [(first.id, "dropped")], "it tells nothing"
    assert first.text == 'Does the reply deserve the verdict "yes" by its rubric?'
    assert first.rubric == "Look at the input. Would you send the reply the output to the customer?"
    assert {each.text for each in learned} <= {question for _, question in RULES.values()} and len(learned) >= 2
    assert all(kept.origins[each.id].comments for each in learned)
    assert all(each.text in aligned.instructions for each in learned) and ASKS in aligned.instructions
    assert aligned.askance_run.result["gain"]["test"]["low"] > 0, "it learned something"


def test_mlflow_evaluates_with_it_as_askance_does(aligned: Any, traces: list[Any], server: StandInServer) -> None:
    asked = len(server.bodies)
    found = mlflow.genai.evaluate(data=traces[:30], scorers=[aligned])
    verdicts = [each for each in server.bodies[asked:] if "what in the output decides" not in str(each)]
    assert not verdicts, "what the run asked is not bought again"
    assert found.metrics.keys() >= {"polite/mean"}
    rows = [{"id": each.info.trace_id, "input": texts(each)[0], "output": texts(each)[1]} for each in traces[:30]]
    ours = askance.load_judge(aligned.directory).evaluate(rows, api_base=server.url, resamples=100)
    checklist = askance.load_judge(aligned.directory).checklist

    def good(verdict: Any) -> bool | None:
        return checklist.question(verdict.question).is_good(verdict.answer)

    passed = {each["example"]: each["pass"] for each in ours.to_dict()["scores"]}
    for score in ours.scores:
        (said,) = values(mlflow.get_trace(score.example), "LLM_JUDGE")
        assert float(said.metadata["askance.score"]) == score.overall and said.value is passed[score.example]
        against = [each for each in ours.verdicts if each.example == score.example and good(each) is False]
        assert said.rationale.count("These words decide.") == len(against)
    right = [passed[each.info.trace_id] == values(each, "HUMAN")[0].value for each in traces[:30]]
    assert sum(right) >= 24, "and it says what people say"


def texts(traced: Any) -> tuple[str, str]:
    (root,) = (span for span in traced.data.spans if span.parent_id is None)
    return json.dumps(root.inputs, ensure_ascii=False, indent=2), root.outputs["answer"]


def test_the_same_call_reads_its_run_whatever_the_order_of_the_traces(
    aligned: Any, traces: list[Any], server: StandInServer
) -> None:
    asked = len(server.bodies)
    again = judge(server).align(traces[::-1], AskanceAlignmentOptimizer(run=aligned.directory, **OPTIONS))
    assert len(server.bodies) == asked and again.instructions == aligned.instructions
    with pytest.raises(InputError, match="another"):
        judge(server).align(traces[:-1], AskanceAlignmentOptimizer(run=aligned.directory, **OPTIONS))


def test_a_judge_that_was_aligned_before_goes_on_from_its_run(
    aligned: Any, traces: list[Any], server: StandInServer, tmp_path: Path
) -> None:
    settings = OPTIONS | {"api_base": server.url, "max_iterations": 1}
    second = aligned.align(traces[:40], AskanceAlignmentOptimizer(run=tmp_path / "two", **settings))
    assert second.directory == tmp_path / "two" and set(of_run(aligned)) <= set(of_run(second))
    found = second(inputs={"mail": "Mail [e001]."}, outputs="Reply [e001]. That costs forty pounds in all.")
    assert found.value is False and "Does the reply name a price?" in found.rationale


def test_traces_that_nobody_assessed_are_refused_with_a_sentence_where_a_judge_goes_on(
    aligned: Any, traces: list[Any], tmp_path: Path
) -> None:
    bare = deepcopy(traces[:5])
    for each in bare:
        each.info.assessments = []
    with pytest.raises(InputError):
        aligned.align(bare, AskanceAlignmentOptimizer(run=tmp_path / "two", **OPTIONS))


def test_a_verdict_that_is_missing_is_an_error_and_no_value(aligned: Any) -> None:
    with pytest.raises(CoverageError, match="no verdict"):
        aligned(inputs="Mail [e777].", outputs="Reply [e777].")
    with pytest.raises(InputError, match="reads outputs"):
        aligned(inputs="Mail [e001].")
    with pytest.raises(InputError, match="askance export"):
        aligned.register()


def test_scores_on_a_scale_come_back_on_that_scale(traces: list[Any], server: StandInServer, tmp_path: Path) -> None:
    settings = OPTIONS | {"human_scale": (1, 5), "max_iterations": 1}
    by = judge(server, int, "Rate {{ outputs }}.")
    found = by.align(valued(traces[:24], 5, 2), AskanceAlignmentOptimizer(run=tmp_path / "run", **settings))
    said = found(inputs="not read", outputs="Reply [e001]. Many thanks for your mail.")
    assert type(said.value) is int and said.value == round(1 + 4 * float(said.metadata["askance.score"]))
    assert of_run(found)[0] == "Does the output deserve a high rating by its rubric?"
    assert "not read" not in str(server.bodies[-1])


def test_words_of_ones_own_are_labels_where_it_is_said_what_they_mean(
    traces: list[Any], server: StandInServer, tmp_path: Path
) -> None:
    own, by = valued(traces[:24], "kind", "rude"), judge(server, Literal["rude", "kind"])
    with pytest.raises(InputError, match=r"'(kind|rude)'.*labels="):
        by.align(own, AskanceAlignmentOptimizer(run=tmp_path / "run", **OPTIONS))
    settings = OPTIONS | {"labels": {"good": ["kind"], "bad": ["rude"]}, "max_iterations": 1}
    found = by.align(own, AskanceAlignmentOptimizer(run=tmp_path / "run", **settings))
    assert found(inputs="Mail [e001].", outputs="Reply [e001].").value in ("kind", "rude")
    assert 'the verdict "kind"' in of_run(found)[0]


def test_traces_that_teach_nothing_are_refused_before_anything_is_asked(
    traces: list[Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def refused(match: str, given: Any) -> None:
        with pytest.raises(InputError, match=match):
            judge().align(given, AskanceAlignmentOptimizer(run=tmp_path / "run", **OPTIONS))

    few = deepcopy(traces[:8])
    few[0].info.assessments[0].source = AssessmentSource("LLM_JUDGE", "some-model")
    few[1].info.assessments[0].name = "brief"
    refused(r"6 of 8 traces can be learned from.*'polite'. At least \d+ are needed", few)
    assert says(caplog.text, "2 of 8", "polite")
    refused("A list of traces is needed", mlflow.search_traces(max_results=1))
    few[2].info.assessments[0].feedback.value = 4
    refused("mixed kinds: trace tr-.* has a label .*, trace tr-.* the number 4", few)
    few[2].info.assessments[0].feedback.value = ["a"]
    refused("assessment 'polite' is a list", few)
    refused("0 of 0 traces", [])
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("given", "settings"),
    [
        ({"temperature": 0.7, "max_tokens": 500, "top_p": 1, "n": 1}, {"temperature": 0.7, "mode": "each"}),
        ({"seed": 7, "max_completion_tokens": 80, "temperature": None}, {"seed": 7, "mode": "each"}),
    ],
)
def test_inference_params_are_settings_where_they_hold(given: dict[str, Any], settings: dict[str, Any]) -> None:
    assert _parameters_of(judge(inference_params=given), AlignOptions()) == settings


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"max_tokens": 20}, "up to 80 tokens"),
        ({"top_p": 0.5}, "temperature and seed alone"),
        ({"temperature": "hot"}, "cannot hold"),
        ({"reasoning_effort": "low"}, "model='provider/model'"),
    ],
)
def test_inference_params_that_cannot_hold_are_refused(given: dict[str, Any], why: str) -> None:
    with pytest.raises(InputError, match=why) as error:
        _parameters_of(judge(inference_params=given), AlignOptions())
    assert f"{next(iter(given))}={next(iter(given.values()))!r}" in str(error.value)


def test_a_judge_s_temperature_is_asked_with_and_kept(
    traces: list[Any], server: StandInServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    asked, settings = len(server.bodies), OPTIONS | {"max_iterations": 1}
    warm = judge(server, inference_params={"temperature": 0.7})
    found = warm.align(traces[:24], AskanceAlignmentOptimizer(run=tmp_path / "run", **settings))
    verdicts = [each for each in server.bodies[asked:] if each.get("logprobs")]
    assert verdicts and {each["temperature"] for each in verdicts} == {0.7}
    assert askance.load_judge(found.directory).settings["temperature"] == 0.7
    other = AskanceAlignmentOptimizer(run=tmp_path / "other", model="openai/judge", api_base=server.url, **settings)
    with caplog.at_level("WARNING"):
        found = warm.align(traces[:24], other)
    assert "is asked without" in caplog.text
    assert askance.load_judge(found.directory).settings["temperature"] == 0


def test_judges_that_askance_cannot_ask_are_refused(tmp_path: Path) -> None:
    def refused(match: str, by: Any) -> None:
        with pytest.raises(InputError, match=match):
            by.align([], AskanceAlignmentOptimizer(run=tmp_path / "run", **OPTIONS))

    refused(r"reads \{\{ trace \}\}, which askance cannot show", judge(asks="Is {{ trace }} fine?"))
    refused(r"does not read \{\{ outputs \}\}", judge(asks="Is {{ inputs }} fine?"))
    refused("headers of its own", judge(extra_headers={"X-Team": "desk"}))
    refused("asks endpoints:/mine", make_judge("polite", ASKS, model="endpoints:/mine", feedback_value_type=bool))
    with pytest.raises(InputError, match="'field' says nothing here"):
        AskanceAlignmentOptimizer(run=tmp_path / "run", field={"output": "answer"})
    with pytest.raises(InputError, match="max_call"):
        AskanceAlignmentOptimizer(run=tmp_path / "run", max_call=3)


@pytest.mark.parametrize(
    ("instructions", "noun"),
    [
        ("Is the response in {{ outputs }} an answer to {{ inputs }}?", "response"),
        ("The summary of a report: {{ outputs }}", "report"),
        ("Rate {{ outputs }}.", "output"),
    ],
)
def test_questions_call_an_output_what_the_instructions_call_it(instructions: str, noun: str) -> None:
    assert noun_in(instructions) == noun


@pytest.mark.parametrize(
    ("given", "kind", "passing", "failing"),
    [
        ([True, False, True], bool, True, False),
        (["yes", "no"], bool, True, False),
        (["no", "yes"], Literal["no", "yes"], "yes", "no"),
        (["Pass", "Pass", "PASS", "fail"], str, "Pass", "fail"),
        ([1, 3, 5], Literal[1, 3, 5], 5, 1),
        ([1, 4], int, 4, 1),
        ([0.0, 0.5], float, 0.5, 0.0),
    ],
)
def test_a_value_is_what_people_gave_or_what_the_type_allows(given: Any, kind: Any, passing: Any, failing: Any) -> None:
    form = ValueForm.of(given, kind, {}, None)
    assert (form.value(1.0, True), form.value(0.0, False)) == (passing, failing)
    assert type(form.value(1.0, True)) is type(passing)


def test_a_judge_that_goes_on_keeps_the_labels_and_the_scale_that_it_had() -> None:
    labels, rated = (ValueForm.of(given, kind, {}, None) for given, kind in ((["good", "bad"], str), ([1, 5], int)))
    assert ValueForm.of([], str, {}, None, labels) == labels
    only_good = ValueForm.of(["pass", "pass"], str, {}, None, labels)
    assert (only_good.good, only_good.bad) == ("pass", "bad")
    assert ValueForm.of([2, 4], int, {}, None, rated) == rated
    assert ValueForm.of([4, 4], int, {}, None, rated).scale == (1, 5)
    assert ValueForm.of([2, 7], int, {}, None, rated).scale == (1, 7)
    assert ValueForm.of([2, 4], int, {}, (2, 4), rated).scale == (2, 4)


def test_people_who_all_say_the_same_teach_nothing() -> None:
    with pytest.raises(InputError, match="no label but True"):
        ValueForm.of([True, True], bool, {}, None)
    with pytest.raises(InputError, match="no score but 4"):
        ValueForm.of([4, 4.0], float, {}, None)
