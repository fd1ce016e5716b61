"""A calibration of one judge's verdicts, by a threshold per question or by scaling P(yes), and its file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from ..prompts.checklist import Polar
from ..prompts.errors import InputError, did_you_mean
from ..prompts.rows import validate_row
from ..prompts.text_files import read_object

if TYPE_CHECKING:
    from ..prompts.checklist import Checklist
    from ..prompts.verdicts import Verdict
    from ..stats.resampling import Vector

SCHEMA = "askance.calibration/1"
Pair = tuple[str, str]
"""Example id and question id."""
Method = Literal["thresholds", "platt", "accepted"]
CLIP = 1e-6
"""P(yes) is kept this far from 0 and 1 before its logit is taken."""
PARAMETERS: dict[Method, tuple[str, ...]] = {
    "thresholds": ("threshold",),
    "platt": ("slope", "shift"),
    "accepted": ("slope", "shift"),
}


class QuestionCalibration(Polar):
    """The parameters of one question; they are about P(good), which is P(yes) unless ``good`` is ``no``."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, strict=True)

    threshold: float | None = Field(default=None, ge=0, le=1)
    """The answer is the good one if P(good) is above this."""
    correlation: float | None = Field(default=None, ge=-1, le=1)
    """Pearson's correlation of these answers with the wanted scores, on the examples of the fit."""
    slope: float | None = Field(default=None, ge=0)
    """a of p' = sigmoid(a·logit(p) + b), p being P(good)."""
    shift: float | None = None
    """b of the same formula."""
    lean: float | None = Field(default=None, ge=0)
    """Factor of the other questions' mean log-odds of yes that is first taken off; None for nothing."""
    n: int = Field(ge=0)
    """Examples with both a verdict and a wanted score."""
    reason: str | None = None
    """Why the question was left as it is, or what is odd about the fit; None if there is nothing to say."""


class Calibration(BaseModel):
    """Parameters that turn one judge's verdicts into better ones; they belong to its model and prompt."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    method: Method
    model: str
    """Model whose verdicts it was fitted on."""
    prompt: str
    """Content hash of the judge's prompt."""
    target: str
    """Kind of the wanted scores: ``human``, or ``source`` (those of the source judge)."""
    n: int = Field(ge=0, strict=True)
    """Number of development examples."""
    questions: Mapping[str, QuestionCalibration] = Field(min_length=1)
    """Parameters by question id."""

    @model_validator(mode="after")
    def _parameters_fit_the_method(self) -> Calibration:
        known = {name for names in PARAMETERS.values() for name in names}
        for question, fit in self.questions.items():
            given = {name for name in known if getattr(fit, name) is not None}
            if given != set(PARAMETERS[self.method]):
                need = " and ".join(f"'{name}'" for name in PARAMETERS[self.method])
                raise ValueError(
                    f"field 'questions.{question}': the method {self.method} takes {need}, no less or more"
                )
            if fit.lean is not None and (self.method != "accepted" or len(self.questions) < 2):
                raise ValueError(
                    f"field 'questions.{question}.lean': only 'accepted' has it, with two questions or more"
                )
        return self

    @property
    def reasons(self) -> dict[str, str]:
        """Reasons by question id, where there is one."""
        return {question: fit.reason for question, fit in self.questions.items() if fit.reason}

    def apply(self, verdicts: Iterable[Verdict]) -> list[Verdict]:
        """Calibrate verdicts, in the same order; those without an answer, and measures, are left alone.

        Replicates of a question on an example are averaged first, as for fitting, so all of them get the same value.
        With ``thresholds`` P(yes) becomes 1 or 0 (``hard``). With ``platt`` and ``accepted`` it is replaced, and the
        answer is the good one where P(good) >= 0.5. A question that leans on the others gets no answer if one of
        theirs is missing. Raises InputError if a verdict is by another model or prompt, or answers a question without
        a calibration.
        """
        verdicts = list(verdicts)
        asked = [each for each in verdicts if each.version is None]  # a measure has its own curve
        for verdict in asked:
            self.check(verdict.example, verdict.question, verdict.model, verdict.prompt)
        means = {
            pair: sum(known) / len(known)
            for pair, values in replicates(asked).items()
            if (known := [value for value in values if value is not None])
        }
        scaled = {} if self.method == "thresholds" else self._scaled(means)
        return [verdict if verdict.answer is None else self._calibrated(verdict, means, scaled) for verdict in verdicts]

    def check(self, example: str, question: str, model: str | None, prompt: str) -> None:
        """Raise InputError unless this was fitted for the model (None: code), the prompt (its hash) and the
        question."""
        if question not in self.questions:
            raise InputError(
                f"The calibration knows no question '{question}' (example '{example}')."
                f"{did_you_mean(question, self.questions)} Fit it again for this checklist."
            )
        if (model or self.model, prompt) != (self.model, self.prompt):
            raise InputError(
                f"The calibration belongs to {self.model} with the prompt {self.prompt}, but the verdict on "
                f"'{example}' is by {model} with the prompt {prompt}. Fit one for that judge."
            )

    def check_questions(self, checklist: Checklist) -> None:
        """Raise InputError where a question's good answer has changed since the fit, or a question that others lean on
        is gone."""
        for question in checklist.questions:
            fit = self.questions.get(question.id)
            if fit is not None and fit.good != question.good:
                raise InputError(
                    f"The calibration was fitted when {fit.good} was the good answer to '{question.id}'; the checklist "
                    f"now says 'good: {question.good}'. Fit it again for this checklist."
                )
        asked = {question.id for question in checklist.questions}
        gone = next((each for each in self.questions if each not in asked), None)
        if gone is not None and any(self.questions[each].lean for each in asked & self.questions.keys()):
            raise InputError(
                f"The calibration reads the answers beside those to '{gone}', which the checklist does not ask. Put "
                "the question back, with 'weight: 0' where it is not to count, or fit it again for this checklist."
            )

    def to_json(self) -> str:
        """The content of ``calibration.json``."""
        data = {"schema": SCHEMA, **self.model_dump(mode="json", exclude_none=True)}
        return json.dumps(data, indent=1, ensure_ascii=False) + "\n"

    def _scaled(self, means: Mapping[Pair, float]) -> dict[Pair, float]:
        """Return scaled P(good) by example and question, without those that lean on a missing answer."""
        examples = list(dict.fromkeys(example for example, _ in means))
        logits = {
            question: logit(np.array([means.get((example, question), np.nan) for example in examples]))
            for question in self.questions
        }
        with np.errstate(invalid="ignore"):  # NaN is what is missing
            found = {question: self.p_good(question, logits).tolist() for question in self.questions}
        return {
            (example, question): value
            for question, values in found.items()
            for example, value in zip(examples, values, strict=True)
            if not np.isnan(value)
        }

    def _calibrated(self, verdict: Verdict, means: Mapping[Pair, float], scaled: Mapping[Pair, float]) -> Verdict:
        fit, pair = self.questions[verdict.question], (verdict.example, verdict.question)
        if fit.threshold is not None:
            answer = fit.is_good(fit.p_good(means[pair]) > fit.threshold)
            return replace(verdict, answer=answer, p_yes=float(answer), p_yes_from="hard")
        if pair not in scaled:
            missing = next(each for each in self.questions if (verdict.example, each) not in means)
            error = f"it is read beside the answers to all questions, and that to '{missing}' is missing"
            return replace(verdict, answer=None, p_yes=None, p_yes_from=None, status="abstained", error=error)
        return replace(verdict, answer=fit.is_good(scaled[pair] >= 0.5), p_yes=fit.p_good(scaled[pair]))

    def p_good(self, question: str, said: Mapping[str, Vector]) -> Vector:
        """Return scaled P(good) of a question, shape (n,): p' = sigmoid(a·z + b), z its log-odds of the good answer
        less the lean.

        ``said`` are log-odds of yes by question; a question that leans on no other needs only its own.
        """
        fit = self.questions[question]
        assert fit.slope is not None and fit.shift is not None  # the validator
        left = said[question]
        if fit.lean:
            left = left - fit.lean * mean_of_others([said[each] for each in self.questions if each != question])
        return sigmoid(fit.slope * (-left if fit.is_fault else left) + fit.shift)


def mean_of_others(said: Sequence[Vector]) -> Vector:
    """Return the mean log-odds of yes to all questions but one, by example, shape (n,); NaN if one is missing.

    A model says yes more readily of one output than of another, whatever it is asked. So do people who fill in
    questionnaires: their answers are taken relative to their own mean (ipsatisation; Fischer, "Standardization to
    account for cross-cultural response bias", Journal of Cross-Cultural Psychology 35, 2004).
    """
    total = np.zeros_like(said[0])
    # one after the other, so that an example has the same mean whichever others are read with it
    for each in said:
        total = total + each
    return total / len(said)


def load_calibration(path: str | Path) -> Calibration:
    """Read a ``calibration.json``. InputError names the file, and the field at fault."""
    data = read_object(path, "calibration")
    schema = data.pop("schema", None)
    if schema != SCHEMA:
        raise InputError(f"{path}, field 'schema': '{SCHEMA}' is needed, not {json.dumps(schema)}.")
    return validate_row(Calibration, data, str(path))


def replicates(verdicts: Iterable[Verdict]) -> dict[Pair, list[float | None]]:
    """Return P(yes) of all replicates by example and question: 1 or 0 for an answer without one, None for a failure."""
    found: dict[Pair, list[float | None]] = {}
    for verdict in verdicts:
        value = verdict.score(soft=verdict.p_yes is not None)
        found.setdefault((verdict.example, verdict.question), []).append(value)
    return found


def logit(p_yes: Vector) -> Vector:
    """log(p / (1 - p)), with p kept within [1e-6, 1 - 1e-6]."""
    clipped = np.clip(p_yes, CLIP, 1 - CLIP)
    return np.log(clipped) - np.log1p(-clipped)


def sigmoid(values: Vector) -> Vector:
    """1 / (1 + exp(-x)) without overflow."""
    return np.exp(-np.logaddexp(0.0, -values))
