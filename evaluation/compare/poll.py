"""``poll``: a panel votes (PoLL, Verga et al. 2024): several models, or one model several times (EIG paper App. A.9)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...agents.buying import NOTHING, Estimate
from ...prompts.errors import InputError
from ...prompts.examples import Example
from .numbers import number_judge
from .protocol import JudgeScore, Setup
from .questionnaire import Questionnaire

WORDINGS = ("rate_direct", "rate_direct_critic", "rate_direct_reader")
"""Templates that members of one model differ in with ``--panel-by prompts``."""
SEED_STEP = 1000
"""Between the seeds of two members, so that their replicates never share one."""


@dataclass(frozen=True)
class Poll:
    """Every member rates as ``direct`` does; a vote that is missing leaves the panel without a score."""

    members: tuple[Questionnaire, ...]
    points: int
    vote: str
    """``majority`` or ``mean``."""
    name: str = "poll"

    async def prepare(self) -> None:
        """Nothing: the members know their question."""

    async def rate(self, examples: Sequence[Example]) -> list[JudgeScore]:
        """Have every member rate every example, one member after the other."""
        votes = [await member.rate(examples) for member in self.members]
        return [self._decide(each) for each in zip(*votes, strict=True)]

    async def estimate(self, examples: Sequence[Example]) -> Estimate:
        """What all members would buy."""
        return sum([await member.estimate(examples) for member in self.members], NOTHING)

    def _decide(self, votes: Sequence[JudgeScore]) -> JudgeScore:
        missing = next((vote for vote in votes if vote.score is None), None)
        if missing is not None:
            return missing
        scores = [vote.score for vote in votes if vote.score is not None]
        if self.vote == "majority":
            counts = Counter(round(score * (self.points - 1)) for score in scores)
            most = max(counts.values())
            winners = [number for number, count in counts.items() if count == most]
            decided = sum(winners) / len(winners) / (self.points - 1)
        else:
            decided = sum(scores) / len(scores)
        return replace(votes[0], score=decided)


def build(setup: Setup) -> Poll:
    """The judge; it needs no checklist.

    Raises:
        InputError: More members by wording than there are wordings.
    """
    options = setup.options
    if setup.panel:
        members = [number_judge("poll", replace(setup, model=model), WORDINGS[0]) for model in setup.panel]
    elif options.panel_by == "prompts":
        if options.panel_size > len(WORDINGS):
            raise InputError(
                f"--panel-size {options.panel_size}: there are {len(WORDINGS)} wordings; use fewer members, or "
                "--panel-by seeds."
            )
        members = [number_judge("poll", setup, wording) for wording in WORDINGS[: options.panel_size]]
    else:
        warm = replace(options.judging, temperature=options.temperature or options.judging.sample_temperature)
        seeds = [options.seed + place * SEED_STEP for place in range(1, options.panel_size + 1)]
        members = [number_judge("poll", setup, WORDINGS[0], replace(warm, seed=seed)) for seed in seeds]
    return Poll(tuple(members), options.points, options.panel_vote)
