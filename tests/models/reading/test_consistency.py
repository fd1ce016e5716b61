"""The fastest settings that give the same prompt the same answer are taken, and kept for this processor."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from askance.models.reading import consistency
from askance.models.reading.consistency import ALONE, ROWS, ReaderSettings, Tried, consistent_reader, known_choice
from askance.models.reading.reading_model import TOGETHER, Reader
from askance.prompts.errors import InputError
from tests.said import naming, says

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from askance.models.base import Message
    from askance.prompts.prompt import Framing

Fault = Callable[[int, int, int], float]
"""Error of a log-probability by the number of rows read at once, the row, and the number of prompts read since the last forgetting."""


class Single:
    """A reader of single prompts whose log-probabilities have a fault."""

    def __init__(self, fault: Fault) -> None:
        self.fault, self.read = fault, 0

    def tokens(self, messages: Sequence[Message], framing: Framing | None) -> tuple[list[int], list[int]]:
        assert framing is not None
        text = messages[-1][1]
        return [hash(word) % 1000 for word in text.split()], [len(framing.before.split())]

    def next_token(self, tokens: Sequence[int], ends: Sequence[int]) -> NDArray[np.float32]:
        return self._row(tokens, 1, 0)

    def text(self, token: int) -> str:
        return str(token)

    def forget(self) -> None:
        self.read = 0

    def _row(self, tokens: Sequence[int], rows: int, row: int) -> NDArray[np.float32]:
        self.read += 1
        exact = -np.arange(1, 31, dtype=np.float32) - np.float32(sum(tokens) % 7)
        return exact + np.float32(self.fault(rows, row, self.read))


class Abreast(Single):
    """The same side by side, filled up as a real one is."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault)
        self.rows = 99

    def next_tokens(self, prompts: Sequence[Sequence[int]], ends: Sequence[int]) -> list[NDArray[np.float32]]:
        if self.rows == ALONE:
            return [self._row(each, 1, 0) for each in prompts]
        rows = len(prompts) + -len(prompts) % self.rows
        return [self._row(each, rows, row) for row, each in enumerate(prompts)]


def sound(rows: int, row: int, read: int) -> float:
    return 0.0


def of_odd_rows(rows: int, row: int, read: int) -> float:
    """As on processors with bfloat16: the row that is left over of a tile of two is rounded otherwise."""
    return 0.057 * (rows % 2 == 1 and row == rows - 1)


def of_few_rows(rows: int, row: int, read: int) -> float:
    return 0.01 * (rows < TOGETHER)


def of_the_row(rows: int, row: int, read: int) -> float:
    return 0.01 * row


def of_the_order(rows: int, row: int, read: int) -> float:
    """What was read before leaves something."""
    return 0.001 * (read == 1)


def of_every_call(rows: int, row: int, read: int) -> float:
    return 1e-5 * read


def no_number(rows: int, row: int, read: int) -> float:
    return float("nan")


@pytest.mark.parametrize(
    ("fault", "rows"), [(sound, 1), (of_odd_rows, 2), (of_few_rows, TOGETHER), (of_the_row, ALONE)]
)
def test_prompts_are_filled_up_until_no_answer_depends_on_those_beside_it(
    fault: Fault, rows: int, tmp_path: Path
) -> None:
    reader = consistent_reader("openvino/m", {"fast": partial(Abreast, fault)}, tmp_path / "memo.json", "pytest")
    assert isinstance(reader, Abreast) and reader.rows == rows
    choice = known_choice(tmp_path / "memo.json", "pytest")
    assert choice is not None and (choice.chosen.rows, choice.chosen.difference) == (rows, 0.0)
    assert [each.rows for each in choice.rejected] == list(ROWS[: ROWS.index(rows)])
    assert all(each.difference > 0 and each.precision == "fast" for each in choice.rejected)


@pytest.mark.parametrize("fault", [of_the_order, of_every_call, no_number])
@pytest.mark.parametrize("kind", [Single, Abreast])
def test_where_no_filling_up_helps_the_next_precision_is_taken(
    kind: type[Single], fault: Fault, tmp_path: Path
) -> None:
    made: list[str] = []

    def make(precision: str, fault: Fault) -> Reader:
        made.append(precision)
        return kind(fault)

    makers = {
        "half": partial(make, "half", fault),
        "single": partial(make, "single", sound),
        "slow": partial(make, "slow", sound),
    }
    reader = consistent_reader("openvino/m", makers, tmp_path / "memo.json", "pytest")
    assert isinstance(reader, kind) and reader.fault is sound
    choice = known_choice(tmp_path / "memo.json", "pytest")
    assert choice is not None and choice.chosen.precision == "single"
    assert {each.precision for each in choice.rejected} == {"half"}
    made.clear()
    again = consistent_reader("openvino/m", makers, tmp_path / "memo.json", "pytest")
    assert made == ["single"], "the choice is kept: nothing faster is made, and nothing is tried again"
    assert getattr(again, "rows", None) == getattr(reader, "rows", None)


def test_where_nothing_holds_the_model_is_refused_and_nothing_is_kept(tmp_path: Path) -> None:
    makers = {"half": partial(Abreast, of_every_call), "single": partial(Abreast, of_every_call)}
    with pytest.raises(InputError, match=naming("openvino/m", "same answer", "local/")):
        consistent_reader("openvino/m", makers, tmp_path / "memo.json", "pytest")
    assert not (tmp_path / "memo.json").exists()


def test_a_choice_holds_for_its_processor_and_version_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memo, cpu = tmp_path / "memo.json", tmp_path / "cpuinfo"
    monkeypatch.setattr(consistency, "PROCESSOR", cpu)
    told = "vendor_id\t: V\ncpu family\t: 6\nmodel\t\t: 207\nmodel name\t: V 9\nflags\t\t: {}\n\nflags\t: others\n"
    cpu.write_text(told.format("avx2 avx512_bf16"), encoding="utf-8")
    consistent_reader("openvino/m", {"half": partial(Abreast, sound)}, memo, "pytest")
    assert known_choice(memo, "pytest") is not None and known_choice(memo, "numpy") is None
    with monkeypatch.context() as patch:
        patch.setattr("importlib.metadata.version", lambda package: "another")
        assert known_choice(memo, "pytest") is None
    cpu.write_text(told.format("avx2 avx512_bf16 amx_bf16"), encoding="utf-8")
    assert known_choice(memo, "pytest") is None
    consistent_reader("openvino/m", {"half": partial(Abreast, of_odd_rows)}, memo, "pytest")
    assert [len(each["rejected"]) for each in json.loads(memo.read_text(encoding="utf-8")).values()] == [0, 1]


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"a": 1}', "null"])
def test_a_damaged_memo_is_made_anew(damage: str, tmp_path: Path) -> None:
    memo = tmp_path / "memo.json"
    memo.write_text(damage, encoding="utf-8")
    assert known_choice(memo, "pytest") is None
    consistent_reader("onnx/m", {"integers": partial(Single, sound)}, memo, "pytest")
    assert known_choice(memo, "pytest") is not None


def test_a_choice_says_what_it_is_what_it_costs_and_why() -> None:
    half, single = Tried("bfloat16", 1, 0.051, 0.0571), Tried("single precision", 2, 0.0724, 0.0)
    alone = ReaderSettings(Tried("bfloat16", 1, 0.051, 0.0))
    assert says(alone, "bfloat16", "0.051 s") and not says(alone, "side")
    together = ReaderSettings(single, (half,))
    assert says(together, "single precision", "multiples of 2", "0.072 s", "0.051 s", "0.057")
    assert says(Tried("bfloat16", ALONE, 0.1, 0.0).settings, "bfloat16", "one prompt")
