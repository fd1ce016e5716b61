"""Refusals in the words of many endpoints, and the request that is sent instead."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from askance.models.base import Answer, ModelError
from askance.models.refusals import SMALL_TEMPERATURE, takes_no_images
from askance.models.request_form import Learner, Refusal

FIELDS = {
    "model": "m",
    "messages": [],
    "max_tokens": 9,
    "temperature": 0.0,
    "seed": 7,
    "logprobs": True,
    "top_logprobs": 20,
    "response_format": {"type": "json_schema"},
}
OPENAI_TEMPERATURE = (
    "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) value is supported."
)


class Endpoint:
    """Refuses a request as long as ``wrong`` says so, with one status and text."""

    def __init__(self, said: str, wrong: Any, status: int = 400) -> None:
        self.said, self.wrong, self.status = said, wrong, status
        self.sent: list[dict[str, Any]] = []

    async def __call__(self, sent: dict[str, Any]) -> Answer | Refusal:
        self.sent.append(sent)
        if self.wrong(sent):
            return Refusal(self.status, self.said, ModelError(self.said, status=self.status))
        return Answer("Yes")


def has(*names: str) -> Any:
    return lambda sent: any(name in sent for name in names)


async def taken(endpoint: Endpoint, fields: Mapping[str, Any] = FIELDS) -> dict[str, Any]:
    """The request that an endpoint took; the second time it is sent at once in this form."""
    learner = Learner()
    assert (await learner.ask(fields, endpoint)).text == "Yes"
    last, before = endpoint.sent[-1], len(endpoint.sent)
    assert before > 1, "nothing was refused"
    await learner.ask(fields, endpoint)
    assert endpoint.sent[before:] == [last]
    return last


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ("response_format value as json_schema is enabled only for api versions 2024-08-01-preview and later", 400),
        (
            "Invalid JSON payload received. Unknown name \"additionalProperties\" at 'generation_config.response_schema'",
            400,
        ),
        ("The provided JSON schema contains features not supported by xgrammar.", 400),
        ("Failed to parse grammar", 400),
        ("Invalid schema for response_format 'answer': In context=(), 'maxLength' is not permitted.", 400),
        ("responseSchema: too many states for serving", 400),
        ("Schema is too complex", 422),
        ("structured outputs are for other plans", 400),
        ("guided decoding is off", 501),
        ("This response_format type is unavailable now", 400),
    ],
)
async def test_a_schema_that_is_refused_in_any_words_is_left_out(said: str, status: int) -> None:
    sent = await taken(Endpoint(said, has("response_format"), status))
    assert set(sent) == set(FIELDS) - {"response_format"}


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ("Logprobs need a server that was started with --enable-logprobs", 400),
        ("This server requires --enable-logprobs", 501),
        ("logprobs cannot be used with speculative decoding", 400),
        ("You are not allowed to request logprobs from this model", 403),
        ("Logprobs is not enabled for models/m", 400),
        ("log probabilities come with the paid plan", 422),
        ("logprobs are not supported with reasoning models.", 400),
        ("NotImplementedError: logprobs is not currently supported by the TPU backend", 500),
    ],
)
async def test_log_probabilities_that_are_refused_in_any_words_are_left_out(said: str, status: int) -> None:
    sent = await taken(Endpoint(said, has("logprobs", "top_logprobs"), status))
    assert set(sent) == set(FIELDS) - {"logprobs", "top_logprobs"}


@pytest.mark.parametrize(
    ("said", "most"),
    [
        ("top_logprobs exceeds the limit of 19", 19),
        ("top_logprobs must be less than 6", 5),
        ("`top_logprobs` at most 5", 5),
        ("top_logprobs: Input should be less than or equal to 5", 5),
        ("top_logprobs must be smaller than 11.", 10),
        ("Number of logprobs should be in range [0, 20)", 19),
        ("Invalid value for logprobs: only 8 are kept", 8),
        ("Requested sample logprobs of 20, which is greater than max allowed: 5", 5),
        ("Expected a value <= 5 for top_logprobs, but got 20 instead.", 5),
        ("the valid range of top_logprobs is [0, 5]", 5),
        ("5 is greater than the maximum of 1 - 'logprobs'", 1),
        ("The maximum number of top_logprobs is 10", 10),
    ],
)
async def test_as_many_alternatives_are_asked_for_as_there_are(said: str, most: int) -> None:
    sent = await taken(Endpoint(said, lambda sent: sent.get("top_logprobs", 0) > most))
    assert sent == {**FIELDS, "top_logprobs": most}


async def test_alternatives_whose_number_is_misread_end_without_any() -> None:
    sent = await taken(Endpoint("error 17 of 19: no logprobs here", has("top_logprobs")))
    assert set(sent) == set(FIELDS) - {"logprobs", "top_logprobs"}


@pytest.mark.parametrize(
    "said",
    [
        "`temperature` must be strictly positive",
        "temperature: Input should be greater than 0",
        "temperature=0 is not supported, it must be > 0",
        "temperature must be non-zero",
        "temperature should be in (0, 1]",
        "The temperature parameter is illegal, see the documentation",
    ],
)
async def test_a_temperature_above_zero_is_sent_where_zero_is_refused(said: str) -> None:
    sent = await taken(Endpoint(said, lambda sent: sent.get("temperature") == 0, 422))
    assert sent == {**FIELDS, "temperature": SMALL_TEMPERATURE}


@pytest.mark.parametrize(
    "said",
    [
        OPENAI_TEMPERATURE,
        "`temperature` may only be set to 1 when thinking is enabled.",
        "invalid temperature: only 1 is allowed for this model",
        "temperature: `temperature` is deprecated for this model.",
        "Unsupported parameter: 'temperature' is not supported with this model.",
    ],
)
@pytest.mark.parametrize("temperature", [0.0, 0.7])
async def test_a_temperature_that_cannot_be_set_is_left_out(said: str, temperature: float) -> None:
    sent = await taken(Endpoint(said, has("temperature")), {**FIELDS, "temperature": temperature})
    assert "temperature" not in sent


async def test_a_temperature_that_is_too_high_is_an_error_and_not_left_out() -> None:
    endpoint = Endpoint("temperature: must be between 0 and 1", lambda sent: sent.get("temperature", 0) > 1)
    with pytest.raises(ModelError, match="between 0 and 1"):
        await Learner().ask({**FIELDS, "temperature": 1.5}, endpoint)
    assert len(endpoint.sent) == 1


async def test_the_cap_has_the_name_that_the_endpoint_wants() -> None:
    said = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    sent = await taken(Endpoint(said, has("max_tokens")))
    assert (sent.get("max_tokens"), sent["max_completion_tokens"]) == (None, 9)


async def test_no_fewer_tokens_are_asked_for_than_the_endpoint_takes() -> None:
    said = "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got 9 instead."
    assert await taken(Endpoint(said, lambda sent: sent["max_tokens"] < 16)) == {**FIELDS, "max_tokens": 16}


async def test_the_field_that_an_error_names_as_its_cause_is_left_out_first() -> None:
    error = {"message": "Unsupported: seed, with response_format and temperature", "param": "seed"}
    sent = await taken(Endpoint(json.dumps({"error": error}), has("seed")))
    assert set(sent) == set(FIELDS) - {"seed"}


async def test_an_endpoint_that_refuses_one_field_after_another_is_asked_without_all_of_them() -> None:
    """As a deployment is that runs a GPT-5: the cap, the temperature and the log-probabilities."""

    async def send(sent: dict[str, Any]) -> Answer | Refusal:
        said = {
            "max_tokens": "'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
            "temperature": OPENAI_TEMPERATURE,
            "logprobs": "logprobs are not supported with reasoning models.",
        }
        for name, text in said.items():
            if name in sent:
                return Refusal(400, text, ModelError(text))
        return Answer(",".join(sorted(sent)))

    found = await Learner().ask(FIELDS, send)
    assert found.text == "max_completion_tokens,messages,model,response_format,seed"


async def test_a_refusal_with_another_cause_is_raised_and_nothing_is_learned() -> None:
    learner, endpoint = Learner(), Endpoint("the prompt is longer than the context", lambda sent: True)
    with pytest.raises(ModelError, match="longer"):
        await learner.ask(FIELDS, endpoint)
    assert len(endpoint.sent) == 1
    misleading = Endpoint("no schema, seed, temperature or logprobs help: the text is too long", lambda sent: True)
    with pytest.raises(ModelError, match="too long"):
        await learner.ask(FIELDS, misleading)
    assert learner.facts == Learner().facts


@pytest.mark.parametrize("bad", [1, 2])
async def test_json_that_the_endpoint_itself_cannot_use_is_asked_for_again(bad: int) -> None:
    said = '{"error": {"message": "Failed to generate JSON. See schema.", "code": "json_validate_failed"}}'
    endpoint = Endpoint(said, lambda sent: len(endpoint.sent) <= bad)
    learner = Learner()
    assert (await learner.ask(FIELDS, endpoint)).text == "Yes"
    assert endpoint.sent[1] == FIELDS
    assert learner.facts == Learner().facts, "the schema is taken, and asked for the next time"


async def test_json_that_stays_of_no_use_is_an_error_that_may_pass() -> None:
    endpoint = Endpoint('{"error": {"code": "json_validate_failed"}}', lambda sent: True)
    with pytest.raises(ModelError) as caught:
        await Learner().ask(FIELDS, endpoint)
    assert (caught.value.retry, len(endpoint.sent)) == (True, 3)


async def test_an_answer_that_had_no_room_is_one_that_was_cut_off() -> None:
    said = "Could not finish the message because max_tokens or model output limit was reached. Please try again with higher max_tokens."
    found = await Learner().ask(FIELDS, Endpoint(said, lambda sent: True))
    assert (found.text, found.finish) == ("", "length")


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (400, "This model does not support image inputs."),
        (400, "Invalid content type. image_url is only supported by certain models."),
        (400, "meta/llama is not a multimodal model"),
        (400, "At most 0 image(s) may be provided in one request."),
        (500, "image input is not supported - hint: you may need to provide the mmproj"),
        (404, "No endpoints found that support image input"),
        (400, "'messages.0.content' : value must be a string"),
        (422, "unknown variant `image_url`, expected `text`"),
    ],
)
def test_that_a_model_takes_no_images_is_read(status: int, said: str) -> None:
    assert takes_no_images(status, said) and not takes_no_images(429, said)


@pytest.mark.parametrize(
    "said",
    ["Failed to download image from https://x.test/a.png", "Image is too large", "Invalid image data", "bad seed"],
)
def test_a_fault_of_one_image_says_nothing_of_the_model(said: str) -> None:
    assert not takes_no_images(400, said)
