"""Public test doubles: models and a server that need no network, and a simulated world. Not for real results."""

from __future__ import annotations

from .batch_server import BatchServer, ServedBatch
from .faulty_server import FAULTS, FINAL, FaultyServer
from .scripted import Reply, ScriptedModel, as_answer
from .simulated import SimulatedWorld
from .simulated_judge import SimulatedJudge
from .stand_in_server import ServerReply, StandInServer, completion
from .vendors import VendorServer

__all__ = [
    "FAULTS",
    "FINAL",
    "BatchServer",
    "FaultyServer",
    "Reply",
    "ServedBatch",
    "ScriptedModel",
    "ServerReply",
    "SimulatedJudge",
    "SimulatedWorld",
    "StandInServer",
    "VendorServer",
    "as_answer",
    "completion",
]
