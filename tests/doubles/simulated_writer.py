"""A world of prompts that write, with its writers, its judge and known truth: how often each model keeps each rule.

Requests ask for a reply, or for facts as JSON. Each rule shows in an output by a piece of text, so code or a simulated
judge can tell whether it is kept. A writer keeps a rule with a chance that depends on what the request says of it:
nothing, an order before the input, an order after it, a form or an example after it, or a JSON schema or grammar that
enforces it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from statistics import NormalDist
from typing import Any, Literal

from jsonschema import Draft202012Validator

from askance.models.base import Answer, Parameters, Request, make_request
from askance.prompts.checklist import Checklist, ComputedCheck, Question
from askance.prompts.prompt import Prompt
from askance.prompts.templates import render
from askance.testing.scripted import as_answer
from askance.testing.simulated_judge import PROMPTABLE, AnsweringJudge, on_the_list

_NORMAL = NormalDist()
_INPUT = re.compile(r"Request \[(\w+)\]: what about the (\w+)\?")
_REPLY = re.compile(r"^(?:Dear reader|Hello),$.*?^(?:Your help desk|Best wishes)$", re.MULTILINE | re.DOTALL)
_FACTS = re.compile(r'(?:```json\n)?\{\s*"headline".*?\}(?:\n```)?', re.DOTALL)
_THINGS = ("card", "permit", "garden", "bridge", "library", "school", "ferry", "market")
_OUTER = ("begins", "ends", "bare", "headline", "tone")
"""Rules whose piece has a place of its own in an output."""


_LONG = (
    "There is much more of it to be told, and all of it is told here at length, though it is of no use to anybody who "
    "asked a short question and hoped for a short answer, as most people do on most days, and so it goes on and on."
)


@dataclass(frozen=True)
class WritingRule:
    """A rule of a prompt that writes."""

    order: str
    """The rule as the prompt states it."""
    said: str
    """Pattern of texts that speak of it."""
    criterion: Question
    """A check that code decides, or a question for a judge."""
    kept: str = ""
    """Its piece of an output that keeps it; ``{n}`` is a number that differs from input to input."""
    broken: str = ""
    """Its piece of an output that does not."""

    @property
    def id(self) -> str:
        """The id of its criterion."""
        return self.criterion.id

    @property
    def is_check(self) -> bool:
        """Whether code decides it."""
        return isinstance(self.criterion, ComputedCheck)

    def speaks_in(self, text: str) -> bool:
        """Whether a text speaks of it."""
        return re.search(self.said, text, re.IGNORECASE) is not None

    def is_kept(self, output: str) -> bool:
        """Whether an output has the piece that keeps the rule, or lacks the piece that breaks it."""
        return self.broken not in output if self.broken else self.kept.partition("{")[0] in output


def _check(name: str, kind: str, value: str | None, good: str = "yes") -> ComputedCheck:
    return ComputedCheck.model_validate({"id": name, "kind": kind, "value": value, "good": good})


def _asked(name: str, text: str, good: Literal["yes", "no"] = "yes") -> Question:
    return Question(id=name, text=text, dimension="content", good=good)


REPLY = (
    WritingRule('Begin with "Dear reader,".', r"Dear reader", _check("begins", "begins", "Dear reader,"), "Dear reader,", "Hello,"),
    WritingRule(
        "Thank the reader for the question.", r"\bthank", _asked("thanks", "Does the reply thank the reader?"),
        "Thank you for asking on day {n}.",
    ),
    WritingRule("Name the deadline.", r"\bdeadline", _asked("deadline", "Does the reply name a deadline?"), "It ends on day {n}."),
    WritingRule("Say what to do next.", r"\bnext\b", _asked("next_step", "Does the reply say what to do next?"), "Now fill in form {n}."),
    WritingRule(
        "Do not blame the reader.", r"\bblam", _asked("blame", "Does the reply blame the reader?", "no"),
        broken="It was your own mistake.",
    ),
    WritingRule("Write at most 50 words.", r"\bwords\b(?! like)|\bshort\b|\blong", _check("length", "length", "at most 50 words"), broken=_LONG),
    WritingRule(
        'Never use the word "unfortunately".', r"unfortunately", _check("forbidden", "matches", "(?i)unfortunately", "no"),
        broken="Unfortunately it takes a while.",
    ),
    WritingRule(
        "Give no web address.", r"\bweb\b|\blinks?\b|https?:", _check("links", "matches", "https?://", "no"),
        broken="See https://example.org for more.",
    ),
    WritingRule('End with "Your help desk".', r"Your help desk", _check("ends", "ends", "Your help desk"), "Your help desk", "Best wishes"),
)  # fmt: skip
FACTS = (
    WritingRule(
        "Reply with one JSON object and nothing else, without a code fence.", r"\bJSON\b|code fence", _check("bare", "json", None),
        broken="```json\n",
    ),
    WritingRule(
        '"headline": at most 6 words,', r"headline", _check("headline", "matches", r'"headline": "[^\s"]+(?: [^\s"]+){0,5}"'),
        broken=" after a long day of talks that nobody had foreseen at all in this quiet town",
    ),
    WritingRule(
        '"tone": one of "good", "bad", "neutral",', r"\btone\b", _check("tone", "matches", r'"tone": "(?:good|bad|neutral)"'),
        broken="rather mixed",
    ),
    WritingRule(
        '"summary": at most 40 words.', r'"summary"|summary[^.]{0,30}\bwords\b|\bshort\b', _check("summary", "matches", r'"summary": "[^\s"]+(?: [^\s"]+){0,39}"'),
        broken=_LONG,
    ),
    WritingRule("The summary names the place.", r"\bplace\b", _asked("place", "Does the summary name the place?"), "It was in town {n}."),
    WritingRule("The summary tells how it ended.", r"\bend(?:ed|s)?\b|outcome", _asked("outcome", "Does the summary tell how it ended?"), "All of it went well on day {n}."),
    WritingRule(
        "The summary gives no opinion.", r"\bopinion", _asked("opinion", "Does the summary give an opinion?", "no"),
        broken="I think it is a pity.",
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Heeding:
    """Chance that a writer keeps a rule, by what the request says of it; the best one that applies counts."""

    unsaid: float = 0.15
    before: float = 0.92
    """An order before the input, such as in the system text."""
    after: float = 0.92
    """An order after the input."""
    shown: float = 0.92
    """A form to be filled in, or an output, that keeps the rule and stands after the input or in a turn of its own."""
    enforced: float = 1.0
    """The schema or grammar that is sent rules out to break it."""


@dataclass(frozen=True)
class WritersWorld:
    """Inputs, a prompt that writes, its rules, and the outputs of the old model.

    Example:
        >>> world = WritersWorld(size=3)
        >>> [sorted(world.kept(world.write("r0001", kept))) for kept in ([], ["begins", "links"])]
        [[], ['begins', 'links']]
    """

    form: Literal["reply", "facts"] = "reply"
    size: int = 100
    seed: int = 0
    of_input: float = 0.15
    """Share of the variance of luck that all writers and rules share on one input."""
    of_rule: float = 0.15
    """Share of the variance of luck that all writers share for one rule on one input."""
    judge_wrong: float = 0.02
    """Share of the questions on outputs that :class:`WritersJudge` answers wrongly."""

    @property
    def rules(self) -> tuple[WritingRule, ...]:
        """The rules of its prompt."""
        return REPLY if self.form == "reply" else FACTS

    @cached_property
    def prompt(self) -> Prompt:
        """The prompt that states every rule, and then shows the input."""
        task = "Answer the request." if self.form == "reply" else "Tell what is known, as facts."
        return Prompt("\n".join([task, *(f"- {rule.order}" for rule in self.rules), "", "{input}"]))

    @cached_property
    def checklist(self) -> Checklist:
        """The criteria of its rules: the true requirements."""
        return Checklist(task=self.prompt.text, questions=tuple(rule.criterion for rule in self.rules))

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """Inputs, with the outputs that the old model wrote with the prompt."""
        return self.make_rows(self.size)

    def make_rows(self, count: int, prefix: str = "r") -> list[dict[str, Any]]:
        """Inputs with old outputs; ids begin with ``prefix``. Another prefix makes fresh inputs of the same kind."""
        writer, rows = self.writer("old"), []
        for number in range(count):
            name = f"{prefix}{number:04d}"
            told = f"Request [{name}]: what about the {_THINGS[int(len(_THINGS) * self.share('thing', name))]}?"
            request = writer.request(self.prompt.text.replace("{input}", told))
            rows.append({"id": name, "input": told, "output": writer.text(request)})
        return rows

    def writer(self, name: str, **heeding: Heeding) -> SimulatedWriter:
        """One of the models ``old``, ``equal``, ``weaker`` and ``worse``; ``heeding`` sets single rules, by id.

        ``weaker`` overlooks instructions before the input and can be mended: checks by an instruction after the input
        or by a schema, questions by an example. ``worse`` loses .1 on every rule, and nothing mends it.
        """
        weak = {True: Heeding(0.1, 0.65, 0.9, 0.8), False: Heeding(0.1, 0.75, 0.8, 0.92)}
        every = {"weaker": weak, "worse": dict.fromkeys((True, False), Heeding(0.1, 0.82, 0.82, 0.82, 0.82))}
        usual = every.get(name, dict.fromkeys((True, False), Heeding()))
        return SimulatedWriter(self, name, {rule.id: heeding.get(rule.id, usual[rule.is_check]) for rule in self.rules})

    def write(self, example: str, kept: Collection[str], thing: str = "card") -> str:
        """The output on an example that keeps these rules and breaks all others."""
        part = {rule.id: rule.kept if rule.id in kept else rule.broken for rule in self.rules}
        for name, piece in part.items():  # so that no two outputs have many words in a row in common
            part[name] = piece.replace("{n}", str(int(900 * self.share("number", example, name))))
        inner = " ".join(piece for name, piece in part.items() if piece and name not in _OUTER)
        text = f"This is about the {thing} ({example}). {inner}".strip()
        if self.form == "reply":
            return "\n".join([part["begins"], text, part["ends"]])
        tone = part["tone"] or ("good", "bad", "neutral")[int(3 * self.share("tone", example))]
        facts = json.dumps({"headline": f"News of the {thing}{part['headline']}", "tone": tone, "summary": text})
        return f"{part['bare']}{facts}{part['bare'] and chr(10) + '```'}"

    def kept(self, output: str) -> set[str]:
        """Ids of the rules that an output of this world keeps."""
        return {rule.id for rule in self.rules if rule.is_kept(output)}

    def share(self, *parts: object) -> float:
        """A number in (0, 1) that depends on the parts and the seed alone."""
        digest = sha256("\n".join(map(str, (self.seed, *parts))).encode()).digest()
        return (int.from_bytes(digest[:6], "big") + 0.5) / 2**48

    def luck(self, example: str, rule: str, request: bytes) -> float:
        """A number in (0, 1), evenly spread; part of it is shared with other requests on the example."""
        shared = self.of_input**0.5 * _NORMAL.inv_cdf(self.share("input", example))
        shared += self.of_rule**0.5 * _NORMAL.inv_cdf(self.share("rule", example, rule))
        own = _NORMAL.inv_cdf(self.share("request", rule, request.hex()))
        return _NORMAL.cdf(shared + (1 - self.of_input - self.of_rule) ** 0.5 * own)


class SimulatedWriter:
    """A model of a :class:`WritersWorld` that writes; its answer follows from the request and the seed.

    Example:
        >>> world = WritersWorld()
        >>> writer, prompt = world.writer("weaker"), world.prompt.text.replace("{input}", world.rows[0]["input"])
        >>> writer.chances(writer.request(prompt))["links"]
        0.65
        >>> writer.chances(writer.request(prompt + " Give no link at all."))["links"]
        0.9
    """

    answers_stay_in_the_run = True
    """The parameters of its world are no part of its identity, so no other command may use them."""

    def __init__(self, world: WritersWorld, name: str, heeding: Mapping[str, Heeding], slots: int = 16) -> None:
        """``heeding``: for each rule of the world, by id; ``slots``: calls taken at once."""
        self.world = world
        self.name = f"simulated/{name}"
        self.identity = f"{self.name}/{world.form}/{world.seed}"
        self.slots = slots
        self.heeding = dict(heeding)
        self.calls = 0
        """Requests that were answered."""

    async def answer(self, request: Request) -> Answer:
        """Write an output. Raises ValueError where the request shows no input of the world."""
        self.calls += 1
        return as_answer(self.text(request), request)

    def request(self, *contents: str, schema: Mapping[str, Any] | None = None) -> Request:
        """A request of a system text and a user's, or of a user's alone."""
        messages = list(zip(("system", "user")[-len(contents) :], contents, strict=True))
        return make_request(self.identity, messages, Parameters(256, schema=schema))

    def text(self, request: Request) -> str:
        """The output for a request."""
        asked = self._read(request)
        chances = self._chances(asked)
        kept = [name for name, chance in chances.items() if self.world.luck(asked.example, name, request.key) < chance]
        return self.world.write(asked.example, kept, asked.thing)

    def chances(self, request: Request) -> dict[str, float]:
        """The true chance that the output keeps each rule, by id."""
        return self._chances(self._read(request))

    def _chances(self, asked: _Asked) -> dict[str, float]:
        chances = {}
        for rule in self.world.rules:
            heeding = self.heeding[rule.id]
            chances[rule.id] = max(
                heeding.unsaid,
                heeding.before if rule.speaks_in(asked.before) else 0.0,
                heeding.after if rule.speaks_in(asked.after) else 0.0,
                heeding.shown if rule.id in asked.shown else 0.0,
                heeding.enforced if self._is_enforced(rule, asked) else 0.0,
            )
        return chances

    def _is_enforced(self, rule: WritingRule, asked: _Asked) -> bool:
        """Whether the schema or grammar enforces a rule: an output that breaks only this rule is refused."""
        if asked.schema is None:
            return rule.kept != "" and rule.kept in asked.grammar
        kept = [other.id for other in self.world.rules if other is not rule]
        try:
            broken = json.loads(self.world.write(asked.example, kept, asked.thing))
        except ValueError:
            return True
        return next(Draft202012Validator(asked.schema).iter_errors(broken), None) is not None

    def _read(self, request: Request) -> _Asked:
        turns = [(role, content) for role, content in request.messages if role != "assistant"]
        place = max((place for place, (_, text) in enumerate(turns) if _INPUT.search(text)), default=None)
        if place is None:
            raise ValueError(f"A simulated writer knows the inputs of its own world alone; it was shown: {turns}")
        *_, request_match = _INPUT.finditer(turns[place][1])
        text, output = turns[place][1], _REPLY if self.world.form == "reply" else _FACTS
        after = "\n".join([text[request_match.end() :], *(content for _, content in turns[place + 1 :])])
        shown = output.findall(after) + [content for role, content in request.messages if role == "assistant"]
        return _Asked(
            request_match[1],
            request_match[2],
            "\n".join([*(content for _, content in turns[:place]), text[: request_match.start()]]),
            output.sub("", after),
            {name for reply in shown for name in self.world.kept(reply)},
            request.parameters.schema,
            request.parameters.grammar or "",
        )


@dataclass(frozen=True)
class _Asked:
    """A request to write, taken apart."""

    example: str
    thing: str
    before: str
    """All that stands before the input."""
    after: str
    """All that stands after the input, without outputs that are shown."""
    shown: set[str]
    """Rules that an output keeps which is shown after the input, or in a turn of its own."""
    schema: Mapping[str, Any] | None
    grammar: str


_TURNED = re.compile(r"\b(?:not|without|avoid\w*|free of|leave out)\b", re.IGNORECASE)
_QUESTION = re.compile(r"[^\n?]*\?")
_PAIR = re.compile(r"Output 1:\n(.*?)Output 2:\n(.*?)\n\n.*Which of the two outputs", re.DOTALL)
_DOES = "answer the request"
"""The phrase for something that every output does."""
_COMMENT = re.compile(r"(?:^|\n)Comment: (.*)\Z", re.DOTALL)
_GENERAL = render("general_questions", noun="reply").split("\n")[0]
_LAST_ITEM = re.compile(r"^\[(\d+)\]", re.MULTILINE)


class WritersJudge(AnsweringJudge):
    """Answers questions on outputs of a :class:`WritersWorld`, and takes every other role of the loop.

    A question is understood by the rule that it speaks of. The judge answers wrongly as often as the world says, on the
    same outputs each time. Of two outputs, it prefers the one that keeps more rules. As a helper it states the rule in
    the prompt's own words.

    Example:
        >>> import asyncio
        >>> world = WritersWorld(judge_wrong=0)
        >>> judge = WritersJudge(world)
        >>> asked = f"{world.write('r0001', ['thanks'])} Question: Does the reply thank the reader?"
        >>> judge.p_asked(world.writer("old").request(asked))
        0.95
    """

    def __init__(self, world: WritersWorld, name: str = "simulated/writers-judge", slots: int = 16) -> None:
        """``slots``: calls taken at once."""
        super().__init__(name, f"{name}/{world.form}/{world.seed}", slots)
        self.world = world

    def p_asked(self, request: Request) -> float:
        """P(yes) of the last question. Raises ValueError where it speaks of no rule of the world."""
        text = "\n".join(content for _, content in request.messages)
        if (pair := _PAIR.search(text)) is not None:
            first, second = (len(self.world.kept(each)) for each in pair.groups())
            return 0.95 if first > second else 0.05 if first < second else 0.5
        asked = next((each for each in reversed(_QUESTION.findall(text)) if self._spoken_of(each)), None)
        if asked is None and _DOES in text:
            return 0.95
        if asked is None:
            raise ValueError(
                f"A judge of a writers' world knows questions on its rules alone; it was asked: {text[-300:]}"
            )
        rule = self._spoken_of(asked)[0]
        yes = rule.is_kept(text) != (rule.criterion.is_fault != bool(_TURNED.search(asked)))
        wrong = self.world.share("judge", self.name, asked, text) < self.world.judge_wrong
        return 0.95 if yes != wrong else 0.05

    def helped(self, request: Request, fields: Mapping[str, Any]) -> str | None:
        """The reply of a helper, as JSON, or as lines where the request wants lines."""
        last = request.messages[-1][1]
        if not fields and (comment := _COMMENT.search(last)) is not None:  # a reviewer's, alone or beside its output
            asked = [rule.criterion.text for rule in self._spoken_of(comment[1]) if not rule.is_check]
            return "\n".join(asked) or "none"
        if not fields and _GENERAL in request.messages[0][1]:
            return "none"  # its questions are about a kind of thing already
        if last.endswith("Questions about an output:"):
            criteria = [rule.criterion for rule in self._spoken_of(last)]
            return "\n".join(f"{each.good}: {each.text}" for each in criteria) or "none"
        if not fields and last.startswith("Text: "):  # a request to say what a text does, for contrasts
            return _DOES
        case = request.messages[min(1, len(request.messages) - 1)][1]
        reply = self._reply(case, request.messages[-1][1], fields)
        return None if reply is None else json.dumps(reply)

    def _reply(self, case: str, last: str, fields: Mapping[str, Any]) -> dict[str, Any] | None:
        spoken = self._spoken_of(case)
        order = spoken[0].order if spoken else "Write with care whatever is asked for."
        if "requirements" in fields:
            return {"requirements": [rule.order for rule in spoken]}
        if "questions" in fields:
            texts = [rule.criterion.text for rule in self._spoken_of(case.partition("The requirement: ")[2] or case)]
            return {"questions": [{"text": text, "violation": "It is not so."} for text in texts[:3]]}
        if "line" in fields:
            return {"line": order}
        if "instruction" in fields:
            [rule, *_] = [*self._spoken_of(case.partition("fails this check: ")[2].partition("\n")[0]), *spoken]
            return {"quote": "nothing", "missed": "a rule", "instruction": rule.order}
        if "relation" in fields:
            return on_the_list(last, lambda one, known: self._spoken_of(known) == self._spoken_of(one))
        if fields.keys() == {"reason", "kind"}:
            return PROMPTABLE
        if "contradicts" in fields:
            return {"reason": "They are about different things.", "contradicts": False}
        if "part" in fields:
            lesson = case.split("The lesson that it must say: ")[-1].strip()
            return {"part": max(map(int, _LAST_ITEM.findall(case)), default=1), "action": "add", "text": lesson}
        if set(fields) == {"prompt"}:
            prompt, lessons = case.removeprefix("The prompt:\n").split("\n\nThe lessons that it must say:\n")
            return {"prompt": f"{prompt}\n{lessons.strip()}"}
        return None

    def _spoken_of(self, text: str) -> list[WritingRule]:
        """The rules that a text speaks of, in its order."""
        found = ((re.search(rule.said, text, re.IGNORECASE), rule) for rule in self.world.rules)
        return [
            rule for _, rule in sorted(((at.start(), rule) for at, rule in found if at), key=lambda placed: placed[0])
        ]
