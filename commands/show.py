"""``askance show``."""

from __future__ import annotations

from pathlib import Path

import click

from ..memory.run_directory import RunDirectory
from ..optimizer.runner import RunResult
from .output import echo_json
from .tables import run_summary
from .why import tell_why, write_graph


@click.command(name="show")
@click.argument("run")
@click.option("--diff", is_flag=True, help="Print the changes of the prompt instead.")
@click.option("--why", "sentence", metavar="SENTENCE", help="Say where a sentence of the prompt comes from.")
@click.option(
    "--graph", "file", metavar="FILE", help="Write the graph from disagreements to versions: .json or .graphml."
)
@click.option("--json", "as_json", is_flag=True, help="Print result.json; with --why the answer as JSON.")
def command(run: str, diff: bool, sentence: str | None, file: str | None, as_json: bool) -> None:
    """Show what the run in the directory RUN came to.

    --why and --graph also work while the run is not finished.
    """
    if (diff, sentence is not None, file is not None).count(True) > 1:
        raise click.UsageError("--diff, --why and --graph do not go together.")
    if sentence is not None:
        tell_why(run, sentence, as_json=as_json)
        return
    if file is not None:
        write_graph(run, file)
        return
    directory = RunDirectory(run)
    directory.read_config()
    done = RunResult(directory.path, directory.read_result())
    if as_json:
        echo_json(done.result)
    elif diff:
        click.echo((Path(run) / "changes.diff").read_text(encoding="utf-8"), nl=False)
    else:
        run_summary(done)
