"""A judge that is shown examples that people judged: where that helps it is kept, and where it does not it is not."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import askance
from askance.evaluation.kept_judge import QuestionOrigin
from askance.evaluation.scoring import Targets
from askance.memory.journal import read_events
from askance.models.base import Request
from askance.optimizer.signals import HumanSignal
from askance.optimizer.steps.show_examples import known_answers
from askance.optimizer.subject import Draft
from askance.prompts.checklist import Checklist, Question
from askance.prompts.errors import InputError
from askance.prompts.examples import Example
from askance.prompts.prompt import Prompt
from askance.testing import ScriptedModel
from tests.said import says
from tests.worlds import share

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

QUESTION = "Is the reply good to send?"
_CASE = re.compile(r"Output:\n<(\w+)>\n(.*?)\n</\1>\nPeople: (accepted|rejected)", re.DOTALL)
_JUDGED = re.compile(r"Reply to judge: <(\w+)>\n(.*?)\n</\1>", re.DOTALL)


class Killed(BaseException):
    """What ends a process in the middle."""


class Shop:
    """Replies about things; people reject those about some things, and the judge knows that from the cases alone."""

    def __init__(self, things: int = 2, size: int = 72, *, contrary: bool = False, comments: bool = False) -> None:
        self.things = things
        self.contrary = contrary
        """Whether the judge says the opposite of the nearest case."""
        self.ids = [f"e{number:02d}" for number in range(size)]
        self.comments = comments
        self.parts: dict[str, str] = {}
        """The split that the examples bring along."""
        self.labels: dict[str, bool] = {}
        """Labels other than by the thing."""
        self.requests: list[Request] = []

    def thing(self, example: str) -> int:
        return int(self.things * share("thing", example))

    def passed(self, example: str) -> bool:
        return self.labels.get(example, self.thing(example) % 2 == 0)

    def output(self, example: str) -> str:
        return f"We sent the thing{self.thing(example)} and thing{self.thing(example)} again, {example}."

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [
            {"id": each, "input": "Where is it?", "output": self.output(each)}
            | {"human": {"overall": "pass" if self.passed(each) else "fail"}}
            | ({"comment": "Not that thing."} if self.comments and not self.passed(each) else {})
            | ({"metadata": {"split": self.parts[each]}} if self.parts else {})
            for each in self.ids
        ]

    def reply(self, request: Request) -> str | float:
        """What the judge says: what people said of the first case about the same thing, else yes."""
        text = "\n".join(content for _, content in request.messages)
        if QUESTION not in text:
            return "none"
        judged = _JUDGED.findall(text)
        noise = 0.1 * share("noise", text[-2000:])
        if not judged:
            return 0.8 + noise
        about = re.findall(r"thing\d+", judged[-1][1])[0]
        said = next((said for _, output, said in _CASE.findall(text) if about in output.split()), None)
        if said is None:
            return 0.6 + noise
        return (0.8 if (said == "accepted") is not self.contrary else 0.1) + noise

    def model(self, before: Callable[[Request], None] | None = None) -> ScriptedModel:
        def script(request: Request) -> str | float:
            if before:
                before(request)
            self.requests.append(request)
            return self.reply(request)

        return ScriptedModel(script, name="shop/judge")

    def align(self, run: Path, before: Callable[[Request], None] | None = None, **options: Any) -> askance.RunResult:
        parts = {
            "checklist": Checklist(questions=[Question(id="good", text=QUESTION)]),
            "prompt": Prompt("Judge.\n\nInput: {input}\n\nReply to judge: {output}\n\n{question}"),
        }
        settings: dict[str, Any] = {"embedder": "words", "resamples": 200, "update": "examples", "explain": "never"}
        given = {} if "from_run" in options else parts
        return askance.align(self.rows, model=self.model(before), run=run, **given, **settings | options)


def split_of(run: Path) -> dict[str, str]:
    event = next(each for each in read_events(run / "journal.jsonl") if each["event"] == "split")
    return {name: part for part in ("development", "validation", "test") for name in event[part]}


def cases_in(requests: Sequence[Request]) -> list[tuple[list[str], str]]:
    """The ids of the cases that each request shows, and the id of the example that it judges."""
    texts = ["\n".join(content for _, content in each.messages) for each in requests]
    return [
        (
            [re.findall(r"e\d+", output)[0] for _, output, _ in _CASE.findall(text)],
            re.findall(r"e\d+", judged[-1][1])[0],
        )
        for text in texts
        if (judged := _JUDGED.findall(text))
    ]


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[Shop, askance.RunResult]:
    shop = Shop()
    return shop, shop.align(tmp_path_factory.mktemp("shown") / "run")


def test_examples_that_help_are_kept_and_the_judge_gains_on_test(shown: tuple[Shop, askance.RunResult]) -> None:
    shop, done = shown
    gain = done.record.gain.test
    assert gain is not None and gain.low is not None and gain.low > 0.3
    (row,) = done.record.examples
    assert (row.mode, row.name, row.accepted) == ("fixed", "4 fixed examples", True)
    assert (
        done.finish_reason in ("converged", "examples_tried")
        and done.record.thing == "judge"
        and done.record.same_prompt
    )
    judge = askance.load_judge(done.directory)
    assert judge.examples is not None
    assert {each.verdicts["overall"] for each in judge.examples.cases} == {"accepted", "rejected"}
    for each in judge.examples.cases:
        assert each.answers == {QUESTION: "yes" if shop.passed(each.id) else "no"}
    assert judge.prompt.hash != Prompt(judge.prompt.text).hash == done.record.baseline.hash


def test_only_development_examples_are_shown_and_never_the_one_that_is_judged(
    shown: tuple[Shop, askance.RunResult],
) -> None:
    shop, done = shown
    parts = split_of(done.directory)
    seen = [(cases, judged) for cases, judged in cases_in(shop.requests) if cases]
    assert {parts[judged] for _, judged in seen} == {"development", "validation", "test"}
    assert {parts[each] for cases, _ in seen for each in cases} == {"development"}
    assert all(judged not in cases for cases, judged in seen)


def test_fixed_examples_come_before_everything_so_that_all_outputs_share_them(
    shown: tuple[Shop, askance.RunResult],
) -> None:
    shop, done = shown
    fixed = set(done.record.examples[0].sources)
    texts = {
        each.prefix.split("Reply to judge:")[0]
        for each, (cases, judged) in zip(shop.requests, cases_in(shop.requests), strict=True)
        if cases and judged not in fixed
    }
    assert len(texts) == 1 and next(iter(texts)).startswith("\nThese outputs were judged by people before.")


def test_the_kept_judge_scores_as_the_run_did_and_pays_for_nothing(shown: tuple[Shop, askance.RunResult]) -> None:
    shop, done = shown
    other = Shop()
    again = askance.load_judge(done.directory).evaluate(shop.rows, model=other.model(), no_cache=True)
    fresh = {each.example: each.overall for each in again.scores}
    assert any(score is not None and score < 0.3 for score in fresh.values())
    asked = len(other.requests)
    kept = askance.load_judge(done.directory).evaluate(shop.rows, model=other.model())
    assert {each.example: each.overall for each in kept.scores} == fresh
    parts = split_of(done.directory)
    assert len(other.requests) - asked <= sum(part == "development" for part in parts.values())


@pytest.mark.parametrize("after", [30, 60])
def test_a_killed_run_comes_to_the_same(shown: tuple[Shop, askance.RunResult], tmp_path: Path, after: int) -> None:
    shop, asked = Shop(), []

    def dies(request: Request) -> None:
        asked.append(request.key)
        if len(asked) == after:
            raise Killed

    with pytest.raises(Killed):
        shop.align(tmp_path / "run", dies)
    done = shop.align(tmp_path / "run", lambda request: asked.append(request.key)).result
    for name in ("examples", "best", "gain", "finish_reason"):
        assert done[name] == shown[1].result[name]
    assert len(asked) - len(set(asked)) <= 16, "what was in flight is all that is asked again"


def test_a_run_that_goes_on_from_it_shows_the_same_and_can_be_resumed(
    shown: tuple[Shop, askance.RunResult], tmp_path: Path
) -> None:
    shop = Shop()
    done = shop.align(tmp_path / "more", from_run=shown[1].directory)
    assert done.record.baseline.hash == shown[1].record.best.hash and not done.record.changed
    assert not done.record.examples, "a judge that shows examples is left as it is"
    assert askance.load_judge(done.directory).examples == askance.load_judge(shown[1].directory).examples
    asked = len(shop.requests)
    (done.directory / "result.json").unlink()
    again = shop.align(tmp_path / "more", from_run=shown[1].directory)
    assert again.result == done.result and len(shop.requests) == asked


def test_examples_that_hurt_do_not_come_as_far_as_the_acceptance_test(tmp_path: Path) -> None:
    done = Shop(contrary=True).align(tmp_path / "run")
    assert not done.record.changed and not done.record.rejected_edits
    assert [each.mode for each in done.record.examples] == ["fixed", "retrieved"]
    for each in done.record.examples:
        assert re.fullmatch(r"no gain on 1[56] development examples \(Spearman -0\.\d+\)", each.reason)
    assert askance.load_judge(done.directory).examples is None
    assert "development examples (Spearman -" in done.record.why_unchanged


def test_the_gate_refuses_what_development_alone_speaks_for(tmp_path: Path) -> None:
    shop = Shop()
    names = ("development", "validation", "test")
    shop.parts = {each: names[number % 3] for number, each in enumerate(shop.ids)}
    shop.labels = {each: share("any", each) < 0.5 for each, part in shop.parts.items() if part != "development"}
    done = shop.align(tmp_path / "run")
    assert not done.record.changed
    rejected = done.record.rejected_edits
    fixed, nearest = [done.record.name_of(each) for each in rejected]
    assert says(fixed, 4, "fixed") and says(nearest, "4 nearest", 24)
    assert all("validation" in each.reason or "within noise" in each.reason for each in rejected)


def test_where_a_few_do_not_tell_the_nearest_ones_are_found(tmp_path: Path) -> None:
    shop = Shop(things=16, size=150)
    done = shop.align(tmp_path / "run")
    fixed, retrieved = done.record.examples
    assert not fixed.accepted and retrieved.accepted, [each.reason for each in done.record.examples]
    gain = done.record.gain.test
    assert gain is not None and gain.low is not None and gain.low > 0.3
    parts = split_of(done.directory)
    seen = [(cases, judged) for cases, judged in cases_in(shop.requests) if cases]
    assert {parts[each] for cases, _ in seen for each in cases} == {"development"}
    assert all(judged not in cases and len(cases) <= 4 for cases, judged in seen)
    judge = askance.load_judge(done.directory)
    assert judge.examples is not None and judge.examples.embedder == "words"
    again = judge.evaluate(shop.rows[:20], model=shop.model(), no_cache=True)
    assert any(each.overall is not None and each.overall < 0.3 for each in again.scores)


def test_auto_shows_fixed_ones_where_no_question_was_learned(tmp_path: Path) -> None:
    shop = Shop()
    done = shop.align(tmp_path / "run", update="auto", max_iterations=1)
    assert [each.mode for each in done.record.examples] == ["fixed"]
    assert done.record.best.examples is not None
    decision = next(each for each in read_events(tmp_path / "run" / "journal.jsonl") if each["event"] == "decision")
    assert decision["shows"] == "4 fixed examples"


def test_with_too_few_examples_nothing_is_bought_and_the_run_says_why(tmp_path: Path) -> None:
    shop = Shop(size=24)
    done = shop.align(tmp_path / "run")
    assert len(shop.requests) == 24
    assert all(says(each.reason, "too few", "clearly accepted") for each in done.record.examples)


def test_reasons_are_shown_in_few_words(tmp_path: Path) -> None:
    shop = Shop(comments=True)
    shop.align(tmp_path / "run", call_budget=60)
    texts = [content for each in shop.requests for _, content in each.messages]
    assert any(re.search(r"People: rejected\nWhy:\n<(\w+)>\nNot that thing\.\n</\1>", text) for text in texts)
    assert not any(re.search("People: accepted\nWhy:", text) for text in texts)


@pytest.mark.parametrize("command", ["migrate", "tune"])
def test_only_align_shows_examples(command: str, tmp_path: Path) -> None:
    shop = Shop()
    models = {"source": "a/b", "target": "a/c"} if command == "migrate" else {"generator": "a/b", "judge": "a/c"}
    checklist = Checklist(questions=[Question(id="good", text=QUESTION)])
    with pytest.raises(InputError, match=r"update: must be .*, not examples"):
        getattr(askance, command)(
            shop.rows, checklist=checklist, prompt=Prompt("Go."), run=tmp_path, update="examples", **models
        )


FAULT = Question(id="refund", text="Does it promise a refund?", good="no")
POLITE = Question(id="polite", text="Is it polite?")
WHOLE = Question(id="good", text=QUESTION)


def answers(
    questions: Sequence[Question], wanted: float, sources: Sequence[str] = (), **example: Any
) -> dict[str, str]:
    """What is known of one example, where the fault question was learned from ``sources`` if there are any."""
    checklist = Checklist(questions=questions)
    one = Example.model_validate({"id": "a", "input": "i", "output": "o", **example})
    targets = Targets("human", ("overall",), {"a": {"overall": wanted}})
    origins = {"refund": QuestionOrigin.model_validate({"from": "comment", "sources": sources})} if sources else {}
    signal = HumanSignal(targets, [one], None, threshold=0.3)
    return dict(known_answers(Draft(Prompt("p"), checklist, origins=origins), one, signal, targets))


def test_an_accepted_output_answers_every_question_and_a_rejected_one_only_those_it_is_known_of() -> None:
    assert answers([FAULT, POLITE], 1.0) == {FAULT.text: "no", POLITE.text: "yes"}
    assert answers([FAULT, POLITE], 0.0) == {}, "nobody said which of them it fails"
    assert answers([FAULT], 0.0) == {FAULT.text: "yes"}, "nothing else was asked"
    assert answers([FAULT, WHOLE], 0.0, ["a"]) == {FAULT.text: "yes", WHOLE.text: "no"}
    assert answers([FAULT, WHOLE], 0.0, ["b"]) == {WHOLE.text: "no"}, "the question came from another output"
    assert answers([FAULT, POLITE], 0.0, comment={"polite": "Rude."}) == {POLITE.text: "no"}
    assert answers([FAULT, POLITE], 0.0, human={"refund": False}) == {FAULT.text: "no"}
    assert answers([FAULT, POLITE], 0.5) == {}, "people's score says neither"
