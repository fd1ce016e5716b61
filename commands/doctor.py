"""``askance doctor``: check whether packages, models, disk and store let askance work here; nothing is bought."""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial
from importlib import import_module, metadata
from pathlib import Path
from typing import Any, Literal

import click
from packaging.requirements import Requirement

from .. import __version__
from ..memory.postgres_store import PostgresAddress
from ..memory.verdict_store import SCHEMA_VERSION, Place, open_store, store_path
from ..models.base import Model
from ..models.direct import REDIRECTS, default_base_url, shown_address
from ..models.embedded.registry import EMBEDDED, MODELS, RegisteredModel
from ..models.event_loops import run_sync
from ..models.files import cache_directory, known_identity
from ..models.named import NamedModel, read_named
from ..models.networks import certificate_problem, proxy_for, tls_context
from ..models.resolve import Models
from ..prompts.errors import AskanceError, InputError, did_you_mean
from ..settings import MODEL, load_config
from .command_options import load_dotenv, names_of, naming
from .output import echo_json
from .terminal import echo

State = Literal["ok", "missing", "broken"]
NOT_SHOWN = ("all", "dev", "docs")
"""Extras that only combine others, or that only developers of askance need."""
SECONDS = 5.0
"""Most seconds for a server to list its models."""
LEAST_FREE = 200e6
"""Bytes below which a disk counts as full."""
CHECKED_WHOLE = 200e6
"""Most bytes of a store that is read as a whole to find damage."""


@dataclass(frozen=True, slots=True)
class Checked:
    """One checked thing: its state and the advice."""

    area: str
    """Group of lines: ``python``, ``extras``, ``models``, ``embedded models`` or ``files``."""
    name: str
    state: State
    said: str
    """The finding, as a sentence without a full stop. Never holds a key."""
    do: str | None = None
    """Advice; None if there is nothing to do."""
    needed: bool = True
    """Whether the requested work needs this thing."""

    @property
    def fails(self) -> bool:
        """Whether the thing is needed and does not work."""
        return self.needed and self.state != "ok"

    def to_dict(self) -> dict[str, Any]:
        """Return the line as JSON."""
        return asdict(self)


def check_packages() -> list[Checked]:
    """Check Python, askance, its packages, and each extra, with the command that installs it."""
    lines = [Checked("python", "Python", "ok", ".".join(map(str, sys.version_info[:3])))]
    declared = declared_requirements()
    if declared is None:
        finding = f"{__version__}, but without the record of what it needs"
        return [*lines, Checked("python", "askance", "broken", finding, "install it: pip install askance")]
    if problems := [problem for needed in declared[""] if (problem := _problem(needed))]:
        advice = "install it again: pip install --upgrade askance"
        lines.append(Checked("python", "askance", "broken", f"{__version__}: {_join(problems)}", advice))
    else:
        finding = f"{__version__}, with all {len(declared[''])} packages that it needs"
        lines.append(Checked("python", "askance", "ok", finding))
    return [*lines, *(_extra(name) for name in declared if name and name not in NOT_SHOWN)]


@cache
def declared_requirements() -> dict[str, list[Requirement]] | None:
    """Return the declared requirements by extra (``""``: always needed); None if no file declares them."""
    source = Path(__file__).resolve().parents[1] / "pyproject.toml"
    if source.is_file():
        project = tomllib.loads(source.read_text(encoding="utf-8"))["project"]
        texts = {"": project["dependencies"], **project["optional-dependencies"]}
        return {extra: [Requirement(text) for text in lines] for extra, lines in texts.items()}
    try:
        distribution = metadata.distribution("askance")
    except metadata.PackageNotFoundError:
        return None
    declared: dict[str, list[Requirement]] = {"": []}
    declared |= {extra: [] for extra in distribution.metadata.get_all("Provides-Extra") or []}
    for requirement in map(Requirement, distribution.requires or []):
        for extra in [""] if requirement.marker is None or requirement.marker.evaluate({"extra": ""}) else declared:
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                declared[extra].append(requirement)
    return declared


def _problem(needed: Requirement) -> tuple[str, bool] | None:
    """Return a package's problem, and whether the package is installed at all; None if there is no problem."""
    try:
        version = metadata.version(needed.name)
    except metadata.PackageNotFoundError:
        return needed.name, False
    if needed.specifier.contains(version, prereleases=True):
        return None
    return f"{needed.name} {version} is installed, and {needed.specifier} is needed", True


def _extra(name: str) -> Checked:
    problems = [problem for each in _expanded(name) if (problem := _problem(each))]
    if not problems:
        return Checked("extras", name, "ok", "installed", needed=False)
    broken = any(there for _, there in problems)
    command = f"pip install 'askance[{name}]'"
    return Checked("extras", name, "broken" if broken else "missing", _join(problems), command, needed=False)


def _expanded(extra: str) -> Iterator[Requirement]:
    """Yield the packages of an extra, and of the extras that it names in turn."""
    for requirement in (declared_requirements() or {}).get(extra, []):
        if requirement.name == "askance":
            for other in requirement.extras:
                yield from _expanded(other)
        else:
            yield requirement


def _join(problems: Sequence[tuple[str, bool]]) -> str:
    wrong = dict.fromkeys(text for text, there in problems if there)
    missing = dict.fromkeys(text for text, there in problems if not there)
    return "; ".join([*wrong, *([f"not installed: {', '.join(missing)}"] if missing else [])])


def models_of_config(values: Mapping[str, Any]) -> list[str]:
    """List the models that a configuration names, each once."""
    named: list[Any] = []
    for name in naming(MODEL):
        value = values.get(name)
        named += value if isinstance(value, list) else [value]
    panel = values.get("panel")
    named += names_of(panel) if isinstance(panel, (str, list)) else []
    return list(dict.fromkeys(each.strip() for each in named if isinstance(each, str) and each.strip()))


def check_models(
    names: Sequence[str],
    *,
    api_base: str | None = None,
    connect: bool = True,
    named: Mapping[str, NamedModel] | None = None,
) -> list[Checked]:
    """Check models (``provider/model``, or names in ``named``). With ``connect``, also ask the servers of ``openai/``
    models, by default at ``api_base``, for their lists of models."""
    return run_sync(_check(list(dict.fromkeys(names)), api_base, connect, named or {}))


async def _check(
    names: Sequence[str], api_base: str | None, connect: bool, named: Mapping[str, NamedModel]
) -> list[Checked]:
    lines: list[Checked] = []
    direct: dict[tuple[str, str], list[str]] = {}
    async with Models(api_base=api_base, named=named) as models:
        for name in names:
            try:
                model = models.get(name)
            except AskanceError as error:
                lines.append(Checked("models", name, "broken", str(error).rstrip(".")))
                continue
            known = named.get(name) or NamedModel.model_construct(model=name)
            variable = known.api_key_env or "OPENAI_API_KEY"
            lines.append(_resolved(name, model, known.model, variable))
            if known.model.startswith("openai/"):
                base = known.api_base or api_base or default_base_url()
                direct.setdefault((base, variable), []).append(known.model.removeprefix("openai/"))
    for (base, variable), wanted in direct.items() if connect else ():
        lines += await _server(base, wanted, variable)
    return lines


def _resolved(name: str, model: Model, what: str, variable: str) -> Checked:
    """Check whether a model with a known name is ready for use. The environment ``variable`` has its key."""
    provider, checked = what.partition("/")[0], partial(Checked, "models", name)
    if provider in EMBEDDED:
        if (extra := _extra(provider)).state != "ok":
            return checked("broken", "its file is here, its runtime is not", f"{extra.said}; {extra.do}")
        choice = getattr(model, "choice", None)  # None for llama.cpp, which chooses by itself
        untried = "the precision for this processor is tried when it is first used, which takes some seconds"
        precision = "" if choice is None else f"; {choice() or untried}"
        return checked("ok", f"its file is here and its hash is right{precision}")
    if provider == "openai":
        key = "is set" if os.environ.get(variable, "").strip() else "is not set, which many servers allow"
        return checked("ok", f"{variable} {key}")
    if variable != "OPENAI_API_KEY":
        return checked("ok", f"the provider is known and {variable} is set")
    if missing := import_module("litellm").validate_environment(model=what).get("missing_keys"):
        said = f"LiteLLM looks for {', '.join(missing)}: not set"
        return checked("missing", said, "set it, or write it to .env")
    return checked("ok", "the provider is known and its key is set")


async def _server(base: str, wanted: Sequence[str], variable: str = "OPENAI_API_KEY") -> list[Checked]:
    """Check whether the server answers, accepts the key in the environment ``variable``, and lists the models."""
    import aiohttp

    key = os.environ.get(variable, "").strip()
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    shown = shown_address(base)
    checked = partial(Checked, "models", shown)
    url = f"{base.rstrip('/')}/models"
    try:
        async with (
            aiohttp.ClientSession(
                timeout=aiohttp.ClientTimeout(total=SECONDS),
                headers=headers,
                connector=aiohttp.TCPConnector(ssl=tls_context()),
            ) as session,
            session.get(url, allow_redirects=False, proxy=proxy_for(url)) as reply,
        ):
            status = reply.status
            listed = _listed(await reply.json(content_type=None)) if status == 200 else []
    except (TimeoutError, aiohttp.ClientError, ValueError) as error:
        if problem := certificate_problem(str(error)):
            return [checked("broken", problem.partition(". ")[0], "set SSL_CERT_FILE")]
        finding = f"does not answer ({type(error).__name__})"
        return [checked("broken", finding, "start it, or correct --api-base or OPENAI_BASE_URL")]
    if status in (401, 403):
        return [checked("broken", f"refuses the key (HTTP {status})", f"correct {variable}")]
    if status in REDIRECTS:
        redirection = "redirects to another address, where no text is sent"
        return [checked("broken", f"{redirection} (HTTP {status})", "correct --api-base or OPENAI_BASE_URL")]
    if status >= 500:
        finding = f"fails (HTTP {status}), as while it loads a model"
        return [checked("broken", finding, "wait until it is ready, or look into its log")]
    if not listed:
        finding = f"answers (HTTP {status}), but does not say which models it has"
        ends = None if url.endswith("/v1/models") else "if it knows no model: an address ends with /v1 at most servers"
        return [checked("ok", finding, ends)]
    lines = [checked("ok", f"answers and lists {len(listed)} models")]
    for name in wanted:
        if name not in listed:
            finding = f"the server does not list it; many take any name.{did_you_mean(name, listed)}".rstrip(".")
            lines.append(Checked("models", f"openai/{name}", "missing", finding, needed=False))
    return lines


def _listed(reply: Any) -> list[str]:
    """Return the names in a server's list of models; none if the reply has another form."""
    rows = reply.get("data") if isinstance(reply, dict) else None
    return [str(row["id"]) for row in rows if isinstance(row, dict) and "id" in row] if isinstance(rows, list) else []


def check_files() -> list[Checked]:
    """Check the folders, the store and the embedded models on disk."""
    cache = cache_directory()
    return [
        _folder("cache", cache, "set ASKANCE_CACHE to another folder"),
        _folder("here", Path.cwd(), "change to a folder that can be written to"),
        check_store(store_path()),
        *(check_embedded(model, cache) for model in MODELS),
    ]


def check_store(path: Place) -> Checked:
    """Check whether the store of bought answers can be read; nothing is written."""
    checked, bad = partial(Checked, "files", "verdict cache"), "move it away; answers are then bought again"
    if isinstance(path, PostgresAddress):
        try:
            with open_store(path) as store:
                return checked("ok", f"{path}: {len(store):,} answers")
        except AskanceError as error:
            return checked("broken", str(error).rstrip("."), "start the server, or correct ASKANCE_STORE")
    if not path.exists():
        return checked("ok", f"{path}: none yet, it is made with the first answer")
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
        return checked("broken", f"{path}: cannot be read ({error})", bad)
    if version > SCHEMA_VERSION:
        return checked("broken", f"{path}: written by a newer askance (schema {version})", "update askance")
    if whole != "ok":
        return checked("broken", f"{path}: damaged ({whole})", bad)
    return checked("ok", f"{path}: {count:,} answers, {_size(size)}")


def check_embedded(model: RegisteredModel, cache: Path) -> Checked:
    """Check an embedded model's file: its size and, if it was hashed before, its hash."""
    path = cache / "models" / model.file
    checked = partial(Checked, "embedded models", model.name, needed=False)
    advice = f"fetch it: askance models pull {model.name}"
    try:
        size = path.stat().st_size
    except OSError:
        return checked("missing", f"not here ({_size(model.bytes)})", advice)
    if size != model.bytes:
        return checked("broken", f"{path} has {size:,} bytes and should have {model.bytes:,}", advice)
    known = known_identity(path)
    if known is None:
        return checked("ok", f"{path}: size is right, the hash is checked when it is used first")
    if known != model.sha256:
        return checked("broken", f"{path}: its hash is not that of the model", advice)
    return checked("ok", f"{path}: size and hash are right")


def _folder(name: str, folder: Path, do: str) -> Checked:
    """Check whether files can be made in a folder (or in the folder above a missing one), and the free space."""
    existing_folder = next(each for each in (folder, *folder.parents) if each.exists())
    try:
        with tempfile.TemporaryFile(dir=existing_folder) as file:
            file.write(b"askance")
        free_bytes = shutil.disk_usage(existing_folder).free
    except OSError as error:
        return Checked("files", name, "broken", f"{folder}: cannot be written ({error.strerror or error})", do)
    if free_bytes < LEAST_FREE:
        return Checked("files", name, "broken", f"{folder}: only {_size(free_bytes)} are free", f"make room, or {do}")
    return Checked("files", name, "ok", f"{folder}: can be written, {_size(free_bytes)} free")


def _size(count: float) -> str:
    return f"{count / 1e9:,.1f} GB" if count >= 1e9 else f"{count / 1e6:,.1f} MB"


@click.command(name="doctor")
@click.option("--model", "models", multiple=True, help="A model that must work, as provider/model; may be repeated.")
@click.option("--config", type=click.Path(path_type=Path), help="YAML file; the models that it names must work.")
@click.option("--api-base", help="Address of an OpenAI-compatible server, for openai/NAME.")
@click.option("--offline", is_flag=True, help="Do not ask that server whether it is there.")
@click.option("--json", "as_json", is_flag=True, help="Machine-readable result on standard output.")
def command(models: tuple[str, ...], config: Path | None, api_base: str | None, offline: bool, as_json: bool) -> int:
    """Check packages, models, keys, disk and cache, and say what to do. Buys nothing and shows no key.

    Without --model and --config no model is looked at but the embedded ones. Exit code 0: all that is needed works.
    """
    load_dotenv()
    values = load_config(config) if config else {}
    wanted = list(models) or models_of_config(values)
    try:
        named = read_named(values.get("models") or {})
    except ValueError as error:
        raise InputError(f"{config}: models: {error}") from None
    models_found = check_models(wanted, api_base=api_base or values.get("api_base"), connect=not offline, named=named)
    lines = [*check_packages(), *models_found, *check_files()]
    failed = [line for line in lines if line.fails]
    if as_json:
        echo_json({"ok": not failed, "checked": [line.to_dict() for line in lines]})
        return int(bool(failed))
    _print(lines)
    if not wanted:
        echo("\nNo model was named. To check yours: askance doctor --model provider/model, or --config FILE")
    else:
        echo(f"\nWhat a model can do, for a handful of calls: askance models check {wanted[0]}")
    if failed:
        echo(f"\nNeeded and not working: {', '.join(line.name for line in failed)}.")
    return int(bool(failed))


def _print(lines: list[Checked]) -> None:
    width = max(len(line.name) for line in lines)
    area = None
    for line in lines:
        if line.area != area:
            echo(f"{'' if area is None else chr(10)}{line.area}")
            area = line.area
        aside = f"; {line.do}" if line.do and not line.fails else ""
        echo(f"  {line.state:<8}{line.name:<{width}}  {line.said}{aside}")
        if line.do and line.fails:
            echo(f"  {'':<8}{'':<{width}}  {line.do}")
