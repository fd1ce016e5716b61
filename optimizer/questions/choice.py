"""The choice of candidates worth asking: first checked on a few examples, then judged on all; repeats are joined.

A few examples show which candidates the judge can answer at all. The other examples show which candidates speak
against rejected outputs that they do not come from. The candidates that are left join the checklist. They are weighed
by effect and noise and read against the accepted outputs
(:func:`~askance.evaluation.calibration_fit.fit_accepted`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Literal

from ...evaluation.calibration_fit import fit_accepted
from ...evaluation.kept_judge import QuestionOrigin
from ...evaluation.measures.fitting import FittedMeasure, MeasureTable, Worth, documents_of
from ...evaluation.scoring import Targets, mean_score
from ...memory.records import BothWaysRecord, CriterionRecord
from ...prompts.checklist import Question, Sees
from ...prompts.criteria.wording import oddity
from ...prompts.examples import Example
from ...prompts.human_feedback import one_line
from ...prompts.verdicts import Verdict
from ...stats.correlation import spearman
from ..events import QuestionJudged, Teller
from ..subject import Draft, Observation, Subject
from .candidates import (
    Asked,
    Fate,
    Standing,
    agreeing,
    as_question,
    fates_of,
    free_id,
    standing,
    turned,
    weighed,
    yes_logits,
)
from .presentation import BOTH_WAYS, COMPARED, COMPARED_ON, Compared, Groups, ask_both_ways, ways_left
from .racing import (
    FEW_REJECTED,
    NO_ROOM,
    SAME_AS,
    SCREENED,
    Sides,
    SubjectMatter,
    as_measured,
    first_of,
    in_line,
    joining,
    places,
    sides_by_dimension,
    sides_on,
    steps,
    with_places,
)

NO_MEASURES = MeasureTable({}, {})
CHANCE = "it speaks against other rejected outputs by less than a standard error"
SAID_OF = {
    "flipped": "turned round on trial: it speaks for what people reject",
    "dropped": "left out on trial: it speaks for what people reject",
    "idle": "left out on trial: it speaks against what people reject by less than those that join have to",
}
"""Words for the fate of a question of the start that is changed or left out."""
OUT = ("dropped", "idle")
MOST_TRIED = 2
"""Most new wordings of a question that are judged."""
ALIKE_RANKED = 0.9
"""Spearman's correlation of P(yes) above which two wordings are one question."""
OWN_CASES = 4
"""Most of a candidate's own sources that it is judged on first."""


@dataclass(frozen=True)
class Chosen:
    """Candidates that are worth asking, by id, and the judge's answers to them."""

    candidates: Mapping[str, CriterionRecord] = field(default_factory=dict)
    """The best first."""
    logits: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Log-odds of yes by question and example."""
    measured: tuple[FittedMeasure, ...] = ()
    """Measures that join, the best first."""


@dataclass(frozen=True)
class Widened:
    """The judge with new questions."""

    whole: Draft
    lean: Draft
    """The judge without idle questions of the start; the same as ``whole`` if no question is idle."""
    idle: tuple[str, ...] = ()


@dataclass
class Chooser:
    """Chooses among candidates by the judge's answers to them on some examples.

    Methods that ask the judge raise the same errors as :meth:`~askance.optimizer.subject.Subject.observe`.
    """

    subject: Subject
    targets: Targets
    examples: Sequence[Example]
    events: Teller
    most: int
    """Questions that may join in one round."""
    parts: int = 1
    """Number of parts of the examples whose comments led to candidates: development, and perhaps validation."""
    mode: Literal["auto", "each", "batched"] = "each"
    """Whether each question is a call of its own; ``auto``: :meth:`asked_as_it_answers` decides."""
    keeps_start: bool = False
    """Whether the questions of the start stay unchanged, whatever the examples show."""
    groups: tuple[Groups, Groups] = field(default_factory=lambda: (Groups(), Groups()))
    """Groups of candidates that share a call, at the first look and in the race; only for mode ``batched``."""
    table: MeasureTable = NO_MEASURES
    """The measures that may join, with their values on all examples."""
    told: bool = True
    """Whether the fate of candidates is reported; False for a judge that is learned only to be tested on a fold."""
    learned: list[CriterionRecord] = field(default_factory=list, init=False)
    """All candidates so far, with their fate."""

    def sides(self) -> dict[str, tuple[list[str], list[str]]]:
        """Return accepted and rejected examples by dimension; see :func:`~.racing.sides_by_dimension`."""
        return sides_by_dimension(self.examples, self.targets)

    async def asked_as_it_answers(
        self, best: Draft, named: Mapping[str, CriterionRecord]
    ) -> tuple[Draft, BothWaysRecord | None]:
        """Decide whether ``best`` is asked several questions in one call.

        Returns ``best`` with that mode, and the record of the comparison; None where nothing had to be compared. No
        label is looked at, so that one decision holds for all folds.
        """
        if self.mode != "auto" or best.mode is not None or not named:
            return best, None
        self.events.phase("asking some questions alone and together")
        some, sides = _most_told(named, BOTH_WAYS), self.sides()
        found = await ask_both_ways(
            lambda mode: self._own_cases(replace(best, mode=mode), some, sides, named, first_of(sides, 0)), self.events
        )
        return replace(best, mode=found.mode), found

    async def seen_as_helps(self, best: Draft, named: Mapping[str, CriterionRecord]) -> Sees:
        """Decide how the judge sees an example: whole, the output alone, or with a quote asked for.

        Some candidates are asked in each way. Their effects on rejected outputs that they do not come from decide.
        All folds of a proof use the same way, because a judge that sees something else is another judge. This one
        choice among three, for all candidates together, does look at labels of the examples that later test the judge.
        Candidates about a relation have a view of their own and are left out.
        """
        ways: list[Sees] = ["all"]
        ways += ["output"] if best.prompt.can_show_less_of(self.examples) else []
        ways += [] if self._is_grouped(best) else ["quote"]  # a question with a quote needs a call of its own
        if not named or len(ways) == 1:
            return ways[0]
        topics = {name: each for name, each in named.items() if not each.is_relation}
        if not topics:
            return ways[0]
        self.events.phase("asking some questions in several ways")
        sides, sample = self.sides(), _most_told(topics, COMPARED)
        found: dict[Sees, dict[str, Standing | None]] = {}
        for share in COMPARED_ON:
            part = first_of(sides, share, share)
            for way in ways:
                shown = {name: each.but(sees=way) for name, each in sample.items()}
                logits = await self._own_cases(best, shown, sides, topics, part)
                found[way] = {name: self._standing(name, each, logits, sides) for name, each in shown.items()}
            if share != COMPARED_ON[-1]:
                ways = [*ways_left(found)]
                found = {way: found[way] for way in ways}
            if len(ways) == 1:
                break
        compared = Compared.of(found)
        self.events.say(compared.sentence)
        return compared.taken

    async def choose(
        self,
        best: Draft,
        named: Mapping[str, CriterionRecord],
        seen: Observation,
        iteration: int,
        measured: tuple[FittedMeasure, ...] = (),
    ) -> Chosen:
        """Choose the candidates that are worth asking beside the questions of ``best`` and the measures that join."""
        if not named:
            return Chosen(measured=measured)
        sides = self.sides()
        self.events.phase(f"iteration {iteration}: trying {len(named)} questions on the outputs that they come from")
        logits = await self._first_look(best, named, sides)
        found = {name: self._standing(name, each, logits, sides) for name, each in named.items()}
        relations = {name for name, each in named.items() if each.is_relation}
        # a relation stands out little on a few outputs, so it is dropped only if other outputs speak against it
        able = [
            name for name, each in found.items() if _is_able(each) or (name in relations and not _is_hopeless(each))
        ]
        # a question that says the same as a measure costs a call an output for nothing
        values = {each.measure.id: self.table.values[each.key] for each in measured}
        measure_twins = as_measured(able, logits, values)
        able = [name for name in able if name not in measure_twins]
        subject_matter = SubjectMatter({each.id: each.output or "" for each in self.examples}, named.values())
        one_offs = {name for name in able if subject_matter.is_of_one(named[name])}
        ranked = in_line(sorted(able, key=lambda name: _rank(found[name]), reverse=True), named, one_offs)
        racers, unused = _cut(ranked, places(self.parts, self.most), NO_ROOM[0], relations, more=False)
        unused |= {name: SAME_AS.format(measure) for name, measure in measure_twins.items()}
        unused |= dict.fromkeys(one_offs & unused.keys(), NO_ROOM[3])
        for all_rejected, part, room in [*steps(sides, self.most), (True, None, self.most)]:
            if not racers:
                break
            raced_logits = await self._raced(best, {name: named[name] for name in racers}, named, part, iteration)
            # keep the answers on a question's own outputs: the part may lack them
            logits = {name: {**logits.get(name, {}), **raced_logits.get(name, {})} for name in racers}
            found |= {name: self._standing(name, named[name], logits, sides) for name in racers}
            ranked = sorted(racers, key=lambda name: _rank(found[name]), reverse=True)
            if part is not None:
                # not earlier: a rare fault may not have been seen yet, and few accepted outputs give a rough centre
                if all_rejected:
                    ranked = [name for name in ranked if not _is_hopeless(found[name])]
                racers, out = _cut(ranked, room, NO_ROOM[1], relations)
                unused |= out
        ranked = [name for name in ranked if _is_able(found[name])] if racers else []
        unused |= {name: CHANCE for name in ranked if _is_chance(found[name])}
        strong_names = [name for name in ranked if not _is_chance(found[name])]
        # only the first comment: further ones come from questions that turned out to ask the same
        remarks = {name: next(iter(each.comments), None) for name, each in named.items()}
        asked = yes_logits(seen.verdicts) | values
        last = joining(strong_names, logits, asked, room=self.most, remarks=remarks)
        unused |= last.unused
        chosen = {name: named[name] for name in last.kept}
        for name, twin in last.twins.items():
            if twin in chosen:
                chosen[twin] = chosen[twin].with_sources_of(named[name])
        written = {each.id: {one_line(comment.text) for comment in each.comment} for each in self.examples}
        for name, each in chosen.items():
            if (now := self._standing(name, each, logits, sides)) is not None and not now.was_said:
                fine = sides[self._rated(each.dimension)][0]
                chosen[name] = agreeing(each, now.good, logits[name], fine, written)
        for name, candidate in named.items():
            self._tell(name, chosen.get(name, candidate), found[name], unused.get(name), iteration)
        return Chosen(chosen, {name: logits[name] for name in chosen}, measured)

    def measured(self, best: Draft, iteration: int) -> tuple[FittedMeasure, ...]:
        """Choose the measures that join, for each rated dimension. Nothing is asked of the judge."""
        there = {each.measure for each in best.questions.measures}
        table = self.table.without({name for name, each in self.table.measures.items() if each.measure in there})
        documents, taken = documents_of(self.examples), {each.id for each in best.questions.questions}
        joined: list[FittedMeasure] = []
        for rated in self.sides():
            known = ((each.id, self.targets.wanted[each.id].get(rated)) for each in self.examples)
            wanted = {name: value for name, value in known if value is not None}
            dimension = rated if rated in best.questions.dimensions else best.questions.dimensions[0]
            choice = table.choose(wanted, documents, dimension, self._worth())
            for name, each in choice.looked_at.items():
                own = each.named(free_id(name, taken))
                taken.add(own.measure.id)
                joined += [own] if name not in choice.unused else []
                self._tell_measure(own, choice.unused.get(name), iteration)
        return tuple(sorted(joined, key=lambda each: -each.strength))

    def _worth(self) -> Worth | None:
        """Return how a measure's effect is computed on pairs; None where each output has a label of its own."""
        return None

    def _tell_measure(self, found: FittedMeasure, unused: str | None, iteration: int) -> None:
        measure = found.measure
        record = CriterionRecord.of(measure.text, measure.dimension, "measure").but(
            id=measure.id, good=measure.good, reason=unused, effect=round(found.effect, 4), iteration=iteration
        )
        self.learned = [*(each for each in self.learned if each.id != measure.id), record]
        if self.told:
            self.events.emit(QuestionJudged(record))

    def drafts(self, best: Draft, chosen: Chosen, seen: Observation) -> Widened:
        """Return the judge with the chosen questions, uncalibrated; it is ``best`` where nothing is new.

        Questions of ``best`` that praise what people reject are turned round or left out, by the verdicts of ``best``
        in ``seen``. This happens also where no candidate was chosen.
        """
        fates = self._fates(best, chosen.candidates, seen)
        if not chosen.candidates and not chosen.measured and not fates:
            return Widened(best, best)
        sides, old = self.sides(), best.questions
        weight = mean_score(each.weight for each in old.questions if each.weight > 0) or 1.0
        found = {  # all of them, or they would not have been chosen
            name: told
            for name, each in chosen.candidates.items()
            if (told := self._standing(name, each, chosen.logits, sides)) is not None
        }
        found |= {each.measure.id: Standing(0.0, each.effect, each.noise) for each in chosen.measured}
        weights = weighed(found, weight)
        new = [as_question(each, name, found[name].good, weights[name]) for name, each in chosen.candidates.items()]
        new += [each.measure.model_copy(update={"weight": weights[each.measure.id]}) for each in chosen.measured]
        origins = {
            name: QuestionOrigin(origin=each.origin, sources=each.sources, comments=each.comments)
            for name, each in chosen.candidates.items()
        } | {each.measure.id: QuestionOrigin(origin="measure") for each in chosen.measured}

        def without(*out: Fate) -> Draft:
            kept = [
                turned(each) if fates.get(each.id) == "flipped" else each
                for each in old.questions
                if fates.get(each.id) not in out
            ]
            ids = {each.id for each in kept}
            sections = {
                section: {name: weight for name, weight in weights.items() if name in ids}
                | {each.id: each.weight for each in new}
                for section, weights in old.section_weights.items()
            }
            checklist = old.model_copy(update={"questions": (*kept, *new), "section_weights": sections})
            return replace(best, checklist=checklist, calibration=None, origins={**best.origins, **origins})

        idle = tuple(name for name, fate in fates.items() if fate == "idle")
        whole = without("dropped")
        return Widened(whole, without("dropped", "idle") if idle else whole, idle)

    async def read(self, best: Draft, *drafts: Draft) -> list[Draft]:
        """Calibrate drafts on accepted examples. Only the first is judged; the others ask some of its questions. They
        are returned unchanged if ``best`` is not calibrated and the first asks no new question."""
        known = {each.id for each in best.questions.questions}
        asks_more = any(each.id not in known for each in drafts[0].questions.asked)
        if best.calibration is None and not asks_more:
            return list(drafts)  # without a calibration the prompt can still be edited
        # the race has bought the verdicts on all examples, unless several questions share a call
        examples, ways = self.examples, [True, False]
        if self._is_grouped(best):
            both = (sides_on(each, self.examples, self.targets) for each in self.targets.dimensions)
            fine = {name for accepted, _ in both for name in accepted}
            examples, ways = [each for each in self.examples if each.id in fine], [True]
        told = await self.subject.observe(drafts[0], examples, self.events.advance)
        return [self._read_best(each, told, ways) for each in drafts]

    def _read_best(self, draft: Draft, told: Observation, ways: Sequence[bool]) -> Draft:
        """Read each question beside the others, or alone where the judge then ranks the examples more like people do.

        The answers to the other questions tell how readily the model says yes, or the quality that all questions ask
        about. Only the first should be taken off.
        """
        verdicts = draft.own(told.verdicts)
        wanted = [self.targets.overall(each.id) for each in told.examples]

        def ranks(read: Draft) -> float:
            scores = {each.example: each.overall for each in read.scores(told.examples, verdicts, soft=True)}
            return spearman([scores[each.id] for each in told.examples], wanted).value or 0.0

        fits = [fit_accepted(verdicts, self.examples, draft.questions, self.targets, leans=leans) for leans in ways]
        return max((replace(draft, calibration=each) for each in fits), key=ranks)

    async def reworded(
        self, best: Draft, chosen: Chosen, writer: Callable[[CriterionRecord], Awaitable[Sequence[str]]]
    ) -> dict[str, str]:
        """Find new words for chosen candidates that read oddly; returns them by id.

        New words are taken only if the judge ranks the outputs alike with them. No label is looked at, so that one
        wording holds for all folds. Where several questions share a call, the words stay, because an answer depends on
        the other questions of its call.
        """
        found: dict[str, str] = {}
        for name, candidate in chosen.candidates.items() if not self._is_grouped(best) else ():
            if candidate.is_relation or (odd := oddity(candidate.text)) is None:
                continue
            known = chosen.logits[name]
            examples = [each for each in self.examples if each.id in known]
            for text in (await writer(candidate))[:MOST_TRIED]:
                self.events.phase(f"asking {name} in other words")
                new_logits = (await self._judge(best, [({name: candidate.but(text=text)}, examples)])).get(name, {})
                correlation = spearman(
                    [known[each.id] for each in examples], [new_logits.get(each.id) for each in examples]
                ).value
                if correlation is not None and correlation > ALIKE_RANKED:
                    found[name] = text
                    self.events.say(
                        f"{name}, as {odd}, is asked in other words, which rank alike ({correlation:.2f}): {text}"
                    )
                    break
            else:
                self.events.say(
                    f"{name} reads oddly ({odd}), and no other words rank the outputs alike: {candidate.text}"
                )
        return found

    def say(self, names: Sequence[str], fate: Fate) -> None:
        """Report the fate of questions of the start, unless ``told`` is False."""
        for name in names if self.told else ():
            self.events.say(f"question {name} is {SAID_OF[fate]}")

    async def _first_look(
        self, best: Draft, named: Mapping[str, CriterionRecord], sides: Sides
    ) -> dict[str, dict[str, float]]:
        """Return the log-odds of yes on each candidate's own outputs and on some accepted ones.

        Relations are also judged on some rejected outputs. A relation stands out a little on many outputs, so its own
        outputs tell little.
        """
        found: dict[str, dict[str, float]] = {}
        for relation in (False, True):
            some = {name: each for name, each in named.items() if each.is_relation is relation}
            if some:
                part = first_of(sides, FEW_REJECTED if relation else 0)
                found |= await self._own_cases(best, some, sides, named, part)
        return found

    async def _own_cases(
        self,
        best: Draft,
        named: Mapping[str, CriterionRecord],
        sides: Sides,
        waiting: Mapping[str, CriterionRecord],
        part: Collection[str],
    ) -> dict[str, dict[str, float]]:
        """Return the log-odds of yes on a part of the examples and on each candidate's own sources.

        A candidate without sources is asked about the least liked outputs instead. A rare fault shows on few outputs,
        but it has to show on the output that the comment was about. ``waiting`` are candidates that may be asked later.
        """
        part = self._asked_on(part, named.values())
        case_candidates: dict[str, dict[str, CriterionRecord]] = {}
        for name, candidate in named.items():
            least = sides.get(self._rated(candidate.dimension), ([], []))[1]
            for each in candidate.sources[:OWN_CASES] or least[:SCREENED]:
                if each not in part:
                    case_candidates.setdefault(each, {})[name] = candidate
        asks: list[tuple[Mapping[str, CriterionRecord], set[str]]]
        if self._is_grouped(best):
            asks = [
                (group, {*part, *(case for case, some in case_candidates.items() if some.keys() & group.keys())})
                for group in self.groups[0].holding(named, waiting)
            ]
        else:  # one example after the other, so that its text stays in the prompt cache for all its questions
            asks = [
                (named, set(part)),
                *((case_candidates[each.id], {each.id}) for each in self.examples if each.id in case_candidates),
            ]
        parts = [(asked, [each for each in self.examples if each.id in ids]) for asked, ids in asks]
        return await self._judge(best, parts)

    async def _raced(
        self,
        best: Draft,
        racing: Mapping[str, CriterionRecord],
        named: Mapping[str, CriterionRecord],
        part: Collection[str] | None,
        iteration: int,
    ) -> dict[str, dict[str, float]]:
        """Return the log-odds of yes for the candidates still in the race; ``part`` None: on all examples."""
        ids = None if part is None else self._asked_on(part)
        examples = [each for each in self.examples if ids is None or each.id in ids]
        self.events.phase(f"iteration {iteration}: judging {len(examples)} examples with {len(racing)} questions")
        asked = self.groups[1].holding(racing, named) if self._is_grouped(best) else [racing]
        return await self._judge(best, [(each, examples) for each in asked])

    def _asked_on(self, part: Collection[str], own: Iterable[CriterionRecord] = ()) -> set[str]:
        """Return the ids of the examples to ask about. Subclasses add to ``part``; candidates ``own`` are also asked
        about their own sources."""
        return {*part}

    def _is_grouped(self, best: Draft) -> bool:
        """Whether several candidates share a call."""
        return (best.mode or self.mode) == "batched"

    async def _judge(
        self, best: Draft, asks: Sequence[tuple[Mapping[str, CriterionRecord], Sequence[Example]]]
    ) -> dict[str, dict[str, float]]:
        """Return the log-odds of yes by candidate and example. Each pair of ``asks`` is judged after the one before."""
        verdicts: list[Verdict] = []
        for named, examples in asks:
            questions = tuple(as_question(each, name, "yes") for name, each in named.items())
            checklist = best.questions.model_copy(update={"questions": questions, "section_weights": {}})
            asked = replace(best, checklist=checklist, calibration=None, origins={})
            verdicts += (await self.subject.observe(asked, examples, self.events.advance)).verdicts
        return yes_logits(verdicts)

    def _standing(
        self, name: str, candidate: CriterionRecord, logits: Mapping[str, Mapping[str, float]], sides: Sides
    ) -> Standing | None:
        dimension_sides = sides.get(self._rated(candidate.dimension))
        if dimension_sides is None:
            return None
        return standing(
            logits.get(name, {}),
            candidate.sources,
            *dimension_sides,
            is_relation=candidate.is_relation,
            documents=documents_of(self.examples),
        )

    def _asked(self, question: Question, table: Mapping[str, float], sides: Sides) -> Asked:
        """Return the answers to a question of the start, on rejected and on accepted outputs."""
        fine, poor = sides.get(self._rated(question.dimension), ([], []))
        rejected, accepted = ([each for each in side if each in table] for side in (poor, fine))
        documents = documents_of(self.examples)
        return Asked(
            question,
            [table[each] for each in rejected],
            [table[each] for each in accepted],
            ([documents[each] for each in rejected], [documents[each] for each in accepted]),
        )

    def _rated(self, dimension: str) -> str:
        """Return the rated dimension that stands for a dimension of the checklist: the same, or else the first."""
        return dimension if dimension in self.targets.dimensions else self.targets.dimensions[0]

    def _tell(
        self, name: str, candidate: CriterionRecord, found: Standing | None, unused: str | None, iteration: int
    ) -> None:
        problem = (
            "too few outputs with an answer to it were accepted, or rejected"
            if found is None
            else found.problem or unused
        )
        record = candidate.but(
            id=name,
            good=None if found is None else found.good,
            reason=problem,
            # nothing seen speaks against these candidates, so more examples may speak for them
            may_return=problem is None or problem in (*NO_ROOM, CHANCE),
            effect=None if found is None else found.effect,
            iteration=iteration,
        )
        self.learned = [each for each in self.learned if each.id != name]  # a candidate that waited is recorded anew
        self.learned.append(record)
        if self.told:
            self.events.emit(QuestionJudged(record))

    def _fates(self, best: Draft, chosen: Mapping[str, CriterionRecord], seen: Observation) -> dict[str, Fate]:
        """Return the fates of the start's questions. Every dimension keeps at least one question."""
        if self.keeps_start:
            return {}
        logits, sides = yes_logits(seen.verdicts), self.sides()
        asked: dict[str, Asked] = {}
        for question in best.questions.questions:
            asked[question.id] = self._asked(question, logits.get(question.id, {}), sides)
        joined = {each.dimension for each in chosen.values()}
        fates = fates_of(asked, joined)
        kept_dimensions = {asked[name].question.dimension for name, fate in fates.items() if fate not in OUT} | joined
        fates = {
            name: fate
            for name, fate in fates.items()
            if fate == "flipped" or (fate in OUT and asked[name].question.dimension in kept_dimensions)
        }
        for fate in ("flipped", "dropped"):
            self.say(sorted(name for name, each in fates.items() if each == fate), fate)
        return fates


def _most_told(named: Mapping[str, CriterionRecord], most: int) -> dict[str, CriterionRecord]:
    """Return the candidates with the most sources, ties by a hash of their words; nearly the same in all folds."""
    order = {name: (-len(each.sources), sha256(each.text.encode()).digest()) for name, each in named.items()}
    return {name: named[name] for name in sorted(named, key=order.__getitem__)[:most]}


def _rank(found: Standing | None) -> tuple[float, float]:
    return (-1.0, 0.0) if found is None else found.rank


def _cut(
    ranked: Sequence[str], room: int, why: str, relations: Collection[str], *, more: bool = True
) -> tuple[list[str], dict[str, str]]:
    """Return the candidates that keep a place, and the reason for each of the others; see
    :func:`.racing.with_places`."""
    left = with_places(ranked, room, relations, more=more)
    return left, dict.fromkeys((name for name in ranked if name not in left), why)


def _is_able(found: Standing | None) -> bool:
    return found is not None and found.problem is None


def _is_hopeless(found: Standing | None) -> bool:
    return found is None or found.is_hopeless


def _is_chance(found: Standing | None) -> bool:
    return found is not None and found.is_chance
