from __future__ import annotations

import copy
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from askance.models.base import ModelError, Parameters, RequestKey, make_request

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
