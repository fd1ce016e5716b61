"""The two prompts of the shared data, moved to a smaller model, and the rules that outputs then keep.

``rows`` writes what a migration reads: inputs of the shared data with the old outputs, which the embedded 1.5B model wrote
(``moved_prompts_old.jsonl``; ``askance generate``, temperature 0, at most 220 tokens). ``count`` counts by the rules of
``shared/migrate/rules.py``, which no migration sees::

    python -m tests.measured.moved_prompts rows news news.jsonl
    askance migrate news.jsonl --prompt ../shared/migrate/news.md --kind generator --source recorded --run RUN \\
        --target local/qwen2.5-coder-0.5b-instruct --max-output-tokens 220 --max-iterations 1 --yes
    python -m tests.measured.moved_prompts count news RUN
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from askance.experiments.command_line import RESULTS
from askance.memory.certificate_file import TARGETS
from askance.stats.pass_fail import rate
from askance.stats.resampling import Statistic

SHARED = Path(__file__).resolve().parents[3] / "shared"
OLD = RESULTS / "moved_prompts_old.jsonl"
_NAME = re.compile(r"(?<![.!?:\"“]\s)(?<!^)\b[A-Z][a-z]{2,}\b", re.MULTILINE)
_NUMBER = re.compile(r"\d[\d.,]*\d|\d")


def write_rows(prompt: str, file: Path) -> None:
    """Write the examples of a migration: 30 teach, 24 accept, 60 test, 30 of them those that were counted by hand."""
    data = json.loads((SHARED / "migrate" / "inputs.json").read_text(encoding="utf-8"))[prompt]["data"]
    shared = {each["id"]: each for each in _rows(SHARED / "data" / data)}
    with file.open("w", encoding="utf-8") as out:
        for old in (each for each in _rows(OLD) if each["prompt"] == prompt):
            row = shared[old["id"]]
            given = f"Article: {row['input']}"
            if prompt == "reply":
                given = f"Question: {row['input']}\n\nPassage: {row['output']}"
            told = {"id": old["id"], "input": given, "output": old["output"], "metadata": {"split": old["split"]}}
            out.write(json.dumps(told, ensure_ascii=False) + "\n")


def rules_of(prompt: str) -> Callable[[str], Mapping[str, bool]]:
    """The function that counts the rules of ``news`` or ``reply``."""
    spec = importlib.util.spec_from_file_location("rules", SHARED / "migrate" / "rules.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    counted: Callable[[str], Mapping[str, bool]] = getattr(module, prompt)
    return counted


def unfounded(output: str, given: str) -> int:
    """Number of different names and numbers in an output that its input lacks."""
    names = {each for each in _NAME.findall(output) if each not in given}
    return len(names | {each for each in _NUMBER.findall(output) if each not in given})


def row(name: str, outputs: Mapping[str, str], inputs: Mapping[str, str], count: Any) -> str:
    """One line of the table: rules kept, outputs that keep all, names and numbers without a source."""
    kept = [count(outputs[each]) for each in inputs if each in outputs]
    share = sum(map(sum, (each.values() for each in kept))) / sum(map(len, kept))
    whole = rate([float(all(each.values())) for each in kept])
    new = sum(unfounded(outputs[each], inputs[each]) for each in inputs if each in outputs) / len(kept)
    worst = {rule: sum(each[rule] for each in kept) / len(kept) for rule in kept[0]}
    low = ", ".join(f"{rule} {part:.2f}" for rule, part in sorted(worst.items(), key=lambda item: item[1])[:4])
    return f"| {name} | {share:.2f} | {_interval(whole)} | {new:.2f} | {low} |"


def _interval(found: Statistic) -> str:
    return f"{found.value:.2f} ({found.low:.2f} to {found.high:.2f})"


def table(prompt: str, run: Path) -> list[str]:
    """The rows of all sides, on the test examples."""
    count = rules_of(prompt)
    examples = _rows(run / "inputs" / "examples.jsonl")
    inputs = {each["id"]: each["input"] for each in examples if each["metadata"]["split"] == "test"}
    found = ["| | rules kept | outputs that keep all | new names and numbers | least kept |", "|---|---|---|---|---|"]
    old = {each["id"]: each["output"] for each in _rows(run / "outputs.jsonl")}
    found.append(row("old model, old prompt", old, inputs, count))
    for target in sorted((run / TARGETS).iterdir()):
        by_version: dict[int, dict[str, str]] = {}
        for each in _rows(target / "verdicts" / "outputs.jsonl"):
            if each["output"] is not None:
                by_version.setdefault(each["version"], {})[each["example"]] = each["output"]
        for version in dict.fromkeys((min(by_version), max(by_version))):
            side = "old prompt" if version == min(by_version) else "new prompt"
            found.append(row(f"{target.name}, {side}", by_version[version], inputs, count))
    return found


def _rows(file: Path) -> Sequence[Any]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the rows, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["rows", "count"])
    parser.add_argument("prompt", choices=["news", "reply"])
    parser.add_argument("place", type=Path, help="file of the rows, or directory of the migration")
    given = parser.parse_args(arguments)
    if given.what == "rows":
        write_rows(given.prompt, given.place)
    else:
        print("\n".join(table(given.prompt, given.place)))


if __name__ == "__main__":
    main()
