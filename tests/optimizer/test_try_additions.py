"""Settings and texts after the input are tried before the rounds, alone and together, and each is written down."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import askance
from askance.memory.provenance import build_graph
from askance.models.base import Answer, Request
from askance.models.writing import WRITING_FILE, read_writing
from askance.optimizer.options import TuneOptions
from askance.prompts.checklist import Checklist, ComputedCheck, Question
from askance.prompts.errors import InputError
from askance.prompts.formats.binding import Binding
from askance.prompts.prompt import Prompt, load_generator_prompt
from askance.settings import parse_options
from askance.testing import ScriptedModel
from tests.doubles import WritersJudge, WritersWorld

OPTIONS: dict[str, Any] = {"embedder": "words", "resamples": 200, "alpha": 0.2, "max_iterations": 1}
ENDS = "End with the word Bye."


def tune_world(world: WritersWorld, run: Path, **more: Any) -> askance.RunResult:
    options = OPTIONS | {"generator": world.writer("weaker"), "judge": WritersJudge(world)} | more
    rows = [{name: each for name, each in row.items() if name != "output"} for row in world.rows]
    return askance.tune(rows, prompt=world.prompt, checklist=world.checklist, run=run, **options)


def check(kind: str, value: Any, name: str = "", clause: str | None = None) -> ComputedCheck:
    return ComputedCheck.model_validate({"id": name or kind, "kind": kind, "value": value, "clause": clause})


def tune(
    write: Callable[[Request], str | Answer],
    criteria: Sequence[Question],
    run: Path,
    model: type[ScriptedModel] = ScriptedModel,
    **more: Any,
) -> askance.RunResult:
    """A run with a writer that is a function of the request, and 40 examples."""
    rows = [{"id": f"e{number:02d}", "input": f"Case {number}"} for number in range(40)]
    checklist = Checklist(task="Write.", questions=tuple(criteria))
    options = OPTIONS | {"prompt": Prompt("Write."), "generator": model(write)} | more
    return askance.tune(rows, checklist=checklist, run=run, **options)


def after(request: Request) -> str:
    """The text of a request after its input."""
    return request.messages[-1][1].partition("\n\n")[2]


def tried(done: askance.RunResult) -> dict[str, Any]:
    """The records of the trials by the kinds of the set."""
    return {"+".join([*each.beside, each.kind]): each for each in done.record.additions}


@pytest.mark.parametrize("form", ["facts", "reply"])
def test_what_a_writer_overlooks_before_the_input_is_mended_after_it(form: Any, tmp_path: Path) -> None:
    world = WritersWorld(form=form)
    done = tune_world(world, tmp_path / "run")
    gain = done.result["gain"]["test"]
    assert gain["value"] > 0.1 and gain["low"] > 0
    accepted = [each for each in done.record.additions if each.accepted]
    assert accepted and all(each.reason == "better on development" for each in accepted)
    rules = tried(done)["rules"]
    failed = {line.requirement: line.failures for line in rules.lines}
    assert failed.keys() <= {each.id for each in world.checklist.questions}
    assert all(2 <= len(names) <= rules.n == 16 for names in failed.values())
    written = (tmp_path / "run" / "prompt.md").read_text()
    assert written.startswith(world.prompt.text) and written == done.prompt
    assert any(str(each.text) in written for each in accepted)


def test_plain_system_text_becomes_messages_that_the_run_keeps_and_others_can_use(tmp_path: Path) -> None:
    def write(request: Request) -> str:
        return "Hello. Bye" if "Bye" in after(request) else "Hello."

    done = tune(write, [check("ends", "Bye", clause=ENDS)], tmp_path / "run")
    file = tmp_path / "run" / "prompt.json"
    assert json.loads(file.read_text())[0] == {"role": "system", "content": "Write."}
    best = load_generator_prompt(file, Binding())
    assert best.hash == done.result["best"]["hash"] and best.text == done.prompt
    assert (done.result["best"]["test"]["mean"], done.finish_reason) == (1.0, "nothing_fails")
    graph = build_graph(tmp_path / "run")
    [kept] = [each for _, each in graph.nodes(data=True) if each.get("prompt_hash") == best.hash]
    assert kept["prompt"] == done.prompt
    outputs = askance.generate([{"id": "new", "input": "Case 99"}], prompt=file, generator=ScriptedModel(write))
    assert outputs.written[0].example.output == "Hello. Bye"


SCHEMA = {"type": "object", "properties": {"sum": {"type": "string", "maxLength": 12}}, "required": ["sum"]}


def test_a_contract_that_the_endpoint_enforces_goes_with_the_prompt(tmp_path: Path) -> None:
    def write(request: Request) -> str:
        return '{"sum": "short"}' if request.parameters.schema else '{"sum": "as long as its inp'

    done = tune(write, [check("fields", SCHEMA, "keys")], tmp_path / "run")
    settings = read_writing((tmp_path / "run" / WRITING_FILE).read_text(), "here")
    assert settings.json_schema == SCHEMA == done.result["best"]["writing"]["schema"]
    assert "writing" not in done.result["baseline"]
    assert done.result["best"]["hash"] != done.result["baseline"]["hash"]
    assert done.record.same_prompt and settings.said in str(done)


def test_two_things_that_are_worth_nothing_alone_are_found_together(tmp_path: Path) -> None:
    def write(request: Request) -> str:
        both = "Fill in" in after(request) and "Keep to" in after(request)
        return "Hello, Ann.\nBye" if both else "Hello."

    done = tune(write, [check("ends", "Bye", clause=ENDS), check("matches", "Ann", clause="Name Ann.")], tmp_path)
    records = tried(done)
    assert not records["rules"].kept and not records["form"].kept
    [pair] = [each for name, each in records.items() if set(name.split("+")) == {"rules", "form"}]
    assert pair.kept and pair.before == 0.0 and pair.after == 1.0


class TakesNoGrammar(ScriptedModel):
    left_out = ("grammar",)


@pytest.mark.parametrize("model", [ScriptedModel, TakesNoGrammar])
def test_a_fixed_form_is_a_grammar_where_the_endpoint_takes_one(model: type[ScriptedModel], tmp_path: Path) -> None:
    def write(request: Request) -> str:
        return "Hello.\nBye" if request.parameters.grammar and model is ScriptedModel else "Hello."

    done = tune(write, [check("ends", "Bye", clause=ENDS)], tmp_path, model)
    found = tried(done)["grammar"]
    assert found.kept is (model is ScriptedModel)
    assert "take" in found.reason or found.kept
    assert ("grammar" in done.result["best"].get("writing", {})) is found.kept


def test_form_is_not_bought_with_content(tmp_path: Path) -> None:
    def write(request: Request) -> str:
        return "Nothing. Bye" if after(request) else "The whole truth."

    judge = ScriptedModel(lambda request: 0.9 if "truth" in request.messages[-1][1] else 0.1, name="scripted/judge")
    criteria = [check("ends", "Bye", clause=ENDS), Question(id="true", text="Is it so?")]
    done = tune(write, criteria, tmp_path, judge=judge, plain_first=False, call_budget=400)
    assert "questions" in tried(done)["rules"].reason
    assert not any(each.accepted for each in done.record.additions)


def test_settings_that_are_to_be_varied_are_tried_and_those_that_cannot_be_had_are_said(tmp_path: Path) -> None:
    def write(request: Request) -> str:
        return "Bye" if request.parameters.temperature == 0.5 and request.messages[0][0] == "user" else "Hello"

    vary = ["temperature=0.3,0.5", "system_as=user", "thinking=low"]
    done = tune(write, [check("ends", "Bye")], tmp_path, vary=vary)
    records = tried(done)
    assert records["thinking"].reason.startswith("not tried") and records["thinking"].after is None
    assert done.result["best"]["writing"] == {"temperature": 0.5, "system_as": "user"}


def test_outputs_that_are_cut_off_get_more_room(tmp_path: Path) -> None:
    def write(request: Request) -> Answer:
        room = request.parameters.max_tokens
        return Answer("Hello. Bye" if room == 40 else "Hello.", finish="stop" if room == 40 else "length")

    done = tune(write, [check("ends", "Bye")], tmp_path, max_output_tokens=20)
    assert done.result["best"]["writing"] == {"max_output_tokens": 40}
    assert askance.load_examples(tmp_path / "inputs" / "examples.jsonl", need_output=False)


def test_an_example_that_is_copied_is_not_taken(tmp_path: Path) -> None:
    def write(request: Request) -> str:
        if not request.messages[-1][1].startswith("Case"):
            return "a helper's reply"
        number = request.messages[-1][1].split()[1]
        own = f"case {number} is about the {number} old green boats that lie on {number} long rivers"
        shown = after(request).partition("another request:\n\n")[2].partition("\n\nWrite")[0]
        return shown or (f"{own} Bye" if int(number) % 3 == 0 else own)

    done = tune(write, [check("ends", "Bye", clause=ENDS)], tmp_path)
    assert "copy" in tried(done)["example"].reason


def test_a_word_of_the_example_that_no_other_output_has_is_a_copy_too(tmp_path: Path) -> None:
    def write(request: Request) -> str:
        if not request.messages[-1][1].startswith("Case"):
            return "a helper's reply"
        number = request.messages[-1][1].split()[1]
        shown = after(request).partition("another request:\n\n")[2].partition("\n\nWrite")[0]
        return shown or f"Asks for gadget{number}. {'Bye' if int(number) % 3 == 0 else ''}"

    done = tune(write, [check("ends", "Bye", clause=ENDS)], tmp_path)
    example = tried(done)["example"]
    assert not example.kept and "copy" in example.reason


def test_a_program_and_the_papers_loop_try_nothing(tmp_path: Path) -> None:
    def program(example: askance.Example, prompts: dict[str, str]) -> str:
        return "Hello."

    judge = ScriptedModel(lambda request: 0.9, name="scripted/judge")
    criteria = [check("ends", "Bye"), Question(id="true", text="Is it so?")]
    done = tune(lambda request: "", criteria, tmp_path, generator=program, judge=judge)
    assert not done.record.additions
    with pytest.raises(InputError, match="vary"):
        parse_options(TuneOptions, {"paper": True, "vary": ["temperature=1"]})


class Gone(BaseException):
    """The process is gone."""


def test_a_killed_run_repeats_no_call_and_comes_to_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    world, asked, left = WritersWorld(form="reply", size=40), list[bytes](), [10**9]

    class Dying(ScriptedModel):
        def __init__(self) -> None:
            super().__init__(self.reply, name="scripted/writer", slots=1)
            self.writer = world.writer("weaker")

        def reply(self, request: Request) -> str:
            if len(asked) >= left[0]:
                raise Gone
            asked.append(request.key)
            return self.writer.text(request)

    def run(name: str) -> dict[str, Any]:
        done = tune_world(world, tmp_path / name, generator=Dying(), judge=WritersJudge(world, slots=1))
        return dict(done.result)

    whole, calls = run("whole"), list(asked)
    for kill_at in range(5, len(calls), len(calls) // 4):
        asked.clear()
        left[0] = kill_at
        with pytest.raises(Gone):
            run(f"killed{kill_at}")
        left[0] = 10**9
        assert run(f"killed{kill_at}") == whole
        assert asked == calls
