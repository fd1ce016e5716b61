"""The inputs of a migration of a prompt that writes, checked."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

from ...agents.checks import Checker, CheckFunction, load_checker, make_ready
from ...agents.traces.replay import with_record
from ...evaluation.judge_file import load_judge
from ...evaluation.kept_judge import KeptJudge
from ...memory.certificate_file import target_folder
from ...memory.run_directory import RunDirectory
from ...models.base import Model
from ...models.named import used_models
from ...models.programs import Program, writer_of
from ...prompts.checklist import (
    SCHEMA_CHECK,
    Checklist,
    ComputedCheck,
    dump_checklist,
    load_checklist,
    refuse_computed,
    with_schema,
)
from ...prompts.errors import InputError
from ...prompts.examples import Example, ExampleTable, load_examples
from ...prompts.formats.binding import binding_of, refuse_unused
from ...prompts.formats.several import generator_prompt
from ...prompts.prompt import Prompt, default_prompt, load_prompt, own_prompt
from ...settings import parse_options, refuse_idle
from ..job import Job, SplitExamples, model_name, split_examples
from ..modes.tune import OLD_OUTPUTS, schema_beside
from ..options import TuneOptions, WriterMigrationOptions
from ..splits import PARTS
from .recorded import RECORDED


class OutputsJudge(NamedTuple):
    """The model that judges the outputs, with its prompt and the questions that people taught it."""

    model: str | Model
    prompt: Prompt
    questions: Checklist | None


@dataclass(frozen=True)
class WriterMigration:
    """A prompt that writes, its old outputs or the model that writes them, and the target models."""

    examples: Sequence[Example]
    """Examples with ``metadata.split``. Their outputs are the old ones, or are still to be written."""
    prompt: Prompt
    source: str | Model
    targets: Mapping[str, str | Model]
    """Target models by name."""
    judge: OutputsJudge | None
    second_judge: str | Model | None
    requirements: Checklist | None
    """Given requirements, in place of those that are found."""
    own: Checklist | None
    """The user's own schema as a check."""
    checker: Checker | None
    options: WriterMigrationOptions
    prompt_name: str = "prompt"

    @property
    def config(self) -> dict[str, Any]:
        """All settings that the result depends on, for ``config.yaml``; given requirements are a separate input."""
        tuned = self._job(self.examples, None).config
        asked = [self.source, *self.targets, self.second_judge, *([] if self.judge is None else [self.judge.model])]
        named = used_models(self.options.models, asked)
        models = {name: each.model_dump(mode="json", exclude_defaults=True) for name, each in named.items()}
        return {
            "command": "migrate",
            "kind": "generator",
            "source": model_name(self.source),
            "targets": list(self.targets),
            "judge": None if self.judge is None else model_name(self.judge.model),
            "second_judge": None if self.second_judge is None else model_name(self.second_judge),
            "checker": None if self.checker is None else self.checker.name,
            "prompt_name": self.prompt_name,
            **{name: value for name, value in tuned.items() if name != "command"},
            **({"models": {**tuned.get("models", {}), **models}} if models else {}),
            "max_loss": self.options.max_loss,
            "certificate_level": self.options.certificate_level,
            "max_requirements": self.options.max_requirements,
        }

    @property
    def prompts(self) -> dict[str, Prompt]:
        """The prompts that the run's directory keeps."""
        return {"prompt": self.prompt} | ({} if self.judge is None else {"judge_prompt": self.judge.prompt})

    def splits(self) -> SplitExamples:
        """The examples of each split."""
        return split_examples(self._job(self.examples, None), None)

    def with_splits(self) -> WriterMigration:
        """The migration with ``metadata.split`` in each example, so that all targets share the splits."""
        parts = self.splits()
        of = {each.id: part for part in PARTS for each in getattr(parts, part)}
        told = [each.model_copy(update={"metadata": {**each.metadata, "split": of[each.id]}}) for each in self.examples]
        return replace(self, examples=told)

    def target_job(self, name: str, checklist: Checklist, options: TuneOptions) -> Job:
        """The job that tunes the prompt for one target; the examples carry the old outputs."""
        target = self.targets[name]
        job = replace(self._job(self.examples, checklist), options=options)
        settings = {**job.settings, OLD_OUTPUTS: "in the data"}
        if isinstance(target, Program):
            settings |= {"program": target.version, "prompt_name": self.prompt_name}
        return replace(job, models={"generator": target, **job.models}, settings=settings)

    def _job(self, examples: Sequence[Example], checklist: Checklist | None) -> Job:
        options = self.options.model_dump(include=self.options.model_fields_set & TuneOptions.model_fields.keys())
        options |= {name: getattr(self.options, name) for name in options}  # records stay records
        models = {} if self.judge is None else {"judge": self.judge.model}
        checker = {} if self.checker is None else {"checker": self.checker}
        names = {name: each.name for name, each in checker.items()}
        return Job(
            "tune", examples, checklist, self.prompts, models, TuneOptions.model_validate(options), names, checker
        )


def prepare_writer(
    data: str | Path | Iterable[Example | Mapping[str, Any]],
    prompt: str | Path | Prompt,
    source: Any,
    targets: Sequence[Any],
    judge: str | Path | Model | KeptJudge | None = None,
    judge_prompt: str | Path | Prompt | None = None,
    second_judge: str | Model | None = None,
    requirements: str | Path | Checklist | None = None,
    schema: str | Path | Mapping[str, Any] | None = None,
    checker: str | CheckFunction | None = None,
    *,
    options: Mapping[str, Any],
) -> WriterMigration:
    """Load and check the inputs; ``source`` and ``targets`` are models, their names, or programs of the user's own.
    Raises InputError that names the file, line and field at fault."""
    given = dict(options)
    kept = _kept(judge)
    if kept is not None:
        given = {**kept.settings, **given}
        given = {name: value for name, value in given.items() if name in WriterMigrationOptions.model_fields}
        if kept.named is not None:
            given["models"] = {kept.model: kept.named, **(given.get("models") or {})}
    settings = parse_options(WriterMigrationOptions, given)
    refuse_idle(settings, judge=judge, checklist=requirements, generator=targets[0] if targets else None)
    is_recorded = source == RECORDED
    examples = load_examples(
        data,
        fields=settings.field,
        limit=settings.limit,
        need_output=False,
        labels=settings.labels,
        label_scale=settings.label_scale,
        remarks=is_recorded,
    )
    if settings.replay:
        examples = ExampleTable(map(with_record, examples))
    if is_recorded:
        _refuse_without_output(examples)
    binding = binding_of(examples, settings)
    how: dict[str, Any] = {"version": settings.generator_version, "timeout": settings.timeout}
    writers = [writer_of(each, **how) for each in targets]
    old = source if is_recorded else writer_of(source, **how)
    text, name = generator_prompt(prompt, binding, is_program=all(isinstance(each, Program) for each in writers))
    refuse_unused(settings.variable, [(text.form, text.placeholders)])
    by_name = _by_name(writers, old)
    schema = schema_beside(prompt) if schema is None else schema
    held_to = None if requirements is None else load_checklist(requirements)
    if held_to is not None:
        refuse_computed(held_to, "A requirement is kept or it is not", ["measures"])
        make_ready(held_to.checks)
        if held_to.asked and judge is None:
            raise InputError("There are questions among the requirements but no --judge to answer them.")
    judged = _judge(judge, kept, judge_prompt, examples)
    if second_judge is not None and judged is None:
        raise InputError("second_judge: no question is asked, as there is no --judge.")
    if second_judge is not None and judged is not None and model_name(second_judge) == model_name(judged.model):
        raise InputError("second_judge: it is the judge itself; name another model.")
    return WriterMigration(
        examples,
        text,
        old,
        by_name,
        judged,
        second_judge,
        held_to,
        with_schema(None, schema),
        None if checker is None else load_checker(checker),
        settings,
        name,
    ).with_splits()


def kind_of(
    prompt: str | Path | Prompt | None, checklist: object, kind: str | None, variables: Mapping[str, str]
) -> Literal["generator", "judge"]:
    """Say whether a prompt writes or judges. ``variables`` says what the prompt's variables stand for.

    A prompt judges if there is a checklist, if there is no prompt, or if a variable stands for the output. A prompt
    with other variables writes. Raises InputError if a prompt without variables leaves this open, or ``kind`` differs.
    """
    shows: list[str] = []
    if prompt is not None:
        read, _ = own_prompt(prompt)
        shows = [variables.get(name, name) for name in read.placeholders]
    found = "judge" if checklist is not None or prompt is None or "output" in shows else "generator" if shows else None
    if found is None and kind is None:
        raise InputError(
            "The prompt has no variables, so it is not known whether it writes or judges: say --kind generator or "
            "--kind judge, or give the --checklist of a judge."
        )
    if kind is not None and found is not None and kind != found:
        reason = (
            "there is a checklist"
            if checklist is not None
            else "there is no prompt"
            if prompt is None
            else ("it shows the output" if found == "judge" else "it does not show the output")
        )
        raise InputError(f"kind: this prompt is a {found}'s, as {reason}.")
    return cast('Literal["generator", "judge"]', kind or found)


def own_checks(own: Checklist | None) -> tuple[ComputedCheck, ...]:
    """Return the user's own schema as a requirement."""
    checks = () if own is None else own.checks
    return tuple(each.model_copy(update={"origin": "person"}) for each in checks if each.id == SCHEMA_CHECK)


def _kept(judge: str | Path | Model | KeptJudge | None) -> KeptJudge | None:
    """Load the judge of a run's directory or a file; None for a model or its name, and without a judge."""
    if isinstance(judge, str):
        path = Path(judge)
        judge = path if path.suffix in (".yaml", ".yml") or path.is_dir() else judge
    if not isinstance(judge, (Path, KeptJudge)):
        return None
    kept = load_judge(judge)
    if kept.settings.get("reads") is not None:
        raise InputError(
            "judge: this judge states a score in its own words, and requirements are questions with an answer each. "
            "Have questions written from its prompt (askance questions --from), or name a model."
        )
    return kept


def _judge(
    judge: str | Path | Model | KeptJudge | None,
    kept: KeptJudge | None,
    prompt: str | Path | Prompt | None,
    examples: Sequence[Example],
) -> OutputsJudge | None:
    if judge is None:
        if prompt is not None:
            raise InputError("judge_prompt: no judge is asked (--judge).")
        return None
    if kept is not None:
        if prompt is not None:
            raise InputError("judge_prompt: the judge brings its own prompt; leave one of the two out.")
        return OutputsJudge(kept.model, kept.prompt, kept.checklist)
    asked = default_prompt(examples) if prompt is None else load_prompt(prompt)
    assert not isinstance(judge, (Path, KeptJudge))
    return OutputsJudge(judge, asked, None)


def _refuse_without_output(examples: Sequence[Example]) -> None:
    missing = [each.id for each in examples if not (each.output or "").strip()]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise InputError(
            f"The example '{missing[0]}'{more} has no output, and with --source recorded the old model's outputs are "
            "taken from the data. Leave such rows out, or name the old model (--source provider/model)."
        )


def _by_name(writers: Sequence[str | Model], source: str | Model) -> dict[str, str | Model]:
    found: dict[str, str | Model] = {}
    if not writers:
        raise InputError("--target is needed: the model that the prompt moves to.")
    for writer in writers:
        name = model_name(writer)
        refuse_shared_folder(name, found)
        if name == model_name(source):
            raise InputError(f"target: '{name}' is the source too; name another model.")
        found[name] = writer
    return found


def refuse_shared_folder(name: str, others: Iterable[str]) -> None:
    """Refuse a target whose folder would be the same as another target's. Raises InputError."""
    same = next((other for other in others if target_folder(other) == target_folder(name)), None)
    if same is not None:
        said = "is given twice" if same == name else f"and '{same}' have the same folder in targets/"
        raise InputError(f"target: '{name}' {said}; give each target another name.")


def migration_inputs(migration: WriterMigration) -> dict[str, str]:
    """Return further inputs that the run's directory keeps, by the name of their file."""
    found = {}
    if migration.judge is not None and migration.judge.questions is not None:
        found["judge_questions.yaml"] = dump_checklist(migration.judge.questions)
    for check in own_checks(migration.own):
        found["schema.json"] = json.dumps(json.loads(str(check.value)), indent=2)
    return found


def read_migration(run: RunDirectory, options: Mapping[str, Any]) -> WriterMigration:
    """Read the migration in a directory, to resume it. ``options`` are changed limits of its cost. Raises InputError
    where a file is missing or damaged."""
    config = dict(run.read_config()["config"])
    examples, _, prompts = run.read_inputs()
    known = {name: value for name, value in config.items() if name in WriterMigrationOptions.model_fields}
    settings = parse_options(WriterMigrationOptions, known | dict(options), f"{run.path}/config.yaml", kept=True)
    writer_options: dict[str, Any] = {
        "version": settings.generator_version,
        "timeout": settings.timeout,
        "folder": run.began_in,
    }
    inputs = run.path / "inputs"
    questions, schema = inputs / "judge_questions.yaml", inputs / "schema.json"
    judge = None
    if config.get("judge") is not None:
        taught = load_checklist(questions, remarks=False) if questions.is_file() else None
        judge = OutputsJudge(config["judge"], prompts["judge_prompt"], taught)
    source = config["source"]
    return WriterMigration(
        examples,
        prompts["prompt"],
        source if source == RECORDED else writer_of(source, **writer_options),
        {name: writer_of(name, **writer_options) for name in config["targets"]},
        judge,
        config.get("second_judge"),
        None,
        with_schema(None, schema if schema.is_file() else None),
        None if config.get("checker") is None else load_checker(config["checker"], run.began_in),
        settings,
        config.get("prompt_name", "prompt"),
    )


def is_migration(run: RunDirectory) -> bool:
    """Whether a directory holds a migration of a prompt that writes."""
    return run.config_file.is_file() and run.read_config()["config"].get("kind") == "generator"
