from __future__ import annotations

from typing import Any, get_args

import pytest

from askance.agents.lesson_checks import Relation
from askance.agents.rules import DIRECTIONS
from askance.agents.updater import Proposal

pytest.importorskip("dspy", reason="needs the extra: pip install 'askance[dspy]'")

from askance.agents.dspy.signatures import (
    SIGNATURES,
    Opening,
    deduplicator_signature,
    updater_signature,
)


def test_a_rule_may_begin_as_those_on_faults_do() -> None:
    assert get_args(Opening) == tuple(each.opening for each in DIRECTIONS[:4])  # DSPy's prompt lists these


def test_every_role_has_signatures_whose_fields_are_described() -> None:
    assert set(SIGNATURES) == {"note_taker", "deduplicator", "updater", "evaluator", "writer"}
    for signature in (make() for each in SIGNATURES.values() for make in each):
        assert signature.instructions and "JSON" not in signature.instructions and "{" not in signature.instructions
        for name, field in signature.fields.items():
            said = field.json_schema_extra["desc"]
            assert said and "{" not in said, name


@pytest.mark.parametrize(("make", "record"), [(deduplicator_signature, Relation), (updater_signature, Proposal)])
def test_what_a_signature_gives_is_what_the_agent_takes(make: Any, record: Any) -> None:
    outputs = make().output_fields
    assert {name: field.annotation for name, field in outputs.items()} == {
        name: field.annotation for name, field in record.model_fields.items()
    }
