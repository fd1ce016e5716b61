"""Public test doubles: models and a server that need no network, and a simulated world. Not for real results."""

from __future__ import annotations

from .scripted import Reply, ScriptedModel, as_answer
from .servers import FAULTS, FINAL, BatchServer, FaultyServer, ServedBatch, ServerReply, StandInServer, completion
from .simulated import SimulatedWorld
from .simulated_judge import SimulatedJudge
from .simulated_writer import Heeding, SimulatedWriter, WritersJudge, WritersWorld
from .vendors import VendorServer

__all__ = [
    "FAULTS",
    "FINAL",
    "BatchServer",
    "FaultyServer",
    "Heeding",
    "Reply",
    "ServedBatch",
    "ScriptedModel",
    "ServerReply",
    "SimulatedJudge",
    "SimulatedWorld",
    "SimulatedWriter",
    "StandInServer",
    "VendorServer",
    "WritersJudge",
    "WritersWorld",
    "as_answer",
    "completion",
]
