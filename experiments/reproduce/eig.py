"""The EIG paper's Tables 1, 7, 9, 10 and 11 on public data: κ_self, agreement, its differences, QWK and cost.

    python -m askance.experiments.reproduce.eig topical_chat --data tc_usr_data.json --model openai/gpt-4.1

The paper's questionnaire is the checklist that `askance select` writes. Give it with --checklist; `binary` asks it.
The temperature is 1, since at 0 a judge repeats itself and every κ_self is 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...stats.agreement import agreement_hits, to_points
from ...stats.differences import difference_dict, mean_difference
from ...stats.resampling import Resampling
from ..command_line import says_errors
from .common import parser, run

JUDGES = "binary,questionnaire,filled,direct,cot,poll,checkeval,random_k,all_candidates"
PAPER: dict[str, Any] = {
    "table": "1, 7 and 10, means over six data sets that are not ours, GPT-4.1",
    "direct": {"kappa_self": 0.7361, "observed_agreement": 0.6122, "qwk": 0.3610},
    "cot": {"kappa_self": 0.6132, "observed_agreement": 0.6472, "qwk": 0.4270},
    "poll": {"kappa_self": 0.7375, "observed_agreement": 0.6148, "qwk": 0.3739},
    "poll of the same model": {"kappa_self": 0.7389, "observed_agreement": 0.6141},
    "checkeval": {"kappa_self": 0.7472, "observed_agreement": 0.5520, "qwk": 0.3118},
    "questionnaire": {"kappa_self": 0.7786, "observed_agreement": 0.6810, "qwk": 0.4719},
}
"""Figures of the paper."""


def agreement_gains(result: Mapping[str, Any], seed: int = 42) -> list[dict[str, Any]]:
    """Return Table 9: the first judge's gain in agreement with people over each other judge, on the same examples, by
    judge and dimension. Each gain is a difference in shares, with interval and p-value."""
    examples = result["common"]
    names = [name for name in result["ratings"] if name not in result.get("left_out", ())]
    documents = [result.get("documents", {}).get(name, name) for name in examples]
    resampling = Resampling(documents, seed=seed)

    def hits(judge: str, dimension: str) -> Any:
        scores = {
            rating["example"]: rating["score"]
            for rating in result["ratings"][judge]
            if rating["dimension"] == dimension and not rating.get("replicate")
        }
        people = [result["human"][name].get(dimension) for name in examples]
        points = result["points"]
        ours = to_points([scores[name] for name in examples], points)
        return agreement_hits(ours, to_points(people, points), tolerance=result["tolerance"])

    rows = []
    for judge in names[1:]:
        for dimension in result["dimensions"]:
            found = mean_difference(hits(judge, dimension), hits(names[0], dimension), resampling)
            rows.append({"judge": names[0], "than": judge, "dimension": dimension, **(difference_dict(found) or {})})
    return rows


@says_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the table."""
    given = parser(__doc__, JUDGES, temperature=1.0, repeat=2).parse_args(arguments)
    run(given, PAPER, further=lambda result: {"agreement_gains": agreement_gains(result, given.seed)})
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
