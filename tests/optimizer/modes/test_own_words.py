"""``align`` of a judge in people's own words: its prompt is edited, asked as it stands, and kept as it came."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import askance
from tests.worlds import RULES, TEXTS, World, help_with, useful

MESSAGES = [
    {
        "role": "system",
        "content": 'You are a careful judge.\nRespond with JSON: {{"reason": "...", "score": 1-5}}',
    },
    {"role": "user", "content": "In: {input}\nOut: {output}"},
]


class OwnWorld(World):
    """A world whose judge answers a score with its reason."""

    def reply(self, messages: Sequence[tuple[str, str]], schema: Mapping[str, Any] | None) -> str | float:
        everything = "\n".join(content for _, content in messages)
        fields = (schema or {}).get("properties", {})
        if (helped := help_with(messages, fields)) is not None:
            return json.dumps(helped)
        example = re.findall(r"\[(e\d+)\]", everything)[0]
        if not fields:
            p_yes = [self.p_yes(everything, example, name) for name in TEXTS]
            return json.dumps({"reason": f"Words of {example}.", "score": round(1 + 4 * sum(p_yes) / len(TEXTS), 1)})
        note = {"quote": "these words", "fact": "the input differs", "kind": "a kind of case"}
        if "answer_yes_even_if" in fields:
            return json.dumps(note | {"answer_yes_even_if": RULES["brief"]})
        flaws = [flaw for name in TEXTS if (flaw := self.flaw(example, name))]
        rule = RULES[flaws[0] if flaws else "style"]
        return json.dumps(note | {"kind": rule, "answer_no_if": rule})

    def improved(self, run: Path) -> askance.RunResult:
        """Align the judge whose prompt is ``MESSAGES``."""
        options = useful(self.options | {"max_iterations": 3})
        prompt = askance.Prompt.of_messages(MESSAGES)
        return askance.align(self.rows, model=self.model("world/target"), prompt=prompt, run=run, **options)


@pytest.fixture
def own() -> OwnWorld:
    return OwnWorld(60)


def test_an_edit_of_its_prompt_is_accepted_and_written_back_among_its_messages(own: OwnWorld, tmp_path: Path) -> None:
    done = own.improved(tmp_path / "run")
    result = done.result
    assert result["best"]["test"]["spearman"] > result["baseline"]["test"]["spearman"] + 0.3
    written = json.loads((tmp_path / "run" / "prompt.json").read_text(encoding="utf-8"))
    assert written[0] == MESSAGES[0]
    added = written[1]["content"].removeprefix(MESSAGES[1]["content"])
    assert RULES["number"] in added and "rating" in added and "yes" not in added.lower()


def test_the_kept_judge_asks_and_reads_as_the_run_did(own: OwnWorld, tmp_path: Path) -> None:
    own.improved(tmp_path / "run")
    kept, rows = askance.load_judge(tmp_path / "run"), own.rows[:5]
    found = kept.evaluate(rows, model=own.model("world/target"), no_cache=True)
    with kept.open(model=own.model("world/target")) as judge:
        assert [judge.score(row).overall for row in rows] == [each.overall for each in found.scores]


def test_a_judge_in_own_words_is_brought_to_another_one_by_their_scores(own: OwnWorld, tmp_path: Path) -> None:
    strict = [{**MESSAGES[0], "content": MESSAGES[0]["content"].replace("careful", "strict")}, MESSAGES[1]]
    done = askance.migrate(
        own.rows,
        source=own.model("world/source"),
        target=own.model("world/target"),
        prompt=askance.Prompt.of_messages(MESSAGES),
        source_prompt=askance.Prompt.of_messages(strict),
        run=tmp_path / "run",
        **useful(own.options | {"max_iterations": 3}),
    )
    assert done.result["accepted_edits"]
    assert RULES["number"] in done.prompt
    assert json.loads((tmp_path / "run" / "prompt.json").read_text(encoding="utf-8"))[0] == MESSAGES[0]
