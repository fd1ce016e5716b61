"""What ``train`` is given: loaded, and checked before anything is trained."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..prompts.errors import InputError, import_optional
from ..prompts.examples import load_examples
from ..prompts.rows import column
from ..prompts.verdicts import VerdictColumns, read_verdicts

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..models.trained.bases import Base
    from ..prompts.checklist import Checklist
    from ..prompts.examples import Example
    from .options import TrainOptions


def check_goes_with(base: Base, prompt: object, settings: TrainOptions) -> None:
    """See that the settings are for such a base.

    Raises:
        InputError: They are not. MissingExtraError: What writes a file that is asked for is not installed.
    """
    if not base.is_causal and prompt is not None:
        raise InputError(f"--prompt: the encoder {base.name} reads no prompt. Leave it out, or name a causal base.")
    if not base.is_causal and settings.learns_given:
        option = f"--rationales {settings.rationales}" if settings.rationales else "--given-rationales"
        raise InputError(
            f"{option}: the encoder {base.name} writes nothing. Name a causal base, e.g. smollm2-135m-instruct, or leave it out."
        )
    if base.is_causal and settings.levels != 2:
        raise InputError(
            f"--levels {settings.levels}: the causal base {base.name} is trained to say yes or no, which are 2. Leave --levels out, "
            "or name an encoder."
        )
    if settings.gguf and base.file is None:
        raise InputError(
            f"--gguf: the base {base.name} is no GGUF file, which the new one is made from. Name an embedded model, e.g. "
            "smollm2-135m-instruct, or the path of such a file."
        )
    if settings.onnx:
        if not base.is_bert:
            raise InputError(
                f"--onnx: the base {base.name} is no encoder of BERT's kind, which alone can be written so. Name one, e.g. minilm, or "
                "leave --onnx out."
            )
        import_optional("onnx", "train", "onnx")


def load_all(data: Any, settings: TrainOptions) -> list[Example]:
    """All examples of one source or of several files; ids are unique over all of them."""
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


def load_teacher(
    verdicts: str | Path | Iterable[Any] | None, whole: Sequence[Example], checklist: Checklist, limit: int | None
) -> VerdictColumns | None:
    """The teacher's verdicts on the examples that ``limit`` leaves; they may be about the ``whole``.

    Raises:
        InputError: One is about no example or question there is, or they are of several judges.
    """
    if verdicts is None:
        return None
    ids, asked = {each.id for each in whole}, {each.id for each in checklist.questions}
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
    return found.only(found.places("example", column(whole[:limit], "id")) >= 0)
