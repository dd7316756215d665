"""Knowledge and format over the tuning steps, averaged over models. Imports no torch."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from spt.events import Probe
from spt.rank_choice import Entry
from spt.swaps import mean_interval

CURVES: tuple[Literal["format", "knowledge"], ...] = ("format", "knowledge")


@dataclass(frozen=True)
class Curve:
    """A mean over models at each step, with its 95 % interval over models; none for fewer than three."""

    mean: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()


@dataclass(frozen=True)
class Course:
    """The curves of closed- or of open-ended benchmarks."""

    steps: tuple[int, ...]
    format: Curve
    knowledge: Curve
    models: int
    runs: int


def courses(runs: Iterable[tuple[Entry, Sequence[Probe]]]) -> dict[bool, Course]:
    """By whether the benchmark is closed. Runs that were probed at other steps than most are left out."""
    by_kind: dict[bool, list[tuple[Entry, Sequence[Probe]]]] = defaultdict(list)
    for entry, probes in runs:
        if len(probes) > 1:
            by_kind[entry.closed].append((entry, probes))
    return {closed: _course(by_kind[closed]) for closed in sorted(by_kind, reverse=True)}


def _course(runs: Sequence[tuple[Entry, Sequence[Probe]]]) -> Course:
    grids = Counter(tuple(probe.step for probe in probes) for _, probes in runs)
    steps = grids.most_common(1)[0][0]
    by_model: dict[str, list[Sequence[Probe]]] = defaultdict(list)
    for entry, probes in runs:
        if tuple(probe.step for probe in probes) == steps:
            by_model[entry.model].append(probes)
    curves = {}
    for name in CURVES:
        # First the mean of each model: one with many runs counts no more than the others.
        of_models = [
            np.mean([[getattr(probe, name).rate for probe in probes] for probes in several], axis=0)
            for several in by_model.values()
        ]
        curves[name] = _curve(np.array(of_models))
    return Course(steps, curves["format"], curves["knowledge"], len(by_model), sum(map(len, by_model.values())))


def _curve(rates: np.ndarray) -> Curve:
    """`rates`: models × steps."""
    mean = tuple(float(rate) for rate in rates.mean(axis=0))
    if len(rates) < 3:
        return Curve(mean)
    spans = [mean_interval(column.tolist()) or (0.0, 1.0) for column in rates.T]
    return Curve(mean, tuple(max(0.0, low) for low, _ in spans), tuple(min(1.0, high) for _, high in spans))
