"""The learner: from people's comments to a checklist that finds what they spoke of (METHOD part 4).

Comments propose questions. A few examples show which of them the judge can answer at all; the development examples
which speak against rejected outputs that they do not come from; those that say the same are one. What is left joins the
checklist with equal weights, read against the accepted outputs (:func:`~askance.evaluation.calibration_fit.fit_accepted`),
and the gate decides about the whole judge.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol

from ...evaluation.calibration_fit import fit_accepted
from ...evaluation.kept_judge import QuestionOrigin
from ...evaluation.scoring import mean_score
from ...memory.neighbours import ROUNDING, greedy_unique
from ..events import QuestionJudged
from .candidates import (
    ALIKE_VERDICTS,
    SAME_VERDICTS,
    Candidate,
    as_question,
    id_for,
    likeness,
    speaks_against,
    standing,
    unite,
    yes_logits,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from ...evaluation.scoring import Targets
    from ...memory.embedders import Embedder
    from ...prompts.checklist import Checklist, Question
    from ...prompts.examples import Example
    from ..contest import Contest
    from ..events import Teller
    from ..subject import Draft, Observation, Subject, Version
    from .candidates import Standing

SAME_MEANING = 0.9
"""Cosine from which two candidates are taken for one before they are judged."""
SCREENED = 8
"""Accepted examples on which candidates are judged first; rejected ones, where they come from none of them."""
OWN_CASES = 4
"""Examples that a candidate comes from on which it is judged first."""
SPARE = 3
"""Candidates that are judged on all development examples, for each question that may join."""
FEWEST_ACCEPTED = 4
"""Accepted development examples without which nothing can be learned."""
OF_ONE = 2
"""Questions from the same comments that may join in one round: they find the same outputs, and take others' places."""
NO_ROOM = (
    "others promised more on the first examples",
    "others promised more on the development examples",
    "others from the same comment promised more",
)
"""Said of candidates that are not asked because better ones are."""


class Proposer(Protocol):
    """Turns evidence into candidates."""

    async def propose(self, best: Draft, rejected: Mapping[str, Sequence[str]], iteration: int) -> list[Candidate]:
        """New candidates; evidence that was read once is not read again.

        Args:
            best: The judge so far.
            rejected: By dimension, the development examples that people like less than most, the least liked first.
            iteration: From 1.

        Raises:
            BudgetExceededError: A cap was reached.
            ModelError: An endpoint refuses every call.
        """
        ...

    def read(self) -> dict[str, Any]:
        """What was read so far, here and in earlier runs, as under ``read`` in ``result.json``."""
        ...


@dataclass(frozen=True)
class Learned:
    """A candidate, and what became of it."""

    id: str
    candidate: Candidate
    good: Literal["yes", "no"] | None
    """Which answer speaks for the output; None where that was not found out."""
    standing: Standing | None
    problem: str | None
    """Why it did not join; None where it did, as far as the gate let it."""
    iteration: int

    @property
    def may_return(self) -> bool:
        """Whether nothing that was seen of its verdicts speaks against it."""
        return self.problem is None or self.problem in NO_ROOM


@dataclass
class QuestionLearner:
    """Proposes, screens, chooses and challenges."""

    subject: Subject
    targets: Targets
    development: Sequence[Example]
    embedder: Embedder
    events: Teller
    most: int
    """Questions that may join in one round."""
    most_looks: int
    """Candidates that may be sent to the gate, which share its level."""
    proposers: Sequence[Sequence[Proposer]] = ()
    """Groups, what promises most first: the next group is asked where those before have nothing, or were not enough for the
    gate. A group is read to its end before the first look, as a look at validation is dearer than reading on; only in a
    run that has no second one is the rest of a group left where its first has something."""
    waiting: Sequence[Candidate] = ()
    """Candidates of earlier runs that are tried once more, beside the first new ones."""
    dropped: Mapping[str, str] = field(default_factory=dict)
    """Texts of questions that an earlier run tried in vain, with their kind."""
    removed: Sequence[str] = ()
    """Texts of questions that people do not want."""
    learned: list[Learned] = field(default_factory=list, init=False)
    """All candidates so far."""
    looks: int = field(default=0, init=False)
    """Candidates that were sent to the gate."""
    _exhausted: bool = field(default=False, init=False)
    _stood: set[str] = field(default_factory=set, init=False)
    """Chosen last, on all development examples: a few of them say nothing more."""
    _refused: dict[str, Candidate] = field(default_factory=dict, init=False)
    """Chosen before, but not enough for the gate: they are tried again together with the next ones."""

    async def challenge(self, best: Version, seen: Observation, contest: Contest, iteration: int) -> Version:
        """Learn from the development examples; returns the version with new questions where the gate takes it.

        Raises:
            BudgetExceededError: A cap was reached; ``best`` stands.
            ModelError: An endpoint refuses every call.
        """
        sides = {name: self._sides(name) for name in self.targets.dimensions}
        sides = {name: both for name, both in sides.items() if len(both[0]) >= FEWEST_ACCEPTED and both[1]}
        self._exhausted = True
        if not sides:
            self.events.say("no questions are learned: there are too few accepted or rejected development examples")
            return best
        self.events.phase(f"iteration {iteration}: writing questions")
        rejected = {name: both[1] for name, both in sides.items()}
        chosen, logits = self._refused, dict[str, dict[str, float]]()
        for group in self.proposers:
            if chosen and not self.looks:
                break
            for proposer in group:
                if chosen and self.most_looks == 1:
                    break
                named = await self._new(best.draft, proposer, rejected, iteration)
                if named:
                    self._exhausted = False
                    chosen, logits = await self._chosen(best.draft, chosen | named, seen, sides, iteration)
        if not chosen.keys() - self._refused.keys():
            return best
        dropped = self._speaking_against(best.draft, chosen, seen, sides)
        draft = await self._draft(best.draft, chosen, logits, sides, dropped)
        self.looks += 1
        winner = await contest.challenge(best, (), iteration, draft, look=(self.looks, self.most_looks))
        self._refused = {} if winner is not best else chosen
        return winner

    async def _new(
        self, best: Draft, proposer: Proposer, rejected: Mapping[str, Sequence[str]], iteration: int
    ) -> dict[str, Candidate]:
        """Candidates that were not asked before; empty where a proposer has nothing more."""
        while True:  # what was asked before is no reason to leave the rest of the evidence unread
            proposed = await proposer.propose(best, rejected, iteration)
            proposed, self.waiting = [*self.waiting, *proposed], ()
            named = self._named(best.questions, proposed)
            if named or not proposed:
                return named

    def standing_comments(self) -> set[str]:
        """The comments from which a question came that the development examples speak for."""
        return {text for each in self.learned if each.problem is None for text in each.candidate.comments}

    @property
    def read(self) -> dict[str, Any]:
        """As under ``read`` in ``result.json``."""
        return {name: value for group in self.proposers for each in group for name, value in each.read().items()}

    @property
    def is_exhausted(self) -> bool:
        """Whether nothing is left that candidates could come from."""
        return self._exhausted

    def _sides(self, dimension: str) -> tuple[list[str], list[str]]:
        """Accepted development examples, at least as liked as most, and the rejected ones; the extremes first."""
        wanted = {each.id: self.targets.wanted[each.id].get(dimension) for each in self.development}
        known = {name: value for name, value in wanted.items() if value is not None}
        mean = mean_score(known.values()) or 0.0
        fine = sorted((each for each in known if known[each] >= mean), key=lambda each: -known[each])
        poor = sorted((each for each in known if known[each] < mean), key=lambda each: known[each])
        return fine, poor

    def _named(self, checklist: Checklist, proposed: Sequence[Candidate]) -> dict[str, Candidate]:
        """Candidates by their new ids, each question once, without those that are or were there."""
        known = {each.text for each in checklist.questions} | {each.candidate.text for each in self.learned}
        new = [each for each in proposed if each.text not in known and not self._was_dropped(each)]
        new = self._without_removed(new)
        if not new:
            return {}
        vectors = self.embedder.embed([each.text for each in new])
        kept = greedy_unique(vectors, SAME_MEANING)
        near = {place: max(kept, key=lambda each: float(vectors[place] @ vectors[each])) for place in range(len(new))}
        near |= {place: place for place in kept}
        taken = {each.id for each in checklist.questions} | {each.id for each in self.learned}
        named: dict[str, Candidate] = {}
        for candidate in unite(new, near):
            named[id_for(candidate.text, taken | set(named))] = candidate
        return named

    def _was_dropped(self, candidate: Candidate) -> bool:
        """Whether it was tried in vain; one that nobody had asked for is tried again where somebody asks for it."""
        return self.dropped.get(candidate.text) in (candidate.kind, "comment")

    def _without_removed(self, new: Sequence[Candidate]) -> list[Candidate]:
        """Without what people removed, in these words or in others that mean the same."""
        if not self.removed or not new:
            return list(new)
        unwanted = self.embedder.embed(self.removed)
        cosines = (self.embedder.embed([each.text for each in new]) @ unwanted.T).max(axis=1)
        for candidate, cosine in zip(new, cosines, strict=True):
            if cosine >= SAME_MEANING - ROUNDING:
                self.events.say(f"not asked, as people removed it from the memory: {candidate.text}")
        return [each for each, cosine in zip(new, cosines, strict=True) if cosine < SAME_MEANING - ROUNDING]

    async def _chosen(
        self,
        best: Draft,
        named: Mapping[str, Candidate],
        seen: Observation,
        sides: Mapping[str, tuple[list[str], list[str]]],
        iteration: int,
    ) -> tuple[dict[str, Candidate], dict[str, dict[str, float]]]:
        """Those that are worth asking, best first, and all log-odds of yes on the development examples."""
        self.events.phase(f"iteration {iteration}: trying {len(named)} questions on the outputs that they come from")
        logits = await self._own_cases(best, named, sides)
        standings = {name: self._standing(name, each, logits, sides) for name, each in named.items()}
        able = [
            name
            for name, found in standings.items()
            if name in self._stood or (found is not None and found.problem is None)
        ]
        able = _in_turn(sorted(able, key=lambda name: _rank(standings[name]), reverse=True), named)
        able = sorted(able, key=lambda name: name not in self._stood)
        able, spare = able[: SPARE * self.most], able[SPARE * self.most :]
        unused = dict.fromkeys(spare, NO_ROOM[0])
        chosen: dict[str, Candidate] = {}
        if able:
            self.events.phase(f"iteration {iteration}: judging the development examples with {len(able)} questions")
            whole = await self._judge(best, {name: named[name] for name in able}, self.development)
            logits = yes_logits(whole.verdicts)
            standings |= {name: self._standing(name, named[name], logits, sides) for name in able}
            asked = yes_logits(seen.verdicts)
            for name in sorted(able, key=lambda each: _rank(standings[each]), reverse=True):
                found, candidate = standings[name], named[name]
                if found is None or found.problem is not None:
                    continue
                others = {**asked, **{each: logits[each] for each in chosen}}
                alike = {each: likeness(logits[name], told) for each, told in others.items()}
                twin = max(alike, key=alike.__getitem__, default="")
                near = max(chosen, key=alike.__getitem__, default="")
                if twin and alike[twin] > SAME_VERDICTS:
                    unused[name] = f"it gets the same verdicts as '{twin}'"
                    if twin in chosen:
                        chosen[twin] = chosen[twin].with_sources_of(candidate)
                elif near and alike[near] > ALIKE_VERDICTS:
                    unused[name] = f"it finds much the same as '{near}', which promises more"
                elif len(chosen) >= self.most:
                    unused[name] = NO_ROOM[1]
                elif len([each for each in chosen.values() if each.comments == candidate.comments != ()]) >= OF_ONE:
                    unused[name] = NO_ROOM[2]
                else:
                    chosen[name] = candidate
        for name, candidate in named.items():
            self._tell(name, chosen.get(name, candidate), standings[name], unused.get(name), iteration)
        self._stood = set(chosen)
        return chosen, logits

    async def _own_cases(
        self, best: Draft, named: Mapping[str, Candidate], sides: Mapping[str, tuple[list[str], list[str]]]
    ) -> dict[str, dict[str, float]]:
        """Log-odds of yes on some accepted outputs, and on those that each candidate comes from, or on the least liked.

        A rare fault shows on few outputs, but it has to show on the one that somebody wrote of.
        """
        fine = {each for both in sides.values() for each in both[0][:SCREENED]}
        of_case: dict[str, dict[str, Candidate]] = {}
        for name, candidate in named.items():
            least = sides[self._rated(candidate.dimension)][1] if self._rated(candidate.dimension) in sides else []
            for each in candidate.sources[:OWN_CASES] or least[:SCREENED]:
                of_case.setdefault(each, {})[name] = candidate
        seen = [await self._judge(best, named, [each for each in self.development if each.id in fine])]
        for case in self.development:  # one after the other: what was read of an example is kept for its questions
            if case.id in of_case:
                seen.append(await self._judge(best, of_case[case.id], [case]))
        return yes_logits(verdict for some in seen for verdict in some.verdicts)

    async def _judge(self, best: Draft, named: Mapping[str, Candidate], examples: Sequence[Example]) -> Observation:
        questions = tuple(as_question(each, name, "yes") for name, each in named.items())
        checklist = best.questions.model_copy(update={"questions": questions, "section_weights": {}})
        asked = replace(best, checklist=checklist, calibration=None, origins={})
        return await self.subject.observe(asked, examples, self.events.advance)

    def _standing(
        self,
        name: str,
        candidate: Candidate,
        logits: Mapping[str, Mapping[str, float]],
        sides: Mapping[str, tuple[list[str], list[str]]],
    ) -> Standing | None:
        both = sides.get(self._rated(candidate.dimension))
        return None if both is None else standing(logits.get(name, {}), candidate.sources, *both)

    def _rated(self, dimension: str) -> str:
        """The rated dimension that a dimension of the checklist is held to."""
        return dimension if dimension in self.targets.dimensions else self.targets.dimensions[0]

    def _tell(
        self, name: str, candidate: Candidate, found: Standing | None, unused: str | None, iteration: int
    ) -> None:
        problem = (
            "too few outputs with an answer to it were accepted, or rejected"
            if found is None
            else found.problem or unused
        )
        good: Literal["yes", "no"] | None = None if found is None else "no" if found.good == "no" else "yes"
        self.learned = [each for each in self.learned if each.id != name]  # one that waited is told anew
        self.learned.append(Learned(name, candidate, good, found, problem, iteration))
        effect = None if found is None else found.effect
        self.events.emit(
            QuestionJudged(
                name,
                candidate.text,
                good,
                candidate.kind,
                candidate.sources,
                candidate.comments,
                effect,
                problem,
                iteration,
            )
        )

    def _speaking_against(
        self,
        best: Draft,
        chosen: Mapping[str, Candidate],
        seen: Observation,
        sides: Mapping[str, tuple[list[str], list[str]]],
    ) -> set[str]:
        """Questions of the checklist that praise what people reject; a dimension keeps one that stands for it."""
        logits = yes_logits(seen.verdicts)
        replaced = {each.dimension for each in chosen.values()}
        found = set()
        for question in best.questions.questions:
            fine, poor = sides.get(self._rated(question.dimension), ([], []))
            table = logits.get(question.id, {})
            known = speaks_against(
                [table[each] for each in poor if each in table],
                [table[each] for each in fine if each in table],
                question,
            )
            if known and question.dimension in replaced:
                found.add(question.id)
                self.events.say(f"question {question.id} is left out: it speaks for what people reject")
        return found

    async def _draft(
        self,
        best: Draft,
        chosen: Mapping[str, Candidate],
        logits: Mapping[str, Mapping[str, float]],
        sides: Mapping[str, tuple[list[str], list[str]]],
        dropped: Collection[str],
    ) -> Draft:
        """The judge with the chosen questions, its verdicts read against accepted development outputs."""
        old = best.questions
        weight = mean_score(each.weight for each in old.questions if each.weight > 0) or 1.0
        new: list[Question] = []
        for name, candidate in chosen.items():
            found = self._standing(name, candidate, logits, sides)
            assert found is not None  # it would not have been chosen
            new.append(as_question(candidate, name, found.good, weight))
        sections = {
            section: weights | {each.id: each.weight for each in new}
            for section, weights in old.section_weights.items()
        }
        kept = tuple(each for each in old.questions if each.id not in dropped)
        sections = {
            section: {name: weight for name, weight in weights.items() if name not in dropped}
            for section, weights in sections.items()
        }
        checklist = old.model_copy(update={"questions": (*kept, *new), "section_weights": sections})
        origins = {
            name: QuestionOrigin.model_validate({"from": each.kind, "sources": each.sources, "comments": each.comments})
            for name, each in chosen.items()
        }
        draft = replace(best, checklist=checklist, calibration=None, origins={**best.origins, **origins})
        whole = await self.subject.observe(draft, self.development, self.events.advance)
        calibration = fit_accepted(whole.verdicts, self.development, checklist, self.targets)
        return replace(draft, calibration=calibration)


def _rank(found: Standing | None) -> tuple[float, float]:
    return (-1.0, 0.0) if found is None else found.rank


def _in_turn(names: Sequence[str], named: Mapping[str, Candidate]) -> list[str]:
    """The best question of every comment first, then the second best of each: on a few examples many look alike."""
    of_comment: dict[object, int] = {}
    turns: dict[str, int] = {}
    for name in names:
        key = named[name].comments or name
        turns[name] = of_comment[key] = of_comment.get(key, -1) + 1
    return sorted(names, key=turns.__getitem__)
