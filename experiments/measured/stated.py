"""Price of a stated, a sampled and a hard probability of yes, held against log-probabilities.

Run ``python -m askance.experiments.measured.stated`` (the embedded 1.5B model; ten minutes on two quiet cores).
Questions written by hand ask for faults that the made-up news summaries are known to have or not, of the summary
alone. The model is asked
in two ways, and each reply is read in every way that it allows, so that the ways are compared on the same replies:

- ``alone, a word``: log-probabilities; the answer (hard); five samples, drawn from the log-probabilities 200 times.
- ``together, with a number``: log-probabilities at the answer's token; the number that is stated; the answer.

The model does not think before it answers. With ``--worlds N`` alone ``align`` is run in simulated worlds (house rules
that comments tell,
``simulated_world.py``), where the judge's probability is told in each way: as it is, stated in tens, stated as 0, 50
or 100, counted from five
samples, and as yes or no. Figures are of each run's own untouched test.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ...agents.asking import Asking, BatchedAsking, EachAsking, Reading
from ...evaluation.options import GatewayOptions
from ...evaluation.progress import Silent
from ...memory.run_directory import RunDirectory
from ...memory.verdict_store import VerdictStore
from ...models.base import Answer, Model, Request
from ...models.gateway import Gateway
from ...models.replies.yes_no import p_yes_at
from ...models.session import session
from ...optimizer.modes import align
from ...optimizer.runner import run_job
from ...prompts.checklist import Question
from ...prompts.examples import Example, load_examples
from ...prompts.prompt import Prompt
from ...stats.correlation import spearman
from ...stats.pass_fail import area_under_curve
from ...testing import SimulatedJudge, SimulatedWorld
from ...testing.scripted import as_answer
from ..command_line import RESULTS, machine, says_errors, write_result
from .simulated_world import COMMENTED, FIRST_SEED, UNSEEN

RESULT, SIMULATED = RESULTS / "stated.json", RESULTS / "stated_simulated.json"
DATA = Path(__file__).parents[1] / "made_up" / "news_summaries" / "examples.jsonl"
MODEL = "local/qwen2.5-coder-1.5b-instruct"
PROMPT = Prompt("Answer the question about this news summary.\n\nSummary: {output}\n\n{question}")
FAULTS = {
    "advice": ("speaks_to_reader", "no", "Does the summary give advice?"),
    "you": ("speaks_to_reader", "no", 'Does the summary say "you" or "your"?'),
    "date": ("no_date", "yes", "Does the summary give a date?"),
    "when": ("no_date", "yes", "Does the summary say when?"),
    "who": ("no_source", "yes", "Does the summary say who said so?"),
    "said": ("no_source", "yes", "Does the summary say that somebody said it?"),
    "opinion": ("opinion", "no", "Does the summary give an opinion?"),
    "judges": ("opinion", "no", "Does the summary say that something is good or bad?"),
}
"""Id to the fault that the question asks for, the answer that speaks for a summary, and the words."""
QUESTIONS = tuple(
    Question.model_validate({"id": name, "text": text, "good": good, "sees": "output"})
    for name, (_, good, text) in FAULTS.items()
)
SAMPLES, DRAWINGS = 5, 200
Said = dict[tuple[str, str], Reading]
"""Readings by example and question; a reply that cannot be read is not there."""


@dataclass(frozen=True)
class Way:
    """How questions are asked, and how the replies are read."""

    asked: Asking
    reads: Mapping[str, Asking]


def chosen(examples: Sequence[Example], limit: int) -> list[Example]:
    """As many examples with each fault as there are clean ones, or nearly: the first of each in the order of the
    data."""
    kinds: dict[str, list[Example]] = {}
    for each in examples:
        kinds.setdefault(" ".join(each.metadata["faults"]), []).append(each)
    kinds = {name: some for name, some in kinds.items() if " " not in name}  # one fault at most
    turns = [some[place] for place in range(limit) for some in kinds.values() if place < len(some)]
    return turns[:limit]


def ways() -> dict[str, Way]:
    """The ways of asking, by name."""
    word = EachAsking(PROMPT, QUESTIONS, False, True, 0.0, 42)
    together = BatchedAsking(PROMPT, QUESTIONS, False, True, 0.0, 42, 42, stated=True)
    return {
        "alone, a word": Way(word, {"logprob": word}),
        "together, with a number": Way(together, {"logprob": together, "stated": replace(together, by_number=True)}),
    }


async def said(gateway: Gateway, model: Model, way: Way, examples: Sequence[Example]) -> tuple[dict[str, Said], float]:
    """Read the replies in each way; also the tokens that one verdict took to write."""
    found: dict[str, Said] = {name: {} for name in way.reads}
    written = 0
    for example in examples:
        for ask in way.asked.asks(model.identity, example, 0, 0):
            answer = await gateway.ask("judge", model, ask.request())
            written += answer.completion_tokens
            for name, reader in way.reads.items():
                try:
                    readings = reader.read(ask, answer)
                except ValueError:
                    continue
                found[name] |= {(example.id, question): reading for question, reading in readings.items()}
    return found, written / (len(examples) * len(QUESTIONS))


def figures(p_yes: Mapping[tuple[str, str], float], examples: Sequence[Example]) -> dict[str, Any]:
    """Mean area under the curve of the questions, each against its own fault, and Spearman of the mean P(good) with
    people."""
    areas = {}
    for name, (fault, good, _) in FAULTS.items():
        rows = [each for each in examples if (each.id, name) in p_yes]
        scores = [p_yes[each.id, name] if good == "yes" else 1 - p_yes[each.id, name] for each in rows]
        areas[name] = area_under_curve(scores, [float(fault not in each.metadata["faults"]) for each in rows]).value
    there = [area for area in areas.values() if area is not None]
    whole = [each for each in examples if all((each.id, name) in p_yes for name in FAULTS)]
    means = [
        sum(
            p_yes[each.id, name] if good == "yes" else 1 - p_yes[each.id, name] for name, (_, good, _) in FAULTS.items()
        )
        for each in whole
    ]
    people = [float(each.human["overall"][0]) for each in whole]
    return {
        "coverage": len(p_yes) / (len(examples) * len(FAULTS)),
        "mean_area": sum(there) / len(there) if there else None,
        "areas": areas,
        "spearman": spearman(means, people).value,
        "values": len({round(each, 4) for each in p_yes.values()}),
    }


def read_in_every_way(found: Mapping[str, Said], examples: Sequence[Example]) -> dict[str, Any]:
    """The figures of log-probabilities, of numbers, of answers, and of samples."""
    rows = {
        name: figures({place: reading.p_yes for place, reading in read.items() if reading.p_yes is not None}, examples)
        for name, read in found.items()
    }
    answered = found["stated"] if "stated" in found else found["logprob"]
    answers = {place: float(reading.answer) for place, reading in answered.items() if reading.answer is not None}
    rows["hard"] = figures(answers, examples)
    if "stated" in found:
        both = found["stated"].keys() & found["logprob"].keys()
        rows["stated_beside_logprob"] = {
            "spearman": spearman(
                *([found[name][place].p_yes for place in both] for name in ("stated", "logprob"))
            ).value,
            "n": len(both),
        }
        return rows
    chance = np.random.default_rng(0)
    known = {place: reading.p_yes for place, reading in found["logprob"].items() if reading.p_yes is not None}
    drawn = [
        figures({place: chance.binomial(SAMPLES, p) / SAMPLES for place, p in known.items()}, examples)
        for _ in range(DRAWINGS)
    ]
    for name in ("coverage", "mean_area", "spearman"):
        there = [each[name] for each in drawn if each[name] is not None]
        rows.setdefault("sampled", {})[name] = float(np.mean(there)) if there else None
    return rows


TOLD: dict[str, Callable[[float, random.Random], float]] = {
    "logprob": lambda p, chance: p,
    "stated in tens": lambda p, chance: round(10 * p) / 10,
    "stated as 0, 50 or 100": lambda p, chance: round(2 * p) / 2,
    "sampled": lambda p, chance: sum(chance.random() < p for _ in range(SAMPLES)) / SAMPLES,
    "hard": lambda p, chance: float(p >= 0.5),
}
"""Maps a judge's probability of yes to the number that it tells."""


class TellingJudge(SimulatedJudge):
    """A judge of a simulated world that tells its probability in one of the ways."""

    def __init__(self, world: SimulatedWorld, way: str) -> None:
        super().__init__(world, name=f"simulated/{way}")
        self._told = TOLD[way]

    async def answer(self, request: Request) -> Answer:
        """As the simulated judge, with the probability of a verdict as it is told."""
        answer = await super().answer(request)
        if len(answer.logprobs or ()) != 1 or not request.parameters.top_logprobs:
            return answer
        p_yes = p_yes_at(answer.logprobs[0][1]) if answer.logprobs else None
        if p_yes is None:
            return answer
        return as_answer(self._told(p_yes, random.Random(request.key)), request)


def gains(way: str, worlds: int) -> dict[str, Any]:
    """Start, end and gain of ``align``: mean Spearman with people on each run's own test."""
    parameters: dict[str, Any] = {**COMMENTED, **UNSEEN}
    rows = []
    for seed in range(FIRST_SEED, FIRST_SEED + worlds):
        world = SimulatedWorld(seed=seed, **parameters)
        settings = {"embedder": "words", "resamples": 400, "seed": seed, "mode": "each", "update": "auto"}
        with tempfile.TemporaryDirectory() as folder:
            job = align.prepare(world.rows, world.checklist, TellingJudge(world, way), world.prompt, settings)
            found = run_job(job, RunDirectory(Path(folder)), Silent(), []).result
        start, end = (found[side]["test"]["spearman"] or 0.0 for side in ("baseline", "best"))
        rows.append((start, end, end - start))
    start, end, gain = np.array(rows).T
    drawn = np.random.default_rng(0).choice(gain, (2_000, len(gain))).mean(axis=1)
    low, high = (float(each) for each in np.quantile(drawn, [0.025, 0.975]))
    means = {"start": float(start.mean()), "end": float(end.mean()), "gain": float(gain.mean())}
    return {"worlds": worlds, **means, "low": low, "high": high}


async def measured(limit: int, cache: str, model: str) -> dict[str, Any]:
    """Ask in each way and read the replies."""
    examples = chosen(load_examples(DATA), limit)
    rows: dict[str, Any] = {}
    with VerdictStore(cache) as store:
        async with session(GatewayOptions.model_validate({}), store) as (models, gateway):
            for name, way in ways().items():
                found, tokens = await said(gateway, models.get(model), way, examples)
                rows[name] = {"tokens_written_a_verdict": round(tokens, 1), **read_in_every_way(found, examples)}
                print(name, rows[name], flush=True)
    return {"examples": len(examples), "questions": len(QUESTIONS), "ways": rows}


@says_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and write the result."""
    parser = argparse.ArgumentParser(prog=f"python -m {__spec__.name}", description=__doc__)
    parser.add_argument("--limit", type=int, default=24, help="summaries that are judged")
    parser.add_argument("--model", default=MODEL)
    parser.add_argument("--cache", default=":memory:", help="a store of answers: what is in it is not asked again")
    parser.add_argument(
        "--worlds", type=int, default=0, help="simulated worlds to run in, in place of the embedded model"
    )
    parser.add_argument("-o", "--output", type=Path)
    given = parser.parse_args(arguments)
    if given.worlds:
        told = {}
        for way in TOLD:
            told[way] = gains(way, given.worlds)
            print(way, told[way], flush=True)
        command = f"python -m {__spec__.name} --worlds {given.worlds}"
        write_result(given.output or SIMULATED, {"command": command, "ways": told})
        return 0
    found = asyncio.run(measured(given.limit, given.cache, given.model))
    command = f"python -m {__spec__.name} --limit {given.limit}"
    write_result(given.output or RESULT, {"command": command, "model": given.model, **found, "machine": machine()})
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
