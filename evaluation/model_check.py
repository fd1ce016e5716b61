"""``askance models check``: a handful of calls that say what a model can do, and how askance will ask it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

from ..models.base import Answer, Model, Parameters, Request, make_request
from ..models.event_loops import run_sync
from ..models.gateway import Gateway
from ..models.session import session
from ..models.settings import parse_options
from ..prompts.errors import AskanceError
from ..prompts.words import money
from .options import GatewayOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

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
    """What a model can do, found by asking it."""

    name: str
    model: str
    """What it is, as its answers are kept under: endpoint and model, or the hash of its weights."""
    schema: bool
    """Whether its reply followed a JSON schema."""
    temperature: bool
    """Whether its endpoint takes a temperature."""
    seed: bool
    """Whether its endpoint takes a seed."""
    logprobs: int
    """Alternatives to a token that it gives with their log-probabilities; 0 where it gives none."""
    thinks: int
    """Tokens that it thinks before a verdict, on average; 0 where it does not."""
    room: int
    """Tokens that its calls get for that."""
    seconds: float
    """A verdict takes, by the last call."""
    cost_usd: float | None
    """US dollars that a verdict takes, by the last call; None where the price is not known."""
    calls: int
    answers: tuple[str, ...]
    """What it said to questions with the answers yes, no and yes."""

    @property
    def settings(self) -> dict[str, Any]:
        """How askance will ask it."""
        return {
            "p_yes": "logprob" if self.logprobs else "hard",
            "max_tokens": (1 if self.logprobs else 8) + self.room,
            **({} if self.temperature else {"temperature": None}),
            **({} if self.seed else {"seed": None}),
        }

    def to_dict(self) -> dict[str, Any]:
        """As ``--json`` prints it."""
        return {"reachable": True, **asdict(self), "settings": self.settings}

    @property
    def rows(self) -> list[tuple[str, str]]:
        """What it can do, in words."""
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
        ]


def check_model(name: str, *, say: Callable[[str], None] | None = None, **options: Any) -> ModelCheck:
    """What a model can do, found by asking it; what is learned of its thinking is kept in the store.

    Args:
        name: ``provider/model``, or a name in the setting ``models``.
        say: Told what somebody should know.
        options: Settings of :class:`~askance.evaluation.options.GatewayOptions`, e.g. ``api_base`` and ``models``.

    Raises:
        InputError: The name or a setting is wrong, or the model does not take how it is told to think.
        ModelError: It cannot be reached, refuses the key or does not answer.
    """
    settings = parse_options(GatewayOptions, options)

    async def ask() -> ModelCheck:
        async with session(settings, None, say) as (models, gateway):
            model = models.get(name)
            found = await _what_it_can(model, gateway)
            facts = gateway.facts(model)
        if facts is not None:
            try:
                with settings.open_store() as store:
                    if store.learned(model.identity) is None:
                        store.learn(model.identity, facts)
            except AskanceError as error:
                if say:
                    say(f"What was learned is not kept: {error}")
        return found

    return run_sync(ask())


async def _what_it_can(model: Model, gateway: Gateway) -> ModelCheck:
    """Ask a model a handful of questions; the gateway has no store, so that each is a call."""
    word = Parameters(1, 0.0, _SEED, _ALTERNATIVES)
    first = await _ask(model, gateway, _ASKED.format(_QUESTIONS[0]), word)
    given = max((len(alternatives) for _, alternatives in first.logprobs or ()), default=0)
    verdict = word if given else Parameters(8, 0.0, _SEED)
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
    facts = gateway.facts(model)
    return ModelCheck(
        name=model.name,
        model=model.identity,
        schema="response_format" not in refused and _follows(written.text),
        temperature="temperature" not in refused,
        seed="seed" not in refused,
        logprobs=min(given, _ALTERNATIVES),
        thinks=facts.average if facts is not None else 0,
        room=facts.room if facts is not None else 0,
        seconds=round(seconds, 3),
        cost_usd=third.cost_usd,
        calls=gateway.budget.calls,
        answers=tuple(" ".join(each.text.split())[:20] for each in (first, second, third)),
    )


async def _ask(model: Model, gateway: Gateway, text: str, parameters: Parameters) -> Answer:
    request: Request = make_request(model.identity, [("user", text)], parameters)
    answer = await gateway.buy("check", model, request)
    said = answer.text.strip().lower()
    return answer if said.startswith(("yes", "no", "{")) else await gateway.with_room("check", model, request, answer)


def _follows(text: str) -> bool:
    try:
        found = json.loads(text)
    except ValueError:
        return False
    return isinstance(found, dict) and found.keys() == _SCHEMA["properties"].keys()  # type: ignore[attr-defined]


def _yes(is_so: bool) -> str:
    return "yes" if is_so else "no"
