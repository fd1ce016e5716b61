"""Losses of LMUnit (§3.3), on the paper's scale from 0 to 6, and of DPO on rationales (§3.4), with their objectives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ..models.trained.bases import torch_library
from ..models.trained.scored_text import after_rationale, asked_for, asked_why
from ..prompts.errors import import_optional

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from ..models.trained.causal import CausalNetwork
    from ..models.trained.network import Network
    from ..models.trained.scored_text import ScoredText
    from .mixture import Probe, TrainingItem
    from .options import TrainOptions

LOSSES = ("cross_entropy", "squared_error", "preference", "rationale")
RATIONALE_TIMES = 5.0  # how much the loss on a rationale's words counts beside that on the score token (§4.1.1)
BETA = 0.1  # DPO's penalty for leaving the reference (Rafailov et al. 2023, appendix B)
SCALE = 6.0  # ŷ and y are in 0 to 6 in the paper, here in [0, 1]
Parts = dict[str, tuple[float, float]]  # for each loss: its sum over the items that have it, and their weights' sum


def weight_of(weights: Sequence[float]) -> dict[str, float]:
    """Map each of :data:`LOSSES` to its weight, from the three weights of eq. 6. The first also weighs rationales."""
    return dict(zip(LOSSES, (*weights, RATIONALE_TIMES * weights[0]), strict=True))


def side_levels(levels: Any, side: Sequence[Probe], row_of: Mapping[ScoredText, int]) -> Any:
    """Return the log-probability of each level for an output, shape (levels,). It mixes the ``levels`` of the output's
    questions, shape (texts, levels), by their weights. For a question about a fault the levels are reversed."""
    torch = torch_library()
    rows = torch.log_softmax(levels[[row_of[each.text] for each in side]], dim=-1)
    if any(each.is_fault for each in side):
        faults = torch.tensor([[each.is_fault] for each in side])
        rows = torch.where(faults, rows.flip(-1), rows)
    total = sum(each.weight for each in side)
    shares = torch.tensor([[each.weight / total] for each in side])
    return torch.logsumexp(rows + shares.log(), dim=0)


def side_mass(levels: Any, side: Sequence[Probe], row_of: Mapping[ScoredText, int]) -> Any:
    """Return the log-probability that a network says any level, as a weighted mean over an output's questions; 0 for
    an encoder."""
    torch = torch_library()
    shares = torch.tensor([each.weight for each in side])
    return (levels[[row_of[each.text] for each in side]].logsumexp(-1) * shares).sum() / shares.sum()


def expected(levels: Any) -> Any:
    """Return ŷ = Σ k·P(k) / (K - 1), in [0, 1] (eq. 2), from log-probabilities of K levels along the last axis."""
    torch = torch_library()
    count = levels.shape[-1]
    return (levels.exp() * torch.arange(count)).sum(-1) / (count - 1)


def target_levels(target: float, count: int) -> list[float]:
    """Spread a wanted score in [0, 1] over its two nearest levels, so that the mean is the score; length ``count``."""
    place = target * (count - 1)
    below = min(int(place), count - 2)
    shares = [0.0] * count
    shares[below], shares[below + 1] = 1.0 - (place - below), place - below
    return shares


def item_losses(
    levels: Any, item: TrainingItem, row_of: Mapping[ScoredText, int], written: Mapping[ScoredText, Any] | None = None
) -> dict[str, Any]:
    """Return the losses of an item by name, as torch numbers.

    A wanted score has cross-entropy -Σ t(k) log P(k) (eq. 3, for the score token alone; P is among all tokens that the
    network could say) and squared error (y - ŷ)² (eq. 4). A preference has -log sigmoid(S₁ - S₂) with the better output
    first (eq. 5); S is the sum of the questions' weighted ŷ. A tie has the squared difference of the mean ŷ. A
    rationale has the mean of -log P over its own tokens (eq. 3); ``written`` has the mean of log P, by text."""
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
    """Return the lead of the preferred output in mean ŷ, from -6 to 6; for a tie the lead of the first output."""
    left, right = (SCALE * expected(side_levels(levels, side, row_of)) for side in (item.left, item.right))
    return (left - right) * (1.0 if item.target >= 0.5 else -1.0)


def mixed_loss(
    levels: Any,
    items: Sequence[TrainingItem],
    row_of: Mapping[ScoredText, int],
    weights: Sequence[float],
    written: Mapping[ScoredText, Any] | None = None,
) -> tuple[Any, dict[str, tuple[float, float]]]:
    """Return the weighted sum (eq. 6) of the mean :func:`item_losses`; and for each loss its sum and total weight."""
    sums: dict[str, Any] = {}
    counts: dict[str, float] = {}
    for item in items:
        for name, loss in item_losses(levels, item, row_of, written).items():
            sums[name] = sums.get(name, 0.0) + item.weight * loss
            counts[name] = counts.get(name, 0.0) + item.weight
    total = sum(weight * sums[name] / counts[name] for name, weight in weight_of(weights).items() if name in sums)
    return total, {name: (float(sums[name].detach()), counts[name]) for name in sums}


def decided(levels: Any, items: Sequence[TrainingItem], row_of: Mapping[ScoredText, int]) -> list[tuple[float, float]]:
    """Return S₁ - S₂ and the weight of each preference that is no tie, with the better output first."""
    return [
        (len(item.left) * float(_ahead(levels, item, row_of)), item.weight)
        for item in items
        if item.kind == "preference" and item.target != 0.5
    ]


def forgiven(pairs: Sequence[tuple[float, float]]) -> float:
    """Return how much Σ -log sigmoid(k·(S₁ - S₂)) over :func:`decided` pairs falls when k is the best value from 0 to 1
    instead of 1."""
    # A network that is too sure of a mostly right order is not worse than a network without an order.
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
    """Return the loss of direct preference optimisation (Rafailov et al. 2023, eq. 7), -log sigmoid(β·(log π(w)/π₀(w) -
    log π(l)/π₀(l))). Arguments: log-probabilities of better (w) and worse (l) texts, now (π) and before (π₀); shapes
    (pairs,)."""
    margin = (better - better_before) - (worse - worse_before)
    return -torch_library().nn.functional.logsigmoid(beta * margin)


# --- objectives: a network, its data and its loss ---


@dataclass
class ScoreObjective:
    """The mixed losses on score tokens and on given rationales. Each item of ``training`` has its ``unit`` and the
    ``texts`` that the network reads for it."""

    network: Network
    training: Sequence[TrainingItem]
    validation: Sequence[TrainingItem]
    options: TrainOptions

    def loss(self, batch: Sequence[TrainingItem]) -> tuple[Any, Parts]:
        """Return the loss of a batch, with gradients, and its parts."""
        return _mixed(self._read(batch), batch, self.options)

    def on_validation(self) -> dict[str, float]:
        """Return the mean of each loss on validation. The weights with the lowest ``loss`` are kept."""
        return _all_means(self.validation, self._read, self.options)

    def _read(self, batch: Sequence[TrainingItem]) -> _Reading:
        return _read(self.network, batch, self.network.levels)


@dataclass(frozen=True, slots=True)
class RationalePair:
    """Two rationales for one text: the better ends in the right score, the worse does not."""

    unit: str
    text: ScoredText
    better: str
    worse: str

    @property
    def texts(self) -> list[ScoredText]:
        """The text after each rationale."""
        return [after_rationale(self.text, each) for each in (self.better, self.worse)]


@dataclass
class RationaleObjective:
    """DPO on pairs of rationales against the network at the start; validation asks for the right scores."""

    network: CausalNetwork
    training: Sequence[RationalePair]
    validation: Sequence[TrainingItem]
    options: TrainOptions

    def __post_init__(self) -> None:
        """Store the reference's log-probability of each rationale."""
        self.network.training(False)
        self._before: Mapping[RationalePair, Any] = {
            each: found
            for batch in chunks(self.training, self.options.batch_size)
            for each, found in zip(batch, self._likelihood(batch), strict=True)
        }

    def loss(self, batch: Sequence[RationalePair]) -> tuple[Any, Parts]:
        """Return the loss of a batch, with gradients, and its parts."""
        torch = torch_library()
        now = self._likelihood(batch)
        (now, tokens), before = (now[..., 0], now[..., 1]), torch.stack([self._before[each] for each in batch])[..., 0]
        losses = dpo_loss(now[:, 0], now[:, 1], before[:, 0], before[:, 1])
        unlikely, gain = -now[:, 0] / tokens[:, 0], (now - before).detach()
        return (losses + self.options.nll_weight * unlikely).mean(), {
            "dpo": (float(losses.detach().sum()), len(batch)),
            "rationale": (float(unlikely.detach().sum()), len(batch)),
            "preferred": (float((gain[:, 0] > gain[:, 1]).sum()), len(batch)),
        }

    def on_validation(self) -> dict[str, float]:
        """Return the mean of each loss of :class:`ScoreObjective` on validation."""
        items = [each for each in self.validation if each.kind != "rationale"]
        return _all_means(items, lambda batch: _read(self.network, batch, self._levels), self.options)

    def _levels(self, texts: Sequence[ScoredText]) -> Any:
        if self.options.answer_with == "word":
            return self.network.levels(texts)
        return self.network.levels_after_rationales(texts, self.options.rationale_tokens)[0]

    def _likelihood(self, batch: Sequence[RationalePair]) -> Any:
        """Return log-probability and number of tokens of the better and the worse rationale, shape (pairs, 2, 2)."""
        written = [(asked_why(each.text), why) for each in batch for why in (each.better, each.worse)]
        return self.network.likelihood(written).reshape(-1, 2, 2)


def chunks(items: Iterable[Any], texts: int) -> Iterator[list[Any]]:
    """Divide items, in their order, into batches of about ``texts`` different texts."""
    chunk: list[Any] = []
    chunk_texts: set[ScoredText] = set()
    for item in items:
        chunk.append(item)
        chunk_texts.update(item.texts)
        if len(chunk_texts) >= texts:
            yield chunk
            chunk, chunk_texts = [], set()
    if chunk:
        yield chunk


@dataclass(frozen=True)
class _Reading:
    """A network's answers to some items."""

    levels: Any
    row_of: Mapping[ScoredText, int]
    written: Mapping[ScoredText, Any]  # mean log-probability of a given rationale's tokens, by text


def _read(
    network: Network,
    items: Sequence[TrainingItem],
    levels_of: Callable[[Sequence[ScoredText]], Any],
) -> _Reading:
    texts = list(dict.fromkeys(text for item in items for text in item.texts))
    given = {each.left[0].text: each.rationale for each in items if each.rationale is not None}
    written = {}
    levels = levels_of(texts)
    if given:
        causal = cast("CausalNetwork", network)
        said = causal.likelihood([(asked_for(text), why) for text, why in given.items()])
        written = dict(zip(given, said[:, 0] / said[:, 1], strict=True))
    return _Reading(levels, {text: row for row, text in enumerate(texts)}, written)


def _mixed(reading: _Reading, items: Sequence[TrainingItem], options: TrainOptions) -> tuple[Any, Parts]:
    return mixed_loss(reading.levels, items, reading.row_of, options.loss_weights, reading.written)


def _all_means(
    items: Sequence[TrainingItem], read: Callable[[Sequence[TrainingItem]], _Reading], options: TrainOptions
) -> dict[str, float]:
    """Return the mean of each loss over all items, and their weighted sum as ``loss``. The :func:`forgiven` part of
    the preference loss is subtracted."""
    sums = dict.fromkeys(LOSSES, (0.0, 0.0))
    pairs: list[tuple[float, float]] = []
    with torch_library().no_grad():
        for batch in chunks(items, options.batch_size):
            reading = read(batch)
            pairs += decided(reading.levels, batch, reading.row_of)
            for name, (total, count) in _mixed(reading, batch, options)[1].items():
                sums[name] = (sums[name][0] + total, sums[name][1] + count)
    total, count = sums["preference"]
    sums["preference"] = (total - forgiven(pairs), count)
    means = {name: total / count for name, (total, count) in sums.items() if count}
    whole = sum(weight * means.get(name, 0.0) for name, weight in weight_of(options.loss_weights).items())
    return {"loss": whole, **means}
