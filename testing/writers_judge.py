"""A judge and helper of a world of prompts that write."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from ..models.base import Request
from ..prompts.templates import render
from .simulated_judge import PROMPTABLE, AnsweringJudge, on_the_list
from .simulated_writer import WritersWorld, WritingRule

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
