"""Code that lets each tool call an exported judge, and instructions for its file."""

from __future__ import annotations

import inspect
from typing import Any

USES = {
    "python": "from judge import judge; judge(input=…, output=…). Or: python {name} data.jsonl",
    "promptfoo": "In promptfooconfig.yaml: assert: [{{type: python, value: file://{name}}}]; vars input, context and "
    "reference are shown to the judge.",
    "inspect": "from inspect_judge import askance_judge; Task(…, scorer=askance_judge()). Or: inspect score LOG "
    "--scorer {name}",
    "deepeval": "from deepeval_judge import AskanceJudge; evaluate(test_cases, [AskanceJudge()])",
    "mlflow": "from mlflow_judge import askance_judge; mlflow.genai.evaluate(data=…, scorers=[askance_judge])",
    "openai-grader": "As the grader of a reinforcement fine-tuning job or of /v1/fine_tuning/alpha/graders/run; items "
    "have input, and context or reference where the prompt shows them.",
    "pytest": "pytest {name}, with the outputs in outputs.jsonl beside it, or in OUTPUTS=FILE.",
}
CHECK_USES = {
    "promptfoo": "In promptfooconfig.yaml: defaultTest: file://requirements.yaml",
    "inspect": "Its scorers are askance_checks, for what code decides, and askance_judge, for the questions: "
    "Task(…, scorer=[askance_checks(), askance_judge()]).",
    "deepeval": "from deepeval_requirements import REQUIREMENTS; evaluate(test_cases, REQUIREMENTS)",
}
"""Instructions for using a migration's requirements, by tool."""

THRESHOLDS = {"promptfoo": "config: {threshold: 0.5} beside type and value", "deepeval": "AskanceJudge(threshold=0.5)"}
"""Instructions for giving a threshold, for tools that need one."""

VALUES = '''

def judge_of_values(**given: Any) -> dict[str, Any]:
    """Judge values of a tool, which need not be texts: messages are a conversation, an object around a single text is
    that text, and any other is its JSON.

    Raises:
        JudgeError: As of :func:`judge`, or there is no output.
    """
    if given["output"] in (None, {}, []):
        raise JudgeError("There is no output.")
    return judge(**{name: value if name == "metadata" else _as_text(value) for name, value in given.items()})


def _as_text(value: Any) -> str:
    if isinstance(value, (str, int, float)):
        return str(value)
    return StructuredText(text_of(value) or "", value)
'''
"""Code that judges the values of a tool."""


def turns_of(state: Any) -> Any:
    """The messages of a sample from the first reply on; the reply alone where there are none."""
    turns: list[dict[str, Any]] = []
    for message in state.messages:
        calls = [
            {"id": call.id, "function": {"name": call.function, "arguments": call.arguments}}
            for call in getattr(message, "tool_calls", None) or ()
        ]
        if turns or message.role == "assistant":
            named = {"tool_calls": calls} if calls else {"tool_call_id": getattr(message, "tool_call_id", None)}
            turns.append({"role": message.role, "content": message.text, **named})
    return turns or state.output.completion


HELPERS = {"judge_of_values": VALUES, "turns_of": "\n\n" + inspect.getsource(turns_of)}
"""Functions used by the code of some tools, by name."""
ADAPTERS = {
    "python": "",
    "promptfoo": '''

def get_assert(output: Any, context: dict[str, Any]) -> dict[str, Any]:
    """The function that promptfoo calls. Its variables input, context and reference are shown to the judge.

    ``config`` may name others (``input: question``) and give a ``threshold``. Without a variable for the input the
    prompt is shown as the input.
    """
    config, given = context.get("config") or {}, context.get("vars") or {}
    texts = {name: given.get(config.get(name, name)) or "" for name in ("input", "context", "reference")}
    texts["input"] = texts["input"] or context.get("prompt") or ""
    threshold = config.get("threshold")
    if threshold is None and JUDGE["threshold"] is None:
        raise JudgeError("This judge has no threshold; give the assertion one, e.g. config: {threshold: 0.5}.")
    found = judge_of_values(output=output, metadata=given, **texts)
    passed = found["passed"] if threshold is None else _reaches(found["score"], float(threshold))
    parts = [
        {"pass": each["for_the_output"], "score": float(each["for_the_output"]), "reason": each["text"]}
        for each in found["verdicts"]
    ]
    return {
        "pass": passed,
        "score": found["score"],
        "reason": found["reason"],
        "named_scores": found["dimensions"],
        "component_results": parts,
    }
''',
    "inspect": '''

from functools import partial

from anyio import to_thread
from inspect_ai.scorer import Score, mean, scorer, stderr


@scorer(metrics=[mean(), stderr()])
def askance_judge(reference: bool = False, context: str | None = None) -> Any:
    """A scorer of Inspect. On request the target is shown as the reference, and a field of the metadata as context."""

    async def score(state: Any, target: Any) -> Any:
        if not (state.output.choices or state.output.completion):
            raise JudgeError("There is no output.")
        whole = any(question["sees"] in ("last", "call") for question in JUDGE["questions"])
        whole = whole or any(each["kind"] not in DECIDED for each in CHECKS)
        texts = {"input": state.input_text, "output": turns_of(state) if whole else state.output.completion}
        if reference:
            texts["reference"] = target.text
        if context is not None:
            texts["context"] = str(state.metadata[context])
        found = await to_thread.run_sync(partial(judge, metadata=state.metadata, **texts))
        answer = state.output.completion
        return Score(value=found["score"], answer=answer, explanation=found["reason"], metadata=found)

    return score
''',
    "deepeval": '''

import asyncio

from deepeval.metrics import BaseMetric


class AskanceJudge(BaseMetric):
    """A metric of DeepEval; context and expected output are shown to the judge where the test case has them."""

    def __init__(self, threshold: float | None = None, own: bool | None = None) -> None:
        """``own`` is DeepEval's to give, which makes copies: whether the threshold is the judge's own."""
        if threshold is None and JUDGE["threshold"] is None:
            raise JudgeError("This judge has no threshold; give the metric one, e.g. AskanceJudge(threshold=0.5).")
        self.own = threshold is None if own is None else own
        self.threshold = JUDGE["threshold"] if threshold is None else threshold
        self.async_mode = True

    def measure(self, test_case: Any, *args: Any, **kwargs: Any) -> float:
        shown = {
            "input": test_case.input,
            "output": test_case.actual_output,
            "context": "\\n\\n".join(map(str, test_case.context or test_case.retrieval_context or [])),
            "reference": test_case.expected_output or "",
            "metadata": getattr(test_case, "additional_metadata", None) or getattr(test_case, "metadata", None),
        }
        self.error = None
        found = judge_of_values(**shown)
        self.score, self.reason, self.score_breakdown = found["score"], found["reason"], found["dimensions"]
        self.success = found["passed"] if self.own else _reaches(self.score, self.threshold)
        return self.score

    async def a_measure(self, test_case: Any, *args: Any, **kwargs: Any) -> float:
        return await asyncio.to_thread(self.measure, test_case)

    def is_successful(self) -> bool:
        return self.error is None and bool(self.success)

    @property
    def __name__(self) -> str:
        return "askance judge"
''',
    "mlflow": '''

from mlflow.entities import Feedback
from mlflow.genai.scorers import scorer


@scorer(name="askance")
def askance_judge(inputs: Any = None, outputs: Any = None, expectations: Any = None) -> Any:
    """A scorer of MLflow: the score, whether it passes, and each dimension.

    Of inputs that are a dictionary ``input`` and ``context`` are shown, or all of it; of expectations
    ``expected_response``.
    """
    given = inputs if isinstance(inputs, dict) else {"input": inputs}
    shown = {
        "input": given.get("input", given),
        "context": given.get("context") or "",
        "output": outputs,
        "reference": (expectations or {}).get("expected_response") or "",
        "metadata": given,
    }
    found = judge_of_values(**shown)
    rows = [Feedback(name="askance", value=found["score"], rationale=found["reason"])]
    if found["passed"] is not None:
        rows.append(Feedback(name="askance/passed", value=found["passed"]))
    return [*rows, *(Feedback(name=f"askance/{name}", value=each) for name, each in found["dimensions"].items())]
''',
}
"""Code below the judge, by tool."""

CHECK_ADAPTERS = {
    "promptfoo": '''

def get_check(output: Any, context: dict[str, Any]) -> dict[str, Any]:
    """The verdict of one check for promptfoo; the assertion names it, ``config: {check: ID}``."""
    given = context.get("vars") or {}
    texts = {name: given.get(name) or "" for name in ("input", "context", "reference")}
    found = check(context["config"]["check"], output=as_written(output), **texts)
    passed = found["for_the_output"]
    return {"pass": passed, "score": float(passed), "reason": found["found"] or found["text"]}


def as_written(output: Any) -> Any:
    """The text of an output, which promptfoo may have read as JSON: as it writes that itself."""
    if isinstance(output, (dict, list)):
        return json.dumps(output, ensure_ascii=False, separators=(",", ":"))
    return output
''',
    "inspect": '''

from inspect_ai.scorer import Score, mean, scorer, stderr


@scorer(metrics={"*": [mean(), stderr()]})
def askance_checks() -> Any:
    """A scorer of Inspect: for each check whether an output keeps it, 1 or 0."""

    async def score(state: Any, target: Any) -> Any:
        if not (state.output.choices or state.output.completion):
            raise JudgeError("There is no output.")
        output = state.output.completion
        texts = {"output": turns_of(state), "reply": output, "input": state.input_text, "reference": target.text}
        found = [check(each["id"], **texts) for each in CHECKS]
        failed = [f"{each['question']}: {each['found'] or each['text']}" for each in found if not each["for_the_output"]]
        values = {each["question"]: float(each["for_the_output"]) for each in found}
        return Score(value=values, answer=output, explanation="; ".join(failed) or "Every check is kept.")

    return score
''',
    "deepeval": '''

from deepeval.metrics import BaseMetric


class AskanceCheck(BaseMetric):
    """A metric of DeepEval: whether an output keeps one check, 1 or 0."""

    def __init__(self, name: str, threshold: float = 1.0) -> None:
        self.name = name
        self.threshold = threshold
        self.async_mode = False

    def measure(self, test_case: Any, *args: Any, **kwargs: Any) -> float:
        self.error = None
        context = "\\n\\n".join(map(str, test_case.context or test_case.retrieval_context or []))
        texts = {"input": test_case.input, "context": context, "reference": test_case.expected_output or ""}
        found = check(self.name, output=test_case.actual_output, **texts)
        self.success = found["for_the_output"]
        self.score, self.reason = float(self.success), found["found"] or found["text"]
        return self.score

    async def a_measure(self, test_case: Any, *args: Any, **kwargs: Any) -> float:
        return self.measure(test_case)

    def is_successful(self) -> bool:
        return self.error is None and bool(self.success)

    @property
    def __name__(self) -> str:
        return self.name


REQUIREMENTS = [AskanceCheck(each["id"]) for each in CHECKS]
''',
}
"""Code that makes each check a separate test, by tool."""
WITH_JUDGE = {"deepeval": "REQUIREMENTS.append(AskanceJudge())\n"}
"""Code after the checks if questions are asked too, by tool."""
