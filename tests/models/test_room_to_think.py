"""A model that thinks before it answers gets room for that, in every role, and what was learned of it is kept."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import askance
from askance import NamedModel
from askance.agents.lesson_checks import Deduplicator
from askance.memory.verdict_store import VerdictStore
from askance.models.base import Answer, ModelError, Parameters, Request, ThinkingFacts, make_request
from askance.models.direct import DirectModel
from askance.models.gateway import Gateway, RetryPolicy
from askance.prompts.checklist import Checklist, Question
from askance.prompts.errors import BudgetExceededError
from askance.prompts.lessons import Lesson
from askance.prompts.prompt import Prompt
from askance.testing import StandInServer
from tests.said import naming, says
from tests.thinkers import Thinker

SIX = [{"id": str(number), "input": "i", "output": f"text {number}"} for number in range(6)]
ONE = Checklist(questions=(Question(id="q", text="Is it so?", dimension="d"),))


def model_at(url: str, **attributes: Any) -> DirectModel:
    model = DirectModel("openai/m", "m", url, identity="openai:m")
    for name, value in attributes.items():
        setattr(model, name, value)
    return model


def request(cap: int = 1, text: str = "x", **more: Any) -> Request:
    return make_request("openai:m", [("user", text)], Parameters(cap, **more))


async def asked(gateway: Gateway, model: DirectModel, *requests: Request) -> list[Answer]:
    return [await gateway.ask("judge", model, each) for each in requests]


# --- room -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["beside", "tags"])
async def test_a_reply_that_was_thought_away_is_asked_for_again_with_room_and_is_no_failure(where: str) -> None:
    said: list[str] = []
    with StandInServer(Thinker(300, where=where)) as server:
        gateway, model = Gateway(), model_at(server.url)
        gateway.on_notice = said.append
        first, second = await asked(gateway, model, request(), request(text="y"))
        await model.close()
    assert (first.text, second.text) == ("Yes", "Yes")
    assert [body["max_tokens"] for body in server.bodies] == [1, 2001, 2001]
    assert gateway.room.thinks(model)
    ledger = gateway.budget.role("judge")
    assert (ledger.calls, ledger.failures, ledger.retries) == (2, 0, 0)
    assert ledger.completion_tokens == 1 + 301 + 301
    assert first.completion_tokens == 302
    assert len(said) == 1
    assert says(said[0], "openai/m", "thinks", "300 tokens")
    assert "room for 2,000 more" in said[0]


async def test_the_room_grows_by_its_steps_and_stays_where_it_was_enough() -> None:
    with StandInServer(Thinker(5_000)) as server:
        model = model_at(server.url)
        await asked(Gateway(), model, request(), request(text="y"))
        await model.close()
    assert [body["max_tokens"] for body in server.bodies] == [1, 2001, 8001, 8001]


async def test_a_call_gets_time_for_its_room() -> None:
    thinker = Thinker(300)

    def slow(body: Mapping[str, Any]) -> Any:
        if body["max_tokens"] > 1:
            time.sleep(0.6)
        return thinker(body)

    with StandInServer(slow) as server:
        model = DirectModel("openai/m", "m", server.url, identity="openai:m", timeout=0.3)
        [answer] = await asked(Gateway(retry=RetryPolicy(1)), model, request())
        await model.close()
    assert answer.text == "Yes"


async def test_usage_that_shows_thinking_gives_room_to_the_next_call_where_the_first_was_long_enough() -> None:
    with StandInServer(Thinker(50)) as server:
        model = model_at(server.url)
        await asked(Gateway(), model, request(200), request(200, "y"))
        await model.close()
    assert [body["max_tokens"] for body in server.bodies] == [200, 2200]


async def test_an_answer_that_is_cut_within_its_own_cap_is_asked_for_again_and_one_beyond_it_stays_cut() -> None:
    with StandInServer(Thinker(195, answer="word " * 8)) as server:
        gateway, model = Gateway(), model_at(server.url)
        (whole,) = await asked(gateway, model, request(200))
        server._script = Thinker(195, answer="word " * 4_000)
        (cut,) = await asked(gateway, model, request(200, "y"))
        await model.close()
    assert (whole.text, whole.finish) == ("word " * 8, "stop")
    assert cut.finish == "length"
    assert [body["max_tokens"] for body in server.bodies] == [200, 2200, 2200]


async def test_where_the_last_step_is_used_up_the_error_has_the_tokens_that_it_took() -> None:
    with StandInServer(Thinker(100_000)) as server:
        gateway, model = Gateway(), model_at(server.url)
        with pytest.raises(ModelError, match=naming("42,004 tokens", "last step", "32,000", "thinking_room")) as error:
            await asked(gateway, model, request())
        await model.close()
    assert error.value.fatal
    assert gateway.budget.tokens == 42_004 + 4 * 40


async def test_a_model_that_has_answered_before_fails_one_call_alone_where_it_thinks_too_long() -> None:
    def script(body: Mapping[str, Any]) -> Any:
        return Thinker(100_000 if "hard" in str(body["messages"]) else 10)(body)

    with StandInServer(script) as server:
        gateway, model = Gateway(), model_at(server.url, thinking_room=(100,))
        await asked(gateway, model, request())
        with pytest.raises(ModelError) as error:
            await asked(gateway, model, request(text="hard"))
        (after,) = await asked(gateway, model, request(text="z"))
        await model.close()
    assert not error.value.fatal
    assert after.text == "Yes"


async def test_more_room_than_the_model_takes_is_an_error_that_says_so_and_the_room_before_stays() -> None:
    def script(body: Mapping[str, Any]) -> Any:
        if body.get("max_tokens", body.get("max_completion_tokens")) > 4_000:
            return 400, {
                "error": {"message": "max_tokens is too large: this model supports at most 4000 completion tokens"}
            }
        return Thinker(3_000 if "hard" in str(body["messages"]) else 300)(body)

    with StandInServer(script) as server:
        gateway, model = Gateway(), model_at(server.url)
        await asked(gateway, model, request())
        with pytest.raises(ModelError, match=naming("refused", "too large")):
            await asked(gateway, model, request(text="hard"))
        (after,) = await asked(gateway, model, request(text="z"))
        await model.close()
    assert after.text == "Yes"


@pytest.mark.parametrize(
    "said",
    [
        "Could not finish the message because max_tokens or model output limit was reached. Please try again with higher max_tokens.",
        "`max_tokens` must be greater than `thinking.budget_tokens`. Please consult our documentation",
    ],
)
async def test_an_error_that_says_that_there_was_no_room_is_a_reply_that_was_cut_off(said: str) -> None:
    def script(body: Mapping[str, Any]) -> Any:
        return (400, {"error": {"message": said}}) if body["max_tokens"] < 20 else Thinker(300)(body)

    with StandInServer(script) as server:
        model = model_at(server.url)
        (found,) = await asked(Gateway(), model, request())
        await model.close()
    assert found.text == "Yes"


async def test_a_cap_on_tokens_counts_the_room_before_the_call_and_what_was_thought_after_it() -> None:
    with StandInServer(Thinker(300)) as server:
        gateway, model = Gateway(), model_at(server.url)
        gateway.budget.token_budget = 1_000
        with pytest.raises(BudgetExceededError):
            await asked(gateway, model, request())
        await model.close()
    assert [body["max_tokens"] for body in server.bodies] == [1]
    assert gateway.budget.tokens == 41


# --- a thought that the server's template has begun -----------------------------------------------------------------------


async def test_a_long_reply_that_was_cut_off_is_tried_once_with_room_as_a_template_may_have_begun_a_thought() -> None:
    with StandInServer(Thinker(300, where="template")) as server:
        gateway, model = Gateway(), model_at(server.url)
        first, second = await asked(gateway, model, request(200), request(200, "y"))
        await model.close()
    assert (first.text, second.text) == ("Yes", "Yes")
    assert [body["max_tokens"] for body in server.bodies] == [200, 2200, 2200]
    assert gateway.room.thinks(model)


async def test_a_long_reply_of_a_model_that_does_not_think_is_tried_once_and_stays_as_it_was() -> None:
    def script(body: Mapping[str, Any]) -> Any:
        usage = {"prompt_tokens": 40, "completion_tokens": body["max_tokens"]}
        return 200, {"choices": [{"message": {"content": "word " * 40}, "finish_reason": "length"}], "usage": usage}

    with StandInServer(script) as server:
        gateway, model = Gateway(), model_at(server.url)
        first, second = await asked(gateway, model, request(200), request(200, "y"))
        await model.close()
    assert [body["max_tokens"] for body in server.bodies] == [200, 2200, 200]
    assert (first.text, first.finish, second.text) == ("word " * 40, "length", "word " * 40)
    assert not gateway.room.thinks(model)
    assert gateway.budget.calls == 2
    assert gateway.budget.role("judge").completion_tokens == 200 + 2200 + 200


@pytest.mark.parametrize("logprobs", [True, False])
@pytest.mark.parametrize("where", ["beside", "tags", "template"])
def test_a_model_that_thinks_judges_however_its_server_shows_it(tmp_path: Path, where: str, logprobs: bool) -> None:
    p_yes = "logprob" if logprobs else "hard"
    how: dict[str, Any] = {"checklist": ONE, "model": "openai/m", "store": tmp_path / "s.db", "p_yes": p_yes}
    with StandInServer(Thinker(120, where=where, logprobs=logprobs)) as server:
        found = askance.evaluate(SIX, api_base=server.url, **how)
        again = askance.evaluate(SIX, api_base=server.url, **how)
    assert [each.answer for each in found.verdicts] == [True] * 6
    assert {round(each.p_yes or 0, 2) for each in found.verdicts} == ({0.9} if logprobs else {1.0})
    assert again.budget.calls == 0
    assert [each.p_yes for each in again.verdicts] == [each.p_yes for each in found.verdicts]


@pytest.mark.parametrize("where", ["beside", "tags", "template"])
def test_left_to_itself_a_model_that_thinks_states_probabilities_and_is_asked_again_for_nothing(
    tmp_path: Path, where: str
) -> None:
    how: dict[str, Any] = {"checklist": ONE, "model": "openai/m", "store": tmp_path / "s.db"}
    with StandInServer(Thinker(120, where=where)) as server:
        found = askance.evaluate(SIX, api_base=server.url, **how)
        again = askance.evaluate(SIX, api_base=server.url, **how)
    assert [each.answer for each in found.verdicts] == [True] * 6
    assert {(each.p_yes, each.p_yes_from) for each in found.verdicts} == {(1.0, "stated")}
    assert again.budget.calls == 0


# --- what was learned is kept ------------------------------------------------------------------------------------------


async def test_the_next_command_asks_with_room_at_once(tmp_path: Path) -> None:
    with StandInServer(Thinker(300)) as server:
        for text in ("x", "y"):
            model = model_at(server.url)
            with VerdictStore(tmp_path / "run.db", shared=tmp_path / "all.db") as store:
                gateway = Gateway(store)
                said: list[str] = []
                gateway.on_notice = said.append
                assert gateway.room.thinks(model) is (text == "y")
                await asked(gateway, model, request(text=text))
            await model.close()
        with VerdictStore(tmp_path / "other run.db", shared=tmp_path / "all.db") as store:
            assert store.learned("openai:m") == ThinkingFacts(2_000, 2, 600)
    assert [body["max_tokens"] for body in server.bodies] == [1, 2001, 2001]
    assert "by 2 answers so far" in said[0]


def test_a_store_of_an_earlier_version_learns_too(tmp_path: Path) -> None:
    with VerdictStore(tmp_path / "old.db") as store:
        store.put(b"1" * 32, Answer("Yes"))
        store._db.execute("DROP TABLE models")
    with VerdictStore(tmp_path / "new.db", tmp_path / "old.db") as store:
        assert store.learned("m") is None
        store.learn("m", ThinkingFacts(8_000, 1, 5))
        store.learn("m", ThinkingFacts(2_000, 2, 10))
        assert store.learned("m") == ThinkingFacts(8_000, 3, 15)
    with VerdictStore(tmp_path / "old.db") as store:
        assert store.learned("m") is None
        assert store.get(b"1" * 32) == Answer("Yes")


async def test_a_store_that_cannot_keep_what_was_learned_stops_nothing(tmp_path: Path) -> None:
    with StandInServer(Thinker(300)) as server, VerdictStore(tmp_path / "s.db") as store:
        store._db.execute("DROP TABLE models")
        model = model_at(server.url)
        (found,) = await asked(Gateway(store), model, request())
        await model.close()
    assert found.text == "Yes"


# --- every role ----------------------------------------------------------------------------------------------------------

RATED = [
    {"id": str(number), "input": f"i{number}", "output": f"text {number}", "human": {"d": number % 5 + 1}}
    for number in range(24)
]


def asked_with(bodies: list[Mapping[str, Any]], *, record: bool) -> list[int]:
    """Tokens that were asked for, for free texts and words, or for records."""
    return [body["max_tokens"] for body in bodies if ("response_format" in body) is record]


def test_source_target_and_those_who_improve_the_prompt_think(tmp_path: Path) -> None:
    with StandInServer(Thinker(700)) as source, StandInServer(Thinker(300)) as target:
        models = {
            "s": {"model": "openai/s", "api_base": source.url},
            "t": {"model": "openai/t", "api_base": target.url},
        }
        found = askance.migrate(
            RATED,
            checklist=ONE,
            source="s",
            target="t",
            source_prompt=Prompt("Judge strictly."),
            prompt=Prompt("Judge."),
            run=tmp_path / "run",
            models=models,
            store=tmp_path / "s.db",
        )
    assert found.record.coverage == 1
    assert asked_with(source.bodies, record=False)[-1] > 2_000
    assert asked_with(target.bodies, record=False)[-1] > 2_000


def test_note_takers_and_updaters_that_think_are_asked_with_room(tmp_path: Path) -> None:
    with StandInServer(Thinker(20)) as judges, StandInServer(Thinker(900)) as helps:
        models = {"j": {"model": "openai/j", "api_base": judges.url}, "h": {"model": "openai/h", "api_base": helps.url}}
        askance.align(
            RATED,
            checklist=ONE,
            model="j",
            prompt=Prompt("Judge."),
            run=tmp_path / "run",
            models=models,
            store=tmp_path / "s.db",
            update="edits",
            note_taker="h",
            updater="h",
            deduplicator="h",
        )
    caps = asked_with(helps.bodies, record=True)
    assert caps[0] < 500
    assert all(cap > 2_000 for cap in caps[1:])
    events = (tmp_path / "run" / "journal.jsonl").read_text(encoding="utf-8")
    assert "cut off" not in events


def test_a_generator_that_thinks_writes_whole_outputs(tmp_path: Path) -> None:
    letters = Thinker(1_500, answer="Dear Sir, all is well. " * 20, where="template")
    with StandInServer(letters) as writes, StandInServer(Thinker(20)) as judges:
        models = {
            "w": {"model": "openai/w", "api_base": writes.url},
            "j": {"model": "openai/j", "api_base": judges.url},
        }
        found = askance.tune(
            [{"id": str(number), "input": f"i{number}"} for number in range(12)],
            generator="w",
            prompt=Prompt("Write."),
            checklist=ONE,
            judge="j",
            run=tmp_path / "run",
            models=models,
            store=tmp_path / "s.db",
            max_iterations=1,
        )
    assert set(asked_with(writes.bodies, record=False)) == {1_024, 3_024}
    assert asked_with(writes.bodies, record=False)[-1] == 3_024
    assert found.record.coverage == 1
    judged = "".join(body["messages"][-1]["content"] for body in judges.bodies)
    assert "Dear Sir" in judged
    assert "No No" not in judged


def saying(tokens: int, replies: Iterator[str]) -> Callable[[Mapping[str, Any]], Any]:
    """Return a server's script: a model that thinks so many tokens before each reply."""
    said: dict[str, str] = {}

    def script(body: Mapping[str, Any]) -> Any:
        text = said.setdefault(str(body["messages"]), "") or next(replies)
        said[str(body["messages"])] = text
        return Thinker(tokens, answer=text)({name: each for name, each in body.items() if name != "response_format"})

    return script


async def test_a_deduplicator_that_thinks_is_asked_with_room() -> None:
    def lesson(number: int) -> Lesson:
        return Lesson(id=f"L{number}", text=f"Rule {number}.", direction="stricter", dimension="d", evidence=())

    reply = json.dumps({"relation": "duplicate", "of": 2, "merged": ""})
    with StandInServer(saying(900, iter([reply]))) as server:
        model = model_at(server.url)
        _, known = await Deduplicator(Gateway(), model).compare(lesson(9), [lesson(1), lesson(2)])
        await model.close()
    assert known is not None and known.id == "L2"
    assert [body["max_tokens"] for body in server.bodies] == [200, 2_200]


def test_a_question_writer_that_thinks_is_asked_with_room(tmp_path: Path) -> None:
    replies = [
        json.dumps({"requirements": ["Be brief."]}),
        json.dumps({"questions": [{"text": "Is it brief?", "violation": "It is long.", "dimension": "style"}]}),
    ]
    with StandInServer(saying(900, iter(replies))) as server:
        written = askance.write_questions(
            "Sum it up.", model=NamedModel(model="openai/m", api_base=server.url), store=tmp_path / "s.db"
        )
    assert [each.text for each in written.questions] == ["Is it brief?"]
    caps = [body["max_tokens"] for body in server.bodies]
    assert caps[0] < 2_000 and all(cap > 2_000 for cap in caps[1:])


async def test_ten_answers_correct_what_was_said_of_a_model_s_thinking() -> None:
    said: list[str] = []

    def script(body: Mapping[str, Any]) -> Any:
        return Thinker(100 if "easy" in str(body["messages"]) else 400)(body)

    with StandInServer(script) as server:
        gateway, model = Gateway(), model_at(server.url)
        gateway.on_notice = said.append
        await asked(gateway, model, request(text="easy"), *(request(text=f"hard {number}") for number in range(12)))
        await model.close()
    first, corrected = said
    assert says(first, 100) and says(corrected, 370, 10, 100)  # (100 + 9 * 400) / 10


async def test_what_was_said_of_a_model_s_thinking_is_not_said_again_where_it_holds() -> None:
    said: list[str] = []
    with StandInServer(Thinker(300)) as server:
        gateway, model = Gateway(), model_at(server.url)
        gateway.on_notice = said.append
        await asked(gateway, model, *(request(text=f"{number}") for number in range(12)))
        await model.close()
    assert len(said) == 1


# --- killed and gone on with -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kill_at", [1, 3, 12])
def test_a_command_that_was_killed_goes_on_with_what_it_learned(tmp_path: Path, kill_at: int) -> None:
    data = tmp_path / "data.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in RATED), encoding="utf-8")
    (tmp_path / "c.yaml").write_text("questions:\n- {id: q, text: 'Is it so?', dimension: d}\n", encoding="utf-8")
    process: list[subprocess.Popen[bytes]] = []
    thinker, arrived = Thinker(300), 0

    def script(body: Mapping[str, Any]) -> Any:
        nonlocal arrived
        arrived += 1
        if arrived == kill_at + 1 and process:
            process.pop().send_signal(signal.SIGKILL)
            return 500, "gone"
        return thinker(body)

    with StandInServer(script) as server:
        command = [sys.executable, "-m", "askance", "evaluate", str(data), "--checklist", str(tmp_path / "c.yaml")]
        command += ["--model", "openai/m", "--api-base", server.url, "--store", str(tmp_path / "s.db"), "--json"]
        command += ["--max-concurrency", "1"]
        process.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        assert process[0].wait(60) == -signal.SIGKILL
        before = [body["max_tokens"] for body in server.bodies]
        server.settle()
        done = subprocess.run(command, capture_output=True, check=True)
        after = [body["max_tokens"] for body in server.bodies[len(before) :]]
    assert json.loads(done.stdout)["coverage"]["share"] == 1
    assert before[0] == 1
    assert all(each > 2_000 for each in before[1:])
    assert all(each > 2_000 for each in after[int(kill_at == 1) :])
    answered = max(0, kill_at - 1)
    assert len(after) == len(RATED) + 1 - answered + int(kill_at == 1)


def test_a_model_that_thinks_and_gives_no_record_is_asked_each_question_alone(tmp_path: Path) -> None:
    thinker = Thinker(60)
    two = Checklist(questions=(*ONE.questions, Question(id="q2", text="Is it so, too?", dimension="d")))

    def script(body: Mapping[str, Any]) -> Any:
        return thinker({name: value for name, value in body.items() if name != "response_format"})

    with StandInServer(script) as server:
        found = askance.evaluate(
            SIX, checklist=two, model="openai/m", api_base=server.url, store=tmp_path / "s.db", p_yes="hard"
        )
    assert [each.answer for each in found.verdicts] == [True] * 12
