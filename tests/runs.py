"""Small real runs on a tiny model, and what two runs must share to be the same run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from spt.events import Event, LoraStep, Probe, StepLoss
from spt.spec import RunSpec
from spt.store import RunFolder, Store


def small_spec(model: Path, **changes: Any) -> RunSpec:
    """Seconds on a CPU: two batches of items, a few steps and probes."""
    settings = {
        "model": str(model), "benchmark": "capitals", "steps": 5, "items": 18, "batch_size": 2, "virtual_tokens": 3,
        "probe_every": 2, "probe_items": 2, "shots": 1, "chat_template": "off",
    }  # fmt: skip
    return RunSpec(**{**settings, **changes})


def outcome(folder: RunFolder) -> dict[str, Any]:
    """Everything of a finished run that must not depend on how often it was interrupted; bits, not roundings."""
    events = folder.events()
    result = folder.result()
    assert result is not None
    adapters = [path for pattern in ("prompt*/**/*.*", "lora/*") for path in folder.path.glob(pattern)]
    losses, lora = (
        sorted({(e.step, e.loss, e.grad_norm, e.learning_rate) for e in events if isinstance(e, kind)})
        for kind in (StepLoss, LoraStep)
    )
    return {
        "losses": losses,
        "lora": (lora, None if result.lora is None else result.lora.model_dump(exclude={"seconds"})),
        "probes": {e.step: e.model_dump(exclude={"time"}) for e in events if isinstance(e, Probe)},
        "predictions": {method: folder.predictions(method) for method in folder.spec.methods},
        "prompt": {str(path.relative_to(folder.path)): path.read_bytes() for path in adapters},
        "methods": result.methods,
        "tuning": result.tuning.model_dump(exclude={"seconds"}),
    }


@contextmanager
def home_at(folder: Path) -> Iterator[None]:
    """SPT_HOME = `folder` for a while, for fixtures that outlive a test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPT_HOME", str(folder))
        yield


def unbroken(spec: RunSpec, home: Path, run: Callable[[RunFolder], object]) -> dict[str, Any]:
    """The outcome of a run that nothing disturbed, made in a home of its own."""
    with home_at(home):
        folder = Store().create(spec)
        run(folder)
        return outcome(folder)


def steps(events: list[Event]) -> list[int]:
    """The steps in the order in which they were made, repeated ones included."""
    return [event.step for event in events if isinstance(event, StepLoss)]


def eventually(happened: Callable[[], object], seconds: float = 90.0, what: str = "it") -> None:
    """Wait until `happened()` is true; the limit is wide, for machines with much to do."""
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end, f"{what} did not happen within {seconds} seconds"
        time.sleep(0.02)
