"""Several models and several prompts side by side: which judges there are, what they are called and what they ask."""

from __future__ import annotations

from math import log
from pathlib import Path
from typing import Any

import pytest

from askance.evaluation.compare.compare import compare, prepare
from askance.evaluation.compare.judges import JUDGES
from askance.evaluation.compare.protocol import OWN_WORDS, Entrant, line_up, models_of, prompts_of
from askance.models.base import Answer, Request
from askance.prompts.checklist import Checklist, Question
from askance.prompts.errors import InputError
from askance.prompts.prompt import Prompt
from askance.testing import ScriptedModel
from tests.said import naming

SIZE = 12
PROMPTS = ("Text: {output}\nBe strict.\n{question}\n", "Text: {output}\nBe kind.\n{question}\n")
CHECKLIST = Checklist(task="Write", questions=(Question(id="a", text="Is it right?", dimension="quality"),))


def rows() -> list[dict[str, Any]]:
    return [{"id": f"e{n}", "input": "", "output": f"<{n}>", "human": {"quality": n}} for n in range(SIZE)]


def able(request: Request) -> Answer:
    """Ranks as people do."""
    number = next(n for n in reversed(range(SIZE)) if f"<{n}>" in request.messages[-1][1])
    good = 0.05 + 0.9 * number / SIZE
    if "number from" in request.messages[-1][1]:
        return Answer(str(1 + 5 * number // SIZE), None, 100, 1)
    return Answer("Yes" if good > 0.5 else "No", (("Yes", (("Yes", log(good)), ("No", log(1 - good)))),), 100, 1)


def backwards(request: Request) -> Answer:
    """Ranks against people, and takes twice the tokens."""
    text = request.messages[-1][1]
    number = next(n for n in reversed(range(SIZE)) if f"<{n}>" in text)
    good = 0.95 - 0.9 * number / SIZE
    return Answer("Yes" if good > 0.5 else "No", (("Yes", (("Yes", log(good)), ("No", log(1 - good)))),), 200, 1)


def two() -> list[ScriptedModel]:
    return [ScriptedModel(backwards, name="openai/small"), ScriptedModel(able, name="openai/large")]


@pytest.fixture
def prompts(tmp_path: Path) -> list[Path]:
    files = [tmp_path / "strict.md", tmp_path / "kind.md"]
    for file, text in zip(files, PROMPTS, strict=True):
        file.write_text(text)
    return files


def labels(found: tuple[Entrant, ...]) -> list[str]:
    return [each.label for each in found]


def test_a_label_names_what_differs_and_nothing_else(prompts: list[Path]) -> None:
    named = prompts_of(prompts, [])
    assert labels(line_up(["binary"], ["openai/a"], named[:1])) == ["binary"]
    assert labels(line_up(["binary", "direct"], ["openai/a"], named[:1])) == ["binary", "direct"]
    assert labels(line_up(["binary"], ["openai/a", "openai/b"], named[:1])) == ["openai/a", "openai/b"]
    assert labels(line_up(["binary"], ["openai/a"], named)) == ["strict.md", "kind.md"]
    assert labels(line_up(["binary", "direct"], ["openai/a", "openai/b"], named)) == [
        "binary · openai/a · strict.md",
        "binary · openai/a · kind.md",
        "binary · openai/b · strict.md",
        "binary · openai/b · kind.md",
        "direct · openai/a",
        "direct · openai/b",
    ]


def test_a_panel_of_named_models_is_one_judge_whatever_models_there_are() -> None:
    found = line_up(["direct", "poll"], ["openai/a", "openai/b"], prompts_of(None, []), ["openai/c", "openai/d"])
    assert labels(found) == ["direct · openai/a", "direct · openai/b", "poll"]
    assert found[-1].model_name == "openai/c, openai/d"
    assert labels(line_up(["poll"], ["openai/a", "openai/b"], prompts_of(None, []))) == ["openai/a", "openai/b"]


@pytest.mark.parametrize("judge", JUDGES)
def test_only_judges_that_ask_questions_ask_otherwise_with_another_prompt(judge: str, prompts: list[Path]) -> None:
    def asked(prompt: Path) -> set[tuple[str, ...]]:
        def reply(request: Request) -> str:
            texts = " ".join(text for _, text in request.messages)
            if "dropped" in texts:
                return '{"dropped": []}'
            return '{"questions": ["Is it short?"]}' if "questions above" in texts else '{"steps": ["Look."]}'

        model = ScriptedModel(reply)
        options = {"no_cache": True, "min_coverage": 0.0}
        prepare(rows()[:2], model, [judge], CHECKLIST, None, prompt, None, (), (), options).run()
        return {text for request in model.requests for _, text in request.messages}

    assert (asked(prompts[0]) == asked(prompts[1])) is (judge in OWN_WORDS)


def test_every_model_with_every_prompt_is_a_judge_held_against_the_first(prompts: list[Path]) -> None:
    found = compare(
        rows(), model=two(), judges=["binary"], prompt=prompts, checklist=CHECKLIST, no_cache=True, resamples=200
    )
    assert [row.name for row in found.rows] == [
        "openai/small · strict.md",
        "openai/small · kind.md",
        "openai/large · strict.md",
        "openai/large · kind.md",
    ]
    assert found.model == "openai/small, openai/large"
    values = [row.average["spearman"] for row in found.rows]
    assert values == pytest.approx([-1, -1, 1, 1])
    assert [row.costs.tokens for row in found.rows] == [201, 201, 101, 101]
    assert [each.judge for each in found.differences] == [row.name for row in found.rows[1:]]
    p_values = sorted(each.difference.p_value or 2.0 for each in found.differences[1:])
    assert all(each.p_adjusted is not None and each.p_adjusted >= p_values[0] for each in found.differences)
    assert found.differences[2].p_adjusted == pytest.approx(min(1.0, 3 * p_values[0]))
    row = found.to_dict()["judges"][2]
    assert (row["kind"], row["model"], row["prompt"]) == ("binary", "openai/large", "strict.md")


def test_a_second_run_with_a_further_model_asks_that_one_alone(tmp_path: Path, prompts: list[Path]) -> None:
    options = {"store": tmp_path / "v.db", "resamples": 200}
    one = ScriptedModel(able, name="openai/large")
    compare(rows(), model=one, judges=["binary"], prompt=prompts[0], checklist=CHECKLIST, **options)
    again, further = (ScriptedModel(able, name=name) for name in ("openai/large", "openai/other"))
    job = prepare(rows(), [again, further], ["binary"], CHECKLIST, None, prompts, None, (), (), options)
    assert {name: each.calls for name, each in job.estimate().items()} == {
        "openai/large · strict.md": 0,
        "openai/large · kind.md": SIZE,
        "openai/other · strict.md": SIZE,
        "openai/other · kind.md": SIZE,
    }
    found = job.run()
    assert (len(again.requests), len(further.requests)) == (SIZE, 2 * SIZE)
    assert found.paid.calls == 3 * SIZE


def test_what_would_be_one_judge_twice_or_leave_something_unused_is_refused(prompts: list[Path]) -> None:
    with pytest.raises(InputError, match="openai/a is named twice"):
        models_of(["openai/a", "openai/a"])
    with pytest.raises(InputError, match=naming("model", "at least one")):
        models_of([])
    prompts[1].write_text(PROMPTS[0])
    with pytest.raises(InputError, match=naming("strict.md", "kind.md", "the same text")):
        prompts_of(prompts, [])
    both = prompts_of([Prompt(text) for text in PROMPTS], [])
    assert [each.name for each in both] == ["prompt 1", "prompt 2"]
    with pytest.raises(InputError, match=naming("direct and cot", "several")):
        line_up(["direct", "cot"], ["openai/a"], both)
    with pytest.raises(InputError, match=naming("panel's models")):
        line_up(["poll"], ["openai/a", "openai/b"], both[:1], ["openai/c", "openai/d"])


def test_prompts_of_one_file_name_are_told_apart_by_their_paths(tmp_path: Path) -> None:
    files = [tmp_path / name / "p.md" for name in ("one", "two")]
    for file, text in zip(files, PROMPTS, strict=True):
        file.parent.mkdir()
        file.write_text(text)
    assert [each.name for each in prompts_of(files, [])] == [str(file) for file in files]
