"""GEPA beside a run of ours: the same task by construction, every call counted, nothing made up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import askance
from askance.bridges.gepa_parts import NearnessToPeople, OwnScore, cut_out_guidance
from askance.evaluation.scoring import ExampleScore, Targets
from askance.memory.journal import read_events
from askance.models.base import ModelError, Request
from askance.optimizer.subject import Observation
from askance.prompts.checklist import Checklist, Question
from askance.prompts.errors import InputError
from askance.prompts.examples import Example
from askance.prompts.prompt import Prompt
from askance.prompts.verdicts import Verdict
from askance.testing import Reply, ScriptedModel

if TYPE_CHECKING:
    from collections.abc import Callable

QAGS = "Article:\n{input}\n\nSummary:\n{output}\n\nYou are a careful evaluator. Compare.\n\n{question}\n"


def test_only_the_guidance_is_cut_out_and_put_back_as_it_was() -> None:
    frame, guidance = cut_out_guidance(Prompt(QAGS))
    assert guidance == "You are a careful evaluator. Compare."
    assert frame.prompt(guidance).text == QAGS
    assert frame.prompt("Be strict.").text == QAGS.replace(guidance, "Be strict.")
    whole, text = cut_out_guidance(Prompt("Follow the {{format}}.\n"))
    assert text == "Follow the {format}." and whole.prompt(text).text == "Follow the {{format}}.\n"


@pytest.mark.parametrize("wild", ["Look at {input} and {question}.", "{{output}}", "{a {b} c}}", "{", ""])
def test_braces_that_a_reflection_writes_never_become_placeholders(wild: str) -> None:
    frame, _ = cut_out_guidance(Prompt(QAGS))
    assert frame.prompt(wild).placeholders == ["input", "output", "question"]
    _, again = cut_out_guidance(Prompt("{input}" + frame.prompt(wild + " and more text than headings").text))
    assert again.endswith((wild + " and more text than headings").strip())


def test_a_prompt_of_placeholders_alone_is_refused() -> None:
    with pytest.raises(InputError, match="no text"):
        cut_out_guidance(Prompt("{input}\n{output}\n{question}"))


def seen_once(answer: bool | None, p_yes: float | None) -> Observation:
    checklist = Checklist(task="t", questions=[Question(id="q", text="Is it so?", dimension="d")])
    example = Example(id="a", input="the text", output="the summary")
    verdict = Verdict("a", "q", "m", "h", answer, p_yes, error=None if answer is not None else "unreadable")
    return Observation([example], [verdict], [ExampleScore("a", p_yes, {"d": p_yes})], checklist)


def test_the_judges_metric_is_nearness_to_people_and_its_feedback_says_how_far_off() -> None:
    metric = NearnessToPeople(Targets("human", ("d",), {"a": {"d": 0.25}, "b": {"d": None}}))
    seen = seen_once(True, 0.95)
    assert metric.value(seen.scores[0]) == pytest.approx(0.3)
    record = metric.record(seen, 0)
    assert record["Inputs"] == {"Input": "the text", "Output": "the summary"}
    assert record["Generated Outputs"] == {"Is it so?": "yes, P(yes) = 0.95"}
    assert "0.95" in record["Feedback"] and "0.25" in record["Feedback"] and "too lenient" in record["Feedback"]
    assert metric.knows("a") and not metric.knows("b")


def test_a_missing_verdict_has_no_number_and_is_said_to_be_missing() -> None:
    metric = NearnessToPeople(Targets("human", ("d",), {"a": {"d": 0.25}}))
    seen = seen_once(None, None)
    assert metric.value(seen.scores[0]) is None
    record = metric.record(seen, 0)
    assert record["Generated Outputs"] == {"Is it so?": "no answer (unreadable)"}
    assert "no score" in record["Feedback"]
    assert OwnScore().value(seen.scores[0]) is None
    assert "unreadable" in OwnScore().record(seen, 0)["Feedback"]


# The search itself ------------------------------------------------------------------------------------------------

REFLECTS = "Your task is to write a new instruction for the assistant."


def gepa_world(world: Any, reply: Callable[[Request], Reply]) -> ScriptedModel:
    """The world's target, which answers reflections with ``reply``."""

    def script(request: Request) -> Reply:
        if REFLECTS in request.messages[-1][1]:
            return reply(request)
        answer: Reply = world.reply(request.messages, request.parameters.schema)
        return answer

    return ScriptedModel(script, name="world/target", slots=1)


@pytest.fixture
def gepa_is_there() -> None:
    pytest.importorskip("gepa", reason="needs the extra: pip install 'askance[gepa]'")


def good_rules(request: Request) -> str:
    rules = "Answer no if it gives a wrong number. Answer no if it gives a wrong name."
    return f"Here it is:\n```\nYou are a careful judge of {{input}}. {rules}\n```"


@pytest.fixture
def our_run(world: Any, tmp_path: Path) -> Path:
    world.align(tmp_path / "ours", seed=3, max_iterations=1)
    return tmp_path / "ours"


@pytest.mark.usefixtures("gepa_is_there")
def test_gepa_learns_on_our_development_and_selects_on_our_validation_examples(
    world: Any, our_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import gepa

    from askance.experiments.measured.gepa_beside import as_text, compare

    asked: dict[str, Any] = {}
    real = gepa.optimize

    def spy(seed_candidate: dict[str, str], **settings: Any) -> Any:
        asked.update(settings, start=seed_candidate)
        return real(seed_candidate, **settings)

    monkeypatch.setattr(gepa, "optimize", spy)
    model = gepa_world(world, good_rules)
    result = compare("qags", our_run, model=model)
    ours = json.loads((our_run / "result.json").read_text())
    split = next(each for each in read_events(our_run / "journal.jsonl") if each["event"] == "split")
    assert sorted(each.id for each in asked["trainset"]) == sorted(split["development"])
    assert sorted(each.id for each in asked["valset"]) == sorted(split["validation"])
    assert asked["start"] == {"instructions": world.prompt.text} and asked["seed"] == 3
    assert result["start_as_in_our_run"]
    assert result["ours"]["test"] == ours["best"]["test"] and result["ours"]["gain"] == ours["gain"]
    assert "wrong name" in result["gepa"]["prompt"] and "{{input}}" in result["gepa"]["prompt"]
    assert result["gepa"]["test"]["spearman"] > result["start"]["test"]["spearman"]
    assert result["gepa"]["prompt_chars"] == len(result["gepa"]["prompt"])
    assert "GEPA - ours on test" in as_text([result])
    reflections = [each for each in model.requests if REFLECTS in each.messages[-1][1]]
    assert all("people gave" in each.messages[-1][1] for each in reflections)
    assert len({each.parameters.seed for each in reflections}) == len(reflections)


@pytest.mark.usefixtures("gepa_is_there")
def test_gepa_stops_at_the_calls_that_our_run_made_before_the_test(world: Any, our_run: Path) -> None:
    from askance.experiments.measured.gepa_beside import compare

    result = compare(
        "qags", our_run, model=gepa_world(world, lambda request: f"```\nBe bold, {request.parameters.seed}.\n```")
    )
    ours = json.loads((our_run / "result.json").read_text())
    search, validation = result["gepa_search"], result["examples"]["validation"]
    judged = {ours[side]["hash"] for side in ("baseline", "best")}
    before = ours["calls"] - len(judged) * result["examples"]["test"] * 2
    assert search["limits"]["calls"] == result["ours"]["calls_before_test"] == before
    assert search["finish_reason"] == "calls"
    assert before <= search["calls"] <= search["limits"]["hard_calls"] == before + 2 * (6 + validation) + 2
    assert search["reflections"] > 0 and search["unscored"] == 0


@pytest.mark.usefixtures("gepa_is_there")
def test_a_search_that_is_repeated_comes_to_the_same_without_a_call(world: Any, our_run: Path) -> None:
    from askance.experiments.measured.gepa_beside import compare

    first = compare("qags", our_run, model=gepa_world(world, good_rules))
    model = gepa_world(world, good_rules)
    assert compare("qags", our_run, model=model) == first
    assert model.requests == []


@pytest.mark.usefixtures("gepa_is_there")
def test_a_rollout_without_a_verdict_counts_as_nothing_for_gepa_and_is_counted(world: Any, our_run: Path) -> None:
    from askance.experiments.measured.gepa_beside import compare

    def script(request: Request) -> Reply:
        text = "\n".join(content for _, content in request.messages)
        if REFLECTS in text:
            return "```\nJudge in a broken way.\n```"
        if "in a broken way" in text and "Are the facts right?" in text:
            return ModelError("the request is longer than the context", status=400)
        answer: Reply = world.reply(request.messages, request.parameters.schema)
        return answer

    result = compare("qags", our_run, model=ScriptedModel(script, name="world/target", slots=1))
    search = result["gepa_search"]
    assert search["unscored"] == 3 * search["reflections"] > 0
    assert search["accepted_candidates"] == 0 and result["gepa"]["prompt"] == world.prompt.text
    assert result["gepa"]["validation"] == result["start"]["validation"] and result["coverage"] < 1


@pytest.mark.usefixtures("gepa_is_there")
def test_a_reflection_that_fails_is_left_out_and_counted(world: Any, our_run: Path) -> None:
    from askance.experiments.measured.gepa_beside import compare

    def too_long(request: Request) -> Reply:
        return ModelError("the request is longer than the context", status=400)

    result = compare("qags", our_run, model=gepa_world(world, too_long))
    search = result["gepa_search"]
    assert search["failed_reflections"] == search["reflections"] > 0
    assert search["finish_reason"] == "max_metric_calls" and search["calls"] < search["limits"]["calls"]
    assert search["accepted_candidates"] == 0 and result["gepa"]["prompt"] == world.prompt.text


@pytest.mark.usefixtures("gepa_is_there")
def test_an_endpoint_that_refuses_every_call_ends_the_search_with_its_error(world: Any, our_run: Path) -> None:
    from askance.experiments.measured.gepa_beside import compare

    def wrong_key(request: Request) -> Reply:
        return ModelError("the key is wrong", fatal=True)

    with pytest.raises(ModelError, match="key is wrong"):
        compare("qags", our_run, model=gepa_world(world, wrong_key))


@pytest.mark.usefixtures("gepa_is_there")
def test_a_generators_system_prompt_is_evolved_on_what_the_checker_says(tmp_path: Path) -> None:
    from askance.experiments.measured.gepa_beside import compare, main

    (tmp_path / "loud.py").write_text(
        "from askance.optimizer.modes.checker import Check\n"
        "def loud(example):\n"
        "    return [Check('loud', example.output.isupper(), 'Capital letters are wanted.'), Check('there', True)]\n"
    )
    reads: list[str] = []

    def script(request: Request) -> Reply:
        last = request.messages[-1][1]
        if REFLECTS in last:
            reads.append(last)
            return "```\nWrite in capital letters.\n```"
        if request.parameters.schema is not None:
            return "not what was asked for"
        return last.upper() if "capital letters" in request.messages[0][1] else last

    def writer() -> ScriptedModel:
        return ScriptedModel(script, name="scripted/writer", slots=1)

    askance.tune(
        [{"id": f"e{number}", "input": f"say word {number}"} for number in range(20)],
        generator=writer(),
        prompt=Prompt("Follow the instruction."),
        checker=f"{tmp_path / 'loud.py'}:loud",
        run=tmp_path / "ours",
        embedder="words",
        resamples=200,
        max_iterations=1,
    )
    result = compare("ifbench", tmp_path / "ours", model=writer())
    assert result["start"]["test"]["mean"] == pytest.approx(0.5)
    assert result["gepa"]["test"]["mean"] == 1.0 and result["gepa"]["prompt"] == "Write in capital letters."
    assert result["calls_per_rollout"] == 1
    assert "loud: FAILED. Capital letters are wanted." in reads[0]
    assert main(["qags", "--ours", str(tmp_path / "ours")]) == 2


def test_a_run_that_is_not_there_or_not_finished_is_refused(world: Any, our_run: Path, tmp_path: Path) -> None:
    from askance.experiments.measured.gepa_beside import main
    from askance.experiments.measured.gepa_runs import open_again

    assert main(["qags", "--ours", str(tmp_path / "nothing")]) == 2
    (our_run / "result.json").unlink()
    with pytest.raises(InputError, match="askance resume"), open_again(our_run, "align", None):
        pass


def test_our_runs_directory_is_left_as_it_was(world: Any, our_run: Path) -> None:
    from askance.experiments.measured.gepa_runs import open_again

    before = {path.name: path.read_bytes() for path in our_run.iterdir() if path.suffix in (".json", ".jsonl", ".yaml")}
    with open_again(our_run, "align", world.model("world/target")) as ours:
        ours.observe(ours.best, "validation")
        assert ours.calls_per_rollout == 2 and ours.bench.gateway.budget.calls > 0
    after = {path.name: path.read_bytes() for path in our_run.iterdir() if path.suffix in (".json", ".jsonl", ".yaml")}
    assert before == after
