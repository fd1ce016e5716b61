"""Imports go down only, and importing is cheap."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import askance
from askance import bridges
from askance.prompts.errors import MissingExtraError

ROOT = Path(askance.__file__).resolve().parent
FLOORS: dict[str, float] = {
    "prompts": 0,
    "settings": 0.5,
    "stats": 1,
    "models": 1,
    "setting_types": 1.5,
    "memory": 2,
    "agents": 3,
    "evaluation": 4,
    "optimizer": 5,
    "training": 5.5,
    "report": 6,
    "labelling": 6,
    "workbench": 7,
    "runs": 7,
    "run_estimate": 7,
    "bridges": 8,
    "experiments": 9,
}
TOP = 10
"""Above all rooms: the commands and the command line. The test doubles stand on the models; ``settings``,
``setting_types``, ``runs`` and ``run_estimate`` are files."""
HEAVY = (
    "torch",
    "transformers",
    "litellm",
    "dspy",
    "numpy",
    "scipy",
    "sklearn",
    "aiohttp",
    "rich",
    "onnxruntime",
    "xllamacpp",
    "networkx",
    "mlflow",
)


def modules() -> list[Path]:
    own = [*ROOT.glob("*.py")]
    for room in (*FLOORS, "commands", "testing"):
        own += (ROOT / room).rglob("*.py")
    return own


def floor(parts: tuple[str, ...]) -> float:
    if not parts:
        return -1  # the package itself: its names are imported when they are used
    return 1.5 if parts[0] == "testing" else FLOORS.get(parts[0], TOP)


def name_of(path: Path) -> tuple[str, ...]:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


def imports(path: Path) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Line and module path of everything that is imported from this package, also inside functions."""
    package = name_of(path) if path.name == "__init__.py" else name_of(path)[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) - node.level + 1]
            module = base + tuple((node.module or "").split(".")) if node.module else base
            for alias in node.names:
                inner = ROOT.joinpath(*module, alias.name)
                is_module = inner.with_suffix(".py").is_file() or inner.is_dir()
                yield node.lineno, (*module, alias.name) if is_module else module
        elif (isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "askance") or (
            isinstance(node, ast.Import) and any(each.name.split(".")[0] == "askance" for each in node.names)
        ):
            yield node.lineno, ("absolute",)


def test_the_whole_house_is_looked_at() -> None:
    rooms = {name_of(path)[0] for path in modules() if name_of(path)}
    assert rooms >= {*FLOORS, "commands", "cli", "testing"}


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_inside_the_package_are_relative_and_go_down(path: Path) -> None:
    here = name_of(path)
    for line, module in imports(path):
        assert module != ("absolute",), f"{path}:{line}: imports inside the package are relative"
        if not here or (module and module[0] == here[0]):
            continue
        assert floor(module) <= floor(here), (
            f"{path}:{line}: {'.'.join(here)} imports {'.'.join(module)}, which is above"
        )
        if floor(here) < TOP:
            assert floor(module) < floor(here), f"{path}:{line}: rooms on one floor do not import each other"


def test_no_module_imports_itself_through_others() -> None:
    names = {name_of(path) for path in modules()}
    graph = {name_of(path): {module for _, module in imports(path) if module in names} for path in modules()}
    done: set[tuple[str, ...]] = set()

    def visit(module: tuple[str, ...], trail: tuple[tuple[str, ...], ...]) -> None:
        assert module not in trail, " → ".join(".".join(each) for each in (*trail, module))
        if module in done:
            return
        for other in graph[module] - {module, ()}:  # the package's own names are imported when they are used
            visit(other, (*trail, module))
        done.add(module)

    for module in graph:
        if module:
            visit(module, ())


def loaded_after(program: str) -> set[str]:
    show = "\nimport sys\nprint('LOADED', *sys.modules)"
    out = subprocess.run([sys.executable, "-c", program + show], capture_output=True, text=True, check=True).stdout
    return set(out.rpartition("LOADED")[2].split())


HELP = """
import sys
from askance.cli import main
try:
    main({arguments!r})
except SystemExit:
    pass
"""


@pytest.mark.parametrize(
    "program",
    [
        "import askance",
        "import askance.bridges",
        HELP.format(arguments=["--help"]),
        HELP.format(arguments=["--version"]),
    ],
    ids=["import", "bridges", "help", "version"],
)
def test_importing_and_help_load_nothing_heavy(program: str) -> None:
    loaded = loaded_after(program)
    assert "askance" in loaded
    assert not loaded & set(HEAVY)


@pytest.mark.parametrize("command", ["migrate", "evaluate", "questions", "resume", "show"])
def test_the_help_of_a_command_loads_no_model_library(command: str) -> None:
    assert not loaded_after(HELP.format(arguments=[command, "--help"])) & (set(HEAVY) - {"numpy", "rich"})


def test_every_public_name_can_be_had() -> None:
    for name in askance.__all__:
        assert getattr(askance, name) is not None
    assert set(askance.__all__) <= set(dir(askance))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = askance.nonsense


@pytest.mark.parametrize("name", bridges.__all__)
def test_every_name_of_a_bridge_is_had_or_says_which_extra_brings_it(name: str) -> None:
    page = (ROOT / "docs/how-to/other-tools.md").read_text(encoding="utf-8")
    assert f"`{name}`" in page.partition("```bash")[0] and f"`{name}`" in (bridges.__doc__ or "")
    said = ""
    try:
        found = getattr(bridges, name)
    except MissingExtraError as error:
        said = str(error)
    assert "pip install 'askance[" in said or (callable(found) and found.__doc__)


def test_every_public_name_can_be_had_without_what_an_extra_brings() -> None:
    brought = ("scipy", "sklearn", "torch", "transformers", "pandas", "pyarrow", "onnxruntime", "litellm")
    loaded_after(f"import sys\nsys.modules |= dict.fromkeys({brought})\nfrom askance import *")


def test_an_unknown_name_of_a_bridge_is_an_attribute_error() -> None:
    assert set(bridges.__all__) <= set(dir(bridges))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = bridges.nonsense
