"""Notes in batches: several disagreements on one question in one call, a few rules with what supports each.

This is how the paper's self update draws its lessons (BinEval App. B). A document costs most of a call's tokens, so of
each input only the sentences nearest to its output are shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, Field, create_model

from ..models.structured import ask_for
from ..prompts.lessons import Disagreement, Lesson
from ..prompts.templates import render, template
from ..prompts.text import excerpt, fence
from .notes import ONE_CALL, NoteTaking, show_output
from .rules import LENIENT, LONGEST_RULE, STRICTER, Direction, KindLister, RuleMaker

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..models.base import Model
    from ..models.gateway import Gateway
    from ..prompts.checklist import Question
    from ..prompts.examples import Example

MOST_RULES = 3
EXCERPT = 500
"""Characters of each input that are shown."""


class _BatchRule(BaseModel):
    items: list[int] = Field(min_length=1)
    quote: str = Field(max_length=300)
    kind: str = Field(max_length=80)


class BatchNoteTaker:
    """A model that reads several disagreements at once and finds what they have in common."""

    def __init__(
        self,
        gateway: Gateway,
        model: Model,
        task: str,
        *,
        seed: int | None = None,
        settings: NoteTaking = ONE_CALL,
        most_rules: int = MOST_RULES,
    ) -> None:
        """``task`` is the checklist's. Of the settings ``kinds`` is heeded, and ``critique`` refuses truisms."""
        self._gateway = gateway
        self._model = model
        self._task = task
        self._seed = seed
        self._settings = settings
        self._most = most_rules
        self._lister = KindLister(gateway, model, task, seed=seed, truisms=not settings.critique)

    async def take_notes(
        self,
        disagreements: Sequence[Disagreement],
        examples: Mapping[str, Example],
        question: Question,
        reasons: Mapping[str, Mapping[str, str]],
        lesson_ids: Sequence[str],
    ) -> list[Lesson]:
        """Draw up to ``most_rules`` lessons in one call.

        Args:
            disagreements: On one question and in one direction.
            examples: By id.
            question: The question they are about.
            reasons: By disagreement key, explanations under ``target`` and ``reference``, where they were bought.
                The reference's alone are shown.
            lesson_ids: Ids of the lessons to be, as many as there may be rules; those left over stay unused.

        Returns:
            Lessons, the best supported first. The evidence of each is those disagreements alone that the model named.

        Raises:
            ValueError: There are no disagreements, or of several questions or directions, or too few ids.
            ParseError: No rule can be used.
            ModelError: No reply.
        """
        self._check(disagreements, question, lesson_ids)
        direction = STRICTER if disagreements[0].target else LENIENT
        kinds = await self._kinds(question, direction)
        shown = [examples[each.example] for each in disagreements]
        texts = [text for each in shown for text in (each.input, each.output or "", each.context or "")]
        judged = " ".join([self._task, question.text, *kinds])
        maker = RuleMaker(direction, question, texts, judged, kinds, self._settings.critique)

        def support(reply: BaseModel) -> dict[str, list[int]]:
            return _support(reply, maker, len(disagreements))

        reply = await ask_for(
            self._gateway,
            "note_taker",
            self._model,
            [
                ("system", template("batch_notes")),
                ("user", self._case(disagreements, shown, question, reasons, direction, kinds)),
            ],
            _record(direction, self._most),
            max_tokens=200 * self._most,
            seed=self._seed,
            check=support,
        )
        found = sorted(support(reply).items(), key=lambda rule: -len(rule[1]))
        return [
            Lesson(
                id=lesson_id,
                text=text,
                direction=direction.name,
                dimension=question.dimension,
                evidence=tuple(disagreements[number - 1].key for number in items),
            )
            for lesson_id, (text, items) in zip(lesson_ids, found, strict=False)
        ]

    def _check(self, disagreements: Sequence[Disagreement], question: Question, lesson_ids: Sequence[str]) -> None:
        if not disagreements:
            raise ValueError("there are no disagreements to take notes of")
        if any(each.question != question.id or each.target != disagreements[0].target for each in disagreements):
            raise ValueError("a batch has disagreements on one question and in one direction")
        if len(lesson_ids) < self._most:
            raise ValueError(f"{len(lesson_ids)} ids were given for up to {self._most} lessons")

    async def _kinds(self, question: Question, direction: Direction) -> list[str]:
        if not self._settings.kinds:
            return []
        return await self._lister.kinds(question, harmless=not direction.stricter)

    def _case(
        self,
        disagreements: Sequence[Disagreement],
        examples: Sequence[Example],
        question: Question,
        reasons: Mapping[str, Mapping[str, str]],
        direction: Direction,
        kinds: Sequence[str],
    ) -> str:
        items = []
        for number, (disagreement, example) in enumerate(zip(disagreements, examples, strict=True), 1):
            source = "\n".join(filter(None, (example.context, example.input)))
            reason = reasons.get(disagreement.key, {}).get("reference")
            item = render(
                "batch_notes_item",
                number=str(number),
                output=show_output(example),
                excerpt=fence(excerpt(source, example.output or "", EXCERPT)),
                reason=f"Why: {reason}" if reason else "",
            )
            items.append(item.rstrip())
        answer, other = direction.answers
        return render(
            "batch_notes_case",
            task=self._task,
            question=question.text,
            target_answer=other,
            reference_answer=answer,
            items="\n\n".join(items),
            most=str(self._most),
            kinds=f", one of: {'; '.join(kinds)}; or another" if kinds else "",
            rule_field=direction.field,
            rule_opening=direction.opening,
        )


def _support(reply: BaseModel, maker: RuleMaker, count: int) -> dict[str, list[int]]:
    """The rules that can be used, each with the numbers of what supports it; the same rule twice is one.

    Raises:
        ValueError: None can be used; the first one's problem is told to the model.
    """
    found: dict[str, list[int]] = {}
    problem = ""
    for rule in reply.rules:  # type: ignore[attr-defined]
        items = [number for number in dict.fromkeys(rule.items) if 1 <= number <= count]
        try:
            if not items:
                raise ValueError(f'"items" must be numbers from 1 to {count}')
            text = maker.rule(getattr(rule, maker.direction.field), rule.kind)
        except ValueError as error:
            problem = problem or str(error)
            continue
        found[text] = list(dict.fromkeys([*found.get(text, []), *items]))
    if not found:
        raise ValueError(problem)
    return found


def _record(direction: Direction, most: int) -> type[BaseModel]:
    """The reply's schema."""
    ending = (str, Field(min_length=10, max_length=LONGEST_RULE))
    rule = create_model("Rule", __base__=_BatchRule, **{direction.field: ending})  # type: ignore[call-overload]
    rules: Any = (list[rule], Field(min_length=1, max_length=most))  # type: ignore[valid-type]
    return create_model("BatchNotes", rules=rules)


__all__ = ["BatchNoteTaker"]
