"""AutoChecklist's questions from feedback, and its scorer. Stands alone: an environment with AutoChecklist runs it,
without askance.

``python autochecklist_peer.py TASK RESULT``, both JSON files; :mod:`~tests.measured.peers.beside` writes
the one and reads the other. Its refiners know no address but that of the provider they were written for, so they are
called here one by one, in the order and with the defaults of ``InductiveGenerator.generate``, and given our address;
its embeddings have their address written in, and are asked of ours.
"""

from __future__ import annotations

import json
import sys
import urllib.request
from importlib.metadata import version
from pathlib import Path
from typing import Any

DOMAIN = "release notes"
SECONDS = 36_000


def begin(server: str, phase: str) -> None:
    """Say what the next calls are for."""
    urllib.request.urlopen(urllib.request.Request(f"{server}/phase/{phase}", method="POST")).read()


def embeddings_of(server: str) -> Any:
    """Return a function in place of AutoChecklist's ``get_embeddings``."""

    def get_embeddings(texts: list[str], model: str = "", api_key: str | None = None) -> Any:
        import numpy as np

        asked = json.dumps({"input": texts, "model": model}).encode()
        request = urllib.request.Request(f"{server}/v1/embeddings", asked, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as answer:
            return np.array([each["embedding"] for each in json.load(answer)["data"]])

    return get_embeddings


def learned(task: dict[str, Any], client: Any) -> tuple[Any, dict[str, int]]:
    """A checklist from the comments, and how many questions each step left."""
    from autochecklist import Deduplicator, InductiveGenerator, Selector, Tagger
    from autochecklist.refiners import deduplicator, selector

    deduplicator.get_embeddings = selector.get_embeddings = embeddings_of(task["server"])
    comments = [each["comment"] for each in task["learn"] if each["comment"]]
    generator = InductiveGenerator(model=task["model"], client=client)
    checklist = generator.generate(comments, domain=DOMAIN, skip_dedup=True, skip_tagging=True, skip_selection=True)
    steps = {"comments": len(comments), "written": len(checklist.items)}
    shared = {"model": task["model"], "client": client}
    if len(checklist.items) > 1:
        checklist = Deduplicator(similarity_threshold=generator.dedup_threshold, **shared).refine(checklist)
    steps["after repeats were merged"] = len(checklist.items)
    if checklist.items:
        checklist = Tagger(**shared).refine(checklist)
    steps["applicable and specific"] = len(checklist.items)
    if len(checklist.items) > generator.max_questions:
        chosen = Selector(
            max_questions=generator.max_questions,
            beam_width=generator.beam_width,
            observations=comments,
            classifier_model=task["model"],
            **shared,
        )
        checklist = chosen.refine(checklist)
    steps["selected"] = len(checklist.items)
    return checklist, steps


def judged(
    checklist: Any, scorer: Any, examples: list[dict[str, Any]]
) -> tuple[dict[str, float | None], dict[str, str]]:
    """Each example's share of questions answered yes, or None with the reason where the scorer gave no answer."""
    scores: dict[str, float | None] = {}
    missing: dict[str, str] = {}
    for each in examples:
        try:
            scores[each["id"]] = float(
                scorer.score(checklist, target=each["output"], input=each["input"]).primary_score
            )
        except Exception as error:
            scores[each["id"]] = None
            missing[each["id"]] = f"{type(error).__name__}: {error}"[:300]
    return scores, missing


def run(task: dict[str, Any]) -> dict[str, Any]:
    """Judge the test by the question to start from, or learn and then judge it."""
    from autochecklist import Checklist, ChecklistItem, ChecklistScorer, LLMHTTPClient

    client = LLMHTTPClient(provider="vllm", base_url=f"{task['server']}/v1", timeout=SECONDS)
    found: dict[str, Any] = {"packages": {"autochecklist": version("autochecklist")}}
    if task["method"] == "start":
        first = ChecklistItem(id="start", question=task["instructions"])
        checklist = Checklist(items=[first], source_method="feedback", generation_level="corpus")
    else:
        begin(task["server"], "learn")
        checklist, found["steps"] = learned(task, client)
        found["learned"] = [each.question for each in checklist.items]
    begin(task["server"], "test")
    scorer = ChecklistScorer(mode="batch", model=task["model"], client=client)
    found["scores"], found["missing"] = judged(checklist, scorer, task["test"])
    return found


if __name__ == "__main__":
    result = run(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
    Path(sys.argv[2]).write_text(json.dumps(result, indent=1), encoding="utf-8")
