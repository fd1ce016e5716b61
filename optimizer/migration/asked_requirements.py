"""Questions among the requirements of a migration; the judge's model writes them.

BinEval's two steps are applied to the migrated prompt. First its demands are listed: the clauses that no check decides.
Then atomic questions are written about each demand. People's comments on old outputs are demands, too. What old outputs
do and new ones do not (contrast) becomes a question where the verdicts on development differ.

The model sees one clause, with examples in plain lines. A small model that sees the whole prompt and must write JSON
writes questions about other clauses. If a clause forbids a thing, the question asks for the thing itself, with no as
the good answer, because small judges overlook "not".
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from ...agents.agent import Agent
from ...agents.buying import all_together
from ...agents.comment_questions import KindReader, noun_of
from ...agents.question_writer import MOST_REQUIREMENTS, SAME_QUESTION
from ...evaluation.contract.clauses import is_about_form
from ...evaluation.contract.wording import clauses_of
from ...memory.embedders import Embedder, greedy_unique
from ...models.base import CallError, Message, Model
from ...models.gateway import Gateway
from ...prompts.checklist import Checklist, GoodAnswer, Question
from ...prompts.examples import Example
from ...prompts.formatting import count
from ...prompts.lessons import foreign_order
from ...prompts.prompt import Prompt
from ...prompts.templates import template
from ...prompts.text import shorten
from ...prompts.verdicts import Verdict
from ..questions.proposers import first_of_meaning
from .decision import PassTable
from .requirements import WrittenRequirements, prompt_text

if TYPE_CHECKING:
    from ...models.base import Model
    from ...models.progress import Watcher


SHOTS = (
    (
        "You write captions for the photos of a museum.",
        "Rule: Say who made the work and when.",
        "yes: Does the output say who made the work?|yes: Does the output say when the work was made?",
    ),
    (
        "You turn letters from readers into records.",
        'Rule: "town": the town that the letter comes from, or null',
        'yes: Is "town" in the output the town that the letter comes from, or null if it names none?',
    ),
    (
        "You turn letters from readers into records.",
        'Rule: "title": at most 6 words',
        'yes: Is "title" in the output a title that fits the letter?',
    ),
    (
        "You turn letters from readers into records.",
        "Rule: Use nothing that is not in the letter.",
        "no: Does the output state something that is not in the letter?",
    ),
    (
        "You help the customers of a bike shop.",
        "Rule: You help the customers of a bike shop.",
        "yes: Does the output help the customer?",
    ),
    (
        "You help the customers of a bike shop.",
        "Rule: Open with one line in italics that gives the price, and never promise a date.",
        "yes: Does the first line of the output give the price?|no: Does the output promise a date?",
    ),
    ("You help the customers of a bike shop.", "Rule: The shop was founded in 1970.", "none"),
    (
        "Write a recipe for the ingredients.",
        "Comment: where's the oven temperature??",
        "yes: Does the output say how hot the oven must be?",
    ),
    ("Write a recipe for the ingredients.", "Comment: meh", "none"),
    (
        "Write the news of a club.",
        "Comment: We don't print phone numbers. Ever. Lovely that it thanks the helpers",
        "no: Does the output give a phone number?|yes: Does the output thank the helpers?",
    ),
)
"""Worked examples from other fields: the task, a rule or comment, and the questions about it."""
MOST_QUESTIONS = 3
"""Most questions about one clause."""
MOST_WORDS = 30
"""Most words of a question."""
LONGEST_TASK = 300
"""Most characters of the task that are shown."""
_TOKENS = 120
_LINE = re.compile(r"^\W*(yes|no)\s*[:\-–]\s*((?:does|do|is|are|has|have|can|was|were)\b.+\?)\s*$", re.IGNORECASE)
_COPIES = frozenset(line.partition(": ")[2] for *_, answer in SHOTS for line in answer.split("|"))


class ClauseQuestion(NamedTuple):
    """A question with its good answer."""

    text: str
    good: GoodAnswer


class ClauseReader(Agent):
    """Turns clauses of a prompt and comments on outputs into questions, one call each."""

    role = "writer"

    def __init__(self, gateway: Gateway, model: Model, task: str, *, seed: int | None = None) -> None:
        """``task`` is the beginning of the prompt."""
        super().__init__(gateway, model, seed=seed)
        self._task = task
        self._orders: list[Message] = [("system", template("clause_questions"))]
        for shown, asked, answer in SHOTS:
            kind, _, words = asked.partition(": ")
            self._orders += [("user", _case(shown, kind, words)), ("assistant", answer.replace("|", "\n"))]

    async def of_clause(self, clause: str) -> list[ClauseQuestion]:
        """Return questions about a clause of the prompt; empty where the reply has no usable question."""
        return await self._questions("Rule", clause)

    async def of_comment(self, comment: str) -> list[ClauseQuestion]:
        """Return questions about what a comment asks for; empty where the reply has no usable question."""
        return await self._questions("Comment", comment)

    async def _questions(self, kind: str, words: str) -> list[ClauseQuestion]:
        case = _case(shorten(self._task, LONGEST_TASK), kind, words)
        reply = await self._say([*self._orders, ("user", case)], max_tokens=_TOKENS)
        return self.read(reply.text)

    def read(self, reply: str) -> list[ClauseQuestion]:
        """Return the usable questions of a reply: not too long, no copies of the worked examples, and no orders."""
        lines = [found for line in reply.splitlines() if (found := _LINE.match(" ".join(line.split())))]
        texts = {found[2][0].upper() + found[2][1:]: found[1].lower() for found in lines}
        usable = [
            ClauseQuestion(text, "yes" if good == "yes" else "no")
            for text, good in texts.items()
            if text not in _COPIES and len(text.split()) <= MOST_WORDS and foreign_order(text, self._task) is None
        ]
        return usable[:MOST_QUESTIONS]


def _case(task: str, kind: str, words: str) -> str:
    """Quote the rule or comment as something to look at: a small model would follow a rule that it is given."""
    line = " ".join(words.split())
    return f"A prompt begins: «{' '.join(task.split())}»\n{kind}: «{line}»\nQuestions about an output:"


DESCRIBED = 20
"""Most old outputs, and most outputs of each target, that the model describes for the contrast."""
MOST_CONTRASTS = 3
"""Most questions from the contrast with one target."""
MOST_COMMENTS = 10
"""Most different comments that are read."""
WORKERS = 8
"""Calls at a time."""
PROVED = 0.05
"""Level of the test for a difference between old and new outputs on contrast questions."""


@dataclass(frozen=True)
class QuestionSource:
    """The model that writes questions, and what it needs for that."""

    gateway: Gateway
    model: Model
    embedder: Embedder
    """Finds questions that repeat each other."""
    watcher: Watcher
    seed: int | None = None
    most: int = MOST_REQUIREMENTS
    """Most clauses of the prompt that are asked about."""


async def with_questions(
    written: WrittenRequirements, prompt: Prompt, development: Sequence[Example], source: QuestionSource
) -> WrittenRequirements:
    """Add questions about the clauses that no check decides and about people's comments. The remarks name each clause
    without a usable question. Raises the gateway's error where every further call would fail, too."""
    clauses, extra_clauses = written.to_ask[: source.most], written.to_ask[source.most :]
    checked = {each.clause for each in written.criteria}
    comments = _different([each.text for example in development for each in example.comment], source)
    task = next(iter(clauses_of(prompt_text(prompt))), "")  # the first clause mostly says what is to be written
    reader = ClauseReader(source.gateway, source.model, task, seed=source.seed)

    async def ask(words: str) -> list[ClauseQuestion]:
        try:
            found = await (reader.of_comment(words) if words in comments else reader.of_clause(words))
        except CallError as error:
            if error.fatal:
                raise
            source.watcher.say(f"no question about '{words}': {error}")
            return []
        return [each for each in found if words not in checked or not is_about_form(each.text)]

    demands = list(dict.fromkeys([*clauses, *comments]))
    source.watcher.phase(f"writing questions about {count(len(demands), 'clause')}", len(demands))
    drafts = await all_together(demands, ask, WORKERS, source.watcher.advance) if demands else []
    pairs = [(words, draft) for words, some in zip(demands, drafts, strict=True) for draft in some]
    known = [each.text for each in written.criteria if each.origin == "judge"]
    found = written
    for place in _new_places([draft.text for _, draft in pairs], known, source.embedder):
        words, draft = pairs[place]
        fields = {"id": f"content-{place + 1}", "text": draft.text, "good": draft.good, "dimension": "content"}
        origin = "person" if words in comments else "clause"
        found = found.added([Question.model_validate(fields | {"clause": words, "from": origin})])
    if extra_clauses:
        note = f"{count(len(extra_clauses), 'clause')} beyond --max-requirements {source.most} had no questions."
        found = replace(found, notes=(*found.notes, note))
    return found


def _different(comments: Sequence[str], source: QuestionSource) -> list[str]:
    """Return the first comments that say different things."""
    texts = [each for each in dict.fromkeys(comments) if each.strip()]
    kept = greedy_unique(source.embedder.embed(texts), SAME_QUESTION) if texts else []
    return [texts[place] for place in kept][:MOST_COMMENTS]


def _new_places(texts: Sequence[str], known: Sequence[str], embedder: Embedder) -> list[int]:
    """Return the places of the texts that repeat neither a known text nor an earlier one."""
    if not texts:
        return []
    kept = greedy_unique(embedder.embed([*known, *texts]), SAME_QUESTION)
    return [place - len(known) for place in kept if place >= len(known)]


async def with_contrast(
    written: WrittenRequirements,
    development: Sequence[Example],
    new: Mapping[str, Sequence[Example]],
    source: QuestionSource,
) -> WrittenRequirements:
    """Add questions about what old outputs do more often, or less often, than those of a target.

    The model describes in general words what outputs do, one call per output (METHOD, part 4). A question is only
    proposed here: :func:`without_idle_contrast` drops it where the verdicts do not differ.
    """
    noun = noun_of(written.checklist) if any(each.weight for each in written.criteria) else "text"
    reader = KindReader(source.gateway, source.model, noun, seed=source.seed)

    async def kinds(example: Example) -> list[str]:
        try:
            return await reader.questions(example.output or "")
        except CallError as error:
            if error.fatal:
                raise
            source.watcher.say(f"nothing is told of the output of '{example.id}': {error}")
            return []

    sides = {"": _written(development), **{name: _written(examples) for name, examples in new.items()}}
    total = sum(map(len, sides.values()))
    source.watcher.phase(f"telling what {count(total, 'output')} do", total)
    side_kinds = {}
    for name, examples in sides.items():
        side_kinds[name] = await all_together(examples, kinds, WORKERS) if examples else []
    found = written
    for name in new:
        known = [each.text for each in found.criteria if each.origin != "contract"]
        found = found.added(_contrasts(side_kinds[""], side_kinds[name], known, source.embedder, len(found.criteria)))
    return found


def _written(examples: Sequence[Example]) -> list[Example]:
    return [each for each in examples if each.output and each.output.strip()][:DESCRIBED]


def _contrasts(
    old: Sequence[Sequence[str]],
    new: Sequence[Sequence[str]],
    known: Sequence[str],
    embedder: Embedder,
    number: int,
) -> list[Question]:
    """Return questions about what one side does more often than the other, the largest difference first."""
    texts = list(dict.fromkeys(text for side in (old, new) for each in side for text in each))
    if not texts or not old or not new:
        return []
    same = first_of_meaning(embedder.embed(texts))
    place = {text: same[spot] for spot, text in enumerate(texts)}
    times = [Counter(spot for each in side for spot in {place[text] for text in each}) for side in (old, new)]
    gaps = {spot: times[0][spot] / len(old) - times[1][spot] / len(new) for spot in set(place.values())}
    told_once = {spot for spot in gaps if times[0][spot] + times[1][spot] < 2}
    largest = sorted((spot for spot in gaps if spot not in told_once and gaps[spot]), key=lambda spot: -abs(gaps[spot]))
    fresh = set(_new_places(texts, known, embedder))
    return [
        Question(
            id=f"contrast-{number + rank}",
            text=texts[spot],
            dimension="content",
            good="yes" if gaps[spot] > 0 else "no",
            **{"from": "contrast"},  # type: ignore[arg-type]
        )
        for rank, spot in enumerate([each for each in largest if each in fresh][:MOST_CONTRASTS], 1)
    ]


def without_idle_contrast(
    checklist: Checklist,
    development: Sequence[Example],
    old: Iterable[Verdict],
    new: Mapping[str, Iterable[Verdict]],
) -> Checklist:
    """Drop the contrast questions that no target's development outputs fail more often than the old outputs.

    A question stays if chance is ruled out by a one-sided sign test. The test counts the outputs on which the verdicts
    of old and new differ, and how often the old one passes. All contrast questions and targets share the level .05.
    The checklist is returned unchanged if no requirement that counts would be left.
    """
    ids = [each.id for each in development]
    contrast = [each.id for each in checklist.questions if each.origin == "contrast"]
    before = PassTable.of(ids, checklist, old)
    proved: set[str] = set()
    for verdicts in new.values():
        change = PassTable.of(ids, checklist, verdicts).passed - before.passed
        for name in contrast:
            column = change[:, before.requirements.index(name)]
            worse, differ = int((column == -1).sum()), int((abs(column) == 1).sum())
            if _by_chance(worse, differ) <= PROVED / len(contrast) / len(new):
                proved.add(name)
    kept = [each for each in checklist.questions if each.origin != "contrast" or each.id in proved]
    is_something_left = any(each.weight for each in kept)  # a list without any requirement could decide nothing
    return checklist.model_copy(update={"questions": kept}) if is_something_left else checklist


def _by_chance(worse: int, differ: int) -> float:
    """Return the chance of ``worse`` or more losses among ``differ`` outputs: the p-value of the one-sided sign
    test."""
    return sum(math.comb(differ, each) for each in range(worse, differ + 1)) / float(2**differ)
