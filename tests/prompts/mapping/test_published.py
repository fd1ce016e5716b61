"""Files in published forms: read as they are, or by the options that the first error gives."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from click.testing import CliRunner

from askance import import_traces, load_examples
from askance.commands.exchange import import_command
from askance.optimizer.weights.judged_pairs import load_pairs
from askance.prompts.errors import InputError
from askance.prompts.examples import Example, ExampleTable
from askance.prompts.field_map import parse_field_map
from askance.prompts.human_feedback import parse_label_scale, parse_labels
from askance.prompts.mapping.published import FORMS
from askance.prompts.preferences import Preference

FOLDER = Path(__file__).parent / "published"
EXPECTED: dict[str, dict[str, Any]] = json.loads((FOLDER / "expected.json").read_text("utf-8"))
AS_IT_IS = {
    *("langfuse_traces.json", "langfuse_traces.csv", "langfuse_observations.json", "langfuse_dataset_items.json"),
    *("alpacaeval_annotations.json", "mtbench_human.jsonl", "llmbar.json", "judgebench.jsonl", "hh.jsonl", "trl.jsonl"),
    *("inspect.eval", "oaieval_samples.jsonl", "braintrust.json"),
}
"""Read without an option; of all others the first error gives the options."""


@pytest.fixture(params=EXPECTED)
def published(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    name = str(request.param)
    if name != "inspect.eval":
        return Path(shutil.copy(FOLDER / name, tmp_path / name))
    samples = json.loads((FOLDER / "inspect.json").read_text("utf-8"))["samples"]
    with ZipFile(tmp_path / name, "w") as archive:
        archive.writestr("header.json", '{"version": 2}')
        for each in samples:
            archive.writestr(f"samples/{each['id']}_epoch_1.json", json.dumps(each))
    return tmp_path / name


def first_of(path: str, expected: dict[str, Any], line: str = "") -> Example | Preference:
    """The first example or pair that a command reads with the options of a line."""
    given: dict[str, list[str]] = {"--field": [], "--labels": [], "--label-scale": []}
    words = shlex.split(line)
    path = words.pop(0) if words and not words[0].startswith("--") else path
    while words:
        option = words.pop(0)
        values = [words.pop(0) for _ in range(2 if option == "--human-scale" else 1)]
        given.setdefault(option, []).extend(values)
    fields, labels = parse_field_map(given["--field"]), parse_labels(given["--labels"])
    if "pairs" in expected:
        return load_pairs(path, fields=fields, labels=labels)[0]
    scale = parse_label_scale(next(iter(given["--label-scale"]), None))
    examples: ExampleTable = load_examples(
        path, fields=fields, labels=labels, label_scale=scale, need_output="output" in expected, remarks=False
    )
    return examples[0]


def check(row: Example | Preference, expected: dict[str, Any], *, human: bool = True) -> None:
    if isinstance(row, Preference):
        assert "pairs" in expected
        output: str | None = row.output_a if row.preferred == "a" else row.output_b
        given = {}
    else:
        output = row.output
        given = {name: [*each] for name, each in row.human.items()}
    assert (row.input, output) == (expected["input"], expected.get("output"))
    assert given == expected.get("human", {}) or not human


def test_the_first_error_gives_the_options_that_read_the_file(published: Path) -> None:
    expected = EXPECTED[published.name]
    try:
        row = first_of(str(published), expected)
    except InputError as error:
        said = str(error)
        line = re.search(r" This would read it: (.*)$", said)
        assert line or f"askance import {published} -o examples.jsonl" in said
        row = first_of(str(published), expected, line[1]) if line else load_examples(import_traces(published).rows)[0]
    else:
        said = ""
    assert (published.name in AS_IT_IS) == (said == "")
    check(row, expected, human=said != "")


def test_import_makes_examples_of_it(published: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    done = CliRunner().invoke(import_command, [str(published), "--yes", "-o", str(out)])
    assert done.exit_code == 0, done.output
    check(first_of(str(out), EXPECTED[published.name]), EXPECTED[published.name])


def test_a_form_can_be_forced_and_a_wrong_one_is_refused(tmp_path: Path) -> None:
    path = shutil.copy(FOLDER / "ragas.jsonl", tmp_path / "rows.jsonl")
    assert CliRunner().invoke(import_command, [str(path), "--yes", "--from", "ragas"]).exit_code == 0
    items = [str(FOLDER / "langfuse_dataset_items.json"), "--yes", "--from", "langfuse"]
    assert CliRunner().invoke(import_command, items).exit_code == 0
    done = CliRunner().invoke(import_command, [str(path), "--yes", "--from", "squad"])
    assert "not as squad exports it; it has: user_input" in str(done.exception)


def test_forms_have_names_and_marks() -> None:
    assert all(each.marks and each.name == each.name.casefold() and each.title for each in FORMS)
