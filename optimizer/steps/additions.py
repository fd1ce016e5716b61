"""Additions to a generator's prompt, beside its own words: settings, and texts after the input.

Tried by hand, each kind gained .03 to .26 of the requirements. An order or an example in the system text, which people
try first, gained nothing (METHOD.md, part 6).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ...agents.generator import RequirementWriter
from ...evaluation.contract.forms import form_of, in_form, order_of, shapes
from ...evaluation.contract.schemas import json_form, sent_schema
from ...memory.records import AddedLineRecord
from ...models.writing import AS_THE_RUN
from ...prompts.checklist import Checklist, ComputedCheck, Question
from ...prompts.examples import Example
from ...prompts.formats.after_input import after_input
from ...prompts.formatting import count
from ...prompts.prompt import EditRefusedError, check_length
from ..events import Teller
from ..subject import Draft, Observation
from .edits import LEAST_FAILURES, LEAST_SHARE, line_of

IN_ORDER = ("example", "form", "rules")
"""Order of the texts after the input."""
EXCLUDE = {"schema": "grammar", "grammar": "schema"}
"""Kinds that exclude each other: an endpoint takes only one of them."""
RULES, FORM = "Keep to these rules:", "Fill in this form, and write nothing else:"
EXAMPLE = "This is how it looks for another request:"
AFTER_EXAMPLE = "Write yours about the text above. Take the form of the example, and nothing of what it says."
MOST_RULES = 12
OF_CALLS = ("tools", "calls", "arguments", "order", "calls_as")
"""Kinds of checks for outputs that call tools."""


@dataclass(frozen=True)
class Addition:
    """One addition to a draft: settings, or a text after the input."""

    kind: str
    """``schema``, ``grammar``, ``rules``, ``form``, ``example``, or the name of a setting."""
    said: str
    """The addition in words, for people."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    text: str = ""
    """Text after the input."""
    lines: tuple[AddedLineRecord, ...] = ()
    """Lines of the text, or a name for the whole addition, with the requirements and failures that led to them."""
    sources: tuple[str, ...] = ()
    """Ids of examples whose output the addition shows. Nothing is measured on these."""
    says: frozenset[str] = frozenset()
    """Requirements that the addition says already. Rules leave them out, because a small model copies a repeated rule
    into its output."""

    def goes_with(self, others: Sequence[Addition]) -> bool:
        """Whether the addition can stand beside others: no second one of its kind, and no excluded kind."""
        return all(each.kind not in (self.kind, EXCLUDE.get(self.kind)) for each in others)


def added(start: Draft, additions: Sequence[Addition], examples: Sequence[Example], max_chars: int | None) -> Draft:
    """Return the draft with additions. Raises EditRefusedError if the prompt's format takes no text after the input,
    the prompt has a text already, or the new prompt is too long."""
    said = {name for each in additions for name in each.says}
    texts = [each.text for kind in IN_ORDER for each in additions if each.kind == kind != "rules"]
    rules = [line for each in additions if each.kind == "rules" for line in each.lines if line.requirement not in said]
    texts += [rules_text(rules)] if rules else []
    prompt = start.prompt
    if any(each in prompt.text for each in texts):
        raise EditRefusedError("the prompt says it already")
    if texts:
        prompt = check_length(after_input(prompt, "\n\n".join(texts), examples), max_chars)
    settings = {name: value for each in additions for name, value in each.settings.items()}
    writing = (start.writing or AS_THE_RUN).but(**settings) if settings else start.writing
    return replace(start, prompt=prompt, writing=writing)


def rules_text(lines: Sequence[AddedLineRecord]) -> str:
    """Return the text of the orders after the input."""
    return "\n".join([RULES, *(f"- {line.text}" for line in lines)])


@dataclass(frozen=True)
class Failing:
    """A requirement, with the examples whose outputs fail it."""

    requirement: Question
    examples: tuple[str, ...]

    def line(self, text: str) -> AddedLineRecord:
        """Return the record of a line that this requirement led to."""
        return AddedLineRecord(text=text, requirement=self.requirement.id, failures=self.examples)


def of_examples(seen: Observation, examples: Sequence[Example]) -> Observation:
    """Return the part of an observation that is about some examples."""
    names = {each.id for each in examples}
    return replace(
        seen,
        examples=[each for each in seen.examples if each.id in names],
        verdicts=[each for each in seen.verdicts if each.example in names],
        scores=[each for each in seen.scores if each.example in names],
    )


def _failures(seen: Observation) -> list[tuple[Example, int]]:
    """Return each example with the number of requirements that its output fails. Examples that fail half of the judged
    requirements or more are left out."""
    failed, judged = {each.id: 0 for each in seen.examples}, {each.id: 0 for each in seen.examples}
    for verdict in seen.teaching:
        good = seen.polarity(verdict.example, verdict.question).is_good(verdict.answer)
        if good is not None and not verdict.replicate:
            judged[verdict.example] += 1
            failed[verdict.example] += not good
    return [(each, failed[each.id]) for each in seen.examples if 2 * failed[each.id] < judged[each.id]]


def failing(seen: Observation, asked: Checklist | None) -> list[Failing]:
    """Return requirements that at least a tenth of the outputs fail, and at least two outputs. The order is that of the
    checklist, then of a checker's checks."""
    failed: dict[str, list[str]] = {}
    for verdict in seen.teaching:
        if not verdict.replicate and seen.polarity(verdict.example, verdict.question).is_good(verdict.answer) is False:
            failed.setdefault(verdict.question, []).append(verdict.example)
    least = max(LEAST_FAILURES, LEAST_SHARE * len(seen.examples))
    criteria = {each.id: each for each in asked.questions} if asked is not None else {}
    for checklist in seen.own_checklists.values():  # a checker's checks
        criteria |= {each.id: each for each in checklist.checks if each.id not in criteria}
    return [Failing(each, tuple(failed[name])) for name, each in criteria.items() if len(failed.get(name, ())) >= least]


@dataclass(frozen=True)
class AdditionWriter:
    """Makes additions for the requirements that a draft fails."""

    writer: RequirementWriter
    """Asked where a rule cannot turn a requirement's words into an order."""
    checklist: Checklist | None
    events: Teller
    vary: Mapping[str, Sequence[Any]]
    """Settings that are tried, with their values."""
    old: Sequence[Observation] = ()
    """Outputs of an old model on the development examples; empty without an old model."""

    async def write(self, start: Draft, seen: Observation) -> list[Addition]:
        """Return the additions in the order in which they are tried; ``seen`` is the draft on development examples."""
        found, criteria = failing(seen, self.checklist), self._criteria
        outputs = [example.output or "" for each in self.old for example in each.examples]
        made: list[Addition] = []
        schema = None if self.calls_tools else sent_schema(criteria, outputs)
        if schema is not None and found and schema != (start.writing or AS_THE_RUN).json_schema:
            because = [each.line("the JSON schema") for each in found if isinstance(each.requirement, ComputedCheck)]
            made.append(Addition("schema", "the JSON schema, with lengths", {"schema": schema}, lines=tuple(because)))
        for name, values in self.vary.items():
            made += [Addition(name, f"{name} {value}", {name: value}) for value in values]
        if rules := await self.rules(found, seen):
            made.append(rules)
        if found and not self.calls_tools:
            made += self._forms(found, outputs or [each.output or "" for each in seen.examples])
        return made

    async def rules(
        self, found: Sequence[Failing], seen: Observation, known: Sequence[AddedLineRecord] = ()
    ) -> Addition | None:
        """Return the failed requirements as orders after the input, with the ``known`` orders; None if none is new."""
        said = {line.requirement for line in known}
        found = [each for each in found if each.requirement.id not in said]
        lines: dict[str, AddedLineRecord] = {}
        for each in sorted(found, key=lambda each: -len(each.examples))[:MOST_RULES]:
            text = await self._order(each, seen)
            if all(text != line.text for line in known):
                lines.setdefault(text, each.line(text))
        if not lines:
            return None
        order = {each.requirement.id: place for place, each in enumerate(found)}
        listed = [*known, *sorted(lines.values(), key=lambda line: order[line.requirement])]
        name = f"{count(len(listed), 'failed rule')} after the input"
        return Addition("rules", name, text=rules_text(listed), lines=tuple(listed))

    def example(self, trials: Sequence[Observation]) -> Addition | None:
        """Return an output as an example: the one that fails the fewest requirements. Of equals, old outputs come
        before those of trials, then the shortest. None if every output fails half of its requirements or more, or
        outputs are calls of tools."""
        if self.calls_tools:
            return None
        candidates = [
            (failed, is_new, len(example.output), example.id, example.output)
            for is_new, seen in [*((0, each) for each in self.old), *((1, each) for each in trials)]
            for example, failed in _failures(seen)
            if example.output
        ]
        if not candidates:
            return None
        failed, is_new, _, name, output = min(candidates)
        whose = "an output of a trial" if is_new else "an old output"
        how = "keeps everything" if not failed else f"fails {count(failed, 'requirement')}, the fewest"
        text = f"{EXAMPLE}\n\n{output}\n\n{AFTER_EXAMPLE}"
        return Addition("example", f"{whose} that {how}, as an example ({name})", text=text, sources=(name,))

    @property
    def calls_tools(self) -> bool:
        """Whether outputs are calls of tools, which have no fixed form."""
        return any(isinstance(each, ComputedCheck) and each.kind in OF_CALLS for each in self._criteria)

    @property
    def _criteria(self) -> Sequence[Question]:
        return self.checklist.questions if self.checklist is not None else ()

    def _forms(self, found: Sequence[Failing], outputs: Sequence[str]) -> list[Addition]:
        """Return the fixed form in words, and for plain text also as a grammar."""
        because = [each for each in found if isinstance(each.requirement, ComputedCheck)]
        if not because:
            return []
        if (shown := json_form(self._criteria, outputs)) is not None:
            return [self._form(shown, because)]
        form = form_of(self._criteria, outputs)
        if form is None:
            return []
        checks = [each for each in self._criteria if isinstance(each, ComputedCheck)]
        grammar = Addition(
            "grammar",
            "the form as a grammar",
            {"grammar": form.grammar},
            lines=tuple(each.line("the grammar") for each in because),
            says=frozenset(each.id for each in checks if shapes(each)),
        )
        return [self._form(form.text, because, frozenset(each.id for each in checks if in_form(each))), grammar]

    def _form(self, shown: str, because: Sequence[Failing], says: frozenset[str] = frozenset()) -> Addition:
        lines = tuple(each.line("the form") for each in because)
        return Addition("form", "the form after the input", text=f"{FORM}\n\n{shown}", lines=lines, says=says)

    async def _order(self, each: Failing, seen: Observation) -> str:
        """Return one order: the words of a check's rule, a question's clause, or a model's words."""
        requirement = each.requirement
        if isinstance(requirement, ComputedCheck) and requirement.kind != "checker":
            outputs = {example.id: (example.input, example.output or "") for example in seen.examples}
            order = order_of(requirement, [outputs[name] for name in each.examples])
            if order is not None:
                return order
        is_check = isinstance(requirement, ComputedCheck)
        failed = [verdict for verdict in seen.teaching if verdict.question == requirement.id]
        explanations = dict.fromkeys(
            verdict.explanation for verdict in failed if verdict.example in each.examples and verdict.explanation
        )
        if not is_check and requirement.clause is not None and "\n" not in requirement.clause:
            return requirement.clause
        check = requirement.id if is_check else None
        return (await line_of(self.writer, requirement, check, list(explanations), self.events))[0]
