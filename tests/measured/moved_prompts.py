"""Count the rules of the two prompts of the shared data that the outputs of a migration keep, whatever it found itself.

The rules are those of ``shared/migrate/rules.py``, which no migration sees::

    python -m tests.measured.moved_prompts news RUN
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from askance.memory.certificate_file import TARGETS
from askance.stats.pass_fail import rate
from askance.stats.resampling import Statistic

SHARED = Path(__file__).resolve().parents[3] / "shared"
_NAME = re.compile(r"(?<![.!?:\"“]\s)(?<!^)\b[A-Z][a-z]{2,}\b", re.MULTILINE)
_NUMBER = re.compile(r"\d[\d.,]*\d|\d")


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
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("prompt", choices=["news", "reply"])
    parser.add_argument("run", type=Path)
    given = parser.parse_args(arguments)
    print("\n".join(table(given.prompt, given.run)))


if __name__ == "__main__":
    main()
