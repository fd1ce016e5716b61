"""The experiment on wordings, with models that cost nothing."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from askance.experiments.measured.wordings import RULES, TOPICS, checklist, measure, replies
from askance.models.base import Request
from askance.testing import Reply, ScriptedModel


def test_a_rule_is_asked_about_as_a_merit_or_as_a_fault() -> None:
    merits, faults = checklist("merits", list(RULES)), checklist("faults", list(RULES))
    assert [each.id for each in merits.questions] == [each.id for each in faults.questions] == list(RULES)
    assert {each.good for each in merits.questions} == {"yes"} and {each.good for each in faults.questions} == {"no"}


def test_half_of_the_replies_speak_of_the_topic_in_every_split() -> None:
    chosen = replies(["price"], 44)
    assert len(chosen) == len({each.id for each in chosen}) == 44
    splits = [each.metadata["split"] for each in chosen if re.search(TOPICS["price"], each.output or "", re.I)]
    assert {name: splits.count(name) for name in set(splits)} == {"development": 12, "validation": 5, "test": 5}


def test_what_is_written_says_what_came_of_every_question(tmp_path: Path) -> None:
    def judge(request: Request) -> Reply:
        last = request.messages[-1][1]
        if last.startswith("Question: "):
            return "Does the reply say what it costs?"
        speaks = bool(re.search(TOPICS["price"], last.split("replied:")[1].split("Question:")[0], re.I))
        return 0.9 if speaks else 0.1

    def deaf(request: Request) -> Reply:
        last = request.messages[-1][1]
        return judge(request) if "what it costs" in last else 0.5 + len(last) % 7 / 100

    models = {"source": ScriptedModel(judge, name="world/source"), "target": ScriptedModel(deaf, name="world/target")}
    given = argparse.Namespace(rules=["price"], size=44, runs=tmp_path, **models)
    found = measure("faults", given)
    (price,) = found["wordings"]
    assert price["question"] == "price" and price["after"]["text"] == "Does the reply say what it costs?"
    assert found["parity"]["test"]["best"]["questions"]["price"]["same"] == {
        "value": 1.0,
        "n": 10,
        "low": 1.0,
        "high": 1.0,
    }
    assert found["accepted"] is price["accepted"]
