from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest

from askance.agents.agent import ParseError
from askance.agents.lesson_checks import Relation
from askance.agents.notes import Case
from askance.agents.rules import DIRECTIONS, LENIENT, STRICTER
from askance.agents.updater import Proposal
from askance.memory.verdict_store import VerdictStore
from askance.models.base import Answer, ModelError, Request
from askance.models.budget import Budget
from askance.models.gateway import Gateway
from askance.prompts.checklist import Question
from askance.prompts.errors import BudgetExceededError, InputError
from askance.prompts.examples import Example
from askance.prompts.lessons import Disagreement
from askance.testing import ScriptedModel

dspy = pytest.importorskip("dspy", reason="needs the extra: pip install 'askance[dspy]'")

from askance.agents.dspy.note_taker import (  # noqa: E402  # noqa: E402
    SIGNATURES,
    CompiledNoteTaker,
    NoteTakerProgram,
    Opening,
    deduplicator_signature,
    load_note_taker,
    note_example,
    updater_signature,
    usable_note,
)
from askance.bridges.dspy_metric import open_gateway  # noqa: E402
from tests.said import naming, says  # noqa: E402

TASK = "Summarise."
QUESTION = Question(id="q", text="Is it right?", dimension="facts")
REASONS = {"target": "It sounds right.", "reference": "The day differs."}
GENERAL = "Say it in general words."
GOOD = "gives a wrong day of the week"
COPY = "wrongly says the mayor of Arles opened a bridge"
Rule = Callable[[str], str]


def example(number: int = 0) -> Example:
    return Example(id=f"e{number}", input=f"On day {number} the mayor of Arles opened a bridge.", output="He did not.")


def case(number: int = 0, *, target: bool = True) -> Case:
    found = Disagreement(example=f"e{number}", question="q", target=target, reference=not target, gap=0.9)
    return Case(found, example(number), QUESTION, REASONS)


def trainset(**labels: str) -> list[Any]:
    return [note_example(case(n), TASK, **labels) for n in range(4)]


def model_of(rule: Rule = lambda _: GOOD, kinds: list[str] | None = None) -> ScriptedModel:
    def script(request: Request) -> str:
        fields = (request.parameters.schema or {})["properties"]
        if "kinds" in fields:
            return json.dumps({"kinds": kinds or ["a wrong day", "an added claim"]})
        said = "\n".join(content for _, content in request.messages)
        return json.dumps({"quote": "did not", "fact": "opened", "kind": "a wrong day", "rule": rule(said)})

    return ScriptedModel(script, name="scripted/notes")


def compiled(model: ScriptedModel, path: Path, cache: Path, **options: Any) -> Any:
    """Compile with BootstrapFewShot, save, and return the ledger."""
    optimiser = dspy.BootstrapFewShot(metric=usable_note, max_bootstrapped_demos=2, max_labeled_demos=0)
    with (
        open_gateway(store=cache, **options) as opened,
        dspy.context(lm=opened.lm(model, role="note_taker"), adapter=dspy.JSONAdapter()),
    ):
        optimiser.compile(NoteTakerProgram(), trainset=trainset()).save(path)
        return opened.budget.role("note_taker")


async def take(model: ScriptedModel, program: Any, gateway: Gateway | None = None, *, target: bool = True) -> Any:
    taker = CompiledNoteTaker(gateway or Gateway(), model, TASK, program, seed=1)
    await taker.prepare([QUESTION] if target else [])
    return await taker.take_note(case(9, target=target), "L7")


async def test_a_note_taker_is_compiled_saved_loaded_and_put_back(tmp_path: Path) -> None:
    model = model_of(lambda said: COPY if "day 0 " in said.rsplit("[[ ## task ## ]]", 1)[1] else GOOD)
    path, cache = tmp_path / "notes.json", tmp_path / "cache.db"
    ledger = compiled(model, path, cache)
    assert (ledger.calls, ledger.cached_calls) == (4, 2), "one list of kinds, three notes; the list is reused"
    demos = load_note_taker(path).write_note.demos
    assert [demo["input"] for demo in demos] == [example(1).input, example(2).input], "the copied rule is no demo"

    with VerdictStore(tmp_path / "loop.db") as store:
        gateway = Gateway(store)
        lesson = await take(model, path, gateway)
        assert lesson.text == f"{STRICTER.opening} gives a wrong day of the week."
        assert (lesson.id, lesson.direction, lesson.dimension) == ("L7", "stricter", "facts")
        assert lesson.evidence == ("e9/q",)
        shown = "\n".join(content for _, content in model.requests[-1].messages)
        assert example(1).input in shown and example(9).input in shown
        assert gateway.budget.role("note_taker").calls == 2
        asked = len(model.requests)
        assert await take(model, path, Gateway(store)) == lesson
        assert len(model.requests) == asked, "what was bought is not bought again"


def test_compiling_again_costs_no_call(tmp_path: Path) -> None:
    model, cache = model_of(), tmp_path / "cache.db"
    first = compiled(model, tmp_path / "one.json", cache)
    second = compiled(model, tmp_path / "two.json", cache)
    assert first.calls == 3 and second.calls == 0
    assert json.loads((tmp_path / "one.json").read_text()) == json.loads((tmp_path / "two.json").read_text())


def test_a_budget_ends_the_compilation(tmp_path: Path) -> None:
    with pytest.raises(BudgetExceededError, match="2 calls"):
        compiled(model_of(), tmp_path / "notes.json", tmp_path / "cache.db", call_budget=2)
    assert not (tmp_path / "notes.json").exists()


async def test_labelled_notes_become_demonstrations_without_a_call() -> None:
    labelled = trainset(quote="did not", fact="opened", kind="a wrong day", rule="tells another day")
    program = dspy.LabeledFewShot(k=2).compile(NoteTakerProgram(), trainset=labelled)
    model = model_of()
    await take(model, program)
    assert sum("tells another day" in content for role, content in model.requests[-1].messages) == 2
    assert len(model.requests) == 2


def test_a_rule_may_begin_as_those_on_faults_do() -> None:
    assert get_args(Opening) == tuple(each.opening for each in DIRECTIONS)


async def test_a_program_that_is_not_compiled_takes_notes_too() -> None:
    lesson = await take(model_of(), NoteTakerProgram())
    assert lesson.text == f"{STRICTER.opening} gives a wrong day of the week."


async def test_a_judge_that_was_too_strict_learns_to_be_more_lenient() -> None:
    model = model_of(lambda _: "leaves the day of the week out")
    lesson = await take(model, NoteTakerProgram(), target=False)
    assert lesson.text == f"{LENIENT.opening} leaves the day of the week out."
    assert lesson.direction == "more lenient"
    assert len(model.requests) == 1, "kinds of faults are of no use here"


async def test_a_refused_rule_is_asked_for_again_once_with_the_reason() -> None:
    model = model_of(lambda said: GOOD if "about this example alone" in said else COPY, kinds=["a", "b"])
    assert (await take(model, NoteTakerProgram())).text.endswith("wrong day of the week.")
    with pytest.raises(ParseError, match=naming("scripted/notes", "example alone")):
        await take(model_of(lambda _: COPY, kinds=["a", "b"]), NoteTakerProgram())


async def test_a_reply_in_another_form_is_asked_for_again_once() -> None:
    replies = iter(["no list", "no note", "still none"])
    model = ScriptedModel(lambda _: next(replies))
    with pytest.raises(ParseError, match=naming("fields")):
        await take(model, NoteTakerProgram())
    assert says(model.requests[-1].messages[-1][1], "fields")


async def test_errors_of_the_gateway_come_out_as_they_are() -> None:
    with pytest.raises(BudgetExceededError):
        await take(model_of(), NoteTakerProgram(), Gateway(budget=Budget(call_budget=1)))
    for fatal in (False, True):
        failing = ScriptedModel(lambda _, fatal=fatal: ModelError("gone", fatal=fatal))
        with pytest.raises(ModelError, match="gone") as error:
            await take(failing, NoteTakerProgram())
        assert error.value.fatal is fatal
    with pytest.raises(ModelError, match="cut off"):
        await take(ScriptedModel(lambda _: Answer("{", finish="length")), NoteTakerProgram())


async def test_a_model_saved_with_the_program_is_not_asked(tmp_path: Path) -> None:
    program = NoteTakerProgram()
    program.set_lm(dspy.LM("openai/elsewhere", api_base="http://127.0.0.1:9"))
    program.save(tmp_path / "notes.json")
    assert (await take(model_of(), tmp_path / "notes.json")).id == "L7"


def test_the_metric_tells_gepa_why_a_rule_was_refused() -> None:
    case = trainset()[0]
    note = {"quote": "did not", "fact": "opened", "kind": "a wrong day", "kinds": ["a wrong day"]}
    good, copy = dspy.Prediction(**note, rule=GOOD), dspy.Prediction(**{**note, "kinds": []}, rule=COPY)
    assert (usable_note(case, good), usable_note(case, copy)) == (1.0, 0.0)
    told = usable_note(case, copy, None, "write_note", [])
    assert told.score == 0.0 and says(told.feedback, "example alone")
    assert usable_note(case, dspy.Prediction(**note, rule="x" * 500)) == 0.0


def test_gepa_rewrites_the_words_of_the_note_taker_and_again_for_nothing(tmp_path: Path) -> None:
    def script(request: Request) -> str:
        fields = (request.parameters.schema or {})["properties"]
        if "new_instruction" in fields:
            assert says(request.messages[-1][1], "example alone"), "GEPA is shown why rules were refused"
            return json.dumps({"new_instruction": GENERAL})
        if "kinds" in fields:
            return json.dumps({"kinds": ["some fault", "other fault"]})
        rule = "has a fault of some kind" if GENERAL in request.messages[0][1] else COPY
        return json.dumps({"quote": "did not", "fact": "opened", "kind": "some other", "rule": rule})

    model = ScriptedModel(script)
    for first in (True, False):
        with (
            open_gateway(store=tmp_path / "cache.db") as opened,
            dspy.context(lm=opened.lm(model, role="note_taker"), adapter=dspy.JSONAdapter()),
        ):
            reflection = opened.lm(model, role="reflection", temperature=1.0)
            gepa = dspy.GEPA(usable_note, max_metric_calls=20, reflection_lm=reflection, num_threads=2)
            program = gepa.compile(NoteTakerProgram(), trainset=trainset(), valset=trainset())
            assert program.write_note.signature.instructions == GENERAL
            assert (opened.budget.role("note_taker").calls > 0) is first
            assert (opened.budget.role("reflection").calls > 0) is first


def test_a_file_that_holds_no_program_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text('{"metadata": {"dependency_versions": {}}}')
    (tmp_path / "broken.json").write_text("{")
    for name in ("other.json", "broken.json", "notes.txt"):
        with pytest.raises(InputError, match=naming(name, "compiled note-taker")):
            load_note_taker(tmp_path / name)
    with pytest.raises(InputError, match="no such file"):
        load_note_taker(tmp_path / "missing.json")


def test_every_role_has_signatures_whose_fields_are_described() -> None:
    assert set(SIGNATURES) == {"note_taker", "deduplicator", "updater", "evaluator", "writer"}
    for signature in (make() for each in SIGNATURES.values() for make in each):
        assert signature.instructions and "JSON" not in signature.instructions and "{" not in signature.instructions
        for name, field in signature.fields.items():
            said = field.json_schema_extra["desc"]
            assert said and "{" not in said, name


@pytest.mark.parametrize(("make", "record"), [(deduplicator_signature, Relation), (updater_signature, Proposal)])
def test_what_a_signature_gives_is_what_the_agent_takes(make: Any, record: Any) -> None:
    outputs = make().output_fields
    assert {name: field.annotation for name, field in outputs.items()} == {
        name: field.annotation for name, field in record.model_fields.items()
    }
