"""What can be added to a prompt that writes, beside its own words: settings, and texts after the input.

Each kind is one addition. Kinds that were tried by hand gave .03 to .26 of the requirements; what people do first, an
order or an example in the system text, gave nothing (METHOD.md, part 6).
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
"""Texts after the input, the one that is read last at the end."""
EXCLUDE = {"schema": "grammar", "grammar": "schema"}
"""Kinds that an endpoint takes only one of."""
RULES, FORM = "Keep to these rules:", "Fill in this form, and write nothing else:"
EXAMPLE = "This is how it looks for another request:"
AFTER_EXAMPLE = "Write yours about the text above. Take the form of the example, and nothing of what it says."
MOST_RULES = 12
OF_CALLS = ("tools", "calls", "arguments", "order", "calls_as")
"""Kinds of checks of outputs that call tools."""


@dataclass(frozen=True)
class Addition:
    """One thing that is added to a draft."""

    kind: str
    """``schema``, ``grammar``, ``rules``, ``form``, ``example``, or the name of a setting."""
    said: str
    """In words, for people."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    text: str = ""
    """Stands after the input."""
    lines: tuple[AddedLineRecord, ...] = ()
    """The parts of the text, or what stands for it, with the requirements and failures that led to them."""
    sources: tuple[str, ...] = ()
    """Examples whose output is shown: nothing is measured on these."""
    says: frozenset[str] = frozenset()
    """Requirements that it says, so that no rule beside it says them again: a small model writes the rule down."""

    def goes_with(self, others: Sequence[Addition]) -> bool:
        """Whether it can be added beside others."""
        return all(each.kind not in (self.kind, EXCLUDE.get(self.kind)) for each in others)


def added(start: Draft, additions: Sequence[Addition], examples: Sequence[Example], max_chars: int | None) -> Draft:
    """The draft with additions. Raises EditRefusedError where its format takes no text after the input, or it is too
    long."""
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
    """Orders as they stand after the input."""
    return "\n".join([RULES, *(f"- {line.text}" for line in lines)])


@dataclass(frozen=True)
class Failing:
    """A requirement that outputs fail."""

    requirement: Question
    examples: tuple[str, ...]

    def line(self, text: str) -> AddedLineRecord:
        """A line that it led to."""
        return AddedLineRecord(text=text, requirement=self.requirement.id, failures=self.examples)


def of_examples(seen: Observation, examples: Sequence[Example]) -> Observation:
    """The part of an observation that is about some examples."""
    names = {each.id for each in examples}
    return replace(
        seen,
        examples=[each for each in seen.examples if each.id in names],
        verdicts=[each for each in seen.verdicts if each.example in names],
        scores=[each for each in seen.scores if each.example in names],
    )


def _failures(seen: Observation) -> list[tuple[Example, int]]:
    """Each example with the number of requirements that its output fails; those that fail a half are left out."""
    failed, judged = {each.id: 0 for each in seen.examples}, {each.id: 0 for each in seen.examples}
    for verdict in seen.teaching:
        good = seen.polarity(verdict.example, verdict.question).is_good(verdict.answer)
        if good is not None and not verdict.replicate:
            judged[verdict.example] += 1
            failed[verdict.example] += not good
    return [(each, failed[each.id]) for each in seen.examples if 2 * failed[each.id] < judged[each.id]]


def failing(seen: Observation, asked: Checklist | None) -> list[Failing]:
    """The requirements of all examples that a tenth of the outputs fail, at least two, in their own order."""
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
    """Makes the additions for what a draft fails."""

    writer: RequirementWriter
    """Asked where a requirement's words cannot be turned into an order."""
    checklist: Checklist | None
    events: Teller
    vary: Mapping[str, Sequence[Any]]
    """Settings that are tried, with their values."""
    old: Sequence[Observation] = ()
    """The outputs of the old model on the development examples, where there is one."""

    async def write(self, start: Draft, seen: Observation) -> list[Addition]:
        """The additions in the order in which they are tried; ``seen`` is the draft on development examples."""
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
        """What is failed, as orders after the input, beside those that are ``known``; None where none is new."""
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
        """An output as an example: the one that fails the fewest requirements, an old one before those of trials, and
        the shortest of them; None where every output fails a half of what it is held to."""
        if self.calls_tools:
            return None
        there = [
            (failed, is_new, len(example.output), example.id, example.output)
            for is_new, seen in [*((0, each) for each in self.old), *((1, each) for each in trials)]
            for example, failed in _failures(seen)
            if example.output
        ]
        if not there:
            return None
        failed, is_new, _, name, output = min(there)
        whose = "an output of a trial" if is_new else "an old output"
        how = "keeps everything" if not failed else f"fails {count(failed, 'requirement')}, the fewest"
        text = f"{EXAMPLE}\n\n{output}\n\n{AFTER_EXAMPLE}"
        return Addition("example", f"{whose} that {how}, as an example ({name})", text=text, sources=(name,))

    @property
    def calls_tools(self) -> bool:
        """Whether outputs are calls of tools: these have no fixed form."""
        return any(isinstance(each, ComputedCheck) and each.kind in OF_CALLS for each in self._criteria)

    @property
    def _criteria(self) -> Sequence[Question]:
        return self.checklist.questions if self.checklist is not None else ()

    def _forms(self, found: Sequence[Failing], outputs: Sequence[str]) -> list[Addition]:
        """The fixed form in words, and as a grammar where it is one of plain text."""
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
        """One order: a check's own words, or those of a model for a question."""
        requirement = each.requirement
        if isinstance(requirement, ComputedCheck) and requirement.kind != "checker":
            outputs = {example.id: (example.input, example.output or "") for example in seen.examples}
            order = order_of(requirement, [outputs[name] for name in each.examples])
            if order is not None:
                return order
        is_check = isinstance(requirement, ComputedCheck)
        failed = [verdict for verdict in seen.teaching if verdict.question == requirement.id]
        said = dict.fromkeys(
            verdict.explanation for verdict in failed if verdict.example in each.examples and verdict.explanation
        )
        if not is_check and requirement.clause is not None and "\n" not in requirement.clause:
            return requirement.clause
        check = requirement.id if is_check else None
        return (await line_of(self.writer, requirement, check, list(said), self.events))[0]
