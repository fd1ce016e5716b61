"""Criteria that code decides, as an exported file holds them: askance's own code, without askance.

A criterion of the kind ``schema`` needs the package jsonschema. One of another kind that is not here, such as
``language`` or ``checker``, is decided by askance, which must be installed then.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from ..agents.decided import DECIDED, decided
from ..prompts.criteria.patterns import RunawayPatternError

CHECKS: list[dict[str, Any]] = []
"""Fields of each criterion, as a checklist writes them."""


class JudgeError(RuntimeError):
    """A verdict could not be had; there is no score."""


def check(name: str, *, output: Any, reply: str | None = None, **texts: Any) -> dict[str, Any]:
    """The verdict of one criterion on one output. ``found`` says what the check found where the output fails.

    ``reply`` is the last reply of an output that is a conversation; a criterion of a text reads it. Raises JudgeError
    where there is no output, a package is missing, or askance has no verdict either.
    """
    asked = next((each for each in CHECKS if each["id"] == name), None)
    if asked is None:
        raise JudgeError(f"There is no check '{name}'; there are: {', '.join(each['id'] for each in CHECKS)}.")
    if output is None:
        raise JudgeError("There is no output.")
    kind, good = asked["kind"], asked["good"] == "yes"
    if kind in DECIDED:
        try:
            holds, finding = decided(kind, asked["value"] or "", output if reply is None else reply)
        except RunawayPatternError as error:
            raise JudgeError(f"The check '{name}' has no verdict: {error}.") from None
        except ImportError as error:
            raise JudgeError(f"The check '{name}' needs a package: pip install jsonschema ({error}).") from None
    else:
        holds, finding = _by_askance(asked, {"output": output, **texts})
    verdict = {"question": name, "text": asked["text"], "answer": holds, "p_yes": float(holds)}
    return verdict | {"for_the_output": holds == good, "found": None if holds == good else finding}


def _by_askance(asked: dict[str, Any], texts: dict[str, Any]) -> tuple[bool, str | None]:
    """The answer of askance itself; a function's file is looked for beside this file first."""
    try:
        compute = import_module("askance.agents.checks").compute
        made_of, given_as, errors = (
            import_module(f"askance.prompts.{name}") for name in ("checklist", "examples", "errors")
        )
    except ImportError:
        raise JudgeError(
            f"The check '{asked['id']}' is of the kind {asked['kind']}, which askance decides: pip install "
            f"askance{'[language]' if asked['kind'] == 'language' else ''}."
        ) from None
    fields = {name: getattr(text, "original", text) for name, text in texts.items() if text not in (None, "")}
    try:
        known = {name: value for name, value in asked.items() if value is not None}
        verdict = compute(
            made_of.ComputedCheck.model_validate(known).found_in(Path(__file__).absolute().parent),
            given_as.Example.model_validate({"id": "1", "input": "", **fields}),
        )
    except (errors.AskanceError, ValueError) as error:
        raise JudgeError(f"The check '{asked['id']}': {error}") from None
    if verdict.answer is None:
        raise JudgeError(f"The check '{asked['id']}' has no verdict: {verdict.error}.")
    return verdict.answer, verdict.explanation
