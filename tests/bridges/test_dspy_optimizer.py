"""A DSPy program tuned by our loop: better instructions are kept, useless ones refused, failures never scored."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import askance
from askance.models.base import ModelError, Request
from askance.prompts.errors import BudgetExceededError, InputError
from askance.testing import Reply, ScriptedModel, StandInServer

dspy = pytest.importorskip("dspy", reason="needs the extra: pip install 'askance[dspy]'")

from askance.bridges.dspy_metric import OpenGateway, open_gateway  # noqa: E402
from askance.bridges.dspy_optimizer import AskanceTune  # noqa: E402
from tests.said import naming, says  # noqa: E402

WELCOME, NAME = "Open with words of welcome.", "Close with the name of its writer."
START = "Write what is asked for."


class Secretary(dspy.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.write = dspy.Predict(dspy.Signature("request -> letter", START))

    def forward(self, request: str) -> Any:
        return self.write(request=request)


class Two(dspy.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.plan = dspy.Predict("request -> plan")
        self.write = dspy.Predict(dspy.Signature("plan -> letter", START))

    def forward(self, request: str) -> Any:
        return self.write(plan=self.plan(request=request).plan)


class Post:
    """The letters' world as a DSPy program: its LM, its judge and its data."""

    def __init__(self, letters: Any, opened: OpenGateway, folder: Path) -> None:
        self.letters = letters
        self.opened = opened
        self.folder = folder
        self.ran: list[Request] = []
        self.broken = ""

    def written(self, request: Request) -> Reply:
        """What the program's LM answers."""
        self.ran.append(request)
        system, asked = request.messages[0][1], re.findall(r"Letter \[.*", request.messages[-1][1])[-1]
        if self.broken and self.broken in asked:
            return ModelError("the line is dead")
        if "produce the fields `plan`" in system:
            return f"[[ ## plan ## ]]\n{asked}"
        return f"[[ ## letter ## ]]\n{self.letters.letter(system, asked)}\n\n[[ ## completed ## ]]"

    @property
    def examples(self) -> list[Any]:
        return [dspy.Example(request=row["input"]).with_inputs("request") for row in self.letters.rows]

    def settings(self, **options: Any) -> dict[str, Any]:
        judged = {"judge": self.letters.model("letters/judge"), "checklist": self.letters.checklist}
        return {"run": self.folder / "run"} | judged | self.letters.options | options

    def compile(self, program: Any = None, *, trainset: Any = None, valset: Any = None, **options: Any) -> Any:
        with dspy.context(lm=self.opened.lm(ScriptedModel(self.written, name="letters/writer"))):
            tuner = AskanceTune(**self.settings(**options))
            return tuner.compile(program or Secretary(), trainset=trainset or self.examples, valset=valset)


@pytest.fixture
def opened() -> Iterator[OpenGateway]:
    with open_gateway(no_cache=True, retries=0) as opened:
        yield opened


@pytest.fixture
def post(letters: Any, opened: OpenGateway, tmp_path: Path) -> Post:
    return Post(letters, opened, tmp_path)


def instructions(program: Any) -> str:
    return str(program.predictors()[0].signature.instructions)


def test_a_program_learns_what_its_checklist_asks_for_and_predicts_with_it(post: Post) -> None:
    student = Secretary()
    done = post.compile(student)
    run = done.askance_run
    assert run.finish_reason == "nothing_fails"
    assert WELCOME in instructions(done) and NAME in instructions(done) and instructions(done).startswith(START)
    assert instructions(student) == START, "the student is left as it is"
    assert run.result["best"]["test"]["mean"] > run.result["baseline"]["test"]["mean"] + 0.2
    with dspy.context(lm=post.opened.lm(ScriptedModel(post.written))):
        said = done(request="Letter [e999] with greeting and signature").letter
    assert "Hello." in said and "Yours." in said
    assert isinstance(run, askance.RunResult) and isinstance(done, Secretary)


def test_of_several_predictors_the_one_that_is_named_is_improved(post: Post) -> None:
    student = Two()
    done = post.compile(student, predictor="write")
    assert WELCOME in done.write.signature.instructions
    assert done.plan.signature.instructions == student.plan.signature.instructions
    again = post.compile(done, predictor="plan", run=post.folder / "next")
    assert again.askance_run.finish_reason == "nothing_fails" and again.askance_run.result["iterations"] == 1
    assert WELCOME in again.write.signature.instructions


def test_the_run_is_one_like_any_other(post: Post, tmp_path: Path) -> None:
    run = post.compile().askance_run
    assert json.loads((tmp_path / "run" / "result.json").read_text()) == run.result
    assert set(run.result["roles"]) >= {"generator", "judge", "note_taker", "updater"}
    program = run.result["roles"]["generator"]
    assert program["prompt_tokens"] > 0
    assert program["unpriced_calls"] == program["calls"] > 0
    assert program["cost_usd"] is run.result["cost_usd"] is None
    outputs = [json.loads(line) for line in (tmp_path / "run/verdicts/outputs.jsonl").read_text().splitlines()]
    assert outputs and all(each["output"].startswith("This is [") for each in outputs)


def test_a_useless_edit_is_refused(make_letters: Any, opened: OpenGateway, tmp_path: Path) -> None:
    post = Post(make_letters(harm=1.0), opened, tmp_path)
    done = post.compile(trial=False, max_iterations=1)
    assert instructions(done) == START
    assert done.askance_run.result["rejected_edits"] and not done.askance_run.result["accepted_edits"]


def test_the_same_compile_again_buys_nothing(post: Post) -> None:
    first = post.compile()
    post.ran.clear()
    again = post.compile()
    assert post.ran == [] and again.askance_run.result == first.askance_run.result
    assert instructions(again) == instructions(first)


def test_another_program_in_the_same_directory_is_refused(post: Post) -> None:
    post.compile(max_iterations=1)
    other = Secretary()
    other.write.demos = [dspy.Example(request="Letter", letter="This is one.")]
    with pytest.raises(InputError, match=naming("other settings")):
        post.compile(other, max_iterations=1)


def test_a_run_that_the_budget_ended_goes_on_where_it_stopped(letters: Any, tmp_path: Path) -> None:
    results = []
    for name, caps in (("whole", (9999,)), ("in_parts", (60, 9999))):
        with open_gateway(no_cache=True) as opened:
            post = Post(letters, opened, tmp_path / name)
            runs = [post.compile(call_budget=cap).askance_run for cap in caps]
        assert [run.finish_reason for run in runs[:-1]] == ["max_calls"] * (len(caps) - 1)
        assert len(post.ran) == runs[-1].result["roles"]["generator"]["calls"]
        results.append(runs[-1].result)
    assert results[0] == results[1]


def test_train_and_validation_sets_are_used_as_they_are_named(post: Post) -> None:
    examples = post.examples
    run = post.compile(trainset=examples[:12], valset=examples[12:]).askance_run
    rows = [json.loads(line) for line in (run.directory / "inputs/examples.jsonl").read_text().splitlines()]
    part = {row["input"]: row["metadata"]["split"] for row in rows}
    assert [part[each.request] for each in examples[:12]] == ["development"] * 12
    held_out = [part[each.request] for each in examples[12:]]
    assert (held_out.count("validation"), held_out.count("test")) == (14, 14)
    assert run.result["best"]["test"]["n"] == 14


# Metrics --------------------------------------------------------------------------------------------------------


def greets(example: Any, pred: Any, trace: Any = None) -> bool:
    return "Hello" in pred.letter or "greeting" not in example.request


def with_feedback(gold: Any, pred: Any, trace: Any = None, pred_name: Any = None, pred_trace: Any = None) -> Any:
    assert pred_name == "write" and [each[0].signature.output_fields.keys() for each in pred_trace] == [{"letter"}]
    return dspy.Prediction(score=float(greets(gold, pred)), feedback="It has no 'greeting'.")


@pytest.mark.parametrize("metric", [greets, with_feedback])
def test_a_metric_alone_decides_while_a_named_model_takes_the_notes(post: Post, metric: Any) -> None:
    def serve(body: Mapping[str, Any]) -> Any:
        told = json.dumps(body["messages"]).replace("check 'greets'", "'greeting'")
        return post.letters.serve(body | {"messages": json.loads(told)})

    with StandInServer(serve) as server:
        done = post.compile(metric=metric, checklist=None, judge="openai/helper", api_base=server.url)
    assert WELCOME in instructions(done) and NAME not in instructions(done)
    assert done.askance_run.result["best"]["test"]["dimensions"].keys() == {"checks"}
    assert done.askance_run.result["best"]["test"]["mean"] == 1.0


def test_examples_that_differ_in_their_labels_alone_share_one_prediction(post: Post) -> None:
    examples = [each for row in post.examples for each in (row.copy(wanted="Hello"), row.copy(wanted="Yours"))]

    def has(example: Any, pred: Any, trace: Any = None) -> float:
        return float(example.wanted in pred.letter)

    run = post.compile(trainset=examples, metric=has, score_as="mean", max_iterations=1).askance_run
    assert run.result["best"]["test"]["dimensions"].keys() == {"letter", "checks"}
    asked = [request.messages for request in post.ran]
    assert len(asked) == len(set(asked)), "one run of the program for each request and instruction"


def test_a_metric_that_gives_no_number_ends_the_run_with_a_sentence(post: Post) -> None:
    with pytest.raises(InputError, match=naming("lambda_named_nothing", "None", "number", "True", "False")):
        post.compile(metric=lambda_named_nothing)


def lambda_named_nothing(example: Any, pred: Any, trace: Any = None) -> None:
    return None


def test_a_metric_that_fails_has_no_score(post: Post) -> None:
    def reads(example: Any, pred: Any, trace: Any = None) -> bool:
        if "e00" in example.request:
            raise dspy.utils.exceptions.AdapterParseError("judge", Secretary().write.signature, "unreadable")
        return greets(example, pred)

    result = post.compile(metric=reads, max_iterations=1, min_coverage=0.5).askance_run.result
    assert result["missing"]["api_error"] > 0 and result["coverage"] < 1
    verdicts = "".join(file.read_text() for file in (post.folder / "run/verdicts").glob("000-*"))
    assert "the metric failed: AdapterParseError" in verdicts


@pytest.mark.parametrize(("threshold", "mean"), [(0.4, 1.0), (0.6, 0.0)])
def test_a_metric_that_is_a_number_passes_from_its_threshold(post: Post, threshold: float, mean: float) -> None:
    def half(example: Any, pred: Any, trace: Any = None) -> float:
        return 0.5

    run = post.compile(metric=half, metric_threshold=threshold, max_iterations=1).askance_run
    assert run.result["baseline"]["test"]["dimensions"]["checks"]["mean"] == mean


# What goes wrong ------------------------------------------------------------------------------------------------


def test_a_failed_call_has_no_score_and_is_said(post: Post) -> None:
    post.broken = "e00"
    result = post.compile(max_iterations=1, min_coverage=0.5).askance_run.result
    assert result["missing"]["api_error"] > 0 and result["coverage"] < 1
    files = (post.folder / "run/verdicts").glob("000-*")
    verdicts = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    failed = [each for each in verdicts if each["status"] == "api_error"]
    assert failed and all(each["answer"] is None and "the line is dead" in each["error"] for each in failed)


def test_a_dead_endpoint_ends_the_run(post: Post) -> None:
    post.broken = "Letter"
    with pytest.raises(ModelError, match=naming("10 calls", "the line is dead")):
        post.compile(num_threads=1)


def test_a_used_up_budget_of_the_programs_own_gateway_ends_the_run(letters: Any, tmp_path: Path) -> None:
    with pytest.raises(BudgetExceededError, match="5 calls"):  # noqa: SIM117
        with open_gateway(no_cache=True, call_budget=5) as opened:
            Post(letters, opened, tmp_path).compile()


def test_a_reply_without_the_fields_is_judged_as_it_was_written(post: Post) -> None:
    class Mute(Post):
        def written(self, request: Request) -> Reply:
            return "I would rather not."

    mute = Mute(post.letters, post.opened, post.folder)
    result = mute.compile(metric=greets, max_iterations=1).askance_run.result
    assert result["coverage"] == 1.0 and result["baseline"]["test"]["mean"] < 0.5
    verdicts = (mute.folder / "run/verdicts/000-development.jsonl").read_text()
    assert says(verdicts, "fields", "letter")


@pytest.mark.parametrize(
    ("options", "program", "message"),
    [
        ({"checklist": None, "judge": None}, None, "Nothing says how good a prediction is"),
        ({"checklist": None, "metric": greets}, None, "A metric alone takes no notes"),
        ({"max_output_tokens": 5}, None, "set max_tokens on the program's LM"),
        ({"max_itrations": 5}, None, "max_iterations"),
        ({"cost_budget": 5}, None, "cap with call_budget or token_budget"),
        ({}, Two(), r"several predictors or none \('plan', 'write'\): say which"),
        ({"predictor": "wirte"}, Two(), r"no predictor 'wirte'.*Did you mean 'write'"),
        ({"context": "passage"}, None, "example has no field 'passage'"),
    ],
)
def test_what_cannot_be_tuned_is_said_before_anything_is_asked(
    post: Post, options: dict[str, Any], program: Any, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        post.compile(program, **options)
    assert post.ran == [] and not (post.folder / "run").exists()


def test_examples_and_sets_that_cannot_be_used_are_said(post: Post) -> None:
    examples = post.examples
    with pytest.raises(InputError, match=naming("at least 6")):
        post.compile(trainset=examples[:9], valset=examples[9:14])
    with pytest.raises(InputError, match="Example 1: Inputs have not been set"):
        post.compile(trainset=[dspy.Example(request="Letter")])
    with pytest.raises(InputError, match=naming("different inputs")):
        post.compile(trainset=[dspy.Example(request=each).with_inputs("request") for each in (1, "1")])
    with pytest.raises(InputError, match=naming("dspy.Prediction")):
        post.compile(Talker())
    with pytest.raises(InputError, match="no examples"):
        AskanceTune(**post.settings()).compile(Secretary(), trainset=[])
    with pytest.raises(InputError, match=naming("no LM")):
        AskanceTune(**post.settings()).compile(Secretary(), trainset=examples)


class Talker(Secretary):
    def forward(self, request: str) -> Any:
        return "only a text"


async def test_it_can_be_called_inside_a_running_event_loop(post: Post) -> None:
    assert WELCOME in instructions(post.compile())


def test_braces_in_instructions_come_back_as_they_were(post: Post) -> None:
    program = Secretary()
    program.write.signature = program.write.signature.with_instructions(f"{START} Keep {{input}} and {{{{x}}}}.")
    assert instructions(post.compile(program)).startswith(f"{START} Keep {{input}} and {{{{x}}}}.")
