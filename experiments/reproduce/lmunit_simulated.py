"""A judge of a simulated world distilled into a scorer, by losses and by data; nothing in it is real.

    python -m askance.experiments.reproduce.lmunit_training simulated --size 3000 -o simulated.json
    python -m askance.experiments.reproduce.lmunit_training simulated --size 1000 --errors 2 0 \
        --pairs 300 --contrasts 400 --mixes -o mixes.json

The judge (:class:`askance.testing.SimulatedJudge`) answers four questions on each of many outputs. People rated some of
the training outputs. One scorer learns from people's ratings alone. With ``--errors`` the judge misses some faults and
takes harmless things for faults, so that its verdicts alone teach the wrong thing. With ``--pairs`` people also
compared two outputs each for articles that nobody judged; as in LMUnit, each loss then has its own data. With
``--contrasts`` an author rewrote outputs so that they fail or pass a question, and the judge decides whether they do.

Without ``--mixes`` each loss is used alone and all three together (Table 2). With ``--mixes`` the scorers differ by the
kinds of data they learn from (Table 3). The paper mixes published data sets. Its kinds are direct scores and
preferences, with and without made-up outputs.
"""

from __future__ import annotations

import argparse
import math
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import NormalDist, fmean
from typing import Any
from zlib import crc32

from ...evaluation.evaluate import evaluate
from ...evaluation.scoring import score_examples
from ...models.base import Answer, Request
from ...models.trained.network import open_network
from ...models.trained.scorer_file import read_scorer
from ...prompts.errors import InputError
from ...prompts.examples import Example
from ...stats.differences import Difference, difference_dict, paired_difference
from ...testing import SimulatedJudge, SimulatedWorld
from ...testing.scripted import as_answer
from ...testing.simulated import DIMENSION
from ...testing.simulated_texts import TOPICS
from ...training.contrasts import GRADES
from ...training.measured import ScorerReader, verdicts_of
from .common import ALL, ARMS, by_document, train_scorer, training_of

RATED = 0.2
"""Share of the simulated training outputs that people rated."""
TO_A_DOCUMENT = 3
"""Simulated outputs for one article."""
PAIRED = "p"
"""First letter of the ids of compared pairs and of their outputs."""
ERRORS = (4, 2)
"""Kinds of faults that a judge with errors misses, and kinds of harmless things that it takes for faults."""


@dataclass(frozen=True)
class Mix:
    """The data that a scorer learns from, and the weights of the losses."""

    ratings: bool = True
    verdicts: bool = True
    pairs: bool = True
    synthetic: bool = True
    weights: tuple[float, float, float] = ARMS[ALL]


ALONE = "all three, people alone"
"""The arm without the simulated judge's verdicts."""
FULL = "all of it"
DIRECT, PREFERENCES = (1.0, 1.0, 0.0), ARMS["preference"]
MIXES = {
    "ratings": Mix(verdicts=False, pairs=False, synthetic=False, weights=DIRECT),
    "ratings and verdicts": Mix(pairs=False, synthetic=False, weights=DIRECT),
    "pairs": Mix(ratings=False, verdicts=False, synthetic=False, weights=PREFERENCES),
    "synthetic pairs": Mix(ratings=False, verdicts=False, pairs=False, weights=PREFERENCES),
    "pairs and synthetic pairs": Mix(ratings=False, verdicts=False, weights=PREFERENCES),
    "ratings, verdicts and pairs": Mix(synthetic=False),
    FULL: Mix(),
}
"""The rows of Table 3 for which a simulated world has data."""


class SimulatedAuthor:
    """Rewrites outputs of a simulated world, and judges texts without an id as its judge would."""

    def __init__(self, judge: SimulatedJudge) -> None:
        """Take the judge, whose world the author shares."""
        self.judge = judge
        self.name, self.identity, self.slots = judge.name, judge.identity, judge.slots

    async def answer(self, request: Request) -> Answer:
        """Return an output for a grade, or a verdict. Raises ValueError for any other request."""
        *before, (role, text) = request.messages
        if (asked := _REWRITE.search(text)) is not None:
            return as_answer(_rewritten(asked["output"], text), request)
        named = _OUTPUT.sub(lambda found: f"Summary [s{crc32(found[0].encode()):08x}]: {found[0]}", text)
        return await self.judge.answer(replace(request, messages=(*before, (role, named))))


_OUTPUT = re.compile(r"^[\w ]+\.$", re.MULTILINE)
_REWRITE = re.compile(r"\nThe output:\n<\w+>\n(?P<output>[\w ]+)\.\n")


def _rewritten(output: str, asked: str) -> str:
    """Replace an output's sign of the asked topic: by a fault, by a harmless sign, or by nothing for the best grade."""
    topic = next(topic for topic in TOPICS if topic.question in asked)
    own = {kind.sign for kind in topic.kinds}
    signs = [sign for sign in output.split() if sign not in own and sign != "plain"]
    grade = next(number for number, words in enumerate(GRADES) if words in asked)
    if grade < len(GRADES) - 1:
        kinds = [kind for kind in topic.of(faults=grade < len(GRADES) // 2) if kind.sign not in output.split()]
        signs += [random.Random(f"{output}/{grade}").choice(kinds).sign] if kinds else []
    return f"{' '.join(signs) or 'plain'}."


def simulated(given: argparse.Namespace, place: Path) -> dict[str, Any]:
    """Distil a simulated judge, and correlate scorers and teacher with simulated people and with the truth. For several
    worlds also return the mean lead of the full scorer. Raises InputError for bad settings."""
    if given.seeds < 1:
        raise InputError(f"--seeds {given.seeds}: at least 1 world is needed.")
    worlds = [_of_world(given, place, seed) for seed in range(given.seed, given.seed + given.seeds)]
    rows = [found for found, _ in worlds]
    if len(worlds) == 1:
        return rows[0]
    pooled = {
        other: {what: _pooled([ahead[other][what] for _, ahead in worlds]) for what in measured}
        for other, measured in worlds[0][1].items()
    }
    return {"simulated": True, "worlds": rows, "mean over worlds": {_beyond(given): pooled}}


def _beyond(given: argparse.Namespace) -> str:
    return f"{FULL if given.mixes else ALL} beyond"


def _pooled(differences: Sequence[Difference]) -> dict[str, float | str | None]:
    """Pool differences of independent worlds: mean, normal interval and one-sided p-value.

    There is no p-value if the scorers order every world alike. There is no mean if a scorer scores all outputs of a
    world alike.
    """
    values = [each.value for each in differences if each.value is not None]
    errors = [each.standard_error for each in differences if each.standard_error is not None]
    if len(errors) < len(differences):
        return {"value": None, "reason": "a scorer scores all outputs of a world alike"}
    mean, error = fmean(values), math.hypot(*errors) / len(errors)
    if not error:
        return {"value": mean, "low": mean, "high": mean, "p_value": None, "worlds": len(values)}
    found = NormalDist(mean, error)
    low, high = (found.inv_cdf(share) for share in (0.025, 0.975))
    return {"value": mean, "low": low, "high": high, "p_value": found.cdf(0.0), "worlds": len(values)}


def _of_world(
    given: argparse.Namespace, place: Path, seed: int
) -> tuple[dict[str, Any], dict[str, dict[str, Difference]]]:
    """Return the figures of one world, and the lead of the full scorer over each other scorer."""
    errors = (0, 0) if given.errors is None else tuple(given.errors) or ERRORS
    if len(errors) != len(ERRORS):
        raise InputError("--errors takes two numbers, or none.")
    if given.mixes and not (given.pairs and given.contrasts):
        raise InputError("--mixes needs --pairs and --contrasts: it mixes them.")
    blind, punished = errors
    try:
        world = SimulatedWorld(size=given.size, seed=seed, blind=blind, punished=punished)
    except ValueError as error:
        raise InputError(f"--errors {blind} {punished}: {error}.") from error
    examples = []
    for count, row in enumerate(world.rows):
        document = f"Article [a{count // TO_A_DOCUMENT:05d}]."
        examples.append(Example.model_validate(row | {"input": document, "metadata": {"document": document}}))
    judge = SimulatedJudge(world, perfect=given.errors is None)
    judged = evaluate(examples, checklist=world.checklist, model=judge, no_cache=True)
    pairs, author = compared(world, given.pairs) or None, SimulatedAuthor(judge)
    divided = [_part_rated(example, count // TO_A_DOCUMENT) for count, example in enumerate(examples)]
    test = [example for example in divided if example.metadata["split"] == "test"]
    rows: list[dict[str, Any]] = []
    scores: dict[str, list[float | None]] = {}
    teacher: Mapping[str, Any] = {}
    prefix = f"{judge.name.replace('/', '-')}-{given.size}-{seed}-{blind}-{punished}-{given.pairs}-{given.contrasts}"
    losses = {name: Mix(weights=ARMS[name]) for name in given.arms}
    mixes, whole = (MIXES, FULL) if given.mixes else ({**losses, ALONE: Mix(verdicts=False)}, ALL)
    for name, mix in mixes.items():
        folder = place / f"{prefix}-{name.replace(' ', '-')}"
        training = train_scorer(
            given,
            divided if mix.ratings else [_unrated(each) for each in divided],
            world.checklist,
            folder,
            seed,
            mix.weights,
            judged.verdicts if mix.verdicts else None,
            pairs if mix.pairs else None,
            author if mix.synthetic and given.contrasts else None,
        ).data
        people, file = training["test"]["people"], read_scorer(folder)
        teacher = people.get("teacher", teacher)
        rows.append(
            {"scorer": name, **people["scorer"], "verdicts": training["test"].get("verdicts")}
            | {"calibration": training["calibration"], **training_of(training)}
        )
        said = verdicts_of(ScorerReader(open_network(folder, file)), test, world.checklist, file)
        scores[name] = [score.overall for score in score_examples(test, world.checklist, said)]
    for row in rows:
        row["kept"] = row["spearman"] / teacher["spearman"] if teacher else None
    differences: dict[str, dict[str, Difference]] = {}
    if whole in scores:
        rated, truth = (
            [example.human_score(DIMENSION) for example in test],
            [world.quality(example.id) for example in test],
        )
        differences = {
            other: {
                yardstick: paired_difference(other_scores, scores[whole], wanted, by_document(test))
                for yardstick, wanted in (("people", rated), ("truth", truth))
            }
            for other, other_scores in scores.items()
            if other != whole
        }
    facts = {"simulated": True, "judge": judge.name, "unseen": blind, "punished": punished, "pairs": given.pairs}
    facts |= {"contrasts": given.contrasts, "outputs": given.size, "teacher": teacher}
    shown = {
        other: {yardstick: difference_dict(lead) for yardstick, lead in leads.items()}
        for other, leads in differences.items()
    }
    return {**facts, "rows": rows, **({_beyond(given): shown} if shown else {})}, differences


def compared(world: SimulatedWorld, count: int) -> list[dict[str, Any]]:
    """Make ``count`` pairs of outputs for further articles. People prefer the output that they would score higher."""
    made, rows = world.make_rows(2 * count, PAIRED), []
    for number in range(count):
        row_a, row_b = made[2 * number : 2 * number + 2]
        margin = row_a["human"][DIMENSION] - row_b["human"][DIMENSION]
        rows.append(
            {
                "id": f"{PAIRED}{number:05d}",
                "input": f"Article [{PAIRED}{number:05d}].",
                "output_a": _said(row_a["output"]),
                "output_b": _said(row_b["output"]),
                "preferred": "a" if margin > 0 else "b" if margin < 0 else "tie",
            }
        )
    return rows


def _part_rated(example: Example, document: int) -> Example:
    """Remove the id from the text and set the part: a sixth validation, a sixth test. Of the rest only some keep
    people's ratings."""
    part = ("validation", "test", *4 * ("development",))[document % 6]
    unrated = part == "development" and document // 6 % round(1 / RATED) != 0
    shown = {"output": _said(example.output or ""), "metadata": {**example.metadata, "split": part}}
    return example.model_copy(update=shown | ({"human": {}} if unrated else {}))


def _unrated(example: Example) -> Example:
    """Remove people's scores from an example to learn from."""
    return example.model_copy(update={"human": {}}) if example.metadata["split"] == "development" else example


def _said(output: str) -> str:
    return output.split(": ")[1]
