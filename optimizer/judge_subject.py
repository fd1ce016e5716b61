"""A judge whose prompt is improved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..agents.evaluator import Evaluator
from ..evaluation.scoring import coverage, score_examples
from .subject import Draft, Observation, Pair

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..agents.judging import Judging
    from ..evaluation.scoring import Coverage
    from ..models.base import Model
    from ..models.gateway import Gateway
    from ..prompts.checklist import Checklist
    from ..prompts.examples import Example
    from ..prompts.verdicts import Verdict


class JudgeSubject:
    """An evaluator model; the draft's prompt is what it judges with."""

    def __init__(
        self,
        gateway: Gateway,
        model: Model,
        judging: Judging,
        *,
        role: str,
        soft: bool,
        tally: Callable[[Coverage], None],
    ) -> None:
        """``role`` is its ledger; ``tally`` is told the coverage of everything that was judged."""
        self._gateway = gateway
        self._model = model
        self._judging = judging
        self._role = role
        self._soft = soft
        self._tally = tally

    def evaluator(self, draft: Draft) -> Evaluator:
        """The judge with a draft's prompt and questions."""
        return Evaluator(
            self._gateway,
            self._model,
            draft.prompt,
            _questions(draft),
            self._judging,
            role=self._role,
            tally=lambda verdicts: self._tally(coverage(verdicts)),
        )

    async def observe(
        self, draft: Draft, examples: Sequence[Example], on_done: Callable[[int, int], None] | None = None
    ) -> Observation:
        """Judge the examples' outputs."""
        verdicts = await self.evaluator(draft).judge(examples, on_done)
        scores = score_examples(examples, _questions(draft), verdicts, soft=self._soft)
        return Observation(examples, verdicts, scores, draft.checklist)

    async def probe(self, draft: Draft, pairs: Sequence[Pair], seen: Observation) -> dict[Pair, Verdict]:
        """Ask single questions about single examples; all questions, where they are asked together."""
        by_id = {example.id: example for example in seen.examples}
        asked: dict[str | None, list[str]] = {}
        for example, question in dict.fromkeys(pairs):
            asked.setdefault(None if self._judging.mode == "batched" else question, []).append(example)
        found: dict[Pair, Verdict] = {}
        for together, examples in asked.items():
            questions = _questions(draft) if together is None else only(_questions(draft), together)
            judge = self.evaluator(Draft(draft.prompt, questions))
            for verdict in await judge.judge([by_id[each] for each in dict.fromkeys(examples)]):
                if verdict.replicate == 0:
                    found[verdict.example, verdict.question] = verdict
        return {pair: found[pair] for pair in pairs if pair in found}


def only(checklist: Checklist, question: str) -> Checklist:
    """The checklist with this question alone."""
    one = checklist.question(question).model_copy(update={"weight": 1.0})
    return checklist.model_copy(update={"questions": (one,)})


def _questions(draft: Draft) -> Checklist:
    assert draft.checklist is not None, "a judge answers a checklist"
    return draft.checklist
