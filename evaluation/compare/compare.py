"""Judges side by side, also with several models and prompts: the same examples, the same store, one table.

>>> from askance.evaluation.compare.compare import compare
>>> table = compare("data.jsonl", model="openai/m", judges=["binary", "direct"], checklist="c.yaml")  # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from ...agents.buying import all_together
from ...models.budget import Budget
from ...models.event_loops import awaited, run_sync
from ...models.gateway import Gateway
from ...models.named import ModelLike, named_models
from ...models.progress import watching
from ...models.session import session
from ...prompts.checklist import Checklist, load_checklist
from ...prompts.errors import InputError, did_you_mean
from ...prompts.examples import Example, human_dimensions, load_examples
from ...prompts.formats.binding import binding_of
from ...prompts.prompt import Prompt, load_prompt
from ...setting_types import CompareSettings
from ...settings import parse_options, refuse_idle
from ..evaluate import weighted
from ..options import CompareOptions
from ..own_judge import found_reads
from ..scoring import human_targets
from .comparison import Comparison
from .costs import spent
from .judges import KNOWN, check_names
from .protocol import (
    Criterion,
    Judge,
    JudgeOutput,
    Meter,
    Named,
    Setup,
    boolean_checklist,
    criteria_for,
    layout_of,
    line_up,
    models_of,
    prompts_of,
)
from .statistics import FREE, ROLE, compare_ratings, estimate_naming, name_aspects
from .two_steps import CheckEval

if TYPE_CHECKING:
    from ...agents.buying import Estimate
    from ...models.base import AnswerStore, Model
    from ...models.progress import Watcher
    from ...models.resolve import Models
    from ..scoring import Targets
    from .protocol import Entrant, JudgeScore

Data = str | Path | Iterable[Example | Mapping[str, Any]]
Prompts = str | Path | Prompt | Sequence[str | Path | Prompt] | None
FEW_SLOTS = 4
NO_TASK = "write the output that the input calls for"


def compare(
    data: Data,
    *,
    model: ModelLike | Sequence[ModelLike],
    judges: str | Sequence[str],
    checklist: str | Path | Checklist | None = None,
    candidates: str | Path | Checklist | None = None,
    prompt: Prompts = None,
    criteria: str | None = None,
    dimensions: Sequence[str] = (),
    panel: Sequence[ModelLike] = (),
    watcher: Watcher | None = None,
    progress: bool | None = None,
    **options: Unpack[CompareSettings],
) -> Comparison:
    """Have several judges rate the same examples and compare them with people, with themselves and with each other.

    Args:
        data: JSONL or CSV file, or rows.
        model: ``provider/model``, or an object that can be asked. With several, every judge takes part with each.
        judges: Names from :data:`~askance.evaluation.compare.judges.KNOWN`; the first one, with the first model and
            the first prompt, is what the others are compared with.
        checklist: For the judges that ask its questions; its task is told to the others.
        candidates: Pool of questions of ``random_k``, ``all_candidates`` and ``auto_rubric``; the checklist by default.
        prompt: Prompt of the judges that ask questions; each of these judges takes part with each of several prompts.
            The other judges show the example as the first prompt does.
        criteria: What counts, in words, for the judges without a checklist.
        dimensions: Compare these only; by default those that people rated and the checklist asks about.
        panel: Models of ``poll``; by default several members of ``model``.
        watcher: Told how the work goes on.
        progress: Show how the work goes on; by default in notebooks only.
        options: Settings of :class:`~askance.evaluation.options.CompareOptions`, among them ``store`` and ``no_cache``.

    Raises:
        InputError: Bad data, checklist, prompt, judge, model name or setting.
        BudgetExceededError: A cap was reached; the answers so far are kept.
        AskanceError: The endpoint is down or refuses every call, or a judge cannot be prepared.
    """
    several = (model,) if isinstance(model, str) or not isinstance(model, Sequence) else model
    *names, given = named_models(options, *several, *panel)
    asked, members = tuple(names[: len(several)]), tuple(names[len(several) :])
    job = prepare(data, asked, judges, checklist, candidates, prompt, criteria, dimensions, members, given)
    return job.run(watcher, progress)


acompare = awaited(compare)


def prepare(
    data: Data,
    model: str | Model | Sequence[str | Model],
    judges: str | Sequence[str],
    checklist: str | Path | Checklist | None,
    candidates: str | Path | Checklist | None,
    prompt: Prompts,
    criteria: str | None,
    dimensions: Sequence[str],
    panel: Sequence[str | Model],
    options: Mapping[str, Any],
) -> ComparisonJob:
    """Check the arguments of :func:`compare`; nothing is bought. InputError names the file, line and field at fault."""
    settings = parse_options(CompareOptions, options)
    names = check_names(judges)
    refuse_idle(settings, judges=names)
    if panel and "poll" not in names:
        raise InputError("panel: only the judge poll has a panel.")
    questions = None if checklist is None else load_checklist(checklist)
    examples = load_examples(
        data, fields=settings.field, limit=settings.limit, labels=settings.labels, label_scale=settings.label_scale
    )
    if questions is not None:
        questions = weighted(questions, examples, settings)
    compared = _dimensions(examples, questions, dimensions)
    task = (questions.task if questions is not None else "").strip() or NO_TASK
    words = criteria_for(compared, criteria)
    targets = None
    if human_dimensions(examples, questions):
        targets = human_targets(examples, boolean_checklist(task, words), settings.human_scale)
    prompts = prompts_of(prompt, examples, settings)
    entrants = line_up(names, models_of(model), prompts, panel)
    pool = None if candidates is None else load_checklist(candidates)
    layout = layout_of(prompts[0].prompt, examples)
    own_judge_prompt = None
    if "own" in names:
        if (asked := settings.own_prompt) is None:
            raise InputError("The judge 'own' is asked in your own words: give its prompt with --own-prompt judge.md.")
        if settings.reads is None:
            settings = settings.model_copy(update={"reads": found_reads(asked)})
        own_judge_prompt = load_prompt(asked, replace(binding_of(examples, settings), asks=False))
    return ComparisonJob(examples, entrants, questions, pool, layout, task, words, targets, settings, own_judge_prompt)


@dataclass(frozen=True)
class ComparisonJob:
    """The inputs of a comparison, checked."""

    examples: Sequence[Example]
    entrants: tuple[Entrant, ...]
    checklist: Checklist | None
    candidates: Checklist | None
    layout: Prompt
    """Prompt with which every judge that asks in words of its own shows the example."""
    task: str
    criteria: tuple[Criterion, ...]
    targets: Targets | None
    options: CompareOptions
    own: Prompt | None = None

    def estimate(self) -> dict[str, Estimate]:
        """Estimate what each judge would buy alone. Judges that ask the same questions share answers, so may buy
        less."""

        async def estimates(store: AnswerStore) -> dict[str, Estimate]:
            async with session(self.options, store) as (models, _):
                built = self._build(Gateway(store, Budget(call_budget=0)), models)
                found = {each.entrant.label: await each.judge.estimate(self.examples) for each in built}
            if self.options.em_dim:
                kinds, number = [each.judge for each in self.entrants], len(self.criteria)
                found[ROLE] = estimate_naming(kinds, len(self.examples), number, self.options.cot_tokens)
            return found

        with self.options.open_store(to_estimate=True) as store:
            return run_sync(estimates(store))

    def run(self, watcher: Watcher | None = None, progress: bool | None = None) -> Comparison:
        """Have the judges rate the examples. Raises the same errors as :func:`compare`."""
        with watching(watcher, progress) as shown, self.options.open_store() as store:
            return run_sync(self._run(store, shown))

    def _build(self, gateway: Gateway, models: Models) -> list[_Built]:
        """Build every judge with its meter, all before the first call is bought."""
        built = []
        for entrant in self.entrants:
            meter = Meter(gateway)
            setup = Setup(
                gateway=meter,
                model=models.get(entrant.model),
                prompt=entrant.prompt.prompt if entrant.prompt else self.layout,
                layout=self.layout,
                task=self.task,
                criteria=self.criteria,
                options=self.options,
                checklist=self.checklist,
                candidates=self.candidates,
                panel=tuple(models.get(each) for each in entrant.panel),
                own=self.own,
                examples=self.examples,
                targets=self.targets,
            )
            asked = setup.panel or (setup.model,)
            built.append(_Built(entrant, KNOWN[entrant.judge](setup), meter, asked))
        return built

    async def _run(self, store: AnswerStore, watcher: Watcher) -> Comparison:
        async with session(self.options, store, watcher.say) as (models, gateway):
            watcher.watch(gateway.budget)
            built = self._build(gateway, models)
            upfront = {}
            for contender in built:
                watcher.phase(f"{contender.entrant.label}: preparing")
                await contender.judge.prepare()
                upfront[contender.entrant.label] = spent(contender.meter.budget)
            asked = list({model.name: model for contender in built for model in contender.asked}.values())
            names = ", ".join(model.name for model in asked)
            block = _block(min(gateway.concurrency(model) for model in asked))
            labels = ", ".join(contender.entrant.label for contender in built)
            watcher.phase(f"{labels}: asking {names}", len(self.examples) * len(built))
            at_once = len(built) if any(getattr(model, "gathers", 0) for model in asked) else 1
            ratings = await _rate_together(built, self.examples, block, watcher, at_once)
            named: dict[str, Named] = {}
            if self.options.em_dim:
                reader = models.get(self.entrants[0].model)
                for label in [contender.label for contender in self.entrants if contender.judge in FREE]:
                    watcher.phase(f"{label}: what was looked at")
                    named[label] = await name_aspects(ratings[label], gateway, reader, self.options.seed)
        judged = []
        for contender in built:
            label, written = (
                contender.entrant.label,
                contender.judge.written if isinstance(contender.judge, CheckEval) else (),
            )
            rating = spent(contender.meter.budget) - upfront[label]
            judged.append(
                JudgeOutput(contender.entrant, ratings[label], upfront[label], rating, named.get(label), written)
            )
        watcher.phase("comparing the judges")
        return compare_ratings(judged, self.examples, self.targets, names, self.options, gateway.budget)


@dataclass(frozen=True)
class _Built:
    entrant: Entrant
    judge: Judge
    meter: Meter
    asked: tuple[Model, ...]
    """The models that the judge asks."""


def _dimensions(examples: Sequence[Example], checklist: Checklist | None, wanted: Sequence[str]) -> list[str]:
    """Return the dimensions to compare on: those asked for, else those that people rated and the checklist scores."""
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
    built: Sequence[_Built], examples: Sequence[Example], block: int, watcher: Watcher, at_once: int
) -> dict[str, list[JudgeScore]]:
    """Rate a few examples by every judge before the next few, so that prompt caches hold; ``at_once`` judges share a
    batch."""
    ratings: dict[str, list[JudgeScore]] = {each.entrant.label: [] for each in built}
    done = 0
    for start in range(0, len(examples), block):
        part = examples[start : start + block]

        async def rate(each: _Built, part: Sequence[Example] = part) -> None:
            nonlocal done
            ratings[each.entrant.label] += await each.judge.rate(part)
            done += len(part)
            watcher.advance(done, len(examples) * len(built))

        await all_together(built, rate, at_once)
    return ratings


def _block(concurrency: int) -> int:
    """Return how many examples to rate at once: a small server's slots, or enough to keep all calls under way."""
    return concurrency if concurrency < FEW_SLOTS else FEW_SLOTS * concurrency
