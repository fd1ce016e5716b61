"""What a free-form judge looks at, and whether it looks at the same when asked again: EM_dim (EIG paper §4.4).

A model names the aspects of the first evaluation, G, and then those of G that the second evaluation looks at too;
EM_dim is their share, k / |G|. The paper has the model say the share; here it names the aspects, and they are counted.
The measure depends on that model, as the paper says of it, so it compares judges and is no absolute figure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, ConfigDict, Field

from ...agents.agent import ParseError, ask_for
from ...agents.buying import Estimate, all_together
from ...models.base import ModelError
from ...prompts.templates import render

if TYPE_CHECKING:
    from ...models.base import Model
    from ...models.gateway import Gateway
    from .protocol import JudgeScore

MOST_ASPECTS = 8
TOKENS = 200
ROLE = "em_dim"
"""Its calls are booked under this name and are not part of a judge's cost."""
FREE = ("cot",)
"""Judges that say what they look at."""
NAMELESS = ("direct", "poll")
"""Judges that say a number and nothing else. All others ask fixed questions."""

Name = Annotated[str, Field(min_length=1, max_length=60)]
Named = Mapping[tuple[str, str], tuple[Sequence[str], Sequence[str]]]
"""By example and dimension: the aspects of the first evaluation, and those of them that the second one kept."""


class _Aspects(BaseModel):
    model_config = ConfigDict(extra="forbid")
    aspects: list[Name] = Field(max_length=MOST_ASPECTS)


class _Kept(BaseModel):
    model_config = ConfigDict(extra="forbid")
    kept: list[Name]


async def name_aspects(ratings: Sequence[JudgeScore], gateway: Gateway, model: Model, seed: int) -> Named:
    """Have a model name what the first two evaluations of each example look at.

    Args:
        ratings: Of one judge that gives reasons; those without a second evaluation are passed over, as are those
            about which the model gives no usable reply.
        gateway: Pays and keeps.
        model: Who names them.
        seed: Sent along.

    Raises:
        BudgetExceededError: A cap was reached.
        ModelError: The endpoint refuses every call or is down.
    """
    said = {(each.example, each.dimension, each.replicate): each.reasons for each in ratings if each.reasons}
    twice = [(example, dimension) for example, dimension, replicate in said if replicate == 1]
    found: dict[tuple[str, str], tuple[list[str], list[str]]] = {}

    async def one(place: tuple[str, str]) -> None:
        first, second = said.get((*place, 0)), said[*place, 1]
        if first is None or second is None:
            return
        try:
            found[place] = await _pair(place[1], first, second, gateway, model, seed)
        except ParseError:
            return
        except ModelError as error:
            if error.fatal:
                raise

    await all_together(twice, one, gateway.concurrency(model))
    return found


def estimate_naming(judges: Sequence[str], examples: int, dimensions: int, reasons: int) -> Estimate:
    """What :func:`name_aspects` would buy at most: two calls for each example and dimension of a free-form judge.

    Args:
        judges: Name of each judge of the table; one that is there with several models stands there as often.
        examples: How many.
        dimensions: How many.
        reasons: Longest evaluation, in tokens.
    """
    calls = 2 * examples * dimensions * sum(name in FREE for name in judges)
    return Estimate(0, calls, 0, calls * (reasons + 2 * TOKENS))


async def _pair(
    dimension: str, first: str, second: str, gateway: Gateway, model: Model, seed: int
) -> tuple[list[str], list[str]]:
    message = render(
        "drift_named", dimension=dimension.replace("_", " "), reasons=first.strip(), most=str(MOST_ASPECTS)
    )
    named = await ask_for(gateway, ROLE, model, [("user", message)], _Aspects, max_tokens=TOKENS, seed=seed)
    aspects = list(dict.fromkeys(named.aspects))
    if not aspects:
        return [], []

    def known(reply: _Kept) -> None:
        if strange := [each for each in reply.kept if each not in aspects]:
            raise ValueError(f"'{strange[0]}' is not one of the aspects above")

    shown = "\n".join(f"- {each}" for each in aspects)
    message = render("drift_kept", aspects=shown, reasons=second.strip())
    again = await ask_for(gateway, ROLE, model, [("user", message)], _Kept, max_tokens=TOKENS, seed=seed, check=known)
    return aspects, list(again.kept)
