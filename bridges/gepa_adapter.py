"""A GEPA adapter: GEPA improves a generator's or a judge's prompt with scores and failures from askance.

GEPA needs a number for every example. For a generator it is the score of its output, from a checklist, a checker or
both. For a judge it is 1 - |score - human score|. The reflection reads the verdict on every question, and the reasons
for failures. If a verdict is missing, ``evaluate`` raises and GEPA stops, since no number is made up. Every answer is
kept, so the same call continues there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ..agents.checks import CheckFunction
from ..evaluation.options import JudgeOptions, Where
from ..memory.run_directory import RunDirectory
from ..models.gateway import Gateway
from ..models.named import ModelLike, named_models
from ..models.progress import Silent
from ..models.resolve import Models
from ..models.session import background_session
from ..optimizer.events import Teller
from ..optimizer.job import Job, SplitExamples, split_examples
from ..optimizer.mode import RunContext, mode_of
from ..optimizer.modes import align, tune
from ..optimizer.options import LoopOptions
from ..optimizer.signals import Signal
from ..optimizer.subject import Draft, Observation, Subject
from ..prompts.checklist import Checklist
from ..prompts.errors import BudgetExceededError, CoverageError, InputError, import_optional
from ..prompts.examples import Example
from ..prompts.prompt import Prompt
from ..settings import parse_options
from .gepa_parts import Frame, Metric, ReflectionModel, ReflectionSettings, Search, cut_out_guidance, metric_for

COMPONENT = "instructions"
"""Name of the only text that GEPA rewrites."""
KEPT = ("split",)
"""Settings of askance's loop that are allowed here."""


@dataclass(kw_only=True)
class OpenAdapter:
    """The prompt to improve, as GEPA's adapter (``gepa.core.adapter.GEPAAdapter``), with the start of a search.
    Examples are askance's. :func:`generator_adapter` or :func:`evaluator_adapter` opens and closes it."""

    subject: Subject
    checklist: Checklist | None
    frame: Frame
    metric: Metric
    search: Search
    signal: Signal | None = None
    """Gives the reflection the reasons why questions fail; None if no reasons are bought."""
    seed_candidate: dict[str, str]
    """The starting text, for ``gepa.optimize``."""
    splits: SplitExamples
    """Development examples to learn from, validation examples to choose on, test examples for the final figure."""
    gateway: Gateway
    """Gateway to the models; its ``budget`` has what was spent."""
    models: Models
    seed: int
    propose_new_texts: None = None
    """None, so that GEPA uses its own proposer."""

    def evaluate(self, batch: Sequence[Example], candidate: Mapping[str, str], capture_traces: bool = False) -> Any:
        """Return scores and records of a candidate, in the order of the batch, which may have an example twice.

        Raises:
            InputError: An example has no human score.
            CoverageError: An example has no score, because a verdict is missing.
            BudgetExceededError: A cap was reached.
            ModelError: An endpoint refuses every call or is down.
        """
        try:
            return self._evaluate(batch, candidate, capture_traces)
        except BaseException as error:
            self.search.error = error
            raise

    def make_reflective_dataset(
        self, candidate: Mapping[str, str], eval_batch: Any, components_to_update: Sequence[str]
    ) -> dict[str, list[dict[str, Any]]]:
        """Return the records of the minibatch, for the reflection."""
        return {name: list(eval_batch.trajectories) for name in components_to_update}

    def prompt(self, candidate: Mapping[str, str]) -> Prompt:
        """Return the whole prompt with a candidate's text in it.
        Raises InputError if the candidate has no text ``instructions``."""
        if COMPONENT not in candidate:
            raise InputError(f"The candidate has no text '{COMPONENT}', but these: {', '.join(candidate) or 'none'}.")
        return self.frame.prompt(candidate[COMPONENT])

    def stopped(self, state: Any = None) -> bool:
        """Whether an error has ended the search; for ``gepa.optimize(stop_callbacks=…)``."""
        return self.search.error is not None

    def _evaluate(self, batch: Sequence[Example], candidate: Mapping[str, str], traces: bool) -> Any:
        draft = Draft(self.prompt(candidate), self.checklist)
        unknown = next((example.id for example in batch if not self.metric.knows(example.id)), None)
        if unknown is not None:
            raise InputError(
                f"The data of this adapter have no human score of the example '{unknown}', so it can have no number; "
                "take the examples of its splits."
            )
        examples = list({example.id: example for example in batch}.values())
        seen, reasons = self.search.loop.run(self._observe(draft, examples, traces))
        place = {example.id: number for number, example in enumerate(examples)}
        places = [place[example.id] for example in batch]
        values = [self.metric.value(seen.scores[place_in_batch]) for place_in_batch in places]
        scores = [value for value in values if value is not None]
        if len(scores) < len(values):
            raise CoverageError(_missing(seen, examples[places[values.index(None)]].id))
        records = [self.metric.record(seen, number, reasons) for number in places]
        return import_optional("gepa.core.adapter", "gepa", "gepa").EvaluationBatch(
            outputs=[record["Generated Outputs"] for record in records],
            scores=scores,
            trajectories=records if traces else None,
        )

    async def _observe(
        self, draft: Draft, examples: Sequence[Example], traces: bool
    ) -> tuple[Observation, Mapping[str, str]]:
        """Return a draft's outputs and verdicts and, for a reflection, the judge's reasons by example/question."""
        seen = await self.subject.observe(draft, examples)
        if self.signal is None or not traces:
            return seen, {}
        found = await self.signal.reasons(draft, seen, self.signal.disagreements(draft, seen))
        return seen, found.mine if self.metric.explained == "mine" else found.theirs

    def reflection(self, model: ModelLike, settings: ReflectionSettings | None = None) -> ReflectionModel:
        """Return a model for ``gepa.optimize(reflection_lm=…)``; store, caps and ledger hold for its calls too.
        Raises InputError for an unknown model."""
        settings = settings or ReflectionSettings()
        return ReflectionModel(self.gateway, self.models.get(model), settings, self.seed, self.search)


@contextmanager
def generator_adapter(
    data: str | Path | Iterable[Example | Mapping[str, Any]],
    *,
    generator: ModelLike,
    prompt: str | Path | Prompt,
    checklist: str | Path | Checklist | None = None,
    judge: ModelLike | None = None,
    judge_prompt: str | Path | Prompt | None = None,
    checker: str | CheckFunction | None = None,
    **options: Any,
) -> Iterator[OpenAdapter]:
    """Open an adapter with which GEPA improves a generator's prompt. Arguments as for :func:`askance.tune`.

    Args:
        data: JSONL or CSV file, or rows; outputs in it are not used.
        generator: Model that writes.
        prompt: The generator's starting prompt; GEPA rewrites the longest text between its placeholders.
        checklist: Questions about every output.
        judge: Model that answers the questions.
        judge_prompt: The judge's prompt.
        checker: Function that takes an example with its output and returns what passes.
        options: Settings of ``tune`` that do not belong to its loop, e.g. ``call_budget``, ``split``, ``score_as``, and
            those of :class:`~askance.evaluation.options.Where` (``store``, ``no_cache``).

    Raises:
        InputError: Bad data, checklist, prompt, model name, checker or setting.
        MissingExtraError: GEPA is not installed.
        AskanceError: An error ended a search that GEPA itself let run on (``raise_on_exception=False``).
    """
    where = _where(options)
    writes, judges, given = named_models(_ours(options), generator, judge)
    job = tune.prepare(data, checklist, writes, judges, prompt, judge_prompt, checker, given)
    with _open(job, where) as adapter:
        yield adapter


@contextmanager
def evaluator_adapter(
    data: str | Path | Iterable[Example | Mapping[str, Any]],
    *,
    checklist: str | Path | Checklist,
    model: ModelLike,
    prompt: str | Path | Prompt | None = None,
    **options: Any,
) -> Iterator[OpenAdapter]:
    """Open an adapter with which GEPA improves a judge's prompt. Arguments as for :func:`askance.align`.

    Human scores are the target. Examples without a human score are left out of ``splits``. For the other arguments and
    the errors see :func:`generator_adapter`.
    """
    where = _where(options)
    asked, given = named_models(_ours(options), model)
    job = align.prepare(data, checklist, asked, prompt, given)
    with _open(job, where) as adapter:
        yield adapter


def _where(options: dict[str, Any]) -> Where:
    """Take the settings for the place of the answers out of the options, and return them."""
    return parse_options(Where, {name: options.pop(name) for name in Where.model_fields if name in options})


@contextmanager
def _open(job: Job, where: Where) -> Iterator[OpenAdapter]:
    import_optional("gepa", "gepa", "gepa")
    frame, guidance = cut_out_guidance(job.prompt)
    mode = mode_of(job.command)
    splits = split_examples(job, mode.strata(job))
    parts = (splits.development, splits.validation, splits.test)
    store = where.open_store()
    with (
        store,
        TemporaryDirectory(prefix="askance-gepa-") as folder,
        background_session(job.options, store) as (loop, models, gateway),
    ):
        run = RunDirectory(folder)  # stays empty, since the loop is GEPA's
        everything = SplitExamples(job.examples, (), ())
        context = RunContext(job, everything, models, gateway, run, Teller(run.journal(), Silent()))
        context.resolve_names()
        set_up = loop.run(mode.set_up(context))
        metric = metric_for(set_up.yardstick)
        adapter = OpenAdapter(
            subject=set_up.subject,
            checklist=set_up.start.checklist,
            frame=frame,
            metric=metric,
            search=Search(loop),
            signal=set_up.signal if job.options.explain != "never" else None,
            seed_candidate={COMPONENT: guidance},
            splits=SplitExamples(*([each for each in part if metric.knows(each.id)] for part in parts)),
            gateway=gateway,
            models=models,
            seed=job.options.seed,
        )
        yield adapter
    error = adapter.search.error
    if error is not None and not isinstance(error, BudgetExceededError):
        raise error


def _ours(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings for askance, without a model for the lesson memory, which is not used here. Raises InputError
    for settings of askance's loop."""
    for name in options:
        if name in LoopOptions.model_fields and name not in (*JudgeOptions.model_fields, *KEPT):
            raise InputError(f"'{name}' belongs to askance's own loop; here the loop is GEPA's, which has its own.")
    return {"embedder": "words", **options}


def _missing(seen: Observation, example: str) -> str:
    failed = next(verdict for verdict in seen.verdicts if verdict.example == example and verdict.status != "ok")
    return (
        f"{failed.model} gave no verdict on '{failed.question}' of the example '{example}' "
        f"({failed.error or failed.status}), so it has no score, and GEPA stops. Run it again: what was bought is "
        "kept, and only what is missing is asked for."
    )
