"""A judge of the simulated world distilled into a scorer, with each loss alone and with all three; nothing in it is real.

    python -m askance.experiments.reproduce.lmunit_training simulated --size 3000 -o simulated.json

The judge (:class:`askance.testing.SimulatedJudge`) answers four questions on each of many outputs; people rated some of those that
are trained on, from which alone a scorer learns, too. With ``--errors`` the judge does not see some faults and takes harmless
things for faults, so that its verdicts alone teach the wrong thing. With ``--pairs`` people also said which of two outputs for one
article is better, of articles that nobody judged: as in LMUnit, each loss then has something that the others have not.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...evaluation.evaluate import evaluate
from ...evaluation.scoring import score_examples
from ...models.trained.network import open_network
from ...models.trained.scorer_file import read_scorer
from ...prompts.errors import InputError
from ...prompts.examples import Example
from ...stats.differences import difference_dict, paired_difference
from ...testing import SimulatedJudge, SimulatedWorld
from ...testing.simulated import DIMENSION
from ...training.measured import ScorerReader, verdicts_of
from .lmunit_scorers import ALL, ARMS, by_document, train_scorer, training_of

ALONE = "all three, people alone"
"""Beside a simulated judge: without its verdicts."""
RATED = 0.2
"""Share of the simulated outputs for training that people rated."""
TO_A_DOCUMENT = 3
"""Simulated outputs for one article."""
PAIRED = "p"
"""What the ids of pairs that people compared begin with, and those of their outputs."""
ERRORS = (4, 2)
"""Kinds of faults that a judge with errors does not see, and kinds of harmless things that it takes for faults."""


def simulated(given: argparse.Namespace, place: Path) -> dict[str, Any]:
    """A simulated judge distilled: the scorer's and its teacher's correlation with simulated people.

    Raises:
        InputError: Bad settings.
    """
    errors = (0, 0) if given.errors is None else tuple(given.errors) or ERRORS
    if len(errors) != len(ERRORS):
        raise InputError("--errors takes two numbers, or none.")
    blind, punished = errors
    try:
        world = SimulatedWorld(size=given.size, seed=given.seed, blind=blind, punished=punished)
    except ValueError as error:
        raise InputError(f"--errors {blind} {punished}: {error}.") from error
    examples = []
    for count, row in enumerate(world.rows):
        document = f"Article [a{count // TO_A_DOCUMENT:05d}]."
        examples.append(Example.model_validate(row | {"input": document, "metadata": {"document": document}}))
    judge = SimulatedJudge(world, perfect=given.errors is None)
    judged = evaluate(examples, checklist=world.checklist, model=judge, no_cache=True)
    pairs = compared(world, given.pairs) or None
    divided = [_part_rated(each, count // TO_A_DOCUMENT) for count, each in enumerate(examples)]
    test = [each for each in divided if each.metadata["split"] == "test"]
    rows: list[dict[str, Any]] = []
    scores: dict[str, list[float | None]] = {}
    teacher: Mapping[str, Any] = {}
    of_world = f"{judge.name.replace('/', '-')}-{given.size}-{given.seed}-{blind}-{punished}-{given.pairs}"
    for name in [*given.arms, ALONE]:
        folder = place / f"{of_world}-{name.replace(' ', '-')}"
        verdicts, weights = (None, ARMS[ALL]) if name == ALONE else (judged.verdicts, ARMS[name])
        found = train_scorer(given, divided, world.checklist, folder, given.seed, weights, verdicts, pairs).data
        people, file = found["test"]["people"], read_scorer(folder)
        teacher = people.get("teacher", teacher)
        rows.append(
            {"scorer": name, **people["scorer"], "kept": people["scorer"]["spearman"] / teacher["spearman"]}
            | {"verdicts": found["test"].get("verdicts"), "calibration": found["calibration"], **training_of(found)}
        )
        said = verdicts_of(ScorerReader(open_network(folder, file)), test, world.checklist, file)
        scores[name] = [each.overall for each in score_examples(test, world.checklist, said)]
    ahead = {}
    if ALL in scores:
        rated, truth = [each.human_score(DIMENSION) for each in test], [world.quality(each.id) for each in test]
        ahead = {
            f"{ALL} beyond": {
                other: {
                    what: difference_dict(paired_difference(other_scores, scores[ALL], wanted, by_document(test)))
                    for what, wanted in (("people", rated), ("truth", truth))
                }
                for other, other_scores in scores.items()
                if other != ALL
            }
        }
    about = {"simulated": True, "judge": judge.name, "unseen": blind, "punished": punished, "pairs": given.pairs}
    about |= {"outputs": given.size, "teacher": teacher}
    return {**about, "rows": rows, **ahead}


def compared(world: SimulatedWorld, count: int) -> list[dict[str, Any]]:
    """Which of two outputs people like better, of so many articles of their own: the one that they would score higher."""
    made, rows = world.make_rows(2 * count, PAIRED), []
    for number in range(count):
        one, other = made[2 * number : 2 * number + 2]
        by = one["human"][DIMENSION] - other["human"][DIMENSION]
        rows.append(
            {
                "id": f"{PAIRED}{number:05d}",
                "input": f"Article [{PAIRED}{number:05d}].",
                "output_a": _said(one["output"]),
                "output_b": _said(other["output"]),
                "preferred": "a" if by > 0 else "b" if by < 0 else "tie",
            }
        )
    return rows


def _part_rated(example: Example, document: int) -> Example:
    """Without its id in the text. A sixth of the documents is validation and a sixth test; people rated a share of the others."""
    part = ("validation", "test", *4 * ("development",))[document % 6]
    unrated = part == "development" and document // 6 % round(1 / RATED) != 0
    shown = {"output": _said(example.output or ""), "metadata": {**example.metadata, "split": part}}
    return example.model_copy(update=shown | ({"human": {}} if unrated else {}))


def _said(output: str) -> str:
    """A summary without the id that it begins with."""
    return output.split(": ")[1]
