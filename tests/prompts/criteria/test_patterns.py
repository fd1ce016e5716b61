"""A pattern is looked for as Python does it, and given up where it would run away."""

from __future__ import annotations

import re
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from askance.prompts.criteria import patterns
from askance.prompts.criteria.kinds import schema_errors
from askance.prompts.criteria.patterns import RunawayPatternError, first_match
from tests.said import naming

RUNAWAYS = [
    (r"(a+)+$", "a" * 60 + "!"),
    (r"(a|a)*b", "a" * 60),
    (r"(?:\w+\s?)+\.", "word " * 200),
    (r"(?:a?){28}a{28}$", "a" * 40 + "!"),
    (r"(.*,){12}x", "," * 400),
    (r"(?m)^\s*- ", "\n" * 400_000),
    (r"\s+$", " " * 400_000 + "x"),
]


@pytest.mark.parametrize(("pattern", "text"), RUNAWAYS, ids=range(len(RUNAWAYS)))
def test_a_pattern_that_runs_away_is_given_up(pattern: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "PATIENCE", 0.5)
    began = time.monotonic()
    with pytest.raises(RunawayPatternError, match=naming("0.5 seconds", "given up")):
        first_match(pattern, text)
    assert time.monotonic() - began < 10, "a machine that is busy is slow, too"
    assert first_match(r"(b+)+$", "a" * 400 + "bb") == "bb", "the next search is done"


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(
        [
            r"a",
            r"a*b",
            r"(a|b)*c",
            r"(a+)+$",
            r"(?m)^\s*[-*] ",
            r"[^a]{2,}",
            r"(?<=a)b+",
            r"(?i)É",
            r"(?P<x>a)(?(x)b+|c)",
        ]
    ),
    st.text("abcÉé \n-", max_size=12) | st.text(max_size=5),
)
def test_a_match_is_the_one_that_python_finds_here_and_in_the_other_process(pattern: str, text: str) -> None:
    found = re.search(pattern, text)
    wanted = None if found is None else found[0]
    assert first_match(pattern, text) == wanted
    before, patterns._AT_ONCE = patterns._AT_ONCE, 0.0
    try:
        assert first_match(pattern, text) == wanted
    finally:
        patterns._AT_ONCE = before


def test_searches_of_several_threads_wait_for_one_another() -> None:
    texts = [f"{'a' * 900}{'b' * number}" for number in range(1, 33)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda text: first_match("(b+)+$", text), texts)) == ["b" * n for n in range(1, 33)]


@pytest.mark.parametrize(
    ("pattern", "length", "at_once"),
    [
        (r"https?://|\bwww\.", 1_000_000, True),
        (r"\*\*[^*\n]+\*\*", 5_000, True),
        (r"(?m)^[ \t]*[-*•] ", 5_000, True),
        (r"[0-9]{4}", 1_000_000, True),
        (r"a*", 100_000, False),
        (r"(a|bc)*", 20, False),
        (r"(a{1,60}){1,60}", 20, False),
    ],
)
def test_a_search_that_cannot_take_long_is_done_at_once(
    pattern: str, length: int, at_once: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def started(*_: object, **__: object) -> None:
        raise OSError("another process")

    patterns._end_searcher()
    monkeypatch.setattr(patterns.subprocess, "Popen", started)
    if at_once:
        assert first_match(pattern, "x" * length) is None
    else:
        with pytest.raises(OSError, match="another process"):
            first_match(pattern, "x" * length)


def test_a_schema_s_pattern_that_runs_away_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    assert schema_errors("ab", '{"pattern": "^a"}') is None
    assert schema_errors("b", '{"pattern": "^a"}') == "at $: 'b' does not match '^a'"
    assert schema_errors(7, '{"pattern": "^a"}') is None
    monkeypatch.setattr(patterns, "PATIENCE", 0.5)
    with pytest.raises(RunawayPatternError):
        schema_errors("a" * 60 + "!", '{"pattern": "(a+)+$"}')
