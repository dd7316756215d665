"""Soft-prompt tuning: AdamW on ten vectors under a frozen model. `spt.lora` takes the same steps on its own weights.

Stated by the authors (arXiv:2606.12117): 10 vectors, 80 steps, about 640 samples. Optimizer, learning rate, schedule,
initial vectors and loss mask are not; those here are spt's defaults, calibrated in docs/calibration.md.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from spt.batching import Prefix, last_logits, left_pad, shared_prefix
from spt.events import Checkpoint, MemoryReduced, StepLoss
from spt.models import LoadedModel
from spt.out_of_memory import is_out_of_memory, release
from spt.prompt import VirtualTokens
from spt.spec import Method, RunSpec

WARMUP_STEPS = 5
MAX_GRAD_NORM = 1.0
TuningKind = Literal["tuning", "lora_tuning"]
_MOMENTS = ("exp_avg", "exp_avg_sq")  # of Adam, by torch's names
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


class Steps:
    """Optimizer steps on a frozen model, one a call: what the tuning of soft prompts and of LoRA share.

    Both take the same rows in the same order, and the same loss, clipping and warm-up. `rows[a]` are the training rows
    of arm `a` by index. Where memory runs out a step goes on in halves (`notices`), and a checkpoint holds all that is
    needed to go on bit for bit.
    """

    method: Method
    what: TuningKind  # in the notices

    def __init__(
        self,
        loaded: LoadedModel,
        parameters: Sequence[nn.Parameter],
        rows: Sequence[Mapping[int, TrainingRow]],
        train_size: int,
        spec: RunSpec,
        peak_rate: float,
        prefix: Prefix | None = None,
        tokens_at_once: int | None = None,
    ) -> None:
        """`prefix`: of all rows, where no gradient reaches it. `tokens_at_once`: where less than usual is known to
        fit."""
        self.loaded, self.parameters, self.rows, self.train_size, self.spec = loaded, parameters, rows, train_size, spec
        self.arms = spec.arms[: len(rows)]
        self.prefix, self.peak_rate = prefix, peak_rate
        self.tokens_at_once = tokens_at_once or TOKENS_AT_ONCE[loaded.device.type]
        self.notices: list[MemoryReduced] = []  # for the caller to take
        self.step_done = 0
        self.optimizer = torch.optim.AdamW(parameters, lr=peak_rate, weight_decay=0.0)

    def _update(self) -> tuple[list[float], list[float], float, float]:
        """One update; gives the losses and gradient norms of the arms, the learning rate, and the seconds it took.

        A loss is the mean over the target tokens of the arm's batch, before the update.
        """
        start = time.perf_counter()
        step = self.step_done + 1
        batches = [
            [rows[i] for i in rows_of_step(step, self.spec.batch_size, self.train_size, arm.seed)]
            for arm, rows in zip(self.arms, self.rows, strict=True)
        ]
        rate = self.peak_rate * min(1.0, step / WARMUP_STEPS)
        self.optimizer.param_groups[0]["lr"] = rate
        losses = self._backward(batches)
        norms = self._clip()
        self.optimizer.step()
        self.step_done = step
        return losses, norms, rate, time.perf_counter() - start

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
            self.notices.append(MemoryReduced(what=self.what, at_once=smaller, detail=detail))

    def _half(self, batches: Sequence[Sequence[TrainingRow]]) -> int | None:
        """Half the tokens of the largest part that a step has now; None where every part is a single row."""
        head = len(self.prefix.ids) if self.prefix else 0
        rows = [(arm, row) for arm, batch in enumerate(batches) for row in batch]
        several = [part for part in _parts(rows, self.tokens_at_once, head) if len(part) > 1]
        return max((len(part) * (len(part[-1][1]) - head) for part in several), default=0) // 2 or None

    def _clip(self) -> list[float]:
        """Clip the gradient of each arm by itself; returns the norms before that."""
        raise NotImplementedError

    def checkpoint(self) -> Checkpoint:
        """All that `restore` needs to go on bit for bit: what is tuned and Adam's moments, end to end."""
        states = [self.optimizer.state[parameter] for parameter in self.parameters]
        tensors = {"vectors": self.parameters, **{name: [state[name] for state in states] for name in _MOMENTS}}
        flat = {name: torch.cat([t.detach().flatten() for t in each]).float().cpu() for name, each in tensors.items()}
        return Checkpoint(self.step_done, {name: tensor.numpy().copy() for name, tensor in flat.items()}, self.method)

    @torch.no_grad()
    def restore(self, checkpoint: Checkpoint) -> None:
        """Take up what is tuned, moments and step of a checkpoint."""
        sizes = [parameter.numel() for parameter in self.parameters]
        kept = {n: torch.from_numpy(a.copy()).flatten().split(sizes) for n, a in checkpoint.tensors.items()}
        for i, parameter in enumerate(self.parameters):
            own = {name: parts[i].view_as(parameter).to(parameter.device) for name, parts in kept.items()}
            parameter.copy_(own["vectors"])
            step = torch.tensor(float(checkpoint.step))
            self.optimizer.state[parameter] = {"step": step, **{name: own[name].clone() for name in _MOMENTS}}
        self.step_done = checkpoint.step


class Tuner(Steps):
    """Tunes the vectors in `virtual` on training rows, one optimizer step a call.

    The arms of a run (further seeds, controls) are tuned together: `rows[a]` are the training rows of arm `a` by index,
    with the virtual ids of its own vectors. The model is frozen and AdamW works element by element, so an arm learns
    what it would learn alone.
    """

    method, what = "soft_prompt", "tuning"

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
        self.vectors = virtual.vectors
        texts = [row.context + row.target for own in rows for row in own.values()]
        head = shared_prefix(loaded, texts, 0, frozen_below=virtual.first_id)
        prefix = Prefix.of(loaded, texts[0][:head]) if head else None
        rate = spec.learning_rate * virtual.rms()
        super().__init__(loaded, [self.vectors], rows, train_size, spec, rate, prefix, tokens_at_once)

    def step(self) -> StepLoss:
        """One update of all arms."""
        losses, norms, rate, seconds = self._update()
        return StepLoss(
            step=self.step_done,
            loss=losses[0],
            learning_rate=rate,
            grad_norm=norms[0],
            seconds=seconds,
            arms={arm.name: loss for arm, loss in list(zip(self.arms, losses, strict=True))[1:]},
        )

    def _clip(self) -> list[float]:
        assert self.vectors.grad is not None
        norms = []
        for gradient in self.vectors.grad.split(self.spec.virtual_tokens):
            norm = torch.linalg.vector_norm(gradient)
            gradient.mul_((MAX_GRAD_NORM / (norm + 1e-6)).clamp(max=1.0))
            norms.append(norm.item())
        return norms


def backward(
    loaded: LoadedModel, batches: Sequence[Sequence[TrainingRow]], tokens_at_once: int, prefix: Prefix | None
) -> list[float]:
    """Add the gradient of every arm's loss to what it tunes; returns the losses.

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
