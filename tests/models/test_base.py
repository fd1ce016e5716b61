from __future__ import annotations

import copy
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from askance.models.base import ModelError, Parameters, RequestKey, images_in, make_request
from askance.models.budget import IMAGE_TOKENS, reserved_tokens
from askance.models.direct import chat_fields
from askance.prompts.conversations.chat import with_images
from askance.prompts.messages import StructuredText

TEXT = st.text(max_size=12)
ROLES = st.sampled_from(["system", "user", "assistant"])
MESSAGES = st.lists(st.tuples(ROLES, TEXT), min_size=1, max_size=3)
PARAMETERS = st.builds(
    Parameters,
    max_tokens=st.integers(1, 3),
    temperature=st.sampled_from([0.0, 0.5, 1.0]),
    seed=st.sampled_from([None, 0, 1]),
    top_logprobs=st.sampled_from([0, 5]),
    schema=st.sampled_from([None, {"type": "object"}, {"type": "string"}]),
)
REQUESTS = st.tuples(TEXT, MESSAGES, PARAMETERS, st.integers(0, 2))


@given(REQUESTS, st.integers(0, 12))
def test_a_key_of_a_shared_beginning_is_the_key_of_the_whole(
    request_: tuple[str, list[tuple[str, str]], Parameters, int], cut: int
) -> None:
    identity, messages, parameters, replicate = request_
    *whole, (role, content) = messages
    keys = RequestKey(identity, parameters, replicate, [*whole, (role, content[:cut])])
    assert keys.key(content[cut:]) == make_request(identity, messages, parameters, replicate).key


@given(REQUESTS, REQUESTS)
def test_requests_that_differ_in_any_part_have_different_keys(
    one: tuple[str, list[tuple[str, str]], Parameters, int], other: tuple[str, list[tuple[str, str]], Parameters, int]
) -> None:
    assert (make_request(*one).key == make_request(*other).key) == (one == other)


def test_each_part_counts() -> None:
    parameters = Parameters(1)
    messages = [("system", "a"), ("user", "b")]
    keys = {
        make_request(*arguments).key
        for arguments in (
            ("m", messages, parameters, 0),
            ("n", messages, parameters, 0),
            ("m", messages, parameters, 1),
            ("m", [("system", "ab"), ("user", "")], parameters, 0),
            ("m", [("system", ""), ("user", "ab")], parameters, 0),
            ("m", [("user", "ab")], parameters, 0),
            ("m", [("system", "a"), ("user", "b\ud800")], parameters, 0),
            ("m", messages, replace(parameters, max_tokens=2), 0),
            ("m", messages, replace(parameters, temperature=1), 0),
            ("m", messages, replace(parameters, seed=0), 0),
            ("m", messages, replace(parameters, top_logprobs=1), 0),
            ("m", messages, replace(parameters, schema={}), 0),
        )
    }
    assert len(keys) == 12


def test_a_text_that_looks_like_another_message_is_not_one() -> None:
    two = [("system", "xassistant:1:y"), ("user", "z")]
    three = [("system", "x"), ("assistant", "y"), ("user", "z")]
    faked = [("system", "xassistant:y"), ("user", "z")]
    assert len({make_request("m", messages, Parameters(1)).key for messages in (two, three, faked)}) == 3


def test_equal_parameters_have_equal_keys() -> None:
    whole, real = Parameters(1, temperature=0), Parameters(1, temperature=0.0)
    assert make_request("m", [("user", "x")], whole).key == make_request("m", [("user", "x")], real).key


def test_a_model_error_is_an_error_like_others() -> None:
    error = ModelError("It failed.", retry=True, retry_after=3.0, status=429)
    assert str(error) == "It failed."
    assert {error: 1}[error] == 1
    again = copy.copy(error)
    assert (str(again), again.retry, again.retry_after, again.status) == ("It failed.", True, 3.0, 429)


def image(url: str) -> dict[str, object]:
    return {"type": "image_url", "image_url": {"url": url}}


def test_images_and_calls_of_tools_are_part_of_the_key_and_a_plain_content_has_its_old_one() -> None:
    one, other = image("https://x.test/a.png"), image("https://x.test/b.png")
    call = StructuredText("a", {"content": None, "tool_calls": [{"id": "c", "function": {"name": "a"}}]})
    contents = ["a", with_images("a", [one]), with_images("a", [other]), with_images("a", [one, other]), call]
    contents += [StructuredText("a", {"content": "a", "tool_call_id": "c"})]
    keys = {
        make_request("m", said, Parameters(1)).key
        for each in contents
        for said in ([("user", each)], [("user", each), ("user", "b")])
    }
    assert len(keys) == 12
    plain = make_request("m", [("user", with_images("a", []))], Parameters(1)).key.hex()
    assert (
        plain == "f39323a7fef0fdada239099d057083f163ca26c310b23628ff7d0062b50d6cd7"
    )  # answers that were bought before are found


def test_a_key_with_images_is_the_same_from_its_shared_beginning() -> None:
    shared = [("system", "s"), ("user", with_images("before ", [image("https://x.test/a.png")]))]
    whole = [("system", "s"), ("user", with_images("before after", [image("https://x.test/a.png")]))]
    keys = RequestKey("m", Parameters(1), 0, shared)
    assert keys.key("after") == make_request("m", whole, Parameters(1)).key != keys.key("other")


def test_images_are_sent_before_the_text_and_counted() -> None:
    request = make_request("m", [("user", with_images("abcd", [image("https://x.test/a.png")]))], Parameters(1))
    assert chat_fields(request)["messages"] == [
        {"role": "user", "content": [image("https://x.test/a.png"), {"type": "text", "text": "abcd"}]}
    ]
    plain = make_request("m", [("user", "abcd")], Parameters(1))
    assert reserved_tokens(request) - reserved_tokens(plain) == IMAGE_TOKENS and images_in(plain) == 0
    assert chat_fields(plain)["messages"] == [{"role": "user", "content": "abcd"}]
