"""Arguments of another kind than a function takes, from Python: a sentence that names the argument, and nothing is bought."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import askance
from askance.models.base import Answer, Request
from askance.prompts.errors import InputError
from askance.testing import ScriptedModel
from tests.said import naming

pytestmark = pytest.mark.usefixtures("sandbox")

ONE: Any = askance.Checklist(questions=(askance.Question(id="q", text="Is it so?"),))
ROWS: Any = [{"id": f"e{k}", "input": "in", "output": f"out {k}", "human": {"overall": k % 5}} for k in range(40)]


def evaluate(data: Any = ROWS, **more: Any) -> Any:
    return askance.evaluate(data, **{"checklist": ONE, "model": ScriptedModel(lambda _: 0.9), "no_cache": True} | more)


def align(run: Any = "run", **more: Any) -> Any:
    return askance.align(ROWS, checklist=ONE, model=ScriptedModel(lambda _: 0.9), run=run, **more)


class Plain:
    """A model whose method is not asynchronous."""

    name = identity = "mine/plain"

    def answer(self, request: Request) -> Answer:
        return Answer("Yes", None, 1, 1)


class Text:
    """A model that answers with a text alone."""

    name = identity = "mine/text"

    async def answer(self, request: Request) -> str:
        return "Yes"


class Nameless:
    async def answer(self, request: Request) -> Answer:
        return Answer("Yes", None, 1, 1)


WRONG: dict[str, tuple[Callable[[], Any], tuple[str, ...]]] = {
    "no data": (lambda: evaluate(None), ("the data", "NoneType")),
    "a number as data": (lambda: evaluate(5), ("the data", "int")),
    "no data of a kept judge": (lambda: askance.load_judge("j.yaml").evaluate(None), ("the data",)),  # type: ignore[arg-type]
    "a class as model": (lambda: evaluate(model=ScriptedModel), ("model", "ScriptedModel")),
    "a model without a name": (lambda: evaluate(model=Nameless()), ("model", "Nameless", "'name'")),
    "a model that is not asynchronous": (lambda: evaluate(model=Plain()), ("'answer'", "Plain", "async def")),
    "a model that answers a text": (lambda: evaluate(model=Text()), ("'answer'", "Text", "str")),
    "two models in one name": (lambda: evaluate(model="openai/a,openai/b"), ("'openai/a,openai/b'", "one")),
    "a prompt that is a mapping": (lambda: evaluate(prompt={"a": 1}), ("prompt", "dict")),
    "a store that is a number": (lambda: evaluate(store=5, no_cache=False), ("store", "int")),
    "a watcher that is a text": (lambda: evaluate(watcher="me"), ("watcher", "str")),
    "no run": (lambda: align(run=None), ("run", "NoneType")),
    "one callback": (lambda: align(callbacks=print), ("callbacks", "[tell]")),
    "a callback that is none": (lambda: align(callbacks=[3]), ("callbacks", "int")),
    "no judge": (lambda: askance.load_judge(None), ("judge", "NoneType")),  # type: ignore[arg-type]
    "no run to resume": (lambda: askance.resume(None), ("run", "NoneType")),  # type: ignore[arg-type]
    "no memory": (lambda: askance.load_memory(None), ("memory", "NoneType")),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("case", WRONG)
def test_an_argument_of_another_kind_is_named(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("j.yaml").write_text(
        "schema: askance.judge/1\nmodel: openai/m\nprompt: Judge.\nchecklist:\n  questions:\n    - id: q\n      text: Q?\n"
    )
    call, facts = WRONG[case]
    with pytest.raises(InputError, match=naming(*facts)):
        call()
    assert not Path("run").exists()


def test_an_error_of_ones_own_model_is_raised_alone() -> None:
    with pytest.raises(ZeroDivisionError) as found:
        evaluate(model=ScriptedModel(lambda _: 1 / 0))  # type: ignore[arg-type, return-value]
    assert found.value.__context__ is None
