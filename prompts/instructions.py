"""A requirement turned into the instruction that a writer is given: "Does the reply name a price?" → "Do not name a
price.".

Only English questions about the output as a whole are turned round, by their first words; all others are left to a
model or to the plain form, because a wrong instruction is worse than a clumsy one.
"""

from __future__ import annotations

import re

from .checklist import Question

_WRITTEN = "output|reply|response|answer|summary|translation|generation"
"""Names of what the writer writes, and of nothing that it is given."""
_OUTPUTS = (
    f"{_WRITTEN}|text|e-?mail|letter|message|post|tweet|description|article|review|"
    "note|report|paragraph|headline|story|poem|essay|recipe|announcement|explanation|notice|caption|abstract"
)
_PARTS = (
    "title|subject|tone|length|body|opening|closing|style|ending|format|beginning|start|line|section|header|part|"
    "key|id|author|writer|sender|recipient|template|signature|thread|history|draft"
)
_NO_THING = r"(?!(?:address|code|count|date|file|link|list|name|number|time)s?\b)"
"""Nor one that could be a verb behind "does": "is the email address right?"."""
_SUBJECT = rf"(?:the|this|your)\s+(?:[a-z-]+\s+)?(?:{_OUTPUTS})"
"""The output, with one word before it at most ("the support reply")."""
_BOUND = rf"(?!(?:{_OUTPUTS}|{_PARTS})s?\b)"
"""What follows is no second noun: "the email subject"."""
_ATTACHED = r"(?!(?:of|to|for|from|that|which|who|whose|and|or|as|given|generated|produced|written\s+by|made\s+by)\b)"
"""Nor something that still belongs to the subject: "the reply to a complaint"."""
_VERB = r"(?!(?:with|in|on|at|by|about|under|after|before|between|into)\b)(?!\w+ing\b|(?!need|feed|exceed|heed|proceed|embed)\w+ed\b)"
_CONDITION = re.compile(r"(?P<when>(?:if|when|where|for|in case)\b[^,?]+,)\s*(?P<rest>.+)", re.IGNORECASE)
_DOES = re.compile(
    rf"(?:does|do|did)\s+(?P<who>{_SUBJECT}|it)\s+{_BOUND}{_ATTACHED}{_VERB}(?P<what>\S.*)", re.IGNORECASE
)
_IS = re.compile(rf"(?:is|are|was)\s+(?P<who>{_SUBJECT})\s+{_BOUND}{_NO_THING}{_ATTACHED}(?P<what>\S.*)", re.IGNORECASE)
_HAS = re.compile(rf"has\s+(?P<who>{_SUBJECT})\s+{_BOUND}{_NO_THING}{_ATTACHED}(?P<what>\S.*)", re.IGNORECASE)
_THERE = re.compile(r"(?:is|are)\s+there\s+(?P<what>\S.*)", re.IGNORECASE)
_STATING = (
    "have contain consist sound read feel seem look appear fit run exceed belong need lack miss match come reflect remain "
    "stay last make show agree comply know think fall cost"
)
_STATES = frozenset(_STATING.split())
"""Verbs that say how the output is, not what its writer does; "make" is both ("make sense"). A verb alone ("Greet.") is
not taken for an order either."""
_DROPPED = re.compile(r"^(?:ever|actually|really|in fact|anywhere)\s+", re.IGNORECASE)
_FORGETS = re.compile(r"^(?:fail|forget|neglect|omit)\s+to\s+", re.IGNORECASE)
_NOT = re.compile(r"^not\s+", re.IGNORECASE)
_NOT_ONLY = re.compile(r"^not\s+only\b.*\bbut\b", re.IGNORECASE)
"""Such a "not" denies nothing: without it the opposite is not said."""
_IS_WRITTEN = re.compile(rf"it|.*\b(?:{_WRITTEN})", re.IGNORECASE)
_NEGATED = re.compile(r"\b(?:no|not|never|none|nothing|nobody|neither|without)\b|n't\b", re.IGNORECASE)
_REFERS_BACK = re.compile(r"\b(?:it|its|itself)\b", re.IGNORECASE)


def instruction_of(question: str, *, is_fault: bool) -> str | None:
    """The instruction that a yes/no question about an output comes to, in the question's own words.

    Args:
        question: E.g. "Does the reply thank the customer?".
        is_fault: Whether yes speaks against the output.

    Returns:
        One sentence; None where the question is not of a form that can be turned round by its first words.
    """
    text = " ".join(question.split())
    if not text.endswith("?") or text.count("?") > 1 or re.search(r"[.!:;]\s", text):
        return None
    text = text[:-1].rstrip()
    if lead := _CONDITION.fullmatch(text):
        then = _turned(lead["rest"], is_fault)
        return then and f"{_capital(lead['when'])} {then[0].lower()}{then[1:]}."
    turned = _turned(text, is_fault)
    return turned and f"{turned}."


def _turned(text: str, is_fault: bool) -> str | None:
    if found := _DOES.fullmatch(text):
        return _what_it_does(found["who"], found["what"], is_fault)
    if found := _IS.fullmatch(text):
        return _must(found["who"], "be", found["what"], is_fault)
    if found := _HAS.fullmatch(text):
        return _must(found["who"], "have", found["what"], is_fault)
    if (found := _THERE.fullmatch(text)) and not (is_fault and _NEGATED.search(found["what"])):
        return f"There must {'not be' if is_fault else 'be'} {found['what']}"
    return None


def _what_it_does(who: str, what: str, is_fault: bool) -> str | None:
    what = _DROPPED.sub("", what)
    if _NOT_ONLY.match(what):
        return None
    if is_fault and _FORGETS.match(what):
        what, is_fault = _FORGETS.sub("", what), False
    elif _NOT.match(what):
        what, is_fault = _NOT.sub("", what), not is_fault
    if is_fault and _NEGATED.search(what):
        return None
    verb = what.split()[0].lower()
    if verb in _STATES or verb == what.lower() or _REFERS_BACK.search(what) or not _IS_WRITTEN.fullmatch(who):
        subject = "the output" if who.lower() == "it" else who
        return _capital(f"{subject} must {'not ' if is_fault else ''}{what}")
    return f"Do not {what}" if is_fault else _capital(what)


def _must(who: str, verb: str, what: str, is_fault: bool) -> str | None:
    if _NOT_ONLY.match(what):
        return None
    if _NOT.match(what):
        what, is_fault = _NOT.sub("", what), not is_fault
    if is_fault and _NEGATED.search(what):
        return None
    return _capital(f"{who} must {'not ' if is_fault else ''}{verb} {what}")


def _capital(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def as_it_stands(requirement: Question, check: str | None = None) -> str:
    """The form that is always right: the requirement quoted, and what the answer to it has to be.

    Args:
        requirement: A question about the output.
        check: The name of the check, where a checker and no question requires it.
    """
    if check is not None:
        return f"What you write must pass this check: {' '.join(check.split())}."
    answer = "no" if requirement.is_fault else "yes"
    return f'For what you write, the answer to this must be {answer}: "{" ".join(requirement.text.split())}"'
