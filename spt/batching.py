"""Rows of token ids as padded tensors, forward passes over them, and prefixes computed once for all rows.

The rows of a batch often begin alike: with the chat template's head, the few-shot block, the soft prompt. Where the
model's cache allows, that prefix is run once as a single row and its keys and values are expanded over the batch. The
layout is then `[prefix][padding][rest]`; the padding is masked and position ids count real tokens only, so the numbers
are those of plain left padding (tests hold them together).
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

from spt.models import LoadedModel

MIN_PREFIX = 8  # tokens; below, the extra forward pass costs more than it saves

Ids = Sequence[int]


def left_pad(rows: Sequence[Ids], device: torch.device, prefix: int = 0) -> tuple[Tensor, Tensor]:
    """Rows of ids -> (B, T) ids and attention mask, padded on the left, or behind the first `prefix` ids of all rows.

    Padding repeats the row's first id, masked: the embedding of a pad token is often zero, and where a model takes the
    norm of a hidden state (Gemma 3n) the gradient of a zero vector is NaN and spreads through the mask.
    """
    width = max(len(row) for row in rows)
    ids = [[*row[:prefix], *[row[0]] * (width - len(row)), *row[prefix:]] for row in rows]
    mask = [[1] * prefix + [0] * (width - len(row)) + [1] * (len(row) - prefix) for row in rows]
    return torch.tensor(ids, device=device), torch.tensor(mask, device=device)


def positions(mask: Tensor) -> Tensor:
    """(B, T) attention mask -> position ids that count real tokens from 0."""
    return (mask.cumsum(-1) - 1).clamp(min=0)


def expandable(loaded: LoadedModel) -> bool:
    """Whether every layer of this model's cache holds keys and values alone, so that a prefix can be expanded.

    Not so for state-space and hybrid models; they take the plain path.
    """
    layers = DynamicCache(config=loaded.model.config.get_text_config(decoder=True)).layers
    return bool(layers) and all(type(layer) in (DynamicLayer, DynamicSlidingWindowLayer) for layer in layers)


def shared_prefix(loaded: LoadedModel, rows: Sequence[Ids], spare: int, frozen_below: int | None = None) -> int:
    """How many ids at the head of all rows may be computed once; 0 where it is not worth it or not exact.

    spare: further tokens that will follow the longest row. frozen_below: ids from this one on must stay outside, since
    a gradient has to reach them. A sliding window counts padding as distance, so the whole row must fit into it.
    """
    head = 0
    shortest = min(len(row) for row in rows)
    while head < shortest - 1 and len({row[head] for row in rows}) == 1:  # one id of each row is always left to run
        if frozen_below is not None and rows[0][head] >= frozen_below:
            break
        head += 1
    if head < MIN_PREFIX or len(rows) < 2 or not expandable(loaded):
        return 0
    config = loaded.model.config.get_text_config(decoder=True)
    window = getattr(config, "sliding_window", None)
    if window is not None and max(len(row) for row in rows) + spare > window:
        return 0
    return head


@dataclass(frozen=True)
class Prefix:
    """Ids at the head of rows, and the cache behind them, computed once as a single row."""

    ids: tuple[int, ...]
    cache: DynamicCache

    @classmethod
    @torch.no_grad()
    def of(cls, loaded: LoadedModel, prefix: Ids) -> Prefix:
        """Run the prefix through the model."""
        ids = torch.tensor([list(prefix)], device=loaded.device)
        cache = DynamicCache(config=loaded.model.config.get_text_config(decoder=True))
        loaded.model(input_ids=ids, attention_mask=torch.ones_like(ids), cache=cache, use_cache=True, logits_to_keep=1)
        return cls(tuple(prefix), cache)

    def expanded(self, batch_size: int) -> DynamicCache:
        """A cache of its own for a batch of rows that begin with the prefix."""
        cache = copy.deepcopy(self.cache)
        cache.batch_repeat_interleave(batch_size)
        return cache


def prefill(loaded: LoadedModel, prefix: Ids, batch_size: int) -> DynamicCache:
    """Cache of a prefix for one batch."""
    return Prefix.of(loaded, prefix).expanded(batch_size)


def last_logits(loaded: LoadedModel, rows: Sequence[Ids], keep: int, prefix: Prefix | None = None) -> Tensor:
    """Logits of the last `keep` positions of every row, (B, keep, V).

    The head runs at those positions only: at every position it costs more than the rest of a small model. All rows
    begin with the prefix, where there is one, and the kept positions lie behind it.
    """
    if prefix is None:
        ids, mask = left_pad(rows, loaded.device)
        return plain_logits(loaded.model, ids, mask, keep)
    head = len(prefix.ids)
    ids, mask = left_pad(rows, loaded.device, head)
    output = loaded.model(
        input_ids=ids[:, head:],
        attention_mask=mask,
        position_ids=positions(mask)[:, head:],
        cache=prefix.expanded(len(rows)),
        use_cache=True,
        logits_to_keep=keep,
    )
    return output.logits[:, -keep:]


def plain_logits(model: PreTrainedModel, ids: Tensor, mask: Tensor, keep: int) -> Tensor:
    """The same from padded rows, without a cache: for any model, and the reference for the tests."""
    accepted = inspect.signature(model.forward).parameters
    extra: dict[str, Tensor | int] = {"position_ids": positions(mask)} if "position_ids" in accepted else {}
    if "logits_to_keep" in accepted:
        extra["logits_to_keep"] = keep
    return model(input_ids=ids, attention_mask=mask, use_cache=False, **extra).logits[:, -keep:]
