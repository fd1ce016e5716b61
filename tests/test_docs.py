"""Every snippet of the README and of docs/ is run, in its order, as a reader would: only the models are stand-ins.

A snippet whose fence has ``title="NAME"`` is written to that file. What fetches or installs something is only parsed, and
so is a snippet after ``<!-- needs: PACKAGE -->`` where that package is not installed; a test of its own is skipped then.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import json
import os
import random
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import pytest
import yaml

from askance.cli import cli
from askance.models.embedded.registry import MODELS
from askance.testing import ServerReply, StandInServer, completion
from tests.doubles import BatchServer

ROOT = Path(__file__).parent.parent
DOCS = sorted((ROOT / "docs").rglob("*.md"))
SKILL = ROOT / "bridges" / "coding" / "SKILL.md"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", SKILL, *DOCS]
NAMES = [page.relative_to(ROOT).as_posix() for page in PAGES]
SNIPPET = re.compile(
    r"(?:^<!-- needs: (?P<needs>[\w ]+) -->\n)?^```(?P<kind>\w+)(?: title=\"(?P<file>[\w./]+)\")?\n(?P<text>.*?)^```",
    re.MULTILINE | re.DOTALL,
)
RUN = ("bash", "python")
ONLY_PARSED = ("make ", "pip install ", "askance demo", "askance label ", "askance models pull ", "askance doctor")
"""Beginnings of lines that download or install something, look at what is installed, or wait for a person."""
FOREIGN_OPTIONS = {
    "--enable-auto-tool-choice",
    "--default-chat-template-kwargs",
    "--reasoning-budget",
    "--scorer",
    "--askance-update",
    "--lessons",
    "--more",
    "--arms",
    "--worlds",
    "--seeds",
    "--sentences",
    "--only",
}
"""Options of other programs, and of measurements, that the pages speak of."""
PROGRAMS = (
    'askance() { "$PYTHON" -m askance "$@"; }; pytest() { "$PYTHON" -m pytest "$@"; }; python() { "$PYTHON" "$@"; }'
)
"""Those of this Python, whatever else is installed."""


@dataclass(frozen=True)
class Snippet:
    """A fenced block of a page."""

    line: int
    kind: str
    file: str | None
    needs: tuple[str, ...]
    """Packages that it cannot be run without."""
    text: str

    @property
    def parsed_lines(self) -> list[str]:
        """Those of its commands that are not run."""
        return [line for line in commands(self.text) if line.startswith(ONLY_PARSED)] if self.kind == "bash" else []

    @property
    def code(self) -> str:
        """What is run of it."""
        if self.kind != "bash":
            return self.text
        return "\n".join(line for line in commands(self.text) if not line.startswith(ONLY_PARSED))


def commands(text: str) -> list[str]:
    """The command lines of a shell snippet, those that go on in the next line put together."""
    lines = text.replace("\\\n", " ").splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def snippets(page: Path) -> list[Snippet]:
    text = page.read_text(encoding="utf-8")
    return [
        Snippet(
            text.count("\n", 0, found.start("kind")) + 1,
            found["kind"],
            found["file"],
            tuple((found["needs"] or "").split()),
            found["text"],
        )
        for found in SNIPPET.finditer(text)
    ]


NEEDS = sorted(
    {
        (name, " ".join(each.needs))
        for name, page in zip(NAMES, PAGES, strict=True)
        for each in snippets(page)
        if each.needs
    }
)
KINDS = ("name", "date", "colour", "price", "order", "age", "size")
COLOURS = ("red", "green", "blue", "grey", "white", "black")
PLACES = ("bridge", "mill", "parcel", "garden", "letter", "train")


def filled(schema: Mapping[str, Any], texts: random.Random, name: str = "") -> Any:
    """A value that a JSON schema allows; different requests get different ones."""
    if name in ("part", "of"):
        return 1
    if "enum" in schema:
        return "duplicate" if name == "relation" else schema["enum"][0]
    kind = schema.get("type", "string")
    if kind == "object":
        return {key: filled(value, texts, key) for key, value in schema.get("properties", {}).items()}
    if kind == "array":
        return [filled(schema["items"], texts, name) for _ in range(max(2, schema.get("minItems", 1)))]
    if kind == "boolean":
        return texts.random() < 0.5
    if kind in ("integer", "number"):
        return texts.randint(int(schema.get("minimum", 1)), int(schema.get("maximum", 5)))
    if name == "text":
        return f"Is the rule number {texts.random():.4f} kept?"
    place = f"{texts.choice(COLOURS)} {texts.choice(PLACES)}"
    return f"{'Mind whether the' if name == 'instruction' else 'the'} {texts.choice(KINDS)} of the {place} is wrong"


def inlined(schema: Any, definitions: Mapping[str, Any]) -> Any:
    """A schema without references."""
    if isinstance(schema, list):
        return [inlined(each, definitions) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return inlined(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    return {key: inlined(value, definitions) for key, value in schema.items()}


def rated(body: Mapping[str, Any], number: int) -> ServerReply:
    """A number, with its log-probabilities where they are asked for."""
    reply = completion(body, str(number))
    if body.get("logprobs"):
        top = [{"token": str(each), "logprob": -abs(each - number) - 0.5} for each in range(1, 6)]
        token = {"token": str(number), "logprob": -0.5, "top_logprobs": top}
        reply["choices"][0]["logprobs"] = {"content": [token]}
    return 200, reply


def answer(body: Mapping[str, Any]) -> ServerReply:
    """What the stand-in model answers: a judge's P(yes), a rating, a reply of the form asked for, or a text."""
    text = body["messages"][-1]["content"]
    chance = random.Random(json.dumps(body["messages"]))
    form = body.get("response_format")
    if form is not None:
        schema = form["json_schema"]["schema"]
        reply = filled(inlined(schema, schema.get("$defs", {})), chance)
        lesson = "".join(each["content"] for each in body["messages"]).partition("The lesson that it must say: ")[2]
        return json.dumps(reply | {"text": lesson.splitlines()[0]} if lesson else reply)
    if '{"score": 1-5' in text:  # a judge in people's own words
        return json.dumps({"score": chance.randint(1, 5), "reason": "It keeps to the article."})
    if re.search(r"number from 1 to \d", text):
        return rated(body, chance.randint(1, 5))
    if body.get("logprobs") and "one short sentence" not in text:
        return chance.random()
    return f"Because of the words, {chance.random():.3f}."


def stand_in(text: str, url: str) -> str:
    """The same with the stand-in's name and address for every model's; ``my-other`` beside it stays another model."""
    text = re.sub(r"\b(local|anthropic|openai)/(?!my-other\b)[a-z][\w.-]+", "openai/stand-in", text)
    return re.sub(r"http://127\.0\.0\.1:8000/v1", url, text)


class Reader:
    """Someone who goes through a page, in a folder of their own."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self.url = url
        # a test of MLflow that ran before in this process leaves its experiment in the environment
        clean = {name: value for name, value in os.environ.items() if not name.startswith("MLFLOW_")}
        self.environment = clean | {
            "PYTHON": sys.executable,
            "OPENAI_BASE_URL": url,
            "ASKANCE_CACHE": str(folder / "cache"),
            "MLFLOW_DISABLE_TELEMETRY": "true",
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            "INSPECT_LOG_DIR": str(folder / "logs"),
        }
        if not entry_points(group="pytest11", name="askance"):
            self.environment["PYTEST_PLUGINS"] = "askance.pytest_plugin"

    def follow(self, snippet: Snippet) -> None:
        """Do what a snippet says, as far as what it needs is installed."""
        if snippet.file:
            self.folder.joinpath(snippet.file).write_text(stand_in(snippet.text, self.url), encoding="utf-8")
            return
        for line in snippet.parsed_lines:
            check_line(line)
        if missing(snippet.needs):
            if snippet.kind == "python":
                check_python(snippet.text)
            else:
                for line in commands(snippet.text):
                    check_line(line)
            return
        if snippet.code.strip():
            self._run(snippet)

    def _run(self, snippet: Snippet) -> None:
        code = stand_in(snippet.code, self.url)
        if snippet.kind == "bash":
            command = ["bash", "-euc", f"{PROGRAMS}\n{code}\npwd > '{self.folder}/.here'"]
        else:
            command = [sys.executable, "-c", code]
        here = self.folder / ".here"
        where = Path(here.read_text(encoding="utf-8").strip()) if here.exists() else self.folder
        done = subprocess.run(command, cwd=where, env=self.environment, capture_output=True, text=True, timeout=240)
        assert done.returncode == 0, f"line {snippet.line}:\n{code}\n{done.stdout}\n{done.stderr}"
        for file in self.folder.rglob("askance.yaml"):
            file.write_text(stand_in(file.read_text(encoding="utf-8"), self.url), encoding="utf-8")


def missing(packages: Iterable[str]) -> list[str]:
    return [package for package in packages if importlib.util.find_spec(package) is None]


def check_line(line: str) -> None:
    """A command that is not run: it is one all the same."""
    words = shlex.split(line, comments=True)
    if words[0] == "make":
        makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
        assert re.search(rf"^{words[1]}:", makefile, re.MULTILINE), line
    elif words[0] == "pip":
        known = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
        named = re.findall(r"askance\[([\w,]+)\]", line)
        assert all(extra in known for extras in named for extra in extras.split(",")), line
    elif words[0] == "askance":
        check_command(words[1:])
    if words[:3] == ["askance", "models", "pull"]:
        assert words[3] in {model.name for model in MODELS}, line


def check_command(words: list[str]) -> None:
    """Every option exists and has a value that it takes."""
    with click.Context(cli) as parent:
        name, command, rest = cli.resolve_command(parent, words)
        assert command is not None, words
        command.make_context(name or "", list(rest), parent=parent)


def check_python(text: str) -> None:
    """A snippet that cannot be run here: it is Python, and what it takes from askance is there."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "askance":
            place = ROOT.joinpath(*node.module.split(".")[1:])
            source = place.with_suffix(".py") if place.with_suffix(".py").exists() else place / "__init__.py"
            written = source.read_text(encoding="utf-8")
            for each in node.names:
                assert re.search(rf"\b{each.name}\b", written), f"{node.module} has no {each.name}"


def command_paths() -> Iterator[tuple[str, click.Command]]:
    with click.Context(cli) as context:
        for name in cli.list_commands(context):
            command = cli.get_command(context, name)
            assert command is not None
            yield name, command


@pytest.fixture(scope="module")
def server() -> Iterator[StandInServer]:
    with BatchServer(answer, looks=0) as server:
        yield server


@pytest.fixture(scope="module")
def follow(server: StandInServer, tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], None]:
    """Go through a page, once for all tests of it."""
    done: set[Path] = set()

    def go(page: Path) -> None:
        if page in done:
            return
        reader = Reader(tmp_path_factory.mktemp("reader"), server.url)
        for snippet in snippets(page):
            if snippet.file or snippet.kind in RUN:
                reader.follow(snippet)
        done.add(page)

    return go


@pytest.mark.timeout(900)  # a page is followed as a whole
@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_snippet_of_the_page_runs(page: Path, follow: Callable[[Path], None]):
    follow(page)


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("page", "needs"), NEEDS)
def test_the_snippets_that_need_packages_run(page: str, needs: str, follow: Callable[[Path], None]):
    if absent := missing(needs.split()):
        pytest.skip(f"{', '.join(absent)} is not installed")
    follow(ROOT / page)


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_fence_is_a_snippet_with_a_language(page: Path):
    text = page.read_text(encoding="utf-8")
    fences = len(re.findall(r"^\s*```", text, re.MULTILINE))
    assert fences == 2 * len(snippets(page)), (
        "a fence is indented, has no language, or has a title that is no file name"
    )
    for snippet in snippets(page):
        assert snippet.file or snippet.kind in (*RUN, "text", "json"), f"line {snippet.line}: {snippet.kind}"
        if snippet.kind == "json" and not snippet.file:
            json.loads(snippet.text)


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_option_that_the_page_names_exists(page: Path):
    known = {option for _, command in command_paths() for each in command.params for option in each.opts}
    known |= {option for _, command in command_paths() for each in command.params for option in each.secondary_opts}
    prose = SNIPPET.sub("", page.read_text(encoding="utf-8"))
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", re.sub(r"<!--.*?-->", "", prose)))
    assert named - known - FOREIGN_OPTIONS - {"--help", "--version"} == set()


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_link_to_a_file_leads_to_one(page: Path):
    prose = SNIPPET.sub("", page.read_text(encoding="utf-8"))
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", prose)
    assert [link for link in links if not (page.parent / link).exists()] == []


def headings(page: Path) -> set[str]:
    """Return the anchors of a page, as the pages' builder makes them of its headings."""
    titles = re.findall(r"^#+ (.+)$", SNIPPET.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    plain = [re.sub(r"[^\w\s-]", "", title.encode("ascii", "ignore").decode()).strip().lower() for title in titles]
    return {re.sub(r"[-\s]+", "-", title) for title in plain}


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_link_to_a_heading_leads_to_one(page: Path):
    prose = SNIPPET.sub("", page.read_text(encoding="utf-8"))
    links = re.findall(r"\]\((?!https?:)([^)#]*)#([^)]+)\)", prose)
    assert [
        (file, anchor) for file, anchor in links if anchor not in headings(page.parent / file if file else page)
    ] == []


def generated() -> ModuleType:
    """Return the hook that fills in the pages made from the code."""
    spec = importlib.util.spec_from_file_location("generated", ROOT / "docs" / "generated.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_marker_becomes_a_table_made_from_the_code():
    hook = generated()
    text = "\n".join(page.read_text(encoding="utf-8") for page in DOCS)
    markers = hook.MARKER.findall(text)
    assert {"settings", "names", "events"} < set(markers)
    filled = {marker: hook.filled(marker) for marker in markers}
    assert [name for name, table in filled.items() if table.count("\n") < 5] == []
    assert "`--max-notes`" in filled["settings"] and "::: askance.align" in filled["names"]
    assert "| `decision_reason` |" in filled["fields: memory.result_file.RunRecord"]
    assert "<!-- fields" not in hook.on_page_markdown(text) and "<!-- settings" not in hook.on_page_markdown(text)


LEAD = re.compile(r"^\s*(?:[-\d.]+ )?\*\*[^*]{1,40}\*\*:?\.?\s*")
"""Bold words that open a paragraph, e.g. **What.**"""
SENTENCE_END = re.compile(r"[.!?](?=(?:\*\*)?\)?\s+[A-Z\"`*\[(]|\s*$)")
MOST_LONG = 0.01
"""Share of paragraphs that may have more than four sentences."""


def paragraphs(page: Path) -> list[str]:
    """Return the paragraphs and list items of a page, without snippets, tables and headings."""
    prose = SNIPPET.sub("", page.read_text(encoding="utf-8"))
    parts = re.split(r"\n\s*\n|\n(?=- |\d+\. )", prose)
    return [each for each in parts if each.strip() and not each.lstrip().startswith(("|", "#", "<!--", "!["))]


def test_few_paragraphs_have_more_than_four_sentences():
    every = [(name, each) for name, page in zip(NAMES, PAGES, strict=True) for each in paragraphs(page)]
    quiet = re.compile(r"\]\([^)]*\)|`[^`]*`|\b(?:e\.g|App|eq|al|vs)\.")
    long = [
        (name, each[:80]) for name, each in every if len(SENTENCE_END.findall(quiet.sub("X", LEAD.sub("", each)))) > 4
    ]
    assert len(every) > 500
    assert len(long) <= MOST_LONG * len(every), long


def test_the_navigation_has_every_page_once():
    pages = re.findall(r"[\w/-]+\.md", yaml.safe_dump(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]))
    assert sorted(pages) == sorted(page.relative_to(ROOT / "docs").as_posix() for page in DOCS)


def test_the_readme_names_every_command():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [name for name, _ in command_paths() if f"`{name}`" not in text] == []


def test_the_page_names_the_version_of_promptfoo() -> None:
    pinned = re.search(r"^PROMPTFOO := promptfoo@(\S+)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert pinned and f"| promptfoo {pinned[1]} (" in (ROOT / "docs/how-to/other-tools.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("package", ["inspect-ai", "deepeval", "mlflow-skinny"])
def test_the_page_names_the_versions_that_the_exports_are_tested_in(package: str) -> None:
    pins = (ROOT / "constraints-bridges.txt").read_text(encoding="utf-8").splitlines()
    (version,) = (each.partition("==")[2] for each in pins if each.startswith(f"{package}=="))
    assert f"| {package} {version} |" in (ROOT / "docs/how-to/other-tools.md").read_text(encoding="utf-8")
