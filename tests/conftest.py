"""A small world in which everything can be foretold: its judges and helpers answer from the request alone.

Flaws in the outputs are of three kinds. The strict source sees them all, the target says yes to nearly everything. A
rule about a wrong number or a wrong name cures the target of that kind; the rule about plain style does harm.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import pytest

import askance
from askance.cli import main
from askance.models.base import Answer, Request
from askance.prompts.checklist import Checklist, Question, dump_checklist
from askance.prompts.prompt import Prompt
from askance.testing import Reply, ScriptedModel

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in a shell's background jobs, and what they start
    signal.signal(signal.SIGINT, signal.default_int_handler)

CACHES = itertools.count()
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


def judge_at(url: str, limit: int) -> list[str]:
    """Arguments of a command that asks a stand-in server about some of the examples, four calls at a time."""
    judge = ["--model", "openai/judge", "--api-base", url, "--max-concurrency", "4"]
    return [*judge, "--limit", str(limit), "--json"]


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
    idle = {"update"} if options.get("calibrate") else set[str]()
    if options.get("paper"):
        idle = {"alpha", "trial", "prune", "memory", "max_notes", "patience"}
    return {name: value for name, value in options.items() if name not in idle}


class World:
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
        """What any model of this world answers."""
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


class Letters:
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
        """What any model of this world answers."""
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

    def model(self, name: str, before: Callable[[Request], None] | None = None, slots: int = 1) -> ScriptedModel:
        """A model in this process; ``before`` sees every request first and may raise."""

        def script(request: Request) -> str | float:
            if before:
                before(request)
            return self.reply(request.messages, request.parameters.schema)

        return ScriptedModel(script, name=name, slots=slots)

    def serve(self, body: Mapping[str, Any]) -> str | float:
        """The script of a stand-in server."""
        messages = [(each["role"], each["content"]) for each in body["messages"]]
        form = body.get("response_format")
        return self.reply(messages, form["json_schema"]["schema"] if form else None)

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


def example_ids(messages: Sequence[tuple[str, str]] | Sequence[Mapping[str, str]]) -> set[str]:
    """Ids of the examples that a request speaks of."""
    return set(re.findall(r"\[(e\d+)\]", json.dumps(list(messages))))


class Askance:
    """Runs the command line in a process of its own and keeps an eye on what it writes."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def start(self, *arguments: str | Path, **options: Any) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "askance", *map(str, arguments)]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "cwd": self.home}
        return subprocess.Popen(command, **(pipes | options))

    def finish(self, process: subprocess.Popen[str]) -> subprocess.CompletedProcess[str]:
        out, err = process.communicate(timeout=60)
        assert "Traceback" not in err, err
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def __call__(self, *arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
        return self.finish(self.start(*arguments, **options))


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
            top = int(re.findall(r"to (\d) \(fully\)", text)[0])
            return number(top if right else 1)
        return (0.85 if right else 0.15) + 0.1 * share("p", example, fact, way)

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


def number(value: int) -> Answer:
    """A rating with most of its probability on one number."""
    rest = 0.1 / 4
    pairs = [(str(each), math.log(0.9 if each == value else rest)) for each in range(1, 6)]
    pairs.sort(key=lambda pair: -pair[1])
    return Answer(str(value), ((str(value), tuple(pairs)),), 20, 1)


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads or writes the user's cache, or that of another test; the folder is made only where it is used."""
    monkeypatch.setenv("ASKANCE_CACHE", str(tmp_path_factory.getbasetemp() / "caches" / str(next(CACHES))))
    monkeypatch.delenv("ASKANCE_STORE", raising=False)


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def make_world() -> type[World]:
    return World


@pytest.fixture
def letters() -> Letters:
    return Letters()


@pytest.fixture
def make_letters() -> type[Letters]:
    return Letters


@pytest.fixture
def ids_in() -> Callable[..., set[str]]:
    return example_ids


@pytest.fixture
def sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of one's own, with a cache in it and no key in the environment."""
    monkeypatch.setenv("ASKANCE_CACHE", str(tmp_path / "cache"))
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def askance_command(sandbox: Path) -> Askance:
    return Askance(sandbox)


class Ran(NamedTuple):
    """What a command came to."""

    code: int
    out: str
    err: str


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """The command line in this process."""

    def call(*arguments: object) -> Ran:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main([str(each) for each in arguments])
        said = capsys.readouterr()
        assert "Traceback" not in said.err
        return Ran(int(ended.value.code or 0), said.out, said.err)

    return call


@pytest.fixture
def facts() -> Facts:
    return Facts()
