"""``askance models``: list the embedded models, fetch one with a progress bar, and find out what any model can do."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, Unpack

import click

from ..evaluation.options import GatewayOptions
from ..models.base import Answer, Model, Parameters, Request, make_request
from ..models.embedded.download import pull, pulled
from ..models.embedded.registry import MODELS, HubFile, RegisteredModel, resolve
from ..models.event_loops import awaited, run_sync
from ..models.gateway import Gateway
from ..models.named import NamedModel, named_models
from ..models.progress import showing
from ..models.session import session
from ..prompts.errors import AskanceError, InputError
from ..prompts.formatting import money
from ..setting_types import GatewaySettings
from ..settings import parse_options
from .command_options import config_option, load_dotenv, model_setting_option, settings
from .output import echo_json, print_rows
from .terminal import echo


def fetch(model: RegisteredModel) -> Path:
    """Return the path of the model's verified file. A missing file is fetched, with the progress on standard error."""
    if (path := pulled(model)) is not None:
        return path
    with showing(True) as watcher:

        def progress(what: str, done: int, total: int) -> None:
            if not watcher.text.startswith(what):
                watcher.phase(f"{what}, in MB")
            watcher.advance(int(done / 1e6), int(total / 1e6))

        return pull(model, progress=progress)


@click.group(name="models", invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="Machine-readable list.")
@click.pass_context
def command(context: click.Context, as_json: bool) -> None:
    """List the embedded models (use them as local/NAME, onnx/NAME or openvino/NAME), or fetch one with `askance models
    pull NAME`."""
    if context.invoked_subcommand:
        return
    rows = [_row(model) for model in MODELS]
    if as_json:
        echo_json(rows)
        return
    shown = [
        {"name": row["name"], "size": f"{int(str(row['bytes'])) / 1e6:,.0f} MB", "licence": row["licence"]}
        | {"sha256": str(row["sha256"])[:12], "where from": row["sources"], "here": "yes" if row["path"] else "no"}
        for row in rows
    ]
    print_rows(shown)
    echo("Fetch one: askance models pull NAME. The path of a .gguf file works as local/PATH.", err=True)


@command.command(name="pull")
@click.argument("name")
def pull_command(name: str) -> None:
    """Fetch a model, check its hash, and keep it in the cache directory. An interrupted fetch goes on."""
    model = resolve(name)
    if not isinstance(model, RegisteredModel):
        raise InputError(f"{name} is a file already; use it as local/{name}.")
    echo(str(fetch(model)))


@command.command(name="check")
@click.argument("name")
@click.option("--api-base", help="Address of an OpenAI-compatible server, for openai/NAME.")
@click.option("--store", metavar="FILE|ADDRESS", help="Where what is learned of it is kept.")
@model_setting_option
@config_option
@click.option("--json", "as_json", is_flag=True, help="Machine-readable result on standard output.")
def check_command(name: str, config: Path | None, as_json: bool, **given: object) -> None:
    """Ask the model NAME a handful of questions and say what it can do: schema, log-probabilities, thinking, time,
    price.

    NAME is provider/model, or a name under models: of the --config file. Exit code 1: it cannot be reached or does not
    answer.
    """
    load_dotenv()
    options, _ = settings(GatewayOptions, config, given)
    check = check_model(name, say=lambda text: echo(text, err=True), **options)
    if as_json:
        echo_json(check.to_dict())
        return
    width = max(len(ability) for ability, _ in check.rows)
    echo(f"{name}, in {check.calls} calls")
    for ability, said in check.rows:
        echo(f"  {ability:<{width}}  {said}")


def _row(model: RegisteredModel) -> dict[str, object]:
    path = pulled(model)
    return {
        "name": model.name,
        "bytes": model.bytes,
        "licence": model.licence,
        "sha256": model.sha256,
        "sources": ", ".join("model hub" if isinstance(each, HubFile) else "wheels" for each in model.sources),
        "description": model.description,
        "path": str(path) if path else None,
    }


# --- what a model can do ----------------------------------------------------------------------------------------------

_ASKED = "Text:\nThe sky is blue.\n\nQuestion: {}\nAnswer with one word: yes or no."
_QUESTIONS = ("Does the text name a colour?", "Does the text name an animal?", "Is the text about the sky?")
_SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "string", "enum": ["yes", "no"]}, "explanation": {"type": "string"}},
    "required": ["answer", "explanation"],
    "additionalProperties": False,
}
_ALTERNATIVES, _SEED = 20, 42


@dataclass(frozen=True)
class ModelCheck:
    """Abilities of a model, found with a few calls."""

    name: str
    model: str
    """Identity under which the model's answers are kept: endpoint and model, or the hash of its weights."""
    schema: bool
    temperature: bool
    seed: bool
    logprobs: int
    """Most alternatives to a token, with log-probabilities, that a request may ask for; 0 if the model gives none."""
    thinks: int
    """Mean number of tokens that the model thinks before a verdict; 0 if it does not think."""
    room: int
    """Tokens that each call gets for thinking."""
    seconds: float
    """Seconds for a verdict, measured on the last call."""
    cost_usd: float | None
    """US dollars for a verdict, measured on the last call; None if the price is not known."""
    calls: int
    answers: tuple[str, ...]
    """Replies to three questions whose right answers are yes, no and yes."""
    reads: str | None = None
    """Precision and cost of reading an embedded model on this processor; None for all other models."""

    @property
    def settings(self) -> dict[str, Any]:
        """Settings with which askance will ask the model."""
        return {
            "p_yes": "logprob" if self.logprobs else "stated" if self.thinks else "hard",
            "mode": "batched" if self.thinks else "each",
            **({"thinking_room": self.room} if self.room else {}),
            **({} if self.temperature else {"temperature": None}),
            **({} if self.seed else {"seed": None}),
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the findings as JSON."""
        return {"reachable": True, **asdict(self), "settings": self.settings}

    @property
    def rows(self) -> list[tuple[str, str]]:
        """Abilities in words: name and text."""
        price = "price unknown" if self.cost_usd is None else money(self.cost_usd)
        room = f"about {self.thinks:,} tokens a verdict; its calls get room for {self.room:,} more"
        sent = ", ".join(f"{name} {'left out' if value is None else value}" for name, value in self.settings.items())
        return [
            ("reachable", f"yes; it said {', '.join(self.answers)} where yes, no, yes is right"),
            ("JSON schema", _yes(self.schema)),
            ("temperature", _yes(self.temperature)),
            ("seed", _yes(self.seed)),
            ("log-probabilities", f"{self.logprobs} alternatives to a token" if self.logprobs else "no"),
            ("thinks", room if self.thinks else "no"),
            ("a verdict takes", f"{self.seconds:.2f} s, {price}"),
            ("asked with", sent),
            *([("this processor", self.reads)] if self.reads else []),
        ]


def check_model(
    name: str | NamedModel, *, say: Callable[[str], None] | None = None, **options: Unpack[GatewaySettings]
) -> ModelCheck:
    """Ask a model a handful of questions to see what it can do. The store keeps the facts about its thinking.

    Args:
        name: ``provider/model``, a name in the setting ``models``, or a record.
        say: Function called with messages for the user.
        options: Settings of :class:`~askance.evaluation.options.GatewayOptions`, e.g. ``api_base`` and ``models``.

    Raises:
        InputError: The name or a setting is wrong, or the model refuses its setting of thinking.
        ModelError: The model cannot be reached, refuses the key or does not answer.
    """
    asked, own_options = named_models(options, name)
    settings = parse_options(GatewayOptions, own_options)

    async def ask() -> ModelCheck:
        async with session(settings, None, say) as (models, gateway):
            model = models.get(asked)
            check = await _what_it_can(model, gateway)
            facts = gateway.room.facts(model)
        if facts is not None:
            try:
                with settings.open_store() as store:
                    if store.learned(model.identity) is None:
                        store.learn(model.identity, facts)
            except AskanceError as error:
                if say:
                    say(f"The findings are not kept: {error}")
        return check

    return run_sync(ask())


acheck_model = awaited(check_model)


async def _what_it_can(model: Model, gateway: Gateway) -> ModelCheck:
    """Ask a model a handful of questions. The gateway has no store, so each question is a call."""
    word = Parameters(1, 0.0, _SEED, _ALTERNATIVES)
    first = await _ask(model, gateway, _ASKED.format(_QUESTIONS[0]), word)
    # An answer keeps only the alternatives that tell yes from no, so they cannot be counted. The number is the most
    # that the endpoint takes in a request.
    alternatives = (getattr(model, "most_alternatives", None) or _ALTERNATIVES) if first.logprobs else 0
    verdict = word if alternatives else Parameters(8, 0.0, _SEED)
    second = await _ask(model, gateway, _ASKED.format(_QUESTIONS[1]), verdict)
    written = await _ask(
        model,
        gateway,
        f"{_ASKED.format(_QUESTIONS[2]).rpartition('.')[0]}, in JSON, with an explanation in a few words.",
        Parameters(200, 0.0, _SEED, schema=_SCHEMA),
    )
    began = perf_counter()
    third = await _ask(model, gateway, _ASKED.format(_QUESTIONS[2]), verdict)
    seconds = perf_counter() - began
    refused: Sequence[str] = getattr(model, "left_out", ())
    facts, choice = gateway.room.facts(model), getattr(model, "choice", None)
    return ModelCheck(
        name=model.name,
        model=model.identity,
        schema="response_format" not in refused and _follows(written.text),
        temperature="temperature" not in refused,
        seed="seed" not in refused,
        logprobs=alternatives,
        thinks=facts.average if facts is not None else 0,
        room=facts.room if facts is not None else 0,
        seconds=round(seconds, 3),
        cost_usd=third.cost_usd,
        calls=gateway.budget.calls,
        answers=tuple(" ".join(answer.text.split())[:20] for answer in (first, second, third)),
        reads=None if choice is None else str(choice()),
    )


async def _ask(model: Model, gateway: Gateway, text: str, parameters: Parameters) -> Answer:
    request: Request = make_request(model.identity, [("user", text)], parameters)
    answer = await gateway.buy("check", model, request)
    said = answer.text.strip().lower()
    return answer if said.startswith(("yes", "no", "{")) else await gateway.with_room("check", model, request, answer)


def _follows(text: str) -> bool:
    try:
        reply = json.loads(text)
    except ValueError:
        return False
    return isinstance(reply, dict) and reply.keys() == _SCHEMA["properties"].keys()  # type: ignore[attr-defined]


def _yes(is_so: bool) -> str:
    return "yes" if is_so else "no"
