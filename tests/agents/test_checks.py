"""Checks of a checklist: what each kind finds, and where they take part."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from askance.agents.checks import compute, computed_verdicts
from askance.agents.evaluator import Evaluator
from askance.agents.judging import Judging
from askance.models.gateway import Gateway
from askance.prompts.checklist import Checklist, ComputedCheck, Question, load_checklist
from askance.prompts.criteria import patterns
from askance.prompts.errors import InputError
from askance.prompts.examples import Example
from askance.prompts.prompt import Prompt
from askance.testing import ScriptedModel
from tests.said import says


def found(kind: str, output: str, value: str | None = None, **more: str) -> tuple[bool | None, str | None]:
    check = ComputedCheck.model_validate({"id": "c", "kind": kind, "value": value, **more})
    told = compute(check, Example(id="e", input="in", output=output))
    return told.answer, told.explanation or told.error


@pytest.mark.parametrize(
    ("kind", "value", "passes", "fails", "said"),
    [
        ("json", None, ' {"a": [1, null]}\n', '```json\n{"a": 1}\n```', "no valid JSON"),
        ("json", None, "0", '{"a": NaN}', "NaN is no number of JSON"),
        ("json", None, '"x"', '{"a": 1} and more', "Extra data"),
        ("begins", "Dear ", "\nDear Ann, …", "Hello, dear Ann", 'it begins with "Hello, dear Ann"'),
        ("ends", "Bye.", "Hi. Bye.\n", "Bye. Hi", 'it ends with "Bye. Hi"'),
        ("matches", "[0-9]{4}", "in 2024", "in 24", "found nowhere"),
        ("length", "at most 3 words", "It's a co-op", "one two three four", "it has 4 words"),
        ("length", "2 to 3 sentences", "One. Two.", "One.", "it has 1 sentence"),
        ("length", "exactly 2 lines", "a\n\nb\n", "a\nb\nc", "it has 3 lines"),
        ("length", "2 paragraphs", "a\nb\n\nc", "a\nb", "it has 1 paragraph"),
        ("length", "at least 5 characters", " 12345 ", " 1234  ", "it has 4 characters"),
    ],
)
def test_a_kind_passes_what_has_the_property_and_says_what_it_found_of_the_rest(
    kind: str, value: str | None, passes: str, fails: str, said: str
) -> None:
    assert found(kind, passes, value) == (True, None)
    answer, reason = found(kind, fails, value)
    assert answer is False and reason is not None and said in reason


def test_a_schema_names_the_places_that_do_not_follow_it() -> None:
    schema = json.dumps(
        {"type": "object", "properties": {"t": {"type": "string", "maxLength": 3}}, "required": ["t", "n"]}
    )
    assert found("schema", '{"t": "abc", "n": 1}', schema) == (True, None)
    answer, reason = found("schema", '{"t": "abcd"}', schema)
    assert answer is False and reason is not None and "$.t" in reason and "'n' is a required property" in reason
    assert found("schema", "no", schema)[0] is False


def test_a_check_that_looks_for_a_fault_says_so_only_where_it_is_there() -> None:
    assert found("matches", "see https://x.y", "https?://", good="no") == (True, 'it holds "https://"')
    assert found("matches", "see x.y", "https?://", good="no") == (False, None)


def test_a_pattern_that_runs_away_gives_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "PATIENCE", 0.5)
    check = ComputedCheck(id="c", kind="matches", value="(a+)+$")
    told = compute(check, Example(id="e", input="in", output="a" * 60 + "!"))
    assert told.answer is None and told.status == "api_error" and says(str(told.error), "(a+)+$", "0.5 seconds")


def test_an_output_too_short_to_tell_its_language_has_no_verdict() -> None:
    pytest.importorskip("py3langid")
    assert found("language", "Guten Tag, wie geht es Ihnen heute?", "de, fr") == (True, None)
    assert found("language", "The quick brown fox jumps over the lazy dog.", "de")[0] is False
    answer, error = found("language", "?", "de")
    assert answer is None and error is not None and "too short" in error


def test_an_unknown_language_is_refused_before_anything_is_checked() -> None:
    pytest.importorskip("py3langid")
    check = ComputedCheck(id="c", kind="language", value="german")
    with pytest.raises(InputError, match="'german' is not known"):
        computed_verdicts([check], [], "hash")


def test_a_function_of_the_checklists_folder_is_one_check_and_a_failure_of_it_no_answer(tmp_path: Path) -> None:
    (tmp_path / "mine_of_checks.py").write_text(
        "from askance import Check\n\n"
        "def rules(example):\n"
        "    if example.output == 'broken':\n"
        "        raise KeyError('x')\n"
        "    yield Check('short', len(example.output) < 4, 'too long')\n"
        "    yield Check('plain', '*' not in example.output, 'it has stars')\n"
    )
    (tmp_path / "c.yaml").write_text("checks:\n  - id: rules\n    kind: checker\n    value: mine_of_checks.py:rules\n")
    checks = load_checklist(tmp_path / "c.yaml").checks
    outputs = ["ok", "long*", "broken", None]
    examples = [Example(id=str(n), input="in", output=each) for n, each in enumerate(outputs)]
    ok, bad, broken, missing = computed_verdicts(checks, examples, "hash", {"3": "no reply"})
    assert (ok.answer, ok.p_yes_from, ok.model) == (True, "computed", None)
    assert bad.answer is False and bad.explanation == "too long; it has stars"
    assert broken.answer is None and broken.status == "api_error" and "line 5" in str(broken.error)
    assert missing.answer is None and missing.error == "not generated: no reply"


async def test_an_evaluator_asks_questions_alone_and_computes_the_checks_of_each_example() -> None:
    asked = []

    def reply(request: object) -> str:
        asked.append(request)
        return "Yes"

    checklist = Checklist(
        questions=(Question(id="q", text="Is it good?"),),
        checks=(ComputedCheck(id="short", kind="length", value="at most 2 words"),),
    )
    model = ScriptedModel(reply)
    how = Judging(p_yes="hard", repeat=2)
    evaluator = Evaluator(Gateway(), model, Prompt("Judge."), checklist, how)
    examples = [Example(id="a", input="in", output="one"), Example(id="b", input="in", output="one two three")]
    verdicts = await evaluator.judge(examples)
    assert [(each.example, each.question, each.replicate, each.answer) for each in verdicts] == [
        ("a", "q", 0, True),
        ("a", "q", 1, True),
        ("a", "short", 0, True),
        ("b", "q", 0, True),
        ("b", "q", 1, True),
        ("b", "short", 0, False),
    ]
    assert len(asked) == 4 and not any("2 words" in str(each) for each in asked)
    assert evaluator.estimate(examples).verdicts == 6


def test_a_checklist_finds_its_function_from_wherever_it_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "here")
    Path("rules_from_here.py").write_text("def rules(example):\n    return True\n")
    Path("c.yaml").write_text("checks: [{id: rules, kind: checker, value: 'rules_from_here.py:rules'}]")
    checks = load_checklist("c.yaml").checks
    monkeypatch.chdir(tmp_path / "there")
    (verdict,) = computed_verdicts(checks, [Example(id="a", input="in", output="out")], "hash")
    assert verdict.answer is True


def test_a_function_that_is_not_there_is_told_by_the_check_that_names_it() -> None:
    check = ComputedCheck(id="rules", kind="checker", value="nowhere.py:rules")
    with pytest.raises(InputError, match=r"'rules'.*nowhere\.py"):
        computed_verdicts([check], [], "hash")
