"""A judge as one thing: what it is made of, how it is used, and how it is written down.

It holds the model, the whole prompt, the checklist, how the model is asked and its answers become scores, a calibration
where there is one, the figures that the judge was accepted on, and where each question came from. It never holds an
address or a key. ``judge_file.py`` reads it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from textwrap import indent
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal, Unpack

import yaml
from pydantic import BaseModel, ConfigDict, Field

from ..agents.checks import versions_of
from ..agents.evaluator import Evaluator
from ..memory.by_hand import JudgeChange
from ..memory.records import MeasureRecord, Origin
from ..memory.run_directory import JUDGE_FILE
from ..models.event_loops import awaited
from ..models.named import ModelLike, NamedModel, named_models
from ..prompts.checklist import Checklist, GoodAnswer, Sees, dump_checklist
from ..prompts.errors import InputError, did_you_mean
from ..prompts.prompt import Prompt
from ..prompts.text_files import dump_texts, read_texts, write_whole
from ..prompts.verdicts import Provenance
from ..setting_types import EvaluateSettings
from ..settings import idle_settings, parse_options
from .calibration import Calibration
from .evaluate import ONE_BY_ONE, EvaluationJob, load_inputs
from .evaluation_result import Evaluation
from .open_judge import Judged, OpenJudge
from .options import EvaluateOptions
from .own_judge import OwnWords
from .pass_fail import PassThreshold
from .raters.steps import StepThresholds

if TYPE_CHECKING:
    from ..models.base import Model
    from ..models.progress import Watcher
    from ..prompts.examples import Example
    from ..prompts.shown_examples import ShownExamples

logger = logging.getLogger(__name__)

SCHEMA = "askance.judge/1"
SETTINGS = (
    *("mode", "explain", "p_yes", "samples", "temperature", "repeat", "seed"),
    *("scores", "score_scale", "human_scale", "reads", "reply_tokens"),
)
"""Settings of ``evaluate`` that a judge's answers, scores and agreement with people depend on."""
THIS_FOLDER = "."
"""The model of a ``judge.yaml`` beside a trained scorer: the folder that both are in, wherever it is."""
HEADER = """\
# A judge: its model, its prompt and its checklist, with what was measured of it. It is used with
#   askance evaluate DATA --judge THIS_FILE
"""


_AT_HAND = "_at_hand_"
_OPENING = Lock()

Decision = Literal["adopt", "keep", "undecided"]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, populate_by_name=True)


class QuestionOrigin(Origin):
    """Where a question came from, and what it was before it was worded anew."""

    model_config = _Part.model_config

    text: str | None = None
    """Wording before it was worded anew."""
    good: GoodAnswer | None = None
    """Which answer spoke for the output then; people's answers to the question mean this one."""
    sees: Sees | None = None
    """Part of an example that the judge was shown then, where it is another one now."""
    agreement: float | None = None
    """Rank correlation with the judge that it was worded after, on ``n`` development examples."""
    agreement_before: float | None = None
    """That of the old wording on the same examples."""
    n: int | None = None


class AcceptedOn(MeasureRecord):
    """The figures of a judge on one split, with their 95 % interval."""

    model_config = _Part.model_config

    n: int = Field(ge=0)


class JudgeFigures(_Part):
    """Figures of a judge when it was accepted."""

    reference: Literal["human", "source"] | None = None
    """Whose scores its own were correlated with: people's, or another judge's."""
    validation: AcceptedOn
    test: AcceptedOn
    without_measures: AcceptedOn | None = None
    """The figures on test of the same judge without its measures; None where it has none, or asks nothing else."""
    of: str | None = None
    """The :attr:`KeptJudge.hash` of the judge that was measured; None where nobody wrote it down."""


class MadeBy(_Part):
    """The run that a judge comes from."""

    mode: str
    finish_reason: str
    accepted: bool | None = None
    """Whether the run accepted another judge than it began with; None where nobody wrote it down."""
    unfitted: str | None = None
    """Why it fitted no threshold, which is then 0.5; None where it did, or there is none."""
    p_yes_from: Provenance | None = None
    """Where P(yes) came from, where the judge thinks and its settings leave that open: its verdicts are read so
    again."""
    certificate: Literal["adopt", "not_yet", "undecided"] | None = None
    """Whether it may take the place of the judge that it was migrated from; None where it was not migrated."""


@dataclass(frozen=True)
class KeptJudge:
    """A judge with everything that its scores depend on; :func:`load_judge` reads one."""

    model: str
    """As ``provider/model``, or the name of :attr:`named`, which alone may hold the address of a server."""
    prompt: Prompt
    checklist: Checklist
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Values of :data:`SETTINGS` that it is used with."""
    named: NamedModel | None = None
    """Settings behind ``model``, where it is a named model."""
    calibration: Calibration | None = None
    """Applied to its verdicts."""
    threshold: float | None = None
    """The score, in [0, 1], from which on an output passes."""
    threshold_of: tuple[str, ...] = ("overall",)
    """The dimensions of whose scores the mean is held against it."""
    steps: StepThresholds | None = None
    """Thresholds between the steps of people's ratings, where these are ordinal."""
    figures: JudgeFigures | None = None
    origins: Mapping[str, QuestionOrigin] = field(default_factory=dict)
    """By question id."""
    made_by: MadeBy | None = None
    decision: Decision | None = None
    """Whether the test of its run speaks for it, or after a migration the certificate; None where there was none, or
    nobody wrote it down."""
    history: tuple[JudgeChange, ...] = ()
    """Changes that a person made of it, the first one first."""
    answers: Path | None = field(default=None, compare=False)
    """The store of the run that it was read from: what was asked there is not bought again."""
    edited: bool = field(default=False, compare=False)
    """Whether its file was edited since, or the code of a check or a measure: its figures are of another judge."""

    @property
    def hash(self) -> str:
        """A content hash of all that its scores and its passes depend on."""
        calibration = None if self.calibration is None else self.calibration.model_dump(mode="json")
        asked = self.checklist.model_dump(mode="json", exclude={"task"})
        settings = judge_settings({"mode": "each"} | dict(self.settings), "settings")  # as in files without a mode
        if settings["reads"] is None:  # as in files from before judges had a form of replies
            settings = {name: value for name, value in settings.items() if name not in OwnWords.model_fields}
        read = [calibration, self.threshold, list(self.threshold_of), settings]
        named = [] if self.named is None else [self.named.where, self.named.answers_depend_on]
        functions = [versions] if (versions := versions_of(self.checklist.computed)) else []
        steps = [] if self.steps is None else [self.steps.model_dump(mode="json")]
        whole = [self.model, self.prompt.hash, asked, *read, *named, *functions, *steps]
        return sha256(json.dumps(whole).encode()).hexdigest()[:16]

    @property
    def asked(self) -> str:
        """Its model as ``provider/model``."""
        return self.model if self.named is None else self.named.model

    @property
    def not_adopted(self) -> str | None:
        """Why it is not to be taken in place of the judge that its run began with; None where nothing speaks against
        it."""
        if self.decision in (None, "adopt") or self.edited or self.made_by is None:
            return None
        if self.made_by.certificate is not None:
            said = "says not yet" if self.decision == "keep" else "is undecided"
            return (
                f"the certificate of its migration {said}: it is not shown that this judge may take the old one's place "
                f"(decision: {self.decision})."
            )
        if self.made_by.accepted is False:
            return None
        if self.decision == "keep":
            return (
                "validation accepted this judge and the test speaks against it (decision: keep): keep the one "
                "that the run began with."
            )
        return (
            "validation accepted this judge and the test does not settle whether it is better than the start "
            "(decision: undecided)."
        )

    def measured(self, figures: JudgeFigures) -> KeptJudge:
        """The judge with figures that were measured of it as it is."""
        return replace(self, figures=figures.model_copy(update={"of": self.hash}))

    def evaluate(
        self,
        data: str | Path | Iterable[Example | Mapping[str, Any]],
        *,
        model: ModelLike | None = None,
        watcher: Watcher | None = None,
        progress: bool | None = None,
        evaluator: type[Evaluator] = Evaluator,
        **options: Unpack[EvaluateSettings],
    ) -> Evaluation:
        """Judge examples, as :func:`~askance.evaluation.evaluate.evaluate` does with the parts of this judge.

        Arguments and errors are the same. ``model`` takes the place of the judge's own, and ``options`` win over its
        settings.
        """
        asked, given = named_models(options, model)
        return self.prepare(data, asked, given, evaluator).run(watcher, progress)

    aevaluate = awaited(evaluate)

    def open(
        self,
        *,
        model: ModelLike | None = None,
        evaluator: type[Evaluator] = Evaluator,
        **options: Unpack[EvaluateSettings],
    ) -> OpenJudge:
        """The judge for one output at a time, e.g. in a service; close it, or use it in a ``with`` block.

        ``model`` and ``options`` are as in :meth:`evaluate`. Without ``store`` the last answers are kept in memory.

        Raises:
            InputError: A setting is wrong, or about a whole data set.
        """
        asked, given = named_models(options, model)
        return OpenJudge(self.prepare(ONE_BY_ONE, asked, given, evaluator), keeps=options.get("store") is not None)

    def score(
        self, example: Example | Mapping[str, Any] | None = None, /, *, explained: bool = False, **texts: Any
    ) -> Judged:
        """Judge one output, as :meth:`OpenJudge.score <askance.evaluation.open_judge.OpenJudge.score>` does.

        The first call opens the judge with its own settings (:meth:`open` takes others); :meth:`close` closes it.
        """
        return self._at_hand().score(example, explained=explained, **texts)

    async def ascore(
        self, example: Example | Mapping[str, Any] | None = None, /, *, explained: bool = False, **texts: Any
    ) -> Judged:
        """Like :meth:`score`, from an event loop, which goes on meanwhile."""
        return await self._at_hand().ascore(example, explained=explained, **texts)

    def close(self) -> None:
        """Close what :meth:`score` opened, after the calls under way; the next one opens it again."""
        with _OPENING:
            opened = self.__dict__.pop(_AT_HAND, None)
        if opened is not None:
            opened.close()

    def __enter__(self) -> KeptJudge:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != _AT_HAND}

    def _at_hand(self) -> OpenJudge:
        with _OPENING:
            if _AT_HAND not in self.__dict__:
                self.__dict__[_AT_HAND] = self.open()
            found: OpenJudge = self.__dict__[_AT_HAND]
            return found

    def prepare(
        self,
        data: str | Path | Iterable[Example | Mapping[str, Any]],
        model: str | Model | None,
        options: Mapping[str, Any],
        evaluator: type[Evaluator] = Evaluator,
    ) -> EvaluationJob:
        """Load and check what :meth:`evaluate` is given; nothing is bought. What is not as measured is logged.

        ``data`` may be :data:`~askance.evaluation.evaluate.ONE_BY_ONE`, for :meth:`open`.

        Raises:
            InputError: Names the file, line and field at fault.
        """
        settings = parse_options(EvaluateOptions, self.with_options(options))
        if settings.own_questions:
            raise InputError("own_questions: this judge brings its own checklist.")
        if settings.reads is not None and self.settings.get("reads") is None:
            raise InputError("reads: this judge answers the questions of its own checklist.")
        examples, questions, text = load_inputs(data, self.checklist, self.prompt, settings)
        calibration = self.calibration_of(model) if settings.calibration is None else None
        if calibration is not None and settings.adaptive:
            raise InputError(
                "This judge has a calibration, which moves scores after they were asked for; leave out stop_within and "
                "pass_mark."
            )
        self.say_what_differs(model, options)
        asked = self.model if model is None else model
        threshold = self.pass_threshold(model, options)
        if threshold is not None and settings.stop_within is not None:
            raise InputError(
                "This judge says from which score on an output passes, and with stop_within scores are not exact. "
                "Leave it "
                f"out, or take pass_mark {threshold.value:g}."
            )
        return EvaluationJob(
            *(examples, questions, text, asked, settings, evaluator),
            calibration=calibration,
            answers=self.answers,
            threshold=threshold,
            steps=self.steps if threshold is None and _name(model, self.model) == self.model else None,
            p_yes_from=self.p_yes_from(model),
        )

    def p_yes_from(self, model: str | Model | None = None) -> Provenance | None:
        """Where P(yes) came from when it was measured, of a judge that thinks; None of others, and of another model."""
        own = self.made_by is not None and _name(model, self.model) == self.model
        return self.made_by.p_yes_from if self.made_by is not None and own else None

    def pass_threshold(self, model: str | Model | None, options: Mapping[str, Any]) -> PassThreshold | None:
        """From which score on an output passes; None where nobody said, or it does not fit: another model, or another
        calibration.

        Its error rates come along unless it is used otherwise than it was measured.
        """
        if self.threshold is None or _name(model, self.model) != self.model or options.get("calibration") is not None:
            return None
        fitted = self.made_by is not None and self.made_by.unfitted is None and not self.edited
        found = PassThreshold(
            self.threshold, "judge", fitted_on="development" if fitted else None, dimensions=self.threshold_of
        )
        test = None if self.figures is None else self.figures.test
        if test is None or test.true_positive_rate is None or test.true_negative_rate is None:
            return found
        if self._differences(model, options):
            return found
        return replace(found, true_positive_rate=test.true_positive_rate, true_negative_rate=test.true_negative_rate)

    @property
    def examples(self) -> ShownExamples | None:
        """The judged examples that it is shown, where it is; they belong to its prompt."""
        return None if self.prompt.shown is None else self.prompt.shown.record

    def without_measures(self) -> KeptJudge:
        """The judge without its measures, with the figures on test that it then has; its threshold is of the whole one.

        Raises:
            InputError: It asks nothing else that counts.
        """
        checklist = self.checklist.of((*self.checklist.asked, *self.checklist.checks))
        if checklist is None:
            raise InputError("This judge has measures alone: without them there is nothing to ask.")
        if not self.checklist.measures:
            return self
        test = None if self.figures is None else self.figures.without_measures
        figures = (
            None
            if test is None or self.figures is None
            else self.figures.model_copy(
                update={"validation": AcceptedOn(n=0), "test": test, "without_measures": None, "of": None}
            )
        )
        origins = {name: each for name, each in self.origins.items() if name in {one.id for one in checklist.questions}}
        return replace(self, checklist=checklist, threshold=None, figures=figures, origins=origins)

    def with_options(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """The judge's settings with those that are given; these win, and what they leave without use of the judge's is
        left out.
        """
        merged = {**self.settings, **options}
        if self.named is not None:
            merged["models"] = {self.model: self.named, **(options.get("models") or {})}
        idle = idle_settings(EvaluateOptions, merged).keys() - idle_settings(EvaluateOptions, self.settings).keys()
        if merged.get("scores") != "expected":
            idle.add("score_scale")
        return {name: value for name, value in merged.items() if name in options or name not in idle}

    def calibration_of(self, model: str | Model | None) -> Calibration | None:
        """Its calibration, unless another model is asked, whose verdicts it does not fit."""
        return self.calibration if _name(model, self.model) == self.model else None

    def say_what_differs(
        self, model: str | Model | None, options: Mapping[str, Any], calibration: str = "left out"
    ) -> None:
        """Log a warning where the judge is used otherwise than it was measured.

        ``calibration`` says what becomes of the judge's own where another model is asked.
        """
        others = self._differences(model, options)
        if not others:
            return
        asked = _name(model, self.model)
        lost = (
            f" Its calibration does not fit that model and is {calibration}."
            if asked != self.model and self.calibration
            else ""
        )
        measured = "; its figures were measured without that" if self.figures else ""
        logger.warning("This is not the judge as it was kept: %s%s.%s", ", ".join(others), measured, lost)

    def _differences(self, model: str | Model | None, options: Mapping[str, Any]) -> list[str]:
        """Differences from the judge as it was measured, in words."""
        asked = _name(model, self.model)
        known, given = (
            judge_settings({name: value for name, value in each.items() if name in SETTINGS}, "options")
            for each in (self.with_options({}), self.with_options(options))
        )
        functions = ", or the code of a check or a measure" if versions_of(self.checklist.computed) else ""
        others = [f"its file was edited{functions}"] if self.edited else []
        others += [] if asked == self.model else [f"model {asked} in place of {self.model}"]
        others += [
            f"{name} {_said(given[name])} in place of {_said(known[name])}"
            for name in SETTINGS
            if given[name] != known[name]
        ]
        return others + [
            f"{name} of {options[name]}"
            for name in ("weights", "calibration", "answer_words")
            if options.get(name) is not None
        ]

    def save(self, path: str | Path) -> None:
        """Write the file whole or not at all; a directory gets a ``judge.yaml``. Raises AskanceError where it could not
        be written; what was there before is still there."""
        file = Path(path)
        write_whole(file / JUDGE_FILE if file.is_dir() else file, self.to_yaml())

    def to_yaml(self) -> str:
        """The content of ``judge.yaml``."""
        form = ""
        if self.prompt.form is not None:  # it is no plain text of ours
            record = self.prompt.form.record.model_dump(mode="json", exclude_defaults=True)
            form = _section("How the prompt is to be read, and what its variables stand for.", prompt_form=record)
        parts = [
            HEADER + f"schema: {SCHEMA}\n" + dump_texts({"model": self.model}),
            *([] if self.named is None else ["# What this name stands for.\n" + _named(self.model, self.named)]),
            _block("prompt", self.prompt.file_text) + form,
            "checklist:\n"
            + indent(dump_checklist(self.checklist).rstrip("\n") + "\n", "  ", lambda line: line != "\n"),
        ]
        if self.examples is not None:
            shown = self.examples.model_dump(mode="json", exclude_defaults=True)
            parts.append(_section("Outputs that people judged, which it is shown before each one.", examples=shown))
        if self.origins:
            origins = {name: _plain(each) for name, each in self.origins.items()}
            parts.append(_section("Where each question came from.", origins=origins))
        if self.settings:
            settings = judge_settings(self.settings, "settings")
            lines = [f"  {name}: {_said(settings[name])}\n" for name in SETTINGS if name in self.settings]
            parts.append("# How the model is asked, and how its answers become scores.\nsettings:\n" + "".join(lines))
        if self.calibration is not None:
            calibration = self.calibration.model_dump(mode="json", exclude_none=True)
            parts.append(_section("Applied to its verdicts.", calibration=calibration))
        if self.threshold is not None:
            of = {} if self.threshold_of == ("overall",) else {"threshold_of": list(self.threshold_of)}
            parts.append(_section("An output passes from this score on.", threshold=self.threshold, **of))
        if self.steps is not None:
            says = "Steps of people's ratings, and the score from which on each further one is reached."
            parts.append(_section(says, steps=_plain(self.steps)))
        if self.figures is not None:
            says = "What it was accepted on: agreement of its scores, with 95% intervals."
            parts.append(_section(says, figures=_plain(self.figures)))
        if self.decision is not None:
            says = "Whether the test examples speak for it: adopt, keep (what the run began with) or undecided."
            if self.made_by is not None and self.made_by.certificate is not None:
                says = "Whether it may take the old judge's place: adopt, keep (the old judge) or undecided."
            parts.append(_section(says, decision=self.decision))
        if self.made_by is not None:
            parts.append(dump_texts({"run": _plain(self.made_by)}))
        if self.history:
            says = "What a person changed, and how often validation had been looked at by then."
            parts.append(_section(says, history=[_plain(each) for each in self.history]))
        return "\n".join(parts)


def judge_settings(given: Mapping[str, Any], where: str) -> dict[str, Any]:
    """All of :data:`SETTINGS`, those that are not given with their default. Raises InputError where one is unknown, or
    has a value that it cannot have."""
    for name in given:
        if name not in SETTINGS:
            raise InputError(f"{where}: there is no setting '{name}'.{did_you_mean(name, SETTINGS)}")
    parsed = parse_options(EvaluateOptions, given, where, kept=True)
    return {name: getattr(parsed, name) for name in SETTINGS}


def _named(name: str, named: NamedModel) -> str:
    return yaml.safe_dump({"models": {name: named.kept}}, sort_keys=False, allow_unicode=True)


def _block(key: str, text: str) -> str:
    """A text under a key, as a block wherever YAML gives it back byte for byte, also with blanks at ends of lines."""
    if "\n" in text:
        ending = text[len(text.rstrip("\n")) :]
        chomp = {"": "-", "\n": ""}.get(ending, "+")
        first = "2" if text[0] in " \n" else ""
        body = text + "\n" if not ending else text[:-1] if chomp == "+" else text  # a blank line follows
        written = f"{key}: |{first}{chomp}\n" + indent(body, "  ", lambda line: line != "\n")
        with suppress(InputError):
            if read_texts(written + "\nend: .\n", key, key) == {key: text, "end": "."}:
                return written
    return dump_texts({key: text})


def _section(says: str, **data: Any) -> str:
    """Keys of the file below a comment."""
    return f"# {says}\n{dump_texts(data)}"


def _plain(part: BaseModel) -> dict[str, Any]:
    return _without_blanks(part.model_dump(mode="json", by_alias=True, exclude_unset=True))


def _without_blanks(row: Mapping[str, Any]) -> dict[str, Any]:
    """Without what is not given; an undefined figure stays, as null."""
    kept = {
        name: value for name, value in row.items() if value is not None or name in ("spearman", "value", "low", "high")
    }
    return {name: _without_blanks(value) if isinstance(value, dict) else value for name, value in kept.items()}


def _said(value: Any) -> str:
    if isinstance(value, str) and not value.isidentifier():  # a text that YAML may read otherwise
        return json.dumps(value)
    return json.dumps(list(value)) if isinstance(value, tuple) else "null" if value is None else f"{value}"


def _name(model: str | Model | None, own: str) -> str:
    return own if model is None else model if isinstance(model, str) else model.name
