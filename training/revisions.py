"""Rationales of the scorer that another model revises; the revision is preferred to what it was (LMUnit §3.4).

Refined: one rationale is revised with its right answer known (D'Oosterlinck et al. 2024). Harmonized: the two rationales
on a preference pair are revised together, with the better output known. A revision is kept only if it scores better.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from ..agents.agent import ParseError, ask_for
from ..agents.buying import all_together
from ..models.event_loops import run_sync
from ..models.session import session
from ..models.trained.scored_text import after_rationale, asked_why
from ..models.trained.trained_scorer import expected_scores
from ..prompts.templates import render
from .losses import RationalePair

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..memory.verdict_store import SharedStore
    from ..models.base import Message, Model
    from ..models.progress import Watcher
    from ..models.trained.causal import CausalNetwork
    from .options import TrainOptions
    from .rationales import Drawn, RationaleCase

_BESIDE = 40
"""Tokens of a reply beside the rationales in it."""


class _Refined(BaseModel):
    model_config = ConfigDict(title="revision", str_strip_whitespace=True)

    revised: str = Field(min_length=1)


class _Harmonized(BaseModel):
    model_config = ConfigDict(title="revisions", str_strip_whitespace=True)

    first: str = Field(min_length=1)
    second: str = Field(min_length=1)


class Draft(NamedTuple):
    """A rationale of the scorer, or one on each output of a preference pair, that are revised together."""

    cases: Sequence[RationaleCase]
    before: Sequence[Drawn]


def drafts_of(cases: Sequence[RationaleCase], drawn: Sequence[Sequence[Drawn]], together: int) -> list[Draft]:
    """Put ``together`` 1 or 2 neighbouring cases' rationales; those that cannot be used and repeated ones are left out."""

    def each_draft() -> Iterator[Draft]:
        for place in range(0, len(cases), together):
            some = tuple(cases[place : place + together])
            for before in dict.fromkeys(zip(*drawn[place : place + together], strict=True)):
                if all(each.p_yes is not None for each in before):
                    yield Draft(some, before)

    return [*each_draft()]


def buy_revisions(
    drafts: Sequence[Draft], reviser: str | Model, settings: TrainOptions, watcher: Watcher
) -> list[tuple[str, ...] | None]:
    """Have a model revise each draft; None where its reply cannot be used. What was bought before is in the store.

    Raises InputError where the model's name is wrong, BudgetExceededError at a cap, and AskanceError where the endpoint
    is down, or did not answer all calls.
    """

    async def buy(store: SharedStore) -> list[tuple[str, ...] | None]:
        async with session(settings, store, watcher.say) as (models, gateway):
            watcher.watch(gateway.budget)
            by = models.get(reviser)

            async def ask(draft: Draft) -> tuple[str, ...] | None:
                record: type[BaseModel] = _Refined if len(draft.cases) == 1 else _Harmonized
                most = len(draft.cases) * settings.rationale_tokens + _BESIDE
                try:
                    reply = await ask_for(
                        gateway, "writer", by, _messages(draft), record, max_tokens=most, seed=settings.seed
                    )
                except ParseError:
                    return None
                return tuple(reply.model_dump().values())

            watcher.phase("revising rationales", len(drafts))
            return await all_together(drafts, ask, gateway.concurrency(by), watcher.advance)

    with settings.open_store() as store:
        return run_sync(buy(store))


def _messages(draft: Draft) -> list[Message]:
    """The scorer's own conversation, with its rationales, and the order to revise them."""
    first = draft.cases[0]
    messages: list[Message] = [*asked_why(first.text), ("assistant", draft.before[0].text)]
    if len(draft.cases) == 1:
        return [*messages, ("user", render("rationale_refine", answer="yes" if first.wanted else "no"))]
    messages += [asked_why(draft.cases[1].text)[-1], ("assistant", draft.before[1].text)]
    return [*messages, ("user", render("rationale_harmonize", number="first" if first.wanted else "second"))]


def revised_pairs(
    network: CausalNetwork, drafts: Sequence[Draft], revised: Sequence[tuple[str, ...] | None]
) -> list[RationalePair]:
    """Pair each revision that scores better with what it was, the revision preferred.

    One rationale scores better if it ends in the right score, and nearer to it than before; two if the output that
    should be ahead is ahead, and further than before.
    """
    usable = [(draft, texts) for draft, texts in zip(drafts, revised, strict=True) if texts is not None]
    read = [
        after_rationale(case.text, text)
        for draft, texts in usable
        for case, text in zip(draft.cases, texts, strict=True)
    ]
    said = iter(expected_scores(network.levels(read).tolist()) if read else [])
    found = []
    for draft, texts in usable:
        after = [next(said) for _ in texts]
        if _score(draft.cases, after) > max(0.0, _score(draft.cases, [each.p_yes or 0.0 for each in draft.before])):
            sides = zip(draft.cases, texts, draft.before, strict=True)
            found += [
                RationalePair(case.unit, case.text, text, before.text)
                for case, text, before in sides
                if text != before.text
            ]
    return found


def _score(cases: Sequence[RationaleCase], p_yes: Sequence[float]) -> float:
    """How far P(yes) is on the right side: of 1/2, or of the other output; below 0 on the wrong side."""
    first, *other = p_yes
    ahead = first - (other[0] if other else 0.5)
    return ahead if cases[0].wanted else -ahead
