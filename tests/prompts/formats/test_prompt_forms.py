"""Prompts as people have them: how a file is read, what its variables stand for, how it is edited and asked with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from askance.evaluation.options import EvaluateOptions
from askance.prompts.errors import InputError
from askance.prompts.examples import Example
from askance.prompts.formats.binding import Binding, binding_of, parse_variables
from askance.prompts.lessons import Edit
from askance.prompts.prompt import (
    EditRefusedError,
    Prompt,
    bound_prompts,
    frame,
    generator_messages,
    load_generator_prompt,
    load_prompt,
)
from askance.prompts.text import fence

EXAMPLES = [
    Example(id="1", input="How much?", output="Five.", metadata={"company": "ACME", "docs": ["one", "two"]}),
    Example(id="2", input="When?", output="Now.", metadata={"company": "Bolt\nLtd", "docs": []}),
]
CHAT = """\
# our chat prompt
- role: system   # first
  content: |
    You judge answers for {{company}}.
    Be strict.
- role: user
  content: "Is 2+2 = 4?"
- role: assistant
  content: 'yes'
- role: user
  content: >-
    Question: {{user_input}}

    Answer: {{answer}}
"""


def written(tmp_path: Path, text: str, name: str = "p.md") -> Path:
    (tmp_path / name).write_bytes(text.encode())
    return tmp_path / name


def judge(tmp_path: Path, text: str, name: str = "p.md", **given: str) -> Prompt:
    return load_prompt(written(tmp_path, text, name), Binding(EXAMPLES, given))


def generator(tmp_path: Path, text: str, name: str = "p.md", **given: str) -> Prompt:
    return load_generator_prompt(written(tmp_path, text, name), Binding(EXAMPLES, given))


@pytest.mark.parametrize(
    "text",
    [
        "Judge.\n",
        "Note: be kind\n",
        "Task: summarise\nTone: kind\n",
        "---\ntitle: mine\n---\n# Judge\n",
        "- one\n- two\n",
        "role: you are a judge\n",
        "{input}\n{output}\n{question}\n",
        '{input} {output}\nAnswer as {"score": 1} or as {{"score": 1}} for {{name}}.\n',
        "[INST] Judge. [/INST]",
        "Messages: none\n",
    ],
)
def test_plain_text_is_read_as_before(tmp_path: Path, text: str) -> None:
    assert judge(tmp_path, text) == Prompt(text)


def test_messages_of_a_judge_are_laid_out_with_the_example_in_them(tmp_path: Path) -> None:
    laid = frame(judge(tmp_path, CHAT, "chat.yaml"), EXAMPLES[0])
    assert laid.system == "You judge answers for ACME.\nBe strict.\n"
    assert laid.turns == (("Is 2+2 = 4?", "yes"),)
    assert laid.before == f"Question: {fence('How much?')}\nAnswer: {fence('Five.')}\n\n"
    of_lines = frame(judge(tmp_path, CHAT, "chat.yaml"), EXAMPLES[1]).system
    assert of_lines == f"You judge answers for {fence('Bolt' + chr(10) + 'Ltd')}.\nBe strict.\n"


def test_a_file_read_twice_is_one_prompt(tmp_path: Path) -> None:
    assert len({judge(tmp_path, CHAT, "chat.yaml"), judge(tmp_path, CHAT, "chat.yaml")}) == 1
    other = judge(tmp_path, CHAT, "chat.yaml", user_input="company")
    assert other.text == judge(tmp_path, CHAT, "chat.yaml").text
    assert other.hash != judge(tmp_path, CHAT, "chat.yaml").hash, "which asks otherwise"


def test_a_question_of_the_output_alone_is_shown_nothing_else(tmp_path: Path) -> None:
    prompt = judge(tmp_path, CHAT, "chat.yaml")
    assert prompt.can_show_less_of(EXAMPLES)
    for laid in (frame(prompt, EXAMPLES[0], "output"), frame(prompt.of_output_alone, EXAMPLES[0])):
        assert "How much?" not in laid.before
        assert fence("Five.") in laid.before


def test_an_edit_changes_its_message_alone_and_the_file_there_alone(tmp_path: Path) -> None:
    prompt = judge(tmp_path, CHAT, "chat.yaml")
    changed = prompt.apply(Edit(old="Be strict.", new="Be strict.\n- Look at prices.", lessons=("L1",)))
    assert changed.file_text == CHAT.replace("    Be strict.\n", "    Be strict.\n    - Look at prices.\n")
    assert changed.hash != prompt.hash
    again = judge(tmp_path, changed.file_text, "chat.yaml")
    assert (again.text, again.hash) == (changed.text, changed.hash)
    assert frame(again, EXAMPLES[0]) == frame(changed, EXAMPLES[0])


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("{{company}}", "it", "placeholder"),
        ("Question:", "Question of {{company}}:", "placeholder"),
        ("<!-- message 2: user -->", "", "between two messages"),
        ("Is 2+2", "Is 3+3", "protected"),
        ("yes", "no", "protected"),
        ("Be strict.", "Be\n<!-- message 2: user -->\nstrict.", "between two messages"),
    ],
)
def test_variables_lines_between_messages_and_cases_are_not_edited(
    tmp_path: Path, old: str, new: str, why: str
) -> None:
    with pytest.raises(EditRefusedError, match=why):
        judge(tmp_path, CHAT, "chat.yaml").apply(Edit(old=old, new=new, lessons=()))


def test_loops_and_conditions_of_jinja_are_kept_and_rendered(tmp_path: Path) -> None:
    text = "Be kind.\n{% for doc in docs %}- {{ doc }}\n{% endfor %}{{ input }} -> {{ output }}\n{{ question }}\n"
    prompt = judge(tmp_path, text)
    assert prompt.placeholders == ["metadata.docs", "input", "output", "question"]
    laid = frame(prompt, EXAMPLES[0])
    assert laid.before == f"Be kind.\n- one\n- two\n{fence('How much?')} -> {fence('Five.')}\n"
    assert frame(prompt, EXAMPLES[1]).before.startswith("Be kind.\n<")
    with pytest.raises(EditRefusedError):
        prompt.apply(Edit(old="- {{ doc }}", new="* {{ doc }}", lessons=()))
    with pytest.raises(EditRefusedError, match="Jinja"):
        prompt.apply(Edit(old="Be kind.", new="Be kind. {% if %}", lessons=()))
    assert prompt.apply(Edit(old="Be kind.", new="Be fair.", lessons=())).file_text == text.replace("kind", "fair")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Be kind. {{question}}", "Write {input} so."),
        ('Be kind to {company}, as {"a": 1}. {question}', "Write {{hello}}."),
        ("Be kind. {{ question }}", "Write {% raw %}."),
    ],
)
def test_an_edit_after_which_the_file_would_be_read_otherwise_is_refused(tmp_path: Path, text: str, said: str) -> None:
    prompt = generator(tmp_path, text)
    with pytest.raises(EditRefusedError, match=r"not be read|no Jinja"):
        prompt.apply(Edit(old="Be kind", new=f"{said} Be kind", lessons=()))
    changed = prompt.apply(Edit(old="Be kind", new="Be very kind", lessons=()))
    assert generator(tmp_path, changed.file_text).hash == changed.hash


def test_a_template_cannot_reach_beyond_its_values(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"example '1'.*unsafe"):
        judge(tmp_path, "{{ output.__class__.__mro__ }} {% if 1 %}{% endif %}")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("One\nTwo {% if %}", "line 2, column 5: no Jinja template"),
        ("Hello {{ x", "line 1, column 7: no Jinja template"),
        ("{input} {% if a %}b{% endif %}", "line 1, column 9: .*is Jinja and {input} is not"),
        ("{{#each}} x {{/each}}", "section of Mustache"),
        (
            "{{compani}} {{output}}",
            "no example has a column 'compani'.*Did you mean 'company'. --variable compani=company",
        ),
        ("{{question}} {{answer}}", "--variable question=question, or --variable question=input"),
        ("{{query}} {{user_input}} {{answer}}", "both usually stand for the input"),
        ("{{input}} {{context}}", "no {output}"),
        ('{"a": 1}', "no prompt that askance knows"),
        ('[{"role": "user", "content": "\\ud83d {{output}}"}]', "half a surrogate pair"),
        ('[{"role": "system", "content": "x",}]', "line 1, column 36: not valid JSON"),
        ("- role: tool\n  content: x\n", "message 1, field 'role': 'tool' cannot be used"),
        ("- role: user\n- role: user\n  content: x\n", "message 1, field 'content': a text is needed, not nothing"),
        ("- role: user\n  content: Judge.\n", "no variable stands for the output"),
        ("- role: user\n  content: '{{output}}'\n- role: assistant\n  content: ok\n", "last message must be a user's"),
        ("- role: user\n  content: a\n- role: system\n  content: b\n- role: user\n  content: '{output}'\n", "in turn"),
    ],
)
def test_what_cannot_be_a_judges_prompt_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        judge(tmp_path, text)


def test_a_suffix_says_that_a_file_is_json_or_yaml(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"prompt.*askance knows"):
        judge(tmp_path, "Task: summarise\nTone: kind\n", "p.yaml")
    with pytest.raises(InputError, match="not valid JSON"):
        judge(tmp_path, "Judge.", "p.json")


def test_a_name_that_may_mean_a_field_or_a_column_is_asked_about(tmp_path: Path) -> None:
    examples = [Example(id="1", input="i", output="o", metadata={"answer": "gold"})]
    path = written(tmp_path, "{{input}} {{answer}} {{question}}")
    with pytest.raises(InputError, match=r"--variable answer=output, or --variable answer=metadata.answer"):
        load_prompt(path, Binding(examples))
    assert load_prompt(path, Binding(examples, {"answer": "output"})).placeholders == ["input", "output", "question"]
    column = Binding(examples, {"answer": "metadata.answer"})
    with pytest.raises(InputError, match=r"no {output}"):
        load_prompt(path, column)


def test_texts_may_stand_under_their_roles(tmp_path: Path) -> None:
    text = "model: gpt-5\nsystem: Be kind to {{company}}.\nuser: |\n  {{question}}\n"
    prompt = generator(tmp_path, text, "p.yaml")
    assert generator_messages(prompt, EXAMPLES[0]) == [("system", "Be kind to ACME."), ("user", "How much?\n")]
    changed = prompt.apply(Edit(old="Be kind", new="Be fair", lessons=()))
    assert changed.file_text == text.replace("kind", "fair")
    with pytest.raises(InputError, match=r"field 'user': a text is needed, not 3"):
        generator(tmp_path, "system: x\nuser: 3\n", "p.yaml")


def test_a_judge_may_be_told_all_in_the_systems_message(tmp_path: Path) -> None:
    laid = frame(judge(tmp_path, '[{"role": "system", "content": "{{input}}: {{output}}"}]'), EXAMPLES[0])
    assert (laid.system, laid.before, laid.after) == (f"{fence('How much?')}: {fence('Five.')}", "", "")


def test_variables_of_a_generator_are_filled_from_fields_and_columns(tmp_path: Path) -> None:
    assert generator_messages(generator(tmp_path, "Write for {company}: {question}\n"), EXAMPLES[0]) == [
        ("user", "Write for ACME: How much?\n")
    ]
    messages = '[{"role": "system", "content": "For {{company}}."}, {"role": "user", "content": "{{question}}"}]'
    assert generator_messages(generator(tmp_path, messages, "p.json"), EXAMPLES[0]) == [
        ("system", "For ACME."),
        ("user", "How much?"),
    ]
    alone = '{"messages": [{"role": "system", "content": "Be kind. {{braces}} {not}"}]}'
    with pytest.raises(InputError, match="no example has a column 'braces'"):
        generator(tmp_path, alone)
    kept = generator(tmp_path, alone.replace("{{braces}} {not}", "{a"))
    assert generator_messages(kept, EXAMPLES[0]) == [("system", "Be kind. {a"), ("user", "How much?")]


def test_a_text_with_columns_alone_is_the_system_message(tmp_path: Path) -> None:
    prompt = generator(tmp_path, "You write for {{company}}.\n")
    assert generator_messages(prompt, EXAMPLES[0]) == [("system", "You write for ACME.\n"), ("user", "How much?")]
    laid = frame(judge(tmp_path, "You judge for {{company}}.\n"), EXAMPLES[0])
    assert laid.system == "You judge for ACME.\n"
    assert laid.before == frame(Prompt("Judge."), EXAMPLES[0]).before


def test_an_f_string_without_a_variable_of_ours_has_its_doubled_braces_undone(tmp_path: Path) -> None:
    prompt = generator(tmp_path, 'Ask {question} of {company}; answer as {{"a": 1}}.')
    assert generator_messages(prompt, EXAMPLES[0]) == [("user", 'Ask How much? of ACME; answer as {"a": 1}.')]
    assert prompt.as_written('Say {"b"}.') == 'Say {{"b"}}.'


def test_somebody_says_what_a_variable_stands_for(tmp_path: Path) -> None:
    settings = EvaluateOptions(variable=["topic=input", "reply=output"], seed=1)
    assert settings.variable == {"topic": "input", "reply": "output"}
    path = written(tmp_path, "{{topic}} {{reply}}")
    [prompt] = bound_prompts([path], EXAMPLES, settings)
    assert prompt.placeholders == ["input", "output"]
    with pytest.raises(InputError, match=r"no prompt has a variable 'topc'.*Did you mean 'topic'"):
        bound_prompts(
            [path], EXAMPLES, EvaluateOptions(variable={"topc": "input", "topic": "input", "reply": "output"})
        )
    with pytest.raises(InputError, match=r"no example has a column 'compny'.*Did you mean 'company'"):
        load_prompt(path, Binding(EXAMPLES, {"topic": "compny", "reply": "output"}))
    [plain] = bound_prompts([Prompt("{input} {output}")], EXAMPLES, EvaluateOptions(variable={"input": "company"}))
    assert "ACME" in frame(plain, EXAMPLES[0]).before


def test_a_column_that_the_field_map_names_is_the_field(tmp_path: Path) -> None:
    binding = binding_of(EXAMPLES, EvaluateOptions(field={"input": "body"}))
    assert load_prompt(written(tmp_path, "{{body}} {{output}}"), binding).placeholders == ["input", "output"]


@pytest.mark.parametrize("pair", ["question", "question=", "=input", "a=b a=c"])
def test_a_pair_that_is_none_is_refused(pair: str) -> None:
    with pytest.raises(ValueError, match=r"variable=field|stands for one thing"):
        parse_variables(pair.split())
    with pytest.raises(ValueError, match="variable"):
        EvaluateOptions(variable=pair.split())


def test_messages_from_python_are_a_prompt_as_those_of_a_file(tmp_path: Path) -> None:
    messages = [
        {"role": "system", "content": "You judge for {{company}}."},
        {"role": "user", "content": "{{input}} -> {{output}}\n{{question}}"},
    ]
    path = tmp_path / "chat.json"
    path.write_text(json.dumps(messages, ensure_ascii=False, indent=2), encoding="utf-8")
    example = Example(id="1", input="in", output="out", metadata={"company": "Acme"})
    binding = binding_of([example], None)
    ours, file = load_prompt(Prompt.of_messages(messages), binding), load_prompt(path, binding)
    assert (ours.text, ours.hash, ours.placeholders) == (file.text, file.hash, file.placeholders)
    assert frame(ours, example).system == "You judge for Acme."
    assert load_generator_prompt(
        Prompt.of_messages([{"role": "user", "content": "Q: {question}"}]), binding
    ).placeholders == ["input"]


def test_messages_without_content_are_refused_by_their_number() -> None:
    with pytest.raises(InputError, match=r"message 2.*'content'"):
        Prompt.of_messages([{"role": "system", "content": "x"}, {"role": "user"}])
