"""Where askance keeps what can be fetched or computed again: model weights, file identities, server logs."""

from __future__ import annotations

import os
from pathlib import Path


def cache_directory() -> Path:
    """Return the user's cache directory for askance; it is not created here.

    ``ASKANCE_CACHE`` wins, then ``XDG_CACHE_HOME``/askance (only if absolute, as the XDG base directory
    specification asks), then ``~/.cache/askance``.
    """
    own = os.environ.get("ASKANCE_CACHE")
    if own:
        return Path(own).expanduser().absolute()
    shared = os.environ.get("XDG_CACHE_HOME")
    if shared and Path(shared).is_absolute():
        return Path(shared) / "askance"
    return Path.home() / ".cache" / "askance"
