"""A device that runs out of memory in the middle of a run: simulated where tensors are made, or for real on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console
from torch import nn

from spt import experiment
from spt.console import Follow
from spt.evaluation import EVAL_BATCH
from spt.events import MemoryReduced, RunFailed, StepLoss
from spt.experiment import ModelCache
from spt.models import LoadedModel
from spt.out_of_memory import is_out_of_memory
from spt.runner import execute
from spt.spec import RunSpec, UserError
from spt.store import RunFolder, Store
from spt.view import RunView
from tests.runs import outcome, small_spec

Tiny = Callable[[str], Path]


@contextmanager
def device_of(loaded: LoadedModel, tokens: int, gradient: bool) -> Iterator[list[int]]:
    """Every layer refuses more than `tokens` rows × tokens, as a full device does; gives the sizes that were refused.

    gradient: whether tuning (a pass that keeps what the gradient needs) is limited, or answering.
    """
    refused: list[int] = []

    def check(module: nn.Module, arguments: tuple[Any, ...]) -> None:
        rows, width = arguments[0].shape[:2]
        if torch.is_grad_enabled() == gradient and rows * width > tokens:
            refused.append(rows * width)
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")

    hooks = [layer.register_forward_pre_hook(check) for layer in loaded.model.model.layers]  # type: ignore[union-attr]
    try:
        yield refused
    finally:
        for hook in hooks:
            hook.remove()


@pytest.fixture(scope="module")
def cache() -> ModelCache:
    return ModelCache()


def run(spec: RunSpec, cache: ModelCache, root: Path) -> RunFolder:
    folder = Store(root).create(spec)
    execute(folder, cache)
    return folder


def notices(folder: RunFolder) -> list[MemoryReduced]:
    return [event for event in folder.events() if isinstance(event, MemoryReduced)]



def test_what_counts_as_out_of_memory() -> None:
    with pytest.raises(RuntimeError) as of_the_cpu:
        torch.empty(1 << 50)
    assert is_out_of_memory(of_the_cpu.value), "what this version of torch really says"
    assert is_out_of_memory(torch.OutOfMemoryError("CUDA out of memory.")) and is_out_of_memory(MemoryError())
    assert not is_out_of_memory(RuntimeError("mat1 and mat2 shapes cannot be multiplied"))
    assert not is_out_of_memory(ValueError("CUDA out of memory"))


@pytest.mark.parametrize("controls", [(), ("shuffled",)])
def test_tuning_goes_on_in_halves_with_the_same_curve(
    controls: tuple[Any, ...], tiny: Tiny, cache: ModelCache, tmp_path: Path
) -> None:
    spec = small_spec(tiny("llama"), batch_size=6, control=controls)
    free = run(spec, cache, tmp_path / "free")
    assert cache.loaded is not None and not notices(free)
    with device_of(cache.loaded, tokens=150, gradient=True) as refused:
        limited = run(spec, cache, tmp_path / "limited")
    assert refused and max(refused) > 150
    told = notices(limited)
    assert told and all(n.what == "tuning" and f"{n.at_once} tokens at once" in n.detail for n in told)
    assert len(told) == len(refused), "each is told once, and what was learnt is kept for later steps"
    console = Console(record=True, width=200)
    follow = Follow(console, Store(tmp_path / "followed").create(spec))
    follow(told[-1])
    assert told[-1].detail in console.export_text(), "the command line says it"
    view = RunView.of(limited.events(), spec)
    assert view.notices == [n.detail for n in told] and view.state == "finished"

    ours, theirs = ([e for e in folder.events() if isinstance(e, StepLoss)] for folder in (limited, free))
    assert [e.step for e in ours] == [1, 2, 3, 4, 5]
    for mine, wanted in zip(ours, theirs, strict=True):
        assert mine.loss == pytest.approx(wanted.loss, abs=1e-5)
        assert mine.grad_norm == pytest.approx(wanted.grad_norm, rel=1e-4)
        assert mine.arms == pytest.approx(wanted.arms, abs=1e-5)
    for method in spec.methods:
        assert [p.response for p in limited.predictions(method)] == [p.response for p in free.predictions(method)]


@pytest.mark.parametrize("benchmark", ["capitals", "capitals-mc"])
def test_answering_goes_on_in_halves_with_the_same_answers(
    benchmark: str, tiny: Tiny, cache: ModelCache, tmp_path: Path
) -> None:
    spec = small_spec(tiny("llama"), benchmark=benchmark, chat_template="off")
    free = run(spec, cache, tmp_path / "free")
    assert cache.loaded is not None
    with device_of(cache.loaded, tokens=250, gradient=False) as refused:
        limited = run(spec, cache, tmp_path / "limited")
    told = notices(limited)
    assert refused and told and all(n.what == "evaluation" for n in told)
    sizes = [n.at_once for n in told]
    assert sizes[0] == EVAL_BATCH // 2 and sizes == sorted(sizes, reverse=True), "the smaller size is remembered"
    assert f"{sizes[0]} items at once" in told[0].detail
    for method in spec.methods:
        mine = {p.id: p for p in limited.predictions(method)}
        for row in free.predictions(method):
            assert (mine[row.id].response, mine[row.id].stopped_by) == (row.response, row.stopped_by)
            assert mine[row.id].option_logprobs == pytest.approx(row.option_logprobs, abs=1e-4)
            assert mine[row.id].knows == row.knows
    assert limited.result().methods == free.result().methods  # type: ignore[union-attr]


@pytest.mark.parametrize("room_again", [False, True])
def test_a_limited_run_that_is_killed_goes_on_to_the_same_bits(
    room_again: bool, tiny: Tiny, cache: ModelCache, tmp_path: Path
) -> None:
    """Whether the device is as small when the run goes on, or has room again: the limits that were found are kept."""
    spec = small_spec(tiny("llama"), batch_size=6, items=16)
    cache.get(spec, lambda note: None)
    assert cache.loaded is not None
    folder = Store(tmp_path / "broken").create(spec)
    with device_of(cache.loaded, tokens=150, gradient=True), device_of(cache.loaded, tokens=250, gradient=False):
        whole = run(spec, cache, tmp_path / "whole")
        assert [n.what for n in notices(whole)][:: len(notices(whole)) - 1] == ["evaluation", "tuning"]
        for message in experiment.run(spec, folder.resume_state(), cache):
            folder.append(message)
            if isinstance(message, StepLoss if room_again else MemoryReduced) and notices(folder)[-1].what == "tuning":
                break
        assert folder.status() == "interrupted"
        if not room_again:
            execute(folder, cache)
    execute(folder, cache)
    assert outcome(folder) == outcome(whole)


@pytest.mark.parametrize("gradient", [True, False])
def test_at_one_row_it_fails_with_one_sentence(gradient: bool, tiny: Tiny, cache: ModelCache, tmp_path: Path) -> None:
    spec = small_spec(tiny("llama"), benchmark="capitals-mc")
    cache.get(spec, lambda note: None)
    assert cache.loaded is not None
    folder = Store(tmp_path).create(spec)
    with (
        device_of(cache.loaded, tokens=10, gradient=gradient) as refused,
        pytest.raises(UserError, match="ran out of memory"),
    ):
        execute(folder, cache)
    last = folder.events()[-1]
    assert isinstance(last, RunFailed) and "smaller model" in last.message and not last.detail
    assert len(refused) == (2 if gradient else 5), "2 rows; 16 items; halved down to one"
    assert not notices(folder), "limits that did not help are not kept for when there is room again"


def test_other_errors_are_not_tried_again(tiny: Tiny, cache: ModelCache, tmp_path: Path) -> None:
    spec = small_spec(tiny("llama"))
    cache.get(spec, lambda note: None)
    calls = []

    def fault(module: nn.Module, arguments: tuple[Any, ...]) -> None:
        calls.append(module)
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    hook = cache.loaded.model.model.layers[0].register_forward_pre_hook(fault)  # type: ignore[union-attr]
    try:
        with pytest.raises(RuntimeError, match="mat1"):
            execute(Store(tmp_path).create(spec), cache)
    finally:
        hook.remove()
    assert len(calls) == 1
