from __future__ import annotations

import json
from pathlib import Path

from askance.experiments.measured.document_subset import main, shorter_documents
from askance.optimizer.job import own_split
from askance.prompts.examples import Example, load_examples


def example(document: int, system: int) -> Example:
    return Example(
        id=f"{document}-{system}",
        input="word " * (document + 1),
        output="A summary.",
        human={"coherence": (float(document % 5 + 1),), "fluency": (3.0,)},
        metadata={"document": f"d{document}"},
    )


ALL = [example(document, system) for system in range(3) for document in range(12)]


def test_the_shorter_documents_come_with_all_their_examples_side_by_side() -> None:
    chosen = shorter_documents(ALL, documents=4, skip=2)
    assert [each.metadata["document"] for each in chosen] == [f"d{number}" for number in (2, 3, 4, 5) for _ in range(3)]


def test_the_file_brings_its_own_split_in_which_documents_stay_together(tmp_path: Path) -> None:
    data, out = tmp_path / "data.jsonl", tmp_path / "out.jsonl"
    data.write_text("".join(json.dumps(each.model_dump(exclude_defaults=True)) + "\n" for each in ALL))
    assert main([str(data), "-o", str(out), "--documents", "10", "--dimension", "coherence"]) == 0
    examples = load_examples(out)
    parts = own_split(examples)
    assert parts is not None and len(examples) == 30
    homes = {
        name: {each.metadata["document"] for each in examples if each.id in getattr(parts, name)}
        for name in ("development", "validation", "test")
    }
    assert sum(map(len, homes.values())) == 10, "no document is in two parts"
    assert all(set(each.human) == {"coherence"} for each in examples)


def test_a_dimension_that_nobody_rated_is_said(tmp_path: Path, capsys: object) -> None:
    data = tmp_path / "data.jsonl"
    data.write_text("".join(json.dumps(each.model_dump(exclude_defaults=True)) + "\n" for each in ALL))
    assert main([str(data), "-o", str(tmp_path / "out.jsonl"), "--dimension", "relevance"]) == 2
