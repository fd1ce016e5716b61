"""``askance evaluate --own-questions``: who writes, what is asked, and what the configuration file says beside it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from askance.prompts.checklist import Checklist, Question, dump_checklist
from askance.testing import StandInServer

from ..said import says
from .conftest import CommandLine

QUESTION = "Does the answer name a colour?"


def reply(body: Mapping[str, Any]) -> Any:
    """Writes one question for every input, and says yes to outputs that are red."""
    if "response_format" in body:
        return json.dumps({"questions": [{"text": QUESTION, "violation": "It names none."}]})
    return 0.9 if "red" in body["messages"][-1]["content"] else 0.2


class Colours(CommandLine):
    """Outputs, and the command line."""

    def judge(self, *more: str) -> tuple[int, str, str]:
        how = ("--model", "openai/judge", "--api-base", self.server.url, "--retries", "0", "--resamples", "200")
        return self("evaluate", self.data, *how, *more)

    @property
    def asked(self) -> list[str]:
        """The models that were asked, in order."""
        return [body["model"] for body in self.server.bodies]


@pytest.fixture
def colours(sandbox: Path, cli: Any) -> Iterator[Colours]:
    rows = [{"id": f"c{k}", "input": f"Name colour {k}.", "output": "red" if k % 2 else "door"} for k in range(4)]
    Path("colours.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    questions = [Question(id="right", text="Is it right?")]
    Path("checklist.yaml").write_text(dump_checklist(Checklist(task="Answer.", questions=questions)), encoding="utf-8")
    with StandInServer(reply) as server:
        yield Colours(cli, server, "colours.jsonl")


def test_the_writer_writes_the_judge_judges_and_a_second_run_buys_nothing(colours: Colours) -> None:
    assert colours.judge("--own-questions", "--writer", "openai/writer", "--dry-run")[0] == 0
    assert colours.asked == []
    code, out, _ = colours.judge("--own-questions", "--writer", "openai/writer", "-o", "verdicts.jsonl")
    assert code == 0
    assert sorted(colours.asked) == ["judge"] * 4 + ["writer"] * 4
    assert says(out, "4 questions", "4 examples", "1.0 each")
    rows = [json.loads(line) for line in Path("verdicts.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [(row["example"], row["asked"], row["answer"]) for row in rows] == [
        (f"c{k}", QUESTION, bool(k % 2)) for k in range(4)
    ]
    assert colours.judge("--own-questions", "--writer", "openai/writer")[0] == 0
    assert len(colours.asked) == 8


@pytest.mark.parametrize(
    ("how", "calls"),
    [
        ((), 4 + 24),
        (("--repeat", "2", "--temperature", "0.5"), 4 + 48),
        (("--mode", "batched"), 4 + 4),
        (("--p-yes", "sampled", "--samples", "8"), 4 + 192),
    ],
    ids=["one by one", "repeated", "together", "sampled"],
)
def test_a_dry_run_counts_calls_as_the_judge_will_be_asked(colours: Colours, how: tuple[str, ...], calls: int) -> None:
    code, out, _ = colours.judge("--own-questions", "--dry-run", *how)
    assert code == 0 and colours.asked == []
    assert f" {calls} API calls" in out


def test_the_command_line_chooses_whose_questions_are_asked_whatever_the_file_says(colours: Colours) -> None:
    Path("own.yaml").write_text("own_questions: true\nwriter: openai/writer\nown_decay: 0.8\n", encoding="utf-8")
    Path("list.yaml").write_text("checklist: checklist.yaml\nweights: nowhere.json\n", encoding="utf-8")
    assert colours.judge("--config", "own.yaml", "--checklist", "checklist.yaml")[0] == 0
    assert colours.asked == ["judge"] * 4
    assert all("Is it right?" in body["messages"][-1]["content"] for body in colours.server.bodies)
    assert colours.judge("--config", "list.yaml", "--own-questions")[0] == 0
    assert any("response_format" in body for body in colours.server.bodies)


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        (("--own-questions", "--checklist", "checklist.yaml"), "leave out --checklist, or that"),
        (("--own-questions", "--judge", "judge.yaml"), "leave out --own-questions, or --judge"),
        (("--own-questions", "--stop-within", "0.1"), "an example's own questions are all asked"),
        (("--checklist", "checklist.yaml", "--writer", "openai/w"), "no question is written for an example"),
    ],
)
def test_what_does_not_go_together_is_refused_with_the_reason(
    colours: Colours, more: tuple[str, ...], problem: str
) -> None:
    code, out, err = colours.judge(*more)
    assert (code, out, colours.asked) == (2, "", [])
    assert problem in err


def test_verdicts_on_own_questions_are_not_taken_for_a_checklists(colours: Colours) -> None:
    assert colours.judge("--own-questions", "-o", "verdicts.jsonl")[0] == 0
    code, _, err = colours("diagnose", "colours.jsonl", "--checklist", "checklist.yaml", "--verdicts", "verdicts.jsonl")
    assert code == 2
    assert says(err, "verdicts.jsonl", "line 1", "'asked'", "'q1'", "'c0'")
