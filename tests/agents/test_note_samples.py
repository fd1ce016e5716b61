from __future__ import annotations

import json

import pytest
from pydantic import BaseModel

from askance.agents.agent import SAMPLE_TEMPERATURE, Agent, ParseError
from askance.agents.notes import Sample, agree, most_agreed, take_samples
from askance.agents.rules import STRICTER
from askance.models.base import ModelError
from askance.models.gateway import Gateway, RetryPolicy
from askance.testing import Reply, ScriptedModel

NO_IF = "Answer no if"


class Saying(BaseModel):
    say: str


def sample(text: str, kind: str = "") -> Sample:
    return Sample(text, "", "", kind)


class Sayer(Agent):
    role = "note_taker"

    async def take(self, number: int) -> Sample:
        said = await self._ask(None, "go", Saying, max_tokens=400, check=self.check, number=number)
        return sample(said.say)

    def check(self, said: Saying) -> None:
        if said.say == "bad":
            raise ValueError("that is bad")


async def taken(*replies: Reply, count: int) -> tuple[list[str], ScriptedModel]:
    said = [json.dumps({"say": each}) if isinstance(each, str) else each for each in replies]
    model = ScriptedModel(said, slots=1)
    sayer = Sayer(Gateway(retry=RetryPolicy(1)), model, seed=5)
    found = await take_samples(sayer.take, count)
    return [each.text for each in found], model


async def test_every_sample_but_the_first_has_a_temperature_and_all_have_seeds_of_their_own() -> None:
    texts, model = await taken("one", "two", "three", count=3)
    assert texts == ["one", "two", "three"]
    sent = [(each.parameters.temperature, each.parameters.seed, each.replicate) for each in model.requests]
    assert sent == [(0.0, 5, 0), (SAMPLE_TEMPERATURE, 6, 1), (SAMPLE_TEMPERATURE, 7, 2)]


async def test_samples_that_cannot_be_used_are_left_out() -> None:
    texts, _ = await taken("one", ModelError("no reply"), "three", count=3)
    assert texts == ["one", "three"]


async def test_the_first_failure_is_raised_where_none_can_be_used_and_a_fatal_one_always() -> None:
    with pytest.raises(ParseError, match="that is bad"):
        await taken("bad", "bad", count=1)
    with pytest.raises(ModelError, match="wrong key"):
        await taken("one", ModelError("wrong key", fatal=True), count=2)


def test_the_sample_with_which_most_agree_is_kept() -> None:
    odd = sample("Answer no if the output changes a date.")
    first = sample("Answer no if the output invents a name or a place.")
    second = sample("Answer no if the output invents a place or a person's name.")
    assert most_agreed([odd, second, first]) in (first, second)
    assert most_agreed([odd]) == odd


def test_samples_of_the_same_kind_agree_whatever_their_words() -> None:
    one = sample("Answer no if the output invents a name.", kind="An added name.")
    other = sample("Answer no if somebody appears from nowhere.", kind="an added name")
    assert agree(one, other)
    assert most_agreed([sample(f"{NO_IF} it rhymes.", "a form"), one, other]) == one
    assert not agree(sample(f"{NO_IF} it rhymes."), sample(f"{NO_IF} nothing follows."))


def test_a_tie_goes_to_the_earliest() -> None:
    one, other = (
        sample(f"{STRICTER.opening} invents a name."),
        sample("Answer no if the output turns things round."),
    )
    assert most_agreed([one, other]) == one
    assert most_agreed([other, one]) == other


def test_there_must_be_something_to_choose_from() -> None:
    with pytest.raises(ValueError, match="no samples"):
        most_agreed([])
