"""Prepare the migration of a prompt that writes: the old outputs, and the requirements that a person agrees to.

The targets write development with the old prompt, so that the rules that they break are among the requirements. The
targets write nothing on validation or test before the requirements are fixed, and no output there is judged.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ...agents.checks import make_ready
from ...agents.generator import Generated, Generator
from ...agents.traces.replay import ReplayingGenerator
from ...memory.certificate_file import (
    REQUIREMENTS_FILE,
    PowerRecord,
)
from ...memory.embedders import DEFAULT_EMBEDDER, embedder
from ...memory.run_directory import RunDirectory
from ...models.budget import CAPS, together
from ...models.session import session
from ...prompts.checklist import Checklist, dump_checklist, found_in, load_checklist
from ...prompts.errors import CoverageError, InputError, UnapprovedError, as_typed
from ...prompts.examples import Example, documents
from ...prompts.formatting import count
from ..modes.generator import GeneratorSubject, OldVerdicts, OutputJudge
from ..options import TuneOptions, left_of_caps
from .asked_requirements import QuestionSource, with_contrast, with_questions, without_idle_contrast
from .certificate import Tested
from .decision import power_lines, power_said
from .inputs import WriterMigration, own_checks
from .recorded import RECORDED
from .requirements import broken_by_new, free_requirements, listed, with_support

if TYPE_CHECKING:
    from ...memory.verdict_store import Place
    from ...models.base import Model
    from ...models.gateway import Gateway
    from ...models.progress import Watcher
    from ...models.resolve import Models

REQUIREMENTS = "requirements"
"""Name of the first thing that a person agrees to. The lines of each target's new prompt have the target's name."""


@dataclass(frozen=True)
class Prepared:
    """A migration whose requirements are fixed."""

    migration: WriterMigration
    """The migration, with the old output in every example."""
    checklist: Checklist
    power: tuple[PowerRecord, ...]


class MigrationPart:
    """Opens models and gateway for each part of a migration, and adds up what all parts spend."""

    def __init__(self, migration: WriterMigration, run: RunDirectory, watcher: Watcher) -> None:
        """Nothing is opened yet."""
        self.migration, self.run, self.watcher = migration, run, watcher
        self.spent: dict[str, Any] = {"calls": 0, "cached_calls": 0, "tokens": 0, "cost_usd": 0.0}

    @property
    def options(self) -> Any:
        """The migration's settings, with what is left of its caps."""
        options, spent = self.migration.options, self.spent
        if spent["cost_usd"] is None:  # some calls have no known price
            spent = {**spent, "cost_usd": spent["known_usd"]}
        return options.model_copy(update=left_of_caps(options, spent))

    @asynccontextmanager
    async def open(self) -> AsyncIterator[tuple[Models, Gateway]]:
        """Open models and gateway over the answers of the run."""
        options = self.options
        with self.run.store(self.shared) as store:
            async with session(
                options, store, self.watcher.say, stored_answers_are_ours=True, brought=store.brought
            ) as (models, gateway):
                self.watcher.watch(gateway.budget)
                try:
                    yield models, gateway
                finally:
                    self.add(gateway.budget.to_dict())

    def add(self, spent: Mapping[str, Any]) -> None:
        """Count what a part has spent."""
        self.spent = together([self.spent, spent])

    @property
    def shared(self) -> Place | None:
        """The store that all commands share; None where answers stay in the run."""
        models = (self.migration.source, *self.migration.targets.values())
        apart = any(getattr(model, "answers_stay_in_the_run", False) for model in models)
        return None if apart else self.migration.options.shared

    def for_a_target(self) -> TuneOptions:
        """The settings of a target's run: what is left of the caps, and this run's answers if no store is shared."""
        names = (self.migration.options.model_fields_set | set(CAPS.values())) & TuneOptions.model_fields.keys()
        given = {name: getattr(self.options, name) for name in names}
        if self.shared is None:
            given |= {"store": self.run.path / "verdicts.db", "no_cache": False}
        return TuneOptions.model_validate(given)


async def prepared_migration(asking: MigrationPart, *, yes: bool, ask_first: bool) -> Prepared:
    """Get the old outputs and fix the requirements: these are written, judged on development, and agreed to."""
    migration, run, watcher = asking.migration, asking.run, asking.watcher
    options = migration.options
    size = len(migration.splits().test)
    limits: dict[str, Any] = {"max_loss": options.max_loss, "level": options.certificate_level}
    power = power_lines(size, **limits)
    watcher.say(power_said(power[0], options.max_loss))
    async with asking.open() as (models, gateway):
        migration = await _with_old_outputs(migration, run, watcher, models, gateway)
        development = migration.splits().development
        new = {name: await _written_by(asking, models, gateway, name, development) for name in migration.targets}
        checklist = fixed_requirements(run)
        is_fixed = checklist is not None
        if checklist is None:
            checklist = migration.requirements or await _found(asking, models, gateway, development, new)
        elif migration.requirements is not None and not _is_same(migration.requirements, checklist):
            raise InputError(
                f"{run.path}: the requirements of this migration are fixed, and others are given. Start another run to "
                "change them."
            )
        make_ready(checklist.checks)
        old = OldVerdicts()
        subject = outputs_subject(migration, checklist, models, gateway, watcher)
        watcher.phase(f"judging the old outputs of {count(len(development), 'example')}")
        await old.judge(subject, development)
        judged = {}
        for name, written in new.items():
            watcher.phase(f"judging the outputs of {name} on development")
            judged[name] = (await subject.look_at(written, migration.prompt.hash)).verdicts
        if not is_fixed:
            checklist = with_support(checklist, development, old.verdicts)
            if migration.requirements is None:
                checklist = without_idle_contrast(checklist, development, old.verdicts, judged)
            run.write(REQUIREMENTS_FILE, dump_checklist(checklist))
            if migration.requirements is None and not yes:
                _ask_for(run, checklist, ask_first=ask_first)
            run.write(f"inputs/{REQUIREMENTS_FILE}", dump_checklist(checklist))
        for name, verdicts in judged.items():
            differences = Tested.of(development, checklist, old.verdicts, None, verdicts).change.differences()
            measured = power_lines(size, development=differences, documents=documents(development), **limits)[1:]
            for line in measured:
                watcher.say(f"{name}: {power_said(line, options.max_loss)}")
            power = [*power, *measured]
    return Prepared(migration, checklist, tuple(power))


async def _with_old_outputs(
    migration: WriterMigration, run: RunDirectory, watcher: Watcher, models: Models, gateway: Gateway
) -> WriterMigration:
    """Return the migration with the old outputs in its examples; they are written where they are not recorded."""
    if migration.source != RECORDED:
        source = models.get(migration.source)
        writer = old_writer(migration, gateway, source)
        watcher.phase(f"{source.name} writes the old outputs", len(migration.examples))
        written = await writer.generate(migration.examples, watcher.advance)
        examples = [each.example for each in written if each.error is None]
        if len(examples) < migration.options.min_coverage * len(written):
            problem = next(each.error for each in written if each.error is not None)
            raise CoverageError(
                f"Only {len(examples)} of {count(len(written), 'old output')} could be written, less than "
                f"--min-coverage {migration.options.min_coverage:.1%}: {problem} To ask again: "
                f"askance resume {as_typed(run.path)}"
            )
        if len(examples) < len(written):
            watcher.say(f"{len(written) - len(examples)} old outputs could not be written; these examples are left out")
        migration = replace(migration, examples=examples)
    version = RECORDED if migration.source == RECORDED else migration.prompt.hash
    rows = (each.model_dump(mode="json", include={"id", "input", "output"}) for each in migration.examples)
    lines = (json.dumps({**row, "version": version}, ensure_ascii=False) + "\n" for row in rows)
    run.write("outputs.jsonl", "".join(lines))
    return migration


async def _written_by(
    asking: MigrationPart, models: Models, gateway: Gateway, name: str, examples: Sequence[Example]
) -> list[Generated]:
    asking.watcher.phase(f"{name} writes with the old prompt", len(examples))
    writer = old_writer(asking.migration, gateway, models.get(asking.migration.targets[name]))
    return await writer.generate(examples, asking.watcher.advance)


async def _found(
    asking: MigrationPart,
    models: Models,
    gateway: Gateway,
    development: Sequence[Example],
    new: Mapping[str, Sequence[Generated]],
) -> Checklist:
    migration, watcher = asking.migration, asking.watcher
    by_target = {name: [each.example for each in written if each.error is None] for name, written in new.items()}
    questions = None if migration.judge is None else migration.judge.questions
    found = free_requirements(
        migration.prompt, development, judge_questions=questions, checks=own_checks(migration.own)
    )
    found = broken_by_new(found, development, by_target)
    if migration.judge is not None:
        options = migration.options
        meanings = embedder(options.embedder or DEFAULT_EMBEDDER)
        model = models.get(migration.judge.model)
        source = QuestionSource(gateway, model, meanings, watcher, seed=options.seed, most=options.max_requirements)
        found = await with_questions(found, migration.prompt, development, source)
        found = await with_contrast(found, development, by_target, source)
    for remark in found.remarks:
        watcher.say(remark)
    return found.checklist


def _is_same(given: Checklist, fixed: Checklist) -> bool:
    """Whether two lists of requirements are the same, apart from the measured support."""
    one, other = ([each.model_copy(update={"support": None}) for each in side.questions] for side in (given, fixed))
    return one == other


def fixed_requirements(run: RunDirectory) -> Checklist | None:
    """Return the requirements that were agreed to; None where nobody has agreed yet."""
    file = run.path / "inputs" / REQUIREMENTS_FILE
    return found_in(load_checklist(file, remarks=False), run.began_in) if file.is_file() else None


def _ask_for(run: RunDirectory, checklist: Checklist, *, ask_first: bool) -> None:
    """Ask a person to agree to the requirements, by UnapprovedError; InputError where nobody can be asked."""
    file = run.path / REQUIREMENTS_FILE
    if ask_first:
        head = "Requirements: what it is, where from, old outputs that keep it, whether it counts"
        raise UnapprovedError("\n".join([head, *listed(checklist), f"\nThey are in {file}."]), what=REQUIREMENTS)
    raise InputError(
        f"{file}: read these {count(len(checklist.questions), 'requirement')} and change what is wrong, then give "
        f"--requirements {as_typed(file)}, or take them as they are with --yes. What was bought is kept."
    )


def old_writer(migration: WriterMigration, gateway: Gateway, model: Model) -> Generator:
    """Return a model that writes with the old prompt."""
    options = migration.options
    how = options.max_output_tokens, options.generator_temperature, options.seed
    kind = ReplayingGenerator if options.replay else Generator
    return kind(gateway, model, migration.prompt, *how, prompt_name=migration.prompt_name)


def outputs_subject(
    migration: WriterMigration, checklist: Checklist, models: Models, gateway: Gateway, watcher: Watcher
) -> GeneratorSubject:
    """Return the subject that judges given outputs; it writes none."""
    options, judge = migration.options, None
    if migration.judge is not None and checklist.asked:
        judge = OutputJudge(models.get(migration.judge.model), migration.judge.prompt, options.judging, options.soft)
    # the subject needs a writer, though it writes nothing
    any_writer = models.get(next(iter(migration.targets.values())))
    return GeneratorSubject(
        old_writer(migration, gateway, any_writer),
        judge,
        checklist,
        None,
        migration.checker,
        options.score_as,
        tally=lambda verdicts: None,  # the targets' runs count them
        say=watcher.say,
    )
