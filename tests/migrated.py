"""The directory of a finished migration, written by hand, so that a test knows every verdict and every output in it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from askance.memory.certificate_file import (
    CertificateDecision,
    CertificateRecord,
    KeptRequirement,
    PowerRecord,
    RequirementRates,
    ShareRecord,
    SidesRecord,
    TargetRecord,
    target_folder,
)
from askance.prompts.checklist import Checklist, Question, dump_checklist
from askance.prompts.verdicts import Verdict, dump_verdicts

REQUIREMENTS = (
    KeptRequirement(
        id="short", text="Is the summary at most 15 words?", origin="clause", support=0.9, clause="be brief"
    ),
    KeptRequirement(id="valid", text="Is the output valid JSON?", origin="contract", support=1.0, is_check=True),
    KeptRequirement(id="rare", text="Does it end with a full stop?", origin="contract", support=0.6, enforced=False),
)
LESSON = "Write one short sentence of your own."
START = "Write the facts of the article as JSON.\nBe brief."


def share(value: float | None, spread: float = 0.05, n: int = 40) -> ShareRecord:
    """A share with an interval of ``spread`` on both sides."""
    if value is None:
        return ShareRecord(value=None)
    return ShareRecord(value=value, low=value - spread, high=value + spread, n=n)


def sides(old: float, before: float | None, after: float, n: int = 40) -> SidesRecord:
    return SidesRecord(
        old=share(old, n=n), before=None if before is None else share(before, n=n), after=share(after, n=n)
    )


@dataclass(frozen=True)
class Written:
    """One test example."""

    id: str
    input: str
    old: str
    new: str
    passed: Mapping[str, tuple[bool, bool]]
    """By requirement: whether the old and the new output keep it."""
    why: str = ""
    """The judge's reason for a verdict against the new output."""


KEPT_ALL = {"short": (True, True), "valid": (True, True), "rare": (True, False)}
TESTS = (
    Written(
        "t1",
        "The bridge is shut.",
        "The bridge is shut.",
        "The bridge is open.",
        KEPT_ALL | {"short": (True, False)},
        "It says open.",
    ),
    Written(
        "t2", "The mill is old.", "The mill is old, so old.", "The mill is old.", KEPT_ALL | {"short": (False, True)}
    ),
    Written("t3", "Rents rose.", "Rents.", "Rent.", KEPT_ALL | {"valid": (False, False)}),
)


def counted(row: Written, requirements: Sequence[KeptRequirement]) -> list[tuple[bool, bool]]:
    """Whether the old and the new output keep each requirement that counts."""
    return [row.passed[each.id] for each in requirements if each.enforced and each.id in row.passed]


@dataclass(frozen=True)
class Target:
    """What is to be told of a target; what is not given is as of one that may be adopted."""

    name: str
    tests: Sequence[Written] = ()
    decision: CertificateDecision = "adopt"
    reason: str = "Adopt: it loses at most 0.05 (mean difference +0.010, between -0.020 and +0.040)."
    fields: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of its record."""
    has_run: bool = True
    line: str = LESSON
    """The accepted new line of its prompt; empty where nothing was accepted."""

    def record(self, requirements: Sequence[KeptRequirement]) -> TargetRecord:
        at = {
            name: [row.passed[name] for row in self.tests if name in row.passed]
            for name in (each.id for each in requirements)
        }
        rates = [
            RequirementRates(
                requirement=name,
                old=sum(old for old, _ in both) / len(both),
                before=0.5,
                after=sum(new for _, new in both) / len(both),
                n=len(both),
            )
            for name, both in at.items()
            if both
        ]
        row: dict[str, Any] = {
            "model": self.name,
            "decision": self.decision,
            "reason": self.reason,
            "prompt": f"targets/{target_folder(self.name)}/prompt.md",
            "pass_rate": sides(0.83, 0.66, 0.84),
            "contract": sides(0.9, 0.5, 0.95),
            "questions": sides(0.8, 0.7, 0.81),
            "difference": ShareRecord(value=0.01, low=-0.02, high=0.04, n=40),
            "by_requirement": rates,
            "regressions": [row.id for row in self.tests if (True, False) in counted(row, requirements)],
            "gains": [row.id for row in self.tests if (False, True) in counted(row, requirements)],
            "tokens_per_output": 240,
            "seconds_per_output": 1.4,
        }
        return TargetRecord.model_validate(row | dict(self.fields))


def write_migration(
    run: Path, targets: Sequence[Target], requirements: Sequence[KeptRequirement] = REQUIREMENTS, **fields: Any
) -> CertificateRecord:
    """Write the directory; ``fields`` are further ones of the certificate."""
    run.mkdir(parents=True, exist_ok=True)
    row = {
        "kind": "generator",
        "source": "recorded",
        "max_loss": 0.05,
        "level": 0.05,
        "judge": "vendor/judge",
        "requirements": requirements,
        "targets": {each.name: each.record(requirements) for each in targets},
        "power": [PowerRecord(examples=40, deviation=0.3, assumed=True, loss=0.12, needed=224)],
    }
    certificate = CertificateRecord.model_validate(row | fields)
    certificate.save(run)
    rows = {each.id: {"id": each.id, "input": each.input, "output": each.old} for one in targets for each in one.tests}
    _lines(run / "outputs.jsonl", rows.values())
    for each in targets:
        if each.has_run:
            _write_run(run / "targets" / target_folder(each.name), each, requirements)
    return certificate


def _write_run(folder: Path, target: Target, requirements: Sequence[KeptRequirement]) -> None:
    best = 2 if target.line else 0
    config = {"command": "tune", "generator": target.name, "judge": "vendor/judge"}
    header = {"format": 2, "fingerprint": "f" * 64, "config": config}
    _write(folder / "config.yaml", yaml.safe_dump(header))
    questions = [Question(id=each.id, text=each.text) for each in requirements]
    _write(folder / "inputs" / "checklist.yaml", dump_checklist(Checklist(task="Write.", questions=questions)))
    _lines(folder / "inputs" / "examples.jsonl", [{"id": each.id, "input": each.input} for each in target.tests])
    _write(folder / "inputs" / "prompt.md", START)
    _lines(folder / "journal.jsonl", [{"event": "finished", "best": best, "time": "2026-11-01T10:00:00+00:00"}])
    _write(folder / "report.html", "<!doctype html><title>the target's own</title>")
    for number, side in ((0, 0), (best, 1)):
        verdicts = [
            _verdict(row, name, row.passed[name][side], target.name) for row in target.tests for name in row.passed
        ]
        _write(folder / "verdicts" / f"{number:03d}-test.jsonl", dump_verdicts(verdicts))
    old = [_verdict(row, name, row.passed[name][0], "old") for row in target.tests for name in row.passed]
    _write(folder / "verdicts" / "old-test.jsonl", dump_verdicts(old))
    _lines(
        folder / "verdicts" / "outputs.jsonl",
        [{"version": best, "example": row.id, "output": row.new} for row in target.tests],
    )
    _write(folder / "result.json", json.dumps(_result(target, requirements[0].id)))


def _verdict(row: Written, name: str, passed: bool, model: str) -> Verdict:
    said = row.why if model != "old" and not passed else None
    return Verdict(row.id, name, "vendor/judge", "p", passed, float(passed), "logprob", said or None)


def _result(target: Target, requirement: str) -> dict[str, Any]:
    gain = {"value": 0.12, "low": 0.05, "high": 0.19, "p_value": 0.001, "n": 40}
    edit = {"old": "Be brief.", "new": f"Be brief.\n{target.line}", "lessons": ["l1"]}
    tried = (
        [{"edits": [edit], "reason": "the gain is beyond noise", "gain": gain, "iteration": 1}] if target.line else []
    )
    refused = {"edits": [edit | {"new": "Be brief. Never copy."}], "reason": "the gain may be noise", "iteration": 2}
    lesson = {
        "id": "l1",
        "text": LESSON,
        "direction": "stricter",
        "dimension": "overall",
        "evidence": [f"d{number:02d}/{requirement}" for number in range(9)],
        "requirement": requirement,
    }
    rates = {"before": 0.4, "after": 0.9, "n": 40, "gain": None}
    effect = {"lesson": "l1", "text": LESSON, "requirement": requirement, "asked": "Is it short?", "test": rates}
    return {
        "mode": "tune",
        "finish_reason": "max_iterations",
        "iterations": 2,
        "yardstick": "mean score",
        "baseline": {"prompt": START},
        "best": {"prompt": START + (f"\n{target.line}" if target.line else "")},
        "accepted_edits": tried,
        "rejected_edits": [refused | {"gain": gain | {"value": 0.01, "low": -0.06, "high": 0.08}}],
        "lessons": [lesson],
        "instructions": [effect] if target.line else [],
        "additions": [
            {
                "kind": "rules",
                "said": "the failed requirements after the input",
                "beside": ["schema"],
                "text": "At most 12 words.",
                "lines": [{"text": "At most 12 words.", "requirement": requirement, "failures": ["d01", "d02"]}],
                "before": 0.61,
                "after": 0.92,
                "n": 24,
                "reason": "better on development",
                "accepted": bool(target.line),
            },
            {"kind": "form", "said": "a form", "before": 0.92, "after": 0.9, "n": 24, "reason": "no better"},
        ],
        "calls": 900,
        "cached_calls": 30,
        "tokens": 250_000,
        "cost_usd": None,
        "coverage": 1.0,
    }


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def _lines(file: Path, rows: Any) -> None:
    _write(file, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
