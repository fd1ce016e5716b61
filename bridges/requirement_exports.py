"""Requirements of a migration as tests of another tool: its contract, which code decides, and its questions."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from ..evaluation.kept_judge import SETTINGS, KeptJudge
from ..memory.certificate_file import (
    CERTIFICATE_FILE,
    REQUIREMENTS_FILE,
    TARGETS,
    CertificateRecord,
    read_certificate,
    target_folder,
)
from ..memory.run_directory import RunDirectory
from ..models.named import read_named
from ..prompts.checklist import Checklist, load_checklist
from ..prompts.errors import InputError
from ..prompts.prompt import prompt_showing
from . import exported_tests
from .check_exports import asked_of, code_of_checks, own_assertion, with_literal

MAX_LOSS = 0.05
"""Share that a new output may lose, where no certificate says it."""


@dataclass(frozen=True)
class MigrationTests:
    """The requirements that outputs are held to, with the judge that answers the questions among them."""

    judge: KeptJudge
    """Its checklist has the requirements. In a migration an output passes that keeps every one."""
    least: Mapping[str, float]
    """Share of the outputs that keeps a check, at least: the old outputs' share less what may be lost."""
    held_to: Mapping[str, Any]
    """Bounds of the questions' scores, as askance's plug-in of pytest takes them."""
    in_migration: bool = True
    """Whether each check is a test of its own; else they are part of a judge's score."""


def migration_root(path: str | Path | KeptJudge) -> Path | None:
    """The directory of the migration of a prompt that writes; None where this is none, nor one of its targets."""
    if isinstance(path, KeptJudge):
        return None
    folder = Path(path).absolute()
    for each in (folder, *([folder.parent.parent] if folder.parent.name == TARGETS else [])):
        if (each / REQUIREMENTS_FILE).is_file():
            return each
    return None


def migration_tests(path: Path, root: Path) -> MigrationTests:
    """The requirements of a migration that count, as tests. In a target's directory, that target's figures count.

    Raises:
        InputError: A file is missing or damaged, or there is no judge for the questions.
    """
    checklist = load_checklist(root / REQUIREMENTS_FILE, remarks=False)
    counted = [question for question in checklist.questions if question.weight > 0]
    checklist = checklist.model_copy(update={"questions": counted, "section_weights": {}})
    certificate = read_certificate(root) if (root / CERTIFICATE_FILE).is_file() else None
    kept = _shares(checklist, certificate, path.absolute().name if path.absolute() != root else None)
    lost = MAX_LOSS if certificate is None else certificate.max_loss
    least = {name: round(max(0.0, share - lost), 4) for name, share in kept.items()}
    asked = [least[question.id] for question in checklist.asked]
    judge = _judge(path, root, certificate, checklist)
    checks = {check.id: least[check.id] for check in checklist.checks}
    return MigrationTests(judge, checks, {"fail_under": round(sum(asked) / len(asked), 4)} if asked else {})


def judge_tests(kept: KeptJudge) -> MigrationTests:
    """A judge as tests: every output keeps its checks, and the scores of its questions do not drop."""
    least = dict.fromkeys((each.id for each in kept.checklist.checks if each.weight > 0), 1.0)
    return MigrationTests(kept, least, {"baseline": "baseline.json"}, in_migration=False)


def _shares(checklist: Checklist, certificate: CertificateRecord | None, target: str | None) -> dict[str, float]:
    """The share of old outputs that keeps each requirement: on test, else on development, else all of them."""
    shares = {question.id: 1.0 if question.support is None else question.support for question in checklist.questions}
    records = (
        {} if certificate is None else {target_folder(name): record for name, record in certificate.targets.items()}
    )
    for record in [records[target]] if target in records else list(records.values())[:1]:
        shares |= {
            rates.requirement: rates.old
            for rates in record.by_requirement
            if rates.old is not None and rates.requirement in shares
        }
    return shares


def _judge(path: Path, root: Path, certificate: CertificateRecord | None, checklist: Checklist) -> KeptJudge:
    """The judge that the migration asked, with the requirements as its checklist."""
    how: dict[str, Any] = {"checklist": checklist, "threshold": 1.0}
    if not checklist.asked:
        return KeptJudge(model="code", prompt=prompt_showing(["input"]), settings={"scores": "hard"}, **how)
    for folder in dict.fromkeys([path, *sorted((root / TARGETS).glob("*")), root]):
        run = RunDirectory(folder)
        config = run.read_config()["config"] if run.config_file.is_file() else {}
        model = config.get("judge")
        if not isinstance(model, str):
            continue
        prompt = run.read_inputs()[2].get("judge_prompt") or prompt_showing(["input"])
        settings = {name: config[name] for name in SETTINGS if name in config} | {"scores": "hard"}
        settings["mode"] = "each" if settings.get("mode") == "auto" else settings.get("mode", "each")
        try:
            named = read_named(config.get("models") or {}).get(model)
        except ValueError as error:
            raise InputError(f"{run.config_file}, models: {error}") from None
        return KeptJudge(model=model, prompt=prompt, named=named, settings=settings, **how)
    if certificate is None or certificate.judge is None:
        raise InputError(
            f"{root}: it has questions, and neither {CERTIFICATE_FILE} nor a config.yaml names their judge."
        )
    return KeptJudge(model=certificate.judge, prompt=prompt_showing(["input"]), settings={"scores": "hard"}, **how)


def pytest_file(tests: MigrationTests) -> str:
    """The file of tests: one for each check, and one for the questions, which askance asks."""
    checklist = tests.judge.checklist
    before = "\n\ndef test_outputs_pass_the_questions"
    text, questions = re.sub(r"(?m)^from \.\..*\n\n", "", inspect.getsource(exported_tests)).split(before)
    text = with_literal(text, "LEAST", dict(tests.least))
    if not checklist.checks:
        text = text.partition("\n\n@pytest.mark.parametrize")[0]
    if (asked := asked_of(checklist)) is not None:
        judge = replace(tests.judge, figures=None, origins={})
        if tests.in_migration:
            judge = replace(judge, checklist=asked, threshold=None)
        text = with_literal(text + before + questions, "HELD_TO", dict(tests.held_to))
        text = with_literal(text, "QUESTIONS", judge.to_yaml())
    code = code_of_checks(checklist.checks).partition("from __future__ import annotations\n")[2].strip("\n")
    return f"{text}\n\n# {' How askance decides a check ':-^116}\n\n{code}\n" if checklist.checks else text


def promptfoo_file(tests: MigrationTests, beside: str) -> tuple[str, bool]:
    """The assertions of a default test of promptfoo, and whether some call functions of the file ``beside``."""
    rows: list[dict[str, Any]] = []
    for check in tests.judge.checklist.checks:
        called = {"type": "python", "value": f"file://{beside}:get_check", "config": {"check": check.id}}
        rows.append({**(own_assertion(check) or called), "metric": check.id})
    if tests.judge.checklist.asked:
        rows.append({"type": "python", "value": f"file://{beside}", "metric": "questions"})
    text = yaml.safe_dump({"assert": rows}, sort_keys=False, allow_unicode=True, width=100)
    head = "# Requirements as assertions of promptfoo. In promptfooconfig.yaml: defaultTest: file://THIS_FILE\n"
    return head + text, any(row["type"] == "python" for row in rows)
