"""The outputs of a run, to be labelled: what its accepted prompt wrote, each beside all that its input came with."""

from __future__ import annotations

from pathlib import Path

from ..memory.run_directory import OUTPUTS_FILE, RunDirectory
from ..prompts.errors import InputError
from ..prompts.examples import Example
from ..prompts.messages import told
from ..prompts.tables import read_rows


def outputs_of_run(run: Path) -> list[Example]:
    """Return the outputs of the run in a directory, with the ``version`` of the prompt in their metadata.

    Labels and comments in the run's data are left out: they are about other outputs. Raises InputError where there is
    no run, it wrote no outputs, or a file of it is damaged.
    """
    directory = RunDirectory(run)
    command, file = directory.read_config()["config"].get("command"), run / OUTPUTS_FILE
    if not file.is_file():
        why = "it is not finished" if command == "tune" else f"a run of {command} writes none"
        raise InputError(f"{run}: there are no outputs of this run to be labelled, as {why}.")
    known = {each.id: each for each in directory.read_inputs()[0]}
    found = []
    for line, row in read_rows(file):
        if row.get("id") not in known or "version" not in row:
            raise InputError(f"{file}, line {line}: not a row of this run; not written by askance, or damaged.")
        if row.get("output") is not None:
            example = known[row["id"]]
            metadata = {**example.metadata, "version": row["version"]}
            new = {"output": told(row["output"]), "human": {}, "comment": (), "metadata": metadata}
            found.append(example.model_copy(update=new))
    return found
