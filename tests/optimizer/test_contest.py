"""Bundles, the guilty edit among them, and candidates that are dropped before all is paid."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from askance.evaluation.scoring import ExampleScore, Targets
from askance.memory.journal import read_events
from askance.memory.run_directory import RunDirectory
from askance.models.progress import Silent
from askance.optimizer.acceptance import (
    CorrelationYardstick,
    Decision,
    HeldOutAcceptance,
    MeanYardstick,
    PairedAcceptance,
)
from askance.optimizer.contest import Contest
from askance.optimizer.events import Teller
from askance.optimizer.subject import Crossed, CrossedFold, Draft, Observation, Pair, Version
from askance.prompts.examples import Example
from askance.prompts.lessons import Edit
from askance.prompts.prompt import Prompt
from askance.prompts.verdicts import Verdict
from askance.stats.differences import Difference
from tests.said import says

N = 30
START = Draft(Prompt("Judge."))


class Marked:
    """Every ``+`` in the prompt raises every score a little, each ``~`` one score, a ``!`` makes all 0.

    It counts what it looks at.
    """

    def __init__(self) -> None:
        self.looked_at: list[tuple[str, int]] = []

    async def observe(
        self, draft: Draft, examples: Sequence[Example], on_done: Callable[[int, int], None] | None = None
    ) -> Observation:
        text = draft.prompt.text
        self.looked_at.append((text, len(examples)))
        score = 0.0 if "!" in text else 0.1 + 0.01 * text.count("+")
        lucky = {f"e{number}" for number in range(text.count("~"))}
        scores = [ExampleScore(each.id, score + 0.3 * (each.id in lucky), {}) for each in examples]
        return Observation(examples, [], scores)

    async def probe(self, draft: Draft, pairs: Sequence[Pair], seen: Observation) -> dict[Pair, Verdict]:
        raise AssertionError("a contest judges examples, not pairs")


class Arena:
    """A contest with its subject."""

    def __init__(self, folder: Path, n: int = N, **options: object) -> None:
        examples = [Example(id=f"e{number}", input="i") for number in range(n)]
        self.subject = Marked()
        self.folder = folder
        run = RunDirectory(folder)
        folder.mkdir(exist_ok=True)
        yardstick = MeanYardstick(resamples=100, seed=1)
        paper = options.pop("paper", False)
        gate = HeldOutAcceptance(yardstick, examples) if paper else PairedAcceptance(yardstick, examples, level=0.2)
        settings = {"racing": True, "bisect": not paper, "max_prompt_chars": None} | options
        self.contest = Contest(self.subject, gate, examples, run, Teller(run.journal(), Silent()), **settings)  # type: ignore[arg-type]

    async def settle(self, edits: Sequence[Edit]) -> Version:
        self.start = await self.contest.start(START)
        self.subject.looked_at.clear()
        return await self.contest.settle(self.start, edits, 1)

    @property
    def candidates(self) -> int:
        return len(self.contest.tried)


def add(mark: str, lesson: str = "L1") -> Edit:
    return Edit(old="Judge.", new=f"Judge.\n{mark} {lesson}", lessons=(lesson,))


async def test_edits_that_help_are_accepted_at_once_together(tmp_path: Path) -> None:
    arena = Arena(tmp_path)
    winner = await arena.settle([add("+", f"L{n}") for n in range(4)])
    assert arena.candidates == 1
    assert winner.prompt.text.count("+") == 4
    assert [edit.lessons for edit in winner.edits] == [(f"L{n}",) for n in range(4)]
    assert winner.parent == 0
    assert not (tmp_path / "prompt.md").exists(), "it is written out at the end, once its sentences were shown"
    assert arena.contest.accepted is winner


@pytest.mark.parametrize("k", [2, 4, 8, 16])
@pytest.mark.parametrize("place", ["first", "middle", "last"])
async def test_one_guilty_edit_is_found_in_few_tries_and_the_others_are_kept(
    tmp_path: Path, k: int, place: str
) -> None:
    guilty = {"first": 0, "middle": k // 2, "last": k - 1}[place]
    arena = Arena(tmp_path)
    winner = await arena.settle([add("!" if n == guilty else "+", f"L{n}") for n in range(k)])
    assert arena.candidates <= 2 * math.log2(k) + 1
    assert {edit.lessons[0] for edit in winner.edits} == {f"L{n}" for n in range(k)} - {f"L{guilty}"}
    assert [new for _, new in arena.contest.refused] == [add("!", f"L{guilty}").new]


async def test_a_single_edit_that_fails_is_not_tried_twice(tmp_path: Path) -> None:
    arena = Arena(tmp_path)
    winner = await arena.settle([add("!")])
    assert winner is arena.start
    assert arena.candidates == 1
    assert not (tmp_path / "prompt.md").exists()


async def test_a_clearly_worse_candidate_is_dropped_after_the_first_rung_and_nothing_more_is_paid(
    tmp_path: Path,
) -> None:
    arena = Arena(tmp_path, n=90)
    await arena.settle([add("!")])
    assert [n for _, n in arena.subject.looked_at] == [30]
    [tried] = arena.contest.tried
    assert (tried.accepted, tried.judged) == (False, 30)
    assert says(tried.reason, "clearly worse", "first 30")


async def test_without_racing_every_candidate_is_judged_on_all(tmp_path: Path) -> None:
    arena = Arena(tmp_path, n=90, racing=False)
    await arena.settle([add("!")])
    assert [n for _, n in arena.subject.looked_at] == [90]
    assert arena.contest.tried[0].judged == 90


async def test_a_good_candidate_is_judged_on_every_example_once(tmp_path: Path) -> None:
    arena = Arena(tmp_path, n=90)
    await arena.settle([add("+++")])
    assert [n for _, n in arena.subject.looked_at] == [30, 30, 30]


async def test_a_rung_of_too_few_examples_drops_nobody(tmp_path: Path) -> None:
    arena = Arena(tmp_path, n=20)
    await arena.settle([add("+")])
    assert [n for _, n in arena.subject.looked_at] == [13, 7]


async def test_edits_that_cannot_stand_together_are_tried_one_after_the_other(tmp_path: Path) -> None:
    replace = [Edit(old="Judge.", new=f"Judge{mark}", lessons=(f"L{n}",)) for n, mark in enumerate(("!", "+++"))]
    arena = Arena(tmp_path)
    winner = await arena.settle(replace)
    assert winner.prompt.text == "Judge+++"
    assert arena.candidates == 2


async def test_an_edit_that_no_longer_fits_the_best_prompt_is_left_untried_with_the_reason(tmp_path: Path) -> None:
    replace = [Edit(old="Judge.", new=f"Judge{mark}", lessons=(f"L{n}",)) for n, mark in enumerate(("+++", "!"))]
    arena = Arena(tmp_path)
    winner = await arena.settle(replace)
    assert winner.prompt.text == "Judge+++"
    assert arena.candidates == 1
    assert "does not occur" in arena.contest.untried["Judge.", "Judge!"]


async def test_edits_for_which_no_candidate_is_left_are_neither_rejected_nor_accepted(tmp_path: Path) -> None:
    """Six of eight edits are guilty, which takes more candidates than finding one does."""
    arena = Arena(tmp_path)
    edits = [add(mark, f"L{n}") for n, mark in enumerate("!+!!!+!!")]
    await arena.settle(edits)
    assert arena.candidates == 2 * math.log2(8) + 1
    assert arena.contest.untried
    assert all(says(each, "not tried alone", "this round") for each in arena.contest.untried.values())
    assert not set(arena.contest.untried) & set(arena.contest.refused)


async def test_what_makes_the_prompt_too_long_is_left_untried_with_the_reason(tmp_path: Path) -> None:
    arena = Arena(tmp_path, max_prompt_chars=20)
    long = Edit(old="Judge.", new="Judge. " + "+" * 30, lessons=("L1",))
    assert await arena.settle([long]) is arena.start
    assert arena.candidates == 0
    assert "37 characters, more than 20" in arena.contest.untried[long.old, long.new]


async def test_edits_with_a_gain_within_noise_wait_until_it_stands_out_with_others(tmp_path: Path) -> None:
    arena = Arena(tmp_path)
    edits = [add("~", f"L{n}") for n in range(4)]
    assert await arena.settle(edits[:2]) is arena.start
    assert arena.candidates == 1, "a bundle that gains something is not taken apart"
    assert arena.contest.waiting.edits == tuple(edits[:2])
    assert arena.contest.waiting.lessons == {"L0", "L1"}
    assert arena.contest.refused == {}
    winner = await arena.contest.settle(arena.start, edits[2:], 2)
    assert winner.edits == tuple(edits)
    assert (arena.candidates, arena.contest.waiting.edits) == (2, ())


async def test_an_edit_that_adds_nothing_to_those_that_wait_is_rejected_and_they_go_on_waiting(tmp_path: Path) -> None:
    arena = Arena(tmp_path)
    first, useless, last = add("~~", "L0"), add("-", "L1"), add("~~", "L2")
    await arena.settle([first])
    assert await arena.contest.settle(arena.start, [useless], 2) is arena.start
    assert arena.contest.waiting.edits == (first,)
    assert says(arena.contest.refused[useless.old, useless.new], "within noise", "+0.020 without it")
    winner = await arena.contest.settle(arena.start, [last], 3)
    assert [edit.lessons for edit in winner.edits] == [("L0",), ("L2",)]


async def test_an_edit_that_cannot_stand_beside_those_that_wait_is_tried_alone(tmp_path: Path) -> None:
    arena = Arena(tmp_path)
    waits, better, best = (Edit(old="Judge.", new=f"Judge{mark}", lessons=(mark,)) for mark in ("~", "~~", "+++"))
    await arena.settle([waits])
    assert await arena.contest.settle(arena.start, [better], 2) is arena.start
    assert arena.contest.waiting.edits == (better,)
    assert says(arena.contest.refused[waits.old, waits.new], "within noise"), "the better one replaced it"
    winner = await arena.contest.settle(arena.start, [best], 3)
    assert winner.prompt.text == "Judge+++"
    assert (better.old, better.new) in arena.contest.refused
    assert arena.contest.waiting.edits == ()


async def test_the_papers_loop_takes_a_bundle_or_leaves_it(tmp_path: Path) -> None:
    arena = Arena(tmp_path, paper=True)
    edits = [add("+", "L1"), add("!", "L2")]
    assert await arena.settle(edits) is arena.start
    assert arena.candidates == 1
    assert set(arena.contest.refused) == {(edit.old, edit.new) for edit in edits}


async def test_every_candidate_leaves_its_prompt_and_an_event(tmp_path: Path) -> None:
    arena = Arena(tmp_path)
    await arena.settle([add("!", "L1"), add("+++", "L2")])
    decided = [event for event in read_events(tmp_path / "journal.jsonl") if event["event"] == "decision"]
    assert [(event["version"], event["lessons"], event["accepted"]) for event in decided] == [
        (1, ["L1", "L2"], False),
        (2, ["L1"], False),
        (3, ["L2"], True),
    ]
    assert len(list((tmp_path / "prompts").iterdir())) == 4


def folded(arena: Arena, agrees: float, lean: float, others: int = 0) -> Crossed:
    """One fold of a judge of chance, one that agrees with people on this share of 40 examples, and its leaner one, which agrees
    on as many tenths that are others.
    """
    examples = [Example(id=f"e{number}", input="i") for number in range(40)]
    wanted = {each.id: {"overall": number % 2} for number, each in enumerate(examples)}
    targets = Targets("human", ("overall",), wanted)
    yardstick = CorrelationYardstick(targets, resamples=200, seed=1)
    arena.contest.acceptance = PairedAcceptance(yardstick, examples, level=0.1)

    def says(share: float, first: int = 0) -> list[ExampleScore]:
        agreed = [first <= number // 2 % 10 < first + 10 * share for number in range(40)]
        said = [number % 2 if yes else 1 - number % 2 for number, yes in enumerate(agreed)]
        return [ExampleScore(each.id, one, {"overall": one}) for each, one in zip(examples, said, strict=True)]

    chance = [number // 2 % 2 for number in range(40)]
    before = [ExampleScore(each.id, one, {"overall": one}) for each, one in zip(examples, chance, strict=True)]
    return Crossed((CrossedFold(examples, before, says(agrees), says(lean, others)),))


@pytest.mark.parametrize(
    ("agrees", "gives_up"),
    [(0.5, False), (0.4, False), (0.2, True)],
    ids=["no gain", "a loss within a standard error", "a loss beyond it"],
)
async def test_learning_is_given_up_after_half_of_the_folds_only_where_it_loses_beyond_a_standard_error(
    tmp_path: Path, agrees: float, gives_up: bool
) -> None:
    arena = Arena(tmp_path)
    refused = arena.contest.give_up(START, folded(arena, agrees, agrees))
    assert (refused is not None) is gives_up
    if refused is not None:
        gain = refused.decision.gain
        assert gain is not None and gain.value is not None and gain.standard_error is not None
        assert gain.value + gain.standard_error < 0 and not refused.decision.accepted


@pytest.mark.parametrize(
    ("lean", "others", "may"),
    [(0.9, 0, True), (0.8, 0, True), (0.7, 0, False), (0.7, 3, True)],
    ids=["better", "the same", "worse on four", "worse on twelve and better on eight"],
)
async def test_idle_questions_stay_where_the_judge_is_worse_without_them_by_more_than_a_standard_error(
    tmp_path: Path, lean: float, others: int, may: bool
) -> None:
    arena = Arena(tmp_path)
    assert arena.contest.may_go_without(folded(arena, 0.8, lean, others)) is may


class Answering(Marked):
    """Verdicts come with the scores; ``missing`` of them have no answer."""

    missing = 0

    async def observe(
        self, draft: Draft, examples: Sequence[Example], on_done: Callable[[int, int], None] | None = None
    ) -> Observation:
        seen = await super().observe(draft, examples, on_done)
        return Observation(seen.examples, answered([each.id for each in examples], self.missing), seen.scores)


def answered(names: Sequence[str], missing: int) -> list[Verdict]:
    gone = set(names[:missing])
    return [
        Verdict(name, "q", "m", "p", None if name in gone else True, status="api_error" if name in gone else "ok")
        for name in names
    ]


@pytest.mark.parametrize(("missing", "enough"), [(0, True), (3, True), (4, False)])
async def test_a_candidate_is_accepted_with_just_the_coverage_that_is_asked_for(
    tmp_path: Path, missing: int, enough: bool
) -> None:
    arena = Arena(tmp_path / "run", racing=False, min_coverage=0.9)
    arena.subject = arena.contest.subject = Answering()
    start = await arena.contest.start(START)
    arena.subject.missing = missing
    winner = await arena.contest.settle(start, [add("+")], 1)
    assert (winner is not start) is enough
    assert says(arena.contest.tried[0].reason, "--min-coverage", "90.0%") is not enough


async def test_no_candidate_is_accepted_where_the_best_version_lacks_verdicts(tmp_path: Path) -> None:
    arena = Arena(tmp_path / "run", racing=False, min_coverage=0.9)
    arena.subject = arena.contest.subject = Answering()
    arena.subject.missing = 4
    start = await arena.contest.start(START)
    arena.subject.missing = 0
    assert await arena.contest.settle(start, [add("+")], 1) is start
    assert "26 of 30" in arena.contest.tried[0].reason


async def test_what_was_decided_beside_one_version_is_decided_anew_beside_another(tmp_path: Path) -> None:
    arena = Arena(tmp_path / "run", racing=False)
    start = await arena.contest.start(START)
    edit = add("~")
    assert await arena.contest.settle(start, [edit], 1) is start
    again = len(arena.subject.looked_at)
    assert await arena.contest.settle(start, [edit], 2) is start
    assert len(arena.subject.looked_at) == again, "the same is not judged twice"
    other = replace(start, number=9)
    await arena.contest.settle(other, [edit], 3)
    assert len(arena.subject.looked_at) > again


async def test_candidates_that_share_a_level_are_each_held_to_their_part_of_it(tmp_path: Path) -> None:
    arena = Arena(tmp_path / "run", racing=False)
    start = await arena.contest.start(START)
    found = {}
    for lucky in range(1, 8):
        draft = Draft(Prompt("Judge." + "~" * lucky))
        alone, shared = [
            (await arena.contest.race(start, draft, (), (), look=look)).decision.accepted for look in (None, (1, 9))
        ]
        found[lucky] = (alone, shared)
    assert (True, False) in found.values() and (False, True) not in found.values()


# --- who decides about what -----------------------------------------------------------------------------------------


class Gate:
    """An acceptance test whose answers are given; it notes what it is asked, at every look."""

    def __init__(self, *gains: float | None, at: tuple[int, int] | None = None, drops: Sequence[int] = ()) -> None:
        self.gains, self.at, self.drops = list(gains), at, drops
        self.asked: list[tuple[str, tuple[int, int] | None, list[float | None], list[float | None]]] = []

    def _note(self, what: str, best: Sequence[ExampleScore], candidate: Sequence[ExampleScore]) -> None:
        self.asked.append((what, self.at, [each.overall for each in best], [each.overall for each in candidate]))

    def decide(self, best: Sequence[ExampleScore], candidate: Sequence[ExampleScore]) -> Decision:
        self._note("decide", best, candidate)
        return decision_of(self.gains.pop(0))

    def decide_crossed(self, crossed: Crossed) -> Decision:
        self._note("crossed", crossed.before, crossed.after)
        return decision_of(self.gains.pop(0))

    def at_look(self, number: int, most: int) -> Gate:
        other = Gate(at=(number, most), drops=self.drops)
        other.gains, other.asked = self.gains, self.asked
        return other

    def hopeless(self, best: Sequence[ExampleScore], candidate: Sequence[ExampleScore]) -> Decision | None:
        self._note("hopeless", best, candidate)
        return Decision(False, "dropped", None) if len(candidate) in self.drops else None


def decision_of(gain: float | None, error: float = 0.05) -> Decision:
    found = Difference(gain, N, None, None, 0.01, None, error)
    return Decision(gain is not None and gain > 0, "as given", found, gain is not None and gain <= 0)


def gated(arena: Arena, gate: Gate) -> Gate:
    arena.contest.acceptance = gate
    return gate


@pytest.mark.parametrize("look", [None, (1, 1), (1, 3), (3, 3)])
async def test_a_candidate_is_dropped_and_decided_at_the_look_that_it_has(
    tmp_path: Path, look: tuple[int, int] | None
) -> None:
    arena = Arena(tmp_path / "run")
    gate = gated(arena, Gate(0.1))
    start = await arena.contest.start(START)
    draft = Draft(Prompt("Judge.++"))
    raced = await arena.contest.race(start, draft, (), (), look=look)
    before, now = [pytest.approx(0.1)] * N, [pytest.approx(0.12)] * N
    assert gate.asked == [
        ("hopeless", look, before, now[:10]),
        ("hopeless", look, before, now[:20]),
        ("decide", look, before, now),
    ]
    assert raced.decision.accepted and raced.judged == N and raced.version is not None
    assert [each.example for each in raced.version.scores] == [f"e{place}" for place in range(N)]
    assert (raced.version.parent, raced.version.draft) == (start.number, draft)


@pytest.mark.parametrize(("drops", "judged"), [([10], 10), ([20], 20), ([N], N), ([], N)])
async def test_a_candidate_that_is_dropped_is_no_version_and_is_judged_no_further(
    tmp_path: Path, drops: list[int], judged: int
) -> None:
    """Once all verdicts are there the acceptance test decides, whatever was hopeless before."""
    arena = Arena(tmp_path / "run")
    start = await arena.contest.start(START)
    gate = gated(arena, Gate(0.1, drops=drops))
    arena.subject.looked_at.clear()
    winner = await arena.contest.settle(start, [add("+")], 1)
    assert sum(n for _, n in arena.subject.looked_at) == judged
    [tried] = arena.contest.tried
    assert tried.judged == judged and tried.accepted is (judged == N) is (winner is not start)
    assert [what for what, *_ in gate.asked].count("decide") == (judged == N)


@pytest.mark.parametrize(
    ("n", "racing", "rungs"),
    [(90, True, [30, 30, 30]), (24, True, [8, 8, 8]), (23, True, [15, 8]), (11, True, [11]), (90, False, [90])],
)
async def test_looks_are_at_a_third_and_two_thirds_of_the_examples_where_these_are_eight_or_more(
    tmp_path: Path, n: int, racing: bool, rungs: list[int]
) -> None:
    arena = Arena(tmp_path / "run", n, racing=racing)
    gated(arena, Gate(0.1))
    await arena.settle([add("+")])
    assert [looked for _, looked in arena.subject.looked_at] == rungs


@pytest.mark.parametrize("coverage", [0.0, 0.5, 27 / 30, 29 / 30, 1.0])
@pytest.mark.parametrize("side", ["candidate", "best"])
@pytest.mark.parametrize("way", ["race", "cross"])
async def test_exactly_the_coverage_that_is_asked_for_is_enough_on_either_side_and_one_verdict_less_is_not(
    tmp_path: Path, coverage: float, side: str, way: str
) -> None:
    arena = Arena(tmp_path / "run", racing=False, min_coverage=coverage)
    gated(arena, Gate(0.1))
    arena.subject = arena.contest.subject = Answering()
    allowed = round(N * (1 - coverage))
    for missing, enough in ((allowed, True), (allowed + 1, False)):
        if missing > N:
            continue
        gated(arena, Gate(0.1))
        arena.subject.missing = missing if side == "best" else 0
        start = await arena.contest.start(START)
        arena.subject.missing = missing if side == "candidate" else 0
        draft = Draft(Prompt("Judge.+"))
        folds = Crossed((CrossedFold(arena.contest.validation, start.scores, start.scores, start.scores),))
        raced = await (
            arena.contest.race(start, draft, (), ()) if way == "race" else arena.contest.cross(start, draft, folds)
        )
        assert raced.decision.accepted is enough
        assert raced.decision.within_noise is not enough, "with the verdicts it may stand out"
        assert says(raced.decision.reason, N - missing, N) is not enough
        assert raced.version is not None and raced.judged == N
        assert (arena.contest.conclude(start, raced, (), 1) is start) is not enough


async def test_where_verdicts_are_missing_a_rejection_keeps_its_own_reason(tmp_path: Path) -> None:
    arena = Arena(tmp_path / "run", racing=False, min_coverage=1.0)
    gated(arena, Gate(-0.1))
    arena.subject = arena.contest.subject = Answering()
    arena.subject.missing = 5
    start = await arena.contest.start(START)
    assert await arena.contest.settle(start, [add("+")], 1) is start
    assert arena.contest.tried[0].reason == "as given"


async def test_the_folds_decide_about_what_validation_has_taught_and_the_version_keeps_them(tmp_path: Path) -> None:
    arena = Arena(tmp_path / "run")
    start = await arena.contest.start(START)
    gate = gated(arena, Gate(0.1, -0.1, 0.1))
    crossed = folded(arena, 0.8, 0.6)
    arena.contest.acceptance = gate
    for accepted in (True, False):
        raced = await arena.contest.cross(start, Draft(Prompt("Judge.+")), crossed)
        what, at, before, after = gate.asked[-1]
        assert (what, at) == ("crossed", None)
        assert (before, after) == ([each.overall for each in crossed.before], [each.overall for each in crossed.after])
        assert raced.decision.accepted is accepted and raced.judged == 40
        assert raced.version is not None and raced.version.crossed is crossed
        assert [each.example for each in raced.version.scores] == [each.id for each in arena.contest.validation]
        winner = arena.contest.conclude(start, raced, (), 1)
        assert (winner is raced.version) is accepted and arena.contest.accepted is not start
    later = await arena.contest.race(arena.contest.accepted or start, Draft(Prompt("Judge.++")), (), ())
    assert later.version is not None and later.version.crossed is crossed, "its validation is still no witness"


@pytest.mark.parametrize(
    ("gain", "gives_up"), [(0.1, False), (-0.04, False), (-0.05, True), (-0.06, True), (None, True)]
)
async def test_half_of_the_folds_end_it_from_a_loss_of_one_standard_error_on(
    tmp_path: Path, gain: float | None, gives_up: bool
) -> None:
    arena = Arena(tmp_path / "run")
    crossed = folded(arena, 0.8, 0.6)
    gated(arena, Gate(gain))
    refused = arena.contest.give_up(START, crossed)
    assert (refused is not None) is gives_up
    if refused is not None:
        assert refused.version is None and refused.judged == len(crossed.examples)


@pytest.mark.parametrize(("gain", "may"), [(0.1, True), (-0.05, True), (-0.06, False), (None, False)])
async def test_idle_questions_go_unless_that_is_a_loss_of_more_than_a_standard_error(
    tmp_path: Path, gain: float | None, may: bool
) -> None:
    arena = Arena(tmp_path / "run")
    crossed = folded(arena, 0.8, 0.6)
    gate = gated(arena, Gate(gain))
    assert arena.contest.may_go_without(crossed) is may
    lean = [each.overall for fold in crossed.folds for each in fold.lean]
    assert gate.asked == [("crossed", None, [each.overall for each in crossed.after], lean)], "held against the whole"


async def test_every_new_best_version_is_what_the_next_candidates_are_held_against_and_decided_anew(
    tmp_path: Path,
) -> None:
    """The same edits on another best version are another candidate; on the same one the answer is known."""
    arena = Arena(tmp_path / "run", racing=False)
    start = await arena.contest.start(START)
    gate = gated(arena, Gate(-0.1, 0.2, 0.3, -0.1))
    weak, strong = add("~", "L1"), Edit(old="Judge.", new="Judge. Be strict.\n+++", lessons=("L2",))
    assert await arena.contest.settle(start, [weak], 1) is start
    better = await arena.contest.settle(start, [strong], 2)
    assert better.parent == start.number and arena.contest.accepted is better
    again = await arena.contest.settle(better, [weak], 3)
    assert again.parent == better.number and again.edits[-1] == weak
    base = [max(each.overall or 0 for each in version.scores) for version in (start, start, better)]
    assert [max(before) for _, _, before, _ in gate.asked] == pytest.approx(base)  # type: ignore[type-var]
    assert len(gate.asked) == 3
    assert await arena.contest.settle(start, [weak], 4) is start
    assert len(gate.asked) == 3, "decided before, beside the same version"
    assert [each.parent for each in (better, again)] == [0, better.number]
