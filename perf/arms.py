"""What further arms cost: a run with three seeds and a control against a single run, in turn in one process.

    python -m perf.arms                              # capitals on the bundled model, default settings
    python -m perf.arms --benchmark capitals-mc --steps 40 --pairs 3

Prints the ratio of wall time, and of processor time, which a busy machine disturbs less. One more pair of short runs
goes first and is not counted.
"""

from __future__ import annotations

import time
from statistics import median
from typing import Any

import typer

from spt import experiment
from spt.events import ResumeState, RunFinished
from spt.spec import RunSpec

ARMS: dict[str, Any] = {"seeds": 3, "control": ("shuffled",)}


def main(benchmark: str = "capitals", model: str = "bundled", steps: int = 80, items: int = 64, pairs: int = 1) -> None:
    """Time single and joint runs in turn."""
    cache = experiment.ModelCache()
    single = RunSpec(model=model, benchmark=benchmark, steps=steps, items=items)
    joint = single.model_copy(update=ARMS)
    for spec in (single, joint):
        timed(spec.model_copy(update={"steps": 1, "items": 4, "probe_every": 0}), cache)
    ratios = []
    for _ in range(pairs):
        (wall, cpu, parts), (joint_wall, joint_cpu, joint_parts) = (timed(spec, cache) for spec in (single, joint))
        ratios.append((joint_wall / wall, joint_cpu / cpu))
        print(f"single {wall:.0f} s (processor {cpu:.0f} s)  {parts}")
        print(f"joint  {joint_wall:.0f} s (processor {joint_cpu:.0f} s)  {joint_parts}")
        print(f"ratio  {ratios[-1][0]:.2f} (processor {ratios[-1][1]:.2f})", flush=True)
    print(f"median of {pairs}: {median(r[0] for r in ratios):.2f} (processor {median(r[1] for r in ratios):.2f})")


def timed(spec: RunSpec, cache: experiment.ModelCache) -> tuple[float, float, dict[str, float]]:
    """Wall and processor seconds of a whole run, and wall seconds by phase."""
    wall, cpu = time.perf_counter(), time.process_time()
    parts: dict[str, float] = {}
    for message in experiment.run(spec, ResumeState(), cache):
        if isinstance(message, RunFinished):
            parts = {phase: round(seconds, 1) for phase, seconds in message.result.seconds.items()}
    return time.perf_counter() - wall, time.process_time() - cpu, parts


if __name__ == "__main__":
    typer.run(main)
