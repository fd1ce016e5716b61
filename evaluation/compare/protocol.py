"""The protocol of a judge in a comparison, and the criteria that it judges by.

A judge gives an example a score in [0, 1] on each dimension, or says why it cannot. All judges of a comparison show the
example in the same way and before the question, so that it stays in the model's prompt cache (docs/results/machine.md,
"Where the example stands in the prompt"). Each has a meter that counts its cost alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import yaml

from ...models.base import Answer, Model, Request
from ...models.budget import Budget
from ...models.gateway import Gateway
from ...prompts.checklist import Checklist, Question
from ...prompts.errors import InputError
from ...prompts.examples import Example
from ...prompts.formats.binding import ReadsExamples
from ...prompts.prompt import Prompt, bound_prompts, default_prompt

if TYPE_CHECKING:
    from ...agents.buying import Estimate
    from ...prompts.verdicts import Status
    from ..options import CompareOptions
    from ..scoring import Targets
    from .costs import Spent


@dataclass(frozen=True, slots=True)
class Criterion:
    """A dimension, described in words."""

    dimension: str
    description: str
    """Completes "Rate the output on DIMENSION: …"."""
    question: str
    """A yes/no question; yes is good."""


@cache
def _usual_criteria() -> dict[str, dict[str, str]]:
    return dict(yaml.safe_load(files(__package__).joinpath("criteria.yaml").read_text("utf-8")))


def criteria_for(dimensions: Sequence[str], given: str | None = None) -> tuple[Criterion, ...]:
    """Describe dimensions: usual ones in askance's words, others by their name. A ``given`` text (``--criteria``)
    replaces all descriptions."""
    return tuple(_criterion(dimension, given) for dimension in dimensions)


def boolean_checklist(task: str, criteria: Sequence[Criterion]) -> Checklist:
    """One question for each dimension, as in UniEval (Zhong et al. 2022)."""
    questions = [
        Question(id=f"unieval_{each.dimension}", text=each.question, dimension=each.dimension) for each in criteria
    ]
    return Checklist(task=task, questions=tuple(questions))


def _criterion(dimension: str, given: str | None) -> Criterion:
    words = dimension.replace("_", " ")
    if given is not None:
        text = given.strip().rstrip(".")
        return Criterion(dimension, text, f"Is the output good as to its {words}: {text}?")
    if (usual := _usual_criteria().get(dimension.lower())) is not None:
        return Criterion(dimension, usual["description"], usual["question"])
    return Criterion(dimension, f"how good the {words} of the output is", f"Is the {words} of the output good?")


@dataclass(frozen=True, slots=True)
class JudgeScore:
    """A judge's score of one example on one dimension. A failure is a status, never a score."""

    example: str
    dimension: str
    score: float | None
    """In [0, 1], 1 the best; None unless the status is ``ok``."""
    status: Status = "ok"
    error: str | None = None
    replicate: int = 0
    reasons: str | None = None
    """Text of a free-form judge before its score."""
    finds_fault: bool | None = None
    """Whether the answer to one of the judge's questions speaks against the output; None without yes/no questions."""


@dataclass(frozen=True)
class Setup:
    """Inputs of every judge of a comparison: the model, store, layout of the examples and task are shared."""

    gateway: Gateway
    model: Model
    prompt: Prompt
    """Prompt of the judges that ask a checklist's questions."""
    layout: Prompt
    """Prompt of the judges that rate: the example as in ``prompt``, then ``{question}``."""
    task: str
    criteria: tuple[Criterion, ...]
    """One for each dimension that is compared."""
    options: CompareOptions
    checklist: Checklist | None = None
    candidates: Checklist | None = None
    """Pool of candidate questions, e.g. of ``random_k``; None: the checklist is the pool."""
    panel: tuple[Model, ...] = ()
    """Models of ``poll``; empty: several members of ``model``."""
    own: Prompt | None = None
    """Prompt of the judge in people's own words."""
    examples: Sequence[Example] = ()
    """All examples that are rated."""
    targets: Targets | None = None
    """People's scores of ``examples``; None if there are none."""

    @property
    def dimensions(self) -> tuple[str, ...]:
        """Names of the dimensions that are compared."""
        return tuple(criterion.dimension for criterion in self.criteria)

    @property
    def stored_only(self) -> Setup:
        """Copy whose gateway gives what is in the store and refuses to buy (`BudgetExceededError`)."""
        return replace(self, gateway=Gateway(self.gateway.store, Budget(call_budget=0)))


Named = Mapping[tuple[str, str], float | None]
"""Share of the first evaluation's aspects that the second one kept, by example and dimension; None if the first named
none."""


@dataclass(frozen=True)
class JudgeOutput:
    """One judge's scores and their cost."""

    entrant: Entrant
    ratings: Sequence[JudgeScore]
    """One per example, replicate and dimension."""
    upfront: Spent
    """Spent once, however many examples there are."""
    rating: Spent
    """Spent on all examples and repeats."""
    named: Named | None = None
    """Shares of kept aspects, for a free-form judge and if asked for."""
    written: tuple[Question, ...] = ()
    """Questions that the judge wrote itself."""

    @property
    def name(self) -> str:
        """Label in the table."""
        return self.entrant.label


class Judge(Protocol):
    """A judge. Its calls are booked under its name."""

    @property
    def name(self) -> str:
        """Name on the command line."""

    async def prepare(self) -> None:
        """Buy what is needed once, however many examples there are. Raises AskanceError if it cannot be had."""

    async def rate(self, examples: Sequence[Example]) -> list[JudgeScore]:
        """Return one rating per example, replicate and dimension, in that order. Raises BudgetExceededError if a cap
        was reached (bought answers stay in the store), and ModelError if the endpoint refuses every call or is down."""

    async def estimate(self, examples: Sequence[Example]) -> Estimate:
        """Estimate of what :meth:`prepare` and :meth:`rate` would buy now, as far as that can be known."""


class NothingToPrepare:
    """A judge whose questions are given."""

    async def prepare(self) -> None:
        """Buy nothing."""


_SHOWN = re.compile(r"(?<!\{)\{(?:input|context|output|reference)\}(?!\})")
LONGEST_LABEL = 60
"""Most characters of a label before a part of the example; a longer text is guidance."""


def layout_of(prompt: Prompt, examples: Sequence[Example]) -> Prompt:
    """Return the part of a prompt that shows the example, followed by ``{question}``.

    A prompt that has guidance before the example, or no placeholders, has no such part. The part of askance's own
    prompt then takes its place.
    """
    shown = _shown_first(prompt)
    if shown is None:
        shown = _shown_first(default_prompt(examples))
    assert shown is not None, "askance's own prompt shows the example first"
    return Prompt(f"{shown}\n\n{{question}}\n")


def _shown_first(prompt: Prompt) -> str | None:
    """Return the text up to the last part of the example; None if the prompt does not begin with the example."""
    if prompt.form is not None and not prompt.form.is_plain:
        return None
    places = list(_SHOWN.finditer(prompt.text))
    question = prompt.text.find("{question}")
    if not places or places[0].start() > LONGEST_LABEL or (question != -1 and question < places[-1].start()):
        return None
    text = prompt.text[: places[-1].end()]
    gaps = [text[before.end() : after.start()] for before, after in pairwise(places)]
    return text if all(len(gap) <= LONGEST_LABEL for gap in gaps) else None


class Meter(Gateway):
    """A gateway that passes everything on to the common gateway and counts each answer once, bought or stored.

    The common gateway keeps the caps and says what this run paid. The meter says what the judge would have cost alone,
    so that a judge is not free because its answers were in the store already.
    """

    def __init__(self, common: Gateway) -> None:
        """``common`` is shared by all judges of a comparison."""
        super().__init__(common.store, Budget(), max_concurrency=common.max_concurrency)
        self.provenance = common.provenance
        self._probed = common._probed
        self._common = common
        self._met: set[bytes] = set()

    async def stored(self, role: str, keys: Sequence[bytes]) -> Mapping[bytes, Answer]:
        """Return the answers that are in the store, and count them."""
        found = await self._common.stored(role, keys)
        for key in keys:
            if key in found:
                self._meet(role, key, found[key])
        return found

    async def buy(self, role: str, model: Model, request: Request) -> Answer:
        """Buy through the common gateway."""
        answer = await self._common.buy(role, model, request)
        self._meet(role, request.key, answer)
        return answer

    def _meet(self, role: str, key: bytes, answer: Answer) -> None:
        if key not in self._met:
            self._met.add(key)
            self.budget.paid(role, answer)


OWN = "own"
"""The judge in people's own words, which has a prompt of its own."""
OWN_WORDS = ("geval", "direct", "cot", "poll", "questionnaire")
"""Judges that ask in words of their own. From the prompts they take only the first one's layout of the example."""


BETWEEN = " · "
"""Separator of the parts of a label."""


@dataclass(frozen=True)
class NamedPrompt:
    """A prompt and its name in the table."""

    name: str
    prompt: Prompt


@dataclass(frozen=True)
class Entrant:
    """One judge of the table."""

    label: str
    """Name of the judge, with its model and its prompt if several of these take part; unique."""
    judge: str
    """A name in :data:`~askance.evaluation.compare.judges.KNOWN`."""
    model: str | Model
    prompt: NamedPrompt | None = None
    """None for the judges that ask in words of their own."""
    panel: tuple[str | Model, ...] = ()
    """Models of a panel, which replace the model."""

    @property
    def model_name(self) -> str:
        """Name of the model, or names of the panel's models."""
        return ", ".join(_name(each) for each in self.panel or (self.model,))

    @property
    def prompt_name(self) -> str | None:
        """Name of the prompt; None for the judges that ask in words of their own."""
        return None if self.prompt is None else self.prompt.name


def line_up(
    judges: Sequence[str],
    models: Sequence[str | Model],
    prompts: Sequence[NamedPrompt],
    panel: Sequence[str | Model] = (),
) -> tuple[Entrant, ...]:
    """Combine judges, models and prompts, in this order; a judge that asks in words of its own takes no prompt.

    Raises InputError if several prompts or several models are given and no judge would use them.
    """
    asking = [name for name in judges if name not in (*OWN_WORDS, OWN)]
    if len(prompts) > 1 and not asking:
        raise InputError(f"prompt: {' and '.join(judges)} would not use several; they ask in words of their own.")
    if len(models) > 1 and panel and list(judges) == ["poll"]:
        raise InputError("model: the panel's models take the place of several.")
    found = []
    for judge in judges:
        members = tuple(panel) if judge == "poll" else ()
        for model in models[:1] if members else models:
            for prompt in prompts if judge in asking else [None]:
                parts = [judge] if len(judges) > 1 or len(models) == len(prompts) == 1 else []
                parts += [_name(model)] if len(models) > 1 and not members else []
                parts += [prompt.name] if prompt and len(prompts) > 1 else []
                found.append(Entrant(BETWEEN.join(parts), judge, model, prompt, members))
    return tuple(found)


def models_of(given: str | Model | Iterable[str | Model]) -> tuple[str | Model, ...]:
    """Return one model or several as a tuple. Raises InputError if there is none, or two have one name."""
    models = (given,) if isinstance(given, str) or not isinstance(given, Iterable) else tuple(given)
    if not models:
        raise InputError("model: name at least one.")
    _refuse_twice("model", [_name(each) for each in models])
    return models


def prompts_of(
    given: str | Path | Prompt | Iterable[str | Path | Prompt] | None,
    examples: Sequence[Example],
    settings: ReadsExamples | None = None,
) -> tuple[NamedPrompt, ...]:
    """Return the prompts with the names of their files, or with their paths if two names are equal; by default our own.

    Raises InputError where a file cannot be read, or two prompts are the same.
    """
    if given is None:
        return (NamedPrompt("default", default_prompt(examples)),)
    several = (given,) if isinstance(given, (str, Path, Prompt)) else tuple(given)
    if not several:
        raise InputError("prompt: name at least one, or leave it out for a neutral one.")
    files = [
        f"prompt {place}" if isinstance(each, Prompt) else Path(each).name for place, each in enumerate(several, 1)
    ]
    named = tuple(
        NamedPrompt(file if files.count(file) == 1 else str(each), prompt)
        for file, each, prompt in zip(files, several, bound_prompts(several, examples, settings), strict=True)
    )
    _refuse_twice("prompt", [each.name for each in named])
    for place, each in enumerate(named):
        for other in named[:place]:
            if other.prompt.hash == each.prompt.hash:
                raise InputError(f"prompt: {other.name} and {each.name} are the same text, so they are one judge.")
    return named


def _refuse_twice(what: str, names: Sequence[str]) -> None:
    for place, name in enumerate(names):
        if name in names[:place]:
            raise InputError(f"{what}: {name} is named twice.")


def _name(model: str | Model) -> str:
    return model if isinstance(model, str) else model.name
