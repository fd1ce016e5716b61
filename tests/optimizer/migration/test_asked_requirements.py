"""Questions among the requirements: from clauses, from comments, and from what old outputs do and new ones do not."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest

from askance.memory.embedders import embedder
from askance.models.base import ModelError, Request
from askance.models.gateway import Gateway
from askance.models.progress import Counting
from askance.optimizer.migration.asked_requirements import (
    QuestionSource,
    with_contrast,
    with_questions,
    without_idle_contrast,
)
from askance.optimizer.migration.requirements import WrittenRequirements, free_requirements
from askance.prompts.checklist import Checklist, Question
from askance.prompts.examples import Example
from askance.prompts.human_feedback import Comment
from askance.prompts.prompt import Prompt
from askance.prompts.verdicts import Verdict
from askance.testing import ScriptedModel

PROMPT = Prompt("Be kind.\nAt most 90 words.\nThe second line is in bold and answers the question.\n")
OLD = [Example(id=f"e{place}", input="in", output=f"Hello.\n**Yes {place}.**") for place in range(12)]


def _source(model: ScriptedModel, most: int = 12) -> QuestionSource:
    return QuestionSource(Gateway(), model, embedder("words"), Counting(), most=most)


def _clause(request: Request) -> str:
    return request.messages[-1][1].partition("\n")[2]


def _written(reply: dict[str, str], development: Iterable[Example] = OLD, most: int = 12) -> WrittenRequirements:
    """The requirements where the model replies to the clause or comment that begins with a key."""
    model = ScriptedModel(lambda request: next(text for begins, text in reply.items() if begins in _clause(request)))
    written = free_requirements(PROMPT, list(development))
    found = asyncio.run(with_questions(written, PROMPT, list(development), _source(model, most)))
    asked = [_clause(request) for request in model.requests]
    assert asked and not any("90 words" in each for each in asked), "a clause that a check decides was asked about"
    return found


def _bought(written: WrittenRequirements) -> list[tuple[str, str | None, str | None]]:
    asked = [each for each in written.criteria if each.dimension == "content"]
    return [(each.text, each.clause, each.origin) for each in asked]


def test_each_clause_that_no_check_decides_becomes_questions_that_point_to_it() -> None:
    reply = {"Be kind": "yes: Is the reply kind?", "The second": "yes: Does it answer the question?"}
    written = _written(reply)
    assert _bought(written) == [
        ("Is the reply kind?", "Be kind.", "clause"),
        ("Does it answer the question?", "The second line is in bold and answers the question.", "clause"),
    ]
    assert (written.uncovered, written.remarks) == ((), ())


def test_a_question_about_what_code_checks_is_not_bought() -> None:
    reply = {"Be kind": "yes: Is the reply kind?", "The second": "yes: Is the second line in bold?"}
    assert [text for text, *_ in _bought(_written(reply))] == ["Is the reply kind?"]


@pytest.mark.parametrize("reply", ["Be kind.", "none", "yes: Be kind to everybody"])
def test_a_clause_without_a_question_of_use_is_named(reply: str) -> None:
    written = _written({"Be kind": reply, "The second": "yes: Does it answer the question?"})
    assert written.uncovered == ("Be kind.",)
    assert len(written.remarks) == 1 and "Be kind." in written.remarks[0]


def test_clauses_beyond_the_most_are_counted_and_not_asked_about() -> None:
    written = _written({"Be kind": "yes: Is the reply kind?"}, most=1)
    assert len(_bought(written)) == 1
    assert any("--max-requirements 1" in remark for remark in written.remarks)


def test_what_a_clause_forbids_is_asked_for_with_no_as_the_good_answer() -> None:
    reply = {"Be kind": "no: Does the reply insult anybody?\nyes: Is the reply kind?", "The second": "none"}
    found = {each.text: each.good for each in _written(reply).criteria if each.dimension == "content"}
    assert found == {"Does the reply insult anybody?": "no", "Is the reply kind?": "yes"}


def test_the_same_question_is_kept_once() -> None:
    same = "yes: Is the reply kind?"
    assert len(_bought(_written({"Be kind": same, "The second": same}))) == 1


def test_comments_of_people_become_questions_from_a_person() -> None:
    commented = OLD[0].model_copy(update={"comment": (Comment(text="where is the phone number??"),)})
    reply = {
        "Be kind": "yes: Is the reply kind?",
        "The second": "yes: Does it answer the question?",
        "where is": "yes: Does the reply say whom to ring?",
    }
    found = _bought(_written(reply, [commented, *OLD[1:]]))
    assert found[-1][1:] == ("where is the phone number??", "person")


def test_an_endpoint_that_answers_nobody_ends_it() -> None:
    def down(request: Request) -> str:
        raise ModelError("no such key", fatal=True)

    written = free_requirements(PROMPT, OLD)
    with pytest.raises(ModelError):
        asyncio.run(with_questions(written, PROMPT, OLD, _source(ScriptedModel(down))))


def test_what_old_outputs_do_more_often_is_wanted_and_what_new_ones_do_is_not() -> None:
    new = [Example(id=each.id, input="in", output="No idea, sorry.") for each in OLD]
    model = ScriptedModel(
        lambda request: "apologise for something" if "sorry" in _last(request) else "greet the reader"
    )
    written = WrittenRequirements((Question(id="q", text="Is the reply kind?"),))
    found = asyncio.run(with_contrast(written, OLD, {"new": new}, _source(model)))
    assert [(each.text, each.good, each.origin) for each in found.criteria[1:]] == [
        ("Does the reply greet the reader?", "yes", "contrast"),
        ("Does the reply apologise for something?", "no", "contrast"),
    ]


def _last(request: Request) -> str:
    return request.messages[-1][1]


def test_where_old_and_new_do_the_same_there_is_no_contrast() -> None:
    model = ScriptedModel(lambda request: "greet the reader")
    written = WrittenRequirements((Question(id="q", text="Is the reply kind?"),))
    assert asyncio.run(with_contrast(written, OLD, {"new": OLD}, _source(model))) == written


def _verdicts(name: str, passed: Iterable[bool]) -> list[Verdict]:
    return [Verdict(each.id, name, "m", "p", kept, 0.5, "sampled") for each, kept in zip(OLD, passed, strict=True)]


def test_a_contrast_question_stays_only_where_the_verdicts_show_that_new_outputs_fail_it_more() -> None:
    names = ("clear", "equal", "chance")
    contrast = [Question.model_validate({"id": name, "text": f"{name}?", "from": "contrast"}) for name in names]
    checklist = Checklist(questions=[Question(id="other", text="Is it?"), *contrast])
    old = [verdict for name in names for verdict in _verdicts(name, [True] * 12)]
    new = [
        *_verdicts("clear", [False] * 10 + [True] * 2),
        *_verdicts("equal", [True] * 12),
        *_verdicts("chance", [False] * 3 + [True] * 9),
    ]
    assert [each.id for each in without_idle_contrast(checklist, OLD, old, {"new": new}).questions] == [
        "other",
        "clear",
    ]
