"""Images that are shown to judges and generators, and models that take none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

import askance
from askance.models.direct import DirectModel
from askance.prompts.checklist import Checklist, Question
from askance.prompts.errors import InputError
from askance.prompts.prompt import Prompt
from askance.testing import ScriptedModel, StandInServer
from tests.said import says

pytestmark = pytest.mark.usefixtures("sandbox")

PIXEL = "data:image/png;base64,iVBORw0KGgo="
LOOK = [
    {"role": "user", "content": [{"type": "text", "text": "Look."}, {"type": "image_url", "image_url": {"url": PIXEL}}]}
]
ROWS: list[dict[str, Any]] = [
    {"id": "plain", "input": "Hi.", "output": "Hello."},
    {"id": "shown", "input": LOOK, "output": "A cat."},
]
ASKED = Checklist(questions=(Question(id="q", text="Is it right?"),))
OF_OUTPUT = Checklist(questions=(Question(id="q", text="Is it right?", sees="output"),))


def text_only() -> ScriptedModel:
    model = ScriptedModel(lambda _: 0.9)
    model.takes_images = False  # type: ignore[attr-defined]
    return model


def test_a_judge_is_shown_the_image_with_the_transcript() -> None:
    with StandInServer(lambda _: 0.9) as server:
        found = askance.evaluate(ROWS, checklist=ASKED, model="openai/m", api_base=server.url)
    plain, shown = sorted(
        (each["messages"][-1]["content"] for each in server.bodies), key=lambda said: isinstance(said, list)
    )
    assert found.coverage.share == 1 and isinstance(plain, str)
    assert [each["type"] for each in shown] == ["image_url", "text"] and shown[0]["image_url"]["url"] == PIXEL
    assert "Look.\n[image_url]" in shown[1]["text"] and shown[1]["text"].count("Is it right?") == 1


@pytest.mark.parametrize("limit", [None, 2])
def test_a_model_that_takes_none_is_not_asked_anything(limit: int | None) -> None:
    model = text_only()
    with pytest.raises(InputError) as caught:
        askance.evaluate(ROWS, checklist=ASKED, model=model, limit=limit)
    assert says(str(caught.value), model.name, "takes no images", "'shown'") and not model.requests


def test_it_judges_where_no_image_would_be_shown() -> None:
    assert askance.evaluate(ROWS, checklist=OF_OUTPUT, model=text_only()).coverage.share == 1
    assert askance.evaluate(ROWS[:1], checklist=ASKED, model=text_only()).coverage.share == 1
    prompt = Prompt("Judge this:\n{output}")
    assert askance.evaluate(ROWS, checklist=ASKED, model=text_only(), prompt=prompt).coverage.share == 1


def test_an_endpoint_that_turns_out_to_take_none_ends_the_command() -> None:
    def reply(body: Mapping[str, Any]) -> Any:
        if isinstance(body["messages"][-1]["content"], list):
            return 400, {"error": {"message": "m is not a multimodal model"}}
        return 0.9

    with StandInServer(reply) as server, pytest.raises(askance.AskanceError) as caught:
        askance.evaluate(ROWS, checklist=ASKED, model="openai/m", api_base=server.url)
    assert says(str(caught.value), "openai/m", "takes no images", "is not a multimodal model")
    assert sum(isinstance(each["messages"][-1]["content"], list) for each in server.bodies) == 1


def test_a_run_refuses_before_its_first_call(tmp_path: Any) -> None:
    rows = [each | {"id": f"{n}", "human": {"overall": n % 2}} for n, each in enumerate([ROWS[0]] * 11 + [ROWS[1]])]
    model = text_only()
    with pytest.raises(InputError) as caught:
        askance.align(rows, checklist=ASKED, model=model, run=tmp_path / "run")
    assert says(str(caught.value), "takes no images", "'11'") and not model.requests
    writer = text_only()
    with pytest.raises(InputError):
        askance.tune(
            rows, checklist=ASKED, generator=writer, judge=model, prompt=Prompt("Write."), run=tmp_path / "tune"
        )
    assert not writer.requests


@pytest.mark.parametrize(
    ("name", "takes"),
    [
        ("gpt-3.5-turbo", False),
        ("gpt-4", False),
        ("gpt-4-0613", False),
        ("o3-mini", False),
        ("o1-mini-2024-09-12", False),
    ]
    + [(each, True) for each in ("gpt-4o", "gpt-4.1-mini", "gpt-4-turbo", "gpt-5-mini", "o3", "o4-mini")],
)
def test_openais_models_of_texts_alone_are_known_at_openai(name: str, takes: bool) -> None:
    assert DirectModel(name, name, "https://api.openai.com/v1", identity="i").takes_images is takes
    assert DirectModel(name, name, "http://127.0.0.1:1/v1", identity="i").takes_images
