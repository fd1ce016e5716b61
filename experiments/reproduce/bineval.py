"""BinEval's Tables 1 (SummEval), 7 (Topical-Chat) and 8 (QAGS): decomposed questions against other judges, one model.

python -m askance.experiments.reproduce.bineval qags --data mturk_cnndm.jsonl --model anthropic/claude-sonnet-4-5
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..command_line import says_errors
from .common import parser, run

PAPER: dict[str, dict[str, Any]] = {
    "qags": {
        "table": "8, CNN/DM: Pearson, Spearman, Kendall of the consistency scores",
        "binary, Claude Sonnet 4": {"pearson": 0.665, "spearman": 0.702, "kendall": 0.597},
        "binary, gpt-oss-120b": {"pearson": 0.651, "spearman": 0.642, "kendall": 0.551},
    },
    "topical_chat": {
        "table": "7: mean of the four dimensions, turn level",
        "binary, Claude Sonnet 4": {"spearman": 0.632, "kendall": 0.525},
        "binary, gpt-oss-120b": {"spearman": 0.539, "kendall": 0.450},
        "geval, gpt-oss-120b": {"spearman": 0.541, "kendall": 0.478},
        "unieval, gpt-oss-120b": {"spearman": 0.144, "kendall": 0.132},
    },
    "summeval": {
        "table": "1: summary level; here `per_document`, the mean over the articles",
        "binary, Claude Sonnet 4, consistency": {"spearman": 0.655, "kendall": 0.615},
    },
}
"""Figures of the paper, as far as its text has them."""


@says_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Run one table."""
    given = parser(__doc__, "binary,geval,unieval", temperature=0.0, repeat=1).parse_args(arguments)
    run(given, PAPER[given.dataset])
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
