"""askance: ask small yes/no questions of a text, find where two judges quibble, patch the prompt from what that teaches."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "AskanceError": ".prompts.errors",
    "Check": ".optimizer.modes.checker",
    "Checklist": ".prompts.checklist",
    "Diagnosis": ".evaluation.diagnosis",
    "Evaluation": ".evaluation.evaluation",
    "Example": ".prompts.examples",
    "KeptJudge": ".evaluation.kept_judge",
    "NamedModel": ".models.named",
    "Prompt": ".prompts.prompt",
    "Question": ".prompts.checklist",
    "RunResult": ".optimizer.run_result",
    "Verdict": ".prompts.verdicts",
    "diagnose": ".evaluation.diagnose",
    "align": ".runs",
    "check_model": ".commands.models",
    "compare": ".evaluation.compare.compare",
    "evaluate": ".evaluation.evaluate",
    "export_judge": ".bridges.exports",
    "import_traces": ".bridges.traces.import_traces",
    "label": ".labelling.label",
    "load_checklist": ".prompts.checklist",
    "load_examples": ".prompts.examples",
    "load_judge": ".evaluation.judge_file",
    "load_memory": ".memory.memory_directory",
    "load_prompt": ".prompts.prompt",
    "weigh": ".optimizer.weights.weigh",
    "migrate": ".runs",
    "resume": ".runs",
    "run_difference": ".evaluation.compare.run_difference",
    "select": ".optimizer.selection.select",
    "evaluate_adaptively": ".evaluation.adaptive",
    "Selection": ".optimizer.selection.selected",
    "train": ".training.train",
    "tune": ".runs",
    "write_questions": ".evaluation.write_questions",
}

__all__ = ["__version__", *sorted(_HOMES)]

if TYPE_CHECKING:
    from .bridges.exports import export_judge
    from .bridges.traces.import_traces import import_traces
    from .commands.models import check_model
    from .evaluation.adaptive import evaluate_adaptively
    from .evaluation.compare.compare import compare
    from .evaluation.compare.run_difference import run_difference
    from .evaluation.diagnose import diagnose
    from .evaluation.diagnosis import Diagnosis
    from .evaluation.evaluate import evaluate
    from .evaluation.evaluation import Evaluation
    from .evaluation.judge_file import load_judge
    from .evaluation.kept_judge import KeptJudge
    from .evaluation.write_questions import write_questions
    from .labelling.label import label
    from .memory.memory_directory import load_memory
    from .models.named import NamedModel
    from .optimizer.modes.checker import Check
    from .optimizer.run_result import RunResult
    from .optimizer.selection.select import select
    from .optimizer.selection.selected import Selection
    from .optimizer.weights.weigh import weigh
    from .prompts.checklist import Checklist, Question, load_checklist
    from .prompts.errors import AskanceError
    from .prompts.examples import Example, load_examples
    from .prompts.prompt import Prompt, load_prompt
    from .prompts.verdicts import Verdict
    from .runs import align, migrate, resume, tune
    from .training.train import train


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that ``import askance`` stays cheap."""
    if name not in _HOMES:
        raise AttributeError(f"module 'askance' has no attribute '{name}'")
    return getattr(import_module(_HOMES[name], __name__), name)


def __dir__() -> list[str]:
    return list(__all__)
