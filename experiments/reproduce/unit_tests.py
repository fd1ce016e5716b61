"""Unit tests (LMUnit): their data, their rubrics, and a judge that answers them in several forms at once.

Preference pairs come from files or the hub, a few from each section. All forms share one session and one store, and are
asked output by output.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

import yaml

from ...agents.buying import all_together
from ...agents.evaluator import Evaluator
from ...agents.example_questions import ExampleQuestions
from ...agents.judging import Judging
from ...agents.replies import Reading, in_quotes
from ...agents.requests import Ask, ExpectedScoreAsking
from ...evaluation.options import GatewayOptions
from ...evaluation.scoring import complete_mean, score_examples
from ...models.base import Answer, AnswerStore, Model
from ...models.budget import Budget
from ...models.event_loops import run_sync
from ...models.gateway import Gateway
from ...models.replies.answer_words import number_masses
from ...models.replies.yes_no import LEAST_MASS
from ...models.session import session
from ...prompts.checklist import Checklist, Question
from ...prompts.errors import InputError
from ...prompts.examples import Example, documents
from ...prompts.preferences import Preference
from ...prompts.prompt import default_prompt
from ...prompts.verdicts import Verdict
from ...settings import parse_options
from ...stats.correlation import correlate, statistic_dict
from ...stats.pass_fail import rate
from ...stats.resampling import Resampling
from ..datasets import load_pairs_of
from ..datasets.pairs import LLMBAR_PARTS, load_llmbar
from ..datasets.rated import REFERENCE, RUBRIC, own_test

Kind = Literal["expected", "said", "soft", "hard"]
Metric = Literal["pearson", "accuracy"]
KINDS: Mapping[Kind, str] = {
    "expected": "expected score (weighted)",
    "said": "likeliest score (greedy)",
    "soft": "P(yes)",
    "hard": "yes or no",
}
"""Kinds of a test's score. The first two read the same calls, and so do the last two."""
SCALE = (0, 6)
"""Scores of the paper (LMUnit §3.3, eq. 1)."""
TESTS_PER_INPUT = 8
"""Most query-level tests that are written for an input (LMUnit, Table 15)."""
_FEW_SLOTS = 4
_RUBRICS = Path(__file__).parent / "rubrics.yaml"


def load_sections(dataset: str, files: Sequence[str], *, limit: int | None = None) -> list[Preference]:
    """Load the pairs of a data set, from files or, without files, from the hub. A file whose pairs name no section is a
    section of its own. ``limit`` takes this number of pairs, the first of each section in turn, so that a higher limit
    only adds pairs. Raises InputError for a bad file or row, or if an id is in two files."""
    if files:
        read = ((Path(file).stem, pair) for file in files for pair in load_pairs_of(dataset, file))
        pairs = [pair if pair.section is not None else pair.model_copy(update={"section": name}) for name, pair in read]
    elif dataset == "llmbar":
        pairs = [pair for part in LLMBAR_PARTS for pair in load_llmbar(part=part)]
    else:
        pairs = load_pairs_of(dataset)
    seen: set[str] = set()
    for pair in pairs:
        if pair.id in seen:
            raise InputError(f"The pair '{pair.id}' stands in two of the files {', '.join(files)}.")
        seen.add(pair.id)
    return pairs if limit is None else spread(pairs, limit)


def spread(pairs: Sequence[Preference], limit: int) -> list[Preference]:
    """Choose ``limit`` pairs from the sections in turn, and return them in their order."""
    places: dict[str | None, int] = {}
    turns = []
    for number, pair in enumerate(pairs):
        turn = places.get(pair.section, 0)
        places[pair.section] = turn + 1
        turns.append((turn, number))
    chosen = {number for _, number in sorted(turns)[:limit]}
    return [pair for number, pair in enumerate(pairs) if number in chosen]


def variants(checklist: Checklist, name: str) -> dict[str, Checklist]:
    """Return the compositions of Table 10 that a checklist allows: question, with rubric, with reference, with both.

    Rubrics and references are the checklist's own. A checklist without rubrics takes ours from ``rubrics.yaml`` by
    ``name``: ``global`` or a data set. Raises InputError if there is neither a rubric nor a reference answer, so that
    there is nothing to compare.
    """
    full = with_rubrics(checklist, name)
    has_rubric = any(question.rubric for question in full.questions)
    has_reference = any(question.reference for question in full.questions)
    if not has_rubric and not has_reference:
        raise InputError(
            "No question of the checklist has a rubric or a reference answer: give one with --checklist "
            "(fields `rubric` and `reference` of a question), or take a data set that has rubrics here (pairs, qags)."
        )
    compositions = {"question": _only(full)}
    if has_rubric:
        compositions["question + rubric"] = _only(full, "rubric")
    if has_reference:
        compositions["question + reference"] = _only(full, "reference")
    if has_rubric and has_reference:
        compositions["question + rubric + reference"] = full
    return compositions


def own_forms(
    dataset: str, examples: Sequence[Example], *, with_all: bool
) -> dict[str, list[tuple[Sequence[Example], Checklist]]]:
    """Return the compositions of Table 10 for examples that have a unit test each, grouped by test. ``with_all`` gives
    only the full composition, under an empty name. Raises InputError if a test, rubric or reference is missing."""
    fields: tuple[str, ...] = () if dataset == "infobench" else (RUBRIC, REFERENCE)
    ways: dict[str, tuple[str, ...]]
    if with_all:
        ways = {"": fields}
    elif fields:
        ways = {"question": (), "question + rubric": (RUBRIC,), "question + reference": (REFERENCE,)}
        ways["question + rubric + reference"] = fields
    else:
        raise InputError(f"The tests of {dataset} have no rubric and no reference answer: there is nothing to compare.")
    found: dict[str, list[tuple[Sequence[Example], Checklist]]] = {}
    for name, some in ways.items():
        shared: dict[str, tuple[list[Example], Checklist]] = {}
        for each in examples:
            test = own_test(each, *some)
            shared.setdefault(test.model_dump_json(), ([], test))[0].append(each)
        found[name] = [*shared.values()]
    return found


def with_rubrics(checklist: Checklist, name: str) -> Checklist:
    """Add our rubrics, by question id, to a checklist in which no question has a rubric."""
    rubrics = yaml.safe_load(_RUBRICS.read_text(encoding="utf-8")).get(name, {})
    if any(each.rubric for each in checklist.questions):
        return checklist
    questions = tuple(each.model_copy(update={"rubric": rubrics.get(each.id)}) for each in checklist.questions)
    return checklist.model_copy(update={"questions": questions})


def _only(checklist: Checklist, *fields: str) -> Checklist:
    away = {name: None for name in ("rubric", "reference") if name not in fields}
    questions = tuple(each.model_copy(update=away) for each in checklist.questions)
    return checklist.model_copy(update={"questions": questions})


@dataclass(frozen=True)
class TestForm:
    """Examples, their tests, and the kind of score."""

    examples: Sequence[Example]
    checklist: Checklist
    kind: Kind


@dataclass(frozen=True)
class JudgeAccess:
    """The judge, with the settings of its endpoint and budget."""

    model: str | Model
    options: GatewayOptions
    scale: tuple[int, int] = SCALE
    """Lowest and highest score, for kinds that ask for a number."""


def judge_access(model: str | Model, *, scale: tuple[int, int] = SCALE, **options: Any) -> JudgeAccess:
    """Return a judge with settings of :class:`~askance.evaluation.options.GatewayOptions`. Raises InputError for an
    unknown or wrong setting, or a scale that does not rise within 0 to 10."""
    if not 0 <= scale[0] < scale[1] <= 10:
        raise InputError(
            f"--scale {scale[0]} {scale[1]}: two whole numbers from 0 to 10 are needed, the lower one first."
        )
    return JudgeAccess(model, parse_options(GatewayOptions, options), scale)


def judge(asked: Sequence[TestForm], by: JudgeAccess) -> tuple[list[list[Verdict]], Budget]:
    """Ask the judge all tests, everything about one output close together. Return a list of verdicts for each form, and
    the budget. Raises AskanceError if a cap was reached, or if the endpoint is down or gives no log-probabilities for
    scores; the answers so far are kept."""

    async def work(store: AnswerStore) -> tuple[list[list[Verdict]], Budget]:
        async with session(by.options, store) as (models, gateway):
            judges = [_evaluator(form, gateway, models.get(by.model), by) for form in asked]
            verdicts: list[list[Verdict]] = [[] for _ in asked]
            slots = gateway.concurrency(models.get(by.model))
            block = slots if slots < _FEW_SLOTS else _FEW_SLOTS * slots
            most_outputs = max(len(form.examples) for form in asked)
            # Forms of one kind are asked together. The next kind may then find its calls in the store.
            kinds = [[*places] for _, places in groupby(range(len(asked)), key=lambda place: asked[place].kind)]
            for start in range(0, most_outputs, block):

                async def judge_part(place: int, start: int = start) -> None:
                    if part := asked[place].examples[start : start + block]:
                        verdicts[place] += await judges[place].judge(part)

                for places in kinds:
                    await all_together(places, judge_part, slots)
                print(
                    f"\r{min(start + block, most_outputs)} of {most_outputs} outputs",
                    end="",
                    file=sys.stderr,
                    flush=True,
                )
            print(file=sys.stderr)
            return verdicts, gateway.budget

    with by.options.open_store() as store:
        return run_sync(work(store))


def calls_needed(asked: Sequence[TestForm], by: JudgeAccess) -> int:
    """Return the number of calls that :func:`judge` would buy now; forms that read the same calls count once."""
    distinct_forms: dict[tuple[str, str, str], TestForm] = {}
    for test in asked:
        form = "number" if test.kind in ("expected", "said") else "yes or no"
        distinct_forms.setdefault((form, test.examples[0].id, test.checklist.model_dump_json()), test)

    async def work(store: AnswerStore) -> int:
        async with session(by.options, store) as (models, _):
            nothing_bought = Gateway(store, Budget(call_budget=0))
            model = models.get(by.model)
            return sum(
                _evaluator(test, nothing_bought, model, by).estimate(test.examples).calls
                for test in distinct_forms.values()
            )

    with by.options.open_store(to_estimate=True) as store:
        return run_sync(work(store))


def write_tests(
    examples: Sequence[Example], by: JudgeAccess, writer: str | Model
) -> tuple[dict[str, Checklist], list[str]]:
    """Have a model write tests for each input (LMUnit §4.3.4). Also return a sentence for each failure. Raises
    AskanceError."""
    failed: list[str] = []

    async def work(store: AnswerStore) -> dict[str, Checklist]:
        async with session(by.options, store) as (models, gateway):
            author = ExampleQuestions(gateway, models.get(writer), max_questions=TESTS_PER_INPUT, seed=by.options.seed)
            return await author.write(examples, lambda name, why: failed.append(f"{name}: {why}"))

    with by.options.open_store() as store:
        return run_sync(work(store)), failed


def _evaluator(asked: TestForm, gateway: Gateway, model: Model, by: JudgeAccess) -> Evaluator:
    numbers = asked.kind in ("expected", "said")
    judging = Judging(explain="never", seed=by.options.seed, score_scale=by.scale if numbers else None)
    made = SaidScoreEvaluator if asked.kind == "said" else Evaluator
    return made(gateway, model, default_prompt(asked.examples), asked.checklist, judging)


class SaidScoreAsking(ExpectedScoreAsking):
    """Asks as for expected scores, and reads the likeliest number of the scale, mapped to [0, 1]."""

    def read(self, ask: Ask, answer: Answer) -> dict[str, Reading]:
        """Return the likeliest number of the scale as a reading. Raises ValueError if the answer is no such number."""
        low, high = self.scale
        masses = number_masses(answer.logprobs or (), low, high)
        if sum(masses) < LEAST_MASS:
            raise ValueError(f"{in_quotes(answer.text)} is no number from {low} to {high}")
        p_yes = masses.index(max(masses)) / (high - low)
        return {ask.questions[0].id: Reading(p_yes >= 0.5, p_yes)}


class SaidScoreEvaluator(Evaluator):
    """An evaluator with :class:`SaidScoreAsking`. If the store has the calls for expected scores, it buys nothing."""

    def _asking_for_scores(self, questions: tuple[Question, ...], *, explained: bool) -> SaidScoreAsking:
        usual = super()._asking_for_scores(questions, explained=explained)
        how = (usual.explained, usual.temperature, usual.seed, usual.scale)
        return SaidScoreAsking(usual.prompt, usual.questions, *how)


def direct_row(
    name: str, asked: TestForm, verdicts: Sequence[Verdict], dimensions: Sequence[str], seed: int, metric: Metric
) -> dict[str, Any]:
    """Return a row with the agreement of the mean test score with the human score, by dimension.

    Agreement is Pearson's correlation, or the share of examples whose score and label are on the same side of 1/2.
    ``all`` is the mean over several dimensions (without interval), or the agreement on the only one.
    """
    examples = asked.examples
    scores = score_examples(examples, asked.checklist, verdicts, soft=asked.kind != "hard")
    resampling = Resampling(documents(examples), seed=seed)
    by_dimension = {}
    for dimension in dimensions:
        test_scores = [score.dimensions.get(dimension) for score in scores]
        human = [example.human_score(dimension) for example in examples]
        if metric == "pearson":
            found = correlate(test_scores, human, resampling).pearson
        else:
            sides = zip(test_scores, human, strict=True)
            hits = [None if one is None or other is None else (one >= 0.5) == (other >= 0.5) for one, other in sides]
            found = rate([None if each is None else float(each) for each in hits], resampling)
        by_dimension[dimension] = statistic_dict(found)
    if len(dimensions) == 1:
        overall = by_dimension[dimensions[0]]
    else:
        mean = complete_mean([statistic["value"] for statistic in by_dimension.values()])
        overall = {"value": mean, "low": None, "high": None, "n": len(examples)}
        if mean is None:
            overall["reason"] = "a dimension is undefined"
    return {"technique": name, "all": overall, "sections": by_dimension}
