"""GEPA improves a generator's or a judge's prompt through our adapter: verdicts as feedback, no made-up scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from askance.models.base import ModelError, Request
from askance.prompts.errors import AskanceError, BudgetExceededError, CoverageError, InputError
from askance.prompts.examples import Example
from askance.prompts.prompt import Prompt
from askance.testing import Reply, ScriptedModel

gepa = pytest.importorskip("gepa", reason="needs the extra: pip install 'askance[gepa]'")

from askance.bridges.gepa_adapter import OpenAdapter, evaluator_adapter, generator_adapter  # noqa: E402
from tests.said import naming  # noqa: E402

WELCOME, NAME = "Open with words of welcome.", "Close with the name of its writer."


class Letters:
    """The letters' world with a reflection that learns what it reads."""

    def __init__(self, letters: Any) -> None:
        self.letters = letters
        self.reads: list[str] = []

    def open(self, **options: Any) -> Any:
        model = self.letters.model
        given = {"judge": model("letters/judge"), "checklist": self.letters.checklist, "no_cache": True} | options
        return generator_adapter(
            self.letters.rows, generator=model("letters/writer"), prompt=self.letters.prompt, **given
        )

    def reflect(self, request: Request) -> Reply:
        text = request.messages[-1][1]
        self.reads.append(text)
        said = {"Does the letter greet?: FAILED": WELCOME, "Is the letter signed?: FAILED": NAME}
        learned = [cure for failure, cure in said.items() if failure in text or cure in text]
        return f"```\nWrite what is asked for. {' '.join(learned)}\n```"

    def optimize(self, adapter: OpenAdapter, reflect: Callable[[Request], Reply] | None = None, **options: Any) -> Any:
        return gepa.optimize(
            adapter.seed_candidate,
            trainset=adapter.splits.development,
            valset=adapter.splits.validation,
            adapter=adapter,
            reflection_lm=adapter.reflection(ScriptedModel(reflect or self.reflect)),
            **{"max_metric_calls": 120, "seed": 1} | options,
        )


@pytest.fixture
def post(letters: Any) -> Letters:
    return Letters(letters)


def mean(adapter: OpenAdapter, candidate: Mapping[str, str]) -> float:
    scores = adapter.evaluate(adapter.splits.test, candidate).scores
    return float(sum(scores) / len(scores))


def test_gepa_improves_a_generator_from_the_verdicts_on_every_question(post: Letters) -> None:
    with post.open() as adapter:
        result = post.optimize(adapter)
        before, after = (mean(adapter, each) for each in (adapter.seed_candidate, result.best_candidate))
        assert after > before + 0.2
        assert adapter.prompt(result.best_candidate) == Prompt(f"Write what is asked for. {WELCOME} {NAME}")
        assert adapter.gateway.budget.role("reflection").calls == len(post.reads) > 0
    assert "- Does the letter greet?: FAILED. A part is missing." in post.reads[0]
    assert "- Is the letter signed?: passed" in "".join(post.reads)


def test_a_useless_text_is_not_kept(post: Letters) -> None:
    with post.open() as adapter:
        result = post.optimize(adapter, lambda request: "```\nWrite something.\n```", max_metric_calls=60)
        assert result.best_candidate == adapter.seed_candidate


def test_a_checker_is_feedback_too_and_reasons_are_not_bought_where_nobody_wants_them(
    post: Letters, tmp_path: Path
) -> None:
    with post.open(judge=None, checklist=None, checker=post.letters.checker(tmp_path)) as adapter:
        post.optimize(adapter, max_metric_calls=60)
        assert adapter.gateway.budget.roles.keys() == {"generator", "reflection"}
    assert "FAILED. it has no greeting" in "".join(post.reads)
    post.reads.clear()
    with post.open(explain="never") as adapter:
        post.optimize(adapter, max_metric_calls=60)
    assert "FAILED\n" in post.reads[0] and "missing" not in post.reads[0]


def test_gepa_improves_a_judge_against_people_and_reads_why_it_answered(world: Any) -> None:
    reads: list[str] = []

    def reflect(request: Request) -> Reply:
        reads.append(request.messages[-1][1])
        return "```\nYou are a careful judge. Answer no if it gives a wrong number or gives a wrong name.\n```"

    with evaluator_adapter(
        world.rows, checklist=world.checklist, model=world.model("world/target"), prompt=world.prompt, no_cache=True
    ) as adapter:
        assert adapter.seed_candidate == {"instructions": world.prompt.text}
        result = gepa.optimize(
            adapter.seed_candidate,
            trainset=adapter.splits.development,
            valset=adapter.splits.validation,
            adapter=adapter,
            reflection_lm=adapter.reflection(ScriptedModel(reflect)),
            max_metric_calls=80,
        )
        assert mean(adapter, result.best_candidate) > mean(adapter, adapter.seed_candidate)
    assert "gives a wrong name" in result.best_candidate["instructions"]
    assert "too lenient" in "".join(reads) and "P(yes)" in reads[0] and " decide." in "".join(reads)


def test_only_the_text_between_placeholders_is_gepas(world: Any) -> None:
    whole = Prompt("Input:\n{input}\n\nSummary:\n{output}\n\nJudge with care.\n\n{question}\n")
    with evaluator_adapter(
        world.rows, checklist=world.checklist, model=world.model("world/target"), prompt=whole, no_cache=True
    ) as adapter:
        assert adapter.seed_candidate == {"instructions": "Judge with care."}
        assert adapter.prompt({"instructions": "Be {output}."}).placeholders == ["input", "output", "question"]
        with pytest.raises(InputError, match="no text 'instructions', but these: prompt"):
            adapter.prompt({"prompt": "x"})


# No made-up scores ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["e000", "elsewhere"])
def test_an_example_without_a_human_score_is_named_before_anything_is_bought(world: Any, name: str) -> None:
    first, *others = world.rows
    del first["human"]
    judge = world.model("world/target")
    with (
        pytest.raises(InputError, match=naming(name, "human score")),
        evaluator_adapter(
            [first, *others], checklist=world.checklist, model=judge, prompt=world.prompt, no_cache=True
        ) as adapter,
    ):
        adapter.evaluate([Example(**first | {"id": name})], adapter.seed_candidate)
    assert judge.requests == []


def broken(letters: Any, error: ModelError) -> ScriptedModel:
    """A judge that fails on one example once the prompt was changed."""

    def script(request: Request) -> Reply:
        answer: Reply = letters.reply(request.messages, request.parameters.schema)
        return error if "Hello." in request.messages[-1][1] and not request.parameters.schema else answer

    return ScriptedModel(script, name="letters/judge")


@pytest.mark.parametrize("lets_it_run_on", [False, True])
def test_a_missing_verdict_stops_gepa_with_a_sentence_and_is_no_score(post: Letters, lets_it_run_on: bool) -> None:
    judge = broken(post.letters, ModelError("no answer", status=400))
    sentence = r"letters/judge gave no verdict on '\w+' of the example 'e\d+' \(no answer\).*Run it again"
    with pytest.raises(CoverageError, match=sentence), post.open(judge=judge, retries=0) as adapter:
        post.optimize(adapter, raise_on_exception=not lets_it_run_on, stop_callbacks=adapter.stopped)


def test_a_used_up_budget_stops_gepa(post: Letters) -> None:
    with pytest.raises(BudgetExceededError, match="30 calls"), post.open(call_budget=30) as adapter:
        post.optimize(adapter)


def test_what_was_found_is_kept_where_gepa_is_let_end_by_itself(post: Letters) -> None:
    with post.open(call_budget=60) as adapter:
        result = post.optimize(adapter, raise_on_exception=False, stop_callbacks=adapter.stopped)
        assert isinstance(adapter.search.error, BudgetExceededError) and adapter.gateway.budget.calls == 60
        assert result.best_candidate["instructions"].startswith("Write what is asked for.")


def test_a_reflection_that_can_never_answer_stops_gepa(post: Letters) -> None:
    def refused(request: Request) -> Reply:
        return ModelError("the key is wrong", fatal=True)

    with pytest.raises(ModelError, match="key is wrong"), post.open() as adapter:
        post.optimize(adapter, refused, stop_callbacks=adapter.stopped)


def test_the_same_search_again_costs_nothing(post: Letters, tmp_path: Path) -> None:
    found = []
    for calls in (True, False):
        with post.open(no_cache=False, store=tmp_path / "answers.db") as adapter:
            found.append(post.optimize(adapter).best_candidate)
            assert bool(adapter.gateway.budget.calls) is calls
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"max_iterations": 3}, "'max_iterations' belongs to askance's own loop"),
        ({"alpha": 0.2}, "'alpha' belongs to askance's own loop"),
        ({"cal_budget": 3}, "call_budget"),
        ({"judge": None, "checklist": None}, "Nothing says how good an output is"),
    ],
)
def test_what_cannot_be_opened_is_said(post: Letters, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(AskanceError, match=sentence), post.open(**options):
        pass
