"""Settings: one name each in the configuration file, on the command line and in Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, TypeVar

import yaml
from pydantic import BaseModel, Field, ValidationError, model_validator

from ..agents.judging import Judging
from ..models.session import ModelOptions
from ..prompts.errors import InputError, did_you_mean, like_named, not_yaml

Settings = TypeVar("Settings", bound=BaseModel)


class JudgeOptions(ModelOptions):
    """How judges are asked and how their answers become scores."""

    mode: Literal["each", "batched"] = Field("each", description="One call a question, or one call an example.")
    explain: Literal["always", "needed", "never"] = Field(
        "needed", description="Buy explanations with every verdict, where they are read, or never."
    )
    p_yes: Literal["auto", "logprob", "sampled", "hard"] = Field(
        "auto", description="Where P(yes) comes from; auto: log-probabilities, else samples, else the answer itself."
    )
    samples: int = Field(1, ge=1, description="Answers per question where P(yes) is counted from samples.")
    temperature: float = Field(0.0, ge=0, description="Temperature of the judges.")
    repeat: int = Field(1, ge=1, description="Replicates of every verdict.")
    scores: Literal["soft", "hard", "expected"] = Field(
        "soft", description="Score from P(yes), from the yes/no answers, or the expected number on --score-scale."
    )
    score_scale: tuple[int, int] = Field(
        (1, 5), description="Lowest and highest number that the judge gives, for --scores expected."
    )
    weights: str | None = Field(None, description="Weights file of `askance weigh`; replaces the checklist's weights.")
    human_scale: tuple[float, float] | None = Field(
        None, description="Lowest and highest human score; default: the observed ones."
    )
    min_coverage: float = Field(
        0.0, ge=0, le=1, description="Smallest share of verdicts that must be there; below it the exit code is 4."
    )
    field: dict[str, str] = Field(default_factory=dict, description="Rename a column: our_name=column.")
    limit: int | None = Field(None, ge=1, description="Use only the first N examples.")

    @model_validator(mode="after")
    def _scale_ascends(self) -> JudgeOptions:
        if self.human_scale and not self.human_scale[0] < self.human_scale[1]:
            raise ValueError("human_scale: the lowest score must be below the highest")
        if self.p_yes == "sampled" and self.samples < 2:
            raise ValueError("p_yes sampled needs samples of 2 or more")
        if self.scores != "expected" and self.score_scale != (1, 5):
            raise ValueError("score_scale belongs to expected scores (scores: expected)")
        return self

    @property
    def soft(self) -> bool:
        """Whether scores come from p_yes (P(yes), or an expected score), not from the answers."""
        return self.scores != "hard"

    @property
    def judging(self) -> Judging:
        """The part that an evaluator needs."""
        return Judging(
            mode=self.mode,
            explain=self.explain,
            p_yes=self.p_yes,
            samples=self.samples,
            temperature=self.temperature,
            repeat=self.repeat,
            seed=self.seed,
            score_scale=self.score_scale if self.scores == "expected" else None,
        )


class EvaluateOptions(JudgeOptions):
    """Settings of ``evaluate``."""

    scale: tuple[float, float] = Field((0.0, 1.0), description="Interval that scores are mapped to.")
    calibration: str | None = Field(
        None, description="Calibration file of a run; applied to the verdicts of the judge that it was fitted for."
    )
    resamples: int = Field(2000, ge=100, description="Bootstrap resamples of the intervals.")


class LoopOptions(JudgeOptions):
    """Settings of the improvement loop, whatever is improved."""

    note_taker: str | None = Field(None, description="Model that draws lessons from disagreements.")
    note_taker_program: str | None = Field(
        None, description="Note-taker compiled with DSPy, as saved by it (needs the extra dspy)."
    )
    deduplicator: str | None = Field(None, description="Model that keeps the lessons free of repeats.")
    updater: str | None = Field(None, description="Model that turns lessons into edits.")
    split: tuple[float, float, float] = Field(
        (0.3, 0.3, 0.4), description="Shares of development, validation and test examples."
    )
    max_iterations: int = Field(5, ge=1, description="Iterations at most.")
    max_lessons: int = Field(10, ge=1, description="Lessons that may be written into the prompt at most.")
    max_notes: int = Field(8, ge=1, description="Disagreements read by the note-taker in one iteration.")
    max_prompt_chars: int | None = Field(
        None, ge=1, description="Longest prompt; default: twice the starting prompt and 1,500 more."
    )
    notes: Literal["each", "batched"] = Field(
        "each", description="One note a disagreement, or one call for several on the same question."
    )
    note_samples: int = Field(1, ge=1, description="Notes taken of each disagreement; the one most agree on is kept.")
    contrast: bool = Field(False, description="Show the note-taker a case on which both sides agree, beside each.")
    critique: bool = Field(False, description="Have every lesson checked by a second, short call.")
    update: Literal["edits", "rewrite"] = Field("edits", description="One edit a lesson, or all in one rewrite.")
    trial: bool = Field(True, description="Try every lesson on its own evidence and on controls first.")
    racing: bool = Field(
        True,
        description="Judge a candidate in steps, its lessons' own questions first; drop it once it is clearly worse, "
        "or late without a gain.",
    )
    prune: bool = Field(True, description="At the end take out edits without which validation is no worse.")
    accept_level: float = Field(
        0.1, gt=0, lt=1, description="Level of the paired test that a new version must pass on validation."
    )
    min_gain: float = Field(0.0, ge=0, description="Smallest gain on validation, in units of its standard error.")
    max_drift: float = Field(
        0.15, gt=0, description="How far a mean score may move the wrong way, in units of the score."
    )
    patience: int = Field(2, ge=1, description="Iterations without an accepted edit before the run ends.")
    paper: bool = Field(
        False, description="The papers' loop, for comparison: all notes, no trial, no test, no pruning."
    )
    resamples: int = Field(2000, ge=100, description="Bootstrap resamples of tests and intervals.")
    embedder: str | None = Field(None, description="Embedding model of the lesson memory.")

    @model_validator(mode="before")
    @classmethod
    def _as_in_the_papers(cls, values: Any) -> Any:
        """What ``paper`` sets unless it is set otherwise."""
        if not isinstance(values, dict) or not values.get("paper"):
            return values
        return {"trial": False, "racing": False, "prune": False, "max_notes": 1000, "patience": 1} | values

    @model_validator(mode="after")
    def _shares_add_up(self) -> LoopOptions:
        if min(self.split) <= 0 or abs(sum(self.split) - 1) > 1e-6:
            raise ValueError("split: three shares above 0 that add up to 1 are needed, e.g. 0.3 0.3 0.4")
        return self


class MigrateOptions(LoopOptions):
    """Settings of ``migrate``."""

    roles: Literal["cross", "self"] = Field(
        "cross", description="Who takes the roles that have no model of their own: the source, or the target."
    )
    reference: Literal["auto", "human", "source"] = Field(
        "auto", description="What held-out scores are correlated with; auto: human scores where there are some."
    )
    margin: float = Field(
        0.3, gt=0, le=1, description="Difference in P(yes) from which judges disagree although both say the same."
    )
    tolerance: float = Field(
        0.02, ge=0, description="Stop when mean scores of target and source differ by less on every dimension."
    )


class AlignOptions(LoopOptions):
    """Settings of ``align``."""

    threshold: float = Field(
        0.3, gt=0, lt=1, description="Distance from the human score, in [0, 1], from which the judge disagrees."
    )
    writer: str | None = Field(None, description="Model that writes the questions anew.")
    regenerate_questions: bool = Field(
        False,
        description="Write the questions anew from every accepted prompt; the gate decides on them too. "
        "--dry-run takes them to be as many as before.",
    )
    calibrate: bool = Field(
        False, description="Change no prompt: only fit thresholds and Platt scaling, and say what they are worth."
    )


class TuneOptions(LoopOptions):
    """Settings of ``tune``."""

    writer: str | None = Field(None, description="Model that writes each example's own questions.")
    own_questions: bool = Field(False, description="Have questions written for each example, from its input.")
    score_as: Literal["all", "mean"] = Field(
        "mean", description="An output's score: 1 only if it passes everything, or the share that it passes."
    )
    max_output_tokens: int = Field(1024, ge=1, description="Longest output of the generator, in tokens.")
    generator_temperature: float = Field(0.0, ge=0, description="Temperature of the generator.")


class WriterOptions(ModelOptions):
    """Settings of ``questions``."""

    max_requirements: int = Field(12, ge=1, le=50, description="Requirements read from the task at most.")
    embedder: str | None = Field(None, description="Embedding model that finds repeated questions.")


def parse_options(kind: type[Settings], values: dict[str, Any], where: str = "options") -> Settings:
    """Validate settings.

    Raises:
        InputError: A setting is unknown or has a value that it cannot have; ``where`` is put in front.
    """
    for name in values:
        if name not in kind.model_fields:
            raise InputError(f"{where}: there is no setting '{name}'.{did_you_mean(name, kind.model_fields)}")
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        problems = []
        for problem in error.errors(include_url=False):
            field = ".".join(str(part) for part in problem["loc"])
            message = problem["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
            wrong = f", not {problem['input']}" if "must be" in message else ""
            problems.append(f"{field}: {message[:1].lower()}{message[1:]}{wrong}" if field else message)
        raise InputError(f"{where}: {'; '.join(problems)}.") from None


def load_config(path: str | Path) -> dict[str, Any]:
    """Read settings from a YAML file; hyphens in names are taken as underscores.

    Raises:
        InputError: The file is missing or is not a mapping.
    """
    try:
        data = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such configuration file.{like_named(path)}") from None
    except yaml.YAMLError as error:
        raise not_yaml(path, error) from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read as YAML ({error}).") from None
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise InputError(f"{path}: a mapping from setting to value is needed.")
    return {str(key).replace("-", "_"): value for key, value in data.items()}
