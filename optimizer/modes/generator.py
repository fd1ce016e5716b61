"""A generator whose prompt is improved: it writes, then a judge, a checker or both look at what it wrote.

The signal of ``tune``: questions and checks that a generator's outputs fail (BinEval §3.4).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

from ...agents.evaluator import Evaluator
from ...agents.generator import Generator
from ...evaluation.scoring import ExampleScore, coverage, score_examples
from ...prompts.checklist import Checklist, Question
from ...prompts.errors import InputError
from ...prompts.lessons import Disagreement
from ...prompts.verdicts import Verdict
from ..signals import Reasons, disputed, explanations, take_turns
from ..subject import Draft, Observation, Pair
from .checker import run_checker

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ...agents.example_questions import ExampleQuestions
    from ...agents.generator import Generated
    from ...agents.judging import Judging
    from ...evaluation.scoring import Coverage
    from ...models.base import Model
    from ...models.gateway import Gateway
    from ...prompts.examples import Example
    from ...prompts.prompt import Prompt
    from .checker import Checker


CHECKS = "checks"
"""Dimension of what a checker says."""


@dataclass(frozen=True)
class OutputJudge:
    """A model that judges outputs, with a prompt that stays as it is."""

    model: Model
    prompt: Prompt
    judging: Judging
    soft: bool


@dataclass(frozen=True)
class Writing:
    """How the generator writes."""

    model: Model
    max_tokens: int
    temperature: float
    seed: int


@runtime_checkable
class AnswersWithRecords(Protocol):
    """A model whose answers are records of what it did, with the text to be judged in them."""

    def shown(self, example: Example) -> Example:
        """An example whose output is a record, as judges, checkers and note-takers see it."""
        ...


class GeneratorSubject:
    """A generator model; the draft's prompt is what it writes with."""

    def __init__(
        self,
        gateway: Gateway,
        writing: Writing,
        *,
        judge: OutputJudge | None,
        checklist: Checklist | None,
        questions: ExampleQuestions | None,
        checker: Checker | None,
        score_as: Literal["all", "mean"],
        tally: Callable[[Coverage], None],
        say: Callable[[str], None],
    ) -> None:
        """Nothing is asked yet.

        Args:
            gateway: Pays and keeps.
            writing: How the outputs are made.
            judge: Answers the questions; None where a checker alone looks.
            checklist: Questions for every example; None where each has its own or a checker alone looks.
            questions: Writes each example's own questions.
            checker: The user's function.
            score_as: An output's score: 1 only if it passes everything, or the share (or mean P(yes)) that it passes.
            tally: Told the coverage of everything that was judged.
            say: Told what cannot be had.
        """
        self._gateway = gateway
        self._writing = writing
        self._judge = judge
        self._checklist = checklist
        self._questions = questions
        self._checker = checker
        self._score_as = score_as
        self._tally = tally
        self._say = say
        self._own: dict[str, Checklist] = {}

    async def observe(
        self, draft: Draft, examples: Sequence[Example], on_done: Callable[[int, int], None] | None = None
    ) -> Observation:
        """Write an output for every example and look at it.

        Raises:
            BudgetExceededError: A cap was reached.
            InputError: The checker returned something else than checks, or one with the name of a question.
            ModelError: An endpoint refuses every call or is down.
        """
        writing = self._writing
        generator = Generator(
            self._gateway,
            writing.model,
            draft.prompt,
            max_tokens=writing.max_tokens,
            temperature=writing.temperature,
            seed=writing.seed,
        )
        generated = await generator.generate(examples, on_done)
        if isinstance(writing.model, AnswersWithRecords):
            shown = writing.model.shown
            generated = [each if each.error else replace(each, example=shown(each.example)) for each in generated]
        written = [each.example for each in generated]
        judged = await self._judged(draft, generated)
        checked = run_checker(self._checker, generated, draft.prompt.hash) if self._checker else []
        verdicts = [*judged, *checked]
        self._tally(coverage(verdicts))
        own = {example.id: self._checklist_of(example.id, checked) for example in written}
        checklists = {name: checklist for name, checklist in own.items() if checklist is not None}
        scores = [self._score(example, checklists.get(example.id), verdicts) for example in written]
        return Observation(written, verdicts, scores, None, checklists)

    async def probe(self, draft: Draft, pairs: Sequence[Pair], seen: Observation) -> dict[Pair, Verdict]:
        """Write and judge the examples of the pairs anew."""
        wanted = {example for example, _ in pairs}
        found = await self.observe(draft, [each for each in seen.examples if each.id in wanted])
        new = {(each.example, each.question): each for each in found.verdicts if each.replicate == 0}
        return {pair: new[pair] for pair in pairs if pair in new}

    def evaluator(self, draft: Draft, example: str) -> Evaluator | None:
        """The judge of an example's questions; None where only a checker looks at it."""
        checklist = self._own.get(example, self._checklist)
        return self._evaluator(checklist) if checklist is not None and self._judge is not None else None

    def _evaluator(self, checklist: Checklist) -> Evaluator:
        assert self._judge is not None, "called where there is a judge"
        judge = self._judge
        return Evaluator(self._gateway, judge.model, judge.prompt, checklist, judge.judging, role="judge")

    async def _judged(self, draft: Draft, generated: Sequence[Generated]) -> list[Verdict]:
        """The judge's verdicts; an output that is not there gives failed ones."""
        if self._judge is None:
            return []
        written = [each.example for each in generated if each.example.output is not None]
        verdicts: list[Verdict] = []
        if self._checklist is not None:
            verdicts += await self._evaluator(self._checklist).judge(written)
        else:
            await self._write_questions([each.example for each in generated])
            for example in written:
                if example.id in self._own:
                    verdicts += await self._evaluator(self._own[example.id]).judge([example])
        for each in generated:
            checklist = self._own.get(each.example.id, self._checklist)
            if each.example.output is None and checklist is not None:
                verdicts += [
                    Verdict(
                        each.example.id,
                        question.id,
                        self._judge.model.name,
                        draft.prompt.hash,
                        None,
                        status="api_error",
                        error=f"not generated: {each.error}",
                    )
                    for question in checklist.questions
                ]
        return verdicts

    async def _write_questions(self, examples: Sequence[Example]) -> None:
        missing = [example for example in examples if example.id not in self._own]
        if missing and self._questions is not None:
            self._own |= await self._questions.write(
                missing, lambda example, reason: self._say(f"no questions for the example '{example}': {reason}")
            )

    def _checklist_of(self, example: str, checked: Sequence[Verdict]) -> Checklist | None:
        """An example's questions and checks; None where there are none, so that it has no score."""
        questions = list((self._own.get(example) or self._checklist or _Nothing).questions)
        checks = [each.question for each in checked if each.example == example]
        if same := {each.id for each in questions}.intersection(checks):
            raise InputError(
                f"The checker has a check named '{min(same)}', and so is a question (example '{example}'); give one of "
                "them another name, or their answers cannot be told apart."
            )
        questions += [
            Question(id=name, text=f"Does the output pass the check '{name}'?", dimension=CHECKS) for name in checks
        ]
        if not questions:
            return None
        common = self._checklist
        by_section = {} if common is None or example in self._own else common.section_weights
        return Checklist(
            task=common.task if common else "",
            questions=tuple(questions),
            section_weights={name: {**weights, **dict.fromkeys(checks, 1.0)} for name, weights in by_section.items()},
        )

    def _score(self, example: Example, checklist: Checklist | None, verdicts: Sequence[Verdict]) -> ExampleScore:
        if checklist is None:
            return ExampleScore(example.id, None, {})
        mine = [each for each in verdicts if each.example == example.id]
        soft = self._judge.soft if self._judge else False
        score = score_examples([example], checklist, mine, soft=soft and self._score_as == "mean")[0]
        if self._score_as == "all" and score.overall is not None:
            return replace(score, overall=float(all(each.answer for each in mine)))
        return score


class _Nothing:
    """Has no questions."""

    questions: tuple[Question, ...] = ()


class FailureSignal:
    """Every question should be answered yes, every check passed.

    Clear failures are read first, each example taking its turn, so that one bad output does not use up all notes.
    """

    def __init__(self, judge: Callable[[Draft, str], Evaluator | None] | None) -> None:
        """``judge`` gives the judge of one example's questions, None where a checker alone looks at it.

        It is None itself where no explanations are bought; what a checker says is read in any case.
        """
        self._judge = judge

    def disagreements(self, draft: Draft, seen: Observation) -> list[Disagreement]:
        """The failures."""
        failed: dict[str, list[Disagreement]] = {}
        for verdict in seen.verdicts:
            if verdict.answer is False and not verdict.replicate:
                failed.setdefault(verdict.example, []).append(_failure(verdict))
        return take_turns(sorted(group, key=lambda each: -each.gap) for group in failed.values())

    def agrees(self, seen: Observation) -> bool:
        """Whether nothing fails, and nothing is missing that might."""
        return bool(seen.verdicts) and all(each.answer is True for each in seen.verdicts)

    def reference(self, draft: Draft, example: str, question: str) -> float | None:
        """Yes, always."""
        return 1.0

    async def reasons(self, draft: Draft, seen: Observation, disagreements: Sequence[Disagreement]) -> Reasons:
        """Why the judge or the checker says no."""
        theirs: dict[str, str] = {}
        for verdict in disputed(seen, disagreements):
            if verdict.explanation is not None:
                theirs[f"{verdict.example}/{verdict.question}"] = verdict.explanation
            elif self._judge and (judge := self._judge(draft, verdict.example)) is not None:
                theirs |= await explanations(judge, [verdict], seen.examples)
        return Reasons(theirs=theirs)


def _failure(verdict: Verdict) -> Disagreement:
    p_yes = verdict.p_yes or 0.0
    return Disagreement(
        example=verdict.example,
        question=verdict.question,
        target=False,
        reference=True,
        gap=1 - p_yes,
        target_p_yes=p_yes,
        reference_p_yes=1.0,
    )
