"""Writes ``tests/data/onnx_scorer``: a tiny scorer that is read without torch, and what torch says by the same weights.

In an environment as that of ``make test-train``::

    python -m askance.tests.training.write_onnx_scorer
"""

from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from askance.evaluation.evaluate import evaluate
from askance.models.trained.scorer_file import read_scorer
from askance.prompts.checklist import dump_checklist
from askance.prompts.text_files import write_whole
from askance.training.train import train

from .conftest import CHECKLIST, SMALL, made, random_bert, said

PLACE = Path(__file__).parents[1] / "data/onnx_scorer"


def main() -> None:
    """Train, ask by torch, write as ONNX."""
    examples = made(120)
    with TemporaryDirectory() as folder:
        base, place = random_bert(Path(folder) / "base", width=8, longest=32), Path(folder) / "scorer"
        given = {**SMALL, "longest": 16, "epochs": 20, "learning_rate": 1e-2}
        asked = [
            each.model_copy(update={"output": f"{each.output} " * times})
            for each, times in zip(examples[:6], (1, 1, 1, 2, 3, 4), strict=True)
        ]
        teach = {"checklist": CHECKLIST, "base": str(base), "output": place, "verdicts": said(examples)}
        train(examples, **teach, **given)
        verdicts = evaluate(asked, model=str(place), checklist=CHECKLIST, no_cache=True).verdicts
        train(examples, **teach, **given, onnx=True)
        PLACE.mkdir(exist_ok=True)
        for name in ("model.onnx", "tokenizer.json"):
            shutil.copy(place / name, PLACE)
        read_scorer(place).model_copy(update={"base": "random"}).write(PLACE)
    write_whole(PLACE / "checklist.yaml", dump_checklist(CHECKLIST))
    write_whole(
        PLACE / "examples.jsonl", (each.model_dump_json(include={"id", "input", "output"}) + "\n" for each in asked)
    )
    write_whole(PLACE / "said.json", "[" + ", ".join(str(each.p_yes) for each in verdicts) + "]\n")


if __name__ == "__main__":
    main()
