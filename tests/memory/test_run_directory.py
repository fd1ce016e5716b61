from __future__ import annotations

import os
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from askance.memory.run_directory import RunDirectory
from askance.prompts.checklist import Checklist, Question
from askance.prompts.errors import AskanceError, InputError
from askance.prompts.examples import Example
from askance.prompts.formats.binding import Binding
from askance.prompts.prompt import Prompt, frame, parse_prompt
from askance.settings import GONE
from tests.said import naming

CHECKLIST = Checklist(task="t", questions=(Question(id="q", text="Is it so: yes?", rubric="line\nline"),))
PROMPTS = {"prompt": Prompt("Judge.\r\n\tÄ {{x}}"), "source_prompt": Prompt("Be strict.")}
EXAMPLES = [
    Example(
        id="a", input="in", output="out", human={"overall": (1.0, 2.5)}, metadata={"document": "d", "n": [1, None]}
    ),
    Example(
        id="l",
        input="in",
        output="out",
        human={"style": (True, False), "q": 1.0},
        comment=["Too long.", {"overall": "Dull.\nVery."}],
    ),
    Example(id="b", input="in\u2028\n", output="", context="c", reference="r", system="s"),
]
CONFIG: dict[str, Any] = {"command": "migrate", "split": [0.3, 0.3, 0.4], "limit": None, "source": "no", "field": {}}


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return RunDirectory(tmp_path / "some" / "run")


def begin(run: RunDirectory, config: dict[str, Any] = CONFIG, **changed: Any) -> bool:
    return run.open(
        config, changed.get("examples", EXAMPLES), changed.get("checklist", CHECKLIST), changed.get("prompts", PROMPTS)
    )


def test_a_run_begins_once_and_is_then_gone_on_with(run: RunDirectory) -> None:
    assert begin(run) is False
    assert begin(run) is True


def test_the_inputs_come_back_as_they_were(run: RunDirectory) -> None:
    begin(run)
    examples, checklist, prompts = run.read_inputs()
    assert examples == EXAMPLES
    assert checklist == CHECKLIST
    assert prompts == PROMPTS


def test_labels_come_back_as_labels_and_nothing_odd_is_said_again(
    run: RunDirectory, caplog: pytest.LogCaptureFixture
) -> None:
    both = [
        Example(id=name, input="i", output="o", human={"q": name}, comment="x" * 5_000) for name in ("pass", "fail")
    ]
    begin(run, examples=both)
    again, _, _ = run.read_inputs()
    assert [each.human["q"][0] for each in again] == [True, False]
    assert all(isinstance(each.human["q"][0], bool) for each in again)
    assert not caplog.records


def test_examples_without_labels_or_comments_are_kept_as_they_always_were(run: RunDirectory) -> None:
    begin(run, examples=EXAMPLES[:1])
    kept = (run.path / "inputs" / "examples.jsonl").read_text()
    assert kept == (
        '{"id": "a", "input": "in", "output": "out", "metadata": {"document": "d", "n": [1, null]}, '
        '"human": {"overall": [1.0, 2.5]}}\n'
    )


def test_the_settings_come_back_as_they_were(run: RunDirectory) -> None:
    begin(run)
    assert run.read_config()["config"] == CONFIG


@pytest.mark.parametrize("name", GONE)
def test_a_run_that_was_begun_with_a_setting_that_is_gone_is_the_same_run_where_it_had_its_default(
    run: RunDirectory, name: str
) -> None:
    assert not begin(run, {**CONFIG, name: GONE[name][0]})
    assert begin(run) and run.read_config()["config"] == CONFIG
    written = run.config_file.read_text()
    run.config_file.write_text(yaml.safe_dump({**yaml.safe_load(written), "config": {**CONFIG, name: 17}}))
    with pytest.raises(InputError, match=naming("config.yaml", name, "17")):
        begin(run)


def test_metadata_of_any_kind_can_be_kept(run: RunDirectory) -> None:
    from datetime import date

    odd = Example(id="a", input="i", output="o", metadata={"day": date(2024, 1, 2), "half": "\ud83d"})
    begin(run, examples=[odd])
    assert run.read_inputs()[0][0].metadata == {"day": "2024-01-02", "half": "\ud83d"}
    assert begin(run, examples=[odd]) is True


@pytest.mark.parametrize("name", ["prompt.md", "checklist.yaml", "report.html"])
def test_a_file_that_a_run_would_write_over_is_refused_and_stays(run: RunDirectory, name: str) -> None:
    run.path.mkdir(parents=True)
    (run.path / name).write_text("by hand")
    with pytest.raises(InputError, match=rf"{name} is there already.*write over it"):
        begin(run)
    assert [each.name for each in run.path.iterdir()] == [name]
    assert (run.path / name).read_text() == "by hand"


def test_other_settings_are_refused_by_name(run: RunDirectory) -> None:
    begin(run)
    with pytest.raises(InputError, match=r"other settings \(limit, new\).*askance resume"):
        begin(run, CONFIG | {"limit": 3, "new": 1})


@pytest.mark.parametrize(
    "changed",
    [
        {"examples": EXAMPLES[:1]},
        {"checklist": Checklist(questions=(Question(id="q", text="Another?"),))},
        {"prompts": PROMPTS | {"prompt": Prompt("Judge!")}},
    ],
)
def test_other_inputs_are_refused(run: RunDirectory, changed: dict[str, Any]) -> None:
    begin(run)
    with pytest.raises(InputError, match=naming("other data")):
        begin(run, **changed)


def test_where_the_answers_of_another_run_cannot_be_copied_nothing_of_it_is_left(
    run: RunDirectory, tmp_path: Path
) -> None:
    damaged = tmp_path / "verdicts.db"
    damaged.write_text("no store")
    with pytest.raises(AskanceError):
        run.open(CONFIG, EXAMPLES, CHECKLIST, PROMPTS, {"earlier.json": "{}"}, damaged)
    only = {"prompt": PROMPTS["prompt"]}
    begin(run, prompts=only)
    assert run.read_inputs()[2] == only
    assert not (run.path / "inputs" / "earlier.json").exists()


def test_a_beginning_that_was_killed_is_begun_again(run: RunDirectory) -> None:
    begin(run)
    run.config_file.unlink()
    (run.path / "inputs" / "prompt.md").write_text("torn")
    (run.path / "config.yaml.part").write_text("format: 1\nfinger")
    assert begin(run) is False
    assert run.read_inputs()[2] == PROMPTS


def test_a_directory_without_a_run_says_so(run: RunDirectory) -> None:
    with pytest.raises(InputError, match=naming("no run")):
        run.read_config()


def test_a_file_in_place_of_a_run_says_so(tmp_path: Path) -> None:
    (tmp_path / "result.json").touch()
    with pytest.raises(InputError, match=naming("result.json", "file", "directory")):
        RunDirectory(tmp_path / "result.json").read_config()


@pytest.mark.parametrize("text", ["", "just text", "{", "format: 1\n", "format: x\nconfig: {}\nfingerprint: y\n"])
def test_a_config_file_that_is_not_ours_is_a_sentence(run: RunDirectory, text: str) -> None:
    run.path.mkdir(parents=True)
    run.config_file.write_text(text)
    with pytest.raises(InputError, match=naming("config.yaml") + "(?=.*(damaged|line 1.*YAML))"):
        run.read_config()


@pytest.mark.parametrize(("number", "words"), [(99, "newer askance"), (1, "older askance")])
def test_a_run_of_another_askance_is_refused(run: RunDirectory, number: int, words: str) -> None:
    begin(run)
    data = yaml.safe_load(run.config_file.read_text())
    run.config_file.write_text(yaml.safe_dump(data | {"format": number}))
    with pytest.raises(InputError, match=words):
        run.read_config()


def test_a_prompt_that_is_not_text_is_named(run: RunDirectory) -> None:
    begin(run)
    (run.path / "inputs" / "prompt.md").write_bytes(b"\xff\xfe\xff")
    with pytest.raises(InputError, match=r"\.md, line 1: not UTF-8"):
        run.read_inputs()


def test_files_are_written_byte_for_byte(run: RunDirectory) -> None:
    run.write("prompt.md", "a\r\nb\n\n")
    assert (run.path / "prompt.md").read_bytes() == b"a\r\nb\n\n"


def test_a_file_that_cannot_be_written_keeps_what_was_there(run: RunDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    run.write("prompt.md", "before")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(AskanceError, match=r"prompt\.md: cannot be written \(No space left on device\)"):
        run.write("prompt.md", "after")
    assert (run.path / "prompt.md").read_text() == "before"
    assert not list(run.path.glob("*.part"))


def test_a_file_that_says_this_already_is_left_alone(run: RunDirectory) -> None:
    run.write("prompt.md", "same")
    before = (run.path / "prompt.md").stat()
    run.write("prompt.md", "same")
    after = (run.path / "prompt.md").stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_halves_of_files_that_a_killed_process_left_are_removed(run: RunDirectory) -> None:
    folder = run.path / "verdicts"
    folder.mkdir(parents=True)
    left, under_way, mine = (
        folder / name for name in ("scores.jsonl.1-2.part", f"a.jsonl.{os.getpid()}-2.part", "a.part")
    )
    for each in (left, under_way, mine):
        each.write_text("{")
    with run.lock():
        assert [each.exists() for each in (left, under_way, mine)] == [False, True, True]


def test_only_one_at_a_time_has_the_lock(run: RunDirectory) -> None:
    with run.lock(), pytest.raises(AskanceError, match="another process"):
        RunDirectory(run.path).lock()
    with RunDirectory(run.path).lock():
        pass


def test_a_run_directory_that_is_a_file_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("x")
    with pytest.raises(InputError, match=naming("run directory")):
        RunDirectory(tmp_path / "run").lock()


def test_how_to_go_on_is_said_so_that_it_can_be_typed_also_of_a_name_with_a_blank(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path / "my run")
    with pytest.raises(InputError) as error:
        run.read_result()
    assert shlex.split(str(error.value).rpartition(": ")[2]) == ["askance", "resume", str(run.path)]


def test_before_the_end_there_is_no_result(run: RunDirectory) -> None:
    assert not run.finished
    with pytest.raises(InputError, match=naming("not finished")):
        run.read_result()


FORMS = {
    ".md": "\ufeffJudge {input}.\r\n{output}\r\n",
    ".txt": "Judge {input} of {company}: {output}",
    ".jinja": "{% if context %}{{ context }}{% endif %}{{ output }}\n",
    ".json": '{ "messages": [{"role":"system","content":"\\u00c4"}, {"role":"user", "content":"{{output}}"} ] }',
    ".yaml": "\ufeff# mine\r\n- role: user\r\n  content: >-\r\n    Judge\r\n    {{answer}}\r\n",
}


@pytest.mark.parametrize("suffix", FORMS)
def test_a_prompt_in_any_form_comes_back_byte_for_byte_as_it_was(run: RunDirectory, suffix: str) -> None:
    given = parse_prompt(FORMS[suffix], suffix, "p", Binding())
    assert given.suffix == suffix
    begin(run, prompts={"prompt": given})
    assert (run.path / "inputs" / f"prompt{suffix}").read_bytes() == FORMS[suffix].encode()
    back = run.read_inputs()[2]["prompt"]
    assert (back.text, back.hash, back.file_text) == (given.text, given.hash, FORMS[suffix])
    example = EXAMPLES[0].model_copy(update={"metadata": {"company": "ACME"}})
    assert frame(back, example) == frame(given, example)
    assert run.read_start() == back
    changed = replace(given, text=given.text.replace("Judge", "Weigh"))
    run.save_version(1, changed)
    assert [each.text for each in run.read_versions(1, back)] == [changed.text]
    assert begin(run, prompts={"prompt": given}) is True
    assert begin(run, prompts={"prompt": back}) is True


def test_a_prompt_whose_form_is_damaged_or_whose_file_is_gone_is_said(run: RunDirectory) -> None:
    begin(run, prompts={"prompt": parse_prompt(FORMS[".yaml"], ".yaml", "p", Binding())})
    form = run.path / "inputs" / "prompt.form.yaml"
    form.write_text("kind: yaml\nsyntax: odd\n")
    with pytest.raises(InputError, match=naming("prompt.form.yaml", "syntax")):
        run.read_inputs()
    (run.path / "inputs" / "prompt.yaml").unlink()
    with pytest.raises(InputError, match="the prompt is missing"):
        run.read_inputs()


def test_a_text_of_an_earlier_run_is_read_as_it_was_then(run: RunDirectory) -> None:
    begin(run)
    (run.path / "inputs" / "prompt.md").write_text("Answer {{question}} as {% if %}.\n")
    assert run.read_inputs()[2]["prompt"] == Prompt("Answer {{question}} as {% if %}.\n")
