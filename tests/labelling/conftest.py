"""A small world to label: replies, of which some promise refunds, and two judges' verdicts on them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from askance.labelling.desk import Desk
from askance.labelling.labels_file import LabelsFile, known_entries, with_numbers
from askance.labelling.next_output import Queue
from askance.prompts.checklist import Checklist, Question
from askance.prompts.examples import Example, load_examples
from askance.prompts.verdicts import Verdict, dump_verdicts
from tests.report.conftest import browser, port  # noqa: F401
from tests.worlds import share

CHECKLIST = Checklist(
    task="Answer the letter.",
    questions=[
        Question(id="promises", text="Does it promise a refund?", good="no"),
        Question(id="answers", text="Does it answer?"),
    ],
)


def examples(size: int) -> list[Example]:
    return [Example(id=f"e{n:02}", input=f"Letter {n}", output=f"Reply number {n} about {n % 7}") for n in range(size)]


def is_good(example: str) -> bool:
    return share("good", example) < 0.5


def verdicts(of: Sequence[Example], model: str = "m/one", wrong: float = 0.0) -> list[Verdict]:
    """A judge that is wrong on both questions about a share of the outputs."""
    found = []
    for each in of:
        says_good = is_good(each.id) != (share(model, each.id) < wrong)
        p_good = 0.6 + 0.3 * share("sure", model, each.id)
        p_good = p_good if says_good else 1 - p_good
        for question in CHECKLIST.questions:
            p_yes = question.p_good(p_good)
            found.append(Verdict(each.id, question.id, model, "0123456789abcdef", p_yes >= 0.5, p_yes, "logprob"))
    return found


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with data, a checklist and two judges' verdicts."""
    many = examples(30)
    rows = [{**each.model_dump(exclude_defaults=True), "shop": "north"} for each in many]
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "checklist.json").write_text(CHECKLIST.model_dump_json())
    (tmp_path / "one.jsonl").write_text(dump_verdicts(verdicts(many)))
    (tmp_path / "two.jsonl").write_text(dump_verdicts(verdicts(many, "m/two", 0.4)))
    return tmp_path


@pytest.fixture
def sit_down(tmp_path: Path) -> Any:
    """Opens a desk on examples; the file is let go at the end."""
    opened: list[LabelsFile] = []

    def sit(
        of: Sequence[Example],
        rater: str = "anna",
        opinions: Any = None,
        order: str = "auto",
        dimension: str = "overall",
        steps: Any = None,
    ) -> Desk:
        for each in opened:
            each.close()
        file = LabelsFile(tmp_path / "out.labels.jsonl")
        opened.append(file)
        entries = known_entries(file.path, with_numbers(file.path, file.open(), steps), of)
        asked = [each for each in of if each.output is not None]
        queue = Queue(order, asked, opinions, 42)
        return Desk(of, entries, file, queue, rater, dimension, CHECKLIST.questions, steps)

    yield sit
    for each in opened:
        each.close()


@pytest.fixture
def read_back(tmp_path: Path) -> Callable[[Desk], dict[str, Example]]:
    """The labelled data of a desk, as other commands read them."""

    def read(desk: Desk) -> dict[str, Example]:
        file = tmp_path / "labelled.jsonl"
        file.write_text(desk.to_jsonl(), encoding="utf-8")
        return {each.id: each for each in load_examples(file, need_output=False)}

    return read
