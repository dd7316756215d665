"""What a model will be shown, before any is loaded: rows as plain text, with the target apart. Imports no torch."""

from __future__ import annotations

from dataclasses import dataclass

from spt import benchmarks
from spt.spec import RunSpec

ROWS = 5


@dataclass(frozen=True)
class PreviewRow:
    """One row: what stands before the answer, and the answer asked for."""

    context: str
    target: str
    topic: str


@dataclass(frozen=True)
class Preview:
    """A benchmark as a run would use it."""

    name: str
    title: str
    format: str
    closed: bool
    source: str
    licence: str
    train: int
    test: int
    dropped: dict[str, int]
    topics: tuple[str, ...]
    rows: tuple[PreviewRow, ...]


def preview(spec: RunSpec, rows: int = ROWS) -> Preview:
    """The first training rows as zero-shot shows them, and the counts. Raises UserError as the run itself would.

    In plain layout: with a chat template the same text stands in the user's turn, and the target in the assistant's.
    """
    benchmark, split = benchmarks.load(benchmarks.canonical(spec))
    layout = benchmark.layout
    lead = layout.instruction(benchmark)
    shown = split.test if spec.holdout_topic else (*split.train, *split.test)
    return Preview(
        name=benchmark.name,
        title=benchmark.title,
        format=benchmark.format.name,
        closed=benchmark.closed,
        source=benchmark.source,
        licence=benchmark.licence,
        train=len(split.train),
        test=len(split.test),
        dropped=split.dropped,
        topics=tuple(sorted({example.topic for example in shown} - {""})),
        rows=tuple(
            PreviewRow(f"{lead}{layout.prompt(example)}{layout.before_answer}", example.target, example.topic)
            for example in split.train[:rows]
        ),
    )
