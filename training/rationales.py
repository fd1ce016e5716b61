"""Rationales: draw them, and teach the scorer by DPO to prefer those that score better (LMUnit §3.4).

Teacher: a rationale that ends in the right score is preferred to one that does not.
Refined: another model, which knows the right answer, revises the scorer's rationale (D'Oosterlinck et al. 2024).
Harmonized: another model, which knows the better output of a pair, revises the scorer's rationales of both together.
A revision is preferred to the original if it scores better.
"""

from __future__ import annotations

import json
import os
import zlib
from collections import Counter
from dataclasses import dataclass
from time import process_time
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from ..agents.agent import ParseError, ask_for
from ..agents.buying import all_together
from ..models.base import Parameters, make_request
from ..models.trained.scored_text import Rationale, after_rationale, asked_why
from ..models.trained.trained_scorer import expected_scores
from ..prompts.errors import AskanceError, InputError
from ..prompts.templates import render
from .losses import RationaleObjective, RationalePair
from .trainer import Trainer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from ..models.base import Message, Model
    from ..models.gateway import Gateway
    from ..models.progress import Watcher
    from ..models.resolve import Models
    from ..models.trained.causal import CausalNetwork
    from ..models.trained.scored_text import ScoredText
    from .mixture import Mixture, TrainingItem
    from .options import TrainOptions
    from .trainer import LossCurve

RATIONALES_FILE = "rationales.jsonl"
RATE_SHARE = 0.1  # DPO's learning rate as a share of the rate for scores: these weights can score already
_BESIDE = 40  # tokens of a reply that are not part of its rationales


class _Refined(BaseModel):
    model_config = ConfigDict(title="revision", str_strip_whitespace=True)

    revised: str = Field(min_length=1)


class _Harmonized(BaseModel):
    model_config = ConfigDict(title="revisions", str_strip_whitespace=True)

    first: str = Field(min_length=1)
    second: str = Field(min_length=1)


@dataclass(frozen=True, slots=True)
class RationaleCase:
    """A question on a training output with a known right answer, or one side of a preference."""

    unit: str  # id of the example
    about: str  # the question's id, or the dimension if it has one question
    text: ScoredText
    wanted: bool  # whether yes is right; for a side of a preference, whether its P(yes) should be the higher one

    def is_right(self, p_yes: float) -> bool:
        """Whether this P(yes) is on the right side of 1/2."""
        return (p_yes >= 0.5) is self.wanted


@dataclass(frozen=True, slots=True)
class Drawn:
    """A rationale that was drawn, and the P(yes) after it; None if the rationale is empty or was cut off."""

    text: str
    p_yes: float | None


class RationaleDraft(NamedTuple):
    """The scorer's rationales to revise in one call: one, or one for each output of a preference pair."""

    cases: Sequence[RationaleCase]
    before: Sequence[Drawn]


def rationale_cases(items: Sequence[TrainingItem]) -> list[RationaleCase]:
    """Return one case for each text with a wanted score; a mean of 1/2 has no right answer and is left out. Raises
    InputError if there is no case."""
    wanted: dict[ScoredText, list[float]] = {}
    first: dict[ScoredText, TrainingItem] = {}
    for item in items:
        if item.kind in ("verdict", "rating") and len(item.left) == 1:
            (probe,) = item.left
            first.setdefault(probe.text, item)
            wanted.setdefault(probe.text, []).append(1.0 - item.target if probe.is_fault else item.target)
    means = {text: sum(values) / len(values) for text, values in wanted.items()}
    found = [
        RationaleCase(first[text].unit, first[text].about, text, mean > 0.5)
        for text, mean in means.items()
        if mean != 0.5
    ]
    if not found:
        raise InputError(
            "--rationales: nothing in the training part is about a single question with a yes or no as the right "
            "answer. Give --verdicts, people's answers to questions, or ratings of a dimension that has one question."
        )
    return found


def preference_cases(items: Sequence[TrainingItem]) -> list[RationaleCase]:
    """Return a case for each output of every decided preference about one question; the two of a pair are neighbours.
    Raises InputError if there is none."""
    found = []
    for item in items:
        if item.kind == "preference" and item.target != 0.5 and len(item.left) == len(item.right) == 1:
            more = (item.target > 0.5) is not item.left[0].is_fault
            sides = ((item.left[0], more), (item.right[0], not more))
            found += [RationaleCase(item.unit, item.about, probe.text, wanted) for probe, wanted in sides]
    if not found:
        raise InputError(
            "--rationales-from harmonized: no preference of the training part is about a single question. Give ratings "
            "of a dimension that has one question, --contrasts, or --preferences with a checklist of one question."
        )
    return found


def pairs_of(case: RationaleCase, drawn: Sequence[Drawn]) -> list[RationalePair]:
    """Pair the surest right rationale with the most wrong one, and so on; each occurs in one pair at most."""
    usable = {each.text: each.p_yes for each in drawn if each.p_yes is not None}
    sureness = {text: p if case.wanted else 1.0 - p for text, p in usable.items()}
    right = sorted((text for text, p in usable.items() if case.is_right(p)), key=lambda text: -sureness[text])
    wrong = sorted((text for text, p in usable.items() if not case.is_right(p)), key=sureness.__getitem__)
    return [RationalePair(case.unit, case.text, better, worse) for better, worse in zip(right, wrong, strict=False)]


def drafts_of(cases: Sequence[RationaleCase], drawn: Sequence[Sequence[Drawn]], together: int) -> list[RationaleDraft]:
    """Group the rationales of 1 or 2 neighbouring cases (``together``); leave out unusable and repeated ones."""
    return [
        RationaleDraft(cases[place : place + together], before)
        for place in range(0, len(cases), together)
        for before in dict.fromkeys(zip(*drawn[place : place + together], strict=True))
        if all(each.p_yes is not None for each in before)
    ]


def buy_revisions(
    drafts: Sequence[RationaleDraft], reviser: str | Model, settings: TrainOptions, watcher: Watcher
) -> list[tuple[str, ...] | None]:
    """Have a model revise each draft; None for an unusable reply. Raises as :meth:`TrainOptions.buy`."""

    async def buy(models: Models, gateway: Gateway) -> list[tuple[str, ...] | None]:
        model = models.get(reviser)

        async def ask(draft: RationaleDraft) -> tuple[str, ...] | None:
            record: type[BaseModel] = _Refined if len(draft.cases) == 1 else _Harmonized
            most, messages = len(draft.cases) * settings.rationale_tokens + _BESIDE, _messages(draft)
            try:
                reply = await ask_for(gateway, "writer", model, messages, record, max_tokens=most, seed=settings.seed)
            except ParseError:
                return None
            return tuple(reply.model_dump().values())

        watcher.phase("revising rationales", len(drafts))
        return await all_together(drafts, ask, gateway.concurrency(model), watcher.advance)

    return settings.buy(buy, watcher)


def _messages(draft: RationaleDraft) -> list[Message]:
    """Return the scorer's conversation with its rationales, followed by the instruction to revise them."""
    first = draft.cases[0]
    messages: list[Message] = [*asked_why(first.text), ("assistant", draft.before[0].text)]
    if len(draft.cases) == 1:
        return [*messages, ("user", render("rationale_refine", answer="yes" if first.wanted else "no"))]
    messages += [asked_why(draft.cases[1].text)[-1], ("assistant", draft.before[1].text)]
    return [*messages, ("user", render("rationale_harmonize", number="first" if first.wanted else "second"))]


def revised_pairs(
    network: CausalNetwork, drafts: Sequence[RationaleDraft], revised: Sequence[tuple[str, ...] | None]
) -> list[RationalePair]:
    """Pair each revision with its original, if P(yes) after it is on the right side and further from 1/2 than before.
    Two rationales revised together must put the better output further ahead of the other one."""
    usable = [(draft, texts) for draft, texts in zip(drafts, revised, strict=True) if texts is not None]
    read = [
        after_rationale(case.text, text)
        for draft, texts in usable
        for case, text in zip(draft.cases, texts, strict=True)
    ]
    said = iter(expected_scores(network.levels(read).tolist()) if read else [])
    found = []
    for draft, texts in usable:
        after = [next(said) for _ in texts]
        if _score(draft.cases, after) > max(0.0, _score(draft.cases, [each.p_yes or 0.0 for each in draft.before])):
            sides = zip(draft.cases, texts, draft.before, strict=True)
            found += [
                RationalePair(case.unit, case.text, text, before.text)
                for case, text, before in sides
                if text != before.text
            ]
    return found


def _score(cases: Sequence[RationaleCase], p_yes: Sequence[float]) -> float:
    """Return how far P(yes) is on the right side of 1/2, or of the other output's P(yes); below 0 on the wrong side."""
    first, *other = p_yes
    ahead = first - (other[0] if other else 0.5)
    return ahead if cases[0].wanted else -ahead


@dataclass(frozen=True)
class Writing:
    """The cases for which rationales are drawn, and the rationales that another model wrote for them."""

    cases: Sequence[RationaleCase]
    writer: str | None = None  # name of the other model; None if the scorer writes the rationales itself
    written: Sequence[Sequence[Rationale]] | None = None
    reviser: str | Model | None = None  # the other model that revises what the scorer wrote

    @property
    def revised_by(self) -> str | None:
        """Name of the reviser."""
        return self.reviser if self.reviser is None or isinstance(self.reviser, str) else self.reviser.name


def rationales_to_draw(
    items: Sequence[TrainingItem], writer: str | Model | None, settings: TrainOptions, watcher: Watcher
) -> Writing:
    """Return the training cases for which rationales are drawn. If a ``writer`` writes the rationales, buy them. Raises
    the errors of :func:`rationale_cases`, :func:`preference_cases` and :func:`buy_rationales`."""
    way = settings.rationales_from
    if way == "writer" and writer is not None:
        return buy_rationales(rationale_cases(items), writer, settings, watcher)
    cases = preference_cases(items) if way == "harmonized" else rationale_cases(items)
    return Writing(cases, reviser=None if way == "scorer" else writer)


def buy_rationales(
    cases: Sequence[RationaleCase], writer: str | Model, settings: TrainOptions, watcher: Watcher
) -> Writing:
    """Have a model write several rationales for each case. Raises as :meth:`TrainOptions.buy`."""

    async def buy(models: Models, gateway: Gateway) -> Writing:
        model = models.get(writer)

        async def ask(case: RationaleCase) -> list[Rationale]:
            found = []
            for sample in range(settings.rationales):
                how = Parameters(settings.rationale_tokens, 1.0, settings.seed + sample)
                request = make_request(model.identity, asked_why(case.text), how, sample)
                answer = await gateway.ask("writer", model, request)
                found.append(Rationale(answer.text.strip(), answer.finish != "length"))
            return found

        watcher.phase("writing rationales", len(cases))
        return Writing(cases, model.name, await all_together(cases, ask, gateway.concurrency(model), watcher.advance))

    return settings.buy(buy, watcher)


def draw(
    network: CausalNetwork,
    cases: Sequence[RationaleCase],
    written: Sequence[Sequence[Rationale]] | None,
    settings: TrainOptions,
    file: Path,
    watcher: Watcher,
) -> tuple[list[list[Drawn]], float]:
    """Draw rationales for every case and read the score after each. Return them, and the processor seconds of all.

    The network writes the rationales, unless ``written`` has those of another model. It answers yes or no after each.
    The ``file`` has one JSON object a case; cases in it are not drawn again. Raises InputError if the file is damaged,
    AskanceError if it cannot be written."""
    found, seconds = _read_drawn(file, cases)
    watcher.phase("drawing rationales", len(cases))
    try:
        if file.exists():
            os.truncate(file, sum(len(line) for line, _ in found))  # removes an incomplete last line
        with file.open("a", encoding="ascii", newline="\n") as stream:
            drawn = [each for _, each in found]
            for place, case in enumerate(cases[len(drawn) :], len(drawn)):
                began = process_time()
                rationales = _drawn(network, case, None if written is None else written[place], settings)
                took = process_time() - began
                stream.write(_line(case, rationales, took))
                stream.flush()
                drawn.append(rationales)
                seconds += took
                watcher.advance(place + 1, len(cases))
    except OSError as error:
        raise AskanceError(
            f"{file}: cannot be written ({error.strerror}). Make room, and run the same command again: it goes on "
            "where it was."
        ) from None
    return drawn, seconds


def _drawn(
    network: CausalNetwork, case: RationaleCase, written: Sequence[Rationale] | None, settings: TrainOptions
) -> list[Drawn]:
    if written is None:
        seed = zlib.crc32(f"{settings.seed}/rationale/{case.unit}/{case.about}".encode("utf-8", "surrogatepass"))
        written = network.sample(asked_why(case.text), settings.rationale_tokens, settings.rationales, seed)
    usable = list(dict.fromkeys(each.text for each in written if each.is_whole and each.text))
    read = [after_rationale(case.text, each) for each in usable]
    ends = dict(zip(usable, expected_scores(network.levels(read).tolist()), strict=True)) if read else {}
    return [Drawn(each.text, ends.get(each.text) if each.is_whole else None) for each in written]


def _line(case: RationaleCase, drawn: Sequence[Drawn], seconds: float) -> str:
    row = {
        "example": case.unit,
        "about": case.about,
        "question": case.text.asked,
        "wanted": "yes" if case.wanted else "no",
        "rationales": [{"text": each.text, "p_yes": each.p_yes} for each in drawn],
        "cpu_seconds": seconds,
    }
    return json.dumps(row, ensure_ascii=True) + "\n"


def _read_drawn(file: Path, cases: Sequence[RationaleCase]) -> tuple[list[tuple[str, list[Drawn]]], float]:
    """Read the file's complete lines with their rationales, and the total seconds; ignore an incomplete last line."""
    if not file.is_file():
        return [], 0.0
    found, seconds = [], 0.0
    lines = file.read_bytes().decode("ascii", "replace").splitlines(keepends=True)
    for line, case in zip(lines, cases, strict=False):
        if not line.endswith("\n"):
            break
        try:
            row = json.loads(line)
            if (row["example"], row["about"]) != (case.unit, case.about):
                raise ValueError
            found.append((line, [Drawn(each["text"], each["p_yes"]) for each in row["rationales"]]))
            seconds += float(row["cpu_seconds"])
        except (ValueError, KeyError, TypeError):
            raise InputError(
                f"{file}, line {len(found) + 1}: damaged, or of another training. Delete the file to draw the "
                "rationales anew."
            ) from None
    return found, seconds


def draw_pairs(
    network: CausalNetwork, writing: Writing, settings: TrainOptions, file: Path, watcher: Watcher
) -> tuple[dict[str, Any], list[RationalePair]]:
    """:func:`draw` rationales. Return an account for ``train.json`` (with a ``reason`` if no pairs result) and the
    pairs."""
    drawn, seconds = draw(network, writing.cases, writing.written, settings, file, watcher)
    harmonized, account = settings.rationales_from == "harmonized", {}
    if writing.reviser is None:
        pairs = [pair for case, mine in zip(writing.cases, drawn, strict=True) for pair in pairs_of(case, mine)]
    else:
        drafts = drafts_of(writing.cases, drawn, 2 if harmonized else 1)
        revised = buy_revisions(drafts, writing.reviser, settings, watcher)
        began = process_time()
        pairs = revised_pairs(network, drafts, revised)
        seconds += process_time() - began
        account = {"revised_by": writing.revised_by, "revised": sum(len(each) for each in revised if each is not None)}
    ends = Counter(_ends_of_sides(writing.cases, drawn) if harmonized else _ends(writing.cases, drawn))
    found = {
        "from": writing.writer or "scorer",
        "strategy": settings.rationales_from,
        **account,
        "answers_with": settings.answer_with,
        "cases": len(writing.cases),
        "drawn": ends.total(),
        **{name: ends[name] for name in ("unusable", "right", "wrong")},
        "pairs": len(pairs),
        "cases_with_pairs": len({pair.text for pair in pairs}),
        "cpu_seconds": seconds,
        "kept": "before",
        "dpo": None,
    }
    return found | ({} if pairs else {"reason": "; ".join(_why_no_pair(found, settings))}), pairs


def _ends(cases: Sequence[RationaleCase], drawn: Sequence[Sequence[Drawn]]) -> Iterator[str]:
    """Yield for each rationale ``right``, ``wrong`` or ``unusable``, by the score after it."""
    for case, mine in zip(cases, drawn, strict=True):
        for each in mine:
            yield "unusable" if each.p_yes is None else "right" if case.is_right(each.p_yes) else "wrong"


def _ends_of_sides(cases: Sequence[RationaleCase], drawn: Sequence[Sequence[Drawn]]) -> Iterator[str]:
    """Yield for each rationale ``right``, ``wrong`` or ``unusable``: whether it and the one drawn with it on the other
    output put the two outputs in the right order."""
    for place in range(0, len(cases), 2):
        for first, second in zip(drawn[place], drawn[place + 1], strict=True):
            if first.p_yes is None or second.p_yes is None:
                end = "unusable"
            else:
                end = "right" if (first.p_yes > second.p_yes) is cases[place].wanted else "wrong"
            yield from (end, end)


def prefer(
    network: CausalNetwork,
    pairs: Sequence[RationalePair],
    mixture: Mixture,
    groups: Mapping[str, str],
    settings: TrainOptions,
    folder: Path,
    fingerprint: str,
    watcher: Watcher,
) -> LossCurve:
    """Train on pairs by DPO with a :class:`~.trainer.Trainer`. The network keeps the weights that are best on
    validation, which may be those from before DPO."""
    watcher.phase("reading rationales")
    objective = RationaleObjective(network, pairs, mixture.validation, settings)
    return Trainer(objective, groups, settings, folder, fingerprint, rate_share=RATE_SHARE).run(watcher)


def _why_no_pair(found: Mapping[str, Any], settings: TrainOptions) -> Iterator[str]:
    if found["unusable"] == found["drawn"]:
        yield (
            f"each of the {found['drawn']} rationales is empty or was cut off after {settings.rationale_tokens} tokens "
            "(--rationale-tokens); give judges' explanations or comments to learn from, or another base"
        )
    elif "revised_by" in found:
        yield f"none of the {found['revised']} revisions by {found['revised_by']} scored better than what it was"
    elif not found["wrong"]:
        yield "every rationale that can be used ended in the right score"
    elif not found["right"]:
        yield "no rationale ended in the right score"
    else:
        yield (
            "no question on an output has a right and a wrong one, so what is said hangs little on the rationale; draw "
            "more of them (--rationales), or train for more --epochs"
        )
