"""How alike the questions of each dimension are answered, as JSON (BinEval §5.6, Figure 3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...stats.phi import phi_matrix, relatedness

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...prompts.checklist import Checklist
    from ...prompts.verdicts import Verdict

ALL = "all questions"


def phi_by_dimension(verdicts: Sequence[Verdict], checklist: Checklist | None = None) -> dict[str, Any]:
    """Questions, yes-rates, phi of every pair (None where undefined), mean phi and share of weak pairs.

    Args:
        verdicts: Of one judge, on any examples.
        checklist: Says which dimension a question is on; without it all stand together.
    """
    ids = list(dict.fromkeys(verdict.question for verdict in verdicts))
    cells = list(dict.fromkeys((verdict.example, verdict.replicate) for verdict in verdicts))
    rows = {cell: place for place, cell in enumerate(cells)}
    columns = {question: place for place, question in enumerate(ids)}
    answers = np.full((len(cells), len(ids)), np.nan)
    for verdict in verdicts:
        if verdict.answer is not None:
            answers[rows[verdict.example, verdict.replicate], columns[verdict.question]] = float(verdict.answer)
    matrix = phi_matrix(ids, answers)
    dimensions = {ALL: ids}
    if checklist is not None:
        dimensions = {
            name: [each.id for each in checklist.questions if each.dimension == name and each.id in columns]
            for name in checklist.dimensions
        }
    found = {}
    for name, questions in dimensions.items():
        if not questions:
            continue
        part = matrix.only(questions)
        related = relatedness(part)
        rates: Mapping[str, float | None] = {each: _rate(answers[:, columns[each]]) for each in questions}
        found[name] = {
            "questions": questions,
            "yes_rates": rates,
            "values": [[None if value != value else value for value in row] for row in part.values.tolist()],
            "mean": related.mean,
            "weak_share": related.weak_share,
            "reason": related.reason,
        }
    return found


def _rate(column: Any) -> float | None:
    known = column[~np.isnan(column)]
    return float(known.mean()) if len(known) else None
