"""Connections to other tools. A module is imported when one of its names is first used.

- DSPy: `checklist_metric`, `open_gateway`, `AskanceTune` (an optimiser)
- GEPA: `generator_adapter`, `evaluator_adapter`
- Inspect AI: `checklist_scorer`
- MLflow: `AskanceAlignmentOptimizer` (``judge.align``), `MLflowCallback`, `log_evaluation` (log runs, evaluations)
- any tool: `export_judge`, `import_file`, `import_traces`
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

HOMES = {
    "checklist_metric": "dspy_metric",
    "open_gateway": "dspy_metric",
    "AskanceTune": "dspy_optimizer",
    "generator_adapter": "gepa_adapter",
    "evaluator_adapter": "gepa_adapter",
    "checklist_scorer": "inspect_scorer",
    "AskanceAlignmentOptimizer": "mlflow_alignment",
    "MLflowCallback": "mlflow_callback",
    "log_evaluation": "mlflow_callback",
    "export_judge": "exports",
    "import_file": "imported_table",
    "import_traces": "trace_examples",
}
"""Public names and their modules in this package."""

__all__ = list(HOMES)

if TYPE_CHECKING:
    from .dspy_metric import checklist_metric, open_gateway
    from .dspy_optimizer import AskanceTune
    from .exports import export_judge
    from .gepa_adapter import evaluator_adapter, generator_adapter
    from .imported_table import import_file
    from .inspect_scorer import checklist_scorer
    from .mlflow_alignment import AskanceAlignmentOptimizer
    from .mlflow_callback import MLflowCallback, log_evaluation
    from .trace_examples import import_traces


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used.
    Raises MissingExtraError, with the extra to install, if the tool's package is not installed."""
    if name not in HOMES:
        raise AttributeError(f"module 'askance.bridges' has no attribute '{name}'")
    return getattr(import_module(f".{HOMES[name]}", __name__), name)


def __dir__() -> list[str]:
    return list(__all__)
