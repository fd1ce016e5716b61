"""Given verdicts: one judge's as arrays for statistics over a checklist, and the parity of two judges.

Parity is how often two judges give the same answer to each question. Good answers are compared, not yes with yes,
because judges may be asked a question in other words and the other way round. Means are not compared, because two
judges that say yes equally often may never agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from numpy.typing import NDArray

from ..prompts.errors import InputError
from ..prompts.examples import documents
from ..prompts.formats.binding import binding_of
from ..prompts.prompt import load_prompt
from ..prompts.rows import column
from ..prompts.verdicts import Status, Verdict, VerdictColumns, read_verdicts
from ..stats.agreement import agreement_hits, cohen_kappa, observed_agreement
from ..stats.correlation import correlate, per_group, statistic_dict
from ..stats.differences import difference_dict, mean_difference
from ..stats.resampling import Resampling
from .scoring import Coverage

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..models.base import Model
    from ..prompts.checklist import Checklist
    from ..prompts.examples import Example
    from ..prompts.formats.binding import ReadsExamples
    from ..prompts.prompt import Prompt

STATUSES = get_args(Status)
Cells = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class VerdictTable:
    """One judge's verdicts by example, replicate and question."""

    answers: Cells
    """1 for yes, 0 for no, NaN where there is no answer; shape (examples, replicates, questions)."""
    p_yes: Cells
    """P(yes); NaN where there is none; same shape."""
    asked: NDArray[np.int64]
    """Verdicts of each example and question, failed ones too; shape (examples, questions)."""
    statuses: NDArray[np.int64]
    """Verdicts by question and status; shape (questions, 4), the columns as in `STATUSES`."""
    faults: NDArray[np.bool_]
    """Whether yes speaks against the output; shape (questions,)."""

    @property
    def answered(self) -> NDArray[np.int64]:
        """Answers of each example and question; shape (examples, questions)."""
        counts: NDArray[np.int64] = np.count_nonzero(~np.isnan(self.answers), axis=1)
        return counts

    def coverage(self, question: int) -> Coverage:
        """Return how many verdicts on one question are there."""
        ok, abstained, parse_errors, api_errors = (int(count) for count in self.statuses[question])
        return Coverage(ok + abstained + parse_errors + api_errors, ok, abstained, parse_errors, api_errors)

    def scores(self, *, soft: bool) -> Cells:
        """Return the mean worth of each example's replicates on each question, as in `score_examples`; shape (examples,
        questions).

        NaN if a replicate failed: part of them is no score. Some examples may have been asked less often than others.
        """
        values = np.array(self.p_yes if soft else self.answers)
        values[..., self.faults] = 1.0 - values[..., self.faults]
        whole = (np.count_nonzero(~np.isnan(values), axis=1) == self.asked) & (self.asked > 0)
        means = np.full(whole.shape, np.nan)
        np.divide(np.nansum(values, axis=1), self.asked, out=means, where=whole)
        return means


def tabulate(examples: Sequence[Example], checklist: Checklist, verdicts: Sequence[Verdict]) -> VerdictTable:
    """Put verdicts into arrays. Raises InputError where one is about an unknown example or question, or is there
    twice."""
    table = VerdictColumns.of(verdicts)
    rows = _places(table, "example", column(examples, "id"), "data")
    columns = _places(table, "question", [question.id for question in checklist.questions], "checklist")
    replicates = table.numbers("replicate")
    names = np.unique(replicates)
    shape = (len(examples), max(len(names), 1), len(checklist.questions))
    cells = rows * np.intp(shape[1])
    cells += np.searchsorted(names, replicates)
    cells *= shape[2]
    cells += columns
    _refuse_repeats(cells, table)
    answers, p_yes = np.full(shape, np.nan), np.full(shape, np.nan)
    answers.ravel()[cells] = table.said(soft=False)
    p_yes.ravel()[cells] = table.numbers("p_yes")
    asked = np.bincount(rows * shape[2] + columns, minlength=shape[0] * shape[2]).reshape(shape[0], shape[2])
    states = columns * len(STATUSES) + table.numbers("status")
    statuses = np.bincount(states, minlength=shape[2] * len(STATUSES))
    faults = np.array([question.is_fault for question in checklist.questions], dtype=np.bool_)
    return VerdictTable(answers, p_yes, asked, statuses.reshape(shape[2], len(STATUSES)), faults)


def _places(table: VerdictColumns, what: str, known: Iterable[str], where: str) -> NDArray[np.int32]:
    found = table.places(what, known)
    if (unknown := np.flatnonzero(found < 0)).size:
        name = getattr(table[int(unknown[0])], what)
        raise InputError(f"There is a verdict on {what} '{name}', which is not in the {where}.")
    return found


def _refuse_repeats(cells: NDArray[np.intp], verdicts: Sequence[Verdict]) -> None:
    seen = np.bincount(cells) if len(cells) else np.zeros(1, dtype=np.intp)
    if seen.max() < 2:
        return
    twice = verdicts[int(np.flatnonzero(seen[cells] > 1)[0])]
    raise InputError(
        f"There are two verdicts on example '{twice.example}', question '{twice.question}', replicate "
        f"{twice.replicate}; give those of one judge, each once."
    )


def given_verdicts(
    verdicts: str | Path | Iterable[Verdict],
    examples: Sequence[Example],
    checklist: Checklist,
    model: str | Model | None = None,
    prompt: str | Path | Prompt | None = None,
    settings: ReadsExamples | None = None,
) -> VerdictColumns:
    """Return the verdicts on a checklist's questions, from a file or as they are, of one model or prompt if given.

    Raises InputError if the file is wrong (with its line and field), or no verdict is by the model or the prompt.
    """
    if isinstance(verdicts, (str, Path)):
        of_examples = dict.fromkeys(column(examples, "id"))
        of_questions = [question.id for question in checklist.questions]
        given = read_verdicts(verdicts, examples=of_examples, questions=of_questions)
    else:
        given = VerdictColumns.of(verdicts)
    name = model if model is None or isinstance(model, str) else model.name
    if name is not None and given:
        alternatives, given = given.models, given.by(name)
        if not given:
            raise InputError(f"No verdict is by the model {name}; there are some by {', '.join(alternatives)}.")
    wanted = None if prompt is None else load_prompt(prompt, binding_of(examples, settings)).hash
    if wanted is not None and given:
        alternatives, given = sorted(set(column(given, "prompt"))), given.only(given.places("prompt", [wanted]) == 0)
        if not given:
            raise InputError(f"No verdict is by the prompt {wanted}; there are some by {', '.join(alternatives)}.")
    return given


CODE = "code"
"""Name of the judge if all verdicts are computed and no model gave any."""


def only_judge(verdicts: Sequence[Verdict]) -> tuple[str, str]:
    """Return the model and the prompt's hash of all verdicts; computed verdicts go with any model. Raises InputError if
    there are no verdicts, or those of several judges."""
    found = list(dict.fromkeys(zip(column(verdicts, "model"), column(verdicts, "prompt"), strict=True)))
    judges = [each for each in found if each[0] is not None] or [(CODE, prompt) for _, prompt in found]
    if not judges:
        raise InputError("There are no verdicts, so there is nothing to go by.")
    if len(judges) > 1:
        named = ", ".join(f"{model} with prompt {prompt}" for model, prompt in judges[:3])
        raise InputError(f"The verdicts are by {len(judges)} judges ({named}); give those of one at a time.")
    return judges[0]


Column = list[float | None]


@dataclass(frozen=True)
class SaidGood:
    """One judge's answers to every question: the good answer or the other, and P(good); None without an answer."""

    answers: Mapping[str, Column]
    """Answers by question, one for each example: 1 for the good answer and 0 for the other."""
    p_good: Mapping[str, Column]

    @classmethod
    def of(cls, checklist: Checklist, verdicts: Iterable[Verdict], examples: Sequence[Example]) -> SaidGood:
        """Take the first replicates of the verdicts on some examples; other verdicts are ignored."""
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
    of_scores: bool = False,
) -> dict[str, Any]:
    """Return the parity of ``judge`` with ``reference`` over all questions and on each, with intervals, as in
    ``result.json``.

    ``same`` is the share of examples on which both give the good answer or both the other, and ``kappa`` is Cohen's
    kappa of these answers. ``spearman`` is the rank correlation of P(good); over all questions it is the mean over
    questions, and n counts questions. With ``before``, the judge that ``judge`` replaces, the shares of same answers
    are compared on the same examples. Documents are resampled whole. ``of_scores`` adds ``score_difference``, the mean
    of the judge's P(good) less the reference's, in [-1, 1].
    """
    # without documents each example is a group, so that its answers to all questions are drawn together
    groups = documents(examples) or [example.id for example in examples]
    by_document = Resampling(groups, resamples, seed=seed)

    def one(names: Sequence[str], resampling: Resampling) -> dict[str, Any]:
        reference_answers, judge_answers = _joined(reference.answers, names), _joined(judge.answers, names)
        wanted, ranked = _joined(reference.p_good, names), _joined(judge.p_good, names)
        if len(names) == 1:
            rank = correlate(ranked, wanted, resampling).spearman
        else:
            asked = [name for name in names for _ in examples]
            rank = per_group(ranked, wanted, asked, resampling=Resampling(resamples=resamples, seed=seed)).average
        row: dict[str, Any] = {
            "same": statistic_dict(observed_agreement(judge_answers, reference_answers, resampling)),
            "kappa": statistic_dict(cohen_kappa(judge_answers, reference_answers, resampling)),
            "spearman": statistic_dict(rank),
        }
        if of_scores:
            row["score_difference"] = difference_dict(mean_difference(wanted, ranked, resampling))
        if before is not None:
            was = _joined(before.answers, names)
            gain = mean_difference(
                agreement_hits(was, reference_answers), agreement_hits(judge_answers, reference_answers), resampling
            )
            row["gain"] = difference_dict(gain)
        return row

    names = list(reference.answers)
    every = Resampling([group for _ in names for group in groups], resamples, seed=seed)
    return one(names, every) | {"questions": {name: one([name], by_document) for name in names}}


def _joined(columns: Mapping[str, Column], names: Sequence[str]) -> Column:
    return [value for name in names for value in columns[name]]
