"""The two prompts of the shared data, moved to a smaller model, and the rules that outputs then keep.

``rows`` writes what a migration reads: inputs of the shared data with the old outputs, which the embedded 1.5B model wrote
(``moved_prompts_old.jsonl``; ``askance generate``, temperature 0, at most 220 tokens). ``count`` counts by the rules of
``shared/migrate/rules.py``, which no migration sees::

    python -m tests.measured.moved_prompts rows news news.jsonl
    askance migrate news.jsonl --prompt ../shared/migrate/news.md --kind generator --source recorded --run RUN \\
        --target local/qwen2.5-coder-0.5b-instruct --max-output-tokens 220 --max-iterations 1 --yes
    python -m tests.measured.moved_prompts count news RUN
    python -m tests.measured.moved_prompts content news RUN --judge local/qwen2.5-coder-1.5b-instruct --store content.db

Rules see form alone. ``content`` adds how near each side stays to its input, by code, and which of the target's two
outputs the judge prefers, the old prompt's or the new one's, in both orders.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import askance
from askance.agents.measures.values import values_of
from askance.agents.pairwise import AS_IT_IS, SWAPPED, PairEvaluator, ordered_examples, pair_id, pairwise_prompt
from askance.experiments.command_line import RESULTS
from askance.memory.certificate_file import TARGETS
from askance.optimizer.migration.root import BETTER
from askance.prompts.checklist import Checklist, ComputedMeasure
from askance.prompts.examples import Example
from askance.prompts.preferences import Preference
from askance.stats.pass_fail import rate
from askance.stats.resampling import Resampling, Statistic, mean_with_interval

SHARED = Path(__file__).resolve().parents[3] / "shared"
OLD = RESULTS / "moved_prompts_old.jsonl"
OLD_PROMPT, NEW_PROMPT = "old prompt", "new prompt"
NEARNESS = ("similarity", "mean_supported", "word_pairs_found", "covered")
"""Measures of an output against its input that the table of contents shows."""
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


@dataclass(frozen=True)
class Sides:
    """Test inputs of a migration by id, and the outputs of each side by its name."""

    inputs: Mapping[str, str]
    outputs: Mapping[str, Mapping[str, str]]

    @classmethod
    def of(cls, run: Path) -> Sides:
        """Read the run: the old model's outputs, then each target's with the old prompt and with the last one."""
        examples = _rows(run / "inputs" / "examples.jsonl")
        inputs = {each["id"]: each["input"] for each in examples if each["metadata"]["split"] == "test"}
        outputs = {"old model, old prompt": {each["id"]: each["output"] for each in _rows(run / "outputs.jsonl")}}
        for target in sorted((run / TARGETS).iterdir()):
            by_version: dict[int, dict[str, str]] = {}
            for output in _rows(target / "verdicts" / "outputs.jsonl"):
                if output["output"] is not None:
                    by_version.setdefault(output["version"], {})[output["example"]] = output["output"]
            for version in dict.fromkeys((min(by_version), max(by_version))):
                side = OLD_PROMPT if version == min(by_version) else NEW_PROMPT
                outputs[f"{target.name}, {side}"] = by_version[version]
        return cls(inputs, outputs)


def table(prompt: str, run: Path) -> list[str]:
    """The rows of all sides, on the test examples."""
    sides, count = Sides.of(run), rules_of(prompt)
    head = ["| | rules kept | outputs that keep all | new names and numbers | least kept |", "|---|---|---|---|---|"]
    return head + [row(name, outputs, sides.inputs, count) for name, outputs in sides.outputs.items()]


def content(run: Path, judge: str, store: Path, limit: int) -> list[str]:
    """Nearness of each side's outputs to their inputs, and the share of inputs whose new output is preferred."""
    sides = Sides.of(run)
    found = [f"| | {' | '.join(NEARNESS)} |", "|---|" + "---|" * len(NEARNESS)]
    measures = [ComputedMeasure.model_validate({"id": n, "measure": f"{n}(input)", "range": [0, 1]}) for n in NEARNESS]
    for name, outputs in sides.outputs.items():
        rows = [
            Example(id=key, input=given, output=spoken(outputs[key]))
            for key, given in sides.inputs.items()
            if key in outputs
        ]
        values = values_of(measures, rows)
        means = [fmean(v for v in values[each.id].values() if isinstance(v, float)) for each in measures]
        found.append(f"| {name} | " + " | ".join(f"{mean:.2f}" for mean in means) + " |")
    for name, outputs in sides.outputs.items():
        start = sides.outputs.get(name.replace(NEW_PROMPT, OLD_PROMPT))
        if limit and name.endswith(NEW_PROMPT) and start is not None:
            share = preferred(sides.inputs, start, outputs, judge, store, limit)
            found.append(f"{name}: preferred to the old prompt's on {_interval(share)} of {share.n} inputs")
    return found


def spoken(output: str) -> str:
    """The texts of an output: the strings of its JSON where it is JSON, else all of it."""
    try:
        parsed = json.loads(output)
    except ValueError:
        return output
    values = parsed.values() if isinstance(parsed, dict) else []
    return " ".join(value for value in values if isinstance(value, str)) or output


def preferred(
    inputs: Mapping[str, str], start: Mapping[str, str], new: Mapping[str, str], judge: str, store: Path, limit: int
) -> Statistic:
    """Share of the inputs whose new output the judge prefers; half where its two orders disagree."""
    ids = [each for each in inputs if each in start and each in new][:limit]
    pairs = [
        Preference(id=each, input=inputs[each], output_a=start[each], output_b=new[each], preferred="tie")
        for each in ids
    ]
    judged = askance.evaluate(
        [shown for pair in pairs for shown in ordered_examples(pair, swap=True)],
        model=judge,
        checklist=Checklist.model_validate({"questions": [{"id": "better", "text": BETTER}]}),
        prompt=pairwise_prompt(),
        evaluator=PairEvaluator,
        mode="each",
        store=str(store),
    )
    first = {verdict.example: verdict.answer for verdict in judged.verdicts}
    shares = []
    for each in ids:
        start_first, new_first = first[pair_id(each, AS_IT_IS)], first[pair_id(each, SWAPPED)]
        known = start_first is not None and new_first is not None
        shares.append((float(not start_first) + float(bool(new_first))) / 2 if known else None)
    return mean_with_interval(shares, Resampling(None), "no pair was compared")


def _rows(file: Path) -> Sequence[Any]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the rows, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["rows", "count", "content"])
    parser.add_argument("prompt", choices=["news", "reply"])
    parser.add_argument("place", type=Path, help="file of the rows, or directory of the migration")
    parser.add_argument("--judge", default="local/qwen2.5-coder-1.5b-instruct", help="model that compares outputs")
    parser.add_argument("--store", type=Path, default=Path("content.db"), help="file that keeps its answers")
    parser.add_argument("--limit", type=int, default=60, help="inputs that are compared; 0: none")
    given = parser.parse_args(arguments)
    if given.what == "rows":
        write_rows(given.prompt, given.place)
    elif given.what == "content":
        print("\n".join(content(given.place, given.judge, given.store, given.limit)))
    else:
        print("\n".join(table(given.prompt, given.place)))


if __name__ == "__main__":
    main()
