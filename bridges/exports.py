"""A judge taken elsewhere: one file for another tool, which asks what askance asks and needs askance no more.

Each is ``exported_judge.py`` with the judge in it, and the few lines by which the tool calls it. The judge's answers
are read, calibrated and weighed there as here. OpenAI's graders take no code, so theirs is a JSON object.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from pprint import pformat
from types import ModuleType
from typing import Any, Literal, get_args

from ..agents.judging import MOST_TOGETHER
from ..agents.replies import ENGLISH
from ..agents.requests import BatchedAsking, EachAsking, batched_schema, opening, quote_format
from ..evaluation.judge_file import check_calibration, load_judge
from ..evaluation.kept_judge import KeptJudge, judge_settings
from ..models import refusals
from ..models.direct import default_base_url
from ..models.embedded.registry import EMBEDDED
from ..models.replies import json_object, thoughts, yes_no
from ..models.request_form import direct_forms
from ..models.thinking_room import ROOM
from ..models.trained.scorer_file import is_scorer
from ..prompts import messages
from ..prompts.checklist import Question, Sees, refuse_checks
from ..prompts.conversations import chat
from ..prompts.errors import InputError, did_you_mean
from ..prompts.prompt import PLACEHOLDERS, Prompt, quoting
from ..prompts.text import TAGS, fill
from . import exported_judge

Tool = Literal["python", "promptfoo", "inspect", "deepeval", "mlflow", "openai-grader"]
TOOLS: tuple[Tool, ...] = get_args(Tool)
OF_REPLIES = frozenset({"promptfoo", "deepeval", "openai-grader"})
"""Tools that hand over the text of the last reply."""


_SIDES = {"yes": True, "no": False}


@dataclass(frozen=True)
class ExportedJudge:
    """A file for another tool."""

    text: str
    name: str
    """The file's usual name."""
    use: str
    """How it is used, in words."""
    notices: tuple[str, ...] = ()
    """Differences from the judge in askance, in sentences."""


def export_judge(judge: str | Path | KeptJudge, to: str) -> ExportedJudge:
    """The judge of a run, or of a ``judge.yaml``, as a file for another tool.

    Args:
        judge: A run's directory, a ``judge.yaml``, or a judge.
        to: One of :data:`TOOLS`.

    Raises:
        InputError: There is no such judge or tool, or the judge is asked in a way that the file cannot ask in.
    """
    if to not in TOOLS:
        raise InputError(f"--to {to}: there is no such tool (known: {', '.join(TOOLS)}).{did_you_mean(to, TOOLS)}")
    kept = load_judge(judge)
    _check(kept)
    if to in OF_REPLIES and any(each.sees == "call" for each in kept.checklist.questions):
        raise InputError(
            f"This judge has questions about calls of tools, and --to {to} hands over the reply alone, without them. "
            "Export it --to python, inspect or mlflow."
        )
    notices = [] if kept.asked.startswith("openai/") else [_served(kept)]
    if to == "openai-grader":
        return _grader(kept, notices)
    if kept.threshold is None and to in THRESHOLDS:
        notices.append(f"This judge has no threshold from which an output passes; give it one: {THRESHOLDS[to]}.")
    source = inspect.getsource(exported_judge)
    for module in (yes_no, json_object, thoughts, refusals, chat, messages):
        source = _inlined(source, module)
    before, main = source.split("\n\nif __name__")
    written = f"JUDGE: dict[str, Any] = {pformat(_parts(kept), width=110, sort_dicts=False)}"
    adapter = (VALUES if "judge_of_values" in ADAPTERS[to] else "") + ADAPTERS[to]
    text = before.replace("JUDGE: dict[str, Any] = {}", written) + adapter + "\n\nif __name__" + main
    name = "judge.py" if to == "python" else f"{to}_judge.py"
    return ExportedJudge(text, name, USES[to].format(name=name), tuple(notices))


def _inlined(text: str, module: ModuleType) -> str:
    """The file with a module in place of its import, so that what askance does is done there by the same lines."""
    name = module.__name__.partition(".")[2]
    source = inspect.getsource(module).partition("from __future__ import annotations\n")[2].strip()
    source = re.sub(r"^from \.\.[\w.]* import (?:\([^)]*\)|.*)\n", "", source, flags=re.MULTILINE)
    imported = rf"^from \.\.{re.escape(name)} import (?:\([^)]*\)|.*)\n"
    return re.sub(imported, lambda _: f"{source}\n\n", text, flags=re.MULTILINE)


def _check(kept: KeptJudge) -> None:
    """See that the file can ask as the judge is asked, and read its answers."""
    check_calibration(kept, "This judge")
    if is_scorer(kept.asked):
        raise InputError(f"{kept.model} is a trained scorer, which no other tool can ask; use it in askance (--judge).")
    refuse_checks(kept.checklist, "An exported file asks a model, and computes nothing")
    settings = judge_settings(kept.settings, "settings")
    cannot = {
        "reads": settings["reads"] is not None,
        "mode": settings["mode"] == "batched" and not _states(kept, settings),
        "scores": settings["scores"] == "expected",
        "explain": settings["explain"] == "always",
        "examples": kept.examples is not None,
        "section_weights": bool(kept.checklist.section_weights),
    }
    for name in (name for name, is_so in cannot.items() if is_so):
        value = settings.get(name)
        raise InputError(
            f"This judge has {name}{f' {value}' if value else ''}, which an exported file cannot do: it asks one "
            "question a call, for a yes or no. Use the judge in askance, or align one "
            f"without{' (--mode each)' if name == 'mode' else ''}."
        )


def _states(kept: KeptJudge, settings: Mapping[str, Any]) -> bool:
    """Whether each of its answers comes with a probability, which is read; a quote has none."""
    source = kept.p_yes_from() if settings["p_yes"] == "auto" else settings["p_yes"]
    return source == "stated" and not _quotes(kept)


def _stated(kept: KeptJudge) -> list[dict[str, Any]]:
    """The calls of a judge whose answers come with a probability, and how each question of a call is asked alone."""
    settings, questions = judge_settings(kept.settings, "settings"), kept.checklist.questions
    if not _states(kept, settings):
        return []
    alone = EachAsking(kept.prompt, questions, False, False, 0.0, None, kept.checklist.answers, stated=True)
    each = {
        question.id: {
            "id": question.id,
            "sees": question.sees,
            "block": block,
            "schema": alone._parameters.schema,
            "most": alone._parameters.max_tokens,
            "form": alone.form,
            "alone": None,
        }
        for question, block in zip(questions, alone._blocks, strict=True)
    }
    if settings["mode"] != "batched":
        return list(each.values())
    together = BatchedAsking(
        kept.prompt, questions, False, False, 0.0, None, 0, kept.checklist.answers, stated=True, most=MOST_TOGETHER
    )
    return [
        {
            "id": None,
            "sees": part[0].sees,
            "block": together.block(part),
            "schema": batched_schema(part, explained=False, answers=together.answers or ENGLISH, stated=True),
            "most": together.tokens(part),
            "form": together.form,
            "alone": {question.id: each[question.id] for question in part},
        }
        for part in together.parts
    ]


def _served(kept: KeptJudge) -> str:
    return (
        f"The judge's model is {kept.asked}: the file asks an OpenAI-compatible server for '{_model_name(kept)}'. Set "
        "OPENAI_BASE_URL to one that serves it, and JUDGE_MODEL where it has another name there."
    )


def _model_name(kept: KeptJudge) -> str:
    provider, _, name = kept.asked.partition("/")
    return Path(name).stem if provider in EMBEDDED and name.endswith(".gguf") else name


def _asked(kept: KeptJudge) -> Iterator[tuple[Question, str]]:
    """Each question, and the words in which it is asked."""
    asking = _asking(kept)
    return zip(kept.checklist.questions, asking._blocks, strict=True)


def _asking(kept: KeptJudge) -> EachAsking:
    return EachAsking(kept.prompt, kept.checklist.questions, False, False, 0.0, None, kept.checklist.answers)


def _by_side(words: Mapping[str, bool]) -> dict[str, str]:
    return {name: " ".join(each for each, yes in words.items() if yes is side) for name, side in _SIDES.items()}


def _prompts(kept: KeptJudge) -> dict[Sees, Prompt]:
    """The prompt by what questions see; of these only what some question sees."""
    alone = kept.prompt.of_output_alone
    of: dict[Sees, Prompt] = {"all": kept.prompt, "output": alone, "last": alone, "call": alone}
    return {sees: of[sees] for sees in dict.fromkeys(each.sees for each in kept.checklist.questions) if sees in of}


def _as_exported(prompt: Prompt) -> dict[str, Any]:
    """A prompt's messages, with the fields whose tags are there ``always``. Raises InputError where it needs more."""
    if prompt.form is not None and not prompt.form.is_plain:
        return {"messages": prompt.form.exported(prompt.text), "always": ["output"]}
    return {"messages": [("user" if prompt.placeholders else "system", prompt.text)], "always": [*PLACEHOLDERS]}


def _quotes(kept: KeptJudge) -> bool:
    return any(each.sees == "quote" for each in kept.checklist.questions)


def _parts(kept: KeptJudge) -> dict[str, Any]:
    """The judge as the file holds it."""
    settings = judge_settings(kept.settings, "settings")
    fits = None
    if kept.calibration is not None:
        fits = {
            name: each.model_dump(include={"threshold", "slope", "shift", "lean"}, exclude_none=True)
            for name, each in kept.calibration.questions.items()
        }
    fields: dict[str, Any] = {}
    if kept.named is not None:
        forms = direct_forms(kept.named.thinking, kept.named.api_base or default_base_url())
        plain = {name: each for name, each in kept.named.extra_body.items() if "${" not in str(each)}
        fields = {**(forms[0] if forms else {}), **plain}
    return {
        "model": _model_name(kept),
        "fields": fields,
        "thinking_room": list((kept.named and kept.named.thinking_room) or ROOM),
        "prompts": {sees: _as_exported(prompt) for sees, prompt in _prompts(kept).items()},
        "stated": _stated(kept),
        "form": _asking(kept).form,
        "words": [_by_side(each) for each in _asking(kept).words],
        "quoting": opening(quoting(""), "")[:-1] if _quotes(kept) else [],
        "questions": [
            {name: getattr(each, name) for name in ("id", "text", "good", "weight", "dimension", "sees")}
            | {"block": block}
            for each, block in _asked(kept)
        ],
        "soft": settings["scores"] == "soft",
        **{name: settings[name] for name in ("p_yes", "samples", "temperature", "repeat", "seed")},
        "calibration": fits,
        "threshold": kept.threshold,
        "threshold_of": list(kept.threshold_of),
        "tags": list(TAGS),
    }


def _grader(kept: KeptJudge, notices: list[str]) -> ExportedJudge:
    """A grader of OpenAI's: a label for every question, and their weighted mean."""
    if kept.calibration is not None:
        raise InputError(
            "This judge has a calibration, which is about probabilities of yes, and OpenAI's graders know only labels. "
            "Export it --to python instead, or align one without a calibration (--update edits)."
        )
    prompts = _prompts(kept)
    if _quotes(kept):
        raise InputError(
            "This judge has questions that are answered with a quote, and OpenAI's graders know only labels. Export it "
            "--to python instead."
        )
    words = dict(zip(("yes", "no"), kept.checklist.answers or ENGLISH, strict=True))
    graders: dict[str, Any] = {}
    for number, (each, block) in enumerate(_asked(kept), 1):
        asked = _graded(prompts[each.sees], each.sees, block)
        graders[f"q{number}"] = {
            "type": "label_model",
            "name": each.id,
            "model": _model_name(kept),
            "input": [{"role": role, "content": content} for role, content in asked],
            "labels": list(words.values()),
            "passing_labels": [words[each.good]],
        }
    weights = {
        name: each.weight for name, each in zip(graders, kept.checklist.questions, strict=True) if each.weight > 0
    }
    total = " + ".join(f"{weight:g} * {name}" for name, weight in weights.items())
    made = {
        "type": "multi",
        "name": "askance judge",
        "graders": graders,
        "calculate_output": f"({total}) / {sum(weights.values()):g}",
    }
    notices.append(
        "A grader of OpenAI's answers each question with a label: its scores are shares of good answers, not mean "
        "probabilities of yes, and the texts stand between fixed tags. "
        f"{'There is no threshold in it.' if kept.threshold is None else ''}"
        f"{'' if kept.threshold is None else f'An output passes from {kept.threshold:g} on (pass_threshold).'}"
    )
    text = json.dumps(made, ensure_ascii=False, indent=2) + "\n"
    return ExportedJudge(text, "grader.json", USES["openai-grader"], tuple(notices))


def _graded(prompt: Prompt, sees: Sees, block: str) -> list[tuple[str, str]]:
    """The messages in which a grader is asked a question; the texts are OpenAI's to put in."""
    beside = {name: f"{{{{item.{name}}}}}" if sees == "all" else "" for name in ("input", "context", "reference")}
    texts = beside | {"output": "{{sample.output_text}}"}
    asked = _as_exported(prompt)
    tags = {name: f"<{name}>\n{each}\n</{name}>" for name, each in texts.items() if each or name in asked["always"]}
    put_in = dict.fromkeys(texts, "") | tags | {"question": block}
    made = [(role, fill(text, put_in)) for role, text in asked["messages"]]
    if "output" not in prompt.placeholders:
        shown = "\n".join(f"{name.capitalize()}:\n{tags[name]}\n" for name in ("input", "output") if texts[name])
        return [*made, ("user", f"{shown}\n{block}")]
    end = "" if "question" in prompt.placeholders else f"\n\n{block}"
    return [*made[:-1], (made[-1][0], made[-1][1] + end)]


assert quote_format() == exported_judge._QUOTE_FORM, "an exported judge asks again in the same words"

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
}

THRESHOLDS = {"promptfoo": "config: {threshold: 0.5} beside type and value", "deepeval": "AskanceJudge(threshold=0.5)"}
"""How a threshold is given to a tool that needs one."""

VALUES = '''

def judge_of_values(**given: Any) -> dict[str, Any]:
    """Judge values of a tool, which need not be texts: messages are a conversation, an object around a single text is
    that text, and any other is its JSON.

    Raises:
        JudgeError: As of :func:`judge`, or there is no output.
    """
    if given["output"] in (None, {}, []):
        raise JudgeError("There is no output.")
    return judge(**{name: _as_text(value) for name, value in given.items()})


def _as_text(value: Any) -> str:
    if isinstance(value, (str, int, float)):
        return str(value)
    return StructuredText(text_of(value) or "", value)
'''
"""How values that a tool holds are judged."""


def turns_of(state: Any) -> Any:
    """The messages of a sample from the first reply on; the reply alone where there are none."""
    told: list[dict[str, Any]] = []
    for each in state.messages:
        calls = [
            {"id": call.id, "function": {"name": call.function, "arguments": call.arguments}}
            for call in getattr(each, "tool_calls", None) or ()
        ]
        if told or each.role == "assistant":
            named = {"tool_calls": calls} if calls else {"tool_call_id": getattr(each, "tool_call_id", None)}
            told.append({"role": each.role, "content": each.text, **named})
    return told or state.output.completion


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
    found = judge_of_values(output=output, **texts)
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
    "inspect": """

from functools import partial

from anyio import to_thread
from inspect_ai.scorer import Score, mean, scorer, stderr


"""
    + inspect.getsource(turns_of)
    + '''

@scorer(metrics=[mean(), stderr()])
def askance_judge(reference: bool = False, context: str | None = None) -> Any:
    """A scorer of Inspect; the target is shown as the reference, and a field of the metadata as the context, on "
    "request."""

    async def score(state: Any, target: Any) -> Any:
        if not (state.output.choices or state.output.completion):
            raise JudgeError("There is no output.")
        whole = any(question["sees"] in ("last", "call") for question in JUDGE["questions"])
        texts = {"input": state.input_text, "output": turns_of(state) if whole else state.output.completion}
        if reference:
            texts["reference"] = target.text
        if context is not None:
            texts["context"] = str(state.metadata[context])
        found = await to_thread.run_sync(partial(judge, **texts))
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
    }
    found = judge_of_values(**shown)
    rows = [Feedback(name="askance", value=found["score"], rationale=found["reason"])]
    if found["passed"] is not None:
        rows.append(Feedback(name="askance/passed", value=found["passed"]))
    return [*rows, *(Feedback(name=f"askance/{name}", value=each) for name, each in found["dimensions"].items())]
''',
}
"""By tool: what is written below the judge."""

__all__ = ["TOOLS", "ExportedJudge", "export_judge"]
