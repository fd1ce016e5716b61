"""The note-taker of ``tune``: from an output that fails a check to an instruction for the generator (BinEval §3.4)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pydantic import BaseModel, Field

from ..prompts.lessons import Disagreement, Lesson
from ..prompts.prompt import Prompt, frame
from ..prompts.templates import render, template
from ..prompts.text import copied_names, copied_quote, copied_words, topic_words
from .critique import Critic, Reviewed
from .notes import ONE_CALL, Note, NoteTaking, Sample, most_agreed, show_output, take_samples
from .rules import LONGEST_RULE, echoed, is_truism

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ..models.base import Model
    from ..models.gateway import Gateway
    from ..prompts.checklist import Question
    from ..prompts.examples import Example

REQUEST_RUN = 8
"""So many words in a row, the same as in a request or its check, count as copied. More than elsewhere, because
requests share their formal wording ("repeat the request word for word without change")."""
_ORDERS = ("generator_notes", "generator_notes_case")
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
_PAST = re.compile(r"^(?:the|this|that|your)\s+(?:output|answer|response|writer|reply)\b", re.IGNORECASE)


class GeneratorNote(BaseModel):
    """What an output lacks, and what its writer should be told."""

    quote: str = Field(max_length=300)
    missed: str = Field(max_length=300)
    instruction: str = Field(min_length=10, max_length=LONGEST_RULE)


class GeneratorNoteTaker:
    """A model that reads a failed output in context and writes an instruction for all outputs."""

    def __init__(
        self,
        gateway: Gateway,
        model: Model,
        task: str,
        *,
        seed: int | None = None,
        settings: NoteTaking = ONE_CALL,
    ) -> None:
        """``task`` is the checklist's; of the settings ``samples``, ``contrast`` and ``critique`` are heeded."""
        self._gateway = gateway
        self._model = model
        self._task = task
        self._seed = seed
        self._settings = settings
        self._critic = Critic(gateway, model, seed=seed)

    async def take_note(
        self,
        disagreement: Disagreement,
        example: Example,
        question: Question,
        reasons: Mapping[str, str],
        lesson_id: str,
        *,
        contrast: Example | None = None,
    ) -> Lesson:
        """Draw one lesson.

        Args:
            disagreement: Its key is the lesson's evidence; what failed should have been yes.
            example: With the output that fails.
            question: The question that was answered no; its text may be the description of a check.
            reasons: Why, under ``reference``: the judge's explanation or the checker's message.
            lesson_id: Id of the lesson to be.
            contrast: An example whose output passes the same question.

        Returns:
            A lesson whose text is an instruction to the generator, with the direction "stricter".

        Raises:
            ParseError: No instruction that fits other requests, or its critique refused it (``RefusedRuleError``).
            ModelError: No reply.
        """
        return (await self.write_note(disagreement, example, question, reasons, lesson_id, contrast=contrast)).lesson

    async def write_note(
        self,
        disagreement: Disagreement,
        example: Example,
        question: Question,
        reasons: Mapping[str, str],
        lesson_id: str,
        *,
        contrast: Example | None = None,
    ) -> Note:
        """Like :meth:`take_note`; returns the lesson with the quote, the support and the critique.

        The kind of the note is the part of the request that was missed; samples agree by their words alone.
        """
        examples = [example, *([contrast] if contrast else [])]

        def read(note: GeneratorNote) -> Sample:
            return Sample(self._instruction(note.instruction, examples, question), note.quote, note.missed, "")

        shown = contrast if self._settings.contrast else None
        samples = await take_samples(
            self._gateway,
            self._model,
            [("system", template("generator_notes")), ("user", self._case(example, question, reasons, shown))],
            GeneratorNote,
            read,
            count=self._settings.samples,
            seed=self._seed,
        )
        best, agreeing = most_agreed(samples)
        review = await self._review(best, example, question, contrast) if self._settings.critique else None
        lesson = Lesson(
            id=lesson_id,
            text=review.text if review else best.text,
            direction="stricter",
            dimension=question.dimension,
            evidence=(disagreement.key,),
        )
        return Note(lesson, best.quote, best.fact, best.kind, len(samples), agreeing, review)

    async def prepare(self, questions: Iterable[Question], lenient: Iterable[Question] = ()) -> None:
        """Nothing has to be listed before: a request says itself what it asks for."""

    def _instruction(self, text: str, examples: Sequence[Example], question: Question) -> str:
        """One sentence, or several, that fit other requests.

        Raises:
            ValueError: They do not; the message is told to the model.
        """
        text = _ORDER_TO_SELF.sub("", " ".join(text.split()).strip(" \"'"))
        text = f"{text[:1].upper()}{text[1:]}"
        if _PAST.match(text):
            raise ValueError('"instruction" must say what to do, beginning with a verb or "When the request asks for"')
        if echo := echoed(text, _ORDERS):
            raise ValueError(f'"instruction" repeats what you were told ("{echo}"); say what the writer should do')
        if problem := self._leak(text, examples, question):
            raise ValueError(f'"instruction" is about this request alone ("{problem}"); make it fit other requests')
        if self._settings.critique and is_truism(text, self._task):
            raise ValueError('"instruction" only says that the output must be right; say what to do')
        return text if text.endswith((".", "!", "?")) else f"{text}."

    def _leak(self, text: str, examples: Sequence[Example], question: Question) -> str | None:
        outputs = [each.output or "" for each in examples]
        requests = [part for each in examples for part in (each.input, each.context or "")] + [question.text]
        requests.append(question.violation or "")
        return (
            copied_words(text, outputs)
            or copied_words(text, requests, run=REQUEST_RUN)
            or copied_quote(text, [*outputs, *requests])
            or copied_names(text, [*outputs, *requests], self._task)
            or next(iter(topic_words(text, " ".join([*outputs, *requests]), f"{self._task} {_FORM_WORDS}")), None)
        )

    def _case(self, example: Example, question: Question, reasons: Mapping[str, str], contrast: Example | None) -> str:
        beside = render("generator_notes_contrast", output=show_output(contrast)) if contrast else ""
        return render(
            "generator_notes_case",
            task=self._task,
            example=frame(Prompt(""), example).before.strip(),
            check=question.text,
            reason=reasons.get("reference") or "no reason was given",
            contrast=f"{beside}\n" if beside else "",
        )

    async def _review(self, sample: Sample, example: Example, question: Question, contrast: Example | None) -> Reviewed:
        beside, hits = "", "false, as there is no second output."
        if contrast is not None:
            verdict = "It was written for another request and is right."
            beside = render("critique_contrast", verdict=verdict, output=show_output(contrast))
            hits = "true if following the instruction would spoil the second output; else false."
        case = render(
            "generator_critique_case",
            task=self._task,
            rule=sample.text,
            check=question.text,
            output=show_output(example),
            missed=sample.fact,
            contrast=f"{beside}\n" if beside else "",
            hits_other=hits,
        )

        def mend(better: str) -> str:
            if not 10 <= len(better) <= LONGEST_RULE:
                raise ValueError("it is no sentence")
            return self._instruction(better, [example, *([contrast] if contrast else [])], question)

        return await self._critic.review(sample.text, case, mend, has_other=contrast is not None)


__all__ = ["GeneratorNote", "GeneratorNoteTaker"]
