"""LMUnit's Table 4 on a network of two layers: the made-up orders, and every way of asking has its row."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from askance.experiments.reproduce import lmunit_rationales
from askance.experiments.reproduce.lmunit_rationales import GOODS, made

from ...training.conftest import random_llama

TEMPLATE = (
    "{% for each in messages %}{{ each['role'] }} {{ each['content'] }} end "
    "{% endfor %}{% if add_generation_prompt %}assistant{% endif %}"
)


def goods(text: str) -> list[str]:
    return [each for each in text.replace(",", " ").replace(".", " ").split() if each in GOODS]


def test_half_of_the_answers_leave_something_out_and_the_reasons_say_what() -> None:
    examples, verdicts = made(160)
    parts = [each.metadata["split"] for each in examples]
    assert [parts.count(each) for each in ("development", "validation", "test")] == [160, 60, 80]
    assert 130 < sum(bool(each.answer) for each in verdicts) < 170
    lengths = set()
    for example, verdict in zip(examples, verdicts, strict=True):
        wanted, sent = goods(example.input), goods(example.output or "")
        assert verdict.answer == (set(wanted) <= set(sent))
        assert verdict.explanation == ", ".join(f"{each} {'yes' if each in sent else 'no'}" for each in wanted) + "."
        lengths.add((len(sent) - len(wanted), verdict.answer))
    assert {(0, True), (0, False)} < lengths, "how many there are does not tell"


def test_every_way_of_asking_has_its_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("peft")
    monkeypatch.setattr(lmunit_rationales, "VALIDATION", 12)
    monkeypatch.setattr(lmunit_rationales, "TEST", 16)
    monkeypatch.setattr(lmunit_rationales, "TOKENS", 6)
    base = random_llama(tmp_path / "base", TEMPLATE, further=("end", "Please", "We", "send", *GOODS), longest=192)
    out = tmp_path / "out.json"
    given = ["--folder", str(tmp_path / "scorers"), "--base", str(base), "--size", "24", "--epochs", "1"]
    assert lmunit_rationales.main([*given, "--learning-rate", "2e-2", "--batch-size", "8", "-o", str(out)]) == 0
    found = json.loads(out.read_text())
    trained = found["trainings"]["answers and reasons"]
    names = {row["scorer"] for row in found["rows"]}
    before_dpo = {"answers and reasons, asked after a rationale, before DPO"}
    assert names - before_dpo == {
        "answers alone, asked at once",
        "answers and reasons, asked at once",
        "answers and reasons, asked after a rationale",
    }
    assert (before_dpo <= names) == (trained["rationales"]["kept"] == "after")
    assert (
        trained["training_items"]["rationale"] == 24
        and "rationale" not in found["trainings"]["answers alone"]["training_items"]
    )
    assert {row["n"] for row in found["rows"]} == {16} and found["outputs"] == 52
    assert lmunit_rationales.main([*given, "--learning-rate", "2e-2", "--batch-size", "8", "-o", str(out)]) == 0
    assert json.loads(out.read_text()) == found, "what is there is not trained again"
