"""Weights of a small real model, for the tests that need one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from askance.models.embedded.download import pulled
from askance.models.embedded.registry import RegisteredModel, resolve


@pytest.fixture(scope="session")
def weights() -> Path:
    """The file of a small model; a test that needs it is skipped, saying so, where there is none."""
    given = os.environ.get("ASKANCE_TEST_GGUF")
    if given:
        return Path(given)
    small = resolve("smollm2-135m-instruct")
    assert isinstance(small, RegisteredModel)
    path = pulled(small)
    if path is None:
        pytest.skip("needs a model: set ASKANCE_TEST_GGUF or pull smollm2-135m-instruct")
    return path
