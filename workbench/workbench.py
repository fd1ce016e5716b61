"""``ui``: the workbench, pages on runs and their judges, served on this machine only."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Any

from aiohttp import web

from ..evaluation.compare.run_difference import run_difference
from ..evaluation.kept_judge import KeptJudge
from ..evaluation.view import View, columns
from ..labelling.local_server import (
    POLICY,
    PageMessage,
    add_act,
    add_read,
    answered,
    guarded_application,
    new_token,
    page_files,
    serve,
)
from ..memory.certificate_file import is_migration
from ..memory.run_directory import JUDGE_FILE, RunDirectory
from ..models.event_loops import run_sync
from ..prompts.checklist import Question
from ..prompts.errors import AskanceError, InputError, shown_from
from ..prompts.formatting import Figure
from ..report.certificate_data import read_migration
from ..report.certificate_page import render_certificate
from ..report.run_data import read_run
from ..report.run_page import render_report
from .asked_questions import (
    ASKED_FOLDER,
    NO_EXAMPLES,
    AskedQuestion,
    NewWording,
    ask,
    asked_questions,
    asking_job,
    cannot_ask,
    keep_question,
    keep_verdicts,
    worded,
)
from .disagreement_page import DisagreementPage
from .examples_runs import RUN_LABELS, RunExamples, add_examples, add_runs, labelled_examples
from .found_runs import RUN_FILES, FoundRuns, changed_at
from .judge_bench import JudgeBench, Split, load_bench
from .judge_edits import JudgeEdit, edited_judge
from .prompt_page import PromptPage
from .saved_judges import ValidationLooks, acceptance_test, judge_files, save_changed_judge
from .start_form import StartForm, add_start

Edited = tuple[JudgeBench, Path, KeptJudge, tuple[str, ...]]

PAGES = {
    "": "runs.html",
    **{name: f"{name}.html" for name in ("judge", "compare", "examples", "disagreements", "prompts", "start")},
}
MOST_BYTES = 2_000_000
MOST_BENCHES = 4
"""Most judges whose verdicts are kept in memory."""
SHUT = (
    "The test examples stay shut. The run looked at them once, to say what its judge is worth; a judge that is changed "
    "until they agree with it would only look better."
)
BATCHED = (
    "This judge gets its questions together, in one call. Another checklist is another call, which may be answered "
    "otherwise: what you see here takes each answer as it was."
)
LABELLED = "Labels that people gave on the page Examples count here, too."
CROSSED = "Validation has taught this judge, too: its own agreement there is too good. Go by development alone."
_META = re.compile(r'http-equiv="Content-Security-Policy" content="([^"]*)"')


class AskedJudge(PageMessage):
    """A message of the page Judge: the judge and its edit."""

    run: str
    file: str = JUDGE_FILE
    edit: JudgeEdit
    validation: bool = False
    """Whether validation is shown. For a changed judge, that counts as a look."""


class AskedWording(PageMessage):
    """A message of the page: a question for a judge."""

    run: str
    file: str = JUDGE_FILE
    wording: NewWording


class Workbench:
    """Answers requests of the pages. Methods may be called from any thread."""

    def __init__(self, root: Path, by: str) -> None:
        """``by`` is the person's name, for the history of a judge."""
        self.root, self.by = root, by
        self._runs, self._lock = FoundRuns(root), Lock()
        self._benches: dict[tuple[Path, str, bool], tuple[tuple[float, ...], JudgeBench]] = {}

    def runs(self) -> dict[str, Any]:
        """Return the runs under the directory."""
        with self._lock:
            return {"root": str(self.root), "runs": self._runs.rows()}

    def compare(self, before: str, after: str) -> dict[str, Any]:
        """Return the difference of two runs, as ``askance diff`` shows it."""
        found = run_difference(self._runs.folder(before), self._runs.folder(after))
        return view_json(found.view()) | {"patch": found.patch}

    def report(self, run: str) -> str:
        """Render the report of a run from its files."""
        # A page that lies in the run's directory is not used, because anybody may have written it.
        folder = self.folder(run)
        with shown_from(folder, "the files of this run"):
            if is_migration(folder):
                return render_certificate(read_migration(folder), linked=False)
            return render_report(read_run(folder))

    def folder(self, run: str) -> Path:
        """Return the directory of a run by its name. Raises InputError if there is no such run."""
        return self._runs.folder(run)

    def bench(self, run: str, file: str) -> JudgeBench:
        """Return the bench of a run's judge, with labels only from the run's data. InputError if there is none."""
        return self.judge_of(run, file, labelled=False)[0]

    def judge(self, run: str, file: str) -> dict[str, Any]:
        """Return a judge with its table of questions and its agreement on development."""
        bench, folder = self.judge_of(run, file)
        judge, looks = bench.judge, ValidationLooks(folder)
        warnings = [LABELLED] if (folder / RUN_LABELS).is_file() else []
        warnings += [BATCHED] if judge.settings.get("mode") == "batched" else []
        if (folder / "result.json").is_file() and RunDirectory(folder).read_result().crossed:
            warnings.append(CROSSED)
        return {
            "run": run,
            "file": file,
            "files": judge_files(folder),
            "model": judge.asked,
            "task": judge.checklist.task,
            "questions": bench.questions(),
            "edit": bench.start.model_dump(mode="json") | {"threshold": bench.threshold},
            "has_threshold": judge.threshold is not None,
            "can_flip": judge.calibration is None,
            "can_weigh": not judge.checklist.section_weights,
            "history": [each.model_dump(mode="json") for each in judge.history],
            "development": bench.figures("development"),
            "measured": (measured := bool(bench.parts["development"].examples)),
            "cannot_ask": cannot_ask(judge) if measured else NO_EXAMPLES,
            "dimensions": judge.checklist.dimensions,
            "looks": len(looks.judges()),
            "warnings": warnings,
            "test": SHUT,
        }

    def figures(self, asked: AskedJudge) -> dict[str, Any]:
        """Return the agreement of the edited judge. If validation is shown, that look is counted first."""
        bench, folder, changed, sentences = self.edited(asked)
        looks = ValidationLooks(folder)
        row: dict[str, Any] = {"what": [*sentences], "validation": None}
        row["development"] = bench.figures("development", changed if sentences else None)
        if asked.validation:
            if sentences and bench.parts["validation"].reason is None and not bench.unasked(changed, "validation"):
                looks.add(changed.hash, sentences)
            row["validation"] = bench.figures("validation", changed if sentences else None)
        return row | {"looks": len(looks.judges())}

    def test(self, asked: AskedJudge) -> dict[str, Any]:
        """Run the acceptance test on validation, which counts as a look."""
        bench, folder, changed, sentences = self.edited(asked)
        if not sentences:
            raise InputError("Nothing is changed, so there is nothing to test.")
        if (why := bench.parts["validation"].reason) is not None:
            raise InputError(why)
        if unasked := bench.unasked(changed, "validation"):
            raise InputError(f"Ask first on validation: {', '.join(unasked)}.")
        look = ValidationLooks(folder).add(changed.hash, sentences)
        return acceptance_test(bench, changed, look, RunDirectory(folder).read_config()["config"])

    def save(self, asked: AskedJudge) -> dict[str, Any]:
        """Save the edited judge as a new file beside the run's own."""
        bench, folder, changed, what = self.edited(asked)
        file = save_changed_judge(folder, bench.judge, changed, what, self.by, ValidationLooks(folder).judges())
        return {"file": file.name, "path": str(file)}

    def edited(self, asked: AskedJudge) -> Edited:
        """Return the judge's bench and directory, the edited judge, and the changes in words."""
        bench, folder = self.judge_of(asked.run, asked.file)
        edit = asked.edit
        if bench.judge.threshold is None and edit.threshold == bench.threshold:
            edit = edit.model_copy(update={"threshold": None})  # the page shows .5 where a judge has none
        return bench, folder, *edited_judge(bench.judge, edit, bench.asked)

    def judge_of(self, run: str, file: str, *, labelled: bool = True) -> tuple[JudgeBench, Path]:
        """Return the bench of a run's judge, or of the judge in a file of its directory, and the directory. With
        ``labelled``, labels from the page Examples count, too."""
        folder = self._runs.folder(run)
        if file not in judge_files(folder):
            raise InputError(f"There is no judge '{file}' in the run '{run}'.")
        names = (*RUN_FILES, file, ASKED_FOLDER, *([RUN_LABELS] if labelled else ()))
        stamp = tuple(changed_at(folder / name) for name in names)
        with self._lock:
            kept = self._benches.pop(key := (folder, file, labelled), None)
            if kept is None or kept[0] != stamp:
                kept = stamp, load_bench(folder, file, labelled_examples(folder) if labelled else None)
            self._benches[key] = kept  # at the end of the dict, so that it is dropped last
            while len(self._benches) > MOST_BENCHES:
                del self._benches[next(iter(self._benches))]
        return kept[1], folder


class AskPage:
    """Asks a judge's model further questions, one at a time: two windows at once would pay twice."""

    def __init__(self, bench: Workbench) -> None:
        self._bench, self._lock = bench, Lock()

    def estimate(self, asked: AskedWording) -> dict[str, Any]:
        """Estimate the calls for asking the question on development; nothing is bought."""
        bench, folder, question = self._worded(asked)
        return _estimated(bench, folder, [question], "development")

    def ask(self, asked: AskedWording) -> dict[str, Any]:
        """Ask the question on development, and keep it with its verdicts."""
        with self._lock:
            bench, folder, question = self._worded(asked)
            verdicts = ask(bench.judge, folder, [question], bench.parts["development"].examples)
            keep_question(folder, bench.judge, question, asked.wording, verdicts, self._bench.by)
        return {"id": question.id, "instead_of": asked.wording.instead_of}

    def estimate_validation(self, asked: AskedJudge) -> dict[str, Any]:
        """Estimate the calls for asking on validation all questions that are on and were not asked there."""
        (bench, folder, *_), waiting = self._waiting(asked)
        return _estimated(bench, folder, [each.question for each in waiting], "validation")

    def ask_validation(self, asked: AskedJudge) -> dict[str, Any]:
        """Ask those questions on validation. That is a look at validation, counted before anything is shown."""
        with self._lock:
            (bench, folder, changed, what), waiting = self._waiting(asked)
            questions = [each.question for each in waiting]
            verdicts = ask(bench.judge, folder, questions, bench.parts["validation"].examples)
            look = ValidationLooks(folder).add(changed.hash, what) if what else 0
            for each in waiting:
                keep_verdicts(folder, each, "validation", verdicts)
        return {"look": look}

    def _worded(self, asked: AskedWording) -> tuple[JudgeBench, Path, Question]:
        bench, folder = self._bench.judge_of(asked.run, asked.file)
        if not bench.parts["development"].examples:
            raise InputError(NO_EXAMPLES)
        taken = {each.question.id for each in asked_questions(folder)}
        return bench, folder, worded(bench.judge, asked.wording, taken)

    def _waiting(self, asked: AskedJudge) -> tuple[Edited, list[AskedQuestion]]:
        bench, folder, changed, _ = edited = self._bench.edited(asked)
        ids = bench.unasked(changed, "validation")
        waiting = [each for each in asked_questions(folder) if each.question.id in ids]
        if not waiting:
            raise InputError("Every question that is on was asked on validation.")
        return edited, waiting


def _estimated(bench: JudgeBench, folder: Path, questions: list[Question], split: Split) -> dict[str, Any]:
    found = asking_job(bench.judge, folder, questions, bench.parts[split].examples).estimate()
    there = f"; {found.stored:,} answers are there already" if found.stored else ""
    said = f"{found.calls:,} calls ({found.size}){there}"
    return {"said": said, "split": split, "ids": [each.id for each in questions]}


def workbench_application(token: str, bench: Workbench) -> web.Application:
    """Make the application with the pages and the answers to their requests, below a token."""
    app = guarded_application(token, MOST_BYTES)
    add_read(app, "runs", bench.runs)
    add_read(app, "judge", lambda run, file: bench.judge(run, file or JUDGE_FILE), ("run", "file"))
    add_read(app, "compare", bench.compare, ("before", "after"))
    for name, do in (("figures", bench.figures), ("test", bench.test), ("save", bench.save)):
        add_act(app, name, AskedJudge, do)

    async def report(request: web.Request) -> web.StreamResponse:
        run = request.query.get("run", "")
        return await answered(lambda: bench.report(run), _report_page)

    app.router.add_get("/{token}/report", report)
    asking = AskPage(bench)
    add_act(app, "ask/estimate", AskedWording, asking.estimate)
    add_act(app, "ask/development", AskedWording, asking.ask)
    add_act(app, "ask/validation-estimate", AskedJudge, asking.estimate_validation)
    add_act(app, "ask/validation", AskedJudge, asking.ask_validation)
    add_start(app, StartForm(bench.root, lambda: list(bench.runs()["runs"])))
    DisagreementPage(lambda run: bench.judge_of(run, JUDGE_FILE), bench.by).add_to(app)
    PromptPage(bench.folder, bench.by).add_to(app)
    examples = RunExamples(bench.by, bench.folder, bench.bench)
    add_examples(app, examples)
    add_runs(app, examples)
    app.router.add_get("/{token}/{file:[a-z.]*}", page_files(__package__ or "", PAGES))
    return app


def _report_page(html: str) -> web.Response:
    """Serve a report under its own policy and in a sandbox, so that its script cannot call the workbench."""
    found = _META.search(html)
    if found is None:
        raise AskanceError("The report has no policy, so it is not shown.")
    policy = found[1].replace("&#39;", "'")
    headers = {POLICY: f"sandbox allow-scripts allow-popups; {policy}; frame-ancestors 'none'"}
    return web.Response(text=html, content_type="text/html", charset="utf-8", headers=headers)


def workbench(
    directory: str | Path = ".", *, by: str = "me", port: int = 0, ready: Callable[[str], None] | None = None
) -> None:
    """Serve the workbench on the runs below a directory until Ctrl-C (SIGINT) or SIGTERM. ``by`` is the person's name
    in the history of a saved judge. Port 0 means a free port. ``ready`` is called with the address; by default the
    address is printed. Raises InputError if there is no such directory, and AskanceError if the port is taken."""
    root = Path(directory)
    if not root.is_dir():
        raise InputError(f"{root}: there is no such directory; name the one that the runs are in.")
    token = new_token()
    app = workbench_application(token, Workbench(root.resolve(), by))
    run_sync(serve(app, token, port, ready or _print))


def _print(address: str) -> None:
    print(f"The workbench is at {address}; Ctrl-C ends it.")  # noqa: T201


def view_json(view: View) -> dict[str, Any]:
    """Return a view as JSON: title, sentences, and tables as rows of cells. A figure is an object with number and
    interval."""
    tables = []
    for name, rows in view.shown_tables().items():
        heads = columns(rows)
        cells = [[_cell(row.get(head)) for head in heads] for row in rows]
        notes = [*view.notes.get(name, ())]
        tables.append({"caption": view.caption(name), "heads": heads, "rows": cells, "notes": notes})
    return {"title": view.title, "lines": [*view.lines], "tables": tables}


def _cell(cell: Any) -> Any:
    if not isinstance(cell, Figure):
        return cell
    return {"value": cell.value, "low": cell.low, "high": cell.high, "text": str(cell), "reason": cell.reason}
