"""Signs of life from within a batch: how often, what they say, and that a run's other events are as without them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from spt import ticker
from spt.events import Progress
from spt.experiment import ModelCache
from spt.runner import execute
from spt.store import Store
from spt.ticker import Decoding, Ticker
from spt.view import RunView
from tests.runs import small_spec


def test_it_speaks_every_two_seconds_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(ticker.time, "monotonic", lambda: clock[0])
    heard: list[Progress] = []
    told = Ticker(heard.append)
    assert told.at("zero_shot", 16, 64).ahead is None and not heard
    for token in range(1, 101):
        clock[0] = token * 0.5
        told(Decoding(rows=16, ended=token // 10, tokens=token, most=512))
    assert len(heard) == 25, "fifty seconds"
    assert heard[-1].detail == "token 100, 6 of 16 go on" and (heard[-1].done, heard[-1].ahead) == (16, 10.0)
    told.at("tuning", 10, 80)
    clock[0] += 3
    told(Decoding(rows=16, ended=0, tokens=7, most=512))
    assert heard[-1].detail == "probe: token 7, 16 of 16 go on" and heard[-1].ahead == 0


def test_a_run_shows_life_within_its_batches(tiny: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Every token here; the bar never goes back, and what is done counts stored answers alone."""
    monkeypatch.setattr(ticker, "EVERY", 0.0)
    folder = Store().create(small_spec(tiny("llama"), steps=2, probe_every=1))
    execute(folder, ModelCache())
    events = folder.events()
    signs = [event for event in events if isinstance(event, Progress) and event.ahead is not None]
    assert {sign.phase for sign in signs} == {"zero_shot", "few_shot", "tuning", "soft_prompt"}
    assert {sign.done for sign in signs if sign.phase == "zero_shot"} == {0, 16}
    assert all(sign.done + (sign.ahead or 0) <= sign.total for sign in signs)
    view, before, moved = RunView(folder.spec), 0.0, 0
    for event in events:
        view.update([event])
        moved += event in signs and view.fraction > before
        assert view.fraction >= before
        before = view.fraction
        if event in signs:
            assert view.headline.endswith("go on") and f"{view.phase_done} of {view.phase_total}" in view.headline
    assert moved > 10 and view.phase_detail == ""
