"""The requirements of a migration: what outputs must keep, written down before a new model is measured by it.

Checks are free: rules that old outputs keep (``contract``) and clauses of the prompt that code can check (``clause``).
Questions are bought from the model that judges: about the clauses that no check decides, about people's comments, and
about what old outputs do and new ones do not (``contrast``). Each requirement names its origin, and the share of the
old outputs on development that keep it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...agents.checks import computed_verdicts
from ...agents.traces.call_checks import RECORDED as REPLAYED
from ...agents.updater import split_parts
from ...evaluation.contract.clauses import StatedRule, stated_rules
from ...evaluation.contract.found_rules import found_rules, never_rules, parity_rules, supported
from ...evaluation.contract.schemas import cut_check, json_values, keys_of, part_of, with_part, without_parts
from ...evaluation.contract.wording import KeyClause, clauses_of, key_clauses
from ...prompts.checklist import Checklist, ComputedCheck, Question
from ...prompts.errors import InputError
from ...prompts.examples import Example
from ...prompts.formatting import MOST_LISTED, names_text, percent
from ...prompts.prompt import Prompt
from ...prompts.text import shorten
from ...prompts.verdicts import Verdict
from .decision import PassTable

CLAUSE_CHARS = 60
"""Most characters of a clause in a sentence."""


@dataclass(frozen=True)
class WrittenRequirements:
    """Requirements, and the clauses of the prompt that are left to questions."""

    criteria: tuple[Question, ...]
    """Questions and checks."""
    to_ask: tuple[str, ...] = ()
    """Clauses of the prompt that no check decides as a whole."""
    notes: tuple[str, ...] = ()
    """Sentences on the user's own checks that old outputs fail, and on clauses that were not asked about."""
    like: Checklist | None = None
    """Checklist of the learned judge; its task and its words for yes and no are kept."""

    @property
    def uncovered(self) -> tuple[str, ...]:
        """Clauses of the prompt that no requirement comes from."""
        covered = {each.clause for each in self.criteria}
        return tuple(clause for clause in self.to_ask if clause not in covered)

    @property
    def remarks(self) -> tuple[str, ...]:
        """Sentences that a person should read before agreeing."""
        left = names_text(
            [f'"{shorten(" ".join(each.split()), CLAUSE_CHARS)}"' for each in self.uncovered], MOST_LISTED
        )
        return (*self.notes, *([f"No requirement covers these clauses; write some by hand: {left}"] if left else []))

    @property
    def checklist(self) -> Checklist:
        """The requirements as ``requirements.yaml`` holds them. Raises InputError where none of them counts."""
        if not any(each.weight for each in self.criteria):
            raise InputError(
                "No requirement was found: the old outputs share no form, and code can check no clause of the prompt. "
                "Give --judge, whose model writes questions, or requirements of your own (--requirements)."
            )
        found = Checklist(questions=self.criteria)
        return (
            found
            if self.like is None
            else found.model_copy(update={"task": self.like.task, "answers": self.like.answers})
        )

    def added(self, criteria: Iterable[Question]) -> WrittenRequirements:
        """Return the requirements with further ones. A requirement whose id is taken gets a number."""
        taken, new = {question.id for question in self.criteria}, list[Question]()
        for question in criteria:
            name, number = question.id, 1
            while name in taken:
                number += 1
                name = f"{question.id}-{number}"
            taken.add(name)
            new.append(question if name == question.id else question.model_copy(update={"id": name}))
        return replace(self, criteria=(*self.criteria, *new))


def free_requirements(
    prompt: Prompt,
    development: Sequence[Example],
    *,
    judge_questions: Checklist | None = None,
    checks: Sequence[ComputedCheck] = (),
) -> WrittenRequirements:
    """Return the requirements that cost no call, from the prompt and the old outputs of the development examples.

    ``judge_questions`` come from a judge that was learned from people. ``checks`` are the user's own, also a schema.
    Raises InputError where a check cannot be used.
    """
    written = [each for each in development if each.output and each.output.strip()]
    outputs = [each.output or "" for each in written]
    text = prompt_text(prompt)
    keys = keys_of(json_values(outputs))
    stated = stated_rules(text, keys)
    clause_checks = [supported(rule.check, outputs) for rule in _once(stated)]
    output_checks: list[ComputedCheck] = []
    for each in found_rules(outputs):
        if each.id == "keys" and any(own.kind == "schema" for own in checks):
            continue  # the user's own schema covers the keys
        if each.id == "keys":
            output_checks += _by_key(each, key_clauses(text, keys), outputs)
        elif not _is_decided(each.id, {rule.id for rule in clause_checks}):
            output_checks.append(each)
    if written and all(REPLAYED in each.metadata for each in written):
        output_checks += parity_rules(outputs)
    user_checks = [_of_person(each, written) for each in checks]
    learned = () if judge_questions is None else judge_questions.questions
    judge_criteria = [each.model_copy(update={"origin": each.origin or "judge"}) for each in learned]
    decided = {rule.check.clause for rule in stated if rule.is_all}
    found = WrittenRequirements(
        (),
        to_ask=tuple(clause for clause in dict.fromkeys(clauses_of(text)) if clause not in decided),
        notes=tuple(
            f"The check '{each.id}' of your own is kept by {percent(each.support)} of the old outputs."
            for each in user_checks
            if each.support is not None and each.support < 1
        ),
        like=judge_questions,
    )
    found = found.added([*judge_criteria, *clause_checks, *output_checks, *user_checks])
    end_check = cut_check(found.criteria, outputs)
    # an output that is no JSON fails other checks already, and was not ended by a schema
    return (
        found
        if end_check is None
        else found.added([supported(end_check, [each for each in outputs if json_values([each])])])
    )


def prompt_text(prompt: Prompt) -> str:
    """Return the orders in a prompt, without variables, messages that show a case, and the rest of its file."""
    text, before = "", 0
    for start, end in split_parts(prompt):
        is_same_line = text and "\n" not in prompt.text[before:start]
        text, before = f"{text}{' ' if is_same_line else chr(10)}{prompt.text[start:end]}", end
    return text.strip()


def broken_by_new(
    written: WrittenRequirements, development: Sequence[Example], new: Mapping[str, Sequence[Example]]
) -> WrittenRequirements:
    """Add the rules that old outputs never break and ``new`` outputs of some target do, e.g. no headings; no call."""
    known = {each.id for each in written.criteria}
    rules = never_rules([each.output or "" for each in development])
    outputs = [each for examples in new.values() for each in examples if each.output]
    broken = {verdict.question for verdict in computed_verdicts(rules, outputs, "") if verdict.answer is True}
    return written.added(each for each in rules if each.id in broken and each.id not in known)


def with_support(checklist: Checklist, development: Sequence[Example], verdicts: Iterable[Verdict]) -> Checklist:
    """Add to each requirement the share of old outputs that keep it, by their verdicts; None without verdicts."""
    found = PassTable.of([each.id for each in development], checklist, verdicts)
    passed = dict(zip(found.requirements, found.passed.T, strict=True))
    shares = {name: float(np.nanmean(column)) if np.isfinite(column).any() else None for name, column in passed.items()}
    criteria = [each.model_copy(update={"support": shares[each.id]}) for each in checklist.questions]
    return checklist.model_copy(update={"questions": criteria})


def listed(checklist: Checklist) -> list[str]:
    """Describe each requirement in one line, for a person who is asked to agree."""
    lines = []
    for each in checklist.questions:
        kept = None if each.support is None else percent(each.support)
        said = each.clause if isinstance(each, ComputedCheck) and each.clause else each.criterion
        lines.append(" · ".join(filter(None, [each.id, each.origin, kept, "yes" if each.weight else "no", said])))
    return lines


_DECIDES = {
    "begins": ("begins", "line_1", "line_1_bold", "line_1_begins"),
    "ends": ("ends", "last_line", "last_line_bold"),
    "bullets": ("bullet_count",),
    "bold": ("line_1_bold", "line_2_bold", "last_line_bold"),
    "headings": ("sections",),
    "length_words": ("length_words", "length_characters", "length_sentences"),
}
"""Rules found in outputs, and the stated rules that say the same or more."""


def _is_decided(found: str, stated: Iterable[str]) -> bool:
    """Whether a clause already states the rule that was found in outputs, or its opposite."""
    return any(each in (found, f"no_{found}", *_DECIDES.get(found, ())) for each in stated)


def _once(stated: Sequence[StatedRule]) -> list[StatedRule]:
    """Return each rule once, with the first clause that states it."""
    return list({(rule.check.kind, rule.check.value, rule.check.good): rule for rule in reversed(stated)}.values())[
        ::-1
    ]


def _by_key(found: ComputedCheck, clauses: Sequence[KeyClause], outputs: Sequence[str]) -> Iterator[ComputedCheck]:
    """Yield a check of all keys that outputs have, without the limits that clauses set on single keys, and one check
    for each of these keys: an output that breaks the limit of one key may keep all others."""
    schema = json.loads(found.value or "")
    schema_clauses = [each for each in clauses if part_of(schema, each.key) is not None]
    named, optional = (
        [each.key for each in schema_clauses],
        [each.key for each in schema_clauses if not each.is_required],
    )
    whole = without_parts(schema, named, optional)
    is_stated = bool(schema_clauses) and set(whole.get("required", ())) <= set(named)
    clause = "\n".join(each.clause for each in schema_clauses) if is_stated else None
    yield _of_clause(
        "keys", whole, clause, outputs, "Does the output have the right keys, each with its kind of value?"
    )
    for each in schema_clauses:
        part = with_part(whole, each.key, each.part(part_of(schema, each.key) or {}))
        said = f'Is "{each.key}" in the output as the prompt says?'
        yield _of_clause(f"key_{each.key}", part or {}, each.clause, outputs, said)


def _of_clause(
    name: str, schema: Mapping[str, Any], clause: str | None, outputs: Sequence[str], text: str
) -> ComputedCheck:
    origin = "contract" if clause is None else "clause"
    fields = {"id": name, "text": text, "kind": "fields", "value": schema, "clause": clause, "from": origin}
    return supported(ComputedCheck.model_validate(fields), outputs)


def _of_person(check: ComputedCheck, written: Sequence[Example]) -> ComputedCheck:
    """Return a check of the user's own with the share of the old outputs that pass it."""
    passed = [check.is_good(verdict.answer) for verdict in computed_verdicts([check], written, "")]
    known = [each for each in passed if each is not None]
    support = sum(known) / len(known) if known else None
    return check.model_copy(update={"origin": "person", "support": support})
