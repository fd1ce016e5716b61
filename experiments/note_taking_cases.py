"""What :mod:`askance.experiments.note_taking` takes notes of, and how a lesson is tried: a fixed list from stored verdicts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial

from ..agents.judging import Judging
from ..agents.updater import Proposal, make_edit, split_parts
from ..evaluation.scoring import Targets, human_targets, score_examples
from ..models.base import Model
from ..models.gateway import Gateway
from ..optimizer.lessons import find_contrast
from ..optimizer.modes.judge import JudgeSubject
from ..optimizer.signals import HumanSignal
from ..optimizer.subject import Draft, Observation
from ..optimizer.trial import LessonTrial, TrialResult
from ..prompts.checklist import Checklist
from ..prompts.errors import InputError
from ..prompts.examples import Example
from ..prompts.lessons import Disagreement, Lesson
from ..prompts.prompt import Prompt
from ..prompts.verdicts import Verdict

THRESHOLD = 0.3
"""P(yes) minus people's score, mapped to [0, 1], from which a verdict is a disagreement (BinEval App. B)."""


@dataclass(frozen=True)
class Tried:
    """What a lesson did to the verdicts."""

    own: TrialResult
    """On its own evidence and on controls: the trial that decides in the loop."""
    elsewhere: TrialResult
    """On disagreements of the same questions that it was not drawn from; there are no controls."""


TryLesson = Callable[[Lesson], Awaitable[Tried]]


@dataclass(frozen=True)
class Case:
    """A disagreement, and an example on which the judge's yes was right."""

    disagreement: Disagreement
    example: Example
    contrast: Example | None


@dataclass(frozen=True)
class Judged:
    """A judge's verdicts on examples that people scored."""

    examples: Sequence[Example]
    checklist: Checklist
    prompt: Prompt
    verdicts: Sequence[Verdict]

    def targets(self) -> Targets:
        """People's scores of these examples.

        Raises:
            InputError: The checklist asks about no dimension that people rated.
        """
        return human_targets(self.examples, self.checklist)

    def observation(self) -> Observation:
        """The verdicts as the loop sees them."""
        scores = score_examples(self.examples, self.checklist, self.verdicts)
        return Observation(self.examples, self.verdicts, scores)

    def signal(self) -> HumanSignal:
        """People's scores as what the verdicts are held against."""
        return HumanSignal(self.targets(), self.examples, None, threshold=THRESHOLD)


def find_cases(judged: Judged, most: int) -> list[Case]:
    """The widest disagreements in which the judge was too lenient, questions taking turns, one an example.

    Raises:
        InputError: The verdicts were given with another prompt, or there is no disagreement.
    """
    strange = {each.prompt for each in judged.verdicts} - {judged.prompt.hash}
    if strange:
        raise InputError(
            f"The verdicts were given with the prompt {', '.join(sorted(strange))}, not with {judged.prompt.hash}. "
            "Give the prompt that they were given with."
        )
    draft, seen, signal = Draft(judged.prompt, judged.checklist), judged.observation(), judged.signal()
    reference = partial(signal.reference, draft)
    by_id = {example.id: example for example in judged.examples}
    groups: dict[str, list[Disagreement]] = {}
    for verdict in judged.verdicts:
        wanted = reference(verdict.example, verdict.question)
        if verdict.replicate or verdict.p_yes is None or wanted is None:
            continue
        if verdict.p_yes - wanted > THRESHOLD:
            groups.setdefault(verdict.question, []).append(_too_lenient(verdict, wanted))
    queues = [iter(sorted(group, key=lambda found: (-found.gap, found.key))) for group in groups.values()]
    cases: dict[str, Case] = {}
    while queues and len(cases) < most:
        queue = queues.pop(0)
        each = next((found for found in queue if found.example not in cases), None)
        if each is not None:
            cases[each.example] = Case(each, by_id[each.example], find_contrast(each, seen, reference))
            queues.append(queue)
    if not cases:
        raise InputError(
            f"On no verdict is P(yes) more than {THRESHOLD} above people's score: nothing to take notes of."
        )
    return list(cases.values())


def _too_lenient(verdict: Verdict, wanted: float) -> Disagreement:
    return Disagreement(
        example=verdict.example,
        question=verdict.question,
        target=True,
        reference=False,
        gap=(verdict.p_yes or 0.0) - wanted,
        target_p_yes=verdict.p_yes,
        reference_p_yes=wanted,
    )


def with_lesson(prompt: Prompt, lesson: Lesson) -> Prompt:
    """The prompt with the lesson on a line of its own after its last part, without a call.

    Raises:
        InputError: All of the prompt is protected.
    """
    parts = split_parts(prompt.text)
    if not parts:
        raise InputError("All of the prompt is protected, so no lesson can be tried in it.")
    proposal = Proposal(part=len(parts), action="add", text=lesson.text)
    return prompt.apply(make_edit(prompt.text, parts[-1], proposal, lesson.id))


def lesson_trial(
    gateway: Gateway, judge: Model, judged: Judged, cases: Sequence[Case], *, evidence: int, controls: int
) -> TryLesson:
    """How a lesson earns its place here: tried in the prompt, on its evidence and controls, and on the other cases."""
    subject = JudgeSubject(gateway, judge, Judging(), role="trial", soft=True, tally=lambda _: None)
    trial = LessonTrial(subject, judged.signal(), evidence=evidence, controls=controls)
    others = LessonTrial(subject, judged.signal(), evidence=len(cases), controls=0)
    disputed = [case.disagreement for case in cases]
    seen = judged.observation()
    before = Draft(judged.prompt, judged.checklist)

    async def try_lesson(lesson: Lesson) -> Tried:
        after = Draft(with_lesson(judged.prompt, lesson), judged.checklist)
        own = await trial.run(before, after, [lesson], seen)
        asked = {each.question for each in disputed if each.key in lesson.evidence}
        rest = tuple(each.key for each in disputed if each.question in asked and each.key not in lesson.evidence)
        return Tried(own, await others.run(before, after, [lesson.model_copy(update={"evidence": rest})], seen))

    return try_lesson
