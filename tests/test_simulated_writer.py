"""Simulated writers keep rules as often as they say, by what a request says of them; their judge sees what is kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import pytest

import askance
from askance.agents.checks import compute
from askance.agents.requests import EachAsking
from askance.prompts.checklist import ComputedCheck
from askance.prompts.examples import Example
from tests.doubles import Heeding, SimulatedWriter, WritersJudge, WritersWorld
from tests.doubles.simulated_writer import FACTS, REPLY

WORLDS = {form: WritersWorld(form=form, seed=4) for form in ("reply", "facts")}  # type: ignore[arg-type]
Form = Literal["reply", "facts"]
FORMS = pytest.mark.parametrize("form", ["reply", "facts"])


def asked(world: WritersWorld, row: dict[str, Any]) -> str:
    return world.prompt.text.replace("{input}", row["input"])


def rates(writer: SimulatedWriter, after: str = "", count: int = 400) -> dict[str, float]:
    """Share of fresh outputs that keep each rule."""
    world, kept = writer.world, []
    for row in world.make_rows(count, "x"):
        kept.append(world.kept(writer.text(writer.request(asked(world, row) + after))))
    return {rule.id: sum(rule.id in each for each in kept) / count for rule in world.rules}


@FORMS
def test_code_finds_each_rule_kept_or_broken_whatever_the_others(form: Form) -> None:
    world = WORLDS[form]
    checks = [rule.criterion for rule in world.rules if isinstance(rule.criterion, ComputedCheck)]
    every = {rule.id for rule in world.rules}
    assert len(checks) >= 4
    for kept in [every, set[str](), *({one} for one in every), *(every - {one} for one in every)]:
        output = world.write("r0001", kept)
        assert world.kept(output) == kept
        for check in checks:
            if check.id == "bare" or "bare" in kept or form == "reply":
                passed = check.is_good(compute(check, Example(id="e", input="", output=output)).answer)
                assert passed == (check.id in kept), (check.id, output)


@FORMS
@pytest.mark.parametrize(("name", "mean"), [("old", 0.92), ("equal", 0.92), ("worse", 0.82)])
def test_rules_are_kept_as_often_as_the_writer_says(form: Form, name: str, mean: float) -> None:
    found = rates(WORLDS[form].writer(name))
    assert all(abs(each - mean) < 0.06 for each in found.values())
    assert sum(found.values()) / len(found) == pytest.approx(mean, abs=0.03)


def test_an_order_counts_by_where_it_stands() -> None:
    writer = WORLDS["reply"].writer("weaker", links=Heeding(0.2, 0.5, 0.97), ends=Heeding(0.2, 0.5, 0.6, shown=0.97))
    row = WORLDS["reply"].rows[0]
    plain = asked(WORLDS["reply"], row)
    form = "\nDear reader,\n[what is known]\nYour help desk"
    chances = [
        writer.chances(writer.request(*each))
        for each in (
            (row["input"],),
            (plain,),
            ("Give no link.", row["input"]),
            (plain + "\nGive no link.",),
            (plain + form,),
            (form, plain),
        )
    ]
    assert [each["links"] for each in chances[:4]] == [0.2, 0.5, 0.5, 0.97]
    assert [each["ends"] for each in chances] == [0.2, 0.5, 0.2, 0.5, 0.97, 0.5]
    assert rates(writer)["links"] == pytest.approx(0.5, abs=0.07)
    assert rates(writer, "\nGive no link.")["links"] > 0.94


def test_a_schema_enforces_what_it_rules_out_alone() -> None:
    world = WORLDS["facts"]
    writer = world.writer("weaker")
    headline = {"type": "string", "maxLength": 40}
    schema = {"type": "object", "properties": {"headline": headline, "tone": {"enum": ["good", "bad", "neutral"]}}}
    request = writer.request(asked(world, world.rows[0]), schema=schema)
    enforced = {name for name, chance in writer.chances(request).items() if chance == 1.0}
    assert enforced == {"bare", "headline", "tone"}
    assert set(json.loads(writer.text(request))) == {"headline", "tone", "summary"}


def test_the_same_request_has_the_same_answer_and_another_seed_another() -> None:
    one, same, other = ([row["output"] for row in WritersWorld(seed=seed).make_rows(60)] for seed in (1, 1, 2))
    assert one == same != other


def test_an_input_of_another_world_is_refused() -> None:
    writer = WORLDS["reply"].writer("old")
    with pytest.raises(ValueError, match="its own world"):
        writer.text(writer.request("Tell me more."))


@FORMS
def test_the_judge_sees_what_is_kept(form: Form) -> None:
    world = WritersWorld(form=form, seed=4, judge_wrong=0.0)
    judge = WritersJudge(world)
    questions = world.checklist.asked
    assert len(questions) >= 3
    for row in world.make_rows(40):
        example = Example(**row)
        asking = EachAsking(askance.Prompt("Look at it.\n{output}\n{question}"), questions, False, True, 0.0, 0)
        for question, ask in zip(questions, asking.asks(judge.identity, example, 0, 0), strict=True):
            good = question.is_good(judge.p_asked(ask.request()) > 0.5)
            assert good == (question.id in world.kept(row["output"])), (question.id, row["output"])


def test_a_question_in_other_words_is_understood_and_one_turned_round_too() -> None:
    world = WritersWorld(judge_wrong=0.0)
    judge, output = WritersJudge(world), world.write("r0001", ["thanks"])
    request = world.writer("old").request
    assert judge.p_asked(request(f"{output}\nIs there a word of thanks in it?")) > 0.5
    assert judge.p_asked(request(f"{output}\nDoes it avoid blaming anybody?")) < 0.5
    with pytest.raises(ValueError, match="rules alone"):
        judge.p_asked(request(f"{output}\nIs it poetry?"))


def test_tune_improves_the_weaker_writer(tmp_path: Path) -> None:
    world = WritersWorld(size=60, seed=1)
    done = askance.tune(
        world.rows,
        checklist=world.checklist,
        generator=world.writer("weaker", **{rule.id: Heeding(0.1, 0.9) for rule in REPLY}),
        judge=WritersJudge(world),
        prompt=askance.Prompt("Answer the request.\n\n{input}"),
        run=tmp_path / "run",
        embedder="words",
        resamples=200,
        max_iterations=2,
    )
    before, after = (done.result[side]["test"]["mean"] for side in ("baseline", "best"))
    assert before < 0.4
    assert after > before + 0.2


def test_both_forms_have_rules_of_both_kinds() -> None:
    for rules in (REPLY, FACTS):
        assert {rule.is_check for rule in rules} == {True, False}
