"""Outputs that a language model writes to pass or fail a question by degrees (contrastive responses, LMUnit §3.2).

The scorer learns from them as preferences about one question. In the paper synthetic data helped as pairs and did harm
as scores (Table 3). ``askance questions`` writes the unit tests of the paper's first step.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from typing import TYPE_CHECKING, Any

from ..agents.buying import all_together
from ..agents.evaluator import Evaluator
from ..agents.judging import Judging
from ..agents.requests import question_block
from ..models.base import Parameters, make_request
from ..prompts.checklist import Checklist
from ..prompts.errors import AskanceError, InputError
from ..prompts.prompt import default_prompt
from ..prompts.templates import render, template
from ..prompts.text import tag_for
from .mixture import Probe, TrainingItem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..models.base import Message, Model
    from ..models.gateway import Gateway
    from ..models.progress import Watcher
    from ..models.resolve import Models
    from ..prompts.checklist import Question
    from ..prompts.examples import Example
    from .mixture import TextOf
    from .options import TrainOptions

GRADES = (
    "must answer no, without any doubt.",
    "answers no, though one part of it speaks for yes.",
    "cannot decide, as half of it speaks for yes and half for no.",
    "answers yes, though one small part of it speaks for no.",
    "must answer yes, without any doubt.",
)
"""The meaning of each grade, from no to yes: how a reader of the output answers the question."""
CHOSEN = {2: (0, 4), 3: (0, 2, 4), 4: (0, 1, 3, 4), 5: (0, 1, 2, 3, 4)}  # number of grades: places in GRADES
APART = 0.1  # least lead in the judge's P(yes) of the output that is meant to be better
SHORTEST = 1 / 3  # least length as a share of the shown output: a shorter text is an answer to the question, no output
MOST_TOKENS = 600  # tokens of each output; the longest has a few paragraphs
_NO_WORDS = re.compile(r"\W+")


@dataclass(frozen=True)
class ContrastCase:
    """A question, and the example whose output is rewritten."""

    question: Question
    example: Example


@dataclass(frozen=True)
class Contrasts:
    """The pairs to learn from, and an account of everything that was written."""

    items: tuple[TrainingItem, ...]  # preferences between two outputs, the better one left
    found: Mapping[str, Any]  # the counts of outputs and pairs, as in ``train.json``


@dataclass(frozen=True)
class ContrastWriter:
    """A model that rewrites outputs so that they answer a question by degrees: one call an output, in plain text."""

    gateway: Gateway
    model: Model
    grades: int  # outputs for a question and an example, 2 to 5, from no to yes
    seed: int | None = None

    async def write(self, case: ContrastCase) -> list[str | None]:
        """Return one output a grade, from no to yes; None for an output that is cut off, too short, or about the
        question. Raises ModelError without a reply, and BudgetExceededError at a cap."""
        return [await self._write(case, each) for each in CHOSEN[self.grades]]

    async def _write(self, case: ContrastCase, grade: int) -> str | None:
        example, output = case.example, case.example.output or ""
        given = "\n\n".join(each for each in (example.input, example.context) if each)
        asked = question_block(case.question)
        messages: list[Message] = [("system", template("contrast"))]
        for shown in _shown_examples():
            messages += [("user", _case(shown[0], shown[1], shown[2], grade)), ("assistant", shown[3 + grade])]
        messages.append(("user", _case(given, output, asked, grade)))
        request = make_request(self.model.identity, messages, Parameters(MOST_TOKENS, 0.0, self.seed))
        answer = await self.gateway.ask("writer", self.model, request)
        tag = tag_for(output)  # some models repeat the marks of what they are shown
        text = answer.text.strip().removeprefix(f"<{tag}>").removesuffix(f"</{tag}>").strip()
        is_whole = bool(text) and len(text.split()) >= SHORTEST * len(output.split()) and answer.finish != "length"
        return text if is_whole and not speaks_of(case.question, text, output) else None


@cache
def _shown_examples() -> list[list[str]]:
    """Return the examples that the writer is shown: an input, an output, a question, and an output of each grade."""
    parts = template("contrast_examples").split("\n\n")
    size = 3 + len(GRADES)
    return [parts[begin : begin + size] for begin in range(0, len(parts), size)]


def _case(given: str, output: str, question: str, grade: int) -> str:
    return render("contrast_case", instruction=given, output=output, question=question, verdict=GRADES[grade])


def speaks_of(question: Question, text: str, shown: str) -> bool:
    """Whether a text speaks about the question: it has at least half, and two, of the question's words that ``shown``
    does not have. Only words of four letters or more count."""
    asked, said, before = ({each for each in _words(of) if len(each) > 3} for of in (question.text, text, shown))
    new = asked - before
    return bool(new) and len(new & said) >= max(2, len(new) / 2)


def _words(text: str) -> list[str]:
    return _NO_WORDS.sub(" ", text).casefold().split()


def chosen_cases(
    examples: Sequence[Example], checklist: Checklist, part_of: Mapping[str, str], count: int, seed: int
) -> list[ContrastCase]:
    """Choose ``count`` pairs of a question and a training example, each question about equally often. Raises InputError
    if there are fewer such pairs."""
    trained = [each for each in examples if part_of[each.id] == "training" and each.output]
    limit = len(trained) * len(checklist.questions)
    if count > limit:
        raise InputError(
            f"--contrasts {count}: the training part has {len(trained)} outputs and the checklist "
            f"{len(checklist.questions)} questions, so that {limit} can be written about."
        )
    orders = []
    for question in checklist.questions:
        order = list(trained)
        random.Random(f"{seed}/contrasts/{question.id}").shuffle(order)
        orders.append([ContrastCase(question, each) for each in order])
    return [each for same_place in zip(*orders, strict=True) for each in same_place][:count]


def buy_contrasts(
    examples: Sequence[Example],
    checklist: Checklist,
    part_of: Mapping[str, str],
    writer: str | Model,
    judge: str | Model,
    settings: TrainOptions,
    watcher: Watcher,
    text_of: TextOf,
) -> Contrasts:
    """Have outputs written and judged, and keep the pairs that ``judge`` orders as intended. Nothing is written for
    ``examples`` of validation and test, and an output that an example already has is dropped. Raises InputError if
    there are too few questions and outputs, and the errors of :meth:`TrainOptions.buy`."""
    cases = chosen_cases(examples, checklist, part_of, settings.contrasts, settings.seed)

    async def buy(models: Models, gateway: Gateway) -> Contrasts:
        writer_model, judging = models.get(writer), models.get(judge)
        author = ContrastWriter(gateway, writer_model, settings.contrast_grades, settings.seed)
        watcher.phase("writing contrasts", len(cases))
        written = await all_together(cases, author.write, gateway.concurrency(writer_model), watcher.advance)
        new, repeated = _not_there(cases, written, examples)
        prompt = default_prompt([each for mine in new for each in mine])
        evaluator = Evaluator(gateway, judging, prompt, checklist, Judging(explain="never", seed=settings.seed))
        p_yes = await _judged(cases, new, evaluator, watcher)
        items, pairs = _ordered(cases, new, p_yes, text_of)
        found = {
            "writer": writer_model.name,
            "judge": judging.name,
            "grades": settings.contrast_grades,
            "asked": len(cases),
            "outputs": sum(map(len, written)),
            "unusable": sum(text is None for each in written for text in each),
            "repeated": repeated,
            "pairs": pairs,
            "not_ordered_by_judge": pairs - len(items),
            "kept": len(items),
        }
        return Contrasts(tuple(items), found)

    return settings.buy(buy, watcher)


def _ordered(
    cases: Sequence[ContrastCase],
    outputs: Sequence[Sequence[Example]],
    p_yes: Mapping[str, float | None],
    text_of: TextOf,
) -> tuple[list[TrainingItem], int]:
    """Return preferences from the pairs that the judge orders as intended, and the number of all pairs."""
    items: list[TrainingItem] = []
    pairs = 0
    for case, mine in zip(cases, outputs, strict=True):
        for worse, better in combinations(mine, 2):
            pairs += 1
            low, high = p_yes.get(worse.id), p_yes.get(better.id)
            if low is not None and high is not None and high - low >= APART:
                left, right = ((Probe(text_of(case.question, each)),) for each in (better, worse))
                unit, about = case.example.id, case.question.id
                items.append(TrainingItem("preference", "synthetic", unit, about, left, 1.0, right))
    return items, pairs


def _not_there(
    cases: Sequence[ContrastCase], written: Sequence[Sequence[str | None]], examples: Sequence[Example]
) -> tuple[list[list[Example]], int]:
    """Return the new outputs of each case as examples, from no to yes; and how many outputs already existed for
    their input."""
    known_keys = {(each.input, each.context, _wording(each.output or "")) for each in examples}
    kept, repeated = [], 0
    for number, (case, texts) in enumerate(zip(cases, written, strict=True)):
        new_outputs = []
        for grade, text in enumerate(texts):
            if text is None:
                continue
            key = (case.example.input, case.example.context, _wording(text))
            if key in known_keys:
                repeated += 1
                continue
            known_keys.add(key)
            new_outputs.append(
                case.example.model_copy(update={"id": f"{number}/{grade}", "output": text, "human": {}, "comment": ()})
            )
        kept.append(new_outputs)
    return kept, repeated


async def _judged(
    cases: Sequence[ContrastCase], outputs: Sequence[Sequence[Example]], judge: Evaluator, watcher: Watcher
) -> dict[str, float | None]:
    """Return the judge's P(yes), or None, by the output's id. Raises AskanceError if calls failed."""
    groups: dict[Question, list[Example]] = {}
    for case, mine in zip(cases, outputs, strict=True):
        groups.setdefault(case.question, []).extend(mine)
    total, done = sum(map(len, groups.values())), 0
    watcher.phase("judging contrasts", total)
    found: dict[str, float | None] = {}
    for question, asked in groups.items():
        checklist = Checklist(questions=(question.model_copy(update={"weight": 1.0}),))

        def advance(some: int, _: int, before: int = done) -> None:
            watcher.advance(before + some, total)

        verdicts = await replace(judge, checklist=checklist).judge(asked, advance)
        failed = [each for each in verdicts if each.status == "api_error"]
        if failed:
            raise AskanceError(
                f"{len(failed)} of the judge's {len(asked)} calls on '{question.id}' failed, the first with: "
                f"{failed[0].error}. Run the same command again: what was answered is kept."
            )
        found |= {each.example: each.score(soft=True) for each in verdicts}
        done += len(asked)
    return found


def _wording(text: str) -> str:
    return _NO_WORDS.sub(" ", text).strip().casefold() or text
