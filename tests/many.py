"""Many stored runs without a model: finished ones with curves, stopped, failed and unreadable ones."""

from __future__ import annotations

import json
import os
import re
import shutil
import time

from spt.benchmarks.base import Example
from spt.events import Probe, RunFailed, RunStarted, RunStopped, StepLoss
from spt.metrics import Rate
from spt.spec import Method, RunSpec
from spt.store import RunFolder, Store
from tests.whole import whole_run

MODELS = ("bundled", "gemma-3-270m", "Qwen/Qwen3-0.6B-Base", "allenai/OLMo-2-0425-1B")
BENCHMARKS = ("capitals", "trivia", "capitals-mc", "arithmetic")
AGE = 3 * 3600.0  # seconds between two runs


def many_runs(number: int, items: int = 16) -> list[RunFolder]:
    """So many runs, the first one the oldest; of twenty, 16 are finished, and one is of another version of spt.

    What is past the first forty are copies of those with another seed: making the answers is what takes time.
    """
    made: list[RunFolder] = []
    for i in range(number):
        made.append(_made(i, items) if i < 40 else _copied(made[i - 40], i))
        when = time.time() - (number - i) * AGE
        for path in made[-1].path.glob("*.json*"):
            os.utime(path, (when, when))
    return made


def _made(i: int, items: int) -> RunFolder:
    spec = RunSpec(
        model=MODELS[i % 4], benchmark=BENCHMARKS[i // 4 % 4], seed=i, items=items, seeds=2 if i % 5 == 0 else 1,
        probe_every=0 if i % 7 == 3 else 10,
    )  # fmt: skip

    def respond(method: Method, number: int, item: Example) -> str:
        """Zero-shot mostly in prose, few-shot partly, the soft prompt in the form; all know some of the answers."""
        form = {"zero_shot": i % 3, "few_shot": 3 + i % 4}.get(method, 8)
        knows = (number * 7 + i) % 10 < 3 + i % 4 + (method != "zero_shot")
        if item.options:
            text = item.target if knows else item.options[number % len(item.options)]
        else:
            text = item.target if knows else item.target.replace(item.answer, "Atlantis")
        return text if number % 8 < form else f"I think that it is {text.removeprefix('#### ')}, but I am not sure."

    kind = i % 20
    folder = _broken_off(spec, 25 + i, failed=kind == 8) if kind in (3, 8, 14) else whole_run(spec, respond)
    if kind == 17:
        (folder.path / "spec.json").write_text(json.dumps({"schema": 9}))
    return folder


def _copied(folder: RunFolder, seed: int) -> RunFolder:
    spec = folder.spec.model_copy(update={"seed": seed})
    copy = RunFolder(folder.path.with_name(spec.run_id), spec)
    shutil.copytree(folder.path, copy.path)
    for path in copy.path.glob("*.json*"):
        text = path.read_text().replace(folder.id, copy.id)
        path.write_text(re.sub(rf'"seed":( ?){folder.spec.seed}\b', rf'"seed":\g<1>{seed}', text))
    return copy


def _broken_off(spec: RunSpec, steps: int, failed: bool) -> RunFolder:
    folder = Store().create(spec)
    folder.append(RunStarted(run=folder.id))
    for step in range(1, steps + 1):
        folder.append(StepLoss(step=step, loss=4 / step, learning_rate=0.01, grad_norm=1.0, seconds=0.1))
        if spec.probe_every and step % spec.probe_every == 0:
            flags = [k < step // 8 for k in range(16)]
            rate = Rate.of(flags)
            folder.append(Probe(step=step, format=rate, knowledge=rate, exact_match=rate, answers=()))
    folder.append(RunFailed(message="The hub cannot be reached.") if failed else RunStopped())
    return folder
