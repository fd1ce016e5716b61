"""What a network is trained to do: score as wanted (LMUnit §3.3), or prefer rationales that end in the right score (§3.4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, cast

from ..models.trained.bases import torch_library
from ..models.trained.network import after_rationale, asked_for, asked_why
from .losses import ALPHA, LOSSES, decided, dpo_loss, forgiven, mixed_loss, weight_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from ..models.trained.causal import CausalNetwork
    from ..models.trained.network import Network, ScoredText
    from .items import TrainingItem
    from .options import TrainOptions

Parts = dict[str, tuple[float, float]]
"""The sum of each loss over the items that have it, and of their weights."""


class Learnable(Protocol):
    """Something to be learned: an item, or a pair of rationales."""

    @property
    def unit(self) -> str:
        """Id of the example or pair that it comes from."""
        ...

    @property
    def texts(self) -> Sequence[ScoredText]:
        """Everything that has to be read for it."""
        ...


class TrainingObjective(Protocol):
    """What is trained, on what, and how it is seen whether that does any good."""

    @property
    def network(self) -> Network:
        """What is trained."""
        ...

    @property
    def training(self) -> Sequence[Any]:
        """What is learned from: :class:`Learnable`."""
        ...

    def loss(self, batch: Sequence[Any]) -> tuple[Any, Parts]:
        """Of some of it: the loss, with gradients where the network is trained, and its parts."""
        ...

    def on_validation(self) -> dict[str, float]:
        """The mean of each loss, and as ``loss`` what is to be low: the weights by which it was lowest are kept."""
        ...


@dataclass
class ScoreObjective:
    """The mixed losses on score tokens, and on rationales that somebody gave."""

    network: Network
    training: Sequence[TrainingItem]
    validation: Sequence[TrainingItem]
    options: TrainOptions

    def loss(self, batch: Sequence[TrainingItem]) -> tuple[Any, Parts]:
        """See :class:`TrainingObjective`."""
        return _mixed(self._read(batch), batch, self.options)

    def on_validation(self) -> dict[str, float]:
        """See :class:`TrainingObjective`."""
        return _all_means(self.validation, self._read, self.options)

    def _read(self, batch: Sequence[TrainingItem]) -> _Reading:
        return _read(self.network, batch, self.options, self.network.levels)


@dataclass(frozen=True, slots=True)
class RationalePair:
    """Two rationales for one text, of which the first ends in the right score and the second does not."""

    unit: str
    text: ScoredText
    better: str
    worse: str

    @property
    def texts(self) -> list[ScoredText]:
        """The text after the one and after the other."""
        return [after_rationale(self.text, each) for each in (self.better, self.worse)]


@dataclass
class RationaleObjective:
    """DPO on pairs of rationales; the network as it is when this is made is the reference.

    What is wanted on validation is what was wanted before: the scores. They are taken in the way in which the scorer will answer.
    """

    network: CausalNetwork
    training: Sequence[RationalePair]
    validation: Sequence[TrainingItem]
    options: TrainOptions

    def __post_init__(self) -> None:
        """Keep how likely the reference has each rationale."""
        self.network.training(False)
        self._before: Mapping[RationalePair, Any] = {
            each: found
            for batch in chunks(self.training, self.options.batch_size)
            for each, found in zip(batch, self._likelihood(batch), strict=True)
        }

    def loss(self, batch: Sequence[RationalePair]) -> tuple[Any, Parts]:
        """See :class:`TrainingObjective`."""
        torch = torch_library()
        with _precision(self.network, self.options):
            now = self._likelihood(batch)
        (now, tokens), before = (now[..., 0], now[..., 1]), torch.stack([self._before[each] for each in batch])[..., 0]
        losses = dpo_loss(now[:, 0], now[:, 1], before[:, 0], before[:, 1])
        unlikely, gain = -now[:, 0] / tokens[:, 0], (now - before).detach()
        return (losses + ALPHA * unlikely).mean(), {
            "dpo": (float(losses.detach().sum()), len(batch)),
            "rationale": (float(unlikely.detach().sum()), len(batch)),
            "preferred": (float((gain[:, 0] > gain[:, 1]).sum()), len(batch)),
        }

    def on_validation(self) -> dict[str, float]:
        """See :class:`TrainingObjective`."""
        items = [each for each in self.validation if each.kind != "rationale"]
        return _all_means(items, lambda batch: _read(self.network, batch, self.options, self._levels), self.options)

    def _levels(self, texts: Sequence[ScoredText]) -> Any:
        if self.options.answer_with == "word":
            return self.network.levels(texts)
        return self.network.levels_after_rationales(texts, self.options.rationale_tokens)[0]

    def _likelihood(self, batch: Sequence[RationalePair]) -> Any:
        """Log-probability and tokens of the better and of the worse rationale, shape (pairs, 2, 2)."""
        written = [(asked_why(each.text), why) for each in batch for why in (each.better, each.worse)]
        return self.network.likelihood(written).reshape(-1, 2, 2)


def chunks(items: Iterable[Any], texts: int) -> Iterator[list[Any]]:
    """The items (:class:`Learnable`) in their order, so many texts at a time."""
    chunk: list[Any] = []
    there: set[ScoredText] = set()
    for item in items:
        chunk.append(item)
        there.update(item.texts)
        if len(there) >= texts:
            yield chunk
            chunk, there = [], set()
    if chunk:
        yield chunk


def _precision(network: Network, options: TrainOptions) -> Any:
    torch = torch_library()
    return torch.autocast(network.device, torch.bfloat16, enabled=options.precision == "bfloat16")


@dataclass(frozen=True)
class _Reading:
    """What a network says of some items."""

    levels: Any
    row_of: Mapping[ScoredText, int]
    written: Mapping[ScoredText, Any]
    """Mean log-probability of the rationales that they have, by text."""


def _read(
    network: Network,
    items: Sequence[TrainingItem],
    options: TrainOptions,
    levels_of: Callable[[Sequence[ScoredText]], Any],
) -> _Reading:
    texts = list(dict.fromkeys(text for item in items for text in item.texts))
    given = {each.left[0].text: each.rationale for each in items if each.rationale is not None}
    written = {}
    with _precision(network, options):
        levels = levels_of(texts)
        if given:
            causal = cast("CausalNetwork", network)
            said = causal.likelihood([(asked_for(text), why) for text, why in given.items()])
            written = dict(zip(given, said[:, 0] / said[:, 1], strict=True))
    return _Reading(levels, {text: row for row, text in enumerate(texts)}, written)


def _mixed(reading: _Reading, items: Sequence[TrainingItem], options: TrainOptions) -> tuple[Any, Parts]:
    """The mixed loss of some items, and its parts."""
    return mixed_loss(reading.levels, items, reading.row_of, options.loss_weights, reading.written)


def _all_means(
    items: Sequence[TrainingItem], read: Callable[[Sequence[TrainingItem]], _Reading], options: TrainOptions
) -> dict[str, float]:
    """Each loss over all items, and their weighted sum; that of preferences without what is :func:`~.losses.forgiven`."""
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
