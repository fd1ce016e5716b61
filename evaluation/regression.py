"""Check whether a checklist score has dropped since a baseline was kept, for a build that should fail if so.

The comparison is paired: the same examples, checklist, judge and judge's prompt, so that only the outputs differ.
Anything else that changed is an error, never a pass.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import sha256
from math import ceil, log2
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from ..agents.checks import versions_of
from ..models.named import ModelLike, named_models
from ..models.trained.scorer_file import is_scorer, read_scorer
from ..prompts.checklist import dump_checklist
from ..prompts.errors import CoverageError, InputError, did_you_mean
from ..prompts.examples import documents
from ..prompts.formatting import Figure, coverage_text
from ..prompts.text_files import read_object, write_whole
from ..setting_types import RegressionSettings
from ..settings import parse_options
from ..stats.differences import Difference, mean_difference
from ..stats.resampling import Resampling
from .evaluate import EvaluationJob, load_inputs
from .evaluation_result import Evaluation
from .judge_file import judge_of_parts
from .open_judge import failing_questions
from .options import EvaluateOptions, RegressionOptions
from .own_judge import judge_asked
from .pass_fail import require_at_least
from .scoring import mean_score, whole_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ..prompts.checklist import Checklist
    from ..prompts.examples import Example, ExampleTable
    from ..prompts.prompt import Prompt
    from .kept_judge import KeptJudge


FORMAT = 1
LEVEL = 0.05
_ROUNDING = 1e-9
WORST = 5
"""Most examples named in a message."""
JUDGED_WITH = ("mode", "explain", "p_yes", "samples", "temperature", "repeat", "scores")
"""Settings that scores depend on; kept in the baseline, beside a hash of the calibration."""
HOW = "Make one, and commit it: pytest --askance-update"


@dataclass(frozen=True)
class Regression:
    """Result of a check."""

    difference: Difference | None
    """Mean score now less mean score of the baseline, paired, in [-1, 1]; None where there was no baseline."""
    p_drop: float | None
    """One-sided p-value of "it did not drop"; small speaks for a drop."""
    dropped: bool
    """Whether the score dropped beyond noise and by more than the tolerance."""
    before: float | None
    """Mean score of the baseline, over the examples compared; in [0, 1]."""
    now: float
    """Mean score now, over the same examples."""
    message: str
    """The result in words, for a person."""
    evaluation: Evaluation
    wrote: Path | None = None
    """Path of the baseline, if it was written."""


def check_regression(
    data: str | Path | Iterable[Example | Mapping[str, Any]],
    *,
    baseline: str | Path | None = None,
    checklist: str | Path | Checklist | None = None,
    model: ModelLike | None = None,
    prompt: str | Path | Prompt | None = None,
    judge: str | Path | KeptJudge | None = None,
    update: bool = False,
    **options: Unpack[RegressionSettings],
) -> Regression:
    """Judge outputs and compare their scores with those kept in a file, with ``fail_under``, or both.

    The ids of ``data`` must be those of the ``baseline``, a JSON file, which ``update`` writes anew. A ``judge`` (a
    run's directory, a ``judge.yaml`` or a judge) takes the place of checklist and prompt, and of the model unless
    another is given. ``options`` are those of :class:`~askance.evaluation.options.RegressionOptions`, with ``store``
    and ``no_cache``. The score has dropped where the paired swap test says so at the level of 5 %, and by more than
    ``tolerance``.

    Raises:
        InputError: There is no baseline, or it is of other examples, another checklist, judge or prompt; or there are
            too few examples for any drop to be told from noise.
        CoverageError: Fewer verdicts than ``min_coverage``, or with ``fail_under`` fewer rows that have an output.
        AskanceError: The pass rate (or, without a pass threshold, the mean score) is below ``fail_under``; or as
            :func:`~askance.evaluation.evaluate.evaluate`.
    """
    asked, given = named_models(options, model)
    if judge is None and (given.get("reads") is not None or (checklist is None and prompt is not None)):
        checklist, own = judge_asked(checklist, prompt, parse_options(RegressionOptions, given))
        given = {**given, "reads": own.reads}
    used = judge_of_parts(judge, checklist, asked, prompt)
    settings = parse_options(RegressionOptions, used.with_options(given))
    if used.kept is not None:
        used.kept.say_what_differs(asked, {})
    if baseline is None and settings.fail_under is None:
        raise InputError("A baseline is needed, or fail_under (the smallest pass rate), or both.")
    examples, questions, text = load_inputs(data, used.checklist, used.prompt, settings)
    _check_dimension(settings, questions)
    if settings.fail_under is not None:
        _require_outputs(examples, settings.min_coverage)
    path = None if baseline is None else Path(baseline)
    kept = None if update or path is None else _read(path)
    how = EvaluateOptions.of(settings)
    threshold = None if used.kept is None else used.kept.pass_threshold(asked, given)
    job = EvaluationJob(
        *(examples, questions, text, used.model, how),
        calibration=used.calibration,
        answers=used.answers,
        threshold=threshold,
        p_yes_from=None if used.kept is None else used.kept.p_yes_from(asked),
    )
    found = job.run()
    _require_coverage(found, settings.min_coverage)
    held = None
    if settings.fail_under is not None:
        held = require_at_least(found.to_dict(), settings.fail_under, "fail_under")
    if path is None:
        assert held is not None, "there is one or the other"
        now = mean_score(each.overall for each in found.scores) or 0.0
        return Regression(None, None, False, None, now, held, found)
    judge_settings = {name: getattr(settings, name) for name in JUDGED_WITH}
    judge_settings["calibration"] = None if job.read_with is None else _digest(job.read_with.to_json())
    if settings.scores == "expected":
        judge_settings["score_scale"] = list(settings.score_scale)
    functions = versions_of(questions.computed)
    checklist_hash = _digest(dump_checklist(questions) + (json.dumps(functions) if functions else ""))
    facts = {
        "model": _known_as(found.model),
        "prompt": text.hash,
        "checklist": checklist_hash,
        "settings": judge_settings,
    }
    whole = whole_name(found.scores[0].dimensions)
    name = settings.dimension or whole
    scores = {each.example: {whole: each.overall, **each.dimensions} for each in found.scores}
    if kept is None:
        return _write(path, facts, scores, found, name)
    _same(path, kept, facts, examples)
    return _compare(kept, scores, examples, questions, found, settings, name)


def _check_dimension(settings: RegressionOptions, questions: Checklist) -> None:
    dimension = settings.dimension
    if dimension is None:
        return
    if settings.fail_under is not None:
        raise InputError("fail_under is of the whole score; leave out dimension.")
    if dimension not in questions.dimensions:
        known = ", ".join(questions.dimensions)
        raise InputError(
            f"The checklist has no dimension '{dimension}' (it has: "
            f"{known}).{did_you_mean(dimension, questions.dimensions)}"
        )


def _require_outputs(examples: ExampleTable, least: float) -> None:
    """Raise CoverageError if too many rows have no output: the pass rate would not count them."""
    rows = len(examples) + examples.without_output
    if len(examples) / rows < least:
        raise CoverageError(
            f"{examples.without_output} of {rows} rows have no output, so a pass rate of the others says nothing about "
            "them. Give them an output, leave the rows out, or allow for them with a lower min_coverage."
        )


def _require_coverage(found: Evaluation, least: float) -> None:
    seen = found.coverage
    if seen.share < least or not seen.answered:
        failed = next((each for each in found.verdicts if each.error), None)
        error = "" if failed is None else f"Example '{failed.example}', question '{failed.question}': {failed.error}"
        raise CoverageError(
            f"Only {seen.answered} of {seen.asked} verdicts are there ({coverage_text(seen.share)}), less than "
            f"min_coverage={least:.1%}, so nothing can be said about the score. {error}".rstrip()
        )


def _known_as(model: str) -> str:
    """Return a model's name for a baseline: a trained scorer's is made from its content, not from its folder."""
    return f"scorer:{read_scorer(Path(model)).identity[:16]}" if is_scorer(model) else model


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]


def _compare(
    kept: Mapping[str, Any],
    scores: Mapping[str, Mapping[str, float | None]],
    examples: Sequence[Example],
    questions: Checklist,
    found: Evaluation,
    settings: RegressionOptions,
    name: str,
) -> Regression:
    before = [_rounded(kept["examples"][each.id].get(name)) for each in examples]
    after = [_rounded(scores[each.id].get(name)) for each in examples]
    groups = documents(examples)
    gain = mean_difference(before, after, Resampling(groups))
    drop = mean_difference(after, before, Resampling(groups))
    # a swap test on n units has no p-value below 1 / 2^n
    least = ceil(log2(1 / LEVEL))
    pairs = [
        (a, b, each) for a, b, each in zip(before, after, examples, strict=True) if a is not None and b is not None
    ]
    sizes = dict.fromkeys(each.id for _, _, each in pairs)
    if groups is not None:
        sizes = dict.fromkeys(group for group, each in zip(groups, examples, strict=True) if each.id in sizes)
    units = len(sizes)
    if gain.value is None or drop.p_value is None or units < least:
        raise InputError(
            f"Only {units} {'examples' if groups is None else 'documents'} have a score in the baseline and now; with "
            f"fewer than {least} no drop can be told from noise."
        )
    dropped = drop.p_value <= LEVEL and -gain.value > settings.tolerance + _ROUNDING
    means = sum(a for a, _, _ in pairs) / len(pairs), sum(b for _, b, _ in pairs) / len(pairs)
    message = (
        f"The checklist score ({name}) {'dropped' if dropped else 'held'}: {means[0]:.3f} before, {means[1]:.3f} now, "
        f"a change of {Figure.of(gain, '+.3f')} on {gain.n} examples (p of no drop {drop.p_value:.3f})."
    )
    if dropped:
        message += _worst(pairs, questions, found, settings.dimension)
        message += "\nIf the drop is meant, keep the new scores: pytest --askance-update"
    return Regression(gain, drop.p_value, dropped, means[0], means[1], message, found)


def _worst(
    pairs: Sequence[tuple[float, float, Example]], questions: Checklist, found: Evaluation, dimension: str | None
) -> str:
    lines = ["\nThe examples that lost most:"]
    for before, after, example in sorted(pairs, key=lambda pair: pair[1] - pair[0])[:WORST]:
        if after >= before:
            break
        verdicts = [
            each
            for each in found.verdicts
            if each.example == example.id and dimension in (None, questions.question(each.question).dimension)
        ]
        failed = failing_questions(questions, verdicts)
        said = f" fails: {' | '.join(failed)}" if failed else ""
        lines.append(f"  {example.id}: {before:.3f} before, {after:.3f} now;{said or ' no question fails outright'}")
    return "\n".join(lines)


def _read(path: Path) -> dict[str, Any]:
    try:
        data = read_object(path, "baseline")
    except InputError as error:
        raise InputError(f"{error} {HOW}") from None
    if not isinstance(data.get("examples"), dict):
        raise InputError(f"{path}: not a baseline of askance. {HOW}")
    if data.get("format") != FORMAT:
        raise InputError(f"{path}: a baseline of another version of askance. {HOW}")
    for name, row in data["examples"].items():
        if not isinstance(row, dict) or not all(map(_is_score, row.values())):
            raise InputError(f"{path}: the scores of '{name}' are damaged; numbers in [0, 1] or null are needed. {HOW}")
    return data


def _is_score(value: object) -> bool:
    return value is None or (type(value) in (int, float) and 0 <= value <= 1)  # type: ignore[operator]


def _write(
    path: Path, facts: Mapping[str, Any], scores: Mapping[str, Mapping[str, float | None]], found: Evaluation, name: str
) -> Regression:
    """Write the baseline, with one line per example, so that changes can be read in a review."""
    values = [each for row in scores.values() if (each := row[name]) is not None]
    if not values:
        raise CoverageError(f"{path}: not one example has a score, so there is no baseline to write.")
    lines = [f"  {json.dumps(key)}: {json.dumps(value)}," for key, value in {"format": FORMAT, **facts}.items()]
    body = ",\n".join(
        f"    {json.dumps(name, ensure_ascii=False)}: {json.dumps(row, ensure_ascii=False)}"
        for name, row in scores.items()
    )
    text = "{\n" + "\n".join(lines) + '\n  "examples": {\n' + body + "\n  }\n}\n"
    write_whole(path, text)
    now = sum(values) / len(values)
    message = f"{path}: baseline of {len(scores)} examples written, mean score {now:.3f}."
    return Regression(None, None, False, None, now, message, found, path)


def _same(path: Path, kept: Mapping[str, Any], facts: Mapping[str, Any], examples: Sequence[Example]) -> None:
    """Check that only the outputs differ. Raises InputError where something else does."""
    what = {"model": "judge", "prompt": "judge's prompt", "checklist": "checklist", "settings": "settings"}
    changed = [words for name, words in what.items() if kept.get(name) != facts[name]]
    if changed:
        raise InputError(
            f"{path}: the {' and the '.join(changed)} changed since the baseline was made, so scores cannot be "
            "compared. Look at the new ones and keep them: pytest --askance-update"
        )
    ids = {each.id for each in examples}
    missing, new = sorted(kept["examples"].keys() - ids), sorted(ids - kept["examples"].keys())
    if missing or new:
        parts = [
            f"{len(each)} {words} ({', '.join(each[:3])}{', …' if len(each) > 3 else ''})"
            for each, words in ((missing, "are gone"), (new, "are new"))
            if each
        ]
        raise InputError(
            f"{path}: the examples are not those of the baseline: {' and '.join(parts)}. Bring them back, or keep the "
            "new ones: pytest --askance-update"
        )


def _rounded(score: float | None) -> float | None:
    """Round a score to nine digits: equal scores may differ in later ones."""
    return None if score is None else round(score, 9)
