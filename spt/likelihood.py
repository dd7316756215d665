"""Log-likelihood of the options of a closed question, each as the answer the benchmark would copy (`A. Paris`).

The contexts are run once and their cache is expanded over the options; models whose cache cannot be expanded (state
space, hybrid) score context + option from the start. Both give the same numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from spt.batching import Ids, expandable, left_pad, plain_logits, positions, prefill, shared_prefix
from spt.models import LoadedModel

Options = Sequence[Sequence[Ids]]


@torch.inference_mode()
def option_logprobs(loaded: LoadedModel, contexts: Sequence[Ids], options: Options) -> list[list[float]]:
    """Sum of log p(token) in nats for every option of every context.

    `contexts[i]` are token ids, `options[i]` the ids of each option of item i, tokenised apart from the context. No end
    token is scored: whether the model would stop there is format, not knowledge.
    """
    score = _expanded if expandable(loaded) else _from_the_start
    return score(loaded, contexts, options)


def _sums(logits: Tensor, targets: Tensor, mask: Tensor, options: Options) -> list[list[float]]:
    """(N, K, V) logits, (N, K) targets and mask over all options -> their summed log-probabilities, by item."""
    logprobs = logits.float().log_softmax(-1).gather(-1, targets.unsqueeze(-1)).squeeze(-1)
    sums = iter((logprobs * mask).sum(-1).tolist())
    return [[next(sums) for _ in row] for row in options]


def _from_the_start(loaded: LoadedModel, contexts: Sequence[Ids], options: Options) -> list[list[float]]:
    """Each context + option is a row. Left-padded, so that the options end at the right edge."""
    pairs = [(context, option) for context, row in zip(contexts, options, strict=True) for option in row]
    ids, mask = left_pad([[*context, *option] for context, option in pairs], loaded.device)
    targets, target_mask = left_pad([option for _, option in pairs], loaded.device)
    logits = plain_logits(loaded.model, ids, mask, targets.shape[1] + 1)[:, :-1]
    return _sums(logits, targets, target_mask, options)


def _expanded(loaded: LoadedModel, contexts: Sequence[Ids], options: Options) -> list[list[float]]:
    """One forward over the contexts, a second over the options with the cache repeated. Options padded on the right."""
    longest = max(len(option) for row in options for option in row)
    prefix = shared_prefix(loaded, contexts, spare=longest)
    ids, mask = left_pad(contexts, loaded.device, prefix)
    output = loaded.model(
        input_ids=ids[:, prefix:],
        attention_mask=mask,
        position_ids=positions(mask)[:, prefix:],
        cache=prefill(loaded, contexts[0][:prefix], len(contexts)) if prefix else None,
        use_cache=True,
        logits_to_keep=1,
    )
    owner = torch.tensor([i for i, row in enumerate(options) for _ in row], device=loaded.device)
    flat = [list(option) for row in options for option in row]
    targets = torch.tensor([o + [loaded.pad_id] * (longest - len(o)) for o in flat], device=loaded.device)
    target_mask = torch.tensor([[1] * len(o) + [0] * (longest - len(o)) for o in flat], device=loaded.device)
    logits = output.logits[owner]
    if longest > 1:
        output.cache.batch_select_indices(owner)
        lengths = mask.sum(-1)[owner].unsqueeze(-1)
        rest = loaded.model(
            input_ids=targets[:, :-1],
            attention_mask=torch.cat((mask[owner], target_mask[:, :-1]), dim=1),
            position_ids=lengths + torch.arange(longest - 1, device=loaded.device),
            cache=output.cache,
            use_cache=True,
        )
        logits = torch.cat((logits, rest.logits), dim=1)
    return _sums(logits, targets, target_mask, options)
