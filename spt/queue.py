"""The runs that wait for the device: one small file each under `SPT_HOME/queue`. Imports no torch.

An entry stays until its run has ended, so a worker that starts after a crash goes on with what was running:

    1785900000000000000-capitals-bundled-1a2b3c4d5e6f.json    {"run": "capitals-bundled-1a2b3c4d5e6f"}

`"again": true` asks for a finished run to be made anew, `"judge": {...}` (JudgeSettings) for its answers to be judged.
Both leave the stored result alone until the work has really begun.

The name begins with the time, so the order of names is the order of work.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spt.files import write_atomic
from spt.home import home

if TYPE_CHECKING:
    from spt.store import RunFolder


@dataclass(frozen=True)
class Entry:
    """A run that waits for the device, or has it."""

    run: str
    path: Path
    again: bool = False
    judge: dict[str, Any] | None = None  # settings of the judge that is asked about its answers


def folder() -> Path:
    """Where the entries lie."""
    return home() / "queue"


def entries() -> list[Entry]:
    """All entries, the next one first. A file that holds no entry is ignored: it cannot be run."""
    found = []
    for path in sorted(folder().glob("[0-9]*.json")):
        try:
            content = json.loads(path.read_text())
            run, judge = str(content["run"]), content.get("judge")
        except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
            continue  # taken off the queue between the listing and the reading, or not ours
        again = content.get("again") is True
        found.append(Entry(run, path, again, judge if isinstance(judge, dict) else None))
    return found


def enqueue(run_id: str, **more: Any) -> None:
    """Put a run at the end of the queue; one that is there already keeps its place."""
    if position(run_id) is None:
        write_atomic(folder() / f"{time.time_ns()}-{run_id}.json", json.dumps({"run": run_id, **more}).encode())


def entry(run_id: str) -> Entry | None:
    """The entry of a run; None = it is not in the queue."""
    return next((each for each in entries() if each.run == run_id), None)


def begun(run_id: str) -> None:
    """A run that was to be made anew has begun: from now on a new worker goes on with it, and begins no third time."""
    for each in entries():
        if each.run == run_id and each.again:
            write_atomic(each.path, json.dumps({"run": run_id}).encode())


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


def submit(run: RunFolder, again: bool = False) -> None:
    """Start or resume a run: put it on the queue for the worker. A finished one is left as it is, unless `again`."""
    if run.status() == "finished" and not again:
        return
    run.clear_stop()
    run.clear_notice()
    enqueue(run.id, **({"again": True} if again else {}))


def judge(run: RunFolder, settings: dict[str, Any]) -> None:
    """Have the answers of a finished run judged by the worker; `settings` are those of JudgeSettings."""
    run.clear_stop()
    run.clear_notice()
    enqueue(run.id, judge=settings)


def stop(run: RunFolder) -> None:
    """Stop a run, whether it is executed now or still waits."""
    run.request_stop()  # first, so that a worker that takes it at this moment stops at once
    if run.status() != "running":
        cancel(run.id)
        if run.status() == "new":
            run.disown()  # nothing was begun: whoever starts it next may have it
