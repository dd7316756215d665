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
from spt.tuning import TrainingRow, Tuner, backward, initial_vectors, rows_of_step, seen_rows, tuned_items_of

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
    return Tuner(loaded, virtual, [dict(enumerate(rows))], len(rows), spec)


@pytest.mark.parametrize("tokens_at_once", [1, 30, 1000])
def test_the_loss_is_that_of_the_answers_alone(loaded: LoadedModel, tokens_at_once: int) -> None:
    """Left padding, the narrow head and the division into parts change neither the loss nor its gradient."""
    tuning = tuner(loaded)
    rows = [tuning.rows[0][i] for i in range(4)]
    (loss,) = backward(loaded, [rows], tokens_at_once, None)
    gradient = tuning.vectors.grad.clone()  # type: ignore[union-attr]
    tuning.vectors.grad = None
    losses = []
    for row in rows:
        logits = loaded.model(input_ids=torch.tensor([row.context + row.target]), use_cache=False).logits[0]
        start = len(row.context)
        losses.append(cross_entropy(logits[start - 1 : -1], torch.tensor(row.target), reduction="none"))
    reference = torch.cat(losses).mean()
    reference.backward()
    assert loss == pytest.approx(reference.item(), abs=1e-5)
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


def together(loaded: LoadedModel, spec: RunSpec) -> Tuner:
    """A tuner of all arms of a spec: same texts, each arm with its own virtual ids and a target of its own."""
    first = tuner(loaded).rows[0].values()
    virtual = VirtualTokens.attach(loaded.model)
    n = spec.virtual_tokens
    rows, vectors = [], []
    for place, arm in enumerate(spec.arms):
        ids = tuple(virtual.first_id + place * n + i for i in range(n))
        rows.append([TrainingRow(ids + row.context[n:], (place + 5, *row.target[1:])) for row in first])
        vectors.append(initial_vectors(virtual, [r.context + r.target for r in rows[-1]], n, arm.seed))
    virtual.set(torch.cat(vectors))
    return Tuner(loaded, virtual, [dict(enumerate(own)) for own in rows], len(first), spec)


def alone(tuning: Tuner, place: int) -> Tuner:
    """The same arm tuned by itself."""
    spec, n = tuning.spec, tuning.spec.virtual_tokens
    arm = spec.arms[place]
    virtual = VirtualTokens.attach(tuning.loaded.model)
    virtual.set(tuning.vectors.detach()[place * n : (place + 1) * n])
    shift = place * n
    rows = {
        index: TrainingRow(tuple(i - shift if i >= virtual.first_id else i for i in row.context), row.target)
        for index, row in tuning.rows[place].items()
    }
    spec = spec.model_copy(update={"seeds": 1, "control": (), "seed": arm.seed})
    return Tuner(tuning.loaded, virtual, [rows], len(rows), spec)


@pytest.mark.parametrize("tokens_at_once", [1, 40, 1000])
def test_arms_tuned_together_learn_what_each_learns_alone(loaded: LoadedModel, tokens_at_once: int) -> None:
    spec = SPEC.model_copy(update={"seeds": 3, "control": ("shuffled",), "learning_rate": 0.3})
    for place in range(4):
        single = alone(together(loaded, spec), place)
        losses = [single.step() for _ in range(spec.steps)]
        tuning = together(loaded, spec)
        tuning.tokens_at_once = tokens_at_once
        joint = [tuning.step() for _ in range(spec.steps)]
        name = spec.arms[place].name
        for mine, ours in zip(losses, joint, strict=True):
            assert (ours.arms.get(name) or ours.loss) == pytest.approx(mine.loss, abs=2e-5)
        own = tuning.vectors[place * spec.virtual_tokens :][: spec.virtual_tokens]
        torch.testing.assert_close(own, single.vectors, atol=2e-4, rtol=1e-3)
    assert losses[-1].loss != pytest.approx(joint[-1].loss, abs=1e-3), "the arms differ, so the comparison can fail"


def test_an_arm_with_a_large_gradient_does_not_clip_the_others(loaded: LoadedModel) -> None:
    tuning = together(loaded, SPEC.model_copy(update={"seeds": 2}))
    tuning.vectors.grad = torch.zeros_like(tuning.vectors)
    tuning.vectors.grad[: SPEC.virtual_tokens] = 100.0
    tuning.vectors.grad[SPEC.virtual_tokens :] = 1e-3
    norms = tuning._clip()
    assert norms[0] > 1000 and norms[1] < 0.1
    assert torch.linalg.vector_norm(tuning.vectors.grad[: SPEC.virtual_tokens]).item() == pytest.approx(1.0, abs=1e-4)
    assert torch.equal(tuning.vectors.grad[SPEC.virtual_tokens :], torch.full_like(tuning.vectors[:4], 1e-3))


def test_a_large_split_is_not_read_whole() -> None:
    for size in (5, 6, 7, 100_000):
        steps = {i for step in (1, 2) for i in rows_of_step(step, 3, size, seed=4)}
        assert set(seen_rows(RunSpec(steps=2, batch_size=3), 4, size)) == steps


def test_tuned_items_are_rows_that_the_steps_saw() -> None:
    spec = RunSpec(steps=2, batch_size=3, seeds=2, items=4, seed=5)
    seen = {i for step in (1, 2) for i in rows_of_step(step, 3, 50, seed=5)}
    chosen = tuned_items_of(spec, 50)
    assert len(set(chosen)) == 4 and set(chosen) <= seen
    assert tuned_items_of(RunSpec(steps=2), 50) == []
    assert len(tuned_items_of(RunSpec(steps=80, seeds=2, items=64), 10)) == 10


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
