from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from askance.agents.own_words import own_checklist
from askance.evaluation.compare.compare import compare
from askance.evaluation.diagnose import diagnose
from askance.evaluation.evaluate import evaluate
from askance.evaluation.judge_file import load_judge, parse_judge
from askance.evaluation.kept_judge import KeptJudge
from askance.models.base import Request
from askance.models.replies.own_formats import parse_reads
from askance.prompts.checklist import Checklist, Question
from askance.prompts.errors import InputError
from askance.prompts.prompt import Prompt
from askance.prompts.verdicts import read_verdicts, save_verdicts
from askance.testing import Reply, ScriptedModel

PROMPT = 'Text: {input}\nSummary: {output}\nRate it. Respond with JSON {"score": 1-5, "reason": "..."}\n'
ROWS = [
    {"id": f"e{place}", "input": "in", "output": f"worth {place}", "human": {"quality": place}} for place in range(1, 6)
]


def scores(request: Request) -> str:
    text = request.messages[-1][1]
    return json.dumps({"score": int(text.split("worth ")[1][0]), "reason": "so"})


def model() -> ScriptedModel:
    return ScriptedModel(scores)


def test_the_form_is_found_in_the_prompt_and_said(caplog: pytest.LogCaptureFixture) -> None:
    found = evaluate(ROWS, model=model(), prompt=Prompt(PROMPT), no_cache=True)
    assert [each.value for each in found.verdicts] == [1, 2, 3, 4, 5]
    assert [each.overall for each in found.scores] == [0, 0.25, 0.5, 0.75, 1]
    assert "--reads 'json:score 1-5'" in caplog.text


def test_the_score_is_about_the_one_dimension_that_people_rated() -> None:
    [agreement] = evaluate(ROWS, model=model(), prompt=Prompt(PROMPT), no_cache=True).agreement
    assert (agreement.dimension, agreement.pooled.spearman.value) == ("quality", 1.0)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"checklist": Checklist(questions=(Question(id="q", text="Is it so?"),)), "reads": "score 1-5"},
            "Leave out --checklist",
        ),
        ({"reads": "stars"}, "no form of replies"),
        ({"prompt": Prompt("Judge.\n{output}")}, "Say it with --reads: 'score 1-5'"),
        ({"prompt": Prompt("{output} Answer with Red, Green or Blue.")}, "whether Red or Blue is better"),
        ({"prompt": None, "reads": "score 1-5"}, "needs its prompt"),
        ({"reads": "score 1-5", "p_yes": "sampled", "samples": 3}, "states its score"),
        (
            {"reply_tokens": 20, "checklist": Checklist(questions=(Question(id="q", text="Is it so?"),))},
            "no judge is asked",
        ),
    ],
)
def test_what_does_not_go_together_is_refused_before_a_call(given: dict[str, Any], said: str) -> None:
    asked = model()
    with pytest.raises(InputError, match=said):
        evaluate(ROWS, model=asked, no_cache=True, **{"prompt": Prompt(PROMPT), **given})
    assert not asked.requests


@pytest.mark.parametrize(
    ("name", "text", "messages"),
    [
        ("own.md", "Q: {question}\nA: {output}", [("user", "Q: in\nA: worth 1")]),
        ("mustache.md", "Q: {{question}}\nA: {{answer}}", [("user", "Q: in\nA: worth 1")]),
        (
            "messages.json",
            json.dumps([{"role": "system", "content": "Be strict."}, {"role": "user", "content": "A: {{answer}}"}]),
            [("system", "Be strict."), ("user", "A: worth 1")],
        ),
    ],
)
def test_a_prompt_of_any_format_is_asked_with_its_own_variables(
    tmp_path: Path, name: str, text: str, messages: list[tuple[str, str]]
) -> None:
    (tmp_path / name).write_text(text)
    asked = ScriptedModel(lambda request: "Score: 4")
    found = evaluate(ROWS[:1], model=asked, prompt=tmp_path / name, reads="score 1-5", no_cache=True)
    assert [*asked.requests[0].messages] == messages
    assert found.verdicts[0].value == 4


MUSTACHE = "Q: {{question}}\nA: {{answer}}"
MESSAGES = "- role: system\n  content: Be strict.\n- role: user\n  content: '{{answer}}'\n"


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        (MUSTACHE, [("user", "Q: in\nA: worth 1")]),
        ("{input} of {company}: {output}", [("user", "in of Acme: worth 1")]),
        (MESSAGES, [("system", "Be strict."), ("user", "worth 1")]),
    ],
)
def test_a_prompt_given_as_a_text_is_read_as_its_file_would_be(text: str, messages: list[tuple[str, str]]) -> None:
    asked = ScriptedModel(lambda request: "Score: 4")
    evaluate([{**ROWS[0], "company": "Acme"}], model=asked, prompt=Prompt(text), reads="score 1-5", no_cache=True)
    assert [*asked.requests[0].messages] == messages


@pytest.mark.parametrize("text", [MUSTACHE, MESSAGES])
def test_a_judge_file_written_by_hand_holds_a_prompt_in_any_format(text: str) -> None:
    asked = ScriptedModel(lambda request: "Score: 4")
    head = f"schema: askance.judge/1\nmodel: openai/m\nprompt: {json.dumps(text)}\n"
    judge = parse_judge(head + "settings:\n  reads: score 1-5\n", "judge.yaml")
    judge.evaluate(ROWS[:1], model=asked, no_cache=True)
    [*_, (role, content)] = asked.requests[0].messages
    assert (role, content) == ("user", "Q: in\nA: worth 1" if text == MUSTACHE else "worth 1")


def test_what_a_variable_of_a_text_stands_for_is_said_from_python() -> None:
    asked = ScriptedModel(lambda request: "yes")
    one = Checklist(questions=(Question(id="q", text="Is it so?"),))
    evaluate(
        ROWS[:1], checklist=one, prompt=Prompt("A: {{reply}}"), model=asked, variable={"reply": "output"}, no_cache=True
    )
    assert "worth 1" in asked.requests[0].messages[-1][1] and "reply" not in str(asked.requests[0].messages)


def test_question_is_an_ordinary_variable_that_may_stand_for_a_column() -> None:
    rows = [{**ROWS[0], "metadata": {"asked": "Where?"}}]
    asked = ScriptedModel(lambda request: "4")
    given: dict[str, Any] = {"reads": "score 1-5", "variable": {"question": "asked"}, "no_cache": True}
    evaluate(rows, model=asked, prompt=Prompt("{question}: {output}"), **given)
    assert asked.requests[0].messages == (("user", "Where?: worth 1"),)


def test_a_kept_judge_is_asked_and_read_in_the_same_way(tmp_path: Path) -> None:
    reads = r"pattern:worth: (\d+) 1-5"
    kept = KeptJudge(
        "openai/m", Prompt(PROMPT), own_checklist(parse_reads(reads)), {"reads": reads, "reply_tokens": 50}
    )
    kept.save(tmp_path / "judge.yaml")
    again = load_judge(tmp_path / "judge.yaml")
    assert (again.hash, again.settings["reads"], again.prompt.text) == (kept.hash, reads, PROMPT)
    asked = ScriptedModel(lambda request: "worth: 4")
    found = again.evaluate(ROWS, model=asked, no_cache=True)
    assert {each.value for each in found.verdicts} == {4.0}
    assert asked.requests[0].parameters.max_tokens == 50


def test_a_judge_file_with_reads_needs_no_checklist() -> None:
    head = f"schema: askance.judge/1\nmodel: openai/m\nprompt: {json.dumps(PROMPT)}\n"
    judge = parse_judge(head + "settings:\n  reads: score 1-5\n", "judge.yaml")
    assert judge.checklist == own_checklist(parse_reads("score 1-5"))
    with pytest.raises(InputError, match=r"'checklist'.*missing.*'reads'"):
        parse_judge(head, "judge.yaml")
    with pytest.raises(InputError, match=r"form.*replies"):
        parse_judge(head + "settings:\n  reads: stars\n", "judge.yaml")


def test_a_judge_of_questions_keeps_its_hash_and_takes_no_reads() -> None:
    judge = KeptJudge("openai/m", Prompt("{output}"), Checklist(questions=(Question(id="q", text="Is it so?"),)))
    assert judge.hash == "c641634cc2769b84"
    with pytest.raises(InputError, match=r"questions.*checklist"):
        judge.evaluate(ROWS, model=model(), reads="score 1-5", no_cache=True)


@pytest.mark.parametrize("name", ["verdicts.jsonl", "verdicts.parquet"])
def test_verdicts_keep_the_raw_score_in_their_file(tmp_path: Path, name: str) -> None:
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    found = evaluate(ROWS, model=model(), prompt=Prompt(PROMPT), no_cache=True)
    save_verdicts(tmp_path / name, found.verdicts)
    assert read_verdicts(tmp_path / name) == found.verdicts


def test_diagnose_says_how_the_score_spreads_and_agrees() -> None:
    found = diagnose(ROWS, model=model(), prompt=Prompt(PROMPT), no_cache=True)
    [question] = found.questions
    assert (question.id, question.yes_rate, question.coverage.answered) == ("score", 0.6, 5)


def test_compare_has_it_beside_judges_of_questions(tmp_path: Path) -> None:
    (tmp_path / "judge.md").write_text(PROMPT)
    checklist = Checklist(questions=(Question(id="q", text="Is it so?", dimension="quality"),))

    def script(request: Request) -> Reply:
        return scores(request) if "Respond with JSON" in request.messages[-1][1] else 0.9

    asked = ScriptedModel(script)
    given: dict[str, Any] = {"checklist": checklist, "own_prompt": str(tmp_path / "judge.md"), "no_cache": True}
    found = compare(ROWS, model=asked, judges=["own", "binary"], **given)
    assert [each.score for each in found.ratings["own"]] == [0, 0.25, 0.5, 0.75, 1]
    assert [each.score for each in found.ratings["binary"]] == pytest.approx([0.9] * 5, abs=1e-4)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"judges": ["own"]}, "give its prompt with --own-prompt"),
        ({"judges": ["direct"], "reads": "score 1-5"}, "only the judge own"),
        ({"judges": ["own"], "own_prompt": "judge.md", "dimensions": ["a", "b"]}, "gives one score, and 2 dimensions"),
    ],
)
def test_compare_refuses_it_without_a_prompt_and_on_several_dimensions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: dict[str, Any], said: str
) -> None:
    (tmp_path / "judge.md").write_text(PROMPT)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=said):
        compare([{**each, "human": {}} for each in ROWS], model=model(), no_cache=True, **given)
