"""Reads run folders for all open pages together: ten viewers of a run cost one reader."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

from spt import queue
from spt.analysis import Analysis, Cells, analyse, histograms
from spt.events import Result
from spt.metrics import Prediction, Verdict
from spt.spec import Method
from spt.store import Notice, RunFolder, Status, Store
from spt.ui.answers import Item, join
from spt.ui.listed import Lister
from spt.view import RunView

KEPT = 32  # runs whose folded events stay in memory


@dataclass
class Shown:
    """One run as the page needs it."""

    folder: RunFolder
    view: RunView
    status: Status = "new"
    position: int | None = None
    offset: int = 0
    predictions: dict[Method, Sequence[Prediction]] = field(default_factory=dict)
    read: dict[Method, int] = field(default_factory=dict)  # how far a method was when its answers were read last
    started: float | None = None  # of the attempt that `predictions` belong to
    result: Result | None = None  # that `predictions`, `verdicts` and `analysis` belong to
    verdicts: dict[Method, Sequence[Verdict]] = field(default_factory=dict)
    items: Sequence[Item] = ()  # of `predictions` and `verdicts`, side by side
    analysis: Analysis | None = None  # once it is finished
    entry: queue.Entry | None = None  # what the queue holds for it
    notice: Notice | None = None  # of the worker, on a finished run

    def catch_up(self) -> bool:
        """Read what was appended since the last call; whether the status changed.

        The status is read first: a run that is found finished then has all its events.
        """
        before, status = self.status, self.folder.status()
        if status == "finished" != before:
            self.folder.result()  # a result of another version is said instead of half a page
        self.status = status
        self.entry = queue.entry(self.folder.id)
        self.position = queue.position(self.folder.id) if self.entry else None
        self.notice = self.folder.notice() if status == "finished" else None
        events, end = self.folder.read_events(self.offset)
        if end < self.offset:  # reset: what was folded is gone
            self.view = RunView(self.folder.spec)
        self.offset = end
        self.view.update(events)
        stale = False  # whether the items side by side are those of other answers
        if self.view.started != self.started:  # made anew since: the answers read before are those of another attempt
            self.predictions, self.read, self.started, stale = {}, {}, self.view.started, True
        fresh = self.view.result is not self.result  # finished just now, or scored again by rule or judge
        if fresh:
            self.result, self.read = self.view.result, {}
        for method in self.folder.spec.methods:
            scored, current = method in self.view.scores, method == self.view.phase
            done = self.folder.spec.items if scored else self.view.phase_done if current else 0
            if done and self.read.get(method) != done:
                self.predictions[method], self.read[method] = self.folder.predictions(method), done
                stale = True
        if fresh:
            self.verdicts, self.analysis = self._verdicts(), self._analysis()
        if stale:
            self.items = join(self.predictions, self.verdicts)
        return before != self.status

    def _verdicts(self) -> dict[Method, Sequence[Verdict]]:
        if self.result is None or self.result.judge is None:
            return {}
        return {method: self.folder.verdicts(method) for method in self.result.methods}

    def _analysis(self) -> Analysis | None:
        """That of the result; of a run from before there was one it is made here, from the stored answers."""
        if self.result is None:
            return None
        if self.result.analysis is not None:
            return self.result.analysis
        closed = any(row.options for rows in self.predictions.values() for row in rows)
        try:
            return analyse(self.predictions, closed, self.folder.spec.arms)
        except ValueError:  # answers that do not belong together: the rates stand without it
            return None

    @property
    def pending(self) -> bool:
        """A finished run that waits to be judged or made anew, or is being judged."""
        return self.status == "finished" and self.entry is not None

    @property
    def cells(self) -> dict[Method, Cells]:
        """Knows × in format of each method; while it runs of the answers so far."""
        if self.analysis is not None:
            return self.analysis.cells
        return {method: Cells.of(rows) for method, rows in self.predictions.items() if rows}

    @property
    def letters(self) -> dict[str, dict[str, int]]:
        """Histograms of first letters; empty for open questions."""
        if self.analysis is not None:
            return self.analysis.letters
        if self.view.data is None or not self.view.data.closed:
            return {}
        return histograms({method: rows for method, rows in self.predictions.items() if rows})


class Follower:
    """Keeps the runs that were looked at last, and reads only what is new."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._runs: OrderedDict[str, Shown] = OrderedDict()
        self.list = Lister(store)

    def get(self, run: str) -> Shown:
        """The run as it is now. Raises UserError for one that is not there (any more) or cannot be read."""
        with self._lock:
            folder = self._store.get(run)
            shown = self._runs.get(run)
            if shown is None:
                shown = self._runs[run] = Shown(folder, RunView(folder.spec))
                while len(self._runs) > KEPT:
                    self._runs.popitem(last=False)
            self._runs.move_to_end(run)
            if shown.catch_up():
                self.list.expire()
            return shown
