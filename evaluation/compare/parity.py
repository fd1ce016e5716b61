"""Parity of verdicts: how often, and how well, one judge says of each question what another says.

Judges may be asked the same question in other words and the other way round: what is compared is which answer is good
for the output, never yes with yes. Means are not compared: two judges that say yes equally often may never agree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...prompts.examples import documents
from ...stats.agreement import agreement_hits, cohen_kappa, observed_agreement
from ...stats.correlation import correlate, per_group, statistic_dict
from ...stats.differences import difference_dict, mean_difference
from ...stats.resampling import Resampling

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ...prompts.checklist import Checklist
    from ...prompts.examples import Example
    from ...prompts.verdicts import Verdict

Column = list[float | None]


@dataclass(frozen=True)
class SaidGood:
    """What one judge said of every question: the good answer or the other, and P(good); None where it said nothing."""

    answers: Mapping[str, Column]
    """By question, 1 for the good answer and 0 for the other, one for each example."""
    p_good: Mapping[str, Column]

    @classmethod
    def of(cls, checklist: Checklist, verdicts: Iterable[Verdict], examples: Sequence[Example]) -> SaidGood:
        """The first replicates of the verdicts on some examples; others are not looked at."""
        known = {(each.example, each.question): each for each in verdicts if each.replicate == 0}
        answers: dict[str, Column] = {}
        p_good: dict[str, Column] = {}
        for question in checklist.questions:
            mine = [known.get((example.id, question.id)) for example in examples]
            said = [None if each is None else question.is_good(each.answer) for each in mine]
            answers[question.id] = [None if each is None else float(each) for each in said]
            p_good[question.id] = [None if each is None else question.p_good(each.p_yes) for each in mine]
        return cls(answers, p_good)


def parity(
    reference: SaidGood,
    judge: SaidGood,
    examples: Sequence[Example],
    *,
    before: SaidGood | None = None,
    resamples: int = 2000,
    seed: int = 42,
) -> dict[str, Any]:
    """Parity over all questions and on each, with intervals, as in ``result.json``: ``judge`` is to match
    ``reference``.

    ``same`` is the share of the examples on which both give the good answer, or both the other, ``kappa`` Cohen's of
    the same answers, and ``spearman`` the rank correlation of P(good), over all questions the mean of theirs, n being
    the questions. With ``before``, the judge that ``judge`` replaces, their shares of same answers are compared on the
    same examples. Those of one document are resampled together.
    """
    groups = documents(examples) or [example.id for example in examples]
    by_document = Resampling(groups, resamples, seed=seed)

    def one(names: Sequence[str], resampling: Resampling) -> dict[str, Any]:
        theirs, mine = _joined(reference.answers, names), _joined(judge.answers, names)
        wanted, ranked = _joined(reference.p_good, names), _joined(judge.p_good, names)
        if len(names) == 1:
            rank = correlate(ranked, wanted, resampling).spearman
        else:
            asked = [name for name in names for _ in examples]
            rank = per_group(ranked, wanted, asked, resampling=Resampling(resamples=resamples, seed=seed)).average
        row: dict[str, Any] = {
            "same": statistic_dict(observed_agreement(mine, theirs, resampling)),
            "kappa": statistic_dict(cohen_kappa(mine, theirs, resampling)),
            "spearman": statistic_dict(rank),
        }
        if before is not None:
            was = _joined(before.answers, names)
            gain = mean_difference(agreement_hits(was, theirs), agreement_hits(mine, theirs), resampling)
            row["gain"] = difference_dict(gain)
        return row

    names = list(reference.answers)
    every = Resampling([group for _ in names for group in groups], resamples, seed=seed)
    return one(names, every) | {"questions": {name: one([name], by_document) for name in names}}


def _joined(columns: Mapping[str, Column], names: Sequence[str]) -> Column:
    return [value for name in names for value in columns[name]]
