"""The training loop: batches, schedule, checkpoints, early stopping.

The same data and settings give the same weights, even if the training was interrupted and continued.
"""

from __future__ import annotations

import math
import os
import random
import shutil
import zlib
from dataclasses import asdict, dataclass, field
from time import monotonic, process_time
from typing import TYPE_CHECKING, Any

from ..models.trained.bases import torch_library
from ..prompts.errors import AskanceError, InputError
from .losses import chunks

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from ..models.progress import Watcher
    from ..models.trained.network import Network
    from .losses import RationaleObjective, ScoreObjective
    from .options import TrainOptions

CHECKPOINT, BEST = "checkpoint.pt", "best.pt"
EVERY = 60.0  # seconds between two checkpoints; one is also written after every epoch
WARMUP = 0.1  # share of the steps in which the learning rate rises
CLIP_NORM = 1.0
WEIGHT_DECAY = 0.01
ROOM = 6  # needed disk space, in network sizes: checkpoint, optimiser and best weights, old and new file of each
RATES = {"cross-encoder": 5e-5, "shared-encoder": 5e-5, "causal": 2e-4}  # default highest learning rates


@dataclass
class LossCurve:
    """The course of the losses, and the epoch whose weights are kept."""

    training: list[dict[str, float]] = field(default_factory=list)  # ``step``, ``epoch``, ``loss`` and each loss
    validation: list[dict[str, float]] = field(default_factory=list)
    """``epoch``, ``loss`` and each loss over all of validation after each epoch; epoch 0 is before the first step."""
    best_epoch: int = 0
    steps: int = 0  # steps of all epochs, without early stopping
    stopped_early: bool = False
    cpu_seconds: float = 0.0  # processor time of training and validation

    def to_dict(self) -> dict[str, Any]:
        """Return the curve as it stands in ``train.json``."""
        return asdict(self)


@dataclass
class _Place:
    """The loop's position: epoch, batch, and the best loss so far."""

    epoch: int = 1
    batch: int = 0
    best_loss: float = math.inf
    since_best: int = 0


class Trainer:
    """Trains a network. Its folder has the checkpoints from which an interrupted training continues."""

    def __init__(
        self,
        objective: ScoreObjective | RationaleObjective,
        group_of: Mapping[str, str],
        options: TrainOptions,
        folder: Path,
        fingerprint: str,
        *,
        rate_share: float = 1.0,
    ) -> None:
        """Begin at the first step. ``group_of`` maps each unit to its document. Checkpoints in ``folder`` carry the
        ``fingerprint`` of data, base and settings. ``rate_share`` multiplies the learning rate of ``options``."""
        torch, network = torch_library(), objective.network
        self._network, self._options, self._folder, self._fingerprint = network, options, folder, fingerprint
        self._objective, self._group_of = objective, group_of
        self._rate = rate_share * (options.learning_rate or RATES[network.kind])
        self._optimiser = torch.optim.AdamW(network.parameters(), lr=self._rate, weight_decay=WEIGHT_DECAY, fused=True)
        self._torch = torch
        self.curve = LossCurve()
        self._place = _Place()
        self._written = monotonic()

    def run(self, watcher: Watcher) -> LossCurve:
        """Train to the end; the network then has the weights that did best on validation. Raises InputError for a
        checkpoint of other data or settings, AskanceError if one cannot be written or the loss is no number."""
        options = self._options
        epochs = [self._batches(epoch) for epoch in range(1, options.epochs + 1)]
        self.curve.steps = sum(map(len, epochs))
        began = process_time()
        restored = self._restore()
        place = self._place
        if restored:
            watcher.say(
                f"Going on from the checkpoint in {self._folder}, at epoch {place.epoch}, batch {place.batch + 1}."
            )
        else:
            self._validate(0)
        earlier_seconds = self.curve.cpu_seconds
        watcher.phase("training", self.curve.steps)
        while place.epoch <= options.epochs and place.since_best < options.patience:
            for batch in epochs[place.epoch - 1][place.batch :]:
                step = sum(map(len, epochs[: place.epoch - 1])) + place.batch
                self._step(batch, step)
                place.batch += 1
                self.curve.cpu_seconds = earlier_seconds + process_time() - began
                watcher.advance(step + 1, self.curve.steps)
                if monotonic() - self._written > EVERY:
                    self._write()
            self._validate(place.epoch)
            place.epoch, place.batch = place.epoch + 1, 0
            self.curve.cpu_seconds = earlier_seconds + process_time() - began
            self._write()
        self.curve.stopped_early = place.epoch <= options.epochs
        self._network.restore(self._load(BEST)["network"])
        self._network.training(False)
        return self.curve

    def _batches(self, epoch: int) -> list[list[Any]]:
        """Return an epoch's batches: documents in random order, the items of each together. A batch reads each of its
        texts once."""
        chance = random.Random(f"{self._options.seed}/{epoch}")
        groups: dict[str, list[Any]] = {}
        for item in self._objective.training:
            groups.setdefault(self._group_of[item.unit], []).append(item)
        order = list(groups)
        chance.shuffle(order)
        return list(chunks([item for group in order for item in groups[group]], self._options.batch_size))

    def _step(self, batch: Sequence[Any], step: int) -> None:
        torch, options = self._torch, self._options
        torch.manual_seed(zlib.crc32(f"{options.seed}/{step}".encode()))  # dropout's, the same after an interruption
        self._network.training(True)
        for group in self._optimiser.param_groups:
            group["lr"] = self._rate * schedule(step, self.curve.steps)
        loss, parts = self._objective.loss(batch)
        value = float(loss.detach())
        if not math.isfinite(value):
            raise AskanceError(
                f"Step {step + 1}: the loss is {value}. Train with a lower --learning-rate or --precision float32."
            )
        self._optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self._network.parameters(), CLIP_NORM)
        self._optimiser.step()
        means = {name: total / count for name, (total, count) in parts.items()}
        self.curve.training.append({"step": step + 1, "epoch": self._place.epoch, "loss": value, **means})

    def _validate(self, epoch: int) -> None:
        """Compute the losses on validation. Keep the weights if the loss is the lowest so far."""
        self._network.training(False)
        means = self._objective.on_validation()
        loss = means["loss"]
        self.curve.validation.append({"epoch": epoch, **means})
        place = self._place
        if loss < place.best_loss:
            place.best_loss, place.since_best, self.curve.best_epoch = loss, 0, epoch
            self._save(BEST, {"network": self._network.state()})
        else:
            place.since_best += 1

    def _write(self) -> None:
        """A checkpoint."""
        state = {"network": self._network.state(), "optimiser": self._optimiser.state_dict()}
        self._save(CHECKPOINT, state | {"place": asdict(self._place), "curve": asdict(self.curve)})
        self._written = monotonic()

    def _save(self, name: str, what: Mapping[str, Any]) -> None:
        file = self._folder / name
        partial = file.with_suffix(".part")
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._torch.save({**what, "fingerprint": self._fingerprint}, partial)
            os.replace(partial, file)
        except (OSError, RuntimeError) as error:  # for a full disk torch raises RuntimeError ("unexpected pos")
            partial.unlink(missing_ok=True)
            raise AskanceError(
                f"{file}: cannot be written ({str(error).splitlines()[0][:120]}). Make room, and run the same command "
                "again: it goes on from the last checkpoint."
            ) from None

    def _load(self, name: str) -> dict[str, Any]:
        file = self._folder / name
        try:
            found: dict[str, Any] = self._torch.load(file, weights_only=True)
        except (OSError, RuntimeError, ValueError, EOFError, KeyError) as error:
            raise InputError(
                f"{file}: damaged ({type(error).__name__}); delete {self._folder} to begin anew."
            ) from None
        if found.get("fingerprint") != self._fingerprint:
            raise InputError(
                f"{self._folder}: a training with other data, another base or other settings was broken off here. Run "
                "that command again to go on with it, delete the folder, or choose another -o."
            )
        return found

    def _restore(self) -> bool:
        """Load the checkpoint and return True, or return False if there is none."""
        if not (self._folder / CHECKPOINT).is_file():
            return False
        found = self._load(CHECKPOINT)
        self._network.restore(found["network"])
        self._optimiser.load_state_dict(found["optimiser"])
        self._place = _Place(**found["place"])
        self.curve = LossCurve(**found["curve"])
        return True


def schedule(step: int, steps: int) -> float:
    """Return the learning rate at a step (from 0) as a share of the highest. The share rises during the first tenth of
    the steps, then falls as a cosine."""
    rise = max(1, round(WARMUP * steps))
    if step < rise:
        return (step + 1) / rise
    return 0.5 * (1.0 + math.cos(math.pi * (step - rise) / max(1, steps - rise)))


def check_room(place: Path, network: Network, trainings: int) -> None:
    """Check that the disk has room for the checkpoints of ``trainings`` trainings. Raises AskanceError."""
    there = next(each for each in (place.absolute(), *place.absolute().parents) if each.exists())
    need = ROOM * trainings * sum(each.numel() * each.element_size() for each in network.state().values())
    free = shutil.disk_usage(there).free
    if free < need:
        raise AskanceError(
            f"{place}: training needs {need / 1e9:.1f} GB on this disk for its checkpoints; "
            f"{free / 1e9:.1f} GB are free."
        )
