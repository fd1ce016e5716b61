"""A world of letters for ``tune``, in which everything can be foretold."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import askance
from askance.models.base import Request
from askance.prompts.checklist import Checklist, Question
from askance.prompts.prompt import Prompt

from .worlds import Answering, example_ids, help_with, share, useful


class Letters(Answering):
    """A world of letters for ``tune``: some have to greet, some to be signed; the writer forgets both.

    The instruction to welcome cures the one, the instruction to name the writer the other, and the one to be brief
    spoils every letter. Where ``count`` is set, some requests want a number of words, which no instruction can bring
    about.
    """

    WANTS: ClassVar = {"greeting": ("Hello", "Does the letter greet?"), "signature": ("Yours", "Is the letter signed?")}
    CURES: ClassVar = {
        "greeting": "Open with words of welcome.",
        "signature": "Close with the name of its writer.",
        "brief": "Leave out whatever is not needed.",
        "length": "Count the words and stop at the number that is wanted.",
    }
    PLAIN: ClassVar = {
        "greeting": ("The letter must greet.", "Write a greeting."),
        "signature": ("The letter must be signed.", "Write a signature."),
    }
    """The requirements' own words: a question's, and what a model makes of a check's name. They help where ``plain``."""
    CHECKER = """
from askance import Check

MARKS = {"greeting": "Hello", "signature": "Yours"}


def check(example):
    wanted = [name for name in MARKS if name in example.input]
    checks = [Check(name, MARKS[name] in example.output, f"it has no {name}") for name in wanted]
    if "words" in example.input:
        checks.append(Check("length", False, "it has another number of words"))
    return checks or [Check("there", bool(example.output))]
"""

    def __init__(self, size: int = 40, *, count: bool = False, harm: float = 0.0, plain: Sequence[str] = ()) -> None:
        """``harm``: share of the notes that order the letters to be brief; ``plain``: what its own words cure."""
        self.plain = plain
        self.ids = [f"e{number:03d}" for number in range(size)]
        self.count = count
        self.harm = harm
        self.prompt = Prompt("Write what is asked for.")
        questions = [Question(id=name, text=text, dimension="letter") for name, (_, text) in self.WANTS.items()]
        self.checklist = Checklist(task="Write letters.", questions=questions)
        self.options: dict[str, Any] = {"embedder": "words", "resamples": 200, "alpha": 0.2}

    @property
    def rows(self) -> list[dict[str, Any]]:
        rows = []
        for example in self.ids:
            wanted = [name for name in self.WANTS if share("wanted", example, name) < 0.8]
            ending = " in nine words" if self.count and share("count", example) < 0.5 else ""
            rows.append(
                {"id": example, "input": f"Letter [{example}] with {' and '.join(wanted) or 'nothing'}{ending}"}
            )
        return rows

    def letter(self, prompt: str, request: str) -> str:
        parts = [f"This is [{example_ids([('user', request)]).pop()}]."]
        if self.CURES["brief"] not in prompt:
            for name, (mark, _) in self.WANTS.items():
                stated = name in self.plain and any(line in prompt for line in self.PLAIN[name])
                if stated or self.CURES[name] in prompt or share("natural", request, name) < 0.25:
                    parts.append(f"{mark}.")
        return " ".join(parts)

    def reply(self, messages: Sequence[tuple[str, str]], schema: Mapping[str, Any] | None) -> str | float:
        fields = (schema or {}).get("properties", {})
        everything = "\n".join(content for _, content in messages)
        helped = help_with(messages, fields)
        if helped is not None:
            return json.dumps(helped)
        if messages[-1][1].startswith("Letter ["):
            return self.letter(messages[0][1], messages[-1][1])
        if "questions" in fields:
            asked = [text for name, (_, text) in self.WANTS.items() if name in messages[1][1]]
            questions = [{"text": text, "violation": "A part is missing."} for text in asked or ["Is it a letter?"]]
            return json.dumps({"questions": questions})
        if "line" in fields:
            name = next((name for name in self.WANTS if f": {name}\n" in everything), None)
            return json.dumps({"line": self.PLAIN[name][1] if name else "Count the length in words."})
        if "instruction" in fields:
            cure = self.CURES["length"]
            for name, (_, text) in self.WANTS.items():
                if f"check: {text}" in everything or f"'{name}'" in everything:
                    is_harm = share("harm", *sorted(example_ids(messages)), name) < self.harm
                    cure = self.CURES["brief" if is_harm else name]
            return json.dumps({"quote": "nothing", "missed": "a part of it", "instruction": cure})
        if "what in the output decides" in messages[-1][1]:
            return "A part is missing."
        for name, (mark, text) in self.WANTS.items():
            if text in everything:
                return 0.9 if name not in everything or f"{mark}." in everything else 0.1
        return 0.9

    def tune(
        self, run: Path, before: Callable[[Request], None] | None = None, slots: int = 1, **options: Any
    ) -> askance.RunResult:
        """A run in this process, with the checker unless something else is said."""
        options = useful(self.options | options)
        if "judge" not in options:
            options.setdefault("checker", self.checker(run.parent))
        return askance.tune(
            self.rows,
            generator=self.model("letters/writer", before, slots),
            prompt=self.prompt,
            run=run,
            **options,
        )

    def checker(self, folder: Path) -> str:
        """The checker as a user's file."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "checks.py").write_text(self.CHECKER, encoding="utf-8")
        return f"{folder / 'checks.py'}:check"
