"""The child process that serves one GGUF file with llama.cpp on the loopback interface.

Run as ``python -m askance.models.embedded.server_process SETTINGS`` by `askance.models.embedded.servers`. The first and
only line on standard output is JSON: ``{"url": …}`` once the model is loaded, or ``{"error": …}``. Everything the
native library prints goes to standard error, which the parent points at a log file. The child ends when its standard
input ends, which happens however the parent ends.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

LOG_ERRORS_ONLY = 1
SLOTS = 2  # one request is under way at a time; `askance.models.embedded.servers.TwoSlots` chooses its slot
PROMPT_CACHE_MIB = 2048  # memory for the prefixes of earlier prompts; the least recently used go first
PR_SET_PDEATHSIG = 1


def load_model(settings: dict[str, Any]) -> tuple[object, str]:
    """Load the model and start answering; return the server, which must be kept alive, and its address. Raises
    ImportError without xllamacpp, and RuntimeError if llama.cpp refuses the file; the reason is on standard error."""
    llama = importlib.import_module("xllamacpp")
    params = llama.CommonParams()
    params.model.path = settings["path"]
    params.model_alias = {Path(settings["path"]).stem}
    params.port = 0  # the system chooses a free one
    params.n_parallel = SLOTS
    params.n_ctx = SLOTS * settings["context"]  # shared out among the slots
    params.cpuparams.n_threads = settings["threads"]
    params.cpuparams_batch.n_threads = settings["threads"]
    params.cache_ram_mib = PROMPT_CACHE_MIB  # llama.cpp's default is 8 GB
    params.slot_prompt_similarity = 0.0
    params.enable_reasoning = 0  # p_yes is read from the first token, so a thinking model must not think first
    params.verbosity = LOG_ERRORS_ONLY  # more would write the user's texts to the log
    params.offline = True
    params.ui = False
    params.endpoint_slots = False
    server = llama.Server(params)
    return server, str(server.listening_address)


def run(load: Callable[[], tuple[object, str]]) -> None:
    """Load, tell the parent, and serve until standard input ends. Does not return."""
    announce = _take_over_standard_output()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which then closes our input
    _die_with_parent(True)
    try:
        _kept_alive, url = load()
    except (ImportError, RuntimeError, OSError, ValueError, TypeError, AttributeError) as error:
        announce({"error": f"{error}"})
        sys.exit(1)
    _die_with_parent(False)
    announce({"url": url})
    while os.read(0, 4096):
        pass
    os._exit(0)  # a normal exit would first finish the answers under way, which nobody waits for


def _take_over_standard_output() -> Callable[[dict[str, str]], None]:
    """Keep standard output for our one line. Native code that writes to it now writes to standard error."""
    sys.stdout.flush()
    line = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def announce(message: dict[str, str]) -> None:
        with line:
            line.write(json.dumps(message) + "\n")

    return announce


def _die_with_parent(wanted: bool) -> None:
    """On Linux, let the kernel kill this process when the parent ends. It is needed while the model loads: this blocks
    the interpreter for seconds, so the end of standard input goes unnoticed. Afterwards it is switched off: the signal
    follows the *thread* that started this process, and that thread may end before the parent does."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL if wanted else 0, 0, 0, 0)


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    run(lambda: load_model(given))
