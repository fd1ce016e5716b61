"""The words for yes and no that are given: in a checklist, a judge, a settings file, on the command line and in Python."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from askance.commands.command_options import settings
from askance.evaluation.judge_file import load_judge, parse_judge
from askance.evaluation.kept_judge import KeptJudge
from askance.evaluation.options import EvaluateOptions
from askance.prompts.checklist import Checklist, Question, dump_checklist, parse_checklist
from askance.prompts.errors import InputError
from askance.prompts.prompt import Prompt
from askance.settings import load_config, parse_options
from askance.testing import StandInServer
from tests.said import naming, says

QUESTION = Question(id="q", text="Stimmt es?")


def checklist(answers: str) -> Checklist:
    return parse_checklist(f"answers: {answers}\nquestions:\n- id: q\n  text: Stimmt es?\n", "checklist.yaml")


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("[ja, nein]", ("ja", "nein")),
        ("[yes, no]", ("yes", "no")),
        ("[off, on]", ("off", "on")),
        ("[true, false]", ("true", "false")),
        ("ja, nein", ("ja", "nein")),
        ("[はい, いいえ]", ("はい", "いいえ")),
        ("[हाँ, नहीं]", ("हाँ", "नहीं")),
    ],
)
def test_a_checklist_says_its_words_and_is_written_with_them(written: str, read: tuple[str, str]) -> None:
    found = checklist(written)
    assert found.answers == read
    assert parse_checklist(dump_checklist(found), "again") == found
    as_json = json.dumps({"answers": list(read), "questions": [{"id": "q", "text": "Stimmt es?"}]})
    assert parse_checklist(as_json, "checklist.json").answers == read


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("[ja]", "two words are needed"),
        ("[ja, nein, doch]", "two words are needed"),
        ("ja", "two words are needed"),
        ("[ja, '']", "two words are needed"),
        ("[ja, 'gar nicht']", "two words are needed"),
        ("[n/a, nein]", "two words are needed"),
        ("[{a: b}, nein]", "two words are needed"),
        ("[Ja, ja]", "must differ"),
    ],
)
def test_what_is_no_pair_of_words_is_refused_by_name(written: str, said: str) -> None:
    with pytest.raises(InputError, match=rf"checklist\.yaml.*answers.*{said}"):
        checklist(written)


def test_a_judge_keeps_them_and_one_without_is_the_judge_that_it_was() -> None:
    how = {"mode": "each"}
    plain = KeptJudge("openai/m", Prompt("Judge."), Checklist(questions=(QUESTION,)), how)
    assert plain.hash == "d7ca3f85a2bf5536", "else the figures of every judge that is kept would be those of another"
    given = KeptJudge("openai/m", Prompt("Judge."), Checklist(questions=(QUESTION,), answers=("ja", "nein")), how)
    assert given.hash != plain.hash
    assert parse_judge(given.to_yaml(), "judge.yaml") == given
    beside = plain.to_yaml().replace("checklist:", "answers: [ja, nein]\nchecklist:")
    assert parse_judge(beside, "judge.yaml") == given


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("[ja, nein]", ("ja", "nein")),
        ("ja,nein", ("ja", "nein")),
        ("[yes, no]", ("yes", "no")),
        ("[off, on]", ("off", "on")),
    ],
)
def test_a_settings_file_has_words_where_yaml_would_have_true_and_false(
    written: str, read: tuple[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text(f"answer_words: {written}\nno_cache: yes\nown_questions: off\nrepeat: 2\n", encoding="utf-8")
    merged, _ = settings(EvaluateOptions, file, {})
    found = parse_options(EvaluateOptions, merged)
    assert (found.answer_words, found.judging.answer_words) == (read, read)
    assert (found.no_cache, found.own_questions, found.repeat) == (True, False, 2)
    assert load_config(file)["no_cache"] == "yes"


def test_the_command_line_wins_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("answer_words: [oui, non]\n", encoding="utf-8")
    merged, _ = settings(EvaluateOptions, file, {"answer_words": "ja,nein"})
    assert parse_options(EvaluateOptions, merged).answer_words == ("ja", "nein")


def test_a_setting_that_is_no_pair_is_a_sentence() -> None:
    with pytest.raises(InputError, match=naming("answer_words", "two words")):
        parse_options(EvaluateOptions, {"answer_words": "ja"})


def german(body: Any) -> str:
    return "Nein." if "ja or nein" in body["messages"][-1]["content"] else "Hm."


def test_a_command_asks_in_the_given_words(askance_command: Any, sandbox: Path) -> None:
    (sandbox / "data.jsonl").write_text('{"id": "1", "input": "a", "output": "b"}\n', encoding="utf-8")
    (sandbox / "checklist.yaml").write_text(dump_checklist(Checklist(questions=(QUESTION,))), encoding="utf-8")
    with StandInServer(german) as server:
        given = ["data.jsonl", "--checklist", "checklist.yaml", "--model", "openai/m", "--api-base", server.url]
        done = askance_command("evaluate", *given, "--answer-words", "ja,nein", "-o", "verdicts.jsonl")
        assert done.returncode == 0, done.stderr
    [verdict] = [json.loads(line) for line in (sandbox / "verdicts.jsonl").read_text(encoding="utf-8").splitlines()]
    assert (verdict["answer"], verdict["status"]) == (False, "ok")
    done = askance_command("evaluate", *given, "--answer-words", "nein,ja", "-o", "verdicts.jsonl")
    assert done.returncode == 2 and says(done.stderr, "yes", "first")


def test_a_run_keeps_the_words_that_its_judge_was_asked_in(sandbox: Path) -> None:
    import askance

    rows = [
        {"id": str(number), "input": "a", "output": f"b {number}", "human": {"overall": number % 5}}
        for number in range(30)
    ]
    with StandInServer(german) as server:
        result = askance.align(
            rows,
            checklist=Checklist(questions=(QUESTION,)),
            model="openai/m",
            run=str(sandbox / "run"),
            api_base=server.url,
            answer_words=("ja", "nein"),
            max_iterations=1,
            update="edits",
        )
    assert result is not None
    assert load_judge(sandbox / "run").checklist.answers == ("ja", "nein")
