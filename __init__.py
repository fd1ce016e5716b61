"""askance: ask small yes/no questions of a text, find where two judges quibble, patch the prompt from what that
teaches."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_NAMES = {
    ".agents.checks": "Check",
    ".bridges.exports": "export_judge",
    ".bridges.imported_table": "import_file",
    ".bridges.trace_examples": "import_traces",
    ".commands.models": "acheck_model check_model",
    ".evaluation.adaptive": "evaluate_adaptively",
    ".evaluation.compare.compare": "acompare compare",
    ".evaluation.compare.run_difference": "run_difference",
    ".evaluation.diagnose": "adiagnose diagnose",
    ".evaluation.evaluate": "aevaluate evaluate",
    ".evaluation.evaluation_result": "Evaluation",
    ".evaluation.findings": "Diagnosis",
    ".evaluation.generate": "agenerate generate",
    ".evaluation.judge_file": "load_judge",
    ".evaluation.kept_judge": "KeptJudge",
    ".evaluation.open_judge": "Judged OpenJudge",
    ".evaluation.raters.agreement": "rater_agreement",
    ".evaluation.write_questions": "aquestions_from awrite_questions questions_from write_questions",
    ".memory.memory_directory": "load_memory",
    ".models.named": "NamedModel",
    ".optimizer.run_result": "RunResult",
    ".optimizer.selection.select": "aselect select",
    ".optimizer.selection.selected": "Selection",
    ".optimizer.weights.weigh": "aweigh weigh",
    ".prompts.checklist": "Checklist load_checklist Question",
    ".prompts.errors": "AskanceError",
    ".prompts.examples": "Example load_examples",
    ".prompts.prompt": "load_prompt Prompt",
    ".prompts.verdicts": "Verdict",
    ".runs": "aalign align amigrate aresume atune migrate resume tune",
    ".training.train": "atrain train",
    ".workbench.label": "alabel label",
}
"""Public names by module. A name with an "a" before it is the awaitable form of the function."""
_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}

__all__ = ["__version__", *sorted(_HOMES)]

if TYPE_CHECKING:
    # "as" tells a strict type checker that these names are public
    from .agents.checks import Check as Check
    from .bridges.exports import export_judge as export_judge
    from .bridges.imported_table import import_file as import_file
    from .bridges.trace_examples import import_traces as import_traces
    from .commands.models import acheck_model as acheck_model
    from .commands.models import check_model as check_model
    from .evaluation.adaptive import evaluate_adaptively as evaluate_adaptively
    from .evaluation.compare.compare import acompare as acompare
    from .evaluation.compare.compare import compare as compare
    from .evaluation.compare.run_difference import run_difference as run_difference
    from .evaluation.diagnose import adiagnose as adiagnose
    from .evaluation.diagnose import diagnose as diagnose
    from .evaluation.evaluate import aevaluate as aevaluate
    from .evaluation.evaluate import evaluate as evaluate
    from .evaluation.evaluation_result import Evaluation as Evaluation
    from .evaluation.findings import Diagnosis as Diagnosis
    from .evaluation.generate import agenerate as agenerate
    from .evaluation.generate import generate as generate
    from .evaluation.judge_file import load_judge as load_judge
    from .evaluation.kept_judge import KeptJudge as KeptJudge
    from .evaluation.open_judge import Judged as Judged
    from .evaluation.open_judge import OpenJudge as OpenJudge
    from .evaluation.raters.agreement import rater_agreement as rater_agreement
    from .evaluation.write_questions import aquestions_from as aquestions_from
    from .evaluation.write_questions import awrite_questions as awrite_questions
    from .evaluation.write_questions import questions_from as questions_from
    from .evaluation.write_questions import write_questions as write_questions
    from .memory.memory_directory import load_memory as load_memory
    from .models.named import NamedModel as NamedModel
    from .optimizer.run_result import RunResult as RunResult
    from .optimizer.selection.select import aselect as aselect
    from .optimizer.selection.select import select as select
    from .optimizer.selection.selected import Selection as Selection
    from .optimizer.weights.weigh import aweigh as aweigh
    from .optimizer.weights.weigh import weigh as weigh
    from .prompts.checklist import Checklist as Checklist
    from .prompts.checklist import Question as Question
    from .prompts.checklist import load_checklist as load_checklist
    from .prompts.errors import AskanceError as AskanceError
    from .prompts.examples import Example as Example
    from .prompts.examples import load_examples as load_examples
    from .prompts.prompt import Prompt as Prompt
    from .prompts.prompt import load_prompt as load_prompt
    from .prompts.verdicts import Verdict as Verdict
    from .runs import aalign as aalign
    from .runs import align as align
    from .runs import amigrate as amigrate
    from .runs import aresume as aresume
    from .runs import atune as atune
    from .runs import migrate as migrate
    from .runs import resume as resume
    from .runs import tune as tune
    from .training.train import atrain as atrain
    from .training.train import train as train
    from .workbench.label import alabel as alabel
    from .workbench.label import label as label


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that ``import askance`` stays cheap."""
    if name not in _HOMES:
        raise AttributeError(f"module 'askance' has no attribute '{name}'")
    return getattr(import_module(_HOMES[name], __name__), name)


def __dir__() -> list[str]:
    return list(__all__)
