"""Public test doubles: models and a server that need no network, and a simulated world; not for real results."""

from __future__ import annotations

from .scripted import Reply, ScriptedModel, as_answer
from .servers import ServerReply, StandInServer, completion
from .simulated import SimulatedWorld
from .simulated_judge import SimulatedJudge

__all__ = [
    "Reply",
    "ScriptedModel",
    "ServerReply",
    "SimulatedJudge",
    "SimulatedWorld",
    "StandInServer",
    "as_answer",
    "completion",
]
