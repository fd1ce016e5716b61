"""The generator, y = G(x; P_G) (BinEval §3.4), and the agents that write instructions for it.

Its note-taker reads an output that fails a check. Before a note is taken, a requirement may be stated as it is; where
its words cannot simply be turned round, :class:`RequirementWriter` asks a model.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field

from ..models.base import Answer, Model, ModelError, Parameters, Request, make_request
from ..models.budget import reserved_tokens
from ..models.gateway import Gateway
from ..prompts.checklist import Question
from ..prompts.examples import Example
from ..prompts.orders import foreign_order
from ..prompts.prompt import Prompt, generator_messages, render_example
from ..prompts.templates import FencedText, render, template
from ..prompts.text import copied_names, copied_quote, copied_words, shorten, topic_words
from .agent import Agent
from .buying import Estimate, all_together
from .notes import Assignment, Case, NoteAgent, Sample, doubted_beside, given_reason, show_output
from .rules import LONGEST_RULE, STRICTER, content_stems, echoed, is_truism


@dataclass(frozen=True)
class Generated:
    """One example with what the generator wrote for it, or with the reason why it wrote nothing."""

    example: Example
    """``output`` is the text as it came, nothing stripped; None where there is an error."""
    error: str | None = None
    cut_off: bool = False
    """Whether the output ends where ``max_tokens`` ended it."""


@dataclass(frozen=True)
class Generator:
    """A model with a prompt that writes the outputs of examples."""

    gateway: Gateway
    model: Model
    prompt: Prompt
    max_tokens: int = 1024
    """Of one output."""
    temperature: float = 0.0
    seed: int | None = None
    role: str = "generator"
    """The ledger that its calls are booked under."""

    async def generate(
        self, examples: Sequence[Example], on_done: Callable[[int, int], None] | None = None
    ) -> list[Generated]:
        """Write an output for every example; one that it has already is replaced.

        Returns one record per example, in input order, whatever the order of completion. ``on_done`` is told how many
        of how many are there.

        Raises:
            BudgetExceededError: A cap was reached; calls under way were let end, and their answers are in the store.
            ModelError: The endpoint refuses every call (wrong key, unknown model) or is down.
        """
        return await all_together(examples, self._write, self.gateway.concurrency(self.model), on_done)

    def estimate(self, examples: Sequence[Example]) -> Estimate:
        """What :meth:`generate` would buy now; there are no verdicts."""
        requests = [self._request(example) for example in examples]
        keys = [request.key for request in requests]
        store = self.gateway.store
        found = store.get_many(keys) if store is not None else {}
        to_buy = {request.key: request for request in requests if request.key not in found}
        tokens = sum(reserved_tokens(request) for request in to_buy.values())
        written = self.max_tokens * len(to_buy)
        return Estimate.priced(
            0, len(to_buy), len(requests) - len(to_buy), tokens - written, written, self.model, self.gateway
        )

    def foreseen(self, examples: Sequence[Example]) -> list[Example]:
        """The examples with the outputs that are in the store already, which :meth:`generate` would give; where one is
        still to be written, with a text in its place that no answer in the store is about."""
        keys = [self._request(example).key for example in examples]
        store = self.gateway.store
        found = store.get_many(keys) if store is not None else {}
        return [
            example.model_copy(
                update={
                    "output": found[key].text if key in found else f"{key.hex()} {example.output or ''}",
                    "comment": (),
                }
            )
            for key, example in zip(keys, examples, strict=True)
        ]

    def _request(self, example: Example) -> Request:
        parameters = Parameters(self.max_tokens, self.temperature, self.seed)
        return make_request(self.model.identity, generator_messages(self.prompt, example), parameters)

    async def _write(self, example: Example) -> Generated:
        request = self._request(example)
        example = example.model_copy(update={"output": None, "comment": ()})  # which were about another output
        try:
            answer: Answer = await self.gateway.ask(self.role, self.model, request)
        except ModelError as error:
            if error.fatal:
                raise
            return Generated(example, str(error))
        if not _is_text(answer.text):
            await self.gateway.forget([request.key])
            return Generated(
                example,
                f"{self.model.name}: the output holds half a surrogate pair, which is no text.",
            )
        return Generated(example.model_copy(update={"output": answer.text}), cut_off=answer.finish == "length")


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


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
