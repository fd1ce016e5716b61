"""A migration words the questions for the target first: in a world in which it is known what each model hears."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import askance
from askance.commands.output import show
from askance.memory.decision import decide
from askance.memory.journal import read_events
from askance.models.base import ModelError, Request
from askance.optimizer.events import KINDS, sentence_of
from askance.optimizer.following import DOING
from askance.optimizer.job import split_examples
from askance.optimizer.modes import migrate
from askance.optimizer.steps.word_questions import Trying
from askance.prompts.checklist import SEEN, Checklist, Question
from askance.prompts.prompt import Prompt
from askance.run_estimate import estimate_run
from askance.stats.resampling import Resampling
from askance.testing import Reply, ScriptedModel
from tests.said import says

AVOID, GIVES, OFFERS, SAYS = (
    "Does the reply avoid promising a refund?",
    "Does the reply give the customer money back?",
    "Does the reply offer a refund?",
    "Does the reply speak of the weather?",
)
POLITE, KIND, THERE = "Is the reply polite?", "Is the reply kind?", "Is there a reply at all?"
WRITTEN = {AVOID: (f"{GIVES}\n{OFFERS}", SAYS), POLITE: (KIND, "Is the reply rude?")}
HEARD = {
    AVOID: ("refund", -1, 0.4),  # its topic, not the negation
    GIVES: ("refund", -1, 0.95),
    OFFERS: ("refund", -1, 0.5),
    SAYS: ("refund", 1, 0.0),
    POLITE: ("polite", 1, 0.95),
    KIND: ("polite", 1, 0.9),
    "Is the reply rude?": ("polite", -1, 0.9),
}
"""What the target hears: whether the output is good in which respect, which way round, and how reliably."""
MEANT = {AVOID: "refund", POLITE: "polite"}


def share(*parts: object) -> float:
    """A number in [0, 1) that depends on the parts alone."""
    digest = hashlib.sha256("/".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48


class Hearing:
    """A strict source that understands every question, and a target that hears what it can."""

    def __init__(self, size: int = 100) -> None:
        self.rows = [
            {"id": f"e{n:03d}", "input": f"Mail [e{n:03d}].", "output": f"Reply [e{n:03d}]."} for n in range(size)
        ]
        self.checklist = Checklist(
            task="Answer the mail.",
            questions=(
                Question(id="refund", text=AVOID, weight=2.0, violation="You get your money back."),
                Question(id="polite", text=POLITE),
                Question(id="there", text=THERE),
            ),
        )
        self.options: dict[str, Any] = {
            "embedder": "words",
            "resamples": 200,
            "update": "questions",
            "explain": "never",
        }
        self.asked: list[tuple[str, Request]] = []
        self.stop: Callable[[int], bool] = lambda number: False

    @staticmethod
    def good(example: str, respect: str) -> bool:
        return share("good", example, respect) < 0.5

    def judge(self, who: str, text: str, example: str) -> float:
        if text == THERE:
            return 0.9 + 0.05 * share("there", who, example)
        noise = 0.2 * share("noise", who, text, example)
        if who == "source":
            return (0.75 if self.good(example, MEANT[text]) else 0.05) + noise
        respect, way, reliable = HEARD[text]
        heard = self.good(example, respect) == (way > 0)
        if share("slip", text, example) > reliable:
            heard = share("guess", text, example) < 0.5
        return (0.75 if heard else 0.05) + noise

    def reply(self, who: str, request: Request) -> Reply:
        last = request.messages[-1][1]
        if last.startswith("Question: "):
            kind = int("its answer is no" in request.messages[0][1])
            return WRITTEN[last.removeprefix("Question: ")][kind]
        (example,) = set(re.findall(r"\[(e\d+)\]", last))
        return self.judge(who, re.findall(r"Question: (.*\?)", last)[-1], example)

    def model(self, who: str) -> ScriptedModel:
        def script(request: Request) -> Reply:
            if self.stop(len(self.asked)):
                raise Gone
            self.asked.append((who, request))
            return self.reply(who, request)

        return ScriptedModel(script, name=f"world/{who}", slots=1)

    def migrate(self, run: Path, **options: Any) -> askance.RunResult:
        return askance.migrate(
            self.rows,
            checklist=self.checklist,
            source=self.model("source"),
            target=self.model("target"),
            run=run,
            prompt=Prompt("Judge."),
            source_prompt=Prompt("Judge strictly."),
            **self.options | options,
        )

    def judged(self, who: str) -> list[str]:
        """Questions that a model was asked, with the example."""
        return [
            request.messages[-1][1]
            for name, request in self.asked
            if name == who and not request.messages[-1][1].startswith("Question: ")
        ]


class Gone(BaseException):
    """The process is no more."""


@pytest.fixture
def hearing() -> Hearing:
    return Hearing()


@pytest.fixture
def done(hearing: Hearing, tmp_path: Path) -> askance.RunResult:
    return hearing.migrate(tmp_path / "run")


def question(result: Mapping[str, Any], name: str) -> Any:
    return next(each for each in result["wordings"] if each["question"] == name)


def test_the_question_that_the_target_mishears_is_asked_for_the_thing_itself(done: askance.RunResult) -> None:
    found = question(done.result, "refund")
    assert found["accepted"]
    assert (found["before"]["text"], found["before"]["good"]) == (AVOID, "yes")
    assert (found["after"]["text"], found["after"]["good"]) == (GIVES, "no")
    assert found["before"]["correlation"] < 0 < 0.5 < found["after"]["correlation"]
    assert found["gain"] > found["bias"] > 0
    best = done.result["best"]["checklist"]["questions"]
    assert [each["id"] for each in best] == ["refund", "polite", "there"]
    assert (best[0]["text"], best[0]["good"], best[0]["weight"]) == (GIVES, "no", 2.0)
    assert best[0]["violation"] == "You get your money back."


def test_questions_that_are_understood_or_tell_nothing_stay_and_it_is_said(done: askance.RunResult) -> None:
    polite, there = (question(done.result, name) for name in ("polite", "there"))
    assert polite["after"] is None and "by chance" in polite["reason"]
    assert [(each["text"], each["sees"]) for each in polite["tried"] if each["sees"] == "output"] == [
        (POLITE, "output")
    ]
    assert len(polite["tried"]) == 3
    assert there["after"] is None and "the source answers yes on all 30 development" in there["reason"]
    assert there["tried"] == []


def test_nothing_else_is_changed_and_the_reason_is_named(done: askance.RunResult) -> None:
    assert done.finish_reason == "questions_worded"
    assert done.prompt == "Judge."
    assert done.result["iterations"] == 0
    assert "note_taker" not in done.result["roles"]
    assert done.result["gain"]["test"]["value"] > 0


def test_parity_of_verdicts_rises_on_examples_that_nobody_looked_at(done: askance.RunResult) -> None:
    for split, n in (("validation", 30), ("test", 40)):
        before, after = (done.result["parity"][split][side] for side in ("baseline", "best"))
        was, now = (each["questions"]["refund"] for each in (before, after))
        assert was["same"]["n"] == now["same"]["n"] == n
        assert was["same"]["value"] < 0.5 < 0.8 < now["same"]["value"]
        assert now["kappa"]["low"] > 0 and now["spearman"]["low"] > 0 and was["kappa"]["value"] < 0
        assert now["gain"]["value"] == pytest.approx(now["same"]["value"] - was["same"]["value"])
        assert before["questions"]["polite"]["same"] == after["questions"]["polite"]["same"]
        assert after["questions"]["there"]["kappa"]["value"] is None and after["questions"]["there"]["kappa"]["reason"]
        assert after["same"]["value"] > before["same"]["value"]
        assert after["same"]["n"] == 3 * n


def test_wordings_are_tried_on_development_alone_and_the_half_that_is_worse_on_few(
    hearing: Hearing, done: askance.RunResult
) -> None:
    job = migrate.prepare(
        hearing.rows, hearing.checklist, "world/source", "world/target", Prompt("Judge."), Prompt("x"), hearing.options
    )
    splits = split_examples(job, None)
    development = {each.id for each in splits.development}

    def asked(text: str) -> set[str]:
        return {re.findall(r"\[(e\d+)\]", each)[0] for each in hearing.judged("target") if text in each}

    assert asked(SAYS) < development and len(asked(SAYS)) == 12
    assert asked(GIVES) > development, "and on validation and test"
    assert not asked(OFFERS) - development
    tried = {each["text"]: each for each in question(done.result, "refund")["tried"]}
    assert "after 12 examples" in tried[SAYS]["dropped"]
    assert tried[GIVES]["n"] == 30 and tried[GIVES]["dropped"] is None
    test = {each.id for each in splits.test}
    events = read_events(done.directory / "journal.jsonl")
    assert [each["event"] for each in events[:5]] == ["split", "wordings", "wordings", "wordings", "decision"]
    first_test = next(
        n for n, (_, r) in enumerate(hearing.asked) if test & set(re.findall(r"\[(e\d+)\]", str(r.messages)))
    )
    assert not [n for n, (_, r) in enumerate(hearing.asked) if SAYS in str(r.messages) and n > first_test]


def test_who_follows_the_run_is_told_what_becomes_of_each_question(done: askance.RunResult) -> None:
    events = [each for each in read_events(done.directory / "journal.jsonl") if each["event"] == "wordings"]
    told = [sentence_of(each) or "" for each in events]
    assert says(told[0], "refund", f"'{GIVES}'", "(yes = fault)", "rank correlation")
    assert says(told[2], "question there stays", "the source answers")
    assert set(KINDS) - {"began", "written", "phase", "measured", "advanced"} == set(DOING)


def test_no_request_is_made_twice_and_judging_the_final_checklist_costs_nothing_for_what_stays(
    hearing: Hearing, done: askance.RunResult
) -> None:
    keys = [request.key for _, request in hearing.asked]
    assert len(keys) == len(set(keys)) == done.result["calls"]
    assert done.result["roles"]["writer"]["calls"] == 4


def test_the_judge_that_is_kept_asks_the_new_question_and_tells_where_it_comes_from(
    hearing: Hearing, done: askance.RunResult
) -> None:
    judge = askance.load_judge(done.directory)
    asked = judge.checklist.question("refund")
    assert (asked.text, asked.good) == (GIVES, "no")
    origin = judge.origins["refund"]
    assert (origin.origin, origin.text, origin.good, origin.n) == ("reworded", AVOID, "yes", 30)
    assert origin.agreement is not None and origin.agreement_before is not None
    assert origin.agreement > 0.5 > 0 > origin.agreement_before
    assert judge.origins["polite"].origin == judge.origins["there"].origin == "start"
    before = len(hearing.asked)
    found = judge.evaluate(hearing.rows, model=hearing.model("target"))
    assert len(hearing.asked) == before, "every answer is in the run's store"
    scores = {each.example: each.overall for each in found.scores}
    kept = [json.loads(line) for line in (done.directory / "verdicts" / "scores.jsonl").read_text().splitlines()]
    best = {row["example"]: row["score"] for row in kept if row["version"] == 1}
    assert len(best) == 40
    assert all(scores[example] == pytest.approx(score) for example, score in best.items())


def test_the_report_compares_answers_to_one_and_the_same_question(done: askance.RunResult) -> None:
    from askance.report.run_data import read_run
    from askance.report.run_figures import parity

    data = read_run(done.directory)
    found = parity(data)
    assert found is not None
    row = next(each for each in found.rows if each.name == "refund")
    assert row.text.startswith(GIVES) and found.split == "development"
    first = [each for each in data.kept.of(0, "test") if each.question == "refund"]
    raw = [json.loads(line) for line in (done.directory / "verdicts" / "000-test.jsonl").read_text().splitlines()]
    said = {each["example"]: each["p_yes"] for each in raw if each["question"] == "refund"}
    assert all(each.p_yes == pytest.approx(1 - said[each.example]) for each in first)
    assert row.wanted == pytest.approx(sum(1 - p for p in source_says(data)) / 30, abs=1e-4)
    html = (done.directory / "report.html").read_text()
    assert "Adopt the new judge" in html and says(html, "judge.yaml", "the prompt alone")
    assert says(html, "same verdicts", "the source", "on test")
    assert "worded anew" in html and AVOID in html and "yes = fault" in html
    assert not says(html, "no question", "proposed") and "0 <small>questions" not in html
    assert row.text.endswith(f"at the start: {AVOID}"), "the starting judge was asked other words"


def test_every_changed_question_is_told_with_its_old_and_new_words_and_the_decision_as_in_the_report(
    done: askance.RunResult, capsys: pytest.CaptureFixture[str]
) -> None:
    new = f"{GIVES} (yes = fault)"
    assert done.result["changed_questions"] == [{"id": "refund", "old": AVOID, "new": new}]
    show(done)
    shown = capsys.readouterr().out
    assert f"- {AVOID}" in shown and f"+ {new}" in shown
    advice = decide(done.record, 40)
    assert (done.result["decision"], done.result["decision_reason"]) == (advice.choice, advice.sentence)
    assert advice.choice == "adopt" and advice.headline in shown and advice.headline in done._repr_html_()
    kept = askance.load_judge(done.directory)
    assert kept.decision == "undecided" and "certificate" in (kept.not_adopted or ""), "40 examples rule out little"


def test_a_rewording_that_is_another_question_of_the_checklist_is_refused(
    hearing: Hearing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(WRITTEN, AVOID, (f"{GIVES}\nis the reply POLITE?", SAYS))
    monkeypatch.setitem(WRITTEN, POLITE, (KIND, GIVES))
    result = hearing.migrate(tmp_path / "run").result
    refund, polite = (question(result, name) for name in ("refund", "polite"))
    dropped = {each["text"]: each["dropped"] for row in (refund, polite) for each in row["tried"] if not each["n"]}
    assert dropped.keys() == {"is the reply POLITE?", GIVES}
    assert says(dropped["is the reply POLITE?"], "question polite") and says(dropped[GIVES], "question refund"), (
        "one that another question has just been given, too"
    )
    assert not any("is the reply POLITE?" in each for each in hearing.judged("target"))
    assert refund["after"]["text"] == GIVES and polite["after"] is None


def source_says(data: Any) -> list[float]:
    """The source's P(yes) to its own wording, on development."""
    split = next(each for each in data.events if each["event"] == "split")
    return [Hearing().judge("source", AVOID, each) for each in split["development"]]


def test_the_gate_can_refuse_the_checklist(hearing: Hearing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judge, probe = hearing.judge, tmp_path / "probe"
    hearing.migrate(probe)
    split = next(each for each in read_events(probe / "journal.jsonl") if each["event"] == "split")
    development = set(split["development"])

    def only_there(who: str, text: str, example: str) -> float:
        if text == GIVES and example not in development:
            return 0.9 - judge(who, text, example) / 2
        return judge(who, text, example)

    monkeypatch.setattr(hearing, "judge", only_there)
    result = hearing.migrate(tmp_path / "run").result
    found = question(result, "refund")
    assert found["after"]["text"] == GIVES and not found["accepted"]
    assert result["accepted_edits"] == [] and len(result["rejected_edits"]) == 1
    assert "checklist" not in result["best"]
    assert result["parity"]["test"]["baseline"]["same"] == result["parity"]["test"]["best"]["same"]
    assert askance.load_judge(tmp_path / "run").origins["refund"].origin == "start"
    assert result["decision"] == "keep" and result.get("changed_questions", []) == []
    assert askance.load_judge(tmp_path / "run").decision == "keep", "its answers are not the source's"


def test_people_may_be_the_yardstick_and_parity_is_bought_all_the_same(hearing: Hearing, tmp_path: Path) -> None:
    for row in hearing.rows:
        row["human"] = {
            "overall": sum(hearing.good(row["id"], each) for each in ("refund", "polite")) + share("h", row["id"]) / 2
        }
    result = hearing.migrate(tmp_path / "run").result
    assert result["reference"] == "human"
    assert question(result, "refund")["accepted"]
    assert result["parity"]["test"]["best"]["questions"]["refund"]["same"]["value"] > 0.8
    assert len(hearing.judged("source")) == 3 * 100
    hearing.asked.clear()
    result = hearing.migrate(tmp_path / "edits", update="edits", differing=0.99).result
    assert len(hearing.judged("source")) == 3 * 70, "on development and test where no question is worded anew"
    assert "parity" not in result and "wordings" not in result and "writer" not in result["roles"]


def test_questions_that_are_asked_together_are_worded_too(hearing: Hearing, tmp_path: Path) -> None:
    reply = hearing.reply

    def batched(who: str, request: Request) -> Reply:
        last = request.messages[-1][1]
        if last.startswith("Question: "):
            return reply(who, request)
        (example,) = set(re.findall(r"\[(e\d+)\]", last))
        asked = re.findall(r"\[(\w+)\] Question: (.*\?)", last)
        return json.dumps({name: "yes" if hearing.judge(who, text, example) >= 0.5 else "no" for name, text in asked})

    hearing.reply = batched  # type: ignore[method-assign]
    result = hearing.migrate(tmp_path / "run", mode="batched", p_yes="hard").result
    found = question(result, "refund")
    assert found["accepted"] and found["after"]["text"] == GIVES and found["after"]["good"] == "no"


def test_a_writer_that_fails_leaves_the_questions_and_it_is_said(hearing: Hearing, tmp_path: Path) -> None:
    reply = hearing.reply

    def down(who: str, request: Request) -> Reply:
        return ModelError("down") if request.messages[-1][1].startswith("Question: ") else reply(who, request)

    hearing.reply = down  # type: ignore[method-assign]
    result = hearing.migrate(tmp_path / "run", retries=0).result
    assert says(question(result, "refund")["reason"], "no other wordings")
    assert result["accepted_edits"] == []
    assert result["parity"]["test"]["best"]["same"]["n"] == 120


@pytest.mark.parametrize("mode", ["each", "batched"])
def test_a_question_is_asked_of_the_output_alone_where_the_target_mixes_it_up_with_the_input(
    hearing: Hearing, tmp_path: Path, mode: str
) -> None:
    judge = hearing.judge

    def asked(last: str, name: str, text: str, example: str) -> float:
        mixed_up = name == "target" and text in WRITTEN[POLITE] + (POLITE,) and "Mail [" in last
        return judge(name, text, f"mail of {example}" if mixed_up else example)

    def reply(who: str, request: Request) -> Reply:
        last = request.messages[-1][1]
        if last.startswith("Question: "):
            return Hearing.reply(hearing, who, request)
        (example,) = set(re.findall(r"\[(e\d+)\]", last))
        if mode == "each":
            return asked(last, who, re.findall(r"Question: (.*\?)", last)[-1], example)
        pairs = re.findall(r"\[(\w+)\] Question: (.*\?)", last)
        return json.dumps({name: "yes" if asked(last, who, text, example) >= 0.5 else "no" for name, text in pairs})

    hearing.reply = reply  # type: ignore[method-assign]
    done = hearing.migrate(tmp_path / "run", mode=mode, p_yes="hard" if mode == "batched" else "auto")
    found = question(done.result, "polite")
    assert found["accepted"]
    assert (found["before"]["text"], found["before"]["sees"]) == (POLITE, "all")
    assert (found["after"]["text"], found["after"]["sees"], found["after"]["good"]) == (POLITE, "output", "yes")
    kept = askance.load_judge(done.directory)
    assert kept.checklist.question("polite").sees == "output"
    assert (kept.origins["polite"].text, kept.origins["polite"].sees) == (POLITE, "all")
    assert kept.origins["refund"].sees is None
    assert done.result["parity"]["test"]["best"]["questions"]["polite"]["same"]["value"] > 0.8
    assert f"{POLITE} ({SEEN['output']})" in (done.directory / "report.html").read_text()


def test_where_the_target_is_shown_nothing_else_nothing_can_be_left_out(hearing: Hearing, tmp_path: Path) -> None:
    for row in hearing.rows:
        row["input"] = ""
    result = hearing.migrate(tmp_path / "run").result
    assert {each["sees"] for row in result["wordings"] for each in row["tried"]} == {"all"}


# --- kill and resume -----------------------------------------------------------------------------------------------


def kept(run: Path) -> dict[str, Any]:
    files = {name: (run / name).read_bytes() for name in ("result.json", "judge.yaml", "prompt.md")}
    events = [{k: v for k, v in each.items() if k != "time"} for each in read_events(run / "journal.jsonl")]
    return files | {"events": events}


def test_a_run_that_is_killed_anywhere_goes_on_to_the_same_end(
    hearing: Hearing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    hearing.migrate(tmp_path / "whole")
    whole, requests = kept(tmp_path / "whole"), [request.key for _, request in hearing.asked]
    for at in range(60, len(requests), 131):
        hearing.asked.clear()
        hearing.stop = lambda number, at=at: number == at  # type: ignore[misc]
        with pytest.raises(Gone):
            hearing.migrate(tmp_path / f"killed{at}")
        hearing.stop = lambda number: False
        hearing.migrate(tmp_path / f"killed{at}")
        assert kept(tmp_path / f"killed{at}") == whole, at
        assert [request.key for _, request in hearing.asked] == requests, at


@pytest.mark.parametrize("part", [0.5, 0.62, 0.8])
def test_more_budget_gives_the_same_result_as_no_limit(
    hearing: Hearing, tmp_path: Path, part: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    hearing.migrate(tmp_path / "whole")
    whole, calls = kept(tmp_path / "whole"), len(hearing.asked)
    stopped = hearing.migrate(tmp_path / "capped", call_budget=int(part * calls))
    assert stopped.finish_reason == "max_calls"
    hearing.migrate(tmp_path / "capped", call_budget=10 * calls)
    assert kept(tmp_path / "capped") == whole


# --- settings ------------------------------------------------------------------------------------------------------


def prepared(hearing: Hearing, **options: Any) -> Any:
    return migrate.prepare(
        hearing.rows,
        hearing.checklist,
        "openai/source",
        "openai/target",
        Prompt("Judge."),
        Prompt("x"),
        {"embedder": "words", "api_base": "http://127.0.0.1:9/v1"} | options,
    )


def test_the_estimate_covers_what_was_bought(hearing: Hearing, done: askance.RunResult) -> None:
    found = estimate_run(prepared(hearing, update="questions"))
    assert found.iteration_calls == 0
    assert found.fixed.calls == 2 * 300
    assert done.result["calls"] <= found.fixed.calls + found.wording_calls + found.last_calls
    assert estimate_run(prepared(hearing, update="edits")).wording_calls == 0
    assert estimate_run(prepared(hearing)).wording_calls == found.wording_calls


def test_questions_come_first_by_default_and_not_in_the_papers_loop(hearing: Hearing) -> None:
    assert prepared(hearing).options.update == "auto"
    assert prepared(hearing).options.words_questions
    assert not prepared(hearing, paper=True).options.words_questions


def test_a_gain_is_measured_with_the_document_of_each_answer_though_some_have_no_answer_of_the_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answers come in turns of the source's yes and no, not in the order of the examples."""
    world, seen = Hearing(60), []
    for n, row in enumerate(world.rows):
        row["metadata"] = {"document": f"d{n // 3}"}
    documents = {row["id"]: row["metadata"]["document"] for row in world.rows}
    heard = world.reply

    def reply(who: str, request: Request) -> Reply:
        last = request.messages[-1][1]
        is_lost = who == "source" and AVOID in last and share("lost", last) < 0.1
        return "Perhaps." if is_lost else heard(who, request)

    choose = Trying.choose

    def noting(self: Trying, own: Any, others: Any, tried: Any, resampling: Resampling) -> Any:
        seen.append((list(own), list(resampling.groups or ())))
        return choose(self, own, others, tried, resampling)

    monkeypatch.setattr(world, "reply", reply)
    monkeypatch.setattr(Trying, "choose", noting)
    world.migrate(tmp_path / "run", max_iterations=1, min_coverage=0.5)
    assert len(seen) >= 2 and len({len(own) for own, _ in seen}) > 1, "the source left some of one question open"
    for own, groups in seen:
        assert groups == [documents[each] for each in own] and own != sorted(own)
