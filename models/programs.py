"""Programs that write outputs: a Python function, a command, an address. A run asks them like models.

Every program gets the same two things: the example (``id``, ``input``, ``context`` and ``metadata``) and the prompts by
name. Its output is kept in the store like a model's answer, under the program's name, its version and its input.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import re
import shlex
import shutil
import signal
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from subprocess import PIPE, Popen, TimeoutExpired
from typing import TYPE_CHECKING, Any

from ..prompts.errors import InputError
from ..prompts.text import shorten
from .base import Answer, ModelError, Parameters, Request, make_request
from .direct import DirectModel, check_address, shown_address
from .functions import find_function, kind_of, what_happened
from .request_form import RETRY_STATUSES

if TYPE_CHECKING:
    from ..prompts.examples import Example

COMMAND, ADDRESS = "command:", "url:"
_FUNCTION = re.compile(r"(?:.+\.py|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_GIVEN = ("id", "input", "context", "metadata")  # fields of an example: none says what the output should be
_SAID = 300  # most characters of a failed program's message that are shown

GeneratorFunction = Callable[["Example", Mapping[str, str]], Any]
"""Function of an example and the prompts by name; returns the output, or an awaitable of the output."""


class Program:
    """The common part of all programs: name, version, and the answer that holds an output."""

    price = None  # unknown

    def __init__(self, name: str, version: str) -> None:
        """``name`` is the user's name for the program. ``version`` must change when its outputs may change."""
        self.name = name
        self.version = version
        self.identity = f"program:{name}:{version}"

    def request(self, example: Example, prompts: Mapping[str, str]) -> Request:
        """Return the request for an example's output. Its only message is the JSON for a command or an address."""
        given = example.model_dump(include=set(_GIVEN), exclude_none=True)
        body = json.dumps({"example": given, "prompts": dict(prompts)}, ensure_ascii=False, default=str)
        return make_request(self.identity, [("user", body)], Parameters(1))

    async def answer(self, request: Request) -> Answer:
        """Run the program once; the answer's text is the output as JSON. Raises ModelError without output in time."""
        value = await self._output(request.messages[0][1])
        if value is None or value in ([], {}) or (isinstance(value, str) and not value.strip()):
            raise ModelError(f"{self.name}: it gave no output.")
        try:
            return Answer(json.dumps(value, ensure_ascii=False, allow_nan=False), cost_usd=None)
        except (TypeError, ValueError, RecursionError) as error:
            raise ModelError(
                f"{self.name}: it returned {kind_of(value)} that JSON cannot hold ({error}); return a text, messages, "
                "or lists and objects of texts and numbers."
            ) from None

    async def _output(self, body: str) -> Any:
        raise NotImplementedError

    async def close(self) -> None:
        """Release the program's resources."""


def output_in(answer: str) -> Any:
    """Return the output in a program's answer."""
    return json.loads(answer)


class FunctionProgram(Program):
    """A Python function, plain or async. Each call of a plain function runs in its own thread."""

    def __init__(self, name: str, function: GeneratorFunction, version: str, timeout: float) -> None:
        """``timeout`` is in seconds, for one output."""
        super().__init__(name, version)
        self._function = function
        self._timeout = timeout

    async def _output(self, body: str) -> Any:
        from ..prompts.examples import Example

        given, limit = json.loads(body), asyncio.timeout(self._timeout)
        arguments = Example.model_validate(given["example"]), given["prompts"]
        try:
            async with limit:
                # the function itself, or the ``__call__`` of an object's class
                called = self._function if inspect.isroutine(self._function) else type(self._function).__call__
                if inspect.iscoroutinefunction(called):
                    return await self._function(*arguments)
                found = await _in_a_thread(lambda: self._function(*arguments))
                return await found if inspect.isawaitable(found) else found
        except (Exception, SystemExit) as error:
            if limit.expired():
                raise ModelError(f"{self.name}: no output within {self._timeout:g} s (--timeout).") from None
            raise ModelError(what_happened(error, self.name, self._function)) from error


class CommandProgram(Program):
    """A command. It gets example and prompts as JSON on standard input, and writes its output to standard output."""

    def __init__(self, name: str, version: str, timeout: float, folder: Path) -> None:
        """Prepare the command to run in ``folder``. Raises InputError if there is no such program."""
        super().__init__(name, version)
        self._words = _words_of(name)
        self._timeout = timeout
        self._folder = folder.absolute()
        program = self._words[0] if self._words else ""
        # a program's name with a path in it is relative to ``folder``
        if not program or shutil.which(str(self._folder / program) if os.sep in program else program) is None:
            raise InputError(f"--generator {name}: there is no program '{program}' to run.")

    async def _output(self, body: str) -> Any:
        stdin = body.encode("utf-8", "backslashreplace") + b"\n"
        try:
            process = Popen(  # noqa: ASYNC220 -- it is begun at once, and waited for in a thread
                self._words, stdin=PIPE, stdout=PIPE, stderr=PIPE, cwd=self._folder, start_new_session=True
            )
        except OSError as error:
            raise ModelError(f"{self.name}: it cannot be run ({error.strerror}).", fatal=True) from None

        def to_its_end() -> tuple[bytes, bytes]:
            with process:
                try:
                    return process.communicate(stdin, self._timeout)
                finally:
                    _end(process)

        try:
            out, err = await _in_a_thread(to_its_end)
        except TimeoutExpired:
            raise ModelError(f"{self.name}: no output within {self._timeout:g} s (--timeout).") from None
        except asyncio.CancelledError:  # askance is interrupted
            _end(process)
            raise
        if process.returncode:
            last = _last_line(err) or _last_line(out) or "it said nothing"
            raise ModelError(f"{self.name}: exit status {process.returncode}: {last}")
        try:
            text = out.decode().rstrip("\r\n")
        except UnicodeDecodeError:
            raise ModelError(f"{self.name}: its output is no text in UTF-8.") from None
        if not text.strip():
            raise ModelError(f"{self.name}: it gave no output. It last said: {_last_line(err) or 'nothing'}")
        return text


class AddressProgram(Program):
    """An address. It gets example and prompts as JSON, and answers with a text or with JSON."""

    def __init__(self, name: str, version: str, timeout: float) -> None:
        """Check the address; nothing is sent yet. Raises InputError for an unusable address."""
        super().__init__(name, version)
        self._address = check_address(name.removeprefix(ADDRESS), "--generator")
        self._http = DirectModel(name, "", self._address, identity=self.identity, api_key="", timeout=timeout)

    async def _output(self, body: str) -> Any:
        status, headers, payload = await self._http.call("POST", "", body)
        text = payload.decode("utf-8", "replace")
        if status != 200:
            said = shorten(" ".join(text.split()), _SAID) or "no message"
            where = shown_address(self._address)
            raise ModelError(
                f"{self.name}: {where} answered HTTP {status}: {said}",
                retry=status in RETRY_STATUSES,
                fatal=status in (401, 403, 404, 405),
                status=status,
            )
        if "json" not in headers.get("Content-Type", ""):
            return text
        try:
            data = json.loads(text)
        except (ValueError, RecursionError):
            problem = f"it says that it sends JSON, and this is none: {shorten(text, 80)}"
            raise ModelError(f"{self.name}: {problem}") from None
        return data["output"] if isinstance(data, dict) and "output" in data else data

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()


def is_program(name: str) -> bool:
    """Whether a name is the name of a program, not of a model."""
    return name.startswith((COMMAND, ADDRESS)) or _FUNCTION.fullmatch(name) is not None


def stands_for_program(generator: Any) -> bool:
    """Whether a generator (a name or an object) is a program, not a model."""
    if isinstance(generator, str):
        return is_program(generator)
    return isinstance(generator, Program) or (callable(generator) and not hasattr(generator, "answer"))


def load_program(
    source: str | GeneratorFunction | Program,
    *,
    version: str | None = None,
    timeout: float = 120.0,
    folder: Path = Path(),
) -> Program:
    """Return the program for a function or a name: ``module:function``, ``file.py:function``, ``command:…``, ``url:…``.
    The default ``version`` is a hash of the function's file, or of the files that a command names. Files are looked for
    in ``folder`` first, and commands run there. Raises InputError if there is no such program, or it cannot be called.
    """
    if isinstance(source, Program):
        return source
    if isinstance(source, str) and source.startswith(COMMAND):
        return CommandProgram(source, version or _version_of_command(source, folder), timeout, folder)
    if isinstance(source, str) and source.startswith(ADDRESS):
        return AddressProgram(source, version or "", timeout)
    if isinstance(source, str):
        name, function = source, find_function(source, "--generator", folder)
    else:
        module = getattr(source, "__module__", None) or type(source).__module__
        name, function = f"{module}:{getattr(source, '__qualname__', type(source).__qualname__)}", source
    _must_take_both(name, function)
    return FunctionProgram(name, function, version or _version_of(function), timeout)


def writer_of(
    generator: Any, *, version: str | None, timeout: float, folder: Path = Path(), begun_with: str | None = None
) -> Any:
    """Return the program for a generator (:func:`load_program`). A model, or its name, is returned unchanged. Raises
    InputError if a run was ``begun_with`` another version."""
    if not stands_for_program(generator):
        return generator
    program = load_program(generator, version=version, timeout=timeout, folder=folder)
    if begun_with is not None and program.version != begun_with:
        raise InputError(
            f"--generator {program.name}: it was changed since the run began (version {program.version} now, "
            f"{begun_with} then), and outputs of two versions do not go together. Take the old one back, or begin "
            "another run."
        )
    return program


def _must_take_both(name: str, function: Any) -> None:
    if not callable(function):
        raise InputError(f"--generator {name}: this is {kind_of(function)}, not a function.")
    if inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
        raise InputError(f"--generator {name}: this function yields; one that returns the output is needed.")
    try:
        inspect.signature(function).bind(None, {})
    except TypeError as error:
        problem = f"it is called with an example and the prompts by name, which fails ({error})"
        raise InputError(f"--generator {name}: {problem}.") from None
    except ValueError:
        return  # a builtin without a signature


def _version_of(function: Any) -> str:
    """Return a hash of the function's file, because its helpers matter too; without a file, of its source or code."""
    owner = inspect.unwrap(function) if inspect.isroutine(function) else type(function)
    with suppress(OSError, TypeError):
        return _hash(Path(inspect.getsourcefile(owner) or "").read_bytes())
    with suppress(OSError, TypeError):
        return _hash(inspect.getsource(owner).encode())  # a notebook's cell
    code = getattr(owner, "__code__", None)
    return _hash(repr((getattr(code, "co_code", b""), getattr(code, "co_consts", ()))).encode())


def _version_of_command(source: str, folder: Path) -> str:
    """Return a hash of the files that a command names, e.g. ``app.py`` in ``python app.py``; empty without files."""
    files = [path for word in _words_of(source)[1:] if (path := folder / word).is_file()]
    return _hash(b"\0".join(path.read_bytes() for path in files)) if files else ""


def _hash(data: bytes) -> str:
    return sha256(data).hexdigest()[:16]


def _words_of(source: str) -> list[str]:
    try:
        return shlex.split(source.removeprefix(COMMAND))
    except ValueError as error:
        raise InputError(f"--generator {source}: {error}.") from None


def _end(process: Popen[bytes]) -> None:
    """End a command that still runs, with all its child processes."""
    if process.poll() is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


def _last_line(said: bytes) -> str:
    lines = [line for line in said.decode("utf-8", "replace").splitlines() if line.strip()]
    return shorten(lines[-1].strip(), _SAID) if lines else ""


async def _in_a_thread(work: Callable[[], Any]) -> Any:
    """Run work in its own thread and return the result. An interrupted askance does not wait for this thread."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()

    def tell(result: Any, error: BaseException | None) -> None:
        if not done.done():
            done.set_result(result) if error is None else done.set_exception(error)

    def run() -> None:
        result, failure = None, None
        try:
            result = work()
        except BaseException as error:
            failure = RuntimeError("StopIteration") if isinstance(error, StopIteration) else error
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(tell, result, failure)

    threading.Thread(target=run, name="askance-generator", daemon=True).start()
    return await done
