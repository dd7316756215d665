"""Log-likelihood of the options of a closed question, each as the answer the benchmark would copy (`A. Paris`).

The context is run once and its cache is expanded over the options; models whose cache cannot be expanded (state
space, hybrid) score context + option from the start. Both give the same numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

from spt.batching import last_logits, left_pad, positions
from spt.models import LoadedModel

Ids = Sequence[int]


@torch.inference_mode()
def option_logprobs(
    loaded: LoadedModel, contexts: Sequence[Ids], options: Sequence[Sequence[Ids]]
) -> list[list[float]]:
    """Sum of log p(token) in nats for every option of every context.

    `contexts[i]` are token ids, `options[i]` the ids of each option of item i, tokenised apart from the context. No end
    token is scored: whether the model would stop there is format, not knowledge.
    """
    if shares_prefix(loaded):
        return _expanded(loaded, contexts, options)
    return _from_the_start(loaded, contexts, options)


def shares_prefix(loaded: LoadedModel) -> bool:
    """Whether every layer of this model's cache holds keys and values alone, so that a prefix can be expanded."""
    layers = DynamicCache(config=loaded.model.config.get_text_config(decoder=True)).layers
    return bool(layers) and all(type(layer) in (DynamicLayer, DynamicSlidingWindowLayer) for layer in layers)


def _gather(logits: Tensor, targets: Tensor, mask: Tensor) -> Tensor:
    """(B, K, V) logits, (B, K) targets and mask -> (B,) summed log-probabilities, in float32."""
    logprobs = logits.float().log_softmax(-1).gather(-1, targets.unsqueeze(-1)).squeeze(-1)
    return (logprobs * mask).sum(-1)


def _from_the_start(
    loaded: LoadedModel, contexts: Sequence[Ids], options: Sequence[Sequence[Ids]]
) -> list[list[float]]:
    """Each context + option is a row. Left-padded, so that the options end at the right edge."""
    pairs = [(context, option) for context, row in zip(contexts, options, strict=True) for option in row]
    ids, mask = left_pad([[*context, *option] for context, option in pairs], loaded.pad_id, loaded.device)
    targets, target_mask = left_pad([option for _, option in pairs], loaded.pad_id, loaded.device)
    longest = targets.shape[1]
    logits = last_logits(loaded.model, ids, mask, longest + 1)[:, :-1]
    sums = iter(_gather(logits, targets, target_mask).tolist())
    return [[next(sums) for _ in row] for row in options]


def _expanded(loaded: LoadedModel, contexts: Sequence[Ids], options: Sequence[Sequence[Ids]]) -> list[list[float]]:
    """One forward over the contexts, a second over the options with the cache repeated. Options padded on the right."""
    ids, mask = left_pad(contexts, loaded.pad_id, loaded.device)
    output = loaded.model(
        input_ids=ids, attention_mask=mask, position_ids=positions(mask), use_cache=True, logits_to_keep=1
    )
    cache, first = output.cache, output.logits
    owner = torch.tensor([i for i, row in enumerate(options) for _ in row], device=loaded.device)
    cache.batch_select_indices(owner)
    flat = [list(option) for row in options for option in row]
    longest = max(len(option) for option in flat)
    targets = torch.tensor([o + [loaded.pad_id] * (longest - len(o)) for o in flat], device=loaded.device)
    target_mask = torch.tensor([[1] * len(o) + [0] * (longest - len(o)) for o in flat], device=loaded.device)
    logits = first[owner]
    if longest > 1:
        lengths = mask.sum(-1)[owner].unsqueeze(-1)
        rest = loaded.model(
            input_ids=targets[:, :-1],
            attention_mask=torch.cat((mask[owner], target_mask[:, :-1]), dim=1),
            position_ids=lengths + torch.arange(longest - 1, device=loaded.device),
            cache=cache,
            use_cache=True,
        )
        logits = torch.cat((logits, rest.logits), dim=1)
    sums = iter(_gather(logits, targets, target_mask).tolist())
    return [[next(sums) for _ in row] for row in options]

