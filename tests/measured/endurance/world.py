"""Small inputs for every command that buys, and a model that plays every role: what it says follows from the request
alone.

All **made up**: a judge sees an output's quality as well as its prompt's wording happens to let it, helpers fill the
form that they are given. So every part of a run has something to do, and the same request always gets the same answer.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from askance.testing import ServerReply, completion

CONCURRENCY = 4
"""Calls at once: so many may be in flight when a process is killed."""
EXAMPLES, PAIRS = 60, 30
_WORDS = ["short", "clear", "polite", "exact", "warm", "plain", "honest", "careful", "brief", "kind"]
_RUN = "--run run --max-iterations 2 --resamples 200 --alpha 0.3 --embedder words --yes"
_JUDGE = "examples.jsonl --checklist checklist.yaml --model openai/judge"


@dataclass(frozen=True)
class Work:
    """A command on the inputs."""

    name: str
    arguments: str
    """The command line, but for the endpoint's address."""
    output: str
    """The file that it writes, or the directory of its run."""
    in_batches: bool = False

    def command(self, url: str) -> list[str]:
        """Return the command line for an endpoint, in words."""
        at_once = "--engine batch" if self.in_batches else f"--max-concurrency {CONCURRENCY}"
        return f"{self.arguments} --api-base {url} {at_once}".split()

    @property
    def in_flight(self) -> int:
        """Calls that a kill may cost twice. A batch is found again, so only a direct question can be lost."""
        return 1 if self.in_batches else CONCURRENCY


EVALUATE = f"evaluate {_JUDGE} -o verdicts.jsonl"
_MIGRATE = "migrate examples.jsonl --checklist checklist.yaml --source openai/source --target openai/judge"
_TUNE = "tune examples.jsonl --generator openai/writer --prompt writer.md --checklist checklist.yaml"
_SELECT = "select examples.jsonl --candidates checklist.yaml --model openai/judge -k 2 --halves 2 --ranking-resamples 2"
_WEIGH = "weigh pairs.jsonl --checklist checklist.yaml --model openai/judge --pairwise --method logistic --resamples 20"
WORKS: Mapping[str, Work] = {
    work.name: work
    for work in (
        Work("evaluate", EVALUATE, "verdicts.jsonl"),
        Work("evaluate --engine batch", EVALUATE, "verdicts.jsonl", True),
        Work("align", f"align {_JUDGE} {_RUN}", "run"),
        Work("migrate", f"{_MIGRATE} --prompt prompt.md {_RUN}", "run"),
        Work("tune", f"{_TUNE} --judge openai/judge {_RUN}", "run"),
        Work("select", f"{_SELECT} -o chosen.yaml", "chosen.yaml"),
        Work("weigh --pairwise", f"{_WEIGH} -o weights.json", "weights.json"),
        Work("compare", f"compare {_JUDGE} --judge binary,direct,random_k -o compared.json", "compared.json"),
    )
}


def write_inputs(folder: Path, examples: int = EXAMPLES) -> None:
    """Put examples, pairs, checklist and prompts into a folder."""
    rows, pairs = [], []
    for number in range(examples):
        quality = _share("quality", number)
        row: dict[str, Any] = {
            "id": f"e{number}",
            "input": f"Letter {number}",
            "output": f"Reply of quality {quality:.2f}",
        }
        row["human"] = {"quality": round(1 + 4 * quality + 0.5 * _share("rater", number), 2)}
        if quality < 0.5:
            row["comment"] = f"It is not {_WORDS[number % len(_WORDS)]}."
        rows.append(row)
    for number in range(PAIRS):
        a, b = _share("a", number), _share("b", number)
        pair = {"id": f"p{number}", "input": f"Letter {number}", "preferred": "a" if a > b else "b"}
        pairs.append(pair | {"output_a": f"Reply of quality {a:.2f}", "output_b": f"Reply of quality {b:.2f}"})
    folder.mkdir(parents=True, exist_ok=True)
    for name, several in (("examples.jsonl", rows), ("pairs.jsonl", pairs)):
        (folder / name).write_text("".join(json.dumps(each) + "\n" for each in several), encoding="utf-8")
    questions = [{"id": word, "text": f"Is the reply {word}?", "dimension": "quality"} for word in _WORDS[:3]]
    (folder / "checklist.yaml").write_text(json.dumps({"task": "Answer the letter.", "questions": questions}))
    (folder / "prompt.md").write_text("You are a careful judge of replies.\nRead the letter first.\n", encoding="utf-8")
    (folder / "writer.md").write_text("You write replies to letters.\nBe friendly.\n", encoding="utf-8")


def reply(body: Mapping[str, Any]) -> ServerReply:
    """Return the model's reply to a request."""
    texts = [str(each["content"]) for each in body["messages"]]
    everything, last = "\n".join(texts), texts[-1]
    chance = random.Random(f"{body['model']}\n{everything}")
    form = body.get("response_format")
    if form is not None:
        return json.dumps(_filled(form["json_schema"]["schema"], chance))
    if re.search(r"number from 1 to \d|1 or 2", last):
        return _number(body, chance.randint(1, 2 if "1 or 2" in last else 5))
    if body.get("max_tokens", 16) > 32:
        quality = 0.6 * _share(texts[0]) + 0.4 * chance.random()
        return f"Reply of quality {quality:.2f}"
    seen = re.findall(r"quality (\d\.\d\d)", last)
    quality = float(seen[-1]) if seen else chance.random()
    sight = 0.1 + 0.6 * _share(body["model"], re.sub(r"\d+(\.\d+)?", "", everything))
    return min(0.99, max(0.01, sight * quality + (1 - sight) * chance.random()))


def _number(body: Mapping[str, Any], said: int) -> ServerReply:
    whole = completion(body, str(said))
    if body.get("logprobs"):
        top = [{"token": str(each), "logprob": -abs(each - said) - 0.5} for each in range(1, 6)]
        whole["choices"][0]["logprobs"] = {"content": [{"token": str(said), "logprob": -0.5, "top_logprobs": top}]}
    return 200, whole


def _filled(schema: Mapping[str, Any], chance: random.Random, name: str = "") -> Any:
    """Fill a JSON schema. A field's name says whether its text is a condition, a question or a rule."""
    if "enum" in schema:
        return chance.choice(schema["enum"])
    match schema.get("type"):
        case "object":
            return {each: _filled(part, chance, each) for each, part in schema.get("properties", {}).items()}
        case "array":
            return [_filled(schema["items"], chance, name) for _ in range(max(1, schema.get("minItems", 1)))]
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return False
        case _:
            one, other = chance.sample(_WORDS, 2)
            if name.startswith("answer_"):
                return f"is {one} where it ought to be {other}"
            if name in ("text", "question"):
                return f"Does the reply say what is {one} and {other}?"
            return f"Answer no if the reply is {one} and not {other}."


def _share(*parts: object) -> float:
    return random.Random("/".join(map(str, parts))).random()
