"""``generate``: write the outputs of a data set, as ``tune`` does."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from ..agents.checks import computed_verdicts
from ..agents.generator import Generated, Generator
from ..agents.traces.replay import ReplayingGenerator, replay_counts, replay_said
from ..models.event_loops import awaited, run_sync
from ..models.named import ModelLike, named_models
from ..models.programs import GeneratorFunction, Program, writer_of
from ..models.progress import watching
from ..models.session import session
from ..models.writing import AS_THE_RUN, WRITING_FILE, PromptSettings, version_of, writing_beside
from ..prompts.checklist import ComputedCheck, with_schema
from ..prompts.examples import Example, load_examples
from ..prompts.formats.binding import binding_of, refuse_unused
from ..prompts.formats.several import PromptsOfProgram, generator_prompt
from ..prompts.prompt import Prompt
from ..prompts.text_files import write_whole
from ..setting_types import GenerateSettings
from ..settings import parse_options, refuse_idle
from .options import GenerateOptions, WritingOptions

if TYPE_CHECKING:
    from ..agents.buying import Estimate
    from ..models.base import AnswerStore, Model
    from ..models.budget import Budget
    from ..models.gateway import Gateway
    from ..models.progress import Watcher
    from ..models.resolve import Models

logger = logging.getLogger(__name__)
_KEPT = ("id", "input", "context", "reference", "output", "metadata")
"""Fields of an example that are kept beside its new output; people's scores and comments were about another output."""


@dataclass(frozen=True)
class Outputs:
    """The outputs of the examples, as they were written."""

    written: Sequence[Generated]
    """Outputs in the order of the data; the missing ones have an error."""
    version: str
    """Content hash of the prompt, and of the settings that go with it."""
    budget: Budget
    schema: ComputedCheck | None = None
    """Check that outputs follow their schema, if they have one."""

    @property
    def share(self) -> float:
        """Share of the examples that have an output."""
        return sum(each.error is None for each in self.written) / max(len(self.written), 1)

    @property
    def follow_schema(self) -> int | None:
        """Number of outputs that follow the schema; None without one."""
        if self.schema is None:
            return None
        there = [each.example for each in self.written if each.error is None]
        return sum(bool(each.answer) for each in computed_verdicts([self.schema], there, self.version))

    def rows(self) -> list[dict[str, Any]]:
        """The outputs as examples, with the ``version`` of the prompt; examples without an output are left out."""
        found = []
        for each in (one for one in self.written if one.error is None):
            row = each.example.model_dump(include=set(_KEPT), exclude_none=True)
            metadata = {"metadata": row.pop("metadata")} if row.get("metadata") else row.pop("metadata", {})
            found.append({**row, **metadata, "version": self.version})
        return found

    def save(self, path: str | Path) -> None:
        """Write the rows as JSONL. Raises AskanceError where it cannot be written."""
        write_whole(path, self.to_jsonl())

    def to_jsonl(self) -> str:
        """The rows, one a line."""
        return "".join(json.dumps(row, ensure_ascii=False, default=str) + "\n" for row in self.rows())

    def to_dict(self) -> dict[str, Any]:
        """Everything but the outputs, for ``--json``."""
        there = sum(each.error is None for each in self.written)
        followed = {} if self.schema is None else {"follow_schema": self.follow_schema}
        counts = {"asked": len(self.written), "written": there, "share": self.share, **followed}
        replayed = replay_counts(self.written)
        replay = {} if replayed is None else {"replay": replayed}
        return {"version": self.version, **counts, **replay, **self.budget.to_dict()}


def generate(
    data: str | Path | Iterable[Example | Mapping[str, Any]],
    *,
    generator: ModelLike | GeneratorFunction,
    prompt: PromptsOfProgram,
    schema: str | Path | Mapping[str, Any] | None = None,
    watcher: Watcher | None = None,
    progress: bool | None = None,
    **options: Unpack[GenerateSettings],
) -> Outputs:
    """Have the outputs of examples written.

    Args:
        data: JSONL or CSV file, or rows; outputs in it are not used.
        generator: The model that writes, or a program of your own: a function that takes an example and the prompts by
            name, or ``file.py:function``, ``command:…``, ``url:…``.
        prompt: The generator's prompt; for a program also several, as files or by name.
        schema: JSON schema, or its file, that is sent to a model whose endpoint takes it.
        watcher: Told how the work goes on.
        progress: Show how the work goes on; by default in notebooks only.
        options: Settings of :class:`~askance.evaluation.options.GenerateOptions`.

    Raises:
        InputError: Bad data, prompt, schema, name of a model or program, or setting.
        BudgetExceededError: A cap was reached; the outputs so far are kept in the store.
        AskanceError: The endpoint is down or refuses every call.
    """
    writes, given = named_models(options, generator)
    return prepare(data, writes, prompt, given, schema).run(watcher, progress)


agenerate = awaited(generate)


def prepare(
    data: str | Path | Iterable[Example | Mapping[str, Any]],
    generator: str | Model | GeneratorFunction,
    prompt: PromptsOfProgram,
    options: Mapping[str, Any],
    schema: str | Path | Mapping[str, Any] | None = None,
) -> GenerationJob:
    """Load and check the arguments of :func:`generate`; nothing is bought. InputError names the file, line and field at
    fault."""
    settings = parse_options(GenerateOptions, options)
    refuse_idle(settings, generator=generator)
    examples = load_examples(data, fields=settings.field, limit=settings.limit, need_output=False, remarks=False)
    writer = writer_of(generator, version=settings.generator_version, timeout=settings.timeout)
    is_program = isinstance(writer, Program)
    text, name = generator_prompt(prompt, binding_of(examples, settings), is_program=is_program)
    refuse_unused(settings.variable, [(text.form, text.placeholders)])
    checklist = with_schema(None, schema)
    check = None if checklist is None else checklist.checks[0]
    writing = AS_THE_RUN if is_program else writing_for(prompt, settings, schema)
    return GenerationJob(examples, text, name, writer, check, settings, writing)


def writing_for(prompt: object, settings: WritingOptions, schema: object = None) -> PromptSettings:
    """Return the settings that a run left beside its prompt, without those that are given now, and log them.

    Raises:
        InputError: Their file is damaged.
    """
    writing, given = writing_beside(prompt) or AS_THE_RUN, settings.model_fields_set
    own = {"max_output_tokens": "max_output_tokens", "generator_temperature": "temperature"}
    now = {name for option, name in own.items() if option in given} | ({"schema"} if schema is not None else set())
    writing = PromptSettings.model_validate({name: each for name, each in writing.stated.items() if name not in now})
    if writing.said:
        logger.warning("%s lies beside the prompt and is used: %s.", WRITING_FILE, writing.said)
    return writing


@dataclass(frozen=True)
class GenerationJob:
    """The inputs of ``generate``, checked."""

    examples: Sequence[Example]
    prompt: Prompt
    name: str
    """Name under which a program gets the prompt."""
    generator: str | Model
    schema: ComputedCheck | None
    settings: GenerateOptions
    writing: PromptSettings = AS_THE_RUN
    """Settings that lay beside the prompt, without those that were given."""

    def estimate(self) -> Estimate:
        """Estimate of what :meth:`run` would buy; nothing is bought."""

        async def estimate(store: AnswerStore) -> Estimate:
            async with session(self.settings, store) as (models, gateway):
                return self._writer(models, gateway).estimate(self.examples)

        with self.settings.open_store(to_estimate=True) as store:
            return run_sync(estimate(store))

    def run(self, watcher: Watcher | None = None, progress: bool | None = None) -> Outputs:
        """Have the outputs written. Raises the same errors as :func:`generate`."""

        async def write(store: AnswerStore, watcher: Watcher) -> Outputs:
            async with session(self.settings, store, watcher.say) as (models, gateway):
                watcher.watch(gateway.budget)
                writer = self._writer(models, gateway)
                watcher.phase(f"asking {writer.model.name}", len(self.examples))
                written = await writer.generate(self.examples, watcher.advance)
                for said in (*writer.refused, *replay_said(written)):
                    watcher.say(said)
                version = version_of(self.prompt.hash, self.writing)
                return Outputs(written, version, gateway.budget, self.schema)

        with watching(watcher, progress) as shown, self.settings.open_store() as store:
            return run_sync(write(store, shown))

    def _writer(self, models: Models, gateway: Gateway) -> Generator:
        options = self.settings
        sampling = options.max_output_tokens, options.generator_temperature, options.seed
        schema = None if self.schema is None else json.loads(self.schema.value or "")
        model = models.get(self.generator)
        if self.writing.thinking is not None:
            model = models.with_thinking(self.generator, self.writing.thinking)
        kind = ReplayingGenerator if options.replay else Generator
        return kind(gateway, model, self.prompt, *sampling, prompt_name=self.name, schema=schema, writing=self.writing)
