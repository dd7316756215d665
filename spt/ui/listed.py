"""The list of all runs for all open pages together: a run is read when its files change, and not before."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from spt.metrics import MethodScores
from spt.spec import METHODS, Method, RunSpec, UserError
from spt.store import RunFolder, Status, Store

LIST_AGE = 1.0  # seconds that a list of runs is good for
POINTS = 48  # of a small curve


@dataclass(frozen=True)
class Listed:
    """One line of the list of runs."""

    id: str
    spec: RunSpec
    status: Status
    changed: float  # Unix time
    scores: Mapping[Method, MethodScores] = field(default_factory=dict)  # of a finished run
    probes: tuple[float, ...] = ()  # exact match, at some of the probes
    losses: tuple[float, ...] = ()  # at some of the steps, the last one among them
    step: int = 0  # of tuning, the last one made
    seconds: float | None = None  # that the run took, once it is finished
    problem: str = ""  # why the result cannot be read

    @property
    def exact_match(self) -> float | None:
        """With the soft prompt, once it is finished."""
        soft = self.scores.get("soft_prompt")
        return soft.exact_match.rate if soft else None


@dataclass(frozen=True)
class RunList:
    """What is stored here: the runs, the last changed first, and what is wrong with folders that are none."""

    runs: tuple[Listed, ...] = ()
    problems: Mapping[str, str] = field(default_factory=dict)  # by the name of the folder


class Lister:
    """Reads all run folders; those that have not changed are not read again."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._known: dict[str, tuple[object, Listed]] = {}
        self._list = RunList()
        self._read = float("-inf")

    def expire(self) -> None:
        """Have the next call of `now` look at the folders again."""
        self._read = float("-inf")

    def now(self) -> RunList:
        """All runs. Pages that ask within a second share one look at the folders."""
        with self._lock:
            asked = time.monotonic()
            if asked - self._read > LIST_AGE:
                self._read = asked  # before the reading: what expires it meanwhile has its way
                folders, problems = self._store.scan()
                self._known = {folder.id: self._look(folder) for folder in folders}
                self._list = RunList(tuple(listed for _, listed in self._known.values()), problems)
            return self._list

    def _look(self, folder: RunFolder) -> tuple[object, Listed]:
        signature = folder.signature()  # first: what changes while it is read is read again the next time
        known = self._known.get(folder.id)
        if known is None or known[0] != signature:
            return signature, _listed(folder)
        listed = known[1]
        if listed.status != "finished":  # whether it waits or is running, its own files do not say
            listed = replace(listed, status=folder.status())
        return signature, listed


def _listed(folder: RunFolder) -> Listed:
    losses, probes = folder.curves(POINTS)
    # By step: a resumed run makes some steps a second time.
    listed = Listed(
        folder.id,
        folder.spec,
        folder.status(),
        folder.changed(),
        probes=tuple({probe.step: probe.exact_match.rate for probe in probes}.values()),
        losses=tuple({loss.step: loss.loss for loss in losses}.values()),
        step=losses[-1].step if losses else 0,
    )
    try:
        result = folder.result()
    except UserError as error:
        return replace(listed, problem=str(error))
    if result is None:
        return listed
    scores = {method: result.methods[method] for method in METHODS if method in result.methods}
    return replace(listed, scores=scores, seconds=sum(result.seconds.values()))
