"""Two or more runs of one benchmark compared: rates, paired differences, settings, items, marks. Imports no torch.

Everything is made from the stored answers, item by item. Knowledge is that of the rule here, also where a run was
judged, since the other may not have been.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from spt.analysis import METRICS, Metric
from spt.metrics import Prediction, Rate
from spt.pairs import is_pair
from spt.presets import model_title
from spt.spec import METHODS, Method, RunSpec, UserError
from spt.stats import PairedDifference, compare
from spt.store import RunFolder, Status
from spt.view import count

MOST = 6  # runs in a comparison
LETTERS = "ABCDEF"
Mark = Literal["captured", "not_captured", "wrong", "loops"]
MARKS: dict[Mark, str] = {
    "captured": "right and captured",
    "not_captured": "right, not captured",
    "wrong": "wrong",
    "loops": "loops",
}


@dataclass(frozen=True, eq=False)
class Side:
    """One run of a comparison: its settings, and the answers it has so far."""

    id: str
    spec: RunSpec
    status: Status
    rows: Mapping[Method, Sequence[Prediction]]

    @classmethod
    def of(cls, folder: RunFolder) -> Side:
        """What a run folder has now."""
        status = folder.status()
        if status == "finished":
            folder.result()  # one of another version is said, instead of compared
        return cls(folder.id, folder.spec, status, {method: folder.predictions(method) for method in METHODS})

    @cached_property
    def answers(self) -> dict[Method, dict[str, Prediction]]:
        """Of the methods that have any, by item."""
        return {method: {row.id: row for row in self.rows[method]} for method in METHODS if self.rows.get(method)}

    @cached_property
    def items(self) -> dict[str, Prediction]:
        """Every item that any method has answered, with one of its answers."""
        return {name: row for by_item in reversed(self.answers.values()) for name, row in by_item.items()}


class Line(BaseModel):
    """One run of a comparison, in a line."""

    model_config = ConfigDict(frozen=True)
    letter: str
    run: str
    model: str
    label: str = Field(description="what tells it from the others")
    status: Status
    items: int = Field(description="that it has answered")
    alone: int = Field(description="of them, not answered by all of the others")


class Cell(BaseModel):
    """One run, method and metric: its rate, and the difference to the reference on the items that both answered."""

    model_config = ConfigDict(frozen=True)
    run: str
    method: Method
    metric: Metric
    rate: Rate
    paired: PairedDifference | None = Field(None, description="this run minus the reference; None for the reference")
    left_out: int = Field(0, description="items that only one of the two answered")


class RunComparison(BaseModel):
    """Runs side by side. Differences are against `reference`; p values are not corrected for their number."""

    model_config = ConfigDict(frozen=True)
    benchmark: str
    reference: str
    runs: tuple[Line, ...]
    shared: int = Field(description="items that all runs answered")
    settings: dict[str, tuple[str, ...]] = Field(description="settings that differ: name -> the value of each run")
    cells: tuple[Cell, ...]

    def cell(self, run: str, method: Method, metric: Metric) -> Cell | None:
        return next((c for c in self.cells if (c.run, c.method, c.metric) == (run, method, metric)), None)

    @property
    def methods(self) -> list[Method]:
        """That any run has answered with."""
        return [method for method in METHODS if any(cell.method == method for cell in self.cells)]


def check_ids(runs: Sequence[str]) -> None:
    """Raises UserError unless these can be the ids of a comparison."""
    twice = next((run for run, times in Counter(runs).items() if times > 1), None)
    if twice is not None:
        raise UserError(f"Run {twice[:80]!r} is there twice: choose another run to compare it with.")
    if len(runs) < 2:
        raise UserError("A comparison needs two runs: choose one more, of the same benchmark.")
    if len(runs) > MOST:
        raise UserError(f"{len(runs)} runs are too many to compare: choose at most {MOST}.")


def check_specs(specs: Sequence[RunSpec]) -> None:
    """Raises UserError where the runs are of different benchmarks."""
    names = sorted({spec.benchmark for spec in specs})
    if len(names) > 1:
        listed = " and ".join(names) if len(names) == 2 else "these benchmarks"
        raise UserError(f"Runs of {listed} have no items in common: choose runs of one benchmark.")


def _value(spec: RunSpec, name: str) -> str:
    value = getattr(spec, name)
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "none"
    return "none" if value is None else str(value)


def settings_that_differ(specs: Sequence[RunSpec]) -> dict[str, tuple[str, ...]]:
    """Setting -> the value of each run, of the settings in which not all are the same."""
    found = {name: tuple(_value(spec, name) for spec in specs) for name in RunSpec.model_fields}
    return {name: values for name, values in found.items() if len(set(values)) > 1}


def labels(sides: Sequence[Side]) -> list[str]:
    """What tells each run from the others: its model, and the settings that differ; its id where nothing does."""
    differ = settings_that_differ([side.spec for side in sides])
    found = []
    for i, side in enumerate(sides):
        words = [model_title(side.spec.model)] if "model" in differ else []
        words += [f"{name.replace('_', ' ')} {values[i]}" for name, values in differ.items() if name != "model"]
        found.append(", ".join(words))
    return [f"{label}, {side.id[-6:]}" if found.count(label) > 1 and label else label or side.id[-6:]
            for label, side in zip(found, sides, strict=True)]  # fmt: skip


def _outcome(row: Prediction, metric: Metric) -> bool:
    return {"format": row.in_format, "knowledge": row.knows, "exact_match": row.exact_match}[metric]


def _cell(side: Side, reference: Side, method: Method, metric: Metric) -> Cell:
    mine, theirs = side.answers[method], reference.answers.get(method, {})
    rate = Rate.of(_outcome(row, metric) for row in mine.values())
    both = [name for name in theirs if name in mine]
    paired = None
    if side is not reference and both:
        a, b = ({name: _outcome(rows[name], metric) for name in both} for rows in (theirs, mine))
        paired = compare(a, b)
    left = 0 if side is reference else len(mine.keys() ^ theirs.keys())
    return Cell(run=side.id, method=method, metric=metric, rate=rate, paired=paired, left_out=left)


def compare_runs(sides: Sequence[Side], reference: str = "") -> RunComparison:
    """Compare runs with the first of them, or with the one of that id.

    Raises UserError where they cannot be compared: too few or many, one twice, other benchmarks, no answers in common.
    """
    check_ids([side.id for side in sides])
    check_specs([side.spec for side in sides])
    first = next((side for side in sides if side.id == reference), sides[0])
    every = [side.items.keys() for side in sides]
    shared = set(every[0]).intersection(*every[1:])
    for side in sides:
        if not side.items:
            raise UserError(f"Run {side.id} has no answers yet: it can be compared once its first method is scored.")
    if not shared:
        raise UserError("These runs have answered no question in common: choose runs with the same test items.")
    lines = tuple(
        Line(letter=LETTERS[i], run=side.id, model=model_title(side.spec.model), label=label, status=side.status,
             items=len(side.items), alone=len(side.items) - len(shared))
        for i, (side, label) in enumerate(zip(sides, labels(sides), strict=True))
    )  # fmt: skip
    return RunComparison(
        benchmark=first.spec.benchmark,
        reference=first.id,
        runs=lines,
        shared=len(shared),
        settings=settings_that_differ([side.spec for side in sides]),
        cells=tuple(
            _cell(side, first, method, metric)
            for method in METHODS
            for side in sides
            if method in side.answers
            for metric in METRICS
        ),
    )


def unfinished(comparison: RunComparison) -> str:
    """A sentence about runs that are not finished; empty if all are."""
    open_ = [line for line in comparison.runs if line.status != "finished"]
    if not open_:
        return ""
    which = " and ".join(f"{line.letter} ({line.status}, {count(line.items, 'item')} answered)" for line in open_)
    return f"Not finished: run {which}. What has been answered so far is compared."


# ---- four ways: base, base + soft prompt, post-trained, post-trained + soft prompt


def mark(row: Prediction) -> Mark:
    """What the benchmark makes of an answer, and why: exactly one of the four.

    Captured is what the score counts, so the first mark counts up to exact match. An answer that ran into a loop is
    called so before it is asked whether the right answer stands in it.
    """
    if row.exact_match:
        return "captured"
    if row.stopped_by == "loop":
        return "loops"
    return "not_captured" if row.knows else "wrong"


@dataclass(frozen=True)
class Way:
    """One of the four columns."""

    title: str
    side: Side
    method: Method

    @property
    def answers(self) -> Mapping[str, Prediction]:
        return self.side.answers.get(self.method, {})

    def counts(self, items: Collection[str]) -> dict[Mark, int]:
        """How often each mark stands in the column, over these items."""
        found = Counter(mark(row) for name, row in self.answers.items() if name in items)
        return {each: found[each] for each in MARKS}


def find_pair(sides: Sequence[Side]) -> tuple[Side, Side] | None:
    """A base model and its post-trained one among the runs, by name; of several those with the most alike settings."""
    pairs = [(a, b) for a in sides for b in sides if is_pair(a.spec.model, b.spec.model)]
    return min(pairs, key=lambda pair: len(settings_that_differ([side.spec for side in pair])), default=None)


def four_ways(base: Side, post: Side) -> tuple[Way, ...]:
    """The columns of the four-way view."""
    return (
        Way("Base", base, "zero_shot"),
        Way("Base + soft prompt", base, "soft_prompt"),
        Way("Post-trained", post, "zero_shot"),
        Way("Post-trained + soft prompt", post, "soft_prompt"),
    )


def shared_items(base: Side, post: Side) -> dict[str, Prediction]:
    """Items that both runs answered: the columns are about the same questions."""
    return {name: row for name, row in base.items.items() if name in post.items}
