"""What the outputs that a question comes from say of it, and what all others do."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr

from askance.evaluation.calibration_fit import fit_accepted
from askance.evaluation.scoring import Targets
from askance.memory.journal import read_events
from askance.memory.records import CriterionRecord
from askance.memory.run_directory import RunDirectory
from askance.models.progress import Silent
from askance.optimizer.events import Teller
from askance.optimizer.questions.candidates import (
    Asked,
    Standing,
    agreeing,
    fates_of,
    standing,
    weighed,
    yes_logits,
)
from askance.optimizer.questions.choice import Chooser, Chosen, Widened
from askance.optimizer.questions.presentation import Compared
from askance.optimizer.questions.racing import first_of, in_line, joining, places, sides_by_dimension, sides_on
from askance.optimizer.subject import Draft, Observation, Pair
from askance.prompts.checklist import Checklist, Question, Sees
from askance.prompts.examples import Example
from askance.prompts.prompt import Prompt
from askance.prompts.verdicts import Verdict
from tests.worlds import share

FINE = [f"f{place}" for place in range(20)]
POOR = [f"p{place}" for place in range(20)]


def said(*rejected: float) -> dict[str, float]:
    """Log-odds of yes: accepted outputs are one deviation around 0, of rejected ones the first are as given, the others at -3."""
    fine = {name: (place % 5 - 2) * 0.7 for place, name in enumerate(FINE)}
    return fine | {name: (*rejected, *[-3.0] * len(POOR))[place] for place, name in enumerate(POOR)}


def test_sources_that_agree_say_which_answer_is_the_good_one() -> None:
    found = standing(said(3.0, 4.0), POOR[:2], FINE, POOR)
    assert found is not None and found.was_said and found.good == "no" and found.support == 2
    assert found.effect is not None and found.effect < 0 and found.problem is not None and found.worth == 0
    lacking = standing(said(), POOR[:2], FINE, POOR)
    assert lacking is not None and lacking.was_said and lacking.good == "yes" and lacking.problem is None
    assert lacking.effect is not None and lacking.worth == lacking.effect > 0.5


def test_where_some_have_the_thing_and_others_lack_it_all_rejected_outputs_decide() -> None:
    found = standing(said(3.0, -3.0), POOR[:2], FINE, POOR)
    assert found is not None and not found.was_said and found.good == "yes" and found.problem is None
    assert found.effect is not None and found.effect > 0.5 and abs(found.stands_out) > 2
    other = standing({name: -value for name, value in said(3.0, -3.0).items()}, POOR[:2], FINE, POOR)
    assert other is not None and other.good == "no" and other.effect == found.effect


def test_one_that_stands_out_far_does_not_outvote_the_others() -> None:
    logits, sources = said(40.0), POOR[:6]
    assert sum(logits[each] for each in sources) > 0
    found = standing(logits, sources, FINE, POOR)
    assert found is not None and found.good == "yes" and found.problem is None


def test_what_nobody_can_say_yet_goes_on_and_does_not_join() -> None:
    few = standing(said(3.0, -3.0), POOR[:2], FINE, POOR[:7])
    assert few is not None and few.effect is None and few.problem is None and few.is_chance and few.worth == 0
    one = standing(said(3.0), POOR[:1], FINE, POOR[:2])
    assert one is not None and one.effect is None and one.problem is None and not one.is_chance
    unclear = standing(said(0.1, -0.1), POOR[:2], FINE, POOR)
    assert unclear is not None and unclear.was_said and unclear.problem is not None, "neither says anything"


def test_what_stands_out_on_several_outputs_promises_more() -> None:
    one, two = (standing(said(3.0, 3.0), POOR[:several], FINE, POOR[:2]) for several in (1, 2))
    mixed = standing(said(3.0, -3.0), POOR[:2], FINE, POOR[:2])
    assert one is not None and two is not None and mixed is not None
    assert one.rank < two.rank and abs(mixed.promise - two.promise) < 0.5


def test_a_question_names_the_comments_that_speak_of_what_it_finds_wrong() -> None:
    sources = ("p0", "p1", "p2", "p3")
    asked = CriterionRecord.of(
        "Is there a number?", "overall", "comment", sources, ("no dose!", "where to ring?", "meh", "of another")
    )
    remarks = {"p0": ["no dose!", "meh"], "p1": ["where to ring?", "meh"]}
    logits = {name: value for name, value in said(3.0, -3.0, 2.0).items() if name != "p3"}
    lacking = agreeing(asked, "yes", logits, FINE, remarks)
    assert lacking.sources == ("p1", "p3"), "nothing is known of p3"
    assert lacking.comments == ("where to ring?", "meh", "of another")
    having = agreeing(asked, "no", logits, FINE, remarks)
    assert having.sources == ("p0", "p2", "p3") and having.comments == ("no dose!", "meh", "of another")
    nothing = agreeing(asked, "no", logits | {"p2": 0.2}, FINE, remarks)
    assert nothing.sources == ("p0", "p3"), "p2 is as accepted ones are"
    none = agreeing(
        CriterionRecord.of(asked.text, "overall", "comment", ("p1",), ("meh",)), "no", logits, FINE, remarks
    )
    assert none.sources == ("p1",) and none.comments == ("meh",)


def test_a_source_without_an_answer_is_not_all_that_is_left_of_what_says_something() -> None:
    asked = CriterionRecord.of(
        "Is there a number?", "overall", "comment", ("p0", "p1", "p2"), ("no dose!", "where to ring?", "meh")
    )
    logits = {name: -value for name, value in said(0.0, 1.3, -0.4).items() if name != "p0"}
    found = standing(logits, asked.sources, FINE, POOR)
    assert found is not None and not found.was_said and found.good == "no" and not found.is_chance
    left = agreeing(asked, found.good, logits, FINE, {})
    assert left == asked and standing(logits, left.sources, FINE, POOR) is not None


def test_a_question_that_stands_out_on_accepted_outputs_too_weighs_less() -> None:
    steady, restless, unknown = Standing(3.0, 0.1, 0.02), Standing(3.0, 0.1, 0.06), Standing(3.0, None)
    weights = weighed({"steady": steady, "restless": restless, "unknown": unknown}, 2.0)
    assert weights["steady"] / weights["restless"] == pytest.approx((0.06**2 + 0.02**2) / (2 * 0.02**2), abs=0.01)
    assert (weights["steady"] + weights["restless"]) / 2 == pytest.approx(2.0, abs=0.001) == weights["unknown"]
    assert weighed({"one": steady}, 1.0) == {"one": 1.0} == weighed({"one": Standing(3.0, -0.1, 0.02)}, 1.0)


def effect_by_hand(rejected: Sequence[float], fine: Sequence[float], sign: float) -> tuple[float, float]:
    """How much worse rejected outputs look than accepted ones, and its standard error."""
    centre, spread = fmean(fine), max(stdev(fine), 0.3)

    def bad(value: float) -> float:
        return 1 / (1 + math.exp(-1.5 * (sign * (value - centre) / spread - 1.75)))

    poor, good = [bad(each) for each in rejected], [bad(each) for each in fine]
    noise = math.sqrt(stdev(poor) ** 2 / len(poor) + stdev(good) ** 2 / len(good))
    return fmean(poor) - fmean(good), noise


def test_an_effect_is_the_mean_badness_of_other_rejected_outputs_beyond_that_of_accepted_ones() -> None:
    draw = random.Random(8)
    for _ in range(100):
        fine = {f"f{place}": draw.gauss(0.0, 1.0) for place in range(draw.randint(3, 19))}
        poor = {f"p{place}": draw.gauss(1.0, 1.5) for place in range(draw.randint(4, 12))}
        sources = [f"p{place}" for place in range(draw.randint(1, 2))]
        found = standing(fine | poor, sources, list(fine), list(poor))
        assert found is not None
        if found.was_said:
            own = [(poor[each] - fmean(fine.values())) / max(stdev(fine.values()), 0.3) for each in sources]
            assert found.stands_out == pytest.approx(fmean(own)) and found.support == len(sources)
            sign = 1.0 if fmean(own) > 0 else -1.0
            others = [value for name, value in poor.items() if name != sources[0]]
            effect, noise = effect_by_hand(others, list(fine.values()), sign)
            assert (found.effect, found.noise) == (pytest.approx(effect), pytest.approx(noise))


@pytest.mark.parametrize(("others", "accepted", "known"), [(3, 3, True), (2, 3, False), (3, 2, None), (2, 2, None)])
def test_an_effect_takes_three_other_rejected_outputs_and_three_accepted_ones(
    others: int, accepted: int, known: bool | None
) -> None:
    found = standing(said(3.0), POOR[:1], FINE[:accepted], POOR[: 1 + others])
    assert (None if found is None else found.effect is not None) is known


@pytest.mark.parametrize(("rejected", "known"), [(8, True), (7, False)])
def test_eight_rejected_outputs_have_to_say_which_answer_is_good_where_no_source_does(
    rejected: int, known: bool
) -> None:
    found = standing(said(), [], FINE, POOR[:rejected])
    assert found is not None and not found.was_said and (found.effect is not None) is known and found.support == 1


@pytest.mark.parametrize(
    ("effect", "was_said", "may_join", "chance"),
    [
        (0.2, False, True, False),
        (0.1875, False, True, False),
        (0.18, False, False, False),
        (0.125, True, True, False),
        (0.12, True, True, True),
        (0.0, True, False, True),
        (-0.1, True, False, True),
        (None, True, True, False),
        (None, False, True, True),
    ],
)
def test_what_nobody_asked_for_has_to_speak_by_more_of_its_noise(
    effect: float | None, was_said: bool, may_join: bool, chance: bool
) -> None:
    found = Standing(2.0, effect, 0.125, was_said=was_said)
    assert (found.problem is None, found.is_chance) == (may_join, chance)
    assert found.worth == (effect if may_join and effect is not None else 0.0)
    assert Standing(0.49, 0.5, 0.1).problem is not None and Standing(-0.5, 0.5, 0.1).problem is None


def test_questions_of_the_start_fare_as_the_normal_posterior_has_it() -> None:
    """What an author's other questions say vouches for one that says little itself."""
    draw, fates = random.Random(3), Counter[str]()
    for _ in range(300):
        asked, joined = {}, {each for each in "ab" if draw.random() < 0.6}
        for place in range(draw.randint(1, 4)):
            good = draw.choice(["yes", "no"])
            sign = -1.0 if good == "yes" else 1.0
            lift = draw.choice([-2.5, -0.8, 0.0, 0.3, 0.6, 1.5])
            asked[f"q{place}"] = Asked(
                Question(id=f"q{place}", text="Q?", dimension=draw.choice("ab"), good=good),  # type: ignore[arg-type]
                [sign * draw.gauss(lift, 1.0) for _ in range(draw.choice([2, 3, 9]))],
                [sign * draw.gauss(0.0, 1.0) for _ in range(draw.choice([2, 3, 9]))],
            )
        spoken = {}
        for name, each in asked.items():
            if min(len(each.rejected), len(each.fine)) >= 3:
                sign = 1.0 if each.question.good == "no" else -1.0
                both = [effect_by_hand(each.rejected, each.fine, side) for side in (sign, -sign)]
                spoken[name] = [effect / max(noise, 1e-9) for effect, noise in both]
        wanted = dict.fromkeys(asked, "stays")
        for name, (strength, turned) in spoken.items():
            others = [each[0] for other, each in spoken.items() if other != name]
            prior = (1 + 1 / len(others)) if others else math.inf
            variance = prior / (1 + prior) if others else 1.0
            mean = variance * strength + (1 - variance) * (fmean(others) if others else 0.0)
            if strength < -1:
                wanted[name] = "flipped" if turned > 3 else "dropped"
            elif asked[name].question.dimension in joined and mean < math.sqrt(variance):
                wanted[name] = "idle"
        assert fates_of(asked, joined) == wanted
        fates.update(wanted.values())
    assert len(fates) == 4 and min(fates.values()) > 20


# --- which candidates join ------------------------------------------------------------------------------------------


class Said:
    """A judge whose P(yes) is a function of a question's text and an example; it notes what it is asked."""

    def __init__(self, p_yes: Callable[[str, str], float]) -> None:
        self.p_yes = p_yes
        self.asked: list[tuple[set[str], set[str]]] = []
        self.drafts: list[Draft] = []

    async def observe(
        self, draft: Draft, examples: Sequence[Example], on_done: Callable[[int, int], None] | None = None
    ) -> Observation:
        self.drafts.append(draft)
        self.asked.append(({each.text for each in draft.questions.questions}, {each.id for each in examples}))
        verdicts = [
            Verdict(each.id, question.id, "m", "0" * 12, (p := self.p_yes(question.text, each.id)) >= 0.5, p)
            for each in examples
            for question in draft.questions.questions
        ]
        return Observation(examples, verdicts, draft.scores(examples, verdicts, soft=True), draft.checklist)

    async def probe(self, draft: Draft, pairs: Sequence[Pair], seen: Observation) -> dict[Pair, Verdict]:
        raise AssertionError("nothing is tried on pairs")


N = 60
NAMES = [f"e{place:02d}" for place in range(N)]
ON_TONE = {name: float(place % 3 != 0) for place, name in enumerate(NAMES)}
ON_FACTS = {name: float(place % 4 != 0) for place, name in enumerate(NAMES)}
START = Checklist(
    questions=(
        Question(id="tone", text="Is it kind?", dimension="tone"),
        Question(id="facts", text="Is it right?", dimension="facts"),
        Question(id="else", text="Is it long?", dimension="length"),
    ),
    section_weights={"letters": {"tone": 3.0, "facts": 1.0, "else": 0.5}},
)


def jitter(*about: object) -> float:
    return 0.06 * share(*about)


def seen_in(wanted: Mapping[str, float]) -> Callable[[str], bool]:
    return lambda name: wanted[name] < 0.5


class Choosing:
    """A chooser on examples that people rated by tone and by facts."""

    def __init__(self, folder: Path, finds: Mapping[str, Callable[[str], float]], **options: Any) -> None:
        """``finds`` tells by a question's last word on which outputs it is answered with yes, or how surely; else with no."""

        def p_yes(text: str, name: str) -> float:
            word = text.rstrip("?").split()[-1].removeprefix("more-")  # which asks for the same
            has = finds.get(word, lambda name: False)(name)
            return 0.06 + 0.79 * has + jitter(word, name)

        self.judge = Said(p_yes)
        self.examples = [Example(id=name, input="in", output=f"Output {name}.") for name in NAMES]
        wanted = {name: {"tone": ON_TONE[name], "facts": ON_FACTS[name]} for name in NAMES}
        self.targets = Targets("human", ("tone", "facts"), wanted)
        run = RunDirectory(folder)
        folder.mkdir(parents=True, exist_ok=True)
        settings: dict[str, Any] = {"most": 4} | options
        events = Teller(run.journal(), Silent())
        self.journal = folder / "journal.jsonl"
        self.chooser = Chooser(self.judge, self.targets, self.examples, events, **settings)
        self.start = Draft(Prompt("Judge.\n\n{input}\n\n{output}\n\n{question}"), START)

    async def choose(self, **named: CriterionRecord) -> Chosen:
        seen = await self.judge.observe(self.start, self.examples)
        self.judge.asked.clear()
        return await self.chooser.choose(self.start, named, seen, 1, ())

    async def widen(self, **named: CriterionRecord) -> Widened:
        seen = await self.judge.observe(self.start, self.examples)
        return self.chooser.drafts(self.start, await self.chooser.choose(self.start, named, seen, 1, ()), seen)


def after(thing: str, dimension: str = "tone", *sources: str, kind: str = "comment", said: str = "") -> CriterionRecord:
    comments = (said or f"On {thing}.",) if kind == "comment" else ()
    return CriterionRecord.of(f"Does it show {thing}?", dimension, kind, sources, comments)


KIND = {"kind": lambda name: not seen_in(ON_TONE)(name) or share("kind", name) < 0.2}
RIGHT = {"right": lambda name: not seen_in(ON_FACTS)(name) or share("right", name) < 0.2}
"""The questions of the start say mostly what people say."""


@pytest.mark.parametrize(("dimension", "joins"), [("facts", True), ("tone", False), ("length", False)])
async def test_a_question_is_held_to_what_people_said_of_its_own_dimension(
    tmp_path: Path, dimension: str, joins: bool
) -> None:
    """A dimension that nobody rated is held to the first that somebody did."""
    errors = {**KIND, **RIGHT, "errors": seen_in(ON_FACTS)}
    found = await Choosing(tmp_path, errors).choose(errors=after("errors", dimension, "e04"))
    assert list(found.candidates) == (["errors"] if joins else [])
    of_tone = {**KIND, **RIGHT, "insults": seen_in(ON_TONE)}
    found = await Choosing(tmp_path / "other", of_tone).choose(insults=after("insults", dimension, "e03"))
    assert list(found.candidates) == ([] if dimension == "facts" else ["insults"])


async def test_those_that_find_what_people_reject_join_each_with_its_polarity_and_the_weight_of_its_effect(
    tmp_path: Path,
) -> None:
    finds = {
        **KIND,
        **RIGHT,
        "insults": lambda name: seen_in(ON_TONE)(name) and share("insult", name) < 0.7,
        "threats": lambda name: seen_in(ON_TONE)(name) and (name == "e03" or share("threat", name) < 0.5),
        "thanks": lambda name: not seen_in(ON_TONE)(name) or (name != "e06" and share("thank", name) < 0.3),
        "chance": lambda name: name == "e03" or share("chance", name) < 0.4,
    }
    source = next(name for name in NAMES if finds["insults"](name))
    named = {
        "insults": after("insults", "tone", source),
        "threats": after("threats", "tone", "e03"),
        "thanks": after("thanks", "tone", "e06"),
        "chance": after("chance", "tone", "e03"),
        "nothing": after("nothing", "tone", "e03"),
        "again": after("more-insults", "tone", source, "e03", said="Once more."),
    }
    run = Choosing(tmp_path, finds)
    new = await run.widen(**named)
    joined = {each.id: each for each in new.whole.questions.questions if each.id not in ("tone", "facts", "else")}
    twin = {"insults", "again"} & joined.keys()
    assert joined.keys() == {*twin, "threats", "thanks"} and len(twin) == 1, "of two that say the same one joins"
    assert {name: each.good for name, each in joined.items()} == dict.fromkeys(twin, "no") | {
        "threats": "no",
        "thanks": "yes",
    }
    sides = sides_on("tone", run.examples, run.targets)
    seen = await run.judge.observe(new.whole, run.examples)
    stands = {}
    for name in joined:
        sources = new.whole.origins[name].sources
        found = standing(yes_logits(seen.verdicts)[name], sources, *sides)
        assert found is not None
        stands[name] = found
    assert {name: each.weight for name, each in joined.items()} == weighed(stands, 1.0)
    [only] = twin
    assert set(new.whole.origins[only].comments) == {"On insults.", "Once more."}, "with what the other came from"
    whole = {each.id: each.weight for each in new.whole.questions.questions}
    section = new.whole.questions.section_weights["letters"]
    assert section == {"tone": 3.0, "facts": 1.0, "else": 0.5} | {name: whole[name] for name in joined}
    told = {each.id: each.reason for each in run.chooser.learned}
    assert set(told) == set(named) and {name for name, problem in told.items() if problem is None} == set(joined)


async def test_no_more_join_than_there_is_room_for_the_best_first(tmp_path: Path) -> None:
    shares = {"most": 0.9, "many": 0.7, "some": 0.5, "few": 0.35}
    finds = {**KIND, **RIGHT} | {
        word: lambda name, word=word, part=part: (
            seen_in(ON_TONE)(name) and (name == "e00" or share("finds", word, name) < part)
        )
        for word, part in shares.items()
    }
    named = {word: after(word, "tone", "e00", said=f"Said of {word}.") for word in reversed(shares)}
    for room in (1, 2, 3):
        found = await Choosing(tmp_path / str(room), finds, most=room).choose(**named)
        assert list(found.candidates) == list(shares)[:room]


async def test_whatever_joins_stands_on_all_examples_and_what_others_speak_against_is_asked_no_further(
    tmp_path: Path,
) -> None:
    """Also what stood on the first accepted outputs alone."""
    first = sides_on("tone", [Example(id=name, input="i") for name in NAMES], Choosing(tmp_path / "any", {}).targets)[
        0
    ][:8]
    rejected = seen_in(ON_TONE)

    def finds(word: str, often: float, accepted: float) -> Callable[[str], float]:
        return lambda name: (
            name == "e00"
            or share("says", word, name) < (often if rejected(name) else 0.0 if name in first else accepted)
        )

    words = {
        **{f"w{place}": (0.1 + 0.09 * place, 0.0) for place in range(10)},
        "rare": (0.0, 0.0),
    }
    asked = {word: finds(word, *rates) for word, rates in words.items()} | {
        "better": lambda name: name == "e00" or (not rejected(name) and share("better", name) < 0.6),
        "maybe": lambda name: (
            0.4 if name == "e00" else 1.0 if rejected(name) else 0.4 * (name not in first and share("may", name) < 0.8)
        ),
    }
    run = Choosing(tmp_path / "run", {**KIND, **RIGHT, **asked}, most=9)
    found = await run.choose(**{word: after(word, "tone", "e00", said=f"Of {word}.") for word in asked})
    sides = sides_on("tone", run.examples, run.targets)
    stands = {word: standing({name: found_by(run, word, name) for name in NAMES}, ("e00",), *sides) for word in asked}
    fit = {word for word, each in stands.items() if each is not None and each.problem is None and not each.is_chance}
    assert set(found.candidates) <= fit and len(found.candidates) > 3
    maybe = stands["maybe"]
    assert maybe is not None and maybe.problem is not None and not maybe.is_chance, "it is as unsure of accepted ones"
    of_better = [names for texts, names in run.judge.asked if "Does it show better?" in texts]
    of_others = [names for texts, names in run.judge.asked if "Does it show w9?" in texts]
    assert max(map(len, of_others)) == N > max(map(len, of_better)), "people like it"


def found_by(run: Choosing, word: str, name: str) -> float:
    p = run.judge.p_yes(f"Does it show {word}?", name)
    return float(np.log(p / (1 - p)))


@pytest.mark.parametrize("told", [True, False])
async def test_a_judge_that_is_only_tested_says_nothing_of_its_candidates(tmp_path: Path, told: bool) -> None:
    run = Choosing(tmp_path, {**KIND, **RIGHT, "insults": seen_in(ON_TONE)}, told=told)
    await run.choose(insults=after("insults", "tone", "e00"))
    assert [each.id for each in run.chooser.learned] == ["insults"]
    rows = [each for each in read_events(run.journal) if each["event"] == "question"] if run.journal.exists() else []
    assert len(rows) == told


async def test_a_candidate_is_asked_of_the_outputs_that_it_comes_from_and_of_no_other_rejected_one_at_first(
    tmp_path: Path,
) -> None:
    run = Choosing(tmp_path, {**KIND, **RIGHT, "insults": seen_in(ON_TONE)})
    rejected = sides_on("tone", run.examples, run.targets)[1]
    own = tuple(rejected[-6:])
    await run.choose(insults=after("insults", "tone", *own), anyone=after("anyone", "facts", kind="contrast"))
    first: dict[str, set[str]] = {"insults": set(), "anyone": set()}
    shared, *others = run.judge.asked
    for texts, names in [shared, *takewhile(lambda each: len(each[1]) == 1, others)]:
        for text in texts:
            first[text.rstrip("?").split()[-1]] |= names
    fine = {*sides_on("tone", run.examples, run.targets)[0][:8], *sides_on("facts", run.examples, run.targets)[0][:8]}
    assert first["insults"] == fine | {*own[:4]}
    assert first["anyone"] == fine | {*sides_on("facts", run.examples, run.targets)[1][:8]}


@pytest.mark.parametrize("turned", ["tone", "facts"])
async def test_questions_of_the_start_are_held_to_people_by_their_own_dimension(tmp_path: Path, turned: str) -> None:
    """One that praises what people reject is turned round; where the start is kept all is as it was."""
    finds = {**KIND, **RIGHT} | ({"kind": seen_in(ON_TONE)} if turned == "tone" else {"right": seen_in(ON_FACTS)})
    for keeps in (False, True):
        run = Choosing(tmp_path / str(keeps), finds, keeps_start=keeps)
        new = await run.widen()
        if keeps:
            assert new.whole is run.start is new.lean and new.idle == ()
            continue
        assert {each.id: each.good for each in new.whole.questions.questions} == {
            "tone": "no" if turned == "tone" else "yes",
            "facts": "no" if turned == "facts" else "yes",
            "else": "yes",
        }
        assert new.whole.questions.section_weights == START.section_weights


async def test_a_dimension_keeps_a_question_that_stands_for_it(tmp_path: Path) -> None:
    """The start praises what people reject, too weakly to be of use the other way round."""
    finds = {
        "kind": lambda name: name in {"e00", "e03", "e06", "e09", "e12", "e15", "e01", "e02", "e04"},
        **RIGHT,
        "insults": seen_in(ON_TONE),
    }
    alone = await Choosing(tmp_path / "alone", finds).widen()
    beside = await Choosing(tmp_path / "beside", finds).widen(insults=after("insults", "tone", "e00"))
    assert [each.id for each in alone.whole.questions.questions] == ["tone", "facts", "else"]
    assert [each.id for each in beside.whole.questions.questions] == ["facts", "else", "insults"]
    assert beside.whole.questions.section_weights["letters"].keys() == {"facts", "else", "insults"}


async def test_a_judge_whose_questions_share_a_call_is_read_on_accepted_outputs_alone_for_less_calls(
    tmp_path: Path,
) -> None:
    finds = {"kind": lambda name: True, "insults": seen_in(ON_TONE)}
    run = Choosing(tmp_path, finds, mode="batched")
    new = await run.widen(insults=after("insults", "tone", "e00"))
    assert new.idle == ("tone",) and [each.id for each in new.lean.questions.questions] == ["facts", "else", "insults"]
    run.judge.asked.clear()
    whole, lean = await run.chooser.read(run.start, new.whole, new.lean)
    accepted = {name for name in NAMES if ON_TONE[name] or ON_FACTS[name]}
    assert [names for _, names in run.judge.asked] == [accepted], "one time, as the other asks some of the same"
    seen = (await run.judge.observe(new.whole, [each for each in run.examples if each.id in accepted])).verdicts
    for draft in (whole, lean):
        own = draft.own(seen)
        assert draft.calibration == fit_accepted(own, run.examples, draft.questions, run.targets)
    run.judge.asked.clear()
    assert await run.chooser.read(run.start, run.start) == [run.start] and not run.judge.asked


@pytest.mark.parametrize("shared", ["readiness to say yes", "quality"])
async def test_questions_are_read_beside_each_other_unless_the_judge_then_ranks_less_like_people_do(
    tmp_path: Path, shared: str
) -> None:
    """The answers have something in common: what no label knows, or the quality that all three ask about."""
    rng = np.random.default_rng(5)
    quality, readiness, noise = rng.normal(size=N), rng.normal(size=N), rng.normal(size=(3, N))
    faults = np.arange(N) % 6  # a sixth of the outputs each have one of three faults
    odds = {
        place: 1.5 * readiness - 4 * (faults == place) + 0.5 * noise[place]
        if shared == "readiness to say yes"
        else quality + 0.7 * noise[place]
        for place in range(3)
    }
    people = (faults > 2).astype(float) if shared == "readiness to say yes" else quality
    run = Choosing(tmp_path, {})
    run.judge.p_yes = lambda text, name: float(1 / (1 + math.exp(-odds[int(text[-2])][NAMES.index(name)])))
    run.chooser.targets = Targets(
        "human", ("one",), {name: {"one": float(each)} for name, each in zip(NAMES, people, strict=True)}
    )
    asked = [
        replace(run.start, checklist=Checklist(questions=some))
        for some in (
            [Question(id=f"q{place}", text=f"Is it {place}?", dimension="one") for place in range(n)] for n in (1, 3)
        )
    ]
    (read,) = await run.chooser.read(*asked)
    assert read.calibration is not None
    leans = [each.lean for each in read.calibration.questions.values()]
    assert all(leans) if shared == "readiness to say yes" else leans == [None] * 3
    verdicts = (await run.judge.observe(asked[1], run.examples)).verdicts
    other = fit_accepted(verdicts, run.examples, read.questions, run.chooser.targets, leans=not all(leans))
    found = [
        spearmanr([each.overall for each in judge.scores(run.examples, verdicts, soft=True)], people).statistic
        for judge in (read, replace(read, calibration=other))
    ]
    assert found[0] > found[1] + 0.02, found


# --- what the judge is shown ----------------------------------------------------------------------------------------


def worth_by_hand(found: Mapping[str, Mapping[str, Standing | None]]) -> tuple[str, dict[str, float], int]:
    """The rule as its docstring has it, without the code's helpers."""
    ways = list(found)
    names = list(found[ways[0]])
    rows = []
    for name in names:
        several = [found[way][name] for way in ways]
        if all(each is not None and each.effect is not None for each in several):
            rows.append([0.0 if each.problem else each.effect for each in several])  # type: ignore[union-attr]
    means = {way: fmean(row[place] for row in rows) for place, way in enumerate(ways)} if rows else {}
    taken = "output" if "output" in ways else "all"
    if rows and taken == "output" and "all" in ways:
        less = [row[ways.index("output")] - row[ways.index("all")] for row in rows]
        error = stdev(less) / len(less) ** 0.5 if len(less) > 1 else 0.0
        taken = "all" if fmean(less) < -2 * error else "output"
    if rows and "quote" in ways and means["quote"] > means[taken]:
        taken = "quote"
    return taken, means, len(rows)  # type: ignore[return-value]


def test_which_way_helps_is_told_by_the_effects_of_candidates_that_may_join_each_way_against_what_is_taken() -> None:
    draw, taken = random.Random(5), Counter[str]()
    for _ in range(400):
        ways: list[Sees] = ["all"]
        ways += [each for each in ("output", "quote") if draw.random() < 0.8]  # type: ignore[misc]
        lift = {way: draw.gauss(0.0, 0.1) for way in ways}
        found: dict[Sees, dict[str, Standing | None]] = {
            way: {
                f"c{place}": None
                if draw.random() < 0.05
                else Standing(
                    draw.choice([0.1, 2.0, -2.0]),
                    None if draw.random() < 0.05 else draw.gauss(0.15, 0.1) + lift[way],
                    0.05,
                )
                for place in range(draw.randint(1, 8))
            }
            for way in ways
        }
        names = sorted(set.intersection(*(set(each) for each in found.values())))
        found = {way: {name: each[name] for name in names} for way, each in found.items()}
        mine = Compared.of(found)
        wanted, means, candidates = worth_by_hand(found)
        assert (mine.taken, mine.candidates) == (wanted, candidates)
        assert mine.effects == pytest.approx(means)
        taken[mine.taken] += 1
    assert min(taken.values()) > 40 and len(taken) == 3


def ways_of(**effects: Sequence[float]) -> dict[Sees, dict[str, Standing | None]]:
    return {
        way: {f"c{place}": Standing(2.0, each, 0.01) for place, each in enumerate(several)}  # type: ignore[misc]
        for way, several in effects.items()
    }


@pytest.mark.parametrize(
    ("effects", "taken"),
    [
        ({"all": [0.2, 0.3], "output": [0.2, 0.3]}, "output"),
        ({"all": [0.3, 0.4], "output": [0.2, 0.3]}, "all"),
        ({"all": [0.3, 0.3], "output": [0.1, 0.35]}, "output"),
        ({"all": [0.1, 0.1], "output": [0.3, 0.3], "quote": [0.2, 0.2]}, "output"),
        ({"all": [0.4, 0.4], "output": [0.3, 0.3], "quote": [0.35, 0.35]}, "all"),
        ({"all": [0.1, 0.1], "output": [0.2, 0.2], "quote": [0.3, 0.3]}, "quote"),
        ({"all": [0.2, 0.2], "quote": [0.2, 0.2]}, "all"),
    ],
    ids=["level", "clearly less", "unclear", "more than all only", "less than all", "more than both", "a tie"],
)
def test_less_is_shown_unless_that_is_clearly_worse_and_a_quote_has_to_say_more(
    effects: dict[str, list[float]], taken: str
) -> None:
    assert Compared.of(ways_of(**effects)).taken == taken


def test_a_candidate_that_may_not_join_brings_nothing_whatever_its_effect() -> None:
    found = ways_of(all=[0.2, 0.2], quote=[0.3, 0.3])
    assert Compared.of(found).taken == "quote"
    unable = {"c0": Standing(0.1, 0.9, 0.01), "c1": Standing(2.0, 0.3, 0.01)}
    told = Compared.of({"all": found["all"], "quote": unable})
    assert told.taken == "all" and told.effects["quote"] == pytest.approx(0.15)
    assert told.candidates == 2


# --- questions that say nearly the same -----------------------------------------------------------------------------


def alike(shift: int) -> dict[str, float]:
    """Log-odds whose rank correlation with ``alike(0)`` falls with the shift."""
    draw = np.random.default_rng(shift)
    noisy = np.arange(40) + shift * draw.normal(size=40)
    return {f"e{place}": float(each) for place, each in enumerate(noisy)}


@pytest.mark.parametrize("sign", [1, -1])
def test_of_two_new_questions_that_are_much_alike_the_weaker_stays_out_and_one_of_the_start_keeps_out_only_its_twin(
    sign: int,
) -> None:
    correlations = {
        shift: abs(spearmanr(list(alike(0).values()), list(alike(shift).values()))[0]) for shift in range(60)
    }
    middle = [shift for shift, each in correlations.items() if 0.72 < each < 0.88]
    far = [shift for shift, each in correlations.items() if each < 0.68]
    near = [shift for shift, each in correlations.items() if each > 0.91]
    assert min(map(len, (middle, far, near))) > 3
    for shift in [*middle, *far, *near]:
        told = {"first": alike(0), "second": {name: sign * each for name, each in alike(shift).items()}}
        both = joining(["first", "second"], told, {}, room=2, remarks=dict.fromkeys(told))
        start = joining(["second"], told, {"first": alike(0)}, room=2, remarks=dict.fromkeys(told))
        assert (both.kept, start.kept) == (
            (["first", "second"], ["second"]) if shift in far else (["first"], ["second"] if shift in middle else [])
        )
        assert both.twins == start.twins == ({"second": "first"} if shift in near else {})
        assert both.unused.keys() == ({"second"} if shift not in far else set())
        assert all("'first'" in each for each in both.unused.values())


def test_two_of_one_comment_join_and_those_of_no_comment_as_many_as_there_is_room_for() -> None:
    told = {name: {f"e{place}": share(name, place) for place in range(60)} for name in "abcdef"}
    of_one = joining("abcdef", told, {}, room=9, remarks=dict.fromkeys("abcde", "said") | {"f": "other"})
    assert of_one.kept == ["a", "b", "f"] and set(of_one.unused) == {*"cde"}
    of_none = joining("abcdef", told, {}, room=5, remarks=dict.fromkeys("abcdef"))
    assert of_none.kept == [*"abcde"] and set(of_none.unused) == {"f"}


@pytest.mark.parametrize(("accepted", "rejected", "learns"), [(4, 1, True), (3, 9, False), (9, 0, False), (9, 9, True)])
def test_a_dimension_with_too_few_accepted_outputs_or_no_rejected_one_is_left_out(
    accepted: int, rejected: int, learns: bool
) -> None:
    names = [f"e{place}" for place in range(30)]
    examples = [Example(id=name, input="i") for name in names]
    fine = {name: {"few": 1.0, "many": float(place % 2)} for place, name in enumerate(names)}
    for name in names:
        fine[name]["few"] = None  # type: ignore[assignment]
    for place in range(accepted + rejected):
        fine[names[place]]["few"] = 1.0 - place / 1000 if place < accepted else 0.1 - place / 1000
    targets = Targets("human", ("few", "many"), fine)
    if rejected == 0:
        for name in names[:accepted]:
            fine[name]["few"] = 1.0
    found = sides_by_dimension(examples, targets)
    assert set(found) == ({"few", "many"} if learns else {"many"})
    assert found["many"] == (names[1::2], names[0::2])
    if learns:
        assert found["few"] == (names[:accepted], names[accepted : accepted + rejected][::-1]), "the extremes first"


def test_the_first_examples_are_the_most_and_the_least_liked_of_every_dimension() -> None:
    fine, poor = [f"f{place}" for place in range(40)], [f"p{place}" for place in range(40)]
    sides = {"a": (fine, poor), "b": (poor[:9], fine[:3])}
    assert first_of(sides, 0) == {*fine[:8], *poor[:8]}
    assert first_of(sides, 0.5) == {*fine[:8], *poor[:20]}
    assert first_of(sides, 0.01, 0.5) == {*fine[:20], *poor[:8]}
    assert first_of({"a": (fine[:3], poor[:2])}, 1.0) == {*fine[:3], *poor[:2]}
    assert [places(parts, most) for parts, most in ((1, 6), (2, 6), (1, 30))] == [20, 40, 60]


def test_every_comment_has_its_best_question_raced_before_another_has_its_second() -> None:
    def of(*comments: str) -> CriterionRecord:
        return CriterionRecord.of("Is it?", "d", "comment", ("e1",), comments)

    named = {"a1": of("a"), "a2": of("a"), "a3": of("a"), "b1": of("b"), "b2": of("b"), "ab": of("a", "b"), "x": of()}
    assert in_line(["a1", "a2", "ab", "b1", "a3", "b2", "x"], named, ()) == ["a1", "ab", "x", "a2", "b1", "b2", "a3"]
    late = in_line(["a1", "a2", "ab", "b1"], named, {"a1"})
    assert late == ["a2", "ab", "b1", "a1"]
