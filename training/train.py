"""``train``: train a scorer from verdicts, ratings, preferences and rationales (LMUnit §3.2 to §3.4)."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, cast

from ..agents.checks import make_ready
from ..memory.run_directory import JUDGE_FILE
from ..models.event_loops import awaited
from ..models.named import ModelLike, named_models
from ..models.progress import watching
from ..models.trained.bases import find_base
from ..models.trained.network import open_network, start_network
from ..models.trained.scorer_file import GGUF_FILE, ONNX_FILE, SCORER_FILE, read_scorer
from ..optimizer.earlier import Earlier, earlier_run
from ..optimizer.weights.judged_pairs import load_pairs
from ..prompts.checklist import load_checklist, refuse_computed
from ..prompts.errors import InputError
from ..prompts.examples import human_dimensions, load_examples
from ..prompts.prompt import bound_prompts, default_prompt, load_prompt
from ..prompts.rows import column
from ..prompts.text_files import read_object, write_whole
from ..prompts.verdicts import VerdictColumns, read_verdicts
from ..setting_types import TrainSettings
from ..settings import parse_options
from .contrasts import buy_contrasts
from .losses import ScoreObjective
from .measured import (
    NOT_KEPT,
    ScorerReader,
    calibration_figures,
    compared,
    figures_on_test,
    figures_with_measures,
    fit_calibration,
    people_alone,
    price,
    rated_validation,
    speed,
    verdicts_of,
    with_measures,
)
from .mixture import PARTS, asked_with, check_lengths, divided, gather, groups_of
from .options import NOT_IN_FINGERPRINT, RATIONALE_SETTINGS, TrainOptions, check_goes_with
from .rationales import RATIONALES_FILE, Writing, draw_pairs, prefer, rationales_to_draw
from .scorer_folder import (
    RESULT_FILE,
    SCHEMA,
    WITHOUT_DPO,
    TrainResult,
    dpo_left_out,
    has_onnx,
    scorer_judge,
    write_gguf,
    write_onnx,
    write_scorer,
)
from .trainer import Trainer, check_room

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ..models.base import Model
    from ..models.progress import Watcher
    from ..models.trained.bases import Base
    from ..models.trained.causal import CausalNetwork
    from ..models.trained.network import Network, SharedEncoder
    from ..prompts.checklist import Checklist
    from ..prompts.examples import Example
    from ..prompts.preferences import Preference
    from ..prompts.prompt import Prompt
    from .mixture import Mixture
    from .trainer import LossCurve

CHECKPOINTS, DPO, PEOPLE = "checkpoints", "dpo", "people"  # folders within the scorer's folder during training
DEFAULT_BASE = "minilm"


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
    """Train a scorer and measure it once on the test part.

    Args:
        data: Files of examples, or examples.
        checklist: Questions that the scorer learns to answer; default: the questions of ``judge``.
        output: The scorer's folder. If the same training was interrupted there, it continues.
        base: Model to start from: ``minilm``, an embedded model, a GGUF file, a folder, or a name on the hub.
        prompt: Judge's prompt for a causal base; default: askance's own prompt for such data.
        verdicts: Verdicts of one judge (the teacher), or a file with them (``askance evaluate -o``).
        preferences: Pairs of outputs.
        judge: Run of ``align`` or ``migrate``. Its parts are kept, so that its test examples are not trained on.
        writer: Model that writes contrasting outputs (``contrasts``), or writes or revises rationales
            (``rationales_from``).
        judge_model: Model that checks whether written outputs are as intended; default: the teacher, else the writer.
        watcher: Receives the progress.
        progress: Show the progress; default: in notebooks only.
        options: Settings of :class:`~.options.TrainOptions`.

    Raises:
        InputError: Bad data or settings, too little to learn from, an unknown base, or a folder that holds something
            else. The message names file, line and field.
        BudgetExceededError: A cap on model calls was reached; the answers so far are kept.
        AskanceError: The disk is full, or a model does not answer.
        MissingExtraError: torch or transformers is not installed.
    """
    by, sees, given = named_models(options, writer, judge_model)
    with watching(watcher, progress) as shown:
        job = prepare(data, checklist, output, base, prompt, verdicts, preferences, judge, by, sees, given, shown)
        return job.run(shown)


atrain = awaited(train)


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
    """Load and check the arguments of :func:`train`, and have models write outputs or rationales if asked for."""
    settings = parse_options(TrainOptions, options)
    found = find_base(base)
    check_goes_with(found, prompt, settings)
    writes_why = bool(settings.rationales) and settings.rationales_from != "scorer"
    _check_models(writer, judge_model, settings, writes_why)
    earlier = None if judge is None else earlier_run(judge)
    judged = asked_of(checklist, earlier)
    questions = judged.asked_alone or judged
    whole = _load_all(data, settings)
    examples = whole[: settings.limit]
    pairs = [] if preferences is None else load_pairs(preferences, seed=settings.seed)
    taught = _load_teacher(verdicts, whole, judged, settings.limit)
    shown = default_prompt(examples) if prompt is None else prompt
    asked = bound_prompts([shown], examples, settings)[0] if found.is_causal else None
    text_of = asked_with(asked)
    contrasts = None
    if writer is not None and settings.contrasts:
        _, part_of, _ = divided(examples, pairs, earlier, settings)
        contrast_judge = judge_model or (taught.models[0] if taught and taught.models else writer)
        try:
            contrasts = buy_contrasts(examples, questions, part_of, writer, contrast_judge, settings, watcher, text_of)
        except InputError as error:
            if judge_model is None and taught and str(contrast_judge) in str(error):
                raise InputError(
                    f"{error} It is the teacher of --verdicts; --judge-model names another judge."
                ) from None
            raise
    given: dict[str, Any] = {"verdicts": taught, "preferences": pairs, "earlier": earlier, "options": settings}
    further = contrasts.items if contrasts else ()
    mixture = gather(examples, questions, **given, further=further, text_of=text_of)
    writing = None
    if settings.rationales:
        writing = rationales_to_draw(mixture.training, writer if writes_why else None, settings, watcher)
    made = contrasts.found if contrasts else None
    how = Path(output), found, asked, settings, judged
    return TrainJob(examples, questions, pairs, taught, mixture, made, writing, *how)


def _check_models(writer: Any, judge_model: Any, settings: TrainOptions, writes_why: bool) -> None:
    if (writer is not None) != (bool(settings.contrasts) or writes_why):
        raise InputError(
            "--contrasts says how much the --writer is to write: give both, or neither."
            if not settings.rationales
            else "--writer writes outputs (--contrasts), or writes or revises rationales (--rationales-from): give it with "
            "one of them, or leave all out."
        )
    if judge_model is not None and not settings.contrasts:
        raise InputError("--judge-model judges what a --writer writes: give --writer and --contrasts, or leave it out.")


def asked_of(checklist: str | Path | Checklist | None, earlier: Earlier | None) -> Checklist:
    """Return the questions to learn and the measures. Raises InputError for checks or if there is no question."""
    if checklist is not None:
        asked = load_checklist(checklist)
    elif earlier is None:
        raise InputError("A checklist is needed, or a judge, which brings its own.")
    else:
        asked = earlier.judge.checklist
    found = refuse_computed(asked, "A scorer learns to answer questions", ["checks"])
    if found.asked_alone is None:
        raise InputError("A scorer learns to answer questions, and the checklist has no questions with a weight.")
    make_ready(found.measures)
    return found


def _load_all(data: Any, settings: TrainOptions) -> list[Example]:
    """Load the examples of one source or of several files. Raises InputError if an id occurs twice."""
    several = isinstance(data, (list, tuple)) and data and all(isinstance(each, (str, Path)) for each in data)
    examples: list[Example] = []
    seen: dict[str, object] = {}
    for source in data if several else [data]:
        for each in load_examples(
            source, fields=settings.field, labels=settings.labels, label_scale=settings.label_scale
        ):
            if each.id in seen:
                raise InputError(f"{source}: the id '{each.id}' was used before, in {seen[each.id]}.")
            seen[each.id] = source
            examples.append(each)
    return examples


def _load_teacher(
    verdicts: Any, whole: Sequence[Example], checklist: Checklist, limit: int | None
) -> VerdictColumns | None:
    """Load the teacher's verdicts and keep those on the first ``limit`` examples, without measures. Raises InputError
    if a verdict names an unknown example or question, or if the verdicts come from several judges."""
    if verdicts is None:
        return None
    ids, asked = {each.id for each in whole}, {each.id for each in checklist.questions}
    from_file = isinstance(verdicts, str | Path)
    found = read_verdicts(verdicts, examples=ids, questions=asked) if from_file else VerdictColumns.of(verdicts)
    for each in found:
        if each.example not in ids or each.question not in asked:
            raise InputError(
                f"There is a verdict on '{each.example}' and '{each.question}', which are not in data and checklist."
            )
    judges = {(each.model, each.prompt) for each in found if each.model is not None}
    if len(judges) > 1:
        names = ", ".join(sorted({model for model, _ in judges}))
        raise InputError(
            f"The verdicts are of {len(judges)} judges (models and prompts; {names}); a scorer learns from one teacher."
        )
    answered = found.places("question", [each.id for each in checklist.asked]) >= 0
    return found.only((found.places("example", column(whole[:limit], "id")) >= 0) & answered)


@dataclass(frozen=True)
class TrainJob:
    """A training whose data and settings have been checked."""

    examples: Sequence[Example]
    checklist: Checklist
    preferences: Sequence[Preference]
    teacher: VerdictColumns | None
    mixture: Mixture
    contrasts: Mapping[str, Any] | None  # counts of the outputs that a model wrote, as in ``train.json``
    writing: Writing | None  # the cases for which rationales are drawn
    output: Path
    base: Base
    prompt: Prompt | None  # the judge's prompt, for a causal base
    settings: TrainOptions
    judged: Checklist  # the questions, and the measures that are computed without the scorer

    @cached_property
    def fingerprint(self) -> str:
        """Hash of everything that determines the scorer: data, questions, base and settings."""
        without = NOT_IN_FINGERPRINT | (RATIONALE_SETTINGS if self.writing is None else set())
        settings = self.settings.model_dump_json(exclude=set(without))
        items = [repr(each) for part in PARTS for each in self.mixture.part(part)]
        if self.writing is not None and self.writing.written is not None:
            items.append(repr(self.writing.written))
        if self.writing is not None and self.writing.reviser is not None:
            items.append(f"revised by {self.writing.revised_by}")
        whole = [self.base.name, settings, self.judged.model_dump(mode="json"), items]
        return sha256(json.dumps(whole).encode("utf-8", "surrogatepass")).hexdigest()

    def run(self, shown: Watcher) -> TrainResult:
        """Train, measure and write the scorer. If this training has already finished, read its result."""
        done = self._finished()
        to_export = self._to_export(done)
        if done is not None and to_export is None:
            return done
        if done is not None:
            shown.phase("loading the scorer")
            network = open_network(self.output, read_scorer(self.output))
        else:
            network, done = self._trained(shown)
        if to_export is not None:
            shown.phase(f"writing {to_export}")
            if self.base.file is not None:
                write_gguf(self.base.file, cast("CausalNetwork", network).merged(), self.output / GGUF_FILE)
            else:
                write_onnx(cast("SharedEncoder", network), self.output)
        return done

    def _finished(self) -> TrainResult | None:
        """Return the result of this training if it has finished, else None. Raises InputError if the folder holds
        something else."""
        place = self.output
        if (place / RESULT_FILE).is_file():
            found = read_object(place / RESULT_FILE, "record of a training")
            if found.get("fingerprint") == self.fingerprint and (place / SCORER_FILE).is_file():
                took = found["price"]["training_cpu_seconds"]
                return TrainResult(found | {"price": price(took, found["speed"]["cpu_ms"], self.settings)})
            raise InputError(
                f"{place}: there is a scorer of other data or settings. Choose another -o, or delete the folder."
            )
        broken_off = (place / CHECKPOINTS).is_dir()
        if place.is_file() or (place.is_dir() and not broken_off and any(place.iterdir())):
            raise InputError(f"{place}: there is something else here. Choose another folder for the scorer (-o).")
        return None

    def _to_export(self, done: TrainResult | None) -> str | None:
        """Return the name of the requested export file (GGUF or ONNX) if it has to be written, else None."""
        if self.settings.gguf and (done is None or not (self.output / GGUF_FILE).is_file()):
            return GGUF_FILE
        if self.settings.onnx and (done is None or not has_onnx(self.output)):
            return ONNX_FILE
        return None

    def _trained(self, shown: Watcher) -> tuple[Network, TrainResult]:
        settings, mixture = self.settings, self.mixture
        shown.phase("loading the base")
        network = self._started()
        cut, longest = check_lengths(mixture, network, self._rationale_room)
        remarks = [*mixture.remarks, *([_cut(cut, longest, network.longest)] if cut else [])]
        for each in remarks:
            shown.say(f"Note: {each}.")
        rated = rated_validation(self._examples_of("validation"), self.checklist, mixture)
        people_mixture = people_alone(mixture, len(rated), settings)
        check_room(self.output, network, trainings=1 + (self.writing is not None) + (people_mixture is not None))
        tested = self._examples_of("test")
        other_verdicts = {"base": self._said(network, tested)}
        curve, trust = self._learned(network, mixture, shown), None
        if people_mixture is not None:
            network, curve, mixture, trust, other = self._held_against_people(
                network, curve, people_mixture, rated, shown
            )
            other_verdicts[NOT_KEPT[trust["kept"]]] = self._said(other, tested)
        reasons = None
        if self.writing is not None:
            reasons, earlier = self._reasoned(cast("CausalNetwork", network), self.writing, mixture, shown)
            other_verdicts |= earlier
        shown.phase("looking at test")
        facts = {"cut": {"share": cut, "longest": longest}, "remarks": remarks, "curve": curve.to_dict()}
        if trust is not None:
            facts["trust"] = trust
        result = TrainResult(self._measured(network, mixture, facts, reasons, other_verdicts))
        write_whole(self.output / RESULT_FILE, json.dumps(result.data, ensure_ascii=False, indent=1) + "\n")
        shutil.rmtree(self.output / CHECKPOINTS, ignore_errors=True)
        return network, result

    def _started(self) -> Network:
        """Load the base before training."""
        settings = self.settings
        how: dict[str, Any] = {"seed": settings.seed, "rank": settings.lora_rank, "precision": settings.precision}
        return start_network(self.base, levels=settings.levels, longest=settings.longest, **how)

    def _learned(self, network: Network, mixture: Mixture, shown: Watcher, within: str = "") -> LossCurve:
        """Train a network; ``within`` is its subfolder of the checkpoints."""
        objective = ScoreObjective(network, mixture.training, mixture.validation, self.settings)
        folder = self.output / CHECKPOINTS / within
        return Trainer(objective, self._groups, self.settings, folder, self.fingerprint).run(shown)

    def _held_against_people(
        self, network: Network, curve: LossCurve, alone: Mixture, rated: Sequence[Example], shown: Watcher
    ) -> tuple[Network, LossCurve, Mixture, dict[str, Any], Network]:
        """Train a second network from people's labels alone. Return the better network with its curve, data and the
        comparison, and the other network."""
        shown.say("Training once more, without the teacher's verdicts: validation says whether they help.")
        second_network = self._started()
        learned = self._learned(second_network, alone, shown, PEOPLE)
        both, people = (self._said(each, rated) for each in (network, second_network))
        found = compared(both, people, rated, self.checklist, self.settings)
        found["cpu_seconds"] = learned.cpu_seconds if found["kept"] == "both" else curve.cpu_seconds
        if found["kept"] == "both":
            return network, curve, self.mixture, found, second_network
        return second_network, learned, alone, found, network

    def _reasoned(
        self, network: CausalNetwork, writing: Writing, mixture: Mixture, shown: Watcher
    ) -> tuple[dict[str, Any], dict[str, VerdictColumns]]:
        """Draw rationales and learn from their pairs. Return an account, and the verdicts on test before DPO if the
        weights after DPO are kept."""
        found, pairs = draw_pairs(network, writing, self.settings, self.output / RATIONALES_FILE, shown)
        if not pairs:
            shown.say(f"Note: {dpo_left_out(found)}.")
            return found, {}
        earlier, tested = {}, self._examples_of("test")
        if human_dimensions(tested, self.checklist):
            shown.phase("looking at test before DPO")
            earlier[WITHOUT_DPO] = self._said(network, tested, self._answers)
        folder = self.output / CHECKPOINTS / DPO
        curve = prefer(network, pairs, mixture, self._groups, self.settings, folder, self.fingerprint, shown)
        found |= {"dpo": curve.to_dict(), "cpu_seconds": found["cpu_seconds"] + curve.cpu_seconds}
        return (found | {"kept": "after"}, earlier) if curve.best_epoch else (found, {})

    @cached_property
    def _groups(self) -> dict[str, str]:
        return groups_of(self.examples, self.preferences)

    def _examples_of(self, part: str) -> list[Example]:
        """Return the examples of a part. Their ``document`` is the group that must stay in one part."""
        return [
            each.model_copy(update={"metadata": {**each.metadata, "document": self._groups[each.id]}})
            for each in self.examples
            if self.mixture.part_of[each.id] == part
        ]

    @property
    def _rationale_room(self) -> int | None:
        """Most tokens that a rationale takes from the text that is read."""
        return self.settings.rationale_tokens if self.settings.rationales else None

    @property
    def _answers(self) -> int | None:
        """Most tokens of the rationale that the scorer writes before each answer; None if it answers at once."""
        return self._rationale_room if self.settings.answer_with == "rationale" else None

    def _reader(self, network: Network, answers: int | None) -> ScorerReader:
        return ScorerReader(network, asked_with(self.prompt), answers)

    def _said(self, network: Network, examples: Sequence[Example], answers: int | None = None) -> VerdictColumns:
        """Return a network's verdicts, before calibration."""
        return verdicts_of(self._reader(network, answers), examples, self.checklist)

    def _measured(
        self,
        network: Network,
        learned: Mixture,
        facts: Mapping[str, Any],
        reasons: Mapping[str, Any] | None,
        others: Mapping[str, VerdictColumns],
    ) -> dict[str, Any]:
        """Write the scorer, measure it on test, and return the content of ``train.json``. ``facts`` are known before
        test, ``reasons`` is the account of rationales, ``others`` has other networks' verdicts on test, by name."""
        settings, mixture, answers, tested = self.settings, self.mixture, self._answers, self._examples_of("test")
        reader = self._reader(network, answers)
        slope, shift, reason = fit_calibration(reader, learned.validation)
        asked = tuple(each.id for each in self.checklist.questions)
        file = write_scorer(self.output, network, self.base.name, settings.levels, asked, answers, (slope, shift))
        if self.prompt is not None:
            write_whole(self.output / f"prompt{self.prompt.suffix}", self.prompt.file_text)
        kept = scorer_judge(
            lambda examples: with_measures(verdicts_of(reader, examples, self.checklist, file), self.judged, examples),
            self.judged,
            self.prompt or load_prompt(default_prompt(self.examples)),
            self._examples_of("validation"),
            tested,
            settings,
        )
        write_whole(self.output / JUDGE_FILE, kept.to_yaml())
        arguments = (file, tested, mixture.test, self.checklist, self.teacher, others, settings, self._groups)
        figures = figures_on_test(reader, *arguments)
        if self.judged.measures and "people" in figures:
            said = with_measures(verdicts_of(reader, tested, self.checklist, file), self.judged, tested)
            figures["with_measures"] = figures_with_measures(said, tested, self.judged, settings)
        parts = dict(facts)
        if reasons is not None:
            other = self._reader(network, self._rationale_room if answers is None else None)
            parts["rationales"] = {**reasons, "otherwise": figures_on_test(other, *arguments)}
        calibration = calibration_figures(reader, mixture.test, file)
        calibration |= {"slope": slope, "shift": shift} | ({"reason": reason} if reason else {})
        took = speed(reader, [text for each in mixture.test if each.kind != "rationale" for text in each.texts])
        trained_in = sum(parts[each]["cpu_seconds"] for each in ("curve", "trust", "rationales") if each in parts)
        return {
            "schema": SCHEMA,
            "scorer": str(self.output),
            "base": self.base.name,
            "fingerprint": self.fingerprint,
            "options": settings.model_dump(mode="json", exclude=set() if reasons else set(RATIONALE_SETTINGS)),
            "mixture": mixture.to_dict() | ({"contrasts": dict(self.contrasts)} if self.contrasts else {}),
            **parts,
            "test": figures,
            "calibration": calibration,
            "speed": took,
            "price": price(trained_in, took["cpu_ms"], settings),
        }


def _cut(share: float, most: int, longest: int) -> str:
    return (
        f"{share:.1%} of the texts are longer than the {longest} tokens that the scorer reads (the longest has "
        f"{most}); their ends are cut off (--longest)"
    )
