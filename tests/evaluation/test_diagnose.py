"""Verdicts are bought, read from a file or given; one judge at a time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import askance
from askance.evaluation.diagnose import diagnose_verdicts
from askance.models.base import Request
from askance.prompts.checklist import Checklist, Question
from askance.prompts.errors import BudgetExceededError, InputError
from askance.prompts.examples import Example
from askance.prompts.prompt import Prompt
from askance.prompts.verdicts import Verdict, save_verdicts
from askance.testing import ScriptedModel
from tests.said import naming

pytestmark = pytest.mark.usefixtures("sandbox")

CHECKLIST = Checklist(questions=[Question(id="rises", text="Rises?"), Question(id="always", text="Always?")])


def rows(n: int = 20) -> list[dict[str, Any]]:
    return [{"id": f"e{k}", "input": f"in {k}", "output": f"out {k}", "human": {"overall": k}} for k in range(n)]


def by_output(request: Request) -> float:
    told = request.messages[-1][1]
    return 0.99 if "Always?" in told else 0.05 + 0.045 * int(told.split("out ")[1].split()[0])


def judge(**options: Any) -> ScriptedModel:
    return ScriptedModel(by_output, name="world/judge", **options)


@pytest.fixture
def file(sandbox: Path) -> Path:
    """A verdicts file, as an evaluation writes it."""
    found = askance.evaluate(rows(), checklist=CHECKLIST, model=judge(), no_cache=True)
    path = sandbox / "verdicts.jsonl"
    save_verdicts(path, found.verdicts)
    return path


def test_verdicts_are_bought_and_what_they_cost_is_known() -> None:
    model = judge()
    found = askance.diagnose(rows(), checklist=CHECKLIST, model=model)
    assert len(model.requests) == 40
    assert found.budget is not None and found.budget.calls == 40
    assert found.questions[0].human_p_yes.value == pytest.approx(1)
    assert [finding.kind for finding in found.findings] == ["never_varies", "few_examples"]
    assert found.to_dict()["calls"] == 40


def test_what_an_evaluation_bought_is_not_bought_again() -> None:
    askance.evaluate(rows(), checklist=CHECKLIST, model=judge())
    model = judge()
    found = askance.diagnose(rows(), checklist=CHECKLIST, model=model, repeat=1)
    assert model.requests == []
    assert found.coverage.answered == 40


def test_a_file_of_verdicts_comes_to_the_same_and_buys_nothing(file: Path) -> None:
    bought = askance.diagnose(rows(), checklist=CHECKLIST, model=judge())
    read = askance.diagnose(rows(), checklist=CHECKLIST, verdicts=file)
    assert read.budget is None
    assert read.questions == bought.questions
    assert read.findings == bought.findings
    assert "calls" not in read.to_dict()


def test_what_moves_no_figure_is_refused(file: Path) -> None:
    for given in ({"weights": "w.json"}, {"human_scale": (0, 100)}, {"scores": "hard"}):
        for source in ({"verdicts": file}, {"model": judge()}):
            with pytest.raises(InputError, match=f"{next(iter(given))}: "):
                askance.diagnose(rows(), checklist=CHECKLIST, **source, **given)


def test_repeats_are_bought_and_show_flips() -> None:
    asked: dict[str, int] = {}

    def unsteady(request: Request) -> float:
        key = request.messages[-1][1]
        asked[key] = asked.get(key, 0) + 1
        return 0.9 if asked[key] % 2 else 0.1

    found = askance.diagnose(rows(), checklist=CHECKLIST, model=ScriptedModel(unsteady, slots=1), repeat=2)
    assert found.replicates == 2
    assert [question.flips for question in found.questions] == [1, 1]


def test_the_field_map_and_the_limit_hold_for_bought_and_for_given_verdicts(file: Path) -> None:
    named = [{"name": row["id"], "text": row["input"], "summary": row["output"], "score": row["human"]["overall"]} for row in rows()]  # fmt: skip
    options: dict[str, Any] = {
        "field": {"id": "name", "input": "text", "output": "summary", "human.overall": "score"},
        "limit": 12,
    }
    for source in ({"model": judge()}, {"verdicts": file}):
        found = askance.diagnose(named, checklist=CHECKLIST, **source, **options)
        assert (found.examples, len(found.verdicts)) == (12, 24)
        assert found.questions[0].human_p_yes.n == 12


def test_of_several_judges_one_is_picked_by_model_or_prompt(file: Path) -> None:
    prompt = Prompt("Be strict.")
    ours = [Verdict(f"e{k}", "rises", "other/judge", prompt.hash, k > 3, 0.5) for k in range(20)]
    theirs = [Verdict(f"e{k}", "rises", "world/judge", "abc", k > 9, 0.5) for k in range(20)]
    common: dict[str, Any] = {"checklist": CHECKLIST, "verdicts": ours + theirs}
    with pytest.raises(InputError, match="2 judges"):
        askance.diagnose(rows(), **common)
    assert askance.diagnose(rows(), model="other/judge", **common).questions[0].yes_rate == 0.8
    assert askance.diagnose(rows(), model=judge(), **common).questions[0].yes_rate == 0.5
    assert askance.diagnose(rows(), prompt=prompt, **common).questions[0].yes_rate == 0.8
    with pytest.raises(InputError, match=naming("no/judge", "other/judge", "world/judge")):
        askance.diagnose(rows(), model="no/judge", **common)
    with pytest.raises(InputError, match="by the prompt"):
        askance.diagnose(rows(), prompt=Prompt("New."), **common)


def test_a_budget_ends_it() -> None:
    with pytest.raises(BudgetExceededError):
        askance.diagnose(rows(), checklist=CHECKLIST, model=judge(slots=1), call_budget=3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": None}, "needs a model to ask, or verdicts that are there already"),
        ({"model": None, "verdicts": []}, "There are no verdicts"),
        ({"model": None, "verdicts": "nowhere.jsonl"}, "nowhere.jsonl: there is no such file"),
        ({"repeats": 3}, "Did you mean 'repeat'?"),
        ({"pairs": -1}, "pairs: must be greater than or equal to 0, not -1"),
    ],
)
def test_bad_input_is_a_sentence(change: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"checklist": CHECKLIST, "model": judge()} | change
    with pytest.raises(InputError) as error:
        askance.diagnose(rows(), **arguments)
    assert message in str(error.value)


def test_verdicts_of_other_data_are_refused_by_line(file: Path) -> None:
    with pytest.raises(InputError, match=naming("verdicts.jsonl", "line 21", "'example'", "'e10'")):
        askance.diagnose(rows(10), checklist=CHECKLIST, verdicts=file)


def test_people_who_answered_a_question_that_looks_for_a_fault_agree_with_a_judge_that_answers_like_them() -> None:
    fault = Checklist(questions=[Question(id="falls", text="Falls?", dimension="form", good="no")])
    answered = [row | {"human": {"falls": "yes" if k > 9 else "no"}} for k, row in enumerate(rows())]
    found = askance.diagnose(answered, checklist=fault, model=judge())
    assert found.questions[0].human_p_yes.value == pytest.approx(0.87, abs=0.01)
    turned = [row | {"human": {"falls": "no" if k > 9 else "yes"}} for k, row in enumerate(rows())]
    assert askance.diagnose(turned, checklist=fault, model=judge()).questions[0].human_p_yes.value < -0.8


def test_a_scale_given_downwards_turns_the_correlation_with_people() -> None:
    checklist = Checklist(questions=(Question(id="q", text="Is it good?"),))
    examples = [Example(id=f"e{n}", input="i", output="o", human={"overall": n}) for n in range(6)]
    verdicts = [
        Verdict(example=f"e{n}", question="q", model="m", prompt="p", answer=n > 2, p_yes=n / 5, p_yes_from="logprob")
        for n in range(6)
    ]
    up, down = (diagnose_verdicts(examples, checklist, verdicts, human_scale=scale) for scale in ((0, 5), (5, 0)))
    assert [round(found.questions[0].human_p_yes.value or 0) for found in (up, down)] == [1, -1]
