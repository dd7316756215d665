"""What a benchmark is: examples for tuning, examples for scoring, an instruction and an answer format."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from spt.benchmarks.formats import AnswerFormat
from spt.benchmarks.layout import Layout


class Example(BaseModel):
    """One question. `target` is the exact text the benchmark asks for (`#### Paris`, `A. Paris`)."""

    model_config = ConfigDict(frozen=True)
    question: str
    answer: str = Field(description="the reference answer alone; for closed questions the option's text")
    target: str
    options: tuple[str, ...] = Field(default=(), description="closed: the option lines as shown, `A. Paris`")
    aliases: tuple[str, ...] = Field(default=(), description="further accepted answers")
    topic: str = ""

    @property
    def id(self) -> str:
        """Content hash: the same question has the same id in every run."""
        return hashlib.sha256("\n".join((self.question, *self.options)).encode()).hexdigest()[:12]


@dataclass(frozen=True)
class Split:
    """The loaded rows. Train and test share no subject; `dropped` counts rows left out, by reason."""

    train: Sequence[Example]
    test: Sequence[Example]
    dropped: dict[str, int] = field(default_factory=dict)

    @property
    def fingerprint(self) -> str:
        """Hash of all rows, targets included: the same data have the same fingerprint wherever they come from."""
        rows = json.dumps([[row.model_dump_json() for row in rows] for rows in (self.train, self.test)])
        return hashlib.sha256(rows.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class HubSet:
    """A data set on the hub: which rows of it tune and which test."""

    id: str
    config: str
    revision: str | None  # the commit
    train: str
    test: str


@dataclass(frozen=True)
class Benchmark:
    """A benchmark as the registry lists it; nothing is read before `load()`."""

    name: str
    title: str
    format: AnswerFormat
    instruction: str  # put before the question by zero-shot and few-shot; the soft prompt takes its place
    source: str
    licence: str
    read: Callable[[Path | None], Split]  # the rows, from a folder in place of the hub where one is given
    hub: HubSet | None = None  # where the rows are from, unless they are here
    layout: Layout = field(default_factory=Layout)

    def load(self, data_dir: str | Path | None = None) -> Split:
        """The rows. Raises UserError where they cannot be had."""
        return self.read(Path(data_dir) if data_dir else None)

    @property
    def closed(self) -> bool:
        """Whether the options are listed in the question."""
        return self.format.closed
