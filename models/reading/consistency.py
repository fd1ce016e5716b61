"""Consistency of a reader: the same prompt gets the same answer, whatever is read beside it, before it, or kept.

The store of answers and every paired test rely on this, and the code alone does not ensure it. A processor's matrix
kernels round a row of a product differently with another number of rows. This depends on the processor, the precision
and the model's widths. So it is tried: before a model is first used on a processor, a few fixed prompts are read alone,
side by side and in several orders. The fastest settings under which every bit agrees are chosen. The choice is kept
beside the model, with the settings that were tried.
"""

from __future__ import annotations

import json
import logging
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b
from importlib import metadata
from itertools import groupby
from pathlib import Path
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from ...prompts.errors import AskanceError, InputError
from ...prompts.prompt import Framing
from ...prompts.text_files import write_whole
from ..embedded.servers import available_threads
from .reading_model import TOGETHER, Reader, SideBySideReader, as_long, blocks

logger = logging.getLogger(__name__)

CONSISTENCY = "consistency.json"  # file in a converted model's folder that holds the choice for each processor
PROCESSOR = Path("/proc/cpuinfo")  # Linux's description of the processor
ALONE = 0  # value of ``rows`` for reading prompts one after the other: a prompt's shape then depends on itself alone
ROWS = (1, 2, TOGETHER, ALONE)
"""Values of ``rows`` to try, fastest first. Kernels work in tiles of 8 to 32 rows and round the rest differently."""
TEXTS = (
    "The new bus timetable starts on Monday. Route 12 will run every ten minutes until seven in the evening, and the "
    "night line stops at the hospital again. Tickets cost what they cost before.",
    "Thanks for your order! Your parcel left our warehouse this morning and should be with you by Thursday. If nobody "
    "is in, the driver leaves it with a neighbour, says Ann.",
)
HEAD = "Answer the question about the text with yes or no. Look at nothing but the text.\n\n" * 3
LENGTHS = (0, 2, 5, 8, 10)  # sentences before a question: the widths give each remainder that a tile may leave
LIKELIEST = 20  # tokens over which a difference is reported, as many as a verdict is computed from
WORDS = ("day", "bus", "man", "cat", "car", "dog", "boy", "hat")
"""Words, each with its own question, so that rows side by side differ."""


@dataclass(frozen=True)
class Tried:
    """Settings that were tried, and the outcome."""

    precision: str  # name of the precision, e.g. ``bfloat16``.
    rows: int  # prompts side by side are filled up to a multiple of this number; :data:`ALONE` for never side by side
    seconds: float  # seconds for a verdict, with as many prompts as possible side by side
    difference: float  # largest difference of a likely token's log-probability for the same prompt; 0: all bits agree

    @property
    def settings(self) -> str:
        """Precision and rows in words."""
        if self.rows == 1:
            return self.precision
        if self.rows == ALONE:
            return f"{self.precision}, one prompt at a time"
        return f"{self.precision}, prompts side by side in multiples of {self.rows}"


@dataclass(frozen=True)
class ReaderSettings:
    """The settings that a reader uses on this processor, and the faster settings that were not consistent."""

    chosen: Tried
    rejected: tuple[Tried, ...] = ()

    def __str__(self) -> str:
        """Sentences without the last full stop: settings, seconds for a verdict, and how faster settings failed."""
        sentence = f"reads in {self.chosen.settings}: {self.chosen.seconds:.2g} s a verdict on this processor"
        if not self.rejected:
            return sentence
        first = self.rejected[0]
        return (
            f"{sentence}. {first.settings[:1].upper()}{first.settings[1:]} ({first.seconds:.2g} s) changes a "
            f"log-probability by up to {first.difference:.2g} with what is asked beside it"
        )


def processor() -> str:
    """Return this processor's name with a hash of its instructions and threads, on which the kernels depend."""
    lines = PROCESSOR.read_text(encoding="utf-8").split("\n\n")[0].splitlines() if PROCESSOR.exists() else []
    fields = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    name = fields.get("model name") or platform.processor() or platform.machine()
    kind = [fields.get(each, "") for each in ("vendor_id", "cpu family", "model", "flags", "Features")]
    kind += [platform.machine(), str(available_threads())]
    return f"{name} {blake2b(json.dumps(kind).encode(), digest_size=4).hexdigest()}"


def _here(library: str) -> str:
    """Key of a choice: the processor and the library's version, because another version may round differently."""
    return f"{processor()} {library} {metadata.version(library)}"


def known_choice(memo: Path, library: str) -> ReaderSettings | None:
    """Read the choice in ``memo`` for this processor and version of the library; None if no choice was made."""
    try:
        kept = json.loads(memo.read_text(encoding="utf-8"))[_here(library)]
        chosen, *rejected = (Tried(**each) for each in (kept["chosen"], *kept["rejected"]))
    except (OSError, ValueError, KeyError, TypeError, metadata.PackageNotFoundError):
        return None  # never written, cut short, or of another processor
    return ReaderSettings(chosen, tuple(rejected))


def consistent_reader(name: str, makers: Mapping[str, Callable[[], Reader]], memo: Path, library: str) -> Reader:
    """Make a reader with the first of ``makers`` (by precision, fastest first) that gives the same prompt the same
    answer on this processor. ``memo`` keeps the choice per version of ``library``. Raises InputError if none does."""
    known = known_choice(memo, library)
    if known is not None and known.chosen.precision in makers:
        return _with_rows(makers[known.chosen.precision](), known.chosen.rows)
    logger.info("%s: trying which precision gives the same answer every time on this processor, once", name)
    rejected: list[Tried] = []
    for precision, make in makers.items():
        reader = make()
        prompts = fixed_prompts(reader)
        for rows in ROWS if isinstance(reader, SideBySideReader) else (ALONE,):
            seconds, difference = _difference(_with_rows(reader, rows), prompts)
            tried = Tried(precision, rows, round(seconds, 4), difference)
            if not difference:
                choice = ReaderSettings(tried, tuple(rejected))
                _keep(memo, library, choice)
                logger.info("%s %s", name, choice)
                return reader
            rejected.append(tried)
    raise InputError(
        f"{name}: on this processor the same prompt does not get the same answer every time (log-probabilities differ "
        f"by {rejected[-1].difference:.2g}), which stored answers rely on. Write local/ in place of "
        f"{name.partition('/')[0]}/."
    )


def _with_rows(reader: Reader, rows: int) -> Reader:
    """Set a reader's ``rows``, and return the reader. A reader of single prompts stays unchanged."""
    if isinstance(reader, SideBySideReader):
        reader.rows = rows
    return reader


Group = tuple[list[list[int]], list[int]]  # token ids of prompts to read side by side, and the ends of their blocks


def fixed_prompts(reader: Reader) -> list[Group]:
    """Return the fixed prompts in groups that can be read side by side. The first text has eight questions of each of
    five lengths. The second text has only the shortest questions; they show whether blocks of another text matter."""
    groups: list[Group] = []
    for text, lengths in zip(TEXTS, (LENGTHS, LENGTHS[:1]), strict=True):
        before = f"{HEAD}Text: {text}\n\n"
        framing = Framing(None, before, "", (len(HEAD),))
        asked = [f"{'Read it once more. ' * length}Is there a {word} in it?" for length in lengths for word in WORDS]
        read = [reader.tokens([("user", before + question)], framing) for question in asked]
        several = [(tokens, blocks(ends)) for tokens, ends in read]
        for _, alike in groupby(several, key=lambda prompt: (prompt[1], as_long(len(prompt[0]) - prompt[1][-1]))):
            group = list(alike)
            groups.append(([tokens for tokens, _ in group], group[0][1]))
    return groups


def _difference(reader: Reader, groups: Sequence[Group]) -> tuple[float, float]:
    """Return the seconds for a verdict, and the largest difference of a log-probability between several ways to read
    the same prompts. Stops at the first group that differs, because this rules out the settings."""
    reader.forget()
    readings: list[list[NDArray[np.float32]]] = []
    seconds, read = 0.0, 0
    for prompts, ends in groups:
        began = perf_counter()
        readings.append(_read(reader, prompts, ends))
        seconds += perf_counter() - began
        read += len(prompts)
        order = list(range(len(prompts)))[::-1]
        # one, three and five prompts side by side, each in another row than before
        for places in (order[-1:], order[-3:], order[:5]) if isinstance(reader, SideBySideReader) else ():
            again = _read(reader, [prompts[place] for place in places], ends)
            if (worst := _worst([readings[-1][place] for place in places], again)) > 0:
                return seconds / read, worst
    reader.forget()  # now the blocks of the last text are read before the blocks of the first text
    for (prompts, ends), before in reversed(list(zip(groups, readings, strict=True))):
        if (worst := _worst(before[-1:], _read(reader, prompts[-1:], ends))) > 0:
            return seconds / read, worst
    return seconds / read, 0.0


def _read(reader: Reader, prompts: Sequence[Sequence[int]], ends: Sequence[int]) -> list[NDArray[np.float32]]:
    if isinstance(reader, SideBySideReader):
        return reader.next_tokens(prompts, ends)
    return [reader.next_token(each, ends) for each in prompts]


def _worst(one: Sequence[NDArray[np.float32]], other: Sequence[NDArray[np.float32]]) -> float:
    """Return the largest difference between two readings at a likely token; infinite if a value is not finite."""
    worst = 0.0
    for a, b in zip(one, other, strict=True):
        if not np.array_equal(a, b):
            likeliest = np.argsort(-a)[:LIKELIEST]
            differs = float(np.abs(a - b)[likeliest].max())
            worst = max(worst, differs or float(np.abs(a - b).max()))
            worst = worst if np.isfinite(worst) and worst > 0 else float("inf")
    return worst


def _keep(memo: Path, library: str, choice: ReaderSettings) -> None:
    """Keep the choice beside those for other processors. If it cannot be written, the next command tries again."""
    try:
        kept = json.loads(memo.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        kept = {}
    kept = {**(kept if isinstance(kept, dict) else {}), _here(library): asdict(choice)}
    try:
        write_whole(memo, json.dumps(kept, indent=1))
    except AskanceError as error:
        logger.info("%s", error)
