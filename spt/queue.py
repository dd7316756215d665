"""The runs that wait for the device: one small file each under `SPT_HOME/queue`. Imports no torch.

An entry stays until its run has ended, so a worker that starts after a crash goes on with what was running:

    1785900000000000000-capitals-bundled-1a2b3c4d5e6f.json    {"run": "capitals-bundled-1a2b3c4d5e6f"}

The name begins with the time, so the order of names is the order of work.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from spt.files import write_atomic
from spt.home import home

if TYPE_CHECKING:
    from spt.store import RunFolder


@dataclass(frozen=True)
class Entry:
    """A run that waits for the device, or has it."""

    run: str
    path: Path


def folder() -> Path:
    """Where the entries lie."""
    return home() / "queue"


def entries() -> list[Entry]:
    """All entries, the next one first. A file that holds no entry is ignored: it cannot be run."""
    found = []
    for path in sorted(folder().glob("[0-9]*.json")):
        try:
            run = json.loads(path.read_text())["run"]
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            continue  # taken off the queue between the listing and the reading, or not ours
        found.append(Entry(str(run), path))
    return found


def enqueue(run_id: str) -> None:
    """Put a run at the end of the queue; one that is there already keeps its place."""
    if position(run_id) is None:
        write_atomic(folder() / f"{time.time_ns()}-{run_id}.json", json.dumps({"run": run_id}).encode())


def position(run_id: str) -> int | None:
    """0 = next (or running now), 1 = one run is before it; None = not in the queue."""
    runs = [entry.run for entry in entries()]
    return runs.index(run_id) if run_id in runs else None


def cancel(run_id: str) -> bool:
    """Take a run off the queue; whether it was there."""
    gone = [entry for entry in entries() if entry.run == run_id]
    for entry in gone:
        entry.path.unlink(missing_ok=True)
    return bool(gone)


def submit(run: RunFolder) -> None:
    """Start or resume a run: put it on the queue for the worker. A finished one is left as it is."""
    if run.status() == "finished":
        return
    run.clear_stop()
    enqueue(run.id)


def stop(run: RunFolder) -> None:
    """Stop a run, whether it is executed now or still waits."""
    run.request_stop()  # first, so that a worker that takes it at this moment stops at once
    if run.status() != "running":
        cancel(run.id)
