"""A prefix computed once gives the numbers of plain left padding, and is refused where it would not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from spt import models
from spt.batching import Prefix, last_logits, left_pad, plain_logits, shared_prefix
from spt.benchmarks import get
from spt.generation import generate
from spt.prompt import VirtualTokens
from tests.tiny import ARCHITECTURES

HEAD = list(range(60, 72))
Tiny = Callable[[str], Path]


def with_prompt(folder: Path) -> tuple[models.LoadedModel, VirtualTokens]:
    loaded = models.load(str(folder))
    virtual = VirtualTokens.attach(loaded.model)
    virtual.set(torch.randn(3, virtual.embedding.embedding_dim, generator=torch.Generator().manual_seed(0)))
    return loaded, virtual


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_logits_and_gradient_do_not_change(architecture: str, tiny: Tiny) -> None:
    loaded, virtual = with_prompt(tiny(architecture))
    assert virtual.vectors is not None
    rows = [[*HEAD, *virtual.ids, *tail] for tail in ([5, 6], [9, 8, 7, 40, 41], [30, 31, 32])]
    found = []
    head = shared_prefix(loaded, rows, 0, frozen_below=virtual.first_id)
    for logits in (
        last_logits(loaded, rows, 2, Prefix.of(loaded, HEAD) if head else None),
        plain_logits(loaded.model, *left_pad(rows, loaded.device), 2),
    ):
        virtual.vectors.grad = None
        logits.float().log_softmax(-1)[..., 3].sum().backward()
        found.append((logits.detach(), virtual.vectors.grad))
    torch.testing.assert_close(found[0][0], found[1][0], atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(found[0][1], found[1][1], atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_greedy_answers_do_not_change(architecture: str, tiny: Tiny) -> None:
    loaded, virtual = with_prompt(tiny(architecture))
    form = get("capitals").format
    rows = [[*HEAD, *virtual.ids, *tail] for tail in ([5, 6], [9, 8, 7, 40, 41], [30, 31, 32])]
    assert generate(loaded, rows, form) == [generate(loaded, [row], form)[0] for row in rows]


def test_what_may_be_shared(tiny: Tiny) -> None:
    loaded, virtual = with_prompt(tiny("llama"))
    rows = [[*HEAD, *virtual.ids, 5], [*HEAD, *virtual.ids, 5]]
    assert shared_prefix(loaded, rows, 0) == len(HEAD) + 3, "one id is left to run, even in equal rows"
    assert shared_prefix(loaded, rows, 0, frozen_below=virtual.first_id) == len(HEAD)
    assert shared_prefix(loaded, [HEAD[:5], HEAD[:6]], 0) == 0, "too short to pay"
    assert shared_prefix(loaded, rows[:1], 0) == 0
    sliding, _ = with_prompt(tiny("gemma2"))
    window = sliding.model.config.sliding_window
    long = [[*HEAD, *range(100, 100 + window)], [*HEAD, 9]]
    assert shared_prefix(sliding, long, 0) == 0, "padding would count as distance"
    recurrent, _ = with_prompt(tiny("mamba2"))
    assert shared_prefix(recurrent, [[*HEAD, 5], [*HEAD, 6]], 0) == 0
