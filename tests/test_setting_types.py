"""``setting_types.py`` names the settings of every function with their types; it is made from the records of settings.

Write it anew after a change of a setting::

    make settings
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from askance.evaluation.options import (
    CompareOptions,
    DiagnoseOptions,
    EvaluateOptions,
    GatewayOptions,
    GenerateOptions,
    RegressionOptions,
    SelectOptions,
    WriterOptions,
)
from askance.labelling.label_options import LabelOptions
from askance.models.named import NamedModel
from askance.optimizer.job import CAN_GROW, NOT_IN_FINGERPRINT, WHERE
from askance.optimizer.options import (
    AlignOptions,
    MigrateOptions,
    TuneOptions,
    WeighOptions,
    WriterMigrationOptions,
)
from askance.settings import ALSO, FILE, MODEL
from askance.training.options import TrainOptions

FILE_OF_TYPES = Path(__file__).resolve().parents[1] / "setting_types.py"
RECORDS: tuple[type[BaseModel], ...] = (
    GatewayOptions,
    WriterOptions,
    GenerateOptions,
    EvaluateOptions,
    RegressionOptions,
    CompareOptions,
    DiagnoseOptions,
    SelectOptions,
    WeighOptions,
    MigrateOptions,
    AlignOptions,
    TuneOptions,
    WriterMigrationOptions,
    TrainOptions,
    LabelOptions,
)
PARAMETERS = {"SelectOptions": {"writer"}}
"""Settings that the function takes as a parameter."""
HEAD = '''"""Types of the settings that functions take by keyword, e.g. ``evaluate(…, limit=10)``, for type checkers and editors.

Made by ``make settings``, ``NAMESettings`` of the record ``NAMEOptions``. It says what each setting does (``--help``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict

from .models.named import NamedModel
'''


MIGRATION = '''

class MigrationSettings(MigrateSettings, WriterMigrationSettings, total=False):
    """Settings of a migration, whether its prompt judges or writes."""
'''


def written(kind: Any, metadata: Iterable[Any] = ()) -> str:
    """Return a type as a caller may give it: lists for tuples, paths for files, records for models."""
    found = {"model": MODEL in metadata, "file": FILE in metadata}
    if get_origin(kind) is Annotated:
        return written(get_args(kind)[0], get_args(kind)[1:])
    if get_origin(kind) in (Union, UnionType):
        parts = list(dict.fromkeys(part for each in get_args(kind) for part in written(each).split(" | ")))
        parts += ["Path"] if found["file"] and "Path" not in parts else []
        parts += ["str"] if found["file"] and "str" not in parts else []
        parts += ["NamedModel"] if found["model"] else []
        return " | ".join(sorted(parts, key=lambda part: part == "None"))
    if get_origin(kind) is Literal:
        return f"Literal[{', '.join(repr(each).replace(chr(39), chr(34)) for each in get_args(kind))}]"
    if get_origin(kind) is tuple:
        inner = dict.fromkeys(written(each) for each in get_args(kind) if each is not Ellipsis)
        return f"Sequence[{' | '.join(inner)}]"
    if get_origin(kind) is dict:
        key, value = map(written, get_args(kind))
        given = "NamedModel | Mapping[str, Any] | str" if get_args(kind)[1] is NamedModel else value
        return f"Mapping[{key}, {given}]"
    return "None" if kind is NoneType else "str" if kind.__name__ == "PostgresAddress" else str(kind.__name__)


def name_of(record: type[BaseModel]) -> str:
    return record.__name__.removesuffix("Options") + "Settings"


def class_of(record: type[BaseModel], known: set[type[BaseModel]]) -> str:
    """Return the class of a record and of those that it is made of, as far as they are not known yet."""
    if record in known or record is BaseModel or not issubclass(record, BaseModel):
        return ""
    known.add(record)
    before = "".join(class_of(base, known) for base in record.__bases__)
    bases = [name_of(base) for base in record.__bases__ if base is not BaseModel and issubclass(base, BaseModel)]
    rows = []
    inherited = {name for base in record.__bases__ for name in getattr(base, "model_fields", {})}
    for name, field in record.model_fields.items():
        if name in inherited or name in PARAMETERS.get(record.__name__, ()):
            continue
        kind = written(field.annotation, field.metadata)
        rows += [f"    {each}: {kind}" for each in (name, *(other for other, own in ALSO.items() if own == name))]
    of, body = ", ".join(bases) or "TypedDict", "".join(f"\n{row}" for row in rows)
    return f"{before}\n\nclass {name_of(record)}({of}, total=False):{body or ' ...'}\n"


def made() -> str:
    """Return the whole file."""
    known: set[type[BaseModel]] = set()
    text = HEAD + "".join(class_of(each, known) for each in RECORDS)
    fields = {name: field for record in RECORDS for name, field in record.model_fields.items()}
    rows = [
        f"    {name}: {written(fields[name].annotation, fields[name].metadata)}"
        for name in sorted({*NOT_IN_FINGERPRINT, *WHERE, *CAN_GROW})
    ]
    resume = '\n\nclass ResumeSettings(TypedDict, total=False):\n    """Settings that may change when a run is resumed."""\n\n'
    return text + MIGRATION + resume + "\n".join(rows) + "\n"


def test_the_types_of_settings_are_those_of_their_records() -> None:
    assert FILE_OF_TYPES.read_text(encoding="utf-8") == made(), "make settings"


if __name__ == "__main__":
    FILE_OF_TYPES.write_text(made(), encoding="utf-8")
    sys.exit()
