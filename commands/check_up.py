"""Whether askance can work here: packages, models, disk and store, each looked at without buying anything."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import sys
import tempfile
import tomllib
from dataclasses import asdict, dataclass
from functools import cache
from importlib import import_module, metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from .. import __version__
from ..memory.verdict_store import SCHEMA_VERSION, store_path
from ..models.direct import default_base_url, shown_address
from ..models.files import cache_directory, known_identity
from ..models.registry import MODELS, RegisteredModel
from ..models.resolve import Models
from ..models.session import run_sync
from ..prompts.errors import AskanceError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


State = Literal["ok", "missing", "broken"]


@dataclass(frozen=True, slots=True)
class Checked:
    """One thing, how it is, and what to do."""

    area: str
    """Which group of lines it belongs to: ``python``, ``extras``, ``models``, ``embedded models``, ``files``."""
    name: str
    state: State
    said: str
    """What was found, as a sentence without a full stop. Never holds a key."""
    do: str | None = None
    """What to do about it; None where there is nothing to do."""
    needed: bool = True
    """Whether what was asked for cannot work without it."""

    @property
    def fails(self) -> bool:
        """Whether it keeps what was asked for from working."""
        return self.needed and self.state != "ok"

    def to_dict(self) -> dict[str, Any]:
        """As ``--json`` prints it."""
        return asdict(self)


PYTHON = (3, 11)
NOT_SHOWN = ("all", "dev", "docs")
"""Extras that only join others, or serve those who work on askance itself."""

_REQUIREMENT = re.compile(r"\s*([\w.-]+)\s*(?:\[([^\]]*)\])?\s*\(?([^;)]*)\)?\s*(?:;(.*))?")
_SPECIFIER = re.compile(r"\s*(>=|<=|==|!=|<|>)\s*(\d+(?:\.\d+)*)")
_EXTRA = re.compile(r"""extra\s*==\s*['"]([\w.-]+)['"]""")


@dataclass(frozen=True, slots=True)
class Requirement:
    """A package with the versions that are allowed; ``extras`` of its own."""

    name: str
    specifiers: str
    extras: tuple[str, ...] = ()

    def problem(self) -> tuple[str, bool] | None:
        """What is wrong with what is installed, or the name of what is not; and whether it is there. None: all is well."""
        try:
            found = metadata.version(self.name)
        except metadata.PackageNotFoundError:
            return self.name, False
        if not allows(self.specifiers, found):
            return f"{self.name} {found} is installed, and {self.specifiers.strip()} is needed", True
        return None


def check_packages() -> list[Checked]:
    """Python, askance, what it needs, and each extra with the command that installs it."""
    version = ".".join(map(str, sys.version_info[:3]))
    wanted = ".".join(map(str, PYTHON))
    old = sys.version_info < PYTHON
    lines = [
        Checked("python", "Python", "broken", f"{version} is too old", f"install Python {wanted} or newer")
        if old
        else Checked("python", "Python", "ok", version)
    ]
    declared = declared_requirements()
    if declared is None:
        said = f"{__version__}, but without the record of what it needs"
        return [*lines, Checked("python", "askance", "broken", said, "install it: pip install askance")]
    problems = [problem for each in declared[""] if (problem := each.problem())]
    said = f"{__version__}, with all {len(declared[''])} packages that it needs"
    if problems:
        said = f"{__version__}: {_join(problems)}"
    state = Checked("python", "askance", "ok", said)
    if problems:
        state = Checked("python", "askance", "broken", said, "install it again: pip install --upgrade askance")
    return [*lines, state, *(_extra(name) for name in declared if name and name not in NOT_SHOWN)]


def extra_problem(extra: str) -> str | None:
    """What keeps an extra from working, with the command that mends it; None where it is whole."""
    checked = _extra(extra)
    return None if checked.state == "ok" else f"{checked.said}; {checked.do}"


def allows(specifiers: str, version: str) -> bool:
    """Whether a version is within specifiers such as ``>=1.2,<2,!=1.5``; only release numbers are compared."""
    found = _release(version)
    for operator, number in _SPECIFIER.findall(specifiers):
        other = _release(number)
        width = max(len(found), len(other))
        left, right = (each + (0,) * (width - len(each)) for each in (found, other))
        held = {">=": left >= right, "<=": left <= right, "==": left == right, "!=": left != right}
        if not (held | {"<": left < right, ">": left > right})[operator]:
            return False
    return True


@cache
def declared_requirements() -> dict[str, list[Requirement]] | None:
    """What askance needs by extra (``""``: always); None where no record of it is found.

    The record is that of the installed package or, in a source tree, ``pyproject.toml``.
    """
    source = Path(__file__).resolve().parents[1] / "pyproject.toml"
    if source.is_file():
        project = tomllib.loads(source.read_text(encoding="utf-8"))["project"]
        texts = {"": project["dependencies"], **project["optional-dependencies"]}
        return {extra: [_requirement(text)[0] for text in lines] for extra, lines in texts.items()}
    try:
        found = metadata.distribution("askance")
    except metadata.PackageNotFoundError:
        return None
    declared: dict[str, list[Requirement]] = {"": []}
    declared |= {extra: [] for extra in found.metadata.get_all("Provides-Extra") or []}
    for text in found.requires or []:
        requirement, extra = _requirement(text)
        declared.setdefault(extra, []).append(requirement)
    return declared


def _requirement(text: str) -> tuple[Requirement, str]:
    match = _REQUIREMENT.fullmatch(text)
    assert match is not None, f"no requirement: {text}"
    name, extras, specifiers, marker = match.groups()
    extra = _EXTRA.search(marker or "")
    own = tuple(each.strip() for each in (extras or "").split(",") if each.strip())
    return Requirement(name, specifiers, own), extra[1] if extra else ""


def _extra(name: str) -> Checked:
    problems = [problem for each in _expanded(name) if (problem := each.problem())]
    if not problems:
        return Checked("extras", name, "ok", "installed", needed=False)
    broken = any(there for _, there in problems)
    command = f"pip install 'askance[{name}]'"
    return Checked("extras", name, "broken" if broken else "missing", _join(problems), command, needed=False)


def _expanded(extra: str) -> Iterator[Requirement]:
    """The packages of an extra, and of the extras that it names in turn."""
    for each in (declared_requirements() or {}).get(extra, []):
        if each.name == "askance":
            for other in each.extras:
                yield from _expanded(other)
        else:
            yield each


def _join(problems: Sequence[tuple[str, bool]]) -> str:
    wrong = dict.fromkeys(text for text, there in problems if there)
    missing = dict.fromkeys(text for text, there in problems if not there)
    return "; ".join([*wrong, *([f"not installed: {', '.join(missing)}"] if missing else [])])


def _release(version: str) -> tuple[int, ...]:
    match = re.match(r"\d+(?:\.\d+)*", version.rpartition("!")[2])
    return tuple(int(part) for part in match[0].split(".")) if match else ()


MODEL_SETTINGS = (
    *("model", "source", "target", "generator", "judge"),
    *("note_taker", "deduplicator", "updater", "writer", "rater", "proposer"),
)
"""Settings of a configuration file that name a model."""
SECONDS = 5.0
"""How long a server may take to list its models."""


def models_of_config(values: Mapping[str, Any]) -> list[str]:
    """The models that a configuration names, each once."""
    named = [values.get(name) for name in MODEL_SETTINGS]
    named += values.get("panel") or []
    return list(dict.fromkeys(each for each in named if isinstance(each, str) and each))


def check_models(names: Sequence[str], *, api_base: str | None = None, connect: bool = True) -> list[Checked]:
    """Each model, and the server of ``openai/`` names.

    Args:
        names: ``provider/model``, each once.
        api_base: Address of the server of ``openai/`` names.
        connect: Whether to ask that server for its list of models.
    """
    return run_sync(_check(list(dict.fromkeys(names)), api_base, connect))


async def _check(names: Sequence[str], api_base: str | None, connect: bool) -> list[Checked]:
    lines = []
    async with Models(api_base=api_base) as models:
        for name in names:
            try:
                models.get(name)
            except AskanceError as error:
                lines.append(Checked("models", name, "broken", str(error).rstrip(".")))
                continue
            lines.append(_resolved(name))
    direct = [name.partition("/")[2] for name in names if name.startswith("openai/")]
    if direct and connect:
        lines += await _server(api_base or default_base_url(), direct)
    return lines


def _resolved(name: str) -> Checked:
    """A model whose name is known: can it be reached as well?"""
    provider = name.partition("/")[0]
    if provider == "local":
        problem = extra_problem("local")
        if problem:
            return Checked("models", name, "broken", "its file is here, its runtime is not", problem)
        return Checked("models", name, "ok", "its file is here and its hash is right")
    if provider == "openai":
        key = "is set" if os.environ.get("OPENAI_API_KEY", "").strip() else "is not set, which many servers allow"
        return Checked("models", name, "ok", f"OPENAI_API_KEY {key}")
    missing = import_module("litellm").validate_environment(model=name).get("missing_keys") or []
    if missing:
        return Checked(
            "models", name, "missing", f"LiteLLM looks for {', '.join(missing)}: not set", "set it, or write it to .env"
        )
    return Checked("models", name, "ok", "the provider is known and its key is set")


async def _server(base: str, wanted: Sequence[str]) -> list[Checked]:
    """Whether the server is there, takes the key, and lists the models."""
    import aiohttp

    key = os.environ.get("OPENAI_API_KEY", "").strip()
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    shown = shown_address(base)
    url = f"{base.rstrip('/')}/models"
    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=SECONDS), headers=headers) as session,
            session.get(url) as reply,
        ):
            status = reply.status
            listed = _listed(await reply.json(content_type=None)) if status == 200 else []
    except (TimeoutError, aiohttp.ClientError, ValueError) as error:
        said = f"does not answer ({type(error).__name__})"
        return [Checked("models", shown, "broken", said, "start it, or correct --api-base or OPENAI_BASE_URL")]
    if status in (401, 403):
        return [Checked("models", shown, "broken", f"refuses the key (HTTP {status})", "correct OPENAI_API_KEY")]
    if not listed:
        return [Checked("models", shown, "ok", f"answers (HTTP {status}), but does not say which models it has")]
    lines = [Checked("models", shown, "ok", f"answers and lists {len(listed)} models")]
    for name in wanted:
        if name not in listed:
            said = f"the server does not list it; many take any name.{did_you_mean(name, listed)}".rstrip(".")
            lines.append(Checked("models", f"openai/{name}", "missing", said, needed=False))
    return lines


def _listed(reply: Any) -> list[str]:
    """The names in a list of models; none where the reply has another form."""
    rows = reply.get("data") if isinstance(reply, dict) else None
    return [str(row["id"]) for row in rows if isinstance(row, dict) and "id" in row] if isinstance(rows, list) else []


LEAST_FREE = 200e6
"""Bytes below which a disk counts as full."""
CHECKED_WHOLE = 200e6
"""Bytes up to which the store is read whole to find damage."""


def check_files() -> list[Checked]:
    """Everything on disk."""
    cache = cache_directory()
    lines = [_folder("cache", cache, "set ASKANCE_CACHE to another folder")]
    lines.append(_folder("here", Path.cwd(), "change to a folder that can be written to"))
    lines.append(check_store(store_path()))
    return lines + [check_embedded(model, cache) for model in MODELS]


def check_store(path: Path) -> Checked:
    """Whether the answers that were bought before can be read; nothing is written."""
    if not path.exists():
        return Checked("files", "verdict cache", "ok", f"{path}: none yet, it is made with the first answer")
    try:
        size = path.stat().st_size
        db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=5)
        try:
            version = db.execute("PRAGMA user_version").fetchone()[0]
            count = db.execute("SELECT count(*) FROM answers").fetchone()[0]
            whole = db.execute("PRAGMA quick_check(1)").fetchone()[0] if size <= CHECKED_WHOLE else "ok"
        finally:
            db.close()
    except (sqlite3.Error, OSError) as error:
        return _bad_store(f"{path}: cannot be read ({error})")
    if version > SCHEMA_VERSION:
        said = f"{path}: written by a newer askance (schema {version})"
        return Checked("files", "verdict cache", "broken", said, "update askance")
    if whole != "ok":
        return _bad_store(f"{path}: damaged ({whole})")
    return Checked("files", "verdict cache", "ok", f"{path}: {count:,} answers, {_size(size)}")


def check_embedded(model: RegisteredModel, cache: Path) -> Checked:
    """Whether an embedded model's file is there with the right size and, where it was hashed before, the right hash."""
    path = cache / "models" / model.file
    again = f"fetch it: askance models pull {model.name}"
    try:
        size = path.stat().st_size
    except OSError:
        return Checked(
            "embedded models", model.name, "missing", f"not here ({_size(model.bytes)})", again, needed=False
        )
    if size != model.bytes:
        said = f"{path} has {size:,} bytes and should have {model.bytes:,}"
        return Checked("embedded models", model.name, "broken", said, again, needed=False)
    known = known_identity(path)
    if known is None:
        said = f"{path}: size is right, the hash is checked when it is used first"
        return Checked("embedded models", model.name, "ok", said, needed=False)
    if known != model.sha256:
        said = f"{path}: its hash is not that of the model"
        return Checked("embedded models", model.name, "broken", said, again, needed=False)
    return Checked("embedded models", model.name, "ok", f"{path}: size and hash are right", needed=False)


def _bad_store(said: str) -> Checked:
    return Checked("files", "verdict cache", "broken", said, "move it away; answers are then bought again")


def _folder(name: str, folder: Path, do: str) -> Checked:
    """Whether files can be made in a folder (or in the one it will be made in), and how much room there is."""
    there = next(each for each in (folder, *folder.parents) if each.exists())
    try:
        with tempfile.TemporaryFile(dir=there) as file:
            file.write(b"askance")
        free = shutil.disk_usage(there).free
    except OSError as error:
        return Checked("files", name, "broken", f"{folder}: cannot be written ({error.strerror or error})", do)
    if free < LEAST_FREE:
        return Checked("files", name, "broken", f"{folder}: only {_size(free)} are free", f"make room, or {do}")
    return Checked("files", name, "ok", f"{folder}: can be written, {_size(free)} free")


def _size(count: float) -> str:
    return f"{count / 1e9:,.1f} GB" if count >= 1e9 else f"{count / 1e6:,.1f} MB"


def check_up(models: Sequence[str] = (), *, api_base: str | None = None, connect: bool = True) -> list[Checked]:
    """Look at everything.

    Args:
        models: Names of the models that must work, as ``provider/model``.
        api_base: Address of the server of ``openai/`` names.
        connect: Whether to ask that server for its list of models, which costs nothing.
    """
    return [*check_packages(), *check_models(models, api_base=api_base, connect=connect), *check_files()]
