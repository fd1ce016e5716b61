"""Rationales: drawn from a scorer or a teacher, and those that score better preferred by DPO (LMUnit §3.4).

Pairs are of right and wrong ones (Teacher, where the teacher writes them), or of what the scorer wrote and what a
teacher made of it (Refined and Harmonized); see :mod:`.rationale_pairs`.
"""

from __future__ import annotations

import json
import os
import zlib
from collections import Counter
from dataclasses import dataclass
from time import process_time
from typing import TYPE_CHECKING, Any

from ..agents.buying import all_together
from ..models.base import Parameters, make_request
from ..models.event_loops import run_sync
from ..models.session import session
from ..models.trained.scored_text import Rationale, after_rationale, asked_why
from ..models.trained.trained_scorer import expected_scores
from ..prompts.errors import AskanceError, InputError
from .losses import RationaleObjective
from .rationale_pairs import (
    Drawn,
    buy_revisions,
    drafts_of,
    pairs_of,
    preference_cases,
    rationale_cases,
    revised_pairs,
)
from .trainer import Trainer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from ..memory.verdict_store import SharedStore
    from ..models.base import Model
    from ..models.progress import Watcher
    from ..models.trained.causal import CausalNetwork
    from .losses import RationalePair
    from .mixture import Mixture, TrainingItem
    from .options import TrainOptions
    from .rationale_pairs import RationaleCase
    from .trainer import LossCurve

RATIONALES_FILE = "rationales.jsonl"
RATE_SHARE = 0.1
"""Share of the learning rate of the scores: DPO moves weights that can score already."""


@dataclass(frozen=True)
class Writing:
    """The cases about which rationales are drawn, and the rationales that another model wrote about them."""

    cases: Sequence[RationaleCase]
    writer: str | None = None
    """Name of the other model; None where the scorer writes them itself."""
    written: Sequence[Sequence[Rationale]] | None = None
    reviser: str | Model | None = None
    """The other model that revises what the scorer wrote."""

    @property
    def revised_by(self) -> str | None:
        """Name of the reviser."""
        return self.reviser if self.reviser is None or isinstance(self.reviser, str) else self.reviser.name


def rationales_to_draw(
    items: Sequence[TrainingItem], writer: str | Model | None, settings: TrainOptions, watcher: Watcher
) -> Writing:
    """The cases of the training ``items`` about which rationales are drawn; where a ``writer`` writes these, they are
    bought. Raises what :func:`rationale_cases`, :func:`preference_cases` and :func:`buy_rationales` raise."""
    way = settings.rationales_from
    if way == "writer" and writer is not None:
        return buy_rationales(rationale_cases(items), writer, settings, watcher)
    cases = preference_cases(items) if way == "harmonized" else rationale_cases(items)
    return Writing(cases, reviser=None if way == "scorer" else writer)


def buy_rationales(
    cases: Sequence[RationaleCase], writer: str | Model, settings: TrainOptions, watcher: Watcher
) -> Writing:
    """Have a writer give several reasons for each case; what was bought before is in the store.

    Raises InputError where the writer's name is wrong, BudgetExceededError at a cap, and AskanceError where the
    endpoint is down, or did not answer all calls.
    """

    async def buy(store: SharedStore) -> Writing:
        async with session(settings, store, watcher.say) as (models, gateway):
            watcher.watch(gateway.budget)
            by = models.get(writer)

            async def ask(case: RationaleCase) -> list[Rationale]:
                found = []
                for sample in range(settings.rationales):
                    how = Parameters(settings.rationale_tokens, 1.0, settings.seed + sample)
                    request = make_request(by.identity, asked_why(case.text), how, sample)
                    answer = await gateway.ask("writer", by, request)
                    found.append(Rationale(answer.text.strip(), answer.finish != "length"))
                return found

            watcher.phase("writing rationales", len(cases))
            return Writing(cases, by.name, await all_together(cases, ask, gateway.concurrency(by), watcher.advance))

    with settings.open_store() as store:
        return run_sync(buy(store))


def draw(
    network: CausalNetwork,
    cases: Sequence[RationaleCase],
    written: Sequence[Sequence[Rationale]] | None,
    settings: TrainOptions,
    file: Path,
    watcher: Watcher,
) -> tuple[list[list[Drawn]], float]:
    """Draw rationales for every case and see in which score each ends; return them, and the processor seconds of all.

    The network writes them, unless ``written`` has another writer's, and says yes or no after each. The ``file`` has
    one JSON object a case: what is in it is not drawn again. Raises InputError where it is damaged, AskanceError where
    it cannot be written.
    """
    found, seconds = _read_drawn(file, cases)
    watcher.phase("drawing rationales", len(cases))
    try:
        if file.exists():
            os.truncate(file, sum(len(line) for line, _ in found))
        with file.open("a", encoding="ascii", newline="\n") as out:
            drawn = [each for _, each in found]
            for place, case in enumerate(cases[len(drawn) :], len(drawn)):
                began = process_time()
                mine = _drawn(network, case, None if written is None else written[place], settings)
                took = process_time() - began
                out.write(_line(case, mine, took))
                out.flush()
                drawn.append(mine)
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
    """The whole lines of the file with their rationales, and their seconds; a last line that was broken off is left."""
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
    """:func:`draw` rationales; return ``rationales`` of ``train.json``, with a ``reason`` where no pair came of them,
    and the pairs."""
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
    """Whether each rationale ended in the right score."""
    for case, mine in zip(cases, drawn, strict=True):
        for each in mine:
            yield "unusable" if each.p_yes is None else "right" if case.is_right(each.p_yes) else "wrong"


def _ends_of_sides(cases: Sequence[RationaleCase], drawn: Sequence[Sequence[Drawn]]) -> Iterator[str]:
    """Whether each rationale, with that on the other side of its preference, put the two outputs in the right order."""
    for place in range(0, len(cases), 2):
        for one, other in zip(drawn[place], drawn[place + 1], strict=True):
            if one.p_yes is None or other.p_yes is None:
                end = "unusable"
            else:
                end = "right" if (one.p_yes > other.p_yes) is cases[place].wanted else "wrong"
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
    """DPO on pairs, as a :class:`~.trainer.Trainer`: the network then has the better weights of before and after."""
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
