"""LMUnit's Table 4 on a base of 135 million parameters: does it score better with rationales, and after DPO?

    python -m askance.experiments.reproduce.lmunit_rationales --folder DIR -o rationales.json

The data are made up: orders of three to five goods, and answers that confirm them. Half of the answers leave one thing
out. By a second draw, half of the answers add one thing that was not ordered. The question is whether everything is
confirmed. A clerk without mistakes answers it, with a reason that lists for each thing whether it is there. One scorer
learns from the clerk's answers, another also from the reasons. The second scorer answers at once, or after its own
rationale, before and after DPO on its own sampled rationales (about two hours on one core).
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...evaluation.scoring import human_targets, measure, score_examples
from ...models.trained.network import open_network
from ...models.trained.scorer_file import read_scorer
from ...prompts.checklist import Checklist, Question
from ...prompts.examples import Example
from ...prompts.prompt import Prompt
from ...prompts.verdicts import Verdict, VerdictColumns
from ...stats.differences import difference_dict, paired_difference
from ...stats.resampling import Resampling
from ...training.measured import ScorerReader, verdicts_of
from ...training.mixture import asked_with
from ...training.scorer_folder import WITHOUT_DPO
from ...training.train import train
from ..command_line import RESULTS, says_errors, write_result
from .common import training_of

RESULT = RESULTS / "lmunit_rationales.json"
_WORDS = (
    "tea rice milk soap flour honey salt bread butter jam oats eggs beans corn plums nuts sugar cheese apples pears "
    "figs ham fish cream yeast mint leeks onions garlic lemons"
)
GOODS = _WORDS.split()
FEWEST, MOST = 3, 5
"""Fewest and most goods of an order."""
QUESTION = Question(id="all", text="Does the answer confirm everything that was ordered?")
CHECKLIST = Checklist(questions=(QUESTION,))
PROMPT = Prompt("Read an order and the answer to it.")
VALIDATION, TEST = 60, 80
TOKENS = 40
"""Most tokens of a rationale; a rationale on five goods has about 25."""
ANSWERS = "answers alone"
REASONS = "answers and reasons"


def order(number: int, part: str) -> tuple[Example, Verdict]:
    """Make an order with its answer, and the clerk's verdict. Half of the answers leave one thing out."""
    chance = random.Random(f"0/{number}")
    wanted = chance.sample(GOODS, chance.randint(FEWEST, MOST))
    sent, is_right = list(wanted), chance.random() < 0.5
    other_goods = [thing for thing in GOODS if thing not in wanted]
    if not is_right:
        sent.remove(chance.choice(sent))
    if chance.random() < 0.5:
        sent.append(chance.choice(other_goods))
    chance.shuffle(sent)
    example = Example(
        id=f"o{number:04d}",
        input=f"Please send {_listed(wanted)}.",
        output=f"We will send {_listed(sent)}.",
        metadata={"split": part},
        human={"overall": (float(is_right),)} if part == "test" else {},
    )
    why = ", ".join(f"{thing} {'yes' if thing in sent else 'no'}" for thing in wanted)
    return example, Verdict(
        example.id, QUESTION.id, "made-up/clerk", "", is_right, float(is_right), "logprob", f"{why}."
    )


def _listed(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} and {words[-1]}"


def made(size: int) -> tuple[list[Example], list[Verdict]]:
    """Make ``size`` examples for training, further ones for validation and test, and the clerk's verdicts."""
    parts = [*size * ["development"], *VALIDATION * ["validation"], *TEST * ["test"]]
    examples, verdicts = zip(*(order(number, part) for number, part in enumerate(parts)), strict=True)
    return [*examples], [*verdicts]


@says_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Train both scorers and ask them in every way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True, help="of the scorers; what is there is not trained again")
    parser.add_argument("--base", default="smollm2-135m-instruct")
    parser.add_argument("--size", type=int, default=160, help="orders to learn from")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=4)
    parser.add_argument("--learning-rate", type=float, default=5e-4)
    parser.add_argument("--rationales", type=int, default=4, help="drawn for each order")
    parser.add_argument("--rationales-from", choices=["scorer", "writer", "refined"], default="scorer")
    parser.add_argument("--writer", metavar="MODEL", help="writes or revises them: the teacher of Table 4")
    parser.add_argument("-o", "--output", type=Path, default=RESULT)
    given = parser.parse_args(arguments)
    write_result(given.output, {"command": f"python -m {__spec__.name} --folder DIR", **table(given)})
    return 0


def table(given: argparse.Namespace) -> dict[str, Any]:
    """Return the table. A row has training data, way of asking, and agreement with the right answers on test."""
    examples, verdicts = made(given.size)
    test = [example for example in examples if example.metadata["split"] == "test"]
    trainings = {}
    verdicts_by_way: dict[str, VerdictColumns] = {}
    rows = []
    for name, is_reasoned in ((ANSWERS, False), (REASONS, True)):
        folder = given.folder / name.replace(" ", "-")
        taught = verdicts if is_reasoned else [replace(verdict, explanation=None) for verdict in verdicts]
        reasoned: dict[str, Any] = {"rationales": given.rationales, "rationale_tokens": TOKENS} if is_reasoned else {}
        if is_reasoned and given.writer is not None:
            reasoned |= {"rationales_from": given.rationales_from, "writer": given.writer}
        training = train(
            examples,
            checklist=CHECKLIST,
            output=folder,
            base=given.base,
            prompt=PROMPT,
            verdicts=VerdictColumns(taught),
            epochs=given.epochs,
            batch_size=given.batch_size,
            learning_rate=given.learning_rate,
            longest=192,
            patience=9,
            resamples=1000,
            loss_weights=(1.0, 1.0, 0.0),
            trust_verdicts=True,
            progress=True,
            **reasoned,
        ).data
        trainings[name] = training_of(training) | {"rationales": training.get("rationales")}
        network = open_network(folder, read_scorer(folder))
        for tokens in (None, TOKENS)[: 1 + is_reasoned]:
            reader = ScorerReader(network, asked_with(PROMPT), tokens)
            verdicts_by_way[_way(name, tokens)] = verdicts_of(reader, test, CHECKLIST)
        if (before := training["test"]["people"].get(WITHOUT_DPO)) is not None:
            gained = training["test"]["beyond"][WITHOUT_DPO]
            rows.append({"scorer": _way(name, TOKENS, "before DPO"), **before, "dpo": gained})
    targets = human_targets(test, CHECKLIST)
    scores = {name: score_examples(test, CHECKLIST, columns) for name, columns in verdicts_by_way.items()}
    rows += [
        {"scorer": name, **measure(scores_of_way, targets, test, resamples=1000, seed=0).to_dict()}
        for name, scores_of_way in scores.items()
    ]
    wanted = [targets.overall(example.id) for example in test]
    values = {name: [targets.score(score) for score in of_way] for name, of_way in scores.items()}
    first, *other_ways = values
    differences = {
        name: difference_dict(paired_difference(values[first], values[name], wanted, Resampling(None, 1000, seed=0)))
        for name in other_ways
    }
    return {
        "outputs": len(examples),
        "base": given.base,
        "rows": rows,
        f"beyond {first}": differences,
        "trainings": trainings,
    }


def _way(name: str, tokens: int | None, when: str = "") -> str:
    asked = "at once" if tokens is None else "after a rationale"
    return ", ".join(each for each in (name, f"asked {asked}", when) if each)


if __name__ == "__main__":
    raise SystemExit(main())
