"""Test doubles of askance's own tests; those that users' tests need are in ``askance.testing``."""

from __future__ import annotations

from .servers import FAULTS, FINAL, BatchServer, FaultyServer, ServedBatch
from .simulated_writer import Heeding, SimulatedWriter, WritersJudge, WritersWorld
from .vendors import VendorServer

__all__ = [
    "FAULTS",
    "FINAL",
    "BatchServer",
    "FaultyServer",
    "Heeding",
    "ServedBatch",
    "SimulatedWriter",
    "VendorServer",
    "WritersJudge",
    "WritersWorld",
]
