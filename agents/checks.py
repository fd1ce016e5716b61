"""Computed criteria, which cost no call: checks, with pass or fail and a reason, and verdicts of measures (numbers).

A checklist names the checks (:class:`~askance.prompts.checklist.ComputedCheck`). One kind of check is a user's own
function. The function of ``--checker module:function`` may also return several checks for each example.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..models.base import ModelError
from ..models.functions import find_function, function_version, kind_of, must_take_an_example, what_happened
from ..prompts.checklist import ComputedCheck, ComputedMeasure
from ..prompts.conversations.chat import reply_text
from ..prompts.criteria.patterns import RunawayPatternError
from ..prompts.errors import AskanceError, InputError, did_you_mean, import_optional
from ..prompts.text import sendable
from ..prompts.verdicts import Told, Verdict
from .decided import decided
from .measures.values import make_measure_ready, own_function, values_of, version_of_measure
from .traces.call_checks import CALL_KINDS, NoRecordError, calls_hold

if TYPE_CHECKING:
    from ..models.base import Answer, AnswerStore, Request
    from ..prompts.examples import Example
    from .generator import Generated


@dataclass(frozen=True)
class Check:
    """The result of one check of an output."""

    name: str
    """Name of the check, unique among the checks of one example and the same on every example."""
    passed: bool
    reason: str | None = None
    """Expected and found value, in words. Note-takers read it, so give it at least for failed checks."""


CheckFunction = Callable[["Example"], bool | Check | Iterable[Check]]
"""Function of an example whose ``output`` is the text to check."""


@dataclass(frozen=True)
class Checker:
    """A user's function for checking, with its name."""

    name: str
    """Name as the user wrote it: ``module:function``."""
    function: CheckFunction

    @property
    def whole(self) -> str:
        """The function's own name, which names a check of the whole output."""
        return self.name.rpartition(":")[2]


def load_checker(source: str | CheckFunction | Checker, began_in: Path = Path(), where: str = "--checker") -> Checker:
    """Find a checker: ``package.module:function``, ``path/to/file.py:function``, or the function itself.

    A name is searched first in ``began_in``, the directory in which the run began. Raises InputError if there is no
    such module, file or function, if its import fails, or if it cannot be called with one example.
    """
    if isinstance(source, Checker):
        return source
    if isinstance(source, str):
        name, function = source, find_function(source, where, began_in)
    else:
        function = source
        module = getattr(source, "__module__", None) or type(source).__module__
        name = f"{module}:{getattr(source, '__qualname__', type(source).__qualname__)}"
    must_take_an_example(f"{where} {name}", function)
    return Checker(name, function)


def run_checker(checker: Checker, generated: Sequence[Generated], prompt: str) -> list[Verdict]:
    """Check every output. Returns one verdict per check, in the order of the examples and of their checks.

    A plain True or False is one check with the function's name. If generating failed, or the function raised an error,
    there is one verdict with the function's name, status ``api_error`` and no answer: a failure is never a score. The
    function gets a copy of each example, which it may change. ``prompt`` is the hash of the generator's prompt. Raises
    InputError if the function does not return True, False or one or several :class:`Check`, or if two checks of an
    example have the same name.
    """
    verdicts = []
    for record in generated:
        there_is_none = record.example.output is None
        found = _not_written(record.error) if there_is_none else _checked(checker, record.example)
        if isinstance(found, str):
            verdicts.append(_verdict(record.example, checker.whole, prompt, _failed(found)))
            continue
        for check in found:
            told = Told(check.passed, float(check.passed), "computed", check.reason or None)
            verdicts.append(_verdict(record.example, check.name, prompt, told))
    return verdicts


def computed_verdicts(
    criteria: Sequence[ComputedCheck | ComputedMeasure],
    examples: Sequence[Example],
    prompt: str,
    unwritten: Mapping[str, str] | None = None,
    store: AnswerStore | None = None,
) -> list[Verdict]:
    """Compute the verdicts of checks and measures on outputs, ordered by example, then by criterion. No model is asked.

    Args:
        prompt: Content hash of the prompt, for the verdicts.
        unwritten: Reasons why examples have no output, by example id. Their verdicts have no answer.
        store: Store of the values of measures. Stored values are not computed again.

    Raises:
        InputError: A function or a language is not known, or a function returns a value of a wrong type.
        MissingExtraError: A package is missing that identifies the language or embeds sentences.
    """
    make_ready(criteria)
    errors = unwritten or {}
    measures = [each for each in criteria if isinstance(each, ComputedMeasure)]
    values = values_of(measures, [each for each in examples if each.output is not None], store)
    versions = {each.id: version_of_measure(each) for each in measures}

    def told(example: Example, each: ComputedCheck | ComputedMeasure) -> Verdict:
        if example.output is None:
            return _verdict(example, each.id, prompt, _failed(_not_written(errors.get(example.id))))
        if isinstance(each, ComputedMeasure):
            found = _measured(each, example, values[each.id][example.id])
            return _verdict(example, each.id, prompt, found, versions[each.id])
        return _verdict(example, each.id, prompt, compute(each, example))

    return [told(example, each) for example in examples for each in criteria]


class Nobody:
    """Model of a checklist that has only checks. It is never asked."""

    name = "code"
    identity = "code"

    async def answer(self, request: Request) -> Answer:
        """Raise ModelError, because this model must never be asked."""
        raise ModelError("Nobody is asked: the checklist has checks alone.", fatal=True)


def compute(check: ComputedCheck, example: Example) -> Told:
    """Decide whether an output has the property of a check. If the output fails, the explanation says what was found.

    In a conversation, a check of text reads the last reply, and a check of calls reads the calls of tools.
    """
    output, value = reply_text(example.output or ""), check.value or ""
    if check.kind == "checker":
        found = _checked(Checker(value, _function(check)), example)
        if isinstance(found, str):
            return _failed(found)
        failed = [each for each in found if not each.passed]
        said = "; ".join(each.reason or f"it fails '{each.name}'" for each in failed if each.reason or len(found) > 1)
        holds, reason = not failed, said or None
    elif check.kind == "language":
        language, sure = language_of(output)
        if sure < SURE:
            return Told(None, status="abstained", error="the output is too short or too mixed to tell its language")
        holds, reason = language in _codes(value), f"it is written in the language {language}"
    else:
        try:
            about_calls = check.kind in CALL_KINDS
            holds, reason = (
                calls_hold(check.kind, value, example) if about_calls else decided(check.kind, value, output)
            )
        except (NoRecordError, RunawayPatternError) as error:
            return _failed(str(error))
    return Told(holds, float(holds), "computed", None if check.is_good(holds) else reason)


def make_ready(criteria: Iterable[ComputedCheck | ComputedMeasure]) -> None:
    """Load the functions and models of checks and measures, so that errors come before anything is bought. Errors are
    those of :func:`computed_verdicts`."""
    for check in criteria:
        if isinstance(check, ComputedMeasure):
            make_measure_ready(check)
        elif check.kind == "checker":
            _function(check)
        elif check.kind == "language":
            known = set(_identifier().labels) if hasattr(_identifier(), "labels") else set(_identifier().nb_classes)
            for code in (each for each in _codes(check.value or "") if each not in known):
                raise InputError(
                    f"check '{check.id}': the language '{code}' is not known; write codes such as de, en or fr."
                    f"{did_you_mean(code, sorted(known))}"
                )


def versions_of(criteria: Iterable[ComputedCheck | ComputedMeasure]) -> dict[str, str | None]:
    """Return the code version of each measure, and of each function named in checks, by id. Values depend on it."""
    return {
        each.id: version_of_measure(each)
        if isinstance(each, ComputedMeasure)
        else function_version(each.value or "", each.folder)
        for each in criteria
        if isinstance(each, ComputedMeasure) or each.kind == "checker"
    }


SURE = 0.5
"""Smallest probability of the likeliest language with which a language check decides."""


def language_of(text: str) -> tuple[str, float]:
    """Return the code of the likeliest language of a text, with its probability."""
    language, probability = _identifier().classify(text)
    return str(language), float(probability)


@lru_cache(maxsize=1)
def _identifier() -> Any:
    hint = ", or take the checks of the kind language out."
    found = import_optional("py3langid.langid", "language", "py3langid", hint)
    return found.LanguageIdentifier.from_model_file(found.MODEL_FILE, norm_probs=True)


def _codes(value: str) -> list[str]:
    return [each.lower() for each in re.split(r"[,\s]+", value) if each]


def _function(check: ComputedCheck) -> Any:
    return own_function(check.value or "", check.folder, f"check '{check.id}':")


def _checked(checker: Checker, example: Example) -> list[Check] | str:
    """Return the checks from a function for an example, or the reason why there are none."""
    try:
        checks: object = checker.function(example.model_copy(deep=True))
        if isinstance(checks, Iterable) and not isinstance(checks, (str, bytes)):
            checks = list(checks)  # runs a generator function to its end, so that its errors are caught here
    except AskanceError:
        raise
    except (Exception, SystemExit) as error:
        return what_happened(error, checker.name, checker.function)
    return _validated(checks, checker, example)


def _not_written(error: str | None) -> str:
    return f"not generated: {error or 'there is no output to check'}"


def _failed(error: str) -> Told:
    return Told(None, status="api_error", error=error)


def _verdict(example: Example, name: str, prompt: str, told: Told, version: str | None = None) -> Verdict:
    return Verdict(example.id, name, None, prompt, *told, version=version)


def _measured(measure: ComputedMeasure, example: Example, value: float | str) -> Told:
    if isinstance(value, str):
        return _failed(value)
    try:
        return Told(None, measure.share(value), "computed", value=value)
    except ValueError as error:
        raise InputError(f"measure '{measure.id}', on the example '{example.id}': {error}.") from None


def _validated(returned: object, checker: Checker, example: Example) -> list[Check]:
    subject = f"The checker {checker.name}, on the example '{example.id}', "
    if isinstance(returned, bool):
        return [Check(checker.whole, returned)]
    checks = [returned] if isinstance(returned, Check) else returned
    if not isinstance(checks, list):
        hint = " Does every branch return something?" if returned is None else ""
        raise InputError(
            f"{subject}returned {kind_of(returned)}; it must return True or False, a Check, or several.{hint}"
        )
    if not checks:
        raise InputError(f"{subject}returned no checks; an output of which nothing is checked has no score.")
    names: set[str] = set()
    for check in checks:
        if not isinstance(check, Check):
            raise InputError(f"{subject}returned {kind_of(check)} among its checks; each must be a Check.")
        if not isinstance(check.name, str) or not check.name.strip():
            raise InputError(f"{subject}returned a Check whose name is {check.name!r}; a text is needed.")
        try:
            sendable(check.name)
        except ValueError as error:
            raise InputError(f"{subject}returned a Check whose name is {check.name!r}: {error}.") from None
        if not isinstance(check.passed, bool):
            raise InputError(
                f"{subject}returned a Check '{check.name}' whose 'passed' is {kind_of(check.passed)}; put it into "
                "bool(...)."
            )
        if check.reason is not None and not isinstance(check.reason, str):
            raise InputError(
                f"{subject}returned a Check '{check.name}' whose reason is {kind_of(check.reason)}, not a text."
            )
        if check.name in names:
            raise InputError(f"{subject}returned two checks named '{check.name}'; give each a name of its own.")
        names.add(check.name)
    return checks
