"""The losses of LMUnit §3.3 and their weighted sum, on the paper's scale from 0 to 6; and that of DPO on rationales (§3.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..models.trained.bases import torch_library
from ..prompts.errors import import_optional

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..models.trained.network import ScoredText
    from .items import Probe, TrainingItem

LOSSES = ("cross_entropy", "squared_error", "preference", "rationale")
RATIONALE_TIMES = 5.0
"""How much the loss on a rationale's words counts beside that on the score token (§4.1.1)."""
BETA = 0.1
"""Of DPO: how much leaving the reference costs (Rafailov et al. 2023, appendix B)."""
ALPHA = 1.0
"""Beside DPO: how much it counts that the preferred rationale stays likely, -log P a token (Pang et al. 2024, eq. 2). Of two that differ
in a word DPO alone may make both less likely (Pal et al. 2024)."""
SCALE = 6.0
"""ŷ and y are in 0 to 6 in the paper, here in [0, 1]."""


def weight_of(weights: Sequence[float]) -> dict[str, float]:
    """The weight of each of :data:`LOSSES`, of the three of eq. 6; the first is that of all words, the rationale's too."""
    return dict(zip(LOSSES, (*weights, RATIONALE_TIMES * weights[0]), strict=True))


def side_levels(levels: Any, side: Sequence[Probe], row_of: Mapping[ScoredText, int]) -> Any:
    """Log-probability of each score level of an output: the mixture of its questions' levels, by their weights.

    Args:
        levels: Log-probabilities of the levels of each text, shape (texts, levels); what they lack to sum 1 is left aside.
        side: Its probes; the levels of one that looks for a fault count in reverse.
        row_of: The row of each text.

    Returns:
        Shape (levels,).
    """
    torch = torch_library()
    rows = torch.log_softmax(levels[[row_of[each.text] for each in side]], dim=-1)
    if any(each.is_fault for each in side):
        faults = torch.tensor([[each.is_fault] for each in side])
        rows = torch.where(faults, rows.flip(-1), rows)
    total = sum(each.weight for each in side)
    shares = torch.tensor([[each.weight / total] for each in side])
    return torch.logsumexp(rows + shares.log(), dim=0)


def side_mass(levels: Any, side: Sequence[Probe], row_of: Mapping[ScoredText, int]) -> Any:
    """Log-probability that a network says a level at all, the weighted mean over an output's questions; 0 for an encoder."""
    torch = torch_library()
    shares = torch.tensor([each.weight for each in side])
    return (levels[[row_of[each.text] for each in side]].logsumexp(-1) * shares).sum() / shares.sum()


def expected(levels: Any) -> Any:
    """ŷ = Σ k·P(k) / (K - 1), in [0, 1] (eq. 2), of log-probabilities of K levels along the last axis."""
    torch = torch_library()
    count = levels.shape[-1]
    return (levels.exp() * torch.arange(count)).sum(-1) / (count - 1)


def target_levels(target: float, count: int) -> list[float]:
    """A wanted score in [0, 1] as shares of its two nearest levels, whose expectation it is; length ``count``."""
    place = target * (count - 1)
    below = min(int(place), count - 2)
    shares = [0.0] * count
    shares[below], shares[below + 1] = 1.0 - (place - below), place - below
    return shares


def item_losses(
    levels: Any, item: TrainingItem, row_of: Mapping[ScoredText, int], written: Mapping[ScoredText, Any] | None = None
) -> dict[str, Any]:
    """The losses that an item has, each a number of torch.

    Cross-entropy -Σ t(k) log P(k) (eq. 3, of the score token alone, P being among all that the network could say) and squared error (y - ŷ)² (eq. 4) where a score is
    wanted. Where one of two outputs is preferred, -log sigmoid(S₁ - S₂) with the better one first (eq. 5), S being the sum of
    its questions' weighted ŷ; for a tie the square of the difference of their mean ŷ.

    Where an item has a rationale, its text is read after that, and the mean of -log P over the rationale's own tokens is a loss too
    (eq. 3): ``written`` has the mean of log P, by text.
    """
    torch = torch_library()
    if item.kind != "preference":
        left = side_levels(levels, item.left, row_of)
        wanted = torch.tensor(target_levels(item.target, levels.shape[-1]))
        found = {
            "cross_entropy": -(wanted * left).sum() - side_mass(levels, item.left, row_of),
            "squared_error": (SCALE * item.target - SCALE * expected(left)) ** 2,
        }
        return found | ({"rationale": -written[item.left[0].text]} if item.rationale is not None and written else {})
    ahead = _ahead(levels, item, row_of)
    if item.target == 0.5:
        return {"preference": ahead**2}
    return {"preference": -torch.nn.functional.logsigmoid(len(item.left) * ahead)}


def _ahead(levels: Any, item: TrainingItem, row_of: Mapping[ScoredText, int]) -> Any:
    """How far the output that is preferred is ahead in mean ŷ, from -6 to 6; of a tie the first one."""
    left, right = (SCALE * expected(side_levels(levels, side, row_of)) for side in (item.left, item.right))
    return (left - right) * (1.0 if item.target >= 0.5 else -1.0)


def mixed_loss(
    levels: Any,
    items: Sequence[TrainingItem],
    row_of: Mapping[ScoredText, int],
    weights: Sequence[float],
    written: Mapping[ScoredText, Any] | None = None,
) -> tuple[Any, dict[str, tuple[float, float]]]:
    """The weighted sum of the losses (eq. 6), each the mean over the items that have it; see :func:`item_losses`.

    Returns:
        The loss, and for each of :data:`LOSSES` that any item has the sum over the items and of their weights.
    """
    sums: dict[str, Any] = {}
    counts: dict[str, float] = {}
    for item in items:
        for name, loss in item_losses(levels, item, row_of, written).items():
            sums[name] = sums.get(name, 0.0) + item.weight * loss
            counts[name] = counts.get(name, 0.0) + item.weight
    total = sum(weight * sums[name] / counts[name] for name, weight in weight_of(weights).items() if name in sums)
    return total, {name: (float(sums[name].detach()), counts[name]) for name in sums}


def decided(levels: Any, items: Sequence[TrainingItem], row_of: Mapping[ScoredText, int]) -> list[tuple[float, float]]:
    """S₁ - S₂ of each pair of which one output is preferred, the better one first, and the pair's weight."""
    return [
        (len(item.left) * float(_ahead(levels, item, row_of)), item.weight)
        for item in items
        if item.kind == "preference" and item.target != 0.5
    ]


def forgiven(pairs: Sequence[tuple[float, float]]) -> float:
    """By how much the sum of -log sigmoid(k·(S₁ - S₂)) is lower with the best k from 0 to 1 than with 1.

    How far apart two outputs are is no part of which is better: a network that is too sure of an order which is mostly right is not
    worse than one that has none.

    Args:
        pairs: Of :func:`decided`.
    """
    if not pairs:
        return 0.0
    margins, weights = np.array(pairs).T

    def total(scale: float) -> float:
        return float(weights @ np.logaddexp(0.0, -scale * margins))

    found = import_optional("scipy.optimize", "train", "scipy").minimize_scalar(
        total, bounds=(0.0, 1.0), method="bounded"
    )
    return max(0.0, total(1.0) - float(found.fun))


def dpo_loss(better: Any, worse: Any, better_before: Any, worse_before: Any, beta: float = BETA) -> Any:
    """-log sigmoid(β·(log π(w)/π₀(w) - log π(l)/π₀(l))) of each pair (direct preference optimisation; Rafailov et al. 2023, eq. 7).

    Args:
        better: log π(w), of the texts that are preferred, shape (pairs,).
        worse: log π(l), of those that are not.
        better_before: The same as the reference π₀ has it.
        worse_before: The same.
        beta: β.

    Returns:
        Shape (pairs,).
    """
    margin = (better - better_before) - (worse - worse_before)
    return -torch_library().nn.functional.logsigmoid(beta * margin)
