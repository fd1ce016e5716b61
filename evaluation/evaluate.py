"""``evaluate``: judge a data set with a checklist and say how far people agree (BinEval §3.2)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..agents.evaluator import Evaluator
from ..models.session import run_sync, session
from ..prompts.checklist import FAULT, Checklist, load_checklist
from ..prompts.default import default_prompt
from ..prompts.examples import Example, documents, human_dimensions, load_examples
from ..prompts.prompt import Prompt, load_prompt
from ..prompts.words import Figure, number_text
from ..stats.correlation import correlate, correlations_dict, per_group, statistic_dict, system_level
from ..stats.pass_fail import HALF
from ..stats.resampling import Resampling
from .calibration import load_calibration
from .options import EvaluateOptions, JudgeOptions, parse_options
from .pass_fail import PassThreshold, judge_passes, pass_fail_lines, pass_labels
from .progress import watching
from .scoring import coverage, coverage_line, human_targets, mean_score, score_examples, to_scale, yes_rates
from .shown import Shown, View, correlation_figures
from .slices import slice_rows, slice_table, slice_values
from .weights_file import weighted_by

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from ..agents.buying import Estimate
    from ..memory.verdict_store import VerdictStore
    from ..models.base import Model
    from ..models.budget import Budget
    from ..models.gateway import Gateway
    from ..models.resolve import Models
    from ..prompts.verdicts import Verdict
    from ..stats.correlation import Correlations, PerGroup
    from .adaptive import AdaptiveEvaluation
    from .calibration import Calibration
    from .pass_fail import PassFail, PassLabels
    from .progress import Watcher
    from .scoring import Coverage, ExampleScore, Targets
    from .shown import Rows


@dataclass(frozen=True)
class Agreement:
    """How the scores of one dimension agree with people's."""

    dimension: str
    pooled: Correlations
    per_document: PerGroup | None
    """None where every example has a document of its own."""
    per_system: Correlations | None
    """None where examples name no system, or fewer than three."""


@dataclass(frozen=True, repr=False)
class Evaluation(Shown):
    """Verdicts with the scores and correlations derived from them."""

    model: str
    prompt: str
    verdicts: Sequence[Verdict] = field(repr=False)
    scores: Sequence[ExampleScore] = field(repr=False)
    agreement: Sequence[Agreement]
    coverage: Coverage
    budget: Budget
    scale: tuple[float, float]
    asking: AdaptiveEvaluation | None = None
    """What was asked about each example, where questions were left out; ``scores`` are then what its ``known`` gives."""
    faults: Sequence[str] = ()
    """Ids of the questions to which yes speaks against the output."""
    passing: PassFail | None = None
    """Which outputs pass, where it is known from which score on they do."""
    slices: Mapping[str, Any] | None = None
    """The figures of each value of a metadata field, where they were asked for."""

    def means(self) -> dict[str, float | None]:
        """Mean score by dimension, and ``overall``, on the scale asked for."""
        dimensions = list(self.scores[0].dimensions) if self.scores else []
        means = {name: mean_score(each.dimensions[name] for each in self.scores) for name in dimensions}
        means["overall"] = mean_score(each.overall for each in self.scores)
        return {name: to_scale(value, *self.scale) for name, value in means.items()}

    def _view(self) -> View:
        view = evaluation_view(self.to_dict())
        return replace(view, tables={**view.tables, "verdicts": lambda: [each.to_dict() for each in self.verdicts]})

    def to_dict(self) -> dict[str, Any]:
        """Everything but the verdicts, for ``--json``."""
        return {
            "model": self.model,
            "prompt": self.prompt,
            "coverage": self.coverage.to_dict()
            | ({} if self.asking is None else {"not_asked": self.coverage.not_asked}),
            "scale": list(self.scale),
            "means": self.means(),
            "yes_rates": yes_rates(self.verdicts),
            **({"faults": list(self.faults)} if self.faults else {}),
            "agreement": {each.dimension: _agreement_dict(each) for each in self.agreement},
            **({} if self.passing is None else self.passing.to_dict()),
            **({} if self.slices is None else {"by": dict(self.slices)}),
            "scores": [
                {
                    "example": each.example,
                    "overall": to_scale(each.overall, *self.scale),
                    "dimensions": {name: to_scale(v, *self.scale) for name, v in each.dimensions.items()},
                    **({} if self.passing is None else {"pass": self.passing.passed[each.example]}),
                    **self._range(place),
                }
                for place, each in enumerate(self.scores)
            ],
            **({} if self.asking is None else {"largest_error": self.largest_error, "asked": self._asked()}),
            **self.budget.to_dict(),
        }

    def _asked(self) -> dict[str, int]:
        """How often each question was asked."""
        return dict(Counter(each.question for each in self.verdicts))

    @property
    def largest_error(self) -> float | None:
        """How far a score can be from that of all questions at most, on the scale asked for; None where unknown."""
        error = None if self.asking is None else self.asking.largest_error
        return None if error is None else error * (self.scale[1] - self.scale[0])

    def _range(self, place: int) -> dict[str, Any]:
        """Between what an example's score would lie if all questions were asked, where some were not."""
        if self.asking is None:
            return {}
        found = self.asking.scores[place]
        low, high = (to_scale(each, *self.scale) for each in (found.low, found.high))
        return {"low": low, "high": high, "asked": found.asked, "ended": found.ended}


def _agreement_dict(agreement: Agreement) -> dict[str, Any]:
    row: dict[str, Any] = {"pooled": correlations_dict(agreement.pooled, all_ends=True)}
    if agreement.per_document is not None:
        row["per_document"] = statistic_dict(agreement.per_document.average) | {
            "documents": agreement.per_document.used,
            "undefined": agreement.per_document.undefined,
        }
    if agreement.per_system is not None:
        row["per_system"] = correlations_dict(agreement.per_system, all_ends=True)
    return row


def evaluation_view(data: Mapping[str, Any]) -> View:
    """What there is to see of an evaluation.

    Args:
        data: As :meth:`Evaluation.to_dict` gives it and ``--json`` prints it.
    """
    seen, means, (low, high) = data["coverage"], data["means"], data["scale"]
    asked, found, faults = data.get("asked", {}), data["agreement"], data.get("faults", ())
    pooled = {name: each["pooled"] for name, each in found.items()}
    tables: dict[str, Callable[[], Rows]] = {
        "scores": lambda: [
            {"example": each["example"], "overall": each["overall"], **each["dimensions"]}
            | ({"pass": each["pass"]} if "pass" in each else {})
            for each in data["scores"]
        ],
        "means": lambda: [{"dimension": name, "mean": value} for name, value in means.items()],
        "yes_rates": lambda: [
            {
                "question": name,
                **({"good": FAULT if name in faults else "yes"} if faults else {}),
                "asked": asked.get(name),
                "yes": Figure(rate, form=".1%"),
            }
            for name, rate in data["yes_rates"].items()
        ],
        "agreement": lambda: [
            {"dimension": name, "n": row["n"], **correlation_figures(row)} for name, row in pooled.items()
        ],
        "per_document": lambda: [
            {"dimension": name, "documents": row["documents"], "undefined": row["undefined"], "n": row["n"]}
            | {"spearman": Figure.of(row)}
            for name, each in found.items()
            if (row := each.get("per_document"))
        ],
        "per_system": lambda: [
            {"dimension": name, "n": row["n"], **correlation_figures(row)}
            for name, each in found.items()
            if (row := each.get("per_system"))
        ],
        "slices": lambda: slice_table(data["by"]) if "by" in data else [],
    }
    captions = {
        "means": f"mean score, from {low:g} to {high:g}",
        "yes_rates": "share of yes",
        "agreement": "agreement with people",
        "per_document": "agreement with people inside documents; mean over those where it is defined",
        "per_system": "agreement with people of systems' means",
        "slices": f"by {data['by']['field']}; scores are from 0 to 1" if "by" in data else "slices",
    }
    mean = number_text(means["overall"])
    told = [f"{name} {number_text(row['spearman'])}" for name, row in pooled.items()]
    return View(
        f"{len(data['scores'])} examples by {data['model']}",
        [
            *pass_fail_lines(data),
            f"mean score {mean} on a scale from {low:g} to {high:g}",
            coverage_line(seen),
            *([_not_asked(seen, data.get("largest_error"))] if "not_asked" in seen else []),
            *(f"Spearman with people, {name}: {Figure.of(row, key='spearman')}" for name, row in pooled.items()),
        ],
        tables,
        tuple(captions),
        f"mean score {mean}, coverage {seen['share']:.1%}"
        + (f", Spearman with people: {', '.join(told)}" if told else ""),
        captions,
    )


def _not_asked(seen: Mapping[str, Any], error: float | None) -> str:
    """How many verdicts were not asked for, and how far off scores can be."""
    share = seen["not_asked"] / (seen["asked"] + seen["not_asked"])
    text = f"Not asked, as it could not matter: {seen['not_asked']} verdicts ({share:.1%} of all)."
    if error is None:
        return text
    return f"{text} No score is further than {error:.3f} from that of all questions."


def evaluate(
    data: str | Path | Iterable[Example | Mapping[str, Any]],
    *,
    checklist: str | Path | Checklist,
    model: str | Model,
    prompt: str | Path | Prompt | None = None,
    watcher: Watcher | None = None,
    progress: bool | None = None,
    evaluator: type[Evaluator] = Evaluator,
    **options: Any,
) -> Evaluation:
    """Judge examples with a checklist.

    Args:
        data: JSONL or CSV file, or rows.
        checklist: YAML or JSON file, or a checklist.
        model: ``provider/model``, or an object that can be asked.
        prompt: File or prompt; askance's own neutral one by default.
        watcher: Told how the work goes on.
        progress: Show how the work goes on; by default in notebooks only.
        evaluator: What puts the questions to the model.
        options: Settings of :class:`~askance.evaluation.options.EvaluateOptions`, among them ``cache`` and ``no_cache``.

    Raises:
        InputError: Bad data, checklist, prompt, model name or setting.
        BudgetExceededError: A cap was reached; the answers so far are kept.
        AskanceError: The endpoint is down or refuses every call.
    """
    return prepare(data, checklist, model, prompt, options, evaluator).run(watcher, progress)


def prepare(
    data: str | Path | Iterable[Example | Mapping[str, Any]],
    checklist: str | Path | Checklist,
    model: str | Model,
    prompt: str | Path | Prompt | None,
    options: Mapping[str, Any],
    evaluator: type[Evaluator] = Evaluator,
) -> EvaluationJob:
    """Load and check what :func:`evaluate` is given; nothing is bought.

    Raises:
        InputError: Names the file, line and field at fault.
    """
    settings = parse_options(EvaluateOptions, options)
    return EvaluationJob(*load_inputs(data, checklist, prompt, settings), model, settings, evaluator)


@dataclass(frozen=True)
class EvaluationJob:
    """The inputs of an evaluation, checked."""

    examples: list[Example]
    checklist: Checklist
    prompt: Prompt
    model: str | Model
    settings: EvaluateOptions
    evaluator: type[Evaluator] = Evaluator
    calibration: Calibration | None = None
    """In place of the file that the settings name."""
    answers: Path | None = None
    """Another store, whose answers are reused too."""
    threshold: PassThreshold | None = None
    """From which score on an output passes, unless the settings say otherwise."""

    def estimate(self) -> Estimate:
        """What :meth:`run` would buy; nothing is bought."""

        async def estimate(store: VerdictStore) -> Estimate:
            async with session(self.settings, store) as (models, gateway):
                return self._asking(models, gateway).estimate(self.examples)

        with self.settings.store(to_estimate=True, beside=self.answers) as store:
            return run_sync(estimate(store))

    def run(self, watcher: Watcher | None = None, progress: bool | None = None) -> Evaluation:
        """Judge the examples; what is raised is as in :func:`evaluate`."""
        if human_dimensions(self.examples, self.checklist):  # refuses ratings that fit nothing before a call
            human_targets(self.examples, self.checklist, self.settings.human_scale)
        if self.settings.by is not None:
            slice_values(self.examples, self.settings.by)
        with watching(watcher, progress) as shown, self.settings.store(beside=self.answers) as store:
            return run_sync(self._run(store, shown))

    def _asking(self, models: Models, gateway: Gateway) -> Evaluator:
        return self.evaluator(gateway, models.get(self.model), self.prompt, self.checklist, self.settings.judging)

    async def _run(self, store: VerdictStore, watcher: Watcher) -> Evaluation:
        examples, checklist, settings = self.examples, self.checklist, self.settings
        calibration = self.calibration
        if settings.calibration is not None:
            calibration = load_calibration(settings.calibration)
        if calibration is not None:
            calibration.check_polarity(checklist)
        async with session(settings, store, watcher.say) as (models, gateway):
            asked = self._asking(models, gateway)
            watcher.watch(gateway.budget)
            watcher.phase(f"asking {asked.model.name}", len(examples) * len(checklist.questions) * settings.repeat)
            if settings.adaptive:
                asking = await _ask_adaptively(asked, examples, settings, watcher)
                verdicts: Sequence[Verdict] = asking.verdicts
            else:
                asking, verdicts = None, await asked.judge(examples, watcher.advance)
        if calibration is not None:
            verdicts = calibration.apply(verdicts)
        scores = score_examples(examples, checklist, verdicts, soft=settings.soft)
        seen = coverage(verdicts)
        if asking is not None:
            scores = asking.known(scores, checklist)
            seen = replace(seen, not_asked=asking.not_asked * settings.repeat)
        agreement: list[Agreement] = []
        targets = labels = None
        if human_dimensions(examples, checklist):
            watcher.phase("comparing with the human scores")
            targets = human_targets(examples, checklist, settings.human_scale)
            agreement = _agreement(examples, targets, scores, settings)
            labels = pass_labels(examples, targets)
        threshold = self._threshold(targets, labels)
        sampling = Resampling(documents(examples), settings.resamples, seed=settings.seed)
        passing = None if threshold is None else judge_passes(scores, examples, threshold, labels, sampling)
        slices = None
        if settings.by is not None:
            how = {"resamples": settings.resamples, "seed": settings.seed}
            slices = slice_rows(settings.by, examples, scores, targets, labels, threshold, **how)
        name, prompt = asked.model.name, self.prompt.hash
        spent, scale, faults = gateway.budget, settings.scale, tuple(checklist.faults)
        return Evaluation(
            name, prompt, verdicts, scores, agreement, seen, spent, scale, asking, faults, passing, slices
        )

    def _threshold(self, targets: Targets | None, labels: PassLabels | None) -> PassThreshold | None:
        """From which score on an output passes; None where nobody said, and people's labels do not ask for it."""
        given, mark = self.settings.pass_threshold, self.settings.pass_mark
        rated = ("overall",) if targets is None else targets.dimensions
        if given is not None:
            return PassThreshold(given, "given", dimensions=rated)
        if mark is not None:
            return PassThreshold(mark, "pass_mark")
        if self.settings.adaptive:
            return None
        return self.threshold or (PassThreshold(HALF, "default", dimensions=rated) if labels is not None else None)


def load_inputs(
    data: str | Path | Iterable[Example | Mapping[str, Any]],
    checklist: str | Path | Checklist,
    prompt: str | Path | Prompt | None,
    settings: JudgeOptions,
) -> tuple[list[Example], Checklist, Prompt]:
    """Examples, checklist and evaluator prompt from files or objects, checked.

    Raises:
        InputError: Names the file, line and field at fault.
    """
    questions = load_checklist(checklist)
    examples = load_examples(data, fields=settings.field, limit=settings.limit, labels=settings.labels)
    if settings.weights is not None:
        questions = weighted_by(questions, settings.weights, scores=settings.scores, examples=examples)
    return examples, questions, default_prompt(examples) if prompt is None else load_prompt(prompt)


async def _ask_adaptively(
    evaluator: Evaluator, examples: Sequence[Example], settings: EvaluateOptions, watcher: Watcher
) -> AdaptiveEvaluation:
    from .adaptive import evaluate_adaptively

    questions = len(evaluator.checklist.questions) * settings.repeat

    def on_examples(done: int, of: int) -> None:
        watcher.advance(done * questions, of * questions)

    return await evaluate_adaptively(
        evaluator,
        examples,
        tolerance=settings.stop_within,
        cuts=() if settings.pass_mark is None else (settings.pass_mark,),
        soft=settings.soft,
        on_examples=on_examples,
    )


def _agreement(
    examples: list[Example], targets: Targets, scores: list[ExampleScore], settings: EvaluateOptions
) -> list[Agreement]:
    groups = documents(examples)
    resampling = Resampling(groups, settings.resamples, seed=settings.seed)
    systems = [example.system for example in examples]
    found = []
    for dimension in targets.dimensions:
        values = [targets.dimension_score(each, dimension) for each in scores]
        wanted = [targets.wanted[each.example].get(dimension) for each in scores]
        found.append(
            Agreement(
                dimension,
                correlate(values, wanted, resampling),
                per_group(values, wanted, groups, resampling=resampling) if groups else None,
                system_level(values, wanted, systems, resampling) if len(set(systems) - {None}) > 2 else None,
            )
        )
    return found
