"""Checks of outputs: criteria that code decides, with pass or fail and a reason, and without a call; and the verdicts
of measures, which are numbers.

A checklist names them (:class:`~askance.prompts.checklist.ComputedCheck`). A user's own function is one of their kinds;
``--checker module:function`` may also return several checks of its own for each example.
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
    """One thing that was checked about an output."""

    name: str
    """Name of the check, unique among the checks of one example and the same on every example."""
    passed: bool
    reason: str | None = None
    """In words, what was wanted and what was found. Note-takers read it, so it is best given where a check fails."""


CheckFunction = Callable[["Example"], bool | Check | Iterable[Check]]
"""Takes an example whose ``output`` is the text to check."""


@dataclass(frozen=True)
class Checker:
    """A user's function with the name it is known by."""

    name: str
    """``module:function``, as the user wrote it."""
    function: CheckFunction

    @property
    def whole(self) -> str:
        """The name of a check that is about the whole output: the function's own."""
        return self.name.rpartition(":")[2]


def load_checker(source: str | CheckFunction | Checker, began_in: Path = Path(), where: str = "--checker") -> Checker:
    """Find a checker: ``package.module:function``, ``path/to/file.py:function``, or the function itself.

    A name is looked for first in ``began_in``, the directory that it was given in. Raises InputError where there is no
    such module, file or function, importing it fails, or what is found cannot be called with one example.
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
    """Check every output; one verdict per check, in the order of the examples and of each one's checks.

    A plain True or False counts as one check with the function's name. Where generating failed, or the function raised
    an error, there is one verdict of that name with status ``api_error`` and no answer: a failure is never a score.
    The function gets a copy of each example, which it may change. ``prompt`` is the hash of the generator's prompt.
    Raises InputError where the function returned something else than True, False, a :class:`Check` or several, or two
    checks of one example have one name.
    """
    verdicts = []
    for each in generated:
        there_is_none = each.example.output is None
        found = _not_written(each.error) if there_is_none else _checked(checker, each.example)
        if isinstance(found, str):
            verdicts.append(_verdict(each.example, checker.whole, prompt, _failed(found)))
            continue
        for check in found:
            told = Told(check.passed, float(check.passed), "computed", check.reason or None)
            verdicts.append(_verdict(each.example, check.name, prompt, told))
    return verdicts


def computed_verdicts(
    criteria: Sequence[ComputedCheck | ComputedMeasure],
    examples: Sequence[Example],
    prompt: str,
    unwritten: Mapping[str, str] | None = None,
    store: AnswerStore | None = None,
) -> list[Verdict]:
    """The verdicts of checks and measures on outputs, by example and criterion in the order given; nothing is asked.

    Args:
        prompt: Content hash of the prompt that stands in the verdicts.
        unwritten: Why an example has no output, by its id; its verdicts have no answer.
        store: Keeps the values of measures; those that are there are not computed again.

    Raises:
        InputError: A function or a language is not known, or a function gives something else than it should.
        MissingExtraError: A package is missing that finds out the language, or embeds sentences.
    """
    make_ready(criteria)
    without = unwritten or {}
    measures = [each for each in criteria if isinstance(each, ComputedMeasure)]
    values = values_of(measures, [each for each in examples if each.output is not None], store)
    versions = {each.id: version_of_measure(each) for each in measures}

    def told(example: Example, each: ComputedCheck | ComputedMeasure) -> Verdict:
        if example.output is None:
            return _verdict(example, each.id, prompt, _failed(_not_written(without.get(example.id))))
        if isinstance(each, ComputedMeasure):
            found = _measured(each, example, values[each.id][example.id])
            return _verdict(example, each.id, prompt, found, versions[each.id])
        return _verdict(example, each.id, prompt, compute(each, example))

    return [told(example, each) for example in examples for each in criteria]


class Nobody:
    """A model that is never asked: the one of a checklist of checks alone."""

    name = "code"
    identity = "code"

    async def answer(self, request: Request) -> Answer:
        """Refuse."""
        raise ModelError("Nobody is asked: the checklist has checks alone.", fatal=True)


def compute(check: ComputedCheck, example: Example) -> Told:
    """Say whether an output has the property; where it does not pass, the explanation says what was found.

    Of a conversation a check of a text reads the last reply, and one of calls the calls of tools.
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
    """Load what checks and measures need, so that a mistake is told before anything is bought; errors as
    :func:`computed_verdicts`."""
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
    """The version of each measure, and of each function that checks name, by id: what they give depends on it."""
    return {
        each.id: version_of_measure(each)
        if isinstance(each, ComputedMeasure)
        else function_version(each.value or "", each.folder)
        for each in criteria
        if isinstance(each, ComputedMeasure) or each.kind == "checker"
    }


SURE = 0.5
"""Probability of the likeliest language below which nothing is said of it."""


def language_of(text: str) -> tuple[str, float]:
    """Code of the likeliest language of a text, and its probability."""
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
    """The checks that a function returns for an example, or why there are none."""
    try:
        checks: object = checker.function(example.model_copy(deep=True))
        if isinstance(checks, Iterable) and not isinstance(checks, (str, bytes)):
            checks = list(checks)  # a generator function is run to its end, so that its errors are the function's own
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
    where = f"The checker {checker.name}, on the example '{example.id}', "
    if isinstance(returned, bool):
        return [Check(checker.whole, returned)]
    checks = [returned] if isinstance(returned, Check) else returned
    if not isinstance(checks, list):
        hint = " Does every branch return something?" if returned is None else ""
        raise InputError(
            f"{where}returned {kind_of(returned)}; it must return True or False, a Check, or several.{hint}"
        )
    if not checks:
        raise InputError(f"{where}returned no checks; an output of which nothing is checked has no score.")
    names: set[str] = set()
    for check in checks:
        if not isinstance(check, Check):
            raise InputError(f"{where}returned {kind_of(check)} among its checks; each must be a Check.")
        if not isinstance(check.name, str) or not check.name.strip():
            raise InputError(f"{where}returned a Check whose name is {check.name!r}; a text is needed.")
        try:
            sendable(check.name)
        except ValueError as error:
            raise InputError(f"{where}returned a Check whose name is {check.name!r}: {error}.") from None
        if not isinstance(check.passed, bool):
            raise InputError(
                f"{where}returned a Check '{check.name}' whose 'passed' is {kind_of(check.passed)}; put it into "
                "bool(...)."
            )
        if check.reason is not None and not isinstance(check.reason, str):
            raise InputError(
                f"{where}returned a Check '{check.name}' whose reason is {kind_of(check.reason)}, not a text."
            )
        if check.name in names:
            raise InputError(f"{where}returned two checks named '{check.name}'; give each a name of its own.")
        names.add(check.name)
    return checks
