"""Judges side by side: the same examples, the same model, the same store, one table.

>>> from askance.evaluation.compare.compare import compare
>>> table = compare("data.jsonl", model="openai/m", judges=["binary", "direct"], checklist="c.yaml")  # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...memory.verdict_store import VerdictStore, open_store, open_store_to_estimate
from ...models.budget import Budget
from ...models.gateway import Gateway
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
from .comparison import Comparison, Judged, spent
from .criteria import Criterion, boolean_checklist, criteria_for
from .judges import JUDGES, check_names
from .protocol import Judge, Meter, Setup, layout_of
from .statistics import compare_ratings

if TYPE_CHECKING:
    from ...agents.buying import Estimate
    from ...models.base import Model
    from ...models.resolve import Models
    from ..progress import Watcher
    from ..scoring import Targets
    from .aspects import Named
    from .protocol import Rating

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
    cache: str | Path | None = None,
    no_cache: bool = False,
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
        cache: Where answers are kept; the same store as that of ``evaluate`` by default.
        no_cache: Reuse no answer of an earlier command, and keep none for a later one.
        watcher: Told how the work goes on.
        progress: Show how the work goes on; by default in notebooks only.
        options: Settings of :class:`~askance.evaluation.options.CompareOptions`.

    Raises:
        InputError: Bad data, checklist, prompt, judge, model name or setting.
        BudgetExceededError: A cap was reached; the answers so far are kept.
        AskanceError: The endpoint is down or refuses every call, or a judge cannot be prepared.
    """
    job = _prepare(data, judges, checklist, candidates, prompt, criteria, dimensions, options)
    with watching(watcher, progress) as shown, open_store(cache, no_cache=no_cache) as store:
        return run_sync(_compare(job, model, panel, store, shown))


def estimate_comparison(
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
    cache: str | Path | None = None,
    no_cache: bool = False,
    **options: Any,
) -> dict[str, Estimate]:
    """What each judge of :func:`compare` would buy by itself; nothing is bought.

    Judges that ask the same questions share their answers, so together they may buy less.

    Raises:
        InputError: As :func:`compare`.
    """
    job = _prepare(data, judges, checklist, candidates, prompt, criteria, dimensions, options)

    async def estimates(store: VerdictStore) -> dict[str, Estimate]:
        async with session(job.options, store) as (models, _):
            nothing_bought = Gateway(store, Budget(max_calls=0))
            built = _build(job, nothing_bought, models, model, panel)
            found = {judge.name: await judge.estimate(job.examples) for judge, _ in built}
            if job.options.em_dim:
                number = len(job.criteria)
                found[ROLE] = estimate_naming(job.judges, len(job.examples), number, job.options.cot_tokens)
            return found

    with open_store_to_estimate(cache, no_cache=no_cache) as store:
        return run_sync(estimates(store))


@dataclass(frozen=True)
class _Job:
    """The inputs of a comparison, checked."""

    examples: list[Example]
    judges: list[str]
    checklist: Checklist | None
    candidates: Checklist | None
    prompt: Prompt
    task: str
    criteria: tuple[Criterion, ...]
    targets: Targets | None
    options: CompareOptions


def _prepare(
    data: Data,
    judges: Sequence[str],
    checklist: str | Path | Checklist | None,
    candidates: str | Path | Checklist | None,
    prompt: str | Path | Prompt | None,
    criteria: str | None,
    dimensions: Sequence[str],
    given: Mapping[str, Any],
) -> _Job:
    options = parse_options(CompareOptions, dict(given))
    names = check_names(judges)
    questions = _checklist(checklist)
    examples = load_examples(data, fields=options.field, limit=options.limit)
    if questions is not None and options.weights is not None:
        questions = weighted_by(questions, options.weights, scores=options.scores, examples=examples)
    compared = _dimensions(examples, questions, dimensions)
    task = (questions.task if questions is not None else "").strip() or NO_TASK
    words = criteria_for(compared, criteria)
    targets = None
    if human_dimensions(examples):
        targets = human_targets(examples, boolean_checklist(task, words), options.human_scale)
    text = default_prompt(examples) if prompt is None else load_prompt(prompt)
    return _Job(examples, names, questions, _checklist(candidates), text, task, words, targets, options)


def _checklist(given: str | Path | Checklist | None) -> Checklist | None:
    return given if given is None or isinstance(given, Checklist) else load_checklist(given)


def _dimensions(examples: Sequence[Example], checklist: Checklist | None, wanted: Sequence[str]) -> list[str]:
    """The dimensions to compare on: those asked for, else those that people rated and the checklist asks about."""
    rated = human_dimensions(examples)
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


def _build(
    job: _Job, gateway: Gateway, models: Models, model: str | Model, panel: Sequence[str | Model]
) -> list[tuple[Judge, Meter]]:
    """Every judge with its meter; all are built before the first call is bought."""
    setup = Setup(
        gateway=gateway,
        model=models.get(model),
        prompt=job.prompt,
        layout=layout_of(job.prompt, job.examples),
        task=job.task,
        criteria=job.criteria,
        options=job.options,
        checklist=job.checklist,
        candidates=job.candidates,
        panel=tuple(models.get(each) for each in panel),
    )
    built = []
    for name in job.judges:
        meter = Meter(gateway)
        built.append((JUDGES[name](replace(setup, gateway=meter)), meter))
    return built


async def _compare(
    job: _Job, model: str | Model, panel: Sequence[str | Model], store: VerdictStore, watcher: Watcher
) -> Comparison:
    async with session(job.options, store, watcher.say) as (models, gateway):
        watcher.watch(gateway.budget)
        built = _build(job, gateway, models, model, panel)
        asked = models.get(model)
        upfront = {}
        for judge, meter in built:
            watcher.phase(f"{judge.name}: preparing")
            await judge.prepare()
            upfront[judge.name] = spent(meter.budget)
        block = _block(gateway.concurrency(asked))
        watcher.phase(f"{', '.join(job.judges)}: asking {asked.name}", len(job.examples) * len(built))
        ratings = await _rate_together([judge for judge, _ in built], job.examples, block, watcher)
        named = await _named(job, ratings, gateway, asked, watcher) if job.options.em_dim else {}
    judged = [
        Judged(
            judge.name,
            ratings[judge.name],
            upfront[judge.name],
            spent(meter.budget) - upfront[judge.name],
            named.get(judge.name),
        )
        for judge, meter in built
    ]
    watcher.phase("comparing the judges")
    return compare_ratings(judged, job.examples, job.targets, asked.name, job.options, gateway.budget)


async def _named(
    job: _Job, ratings: Mapping[str, Sequence[Rating]], gateway: Gateway, model: Model, watcher: Watcher
) -> dict[str, Named]:
    """What each free-form judge looked at, told by the same model."""
    free = [name for name in job.judges if name in FREE]
    if free:
        watcher.phase(f"{', '.join(free)}: what was looked at")
    return {name: await name_aspects(ratings[name], gateway, model, job.options.seed) for name in free}


async def _rate_together(
    judges: Sequence[Judge], examples: Sequence[Example], block: int, watcher: Watcher
) -> dict[str, list[Rating]]:
    """Every judge on a few examples before the next few, so that a model's prompt cache still holds them."""
    ratings: dict[str, list[Rating]] = {judge.name: [] for judge in judges}
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
