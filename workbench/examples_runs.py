"""Answers to the page Examples: the examples of the workbench's runs with verdicts, labels and origins."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np
from aiohttp import web

from ..labelling.label_options import LabelOptions
from ..labelling.label_session import Labeller, LabelSession, Said, open_session, outputs_of_run
from ..labelling.local_server import PageMessage, add_act, add_query, add_read
from ..memory.journal import read_events
from ..memory.provenance import build_graph
from ..memory.run_directory import JUDGE_FILE, LABELLED_FILE, RunDirectory
from ..memory.why import why_question
from ..prompts.errors import AskanceError, InputError
from ..prompts.examples import Example, human_dimensions, load_examples
from ..report.run_lessons import question_lines
from .examples_table import AskedExamples, ExamplesTable, JudgeColumns, judge_columns
from .judge_bench import JudgeBench, Split, load_start
from .saved_judges import ValidationLooks, judge_files

logger = logging.getLogger(__name__)

SAVE_EVERY = 0.5
"""Seconds between two checks whether labelled data must be written. The labels themselves are written at once."""
MOST_TABLES = 4
"""Most runs whose examples are kept in memory, and whose label files this process holds."""
RUN_LABELS = "examples-labelled.jsonl"
"""File of the examples of a judge's run, with the labels and comments that people gave on the page."""
START = "start"
"""Stands for the judge that a run began with, in place of a file name."""
OPENED = ("every verdict on validation was opened, one by one",)


class OpenedLook(PageMessage):
    """A message of the page: open a judge's verdicts on validation."""

    run: str
    file: str


class RunExamples:
    """Tables of the runs that were used last. Methods may be called from any thread."""

    def __init__(self, by: str, folder: Callable[[str], Path], bench: Callable[[str, str], JudgeBench]) -> None:
        """``by`` is the person's name. ``folder`` returns a run's directory by the run's name; ``bench`` returns the
        bench of the judge in a file of that directory, by the names of run and file."""
        self._by, self._folder, self._bench, self._lock = by, folder, bench, RLock()
        self._tables: dict[Path, ExamplesTable] = {}
        self._columns: dict[tuple[Path, str, str], tuple[JudgeBench, JudgeColumns]] = {}

    def table(self, run: str) -> ExamplesTable:
        """Return the examples of a run. Raises InputError if there is no such run, or one of its files is damaged."""
        folder = self._folder(run)
        with self._lock:
            table = self._tables.pop(folder, None) or self._open(run, folder)
            self._tables[folder] = table  # at the end of the dict, so that it is dropped last
            while len(self._tables) > MOST_TABLES:
                self._let_go(next(iter(self._tables)))
        return table

    def _let_go(self, folder: Path) -> None:
        session = self._tables.pop(folder).session
        if session is not None:
            write_labelled([session])
            session.file.close()
        self._columns = {key: each for key, each in self._columns.items() if key[0] != folder}

    def _open(self, run: str, folder: Path) -> ExamplesTable:
        directory = RunDirectory(folder)
        if directory.read_config()["config"].get("command") == "tune":  # people say what they think of its outputs
            written, settings = outputs_of_run(folder), LabelOptions.model_validate({"rater": self._by})
            return _table(written, {}, lambda: open_session(written, folder / LABELLED_FILE, settings, None, None))
        examples = [each for each in directory.read_inputs()[0] if each.output is not None]
        bench = self._bench(run, JUDGE_FILE)
        checklist = bench.judge.checklist

        def session() -> LabelSession:
            opinions = judge_columns(bench, examples, shown_splits(bench)).opinions
            known = None if np.isnan(opinions.judges[0].scores).all() else opinions
            rated = human_dimensions(examples, checklist)
            given = {"rater": self._by, "dimension": rated[0] if rated else "overall"}
            scale = {"human_scale": bench.judge.settings.get("human_scale")}
            settings = LabelOptions.model_validate(given | scale)
            return open_session(examples, folder / RUN_LABELS, settings, checklist, known)

        return _table(examples, splits_of(folder), session)

    def listed(self, asked: AskedExamples) -> dict[str, Any]:
        """Return the rows that pass the filters, and the rest of the page: judges, questions, and who labels."""
        table, (judge, before) = self.table(asked.run), self._judges(asked)
        session = table.session
        page = table.listed(asked, judge, before) | {
            "alone": False,
            "labelling": None if session is None else session.about(session.seat(asked.rater)),
            "why_shut": table.why_shut,
            "file": None,
        }
        if judge is None:
            return page
        questions = [{"id": each.id, "text": each.text} for each in judge.judge.checklist.questions]
        folder = self._folder(asked.run)
        return page | {
            "file": asked.file or JUDGE_FILE,
            "files": judge_files(folder),
            "judge": judge.judge.asked,
            "asks": questions,
            "opened": "validation" in judge.shown,
        }

    def one(self, asked: AskedExamples) -> dict[str, Any]:
        """Return one example."""
        return self.table(asked.run).one(asked, *self._judges(asked))

    def sessions(self) -> list[LabelSession]:
        """Return all sessions in which people label now."""
        with self._lock:
            return [each.session for each in self._tables.values() if each.session is not None]

    def open_validation(self, opened: OpenedLook) -> dict[str, Any]:
        """Count a look at a judge's verdicts on validation, which are shown from then on. Raises AskanceError if the
        look cannot be written: then the verdicts stay shut."""
        bench = self._bench(opened.run, opened.file)
        return {"looks": ValidationLooks(_run_of(bench)).add(bench.judge.hash, OPENED)}

    def why(self, run: str, question: str) -> dict[str, Any]:
        """Return the origin of a question as paragraphs with indents, like ``askance show --why``, without its worth on
        test."""
        folder = self._folder(run)
        graph = build_graph(folder)
        if f"question:{question}" not in graph:
            raise InputError(f"The run '{run}' does not say where the question '{question}' comes from.")
        story = why_question(graph, question)
        story = replace(story, worth={split: gain for split, gain in story.worth.items() if split != "test"})
        examples = dict.fromkeys(name for each in story.comments for name in each.examples)
        return {"lines": [[*each] for each in question_lines(story)], "examples": [*examples]}

    def _judges(self, asked: AskedExamples) -> tuple[JudgeColumns | None, JudgeColumns | None]:
        """Return the judge whose verdicts are shown, and the earlier judge that it is compared with."""
        folder = self._folder(asked.run)
        if not (folder / JUDGE_FILE).is_file():
            return None, None
        run, _, file = asked.since.rpartition("/")
        before = self._columns_of(asked.run, run, file) if asked.since else None
        return self._columns_of(asked.run, asked.run, asked.file or JUDGE_FILE), before

    def _columns_of(self, run: str, of_run: str, file: str) -> JudgeColumns:
        """Return the columns of a judge for the examples of a run. The judge may belong to another run."""
        key = self._folder(run), of_run, file
        kept = self._columns.get(key)
        if file == START:  # what a run began with does not change
            bench = load_start(self._folder(of_run)) if kept is None else kept[0]
        else:
            bench = self._bench(of_run, file)
        shown = shown_splits(bench)
        with self._lock:
            if kept is None or kept[0] is not bench or kept[1].shown != shown:
                kept = self._columns[key] = bench, judge_columns(bench, self.table(run).examples, shown)
        return kept[1]


def shown_splits(bench: JudgeBench) -> frozenset[Split]:
    """Return the splits whose single verdicts may be seen: development, and validation once a look was counted."""
    opened = bench.judge.hash in ValidationLooks(_run_of(bench)).judges()
    return frozenset(("development", "validation") if opened else ("development",))


def splits_of(run: Path) -> dict[str, str]:
    """Read the split of each example from a run's journal, by example id."""
    events = [each for each in read_events(run / "journal.jsonl") if each["event"] == "split"]
    names = ("development", "validation", "test")
    return {each: name for name in names for each in (events[-1].get(name) or () if events else ())}


def labelled_examples(run: Path) -> dict[str, Example]:
    """Read the examples of a run with people's labels and comments from the page, by id; empty if there are none."""
    file = run / RUN_LABELS
    return {each.id: each for each in load_examples(file, remarks=False)} if file.is_file() else {}


def _run_of(bench: JudgeBench) -> Path:
    if bench.run is None:
        raise InputError("This judge has no run.")
    return bench.run


def _table(examples: Sequence[Example], splits: dict[str, str], sit_down: Callable[[], LabelSession]) -> ExamplesTable:
    """Make the table. It also works without labelling, if another process labels there or the disk is read-only."""
    try:
        return ExamplesTable(examples, splits, sit_down())
    except AskanceError as error:
        return ExamplesTable(examples, splits, why_shut=str(error))


class FileExamples:
    """One file that one rater labels, without a judge."""

    def __init__(self, session: LabelSession) -> None:
        session.alone = True
        self._session = session
        self._table = ExamplesTable(session.desk.asked, session=session, blind=True)

    def table(self, run: str) -> ExamplesTable:
        """Return the table; the name of a run does not matter."""
        return self._table

    def listed(self, asked: AskedExamples) -> dict[str, Any]:
        """Return the rows that pass the filters, and who labels."""
        desk = self._session.seat(asked.rater)
        return self._table.listed(asked, None, None) | {"alone": True, "labelling": self._session.about(desk)}

    def one(self, asked: AskedExamples) -> dict[str, Any]:
        """Return one example."""
        return self._table.one(asked, None, None)

    def sessions(self) -> Iterable[LabelSession]:
        """Return the only session."""
        return (self._session,)


ExamplesRoom = RunExamples | FileExamples


def add_examples(app: web.Application, room: ExamplesRoom) -> None:
    """Have an application answer the page's requests. It writes labelled data while it runs, and at its end."""
    add_query(app, "examples", AskedExamples, room.listed)
    add_query(app, "example", AskedExamples, room.one)
    add_query(app, "state", Labeller, partial(_say, room, "state"))
    add_query(app, "progress", Labeller, lambda asked: _session(room, asked.run).figures())
    for action, record in (("label", Said), ("draft", Said), ("skip", Said), ("undo", Labeller)):
        add_act(app, action, record, partial(_say, room, action))
    app.cleanup_ctx.append(partial(_keeping, room))


def _say(room: ExamplesRoom, action: str, said: Labeller) -> dict[str, Any]:
    return _session(room, said.run).say(action, said)


def _session(room: ExamplesRoom, run: str) -> LabelSession:
    table = room.table(run)
    if table.session is None:
        raise InputError(f"Nothing can be labelled here: {table.why_shut}")
    return table.session


async def _keeping(room: ExamplesRoom, app: web.Application) -> AsyncIterator[None]:
    """Write changed labelled data every :data:`SAVE_EVERY` seconds, and close the label files at the end."""

    async def keep() -> None:
        while True:
            await asyncio.sleep(SAVE_EVERY)
            await asyncio.to_thread(write_labelled, room.sessions())

    keeping = asyncio.create_task(keep())
    yield
    keeping.cancel()
    with suppress(asyncio.CancelledError):
        await keeping
    write_labelled(room.sessions())
    for each in room.sessions():
        each.file.close()


def write_labelled(sessions: Iterable[LabelSession]) -> None:
    """Write labelled data that changed. The page and the terminal show the problem if a file cannot be written."""
    for session in [*sessions]:
        before = session.problem
        try:
            session.write()
        except AskanceError as error:
            if session.problem != before:
                logger.error("%s", error)


def add_runs(app: web.Application, room: RunExamples) -> None:
    """Have an application answer the requests that are only for runs."""
    add_read(app, "why", room.why, ("run", "question"))
    add_act(app, "look", OpenedLook, room.open_validation)
