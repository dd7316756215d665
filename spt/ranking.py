"""Do the scores of base models order them as their post-trained twins are ordered? Numbers only; imports no torch.

    scores = {"gsm8k": {("Qwen/Qwen3-0.6B-Base", "soft_prompt"): Cell(0.41, n=500), …}, …}
    rank(scores, [Twins("Qwen3-0.6B", "Qwen/Qwen3-0.6B-Base", "Qwen/Qwen3-0.6B"), …])

The reference is the order of the post-trained models. Which of their scores is compared with is a choice of ours, since
the paper's is not known to us: zero-shot, the way post-trained models are used, unless asked otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, get_args

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from spt import swaps
from spt.spec import METHODS, Method

Against = Literal["zero_shot", "few_shot", "soft_prompt", "same"]
AGAINST: tuple[Against, ...] = get_args(Against)
Mark = Literal["", "mostly ties", "mostly too close to tell"]
CROWDED = 1 / 3  # share of the pairs from which on an order is marked
RESAMPLES = 2000
OVERALL = "over all"


class Twins(NamedTuple):
    """A base model and what post-training made of it."""

    name: str
    base: str
    post: str


@dataclass(frozen=True)
class Cell:
    """What one model reaches on one benchmark with one method: a mean over seeds."""

    value: float
    n: int | None = None  # items; None = not known
    seeds: int = 1
    low: float = 0.0  # of the seeds
    high: float = 0.0
    outcomes: np.ndarray | None = field(default=None, repr=False)  # by item, share of the seeds that are right


Key = tuple[str, Method]  # model, method
Scores = Mapping[str, Mapping[Key, Cell]]  # by benchmark


class Span(BaseModel):
    """A number and its 95 % interval; None where there are no answers to resample."""

    model_config = ConfigDict(frozen=True)
    value: float
    low: float | None = None
    high: float | None = None


class Score(BaseModel):
    """The score of a model in an order."""

    model_config = ConfigDict(frozen=True)
    value: float
    n: int | None = None
    seeds: int = 1
    low: float = Field(description="lowest seed")
    high: float = Field(description="highest seed")


class Order(BaseModel):
    """How one method orders the base models, against the order of their post-trained twins."""

    model_config = ConfigDict(frozen=True)
    method: Method
    twins: tuple[str, ...]
    base: tuple[Score, ...]
    reference: tuple[Score, ...]
    distance: Span = Field(description="swap distance; a tie counts one half")
    pairs: int = Field(description="pairs of models, the largest distance")
    chance: float = Field(description="the distance to expect of a random order")
    p: float = Field(description="probability that a random order is as near or nearer")
    tau: float | None = Field(description="Kendall's tau-b; None where an order is nothing but ties")
    tied: int = Field(description="pairs of base models with the same score")
    close: int | None = Field(description="pairs that the items cannot tell apart; None where n is not known")
    mark: Mark
    gap: Span | None = Field(description="mean of post-trained minus base score, both with this method")
    gaps: dict[str, float] = Field(description="the same of each pair of twins")


class Ranked(BaseModel):
    """One benchmark, or all of them: the mean of their scores."""

    model_config = ConfigDict(frozen=True)
    benchmark: str
    items: int | None = Field(description="test items; None where not known or not the same for all")
    orders: tuple[Order, ...]

    def order(self, method: Method) -> Order | None:
        return next((order for order in self.orders if order.method == method), None)


class Average(BaseModel):
    """Mean over the benchmarks of what one method reaches on each."""

    model_config = ConfigDict(frozen=True)
    method: Method
    distance: Span
    pairs: float
    chance: float
    gap: Span | None
    benchmarks: int
    nearer: Span | None = Field(None, description="how much nearer the soft prompt is, on the same benchmarks")


class Rankings(BaseModel):
    """All orders, and what was left out of them."""

    model_config = ConfigDict(frozen=True)
    score: str
    against: Against
    twins: tuple[Twins, ...]
    benchmarks: tuple[Ranked, ...]
    overall: Ranked | None = Field(description="by the mean score over all benchmarks; None for a single one")
    averages: tuple[Average, ...]
    notes: tuple[str, ...] = Field((), description="what was left out, and why")


class _Grid(NamedTuple):
    """Scores of some models, as they are and resampled."""

    cells: Mapping[Key, Cell]
    boot: Mapping[Key, np.ndarray]  # (resamples,)
    rates: Mapping[Key, list[float]]  # by benchmark
    items: Mapping[Key, list[int | None]]


class _Made(NamedTuple):
    order: Order
    distance: np.ndarray | None  # resampled
    gap: np.ndarray | None


def rank(
    scores: Scores, twins: Sequence[Twins], against: Against = "zero_shot", score: str = "exact_match",
    notes: Iterable[str] = (), seed: int = 0,
) -> Rankings:  # fmt: skip
    """All orders. Twins that lack a score are left out where it is lacking, and only there."""
    grids = {name: _grid(cells, seed + i) for i, (name, cells) in enumerate(sorted(scores.items()))}
    made = {name: _orders(grid, twins, against) for name, grid in grids.items()}
    made = {name: orders for name, orders in made.items() if orders}
    overall = _ranked(OVERALL, _orders(_mean([grids[name] for name in made]), twins, against)) if made else None
    return Rankings(
        score=score,
        against=against,
        twins=tuple(twins),
        benchmarks=tuple(_ranked(name, orders) for name, orders in made.items()),
        overall=overall if len(made) > 1 else None,
        averages=_averages(list(made.values())),
        notes=(*notes, *_lacking(made, twins)),
    )


def _grid(cells: Mapping[Key, Cell], seed: int) -> _Grid:
    """Resample the items of a benchmark, for all models and methods together where they share them."""
    with_items = {key: cell.outcomes for key, cell in cells.items() if cell.outcomes is not None}
    boot: dict[Key, np.ndarray] = {}
    if with_items:
        drawn = swaps.resampled_rates(np.stack(list(with_items.values())), RESAMPLES, seed)
        boot = dict(zip(with_items, drawn.T, strict=True))
    rates = {key: [cell.value] for key, cell in cells.items()}
    return _Grid(cells, boot, rates, {key: [cell.n] for key, cell in cells.items()})


def _mean(grids: Sequence[_Grid]) -> _Grid:
    """The means over benchmarks of what is there on all of them; each benchmark's items are resampled on their own."""
    keys = [key for key in grids[0].cells if all(key in grid.cells for grid in grids)]
    cells, boot = {}, {}
    for key in keys:
        parts = [grid.cells[key] for grid in grids]
        known = [part.n for part in parts if part.n is not None]
        cells[key] = Cell(
            value=float(np.mean([part.value for part in parts])),
            n=sum(known) if len(known) == len(parts) else None,
            seeds=min(part.seeds for part in parts),
            low=float(np.mean([part.low for part in parts])),
            high=float(np.mean([part.high for part in parts])),
        )
        if all(key in grid.boot for grid in grids):
            boot[key] = np.mean([grid.boot[key] for grid in grids], axis=0)
    return _Grid(
        cells, boot,
        {key: [rate for grid in grids for rate in grid.rates[key]] for key in keys},
        {key: [n for grid in grids for n in grid.items[key]] for key in keys},
    )  # fmt: skip


def _orders(grid: _Grid, twins: Sequence[Twins], against: Against) -> list[_Made]:
    """The order of each method that two pairs of twins have at least."""
    found = dict.fromkeys(method for _, method in grid.cells)
    methods = [m for m in METHODS if m in found] + sorted(m for m in found if m not in METHODS)
    made = []
    for method in methods:
        reference: Method = method if against == "same" else against
        there = [t for t in twins if (t.base, method) in grid.cells and (t.post, reference) in grid.cells]
        if len(there) > 1:
            made.append(_order(grid, there, method, reference))
    return made


def _order(grid: _Grid, twins: Sequence[Twins], method: Method, reference: Method) -> _Made:
    bases, posts = [(t.base, method) for t in twins], [(t.post, reference) for t in twins]
    base, post = ([grid.cells[key].value for key in keys] for keys in (bases, posts))
    distances = None
    if all(key in grid.boot for key in (*bases, *posts)):
        distances = swaps.swaps(*(np.stack([grid.boot[key] for key in keys], axis=1) for keys in (bases, posts)))
    tied, close = swaps.tied(base), _close(grid, bases)
    pairs = swaps.possible(len(twins))
    mark: Mark = (
        "mostly ties" if tied > CROWDED * pairs
        else "mostly too close to tell" if close is not None and close > CROWDED * pairs
        else ""
    )  # fmt: skip
    gaps = {
        t.name: grid.cells[t.post, method].value - grid.cells[t.base, method].value
        for t in twins
        if (t.post, method) in grid.cells
    }
    resampled = [
        grid.boot[t.post, method] - grid.boot[t.base, method]
        for t in twins
        if t.name in gaps and (t.post, method) in grid.boot and (t.base, method) in grid.boot
    ]
    gap = np.mean(resampled, axis=0) if gaps and len(resampled) == len(gaps) else None
    order = Order(
        method=method,
        twins=tuple(t.name for t in twins),
        base=tuple(_score(grid.cells[key]) for key in bases),
        reference=tuple(_score(grid.cells[key]) for key in posts),
        distance=_span(float(swaps.swaps(base, post)), distances),
        pairs=pairs,
        chance=swaps.chance_mean(len(twins)),
        p=swaps.chance_p(base, post),
        tau=swaps.tau_b(base, post),
        tied=tied,
        close=close,
        mark=mark,
        gap=_span(float(np.mean(list(gaps.values()))), gap) if gaps else None,
        gaps=gaps,
    )
    return _Made(order, distances, gap)


def _close(grid: _Grid, keys: Sequence[Key]) -> int | None:
    """Pairs that cannot be told apart; the fewest items of a benchmark count where models have differing numbers."""
    items = [grid.items[key] for key in keys]
    if any(n is None for row in items for n in row):
        return None
    return swaps.close([grid.rates[key] for key in keys], np.asarray(items, dtype=int).min(axis=0).tolist())


def _score(cell: Cell) -> Score:
    several = cell.seeds > 1
    return Score(
        value=cell.value, n=cell.n, seeds=cell.seeds,
        low=cell.low if several else cell.value, high=cell.high if several else cell.value,
    )  # fmt: skip


def _span(value: float, resampled: np.ndarray | None) -> Span:
    if resampled is None:
        return Span(value=value)
    low, high = swaps.percentiles(resampled)
    return Span(value=value, low=low, high=high)


def _ranked(name: str, made: Sequence[_Made]) -> Ranked:
    items = {score.n for each in made for score in (*each.order.base, *each.order.reference)}
    return Ranked(benchmark=name, items=items.pop() if len(items) == 1 else None, orders=tuple(m.order for m in made))


def _averages(benchmarks: Sequence[Sequence[_Made]]) -> tuple[Average, ...]:
    """Distance and gap of each method, averaged over the benchmarks that have it."""
    by_method: dict[Method, dict[int, _Made]] = {}
    for number, benchmark in enumerate(benchmarks):
        for each in benchmark:
            by_method.setdefault(each.order.method, {})[number] = each
    soft = by_method.get("soft_prompt", {})
    found = []
    for method, made in by_method.items():
        all_made = list(made.values())
        orders = [each.order for each in all_made]
        gaps = [each for each in all_made if each.order.gap is not None]
        # The same twins on the same benchmarks, else the two distances are no comparison.
        same = [n for n, each in made.items() if n in soft and soft[n].order.twins == each.order.twins]
        found.append(
            Average(
                method=method,
                distance=_averaged([(order.distance.value, each.distance) for order, each in zip(orders, all_made)]),  # noqa: B905
                pairs=float(np.mean([order.pairs for order in orders])),
                chance=float(np.mean([order.chance for order in orders])),
                gap=_averaged([(g.order.gap.value, g.gap) for g in gaps if g.order.gap]) if gaps else None,
                benchmarks=len(orders),
                nearer=None if method == "soft_prompt" or not same else _averaged(
                    [_less(made[n], soft[n]) for n in same]
                ),
            )
        )  # fmt: skip
    return tuple(found)


def _less(made: _Made, soft: _Made) -> tuple[float, np.ndarray | None]:
    both = made.distance is not None and soft.distance is not None
    less = made.distance - soft.distance if both else None  # type: ignore[operator]
    return made.order.distance.value - soft.order.distance.value, less


def _averaged(parts: Sequence[tuple[float, np.ndarray | None]]) -> Span:
    resampled = [part for _, part in parts if part is not None]
    whole = np.mean(resampled, axis=0) if len(resampled) == len(parts) else None
    return _span(float(np.mean([value for value, _ in parts])), whole)


def _lacking(made: Mapping[str, Sequence[_Made]], twins: Sequence[Twins]) -> list[str]:
    """Where a method orders fewer twins than there are."""
    notes = []
    for name, orders in made.items():
        for each in orders:
            gone = [t.name for t in twins if t.name not in each.order.twins]
            if gone:
                notes.append(f"{name}, {each.order.method}: no score of both twins for {', '.join(gone)}.")
    return notes
