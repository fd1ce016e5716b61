"""``train``: a scorer of one's own from verdicts, ratings, preferences and rationales (LMUnit §3.2 to §3.4)."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, cast

from ..evaluation.progress import watching
from ..memory.run_directory import JUDGE_FILE
from ..models.files import sha256_of_file
from ..models.named import ModelLike, named_models
from ..models.trained.bases import find_base
from ..models.trained.network import open_network, scored_text, start_network
from ..models.trained.scorer_file import GGUF_FILE, ONNX_FILE, SCORER_FILE, WEIGHTS_FILES, ScorerFile, read_scorer
from ..optimizer.earlier import Earlier, earlier_run
from ..optimizer.weights.judged_pairs import load_pairs
from ..prompts.checklist import load_checklist
from ..prompts.errors import AskanceError, InputError
from ..prompts.examples import human_dimensions
from ..prompts.prompt import default_prompt, load_prompt
from ..prompts.text_files import read_object, write_whole
from ..setting_types import TrainSettings
from ..settings import parse_options
from .contrasts import buy_contrasts
from .gguf_file import write_gguf
from .inputs import check_goes_with, load_all, load_teacher
from .items import asked_with
from .measured import ScorerReader, calibration_figures, figures_on_test, fit_calibration, price, speed, verdicts_of
from .mixture import PARTS, check_lengths, divided, gather, groups_of
from .objectives import ScoreObjective
from .onnx_file import has_onnx, write_onnx
from .options import NOT_IN_FINGERPRINT, RATIONALE_SETTINGS, TrainOptions
from .rationales import RATIONALES_FILE, Writing, buy_rationales, draw_pairs, prefer, rationale_cases
from .scorer_judge import scorer_judge
from .trained import RESULT_FILE, SCHEMA, WITHOUT_DPO, TrainResult, dpo_left_out
from .trainer import Trainer
from .trust import NOT_KEPT, compared, people_alone, rated_validation

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ..evaluation.progress import Watcher
    from ..models.base import Model
    from ..models.trained.bases import Base
    from ..models.trained.causal import CausalNetwork
    from ..models.trained.encoders import SharedEncoder
    from ..models.trained.network import Network
    from ..prompts.checklist import Checklist
    from ..prompts.examples import Example
    from ..prompts.preferences import Preference
    from ..prompts.prompt import Prompt
    from ..prompts.verdicts import VerdictColumns
    from .items import TextOf
    from .mixture import Mixture
    from .trainer import LossCurve

CHECKPOINTS, DPO, PEOPLE = "checkpoints", "dpo", "people"
"""Folder within the scorer's, gone when it is done, and those in it of the training on rationales and of that on people's scores alone."""
DEFAULT_BASE = "minilm"
PROMPT_FILE = "prompt.md"
ROOM = 6
"""Times the network's size that must be free: checkpoint, its optimiser, the best weights, each while it is replaced."""


def train(
    data: str | Path | Iterable[Example | Mapping[str, Any]] | Sequence[str | Path],
    *,
    checklist: str | Path | Checklist | None = None,
    output: str | Path,
    base: str = DEFAULT_BASE,
    prompt: str | Path | Prompt | None = None,
    verdicts: str | Path | Iterable[Any] | None = None,
    preferences: str | Path | Iterable[Mapping[str, Any]] | None = None,
    judge: str | Path | None = None,
    writer: ModelLike | None = None,
    judge_model: ModelLike | None = None,
    watcher: Watcher | None = None,
    progress: bool | None = None,
    **options: Unpack[TrainSettings],
) -> TrainResult:
    """Train a scorer and look at test once.

    Args:
        data: Files of examples, or examples.
        checklist: The questions that the scorer is to answer; by default those of ``judge``.
        output: The scorer's folder. One where the same training was broken off is gone on with.
        base: ``minilm``, an embedded model, a GGUF file, a folder, or a name on the hub.
        prompt: Of a causal base: the judge's prompt that it is to answer; by default askance's own for such data.
        verdicts: File of ``askance evaluate -o``, or verdicts: of one judge, the teacher.
        preferences: Pairs of outputs.
        judge: A run of ``align`` or ``migrate`` whose test examples are not to be trained on; its parts are kept.
        writer: Model that writes outputs to tell apart, for ``contrasts``, or rationales, with ``rationales_from``.
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
    by, sees, given = named_models(options, writer, judge_model)
    with watching(watcher, progress) as shown:
        job = prepare(data, checklist, output, base, prompt, verdicts, preferences, judge, by, sees, given, shown)
        return job.run(shown)


def prepare(
    data: Any,
    checklist: str | Path | Checklist | None,
    output: str | Path,
    base: str,
    prompt: str | Path | Prompt | None,
    verdicts: str | Path | Iterable[Any] | None,
    preferences: Any,
    judge: str | Path | None,
    writer: str | Model | None,
    judge_model: str | Model | None,
    options: Mapping[str, Any],
    watcher: Watcher,
) -> TrainJob:
    """Load and check what :func:`train` is given, and have written what a model is to write; what is raised is as there."""
    settings = parse_options(TrainOptions, options)
    found = find_base(base)
    check_goes_with(found, prompt, settings)
    writes_why = bool(settings.rationales) and settings.rationales_from == "writer"
    if (writer is not None) != (bool(settings.contrasts) or writes_why):
        raise InputError(
            "--contrasts says how much the --writer is to write: give both, or neither."
            if not settings.rationales
            else "--writer writes outputs (--contrasts) or rationales (--rationales-from writer): give it with one of them, or "
            "leave all out."
        )
    if judge_model is not None and not settings.contrasts:
        raise InputError("--judge-model judges what a --writer writes: give --writer and --contrasts, or leave it out.")
    earlier = None if judge is None else earlier_run(judge)
    questions = asked_of(checklist, earlier)
    whole = load_all(data, settings)
    examples = whole[: settings.limit]
    pairs = [] if preferences is None else load_pairs(preferences, seed=settings.seed)
    taught = load_teacher(verdicts, whole, questions, settings.limit)
    asked = load_prompt(default_prompt(examples) if prompt is None else prompt) if found.is_causal else None
    contrasts = None
    if writer is not None and settings.contrasts:
        _, part_of, _ = divided(examples, pairs, earlier, settings)
        by = judge_model or (taught[0].model if taught else writer)
        try:
            contrasts = buy_contrasts(examples, questions, part_of, writer, by, settings, watcher, _text_of(asked))
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
        text_of=_text_of(asked),
    )
    writing = None
    if settings.rationales:
        cases = rationale_cases(mixture.training)
        writing = Writing(cases)
        if writer is not None and writes_why:
            writing = buy_rationales(cases, writer, settings, watcher)
    made = contrasts.found if contrasts else None
    return TrainJob(examples, questions, pairs, taught, mixture, made, writing, Path(output), found, asked, settings)


def asked_of(checklist: str | Path | Checklist | None, earlier: Earlier | None) -> Checklist:
    """The questions that the scorer is to answer.

    Raises:
        InputError: There are none, or they cannot be read.
    """
    if checklist is not None:
        return load_checklist(checklist)
    if earlier is None:
        raise InputError("A checklist is needed, or a judge, which brings its own.")
    return earlier.judge.checklist


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
    writing: Writing | None
    """What rationales are drawn about."""
    output: Path
    base: Base
    prompt: Prompt | None
    """The judge's prompt that a causal base is to answer."""
    settings: TrainOptions

    @cached_property
    def fingerprint(self) -> str:
        """What the scorer depends on: data, questions, base and settings."""
        without = NOT_IN_FINGERPRINT | (RATIONALE_SETTINGS if self.writing is None else set())
        settings = self.settings.model_dump_json(exclude=set(without))
        items = [repr(each) for part in PARTS for each in self.mixture.part(part)]
        if self.writing is not None and self.writing.written is not None:
            items.append(repr(self.writing.written))
        whole = [self.base.name, settings, self.checklist.model_dump(mode="json"), items]
        return sha256(json.dumps(whole).encode("utf-8", "surrogatepass")).hexdigest()

    def run(self, watcher: Watcher | None = None, progress: bool | None = None) -> TrainResult:
        """Train, measure and write; a training that is finished already is read."""
        done = self._finished()
        to_export = self._to_export(done)
        if done is not None and to_export is None:
            return done
        with watching(watcher, progress) as shown:
            if done is not None:
                shown.phase("loading the scorer")
                network = open_network(self.output, read_scorer(self.output))
            else:
                network, done = self._trained(shown)
            if to_export is not None:
                shown.phase(f"writing {to_export}")
                self._export(network)
        return done

    def _trained(self, shown: Watcher) -> tuple[Network, TrainResult]:
        settings, mixture = self.settings, self.mixture
        shown.phase("loading the base")
        network = self._started()
        cut, most = check_lengths(mixture, network, self._rationale_room)
        remarks = [*mixture.remarks, *([_cut(cut, most, network.longest)] if cut else [])]
        for each in remarks:
            shown.say(f"Note: {each}.")
        groups = groups_of(self.examples, self.preferences)
        tested = self._whole("test", groups)
        validation = self._whole("validation", groups)
        rated = rated_validation(validation, self.checklist, mixture)
        alone = people_alone(mixture, len(rated), settings)
        _check_room(self.output, network, trainings=1 + (self.writing is not None) + (alone is not None))
        others = {"base": self._said(network, tested)}
        folder = self.output / CHECKPOINTS
        curve, trust = self._learned(network, mixture, groups, shown), None
        if alone is not None:
            kept = self._held_against_people(network, curve, alone, rated, groups, shown)
            network, curve, mixture, trust, other = kept
            others[NOT_KEPT[trust["kept"]]] = self._said(other, tested)
        reasons = None
        if self.writing is not None:
            causal = cast("CausalNetwork", network)
            reasons, earlier = self._reasoned(causal, self.writing, mixture, groups, tested, shown)
            others |= earlier
        shown.phase("looking at test")
        cut_off = {"share": cut, "longest": most}
        result = self._measured(network, curve, mixture, trust, reasons, validation, tested, others, remarks, cut_off)
        write_whole(self.output / RESULT_FILE, json.dumps(result.data, ensure_ascii=False, indent=1) + "\n")
        shutil.rmtree(folder, ignore_errors=True)
        return network, result

    @property
    def _rationale_room(self) -> int | None:
        """Tokens that a rationale takes of what is read at most."""
        return self.settings.rationale_tokens if self.settings.rationales else None

    def _to_export(self, done: TrainResult | None) -> str | None:
        """Name of the file for another program that was asked for, if it is not there."""
        if self.settings.gguf and (done is None or not (self.output / GGUF_FILE).is_file()):
            return GGUF_FILE
        if self.settings.onnx and (done is None or not has_onnx(self.output)):
            return ONNX_FILE
        return None

    def _export(self, network: Network) -> None:
        """Write what was learned into a copy of the base's GGUF file, or as a graph of ONNX."""
        if self.base.file is not None:
            write_gguf(self.base.file, cast("CausalNetwork", network).merged(), self.output / GGUF_FILE)
        else:
            write_onnx(cast("SharedEncoder", network), self.output)

    def _started(self) -> Network:
        """The base, as it is before training."""
        settings = self.settings
        return start_network(
            self.base,
            levels=settings.levels,
            longest=settings.longest,
            seed=settings.seed,
            rank=settings.lora_rank,
            precision=settings.precision,
        )

    def _learned(
        self, network: Network, mixture: Mixture, groups: Mapping[str, str], shown: Watcher, within: str = ""
    ) -> LossCurve:
        """Train a network; ``within`` the checkpoints is the folder of its own."""
        objective = ScoreObjective(network, mixture.training, mixture.validation, self.settings)
        return Trainer(objective, groups, self.settings, self.output / CHECKPOINTS / within, self.fingerprint).run(
            shown
        )

    def _held_against_people(
        self,
        network: Network,
        curve: LossCurve,
        alone: Mixture,
        rated: Sequence[Example],
        groups: Mapping[str, str],
        shown: Watcher,
    ) -> tuple[Network, LossCurve, Mixture, dict[str, Any], Network]:
        """A network that learned from people alone beside this one; what is kept of both, why, and the other one."""
        shown.say("Training once more, without the teacher's verdicts: validation says whether they help.")
        other = self._started()
        learned = self._learned(other, alone, groups, shown, PEOPLE)
        both, people = (self._said(each, rated) for each in (network, other))
        found = compared(both, people, rated, self.checklist, self.settings)
        found["cpu_seconds"] = learned.cpu_seconds if found["kept"] == "both" else curve.cpu_seconds
        if found["kept"] == "both":
            return network, curve, self.mixture, found, other
        return other, learned, alone, found, network

    def _reasoned(
        self,
        network: CausalNetwork,
        writing: Writing,
        mixture: Mixture,
        groups: Mapping[str, str],
        tested: Sequence[Example],
        shown: Watcher,
    ) -> tuple[dict[str, Any], dict[str, VerdictColumns]]:
        """Rationales drawn and preferred, as in ``train.json``; and, where DPO is kept and people rated, what the network said before it."""
        found, pairs = draw_pairs(network, writing, self.settings, self.output / RATIONALES_FILE, shown)
        if not pairs:
            shown.say(f"Note: {dpo_left_out(found)}.")
            return found, {}
        earlier = {}
        if human_dimensions(tested, self.checklist):
            shown.phase("looking at test before DPO")
            earlier[WITHOUT_DPO] = self._said(network, tested, self._answers)
        folder = self.output / CHECKPOINTS / DPO
        curve = prefer(network, pairs, mixture, groups, self.settings, folder, self.fingerprint, shown)
        found |= {"dpo": curve.to_dict(), "cpu_seconds": found["cpu_seconds"] + curve.cpu_seconds}
        return (found | {"kept": "after"}, earlier) if curve.best_epoch else (found, {})

    @property
    def _answers(self) -> int | None:
        """Tokens of the rationale that the scorer writes before each answer at most; None where it answers at once."""
        return self._rationale_room if self.settings.answer_with == "rationale" else None

    def _said(self, network: Network, examples: Sequence[Example], answers: int | None = None) -> VerdictColumns:
        """A network's verdicts, before calibration."""
        return verdicts_of(ScorerReader(network, _text_of(self.prompt), answers), examples, self.checklist)

    def _whole(self, part: str, groups: Mapping[str, str]) -> list[Example]:
        """The examples of a part; those that must not be divided are one document."""
        return [
            each.model_copy(update={"metadata": {**each.metadata, "document": groups[each.id]}})
            for each in self.examples
            if self.mixture.part_of[each.id] == part
        ]

    def _measured(
        self,
        network: Network,
        curve: LossCurve,
        learned: Mixture,
        trust: Mapping[str, Any] | None,
        reasons: Mapping[str, Any] | None,
        validation: Sequence[Example],
        tested: Sequence[Example],
        others: Mapping[str, VerdictColumns],
        remarks: Sequence[str],
        cut: Mapping[str, float],
    ) -> TrainResult:
        """The scorer written down, with what it is worth on test."""
        settings, mixture = self.settings, self.mixture
        text_of, answers = _text_of(self.prompt), self._answers
        reader = ScorerReader(network, text_of, answers)
        slope, shift, why = fit_calibration(reader, learned.validation)
        network.save(self.output)
        if self.prompt is not None:
            write_whole(self.output / PROMPT_FILE, self.prompt.text)
        file = ScorerFile(
            kind=network.kind,
            base=self.base.name,
            base_weights=network.base_weights,
            levels=settings.levels,
            longest=network.longest,
            precision=network.precision,
            rationale_tokens=answers,
            slope=slope,
            shift=shift,
            weights=sha256_of_file(self.output / WEIGHTS_FILES[network.kind]),
            questions=tuple(each.id for each in self.checklist.questions),
        )
        file.write(self.output)
        kept = scorer_judge(
            lambda examples: verdicts_of(reader, examples, self.checklist, file),
            self.checklist,
            self.prompt or load_prompt(default_prompt(self.examples)),
            validation,
            tested,
            settings,
        )
        write_whole(self.output / JUDGE_FILE, kept.to_yaml())
        of_test = (file, tested, mixture.test, self.checklist, self.teacher, others, settings)
        group_of = groups_of(self.examples, self.preferences)
        figures = figures_on_test(reader, *of_test, group_of)
        if reasons is not None:
            other = ScorerReader(network, text_of, self._rationale_room if answers is None else None)
            reasons = {**reasons, "otherwise": figures_on_test(other, *of_test, group_of)}
        calibration = calibration_figures(reader, mixture.test, file)
        calibration |= {"slope": slope, "shift": shift} | ({"reason": why} if why else {})
        took = speed(reader, [text for each in mixture.test if each.kind != "rationale" for text in each.texts])
        trained_in = curve.cpu_seconds + sum(each["cpu_seconds"] for each in (trust, reasons) if each is not None)
        return TrainResult(
            {
                "schema": SCHEMA,
                "scorer": str(self.output),
                "base": self.base.name,
                "fingerprint": self.fingerprint,
                "options": settings.model_dump(mode="json", exclude=set() if reasons else set(RATIONALE_SETTINGS)),
                "mixture": mixture.to_dict() | ({"contrasts": dict(self.contrasts)} if self.contrasts else {}),
                "cut": dict(cut),
                "remarks": list(remarks),
                "curve": curve.to_dict(),
                **({} if trust is None else {"trust": trust}),
                **({} if reasons is None else {"rationales": reasons}),
                "test": figures,
                "calibration": calibration,
                "speed": took,
                "price": price(trained_in, took["cpu_ms"], settings),
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
                took = found["price"]["training_cpu_seconds"]
                counted = price(took, found["speed"]["cpu_ms"], self.settings)
                return TrainResult(found | {"price": counted})
            raise InputError(
                f"{place}: there is a scorer of other data or settings. Choose another -o, or delete the folder."
            )
        broken_off = (place / CHECKPOINTS).is_dir()
        if place.is_file() or (place.is_dir() and not broken_off and any(place.iterdir())):
            raise InputError(f"{place}: there is something else here. Choose another folder for the scorer (-o).")
        return None


def _text_of(prompt: Prompt | None) -> TextOf:
    return scored_text if prompt is None else asked_with(prompt)


def _cut(share: float, most: int, longest: int) -> str:
    return (
        f"{share:.1%} of the texts are longer than the {longest} tokens that the scorer reads (the longest has {most}); their "
        "ends are cut off (--longest)"
    )


def _check_room(place: Path, network: Network, trainings: int) -> None:
    """See that the disk has room for what training writes."""
    there = next(each for each in (place.absolute(), *place.absolute().parents) if each.exists())
    need = ROOM * trainings * sum(each.numel() * each.element_size() for each in network.state().values())
    free = shutil.disk_usage(there).free
    if free < need:
        raise AskanceError(
            f"{place}: training needs {need / 1e9:.1f} GB on this disk for its checkpoints; {free / 1e9:.1f} GB are free."
        )
