"""A judge in people's own words: its settings, and the checklist of one question made from its prompt."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self, TypeVar

from pydantic import BaseModel, Field, field_validator, model_validator

from ..agents.judging import REPLY_TOKENS, Judging
from ..agents.own_words import own_checklist
from ..models.replies.own_formats import FORMS, find_reads, parse_reads
from ..prompts.checklist import Checklist, load_checklist
from ..prompts.errors import InputError
from ..prompts.examples import Example, human_dimensions
from ..prompts.prompt import Prompt, own_prompt
from ..settings import FileName, Heading, Idle
from .scoring import WHOLE

logger = logging.getLogger(__name__)


def _reads(given: Mapping[str, Any]) -> bool:
    return given.get("reads") is not None


class OwnForm(BaseModel):
    """Form of the replies of a judge in people's own words."""

    reads: Annotated[str | None, Heading.ASKED] = Field(
        None,
        description="How the reply of a judge in your own words is read: 'score 1-5', 'labels Bad,Fair,Good', "
        "'json:verdict.score 1-5' or 'pattern:Rating: (\\d+) 1-5'. It is asked as its prompt stands. Default, without "
        "a checklist: as the prompt itself says.",
    )
    reply_tokens: Annotated[int, Heading.ASKED] = Field(
        REPLY_TOKENS, ge=1, description="Longest reply of a judge in your own words, in tokens."
    )

    @field_validator("reads")
    @classmethod
    def _form_of_replies(cls, given: str | None) -> str | None:
        return None if given is None else str(parse_reads(given))


class OwnWords(OwnForm):
    """Settings of a judge in people's own words."""

    idle: ClassVar[tuple[Idle, ...]] = (
        Idle(
            ("mode", "explain", "p_yes", "samples", "answer_words", "weights", "score_scale"),
            _reads,
            "a judge in your own words is asked as its prompt stands, and states its score with its reason (reads)",
        ),
        Idle(("reply_tokens",), lambda given: not _reads(given), "no judge is asked in your own words (reads)"),
    )

    @model_validator(mode="after")
    def _states_its_score(self) -> Self:
        if self.reads is not None and getattr(self, "scores", None) == "expected":
            raise ValueError("scores expected: a judge in your own words states its score (reads)")
        return self

    def asked_so(self, judging: Judging) -> Judging:
        """Return ``judging`` with the form of replies, if one is named."""
        return in_own_words(judging, self)


class OwnBeside(OwnForm):
    """Settings of a judge in people's own words beside judges that are asked the questions of a checklist."""

    own_prompt: Annotated[FileName, Heading.COMPARED.at(1)] = Field(
        None, description="Prompt of the judge own, which is asked as it stands; see --reads."
    )


def in_own_words(judging: Judging, form: OwnForm) -> Judging:
    """Return ``judging`` with the form of replies, if one is named."""
    if form.reads is None:
        return judging
    return replace(judging, reads=parse_reads(form.reads), reply_tokens=form.reply_tokens)


Options = TypeVar("Options", bound=OwnWords)


def judge_asked(
    checklist: str | Path | Checklist | None, prompt: str | Path | Prompt | None, settings: Options
) -> tuple[Checklist | str | Path, Options]:
    """Return the checklist to ask, and the settings with the form of replies.

    Without a checklist the judge is one in people's own words, whose prompt is asked as it stands. If the prompt itself
    says how replies are read, this is logged.

    Raises:
        InputError: ``reads`` and another checklist are both given, there is no prompt, or nothing says how its replies
            are read.
    """
    if checklist is None and settings.reads is None and prompt is None:
        raise InputError(
            "The judge has nothing to ask: give a --checklist, or the --prompt of a judge that says itself how to "
            "answer."
        )
    if checklist is not None and settings.reads is None:
        return checklist, settings
    if prompt is None:
        raise InputError("reads: a judge in your own words needs its prompt (--prompt judge.md).")
    if settings.reads is None:
        settings = settings.model_copy(update={"reads": found_reads(prompt)})
    judge_checklist = own_checklist(parse_reads(str(settings.reads)))
    if checklist is not None and load_checklist(checklist) != judge_checklist:
        raise InputError(
            "reads: a judge in your own words has no checklist: its prompt asks for the score. Leave out --checklist, "
            "or --reads."
        )
    return judge_checklist, settings


def about_what_people_rated(own: Checklist, examples: Sequence[Example]) -> Checklist:
    """Return the checklist of a judge in people's own words, its score put on a dimension that people rated: the whole,
    else the only dimension, or the one with the name of the score. If several others are rated, a warning is logged."""
    (question,), rated = own.questions, human_dimensions(examples, own)
    if question.dimension != WHOLE or WHOLE in rated or not rated:
        return own
    dimension = question.id if question.id in rated else rated[0]
    if len(rated) > 1 and dimension != question.id:
        logger.warning(
            "People rated %s, and nothing says which of them the judge's score is about: --field human.overall=%s",
            ", ".join(rated),
            rated[0],
        )
        return own
    return own.model_copy(update={"questions": (question.model_copy(update={"dimension": dimension}),)})


def improved_in_own_words(settings: Options) -> Options:
    """Return the settings of a run that improves a judge in people's own words: only edits of its prompt can be
    learned.

    Raises:
        InputError: Another change is asked for.
    """
    given = vars(settings)
    if settings.reads is None:
        return settings
    if given["update"] in ("questions", "examples") or given.get("regenerate_questions") or given["paper"]:
        name = "update" if given["update"] in ("questions", "examples") else "paper" if given["paper"] else ""
        said = f"update {given['update']}" if name == "update" else name or "regenerate_questions"
        raise InputError(
            f"{said}: a judge in your own words (reads) asks no questions that could be learned or worded anew, and is "
            "shown no examples; its prompt is edited (update edits or rewrite). To learn questions, make a checklist "
            "of it first: askance questions --from PROMPT."
        )
    if given["update"] != "auto":
        return settings
    logger.info("The judge is asked in your own words (reads): its prompt alone is edited, and no question is learned.")
    return settings.model_copy(update={"update": "edits"})


def found_reads(prompt: str | Path | Prompt) -> str:
    """Return the form of replies that the prompt itself states. InputError if it states none."""
    own, name = own_prompt(prompt)
    try:
        found = find_reads(own.text)
    except ValueError as error:
        raise InputError(
            f"{name}: how the judge's replies are read cannot be found out: {error}. Give the labels from worst to "
            "best: --reads 'labels WORST,…,BEST'."
        ) from None
    if found is None:
        raise InputError(
            f"{name}: there is no --checklist, and the prompt does not say how its replies are read. Say it with "
            f"--reads: {FORMS}. A prompt that asks a checklist's questions needs --checklist."
        )
    logger.warning(
        "%s: the judge is asked as its prompt stands, and its reply is read as %s: --reads '%s' (found in: %s).",
        name,
        found.reads.said,
        found.reads,
        found.by,
    )
    return str(found.reads)
