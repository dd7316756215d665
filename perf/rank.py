"""Time of `spt rank` over many run folders: as the command does it, from the store to the printed tables; and
the processor's time, which a busy machine does not change.

    python -m perf.rank [RUNS]      # without a number: 10,000, and 5,000, which are few enough to resample

Fifty models in pairs × twenty benchmarks × seeds, 64 items each. Two dozen runs are written through the store; the
others are copies of their results under other models and seeds, with the same answers.
"""

from __future__ import annotations

import io
import json
import os
import sys
import tempfile
import time
from itertools import product
from pathlib import Path

from rich.console import Console

from spt.cli_rank import show
from spt.rank_choice import choose
from spt.rank_sources import Reader
from spt.ranking import rank
from spt.spec import METHODS, RunSpec
from spt.store import RunFolder, Store
from tests import twins

PAIRS, BENCHMARKS = 25, 20


def copy(source: RunFolder, spec: RunSpec) -> None:
    """A finished run of `spec` with the answers of another."""
    folder = Store().root / spec.run_id
    folder.mkdir()
    for name in ("spec.json", "result.json"):
        content = json.loads((source.path / name).read_text())
        content |= {"spec": spec.model_dump(), **({"run": spec.run_id} if name == "result.json" else {})}
        (folder / name).write_text(json.dumps(content))
    (folder / "predictions").mkdir()
    for method in METHODS:
        os.link(source.path / "predictions" / f"{method}.jsonl", folder / "predictions" / f"{method}.jsonl")


def lay_out(runs: int) -> None:
    forms = dict.fromkeys(METHODS, 0.9)
    sources = [
        twins.finish(f"source/{i}", 0.2 + 0.025 * i, twins.FORM if i % 2 else forms, probes=False) for i in range(24)
    ]
    models = [name(i) for i in range(PAIRS) for name in (twins.base, twins.post)]
    grid = product(range(-(-runs // (len(models) * BENCHMARKS))), range(BENCHMARKS), enumerate(models))
    for number, (seed, benchmark, (model, name)) in enumerate(grid):
        if number < runs:
            source = sources[(model + benchmark + 2 * seed) % len(sources)]
            copy(source, RunSpec(model=name, benchmark=f"made-up-{benchmark}", seed=seed, items=64))
    for source in sources:
        source.delete()


def measure(runs: int) -> str:
    lay_out(runs)
    wall, start = time.perf_counter(), time.process_time()
    reader = Reader()
    found = reader.read()
    read = time.process_time()
    chosen = choose(found, reader.outcomes)
    picked = time.process_time()
    rankings = rank(chosen.scores, chosen.twins, notes=chosen.notes)
    ranked = time.process_time()
    show(Console(file=io.StringIO(), width=160), rankings)
    end = time.process_time()
    intervals = rankings.benchmarks[0].orders[0].distance.low is not None
    stages = f"results {read - start:.1f}, answers {picked - read:.1f}, orders {ranked - picked:.1f}, tables"
    return (
        f"{runs:,} run folders, {len(rankings.twins)} pairs, {len(rankings.benchmarks)} benchmarks: "
        f"{time.perf_counter() - wall:.1f} s, of the processor {end - start:.1f} ({stages} {end - ranked:.1f}); "
        f"intervals: {'yes' if intervals else 'no'}"
    )


def main() -> None:
    for runs in [int(sys.argv[1])] if len(sys.argv) > 1 else [10_000, 5_000]:
        with tempfile.TemporaryDirectory() as root:
            os.environ["SPT_HOME"] = str(Path(root))
            print(measure(runs), flush=True)


if __name__ == "__main__":
    main()
