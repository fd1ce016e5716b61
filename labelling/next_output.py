"""The choice of the next output to label, and the judges' opinions that decide it."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..evaluation.judge_file import load_judge
from ..evaluation.kept_judge import KeptJudge
from ..evaluation.scoring import score_examples, score_on
from ..evaluation.verdict_table import SaidGood
from ..memory.embedders import embedder
from ..memory.run_directory import JUDGE_FILE
from ..prompts.checklist import Checklist, load_checklist
from ..prompts.errors import InputError, did_you_mean, like_named
from ..prompts.examples import Example
from ..prompts.verdicts import Verdict, read_verdicts
from ..stats.pass_fail import HALF, passes
from .label_options import Order
from .labels_file import Why

logger = logging.getLogger(__name__)

Cells = NDArray[np.float64]
_JUDGE_SUFFIXES = (".yaml", ".yml")


@dataclass(frozen=True)
class JudgeOpinion:
    """One judge's scores and answers on the examples."""

    name: str
    scores: Cells
    """Scores in [0, 1], NaN if verdicts are missing; shape (examples,)."""
    threshold: float
    """The score from which on an output passes."""
    answers: Cells
    """1 for an answer that speaks for the output, 0 for one against it, NaN without an answer; shape (examples,
    questions)."""
    p_good: Cells
    """P(the answer that speaks for the output); shape (examples, questions)."""

    @property
    def passed(self) -> Cells:
        """1 if the output passes, 0 if it fails, NaN without a score; shape (examples,)."""
        return np.where(np.isnan(self.scores), np.nan, passes(np.nan_to_num(self.scores), self.threshold))


@dataclass(frozen=True)
class Opinions:
    """The opinions of all judges; the agreement of the first judge is shown."""

    checklist: Checklist
    judges: tuple[JudgeOpinion, ...]

    @property
    def disagreement(self) -> Cells | None:
        """Disagreement of the judges on each output, in [0, 1]; None for a single judge. Half of it is for different
        verdicts, half for the distance of the scores; 0 if fewer than two judges have a score."""
        if len(self.judges) < 2:
            return None
        passed, scores = (np.vstack([getattr(each, name) for each in self.judges]) for name in ("passed", "scores"))
        both = (~np.isnan(scores)).sum(axis=0) > 1
        apart = np.zeros(scores.shape[1])
        apart[both] = (np.nanmax(passed[:, both], axis=0) - np.nanmin(passed[:, both], axis=0)) / 2
        apart[both] += (np.nanmax(scores[:, both], axis=0) - np.nanmin(scores[:, both], axis=0)) / 2
        return apart

    @property
    def doubt(self) -> Cells:
        """Uncertainty of the first judge about each output, in [0, 1]; 0 without a score. Half of it is the nearness of
        the score to the threshold, half the mean nearness of the answered questions' P(yes) to one half."""
        judge = self.judges[0]
        reach = max(judge.threshold, 1 - judge.threshold)
        near = 1 - np.abs(judge.scores - judge.threshold) / reach
        open_questions = 4 * judge.p_good * (1 - judge.p_good)
        answered = np.maximum(1, (~np.isnan(open_questions)).sum(axis=1))
        doubt: Cells = np.nan_to_num((near + np.nansum(open_questions, axis=1) / answered) / 2)
        return doubt


def load_opinions(
    given: Sequence[str | Path | KeptJudge],
    checklist: str | Path | Checklist | None,
    examples: Sequence[Example],
    dimension: str,
) -> tuple[Checklist | None, Opinions | None]:
    """Return the checklist, and the judges' opinions of these examples; None for either that does not exist.

    ``given`` are directories of runs, ``judge.yaml`` files, and files of verdicts. A judge gets the verdicts that its
    run kept, and those of its model and prompt in the files. Other verdicts in the files belong to further judges.
    ``checklist`` is needed if no judge brings one. Raises InputError if a file is wrong, or none of its verdicts is
    about one of the examples and questions.
    """
    kept: list[KeptJudge] = []
    verdicts: list[Verdict] = []
    files: list[Path] = []
    for each in given:
        if isinstance(each, KeptJudge) or Path(each).is_dir() or Path(each).suffix in _JUDGE_SUFFIXES:
            judge = load_judge(each)
            kept.append(judge)
            if not isinstance(each, KeptJudge):
                verdicts += verdicts_of_run(Path(each), judge)
        elif not Path(each).is_file():
            raise InputError(
                f"{each}: there is no such judge; a run's directory, a {JUDGE_FILE} or a file of verdicts is needed."
                f"{like_named(each)}"
            )
        else:
            files.append(Path(each))
    asked = load_checklist(checklist) if checklist is not None else kept[0].checklist if kept else None
    if asked is None:
        if files:
            raise InputError(f"{files[0]}: a checklist is needed, which says what these verdicts answer (--checklist).")
        return None, None
    if dimension not in ("overall", *asked.dimensions):
        hint = did_you_mean(dimension, asked.dimensions)
        raise InputError(f"The checklist asks about no dimension '{dimension}'.{hint}")
    ids, questions = {each.id for each in examples}, {each.id for each in asked.questions}
    for file in files:
        read = (each for each in read_verdicts(file) if each.asked is None)
        found = [each for each in read if each.example in ids and each.question in questions]
        if not found:
            raise InputError(
                f"{file}: no verdict in it is about an output of the data and a question of the checklist."
            )
        verdicts += found
    by_judge: dict[tuple[str, str], dict[tuple[str, str, int], Verdict]] = {
        (each.model, each.prompt): {}
        for each in verdicts
        if each.model is not None and each.example in ids and each.question in questions
    }
    for verdict in verdicts:  # files come after runs: a file's verdict replaces the run's
        if verdict.example in ids and verdict.question in questions:
            for name, mine in by_judge.items():  # computed verdicts go to every judge with this prompt
                if verdict.model in (None, name[0]) and verdict.prompt == name[1]:
                    mine[verdict.example, verdict.question, verdict.replicate] = verdict
    known = {(judge.model, judge.prompt.hash): judge for judge in reversed(kept)}
    order = sorted(by_judge, key=lambda name: name not in known)
    opinions = [
        _opinion(name, known.get(name), list(by_judge[name].values()), asked, examples, dimension) for name in order
    ]
    for judge in kept:
        if (judge.model, judge.prompt.hash) not in by_judge:
            logger.warning(
                "The judge %s has said nothing of these outputs yet. Let it: askance evaluate DATA --judge RUN -o "
                "verdicts.jsonl, and give the file as a second --judge.",
                judge.model,
            )
    scored: list[JudgeOpinion] = []
    for opinion in opinions:
        if not np.isnan(opinion.scores).all():
            scored.append(opinion)
        else:
            logger.warning(
                "The judge %s has left a question open on every output, so it has no score and decides nothing here; "
                "let it answer all: askance evaluate DATA, without --stop-within and --pass-mark.",
                opinion.name,
            )
    return asked, Opinions(asked, tuple(scored)) if scored else None


def verdicts_of_run(path: Path, judge: KeptJudge) -> list[Verdict]:
    """Read the verdicts that a run kept of its judge: those of the last version, with the judge's calibration."""
    files = sorted((path if path.is_dir() else path.parent).glob("verdicts/[0-9]*-*.jsonl"))
    last = [each for each in files if each.name.split("-")[0] == files[-1].name.split("-")[0]]
    found = [
        verdict
        for file in last
        for verdict in read_verdicts(file)
        if verdict.model in (None, judge.model) and verdict.prompt == judge.prompt.hash
    ]
    return found if judge.calibration is None else judge.calibration.apply(found)


def _opinion(
    name: tuple[str, str],
    judge: KeptJudge | None,
    verdicts: Sequence[Verdict],
    checklist: Checklist,
    examples: Sequence[Example],
    dimension: str,
) -> JudgeOpinion:
    soft = judge is None or judge.settings.get("scores") != "hard"
    scores = score_examples(examples, checklist, verdicts, soft=soft)
    of: tuple[str, ...] = (dimension,)
    threshold = HALF
    if judge is not None and judge.threshold is not None and dimension in ("overall", *judge.threshold_of):
        threshold, of = judge.threshold, judge.threshold_of if dimension == "overall" else of
    judgements = SaidGood.of(checklist, verdicts, examples)
    values = [score_on(each, of) for each in scores]
    return JudgeOpinion(
        name[0],
        np.array(values, dtype=np.float64),
        threshold,
        *(
            np.array([column[question.id] for question in checklist.questions], dtype=np.float64).T
            for column in (judgements.answers, judgements.p_good)
        ),
    )


SHARE_AT_RANDOM = 1 / 3
"""Share of outputs that are drawn at random beside chosen ones: only these show how well the judge does on all."""
SEEN_OFTEN = 3
"""An answer to a question counts as tested if the judge gave it on this many labelled outputs."""
MOST_SPREAD = 200
"""Maximum number of outputs that are spread out; the outputs after them come at random."""
MOST_COMPARED = 5_000
"""Maximum number of outputs that are compared with each other to spread them out."""
SIGNALS: dict[Why, str] = {
    "disagreement": "the judges disagree",
    "uncertain": "the judge is unsure",
    "untested": "questions are untested",
}
WORDS: dict[Why, str] = {
    **SIGNALS,
    "random": "drawn at random",
    "spread": "unlike those before",
    "file": "next in the file",
    "skipped": "skipped before",
}
"""Each reason for showing an output, in the words of the page."""

Places = NDArray[np.intp]


class Queue:
    """Chooses the next output to label; the same labels always lead to the same output.

    In an order by judges, a fixed share of the outputs, drawn by a hash of seed and id, is only ever shown in random
    order. These outputs are a random sample of all, whichever others are chosen.
    """

    def __init__(self, order: Order, examples: Sequence[Example], opinions: Opinions | None, seed: int) -> None:
        """Prepare the order. Raises InputError if the order needs judges that are not given."""
        self.order: Order = ("spread" if opinions is None else "informative") if order == "auto" else order
        self._opinions = opinions
        self._chance = np.array([_chance(seed, each.id) for each in examples])
        self._signals: dict[Why, Callable[[NDArray[np.bool_]], NDArray[np.float64]]] = {}
        if self.order in ("informative", *SIGNALS):
            self._signals = self._signals_of(self.order)
        self._at_random = self._chance < (SHARE_AT_RANDOM if self._signals else 1.0)
        self._rank = np.argsort(np.argsort(self._chance, kind="stable"), kind="stable")
        if self.order == "file":
            self._rank = np.arange(len(examples))
        elif self.order == "spread":
            self._rank = _spread([each.output or "" for each in examples], self._rank)

    @property
    def sentence(self) -> str:
        """The order in words."""
        if not self._signals:
            return {
                "spread": "outputs that are unlike each other first",
                "random": "outputs in random order",
                "file": "outputs in the order of the file",
            }[self.order]
        named = " or ".join(SIGNALS[each] for each in self._signals)
        return f"outputs first on which {named}; every third is drawn at random, to tell how well the judge does on all"

    def pick(self, open_places: Places, labelled: NDArray[np.bool_], asked: dict[Why, int]) -> tuple[int, Why]:
        """Return the next output's position, and the reason. ``open_places`` are the positions of the outputs that may
        be shown, at least one; ``labelled`` says which outputs have a label, shape (examples,); ``asked`` counts the
        rater's outputs so far by reason."""
        if not self._signals:
            reason: Why = "random" if self.order == "random" else "file" if self.order == "file" else "spread"
            return int(open_places[np.argmin(self._rank[open_places])]), reason
        drawn = open_places[self._at_random[open_places]]
        chosen = open_places[~self._at_random[open_places]]
        at_random = asked.get("random", 0)
        others = sum(count for reason, count in asked.items() if reason != "random")
        # a drawn output is due if it keeps the drawn share at a third at most; 1e-9 allows for rounding
        turn = (at_random + 1) / (at_random + others + 1) <= SHARE_AT_RANDOM + 1e-9
        if len(drawn) and (turn or not len(chosen)):
            return int(drawn[np.argmin(self._chance[drawn])]), "random"
        values = np.vstack([signal(labelled)[chosen] for signal in self._signals.values()])
        total = values.sum(axis=0)
        best = int(np.lexsort((self._chance[chosen], -total))[0])  # the hash decides ties
        reason = list(self._signals)[int(values[:, best].argmax())]
        return int(chosen[best]), reason

    def _signals_of(self, order: Order) -> dict[Why, Callable[[NDArray[np.bool_]], NDArray[np.float64]]]:
        found = self._opinions
        if found is None:
            raise InputError(f"order {order}: a judge's verdicts are needed (--judge RUN_OR_VERDICTS).")
        disagreement, doubt = found.disagreement, found.doubt
        if order == "disagreement" and disagreement is None:
            raise InputError("order disagreement: the verdicts of two judges are needed (--judge twice).")
        signals: dict[Why, Callable[[NDArray[np.bool_]], NDArray[np.float64]]] = {}
        if disagreement is not None:
            signals["disagreement"] = lambda labelled: disagreement
        signals["uncertain"] = lambda labelled: doubt
        signals["untested"] = self._untested
        return {each: signal for each, signal in signals.items() if order in ("informative", each)}

    def _untested(self, labelled: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return, for each output, the share of questions, in [0, 1], on which too few labelled outputs have its
        answer."""
        assert self._opinions is not None
        answers = self._opinions.judges[0].answers
        known = answers[labelled]
        share: NDArray[np.float64] = np.zeros(len(answers))
        for value in (0.0, 1.0):
            rare = (known == value).sum(axis=0) < SEEN_OFTEN
            share += ((answers == value) & rare).mean(axis=1)
        return share


def _chance(seed: int, name: str) -> float:
    return int.from_bytes(sha256(f"{seed}/{name}".encode()).digest()[:6], "big") / 2**48


def _spread(texts: Sequence[str], rank: Places) -> Places:
    """Return ranks in which each of the first outputs is, by its words, the least similar to all outputs before it."""
    order = np.argsort(rank)
    candidates = order[:MOST_COMPARED]
    words = [texts[place] if re.search(r"\w", texts[place]) else "nothing" for place in candidates]
    vectors = embedder("words").embed(words)
    first = int(np.argmax(vectors @ vectors.mean(axis=0)))  # the most typical output
    chosen, similarities = [first], vectors @ vectors[first]
    while len(chosen) < min(MOST_SPREAD, len(candidates)):
        similarities[chosen[-1]] = np.inf  # never chosen again
        far = int(np.argmin(similarities))
        chosen.append(far)
        similarities = np.maximum(similarities, vectors @ vectors[far])
    front = candidates[chosen]
    tail = order[~np.isin(order, front)]
    ranks = np.empty(len(texts), dtype=np.intp)
    ranks[np.concatenate([front, tail])] = np.arange(len(texts))
    return ranks
