"""askance as a server of the Model Context Protocol for coding agents (``askance mcp``, extra ``mcp``).

By default the server only reads. If it is started with a cap, its tools may buy answers, together up to the cap. If it
is started with a folder for runs, ``align`` may write there. Every tool that can buy gives an estimate first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import wraps
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from ... import __version__
from ...agents.question_writer import MOST_PARTS
from ...evaluation.evaluate import prepare
from ...evaluation.judge_file import load_judge
from ...evaluation.options import EvaluateOptions, WriterOptions
from ...evaluation.write_questions import write_questions
from ...memory.provenance import build_graph
from ...memory.run_directory import RunDirectory
from ...memory.why import reason_for
from ...models.budget import Budget
from ...models.progress import Silent
from ...optimizer.modes import align as alignment
from ...optimizer.options import AlignOptions
from ...prompts.errors import AskanceError, InputError, import_optional
from ...run_estimate import estimate_run, typical_record
from ...runs import run_and_report

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

Tool = Callable[..., dict[str, Any]]
INSTRUCTIONS = (
    "askance judges texts with small yes/no questions. Call a tool without buy first: it says what the work would take "
    "and buys nothing. Show that to the person, and call it again with buy once they agree."
)


class SpendingWatcher(Silent):
    """Watches a piece of work without output, and counts what it buys."""

    def __init__(self) -> None:
        """Start without any purchase."""
        super().__init__()
        self.budgets: list[Budget] = []

    def watch(self, budget: Budget) -> None:
        """Count the calls and money of this budget, too."""
        super().watch(budget)
        self.budgets.append(budget)

    @property
    def calls(self) -> int:
        """Number of calls that were bought."""
        return sum(each.calls for each in self.budgets)


@dataclass
class Allowance:
    """Limits of all tools together: money, calls, and places to write."""

    call_budget: int | None = None
    """Most calls; None: no limit on calls. Without this and ``cost_budget`` nothing may be bought."""
    cost_budget: float | None = None
    """Most US dollars; None: no limit on money."""
    runs: Path | None = None
    """Folder for new runs; None: nothing is written."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings of a configuration file, for every tool that knows them."""
    calls: int = field(default=0, init=False)
    cost_usd: float = field(default=0.0, init=False)
    lock: Lock = field(default_factory=Lock, init=False)
    """Lock held while a tool buys, so that two tools do not spend the same rest."""

    def caps(self) -> dict[str, Any]:
        """Return the rest of the caps, as settings. Raises InputError if nothing may be bought, or nothing is left."""
        if self.call_budget is None and self.cost_budget is None:
            raise InputError(
                "This server only reads. To let it buy answers, a person starts it with a cap: askance mcp --call-budget 500"
            )
        calls = None if self.call_budget is None else self.call_budget - self.calls
        dollars = None if self.cost_budget is None else self.cost_budget - self.cost_usd
        if (calls is not None and calls < 1) or (dollars is not None and dollars <= 0):
            raise InputError(f"The caps of this server are used up ({self.calls} calls, ${self.cost_usd:.4f}).")
        return {name: left for name, left in (("call_budget", calls), ("cost_budget", dollars)) if left is not None}

    @contextmanager
    def buying(self) -> Iterator[tuple[dict[str, Any], SpendingWatcher]]:
        """Yield the caps and the watcher of one piece of work. Purchases are counted even if the work fails. Raises
        InputError as :meth:`caps`."""
        with self.lock:
            caps, spent = self.caps(), SpendingWatcher()
            try:
                yield caps, spent
            finally:
                self.calls += spent.calls
                self.cost_usd += sum(each.known_cost for each in spent.budgets)

    def of(self, options: type[Any], **given: Any) -> dict[str, Any]:
        """Return the settings of a tool: the known ones of the file, and those that were given."""
        known = {name: value for name, value in self.settings.items() if name in options.model_fields}
        return known | {name: value for name, value in given.items() if value is not None}

    def run(self, name: str) -> Path:
        """Return the directory of a run. Raises InputError if nothing may be written, or the name is no plain name."""
        if self.runs is None:
            raise InputError("This server writes nothing. To let it make runs, a person starts it with --runs FOLDER.")
        if Path(name).name != name or name in ("", ".", ".."):
            raise InputError(f"run: a plain name is needed, not '{name}'; the run is made in {self.runs}.")
        return self.runs / name


def make_server(allowed: Allowance) -> MCPServer:
    """Return the server with its tools. Raises MissingExtraError if the SDK is not installed."""
    sdk = import_optional("mcp.server.mcpserver", "mcp", "mcp")
    types = import_optional("mcp.types", "mcp", "mcp")
    server: MCPServer = sdk.MCPServer("askance", instructions=INSTRUCTIONS, version=__version__, log_level="ERROR")
    reads = types.ToolAnnotations(read_only_hint=True)
    buys = types.ToolAnnotations(read_only_hint=False, destructive_hint=False)
    tool_error = import_optional("mcp.server.mcpserver.exceptions", "mcp", "mcp").ToolError

    def tool(annotations: Any) -> Callable[[Tool], Tool]:
        """Return a decorator that adds a function as a tool. The agent gets the sentences of askance's errors."""

        def add(function: Tool) -> Tool:
            @wraps(function)
            def told(*given: Any, **named: Any) -> dict[str, Any]:
                try:
                    return function(*given, **named)
                except AskanceError as error:
                    raise tool_error(str(error)) from None

            server.tool(annotations=annotations)(told)
            return function

        return add

    @tool(buys)
    def evaluate(
        data: str,
        model: str | None = None,
        checklist: str | None = None,
        judge: str | None = None,
        prompt: str | None = None,
        limit: int | None = None,
        buy: bool = False,
    ) -> dict[str, Any]:
        """Judge the outputs in a data file with a checklist, or with a kept judge (a run's directory or judge.yaml).

        Without buy it says what that would take. With buy it gives scores, coverage and, where people rated the
        outputs, agreement with them.
        """

        def job(caps: dict[str, Any]) -> Any:
            options = {**allowed.of(EvaluateOptions, limit=limit), **caps}
            if judge is None:
                return prepare(data, checklist, model, prompt, options)
            if checklist is not None or prompt is not None:
                raise InputError("judge: it brings its own checklist and prompt; leave these out.")
            return load_judge(judge).prepare(data, model, options)

        if not buy:
            return {"estimate": asdict(job({}).estimate()), "bought": 0}
        with allowed.buying() as (caps, spent):
            found = job(caps).run(spent)
        return {"result": found.to_dict(), "bought": spent.calls}

    @tool(buys)
    def align(
        data: str,
        model: str,
        checklist: str | None = None,
        prompt: str | None = None,
        run: str = "run",
        max_iterations: int | None = None,
        buy: bool = False,
    ) -> dict[str, Any]:
        """Have a judge learn to score like the people who rated the data: questions from their comments, and edits.

        Without buy it says what that would take at most. With buy the run is made in the server's folder for runs,
        under the name given, and its result is told; the same call again goes on with a run that was interrupted.
        """

        def job(caps: dict[str, Any]) -> Any:
            options = {**allowed.of(AlignOptions, max_iterations=max_iterations), **caps}
            return alignment.prepare(data, checklist, model, prompt, options)

        if not buy:
            ready = job({})
            found = estimate_run(ready)
            upper_limit = found.most(ready.options.max_iterations)
            return {
                "estimate": asdict(found.fixed),
                **typical_record(found.typical),
                "calls_at_most": upper_limit,
                "bought": 0,
            }
        place = allowed.run(run)
        with allowed.buying() as (caps, spent):
            done = run_and_report(job(caps), place, spent)
        return {"result": done.result, "run": str(place), "bought": spent.calls}

    @tool(reads)
    def explain(run: str, sentence: str) -> dict[str, Any]:
        """Say where a sentence of a run's prompt, or a learned question (by its id or words), comes from: the edit, its
        lessons, the disagreements and comments behind them, and what the acceptance test said."""
        return reason_for(build_graph(Path(run)), sentence).to_dict()

    @tool(reads)
    def result_of(run: str) -> dict[str, Any]:
        """The result of a finished run: figures with intervals, what was learned, and whether to adopt it."""
        return RunDirectory(run).read_result().to_dict()

    @tool(buys)
    def propose_questions(
        task: str, model: str, dimensions: list[str] | None = None, buy: bool = False
    ) -> dict[str, Any]:
        """Have a model write a checklist of yes/no questions for a task. Nothing is written to a file.

        Without buy it says how many calls that takes at most.
        """
        options = allowed.of(WriterOptions)
        if not buy:
            upper_limit = WriterOptions.model_validate(options).max_requirements
            return {"calls_at_most": 1 + upper_limit * (1 + MOST_PARTS), "bought": 0}
        with allowed.buying() as (caps, spent):
            found = write_questions(task, model=model, dimensions=dimensions or (), watcher=spent, **options | caps)
        return {"checklist": found.model_dump(mode="json"), "bought": spent.calls}

    return server
