"""``train``: a scorer of one's own from verdicts, ratings and preferences (LMUnit §3.2, §3.3)."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..evaluation.options import parse_options
from ..evaluation.progress import watching
from ..models.files import sha256_of_file
from ..models.trained.network import start_network
from ..models.trained.scorer_file import SCORER_FILE, WEIGHTS_FILE, ScorerFile
from ..optimizer.earlier import earlier_run
from ..optimizer.weights.judged_pairs import load_pairs
from ..prompts.checklist import load_checklist
from ..prompts.errors import AskanceError, InputError
from ..prompts.examples import load_examples
from ..prompts.rows import read_object, write_whole
from ..prompts.verdicts import VerdictColumns, read_verdicts
from .contrasts import buy_contrasts
from .measured import ScorerReader, calibration_figures, figures_on_test, fit_calibration, price, speed, verdicts_of
from .mixture import PARTS, check_lengths, divided, gather, groups_of
from .options import NOT_IN_FINGERPRINT, TrainOptions
from .trained import RESULT_FILE, SCHEMA, TrainResult
from .trainer import Trainer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ..evaluation.progress import Watcher
    from ..models.base import Model
    from ..models.trained.network import Network
    from ..prompts.checklist import Checklist
    from ..prompts.examples import Example
    from ..prompts.preferences import Preference
    from .mixture import Mixture
    from .trainer import LossCurve

CHECKPOINTS = "checkpoints"
"""Folder within the scorer's, gone when it is done."""
DEFAULT_BASE = "minilm"
ROOM = 6
"""Times the network's size that must be free: checkpoint, its optimiser, the best weights, each while it is replaced."""


def train(
    data: str | Path | Iterable[Example | Mapping[str, Any]] | Sequence[str | Path],
    *,
    checklist: str | Path | Checklist,
    output: str | Path,
    base: str = DEFAULT_BASE,
    verdicts: str | Path | Iterable[Any] | None = None,
    preferences: str | Path | Iterable[Mapping[str, Any]] | None = None,
    judge: str | Path | None = None,
    writer: str | Model | None = None,
    judge_model: str | Model | None = None,
    watcher: Watcher | None = None,
    progress: bool | None = None,
    **options: Any,
) -> TrainResult:
    """Train a scorer and look at test once.

    Args:
        data: Files of examples, or examples.
        checklist: The questions that the scorer is to answer.
        output: The scorer's folder. One where the same training was broken off is gone on with.
        base: ``minilm``, a folder, or a name on the hub.
        verdicts: File of ``askance evaluate -o``, or verdicts: of one judge, the teacher.
        preferences: Pairs of outputs.
        judge: A run of ``align`` or ``migrate`` whose test examples are not to be trained on; its parts are kept.
        writer: Model that writes outputs to tell apart, for ``contrasts``.
        judge_model: Model that sees whether they came out as meant; by default the teacher, without one the writer.
        watcher: Told how the work goes on.
        progress: Show how the work goes on; by default in notebooks only.
        options: Settings of :class:`~.options.TrainOptions`.

    Raises:
        InputError: Bad data or settings, too little or nothing to learn, a base that is not there, or a folder with
            something else in it; names file, line and field.
        BudgetExceededError: A cap on what is bought was reached; the answers so far are kept.
        AskanceError: The disk is full, or a model that is asked is down.
        MissingExtraError: torch or transformers is not installed.
    """
    with watching(watcher, progress) as shown:
        job = prepare(data, checklist, output, base, verdicts, preferences, judge, writer, judge_model, options, shown)
        return job.run(shown)


def prepare(
    data: Any,
    checklist: str | Path | Checklist,
    output: str | Path,
    base: str,
    verdicts: str | Path | Iterable[Any] | None,
    preferences: Any,
    judge: str | Path | None,
    writer: str | Model | None,
    judge_model: str | Model | None,
    options: Mapping[str, Any],
    watcher: Watcher,
) -> TrainJob:
    """Load and check what :func:`train` is given, and have its contrasts written; what is raised is as there."""
    settings = parse_options(TrainOptions, options)
    if (writer is not None) != bool(settings.contrasts):
        raise InputError("--contrasts says how much the --writer is to write: give both, or neither.")
    if judge_model is not None and not settings.contrasts:
        raise InputError("--judge-model judges what a --writer writes: give --writer and --contrasts, or leave it out.")
    questions = load_checklist(checklist)
    examples = _load_all(data, settings)
    pairs = [] if preferences is None else load_pairs(preferences, seed=settings.seed)
    taught = _load_verdicts(verdicts, examples, questions)
    earlier = None if judge is None else earlier_run(judge)
    contrasts = None
    if writer is not None:
        _, part_of, _ = divided(examples, pairs, earlier, settings)
        by = judge_model or (taught[0].model if taught else writer)
        try:
            contrasts = buy_contrasts(examples, questions, part_of, writer, by, settings, watcher)
        except InputError as error:
            if judge_model is None and taught and str(by) in str(error):
                raise InputError(
                    f"{error} It is the teacher of --verdicts; --judge-model names another judge."
                ) from None
            raise
    mixture = gather(
        examples,
        questions,
        verdicts=taught,
        preferences=pairs,
        earlier=earlier,
        options=settings,
        further=contrasts.items if contrasts else (),
    )
    found = contrasts.found if contrasts else None
    return TrainJob(examples, questions, pairs, taught, mixture, found, Path(output), base, settings)


@dataclass(frozen=True)
class TrainJob:
    """What is to be trained, checked."""

    examples: Sequence[Example]
    checklist: Checklist
    preferences: Sequence[Preference]
    teacher: VerdictColumns | None
    mixture: Mixture
    contrasts: Mapping[str, Any] | None
    """What became of the outputs that a model wrote."""
    output: Path
    base: str
    settings: TrainOptions

    @cached_property
    def fingerprint(self) -> str:
        """What the weights depend on: data, base and settings."""
        settings = self.settings.model_dump_json(exclude=set(NOT_IN_FINGERPRINT))
        items = [repr(each) for part in PARTS for each in self.mixture.part(part)]
        return sha256(json.dumps([self.base, settings, items]).encode("utf-8", "surrogatepass")).hexdigest()

    def run(self, watcher: Watcher | None = None, progress: bool | None = None) -> TrainResult:
        """Train, measure and write; a training that is finished already is read."""
        if (done := self._finished()) is not None:
            return done
        settings, mixture = self.settings, self.mixture
        with watching(watcher, progress) as shown:
            shown.phase("loading the base")
            network = start_network(self.base, levels=settings.levels, longest=settings.longest, seed=settings.seed)
            cut, most = check_lengths(mixture, network)
            remarks = [*mixture.remarks, *([_cut(cut, most, network.longest)] if cut else [])]
            for each in remarks:
                shown.say(f"Note: {each}.")
            _check_room(self.output, network)
            groups = groups_of(self.examples, self.preferences)
            tested = self._tested(groups)
            base = verdicts_of(ScorerReader(network), tested, self.checklist)
            folder = self.output / CHECKPOINTS
            trainer = Trainer(network, mixture.training, mixture.validation, groups, settings, folder, self.fingerprint)
            curve = trainer.run(shown)
            shown.phase("looking at test")
            result = self._measured(network, curve, tested, base, remarks, {"share": cut, "longest": most})
        write_whole(self.output / RESULT_FILE, json.dumps(result.data, ensure_ascii=False, indent=1) + "\n")
        shutil.rmtree(folder, ignore_errors=True)
        return result

    def _tested(self, groups: Mapping[str, str]) -> list[Example]:
        """The test examples; those that must not be divided are one document."""
        return [
            each.model_copy(update={"metadata": {**each.metadata, "document": groups[each.id]}})
            for each in self.examples
            if self.mixture.part_of[each.id] == "test"
        ]

    def _measured(
        self,
        network: Network,
        curve: LossCurve,
        tested: Sequence[Example],
        base: VerdictColumns,
        remarks: Sequence[str],
        cut: Mapping[str, float],
    ) -> TrainResult:
        """The scorer written down, with what it is worth on test."""
        settings, mixture = self.settings, self.mixture
        reader = ScorerReader(network)
        slope, shift, why = fit_calibration(reader, mixture.validation)
        network.save(self.output)
        file = ScorerFile(
            kind="cross-encoder",
            base=self.base,
            levels=settings.levels,
            longest=network.longest,
            slope=slope,
            shift=shift,
            weights=sha256_of_file(self.output / WEIGHTS_FILE),
            questions=tuple(each.id for each in self.checklist.questions),
        )
        file.write(self.output)
        figures = figures_on_test(reader, file, tested, mixture.test, self.checklist, self.teacher, base, settings)
        calibration = calibration_figures(reader, mixture.test, file)
        calibration |= {"slope": slope, "shift": shift} | ({"reason": why} if why else {})
        took = speed(network, [text for each in mixture.test for text in each.texts])
        return TrainResult(
            {
                "schema": SCHEMA,
                "scorer": str(self.output),
                "base": self.base,
                "fingerprint": self.fingerprint,
                "options": settings.model_dump(mode="json"),
                "mixture": mixture.to_dict() | ({"contrasts": dict(self.contrasts)} if self.contrasts else {}),
                "cut": dict(cut),
                "remarks": list(remarks),
                "curve": curve.to_dict(),
                "test": figures,
                "calibration": calibration,
                "speed": took,
                "price": price(curve.cpu_seconds, took["cpu_ms"], settings),
            }
        )

    def _finished(self) -> TrainResult | None:
        """The result of this very training, if it is there.

        Raises:
            InputError: The folder holds another scorer or something else.
        """
        place = self.output
        if (place / RESULT_FILE).is_file():
            found = read_object(place / RESULT_FILE, "record of a training")
            if found.get("fingerprint") == self.fingerprint and (place / SCORER_FILE).is_file():
                counted = price(found["curve"]["cpu_seconds"], found["speed"]["cpu_ms"], self.settings)
                return TrainResult(found | {"price": counted})
            raise InputError(
                f"{place}: there is a scorer of other data or settings. Choose another -o, or delete the folder."
            )
        broken_off = (place / CHECKPOINTS).is_dir()
        if place.is_file() or (place.is_dir() and not broken_off and any(place.iterdir())):
            raise InputError(f"{place}: there is something else here. Choose another folder for the scorer (-o).")
        return None


def _load_all(data: Any, settings: TrainOptions) -> list[Example]:
    """Examples of one source or of several files; ids are unique over all of them."""
    several = isinstance(data, (list, tuple)) and data and all(isinstance(each, (str, Path)) for each in data)
    examples: list[Example] = []
    seen: dict[str, object] = {}
    for source in data if several else [data]:
        for each in load_examples(source, fields=settings.field, labels=settings.labels):
            if each.id in seen:
                raise InputError(f"{source}: the id '{each.id}' was used before, in {seen[each.id]}.")
            seen[each.id] = source
            examples.append(each)
    return examples[: settings.limit]


def _load_verdicts(
    verdicts: str | Path | Iterable[Any] | None, examples: Sequence[Example], checklist: Checklist
) -> VerdictColumns | None:
    """The teacher's verdicts.

    Raises:
        InputError: One is about no example or question there is, or they are of several judges.
    """
    if verdicts is None:
        return None
    ids, asked = {each.id for each in examples}, {each.id for each in checklist.questions}
    is_file = isinstance(verdicts, (str, Path))
    found = read_verdicts(verdicts, examples=ids, questions=asked) if is_file else VerdictColumns.of(verdicts)  # type: ignore[arg-type]
    for each in found:
        if each.example not in ids or each.question not in asked:
            raise InputError(
                f"There is a verdict on '{each.example}' and '{each.question}', which are not in data and checklist."
            )
    judges = {(each.model, each.prompt) for each in found}
    if len(judges) > 1:
        names = ", ".join(sorted({model for model, _ in judges}))
        raise InputError(
            f"The verdicts are of {len(judges)} judges (models and prompts; {names}); a scorer learns from one teacher."
        )
    return found


def _cut(share: float, most: int, longest: int) -> str:
    return (
        f"{share:.1%} of the texts are longer than the {longest} tokens that the scorer reads (the longest has {most}); their "
        "ends are cut off (--longest)"
    )


def _check_room(place: Path, network: Network) -> None:
    """See that the disk has room for what training writes."""
    there = next(each for each in (place.absolute(), *place.absolute().parents) if each.exists())
    need = ROOM * sum(each.numel() * each.element_size() for each in network.state().values())
    free = shutil.disk_usage(there).free
    if free < need:
        raise AskanceError(
            f"{place}: training needs {need / 1e9:.1f} GB on this disk for its checkpoints; {free / 1e9:.1f} GB are free."
        )
