"""Option ranking: the expanded cache and the plain path agree, on every architecture that has both."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from spt import likelihood, models
from spt.batching import expandable
from spt.prompt import VirtualTokens
from tests.tiny import ARCHITECTURES

HEAD = list(range(60, 70))
CONTEXTS = [[*HEAD, 5, 6, 7], [*HEAD, 9, 8, 7, 6, 5, 40, 41, 42, 43, 44, 45, 46], [*HEAD, 30]]
OPTIONS = [[[10], [11, 12, 13]], [[10, 20], [14, 15], [16]], [[17, 18, 19, 20], [21]]]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_both_paths_equal_a_reference_one_option_at_a_time(architecture: str, tiny: Callable[[str], Path]) -> None:
    loaded = models.load(str(tiny(architecture)))
    virtual = VirtualTokens.attach(loaded.model)
    virtual.set(torch.randn(3, virtual.embedding.embedding_dim, generator=torch.Generator().manual_seed(0)))
    contexts = [row[:1] + virtual.ids + row[1:] for row in CONTEXTS]
    pairs = zip(contexts, OPTIONS, strict=True)
    reference = [[_one(loaded, context, option) for option in row] for context, row in pairs]
    paths = [likelihood._from_the_start, likelihood.option_logprobs]
    for path in paths:
        found = path(loaded, contexts, OPTIONS)
        for row, wanted in zip(found, reference, strict=True):
            assert row == pytest.approx(wanted, abs=2e-4, rel=1e-5)


@torch.no_grad()
def _one(loaded: models.LoadedModel, context: list[int], option: list[int]) -> float:
    logprobs = loaded.model(input_ids=torch.tensor([context + option])).logits[0].float().log_softmax(-1)
    return sum(float(logprobs[len(context) + i - 1, token]) for i, token in enumerate(option))


def test_a_state_space_model_takes_the_plain_path(tiny: Callable[[str], Path]) -> None:
    assert expandable(models.load(str(tiny("llama"))))
    assert not expandable(models.load(str(tiny("mamba2"))))
