"""Soft-prompt tuning: AdamW on ten vectors under a frozen model.

Stated by the authors (arXiv:2606.12117): 10 vectors, 80 steps, about 640 samples. Optimizer, learning rate, schedule,
initial vectors and loss mask are not; those here are spt's defaults, calibrated in docs/calibration.md.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from spt.batching import last_logits, left_pad
from spt.events import Checkpoint, StepLoss
from spt.models import LoadedModel
from spt.prompt import VirtualTokens
from spt.spec import RunSpec

WARMUP_STEPS = 5
MAX_GRAD_NORM = 1.0


@dataclass(frozen=True)
class TrainingRow:
    """Token ids of a context (with virtual ids) and of the target, end token included."""

    context: tuple[int, ...]
    target: tuple[int, ...]


@torch.no_grad()
def initial_vectors(virtual: VirtualTokens, rows: Sequence[Sequence[int]], count: int, seed: int) -> Tensor:
    """(count, D) float32: embeddings of token ids drawn from the training texts by frequency.

    Random normal vectors have 7 to 50 times the scale of embeddings and stay at 0 % for hundreds of steps; embeddings
    of frequent ids start where the model has learnt to read.
    """
    frequency = Counter(token for row in rows for token in row if token < virtual.first_id)
    ids = sorted(frequency)
    drawn = random.Random(f"init-{seed}").choices(ids, weights=[frequency[i] for i in ids], k=count)
    return virtual.embedding(torch.tensor(drawn, device=virtual.weight.device)).float().cpu()


def rows_of_step(step: int, batch_size: int, train_size: int, seed: int) -> list[int]:
    """Indices of the training rows of `step` (from 1): shuffled epochs read on end to end, so any step stands alone."""
    wanted = range((step - 1) * batch_size, step * batch_size)
    return [_epoch(position // train_size, train_size, seed)[position % train_size] for position in wanted]


def _epoch(epoch: int, train_size: int, seed: int) -> list[int]:
    order = list(range(train_size))
    random.Random(f"epoch-{seed}-{epoch}").shuffle(order)
    return order


class Tuner:
    """Tunes the vectors in `virtual` on training rows, one optimizer step a call."""

    def __init__(
        self, loaded: LoadedModel, virtual: VirtualTokens, rows: Sequence[TrainingRow], spec: RunSpec
    ) -> None:
        assert virtual.vectors is not None, "set the initial vectors first"
        self.loaded, self.rows, self.spec = loaded, rows, spec
        self.vectors, self.first_virtual_id = virtual.vectors, virtual.first_id
        self.peak_rate = spec.learning_rate * virtual.rms()
        self.step_done = 0
        self.optimizer = torch.optim.AdamW([self.vectors], lr=self.peak_rate, weight_decay=0.0)

    def step(self) -> StepLoss:
        """One update; the loss is the mean over the target tokens of the batch, before the update."""
        start = time.perf_counter()
        step = self.step_done + 1
        indices = rows_of_step(step, self.spec.batch_size, len(self.rows), self.spec.seed)
        rate = self.peak_rate * min(1.0, step / WARMUP_STEPS)
        self.optimizer.param_groups[0]["lr"] = rate
        self.optimizer.zero_grad()
        loss = batch_loss(self.loaded, [self.rows[i] for i in indices], self.first_virtual_id)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_([self.vectors], MAX_GRAD_NORM)
        self.optimizer.step()
        self.step_done = step
        return StepLoss(
            step=step,
            loss=loss.item(),
            learning_rate=rate,
            grad_norm=norm.item(),
            seconds=time.perf_counter() - start,
        )

    def checkpoint(self) -> Checkpoint:
        """All that `restore` needs to go on bit for bit: vectors and Adam's moments."""
        state = self.optimizer.state[self.vectors]
        tensors = {"vectors": self.vectors.detach(), "exp_avg": state["exp_avg"], "exp_avg_sq": state["exp_avg_sq"]}
        return Checkpoint(self.step_done, {name: t.float().cpu().numpy().copy() for name, t in tensors.items()})

    @torch.no_grad()
    def restore(self, checkpoint: Checkpoint) -> None:
        """Take up vectors, moments and step of a checkpoint."""
        tensors = {n: torch.from_numpy(a.copy()).to(self.vectors.device) for n, a in checkpoint.tensors.items()}
        self.vectors.copy_(tensors["vectors"])
        self.optimizer.state[self.vectors] = {
            "step": torch.tensor(float(checkpoint.step)),
            "exp_avg": tensors["exp_avg"],
            "exp_avg_sq": tensors["exp_avg_sq"],
        }
        self.step_done = checkpoint.step


def batch_loss(loaded: LoadedModel, rows: Sequence[TrainingRow], first_virtual_id: int) -> Tensor:
    """Mean cross-entropy in nats over the target tokens, answer and end token alone.

    Rows are padded on the left, so targets end at the right edge and the head runs there only. Targets are masked by
    their length, never by pad id: where pad == EOS the model would else not learn to stop.
    """
    targets, target_mask = left_pad([row.target for row in rows], loaded.device)
    full = [row.context + row.target for row in rows]
    logits = last_logits(loaded, full, targets.shape[1] + 1, frozen_below=first_virtual_id)[:, :-1]
    wanted = target_mask.bool()
    return cross_entropy(logits[wanted].float(), targets[wanted])
