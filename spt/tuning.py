"""Soft-prompt tuning: AdamW on ten vectors under a frozen model.

Stated by the authors (arXiv:2606.12117): 10 vectors, 80 steps, about 640 samples. Optimizer, learning rate, schedule,
initial vectors and loss mask are not; those here are spt's defaults, calibrated in docs/calibration.md.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from spt.batching import Prefix, last_logits, left_pad, shared_prefix
from spt.events import Checkpoint, MemoryReduced, StepLoss
from spt.models import LoadedModel
from spt.out_of_memory import is_out_of_memory, release
from spt.prompt import VirtualTokens
from spt.spec import RunSpec

WARMUP_STEPS = 5
MAX_GRAD_NORM = 1.0
# Of one forward pass. A CPU is busy with a few hundred already; a GPU takes the rows of all arms together.
TOKENS_AT_ONCE = {"cpu": 512, "cuda": 32_768}


@dataclass(frozen=True)
class TrainingRow:
    """Token ids of a context (with virtual ids) and of the target, end token included."""

    context: tuple[int, ...]
    target: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.context) + len(self.target)


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


def seen_rows(spec: RunSpec, seed: int, train_size: int) -> list[int]:
    """Indices of the training rows that the steps of a run get to see, in order: a large split is not read whole."""
    wanted = spec.steps * spec.batch_size
    return sorted(_epoch(0, train_size, seed)[:wanted]) if wanted < train_size else list(range(train_size))


def tuned_items_of(spec: RunSpec, train_size: int) -> list[int]:
    """Indices of training rows to answer as well, to hold tuned items against unseen ones; none without further arms.

    At most as many as test items, drawn by the seed from the rows that the steps of the run get to see.
    """
    if len(spec.arms) == 1:
        return []
    seen = seen_rows(spec, spec.seed, train_size)
    return random.Random(f"tuned-{spec.seed}").sample(seen, min(spec.items, len(seen)))


class Tuner:
    """Tunes the vectors in `virtual` on training rows, one optimizer step a call.

    The arms of a run (further seeds, controls) are tuned together: `rows[a]` are the training rows of arm `a` by index,
    with the virtual ids of its own vectors. The model is frozen and AdamW works element by element, so an arm learns
    what it would learn alone.
    """

    def __init__(
        self,
        loaded: LoadedModel,
        virtual: VirtualTokens,
        rows: Sequence[Mapping[int, TrainingRow]],
        train_size: int,
        spec: RunSpec,
        tokens_at_once: int | None = None,
    ) -> None:
        """`tokens_at_once`: of one forward pass, where less than usual is known to fit."""
        assert virtual.vectors is not None, "set the initial vectors first"
        self.loaded, self.rows, self.train_size, self.spec = loaded, rows, train_size, spec
        self.vectors = virtual.vectors
        self.tokens_at_once = tokens_at_once or TOKENS_AT_ONCE[loaded.device.type]
        self.notices: list[MemoryReduced] = []  # for the caller to take
        texts = [row.context + row.target for own in rows for row in own.values()]
        head = shared_prefix(loaded, texts, 0, frozen_below=virtual.first_id)
        self.prefix = Prefix.of(loaded, texts[0][:head]) if head else None
        self.peak_rate = spec.learning_rate * virtual.rms()
        self.step_done = 0
        self.optimizer = torch.optim.AdamW([self.vectors], lr=self.peak_rate, weight_decay=0.0)

    def step(self) -> StepLoss:
        """One update; a loss is the mean over the target tokens of the arm's batch, before the update."""
        start = time.perf_counter()
        step = self.step_done + 1
        batches = [
            [rows[i] for i in rows_of_step(step, self.spec.batch_size, self.train_size, arm.seed)]
            for arm, rows in zip(self.spec.arms, self.rows, strict=True)
        ]
        rate = self.peak_rate * min(1.0, step / WARMUP_STEPS)
        self.optimizer.param_groups[0]["lr"] = rate
        losses = self._backward(batches)
        norms = self._clip()
        self.optimizer.step()
        self.step_done = step
        return StepLoss(
            step=step,
            loss=losses[0],
            learning_rate=rate,
            grad_norm=norms[0],
            seconds=time.perf_counter() - start,
            arms={arm.name: loss for arm, loss in list(zip(self.spec.arms, losses, strict=True))[1:]},
        )

    def _backward(self, batches: Sequence[Sequence[TrainingRow]]) -> list[float]:
        """Gradient and losses of a step. Where memory runs out, the step begins again with half as many tokens at once.

        The parts add up to the same gradient, so the curve stays what it was. At one row a part nothing is left to
        halve, and the error passes.
        """
        while True:
            self.optimizer.zero_grad()
            try:
                return backward(self.loaded, batches, self.tokens_at_once, self.prefix)
            except (RuntimeError, MemoryError) as error:
                smaller = self._half(batches)
                if smaller is None or not is_out_of_memory(error):
                    raise
            self.optimizer.zero_grad()
            release()
            self.tokens_at_once = smaller
            detail = (
                f"The device ran out of memory in tuning: rows now go through the model {smaller} tokens at once. "
                "The gradient is summed up over them, so the numbers stay the same."
            )
            self.notices.append(MemoryReduced(what="tuning", at_once=smaller, detail=detail))

    def _half(self, batches: Sequence[Sequence[TrainingRow]]) -> int | None:
        """Half the tokens of the largest part that a step has now; None where every part is a single row."""
        head = len(self.prefix.ids) if self.prefix else 0
        rows = [(arm, row) for arm, batch in enumerate(batches) for row in batch]
        several = [part for part in _parts(rows, self.tokens_at_once, head) if len(part) > 1]
        return max((len(part) * (len(part[-1][1]) - head) for part in several), default=0) // 2 or None

    def _clip(self) -> list[float]:
        """Clip the gradient of each arm by itself; returns the norms before that."""
        assert self.vectors.grad is not None
        norms = []
        for gradient in self.vectors.grad.split(self.spec.virtual_tokens):
            norm = torch.linalg.vector_norm(gradient)
            gradient.mul_((MAX_GRAD_NORM / (norm + 1e-6)).clamp(max=1.0))
            norms.append(norm.item())
        return norms

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


def backward(
    loaded: LoadedModel, batches: Sequence[Sequence[TrainingRow]], tokens_at_once: int, prefix: Prefix | None
) -> list[float]:
    """Add the gradient of every arm's loss to its vectors; returns the losses.

    `batches[a]` are the rows of arm `a`. Its loss is the mean cross-entropy in nats over the target tokens of its rows,
    answer and end token alone. The rows go through the model in parts of like length, so that little is padding; the
    gradient does not depend on how they are divided.
    """
    rows = [(arm, row) for arm, batch in enumerate(batches) for row in batch]
    tokens = [sum(len(row.target) for row in batch) for batch in batches]
    losses = [0.0] * len(batches)
    for part in _parts(rows, tokens_at_once, len(prefix.ids) if prefix else 0):
        logits, targets, wanted = target_logits(loaded, [row for _, row in part], prefix)
        owner = torch.tensor([arm for arm, _ in part], device=loaded.device).unsqueeze(1)
        shares = []
        for arm in sorted({arm for arm, _ in part}):
            own = wanted & (owner == arm)
            share = int(own.sum()) / tokens[arm]
            shares.append(cross_entropy(logits[own].float(), targets[own]) * share)
            losses[arm] += shares[-1].item()
        torch.stack(shares).sum().backward()
    return losses


def _parts(
    rows: Sequence[tuple[int, TrainingRow]], tokens_at_once: int, head: int
) -> Iterator[list[tuple[int, TrainingRow]]]:
    """Rows by length, as many together as fit, with their padding but without the shared head; at least one."""
    ordered = sorted(rows, key=lambda owned: len(owned[1]))
    part: list[tuple[int, TrainingRow]] = []
    for owned in ordered:
        if part and (len(part) + 1) * (len(owned[1]) - head) > tokens_at_once:
            yield part
            part = []
        part.append(owned)
    yield part


def target_logits(
    loaded: LoadedModel, rows: Sequence[TrainingRow], prefix: Prefix | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Logits before every target token, (B, K, V); the targets, (B, K); and the mask of the real ones among them.

    Rows are padded on the left, so targets end at the right edge and the head runs there only. Targets are masked by
    their length, never by pad id: where pad == EOS the model would else not learn to stop.
    """
    targets, target_mask = left_pad([row.target for row in rows], loaded.device)
    full = [row.context + row.target for row in rows]
    logits = last_logits(loaded, full, targets.shape[1] + 1, prefix)[:, :-1]
    return logits, targets, target_mask.bool()
