"""The pytest plugin, in test runs of its own: it fails on a drop, and never passes where nothing can be said."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

from askance import pytest_plugin
from askance.evaluation import regression
from askance.evaluation.calibration import Calibration
from askance.evaluation.kept_judge import KeptJudge, MadeBy
from askance.models.base import Request
from askance.prompts import rows
from askance.prompts.checklist import Checklist, ComputedCheck, Question, dump_checklist
from askance.prompts.errors import InputError
from askance.prompts.prompt import Prompt
from askance.testing import ScriptedModel, StandInServer

pytest_plugins = ["pytester"]

CHECKLIST = Checklist(
    task="Answer.",
    questions=[
        Question(id="right", text="Is it right?", dimension="facts"),
        Question(id="polite", text="Is it polite?", dimension="tone"),
    ],
)
LOADED = [] if entry_points(group="pytest11", name="askance") else ["-p", "askance.pytest_plugin"]
MARKED = """
import pytest

@pytest.mark.askance(data="answers.jsonl", checklist="checklist.yaml", model="openai/judge", baseline="kept/base.json",
                     api_base={url!r}, no_cache=True, retries=0, explain="never"{more})
def test_answers():
    {body}
"""


def reply(body: Mapping[str, Any]) -> Any:
    """Right is what says so; anything is polite; silence has no verdict."""
    said = "\n".join(message["content"] for message in body["messages"])
    if "silence" in said:
        return 400, {"error": {"message": "no"}}
    return 0.9 if "Is it polite?" in said or "right answer" in said else 0.1


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with StandInServer(reply) as server:
        yield server.url


class Project:
    """Files of somebody who tests answers, and their test runs."""

    def __init__(self, pytester: pytest.Pytester, url: str) -> None:
        self.pytester = pytester
        self.url = url
        self.path = pytester.path
        (self.path / "checklist.yaml").write_text(dump_checklist(CHECKLIST), encoding="utf-8")
        self.answers(["right answer"] * 12)
        self.test()

    def answers(self, outputs: list[str], first: int = 0) -> None:
        rows = [{"id": f"a{n}", "input": "Q", "output": f"{text} {n}"} for n, text in enumerate(outputs, first)]
        (self.path / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")

    def test(self, more: str = "", body: str = "pass") -> None:
        self.pytester.makepyfile(test_it=MARKED.format(url=self.url, more=more, body=body))

    def damages(self, example: str, row: Any) -> None:
        path = self.path / "kept" / "base.json"
        kept = json.loads(path.read_text(encoding="utf-8"))
        path.write_text(json.dumps(kept | {"examples": kept["examples"] | {example: row}}), encoding="utf-8")

    def run(self, *arguments: str) -> pytest.RunResult:
        assert regression.LEVEL < 1  # imported here, because the inner run takes back its own imports, numpy's too
        return self.pytester.runpytest_inprocess(*LOADED, "-p", "no:cacheprovider", "-p", "no:asyncio", *arguments)


@pytest.fixture
def project(pytester: pytest.Pytester, url: str, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    return Project(pytester, url)


def test_a_missing_baseline_fails_and_says_how_to_make_one(project: Project) -> None:
    result = project.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*base.json: there is no such baseline. Make one*--askance-update*"])


def test_a_baseline_is_written_and_then_the_same_answers_pass(project: Project) -> None:
    result = project.run("--askance-update")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["askance: *base.json: baseline of 12 examples written, mean score 0.900."])
    kept = json.loads((project.path / "kept" / "base.json").read_text(encoding="utf-8"))
    assert kept["examples"]["a3"] == pytest.approx({"overall": 0.9, "facts": 0.9, "tone": 0.9}, abs=1e-3)
    project.run().assert_outcomes(passed=1)


def test_processes_of_xdist_say_which_baselines_they_wrote(project: Project) -> None:
    pytest.importorskip("xdist")
    result = project.run("--askance-update", "-n", "2")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["askance: *base.json: baseline of 12 examples written, mean score 0.900."])


def test_a_data_set_on_the_hub_is_no_file_beside_the_test(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    named = []

    def hub_rows(*name: Any) -> list[dict[str, str]]:
        named.append(name)
        return [{"id": str(n), "input": "Q", "output": f"right answer {n}"} for n in range(6)]

    monkeypatch.setattr(rows, "hub_rows", hub_rows)
    test = project.path / "test_it.py"
    test.write_text(
        test.read_text(encoding="utf-8").replace("answers.jsonl", "hf:owner/answers:test"), encoding="utf-8"
    )
    project.run("--askance-update").assert_outcomes(passed=1)
    assert named == [("owner/answers", None, "test")]


def test_a_scorers_folder_beside_the_test_is_its_model_wherever_pytest_is_called(tmp_path: Path) -> None:
    (tmp_path / "scorer").mkdir()
    (tmp_path / "scorer" / "scorer.json").touch()
    beside = [pytest_plugin._beside(tmp_path, "model", name) for name in ("scorer/", "openai/m", "elsewhere/")]
    assert beside == [str(tmp_path / "scorer"), "openai/m", "elsewhere/"]


def test_a_drop_beyond_noise_fails_with_interval_and_the_worst_examples(project: Project) -> None:
    project.run("--askance-update")
    project.answers(["right answer"] * 4 + ["wrong one"] * 8)
    result = project.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*score (overall) dropped: 0.900 before, 0.633 now, a change of -0.267 [[]-0.*, -0.*] on 12 examples*",
            "*a4: 0.900 before, 0.500 now; fails: Is it right?",
            "*If the drop is meant, keep the new scores: pytest --askance-update",
        ]
    )
    result.stdout.no_fnmatch_line("*a0: *")
    project.run("--askance-update").assert_outcomes(passed=1)
    project.run().assert_outcomes(passed=1)


def test_a_drop_within_noise_or_within_the_tolerance_passes(project: Project) -> None:
    project.run("--askance-update")
    project.answers(["right answer"] * 10 + ["wrong one"] * 2)
    project.run().assert_outcomes(passed=1)
    project.answers(["wrong one"] * 12)
    project.run().assert_outcomes(failed=1)
    project.test(", tolerance=0.5")
    project.run().assert_outcomes(passed=1)


def test_a_drop_of_just_the_tolerance_is_within_it(tmp_path: Path) -> None:
    questions = [Question(id=f"q{place}", text=f"Does it reach {place}?") for place in range(10)]

    def reaches(request: Request) -> str:
        said = request.messages[-1][1]
        level = int(said.partition("level ")[2][0])
        return "Yes" if int(said.partition("reach ")[2][0]) < level else "No"

    def check(level: int, **more: Any) -> Any:
        given = [{"id": f"a{place}", "input": "Q", "output": f"level {level}"} for place in range(12)]
        options = {"model": ScriptedModel(reaches, name="m"), "scores": "hard", "no_cache": True, "tolerance": 0.1}
        where = tmp_path / "base.json"
        return regression.check_regression(
            given, checklist=Checklist(questions=questions), baseline=where, **options, **more
        )

    check(8, update=True)
    same = check(7)
    assert same.difference.value == pytest.approx(-0.1) and same.p_drop < 0.05 and not same.dropped
    assert check(6).dropped


def test_a_baseline_of_another_version_of_a_check_s_function_is_not_compared_with(tmp_path: Path) -> None:
    rules = tmp_path / "rules_of_baseline.py"
    check = ComputedCheck(id="fits", kind="checker", value=f"{rules}:fits")

    def compare(**more: Any) -> Any:
        rows = [{"id": f"a{place}", "input": "Q", "output": "x"} for place in range(12)]
        where = tmp_path / "base.json"
        checklist = Checklist(questions=(check,))
        model = ScriptedModel("Yes", name="m")
        return regression.check_regression(
            rows, checklist=checklist, model=model, baseline=where, no_cache=True, **more
        )

    rules.write_text("def fits(example):\n    return True\n")
    compare(update=True)
    assert not compare().dropped
    rules.write_text("def fits(example):\n    return len(example.output) > 0\n")
    with pytest.raises(InputError, match="checklist changed"):
        compare()


def test_a_dimension_is_compared_alone(project: Project) -> None:
    project.run("--askance-update")
    project.answers(["wrong one"] * 12)
    project.test(', dimension="tone"')
    project.run().assert_outcomes(passed=1)
    project.test(', dimension="facts"')
    project.run().stdout.fnmatch_lines(["*score (facts) dropped*"])
    project.test(', dimension="fact"')
    project.run().stdout.fnmatch_lines(["*has no dimension 'fact' (it has: facts, tone). Did you mean 'facts'?"])


def test_a_dimension_called_overall_does_not_stand_for_all_questions(project: Project) -> None:
    mixed = [
        each.model_copy(update={"dimension": "tone" if "right" in each.text else "overall"})
        for each in CHECKLIST.questions
    ]
    (project.path / "checklist.yaml").write_text(dump_checklist(Checklist(questions=tuple(mixed))), encoding="utf-8")
    project.run("--askance-update")
    project.answers(["wrong one"] * 12)
    project.run().stdout.fnmatch_lines(["*score (all questions) dropped: 0.900 before*"])
    project.test(', dimension="overall"')
    project.run().assert_outcomes(passed=1)


def test_missing_verdicts_are_an_error_and_not_a_pass(project: Project) -> None:
    project.run("--askance-update")
    project.answers(["right answer"] * 11 + ["silence"])
    result = project.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*Only 22 of 24 verdicts are there*so nothing can be said about the score*"])
    project.test(", min_coverage=0.9")
    project.run().assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda p: p.answers(["right answer"] * 13), "1 are new (a12)"),
        (lambda p: p.answers(["right answer"] * 11), "1 are gone (a11)"),
        (
            lambda p: (p.path / "checklist.yaml").write_text("questions:\n  - {id: q, text: Is it so}"),
            "the checklist changed",
        ),
        (lambda p: p.test(', prompt="judge.md"'), "the judge's prompt changed"),
        (lambda p: p.test(', scores="hard"'), "the settings changed"),
        (lambda p: (p.path / "kept" / "base.json").write_text("[]"), "not a baseline of askance"),
        (lambda p: p.damages("a3", 0.5), "the scores of 'a3' are damaged"),
        (lambda p: p.damages("a3", {"overall": "high"}), "the scores of 'a3' are damaged"),
        (lambda p: p.damages("a3", {"overall": 7}), "the scores of 'a3' are damaged"),
        (lambda p: p.test(", tolerance=5"), "tolerance: must be less than or equal to 1, not 5"),
    ],
)
def test_what_cannot_be_compared_is_an_error(project: Project, change: Any, said: str) -> None:
    (project.path / "judge.md").write_text("Judge: {input} {output} {question}", encoding="utf-8")
    project.run("--askance-update")
    change(project)
    result = project.run()
    result.assert_outcomes(failed=1)
    assert said in result.stdout.str()


def test_too_few_examples_to_tell_a_drop_are_an_error(project: Project) -> None:
    project.answers(["right answer"] * 4)
    project.run("--askance-update").assert_outcomes(passed=1)
    result = project.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*Only 4 examples have a score*with fewer than 5 no drop can be told from noise*"])


def test_the_fixture_takes_rows_and_returns_the_comparison(project: Project) -> None:
    project.pytester.makepyfile(
        test_it=f"""
        def test_it(askance_check):
            rows = [{{"id": str(n), "input": "Q", "output": "right answer"}} for n in range(6)]
            found = askance_check(data=rows, checklist="checklist.yaml", model="openai/judge", baseline="b.json",
                                  api_base={project.url!r}, no_cache=True)
            assert found.wrote or found.difference.value == 0
        """
    )
    project.run("--askance-update").assert_outcomes(passed=1)
    project.run().assert_outcomes(passed=1)


def test_a_test_may_say_itself_that_the_baseline_is_to_be_written(project: Project) -> None:
    project.test(more=", update=True")
    project.run().stdout.fnmatch_lines(["askance: *base.json: baseline of 12 examples written, mean score 0.900."])
    project.run("--askance-update").assert_outcomes(passed=1)
    project.test(more=", update=False")
    project.run().assert_outcomes(passed=1)


def test_a_failing_body_still_fails_and_arguments_are_checked(project: Project) -> None:
    project.test(body="assert False")
    project.run("--askance-update").assert_outcomes(failed=1)
    project.pytester.makepyfile(
        test_it="import pytest\n@pytest.mark.askance(data='answers.jsonl')\ndef test_it(): pass"
    )
    project.run().stdout.fnmatch_lines(
        ["*checklist (or judge), model (or judge), baseline (or fail_under) must be given."]
    )


def test_loading_the_plugin_imports_nothing_heavy(tmp_path: Path) -> None:
    (tmp_path / "test_nothing.py").write_text(
        "import sys\ndef test_it():\n"
        "    mine = [name for name in sys.modules if name.startswith('askance')]\n"
        "    assert sorted(mine) == ['askance', 'askance.pytest_plugin'], mine\n"
        "    assert not {'numpy', 'pydantic', 'aiohttp', 'yaml', 'click', 'rich'} & set(sys.modules)\n",
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "pytest", *LOADED, "-q", "-p", "no:cacheprovider", "test_nothing.py"]
    environment = {"PATH": "/usr/bin:/bin"} if LOADED else None
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout


def test_a_judge_that_is_not_to_be_adopted_is_named_at_the_end(project: Project) -> None:
    made_by = MadeBy(mode="align", finish_reason="no_gain", accepted=True)
    judge = KeptJudge("openai/judge", Prompt("Judge."), CHECKLIST, made_by=made_by, decision="keep")
    judge.save(project.path / "judge.yaml")
    marked = MARKED.replace('checklist="checklist.yaml", model="openai/judge"', 'judge="judge.yaml"')
    project.pytester.makepyfile(test_it=marked.format(url=project.url, more="", body="pass"))
    result = project.run("--askance-update")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*askance: *the test speaks against it (decision: keep)*"])


def test_a_kept_judge_takes_the_place_of_checklist_model_and_prompt(project: Project, caplog: Any) -> None:
    KeptJudge("openai/judge", Prompt("Judge."), CHECKLIST, {"scores": "hard"}).save(project.path / "judge.yaml")
    marked = MARKED.replace('checklist="checklist.yaml", model="openai/judge"', 'judge="judge.yaml"')
    project.pytester.makepyfile(test_it=marked.format(url=project.url, more="", body="pass"))
    project.run("--askance-update").assert_outcomes(passed=1)
    kept = json.loads((project.path / "kept" / "base.json").read_text(encoding="utf-8"))
    assert kept["prompt"] == Prompt("Judge.").hash and kept["settings"]["scores"] == "hard"
    project.run().assert_outcomes(passed=1)
    project.answers(["wrong one"] * 12)
    project.run().assert_outcomes(failed=1)
    project.pytester.makepyfile(
        test_it=marked.format(url=project.url, more=', checklist="checklist.yaml"', body="pass")
    )
    project.run().stdout.fnmatch_lines(["*The judge brings its own checklist; leave out checklist, or judge.*"])


def test_a_calibration_is_known_by_what_it_says_and_not_by_where_it_lies(project: Project) -> None:
    of = {"method": "platt", "model": "openai/judge", "prompt": Prompt("Judge.").hash, "target": "human", "n": 12}
    (project.path / "judge.md").write_text("Judge.", encoding="utf-8")
    for name, shift in (("here", 0.5), ("there", 0.5), ("other", -0.5)):
        (project.path / name).mkdir()
        fits = {each.id: {"slope": 1.0, "shift": shift, "n": 12} for each in CHECKLIST.questions}
        fitted = Calibration.model_validate({**of, "questions": fits})
        (project.path / name / "platt.json").write_text(fitted.to_json(), encoding="utf-8")
    given = ', prompt="judge.md", calibration="{}/platt.json"'
    project.test(given.format("here"))
    project.run("--askance-update").assert_outcomes(passed=1)
    assert str(project.path) not in (project.path / "kept" / "base.json").read_text(encoding="utf-8")
    project.test(given.format("there"))
    project.run().assert_outcomes(passed=1)
    project.test(given.format("other"))
    project.run().stdout.fnmatch_lines(["*the settings changed since the baseline was made*"])


ABSOLUTE = """
def test_answers(askance_check):
    found = askance_check(data="answers.jsonl", checklist="checklist.yaml", model="openai/judge", api_base={url!r},
                          no_cache=True, retries=0, explain="never"{more})
    print(found.message)
"""


@pytest.mark.parametrize(
    ("more", "passes", "said"),
    [
        (
            ", pass_threshold=0.8, fail_under=0.7",
            True,
            "The pass rate is 0.750 on 12 examples, not below fail_under 0.7.",
        ),
        (", pass_threshold=0.8, fail_under=0.8", False, "The pass rate is 0.750 on 12 examples, below fail_under 0.8."),
        (", fail_under=0.85", False, "The mean score is 0.800 on 12 examples, below fail_under 0.85."),
        (", pass_threshold=0.8", False, "baseline (or fail_under) must be given"),
        (", fail_under=0.5, dimension='tone'", False, "leave out dimension"),
        (", fail_under=85", False, "fail_under: "),
    ],
)
def test_an_absolute_threshold_needs_no_baseline(project: Project, more: str, passes: bool, said: str) -> None:
    project.answers(["right answer"] * 9 + ["nonsense"] * 3)
    project.pytester.makepyfile(test_it=ABSOLUTE.format(url=project.url, more=more))
    result = project.run("-rA")
    result.assert_outcomes(passed=int(passes), failed=int(not passes))
    result.stdout.fnmatch_lines([f"*{said}*"])


def test_rows_without_an_output_do_not_let_an_absolute_threshold_pass(project: Project) -> None:
    project.answers(["right answer"] * 9)
    path = project.path / "answers.jsonl"
    empty = [json.dumps({"id": f"b{number}", "input": "Q", "output": None}) + "\n" for number in range(3)]
    path.write_text(path.read_text(encoding="utf-8") + "".join(empty), encoding="utf-8")
    project.pytester.makepyfile(test_it=ABSOLUTE.format(url=project.url, more=", fail_under=0.5"))
    result = project.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*3 of 12 rows have no output*"])
    allowed = ", fail_under=0.5, min_coverage=0.7"
    project.pytester.makepyfile(test_it=ABSOLUTE.format(url=project.url, more=allowed))
    project.run().assert_outcomes(passed=1)


def test_a_missing_verdict_does_not_let_an_absolute_threshold_pass(project: Project) -> None:
    project.answers(["right answer"] * 9 + ["silence"])
    more = ", pass_threshold=0.8, fail_under=0.95, min_coverage=0.5"
    project.pytester.makepyfile(test_it=ABSOLUTE.format(url=project.url, more=more))
    result = project.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*1 of 10 have no score*"])
