"""Do learned weights beat uniform ones on LLMBar? Real pairs, judged with the ready checklist ``global`` and a model.

Run ``python -m askance.experiments.measured.weights_llmbar llmbar_natural.jsonl --model MODEL`` (eight tests: 16 calls a pair,
and 16 more with each of ``--expected`` and ``--pairwise``). Answers are kept, so that a run with a higher ``--limit``
buys only the further pairs. The result file holds no text of the data.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...models.base import Model
from ...optimizer.weights import PreferenceScores, learn_from_pairs, weights_report
from ...optimizer.weights.judged_pairs import PositionBias, load_pairs, prepare_pairs, separate_scores
from ...prompts.checklist import load_checklist
from ...prompts.examples import Preference
from ..command_line import RESULTS, says_errors, write_result
from .weights_all_learners import accuracy_of_each_test, beating_uniform, split_with_slow_learners

RESULT = RESULTS / "weights_llmbar.json"
CHECKLIST = "global"
SPLIT_SEED = 0
BLOCK = 5
"""Pairs judged at once where time is limited."""
TIMEOUT = 600.0
"""Seconds that a call may wait for its turn on a small server."""


@dataclass(frozen=True)
class Design:
    """What is judged, and how."""

    data: Path
    model: str | Model
    limit: int | None = None
    minutes: float | None = None
    """Judge as many pairs, from the first on, as can be begun in this time; all of them when None."""
    api_base: str | None = None
    expected: bool = False
    """Buy expected scores on a scale of 1 to 5 too."""
    pairwise: bool = False
    """Buy pairwise choices in both orders too."""
    slow: bool = True
    """Run the slow learners too."""
    max_concurrency: int = 1
    """Calls at once; one at a time keeps what questions on one output share in the cache of a small server."""
    cache: Path | None = None
    """Where answers are kept; the user's cache directory when None."""


def measure(design: Design) -> dict[str, Any]:
    """Judge the pairs and learn weights from each kind of score.

    Raises:
        AskanceError: The data are bad, or judging failed; answers so far are kept.
    """
    pairs = load_pairs(design.data, limit=design.limit)
    judged = _judge_in_time(design, pairs)
    found = {kind: _learn(scores, slow=design.slow) for kind, scores in judged.scores.items()}
    for kind, bias in judged.biases.items():
        found[kind]["position_bias"] = bias.to_dict()
    return {
        "model": design.model if isinstance(design.model, str) else design.model.name,
        "data": design.data.name,
        "checklist": [{"id": each.id, "text": each.text} for each in load_checklist(CHECKLIST).questions],
        "pairs": judged.pairs,
        "verdicts": judged.verdicts,
        "beats_uniform": {kind: each["beats_uniform"] for kind, each in found.items()},
        "scores": found,
    }


@dataclass(frozen=True)
class Judged:
    """The first pairs of the data with every kind of score that is wanted."""

    pairs: int
    scores: dict[str, PreferenceScores]
    biases: dict[str, PositionBias]
    verdicts: int


def _judge_in_time(design: Design, pairs: list[Preference]) -> Judged:
    """Judge all pairs, or block by block as many as the time allows; a later block finds the earlier answers kept."""
    if design.minutes is None:
        return _judge(design, pairs)
    end = time.monotonic() + 60 * design.minutes
    for count in range(BLOCK, len(pairs) + BLOCK, BLOCK):
        judged = _judge(design, pairs[:count])
        print(f"{judged.pairs} pairs judged", file=sys.stderr, flush=True)
        if time.monotonic() > end:
            break
    return judged


def _judge(design: Design, pairs: list[Preference]) -> Judged:
    common: dict[str, Any] = {"checklist": CHECKLIST, "model": design.model, "limit": len(pairs)}
    common |= {"cache": design.cache, "api_base": design.api_base, "explain": "never"}
    common |= {"max_concurrency": design.max_concurrency, "timeout": TIMEOUT}
    alone = prepare_pairs(design.data, **common).run()
    hard = separate_scores(pairs, load_checklist(CHECKLIST), alone.evaluation.verdicts, soft=False)
    scores, bought, biases = {"soft": alone.scores, "hard": hard}, [alone], {}
    if design.expected:
        bought.append(prepare_pairs(design.data, scores="expected", **common).run())
        scores["expected 1 to 5"] = bought[-1].scores
    if design.pairwise:
        bought.append(prepare_pairs(design.data, pairwise=True, swap=True, **common).run())
        kind, bias = "pairwise, both orders", bought[-1].bias
        assert bias is not None
        scores[kind], biases[kind] = bought[-1].scores, bias
    return Judged(len(pairs), scores, biases, sum(len(each.evaluation.verdicts) for each in bought))


def _learn(scores: PreferenceScores, *, slow: bool) -> dict[str, Any]:
    """Every learner on these scores: cross-validated, and on one split with the slow ones."""
    result = learn_from_pairs(scores)
    found: dict[str, Any] = {
        "beats_uniform": beating_uniform(result),
        "each_test": accuracy_of_each_test(scores),
        "cross_validated": weights_report(result),
    }
    if slow:
        found["single_split_with_slow_learners"] = split_with_slow_learners(scores, SPLIT_SEED)
    return found


def as_text(result: dict[str, Any]) -> str:
    """The result in a few lines."""
    lines = [f"{result['pairs']} pairs of {result['data']}, judged by {result['model']}"]
    for kind, found in result["scores"].items():
        lines.append(f"{kind}: " + " ".join(found["cross_validated"]["conclusion"]))
        lines += [
            f"  {row['test']:<10} {row['accuracy']:.3f} ({row['low']:.3f} to {row['high']:.3f}), "
            f"{row['score_ties']} score ties"
            for row in found["each_test"]
        ]
    return "\n".join(lines)


@says_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the result, write the result file."""
    parser = argparse.ArgumentParser(prog="python -m askance.experiments.measured.weights_llmbar", description=__doc__)
    parser.add_argument("data", type=Path, help="preference pairs, e.g. llmbar_natural.jsonl")
    parser.add_argument("--model", required=True, help="judge, as provider/model")
    parser.add_argument("--api-base", help="address of an OpenAI-compatible server, for openai/NAME")
    parser.add_argument("--limit", type=int, help="use only the first N pairs")
    parser.add_argument("--minutes", type=float, help="judge as many pairs as can be begun in this time")
    parser.add_argument("--expected", action="store_true", help="buy expected scores too")
    parser.add_argument("--pairwise", action="store_true", help="buy pairwise choices in both orders too")
    parser.add_argument("--max-concurrency", type=int, default=1, help="calls at once")
    parser.add_argument("--quick", action="store_true", help="leave out the slow learners")
    parser.add_argument("-o", "--output", type=Path, default=RESULT)
    given = parser.parse_args(arguments)
    design = Design(
        data=given.data,
        model=given.model,
        limit=given.limit,
        minutes=given.minutes,
        api_base=given.api_base,
        expected=given.expected,
        pairwise=given.pairwise,
        slow=not given.quick,
        max_concurrency=given.max_concurrency,
    )
    result = {"command": _command(design), **measure(design)}
    write_result(given.output, result)
    print(as_text(result))
    return 0


def _command(design: Design) -> str:
    """The command without the address of a server, which is somebody's own."""
    flags = [f"--limit {design.limit}"] if design.limit else []
    flags += [f"--minutes {design.minutes:g}"] if design.minutes else []
    flags += [name for name, used in (("--expected", design.expected), ("--pairwise", design.pairwise)) if used]
    flags += [] if design.slow else ["--quick"]
    return " ".join(
        ["python -m askance.experiments.measured.weights_llmbar", design.data.name, "--model MODEL", *flags]
    )


if __name__ == "__main__":
    sys.exit(main())
