"""A model is more than a name: its server, key, thinking, limits and price belong to it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

import askance
from askance import NamedModel
from askance.evaluation.judge_file import load_judge, parse_judge
from askance.evaluation.kept_judge import KeptJudge
from askance.evaluation.options import EvaluateOptions
from askance.models.budget import Price
from askance.models.named import read_named, with_settings
from askance.models.resolve import Models
from askance.prompts.checklist import Checklist, Question
from askance.prompts.errors import InputError
from askance.prompts.prompt import Prompt
from askance.settings import parse_options
from askance.testing import StandInServer
from tests.said import naming, says
from tests.thinkers import Thinker

ONE = Checklist(questions=(Question(id="q", text="Is it so?", dimension="d"),))
DATA = [
    {"id": str(number), "input": "i", "output": f"text {number}", "human": {"d": number % 5 + 1}}
    for number in range(24)
]
FULL = {
    "model": "openai/gpt-5-mini",
    "thinking": "low",
    "extra_body": {"service_tier": "flex"},
    "headers": {"X-Team": "eval", "X-Trace": "${TRACE}"},
    "max_concurrency": 8,
    "requests_per_minute": 500,
    "tokens_per_minute": 200_000,
    "price": {"input": 0.25, "output": 2.0},
    "timeout": 7,
    "thinking_room": [1_500, 3_000],
}


@pytest.fixture(autouse=True)
def _variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"OLD_KEY": "old-secret-1", "NEW_KEY": "new-secret-2", "TRACE": "trace-3"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


async def resolved(name: str, named: dict[str, Any], **more: Any) -> Any:
    async with Models(named=read_named(named), **more) as models:
        return models.get(name)


async def test_a_named_model_has_what_belongs_to_it() -> None:
    model = await resolved("new", {"new": FULL | {"api_base": "http://127.0.0.1:9/v1"}})
    assert model.name == "new"
    assert (model.max_concurrency, model.requests_per_minute, model.tokens_per_minute) == (8, 500, 200_000)
    assert model.price == Price(0.25e-6, 2e-6)
    assert (model.thinking_room, model.first_room) == ((1_500, 3_000), 1_500)
    assert model._timeout == 7


async def test_what_changes_answers_is_part_of_the_identity_and_what_does_not_is_not() -> None:
    base = {"model": "openai/m", "api_base": "http://127.0.0.1:9/v1"}
    plain = (await resolved("a", {"a": base})).identity
    assert plain == (await resolved("openai/m", {}, api_base="http://127.0.0.1:9/v1")).identity
    same: list[dict[str, Any]] = [
        {"price": {"input": 1, "output": 2}},
        {"headers": {"X-Team": "eval"}},
        {"max_concurrency": 2, "requests_per_minute": 5, "tokens_per_minute": 5, "timeout": 3},
        {"thinking": "auto"},
        {"thinking_room": [100]},
        {"api_key_env": "NEW_KEY"},
    ]
    for more in same:
        assert (await resolved("a", {"a": base | more})).identity == plain
    others = [
        {"thinking": "low"},
        {"thinking": "off"},
        {"thinking": 500},
        {"extra_body": {"top_k": 1}},
        {"api_base": "http://127.0.0.1:8/v1"},
    ]
    found = {(await resolved("a", {"a": base | more})).identity for more in others}
    assert len(found | {plain}) == 6


def test_two_servers_with_two_keys_are_asked_in_one_run_and_no_key_is_in_a_file(tmp_path: Path) -> None:
    with StandInServer(Thinker(30)) as judges, StandInServer(Thinker(50)) as writes:
        models = {
            "judge": {
                "model": "openai/a",
                "api_base": judges.url,
                "api_key_env": "OLD_KEY",
                "extra_body": {"top_k": 1},
            },
            "notes": NamedModel(
                model="openai/b", api_base=writes.url, api_key_env="NEW_KEY", headers={"X-Trace": "${TRACE}"}
            ),
        }
        how: dict[str, Any] = {"run": tmp_path / "run", "models": models, "update": "edits", "store": tmp_path / "s.db"}
        asked: dict[str, Any] = {"checklist": ONE, "model": "judge", "prompt": Prompt("Judge."), "note_taker": "notes"}
        first = askance.align(DATA, **asked, **how)
        again = askance.resume(tmp_path / "run")
        kept = load_judge(tmp_path / "run")
        found = kept.evaluate(DATA, store=tmp_path / "s.db")
    assert {each["Authorization"] for each in judges.headers} == {"Bearer old-secret-1"}
    assert {each["Authorization"] for each in writes.headers} == {"Bearer new-secret-2"}
    assert {each["X-Trace"] for each in writes.headers} == {"trace-3"}
    assert {body["model"] for body in judges.bodies} == {"a"}
    assert all(body["top_k"] == 1 for body in judges.bodies)
    assert again.record.calls == first.record.calls
    assert kept.named == read_named(models)["judge"]
    assert found.coverage.share == 1
    written = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    for secret in (b"old-secret-1", b"new-secret-2", b"trace-3"):
        assert secret not in written


@pytest.mark.parametrize(
    ("models", "said"),
    [
        (
            {"new": {"model": "openai/a", "thinkin": "low"}},
            "new: a model has no setting 'thinkin'. Did you mean 'thinking'",
        ),
        ({"new": {"thinking": "low"}}, "new: model: "),
        ({"new": {"model": "openai/a", "thinking": "lots"}}, "new: thinking: auto, off, minimal"),
        ({"new": {"model": "openai/a", "thinking": True}}, "new: thinking: auto, off, minimal"),
        ({"new": {"model": "openai/a", "thinking": 40_000}}, "40,000 tokens need a larger thinking_room than 32,000"),
        ({"new": {"model": "openai/a", "thinking_room": [5, 3]}}, "thinking_room: the steps must grow"),
        ({"new": {"model": "openai/a", "thinking_room": []}}, "new: thinking_room"),
        ({"new": {"model": "openai/a", "api_base": "ftp://x"}}, "new: api_base: ftp://x: an address begins"),
        ({"new": {"model": "openai/a", "price": {"input": 1}}}, "new: price.output: "),
        ({"new": {"model": "openai/a", "price": {"input": -1, "output": 1}}}, "new: price.input: "),
        ({"new": {"model": "openai/a", "max_concurrency": 0}}, "new: max_concurrency: "),
        ({"new": 5}, "new: a mapping from setting to value is needed"),
        (["new"], "a mapping from name to model is needed"),
        (
            {
                "a": {"model": "openai/m", "price": {"input": 1, "output": 2}},
                "b": {"model": "openai/m", "price": {"input": 1, "output": 3}},
            },
            "'a' and 'b' are one model, openai/m, with two prices",
        ),
    ],
)
def test_a_wrong_setting_of_a_model_is_a_sentence_that_names_it(models: Any, said: str) -> None:
    with pytest.raises(InputError) as error:
        parse_options(EvaluateOptions, {"models": models}, "config.yaml")
    assert said in str(error.value)
    assert str(error.value).startswith("config.yaml: models: ")
    assert error.value.exit_code == 2


@pytest.mark.parametrize(
    "setting",
    [
        {"api_key_env": "sk-proj-abcdefghijklmnop"},
        {"headers": {"Authorization": "Bearer abc"}},
        {"headers": {"x-api-key": "short"}},
        {"headers": {"X-Anything": "sk-live0123456789abcdef"}},
        {"headers": {"X-Anything": "a1B2c3D4e5F6g7H8i9J0k1L2m3"}},
        {"extra_body": {"api_key": "short"}},
        {"extra_body": {"provider": {"token": "short"}}},
    ],
)
def test_a_key_in_a_setting_is_refused_and_not_repeated(setting: dict[str, Any]) -> None:
    with pytest.raises(InputError) as error:
        parse_options(EvaluateOptions, {"models": {"new": {"model": "openai/a", **setting}}}, "config.yaml")
    value = next(iter(setting.values()))
    while isinstance(value, dict):
        value = next(iter(value.values()))
    assert str(value) not in str(error.value)


@pytest.mark.parametrize("value", ["interleaved-thinking-2025-05-14", "eval", "Bearer ${NEW_KEY}", "${NEW_KEY}"])
def test_a_header_that_holds_no_key_is_taken(value: str) -> None:
    read_named({"new": {"model": "openai/a", "headers": {"X-Some": value}}})


@pytest.mark.parametrize(
    ("setting", "variable"),
    [
        ({"api_key_env": "NOT_SET"}, "NOT_SET"),
        ({"headers": {"X": "${NOT_THERE}"}}, "NOT_THERE"),
        ({"extra_body": {"x": ["${NO}"]}}, "NO"),
    ],
)
async def test_a_variable_that_is_not_set_is_said_before_anything_is_bought(
    setting: dict[str, Any], variable: str
) -> None:
    with pytest.raises(InputError, match=f"the model 'new': the environment variable {variable} is not set"):
        await resolved("new", {"new": {"model": "openai/a", "api_base": "http://127.0.0.1:9/v1", **setting}})


async def test_a_model_on_this_machine_has_no_use_for_a_server(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=naming("api_key_env", "local/x")):
        await resolved("here", {"here": {"model": "local/x", "api_key_env": "NEW_KEY"}})


async def test_a_name_that_is_close_to_a_named_model_is_offered() -> None:
    with pytest.raises(InputError, match="Did you mean 'judge'"):
        await resolved("judgge", {"judge": {"model": "openai/a"}})


def test_yaml_s_off_is_the_word_in_a_settings_file(tmp_path: Path) -> None:
    found = read_named(yaml.safe_load("new: {model: openai/a, thinking: off}"))
    assert found["new"].thinking == "off"


# --- judge.yaml --------------------------------------------------------------------------------------------------------


def judge(**more: Any) -> KeptJudge:
    return KeptJudge("new", Prompt("Judge."), ONE, named=NamedModel(**(FULL | more)))


def test_a_judge_s_file_keeps_its_named_model_without_the_values_of_headers() -> None:
    text = judge(api_base="https://eu.example/v1").to_yaml()
    assert "eval" not in text.replace("evaluate", "")
    found = parse_judge(text, "judge.yaml")
    assert found.named == NamedModel(
        **(FULL | {"api_base": "https://eu.example/v1", "headers": {"X-Trace": "${TRACE}"}})
    )
    assert found.to_yaml() == text
    assert found.with_options({})["models"] == {"new": found.named}


def test_a_judge_that_thinks_otherwise_is_another_judge() -> None:
    assert judge().hash != judge(thinking="high").hash
    assert judge().hash == judge(price={"input": 1, "output": 1}, max_concurrency=1).hash


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("    thinking: low", "    thinkng: low"), "new: a model has no setting 'thinkng'. Did you mean 'thinking'"),
        (("    thinking: low", "    thinking: lots"), "new: thinking: "),
        (("models:\n  new:", "models:\n  other:"), "the judge's model is 'new', which is none of them"),
        (("    headers:\n      X-Trace: ${TRACE}", "    headers:\n      X-Key: abc"), "'X-Key' may hold a key"),
    ],
)
def test_a_damaged_named_model_in_a_judge_s_file_is_a_sentence(change: tuple[str, str], said: str) -> None:
    text = judge().to_yaml()
    assert change[0] in text
    with pytest.raises(InputError) as error:
        parse_judge(text.replace(*change), "judge.yaml")
    assert said in str(error.value)
    assert str(error.value).startswith("judge.yaml, field 'models': ")


# --- the command line ---------------------------------------------------------------------------------------------------


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Any) -> Callable[..., Any]:
    """Runs ``askance`` in a folder with data, a checklist and a settings file that names two models."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ASKANCE_STORE", str(tmp_path / "s.db"))
    (tmp_path / "data.csv").write_text("id,input,output\n1,i,a text\n2,i,another text\n", encoding="utf-8")
    (tmp_path / "c.yaml").write_text("questions:\n- {id: q, text: 'Is it so?', dimension: d}\n", encoding="utf-8")

    def run(url: str, *arguments: str) -> Any:
        named = {"new": {"model": "openai/a", "api_base": url, "thinking": "high", "api_key_env": "NEW_KEY"}}
        (tmp_path / "config.yaml").write_text(yaml.safe_dump({"models": named}), encoding="utf-8")
        done = cli(*arguments, "--config", "config.yaml")
        return SimpleNamespace(exit_code=done.code, output=done.out + done.err)

    return run


JUDGE = ("evaluate", "data.csv", "--checklist", "c.yaml", "--model", "new")


def test_one_setting_of_a_model_is_given_on_the_command_line(command: Callable[..., Any]) -> None:
    with StandInServer(Thinker(10)) as server:
        assert command(server.url, *JUDGE, "--model-setting", "new.thinking=low").exit_code == 0
        assert {body["reasoning_effort"] for body in server.bodies} == {"low"}
        direct = ("--model-setting", "openai/b.extra_body={top_k: 3}", "--api-base", server.url)
        assert command(server.url, *JUDGE[:-1], "openai/b", *direct).exit_code == 0
        assert server.bodies[-1]["top_k"] == 3


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("new.thinkin=low", "has no setting 'thinkin'"),
        ("newthinking", "write it as NAME.SETTING=VALUE"),
        ("nwe.thinking=low", "there is no model 'nwe'. Did you mean 'new'"),
        ("new.thinking={", "not valid YAML"),
    ],
)
def test_a_wrong_setting_on_the_command_line_is_said_and_nothing_is_bought(
    command: Callable[..., Any], given: str, said: str
) -> None:
    with StandInServer(Thinker(10)) as server:
        done = command(server.url, *JUDGE, "--model-setting", given)
    assert done.exit_code == 2
    assert said in done.output
    assert not server.bodies


def test_a_room_that_is_too_small_ends_the_command_at_its_first_call_with_the_tokens_it_took(
    command: Callable[..., Any],
) -> None:
    with StandInServer(Thinker(300)) as server:
        done = command(server.url, *JUDGE, "--model-setting", "new.thinking_room=[100]")
    assert done.exit_code == 1
    assert says(done.output, "101 tokens")
    assert len(server.bodies) == 1


def test_an_estimate_says_that_it_is_without_thinking_until_the_model_was_asked(command: Callable[..., Any]) -> None:
    with StandInServer(Thinker(300)) as server:
        before = command(server.url, *JUDGE, "--dry-run")
        command(server.url, *JUDGE)
        after = command(server.url, *JUDGE, "--dry-run", "--repeat", "2")
    assert says(" ".join(before.output.split()), "new", "think", "never asked")
    assert "never asked" not in after.output
    assert _tokens(after.output) > 2 * 300 > 2 * _tokens(before.output)


def _tokens(said: str) -> int:
    return int(said.partition("about ")[2].partition(" tokens")[0].replace(",", ""))


def test_models_check_says_what_a_model_can_do(command: Callable[..., Any]) -> None:
    with StandInServer(Thinker(300)) as server:
        done = command(server.url, "models", "check", "new")
        assert done.exit_code == 0
        assert len(server.bodies) < 8
        found = askance.check_model("openai/a", api_base=server.url)
        judged = command(server.url, *JUDGE)
    assert says(done.output, "thinks", "300 tokens")
    assert "JSON schema        yes" in done.output
    assert "log-probabilities  no" in done.output
    assert (found.thinks, found.room, found.logprobs, found.schema) == (300, 2_000, 0, True)
    assert found.to_dict()["settings"] == {"p_yes": "stated", "mode": "batched", "thinking_room": 2_000}
    assert judged.exit_code == 0


def test_models_check_says_what_is_refused_and_fails_where_nobody_answers(command: Callable[..., Any]) -> None:
    def script(body: Any) -> Any:
        for field in ("temperature", "response_format", "seed"):
            if field in body:
                return 400, {
                    "error": {"message": f"Unsupported parameter: '{field}' is not supported with this model."}
                }
        return Thinker(0)(body)

    with StandInServer(script) as server:
        found = askance.check_model("openai/a", api_base=server.url)
    assert (found.schema, found.temperature, found.seed, found.thinks) == (False, False, False, 0)
    with StandInServer(lambda body: (401, {"error": {"message": "bad key"}})) as server:
        assert command(server.url, "models", "check", "new").exit_code == 1


def test_settings_of_the_command_line_leave_records_as_they_are() -> None:
    record = NamedModel(model="openai/a", thinking="low")
    assert with_settings({"a": record}, ["a.thinking=off"]) == {"a": {"model": "openai/a", "thinking": "off"}}
    assert record.thinking == "low"


# --- records in place of names ------------------------------------------------------------------------------------------


def test_a_record_stands_wherever_a_model_is_named_and_the_run_keeps_it(tmp_path: Path) -> None:
    with StandInServer(Thinker(30)) as judges, StandInServer(Thinker(50)) as writes:
        judge_model = NamedModel(model="openai/a", api_base=judges.url, thinking="low", api_key_env="OLD_KEY")
        notes = NamedModel(model="openai/b", api_base=writes.url, extra_body={"top_k": 1})
        how: dict[str, Any] = {
            "update": "edits",
            "store": tmp_path / "s.db",
            "note_taker": notes,
            "prompt": Prompt("Judge."),
        }
        first = askance.align(DATA, checklist=ONE, model=judge_model, run=tmp_path / "run", **how)
        again = askance.resume(tmp_path / "run")
        found = askance.evaluate(
            DATA, checklist=ONE, model=judge_model, prompt=Prompt("Judge."), store=tmp_path / "s.db"
        )
        kept = load_judge(tmp_path / "run")
        kept.evaluate(DATA, store=tmp_path / "s.db")
        bought = len(judges.bodies)
        kept.evaluate(DATA, model=judge_model, store=tmp_path / "s.db")
        assert len(judges.bodies) == bought, "every verdict was in the store"
        checked = askance.check_model(judge_model, no_cache=True)
    assert {body["reasoning_effort"] for body in judges.bodies} == {"low"}
    assert writes.bodies and all(body["top_k"] == 1 for body in writes.bodies)
    assert again.record.calls == first.record.calls
    assert kept.named == judge_model and kept.model == "openai/a"
    assert found.coverage.share == 1 and checked.thinks == 30


def test_two_records_of_one_name_are_refused_before_anything_is_bought(tmp_path: Path) -> None:
    low, high = (
        NamedModel(model="openai/a", api_base="http://127.0.0.1:9/v1", thinking=each) for each in ("low", "high")
    )
    with pytest.raises(InputError, match=naming("openai/a", "models=")):
        askance.migrate(DATA, checklist=ONE, source=low, target=high, run=tmp_path / "run")
    assert not (tmp_path / "run").exists()
    with pytest.raises(InputError, match=naming("openai/a", "models=")):
        askance.compare(DATA, checklist=ONE, model=[low, high], judges="binary")


async def test_a_record_is_one_model_however_often_it_is_asked_for() -> None:
    record = NamedModel(model="openai/a", api_base="http://127.0.0.1:9/v1", max_concurrency=3)
    async with Models() as models:
        assert models.get(record) is models.get(record) is models.get("openai/a")
        assert models.get(record).max_concurrency == 3  # type: ignore[attr-defined]
        with pytest.raises(InputError, match=naming("openai/a")):
            models.get(NamedModel(model="openai/a", max_concurrency=4))
