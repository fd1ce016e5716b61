"""Scores for preference pairs and for rated outputs, bought from a judge.

Either each output is judged alone, both outputs of a pair with the same checklist; or the judge sees both outputs of a
pair and says for each test which does better (``pairwise``), in one order or in both (``swap``).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..agents.pairwise import AS_IT_IS, SWAPPED, PairEvaluator, ordered_examples, pair_id, pairwise_prompt
from ..evaluation.evaluate import estimate_evaluation, evaluate
from ..evaluation.scoring import complete_mean
from ..prompts.checklist import Checklist, load_checklist
from ..prompts.errors import InputError
from ..prompts.examples import Example, Preference, load_examples
from ..prompts.rows import read_rows, validate_row
from .position_bias import PositionBias, position_bias
from .weights import PreferenceScores, RatingScores, preference_scores, rating_scores
from .weights.preferences import context_name
from .weights.ratings import rated_dimension

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ..agents.buying import Estimate
    from ..evaluation.evaluate import Evaluation
    from ..evaluation.progress import Watcher
    from ..models.base import Model
    from ..prompts.prompt import Prompt
    from ..prompts.verdicts import Verdict


@dataclass(frozen=True)
class JudgedPairs:
    """Pairs with the scores of a judge."""

    scores: PreferenceScores
    evaluation: Evaluation
    bias: PositionBias | None = None
    """What the order of the outputs did; None where each output was judged alone."""


def judge_preferences(
    path: str | Path,
    *,
    checklist: str | Path | Checklist,
    model: str | Model,
    prompt: str | Path | Prompt | None = None,
    pairwise: bool = False,
    swap: bool = False,
    watcher: Watcher | None = None,
    **options: Any,
) -> JudgedPairs:
    """Judge all pairs; a score is P(yes) or the expected score of an output, or the answer with ``scores="hard"``.

    With ``pairwise`` the score of output a is how likely it is called the better one, and that of b is 1 minus this.

    Args:
        path: Preference pairs, JSONL or CSV: ``id``, ``input``, ``output_a``, ``output_b``, ``preferred``.
        checklist: The tests; a pair with a missing verdict is left out and counted.
        model: The judge.
        prompt: For the judge; askance's own by default. With ``pairwise`` one without placeholders.
        pairwise: Show both outputs at once.
        swap: Show them in both orders and take the mean; only with ``pairwise``.
        watcher: Told how the work goes on.
        options: As for :func:`~askance.evaluation.evaluate.evaluate`; ``limit`` counts pairs.

    Raises:
        InputError: Names the file, line and field of the first problem.
        AskanceError: As :func:`~askance.evaluation.evaluate.evaluate`.
    """
    pairs = load_pairs(path, limit=options.pop("limit", None))
    questions = checklist if isinstance(checklist, Checklist) else load_checklist(checklist)
    soft = options.get("scores") != "hard"
    asked = _asked(pairs, prompt, pairwise=pairwise, swap=swap)
    found = evaluate(checklist=questions, model=model, watcher=watcher, **asked, **options)
    if not pairwise:
        return JudgedPairs(separate_scores(pairs, questions, found.verdicts, soft=soft), found)
    bias = position_bias([pair.id for pair in pairs], questions, cells(found.verdicts, soft=soft), swap=swap)
    return JudgedPairs(pairwise_scores(pairs, questions, found.verdicts, soft=soft, swap=swap), found, bias)


def estimate_pairs(
    path: str | Path,
    *,
    prompt: str | Path | Prompt | None = None,
    pairwise: bool = False,
    swap: bool = False,
    **judging: Any,
) -> Estimate:
    """What :func:`judge_preferences` would buy; nothing is bought.

    Raises:
        InputError: As :func:`judge_preferences`.
    """
    pairs = load_pairs(path, limit=judging.pop("limit", None))
    return estimate_evaluation(**_asked(pairs, prompt, pairwise=pairwise, swap=swap), **judging)


def _asked(
    pairs: Sequence[Preference], prompt: str | Path | Prompt | None, *, pairwise: bool, swap: bool
) -> dict[str, Any]:
    """What is judged, with which prompt, by which kind of evaluator."""
    if swap and not pairwise:
        raise InputError("--swap shows both outputs of a pair in both orders, so it needs --pairwise.")
    if not pairwise:
        return {"data": [example for pair in pairs for example in separate_examples(pair)], "prompt": prompt}
    return {
        "data": [example for pair in pairs for example in ordered_examples(pair, swap=swap)],
        "prompt": pairwise_prompt() if prompt is None else prompt,
        "evaluator": PairEvaluator,
    }


def judge_ratings(
    path: str | Path,
    *,
    checklist: str | Path | Checklist,
    model: str | Model,
    dimension: str | None = None,
    watcher: Watcher | None = None,
    **options: Any,
) -> tuple[RatingScores, Evaluation]:
    """Judge rated outputs.

    Args:
        path: Examples with human scores, as for :func:`~askance.evaluation.evaluate.evaluate`.
        checklist: The tests; an output with a missing verdict or rating is left out and counted.
        model: The judge.
        dimension: The human dimension that is the rating; the only one, or ``overall``, when None.
        watcher: Told how the work goes on.
        options: As for :func:`~askance.evaluation.evaluate.evaluate`.

    Raises:
        InputError: Bad data, or people rated several dimensions and none is named.
        AskanceError: As :func:`~askance.evaluation.evaluate.evaluate`.
    """
    examples = load_examples(path, fields=options.pop("field", None), limit=options.pop("limit", None))
    questions = checklist if isinstance(checklist, Checklist) else load_checklist(checklist)
    rated = rated_dimension((example.human for example in examples), dimension, str(path))
    unrated = [example.model_copy(update={"human": {}}) for example in examples]
    found = evaluate(unrated, checklist=questions, model=model, watcher=watcher, **options)
    table = cells(found.verdicts, soft=options.get("scores") != "hard")
    scores = rating_scores(
        [example.id for example in examples],
        [question.id for question in questions.questions],
        [[table[example.id, question.id] for question in questions.questions] for example in examples],
        [example.human_score(rated) for example in examples],
        groups=[context_name(example.metadata.get("group"), example.input) for example in examples],
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


def separate_examples(pair: Preference) -> list[Example]:
    """Both outputs of a pair, each to be judged alone."""
    return [
        Example(id=f"{pair.id}/{side}", input=pair.input, output=output)
        for side, output in (("a", pair.output_a), ("b", pair.output_b))
    ]


def separate_scores(
    pairs: Sequence[Preference], questions: Checklist, verdicts: Iterable[Verdict], *, soft: bool
) -> PreferenceScores:
    """Scores of pairs from the verdicts on :func:`separate_examples`."""
    table = cells(verdicts, soft=soft)
    return _pair_scores(pairs, questions, lambda pair, test, side: table[f"{pair}/{side}", test])


def pairwise_scores(
    pairs: Sequence[Preference], questions: Checklist, verdicts: Iterable[Verdict], *, soft: bool, swap: bool
) -> PreferenceScores:
    """Scores of pairs from the verdicts on :func:`~askance.agents.pairwise.ordered_examples`."""
    table = cells(verdicts, soft=soft)

    def score(pair: str, test: str, side: str) -> float | None:
        orders = [(table[pair_id(pair, AS_IT_IS), test], side == "a")]
        orders += [(table[pair_id(pair, SWAPPED), test], side == "b")] if swap else []
        return complete_mean([p if first or p is None else 1.0 - p for p, first in orders])

    return _pair_scores(pairs, questions, score)


def cells(verdicts: Iterable[Verdict], *, soft: bool) -> dict[tuple[str, str], float | None]:
    """The score of every example on every test, replicates averaged; None where one is missing."""
    found: dict[tuple[str, str], list[float | None]] = defaultdict(list)
    for verdict in verdicts:
        found[verdict.example, verdict.question].append(verdict.score(soft=soft))
    return {key: complete_mean(values) for key, values in found.items()}


def _pair_scores(
    pairs: Sequence[Preference], questions: Checklist, score: Callable[[str, str, str], float | None]
) -> PreferenceScores:
    tests = [question.id for question in questions.questions]
    return preference_scores(
        [pair.id for pair in pairs],
        tests,
        [[score(pair.id, test, "a") for test in tests] for pair in pairs],
        [[score(pair.id, test, "b") for test in tests] for pair in pairs],
        [pair.preferred for pair in pairs],
        groups=[context_name(pair.group, pair.input) for pair in pairs],
        sections=[pair.section for pair in pairs],
        datasets=[pair.dataset for pair in pairs],
    )
