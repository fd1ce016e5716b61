"""No example tests a judge that it has taught: not by its label, its comment, its verdicts, its output or its place among sources.

The learner is real here; only the model is a function of question and example, so that a hundred judges cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest

from askance.evaluation.scoring import Targets
from askance.memory.embedders import embedder
from askance.memory.records import CriterionRecord
from askance.memory.run_directory import RunDirectory
from askance.models.progress import Silent
from askance.optimizer.acceptance import CorrelationYardstick, Decision, PairedAcceptance
from askance.optimizer.contest import Contest, Race
from askance.optimizer.events import Teller
from askance.optimizer.mode import LoopRound
from askance.optimizer.questions import choice, learner
from askance.optimizer.questions.choice import Chooser
from askance.optimizer.questions.learner import FOLDS, QuestionLearner, taught_by_others, without_remarks_of
from askance.optimizer.questions.proposers import Finder
from askance.optimizer.subject import Crossed, Draft, Observation, Outcome, Pair, Version
from askance.prompts.checklist import Checklist, Question, Sees
from askance.prompts.examples import Example, document_of
from askance.prompts.prompt import Prompt
from askance.prompts.verdicts import Verdict
from tests.worlds import share

FAULTS = ("price", "date", "tone", "noise")
WORDS = [
    "ash",
    "bay",
    "cod",
    "dew",
    "elm",
    "fog",
    "gnu",
    "hay",
    "ivy",
    "jay",
    "kelp",
    "lime",
    "moss",
    "newt",
    "oak",
    "pine",
    "quay",
    "reed",
    "sage",
    "teal",
    "urn",
    "vole",
    "wren",
    "yew",
    "zinc",
]
START = Draft(
    Prompt("Judge.\n\nCustomer: {input}\n\nReply: {output}\n\n{question}"),
    Checklist(questions=(Question(id="good", text="Is it good?"), Question(id="fine", text="Is it fine?"))),
)


@dataclass
class World:
    """Outputs with faults, what people said of them, and a judge that is asked of them.

    Four in ten outputs have a fault, which people reject. With ``chance`` labels and answers have nothing to do with each other.
    """

    seed: int = 0
    size: int = 60
    chance: bool = False
    replicates: int = 1
    documents: bool = False
    told: dict[str, str] = field(default_factory=dict)
    """Ids of examples about which everything was said otherwise, with a mark that makes it another."""
    asked: list[tuple[Draft, list[str]]] = field(default_factory=list)
    """Every draft that was used, with the ids of the examples."""

    @property
    def ids(self) -> list[str]:
        return [f"x{number:03d}x" for number in range(self.size)]

    def draw(self, *about: object) -> float:
        return share(self.seed, *about)

    def key(self, name: str) -> str:
        """What answers and labels of an example depend on."""
        return name + self.told.get(name, "")

    def fault(self, name: str) -> str | None:
        found = FAULTS[int(4 * self.draw("fault", self.key(name)))]
        return found if self.draw("has", self.key(name)) < 0.4 else None

    def wanted(self, name: str) -> float:
        if self.chance:
            return float(self.draw("label", self.key(name)) < 0.6)
        return float(self.fault(name) is None)

    @property
    def examples(self) -> list[Example]:
        return [self.example(name) for name in self.ids]

    def example(self, name: str) -> Example:
        mark = self.key(name)
        said = [f"Remark on {mark}", "You know what I mean"] if self.wanted(name) < 0.5 else ()
        where = {"document": f"paper {int(name[1:4]) // 3}"} if self.documents else {}
        about = f"Text of {mark}, {WORDS[int(len(WORDS) * self.draw('word', mark))]}"
        return Example.model_validate({"id": name, "input": "in", "output": about, "comment": said, "metadata": where})

    def candidates(self, examples: Sequence[Example]) -> list[CriterionRecord]:
        """From every rejected output a question after its fault, in one of three wordings, or after what is on it alone."""
        found = []
        for each in examples:
            if self.wanted(each.id) > 0.5:
                continue
            said = tuple(comment.text for comment in each.comment)
            word = WORDS[int(len(WORDS) * self.draw("word", self.key(each.id)))]
            thing = word if self.chance else self.fault(each.id)
            style = ("bad", "odd", "raw")[int(3 * self.draw("style", self.key(each.id)))]
            found.append(CriterionRecord.of(f"Does it have {style} {thing}?", "overall", "comment", (each.id,), said))
        return found

    def p_yes(self, question: Question, name: str, replicate: int = 0) -> float:
        key, text = self.key(name), question.text
        noise = 0.1 * self.draw("noise", text, key, replicate)
        if question.id == "fine":
            return 0.7  # of everything
        if question.id == "good":
            return 0.6 + 3 * noise
        thing = text.rstrip("?").split()[-1]
        if self.chance:
            has = thing in self.example(name).output.split() or self.draw("yes", text, key) < 0.3  # type: ignore[union-attr]
        else:
            has = self.fault(name) == thing or self.draw("yes", text, key) < 0.05
        return (0.8 if has else 0.1) + noise

    async def observe(
        self, draft: Draft, examples: Sequence[Example], on_done: Callable[[int, int], None] | None = None
    ) -> Observation:
        self.asked.append((draft, [each.id for each in examples]))
        verdicts = [
            Verdict(
                *(each.id, question.id, "m", "0" * 12, (p := self.p_yes(question, each.id, copy)) >= 0.5, p),
                replicate=copy,
            )
            for each in examples
            for question in draft.questions.questions
            for copy in range(self.replicates)
        ]
        return Observation(examples, verdicts, draft.scores(examples, verdicts, soft=True), draft.checklist)

    async def probe(self, draft: Draft, pairs: Sequence[Pair], seen: Observation) -> dict[Pair, Verdict]:
        raise AssertionError("nothing is tried on pairs")


class Watched(dict[str, Any]):
    """Wanted scores that note whose are looked at."""

    looked_at: set[str]

    def __getitem__(self, name: str) -> Any:
        self.looked_at.add(name)
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        self.looked_at.add(name)
        return super().get(name, default)

    def items(self) -> Any:
        raise AssertionError("a fold looks at the labels of its own examples, one by one")

    values = items


@dataclass
class Proposing:
    """Names the world's candidates of some examples, once."""

    world: World
    examples: Sequence[Example]
    done: bool = False

    async def propose(
        self, best: Draft, rejected: Mapping[str, Sequence[str]], iteration: int
    ) -> list[CriterionRecord]:
        self.done, before = True, self.done
        return [] if before else self.world.candidates(self.examples)

    def read(self) -> dict[str, Any]:
        return {"comments": [], "contrasted": []}

    def has_more(self, best: Draft, rejected: Mapping[str, Sequence[str]]) -> bool:
        return False


Mode = Literal["auto", "each", "batched"]


@dataclass
class Run:
    """A learner with all that it needs."""

    world: World
    folder: Path
    mode: Mode = "each"
    keeps_start: bool = False
    crossed: bool = True

    def __post_init__(self) -> None:
        run = RunDirectory(self.folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.events = events = Teller(run.journal(), Silent())
        self.examples = examples = self.world.examples
        half = len(examples) // 2
        self.development, self.validation = examples[:half], examples[half:]
        self.wanted = Watched({each.id: {"overall": self.world.wanted(each.id)} for each in examples})
        self.wanted.looked_at = set()
        self.targets = targets = Targets("human", ("overall",), self.wanted)
        words = embedder("words")

        def chooser(some: Sequence[Example], parts: int = 1) -> Chooser:
            return Chooser(
                self.world, targets, some, events, 4, parts=parts, mode=self.mode, keeps_start=self.keeps_start
            )

        finder, mirror = (
            Finder(chooser(some), words, events, 1, (Proposing(self.world, some),))
            for some in (self.development, self.validation)
        )
        mirror.beside = finder
        both = chooser(examples, 2)
        self.learner = QuestionLearner(self.world, finder, mirror, both, events, soft=True, crossed=self.crossed)
        yardstick = CorrelationYardstick(targets, resamples=200, seed=1)
        gate = PairedAcceptance(yardstick, self.validation, 0.1)
        self.contest = Contest(
            self.world, gate, self.validation, run, events, racing=True, bisect=True, max_prompt_chars=None
        )

    async def learn(self) -> Version:
        start = await self.contest.start(START)
        seen = await self.world.observe(START, self.development)
        return await self.take(start, seen, 1)

    async def take(self, start: Version, seen: Observation, iteration: int) -> Version:
        outcome = Outcome(start, start, "max_iterations", iteration, seen={start.number: seen})
        return (await self.learner.take(LoopRound(start, iteration, self.contest, outcome))).best


@dataclass
class Fold:
    """What one fold was taught by, and who was asked when."""

    tested: list[Example]
    taught: list[Any] = field(default_factory=list)
    looked_at: set[str] = field(default_factory=set)
    asked: list[tuple[Draft, list[str]]] = field(default_factory=list)
    drafts: list[Draft] = field(default_factory=list)
    """Whole and lean."""


@pytest.fixture
def folds(monkeypatch: pytest.MonkeyPatch) -> list[Fold]:
    """Everything that goes into the learning of each fold's judge."""
    seen: list[Fold] = []
    now: list[Fold] = []
    fold, choose, drafts, read = QuestionLearner._fold, Chooser.choose, Chooser.drafts, Chooser.read
    fit = choice.fit_accepted

    async def a_fold(self: QuestionLearner, judge: Draft, every: Any, tested: Any, named: Any, iteration: int) -> Any:
        one = Fold(list(tested))
        world: Any = self.subject
        before = len(world.asked)
        wanted: Any = self.both.targets.wanted
        wanted.looked_at = set()
        now.append(one)
        try:
            return await fold(self, judge, every, tested, named, iteration)
        finally:
            now.pop()
            one.looked_at, one.asked = set(wanted.looked_at), world.asked[before:]
            seen.append(one)

    async def choosing(self: Chooser, best: Draft, named: Any, observed: Any, iteration: int, measured: Any) -> Any:
        found = await choose(self, best, named, observed, iteration, measured)
        for one in now:
            one.taught += [self.examples, named, observed, measured, found]
        return found

    def drafting(self: Chooser, best: Draft, chosen: Any, observed: Any) -> Any:
        for one in now:
            one.taught += [self.examples, chosen, observed]
        return drafts(self, best, chosen, observed)

    async def reading(self: Chooser, best: Draft, *some: Draft) -> list[Draft]:
        found = await read(self, best, *some)
        for one in now:
            one.taught += [self.examples, best, some]
            one.drafts = found
        return found

    def fitting(verdicts: Any, examples: Any, *others: Any, leans: bool) -> Any:
        verdicts = list(verdicts)
        for one in now:
            one.taught += [verdicts, examples]
        return fit(verdicts, examples, *others, leans=leans)

    monkeypatch.setattr(QuestionLearner, "_fold", a_fold)
    monkeypatch.setattr(Chooser, "choose", choosing)
    monkeypatch.setattr(Chooser, "drafts", drafting)
    monkeypatch.setattr(Chooser, "read", reading)
    monkeypatch.setattr(choice, "fit_accepted", fitting)
    return seen


def marks(examples: Collection[Example]) -> Iterator[str]:
    """What nothing but an example has: its id, its output and its comment."""
    for each in examples:
        yield each.id
        yield str(each.output)
        yield from (said.text for said in each.comment if each.id in said.text)


@pytest.mark.parametrize(
    ("mode", "world", "options"),
    [
        ("each", {}, {}),
        ("batched", {}, {}),
        ("auto", {}, {}),
        ("each", {"replicates": 2}, {}),
        ("batched", {"documents": True}, {}),
        ("each", {"documents": True}, {"keeps_start": True}),
    ],
    ids=["alone", "together", "found out", "asked twice", "documents", "start kept"],
)
async def test_nothing_of_a_tested_example_reaches_what_its_judge_is_taught(
    tmp_path: Path, folds: list[Fold], mode: Mode, world: dict[str, Any], options: dict[str, Any]
) -> None:
    run = Run(World(**world), tmp_path / "run", mode, **options)
    learned = await run.learn()
    assert learned.number != 0, "the world has something to learn"
    assert len(folds) == 2 * FOLDS
    assert sorted(each.id for one in folds for each in one.tested) == run.world.ids, "every example tests once"
    for one in folds:
        ids = {each.id for each in one.tested}
        taught = repr(one.taught)
        others = [each for each in run.examples if each.id not in ids]
        assert not [mark for mark in marks(one.tested) if mark in taught]
        assert sum(mark in taught for mark in marks(others)) > len(others), "it is what was taught that is looked at"
        assert not one.looked_at & ids and one.looked_at >= {each.id for each in others}, "whose labels were looked at"
        for seen in (each for each in one.taught if isinstance(each, Observation)):
            known = [each.id for each in seen.examples]
            assert known == [each.id for each in others] == [each.example for each in seen.scores]
            assert {each.example for each in seen.verdicts} == set(known)
        *teaching, testing = one.asked
        assert teaching and not any(ids.intersection(names) for _, names in teaching)
        assert testing[0] is one.drafts[0] and set(testing[1]) == ids, "it tests the judge that the others taught, once"
        assert not {document_of(each) for each in one.tested} & {document_of(each) for each in others}
        learned_here = {each.id for each in one.drafts[0].questions.questions} - {"good", "fine"}
        assert learned_here, "a judge that learned nothing would pass"
    liked = [sum(run.world.wanted(each.id) for each in one.tested) for one in folds]
    for half in (liked[:FOLDS], liked[FOLDS:]):
        assert max(half) - min(half) <= (3 if run.world.documents else 1), "each part has as many that people like"
    assert len({repr(one.drafts[0].questions) for one in folds}) > 1, "each fold has a judge of its own"


@pytest.mark.parametrize("mode", ["each", "batched"])
async def test_what_a_tested_example_says_does_not_change_the_judge_that_it_tests(
    tmp_path: Path, folds: list[Fold], monkeypatch: pytest.MonkeyPatch, mode: Mode
) -> None:
    """Its label, comment, output and every answer about it are others: the judge of its fold is the same to the last number."""

    def in_order(examples: Sequence[Example], wanted: object) -> list[list[Example]]:
        third = len(examples) // FOLDS
        return [list(examples[place * third : (place + 1) * third]) for place in range(FOLDS)]

    async def everything(self: Chooser, best: Draft, named: object) -> str:
        return "all"

    monkeypatch.setattr(learner, "parts_of", in_order)
    monkeypatch.setattr(Chooser, "seen_as_helps", everything)  # the one choice that all folds share
    world = World()
    await Run(world, tmp_path / "as it is", mode).learn()
    before = list(folds)
    assert len(before) == 2 * FOLDS
    for place in (
        FOLDS - 1,
        2 * FOLDS - 1,
    ):  # whoever proposes a question first names it, so the last ones are told otherwise
        one = before[place]
        folds.clear()
        other = World(told={each.id: "o" for each in one.tested})
        assert [each.id for each in one.tested if other.wanted(each.id) != world.wanted(each.id)]
        await Run(other, tmp_path / str(place), mode).learn()
        again = folds[place]
        assert [each.id for each in again.tested] == [each.id for each in one.tested] and again.tested != one.tested
        for mine, theirs in zip(one.drafts, again.drafts, strict=True):
            assert mine.questions == theirs.questions and mine.calibration == theirs.calibration
            assert mine.origins == theirs.origins and len(mine.origins) > 1
        assert before[0].drafts != folds[0].drafts, "they do teach the others"


@pytest.mark.parametrize("parts", ["mine", "both"])
def test_candidates_lose_the_sources_that_are_tested_and_go_where_their_words_come_from_one(parts: str) -> None:
    tested = [World().example(name) for name in ("x000x", "x001x")]

    def named(*sources: str, kind: str = "comment") -> CriterionRecord:
        return CriterionRecord.of("Is it?", "overall", kind, sources, tuple(f"said of {name}" for name in sources))

    mine = {
        "first": named("x000x", "x002x"),
        "later": named("x002x", "x001x", "x003x", "x000x"),
        "other": named("x002x"),
        "of all": named(kind="contrast"),
    }
    theirs = {"theirs": named("x040x"), "contrast": named(kind="contrast"), "other": named("x041x")}
    if parts == "both":
        theirs["first"] = named("x042x")
    left = taught_by_others(tested, mine, theirs)
    sources = {name: each.sources for name, each in left.items()}
    assert sources == {
        "later": ("x002x", "x003x"),
        "other": ("x002x", "x041x"),
        "theirs": ("x040x",),
        "contrast": (),
        **({"first": ("x042x",)} if parts == "both" else {}),
    }
    assert taught_by_others([], mine, {}) == {name: each for name, each in mine.items() if each.sources}


def test_a_comment_that_only_tested_examples_had_is_taken_from_the_questions_of_others() -> None:
    def said(name: str, *texts: str) -> Example:
        return Example.model_validate({"id": name, "input": "i", "comment": texts})

    examples = [said("a", "one", "all  wrote this"), said("b", "two", "all wrote this"), said("c", "three")]
    asked = CriterionRecord.of(
        "Is it?", "overall", "comment", ("a", "c"), ("one", "all wrote this", "two", "three", "of old")
    )
    found = without_remarks_of(examples[1:2], [examples[0], examples[2]], {"asked": asked})
    assert found == {"asked": asked.but(comments=("one", "all wrote this", "three", "of old"))}
    assert without_remarks_of([], examples, {"asked": asked}) == {"asked": asked}


async def test_where_validation_only_tests_nothing_of_it_is_asked_before_the_judge_is_learned(tmp_path: Path) -> None:
    run = Run(World(), tmp_path / "run", crossed=False)
    held_out = {each.id for each in run.validation}
    start = await run.contest.start(START)
    seen = await run.world.observe(START, run.development)
    run.world.asked.clear()
    run.wanted.looked_at = set()
    race, before = run.contest.race, list[Any]()

    async def racing(best: Version, draft: Draft, *others: Any, **options: Any) -> Any:
        before.append((draft, [names for _, names in run.world.asked], set(run.wanted.looked_at)))
        return await race(best, draft, *others, **options)

    run.contest.race = racing  # type: ignore[method-assign]
    learned = await run.take(start, seen, 1)
    [(draft, asked, looked_at)] = before
    assert learned.draft is draft and learned.crossed is None
    assert asked and not any(held_out.intersection(names) for names in asked)
    assert looked_at and not looked_at & held_out
    assert "fine" not in [each.id for each in draft.questions.questions], "idle, and no fold says that it is missed"
    assert run.learner.learned == run.learner.finder.chooser.learned != []


@pytest.mark.parametrize("crossed", [True, False])
@pytest.mark.parametrize("sees", ["all", "output", "quote"])
async def test_all_candidates_are_raced_tested_and_kept_in_the_one_way_that_was_found_to_help(
    tmp_path: Path, folds: list[Fold], monkeypatch: pytest.MonkeyPatch, sees: Sees, crossed: bool
) -> None:
    async def helps(self: Chooser, best: Draft, named: Collection[str]) -> Sees:
        decided.append(len(self.subject.asked))  # type: ignore[attr-defined]
        return sees

    decided: list[int] = []
    monkeypatch.setattr(Chooser, "seen_as_helps", helps)
    run = Run(World(), tmp_path / "run", crossed=crossed)
    learned = await run.learn()
    new = [each for each in learned.draft.questions.questions if each.id not in ("good", "fine")]
    assert new and len(decided) == 1, "decided once, for all folds"
    asked = run.world.asked[decided[0] :]
    ways = {each.sees for draft, _ in asked for each in draft.questions.questions if each.id not in ("good", "fine")}
    assert ways == {sees} == {each.sees for each in new}
    for one in folds:
        ids = {each.id for each in one.tested}
        assert not [mark for mark in marks(one.tested) if mark in repr(one.taught)]
        assert not any(ids.intersection(names) for _, names in one.asked[:-1])
    assert len(folds) == (2 * FOLDS if crossed else 0)


@pytest.mark.parametrize("is_lean", [True, False])
async def test_each_fold_tells_what_its_judge_says_with_and_without_idle_questions_and_the_folds_decide_which_is_kept(
    tmp_path: Path, folds: list[Fold], monkeypatch: pytest.MonkeyPatch, is_lean: bool
) -> None:
    run, crossed = Run(World(), tmp_path / "run"), list[Crossed]()

    def may_go_without(contest: Contest, found: Crossed) -> bool:
        crossed.append(found)
        return is_lean

    monkeypatch.setattr(Contest, "may_go_without", may_go_without)
    learned = await run.learn()
    [found] = crossed
    assert learned.crossed == found
    kept = {each.id for each in learned.draft.questions.questions}
    assert ("fine" in kept) is not is_lean and len(kept) > 2, "an idle question of the start"
    idle = 0
    for one, fold in zip(folds, found.folds, strict=True):
        whole, lean = one.drafts
        names = [each.id for each in one.tested]
        assert [each.id for each in fold.examples] == names
        for scores, draft in ((fold.before, START), (fold.after, whole), (fold.lean, lean)):
            assert list(scores) == list((await run.world.observe(draft, one.tested)).scores)
        idle += len(whole.questions.questions) > len(lean.questions.questions) and fold.after != fold.lean
    assert idle == len(found.folds)
    halves = [
        {each.id for fold in some for each in fold.examples} for some in (found.folds[:FOLDS], found.folds[FOLDS:])
    ]
    assert halves == [{each.id for each in part} for part in (run.validation, run.development)], "validation first"


async def test_what_loses_on_the_folds_of_validation_is_not_tested_on_those_of_development(
    tmp_path: Path, folds: list[Fold], monkeypatch: pytest.MonkeyPatch
) -> None:
    run, crossed = Run(World(), tmp_path / "run"), list[Crossed]()

    def give_up(contest: Contest, draft: Draft, found: Crossed) -> Race:
        crossed.append(found)
        return Race(1, Decision(False, "no", None), len(found.examples), None)

    monkeypatch.setattr(Contest, "give_up", give_up)
    assert (await run.learn()).number == 0
    assert len(folds) == FOLDS and sorted(each.id for each in crossed[0].examples) == [
        each.id for each in run.validation
    ]
    [tried] = run.contest.tried
    assert (tried.accepted, tried.reason, tried.judged) == (False, "no", len(run.validation))
    asked = len(run.world.asked)
    seen = await run.world.observe(START, run.development)
    start = await run.contest.start(START)
    assert await run.take(start, seen, 2) is start and len(run.world.asked) == asked + 2, "once"


async def test_where_nothing_is_rejected_nothing_is_asked(tmp_path: Path) -> None:
    run = Run(World(), tmp_path / "run")
    run.wanted.update({name: {"overall": 1.0} for name in run.world.ids})
    start = await run.contest.start(START)
    seen = await run.world.observe(START, run.development)
    asked = len(run.world.asked)
    assert await run.take(start, seen, 1) is start
    assert len(run.world.asked) == asked and not run.contest.tried and not run.learner.learned


async def test_coin_flips_teach_no_judge_that_passes_more_often_than_the_level(tmp_path: Path) -> None:
    """Labels say nothing; on its own examples a judge could still learn them by heart."""
    gains: list[float] = []
    accepted = 0
    for seed in range(12):
        run = Run(World(seed, 40, chance=True), tmp_path / str(seed))
        accepted += (await run.learn()).number != 0
        gains += [
            each.gain.value for each in run.contest.tried if each.gain is not None and each.gain.value is not None
        ]
    assert len(gains) >= 8, "most worlds have something that looks as if it could be learned"
    assert accepted <= 3, "of twelve, at a level of .1, more than three pass once in forty times"
    assert sum(gains) / len(gains) < 0.1
