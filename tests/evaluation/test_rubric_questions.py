from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from askance.cli import cli
from askance.evaluation.write_questions import questions_from
from askance.models.base import Request
from askance.prompts.checklist import dump_checklist, parse_checklist
from askance.prompts.errors import InputError
from askance.prompts.prompt import Prompt
from askance.testing import Reply, ScriptedModel, StandInServer

PROMPT = """Summary:
{output}

It must say only what the text says.
It must be short.
Ignore spelling.
Respond with JSON: {"score": 1-5, "reason": "..."}
"""
ROWS = [
    {"id": f"e{n}", "input": "in", "output": f"worth {n}", "human": {"quality": n}, "metadata": {"old": 6 - n}}
    for n in range(1, 6)
]


def worth(text: str) -> int:
    return int(text.split("worth ")[1][0])


def reply_to(text: str, schema: Any) -> Reply:
    """A writer's reply by the record that is asked for; a judge's by how much the output is worth."""
    if "criteria" in str(schema):
        parts = dict(reversed(line.lstrip("[").split("] ", 1)) for line in text.splitlines() if line.startswith("["))
        named = {"It must say only what the text says.": "It invents nothing.", "It must be short.": "It is short."}
        return json.dumps({"criteria": [{"part": int(parts[part]), "criterion": each} for part, each in named.items()]})
    if "violation" in str(schema):
        said = "Does it say only what the text says?" if "invents" in text else "Is the summary a short one?"
        draft = {"text": said, "violation": "A new name.", "dimension": "truth" if "invents" in text else "length"}
        return json.dumps({"questions": [draft]})
    if "JSON" in text:
        return json.dumps({"score": worth(text), "reason": "so"})
    return 0.15 * worth(text) if "only what the text says?" in text else 0.5


def script(request: Request) -> Reply:
    return reply_to(request.messages[-1][1], request.parameters.schema)


def test_every_question_names_its_clause_and_parts_without_one_are_named() -> None:
    found = questions_from(Prompt(PROMPT), model=ScriptedModel(script), no_cache=True)
    clauses = {each.text: each.clause for each in found.checklist.questions}
    assert clauses == {
        "Does it say only what the text says?": "It must say only what the text says.",
        "Is the summary a short one?": "It must be short.",
    }
    assert found.left == ("Ignore spelling.", 'Respond with JSON: {"score": 1-5, "reason": "..."}')
    assert found.rows == ()
    assert parse_checklist(dump_checklist(found.checklist), "c.yaml") == found.checklist


def test_with_data_it_is_held_beside_the_old_judge_and_people() -> None:
    found = questions_from(Prompt(PROMPT), model=ScriptedModel(script), data=ROWS, no_cache=True)
    near = {row.name: (row.judge and row.judge.value, row.people and row.people.value) for row in found.rows}
    assert near == {"checklist": (1, 1), "truth-1": (1, 1), "length-1": (None, None), "old judge": (None, 1)}
    assert found.missing == 0


def test_the_old_judges_scores_may_be_a_column_and_are_then_not_bought() -> None:
    asked = ScriptedModel(script)
    found = questions_from(Prompt("Judge.\n" + PROMPT), model=asked, data=ROWS, judge_scores="old", no_cache=True)
    assert {row.name: row.judge and row.judge.value for row in found.rows}["truth-1"] == -1
    judged = [each.messages[-1][1] for each in asked.requests if each.parameters.schema is None]
    assert judged and not any("Judge.\nSummary" in each for each in judged)


@pytest.mark.parametrize(
    ("prompt", "given", "said"),
    [
        (PROMPT, {"data": ROWS, "judge_scores": "odl"}, "no column 'odl'. Did you mean 'old'"),
        (PROMPT, {"data": [{**ROWS[0], "metadata": {"old": "good"}}], "judge_scores": "old"}, "a number is needed"),
        (PROMPT, {"limit": 3}, "no outputs to compare"),
        ("Judge.\n{output}", {"data": ROWS}, "Say it with --reads"),
        (" ", {}, "nothing to take apart"),
    ],
)
def test_what_cannot_be_compared_is_refused_before_a_call(prompt: str, given: dict[str, Any], said: str) -> None:
    asked = ScriptedModel(script)
    with pytest.raises(InputError, match=said.replace("no column", "no example has a column")):
        questions_from(Prompt(prompt), model=asked, no_cache=True, **given)
    assert not asked.requests


def test_the_command_writes_the_checklist_and_prints_the_comparison(tmp_path: Path) -> None:
    (tmp_path / "judge.md").write_text(PROMPT)
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(each) + "\n" for each in ROWS))

    def answer(body: Any) -> Any:
        return reply_to(body["messages"][-1]["content"], body.get("response_format"))

    with StandInServer(answer) as server:
        given = ["--model", "openai/m", "--api-base", server.url, "--no-cache", "-o", str(tmp_path / "c.yaml")]
        made = ["questions", "--from", str(tmp_path / "judge.md"), "--data", str(tmp_path / "data.jsonl"), *given]
        done = CliRunner().invoke(cli, made, env={"OPENAI_API_KEY": "x"})
    assert done.exit_code == 0, done.output
    assert "clause: It must be short." in (tmp_path / "c.yaml").read_text()
    assert "with the old judge" in done.stdout and "No question comes from: Ignore spelling." in done.stderr


def test_the_command_wants_a_task_or_a_prompt() -> None:
    for arguments, said in (([], "Give either TASK"), (["task.md", "--data", "d.jsonl"], "its prompt with --from")):
        done = CliRunner().invoke(cli, ["questions", *arguments, "--model", "openai/m"])
        assert done.exit_code == 2 and said in done.output
