"""A generator as what is improved: outputs are written, judged, checked, and scored."""

from __future__ import annotations

import json
from typing import Any, Literal

import pytest

from askance.agents.checks import Check, load_checker
from askance.agents.example_questions import ExampleQuestions
from askance.agents.generator import Generator
from askance.agents.judging import Judging
from askance.evaluation.scoring import Coverage, coverage
from askance.models.base import Answer, ModelError, Request
from askance.models.gateway import Gateway, RetryPolicy
from askance.models.writing import PromptSettings
from askance.optimizer.modes.generator import GeneratorSubject, OutputJudge
from askance.optimizer.subject import Draft
from askance.prompts.checklist import Checklist, Question
from askance.prompts.examples import Example
from askance.prompts.prompt import Prompt
from askance.testing import Reply, ScriptedModel
from tests.said import says

EXAMPLES = [Example(id=name, input=f"Letter [{name}]") for name in ("x", "y", "z")]
CHECKLIST = Checklist(
    task="Write letters.",
    questions=[
        Question(id="kind", text="Is it kind?", dimension="tone"),
        Question(id="short", text="Is it short?", dimension="form"),
    ],
)
DRAFT = Draft(Prompt("Write."))


def check(example: Example) -> list[Check]:
    return [Check("marked", "!" in (example.output or ""), "it has no mark"), Check("there", bool(example.output))]


class Clerk(ScriptedModel):
    """A writer whose answers are records, with the letter in them."""

    def shown(self, example: Example) -> Example:
        letter, place = json.loads(example.output or "")
        return example.model_copy(update={"output": letter, "metadata": {"place": place}})


class Office:
    """A writer, a judge of its letters, and whoever writes the questions."""

    def __init__(
        self,
        *,
        judged: bool = True,
        checked: bool = False,
        own: bool = False,
        score_as: Literal["all", "mean"] = "mean",
        soft: bool = True,
        records: bool = False,
        checklist: Checklist = CHECKLIST,
    ) -> None:
        self.seen: list[Coverage] = []
        self.said: list[str] = []
        self.letters: dict[str, str | ModelError] = {name: f"Dear {name}!" for name in "xyz"}
        self.too_long = ""
        self.opinion: dict[tuple[str, str], float | ModelError] = {}
        self.writer = (Clerk if records else ScriptedModel)(self.write, name="the/writer")
        self.judge = ScriptedModel(self.answer, name="the/judge")
        gateway = Gateway(retry=RetryPolicy(1))
        self.subject = GeneratorSubject(
            Generator(gateway, self.writer, Prompt("Write."), 100, 0.0, 1),
            judge=OutputJudge(self.judge, Prompt("Judge."), Judging(), soft) if judged else None,
            checklist=checklist if judged and not own else None,
            questions=ExampleQuestions(gateway, self.judge) if own else None,
            checker=load_checker(check) if checked else None,
            score_as=score_as,
            tally=lambda verdicts: self.seen.append(coverage(verdicts)),
            say=self.said.append,
        )

    def write(self, request: Request) -> Reply:
        name = request.messages[-1][1].removeprefix("Letter [")[0]
        letter = self.letters[name]
        if isinstance(letter, ModelError):
            return letter
        finish = "length" if name in self.too_long else "stop"
        return Answer(f"{letter} {request.messages[0][1].count('+') * '+'}", finish=finish)

    def answer(self, request: Request) -> Reply:
        text = "\n".join(content for _, content in request.messages)
        name = text.split("Letter [")[1][0]
        if request.parameters.schema:
            if name == "z":
                return "No questions come to mind."
            return json.dumps({"questions": [{"text": f"Is it for {name}?", "violation": "It is for another."}]})
        question = next((each.id for each in CHECKLIST.questions if each.text in text), "own")
        return self.opinion.get((name, question), 0.9)

    async def look(self, draft: Draft = DRAFT) -> Any:
        return await self.subject.observe(draft, EXAMPLES)


def overall(observation: Any) -> list[Any]:
    return [score.overall for score in observation.scores]


async def test_outputs_are_written_with_the_draft_and_judged_on_every_question() -> None:
    office = Office()
    office.opinion["y", "short"] = 0.1
    seen = await office.look()
    assert [each.output.strip() for each in seen.examples] == ["Dear x!", "Dear y!", "Dear z!"]
    assert {each.messages[0] for each in office.writer.requests} == {("system", "Write.")}
    assert overall(seen) == pytest.approx([0.9, 0.5, 0.9], abs=1e-4)
    assert seen.scores[1].dimensions == {"tone": pytest.approx(0.9, abs=1e-4), "form": pytest.approx(0.1, abs=1e-4)}
    assert seen.question("x", "kind").text == "Is it kind?"
    assert office.seen == [Coverage(6, 6, 0, 0, 0)]


async def test_of_a_record_judge_and_checker_see_what_the_model_shows() -> None:
    office = Office(checked=True, records=True)
    office.letters = {"x": '["Dear x!", "a drawer"]', "y": '["Dear y", "a shelf"]', "z": ModelError("no ink")}
    seen = await office.look()
    assert [each.output for each in seen.examples] == ["Dear x!", "Dear y", None]
    assert [each.metadata for each in seen.examples] == [{"place": "a drawer"}, {"place": "a shelf"}, {}]
    assert not any("drawer" in content for each in office.judge.requests for _, content in each.messages)
    assert overall(seen) == [pytest.approx(0.95, abs=1e-4), pytest.approx(0.7, abs=1e-4), None]


@pytest.mark.parametrize(("score_as", "wanted"), [("mean", [1.0, 0.5, 1.0]), ("all", [1.0, 0.0, 1.0])])
async def test_an_output_is_worth_the_share_that_it_passes_or_nothing_unless_it_passes_all(
    score_as: Literal["all", "mean"], wanted: list[float]
) -> None:
    office = Office(score_as=score_as, soft=False)
    office.opinion["y", "short"] = 0.1
    assert overall(await office.look()) == wanted


@pytest.mark.parametrize("said", [0.1, ModelError("a filter held it back")])
async def test_a_question_that_does_not_count_makes_no_output_fail(said: float | ModelError) -> None:
    kind, short = CHECKLIST.questions
    idle = CHECKLIST.model_copy(update={"questions": (kind, short.model_copy(update={"weight": 0.0}))})
    office = Office(score_as="all", soft=False, checklist=idle)
    office.opinion["y", "short"] = said
    office.opinion["z", "kind"] = 0.1
    assert overall(await office.look()) == [1.0, 1.0, 0.0]


async def test_an_example_has_the_weights_of_its_section_and_a_check_counts_as_one_question() -> None:
    weighted = CHECKLIST.model_copy(update={"section_weights": {"notes": {"kind": 0.0, "short": 1.0}}})
    office = Office(checklist=weighted, checked=True)
    office.opinion["y", "short"] = office.opinion["x", "short"] = 0.1
    examples = [
        each.model_copy(update={"metadata": {"section": "notes"}}) if each.id == "y" else each for each in EXAMPLES
    ]
    seen = await office.subject.observe(DRAFT, examples)
    assert overall(seen) == pytest.approx(
        [(0.9 + 0.1 + 1 + 1) / 4, (0.1 + 1 + 1) / 3, (0.9 + 0.9 + 1 + 1) / 4], abs=1e-4
    )


async def test_a_checker_alone_needs_no_judge() -> None:
    office = Office(judged=False, checked=True)
    office.letters["y"] = "Dear y."
    seen = await office.look()
    assert office.judge.requests == []
    assert overall(seen) == [1.0, 0.5, 1.0]
    failed = next(each for each in seen.verdicts if not each.answer)
    assert (failed.example, failed.question, failed.explanation) == ("y", "marked", "it has no mark")
    assert seen.question("y", "marked").dimension == "checks"
    assert office.subject.evaluator(DRAFT, "y") is None


async def test_judge_and_checker_count_together() -> None:
    office = Office(checked=True, soft=False)
    office.letters["y"] = "Dear y."
    seen = await office.look()
    assert overall(seen) == [1.0, pytest.approx(3 / 4), 1.0]
    assert set(seen.scores[0].dimensions) == {"tone", "form", "checks"}


async def test_every_example_can_have_questions_of_its_own_which_are_written_once() -> None:
    office = Office(own=True)
    seen = await office.look()
    assert [question.text for question in seen.own_checklists["x"].questions] == ["Is it for x?"]
    assert overall(seen)[:2] == pytest.approx([0.9, 0.9], abs=1e-4)
    asked = len(office.judge.requests)
    await office.look()
    written = [each for each in office.judge.requests[asked:] if each.parameters.schema and "[z]" not in str(each)]
    assert written == []


async def test_an_example_without_questions_has_no_score_and_is_told() -> None:
    office = Office(own=True)
    seen = await office.look()
    assert seen.scores[2].overall is None
    assert "z" not in seen.own_checklists
    assert len(office.said) == 1
    assert says(office.said[0], "no questions", "z")


async def test_questions_that_could_not_be_written_are_not_asked_for_with_every_version() -> None:
    office = Office(own=True, checked=True)
    first = await office.look()
    asked = len(office.judge.requests)
    again = await office.look(Draft(Prompt("Write. +")))
    assert [each for each in office.judge.requests[asked:] if each.parameters.schema] == []
    assert len(office.said) == 1
    for seen in (first, again):
        assert [each.id for each in seen.own_checklists["z"].questions] == ["marked", "there"]


async def test_a_first_output_that_the_judge_says_nothing_of_is_one_missing_verdict() -> None:
    office = Office(own=True)
    office.opinion["x", "own"] = ModelError("a filter held it back")
    seen = await office.look()
    assert [each.status for each in seen.verdicts] == ["api_error", "ok"]
    assert overall(seen) == [None, pytest.approx(0.9, abs=1e-4), None]


async def test_outputs_that_were_cut_off_are_judged_as_they_are_and_told_once() -> None:
    office = Office()
    office.too_long = "yz"
    assert overall(await office.look()) == pytest.approx([0.9, 0.9, 0.9], abs=1e-4)
    await office.look(Draft(Prompt("Write. +")))
    assert len(office.said) == 1 and says(office.said[0], 2, 3, "max_output_tokens", 100)


async def test_texts_that_the_schema_cuts_are_said_once_for_as_many_outputs() -> None:
    office = Office(judged=False, checked=True)
    office.letters = {name: json.dumps({"note": f"Dear {name}"}) for name in "xy"} | {"z": '{"note": "Hi"}'}
    schema = {"type": "object", "properties": {"note": {"type": "string", "maxLength": 6}}}
    draft = Draft(Prompt("Write."), writing=PromptSettings(json_schema=schema))
    for examples in (EXAMPLES[:1], EXAMPLES, EXAMPLES):
        await office.subject.observe(draft, examples)
    assert [says(said, *facts) for said, facts in zip(office.said, ((1, 1), (2, 3)), strict=True)] == [True, True]
    await office.subject.observe(DRAFT, EXAMPLES)
    assert len(office.said) == 2, "nothing is sent, so nothing is cut"


@pytest.mark.parametrize("checked", [False, True])
async def test_an_output_that_could_not_be_written_is_missing_not_bad(checked: bool) -> None:
    office = Office(checked=checked)
    office.letters["y"] = ModelError("the writer is ill")
    seen = await office.look()
    assert overall(seen)[1] is None
    mine = [each for each in seen.verdicts if each.example == "y"]
    assert {(each.status, each.answer) for each in mine} == {("api_error", None)}
    assert all("the writer is ill" in (each.error or "") for each in mine)
    assert office.seen[0].api_errors == 2 + checked
    assert overall(seen)[0] is not None


async def test_a_trial_writes_and_judges_its_own_examples_alone() -> None:
    office = Office()
    seen = await office.look()
    office.writer.requests.clear()
    office.judge.requests.clear()
    better = Draft(Prompt("Write. +"))
    found = await office.subject.probe(better, [("y", "kind"), ("y", "short")], seen)
    assert set(found) == {("y", "kind"), ("y", "short")}
    assert [each.messages[-1][1] for each in office.writer.requests] == ["Letter [y]"]
    assert all("Dear y! +" in str(each.messages) for each in office.judge.requests)
