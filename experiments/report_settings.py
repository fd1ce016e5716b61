"""The settings of a run as its report shows them, and the command that runs the same again."""

from __future__ import annotations

import json
import re
import shlex
from typing import TYPE_CHECKING, Any

from ..optimizer.modes.mode import mode_of
from .report_view import file_name

if TYPE_CHECKING:
    from .report_data import RunData

_MODELS = (
    *("source", "target", "model", "generator", "judge", "checker"),
    *("note_taker", "deduplicator", "updater", "writer"),
)
_SECRET = re.compile(r"(?<=://)[^/@\s]+@|\?.*$")


def settings(data: RunData) -> list[tuple[str, str, bool]]:
    """(name, value, whether it differs from the default) of every setting that the result depends on."""
    defaults = _defaults(data)
    rows = []
    for name, value in data.config.items():
        if value is None or value == {}:
            continue
        changed = name in defaults and value != defaults[name]
        rows.append((name, public_text(name, value), changed or name in _MODELS))
    return rows


def repeat_command(data: RunData) -> str:
    """The command that runs the same again, from within the run's directory."""
    mode = mode_of(str(data.result["mode"]))
    lines = [["askance", str(data.result["mode"]), "inputs/examples.jsonl"]]
    lines += [["--checklist", "inputs/checklist.yaml"]] if data.checklist else []
    lines += [
        [f"--{name}", public_text(name, data.config[name])]
        for name in (*mode.models, *mode.settings)
        if data.config.get(name)
    ]
    prompts = [*mode.prompts, *(["judge_prompt"] if data.config.get("judge") else [])]
    lines += [["--" + name.replace("_", "-"), f"inputs/{name}.md"] for name in prompts]
    defaults = _defaults(data)
    for name, value in data.config.items():
        if name in defaults and value != defaults[name] and value is not None and name not in ("field", "limit"):
            lines.append(["--" + name.replace("_", "-"), *(public_text(name, each) for each in _listed(value))])
    return " \\\n  ".join(shlex.join(line) for line in [*lines, ["--run", "../again"]])


def _defaults(data: RunData) -> dict[str, Any]:
    """The settings of the run's mode where nothing is said."""
    options = mode_of(str(data.result["mode"])).options
    return options.model_validate({}).model_dump(mode="json")


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def public_text(name: str, value: Any) -> str:
    """A setting as text, without what may be secret in an address."""
    text = _text(value)
    if name == "checker":
        return file_name(text)
    return _SECRET.sub("", text) if name == "api_base" else text


def _text(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return " ".join(_text(each) for each in value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
