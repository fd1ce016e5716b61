"""LMUnit's Table 2 on a small machine: a scorer trained with each loss alone and with all three together.

    python -m askance.experiments.reproduce.lmunit_training topical_chat --data topical_chat.jsonl -o topical_chat.json
    python -m askance.experiments.reproduce.lmunit_training simulated --size 3000 -o simulated.json

On people's scores (``topical_chat``, ``qags``, ``summeval``, ``helpsteer2``) every document is tested on once. The data
are divided into ``--folds`` by document. Each fold has its own scorer, which learned from the other folds with the
fold's number as its seed. So scores are standardised within a fold before they are pooled. The scorers are compared
with the base before training, the length of the output, and UniEval's published scores if the file has them.

With ``--teacher MODEL`` a judge is distilled in the same folds. It answers the questions on all outputs, with the whole
input. The scorers learn from its verdicts alone, from people alone, and from both. The result has the share of the
judge's correlation with people that each scorer keeps, and the processor time of a verdict.

``simulated`` is in ``lmunit_simulated.py``.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from ...evaluation.evaluate import evaluate
from ...models.base import Model
from ...models.trained.bases import find_base
from ...models.trained.network import Network, open_network, start_network
from ...models.trained.scorer_file import read_scorer
from ...prompts.checklist import Checklist, Question, load_checklist
from ...prompts.errors import AskanceError, InputError
from ...prompts.examples import Example
from ...prompts.prompt import default_prompt
from ...prompts.verdicts import Verdict
from ...stats.correlation import correlate, correlation_kernel, correlations_dict, statistic_dict
from ...stats.differences import difference_dict, paired_difference
from ...stats.resampling import Kernel, bootstrapped
from ...training.measured import ScorerReader
from ...training.mixture import TextOf, asked_with
from ...training.train import DEFAULT_BASE
from ..command_line import says_errors, write_result
from ..datasets import load_rated
from ..datasets.rated import DIMENSIONS
from .common import ALL, ARMS, CHECKLISTS, PUBLISHED, by_document, train_scorer, training_of
from .lmunit_simulated import ERRORS, simulated

TAUGHT, RATED_ALONE, BOTH = "the judge's verdicts", "people's scores", "both"
"""Sources that the scorers learn from if there is a teacher, with all three losses."""
THE_TEACHER = "the judge"
ASKED = {
    "topical_chat": {
        "naturalness": "Is the response natural, like something a person would say?",
        "coherence": "Does the response follow from the conversation?",
        "engagingness": "Is the response engaging?",
        "groundedness": "Does the response use the given fact?",
    },
    "qags": {"consistency": "Is every statement in the summary supported by the article?"},
    "summeval": {
        "coherence": "Is the summary coherent?",
        "consistency": "Is every statement in the summary supported by the article?",
        "fluency": "Is the summary fluent?",
        "relevance": "Does the summary hold what matters most in the article?",
    },
}
"""One question for each dimension, its unit test; HelpSteer2's are in its checklist."""
TURN, FACT, ARTICLE = 15, 15, 30
"""Words to keep of the last turn, the fact and the article; otherwise --longest would cut off turn and fact."""
SHORT, NEWS = 64, 192
"""Most tokens that are read. A news summary with its question and part of the article has about 130."""
WHOLE = "mean"
"""Name for the mean over the dimensions."""


@says_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Run one of the tables."""
    given = _parser().parse_args(arguments)
    if given.longest is None:
        given.longest = NEWS if given.dataset in ("qags", "summeval") else SHORT
    with tempfile.TemporaryDirectory() as scratch:
        place = given.folder or Path(scratch)
        result = simulated(given, place) if given.dataset == "simulated" else people(given, place)
    words = [
        word.rpartition("/")[2] if word.startswith("/") else word
        for word in (sys.argv[1:] if arguments is None else arguments)
    ]
    command = f"python -m askance.experiments.reproduce.lmunit_training {' '.join(words)}"
    write_result(given.output, {"command": command, **result})
    return 0


def people(given: argparse.Namespace, place: Path) -> dict[str, Any]:
    """Return the held-out agreement with people, pooled over the folds. Raises InputError for bad data or settings."""
    names = DIMENSIONS[given.dataset]
    checklist = _checklist(given.dataset)
    examples = [_short(example, names, given.dataset) for example in load_rated(given.dataset, given.data)]
    if given.folds < 2:
        raise InputError(f"--folds {given.folds}: at least 2 are needed, one to test on.")
    documents = sorted({example.metadata["document"] for example in examples})
    random.Random(0).shuffle(documents)
    number = {document: place for place, document in enumerate(documents)}
    teacher = (
        None if given.teacher is None else judged_by(given.teacher, load_rated(given.dataset, given.data), checklist)
    )
    # A causal base is asked as a judge is, as in training.
    text_of = asked_with(default_prompt(examples) if find_base(given.base).is_causal else None)
    arms = [*given.arms] if teacher is None else [TAUGHT, RATED_ALONE, BOTH]
    scores: dict[str, dict[str, dict[str, float]]] = {name: {} for name in ["the base, untrained", *arms]}
    trainings = []
    for fold in range(min(given.folds, given.only or given.folds)):
        divided = [_placed(example, number[example.metadata["document"]], fold, given.folds) for example in examples]
        test = [example for example in divided if example.metadata["split"] == "test"]
        base = start_network(find_base(given.base), levels=given.levels, longest=given.longest, seed=fold, rank=1)
        scores["the base, untrained"] |= read_apart(base, test, checklist, text_of)
        for name in arms:
            folder = place / f"{given.dataset}-{fold}-{name.replace(' ', '-')}"
            learned = [_unrated(example) for example in divided] if name == TAUGHT else divided
            verdicts = None if teacher is None or name == RATED_ALONE else teacher.verdicts
            training = train_scorer(given, learned, checklist, folder, fold, ARMS.get(name, ARMS[ALL]), verdicts).data
            scores[name] |= read_apart(open_network(folder, read_scorer(folder)), test, checklist, text_of)
            trainings.append({"scorer": name, "fold": fold, **training_of(training)})
    tested = [example for example in examples if example.id in scores["the base, untrained"]]
    scores["length of the output"] = {
        example.id: dict.fromkeys(names, float(len(example.output or ""))) for example in tested
    }
    if all(example.metadata.get(PUBLISHED) for example in tested):
        scores["UniEval (T5), published"] = {
            example.id: {name: example.metadata[PUBLISHED][name] for name in names} for example in tested
        }
    figures = {"dataset": given.dataset, "examples": len(tested), "trainings": trainings}
    if teacher is None:
        return figures | _beside_people(scores, tested, names, ALL if ALL in arms else None)
    scores[THE_TEACHER] = {example.id: teacher.said[example.id] for example in tested}
    agreement = _beside_people(scores, tested, names, BOTH)
    return figures | agreement | {"teacher": teacher.took, "kept": _kept(scores, arms, tested, names)}


@dataclass(frozen=True)
class Teacher:
    """A judge's verdicts on a data set."""

    verdicts: Sequence[Verdict]
    said: dict[str, dict[str, float]]
    """P(yes) by example and the question's dimension."""
    took: Mapping[str, Any]
    """Processor time of its verdicts."""


def judged_by(model: str | Model, examples: Sequence[Example], checklist: Checklist) -> Teacher:
    """Return the verdicts on all examples by a judge that runs in this process. Raises AskanceError if a verdict is
    missing."""
    began = process_time()
    judged = evaluate(examples, checklist=checklist, model=model, progress=False)
    seconds = process_time() - began
    dimension = {each.id: each.dimension for each in checklist.questions}
    scores: dict[str, dict[str, float]] = {each.id: {} for each in examples}
    for verdict in judged.verdicts:
        if verdict.p_yes is None:
            raise AskanceError(
                f"{judged.model} gives no P(yes) of question {verdict.question} on example {verdict.example}."
            )
        scores[verdict.example][dimension[verdict.question]] = verdict.p_yes
    bought = judged.budget.calls
    took = {"model": judged.model, "verdicts": len(judged.verdicts), "bought": bought}
    return Teacher(judged.verdicts, scores, took | {"cpu_ms_a_verdict": 1000 * seconds / bought if bought else None})


def _checklist(dataset: str) -> Checklist:
    if dataset not in ASKED:
        return load_checklist(CHECKLISTS / f"{dataset}.yaml")
    questions = [Question(id=name, text=text, dimension=name) for name, text in ASKED[dataset].items()]
    return Checklist(questions=tuple(questions))


def read_apart(
    network: Network, examples: Sequence[Example], checklist: Checklist, text_of: TextOf
) -> dict[str, dict[str, float]]:
    """Return a network's ŷ by example and dimension, standardised over these examples unless it is constant."""
    reader = ScorerReader(network, text_of)
    by_example: dict[str, dict[str, float]] = {example.id: {} for example in examples}
    for question in checklist.questions:
        values = np.array(reader.raw([text_of(question, example) for example in examples]))
        spread = float(values.std()) or 1.0
        for example, value in zip(examples, (values - values.mean()) / spread, strict=True):
            by_example[example.id][question.dimension] = float(value)
    return by_example


def nearest(given: str, output: str, words: int) -> str:
    """Return the sentences of a text that share most words with an output, in their order, about ``words`` words."""
    sentences = [each for each in re.split(r"(?<=[.!?])\s+|\n+", given) if each.strip()]
    own = _words(output)
    best = sorted(
        range(len(sentences)),
        key=lambda at: -len(own & _words(sentences[at])) / (1e-9 + len(_words(sentences[at])) ** 0.5),
    )
    kept: list[int] = []
    while best and sum(len(sentences[at].split()) for at in kept) < words:
        kept.append(best.pop(0))
    return " ".join(sentences[at] for at in sorted(kept))


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


def _short(example: Example, names: Sequence[str], dataset: str) -> Example:
    """Shorten an example for a small base: to the last turn and the fact, or to the article's sentences near the
    output. Examples of HelpSteer2, which is for large bases, stay whole."""
    output, texts = example.output or "", (example.input, example.context or "")
    if dataset == "topical_chat":
        last = [line for line in texts[0].split("\n") if line.strip()][-1]
        fact = nearest(texts[1], output, FACT).split()
        texts = (" ".join(last.split()[-TURN:]), " ".join(fact[:FACT]))
    elif dataset in ASKED:
        texts = (nearest(texts[0], output, ARTICLE), texts[1])
    return example.model_copy(
        update={
            "input": texts[0],
            "context": texts[1] or None,
            "human": {name: example.human[name] for name in names},
            "metadata": {**example.metadata, "document": str(example.metadata.get("document", example.id))},
        }
    )


def _placed(example: Example, number: int, fold: int, folds: int) -> Example:
    """Assign an example to its part: one fold is the test, a sixth of the other documents is validation."""
    part = "test" if number % folds == fold else "validation" if number // folds % 6 == 0 else "development"
    return example.model_copy(update={"metadata": {**example.metadata, "split": part}})


def _unrated(example: Example) -> Example:
    """Remove people's scores from an example to learn from."""
    return example if example.metadata["split"] == "test" else example.model_copy(update={"human": {}})


def _beside_people(
    said: Mapping[str, Mapping[str, Mapping[str, float]]],
    examples: Sequence[Example],
    names: Sequence[str],
    ours: str | None,
) -> dict[str, Any]:
    """Return the correlations of each scorer with people, by dimension and for the mean; and the lead of ``ours`` over
    the others."""
    resampling = by_document(examples)
    columns = [WHOLE, *names] if len(names) > 1 else list(names)
    wanted = _wanted(examples, names)
    rows = [
        {"scorer": who}
        | {
            name: correlations_dict(
                correlate(_column(scores, name, examples, names), _column(wanted, name, examples, names), resampling)
            )
            for name in columns
        }
        for who, scores in said.items()
    ]
    if ours is None:
        return {"rows": rows}
    people_scores, mine = (_column(each, columns[0], examples, names) for each in (wanted, said[ours]))
    gains = {
        other: difference_dict(
            paired_difference(_column(said[other], columns[0], examples, names), mine, people_scores, resampling)
        )
        for other in said
        if other != ours
    }
    return {"rows": rows, f"{ours} beyond": gains}


def _kept(
    said: Mapping[str, Mapping[str, Mapping[str, float]]],
    arms: Sequence[str],
    examples: Sequence[Example],
    names: Sequence[str],
) -> dict[str, Any]:
    """Return each scorer's Spearman with people divided by the teacher's, and its correlations with the teacher."""
    resampling, whole = by_document(examples), WHOLE if len(names) > 1 else names[0]
    people_scores, teacher_scores = (
        np.array(_column(scores, whole, examples, names)) for scores in (_wanted(examples, names), said[THE_TEACHER])
    )
    by_scorer = {}
    for name in arms:
        scorer_scores = np.array(_column(said[name], whole, examples, names))
        kernels = [correlation_kernel("spearman", values, people_scores) for values in (scorer_scores, teacher_scores)]
        share = ratio_of(*kernels)
        by_scorer[name] = {
            "share_of_spearman": statistic_dict(bootstrapped(share, np.ones(len(examples), bool), resampling)),
            "with_the_judge": correlations_dict(correlate(scorer_scores, teacher_scores, resampling)),
        }
    return by_scorer


def ratio_of(above: Kernel, below: Kernel) -> Kernel:
    """Return a statistic that divides one statistic by another on the same resample."""
    return lambda drawn: above(drawn) / below(drawn)


def _wanted(examples: Sequence[Example], names: Sequence[str]) -> dict[str, dict[str, float]]:
    return {each.id: {name: float(each.human_score(name) or 0.0) for name in names} for each in examples}


def _column(
    scores: Mapping[str, Mapping[str, float]], name: str, examples: Sequence[Example], names: Sequence[str]
) -> list[float]:
    """Return scores on a dimension, or the mean over all dimensions, each standardised first."""
    if name != WHOLE:
        return [scores[each.id][name] for each in examples]
    table = np.array([[scores[each.id][name] for name in names] for each in examples])
    spread = table.std(axis=0)
    standard: list[float] = ((table - table.mean(axis=0)) / np.where(spread > 0, spread, 1.0)).mean(axis=1).tolist()
    return standard


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("dataset", choices=[*DIMENSIONS, "simulated"])
    made.add_argument("--data", help="the file, as its authors publish it; without one: from the Hugging Face hub")
    made.add_argument("--teacher", metavar="MODEL", help="distil this judge, which runs in this process (openvino/...)")
    made.add_argument("--base", default=DEFAULT_BASE)
    made.add_argument("--arms", nargs="+", default=list(ARMS), choices=list(ARMS))
    made.add_argument("--folds", type=int, default=3)
    made.add_argument("--only", type=int, help="train for the first so many folds")
    made.add_argument("--size", type=int, default=3000, help="simulated outputs")
    made.add_argument("--seed", type=int, default=0, help="of the simulated world")
    made.add_argument("--seeds", type=int, default=1, help="so many worlds, from that seed on")
    made.add_argument(
        "--errors",
        nargs="*",
        type=int,
        metavar="N",
        help="the simulated judge has errors: kinds of faults that it does not see, and kinds of harmless things "
        "that it takes for faults; default: {} {}".format(*ERRORS),
    )
    made.add_argument("--pairs", type=int, default=0, help="pairs of further outputs that simulated people compared")
    made.add_argument(
        "--contrasts", type=int, default=0, help="questions with an output that a simulated author rewrites"
    )
    made.add_argument("--mixes", action="store_true", help="each kind of simulated data and mixes of them: Table 3")
    made.add_argument("--folder", type=Path, help="keep the scorers there; what is there is not trained again")
    made.add_argument("--epochs", type=int, default=3)
    made.add_argument("--batch-size", type=int, default=25)
    made.add_argument("--learning-rate", type=float, default=1.5e-4)
    made.add_argument("--longest", type=int, help=f"tokens that are read; default: {NEWS} of news, else {SHORT}")
    made.add_argument("--levels", type=int, default=2)
    made.add_argument("--patience", type=int, default=2)
    made.add_argument("--precision", choices=["float32", "bfloat16"], default="bfloat16")
    made.add_argument("--resamples", type=int, default=2000)
    made.add_argument("-o", "--output", type=Path, help="JSON file; default: standard output")
    return made


if __name__ == "__main__":
    raise SystemExit(main())
