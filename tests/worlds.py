"""A small world in which everything can be foretold: its judges and helpers answer from the request alone.

Flaws in the outputs are of three kinds. The strict source sees them all, the target says yes to nearly everything. A
rule about a wrong number or a wrong name cures the target of that kind; the rule about plain style does harm.
"""

from __future__ import annotations

import hashlib
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import askance
from askance.models.base import Request
from askance.prompts.checklist import Checklist, Question, dump_checklist
from askance.prompts.prompt import Prompt
from askance.testing import ScriptedModel

TEXTS = {"facts": "Are the facts right?", "words": "Are the words right?"}
KINDS = ("number", "name", "style")
RULES = {
    "number": "gives a wrong number",
    "name": "gives a wrong name",
    "style": "is written in a plain style",
    "brief": "is very brief",
}


def share(*parts: object) -> float:
    """A number in [0, 1) that depends on the parts alone."""
    digest = hashlib.sha256("/".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48


def help_with(messages: Sequence[tuple[str, str]], fields: Mapping[str, Any]) -> dict[str, Any] | None:
    """What deduplicator, updater and rewriter answer in any world; None where the request is none of theirs."""
    last, case = messages[-1][1], messages[min(1, len(messages) - 1)][1]
    if "relation" in fields:
        lesson, listed = last.removeprefix("New lesson: ").split("\n\nOn the list:\n")
        same = [line.split(". ", 1)[0] for line in listed.splitlines() if line.split(". ", 1)[1] == lesson]
        if same:
            return {"relation": "duplicate", "of": int(same[0]), "merged": ""}
        return {"relation": "new", "of": 0, "merged": ""}
    if "contradicts" in fields:
        return {"reason": "They are about different things.", "contradicts": False}
    if "part" in fields:
        part = max(int(number) for number in re.findall(r"^\[(\d+)\]", case, re.MULTILINE))
        return {"part": part, "action": "add", "text": case.split("The lesson that it must say: ")[1]}
    if "prompt" in fields:
        prompt, lessons = case.removeprefix("The prompt:\n").split("\n\nThe lessons that it must say:\n")
        return {"prompt": f"{prompt}\n{lessons.strip()}"}
    if "kinds" in fields:
        return {"kinds": ["a fault of some kind", "a fault of another kind"]}
    return None


def useful(options: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a world without those that others leave without use, which would be refused."""
    idle = {"update", "trial", "prune"} if options.get("calibrate") else set[str]()
    if options.get("paper"):
        idle = {"alpha", "trial", "prune", "memory", "max_notes", "patience"}
    return {name: value for name, value in options.items() if name not in idle}


def example_ids(messages: Sequence[tuple[str, str]] | Sequence[Mapping[str, str]]) -> set[str]:
    """Ids of the examples that a request speaks of."""
    return set(re.findall(r"\[(e\d+)\]", json.dumps(list(messages))))


class Answering(ABC):
    """A world whose models answer from the request alone."""

    @abstractmethod
    def reply(self, messages: Sequence[tuple[str, str]], schema: Mapping[str, Any] | None) -> str | float:
        """What any model of this world answers."""

    def serve(self, body: Mapping[str, Any]) -> str | float:
        """The script of a stand-in server."""
        messages = [(each["role"], each["content"]) for each in body["messages"]]
        form = body.get("response_format")
        return self.reply(messages, form["json_schema"]["schema"] if form else None)

    def model(self, name: str, before: Callable[[Request], None] | None = None, slots: int = 1) -> ScriptedModel:
        """A model in this process; ``before`` sees every request first and may raise."""

        def script(request: Request) -> str | float:
            if before:
                before(request)
            return self.reply(request.messages, request.parameters.schema)

        return ScriptedModel(script, name=name, slots=slots)


class World(Answering):
    """Examples, checklist, prompts and replies."""

    def __init__(self, size: int = 40, *, human: bool = True) -> None:
        self.ids = [f"e{number:03d}" for number in range(size)]
        self.human = human
        self.checklist = Checklist(
            task="Summarise the document.",
            questions=[Question(id=name, text=text, dimension="quality") for name, text in TEXTS.items()],
        )
        self.prompt = Prompt("You are a careful judge.")
        self.source_prompt = Prompt("Be a strict judge.")
        self.options: dict[str, Any] = {
            "embedder": "words",
            "resamples": 200,
            "alpha": 0.2,
            "trial": False,
            "prune": False,
            "update": "edits",
        }

    def flaw(self, example: str, question: str) -> str | None:
        """The kind of flaw, or None where the right answer is yes."""
        if share("flawed", example, question) > 0.5:
            return None
        return KINDS[int(3 * share("kind", example, question))]

    def brief(self, example: str, question: str) -> bool:
        """Whether the target says no without reason."""
        return self.flaw(example, question) is None and share("brief", example, question) < 0.12

    @property
    def rows(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        for example in self.ids:
            right = sum(self.flaw(example, question) is None for question in TEXTS)
            row = {"id": example, "input": f"Document [{example}].", "output": f"Summary [{example}]."}
            if self.human:
                score = 1.5 + 1.5 * right + share("human", example) - 0.5
                row["human"] = {"quality": round(score, 2)}
            rows.append(row)
        return rows

    def p_yes(self, prompt: str, example: str, question: str) -> float:
        flaw = self.flaw(example, question)
        noise = 0.12 * share("noise", example, question)
        if "strict" in prompt:
            return 0.05 + noise if flaw else 0.8 + noise
        if RULES["style"] in prompt and flaw is None:
            return 0.01 + 0.01 * noise
        if flaw in ("number", "name") and RULES[flaw] in prompt:
            return 0.1 + noise
        if self.brief(example, question) and RULES["brief"] not in prompt:
            return 0.3 + noise
        return 0.8 + noise

    def reply(self, messages: Sequence[tuple[str, str]], schema: Mapping[str, Any] | None) -> str | float:
        last = messages[-1][1]
        fields = (schema or {}).get("properties", {})
        everything = "\n".join(content for _, content in messages)
        helped = help_with(messages, fields)
        if helped is not None:
            return json.dumps(helped)
        if "requirements" in fields:  # nobody in this world writes questions anew
            return "none"
        if "lessons" in fields:
            return json.dumps({"lessons": self._free_lessons(last)})
        example = re.findall(r"\[(e\d+)\]", everything)[0]
        question = next((name for name, text in TEXTS.items() if text in everything), None)
        if question is None:  # a request for questions: nobody in this world writes any
            return "none"
        note = {"quote": "these words", "fact": "the input differs", "kind": "a kind of case"}
        if "answer_no_if" in fields:
            rule = RULES[self.flaw(example, question) or "style"]
            return json.dumps(note | {"kind": rule, "answer_no_if": rule})
        if "answer_yes_even_if" in fields:
            return json.dumps(note | {"answer_yes_even_if": RULES["brief"]})
        if "what in the output decides" in last:
            return f"The words of {example} decide."
        p_yes = self.p_yes(everything, example, question)
        if "explanation" in fields:
            return json.dumps({"answer": "yes" if p_yes >= 0.5 else "no", "explanation": f"Words of {example}."})
        return p_yes

    def _free_lessons(self, case: str) -> list[dict[str, Any]]:
        """One lesson for each question of each case."""
        found: dict[str, list[int]] = {}
        items = re.split(r"^\[(\d+)\]$", case, flags=re.MULTILINE)[1:]
        for number, item in zip(items[::2], items[1::2], strict=True):
            example = re.findall(r"\[(e\d+)\]", item)[0]
            for name, text in TEXTS.items():
                asked = re.search(rf"Question: {re.escape(text)}.*?Right answer: (yes|no)", item, re.DOTALL)
                if asked:
                    rule = RULES[self.flaw(example, name) or "style"] if asked[1] == "no" else RULES["brief"]
                    opening = "Answer no if" if asked[1] == "no" else "Answer yes even if"
                    found.setdefault(f"{opening} the output {rule}.", []).append(int(number))
        return [{"cases": sorted(set(cases)), "lesson": text} for text, cases in found.items()]

    def migrate(
        self, run: Path, before: Callable[[Request], None] | None = None, slots: int = 1, **options: Any
    ) -> askance.RunResult:
        """A migration in this process."""
        return askance.migrate(
            self.rows,
            checklist=self.checklist,
            source=self.model("world/source", before, slots),
            target=self.model("world/target", before, slots),
            prompt=self.prompt,
            source_prompt=self.source_prompt,
            run=run,
            **useful(self.options | options),
        )

    def align(
        self, run: Path, before: Callable[[Request], None] | None = None, slots: int = 1, **options: Any
    ) -> askance.RunResult:
        """An alignment of the target with people, in this process."""
        return askance.align(
            self.rows,
            checklist=self.checklist,
            model=self.model("world/target", before, slots),
            prompt=self.prompt,
            run=run,
            **useful(self.options | options),
        )

    def write(self, folder: Path) -> list[str]:
        """Write the inputs; returns the arguments of ``migrate`` that name them."""
        folder.mkdir(parents=True, exist_ok=True)
        lines = [json.dumps(row) + "\n" for row in self.rows]
        (folder / "data.jsonl").write_text("".join(lines), encoding="utf-8")
        (folder / "checklist.yaml").write_text(dump_checklist(self.checklist), encoding="utf-8")
        (folder / "prompt.md").write_text(self.prompt.text, encoding="utf-8")
        (folder / "source.md").write_text(self.source_prompt.text, encoding="utf-8")
        arguments = [str(folder / "data.jsonl"), "--checklist", str(folder / "checklist.yaml")]
        arguments += ["--source", "openai/source", "--target", "openai/target"]
        arguments += ["--prompt", str(folder / "prompt.md"), "--source-prompt", str(folder / "source.md")]
        arguments += ["--no-cache"]  # what each of several runs asks is counted
        for name, value in self.options.items():
            option = name.replace("_", "-")
            arguments += ["--no-" + option] if value is False else ["--" + option, str(value)]
        return arguments
