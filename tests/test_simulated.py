"""The simulated world is what it says: errors that guidance cures, guidance that harms, noise that grows with length."""

from __future__ import annotations

import json
from typing import Any

import pytest

from askance.agents.requests import BatchedAsking, EachAsking
from askance.models.base import Answer, Parameters, Request, make_request
from askance.prompts.examples import Example
from askance.testing import SimulatedJudge, SimulatedWorld
from askance.testing.simulated_judge import help_out
from askance.testing.simulated_texts import LENIENCY, SEVERITY, TOPICS, TRUISMS, VAGUE, read_learned

WORLD = SimulatedWorld(size=60, seed=5)
QUIET = SimulatedWorld(size=60, seed=5, judge_noise=0.0, wobble=0.0)


def ranked(values: list[float]) -> list[float]:
    order = sorted(values)
    return [order.index(value) + (order.count(value) - 1) / 2 for value in values]


def correlation(a: list[float], b: list[float]) -> float:
    a, b = ranked(a), ranked(b)
    mean = (len(a) - 1) / 2
    both = sum((x - mean) * (y - mean) for x, y in zip(a, b, strict=True))
    return float(both / (sum((x - mean) ** 2 for x in a) * sum((y - mean) ** 2 for y in b)) ** 0.5)


def quality_seen(world: SimulatedWorld, prompt: str, *, count: int = 400, perfect: bool = False) -> float:
    """How a judge with this prompt ranks fresh examples: its correlation with the true quality."""
    ids = [row["id"] for row in world.make_rows(count, "x")]
    scores = [
        round(sum(world.p_yes(example, world.signs(example), topic, prompt, perfect=perfect) for topic in TOPICS), 9)
        for example in ids
    ]
    return correlation(scores, [world.quality(example) for example in ids])


def question_seen(world: SimulatedWorld, prompt: str, topic_number: int, count: int = 400) -> float:
    topic = TOPICS[topic_number]
    ids = [row["id"] for row in world.make_rows(count, "x")]
    scores = [world.p_yes(example, world.signs(example), topic, prompt) for example in ids]
    return correlation(scores, [float(world.truth(example)[topic.id]) for example in ids])


async def ask(
    world: SimulatedWorld, *contents: str, schema: dict[str, Any] | None = None, seed: int = 0, logprobs: int = 0
) -> Answer:
    judge = SimulatedJudge(world)
    roles = ["user"] if len(contents) == 1 else ["system", "user"]
    messages = list(zip(roles, contents, strict=True))
    return await judge.answer(make_request(judge.identity, messages, Parameters(100, 0.0, seed, logprobs, schema)))


def fields(*names: str) -> dict[str, Any]:
    return {"properties": {name: {} for name in names}}


@pytest.mark.parametrize("wording", [0, 1])
@pytest.mark.parametrize("sign", WORLD.errors)
def test_each_error_disappears_with_the_right_guidance_in_either_wording(sign: str, wording: int) -> None:
    left = WORLD.errors_in(WORLD.prompt.text + WORLD.right_rule(sign, wording))
    assert left == set(WORLD.errors) - {sign}


def test_a_judge_whose_errors_are_cured_ranks_as_well_as_one_without_errors() -> None:
    start = WORLD.prompt.text
    cured = start + "".join(map(QUIET.right_rule, QUIET.errors))
    assert quality_seen(QUIET, start) < 0.8
    assert quality_seen(QUIET, cured) == pytest.approx(1.0)
    assert quality_seen(QUIET, start, perfect=True) == pytest.approx(1.0)


@pytest.mark.parametrize("deaf", [{"curable": False}, {"heeded": 0.0}])
def test_where_nothing_is_curable_or_rules_are_overlooked_the_right_guidance_does_nothing(deaf: dict[str, Any]) -> None:
    world = SimulatedWorld(size=60, seed=5, **deaf)
    cured = world.prompt.text + "".join(map(world.right_rule, world.errors))
    assert world.errors_in(cured) == set(world.errors)


def test_guidance_that_calls_a_fault_harmless_makes_a_new_error() -> None:
    seen = next(kind for kind in TOPICS[0].kinds if kind.is_fault and kind.sign not in WORLD.errors)
    assert WORLD.misjudged(f"Answer yes even if the output has {seen.phrases[0]}.") == {*WORLD.errors, seen.sign}


def test_guidance_that_says_both_is_as_good_as_none() -> None:
    sign = WORLD.errors[0]
    excuse = WORLD.right_rule(sign).replace("no if", "yes even if")
    assert WORLD.errors_in(WORLD.right_rule(sign) + excuse) == set(WORLD.errors)


@pytest.mark.parametrize(("words", "sign"), [(SEVERITY, -1), (LENIENCY, 1)])
def test_an_order_to_be_severe_or_lenient_moves_the_mean_and_blurs_the_ranking(words: str, sign: int) -> None:
    start, spoilt = WORLD.prompt.text, f"{WORLD.prompt.text}\n- Answer if it {words}."
    ids = [row["id"] for row in WORLD.rows]

    def mean(prompt: str) -> float:
        return sum(WORLD.p_yes(each, WORLD.signs(each), topic, prompt) for each in ids for topic in TOPICS) / len(ids)

    assert sign * (mean(spoilt) - mean(start)) > 0.2
    assert quality_seen(WORLD, spoilt, count=1500) < quality_seen(WORLD, start, count=1500)


def test_guidance_that_leads_a_question_astray_destroys_that_question_alone() -> None:
    start = QUIET.prompt.text
    astray = f"{start}\n- Answer no if the output has {TOPICS[1].distraction}."
    assert question_seen(QUIET, start, 1) > 0.4
    assert abs(question_seen(QUIET, astray, 1)) < 0.2
    assert question_seen(QUIET, astray, 0) == pytest.approx(question_seen(QUIET, start, 0))


def test_a_prompt_that_grows_past_the_capacity_makes_the_judge_noisier_and_noisier() -> None:
    def padded(chars: int) -> float:
        return quality_seen(WORLD, WORLD.prompt.text.ljust(chars, "."), count=800)

    within = [padded(chars) for chars in (200, 500, 890)]
    assert max(within) - min(within) < 0.05
    assert within[-1] > padded(1700) > padded(3500)


def test_the_same_request_gets_the_same_answer_and_another_seed_another_world() -> None:
    other = SimulatedWorld(size=60, seed=6)
    assert SimulatedWorld(size=60, seed=5).rows == WORLD.rows != other.rows
    assert SimulatedWorld(size=60, seed=5).errors == WORLD.errors
    text = WORLD.prompt.text
    args = ("e0001", ("n1",), TOPICS[0], text)
    assert SimulatedWorld(size=60, seed=5).p_yes(*args) == WORLD.p_yes(*args) != other.p_yes(*args)


def test_people_score_the_true_quality_with_noise() -> None:
    world = SimulatedWorld(size=400, seed=1)
    human = [row["human"]["quality"] for row in world.rows]
    true = [world.quality(row["id"]) for row in world.rows]
    assert 0.8 < correlation(human, true) < 1
    sharp = SimulatedWorld(size=400, seed=1, rater_noise=0.0)
    assert [row["human"]["quality"] for row in sharp.rows] == [round(1 + 4 * each, 2) for each in true]


async def test_a_judge_reads_signs_and_question_in_the_request_alone() -> None:
    question = WORLD.checklist.questions[2].text
    world = SimulatedWorld(seed=1, blind=0, punished=0, judge_noise=0.0, wobble=0.0)
    assert (await ask(world, f"Summary [any]: c2. {question}")).text == "No"
    assert (await ask(world, f"Summary [any]: n1. {question}")).text == "Yes"
    with pytest.raises(ValueError, match="its own world"):
        await ask(world, "What is the time?")


async def test_an_explained_verdict_carries_the_probability_of_the_plain_one() -> None:
    from askance.models.replies.yes_no import p_yes_of_field

    text = f"Summary [e1]: c2. {WORLD.checklist.questions[2].text}"
    plain = await ask(WORLD, text, logprobs=5)
    explained = await ask(WORLD, text, logprobs=5, schema=fields("answer", "explanation"))
    assert plain.logprobs and explained.logprobs
    assert json.loads(explained.text)["answer"] == plain.text.lower()
    assert p_yes_of_field(explained.logprobs, "answer") is not None


@pytest.mark.parametrize("explained", [False, True])
async def test_questions_that_are_asked_together_are_answered_as_each_alone(explained: bool) -> None:
    world = SimulatedWorld(size=60, seed=5, wobble=0.0)  # but for the noise of another wording
    judge, example = SimulatedJudge(world), Example.model_validate(world.rows[3])
    how: dict[str, Any] = {"prompt": world.prompt, "questions": world.checklist.questions, "explained": explained}
    how |= {"logprobs": True, "temperature": 0.0, "seed": 1}
    batched, each = BatchedAsking(**how), EachAsking(**how)
    [together] = batched.asks(judge.identity, example, 0, 0)
    found = batched.read(together, await judge.answer(together.request()))
    for ask in each.asks(judge.identity, example, 0, 0):
        [(name, alone)] = each.read(ask, await judge.answer(ask.request())).items()
        assert alone.p_yes is not None and found[name].p_yes == pytest.approx(alone.p_yes, abs=1e-3)
        assert found[name].explanation == alone.explanation
    assert len({reading.p_yes for reading in found.values()}) > 1


def note_case(sign: str, number: int) -> str:
    return f"Task.\n\nArticle [e{number}].\nSummary [e{number}]: {sign}.\nAsked: {TOPICS[0].question}"


async def notes(world: SimulatedWorld, sign: str, field: str, count: int = 200) -> list[str]:
    schema = fields("quote", "fact", "kind", field)
    replies = [await ask(world, "You take notes.", note_case(sign, number), schema=schema) for number in range(count)]
    return [json.loads(reply.text)[field] for reply in replies]


async def test_the_note_taker_names_what_is_there_and_is_wrong_as_often_as_said() -> None:
    kind = TOPICS[0].kinds[0]
    found = await notes(SimulatedWorld(note_taker_wrong=0.3), kind.sign, "answer_no_if")
    right = sum(any(phrase in note for phrase in kind.phrases) for note in found)
    assert 0.6 < right / len(found) < 0.8
    assert any(TRUISMS[True] in note for note in found)
    assert any(SEVERITY in note for note in found)
    always = await notes(SimulatedWorld(note_taker_wrong=0.0), kind.sign, "answer_no_if", 20)
    assert all(any(phrase in note for phrase in kind.phrases) for note in always)


async def test_the_note_taker_has_nothing_but_a_truism_for_an_output_without_a_sign() -> None:
    found = await notes(SimulatedWorld(note_taker_wrong=0.0), "plain", "answer_yes_even_if", 5)
    assert set(found) == {TRUISMS[False]}


async def test_the_deduplicator_knows_paraphrases_and_tells_other_rules_apart() -> None:
    world = SimulatedWorld(deduplicator_wrong=0.0)
    one, other = (world.right_rule("n1", wording).strip("\n- ") for wording in (0, 1))
    listed = f"1. {world.right_rule('f1').strip()[2:]}\n2. {other}"
    schema = fields("relation", "of", "merged")
    reply = await ask(world, "Compare.", f"New lesson: {one}\n\nOn the list:\n{listed}", schema=schema)
    assert json.loads(reply.text) == {"relation": "duplicate", "of": 2, "merged": ""}
    reply = await ask(world, "Compare.", f"New lesson: {one}\n\nOn the list:\n1. Answer no if x.", schema=schema)
    assert json.loads(reply.text)["relation"] == "new"


async def test_rules_that_order_opposite_things_contradict_each_other() -> None:
    rule = WORLD.right_rule("n1").strip("\n- ")
    excuse = rule.replace("no if", "yes even if")
    schema = fields("reason", "contradicts")

    async def contradicts(other: str) -> bool:
        case = f"First instruction: {rule}\nSecond instruction: {other}\n\nAnswer."
        return bool(json.loads((await ask(WORLD, "Compare.", case, schema=schema)).text)["contradicts"])

    assert await contradicts(excuse)
    assert not await contradicts(WORLD.right_rule("n2").strip("\n- "))


async def edits(world: SimulatedWorld, count: int) -> list[str]:
    rule = world.right_rule("n1").strip("\n- ")
    schema = fields("part", "action", "text")
    case = "The prompt, in parts:\n[1] Judge. [{}]\n[2] Be careful.\n\nThe lesson that it must say: " + rule
    replies = [json.loads((await ask(world, "Edit.", case.format(n), schema=schema)).text) for n in range(count)]
    assert {reply["part"] for reply in replies} == {2}
    return [reply["text"] for reply in replies]


async def test_the_updater_writes_the_lesson_and_spoils_it_as_often_as_said() -> None:
    rule = WORLD.right_rule("n1").strip("\n- ")
    assert set(await edits(SimulatedWorld(updater_wrong=0.0), 20)) == {rule}
    found = await edits(SimulatedWorld(updater_wrong=0.4), 200)
    spoilt = [text for text in found if text != rule]
    assert 0.3 < len(spoilt) / len(found) < 0.5
    assert {SEVERITY in text for text in spoilt} == {True, False}


async def test_a_rewrite_holds_the_prompt_and_every_lesson() -> None:
    world = SimulatedWorld(updater_wrong=0.0)
    lessons = [world.right_rule(sign).strip() for sign in ("n1", "f1")]
    case = f"The prompt:\n{world.prompt.text}\n\nThe lessons that it must say:\n" + "\n".join(lessons)
    reply = await ask(world, "Rewrite.", case, schema=fields("prompt"))
    assert json.loads(reply.text)["prompt"] == "\n".join([world.prompt.text, *lessons])


async def test_every_request_is_counted() -> None:
    judge = SimulatedJudge(WORLD)
    request: Request = make_request("m", [("user", f"Summary [e1]: plain. {TOPICS[0].question}")], Parameters(1))
    for _ in range(3):
        await judge.answer(request)
    assert judge.calls == 3


# --- comments and learned questions --------------------------------------------------------------------------------

COMMENTED = SimulatedWorld(size=400, seed=5, comment_share=0.5)
SYSTEM = 'Each question begins with "Does the text", asks for one thing only.'


def asked_for(comment: str, replicate: int = 0) -> list[str]:
    """The questions that a helper of the world makes of a comment."""
    messages = [("system", SYSTEM), ("user", f"Comment: {comment}")]
    reply = help_out(COMMENTED, make_request("m", messages, Parameters(60), replicate), {})
    assert reply is not None
    return [line for line in reply.splitlines() if line != "none"]


def area(world: SimulatedWorld, text: str, sign: str) -> float:
    """Area under the curve of the answers to a question against a sign, on fresh outputs."""
    learned = read_learned(f"Question: {text}")
    assert learned is not None
    sides: dict[bool, list[float]] = {True: [], False: []}
    for number in range(800):
        signs = world.signs(f"a{number}")
        sides[sign in signs].append(world.p_there(f"a{number}", signs, learned, ""))
    wins = sum(there > absent for there in sides[True] for absent in sides[False])
    return wins / (len(sides[True]) * len(sides[False]))


def test_nobody_comments_unless_the_world_says_so_and_the_rest_of_it_is_the_same() -> None:
    assert not any("comment" in row for row in SimulatedWorld(size=400, seed=5).rows)
    bare = [{name: row[name] for name in row if name != "comment"} for row in COMMENTED.rows]
    assert bare == SimulatedWorld(size=400, seed=5).rows


def test_comments_are_on_rejected_outputs_and_mostly_name_a_fault_that_is_there() -> None:
    rows = [row for row in COMMENTED.rows if "comment" in row]
    assert 70 <= len(rows) <= 130
    assert all(row["human"]["quality"] <= 3.2 for row in rows)  # the mean, before it is rounded
    vague = [row for row in rows if row["comment"] in VAGUE]
    named = [
        (kind.sign, row)
        for row in rows
        for topic in TOPICS
        for kind in topic.kinds
        if any(phrase in row["comment"] for phrase in kind.phrases)
    ]
    there = [sign in COMMENTED.signs(row["id"]) for sign, row in named]
    assert len(vague) + len(named) == len(rows)
    assert 0.1 < len(vague) / len(rows) < 0.3
    assert 0.8 < sum(there) / len(there) < 0.97


def test_one_question_in_three_that_is_made_of_a_comment_is_usable() -> None:
    comment = "Has a date shifted to another time."
    found = [read_learned(f"Question: {text}") for number in range(300) for text in asked_for(comment, number)]
    assert len(found) > 350
    assert all(each is not None and each.kind is not None and each.kind.sign == "f2" for each in found)
    assert 0.27 < sum(each is not None and each.usable for each in found) / len(found) < 0.4


def test_a_usable_question_finds_what_it_asks_for_and_a_spoilt_one_does_not() -> None:
    opening = "Does the text have a date shifted to another"
    assert 0.75 < area(COMMENTED, f"{opening} time?", "f2") <= 1
    assert 0.35 < area(COMMENTED, f"{opening} matter?", "f2") < 0.65
    assert 0.4 < area(COMMENTED, f"{opening} time?", "n1") < 0.6


def test_people_who_pass_or_fail_pass_what_has_no_fault_but_for_wrong_labels() -> None:
    world = SimulatedWorld(size=300, seed=2, pass_fail=True, fault_rate=0.15, kinds=1, wrong_labels=0.05)
    right = [row["human"]["quality"] is (world.quality(row["id"]) == 1) for row in world.rows]
    assert 0.9 < sum(right) / len(right) < 1
    assert {sign for row in world.rows for sign in world.signs(row["id"])} <= {
        *("n1", "f1", "c1", "w1"),
        *("n9", "f9", "c9", "w9"),
    }


def test_a_wrong_line_of_the_prompt_keeps_the_right_one_from_helping_until_it_is_gone() -> None:
    world = SimulatedWorld(seed=2, misguided=2)
    first = world.errors[0]
    appended = world.prompt.text + world.right_rule(first)
    assert first in world.errors_in(appended)
    wrong = world.right_rule(first).replace("Answer no if", "Answer yes even if")
    assert wrong in world.prompt.text
    assert first not in world.errors_in(appended.replace(wrong, ""))
    assert world.errors_in(world.cured_prompt) == set()
