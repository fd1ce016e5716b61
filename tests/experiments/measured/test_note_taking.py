"""A small run of the measurement on a judge that says yes to everything: what is counted, not what is best."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from askance.experiments.measured import note_taking
from askance.experiments.measured.note_taking import (
    BATCHES,
    VARIANTS,
    JudgedExamples,
    Measurement,
    Tried,
    as_text,
    find_cases,
    lesson_trial,
    main,
    measure,
    with_lesson,
)
from askance.models.base import Request
from askance.models.gateway import Gateway
from askance.optimizer.trial import log_odds
from askance.prompts.checklist import Checklist, Question, dump_checklist
from askance.prompts.errors import InputError
from askance.prompts.examples import Example
from askance.prompts.lessons import Lesson
from askance.prompts.prompt import Prompt
from askance.prompts.verdicts import Verdict, write_verdicts
from askance.testing import ScriptedModel, StandInServer

CHECKLIST = Checklist(
    task="Summarise.",
    questions=(
        Question(id="q", text="Is it right?", dimension="d"),
        Question(id="r", text="Is it clear?", dimension="d"),
    ),
)
PROMPT = Prompt("Document:\n{input}\n\nSummary:\n{output}\n\nYou are careful.\n\n{question}\n")
EXAMPLES = [
    Example(id=f"e{number}", input=f"Text {number}.", output=f"Summary {number}.", human={"d": (float(number % 2),)})
    for number in range(8)
]
RULE = "gives a wrong date or place"
JUDGED = JudgedExamples(
    EXAMPLES,
    CHECKLIST,
    PROMPT,
    [
        Verdict(example.id, question.id, "m", PROMPT.hash, True, 0.9 - place / 100, "logprob")
        for place, example in enumerate(EXAMPLES)
        for question in CHECKLIST.questions
    ],
)


def reply(content: str, schema: Any) -> str | float:
    fields = schema["properties"] if schema else {}
    if "kinds" in fields:
        return json.dumps({"kinds": ["a wrong date", "a wrong place"]})
    if "settles" in fields:
        return json.dumps({"settles": False, "hits_other": False, "says_more": True, "reason": "no", "better": "no"})
    note = {"quote": "Summary", "kind": "a wrong date"}
    if "rules" in fields:
        return json.dumps({"rules": [note | {"items": [1], "answer_no_if": RULE}]})
    if fields:
        quote = fields["quote"].get("enum", ["Summary"])[0]
        return json.dumps(note | {"quote": quote, "fact": "Text", "answer_no_if": RULE})
    return 0.2 if RULE in content and any(f"Text {number}." in content for number in (0, 2, 4, 6)) else 0.9


def script(request: Request) -> str | float:
    return reply(request.messages[-1][1], request.parameters.schema)


def test_cases_are_the_widest_disagreements_one_an_example_each_beside_an_agreement() -> None:
    cases = find_cases(JUDGED, 3)
    assert [case.disagreement.key for case in cases] == ["e0/q", "e2/r", "e4/q"]
    assert [round(case.disagreement.gap, 2) for case in cases] == [0.9, 0.88, 0.86]
    assert {case.contrast.id for case in cases if case.contrast} == {"e1"}, "people and judge say yes to it"
    assert len(find_cases(JUDGED, 99)) == 4


def test_verdicts_of_another_prompt_and_judges_that_agree_are_refused() -> None:
    with pytest.raises(InputError, match="given with the prompt"):
        find_cases(JudgedExamples(EXAMPLES, CHECKLIST, Prompt("Another. {output}"), JUDGED.verdicts), 3)
    agreed = [each for each in JUDGED.verdicts if int(each.example[1:]) % 2]
    with pytest.raises(InputError, match="nothing to take notes of"):
        find_cases(JudgedExamples(EXAMPLES, CHECKLIST, PROMPT, agreed), 3)


def test_a_lesson_is_tried_on_a_line_before_the_question() -> None:
    lesson = Lesson(id="L1", text="Answer no if it rains.", direction="stricter", dimension="d", evidence=("e0/q",))
    assert with_lesson(PROMPT, lesson).text == PROMPT.text.replace(
        "You are careful.\n", "You are careful.\n- Answer no if it rains.\n"
    )
    with pytest.raises(InputError, match="protected"):
        with_lesson(Prompt("<!-- protect -->All {output}<!-- /protect -->"), lesson)


async def test_every_variant_takes_notes_of_the_same_cases_and_its_lessons_are_tried_once() -> None:
    model = ScriptedModel(script, slots=1)
    gateway = Gateway(max_concurrency=1)
    cases = find_cases(JUDGED, 4)
    trial = lesson_trial(gateway, model, JUDGED, cases, evidence=2, controls=2)
    tried: list[tuple[str, tuple[str, ...]]] = []

    async def counted(lesson: Lesson) -> Tried:
        tried.append((lesson.text, lesson.evidence))
        return await trial(lesson)

    result = await measure(Measurement(gateway, model, JUDGED, seed=1), find_cases(JUDGED, 3), counted, seconds=None)
    variants = result["variants"]
    assert list(variants) == [*VARIANTS, BATCHES]
    assert len(tried) == len(set(tried)) == 2, "one lesson on all evidence, and the batch's on what it names"
    plain = variants["plain"]
    assert (plain["disagreements"], plain["calls"], plain["distinct_lessons"]) == (3, 3, 1)
    assert plain["lessons"][0]["evidence"] == ["e0/q", "e2/r", "e4/q"]
    own, elsewhere = (plain["lessons"][0]["trial"][part] for part in ("own", "elsewhere"))
    assert (own["passed"], own["turned"], own["controls"]) == (True, 2, 2)
    assert (elsewhere["turned"], elsewhere["evidence"], elsewhere["controls"]) == (1, 1, 0), "e6 gave no note"
    assert plain["shift_of_own_evidence"] == pytest.approx(log_odds(0.89) - log_odds(0.2), abs=0.1)
    assert plain["shift_elsewhere"] == pytest.approx(log_odds(0.84) - log_odds(0.2), abs=0.01)
    assert plain["shift_of_controls"] > 0, "they went from sure to surer"
    assert plain["passed_per_100_calls"] == 33.333
    assert variants["kinds"]["calls"] == 5, "and one for the kinds of each question"
    assert variants["kinds, 3 samples"]["calls"] == 11
    refused = variants["kinds, critique"]
    assert (refused["share_that_pass_the_guards"], refused["share_that_pass_their_trial"]) == (0.0, None)
    assert refused["refused"] == 3
    assert variants[BATCHES]["calls"] == 4 and variants[BATCHES]["disagreements"] == 3
    assert "elsewhere" in as_text(result)


async def test_when_time_is_up_nothing_new_is_begun() -> None:
    model = ScriptedModel(script, slots=1)
    measurement = Measurement(Gateway(), model, JUDGED, seed=1, batches=False)

    async def never(lesson: Lesson) -> Tried:
        raise AssertionError("there was no time left")

    result = await measure(measurement, find_cases(JUDGED, 3), never, seconds=0.0)
    assert model.requests == []
    assert all(row["share_that_pass_the_guards"] is None for row in result["variants"].values())
    result = await measure(Measurement(Gateway(), model, JUDGED, seed=1), find_cases(JUDGED, 1), None, seconds=None)
    assert result["variants"]["plain"]["tried"] == 0 and result["variants"]["plain"]["passed_per_100_calls"] is None


def test_the_command_writes_its_result_without_addresses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "data.jsonl").write_text("".join(each.model_dump_json() + "\n" for each in EXAMPLES), encoding="utf-8")
    (tmp_path / "checklist.yaml").write_text(dump_checklist(CHECKLIST), encoding="utf-8")
    (tmp_path / "prompt.md").write_text(PROMPT.text, encoding="utf-8")
    with (tmp_path / "verdicts.jsonl").open("w", encoding="utf-8") as file:
        write_verdicts(JUDGED.verdicts, file)

    def serve(body: Any) -> str | float:
        form = body.get("response_format")
        return reply(body["messages"][-1]["content"], form["json_schema"]["schema"] if form else None)

    arguments = [str(tmp_path / "data.jsonl"), "--model", "openai/m", "--disagreements", "2"]
    for name in ("checklist.yaml", "prompt.md", "verdicts.jsonl"):
        arguments += [f"--{name.partition('.')[0]}", str(tmp_path / name)]
    with StandInServer(serve) as server:
        assert main([*arguments, "--api-base", server.url, "-o", str(tmp_path / "out.json")]) == 0
    result = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    assert result["command"].startswith(
        "python -m askance.experiments.measured.note_taking data.jsonl --checklist checklist.yaml"
    )
    assert server.url not in json.dumps(result) and str(tmp_path) not in json.dumps(result)
    assert result["variants"]["plain"]["passed_their_trial"] == 1
    assert "plain" in capsys.readouterr().out
    assert main([*arguments, "--api-base", "nowhere"]) == 2
    assert note_taking.RESULT.name == "note_taking.json"
