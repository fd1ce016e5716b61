"""Who takes part in a comparison: every judge with every model and every prompt, each combination once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ...prompts.errors import InputError
from ...prompts.prompt import Prompt, default_prompt, load_prompt
from .judges import OWN_WORDS

if TYPE_CHECKING:
    from ...models.base import Model
    from ...prompts.examples import Example

BETWEEN = " · "
"""Between the parts of a label."""


@dataclass(frozen=True)
class NamedPrompt:
    """A prompt, and what it is called in the table."""

    name: str
    prompt: Prompt


@dataclass(frozen=True)
class Entrant:
    """One judge of the table."""

    label: str
    """Names the judge, then its model and its prompt, where several take part; unique."""
    judge: str
    """Of :data:`~askance.evaluation.compare.judges.JUDGES`."""
    model: str | Model
    prompt: NamedPrompt | None = None
    """None for the judges that ask in words of their own."""
    panel: tuple[str | Model, ...] = ()
    """The models of a panel, which take the model's place."""

    @property
    def model_name(self) -> str:
        """Of its model, or of those of its panel."""
        return ", ".join(_name(each) for each in self.panel or (self.model,))

    @property
    def prompt_name(self) -> str | None:
        """Of its prompt; None for the judges that ask in words of their own."""
        return None if self.prompt is None else self.prompt.name


def line_up(
    judges: Sequence[str],
    models: Sequence[str | Model],
    prompts: Sequence[NamedPrompt],
    panel: Sequence[str | Model] = (),
) -> tuple[Entrant, ...]:
    """Every combination: judges in order, and for each the models in order, and for each of those the prompts.

    A judge that asks in words of its own is there once for each model, and a panel of named models once.

    Raises:
        InputError: No combination has one of several prompts, or one of several models.
    """
    asking = [name for name in judges if name not in OWN_WORDS]
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
    """One model or several, as a tuple.

    Raises:
        InputError: There is none, or two have one name.
    """
    models = (given,) if isinstance(given, str) or not isinstance(given, Iterable) else tuple(given)
    if not models:
        raise InputError("model: name at least one.")
    _refuse_twice("model", [_name(each) for each in models])
    return models


def prompts_of(
    given: str | Path | Prompt | Iterable[str | Path | Prompt] | None, examples: Sequence[Example]
) -> tuple[NamedPrompt, ...]:
    """One prompt or several with their names, those of their files, or their paths where two have one; without any our own.

    Raises:
        InputError: A file cannot be read, or two prompts are the same.
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
        NamedPrompt(file if files.count(file) == 1 else str(each), load_prompt(each))
        for file, each in zip(files, several, strict=True)
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
