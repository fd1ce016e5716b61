"""A scorer's worth: on validation whether its teacher's verdicts help, and one look at test.

A teacher that agrees with people a little has many verdicts, and people rated few outputs: the teacher's errors then
outweigh what people say. In a simulated world a teacher that agreed with people by .37 took a scorer from .85 down to
.56. So two scorers are trained, and validation decides by their agreement with people, as everywhere else here.
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
TIMED = 128  # texts whose time is taken
FEWEST_RATED = 20  # outputs of validation with people's scores from which these can tell
NOISE = 1.0  # standard errors by which people alone have to teach more, as both together have more data
NOT_KEPT = {"both": "people_alone", "people": "with_verdicts"}  # the other scorer's name in figures on test


@dataclass
class ScorerReader:
    """A trained network; each text is read once."""

    network: Network
    text_of: TextOf = scored_text
    rationale_tokens: int | None = None  # most tokens of one before each answer; None: it answers at once

    def __post_init__(self) -> None:
        """Begin with nothing read."""
        self._known: dict[ScoredText, float] = {}

    def levels(self, texts: Sequence[ScoredText]) -> Any:
        """Log-probability of each score level, shape (texts, levels), after a rationale where it writes one."""
        if self.rationale_tokens is None:
            return self.network.levels(texts)
        return cast("CausalNetwork", self.network).levels_after_rationales(texts, self.rationale_tokens)[0]

    def raw(self, texts: Sequence[ScoredText]) -> list[float]:
        """ŷ of each text before calibration, in [0, 1]."""
        new = list(dict.fromkeys(text for text in texts if text not in self._known))
        for begin in range(0, len(new), AT_ONCE):
            some = new[begin : begin + AT_ONCE]
            self._known.update(zip(some, expected_scores(self.levels(some).tolist()), strict=True))
        return [self._known[text] for text in texts]

    def side(self, side: Sequence[Probe], file: ScorerFile) -> float:
        """The score of an output, in [0, 1]."""
        said = [file.calibrated(p) for p in self.raw([each.text for each in side])]
        worth = [1.0 - p if each.is_fault else p for p, each in zip(said, side, strict=True)]
        return sum(each.weight * p for each, p in zip(side, worth, strict=True)) / sum(each.weight for each in side)


def fit_calibration(reader: ScorerReader, validation: Sequence[TrainingItem]) -> tuple[float, float, str | None]:
    """Slope and shift of P(yes), fitted on the verdicts of validation; and the reason where they are not fitted."""
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
    """Brier score, expected calibration error and :func:`reliability` of P(yes) on the verdicts of test, ``before`` and
    ``after`` calibration, with their number ``n``."""
    items = [each for each in test if each.kind == "verdict"]
    if not items:
        return {"n": 0, "reason": "test has no verdict"}
    wanted = np.array([each.target for each in items])
    raw = reader.raw([each.left[0].text for each in items])
    found: dict[str, Any] = {"n": len(items)}
    for name, said in (("before", np.array(raw)), ("after", np.array([file.calibrated(p) for p in raw]))):
        found[name] = {
            "brier": float(np.mean((said - wanted) ** 2)),
            "calibration_error": calibration_error(said, wanted),
            "bins": reliability(said, wanted),
        }
    return found


def reliability(said: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any]) -> list[dict[str, Any]]:
    """The tenths of P(yes) that are not empty: ``bin``, ``n``, and the means ``said`` and ``wanted``."""
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
    """Expected calibration error: |mean said - mean wanted| over the bins, weighted by their sizes."""
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
    """Figures on test of the scorer, its teacher and the ``others``, one of which is the untrained ``base``.

    ``people``: correlations of each with people. ``beyond``: how far the scorer's Spearman is above each of theirs.
    ``base``, ``teacher``: correlations of base and scorer with the teacher's scores, and of P(yes) on each of the
    ``questions``. ``verdicts``: of the scorer's P(yes) with the wanted one. ``preferences``: share of the decided pairs
    in which the preferred output has the higher score. ``group_of`` names documents, which are resampled whole."""
    found: dict[str, Any] = {"examples": len(examples)}
    sampling = {"resamples": options.resamples, "seed": options.seed}
    verdicts = verdicts_of(reader, examples, checklist, file)
    scores = score_examples(examples, checklist, verdicts)
    beside = {name: score_examples(examples, checklist, each) for name, each in others.items()}
    ids = {each.id for each in examples}
    theirs = [each for each in teacher or () if each.example in ids]
    taught = score_examples(examples, checklist, theirs) if theirs else None
    if examples and human_dimensions(examples, checklist):
        people = human_targets(examples, checklist, options.human_scale)
        apart = ({} if taught is None else {"teacher": taught}) | beside
        found["people"] = {
            name: measure(each, people, examples, **sampling).to_dict()
            for name, each in ({"scorer": scores} | apart).items()
        }
        if raters := agreement_of_raters(examples, people.dimensions, Resampling(documents(examples), **sampling)):
            found["rater_agreement"] = raters.by_dimension()
        found["beyond"] = {
            name: difference_dict(_ahead(other, scores, people, examples, sampling)) for name, other in apart.items()
        }
    if taught is not None:
        wanted = source_targets(checklist, taught)
        found["base"] = measure(beside["base"], wanted, examples, **sampling).to_dict()
        found["teacher"] = measure(scores, wanted, examples, **sampling).to_dict()
        found["teacher"]["questions"] = _by_question(verdicts, theirs, examples, checklist, sampling)
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
    """Processor milliseconds of a verdict, asked in batches and alone."""
    some = list(dict.fromkeys(texts))[: TIMED if reader.rationale_tokens is None else TIMED // 8]
    alone = some[: max(1, len(some) // 8)]
    reader.levels(some[:1])
    times = []
    for batches in (
        [some[begin : begin + AT_ONCE] for begin in range(0, len(some), AT_ONCE)],
        [[each] for each in alone],
    ):
        began = process_time()
        for batch in batches:
            reader.levels(batch)
        times.append(1000 * (process_time() - began) / sum(map(len, batches)))
    return {
        "cpu_ms": times[0],
        "cpu_ms_alone": times[1],
        "n": len(some),
        "mean_tokens": float(np.mean(reader.network.tokens(some))),
    }


def price(cpu_seconds: float, cpu_ms: float, options: TrainOptions) -> dict[str, Any]:
    """The price of training, and after how many verdicts it has paid; those learned from cost nothing more."""
    training, verdict = (seconds / 3600 * options.machine_price for seconds in (cpu_seconds, cpu_ms / 1000))
    found: dict[str, Any] = {"training_cpu_seconds": cpu_seconds, "training_usd": training, "verdict_usd": verdict}
    for name, begin, own, theirs in (
        ("break_even_money", training, verdict, options.teacher_price),
        ("break_even_time", cpu_seconds, cpu_ms / 1000, options.teacher_seconds),
    ):
        option = "--teacher-price" if name.endswith("money") else "--teacher-seconds"
        if theirs is None:
            found[name] = {"verdicts": None, "reason": f"{option} says what a verdict of the teacher takes"}
        elif theirs <= own:
            found[name] = {"verdicts": None, "reason": "a verdict of the teacher takes no more"}
        else:
            found[name] = {"verdicts": int(np.ceil(begin / (theirs - own)))}
    return found


def verdicts_of(
    reader: ScorerReader, examples: Sequence[Example], checklist: Checklist, file: ScorerFile | None = None
) -> VerdictColumns:
    """A network's answers to all questions on all examples; without a ``file`` as it says them, uncalibrated."""
    asked = [(example, question) for example in examples for question in checklist.questions]
    said = reader.raw([reader.text_of(question, example) for example, question in asked])
    if file is not None:
        said = [file.calibrated(p) for p in said]
    return VerdictColumns(
        Verdict(example.id, question.id, "scorer", "", p >= 0.5, p, "logprob")
        for (example, question), p in zip(asked, said, strict=True)
    )


def with_measures(verdicts: VerdictColumns, judged: Checklist, examples: Sequence[Example]) -> VerdictColumns:
    """The scorer's verdicts and its measures'. Raises as :func:`~askance.agents.checks.computed_verdicts`."""
    if not judged.measures:
        return verdicts
    return VerdictColumns.of([*verdicts, *computed_verdicts(judged.measures, examples, "")])


def figures_with_measures(
    verdicts: Iterable[Verdict], examples: Sequence[Example], judged: Checklist, options: TrainOptions
) -> dict[str, Any]:
    """Correlations with people of the scorer together with its measures; ``verdicts`` are those of both."""
    people = human_targets(examples, judged, options.human_scale)
    sampling = {"resamples": options.resamples, "seed": options.seed}
    return measure(score_examples(examples, judged, verdicts), people, examples, **sampling).to_dict()


def _credit(reader: ScorerReader, pair: TrainingItem, file: ScorerFile) -> float:
    """1 where the preferred output has the higher score, 0 where the other one has it, 1/2 where they are the same."""
    ahead = round(reader.side(pair.left, file) - reader.side(pair.right, file), DIGITS)
    return 0.5 if ahead == 0 else float((ahead > 0) == (pair.target > 0.5))


def _ahead(
    others: Sequence[ExampleScore],
    ours: Sequence[ExampleScore],
    people: Targets,
    examples: Sequence[Example],
    sampling: Mapping[str, int],
) -> Difference:
    """The scorer's Spearman with people less that of others, on the same examples."""
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
    """Correlations of the scorer's P(yes) with the teacher's on each question."""
    resampling = Resampling(documents(examples), **sampling)
    ours = {(each.example, each.question): each.p_yes for each in verdicts}
    wanted: dict[tuple[str, str], list[float | None]] = {}
    for each in theirs:
        wanted.setdefault((each.example, each.question), []).append(each.score(soft=True))
    found = {}
    for question in checklist.questions:
        keys = [(example.id, question.id) for example in examples]
        means = [complete_mean(wanted.get(key, [])) for key in keys]
        found[question.id] = correlations_dict(correlate([ours[key] for key in keys], means, resampling))
    return found


# --- a scorer that learned from people alone beside one that learned from its teacher too ---


def people_alone(mixture: Mixture, rated: int, options: TrainOptions) -> Mixture | None:
    """The data without a teacher's verdicts; None where it has none, fewer than FEWEST_RATED outputs of validation are
    ``rated``, or verdicts are trusted, as where rationales are drawn about them."""
    taught = any(each.source == "verdicts" for each in mixture.training)
    parts = {part: tuple(each for each in mixture.part(part) if each.source != "verdicts") for part in PARTS}
    if options.trust_verdicts or options.rationales or not taught or rated < FEWEST_RATED:
        return None
    if len(parts["training"]) < FEWEST or not parts["validation"]:
        return None
    return replace(mixture, training=parts["training"], validation=parts["validation"])


def rated_validation(examples: Sequence[Example], checklist: Checklist, mixture: Mixture) -> list[Example]:
    """The outputs of validation that people scored on a dimension of the checklist."""
    found = [each for each in examples if mixture.part_of[each.id] == "validation" and each.human]
    return found if found and human_dimensions(found, checklist) else []


def compared(
    both: VerdictColumns,
    alone: VerdictColumns,
    examples: Sequence[Example],
    checklist: Checklist,
    options: TrainOptions,
) -> dict[str, Any]:
    """Decide by rated outputs of validation between the scorer of ``both`` people and teacher and that of people
    ``alone``: ``kept``, each one's Spearman with people, how far people alone are ahead, and ``n``."""
    people = human_targets(examples, checklist, options.human_scale)
    wanted = [people.overall(each.id) for each in examples]
    scores = [score_examples(examples, checklist, each) for each in (both, alone)]
    first, second = ([people.score(each) for each in some] for some in scores)
    resampling = Resampling(documents(examples), options.resamples, seed=options.seed)
    ahead = paired_difference(first, second, wanted, resampling, undefined_as_zero=True)
    error = None if ahead.low is None or ahead.high is None else (ahead.high - ahead.low) / (2 * 1.96)
    better = ahead.value is not None and error is not None and ahead.value > NOISE * error
    return {
        "kept": "people" if better else "both",
        "n": len(examples),
        "both": spearman(first, wanted).value,
        "people": spearman(second, wanted).value,
        "people_ahead": difference_dict(ahead),
    }
