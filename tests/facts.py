"""A small world for ``select``: what is asked of outputs, and what it tells of their rating, is known."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from askance.models.base import Answer, Request
from askance.prompts.checklist import Checklist, Question
from askance.testing import Reply, ScriptedModel

from .worlds import share

FACTS = ("clear", "short", "polite", "true")


class Facts:
    """A small world: four facts about each output decide its rating, and each fact is asked about twice."""

    def __init__(self, size: int = 80) -> None:
        self.ids = [f"e{number:03d}" for number in range(size)]
        self.candidates = Checklist(
            task="Answer the letter.",
            questions=[
                Question(id=f"{fact}-{number}", text=f"Is it {fact} (way {number})?", dimension=fact, weight=2.0)
                for fact in FACTS
                for number in (1, 2)
            ],
        )

    def fact(self, example: str, fact: str) -> bool:
        return share(example, fact) < 0.5

    def quality(self, example: str) -> int:
        return 1 + sum(self.fact(example, fact) for fact in FACTS)

    def rows(self, *, human: bool = False) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = [
            {"id": each, "input": f"Letter [{each}].", "output": f"Reply [{each}]."} for each in self.ids
        ]
        if human:
            for row in rows:
                row["human"] = {"overall": self.quality(row["id"]) + share("noise", row["id"]) - 0.5}
        return rows

    def reply(self, request: Request) -> Reply:
        text = request.messages[-1][1]
        if "overall_rating" in text:
            return self.fill(request)
        if request.parameters.schema is not None:
            return self.propose(text)
        example = re.findall(r"\[(e\d+)\]", text)[0]
        if "on the whole" in text:
            quality = min(self.quality(example), 5)
            if "The judge's answer: " in text:
                quality = max(1, min(5, quality + (1 if "answer: yes" in text else -1)))
            return number(quality)
        fact, way = re.findall(r"Is it (\w+) \(way (\d)\)", text)[0]
        slip = share("slip", example, fact, way) < 0.04
        right = self.fact(example, fact) ^ slip
        if "To what degree" in text:
            top = int(re.findall(r"to (\d+) \(fully\)", text)[0])
            return number(top if right else 1, top)
        return (0.85 if right else 0.15) + 0.1 * share("p", example, fact, way)

    def fill(self, request: Request) -> Answer:
        """All answers and the rating, as log-probabilities of each value's token."""
        text = request.messages[0][1]
        (example,) = set(re.findall(r"\[(e\d+)\]", text))
        tokens = [("{", ())]
        for place, name in enumerate(request.parameters.schema["properties"]):
            tokens.append((f'{", " * (place > 0)}"{name}": ', ()))
            if name == "overall_rating":
                tokens += number(min(self.quality(example), 5)).logprobs or ()
                continue
            fact, way = name.split("-")
            p = (0.85 if self.fact(example, fact) ^ (share("slip", example, fact, way) < 0.04) else 0.15) + 0.05
            words = sorted((("yes", math.log(p)), ("no", math.log(1 - p))), key=lambda pair: -pair[1])
            tokens += [('"', ()), (words[0][0], tuple(words)), ('"', ())]
        tokens.append(("}", ()))
        return Answer("".join(token for token, _ in tokens), tuple(tokens), 200, 40)

    def propose(self, text: str) -> str:
        known = set(re.findall(r"Is it (\w+) \(way (\d)\)", text.split("Questions that are there already")[1]))
        new = [(fact, way) for way in ("1", "2") for fact in FACTS if (fact, way) not in known][:3]
        drafts = [
            {"text": f"Is it {fact} (way {way})?", "violation": "Not so.", "dimension": fact} for fact, way in new
        ]
        again = {"text": "Is it clear (way 1)?", "violation": "Not so.", "dimension": "clear"}
        return json.dumps({"questions": [*drafts, again]})

    def model(self, reply: Any = None, name: str = "facts/judge") -> ScriptedModel:
        return ScriptedModel(reply or self.reply, name=name)


def number(value: int, top: int = 5) -> Answer:
    """A rating from 1 to ``top`` with most of its probability on one number."""
    rest = 0.1 / (top - 1)
    pairs = [(str(each), math.log(0.9 if each == value else rest)) for each in range(1, top + 1)]
    pairs.sort(key=lambda pair: -pair[1])
    return Answer(str(value), ((str(value), tuple(pairs)),), 20, 1)
