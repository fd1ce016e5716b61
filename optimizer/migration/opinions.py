"""Opinions on a migration's test outputs that teach nothing: a second judge's, and which of two outputs is
preferred."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ...agents.checks import computed_verdicts
from ...agents.evaluator import Evaluator
from ...agents.pairwise import AS_IT_IS, SWAPPED, PairEvaluator, ordered_examples, pair_id, pairwise_prompt
from ...memory.certificate_file import ShareRecord
from ...models.gateway import Gateway
from ...models.progress import Watcher
from ...models.resolve import Models
from ...prompts.checklist import Checklist
from ...prompts.examples import Example, documents
from ...prompts.messages import told
from ...prompts.preferences import Preference
from ...prompts.prompt import generator_messages
from ...prompts.text_files import read_text
from ...prompts.verdicts import Verdict
from ...stats.resampling import Resampling, mean_with_interval
from .certificate import Tested
from .decision import MigrationDecision
from .inputs import WriterMigration

BETTER = "Does the output do better what the conversation asks for?"
"""The one question of a comparison without questions."""


def written_outputs(run: Path, examples: Sequence[Example]) -> list[Example]:
    """The examples with the outputs that a target's run has kept for them; one without is left out."""
    rows = map(json.loads, read_text(run / "outputs.jsonl").splitlines())
    outputs = {row["id"]: told(row["output"]) for row in rows if row.get("output") is not None}
    return [each.model_copy(update={"output": outputs[each.id]}) for each in examples if each.id in outputs]


@dataclass(frozen=True)
class SecondOpinions:
    """Asks for further opinions on old and new outputs."""

    migration: WriterMigration
    checklist: Checklist
    models: Models
    gateway: Gateway
    watcher: Watcher

    async def second(self, examples: Sequence[Example], new: Sequence[Example]) -> MigrationDecision | None:
        """The decision by the second judge's answers; None without one."""
        migration, asked = self.migration, self.checklist.asked_alone
        if migration.second_judge is None or migration.judge is None or asked is None:
            return None
        judge = self.models.get(migration.second_judge)
        self.watcher.phase(f"{judge.name}, the second judge, looks at the test outputs")
        judging = migration.options.judging
        evaluator = Evaluator(self.gateway, judge, migration.judge.prompt, asked, judging, role="second_judge")

        async def judged(outputs: Sequence[Example]) -> list[Verdict]:
            computed = computed_verdicts(self.checklist.checks, outputs, migration.prompt.hash, {})
            return [*await evaluator.judge(outputs), *computed]

        tested = Tested.of(examples, self.checklist, await judged(examples), None, await judged(new))
        return tested.decide(migration.options)

    async def preferred(self, examples: Sequence[Example], new: Sequence[Example]) -> ShareRecord | None:
        """Share of the inputs whose new output the judge prefers, shown in both orders; None without a judge."""
        migration = self.migration
        if migration.judge is None:
            return None
        judge = self.models.get(migration.judge.model)
        self.watcher.phase(f"{judge.name} compares old and new outputs")
        old = {each.id: each for each in examples}
        pairs = [self._pair(old[each.id], each) for each in new]
        checklist = Checklist.model_validate({"questions": [{"id": "better", "text": BETTER}]})
        judging = replace(migration.options.judging, mode="each", explain="never", score_scale=None, p_yes="hard")
        evaluator = PairEvaluator(self.gateway, judge, pairwise_prompt(), checklist, judging, role="judge")
        shown = [each for pair in pairs for each in ordered_examples(pair, swap=True)]
        first = {each.example: each.answer for each in await evaluator.judge(shown)}
        shares = [_new_is_better(first, pair.id) for pair in pairs]
        found = mean_with_interval(shares, Resampling(documents(new)), "no pair was compared")
        return ShareRecord(value=found.value, low=found.low, high=found.high, n=found.n)

    def _pair(self, old: Example, new: Example) -> Preference:
        """Both outputs under the conversation that asked for them."""
        said = generator_messages(self.migration.prompt, old)
        asked = "\n\n".join(f"{role}: {content}" for role, content in said)
        return Preference(id=old.id, input=asked, output_a=old.output or "", output_b=new.output or "", preferred="tie")


def _new_is_better(first: Mapping[str, bool | None], pair: str) -> float | None:
    """1 where the new output does better in both orders, .5 where the orders disagree; None where one is missing."""
    old_first, new_first = first.get(pair_id(pair, AS_IT_IS)), first.get(pair_id(pair, SWAPPED))
    if old_first is None or new_first is None:
        return None
    return (float(not old_first) + float(new_first)) / 2
