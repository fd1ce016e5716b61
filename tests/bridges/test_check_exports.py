"""Checks in exported files decide as askance does, on odd outputs too; so do promptfoo's own assertions in their place."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from askance.agents.checks import compute
from askance.bridges.check_exports import code_of_checks, needs_of, own_assertion
from askance.bridges.exports import export_judge
from askance.evaluation.kept_judge import KeptJudge
from askance.prompts.checklist import Checklist, ComputedCheck
from askance.prompts.errors import InputError
from askance.prompts.examples import Example
from askance.prompts.prompt import Prompt
from tests.said import naming, says

from .conftest import as_module

SCHEMA = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "maxLength": 12},
        "kind": {"enum": ["news", "Größe", None]},
        "tags": {"type": "array", "items": {"type": "string", "minLength": 1}, "maxItems": 2},
        "n": {"type": ["integer", "null"], "minimum": 0},
    },
    "required": ["title"],
    "additionalProperties": False,
}
KINDS: list[tuple[str, Any]] = [
    ("json", None),
    ("schema", SCHEMA),
    ("fields", SCHEMA),
    ("begins", "Dear citizen,"),
    ("begins", '{"'),
    ("ends", "Yours,\nAnn "),
    ("ends", "\u201d"),
    ("matches", r"https?://|\bwww\."),
    ("matches", "https?://"),
    ("matches", r"\(c\)"),
    ("matches", "Größe"),
    ("matches", "(?:a|b){2,3}[c-e]+$"),
    ("matches", "(?:a|b){2,3}[c-e]"),
    ("matches", r"(?m)^\s*[-*•] "),
    ("length", "at most 3 words"),
    ("length", "2 to 3 sentences"),
    ("length", "at least 2 lines"),
    ("length", "exactly 2 paragraphs"),
    ("length", "3 to 5 characters"),
    ("length", "at most 1000000 characters"),
]
CHECKS = [
    ComputedCheck.model_validate({"id": f"c{n}{good}", "kind": kind, "value": value, "good": good})
    for n, (kind, value) in enumerate(KINDS)
    for good in ("yes", "no")
]
ODD = [
    *("", " ", "\n", "\t\r\n", "\x00", "\ufeff", "\u200b", "0", "-0", "null", "NaN", "-Infinity", "1e5", "'a'", "\\"),
    *("{}", "[]", "{]", "\ufeff{}", ' {"title": "a"} \n', '{"title": "a",}', '{"title": "a"} x', "```json\n{}\n```"),
    *('{"title": "a", "title": 1}', '{"title": "a", "n": 1.0}', '{"title": "a", "n": true}', '{"title": "a", "n": -1}'),
    *('{"title": "\\ud83d\\ude00\\ud83d\\ude00", "kind": "Gr\\u00f6\\u00dfe"}', '{"title": "a", "kind": null}'),
    *('{"title": "😀😀😀😀😀😀😀😀😀😀😀😀"}', '{"title": "0123456789abc"}', '{"title": "a", "tags": ["", "b"]}'),
    *('{"title": "a", "tags": ["a", "b", "c"]}', '{"title": "a\n"}', '{"title": "a", "toString": 1}', '[{"title": 1}]'),
    *("Dear citizen,", "\u2003Dear citizen, no", "\x1fDear citizen,", "\ufeffDear citizen,", "dear citizen,"),
    *("Yours,\nAnn", "Yours,\r\nAnn", "Yours,\nAnn\x85", "Yours,\nAnn\u2028", "“so”", "so”\x1c", "so”\u200b"),
    *(
        "see http://x",
        "HTTPS://x",
        "www.x",
        "awww.x",
        "(c)",
        "(C)",
        "©",
        "Größe",
        "Gro\u0308ße",
        'So:\n```json\n{"title": "a",}\n```',
        'x\n{"title": 1}\ny',
        "GRÖSSE",
    ),
    *("abc", "abc\n", "aac\nx", "abac", "xabex", "ab{c", "a\nb", "a\r\nb", "a\rb", "a\x0bb", "a\x0cb", "a\x1cb"),
    *(
        "a\x1fb",
        "a\x85b",
        "a\u2028b",
        "a\u2029b",
        "a\n\nb",
        "a\n \t\nb",
        "a\n\u3000\nb",
        "a\r\n\r\nb",
        "a\n\n\n\nb\n\nc",
    ),
    *(
        "one two three",
        "it's a co-op",
        "one, two; three. four",
        "日本語 です",
        "日本語です。はい。",
        "नमस्ते दुनिया",
        "e\u0301a",
    ),
    *(
        "👩‍👩‍👧‍👦",
        "😀😀😀",
        "🇩🇪x",
        "\u202eabc",
        "One. Two.",
        "One! Two? Three… Four.",
        "e.g. this",
        "¡Sí! ¿No?",
        "x" * 5,
    ),
    *(
        "- a",
        "  • b",
        "\u2028- a",
        "\r- a",
        "a - b",
        "²³ ½ Ⅻ",
        "a_b",
        "٣٤",
        "\u0391\u03a3",
        "\u00adx",
        "\u180e",
        "\x1c \x1d",
    ),
    "1" * 4301,
    '{"title": "a", "n": ' + "9" * 5000 + "}",
    "[" * 200_000 + "]" * 200_000,
    '{"title": "' + "x" * 1_000_000 + '"}',
    "word " * 200_000,
    "\n\n".join(["a."] * 50_000),
    " " * 300_000 + "abc" + "\n" * 2_000,
]
"""Outputs that are empty, no text that anybody writes, in other scripts, with odd line ends and blanks, or huge."""


def module_of(checks: Sequence[ComputedCheck], folder: Path | None = None) -> Any:
    module = ModuleType("exported")
    module.__file__ = str((folder or Path()) / "exported.py")
    exec(compile(code_of_checks(checks), "exported.py", "exec"), module.__dict__)
    return module


def ours(check: ComputedCheck, output: str) -> tuple[bool | None, str | None]:
    told = compute(check, Example(id="e", input="", output=output))
    return told.answer, told.explanation or told.error


@pytest.mark.parametrize("check", CHECKS, ids=lambda each: f"{each.kind}-{each.id}")
def test_an_exported_check_answers_and_explains_as_askance_does_on_odd_outputs(check: ComputedCheck) -> None:
    module, answers = module_of([check]), set()
    for output in ODD:
        there = module.check(check.id, output=output)
        answer, found = ours(check, output)
        assert (there["answer"], there["found"]) == (answer, found), repr(output[:80])
        assert there["for_the_output"] is check.is_good(answer) and there["p_yes"] == float(bool(answer))
        answers.add(answer)
    assert answers == {True, False}, "some have the property and some lack it"


def test_the_file_of_checks_needs_no_askance_but_where_it_says_so(tmp_path: Path) -> None:
    checks = [
        ComputedCheck(id="short", kind="length", value="at most 2 words"),
        ComputedCheck(id="schema", kind="schema", value='{"type": "string"}'),
        ComputedCheck(id="mine", kind="checker", value="rules_of_mine.py:rules"),
    ]
    (tmp_path / "exported.py").write_text(code_of_checks(checks), encoding="utf-8")
    script = (
        "import sys; sys.modules['askance'] = None; sys.path.insert(0, '.'); import exported\n"
        "print(exported.check('short', output='a b')['answer'], exported.check('schema', output='1')['answer'])\n"
        "exported.check('mine', output='x')\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.split() == ["True", "False"]
    assert says(done.stderr.splitlines()[-1], "'mine'", "checker", "pip install askance")
    told = needs_of(checks)
    assert (
        says(told[0], "jsonschema") and says(told[1], "mine (checker)", "askance") and says(told[2], "rules_of_mine.py")
    )
    assert needs_of(checks[:1]) == []


def test_a_package_that_is_missing_or_an_output_that_is_not_there_is_an_error_and_no_verdict(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = module_of([ComputedCheck(id="s", kind="schema", value="{}")])
    with pytest.raises(module.JudgeError, match=naming("no output")):
        module.check("s", output=None)
    with pytest.raises(module.JudgeError, match=naming("no check", "'t'")):
        module.check("t", output="x")
    monkeypatch.setitem(sys.modules, "jsonschema.validators", None)
    with pytest.raises(module.JudgeError, match=naming("jsonschema")):
        module.check("s", output="1")


def test_a_function_beside_the_exported_file_decides_with_the_other_texts(tmp_path: Path) -> None:
    (tmp_path / "rules_beside.py").write_text(
        "def fits(example):\n"
        "    if example.input == 'broken':\n"
        "        raise KeyError('x')\n"
        "    return example.input in example.output\n"
    )
    check = ComputedCheck(id="fits", kind="checker", value="rules_beside.py:fits")
    module = module_of([check], tmp_path)
    assert module.check("fits", output="ab", input="a")["answer"] is True
    assert module.check("fits", output="ab", input="c")["answer"] is False
    with pytest.raises(module.JudgeError, match=naming("'fits'", "no verdict", "line 3")):
        module.check("fits", output="ab", input="broken")
    with pytest.raises(module.JudgeError, match=naming("'fits'", "surrogate")):
        module.check("fits", output="\ud800")


def test_of_a_conversation_a_text_s_check_reads_the_last_reply_and_one_of_calls_the_calls() -> None:
    checks = [
        ComputedCheck(id="short", kind="length", value="at most 2 words"),
        ComputedCheck(id="tools", kind="tools", value="look"),
    ]
    call = {"id": "c", "function": {"name": "look", "arguments": "{}"}}
    talk = [
        {"role": "assistant", "content": "I look it up for you.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "Ada"},
        {"role": "assistant", "content": "It's Ada."},
    ]
    judge = KeptJudge("openai/judge", Prompt("Judge."), Checklist(questions=checks), threshold=1.0)
    found = as_module(judge).judge(output=talk, input="Who?")
    assert found["passed"] and found["score"] == 1.0
    talk[0]["tool_calls"] = [call | {"function": {"name": "send", "arguments": "{}"}}]
    found = as_module(judge).judge(output=talk, input="Who?")
    assert [each["answer"] for each in found["verdicts"]] == [True, False]
    with pytest.raises(InputError, match=naming("tools", "promptfoo", "reply")):
        export_judge(judge, "promptfoo")


def test_a_language_is_told_as_askance_tells_it() -> None:
    pytest.importorskip("py3langid")
    check = ComputedCheck(id="german", kind="language", value="de")
    module = module_of([check])
    for output in ("Guten Tag, wie geht es Ihnen heute?", "The quick brown fox jumps over the lazy dog."):
        assert module.check("german", output=output)["answer"] is ours(check, output)[0]
    with pytest.raises(module.JudgeError, match=naming("no verdict", "too short")):
        module.check("german", output="?")


# --- promptfoo -------------------------------------------------------------------------------------------------------

NODE = shutil.which("node")
OWN = [each for each in CHECKS if own_assertion(each) is not None]
IN_NODE = """
const [made, outputs] = JSON.parse(require('fs').readFileSync(0, 'utf8'));
const holds = {
  'is-json': output => { try { JSON.parse(output); return true } catch { return false } },
  contains: (output, value) => output.includes(value),
  regex: (output, value) => new RegExp(value).test(output),
  javascript: (output, value) => new Function('output', `return ${value}`)(output),
};
const decide = ({type, value}, output) =>
  type.startsWith('not-') ? !holds[type.slice(4)](output, value) : holds[type](output, value);
console.log(JSON.stringify(made.map(each => outputs.map(output => decide(each, output)))));
"""
"""What promptfoo's assertions do with a text, but for the schema, which its validator reads."""


def test_the_kinds_that_promptfoo_decides_alike_are_its_own_assertions() -> None:
    types = {each.id: (own_assertion(each) or {"type": None})["type"] for each in CHECKS}
    by_kind = {kind: {types[each.id] for each in CHECKS if each.kind == kind} for kind, _ in KINDS}
    assert by_kind["json"] == by_kind["schema"] == {"is-json", "not-is-json"}
    assert by_kind["fields"] == {None}
    assert by_kind["begins"] == by_kind["ends"] == {"javascript"}
    assert by_kind["matches"] == {"contains", "not-contains", "regex", "not-regex", None}
    assert by_kind["length"] == {"javascript", None}


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("matches", "a.b"),
        ("matches", r"\w+"),
        ("matches", "a$"),
        ("matches", "^a"),
        ("matches", "[^a]"),
        ("matches", "(?i)a"),
        ("matches", "a++"),
        ("matches", "(?P<x>a)"),
        ("matches", r"a\{\{b"),
        ("begins", "{{name}}"),
        ("ends", "{% if %}"),
        ("length", "2 words"),
        ("length", "2 sentences"),
        ("schema", {"type": "string", "pattern": "^a"}),
        ("schema", {"type": "string", "format": "date"}),
        ("schema", {"required": ["constructor"]}),
        ("schema", {"items": {"$ref": "#"}}),
        ("schema", {"enum": ["{{x}}"]}),
        ("schema", True),
        ("language", "de"),
        ("fields", {"type": "string"}),
        ("tools", "search"),
    ],
)
def test_what_promptfoo_might_decide_otherwise_is_left_to_the_exported_file(kind: str, value: Any) -> None:
    assert own_assertion(ComputedCheck.model_validate({"id": "c", "kind": kind, "value": value})) is None


@pytest.mark.skipif(NODE is None, reason="Node is not installed")
def test_promptfoo_s_own_assertions_decide_as_askance_does_on_odd_outputs() -> None:
    checks = [each for each in OWN if each.kind != "schema"]
    outputs = [each for each in ODD if not each.startswith("[[[")]  # which Node reads however deep it is
    given = json.dumps([[own_assertion(each) for each in checks], outputs])
    done = subprocess.run([str(NODE), "-e", IN_NODE], input=given, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for check, row in zip(checks, json.loads(done.stdout), strict=True):
        wrong = [
            output[:80]
            for output, passed in zip(outputs, row, strict=True)
            if passed is not check.is_good(ours(check, output)[0])
        ]
        assert not wrong, (check, wrong)
