"""Whether models can be resolved, have their keys, and their server answers; nothing is asked of a model."""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ...models.direct import default_base_url, shown_address
from ...models.resolve import Models
from ...models.session import run_sync
from ...prompts.errors import AskanceError, did_you_mean
from .checked import Checked
from .packages import extra_problem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
