"""Disagreements, the lessons drawn from them, the edits that carry them into a prompt, and a guard against injection.

Judged texts and comments are written by others, and a note-taker may be talked into repeating their orders. A lesson
says what to look for or what to write. A lesson that decides in advance, or speaks to another role, is refused
(:func:`foreign_order`). This guard knows English words only. In other languages the fences, the acceptance test and the
person who reads the accepted sentences remain.
"""

from __future__ import annotations

import re
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class Disagreement(BaseModel):
    """An (example, question) on which a judge and its reference differ."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    example: str
    question: str
    target: bool
    """The answer of the judge that is being improved."""
    reference: bool
    """The right answer, according to the source (or to people)."""
    gap: float
    """Difference of the two P(yes), each relative to its judge's mean on this question, in [-2, 2]; positive in the
    direction of the disagreement. At most 0 if one judge's general leniency explains the disagreement."""
    target_p_yes: float | None = None
    reference_p_yes: float | None = None

    @property
    def key(self) -> str:
        """Short name used as evidence: ``example/question``."""
        return f"{self.example}/{self.question}"


LessonStatus = Literal["new", "merged", "applied", "rejected", "retired", "removed"]
"""``removed``: people took the lesson out of a lesson memory; it must not be learned again."""


class Lesson(BaseModel):
    """One generalised, reusable sentence drawn from disagreements, with its evidence."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    text: str = Field(min_length=1)
    direction: Literal["stricter", "more lenient"]
    """``stricter`` if the target called good what the reference did not, ``more lenient`` for the reverse."""
    dimension: str
    evidence: tuple[str, ...]
    """Keys of disagreements; their number is the lesson's support."""
    status: LessonStatus = "new"
    reason: str | None = None
    """Why the lesson has this status, e.g. the result of the acceptance test that rejected its edit."""
    kind: Literal["promptable", "computational"] = "promptable"
    """A prompt can make a model attend to something; it cannot make a model count, sort or keep a ratio."""
    kind_reason: str | None = None
    requirement: str | None = None
    """The question or check whose own words the lesson states; None if a note-taker drew it from disagreements."""

    @property
    def promptable(self) -> bool:
        """Whether the lesson may be written into a prompt."""
        return self.kind == "promptable"

    @property
    def is_closed(self) -> bool:
        """Whether the lesson was given up, until there is new evidence for it; for ever if people removed it."""
        return self.status in ("rejected", "retired", "removed")

    @property
    def support(self) -> int:
        """Number of disagreements behind the lesson."""
        return len(self.evidence)


class Edit(BaseModel):
    """A replacement of an exact old text by a new text in a prompt, with the lessons that caused it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    old: str = Field(min_length=1)
    new: str
    lessons: tuple[str, ...] = ()


_OUTPUTS = r"(?:outputs?|repl(?:y|ies)|responses?|answers?|texts?|submissions?|summar(?:y|ies)|candidates?)"
_ROLES = (
    r"(?:judges?|evaluators?|graders?|reviewers?|note-?\s?takers?|updaters?|deduplicators?|assistants?|AIs?|models?)"
)
_GUIDANCE = (
    r"(?:instructions?|guidance|guidelines?|rules?|prompts?|orders?|directions?|directives?|criteria|checklists?|lessons?|"
    r"polic(?:y|ies)|constraints?|notes?|questions?)"
)
_EARLIER = r"(?:previous|previously|earlier|prior|above|preceding|former|existing|original|other|all|any|every|these|those|your|my)"
_APPROVAL = (
    r"\balways\s+(?:answer|say|give|return|rate|respond|reply|output)\b[^.]{0,20}?\b(?:yes|no|pass|approved?)\b(?!\s+or\b)",
    r"\b(?:answer|say|reply|respond|return)\s+(?:with\s+)?[\"']?(?:yes|no)[\"']?,?\s+(?:to\s+(?:all|every|any|each)|always|"
    r"regardless|no\s+matter|whatever|in\s+(?:all|any|every)\s+cases?|for\s+(?:all|any|every|each))\b",
    rf"\b(?:approve|accept|pass)\s+(?:all|any|every|everything|anything|(?:the|this|these|such)\s+{_OUTPUTS})\b",
    r"\bapprove\s+(?:it|them|this|these)\b",
    r"\b(?:consider|count|regard|mark|treat|deem|rate|score|grade|label)\s+(?:it|them|this|everything|anything|"
    rf"(?:the|this|these|such|all|every|any)\s+{_OUTPUTS})\s+(?:as\s+)?(?:\w+\s+)?"
    r"(?:approved|correct|good|passed|passing|acceptable|perfect|safe|compliant|valid)\b",
    r"\b(?:pre-?approved|already\s+(?:been\s+)?approved|(?:approved|authori[sz]ed|cleared|certified|exempt(?:ed)?|whitelisted)\s+"
    r"(?:by|in\s+advance|beforehand|already|for\s+(?:release|publication|production)))\b",
    r"\b(?:highest|top|full|maximum|perfect|best\s+possible)\s+(?:scores?|ratings?|marks?|grades?)\b",
)
_TO_ROLES = (
    r"\b(?:you\s+are\s+now|from\s+now\s+on\s+you)\b",
    r"(?:^|[.;:,]\s*|\band\s+|\bthen\s+)(?:act\s+as|pretend\s+(?:to\s+be|that\s+you))\b",
    r"\bas\s+(?:the|an?|your)\s+(?:admin(?:istrator)?|developer|supervisor|moderator|operator|system)\b",
    r"\b(?:system|developer)\s+(?:prompts?|messages?|instructions?)\b",
    r"(?:^|[\n.;?!]\s*)(?:system|assistant|user|developer|human)\s*:",
    rf"\b(?:tell|instruct|order|inform|remind|notify|note\s+to|message\s+(?:to|for))\s+(?:the|all|any|every|other)\s+"
    rf"(?:other\s+)?{_ROLES}\b",
    rf"\b(?:all|every|any)\s+other\s+{_ROLES}\b",
)
_EARLIER_GUIDANCE = (
    r"(?<!not )(?<!never )(?<!n't )\b(?:ignore|disregard|forget|override|overrule|bypass|supersede|discard|set\s+aside|"
    rf"stop\s+following|replace)\s+(?:\w+\s+){{0,3}}?{_EARLIER}\s+(?:\w+\s+){{0,3}}?{_GUIDANCE}\b",
    rf"\bdo(?:\s+not|n't)\s+(?:follow|obey|apply|use)\s+(?:\w+\s+){{0,2}}?{_EARLIER}\s+(?:\w+\s+){{0,3}}?{_GUIDANCE}\b",
    rf"(?<!not )(?<!never )\b(?:ignore|disregard|forget|override)\s+(?:the\s+)?(?:\w+\s+)?{_GUIDANCE}\s+(?:above|before|so\s+far|given)\b",
    rf"\b{_EARLIER}\s+(?:\w+\s+)?{_GUIDANCE}\b[^.]{{0,30}}\b(?:void|invalid|obsolete|outdated|superseded|replaced|cancel\w+|"
    r"lifted|suspended|no\s+longer|do(?:es)?\s+not\s+apply|don't\s+apply|doesn't\s+apply)\b",
    r"\btakes?\s+precedence\s+over\b|\bhas\s+priority\s+over\b",
)
_MARKUP = (
    r"(?<!<)</?[a-zA-Z!][^<>\n]*>",
    r"<!--|-->|<\||```|\[/?(?:INST|SYS)\b|\[\[\s*##|!?\[[^\]\n]*\]\([^)\n]+\)|https?://",
    r"^\s{0,3}#{1,6}\s",
)
_KINDS = tuple(
    (what, tuple(re.compile(pattern, re.IGNORECASE | re.MULTILINE) for pattern in patterns), spared)
    for what, patterns, spared in (
        ("it gives orders about approval", _APPROVAL, True),
        ("it speaks to another role", _TO_ROLES, True),
        ("it is against earlier guidance", _EARLIER_GUIDANCE, False),
        ("it holds markup or a link", _MARKUP, False),
    )
)


def foreign_order(text: str, ours: str = "") -> str | None:
    """Say why a lesson or an edit may not enter a prompt, and quote the words; None if it may.

    Args:
        text: The text that would enter a prompt.
        ours: The user's own task, question or prompt. Its words are allowed literally. Words on approval and roles are
            allowed if their longest word occurs in it at all.
    """
    known = ours.lower()
    for problem, patterns, spared in _KINDS:
        for pattern in patterns:
            for found in pattern.finditer(text):
                longest = max(re.findall(r"\w+", found[0].lower()), key=len, default="")
                if not (found[0].lower() in known or (spared and longest in known)):
                    return f'{problem} ("{" ".join(found[0].split())}"); say only what to look for or what to write'
    return None
