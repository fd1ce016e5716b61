"""Make the result of a selection: the checklist, the numbers behind it, and their meaning in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...evaluation.options import SelectOptions
from ...evaluation.raters.agreement_view import ceiling_lines, ceiling_of_all
from ...evaluation.scoring import Coverage
from ...evaluation.view import Shown, View, correlation_figures
from ...models.budget import Budget
from ...prompts.checklist import Checklist, Computed, GoodAnswer, Sees, marked
from ...prompts.errors import CoverageError
from ...prompts.formatting import Figure
from ...stats.correlation import Correlations, correlations_dict
from ...stats.differences import Difference, difference_dict
from .analysis import (
    Curve,
    Method,
    SampleTables,
    agreement_with_people,
    analyse,
    compare_sets,
    gather,
    less_all_questions,
    question_tokens,
    raters_of_sample,
    shared_tokens,
)
from .information import Convergence, Floats, Information, ranking_convergence
from .inputs import Bought, Inputs, Pool

if TYPE_CHECKING:
    from ...evaluation.view import Rows


FREE = 1.0
"""Tokens by which a measure's information is divided where information per token decides. A measure costs none."""


@dataclass(frozen=True)
class QuestionReport:
    """Figures of one candidate."""

    id: str
    text: str
    dimension: str
    kept: bool
    eig: float | None
    """Expected information gain in bits, as in the paper; None where no example has both answer and rating."""
    bias: float | None
    """Bits of ``eig`` that chance explains."""
    bits: float | None
    """``eig`` less ``bias``."""
    tokens: int
    """About how many tokens the question adds to a request."""
    bits_per_token: float | None
    examples: int
    """Examples that the estimate is made from."""
    missing: int
    """Answers that were asked for but are missing."""
    mean_score: float | None
    """Mean score of the answers, in [0, 1]: the share of good ones, soft unless answers are hard."""
    rank_top: int
    """Place among single questions, from 1."""
    rank_joint: int
    """Place in the joint order, from 1."""
    good: GoodAnswer = "yes"
    """The answer that speaks for the output."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as in ``selection.json``; ``good`` only where it is no."""
        return {name: value for name, value in asdict(self).items() if (name, value) != ("good", "yes")}


@dataclass(frozen=True)
class Prefix:
    """Figures of the first k questions of an order."""

    k: int
    question: str
    """Id of the k-th question."""
    gain: float | None
    """Bits by which the k-th question was chosen."""
    information: float
    """Bits that the k questions tell together, on the sample that chose them."""
    held_out: float | None
    """Bits that they tell on halves of the sample that did not choose them."""
    information_share: float | None
    """``held_out`` divided by the largest value of any number of questions, in [0, 1]."""
    correlation: float | None
    """Spearman with people on the same halves."""
    correlation_share: float | None
    """``correlation`` divided by that of all candidates; may exceed 1. None where the latter is not clearly above 0."""
    spearman: float | None
    """Spearman of the k questions with people, on the whole sample, which chose them."""
    less_all: Difference | None
    """``spearman`` minus its value for all candidates, on the same verdicts; None where people rated nothing."""
    cost_share: float
    """Tokens of asking the k questions, divided by those of asking all; with the text around a question, once a
    call."""
    per_combination: float
    """Examples per combination of answers; below about 5 further questions seem to tell nothing."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as in ``selection.json``."""
        return {**vars(self), "less_all": difference_dict(self.less_all)}


@dataclass(frozen=True, repr=False)
class Selection(Shown):
    """The chosen checklist with everything behind it."""

    checklist: Checklist
    candidates: Checklist
    k: int
    method: Method
    why: str
    questions: Sequence[QuestionReport]
    curves: Mapping[Method, Sequence[Prefix]]
    convergence: Convergence
    pool: Pool | None
    """None where candidates were given."""
    examples: int
    sample: Sequence[str]
    """Ids of these examples."""
    rated: int
    rating_source: str
    """Where ratings come from, in words."""
    rating_counts: Mapping[str, int]
    """Examples at each level of the rating, and ratings missing by status."""
    coverage: Coverage
    problems: Sequence[str]
    """Errors of answers and ratings, each once."""
    agreement: Mapping[str, Correlations]
    """Correlation with people of the ``chosen`` and of ``all`` questions, on the whole sample; empty without people."""
    raters: Mapping[str, Any]
    """``rater_agreement`` of the sample; empty where nobody rated, or each output has one rater."""
    settings: Mapping[str, Any]
    models: Mapping[str, str]
    budget: Budget

    @property
    def order(self) -> tuple[str, ...]:
        """All candidates' ids, in the order of the method used."""
        return tuple(each.question for each in self.curves[self.method])

    def _view(self) -> View:
        return selection_view(self.to_dict())

    def sentences(self) -> list[str]:
        """Provenance, shares and warnings, in words."""
        ceilings = [f"{each[:1].upper()}{each[1:]}." for each in ceiling_lines(self.raters)]
        return [*self._provenance(), *self._shares(), *ceilings, *self._warnings()]

    def to_dict(self) -> dict[str, Any]:
        """Return the content of ``selection.json``."""
        return {
            "k": self.k,
            "kept": [question.id for question in self.checklist.questions],
            "method": self.method,
            "why": self.why,
            "sentences": self.sentences(),
            "questions": [each.to_dict() for each in self.questions],
            "curves": {method: [each.to_dict() for each in curve] for method, curve in self.curves.items()},
            "convergence": self.convergence.to_dict(),
            "pool": self.pool.to_dict() if self.pool else None,
            "sample": {"examples": self.examples, "ids": list(self.sample)},
            "ratings": {"from": self.rating_source, "rated": self.rated, "counts": dict(self.rating_counts)},
            "coverage": self.coverage.to_dict(),
            "problems": list(self.problems),
            "agreement": {name: correlations_dict(each) for name, each in self.agreement.items()},
            **({"rater_agreement": dict(self.raters)} if self.raters else {}),
            "settings": dict(self.settings),
            "models": dict(self.models),
            **self.budget.to_dict(),
            "roles": {name: ledger.to_dict() for name, ledger in self.budget.roles.items()},
        }

    def _provenance(self) -> list[str]:
        lines = [
            f"{len(self.candidates.questions)} candidates were answered on {self.examples} examples; "
            f"{self.rated} of these have a rating ({self.rating_source})."
        ]
        if self.pool:
            how = (
                "hardly anything new came" if self.pool.settled else "a limit was reached, so the pool may be too small"
            )
            lines.append(f"The candidates were proposed in {len(self.pool.growth)} rounds, until {how}.")
        lines.append(f"The most informative are kept, by the method '{self.method}', because {self.why}.")
        return lines

    def _shares(self) -> list[str]:
        curve = self.curves[self.method]
        lines = [prefix_sentence(curve[self.k - 1], len(curve))]
        settled = self.convergence.settled
        last = self.convergence.steps[-1]
        if settled is not None:
            lines.append(
                f"The ranking of the questions has converged from {settled} examples on (Kendall's tau 0.9 or more)."
            )
        elif last.tau is not None:
            more = " (--sample)" if self.examples == self.settings["sample"] else ""  # else there are no more of them
            lines.append(
                f"The ranking of the questions has not converged: on resamples of all {last.m} examples its Kendall's "
                f"tau with itself is {last.tau:.2f}. More examples would change it{more}."
            )
        return lines

    def _warnings(self) -> list[str]:
        lines = []
        if not any(each.bits is not None and each.bits > 0 for each in self.questions):
            held_out_bits = self.curves[self.method][self.k - 1].held_out
            lines.append(
                "No candidate tells anything about the rating beyond chance; do not rely on this checklist."
                if held_out_bits is None or held_out_bits <= 0
                else "No candidate by itself tells anything about the rating beyond chance, and what the kept ones "
                f"tell together ({held_out_bits:.3f} bits on held-out halves) may be chance; rate more examples before "
                "you rely on this checklist."
            )
        flat = [
            each.id for each in self.questions if each.mean_score is not None and not 0.02 <= each.mean_score <= 0.98
        ]
        if flat:
            settings = self.settings
            pooled = (settings["answer_levels"], settings["estimate"]) == (2, "pooled")
            can_be_split = pooled and str(settings["answers"]) != "split"
            split = " If the judge says yes to nearly everything, try --answers split." if can_be_split else ""
            lines.append(
                f"{len(flat)} candidates have nearly the same answer everywhere ({', '.join(flat[:5])}"
                f"{', …' if len(flat) > 5 else ''}).{split}"
            )
        full_correlation = Figure.of(self.agreement["all"].spearman) if self.agreement else Figure(None)
        if full_correlation.side in (0, -1):
            lines.append(
                "What share of the correlation with people is kept cannot be said: that of all "
                f"{len(self.candidates.questions)} candidates is not clearly above 0 ({full_correlation})."
            )
        if len({each.weight for each in self.candidates.questions}) > 1:
            lines.append(
                "The weights of the candidates were set aside, here and in the checklist that is kept: every "
                "question counts the same."
            )
        missing = self.coverage.asked - self.coverage.answered
        if missing:
            lines.append(
                f"{missing} of {self.coverage.asked} answers are missing; those examples are left out, question by "
                "question."
            )
        if self.rated < self.examples:
            lines.append(f"{self.examples - self.rated} examples have no rating and are left out.")
        return lines


def selection_view(data: Mapping[str, Any]) -> View:
    """Make a view of the content of ``selection.json``."""
    curve, reports = data["curves"][data["method"]], {each["id"]: each for each in data["questions"]}
    chosen = [reports[each["question"]] for each in curve]
    pool, kept = data["pool"] or {}, data["kept"]
    tables: dict[str, Callable[[], Rows]] = {
        "questions": lambda: chosen,
        "curve": lambda: [_flat(each) for each in curve],
        "kept": lambda: [
            {"id": report["id"], "text": _text(report), "dimension": report["dimension"], "bits": report["bits"]}
            | {"so far": Figure(prefix["information_share"], form=".0%")}
            for report, prefix in zip(chosen, curve, strict=True)
            if report["kept"]
        ],
        "candidates": lambda: [_candidate_row(report, prefix) for report, prefix in zip(chosen, curve, strict=True)],
        "growth": lambda: [_prefix_row(each) for each in curve],
        "agreement": lambda: [
            {"questions": f"the {data['k']} kept" if name == "chosen" else f"all {len(curve)}"}
            | correlation_figures(row)
            | ceiling_of_all(data.get("rater_agreement", {}))
            for name, row in data["agreement"].items()
        ],
        "convergence": lambda: [
            {"examples": each["m"], "tau": Figure.of(each, ".2f", "tau")}
            | {"same on top": Figure(each["same_top"], form=".0%")}
            for each in data["convergence"]["steps"]
        ],
        "rounds": lambda: [
            {"round": place} | {name: each[name] for name in ("proposed", "new", "pool")} | {"trouble": each["error"]}
            for place, each in enumerate(pool.get("growth", ()), 1)
        ],
    }
    captions = {
        "kept": "the most informative questions, kept; each with what all down to it tell together",
        "candidates": "what each candidate tells about the rating; in bits, in the order in which they were chosen",
        "growth": "how the information grows; measured on halves of the sample that did not choose them; Spearman with "
        f"people is on the whole sample, and less, by how much it exceeds that of all {len(curve)}",
        "agreement": "human agreement; on the sample that chose the questions, which flatters them a little",
        "convergence": "has the ranking converged?; Kendall's tau of rankings from resamples of so many examples "
        "with the ranking from all",
        "rounds": "how the candidates came together",
    }
    brief = f"kept: {', '.join(kept[:10])}{', …' if len(kept) > 10 else ''}"
    title = f"{len(kept)} of {len(curve)} questions"
    return View(title, data["sentences"], tables, tuple(captions), brief, captions)


def _text(report: Mapping[str, Any]) -> str:
    return marked(report["text"], report.get("good", "yes"))


def _candidate_row(report: Mapping[str, Any], prefix: Mapping[str, Any]) -> dict[str, Any]:
    mean = report["mean_score"]
    return {
        "question": f"{report['id']}: {_text(report)}",
        "bits": Figure(report["bits"]),
        "bias": report["bias"],
        "together": prefix["information"],
        "held out": prefix["held_out"],
        "tokens": report["tokens"],
        "missing": report["missing"] or None,
        "yes": Figure(1 - mean if mean is not None and report.get("good") == "no" else mean, form=".0%"),
        "kept": "kept" if report["kept"] else "",
    }


def _prefix_row(each: Mapping[str, Any]) -> dict[str, Any]:
    rated = each["less_all"] is not None
    return {
        "k": each["k"],
        "last": each["question"],
        "information": Figure(each["information_share"], form=".0%"),
        "tokens": Figure(each["cost_share"], form=".0%"),
        "spearman": each["spearman"],
        "less": Figure.of(each["less_all"], "+.3f") if rated else None,
        "held out": each["correlation"],
        "examples a combination": Figure(each["per_combination"], form=".1f"),
    }


def _flat(prefix: Mapping[str, Any]) -> dict[str, Any]:
    found = prefix["less_all"] or {}
    ends = {"less_all": "value", "less_all_low": "low", "less_all_high": "high"}
    return {**prefix, **{name: found.get(end) for name, end in ends.items()}}


def prefix_sentence(prefix: Prefix, every: int) -> str:
    """Say e.g. ``3 questions keep 91% of the information and 97% of the correlation of all 9 with people at 8% of the
    cost.``"""
    count = "1 question keeps" if prefix.k == 1 else f"{prefix.k} questions keep"
    if prefix.information_share is None:
        kept = "an unknown share of the information"
    else:
        kept = f"{prefix.information_share:.0%} of the information"
    if prefix.correlation_share is not None:
        kept += f" and {prefix.correlation_share:.0%} of the correlation of all {every} with people"
    return f"{count} {kept} at {prefix.cost_share:.0%} of the cost."


def build_selection(
    inputs: Inputs, bought: Bought, settings: SelectOptions, models: Mapping[str, str], budget: Budget
) -> Selection:
    """Choose the questions and build the result. Raises CoverageError where there is no answer or no rating at all, so
    there is nothing to choose by."""
    tables, source = gather(inputs, bought, settings)
    rated = tables.codes >= 0
    if not rated.any() or np.isnan(tables.answers[rated][:, :, 0]).all():
        reason = f" The first problem: {bought.problems[0]}" if bought.problems else ""
        raise CoverageError(f"No example has both an answer and a rating, so no question can be chosen.{reason}")
    tokens = question_tokens(bought.candidates)
    costs = np.maximum(tokens, FREE) if settings.per_token else None
    k = min(settings.k, len(bought.candidates.questions))
    information, found = analyse(tables, k, costs=costs, halves=settings.halves, seed=settings.seed)
    method = settings.choice
    reason = "it was asked for" if method == "top" else compare_sets(found, k)
    chosen = [bought.candidates.questions[place] for place in found[method].order[:k]]
    questions = tuple(each.model_copy(update={"weight": 1.0}) for each in chosen)
    checklist = Checklist(task=inputs.task, questions=questions, answers=bought.candidates.answers)
    agreement = agreement_with_people(tables, found[method].order[:k], settings.seed)
    agrees = bool(agreement) and Figure.of(agreement["all"].spearman).side == 1
    shared = shared_tokens(inputs, bought.candidates)
    curves = {
        name: _prefixes(curve, bought.candidates, tables, tokens, shared, settings, agrees=agrees)
        for name, curve in found.items()
    }
    convergence = ranking_convergence(
        tables.answers,
        tables.ratings,
        k=k,
        resamples=settings.ranking_resamples,
        seed=settings.seed,
        conditional=tables.conditional,
        costs=costs,
    )
    return Selection(
        checklist=checklist,
        candidates=bought.candidates,
        k=k,
        method=method,
        why=reason,
        questions=_question_reports(bought, information, found, tables, tokens, {each.id for each in chosen}),
        curves=curves,
        convergence=convergence,
        pool=bought.pool,
        examples=len(inputs.examples),
        sample=tuple(example.id for example in inputs.examples),
        rated=int(rated.sum()),
        rating_source=source,
        rating_counts=_rating_counts(tables, bought),
        coverage=bought.coverage,
        problems=bought.problems,
        agreement=agreement,
        raters=raters_of_sample(inputs.examples, settings),
        settings=settings.model_dump(mode="json"),
        models=models,
        budget=budget,
    )


def _prefixes(
    curve: Curve,
    candidates: Checklist,
    tables: SampleTables,
    tokens: Floats,
    shared: Mapping[Sees, float],
    settings: SelectOptions,
    *,
    agrees: bool,
) -> list[Prefix]:
    order = list(curve.order)
    ordered = [candidates.questions[place] for place in order]
    views = [None if isinstance(each, Computed) else each.sees for each in ordered]
    # otherwise one call asks all questions that see the same
    asks_one_by_one = settings.mode != "batched" and settings.filling == "apart"
    surrounding_tokens = [
        shared[sees] if sees is not None and (asks_one_by_one or sees not in views[:place]) else 0.0
        for place, sees in enumerate(views)
    ]
    cost = np.cumsum(tokens[order] + np.array(surrounding_tokens))
    top_bits = np.nanmax(curve.held_out) if not np.isnan(curve.held_out).all() else np.nan
    full_correlation = curve.correlation[-1]
    comparisons = less_all_questions(tables, order, settings.seed)
    return [
        Prefix(
            k=place + 1,
            question=candidates.questions[question].id,
            gain=_number(curve.gains[place]),
            information=float(curve.information[place]),
            held_out=_number(curve.held_out[place]),
            information_share=_number(max(curve.held_out[place], 0.0) / top_bits) if top_bits > 0 else None,
            correlation=_number(curve.correlation[place]),
            correlation_share=_number(curve.correlation[place] / full_correlation)
            if agrees and full_correlation > 0
            else None,
            spearman=comparisons[place][0],
            less_all=comparisons[place][1],
            cost_share=float(cost[place] / cost[-1]) if cost[-1] else 0.0,
            per_combination=float(curve.per_combination[place]),
        )
        for place, question in enumerate(order)
    ]


def _question_reports(
    bought: Bought,
    info: Information,
    curves: Mapping[Method, Curve],
    tables: SampleTables,
    tokens: Floats,
    kept: set[str],
) -> list[QuestionReport]:
    ranks = {method: {place: rank for rank, place in enumerate(curve.order, 1)} for method, curve in curves.items()}
    present = ~np.isnan(tables.scores)
    reports = []
    for place, question in enumerate(bought.candidates.questions):
        answered = tables.scores[present[:, place], place]
        reports.append(
            QuestionReport(
                id=question.id,
                text=question.text,
                dimension=question.dimension,
                kept=question.id in kept,
                eig=_number(info.plugin[place]),
                bias=_number(info.bias[place]),
                bits=_number(info.bits[place]),
                tokens=int(tokens[place]),
                bits_per_token=_number(info.bits[place] / tokens[place]) if tokens[place] else None,
                examples=int(info.examples[place]),
                missing=int((~present[:, place]).sum()),
                mean_score=float(answered.mean()) if len(answered) else None,
                rank_top=ranks["top"][place],
                rank_joint=ranks["joint"][place],
                good=question.good,
            )
        )
    return reports


def _rating_counts(tables: SampleTables, bought: Bought) -> dict[str, int]:
    counts = {f"group {code + 1}": int((tables.codes == code).sum()) for code in range(int(tables.codes.max()) + 1)}
    for rating in bought.ratings:
        if rating.status != "ok":
            counts[rating.status] = counts.get(rating.status, 0) + 1
    return counts


def _number(value: Any) -> float | None:
    return None if np.isnan(value) else float(value)
