"""Who writes instructions for the generator of ``tune``: its note-taker, from an output that fails a check (BinEval
§3.4).

Before a note is taken, a requirement may be stated as it is; where its words cannot simply be turned round, a model
does it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict, Field

from ..prompts.checklist import Question
from ..prompts.orders import foreign_order
from ..prompts.prompt import render_example
from ..prompts.templates import FencedText, render, template
from ..prompts.text import copied_names, copied_quote, copied_words, shorten, topic_words
from .agent import Agent
from .notes import Assignment, Case, NoteAgent, Sample, doubted_beside, given_reason, show_output
from .rules import LONGEST_RULE, STRICTER, content_stems, echoed, is_truism

REQUEST_RUN = 8
"""So many words in a row, the same as in a request or its check, count as copied. More than elsewhere, because requests
share their formal wording ("repeat the request word for word without change")."""
_ORDERS = ("generator_notes", "generator_notes_case", "given_reason")
_FORM_WORDS = (
    "answer answers response responses reply output outputs request requests instruction instructions prompt task word "
    "words sentence sentences paragraph paragraphs line lines letter letters character characters section sections "
    "title heading headings bullet bullets point points list lists item items number numbers keyword keywords phrase "
    "phrases format text style tone language case uppercase lowercase capital capitals comma commas punctuation mark "
    "marks quotation quotes bracket brackets parentheses markdown table json code block placeholder placeholders "
    "begin begins start starts end ends first last every each exactly least most repeat copy include avoid mention use "
    "used contain write written given asked without between before after same different order step steps part parts "
    "postscript signature stanza stanzas verse rhyme dialogue story poem essay email letter summary table question "
    "questions example examples user asks when then that this with from only more less than must should"
)
_ORDER_TO_SELF = re.compile(r"^(?:instruction\s*:\s*|you\s+(?:must|should|need\s+to)\s+|please\s+)", re.IGNORECASE)
_NOT_FIRST = re.compile(r"^not\s+(?!only\b)", re.IGNORECASE)
"""What is left of "You must not name a price"."""
_PAST = re.compile(r"^(?:the|this|that|your)\s+(?:output|answer|response|writer|reply)\b", re.IGNORECASE)


class GeneratorNote(BaseModel):
    """What an output lacks, and what its writer should be told."""

    model_config = ConfigDict(title="note")

    quote: str = Field(max_length=300)
    missed: str = Field(max_length=300)
    instruction: str = Field(min_length=10, max_length=LONGEST_RULE)


class GeneratorNoteTaker(NoteAgent):
    """A model that reads a failed output in context and writes an instruction for all outputs.

    Its lessons have the direction "stricter". The kind of a note is empty, so that samples agree by their words alone.
    Of the settings ``samples``, ``contrast`` and ``critique`` are heeded.
    """

    async def _assignment(self, case: Case) -> Assignment:
        def read(note: GeneratorNote) -> Sample:
            return Sample(self._instruction(note.instruction, case), note.quote, note.missed, "")

        def mend(better: str) -> str:
            if not 10 <= len(better) <= LONGEST_RULE:
                raise ValueError("it is no sentence")
            return self._instruction(better, case)

        told = render(
            "generator_notes_case",
            task=self._task,
            example=render_example(case.example),
            check=case.question.criterion,
            why=given_reason(case, "reference") or FencedText("no reason was given"),
            contrast=self._shown_beside(case, "generator_notes_contrast"),
        )
        return Assignment(
            "generator_notes",
            told,
            GeneratorNote,
            read,
            STRICTER,
            doubts=lambda sample: self._doubts(case, sample),
            mend=mend,
        )

    def _doubts(self, case: Case, sample: Sample) -> str:
        return render(
            "generator_critique_case",
            task=self._task,
            rule=sample.text,
            check=case.question.criterion,
            output=show_output(case.example),
            missed=sample.fact,
            **doubted_beside(
                case,
                "It was written for another request and is right.",
                "true if following the instruction would spoil the second output; else false.",
            ),
        )

    def _instruction(self, text: str, case: Case) -> str:
        """One sentence, or several, that fit other requests.

        Raises:
            ValueError: They do not; the message is told to the model.
        """
        text = _NOT_FIRST.sub("do not ", _ORDER_TO_SELF.sub("", " ".join(text.split()).strip(" \"'")))
        text = f"{text[:1].upper()}{text[1:]}"
        if not re.search(r"\w", text):
            raise ValueError('"instruction" says nothing; say what to do')
        if _PAST.match(text):
            raise ValueError('"instruction" must say what to do, beginning with a verb or "When the request asks for"')
        if order := foreign_order(text, f"{self._task} {case.question.text}"):
            raise ValueError(f'"instruction" cannot be used: {order}')
        if echo := echoed(text, _ORDERS):
            raise ValueError(f'"instruction" repeats what you were told ("{echo}"); say what the writer should do')
        if problem := self._leak(text, case):
            raise ValueError(f'"instruction" is about this request alone ("{problem}"); make it fit other requests')
        if self._settings.critique and is_truism(text, self._task):
            raise ValueError('"instruction" only says that the output must be right; say what to do')
        return text if text.endswith((".", "!", "?")) else f"{text}."

    def _leak(self, text: str, case: Case) -> str | None:
        outputs = [each.output or "" for each in case.examples]
        requests = [part for each in case.examples for part in (each.input, each.context or "")]
        requests += [case.question.text, case.question.violation or ""]
        return (
            copied_words(text, outputs)
            or copied_words(text, requests, run=REQUEST_RUN)
            or copied_quote(text, [*outputs, *requests])
            or copied_names(text, [*outputs, *requests], self._task)
            or next(iter(topic_words(text, " ".join([*outputs, *requests]), f"{self._task} {_FORM_WORDS}")), None)
        )


MOST_REASONS = 3
"""Reasons of a checker that are told; further ones differ in numbers, as a rule."""
_NEGATION = re.compile(
    r"\b(?:not|no|never|without|avoid\w*|free of|leave out|nothing|none|neither|nor|refrain|omit)\b|n't\b",
    re.IGNORECASE,
)


class StatedRequirement(BaseModel):
    """A requirement as an instruction."""

    model_config = ConfigDict(title="instruction")

    line: str = Field(min_length=8, max_length=LONGEST_RULE)


class RequirementWriter(Agent):
    """A model that turns a requirement into one plain line, where its words cannot be turned round by a rule."""

    role = "note_taker"

    async def write(self, requirement: Question, check: str | None, reasons: Sequence[str]) -> str:
        """One sentence, in the requirement's own words.

        Args:
            requirement: The question; for a check, the one that was made of its name.
            check: The check's name; None for a question.
            reasons: What a checker said of outputs that failed.

        Raises:
            ParseError: The model's second line was no instruction either, said something else than the requirement, or
                the opposite of it.
            ModelError: No reply.
        """
        kind = "a check to be passed" if check else "yes is a fault" if requirement.is_fault else "yes is good"
        told = [shorten(" ".join(each.split()), 160) for each in reasons[:MOST_REASONS]] if check else []
        case = render(
            "state_requirement_case",
            kind=kind,
            requirement=check or requirement.text,
            faults=render("state_requirement_faults", reasons="; ".join(told)) if told else "",
        )
        named = requirement.text if check is None else check.replace("_", " ").replace("-", " ")
        source = " ".join([named, *told])

        def says_it(reply: StatedRequirement) -> None:
            line = reply.line.strip()
            if "?" in line or not line[:1].isupper() or len(line.splitlines()) > 1:
                raise ValueError('"line" must be an instruction in one sentence that begins with a capital letter')
            if order := foreign_order(line, named):
                raise ValueError(f'"line" cannot be used: {order}')
            if not content_stems(line) & content_stems(source):
                raise ValueError('"line" must use the words of the requirement')
            negated, wanted = bool(_NEGATION.search(line)), bool(_NEGATION.search(named)) != requirement.is_fault
            if negated and not wanted:
                raise ValueError('"line" forbids what is required; say what to do')
            if wanted and not negated and check is None:
                raise ValueError('"line" must say what not to do')

        reply = await self._ask(template("state_requirement"), case, StatedRequirement, max_tokens=80, check=says_it)
        line = " ".join(reply.line.split())
        return line if line.endswith((".", "!")) else f"{line}."
