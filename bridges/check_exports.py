"""Exports of checks and requirements: a migration's checks, which code decides, and its questions.

A check is exported as askance's own code, or as a promptfoo assertion that decides the same.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from pprint import pformat
from types import ModuleType
from typing import Any

import yaml

from ..agents import decided
from ..agents.decided import DECIDED
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
from ..models.replies import json_object
from ..prompts import formatting, text
from ..prompts.checklist import Checklist, ComputedCheck, load_checklist
from ..prompts.criteria import kinds, patterns
from ..prompts.criteria.kinds import OF_SCHEMAS
from ..prompts.criteria.patterns import LengthBand
from ..prompts.errors import InputError
from ..prompts.prompt import prompt_showing
from . import exported_checks, exported_tests


def inlined(source: str, module: ModuleType, code: str | None = None) -> str:
    """Replace the import of a module in a file's text by the module's code, so that the file runs askance's own lines.

    ``code`` is used instead of the module's own text.
    """
    name = module.__name__.partition(".")[2]
    code = inspect.getsource(module) if code is None else code
    code = code.partition("from __future__ import annotations\n")[2].strip()
    code = re.sub(r"^from \.[\w.]* import (?:\([^)]*\)|.*)\n", "", code, flags=re.MULTILINE)
    imported = rf"^from \.\.{re.escape(name)} import (?:\([^)]*\)|.*)\n"
    return re.sub(imported, lambda _: f"{code}\n\n", source, flags=re.MULTILINE)


def code_of_checks(checks: Sequence[ComputedCheck], *, alone: bool = True) -> str:
    """Return the text of a file that decides checks, with the askance functions it needs. ``alone`` is False if the
    file also has a judge, which brings the code that reads JSON."""
    helpers = (text.sentences, text.shorten, formatting.count, kinds.schema_errors, kinds._validator)
    needed = "\n\n".join(inspect.getsource(helper) for helper in helpers)
    constants = f"_SENTENCE = re.compile({text._SENTENCE.pattern!r})\nMOST_ERRORS = {kinds.MOST_ERRORS}\n"
    deciding = inlined(inspect.getsource(decided), patterns)
    if alone and any(check.kind == "fields" for check in checks):
        deciding = inlined(deciding, json_object)
    deciding += f"\n\nfrom functools import lru_cache\n\n{constants}\n\n{needed}"
    source = inlined(inspect.getsource(exported_checks), decided, deciding)
    source = re.sub(r"^from \.\..*\n", "", source, flags=re.MULTILINE)  # inlined above
    names = ("id", "text", "good", "weight", "dimension", "kind", "value")
    return with_literal(source, "CHECKS", [{name: getattr(check, name) for name in names} for check in checks])


def with_literal(source: str, name: str, value: Any) -> str:
    """Replace the empty value of a constant in a file's text by ``value``."""
    plain = isinstance(value, str) and "\\" not in value and '"""' not in value and value.endswith("\n")
    said = f'"""\\\n{value}"""' if plain else pformat(value, width=110, sort_dicts=False)
    if isinstance(value, dict) and all(isinstance(each, float) for each in value.values()):  # for people to change
        said = "{\n" + "".join(f"    {json.dumps(key)}: {each},\n" for key, each in value.items()) + "}"
    made, times = re.subn(rf"^({name}: [^=\n]*= ).*$", lambda match: match[1] + said, source, flags=re.MULTILINE)
    assert times == 1, f"{name} stands once in the file"
    return made


def needs_of(checks: Sequence[ComputedCheck]) -> list[str]:
    """Return sentences on the packages and files that a file with checks needs."""
    schemas = [check.id for check in checks if check.kind in OF_SCHEMAS]
    sentences = [f"The file needs the package jsonschema, for {', '.join(schemas)}."] if schemas else []
    if elsewhere := [f"{check.id} ({check.kind})" for check in checks if check.kind not in DECIDED]:
        sentences.append(
            f"askance itself decides {', '.join(elsewhere)}, and must be installed where the file is used; the rest of "
            "the file needs no askance."
        )
    if files := sorted({str(check.value).rpartition(":")[0] for check in checks if check.kind == "checker"}):
        sentences.append(f"Functions are looked for beside the file: {', '.join(files)}.")
    return sentences


# --- promptfoo -------------------------------------------------------------------------------------------------------


_BLANK = r"\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
"""Characters that Python counts as blank."""
_SAID = '(typeof output === "string" ? output : JSON.stringify(output))'
_STRIPPED = f"{_SAID}.replace(/^[{_BLANK}]+|[{_BLANK}]+$/g, '')"
_COUNTED = {
    "character": f"[...{_STRIPPED}].length",
    "line": f"{_SAID}.split(/\\r\\n|[\\n-\\r\\x1c-\\x1e\\x85\\u2028\\u2029]/).filter(x => /[^{_BLANK}]/.test(x)).length",
    "paragraph": f"{_STRIPPED}.split(/\\n[{_BLANK}]*\\n/).filter(x => /[^{_BLANK}]/.test(x)).length",
}
"""Counts of units of length, in JavaScript. Words and sentences are missing: the languages count them differently."""
_LITERAL = r"[A-Za-z0-9 _\-,:;!\"'<>=@%&~/`#]|\\[!-/:-@\[-`{-~]"
_PLAIN = re.compile(rf"(?:{_LITERAL}|[^\x00-\x7f])+")
"""A pattern that matches one fixed text."""
_COMMON = re.compile(
    rf"(?!.*(?:\(\?[^:]|[*+?}}]\+))(?:{_LITERAL}|\[[\w .,:;]+(?:-[\w .,:;]+)*\]|\(\?:|[()|*+?]|\{{\d+(?:,\d*)?\}})+",
    re.A,
)
"""A pattern that means the same in Python and JavaScript."""
_KEYWORDS = {
    *("type", "properties", "required", "additionalProperties", "items", "minItems", "maxItems"),
    *("minLength", "maxLength", "enum", "const", "minimum", "maximum", "anyOf", "title", "description"),
}
"""Schema keywords that mean the same in promptfoo's validator and in ours."""
_INHERITED = {"constructor", "toString", "valueOf", "hasOwnProperty", "isPrototypeOf", "__proto__", "toLocaleString"}
"""Names of properties that every object has in JavaScript."""


def own_assertion(check: ComputedCheck) -> dict[str, Any] | None:
    """Return a promptfoo assertion that decides like the check on every output, or None."""
    value, negation = check.value or "", "not-" if check.is_fault else ""
    made: dict[str, Any] | None = None
    if check.kind == "json":
        made = {"type": f"{negation}is-json"}
    elif check.kind == "schema" and _is_alike(schema := json.loads(value)):
        made = {"type": f"{negation}is-json", "value": schema}
    elif check.kind == "matches" and _PLAIN.fullmatch(value):
        made = {"type": f"{negation}contains", "value": re.sub(r"\\(.)", r"\1", value)}
    elif check.kind == "matches" and _COMMON.fullmatch(value):
        made = {"type": f"{negation}regex", "value": value}
    elif check.kind in ("begins", "ends"):
        said = f"{_STRIPPED}.{'startsWith' if check.kind == 'begins' else 'endsWith'}({json.dumps(value.strip())})"
        made = _script(said, good=not negation)
    elif check.kind == "length" and (band := LengthBand.of(value)).unit in _COUNTED:
        most = "" if band.most is None else f" && n <= {band.most}"
        made = _script(f"(n => n >= {band.least}{most})({_COUNTED[band.unit]})", good=not negation)
    whole = json.dumps(made, ensure_ascii=False)
    is_template = any(mark in whole for mark in ("{{", "{%", "{#", "file://", "package:"))
    return None if is_template else made  # promptfoo would fill it in, or look for a file


def _script(said: str, *, good: bool) -> dict[str, Any]:
    return {"type": "javascript", "value": said if good else f"!({said})"}


def _is_alike(schema: Any) -> bool:
    """Whether a schema means the same in promptfoo's validator and in ours."""
    if not isinstance(schema, dict):
        return False
    properties = schema.get("properties", {})
    extras = schema.get("additionalProperties", False)
    parts = [*properties.values(), *schema.get("anyOf", ()), *([schema["items"]] if "items" in schema else [])]
    names = {*properties, *schema.get("required", ())}
    return (
        schema.keys() <= _KEYWORDS
        and not names & _INHERITED
        and (isinstance(extras, bool) or _is_alike(extras))
        and all(map(_is_alike, parts))
    )


MAX_LOSS = 0.05
"""Allowed drop in the share of outputs that keep a requirement, if there is no certificate."""


@dataclass(frozen=True)
class MigrationTests:
    """Requirements for outputs, with the judge that answers the questions among them."""

    judge: KeptJudge
    """Judge whose checklist has the requirements. In a migration an output passes if it keeps every requirement."""
    least: Mapping[str, float]
    """Least share of outputs that must keep each check: the old outputs' share less the allowed loss."""
    held_to: Mapping[str, Any]
    """Bounds of the questions' scores, as arguments of askance's pytest plug-in."""
    in_migration: bool = True
    """Whether each check is a test of its own; otherwise the checks are part of a judge's score."""


def migration_root(path: str | Path | KeptJudge) -> Path | None:
    """Return the root directory of a migration of a writing prompt; None if the path is no migration and no target."""
    if isinstance(path, KeptJudge):
        return None
    folder = Path(path).absolute()
    for each in (folder, *([folder.parent.parent] if folder.parent.name == TARGETS else [])):
        if (each / REQUIREMENTS_FILE).is_file():
            return each
    return None


def migration_tests(path: Path, root: Path) -> MigrationTests:
    """Return a migration's requirements whose weight is above 0, as tests. A target's directory is tested by that
    target's figures. Raises InputError if a file is missing or damaged, or if the questions have no judge."""
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
    """Return a judge's checklist as tests: every output keeps the checks, and the questions' scores do not drop."""
    least = dict.fromkeys((each.id for each in kept.checklist.checks if each.weight > 0), 1.0)
    return MigrationTests(kept, least, {"baseline": "baseline.json"}, in_migration=False)


def _shares(checklist: Checklist, certificate: CertificateRecord | None, target: str | None) -> dict[str, float]:
    """Return the share of old outputs that keep each requirement: on test, else on development, else 1."""
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
    """Return the migration's judge, with the requirements as its checklist."""
    criteria: dict[str, Any] = {"checklist": checklist, "threshold": 1.0}
    if not checklist.asked:
        return KeptJudge(model="code", prompt=prompt_showing(["input"]), settings={"scores": "hard"}, **criteria)
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
        return KeptJudge(model=model, prompt=prompt, named=named, settings=settings, **criteria)
    if certificate is None or certificate.judge is None:
        raise InputError(
            f"{root}: it has questions, and neither {CERTIFICATE_FILE} nor a config.yaml names their judge."
        )
    return KeptJudge(model=certificate.judge, prompt=prompt_showing(["input"]), settings={"scores": "hard"}, **criteria)


def pytest_file(tests: MigrationTests) -> str:
    """Return the text of a pytest file: one test for each check, and one for the questions, which askance asks."""
    checklist = tests.judge.checklist
    separator = "\n\ndef test_outputs_pass_the_questions"
    text, questions = re.sub(r"(?m)^from \.\..*\n\n", "", inspect.getsource(exported_tests)).split(separator)
    text = with_literal(text, "LEAST", dict(tests.least))
    if not checklist.checks:
        text = text.partition("\n\n@pytest.mark.parametrize")[0]
    if (asked := checklist.asked_alone) is not None:
        judge = replace(tests.judge, figures=None, origins={})
        if tests.in_migration:
            judge = replace(judge, checklist=asked, threshold=None)
        text = with_literal(text + separator + questions, "HELD_TO", dict(tests.held_to))
        text = with_literal(text, "QUESTIONS", judge.to_yaml())
    code = code_of_checks(checklist.checks).partition("from __future__ import annotations\n")[2].strip("\n")
    return f"{text}\n\n# {' How askance decides a check ':-^116}\n\n{code}\n" if checklist.checks else text


def promptfoo_file(tests: MigrationTests, beside: str) -> tuple[str, bool]:
    """Return a promptfoo default test with its assertions, and whether some call functions of the file ``beside``."""
    rows: list[dict[str, Any]] = []
    for check in tests.judge.checklist.checks:
        called = {"type": "python", "value": f"file://{beside}:get_check", "config": {"check": check.id}}
        rows.append({**(own_assertion(check) or called), "metric": check.id})
    if tests.judge.checklist.asked:
        rows.append({"type": "python", "value": f"file://{beside}", "metric": "questions"})
    text = yaml.safe_dump({"assert": rows}, sort_keys=False, allow_unicode=True, width=100)
    head = "# Requirements as assertions of promptfoo. In promptfooconfig.yaml: defaultTest: file://THIS_FILE\n"
    return head + text, any(row["type"] == "python" for row in rows)
