"""A further round of ``tune``: people's comments on its outputs teach the judge, and the note-taker reads them.

The new run begins with the prompt that the earlier run accepted. First its judge learns questions from people's labels
and comments, in a run of ``align`` in ``judge/`` of the new run's directory. Both runs share their answers. Every
output keeps the part that its input had, so no test example teaches the judge or the prompt.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..agents.traces.replay import with_record
from ..evaluation.judge_file import load_judge, prompt_of
from ..memory.run_directory import JUDGE_FOLDER, LABELLED_FILE, RunDirectory
from ..models.base import Model
from ..models.budget import CAPS
from ..models.programs import GeneratorFunction, Program
from ..models.progress import Watcher
from ..models.writing import WRITING_FILE
from ..prompts.errors import BudgetExceededError, InputError, as_typed
from ..prompts.examples import Example, ExampleTable, document_of, load_examples
from ..prompts.formatting import count
from ..prompts.text_files import read_text
from ..settings import flag, idle_settings
from .earlier import EarlierRound, earlier_round
from .events import Callback
from .job import Job, with_rest
from .loop import read_job, run_job
from .modes import align as alignment
from .modes.tune import OLD_OUTPUTS, without_paid
from .options import AlignOptions, TuneOptions
from .run_result import RunResult
from .splits import PARTS, SMALLEST_PART

INPUT_OF = "input_of"
"""Key in an output's metadata with the id of the input that it was written for."""
OF_DATA = ("field", "limit", "labels", "label_scale")
"""Settings for reading a file. They are not taken from the earlier run, whose examples were read already."""
_NOT_LEARNED_WITH = {*OF_DATA, "variable", "weights", "split", "memory", "paper", "notes", "update"}
"""Settings of ``tune`` that are not used when its judge learns."""


@dataclass(frozen=True)
class FurtherRound:
    """The inputs of a further round, checked."""

    job: Job
    """The run of ``tune``, with the judge before it learns."""
    learning: Job | None
    """The run of ``align`` in which the judge learns; None where the judge stays unchanged."""
    why_not: str | None
    """Why the judge stays unchanged; None where it learns."""
    own_judge: str | Model | None
    """A judge model given in place of the earlier run's; None: the same model."""

    @property
    def jobs(self) -> list[Job]:
        """The jobs of both runs, the judge's first."""
        return [self.job] if self.learning is None else [self.learning, self.job]


def prepare_round(
    data: str | Path | Iterable[Example | Mapping[str, Any]] | None,
    from_run: str | Path,
    generator: str | Model | GeneratorFunction | None,
    judge: str | Model | None,
    options: Mapping[str, Any],
) -> FurtherRound:
    """Load and check the inputs of a round after the finished run of ``tune`` in ``from_run``, whose outputs people
    labelled or commented on. Arguments replace the inputs of the earlier run. Raises InputError, which names the file,
    line and field at fault, if there is no such run, no output has a label or comment, or a setting is wrong."""
    directory = RunDirectory(from_run)
    config = directory.read_config()["config"]
    made_by = "migrate" if config.get(OLD_OUTPUTS) else config.get("command")
    if made_by != "tune":
        raise InputError(
            f"{directory.path}: this is a run of {made_by}; to go on from people's words, name one of tune."
        )
    result = directory.read_result()
    given = {name: each for name, each in (("generator", generator), ("judge", judge)) if each is not None}
    before = read_job(directory, options, given)
    earlier = earlier_round(directory, _labelled(directory, before))
    job = replace(
        before,
        examples=_told(_inputs(data, before, options), earlier.people),
        prompts={**before.prompts, "prompt": prompt_of(result.best, str(directory.path))},
        options=before.options.model_copy(update=_reading(options)),
        settings=_settings(directory, before),
        earlier=earlier,
    )
    why_not = _why_not(job, earlier)
    return FurtherRound(job, None if why_not else _learning(directory, job, earlier, judge), why_not, judge)


def run_round(
    found: FurtherRound,
    run: RunDirectory,
    watcher: Watcher,
    callbacks: Iterable[Callback] = (),
    report: Callable[[Path], object] | None = None,
    *,
    ask_first: bool = False,
) -> RunResult:
    """Have the judge learn, then improve the prompt, or go on with such a run. The result is returned whatever its
    coverage. Raises the errors of :func:`~askance.optimizer.loop.run_job`, and BudgetExceededError if a cap was reached
    while the judge learned."""
    job = found.job
    with run.lock():
        if found.why_not:
            watcher.say(found.why_not)
        if found.learning is not None:
            done = _learned(found.learning, job, run, watcher, callbacks, report)
            job = _judged_by(done.directory, job, found.own_judge)
            job = with_rest(job, done.record)
        return run_job(job, run, watcher, callbacks, report, ask_first=ask_first)


def _labelled(directory: RunDirectory, job: Job) -> list[Example]:
    """Return a run's outputs with a label or comment. Each gets an id with its version, and the id and the document of
    its input. Raises InputError if there is no such output, or an output of no example of the run."""
    file = directory.path / LABELLED_FILE
    if not file.is_file():
        raise InputError(
            f"{directory.path}: nobody has said anything of this run's outputs yet: askance label "
            f"{as_typed(directory.path)}"
        )
    known = {example.id: example for example in job.examples}
    found = []
    for example in load_examples(file, remarks=False):
        if example.id not in known:
            raise InputError(f"{file}: '{example.id}' is no example of this run.")
        if example.human or example.comment:
            name = f"{example.id}@{example.metadata.get('version', directory.path.name)}"
            further = {INPUT_OF: example.id, "document": document_of(known[example.id])}
            found.append(example.model_copy(update={"id": name, "metadata": {**example.metadata, **further}}))
    if not found:
        raise InputError(f"{file}: no output in it has a label or a comment.")
    return found


def _inputs(
    data: str | Path | Iterable[Example | Mapping[str, Any]] | None, before: Job, options: Mapping[str, Any]
) -> Sequence[Example]:
    if data is None:
        return before.examples
    reading: dict[str, Any] = {name: options.get(name) for name in ("limit", "labels", "label_scale")}
    examples = load_examples(data, fields=options.get("field"), need_output=False, **reading)
    return ExampleTable(map(with_record, examples)) if before.options_as(TuneOptions).replay else examples


def _reading(options: Mapping[str, Any]) -> dict[str, Any]:
    fields = TuneOptions.model_fields
    return {name: options.get(name, fields[name].get_default(call_default_factory=True)) for name in OF_DATA}


def _told(examples: Sequence[Example], people: Sequence[Example]) -> list[Example]:
    """Return the inputs, each with its last commented output and the comments on it."""
    said = {
        each.metadata[INPUT_OF]: {"output": each.output, "comment": each.comment} for each in people if each.comment
    }
    return [each.model_copy(update=said.get(each.id, {})) for each in examples]


def _settings(directory: RunDirectory, job: Job) -> dict[str, str]:
    """Return the text inputs of the new run: accepted writing settings, and the present version of a program."""
    settings = {name: each for name, each in job.settings.items() if name not in ("writing", "program")}
    if (file := directory.path / WRITING_FILE).is_file():
        settings["writing"] = read_text(file)
    if isinstance(writer := job.models["generator"], Program):
        settings["program"] = writer.version
    return settings


def _why_not(job: Job, earlier: EarlierRound) -> str | None:
    """Return why the judge stays unchanged; None where it can learn."""
    if "judge" not in job.models or job.checklist is None or not job.checklist.asked:
        return (
            "no judge with a checklist looks at the outputs, so people's comments are told to the note-taker alone, and "
            "their labels teach nobody"
        )
    parts = earlier.parts(earlier.people)
    labelled = [each for each in earlier.people if each.human]
    counts = Counter(parts[each.id] for each in labelled)
    if few := [part for part in PARTS if counts[part] < SMALLEST_PART]:
        return (
            f"the judge stays as it is: {count(len(labelled), 'output')} of all rounds {'has' if len(labelled) == 1 else 'have'} "
            f"a label, and of the {few[0]} part {counts[few[0]]}; it learns from {SMALLEST_PART} in each part on"
        )
    if len({tuple(sorted(each.human.items())) for each in labelled}) == 1:
        return "the judge stays as it is: people said the same of every output"
    return None


def _learning(directory: RunDirectory, job: Job, earlier: EarlierRound, judge: str | Model | None) -> Job:
    """Return the run in which the judge learns. If it learned in the earlier round, the run goes on from that judge."""
    parts = earlier.parts(earlier.people)
    people = [
        each.model_copy(update={"metadata": {**each.metadata, "split": parts[each.id]}}) for each in earlier.people
    ]
    options, folder = _judge_settings(job.options_as(TuneOptions)), directory.path / JUDGE_FOLDER
    if RunDirectory(folder).finished:
        return alignment.prepare(people, None, judge, None, options, folder)
    asked = job.models["judge"] if judge is None else judge
    return alignment.prepare(people, job.checklist, asked, job.prompts["judge_prompt"], options)


def _judge_settings(options: TuneOptions) -> dict[str, Any]:
    """Return the settings of ``tune`` that differ from their default and that a judge uses to learn questions."""
    shared = TuneOptions.model_fields.keys() & AlignOptions.model_fields.keys() - _NOT_LEARNED_WITH
    fields = TuneOptions.model_fields
    default = {name: fields[name].get_default(call_default_factory=True) for name in shared}
    given = {name: getattr(options, name) for name in shared if getattr(options, name) != default[name]}
    # Labels of whole outputs tell little about a single requirement, so no question of the start is left out. No
    # measure joins, because a generator is tuned against this judge and exploits numbers first.
    given |= {"update": "questions", "keep_questions": True, "measures": "none"}
    idle = idle_settings(AlignOptions, given)
    return {name: value for name, value in given.items() if name not in idle}


def _learned(
    learning: Job,
    job: Job,
    run: RunDirectory,
    watcher: Watcher,
    callbacks: Iterable[Callback],
    report: Callable[[Path], object] | None,
) -> RunResult:
    """Run the judge's learning, with the answers of the new run and of the earlier one in its store."""
    judge_run = RunDirectory(run.path / JUDGE_FOLDER)
    began = judge_run.config_file.is_file()
    if run.config_file.is_file() and not began:
        raise InputError(f"{run.path} holds another run. Choose another --run directory.")
    answers = None if job.earlier is None or job.options.no_cache else job.earlier.answers
    if answers is not None and not began:
        with run.store() as store:
            store.bring(answers)
    watcher.say(f"the judge learns from what people said; its run is in {judge_run.path}")
    of_all = learning.options.shared if learning.may_share else None
    done = run_job(learning, judge_run, watcher, callbacks, report, common=lambda: run.store(of_all))
    if done.finish_reason in CAPS:
        raise BudgetExceededError(
            done.finish_reason,
            "A budget ended the run while the judge learned; what was bought is kept. To go on, give the same command "
            f"with {flag(CAPS[done.finish_reason])} MORE.",
        )
    return done


def _judged_by(judge: Path, job: Job, own: str | Model | None) -> Job:
    kept = load_judge(judge)
    settings: dict[str, Any] = {name: each for name, each in kept.settings.items() if name in TuneOptions.model_fields}
    if kept.named is not None:
        settings["models"] = {**job.options.models, kept.model: kept.named}
    return replace(
        job,
        checklist=without_paid(kept.checklist, job.examples),
        prompts={**job.prompts, "judge_prompt": kept.prompt},
        models={**job.models, "judge": kept.model if own is None else own},
        options=job.options.model_copy(update=settings),
    )
