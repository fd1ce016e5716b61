"""The generator, y = G(x; P_G) (BinEval §3.4), and the agents that write instructions for it.

The note-taker reads an output that fails a question or a check. Before a note is taken, the requirement itself may
become an instruction: "Does the reply name a price?" becomes "Do not name a price." A rule (:func:`instruction_of`)
turns only English questions about the whole output, because a wrong instruction is worse than a clumsy one. For other
questions, :class:`RequirementWriter` asks a model.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from ..models.base import Answer, Model, ModelError, Parameters, Request, images_of_content, make_request, refuse_images
from ..models.budget import reserved_tokens
from ..models.gateway import WRITER_ROLE, Gateway
from ..models.programs import Program, output_in
from ..models.writing import AS_THE_RUN, PromptSettings
from ..prompts.checklist import Question
from ..prompts.conversations.chat import system_in_user
from ..prompts.examples import Example
from ..prompts.formats.several import by_name
from ..prompts.lessons import Lesson, foreign_order
from ..prompts.messages import told
from ..prompts.prompt import Prompt, generator_messages, render_example
from ..prompts.templates import FencedText, render, template
from ..prompts.text import copied_names, copied_quote, copied_words, sendable, shorten, topic_words
from .agent import Agent
from .buying import Estimate, all_together
from .note_takers import Case, NoteAgent
from .requests import illustrated
from .rules import LONGEST_RULE, STRICTER, content_stems, echoed


@dataclass(frozen=True)
class Generated:
    """An example with the generator's output, or with the reason why there is no output."""

    example: Example
    """The example. Its ``output`` is the model's text, not stripped; None if there is an error."""
    error: str | None = None
    cut_off: bool = False
    """Whether ``max_tokens`` cut the output off."""
    tokens: int = 0
    """Prompt and completion tokens of the call."""
    cost_usd: float | None = None
    """US dollars; None if the price is not known."""
    seconds: float | None = field(default=None, compare=False)
    """Seconds that the call took; None if the answer was in the store."""


@dataclass(frozen=True)
class Generator:
    """A model with a prompt that writes the outputs of examples."""

    gateway: Gateway
    model: Model
    prompt: Prompt
    max_tokens: int = 1024
    """Most tokens of one output."""
    temperature: float = 0.0
    seed: int | None = None
    role: str = WRITER_ROLE
    """Role in the ledger of calls."""
    prompt_name: str = "prompt"
    """Name under which a program gets its only prompt. Several prompts have names of their own."""
    schema: Mapping[str, Any] | None = None
    """JSON schema that is sent with each request, if the endpoint accepts one."""
    writing: PromptSettings = AS_THE_RUN
    """The prompt's own settings, which override those above. Its ``thinking`` is not applied here: the caller passes a
    model with this setting."""

    @property
    def refused(self) -> list[str]:
        """Sentences for the user about a schema or grammar that the endpoint does not accept. It is then not sent, and
        outputs can only be checked against it."""
        left_out, sent = getattr(self.model, "left_out", ()), self._parameters
        names = {"response_format": sent.schema and "schema", "grammar": sent.grammar and "grammar"}
        return [
            f"{self.model.name}: its endpoint does not take the {name}, so outputs are written without it."
            for field, name in names.items()
            if name and field in left_out
        ]

    @property
    def most_tokens(self) -> int:
        """Most tokens of one output."""
        return self.writing.max_output_tokens or self.max_tokens

    @property
    def _parameters(self) -> Parameters:
        own = self.writing
        temperature = self.temperature if own.temperature is None else own.temperature
        schema, grammar = own.json_schema or self.schema, own.grammar
        # an endpoint accepts only one of the two
        return Parameters(self.most_tokens, temperature, self.seed, schema=None if grammar else schema, grammar=grammar)

    async def generate(
        self, examples: Sequence[Example], on_done: Callable[[int, int], None] | None = None
    ) -> list[Generated]:
        """Write a new output for every example. Returns one record each, in input order.

        ``on_done`` is called with the number of finished outputs and the number of all. Raises BudgetExceededError if a
        cap is reached; running calls finish first, and their answers are in the store. Raises ModelError if the
        endpoint refuses every call (wrong key, unknown model) or is down.
        """
        self._refuse_images(examples)
        return await all_together(examples, self._write, self.gateway.concurrency(self.model), on_done)

    def estimate(self, examples: Sequence[Example]) -> Estimate:
        """Estimate the calls, tokens and money of :meth:`generate`. The estimate has no verdicts."""
        self._refuse_images(examples)
        requests = [self._request(example) for example in examples]
        found = self._found(requests)
        to_buy = {request.key: request for request in requests if request.key not in found}
        calls, stored = len(to_buy), len(requests) - len(to_buy)
        if isinstance(self.model, Program):  # the costs of a program are unknown
            unpriced = (self.model.name,) if to_buy else ()
            return Estimate(0, calls, stored, 0, None if to_buy else 0.0, unpriced=unpriced)
        tokens, written = sum(map(reserved_tokens, to_buy.values())), self.most_tokens * calls
        return Estimate.priced(0, calls, stored, tokens - written, written, self.model, self.gateway)

    def foreseen(self, examples: Sequence[Example]) -> list[Example]:
        """Return the examples with the stored outputs of :meth:`generate`. A missing output is replaced by a unique
        text, so that no stored verdict can be about it."""
        requests = [self._request(example) for example in examples]
        found, foreseen = self._found(requests), []
        for key, example in zip((request.key for request in requests), examples, strict=True):
            output = self._output_in(found[key]) if key in found else f"{key.hex()} {example.output or ''}"
            foreseen.append(example.model_copy(update={"output": output, "comment": ()}))
        return foreseen

    def _found(self, requests: Sequence[Request]) -> Mapping[bytes, Answer]:
        """Return the stored answers to requests."""
        store = self.gateway.store
        return {} if store is None else store.get_many([request.key for request in requests])

    def _output_in(self, answer: Answer) -> Any:
        """Return the output in an answer. Messages and objects of a program become text."""
        return told(output_in(answer.text)) if isinstance(self.model, Program) else answer.text

    def _refuse_images(self, examples: Sequence[Example]) -> None:
        if isinstance(self.model, Program):
            return  # a program gets the example itself
        refuse_images(self.model, (each.id for each in illustrated(examples) if sends_images(self.prompt, each)))

    def _request(self, example: Example) -> Request:
        if isinstance(self.model, Program):
            return self.model.request(example, by_name(self.prompt.text) or {self.prompt_name: self.prompt.text})
        messages = generator_messages(self.prompt, example)
        if self.writing.system_as == "user":
            messages = system_in_user(messages)
        return make_request(self.model.identity, messages, self._parameters)

    async def _write(self, example: Example) -> Generated:
        request = self._request(example)
        example = example.model_copy(update={"output": None, "comment": ()})  # comments are about the old output
        try:
            answer: Answer = await self.gateway.ask(self.role, self.model, request)
        except ModelError as error:
            if error.fatal:
                raise
            return Generated(example, str(error))
        try:
            output = sendable(self._output_in(answer) or "")
        except ValueError as error:
            await self.gateway.forget([request.key])
            return Generated(example, f"{self.model.name}: the output cannot be used: {error}.")
        return Generated(
            example.model_copy(update={"output": output}),
            cut_off=answer.finish == "length",
            tokens=answer.prompt_tokens + answer.completion_tokens,
            cost_usd=answer.cost_usd,
            seconds=self.gateway.seconds.pop(request.key, None),
        )


def sends_images(prompt: Prompt, example: Example) -> bool:
    """Return whether a generator is sent images of an example."""
    return any(images_of_content(content) for _, content in generator_messages(prompt, example))


REQUEST_RUN = 8
"""Number of words in a row that count as copied from a request or its check.

It is larger than elsewhere, because requests share formal wording ("repeat the request word for word without change").
"""
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
"""Matches the "not" that is left of "You must not name a price" without "You must"."""
_PAST = re.compile(r"^(?:the|this|that|your)\s+(?:output|answer|response|writer|reply)\b", re.IGNORECASE)


class GeneratorNote(BaseModel):
    """A note on an output: a quote, what is missing, and an instruction for the writer."""

    model_config = ConfigDict(title="note")

    quote: str = Field(max_length=300)
    missed: str = Field(max_length=300)
    instruction: str = Field(min_length=10, max_length=LONGEST_RULE)


class GeneratorNoteTaker(NoteAgent):
    """A model that reads a failed output in context and writes an instruction for all outputs (a "stricter" lesson)."""

    async def take_note(self, case: Case, lesson_id: str) -> Lesson:
        """See :meth:`NoteAgent.take_note`."""
        message = render(
            "generator_notes_case",
            task=self._task,
            example=render_example(case.example),
            check=case.question.criterion,
            why=case.reason("reference") or FencedText("no reason was given"),
        )

        def rule(note: GeneratorNote) -> str:
            return self._instruction(note.instruction, case)

        asked = ("generator_notes", message)
        return await self._note(case, lesson_id, asked=asked, record=GeneratorNote, rule=rule, direction=STRICTER)

    def _instruction(self, text: str, case: Case) -> str:
        """Clean the instruction. Raises ValueError, with a message for the model, if it does not fit other requests."""
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
        return text if text.endswith((".", "!", "?")) else f"{text}."

    def _leak(self, text: str, case: Case) -> str | None:
        outputs, question = [case.example.output or ""], case.question
        requests = [case.example.input, case.example.context or "", question.text, question.violation or ""]
        return (
            copied_words(text, outputs)
            or copied_words(text, requests, run=REQUEST_RUN)
            or copied_quote(text, [*outputs, *requests])
            or copied_names(text, [*outputs, *requests], self._task)
            or next(iter(topic_words(text, " ".join([*outputs, *requests]), f"{self._task} {_FORM_WORDS}")), None)
        )


MOST_REASONS = 3
"""Most reasons of a checker that the model is told. Further reasons usually differ only in numbers."""
_NEGATION = re.compile(
    r"\b(?:not|no|never|without|avoid\w*|free of|leave out|nothing|none|neither|nor|refrain|omit)\b|n't\b",
    re.IGNORECASE,
)


class StatedRequirement(BaseModel):
    """A requirement as an instruction."""

    model_config = ConfigDict(title="instruction")

    line: str = Field(min_length=8, max_length=LONGEST_RULE)


class RequirementWriter(Agent):
    """A model that turns a requirement into an instruction, if :func:`instruction_of` cannot do so."""

    role = "note_taker"

    async def write(self, requirement: Question, check: str | None, reasons: Sequence[str]) -> str:
        """Write the requirement as an instruction of one sentence, in its own words.

        For a check, ``requirement`` is a question made of its name, and ``reasons`` are the checker's reasons for
        failed outputs. Raises ParseError if the model's second line is not usable either: not an instruction, about
        something else, or the opposite of the requirement.
        """
        kind = "a check to be passed" if check else "yes is a fault" if requirement.is_fault else "yes is good"
        short_reasons = [shorten(" ".join(each.split()), 160) for each in reasons[:MOST_REASONS]] if check else []
        case = render(
            "state_requirement_case",
            kind=kind,
            requirement=check or requirement.text,
            faults=render("state_requirement_faults", reasons="; ".join(short_reasons)) if short_reasons else "",
        )
        named = requirement.text if check is None else check.replace("_", " ").replace("-", " ")
        source = " ".join([named, *short_reasons])

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


_WRITTEN = "output|reply|response|answer|summary|translation|generation"
"""Nouns that name only the writer's text, never a text that the writer is given."""
_OUTPUTS = (
    f"{_WRITTEN}|text|e-?mail|letter|message|post|tweet|description|article|review|"
    "note|report|paragraph|headline|story|poem|essay|recipe|announcement|explanation|notice|caption|abstract"
)
_PARTS = (
    "title|subject|tone|length|body|opening|closing|style|ending|format|beginning|start|line|section|header|part|"
    "key|id|author|writer|sender|recipient|template|signature|thread|history|draft"
)
_NO_THING = r"(?!(?:address|code|count|date|file|link|list|name|number|time)s?\b)"
"""No noun follows that could also be a verb, as in "is the email address right?"."""
_SUBJECT = rf"(?:the|this|your)\s+(?:[a-z-]+\s+)?(?:{_OUTPUTS})"
"""The output, with at most one word before the noun ("the support reply")."""
_BOUND = rf"(?!(?:{_OUTPUTS}|{_PARTS})s?\b)"
"""No second noun follows, as in "the email subject"."""
_ATTACHED = r"(?!(?:of|to|for|from|that|which|who|whose|and|or|as|given|generated|produced|written\s+by|made\s+by)\b)"
"""No words follow that still belong to the subject, as in "the reply to a complaint"."""
_VERB = r"(?!(?:with|in|on|at|by|about|under|after|before|between|into)\b)(?!\w+ing\b|(?!need|feed|exceed|heed|proceed|embed)\w+ed\b)"
_CONDITION = re.compile(r"(?P<when>(?:if|when|where|for|in case)\b[^,?]+,)\s*(?P<rest>.+)", re.IGNORECASE)
_DOES = re.compile(
    rf"(?:does|do|did)\s+(?P<who>{_SUBJECT}|it)\s+{_BOUND}{_ATTACHED}{_VERB}(?P<what>\S.*)", re.IGNORECASE
)
_IS = re.compile(rf"(?:is|are|was)\s+(?P<who>{_SUBJECT})\s+{_BOUND}{_NO_THING}{_ATTACHED}(?P<what>\S.*)", re.IGNORECASE)
_HAS = re.compile(rf"has\s+(?P<who>{_SUBJECT})\s+{_BOUND}{_NO_THING}{_ATTACHED}(?P<what>\S.*)", re.IGNORECASE)
_THERE = re.compile(r"(?:is|are)\s+there\s+(?P<what>\S.*)", re.IGNORECASE)
_STATING = (
    "have contain consist sound read feel seem look appear fit run exceed belong need lack miss match come reflect "
    "remain stay last make show agree comply know think fall cost"
)
_STATES = frozenset(_STATING.split())
"""Verbs that describe the output, not an action of its writer. "make" can be both ("make sense"), so it is listed."""
_DROPPED = re.compile(r"^(?:ever|actually|really|in fact|anywhere)\s+", re.IGNORECASE)
_FORGETS = re.compile(r"^(?:fail|forget|neglect|omit)\s+to\s+", re.IGNORECASE)
_NOT = re.compile(r"^not\s+", re.IGNORECASE)
_NOT_ONLY = re.compile(r"^not\s+only\b.*\bbut\b", re.IGNORECASE)
"""A "not" that denies nothing: leaving it out does not give the opposite."""
_IS_WRITTEN = re.compile(rf"it|.*\b(?:{_WRITTEN})", re.IGNORECASE)
_NEGATED = re.compile(r"\b(?:no|not|never|none|nothing|nobody|neither|without)\b|n't\b", re.IGNORECASE)
_REFERS_BACK = re.compile(r"\b(?:it|its|itself)\b", re.IGNORECASE)


def instruction_of(question: str, *, is_fault: bool) -> str | None:
    """Turn a yes/no question about an output into an instruction of one sentence, in the question's own words. Returns
    None if the question has none of the known forms."""
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
    for pattern, verb in ((_IS, "be"), (_HAS, "have")):
        if found := pattern.fullmatch(text):
            return _must(found["who"], verb, found["what"], is_fault)
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
    # a verb alone ("Greet.") is no clear order, so it becomes "The reply must greet"
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
    """Write an instruction that is always right, even if it is clumsy.

    It is the prompt's clause behind the requirement, or else the quoted question with its good answer. ``check`` is the
    name of the check, if the requirement is a check of a checker.
    """
    if check is not None:
        return f"What you write must pass this check: {' '.join(check.split()).rstrip('.')}."
    if requirement.clause is not None:
        return f"Keep to this: {' '.join(requirement.clause.split())}"
    answer = "no" if requirement.is_fault else "yes"
    return f'For what you write, the answer to this must be {answer}: "{" ".join(requirement.text.split())}"'
