"""Settings that go with a prompt: kept in a file, sent in requests, and no part of any request where none is set."""

from __future__ import annotations

from pathlib import Path

import pytest

from askance.models.base import Parameters, make_request
from askance.models.direct import chat_fields
from askance.models.refusals import GRAMMAR, Facts
from askance.models.resolve import Models
from askance.models.writing import AS_THE_RUN, PromptSettings, parse_vary, read_writing, version_of, writing_beside
from askance.prompts.errors import InputError

ALL = PromptSettings(
    schema={"type": "object"},
    max_output_tokens=50,
    temperature=0.5,
    thinking="off",
    system_as="user",
    grammar="root ::= x",
)


def test_settings_are_read_from_their_file_as_they_were_written(tmp_path: Path) -> None:
    (tmp_path / "writing.yaml").write_text(ALL.to_yaml())
    assert writing_beside(tmp_path / "prompt.json") == ALL
    assert writing_beside(tmp_path / "other.json") is None
    assert read_writing("thinking: off", "here").thinking == "off"
    assert all(word in ALL.said for word in ("schema", "50 tokens", "0.5", "off", "user", "grammar"))
    with pytest.raises(InputError, match=r"writing\.yaml.*system_as"):
        read_writing("system_as: head", str(tmp_path / "writing.yaml"))


def test_a_version_differs_by_its_settings_where_it_has_some() -> None:
    assert version_of("abc", None) == version_of("abc", AS_THE_RUN) == "abc"
    names = {version_of("abc", ALL.but(temperature=value)) for value in (0.0, 0.5, 1.0)}
    assert len(names) == 3
    assert "abc" not in names


def test_a_request_without_a_grammar_keeps_its_key() -> None:
    assert Parameters(5).canonical == "[5,0.0,null,0,null]"
    assert Parameters(5, grammar="root ::= x").canonical != Parameters(5).canonical


def test_a_grammar_that_is_refused_is_sent_under_no_name_any_more() -> None:
    sent = chat_fields(make_request("m", [("user", "Hi")], Parameters(5, grammar="root ::= x")))
    assert set(GRAMMAR) <= set(sent)
    for said in ("Unrecognized request argument supplied: grammar", "failed to parse the grammar"):
        learned = Facts().learn(400, said, sent)
        assert learned is not None
        assert not set(GRAMMAR) & set(learned.fit(sent))
    assert set(GRAMMAR).isdisjoint(chat_fields(make_request("m", [("user", "Hi")], Parameters(5))))


async def test_a_model_that_thinks_otherwise_has_answers_of_its_own() -> None:
    async with Models(api_base="http://127.0.0.1:9/v1") as models:
        usual, low = models.get("openai/some"), models.with_thinking("openai/some", "low")
        assert models.with_thinking("openai/some", "low") is low
        assert len({usual.identity, low.identity, models.with_thinking("openai/some", "off").identity}) == 3
        with pytest.raises(InputError, match="named"):
            models.with_thinking(usual, "low")


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (["thinking=low,off", "thinking=2000"], {"thinking": ("low", "off", 2000)}),
        (["temperature=0.5", "system_as=user"], {"temperature": (0.5,), "system_as": ("user",)}),
        ({"temperature": 1, "thinking": [False]}, {"temperature": (1.0,), "thinking": ("off",)}),
    ],
)
def test_settings_to_be_varied_are_read_with_their_values(given: object, found: object) -> None:
    assert parse_vary(given) == found


@pytest.mark.parametrize(
    "given", [["temperatur=1"], ["thinking=hard"], ["thinking"], ["grammar=root"], ["temperature=x"]]
)
def test_a_setting_without_such_a_value_is_refused_by_its_name(given: list[str]) -> None:
    with pytest.raises(ValueError, match=given[0].partition("=")[0]):
        parse_vary(given)
