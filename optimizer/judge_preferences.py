"""Scores for preference pairs, bought from a judge: both outputs of a pair are asked the same checklist."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..prompts.checklist import Checklist, load_checklist
from ..prompts.errors import InputError
from ..prompts.examples import Example
from ..prompts.jsonl import read_rows, validate_row
from ..prompts.preferences import Preference
from .evaluate import evaluate
from .scoring import complete_mean
from .weights import PreferenceScores, preference_scores

if TYPE_CHECKING:
    from ..models.base import Model
    from .evaluate import Evaluation
    from .progress import Watcher


def judge_preferences(
    path: str | Path,
    *,
    checklist: str | Path | Checklist,
    model: str | Model,
    watcher: Watcher | None = None,
    **options: Any,
) -> tuple[PreferenceScores, Evaluation]:
    """Judge both outputs of every pair; the score of a test is P(yes), or the answer with ``scores="hard"``.

    Args:
        path: Preference pairs, JSONL or CSV: ``id``, ``input``, ``output_a``, ``output_b``, ``preferred``.
        checklist: The tests; a pair with a missing verdict is left out and counted.
        model: The judge.
        watcher: Told how the work goes on.
        options: As for :func:`~askance.optimizer.evaluate.evaluate`; ``limit`` counts pairs.

    Raises:
        InputError: Names the file, line and field of the first problem.
        AskanceError: As :func:`~askance.optimizer.evaluate.evaluate`.
    """
    pairs = load_pairs(path, limit=options.pop("limit", None))
    questions = checklist if isinstance(checklist, Checklist) else load_checklist(checklist)
    examples = [
        Example(id=f"{pair.id}/{side}", input=pair.input, output=output)
        for pair in pairs
        for side, output in (("a", pair.output_a), ("b", pair.output_b))
    ]
    found = evaluate(examples, checklist=questions, model=model, watcher=watcher, **options)
    soft = options.get("scores", "soft") == "soft"
    sums: dict[tuple[str, str], list[float | None]] = {}
    for verdict in found.verdicts:
        sums.setdefault((verdict.example, verdict.question), []).append(verdict.score(soft=soft))

    def row(pair: Preference, side: str) -> list[float | None]:
        cells = [sums[f"{pair.id}/{side}", question.id] for question in questions.questions]
        return [complete_mean(cell) for cell in cells]

    scores = preference_scores(
        [pair.id for pair in pairs],
        [question.id for question in questions.questions],
        [row(pair, "a") for pair in pairs],
        [row(pair, "b") for pair in pairs],
        [pair.preferred for pair in pairs],
        groups=[pair.group or pair.input for pair in pairs],
        sections=[pair.section for pair in pairs],
        datasets=[pair.dataset for pair in pairs],
    )
    return scores, found


def load_pairs(path: str | Path, *, limit: int | None = None) -> list[Preference]:
    """Read preference pairs whose outputs are to be judged.

    Raises:
        InputError: Names the file, line and field of the first problem.
    """
    pairs: list[Preference] = []
    seen: dict[str, int] = {}
    for number, row in read_rows(Path(path)):
        if limit is not None and len(pairs) >= limit:
            break
        pair = validate_row(Preference, row, f"{path}, line {number}")
        if pair.id in seen:
            raise InputError(f"{path}, line {number}: the id '{pair.id}' was used before, in line {seen[pair.id]}.")
        seen[pair.id] = number
        pairs.append(pair)
    if not pairs:
        raise InputError(f"{path}: there are no pairs in it.")
    return pairs
