"""What a trained scorer reads of a question, and what is said where its base cannot be loaded."""

from __future__ import annotations

import pickle
from contextlib import nullcontext
from typing import Any

import pytest

from askance.models.trained import bases
from askance.models.trained.scorer_file import scored_text
from askance.prompts.checklist import Question
from askance.prompts.errors import InputError
from askance.prompts.examples import Example
from askance.prompts.prompt import Prompt
from askance.training.mixture import asked_with
from tests.said import naming

EXAMPLE = Example(id="e", input="asked so", output="the output", context="a page", reference="a model answer")
WHOLE = Question(id="q", text="Is it short?", rubric="One line.", reference="Yes, in one line.")
ALONE = WHOLE.model_copy(update={"sees": "output"})


def test_a_scorer_reads_the_question_the_output_and_what_it_was_made_from() -> None:
    text = scored_text(WHOLE, EXAMPLE)
    assert text.segments == (
        "Is it short?\nOne line.\nYes, in one line.\nthe output",
        "a model answer\nasked so\na page",
    )


def test_of_the_output_alone_it_reads_nothing_else_of_the_example() -> None:
    text = scored_text(ALONE, EXAMPLE)
    assert text.segments == (scored_text(WHOLE, EXAMPLE).segments[0], "")


def test_neither_does_one_that_reads_the_conversation() -> None:
    for prompt in (Prompt("Judge."), Prompt("{context}\n\n{input}\n\n{output}"), Prompt("{output} for {input}?")):
        whole, alone = (str(asked_with(prompt)(each, EXAMPLE).messages) for each in (WHOLE, ALONE))
        assert "asked so" in whole and "asked so" not in alone
        assert "a page" not in alone and "the output" in alone


def test_what_a_question_sees_goes_with_it_to_another_machine() -> None:
    assert pickle.loads(pickle.dumps(ALONE)) == ALONE


def test_a_base_that_is_damaged_is_said_whatever_kind_of_error_its_package_has(monkeypatch: pytest.MonkeyPatch) -> None:
    class SafetensorError(Exception):
        """As in safetensors, of no other kind."""

    def from_pretrained(_: Any) -> None:
        raise SafetensorError("Error while deserializing header: header too small")

    monkeypatch.setattr(bases, "import_optional", lambda *_: None)
    monkeypatch.setattr(bases, "quiet", nullcontext)
    with pytest.raises(InputError, match=naming("base", "transformers", "encoder", "Error while deserializing")):
        bases.load(from_pretrained, "base", "an encoder")
