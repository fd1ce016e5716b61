"""A second look at a rule before it becomes a lesson: accept it, mend it once, or refuse it with the reason."""

from __future__ import annotations

from collections.abc import Callable

from pydantic import BaseModel, ConfigDict, Field

from ..models.structured import ParseError
from ..prompts.templates import template
from .agent import Agent


class RefusedRuleError(ParseError):
    """The critique found a rule wanting, and no better one came of it."""


class Critique(BaseModel):
    """What was found of a rule."""

    model_config = ConfigDict(title="check of a rule")

    settles: bool
    """It is true of the case that it was made for."""
    hits_other: bool
    """It would wrongly hit the case shown beside it."""
    says_more: bool
    """It says more than the question does."""
    reason: str = Field(max_length=300)
    better: str = Field(max_length=300)


class Critic(Agent):
    """A model that checks one rule in one short call: it sees outputs, never documents."""

    role = "note_taker"

    async def review(self, rule: str, case: str, mend: Callable[[str], str], *, has_other: bool) -> str:
        """Check a rule; returns it, or the better one that the critique proposes.

        Args:
            rule: The rule.
            case: The question about it, as text: the case it was made for, and the one it must leave alone.
            mend: Makes a rule of the critique's better wording; raises ``ValueError`` where the guards refuse it.
            has_other: Whether the case shows something that the rule must leave alone.

        Raises:
            RefusedRuleError: It is not good, and neither is what the critique would say instead.
            ParseError: The critique itself cannot be used.
            ModelError: No reply.
        """
        found = await self._ask(template("critique"), case, Critique, max_tokens=250)
        problem = _problem(found, has_other=has_other)
        if problem is None:
            return rule
        why = f"{problem} ({' '.join(found.reason.split())})"
        try:
            better = mend(found.better)
        except ValueError as error:
            raise RefusedRuleError(f"{why}, and its revision cannot be used: {error}") from None
        if better == rule:
            raise RefusedRuleError(f"{why}: {rule}")
        return better


def _problem(found: Critique, *, has_other: bool) -> str | None:
    if not found.settles:
        return "the rule is not true of its own case"
    if has_other and found.hits_other:
        return "the rule also hits a case that is right"
    if not found.says_more:
        return "the rule says no more than the question"
    return None
