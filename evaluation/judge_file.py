"""Read a judge: from a ``judge.yaml``, or from the files of a run that was made before runs wrote ``judge.yaml``."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ..agents.checks import versions_of
from ..agents.own_words import own_checklist
from ..memory.by_hand import JudgeChange, shaped_said
from ..memory.certificate_file import TARGETS, target_folder
from ..memory.decision import decide
from ..memory.embedders import shown_by
from ..memory.run_directory import JUDGE_FILE, RunDirectory
from ..models.named import NamedModel, read_named
from ..models.replies.own_formats import parse_reads
from ..prompts.checklist import AnswerPair, Checklist, asking, found_in, load_checklist, parse_checklist
from ..prompts.errors import InputError, as_typed, did_you_mean, like_named
from ..prompts.formats.form import FormRecord
from ..prompts.formatting import count
from ..prompts.prompt import Prompt, kept_prompt, prompt_showing
from ..prompts.rows import explain, validate_row
from ..prompts.shown_examples import ShownExamples
from ..prompts.text_files import path_of, read_text, read_texts, read_yaml
from ..settings import parse_options
from ..stats.resampling import Statistic
from .calibration import Calibration
from .evaluate import ONE_BY_ONE, EvaluationJob, load_inputs
from .kept_judge import (
    SCHEMA,
    SETTINGS,
    THIS_FOLDER,
    AcceptedOn,
    Decision,
    JudgeFigures,
    KeptJudge,
    MadeBy,
    QuestionOrigin,
    judge_settings,
)
from .options import EvaluateOptions
from .own_judge import OwnWords
from .pass_fail import FIGURES
from .raters.steps import StepThresholds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..memory.records import MeasureRecord, SideRecord
    from ..memory.result_file import RunRecord
    from ..models.base import Model
    from ..prompts.shown_examples import Shows

logger = logging.getLogger(__name__)

JUDGES = {"align": "model", "migrate": "target"}
"""Commands whose runs improve a judge, each with the argument that names its model."""


class _File(BaseModel):
    """Fields of ``judge.yaml`` except ``schema``. Its checklist and its settings are not parsed yet.

    :class:`~askance.evaluation.kept_judge.KeptJudge` describes the fields that have no text here.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str = Field(min_length=1)
    """``provider/model``, or the name of a named model."""
    models: dict[str, Any] | None = None
    """Settings of the named model that ``model`` refers to. Only headers whose values are variables are kept."""
    prompt: str = Field(min_length=1)
    """The whole prompt, byte for byte."""
    prompt_form: FormRecord | None = None
    """How to read the prompt, if it is not askance's own plain text."""
    checklist: dict[str, Any] | None = None
    """Content as in a checklist file; None if the settings say how replies to the judge's own prompt are read."""
    answers: AnswerPair | None = None
    """The checklist's words for yes and no, if they are written outside of it."""
    examples: ShownExamples | None = None
    origins: dict[str, QuestionOrigin] = {}
    settings: dict[str, Any] = {}
    """Settings that the scores depend on: ``mode``, ``explain``, ``p_yes``, ``reads`` and others."""
    calibration: dict[str, Any] | None = None
    """Calibration of every verdict; the method ``accepted`` reads answers against those on accepted outputs."""
    threshold: float | None = Field(None, ge=0, le=1)
    threshold_of: tuple[str, ...] = Field(("overall",), min_length=1)
    steps: StepThresholds | None = None
    figures: JudgeFigures | None = None
    decision: Decision | None = None
    run: MadeBy | None = None
    """Run that the judge comes from."""
    history: tuple[JudgeChange, ...] = ()


def load_judge(path: str | Path | KeptJudge) -> KeptJudge:
    """Read a judge from the directory of a run or of a trained scorer, or from a ``judge.yaml``.

    A :class:`KeptJudge` is returned as it is. A run that was finished before runs wrote ``judge.yaml`` is read from its
    other files.

    Raises:
        InputError: There is no such judge, the run is not finished or has none, or the file is damaged; names the file
            and the field at fault.
    """
    if isinstance(path, KeptJudge):
        return path
    path = path_of(path, "judge")
    file = path / JUDGE_FILE if path.is_dir() else path
    if file.is_file():
        judge = parse_judge(read_text(file), str(file))
        if judge.model == THIS_FOLDER:
            as_kept = judge.figures is not None and judge.figures.of is not None and not judge.edited
            judge = replace(judge, model=str(file.parent))
            if judge.figures is not None and as_kept:  # the hash holds the folder: a moved judge keeps its figures
                judge = judge.measured(judge.figures)
    elif path.is_dir():
        judge = _judge_of_files(path)
    else:
        raise InputError(
            f"{path}: there is no such judge; a run's directory or a {JUDGE_FILE} is needed.{like_named(path)}"
        )
    if judge.not_adopted:
        logger.warning("%s: %s", path, judge.not_adopted)
    if said := shaped_said(judge.history):
        logger.warning("%s: %s", path, said)
    run = RunDirectory(file.parent)
    store = run.path / "verdicts.db"
    folder = run.began_in if run.config_file.is_file() else file.parent
    judge = replace(judge, checklist=found_in(judge.checklist, folder))
    if judge.figures is not None and versions_of(judge.checklist.computed):
        judge = replace(judge, edited=judge.figures.of not in (None, judge.hash))  # its functions are found by now
    return replace(judge, answers=store if run.config_file.is_file() and store.is_file() else None)


@dataclass(frozen=True)
class JudgeParts:
    """Parts of a judge in use: a kept judge, or a checklist, a model and perhaps a prompt."""

    checklist: str | Path | Checklist
    model: str | Model
    prompt: str | Path | Prompt | None
    kept: KeptJudge | None = None
    calibration: Calibration | None = None

    @property
    def answers(self) -> Path | None:
        """Another store whose answers are reused."""
        return None if self.kept is None else self.kept.answers

    def with_options(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the judge's own settings with ``options``, which override them."""
        return dict(options) if self.kept is None else self.kept.with_options(options)

    def job(self, options: Mapping[str, Any], shown: Sequence[str]) -> EvaluationJob:
        """Return the judge without examples, to be asked about one output at a time.

        ``shown`` names the parts of an example that askance's own prompt shows; it is used if the judge brings no
        prompt. Raises InputError if the checklist, the prompt or a setting cannot be used.
        """
        if self.kept is not None:
            return self.kept.prepare(ONE_BY_ONE, self.model, options)
        settings = parse_options(EvaluateOptions, options)
        prompt = prompt_showing(shown) if self.prompt is None else self.prompt
        return EvaluationJob(*load_inputs(ONE_BY_ONE, self.checklist, prompt, settings), self.model, settings)


def judge_of_parts(
    judge: str | Path | KeptJudge | None,
    checklist: str | Path | Checklist | None,
    model: str | Model | None,
    prompt: str | Path | Prompt | None,
) -> JudgeParts:
    """Return the judge that is given as a kept judge or by its parts. Raises InputError if both or too little are
    given, or the kept judge cannot be read."""
    if judge is None:
        if checklist is None or model is None:
            missing = "checklist" if checklist is None else "model"
            raise InputError(f"A {missing} is needed (or a judge, which brings its own).")
        return JudgeParts(checklist, model, prompt)
    for name, part in (("checklist", checklist), ("prompt", prompt)):
        if part is not None:
            raise InputError(f"The judge brings its own {name}; leave out {name}, or judge.")
    kept = load_judge(judge)
    asked = kept.model if model is None else model
    return JudgeParts(kept.checklist, asked, kept.prompt, kept, kept.calibration_of(model))


def parse_judge(text: str, name: str) -> KeptJudge:
    """Read a judge from the text of a ``judge.yaml``; ``name`` is used in errors. InputError names the field at
    fault."""
    data = read_texts(text, name, "judge")
    if not isinstance(data, dict):
        raise InputError(f"{name}: a judge has the keys 'schema', 'model', 'prompt' and 'checklist'.")
    schema = data.pop("schema", None)
    if schema != SCHEMA:
        raise InputError(f"{name}, field 'schema': '{SCHEMA}' is needed, not {json.dumps(schema)}.")
    read = validate_row(_File, data, name)
    settings = judge_settings(read.settings, f"{name}, field 'settings'")
    checklist = _checklist(read.checklist, settings["reads"], name)
    if read.answers is not None:
        checklist = checklist.model_copy(update={"answers": read.answers})
    place = f"{name}, field 'prompt'"
    prompt = replace(kept_prompt(read.prompt, read.prompt_form, place).check(place), shown=_shown(read.examples, name))
    ids, dimensions = [each.id for each in checklist.questions], ["overall", *checklist.dimensions]
    of_steps = [] if read.steps is None else [read.steps.of]
    fields = [(f"origins.{each}", "question", each, ids) for each in read.origins]
    fields += [("steps.of", "dimension", each, dimensions) for each in of_steps]
    fields += [("threshold_of", "dimension", each, dimensions) for each in read.threshold_of]
    for field, kind, each, known in fields:
        if each not in known:
            raise InputError(
                f"{name}, field '{field}': the checklist has no {kind} '{each}'.{did_you_mean(each, known)}"
            )
    named = _named(text, name) if read.models else {}
    if read.models and read.model not in named:
        raise InputError(
            f"{name}, field 'models': the judge's model is '{read.model}', which is none of "
            f"them.{did_you_mean(read.model, named)}"
        )
    judge = KeptJudge(
        model=read.model,
        named=named.get(read.model),
        prompt=prompt,
        checklist=checklist,
        settings={each: settings[each] for each in SETTINGS if each in read.settings},
        calibration=None if read.calibration is None else _calibration(read.calibration, name),
        threshold=read.threshold,
        threshold_of=read.threshold_of,
        steps=read.steps,
        figures=read.figures,
        origins=read.origins,
        made_by=read.run,
        decision=read.decision,
        history=read.history,
    )
    check_calibration(judge, name)
    measured = None if judge.figures is None else judge.figures.of
    return replace(judge, edited=measured not in (None, judge.hash))


def _checklist(given: Mapping[str, Any] | None, reads: str | None, name: str) -> Checklist:
    if given is None and reads is not None:
        return own_checklist(parse_reads(reads))
    if given is None:
        raise InputError(
            f"{name}, field 'checklist': it is missing. A judge that answers in its own words has none, and has "
            "'reads' under 'settings'."
        )
    place = f"{name}, field 'checklist'"
    return asking(parse_checklist(json.dumps(given), place), place)


def _named(text: str, name: str) -> dict[str, NamedModel]:
    """Read the named models of the file, with numbers and switches as such and not as texts."""
    try:
        return read_named(read_yaml(text, name, "judge")["models"])
    except ValueError as error:
        raise InputError(f"{name}, field 'models': {error}") from None


def judge_of_run(result: RunRecord, config: Mapping[str, Any], start: Checklist, where: str = "the run") -> KeptJudge:
    """Return the judge that a run accepted, from its result, its settings in ``config.yaml`` and its first checklist.
    Raises InputError if the model, a setting or the checklist is missing or damaged."""
    best, certificate, model = result.best, result.certificate, config.get(JUDGES[result.mode])
    if not isinstance(model, str):
        raise InputError(f"{where}: config.yaml has no '{JUDGES[result.mode]}', the model that judges.")
    checklist = start
    if best.checklist is not None:
        written = best.checklist.model_dump(mode="json", exclude_unset=True)
        checklist = validate_row(Checklist, written, f"{where}: result.json, field 'best.checklist'")
        if start.computed:
            checklist = found_in(checklist, start.computed[0].folder)
    if config.get("answer_words"):
        checklist = checklist.model_copy(update={"answers": tuple(config["answer_words"])})
    calibration = None
    if best.read_by is not None:
        calibration = validate_row(Calibration, best.read_by, f"{where}: result.json, field 'best.read_by'")
    given = {name: config[name] for name in SETTINGS if name in config}
    if given.get("mode") == "auto" or best.mode is not None:
        given["mode"] = best.mode or "each"
    settings = judge_settings(given, f"{where}: config.yaml")
    try:
        named = read_named(config.get("models") or {}).get(model)
    except ValueError as error:
        raise InputError(f"{where}: config.yaml, models: {error}") from None
    judge = KeptJudge(
        model=model,
        named=named,
        prompt=replace(prompt_of(best, where), shown=_shown(best.examples, f"{where}: result.json")),
        checklist=checklist,
        settings={name: value for name, value in settings.items() if name not in _unused(settings)},
        calibration=calibration,
        threshold=None if best.threshold is None else best.threshold.value,
        threshold_of=("overall",) if best.threshold is None else best.threshold.of,
        steps=_steps(best.steps, f"{where}: result.json, field 'best.steps'"),
        origins=_origins(result, start, checklist),
        made_by=MadeBy(
            mode=result.mode,
            finish_reason=result.finish_reason,
            accepted=result.changed,
            p_yes_from=best.p_yes_from,
            unfitted=None if best.threshold is None else best.threshold.reason,
            certificate=None if certificate is None else certificate.decision,
        ),
        decision=certificate.word if certificate is not None else result.decision or decide(result).choice,
    )
    return judge.measured(
        JudgeFigures(
            reference="human" if result.reference == "human" else "source" if result.reference == "source" else None,
            validation=accepted_on(best.validation, best.reason),
            test=accepted_on(best.test, best.reason),
            without_measures=None if best.without_measures is None else accepted_on(best.without_measures),
        )
    )


def _steps(given: Mapping[str, Any] | None, where: str) -> StepThresholds | None:
    """Read the thresholds of a result. Raises InputError if they are damaged."""
    names = StepThresholds.model_fields
    return None if given is None else validate_row(StepThresholds, {name: given.get(name) for name in names}, where)


def prompt_of(best: SideRecord, where: str) -> Prompt:
    """Read the prompt of a version. Raises InputError if its file is damaged."""
    file = best.prompt if best.form is None else best.form.file
    return kept_prompt(file, best.form, f"{where}: result.json, field 'best.form'")


def _unused(settings: Mapping[str, Any]) -> tuple[str, ...]:
    scale = () if settings["scores"] == "expected" else ("score_scale",)
    if settings["reads"] is not None:
        return (*scale, "mode", "explain", "p_yes", "samples")
    return (*scale, *OwnWords.model_fields)


def _shown(examples: ShownExamples | None, name: str) -> Shows | None:
    """Return the chooser of the examples that the prompt shows. Raises InputError if there is no such embedder, or a
    package that it needs is not installed."""
    try:
        return None if examples is None else shown_by(examples)
    except InputError as error:
        raise InputError(f"{name}, field 'examples.embedder': {error}") from None


def _origins(result: RunRecord, start: Checklist, checklist: Checklist) -> dict[str, QuestionOrigin]:
    """Return each question's origin; for a reworded question also its earlier form and the agreement of both."""
    before = {each.id: each for each in start.questions}
    reworded = {each.question: each for each in result.reworded}
    origins = {}
    for each in checklist.questions:
        if each.id in result.best.origins:
            origins[each.id] = QuestionOrigin.model_validate(result.best.origins[each.id])
            continue
        old, found = before.get(each.id), reworded.get(each.id)
        row: dict[str, Any] = {"from": "reworded"}
        if old is not None and old.text == each.text and found is None:
            row = {"from": "clause" if each.clause else "start"}
            row = row if old.good == each.good else {"from": "flipped", "good": old.good}
        if found is not None and found.after is not None:
            row |= {"text": found.before.text, "good": found.before.good, "n": found.after.n}
            if found.before.sees != found.after.sees:
                row["sees"] = found.before.sees
            row |= {"agreement": _short(found.after.correlation), "agreement_before": _short(found.before.correlation)}
        origins[each.id] = QuestionOrigin.model_validate(row)
    return origins


def _short(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _judge_of_files(path: Path) -> KeptJudge:
    """Read the judge of a run that was finished before runs wrote ``judge.yaml``. Raises InputError if the directory
    has no finished run that improves a judge."""
    directory = RunDirectory(path)
    if not directory.config_file.is_file():
        raise InputError(f"{path}: there is no judge in this directory (no {JUDGE_FILE}, and no run).")
    config = directory.read_config()["config"]
    command = str(config.get("command"))
    if command not in JUDGES:
        raise InputError(
            f"{path}: a run of {command} improves no judge, so there is none to use; runs of {' and '.join(JUDGES)} do."
        )
    if TARGETS in config:
        raise InputError(_which_target(path, [target_folder(name) for name in config[TARGETS]]))
    result = directory.read_result()
    return judge_of_run(result, config, load_checklist(path / "inputs" / "checklist.yaml", remarks=False), str(path))


def _which_target(path: Path, folders: Sequence[str]) -> str:
    """Say that the directory of a migration to several targets is no judge, and list the judges in it."""
    judges = [as_typed(path / TARGETS / each) for each in folders if (path / TARGETS / each / JUDGE_FILE).is_file()]
    if not judges:
        return (
            f"{path}: this is a migration to {count(len(folders), 'target')}, and none has a judge (no {JUDGE_FILE})."
        )
    return f"{path}: this is a migration to {count(len(folders), 'target')}; name the judge of one: {', '.join(judges)}"


def accepted_on(row: MeasureRecord | None, otherwise: str | None = None) -> AcceptedOn:
    """Return the figures of a judge on one split for ``judge.yaml``. ``otherwise`` is the reason if there are none."""
    if row is None:
        return AcceptedOn(spearman=None, n=0, reason=otherwise or "it was not judged")
    figures: dict[str, Any] = {name: _short(getattr(row, name)) for name in ("spearman", "mean", "low", "high")}
    for name in FIGURES:
        found: Statistic | None = getattr(row, name)
        if found is not None:
            figures[name] = replace(found, value=_short(found.value), low=_short(found.low), high=_short(found.high))
    return AcceptedOn(n=row.n, reason=row.reason, **figures)


def _calibration(texts: Mapping[str, Any], name: str) -> Calibration:
    """Parse a calibration whose numbers are still texts. InputError names the field at fault."""
    try:
        return Calibration.model_validate(texts, strict=False)
    except ValidationError as error:
        raise InputError(f"{name}, field 'calibration': {explain(error, Calibration)}") from None


def check_calibration(judge: KeptJudge, name: str) -> None:
    """Raise InputError if the judge's calibration does not fit the judge, before a call is bought.

    It does not fit if it was fitted for another judge, if it lacks a question, if a good answer has changed since, or
    if a question that others lean on is not asked any more. ``name`` is the judge's name in errors.
    """
    found = judge.calibration
    if found is None:
        return
    measured = {each.id for each in judge.checklist.measures}  # which have their own curves
    known = {*found.questions, *measured}
    wrong = next((each.id for each in judge.checklist.questions if each.id not in known), None)
    if wrong is not None:
        problem = f"it knows no question '{wrong}'"
    elif found.model != judge.model:
        problem = f"it was fitted for {found.model}, and the judge is {judge.model}"
    elif found.prompt != judge.prompt.hash:
        problem = f"it was fitted for a prompt with the hash {found.prompt}, and this prompt has {judge.prompt.hash}"
    else:
        try:
            found.check_questions(judge.checklist)
        except InputError as error:
            raise InputError(f"{name}, field 'calibration': {error}") from None
        return
    raise InputError(f"{name}, field 'calibration': {problem}. Take the calibration out, or fit one for this judge.")
