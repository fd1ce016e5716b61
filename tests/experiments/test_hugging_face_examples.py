"""Examples from a Hugging Face data set object, with the real package; no network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import askance
from askance.prompts.checklist import Checklist, Question
from askance.prompts.errors import AskanceError, InputError
from askance.prompts.rows import hub_rows
from askance.testing import ScriptedModel

from ..said import naming

datasets = pytest.importorskip("datasets", reason="needs the extra: pip install 'askance[datasets]'")
pytestmark = pytest.mark.usefixtures("sandbox")

COLUMNS = {
    "uid": [1, 2, 3],
    "article": ["One.", "Two.", "Three."],
    "summary": ["A", "B", "C"],
    "score": [1.0, None, 5.0],
    "source": ["x", "y", "z"],
}
FIELDS = {"id": "uid", "input": "article", "output": "summary", "human.quality": "score"}


@pytest.mark.parametrize("kind", ["Dataset", "IterableDataset", "split"])
def test_a_data_set_is_taken_as_rows_with_renamed_columns(kind: str) -> None:
    table: Any = datasets.Dataset.from_dict(COLUMNS)
    if kind == "IterableDataset":
        table = table.to_iterable_dataset()
    elif kind == "split":
        table = datasets.DatasetDict({"test": table})["test"]
    examples = askance.load_examples(table, fields=FIELDS)
    assert [(each.id, each.input, each.output) for each in examples] == [
        ("1", "One.", "A"),
        ("2", "Two.", "B"),
        ("3", "Three.", "C"),
    ]
    assert [each.human_score("quality") for each in examples] == [1.0, None, 5.0]
    assert examples[0].metadata == {"source": "x"}


def test_a_data_set_is_evaluated_as_it_is() -> None:
    checklist = Checklist(questions=[Question(id="q", text="Is it short?", dimension="quality")])
    table = datasets.Dataset.from_dict(COLUMNS)
    found = askance.evaluate(
        table, checklist=checklist, model=ScriptedModel(lambda request: 0.9), field=FIELDS, no_cache=True
    )
    assert found.coverage.answered == 3


def test_nested_columns_and_lists_of_ratings_are_kept() -> None:
    rows = [{"id": "a", "input": "i", "output": "o", "human": {"quality": [1.0, 2.0]}, "metadata": {"document": "d"}}]
    example = askance.load_examples(datasets.Dataset.from_list(rows))[0]
    assert example.human == {"quality": (1.0, 2.0)} and example.metadata == {"document": "d"}


def test_all_splits_at_once_are_no_examples() -> None:
    splits = datasets.DatasetDict({"test": datasets.Dataset.from_dict(COLUMNS)})
    with pytest.raises(InputError, match=naming("several sets", "data['test']")):
        askance.load_examples(splits)


def test_a_data_set_on_the_hub_is_named_with_its_split(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def load_dataset(path: str, name: str | None, *, split: str) -> Any:
        asked.append((path, name, split))
        if path == "nobody/nothing":
            raise FileNotFoundError("Couldn't find it.\nMore.")
        return datasets.Dataset.from_dict(COLUMNS)

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    for name in ("hf:owner/data:test", "hf:owner/data/config:train[:10%]", "hf:data:test"):
        assert len(askance.load_examples(name, fields=FIELDS)) == 3
    assert asked == [("owner/data", None, "test"), ("owner/data", "config", "train[:10%]"), ("data", None, "test")]
    with pytest.raises(AskanceError, match=naming("nobody/nothing", "Hugging Face hub", "Couldn't find it")):
        askance.load_examples("hf:nobody/nothing:test")
    with pytest.raises(InputError, match=naming("hf:OWNER/NAME:SPLIT")):
        askance.load_examples("hf:owner/data")
    with pytest.raises(InputError, match=naming("hf:owner/data:test", "row 1", "'input'")):
        askance.load_examples("hf:owner/data:test")


def test_the_real_package_loads_files_in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "hub cache"))
    (tmp_path / "rows.jsonl").write_text('{"id": "a", "input": "i", "output": "o"}\n', encoding="utf-8")
    rows = hub_rows(str(tmp_path), None, "train")
    assert [each.id for each in askance.load_examples(rows)] == ["a"]
    with pytest.raises(AskanceError, match="cannot be had"):
        hub_rows(str(tmp_path), None, "nothing")
