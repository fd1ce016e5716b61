"""The signal of ``migrate``: another judge's verdicts (BinEval §3.3, Algorithm 1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..evaluation.scoring import score_examples
from ..prompts.lessons import Disagreement
from .signals import Reasons, dimension_means, disputed, explanations, take_turns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ..agents.evaluator import Evaluator
    from ..prompts.examples import Example
    from ..prompts.verdicts import Verdict
    from .subject import Draft, Observation


class CrossModelSignal:
    """The source judge's verdicts.

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
        target: Callable[[Draft], Evaluator] | None,
        *,
        margin: float,
        tolerance: float,
    ) -> None:
        """``verdicts`` are the source's, on the development ``examples``.

        ``target`` makes the other judge; None where no explanations are bought.
        """
        self._source = source
        self._verdicts = {(each.example, each.question): each for each in verdicts if each.replicate == 0}
        self._examples = examples
        self._target = target
        self._margin = margin
        self._tolerance = tolerance
        scores = score_examples(examples, source.checklist, verdicts)
        self._means = dimension_means(scores, source.checklist.dimensions)

    def disagreements(self, draft: Draft, seen: Observation) -> list[Disagreement]:
        """Widest gap first, questions taking turns, so that one question does not use up all notes."""
        pairs: dict[str, list[tuple[Verdict, Verdict]]] = {}
        for verdict in seen.verdicts:
            source = self._verdicts.get((verdict.example, verdict.question))
            if not verdict.replicate and source and source.p_yes is not None and verdict.p_yes is not None:
                pairs.setdefault(verdict.question, []).append((verdict, source))
        found = [sorted(self._compare(group), key=lambda each: -each.gap) for group in pairs.values()]
        return take_turns(found)

    def agrees(self, seen: Observation) -> bool:
        """|S_d target - S_d source| below the tolerance on every dimension (Algorithm 1, lines 6-10).

        The means are soft; the paper's other condition, a target that scores at least as high as the source, is left
        out: a judge that says yes to everything would meet it at once.
        """
        scores = score_examples(self._examples, self._source.checklist, seen.verdicts)
        means = dimension_means(scores, self._means)
        pairs = [(mean, self._means[dimension]) for dimension, mean in means.items()]
        return all(a is not None and b is not None and abs(a - b) < self._tolerance for a, b in pairs)

    def reference(self, draft: Draft, example: str, question: str) -> float | None:
        """The source's P(yes)."""
        verdict = self._verdicts.get((example, question))
        return verdict.p_yes if verdict else None

    async def reasons(self, draft: Draft, seen: Observation, disagreements: Sequence[Disagreement]) -> Reasons:
        """Both judges' explanations."""
        if self._target is None:
            return Reasons()
        mine = await explanations(self._target(draft), disputed(seen, disagreements), self._examples)
        verdicts = [self._verdicts[each.example, each.question] for each in disagreements]
        return Reasons(mine, await explanations(self._source, verdicts, self._examples))

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
