"""``askance lessons``: list the lessons of a memory or a run, search them by meaning, and remove wrong ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from ..memory.embedders import DEFAULT_EMBEDDER, embedder
from ..memory.memory_contents import (
    Entry,
    InRun,
    LessonInRun,
    MemoryContents,
    QuestionInRun,
    RememberedLesson,
    RemovedEntry,
)
from ..memory.memory_directory import contents_of_run, load_memory
from ..memory.run_directory import RunDirectory
from ..optimizer.run_result import quoted
from ..prompts.errors import InputError, as_typed
from ..prompts.formatting import count
from .output import echo_json
from .terminal import echo

NEAREST = 10


@click.command(name="lessons")
@click.argument("directory")
@click.option("--search", "text", metavar="TEXT", help="Only what is near in meaning, the nearest first.")
@click.option("-k", "most", type=click.IntRange(1), help=f"So many with --search. [default: {NEAREST}]")
@click.option("--embedder", "name", help=f"Embedding model of --search. [default: {DEFAULT_EMBEDDER}]")
@click.option("--remove", metavar="ID", help="Remove a lesson or question, with all its words; no run learns it again.")
@click.option("--forget-removal", metavar="ID", help="Let runs learn again what was removed.")
@click.option("--json", "as_json", is_flag=True, help="Machine-readable result on standard output.")
def command(
    directory: str,
    text: str | None,
    most: int | None,
    name: str | None,
    remove: str | None,
    forget_removal: str | None,
    as_json: bool,
) -> None:
    """List the lessons and questions in DIRECTORY, a memory (--memory of migrate, align and tune) or a run.

    What was removed is never tried or learned again by a run with this memory. Prompts and judges that runs have
    written stay as they are; those concerned are named.
    """
    if (text, remove, forget_removal).count(None) < 2:
        raise click.UsageError("--search, --remove and --forget-removal do not go together.")
    if text is None and (most, name) != (None, None):
        raise click.UsageError("-k and --embedder belong to --search.")
    if text is not None and not text.strip():
        raise click.UsageError("--search has no text; say what to look for.")
    is_run = (Path(directory) / "config.yaml").is_file()
    if remove is not None or forget_removal is not None:
        if is_run:
            raise InputError(f"{directory}: a run is a record and is not changed. Name the memory that it added to.")
        if remove is not None:
            _tell_removed(directory, load_memory(directory).remove(remove), as_json=as_json)
            return
        assert forget_removal is not None, "one of the two is given"
        load_memory(directory).forget_removal(forget_removal)
        said = f"{forget_removal} may be learned again."
        echo_json({"forgotten_removal": forget_removal}) if as_json else echo(said)
        return
    held = contents_of_run(RunDirectory(directory)) if is_run else load_memory(directory).read()
    if text is not None:
        found = held.search(text, embedder(name or DEFAULT_EMBEDDER))[: most or NEAREST]
        _tell_found(text, found, as_json=as_json)
    elif as_json:
        lists = {kind: list(map(_row, getattr(held, kind))) for kind in ("lessons", "questions", "removed")}
        echo_json({"directory": directory} | lists)
    else:
        for line in _listed(held):
            echo(line)


def _tell_found(text: str, found: Sequence[tuple[Entry, float]], *, as_json: bool) -> None:
    if as_json:
        echo_json({"search": text, "found": [{"cosine": cosine} | _row(entry) for entry, cosine in found]})
        return
    for entry, cosine in found:
        echo(f"{cosine:+.2f}  {_said(entry)}")
        echo(f"       {_fate(entry)}")
    if not found:
        echo("There is nothing in it yet.")


def _tell_removed(directory: str, gone: Entry, *, as_json: bool) -> None:
    """Print what was removed, what went with it, and which runs keep text that they wrote because of it."""
    wordings = [*gone.wordings]
    notes = sum(len(run.evidence) for run in gone.runs if isinstance(run, LessonInRun))
    kept_texts = [row for row in map(_stays, gone.runs) if row]
    if as_json:
        details = {"wordings": wordings, "runs": len(gone.runs), "disagreements": notes}
        echo_json({"removed": _row(gone), "went_with_it": details, "unchanged": kept_texts})
        return
    echo(f"Removed {_said(gone)}")
    removed_parts = [
        *([count(len(wordings), "earlier wording")] if wordings else []),
        f"what {count(len(gone.runs), 'run')} knew",
    ]
    seen = f", {count(notes, 'disagreement')} in all" if notes else ""
    echo(f"With it went {' and '.join(removed_parts)} of it{seen}.")
    for row in kept_texts:
        echo(f"Unchanged: {row['run']} ({row['made_with']}): {row['what']}")
    if kept_texts:
        echo("The files of a run stay as they are: correct them by hand, or run it again with the memory.")
    echo(f"No run learns it again, until you say: askance lessons {as_typed(directory)} --forget-removal {gone.id}")


def _stays(run: InRun) -> dict[str, Any] | None:
    """Return the text that a run wrote because of an entry; None if there is none."""
    source = {"run": run.run, "fingerprint": run.fingerprint, "made_with": _made_with(run)}
    if isinstance(run, LessonInRun):
        edits = [{"old": each.old, "new": each.new} for each in run.edits]
        added = "; ".join(
            each.new.replace(each.old, "").strip() or each.new or f"no longer {each.old.strip()}" for each in run.edits
        )
        return source | {"what": f"its prompt says: {added}", "edits": edits} if edits else None
    joined = getattr(run, "joined", False)
    return source | {"what": f"its judge asks it, as '{run.name}'", "question": run.name} if joined else None


def _listed(held: MemoryContents) -> Iterator[str]:
    parts = (("lesson", held.lessons), ("question", held.questions))
    for kind, entries in parts:
        if entries:
            yield f"{count(len(entries), kind)}:"
        for entry in entries:
            yield f"  {_said(entry)}"
            yield f"      {_fate(entry)}"
            yield from (f"      {line}" for line in map(_from, entry.runs))
    if not held.entries:
        yield "There is nothing in it yet."
    for gone in held.removed:
        yield f"Removed, and not learned again: [{gone.id}] {gone.texts[0]}"


def _said(entry: Entry) -> str:
    return f"[{entry.id}] {entry.text if isinstance(entry, RememberedLesson) else entry.criterion}"


def _fate(entry: Entry) -> str:
    """Say what became of an entry, over all runs."""
    if isinstance(entry, RememberedLesson):
        scope = "for generators" if entry.about == "generator" else f"for judges, {entry.direction}"
        fates = Counter(
            "accepted" if run.status == "applied" else run.status if run.was_tried else "not tried"
            for run in entry.runs
        )
    else:
        scope = f"on {entry.dimension}"
        fates = Counter("joined the judge" if run.joined else "did not join" for run in entry.runs)
    return f"{scope}; " + ", ".join(f"{fate} in {count(many, 'run')}" for fate, many in fates.items())


def _from(run: InRun) -> str:
    """Say where an entry comes from in one run."""
    when = f", iteration {run.iteration}" if run.iteration else ""
    origin = f"{run.run} ({_made_with(run)}): {run.name}{when}"
    if isinstance(run, LessonInRun):
        on = f" on {', '.join(run.asked)}" if run.asked else ""
        seen = f", {count(len(run.evidence), 'disagreement')}{on}" if run.evidence else ""
        return f"{origin}{seen}; {run.reason or run.status}"
    return origin + _question_from(run)  # type: ignore[arg-type]


def _question_from(run: QuestionInRun) -> str:
    said = "".join(f", {quoted(text)}" for text in run.comments[:1])
    last = run.worth.last
    worth = f"; worth {last[1].value:+.3f} on {last[0]}, n = {last[1].n}" if last and last[1].value is not None else ""
    return f", from {run.origin}{said}{worth}{'' if run.joined else f'; {run.reason}'}"


def _made_with(run: InRun) -> str:
    return f"{run.command}, {' → '.join(run.models.values())}"


def _row(entry: Entry | RemovedEntry) -> dict[str, Any]:
    return entry.model_dump(mode="json", by_alias=True)
