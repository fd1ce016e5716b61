"""Data sets whose outputs have a unit test each, with people's score: FLASK, BiGGen-Bench and InFoBench (LMUnit A.2).

From the hub they come as LMUnit's authors published them: ``query``, ``response``, ``natural_unit_test``, and where
there are any ``rubric`` and ``reference_answer``. The test is in ``metadata``, from which :func:`own_test` makes a
checklist.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from ...prompts.checklist import Checklist, Question
from ...prompts.errors import InputError
from ...prompts.examples import Example
from .rows import Hub, Row, Source, example, own_example, rows_of

SCORE = "score"
"""The dimension that people scored, by the example's own test."""
TEST, RUBRIC, REFERENCE = "natural_unit_test", "rubric", "reference_answer"
"""Columns of the test, and fields of the metadata."""
_FILE = "JSON or JSONL with query, response, natural_unit_test, "
FLASK = Hub("ContextualAI/Flask", "test", file=f"{_FILE}rubric, reference_answer, human_score")
BIGGEN = Hub(
    "ContextualAI/BigGenBench",
    "test",
    file=f"{_FILE}rubric, reference_answer, human_score, or the authors' human_eval with input, score_rubric",
)
INFOBENCH = Hub("ContextualAI/InfoBenchExpertSplit", "test", file=f"{_FILE}label")


def load_flask(source: Source = None) -> list[Example]:
    """Load FLASK (Ye et al. 2023), rated from 1 to 5 by people (``human_score``), in the order of the file."""
    return _load(source, FLASK, "flask", "human_score")


def load_biggen(source: Source = None) -> list[Example]:
    """Load BiGGen-Bench (Kim et al. 2024), rated from 1 to 5 by people, in the order of the file.

    Also read is the authors' own form (``prometheus-eval/BiGGen-Bench-Results``, split ``human_eval``), with
    ``system_prompt``, ``input`` and a ``score_rubric`` whose ``criteria`` are the test. A score of -1 is of nobody, so
    its row is left out.
    """
    return _load(source, BIGGEN, "biggen", "human_score")


def load_infobench(source: Source = None) -> list[Example]:
    """Load the expert split of InFoBench (Qin et al. 2024): whether experts found a decomposed question fulfilled."""
    return _load(source, INFOBENCH, "infobench", "label")


def own_test(tested: Example, *fields: str) -> Checklist:
    """The checklist of an example's own test, with these of its ``fields`` (:data:`RUBRIC`, :data:`REFERENCE`).

    Raises InputError where the example has no test, or the test lacks one of the fields.
    """
    for field in (TEST, *fields):
        if not tested.metadata.get(field):
            raise InputError(f"Example '{tested.id}': its metadata have no '{field}'.")
    rubric, reference = (tested.metadata[name] if name in fields else None for name in (RUBRIC, REFERENCE))
    text = tested.metadata[TEST]
    return Checklist(questions=(Question(id="test", text=text, dimension=SCORE, rubric=rubric, reference=reference),))


def _load(source: Source, home: Hub, name: str, column: str) -> list[Example]:
    rows = enumerate(rows_of(source, home))
    return [each for number, row in rows if (each := _example(row, f"{name}-{number}", column)) is not None]


def _example(row: Row, name: str, column: str) -> Example | None:
    if row.has("score_rubric"):
        row = _as_query(row)
    elif not row.has("query"):
        return own_example(row, (SCORE,))
    given = row[column]
    ratings = [each for each in (given if isinstance(given, Sequence) else [given]) if each >= 0]
    if not ratings:
        return None
    if column == "label":
        if ratings[0] not in (0, 1):
            raise InputError(f"{row.where}: the label is {ratings[0]!r}; it is 1 where the test is fulfilled, else 0.")
        ratings = [bool(ratings[0])]
    query = row.text("query")
    made = example(row, name, query, row.text("response"), {SCORE: ratings}, document=_hash(query))
    test = {TEST: row.text(TEST)} | {field: row.text(field) for field in (RUBRIC, REFERENCE) if row.has(field)}
    return made.model_copy(update={"metadata": made.metadata | test})


def _as_query(row: Row) -> Row:
    """A row in the form of BiGGen-Bench's authors, in that of LMUnit's."""
    rubric = row["score_rubric"]
    names = [f"score{level}_description" for level in range(1, 6)]
    if not isinstance(rubric, Mapping) or any(not rubric.get(name) for name in ("criteria", *names)):
        raise InputError(f"{row.where}: 'score_rubric' needs criteria, {', '.join(names)}.")
    asked = [row.text(name) for name in ("system_prompt", "input") if row.has(name)]
    told = [f"Score {level}: {rubric[name]}" for level, name in enumerate(names, 1)]
    values: dict[str, Any] = {"query": "\n\n".join(asked), TEST: rubric["criteria"], RUBRIC: "\n".join(told)}
    return Row(row.where, {**row.values, **values})


def _hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:12]
