"""The requirements of a migration as tests of other tools: what is read from its directory, and what the tests say."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import yaml

import askance
from askance.bridges.exports import ExportedJudge, export_judge
from askance.memory.certificate_file import CertificateRecord, RequirementRates, ShareRecord, SidesRecord, TargetRecord
from askance.memory.run_directory import RunDirectory
from askance.prompts.checklist import Checklist, ComputedCheck, Question, dump_checklist
from askance.prompts.errors import InputError
from askance.prompts.examples import Example
from askance.prompts.prompt import Prompt
from askance.testing import StandInServer
from tests.doubles import WritersJudge, WritersWorld
from tests.said import naming, says

from .conftest import kept

pytest_plugins = ["pytester"]

REQUIREMENTS = Checklist(
    task="Write.",
    questions=(
        Question(id="polite", text="Is it polite?", origin="clause", support=0.9),
        Question(id="shown", text="Is it only shown?", weight=0.0),
        ComputedCheck(id="valid", kind="json", support=1.0),
        ComputedCheck(id="short", kind="length", value="at most 8 words", support=0.97),
        ComputedCheck(id="web", kind="matches", value="https?://", good="no"),
        ComputedCheck(id="rare", kind="begins", value="Dear", weight=0.0, support=0.4),
    ),
)


def target(old: Mapping[str, float]) -> TargetRecord:
    share = ShareRecord(value=0.9)
    rates = tuple(RequirementRates(requirement=name, old=each, after=each, n=9) for name, each in old.items())
    return TargetRecord(
        model="openai/new",
        decision="adopt",
        reason="It is as good.",
        prompt="prompt.md",
        pass_rate=SidesRecord(old=share, after=share),
        difference=share,
        by_requirement=rates,
    )


def migration(
    folder: Path, requirements: Checklist = REQUIREMENTS, certificate: CertificateRecord | None = None
) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "requirements.yaml").write_text(dump_checklist(requirements), encoding="utf-8")
    if certificate is not None:
        certificate.save(folder)
    return folder


def certified(**targets: Mapping[str, float]) -> CertificateRecord:
    records = {name.replace("__", "/"): target(old) for name, old in targets.items()}
    return CertificateRecord(
        kind="generator", source="recorded", max_loss=0.1, level=0.05, judge="openai/judge", targets=records
    )


def as_module(made: ExportedJudge, text: str | None = None) -> Any:
    module = ModuleType("exported")
    module.__file__ = "exported.py"
    exec(compile(made.text if text is None else text, made.name, "exec"), module.__dict__)
    return module


def least_of(made: ExportedJudge) -> dict[str, float]:
    found: dict[str, float] = as_module(made).LEAST
    return found


def test_a_check_is_kept_by_the_old_outputs_share_less_what_may_be_lost(tmp_path: Path) -> None:
    """On test where there is a certificate, else on development; what does not count is no test."""
    assert least_of(export_judge(migration(tmp_path / "a", certificate=certified()), "pytest")) == {
        "valid": 0.9,
        "short": 0.87,
        "web": 0.9,
    }
    both = certified(new={"valid": 0.98, "short": 0.05, "gone": 1.0}, x__other={"valid": 0.8})
    root = migration(tmp_path / "b", certificate=both)
    assert least_of(export_judge(root, "pytest")) == {"valid": 0.88, "short": 0.0, "web": 0.9}
    (root / "targets" / "x__other").mkdir(parents=True)
    assert least_of(export_judge(root / "targets" / "x__other", "pytest")) == {"valid": 0.7, "short": 0.87, "web": 0.9}
    without = Checklist(questions=REQUIREMENTS.checks)
    assert least_of(export_judge(migration(tmp_path / "c", without), "pytest"))["valid"] == 0.95


def test_the_judge_is_the_one_that_the_migration_asked(tmp_path: Path) -> None:
    root = migration(tmp_path / "m", certificate=certified())
    assert "'model': 'judge'" in export_judge(root, "python").text
    run = RunDirectory(root / "targets" / "new")
    prompt = Prompt("Judge {output}, strictly. {question}")
    config = {"command": "tune", "judge": "mine", "models": {"mine": {"model": "openai/other"}}, "mode": "auto"}
    examples = [Example(id="1", input="x", output="y")]
    run.open(config, examples, REQUIREMENTS, {"judge_prompt": prompt, "prompt": Prompt("Write.")})
    judge = as_module(export_judge(root, "python")).JUDGE
    assert judge["model"] == "other" and judge["prompts"]["all"]["messages"] == [("user", prompt.text)]
    assert [each["id"] for each in judge["questions"]] == ["polite"] and judge["soft"] is False


def test_questions_without_a_judge_are_refused_and_a_contract_needs_none(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=naming("certificate.json", "config.yaml", "judge")):
        export_judge(migration(tmp_path / "a"), "python")
    made = export_judge(migration(tmp_path / "b", Checklist(questions=REQUIREMENTS.checks)), "deepeval")
    assert "urllib" not in made.text, "nothing in it asks a model"


def test_a_directory_without_requirements_is_a_run_of_a_judge_as_before(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=naming("judge", "directory")):
        export_judge(tmp_path, "pytest")


# --- promptfoo -------------------------------------------------------------------------------------------------------


def test_promptfoo_gets_an_assertion_for_each_check_and_one_for_the_questions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = export_judge(migration(tmp_path / "m", certificate=certified()), "promptfoo")
    rows = {each["metric"]: each for each in yaml.safe_load(made.text)["assert"]}
    assert {name: each["type"] for name, each in rows.items()} == {
        "valid": "is-json",
        "short": "python",
        "web": "not-regex",
        "questions": "python",
    }
    ((name, text),) = made.beside.items()
    assert rows["short"]["value"] == f"file://{name}:get_check" and rows["questions"]["value"] == f"file://{name}"
    module = as_module(made, text)
    context = {"vars": {"input": "x"}, "config": rows["short"]["config"]}
    assert module.get_check("one two", context) == {
        "pass": True,
        "score": 1.0,
        "reason": "Is the output at most 8 words long?",
    }
    failed = module.get_check("a " * 9, context)
    assert failed["pass"] is False and says(failed["reason"], "9 words")
    assert module.get_check({"a": "ö"}, {"config": {"check": "valid"}})["pass"], "promptfoo has read it already"
    monkeypatch.setattr(module, "_post", lambda body: {"choices": [{"message": {"content": "Yes"}}]})
    assert module.get_assert("not JSON", {"vars": {"input": "x"}})["pass"], "the checks are assertions of their own"


def test_a_contract_that_promptfoo_decides_alone_needs_no_file_beside_it(tmp_path: Path, cli: Any) -> None:
    simple = Checklist(questions=[each for each in REQUIREMENTS.checks if each.id in ("valid", "web")])
    root = migration(tmp_path / "m", simple)
    assert export_judge(root, "promptfoo").beside == {}
    done = cli("export", str(root), "--to", "promptfoo")
    assert done.code == 0 and len(yaml.safe_load(done.out)["assert"]) == 2


def test_the_command_writes_the_file_that_promptfoo_calls_beside_the_other(tmp_path: Path, cli: Any) -> None:
    root = migration(tmp_path / "m", certificate=certified())
    done = cli("export", str(root), "--to", "promptfoo", "-o", str(tmp_path / "out" / "contract.yaml"))
    assert done.code == 0, done.err
    files = sorted(each.name for each in (tmp_path / "out").iterdir())
    assert files == ["contract.yaml", "promptfoo_requirements.py"] and says(done.err, "file://contract.yaml")
    refused = cli("export", str(root), "--to", "promptfoo")
    assert refused.code == 2 and says(refused.err, "-o", "promptfoo_requirements.py")
    said = json.loads(cli("export", str(root), "--to", "promptfoo", "--json").out)
    assert list(said["beside"]) == ["promptfoo_requirements.py"]


# --- Inspect and DeepEval ----------------------------------------------------------------------------------------------


def stub(monkeypatch: pytest.MonkeyPatch, name: str, **parts: Any) -> None:
    """A module of a tool that need not be installed."""
    package, _, last = name.partition(".")
    inner = ModuleType(name)
    vars(inner).update(parts)
    outer = ModuleType(package)
    setattr(outer, last, inner)
    monkeypatch.setitem(sys.modules, package, outer)
    monkeypatch.setitem(sys.modules, name, inner)


def test_deepeval_gets_a_metric_for_each_check_and_one_for_the_questions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub(monkeypatch, "deepeval.metrics", BaseMetric=object)
    module = as_module(export_judge(migration(tmp_path / "m", certificate=certified()), "deepeval"))
    *checks, judge = module.REQUIREMENTS
    case = SimpleNamespace(input="x", actual_output="a " * 9, context=None, retrieval_context=["b"], expected_output="")
    assert {each.__name__: each.measure(case) for each in checks} == {"valid": 0.0, "short": 0.0, "web": 1.0}
    assert [each.is_successful() for each in checks] == [False, False, True]
    assert says(checks[1].reason, "9 words") and says(checks[2].reason, "https?://")
    monkeypatch.setattr(module, "_post", lambda body: {"choices": [{"message": {"content": "Yes"}}]})
    assert judge.measure(case) == 1.0 and judge.is_successful()
    case.actual_output = None
    with pytest.raises(module.JudgeError, match=naming("no output")):
        checks[0].measure(case)


def test_inspect_gets_a_scorer_with_a_value_for_each_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stub(
        monkeypatch,
        "inspect_ai.scorer",
        Score=SimpleNamespace,
        mean=lambda: "mean",
        stderr=lambda: "stderr",
        scorer=lambda metrics: lambda made: made,
    )
    contract = Checklist(questions=REQUIREMENTS.checks)
    module = as_module(export_judge(migration(tmp_path / "m", contract), "inspect"))
    score = module.askance_checks()
    output = SimpleNamespace(choices=["x"], completion="see http://x.test")
    state = SimpleNamespace(output=output, input_text="x", messages=[])
    found = asyncio.run(score(state, SimpleNamespace(text="")))
    assert found.value == {"valid": 0.0, "short": 1.0, "web": 0.0} and says(found.explanation, "web: it holds", "valid")
    with pytest.raises(module.JudgeError, match=naming("no output")):
        asyncio.run(score(SimpleNamespace(output=SimpleNamespace(choices=[], completion="")), None))


# --- pytest ----------------------------------------------------------------------------------------------------------


def rows(*outputs: Any) -> str:
    return "".join(json.dumps({"id": f"r{n}", "input": "x", "output": each}) + "\n" for n, each in enumerate(outputs))


def ran(pytester: pytest.Pytester, made: ExportedJudge, outputs: str | None, *more: str) -> tuple[dict[str, int], str]:
    pytester.makepyfile(**{Path(made.name).stem: made.text})
    if outputs is not None:
        (pytester.path / "outputs.jsonl").write_text(outputs, encoding="utf-8")
    done = pytester.runpytest_subprocess("-q", "-p", "no:cacheprovider", *more)
    return done.parseoutcomes(), str(done.stdout)


GOOD, LONG, BAD = '{"t": "a"}', '"a b c d e f g h i"', "see http://x.test"


def test_outputs_pass_where_as_many_keep_a_check_as_should(pytester: pytest.Pytester, tmp_path: Path) -> None:
    contract = Checklist(questions=REQUIREMENTS.checks)
    made = export_judge(migration(tmp_path / "m", contract, certified(new={"short": 0.85})), "pytest")
    assert made.notices == ()
    found, _ = ran(pytester, made, rows(*[GOOD] * 9, *[LONG] * 3))
    assert found == {"passed": 3}
    found, said = ran(pytester, made, rows(*[GOOD] * 4, LONG, LONG, BAD))
    assert found == {"failed": 3}
    for each in ("71.4% of 7 outputs", "75.0%", "r4: it has 9 words", "r5: it has 9 words", "r6: it is no valid JSON"):
        assert each in said
    assert "(yes = fault) 85.7% of 7 outputs" in said and "r6: it holds" in said
    assert "r0: " not in said and "r1: " not in said


@pytest.mark.parametrize(
    ("outputs", "said"),
    [
        (None, "There is no file"),
        ("", "has no rows"),
        (rows("{}", None), "line 2: there is no output"),
        ("{}\n\nnot JSON\n", "line 1: no row with an output"),
        ('{"output": "1"}\n[1]\n', "line 2: no row with an output"),
    ],
)
def test_outputs_that_are_not_there_fail_every_test(
    outputs: str | None, said: str, pytester: pytest.Pytester, tmp_path: Path
) -> None:
    made = export_judge(migration(tmp_path / "m", Checklist(questions=REQUIREMENTS.checks)), "pytest")
    found, told = ran(pytester, made, outputs)
    assert found == {"failed": 3} and said in told


@pytest.mark.parametrize("polite", [1.0, 0.6])
def test_the_questions_are_asked_by_askance_and_held_to_the_old_outputs_figure(
    polite: float, pytester: pytest.Pytester, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = export_judge(migration(tmp_path / "m", certificate=certified(new={"polite": 0.9})), "pytest")
    outputs = [f'{{"polite": {n / 10 < polite}}}'.lower() for n in range(10)]
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with StandInServer(lambda body: "Yes" if '"polite": true' in str(body["messages"]) else "No") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        found, said = ran(pytester, made, rows(*outputs))
        assert server.bodies and all("Is it polite?" in str(each) for each in server.bodies)
    assert found == ({"passed": 4} if polite == 1.0 else {"passed": 3, "failed": 1})
    assert polite == 1.0 or says(said, "0.600", "0.8")


@pytest.fixture(scope="module")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a migration to a model that writes as well as the old one, and to one that does not."""
    world, run = WritersWorld(size=120, judge_wrong=0), tmp_path_factory.mktemp("migrated") / "run"
    how: dict[str, Any] = {"max_iterations": 1, "split": (0.25, 0.25, 0.5), "explain": "never", "max_loss": 0.15}
    askance.migrate(
        world.rows,
        prompt=world.prompt,
        source="recorded",
        target=[world.writer("equal"), world.writer("worse")],
        judge=WritersJudge(world),
        requirements=world.checklist,
        run=run,
        **how,
    )
    return run


@pytest.mark.parametrize(("target", "passes"), [("equal", True), ("worse", False)])
def test_the_contract_of_a_whole_migration_is_kept_by_the_target_that_is_as_good(
    target: str, passes: bool, migrated: Path, pytester: pytest.Pytester
) -> None:
    folder = migrated / "targets" / f"simulated__{target}"
    made = export_judge(folder, "pytest")
    outputs = (folder / "outputs.jsonl").read_text(encoding="utf-8")
    found, said = ran(pytester, made, outputs, "-k", "keep")
    assert ("failed" not in found and found["passed"] > 3) is passes, said
    assert all(export_judge(migrated, to).text for to in ("python", "promptfoo", "inspect", "deepeval", "mlflow"))


def test_a_judge_s_checks_are_kept_by_every_output(pytester: pytest.Pytester, tmp_path: Path) -> None:
    made = export_judge(kept(checks=[ComputedCheck(id="words", kind="length", value="at most 2 words")]), "pytest")
    assert least_of(made) == {"words": 1.0}
    module = as_module(made)
    assert module.HELD_TO == {"baseline": "baseline.json"} and "kind: length" in module.QUESTIONS
    found, _ = ran(pytester, made, rows("a b", "a", "a b c"), "-k", "keep")
    assert found == {"failed": 1, "deselected": 1}
