"""The requirements of a migration that cost no call."""

from __future__ import annotations

import json
from typing import Any

import pytest

from askance.agents.checks import computed_verdicts
from askance.optimizer.migration.requirements import (
    WrittenRequirements,
    broken_by_new,
    free_requirements,
    listed,
    prompt_text,
    with_support,
)
from askance.prompts.checklist import (
    Checklist,
    ComputedCheck,
    Question,
    dump_checklist,
    load_checklist,
    parse_checklist,
)
from askance.prompts.errors import InputError
from askance.prompts.examples import Example
from askance.prompts.formatting import percent
from askance.prompts.prompt import Prompt
from askance.prompts.verdicts import Verdict

NEWS = Prompt(
    'Extract facts. Reply with one JSON object and nothing else: no code fence. Keys:\n"headline": at most 4 words,\n'
    '"place": a place named in the article, or null,\n"tone": one of "good", "bad", "neutral".\n'
)


def _news(number: int, **other: Any) -> str:
    return json.dumps({"headline": "Man wins prize", "place": f"Leeds {number}", "tone": "good"} | other)


def _written(outputs: list[str], prompt: Prompt = NEWS, **given: Any) -> WrittenRequirements:
    return free_requirements(prompt, _examples(outputs), **given)


def _examples(outputs: list[str]) -> list[Example]:
    return [Example(id=f"e{place}", input="in", output=output) for place, output in enumerate(outputs)]


def _by_id(written: WrittenRequirements) -> dict[str, Question]:
    return {each.id: each for each in written.criteria}


def _answers(check: Question, output: str) -> bool | None:
    assert isinstance(check, ComputedCheck)
    [verdict] = computed_verdicts([check], _examples([output]), "")
    return check.is_good(verdict.answer)


def test_each_key_has_a_check_of_its_own_so_that_one_broken_limit_hides_no_other() -> None:
    long = _news(0, headline="a very long headline indeed")
    found = _by_id(_written([long] * 6 + [_news(place) for place in range(14)]))
    assert {"no_code_fence", "json_alone", "keys", "key_headline", "key_place", "key_tone", "not_cut"} == set(found)
    assert {name: check.support for name, check in found.items() if check.support != 1} == {"key_headline": 0.7}
    assert (found["key_headline"].origin, found["key_headline"].weight) == ("clause", 1)
    assert not _answers(found["key_headline"], long)
    assert _answers(found["key_tone"], long)


def test_a_key_permits_what_its_clause_permits_though_no_old_output_has_it() -> None:
    found = _by_id(_written([_news(place) for place in range(20)]))
    assert _answers(found["key_place"], _news(1, place=None))
    assert _answers(found["key_tone"], _news(1, tone="neutral"))
    assert not _answers(found["key_tone"], _news(1, tone="sad"))


def test_broken_json_in_old_outputs_leaves_the_keys_that_the_prompt_names_in_force() -> None:
    found = _by_id(_written([_news(place) for place in range(8)] + ['{"headline": "Man'] * 2))
    assert (found["keys"].support, found["keys"].weight) == (0.8, 1)
    assert "key_tone" in found


def test_a_rule_of_few_old_outputs_is_shown_without_weight() -> None:
    texts = [f"**Yes {place}** it is" for place in range(14)] + [f"No {place} it is not" for place in range(6)]
    bold = _by_id(_written(texts, Prompt("Write a reply.")))["bold"]
    assert (bold.origin, bold.support, bold.weight) == ("contract", 0.7, 0)


def test_a_clause_says_in_place_of_the_outputs_how_long_they_are_and_how_they_begin() -> None:
    prompt = Prompt('At most 90 words.\nThe first line is "Dear citizen,".\n')
    found = _by_id(_written([f"Dear citizen,\nit is {place}." for place in range(20)], prompt))
    assert {name: each.origin for name, each in found.items()} == {"length_words": "clause", "line_1": "clause"} | {
        name: "contract" for name in found if name == "language"
    }


def test_clauses_that_no_check_decides_are_left_to_questions() -> None:
    prompt = Prompt("Be kind.\nAt most 90 words.\nThe second line is in bold and answers the question.\n")
    written = _written([f"text {place}" for place in range(9)], prompt)
    assert written.to_ask == ("Be kind.", "The second line is in bold and answers the question.")
    assert written.uncovered == ("Be kind.",)
    assert len(written.remarks) == 1 and "Be kind." in written.remarks[0]


def test_what_old_outputs_never_do_is_a_rule_only_where_a_target_does_it() -> None:
    old = _examples([f"Plain text {place}" for place in range(20)])
    before = free_requirements(Prompt("Write."), old)
    assert not any(each.is_fault for each in before.criteria)
    after = broken_by_new(before, old, {"a": _examples(["Text"]), "b": _examples(["# Title", "```x```"])})
    assert {each.id for each in after.criteria if each.is_fault} == {"no_headings", "no_code_fence"}
    assert {each.support for each in after.criteria if each.is_fault} == {1}


def test_own_checks_and_questions_of_a_judge_say_where_they_come_from_and_the_share_is_said() -> None:
    own = ComputedCheck.model_validate({"id": "schema", "kind": "schema", "value": {"required": ["more"]}})
    judge = Checklist(questions=["Is it kind?"], task="the task", answers=["ja", "nein"])
    outputs = [_news(place, **({"more": 1} if place % 4 else {})) for place in range(20)]
    written = _written(outputs, judge_questions=judge, checks=[own])
    found = _by_id(written)
    assert (found["schema"].origin, found["schema"].support, found["schema"].weight) == ("person", 0.75, 1)
    assert found["is_it_kind"].origin == "judge"
    assert "keys" not in found
    assert [percent(0.75) in note for note in written.notes] == [True]
    assert (written.checklist.task, written.checklist.answers) == ("the task", ("ja", "nein"))


def test_a_requirement_whose_id_is_taken_gets_a_number() -> None:
    written = WrittenRequirements((Question(id="a", text="One?"),)).added([Question(id="a", text="Two?")] * 2)
    assert [each.id for each in written.criteria] == ["a", "a-2", "a-3"]


def test_nothing_that_counts_is_an_error_that_says_what_to_give() -> None:
    with pytest.raises(InputError, match=r"--judge.*--requirements"):
        _ = _written(["a", "b"], Prompt("Write.")).checklist


def test_support_comes_from_the_verdicts_on_old_outputs() -> None:
    checklist = Checklist(questions=[Question(id="q", text="Is it?", good="no"), Question(id="r", text="Or?")])
    verdicts = [Verdict(f"e{place}", "q", "m", "p", place == 0, 0.5, "sampled") for place in range(4)]
    found = with_support(checklist, _examples(["a"] * 4), verdicts)
    assert [each.support for each in found.questions] == [0.75, None]
    row = listed(found)[0]
    assert percent(0.75) in row and "Is it?" in row


def test_requirements_are_a_checklist_file_that_a_person_may_edit(tmp_path: Any) -> None:
    checklist = _written([_news(place) for place in range(20)]).checklist
    file = tmp_path / "requirements.yaml"
    file.write_text(dump_checklist(checklist), "utf-8")
    assert load_checklist(file) == checklist
    with pytest.raises(InputError, match=r"requirements\.yaml.*support"):
        parse_checklist(dump_checklist(checklist).replace("support: 1.0", "support: 3", 1), "requirements.yaml")


def test_orders_are_read_from_the_messages_of_a_prompt_and_not_from_its_variables() -> None:
    prompt = Prompt.of_messages(
        [{"role": "system", "content": "No links.\nBe kind."}, {"role": "user", "content": "{input}"}]
    )
    assert prompt_text(prompt).splitlines() == ["No links.", "Be kind."]
