"""A generator whose prompt is improved: it writes outputs, then a judge, a checker or both look at them.

The signal of the loop is the questions and checks that its outputs fail (BinEval §3.4).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, Protocol, runtime_checkable

from ...agents.checks import Checker, computed_verdicts, run_checker
from ...agents.evaluator import Evaluator
from ...agents.example_questions import OWN, ExampleQuestions, judge_by_own
from ...agents.generator import Generated, Generator
from ...agents.judging import Judging
from ...agents.traces.replay import replay_said
from ...evaluation.contract.schemas import is_cut
from ...evaluation.scoring import ExampleScore, mean_score, score_examples
from ...memory.records import InstructionRecord, PassRatesRecord
from ...models.base import Model
from ...models.request_form import Thinking
from ...models.writing import AS_THE_RUN
from ...prompts.checklist import Checklist, Computed, ComputedCheck, ComputedMeasure, Question
from ...prompts.errors import InputError
from ...prompts.examples import Example, documents
from ...prompts.formatting import count
from ...prompts.human_feedback import Comment, comments_on, told
from ...prompts.lessons import Disagreement, Lesson
from ...prompts.prompt import Prompt
from ...prompts.verdicts import Side, Verdict
from ...stats.differences import mean_difference
from ...stats.resampling import Resampling
from ..acceptance import Yardstick
from ..mode import RunContext
from ..signals import Reasons, disputed, explanations, take_turns
from ..subject import Draft, Observation, Outcome, Pair, WritingCost, by_pair


@dataclass(frozen=True)
class OutputJudge:
    """A model that judges outputs, with a prompt that is not changed."""

    model: Model
    prompt: Prompt
    judging: Judging
    soft: bool


@dataclass
class OldVerdicts:
    """The outputs of an old model, and the requirements that they keep. Each output is judged once."""

    verdicts: list[Verdict] = field(default_factory=list)
    checklists: dict[str, Checklist] = field(default_factory=dict)
    """The requirements for each output, by example id."""
    kept: dict[Pair, bool] = field(default_factory=dict)
    """Whether an output keeps a requirement, by example and question, where there is a verdict."""
    seen: list[Observation] = field(default_factory=list)
    """Observations in the order of judging."""

    async def judge(self, subject: GeneratorSubject, examples: Sequence[Example]) -> None:
        """Judge the outputs that the examples carry. Raises the errors of :meth:`GeneratorSubject.observe`."""
        seen = await subject.look_at([Generated(each) for each in examples], OLD)
        self.seen.append(seen)
        self.verdicts += seen.verdicts
        self.checklists |= seen.own_checklists
        for verdict in seen.verdicts:
            good = seen.polarity(verdict.example, verdict.question).is_good(verdict.answer)
            if good is not None and not verdict.replicate:
                self.kept[verdict.example, verdict.question] = good


OLD = "old"
"""Name in verdicts for the prompt that wrote the outputs of the old model."""
CUT_TEXTS = 0.1
"""Least share of outputs with a text cut by the JSON schema, before this is reported."""


@runtime_checkable
class AnswersWithRecords(Protocol):
    """A model whose answers are records of its actions, which hold the text to be judged."""

    def shown(self, example: Example) -> Example:
        """Return an example whose output is a record, as judges, checkers and note-takers see it."""
        ...


@dataclass(frozen=True)
class GeneratorSubject:
    """A generator model that writes with the prompt of a draft."""

    generator: Generator
    """The model with its settings. Its prompt is replaced by the draft's."""
    judge: OutputJudge | None
    """Answers the questions; None where only a checker looks at outputs."""
    checklist: Checklist | None
    """Questions and checks for every example; None where each has its own questions, or only a checker looks."""
    questions: ExampleQuestions | None
    """Writes each example's own questions."""
    checker: Checker | None
    """The user's function. Its checks may differ between examples."""
    score_as: Literal["all", "mean"]
    """An output's score: ``all`` is 1 only if it passes everything, ``mean`` is the share passed (or mean P(yes))."""
    tally: Callable[[Sequence[Verdict]], None]
    """Receives all verdicts."""
    say: Callable[[str], None]
    """Receives messages for people."""
    old: OldVerdicts | None = None
    """Outputs of an old model to compare with. Then only requirements that were judged on the old output count."""
    timed: Callable[[str, int, float], None] | None = None
    """Receives the hash of a draft, and the number and the seconds of the outputs bought for it."""
    thinking: Callable[[Thinking], Model] | None = None
    """Returns the generator's model with another setting of thinking."""
    lessons_from: Side = "both"
    """The side, judge or checker, whose verdicts lessons are drawn from."""
    decide_by: Side = "both"
    """The side whose verdicts make the scores."""
    judged: frozenset[str] | None = None
    """The examples whose outputs the judge is asked about; None: all."""
    _own: dict[str, Checklist] = field(default_factory=dict, init=False)
    _without: set[str] = field(default_factory=set, init=False)
    """Examples for which no questions could be written. All versions of a run lack them; a resumed run asks again."""
    _cut_off: set[str] = field(default_factory=set, init=False)
    """Examples whose cut-off output was reported."""
    _cut_texts: dict[str, int] = field(default_factory=dict, init=False)
    """Number of outputs at the last report that the schema cuts texts, by draft hash."""
    _told: set[str] = field(default_factory=set, init=False)
    """Messages that were sent and are not repeated."""

    async def observe(
        self, draft: Draft, examples: Sequence[Example], on_done: Callable[[int, int], None] | None = None
    ) -> Observation:
        """Write an output for every example and judge or check it. Raises InputError if the checker returned something
        else than checks, or a check has the name of a question."""
        writer = self.writer(draft)
        generated = await writer.generate(examples, on_done)
        self._tell_cut_off(generated, writer.most_tokens)
        self._tell_cut_texts(generated, draft)
        for refused in writer.refused:
            if refused not in self._told:
                self._told.add(refused)
                self.say(refused)
        for said in replay_said(generated) if "replay" not in self._told else ():
            self._told.add("replay")
            self.say(said)
        if isinstance(self.generator.model, AnswersWithRecords):
            shown = self.generator.model.shown
            generated = [each if each.error else replace(each, example=shown(each.example)) for each in generated]
        spent = WritingCost.of(generated)
        if self.timed is not None and spent.timed:
            self.timed(draft.hash, spent.timed, spent.seconds)
        return await self.look_at(generated, draft.hash)

    async def look_at(self, generated: Sequence[Generated], version: str) -> Observation:
        """Judge or check written outputs; ``version`` names the prompt that wrote them. Raises as :meth:`observe`."""
        written = [each.example for each in generated]
        judged = await self._judged(version, generated)
        errors = {each.example.id: each.error or "" for each in generated}
        computed = computed_verdicts(self._computed, written, version, errors)
        checked = run_checker(self.checker, generated, version) if self.checker else []
        verdicts = [*judged, *computed, *checked]
        self.tally(verdicts)
        own = ((example.id, self._checklist_of(example.id, checked)) for example in written)
        checklists = {name: checklist for name, checklist in own if checklist is not None}
        scores = [self._score(example, checklists.get(example.id), verdicts) for example in written]
        cut_off = frozenset(each.example.id for each in generated if each.cut_off)
        spent = WritingCost.of(generated)
        return Observation(written, verdicts, scores, None, checklists, spent, cut_off, self.lessons_from)

    async def probe(self, draft: Draft, pairs: Sequence[Pair], seen: Observation) -> dict[Pair, Verdict]:
        """Write and judge the examples of the pairs anew."""
        wanted = {example for example, _ in pairs}
        found = await self.observe(draft, [each for each in seen.examples if each.id in wanted])
        new = by_pair(found.verdicts)
        return {pair: new[pair] for pair in pairs if pair in new}

    def evaluator(self, draft: Draft, example: str) -> Evaluator | None:
        """Return the judge of an example's questions; None where only a checker looks at it."""
        checklist = self._asked_of(example)
        return self._evaluator(self.judge, checklist) if checklist is not None and self.judge is not None else None

    @cached_property
    def _shared(self) -> Checklist | None:
        return self.checklist.asked_alone if self.checklist else None

    @property
    def _computed(self) -> tuple[ComputedCheck | ComputedMeasure, ...]:
        return self.checklist.computed if self.checklist else ()

    def _asked_of(self, example: str) -> Checklist | None:
        """Return the questions that the judge is asked about an example; None where it is asked nothing."""
        return self._own.get(example, self._shared) if self._is_judged(example) else None

    def _is_judged(self, example: str) -> bool:
        return self.judged is None or example in self.judged

    def _evaluator(self, judge: OutputJudge, checklist: Checklist) -> Evaluator:
        return Evaluator(self.generator.gateway, judge.model, judge.prompt, checklist, judge.judging, role="judge")

    async def _judged(self, version: str, generated: Sequence[Generated]) -> list[Verdict]:
        """Return the judge's verdicts. Where an output could not be written, its verdicts have an error."""
        if self.judge is None:
            return []
        generated = [each for each in generated if self._is_judged(each.example.id)]
        written = [each.example for each in generated if each.example.output is not None]
        verdicts: list[Verdict] = []
        if self._shared is not None:
            verdicts += await self._evaluator(self.judge, self._shared).judge(written)
        elif self.questions is not None:
            await self._write_questions([each.example for each in generated])
            asked = [each for each in written if each.id in self._own]
            if asked:
                own_verdicts = await judge_by_own(self._evaluator(self.judge, OWN), asked, self._own)
                verdicts += [replace(each, asked=None) for each in own_verdicts]
        for each in generated:
            checklist = self._asked_of(each.example.id)
            if each.example.output is None and checklist is not None:
                by, why = (self.judge.model.name, version), f"not generated: {each.error}"
                verdicts += [
                    Verdict(each.example.id, question.id, *by, None, status="api_error", error=why)
                    for question in checklist.questions
                ]
        return verdicts

    def writer(self, draft: Draft) -> Generator:
        """Return the generator with a draft's prompt and settings."""
        writing = draft.writing or AS_THE_RUN
        model = self.generator.model
        if writing.thinking is not None and self.thinking is not None:
            model = self.thinking(writing.thinking)
        return replace(self.generator, prompt=draft.prompt, writing=writing, model=model)

    def _tell_cut_off(self, generated: Sequence[Generated], most_tokens: int) -> None:
        """Report once that outputs are cut off at the token limit. They are judged all the same."""
        found = {each.example.id for each in generated if each.cut_off}
        if found and not self._cut_off:
            self._cut_off.update(found)
            self.say(
                f"{len(found)} of {count(len(generated), 'output')} {'ends' if len(found) == 1 else 'end'} where "
                f"max_output_tokens ({most_tokens}) cut them off, and are judged as they are"
            )

    def _tell_cut_texts(self, generated: Sequence[Generated], draft: Draft) -> None:
        """Report that texts end at the length limit of the JSON schema; again only for twice as many outputs."""
        schema = (draft.writing or AS_THE_RUN).json_schema
        if schema is None or len(generated) < 2 * self._cut_texts.get(draft.hash, 0):
            return
        found = sum(each.example.output is not None and is_cut(each.example.output, schema) for each in generated)
        if found >= CUT_TEXTS * len(generated):
            self._cut_texts[draft.hash] = len(generated)
            self.say(
                f"{found} of {count(len(generated), 'output')} have a text that ends where the JSON schema ends it, perhaps "
                "within a word, and are judged as they are"
            )

    async def _write_questions(self, examples: Sequence[Example]) -> None:
        def failed(example: str, reason: str) -> None:
            self._without.add(example)
            self.say(f"no questions for the example '{example}': {reason}")

        missing = [each for each in examples if each.id not in self._own and each.id not in self._without]
        if missing and self.questions is not None:
            self._own.update(await self.questions.write(missing, failed))

    def _checklist_of(self, example: str, checked: Sequence[Verdict]) -> Checklist | None:
        """Return an example's questions and checks; None where it has none and so gets no score."""
        asked = self._asked_of(example)
        questions = [*(asked.questions if asked else ()), *self._computed]
        checks = [each.question for each in checked if each.example == example]
        if same := {each.id for each in questions}.intersection(checks):
            raise InputError(
                f"The checker has a check named '{min(same)}', and so is a question (example '{example}'); give one of "
                "them another name, or their answers cannot be told apart."
            )
        by = "" if self.checker is None else self.checker.name
        questions += [
            ComputedCheck(id=name, text=f"Does the output pass the check '{name}'?", kind="checker", value=by)
            for name in checks
        ]
        if self.old is not None:
            questions = [each for each in questions if (example, each.id) in self.old.kept]
        if not questions:
            return None
        common = self.checklist
        by_section = {} if common is None or example in self._own else common.section_weights
        return Checklist(
            task=common.task if common else "",
            questions=tuple(questions),
            answers=common.answers if common else None,
            section_weights={name: {**weights, **dict.fromkeys(checks, 1.0)} for name, weights in by_section.items()},
        )

    def _score(self, example: Example, checklist: Checklist | None, verdicts: Sequence[Verdict]) -> ExampleScore:
        if checklist is not None and self.decide_by != "both":
            by_code = self.decide_by == "checker"
            checklist = checklist.of([each for each in checklist.questions if isinstance(each, Computed) == by_code])
        if checklist is None:
            return ExampleScore(example.id, None, {})
        ids = {each.id for each in checklist.questions}
        example_verdicts = [each for each in verdicts if each.example == example.id and each.question in ids]
        soft = self.judge.soft if self.judge else False
        score = score_examples([example], checklist, example_verdicts, soft=soft and self.score_as == "mean")[0]
        if self.score_as == "all" and score.overall is not None:
            weights = checklist.weights(checklist.section_of(example.metadata))
            counted = (each for each in example_verdicts if weights[each.question] > 0 and not each.is_measured)
            passed = (checklist.question(each.question).is_good(each.answer) for each in counted)
            return replace(score, overall=float(all(passed)))
        return score


@dataclass(frozen=True)
class FailureSignal:
    """The signal of failures: every question with a weight should get its good answer, and every check be passed.

    Clear failures are read first. Examples take turns, so that one bad output does not use up all notes.
    """

    judge: Callable[[Draft, str], Evaluator | None] | None
    """Returns the judge of one example's questions, or None where only a checker looks at it. None: no explanations are
    bought. A checker's reasons are read in any case."""
    comments: Mapping[str, Sequence[Comment]] = field(default_factory=dict)
    """People's comments on an earlier output for the same request, by example id."""
    old: OldVerdicts | None = None
    """Outputs of an old model. A requirement that the old output fails, too, is no failure here (METHOD.md, part 6)."""

    def disagreements(self, draft: Draft, seen: Observation) -> list[Disagreement]:
        """Return the failures as disagreements with the good answer."""
        failed: dict[str, list[Disagreement]] = {}
        for verdict in seen.teaching:
            if not self._counts(verdict):
                continue
            question = seen.polarity(verdict.example, verdict.question)
            if question.is_good(verdict.answer) is False and not verdict.replicate:
                p_good = question.p_good(verdict.p_yes) or 0.0
                failure = Disagreement(
                    example=verdict.example,
                    question=verdict.question,
                    target=question.is_good(False),
                    reference=question.is_good(True),
                    gap=1 - p_good,
                    target_p_yes=question.p_good(p_good),
                    reference_p_yes=question.p_good(1.0),
                )
                failed.setdefault(verdict.example, []).append(failure)
        return take_turns(sorted(group, key=lambda each: -each.gap) for group in failed.values())

    def agrees(self, seen: Observation) -> bool:
        """Whether nothing fails, and no verdict that counts is missing."""
        return bool(seen.teaching) and all(
            seen.polarity(each.example, each.question).is_good(each.answer)
            for each in seen.teaching
            if self._counts(each) and not each.is_measured
        )

    def _counts(self, verdict: Verdict) -> bool:
        return self.old is None or self.old.kept.get((verdict.example, verdict.question), False)

    def is_like(self, verdict: Verdict) -> bool:
        """Return True, because there is only one judge."""
        return True

    def reference(self, draft: Draft, example: str, question: str) -> float | None:
        """Return 1: the good answer is always wanted."""
        return 1.0

    async def reasons(self, draft: Draft, seen: Observation, disagreements: Sequence[Disagreement]) -> Reasons:
        """Return the judge's or checker's reasons against the output, and people's comments on an earlier output."""
        objections: dict[str, str] = {}
        for verdict in disputed(seen, disagreements):
            if verdict.explanation is not None:
                objections[f"{verdict.example}/{verdict.question}"] = verdict.explanation
            elif (judge := self._judge_of(draft, verdict)) is not None:
                objections |= await explanations(judge, [verdict], seen.examples)
        for disagreement in disagreements:
            checklist = seen.own_checklists.get(disagreement.example, seen.checklist)
            remarks = self.comments.get(disagreement.example, ())
            if checklist is not None and (said := told(comments_on(remarks, disagreement.question, checklist))):
                about = f'People said of an earlier output for this request: "{said}"'
                objections[disagreement.key] = (
                    f"{objections[disagreement.key]} {about}" if disagreement.key in objections else about
                )
        return Reasons(theirs=objections)

    def _judge_of(self, draft: Draft, verdict: Verdict) -> Evaluator | None:
        """Return the judge that can explain a verdict; None for a checker's verdict, or if no explanation is bought."""
        judge = self.judge(draft, verdict.example) if self.judge else None
        asked = () if judge is None else judge.checklist.questions
        return judge if any(each.id == verdict.question for each in asked) else None


def effect_facts(
    context: RunContext, yardstick: Yardstick, outcome: Outcome, tests: Mapping[int, Observation]
) -> dict[str, Any]:
    """Make ``instructions`` of ``result.json``: the effect of each lesson in the best prompt on its requirements.

    The prompt is measured as a whole, so two instructions about one requirement share its gain. The list is empty if no
    instruction was accepted, or if each example has its own questions.
    """
    options, splits = context.job.options, context.splits
    baseline, best = outcome.baseline, outcome.best
    sides = {"validation": (splits.validation, baseline.verdicts, best.verdicts)}
    if baseline.number in tests and best.number in tests:
        sides["test"] = (splits.test, tests[baseline.number].verdicts, tests[best.number].verdicts)
    asked = _asked_of_all(outcome)
    found = []
    held = {name for edit in best.edits for name in edit.lessons}
    for lesson in (each for each in context.memory.lessons if each.id in held):
        for name in (each for each in _requirements(lesson, outcome) if each in asked):
            rates: dict[str, PassRatesRecord | None] = {"validation": None, "test": None}
            for split, (examples, first, last) in sides.items():
                before, after = (_passed(asked[name], verdicts, examples) for verdicts in (first, last))
                resampling = Resampling(documents(examples), options.resamples, seed=options.seed)
                rates[split] = _effect(before, after, resampling)
            facts: dict[str, Any] = {
                "lesson": lesson.id,
                "text": lesson.text,
                "requirement": name,
                "asked": asked[name].criterion,
            }
            found.append(InstructionRecord.model_validate({**facts, **rates}))
    return {"instructions": found}


def _asked_of_all(outcome: Outcome) -> dict[str, Question]:
    """Return questions and checks by id, without ids that mean different questions on different examples."""
    found: dict[str, Question] = {}
    differ: set[str] = set()
    for seen in outcome.seen.values():
        for checklist in seen.own_checklists.values():
            for question in checklist.questions:
                if found.setdefault(question.id, question).criterion != question.criterion:
                    differ.add(question.id)
    return {name: question for name, question in found.items() if name not in differ}


def _requirements(lesson: Lesson, outcome: Outcome) -> list[str]:
    """Return the ids of the questions and checks that a lesson is about."""
    if lesson.requirement is not None:
        return [lesson.requirement]
    behind = set(lesson.evidence)
    verdicts = [each for seen in outcome.seen.values() for each in seen.verdicts]
    return list(dict.fromkeys(each.question for each in verdicts if f"{each.example}/{each.question}" in behind))


def _passed(question: Question, verdicts: Sequence[Verdict], examples: Sequence[Example]) -> list[float | None]:
    """Return whether each example's output passes, 0 or 1 (with replicates their share); None without an answer."""
    answers: dict[str, list[float]] = {}
    for each in verdicts:
        good = question.is_good(each.answer) if each.question == question.id else None
        if good is not None:
            answers.setdefault(each.example, []).append(float(good))
    return [mean_score(answers.get(example.id, [])) for example in examples]


def _effect(before: Sequence[float | None], after: Sequence[float | None], resampling: Resampling) -> PassRatesRecord:
    pairs = [(old, new) for old, new in zip(before, after, strict=True) if old is not None and new is not None]
    rates = [mean_score(side) for side in zip(*pairs, strict=True)] if pairs else [None, None]
    gain = mean_difference(before, after, resampling)
    return PassRatesRecord(before=rates[0], after=rates[1], n=len(pairs), gain=gain)
