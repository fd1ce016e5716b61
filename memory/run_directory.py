"""The directory of a run. A run can be killed at any moment and resumed from its directory."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import yaml
from filelock import FileLock, Timeout

from ..models.writing import WRITING_FILE
from ..prompts.checklist import Checklist, dump_checklist, found_in, load_checklist
from ..prompts.errors import AskanceError, InputError, as_typed, not_text
from ..prompts.examples import Example, load_examples
from ..prompts.formats.form import FormRecord
from ..prompts.formatting import count
from ..prompts.lessons import Lesson
from ..prompts.prompt import Prompt, kept_prompt
from ..prompts.rows import validate_row
from ..prompts.tables import read_rows
from ..prompts.text_files import path_of, read_text, read_yaml, remove_partial, write_whole
from ..prompts.verdicts import Verdict, dump_verdicts
from ..settings import GONE, RENAMED, by_new_names
from .journal import Journal
from .postgres_store import PostgresAddress
from .result_file import RunRecord
from .verdict_store import Place, SharedStore, VerdictStore

FORMAT = 2
"""Version of the directory's format; 1 was the format before `align` and `tune`."""
JUDGE_FILE = "judge.yaml"
"""File of the whole judge, in runs that improve a judge."""
JUDGE_FOLDER = "judge"
"""Folder with the run of a judge that learns in a further round of ``tune``."""
CANDIDATES_FILE = "candidates.yaml"
"""File of all questions that were proposed from pairs, as a checklist."""
OUTPUTS_FILE = "outputs.jsonl"
"""File of the outputs that an accepted prompt wrote, in runs that improve a generator."""
LABELLED_FILE = "outputs-labelled.jsonl"
"""File of a run's outputs with people's labels and comments."""
SUFFIXES = (".md", ".txt", ".jinja", ".json", ".yaml")
"""Suffixes of prompt files."""
WRITTEN = (
    *(f"prompt{suffix}" for suffix in SUFFIXES),
    "checklist.yaml",
    JUDGE_FILE,
    WRITING_FILE,
    "lessons.jsonl",
    "changes.diff",
    "journal.jsonl",
    OUTPUTS_FILE,
    CANDIDATES_FILE,
    "result.json",
    "report.html",
)
"""Files that a run writes into its directory after it has begun. All other results are in subfolders."""


class RunDirectory:
    """The files of one run. Files are replaced as a whole, except the journal, which only grows."""

    def __init__(self, path: str | Path) -> None:
        """Name the directory, which need not exist yet."""
        self.path = path_of(path, "run")
        self._lock = FileLock(self.path / ".lock", timeout=0)
        self._begun_with: list[Path] = []

    def open(
        self,
        config: Mapping[str, Any],
        examples: Sequence[Example],
        checklist: Checklist | None,
        prompts: Mapping[str, Prompt],
        further: Mapping[str, str] | None = None,
        answers: Path | None = None,
        *,
        no_cache: bool = False,
    ) -> bool:
        """Begin a run here, or continue the same run. Returns whether the run was already here.

        The inputs are copied, so that the run can be resumed after the user's files were moved or changed. Raises
        InputError if the directory cannot be made, or if it holds a run with other inputs or settings, or a file that
        the run would overwrite. Raises AskanceError if a file cannot be written, e.g. because the disk is full.

        Args:
            checklist: None if every example has its own questions.
            further: Texts of other inputs, by file name.
            answers: Store of another run, whose answers are copied.
            no_cache: Whether the run does not use the store of all commands, also when it is resumed.
        """
        texts = {"examples.jsonl": "".join(_line(example) for example in examples)}
        if checklist is not None:
            texts["checklist.yaml"] = dump_checklist(checklist)
        texts |= dict(further or {})
        for name, prompt in prompts.items():
            texts |= _files_of(name, prompt)
        self._make()
        if self.config_file.exists():
            # earlier versions kept conversations as texts
            told = "".join(_line(example, as_texts=True) for example in examples)
            self._refuse_another(config, (texts, {**texts, "examples.jsonl": told}))
            return True
        if there := [name for name in WRITTEN if (self.path / name).exists()]:
            raise InputError(
                f"{self.path / there[0]} is there already, and a run in {self.path} would write over it. Choose "
                "another --run directory."
            )
        if answers is not None:  # before any input, so that the directory stays free if the disk is full
            with self.store() as store:
                store.bring(answers)
        for name, text in texts.items():
            self.write(f"inputs/{name}", text)
            self._begun_with.append(self.path / "inputs" / name)
        header = {"format": FORMAT, "fingerprint": _fingerprint(config, texts), "config": dict(config)}
        if no_cache:
            header["no_cache"] = True
        if config.get("memory"):
            header["memory"] = str(Path(config["memory"]).absolute())
        computed = () if checklist is None else checklist.computed
        names_code = any(config.get(name) for name in ("checker", "program", "measure"))
        if names_code or any(each.names_function for each in computed):
            header["began_in"] = str(Path.cwd())
        self.write("config.yaml", yaml.safe_dump(header, sort_keys=False, allow_unicode=True))
        return False

    def take_back(self) -> None:
        """Remove the run that :meth:`open` has begun, if it bought nothing, so that another run can begin here."""
        with suppress(AskanceError, OSError):
            with self.store() as store:
                bought = len(store) - len(store.brought)
            if not bought:
                for file in (self.config_file, self.path / "journal.jsonl", *self._begun_with):
                    file.unlink(missing_ok=True)

    def _refuse_another(self, config: Mapping[str, Any], inputs: Sequence[Mapping[str, str]]) -> None:
        """Raise InputError if the settings or inputs differ from those of the run that is here."""
        record = self.read_config()
        known = record["config"]
        # The fingerprint was made when the run began: without settings that were added since, and with old names.
        begun_settings = {**config, **record.get("begun_with", {})}
        known_settings = {name: value for name, value in begun_settings.items() if name in known}
        is_as_long = config.get("max_iterations") == known.get("max_iterations")
        before_renaming = {OLD_NAMES.get(name, name): value for name, value in known_settings.items()}
        gone = {name: default for name, (default, _) in GONE.items() if name in record["settings_written"]}
        if is_as_long and record["fingerprint"] in (
            _fingerprint({**settings, **gone}, texts)
            for settings in (begun_settings, known_settings, before_renaming)
            for texts in inputs
        ):
            return
        changed = sorted(key for key in {*config, *known} if config.get(key) != known.get(key))
        difference = f"other settings ({', '.join(changed)})" if changed else "other data, checklist or prompts"
        more = " --max-iterations MORE" if changed == ["max_iterations"] else ""
        raise InputError(
            f"{self.path} holds a run with {difference}. Choose another --run directory, or go on with the one that is "
            f"there: askance resume {as_typed(self.path)}{more}"
        )

    @property
    def config_file(self) -> Path:
        """File of the settings and the fingerprint. It is written last, so a directory with it has all inputs."""
        return self.path / "config.yaml"

    def read_config(self) -> dict[str, Any]:
        """Read the settings, the fingerprint and the format of the run. Raises InputError if there is no run, its
        file is damaged, or a newer askance, or one with an older format, wrote it."""
        if self.path.is_file():
            raise InputError(f"{self.path}: this is a file; the directory of a run is needed.")
        if (self.path / JUDGE_FOLDER / self.config_file.name).is_file() and not self.config_file.is_file():
            raise InputError(
                f"{self.path}: the judge of this round is still learning. Go on with the command that began it: "
                f"askance tune --from RUN --run {as_typed(self.path)}"
            )
        if not self.config_file.is_file():
            raise InputError(f"{self.path}: there is no run in this directory (no config.yaml).")
        try:
            data = read_yaml(read_text(self.config_file), self.config_file, "configuration")
            newer, older = data["format"] > FORMAT, data["format"] < FORMAT
            _ = dict(data["config"]), data["fingerprint"]
        except (OSError, ValueError, KeyError, TypeError):
            raise InputError(f"{self.config_file}: damaged, or not written by askance.") from None
        if newer:
            raise InputError(f"{self.path}: written by a newer askance; update askance to go on with it.")
        if older:
            raise InputError(
                f"{self.path}: written by an older askance, which this one cannot read; start another run."
            )
        config = by_new_names(data["config"], self.config_file)
        return {**data, "config": config, "settings_written": tuple(data["config"])}

    def extend(self, max_iterations: int) -> None:
        """Allow the run more iterations. Its result is then the same as if it had begun with this number. Raises
        InputError if it already has as many, and AskanceError if another process is working on it."""
        with self.lock():
            header = self.read_config()
            config = header["config"]
            if max_iterations <= config["max_iterations"]:
                raise InputError(
                    f"{self.path}: this run has {count(config['max_iterations'], 'iteration')} already; give more of "
                    "them."
                )
            looks = header.get("earlier_test_looks", 0)
            # a result with another count is older than the last extension, which counted its look already
            if self.finished and (result := self.read_result()).earlier_test_looks == looks:
                looks += bool(result.test_looked_at)
            begun = {"max_iterations": config["max_iterations"]} | header.get("begun_with", {})
            longer = {**config, "max_iterations": max_iterations}
            header |= {"config": longer, "begun_with": begun, "earlier_test_looks": looks}
            self.write("config.yaml", yaml.safe_dump(header, sort_keys=False, allow_unicode=True))

    def memory(self, given: Path) -> Path:
        """Return the path of the run's lesson memory: the absolute path from the start of the run, else ``given``.

        The absolute path holds whatever directory the run is resumed from. ``given`` holds if that path is gone.
        """
        kept = Path(self.read_config().get("memory", given))
        return kept if kept.is_dir() and kept != given.absolute() else given

    @property
    def began_in(self) -> Path:
        """Directory in which the run was begun, from which the run's own functions are imported. The present directory
        if it is gone, or if an older run did not record it."""
        if not self.config_file.is_file():
            return Path()
        kept = Path(self.read_config().get("began_in", ""))
        return kept if kept.is_dir() else Path()

    def read_inputs(self) -> tuple[list[Example], Checklist | None, dict[str, Prompt]]:
        """Read the inputs of the run's beginning: examples, checklist (None if the run has none), prompts by name.
        Raises InputError if a file is missing or damaged."""
        inputs = self.path / "inputs"
        prompts = _prompts_in(inputs)
        examples = list(load_examples(inputs / "examples.jsonl", need_output=False, remarks=False))
        checklist = inputs / "checklist.yaml"
        asked = found_in(load_checklist(checklist, remarks=False), self.began_in) if checklist.exists() else None
        return examples, asked, prompts

    def lock(self) -> AbstractContextManager[object]:
        """Lock this run for this process until the context ends, and remove partial files of a killed process. Raises
        AskanceError if another process has the lock, or if the directory cannot be written, and InputError if the
        directory cannot be made."""
        self._make()
        try:
            taken = self._lock.acquire()
        except Timeout:
            raise AskanceError(f"{self.path}: another process is working on this run.") from None
        except OSError as error:
            raise AskanceError(f"{self.path}: cannot be written ({error.strerror}).") from None
        remove_partial(self.path)
        return taken

    def journal(self) -> Journal:
        """Open the run's journal."""
        return Journal(self.path / "journal.jsonl")

    def store(self, shared: Place | SharedStore | None = None) -> VerdictStore:
        """Open the run's store of answers.

        ``shared`` is the place of the store of all commands, which a run with ``no_cache`` does not use; or an open
        store of runs that belong together (see :class:`~askance.memory.verdict_store.VerdictStore`).
        """
        of_all = isinstance(shared, (Path, PostgresAddress))
        apart = of_all and self.config_file.is_file() and self.read_config().get("no_cache")
        return VerdictStore(self.path / "verdicts.db", shared=None if apart else shared, is_ours=True)

    def save_version(self, number: int, prompt: Prompt, version: str | None = None) -> None:
        """Write the prompt of a version, accepted or not. ``version`` is its identity, by default the prompt's hash."""
        self.write(f"prompts/{number:03d}-{version or prompt.hash}{prompt.suffix}", prompt.file_text)

    def version_files(self, number: int) -> list[Path]:
        """Return the prompt files of a version number. Each name ends with the version's identity."""
        return sorted(each for each in (self.path / "prompts").glob(f"{number:03d}-*") if each.suffix in SUFFIXES)

    def read_start(self) -> Prompt:
        """Read the starting prompt. Raises InputError if its file is missing or damaged."""
        inputs = self.path / "inputs"
        if (start := _prompts_in(inputs).get("prompt")) is None:
            raise InputError(f"{inputs / 'prompt.md'}: missing, so the starting prompt is not known.")
        return start

    def read_versions(self, number: int, start: Prompt) -> list[Prompt]:
        """Read the prompts of a version number, in the form of the starting prompt or of their own file suffix."""
        record = None if start.form is None else start.form.record
        return [
            kept_prompt(read_exactly(file), record, str(file))
            if file.suffix == start.suffix
            else Prompt.of_file(read_exactly(file), file.suffix, str(file))
            for file in self.version_files(number)
        ]

    def add_time(self, version: str, outputs: int, seconds: float) -> None:
        """Add the time of a version's bought outputs to ``timing.jsonl``; outputs from the store cannot be timed."""
        with suppress(OSError), (self.path / "timing.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps({"version": version, "outputs": outputs, "seconds": round(seconds, 3)}) + "\n")

    def seconds_per_output(self, version: str) -> float | None:
        """Return the mean seconds of a version's timed outputs; None if none was timed."""
        try:
            rows = [json.loads(line) for line in read_text(self.path / "timing.jsonl").splitlines()]
            mine = [row for row in rows if row["version"] == version]
            outputs = sum(row["outputs"] for row in mine)
            return sum(row["seconds"] for row in mine) / outputs if outputs else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def save_lessons(self, lessons: Iterable[Lesson]) -> None:
        """Replace ``lessons.jsonl``."""
        self.write("lessons.jsonl", "".join(lesson.model_dump_json() + "\n" for lesson in lessons))

    def read_lessons(self) -> list[Lesson]:
        """Read ``lessons.jsonl``; no lessons without a file. Raises InputError, with the line, if it is damaged."""
        file = self.path / "lessons.jsonl"
        rows = read_rows(file) if file.is_file() else ()
        return [validate_row(Lesson, row, f"{file}, line {number}") for number, row in rows]

    def save_verdicts(self, name: str, verdicts: Iterable[Verdict]) -> None:
        """Write verdicts to ``verdicts/NAME.jsonl``."""
        self.write(f"verdicts/{name}.jsonl", dump_verdicts(verdicts))

    def save_result(self, result: RunRecord) -> None:
        """Write ``result.json``."""
        self.write("result.json", json.dumps(result.to_dict(), ensure_ascii=False, indent=2) + "\n")

    def read_result(self) -> RunRecord:
        """Read the record in ``result.json``. Raises InputError if the run is not finished or the file is damaged."""
        file = self.path / "result.json"
        try:
            data = json.loads(read_text(file))
        except FileNotFoundError:
            raise InputError(
                f"{self.path}: this run is not finished. Go on with it: askance resume {as_typed(self.path)}"
            ) from None
        except (OSError, ValueError, RecursionError):
            raise InputError(
                f"{file}: damaged. Make it again without a call: askance resume {as_typed(self.path)}"
            ) from None
        return validate_row(RunRecord, data, f"{file}: damaged, or not written by askance")

    @property
    def finished(self) -> bool:
        """Whether the run has a result."""
        return (self.path / "result.json").is_file()

    def write(self, name: str, text: str) -> None:
        """Write a file of the run as a whole (:func:`~askance.prompts.text_files.write_whole`). Raises AskanceError if
        it cannot be written; then the old file is kept."""
        write_whole(self.path / name, text)

    def write_or_remove(self, name: str, text: str | None) -> None:
        """Write a file of the run, or remove the file of an earlier result if ``text`` is None."""
        if text is None:
            (self.path / name).unlink(missing_ok=True)
        else:
            self.write(name, text)

    def _make(self) -> None:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{self.path}: cannot be made a run directory ({error.strerror}).") from None


FORM = ".form.yaml"
"""End of the name of the file that records the form of the prompt beside it."""


def prompt_file(directory: Path) -> Path:
    """Return the file of the prompt that a run accepted, in whichever format."""
    files = [directory / f"prompt{suffix}" for suffix in SUFFIXES]
    return next((file for file in files if file.is_file()), files[0])


def _files_of(name: str, prompt: Prompt) -> dict[str, str]:
    """Return the texts of a prompt's files in ``inputs/``, by file name."""
    if prompt.form is None:
        return {f"{name}.md": prompt.text}
    record = prompt.form.record.model_dump(mode="json", exclude_defaults=True)
    written = yaml.safe_dump(record, sort_keys=False, allow_unicode=True)
    return {f"{name}{prompt.suffix}": prompt.file_text, f"{name}{FORM}": written}


def _prompts_in(inputs: Path) -> dict[str, Prompt]:
    """Read the prompts of a folder, by name: plain texts, and prompts with the record of their form beside them."""
    files = {path.stem: path for path in inputs.glob("*.md")}
    for record in inputs.glob(f"*{FORM}"):
        name = record.name.removesuffix(FORM)
        files_there = [path for suffix in SUFFIXES if (path := inputs / f"{name}{suffix}").is_file()]
        if not files_there:
            raise InputError(f"{inputs / name}.*: the prompt is missing; {record.name} says how it is to be read.")
        files[name] = files_there[0]
    return {name: _kept_prompt(files[name]) for name in sorted(files)}


def _kept_prompt(path: Path) -> Prompt:
    """Read a prompt from its file and the record of its form. A file without a record is plain text."""
    record_file, record = path.with_suffix(FORM), None
    if record_file.is_file():
        given = read_yaml(read_text(record_file), record_file, "record of a prompt's form")
        record = validate_row(FormRecord, given, f"{record_file}: damaged, or not written by askance")
    return kept_prompt(read_exactly(path), record, str(path))


OLD_NAMES = {new: old for old, new in RENAMED.items()}
"""Names of settings in the ``config.yaml`` of earlier runs, by present name."""


def _line(example: Example, *, as_texts: bool = False) -> str:
    row = example.model_dump(exclude_defaults=True)
    if as_texts:
        row |= {name: getattr(example, name) for name in ("input", "output", "context", "reference") if name in row}
    return json.dumps(row, ensure_ascii=False, default=str) + "\n"


def _fingerprint(config: Mapping[str, Any], texts: Mapping[str, str]) -> str:
    """Return the fingerprint of the settings and all inputs: a SHA-256 hash in hex."""
    return sha256(json.dumps([config, texts], sort_keys=True).encode()).hexdigest()


def read_exactly(path: Path) -> str:
    """Read a file's text with its own line ends. Raises InputError if it cannot be read or is not UTF-8."""
    try:
        return path.read_bytes().decode()
    except UnicodeDecodeError:
        raise not_text(path, "utf-8") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}).") from None
