"""Models of the simulated world. They judge, and they help to improve a judge: take notes, compare, object, write, ask.

Each answers from the request's text. A helper is wrong as often as the world's settings say. The errors are random, but
the same request always gets the same reply.
"""

from __future__ import annotations

import json
import random
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log
from typing import Any

from ..models.base import Answer, Request, TokenProbabilities
from .scripted import as_answer
from .simulated import SimulatedWorld
from .simulated_texts import (
    KINDS,
    LENIENCY,
    SEVERITY,
    SIGNS,
    TAILS,
    TOPICS,
    TRUISMS,
    AskedThing,
    Kind,
    Topic,
    contradict,
    read_guidance,
    read_learned,
    says_the_same,
    spoil,
    write_questions,
)

_TEXTS = re.compile(r"Article \[\w+\]\.|Summary \[(\w+)\]: ([\w ]*)\.")
REASON = "Its words decide."
PROMPTABLE = {"reason": "It has to look for one thing.", "kind": "promptable"}
"""Reply about the kind of a lesson. Lessons of simulated worlds never need a program."""
_EXPLAIN = "what in the output decides"
_RULE_FIELDS = {"answer_no_if": True, "answer_yes_even_if": False}
_TOGETHER = re.compile(r"^\[([\w-]+)\] (?=Question: )", re.MULTILINE)
_BLANK = "\n\n"
_ITEM = re.compile(r"^\[(\d+)\]", re.MULTILINE)


@dataclass(frozen=True)
class JudgeRequest:
    """The parts of a request to judge."""

    example: str
    signs: tuple[str, ...]
    topic: Topic | AskedThing
    """The question that is asked: a starting question or a further one."""
    told: str
    """The request's text without the example's texts."""


class AnsweringJudge(ABC):
    """A model that judges and helps by the rules of its world. Its answers depend only on the request."""

    answers_stay_in_the_run = True
    """The parameters of its world are not part of its identity, so no other command may reuse its answers."""

    def __init__(self, name: str, identity: str, slots: int = 16) -> None:
        """``slots`` is the number of calls at once."""
        self.name = name
        self.identity = identity
        self.slots = slots
        self.calls = 0
        """Number of requests so far."""

    @abstractmethod
    def helped(self, request: Request, fields: Mapping[str, Any]) -> str | None:
        """Return a helper's reply to a request for a record with these fields; None if the request is for a judge."""

    @abstractmethod
    def p_asked(self, request: Request) -> float:
        """Return P(yes) for the question that a request asks."""

    async def answer(self, request: Request) -> Answer:
        """Return a verdict, an explanation, or a helper's reply, depending on the request. Raises ValueError for a
        request that its world does not know; the message shows the end of the request."""
        self.calls += 1
        fields = (request.parameters.schema or {}).get("properties", {})
        reply = self.helped(request, fields)
        if reply is not None:
            return as_answer(reply, request)
        if _EXPLAIN in request.messages[-1][1]:
            return as_answer(REASON, request)
        if _TOGETHER.search(request.messages[-1][1]):
            return self._all_of(request, fields)
        p_yes = self.p_asked(request)
        if "explanation" in fields:
            return _of_tokens(_verdict(p_yes, explained=True), request)
        return as_answer(p_yes, request)

    def _all_of(self, request: Request, fields: Mapping[str, Any]) -> Answer:
        """Answer several questions, each as if it were asked alone."""
        *history, (role, content) = request.messages
        opening, *blocks = _TOGETHER.split(content)
        answers = {}
        for name, question in zip(blocks[::2], blocks[1::2], strict=True):
            alone = replace(request, messages=(*history, (role, f"{opening}{question.partition(_BLANK)[0]}")))
            answers[name] = self.p_asked(alone)
        explained = all("properties" in each for each in fields.values())
        return _together({name: answers[name] for name in fields}, request, explained=explained)


class SimulatedJudge(AnsweringJudge):
    """A model of a :class:`SimulatedWorld`: a judge with errors, which also takes every other role of the loop.

    Its answers depend only on the request's text. Its notes, comparisons and edits are wrong as often as the world's
    settings say. With ``perfect`` it has no errors as a judge, but is no better as a helper.

    Example:
        >>> import asyncio
        >>> from askance.testing import SimulatedWorld
        >>> from askance.models.base import Parameters, make_request
        >>> world = SimulatedWorld(seed=3, blind=0, punished=0, judge_noise=0, wobble=0)
        >>> judge = SimulatedJudge(world)
        >>> text = f"Summary [e0001]: n1. Question: {world.checklist.questions[0].text}"
        >>> request = make_request(judge.identity, [("user", text)], Parameters(1))
        >>> asyncio.run(judge.answer(request)).text
        'No'
    """

    def __init__(
        self, world: SimulatedWorld, *, perfect: bool = False, name: str | None = None, slots: int = 16
    ) -> None:
        """``slots`` is the number of calls at once."""
        name = name or ("simulated/perfect" if perfect else "simulated/judge")
        super().__init__(name, f"{name}/{world.seed}", slots)
        self.world = world
        self.perfect = perfect

    def helped(self, request: Request, fields: Mapping[str, Any]) -> str | None:
        """Return the reply of a helper of its world (:func:`help_out`); None if the request is for a judge."""
        return help_out(self.world, request, fields)

    def p_asked(self, request: Request) -> float:
        """Return P(yes) for the question that a request asks."""
        return self.p_yes(read_request(request))

    def p_yes(self, asked: JudgeRequest) -> float:
        """Return P(yes) for one question on one example."""
        if isinstance(asked.topic, AskedThing):
            return self.world.p_there(asked.example, asked.signs, asked.topic, asked.told)
        return self.world.p_yes(asked.example, asked.signs, asked.topic, asked.told, perfect=self.perfect)


def read_request(request: Request) -> JudgeRequest:
    """Split a request to judge into its parts. Raises ValueError if it holds no example or no question of a simulated
    world."""
    text = "\n".join(content for _, content in request.messages)
    example = _TEXTS.search(text, text.find("Summary ["))
    topics = sorted((text.rfind(topic.question), topic.id, topic) for topic in TOPICS if topic.question in text)
    topic = topics[-1][2] if topics else read_learned(text)
    if example is None or example[1] is None or topic is None:
        raise ValueError(
            f"A simulated judge knows the examples and questions of its own world alone; it was asked: {text[-300:]}"
        )
    signs = tuple(sign for sign in example[2].split() if sign != "plain")
    return JudgeRequest(example[1], signs, topic, _TEXTS.sub("", text))


def _together(p_yes: Mapping[str, float], request: Request, *, explained: bool) -> Answer:
    """Return verdicts as a JSON object, by question."""
    tokens: list[TokenProbabilities] = []
    for name, each in p_yes.items():
        tokens += [(f"{', ' if tokens else '{'}{json.dumps(name)}: ", ()), *_verdict(each, explained=explained)]
    return _of_tokens([*tokens, ("}", ())], request)


def _verdict(p_yes: float, *, explained: bool) -> list[TokenProbabilities]:
    """Return a verdict as JSON tokens, with or without an explanation. The word's token has log-probabilities."""
    bounded = min(max(p_yes, 1e-6), 1 - 1e-6)
    both = (("yes", round(log(bounded), 4)), ("no", round(log(1 - bounded), 4)))
    word = ("yes" if p_yes >= 0.5 else "no", both)
    if not explained:
        return [('"', ()), word, ('"', ())]
    return [('{"answer": "', ()), word, (f'", "explanation": {json.dumps(REASON)}}}', ())]


def _of_tokens(tokens: Sequence[TokenProbabilities], request: Request) -> Answer:
    whole = as_answer("".join(text for text, _ in tokens), request)
    return whole._replace(logprobs=tuple(tokens)) if request.parameters.top_logprobs else whole


def help_out(world: SimulatedWorld, request: Request, fields: Mapping[str, Any]) -> str | None:
    """Return a helper's reply: JSON, or lines if questions are asked for; None if the request is for a judge."""
    text = "\n".join(content for _, content in request.messages)
    case = request.messages[1 if request.messages[0][0] == "system" else 0][1] if len(request.messages) > 1 else text
    chance = random.Random(f"{world.seed}/{request.parameters.seed}/{request.replicate}/{text}")
    if not fields and request.parameters.top_logprobs == 0:
        return write_questions(request.messages, world.question_usable, world.question_seen, chance)
    reply = _reply(world, case, text, fields, chance)
    return None if reply is None else json.dumps(reply)


def _reply(
    world: SimulatedWorld, case: str, text: str, fields: Mapping[str, Any], chance: random.Random
) -> dict[str, Any] | None:
    if "kinds" in fields:
        faults = '"no"' in case
        return {"kinds": [phrase for kind in _topic(case).of(faults=faults) for phrase in kind.phrases]}
    for field, strict in _RULE_FIELDS.items():
        if field in fields:
            ending, kind = _rule(world, _topic(case), _signs_in(case), strict, chance)
            return {"quote": "these words", "fact": "the article differs", "kind": kind, field: ending}
    if "lessons" in fields:
        return {"lessons": _free_lessons(world, case, chance)}
    if "requirements" in fields:
        return {"requirements": [topic.question for topic in TOPICS]}
    if "questions" in fields:
        return {"questions": [{"text": _topic(case).question, "violation": "It is not so."}]}
    if "relation" in fields:
        return on_the_list(
            case, lambda one, known: says_the_same(one, known) and chance.random() >= world.deduplicator_wrong
        )
    if fields.keys() == {"reason", "kind"}:
        return PROMPTABLE
    if "contradicts" in fields:
        first, second = re.findall(r"instruction: (.*)", case)[:2]
        return {"reason": "One calls fine what the other forbids, or not.", "contradicts": contradict(first, second)}
    if "part" in fields and "The parts that order the opposite: " in case:
        lesson = case.split("The lesson that has proved right: ")[1].split("\n")[0]
        place = int(case.split("The parts that order the opposite: ")[1].split(",")[0])
        return {"part": place, "action": "correct", "text": _write(world, lesson, chance)}
    if "part" in fields:
        last = max(map(int, _ITEM.findall(case)), default=1)
        lesson = case.split("The lesson that it must say: ")[-1].strip()
        return {"part": last, "action": "add", "text": _write(world, lesson, chance)}
    if set(fields) == {"prompt"}:
        prompt, lessons = case.removeprefix("The prompt:\n").split("\n\nThe lessons that it must say:\n")
        lessons, _, wrong = lessons.partition("\n\nThese parts of the prompt order the opposite")
        prompt = "\n".join(line for line in prompt.split("\n") if line not in wrong.split("\n")[1:])
        lines = [f"- {_write(world, line.removeprefix('- '), chance)}" for line in lessons.strip().splitlines()]
        return {"prompt": "\n".join([prompt.rstrip(), *lines])}
    return None


def _topic(case: str) -> Topic:
    return next(topic for topic in TOPICS if topic.question in case)


def _signs_in(text: str) -> list[str]:
    """Return the signs of the first output in a text."""
    found = SIGNS.search(text)
    return found[1].split() if found else []


def _rule(
    world: SimulatedWorld, topic: Topic, signs: list[str], strict: bool, chance: random.Random
) -> tuple[str, str]:
    """Return the ending of a rule, and the kind of thing that it names.

    A right note names the output's sign for the question, else its sign for another question: a careful reader can see
    so much when told that the answer was wrong. Without any sign the rule is a truism.
    """
    if chance.random() < world.note_taker_wrong:
        return _wrong_rule(topic, strict, chance)
    for wanted in (topic, *(other for other in TOPICS if other is not topic)):
        seen = [kind for kind in wanted.of(faults=strict) if kind.sign in signs]
        if seen:
            return _named(seen[0], chance)
    return TRUISMS[strict], TRUISMS[strict]


def _wrong_rule(topic: Topic, strict: bool, chance: random.Random) -> tuple[str, str]:
    """Return a truism, a harmful rule, or a rule for another question."""
    way = chance.choice(["truism", "harmful", "elsewhere"])
    if way == "truism":
        return TRUISMS[strict], TRUISMS[strict]
    if way == "elsewhere":
        other = chance.choice([each for each in TOPICS if each is not topic])
        return _named(chance.choice(other.of(faults=strict)), chance)
    harm = chance.choice(["global", "astray", "reversed"])
    if harm == "global":
        words = SEVERITY if strict else LENIENCY
        return words, words
    if harm == "astray":
        return f"has {topic.distraction}", topic.distraction
    return _named(chance.choice(topic.of(faults=not strict)), chance)


def _named(kind: Kind, chance: random.Random) -> tuple[str, str]:
    phrase = chance.choice(kind.phrases)
    return f"has {phrase}{chance.choice(TAILS)}", phrase


def _free_lessons(world: SimulatedWorld, case: str, chance: random.Random) -> list[dict[str, Any]]:
    """Return up to three lessons for each case, one per wrongly answered question. Equal lessons are merged."""
    lessons: list[dict[str, Any]] = []
    items = re.split(r"^\[(\d+)\]$", case, flags=re.MULTILINE)[1:]
    for number, item in zip(items[::2], items[1::2], strict=True):
        signs = _signs_in(item)
        wrong = re.findall(r"Question: (.*)\nAnswered: (?:yes|no)\..*?Right answer: (yes|no)\.", item, re.DOTALL)
        for asked, right in wrong[:3]:
            strict = right == "no"
            ending, _ = _rule(world, _topic(asked), signs, strict, chance)
            text = f"Answer {'no if' if strict else 'yes even if'} the output {ending}."
            duplicate = next((known for known in lessons if says_the_same(known["lesson"], text)), None)
            if duplicate is None:
                lessons.append({"cases": [int(number)], "lesson": text})
            elif int(number) not in duplicate["cases"]:
                duplicate["cases"].append(int(number))
    return sorted(lessons, key=lambda lesson: -len(lesson["cases"]))


def on_the_list(case: str, is_same: Callable[[str, str], bool]) -> dict[str, Any]:
    """Return a deduplicator's reply: the first lesson on the list that equals the new one, or that there is none."""
    lesson, listed = case.removeprefix("New lesson: ").split("\n\nOn the list:\n")
    for line in listed.strip().splitlines():
        number, known = line.split(". ", 1)
        if is_same(lesson, known):
            return {"relation": "duplicate", "of": int(number), "merged": ""}
    return {"relation": "new", "of": 0, "merged": ""}


def _write(world: SimulatedWorld, lesson: str, chance: random.Random) -> str:
    """Return the lesson as a line of the prompt; sometimes it is spoilt."""
    if chance.random() >= world.updater_wrong:
        return lesson
    said = read_guidance(lesson)
    if chance.random() < 0.5 and (said.faults or said.harmless):
        phrase = next(phrase for kind in KINDS for phrase in kind.phrases if phrase in lesson)
        return lesson.replace(phrase, spoil(phrase))
    return f"{lesson} Answer no if it {SEVERITY}."
