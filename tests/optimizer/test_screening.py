"""Candidates are judged first on the questions that their lessons come from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from askance.evaluation.scoring import ExampleScore, score_examples
from askance.memory.embedders import embedder
from askance.memory.lesson_memory import LessonMemory
from askance.memory.records import PrunedRecord
from askance.memory.run_directory import RunDirectory
from askance.models.progress import Silent
from askance.optimizer.acceptance import Decision, MeanYardstick, PairedAcceptance
from askance.optimizer.contest import ON_ITS_OWN, Contest, Screening
from askance.optimizer.events import Teller
from askance.optimizer.steps.lesson_edits import prune
from askance.optimizer.subject import Draft, Observation, Pair, Version
from askance.prompts.checklist import Checklist, Question
from askance.prompts.examples import Example
from askance.prompts.lessons import Edit, Lesson
from askance.prompts.prompt import Prompt
from askance.prompts.verdicts import Verdict
from tests.said import says

N = 30
QUESTIONS = ("a", "b", "c")
CHECKLIST = Checklist(task="t", questions=tuple(Question(id=q, text=f"Is {q} so?", dimension="d") for q in QUESTIONS))
EXAMPLES = [Example(id=f"e/{number}", input="i", output="o") for number in range(N)]


class Marked:
    """``a+`` in the prompt raises the answers to question a, ``a-`` lowers them, ``a~`` one; counts what is asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []

    async def observe(
        self, draft: Draft, examples: Sequence[Example], on_done: Callable[[int, int], None] | None = None
    ) -> Observation:
        assert draft.checklist is not None
        names = [each.id for each in draft.checklist.questions]
        self.asked.append(("".join(names), len(examples)))
        text = draft.prompt.text
        p_yes = {q: 0.5 + 0.1 * (text.count(f"{q}+") - text.count(f"{q}-")) for q in names}
        verdicts = []
        for each in examples:
            for q in names:
                p = p_yes[q] + 0.3 * (each.id == "e/0" and f"{q}~" in text)
                verdicts.append(Verdict(each.id, q, "m", "0" * 12, p >= 0.5, p))
        return Observation(examples, verdicts, score_examples(examples, draft.checklist, verdicts), draft.checklist)

    async def probe(self, draft: Draft, pairs: Sequence[Pair], seen: Observation) -> dict[Pair, Verdict]:
        raise AssertionError("a contest judges examples, not pairs")


class Arena:
    """A contest whose lessons L-a, L-b and L-c come from the three questions."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.subject = Marked()
        memory = LessonMemory(embedder("words"))
        for q in QUESTIONS:
            evidence = (f"e/1/{q}",)
            memory.add(Lesson(id=f"L-{q}", text=f"About {q}.", direction="stricter", dimension="d", evidence=evidence))
        self.screening = Screening(self.subject, memory, soft=True)
        run = RunDirectory(folder)
        gate = PairedAcceptance(MeanYardstick(resamples=100, seed=1), EXAMPLES, level=0.2)
        settings: dict[str, Any] = {"racing": True, "bisect": True, "max_prompt_chars": None} | options
        self.events = events = Teller(run.journal(), Silent())
        self.contest = Contest(self.subject, gate, EXAMPLES, run, events, screening=self.screening, **settings)

    async def settle(self, edits: Sequence[Edit]) -> Version:
        self.start = await self.contest.start(Draft(Prompt("Judge."), CHECKLIST))
        self.subject.asked.clear()
        return await self.contest.settle(self.start, edits, 1)


def add(mark: str, *questions: str) -> Edit:
    return Edit(old="Judge.", new=f"Judge. {mark}", lessons=tuple(f"L-{q}" for q in questions))


async def test_a_candidate_without_gain_on_its_own_question_costs_no_other_question(tmp_path: Path) -> None:
    arena = Arena(tmp_path)
    assert await arena.settle([add("c+", "a")]) is arena.start
    assert arena.subject.asked == [("a", 10), ("a", 10)]
    tried = arena.contest.tried[0]
    assert tried.judged == 20
    assert says(tried.reason, "no gain", "first 20")
    assert tried.reason.endswith(ON_ITS_OWN)


async def test_a_clearly_worse_one_is_dropped_after_the_first_examples(tmp_path: Path) -> None:
    arena = Arena(tmp_path)
    assert await arena.settle([add("a-", "a")]) is arena.start
    assert arena.subject.asked == [("a", 10)]


async def test_a_gain_that_noise_may_be_on_its_own_question_waits_and_costs_no_other_question(tmp_path: Path) -> None:
    arena = Arena(tmp_path)
    edit = add("a~", "a")
    assert await arena.settle([edit]) is arena.start
    assert arena.subject.asked == [("a", 10), ("a", 10), ("a", 10)]
    assert says(arena.contest.tried[0].reason, "within noise")
    assert arena.contest.tried[0].reason.endswith(ON_ITS_OWN)
    assert arena.contest.waiting.edits == (edit,)


async def test_a_good_candidate_buys_each_verdict_once_and_is_decided_on_all_of_them(tmp_path: Path) -> None:
    arena = Arena(tmp_path)
    winner = await arena.settle([add("b+", "b")])
    assert arena.subject.asked == [("b", 10), ("b", 10), ("b", 10), ("ac", 30)]
    assert len(winner.verdicts) == len(QUESTIONS) * N
    assert winner.scores[0].overall == pytest.approx((0.5 + 0.6 + 0.5) / 3)


async def test_harm_to_the_other_questions_is_seen_by_the_acceptance_test(tmp_path: Path) -> None:
    arena = Arena(tmp_path)
    assert await arena.settle([add("b+ a- c-", "b")]) is arena.start
    assert arena.subject.asked[-1] == ("ac", 30)
    assert says(arena.contest.tried[0].reason, "no gain", "validation")


async def test_scores_mixed_of_two_prompts_are_in_no_version(tmp_path: Path) -> None:
    """Neither dropped at the last look, with every example judged, nor taken by a stop that lets everything pass."""
    arena = Arena(tmp_path)
    start = await arena.contest.start(Draft(Prompt("Judge."), CHECKLIST))
    edit = add("b+ a-", "b")
    draft = Draft(start.prompt.apply(edit), CHECKLIST)

    def late(best: Sequence[ExampleScore], scores: Sequence[ExampleScore]) -> Decision | None:
        return Decision(False, "late", None) if len(scores) == N else None

    dropped = await arena.contest.race(start, draft, (edit,), [edit], late)
    assert (dropped.version, dropped.judged, dropped.decision.reason) == (None, N, "late" + ON_ITS_OWN)
    whole = await arena.contest.race(start, draft, (edit,), [edit], lambda best, scores: None)
    assert whole.version is not None
    assert [each.overall for each in whole.version.scores] == pytest.approx([(0.4 + 0.6 + 0.5) / 3] * N)
    assert not whole.decision.accepted


async def test_an_edit_that_its_own_questions_miss_stays_and_the_others_are_not_asked(tmp_path: Path) -> None:
    arena = Arena(tmp_path)
    best = await arena.settle([add("b+", "b")])
    best = await arena.contest.settle(best, [Edit(old="b+", new="b+ a+", lessons=("L-a",))], 2)
    arena.subject.asked.clear()
    yardstick = MeanYardstick(resamples=100, seed=1)
    found: list[PrunedRecord] = []
    after = await prune(best, arena.start, arena.contest, yardstick, found)
    assert after is best
    assert arena.subject.asked == [("a", 10), ("b", 10)]
    assert [each.removed for each in found] == [False, False]
    assert all(says(each.reason, "worse", "first 10") and ON_ITS_OWN in each.reason for each in found)


async def test_an_accepted_candidate_is_what_the_next_one_is_held_against(tmp_path: Path) -> None:
    arena = Arena(tmp_path)
    first = await arena.settle([add("b+", "b")])
    second = await arena.contest.settle(first, [Edit(old="b+", new="b+ a+", lessons=("L-a",))], 2)
    assert second.scores[0].overall == pytest.approx((0.6 + 0.6 + 0.5) / 3)


@pytest.mark.parametrize(
    ("edit", "options"),
    [(add("a+", "a", "b", "c"), {}), (add("a+"), {}), (add("a+", "a"), {"racing": False})],
    ids=["lessons about every question", "an edit without lessons", "no racing"],
)
async def test_where_nothing_can_be_saved_all_questions_are_asked_at_once(
    tmp_path: Path, edit: Edit, options: dict[str, Any]
) -> None:
    arena = Arena(tmp_path, **options)
    winner = await arena.settle([edit])
    assert winner is not arena.start
    assert {names for names, _ in arena.subject.asked} == {"abc"}


def test_other_questions_than_before_are_not_screened(tmp_path: Path) -> None:
    screening = Arena(tmp_path).screening
    before = Draft(Prompt("Judge."), CHECKLIST)
    after = Draft(Prompt("Judge. a+"), CHECKLIST.model_copy(update={"questions": CHECKLIST.questions[:2]}))
    assert screening.questions(before, after, [add("a+", "a")]) == ()
    assert screening.questions(before, before, [add("a+", "a")]) == ("a",)
