"""Rows of token ids as padded tensors, and one forward pass over them."""

from __future__ import annotations

import inspect
from collections.abc import Sequence

import torch
from torch import Tensor
from transformers import PreTrainedModel


def left_pad(rows: Sequence[Sequence[int]], pad_id: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Rows of ids -> (B, T) ids and attention mask, padded on the left."""
    width = max(len(row) for row in rows)
    ids = torch.tensor([[pad_id] * (width - len(row)) + list(row) for row in rows], device=device)
    mask = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in rows], device=device)
    return ids, mask


def positions(mask: Tensor) -> Tensor:
    """(B, T) attention mask of left-padded rows -> position ids that count real tokens from 0."""
    return (mask.cumsum(-1) - 1).clamp(min=0)


def last_logits(model: PreTrainedModel, ids: Tensor, mask: Tensor, keep: int) -> Tensor:
    """Logits of the last `keep` positions, (B, keep, V), without a cache.

    The head runs at those positions only: at every position it costs more than the rest of a small model.
    """
    accepted = inspect.signature(model.forward).parameters
    extra = {"position_ids": positions(mask)} if "position_ids" in accepted else {}
    if "logits_to_keep" in accepted:
        extra["logits_to_keep"] = keep
    return model(input_ids=ids, attention_mask=mask, use_cache=False, **extra).logits[:, -keep:]
