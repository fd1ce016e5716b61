"""A stand-in for a judge's endpoint in a process of its own, so that a client's processor time can be told apart.

Run ``python -m askance.experiments.measured.stand_in``: it prints its address and serves until its standard input is closed,
so it ends with the process that started it. The answers depend on the question and the judged text alone.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from typing import Any

from ...testing import StandInServer, completion

DELAY = 0.02
"""Seconds that an answer takes."""
SPELLINGS = ("Yes", "yes", " Yes", "YES"), ("No", "no", " No", "NO")
SHARES = (0.9, 0.07, 0.02, 0.01)
"""How the probability of yes and of no is shared out among their spellings."""
OTHERS = ("The", "It", "In", "Based", "Not", "Question", "Un", "There", "This", "A", "**", "<", "Partially", "Answer")


def answer(body: Mapping[str, Any]) -> dict[str, Any]:
    """A completion with as many alternatives as were asked for, as a real server gives them."""
    asked = body["messages"][-1]["content"]
    p_yes = (int.from_bytes(sha256(asked.encode()).digest()[:4], "big") + 0.5) / 2**32
    content = completion(body, p_yes)
    wanted = body.get("top_logprobs", 0)
    if wanted:
        both = [
            (token, math.log(0.98 * p * share))
            for p, tokens in zip((p_yes, 1 - p_yes), SPELLINGS, strict=True)
            for token, share in zip(tokens, SHARES, strict=True)
        ]
        rest = [(token, math.log(0.01 / 2**place)) for place, token in enumerate(OTHERS, 1)]
        ranked = sorted(both + rest, key=lambda each: -each[1])[:wanted]
        top = [{"token": token, "logprob": value, "bytes": list(token.encode())} for token, value in ranked]
        content["choices"][0]["logprobs"] = {"content": [{**top[0], "top_logprobs": top}]}
        content["choices"][0]["message"]["content"] = top[0]["token"]
    return content


@contextmanager
def stand_in(delay: float = DELAY) -> Iterator[str]:
    """Start the server in another process; its address, for ``--api-base``.

    Raises:
        RuntimeError: It did not start.
    """
    command = [sys.executable, "-m", "askance.experiments.measured.stand_in", "--delay", str(delay)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            url = process.stdout.readline().strip()
            if not url:
                raise RuntimeError(f"the stand-in server did not start: {' '.join(command)}")
            yield url
        finally:
            process.stdin.close()
            process.wait(10)


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until standard input is closed."""
    parser = argparse.ArgumentParser(prog="python -m askance.experiments.measured.stand_in", description=__doc__)
    parser.add_argument("--delay", type=float, default=DELAY, help="seconds that an answer takes")
    delay = parser.parse_args(arguments).delay

    def script(body: Mapping[str, Any]) -> tuple[int, Any]:
        server.bodies.clear()  # nobody reads them, and 100,000 of them are large
        return 200, answer(body)

    with StandInServer(script, delay=delay) as server:
        print(server.url, flush=True)
        sys.stdin.read()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
