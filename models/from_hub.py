"""Fetch one file from a model hub, resumably, without a client library.

The file is public and fixed by revision and hash, so a ranged download is all that is needed. The hub
states the hash of a large file before it is fetched; a different one is found out then, not after a
gigabyte. The hub is Hugging Face, or the mirror named by ``HF_ENDPOINT``.
"""

from __future__ import annotations

import http.client
import os
import re
import ssl
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from email.message import Message
from pathlib import Path
from typing import IO

from .file_identity import CHUNK_BYTES, sha256_of_file
from .registry import HubFile, RegisteredModel
from .transfer import Progress, SourceFailedError

PROBE_SECONDS = 5.0
READ_SECONDS = 60.0
ATTEMPTS = 5
_BROKEN_CONNECTION = (
    urllib.error.URLError,
    TimeoutError,
    ConnectionError,
    ssl.SSLError,
    http.client.HTTPException,
)


def fetch_from_hub(
    model: RegisteredModel,
    source: HubFile,
    part: Path,
    progress: Progress,
    *,
    probe_seconds: float = PROBE_SECONDS,
) -> str:
    """Write the hub's file to ``part``, going on where an earlier call stopped, and return its sha256.

    Raises:
        SourceFailedError: the hub does not answer within ``probe_seconds``, refuses, holds other bytes than
        the
            registered ones, or the connection broke again and again.
    """
    endpoint = os.environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")
    url = f"{endpoint}/{source.repo}/resolve/{source.revision}/{source.filename}"
    stated = _stated_sha256(_probe(url, probe_seconds))
    if stated is not None and stated != model.sha256:
        raise SourceFailedError(
            f"the hub's {source.repo}/{source.filename} has sha256 {stated}, not the registered {model.sha256}"
        )
    _download(url, model.bytes, part, lambda done: progress(f"{model.name} from the hub", done, model.bytes))
    return sha256_of_file(part)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Stops at a redirect: the hub's own headers carry the hash, those of its storage do not."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> None:
        return None


def _probe(url: str, seconds: float) -> Message:
    """Return the headers the hub answers with; wait ``seconds`` at most, name look-up included."""
    outcome: list[Message | Exception] = []

    def ask() -> None:
        request = urllib.request.Request(url, method="HEAD")
        try:
            with urllib.request.build_opener(_NoRedirect).open(request, timeout=seconds) as answer:
                outcome.append(answer.headers)
        except urllib.error.HTTPError as error:
            error.close()
            outcome.append(error.headers if 300 <= error.code < 400 else error)
        except (OSError, http.client.HTTPException, ValueError) as error:
            outcome.append(error)

    thread = threading.Thread(target=ask, daemon=True)  # a name look-up cannot be timed out from inside
    thread.start()
    thread.join(seconds)
    if not outcome:
        raise SourceFailedError(f"the hub did not answer within {seconds:g} s")
    answer = outcome[0]
    if isinstance(answer, Exception):
        raise SourceFailedError(f"the hub could not be used ({_reason(answer)})")
    return answer


def _stated_sha256(headers: Message) -> str | None:
    etag = (headers.get("X-Linked-Etag") or "").removeprefix("W/").strip('"').lower()
    return etag if re.fullmatch("[0-9a-f]{64}", etag) else None


def _download(url: str, size: int, part: Path, on_progress: Callable[[int], None]) -> None:
    broken = ""
    for _ in range(ATTEMPTS):
        have = part.stat().st_size if part.exists() else 0
        if have == size:
            return
        if have > size:
            part.unlink()
            have = 0
        request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
        try:
            with urllib.request.urlopen(request, timeout=READ_SECONDS) as answer:
                have = have if answer.status == 206 else 0
                length = answer.headers.get("Content-Length")
                if length is not None and int(length) + have != size:
                    raise SourceFailedError(f"the hub's file has {int(length) + have} bytes, not the registered {size}")
                _append(answer, part, have, size, on_progress)
        except urllib.error.HTTPError as error:
            error.close()
            raise SourceFailedError(f"the hub refused the download ({_reason(error)})") from error
        except _BROKEN_CONNECTION as error:
            broken = _reason(error)
    if not part.exists() or part.stat().st_size != size:
        raise SourceFailedError(f"the download broke off {ATTEMPTS} times ({broken or 'too few bytes were sent'})")


def _append(answer: IO[bytes], part: Path, have: int, size: int, on_progress: Callable[[int], None]) -> None:
    with part.open("ab" if have else "wb") as file:
        on_progress(have)
        while have <= size and (chunk := answer.read(CHUNK_BYTES)):
            file.write(chunk)
            have += len(chunk)
            on_progress(have)


def _reason(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"HTTP {error.code}"
    return str(getattr(error, "reason", None) or error) or type(error).__name__
