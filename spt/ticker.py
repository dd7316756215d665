"""A sign of life from within a batch of answers, which can take minutes on a CPU. Imports no torch."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from spt.events import Phase, Progress

EVERY = 2.0  # seconds; each sign is a line of events.jsonl, so an hour of answers adds 250 kB at most


class Decoding(NamedTuple):
    """Where a batch of answers is after one more token."""

    rows: int
    ended: int
    tokens: int
    most: int  # tokens that an answer may have

    @property
    def share(self) -> float:
        """The share of the batch that is surely behind: rows that have ended, or tokens if all went on to the limit."""
        return max(self.ended / self.rows, self.tokens / self.most)


Listen = Callable[[Decoding], None]
Tell = Callable[[Progress], None]


@dataclass
class Ticker:
    """Tells of batches as `Progress` of a phase, not more often than every two seconds; short batches tell nothing."""

    tell: Tell
    phase: Phase = "load"
    done: int = 0
    total: int = 0
    _told: float = field(default_factory=time.monotonic)

    def at(self, phase: Phase, done: int, total: int) -> Progress:
        """The progress so far, which the next batch counts towards."""
        self.phase, self.done, self.total, self._told = phase, done, total, time.monotonic()
        return Progress(phase=phase, done=done, total=total)

    def __call__(self, batch: Decoding) -> None:
        """Hear of one more token."""
        now = time.monotonic()
        if now - self._told < EVERY:
            return
        self._told = now
        probe = self.phase == "tuning"  # its units are steps, and a probe is none
        detail = f"token {batch.tokens}, {batch.rows - batch.ended} of {batch.rows} go on"
        self.tell(
            Progress(
                phase=self.phase,
                done=self.done,
                total=self.total,
                detail=f"probe: {detail}" if probe else detail,
                ahead=0.0 if probe else batch.share * batch.rows,
            )
        )
