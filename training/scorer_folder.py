"""The files that ``train`` writes into the scorer's folder: result, weights, judge, and copies for other programs."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np

from ..evaluation.judge_file import accepted_on
from ..evaluation.kept_judge import THIS_FOLDER, JudgeFigures, KeptJudge
from ..evaluation.pass_fail import figures_of, pass_labels, threshold_for
from ..evaluation.raters.agreement_view import ceiling_cells, ceiling_lines, ceiling_of_all
from ..evaluation.scoring import human_targets, measure, score_examples
from ..evaluation.view import Shown, View, correlation_figures
from ..memory.records import MeasureRecord
from ..models.files import sha256_of_file
from ..models.trained.scorer_file import ONNX_FILE, WEIGHTS_FILES, ScorerFile, read_scorer
from ..prompts.errors import AskanceError, InputError, import_optional
from ..prompts.examples import human_dimensions
from ..prompts.formatting import Figure, count, number
from ..prompts.text_files import whole_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from ..evaluation.view import Rows
    from ..models.trained.network import Network, SharedEncoder
    from ..prompts.checklist import Checklist
    from ..prompts.examples import Example
    from ..prompts.prompt import Prompt
    from ..prompts.verdicts import VerdictColumns
    from .options import TrainOptions

SCHEMA = "askance.train/1"
RESULT_FILE = "train.json"
WITHOUT_DPO = "without_dpo"
_OTHERS = {
    "people_alone": "scorer from people alone",
    "with_verdicts": "scorer with the verdicts",
    WITHOUT_DPO: "scorer before DPO",
}
"""Display names of scorers that were not kept, by their keys in the figures on test."""
_WHOSE = {"teacher": "its teacher's", "base": "its base's"} | {
    name: f"that of the {each}" for name, each in _OTHERS.items()
}
HEADS = re.compile(r"\.attention\.head_count(_kv)?$")
CLOSE = 1e-3  # largest difference between a matrix of transformers and the same matrix in the file


# --- train.json ---


@dataclass(frozen=True, repr=False)
class TrainResult(Shown):
    """A trained scorer with its figures on test."""

    data: Mapping[str, Any]
    """The content of ``train.json``."""

    def to_dict(self) -> dict[str, Any]:
        """The content of ``train.json``."""
        return dict(self.data)

    @property
    def kept_share(self) -> float | None:
        """Spearman with people on test, as a share of the teacher's; None unless the teacher's is clearly above 0."""
        people = self.data["test"].get("people", {})
        ours, theirs = (people.get(name, {}) for name in ("scorer", "teacher"))
        if ours.get("spearman") is None or (theirs.get("low") or 0) <= 0:
            return None
        return float(ours["spearman"] / theirs["spearman"])

    def _view(self) -> View:
        data = self.data
        curve, units = data["curve"], data["mixture"]["units"]
        title = f"{data['scorer']}, trained from {data['base']} on {units['training']} examples and pairs"
        tables = {"test": self._rows, "mixture": lambda: data["mixture"]["rows"], "curve": lambda: curve["validation"]}
        captions = {"test": "On test", "curve": "Losses on validation"}
        if dpo := data.get("rationales", {}).get("dpo"):
            tables["dpo"] = lambda: dpo["validation"]
            captions["dpo"] = "Losses on validation with DPO"
        return View(title, list(self._lines()), tables, captions=captions)

    def _lines(self) -> Iterator[str]:
        data = self.data
        curve, took, cost = data["curve"], data["speed"], data["price"]
        ended = ", ended early" if curve["stopped_early"] else ""
        yield f"The weights of epoch {curve['best_epoch']} did best on validation{ended}."
        if not curve["best_epoch"]:
            yield "Training gained nothing on validation: this scorer is no better than what it began with."
        for each in data["remarks"]:
            yield f"Note: {each}."
        if (made := data["mixture"].get("contrasts")) is not None:
            yield (
                f"Of {made['pairs']} pairs of outputs that {made['writer']} wrote, {made['kept']} are ordered by "
                f"{made['judge']} as they were meant and were learned from ({made['unusable']} of {made['outputs']} "
                f"outputs could not be used, {made['repeated']} were there already)."
            )
        if (trust := data.get("trust")) is not None:
            figures = {"with": number(trust["both"]), "without": number(trust["people"])}
            did, way, other_way = (
                ("left out", "without", "with") if trust["kept"] == "people" else ("learned from", "with", "without")
            )
            yield (
                f"Its teacher's verdicts were {did}: {way} them it agrees with people on {trust['n']} outputs of "
                f"validation by {figures[way]}, and by {figures[other_way]} {other_way} them (Spearman)."
            )
        for name, found in data["test"].get("beyond", {}).items():
            if found["value"] is not None:
                yield f"Its rank correlation with people less {_WHOSE[name]}: {Figure.of(found, '+.3f')}."
        if (both := data["test"].get("with_measures")) is not None:
            alone = data["test"]["people"]["scorer"]
            whole_text, alone_text = (Figure.of(each, key="spearman") for each in (both, alone))
            yield f"With its measures its rank correlation with people is {whole_text}, with its questions alone {alone_text}."
        for line in ceiling_lines(data["test"].get("rater_agreement", {})):
            yield f"On test, {line}."
        if self.kept_share is not None:
            yield f"It keeps {self.kept_share:.0%} of its teacher's rank correlation with people."
        yield from rationales_said(data)
        if "preferences" in data["test"]:
            right = Figure.of(data["test"]["preferences"], ".1%")
            yield (
                f"Of the decided pairs of test it prefers the right output in {right}, where it says the same of both "
                "counting half."
            )
        fit = data["calibration"]
        if fit["n"]:
            after, before = (fit[name]["calibration_error"] for name in ("after", "before"))
            earlier = "" if "reason" in fit else f"; {before:.3f} before calibration"
            yield f"P(yes) is off the wanted one by {after:.3f} in its bins (expected calibration error{earlier})."
        alone = took["cpu_ms_alone"]
        yield f"A verdict takes {took['cpu_ms']:.1f} ms of the processor in batches, {alone:.1f} ms alone."
        for name, what in (("break_even_money", "money"), ("break_even_time", "time")):
            if cost[name]["verdicts"] is not None:
                yield f"It has saved the {what} of its training after {cost[name]['verdicts']:,} verdicts."

    def _rows(self) -> Rows:
        test = self.data["test"]
        raters = test.get("rater_agreement", {})
        rows: list[dict[str, Any]] = []
        for name, found in test.get("people", {}).items():
            rows += _rows_of(f"{_OTHERS.get(name, name)} with people", found, raters)
        if "with_measures" in test:
            rows += _rows_of("scorer and its measures, with people", test["with_measures"], raters)
        if "verdicts" in test:
            rows.append(_row("P(yes) with the wanted", "all", test["verdicts"]))
        if (reasons := self.data.get("rationales")) is not None:
            rows += _rows_otherwise(reasons)
        if "teacher" in test:
            rows += _rows_of("scorer with teacher", test["teacher"])
            if "base" in test:
                rows += _rows_of("base with teacher", test["base"])
            rows += [_row("scorer with teacher", name, found) for name, found in test["teacher"]["questions"].items()]
        return rows


def dpo_left_out(reasons: Mapping[str, Any]) -> str:
    """Return a sentence on why nothing was learned from drawn rationales; ``reasons``: ``rationales`` of train.json."""
    return f"DPO on rationales was left out: {reasons['reason']}"


def rationales_said(data: Mapping[str, Any]) -> Iterator[str]:
    """Yield sentences on the given and the drawn rationales, if any."""
    people_alone = data.get("trust", {}).get("kept") == "people"
    learned = [row for row in data["mixture"]["rows"] if not (people_alone and row["source"] == "verdicts")]
    if given := sum(row["training"] for row in learned if row["kind"] == "rationale"):
        yield f"It learned from {count(given, 'rationale')} that judges and people gave."
    if (found := data.get("rationales")) is None:
        return
    writer = "the scorer" if found["from"] == "scorer" else found["from"]
    outcome = "order" if found.get("strategy") == "harmonized" else "score"
    revised = f"{found['revised_by']} revised {found['revised']} of them; " if "revised_by" in found else ""
    yield (
        f"Of {count(found['drawn'], 'rationale')} that {writer} wrote about {count(found['cases'], 'question')} on "
        f"outputs, {found['right']} ended in the right {outcome} and {found['wrong']} in the wrong one "
        f"({found['unusable']} were empty or cut off); {revised}that made {count(found['pairs'], 'pair')}, on "
        f"{found['cases_with_pairs']} of the questions."
    )
    if found["dpo"] is None:
        yield f"Note: {dpo_left_out(found)}."
    else:
        did = "better" if found["kept"] == "after" else "no worse"
        yield f"On validation the weights {found['kept']} DPO did {did} and are kept."
    ways = {"rationale": "with", "word": "without"}
    yield f"It answers {ways[found['answers_with']]} a rationale; on test both ways are measured."


def _rows_otherwise(reasons: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield rows of the scorer for the way it does not answer by default: with or without a rationale."""
    way = "without a rationale" if reasons["answers_with"] == "rationale" else "with a rationale"
    found = reasons["otherwise"]
    if "people" in found:
        yield from _rows_of(f"scorer {way}, with people", found["people"]["scorer"])
    if "verdicts" in found:
        yield _row(f"P(yes) {way}, with the wanted", "all", found["verdicts"])
    if "teacher" in found:
        yield from _rows_of(f"scorer {way}, with teacher", found["teacher"])


def _rows_of(what: str, found: Mapping[str, Any], raters: Mapping[str, Any] | None = None) -> Iterator[dict[str, Any]]:
    """Yield one row over all dimensions, and one a dimension if there are several. ``raters`` adds the agreement of
    people with each other."""
    raters = raters or {}
    several = found["dimensions"] if len(found["dimensions"]) > 1 else {}
    for name, row in {"all": found, **several}.items():
        beside = ceiling_of_all(raters) if name == "all" else ceiling_cells(raters, name)
        yield _row(what, name, row) | beside


def _row(what: str, on: str, found: Mapping[str, Any]) -> dict[str, Any]:
    return {"what": what, "on": on, "n": found["n"], **correlation_figures(found)}


# --- scorer.json and judge.yaml ---


def write_scorer(
    folder: Path,
    network: Network,
    base: str,
    levels: int,
    questions: tuple[str, ...],
    rationale_tokens: int | None,
    calibration: tuple[float, float],
) -> ScorerFile:
    """Write the weights and ``scorer.json``, with the ids of the learned ``questions``, the most tokens of a rationale
    before each answer (None: no rationale), and slope and shift of P(yes)."""
    network.save(folder)
    slope, shift = calibration
    file = ScorerFile(
        kind=network.kind,
        base=base,
        base_weights=network.base_weights,
        levels=levels,
        longest=network.longest,
        precision=network.precision,
        rationale_tokens=rationale_tokens,
        slope=slope,
        shift=shift,
        weights=sha256_of_file(folder / WEIGHTS_FILES[network.kind]),
        questions=questions,
    )
    file.write(folder)
    return file


def scorer_judge(
    said: Callable[[Sequence[Example]], VerdictColumns],
    checklist: Checklist,
    prompt: Prompt,
    validation: Sequence[Example],
    test: Sequence[Example],
    options: TrainOptions,
) -> KeptJudge:
    """Return ``judge.yaml`` of the scorer; ``said`` returns its verdicts. The file has the questions and, if people
    rated outputs, the agreement with people. For pass or fail it has a threshold fitted on ``validation``. An encoder
    does not read the ``prompt``."""
    judge: dict[str, Any] = {"model": THIS_FOLDER, "prompt": prompt, "checklist": checklist}
    examples = [*validation, *test]
    if not human_dimensions(examples, checklist):
        return KeptJudge(**judge)
    people = human_targets(examples, checklist, options.human_scale)
    labels = pass_labels(examples, people)
    sampling = {"resamples": options.resamples, "seed": options.seed}
    parts = {"validation": validation, "test": test}
    scores = {name: score_examples(part, checklist, said(part)) for name, part in parts.items()}
    fitted = None if labels is None else threshold_for(scores["validation"], validation, people, labels)
    if fitted is not None and fitted.n:
        judge |= {"threshold": fitted.value, "threshold_of": people.dimensions}
    figures: dict[str, Any] = {}
    for name, part in parts.items():
        row = dict(measure(scores[name], people, part, **sampling).overall)
        if labels is not None and "threshold" in judge:
            row |= figures_of(scores[name], part, people, labels, judge["threshold"], **sampling)
        figures[name] = accepted_on(MeasureRecord.model_validate(row))
    return KeptJudge(**judge).measured(JudgeFigures(reference="human", **figures))


# --- model.onnx and model.gguf ---


def has_onnx(folder: Path) -> bool:
    """Whether a scorer's folder has an undamaged ``model.onnx`` that belongs to its weights."""
    file = read_scorer(folder)
    place = file.onnx_file(folder)
    return place is not None and sha256_of_file(place) == file.onnx


def write_onnx(network: SharedEncoder, folder: Path) -> None:
    """Write an encoder as an ONNX graph, and the graph's hash into ``scorer.json``. Raises InputError if the weights do
    not belong to ``scorer.json``, AskanceError if the file cannot be written, and MissingExtraError without onnx."""
    file = read_scorer(folder)
    file.check_weights(folder)
    graph = network.as_onnx()
    with whole_file(folder / ONNX_FILE) as out:
        out.write(graph)
        file.model_copy(update={"onnx": sha256(graph).hexdigest()}).write(folder)


def write_gguf(base: Path, merged: Iterable[tuple[str, NDArray[Any], NDArray[Any]]], target: Path) -> None:
    """Copy a GGUF file with some matrices changed; everything else stays, including the tokenizer.

    Changed matrices, and the output matrix, are written in 16 bits (F16). ``merged`` has for each changed matrix its
    name in transformers and its numbers before and after. Raises InputError if a matrix is not in the file,
    AskanceError if the new file cannot be written, and MissingExtraError without gguf."""
    gguf = import_optional("gguf", "train", "gguf")
    reader = gguf.GGUFReader(base)
    fields = {name: each.contents() for name, each in reader.fields.items() if not name.startswith("tokenizer.")}
    tensors = {each.name: each for each in reader.tensors}
    names = _names(gguf, fields)
    changed: dict[str, NDArray[Any]] = {}
    for name, before, after in merged:
        tensor = tensors.get(f"{names.get_name(name) or name}.weight")
        if tensor is None:
            raise InputError(f"{base}: there is no matrix {name} in this file, so it cannot be written anew.")
        turned = _arranged_as(gguf.dequantize(tensor.data, tensor.tensor_type), before, after, fields)
        if turned is None:
            raise InputError(
                f"{base}: {tensor.name} is kept in an order that is not known here, so it cannot be written anew."
            )
        changed[tensor.name] = turned.astype(np.float16)  # the steps of 4 bits are wider than LoRA's changes
    # Yes and no are read from this matrix. If it is coarser than 16 bits, llama.cpp rounds its factors to 8 bits.
    last = tensors.get("output.weight", tensors["token_embd.weight"])
    changed[last.name] = gguf.dequantize(last.data, last.tensor_type).astype(np.float16)
    partial = target.with_suffix(".part")
    try:
        _write(gguf, reader, fields["general.architecture"], changed, partial)
        os.replace(partial, target)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise AskanceError(
            f"{target}: cannot be written ({error}). Make room, and run the same command again."
        ) from None


def _names(gguf: Any, fields: dict[str, Any]) -> Any:
    """Return the map from transformers' names to the file's names."""
    wanted = fields["general.architecture"]
    kind = next(each for each, name in gguf.MODEL_ARCH_NAMES.items() if name == wanted)
    return gguf.get_tensor_name_map(kind, int(fields[f"{wanted}.block_count"]))


def _arranged_as(
    there: NDArray[Any], before: NDArray[Any], after: NDArray[Any], fields: dict[str, Any]
) -> NDArray[Any] | None:
    """Return ``after`` in the row order that the file has for ``before``; None if the order is unknown."""
    for order in _orders(len(before), fields):
        if np.abs(before[order] - there).max() < CLOSE:
            turned: NDArray[Any] = after[order]
            return turned
    return None


def _orders(rows: int, fields: dict[str, Any]) -> Iterator[NDArray[Any]]:
    """Yield possible row orders: unchanged, or with the halves of each head interleaved, as in Llama's files."""
    yield np.arange(rows)
    for heads in {each for name, each in fields.items() if HEADS.search(name) and isinstance(each, int)}:
        if rows % (2 * heads) == 0:
            yield np.arange(rows).reshape(heads, 2, rows // heads // 2).swapaxes(1, 2).reshape(rows)


def _write(gguf: Any, reader: Any, architecture: str, changed: dict[str, NDArray[Any]], target: Path) -> None:
    writer = gguf.GGUFWriter(target, architecture, endianess=reader.endianess)
    for name, field in reader.fields.items():
        if name.startswith("GGUF.") or name == "general.architecture":
            continue
        inner = field.types[-1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(name, field.contents(), field.types[0], sub_type=inner)
    half = gguf.GGMLQuantizationType.F16
    tensors = [
        (each.name, changed[each.name], half) if each.name in changed else (each.name, each.data, each.tensor_type)
        for each in reader.tensors
    ]
    for name, data, kind in tensors:
        writer.add_tensor_info(name, data.shape, data.dtype, data.nbytes, kind)
    try:
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_ti_data_to_file()
        for _, data, _ in tensors:
            writer.write_tensor_data(data, tensor_endianess=reader.endianess)
    finally:
        writer.close()
