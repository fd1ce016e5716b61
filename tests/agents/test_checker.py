from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from askance.agents.checks import Check, Checker, load_checker, run_checker
from askance.agents.generator import Generated
from askance.prompts.errors import InputError, MissingExtraError
from askance.prompts.examples import Example
from askance.prompts.verdicts import Verdict
from tests.said import says


@pytest.fixture(autouse=True)
def _own_imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Run in an empty directory; what is imported from it is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        del sys.modules[name]


def write(name: str, text: str) -> Path:
    path = Path.cwd() / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def refusal(source: str) -> str:
    with pytest.raises(InputError) as caught:
        load_checker(source)
    return str(caught.value)


def run(function: Any, *outputs: str | None) -> list[Verdict]:
    generated = [
        Generated(Example(id=f"e{number}", input="in", output=output), None if output is not None else "no answer")
        for number, output in enumerate(outputs or ("out",))
    ]
    return run_checker(Checker("checks:good", function), generated, "abc")


def returned(value: Any) -> str:
    with pytest.raises(InputError) as caught:
        run(lambda _: value)
    return str(caught.value)


# --- finding it ---------------------------------------------------------------------------------------------------


def test_a_module_in_the_current_directory_is_found() -> None:
    write("mychecks_a.py", "def good(example):\n    return example.output == 'x'\n")
    checker = load_checker("mychecks_a:good")
    assert checker.name == "mychecks_a:good"
    assert checker.function(Example(id="a", input="", output="x")) is True


def test_a_module_in_a_package_and_a_name_inside_a_class_are_found() -> None:
    write("pkg_a/__init__.py", "")
    write("pkg_a/rules.py", "class Rules:\n    @staticmethod\n    def good(example):\n        return True\n")
    assert load_checker("pkg_a.rules:Rules.good").function(None) is True  # type: ignore[arg-type]


def test_a_file_is_found_with_its_neighbours_its_dataclasses_and_a_name_python_has_itself(tmp_path: Path) -> None:
    write("elsewhere/helper_a.py", "LIMIT = 3\n")
    text = (
        "from __future__ import annotations\nfrom dataclasses import dataclass\n\n@dataclass\nclass Rule:\n"
        "    most: int\n\ndef good(example):\n    import helper_a\n    return len(example.output) <= helper_a.LIMIT\n"
    )
    path = write("elsewhere/json.py", text)
    for source in ("elsewhere/json.py:good", f"{path}:good"):
        checker = load_checker(source)
        assert [checker.function(Example(id="a", input="", output=text)) for text in ("ab", "abcd")] == [True, False]
    assert "elsewhere" not in str(sys.modules["json"].__file__)


def test_a_function_or_a_checker_can_be_given_as_it_is() -> None:
    checker = load_checker(good)
    assert checker.name.endswith("test_checker:good")
    assert load_checker(checker) is checker


def good(example: Example) -> bool:
    return True


@pytest.mark.parametrize("source", ["checks", "checks:", ":good", "checks:not a name", ""])
def test_what_is_not_module_and_function_is_told_how_to_write_it(source: str) -> None:
    assert says(refusal(source), "module:function")


def test_a_missing_module_or_file_or_name_is_told_apart() -> None:
    assert "no module 'nowhere_a'" in refusal("nowhere_a:good")
    assert "no module 'nowhere_a'" in refusal("nowhere_a.deep:good")
    assert says(refusal("nowhere.py:good"), "no file", "nowhere.py")
    write("mychecks_b.py", "def good(example):\n    return True\n")
    message = refusal("mychecks_b:god")
    assert "nothing called 'god'" in message and "Did you mean 'good'?" in message


def test_a_module_that_cannot_be_imported_says_what_it_lacks_and_where() -> None:
    write("mychecks_c.py", "import absent_package_a\n")
    assert says(refusal("mychecks_c:good"), "absent_package_a", "not installed")
    write("mychecks_d.py", "\n\ndef good(example)\n")
    assert "SyntaxError" in (message := refusal("mychecks_d.py:good")) and "line 3" in message
    write("mychecks_e.py", "x = 1\ny = 1 / 0\n")
    assert "ZeroDivisionError: division by zero (line 2)" in refusal("mychecks_e:good")


def test_what_cannot_be_called_with_one_example_is_refused() -> None:
    write(
        "mychecks_f.py",
        "number = 3\ndef two(a, b):\n    return True\nasync def later(example):\n    return True\n"
        "def extra(example, strict=True):\n    return strict\n",
    )
    assert "type int, not a function" in refusal("mychecks_f:number")
    assert "missing a required argument: 'b'" in refusal("mychecks_f:two")
    assert "async" in refusal("mychecks_f:later")
    assert load_checker("mychecks_f:extra").name == "mychecks_f:extra"


# --- running it ---------------------------------------------------------------------------------------------------


def test_true_and_false_are_one_verdict_with_the_functions_name() -> None:
    assert run(lambda example: example.output == "a", "a", "b") == [
        Verdict("e0", "good", None, "abc", True, 1.0, "computed"),
        Verdict("e1", "good", None, "abc", False, 0.0, "computed"),
    ]


def test_several_checks_are_one_verdict_each_in_their_order() -> None:
    def checks(example: Example) -> Iterator[Check]:
        yield Check("short", True)
        yield Check("plain", False, "It has a list.")

    verdicts = run(checks, "a", "b")
    assert [(each.example, each.question, each.answer, each.p_yes, each.explanation) for each in verdicts] == [
        ("e0", "short", True, 1.0, None),
        ("e0", "plain", False, 0.0, "It has a list."),
        ("e1", "short", True, 1.0, None),
        ("e1", "plain", False, 0.0, "It has a list."),
    ]
    assert {each.status for each in verdicts} == {"ok"}
    assert run(lambda _: Check("one", True))[0].question == "one"


@pytest.mark.parametrize("late", [False, True])
def test_an_error_in_the_function_is_a_failure_with_its_line_and_never_a_score(late: bool) -> None:
    body = "    yield Check('a', True)\n" if late else ""
    write(
        "mychecks_g.py",
        f"from askance.agents.checks import Check\n\ndef good(example):\n{body}    help(example)\n",
    )
    with Path("mychecks_g.py").open("a", encoding="utf-8") as file:
        file.write("\ndef help(example):\n    {}[example.id]\n    return True\n")
    generated = [Generated(Example(id="e0", input="", output="x"))]
    [verdict] = run_checker(load_checker("mychecks_g:good"), generated, "abc")
    assert (verdict.answer, verdict.p_yes, verdict.p_yes_from, verdict.status) == (None, None, None, "api_error")
    assert verdict.error == f"KeyError: 'e0' (in mychecks_g:good, line {8 if late else 7})"
    assert verdict.question == "good"


def test_an_error_on_one_example_leaves_the_others_alone() -> None:
    verdicts = run(lambda example: 1 / len(example.output) > 0, "a", "", "c")
    assert [each.status for each in verdicts] == ["ok", "api_error", "ok"]


def test_a_check_that_would_end_the_process_has_failed_as_any_other() -> None:
    verdicts = run(lambda example: bool(example.output) or sys.exit(3), "a", "", "c")
    assert [each.status for each in verdicts] == ["ok", "api_error", "ok"]
    assert verdicts[1].error is not None and verdicts[1].error.startswith("SystemExit: 3")


def test_a_failed_generation_is_a_failure_with_its_reason_and_the_function_is_not_called() -> None:
    called: list[str] = []
    [verdict] = run(lambda example: called.append(example.id) or True, None)
    assert (verdict.status, verdict.answer, verdict.error) == ("api_error", None, "not generated: no answer")
    assert called == []


def test_our_own_errors_end_the_run() -> None:
    def checks(example: Example) -> bool:
        raise MissingExtraError("ifbench", "emoji")

    with pytest.raises(MissingExtraError):
        run(checks)


def test_the_function_cannot_change_the_examples() -> None:
    example = Example(id="a", input="", output="x", metadata={"kwargs": [{"n": 1}]})

    def checks(example: Example) -> bool:
        example.metadata["kwargs"][0].clear()
        return True

    run_checker(Checker("c:f", checks), [Generated(example)], "abc")
    assert example.metadata == {"kwargs": [{"n": 1}]}


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (None, "returned None; it must return True or False, a Check, or several. Does every branch"),
        (1, "type int"),
        (0.5, "type float"),
        ("yes", "type str"),
        ((True, "because"), "type bool among its checks"),
        ({"a": True}, "type str among its checks"),
        ([], "returned no checks"),
        ([Check("a", True), Check("a", False)], "two checks named 'a'"),
        (Check("", True), "name is ''"),
        (Check("gree\ud83dting", True), r"name is 'gree\ud83dting': half a surrogate pair at character 5 is no text"),
        (Check("a", 1), "'passed' is a value of type int; put it into bool"),  # type: ignore[arg-type]
        (Check("a", None), "'passed' is None"),  # type: ignore[arg-type]
        (Check("a", True, 3), "reason is a value of type int"),  # type: ignore[arg-type]
    ],
)
def test_anything_else_that_is_returned_ends_the_run_with_a_sentence(value: Any, says: str) -> None:
    message = returned(value)
    assert says in message
    assert "The checker checks:good, on the example 'e0'" in message


def test_a_number_like_bool_of_another_library_is_told_to_be_wrapped() -> None:
    numpy = pytest.importorskip("numpy")
    assert "type numpy.bool" in (message := returned(Check("a", numpy.bool_(True)))) and says(
        message, "numpy.bool", "put it into"
    )


def test_a_function_without_source_is_named_all_the_same() -> None:
    function: Callable[[Any], Any] = len
    [verdict] = run(function)
    assert "TypeError: object of type 'Example' has no len()" in (verdict.error or "")
