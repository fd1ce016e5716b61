"""A scorer's quality: on validation whether the teacher's verdicts help, and one measurement on test.

A teacher gives many verdicts, and people rate few outputs. If the teacher agrees little with people, its errors
outweigh people's labels. In a simulated world a teacher that agreed with people by .37 took a scorer from .85 down to
.56. So two scorers are trained, with and without the teacher. Their agreement with people on validation decides.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import process_time
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ..agents.checks import computed_verdicts
from ..evaluation.calibration_fit import platt
from ..evaluation.raters.agreement import agreement_of_raters
from ..evaluation.scoring import complete_mean, human_targets, measure, score_examples, source_targets
from ..models.trained.scored_text import scored_text
from ..models.trained.trained_scorer import DIGITS, expected_scores
from ..prompts.examples import document_of, documents, human_dimensions
from ..prompts.verdicts import Verdict, VerdictColumns
from ..stats.correlation import correlate, correlations_dict, spearman, statistic_dict
from ..stats.differences import difference_dict, paired_difference
from ..stats.pass_fail import rate
from ..stats.resampling import Resampling
from .mixture import FEWEST, PARTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ..evaluation.scoring import ExampleScore, Targets
    from ..models.trained.causal import CausalNetwork
    from ..models.trained.network import Network
    from ..models.trained.scored_text import ScoredText
    from ..models.trained.scorer_file import ScorerFile
    from ..prompts.checklist import Checklist
    from ..prompts.examples import Example
    from ..stats.differences import Difference
    from .mixture import Mixture, Probe, TextOf, TrainingItem
    from .options import TrainOptions

AT_ONCE = 64
BINS = 10  # bins of P(yes), for the expected calibration error
TIMED = 128  # texts whose processor time is measured
FEWEST_RATED = 20  # validation outputs with people's scores that the comparison needs
NOISE = 1.0  # lead that people alone need, in standard errors: people and teacher together have more data
NOT_KEPT = {"both": "people_alone", "people": "with_verdicts"}  # kept scorer: the other scorer's name in test figures


@dataclass
class ScorerReader:
    """A trained network, with its answers kept: each text is read once."""

    network: Network
    text_of: TextOf = scored_text
    rationale_tokens: int | None = None  # most tokens of a rationale before each answer; None: it answers at once

    def __post_init__(self) -> None:
        """Start with no answers."""
        self._known: dict[ScoredText, float] = {}

    def levels(self, texts: Sequence[ScoredText]) -> Any:
        """Return the log-probability of each score level, shape (texts, levels), after a rationale if it writes one."""
        if self.rationale_tokens is None:
            return self.network.levels(texts)
        return cast("CausalNetwork", self.network).levels_after_rationales(texts, self.rationale_tokens)[0]

    def raw(self, texts: Sequence[ScoredText]) -> list[float]:
        """Return ŷ of each text before calibration, in [0, 1]."""
        new = list(dict.fromkeys(text for text in texts if text not in self._known))
        for begin in range(0, len(new), AT_ONCE):
            some = new[begin : begin + AT_ONCE]
            self._known.update(zip(some, expected_scores(self.levels(some).tolist()), strict=True))
        return [self._known[text] for text in texts]

    def side(self, side: Sequence[Probe], file: ScorerFile) -> float:
        """Return the score of an output, in [0, 1]: the weighted mean of its questions' calibrated P(yes), or of
        1 - P(yes) for a question about a fault."""
        said = [file.calibrated(p) for p in self.raw([each.text for each in side])]
        worth = [1.0 - p if each.is_fault else p for p, each in zip(said, side, strict=True)]
        return sum(each.weight * p for each, p in zip(side, worth, strict=True)) / sum(each.weight for each in side)


def fit_calibration(reader: ScorerReader, validation: Sequence[TrainingItem]) -> tuple[float, float, str | None]:
    """Fit slope and shift of P(yes) on the verdicts of validation. Also return the reason if they are not fitted."""
    if reader.network.kind == "causal":
        return 1.0, 0.0, "a causal model's P(yes) is that of its own words, also where another program runs it"
    items = [each for each in validation if each.kind == "verdict"]
    if len(items) < BINS:
        return 1.0, 0.0, f"validation has {len(items)} verdicts, and {BINS} are needed to calibrate P(yes)"
    raw = reader.raw([each.left[0].text for each in items])
    slope, shift = platt(np.array(raw), np.array([each.target for each in items]))
    if slope <= 0:
        return 1.0, 0.0, "on validation a higher P(yes) does not go with the wanted one, so it was not calibrated"
    return slope, shift, None


def calibration_figures(reader: ScorerReader, test: Sequence[TrainingItem], file: ScorerFile) -> dict[str, Any]:
    """Return Brier score, expected calibration error and :func:`reliability` of P(yes) on the verdicts of test,
    ``before`` and ``after`` calibration, and the number ``n`` of verdicts."""
    items = [each for each in test if each.kind == "verdict"]
    if not items:
        return {"n": 0, "reason": "test has no verdict"}
    wanted = np.array([each.target for each in items])
    raw = reader.raw([each.left[0].text for each in items])
    found: dict[str, Any] = {"n": len(items)}
    for name, p_yes in (("before", np.array(raw)), ("after", np.array([file.calibrated(p) for p in raw]))):
        found[name] = {
            "brier": float(np.mean((p_yes - wanted) ** 2)),
            "calibration_error": calibration_error(p_yes, wanted),
            "bins": reliability(p_yes, wanted),
        }
    return found


def reliability(said: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any]) -> list[dict[str, Any]]:
    """Return one row for each non-empty tenth of P(yes): ``bin``, ``n``, and the means ``said`` and ``wanted``."""
    bins = np.minimum((said * BINS).astype(int), BINS - 1)
    return [
        {
            "bin": each,
            "n": int((bins == each).sum()),
            "said": float(said[bins == each].mean()),
            "wanted": float(wanted[bins == each].mean()),
        }
        for each in sorted({*bins.tolist()})
    ]


def calibration_error(said: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any]) -> float:
    """Return the expected calibration error: the mean of |mean said - mean wanted| over the bins, weighted by size."""
    gaps = [each["n"] * abs(each["said"] - each["wanted"]) for each in reliability(said, wanted)]
    return float(sum(gaps) / len(said))


def figures_on_test(
    reader: ScorerReader,
    file: ScorerFile,
    examples: Sequence[Example],
    items: Sequence[TrainingItem],
    checklist: Checklist,
    teacher: VerdictColumns | None,
    others: Mapping[str, VerdictColumns],
    options: TrainOptions,
    group_of: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return figures on test of the scorer, its teacher and the ``others``, which include the untrained ``base``.

    ``people``: correlation of each with people. ``beyond``: the scorer's Spearman less that of each other one.
    ``base``, ``teacher``: correlations of base and scorer with the teacher's scores; for the scorer also of P(yes) on
    each of the ``questions``. ``verdicts``: correlation of the scorer's P(yes) with the wanted P(yes).
    ``preferences``: share of the decided pairs in which the preferred output has the higher score. ``group_of`` maps
    units to documents, which are resampled whole."""
    found: dict[str, Any] = {"examples": len(examples)}
    sampling = {"resamples": options.resamples, "seed": options.seed}
    verdicts = verdicts_of(reader, examples, checklist, file)
    scores = score_examples(examples, checklist, verdicts)
    other_scores = {name: score_examples(examples, checklist, each) for name, each in others.items()}
    ids = {each.id for each in examples}
    teacher_verdicts = [each for each in teacher or () if each.example in ids]
    taught = score_examples(examples, checklist, teacher_verdicts) if teacher_verdicts else None
    if examples and human_dimensions(examples, checklist):
        people = human_targets(examples, checklist, options.human_scale)
        rivals = ({} if taught is None else {"teacher": taught}) | other_scores
        found["people"] = {
            name: measure(each, people, examples, **sampling).to_dict()
            for name, each in ({"scorer": scores} | rivals).items()
        }
        if raters := agreement_of_raters(examples, people.dimensions, Resampling(documents(examples), **sampling)):
            found["rater_agreement"] = raters.by_dimension()
        found["beyond"] = {
            name: difference_dict(_ahead(other, scores, people, examples, sampling)) for name, other in rivals.items()
        }
    if taught is not None:
        wanted = source_targets(checklist, taught)
        found["base"] = measure(other_scores["base"], wanted, examples, **sampling).to_dict()
        found["teacher"] = measure(scores, wanted, examples, **sampling).to_dict()
        found["teacher"]["questions"] = _by_question(verdicts, teacher_verdicts, examples, checklist, sampling)
    single = [each for each in items if each.kind == "verdict"]
    if single:
        group = {each.id: document_of(each) for each in examples}
        ours = [reader.side(each.left, file) for each in single]
        resampling = Resampling([group.get(each.unit, each.unit) for each in single], **sampling)
        found["verdicts"] = correlations_dict(correlate(ours, [each.target for each in single], resampling))
    pairs = [each for each in items if each.source == "preferences" and each.target != 0.5]
    if pairs:
        right = [_credit(reader, each, file) for each in pairs]
        names = [each.unit if group_of is None else group_of[each.unit] for each in pairs]
        groups = names if len(set(names)) < len(names) else None
        found["preferences"] = statistic_dict(rate(right, Resampling(groups, **sampling)))
    return found


def speed(reader: ScorerReader, texts: Sequence[ScoredText]) -> dict[str, Any]:
    """Measure the processor milliseconds of a verdict, in batches and alone."""
    sample = list(dict.fromkeys(texts))[: TIMED if reader.rationale_tokens is None else TIMED // 8]
    singles = sample[: max(1, len(sample) // 8)]
    reader.levels(sample[:1])  # warm-up, not timed
    times = []
    for batches in (
        [sample[begin : begin + AT_ONCE] for begin in range(0, len(sample), AT_ONCE)],
        [[each] for each in singles],
    ):
        began = process_time()
        for batch in batches:
            reader.levels(batch)
        times.append(1000 * (process_time() - began) / sum(map(len, batches)))
    return {
        "cpu_ms": times[0],
        "cpu_ms_alone": times[1],
        "n": len(sample),
        "mean_tokens": float(np.mean(reader.network.tokens(sample))),
    }


def price(cpu_seconds: float, cpu_ms: float, options: TrainOptions) -> dict[str, Any]:
    """Return the price of training, and the number of verdicts after which training has paid for itself. The verdicts
    that the scorer learned from are not counted as a cost."""
    training, verdict = (seconds / 3600 * options.machine_price for seconds in (cpu_seconds, cpu_ms / 1000))
    found: dict[str, Any] = {"training_cpu_seconds": cpu_seconds, "training_usd": training, "verdict_usd": verdict}
    for name, begin, cost, teacher_cost in (
        ("break_even_money", training, verdict, options.teacher_price),
        ("break_even_time", cpu_seconds, cpu_ms / 1000, options.teacher_seconds),
    ):
        option = "--teacher-price" if name.endswith("money") else "--teacher-seconds"
        if teacher_cost is None:
            found[name] = {"verdicts": None, "reason": f"{option} says what a verdict of the teacher takes"}
        elif teacher_cost <= cost:
            found[name] = {"verdicts": None, "reason": "a verdict of the teacher takes no more"}
        else:
            found[name] = {"verdicts": int(np.ceil(begin / (teacher_cost - cost)))}
    return found


def verdicts_of(
    reader: ScorerReader, examples: Sequence[Example], checklist: Checklist, file: ScorerFile | None = None
) -> VerdictColumns:
    """Return a network's answers to all questions on all examples; calibrated only if a ``file`` is given."""
    asked = [(example, question) for example in examples for question in checklist.questions]
    p_yes = reader.raw([reader.text_of(question, example) for example, question in asked])
    if file is not None:
        p_yes = [file.calibrated(p) for p in p_yes]
    return VerdictColumns(
        Verdict(example.id, question.id, "scorer", "", p >= 0.5, p, "logprob")
        for (example, question), p in zip(asked, p_yes, strict=True)
    )


def with_measures(verdicts: VerdictColumns, judged: Checklist, examples: Sequence[Example]) -> VerdictColumns:
    """Add the measures' verdicts to the scorer's. Raises as :func:`~askance.agents.checks.computed_verdicts`."""
    if not judged.measures:
        return verdicts
    return VerdictColumns.of([*verdicts, *computed_verdicts(judged.measures, examples, "")])


def figures_with_measures(
    verdicts: Iterable[Verdict], examples: Sequence[Example], judged: Checklist, options: TrainOptions
) -> dict[str, Any]:
    """Return the correlations with people of scorer and measures together; ``verdicts`` come from both."""
    people = human_targets(examples, judged, options.human_scale)
    sampling = {"resamples": options.resamples, "seed": options.seed}
    return measure(score_examples(examples, judged, verdicts), people, examples, **sampling).to_dict()


def _credit(reader: ScorerReader, pair: TrainingItem, file: ScorerFile) -> float:
    """Return 1 if the preferred output has the higher score, 0 if the other output has it, 1/2 for equal scores."""
    ahead = round(reader.side(pair.left, file) - reader.side(pair.right, file), DIGITS)
    return 0.5 if ahead == 0 else float((ahead > 0) == (pair.target > 0.5))


def _ahead(
    others: Sequence[ExampleScore],
    ours: Sequence[ExampleScore],
    people: Targets,
    examples: Sequence[Example],
    sampling: Mapping[str, int],
) -> Difference:
    """Return the scorer's Spearman with people less the others' Spearman, on the same examples."""
    theirs, mine = ([people.score(each) for each in scores] for scores in (others, ours))
    wanted = [people.overall(each.id) for each in examples]
    return paired_difference(theirs, mine, wanted, Resampling(documents(examples), **sampling))


def _by_question(
    verdicts: Sequence[Verdict],
    theirs: Sequence[Verdict],
    examples: Sequence[Example],
    checklist: Checklist,
    sampling: Mapping[str, int],
) -> dict[str, dict[str, Any]]:
    """Correlate the scorer's P(yes) with the teacher's on each question."""
    resampling = Resampling(documents(examples), **sampling)
    p_yes = {(each.example, each.question): each.p_yes for each in verdicts}
    wanted: dict[tuple[str, str], list[float | None]] = {}
    for each in theirs:
        wanted.setdefault((each.example, each.question), []).append(each.score(soft=True))
    found = {}
    for question in checklist.questions:
        keys = [(example.id, question.id) for example in examples]
        means = [complete_mean(wanted.get(key, [])) for key in keys]
        found[question.id] = correlations_dict(correlate([p_yes[key] for key in keys], means, resampling))
    return found


# --- comparison of two scorers: one learned from people alone, the other also from the teacher ---


def people_alone(mixture: Mixture, rated: int, options: TrainOptions) -> Mixture | None:
    """Return the data without the teacher's verdicts, for a second scorer. None if there are no verdicts, if fewer than
    FEWEST_RATED outputs of validation are ``rated``, if too few items are left, or if verdicts are trusted. Verdicts
    are also trusted when rationales are drawn about them."""
    taught = any(each.source == "verdicts" for each in mixture.training)
    parts = {part: tuple(each for each in mixture.part(part) if each.source != "verdicts") for part in PARTS}
    if options.trust_verdicts or options.rationales or not taught or rated < FEWEST_RATED:
        return None
    if len(parts["training"]) < FEWEST or not parts["validation"]:
        return None
    return replace(mixture, training=parts["training"], validation=parts["validation"])


def rated_validation(examples: Sequence[Example], checklist: Checklist, mixture: Mixture) -> list[Example]:
    """Return the outputs of validation that people scored on a dimension of the checklist."""
    found = [each for each in examples if mixture.part_of[each.id] == "validation" and each.human]
    return found if found and human_dimensions(found, checklist) else []


def compared(
    both: VerdictColumns,
    alone: VerdictColumns,
    examples: Sequence[Example],
    checklist: Checklist,
    options: TrainOptions,
) -> dict[str, Any]:
    """Choose on rated outputs of validation between the scorer from ``both`` people and teacher and the scorer from
    people ``alone``. Return ``kept``, each scorer's Spearman with people, the lead of people alone, and ``n``."""
    people = human_targets(examples, checklist, options.human_scale)
    wanted = [people.overall(each.id) for each in examples]
    scores = [score_examples(examples, checklist, each) for each in (both, alone)]
    first, second = ([people.score(each) for each in some] for some in scores)
    resampling = Resampling(documents(examples), options.resamples, seed=options.seed)
    difference = paired_difference(first, second, wanted, resampling, undefined_as_zero=True)
    # The standard error follows from the 95 % interval.
    error = (
        None if difference.low is None or difference.high is None else (difference.high - difference.low) / (2 * 1.96)
    )
    better = difference.value is not None and error is not None and difference.value > NOISE * error
    return {
        "kept": "people" if better else "both",
        "n": len(examples),
        "both": spearman(first, wanted).value,
        "people": spearman(second, wanted).value,
        "people_ahead": difference_dict(difference),
    }
