"""Tuning: the loss against a plain reference, determinism, and going on from a checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch.nn.functional import cross_entropy

from spt import models
from spt.models import LoadedModel
from spt.prompt import VirtualTokens
from spt.spec import RunSpec
from spt.tuning import TrainingRow, Tuner, batch_loss, initial_vectors, rows_of_step

SPEC = RunSpec(steps=6, batch_size=3, virtual_tokens=4)


@pytest.fixture
def loaded(tiny: Callable[[str], Path]) -> LoadedModel:
    return models.load(str(tiny("llama")))


def tuner(loaded: LoadedModel, spec: RunSpec = SPEC) -> Tuner:
    virtual = VirtualTokens.attach(loaded.model)
    virtual.set(None)
    ids = range(virtual.first_id, virtual.first_id + spec.virtual_tokens)
    generator = torch.Generator().manual_seed(3)
    rows = []
    for _ in range(10):
        n, k = torch.randint(2, 12, (2,), generator=generator).tolist()
        text = torch.randint(5, 200, (n + k,), generator=generator).tolist()
        rows.append(TrainingRow((*ids, *text[:n]), (*text[n:], loaded.eos_ids[0])))
    virtual.set(initial_vectors(virtual, [r.context + r.target for r in rows], spec.virtual_tokens, spec.seed))
    return Tuner(loaded, virtual, rows, spec)


def test_the_loss_is_that_of_the_answers_alone(loaded: LoadedModel) -> None:
    """Left padding and the narrow head change neither the loss nor its gradient."""
    tuning = tuner(loaded)
    rows = tuning.rows[:4]
    loss = batch_loss(loaded, rows, tuning.first_virtual_id)
    loss.backward()
    gradient = tuning.vectors.grad.clone()  # type: ignore[union-attr]
    tuning.vectors.grad = None
    losses = []
    for row in rows:
        logits = loaded.model(input_ids=torch.tensor([row.context + row.target]), use_cache=False).logits[0]
        start = len(row.context)
        losses.append(cross_entropy(logits[start - 1 : -1], torch.tensor(row.target), reduction="none"))
    reference = torch.cat(losses).mean()
    reference.backward()
    assert loss.item() == pytest.approx(reference.item(), abs=1e-5)
    torch.testing.assert_close(gradient, tuning.vectors.grad, atol=1e-5, rtol=1e-4)


def test_the_same_spec_gives_the_same_curve_bit_for_bit(loaded: LoadedModel) -> None:
    curves = []
    for _ in range(2):
        tuning = tuner(loaded)
        curves.append([tuning.step().loss for _ in range(SPEC.steps)])
    assert curves[0] == curves[1]
    other = tuner(loaded, SPEC.model_copy(update={"seed": 1}))
    assert other.step().loss != curves[0][0]


def test_the_loss_falls(loaded: LoadedModel) -> None:
    spec = SPEC.model_copy(update={"steps": 40, "batch_size": 10})
    tuning = tuner(loaded, spec)
    losses = [tuning.step().loss for _ in range(spec.steps)]
    assert losses[-1] < losses[0] - 0.1


def test_going_on_from_a_checkpoint_equals_an_unbroken_run(loaded: LoadedModel) -> None:
    unbroken = tuner(loaded)
    losses = [unbroken.step().loss for _ in range(SPEC.steps)]
    broken = tuner(loaded)
    for _ in range(3):
        broken.step()
    kept = broken.checkpoint()
    resumed = tuner(loaded)
    resumed.restore(kept)
    assert [resumed.step().loss for _ in range(3)] == losses[3:]
    assert torch.equal(resumed.vectors, unbroken.vectors)


def test_every_row_is_seen_once_an_epoch() -> None:
    seen = [i for step in range(1, 11) for i in rows_of_step(step, 3, 10, seed=0)]
    assert len(seen) == 30
    for epoch in range(3):
        assert sorted(seen[epoch * 10 : epoch * 10 + 10]) == list(range(10))
    assert seen[:10] != seen[10:20]
    assert rows_of_step(1, 25, 10, seed=0)[:10] == seen[:10], "a batch may be larger than the training split"


def test_initial_vectors_are_embeddings_of_the_texts(loaded: LoadedModel) -> None:
    virtual = VirtualTokens.attach(loaded.model)
    vectors = initial_vectors(virtual, [[7, 7, 8]], 6, seed=0)
    allowed = virtual.embedding(torch.tensor([7, 8])).detach()
    assert all(any(torch.equal(v, a) for a in allowed) for v in vectors)
    assert not torch.equal(vectors, initial_vectors(virtual, [[7, 7, 8]], 6, seed=1))
