"""Conversations as they are sent to a model, their images, and the parts of them that questions are asked of."""

from __future__ import annotations

from typing import Any

import pytest

from askance.prompts.conversations.chat import NO_CALL, calls_told, chat_of, images_of, last_reply
from askance.prompts.errors import InputError
from askance.prompts.examples import Example, load_examples
from askance.prompts.prompt import Prompt, frame, generator_messages
from tests.said import says

PIXEL = "data:image/png;base64,iVBORw0KGgo="
CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Bonn"}'}}
OPENAI = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "How warm is it?"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "12 degrees"},
    {"role": "assistant", "content": "It is 12 degrees."},
]
ANTHROPIC = [
    {"role": "user", "content": "How warm is it?"},
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "A tool knows."},
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Bonn"}},
        ],
    },
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "12 degrees"}]},
            {"type": "text", "text": "And tomorrow?"},
        ],
    },
]
RESPONSES = [
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "How warm is it?"}]},
    {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"city":"Bonn"}'},
    {"type": "function_call_output", "call_id": "c1", "output": "12 degrees"},
]
LANGCHAIN = [
    {"lc": 1, "id": ["langchain", "schema", "HumanMessage"], "kwargs": {"content": "How warm is it?"}},
    {"type": "ai", "data": {"content": "", "tool_calls": [{"id": "c1", "name": "weather", "args": {"city": "Bonn"}}]}},
    {"type": "tool", "data": {"content": "12 degrees", "tool_call_id": "c1"}},
]


def made(value: Any) -> str:
    return Example(id="a", input=value).input


def image(**fields: Any) -> list[dict[str, Any]]:
    return [{"role": "user", "content": [{"type": "text", "text": "Look."}, fields]}]


# --- messages for a model -----------------------------------------------------------------------------------------


def test_openais_messages_are_sent_as_they_are() -> None:
    assert chat_of(made(OPENAI)) == OPENAI


@pytest.mark.parametrize("messages", [ANTHROPIC, RESPONSES, LANGCHAIN])
def test_calls_of_every_interface_become_calls_with_their_results(messages: list[Any]) -> None:
    user, call, result, *_ = chat_of(made(messages))
    assert user == {"role": "user", "content": "How warm is it?"}
    function = call["tool_calls"][0]["function"]
    assert (call["role"], call["tool_calls"][0]["id"], function["name"]) == ("assistant", "c1", "weather")
    assert function["arguments"].replace(" ", "") == '{"city":"Bonn"}'
    assert result == {"role": "tool", "tool_call_id": "c1", "content": "12 degrees"}


def test_text_beside_calls_stays_and_thinking_does_not() -> None:
    _, call, _, after = chat_of(made(ANTHROPIC))
    assert call["content"] == "I look." and after == {"role": "user", "content": "And tomorrow?"}


def test_calls_without_ids_get_their_results_in_order() -> None:
    calls = [{"name": "a", "arguments": {}}, {"name": "b", "arguments": {}}]
    tools = [{"role": "tool", "content": "1"}, {"role": "tool", "content": "2"}]
    _, call, *results = chat_of(made([OPENAI[1], {"role": "assistant", "content": "", "tool_calls": calls}, *tools]))
    ids = [each["id"] for each in call["tool_calls"]]
    assert len(set(ids)) == 2 and [(each["tool_call_id"], each["content"]) for each in results] == [
        (ids[0], "1"),
        (ids[1], "2"),
    ]


@pytest.mark.parametrize(
    "messages",
    [
        OPENAI[:3],
        [*OPENAI[:2], OPENAI[3]],
        [*OPENAI[:3], {"role": "tool", "tool_call_id": "other", "content": "12 degrees"}],
    ],
)
def test_a_call_without_its_result_is_told_in_words_as_no_endpoint_takes_it(messages: list[Any]) -> None:
    sent = chat_of(made(messages))
    assert not any("tool_calls" in each or each["role"] == "tool" for each in sent)
    told = sent[-1]["content"]
    assert told == 'Calls weather({"city":"Bonn"})' or told == "Result: 12 degrees"


def test_a_plain_text_a_list_of_texts_and_an_object_are_no_conversation() -> None:
    assert [chat_of(made(each)) for each in ("a", ["a", "b"], {"a": 1, "b": 2})] == [[], [], []]


def test_unknown_roles_speak_as_the_user() -> None:
    sent = chat_of(made([{"role": "Narrator", "content": "Night falls."}, OPENAI[1]]))
    assert [each["role"] for each in sent] == ["user", "user"]


# --- a generator --------------------------------------------------------------------------------------------------


def test_a_generator_is_sent_the_messages_after_its_prompt_and_their_own_system_message_joins_it() -> None:
    sent = generator_messages(Prompt("Write German."), Example(id="a", input=OPENAI))
    assert [role for role, _ in sent] == ["system", "user", "assistant", "tool", "assistant"]
    assert sent[0] == ("system", "Write German.\n\nBe brief.") and sent[-1][1] == "It is 12 degrees."


def test_the_context_stands_before_the_last_message_of_the_user() -> None:
    turns = [
        {"role": "user", "content": "A?"},
        {"role": "assistant", "content": "B."},
        {"role": "user", "content": "C?"},
    ]
    sent = generator_messages(Prompt("Write."), Example(id="a", input=turns, context=["One.", "Two."]))
    assert sent[1:3] == [("user", "A?"), ("assistant", "B.")]
    assert sent[3] == ("user", "[1] One.\n\n[2] Two.\n\nC?")
    alone = generator_messages(Prompt("Write."), Example(id="a", input=turns[1:2], context="One."))
    assert alone[1:] == [("user", "One."), ("assistant", "B.")]


def test_where_the_prompt_has_a_place_for_the_input_the_transcript_stands_there() -> None:
    example = Example(id="a", input=OPENAI[:2])
    assert generator_messages(Prompt("Answer: {input}"), example) == [
        ("user", "Answer: System: Be brief.\n\nUser: How warm is it?")
    ]


def test_a_plain_input_is_sent_as_ever() -> None:
    sent = generator_messages(Prompt("Write."), Example(id="a", input="Hi.", context="C."))
    assert sent == [("system", "Write."), ("user", "C.\n\nHi.")] and all(type(each) is str for _, each in sent)


# --- images -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": PIXEL}},
        {"type": "image_url", "image_url": PIXEL},
        {"type": "input_image", "image_url": PIXEL},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}},
        {"type": "image", "source_type": "base64", "mime_type": "image/png", "data": "iVBORw0KGgo="},
        {"type": "image", "base64": "iVBORw0KGgo=", "mime_type": "image/png"},
    ],
)
def test_images_of_every_interface_are_openais(part: dict[str, Any]) -> None:
    text = made(image(**part))
    assert images_of(text) == ({"type": "image_url", "image_url": {"url": PIXEL}},)
    assert chat_of(text)[0]["content"][1] == images_of(text)[0] and text.startswith("Look.\n[")


def test_an_address_and_its_detail_are_kept_and_a_file_elsewhere_is_no_image() -> None:
    text = made(image(type="image_url", image_url={"url": "https://x.test/a.png", "detail": "low"}))
    assert images_of(text)[0]["image_url"] == {"url": "https://x.test/a.png", "detail": "low"}
    assert images_of(made(image(type="input_image", file_id="f1"))) == ()


def test_an_image_with_a_local_path_is_refused_with_its_row() -> None:
    with pytest.raises(InputError) as caught:
        load_examples([{"id": "a", "input": image(type="image_url", image_url={"url": "cat.png"}), "output": "b"}])
    assert says(str(caught.value), "row 1", "input", "'cat.png'", "https://")


def test_images_in_results_of_tools_are_shown_after_them() -> None:
    shot = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
    result = {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "Done."}, shot]}
    sent = chat_of(made([*ANTHROPIC[:2], {"role": "user", "content": [result]}]))
    assert [each["role"] for each in sent] == ["user", "assistant", "tool", "user"]
    assert sent[3]["content"][0]["image_url"]["url"] == PIXEL and len(images_of(made([*ANTHROPIC[:2], sent[3]]))) == 1


def test_a_list_of_parts_is_one_message() -> None:
    text = made([{"type": "text", "text": "Look."}, {"type": "image_url", "image_url": {"url": PIXEL}}])
    assert text == "Look.\n[image_url]" and len(images_of(text)) == 1


def test_a_judge_is_shown_the_images_of_what_it_sees() -> None:
    part = {"type": "image_url", "image_url": {"url": PIXEL}}
    example = Example(id="a", input=image(**part), output="A cat.", context=[part])
    assert len(frame(Prompt("Judge."), example).images) == 2
    assert len(frame(Prompt("{input} {output}"), example).images) == 1
    assert frame(Prompt("Judge."), example, "output").images == ()
    assert len(frame(Prompt("Judge."), Example(id="a", input="b", output=image(**part)), "last").images) == 1


# --- parts of an output -------------------------------------------------------------------------------------------


def test_the_last_reply_is_the_last_that_the_assistant_says() -> None:
    assert last_reply(made(OPENAI)) == "It is 12 degrees."
    assert last_reply(made([*OPENAI, {"role": "user", "content": "Thanks."}])) == "It is 12 degrees."
    assert last_reply(made(OPENAI[:4])) == 'Calls weather({"city":"Bonn"})'
    assert last_reply("plain") == "plain" and last_reply(made(["a", "b"])) == "a\n\nb"


def test_calls_are_told_with_arguments_and_results() -> None:
    told = 'Assistant: Calls weather({"city":"Bonn"})\n\nTool: 12 degrees'
    assert [calls_told(made(each)).replace(': "', ':"') for each in (OPENAI, ANTHROPIC, RESPONSES)] == [told] * 3
    assert "I look." not in calls_told(made(ANTHROPIC)) and "tomorrow" not in calls_told(made(ANTHROPIC))


def test_an_output_without_calls_is_told_as_such() -> None:
    assert [calls_told(each) for each in ("plain", made(OPENAI[:2]))] == [NO_CALL, NO_CALL]


def test_calls_of_a_reply_that_is_logged_alone_stand_in_its_input_after_the_users_last_message() -> None:
    asked = made(OPENAI[:4])
    assert "12 degrees" in calls_told("It is 12 degrees.", asked)
    assert calls_told("You are welcome.", made([*OPENAI, {"role": "user", "content": "Thanks."}])) == NO_CALL
    assert "12 degrees" in calls_told(
        "Cold.", made([*ANTHROPIC[:2], {**ANTHROPIC[2], "content": ANTHROPIC[2]["content"][:1]}])
    )


@pytest.mark.parametrize(("sees", "shown"), [("last", "It is 12 degrees."), ("call", "Calls weather")])
def test_a_judge_is_shown_that_part_alone(sees: Any, shown: str) -> None:
    example = Example(id="a", input="SECRET", context="SECRET", output=OPENAI)
    for prompt in (Prompt("Judge."), Prompt("In:\n{input}\n\nOut:\n{output}")):
        before = frame(prompt, example, sees).before
        assert shown in before and "SECRET" not in before and "How warm" not in before
