"""The verdict: one evaluator's answer to one question on one example. Scores are derived from these."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TextIO

Provenance = Literal["logprob", "sampled", "hard"]
Status = Literal["ok", "abstained", "parse_error", "api_error"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """f_E(x, y, q) with where it came from (BinEval §3.2). A failure is a status, never an answer."""

    example: str
    question: str
    model: str
    prompt: str
    """Content hash of the evaluator prompt."""
    answer: bool | None
    p_yes: float | None = None
    """P(yes) / (P(yes) + P(no)), in [0, 1]."""
    p_yes_from: Provenance | None = None
    explanation: str | None = None
    status: Status = "ok"
    error: str | None = None
    replicate: int = 0

    def score(self, *, soft: bool) -> float | None:
        """p_yes (soft) or 1/0 (hard); None when there is no answer."""
        if self.answer is None:
            return None
        return self.p_yes if soft else float(self.answer)

    def to_dict(self) -> dict[str, Any]:
        """The fields in the order of the verdicts file."""
        row: dict[str, Any] = {
            "example": self.example,
            "question": self.question,
            "model": self.model,
            "prompt": self.prompt,
            "answer": self.answer,
            "p_yes": self.p_yes,
            "p_yes_from": self.p_yes_from,
            "explanation": self.explanation,
            "status": self.status,
            "error": self.error,
        }
        if self.replicate:
            row["replicate"] = self.replicate
        return row


def write_verdicts(verdicts: Iterable[Verdict], file: TextIO) -> None:
    """Write one JSON object a line, in the order given."""
    encode = json.JSONEncoder(ensure_ascii=False).encode
    file.writelines(encode(verdict.to_dict()) + "\n" for verdict in verdicts)
