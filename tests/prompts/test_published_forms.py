"""Commands that read what tools and data sets publish, without `askance import`, on small files in that form."""

from __future__ import annotations

import gzip
import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from askance import import_traces
from askance.optimizer.weights.judged_pairs import load_pairs
from askance.prompts.examples import Example, load_examples
from askance.prompts.field_map import parse_field_map
from askance.prompts.human_feedback import parse_label_scale

COMMANDS = {
    name: shlex.split(line)
    for name, line in {
        "promptfoo": "evaluate output.json#results.results --field input=vars.question --field output=response.output",
        "LangSmith": "evaluate dataset.jsonl --field input=inputs.question --field output=outputs.answer",
        "MLflow": "evaluate eval.jsonl --field input=inputs.question --field output=outputs"
        " --field reference=expectations.expected_response",
        "ragas": "evaluate ragas.jsonl --field input=user_input --field output=response"
        " --field context=retrieved_contexts",
        "AlpacaEval": "evaluate model_outputs.json --field input=instruction",
        "AlpacaEval pairs": "weigh annotations.json",
        "MT-Bench pairs": "weigh human_judgments.jsonl",
        "JudgeBench pairs": "weigh judgebench.jsonl",
        "HH-RLHF pairs": "weigh test.jsonl.gz",
        "FeedbackQA": "evaluate feedback.json --field input=question --field output=passage.reference.section_content"
        " --field human.overall=rating --field comment=feedback"
        ' --label-scale "Bad,Could be Improved,Acceptable,Excellent"',
        "Label Studio": "evaluate tasks.json --field input=data.prompt --field output=data.response"
        " --field 'human.ok=annotations.*.result.from_name=ok.value.choices'",
        "Argilla": "evaluate records.json --field input=fields.prompt --field output=fields.response"
        " --field 'human.quality=responses.quality.*.value'",
    }.items()
}
ASK, SAY, OTHER = "When does it open?", "At nine.", "No idea."
TURNS = [{"role": "user", "content": ASK}, {"role": "assistant", "content": SAY}]

FILES: dict[str, Any] = {
    "promptfoo": {
        "evalId": "eval-1",
        "results": {
            "version": 3,
            "timestamp": "2026-01-01",
            "prompts": [{"raw": "{{question}}", "label": "p", "id": "x", "provider": "openai:m"}],
            "results": [
                {
                    "id": "r1",
                    "promptIdx": 0,
                    "testIdx": 0,
                    "vars": {"question": ASK},
                    "response": {"output": SAY, "tokenUsage": {"total": 3}},
                    "success": True,
                    "score": 1,
                    "gradingResult": {"pass": True, "score": 1, "reason": "ok", "componentResults": []},
                }
            ],
            "stats": {"successes": 1},
        },
        "config": {"tests": [{"vars": {"question": ASK}}]},
        "shareableUrl": None,
    },
    "LangSmith": [
        {"id": "e1", "dataset_id": "d", "inputs": {"question": ASK}, "outputs": {"answer": SAY}, "metadata": None}
    ],
    "MLflow": [
        {"inputs": {"question": ASK}, "outputs": SAY, "expectations": {"expected_response": "Nine."}, "tags": {}}
    ],
    "ragas": [
        {
            "user_input": ASK,
            "retrieved_contexts": ["Nine to five.", "Closed on Monday."],
            "response": SAY,
            "reference": "Nine.",
        }
    ],
    "AlpacaEval": [
        {"dataset": "helpful_base", "instruction": ASK, "output": SAY, "generator": "m", "datasplit": "eval"}
    ],
    "AlpacaEval pairs": [
        {
            "instruction": ASK,
            "output_1": SAY,
            "generator_1": "m",
            "dataset": "helpful_base",
            "output_2": OTHER,
            "generator_2": "n",
            "annotator": "gpt4",
            "preference": preference,
        }
        for preference in (1.0, 2, 1.5)
    ],
    "MT-Bench pairs": [
        {
            "question_id": 81,
            "model_a": "m",
            "model_b": "n",
            "winner": winner,
            "judge": "expert_1",
            "conversation_a": TURNS,
            "conversation_b": [TURNS[0], {"role": "assistant", "content": OTHER}],
            "turn": 1,
        }
        for winner in ("model_a", "model_b", "tie")
    ],
    "JudgeBench pairs": [
        {
            "pair_id": f"p{place}",
            "original_id": "1",
            "source": "mmlu",
            "question": ASK,
            "response_model": "m",
            "response_A": SAY,
            "response_B": OTHER,
            "label": label,
        }
        for place, label in enumerate(("A>B", "B>A", "A=B"))
    ],
    "HH-RLHF pairs": [
        {"chosen": f"\n\nHuman: {ASK}\n\nAssistant: {SAY}", "rejected": f"\n\nHuman: {ASK}\n\nAssistant: {OTHER}"}
    ],
    "FeedbackQA": [
        {
            "question": ASK,
            "passage": {
                "passage_id": 1,
                "reference": {"page_title": "Pool", "section_headers": [], "section_content": SAY},
            },
            "rating": ["Excellent", "Could be Improved"],
            "feedback": ["Says it.", "No days."],
            "domain": "uk",
        }
    ],
    "Label Studio": [
        {
            "id": 7,
            "data": {"prompt": ASK, "response": SAY},
            "annotations": [
                {
                    "id": 1,
                    "completed_by": 2,
                    "result": [{"from_name": "ok", "type": "choices", "value": {"choices": ["Good"]}}],
                }
            ],
            "predictions": [],
        },
        {"id": 8, "data": {"prompt": ASK, "response": SAY}, "annotations": [], "predictions": []},
    ],
    "Argilla": [
        {
            "id": "a1",
            "status": "completed",
            "fields": {"prompt": ASK, "response": SAY},
            "metadata": {"shop": "x"},
            "suggestions": {},
            "responses": {"quality": [{"value": 4, "user_id": "u", "status": "submitted"}]},
            "vectors": {},
        }
    ],
}
HUMAN = {
    "FeedbackQA": {"overall": (4, 2)},
    "Label Studio": {"ok": (True,)},
    "Argilla": {"quality": (4,)},
}


def options(line: list[str], name: str) -> list[str]:
    return [line[place + 1] for place, each in enumerate(line) if each == name]


def written(folder: Path, line: list[str], value: Any) -> str:
    name = line[1].partition("#")[0]
    lines = name.removesuffix(".gz").endswith(".jsonl")
    text = "".join(json.dumps(row) + "\n" for row in value) if lines else json.dumps(value, indent=1)
    (folder / name).write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return str(folder / line[1])


@pytest.mark.parametrize("tool", [name for name in FILES if not name.endswith("pairs")])
def test_examples_of_a_tool_are_read_by_its_command(tool: str, tmp_path: Path) -> None:
    line = COMMANDS[tool]
    [scale] = options(line, "--label-scale") or [None]
    first: Example = load_examples(
        written(tmp_path, line, FILES[tool]),
        fields=parse_field_map(options(line, "--field")),
        label_scale=parse_label_scale(scale),
    )[0]
    assert (first.input, first.output, first.human) == (ASK, SAY, HUMAN.get(tool, {}))
    if tool == "ragas":
        assert (first.context, first.reference) == ("[1] Nine to five.\n\n[2] Closed on Monday.", "Nine.")
    if tool == "FeedbackQA":
        assert [each.text for each in first.comment] == ["Says it.", "No days."]


@pytest.mark.parametrize("tool", [name for name in FILES if name.endswith("pairs")])
def test_pairs_of_a_set_are_read_by_its_command(tool: str, tmp_path: Path) -> None:
    pairs = load_pairs(written(tmp_path, COMMANDS[tool], FILES[tool]))
    assert {each.input for each in pairs} == {ASK}
    if tool == "HH-RLHF pairs":
        [pair] = pairs
        assert (pair.output_a if pair.preferred == "a" else pair.output_b) == SAY
    else:
        assert [(each.output_a, each.output_b, each.preferred) for each in pairs] == [
            (SAY, OTHER, side) for side in ("a", "b", "tie")
        ]


def test_traces_of_langfuse_are_imported(tmp_path: Path) -> None:
    trace = {
        "id": "t1",
        "timestamp": "2026-01-01",
        "name": "a",
        "sessionId": "s",
        "tags": [],
        "input": {"question": ASK},
        "output": SAY,
    }
    (tmp_path / "traces.json").write_text(json.dumps([trace]))
    [row] = import_traces(tmp_path / "traces.json").rows
    assert (row["input"], row["output"]) == (ASK, SAY)
