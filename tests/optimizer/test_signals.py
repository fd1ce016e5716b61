from __future__ import annotations

from collections.abc import Callable

import pytest

from askance.agents.evaluator import Evaluator
from askance.models.base import ModelError, Request
from askance.models.gateway import Gateway
from askance.optimizer.signals import explanations, take_turns
from askance.prompts.checklist import Checklist, Question
from askance.prompts.examples import Example
from askance.prompts.lessons import Disagreement
from askance.prompts.prompt import Prompt
from askance.prompts.verdicts import Verdict
from askance.testing import Reply, ScriptedModel

EXAMPLES = [Example(id=name, input=f"in {name}", output=f"out {name}") for name in "xy"]
CHECKLIST = Checklist(questions=(Question(id="a", text="A?"), Question(id="b", text="B?")))
VERDICTS = [Verdict(example, question, "m", "p", True, 0.9, "logprob") for example in "xy" for question in "ab"]


def judge(script: Callable[[Request], Reply]) -> Evaluator:
    return Evaluator(Gateway(), ScriptedModel(script), Prompt("Judge."), CHECKLIST)


def test_turns_are_taken_until_all_had_theirs() -> None:
    def group(name: str, n: int) -> list[Disagreement]:
        return [Disagreement(example=str(i), question=name, target=True, reference=False, gap=0) for i in range(n)]

    assert [each.key for each in take_turns([group("a", 3), [], group("b", 1)])] == ["0/a", "0/b", "1/a", "2/a"]
    assert take_turns([]) == []


async def test_an_explanation_that_cannot_be_had_is_left_out() -> None:
    def script(request: Request) -> Reply:
        return ModelError("down") if "out y" in request.messages[1][1] else "Because."

    found = await explanations(judge(script), VERDICTS, EXAMPLES)
    assert found == {"x/a": "Because.", "x/b": "Because."}


async def test_an_explanation_that_can_never_be_had_ends_the_run() -> None:
    with pytest.raises(ModelError, match="wrong key"):
        await explanations(judge(lambda request: ModelError("wrong key", fatal=True)), VERDICTS[:1], EXAMPLES)
