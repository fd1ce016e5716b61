"""Where a judge and its reference differ. A mode of the loop is a signal, nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ..models.base import ModelError
from ..prompts.lessons import Disagreement
from .scoring import mean_score, score_examples

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ..agents.evaluator import Evaluator
    from ..prompts.checklist import Checklist
    from ..prompts.examples import Example
    from ..prompts.verdicts import Verdict


class Signal(Protocol):
    """What a judge's verdicts are held against on the development examples."""

    def disagreements(self, verdicts: Sequence[Verdict]) -> list[Disagreement]:
        """The (example, question) pairs on which the judge differs, those to be read first in front."""
        ...

    def agrees(self, verdicts: Sequence[Verdict]) -> bool:
        """Whether the judge agrees well enough for the loop to stop."""
        ...

    async def reasons(self, disagreements: Sequence[Disagreement]) -> Mapping[str, str]:
        """Why the reference says what it says, by disagreement key; empty where it gives no reasons."""
        ...


class CrossModelSignal:
    """The source judge's verdicts (BinEval §3.3, Algorithm 1).

    Judges disagree where their answers differ. Beyond the paper they also disagree where both say the same but their
    P(yes) are ``margin`` or more apart: a judge that says yes to everything otherwise hides what it doubts. And they
    are read in the order of what their leniency does not explain: where the source says no to nearly everything, its
    no is a reason to look only on examples that it likes less than most.
    """

    def __init__(
        self,
        source: Evaluator,
        verdicts: Sequence[Verdict],
        examples: Sequence[Example],
        *,
        margin: float,
        tolerance: float,
    ) -> None:
        """``verdicts`` are the source's, on the development ``examples``."""
        self._source = source
        self._verdicts = {(each.example, each.question): each for each in verdicts if each.replicate == 0}
        self._examples = examples
        self._margin = margin
        self._tolerance = tolerance
        self._means = dimension_means(examples, source.checklist, verdicts)

    def disagreements(self, verdicts: Sequence[Verdict]) -> list[Disagreement]:
        """Widest gap first, questions taking turns, so that one question does not use up all notes."""
        pairs: dict[str, list[tuple[Verdict, Verdict]]] = {}
        for verdict in verdicts:
            source = self._verdicts.get((verdict.example, verdict.question))
            if not verdict.replicate and source and source.p_yes is not None and verdict.p_yes is not None:
                pairs.setdefault(verdict.question, []).append((verdict, source))
        found = [sorted(self._compare(group), key=lambda each: -each.gap) for group in pairs.values()]
        return take_turns(found)

    def agrees(self, verdicts: Sequence[Verdict]) -> bool:
        """|S_d target - S_d source| below the tolerance on every dimension (Algorithm 1, lines 6-10).

        The means are soft; the paper's other condition, a target that scores at least as high as the source, is left
        out: a judge that says yes to everything would meet it at once.
        """
        means = dimension_means(self._examples, self._source.checklist, verdicts)
        pairs = [(means[dimension], self._means[dimension]) for dimension in means]
        return all(a is not None and b is not None and abs(a - b) < self._tolerance for a, b in pairs)

    async def reasons(self, disagreements: Sequence[Disagreement]) -> Mapping[str, str]:
        """The source's explanations, bought for these disagreements alone."""
        verdicts = [self._verdicts[each.example, each.question] for each in disagreements]
        return await explanations(self._source, verdicts, self._examples)

    def _compare(self, pairs: Sequence[tuple[Verdict, Verdict]]) -> Iterator[Disagreement]:
        """The disagreements on one question; gaps are what is left once each judge's mean is taken out."""
        levels = [sum(each.p_yes or 0.0 for each in side) / len(pairs) for side in zip(*pairs, strict=True)]
        for target, source in pairs:
            theirs, mine = source.p_yes or 0.0, target.p_yes or 0.0
            if target.answer == source.answer and abs(mine - theirs) < self._margin:
                continue
            too_high = mine > theirs if target.answer == source.answer else bool(target.answer)
            beyond = (mine - levels[0]) - (theirs - levels[1])
            yield Disagreement(
                example=target.example,
                question=target.question,
                target=too_high,
                reference=not too_high,
                gap=beyond if too_high else -beyond,
                target_p_yes=mine,
                reference_p_yes=theirs,
            )


async def explanations(judge: Evaluator, verdicts: Iterable[Verdict], examples: Sequence[Example]) -> dict[str, str]:
    """A judge's explanations by disagreement key; one that cannot be had is left out, as the notes do without it.

    Raises:
        ModelError: Every further call would fail too.
    """
    found: dict[str, str] = {}
    for verdict in verdicts:
        try:
            explained = await judge.explain([verdict], examples)
        except ModelError as error:
            if error.fatal:
                raise
            continue
        found |= {f"{example}/{question}": text for (example, question), text in explained.items()}
    return found


def dimension_means(
    examples: Sequence[Example], checklist: Checklist, verdicts: Iterable[Verdict]
) -> dict[str, float | None]:
    """Mean soft score over the examples, by dimension."""
    scores = score_examples(examples, checklist, verdicts)
    return {
        dimension: mean_score(each.dimensions.get(dimension) for each in scores) for dimension in checklist.dimensions
    }


def take_turns(groups: Iterable[Sequence[Disagreement]]) -> list[Disagreement]:
    """The first of every group, then the second of every group, and so on."""
    lists = [list(group) for group in groups]
    return [group[turn] for turn in range(max(map(len, lists), default=0)) for group in lists if turn < len(group)]
