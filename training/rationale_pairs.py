"""Pairs of rationales for one text, one of them preferred: on what they are drawn, how they are made (LMUnit §3.4).

Teacher: one that ends in the right score is preferred to one that does not. Refined: what the scorer wrote is revised
by another model that knows the right answer (D'Oosterlinck et al. 2024). Harmonized: two that the scorer wrote on a
preference pair are revised together by a model that knows the better output. A revision is preferred to what it was,
if it scores better.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from ..agents.agent import ParseError, ask_for
from ..agents.buying import all_together
from ..models.event_loops import run_sync
from ..models.session import session
from ..models.trained.scored_text import after_rationale, asked_why
from ..models.trained.trained_scorer import expected_scores
from ..prompts.errors import InputError
from ..prompts.templates import render
from .losses import RationalePair

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..memory.verdict_store import SharedStore
    from ..models.base import Message, Model
    from ..models.progress import Watcher
    from ..models.trained.causal import CausalNetwork
    from ..models.trained.scored_text import ScoredText
    from .mixture import TrainingItem
    from .options import TrainOptions

_BESIDE = 40
"""Tokens of a reply beside the rationales in it."""


class _Refined(BaseModel):
    model_config = ConfigDict(title="revision", str_strip_whitespace=True)

    revised: str = Field(min_length=1)


class _Harmonized(BaseModel):
    model_config = ConfigDict(title="revisions", str_strip_whitespace=True)

    first: str = Field(min_length=1)
    second: str = Field(min_length=1)


@dataclass(frozen=True, slots=True)
class RationaleCase:
    """A question on an output of the training part whose right answer is known, or one side of a preference."""

    unit: str
    """Id of the example."""
    about: str
    """The question's id, or the dimension where that has one question."""
    text: ScoredText
    wanted: bool
    """Whether yes is right; of a side of a preference, whether P(yes) should be above that of the other side."""

    def is_right(self, p_yes: float) -> bool:
        """Whether this P(yes) is on the right side of 1/2."""
        return (p_yes >= 0.5) is self.wanted


@dataclass(frozen=True, slots=True)
class Drawn:
    """A rationale that was drawn, and the score in which it ends; None where it is empty or was cut off."""

    text: str
    p_yes: float | None


class RationaleDraft(NamedTuple):
    """A rationale of the scorer, or one on each output of a preference pair, that are revised together."""

    cases: Sequence[RationaleCase]
    before: Sequence[Drawn]


def rationale_cases(items: Sequence[TrainingItem]) -> list[RationaleCase]:
    """Every text of the training ``items`` that alone has a wanted score, once; a score of 1/2 has no right answer.
    Raises InputError where there is none."""
    wanted: dict[ScoredText, list[float]] = {}
    first: dict[ScoredText, TrainingItem] = {}
    for each in items:
        if each.kind in ("verdict", "rating") and len(each.left) == 1:
            (probe,) = each.left
            first.setdefault(probe.text, each)
            wanted.setdefault(probe.text, []).append(1.0 - each.target if probe.is_fault else each.target)
    means = {text: sum(values) / len(values) for text, values in wanted.items()}
    found = [
        RationaleCase(first[text].unit, first[text].about, text, mean > 0.5)
        for text, mean in means.items()
        if mean != 0.5
    ]
    if not found:
        raise InputError(
            "--rationales: nothing in the training part is about a single question with a yes or no as the right "
            "answer. Give --verdicts, people's answers to questions, or ratings of a dimension that has one question."
        )
    return found


def preference_cases(items: Sequence[TrainingItem]) -> list[RationaleCase]:
    """Both outputs of every decided preference about one question, one after the other.
    Raises InputError where there is none."""
    found = []
    for each in items:
        if each.kind == "preference" and each.target != 0.5 and len(each.left) == len(each.right) == 1:
            more = (each.target > 0.5) is not each.left[0].is_fault
            sides = ((each.left[0], more), (each.right[0], not more))
            found += [RationaleCase(each.unit, each.about, probe.text, wanted) for probe, wanted in sides]
    if not found:
        raise InputError(
            "--rationales-from harmonized: no preference of the training part is about a single question. Give ratings "
            "of a dimension that has one question, --contrasts, or --preferences with a checklist of one question."
        )
    return found


def pairs_of(case: RationaleCase, drawn: Sequence[Drawn]) -> list[RationalePair]:
    """Pair each right rationale with a wrong one at most, the surest with the one that is furthest off."""
    usable = {each.text: each.p_yes for each in drawn if each.p_yes is not None}
    sureness = {text: p if case.wanted else 1.0 - p for text, p in usable.items()}
    right = sorted((text for text, p in usable.items() if case.is_right(p)), key=lambda text: -sureness[text])
    wrong = sorted((text for text, p in usable.items() if not case.is_right(p)), key=sureness.__getitem__)
    return [RationalePair(case.unit, case.text, better, worse) for better, worse in zip(right, wrong, strict=False)]


def drafts_of(cases: Sequence[RationaleCase], drawn: Sequence[Sequence[Drawn]], together: int) -> list[RationaleDraft]:
    """Put ``together`` 1 or 2 neighbouring cases' rationales; unusable and repeated ones are left out."""

    def each_draft() -> Iterator[RationaleDraft]:
        for place in range(0, len(cases), together):
            some = tuple(cases[place : place + together])
            for before in dict.fromkeys(zip(*drawn[place : place + together], strict=True)):
                if all(each.p_yes is not None for each in before):
                    yield RationaleDraft(some, before)

    return [*each_draft()]


def buy_revisions(
    drafts: Sequence[RationaleDraft], reviser: str | Model, settings: TrainOptions, watcher: Watcher
) -> list[tuple[str, ...] | None]:
    """Have a model revise each draft; None where its reply cannot be used. What was bought before is in the store.

    Raises InputError where the model's name is wrong, BudgetExceededError at a cap, and AskanceError where the endpoint
    is down, or did not answer all calls.
    """

    async def buy(store: SharedStore) -> list[tuple[str, ...] | None]:
        async with session(settings, store, watcher.say) as (models, gateway):
            watcher.watch(gateway.budget)
            by = models.get(reviser)

            async def ask(draft: RationaleDraft) -> tuple[str, ...] | None:
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


def _messages(draft: RationaleDraft) -> list[Message]:
    """The scorer's own conversation, with its rationales, and the order to revise them."""
    first = draft.cases[0]
    messages: list[Message] = [*asked_why(first.text), ("assistant", draft.before[0].text)]
    if len(draft.cases) == 1:
        return [*messages, ("user", render("rationale_refine", answer="yes" if first.wanted else "no"))]
    messages += [asked_why(draft.cases[1].text)[-1], ("assistant", draft.before[1].text)]
    return [*messages, ("user", render("rationale_harmonize", number="first" if first.wanted else "second"))]


def revised_pairs(
    network: CausalNetwork, drafts: Sequence[RationaleDraft], revised: Sequence[tuple[str, ...] | None]
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
