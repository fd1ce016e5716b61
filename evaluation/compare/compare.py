"""Judges side by side: the same examples, the same model, the same store, one table.

>>> from askance.evaluation.compare.compare import compare
>>> table = compare("data.jsonl", model="openai/m", judges=["binary", "direct"], checklist="c.yaml")  # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...models.budget import Budget
from ...models.gateway import Gateway
from ...models.idle import refuse_idle
from ...models.session import run_sync, session
from ...prompts.checklist import Checklist, load_checklist
from ...prompts.default import default_prompt
from ...prompts.errors import InputError, did_you_mean
from ...prompts.examples import Example, human_dimensions, load_examples
from ...prompts.prompt import Prompt, load_prompt
from ..options import CompareOptions, parse_options
from ..progress import watching
from ..scoring import human_targets
from ..weights_file import weighted_by
from .aspects import FREE, ROLE, estimate_naming, name_aspects
from .comparison import Comparison, JudgeOutput, spent
from .criteria import Criterion, boolean_checklist, criteria_for
from .judges import JUDGES, check_names
from .protocol import Judge, Meter, Setup, layout_of
from .statistics import compare_ratings

if TYPE_CHECKING:
    from ...agents.buying import Estimate
    from ...memory.verdict_store import VerdictStore
    from ...models.base import Model
    from ...models.resolve import Models
    from ..progress import Watcher
    from ..scoring import Targets
    from .aspects import Named
    from .protocol import JudgeScore

Data = str | Path | Iterable[Example | Mapping[str, Any]]
FEW_SLOTS = 4
NO_TASK = "write the output that the input calls for"


def compare(
    data: Data,
    *,
    model: str | Model,
    judges: Sequence[str],
    checklist: str | Path | Checklist | None = None,
    candidates: str | Path | Checklist | None = None,
    prompt: str | Path | Prompt | None = None,
    criteria: str | None = None,
    dimensions: Sequence[str] = (),
    panel: Sequence[str | Model] = (),
    watcher: Watcher | None = None,
    progress: bool | None = None,
    **options: Any,
) -> Comparison:
    """Have several judges rate the same examples and compare them with people, with themselves and with each other.

    Args:
        data: JSONL or CSV file, or rows.
        model: ``provider/model``, or an object that can be asked; the same for every judge.
        judges: Names from :data:`~askance.evaluation.compare.judges.JUDGES`; the others are compared with the first.
        checklist: For the judges that ask its questions; its task is told to the others.
        candidates: Pool of questions of ``random_k`` and ``all_candidates``; the checklist by default.
        prompt: Prompt of the judges that ask questions; the others show the example in the same way.
        criteria: What counts, in words, for the judges without a checklist.
        dimensions: Compare these only; by default those that people rated and the checklist asks about.
        panel: Models of ``poll``; by default several members of ``model``.
        watcher: Told how the work goes on.
        progress: Show how the work goes on; by default in notebooks only.
        options: Settings of :class:`~askance.evaluation.options.CompareOptions`, among them ``cache`` and ``no_cache``.

    Raises:
        InputError: Bad data, checklist, prompt, judge, model name or setting.
        BudgetExceededError: A cap was reached; the answers so far are kept.
        AskanceError: The endpoint is down or refuses every call, or a judge cannot be prepared.
    """
    job = prepare(data, model, judges, checklist, candidates, prompt, criteria, dimensions, panel, options)
    return job.run(watcher, progress)


def prepare(
    data: Data,
    model: str | Model,
    judges: Sequence[str],
    checklist: str | Path | Checklist | None,
    candidates: str | Path | Checklist | None,
    prompt: str | Path | Prompt | None,
    criteria: str | None,
    dimensions: Sequence[str],
    panel: Sequence[str | Model],
    options: Mapping[str, Any],
) -> ComparisonJob:
    """Load and check what :func:`compare` is given; nothing is bought.

    Raises:
        InputError: Names the file, line and field at fault.
    """
    settings = parse_options(CompareOptions, options)
    names = check_names(judges)
    refuse_idle(settings, judges=names)
    if panel and "poll" not in names:
        raise InputError("panel: only the judge poll has a panel.")
    questions = None if checklist is None else load_checklist(checklist)
    examples = load_examples(data, fields=settings.field, limit=settings.limit, labels=settings.labels)
    if questions is not None and settings.weights is not None:
        questions = weighted_by(questions, settings.weights, scores=settings.scores, examples=examples)
    compared = _dimensions(examples, questions, dimensions)
    task = (questions.task if questions is not None else "").strip() or NO_TASK
    words = criteria_for(compared, criteria)
    targets = None
    if human_dimensions(examples, questions):
        targets = human_targets(examples, boolean_checklist(task, words), settings.human_scale)
    text = default_prompt(examples) if prompt is None else load_prompt(prompt)
    pool = None if candidates is None else load_checklist(candidates)
    return ComparisonJob(examples, names, questions, pool, text, task, words, targets, model, tuple(panel), settings)


@dataclass(frozen=True)
class ComparisonJob:
    """The inputs of a comparison, checked."""

    examples: list[Example]
    judges: list[str]
    checklist: Checklist | None
    candidates: Checklist | None
    prompt: Prompt
    task: str
    criteria: tuple[Criterion, ...]
    targets: Targets | None
    model: str | Model
    panel: tuple[str | Model, ...]
    options: CompareOptions

    def estimate(self) -> dict[str, Estimate]:
        """What each judge would buy by itself; nothing is bought.

        Judges that ask the same questions share their answers, so together they may buy less.
        """

        async def estimates(store: VerdictStore) -> dict[str, Estimate]:
            async with session(self.options, store) as (models, _):
                built = self._build(Gateway(store, Budget(max_calls=0)), models)
                found = {judge.name: await judge.estimate(self.examples) for judge, _ in built}
            if self.options.em_dim:
                number = len(self.criteria)
                found[ROLE] = estimate_naming(self.judges, len(self.examples), number, self.options.cot_tokens)
            return found

        with self.options.store(to_estimate=True) as store:
            return run_sync(estimates(store))

    def run(self, watcher: Watcher | None = None, progress: bool | None = None) -> Comparison:
        """Have the judges rate the examples; what is raised is as in :func:`compare`."""
        with watching(watcher, progress) as shown, self.options.store() as store:
            return run_sync(self._run(store, shown))

    def _build(self, gateway: Gateway, models: Models) -> list[tuple[Judge, Meter]]:
        """Every judge with its meter; all are built before the first call is bought."""
        setup = Setup(
            gateway=gateway,
            model=models.get(self.model),
            prompt=self.prompt,
            layout=layout_of(self.prompt, self.examples),
            task=self.task,
            criteria=self.criteria,
            options=self.options,
            checklist=self.checklist,
            candidates=self.candidates,
            panel=tuple(models.get(each) for each in self.panel),
        )
        meters = [Meter(gateway) for _ in self.judges]
        return [
            (JUDGES[name](replace(setup, gateway=meter)), meter)
            for name, meter in zip(self.judges, meters, strict=True)
        ]

    async def _run(self, store: VerdictStore, watcher: Watcher) -> Comparison:
        async with session(self.options, store, watcher.say) as (models, gateway):
            watcher.watch(gateway.budget)
            built = self._build(gateway, models)
            asked = models.get(self.model)
            upfront = {}
            for judge, meter in built:
                watcher.phase(f"{judge.name}: preparing")
                await judge.prepare()
                upfront[judge.name] = spent(meter.budget)
            block = _block(gateway.concurrency(asked))
            watcher.phase(f"{', '.join(self.judges)}: asking {asked.name}", len(self.examples) * len(built))
            ratings = await _rate_together([judge for judge, _ in built], self.examples, block, watcher)
            named: dict[str, Named] = {}
            if self.options.em_dim and (free := [name for name in self.judges if name in FREE]):
                watcher.phase(f"{', '.join(free)}: what was looked at")
                named = {name: await name_aspects(ratings[name], gateway, asked, self.options.seed) for name in free}
        judged = [
            JudgeOutput(
                judge.name,
                ratings[judge.name],
                upfront[judge.name],
                spent(meter.budget) - upfront[judge.name],
                named.get(judge.name),
            )
            for judge, meter in built
        ]
        watcher.phase("comparing the judges")
        return compare_ratings(judged, self.examples, self.targets, asked.name, self.options, gateway.budget)


def _dimensions(examples: Sequence[Example], checklist: Checklist | None, wanted: Sequence[str]) -> list[str]:
    """The dimensions to compare on: those asked for, else those that people rated and the checklist asks about."""
    rated = human_dimensions(examples, checklist)
    if wanted:
        for each in wanted:
            if rated and each not in rated:
                raise InputError(f"People rated no dimension '{each}' ({', '.join(rated)}).{did_you_mean(each, rated)}")
        return list(dict.fromkeys(wanted))
    if checklist is None:
        return rated or ["overall"]
    if not rated:
        return checklist.dimensions
    return list(human_targets(examples, checklist).dimensions)


async def _rate_together(
    judges: Sequence[Judge], examples: Sequence[Example], block: int, watcher: Watcher
) -> dict[str, list[JudgeScore]]:
    """Every judge on a few examples before the next few, so that a model's prompt cache still holds them."""
    ratings: dict[str, list[JudgeScore]] = {judge.name: [] for judge in judges}
    done = 0
    for start in range(0, len(examples), block):
        part = examples[start : start + block]
        for judge in judges:
            ratings[judge.name] += await judge.rate(part)
            done += len(part)
            watcher.advance(done, len(examples) * len(judges))
    return ratings


def _block(concurrency: int) -> int:
    """Examples at once: as many as a small server has slots; with a provider enough to keep all calls under way."""
    return concurrency if concurrency < FEW_SLOTS else FEW_SLOTS * concurrency
