"""A judge as one object: its parts, its use, and the file that it is written to.

A judge holds its model, the whole prompt, the checklist, and the settings by which the model is asked and its answers
become scores. It may also hold a calibration, the figures on which it was accepted, and the origin of each question. It
never holds a key. Only the settings of a named model may hold a server's address. ``judge_file.py`` reads the file.
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
"""``model`` in a ``judge.yaml`` beside a trained scorer: the folder of the two files, wherever it is."""
HEADER = """\
# A judge: its model, its prompt and its checklist, with what was measured of it. It is used with
#   askance evaluate DATA --judge THIS_FILE
"""


# The open judge's key in the instance's __dict__: a frozen dataclass takes no attributes.
_AT_HAND = "_at_hand_"
_OPENING = Lock()

Decision = Literal["adopt", "keep", "undecided"]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, populate_by_name=True)


class QuestionOrigin(Origin):
    """Origin of a question, and its earlier form if it was reworded."""

    model_config = _Part.model_config

    text: str | None = None
    """Wording before the question was reworded."""
    good: GoodAnswer | None = None
    """Good answer before the question was reworded or flipped. People's answers to the question refer to that form."""
    sees: Sees | None = None
    """Part of an example that the judge saw before the rewording; None if it has not changed."""
    agreement: float | None = None
    """Rank correlation of the new wording with the judge that it is to imitate, on ``n`` development examples."""
    agreement_before: float | None = None
    """Rank correlation of the old wording with the same judge, on the same examples."""
    n: int | None = None


class AcceptedOn(MeasureRecord):
    """The figures of a judge on one split, with their 95 % interval."""

    model_config = _Part.model_config

    n: int = Field(ge=0)


class JudgeFigures(_Part):
    """Figures of a judge when it was accepted."""

    reference: Literal["human", "source"] | None = None
    """Scores that the judge's scores were correlated with: people's, or another judge's."""
    validation: AcceptedOn
    test: AcceptedOn
    without_measures: AcceptedOn | None = None
    """Test figures of the same judge without its measures; None if it has no measures, or nothing else."""
    of: str | None = None
    """The :attr:`KeptJudge.hash` of the judge that was measured; None if it was not recorded."""


class MadeBy(_Part):
    """The run that a judge comes from."""

    mode: str
    finish_reason: str
    accepted: bool | None = None
    """Whether the run accepted a judge other than its start; None if this was not recorded."""
    unfitted: str | None = None
    """Why the run fitted no threshold and left it at 0.5; None if it fitted one, or there is none."""
    p_yes_from: Provenance | None = None
    """Source of P(yes), if the judge thinks and its settings leave the source open. Later verdicts use the same
    source."""
    certificate: Literal["adopt", "not_yet", "undecided"] | None = None
    """Whether the judge may replace the judge that it was migrated from; None if it was not migrated."""


@dataclass(frozen=True)
class KeptJudge:
    """A judge with everything that its scores depend on; :func:`load_judge` reads one."""

    model: str
    """``provider/model``, or the name of :attr:`named`. Only a named model can hold the address of a server."""
    prompt: Prompt
    checklist: Checklist
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Values of :data:`SETTINGS` that the judge is used with."""
    named: NamedModel | None = None
    """Settings behind ``model``, if it is a named model."""
    calibration: Calibration | None = None
    """Calibration of the judge's verdicts."""
    threshold: float | None = None
    """Smallest score, in [0, 1], that passes."""
    threshold_of: tuple[str, ...] = ("overall",)
    """Dimensions whose mean score is compared with the threshold."""
    steps: StepThresholds | None = None
    """Thresholds between the steps of people's ratings, if the ratings are ordinal."""
    figures: JudgeFigures | None = None
    origins: Mapping[str, QuestionOrigin] = field(default_factory=dict)
    """Origin of each question, by its id."""
    made_by: MadeBy | None = None
    decision: Decision | None = None
    """Decision of the run's test, or of the certificate after a migration; None if there was none, or it was not
    recorded."""
    history: tuple[JudgeChange, ...] = ()
    """Changes that a person made to the judge, the first one first."""
    answers: Path | None = field(default=None, compare=False)
    """Store of the run that the judge was read from. Answers in this store are reused, not bought again."""
    edited: bool = field(default=False, compare=False)
    """Whether the file, or the code of a check or a measure, changed after the figures were measured. The figures then
    belong to another judge."""

    @property
    def hash(self) -> str:
        """Content hash of everything that the judge's scores and passes depend on."""
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
        """The judge's model as ``provider/model``."""
        return self.model if self.named is None else self.named.model

    @property
    def not_adopted(self) -> str | None:
        """Reason not to replace the judge that the run began with by this one; None if there is no such reason."""
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
        """Return the judge with figures that were measured on its present form."""
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

        Arguments and errors are the same. ``model`` replaces the judge's own model, and ``options`` override its
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
        """Open the judge for one output at a time, e.g. in a service. Close it, or use it in a ``with`` block.

        ``model`` and ``options`` are as in :meth:`evaluate`. Without ``store`` the last answers are kept in memory.

        Raises:
            InputError: A setting is wrong, or only makes sense for a whole data set.
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
        """Like :meth:`score`, for use in an event loop, which is not blocked."""
        return await self._at_hand().ascore(example, explained=explained, **texts)

    def close(self) -> None:
        """Close what :meth:`score` opened, after the calls under way. The next :meth:`score` opens it again."""
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
        """Check the arguments of :meth:`evaluate`, and log differences from the measured judge. Nothing is bought.

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
        """Return the source of P(yes) when a judge that thinks was measured; None for other judges and models."""
        own = self.made_by is not None and _name(model, self.model) == self.model
        return self.made_by.p_yes_from if self.made_by is not None and own else None

    def pass_threshold(self, model: str | Model | None, options: Mapping[str, Any]) -> PassThreshold | None:
        """Return the threshold from which an output passes; None if there is none, or another model or calibration is
        used.

        The threshold comes with the judge's error rates, unless the judge is used differently from how it was measured.
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
        """Judged examples that the prompt shows to the judge; None if it shows none."""
        return None if self.prompt.shown is None else self.prompt.shown.record

    def without_measures(self) -> KeptJudge:
        """Return the judge without its measures, with the test figures of this smaller judge.

        The threshold is left out: it belongs to the whole judge. A judge without measures is returned unchanged.

        Raises:
            InputError: Nothing but the measures counts.
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
        """Return the judge's settings with ``options``, which override them. Settings of the judge that become useless
        beside ``options`` are left out."""
        merged = {**self.settings, **options}
        if self.named is not None:
            merged["models"] = {self.model: self.named, **(options.get("models") or {})}
        idle = idle_settings(EvaluateOptions, merged).keys() - idle_settings(EvaluateOptions, self.settings).keys()
        if merged.get("scores") != "expected":
            idle.add("score_scale")
        return {name: value for name, value in merged.items() if name in options or name not in idle}

    def calibration_of(self, model: str | Model | None) -> Calibration | None:
        """Return the judge's calibration; None if another model is asked: the calibration does not fit it."""
        return self.calibration if _name(model, self.model) == self.model else None

    def say_what_differs(
        self, model: str | Model | None, options: Mapping[str, Any], calibration: str = "left out"
    ) -> None:
        """Log a warning if the judge is used differently from how it was measured.

        ``calibration`` says what happens to the judge's own calibration if another model is asked.
        """
        differences = self._differences(model, options)
        if not differences:
            return
        asked = _name(model, self.model)
        lost = (
            f" Its calibration does not fit that model and is {calibration}."
            if asked != self.model and self.calibration
            else ""
        )
        measured = "; its figures were measured without that" if self.figures else ""
        logger.warning("This is not the judge as it was kept: %s%s.%s", ", ".join(differences), measured, lost)

    def _differences(self, model: str | Model | None, options: Mapping[str, Any]) -> list[str]:
        """Return the differences from the measured judge, in words."""
        asked = _name(model, self.model)
        known, given = (
            judge_settings({name: value for name, value in each.items() if name in SETTINGS}, "options")
            for each in (self.with_options({}), self.with_options(options))
        )
        functions = ", or the code of a check or a measure" if versions_of(self.checklist.computed) else ""
        differences = [f"its file was edited{functions}"] if self.edited else []
        differences += [] if asked == self.model else [f"model {asked} in place of {self.model}"]
        differences += [
            f"{name} {_said(given[name])} in place of {_said(known[name])}"
            for name in SETTINGS
            if given[name] != known[name]
        ]
        return differences + [
            f"{name} of {options[name]}"
            for name in ("weights", "calibration", "answer_words")
            if options.get(name) is not None
        ]

    def save(self, path: str | Path) -> None:
        """Write ``judge.yaml`` to a file or into a directory. Raises AskanceError if it cannot be written; an earlier
        file is then unchanged."""
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
    """Return all of :data:`SETTINGS`, with defaults for those that are not given. Raises InputError if one is unknown
    or has a wrong value."""
    for name in given:
        if name not in SETTINGS:
            raise InputError(f"{where}: there is no setting '{name}'.{did_you_mean(name, SETTINGS)}")
    parsed = parse_options(EvaluateOptions, given, where, kept=True)
    return {name: getattr(parsed, name) for name in SETTINGS}


def _named(name: str, named: NamedModel) -> str:
    return yaml.safe_dump({"models": {name: named.kept}}, sort_keys=False, allow_unicode=True)


def _block(key: str, text: str) -> str:
    """Write a text under a key; as a YAML block, also with blanks at line ends, if it is read back byte for byte."""
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
    """Write keys of the file below a comment."""
    return f"# {says}\n{dump_texts(data)}"


def _plain(part: BaseModel) -> dict[str, Any]:
    return _without_blanks(part.model_dump(mode="json", by_alias=True, exclude_unset=True))


def _without_blanks(row: Mapping[str, Any]) -> dict[str, Any]:
    """Drop keys without a value, except undefined figures: they stay as null."""
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
