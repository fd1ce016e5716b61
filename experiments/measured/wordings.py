"""What wording the questions anew for a smaller judge is worth: verdicts in common with its source, before and after.

Run ``python -m askance.experiments.measured.wordings`` (two embedded models, an hour of two busy cores or so). The 1.5B
model judges replies of the demo workshop by four house rules, and the 0.5B model is to judge like it. The rules are asked
about twice: as merits ("Does the reply avoid naming a price?") and as faults ("Does the reply name a price?"). Neither
model is told what reviewers said; what is measured is agreement with the source.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from ...evaluation.progress import watching
from ...memory.result_file import RunRecord
from ...memory.result_parts import ParityRecord
from ...optimizer.modes import migrate
from ...prompts.checklist import Checklist, Question
from ...prompts.examples import Example, load_examples
from ...prompts.prompt import Prompt
from ...runs import run_and_report
from ..command_line import RESULTS, says_errors, write_result

RESULT = RESULTS / "wordings.json"
SOURCE, TARGET = "local/qwen2.5-coder-1.5b-instruct", "local/qwen2.5-coder-0.5b-instruct"
SPLITS = ("development",) * 6 + ("validation", "test", "validation", "test", "validation", "test")
"""In turns, over the replies that speak of a rule's topic and over the others."""
TOPICS = {
    "date": r"ready|finished|done by|will be done",
    "price": r"euro|pound|cents|costs?\b|price",
    "gift": r"voucher|free\b|discount|present|gift|reduction|on the house|complimentary|for nothing",
    "repair": r"unscrew|tighten|turn the|spanner|grease|screw|loosen",
}
"""Words by which as many replies are chosen that speak of a topic as others; nothing is measured with them."""
PROMPT = Prompt("A customer wrote:\n{input}\n\nThe workshop replied:\n{output}\n\n{question}")
"""Short, as every example is read for every look at the wordings."""
RULES = {
    "date": ("avoid promising when the work will be finished", "promise when the work will be finished"),
    "price": ("avoid naming a price", "name a price"),
    "gift": (
        "avoid giving something away, such as a present, free work, a voucher or a discount",
        "give something away, such as a present, free work, a voucher or a discount",
    ),
    "repair": (
        "avoid telling the customer how to repair the bike without the workshop",
        "tell the customer how to repair the bike without the workshop",
    ),
}
"""By id: what a reply has to do, and the fault itself."""


def checklist(form: str, rules: Sequence[str]) -> Checklist:
    """House rules as ``merits`` or as ``faults``."""
    questions = [
        Question(id=name, text=f"Does the reply {fault}?", good="no")
        if form == "faults"
        else Question(id=name, text=f"Does the reply {merit}?")
        for name, (merit, fault) in RULES.items()
        if name in rules
    ]
    return Checklist(task="Answer a mail to a bicycle workshop.", questions=tuple(questions))


def replies(rules: Sequence[str], size: int) -> list[Example]:
    """Half of them speak of the rules' topics, as far as there are as many; split alike."""
    folder = Path(str(files("askance.prompts"))) / "demo" / "align"
    wanted = re.compile("|".join(TOPICS[rule] for rule in rules), re.IGNORECASE)
    sides: dict[bool, list[Example]] = {True: [], False: []}
    for each in load_examples(folder / "examples.jsonl"):
        sides[wanted.search(each.output or "") is not None].append(each)
    half = min(size // 2, len(sides[True]))
    chosen = []
    for side in sides.values():
        for place, each in enumerate(side[:half]):
            chosen.append(each.model_copy(update={"metadata": {"split": SPLITS[place % len(SPLITS)]}}))
    return chosen


def measure(form: str, given: argparse.Namespace) -> dict[str, Any]:
    """Migrate the questions in one form; what came of each."""
    data = replies(given.rules, given.size)
    options = {"update": "questions", "reference": "source", "explain": "never", "no_cache": True}
    job = migrate.prepare(data, checklist(form, given.rules), given.source, given.target, PROMPT, None, options)
    with watching(None, False) as watcher:
        record = run_and_report(job, given.runs / form, watcher).record
    return shown(record)


def shown(record: RunRecord) -> dict[str, Any]:
    """The parts of a result that are about wordings."""
    kept = {"question", "before", "after", "accepted", "reason", "gain", "bias", "tried"}
    return {
        "accepted": record.changed,
        "gate": [each.reason for each in (*record.accepted_edits, *record.rejected_edits)],
        "spearman_with_source": {
            split.split: {
                "baseline": None if split.before is None else split.before.to_dict(),
                "best": None if split.after is None else split.after.to_dict(),
                "gain": None if split.gain is None else split.gain.to_dict(),
            }
            for split in record.splits
        },
        "parity": {
            split: {side: _parity(row) for side, row in sides.items()} for split, sides in record.parity.items()
        },
        "wordings": [
            {name: value for name, value in each.to_dict().items() if name in kept} for each in record.wordings
        ],
        "calls": {name: role.calls for name, role in record.roles.items()},
    }


def _parity(row: ParityRecord) -> dict[str, Any]:
    return row.to_dict()


@says_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Measure both forms and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=100, help="Replies.")
    parser.add_argument("--rules", nargs="+", default=list(RULES), choices=list(RULES))
    parser.add_argument("--forms", nargs="+", default=["merits", "faults"], choices=["merits", "faults"])
    parser.add_argument("--source", default=SOURCE)
    parser.add_argument("--target", default=TARGET)
    parser.add_argument(
        "--runs", type=Path, default=Path("wordings-runs"), help="Where the runs are kept, to go on with."
    )
    parser.add_argument("--output", type=Path, default=RESULT)
    given = parser.parse_args(arguments)
    result: dict[str, Any] = {
        "source": given.source,
        "target": given.target,
        "replies": len(replies(given.rules, given.size)),
    }
    for form in given.forms:
        result[form] = measure(form, given)
        write_result(given.output, result)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
