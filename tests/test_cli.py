"""The command line: exit codes, sentences instead of tracebacks, results on standard output."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from askance.testing import StandInServer

from .said import says

pytestmark = pytest.mark.usefixtures("sandbox")


def changed(arguments: list[str], *change: str) -> list[str]:
    """Arguments with other values of some options, which may be given once only."""
    kept = list(arguments)
    for option in (each for each in change if each in arguments and each.startswith("--")):
        start = kept.index(option)
        end = next((place for place in range(start + 1, len(kept)) if kept[place].startswith("--")), len(kept))
        del kept[start:end]
    return [*kept, *change]


@pytest.fixture
def evaluation(sandbox: Path, inputs: list[str], server: StandInServer) -> list[str]:
    """The arguments of an evaluation of the same data."""
    return [inputs[0], "--checklist", inputs[2], "--model", "openai/target", "--api-base", server.url]


# --- done ----------------------------------------------------------------------------------------------------------


def test_a_migration_prints_its_story_and_ends_with_0(cli: Any, inputs: list[str]) -> None:
    done = cli("migrate", *inputs, "--run", "run")
    assert done.code == 0
    assert says(done.out, "no disagreement")
    assert says(done.out, "a wrong name.")
    assert "Rejected: " in done.out
    assert "coverage 100.0%" in done.out
    assert "iteration 1: " in done.err
    assert "iteration 1: " not in done.out


def test_json_is_the_whole_result_and_nothing_else_on_standard_output(cli: Any, inputs: list[str]) -> None:
    done = cli("migrate", *inputs, "--run", "run", "--json", "--quiet")
    assert json.loads(done.out) == json.loads(Path("run/result.json").read_text())
    assert done.err == ""


def test_a_finished_run_is_shown_and_run_again_without_a_call(
    cli: Any, inputs: list[str], server: StandInServer
) -> None:
    first = cli("migrate", *inputs, "--run", "run", "--quiet")
    asked = len(server.bodies)
    shown = cli("show", "run")
    assert (shown.code, shown.out) == (0, first.out)
    assert cli("migrate", *inputs, "--run", "run", "--quiet").out == first.out
    assert cli("resume", "run", "--quiet").out == first.out
    assert len(server.bodies) == asked
    diff = cli("show", "run", "--diff")
    assert diff.out == Path("run/changes.diff").read_text()
    assert json.loads(cli("show", "run", "--json").out)["mode"] == "migrate"


def test_an_evaluation_prints_tables_and_writes_verdicts(
    cli: Any, evaluation: list[str], server: StandInServer
) -> None:
    done = cli("evaluate", *evaluation, "-o", "out/verdicts.jsonl")
    assert done.code == 0
    assert "coverage 80/80 verdicts = 100.0%" in done.out
    assert "human agreement" in done.out
    verdicts = [json.loads(line) for line in Path("out/verdicts.jsonl").read_text().splitlines()]
    wanted = {
        "example",
        "question",
        "model",
        "prompt",
        "answer",
        "p_yes",
        "p_yes_from",
        "explanation",
        "status",
        "error",
    }
    assert len(verdicts) == 80
    assert all(set(each) == wanted for each in verdicts)
    assert all(each["p_yes_from"] == "logprob" for each in verdicts)


def test_a_second_evaluation_makes_no_call(cli: Any, evaluation: list[str], server: StandInServer) -> None:
    first = cli("evaluate", *evaluation, "--json", "--quiet")
    asked = len(server.bodies)
    second = cli("evaluate", *evaluation, "--json", "--quiet")
    assert len(server.bodies) == asked
    one, two = json.loads(first.out), json.loads(second.out)
    assert one["scores"] == two["scores"]
    assert two["calls"] == 0


def test_a_dry_run_buys_nothing(cli: Any, inputs: list[str], evaluation: list[str], server: StandInServer) -> None:
    said = cli("migrate", *inputs, "--run", "run", "--dry-run")
    assert said.code == 0
    assert "Nothing was bought." in said.out
    estimate = json.loads(cli("migrate", *inputs, "--dry-run", "--json").out)
    assert estimate["calls"] == (12 + 16) * 2 + 40 * 2, "the source on development and test, the target on all"
    assert not Path("run").exists()
    exact = json.loads(cli("evaluate", *evaluation, "--dry-run", "--json").out)
    assert "Nothing was bought." in cli("evaluate", *evaluation, "--dry-run").out
    assert server.bodies == []
    cli("evaluate", *evaluation)
    assert len(server.bodies) == exact["calls"] == 80


def test_a_resumed_run_needs_none_of_its_files(cli: Any, inputs: list[str], sandbox: Path) -> None:
    assert cli("migrate", *inputs, "--run", "run", "--call-budget", "100").code == 3
    for file in (sandbox / "files").iterdir():
        file.unlink()
    assert cli("resume", "run").code == 0


# --- bad input: 2 --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["migrat"], "There is no command 'migrat'. Did you mean 'migrate'?"),
        (["evaluate", "d.jsonl", "--checklits", "c"], "--checklits"),
        (["evaluate"], "DATA is needed, on the command line or in the --config file."),
        (["evaluate", "d.jsonl", "--model", "a/b"], "give a --checklist, a --schema, --own-questions, or a --judge"),
        (["evaluate", "d.jsonl", "--checklist", "global"], "--model is needed"),
        (["migrate", "d.jsonl", "--checklist", "c", "--source", "a/b", "--target", "c/d"], "--run is needed"),
        (["evaluate", "--mode", "eech", "d"], "'eech' is not one of 'auto', 'each', 'batched'"),
        (["evaluate", "--call-budget", "many", "d"], "'many' is not a valid integer"),
        (["evaluate", "d", "--config", "nowhere.yaml"], "nowhere.yaml: there is no such configuration file"),
        (["resume", "nowhere"], "there is no run in this directory"),
        (["resume", "nowhere", "--margin", "0.5"], "--margin"),
        (["show", "nowhere"], "there is no run in this directory"),
        (["questions", "nowhere.md", "--model", "openai/x"], "nowhere.md"),
        (
            ["questions", "nowhere.md", "--model", "openai/x", "--writer", "openai/y"],
            "--model openai/x and --writer openai/y are the same option; give one of them.",
        ),
        (["models", "pull", "nonsense"], "nonsense"),
    ],
)
def test_wrong_usage_is_a_sentence_and_2(cli: Any, arguments: list[str], message: str) -> None:
    done = cli(*arguments)
    assert done.code == 2
    assert message in " ".join(done.err.split())
    assert done.out == ""


@pytest.mark.parametrize(
    ("twice", "name"),
    [
        (["--seed", "1", "--seed", "2"], "--seed"),
        (["--api-base", "http://127.0.0.1:9"], "--api-base"),
        (["--no-trial", "--trial"], "--trial"),
    ],
)
def test_an_option_with_one_value_is_not_given_twice(cli: Any, inputs: list[str], twice: list[str], name: str) -> None:
    done = cli("migrate", *inputs, "--run", "run", *twice)
    assert done.code == 2
    assert re.search(rf"{name} .*\d times", done.err)
    assert not Path("run").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--max-iterations", "0"], "max_iterations: must be greater than or equal to 1"),
        (["--split", "0.5", "0.5", "0.5"], "three shares above 0 that add up to 1"),
        (["--field", "output"], "write it as our_name=column"),
        (["--field", "outptu=x"], "Did you mean 'output'?"),
        (["--embedder", "worlds"], "There is no embedder 'worlds'."),
        (["--source", "nonsense"], "'nonsense' is no model name"),
        (["--api-base", "127.0.0.1:1"], "an address begins with http://"),
        (["--limit", "4"], "too few"),
        (["--human-scale", "1", "2"], "is outside the scale 1 to 2"),
        (["--checklist", "nowhere.yaml"], "there is no such checklist"),
        (["--prompt", "nowhere.md"], "there is no such prompt file"),
        (["--run", "files/data.jsonl"], "cannot be made a run directory"),
        (["--target", "openai/source", "--source-prompt", "files/prompt.md"], "they cannot disagree"),
    ],
)
def test_a_setting_that_cannot_be_is_a_sentence_and_2(
    cli: Any, inputs: list[str], change: list[str], message: str
) -> None:
    done = cli("migrate", *changed([*inputs, "--run", "run"], *change))
    assert done.code == 2
    assert message in done.err
    assert done.err.count("\n") <= 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "there are no examples in it"),
        ('{"id": "a", "input": "x", "output": "y"}\n{"id": \n', "line 2: not valid JSON"),
        ('{"id": "a", "input": "x"}\n', "line 1: the field 'output' is missing"),
        ('{"id": "a", "input": "x", "output": "y"}\n' * 2, "line 2: the id 'a' was used before"),
        ("[1]\n", "line 1: a JSON object is needed"),
        (
            '{"id": "a", "input": "x", "output": "y", "human": {"quality": "superb"}}\n',
            "line 1: field 'human': 'quality': 'superb'",
        ),
    ],
)
def test_bad_data_names_the_line(cli: Any, inputs: list[str], evaluation: list[str], text: str, message: str) -> None:
    Path("bad.jsonl").write_text(text)
    for arguments in (
        ["migrate", "bad.jsonl", *inputs[1:], "--run", "run"],
        ["evaluate", "bad.jsonl", *evaluation[1:]],
    ):
        done = cli(*arguments)
        assert done.code == 2
        assert "bad.jsonl" in done.err
        assert message in done.err


def test_another_run_in_the_directory_is_refused(cli: Any, inputs: list[str]) -> None:
    assert cli("migrate", *inputs, "--run", "run").code == 0
    done = cli("migrate", *inputs, "--run", "run", "--seed", "7")
    assert done.code == 2
    assert "other settings (seed)" in done.err
    assert "askance resume run" in done.err


def test_a_finished_run_that_is_resumed_is_said_to_be_read(cli: Any, inputs: list[str]) -> None:
    said = "this run has a result; what follows is read from its answers"
    assert said not in cli("migrate", *inputs, "--run", "run").err
    done = cli("resume", "run")
    assert done.code == 0
    assert done.err.startswith(said)


def test_a_run_that_is_not_finished_is_not_shown(cli: Any, inputs: list[str]) -> None:
    assert cli("migrate", *inputs, "--run", "run", "--call-budget", "10").code == 3
    done = cli("show", "run")
    assert done.code == 2
    assert says(done.err, "not finished", "askance resume run")


# --- the run failed: 1 ---------------------------------------------------------------------------------------------


def test_a_wrong_key_is_a_sentence_without_the_key(
    cli: Any, inputs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "sk-very-secret-0123456789"
    monkeypatch.setenv("OPENAI_API_KEY", key)

    def refuse(body: Any) -> tuple[int, Any]:
        return 401, {"error": {"message": f"Incorrect API key provided: {key}"}}

    with StandInServer(refuse) as strict:
        done = cli("migrate", *changed(inputs, "--api-base", strict.url), "--run", "run")
    assert done.code == 1
    assert "refused the key" in done.err
    assert key not in done.err + done.out
    assert not [path for path in Path("run").rglob("*") if path.is_file() and key.encode() in path.read_bytes()]


def test_an_endpoint_that_is_not_there_is_a_sentence(cli: Any, inputs: list[str]) -> None:
    there = changed(inputs, "--api-base", "http://127.0.0.1:9/v1")
    done = cli("migrate", *there, "--retries", "0", "--run", "run")
    assert done.code == 1
    assert "cannot reach http://127.0.0.1:9/v1" in done.err


def test_an_endpoint_that_hangs_is_given_up_and_the_run_can_go_on(cli: Any, inputs: list[str], world: Any) -> None:
    with StandInServer(world.serve, delay=3) as slow:
        hanging = ["--api-base", slow.url, "--timeout", "0.2", "--retries", "0", "--run", "run"]
        done = cli("migrate", *changed(inputs, *hanging))
    assert done.code == 1
    assert says(done.err, "no answer", "0.2 s")


def test_a_run_that_another_process_works_on_is_left_alone(cli: Any, inputs: list[str], sandbox: Path) -> None:
    program = (
        "import sys, time; from askance.memory.run_directory import RunDirectory\n"
        "with RunDirectory('run').lock(): print('mine', flush=True); sys.stdin.read()"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", program], **pipes) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "mine\n"
        done = cli("migrate", *inputs, "--run", "run")
        other.communicate()
    assert done.code == 1
    assert says(done.err, "another process")
    assert cli("migrate", *inputs, "--run", "run").code == 0


# --- budget: 3, coverage: 4, interrupted: 130 ----------------------------------------------------------------------


def test_a_budget_ends_with_3_and_says_how_to_go_on(cli: Any, inputs: list[str], server: StandInServer) -> None:
    done = cli("migrate", *inputs, "--run", "run", "--call-budget", "150")
    assert done.code == 3
    assert "askance resume run --call-budget MORE" in done.err
    assert says(done.out, "budget of calls")
    assert len(server.bodies) == 150
    assert Path("run/prompt.md").is_file()
    assert cli("resume", "run", "--call-budget", "10000").code == 0
    assert json.loads(Path("run/result.json").read_text())["calls"] == len(server.bodies)


def test_a_budget_ends_an_evaluation_with_3(cli: Any, evaluation: list[str], server: StandInServer) -> None:
    done = cli("evaluate", *evaluation, "--call-budget", "7")
    assert done.code == 3
    assert says(done.err, "budget", "7 calls")
    assert len(server.bodies) == 7
    assert cli("evaluate", *evaluation).code == 0
    assert len(server.bodies) == 80


def test_low_coverage_ends_with_4_and_the_result_is_kept(cli: Any, inputs: list[str], world: Any) -> None:
    def mumble(body: Any) -> Any:
        told = json.dumps(body["messages"])
        return "Hard to say." if "[e00" in told and "response_format" not in body else world.serve(body)

    with StandInServer(mumble) as server:
        here = ["--api-base", server.url, "--p-yes", "hard", "--min-coverage", "0.99"]
        done = cli("migrate", *changed(inputs, *here), "--run", "run")
        assert done.code == 4
        assert "--min-coverage 99.0%" in done.err
        assert json.loads(Path("run/result.json").read_text())["coverage"] < 0.99
        evaluated = cli("evaluate", inputs[0], "--checklist", inputs[2], "--model", "openai/target", *here)
        assert evaluated.code == 4
        assert "Only 75.0% of" in evaluated.err
        assert "coverage 60/80" in evaluated.out


def test_an_interrupted_command_ends_with_130(cli: Any, evaluation: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("askance.commands.judge_data.prepare", interrupted)
    done = cli("evaluate", *evaluation)
    assert done.code == 130
    assert says(done.err, "same command again")


# --- the rest ------------------------------------------------------------------------------------------------------


def test_help_lists_the_commands_in_order_and_each_has_its_own(cli: Any) -> None:
    listed = cli("--help")
    assert listed.code == 0
    positions = [listed.out.index(f"\n  {name}") for name in ("questions", "evaluate", "migrate", "resume", "show")]
    assert positions == sorted(positions)
    for name in ("questions", "evaluate", "migrate", "resume", "show", "models"):
        assert cli(name, "--help").out.startswith(f"Usage: askance {name}")


def test_the_version_is_said(cli: Any) -> None:
    assert cli("--version").out.startswith("askance ")


def test_a_dotenv_file_is_read_and_does_not_override(
    cli: Any, evaluation: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import os

    Path(".env").write_text(
        "# keys\nexport OPENAI_API_KEY='from the file'\nOTHER = 2\nnonsense\nSET_ALREADY=no\n"
        'COMMENTED=sk-1 # of the test project\nHASH=a#b\nQUOTED="a # b"\n'
    )
    monkeypatch.setenv("SET_ALREADY", "yes")
    monkeypatch.setenv("OTHER", "")
    monkeypatch.delenv("OTHER")
    assert cli("evaluate", *evaluation, "--dry-run").code == 0
    assert os.environ.pop("OPENAI_API_KEY") == "from the file"
    assert os.environ.pop("OTHER") == "2"
    assert [os.environ.pop(name) for name in ("COMMENTED", "HASH", "QUOTED")] == ["sk-1", "a#b", "a # b"]
    assert os.environ["SET_ALREADY"] == "yes"


def test_output_that_cannot_be_written_is_a_sentence(cli: Any, evaluation: list[str]) -> None:
    Path("file").write_text("x")
    done = cli("evaluate", *evaluation, "-o", "file/verdicts.jsonl")
    assert done.code == 2, "it is known before anything is bought"
    assert "file/verdicts.jsonl: cannot be written" in done.err


def test_a_reader_that_goes_away_is_no_traceback(askance_command: Any, evaluation: list[str]) -> None:
    process = askance_command.start("evaluate", *evaluation, "--json", "--quiet")
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    with process.stderr as said:
        err = said.read()
    process.wait(30)
    assert "Traceback" not in err


def test_the_command_works_as_a_module(askance_command: Any) -> None:
    done = askance_command("--help")
    assert done.returncode == 0
    assert done.stdout.startswith("Usage: askance ")


def test_questions_writes_a_checklist_that_can_be_read(cli: Any, sandbox: Path) -> None:
    from askance.prompts.checklist import load_checklist

    def write(body: Any) -> str:
        fields = body["response_format"]["json_schema"]["schema"]["properties"]
        if "requirements" in fields:
            return json.dumps({"requirements": ["The summary gives the right facts.", "The summary is short."]})
        question = {"text": "Is it right: all of it?", "violation": "It says: 3.", "dimension": "accuracy"}
        if "short" in body["messages"][-1]["content"].rpartition("The requirement:")[2]:
            question = {"text": "Is the summary short?", "violation": "It is endless.", "dimension": "length"}
        return json.dumps({"questions": [question]})

    Path("task.md").write_text("Summarise the document.")
    with StandInServer(write) as server:
        arguments = ["questions", "task.md", "--model", "openai/x", "--api-base", server.url, "--embedder", "words"]
        done = cli(*arguments, "-o", "checklist.yaml")
        assert done.code == 0
        assert done.out == ""
        checklist = load_checklist("checklist.yaml")
        assert checklist.dimensions == ["accuracy", "length"]
        asked = len(server.bodies)
        assert cli(*arguments).out == Path("checklist.yaml").read_text()
        assert len(server.bodies) == asked
        Path("task.md").write_text("  \n")
        assert cli(*arguments).code == 2


def test_one_bad_reply_costs_questions_its_requirement_and_not_the_rest(
    cli: Any, sandbox: Path, caplog: pytest.LogCaptureFixture
) -> None:
    from askance.prompts.checklist import load_checklist

    def write(body: Any) -> str:
        if "requirements" in body["response_format"]["json_schema"]["schema"]["properties"]:
            return json.dumps({"requirements": ["Its facts are right.", "It is short."]})
        if any("It is short." in each["content"] for each in body["messages"]):
            return "I would rather not."
        return json.dumps({"questions": [{"text": "Is it right?", "violation": "It is wrong.", "dimension": "facts"}]})

    Path("task.md").write_text("Summarise the document.")
    with StandInServer(write) as server:
        where = ["--api-base", server.url, "--embedder", "words", "-o", "checklist.yaml"]
        done = cli("questions", "task.md", "--model", "openai/x", *where)
    assert done.code == 0
    assert says(caplog.text, "No question", "'It is short.'")
    assert [each.text for each in load_checklist("checklist.yaml").questions] == ["Is it right?"]
