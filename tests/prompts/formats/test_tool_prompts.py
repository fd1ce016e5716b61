"""Prompts as tools export them are found, asked with, edited in their own texts, and written back byte for byte."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from askance.agents.updater import Proposal, last_instruction, make_edit, split_parts
from askance.prompts.errors import InputError
from askance.prompts.examples import Example
from askance.prompts.formats.binding import Binding
from askance.prompts.prompt import Prompt, generator_messages, load_generator_prompt, parse_prompt

EXAMPLES = [Example(id="1", input="How much?", context="Ten a day.", metadata={"company": "ACME"})]


def lc(name: str, place: str = "chat", **kwargs: Any) -> dict[str, Any]:
    """An object of LangChain as it is kept."""
    return {"lc": 1, "type": "constructor", "id": ["langchain", "prompts", place, name], "kwargs": kwargs}


def template(text: str, format_: str = "f-string", **more: Any) -> dict[str, Any]:
    return lc("PromptTemplate", "prompt", input_variables=[], template=text, template_format=format_, **more)


def dumped(value: Any) -> str:
    return json.dumps(value, indent=2) + "\n"


LANGSMITH = lc(
    "ChatPromptTemplate",
    input_variables=["company", "question"],
    partial_variables={"tone": "warm", "history": []},
    messages=[
        lc("SystemMessagePromptTemplate", prompt=template('Help {company} in a {tone} way.\nAs {{"a": 1}}: "é".')),
        lc("MessagesPlaceholder", variable_name="history", optional=True),
        lc("HumanMessagePromptTemplate", prompt=[template("Where is it?")]),
        lc("AIMessage", "schema", content="On its {way}."),
        lc("HumanMessagePromptTemplate", prompt=template("{question}")),
    ],
)
DSPY = {
    "predict": {
        "traces": [],
        "demos": [
            {"augmented": True, "question": "Where?", "context": "Here.", "reasoning": "r", "answer": "{There}."}
        ],
        "signature": {
            "instructions": "Answer the question of {nobody} kindly.",
            "fields": [
                {"prefix": "Question:", "description": "${question}"},
                {"prefix": "Context:", "description": "what is known"},
                {"prefix": "Reasoning:", "description": "${reasoning}"},
                {"prefix": "Answer:", "description": "short"},
            ],
        },
        "lm": None,
    },
    "metadata": {"dependency_versions": {"dspy": "3.0.4"}},
}
PUBLISHED = {
    "langfuse.json": dumped(
        {
            "id": "c1",
            "name": "support",
            "version": 3,
            "type": "chat",
            "config": {"model": "gpt-5"},
            "prompt": [
                {"role": "system", "content": 'Help {{company}}\'s "customers".\nAs {json}.'},
                {"role": "user", "content": "{{question}}"},
            ],
            "labels": ["production"],
        }
    ),
    "langfuse-text.json": '{"type": "text", "name": "s", "prompt": "Help {{company}}.\\n\\u00c4 {x}", "config": {}}',
    "mlflow.json": dumped({"name": "s", "version": 2, "template": "Help {{ company }} with {{question}}", "tags": {}}),
    "mlflow-chat.json": dumped(
        {"name": "s", "version": 2, "template": [{"role": "user", "content": "Do {{question}}"}]}
    ),
    "langsmith.json": dumped(LANGSMITH),
    "langsmith-hub.json": dumped({"owner": "-", "repo": "r", "commit_hash": "0", "manifest": LANGSMITH}),
    "langsmith-model.json": dumped(lc("RunnableSequence", "runnable", first=LANGSMITH, last={"lc": 1})),
    "langsmith-jinja.json": dumped(
        template("Help {{ company }}: {% if context %}{{ context }}{% endif %} {{question}}", "jinja2")
    ),
    "promptfooconfig.yaml": (
        "# ours\ndescription: mine\nprompts:\n  - |\n    Help {{company}}.\n    Do {{question}}\n\nproviders: [openai:gpt-5]\n"
    ),
    "promptfoo-raw.yaml": 'prompts: [{label: one, raw: "Help {{company | upper}}: {{question}}"}]\ntests: []\n',
    "dspy.json": dumped(DSPY),
}
ASKED = {
    "langfuse.json": [("system", 'Help ACME\'s "customers".\nAs {json}.'), ("user", "How much?")],
    "langfuse-text.json": [("system", "Help ACME.\nÄ {x}"), ("user", "Ten a day.\n\nHow much?")],
    "mlflow.json": [("user", "Help ACME with How much?")],
    "mlflow-chat.json": [("user", "Do How much?")],
    **{
        name: [
            ("system", 'Help ACME in a warm way.\nAs {"a": 1}: "é".'),
            ("user", "Where is it?"),
            ("assistant", "On its {way}."),
            ("user", "How much?"),
        ]
        for name in ("langsmith.json", "langsmith-hub.json", "langsmith-model.json")
    },
    "langsmith-jinja.json": [("user", "Help ACME: Ten a day. How much?")],
    "promptfooconfig.yaml": [("user", "Help ACME.\nDo How much?\n")],
    "promptfoo-raw.yaml": [("user", "Help ACME: How much?")],
    "dspy.json": [
        ("system", "Answer the question of {nobody} kindly."),
        ("user", "Question: Where?\nContext: Here."),
        ("assistant", "{There}."),
        ("user", "Question: How much?\nContext: Ten a day."),
    ],
}


def read(name: str, text: str | None = None) -> Prompt:
    given = PUBLISHED[name] if text is None else text
    return parse_prompt(given, Path(name).suffix, name, Binding(EXAMPLES, asks=False, writes=True))


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_file_is_asked_with_as_its_tool_does(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(PUBLISHED[name], encoding="utf-8")
    prompt = load_generator_prompt(tmp_path / name, Binding(EXAMPLES))
    assert generator_messages(prompt, EXAMPLES[0]) == ASKED[name]
    assert prompt.file_text == PUBLISHED[name]
    assert prompt.form is not None
    assert prompt.form.said.lower().startswith(name.partition(".")[0].partition("-")[0].removesuffix("config"))


@pytest.mark.parametrize("crlf", [False, True])
@pytest.mark.parametrize("name", PUBLISHED)
def test_every_word_that_is_edited_changes_its_own_text_alone(name: str, crlf: bool) -> None:
    source = PUBLISHED[name].replace("\n", "\r\n") if crlf else PUBLISHED[name]
    prompt, edited = read(name, source), 0
    assert prompt.form is not None
    for span in split_parts(prompt):
        words = re.findall(r"[A-Za-z]{2,}", re.sub(r"\{+[^{}]*\}+", "", prompt.text[slice(*span)]))
        for word in dict.fromkeys(words):
            start = prompt.text.index(word, span[0])
            text = f'{prompt.text[:start]}a "new" – word{prompt.text[start + len(word) :]}'
            before, after = prompt.form.texts(prompt.text), prompt.form.texts(text)
            [place] = [number for number, pair in enumerate(zip(before, after, strict=True)) if pair[0] != pair[1]]
            where = prompt.form.parts[place].place
            assert where is not None
            written = prompt.form.written(text)
            end = len(source) - where.end
            assert (written[: where.start], written[-end:]) == (source[: where.start], source[-end:])
            again = read(name, written)
            assert again.text == text
            edited += 1
    assert edited


@pytest.mark.parametrize("name", PUBLISHED)
def test_instructions_are_added_within_the_first_text(name: str) -> None:
    prompt = read(name)
    span = last_instruction(prompt)
    assert span is not None
    edit = make_edit(prompt, span, Proposal(part=1, action="add", text='Be "kind".'), "L1")
    again = read(name, prompt.apply(edit).file_text)
    before, after = ([content for _, content in generator_messages(each, EXAMPLES[0])] for each in (prompt, again))
    assert after[1:] == before[1:]
    assert after[0].replace('\n- Be "kind".', "") == before[0]


def test_a_file_that_a_configuration_names_is_the_prompt(tmp_path: Path) -> None:
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "chat.json").write_text('[{"role": "user", "content": "Do {{question}}"}]')
    (tmp_path / "promptfooconfig.yaml").write_text("prompts: [file://prompts/chat.json]\nproviders: []\n")
    prompt = load_generator_prompt(tmp_path / "promptfooconfig.yaml", Binding(EXAMPLES))
    assert (prompt.suffix, prompt.text) == (".json", "Do {{question}}")
    (tmp_path / "promptfooconfig.yaml").write_text("prompts: [file://prompts/chat.jso]\nproviders: []\n")
    with pytest.raises(InputError, match=r"no such prompt file. Did you mean 'chat.json'"):
        load_generator_prompt(tmp_path / "promptfooconfig.yaml", Binding(EXAMPLES))


def test_one_predictor_of_several_is_named_behind_the_file(tmp_path: Path) -> None:
    program = {"first": DSPY["predict"], "second.predict": DSPY["predict"]}
    (tmp_path / "program.json").write_text(dumped(program))
    with pytest.raises(InputError, match=r"several predictors \(first, second.predict\).*program.json#first"):
        load_generator_prompt(tmp_path / "program.json", Binding(EXAMPLES))
    with pytest.raises(InputError, match="no predictor 'secnd'"):
        load_generator_prompt(tmp_path / "program.json#secnd", Binding(EXAMPLES))
    prompt = load_generator_prompt(tmp_path / "program.json#second.predict", Binding(EXAMPLES))
    assert prompt.form is not None
    changed = prompt.form.written(prompt.text.replace("kindly", "briefly"))
    assert changed == dumped(program)[::-1].replace("kindly"[::-1], "briefly"[::-1], 1)[::-1], "the second one's"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        (
            "p.json",
            '{"type": "chat", "prompt": [{"type": "placeholder", "name": "history"}]}',
            "'history' stands for messages",
        ),
        ("p.json", '{"type": "text", "prompt": 3}', "field 'prompt': a text or a list of messages is needed, not 3"),
        ("p.json", '{"name": "x", "template": null}', "field 'template': .* not nothing"),
        (
            "p.json",
            dumped(lc("ChatPromptTemplate", messages=[lc("ImagePrompt")])),
            "message 1: a ImagePrompt cannot be used",
        ),
        ("p.json", dumped(lc("FewShotPromptTemplate")), "a FewShotPromptTemplate of LangChain cannot be used"),
        ("p.json", dumped(template("{question", "f-string")), "line 1, column 1: a single '{'"),
        ("p.json", dumped(template("a\n{% for %}", "jinja2")), "line 2, column 1: no Jinja template"),
        ("p.json", dumped(template("{{#a}}x{{/a}}", "mustache")), "column 1: a section of Mustache"),
        ("p.json", dumped(template("x", "other")), "template_format"),
        ("p.yaml", "prompts: [a, b]\ntests: []\n", "there are 2 prompts"),
        ("p.yaml", "prompts: [{x: 1}]\ntests: []\n", "a text or file://NAME is needed"),
        ("p.yaml", 'prompts: [\'[{"role": "user"}]\']\ntests: []\n', "as JSON within a text"),
        (
            "p.json",
            '{"predict": {"signature": {"instructions": "x", "fields": []}}}',
            "an input and an output are needed",
        ),
        ("p.json", '{"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}', "part 1: a text is needed"),
    ],
)
def test_what_a_prompt_cannot_hold_is_refused_with_its_place(name: str, text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read(name, text)
